//! Structures of a program's own that uses kvbench as a library: what they implement, and their adapters.

use crate::arm;
use crate::data::{Kind, Strings, U64};
use crate::registry::{self, Runs, SubjectEntry};
use crate::subjects::{Reader, Subject, Writer, by_itself, foreign};

/// A map from numbers to numbers that can be measured. A new one is empty.
///
/// Several threads read at a time, and one writes while nobody reads.
pub trait NumberMap: Default + Send + Sync + 'static {
    /// Whether [`NumberMap::each`] and [`NumberMap::scan`] show pairs in the order of their keys. Only then are scans
    /// and iteration measured.
    const ORDERED: bool = false;

    /// Maps the key to the value, whether or not it was there.
    fn insert(&mut self, key: u64, value: u64);
    /// The value of a key.
    fn get(&self, key: u64) -> Option<u64>;
    /// Removes the key; true if it was there.
    fn remove(&mut self, key: u64) -> bool;
    /// Shows all pairs.
    fn each(&self, see: impl FnMut(u64, u64));
    /// Shows up to `count` pairs from the first key on that is at least `from`. Needed if `ORDERED`.
    fn scan(&self, from: u64, count: usize, see: impl FnMut(u64, u64)) {
        let _ = (from, count, see);
    }
    /// Makes room in an empty map for this number of keys; false if it cannot.
    fn reserve(&mut self, keys: usize) -> bool {
        let _ = keys;
        false
    }
}

/// A map from byte strings to byte strings that can be measured. As [`NumberMap`] in all else.
pub trait StringMap: Default + Send + Sync + 'static {
    /// Whether pairs are shown in the order of their keys, compared as bytes.
    const ORDERED: bool = false;

    /// Maps the key to the value, whether or not it was there.
    fn insert(&mut self, key: &[u8], value: &[u8]);
    /// The value of a key.
    fn get(&self, key: &[u8]) -> Option<&[u8]>;
    /// Removes the key; true if it was there.
    fn remove(&mut self, key: &[u8]) -> bool;
    /// Shows all pairs.
    fn each(&self, see: impl FnMut(&[u8], &[u8]));
    /// Shows up to `count` pairs from the first key on that is at least `from`. Needed if `ORDERED`.
    fn scan(&self, from: &[u8], count: usize, see: impl FnMut(&[u8], &[u8])) {
        let _ = (from, count, see);
    }
    /// Makes room in an empty map for this number of keys; false if it cannot.
    fn reserve(&mut self, keys: usize) -> bool {
        let _ = keys;
        false
    }
}

/// A structure of the program that calls [`main`](crate::main): its name, and what it holds.
pub struct Structure(SubjectEntry);

impl Structure {
    /// A structure that holds nothing yet. The name has lower-case letters, digits and `-`, and the description has one
    /// line.
    pub fn new(name: &'static str, about: &'static str) -> Structure {
        Structure(SubjectEntry { about, ..SubjectEntry::new(name, None) })
    }

    /// It holds numbers in such a map.
    pub fn numbers<M: NumberMap>(mut self) -> Structure {
        self.0.ordered |= M::ORDERED;
        self.0.u64s = Ok(Runs::One(arm::run::<U64, Own<M>>));
        self
    }

    /// It holds strings in such a map.
    pub fn strings<M: StringMap>(mut self) -> Structure {
        self.0.ordered |= M::ORDERED;
        self.0.strings = Ok(Runs::One(arm::run::<Strings, Own<M>>));
        self
    }
}

/// Adds structures to the list; the error names one that cannot be added.
pub(crate) fn register(structures: impl IntoIterator<Item = Structure>) -> Result<(), String> {
    let mut own: Vec<SubjectEntry> = Vec::new();
    for Structure(entry) in structures {
        let name = entry.name;
        if !foreign::is_name(name) {
            return Err(format!("{name:?} is no name: names have lower-case letters, digits and -"));
        }
        if registry::entries().any(|there| there.name == name) || own.iter().any(|there| there.name == name) {
            return Err(format!("there is a structure called {name:?} already: choose another name"));
        }
        if entry.about.chars().any(char::is_control) {
            return Err(format!("{name} has a description of more than one line"));
        }
        if entry.u64s.is_err() && entry.strings.is_err() {
            return Err(format!("{name} holds neither numbers nor strings"));
        }
        own.push(entry);
    }
    registry::register(own)
}

/// The adapter of both.
struct Own<M>(M);

macro_rules! adapter {
    ($kind:ty, $map:ident, $key:ident => $bytes:expr) => {
        impl<M: $map> Subject<$kind> for Own<M> {
            const ORDERED: bool = M::ORDERED;
            by_itself!(Own(M::default()));

            fn reserve(&mut self, keys: usize) -> bool {
                self.0.reserve(keys)
            }
        }

        impl<M: $map> Reader<$kind> for &Own<M> {
            #[inline]
            fn get<R>(&self, $key: Key<'_, $kind>, see: impl FnOnce(Value<'_, $kind>) -> R) -> Option<R> {
                self.0.get($bytes).map(see)
            }

            #[inline]
            fn scan(
                &self,
                $key: Key<'_, $kind>,
                count: usize,
                see: impl FnMut(Found<'_, $kind>, Value<'_, $kind>),
            ) {
                self.0.scan($bytes, count, see);
            }

            #[inline]
            fn iterate(&self, see: impl FnMut(Found<'_, $kind>, Value<'_, $kind>)) {
                self.0.each(see);
            }
        }

        impl<M: $map> Writer<$kind> for &mut Own<M> {
            #[inline]
            fn insert(&mut self, $key: Key<'_, $kind>, value: Value<'_, $kind>) {
                self.0.insert($bytes, value);
            }

            #[inline]
            fn remove(&mut self, $key: Key<'_, $kind>) -> bool {
                self.0.remove($bytes)
            }
        }
    };
}

type Key<'a, K> = <K as Kind>::Key<'a>;
type Found<'a, K> = <K as Kind>::Found<'a>;
type Value<'a, K> = <K as Kind>::Value<'a>;

adapter!(U64, NumberMap, key => key);
adapter!(Strings, StringMap, key => key.bytes());

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Nothing;

    impl NumberMap for Nothing {
        fn insert(&mut self, _: u64, _: u64) {}
        fn get(&self, _: u64) -> Option<u64> {
            None
        }
        fn remove(&mut self, _: u64) -> bool {
            false
        }
        fn each(&self, _: impl FnMut(u64, u64)) {}
    }

    #[test]
    fn what_cannot_be_added_is_named() {
        let of = |name, about| Structure::new(name, about).numbers::<Nothing>();
        let why = |structures: Vec<Structure>| register(structures).unwrap_err();
        assert!(why(vec![of("", "x")]).contains("is no name"));
        assert!(why(vec![of("a+b", "x")]).contains(r#""a+b" is no name"#));
        assert!(why(vec![of("btreemap", "x")]).contains(r#""btreemap" already"#));
        assert!(why(vec![of("one", "x"), of("one", "y")]).contains(r#""one" already"#));
        assert!(why(vec![of("one", "two\nlines")]).contains("more than one line"));
        assert!(why(vec![Structure::new("one", "x")]).contains("neither numbers nor strings"));
    }
}
