//! The binary formats of the ancestor, little endian.
//!
//! | name | layout |
//! |---|---|
//! | `bin-text` | `u32` n, then n times { `u32` size, bytes } |
//! | `bin-text1` | `u64` n, `u64` bytes of all keys, then { `u32` size, bytes }: what its `convert-text1` makes |
//! | `bin-text-kv`, `bin-slice-kv` | `u32` n, then n times { `u32` size, key, `u32` size, value } |
//!
//! The ancestor left the last two undefined; this is how they are read and written here. With its option `-t` each key
//! is followed by a NUL, which its size includes. There are no checksums: a wrong length is detected only if it leads
//! out of the file, or if bytes remain after the last pair.

use super::input::{Input, PAIR_BYTES_MAX};
use super::output::Output;
use super::pair::{Pair, Sink, Source};
use std::io::{self, Write};
use std::path::Path;

/// The layout of an ancestor's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Whether the count has 64 bits and is followed by the total bytes of all keys.
    pub(crate) wide: bool,
    /// Whether there are values.
    pub(crate) values: bool,
}

/// `bin-text`.
pub(crate) const TEXT: Layout = Layout { wide: false, values: false };
/// `bin-text1`.
pub(crate) const TEXT1: Layout = Layout { wide: true, values: false };
/// `bin-text-kv` and `bin-slice-kv`.
pub(crate) const KV: Layout = Layout { wide: false, values: true };

impl Layout {
    /// Bytes before the first pair.
    fn head_bytes(self) -> usize {
        if self.wide { 16 } else { 4 }
    }

    /// Refuses more pairs than the format can count.
    pub(crate) fn check_count(self, path: &Path, pairs: u64) -> io::Result<()> {
        if self.wide || pairs <= u64::from(u32::MAX) {
            return Ok(());
        }
        let what = format!(
            "{}: this format counts pairs with 32 bits, so it ends at {} of them; write a container (.kvb) instead, or \
             cut the data into several files",
            path.display(),
            u32::MAX
        );
        Err(io::Error::new(io::ErrorKind::InvalidInput, what))
    }
}

/// Reads a file of the ancestor's.
pub(crate) struct Reader {
    input: Input,
    layout: Layout,
    /// Whether the NUL after each key is removed.
    terminated: bool,
    pairs: u64,
    /// Total bytes of all keys, if the file states it.
    key_bytes: Option<u64>,
    seen: u64,
    seen_key_bytes: u64,
}

impl Reader {
    /// Begins to read.
    pub(crate) fn open(path: &Path, layout: Layout, terminated: bool) -> io::Result<Self> {
        let mut input = Input::open(path)?;
        let what = "the number of pairs";
        let pairs = if layout.wide { input.u64(what)? } else { u64::from(input.u32(what)?) };
        let key_bytes = if layout.wide { Some(input.u64("the bytes of all keys")?) } else { None };
        let least = if layout.values { 8 } else { 4 };
        if pairs > input.left() / least {
            let what =
                format!("the header states {pairs} pairs, but {} bytes cannot hold them", input.left());
            return Err(input.damaged(0, what));
        }
        Ok(Reader { input, layout, terminated, pairs, key_bytes, seen: 0, seen_key_bytes: 0 })
    }

    fn end(&self) -> io::Result<bool> {
        if self.input.left() > 0 {
            let what = format!("{} bytes after the last of {} pairs", self.input.left(), self.pairs);
            return Err(self.input.damaged(self.input.at(), what));
        }
        match self.key_bytes {
            Some(stated) if stated != self.seen_key_bytes => {
                let what = format!("the keys have {} bytes, the header states {stated}", self.seen_key_bytes);
                Err(self.input.damaged(8, what))
            }
            _ => Ok(false),
        }
    }
}

