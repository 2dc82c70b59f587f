//! The text form of operations: one line each, any bytes, readable where they are text.
//!
//! ```text
//! set KEY VALUE
//! set-for KEY VALUE MS                  a time to live in milliseconds
//! set-until KEY VALUE MS                milliseconds since 1970
//! delete KEY
//! add KEY DELTA                         a decimal integer of 64 bits
//! merge KEY OPERAND
//! compare-and-swap KEY EXPECTED NEW     `-` is absence
//! delete-range START END                from START on and before END; `-` is no end
//! compare-range START END KEY VALUE ... the pairs that the range must have, none or more
//! @KEYSPACE set KEY VALUE               any of them, on another keyspace than the default one
//! ```
//!
//! Words are separated by spaces or tabs. A word is bare or in double quotes, inside which spaces count. It
//! must be quoted if it is empty, has a space, or is `-` where that means absence. In both forms a backslash
//! begins an escape: `\xNN` is any byte; `\n`, `\r`, `\t`, `\"`, `\\` are as in Rust. Other characters stand
//! for their UTF-8 bytes; control characters must be escaped. Blank lines and lines that begin with `#` are
//! ignored ([`is_blank`]).
//!
//! Output is ASCII and printable Unicode only, and parses to the same operation.

use crate::error::Error;
use crate::pairs::{self, Pairs};
use crate::{Expires, Op};
use std::fmt::{self, Write};
use std::str::FromStr;

/// One line: an operation and the keyspace that it changes.
///
/// ```
/// use forrest::{Op, line::Line};
///
/// let line: Line = r#"@people set ada "Countess of Lovelace""#.parse()?;
/// assert_eq!(line.keyspace.as_deref(), Some("people"));
/// assert_eq!(line.op, Op::Set { key: b"ada".to_vec(), value: b"Countess of Lovelace".to_vec() });
/// assert_eq!(line.to_string(), r#"@people set ada "Countess of Lovelace""#);
/// # Ok::<(), forrest::line::ParseError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The keyspace; `None` is the default one.
    pub keyspace: Option<String>,
    /// The operation.
    pub op: Op,
}

/// The reason why a line is not an operation: the column, what was expected there, and what was found.
///
/// ```
/// let error = "set key".parse::<forrest::Op>().unwrap_err();
/// assert_eq!(error.to_string(), "column 8: expected a value, found the end of the line");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The column, in characters, counted from 1.
    pub column: usize,
    /// The expected word or character.
    pub expected: String,
    /// What the line has instead.
    pub found: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: expected {}, found {}", self.column, self.expected, self.found)
    }
}

impl std::error::Error for ParseError {}

impl From<ParseError> for Error {
    fn from(error: ParseError) -> Error {
        Error::invalid(error.to_string())
    }
}

/// True if a line is blank or a comment.
///
/// ```
/// use forrest::line::is_blank;
/// assert!(is_blank("  # a comment") && is_blank(""));
/// assert!(!is_blank("delete oak"));
/// ```
pub fn is_blank(line: &str) -> bool {
    let line = line.trim_start_matches([' ', '\t']);
    line.trim_end_matches(['\n', '\r']).is_empty() || line.starts_with('#')
}

/// Bytes as a word: bare where that is possible, otherwise quoted.
///
/// ```
/// use forrest::line::quote;
/// assert_eq!(quote("oak").to_string(), "oak");
/// assert_eq!(quote("two words").to_string(), "\"two words\"");
/// assert_eq!(quote([0, 255]).to_string(), r#""\x00\xff""#);
/// assert_eq!(quote("").to_string(), "\"\"");
/// ```
pub fn quote<B: AsRef<[u8]>>(bytes: B) -> impl fmt::Display {
    Quoted(bytes)
}

struct Quoted<B>(B);

/// True for characters that are visible and distinguishable.
fn is_printable(c: char) -> bool {
    "'\"\\".contains(c) || c.escape_debug().len() == 1
}

