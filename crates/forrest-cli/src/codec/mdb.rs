//! The format of LMDB's `mdb_dump` and `mdb_load`.
//!
//! ```text
//! VERSION=3
//! format=print                 or bytevalue: all in hexadecimal
//! database=trees               a keyspace; without this line, the one in use
//! type=btree
//! mapsize=1048576              the maximum size of LMDB's file; this line and others like it are ignored
//! HEADER=END
//!  oak                         a key and its value, a line each, after a space
//!  Quercus\0arobur
//! DATA=END
//! ```
//!
//! Several such parts in sequence are several databases. In `print` a backslash and two hexadecimal digits are any
//! byte, and two backslashes are one.

use super::hex;
use super::item::{Item, Mistake};
use forrest::Op;

const FIRST: &[u8] = b"VERSION=3";
const DATA_END: &[u8] = b"DATA=END";
/// Longest key of LMDB as it is usually built, in bytes.
pub(crate) const KEY_BYTES_MAX: usize = 511;

/// Upper bound of the size of LMDB's file for this many pairs with this many bytes in all: pages may be half empty, a
/// large value has separate pages, and pages that a change frees are reused only later.
fn map_bytes(pairs: u64, bytes: u64) -> u64 {
    const PAGE_BYTES: u64 = 4096;
    const LEAST_BYTES: u64 = 16 << 20;
    const PAIR_BYTES: u64 = 16;
    let bytes = bytes.saturating_add(pairs.saturating_mul(PAIR_BYTES));
    bytes.saturating_mul(4).saturating_add(LEAST_BYTES) / PAGE_BYTES * PAGE_BYTES
}

/// Appends the header of a keyspace. The whole dump has `pairs` pairs with `bytes` bytes in all.
pub(super) fn write_begin(is_print: bool, keyspace: Option<&str>, pairs: u64, bytes: u64, out: &mut Vec<u8>) {
    let format = if is_print { "print" } else { "bytevalue" };
    let database = keyspace.map_or(String::new(), |name| format!("database={name}\n"));
    let map_bytes = map_bytes(pairs, bytes);
    let header =
        format!("VERSION=3\nformat={format}\n{database}type=btree\nmapsize={map_bytes}\nHEADER=END\n");
    out.extend_from_slice(header.as_bytes());
}

/// Appends the line after the pairs of a keyspace.
pub(super) fn write_end(out: &mut Vec<u8>) {
    out.extend_from_slice(DATA_END);
    out.push(b'\n');
}

/// Appends the line of a key or a value, without its line feed.
pub(super) fn write_word(is_print: bool, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b' ');
    if !is_print {
        return hex::encode_into(bytes, out);
    }
    for &byte in bytes {
        match is_plain(byte) {
            true => out.push(byte),
            false => {
                out.push(b'\\');
                hex::encode_into(&[byte], out);
            }
        }
    }
}

fn is_plain(byte: u8) -> bool {
    (byte.is_ascii_graphic() || byte == b' ') && byte != b'\\'
}

fn read_print(word: &[u8]) -> Result<Vec<u8>, Mistake> {
    let mut out = Vec::with_capacity(word.len());
    let mut rest = word;
    loop {
        rest = match rest {
            [] => return Ok(out),
            [b'\\', b'\\', rest @ ..] => {
                out.push(b'\\');
                rest
            }
            [b'\\', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                out.push(hex::digit(*high) << 4 | hex::digit(*low));
                rest
            }
            [b'\\', ..] => {
                let what = "expected two hexadecimal digits or a backslash after a backslash";
                return Err(Mistake::new(word.len() - rest.len(), what));
            }
            [plain, rest @ ..] => {
                out.push(*plain);
                rest
            }
        }
    }
}

/// Reads a dump line by line.
#[derive(Default)]
pub(crate) struct Reader {
    at: At,
    /// The header so far.
    is_print: Option<bool>,
    database: Option<String>,
    /// The key whose value comes next.
    key: Option<Vec<u8>>,
    /// Whether the value of a key that was wrong comes next.
    is_skipping: bool,
    /// The key before that.
    last: Option<Vec<u8>>,
}

