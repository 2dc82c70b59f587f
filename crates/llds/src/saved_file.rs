//! The file of a saved store: what the store is, its pairs in order, and checksums.
//!
//! It begins with the 16 bytes `llds store 0001\n`. Frames follow: first one of the kind [`STORE`], then any number of
//! [`PAIRS`], and at the end of the file [`END`]. Numbers are little endian.
//!
//! | bytes of a frame | content |
//! |---|---|
//! | 4 | its kind |
//! | 4 | the length of the next part, in bytes |
//! | any | by the kind, see below |
//! | 8 | a checksum, xxh3 with 64 bits, of all that stands before it; the seed is the number of the frame, from 0 |
//!
//! | kind | content |
//! |---|---|
//! | [`STORE`] | user, group, mode, 1 if the name is one of the user, 4 bytes each; maximum size, 8 bytes; the name |
//! | [`PAIRS`] | for each pair: bytes of the key, bytes of the value, 4 bytes each; the key; the value |
//! | [`END`] | the number of pairs, 8 bytes |

use crate::raw::Listed;
use crate::raw::abi;
use std::io::{self, Read, Write};
use xxhash_rust::xxh3::xxh3_64_with_seed;

const MAGIC: &[u8; 16] = b"llds store 0001\n";
/// How the files of all versions begin.
const FAMILY: &[u8] = b"llds store ";

const STORE: u32 = 1;
const PAIRS: u32 = 2;
const END: u32 = 3;

const HEAD_BYTES: usize = 8;
const SUM_BYTES: usize = 8;
/// The bytes of [`STORE`] before the name.
const STORE_BYTES: usize = 24;
/// A frame of pairs ends once it has this many bytes.
const FRAME_BYTES: usize = 1 << 20;
/// More than any frame has: the longest pair after almost a full frame.
const FRAME_BYTES_MAX: u32 = (1 << 30) + (2 << 20);

/// Keys and values.
pub(crate) type Pairs<'f> = Vec<(&'f [u8], &'f [u8])>;

/// Why a file cannot be read.
#[derive(Debug)]
pub(crate) enum Fault {
    Io(io::Error),
    /// Another file.
    Foreign,
    /// A file of another version.
    Version,
    /// What is wrong with the frame that begins at this offset.
    Damaged(u64, &'static str),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Io(error)
    }
}

/// Writes a file.
pub(crate) struct Writer<W> {
    to: W,
    /// The frame that is being filled: its head and its content.
    frame: Vec<u8>,
    number: u64,
    pairs: u64,
}

impl<W: Write> Writer<W> {
    pub(crate) fn begin(mut to: W, store: &Listed) -> io::Result<Writer<W>> {
        to.write_all(MAGIC)?;
        let mut writer = Writer { to, frame: vec![0; HEAD_BYTES], number: 0, pairs: 0 };
        for number in [store.uid, store.gid, store.mode, store.is_of_user.into()] {
            writer.frame.extend_from_slice(&number.to_le_bytes());
        }
        writer.frame.extend_from_slice(&store.bytes_max.to_le_bytes());
        writer.frame.extend_from_slice(&store.name);
        writer.write(STORE)?;
        Ok(writer)
    }

