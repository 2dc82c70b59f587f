//! The data: what a pair is ([`Kind`]), where pairs come from ([`Source`]), and pairs laid out for a loop
//! ([`Block`]).
//!
//! Guarantees: pair number `i` of a source is a pure function of its seed and `i`, and no two numbers have the same key
//! (the keys that a [`Set`] does not have repeat after as many as it has pairs, or a few thousand). So nothing has to
//! keep the keys of a large run: they are made a block at a time, before the clock starts, and a probe is always a
//! fresh copy in a fresh order, never what was inserted.

mod counters;
mod decimal;
mod distribution;
mod edges;
mod mix;
mod set;
mod strings;
mod u64s;

pub(crate) use counters::{CounterSource, Counters};
pub(crate) use decimal::Decimal;
pub(crate) use distribution::{Choice, Distribution};
pub(crate) use edges::Edge;
pub(crate) use mix::{Permutation, Random, mix};
pub(crate) use set::{Builder as SetBuilder, Set, Told};
pub(crate) use strings::{Pointed, Strings, Text, Walk, collect_paths, receive_paths, send_paths};
pub(crate) use u64s::U64;

use crate::hashes::HashFunction;
use std::hash::Hash;

/// The kinds of pairs.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    clap::ValueEnum,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub(crate) enum KindName {
    /// Random 8-byte keys with 8-byte values.
    U64,
    /// Paths of a directory tree with 20-byte values.
    Strings,
}

impl KindName {
    /// The name in jobs, tables and records.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }
}

