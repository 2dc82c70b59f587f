//! The memory calls that every Unix has: reserve addresses, open and close them, give them up.
//!
//! The unsafe functions are thin: what they demand is that the range lies in a mapping of the caller's own,
//! which [`super::Region`] keeps account of.

use std::ffi::c_void;
use std::io;
use std::ptr::null_mut;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// Private memory without a claim on swap, where the system knows such a thing.
#[cfg(not(target_os = "freebsd"))]
const RESERVED: MapFlags = MapFlags::PRIVATE.union(MapFlags::NORESERVE);
#[cfg(target_os = "freebsd")]
const RESERVED: MapFlags = MapFlags::PRIVATE;

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
        // SAFETY: without MAP_FIXED the kernel chooses addresses that nobody uses.
        let address = unsafe { mmap_anonymous(null_mut(), bytes, ProtFlags::empty(), RESERVED) }?;
        Ok(Mapping { address, bytes })
    }

    /// First address.
    pub(super) fn address(&self) -> *mut u8 {
        self.address.cast()
    }

    /// Gives up the right to unmap: what the caller does not unmap itself stays until the process ends.
    pub(super) fn leak(&mut self) {
        self.bytes = 0;
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: the range is this mapping's own, and whoever dropped it vouches that nothing refers to
            // it any more.
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
    // SAFETY: the caller's.
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
    // SAFETY: the caller's; MAP_FIXED replaces only what is the caller's own.
    unsafe { mmap_anonymous(address.cast(), bytes, ProtFlags::empty(), RESERVED | MapFlags::FIXED) }?;
    Ok(())
}

/// Unmaps a part of a mapping that is to be leaked.
///
/// # Safety
///
/// The range lies in a [`Mapping`] of the caller that will not be unmapped itself, and nothing refers to it.
pub(super) unsafe fn unmap(address: *mut u8, bytes: usize) -> io::Result<()> {
    // SAFETY: the caller's.
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
    // SAFETY: the caller's; the advice changes the size of pages, not what they hold.
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
