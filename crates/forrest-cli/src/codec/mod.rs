//! How pairs are written and read, one per line. Each format is reversible for any bytes.
//!
//! | format | a line |
//! |---|---|
//! | `text` | key TAB value, both escaped as [`text`] says |
//! | `hex` | key TAB value, both in hexadecimal |
//! | `jsonl` | `{"key": "...", "value": "..."}`; bytes that are not UTF-8 as `"key_hex"`, `"value_hex"` |
//! | `ops` | an operation, as the library's [`forrest::line`] module has them: `set KEY VALUE` and the others |
//!
//! A line that begins with `#` is a comment; a key that begins with `#` is escaped in `text`. A pair's
//! keyspace is named in `text` and `hex` by a line `#keyspace NAME` before it, in `jsonl` by the field
//! `"keyspace"`, and in `ops` by `@NAME` before the operation. Empty lines mean nothing, and so does a
//! carriage return at the end of a line.

pub(crate) mod hex;
pub(crate) mod text;

use crate::failure::Failure;
use clap::ValueEnum;
use forrest::{Op, line};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::path::Path;

/// What a line of a file in `text` or `hex` that switches keyspaces begins with.
const KEYSPACE_DIRECTIVE: &[u8] = b"#keyspace ";

/// A way to write pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// key TAB value; unprintable bytes as \xNN, \t, \n, \r, \\
    #[default]
    Text,
    /// key TAB value, both in hexadecimal
    Hex,
    /// {"key": "...", "value": "..."}, bytes that are not UTF-8 as "key_hex", "value_hex"
    Jsonl,
    /// set KEY VALUE, an operation a line, as the shell understands
    Ops,
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

/// What a line of an input says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    /// Nothing: it is empty or a comment.
    Nothing,
    /// The lines after it belong to this keyspace.
    Keyspace(String),
    /// A change, and the keyspace that it names, if it does.
    Change(Op, Option<String>),
}

/// Something that cannot be understood, and at which byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// Offset of the byte at which it cannot be understood.
    pub(crate) at: usize,
    /// What is wrong, for people.
    pub(crate) what: Cow<'static, str>,
}

impl Mistake {
    /// `what` is wrong at `at`.
    pub(crate) fn new(at: usize, what: impl Into<Cow<'static, str>>) -> Self {
        Mistake { at, what: what.into() }
    }

    /// The same, in a text that begins `offset` bytes earlier.
    fn after(self, offset: usize) -> Self {
        Mistake { at: self.at + offset, ..self }
    }
}

impl Format {
    /// The format of a file: what its name ends in says, otherwise it is `self`.
    pub(crate) fn of_file(self, path: &Path) -> Format {
        match path.extension().and_then(|e| e.to_str()) {
            Some("txt" | "tsv" | "text") => Format::Text,
            Some("hex") => Format::Hex,
            Some("jsonl" | "ndjson") => Format::Jsonl,
            Some("ops") => Format::Ops,
            _ => self,
        }
    }

    /// Appends a key or value to `out` as `text`, `hex` or `ops` has it.
    fn write_word(self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            Format::Text | Format::Jsonl => text::escape_into(bytes, out),
            Format::Hex => hex::encode_into(bytes, out),
            Format::Ops => out.extend_from_slice(line::quote(bytes).to_string().as_bytes()),
        }
    }

    /// Reads a key or value given as an argument: hexadecimal with `hex`, else escaped text.
    pub(crate) fn read_argument(self, what: &str, argument: &[u8]) -> Result<Vec<u8>, Failure> {
        let read = if self == Format::Hex { hex::decode(argument) } else { text::unescape(argument) };
        read.map_err(|Mistake { at, what: why }| {
            Failure::usage(format!(
                "{what} '{}', at byte {}: {why}",
                String::from_utf8_lossy(argument),
                at + 1
            ))
        })
    }

    /// Appends the line of a pair to `out`, its line feed included. `keyspace` is named where the format can
    /// do so in each line; others need [`Format::write_keyspace`].
    pub(crate) fn write_pair(self, keyspace: Option<&str>, key: &[u8], value: Shown<'_>, out: &mut Vec<u8>) {
        match (self, value) {
            (Format::Text | Format::Hex, _) => {
                self.write_key(key, out);
                out.push(b'\t');
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
                if let Some(keyspace) = keyspace {
                    out.extend_from_slice(line::quote(format!("@{keyspace}")).to_string().as_bytes());
                    out.push(b' ');
                }
                let op = match value {
                    Shown::Bytes(value) => Op::Set { key, value },
                    Shown::Integer(delta) => Op::Add { key, delta },
                };
                out.extend_from_slice(op.to_string().as_bytes());
            }
        }
        out.push(b'\n');
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
            Format::Text | Format::Hex => {
                self.write_value(value, out);
                out.push(b'\n');
            }
            Format::Jsonl | Format::Ops => self.write_pair(None, key, value, out),
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

    /// Appends the line after which pairs belong to `keyspace`.
    pub(crate) fn write_keyspace(self, keyspace: &str, out: &mut Vec<u8>) {
        if matches!(self, Format::Text | Format::Hex) {
            out.extend_from_slice(KEYSPACE_DIRECTIVE);
            text::escape_into(keyspace.as_bytes(), out);
            out.push(b'\n');
        }
    }

    /// Reads a line, without its line feed.
    pub(crate) fn read_line(self, line: &[u8]) -> Result<Item, Mistake> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(name) = line.strip_prefix(KEYSPACE_DIRECTIVE)
            && matches!(self, Format::Text | Format::Hex)
        {
            let at = KEYSPACE_DIRECTIVE.len();
            let name = text::unescape(name).map_err(|m| m.after(at))?;
            let name =
                String::from_utf8(name).map_err(|_| Mistake::new(at, "a keyspace's name must be UTF-8"))?;
            return Ok(Item::Keyspace(name));
        }
        if line.is_empty() || line.starts_with(b"#") {
            return Ok(Item::Nothing);
        }
        match self {
            Format::Text => read_pair(line, text::unescape),
            Format::Hex => read_pair(line, hex::decode),
            Format::Jsonl => read_json(line),
            Format::Ops => read_op(line),
        }
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

/// Appends `"name": "text"`, or `"name_hex": "digits"` for bytes that are not UTF-8.
pub(crate) fn write_json_field(name: &str, bytes: &[u8], out: &mut Vec<u8>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            out.extend_from_slice(format!("\"{name}\": ").as_bytes());
            serde_json::to_writer(out, text).expect("writing to memory does not fail");
        }
        Err(_) => {
            out.extend_from_slice(format!("\"{name}_hex\": \"").as_bytes());
            hex::encode_into(bytes, out);
            out.push(b'"');
        }
    }
}

fn read_json(line: &[u8]) -> Result<Item, Mistake> {
    let json: Json = serde_json::from_slice(line).map_err(|e| {
        let message = e.to_string();
        // The message ends in a place of its own, which counts from this line.
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
    if let Some(name) = fields.keys().next() {
        let known = "there are key, key_hex, value, value_hex, keyspace";
        return Err(Mistake::new(0, format!("unknown field \"{}\"; {known}", text::escape(name.as_bytes()))));
    }
    Ok(Item::Change(Op::Set { key, value }, keyspace))
}
