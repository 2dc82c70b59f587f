//! [`KeyRange`]: the types that can be given as a range of keys, and arithmetic on the ends of ranges.
//!
//! A bound may be longer than the longest key. It is then cut exactly, so that it stays at the same place
//! between the keys that can exist.

use crate::MAX_KEY_BYTES;
use std::ops::{Bound, RangeBounds};

/// A range of keys: `a..b`, `a..=b`, `a..`, `..b`, `..=b` or a pair of [`Bound`]s of any byte strings, or
/// `..` for all keys. A range whose start lies after its end is empty.
///
/// It exists beside [`RangeBounds`] so that `..` needs no type annotation. For another type that implements
/// [`RangeBounds`], pass `(r.start_bound(), r.end_bound())`.
///
/// ```
/// let db = forrest::Db::open("memory:")?;
/// db.set("b", "")?;
/// assert_eq!(db.count(..)?, 1);
/// assert_eq!(db.count("a".."c")?, 1);
/// assert_eq!(db.count([0xFF_u8]..=[0_u8])?, 0);
/// # Ok::<(), forrest::Error>(())
/// ```
pub trait KeyRange: sealed::Sealed {
    /// Start and end of the range.
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>);
}

/// Where a range of keys starts and ends.
pub type KeyBounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

mod sealed {
    pub trait Sealed {}
}

macro_rules! key_range {
    ($($range:ty),*) => {$(
        impl<K: AsRef<[u8]>> sealed::Sealed for $range {}
        impl<K: AsRef<[u8]>> KeyRange for $range {
            fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
                let start: Bound<&K> = self.start_bound();
                let end: Bound<&K> = self.end_bound();
                (start.map(K::as_ref), end.map(K::as_ref))
            }
        }
    )*};
}

key_range!(
    std::ops::Range<K>,
    std::ops::RangeInclusive<K>,
    std::ops::RangeFrom<K>,
    std::ops::RangeTo<K>,
    std::ops::RangeToInclusive<K>,
    (Bound<K>, Bound<K>)
);

impl sealed::Sealed for std::ops::RangeFull {}
impl KeyRange for std::ops::RangeFull {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

/// The same range with bounds that are at most as long as the longest key.
pub fn clamp<'k>(bounds: (Bound<&'k [u8]>, Bound<&'k [u8]>)) -> (Bound<&'k [u8]>, Bound<&'k [u8]>) {
    clamp_to(bounds, MAX_KEY_BYTES)
}

/// The same range for keys of at most `most` bytes, with bounds that are no longer. INVARIANT: no key lies
/// between a longer bound and its first `most` bytes, so the cut bound lies just above the key that equals
/// it.
pub fn clamp_to<'k>(
    (lower, upper): (Bound<&'k [u8]>, Bound<&'k [u8]>),
    most: usize,
) -> (Bound<&'k [u8]>, Bound<&'k [u8]>) {
    let lower = match lower {
        Bound::Included(key) | Bound::Excluded(key) if key.len() > most => Bound::Excluded(&key[..most]),
        fits => fits,
    };
    let upper = match upper {
        Bound::Included(key) | Bound::Excluded(key) if key.len() > most => Bound::Included(&key[..most]),
        fits => fits,
    };
    (lower, upper)
}

/// The smallest byte string above `key`, which may be longer than the longest key; `None` if there is none.
pub fn successor(key: &[u8]) -> Option<Vec<u8>> {
    if key.len() < MAX_KEY_BYTES {
        return Some([key, &[0]].concat());
    }
    prefix_end(&key[..MAX_KEY_BYTES])
}

/// The smallest byte string above all that begin with `prefix`; `None` if there is none. A range of all keys
/// with the prefix ends there.
///
/// ```
/// # let db = forrest::Db::open("memory:")?;
/// use std::ops::Bound;
/// db.set("/usr/bin/env", "")?;
/// let prefix = b"/usr/";
/// let end = forrest::prefix_end(prefix).map_or(Bound::Unbounded, Bound::Excluded);
/// assert_eq!(db.count((Bound::Included(prefix.to_vec()), end))?, 1);
/// # Ok::<(), forrest::Error>(())
/// ```
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xFF)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All strings of up to 3 of the bytes at which carrying matters.
    fn strings() -> Vec<Vec<u8>> {
        let mut all = vec![Vec::new()];
        for len in 0..3 {
            let longer = |string: &Vec<u8>| [0, 1, 0xFE, 0xFF].map(|byte| [&string[..], &[byte]].concat());
            let more: Vec<_> = all.iter().filter(|string| string.len() == len).flat_map(longer).collect();
            all.extend(more);
        }
        all
    }

    #[test]
    fn a_prefix_ends_where_the_next_begins() {
        let all = strings();
        for prefix in &all {
            let end = prefix_end(prefix);
            let is_in = |string: &Vec<u8>| string >= prefix && end.as_ref().is_none_or(|end| string < end);
            assert!(all.iter().all(|string| string.starts_with(prefix) == is_in(string)), "{prefix:?}");
        }
    }

    #[test]
    fn nothing_lies_between_a_key_and_its_successor() {
        let all = strings();
        for key in &all {
            let next = successor(key).expect("a short key has one");
            assert!(next > *key && all.iter().all(|other| other <= key || *other >= next));
        }
        let longest = vec![7; MAX_KEY_BYTES];
        let next = Some([&[7; MAX_KEY_BYTES - 1][..], &[8]].concat());
        assert_eq!(successor(&longest), next);
        assert_eq!(successor(&[&longest[..], &[1, 2]].concat()), next);
        assert_eq!(successor(&[0xFF; MAX_KEY_BYTES]), None);
    }

    #[test]
    fn bounds_that_are_too_long_are_cut() {
        use Bound::{Excluded, Included, Unbounded};
        let long = vec![7; MAX_KEY_BYTES + 1];
        let cut = &long[1..];
        assert_eq!(clamp((Included(&long), Excluded(&long))), (Excluded(cut), Included(cut)));
        assert_eq!(clamp((Excluded(&long), Included(&long))), (Excluded(cut), Included(cut)));
        assert_eq!(clamp((Included(cut), Excluded(cut))), (Included(cut), Excluded(cut)));
        assert_eq!(clamp((Unbounded, Unbounded)), (Unbounded, Unbounded));
    }
}
