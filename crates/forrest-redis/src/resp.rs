//! Requests: arrays of bulk strings, or lines of words, of which a connection may have received any part.
//!
//! The parser keeps its place between calls, so that no byte is looked at twice however small the pieces are in which
//! a request arrives. It trusts no length: a claim above a limit is refused before anything is received for it, and
//! nothing is allocated for one below. It copies nothing, except the words of a line.

use std::borrow::Cow;
use std::ops::Range;

/// Longest line, of words or with a length.
pub(crate) const LINE_BYTES_MAX: usize = 64 << 10;
/// Most strings of a request.
pub(crate) const ARGS_MAX: usize = 1 << 20;
/// The same before a client has given the password.
const ARGS_MAX_UNKNOWN: usize = 10;
/// Longest string before a client has given the password.
const BULK_BYTES_MAX_UNKNOWN: usize = 16 << 10;

/// What a client sent is no request. The message is the reply, and the connection ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) Cow<'static, str>);

impl Malformed {
    fn new(message: impl Into<Cow<'static, str>>) -> Malformed {
        Malformed(message.into())
    }
}

/// What requests may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes of a request, as it is sent.
    pub(crate) request_bytes: usize,
    /// The client has given the password, or needs none.
    pub(crate) is_known: bool,
}

impl Limits {
    fn args(self) -> usize {
        if self.is_known { ARGS_MAX } else { ARGS_MAX_UNKNOWN }
    }

    fn bulk_bytes(self) -> usize {
        if self.is_known { self.request_bytes } else { BULK_BYTES_MAX_UNKNOWN }
    }
}

/// The place in the bytes that a connection has received.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    /// Where the request begins that is being received.
    start: usize,
    /// What has been looked at.
    at: usize,
    /// How many strings are still to come; `None` before the first line is complete.
    left: Option<usize>,
    /// The length of the string that is being received.
    bulk: Option<usize>,
    args: Vec<Range<usize>>,
    /// The words of a line.
    words: Vec<u8>,
    is_line: bool,
}

impl Parser {
    /// Looks at the bytes from the last place on. True if there is a whole request, which [`args`](Parser::args) has
    /// until the next call. Its strings may be none.
    pub(crate) fn next(&mut self, bytes: &[u8], limits: Limits) -> Result<bool, Malformed> {
        if self.left.is_none() {
            self.start = self.at;
            self.args.clear();
            match bytes.get(self.at) {
                None => return Ok(false),
                Some(b'*') => match self.length(bytes, "too big mbulk count string")? {
                    None => return Ok(false),
                    Some(count) => {
                        let count = count.filter(|count| *count <= ARGS_MAX as i64);
                        let count = count.ok_or(Malformed::new("invalid multibulk length"))?.max(0) as usize;
                        if count > limits.args() {
                            return Err(Malformed::new("unauthenticated multibulk length"));
                        }
                        self.is_line = false;
                        self.left = Some(count);
                    }
                },
                Some(_) => return self.line(bytes),
            }
        }
        while let Some(left) = self.left.filter(|left| *left > 0) {
            if !self.string(bytes, limits)? {
                return Ok(false);
            }
            self.left = Some(left - 1);
        }
        self.left = None;
        Ok(true)
    }

    /// The number of strings.
    pub(crate) fn len(&self) -> usize {
        self.args.len()
    }

    /// A string of the request; `bytes` are those that [`next`](Parser::next) saw.
    pub(crate) fn arg<'b>(&'b self, bytes: &'b [u8], number: usize) -> &'b [u8] {
        let from = if self.is_line { &self.words } else { bytes };
        &from[self.args[number].clone()]
    }

    /// How many bytes from the beginning on are no longer needed. The caller removes them before the next call.
    pub(crate) fn consume(&mut self) -> usize {
        let done = if self.left.is_some() { self.start } else { self.at };
        self.at -= done;
        self.start = self.start.saturating_sub(done);
        if self.left.is_some() {
            for arg in &mut self.args {
                *arg = arg.start - done..arg.end - done;
            }
        }
        done
    }

