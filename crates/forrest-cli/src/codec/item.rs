//! [`Item`]: the content of a line, in any format; [`Mistake`]: an error in it.

use forrest::Op;
use std::borrow::Cow;

/// The content of a line of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    /// Nothing: it is empty or a comment.
    Nothing,
    /// The lines after it belong to this keyspace; `None` is the one that the input began in.
    Keyspace(Option<String>),
    /// A change, and the keyspace that it names, if it does.
    Change(Op, Option<String>),
}

/// A syntax error and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// Offset of the first wrong byte.
    pub(crate) at: usize,
    /// The message.
    pub(crate) what: Cow<'static, str>,
}

impl Mistake {
    /// `what` is wrong at `at`.
    pub(crate) fn new(at: usize, what: impl Into<Cow<'static, str>>) -> Self {
        Mistake { at, what: what.into() }
    }

    /// The same, in a text that begins `offset` bytes earlier.
    pub(super) fn after(self, offset: usize) -> Self {
        Mistake { at: self.at + offset, ..self }
    }
}
