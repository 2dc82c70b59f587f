//! [`Error`]: an operation on the device that failed, and its cause.

use super::abi;
use rustix::io::Errno;
use std::fmt;

/// The result of an operation on the device.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failed operation on the device or a store, and its cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    what: &'static str,
    cause: Cause,
}

/// Why something failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The system's error number.
    System(i32),
    /// The module has another version of the ABI: this one.
    Version(u32),
    /// This process may not act for another "user" or "group", which has this number.
    Owner(&'static str, u32),
    /// The module's answer is invalid, for this reason.
    Nonsense(&'static str),
}

impl Error {
    pub(crate) fn system(what: &'static str, number: i32) -> Error {
        Error { what, cause: Cause::System(number) }
    }

    pub(super) fn nonsense(what: &'static str, why: &'static str) -> Error {
        Error { what, cause: Cause::Nonsense(why) }
    }

    pub(super) fn owner(what: &'static str, kind: &'static str, number: u32) -> Error {
        Error { what, cause: Cause::Owner(kind, number) }
    }

    pub(crate) fn version(what: &'static str, abi: u32) -> Error {
        Error { what, cause: Cause::Version(abi) }
    }

    /// The operation that failed.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// Why it failed.
    pub fn cause(&self) -> Cause {
        self.cause
    }

    /// The error number, if the system gave one.
    pub fn number(&self) -> Option<i32> {
        match self.cause {
            Cause::System(number) => Some(number),
            _ => None,
        }
    }

    /// The system's message for an error number, such as that of an answer.
    pub fn describe(number: i32) -> String {
        std::io::Error::from_raw_os_error(number).to_string()
    }
}

/// For errors of the system.
pub(super) fn system(what: &'static str) -> impl FnOnce(Errno) -> Error {
    move |errno| Error::system(what, errno.raw_os_error())
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: ", self.what)?;
        match self.cause {
            Cause::System(number) => f.write_str(&Error::describe(number)),
            Cause::Version(module) => {
                write!(
                    f,
                    "the module has version {module} of its interface, and this library version {}",
                    abi::ABI
                )
            }
            Cause::Owner(kind, number) => write!(f, "this process may not act for the {kind} {number}"),
            Cause::Nonsense(why) => write!(f, "invalid answer: {why}"),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_and_why() {
        let error = Error::system("open /dev/llds", libc::EACCES);
        assert_eq!(error.to_string(), "cannot open /dev/llds: Permission denied (os error 13)");
        assert_eq!((error.what(), error.number()), ("open /dev/llds", Some(libc::EACCES)));
        let error = Error::version("use /dev/llds", 8);
        assert_eq!(
            error.to_string(),
            "cannot use /dev/llds: the module has version 8 of its interface, and this library version 7"
        );
        let error = Error::nonsense("do a run of operations", "it is longer than its buffer");
        assert!(error.to_string().ends_with("invalid answer: it is longer than its buffer"));
        assert_eq!((error.cause(), error.number()), (Cause::Nonsense("it is longer than its buffer"), None));
    }
}
