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
    remove(path)?;
    fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Removes a directory with all that it has, if there is one.
pub(crate) fn remove(path: &Path) -> Result<(), String> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(format!("{}: {error}", path.display())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Workspace;

    #[test]
    fn an_empty_directory_has_nothing() {
        let workspace = Workspace::find().expect("this test runs in it");
        let path = workspace.target.join("tmp/an_empty_directory");
        for name in ["a", "b/c"] {
            assert_eq!(empty(&path), Ok(()));
            assert_eq!(entries(&path), Ok(Vec::new()));
            write(&path.join(name), b"").expect("it is written");
        }
        assert_eq!(remove(&path).and_then(|()| remove(&path)), Ok(()));
    }

    /// It was called empty, because it could be made: it was there.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_directory_that_cannot_be_emptied_is_an_error() {
        // Nobody may remove anything there.
        let why = empty(Path::new("/proc/self/task")).expect_err("it has the threads");
        assert!(why.starts_with("/proc/self/task: "), "{why}");
    }
}
