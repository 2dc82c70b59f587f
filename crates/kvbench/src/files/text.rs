//! Text: each word between white space is a key, as the ancestor takes them; and lines, one key each, as text is
//! written.
//!
//! White space is what C calls it: space, tab, line feed, vertical tab, form feed, carriage return. Everything else
//! belongs to a word, whatever its encoding. There are no values.

use super::input::{Input, PAIR_BYTES_MAX};
use super::output::Output;
use super::pair::{Pair, Sink, Source};
use std::io::{self, Write};
use std::path::Path;

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Reads words.
pub(crate) struct Reader {
    input: Input,
}

impl Reader {
    /// Begins to read.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Reader { input: Input::open(path)? })
    }
}

impl Source for Reader {
    fn next(&mut self, pair: &mut Pair) -> io::Result<bool> {
        pair.key.clear();
        pair.value.clear();
        pair.valued = false;
        loop {
            let bytes = self.input.peek()?;
            if bytes.is_empty() {
                return Ok(!pair.key.is_empty());
            }
            let (mut used, len) = (0, bytes.len());
            if pair.key.is_empty() {
                used = bytes.iter().position(|byte| !is_space(*byte)).unwrap_or(len);
            }
            let word = bytes[used..].iter().position(|byte| is_space(*byte)).unwrap_or(len - used);
            pair.key.extend_from_slice(&bytes[used..used + word]);
            let ended = used + word < len;
            self.input.consume(used + word);
            if ended && !pair.key.is_empty() {
                return Ok(true);
            }
            if pair.key.len() as u64 > PAIR_BYTES_MAX {
                let at = self.input.at();
                return Err(self.input.damaged(at, format!("a word of more than {PAIR_BYTES_MAX} bytes")));
            }
        }
    }

    fn at(&self) -> u64 {
        self.input.at()
    }
}

/// Writes a line for each key.
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
        if pair.key.is_empty() || pair.key.iter().any(|byte| is_space(*byte)) {
            let what = format!(
                "{}: the key \"{}\" is empty or has white space in it, so that text cannot hold it; csv and jsonl can",
                self.out.path().display(),
                pair.key.escape_ascii()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        self.out.write_all(&pair.key)?;
        self.out.write_all(b"\n")
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.out.finish(b"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::testing::{pair, read_all, scratch};

    fn words(text: &[u8]) -> Vec<String> {
        let (_directory, path) = scratch("x.txt");
        std::fs::write(&path, text).unwrap();
        let pairs = read_all(&mut Reader::open(&path).unwrap()).unwrap();
        pairs.iter().map(|pair| String::from_utf8_lossy(&pair.key).into_owned()).collect()
    }

    /// The ancestor counted N + 1 words where the text ended with white space.
    #[test]
    fn n_words_are_n() {
        for text in ["a b c", "a b c\n", " a  b\t\r\n c \n\n", "\x0ba\x0cb\x0bc"] {
            assert_eq!(words(text.as_bytes()), ["a", "b", "c"], "{text:?}");
        }
        assert_eq!(words(b""), [""; 0]);
        assert_eq!(words(b" \n\t "), [""; 0]);
        assert_eq!(words("n\u{fc}r \u{1f980}\0x".as_bytes()), ["n\u{fc}r", "\u{1f980}\0x"]);
    }

    /// The ancestor failed on inputs of a multiple of 4,096 bytes. A word may also cross the end of the buffer.
    #[test]
    fn inputs_of_a_multiple_of_4096_bytes_are_read() {
        for len in [4096, 8192, 256 << 10, (256 << 10) + 4096] {
            for end in [&b" "[..], b"\n", b"x"] {
                let mut text = b"word ".repeat(len / 5 + 1);
                text.truncate(len - end.len());
                text.extend_from_slice(end);
                let expected: Vec<_> =
                    String::from_utf8(text.clone()).unwrap().split_whitespace().map(str::to_owned).collect();
                assert_eq!(words(&text), expected, "{len} bytes that end in {end:?}");
            }
        }
    }

    #[test]
    fn keys_that_text_cannot_hold_are_refused() {
        let (_directory, path) = scratch("x.txt");
        let mut writer = Writer::create(&path).unwrap();
        writer.put(&pair("a", None)).unwrap();
        for key in ["", "a b", "a\n"] {
            assert!(writer.put(&pair(key, None)).unwrap_err().to_string().contains("csv"), "{key:?}");
        }
    }
}
