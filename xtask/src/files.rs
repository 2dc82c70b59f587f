//! Making files and directories, with errors that name them.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

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

/// A copy of a file, in a directory that is made. A process may have the file loaded that it replaces.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    parent(to)?;
    drop(fs::remove_file(to));
    fs::copy(from, to).map(drop).map_err(|error| format!("{}: {error}", from.display()))
}

/// A script that may be run.
pub(crate) fn script(path: &Path, text: &str) -> Result<(), String> {
    write(path, text.as_bytes())?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Makes the directory of a file.
pub(crate) fn parent(path: &Path) -> Result<(), String> {
    let directory = path.parent().unwrap_or(path);
    fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))
}

/// The paths of what a directory has, in any order.
pub(crate) fn entries(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: io::Error| format!("{}: {error}", directory.display());
    fs::read_dir(directory).map_err(failed)?.map(|entry| Ok(entry.map_err(failed)?.path())).collect()
}

/// An empty directory.
pub(crate) fn empty(path: &Path) -> Result<(), String> {
    drop(fs::remove_dir_all(path));
    fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))
}
