//! The word by which a leaf publishes what was appended to it.
//!
//! Bits 0 to 3: how many records were appended. Bits 4 to 7: how many are listed; of several records with the same
//! key, only the last is listed. Then four bits for each listed record, in key order: its number among the appended
//! records. A first number of 15 means that the other bits refer to orders that a batch has staged, see
//! [`crate::staged`].
//!
//! The argument. One writer at a time (it holds the leaf's lock) writes the record and its tag first and stores
//! the word last, with release. A reader loads the word once, with acquire, and reads only records that this word
//! lists, and tags of numbers below its count. All of these were written before the store that it read from, and
//! nothing in a leaf is written twice. So a reader need not validate or retry, and two readers never disagree about
//! a record, only about how many there are.

use crate::sync::{AtomicU64, Ordering, weakened};

/// Most records that a word can list.
pub(crate) const LISTED_MAX: usize = 14;

/// No number of appended records: the other bits of the word are the address of staged orders.
const REFERENCE: u64 = 15;

/// The word itself.
#[repr(transparent)]
pub(crate) struct OrderWord(AtomicU64);

/// The value of the word at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Order(pub(crate) u64);

impl OrderWord {
    pub(crate) fn new() -> OrderWord {
        OrderWord(AtomicU64::new(0))
    }

    /// What is published: an order, or a reference to staged ones ([`Order::reference`]).
    #[inline(always)]
    pub(crate) fn load(&self) -> Order {
        // ORDERING: acquire pairs with the release in `publish`: what is listed is complete.
        Order(self.0.load(Ordering::Acquire))
    }

    /// Publishes an order and with it all that was written before.
    #[inline(always)]
    pub(crate) fn publish(&self, order: Order) {
        self.0.store(order.0, weakened!("order", Release));
    }
}

impl Order {
    /// A word that refers to what is at an address, a multiple of 16.
    pub(crate) fn referring_to(address: usize) -> Order {
        debug_assert_eq!(address as u64 & REFERENCE, 0);
        Order(address as u64 | REFERENCE)
    }

    /// The address that a word refers to.
    #[inline(always)]
    pub(crate) fn reference(self) -> Option<usize> {
        (self.0 & REFERENCE == REFERENCE).then_some((self.0 & !REFERENCE) as usize)
    }

    /// How many records were appended.
    #[inline(always)]
    pub(crate) fn appended(self) -> usize {
        (self.0 & 15) as usize
    }

    /// How many of them are listed.
    #[inline(always)]
    pub(crate) fn listed(self) -> usize {
        (self.0 >> 4 & 15) as usize
    }

    /// The number of the listed record at a position.
    #[inline(always)]
    pub(crate) fn number(self, position: usize) -> usize {
        (self.0 >> (8 + 4 * position) & 15) as usize
    }

    /// Lists one more record, at a position that others make room for, or in the place of the one there.
    #[inline]
    pub(crate) fn with(self, position: usize, replaces: bool) -> Order {
        debug_assert!(self.appended() < LISTED_MAX && position <= self.listed());
        let number = self.appended() as u64;
        let list = self.0 >> 8;
        let low = list & ((1 << (4 * position)) - 1);
        let high = list >> (4 * (position + usize::from(replaces)));
        let list = low | (high << 4 | number) << (4 * position);
        let listed = self.listed() as u64 + u64::from(!replaces);
        Order(list << 8 | listed << 4 | (number + 1))
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    #[test]
    fn orders_insert_and_replace() {
        let word = OrderWord::new();
        let mut list: Vec<usize> = Vec::new();
        for (number, (position, replaces)) in
            [(0, false), (0, false), (2, false), (1, true), (1, false), (4, false), (0, true)]
                .into_iter()
                .enumerate()
        {
            word.publish(word.load().with(position, replaces));
            if replaces {
                list[position] = number;
            } else {
                list.insert(position, number);
            }
            let order = word.load();
            assert_eq!(order.appended(), number + 1);
            assert_eq!((0..order.listed()).map(|at| order.number(at)).collect::<Vec<_>>(), list);
        }
    }

    #[test]
    fn a_full_order_fits_the_word() {
        let word = OrderWord::new();
        (0..LISTED_MAX).for_each(|_| word.publish(word.load().with(0, false)));
        let order = word.load();
        assert_eq!((order.appended(), order.listed()), (LISTED_MAX, LISTED_MAX));
        (0..LISTED_MAX).for_each(|at| assert_eq!(order.number(at), LISTED_MAX - 1 - at));
    }
}
