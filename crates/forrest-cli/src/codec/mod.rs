//! How pairs are written and read. Each format is reversible for any bytes.
//!
//! | format | a line |
//! |---|---|
//! | `text` | key TAB value, both escaped as [`text`] says |
//! | `hex` | key TAB value, both in hexadecimal |
//! | `jsonl` | `{"key": "...", "value": "..."}`; bytes that are not UTF-8 as `"key_hex"`, `"value_hex"` |
//! | `ops` | an operation, as the library's [`forrest::line`] module has them: `set KEY VALUE` and the others |
//! | `ldb` | a pair of RocksDB's, as [`ldb`] says |
//! | `mdb`, `mdb-print` | a key or a value of LMDB's, as [`mdb`] says, in hexadecimal or where possible as text |
//!
//! But in the last two a line that begins with `#` is a comment; a key that begins with `#` is escaped in `text`. A
//! pair's keyspace is named in `text` and `hex` by a line `#keyspace NAME` before it, in `jsonl` by the field
//! `"keyspace"`, in `ops` by `@NAME` before the operation, and in `mdb` in a header. Empty lines mean nothing, and so
//! does a carriage return at the end of a line. But in `text`, where both might be bytes of a pair, a carriage return
//! at the end and a comment with a tab are errors.

pub(crate) mod csv;
pub(crate) mod hex;
mod item;
mod ldb;
pub(crate) mod mdb;
pub(crate) mod text;

pub(crate) use item::{Item, Mistake};

use crate::failure::Failure;
use clap::ValueEnum;
use forrest::{Expires, MAX_KEY_BYTES, MAX_KEYSPACE_NAME_BYTES, MAX_VALUE_BYTES, Op, line};
use serde_json::Value as Json;
use std::path::Path;

/// Start of a line in `text` or `hex` that selects a keyspace.
const KEYSPACE_DIRECTIVE: &[u8] = b"#keyspace ";

/// Most bytes of a line besides a keyspace, a key and a value. Few of them are needed; the rest is for spaces.
const MARKS_BYTES_MAX: usize = 4096;
/// After this many bytes of a line [`Format::refuses`] can say in each format whether there is a key.
pub(crate) const START_BYTES: usize = 6 * (MAX_KEY_BYTES + MAX_KEYSPACE_NAME_BYTES) + MARKS_BYTES_MAX + 1;

/// A way to write pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// key TAB value; unprintable bytes as \xNN, \t, \n, \r, \\
    #[default]
    Text,
    /// key TAB value, both in hexadecimal
    Hex,
    /// key TAB value as they are: no escapes, no comments
    Tsv,
    /// KEY,VALUE as in RFC 4180: quotes around commas, quotes and line ends
    Csv,
    /// {"key": "...", "value": "..."}, bytes that are not UTF-8 as "key_hex", "value_hex"
    #[value(alias = "json")]
    Jsonl,
    /// set KEY VALUE, an operation a line, as the shell understands
    Ops,
    /// 0xKEY ==> 0xVALUE, as RocksDB's "ldb dump --hex" prints
    Ldb,
    /// as LMDB's mdb_dump prints
    Mdb,
    /// as LMDB's "mdb_dump -p" prints
    MdbPrint,
}

/// A value to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shown<'v> {
    /// As it is.
    Bytes(&'v [u8]),
    /// As the integer that it holds.
    Integer(i64),
}

impl<'v> Shown<'v> {
    /// `value`, as an integer if that is wished for and it can be one: 8 bytes, big endian.
    pub(crate) fn new(value: &'v [u8], int: bool) -> Self {
        match value.try_into() {
            Ok(bytes) if int => Shown::Integer(i64::from_be_bytes(bytes)),
            _ => Shown::Bytes(value),
        }
    }
}

impl Format {
    /// The format of a file, by the extension of its name, otherwise `self`. But `tsv` and `csv`, which are others'
    /// formats, hold for files of any name.
    pub(crate) fn of_file(self, path: &Path) -> Format {
        match path.extension().and_then(|e| e.to_str()) {
            _ if matches!(self, Format::Tsv | Format::Csv) => self,
            Some("txt" | "text") => Format::Text,
            Some("tsv") => Format::Tsv,
            Some("csv") => Format::Csv,
            Some("hex") => Format::Hex,
            Some("jsonl" | "ndjson") => Format::Jsonl,
            Some("ops") => Format::Ops,
            _ => self,
        }
    }

