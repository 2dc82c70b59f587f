//! The global allocator: it forwards to the allocator chosen for this process and counts the bytes in use.
//!
//! The environment variable [`VARIABLE`] selects the allocator; a run sets it for each of its arms. The first
//! allocation, before `main`, reads it, and the choice then stays for the whole process. A build without any of the
//! features `mimalloc`, `jemalloc`, `snmalloc` and `rpmalloc` always uses the system's `malloc`.
//!
//! The count is kept per thread without atomics, so it costs about a nanosecond and touches no shared cache line.
//! [`live_bytes`] is therefore the balance of the calling thread alone. It is correct for data that one thread built
//! and still holds, and is read only then. [`peak_bytes`] is the maximum of this balance. Both count the requested
//! bytes, without the allocator's overhead; the resident set includes that.
#![expect(unsafe_code, reason = "a global allocator cannot be written without it")]

use serde::{Deserialize, Serialize};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU8, Ordering};
use strum::{IntoStaticStr, VariantArray};

/// What a process can allocate with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[repr(u8)]
pub(crate) enum Allocator {
    /// The system's.
    #[default]
    Malloc = 1,
    /// Microsoft's.
    Mimalloc = 2,
    /// That of FreeBSD, as PingCAP keeps it.
    Jemalloc = 3,
    /// Microsoft Research's, which passes messages.
    Snmalloc = 4,
    /// Rampant Pixels'.
    Rpmalloc = 5,
}

/// The variable that names the allocator of a process.
pub(crate) const VARIABLE: &str = "KVBENCH_ALLOCATOR";

/// The same for the system's library.
const VARIABLE_C: &CStr = c"KVBENCH_ALLOCATOR";

/// Whether there is anything to choose.
const SEVERAL: bool =
    cfg!(any(feature = "mimalloc", feature = "jemalloc", feature = "snmalloc", feature = "rpmalloc"));

impl Allocator {
    /// All of them, in the order of the list.
    pub(crate) const ALL: &[Allocator] = Allocator::VARIANTS;

    /// The name; it is also that of the feature that compiles it in.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }

    /// The package that it comes from, to look up its version.
    pub(crate) fn package(self) -> Option<&'static str> {
        match self {
            Allocator::Malloc => None,
            Allocator::Mimalloc => Some("mimalloc"),
            Allocator::Jemalloc => Some("tikv-jemallocator"),
            Allocator::Snmalloc => Some("snmalloc-rs"),
            Allocator::Rpmalloc => Some("rpmalloc"),
        }
    }

    /// The one of this name.
    pub(crate) fn find(name: &str) -> Option<Allocator> {
        Self::ALL.iter().copied().find(|allocator| allocator.name() == name)
    }

    const fn is_compiled_in(self) -> bool {
        match self {
            Allocator::Malloc => true,
            Allocator::Mimalloc => cfg!(feature = "mimalloc"),
            Allocator::Jemalloc => cfg!(feature = "jemalloc"),
            Allocator::Snmalloc => cfg!(feature = "snmalloc"),
            Allocator::Rpmalloc => cfg!(feature = "rpmalloc"),
        }
    }

    /// Fails with the missing feature if this program was built without it.
    pub(crate) fn compiled_in(self) -> Result<(), String> {
        let why = || format!("{0} is not compiled in; build with `--features {0}`", self.name());
        if self.is_compiled_in() { Ok(()) } else { Err(why()) }
    }
}

/// The allocator of this process: 0 before the first allocation.
///
/// ORDERING: relaxed. A thread that reads 0 makes the choice itself, and all threads make the same one.
static CHOSEN: AtomicU8 = AtomicU8::new(0);

/// The allocator of this process.
pub(crate) fn chosen() -> Allocator {
    let chosen = number();
    Allocator::ALL.iter().copied().find(|allocator| *allocator as u8 == chosen).unwrap_or_default()
}

#[inline]
fn number() -> u8 {
    if !SEVERAL {
        return Allocator::Malloc as u8;
    }
    match CHOSEN.load(Ordering::Relaxed) {
        0 => choose(),
        chosen => chosen,
    }
}

/// Reads the environment. It allocates nothing.
#[cold]
fn choose() -> u8 {
    // SAFETY: the name ends in NUL. This runs at the first allocation of the process, when it has only one thread, so
    // no other thread changes the environment.
    let value = unsafe { libc::getenv(VARIABLE_C.as_ptr()) };
    let named = if value.is_null() {
        &[][..]
    } else {
        // SAFETY: a value of the environment ends in NUL, and there is no other thread that could change it.
        unsafe { CStr::from_ptr(value) }.to_bytes()
    };
    let is = |allocator: &Allocator| allocator.is_compiled_in() && allocator.name().as_bytes() == named;
    let chosen = Allocator::ALL.iter().copied().find(is).unwrap_or_default() as u8;
    CHOSEN.store(chosen, Ordering::Relaxed);
    chosen
}

