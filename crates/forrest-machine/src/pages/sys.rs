//! The memory calls that every Unix has: reserve addresses, open and close them, give them up.
//!
//! The unsafe functions are thin: they require a range inside a mapping of the caller, which [`super::Region`] tracks.

use std::ffi::c_void;
use std::io;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// Private memory without a claim on swap, where the system knows such a thing.
#[cfg(not(target_os = "freebsd"))]
const RESERVED: MapFlags = MapFlags::PRIVATE.union(MapFlags::NORESERVE);
#[cfg(target_os = "freebsd")]
const RESERVED: MapFlags = MapFlags::PRIVATE;

/// Number of mappings that were given back. The kernel may give one thread addresses that another thread has just
/// unmapped. The kernel orders the two, but the language's memory model does not know: there, the accesses of the two
/// threads to one place are unordered. So a mapping is counted before it is unmapped, and the count is loaded after one
/// was made.
static GIVEN_BACK: AtomicU64 = AtomicU64::new(0);

fn will_give_back() {
    // ORDERING: Release, see `GIVEN_BACK`.
    GIVEN_BACK.fetch_add(1, Ordering::Release);
}

fn was_given() {
    // ORDERING: Acquire, see `GIVEN_BACK`.
    GIVEN_BACK.load(Ordering::Acquire);
}

/// A range of addresses taken from the system; inaccessible until opened, given back on drop.
#[derive(Debug)]
pub(super) struct Mapping {
    address: *mut c_void,
    bytes: usize,
}

// SAFETY: a mapping is a range of addresses of the process, not of a thread; the methods only read the fields.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves `bytes` of addresses, which cost nothing until opened.
    pub(super) fn reserve(bytes: usize) -> io::Result<Mapping> {
        // SAFETY: without MAP_FIXED the kernel chooses unmapped addresses.
        let address = unsafe { mmap_anonymous(null_mut(), bytes, ProtFlags::empty(), RESERVED) }?;
        was_given();
        Ok(Mapping { address, bytes })
    }

    /// First address.
    pub(super) fn address(&self) -> *mut u8 {
        self.address.cast()
    }

    /// Disables the unmapping on drop: ranges that the caller does not unmap stay until the process ends.
    pub(super) fn leak(&mut self) {
        self.bytes = 0;
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.bytes > 0 {
            will_give_back();
            // SAFETY: the range belongs to this mapping, and a mapping is dropped only when nothing refers to its
            // memory.
            let unmapped = unsafe { munmap(self.address, self.bytes) };
            debug_assert!(unmapped.is_ok(), "munmap of an own mapping: {unmapped:?}");
        }
    }
}

/// Makes a closed range readable and writable; it reads as zeros.
///
/// # Safety
///
/// The range lies in a [`Mapping`] of the caller and no other thread changes its mapping meanwhile.
pub(super) unsafe fn open(address: *mut u8, bytes: usize) -> io::Result<()> {
    // SAFETY: the range is in a mapping that no other thread changes, as this function requires; opening it invalidates
    // no reference.
    unsafe { mprotect(address.cast(), bytes, MprotectFlags::READ | MprotectFlags::WRITE) }?;
    Ok(())
}

/// Gives a range's memory back and makes it inaccessible, as it was when reserved.
///
/// # Safety
///
/// The range lies in a [`Mapping`] of the caller, no other thread changes its mapping meanwhile, and nothing
/// refers to it.
pub(super) unsafe fn close(address: *mut u8, bytes: usize) -> io::Result<()> {
    // SAFETY: MAP_FIXED replaces only this range, which is in the caller's mapping and unused, as this function
    // requires.
    unsafe { mmap_anonymous(address.cast(), bytes, ProtFlags::empty(), RESERVED | MapFlags::FIXED) }?;
    Ok(())
}

/// Takes memory that reads as zeros until it is written. The caller unmaps it.
pub(super) fn take(bytes: usize) -> io::Result<*mut u8> {
    let access = ProtFlags::READ.union(ProtFlags::WRITE);
    // SAFETY: without MAP_FIXED the kernel chooses unmapped addresses.
    let address = unsafe { mmap_anonymous(null_mut(), bytes, access, MapFlags::PRIVATE) }?;
    was_given();
    Ok(address.cast())
}

/// Changes the size of memory of [`take`], which may move. `None` where the system cannot do that.
///
/// # Safety
///
/// The range is all that `take` or this function returned, and nothing refers to it.
#[cfg(target_os = "linux")]
pub(super) unsafe fn resize(address: *mut u8, old: usize, new: usize) -> Option<io::Result<*mut u8>> {
    use rustix::mm::{MremapFlags, mremap};
    will_give_back();
    // SAFETY: the range is the caller's, and nothing refers to it, as this function requires.
    let moved = unsafe { mremap(address.cast(), old, new, MremapFlags::MAYMOVE) };
    was_given();
    Some(moved.map(|moved| moved.cast()).map_err(Into::into))
}

/// Changes the size of memory: no such call here.
///
/// # Safety
///
/// None; unsafe to match its twin.
#[cfg(not(target_os = "linux"))]
pub(super) unsafe fn resize(_address: *mut u8, _old: usize, _new: usize) -> Option<io::Result<*mut u8>> {
    None
}

/// Unmaps memory of [`take`], or a part of a mapping that is to be leaked.
///
/// # Safety
///
/// The range is all that `take` returned, or it lies in a [`Mapping`] of the caller that will not be unmapped itself.
/// Nothing refers to it.
pub(super) unsafe fn unmap(address: *mut u8, bytes: usize) -> io::Result<()> {
    will_give_back();
    // SAFETY: the range is in the caller's mapping, which is leaked, and unused, as this function requires.
    unsafe { munmap(address.cast(), bytes) }?;
    Ok(())
}

/// Asks for huge pages in the range, or for none.
///
/// # Safety
///
/// The range is the caller's.
#[cfg(target_os = "linux")]
pub(super) unsafe fn advise_huge(address: *mut u8, bytes: usize, wanted: bool) -> io::Result<()> {
    use rustix::mm::{Advice, madvise};
    let advice = if wanted { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
    // SAFETY: the range belongs to the caller, as this function requires; the advice changes the size of pages, not
    // their content.
    unsafe { madvise(address.cast(), bytes, advice) }?;
    Ok(())
}

/// Asks for huge pages: no such call here.
///
/// # Safety
///
/// None; unsafe to match its twin.
#[cfg(not(target_os = "linux"))]
pub(super) unsafe fn advise_huge(_address: *mut u8, _bytes: usize, _wanted: bool) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
