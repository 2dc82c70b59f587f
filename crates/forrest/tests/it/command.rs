//! The language of test scripts: the operations of [`forrest::line`] and commands that read.
//!
//! One command a line; the operations of a batch, a `guard` (a batch on the condition that a range has the pairs that
//! it has) and an `ingest` (sets only, in ascending order of keys) follow on lines of their own. `@NAME` before a
//! command names a keyspace, `%NAME` a snapshot to read from.
//!
//! ```text
//! set KEY VALUE  (and the other operations)       append KEY SUFFIX (by `update`)
//! batch   guard BOUNDS   ingest                    get KEY   get-into KEY   contains KEY
//! multi-get KEY...                                count BOUNDS
//! scan ENDS BOUNDS   prefix ENDS KEY              first   last
//! snapshot NAME   release NAME                    keyspace NAME   drop-keyspace NAME   keyspaces
//! merge-operator NAME
//! iterate NAME BOUNDS   step NAME ENDS            cursor NAME
//! move NAME first|last|next|prev|skip COUNT|seek KEY|seek-for-prev KEY
//! park NAME
//! close NAME                                      keys (of all keyspaces, by `stats`)
//! sync   compact   verify                         reopen SET
//! take ENDS COUNT BOUNDS (a transaction that reads at most COUNT pairs and deletes them)
//! ```
//!
//! ENDS are the ends from which pairs are taken, repeatedly for `scan`, once for `step`: `f`, `b`, `ffb`.
//! BOUNDS are any of `from KEY`, `after KEY` and `before KEY`, `through KEY`. A word `<LEN:SEED>` is a long
//! pattern of bytes. SET is the number of an option set (see `options`). `compact`, `verify` and `reopen` do
//! nothing with `memory:`, except that `reopen` drops all named snapshots, iterations and cursors, as in
//! every home.

use crate::random::pattern;
use forrest::line::{Line, ParseError, Word, Words, or_dash, quote};
use std::fmt;
use std::ops::Bound;

/// The keyspace and the snapshot that a command reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Target {
    pub(crate) snapshot: Option<String>,
    pub(crate) keyspace: Option<String>,
}

pub(crate) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A move of a cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Move {
    First,
    Last,
    /// This number of pairs forward, at least one.
    Skip(usize),
    Prev,
    Seek(Vec<u8>),
    SeekForPrev(Vec<u8>),
}

/// One line of a script; see the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    Write(Line),
    Append { keyspace: Option<String>, key: Vec<u8>, suffix: Vec<u8> },
    Batch(Vec<Line>),
    Guard { keyspace: Option<String>, bounds: Bounds, lines: Vec<Line> },
    Ingest { keyspace: Option<String>, lines: Vec<Line> },
    Operator { keyspace: Option<String>, name: String },
    Get(Target, Vec<u8>),
    GetInto(Target, Vec<u8>),
    Contains(Target, Vec<u8>),
    MultiGet(Target, Vec<Vec<u8>>),
    Count(Target, Bounds),
    Scan(Target, String, Bounds),
    Prefix(Target, String, Vec<u8>),
    First(Target),
    Last(Target),
    Snapshot(String),
    Release(String),
    Keyspace(String),
    DropKeyspace(String),
    Keyspaces(Target),
    Iterate(String, Target, Bounds),
    Step(String, String),
    Cursor(String, Target),
    Move(String, Move),
    Park(String),
    Close(String),
    Take { keyspace: Option<String>, ends: String, count: usize, bounds: Bounds },
    Keys,
    Sync,
    Compact,
    Verify,
    Reopen(usize),
}

/// Bytes as scripts show them.
pub(crate) fn show(bytes: &[u8]) -> String {
    if bytes.len() < 64 {
        return quote(bytes).to_string();
    }
    let seed = u16::from_be_bytes([bytes[bytes.len() - 2], bytes[bytes.len() - 1]]);
    if bytes == pattern(bytes.len(), seed) {
        format!("<{}:{seed}>", bytes.len())
    } else {
        quote(bytes).to_string()
    }
}

