//! Writing a store so that [`load`](crate::load) makes it again, byte for byte.
//!
//! All keyspaces are written, or the one chosen by `--keyspace`. Where there are several, each pair's is
//! named as the format has it, also the default one. A regular file is written under another name beside
//! it, which no file has, and takes its place when it is complete and survives power loss, so that an error on the way
//! destroys nothing.
//!
//! Where the home has snapshots, the dump is the state of one moment. The formats `ops` and `jsonl` have the time at
//! which a value expires; others do not, and a note gives the number of such values.

use crate::codec::{Extent, Format, Shown, mdb};
use crate::failure::Failure;
use crate::interrupt;
use crate::session::Session;
use crate::term;
use forrest::{Capability, Entry, View};
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use tempfile::TempPath;

/// Dumps to a file, or to standard output for `-`.
pub(crate) fn dump(session: &mut Session, path: &Path) -> Result<(), Failure> {
    let format = session.format.of_file(path);
    // Also before the snapshot: a store in memory may remove what it shows.
    let may_expire = session.db.stats()?.expiring > 0;
    let spaces = spaces(session)?;
    format.check_keyspaces(&spaces.iter().map(|space| &*space.name).collect::<Vec<_>>())?;
    let may_expire = may_expire || session.db.stats()?.expiring > 0;
    let whole = if format.needs_extent() { extent(session, &spaces)? } else { Extent::default() };
    let expiring;
    if path == Path::new("-") {
        expiring = pairs(&spaces, may_expire, format, &whole, |bytes| session.write(bytes))?;
    } else {
        let cannot = |e| Failure::io(format!("cannot write {}", path.display()), e);
        let target = Target::create(path).map_err(cannot)?;
        let mut file = BufWriter::with_capacity(1 << 16, &target.file);
        expiring = pairs(&spaces, may_expire, format, &whole, |bytes| file.write_all(bytes).map_err(cannot))?;
        file.flush().map_err(cannot)?;
        drop(file);
        target.finish().map_err(cannot)?;
    }
    if expiring > 0 && !format.has_expiry() {
        session.note(format_args!(
            "{}, and the dump does not have when: they will stay where it is loaded; use the format ops or jsonl",
            term::plural(expiring, "value expires", "values expire")
        ));
    }
    session.was_dumped = true;
    Ok(())
}

/// A keyspace to be dumped.
struct Space {
    name: String,
    view: View,
}

/// The keyspaces, as they are at one moment if the home has snapshots.
fn spaces(session: &Session) -> Result<Vec<Space>, Failure> {
    let names = match session.space_is_chosen {
        true => vec![session.space.name().to_owned()],
        false => session.db.keyspaces()?,
    };
    let snapshot = match session.db.capabilities().has(Capability::Snapshots) {
        true => Some(session.db.snapshot()?),
        false => None,
    };
    let space = |name: String| {
        let view = match &snapshot {
            Some(snapshot) => snapshot.keyspace(&name)?,
            None => View::clone(&*session.db.keyspace(&name)?),
        };
        Ok(Space { name, view })
    };
    names.into_iter().map(space).collect()
}

/// How much there is, and a note of what LMDB will not take.
fn extent(session: &Session, spaces: &[Space]) -> Result<Extent, Failure> {
    let (mut whole, mut refused) = (Extent::default(), 0);
    for space in spaces {
        for entry in space.view.range(..) {
            interrupt::check()?;
            let entry = entry?;
            whole.pairs += 1;
            whole.bytes += (entry.key().len() + entry.value()?.len()) as u64;
            refused += u64::from(!(1..=mdb::KEY_BYTES_MAX).contains(&entry.key().len()));
        }
    }
    if refused > 0 {
        session.note(format_args!(
            "{} empty or longer than {} bytes, which LMDB does not take: mdb_load will stop there",
            term::plural(refused, "key is", "keys are"),
            mdb::KEY_BYTES_MAX
        ));
    }
    Ok(whole)
}

/// Writes all pairs. Returns how many of them expire.
fn pairs(
    spaces: &[Space],
    may_expire: bool,
    format: Format,
    whole: &Extent,
    mut write: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let (mut out, mut expiring) = (Vec::new(), 0);
    for space in spaces {
        let name = (spaces.len() > 1).then_some(&*space.name);
        out.clear();
        format.write_begin(name, whole, &mut out);
        let mut count = 0;
        for entry in space.view.range(..) {
            interrupt::check()?;
            let expires = write_entry(format, name, (&space.view, &entry?), may_expire, &mut out)?;
            expiring += u64::from(expires);
            write(&out)?;
            out.clear();
            count += 1;
        }
        format.write_end(count, &mut out);
        write(&out)?;
    }
    Ok(expiring)
}

/// Appends the line of a pair, with the time at which it expires if the format has a place for that. True if it
/// expires.
pub(crate) fn write_entry(
    format: Format,
    keyspace: Option<&str>,
    (view, entry): (&View, &Entry),
    may_expire: bool,
    out: &mut Vec<u8>,
) -> Result<bool, Failure> {
    let (key, value) = (entry.key(), entry.value()?);
    format.check_pair(key, &value)?;
    let expires = if may_expire { view.expires(key)? } else { None };
    match expires.and_then(|at| at.duration_since(UNIX_EPOCH).ok()) {
        Some(at) if format.has_expiry() => {
            let ms = at.as_millis().try_into().unwrap_or(u64::MAX);
            format.write_expiring(keyspace, (key, &value), ms, out);
        }
        _ => format.write_pair(keyspace, key, Shown::Bytes(&value), out),
    }
    Ok(expires.is_some())
}

/// A file being written.
struct Target {
    file: File,
    /// Its name until it is complete, with which it is removed if it never is, and its final name; `None` if it is
    /// written in place, as a pipe or a device is.
    names: Option<(TempPath, PathBuf)>,
}

impl Target {
    fn create(path: &Path) -> io::Result<Self> {
        let old = fs::metadata(path).ok();
        if old.as_ref().is_some_and(|m| !m.is_file()) {
            return Ok(Target { file: File::options().write(true).open(path)?, names: None });
        }
        // A link stays a link: its target is replaced.
        let complete = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let file = tempfile::Builder::new()
            .prefix("forrest-dump-")
            .suffix(".partial")
            // Less the mask of the process, as for any new file.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory_of(&complete))?;
        if let Some(old) = old {
            file.as_file().set_permissions(old.permissions())?;
        }
        let (file, partial) = file.into_parts();
        Ok(Target { file, names: Some((partial, complete)) })
    }

    fn finish(self) -> io::Result<()> {
        let Some((partial, complete)) = self.names else { return Ok(()) };
        // DURABILITY: the content before the name, or the file could be empty after power loss; then the name.
        self.file.sync_all()?;
        partial.persist(&complete)?;
        File::open(directory_of(&complete))?.sync_all()
    }
}

/// The directory of a file.
fn directory_of(file: &Path) -> &Path {
    let above = file.parent().filter(|above| !above.as_os_str().is_empty());
    above.unwrap_or(Path::new("."))
}
