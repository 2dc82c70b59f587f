//! Writing a store so that [`load`](crate::load) makes it again, byte for byte.
//!
//! All keyspaces are written, or the one chosen by `--keyspace`. Where there are several, each pair's is
//! named as the format has it, also the default one. A regular file is written under another name beside
//! it and takes its place when it is complete, so that an error on the way destroys nothing.

use crate::codec::{Extent, Format, Shown, mdb};
use crate::failure::Failure;
use crate::interrupt;
use crate::session::Session;
use crate::term;
use forrest::Keyspace;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Dumps to a file, or to standard output for `-`.
pub(crate) fn dump(session: &mut Session, path: &Path) -> Result<(), Failure> {
    let format = session.format.of_file(path);
    let spaces = match session.space_is_chosen {
        true => vec![session.space.clone()],
        false => session.db.keyspaces()?.iter().map(|n| session.db.keyspace(n)).collect::<Result<_, _>>()?,
    };
    format.check_keyspaces(&spaces.iter().map(Keyspace::name).collect::<Vec<_>>())?;
    let whole = if format.needs_extent() { extent(session, &spaces)? } else { Extent::default() };
    if path == Path::new("-") {
        pairs(&spaces, format, &whole, |bytes| session.write(bytes))?;
    } else {
        let cannot = |e| Failure::io(format!("cannot write {}", path.display()), e);
        let target = Target::create(path).map_err(cannot)?;
        let mut file = BufWriter::with_capacity(1 << 16, &target.file);
        pairs(&spaces, format, &whole, |bytes| file.write_all(bytes).map_err(cannot))?;
        file.flush().map_err(cannot)?;
        drop(file);
        target.finish().map_err(cannot)?;
    }
    session.was_dumped = true;
    Ok(())
}

/// How much there is, and a note of what LMDB will not take.
fn extent(session: &Session, spaces: &[Keyspace]) -> Result<Extent, Failure> {
    let (mut whole, mut refused) = (Extent::default(), 0);
    for space in spaces {
        for entry in space.range(..) {
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

fn pairs(
    spaces: &[Keyspace],
    format: Format,
    whole: &Extent,
    mut write: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut out = Vec::new();
    for space in spaces {
        let name = (spaces.len() > 1).then(|| space.name());
        out.clear();
        format.write_begin(name, whole, &mut out);
        let mut count = 0;
        for entry in space.range(..) {
            interrupt::check()?;
            let entry = entry?;
            let value = entry.value()?;
            format.check_pair(entry.key(), &value)?;
            format.write_pair(name, entry.key(), Shown::Bytes(&value), &mut out);
            write(&out)?;
            out.clear();
            count += 1;
        }
        format.write_end(count, &mut out);
        write(&out)?;
    }
    Ok(())
}

/// A file being written.
struct Target {
    file: File,
    /// Its name until it is complete, and its final name; `None` if it is written in place, as a pipe or a device is.
    names: Option<(PathBuf, PathBuf)>,
}

impl Target {
    fn create(path: &Path) -> io::Result<Self> {
        let old = fs::metadata(path).ok();
        if old.as_ref().is_some_and(|m| !m.is_file()) {
            return Ok(Target { file: File::options().write(true).open(path)?, names: None });
        }
        // A link stays a link: its target is replaced.
        let complete = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let mut partial = complete.clone().into_os_string();
        partial.push(".partial");
        let file = File::create(&partial)?;
        let target = Target { file, names: Some((partial.into(), complete)) };
        if let Some(old) = old {
            target.file.set_permissions(old.permissions())?;
        }
        Ok(target)
    }

    fn finish(mut self) -> io::Result<()> {
        if let Some((partial, complete)) = &self.names {
            fs::rename(partial, complete)?;
            self.names = None;
        }
        Ok(())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some((partial, _)) = &self.names {
            // An incomplete file is of no use. Errors are dropped: there is no place to report them.
            let _ = fs::remove_file(partial);
        }
    }
}
