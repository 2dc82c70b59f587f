//! Turns the error numbers of the module and its engine into errors that say what to do.

use crate::raw::{self as llds, Cause, DEVICE_PATH};
use forrest_engine::Op;
use forrest_engine::{Durability, Error, ErrorKind, Result};
use rustix::io::Errno;

/// Where the engine of llds runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `llds:`, in the kernel.
    Kernel,
    /// `llds-user:`, in this process.
    User,
}

impl Kind {
    /// The strongest durability of its stores.
    pub fn durability_max(self) -> Durability {
        match self {
            Kind::Kernel => Durability::Buffered,
            Kind::User => Durability::Memory,
        }
    }

    /// The beginning of its URLs.
    pub fn scheme(self) -> &'static str {
        match self {
            Kind::Kernel => "llds:",
            Kind::User => "llds-user:",
        }
    }
}

/// Whether an error number is one of `of`.
fn is(number: i32, of: &[Errno]) -> bool {
    of.iter().any(|errno| errno.raw_os_error() == number)
}

const NO_ROOM: &[Errno] = &[Errno::NOSPC, Errno::DQUOT, Errno::NOMEM];

fn kind(number: i32) -> ErrorKind {
    match number {
        _ if is(number, NO_ROOM) => ErrorKind::OutOfSpace,
        _ if is(number, &[Errno::BUSY]) => ErrorKind::Busy,
        _ if is(number, &[Errno::TOOBIG]) => ErrorKind::Limit,
        _ if is(number, &[Errno::NOTTY, Errno::BADF]) => ErrorKind::Unsupported,
        _ => ErrorKind::Io,
    }
}

/// The URL of a store, in quotes.
fn url(of: Kind, name: &str) -> String {
    format!("\"{}{}\"", of.scheme(), name.escape_debug())
}

/// Whether the device itself failed, rather than a store.
fn is_of_device(error: &llds::Error) -> bool {
    error.what().contains(DEVICE_PATH)
}

/// An error of the device itself, with advice.
pub(crate) fn device(error: &llds::Error) -> Error {
    let is_of_device = is_of_device(error);
    let advice = match (error.cause(), error.number()) {
        (Cause::Version(_), _) => "build the module and Forrest of one version",
        (Cause::Owner("group", _), _) => "do this as root, or with that group (newgrp)",
        (Cause::Owner(..), _) => "do this as root or as that user",
        (_, Some(number)) if is_of_device && is(number, &[Errno::NOENT, Errno::NXIO, Errno::NODEV]) => {
            "the kernel module is not loaded: load it (sudo modprobe llds; to build it, see kernel/llds/README.md), or run \
             \"forrest doctor\""
        }
        (_, Some(number)) if is_of_device && is(number, &[Errno::ACCESS, Errno::PERM]) => {
            "this user lacks permission: join the group llds and log in again; \"forrest doctor\" shows who has permission"
        }
        (_, Some(number)) if is(number, &[Errno::NOTTY]) => {
            "it is another version of the module, or another device"
        }
        (_, Some(number)) if is(number, &[Errno::BADF]) => "it is open read-only",
        _ => "",
    };
    let kind = match (error.cause(), error.number()) {
        (Cause::Version(_), _) => ErrorKind::Unsupported,
        (_, Some(number)) => kind(number),
        _ => ErrorKind::Io,
    };
    Error::new(kind, if advice.is_empty() { error.to_string() } else { format!("{error}; {advice}") })
}

/// Whether a destroy failed because the store does not have the name, or has it no more.
pub(crate) fn is_gone(error: &llds::Error) -> bool {
    !is_of_device(error) && error.number().is_some_and(|number| is(number, &[Errno::NOENT]))
}

/// The result of a destroy that failed: false if the store does not exist.
pub(crate) fn destroying(error: &llds::Error, name: &[u8]) -> Result<bool> {
    let url = format!("\"llds:{}\"", name.escape_ascii());
    match error.number().filter(|_| !is_of_device(error)) {
        Some(_) if is_gone(error) => Ok(false),
        Some(number) if is(number, &[Errno::ACCESS, Errno::PERM]) => Err(Error::new(
            ErrorKind::Io,
            format!("{url} belongs to another user; only its owner may destroy it"),
        )),
        Some(number) if is(number, &[Errno::INVAL]) => {
            Err(Error::invalid(format!("{url}: the name of a store has 1 to 255 bytes, none of them 0")))
        }
        _ => Err(device(error)),
    }
}

