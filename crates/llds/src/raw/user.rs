//! [`User`]: the engine of the kernel home in this process, built from the same C.
//!
//! A store has a name, and all handles that are open at the same time share it, as in the kernel. Dropping
//! the last handle frees it. Other processes do not see it. Copies "from and to the user" are copies within
//! the process.

use super::abi;
use super::device::Attach;
use super::error::{Error, Result};
use super::mapped::Mapped;
use super::ran::{self, Ran};
use forrest_base::lock;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, OnceLock, Weak};

const OPEN: &str = "open the store";
const STATS: &str = "ask for the figures of the store";

/// An open store of this process.
#[derive(Debug)]
pub struct User {
    shared: Arc<Shared>,
    may_change: bool,
    /// The addresses for seqlock reads, set at the first one. They point into `shared`.
    mapped: OnceLock<Option<Mapped>>,
}

/// The stores that are open, by name.
static OPEN_STORES: Mutex<BTreeMap<Vec<u8>, Weak<Shared>>> = Mutex::new(BTreeMap::new());

/// A store, shared by its handles.
#[derive(Debug)]
struct Shared {
    name: Vec<u8>,
    at: NonNull<Engine>,
}

/// `struct llds_shared`, opaque here.
#[repr(C)]
struct Engine {
    _opaque: [u8; 0],
}

// From user.c. The first is safe to call because it takes only numbers.
unsafe extern "C" {
    safe fn forrest_llds_make(bytes_max: u64, value_bytes_max: u32, salt: u64) -> Option<NonNull<Engine>>;
    fn forrest_llds_drop(shared: NonNull<Engine>);
    fn forrest_llds_run(shared: NonNull<Engine>, run: *mut abi::Run, may_change: bool) -> c_int;
    fn forrest_llds_show(shared: NonNull<Engine>, at: *mut [Option<NonNull<u8>>; 3]) -> c_int;
    fn forrest_llds_stats(shared: NonNull<Engine>, figures: *mut [u64; 4]) -> c_int;
}

// SAFETY: the engine has no threads and no thread-local state, so any thread may use and drop a store.
unsafe impl Send for Shared {}
// SAFETY: `run`, `show` and `stats`, which threads may call at the same time, take the store's
// `pthread_rwlock_t`: shared for reads, exclusive for changes. Outside the lock they access only the caller's
// buffers.
unsafe impl Sync for Shared {}

impl Drop for Shared {
    fn drop(&mut self) {
        let mut stores = lock(&OPEN_STORES);
        // Another store may have been made under the name meanwhile.
        if stores.get(&self.name).is_some_and(|store| store.strong_count() == 0) {
            stores.remove(&self.name);
        }
        drop(stores);
        // SAFETY: `forrest_llds_make` returned `at`, and this drops the last `Arc`, so no thread uses the
        // store.
        unsafe { forrest_llds_drop(self.at) };
    }
}

impl User {
    /// Maximum value length, in bytes: the module's default.
    pub const VALUE_BYTES_MAX: u32 = 16 << 20;

    /// Opens the store of a name. The mode is ignored: the store is private to this process.
    ///
    /// # Errors
    /// `ENOENT` if the store is not open and is not to be created; `EINVAL` for an invalid name; `ENOMEM`.
    pub fn open(attach: &Attach<'_>, may_change: bool) -> Result<User> {
        let failed = |number| Err(Error::system(OPEN, number));
        let Attach { name, makes, bytes_max, .. } = *attach;
        if name.is_empty() || name.len() > abi::NAME_BYTES_MAX || name.contains(&0) {
            return failed(libc::EINVAL);
        }
        let mut stores = lock(&OPEN_STORES);
        if let Some(shared) = stores.get(name).and_then(Weak::upgrade) {
            return Ok(User { shared, may_change, mapped: OnceLock::new() });
        }
        if !makes {
            return failed(libc::ENOENT);
        }
        let bytes_max = if bytes_max == 0 { u64::MAX } else { bytes_max };
        let Some(at) = forrest_llds_make(bytes_max, User::VALUE_BYTES_MAX, salt()) else {
            return failed(libc::ENOMEM);
        };
        let shared = Arc::new(Shared { name: name.to_vec(), at });
        stores.insert(name.to_vec(), Arc::downgrade(&shared));
        Ok(User { shared, may_change, mapped: OnceLock::new() })
    }

    /// Whether this handle may change the store.
    pub fn may_change(&self) -> bool {
        self.may_change
    }

    /// Does a run of operations. Writes their answers to the beginning of `answers`.
    ///
    /// # Errors
    /// The engine's error, or [`Cause::Nonsense`](super::Cause::Nonsense) for an invalid answer.
    pub fn run(&self, ops: &[u8], answers: &mut [u8], is_atomic: bool) -> Result<Ran> {
        let before = ran::argument(ops, answers, is_atomic)?;
        let mut after = before;
        // SAFETY: `self.shared` keeps the store alive. The engine reads `ops_bytes` bytes of `ops` and writes
        // at most `answers_bytes` bytes to `answers`; both outlive the call.
        let number = unsafe { forrest_llds_run(self.shared.at, &mut after, self.may_change) };
        ran::judge(&before, &after, number.saturating_neg())
    }

