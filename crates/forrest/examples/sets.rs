//! Measures how many pairs per second are set one by one in a new store. This is the native side of
//! crates/forrest-py/examples/put_many.py, with the same pairs.
//!
//! `cargo run --release -p forrest-db --example sets -- URL PAIRS`

use forrest::{Db, Result};
use forrest_base::random::mix;
use std::time::Instant;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().unwrap_or_else(|| "memory:".to_owned());
    let Ok(count) = arguments.next().unwrap_or_else(|| "1000000".to_owned()).parse::<u64>() else {
        eprintln!("usage: sets [URL [PAIRS]]");
        std::process::exit(2);
    };
    let pairs: Vec<(Vec<u8>, Vec<u8>)> = (0..count)
        .map(|number| {
            let mut value = vec![0; 100];
            value[..8].copy_from_slice(&mix(!number).to_be_bytes());
            (format!("{:016x}", mix(number)).into_bytes(), value)
        })
        .collect();
    let db = Db::open(&url)?;
    let start = Instant::now();
    for (key, value) in &pairs {
        db.set(key, value)?;
    }
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(db.count(..)?, count);
    println!("{{\"pairs\": {count}, \"pairs_per_second\": {:.0}}}", count as f64 / seconds);
    Ok(())
}
