//! Keys of a file, for stores: those that every store takes, in an order that the seed decides.
//!
//! After the last one come keys with a suffix: a key of the file, `~` as often as no key has it before a number at
//! its end, and a number. So no made key is one of the file's, and no two are equal. An absent key is one of the file's
//! with a byte changed or more bytes at its end, as [`Set`] finds them; none ends like a made key.

use super::pairs::Keys;
use crate::data::{Decimal, Permutation, Set, mix};
use crate::job::DataFile;
use std::io;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Longest key that each store takes, in bytes: LMDB's limit.
pub(crate) const KEY_BYTES_MAX: usize = 511;
/// Most bytes of the mark before a number.
const MARK_BYTES_MAX: usize = 64;
/// What the mark is made of.
const MARK: u8 = b'~';
/// The greatest byte. UTF-8 does not have it.
const LAST: u8 = u8::MAX;

/// Facts about the keys, for reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Different keys that are taken.
    pub(crate) keys: u64,
    /// Bytes of all of them.
    pub(crate) key_bytes: u64,
    /// Of all of them, in the order of the file.
    pub(crate) checksum: u64,
    /// Keys that were there already.
    pub(crate) repeated: u64,
    /// Keys that a store does not take: empty, or too long.
    pub(crate) left_out: u64,
}

/// The keys.
pub(crate) struct FileKeys {
    set: Set,
    /// Their numbers in the set, in the order in which they are taken.
    order: Vec<u64>,
    /// What is between a key of the file and the number that makes it another one.
    mark: Vec<u8>,
    /// Whether a key of the file has the byte [`LAST`].
    has_last: bool,
    seed: u64,
    /// Facts.
    pub(crate) told: Told,
}

/// A key of a set, without its NUL.
fn bare(set: &Set, number: u64) -> &[u8] {
    let key = set.key(number);
    &key[..key.len() - 1]
}

/// Length of the mark, if the key ends in marks and a number; 0 if it does not.
fn marked(key: &[u8]) -> usize {
    let number = key.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = &key[..key.len() - number];
    rest.iter().rev().take_while(|byte| **byte == MARK && number > 0).count()
}

impl FileKeys {
    /// Loads a file; `margin_bytes` of memory must stay free.
    pub(crate) fn load(file: &DataFile, margin_bytes: u64, seed: u64) -> io::Result<Self> {
        FileKeys::new(file.load(margin_bytes)?, seed)
            .map_err(|error| crate::errors::told(file.path.display(), &error))
    }

    fn new(set: Set, seed: u64) -> io::Result<Self> {
        let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what);
        let mut told = Told { repeated: set.told().duplicates, ..Told::default() };
        let (mut taken, mut absent, mut marks, mut has_last) = (Vec::new(), Vec::new(), 0, false);
        for number in 0..set.len() {
            let key = bare(&set, number);
            absent.clear();
            set.push_absent(number, &mut absent);
            absent.pop();
            if key.is_empty() || key.len().max(absent.len()) > KEY_BYTES_MAX {
                told.left_out += 1;
                continue;
            }
            marks = marked(key).max(marked(&absent)).max(marks);
            has_last |= key.contains(&LAST);
            told.key_bytes += key.len() as u64;
            told.checksum = xxh3_64_with_seed(key, told.checksum);
            taken.push(number);
        }
        told.keys = taken.len() as u64;
        if taken.is_empty() {
            return Err(invalid("it has no key that each store takes"));
        }
        if marks >= MARK_BYTES_MAX {
            return Err(invalid("a key ends in too many ~ and a number, so no suffix is free"));
        }
        let order = Permutation::new(told.keys, seed ^ 1);
        let order = (0..told.keys).map(|at| taken[order.apply(at) as usize]).collect();
        Ok(FileKeys { set, order, mark: vec![MARK; marks + 1], has_last, seed: mix(seed), told })
    }

    /// One of the keys at random.
    fn any(&self, number: u64) -> u64 {
        self.order[(mix(number ^ self.seed) % self.told.keys) as usize]
    }
}

impl Keys for FileKeys {
    type Key = Box<[u8]>;

