//! Reading files of pairs or operations into a store.
//!
//! Lines are applied as they are read, pairs in batches, so that files of any size need constant memory. An error ends
//! the load and is reported with file, line and column; the lines before it stay loaded. With [`Refused`] such a line
//! is written to a file, and the load goes on. A line that is longer than any pair is wrong, and is not read further.
//!
//! As long as the keys ascend, batches are ingested instead on disk, from the [`BATCHES_BEFORE_INGEST`]th on. An ingest
//! ends after [`INGEST_BYTES_MAX`], at the end of the pairs of a keyspace, or with the first key that is out of order:
//! then the load goes on in batches.

use crate::codec::{Extent, Format, Item, Mistake, Reader, START_BYTES, Shown};
use crate::failure::{Failure, Place};
use crate::interrupt::{self, Patient};
use crate::progress::Bar;
use crate::session::{Answer, Session};
use crate::term;
use forrest::{Capability, ErrorKind, Ingest, Keyspace, Op, WriteBatch};
use std::fs::{self, File, Metadata};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Lines between two movements of the progress bar.
const LINES_PER_DRAW: u64 = 4096;

/// Smaller files load too fast for a progress bar.
const BAR_BYTES_MIN: u64 = 4 << 20;

/// Pairs of a batch, and bytes of its keys and values.
const BATCH_PAIRS_MAX: usize = 1000;
const BATCH_BYTES_MAX: usize = 1 << 20;

/// Bytes of a line that is passed over which are held at once.
const PIECE_BYTES: u64 = 64 << 10;

/// An ingest waits for several syncs, so it is not for few pairs.
const BATCHES_BEFORE_INGEST: usize = 16;
/// Bytes of keys and values of an ingest. If the process is killed, as much is not loaded that was read.
const INGEST_BYTES_MAX: usize = 256 << 20;

/// The result of a load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loaded {
    /// Lines that were pairs or operations.
    pub(crate) changes: u64,
    /// [`Answer::NotFound`] if a compare-and-swap did not match.
    pub(crate) answer: Answer,
}

/// Where wrong lines go.
pub(crate) struct Refused {
    path: PathBuf,
    /// Each line is written at once: Ctrl-C may end the process while it opens a pipe.
    file: File,
    lines: u64,
    /// What the last lines are in, where a line before them says so: their format, and their keyspace unless it is that
    /// in which the load began.
    part: Option<(Format, Option<String>)>,
}

impl Refused {
    /// Makes the file.
    pub(crate) fn create(path: &Path) -> Result<Refused, Failure> {
        let file = File::create(path).map_err(|error| cannot_write(path, error))?;
        Ok(Refused { path: path.to_owned(), file, lines: 0, part: None })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all(bytes).map_err(|error| cannot_write(&self.path, error))
    }

    fn add(&mut self, lines: &[u8]) -> Result<(), Failure> {
        self.lines += lines.split(|&byte| byte == b'\n').count() as u64;
        self.write(&[lines, b"\n"].concat())
    }

    /// The next lines are of this keyspace. They say so in the formats in which a line or a header selects one.
    fn enter(&mut self, format: Format, space: &Keyspace, first: &Keyspace) -> Result<(), Failure> {
        let name = (space.name() != first.name()).then(|| space.name().to_owned());
        let is_there = match &self.part {
            Some(part) => *part == (format, name.clone()),
            // Lines without a directive are of the first keyspace, and pairs without a header cannot be loaded.
            None => name.is_none() && !format.has_headers(),
        };
        if is_there || !(format.has_directives() || format.has_headers()) {
            return Ok(());
        }
        self.leave()?;
        let named = if format.has_headers() { name.as_deref() } else { Some(space.name()) };
        let mut begin = Vec::new();
        format.write_begin(named, &Extent::default(), &mut begin);
        self.part = Some((format, name));
        self.write(&begin)
    }

    /// Ends the pairs after a header.
    fn leave(&mut self) -> Result<(), Failure> {
        let mut end = Vec::new();
        if let Some((format, _)) = self.part.take() {
            format.write_end(0, &mut end);
        }
        self.write(&end)
    }

