//! The stores in the kernel as a whole: which there are, and how to be rid of one.

use crate::failure;
use crate::raw::{Device, Listed};
use forrest_engine::Result;

/// What the module is.
///
/// ```
/// match forrest::llds::version() {
///     Ok(version) => println!("keys up to {} bytes", version.key_bytes_max),
///     Err(error) => println!("{error}"), // what to do about it
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Version {
    /// The version of its interface. This library uses modules of one version only.
    pub interface: u32,
    /// The longest key that it takes, in bytes.
    pub key_bytes_max: u32,
    /// The longest value that it takes, in bytes: a parameter of the module.
    pub value_bytes_max: u64,
}

/// Asks the module what it is.
///
/// # Errors
/// `Io` if the module is not loaded or this user may not use it; `Unsupported` if it has another version of its
/// interface.
pub fn version() -> Result<Version> {
    let device = Device::open(false).map_err(|error| failure::device(&error))?;
    let version = device.version();
    Ok(Version {
        interface: version.abi,
        key_bytes_max: version.key_bytes_max,
        value_bytes_max: version.value_bytes_max,
    })
}

/// The stores that this user may read or write, or owns, sorted by name. What comes or goes meanwhile may be missing.
///
/// # Errors
/// As [`version`].
///
/// ```
/// for store in forrest::llds::list().unwrap_or_default() {
///     println!("{} keys in {}", store.keys, store.name.escape_ascii());
/// }
/// ```
pub fn list() -> Result<Vec<Listed>> {
    let listed = Device::open(false).and_then(|device| device.list());
    listed.map_err(|error| failure::device(&error))
}

/// Takes the name of a store away, at once: the next who opens it by that name makes another. Who has it open goes on
/// with it; its memory is given back when the last of them has closed it. False if there is none of that name.
///
/// # Errors
/// As [`version`]; `Io` as well if it is another user's.
///
/// ```
/// assert!(!forrest::llds::destroy("no store is called so").unwrap_or(false));
/// ```
pub fn destroy(name: impl AsRef<[u8]>) -> Result<bool> {
    let destroyed = Device::open(true).and_then(|device| device.destroy(name.as_ref()));
    match destroyed {
        Ok(()) => Ok(true),
        Err(error) => failure::destroying(&error, name.as_ref()),
    }
}
