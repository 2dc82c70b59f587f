//! Explicit huge pages: an anonymous file on hugetlbfs, laid over a reserved range piece by piece.
//!
//! Why a file, and not `mmap(MAP_HUGETLB | MAP_FIXED)`: an anonymous mapping only counts pages, and a later
//! touch ends in SIGBUS when a limit of the control group or the processor set forbids what was counted.
//! Filling a file allocates the pages at once and reports a shortage as an error. And a failing `MAP_FIXED`
//! may leave a hole in the reservation, into which another thread's mapping can fall; here everything that
//! can run short fails before the reservation is touched.
//!
//! The price is that the mapping is shared: a child made by `fork` would write into its parent's memory. The
//! ranges are therefore not inherited at all.

#[cfg(target_os = "linux")]
pub(super) use linux::{File, MapError};
#[cfg(not(target_os = "linux"))]
pub(super) use other::{File, MapError};

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::OwnedFd;

    use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, ftruncate, memfd_create};
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

    use crate::pages::{HUGE_1G_BYTES, HUGE_2M_BYTES};

    /// Huge pages by offset.
    #[derive(Debug)]
    pub(crate) struct File {
        fd: OwnedFd,
    }

    /// Why a range could not be laid over the reservation.
    #[derive(Debug)]
    pub(crate) struct MapError {
        pub(crate) error: io::Error,
        /// True if the range is certainly still reserved. If not, another mapping may have taken it.
        pub(crate) still_reserved: bool,
    }

    impl File {
        /// A file of `bytes`, holding no pages yet, whose pages are of `page_bytes`.
        pub(crate) fn create(page_bytes: usize, bytes: usize) -> io::Result<File> {
            let size = match page_bytes {
                HUGE_2M_BYTES => MemfdFlags::HUGE_2MB,
                HUGE_1G_BYTES => MemfdFlags::HUGE_1GB,
                _ => return Err(io::ErrorKind::InvalidInput.into()),
            };
            let fd = memfd_create("forrest-pages", MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB | size)?;
            ftruncate(&fd, bytes.next_multiple_of(page_bytes) as u64)?;
            Ok(File { fd })
        }

        /// Allocates the pages of a range, zeroed; all or none.
        pub(crate) fn fill(&self, offset: usize, bytes: usize) -> io::Result<()> {
            loop {
                match fallocate(&self.fd, FallocateFlags::empty(), offset as u64, bytes as u64) {
                    Ok(()) => return Ok(()),
                    Err(rustix::io::Errno::INTR) => {}
                    Err(error) => {
                        self.empty(offset, bytes)?;
                        return Err(error.into());
                    }
                }
            }
        }

        /// Gives the pages of a range back to the system.
        pub(crate) fn empty(&self, offset: usize, bytes: usize) -> io::Result<()> {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&self.fd, hole, offset as u64, bytes as u64)?;
            Ok(())
        }

        /// Lays the file's range over a reserved one. After an error that leaves it `still_reserved`, the
        /// caller closes the range before using it again.
        ///
        /// # Safety
        ///
        /// The caller has reserved the range at `address`, it is closed, and no other thread changes its mapping
        /// meanwhile. The file's range is filled.
        pub(crate) unsafe fn map(
            &self,
            offset: usize,
            address: *mut u8,
            bytes: usize,
        ) -> Result<(), MapError> {
            let (open, fixed) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::FIXED);
            // SAFETY: it replaces only the range at `address`, which is reserved and closed, as this function requires.
            match unsafe { mmap(address.cast(), bytes, open, fixed, &self.fd, offset as u64) } {
                Ok(_) => {
                    // SAFETY: the range was mapped just now; the advice does not change what it holds.
                    unsafe { madvise(address.cast(), bytes, Advice::LinuxDontFork) }
                        .map_err(|error| MapError { error: error.into(), still_reserved: true })
                }
                Err(error) => {
                    // SAFETY: the same range, reserved before this failure.
                    let still_reserved = unsafe { reserve_again(address, bytes) };
                    Err(MapError { error: error.into(), still_reserved })
                }
            }
        }
    }

    /// After a failed `MAP_FIXED`: reserves the addresses again if the failure unmapped them and no other mapping has
    /// taken them.
    ///
    /// # Safety
    ///
    /// The caller had reserved the range before the failure.
    unsafe fn reserve_again(address: *mut u8, bytes: usize) -> bool {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE;
        // SAFETY: `FIXED_NOREPLACE` takes only unmapped addresses.
        match unsafe { mmap_anonymous(address.cast(), bytes, ProtFlags::empty(), flags) } {
            Ok(at) if at == address.cast() => true,
            Ok(elsewhere) => {
                // A kernel that does not know the flag took the address as a hint.
                // SAFETY: this mapping was made just now, and nothing refers to it.
                let unmapped = unsafe { munmap(elsewhere, bytes) };
                debug_assert!(unmapped.is_ok(), "munmap of an own mapping: {unmapped:?}");
                false
            }
            // The range is either still ours or another mapping's; the error does not show which.
            Err(_) => false,
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use std::convert::Infallible;
    use std::io;

    /// No such file can be made here.
    #[derive(Debug)]
    pub(crate) struct File(Infallible);

    /// Never made.
    #[derive(Debug)]
    pub(crate) struct MapError {
        pub(crate) error: io::Error,
        pub(crate) still_reserved: bool,
    }

    impl File {
        pub(crate) fn create(_page_bytes: usize, _bytes: usize) -> io::Result<File> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(crate) fn fill(&self, _offset: usize, _bytes: usize) -> io::Result<()> {
            match self.0 {}
        }

        pub(crate) fn empty(&self, _offset: usize, _bytes: usize) -> io::Result<()> {
            match self.0 {}
        }

        /// # Safety
        ///
        /// None: there is no such file.
        pub(crate) unsafe fn map(
            &self,
            _offset: usize,
            _address: *mut u8,
            _bytes: usize,
        ) -> Result<(), MapError> {
            match self.0 {}
        }
    }
}
