//! [`Frames`]: a pool of frames of 4,096 bytes on huge pages, each of which one writes to or many read.
//!
//! - A frame is claimed ([`Frames::claim`]), which one can do while nobody uses it; written to; and published with a
//!   pin ([`Claimed::publish`]). Whoever pins it ([`Frames::pin`]) reads it in place, and it stays as it is until the
//!   last pin has gone.
//! - A pin costs one change of a word of the frame's own, and one when it is given up. These words lie close together,
//!   apart from the frames. There is nothing that all pins change.
//! - A pin ([`Pinned`]) borrows nothing. The pool lives until its owner has dropped it and no frame is pinned.
//! - A pool is addresses at first. Memory comes in steps of 2 MiB or more when a frame is first claimed, and is given
//!   back with the pool. A pool of less than 2 MiB is taken from the heap instead.
//! - Nobody waits: what cannot be had is refused.
//!
//! What is not here: which frame is for what. [`Slot`] is the part of that which readers see.
//!
//! | module | what it has |
//! |---|---|
//! | pins.rs | the word of a frame, and when a pool ends: the argument for all of the above |
//! | slot.rs | how something that is kept in a frame is found without a lock |
//!
//! Both are run by loom, see tests/loom.rs.

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
/// What a processor fetches at once.
const LINE_BYTES: usize = 64;
/// Memory comes in at most so many steps, since each may be a mapping, of which a process has a limited number.
const STEPS_MAX: usize = 1024;

type Frame = [u8; FRAME_BYTES];

/// Where frames lie.
enum Memory {
    /// Of the region `step_bytes` are committed at a time.
    Region { region: Region, step_bytes: usize },
    /// All of it at once.
    Heap { start: NonNull<u8>, layout: Layout },
}

impl Memory {
    fn new(bytes: usize, pages: Pages, numa: Numa) -> io::Result<Memory> {
        if bytes >= GRANULE_BYTES {
            let region = Region::reserve(bytes, pages, numa)?;
            let step_bytes = (region.len() / GRANULE_BYTES).div_ceil(STEPS_MAX) * GRANULE_BYTES;
            return Ok(Memory::Region { region, step_bytes });
        }
        // Room to align. Zeros of a small alignment are to be had from the system untouched.
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
                // SAFETY: less than a frame is skipped, and the allocation has one more than was asked for.
                unsafe { start.add(skip) }.cast()
            }
        }
    }

    /// Sees to it that a frame can be used; false if there is no memory.
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

/// What the owner and all pins point to.
struct Pool {
    base: NonNull<Frame>,
    words: Box<[Word]>,
    left: Left,
    /// Frames from this number on were never claimed. Only grows; read by the owner alone when it drops the pool.
    touched: AtomicUsize,
    memory: Memory,
}

/// So many words of zero, untouched by this.
fn words(count: usize) -> io::Result<Box<[Word]>> {
    let layout = Layout::array::<Word>(count).map_err(too_many)?;
    // SAFETY: the caller has seen to it that there is at least one, so the size is not zero.
    let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(io::ErrorKind::OutOfMemory)?;
    // SAFETY: allocated as a box of that slice would have been; zero is a word as `Word::default` makes it.
    Ok(unsafe { Box::from_raw(slice_from_raw_parts_mut(start.as_ptr().cast(), count)) })
}

fn too_many<E>(_: E) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "number of frames")
}

/// The owner of a pool; see the module's head. Frames are known by their numbers.
pub struct Frames {
    pool: NonNull<Pool>,
}

// SAFETY: a pool belongs to no thread: the region is `Sync`, words and counts are atomic, heap memory can be given back
// by any thread, and frames are used as the words say (pins.rs).
unsafe impl Send for Frames {}
// SAFETY: as above.
unsafe impl Sync for Frames {}

impl Frames {
    /// A pool of so many frames, of which none has memory yet.
    ///
    /// # Errors
    /// `InvalidInput` for no frames, or [`FRAMES_MAX`] or more; otherwise what the system says, as a rule
    /// `OutOfMemory` where there are not so many addresses.
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

