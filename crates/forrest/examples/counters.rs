//! Many threads add to counters, and update a value without losing a change.
//!
//! `cargo run -p forrest-db --example counters`

use forrest::{Db, Result};
use std::thread;

const THREADS: i64 = 4;

/// Runs the example.
pub fn main() -> Result<()> {
    let db = Db::open("memory:")?;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| work(&db))).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no worker panics"))
    })?;
    // Adding nothing reads the counter.
    println!("{} visits", db.add("visits", 0)?);
    assert_eq!(db.add("visits", 0)?, THREADS * 1_000);
    let log = db.get("log")?.expect("each thread wrote a line");
    print!("{}", String::from_utf8_lossy(&log));
    assert_eq!(log.iter().filter(|&&byte| byte == b'\n').count(), THREADS as usize);
    Ok(())
}

fn work(db: &Db) -> Result<()> {
    for _ in 0..1_000 {
        db.add("visits", 1)?; // one atomic step; returns the new value
    }
    // For other values: a function of the old value, called again if another thread has changed it meanwhile.
    db.update("log", |old| Some([old.unwrap_or_default(), b"a thread is done\n"].concat()))?;
    Ok(())
}
