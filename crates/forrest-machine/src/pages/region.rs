//! One reserved range of addresses whose memory comes and goes in granules of 2 MiB.
//!
//! Guarantees:
//! - The addresses stay the same from [`Region::reserve`] to drop, and nothing else lies between
//!   [`Region::base`] and its end. Inaccessible pages guard both ends.
//! - Committed memory reads as zeros until written, and touching it never ends in SIGBUS: explicit huge pages are
//!   allocated when committed, not when touched. (Other memory is allocated when touched, as always on Linux.)
//! - Granules that were never committed cost nothing but addresses.
//!
//! A 1 GiB page serves 512 granules. The region takes one only for an aligned gibibyte of which no granule is in use,
//! hands out its granules one by one, and frees it when the last of them is decommitted.
//!
//! A region does not track pointers. Its owner must not use a pointer into it after its drop or after
//! [`Region::decommit`].

use forrest_base::lock;
use std::fmt;
use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::hugetlb::{File, MapError};
use super::numa::{self, Numa};
use super::report::{self, Coverage};
use super::{HUGE_1G_BYTES, HUGE_2M_BYTES, PageKind, Pages, sys};

/// Size and alignment of what a region commits and decommits, in bytes.
pub const GRANULE_BYTES: usize = HUGE_2M_BYTES;

/// Granules that one 1 GiB page serves.
const GIANT_GRANULES: usize = HUGE_1G_BYTES / GRANULE_BYTES;

const _: () = assert!(HUGE_1G_BYTES.is_multiple_of(GRANULE_BYTES));

/// A reserved range of addresses; see the module's head.
///
/// All methods may be called from any thread; commits and decommits of one region happen one after the other.
pub struct Region {
    base: NonNull<u8>,
    bytes: usize,
    pages: Pages,
    /// The kind of ordinary memory here: transparent or plain.
    ordinary: PageKind,
    /// Nodes to spread over; empty for none.
    nodes: Vec<usize>,
    state: Mutex<RegionState>,
    /// The addresses, guards included. The last field, so that mappings inside it are dropped first.
    mapping: sys::Mapping,
}

// SAFETY: `base` is an address that the region owns; all mutable state is under the mutex.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

/// Bytes committed at a moment, by the kind of page they had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Committed {
    /// On explicit 1 GiB pages.
    pub huge_1g_bytes: usize,
    /// On explicit 2 MiB pages.
    pub huge_2m_bytes: usize,
    /// On memory for which transparent huge pages were asked and are allowed.
    pub transparent_bytes: usize,
    /// On pages of the base size.
    pub plain_bytes: usize,
    /// Bytes of explicit 1 GiB pages that the region holds and has not committed, or has decommitted since.
    pub spare_bytes: usize,
}

impl Committed {
    /// Committed bytes of all kinds.
    pub fn total_bytes(&self) -> usize {
        self.huge_1g_bytes + self.huge_2m_bytes + self.transparent_bytes + self.plain_bytes
    }
}

/// The state of a granule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Granule {
    /// Reserved and closed.
    Closed,
    /// Committed, ordinary memory.
    Ordinary,
    /// Committed, a whole 2 MiB page.
    Huge2M,
    /// Committed, part of a 1 GiB page.
    Huge1G,
    /// Not committed, part of a 1 GiB page, still zero.
    SpareZero,
    /// Not committed, part of a 1 GiB page, was used.
    SpareUsed,
    /// After a failed system call the addresses may belong to another mapping; never used again, never unmapped.
    Lost,
}

// Half a mebibyte of table for a tebibyte of addresses.
const _: () = assert!(size_of::<Granule>() == 1);

/// Where explicit pages of one size come from.
#[derive(Debug)]
enum Source {
    /// No request yet, or pages were freed since the last refusal.
    Willing(Option<File>),
    /// The system refused the last request; the file keeps the earlier pages.
    Refused(Option<File>),
}

impl Source {
    fn file(&self) -> Option<&File> {
        let (Source::Willing(file) | Source::Refused(file)) = self;
        file.as_ref()
    }

    /// The file if it is worth asking, made on first use.
    fn willing(&mut self, page_bytes: usize, bytes: usize) -> Option<&File> {
        if matches!(self, Source::Willing(None)) {
            *self = match File::create(page_bytes, bytes) {
                Ok(file) => Source::Willing(Some(file)),
                Err(_) => Source::Refused(None),
            };
        }
        match self {
            Source::Willing(file) => file.as_ref(),
            Source::Refused(_) => None,
        }
    }

