//! Reports whether the module is loaded, its version, and who may use it. Changes nothing.

use super::abi;
use super::device::{DEVICE_PATH, Device};
use super::error::{Error, Result};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// This directory exists while the module is loaded.
const MODULE_PATH: &str = "/sys/module/llds";

/// The state of the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Whether the module is loaded; `None` if there is no `/sys/module`.
    pub is_loaded: Option<bool>,
    /// The device, if it exists.
    pub node: Option<Node>,
}

/// The device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The owner: a name, or a number if it has none.
    pub owner: String,
    /// The group: a name, or a number if it has none.
    pub group: String,
    /// The nine permission bits.
    pub mode: u32,
    /// The result of opening the device.
    pub opened: Opened,
}

/// The result of opening the device and asking for its version.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Opened {
    /// It can be read and written.
    ToWrite(abi::Version),
    /// It can be read only.
    ToRead(abi::Version),
    /// It cannot be used.
    Not(Error),
}

/// Looks for the module and its device, and asks the device for its version.
pub fn device() -> Found {
    let is_loaded = Path::new("/sys/module").is_dir().then(|| Path::new(MODULE_PATH).is_dir());
    Found { is_loaded, node: node(Path::new(DEVICE_PATH), Device::open) }
}

fn node(path: &Path, open: impl Fn(bool) -> Result<Device>) -> Option<Node> {
    let facts = fs::metadata(path).ok()?;
    let opened = match open(true) {
        Ok(device) => Opened::ToWrite(*device.version()),
        Err(error) => match open(false) {
            Ok(device) => Opened::ToRead(*device.version()),
            // Report the error of the attempt that asked for more.
            Err(_) => Opened::Not(error),
        },
    };
    Some(Node {
        owner: user_name(facts.uid()),
        group: group_name(facts.gid()),
        mode: facts.mode() & 0o777,
        opened,
    })
}

/// The name of a user, or the number if there is none.
pub fn user_name(uid: u32) -> String {
    named("/etc/passwd", uid)
}

/// The name of a group, or the number if there is none.
pub fn group_name(gid: u32) -> String {
    named("/etc/group", gid)
}

fn named(file: &str, id: u32) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    name_of(&text, id).map_or_else(|| id.to_string(), str::to_owned)
}

/// The name of a number in the text of `/etc/passwd` or `/etc/group`.
fn name_of(text: &str, id: u32) -> Option<&str> {
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(id)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_is_looked_at() {
        let refused = |_| Err(Error::system("open it", libc::EACCES));
        assert_eq!(node(Path::new("/dev/forrest-has-no-such-device"), refused), None);
        let null = node(Path::new("/dev/null"), refused).expect("every system has it");
        assert_eq!(null.opened, Opened::Not(Error::system("open it", libc::EACCES)));
        assert_eq!((null.owner.as_str(), null.mode), ("root", 0o666));
        // Any result is fine: machines differ.
        println!("{:?}", device());
    }

    #[test]
    fn names_are_found_by_their_numbers() {
        let text = "root:x:0:\n# odd\nllds:x:117:alice,bob\nbad:x:many:\n";
        assert_eq!(name_of(text, 0), Some("root"));
        assert_eq!(name_of(text, 117), Some("llds"));
        assert_eq!(name_of(text, 1), None);
    }
}
