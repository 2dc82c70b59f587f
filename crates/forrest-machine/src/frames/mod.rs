//! [`Frames`]: a pool of frames of 4,096 bytes on huge pages. Each frame has one writer or any number of readers.
//!
//! - A writer claims an unused frame ([`Frames::claim`]), writes to it, and publishes it with a pin
//!   ([`Claimed::publish`]). A reader pins the frame ([`Frames::pin`]) and reads it in place. The frame does not change
//!   until its last pin is dropped.
//! - Each frame has a word. Pinning and unpinning cost one atomic change of it each. The words lie close together,
//!   apart from the frames. No word is shared by all pins.
//! - A pin ([`Pinned`]) borrows nothing. The pool lives until its owner has dropped it and no frame is pinned.
//! - A new pool has only reserved addresses. Memory is committed in steps of 2 MiB or more when a frame is first
//!   claimed, and freed with the pool or by [`Frames::release`]. A pool of less than 2 MiB is allocated from the heap
//!   instead.
//! - No operation waits: a claim that cannot succeed returns why ([`Refused`]), a pin `None`.
//!
//! The users of a pool decide which frame holds what. [`Slot`] is the part of that which readers use.
//!
//! | module | content |
//! |---|---|
//! | pins.rs | the word of a frame, and the end of a pool: the argument for all of the above |
//! | slot.rs | how readers find the frame of something without a lock |
//!
//! Loom models both, see models.rs.

#[cfg(all(test, feature = "loom"))]
mod models;
mod pins;
mod slot;

pub use slot::{FRAMES_MAX, Slot};

use crate::pages::{Committed, GRANULE_BYTES, Numa, Pages, Region};
use crate::prefetch;
use pins::{Claim, Left, Word};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::io;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::{NonNull, slice_from_raw_parts_mut};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Size and alignment of a frame, in bytes.
pub const FRAME_BYTES: usize = 4096;
/// Size of a cache line.
const LINE_BYTES: usize = 64;
/// Maximum number of steps in which memory is committed. Each may be a mapping, and a process has a limited number.
const STEPS_MAX: usize = 1024;

type Frame = [u8; FRAME_BYTES];

/// The memory of the frames.
enum Memory {
    /// A region, of which `step_bytes` are committed at a time.
    Region { region: Region, step_bytes: usize },
    /// One heap allocation.
    Heap { start: NonNull<u8>, layout: Layout },
}

impl Memory {
    fn new(bytes: usize, pages: Pages, numa: Numa) -> io::Result<Memory> {
        if bytes >= GRANULE_BYTES {
            let region = Region::reserve(bytes, pages, numa)?;
            let step_bytes = (region.len() / GRANULE_BYTES).div_ceil(STEPS_MAX) * GRANULE_BYTES;
            return Ok(Memory::Region { region, step_bytes });
        }
        // Room to align. The allocator returns zeroed memory of a small alignment without touching it.
        let layout = Layout::from_size_align(bytes + FRAME_BYTES, align_of::<u64>()).map_err(too_many)?;
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Memory::Heap { start, layout })
    }

    fn base(&self) -> NonNull<Frame> {
        match self {
            Memory::Region { region, .. } => region.base().cast(),
            Memory::Heap { start, .. } => {
                let skip = start.addr().get().next_multiple_of(FRAME_BYTES) - start.addr().get();
                // SAFETY: `skip < FRAME_BYTES`, and `new` allocated FRAME_BYTES more than the frames need.
                unsafe { start.add(skip) }.cast()
            }
        }
    }

    /// Commits the memory of a frame; false if there is none.
    fn provide(&self, frame: u32) -> bool {
        match self {
            Memory::Region { region, step_bytes } => {
                let at = frame as usize * FRAME_BYTES / step_bytes * step_bytes;
                region.commit(at, (*step_bytes).min(region.len() - at)).is_ok()
            }
            Memory::Heap { .. } => true,
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Memory::Heap { start, layout } = self {
            // SAFETY: it was allocated with this layout, and is dropped once.
            unsafe { dealloc(start.as_ptr(), *layout) }
        }
    }
}

/// The state that the owner and all pins point to.
struct Pool {
    base: NonNull<Frame>,
    words: Box<[Word]>,
    left: Left,
    /// Frames from this number on were never claimed. Only grows; read by the owner alone when it drops the pool.
    touched: AtomicUsize,
    memory: Memory,
}

/// Allocates `count` zeroed words without touching their memory.
fn words(count: usize) -> io::Result<Box<[Word]>> {
    let layout = Layout::array::<Word>(count).map_err(too_many)?;
    // SAFETY: `count > 0`, checked in `Frames::new`, so the size is not zero.
    let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(io::ErrorKind::OutOfMemory)?;
    // SAFETY: the global allocator returned it for the layout of this slice; zero is a valid word, `Word::default`.
    Ok(unsafe { Box::from_raw(slice_from_raw_parts_mut(start.as_ptr().cast(), count)) })
}

fn too_many<E>(_: E) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "number of frames")
}

/// Why a frame cannot be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It is claimed or pinned, or its memory is just being taken or released.
    InUse,
    /// The system has no memory for it.
    NoMemory,
}

