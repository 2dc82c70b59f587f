//! Encodes operations and decodes answers. No other module knows their bytes.
//!
//! Answers come from the kernel, but are not trusted. Any bytes decode to an answer or an error, never to a
//! panic or to a length beyond the buffer. A wrong length that is possible gives a wrong answer.

use crate::raw::abi;
use forrest_engine::{Error, ErrorKind, Result, pairs};
use std::ops::Bound;

/// Operations, answers and pairs are padded to multiples of this.
const ALIGN: usize = 8;
const OP_BYTES: usize = size_of::<abi::Op>();
const ANSWER_BYTES: usize = size_of::<abi::Answer>();
const PAIR_BYTES: usize = size_of::<abi::Pair>();

/// Bytes of an answer without content.
pub(super) const ANSWER_BYTES_MIN: usize = ANSWER_BYTES;

/// A sequence of encoded operations.
#[derive(Default)]
pub(super) struct Ops {
    bytes: Vec<u8>,
}

/// The code, flags and limit of an operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) code: u8,
    pub(super) flags: u8,
    /// Maximum number of pairs of a scan; 0 is no limit.
    pub(super) limit: u32,
}

impl Head {
    pub(super) fn new(code: u8, flags: u8) -> Head {
        Head { code, flags, limit: 0 }
    }
}

impl Ops {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Appends an operation. REQUIRES: the lengths of key, value and other were checked against the store's
    /// limits.
    pub(super) fn push(&mut self, head: Head, key: &[u8], value: &[u8], other: &[u8]) {
        let start = self.bytes.len();
        let bytes = OP_BYTES + key.len() + value.len() + other.len();
        self.bytes.reserve(bytes.next_multiple_of(ALIGN));
        self.bytes.extend_from_slice(&[head.code, head.flags]);
        self.bytes.extend_from_slice(&(key.len() as u16).to_ne_bytes());
        for field in [value.len() as u32, other.len() as u32, head.limit] {
            self.bytes.extend_from_slice(&field.to_ne_bytes());
        }
        for part in [key, value, other] {
            self.bytes.extend_from_slice(part);
        }
        self.bytes.resize((start + bytes).next_multiple_of(ALIGN), 0);
    }

    /// Appends an operation on a range.
    pub(super) fn push_range(&mut self, head: Head, lower: Bound<&[u8]>, upper: Bound<&[u8]>) {
        self.push_range_with(head, lower, upper, &[]);
    }

    /// Appends a comparison of a range with pairs, which are encoded as in `forrest-engine`.
    pub(super) fn push_compare(&mut self, lower: Bound<&[u8]>, upper: Bound<&[u8]>, pairs: &[u8]) {
        let mut expected = Vec::new();
        for (key, value) in pairs::Pairs::new(pairs) {
            expected.extend_from_slice(&(key.len() as u32).to_ne_bytes());
            expected.extend_from_slice(&(value.len() as u32).to_ne_bytes());
            expected.extend_from_slice(key);
            expected.extend_from_slice(value);
            expected.resize(expected.len().next_multiple_of(ALIGN), 0);
        }
        self.push_range_with(Head::new(abi::COMPARE, 0), lower, upper, &expected);
    }

    fn push_range_with(&mut self, head: Head, lower: Bound<&[u8]>, upper: Bound<&[u8]>, value: &[u8]) {
        let (lower, lower_flag) = match lower {
            Bound::Unbounded => (&[][..], 0),
            Bound::Included(key) => (key, 0),
            Bound::Excluded(key) => (key, abi::BEHIND_KEY),
        };
        let (upper, upper_flag) = match upper {
            Bound::Unbounded => (&[][..], abi::NO_OTHER),
            Bound::Included(key) => (key, abi::WITH_OTHER),
            Bound::Excluded(key) => (key, 0),
        };
        let flags = head.flags | lower_flag | upper_flag;
        self.push(Head { flags, ..head }, lower, value, upper);
    }
}

/// Bytes of a pair as the engine has it.
pub(super) fn pair_bytes(key: &[u8], value: &[u8]) -> usize {
    (PAIR_BYTES + key.len() + value.len()).next_multiple_of(ALIGN)
}

/// The error for an invalid answer.
pub(super) fn nonsense(why: &str) -> Error {
    Error::new(ErrorKind::Io, format!("invalid answer of the llds engine: {why}"))
}

/// Decodes a number of 4 bytes.
fn number(bytes: &[u8; 4]) -> u32 {
    u32::from_ne_bytes(*bytes)
}

/// Decodes two numbers of 4 bytes.
fn two_numbers(bytes: &[u8; 8]) -> (u32, u32) {
    let (first, second) = bytes.split_at(4);
    let four = |part: &[u8]| number(part.try_into().expect("4 bytes"));
    (four(first), four(second))
}

/// Removes from `bytes` two numbers, and the content whose length `length` computes from them, with its
/// padding.
fn split_off<'a>(
    bytes: &mut &'a [u8],
    length: impl FnOnce(u32, u32) -> Option<usize>,
) -> Option<(u32, u32, &'a [u8])> {
    let (head, rest) = bytes.split_first_chunk::<8>()?;
    let (first, second) = two_numbers(head);
    let length = length(first, second)?;
    let (body, rest) = rest.split_at_checked(length.checked_next_multiple_of(ALIGN)?)?;
    *bytes = rest;
    Some((first, second, &body[..length]))
}

const _: () = assert!(ANSWER_BYTES == 8 && PAIR_BYTES == 8);

/// A sequence of encoded answers.
pub(super) struct Answers<'a>(&'a [u8]);

/// The answer to an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer<'a> {
    pub(super) status: i32,
    pub(super) bytes: &'a [u8],
}

impl<'a> Answers<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Answers<'a> {
        Answers(bytes)
    }

    /// The next answer. Fails if there is none.
    pub(super) fn next(&mut self) -> Result<Answer<'a>> {
        let next = split_off(&mut self.0, |_, length| usize::try_from(length).ok());
        let (status, _, bytes) = next.ok_or_else(|| nonsense("an answer is missing or cut off"))?;
        Ok(Answer { status: status.cast_signed(), bytes })
    }

    /// Fails if bytes are left.
    pub(super) fn end(&self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(nonsense("bytes follow the last answer")) }
    }
}

impl<'a> Answer<'a> {
    /// The 8 bytes of an answer that is a number.
    pub(super) fn eight_bytes(&self) -> Result<[u8; 8]> {
        self.bytes.try_into().map_err(|_| nonsense("a number is not 8 bytes long"))
    }

    /// The pairs of a scan's answer.
    pub(super) fn pairs(&self) -> Pairs<'a> {
        Pairs::new(self.bytes)
    }
}

/// The pairs of a scan.
#[derive(Clone)]
pub(super) struct Pairs<'a>(&'a [u8]);

impl<'a> Pairs<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Pairs<'a> {
        Pairs(bytes)
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Result<(&'a [u8], &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let next = split_off(&mut self.0, |key, value| {
            (key as usize <= abi::KEY_BYTES_MAX).then(|| (key as usize).checked_add(value as usize)).flatten()
        });
        Some(match next {
            Some((key_bytes, _, body)) => Ok(body.split_at(key_bytes as usize)),
            None => {
                self.0 = &[];
                Err(nonsense("a pair is cut off, or its key is too long"))
            }
        })
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
