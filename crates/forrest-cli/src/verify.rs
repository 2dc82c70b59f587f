//! `verify`, `checkpoint` and `compact`: commands on a store as a whole.

use crate::codec::{Format, write_json_field};
use crate::failure::Failure;
use crate::interrupt;
use crate::session::{Answer, Session};
use crate::term;
use std::path::Path;
use std::time::Instant;

/// Reads everything stored and checks it, by the checksums and by walking all keys.
pub(crate) fn verify(session: &mut Session) -> Result<Answer, Failure> {
    let start = Instant::now();
    session.db.verify().map_err(|e| session.home.failed(e))?;
    interrupt::check()?;
    let names = session.db.keyspaces()?;
    let mut keys = 0;
    for name in &names {
        keys += session.db.keyspace(name)?.count(..).map_err(|e| session.home.failed(e))?;
        interrupt::check()?;
    }
    let took = start.elapsed();
    let (bytes, files) = session.home.files()?.unwrap_or_default();
    if session.format == Format::Jsonl {
        let mut out = vec![b'{'];
        write_json_field("store", session.home.url.as_bytes(), &mut out);
        let rest = format!(
            ", \"whole\": true, \"files\": {files}, \"bytes\": {bytes}, \"keyspaces\": {}, \"keys\": {keys}}}\n",
            names.len()
        );
        out.extend_from_slice(rest.as_bytes());
        session.write(&out)?;
        return Ok(Answer::Done);
    }
    session.line(format_args!(
        "whole: {} in {}, every checksum right, read in {}",
        term::size(bytes),
        term::plural(files, "file", "files"),
        session.term.plain(&term::span(took.as_nanos() as u64))
    ))?;
    session.line(format_args!(
        "       {} in {}, in order",
        term::plural(keys, "key", "keys"),
        term::plural(names.len() as u64, "keyspace", "keyspaces")
    ))?;
    Ok(Answer::Done)
}

/// Copies the store to a new directory.
pub(crate) fn checkpoint(session: &mut Session, path: &Path) -> Result<Answer, Failure> {
    let start = Instant::now();
    session.db.checkpoint(path).map_err(|e| session.home.failed(e))?;
    session.note(format_args!(
        "{} is a copy of {}, made in {}",
        path.display(),
        session.home.url,
        session.term.plain(&term::span(start.elapsed().as_nanos() as u64))
    ));
    Ok(Answer::Done)
}

/// Merges all tables and empties the logs.
pub(crate) fn compact(session: &mut Session) -> Result<Answer, Failure> {
    let (before, _) = session.home.files()?.unwrap_or_default();
    let start = Instant::now();
    session.db.compact().map_err(|e| session.home.failed(e))?;
    let took = start.elapsed();
    let (after, files) = session.home.files()?.unwrap_or_default();
    session.note(format_args!(
        "{} became {} in {}, in {}",
        term::size(before),
        term::size(after),
        term::plural(files, "file", "files"),
        session.term.plain(&term::span(took.as_nanos() as u64))
    ));
    Ok(Answer::Done)
}
