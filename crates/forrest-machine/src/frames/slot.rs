//! [`Slot`]: a word that names the frame of an item (in a page cache: a page). Readers load it without a lock.
//!
//! A slot names a frame, or none. A cache has a slot for each item. It sets and clears slots under a lock, in this way:
//!
//! 1. to load an item: claim a frame; if a slot names the frame, clear that slot; write; publish; set the item's slot;
//! 2. to forget an item: clear its slot.
//!
//! A reader calls [`Slot::find`], which loads the slot, pins the frame that it names, and loads the slot again.
//!
//! The guarantee: *if the slot still names the frame, then the frame holds the slot's item for as long as it is
//! pinned*. The argument. A frame holds one item after another, each from a publication to the next claim. The pin
//! succeeded, so it lies between the k-th publication of the frame and the claim after it. The second load read the
//! value that was stored when the slot was set after the j-th publication. Then j = k:
//!
//! - *Not j < k.* The slot was set after the j-th publication and cleared before the next one, both under the lock and
//!   in this order. So it was cleared before the k-th publication. The pin acquires what that publication released. So
//!   the second load comes after the clearing, and reads its value or a later one.
//! - *Not j > k.* The slot was set after a claim that came after the unpin; the unpin releases, and that claim
//!   acquires. So the second load came before the slot was set, and did not read that value.
//!
//! So the pin orders everything. The first load is a guess, and no access to the slot orders anything.
//!
//! A slot also has a mark for the clock: the item was used. A lost mark does no harm.
//!
//! A slot that names no frame may have a number instead, by which the cache knows when the item left ([`Slot::leave`]).
//! Such a word names no frame, as 0 does, so the argument is the same.

use crate::sync::{AtomicU32, Ordering, weakened};

/// The item was used since the clock passed.
const USED: u32 = 1 << 31;
/// The item has left; the lower bits are a number of the cache's.
const LEFT: u32 = 1 << 30;
/// The frame's number plus one; 0 for none. Or the number under which the item left.
const NUMBER: u32 = LEFT - 1;

/// Frames with lower numbers can be named.
pub const FRAMES_MAX: usize = NUMBER as usize;

/// The frame of an item; see the module's head.
#[derive(Default)]
pub struct Slot(AtomicU32);

impl Slot {
    #[inline]
    fn named(word: u32) -> Option<u32> {
        // One comparison: 0 wraps to the greatest number, and one with `LEFT` is too great as well.
        let frame = (word & !USED).wrapping_sub(1);
        (frame < NUMBER).then_some(frame)
    }

    /// The item, pinned by `pin` (which returns `None` if it cannot), and marked as used. `None` if it is in no frame,
    /// or is being evicted.
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
            // Only the first use writes to the line. If the slot changed meanwhile, it stays as it is.
            let _ = self.0.compare_exchange(again, again | USED, Ordering::Relaxed, Ordering::Relaxed);
        }
        Some(pinned)
    }

    /// The frame that the slot names; exact under the lock.
    pub fn frame(&self) -> Option<u32> {
        Slot::named(self.0.load(Ordering::Relaxed))
    }

    /// Names a frame that was published with the item; under the lock.
    ///
    /// # Panics
    /// If the number is not below [`FRAMES_MAX`].
    pub fn set(&self, frame: u32) {
        assert!((frame as usize) < FRAMES_MAX, "frame {frame}");
        self.0.store(frame + 1, Ordering::Relaxed);
    }

    /// Makes the slot name no frame; under the lock.
    pub fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// The same, and notes a number, of which the lower 30 bits are kept; under the lock.
    pub fn leave(&self, number: u32) {
        self.0.store(LEFT | number & NUMBER, Ordering::Relaxed);
    }

    /// How many numbers after the item's own `number` is, if the item has [left](Slot::leave). Numbers start again
    /// after 2^30, so a very old one may look new.
    pub fn left_before(&self, number: u32) -> Option<u32> {
        let word = self.0.load(Ordering::Relaxed);
        (word & LEFT != 0).then(|| number.wrapping_sub(word) & NUMBER)
    }

    /// Clears the mark; true if it was set.
    pub fn pass(&self) -> bool {
        self.0.load(Ordering::Relaxed) & USED != 0 && self.0.fetch_and(!USED, Ordering::Relaxed) & USED != 0
    }
}

#[cfg(all(test, not(feature = "loom")))]
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
    fn what_left_is_in_no_frame() {
        let slot = Slot::default();
        assert_eq!(slot.left_before(7), None);
        slot.set(0);
        assert_eq!(slot.left_before(7), None);
        for number in [0, 5, NUMBER, u32::MAX] {
            slot.leave(number);
            assert_eq!(slot.find(|_| -> Option<()> { panic!("none is named") }), None);
            assert!(slot.frame().is_none() && !slot.pass());
            let ages = [0, 1, 100].map(|age| slot.left_before(number.wrapping_add(age)));
            assert_eq!(ages, [0, 1, 100].map(Some), "{number}");
        }
        slot.set(9);
        assert_eq!((slot.frame(), slot.left_before(7)), (Some(9), None));
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