    pub(crate) fn pair(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        for part in [key, value] {
            let bytes = u32::try_from(part.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
            self.frame.extend_from_slice(&bytes.to_le_bytes());
        }
        self.frame.extend_from_slice(key);
        self.frame.extend_from_slice(value);
        self.pairs += 1;
        if self.frame.len() >= FRAME_BYTES { self.write(PAIRS) } else { Ok(()) }
    }

    /// Writes the end. Returns the number of pairs.
    pub(crate) fn end(mut self) -> io::Result<u64> {
        if self.frame.len() > HEAD_BYTES {
            self.write(PAIRS)?;
        }
        self.frame.extend_from_slice(&self.pairs.to_le_bytes());
        self.write(END)?;
        self.to.flush()?;
        Ok(self.pairs)
    }

    /// Writes the frame, and begins another.
    fn write(&mut self, kind: u32) -> io::Result<()> {
        let bytes = u32::try_from(self.frame.len() - HEAD_BYTES).map_err(|_| io::ErrorKind::InvalidInput)?;
        self.frame[..4].copy_from_slice(&kind.to_le_bytes());
        self.frame[4..HEAD_BYTES].copy_from_slice(&bytes.to_le_bytes());
        let sum = xxh3_64_with_seed(&self.frame, self.number);
        self.frame.extend_from_slice(&sum.to_le_bytes());
        self.to.write_all(&self.frame)?;
        self.number += 1;
        self.frame.truncate(HEAD_BYTES);
        Ok(())
    }
}

/// Reads a file, and checks all of it.
pub(crate) struct Reader<R> {
    from: R,
    /// The frame that was read last: its head and its content.
    frame: Vec<u8>,
    number: u64,
    /// Where it begins, and where it ends.
    at: u64,
    end: u64,
    pairs: u64,
}

impl<R: Read> Reader<R> {
    /// Reads what the store is. The numbers that change with its content are 0.
    pub(crate) fn begin(mut from: R) -> Result<(Reader<R>, Listed), Fault> {
        let mut magic = Vec::new();
        from.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic)?;
        if magic != MAGIC {
            return Err(if magic.starts_with(FAMILY) { Fault::Version } else { Fault::Foreign });
        }
        let end = MAGIC.len() as u64;
        let mut reader = Reader { from, frame: Vec::new(), number: 0, at: 0, end, pairs: 0 };
        if reader.read()? != STORE {
            return Err(reader.damaged("it does not tell what the store is"));
        }
        let store = store(&reader.frame[HEAD_BYTES..]).ok_or(reader.damaged("it is no store"))?;
        Ok((reader, store))
    }

    /// How many bytes of the file were read: up to where the next frame begins.
    pub(crate) fn done(&self) -> u64 {
        self.end
    }

    /// The pairs of the next frame; `None` at the end of the file, which then is whole.
    pub(crate) fn pairs(&mut self) -> Result<Option<Pairs<'_>>, Fault> {
        match self.read()? {
            PAIRS => {}
            END => {
                let all = self.frame[HEAD_BYTES..].try_into().ok().map(u64::from_le_bytes);
                let is_last = self.from.read(&mut [0])? == 0;
                return match all {
                    Some(pairs) if pairs == self.pairs && is_last => Ok(None),
                    Some(pairs) if pairs == self.pairs => Err(self.damaged("more follows the end")),
                    _ => Err(self.damaged("the number of pairs is wrong")),
                };
            }
            _ => return Err(self.damaged("it is no frame of pairs")),
        }
        let mut rest = &self.frame[HEAD_BYTES..];
        let mut pairs = Vec::new();
        while !rest.is_empty() {
            pairs.push(pair(&mut rest).ok_or(Fault::Damaged(self.at, "a pair is cut off or too long"))?);
        }
        self.pairs += pairs.len() as u64;
        Ok(Some(pairs))
    }

    /// Reads a frame and checks its sum. Returns its kind.
    fn read(&mut self) -> Result<u32, Fault> {
        self.at = self.end;
        self.frame.clear();
        self.more(HEAD_BYTES as u64)?;
        let number = |at: usize| u32::from_le_bytes(self.frame[at..at + 4].try_into().expect("4 bytes"));
        let (kind, bytes) = (number(0), number(4));
        if !(STORE..=END).contains(&kind) || bytes > FRAME_BYTES_MAX {
            return Err(self.damaged("its head is wrong"));
        }
        self.more(u64::from(bytes) + SUM_BYTES as u64)?;
        let sum = self.frame.split_off(self.frame.len() - SUM_BYTES);
        if sum != xxh3_64_with_seed(&self.frame, self.number).to_le_bytes() {
            return Err(self.damaged("its checksum is wrong"));
        }
        self.number += 1;
        Ok(kind)
    }

    /// Reads further bytes of the frame. Allocates no more than about twice what the file has.
    fn more(&mut self, bytes: u64) -> Result<(), Fault> {
        let read = self.from.by_ref().take(bytes).read_to_end(&mut self.frame)? as u64;
        self.end += read;
        if read < bytes { Err(self.damaged("the file ends in it")) } else { Ok(()) }
    }

    fn damaged(&self, what: &'static str) -> Fault {
        Fault::Damaged(self.at, what)
    }
}