/// A value, or `-` for none.
pub(crate) fn show_optional(bytes: Option<&[u8]>) -> String {
    bytes.map_or("-".to_string(), show)
}

fn bytes_of(word: Word) -> Vec<u8> {
    let text = std::str::from_utf8(&word.bytes).ok();
    let inner = text.and_then(|text| text.strip_prefix('<')?.strip_suffix('>')?.split_once(':'));
    match inner.and_then(|(len, seed)| Some((len.parse().ok()?, seed.parse().ok()?))) {
        Some((len, seed)) => pattern(len, seed),
        None => word.bytes,
    }
}

fn name_of(word: Word) -> Result<String, ParseError> {
    String::from_utf8(word.bytes.clone()).map_err(|_| word.unexpected("a name in UTF-8"))
}

fn count_of(word: Word) -> Result<usize, ParseError> {
    let count = std::str::from_utf8(&word.bytes).ok().and_then(|text| text.parse().ok());
    count.filter(|&count| count > 0).ok_or_else(|| word.unexpected("a number above 0"))
}

fn bounds_of(words: &mut Words<'_>) -> Result<Bounds, ParseError> {
    let mut bounds = (Bound::Unbounded, Bound::Unbounded);
    while let Some(word) = words.word()? {
        match &word.bytes[..] {
            b"from" => bounds.0 = Bound::Included(bytes_of(words.next("a key")?)),
            b"after" => bounds.0 = Bound::Excluded(bytes_of(words.next("a key")?)),
            b"before" => bounds.1 = Bound::Excluded(bytes_of(words.next("a key")?)),
            b"through" => bounds.1 = Bound::Included(bytes_of(words.next("a key")?)),
            _ => return Err(word.unexpected("from, after, before or through")),
        }
    }
    Ok(bounds)
}

/// An operation, whose words may be patterns.
pub(crate) fn parse_line(text: &str) -> Result<Line, ParseError> {
    let mut line: Line = text.parse()?;
    let expand = |bytes: &Vec<u8>| bytes_of(Word { bytes: bytes.clone(), column: 0, is_dash: false });
    line.op = line.op.map(expand);
    Ok(line)
}

fn show_line(line: &Line) -> String {
    // A pattern replaces the bytes. It has no character that needs quotes, so quoting does not change it.
    let short = |bytes: &Vec<u8>| if bytes.len() < 64 { bytes.clone() } else { shown_raw(bytes) };
    Line { keyspace: line.keyspace.clone(), op: line.op.map(short) }.to_string()
}

fn shown_raw(bytes: &[u8]) -> Vec<u8> {
    let shown = show(bytes);
    if shown.starts_with('<') { shown.into() } else { bytes.to_vec() }
}

