//! Repair in place: a store that does not verify is replaced by what salvage copies of it.

use crate::builder::Builder;
use crate::destroy::{destroy, is_store};
use crate::salvage::salvage;
use forrest_engine::{Error, ErrorKind, Result};
use remixdb::Salvaged;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Repairs a store on disk, which must be closed. If all of it verifies, nothing is changed, and the result is `None`.
/// Otherwise what is intact is [salvaged](crate::salvage()) to a new store, which takes the name; the result says what
/// was lost. The old directory is kept as `PATH.damaged`, for the user to remove. Encrypted stores are not repaired.
///
/// Takes time and space in proportion to the data. While it works, the copy is at `PATH.repaired`. A crash leaves the
/// damaged store, or nothing at `PATH` and the complete copy beside it; another call then finishes.
///
/// # Errors
/// `Busy` if the store is open; `InvalidArgument` if `PATH.damaged` exists, or if the path is a URL; otherwise as
/// [`salvage`](crate::salvage()). Nothing is changed then.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("forest");
/// # let path = path.to_str().unwrap();
/// forrest::Db::open(path)?.set("oak", "Quercus")?;
/// assert!(forrest::repair(path)?.is_none()); // all of it verifies
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn repair(path: impl AsRef<Path>) -> Result<Option<Salvaged>> {
    let path = path.as_ref();
    let (damaged, repaired) = (beside(path, ".damaged"), beside(path, ".repaired"));
    if !is_store(path)? && !path.exists() && is_store(&repaired)? {
        // The process ended between the two renames.
        renamed(&repaired, path)?;
        return Ok(None);
    }
    match verified(path) {
        Ok(()) => return Ok(None),
        Err(error) if error.kind() == ErrorKind::Corrupt => {}
        Err(error) => return Err(error),
    }
    if damaged.exists() {
        let what = "an earlier repair has left it; remove it first";
        return Err(Error::invalid(format!("{}: {what}", damaged.display())));
    }
    if is_store(&repaired)? {
        destroy(&repaired)?;
    }
    let salvaged = salvage(path, &repaired)?;
    renamed(path, &damaged)?;
    renamed(&repaired, path)?;
    Ok(Some(salvaged))
}

fn verified(path: &Path) -> Result<()> {
    let Some(text) = path.to_str() else {
        return Err(Error::invalid(format!("repair of {}: the path is not UTF-8", path.display())));
    };
    // The parameter is the default. Without it, one that the path ends with would be taken.
    Builder::default().create(false).open(format!("{text}?durability=buffered"))?.verify()
}

/// A path with something after its last name.
fn beside(path: &Path, more: &str) -> PathBuf {
    // A slash at the end would make it a name within.
    let mut name = path.components().as_path().as_os_str().to_owned();
    name.push(more);
    name.into()
}

/// Renames a directory, durably.
fn renamed(from: &Path, to: &Path) -> Result<()> {
    let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // DURABILITY: each rename survives a loss of power before the next begins.
    fs::rename(from, to).and_then(|()| File::open(parent)?.sync_all()).map_err(|error| {
        let message = format!("renaming {} to {}: {error}", from.display(), to.display());
        Error::new(ErrorKind::Io, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;

    #[test]
    fn a_repair_keeps_what_is_whole_and_the_damaged_files() {
        let keep = tempfile::tempdir().unwrap();
        let path = keep.path().join("store");
        let db = Db::open(path.to_str().unwrap()).unwrap();
        for key in 0..1000_u32 {
            db.set(key.to_be_bytes(), [7; 100]).unwrap();
        }
        db.flush().unwrap();
        db.set("last", "one").unwrap();
        assert!(repair(&path).unwrap_err().kind() == ErrorKind::Busy);
        drop(db);
        assert!(repair(&path).unwrap().is_none());
        assert!(!beside(&path, ".damaged").exists());

        let table = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
        let table = table.into_iter().find(|path| path.extension().is_some_and(|it| it == "table")).unwrap();
        let mut bytes = fs::read(&table).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&table, bytes).unwrap();
        assert_eq!(repair(&path).unwrap().unwrap().lost.len(), 1);
        assert!(beside(&path, ".damaged").exists());
        let db = Db::open(path.to_str().unwrap()).unwrap();
        let left = db.count(..).unwrap();
        assert!(left > 900 && left < 1001, "{left}");
        assert_eq!(db.get("last").unwrap().unwrap(), "one");
        db.verify().unwrap();
        drop(db);

        // Ended between the two renames.
        fs::rename(&path, beside(&path, ".repaired")).unwrap();
        repair(&path).unwrap();
        assert!(path.exists() && !beside(&path, ".repaired").exists());
        let missing = keep.path().join("none");
        assert!(repair(&missing).unwrap_err().message().contains("no store"));
    }
}