/// Takes a pair off the beginning of `bytes`.
fn pair<'f>(bytes: &mut &'f [u8]) -> Option<(&'f [u8], &'f [u8])> {
    let (key_bytes, rest) = bytes.split_first_chunk::<4>()?;
    let (value_bytes, rest) = rest.split_first_chunk::<4>()?;
    let (key, rest) = rest.split_at_checked(u32::from_le_bytes(*key_bytes) as usize)?;
    let (value, rest) = rest.split_at_checked(u32::from_le_bytes(*value_bytes) as usize)?;
    *bytes = rest;
    (key.len() <= abi::KEY_BYTES_MAX).then_some((key, value))
}

/// What a store is. The numbers that change with its content are 0.
fn store(content: &[u8]) -> Option<Listed> {
    let (numbers, name) = content.split_at_checked(STORE_BYTES)?;
    let number = |at: usize| u32::from_le_bytes(numbers[at..at + 4].try_into().expect("4 bytes"));
    let store = Listed {
        name: name.to_vec(),
        is_of_user: number(12) == 1,
        keys: 0,
        pair_bytes: 0,
        bytes: 0,
        bytes_max: u64::from_le_bytes(numbers[16..].try_into().expect("8 bytes")),
        uid: number(0),
        gid: number(4),
        mode: number(8),
        opens: 0,
    };
    let is_named = (1..=abi::NAME_BYTES_MAX).contains(&name.len()) && !name.contains(&0);
    (is_named && number(12) <= 1 && store.mode & !0o666 == 0).then_some(store)
}

#[cfg(test)]
mod tests {
    use super::*;
    use forrest_base::random::Random;

    fn listed() -> Listed {
        Listed {
            name: b"shop".to_vec(),
            is_of_user: true,
            keys: 0,
            pair_bytes: 0,
            bytes: 0,
            bytes_max: 1 << 40,
            uid: 1000,
            gid: 900,
            mode: 0o640,
            opens: 0,
        }
    }

    type Owned = Vec<(Vec<u8>, Vec<u8>)>;

    fn file(pairs: &Owned) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::begin(&mut bytes, &listed()).expect("it is memory");
        pairs.iter().for_each(|(key, value)| writer.pair(key, value).expect("it is memory"));
        assert_eq!(writer.end().expect("it is memory"), pairs.len() as u64);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<(Listed, Owned), Fault> {
        let (mut reader, store) = Reader::begin(bytes)?;
        let mut all = Owned::new();
        while let Some(pairs) = reader.pairs()? {
            all.extend(pairs.into_iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
        }
        assert_eq!(reader.done(), bytes.len() as u64);
        Ok((store, all))
    }

    #[test]
    fn what_was_written_is_read() {
        let mut random = Random(7);
        let mut some = |most: u64| vec![random.next() as u8; random.below(most) as usize];
        let many: Owned = (0..2000).map(|_| (some(300), some(3000))).collect();
        let long: Owned = vec![(vec![], vec![]), (vec![1; 4096], vec![2; 3 << 20]), (vec![3], vec![])];
        for pairs in [Owned::new(), vec![(vec![0], vec![])], many, long] {
            let (store, read) = read(&file(&pairs)).expect("it is whole");
            assert_eq!(store, listed());
            assert!(read == pairs);
        }
    }

    /// Each bit, each length, and each frame that is missing, repeated or moved.
    #[test]
    fn any_damage_is_found() {
        let pairs: Owned = (0_u8..4).map(|n| (vec![n; 2], vec![n; 400 << 10])).collect();
        let short: Owned = (0_u8..9).map(|n| (vec![n; 3], vec![n; 5])).collect();
        let whole = file(&short);
        for at in 0..whole.len() {
            assert!(read(&whole[..at]).is_err(), "cut off at {at}");
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << bit;
                assert!(read(&bytes).is_err(), "bit {bit} of byte {at}");
            }
        }
        assert!(matches!(read(&[&whole[..], b"x"].concat()), Err(Fault::Damaged(..))));
        let whole = file(&pairs);
        let mut frames = vec![MAGIC.len()];
        while frames[frames.len() - 1] < whole.len() {
            let at = frames[frames.len() - 1];
            let bytes = u32::from_le_bytes(whole[at + 4..at + 8].try_into().unwrap()) as usize;
            frames.push(at + HEAD_BYTES + bytes + SUM_BYTES);
        }
        let frames: Vec<&[u8]> = frames.windows(2).map(|at| &whole[at[0]..at[1]]).collect();
        assert_eq!(frames.len(), 4);
        for order in [&[0, 2, 1, 3][..], &[0, 1, 3], &[0, 1, 1, 2, 3], &[0, 3], &[1, 2, 3], &[0, 1, 2], &[]] {
            let bytes = order.iter().fold(MAGIC.to_vec(), |all, &n| [&all, frames[n]].concat());
            assert!(matches!(read(&bytes), Err(Fault::Damaged(..))), "{order:?}");
        }
    }

