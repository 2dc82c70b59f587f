//! Reading files of pairs or operations into a store.
//!
//! Each line is applied as it is read, so that files of any size need constant memory. An error ends the load and is
//! reported with file, line and column; the lines before it stay loaded.

use crate::codec::{Format, Item, Mistake, Reader};
use crate::failure::{Failure, Place};
use crate::interrupt::{self, Patient};
use crate::progress::Bar;
use crate::session::{Answer, Session};
use crate::term;
use forrest::{Keyspace, Op, Outcome, Swap};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Lines between two movements of the progress bar.
const LINES_PER_DRAW: u64 = 4096;

/// Smaller files load too fast for a progress bar.
const BAR_BYTES_MIN: u64 = 4 << 20;

/// The result of a load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loaded {
    /// Lines that were pairs or operations.
    pub(crate) changes: u64,
    /// [`Answer::NotFound`] if a compare-and-swap did not match.
    pub(crate) answer: Answer,
}

/// Loads a file, or standard input for `-`.
pub(crate) fn load(session: &mut Session, path: &Path) -> Result<Loaded, Failure> {
    let format = session.format.of_file(path);
    if path == Path::new("-") {
        let stdin = session.take_stdin()?;
        return Loader::new(session, format, "standard input").run(stdin, 0);
    }
    let name = path.display().to_string();
    let cannot = |e| Failure::io(format!("cannot read {name}"), e);
    let file = File::open(path).map_err(cannot)?;
    let metadata = file.metadata().map_err(cannot)?;
    if metadata.is_dir() {
        return Err(cannot(io::Error::from(io::ErrorKind::IsADirectory)));
    }
    // Reading a file ends soon, so Ctrl-C can wait for it and the progress bar be taken away in order.
    let file: Box<dyn Read> = if metadata.is_file() { Box::new(file) } else { Box::new(Patient(file)) };
    Loader::new(session, format, &name).run(BufReader::with_capacity(1 << 16, file), metadata.len())
}

struct Loader<'s, 'n> {
    session: &'s mut Session,
    /// Where the input begins.
    first: Keyspace,
    /// Where lines that name no keyspace go.
    space: Keyspace,
    /// The keyspace that the line before named, kept open for the next that does.
    named: Option<Keyspace>,
    reader: Reader,
    input: &'n str,
    changes: u64,
    mismatches: u64,
}

impl<'s, 'n> Loader<'s, 'n> {
    fn new(session: &'s mut Session, format: Format, input: &'n str) -> Self {
        let first = session.space.clone();
        let (space, reader) = (first.clone(), Reader::new(format));
        Loader { session, first, space, named: None, reader, input, changes: 0, mismatches: 0 }
    }

    fn run(mut self, mut reader: impl BufRead, len_bytes: u64) -> Result<Loaded, Failure> {
        self.session.changing();
        let bar = Bar::new(&self.session.term, self.session.quiet || len_bytes < BAR_BYTES_MIN, len_bytes);
        let (mut line, mut number, mut done_bytes) = (Vec::new(), 0, 0);
        loop {
            interrupt::check()?;
            line.clear();
            let read = reader.read_until(b'\n', &mut line);
            let read = read.map_err(|e| Failure::io(format!("cannot read {}", self.input), e))?;
            if read == 0 {
                break;
            }
            number += 1;
            done_bytes += read as u64;
            if number % LINES_PER_DRAW == 0 {
                bar.show(done_bytes, || format!("loading: {}", term::plural(self.changes, "pair", "pairs")));
            }
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            let place = |column| Place { input: self.input.to_owned(), line: number, column };
            let item = self
                .reader
                .line(line)
                .map_err(|Mistake { at, what }| Failure::Input(place(column(line, at)), what.into_owned()))?;
            self.take(item)
                .map_err(|e| e.at(Place { input: self.input.to_owned(), line: number, column: 0 }))?;
        }
        drop(bar);
        let end = || Place { input: self.input.to_owned(), line: number.max(1), column: 0 };
        self.reader.end().map_err(|what| Failure::Input(end(), what.to_owned()))?;
        if self.mismatches > 0 {
            let count = term::plural(self.mismatches, "compare-and-swap", "compare-and-swaps");
            self.session.note(format_args!("{}: {count} did not match", self.input));
        }
        Ok(Loaded { changes: self.changes, answer: Answer::found(self.mismatches == 0) })
    }

    fn take(&mut self, item: Item) -> Result<(), Failure> {
        match item {
            Item::Nothing => Ok(()),
            Item::Keyspace(name) => {
                self.space = match name {
                    Some(name) => self.session.db.keyspace(&name)?,
                    None => self.first.clone(),
                };
                Ok(())
            }
            Item::Change(op, None) => {
                let space = self.space.clone();
                self.apply(&space, &op)
            }
            Item::Change(op, Some(name)) => {
                let space = match self.named.take() {
                    Some(space) if space.name() == name => space,
                    _ => self.session.db.keyspace(&name)?,
                };
                self.apply(&space, &op)?;
                self.named = Some(space);
                Ok(())
            }
        }
    }

    fn apply(&mut self, space: &Keyspace, op: &Op) -> Result<(), Failure> {
        let outcome = space.apply(op.borrowed())?;
        self.changes += 1;
        self.mismatches += u64::from(matches!(outcome, Outcome::Swapped(Swap::Mismatch(_))));
        Ok(())
    }
}

/// The column, in characters counted from 1, of a byte of a line; bytes that are no UTF-8 count as one
/// character for each sequence that is broken.
pub(crate) fn column(line: &[u8], at: usize) -> u64 {
    let before = &line[..at.min(line.len())];
    before
        .utf8_chunks()
        .map(|c| c.valid().chars().count() + usize::from(!c.invalid().is_empty()))
        .sum::<usize>() as u64
        + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        assert_eq!(column(b"abc", 0), 1);
        assert_eq!(column(b"abc", 3), 4);
        assert_eq!(column("Ωx".as_bytes(), 2), 2);
        assert_eq!(column(b"\xff\xffx", 2), 3);
        assert_eq!(column(b"", 9), 1);
    }
}