    /// Remembers a shortage, so that not every later commit tries in vain.
    fn refuse(&mut self) {
        let (Source::Willing(file) | Source::Refused(file)) = self;
        *self = Source::Refused(file.take());
    }

    /// Remembers that asking makes sense again.
    fn reconsider(&mut self) {
        if let Source::Refused(file @ Some(_)) = self {
            *self = Source::Willing(file.take());
        }
    }
}

#[derive(Debug)]
struct RegionState {
    granules: Vec<Granule>,
    huge_1g: Source,
    huge_2m: Source,
}

impl Region {
    /// Reserves `bytes` of addresses, rounded up to [`GRANULE_BYTES`]; no memory yet.
    ///
    /// The base is aligned to [`GRANULE_BYTES`], and to 1 GiB if that much is reserved. Reserve generously:
    /// addresses are cheap (47 bits of them on x86-64), memory is only what is committed.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for zero bytes or a size that cannot be rounded; otherwise the system's error, usually
    /// `OutOfMemory` if there is not enough address space (which `ulimit -v` may limit).
    pub fn reserve(bytes: usize, pages: Pages, numa: Numa) -> io::Result<Region> {
        let too_large = || io::Error::new(io::ErrorKind::InvalidInput, "size of a region");
        if bytes == 0 {
            return Err(too_large());
        }
        let bytes = bytes.checked_next_multiple_of(GRANULE_BYTES).ok_or_else(too_large)?;
        let align = if bytes >= HUGE_1G_BYTES { HUGE_1G_BYTES } else { GRANULE_BYTES };
        // Room to align, and a guard after the region. Aligning from the second byte leaves a guard before it.
        let taken = bytes.checked_add(align + GRANULE_BYTES).ok_or_else(too_large)?;
        let mapping = sys::Mapping::reserve(taken)?;
        let start = mapping.address();
        let skip = (start.addr() + 1).next_multiple_of(align) - start.addr();
        debug_assert!(skip <= align);
        let base = NonNull::new(start.wrapping_add(skip)).ok_or_else(too_large)?;

        let region = Region {
            base,
            bytes,
            pages,
            ordinary: ordinary_kind(pages),
            nodes: numa.turns(),
            state: Mutex::new(RegionState {
                granules: vec![Granule::Closed; bytes / GRANULE_BYTES],
                huge_1g: Source::Willing(None),
                huge_2m: Source::Willing(None),
            }),
            mapping,
        };
        // SAFETY: the whole range belongs to this region, and nothing uses it yet.
        unsafe { region.set_policies(0..bytes / GRANULE_BYTES) };
        Ok(region)
    }

    /// First address; aligned as [`Region::reserve`] says.
    #[inline]
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Reserved bytes from the base on; a multiple of [`GRANULE_BYTES`].
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a region is never empty")]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// The requested pages.
    pub fn pages(&self) -> Pages {
        self.pages
    }

    /// Makes `len` bytes from `offset` on readable and writable, and returns the smallest kind of page among
    /// them.
    ///
    /// Newly committed memory reads as zeros; memory that was already committed is unchanged. Explicit huge pages are
    /// allocated at once, which takes the kernel about 100 ms per gibibyte; other memory is allocated when touched.
    ///
    /// Commit large amounts in steps of many granules: each call that gets explicit 2 MiB pages is one of the 65,530
    /// mappings that a process may have by default (`vm.max_map_count`).
    ///
    /// # Errors
    ///
    /// `InvalidInput` if `offset` or `len` is not a multiple of [`GRANULE_BYTES`], if `len` is zero or the range
    /// goes beyond the region; otherwise the system's error, usually `OutOfMemory`. A part of the range may be
    /// committed then; committing it again or decommitting it is allowed.
    pub fn commit(&self, offset: usize, len: usize) -> io::Result<PageKind> {
        let range = self.granules(offset, len)?;
        let mut state = self.lock();
        let mut smallest = PageKind::Huge1G;
        for part in within_giants(range) {
            smallest = smallest.max(self.commit_part(&mut state, part)?);
        }
        Ok(smallest)
    }