    /// Adds lines, of which the last goes on in `rest`, in pieces. Returns the bytes that it read.
    fn add_long(&mut self, lines: &[u8], mut rest: Rest<'_, impl BufRead>) -> Result<u64, Failure> {
        self.lines += lines.split(|&byte| byte == b'\n').count() as u64;
        self.write(lines)?;
        while let Some(piece) = rest.next()? {
            self.write(piece)?;
        }
        self.write(b"\n")?;
        Ok(rest.read_bytes)
    }

    /// Ends the file, and notes how many lines there were.
    pub(crate) fn finish(mut self, session: &Session) -> Result<(), Failure> {
        self.leave()?;
        if self.lines > 0 {
            let lines = term::plural(self.lines, "line was", "lines were");
            session.note(format_args!("{lines} not loaded, and are in {}", self.path.display()));
        }
        Ok(())
    }
}

fn cannot_write(path: &Path, error: io::Error) -> Failure {
    Failure::io(format!("cannot write {}", path.display()), error)
}

/// Fails if the file for wrong lines is one of those that are read, and would be emptied before, or the dump, which
/// would replace it.
pub(crate) fn check_refused<'p>(
    refused: Option<&Path>,
    inputs: impl IntoIterator<Item = &'p PathBuf>,
    dump: Option<&Path>,
) -> Result<(), Failure> {
    let Some(refused) = refused else { return Ok(()) };
    // A device is not emptied, and may be both.
    let id = |file: io::Result<Metadata>| {
        let file = file.ok().filter(|file| !file.file_type().is_char_device());
        file.map(|file| (file.dev(), file.ino()))
    };
    let stdin = || File::from(io::stdin().as_fd().try_clone_to_owned()?).metadata();
    let own = id(fs::metadata(refused));
    for input in inputs {
        let (is_named, other) = match input == Path::new("-") {
            true => (false, id(stdin())),
            false => (input == refused, id(fs::metadata(input))),
        };
        if is_named || (own.is_some() && own == other) {
            return Err(Failure::usage(format!(
                "--skip-errors {} is one of the files to load, and would be emptied; name another file",
                refused.display()
            )));
        }
    }
    let absolute = |path: &Path| std::path::absolute(path).ok();
    let is_dump =
        |dump: &Path| absolute(refused) == absolute(dump) || (own.is_some() && own == id(fs::metadata(dump)));
    if dump.is_some_and(is_dump) {
        return Err(Failure::usage(format!(
            "--skip-errors {} is the file of the dump, which would replace it; name another file",
            refused.display()
        )));
    }
    Ok(())
}

/// Reads a line with its line feed, after what there is of it. False if it has more than `bytes_max` bytes, and only
/// its beginning was read; nothing at the end of the input.
pub(crate) fn read_line(reader: &mut impl BufRead, bytes_max: usize, line: &mut Vec<u8>) -> io::Result<bool> {
    let room = bytes_max.saturating_add(1).saturating_sub(line.len());
    reader.by_ref().take(room as u64).read_until(b'\n', line)?;
    Ok(line.ends_with(b"\n") || line.len() <= bytes_max)
}

/// The rest of a line, in pieces.
struct Rest<'r, R> {
    reader: &'r mut R,
    /// The name of the input.
    input: &'r str,
    piece: Vec<u8>,
    /// Bytes read so far, with the line feed.
    read_bytes: u64,
}

impl<R: BufRead> Rest<'_, R> {
    fn next(&mut self) -> Result<Option<&[u8]>, Failure> {
        interrupt::check()?;
        if self.piece.ends_with(b"\n") {
            return Ok(None);
        }
        self.piece.clear();
        let read = self.reader.by_ref().take(PIECE_BYTES).read_until(b'\n', &mut self.piece);
        self.read_bytes += read.map_err(|error| cannot_read(self.input, error))? as u64;
        let piece = self.piece.strip_suffix(b"\n").unwrap_or(&self.piece);
        Ok((!self.piece.is_empty()).then_some(piece))
    }
}