    fn key(&self, number: u64) -> Box<[u8]> {
        if let Some(number) = self.order.get(number as usize) {
            return bare(&self.set, *number).into();
        }
        let number = number - self.told.keys + 1;
        let end = [&self.mark, Decimal::new(number).as_bytes()].concat();
        let key = bare(&self.set, self.any(number));
        [&key[..key.len().min(KEY_BYTES_MAX - end.len())], &end].concat().into()
    }

    fn absent(&self, number: u64) -> Box<[u8]> {
        let mut key = Vec::new();
        self.set.push_absent(self.any(number), &mut key);
        key.pop();
        key.into()
    }

    /// One just below, if that is sure: any other from there on has [`LAST`] where this one has it. Otherwise itself.
    fn before(&self, key: &Box<[u8]>) -> Box<[u8]> {
        let mut before = key.to_vec();
        if let Some(end) = before.last_mut().filter(|end| **end > 0 && !self.has_last)
            && key.len() < KEY_BYTES_MAX
        {
            *end -= 1;
            before.push(LAST);
        }
        before.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::SetBuilder;
    use forrest_machine::pages::Pages;
    use std::collections::BTreeSet;

    fn of(keys: &[&[u8]]) -> io::Result<FileKeys> {
        let mut set = SetBuilder::new(1 << 22, Pages::Plain, false)?;
        keys.iter().try_for_each(|key| set.push(key, None))?;
        FileKeys::new(set.finish()?, 7)
    }

    /// Checks that keys are distinct, that absent ones are, and that a seek finds its key.
    fn check(keys: &FileKeys, below: bool) {
        let count = 3 * keys.told.keys;
        let all: BTreeSet<_> = (0..count).map(|number| keys.key(number)).collect();
        assert_eq!(all.len() as u64, count);
        assert!(all.iter().all(|key| (1..=KEY_BYTES_MAX).contains(&key.len())));
        for number in 0..count {
            let absent = keys.absent(number);
            assert!(!all.contains(&absent) && (1..=KEY_BYTES_MAX).contains(&absent.len()), "{absent:?}");
            let key = keys.key(number);
            let before = keys.before(&key);
            assert_eq!(all.range(before.clone()..).next(), Some(&key));
            assert!(before.len() <= KEY_BYTES_MAX && (before != key) == (below && key.len() < KEY_BYTES_MAX));
        }
    }

    #[test]
    fn keys_are_distinct_and_sought_from_below() {
        let long = [[b'x'; KEY_BYTES_MAX + 1], [b'y'; KEY_BYTES_MAX + 1]];
        let words: &[&[u8]] =
            &[b"a", b"", b"ab", b"abc", b"a", b"a~1", b"b~~2", b"c~", b"~", b"9", &long[0], &long[1][1..]];
        let keys = of(words).unwrap();
        check(&keys, true);
        assert_eq!(keys.mark, b"~~~");
        let told = keys.told;
        assert_eq!((told.keys, told.repeated, told.left_out), (9, 1, 2));
        assert_eq!(told.key_bytes, 17 + KEY_BYTES_MAX as u64);
        let taken: BTreeSet<_> = (0..told.keys).map(|number| keys.key(number)).collect();
        assert!(
            words.iter().all(|word| taken.contains(*word) != [0, KEY_BYTES_MAX + 1].contains(&word.len()))
        );
        assert_ne!(told.checksum, of(&words[1..]).unwrap().told.checksum);
    }

    #[test]
    fn keys_of_all_bytes_are_sought_from_themselves() {
        let bytes: Vec<_> = (0..=255u8).map(|byte| [byte]).collect();
        let bytes: Vec<_> = bytes.iter().map(|byte| &byte[..]).collect();
        check(&of(&bytes).unwrap(), false);
    }

    #[test]
    fn a_file_without_a_key_that_fits_is_refused() {
        assert!(of(&[b"", &[b'k'; KEY_BYTES_MAX + 1]]).is_err());
        assert!(of(&[&[&[MARK; MARK_BYTES_MAX][..], b"1"].concat()]).is_err());
    }
}
