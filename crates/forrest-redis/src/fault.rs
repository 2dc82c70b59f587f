//! [`Fault`]: why a command fails. It is the reply, and its first word is the code that clients look at.

use crate::glob::TooComplex;
use forrest::ErrorKind;
use std::borrow::Cow;

/// An error reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault(pub(crate) Cow<'static, str>);

/// How a command ends whose reply is written.
pub(crate) type Done = Result<(), Fault>;

impl Fault {
    pub(crate) fn new(message: impl Into<Cow<'static, str>>) -> Fault {
        Fault(message.into())
    }
}

pub(crate) const SYNTAX: Fault = Fault(Cow::Borrowed("ERR syntax error"));
pub(crate) const NOT_INTEGER: Fault = Fault(Cow::Borrowed("ERR value is not an integer or out of range"));
pub(crate) const NOT_FLOAT: Fault = Fault(Cow::Borrowed("ERR value is not a valid float"));
pub(crate) const WRONG_TYPE: Fault =
    Fault(Cow::Borrowed("WRONGTYPE Operation against a key holding the wrong kind of value"));
pub(crate) const NO_KEY: Fault = Fault(Cow::Borrowed("ERR no such key"));
/// The store has more than `maxmemory`.
pub(crate) const FULL: Fault =
    Fault(Cow::Borrowed("OOM command not allowed when used memory > 'maxmemory'."));
pub(crate) const DAMAGED: Fault = Fault(Cow::Borrowed(
    "ERR the store has a pair that this server did not write; `forrest scan -k redis` shows its pairs",
));

impl From<forrest::Error> for Fault {
    fn from(error: forrest::Error) -> Fault {
        let code = match error.kind() {
            ErrorKind::OutOfSpace => "OOM",
            ErrorKind::Stopped | ErrorKind::Io => "MISCONF",
            _ => "ERR",
        };
        Fault(format!("{code} {error}").into())
    }
}

impl From<TooComplex> for Fault {
    fn from(_: TooComplex) -> Fault {
        Fault::new("ERR the pattern takes too many steps; use fewer stars, or one at its end")
    }
}
