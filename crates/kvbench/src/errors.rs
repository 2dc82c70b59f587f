//! Errors that say whose they are.

use std::fmt::Display;
use std::io;

/// An error of something, which it names.
pub(crate) fn told(of: impl Display, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{of}: {error}"))
}