    /// Takes a frame for one alone, if nobody has it. Its bytes are what they were left as; zeros at first.
    ///
    /// Also `None` where there is no memory for it.
    ///
    /// # Panics
    /// If there is no such frame.
    pub fn claim(&self, frame: u32) -> Option<Claimed<'_>> {
        let pool = self.pool();
        let word = &pool.words[frame as usize];
        if word.claim()? == Claim::Absent {
            if !pool.memory.provide(frame) {
                word.give_up();
                return None;
            }
            pool.touched.fetch_max(frame as usize + 1, Relaxed);
            word.is_present();
        }
        Some(Claimed { frames: self, frame })
    }

    /// Asks for the cache lines of some bytes of a frame, whatever they are just now: a hint.
    #[inline]
    pub fn fetch(&self, frame: u32, bytes: Range<usize>) {
        let first = self.bytes(frame).as_ptr().cast::<u8>().wrapping_add(bytes.start);
        (0..bytes.len()).step_by(LINE_BYTES).for_each(|line| prefetch::read(first.wrapping_add(line)));
    }

    /// Keeps a frame as it is, to read it; `None` while it is claimed, and before it was claimed for the first time.
    /// (Also if it was pinned some hundred million times and not given up.)
    ///
    /// # Panics
    /// If there is no such frame.
    #[inline]
    pub fn pin(&self, frame: u32) -> Option<Pinned> {
        self.pool().words[frame as usize].pin().then(|| Pinned { bytes: self.bytes(frame), pool: self.pool })
    }

    /// Where a frame lies.
    #[inline]
    fn bytes(&self, frame: u32) -> NonNull<Frame> {
        let pool = self.pool();
        debug_assert!((frame as usize) < pool.words.len());
        // SAFETY: callers have indexed the words with the number, and there is a frame for each word.
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
    /// Ends the pool, or leaves that to the last pin.
    fn drop(&mut self) {
        let pool = self.pool();
        // Frames beyond were never claimed, so nobody has them.
        let (touched, others) = pool.words.split_at(pool.touched.load(Relaxed));
        let done = touched.iter().filter(|word| word.close()).count();
        if pool.left.count_out(1 + others.len() + done) {
            // SAFETY: the last of all.
            unsafe { end(self.pool) }
        }
    }
}

/// Gives everything back.
///
/// # Safety
/// The caller's [`Left::count_out`] said so: nobody else has the pool, and the caller does not use it again.
#[cold]
unsafe fn end(pool: NonNull<Pool>) {
    // SAFETY: it came out of a box, and the caller's.
    drop(unsafe { Box::from_raw(pool.as_ptr()) });
}

/// A frame that one has alone. Dropping it without publishing gives it up; what was written stays in it, unseen.
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

    /// Ends the writing, and begins the reading with one pin.
    pub fn publish(self) -> Pinned {
        let claimed = ManuallyDrop::new(self);
        claimed.word().publish();
        Pinned { bytes: claimed.frames.bytes(claimed.frame), pool: claimed.frames.pool }
    }
}

impl Deref for Claimed<'_> {
    type Target = [u8; FRAME_BYTES];

    fn deref(&self) -> &[u8; FRAME_BYTES] {
        // SAFETY: the frame has memory, initialized by zeros or by who had it before, and nobody else uses it while it
        // is claimed.
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

/// A frame that stays as it is for as long as this is held, even beyond its [`Frames`].
pub struct Pinned {
    bytes: NonNull<Frame>,
    pool: NonNull<Pool>,
}

const _: () = assert!(size_of::<Pinned>() == 16 && size_of::<Option<Pinned>>() == 16);

// SAFETY: the bytes do not change while they are pinned, and counting is atomic; who ends the pool may be any thread,
// as with `Frames`.
unsafe impl Send for Pinned {}
// SAFETY: as above.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// The frame's word. A pointer and no reference: giving up a pin may end the pool.
    #[inline]
    fn word(&self) -> *const Word {
        // SAFETY: the pool lives for as long as the frame is pinned.
        let pool = unsafe { self.pool.as_ref() };
        // SAFETY: both point into the same memory, a whole number of frames apart.
        let frame = unsafe { self.bytes.offset_from_unsigned(pool.base) };
        // SAFETY: there is a word for each frame.
        unsafe { pool.words.as_ptr().add(frame) }
    }

    /// Counts out a frame of a pool whose owner has gone.
    #[cold]
    fn count_out(&self) {
        // SAFETY: the frame was not counted out yet, so the pool is there.
        if unsafe { self.pool.as_ref() }.left.count_out(1) {
            // SAFETY: the last of all.
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
        // SAFETY: the frame is pinned, so its word is there.
        unsafe { &*self.word() }.again();
        Pinned { bytes: self.bytes, pool: self.pool }
    }
}

impl Drop for Pinned {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the frame is pinned, so its word is there until this one pin is given up. The reference is to an
        // atomic alone, as with `Arc`, and is not used after.
        if unsafe { &*self.word() }.unpin() {
            self.count_out();
        }
    }
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
