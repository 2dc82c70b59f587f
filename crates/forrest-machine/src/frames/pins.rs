//! The users of a frame: [`Word`], one for each frame, and [`Left`], one for the whole pool.
//!
//! A word counts the pins of its frame, one for each reader, and has three bits:
//!
//! - *present*: the frame has memory, all of it initialized;
//! - *claimed*: one writer has the frame alone;
//! - *closed*: the pool's owner has dropped it, and the last pin counts the frame out.
//!
//! Guarantees, and the argument for each. All changes of a word are read-modify-writes, so they have one order, and
//! each sees the newest value. An acquiring change synchronizes with all releasing changes before it.
//!
//! - *A claimant is alone.* Its exchange finds no pin and no claim. A later pin finds the claimed bit and reads
//!   nothing; it is a *failed pin*, which subtracts its one again.
//! - *No reader sees a frame change.* A claim succeeds only on a frame without pins. Each unpin releases and the claim
//!   acquires, so every read happened before the new writes.
//! - *A pin sees everything written to the frame.* The end of the claim clears the bit with a release. Every pin that
//!   finds no claim comes later in the order of the word, and acquires.
//! - *A failed pin does no harm.* The end of a claim subtracts its bit and does not store a whole word, so the ones
//!   that other threads have added and will subtract stay in the count.
//! - *Memory is freed once, after the last use.* When the owner closes the words, new pins come only from existing ones
//!   (by [`Word::again`]). A word without pins stays so, and the owner counts it out. In any other word the count falls
//!   to zero once, with the closed bit set. The thread that brings it to zero counts the frame out, and acquires what
//!   all earlier unpins released. All of these together bring the count of frames left to zero once. The thread that
//!   does it acquires what all others released when they counted out.
//!
//! The frames themselves, and how a claim provides a frame's memory, are in `mod.rs`.

use crate::sync::{AtomicU32, AtomicUsize, Ordering, weakened};

/// The frame has a writer.
const CLAIMED: u32 = 1 << 31;
/// The owner has dropped the pool.
const CLOSED: u32 = 1 << 30;
/// The frame has memory.
const PRESENT: u32 = 1 << 29;
/// The bits of the count.
const PINS: u32 = PRESENT - 1;
/// Maximum number of pins. The rest of the count is for failed pins, at most one for each thread.
const PINS_MAX: u32 = 1 << 28;

/// How a frame was claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It has memory.
    Present,
    /// It has none yet. The claimant calls [`Word::is_present`] when it has, or [`Word::give_up`].
    Absent,
}

/// The pins of one frame. The default, zero, is the word of a frame without memory.
#[derive(Default)]
#[repr(transparent)]
pub(crate) struct Word(AtomicU32);

impl Word {
    /// Claims the frame, if it has no pin and no claim.
    pub(crate) fn claim(&self) -> Option<Claim> {
        // ORDERING: acquire pairs with the release of `unpin`: former readers have finished. It also pairs with the
        // release of `publish` and `give_up`: former claimants have written.
        let ordering = weakened!("claims", Acquire);
        let taken = |from| self.0.compare_exchange(from, from | CLAIMED, ordering, Ordering::Relaxed);
        if weakened!("barges") {
            let _ = self.0.fetch_or(CLAIMED, ordering);
            return Some(Claim::Present);
        }
        match taken(PRESENT) {
            Ok(_) => Some(Claim::Present),
            Err(0) if taken(0).is_ok() => Some(Claim::Absent),
            Err(_) => None,
        }
    }

    /// Notes that the claimed frame has memory.
    pub(crate) fn is_present(&self) {
        // ORDERING: none; no other thread may use the frame until `publish` or `give_up`.
        self.0.fetch_or(PRESENT, Ordering::Relaxed);
    }

    /// Ends a claim and leaves one pin.
    pub(crate) fn publish(&self) {
        // ORDERING: release pairs with the acquire of `pin`: a reader sees what was written.
        let ordering = weakened!("publishes", Release);
        if weakened!("forgets") {
            self.0.store(PRESENT + 1, ordering);
            return;
        }
        self.0.fetch_sub(CLAIMED - 1, ordering);
    }

    /// Ends a claim and leaves none.
    pub(crate) fn give_up(&self) {
        // ORDERING: release pairs with the acquire of `claim` and of `pin`, which see what was written.
        self.0.fetch_sub(CLAIMED, weakened!("gives_up", Release));
    }

    /// Ends a claim of a frame whose memory was taken away.
    pub(crate) fn is_absent(&self, was: Claim) {
        // ORDERING: release pairs with the acquire of `claim`: the next claimant comes after the memory went. A failed
        // pin reads nothing, so it does not matter when it sees this.
        let had_memory = was == Claim::Present && !weakened!("stays");
        let bits = if had_memory { CLAIMED | PRESENT } else { CLAIMED };
        self.0.fetch_sub(bits, weakened!("takes_away", Release));
    }

    /// Whether the frame has memory.
    pub(crate) fn has_memory(&self) -> bool {
        self.0.load(Ordering::Relaxed) & PRESENT != 0
    }