impl Source for Reader {
    fn next(&mut self, pair: &mut Pair) -> io::Result<bool> {
        if self.seen == self.pairs {
            return self.end();
        }
        let size = self.input.u32("the size of a key")?;
        self.input.piece(u64::from(size), "a key", &mut pair.key)?;
        self.seen_key_bytes += u64::from(size);
        if self.terminated && pair.key.pop_if(|last| *last == 0).is_none() {
            let at = self.input.at();
            return Err(self.input.damaged(at, "a key does not end with a NUL, as --strip-nul requires"));
        }
        pair.value.clear();
        pair.valued = self.layout.values;
        if self.layout.values {
            let size = self.input.u32("the size of a value")?;
            self.input.piece(u64::from(size), "a value", &mut pair.value)?;
        }
        self.seen += 1;
        Ok(true)
    }

    fn at(&self) -> u64 {
        self.input.at()
    }

    fn claimed(&self) -> Option<u64> {
        Some(self.pairs)
    }
}

/// Writes a file of the ancestor's.
pub(crate) struct Writer {
    out: Output,
    layout: Layout,
    terminated: bool,
    pairs: u64,
    key_bytes: u64,
}

impl Writer {
    /// Begins a file.
    pub(crate) fn create(path: &Path, layout: Layout, terminated: bool) -> io::Result<Self> {
        let mut out = Output::create(path)?;
        out.write_all(&[0; 16][..layout.head_bytes()])?;
        Ok(Writer { out, layout, terminated, pairs: 0, key_bytes: 0 })
    }