/// A kind of key and value. The conversions let one adapter serve every kind, at the price of the type that
/// its users would choose.
pub(crate) trait Kind: Send + Sync + Sized + 'static {
    /// A key as the loops hand it to a subject.
    type Key<'a>: Copy + Send;
    /// A key as a subject shows it in a scan.
    type Found<'a>: Copy;
    /// A value, both ways.
    type Value<'a>: Copy + Send;
    /// A key as bytes.
    type KeyBytes<'a>: Copy + AsRef<[u8]>;
    /// A value as bytes.
    type ValueBytes<'a>: Copy + AsRef<[u8]>;
    /// What an owning map is asked with.
    type Query: Ord + Hash + ?Sized;
    /// Makes the pairs.
    type Source: Source<Self>;
    /// Holds pairs in memory, one after the other.
    type Block: Block<Self>;

    /// The pairs of a data set of this many; `walk` has the paths, where the kind needs them.
    fn source(len: u64, seed: u64, walk: Walk) -> Self::Source;
    /// Keys at which structures were found wrong.
    fn edges() -> Vec<Edge>;
    /// The hash of what an owning map is asked with.
    fn hash<H: HashFunction>(query: &Self::Query) -> u64;
    /// The key as an owning map is asked for it.
    fn query<'a>(key: &'a Self::Key<'_>) -> &'a Self::Query;
    /// The key as bytes whose order is the order of the keys.
    fn key_bytes(key: Self::Key<'_>) -> Self::KeyBytes<'_>;
    /// What [`Kind::key_bytes`] made, as a found key.
    fn found(bytes: &[u8]) -> Self::Found<'_>;
    /// A found key as bytes; the inverse of [`Kind::found`].
    fn found_bytes(found: Self::Found<'_>) -> Vec<u8>;
    /// The value as bytes.
    fn value_bytes(value: Self::Value<'_>) -> Self::ValueBytes<'_>;
    /// What [`Kind::value_bytes`] made, as a value.
    fn value(bytes: &[u8]) -> Self::Value<'_>;
    /// A number that depends on the found key, to be summed: proof that it was read.
    fn fold_found(found: Self::Found<'_>) -> u64;
    /// A number that depends on the value, to be summed.
    fn fold_value(value: Self::Value<'_>) -> u64;
    /// Bytes of the pair as a user counts them.
    fn pair_bytes(found: Self::Found<'_>, value: Self::Value<'_>) -> u64;
}

/// The half of [`Kind`] that is about keys, where these are 64-bit numbers.
macro_rules! number_keys {
    () => {
        type Key<'a> = u64;
        type Found<'a> = u64;
        type KeyBytes<'a> = [u8; 8];
        type Query = u64;

        fn edges() -> Vec<$crate::data::Edge> {
            $crate::data::edges::of_numbers()
        }

        #[inline]
        fn hash<H: $crate::hashes::HashFunction>(query: &u64) -> u64 {
            H::of_number(*query)
        }

        #[inline]
        fn query(key: &u64) -> &u64 {
            key
        }

        #[inline]
        fn key_bytes(key: Self::Key<'_>) -> Self::KeyBytes<'_> {
            key.to_be_bytes()
        }

        #[inline]
        fn found(bytes: &[u8]) -> u64 {
            $crate::data::be(bytes)
        }

        fn found_bytes(found: u64) -> Vec<u8> {
            found.to_be_bytes().to_vec()
        }

        #[inline]
        fn fold_found(found: u64) -> u64 {
            found
        }
    };
}
use number_keys;

/// Makes pairs by number.
pub(crate) trait Source<K: Kind>: Sync {
    /// Appends the key numbered `key` with the value numbered `value`. Numbers below [`Source::len`] are in
    /// random order (those of a [`Set`] in its own) and make the data set; the numbers from there on are keys that it
    /// does not have.
    fn push_pair(&self, key: u64, value: u64, out: &mut K::Block);

    /// Appends this key, given as [`Kind::key_bytes`] gives it, with the value numbered `value`.
    fn push_key(&self, key: &[u8], value: u64, out: &mut K::Block);

    /// The number of pairs in the data set.
    fn len(&self) -> u64;

    /// Numbers from here on have keys that smaller ones have, too.
    fn keys_max(&self) -> u64 {
        u64::MAX
    }

    /// Appends pair `number` where it lies, if structures may keep it there, and otherwise a copy. A block has pairs of
    /// one sort only.
    fn push_in_place(&self, number: u64, out: &mut K::Block) {
        self.push(number, out);
    }

    /// Appends pair `number`.
    fn push(&self, number: u64, out: &mut K::Block) {
        self.push_pair(number, number, out);
    }
}

/// Pairs in memory in the order in which a loop takes them.
pub(crate) trait Block<K: Kind>: Default + Send + Sync {
    /// The number of pairs.
    fn len(&self) -> usize;
    /// The key at a position.
    fn key(&self, at: usize) -> K::Key<'_>;
    /// The value at a position.
    fn value(&self, at: usize) -> K::Value<'_>;
    /// Forgets the pairs and keeps the memory.
    fn clear(&mut self);
}

/// The pairs of these numbers, in a block of their own.
pub(crate) fn block_of<K: Kind>(source: &K::Source, numbers: impl IntoIterator<Item = u64>) -> K::Block {
    let mut block = K::Block::default();
    numbers.into_iter().for_each(|number| source.push(number, &mut block));
    block
}

/// An owned key in the type that a map's user would take. The default one fills empty slots and allocates nothing.
pub(crate) trait KeyForm<K: Kind>:
    std::borrow::Borrow<K::Query> + Ord + Hash + Clone + Default + Send + Sync + 'static
{
    /// Makes an owned key, as an insertion must.
    fn own(key: K::Key<'_>) -> Self;
    /// Shows the key.
    fn found(&self) -> K::Found<'_>;
}

/// An owned value in the type that a map's user would take.
pub(crate) trait ValueForm<K: Kind>: Clone + Default + Send + Sync + 'static {
    /// Makes an owned value, as an insertion must.
    fn own(value: K::Value<'_>) -> Self;
    /// Shows the value.
    fn show(&self) -> K::Value<'_>;
}

/// Reads every byte: the sum of all eight-byte words, of the last eight bytes, and of the length.
pub(crate) fn fold_bytes(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(0, |sum: u64, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    let last = match bytes.last_chunk::<8>() {
        Some(last) => u64::from_le_bytes(*last),
        None => rest.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
    };
    sum.wrapping_add(last).wrapping_add(bytes.len() as u64)
}

/// Eight bytes as a big-endian number; other lengths give a number that no test expects.
fn be(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(u64::MAX, u64::from_be_bytes)
}
