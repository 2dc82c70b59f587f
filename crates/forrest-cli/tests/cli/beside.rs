//! Processes that read a store while another one writes to it. All of them are killed at random moments.
//!
//! The writer, `forrest crash DIR --endless`, prints a line after each acknowledged change. This process reads the
//! store beside it and refreshes: what was acknowledged before must be there. Other processes dump the store; those
//! that are not killed must end well. When no reader is left, the files that were kept for them go.

use crate::harness::Place;
use crate::kill::{Oracle, PATIENCE, lines};
use forrest::{Db, ErrorKind};
use forrest_base::random::Random;
use forrest_testing::{number, sized};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Pairs of each thread that are looked up after a refresh: the newest.
const LOOKED_AT: u32 = 50;

/// Looks for the pairs that were acknowledged last.
fn look(db: &Db, oracle: &Oracle) {
    let space = db.keyspace("crash").expect("the writer has made it");
    let Some((&(run, _), _)) = oracle.last.last_key_value() else { return };
    for (&(_, thread), &last) in oracle.last.range((run, 0)..) {
        // The second of eight is deleted later.
        for pair in (last.saturating_sub(LOOKED_AT)..=last).filter(|pair| pair % 8 != 1) {
            let name = format!("pair {run:06}/{thread:03}/{pair:010}");
            assert!(space.contains(&name).expect("it reads"), "{name} was acknowledged, and is not seen");
        }
    }
}

/// Starts a process that dumps the store.
fn dump(place: &Place) -> Child {
    let arguments = ["dump", "--db", "dir", "--read-only"];
    place.command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts")
}

#[test]
fn readers_and_a_writer_are_killed_beside_each_other() {
    let (rounds, seed) =
        (number("FORREST_KILLS").unwrap_or(sized(4, 8)), number("FORREST_SEED").unwrap_or(1));
    println!("FORREST_KILLS={rounds} FORREST_SEED={seed}");
    let place = Place::new();
    let path = place.path().join("dir");
    let path = path.to_str().expect("it is text");
    let (mut oracle, mut random, mut refreshes) = (Oracle::default(), Random(seed), 0);
    let mut idle = Vec::new();
    for _ in 0..rounds {
        let threads = (1 + random.below(2)).to_string();
        let writer = ["crash", "dir", "--endless", "--threads", &threads];
        let sizes = ["--memtable-bytes", "30000", "--table-bytes", "60000"];
        let all: Vec<&str> = writer.into_iter().chain(sizes).collect();
        let mut writer =
            place.command(&all).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().expect("it starts");
        let acknowledged = lines(&mut writer);
        // The last pairs are those of this run from here on.
        let begun = oracle.last.len();
        while oracle.last.len() == begun {
            oracle.take(&acknowledged.recv_timeout(PATIENCE).expect("it writes"));
        }
        // With few descriptors, so that files are opened again by name.
        let reader = Db::builder().open_files(8).open_read_only(path).expect("it opens beside the writer");
        assert_eq!(Db::open(path).expect_err("it is open").kind(), ErrorKind::Busy);
        let mut dumps = Vec::new();
        let end = Instant::now() + Duration::from_millis(200 + random.below(500));
        while Instant::now() < end {
            acknowledged.try_iter().for_each(|line| oracle.take(&line));
            reader.refresh().expect("it refreshes beside the writer");
            look(&reader, &oracle);
            refreshes += 1;
            if dumps.len() < 3 && random.below(4) == 0 {
                dumps.push(dump(&place));
            }
        }
        if random.below(2) == 0 {
            writer.kill().expect("it can be killed");
        }
        for (at, mut child) in dumps.into_iter().enumerate() {
            if at % 2 == 0 {
                let _ = child.kill();
                child.wait().expect("it ends");
            } else {
                let output = child.wait_with_output().expect("it ends");
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            }
        }
        writer.kill().expect("it can be killed");
        writer.wait().expect("it ends");
        acknowledged.into_iter().for_each(|line| oracle.take(&line));
        reader.refresh().expect("it refreshes after the writer's death");
        look(&reader, &oracle);
        reader.verify().expect("nothing is damaged");
        idle.push(reader);
        if idle.len() > 2 {
            idle.remove(0);
        }
    }
    println!(
        "{refreshes} refreshes, {} pairs",
        oracle.last.values().map(|last| u64::from(last + 1)).sum::<u64>()
    );
    // Those that were not refreshed for long still see all of their state.
    for reader in &idle {
        let space = reader.keyspace("crash").expect("it is there");
        space.count(..).expect("its files are kept");
        assert!(space.range(..).all(|entry| entry.is_ok()), "its files are kept");
    }
    let files = |extension: &str| {
        let entries = std::fs::read_dir(path).expect("a directory");
        entries
            .filter(|entry| entry.as_ref().is_ok_and(|e| e.path().extension() == Some(extension.as_ref())))
            .count()
    };
    place.run(&["compact", "dir"]).ok();
    assert!(files("manifest") > 1, "the states of readers are kept");
    drop(idle);
    place.run(&["--db", "dir", "set", "last", "change"]).ok();
    place.run(&["compact", "dir"]).ok();
    place.run(&["verify", "dir"]).ok();
    let named = place.run(&["--db", "dir", "stat", "--format", "jsonl"]);
    let stat: serde_json::Value = serde_json::from_str(named.ok()).expect("it is JSON");
    assert_eq!((files("manifest"), stat["held_bytes"].as_u64()), (1, Some(0)));
    assert_eq!(Some(files("table") as u64), stat["tables"].as_u64(), "tables of old states are left");
}