impl<B: AsRef<[u8]>> fmt::Display for Quoted<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.as_ref();
        let is_bare = |c: char| is_printable(c) && !" \"\\".contains(c);
        match std::str::from_utf8(bytes) {
            Ok(text) if !["", "-"].contains(&text) && text.chars().all(is_bare) => return f.write_str(text),
            _ => f.write_char('"')?,
        }
        for chunk in bytes.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\n' => f.write_str("\\n")?,
                    '\r' => f.write_str("\\r")?,
                    '\t' => f.write_str("\\t")?,
                    '"' | '\\' => write!(f, "\\{c}")?,
                    c if is_printable(c) => f.write_char(c)?,
                    c => {
                        let mut utf8 = [0; 4];
                        c.encode_utf8(&mut utf8).bytes().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
                    }
                }
            }
            chunk.invalid().iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
        }
        f.write_char('"')
    }
}

/// A word of a line.
///
/// ```
/// use forrest::line::Words;
/// let mut words = Words::new(r"- \x2d");
/// let (absent, dash) = (words.next("a value")?, words.next("a value")?);
/// assert_eq!((dash.column, dash.is_dash), (3, false));
/// assert_eq!((absent.optional(), dash.optional()), (None, Some(b"-".to_vec())));
/// # Ok::<(), forrest::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The bytes that it stands for.
    pub bytes: Vec<u8>,
    /// The column where it begins, in characters, counted from 1.
    pub column: usize,
    /// True if it is a bare `-`, which means absence where absence is possible.
    pub is_dash: bool,
}

impl Word {
    /// The bytes, or `None` if the word is a bare `-`.
    pub fn optional(self) -> Option<Vec<u8>> {
        (!self.is_dash).then_some(self.bytes)
    }

    /// An error: something else was expected here.
    ///
    /// ```
    /// use forrest::line::Words;
    /// let word = Words::new("purge").next("a command")?;
    /// assert_eq!(word.unexpected("get or set").to_string(), "column 1: expected get or set, found purge");
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn unexpected(&self, expected: impl Into<String>) -> ParseError {
        ParseError {
            column: self.column,
            expected: expected.into(),
            found: shortened(&quote(&self.bytes).to_string()),
        }
    }
}

/// A word as a message shows it.
fn shortened(word: &str) -> String {
    const CHARS_MAX: usize = 40;
    match word.char_indices().nth(CHARS_MAX) {
        Some((at, _)) => format!("{}...", &word[..at]),
        None => word.to_string(),
    }
}

/// The words of a line, one after another: for programs with commands of their own in the same form as
/// operations.
///
/// ```
/// use forrest::line::Words;
///
/// let mut words = Words::new(r#"get "two words""#);
/// assert_eq!(words.next("a command")?.bytes, b"get");
/// assert_eq!(words.next("a key")?.bytes, b"two words");
/// words.end()?;
/// # Ok::<(), forrest::line::ParseError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Words<'l> {
    line: &'l str,
    /// The unread rest.
    rest: &'l str,
}