/// The owner of a pool; see the module's head. Frames are known by their numbers.
pub struct Frames {
    pool: NonNull<Pool>,
}

// SAFETY: a pool belongs to no thread: the region is `Sync`, words and counts are atomic, any thread may free heap
// memory, and the words admit one writer or readers to a frame (pins.rs).
unsafe impl Send for Frames {}
// SAFETY: as above.
unsafe impl Sync for Frames {}

impl Frames {
    /// A pool of `count` frames, of which none has memory yet.
    ///
    /// # Errors
    /// `InvalidInput` for 0 frames, or for [`FRAMES_MAX`] or more; otherwise the system's error, usually `OutOfMemory`
    /// if there is not enough address space.
    pub fn new(count: usize, pages: Pages, numa: Numa) -> io::Result<Frames> {
        if count == 0 || count >= FRAMES_MAX {
            return Err(too_many(count));
        }
        let bytes = count.checked_mul(FRAME_BYTES).ok_or_else(|| too_many(count))?;
        let memory = Memory::new(bytes, pages, numa)?;
        let pool = Pool {
            base: memory.base(),
            words: words(count)?,
            left: Left::new(count),
            touched: AtomicUsize::new(0),
            memory,
        };
        Ok(Frames { pool: NonNull::from(Box::leak(Box::new(pool))) })
    }

    #[inline]
    fn pool(&self) -> &Pool {
        // SAFETY: the pool lives at least until its owner is dropped, and is never borrowed mutably.
        unsafe { self.pool.as_ref() }
    }

    /// The number of frames. Their numbers are those below it.
    pub fn count(&self) -> usize {
        self.pool().words.len()
    }

    /// Claims a frame for one writer. Its bytes are as the last writer left them, and zero at first and after a
    /// [`release`](Frames::release).
    ///
    /// # Errors
    /// `InUse`, `NoMemory`.
    ///
    /// # Panics
    /// If there is no such frame.
    pub fn claim(&self, frame: u32) -> Result<Claimed<'_>, Refused> {
        let pool = self.pool();
        let word = &pool.words[frame as usize];
        if word.claim().ok_or(Refused::InUse)? == Claim::Absent {
            if !pool.memory.provide(frame) {
                word.give_up();
                return Err(Refused::NoMemory);
            }
            pool.touched.fetch_max(frame as usize + 1, Relaxed);
            word.is_present();
        }
        Ok(Claimed { frames: self, frame })
    }

    /// Gives the memory of the frames from `first` on back to the system, in the steps in which it was taken, as far as
    /// no frame of a step is claimed or pinned. Their content is lost; they get memory again when they are claimed.
    /// False if a frame in use has kept some.
    pub fn release(&self, first: usize) -> bool {
        let pool = self.pool();
        let Memory::Region { region, step_bytes } = &pool.memory else { return true };
        let in_step = step_bytes / FRAME_BYTES;
        let touched = pool.touched.load(Relaxed).min(pool.words.len());
        let mut is_done = true;
        for start in (first.next_multiple_of(in_step)..touched).step_by(in_step) {
            let words = &pool.words[start..pool.words.len().min(start + in_step)];
            if !words.iter().any(Word::has_memory) {
                continue;
            }
            let claims: Vec<Claim> = words.iter().map_while(Word::claim).collect();
            let is_free = claims.len() == words.len();
            let at = start * FRAME_BYTES;
            if is_free {
                // If it fails, some of the memory may be gone. The next claim provides what is missing. SAFETY: every
                // frame of the step is claimed here, so no other thread reads or writes it, and nobody has a reference
                // into it. The pool's frames that follow the last word, if any, are never used.
                let _ = unsafe { region.decommit(at, (*step_bytes).min(region.len() - at)) };
            }
            for (word, was) in words.iter().zip(claims) {
                if is_free { word.is_absent(was) } else { word.give_up() }
            }
            is_done &= is_free;
        }
        is_done
    }

    /// Prefetches the cache lines of some bytes of a frame, and what pins it. A hint, in any state of the frame.
    #[inline]
    pub fn fetch(&self, frame: u32, bytes: Range<usize>) {
        prefetch::read(self.pool().words.as_ptr().wrapping_add(frame as usize).cast());
        let first = self.bytes(frame).as_ptr().cast::<u8>().wrapping_add(bytes.start);
        (0..bytes.len()).step_by(LINE_BYTES).for_each(|line| prefetch::read(first.wrapping_add(line)));
    }

    /// Pins a frame to read it. Returns `None` while it is claimed, before its first claim, and if it already has
    /// 268,435,456 pins.
    ///
    /// # Panics
    /// If there is no such frame.
    #[inline]
    pub fn pin(&self, frame: u32) -> Option<Pinned> {
        self.pool().words[frame as usize].pin().then(|| Pinned { bytes: self.bytes(frame), pool: self.pool })
    }

    /// The address of a frame.
    #[inline]
    fn bytes(&self, frame: u32) -> NonNull<Frame> {
        let pool = self.pool();
        debug_assert!((frame as usize) < pool.words.len());
        // SAFETY: `frame < words.len()`, and there is a frame for each word.
        unsafe { pool.base.add(frame as usize) }
    }

    /// Bytes of memory that were taken from the system, by kind of page.
    pub fn committed(&self) -> Committed {
        match &self.pool().memory {
            Memory::Region { region, .. } => region.committed(),
            Memory::Heap { layout, .. } => Committed { plain_bytes: layout.size(), ..Committed::default() },
        }
    }
}

