//! `crash`: verifies what earlier runs wrote, writes in a new run, and ends the process without closing the store.
//!
//! A run has a number, one above that of the last run, and some threads. Their changes follow from run, thread and
//! sequence number alone (see plan.rs), so the next run needs only the store to verify them. A run that ends by itself
//! records its progress in the store, and syncs. A run that is killed has printed its progress: one line for each
//! change, after it was acknowledged. So the reader of these lines knows which changes must be in the store.
//!
//! The process ends by `exit` with the store open: it finishes no log and frees nothing. This does not simulate a loss
//! of power, because the operating system keeps running; docs/testing.md describes the tests for that.

mod plan;
mod verify;

use crate::args::{CrashArgs, Mark};
use crate::failure::Failure;
use crate::interrupt;
use crate::session::{Answer, Session};
use crate::term;
use forrest::{Db, Keyspace, WriteBatch};
use std::io::{self, Write};
use std::thread;
use verify::Found;

/// The keyspace in which it works.
const SPACE: &str = "crash";
/// Number of runs whose pairs are kept. Older ones are removed, so that a loop needs a bounded space.
const RUNS_KEPT: u32 = 4;

/// Verifies, writes, and ends the process without closing the store.
pub(crate) fn run(session: &mut Session, args: &CrashArgs) -> Result<Answer, Failure> {
    if session.home.directory().is_none() {
        return Err(Failure::usage("crash needs a store on disk"));
    }
    session.db.verify().map_err(|e| session.home.failed(e))?;
    let space = session.db.keyspace(SPACE)?;
    let found = verify::verify(&space, &args.expect)?;
    tell(session, &found)?;
    let run = found.last_run + 1;
    begin(&session.db, &space, &found, run, args.threads)?;
    // The record of the run's end is written after the pairs, so it never claims more than was written.
    let pairs = if args.endless { u32::MAX } else { args.pairs };
    thread::scope(|scope| {
        let (db, space) = (&session.db, &space);
        let threads: Vec<_> = (0..args.threads)
            .map(|thread| {
                scope.spawn(move || write(db, space, Mark { run, thread, pair: 0 }, pairs, args.endless))
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
    })?;
    space.set(plan::done_name(run), format!("{} {pairs}", args.threads))?;
    session.db.sync()?;
    let written = term::plural(u64::from(args.threads) * u64::from(pairs), "pair", "pairs");
    session
        .line(format_args!("run {run}: {written} written and synced; ending without closing the store"))?;
    session.flush()?;
    std::process::exit(0);
}

fn tell(session: &mut Session, found: &Found) -> Result<(), Failure> {
    if found.last_run == 0 {
        session.line(format_args!("verified: no run before this one"))?;
    } else {
        session.line(format_args!(
            "verified: runs {} to {}, {} in all, {} of them cut short",
            found.first_run,
            found.last_run,
            term::plural(found.pairs, "pair", "pairs"),
            term::grouped(found.unfinished)
        ))?;
    }
    session.flush()
}

/// Makes the records of a new run, and removes the oldest run if there are enough; all at once.
fn begin(db: &Db, space: &Keyspace, found: &Found, run: u32, threads: u32) -> Result<(), Failure> {
    let mut batch = WriteBatch::new();
    let mut on = batch.on(space);
    on.set(plan::run_name(run), threads.to_string());
    let first = found.first_run.max(1);
    if run - first >= RUNS_KEPT {
        for range in plan::ranges(first) {
            on.delete_range(range);
        }
        on.set(plan::FIRST, (first + 1).to_string());
    }
    db.write(&batch)?;
    Ok(())
}

/// Writes the pairs of a thread, and says so if asked to.
fn write(db: &Db, space: &Keyspace, start: Mark, pairs: u32, says: bool) -> Result<(), Failure> {
    let mut value = Vec::new();
    for pair in 0..pairs {
        interrupt::check()?;
        let mark = Mark { pair, ..start };
        mark.value(&mut value);
        if mark.is_counted() {
            let mut batch = WriteBatch::new();
            batch.on(space).set(mark.name(), &value).add(mark.count_name(), i64::from(plan::PERIOD));
            db.write(&batch)?;
        } else {
            space.set(mark.name(), &value)?;
        }
        if let Some(old) = mark.removes() {
            space.delete(old.name())?;
        }
        if says {
            // One write, so that a reader never sees a part of it.
            let line = format!("{mark}\n");
            let mut out = io::stdout().lock();
            out.write_all(line.as_bytes()).and_then(|()| out.flush()).map_err(Failure::stdout)?;
        }
    }
    Ok(())
}
