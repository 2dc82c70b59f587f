//! A store of the kernel home, in its ways in: runs of one operation (the ancestor's way), runs of many, and its
//! mapping.
//!
//! The store is one of `/dev/llds` that belongs to the open device and goes with it, or, with the feature `llds-user`,
//! one of the same engine in this process. Only llds's workload asks it, for single keys.

use super::{BATCH_KEYS, Pages, Reader, Subject, Writer};
use crate::data::{Counters, Kind as _};
use ::llds::raw::{Device, Ran, RawStore, abi};

/// Bytes of an operation on a key of 8 bytes, with a value of as many digits as there may be; and of its answer.
const OP_BYTES: usize = 16 + 8 + 24;
const ANSWER_BYTES: usize = 8 + 24;

/// A store in the kernel, asked for one operation at a time.
pub(crate) struct KernelCalls(Ways);
/// The same, changed by runs of many and seen in its mapping.
pub(crate) struct Kernel(Ways);
/// A store in this process, asked for one operation at a time.
#[cfg(feature = "llds-user")]
pub(crate) struct UserCalls(Ways);
/// The same, changed by runs of many and seen.
#[cfg(feature = "llds-user")]
pub(crate) struct User(Ways);

/// A store, and how it is asked.
pub(crate) struct Ways {
    store: RawStore,
    is_in_kernel: bool,
    /// Operations of a run that changes.
    together: usize,
    /// Whether keys are looked up in its mapping.
    is_seen: bool,
}

fn kernel(together: usize, is_seen: bool) -> Result<Ways, String> {
    let device = Device::open(true).map_err(|error| error.to_string())?;
    Ways::new(RawStore::Device(device), true, together, is_seen)
}

#[cfg(feature = "llds-user")]
fn user(together: usize, is_seen: bool) -> Result<Ways, String> {
    use ::llds::raw::{Attach, User};
    let attach = Attach { makes: true, mode: 0o600, ..Attach::existing(None, b"kvbench") };
    let user = User::open(&attach, true).map_err(|error| error.to_string())?;
    Ways::new(RawStore::User(user), false, together, is_seen)
}

impl Ways {
    fn new(store: RawStore, is_in_kernel: bool, together: usize, is_seen: bool) -> Result<Ways, String> {
        if is_seen && store.mapped().is_none() {
            return Err("the store cannot be mapped".to_owned());
        }
        Ok(Ways { store, is_in_kernel, together, is_seen })
    }

    /// Begins to change it.
    fn changes(&self) -> Changes<'_> {
        Changes { ways: self, bytes: [0; BATCH_KEYS * OP_BYTES], used: 0, count: 0 }
    }

    /// Does a run, all of it.
    fn run(&self, ops: &[u8], answers: &mut [u8]) -> usize {
        match self.store.run(ops, answers, false) {
            Ok(Ran::Done { ops_bytes, answers_bytes, .. }) if ops_bytes == ops.len() => answers_bytes,
            other => panic!("a run was not done: {other:?}"),
        }
    }

    /// Asks for keys, and shows the value of each.
    fn ask(&self, keys: &[u64], mut see: impl FnMut(usize, Option<&[u8]>)) {
        let (mut ops, mut answers) = ([0; BATCH_KEYS * 24], [0; BATCH_KEYS * ANSWER_BYTES]);
        let mut ops = Ops { bytes: &mut ops, used: 0 };
        keys.iter().for_each(|key| ops.push(abi::GET, *key, &[]));
        let used = self.run(&ops.bytes[..ops.used], &mut answers);
        let mut rest = &answers[..used];
        for at in 0..keys.len() {
            let (head, body) = rest.split_first_chunk::<8>().expect("each has an answer");
            let [status, bytes] = [&head[..4], &head[4..]]
                .map(|four| u32::from_ne_bytes(four.try_into().expect("they are four bytes")));
            see(at, (status.cast_signed() == abi::DONE).then(|| &body[..bytes as usize]));
            rest = &body[(bytes as usize).next_multiple_of(8)..];
        }
    }
}

/// A buffer of consecutive encoded operations.
struct Ops<'a> {
    bytes: &'a mut [u8],
    used: usize,
}

impl Ops<'_> {
    #[inline]
    fn push(&mut self, code: u8, key: u64, value: &[u8]) {
        let bytes = (24 + value.len()).next_multiple_of(8);
        let op = &mut self.bytes[self.used..self.used + bytes];
        op.fill(0);
        op[0] = code;
        op[2..4].copy_from_slice(&8_u16.to_ne_bytes());
        op[4..8].copy_from_slice(&(value.len() as u32).to_ne_bytes());
        op[16..24].copy_from_slice(Counters::key_bytes(key).as_ref());
        op[24..24 + value.len()].copy_from_slice(value);
        self.used += bytes;
    }
}