impl fmt::Debug for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frames({}, {:?})", self.count(), self.committed())
    }
}

impl Drop for Frames {
    /// Frees the pool, or leaves that to the last pin.
    fn drop(&mut self) {
        let pool = self.pool();
        // Frames after `touched` were never claimed, so they have no pins.
        let (touched, others) = pool.words.split_at(pool.touched.load(Relaxed));
        let done = touched.iter().filter(|word| word.close()).count();
        if pool.left.count_out(1 + others.len() + done) {
            // SAFETY: `count_out` returned true, and the pool is not used after.
            unsafe { end(self.pool) }
        }
    }
}

/// Frees the pool.
///
/// # Safety
/// The caller's [`Left::count_out`] returned true, so it has the only pointer to the pool, and does not use it again.
#[cold]
unsafe fn end(pool: NonNull<Pool>) {
    // SAFETY: `Frames::new` leaked it from a box, and the caller has the only pointer to it, as this function requires.
    drop(unsafe { Box::from_raw(pool.as_ptr()) });
}

/// A claimed frame. Dropping it without publishing ends the claim; written bytes stay in it, but no reader sees them.
#[must_use = "a frame that is claimed is given up at once"]
pub struct Claimed<'f> {
    frames: &'f Frames,
    frame: u32,
}

impl Claimed<'_> {
    /// The frame's number.
    pub fn frame(&self) -> u32 {
        self.frame
    }

    fn word(&self) -> &Word {
        &self.frames.pool().words[self.frame as usize]
    }

    /// Ends the claim and returns the first pin.
    pub fn publish(self) -> Pinned {
        let claimed = ManuallyDrop::new(self);
        claimed.word().publish();
        Pinned { bytes: claimed.frames.bytes(claimed.frame), pool: claimed.frames.pool }
    }
}

impl Deref for Claimed<'_> {
    type Target = [u8; FRAME_BYTES];

    fn deref(&self) -> &[u8; FRAME_BYTES] {
        // SAFETY: a claimed frame has memory, which is zero or as former claimants wrote it, and no other thread uses
        // it.
        unsafe { self.frames.bytes(self.frame).as_ref() }
    }
}

impl DerefMut for Claimed<'_> {
    fn deref_mut(&mut self) -> &mut [u8; FRAME_BYTES] {
        // SAFETY: as above.
        unsafe { self.frames.bytes(self.frame).as_mut() }
    }
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        self.word().give_up();
    }
}

/// A pinned frame. It does not change while this value lives, which may be longer than its [`Frames`].
pub struct Pinned {
    bytes: NonNull<Frame>,
    pool: NonNull<Pool>,
}

const _: () = assert!(size_of::<Pinned>() == 16 && size_of::<Option<Pinned>>() == 16);

// SAFETY: the bytes do not change while they are pinned, and counting is atomic. Any thread may free the pool, as with
// `Frames`.
unsafe impl Send for Pinned {}
// SAFETY: as above.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// The frame's word. A pointer and not a reference, because an unpin may free the pool.
    #[inline]
    fn word(&self) -> *const Word {
        // SAFETY: the pool lives for as long as the frame is pinned.
        let pool = unsafe { self.pool.as_ref() };
        // SAFETY: both point into the same memory, a whole number of frames apart.
        let frame = unsafe { self.bytes.offset_from_unsigned(pool.base) };
        // SAFETY: there is a word for each frame.
        unsafe { pool.words.as_ptr().add(frame) }
    }

    /// Counts out a frame of a pool that its owner has dropped.
    #[cold]
    fn count_out(&self) {
        // SAFETY: the frame was not counted out yet, so the pool is allocated.
        if unsafe { self.pool.as_ref() }.left.count_out(1) {
            // SAFETY: `count_out` returned true, and the pool is not used after.
            unsafe { end(self.pool) }
        }
    }
}

impl Deref for Pinned {
    type Target = [u8; FRAME_BYTES];

    #[inline]
    fn deref(&self) -> &[u8; FRAME_BYTES] {
        // SAFETY: the frame has memory, all of it initialized, which is not written to while it is pinned.
        unsafe { self.bytes.as_ref() }
    }
}

impl Clone for Pinned {
    #[inline]
    fn clone(&self) -> Pinned {
        // SAFETY: the frame is pinned, so its word is allocated.
        unsafe { &*self.word() }.again();
        Pinned { bytes: self.bytes, pool: self.pool }
    }
}

impl Drop for Pinned {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the frame is pinned, so its word is allocated until this `unpin`. The reference is to an atomic only,
        // as with `Arc`, and is not used after.
        if unsafe { &*self.word() }.unpin() {
            self.count_out();
        }
    }
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