fn cannot_read(input: &str, error: io::Error) -> Failure {
    Failure::io(format!("cannot read {input}"), error)
}

/// Loads a file, or standard input for `-`.
pub(crate) fn load(
    session: &mut Session,
    path: &Path,
    format: Format,
    refused: Option<&mut Refused>,
) -> Result<Loaded, Failure> {
    if path == Path::new("-") {
        let stdin = session.take_stdin()?;
        return Loader::new(session, format, "standard input", refused).run(stdin, 0);
    }
    let name = path.display().to_string();
    let cannot = |e| cannot_read(&name, e);
    let file = interrupt::open(path).map_err(cannot)?;
    let metadata = file.metadata().map_err(cannot)?;
    if metadata.is_dir() {
        return Err(cannot(io::Error::from(io::ErrorKind::IsADirectory)));
    }
    let reader = BufReader::with_capacity(1 << 16, Patient(file));
    Loader::new(session, format, &name, refused).run(reader, metadata.len())
}

/// Pairs of one keyspace that are to be written together.
struct Pending {
    batch: WriteBatch,
    space: Keyspace,
    /// The line of each.
    numbers: Vec<u64>,
}

impl Pending {
    fn clear(&mut self) {
        self.batch.clear();
        self.numbers.clear();
    }
}

/// Full batches of a keyspace whose keys ascend.
#[derive(Default)]
struct Ascending {
    /// The number of those that were written.
    batches: usize,
    /// The last key.
    last: Option<Vec<u8>>,
    /// The ingest of the later ones.
    ingest: Option<Ingest>,
    /// The number of the line of its first pair: nothing of it is loaded before its end.
    line: u64,
    /// Bytes of keys and values in it.
    bytes: usize,
}

impl Ascending {
    /// Whether the keys of a batch ascend, from those before on.
    fn takes(&mut self, batch: &WriteBatch) -> bool {
        let mut last = self.last.as_deref();
        let ascends = batch.ops().all(|(_, op)| last.replace(op.key()).is_none_or(|last| last < op.key()));
        let last = last.map(<[u8]>::to_vec);
        self.last = last;
        ascends
    }
}

struct Loader<'s, 'n> {
    session: &'s mut Session,
    /// Where the input begins.
    first: Keyspace,
    /// Where lines that name no keyspace go.
    space: Keyspace,
    /// The keyspace that the line before named, kept open for the next that does.
    named: Option<Keyspace>,
    format: Format,
    reader: Reader,
    /// Most bytes of a line, or of the lines of one pair.
    line_bytes_max: usize,
    input: &'n str,
    pending: Pending,
    /// The pairs that were read, as long as their keys ascend; `None` after that.
    ascending: Option<Ascending>,
    /// The number of the line being read.
    number: u64,
    changes: u64,
    mismatches: u64,
    refused: Option<&'n mut Refused>,
}

impl<'s, 'n> Loader<'s, 'n> {
    fn new(
        session: &'s mut Session,
        format: Format,
        input: &'n str,
        refused: Option<&'n mut Refused>,
    ) -> Self {
        let first = session.space.clone();
        let (space, reader) = (first.clone(), Reader::new(format));
        let pending = Pending { batch: WriteBatch::new(), space: first.clone(), numbers: Vec::new() };
        let can_ingest = session.db.capabilities().has(Capability::Ingest)
            && session.db.capabilities().has(Capability::Persistence);
        let ascending = can_ingest.then(Ascending::default);
        Loader {
            session,
            first,
            space,
            named: None,
            format,
            reader,
            line_bytes_max: format.line_bytes_max(),
            input,
            pending,
            ascending,
            number: 0,
            changes: 0,
            mismatches: 0,
            refused,
        }
    }