    /// Most bytes that a byte of a key or a value takes.
    fn expansion(self) -> usize {
        match self {
            Format::Tsv => 1,
            // Quotes are doubled.
            Format::Csv | Format::Hex | Format::Ldb | Format::Mdb => 2,
            // \NN
            Format::MdbPrint => 3,
            // \xNN
            Format::Text | Format::Ops => 4,
            // \u00NN
            Format::Jsonl => 6,
        }
    }

    /// Most bytes of a line, or of a record of several lines: with the largest key, the largest value, and all of their
    /// bytes in the longest form. That is 4 GiB in `tsv`, 8 in `csv`, `hex`, `ldb` and `mdb`, 12 in `mdb-print`, 16 in
    /// `text`, 24 in `jsonl`, and 32 in `ops`, where a compare-and-swap has two values.
    pub(crate) fn line_bytes_max(self) -> usize {
        let values = if self == Format::Ops { MAX_VALUE_BYTES.saturating_mul(2) } else { MAX_VALUE_BYTES };
        // `mdb_dump -p` is read as `mdb` as well.
        let each = if self == Format::Mdb { Format::MdbPrint.expansion() } else { self.expansion() };
        each.saturating_mul(values.saturating_add(MAX_KEY_BYTES + MAX_KEYSPACE_NAME_BYTES))
            .saturating_add(MARKS_BYTES_MAX)
    }

    /// Why no line is right that begins so, however it goes on: the key, or a comment, should have ended. `None` if it
    /// may be right. In `mdb` it depends on the line before ([`Reader::line_bytes_max`]).
    pub(crate) fn refuses(self, beginning: &[u8]) -> Option<String> {
        let has = |separator: &[u8]| beginning.windows(separator.len()).any(|at| at == separator);
        let (may_be_right, missing, names_keyspace) = match self {
            Format::Tsv => (has(b"\t"), "no tab", false),
            Format::Csv => (has(b","), "no comma", false),
            Format::Mdb | Format::MdbPrint => return None,
            _ if beginning.starts_with(b"#") => (false, "no end of a comment", false),
            Format::Text | Format::Hex => (has(b"\t"), "no tab", false),
            Format::Ldb => (has(ldb::ARROW.as_bytes()), "no ==>", false),
            Format::Jsonl => (may_be_json(beginning), "no object with a value", true),
            Format::Ops => (may_be_op(beginning), "no operation with a key", true),
        };
        let name = if names_keyspace { MAX_KEYSPACE_NAME_BYTES } else { 0 };
        let bytes = self.expansion() * (MAX_KEY_BYTES + name) + MARKS_BYTES_MAX;
        (beginning.len() > bytes && !may_be_right)
            .then(|| format!("{missing} in the first {bytes} bytes, and no key is that long"))
    }