impl<'l> Words<'l> {
    /// Starts at the beginning of a line. A final line feed is ignored.
    pub fn new(line: &'l str) -> Words<'l> {
        let line = line.strip_suffix('\n').unwrap_or(line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        Words { line, rest: line }
    }

    /// The next word. If there is none, the error says that `expected` is missing.
    ///
    /// # Errors
    /// At the end of the line, and if the word is malformed.
    pub fn next(&mut self, expected: &str) -> Result<Word, ParseError> {
        self.word()?.ok_or_else(|| self.error(expected, "the end of the line"))
    }

    /// The next word, or `None` at the end of the line.
    ///
    /// # Errors
    /// If the word is malformed.
    pub fn word(&mut self) -> Result<Option<Word>, ParseError> {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
        let column = self.column();
        let start = self.rest;
        let mut bytes = Vec::new();
        if let Some(rest) = start.strip_prefix('"') {
            self.rest = rest;
            loop {
                match self.rest.chars().next() {
                    Some('"') => break self.rest = &self.rest[1..],
                    Some(c) => self.character(c, &mut bytes)?,
                    None => return Err(self.error("a closing quote", "the end of the line")),
                }
            }
            if self.rest.starts_with(|c| c != ' ' && c != '\t') {
                return Err(self.error_here("a space after the closing quote"));
            }
            return Ok(Some(Word { bytes, column, is_dash: false }));
        }
        while let Some(c) = self.rest.chars().next().filter(|&c| c != ' ' && c != '\t') {
            if c == '"' {
                return Err(self.error_here("no quote inside a bare word (write \\\")"));
            }
            self.character(c, &mut bytes)?;
        }
        let read = &start[..start.len() - self.rest.len()];
        Ok((!read.is_empty()).then_some(Word { bytes, column, is_dash: read == "-" }))
    }

    /// Checks that there are no more words.
    ///
    /// # Errors
    /// If there are more.
    pub fn end(&mut self) -> Result<(), ParseError> {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
        if self.rest.is_empty() { Ok(()) } else { Err(self.error_here("the end of the line")) }
    }

    /// The column of the next character, in characters, counted from 1.
    pub fn column(&self) -> usize {
        self.line[..self.line.len() - self.rest.len()].chars().count() + 1
    }

    fn error(&self, expected: &str, found: impl Into<String>) -> ParseError {
        ParseError { column: self.column(), expected: expected.into(), found: found.into() }
    }

    /// An error at the next character, which it shows.
    fn error_here(&self, expected: &str) -> ParseError {
        match self.rest.chars().next() {
            Some(c) if is_printable(c) => self.error(expected, format!("`{c}`")),
            Some(c) => self.error(expected, format!("`{}`", c.escape_debug())),
            None => self.error(expected, "the end of the line"),
        }
    }

    /// Reads a character, or an escape.
    fn character(&mut self, c: char, bytes: &mut Vec<u8>) -> Result<(), ParseError> {
        if c.is_control() {
            return Err(self.error_here("a printable character (write \\xNN for any byte)"));
        }
        if c != '\\' {
            self.rest = &self.rest[c.len_utf8()..];
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            return Ok(());
        }
        let escape = &self.rest[1..];
        let (byte, len) = match escape.bytes().next() {
            Some(b'n') => (b'\n', 1),
            Some(b'r') => (b'\r', 1),
            Some(b't') => (b'\t', 1),
            Some(b @ (b'"' | b'\\')) => (b, 1),
            Some(b'x') => {
                self.rest = &escape[1..];
                (self.hex()?, 0)
            }
            _ => {
                self.rest = escape;
                return Err(self.error_here("one of n r t x \" \\ after a backslash"));
            }
        };
        if len == 1 {
            self.rest = &escape[1..];
        }
        bytes.push(byte);
        Ok(())
    }

    fn hex(&mut self) -> Result<u8, ParseError> {
        let mut byte = 0;
        for _ in 0..2 {
            let digit = self.rest.chars().next().and_then(|c| c.to_digit(16));
            let Some(digit) = digit else { return Err(self.error_here("a hexadecimal digit")) };
            byte = byte * 16 + digit as u8;
            self.rest = &self.rest[1..];
        }
        Ok(byte)
    }
}

impl FromStr for Op {
    type Err = ParseError;

    fn from_str(line: &str) -> Result<Op, ParseError> {
        let mut words = Words::new(line);
        let verb = words.next("an operation")?;
        op_after(&verb, words)
    }
}

impl FromStr for Line {
    type Err = ParseError;

    fn from_str(line: &str) -> Result<Line, ParseError> {
        let mut words = Words::new(line);
        let mut verb = words.next("an operation")?;
        let mut keyspace = None;
        if let Some(name) = verb.bytes.strip_prefix(b"@") {
            match std::str::from_utf8(name) {
                Ok(name) if !name.is_empty() => keyspace = Some(name.to_string()),
                _ => return Err(verb.unexpected("the name of a keyspace, in UTF-8, after @")),
            }
            verb = words.next("an operation")?;
        }
        Ok(Line { keyspace, op: op_after(&verb, words)? })
    }
}

fn op_after(verb: &Word, mut words: Words<'_>) -> Result<Op, ParseError> {
    let op = match &verb.bytes[..] {
        b"set" => Op::Set { key: words.next("a key")?.bytes, value: words.next("a value")?.bytes },
        b"delete" => Op::Delete { key: words.next("a key")?.bytes },
        b"add" => {
            let key = words.next("a key")?.bytes;
            let delta = words.next("an integer")?;
            let number = std::str::from_utf8(&delta.bytes).ok().and_then(|text| text.parse().ok());
            let delta = number.ok_or_else(|| delta.unexpected("a decimal integer of 64 bits"))?;
            Op::Add { key, delta }
        }
        b"set-for" | b"set-until" => {
            let (key, value) = (words.next("a key")?.bytes, words.next("a value")?.bytes);
            let ms = words.next("milliseconds")?;
            let number = str::from_utf8(&ms.bytes).ok().and_then(|text| text.parse().ok());
            let ms = number.ok_or_else(|| ms.unexpected("a number of milliseconds"))?;
            let expires = if verb.bytes == b"set-for" { Expires::In(ms) } else { Expires::At(ms) };
            Op::SetUntil { key, value, expires }
        }
        b"merge" => Op::Merge { key: words.next("a key")?.bytes, operand: words.next("an operand")?.bytes },
        b"compare-and-swap" => Op::CompareAndSwap {
            key: words.next("a key")?.bytes,
            expected: words.next("the expected value or -")?.optional(),
            new: words.next("the new value or -")?.optional(),
        },
        b"delete-range" => Op::DeleteRange {
            start: words.next("the first key of the range")?.bytes,
            end: words.next("the key before which the range ends, or -")?.optional(),
        },
        b"compare-range" => {
            let start = words.next("the first key of the range")?.bytes;
            let end = words.next("the key before which the range ends, or -")?.optional();
            let mut pairs = Vec::new();
            while let Some(key) = words.word()? {
                pairs::push(&mut pairs, &key.bytes, &words.next("the value of this key")?.bytes);
            }
            Op::CompareRange { start, end, pairs }
        }
        _ => {
            let all = "set, set-for, set-until, delete, add, merge, compare-and-swap, delete-range or compare-range";
            return Err(verb.unexpected(all));
        }
    };
    words.end()?;
    Ok(op)
}

impl<B: AsRef<[u8]>> fmt::Display for Op<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.borrowed() {
            Op::Set { key, value } => write!(f, "set {} {}", quote(key), quote(value)),
            Op::SetUntil { key, value, expires } => {
                let (verb, ms) = match expires {
                    Expires::In(ms) => ("set-for", ms),
                    Expires::At(ms) => ("set-until", ms),
                };
                write!(f, "{verb} {} {} {ms}", quote(key), quote(value))
            }
            Op::Delete { key } => write!(f, "delete {}", quote(key)),
            Op::Add { key, delta } => write!(f, "add {} {delta}", quote(key)),
            Op::Merge { key, operand } => write!(f, "merge {} {}", quote(key), quote(operand)),
            Op::CompareAndSwap { key, expected, new } => {
                write!(f, "compare-and-swap {} {} {}", quote(key), or_dash(expected), or_dash(new))
            }
            Op::DeleteRange { start, end } => write!(f, "delete-range {} {}", quote(start), or_dash(end)),
            Op::CompareRange { start, end, pairs } => {
                write!(f, "compare-range {} {}", quote(start), or_dash(end))?;
                Pairs::new(pairs).try_for_each(|(key, value)| write!(f, " {} {}", quote(key), quote(value)))
            }
        }
    }
}

/// A word, or a bare `-` for absence.
///
/// ```
/// use forrest::line::or_dash;
/// assert_eq!(or_dash(Some("oak")).to_string(), "oak");
/// assert_eq!(or_dash(None::<&str>).to_string(), "-");
/// assert_eq!(or_dash(Some("-")).to_string(), "\"-\"");
/// ```
pub fn or_dash<B: AsRef<[u8]>>(bytes: Option<B>) -> impl fmt::Display {
    struct OrDash<B>(Option<B>);
    impl<B: AsRef<[u8]>> fmt::Display for OrDash<B> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match &self.0 {
                Some(bytes) => write!(f, "{}", quote(bytes)),
                None => f.write_char('-'),
            }
        }
    }
    OrDash(bytes)
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.keyspace {
            write!(f, "{} ", quote(format!("@{name}")))?;
        }
        write!(f, "{}", self.op)
    }
}