    fn run(mut self, reader: impl BufRead, len_bytes: u64) -> Result<Loaded, Failure> {
        self.session.changing();
        let read = self.lines(reader, len_bytes);
        // What was read before an error is loaded. A note says so if it stays.
        let written = self.end_ingest().and_then(|()| self.write_pending());
        let comments = self.reader.comments();
        if comments > 0 {
            let lines = term::plural(comments, "line", "lines");
            self.session
                .note(format_args!("{}: {lines} with # at the beginning taken as comments", self.input));
        }
        if let Err(failure) = read.and(written) {
            let stays = self.session.db.capabilities().has(Capability::Persistence);
            if stays && self.changes > 0 {
                let pairs = term::plural(self.changes, "pair", "pairs");
                self.session.note(format_args!("{}: {pairs} loaded before this, which stay", self.input));
            }
            return Err(failure);
        }
        if self.mismatches > 0 {
            let count = term::plural(self.mismatches, "compare-and-swap", "compare-and-swaps");
            self.session.note(format_args!("{}: {count} did not match", self.input));
        }
        Ok(Loaded { changes: self.changes, answer: Answer::found(self.mismatches == 0) })
    }

    fn lines(&mut self, mut reader: impl BufRead, len_bytes: u64) -> Result<(), Failure> {
        let bar = Bar::new(&self.session.term, self.session.quiet || len_bytes < BAR_BYTES_MIN, len_bytes);
        let (mut line, mut begun, mut done_bytes) = (Vec::new(), Vec::new(), 0);
        // Whether `begun` has a mistake, so that the pair is refused at its end.
        let mut is_wrong = false;
        loop {
            interrupt::check()?;
            line.clear();
            let too_long = self.read_line(&mut reader, &mut line)?;
            if line.is_empty() {
                break;
            }
            self.number += 1;
            done_bytes += line.len() as u64;
            if self.number.is_multiple_of(LINES_PER_DRAW) {
                let ingested = self.ascending.as_ref().and_then(|ascending| ascending.ingest.as_ref());
                let pairs = self.changes + ingested.map_or(0, Ingest::len);
                bar.show(done_bytes, || format!("loading: {}", term::plural(pairs, "pair", "pairs")));
            }
            if let Some(what) = too_long {
                let failure = Failure::Input(self.place(self.number, 0), what);
                let leads = self.format.leads(&line, true);
                let Some(refused) = self.refused.as_mut().filter(|_| !leads) else { return Err(failure) };
                refused.enter(self.reader.format(self.format), &self.space, &self.first)?;
                begun.extend_from_slice(&line);
                let rest = Rest { reader: &mut reader, input: self.input, piece: Vec::new(), read_bytes: 0 };
                done_bytes += refused.add_long(&begun, rest)?;
                begun.clear();
                self.reader.forget();
                continue;
            }
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            let taken = match self.reader.line(line) {
                Ok(item) => self.take(item),
                Err(Mistake { at, what }) => {
                    let (up, column) = position(self.reader.record().unwrap_or(line), at);
                    Err(Failure::Input(self.place(self.number - up, column), what.into_owned()))
                }
            };
            let Some(refused) = &mut self.refused else {
                taken?;
                continue;
            };
            match taken {
                Ok(()) => {}
                Err(failure) if self.format.leads(line, matches!(failure, Failure::Input(..))) => {
                    if !self.reader.is_word(line) {
                        return Err(failure);
                    }
                    is_wrong = true;
                }
                Err(failure) if is_of_the_line(&failure, self.number) => is_wrong = true,
                Err(failure) => return Err(failure),
            }
            if self.reader.is_within() {
                begun.extend_from_slice(line);
                begun.push(b'\n');
                continue;
            }
            if std::mem::take(&mut is_wrong) {
                refused.enter(self.reader.format(self.format), &self.space, &self.first)?;
                begun.extend_from_slice(line);
                refused.add(&begun)?;
            }
            begun.clear();
        }
        drop(bar);
        let Err(what) = self.reader.end() else { return Ok(()) };
        match &mut self.refused {
            // What follows a cut dump is not known, while a record without its end can be mended.
            Some(refused) if !begun.is_empty() && !self.format.has_headers() => {
                refused.add(begun.strip_suffix(b"\n").unwrap_or(&begun))
            }
            _ => Err(Failure::Input(self.place(self.number.max(1), 0), what.to_owned())),
        }
    }

