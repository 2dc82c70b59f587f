//! A PGM-index over a sorted array (Ferragina and Vinciguerra, VLDB 2020): lines that predict the place of a key to
//! within a fixed number of places, in levels.

use super::sorted::{self, Search};
use crate::data::U64;
use pgm_extra::index::external::Static;

/// A prediction is at most this many places off: 64 keys are eight cache lines, of which a binary search reads few.
const PLACES: usize = 64;
/// The same for the levels above, whose lines are compared one after the other.
const LINES: usize = 4;

/// The lines; none if there are no keys.
#[derive(Default)]
pub(crate) struct Lines(Option<Static<u64>>);

/// The array with its lines.
pub(crate) type Map = sorted::Map<u64, u64, Lines>;

impl Search<U64, u64> for Lines {
    fn learn(&mut self, keys: &[u64]) {
        // It refuses to learn nothing.
        self.0 = Static::new(keys, PLACES, LINES).ok();
    }

    #[inline]
    fn lower_bound(&self, keys: &[u64], key: &u64) -> usize {
        let at = self.0.as_ref().map_or(0, |lines| lines.lower_bound(keys, key));
        // Found by this program: 1.3.0 predicts with 53 bits, so among large numbers that are close to each other it is
        // too far off, and finds nothing.
        let is_right = at <= keys.len()
            && keys[..at].last().is_none_or(|before| before < key)
            && keys.get(at).is_none_or(|there| there >= key);
        if is_right { at } else { keys.partition_point(|stored| stored < key) }
    }
}