    #[test]
    fn other_files_are_refused() {
        assert!(matches!(read(b""), Err(Fault::Foreign)));
        assert!(matches!(read(b"llds"), Err(Fault::Foreign)));
        assert!(matches!(read(b"a text that somebody wrote"), Err(Fault::Foreign)));
        assert!(matches!(read(b"llds store 0002\n and more"), Err(Fault::Version)));
    }

    /// Frames whose checksum is right, as a program may write that means harm.
    #[test]
    fn forged_frames_are_refused() {
        let forged = |kind: u32, content: &[u8], number: u64| {
            let length = (content.len() as u32).to_le_bytes();
            let mut frame = [&kind.to_le_bytes()[..], &length, content].concat();
            let sum = xxh3_64_with_seed(&frame, number);
            frame.extend_from_slice(&sum.to_le_bytes());
            frame
        };
        let head = file(&Owned::new());
        let head = &head[..head.len() - HEAD_BYTES - 8 - SUM_BYTES];
        assert!(read(&[head, &forged(END, &[0; 8], 1)].concat()).is_ok());
        let long = [&5000_u32.to_le_bytes()[..], &[0; 4], &[7; 5000]].concat();
        let past = [&3_u32.to_le_bytes()[..], &u32::MAX.to_le_bytes(), b"key"].concat();
        for content in [&[1][..], &[0; 7], &long, &past, &[255; 64]] {
            assert!(read(&[head, &forged(PAIRS, content, 1), &forged(END, &[1; 8], 2)].concat()).is_err());
        }
        for content in [&[][..], &[1; 8], &[0; 7], &[0; 9]] {
            assert!(read(&[head, &forged(END, content, 1)].concat()).is_err(), "{content:?}");
        }
        // A length that the file does not have costs no memory.
        let mut huge = head.to_vec();
        huge.extend_from_slice(&PAIRS.to_le_bytes());
        huge.extend_from_slice(&FRAME_BYTES_MAX.to_le_bytes());
        assert!(matches!(read(&huge), Err(Fault::Damaged(_, "the file ends in it"))));
        let name = |flags: u32, mode: u32, name: &[u8]| {
            let numbers = [7, 7, mode, flags].map(u32::to_le_bytes).concat();
            [MAGIC, &forged(STORE, &[&numbers, &[0; 8][..], name].concat(), 0)[..], &forged(END, &[0; 8], 1)]
                .concat()
        };
        assert!(read(&name(1, 0o600, b"shop")).is_ok());
        for (flags, mode, text) in
            [(2, 0o600, &b"shop"[..]), (0, 0o4600, b"shop"), (0, 0, b""), (0, 0, &[1; 256]), (0, 0, b"a\0")]
        {
            assert!(read(&name(flags, mode, text)).is_err(), "{flags} {mode:o} {text:?}");
        }
    }
}