    /// Returns the memory of `len` bytes from `offset` on to the system. Memory that is committed again later reads as
    /// zeros; granules that were not committed are unchanged.
    ///
    /// Until then the range is inaccessible, except on a 1 GiB page with other granules in use: such a page is freed
    /// with the last of them.
    ///
    /// # Errors
    ///
    /// As [`Region::commit`]; a part of the range may be decommitted then.
    ///
    /// # Safety
    ///
    /// The range is unused: there is no reference into it, no other thread reads or writes it through a pointer, and no
    /// pointer into it will be used before it is committed again.
    pub unsafe fn decommit(&self, offset: usize, len: usize) -> io::Result<()> {
        let range = self.granules(offset, len)?;
        let mut state = self.lock();
        for part in within_giants(range) {
            // SAFETY: the range is unused, as this function requires, and the state is locked.
            unsafe { self.decommit_part(&mut state, part)? };
        }
        Ok(())
    }

    /// Bytes committed now, by kind of page.
    pub fn committed(&self) -> Committed {
        let state = self.lock();
        let mut sum = Committed::default();
        for granule in &state.granules {
            match granule {
                Granule::Closed | Granule::Lost => {}
                Granule::Ordinary if self.ordinary == PageKind::Transparent => {
                    sum.transparent_bytes += GRANULE_BYTES;
                }
                Granule::Ordinary => sum.plain_bytes += GRANULE_BYTES,
                Granule::Huge2M => sum.huge_2m_bytes += GRANULE_BYTES,
                Granule::Huge1G => sum.huge_1g_bytes += GRANULE_BYTES,
                Granule::SpareZero | Granule::SpareUsed => sum.spare_bytes += GRANULE_BYTES,
            }
        }
        sum
    }

    /// The pages that back the region at this moment; `None` if the system does not report them.
    ///
    /// For reports only: the kernel walks all page tables of the process for it.
    pub fn coverage(&self) -> Option<Coverage> {
        let start = self.base.as_ptr().addr();
        report::coverage(start..start + self.bytes)
    }