struct Counting;

thread_local! {
    static LIVE: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that this thread has allocated, minus those that it has freed.
pub(crate) fn live_bytes() -> i64 {
    LIVE.get()
}

/// The maximum of [`live_bytes`] since [`begin_peak`], or since the thread started.
pub(crate) fn peak_bytes() -> i64 {
    PEAK.get()
}

/// Resets the peak to the current balance.
pub(crate) fn begin_peak() {
    PEAK.set(LIVE.get());
}

/// Bytes that the system's `malloc` has given out to all code of the process, with its headers and rounding; `None` if
/// it does not report them.
pub(crate) fn heap_bytes() -> Option<u64> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: mallinfo2 has no preconditions; it reads malloc's counters.
        let used = unsafe { libc::mallinfo2() };
        Some((used.uordblks + used.hblkhd) as u64)
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    None
}

fn count(bytes: i64) {
    let live = LIVE.get() + bytes;
    LIVE.set(live);
    PEAK.set(PEAK.get().max(live));
}

/// Calls the chosen allocator.
///
/// SAFETY of the calls: the arguments are those of the caller, who meets the contract of the same function of
/// [`GlobalAlloc`]. Memory comes from the same allocator, because the choice never changes.
macro_rules! of_chosen {
    ($function:ident($($argument:expr),*)) => {
        match number() {
            #[cfg(feature = "mimalloc")]
            // SAFETY: as above the macro.
            number if number == Allocator::Mimalloc as u8 => unsafe { mimalloc::MiMalloc.$function($($argument),*) },
            #[cfg(feature = "jemalloc")]
            // SAFETY: as above the macro.
            number if number == Allocator::Jemalloc as u8 => unsafe {
                tikv_jemallocator::Jemalloc.$function($($argument),*)
            },
            #[cfg(feature = "snmalloc")]
            // SAFETY: as above the macro.
            number if number == Allocator::Snmalloc as u8 => unsafe { snmalloc_rs::SnMalloc.$function($($argument),*) },
            #[cfg(feature = "rpmalloc")]
            // SAFETY: as above the macro.
            number if number == Allocator::Rpmalloc as u8 => unsafe { rpmalloc::RpMalloc.$function($($argument),*) },
            // SAFETY: as above the macro.
            _ => unsafe { System.$function($($argument),*) },
        }
    };
}

// SAFETY: every call goes unchanged to one allocator, which stays the same until the process ends. The counters are
// thread-local cells without lazy initialisation or destructor, so using them allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        of_chosen!(alloc(layout))
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        of_chosen!(alloc_zeroed(layout))
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        of_chosen!(dealloc(memory, layout));
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        of_chosen!(realloc(memory, layout, size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_is_held() {
        let before = live_bytes();
        let held = vec![0u8; 12_345];
        assert_eq!(live_bytes() - before, 12_345);
        drop(held);
        assert_eq!(live_bytes(), before);
    }

    #[test]
    fn the_heap_has_the_overhead_as_well() {
        let before = heap_bytes();
        let held: Vec<_> = (0..10_000).map(|_| std::hint::black_box(Box::new([0u8; 20]))).collect();
        if let Some((before, after)) = before.zip(heap_bytes()).filter(|_| chosen() == Allocator::Malloc) {
            // Other tests allocate meanwhile; a chunk for 20 bytes takes 32.
            assert!(after > before + 250_000, "{before} {after}");
        }
        drop(held);
    }

    #[test]
    fn the_most_that_was_held_is_kept_until_it_is_forgotten() {
        begin_peak();
        let before = live_bytes();
        drop(std::hint::black_box(vec![0u8; 100_000]));
        let held = std::hint::black_box(vec![0u8; 1000]);
        assert_eq!((peak_bytes() - before, live_bytes() - before), (100_000, 1000));
        begin_peak();
        assert_eq!(peak_bytes() - before, 1000);
        drop(held);
    }

    #[test]
    fn one_that_is_not_compiled_in_says_which_feature_it_needs() {
        assert_eq!(VARIABLE.as_bytes(), VARIABLE_C.to_bytes());
        for &allocator in Allocator::ALL {
            assert_eq!(Allocator::find(allocator.name()), Some(allocator));
            match allocator.compiled_in() {
                Ok(()) => assert!(allocator == Allocator::Malloc || SEVERAL),
                Err(why) => assert!(why.contains(&format!("--features {}", allocator.name())), "{why}"),
            }
        }
    }
}
