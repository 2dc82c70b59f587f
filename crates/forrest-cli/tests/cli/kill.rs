//! `kill -9` at random moments, with an oracle that survives.
//!
//! A child, `forrest crash DIR --endless`, prints a line after each acknowledged change. This process reads the lines,
//! kills the child at a moment that follows from a seed, and reads the rest of the pipe. All of these changes were
//! acknowledged as `Buffered` and must be in the store. In half of the rounds this process opens the store itself and
//! looks up every pair. In the others it passes the pairs to the next child by `--expect`; that child recovers from the
//! kill before it is killed in turn, sometimes during the recovery. Each child also verifies everything in the store.
//!
//! `FORREST_KILLS` sets the number of kills (6 in quick size, 20 in full), `FORREST_SEED` the seed. The moment is in
//! time, so a seed repeats a run only nearly.

use crate::harness::Place;
use forrest::Db;
use forrest_base::random::Random;
use forrest_testing::{number, sized};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Longest wait for a child to begin to write.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Run, thread and number of a pair.
type Pair = (u32, u32, u32);

/// Lines of a child's standard output, until its end.
pub(crate) fn lines(child: &mut Child) -> Receiver<String> {
    let (sender, receiver) = channel();
    let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
    std::thread::spawn(move || {
        let mut line = String::new();
        while matches!(stdout.read_line(&mut line), Ok(1..)) {
            // The last may have been cut by the kill.
            if line.ends_with('\n') && sender.send(line.trim_end().to_owned()).is_err() {
                return;
            }
            line.clear();
        }
    });
    receiver
}

fn pair(line: &str) -> Option<Pair> {
    let mut numbers = line.split('/').map(|part| part.parse().ok());
    Some((numbers.next()??, numbers.next()??, numbers.next()??))
}

/// The acknowledged pairs.
#[derive(Default)]
pub(crate) struct Oracle {
    /// Of each thread of each run, the last pair.
    pub(crate) last: BTreeMap<(u32, u32), u32>,
    pairs: u64,
    verified: u64,
}

impl Oracle {
    pub(crate) fn take(&mut self, line: &str) {
        let Some((run, thread, pair)) = pair(line) else {
            assert!(line.starts_with("verified:"), "{line}");
            self.verified += 1;
            return;
        };
        let next = self.last.get(&(run, thread)).map_or(0, |last| last + 1);
        assert_eq!(pair, next, "run {run}, thread {thread}");
        self.last.insert((run, thread), pair);
        self.pairs += 1;
    }

    /// Arguments that tell the next child.
    fn expect(&self) -> Vec<String> {
        let one = |(&(run, thread), pair): (&(u32, u32), &u32)| {
            ["--expect".to_owned(), format!("{run}/{thread}/{pair}")]
        };
        // Older runs were removed since.
        self.last.iter().rev().take(12).flat_map(one).collect()
    }

    /// Looks for all pairs of the last run that wrote, as any user of the library would.
    fn look(&self, place: &Place) {
        let Some((&(run, _), _)) = self.last.last_key_value() else { return };
        let path = place.path().join("dir");
        let db = Db::open(path.to_str().unwrap()).expect("a store opens after a kill");
        let space = db.keyspace("crash").unwrap();
        let first =
            space.get("first").unwrap().map_or(0, |text| String::from_utf8_lossy(&text).parse().unwrap());
        if run < first {
            return;
        }
        for (&(_, thread), &last) in self.last.range((run, 0)..) {
            // The second of eight is deleted later.
            for pair in (0..=last).filter(|pair| pair % 8 != 1) {
                let name = format!("pair {run:06}/{thread:03}/{pair:010}");
                assert!(space.contains(&name).unwrap(), "{name} was acknowledged, and is not there");
            }
        }
        db.verify().expect("nothing is damaged");
    }
}

/// Lets a child write for a while, kills it, and reads the acknowledged pairs.
fn write_and_kill(place: &Place, oracle: &mut Oracle, random: &mut Random, tells: bool) {
    let sizes = [["16384", "30000"], ["65536", "200000"], ["1000000", "4000000"]];
    let [memtable, table] = sizes[random.below(3) as usize];
    let threads = (1 + random.below(3)).to_string();
    let arguments = ["crash", "dir", "--endless", "--threads", &threads];
    let sized = ["--memtable-bytes", memtable, "--table-bytes", table];
    let expect = if tells { oracle.expect() } else { Vec::new() };
    let all: Vec<&str> =
        arguments.into_iter().chain(sized).chain(expect.iter().map(String::as_str)).collect();
    let mut child = place.command(&all).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = lines(&mut child);
    // One of five is killed about when it opens the store; the others when they have begun.
    let moment = match random.below(5) {
        0 => Duration::from_micros(random.below(60_000)),
        _ => {
            if let Ok(line) = lines.recv_timeout(PATIENCE) {
                oracle.take(&line);
            }
            Duration::from_micros(random.below(250_000))
        }
    };
    let deadline = Instant::now() + moment;
    let ended = loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => oracle.take(&line),
            Err(RecvTimeoutError::Timeout) => break false,
            Err(RecvTimeoutError::Disconnected) => break true,
        }
    };
    child.kill().expect("it can be killed");
    let status = child.wait().unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert!(!ended && status.code().is_none(), "it ended by itself, with {status}: {stderr}");
    assert_eq!(stderr, "");
    lines.into_iter().for_each(|line| oracle.take(&line));
}

#[test]
fn what_was_acknowledged_survives_kills() {
    let (kills, seed) =
        (number("FORREST_KILLS").unwrap_or(sized(6, 20)), number("FORREST_SEED").unwrap_or(1));
    println!("FORREST_KILLS={kills} FORREST_SEED={seed}");
    let place = Place::new();
    let (mut oracle, mut random, mut tells) = (Oracle::default(), Random(seed), false);
    for kill in 0..kills {
        write_and_kill(&place, &mut oracle, &mut random, tells);
        tells = random.below(2) == 0;
        println!("kill {kill}: {} pairs acknowledged so far, {} verified", oracle.pairs, oracle.verified);
        if !tells {
            oracle.look(&place);
        }
    }
    let expect = oracle.expect();
    let last: Vec<&str> = ["crash", "dir"].into_iter().chain(expect.iter().map(String::as_str)).collect();
    place.run(&last).ok();
    place.run(&["verify", "dir"]).ok();
    assert!(oracle.pairs > 0, "nothing was ever acknowledged");
}