    fn lock(&self) -> MutexGuard<'_, RegionState> {
        // The table is brought up to date after each system call, so a panic in between leaves it true.
        lock(&self.state)
    }

    fn granules(&self, offset: usize, len: usize) -> io::Result<Range<usize>> {
        let end = offset.checked_add(len).filter(|&end| end <= self.bytes);
        match end {
            Some(end)
                if len > 0 && offset.is_multiple_of(GRANULE_BYTES) && len.is_multiple_of(GRANULE_BYTES) =>
            {
                Ok(offset / GRANULE_BYTES..end / GRANULE_BYTES)
            }
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "offset {offset} and length {len} in a region of {} bytes and granules of {GRANULE_BYTES}",
                    self.bytes
                ),
            )),
        }
    }

    fn address(&self, granule: usize) -> *mut u8 {
        debug_assert!(granule < self.bytes / GRANULE_BYTES);
        // SAFETY: the granule lies in the region, which is one mapping.
        unsafe { self.base.as_ptr().add(granule * GRANULE_BYTES) }
    }

    /// Advises the kernel about the pages and nodes of a closed range. A refusal is not an error.
    ///
    /// # Safety
    ///
    /// The granules lie in the region and are not lost.
    unsafe fn set_policies(&self, granules: Range<usize>) {
        let (address, bytes) = (self.address(granules.start), granules.len() * GRANULE_BYTES);
        // SAFETY: the granules lie in the region's mapping and are not lost, as this function requires.
        let _refused = unsafe { sys::advise_huge(address, bytes, self.pages != Pages::Plain) };
        // SAFETY: as above.
        let _refused = unsafe { numa::interleave(address, bytes, &self.nodes) };
    }

    /// Commits granules that lie within one aligned gibibyte.
    fn commit_part(&self, state: &mut RegionState, part: Range<usize>) -> io::Result<PageKind> {
        if self.pages.may_use_1g() && state.granules[part.clone()].contains(&Granule::Closed) {
            self.take_giant(state, part.start / GIANT_GRANULES)?;
        }
        let mut smallest = PageKind::Huge1G;
        let mut at = part.start;
        while at < part.end {
            let run = run_of_equals(&state.granules, at..part.end);
            at = run.end;
            let kind = match state.granules[run.start] {
                Granule::Closed => self.commit_closed(state, run)?,
                Granule::Ordinary => self.ordinary,
                Granule::Huge2M => PageKind::Huge2M,
                Granule::Huge1G => PageKind::Huge1G,
                Granule::SpareZero => {
                    state.granules[run].fill(Granule::Huge1G);
                    PageKind::Huge1G
                }
                Granule::SpareUsed => {
                    // SAFETY: spare granules are mapped, writable and unused.
                    unsafe { self.address(run.start).write_bytes(0, run.len() * GRANULE_BYTES) };
                    state.granules[run].fill(Granule::Huge1G);
                    PageKind::Huge1G
                }
                Granule::Lost => return Err(io::ErrorKind::OutOfMemory.into()),
            };
            smallest = smallest.max(kind);
        }
        Ok(smallest)
    }

    /// Commits a run of closed granules on 2 MiB pages or ordinary memory.
    fn commit_closed(&self, state: &mut RegionState, run: Range<usize>) -> io::Result<PageKind> {
        if self.pages.may_use_2m()
            && let Some(file) = state.huge_2m.willing(HUGE_2M_BYTES, self.bytes)
        {
            // SAFETY: the run is closed.
            match unsafe { self.lay(file, run.clone()) } {
                Laid::Done => {
                    state.granules[run].fill(Granule::Huge2M);
                    return Ok(PageKind::Huge2M);
                }
                Laid::Short => state.huge_2m.refuse(),
                Laid::Lost(error) => {
                    state.granules[run].fill(Granule::Lost);
                    return Err(error);
                }
            }
        }
        // SAFETY: the run is closed, in this region, and the state is locked.
        unsafe { sys::open(self.address(run.start), run.len() * GRANULE_BYTES) }?;
        state.granules[run].fill(Granule::Ordinary);
        Ok(self.ordinary)
    }

    /// Lays a 1 GiB page under gibibyte number `giant` if it is in the region, wholly closed, and a page is to
    /// be had.
    fn take_giant(&self, state: &mut RegionState, giant: usize) -> io::Result<()> {
        let run = giant * GIANT_GRANULES..(giant + 1) * GIANT_GRANULES;
        if state.granules.get(run.clone()).is_none_or(|run| run.iter().any(|&one| one != Granule::Closed)) {
            return Ok(());
        }
        let Some(file) = state.huge_1g.willing(HUGE_1G_BYTES, self.bytes) else { return Ok(()) };
        // SAFETY: the run is closed, and aligned since a region that holds a gibibyte is.
        match unsafe { self.lay(file, run.clone()) } {
            Laid::Done => state.granules[run].fill(Granule::SpareZero),
            Laid::Short => state.huge_1g.refuse(),
            Laid::Lost(error) => {
                state.granules[run].fill(Granule::Lost);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Fills a file's pages and lays them over a run.
    ///
    /// # Safety
    ///
    /// The run is closed, aligned to the file's pages, and the state is locked.
    unsafe fn lay(&self, file: &File, run: Range<usize>) -> Laid {
        let (offset, bytes) = (run.start * GRANULE_BYTES, run.len() * GRANULE_BYTES);
        if numa::interleaved(&self.nodes, || file.fill(offset, bytes)).is_err() {
            return Laid::Short;
        }
        // SAFETY: the run is closed and the state is locked, as this function requires; the file's range was filled
        // just now.
        let Err(MapError { error, still_reserved }) =
            (unsafe { file.map(offset, self.address(run.start), bytes) })
        else {
            return Laid::Done;
        };
        // Free the pages in any case. This does not fail after they could be allocated.
        let _emptied = file.empty(offset, bytes);
        // SAFETY: the run belongs to this region and is unused.
        if still_reserved && unsafe { sys::close(self.address(run.start), bytes) }.is_ok() {
            // SAFETY: as above.
            unsafe { self.set_policies(run) };
            return Laid::Short;
        }
        Laid::Lost(error)
    }

    /// Decommits granules that lie within one aligned gibibyte.
    ///
    /// # Safety
    ///
    /// As [`Region::decommit`].
    unsafe fn decommit_part(&self, state: &mut RegionState, part: Range<usize>) -> io::Result<()> {
        let mut at = part.start;
        while at < part.end {
            let run = run_of_equals(&state.granules, at..part.end);
            at = run.end;
            match state.granules[run.start] {
                Granule::Closed | Granule::SpareZero | Granule::SpareUsed | Granule::Lost => {}
                Granule::Huge1G => state.granules[run].fill(Granule::SpareUsed),
                Granule::Ordinary => {
                    // SAFETY: the run is unused, as this function requires, it is not lost, and the state is locked.
                    unsafe { self.close(run.clone()) }?;
                    state.granules[run].fill(Granule::Closed);
                }
                Granule::Huge2M => {
                    // SAFETY: as above.
                    unsafe { self.close(run.clone()) }?;
                    state.granules[run.clone()].fill(Granule::Closed);
                    let file = state.huge_2m.file().expect("a granule on a 2 MiB page came from its file");
                    file.empty(run.start * GRANULE_BYTES, run.len() * GRANULE_BYTES)?;
                    state.huge_2m.reconsider();
                }
            }
        }
        let giant = part.start / GIANT_GRANULES;
        let run = giant * GIANT_GRANULES..(giant + 1) * GIANT_GRANULES;
        let unused = |one: &Granule| matches!(one, Granule::SpareZero | Granule::SpareUsed);
        if state.granules.get(run.clone()).is_some_and(|run| run.iter().all(unused)) {
            // SAFETY: no granule of the page is in use.
            unsafe { self.close(run.clone()) }?;
            state.granules[run.clone()].fill(Granule::Closed);
            let file = state.huge_1g.file().expect("a granule on a 1 GiB page came from its file");
            file.empty(run.start * GRANULE_BYTES, HUGE_1G_BYTES)?;
            state.huge_1g.reconsider();
        }
        Ok(())
    }

    /// Closes a run and sets its policies anew.
    ///
    /// # Safety
    ///
    /// The run is unused and not lost, and the state is locked.
    unsafe fn close(&self, run: Range<usize>) -> io::Result<()> {
        // SAFETY: the run is in the region's mapping, unused and not lost, and the state is locked, as this function
        // requires.
        unsafe { sys::close(self.address(run.start), run.len() * GRANULE_BYTES) }?;
        // SAFETY: as above.
        unsafe { self.set_policies(run) };
        Ok(())
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if !state.granules.contains(&Granule::Lost) {
            return;
        }
        // Lost addresses may belong to another mapping now, so the others are unmapped piece by piece.
        self.mapping.leak();
        let granules = std::mem::take(&mut state.granules);
        let mut at = 0;
        while at < granules.len() {
            let run = run_of_equals(&granules, at..granules.len());
            at = run.end;
            if granules[run.start] != Granule::Lost {
                // SAFETY: the run belongs to this region, the mapping was leaked, and a region is dropped only when
                // nothing refers to its memory.
                let unmapped = unsafe { sys::unmap(self.address(run.start), run.len() * GRANULE_BYTES) };
                debug_assert!(unmapped.is_ok(), "munmap of an own range: {unmapped:?}");
            }
        }
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region")
            .field("base", &self.base)
            .field("bytes", &self.bytes)
            .field("pages", &self.pages)
            .field("nodes", &self.nodes)
            .field("committed", &self.committed())
            .field("mapping", &self.mapping)
            .finish_non_exhaustive()
    }
}

/// How laying huge pages over a run ended.
enum Laid {
    /// It stands on them.
    Done,
    /// There are not enough; the run is closed as before.
    Short,
    /// The run is lost.
    Lost(io::Error),
}

/// The kind of ordinary memory for requested `pages`.
fn ordinary_kind(pages: Pages) -> PageKind {
    if pages != Pages::Plain && report::transparent().is_some_and(|setting| setting.usable()) {
        PageKind::Transparent
    } else {
        PageKind::Plain
    }
}

/// Cuts a range of granules at the multiples of a gibibyte.
fn within_giants(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        (at < range.end).then(|| {
            let start = at;
            at = ((start / GIANT_GRANULES + 1) * GIANT_GRANULES).min(range.end);
            start..at
        })
    })
}

/// The longest run of equal granules at the start of a range that is not empty.
fn run_of_equals(granules: &[Granule], range: Range<usize>) -> Range<usize> {
    let first = granules[range.start];
    let same = granules[range.clone()].iter().take_while(|&&granule| granule == first).count();
    range.start..range.start + same
}

#[cfg(test)]
#[path = "region_tests.rs"]
mod tests;