    /// Appends a key or value to `out`.
    fn write_word(self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            Format::Text | Format::Jsonl => text::escape_into(bytes, out),
            Format::Tsv => out.extend_from_slice(bytes),
            Format::Csv => csv::write_word(bytes, out),
            Format::Hex => hex::encode_into(bytes, out),
            Format::Ops => out.extend_from_slice(line::quote(bytes).to_string().as_bytes()),
            Format::Ldb => ldb::write_word(bytes, out),
            Format::Mdb | Format::MdbPrint => mdb::write_word(self == Format::MdbPrint, bytes, out),
        }
    }

    /// True if keys and values in arguments are hexadecimal.
    pub(crate) fn is_hex(self) -> bool {
        matches!(self, Format::Hex | Format::Ldb | Format::Mdb)
    }

    /// Reads a key or value given as an argument: hexadecimal where the format is, else escaped text.
    pub(crate) fn read_argument(self, what: &str, argument: &[u8]) -> Result<Vec<u8>, Failure> {
        let read = match self {
            Format::Tsv | Format::Csv => Ok(argument.to_vec()),
            Format::Ldb => ldb::read_word(argument),
            _ if self.is_hex() => hex::decode(argument),
            _ => text::unescape(argument),
        };
        read.map_err(|Mistake { at, what: why }| {
            Failure::usage(format!(
                "{what} '{}', at byte {}: {why}",
                String::from_utf8_lossy(argument),
                at + 1
            ))
        })
    }

    /// Whether a line by itself selects the keyspace of those after it.
    pub(crate) fn has_directives(self) -> bool {
        matches!(self, Format::Text | Format::Hex)
    }

    /// Whether pairs are between a header, which selects a keyspace, and an end.
    pub(crate) fn has_headers(self) -> bool {
        matches!(self, Format::Mdb | Format::MdbPrint)
    }

    /// Whether it depends on a line what the next ones are, so that they cannot be loaded if it is wrong: it selects a
    /// keyspace, or is among lines of several kinds and cannot be read ([`Reader::is_word`] may know its kind).
    pub(crate) fn leads(self, line: &[u8], is_unread: bool) -> bool {
        match self {
            Format::Text | Format::Hex => line.starts_with(KEYSPACE_DIRECTIVE),
            _ => self.has_headers() && is_unread,
        }
    }

    /// Appends the line of a pair to `out`, its line feed included. `keyspace` is named where the format can
    /// do so in each line; others need [`Format::write_begin`].
    pub(crate) fn write_pair(self, keyspace: Option<&str>, key: &[u8], value: Shown<'_>, out: &mut Vec<u8>) {
        match (self, value) {
            (
                Format::Text
                | Format::Tsv
                | Format::Csv
                | Format::Hex
                | Format::Ldb
                | Format::Mdb
                | Format::MdbPrint,
                _,
            ) => {
                self.write_key(key, out);
                out.extend_from_slice(match self {
                    Format::Csv => b",",
                    Format::Ldb => ldb::ARROW.as_bytes(),
                    Format::Mdb | Format::MdbPrint => b"\n",
                    _ => b"\t",
                });
                self.write_value(value, out);
            }
            (Format::Jsonl, _) => {
                out.push(b'{');
                if let Some(keyspace) = keyspace {
                    write_json_field("keyspace", keyspace.as_bytes(), out);
                    out.extend_from_slice(b", ");
                }
                write_json_field("key", key, out);
                out.extend_from_slice(b", ");
                match value {
                    Shown::Bytes(value) => write_json_field("value", value, out),
                    Shown::Integer(value) => out.extend_from_slice(format!("\"value\": {value}").as_bytes()),
                }
                out.push(b'}');
            }
            (Format::Ops, _) => {
                write_op_keyspace(keyspace, out);
                let op = match value {
                    Shown::Bytes(value) => Op::Set { key, value },
                    Shown::Integer(delta) => Op::Add { key, delta },
                };
                out.extend_from_slice(op.to_string().as_bytes());
            }
        }
        out.push(b'\n');
    }

    /// True if it holds the time at which a value expires.
    pub(crate) fn has_expiry(self) -> bool {
        matches!(self, Format::Jsonl | Format::Ops)
    }

    /// Appends the line of a pair whose value expires, as [`write_pair`](Format::write_pair) does. The format has a
    /// place for that.
    pub(crate) fn write_expiring(
        self,
        keyspace: Option<&str>,
        (key, value): (&[u8], &[u8]),
        expires_ms: u64,
        out: &mut Vec<u8>,
    ) {
        match self {
            Format::Jsonl => {
                self.write_pair(keyspace, key, Shown::Bytes(value), out);
                out.truncate(out.len() - b"}\n".len());
                out.extend_from_slice(format!(", \"expires_ms\": {expires_ms}}}\n").as_bytes());
            }
            _ => {
                write_op_keyspace(keyspace, out);
                let op = Op::SetUntil { key, value, expires: Expires::At(expires_ms) };
                out.extend_from_slice(format!("{op}\n").as_bytes());
            }
        }
    }

    /// Appends the line of a key alone.
    pub(crate) fn write_key_line(self, key: &[u8], out: &mut Vec<u8>) {
        match self {
            Format::Jsonl => {
                out.push(b'{');
                write_json_field("key", key, out);
                out.push(b'}');
            }
            _ => self.write_key(key, out),
        }
        out.push(b'\n');
    }

    /// Appends the line of a value alone; where lines are objects or operations, the key goes with it.
    pub(crate) fn write_value_line(self, key: &[u8], value: Shown<'_>, out: &mut Vec<u8>) {
        match self {
            Format::Jsonl | Format::Ops => self.write_pair(None, key, value, out),
            _ => {
                self.write_value(value, out);
                out.push(b'\n');
            }
        }
    }

    fn write_value(self, value: Shown<'_>, out: &mut Vec<u8>) {
        match value {
            Shown::Bytes(value) => self.write_word(value, out),
            Shown::Integer(value) => out.extend_from_slice(value.to_string().as_bytes()),
        }
    }

    /// Appends a key to `out` so that it can stand at the beginning of a line.
    fn write_key(self, key: &[u8], out: &mut Vec<u8>) {
        match (self, key) {
            (Format::Text, [b'#', rest @ ..]) => {
                text::escape_byte(b'#', out);
                text::escape_into(rest, out);
            }
            _ => self.write_word(key, out),
        }
    }

    /// Appends what stands before the pairs of a keyspace, which is named if there are others, in a dump of `whole`.
    pub(crate) fn write_begin(self, keyspace: Option<&str>, whole: &Extent, out: &mut Vec<u8>) {
        match (self, keyspace) {
            (Format::Text | Format::Hex, Some(name)) => {
                out.extend_from_slice(KEYSPACE_DIRECTIVE);
                text::escape_into(name.as_bytes(), out);
                out.push(b'\n');
            }
            (Format::Mdb | Format::MdbPrint, _) => {
                mdb::write_begin(self == Format::MdbPrint, keyspace, whole.pairs, whole.bytes, out);
            }
            _ => {}
        }
    }

    /// Appends the end of a keyspace after its `pairs` pairs.
    pub(crate) fn write_end(self, pairs: u64, out: &mut Vec<u8>) {
        match self {
            Format::Ldb => ldb::write_end(pairs, out),
            Format::Mdb | Format::MdbPrint => mdb::write_end(out),
            _ => {}
        }
    }

    /// Fails if the format cannot hold a pair.
    pub(crate) fn check_pair(self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let what = match self {
            Format::Tsv if key.contains(&b'\t') => "a tab in its key",
            Format::Tsv if key.contains(&b'\n') => "a line feed in its key",
            Format::Tsv if value.contains(&b'\n') => "a line feed in its value",
            _ => return Ok(()),
        };
        let key = text::escape(key);
        Err(Failure::usage(format!(
            "the pair {key} has {what}, which tsv cannot hold; csv, text and others can"
        )))
    }

    /// True if [`Format::write_begin`] must know how much there is.
    pub(crate) fn needs_extent(self) -> bool {
        self.has_headers()
    }

    /// Fails if the format cannot hold keyspaces of these names, of which the first is not written where it is the only
    /// one.
    pub(crate) fn check_keyspaces(self, names: &[&str]) -> Result<(), Failure> {
        match self {
            _ if names.len() < 2 => Ok(()),
            Format::Ldb | Format::Tsv | Format::Csv => Err(Failure::usage(format!(
                "this format holds one keyspace, and there are {}; choose one by --keyspace",
                names.len()
            ))),
            // Each is a line of its header, and ends as strings of C do.
            Format::Mdb | Format::MdbPrint => {
                match names.iter().find(|name| name.contains(['\n', '\r', '\0'])) {
                    Some(name) => Err(Failure::usage(format!(
                        "the keyspace {} cannot be named in what mdb_load reads; choose others by --keyspace",
                        text::escape(name.as_bytes())
                    ))),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}

/// How much there is in all keyspaces of a dump.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Extent {
    pub(crate) pairs: u64,
    /// Keys and values.
    pub(crate) bytes: u64,
}

/// Reads an input line by line.
pub(crate) enum Reader {
    /// In a format whose lines mean the same everywhere.
    Lines(Format),
    /// In `text`, with the number of comments so far.
    Text(u64),
    Tsv,
    Csv(csv::Reader),
    Ldb(ldb::Reader),
    Mdb(mdb::Reader),
}

impl Reader {
    /// At the start of an input.
    pub(crate) fn new(format: Format) -> Self {
        match format {
            Format::Tsv => Reader::Tsv,
            Format::Csv => Reader::Csv(csv::Reader::default()),
            Format::Ldb => Reader::Ldb(ldb::Reader::default()),
            Format::Mdb | Format::MdbPrint => Reader::Mdb(mdb::Reader::default()),
            Format::Text => Reader::Text(0),
            format => Reader::Lines(format),
        }
    }

    /// Reads the next line, without its line feed.
    pub(crate) fn line(&mut self, line: &[u8]) -> Result<Item, Mistake> {
        let whole = line;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match self {
            Reader::Lines(format) => read_line(*format, line),
            Reader::Text(comments) => {
                check_text(whole)?;
                let item = read_line(Format::Text, whole)?;
                *comments += u64::from(item == Item::Nothing && whole.starts_with(b"#"));
                Ok(item)
            }
            Reader::Tsv => read_tsv(whole),
            Reader::Csv(reader) => reader.line(whole),
            Reader::Ldb(reader) => reader.line(line),
            Reader::Mdb(reader) => reader.line(line),
        }
    }

    /// Fails if the input ends too early; the error names the missing part.
    pub(crate) fn end(&self) -> Result<(), &'static str> {
        match self {
            Reader::Mdb(reader) => reader.end(),
            Reader::Csv(reader) => reader.end(),
            _ => Ok(()),
        }
    }

    /// True if the last line is part of a pair that goes on in the next.
    pub(crate) fn is_within(&self) -> bool {
        match self {
            Reader::Csv(reader) => reader.is_within(),
            Reader::Mdb(reader) => reader.expects_value(),
            _ => false,
        }
    }

    /// Whether a line that could not be read was a key or a value alone, so that it is known what the next one is.
    pub(crate) fn is_word(&self, line: &[u8]) -> bool {
        matches!(self, Reader::Mdb(reader) if reader.is_word(line))
    }

    /// The format of what it reads now; `format` is that of the whole input, in which parts may differ.
    pub(crate) fn format(&self, format: Format) -> Format {
        match self {
            Reader::Mdb(reader) if reader.is_print() => Format::MdbPrint,
            Reader::Mdb(_) => Format::Mdb,
            _ => format,
        }
    }

    /// Bytes of the lines of a pair that goes on in the next one.
    pub(crate) fn begun_bytes(&self) -> usize {
        if let Reader::Csv(reader) = self { reader.begun_bytes() } else { 0 }
    }

    /// Most bytes of the next line, where that depends on the lines before.
    pub(crate) fn line_bytes_max(&self) -> Option<usize> {
        let Reader::Mdb(reader) = self else { return None };
        let most = if reader.expects_key() { MAX_KEY_BYTES } else { MAX_KEYSPACE_NAME_BYTES };
        (!reader.expects_value()).then_some(Format::MdbPrint.expansion() * most + MARKS_BYTES_MAX)
    }

    /// The lines of the last pair, if there may be several, in which a [`Mistake`] has its offset.
    pub(crate) fn record(&self) -> Option<&[u8]> {
        if let Reader::Csv(reader) = self { Some(reader.record()) } else { None }
    }

    /// Forgets the lines of a pair that goes on in the next one.
    pub(crate) fn forget(&mut self) {
        if let Reader::Csv(reader) = self {
            *reader = csv::Reader::default();
        }
    }

    /// Comments so far, where a line of a file of pairs might be taken for one.
    pub(crate) fn comments(&self) -> u64 {
        if let Reader::Text(comments) = self { *comments } else { 0 }
    }
}

/// Fails on a line of `text` of which bytes would get lost that may belong to a pair.
fn check_text(line: &[u8]) -> Result<(), Mistake> {
    if let Some(line) = line.strip_suffix(b"\r") {
        return Err(Mistake::new(
            line.len(),
            "a carriage return at the end; write \\r, or load with --format tsv, if it belongs to the value, and else \
             remove it, as tr -d '\\r' does",
        ));
    }
    if line.starts_with(b"#") && line.contains(&b'\t') {
        return Err(Mistake::new(
            0,
            r"a comment with a tab; write \x23 for a # that begins a key, or load with --format tsv",
        ));
    }
    Ok(())
}

fn read_tsv(line: &[u8]) -> Result<Item, Mistake> {
    let Some(tab) = line.iter().position(|&byte| byte == b'\t') else {
        return Err(Mistake::new(line.len(), "no tab; a line is key TAB value"));
    };
    let (key, value) = (line[..tab].to_vec(), line[tab + 1..].to_vec());
    Ok(Item::Change(Op::Set { key, value }, None))
}

fn read_line(format: Format, line: &[u8]) -> Result<Item, Mistake> {
    if let Some(name) = line.strip_prefix(KEYSPACE_DIRECTIVE)
        && matches!(format, Format::Text | Format::Hex)
    {
        let at = KEYSPACE_DIRECTIVE.len();
        let name = text::unescape(name).map_err(|m| m.after(at))?;
        let name =
            String::from_utf8(name).map_err(|_| Mistake::new(at, "a keyspace's name must be UTF-8"))?;
        return Ok(Item::Keyspace(Some(name)));
    }
    if line.is_empty() || line.starts_with(b"#") {
        return Ok(Item::Nothing);
    }
    match format {
        Format::Jsonl => read_json(line),
        Format::Ops => read_op(line),
        _ if format.is_hex() => read_pair(line, hex::decode),
        _ => read_pair(line, text::unescape),
    }
}

fn read_pair(line: &[u8], read: impl Fn(&[u8]) -> Result<Vec<u8>, Mistake>) -> Result<Item, Mistake> {
    let Some(tab) = line.iter().position(|&b| b == b'\t') else {
        return Err(Mistake::new(line.len(), "no tab; a line is key TAB value"));
    };
    let key = read(&line[..tab])?;
    if let Some(second) = line[tab + 1..].iter().position(|&b| b == b'\t') {
        return Err(Mistake::new(tab + 1 + second, r"a second tab; write \t for a tab within a value"));
    }
    let value = read(&line[tab + 1..]).map_err(|m| m.after(tab + 1))?;
    Ok(Item::Change(Op::Set { key, value }, None))
}

/// Whether an operation may begin so: the word after the verb ends.
fn may_be_op(beginning: &[u8]) -> bool {
    let text = match std::str::from_utf8(beginning) {
        Ok(text) => text,
        // It may be cut within a character.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&beginning[..error.valid_up_to()]).expect("so far it is UTF-8")
        }
        Err(_) => return false,
    };
    let (mut words, mut count, mut wanted) = (line::Words::new(text), 0, 2);
    // A word has ended if another one follows, or a mistake, which may be that of the cut.
    while count <= wanted {
        match words.word() {
            Ok(Some(word)) => {
                wanted += usize::from(count == 0 && word.bytes.starts_with(b"@"));
                count += 1;
            }
            Ok(None) => return false,
            Err(_) => return count >= wanted,
        }
    }
    true
}

