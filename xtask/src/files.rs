//! Making files and directories, with errors that name them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// A symbolic link, in place of what was there.
pub(crate) fn link(to: impl AsRef<Path>, at: &Path) -> Result<(), String> {
    drop(fs::remove_file(at));
    symlink(to, at).map_err(|error| format!("{}: {error}", at.display()))
}

/// A file, in a directory that is made.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<(), String> {
    parent(path)?;
    fs::write(path, content).map_err(|error| format!("{}: {error}", path.display()))
}

/// Makes the directory of a file.
pub(crate) fn parent(path: &Path) -> Result<(), String> {
    let directory = path.parent().unwrap_or(path);
    fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))
}

/// An empty directory.
pub(crate) fn empty(path: &Path) -> Result<(), String> {
    drop(fs::remove_dir_all(path));
    fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))
}
