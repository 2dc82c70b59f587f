//! Sources of other projects, each at one version and checksum, below the target directory. They are never part of this
//! repository.

use std::path::{Path, PathBuf};

use crate::files;
use crate::workspace::{self, Workspace};

/// An archive of sources.
pub(crate) struct Source {
    pub(crate) url: &'static str,
    pub(crate) sha256: &'static str,
    /// The directory in the archive.
    pub(crate) directory: &'static str,
    /// What is unpacked of that; all if it is empty.
    pub(crate) part: &'static str,
}

/// Unpacks a source in a directory, and fetches it first if it is not there. The inner error says why it cannot be had.
///
/// # Errors
/// If the archive is another one than expected: its address is wrong, or somebody has changed it.
pub(crate) fn unpacked(
    workspace: &Workspace,
    source: &Source,
    place: &Path,
) -> Result<Result<PathBuf, String>, String> {
    let (_, name) = source.url.rsplit_once('/').ok_or("the address has no name")?;
    let (archive, tree) = (place.join(name), place.join(source.directory));
    if !archive.exists() || demand(workspace, &archive, source.sha256).is_err() {
        files::parent(&archive)?;
        let mut fetch = workspace.command("curl");
        fetch.args(["-sSfL", "--retry", "2", "--max-time", "120", "-o"]).arg(&archive).arg(source.url);
        if let Err(why) = workspace::run(&mut fetch) {
            return Ok(Err(format!("{name}, which cannot be fetched: {why}")));
        }
        demand(workspace, &archive, source.sha256)?;
    }
    files::empty(&tree)?;
    let mut unpack = workspace.command("tar");
    unpack.arg("-xf").arg(&archive).arg("-C").arg(place).arg(Path::new(source.directory).join(source.part));
    workspace::run(&mut unpack)?;
    Ok(Ok(tree))
}

/// Fails if a file has another checksum.
pub(crate) fn demand(workspace: &Workspace, file: &Path, sha256: &str) -> Result<(), String> {
    let (sum, status) = workspace::capture(workspace.command("sha256sum").arg(file))?;
    if status.success() && sum.starts_with(sha256) {
        return Ok(());
    }
    Err(format!("{} has another checksum than {sha256}: {sum}", file.display()))
}
