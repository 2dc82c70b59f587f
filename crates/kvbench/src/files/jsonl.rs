//! JSON lines, as `forrest dump --format jsonl` writes them: `{"key": "...", "value": "..."}`, without the value where
//! there is none; bytes that are not UTF-8 as hexadecimal digits in `key_hex` and `value_hex`.

use super::input::Input;
use super::output::Output;
use super::pair::{Pair, Sink, Source};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_hex: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_hex: Option<String>,
}

/// The bytes of pairs of hexadecimal digits.
fn of_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let byte = |pair: &[u8; 2]| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8);
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

/// Bytes as text, or else as hexadecimal digits.
fn to_text(bytes: &[u8]) -> (Option<String>, Option<String>) {
    if let Ok(text) = str::from_utf8(bytes) {
        return (Some(text.to_owned()), None);
    }
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    (None, Some(digits))
}

/// A key or a value in one of its two forms: the bytes, `None` if it is absent, or an error.
fn part(text: Option<String>, hex: Option<String>, name: &str) -> Result<Option<Vec<u8>>, String> {
    match (text, hex) {
        (None, None) => Ok(None),
        (Some(text), None) => Ok(Some(text.into_bytes())),
        (None, Some(hex)) => of_hex(&hex).map(Some).ok_or_else(|| format!("{name}_hex is not hexadecimal")),
        _ => Err(format!("both {name} and {name}_hex")),
    }
}

fn parse(line: &[u8]) -> Result<Pair, String> {
    let line: Line = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let key = part(line.key, line.key_hex, "key")?.ok_or("no key")?;
    let value = part(line.value, line.value_hex, "value")?;
    Ok(Pair { key, valued: value.is_some(), value: value.unwrap_or_default() })
}

/// Reads lines.
pub(crate) struct Reader {
    input: Input,
    line: Vec<u8>,
}

impl Reader {
    /// Begins to read.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Reader { input: Input::open(path)?, line: Vec::new() })
    }
}

impl Source for Reader {
    fn next(&mut self, pair: &mut Pair) -> io::Result<bool> {
        loop {
            let at = self.input.at();
            if !self.input.line(&mut self.line)? {
                return Ok(false);
            }
            if self.line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            *pair = parse(&self.line).map_err(|what| self.input.damaged(at, what))?;
            return Ok(true);
        }
    }

    fn at(&self) -> u64 {
        self.input.at()
    }
}

/// Writes lines.
pub(crate) struct Writer {
    out: Output,
}

impl Writer {
    /// Begins a file.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Ok(Writer { out: Output::create(path)? })
    }
}

impl Sink for Writer {
    fn put(&mut self, pair: &Pair) -> io::Result<()> {
        let (key, key_hex) = to_text(&pair.key);
        let (value, value_hex) = if pair.valued { to_text(&pair.value) } else { (None, None) };
        serde_json::to_writer(&mut self.out, &Line { key, key_hex, value, value_hex })?;
        self.out.write_all(b"\n")
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.out.finish(b"")
    }
}