/// Where a reader is.
#[derive(Default, Clone, Copy)]
enum At {
    #[default]
    Start,
    Header,
    Data,
    /// After one part, where another may begin.
    Between,
}

impl Reader {
    pub(super) fn line(&mut self, line: &[u8]) -> Result<Item, Mistake> {
        match self.at {
            At::Between if line.is_empty() => {}
            At::Start | At::Between if line == FIRST => {
                *self = Reader { at: At::Header, ..Reader::default() }
            }
            At::Start | At::Between => {
                return Err(Mistake::new(0, "expected VERSION=3, the first line of a dump by mdb_dump"));
            }
            At::Header => return self.header(line),
            At::Data => return self.data(line),
        }
        Ok(Item::Nothing)
    }

    /// Whether the next line may be a key.
    pub(super) fn expects_key(&self) -> bool {
        matches!(self.at, At::Data) && !self.expects_value()
    }

    /// Whether the next line is a value.
    pub(super) fn expects_value(&self) -> bool {
        self.key.is_some() || self.is_skipping
    }

    /// Whether a line that was read, or could not be, is that of a key or a value.
    pub(super) fn is_word(&self, line: &[u8]) -> bool {
        matches!(self.at, At::Data) && line.starts_with(b" ")
    }

    /// Whether words are text.
    pub(super) fn is_print(&self) -> bool {
        self.is_print == Some(true)
    }

    fn header(&mut self, line: &[u8]) -> Result<Item, Mistake> {
        let Some(equals) = line.iter().position(|&b| b == b'=') else {
            return Err(Mistake::new(0, "no line of a header, which is NAME=VALUE; HEADER=END ends it"));
        };
        let (name, value) = (&line[..equals], &line[equals + 1..]);
        match (name, value) {
            (b"HEADER", b"END") if self.is_print.is_some() => {
                self.at = At::Data;
                return Ok(Item::Keyspace(self.database.take()));
            }
            (b"HEADER", b"END") => return Err(Mistake::new(0, "the header has no line format=")),
            (b"HEADER" | b"DATA" | b"VERSION", _) => {
                return Err(Mistake::new(0, "this stands in the middle of a header, which HEADER=END ends"));
            }
            (b"format", b"bytevalue") => self.is_print = Some(false),
            (b"format", b"print") => self.is_print = Some(true),
            (b"format", _) => {
                return Err(Mistake::new(equals + 1, "there are format=bytevalue and format=print"));
            }
            (b"type", b"btree") => {}
            (b"type", _) => return Err(Mistake::new(equals + 1, "LMDB has type=btree only")),
            (b"database", name) => match std::str::from_utf8(name) {
                Ok(name) => self.database = Some(name.to_owned()),
                Err(_) => return Err(Mistake::new(equals + 1, "a keyspace's name must be UTF-8")),
            },
            // About LMDB's file: its size, its flags.
            _ => {}
        }
        Ok(Item::Nothing)
    }

    /// After a mistake in a key the next line is its value, and after one in a value it is the next key.
    fn data(&mut self, line: &[u8]) -> Result<Item, Mistake> {
        if line == DATA_END {
            if self.expects_value() {
                return Err(Mistake::new(0, "this stands where the value of the key before it should be"));
            }
            self.at = At::Between;
            return Ok(Item::Nothing);
        }
        let Some(word) = line.strip_prefix(b" ") else {
            return Err(Mistake::new(0, "no line of data, which begins with a space; DATA=END ends it"));
        };
        if std::mem::take(&mut self.is_skipping) {
            return Ok(Item::Nothing);
        }
        let read = if self.is_print() { read_print } else { hex::decode };
        let key = self.key.take();
        let word = read(word).map_err(|m| m.after(1));
        let Some(key) = key else {
            self.is_skipping = true;
            let word = word?;
            if self.last.as_ref() == Some(&word) {
                let what = "the same key once more (LMDB's dupsort): here a key has one value";
                return Err(Mistake::new(1, what));
            }
            (self.is_skipping, self.key) = (false, Some(word));
            return Ok(Item::Nothing);
        };
        let word = word?;
        self.last = Some(key.clone());
        Ok(Item::Change(Op::Set { key, value: word }, None))
    }

