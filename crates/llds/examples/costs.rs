//! Measures each way to access a kernel store, in nanoseconds for each operation. On the test machine that
//! counts instructions (`cargo xtask vm --costs`) a nanosecond stands for an instruction.
//!
//! Keys and values have 8 bytes each. Keys are random, and read in another order than they were inserted.
//! Every answer is checked. Prints a line `cost NAME NUMBER` for each way.

use ::llds::raw::{Attach, Device, Mapped, Piece, Ran, RawStore, abi};
use std::fs::File;
use std::hint::black_box;
use std::ops::Bound;
use std::os::fd::AsRawFd;
use std::time::Instant;

const KEYS: u64 = 100_000;
const NAME: &[u8] = b"costs";
/// Bytes of a get and of a set.
const GET_BYTES: usize = 24;
const SET_BYTES: usize = 32;

type Failure = Box<dyn std::error::Error>;

/// A bijection that looks random.
fn mixed(number: u64) -> u64 {
    let mut x = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 27)
}

fn key(number: u64) -> [u8; 8] {
    mixed(number).to_be_bytes()
}

/// The keys in another order.
fn shuffled() -> impl Iterator<Item = u64> {
    (0..KEYS).map(|at| at * 62_989 % KEYS)
}

fn push(ops: &mut Vec<u8>, code: u8, key: &[u8; 8], value: &[u8]) {
    ops.extend_from_slice(&[code, 0]);
    ops.extend_from_slice(&8_u16.to_ne_bytes());
    ops.extend_from_slice(&(value.len() as u32).to_ne_bytes());
    ops.extend_from_slice(&[0; 8]);
    ops.extend_from_slice(key);
    ops.extend_from_slice(value);
}

/// An answer whose value is a number.
fn answer(number: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[4..8].copy_from_slice(&8_u32.to_ne_bytes());
    bytes[8..].copy_from_slice(&number.to_ne_bytes());
    bytes
}

/// Does the operations in runs of `many`, and checks every answer. Returns the nanoseconds for each
/// operation.
fn runs(
    store: &RawStore,
    ops: &[u8],
    op_bytes: usize,
    many: usize,
    mut see: impl FnMut(&[u8]) -> bool,
) -> Result<f64, Failure> {
    let mut answers = vec![0; 16 * many];
    let start = Instant::now();
    for ops in ops.chunks(op_bytes * many) {
        match store.run(ops, &mut answers, false)? {
            Ran::Done { ops_bytes, answers_bytes, .. } if ops_bytes == ops.len() => {
                if !see(&answers[..answers_bytes]) {
                    return Err("a wrong answer".into());
                }
            }
            ran => return Err(format!("{ran:?}").into()),
        }
    }
    Ok(start.elapsed().as_nanos() as f64 / (ops.len() / op_bytes) as f64)
}

/// Measures scans of 30 pairs, by operations and by seqlock scans, in nanoseconds for each pair.
fn scans(store: &RawStore, say: impl Fn(&str, f64)) -> Result<(), Failure> {
    const PAIRS: usize = 30;
    const PAIR_BYTES: usize = 24;
    const SCANS: u64 = 2_000;
    let mut answers = vec![0; 1024];
    let start = Instant::now();
    let mut found = 0;
    for number in 0..SCANS {
        let mut op = vec![abi::SCAN, abi::NO_OTHER];
        op.extend_from_slice(&8_u16.to_ne_bytes());
        op.extend_from_slice(&[0; 8]);
        op.extend_from_slice(&(PAIRS as u32).to_ne_bytes());
        op.extend_from_slice(&key(number));
        if let Ran::Done { answers_bytes, .. } = store.run(&op, &mut answers, false)? {
            found += (answers_bytes - size_of::<abi::Answer>()) / PAIR_BYTES;
        }
    }
    let each = |start: Instant, found: usize| start.elapsed().as_nanos() as f64 / found as f64;
    say("scan-30", each(start, found));
    let Some(mapped) = store.mapped() else { return Ok(()) };
    for name in ["scan-mapped-first", "scan-mapped"] {
        let (start, mut seen) = (Instant::now(), 0);
        for number in 0..SCANS {
            let key = key(number);
            let (mut lower, mut pairs) = (Bound::Included(&key[..]), 0);
            let mut last;
            while let Some(piece) =
                mapped.piece((lower, Bound::Unbounded), false, PAIRS - pairs, &mut answers)
            {
                pairs += answers.len() / PAIR_BYTES;
                if piece == Piece::End || pairs == PAIRS {
                    break;
                }
                last = answers[answers.len() - 16..][..8].to_vec();
                lower = Bound::Excluded(&last);
            }
            seen += pairs;
        }
        if seen != found {
            return Err(format!("seqlock scans found {seen} pairs, scan operations {found}").into());
        }
        say(name, each(start, seen));
    }
    Ok(())
}

