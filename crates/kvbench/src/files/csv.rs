//! Comma-separated values: a key, or a key and a value, a line; quoted where that is needed (RFC 4180), so that any
//! bytes can stand in a field.
//!
//! A first line of exactly `key` or `key,value` is a heading. One is always written.

use super::input::{Input, PAIR_BYTES_MAX, damaged};
use super::output::Output;
use super::pair::{Pair, Sink, Source};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The headings, without and with values.
const HEADINGS: [&[&str]; 2] = [&["key"], &["key", "value"]];

/// A file of which no more than two fields of the greatest size may be read for one line.
struct Bounded {
    input: Input,
    since: u64,
}

impl Read for Bounded {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.since > 2 * PAIR_BYTES_MAX {
            let at = self.input.at() - self.since;
            return Err(self.input.damaged(at, format!("a line of more than {} bytes", 2 * PAIR_BYTES_MAX)));
        }
        let read = self.input.read(into)?;
        self.since += read as u64;
        Ok(read)
    }
}

/// Reads lines.
pub(crate) struct Reader {
    path: PathBuf,
    reader: ::csv::Reader<Bounded>,
    record: ::csv::ByteRecord,
    first: bool,
}

impl Reader {
    /// Begins to read.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let bounded = Bounded { input: Input::open(path)?, since: 0 };
        let reader = ::csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bounded);
        Ok(Reader { path: path.to_owned(), reader, record: ::csv::ByteRecord::new(), first: true })
    }
}

impl Source for Reader {
    fn next(&mut self, pair: &mut Pair) -> io::Result<bool> {
        loop {
            self.reader.get_mut().since = 0;
            let at = self.reader.position().byte();
            let there =
                self.reader.read_byte_record(&mut self.record).map_err(|error| match error.into_kind() {
                    ::csv::ErrorKind::Io(error) => error,
                    other => damaged(&self.path, at, format!("{other:?}")),
                })?;
            if !there {
                return Ok(false);
            }
            let fields = self.record.len();
            if !(1..=2).contains(&fields) {
                let at = self.record.position().map_or(at, |position| position.byte());
                let what = format!("a line of {fields} fields; a key is wanted, or a key and a value");
                return Err(damaged(&self.path, at, what));
            }
            let is_heading =
                HEADINGS[fields - 1].iter().zip(&self.record).all(|(name, field)| name.as_bytes() == field);
            if std::mem::replace(&mut self.first, false) && is_heading {
                continue;
            }
            pair.key.clear();
            pair.key.extend_from_slice(&self.record[0]);
            pair.value.clear();
            pair.valued = fields == 2;
            pair.value.extend_from_slice(self.record.get(1).unwrap_or_default());
            return Ok(true);
        }
    }

    fn at(&self) -> u64 {
        self.reader.position().byte()
    }
}

/// Writes lines.
pub(crate) struct Writer {
    writer: ::csv::Writer<Output>,
    headed: bool,
}

impl Writer {
    /// Begins a file.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Ok(Writer { writer: ::csv::Writer::from_writer(Output::create(path)?), headed: false })
    }

    fn line(&mut self, fields: &[&[u8]]) -> io::Result<()> {
        self.writer.write_record(fields).map_err(io::Error::from)
    }
}

impl Sink for Writer {
    fn put(&mut self, pair: &Pair) -> io::Result<()> {
        if !std::mem::replace(&mut self.headed, true) {
            self.line(if pair.valued { &[b"key", b"value"] } else { &[b"key"] })?;
        }
        if pair.valued { self.line(&[&pair.key, &pair.value]) } else { self.line(&[&pair.key]) }
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        let out = self.writer.into_inner().map_err(|error| error.into_error())?;
        out.finish(b"")
    }
}