/// An error of opening a store.
pub(crate) fn opening(of: Kind, name: &str, error: &llds::Error) -> Error {
    let url = url(of, name);
    let Some(number) = error.number().filter(|_| !is_of_device(error)) else {
        let error = device(error);
        return Error::new(error.kind(), format!("{url}: {}", error.message()));
    };
    match number {
        _ if is(number, &[Errno::NOENT]) => {
            Error::new(ErrorKind::Io, format!("store {url} does not exist, and this open must not create it"))
        }
        _ if is(number, &[Errno::ACCESS]) => Error::new(
            ErrorKind::Io,
            format!(
                "{url} belongs to another user, and its mode denies this user access (see \"forrest llds list\")"
            ),
        ),
        _ if is(number, &[Errno::PERM]) => Error::new(
            ErrorKind::Io,
            format!("store {url} does not exist, and only the user of that name can create it"),
        ),
        _ if is(number, &[Errno::EXIST]) => Error::new(
            ErrorKind::Busy,
            format!("store {url} exists already; destroy it first, or choose another name"),
        ),
        _ if is(number, &[Errno::NFILE]) => Error::new(
            ErrorKind::OutOfSpace,
            format!("{url}: the kernel has the maximum number of stores (stores_max of the module)"),
        ),
        _ => using(of, name, error),
    }
}

/// An error of a store that is open.
pub(crate) fn using(of: Kind, name: &str, error: &llds::Error) -> Error {
    let url = url(of, name);
    match error.number() {
        Some(number) if is(number, &[Errno::BADF]) => read_only(of, name),
        Some(number) if is(number, NO_ROOM) => {
            Error::new(ErrorKind::OutOfSpace, format!("{url}: {}", no_room(number)))
        }
        Some(number) => Error::new(kind(number), format!("{url}: {error}")),
        None => Error::new(ErrorKind::Io, format!("{url}: {error}")),
    }
}

/// The error for an operation that returned `status`, a negative error number.
pub(crate) fn refused(of: Kind, name: &str, op: &Op<&[u8]>, status: i32) -> Error {
    let number = status.saturating_neg();
    match *op {
        Op::Add { delta, .. } if is(number, &[Errno::RANGE]) => {
            Error::invalid(format!("adding {delta} overflows the counter"))
        }
        Op::Add { .. } if is(number, &[Errno::INVAL]) => {
            Error::invalid("the value is not a counter: it does not have 8 bytes")
        }
        _ if is(number, NO_ROOM) => {
            Error::new(ErrorKind::OutOfSpace, format!("{}: {}", url(of, name), no_room(number)))
        }
        _ => {
            let why = llds::Error::describe(number);
            Error::new(kind(number), format!("{}: the change failed: {why}", url(of, name)))
        }
    }
}

/// The error for a change through a read-only handle.
pub(crate) fn read_only(of: Kind, name: &str) -> Error {
    Error::unsupported(format!("changing {}, which was opened read-only", url(of, name)))
}

/// Names the limit that was reached.
fn no_room(number: i32) -> &'static str {
    match number {
        _ if is(number, &[Errno::NOSPC]) => {
            "the store has reached its maximum size (capacity_bytes at its creation, or the module's store_bytes_max)"
        }
        _ if is(number, &[Errno::DQUOT]) => {
            "the stores of this user have reached the maximum size for a user"
        }
        _ => "the system is out of memory, or the control group has reached its limit",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_what_to_do() {
        let add = Op::Add { key: &b"n"[..], delta: 5 };
        let set = Op::Set { key: &b"n"[..], value: &b""[..] };
        let refused = |op, errno: Errno| refused(Kind::Kernel, "shop", op, -errno.raw_os_error());
        assert_eq!(
            refused(&add, Errno::RANGE).to_string(),
            "invalid argument: adding 5 overflows the counter"
        );
        assert_eq!(refused(&add, Errno::INVAL).kind(), ErrorKind::InvalidArgument);
        assert_eq!(refused(&set, Errno::INVAL).kind(), ErrorKind::Io);
        for errno in NO_ROOM {
            let error = refused(&set, *errno);
            assert_eq!(error.kind(), ErrorKind::OutOfSpace);
            assert!(error.to_string().starts_with("out of space: \"llds:shop\": "), "{error}");
        }
        // Invalid error numbers.
        for status in [i32::MIN, i32::MIN + 1, -70_000] {
            assert_eq!(super::refused(Kind::User, "shop", &set, status).kind(), ErrorKind::Io);
        }
        assert_eq!(
            read_only(Kind::User, "a\nb").to_string(),
            "unsupported: changing \"llds-user:a\\nb\", which was opened read-only"
        );
    }

    #[test]
    fn numbers_have_kinds() {
        let all = [
            (Errno::NOSPC, ErrorKind::OutOfSpace),
            (Errno::DQUOT, ErrorKind::OutOfSpace),
            (Errno::NOMEM, ErrorKind::OutOfSpace),
            (Errno::BUSY, ErrorKind::Busy),
            (Errno::TOOBIG, ErrorKind::Limit),
            (Errno::NOTTY, ErrorKind::Unsupported),
            (Errno::BADF, ErrorKind::Unsupported),
            (Errno::IO, ErrorKind::Io),
        ];
        for (errno, expected) in all {
            assert_eq!(kind(errno.raw_os_error()), expected, "{errno}");
        }
    }
}
