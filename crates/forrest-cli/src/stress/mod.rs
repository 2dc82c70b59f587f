//! `stress`: some threads write, others read, and no read may return a value older than one acknowledged before it
//! began.
//!
//! It works in the keyspace `stress`, which it empties first. On disk, small memtables and tables make the store
//! compact all the time. When all threads have stopped, it compares the whole keyspace, verifies the store, and
//! compares again after it has closed and reopened the store. truth.rs defines the allowed results.
//!
//! It does not test crashes; `crash` does.

mod truth;
mod work;

use crate::args::StressArgs;
use crate::codec::{Format, text};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::session::{Answer, Session};
use crate::term::{self, Style};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};
use truth::Truth;
use work::{Count, Counts, Reader, Shared, Writer};

/// The keyspace in which it works.
const SPACE: &str = "stress";
/// Pause between two drawings of the progress.
const DRAW_PAUSE: Duration = Duration::from_millis(80);

/// Operations in words.
const OPERATIONS: [(Count, &str); 9] = [
    (Count::Sets, "set"),
    (Count::Deletes, "delete"),
    (Count::Adds, "add"),
    (Count::Batches, "batch of 2 sets"),
    (Count::Gets, "get"),
    (Count::CounterGets, "get of a counter"),
    (Count::Snapshots, "snapshot and 2 gets"),
    (Count::Scans, "scan"),
    (Count::ScannedPairs, "pairs of scans"),
];
/// Counts that must be 0.
const FAULTS: [(Count, &str); 4] = [
    (Count::Stale, "stale"),
    (Count::Wrong, "wrong"),
    (Count::Torn, "torn"),
    (Count::Unordered, "unordered"),
];

/// Runs the threads and prints what they found.
pub(crate) fn run(session: &mut Session, args: &StressArgs) -> Result<Answer, Failure> {
    let cores = thread::available_parallelism().map_or(2, |n| n.get());
    let threads = args.threads.map_or(cores.max(2), |n| n as usize);
    let writers = (threads / 2).max(1);
    let readers = threads - writers;
    if session.format != Format::Jsonl {
        let url = text::escape(session.home.url.as_bytes());
        let url = session.term.fit(&url, session.term.columns.saturating_sub(26)).into_owned();
        let title = session.term.paint(Style::Bold, format_args!("stress on {url}"));
        let fate = if session.home.is_temporary() { ", temporary" } else { "" };
        session.line(format_args!("{title}{fate}"))?;
        session.line(format_args!(
            "   {} and {}, {}, {} (seed {})",
            term::plural(writers as u64, "writer", "writers"),
            term::plural(readers as u64, "reader", "readers"),
            term::plural(args.keys.into(), "key", "keys"),
            term::plural(args.seconds, "second", "seconds"),
            args.seed
        ))?;
        session.flush()?;
    }
    session.db.drop_keyspace(SPACE)?;
    let truth = Truth::new(args.seed, args.keys as usize, args.value_bytes as usize, writers);
    let open = |session: &Session| -> Result<Shared<'_>, Failure> {
        let space = session.db.keyspace(SPACE)?;
        Ok(Shared::new(session.db.clone(), space, &truth, writers, args.seed))
    };
    let shared = open(session)?;
    let start = Instant::now();
    let mut counts = work(session, &shared, readers, Duration::from_secs(args.seconds))?;
    let took = start.elapsed();
    let stats = session.db.stats()?;
    let mut checked = Reader::new(&shared, usize::MAX).check_all()?;
    let mut told = shared.told();
    drop(shared);
    let is_on_disk = session.home.directory().is_some();
    if is_on_disk {
        session.db.verify().map_err(|e| session.home.failed(e))?;
        session.reopen()?;
        let shared = open(session)?;
        checked += Reader::new(&shared, usize::MAX).check_all()?;
        told.extend(shared.told());
    }
    FAULTS.iter().for_each(|(fault, _)| counts.add(*fault, checked.get(*fault)));
    tell(session, &counts, took, is_on_disk.then_some(&stats))?;
    if FAULTS.iter().all(|(fault, _)| counts.get(*fault) == 0) {
        return Ok(Answer::Done);
    }
    session.flush()?;
    Err(Failure::Wrong(format!(
        "the store gave wrong answers (seed {}):\n  {}",
        args.seed,
        told.join("\n  ")
    )))
}

/// Lets the threads work for a time.
fn work(session: &Session, shared: &Shared, readers: usize, time: Duration) -> Result<Counts, Failure> {
    let bar = Bar::new(&session.term, session.quiet, time.as_millis() as u64);
    thread::scope(|scope| {
        let filling: Vec<_> =
            (0..shared.writers).map(|n| scope.spawn(move || Writer::new(shared, n).fill())).collect();
        let mut counts = Counts::default();
        for thread in filling {
            counts += thread.join().expect("it does not panic")?;
        }
        let start = Instant::now();
        let mut threads: Vec<_> =
            (0..shared.writers).map(|n| scope.spawn(move || Writer::new(shared, n).run())).collect();
        threads.extend((0..readers).map(|n| scope.spawn(move || Reader::new(shared, n).run())));
        while start.elapsed() < time && !shared.stop.load(Ordering::Relaxed) {
            bar.show(start.elapsed().as_millis() as u64, || {
                term::plural(shared.done.load(Ordering::Relaxed), "operation", "operations")
            });
            thread::park_timeout(DRAW_PAUSE.min(time.saturating_sub(start.elapsed())));
        }
        shared.stop.store(true, Ordering::Relaxed);
        for thread in threads {
            counts += thread.join().expect("it does not panic")?;
        }
        Ok(counts)
    })
}

/// Prints the table and the verdict.
fn tell(
    session: &mut Session,
    counts: &Counts,
    took: Duration,
    on_disk: Option<&forrest::Stats>,
) -> Result<(), Failure> {
    if session.format == Format::Jsonl {
        let all = OPERATIONS.iter().chain(&FAULTS);
        let mut json: serde_json::Map<_, _> =
            all.map(|(count, name)| ((*name).to_owned(), counts.get(*count).into())).collect();
        json.insert("seconds".to_owned(), took.as_secs_f64().into());
        return session.line(format_args!("{}", serde_json::Value::Object(json)));
    }
    let head = format!("   {:<22}{:>14}{:>12}", "operation", "calls", "a second");
    session.line(format_args!(""))?;
    session.line(format_args!("{}", session.term.paint(Style::Dim, head)))?;
    for (count, name) in OPERATIONS {
        let calls = counts.get(count);
        let rate = term::short_rate(calls as f64 / took.as_secs_f64());
        session.line(format_args!("   {name:<22}{:>14}{rate:>12}", term::grouped(calls)))?;
    }
    session.line(format_args!(""))?;
    if let Some(stats) = on_disk {
        session.line(format_args!(
            "   {} of {}; verified, closed, opened and compared again",
            term::plural(stats.tables, "table", "tables"),
            term::size(stats.table_bytes)
        ))?;
    }
    let faults: Vec<_> = FAULTS
        .iter()
        .map(|(fault, name)| {
            let count = counts.get(*fault);
            let style = if count == 0 { Style::Green } else { Style::Red };
            session.term.paint(style, format_args!("{name} = {count}"))
        })
        .collect();
    session.line(format_args!("   {}", faults.join(", ")))
}