/// Whether a line of JSON may begin so: all strings end but one that is a value.
fn may_be_json(beginning: &[u8]) -> bool {
    fn string(text: &[u8]) -> Option<(&[u8], &[u8])> {
        let text = text.trim_ascii_start().strip_prefix(b"\"")?;
        let mut at = 0;
        while *text.get(at)? != b'"' {
            at += if text[at] == b'\\' { 2 } else { 1 };
        }
        Some((&text[..at], &text[at + 1..]))
    }
    /// The name of the first string that does not end.
    fn open(beginning: &[u8]) -> Option<&[u8]> {
        let mut rest = beginning.trim_ascii_start().strip_prefix(b"{")?;
        loop {
            let (name, value) = string(rest)?;
            let value = value.trim_ascii_start().strip_prefix(b":")?;
            let is_string = value.trim_ascii_start().starts_with(b"\"");
            let after = match string(value) {
                Some((_, after)) => after,
                None if is_string => return Some(name),
                None => value,
            };
            rest = &after[after.iter().position(|&byte| byte == b',')? + 1..];
        }
    }
    open(beginning).is_some_and(|name| [&b"value"[..], b"value_hex"].contains(&name))
}

fn read_op(line: &[u8]) -> Result<Item, Mistake> {
    let text = std::str::from_utf8(line)
        .map_err(|e| Mistake::new(e.valid_up_to(), r"not UTF-8; write \xNN for other bytes"))?;
    if line::is_blank(text) {
        return Ok(Item::Nothing);
    }
    let line::Line { keyspace, op } = text.parse().map_err(|e: line::ParseError| {
        let at = text.char_indices().nth(e.column - 1).map_or(text.len(), |(at, _)| at);
        Mistake::new(at, format!("expected {}, found {}", e.expected, e.found))
    })?;
    Ok(Item::Change(op, keyspace))
}

