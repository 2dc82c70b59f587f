//! Pairs from a file, in memory on large pages, in the order of the file.
//!
//! A set of numbers has keys of eight bytes, big endian; those of four bytes are made as long. It has no values.
//!
//! Keys are unique: a later pair of a key replaces the value of the first one and keeps its place, as inserting all
//! pairs would. So the sums of a set are those of a structure that holds it. The number of dropped pairs is reported.
//!
//! An absent key is made by changing one byte of a present key, or by appending bytes if no change gives an absent key;
//! an absent number is a random one then.
//! While the set is built, each one is compared with all present keys and with the absent keys before it, so no two are
//! equal; the number of attempts that it took is kept. The changes insert no new zero byte, because some structures end
//! keys with it.

use super::mix;
use forrest_machine::pages::{Bytes, Pages};
use hashbrown::HashTable;
use std::io;
use xxhash_rust::xxh3::xxh3_64;

/// Longest key, in bytes: what this project's index takes.
pub(crate) const KEY_BYTES_MAX: usize = 65_535;
/// Two lengths, before each pair.
const HEAD_BYTES: usize = 8;
/// Number of attempts that change a byte; later attempts append bytes.
const CHANGES: u8 = 16;
/// Absent keys of a set that has fewer pairs; another set has as many as it has pairs.
const ABSENT_MIN: u64 = 4096;

/// A set.
pub(crate) struct Set {
    /// Two lengths, key, NUL, value; of each pair.
    bytes: Bytes,
    /// Where each pair begins.
    pairs: Vec<u64>,
    /// The attempt that gave each absent key.
    attempts: Vec<u8>,
    are_numbers: bool,
    told: Told,
}

/// Facts about a set, for reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Pairs in it.
    pub(crate) pairs: u64,
    /// Pairs dropped, because a later one had their key.
    pub(crate) duplicates: u64,
    /// Bytes of all keys.
    pub(crate) key_bytes: u64,
    /// Bytes of all values.
    pub(crate) value_bytes: u64,
    /// Whether pairs have values.
    pub(crate) valued: bool,
    /// Keys with a zero byte in them.
    pub(crate) with_nul: u64,
    /// On which pages it lies.
    pub(crate) pages: String,
}

/// A set being made.
pub(crate) struct Builder {
    set: Set,
    table: HashTable<u64>,
}