    fn piece(&mut self, bytes: &[u8], end: &[u8]) -> io::Result<()> {
        let size = bytes.len() + end.len();
        if size as u64 > PAIR_BYTES_MAX {
            let what = format!("{}: {size} bytes; {PAIR_BYTES_MAX} are the most", self.out.path().display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        self.out.write_all(&(size as u32).to_le_bytes())?;
        self.out.write_all(bytes)?;
        self.out.write_all(end)
    }
}

impl Sink for Writer {
    fn put(&mut self, pair: &Pair) -> io::Result<()> {
        self.layout.check_count(self.out.path(), self.pairs + 1)?;
        let end: &[u8] = if self.terminated { &[0] } else { &[] };
        self.piece(&pair.key, end)?;
        if self.layout.values {
            self.piece(&pair.value, &[])?;
        }
        self.pairs += 1;
        self.key_bytes += (pair.key.len() + end.len()) as u64;
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        if self.layout.wide {
            self.out.finish(&[self.pairs.to_le_bytes(), self.key_bytes.to_le_bytes()].concat())
        } else {
            // INVARIANT: `put` refused more.
            self.out.finish(&(self.pairs as u32).to_le_bytes())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::testing::{pair, read_all, scratch};
    use proptest::prelude::*;

    fn write(path: &Path, layout: Layout, terminated: bool, pairs: &[Pair]) -> Vec<u8> {
        let mut writer = Box::new(Writer::create(path, layout, terminated).unwrap());
        pairs.iter().for_each(|pair| writer.put(pair).unwrap());
        writer.finish().unwrap();
        std::fs::read(path).unwrap()
    }

    fn read(path: &Path, layout: Layout, terminated: bool) -> io::Result<Vec<Pair>> {
        read_all(&mut Reader::open(path, layout, terminated)?)
    }

    #[test]
    fn the_layouts_are_the_ancestors() {
        let (_directory, path) = scratch("x.bin");
        let words = [pair("to", None), pair("be", None)];
        let bytes = write(&path, TEXT, false, &words);
        assert_eq!(bytes, b"\x02\0\0\0\x02\0\0\0to\x02\0\0\0be");
        assert_eq!(read(&path, TEXT, false).unwrap(), words);
        let bytes = write(&path, TEXT, true, &words);
        assert_eq!(bytes, b"\x02\0\0\0\x03\0\0\0to\0\x03\0\0\0be\0");
        assert_eq!(read(&path, TEXT, true).unwrap(), words);
        assert_eq!(read(&path, TEXT, false).unwrap()[0], pair("to\0", None));
        let bytes = write(&path, TEXT1, false, &words);
        assert_eq!(bytes, b"\x02\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x02\0\0\0to\x02\0\0\0be");
        assert_eq!(read(&path, TEXT1, false).unwrap(), words);
        let pairs = [pair("to", Some("be")), pair("", Some("")), pair("or", Some("not"))];
        let bytes = write(&path, KV, false, &pairs);
        assert_eq!(bytes, b"\x03\0\0\0\x02\0\0\0to\x02\0\0\0be\0\0\0\0\0\0\0\0\x02\0\0\0or\x03\0\0\0not");
        assert_eq!(read(&path, KV, false).unwrap(), pairs);
        assert!(read(&path, KV, true).is_err(), "no NULs to take off");
    }

    /// The ancestor's structures lost the last byte of a key, and all bytes past 255.
    #[test]
    fn the_last_byte_and_those_past_255_are_kept() {
        let (_directory, path) = scratch("x.bin");
        let mut pairs: Vec<_> = (0..10).map(|n| pair(&format!("key{n}"), Some("v"))).collect();
        for len in [254, 255, 256, 257, 65_535, 65_536] {
            pairs.extend(
                ["x", "y"].map(|last| pair(&format!("{}{last}", "k".repeat(len)), Some(&"v".repeat(len)))),
            );
        }
        for (layout, terminated) in [(TEXT, false), (TEXT, true), (TEXT1, true), (KV, false), (KV, true)] {
            write(&path, layout, terminated, &pairs);
            let back = read(&path, layout, terminated).unwrap();
            assert_eq!(back.len(), pairs.len());
            assert!(back.iter().zip(&pairs).all(|(back, pair)| back.key == pair.key));
            assert!(!layout.values || back == pairs);
        }
    }

    #[test]
    fn cuts_additions_and_lies_are_errors() {
        let (_directory, path) = scratch("x.bin");
        for layout in [TEXT, TEXT1, KV] {
            let right = write(&path, layout, false, &[pair("to", Some("be")), pair("or", Some("not"))]);
            for len in 0..right.len() {
                std::fs::write(&path, &right[..len]).unwrap();
                let error = read(&path, layout, false).unwrap_err().to_string();
                assert!(error.contains("x.bin: byte "), "{error}");
            }
            std::fs::write(&path, [&right[..], b"x"].concat()).unwrap();
            assert!(read(&path, layout, false).is_err(), "a byte after the last pair");
            for at in 0..layout.head_bytes() + 4 {
                let mut wrong = right.clone();
                wrong[at] ^= 0xff;
                std::fs::write(&path, &wrong).unwrap();
                assert!(read(&path, layout, false).is_err(), "{layout:?}, byte {at}");
            }
        }
    }

    #[test]
    fn more_pairs_than_the_count_can_say_are_refused() {
        let (_directory, path) = scratch("x.bin");
        let mut writer = Writer::create(&path, TEXT, false).unwrap();
        writer.pairs = u64::from(u32::MAX) - 1;
        writer.put(&pair("the last one", None)).unwrap();
        let error = writer.put(&pair("one too many", None)).unwrap_err().to_string();
        assert!(error.contains("4294967295") && error.contains(".kvb"), "{error}");
        drop(writer);
        assert!(!path.exists());
        let mut writer = Box::new(Writer::create(&path, TEXT1, false).unwrap());
        writer.pairs = u64::from(u32::MAX);
        writer.key_bytes = 1 << 40;
        writer.put(&pair("x", None)).unwrap();
        writer.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes[..16], *b"\0\0\0\0\x01\0\0\0\x01\0\0\0\0\x01\0\0");
    }

    proptest! {
        #[test]
        fn noise_is_read_or_refused(noise in prop::collection::vec(any::<u8>(), 0..60), count in 0u8..4) {
            let (_directory, path) = scratch("x.bin");
            let mut bytes = vec![count, 0, 0, 0];
            bytes.extend(noise);
            std::fs::write(&path, &bytes).unwrap();
            for layout in [TEXT, TEXT1, KV] {
                if let Ok(pairs) = read(&path, layout, false) {
                    prop_assert_eq!(&write(&path, layout, false, &pairs), &bytes);
                }
            }
        }
    }
}