/// Looks all keys up without a system call. Returns the sum of the numbers that are their values, and how many are.
#[inline(never)]
fn sum(mapped: &Mapped, keys: &[[u8; 8]]) -> (u64, u64) {
    let (mut sum, mut count) = (0_u64, 0);
    for key in keys {
        // What cannot be read in this way is not counted.
        let _ = mapped.get(&black_box(*key), |value| {
            if let Some(Ok(number)) = value.map(<[u8; 8]>::try_from) {
                sum = sum.wrapping_add(u64::from_ne_bytes(number));
                count += 1;
            }
        });
    }
    (sum, count)
}

/// Measures a call of the device that does nothing: a command that it does not know.
fn empty(say: impl Fn(&str, f64)) -> Result<(), Failure> {
    const CALLS: u64 = 25_000;
    const UNKNOWN: libc::Ioctl = 0xe9ff;
    let device = File::open("/dev/llds")?;
    let start = Instant::now();
    for _ in 0..CALLS {
        // SAFETY: the descriptor is open, and no driver takes a pointer by this number.
        if unsafe { libc::ioctl(device.as_raw_fd(), UNKNOWN, 0) } == 0 {
            return Err("the device knows a command that it should not".into());
        }
    }
    say("empty-ioctl", start.elapsed().as_nanos() as f64 / CALLS as f64);
    Ok(())
}

fn main() -> Result<(), Failure> {
    let attach = Attach { makes: true, mode: 0o600, ..Attach::existing(None, NAME) };
    let store = RawStore::open(&attach, true)?;
    let say = |name: &str, cost: f64| println!("cost {name} {cost:.1}");
    empty(say)?;

    let mut sets = Vec::new();
    (0..KEYS).for_each(|number| push(&mut sets, abi::SET, &key(number), &number.to_ne_bytes()));
    let done = |answers: &[u8]| answers.as_chunks().0.iter().all(|answer| u64::from_ne_bytes(*answer) == 0);
    say("insert-1024", runs(&store, &sets, SET_BYTES, 1024, done)?);
    let mut sets = Vec::new();
    shuffled().for_each(|number| push(&mut sets, abi::SET, &key(number), &number.to_ne_bytes()));
    say("set-1", runs(&store, &sets[..sets.len() / 4], SET_BYTES, 1, done)?);
    say("set-64", runs(&store, &sets, SET_BYTES, 64, done)?);
    say("set-1024", runs(&store, &sets, SET_BYTES, 1024, done)?);

    let mut gets = Vec::new();
    shuffled().for_each(|number| push(&mut gets, abi::GET, &key(number), &[]));
    let wanted: Vec<_> = shuffled().map(answer).collect();
    for (name, many, part) in [("get-1", 1, 4), ("get-16", 16, 1), ("get-64", 64, 1), ("get-1024", 1024, 1)] {
        let mut wanted = &wanted[..];
        let see = |answers: &[u8]| {
            let (first, rest) = wanted.split_at(many.min(wanted.len()));
            wanted = rest;
            answers.as_chunks().0 == first
        };
        say(name, runs(&store, &gets[..gets.len() / part], GET_BYTES, many, see)?);
    }

    if let Some(mapped) = store.mapped() {
        let keys: Vec<[u8; 8]> = shuffled().map(key).collect();
        // The first pass includes the page faults of the mapping.
        for name in ["get-mapped-first", "get-mapped"] {
            let start = Instant::now();
            let found = sum(mapped, &keys);
            let cost = start.elapsed().as_nanos() as f64 / KEYS as f64;
            let is_right = |(number, key): (u64, &[u8; 8])| {
                let see = |value: Option<&[u8]>| value == Some(&number.to_ne_bytes()[..]);
                mapped.get(key, see).unwrap_or(false)
            };
            if found != ((0..KEYS).sum(), KEYS) || !shuffled().zip(&keys).all(is_right) {
                return Err("keys were not found, or had wrong values".into());
            }
            say(name, cost);
        }
    }
    scans(&store, |name, cost| say(name, cost))?;
    drop(store);
    Device::open(true)?.destroy(None, NAME)?;
    Ok(())
}