    /// Bytes of memory, for the budget of connections.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.args.capacity() * size_of::<Range<usize>>() + self.words.capacity()
    }

    /// Gives back what a large request needed.
    pub(crate) fn shrink(&mut self) {
        if self.memory_bytes() > 4096 && self.left.is_none() {
            (self.args, self.words) = (Vec::new(), Vec::new());
        }
    }

    /// A line with a mark and a number, which may be none.
    fn length(&mut self, bytes: &[u8], too_long: &'static str) -> Result<Option<Option<i64>>, Malformed> {
        let rest = &bytes[self.at..];
        let look = &rest[..rest.len().min(LINE_BYTES_MAX)];
        // Lengths are short, so that a search from the beginning costs little.
        match look.iter().position(|byte| *byte == b'\r') {
            None if rest.len() > LINE_BYTES_MAX => Err(Malformed::new(too_long)),
            None => Ok(None),
            Some(end) if end + 1 >= rest.len() => Ok(None),
            Some(end) => {
                self.at += end + 2;
                Ok(Some(crate::number::integer(&rest[1..end])))
            }
        }
    }

    /// One string of an array. False if it is not complete.
    fn string(&mut self, bytes: &[u8], limits: Limits) -> Result<bool, Malformed> {
        let len = match self.bulk {
            Some(len) => len,
            None => {
                match bytes.get(self.at) {
                    None => return Ok(false),
                    Some(b'$') => {}
                    Some(other) => {
                        let found = char::from(*other).escape_default();
                        return Err(Malformed::new(format!("expected '$', got '{found}'")));
                    }
                }
                let Some(len) = self.length(bytes, "too big bulk count string")? else { return Ok(false) };
                let len = len.and_then(|len| usize::try_from(len).ok());
                let len = len.ok_or(Malformed::new("invalid bulk length"))?;
                if len > limits.bulk_bytes() {
                    let is_known = limits.is_known;
                    let why = if is_known { "invalid bulk length" } else { "unauthenticated bulk length" };
                    return Err(Malformed::new(why));
                }
                if self.at - self.start + len + 2 > limits.request_bytes {
                    let most = limits.request_bytes;
                    return Err(Malformed::new(format!(
                        "a request of more than {most} bytes (--request-bytes)"
                    )));
                }
                self.bulk = Some(len);
                len
            }
        };
        // The two bytes at the end are not looked at: what comes next would not be a length.
        if bytes.len() - self.at < len + 2 {
            return Ok(false);
        }
        self.args.push(self.at..self.at + len);
        self.at += len + 2;
        self.bulk = None;
        Ok(true)
    }

    /// A line of words, for people.
    fn line(&mut self, bytes: &[u8]) -> Result<bool, Malformed> {
        let rest = &bytes[self.at..];
        let look = &rest[..rest.len().min(LINE_BYTES_MAX)];
        let Some(end) = look.iter().position(|byte| *byte == b'\n') else {
            return match rest.len() {
                0..=LINE_BYTES_MAX => Ok(false),
                _ => Err(Malformed::new("too big inline request")),
            };
        };
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        self.words.clear();
        self.is_line = true;
        split(line, &mut self.words, &mut self.args).ok_or(Malformed::new("unbalanced quotes in request"))?;
        self.at += end + 1;
        Ok(true)
    }
}

/// Splits a line into words, which may be quoted. `None` if a quote does not end, or does not end a word.
fn split(line: &[u8], words: &mut Vec<u8>, args: &mut Vec<Range<usize>>) -> Option<()> {
    let mut rest = line.iter().copied().peekable();
    loop {
        while rest.next_if(|byte| byte.is_ascii_whitespace()).is_some() {}
        if rest.peek().is_none() {
            return Some(());
        }
        let start = words.len();
        while let Some(byte) = rest.next_if(|byte| !byte.is_ascii_whitespace()) {
            match byte {
                quote @ (b'"' | b'\'') => {
                    quoted(quote, &mut rest, words)?;
                    if rest.peek().is_some_and(|byte| !byte.is_ascii_whitespace()) {
                        return None;
                    }
                }
                byte => words.push(byte),
            }
        }
        args.push(start..words.len());
    }
}

/// The rest of a quoted word.
fn quoted(
    quote: u8,
    rest: &mut std::iter::Peekable<impl Iterator<Item = u8>>,
    words: &mut Vec<u8>,
) -> Option<()> {
    loop {
        match rest.next()? {
            byte if byte == quote => return Some(()),
            b'\\' if quote == b'"' => match rest.next()? {
                b'n' => words.push(b'\n'),
                b'r' => words.push(b'\r'),
                b't' => words.push(b'\t'),
                b'b' => words.push(8),
                b'a' => words.push(7),
                b'x' => {
                    let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
                    words.push((digit()? * 16 + digit()?) as u8);
                }
                other => words.push(other),
            },
            b'\\' if rest.peek() == Some(&b'\'') => words.extend(rest.next()),
            byte => words.push(byte),
        }
    }
}

#[cfg(test)]
mod tests;
