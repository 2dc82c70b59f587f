//! Runs one kind of operation on one home a given number of times, for counting instructions with callgrind.
//!
//! `cargo xtask bench instructions` runs it under callgrind for each operation and divides what was counted by their
//! number. Callgrind counts only while they run the second time, and only the thread that runs them: not opening,
//! loading and closing, not the first reads of pages and indexes, and no work in the background.
//!
//! The home `disk` may be followed by `-lz4`, to compress tables, and by `-cold`, for a cache that keeps nothing: then
//! every page comes from the system. With the feature `encryption` there is `-key`, for an encrypted store.
//!
//! With the word `features` it prints those of the processor, on which the counts depend.
//!
//! ```text
//! valgrind --tool=callgrind --collect-atstart=no instructions HOME get|miss|set|seek|scan|short|visit|next|batch COUNT
//! ```

use forrest::{Compression, Db, Durability, WriteBatch};
use forrest_machine::callgrind;
use std::hint::black_box;
use std::ops::ControlFlow;

/// Number of keys in the store.
const KEYS: u64 = 100_000;
/// Number of pairs that each scan reads.
const SCANNED: usize = 50;
/// The same of a short scan.
const FEW: usize = 10;
/// Number of changes in each batch.
const BATCH: u64 = 100;
/// Before what is visited, each of these shares of the keys is written again: all but the last to tables of their own.
const REWRITTEN: [u64; 3] = [8, 16, 200];

/// The key for a number: 16 bytes. The order of keys is not that of the numbers.
fn key(number: u64) -> [u8; 16] {
    let mut key = [b'k'; 16];
    key[8..].copy_from_slice(&number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    key
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["features"] {
        println!("{}", forrest_machine::cpu::features().join(" "));
        return Ok(());
    }
    let [home, what, count] = &arguments[..] else { return Err("HOME WHAT COUNT, or features".into()) };
    let count: u64 = count.parse()?;
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("store");
    let on_disk = home.starts_with("disk");
    let url = if on_disk { path.to_str().ok_or("a path of UTF-8")? } else { home };
    let mut builder = Db::builder().durability(Durability::Memory).workers(1);
    if home.contains("-lz4") {
        builder = builder.compression(Compression::Lz4);
    }
    if home.contains("-cold") {
        builder = builder.cache_bytes(1);
    }
    #[cfg(feature = "encryption")]
    if home.contains("-key") {
        builder = builder.encryption_key(forrest::EncryptionKey::from_bytes([7; 32]));
    }
    let db = builder.open(url)?;
    for number in 0..KEYS {
        db.set(key(number), [number as u8; 100])?;
    }
    if on_disk {
        db.compact()?;
    }
    if what == "visit" {
        // Several tables, and a memtable: what a scan meets in a store that is also written.
        for (round, share) in REWRITTEN.into_iter().enumerate() {
            if round > 0 {
                db.flush()?;
            }
            for number in (round as u64..KEYS).step_by(share as usize) {
                db.set(key(number), [round as u8; 100])?;
            }
        }
    }
    run(&db, what, count)?;
    callgrind::toggle();
    let ran = run(&db, what, count);
    callgrind::toggle();
    ran
}

fn run(db: &Db, what: &str, count: u64) -> Result<(), Box<dyn std::error::Error>> {
    let chosen = |at: u64| key(at.wrapping_mul(7919) % KEYS);
    match what {
        "get" => {
            let mut buffer = Vec::new();
            for at in 0..count {
                black_box(db.get_into(chosen(at), &mut buffer)?);
            }
        }
        "miss" => {
            for at in 0..count {
                black_box(db.get(key(KEYS + at))?);
            }
        }
        "set" => {
            for at in 0..count {
                db.set(chosen(at), [at as u8; 100])?;
            }
        }
        "seek" => {
            let mut cursor = db.cursor();
            for at in 0..count {
                black_box(cursor.seek(chosen(at))?);
            }
        }
        "scan" | "short" => {
            let pairs = if what == "scan" { SCANNED } else { FEW };
            for at in 0..count {
                for pair in db.range(&chosen(at)[..]..).take(pairs) {
                    black_box(pair?.key().len());
                }
            }
        }
        "visit" => {
            for at in 0..count {
                let mut left = SCANNED;
                db.scan(&chosen(at)[..].., |key, value| {
                    black_box((key.len(), value.len()));
                    left -= 1;
                    if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                })?;
            }
        }
        "next" => {
            let mut left = count;
            while left > 0 {
                for pair in db.range(..).take(usize::try_from(left)?) {
                    black_box(pair?.key().len());
                    left -= 1;
                }
            }
        }
        "batch" => {
            for at in 0..count {
                let mut batch = WriteBatch::new();
                for change in 0..BATCH {
                    batch.set(chosen(at * BATCH + change), [at as u8; 100]);
                }
                db.write(batch)?;
            }
        }
        _ => return Err("get, miss, set, seek, scan, short, visit, next or batch".into()),
    }
    Ok(())
}