    /// Pins the frame; false if it is claimed, has no memory, or has too many pins.
    #[inline]
    pub(crate) fn pin(&self) -> bool {
        // ORDERING: acquire pairs with the release of `publish`: the reader sees what the claimant wrote, and all that
        // it did before.
        let before = self.0.fetch_add(1, weakened!("pins", Acquire));
        let before = if weakened!("trusts") { before & !CLAIMED } else { before };
        // Present, and no other bit, and few enough pins, in one comparison.
        if before.wrapping_sub(PRESENT) < PINS_MAX {
            return true;
        }
        // ORDERING: none; nothing was read. A failed pin does not disturb a claim, see the module's head.
        self.0.fetch_sub(1, Ordering::Relaxed);
        false
    }

    /// One more pin. The caller has one already.
    #[inline]
    pub(crate) fn again(&self) {
        // ORDERING: none; the pin that the caller has already acquired.
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        if before & PINS >= PINS_MAX {
            // As `Arc` does: this many pins were leaked with `forget`, and the count would overflow into the bits.
            std::process::abort();
        }
    }

    /// Drops a pin. True if it was the last pin of a closed word: then the caller counts the frame out. If it is false,
    /// the caller must not use the word again, because the pool may already be freed.
    #[inline]
    pub(crate) fn unpin(&self) -> bool {
        // ORDERING: release pairs with the acquire of `claim`, `close` and the load below: this reader has finished.
        let before = self.0.fetch_sub(1, weakened!("unpins", Release));
        if before != CLOSED | PRESENT | 1 {
            return false;
        }
        // ORDERING: acquire pairs with the release above of all other readers: they have finished. A load and not a
        // fence, because ThreadSanitizer does not support fences.
        self.0.load(weakened!("last", Acquire));
        true
    }

    /// Closes the word when the owner drops the pool: no thread may call [`Word::pin`] or [`Word::claim`] after. True
    /// if the caller counts the frame out.
    pub(crate) fn close(&self) -> bool {
        // ORDERING: acquire, here and below, pairs with the release of `unpin`: all readers have finished.
        let ordering = weakened!("closes", Acquire);
        // A word without pins gets no new ones, so it need not be changed.
        if self.0.load(ordering) & PINS == 0 {
            return true;
        }
        if weakened!("looks_only") {
            return false;
        }
        self.0.fetch_or(CLOSED, ordering) & PINS == 0
    }
}

/// Number of frames that are not counted out yet, plus one for the owner.
pub(crate) struct Left(AtomicUsize);

impl Left {
    pub(crate) fn new(frames: usize) -> Left {
        Left(AtomicUsize::new(frames + 1))
    }

    /// Counts out this many; the owner counts as one. True for the last caller, which frees the pool.
    pub(crate) fn count_out(&self, so_many: usize) -> bool {
        // ORDERING: release and acquire, so that the last caller sees what all others did before.
        self.0.fetch_sub(so_many, weakened!("counts", AcqRel)) == so_many
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    #[test]
    fn one_writes_or_many_read() {
        let word = Word::default();
        assert!(!word.pin(), "there is no memory");
        assert_eq!(word.claim(), Some(Claim::Absent));
        assert!(word.claim().is_none() && !word.pin());
        word.give_up();
        assert_eq!(word.claim(), Some(Claim::Absent));
        word.is_present();
        assert!(word.claim().is_none() && !word.pin());
        word.publish();
        assert!(word.pin() && word.claim().is_none());
        word.again();
        for _ in 0..3 {
            assert!(word.claim().is_none() && !word.unpin());
        }
        assert_eq!(word.claim(), Some(Claim::Present));
        word.give_up();
        assert!(word.pin());
    }

    #[test]
    fn a_pin_by_mistake_stays_in_the_count() {
        let word = Word::default();
        word.claim();
        word.is_present();
        // Another thread, in the middle of `pin`.
        word.0.fetch_add(1, Ordering::Relaxed);
        word.publish();
        word.0.fetch_sub(1, Ordering::Relaxed);
        assert!(word.claim().is_none() && !word.unpin() && word.claim().is_some());
    }

    #[test]
    fn the_last_counts_out() {
        let words = [0; 4].map(|_| Word::default());
        let left = Left::new(words.len());
        words[1..].iter().for_each(|word| {
            word.claim();
            word.is_present();
            word.publish();
        });
        assert!(!words[1].unpin());
        words[3].again();
        let done = 1 + words.iter().filter(|word| word.close()).count();
        assert_eq!(done, 3);
        assert!(!left.count_out(done));
        assert!(words[2].unpin() && !left.count_out(1));
        words[3].again();
        assert!(!words[3].unpin() && !words[3].unpin() && words[3].unpin() && left.count_out(1));
    }

    #[test]
    fn too_many_pins_are_refused() {
        let word = Word(AtomicU32::new(PRESENT | PINS_MAX));
        assert!(!word.pin() && !word.unpin() && word.pin());
    }
}
