//! [`Slot`]: a word that says in which frame something is kept, and that is read without a lock.
//!
//! A slot names a frame, or none. Whoever keeps things in frames has a slot for each thing, and does the following,
//! with slots set and cleared under a lock of its own:
//!
//! 1. to bring a thing in: claim a frame; if a slot names it, clear that slot; write; publish; set the thing's slot;
//! 2. to forget a thing: clear its slot.
//!
//! A reader calls [`Slot::find`]: look at the slot, pin the frame that it names, and look again.
//!
//! What it guarantees: *if the slot still names the frame, then the frame holds the slot's thing for as long as it is
//! pinned*. The argument. A frame holds one thing after the other, each from a publication to the next claim. The pin
//! succeeded, so it lies between the k-th publication of the frame and the claim after it. The second look saw what was
//! stored when the slot was set for the j-th. It is the same one:
//!
//! - *It is no earlier one.* The slot was set after the j-th publication, and cleared before the next, both under the
//!   lock, so in this order; so for j < k the slot was cleared before the k-th publication. The pin acquires what that
//!   one released. So the second look comes after the clearing, and sees that or something later.
//! - *It is no later one.* For j > k the slot was set after a claim that came after the pin was given up; giving up
//!   releases, and that claim acquires. So the second look came before the setting, and did not see it.
//!
//! Thus it is the pin that orders everything; the first look is a guess, and no access to the slot orders anything.
//!
//! Beside the frame a slot has a mark, that the thing was asked for, for a clock. It may be lost; it does not matter.

use crate::sync::{AtomicU32, Ordering, weakened};

/// The thing was asked for since the clock passed.
const USED: u32 = 1 << 31;
/// The frame's number plus one; 0 for none.
const FRAME: u32 = USED - 1;

/// Frames with lower numbers can be named.
pub const FRAMES_MAX: usize = FRAME as usize;

/// Where something is kept; see the module's head.
#[derive(Default)]
pub struct Slot(AtomicU32);

impl Slot {
    fn named(word: u32) -> Option<u32> {
        (word & FRAME).checked_sub(1)
    }

    /// The thing, pinned by `pin` (which returns `None` if it cannot), and marked as used; `None` if it is not kept, or
    /// is just being driven out.
    #[inline]
    pub fn find<P>(&self, pin: impl FnOnce(u32) -> Option<P>) -> Option<P> {
        // ORDERING: none of the slot's accesses orders anything, see the head.
        let seen = self.0.load(Ordering::Relaxed);
        let pinned = pin(Slot::named(seen)?)?;
        let again = self.0.load(Ordering::Relaxed);
        if Slot::named(again) != Slot::named(seen) && !weakened!("glances") {
            return None;
        }
        if again & USED == 0 {
            // Only the first to ask writes to the line. Something else there is left alone.
            let _ = self.0.compare_exchange(again, again | USED, Ordering::Relaxed, Ordering::Relaxed);
        }
        Some(pinned)
    }

    /// The frame that is named; exact under the lock.
    pub fn frame(&self) -> Option<u32> {
        Slot::named(self.0.load(Ordering::Relaxed))
    }

    /// Names a frame that was published with the thing; under the lock.
    ///
    /// # Panics
    /// If the number is not below [`FRAMES_MAX`].
    pub fn set(&self, frame: u32) {
        assert!((frame as usize) < FRAMES_MAX, "frame {frame}");
        self.0.store(frame + 1, Ordering::Relaxed);
    }

    /// Names none any more; under the lock.
    pub fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Takes the mark away; true if it was there.
    pub fn pass(&self) -> bool {
        self.0.load(Ordering::Relaxed) & USED != 0 && self.0.fetch_and(!USED, Ordering::Relaxed) & USED != 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_marked() {
        let slot = Slot::default();
        assert_eq!(slot.find(|_| -> Option<()> { panic!("none is named") }), None);
        slot.set(0);
        assert_eq!((slot.frame(), slot.pass()), (Some(0), false));
        assert_eq!(slot.find(Some), Some(0));
        assert!(slot.pass() && !slot.pass());
        slot.set(FRAMES_MAX as u32 - 1);
        assert_eq!(slot.find(Some), Some(FRAMES_MAX as u32 - 1));
        assert_eq!(slot.find(|_| None::<u32>), None);
        slot.clear();
        assert!(slot.frame().is_none() && !slot.pass());
    }

    #[test]
    fn what_changes_meanwhile_is_not_found() {
        let slot = Slot::default();
        slot.set(3);
        let moved = slot.find(|frame| {
            slot.set(4);
            Some(frame)
        });
        assert_eq!((moved, slot.frame()), (None, Some(4)));
        // The clock does not matter.
        slot.find(Some);
        let passed = slot.find(|frame| {
            assert!(slot.pass());
            Some(frame)
        });
        assert_eq!(passed, Some(4));
    }
}
