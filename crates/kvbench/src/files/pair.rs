//! A pair on its way from one file to another, and the two ends of that way.

use std::io;

/// A pair. One is used for a whole file, so that its memory is taken once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pair {
    /// The key.
    pub(crate) key: Vec<u8>,
    /// The value; empty if there is none.
    pub(crate) value: Vec<u8>,
    /// Whether there is a value.
    pub(crate) valued: bool,
}

/// Gives the pairs of a file, one after the other, without holding more than one of them (and what its format
/// lays around it).
pub(crate) trait Source {
    /// Makes the next pair of it; false at the end. After an error it is not asked again.
    fn next(&mut self, pair: &mut Pair) -> io::Result<bool>;

    /// Offset in the file up to which it has read, for progress and for messages.
    fn at(&self) -> u64;

    /// Number of pairs that the file states in advance, if it does; not verified until all pairs are read.
    fn claimed(&self) -> Option<u64> {
        None
    }

    /// A remark to print at the end about what was skipped.
    fn remark(&self) -> Option<String> {
        None
    }
}

/// Writes pairs to a file.
pub(crate) trait Sink {
    /// Appends a pair. A value that the format has no place for is left out.
    fn put(&mut self, pair: &Pair) -> io::Result<()>;

    /// Completes the file and gives it its name.
    fn finish(self: Box<Self>) -> io::Result<()>;
}