/// Appends the keyspace of an operation, if it is to be named.
pub(crate) fn write_op_keyspace(keyspace: Option<&str>, out: &mut Vec<u8>) {
    if let Some(keyspace) = keyspace {
        out.extend_from_slice(line::quote(format!("@{keyspace}")).to_string().as_bytes());
        out.push(b' ');
    }
}

/// Appends `"name": "text"`, or `"name_hex": "digits"` for bytes that are not UTF-8.
pub(crate) fn write_json_field(name: &str, bytes: &[u8], out: &mut Vec<u8>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            out.extend_from_slice(format!("\"{name}\": ").as_bytes());
            write_json_text(text, out);
        }
        Err(_) => {
            out.extend_from_slice(format!("\"{name}_hex\": \"").as_bytes());
            hex::encode_into(bytes, out);
            out.push(b'"');
        }
    }
}

/// Appends a string of JSON. All control characters are escaped, since a terminal obeys them: JSON itself demands it of
/// those below U+0020 only.
fn write_json_text(text: &str, out: &mut Vec<u8>) {
    let start = out.len();
    serde_json::to_writer(&mut *out, text).expect("writing to memory does not fail");
    if !text.contains(char::is_control) {
        return;
    }
    let written = out.split_off(start);
    let mut rest = std::str::from_utf8(&written).expect("JSON is UTF-8");
    while let Some(at) = rest.find(char::is_control) {
        let control = rest[at..].chars().next().expect("there is one");
        out.extend_from_slice(&rest.as_bytes()[..at]);
        out.extend_from_slice(format!("\\u{:04x}", u32::from(control)).as_bytes());
        rest = &rest[at + control.len_utf8()..];
    }
    out.extend_from_slice(rest.as_bytes());
}

