//! Whether the llds device is there: the ordered store in the kernel.
//!
//! Probing only: the engine that talks to the device is not here yet.

use std::io;
use std::path::Path;

/// Where the module puts its device.
pub const DEVICE_PATH: &str = "/dev/llds";

/// What was found at [`DEVICE_PATH`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Device {
    /// Nothing is there: the module is not loaded.
    Absent,
    /// It is there, and this user may not open it for reading and writing.
    Denied,
    /// It is there and can be opened.
    Openable,
    /// It is there and opening it failed otherwise.
    Broken(io::Error),
}

/// Looks for the device. Opens it for reading and writing, and closes it at once.
pub fn device() -> Device {
    probe(Path::new(DEVICE_PATH))
}

fn probe(path: &Path) -> Device {
    match std::fs::OpenOptions::new().read(true).write(true).open(path) {
        Ok(_) => Device::Openable,
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound => Device::Absent,
            io::ErrorKind::PermissionDenied => Device::Denied,
            _ => Device::Broken(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_from_a_path_that_gives_it() {
        assert!(matches!(probe(Path::new("/dev/null")), Device::Openable));
        assert!(matches!(probe(Path::new("/dev/forrest-has-no-such-device")), Device::Absent));
        // A directory cannot be opened for writing, by anybody.
        assert!(matches!(probe(Path::new("/")), Device::Broken(_)));
        // On this machine, whatever it has.
        println!("{:?}", device());
    }
}
