//! What synced writes cost an asynchronous program, made in three ways. See `docs/guides/async.md`.
//!
//! `cargo run --release -p forrest-db --example asynchronous -- URL [TASKS [ROUNDS]]`
//!
//! Each of the tasks makes a change in every round, and goes on when it survives power loss. The runtime has two worker
//! threads. The three ways take turns; the times are those of all rounds.

use forrest::asynchronous::Syncer;
use forrest::{Db, Durability, Error, ErrorKind, Result, WriteBatch, WriteOptions};
use std::future::Future;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// Runs the example with the arguments of the command line.
pub fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default| arguments.get(at).map_or(Some(default), |text| text.parse().ok());
    let (Some(url), Some(tasks), Some(rounds)) = (arguments.first(), number(1, 64), number(2, 20)) else {
        eprintln!("usage: asynchronous URL [TASKS [ROUNDS]]");
        std::process::exit(2);
    };
    let db = Db::open(url)?;
    println!("{} synced sets by {tasks} tasks", tasks * rounds);
    for (name, time) in times(&db, tasks, rounds)? {
        println!("{name:<30}{:>9.1} ms", time.as_secs_f64() * 1e3);
    }
    Ok(())
}

/// The time of each way.
pub fn times(db: &Db, tasks: u32, rounds: u32) -> Result<[(&'static str, Duration); 3]> {
    let runtime = Builder::new_multi_thread().worker_threads(2).build();
    let runtime =
        runtime.map_err(|error| Error::new(ErrorKind::Io, format!("starting a runtime: {error}")))?;
    let syncer = Syncer::new(db)?;

    // A task that blocks holds up all others of its thread.
    let inline = timed(&runtime, tasks, |task| {
        let db = db.clone();
        async move { (0..rounds).try_for_each(|round| db.write_with(change(task, round), &synced())) }
    })?;
    // Each wait has a thread of the runtime's pool.
    let pool = timed(&runtime, tasks, |task| {
        let db = db.clone();
        async move {
            for round in 0..rounds {
                let db = db.clone();
                let write = move || db.write_with(change(task, round), &synced());
                tokio::task::spawn_blocking(write).await.expect("no write panics")?;
            }
            Ok(())
        }
    })?;
    // The change is made at once, and one thread waits for all tasks.
    let future = timed(&runtime, tasks, |task| {
        let (db, syncer) = (db.clone(), syncer.clone());
        async move {
            for round in 0..rounds {
                db.write(change(task, round))?;
                syncer.synced().await?;
            }
            Ok(())
        }
    })?;
    Ok([("a call that blocks", inline), ("spawn_blocking", pool), ("Syncer", future)])
}

/// Runs tasks at the same time until all are done.
fn timed<F>(runtime: &Runtime, tasks: u32, task: impl Fn(u32) -> F) -> Result<Duration>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let start = Instant::now();
    let running: Vec<_> = (0..tasks).map(|number| runtime.spawn(task(number))).collect();
    for task in running {
        runtime.block_on(task).expect("no task panics")?;
    }
    Ok(start.elapsed())
}

/// What a task writes in a round.
fn change(task: u32, round: u32) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.set([task.to_be_bytes(), round.to_be_bytes()].concat(), [0; 100]);
    batch
}

fn synced() -> WriteOptions {
    WriteOptions::new().durability(Durability::Sync)
}