    /// Reads the next line with its line feed; nothing at the end. Of a line that is too long only the beginning, and
    /// says why.
    fn read_line(&self, reader: &mut impl BufRead, line: &mut Vec<u8>) -> Result<Option<String>, Failure> {
        let mut read = |bytes_max, line: &mut Vec<u8>| {
            read_line(reader, bytes_max, line).map_err(|error| cannot_read(self.input, error))
        };
        let begun = self.reader.begun_bytes();
        let here = self.reader.line_bytes_max();
        let most = self.line_bytes_max.min(here.unwrap_or(usize::MAX));
        let room = most.saturating_sub(begun);
        if room > START_BYTES && !self.reader.is_within() {
            if read(START_BYTES, line)? {
                return Ok(None);
            }
            if let Some(why) = self.format.refuses(line) {
                return Ok(Some(why));
            }
        }
        Ok((!read(room, line)?).then(|| match begun {
            0 if here == Some(most) => {
                format!("longer than {most} bytes, as no key and no line of a header is")
            }
            0 => format!("longer than {most} bytes, as no pair is"),
            _ => format!(
                "longer than {most} bytes with the lines before it, as no pair is: quotes are not closed"
            ),
        }))
    }

    fn place(&self, line: u64, column: u64) -> Place {
        Place { input: self.input.to_owned(), line, column }
    }

    fn take(&mut self, item: Item) -> Result<(), Failure> {
        match item {
            Item::Nothing => Ok(()),
            Item::Keyspace(name) => {
                self.space = match name {
                    Some(name) => self.keyspace(&name)?,
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
                    _ => self.keyspace(&name)?,
                };
                self.apply(&space, &op)?;
                self.named = Some(space);
                Ok(())
            }
        }
    }

    fn keyspace(&self, name: &str) -> Result<Keyspace, Failure> {
        let at = |error: forrest::Error| Failure::from(error).at(self.place(self.number, 0));
        self.session.db.keyspace(name).map_err(at)
    }

    /// Applies an operation, or puts a pair beside others to be written with them.
    fn apply(&mut self, space: &Keyspace, op: &Op) -> Result<(), Failure> {
        let (input, line) = (self.input, self.number);
        let at = |error: forrest::Error| {
            Failure::from(error).at(Place { input: input.to_owned(), line, column: 0 })
        };
        op.borrowed().check().map_err(at)?;
        if !matches!(op, Op::Set { .. }) || *self.pending.space.name() != *space.name() {
            self.end_ingest()?;
            self.write_pending()?;
            self.pending.space = space.clone();
        }
        if !matches!(op, Op::Set { .. }) {
            let outcome = space.apply(op.borrowed()).map_err(at)?;
            self.changes += 1;
            self.mismatches += u64::from(outcome.mismatch().is_some());
            return Ok(());
        }
        let Pending { batch, space, numbers } = &mut self.pending;
        batch.on(space).push(op.borrowed());
        numbers.push(self.number);
        if batch.len() >= BATCH_PAIRS_MAX || batch.bytes() >= BATCH_BYTES_MAX {
            self.write_full()?;
        }
        Ok(())
    }

    /// Writes the pairs that wait, or ingests them.
    fn write_full(&mut self) -> Result<(), Failure> {
        let Some(ascending) = &mut self.ascending else { return self.write_pending() };
        let Pending { batch, space, numbers } = &mut self.pending;
        if !ascending.takes(batch) {
            self.end_ingest()?;
            self.ascending = None;
            return self.write_pending();
        }
        if ascending.batches < BATCHES_BEFORE_INGEST {
            ascending.batches += 1;
            return self.write_pending();
        }
        let place = |line| Place { input: self.input.to_owned(), line, column: 0 };
        if ascending.ingest.is_none() {
            ascending.line = numbers.first().copied().unwrap_or(self.number);
            let begun = space.ingest().map_err(|error| Failure::from(error).at(place(ascending.line)))?;
            ascending.ingest = Some(begun);
        }
        let ingest = ascending.ingest.as_mut().expect("it was just begun");
        let (mut done, mut is_lost) = (Ok(()), false);
        for ((_, op), &number) in batch.ops().zip(&*numbers) {
            let Op::Set { key, value } = op else { unreachable!("only pairs wait") };
            let Err(error) = ingest.put(key, value) else { continue };
            // Any other error is one of the whole ingest, which is of no use any more.
            is_lost = !is_of_a_pair(&error);
            let place = place(if is_lost { ascending.line } else { number });
            let format = self.reader.format(self.format);
            done = refuse(&mut self.refused, format, (&*space, &self.first), &op, (place, error));
            if done.is_err() {
                break;
            }
        }
        if is_lost {
            ascending.ingest = None;
        }
        ascending.bytes += batch.bytes();
        let is_much = ascending.bytes >= INGEST_BYTES_MAX;
        self.pending.clear();
        done?;
        if is_much { self.end_ingest() } else { Ok(()) }
    }