impl Command {
    /// Reads a command and, for a batch, the lines of its operations.
    pub(crate) fn parse(text: &str, body: &[&str]) -> Result<Command, ParseError> {
        let mut words = Words::new(text);
        let mut at = Target::default();
        let mut verb = words.next("a command")?;
        loop {
            match verb.bytes.first() {
                Some(b'%') => at.snapshot = Some(name_of(verb)?[1..].to_string()),
                Some(b'@') => at.keyspace = Some(name_of(verb)?[1..].to_string()),
                _ => break,
            }
            verb = words.next("a command")?;
        }
        let lines = || body.iter().map(|line| parse_line(line)).collect::<Result<Vec<_>, _>>();
        let mut key = || words.next("a key").map(bytes_of);
        let command = match &verb.bytes[..] {
            b"append" => Command::Append { keyspace: at.keyspace, key: key()?, suffix: key()? },
            b"batch" => Command::Batch(lines()?),
            b"guard" => {
                Command::Guard { keyspace: at.keyspace, bounds: bounds_of(&mut words)?, lines: lines()? }
            }
            b"ingest" => Command::Ingest { keyspace: at.keyspace, lines: lines()? },
            b"merge-operator" => {
                Command::Operator { keyspace: at.keyspace, name: name_of(words.next("a name")?)? }
            }
            b"get" => Command::Get(at, key()?),
            b"get-into" => Command::GetInto(at, key()?),
            b"contains" => Command::Contains(at, key()?),
            b"multi-get" => {
                let mut keys = Vec::new();
                while let Some(word) = words.word()? {
                    keys.push(bytes_of(word));
                }
                Command::MultiGet(at, keys)
            }
            b"count" => Command::Count(at, bounds_of(&mut words)?),
            b"scan" => Command::Scan(at, name_of(words.next("ends")?)?, bounds_of(&mut words)?),
            b"prefix" => {
                Command::Prefix(at, name_of(words.next("ends")?)?, bytes_of(words.next("a prefix")?))
            }
            b"first" => Command::First(at),
            b"last" => Command::Last(at),
            b"snapshot" => Command::Snapshot(name_of(words.next("a name")?)?),
            b"release" => Command::Release(name_of(words.next("a name")?)?),
            b"keyspace" => Command::Keyspace(name_of(words.next("a name")?)?),
            b"drop-keyspace" => Command::DropKeyspace(name_of(words.next("a name")?)?),
            b"keyspaces" => Command::Keyspaces(at),
            b"iterate" => Command::Iterate(name_of(words.next("a name")?)?, at, bounds_of(&mut words)?),
            b"step" => Command::Step(name_of(words.next("a name")?)?, name_of(words.next("ends")?)?),
            b"cursor" => Command::Cursor(name_of(words.next("a name")?)?, at),
            b"park" => Command::Park(name_of(words.next("a name")?)?),
            b"close" => Command::Close(name_of(words.next("a name")?)?),
            b"take" => Command::Take {
                keyspace: at.keyspace,
                ends: name_of(words.next("ends")?)?,
                count: count_of(words.next("a count")?)?,
                bounds: bounds_of(&mut words)?,
            },
            b"keys" => Command::Keys,
            b"sync" => Command::Sync,
            b"compact" => Command::Compact,
            b"verify" => Command::Verify,
            b"reopen" => {
                let word = words.next("a number")?;
                let number = str::from_utf8(&word.bytes).ok().and_then(|text| text.parse().ok());
                Command::Reopen(number.ok_or_else(|| word.unexpected("the number of an option set"))?)
            }
            b"move" => {
                let name = name_of(words.next("a name")?)?;
                let word = words.next("a move")?;
                let to = match &word.bytes[..] {
                    b"first" => Move::First,
                    b"last" => Move::Last,
                    b"next" => Move::Skip(1),
                    b"skip" => Move::Skip(count_of(words.next("a count")?)?),
                    b"prev" => Move::Prev,
                    b"seek" => Move::Seek(bytes_of(words.next("a key")?)),
                    b"seek-for-prev" => Move::SeekForPrev(bytes_of(words.next("a key")?)),
                    _ => return Err(word.unexpected("first, last, next, prev, skip, seek or seek-for-prev")),
                };
                Command::Move(name, to)
            }
            _ => return parse_line(text).map(Command::Write),
        };
        words.end()?;
        Ok(command)
    }