    /// Fails if the input ends too early; the error names the missing part.
    pub(super) fn end(&self) -> Result<(), &'static str> {
        match self.at {
            At::Start => Err("the input is empty: there is no VERSION=3"),
            At::Header => Err("the input ends within a header: there is no HEADER=END"),
            At::Data if self.expects_value() => Err("the input ends where the value of a key should be"),
            At::Data => Err("the input ends before DATA=END"),
            At::Between => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn printed_words_are_read_back(bytes: Vec<u8>) {
            let mut out = Vec::new();
            write_word(true, &bytes, &mut out);
            prop_assert!(out.iter().all(|&b| is_plain(b) || b == b'\\'));
            prop_assert_eq!(read_print(&out[1..]).unwrap(), bytes);
        }
    }

    #[test]
    fn what_mdb_dump_prints_is_read() {
        assert_eq!(read_print(br"a\\b\0a\C3\a9 ").unwrap(), b"a\\b\n\xc3\xa9 ");
        for (wrong, at) in [(&br"ab\"[..], 2), (br"\a", 0), (br"a\0g", 1), (br"\\\", 2)] {
            assert_eq!(read_print(wrong).unwrap_err().at, at, "{wrong:?}");
        }
    }

    /// A dump of two keyspaces.
    fn dump(is_print: bool) -> Vec<u8> {
        let mut out = Vec::new();
        for name in ["default", "trees"] {
            write_begin(is_print, Some(name), 2, 20, &mut out);
            for word in [&b"apple"[..], b"\0 3", b"oak", b""] {
                write_word(is_print, word, &mut out);
                out.push(b'\n');
            }
            write_end(&mut out);
        }
        out
    }

    fn read(dump: &[u8]) -> Result<usize, Mistake> {
        let mut reader = Reader::default();
        let mut pairs = 0;
        let lines = dump.strip_suffix(b"\n").unwrap_or(dump);
        for line in lines.split(|&b| b == b'\n').filter(|_| !dump.is_empty()) {
            pairs += usize::from(matches!(reader.line(line)?, Item::Change(..)));
        }
        reader.end().map_err(|what| Mistake::new(0, what))?;
        Ok(pairs)
    }

    #[test]
    fn a_dump_cut_anywhere_is_no_dump() {
        for is_print in [false, true] {
            let dump = dump(is_print);
            assert_eq!(read(&dump).unwrap(), 4);
            for cut in 0..dump.len() {
                let head = &dump[..cut];
                // Between the keyspaces it may end.
                let is_whole = head.strip_suffix(b"\n").unwrap_or(head).ends_with(DATA_END);
                assert_eq!(read(head).is_ok(), is_whole, "{}", String::from_utf8_lossy(head));
            }
        }
    }

    #[test]
    fn no_byte_makes_it_panic() {
        for is_print in [false, true] {
            let dump = dump(is_print);
            for at in 0..dump.len() {
                for byte in 0..=u8::MAX {
                    let mut other = dump.clone();
                    other[at] = byte;
                    // The changed dump has another pair, or is refused.
                    assert!(read(&other).is_ok_and(|pairs| pairs == 4) || read(&other).is_err());
                }
            }
        }
    }

    #[test]
    fn the_map_has_room_and_whole_pages() {
        assert_eq!(map_bytes(0, 0), 16 << 20);
        assert!(map_bytes(1_000, 4_000_001) > 16_000_000 && map_bytes(1_000, 4_000_001).is_multiple_of(4096));
        assert!(map_bytes(u64::MAX, u64::MAX).is_multiple_of(4096));
    }
}
