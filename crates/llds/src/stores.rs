//! Lists and destroys the stores in the kernel.

use crate::failure;
use crate::name::{self, Name};
use crate::raw::{Device, Listed};
use forrest_engine::Result;

/// The module's version and limits.
///
/// ```
/// match forrest::llds::version() {
///     Ok(version) => println!("keys up to {} bytes", version.key_bytes_max),
///     Err(error) => println!("{error}"), // the message says what to do
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Version {
    /// The version of the interface. This library supports one version only.
    pub interface: u32,
    /// Maximum key length, in bytes.
    pub key_bytes_max: u32,
    /// Maximum value length, in bytes: a parameter of the module.
    pub value_bytes_max: u64,
}

/// Asks the module for its version and limits.
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

/// The stores that this user may read or write, or owns, with their names as a URL has them, sorted. A store that is
/// created or destroyed meanwhile may be missing.
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
    let (mut listed, own) = (listed.map_err(|error| failure::device(&error))?, name::own());
    for store in &mut listed {
        let user = store.is_of_user.then_some(store.uid);
        store.name = Name { user, bytes: &store.name }.text(own);
    }
    listed.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(listed)
}

/// Removes a store's name at once: opening the name again creates another store. Open handles keep working,
/// and the store's memory is freed when the last of them is closed. Returns false if no store has the name.
///
/// # Errors
/// As [`version`]; `Io` also if the store is another user's; `InvalidArgument` for a name of nobody.
///
/// ```
/// assert!(!forrest::llds::destroy("no store has this name").unwrap_or(false));
/// ```
pub fn destroy(name: impl AsRef<[u8]>) -> Result<bool> {
    let Name { user, bytes } = Name::of(name.as_ref(), name::own())?;
    let destroyed = Device::open(true).and_then(|device| device.destroy(user, bytes));
    match destroyed {
        Ok(()) => Ok(true),
        Err(error) => failure::destroying(&error, name.as_ref()),
    }
}