    /// Makes visible what is ingested. Another ingest may follow.
    fn end_ingest(&mut self) -> Result<(), Failure> {
        let Some(ascending) = &mut self.ascending else { return Ok(()) };
        let Ascending { ingest: Some(ingest), line, .. } = std::mem::take(ascending) else { return Ok(()) };
        ascending.batches = BATCHES_BEFORE_INGEST;
        match ingest.finish() {
            Ok(pairs) => {
                self.changes += pairs;
                Ok(())
            }
            Err(error) => {
                // What follows must not be loaded without it.
                self.pending.clear();
                Err(Failure::from(error).at(self.place(line, 0)))
            }
        }
    }

    /// Writes the pairs that wait. If the store refuses them together, those before the first that it refuses are
    /// written, or with [`Refused`] all but those that it refuses.
    fn write_pending(&mut self) -> Result<(), Failure> {
        let Pending { batch, space, numbers } = &mut self.pending;
        if batch.is_empty() {
            return Ok(());
        }
        let mut done = Ok(());
        match self.session.db.write(&*batch) {
            Ok(()) => self.changes += batch.len() as u64,
            Err(_) => {
                for ((_, op), &line) in batch.ops().zip(&*numbers) {
                    let Err(error) = space.apply(op) else {
                        self.changes += 1;
                        continue;
                    };
                    let place = Place { input: self.input.to_owned(), line, column: 0 };
                    let format = self.reader.format(self.format);
                    done = refuse(&mut self.refused, format, (&*space, &self.first), &op, (place, error));
                    if done.is_err() {
                        break;
                    }
                }
            }
        }
        self.pending.clear();
        done
    }
}

/// Puts a pair aside that the store refuses, if there is a place for it and no other would fare like it.
fn refuse(
    refused: &mut Option<&mut Refused>,
    format: Format,
    (space, first): (&Keyspace, &Keyspace),
    op: &Op<&[u8]>,
    (place, error): (Place, forrest::Error),
) -> Result<(), Failure> {
    let (Some(refused), Op::Set { key, value }, true) = (refused, op, is_of_a_pair(&error)) else {
        return Err(Failure::from(error).at(place));
    };
    let name = (space.name() != first.name()).then(|| space.name());
    refused.enter(format, space, first)?;
    let mut line = Vec::new();
    format.write_pair(name, key, Shown::Bytes(value), &mut line);
    refused.add(line.strip_suffix(b"\n").unwrap_or(&line))
}

/// True if a failure is that of the line that was just read, so that others can be loaded.
fn is_of_the_line(failure: &Failure, number: u64) -> bool {
    match failure {
        Failure::Input(..) => true,
        // Another one has pairs before it.
        Failure::At(Place { line, .. }, failure) if *line == number => match &**failure {
            Failure::Store(error) => is_of_a_pair(error),
            _ => false,
        },
        _ => false,
    }
}

fn is_of_a_pair(error: &forrest::Error) -> bool {
    matches!(error.kind(), ErrorKind::Limit | ErrorKind::InvalidArgument)
}