    /// The store for seqlock reads; `None` if it cannot be read so.
    #[inline]
    pub fn mapped(&self) -> Option<&Mapped> {
        self.mapped.get_or_init(|| self.map()).as_ref()
    }

    fn map(&self) -> Option<Mapped> {
        let mut at = [None; 3];
        // SAFETY: `self.shared` keeps the store alive, and `at` has room for three addresses.
        let number = unsafe { forrest_llds_show(self.shared.at, &mut at) };
        let [Some(header), Some(blocks), Some(buckets)] = at else { return None };
        // SAFETY: the engine's header, blocks and buckets have the layout of a mapping, and stay readable
        // until the store is dropped; `self.shared` outlives `self.mapped`.
        (number == 0).then(|| unsafe { Mapped::new(header.cast(), blocks, buckets) }).flatten()
    }

    /// The size and limits of the store.
    ///
    /// # Errors
    /// The engine's error; none is known.
    pub fn stats(&self) -> Result<abi::Stats> {
        let mut figures = [0; 4];
        // SAFETY: `self.shared` keeps the store alive, and `figures` has room for four numbers.
        let number = unsafe { forrest_llds_stats(self.shared.at, &mut figures) };
        if number != 0 {
            return Err(Error::system(STATS, number.saturating_neg()));
        }
        let [keys, pair_bytes, bytes, bytes_max] = figures;
        let value_bytes_max = User::VALUE_BYTES_MAX.into();
        Ok(abi::Stats { keys, pair_bytes, bytes, bytes_max, value_bytes_max, reserved: [0; 3] })
    }
}

/// A random salt, so that nobody can choose keys that collide in the index.
fn salt() -> u64 {
    use std::hash::BuildHasher;
    std::collections::hash_map::RandomState::new().hash_one(0_u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attach(name: &[u8], makes: bool) -> Attach<'_> {
        Attach { makes, ..Attach::existing(None, name) }
    }

    /// An operation with a key of 8 bytes, and a value of 8 bytes or none.
    fn op(code: u8, key: &[u8; 8], value: &[u8]) -> Vec<u8> {
        let mut bytes = vec![code, 0];
        bytes.extend_from_slice(&8_u16.to_ne_bytes());
        bytes.extend_from_slice(&(value.len() as u32).to_ne_bytes());
        bytes.extend_from_slice(&[0; 8]);
        [&bytes[..], key, value].concat()
    }

    #[test]
    fn a_store_is_one_as_long_as_it_is_open() {
        let number = |store: Result<User>| store.unwrap_err().number();
        assert_eq!(number(User::open(&attach(b"one", false), true)), Some(libc::ENOENT));
        let one = User::open(&attach(b"one", true), true).unwrap();
        let other = User::open(&attach(b"one", false), false).unwrap();
        let stranger = User::open(&attach(b"two", true), true).unwrap();
        let mut answers = [0; 64];
        let set = op(abi::SET, b"the key!", b"its mind");
        assert_eq!(
            one.run(&set, &mut answers, false),
            Ok(Ran::Done { ops: 1, ops_bytes: 32, answers_bytes: 8 })
        );
        assert_eq!(other.run(&set, &mut answers, false).unwrap_err().number(), Some(libc::EBADF));
        let get = op(abi::GET, b"the key!", b"");
        let done = Ok(Ran::Done { ops: 1, ops_bytes: 24, answers_bytes: 16 });
        assert_eq!(other.run(&get, &mut answers, false), done);
        assert_eq!(&answers[..16], b"\0\0\0\0\x08\0\0\0its mind");
        assert_eq!(other.run(&get, &mut answers[..15], false), Ok(Ran::Wants(16)));
        let stats = one.stats().unwrap();
        assert_eq!((stats.keys, stats.pair_bytes), (1, 16));
        assert_eq!(stranger.stats().unwrap().keys, 0);
        drop(one);
        assert_eq!(other.stats().unwrap().keys, 1);
        drop(other);
        assert_eq!(number(User::open(&attach(b"one", false), true)), Some(libc::ENOENT));
        assert_eq!(User::open(&attach(b"one", true), true).unwrap().stats().unwrap().keys, 0);
    }

    #[test]
    fn names_that_cannot_be_are_refused() {
        for name in [&b""[..], b"a\0b", &[b'a'; abi::NAME_BYTES_MAX + 1]] {
            let refused = User::open(&attach(name, true), true);
            assert_eq!(refused.unwrap_err().number(), Some(libc::EINVAL));
        }
        assert!(User::open(&attach(&[b'a'; abi::NAME_BYTES_MAX], true), true).is_ok());
    }

    /// Threads open and drop handles: each open handle has a working store, and no store is left at the end.
    #[test]
    fn stores_come_and_go_on_threads() {
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                scope.spawn(move || {
                    for turn in 0..300 {
                        let user = User::open(&attach(b"coming and going", true), true).unwrap();
                        let key = (1000 * thread + turn).to_be_bytes();
                        let mut answers = [0; 64];
                        user.run(&op(abi::SET, &key, b"a value."), &mut answers, false).unwrap();
                        user.run(&op(abi::GET, &key, b""), &mut answers, false).unwrap();
                        assert_eq!(&answers[8..16], b"a value.");
                    }
                });
            }
        });
        assert!(!OPEN_STORES.lock().unwrap().contains_key(&b"coming and going"[..]));
    }
}
