//! Pairs as one byte string: what a comparison of a range expects ([`Op::CompareRange`](crate::Op::CompareRange)).
//!
//! Each pair is the length of its key and of its value, as two little-endian `u32`, and then their bytes. Keys ascend.
//! Any bytes decode to pairs or are refused by [`check`]: lengths are compared with the bytes that are left.

use crate::error::{Error, Result};
use forrest_index::Value;
use std::ops::ControlFlow;

/// Bytes of a pair in addition to its key and value.
pub const PAIR_BYTES: usize = 8;

/// Appends a pair. REQUIRES: the lengths of key and value were checked.
pub fn push(pairs: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    pairs.extend_from_slice(&(key.len() as u32).to_le_bytes());
    pairs.extend_from_slice(&(value.len() as u32).to_le_bytes());
    pairs.extend_from_slice(key);
    pairs.extend_from_slice(value);
}

/// The pairs of a byte string. Ends at the first bytes that are no pair; [`check`] refuses such bytes.
#[derive(Debug, Clone)]
pub struct Pairs<'p>(&'p [u8]);

impl<'p> Pairs<'p> {
    /// All of them.
    pub fn new(pairs: &'p [u8]) -> Pairs<'p> {
        Pairs(pairs)
    }
}

impl<'p> Iterator for Pairs<'p> {
    type Item = (&'p [u8], &'p [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, rest) = self.0.split_first_chunk::<4>()?;
        let (value, rest) = rest.split_first_chunk::<4>()?;
        let (key, rest) = rest.split_at_checked(u32::from_le_bytes(*key) as usize)?;
        let (value, rest) = rest.split_at_checked(u32::from_le_bytes(*value) as usize)?;
        self.0 = rest;
        Some((key, value))
    }
}

/// Checks that bytes are pairs, and that their keys ascend and lie in a range.
///
/// # Errors
/// `InvalidArgument`.
pub fn check(pairs: &[u8], start: &[u8], end: Option<&[u8]>) -> Result<()> {
    let mut left = Pairs::new(pairs);
    let mut last: Option<&[u8]> = None;
    for (key, _) in left.by_ref() {
        if last.is_some_and(|last| last >= key) {
            let (last, key) = (last.unwrap_or_default().escape_ascii(), key.escape_ascii());
            return Err(Error::invalid(format!(
                "the expected keys of a range must ascend, and \"{key}\" follows \"{last}\""
            )));
        }
        if key < start || end.is_some_and(|end| key >= end) {
            let key = key.escape_ascii();
            return Err(Error::invalid(format!("the expected key \"{key}\" is not in the range")));
        }
        last = Some(key);
    }
    if !left.0.is_empty() {
        let at = pairs.len() - left.0.len();
        return Err(Error::invalid(format!("the expected pairs of a range are malformed at byte {at}")));
    }
    Ok(())
}

/// Compares a range with the expected pairs, in one pass over the range in ascending order, which
/// [`Outcome::of_range`](crate::Outcome::of_range) makes an outcome.
///
/// ```
/// use forrest_engine::pairs::{self, Comparison};
/// let mut expected = Vec::new();
/// pairs::push(&mut expected, b"oak", b"Quercus");
/// let mut comparison = Comparison::new(&expected);
/// assert!(comparison.see(b"ash", b"Fraxinus").is_break());
/// assert_eq!(comparison.end().as_deref(), Some(&b"ash"[..]));
/// ```
#[derive(Debug)]
pub struct Comparison<'p> {
    expected: Pairs<'p>,
    next: Option<(&'p [u8], &'p [u8])>,
    differs: Option<Value>,
}

impl<'p> Comparison<'p> {
    /// A comparison with these pairs. REQUIRES: [`check`] has passed them.
    pub fn new(expected: &'p [u8]) -> Comparison<'p> {
        let mut expected = Pairs::new(expected);
        let next = expected.next();
        Comparison { expected, next, differs: None }
    }

    /// Compares the next pair of the range. Breaks at the first difference.
    pub fn see(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        let same = match self.next {
            Some((expected, content)) if expected == key => content == value,
            Some((expected, _)) if expected < key => {
                self.differs = Some(expected.into());
                return ControlFlow::Break(());
            }
            _ => false,
        };
        if !same {
            self.differs = Some(key.into());
            return ControlFlow::Break(());
        }
        self.next = self.expected.next();
        ControlFlow::Continue(())
    }

    /// The first key that is missing, not expected, or has another value; `None` if the range is as expected.
    pub fn end(self) -> Option<Value> {
        self.differs.or_else(|| self.next.map(|(key, _)| key.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn encoded(pairs: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        pairs.iter().for_each(|(key, value)| push(&mut bytes, key.as_bytes(), value.as_bytes()));
        bytes
    }

    #[test]
    fn a_comparison_names_the_first_key_that_differs() {
        let compare = |expected: &[(&str, &str)], found: &[(&str, &str)]| {
            let expected = encoded(expected);
            let mut comparison = Comparison::new(&expected);
            let _ =
                found.iter().try_for_each(|(key, value)| comparison.see(key.as_bytes(), value.as_bytes()));
            comparison.end().map(|key| String::from_utf8(key.to_vec()).expect("text"))
        };
        let all = [("a", "1"), ("b", "2"), ("c", "3")];
        let differs = |key: &str| Some(key.to_owned());
        assert_eq!(compare(&[], &[]), None);
        assert_eq!(compare(&all, &all), None);
        assert_eq!(compare(&[], &all), differs("a"));
        assert_eq!(compare(&all, &[]), differs("a"));
        assert_eq!(compare(&all[..2], &all), differs("c"));
        assert_eq!(compare(&all, &all[..2]), differs("c"));
        assert_eq!(compare(&all, &all[1..]), differs("a"));
        assert_eq!(compare(&all[1..], &all), differs("a"));
        assert_eq!(compare(&all, &[("a", "1"), ("b", "1"), ("c", "3")]), differs("b"));
        assert_eq!(compare(&all, &[("a", "1"), ("c", "3")]), differs("b"));
        assert_eq!(compare(&all, &[("a", "1"), ("aa", ""), ("b", "2"), ("c", "3")]), differs("aa"));
    }

    #[test]
    fn any_bytes_are_pairs_or_are_refused() {
        let good = encoded(&[("a", ""), ("b", "22"), ("bb", "3")]);
        assert!(check(&good, b"a", Some(b"c")).is_ok() && check(&[], b"x", Some(b"x")).is_ok());
        let refused = |bytes: &[u8], start: &[u8], end: Option<&[u8]>| {
            let error = check(bytes, start, end).expect_err("it is refused");
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            error.to_string()
        };
        assert_eq!(
            refused(&good, b"aa", None),
            "invalid argument: the expected key \"a\" is not in the range"
        );
        assert!(refused(&good, b"", Some(b"bb")).contains("\"bb\" is not in the range"));
        let twice = encoded(&[("a", ""), ("a", "")]);
        assert!(refused(&twice, b"", None).contains("must ascend, and \"a\" follows \"a\""));
        for cut in 1..good.len() {
            let cut = &good[..cut];
            let decoded: usize =
                Pairs::new(cut).map(|(key, value)| PAIR_BYTES + key.len() + value.len()).sum();
            if decoded < cut.len() {
                assert!(refused(cut, b"", None).contains(&format!("malformed at byte {decoded}")));
            }
        }
        assert!(refused(&[0xFF; 40], b"", None).contains("malformed at byte 0"));
    }
}