/// How many lines before the last of several a byte of them is, and its column there.
fn position(lines: &[u8], at: usize) -> (u64, u64) {
    let (before, after) = lines.split_at(at.min(lines.len()));
    let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |feed| feed + 1);
    let up = after.iter().filter(|&&byte| byte == b'\n').count();
    (up as u64, column(&lines[start..], at - start))
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
    use crate::args::Cli;
    use crate::home::{Home, MEMORY};
    use clap::Parser;

    /// Loads a text into memory with a limit. Returns the error or the pairs, and the wrong lines if they are skipped.
    fn load_within(bytes_max: usize, format: Format, text: &[u8], skips: bool) -> (String, Vec<u8>) {
        let place = tempfile::tempdir().unwrap();
        let wrong = place.path().join("wrong");
        let cli = Cli::try_parse_from(["forrest", "-q", "count"]).unwrap();
        let mut session = Session::open(&cli.store, Home::at(MEMORY, true)).unwrap();
        let mut refused = skips.then(|| Refused::create(&wrong).unwrap());
        let mut loader = Loader::new(&mut session, format, "input", refused.as_mut());
        loader.line_bytes_max = bytes_max;
        // So small a buffer, that a line has several pieces.
        let loaded = loader.run(BufReader::with_capacity(3, text), 0);
        if let Some(refused) = refused {
            refused.finish(&session).unwrap();
        }
        let pair = |entry: forrest::Result<forrest::Entry>| {
            let entry = entry.unwrap();
            format!("{}={}", entry.key().escape_ascii(), entry.value().unwrap().escape_ascii())
        };
        let pairs: Vec<_> = session.space.range(..).map(pair).collect();
        let answer = loaded.map_or_else(|failure| failure.to_string(), |_| pairs.join(" "));
        (answer, fs::read(wrong).unwrap_or_default())
    }

    #[test]
    fn a_line_has_a_limit() {
        let text = b"a\t1\nb\t345678901\nc\t3456789\nd\t34567890123";
        let (refused, _) = load_within(9, Format::Text, text, false);
        assert_eq!(refused, "input:2: longer than 9 bytes, as no pair is");
        assert_eq!(load_within(9, Format::Text, text, true).0, "a=1 c=3456789");
        assert_eq!(load_within(9, Format::Text, text, true).1, b"b\t345678901\nd\t34567890123\n");
        assert_eq!(load_within(13, Format::Text, text, false).0, "a=1 b=345678901 c=3456789 d=34567890123");
        assert_eq!(
            load_within(12, Format::Text, text, false).0,
            "input:4: longer than 12 bytes, as no pair is"
        );
        // Longer than the pieces in which the rest of a line is passed over.
        let long = [b"k\t".to_vec(), vec![b'v'; 3 * PIECE_BYTES as usize], b"\na\t1\n".to_vec()].concat();
        let (pairs, wrong) = load_within(100, Format::Text, &long, true);
        assert!(pairs == "a=1" && wrong == long[..long.len() - 4], "{pairs}");
    }

    #[test]
    fn a_row_of_several_lines_has_the_same_limit() {
        let text = b"a,1\nb,\"2\n3\"\nc,\"4\n5\n6\nd,7\ne,8\n";
        let (refused, _) = load_within(11, Format::Csv, text, false);
        assert!(refused.starts_with("input:7: longer than 11 bytes with the lines before it"), "{refused}");
        // What follows the limit is read as if the quotes were closed.
        let (pairs, wrong) = load_within(11, Format::Csv, text, true);
        assert_eq!((&pairs[..], &wrong[..]), ("a=1 b=2\\n3 e=8", &b"c,\"4\n5\n6\nd,7\n"[..]));
        // A line that is too long ends the row as well.
        let text = b"c,\"4\n5 and many more\ne,8\n";
        let (pairs, wrong) = load_within(11, Format::Csv, text, true);
        assert_eq!((&pairs[..], &wrong[..]), ("e=8", &b"c,\"4\n5 and many more\n"[..]));
    }

    #[test]
    fn columns_count_characters() {
        assert_eq!(column(b"abc", 0), 1);
        assert_eq!(column(b"abc", 3), 4);
        assert_eq!(column("Ωx".as_bytes(), 2), 2);
        assert_eq!(column(b"\xff\xffx", 2), 3);
        assert_eq!(column(b"", 9), 1);
    }
}