    /// The lines of the operations that it has.
    pub(crate) fn body(&self) -> Vec<String> {
        match self {
            Command::Batch(lines) | Command::Guard { lines, .. } | Command::Ingest { lines, .. } => {
                lines.iter().map(show_line).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (sign, name) in [('%', &self.snapshot), ('@', &self.keyspace)] {
            if let Some(name) = name {
                write!(f, "{} ", quote(format!("{sign}{name}")))?;
            }
        }
        Ok(())
    }
}

/// The newest state of a keyspace.
fn newest(keyspace: &Option<String>) -> Target {
    Target { snapshot: None, keyspace: keyspace.clone() }
}

fn show_bounds((lower, upper): &Bounds) -> String {
    let lower = match lower {
        Bound::Included(key) => format!(" from {}", show(key)),
        Bound::Excluded(key) => format!(" after {}", show(key)),
        Bound::Unbounded => String::new(),
    };
    let upper = match upper {
        Bound::Included(key) => format!(" through {}", show(key)),
        Bound::Excluded(key) => format!(" before {}", show(key)),
        Bound::Unbounded => String::new(),
    };
    lower + &upper
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Command::Write(line) => f.write_str(&show_line(line)),
            Command::Append { keyspace, key, suffix } => {
                write!(f, "{}append {} {}", newest(keyspace), show(key), show(suffix))
            }
            Command::Batch(_) => f.write_str("batch"),
            Command::Guard { keyspace, bounds, .. } => {
                write!(f, "{}guard{}", newest(keyspace), show_bounds(bounds))
            }
            Command::Ingest { keyspace, .. } => write!(f, "{}ingest", newest(keyspace)),
            Command::Operator { keyspace, name } => {
                write!(f, "{}merge-operator {}", newest(keyspace), quote(name))
            }
            Command::Get(at, key) => write!(f, "{at}get {}", show(key)),
            Command::GetInto(at, key) => write!(f, "{at}get-into {}", show(key)),
            Command::Contains(at, key) => write!(f, "{at}contains {}", show(key)),
            Command::MultiGet(at, keys) => {
                write!(f, "{at}multi-get")?;
                keys.iter().try_for_each(|key| write!(f, " {}", show(key)))
            }
            Command::Count(at, bounds) => write!(f, "{at}count{}", show_bounds(bounds)),
            Command::Scan(at, ends, bounds) => write!(f, "{at}scan {ends}{}", show_bounds(bounds)),
            Command::Prefix(at, ends, prefix) => write!(f, "{at}prefix {ends} {}", show(prefix)),
            Command::First(at) => write!(f, "{at}first"),
            Command::Last(at) => write!(f, "{at}last"),
            Command::Snapshot(name) => write!(f, "snapshot {}", quote(name)),
            Command::Release(name) => write!(f, "release {}", quote(name)),
            Command::Keyspace(name) => write!(f, "keyspace {}", quote(name)),
            Command::DropKeyspace(name) => write!(f, "drop-keyspace {}", quote(name)),
            Command::Keyspaces(at) => write!(f, "{at}keyspaces"),
            Command::Iterate(name, at, bounds) => write!(f, "{at}iterate {name}{}", show_bounds(bounds)),
            Command::Step(name, ends) => write!(f, "step {name} {ends}"),
            Command::Cursor(name, at) => write!(f, "{at}cursor {name}"),
            Command::Move(name, to) => {
                write!(f, "move {name} ")?;
                match to {
                    Move::First => f.write_str("first"),
                    Move::Last => f.write_str("last"),
                    Move::Skip(1) => f.write_str("next"),
                    Move::Skip(count) => write!(f, "skip {count}"),
                    Move::Prev => f.write_str("prev"),
                    Move::Seek(key) => write!(f, "seek {}", show(key)),
                    Move::SeekForPrev(key) => write!(f, "seek-for-prev {}", show(key)),
                }
            }
            Command::Park(name) => write!(f, "park {name}"),
            Command::Close(name) => write!(f, "close {name}"),
            Command::Take { keyspace, ends, count, bounds } => {
                write!(f, "{}take {ends} {count}{}", newest(keyspace), show_bounds(bounds))
            }
            Command::Keys => f.write_str("keys"),
            Command::Sync => f.write_str("sync"),
            Command::Compact => f.write_str("compact"),
            Command::Verify => f.write_str("verify"),
            Command::Reopen(set) => write!(f, "reopen {set}"),
        }
    }
}

/// A pair as scripts show it.
pub(crate) fn show_pair(key: &[u8], value: &[u8]) -> String {
    format!("{} {}", show(key), show(value))
}

/// The value that a mismatch found, as scripts show it.
pub(crate) fn show_mismatch(found: Option<&[u8]>) -> String {
    format!("mismatch {}", found.map_or_else(|| or_dash::<&[u8]>(None).to_string(), show))
}