/// The bytes of a record's key, and of its value.
fn record(bytes: &[u8], at: u64) -> (&[u8], &[u8]) {
    let rest = &bytes[at as usize..];
    let len = |at: usize| rest[at..at + 4].try_into().map_or(0, u32::from_le_bytes) as usize;
    let (key_end, value_bytes) = (HEAD_BYTES + len(0), len(4));
    (&rest[HEAD_BYTES..=key_end], &rest[key_end + 1..key_end + 1 + value_bytes])
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

impl Builder {
    /// Begins a set, of numbers if `are_numbers`, for which there are addresses for `room` bytes.
    pub(crate) fn new(room: usize, pages: Pages, are_numbers: bool) -> io::Result<Self> {
        let bytes = Bytes::with_room(room, pages)?;
        let set = Set { bytes, pairs: Vec::new(), attempts: Vec::new(), are_numbers, told: Told::default() };
        Ok(Builder { set, table: HashTable::new() })
    }

    /// A number as a key.
    fn number(&self, key: &[u8]) -> io::Result<[u8; 8]> {
        match *key {
            [a, b, c, d] => Ok([0, 0, 0, 0, a, b, c, d]),
            _ => key.try_into().map_err(|_| {
                let (pair, bytes) = (self.set.pairs.len() as u64 + self.set.told.duplicates, key.len());
                invalid(format!("the key of pair {pair} has {bytes} bytes; numbers have 8, or 4, big endian"))
            }),
        }
    }

    /// Appends a pair, or replaces the pair with this key.
    pub(crate) fn push(&mut self, key: &[u8], value: Option<&[u8]>) -> io::Result<()> {
        let number;
        let (key, value) = match self.set.are_numbers {
            true => {
                number = self.number(key)?;
                (&number[..], None)
            }
            false => (key, value),
        };
        if key.len() > KEY_BYTES_MAX {
            let what =
                format!("a key of {} bytes; structures are asked to hold {KEY_BYTES_MAX} at most", key.len());
            return Err(invalid(what));
        }
        let value_len = u32::try_from(value.map_or(0, <[u8]>::len))
            .map_err(|_| invalid("a value of 4 GiB".to_owned()))?;
        let Set { bytes, pairs, told, .. } = &mut self.set;
        told.valued = value.is_some();
        let hash = xxh3_64(key);
        let is =
            |at: &u64| record(bytes, pairs[*at as usize]).0.split_last().is_some_and(|(_, own)| own == key);
        let there = self.table.find(hash, is).copied();
        if let Some(at) = there {
            let old = record(bytes, pairs[at as usize]).1;
            told.duplicates += 1;
            if old == value.unwrap_or_default() {
                return Ok(());
            }
            told.value_bytes -= old.len() as u64;
        } else {
            told.key_bytes += key.len() as u64;
            told.with_nul += u64::from(key.contains(&0));
        }
        told.value_bytes += u64::from(value_len);
        let from = bytes.len() as u64;
        let head = u64::from(key.len() as u32) | u64::from(value_len) << 32;
        bytes.extend(&head.to_le_bytes())?;
        bytes.extend(key)?;
        bytes.extend(&[0])?;
        bytes.extend(value.unwrap_or_default())?;
        match there {
            Some(at) => pairs[at as usize] = from,
            None => {
                let number = pairs.len() as u64;
                pairs.push(from);
                let own = |at: &u64| {
                    let key = record(bytes, pairs[*at as usize]).0;
                    xxh3_64(&key[..key.len() - 1])
                };
                self.table.insert_unique(hash, number, own);
            }
        }
        Ok(())
    }

    /// Completes the set: finds as many absent keys as there are pairs, or more. Fails if there are no pairs.
    pub(crate) fn finish(mut self) -> io::Result<Set> {
        let set = &mut self.set;
        if set.pairs.is_empty() {
            return Err(invalid("there are no pairs in it".to_owned()));
        }
        let (mut key, mut absent) = (Vec::new(), HashTable::new());
        for number in 0..set.len().max(ABSENT_MIN) {
            let found = (0..=u8::MAX).find_map(|attempt| {
                key.clear();
                set.push_changed(number, attempt, &mut key);
                let hash = xxh3_64(&key);
                let is = |at: &u64| set.key(*at).split_last().is_some_and(|(_, own)| own == key);
                // Two hashes that are equal by chance only cost another attempt.
                let taken = self.table.find(hash, is).is_some()
                    || absent.find(hash, |other: &u64| *other == hash).is_some();
                (!taken).then_some((attempt, hash))
            });
            let (attempt, hash) =
                found.ok_or_else(|| invalid("no key was found that is not in it".to_owned()))?;
            absent.insert_unique(hash, hash, |hash| *hash);
            set.attempts.push(attempt);
        }
        let had = set.bytes.committed();
        let kinds = [
            (had.huge_1g_bytes, "on explicit pages of 1 GiB"),
            (had.huge_2m_bytes, "on explicit pages of 2 MiB"),
            (had.transparent_bytes, "where transparent huge pages were granted"),
            (had.plain_bytes, "on plain pages"),
        ];
        let kinds = kinds.iter().filter(|(bytes, _)| *bytes > 0);
        let kinds: Vec<_> = kinds.map(|(bytes, kind)| format!("{} MiB {kind}", bytes >> 20)).collect();
        set.told.pairs = set.pairs.len() as u64;
        set.told.pages = kinds.join(", ");
        Ok(self.set)
    }
}

impl Set {
    /// The number of pairs.
    pub(crate) fn len(&self) -> u64 {
        self.pairs.len() as u64
    }

    /// All of its memory.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Facts about the set, for reports.
    pub(crate) fn told(&self) -> &Told {
        &self.told
    }

    /// A key, followed by a NUL.
    pub(crate) fn key(&self, number: u64) -> &[u8] {
        record(&self.bytes, self.pairs[number as usize]).0
    }

    /// A value, if there are values.
    pub(crate) fn value(&self, number: u64) -> Option<&[u8]> {
        self.told.valued.then(|| record(&self.bytes, self.pairs[number as usize]).1)
    }

    /// A key of a set of numbers; `None` if it is another set.
    pub(crate) fn number(&self, number: u64) -> Option<u64> {
        let key = self.key(number).first_chunk().filter(|_| self.are_numbers)?;
        Some(u64::from_be_bytes(*key))
    }

    /// An absent number, as [`Set::push_absent`] has absent keys.
    pub(crate) fn absent_number(&self, number: u64) -> Option<u64> {
        let mut key = Vec::with_capacity(HEAD_BYTES + 1);
        self.push_absent(number, &mut key);
        key.first_chunk().filter(|_| self.are_numbers).map(|key| u64::from_be_bytes(*key))
    }

    /// The number of different keys that are in the set, and absent ones.
    pub(crate) fn keys_max(&self) -> u64 {
        self.len() + self.attempts.len() as u64
    }

    /// Appends a key that is not in the set, and a NUL. Numbers below that of the pairs, and the first [`ABSENT_MIN`]
    /// of a set of few pairs, have different keys; then they go round.
    pub(crate) fn push_absent(&self, number: u64, out: &mut Vec<u8>) {
        let number = number % self.attempts.len() as u64;
        self.push_changed(number, self.attempts[number as usize], out);
        out.push(0);
    }

    /// Appends the key of a pair, changed.
    fn push_changed(&self, number: u64, attempt: u8, out: &mut Vec<u8>) {
        let key = self.key(number % self.len());
        let key = &key[..key.len() - 1];
        let random = mix(mix(number) ^ u64::from(attempt));
        let from = out.len();
        out.extend_from_slice(key);
        if attempt < CHANGES && !key.is_empty() {
            let byte = &mut out[from + (random % key.len() as u64) as usize];
            // Another one near it, so that text stays text as a rule.
            let near = *byte ^ (1 + (random >> 32) % 15) as u8;
            *byte = if near == 0 { *byte | 0x10 } else { near };
        } else if self.are_numbers {
            out.truncate(from);
            out.extend_from_slice(&random.to_be_bytes());
        } else {
            let room = KEY_BYTES_MAX - key.len();
            let more = (1 + usize::from(attempt) / 16).min(room);
            out.extend((0..more).map(|at| b'a' + (mix(random ^ at as u64) % 26) as u8));
            if more == 0 {
                out.truncate(from + (random % KEY_BYTES_MAX as u64) as usize);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn set(pairs: &[(&[u8], Option<&[u8]>)]) -> io::Result<Set> {
        let mut builder = Builder::new(1 << 22, Pages::Auto, false)?;
        pairs.iter().try_for_each(|(key, value)| builder.push(key, *value))?;
        builder.finish()
    }

    fn absent(set: &Set, number: u64) -> Vec<u8> {
        let mut key = Vec::new();
        set.push_absent(number, &mut key);
        assert_eq!(key.pop(), Some(0));
        key
    }

    #[test]
    fn pairs_keep_their_order_and_the_last_value_of_a_key_wins() {
        let set =
            set(&[(b"b", Some(b"1")), (b"a\0c", Some(b"")), (b"b", Some(b"23")), (b"", Some(b"x"))]).unwrap();
        let keys: Vec<_> = (0..3).map(|number| set.key(number)).collect();
        assert_eq!(keys, [&b"b\0"[..], b"a\0c\0", b"\0"]);
        let values: Vec<_> = (0..3).map(|number| set.value(number).unwrap()).collect();
        assert_eq!(values, [&b"23"[..], b"", b"x"]);
        let told = set.told();
        assert_eq!((told.pairs, told.duplicates, told.with_nul, told.valued), (3, 1, 1, true));
        assert_eq!((told.key_bytes, told.value_bytes), (4, 3));
        assert!(told.pages.contains("MiB"), "{}", told.pages);
    }

    #[test]
    fn absent_keys_are_absent_even_where_the_set_is_dense() {
        let dense: Vec<_> = (0u16..4096).map(|number| number.to_be_bytes()).collect();
        let bytes: Vec<_> = (0..=255u8).map(|byte| [byte]).collect();
        let of = |keys: Vec<&[u8]>| {
            let pairs: Vec<_> = keys.iter().map(|key| (*key, None)).collect();
            let made = set(&pairs).unwrap();
            let inside: HashSet<_> = keys.into_iter().collect();
            let mut outside = HashSet::new();
            for number in 0..made.len().max(ABSENT_MIN) {
                let key = absent(&made, number);
                assert!(!inside.contains(&key[..]) && outside.insert(key), "{number}");
            }
        };
        of(dense.iter().map(|key| &key[..]).collect());
        of(bytes.iter().map(|key| &key[..]).collect());
        of(vec![b""]);
        let long = [vec![b'x'; KEY_BYTES_MAX], vec![b'y'; KEY_BYTES_MAX]];
        of(vec![&long[0], &long[1]]);
        let made = set(&[(b"word", None), (b"another", None)]).unwrap();
        assert!((0..2).all(|number| !absent(&made, number).contains(&0) && absent(&made, number).is_ascii()));
        assert_eq!(absent(&made, 0), absent(&made, ABSENT_MIN));
    }

    #[test]
    fn numbers_are_numbers_also_the_absent_ones() {
        assert_eq!(set(&[(b"12345678", None)]).unwrap().number(0), None);
        let of = |keys: &[&[u8]]| {
            let mut builder = Builder::new(1 << 22, Pages::Auto, true)?;
            keys.iter().try_for_each(|key| builder.push(key, Some(b"value")))?;
            builder.finish()
        };
        let set = of(&[&[0, 0, 0, 0, 0, 0, 1, 2], &[0, 0, 1, 2], &[9, 0, 0, 3]]).unwrap();
        assert_eq!((set.number(0), set.number(1), set.len()), (Some(0x102), Some(0x0900_0003), 2));
        assert_eq!((set.told().duplicates, set.value(0)), (1, None));
        // All that differ from one in a byte are there.
        let dense: Vec<_> = (0u64..1 << 16).map(u64::to_be_bytes).collect();
        let set = of(&dense.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
        let absent: HashSet<_> = (0..set.len()).map(|number| set.absent_number(number).unwrap()).collect();
        assert!(absent.len() == 1 << 16 && absent.iter().all(|number| *number >= 1 << 16));
        let error = of(&[&[1; 8], &[2; 5]]).err().unwrap().to_string();
        assert!(error.contains("the key of pair 1 has 5 bytes"), "{error}");
    }

    #[test]
    fn what_no_structure_could_hold_is_refused() {
        assert!(set(&[]).is_err());
        let error = set(&[(&[b'k'; KEY_BYTES_MAX + 1], None)]).err().unwrap().to_string();
        assert!(error.contains("65536"), "{error}");
    }
}
