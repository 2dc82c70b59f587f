//! Who uses a frame: [`Word`], one for each frame, and [`Left`], one for all of a pool.
//!
//! A word counts the pins of its frame, by which many read it, and has three bits:
//!
//! - *present*: the frame has memory, all of it initialized;
//! - *claimed*: one has the frame alone and may write to it;
//! - *closed*: the pool's owner has gone, and the last pin to go counts the frame out.
//!
//! What it guarantees, and the argument for each. All changes of a word are read-modify-writes, so they have one order
//! and each sees the newest value; and whoever acquires one of them has all before it that were released.
//!
//! - *Who claims a frame is alone.* The exchange finds no pin and no claim. A pin that comes later finds the bit, and
//!   reads nothing; it takes its one back, as one taken by mistake.
//! - *No reader sees a frame change.* A claim is taken of a frame without pins: each reader has given up its pin, which
//!   releases, and the claim acquires. So what was read was read before what is written.
//! - *Who pins a frame sees all that was written to it.* The claim's end releases, in taking the bit away, and every
//!   pin that finds no claim comes later in the order of the word, and acquires.
//! - *A pin taken by mistake does no harm.* The claim ends by taking its bit away, not by storing a whole word, so what
//!   others have added and are about to subtract stays in the count.
//! - *Memory is given back once, after the last use.* The owner closes words when nobody can pin any more but who has a
//!   pin already (by [`Word::again`]). A word without pins stays so and is counted out by the owner. In any other word
//!   the count falls to zero once, under the closed bit, and who brings it there counts it out; it acquires what those
//!   who gave up pins before it released. The count of frames left is brought to zero once, by adding up all of that;
//!   who does it acquires what all others released in counting out.
//!
//! What is not here: the frames, and what a claim of a frame without memory does to have it.

use crate::sync::{AtomicU32, AtomicUsize, Ordering, weakened};

/// The frame has one who writes to it.
const CLAIMED: u32 = 1 << 31;
/// The owner has gone.
const CLOSED: u32 = 1 << 30;
/// The frame has memory.
const PRESENT: u32 = 1 << 29;
/// The bits of the count.
const PINS: u32 = PRESENT - 1;
/// So many pins may be taken. The rest of the count is for those taken by mistake: one a thread.
const PINS_MAX: u32 = 1 << 28;

/// How a frame was claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It has memory.
    Present,
    /// It has none yet. [`Word::is_present`] is to follow when it has, or [`Word::give_up`].
    Absent,
}

/// The pins of one frame. By default, and where it is zero, that of a frame without memory.
#[derive(Default)]
#[repr(transparent)]
pub(crate) struct Word(AtomicU32);

impl Word {
    /// Takes the frame for one alone, if nobody uses it.
    pub(crate) fn claim(&self) -> Option<Claim> {
        // ORDERING: acquire pairs with the release of `unpin`, so that former readers have read, and with that of
        // `publish` and `give_up`, so that former claimants have written.
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

    /// The frame that was claimed has memory now.
    pub(crate) fn is_present(&self) {
        // ORDERING: none; nobody else may use the frame until `publish` or `give_up`.
        self.0.fetch_or(PRESENT, Ordering::Relaxed);
    }

    /// Ends a claim and leaves one pin.
    pub(crate) fn publish(&self) {
        // ORDERING: release pairs with the acquire of `pin`: what was written is seen.
        let ordering = weakened!("publishes", Release);
        if weakened!("forgets") {
            self.0.store(PRESENT + 1, ordering);
            return;
        }
        self.0.fetch_sub(CLAIMED - 1, ordering);
    }

    /// Ends a claim and leaves none.
    pub(crate) fn give_up(&self) {
        // ORDERING: release pairs with the acquire of `claim` and of `pin`: what was written is seen.
        self.0.fetch_sub(CLAIMED, weakened!("gives_up", Release));
    }

    /// Keeps the frame as it is; false if somebody writes to it, if it has no memory, or if it has too many pins.
    #[inline]
    pub(crate) fn pin(&self) -> bool {
        // ORDERING: acquire pairs with the release of `publish`: what the claimant wrote, and all that it did before,
        // is seen.
        let before = self.0.fetch_add(1, weakened!("pins", Acquire));
        let before = if weakened!("trusts") { before & !CLAIMED } else { before };
        // Present, and no other bit, and few enough pins, in one comparison.
        if before.wrapping_sub(PRESENT) < PINS_MAX {
            return true;
        }
        // ORDERING: none; nothing was read. Claims take place all the same: see the head.
        self.0.fetch_sub(1, Ordering::Relaxed);
        false
    }

    /// One more pin, for one who has one.
    #[inline]
    pub(crate) fn again(&self) {
        // ORDERING: none; who has a pin sees what there is to see.
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        if before & PINS >= PINS_MAX {
            // As with `Arc`: so many were never given up but forgotten, and one more would be taken for a bit.
            std::process::abort();
        }
    }

    /// Gives up a pin. True if it was the last of a closed word: then the frame is to be counted out, and otherwise
    /// the word must not be looked at again, for it may be gone.
    #[inline]
    pub(crate) fn unpin(&self) -> bool {
        // ORDERING: release pairs with the acquire of `claim` and of those who count out: all was read.
        let before = self.0.fetch_sub(1, weakened!("unpins", Release));
        if before != CLOSED | PRESENT | 1 {
            return false;
        }
        // ORDERING: acquire pairs with the release above, by whoever else had a pin: they have read. A load and no
        // fence, because ThreadSanitizer knows no fences.
        self.0.load(weakened!("last", Acquire));
        true
    }

    /// Closes the word of an owner who goes: nobody may call [`Word::pin`] or [`Word::claim`] any more. True if the
    /// frame is to be counted out at once.
    pub(crate) fn close(&self) -> bool {
        // ORDERING: acquire, here and below, pairs with the release of `unpin`: all was read.
        let ordering = weakened!("closes", Acquire);
        // Without pins there will be none, and the word need not be changed.
        if self.0.load(ordering) & PINS == 0 {
            return true;
        }
        if weakened!("looks_only") {
            return false;
        }
        self.0.fetch_or(CLOSED, ordering) & PINS == 0
    }
}

/// Frames that are not counted out, and the owner.
pub(crate) struct Left(AtomicUsize);

impl Left {
    pub(crate) fn new(frames: usize) -> Left {
        Left(AtomicUsize::new(frames + 1))
    }

    /// Counts out so many, the owner being one. True for whoever was last: everything is theirs to give back.
    pub(crate) fn count_out(&self, so_many: usize) -> bool {
        // ORDERING: release and acquire, so that whoever is last has what all others did before.
        self.0.fetch_sub(so_many, weakened!("counts", AcqRel)) == so_many
    }
}

#[cfg(all(test, not(loom)))]
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