fn read_json(line: &[u8]) -> Result<Item, Mistake> {
    let json: Json = serde_json::from_slice(line).map_err(|e| {
        let message = e.to_string();
        // The message ends with a position relative to this line; remove it.
        let what = message.split(" at line ").next().unwrap_or_default();
        Mistake::new(e.column().saturating_sub(1), what.to_owned())
    })?;
    let Json::Object(mut fields) = json else {
        return Err(Mistake::new(0, "not an object; a line is {\"key\": ..., \"value\": ...}"));
    };
    let mut bytes = |name: &str| {
        let plain = fields.remove(name);
        let encoded = fields.remove(&format!("{name}_hex"));
        match (plain, encoded) {
            (Some(Json::String(text)), None) => Ok(text.into_bytes()),
            (None, Some(Json::String(digits))) => hex::decode(digits.as_bytes())
                .map_err(|m| Mistake::new(0, format!("\"{name}_hex\", digit {}: {}", m.at + 1, m.what))),
            (None, None) => Err(Mistake::new(0, format!("neither \"{name}\" nor \"{name}_hex\" is there"))),
            (Some(_), Some(_)) => {
                Err(Mistake::new(0, format!("both \"{name}\" and \"{name}_hex\" are there")))
            }
            _ => Err(Mistake::new(0, format!("\"{name}\" must be a string; write 1 as \"1\""))),
        }
    };
    let key = bytes("key")?;
    let value = bytes("value")?;
    let keyspace = match fields.remove("keyspace") {
        None => None,
        Some(Json::String(name)) => Some(name),
        Some(_) => return Err(Mistake::new(0, "\"keyspace\" must be a string")),
    };
    let expires_ms = match fields.remove("expires_ms") {
        None => None,
        Some(Json::Number(ms)) if ms.is_u64() => ms.as_u64(),
        Some(_) => {
            return Err(Mistake::new(0, "\"expires_ms\" must be a number of milliseconds since 1970"));
        }
    };
    if let Some(name) = fields.keys().next() {
        let known = "there are key, key_hex, value, value_hex, keyspace, expires_ms";
        return Err(Mistake::new(0, format!("unknown field \"{}\"; {known}", text::escape(name.as_bytes()))));
    }
    let op = match expires_ms {
        Some(ms) => Op::SetUntil { key, value, expires: Expires::At(ms) },
        None => Op::Set { key, value },
    };
    Ok(Item::Change(op, keyspace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_pair_fits_into_a_line() {
        let (key, value) = (vec![0x01; MAX_KEY_BYTES], vec![0x02; 100_000]);
        let name = "\u{1}".repeat(MAX_KEYSPACE_NAME_BYTES);
        for format in Format::value_variants() {
            let mut line = Vec::new();
            format.write_pair(Some(&name), &key, Shown::Bytes(&value), &mut line);
            // What the rest of the largest value takes.
            let rest = format.expansion() * (MAX_VALUE_BYTES - value.len());
            let most = format.line_bytes_max() - rest;
            assert!(line.split(|&byte| byte == b'\n').all(|line| line.len() <= most), "{format:?}");
            assert_eq!(format.refuses(&line[..line.len().min(START_BYTES)]), None, "{format:?}");
            let key = vec![b'a'; START_BYTES];
            let is_mdb = matches!(format, Format::Mdb | Format::MdbPrint);
            assert_eq!(format.refuses(&key).is_none(), is_mdb, "{format:?}");
            // A large value may follow, from the first byte after the key on.
            let mut line = Vec::new();
            format.write_pair(
                Some(&name),
                &vec![0x01; MAX_KEY_BYTES],
                Shown::Bytes(&[b'v'; 500_000]),
                &mut line,
            );
            assert_eq!(format.refuses(&line[..START_BYTES]), None, "{format:?}");
        }
        assert!(Format::Text.refuses(&[b'#'; START_BYTES]).is_some());
    }

    #[test]
    fn a_long_line_may_be_right_or_not() {
        let long = "x".repeat(START_BYTES);
        for (format, beginning, may_be_right) in [
            (Format::Jsonl, r#"{"value": ""#, true),
            (Format::Jsonl, r#" { "expires_ms": 1 , "key_hex":"61", "value_hex" : ""#, true),
            (Format::Jsonl, r#"{"value": "\"", "key": ""#, false),
            (Format::Jsonl, r#"{"key": """#, false),
            (Format::Jsonl, r#"{"key": ""#, false),
            (Format::Jsonl, r#"{"keyspace": ""#, false),
            (Format::Jsonl, r#"{""#, false),
            (Format::Jsonl, "", false),
            (Format::Jsonl, "#", false),
            (Format::Ops, "set k ", true),
            (Format::Ops, "@a set k \"", true),
            (Format::Ops, "set k \"v\" ", true),
            (Format::Ops, "@a set ", false),
            (Format::Ops, "set ", false),
            (Format::Ops, "set \"k ", false),
            (Format::Ops, "", false),
            (Format::Ops, "#", false),
        ] {
            let line = [beginning, &long].concat();
            assert_eq!(format.refuses(line.as_bytes()).is_none(), may_be_right, "{beginning}");
        }
        // Cut within a character, and no UTF-8.
        assert_eq!(
            Format::Ops
                .refuses(&[&b"set k "[..], &b"\xe2\x82\xac".repeat(START_BYTES)[..START_BYTES]].concat()),
            None
        );
        assert!(Format::Ops.refuses(&[&b"set k "[..], &[0xff; START_BYTES]].concat()).is_some());
    }
}