/// Changes that are applied in batches, the last one when this is dropped.
pub(crate) struct Changes<'w> {
    ways: &'w Ways,
    bytes: [u8; BATCH_KEYS * OP_BYTES],
    used: usize,
    count: usize,
}

impl Changes<'_> {
    fn change(&mut self, code: u8, key: u64, value: &[u8]) {
        let mut ops = Ops { bytes: &mut self.bytes, used: self.used };
        ops.push(code, key, value);
        self.used = ops.used;
        self.count += 1;
        if self.count == self.ways.together {
            self.flush();
        }
    }

    fn flush(&mut self) -> bool {
        let mut answers = [0; BATCH_KEYS * 8];
        let used = self.ways.run(&self.bytes[..self.used], &mut answers);
        (self.used, self.count) = (0, 0);
        let (statuses, _) = answers[..used].as_chunks::<8>();
        let status = |answer: &[u8; 8]| u64::from_ne_bytes(*answer) as u32 as i32;
        assert!(statuses.iter().all(|answer| status(answer) >= 0), "a change was not made");
        statuses.last().is_some_and(|answer| status(answer) == abi::DONE)
    }
}

impl Drop for Changes<'_> {
    fn drop(&mut self) {
        if self.count > 0 && !std::thread::panicking() {
            self.flush();
        }
    }
}

impl Writer<Counters> for Changes<'_> {
    #[inline]
    fn insert(&mut self, key: u64, value: &[u8]) {
        self.change(abi::SET, key, value);
    }

    fn remove(&mut self, key: u64) -> bool {
        if self.count > 0 {
            self.flush();
        }
        let mut ops = Ops { bytes: &mut self.bytes, used: 0 };
        ops.push(abi::DELETE, key, &[]);
        self.used = ops.used;
        self.flush()
    }
}

impl Reader<Counters> for &Ways {
    #[inline]
    fn get<R>(&self, key: u64, see: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let make = |value: Option<&[u8]>| value.map(see);
        let make = match self.store.mapped().filter(|_| self.is_seen) {
            Some(mapped) => match mapped.get(Counters::key_bytes(key).as_ref(), make) {
                Ok(seen) => return seen,
                Err(make) => make,
            },
            None => make,
        };
        let (mut make, mut found) = (Some(make), None);
        self.ask(&[key], |_, value| found = make.take().and_then(|make| make(value)));
        found
    }

    fn iterate(&self, _: impl FnMut(u64, &[u8])) {
        unreachable!("only single keys are asked for");
    }

    fn multi_get(&self, keys: &[u64], mut see: impl FnMut(usize, Option<&[u8]>)) {
        for (chunk, keys) in keys.chunks(BATCH_KEYS).enumerate() {
            self.ask(keys, |at, value| see(chunk * BATCH_KEYS + at, value));
        }
    }
}

/// The same for each of the types.
macro_rules! subject {
    ($name:ident, $make:ident, $together:expr, $is_seen:expr) => {
        impl Subject<Counters> for $name {
            const ORDERED: bool = false;
            const BATCHED: bool = true;
            type Reader<'a> = &'a Ways;
            type Writer<'a> = Changes<'a>;

            fn build(_: Pages) -> Result<Self, String> {
                $make($together, $is_seen).map($name)
            }

            fn reader(&self) -> &Ways {
                &self.0
            }

            fn writer(&mut self) -> Changes<'_> {
                self.0.changes()
            }

            fn shared_writer(&self) -> Option<Changes<'_>> {
                Some(self.0.changes())
            }

            fn kernel_bytes(&self) -> u64 {
                let stats = self.0.store.stats().ok().filter(|_| self.0.is_in_kernel);
                stats.map_or(0, |stats| stats.bytes)
            }

            fn memory_note(&self) -> Option<String> {
                let stats = self.0.store.stats().ok()?;
                Some(format!(
                    "the store has taken {} bytes a key",
                    stats.bytes.checked_div(stats.keys).unwrap_or(0)
                ))
            }
        }
    };
}

subject!(KernelCalls, kernel, 1, false);
subject!(Kernel, kernel, BATCH_KEYS, true);
#[cfg(feature = "llds-user")]
subject!(UserCalls, user, 1, false);
#[cfg(feature = "llds-user")]
subject!(User, user, BATCH_KEYS, true);
