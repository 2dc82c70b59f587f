//! The conformance kit: every adapter passes it before it may be timed. A hundred thousand random operations
//! (fewer on a set of few keys) are done on the subject and on a `BTreeMap`, and every answer is compared: insertion
//! over an old value, removal, gets that hit and miss, batches, scans, and the whole content in order; then two threads
//! write at once where the subject allows it. The seed replays it.
//!
//! A part of the keys, every time, are those at which structures were found wrong ([`Kind::edges`]): keys that begin
//! others, are longer than 255 bytes, or differ in their last byte from one that is not there.
//!
//! A static structure is made several times, of more and more pairs, and each time asked as much.

use crate::data::{Block, Edge, Kind, Source, mix};
use crate::measure::{self, Facts, Measured};
use crate::subjects::BATCH_KEYS;
use std::collections::BTreeMap;

/// Operations done.
pub(crate) const OPS: u64 = 100_000;
/// Operations done in a smoke run.
pub(crate) const QUICK_OPS: u64 = 20_000;
/// Operations done on each key of a set of few keys, in the mean, and the least in all. Builds without optimization are
/// for tests of the program, which would do little else.
const OPS_OF_KEY: u64 = if cfg!(debug_assertions) { 2 } else { 10 };
const OPS_MIN: u64 = if cfg!(debug_assertions) { 2_000 } else { 10_000 };
/// Keys that they are done on, or all of a set that has fewer; as many are never inserted.
pub(crate) const KEYS: u64 = 10_000;
/// Comparisons of the whole content on the way.
const COMPARISONS: u64 = 5;
/// Scans show fewer pairs than this, some of them one.
const SCAN_PAIRS_END: u64 = 200;
/// One of this many operations is on an edge.
const EDGE_OPS: u64 = 8;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Number of operations for a source of `pairs` pairs, if a large source gets `wanted`.
pub(crate) fn ops(wanted: u64, pairs: u64) -> u64 {
    wanted.min((OPS_OF_KEY * pairs.min(KEYS)).max(OPS_MIN))
}

struct Kit<'a, K: Kind> {
    source: &'a K::Source,
    subject: &'a mut dyn Measured<K>,
    facts: Facts,
    edges: Vec<Edge>,
    model: Model,
    /// Keys that operations are done on.
    keys: u64,
    /// Operations in all, and between two comparisons of the whole content.
    ops: u64,
    stretch: u64,
}

/// Checks an empty subject against a model by `ops` operations, on up to [`KEYS`] pairs of the source. The error names
/// the first difference.
pub(crate) fn check<K: Kind>(
    source: &K::Source,
    subject: &mut dyn Measured<K>,
    ops: u64,
    seed: u64,
) -> Result<(), String> {
    let (facts, keys) = (subject.facts(), KEYS.min(source.len()));
    let (edges, stretch) = (K::edges(), ops.div_ceil(COMPARISONS));
    let mut kit = Kit { source, subject, facts, edges, model: Model::new(), keys, ops, stretch };
    kit.compare_all("empty")?;
    for op in 0..ops {
        let random = mix(seed ^ mix(op));
        kit.step(op, random).map_err(|why| format!("operation {op} (seed {seed}): {why}"))?;
        if op % stretch == stretch - 1 {
            kit.compare_all(&format!("after {} operations (seed {seed})", op + 1))?;
        }
    }
    kit.compare_edges().map_err(|why| format!("after all operations (seed {seed}): {why}"))?;
    kit.compare_erased().map_err(|why| format!("after all operations (seed {seed}): {why}"))?;
    kit.write_together()
}

fn key_vec<K: Kind>(key: K::Key<'_>) -> Vec<u8> {
    K::key_bytes(key).as_ref().to_vec()
}

fn value_vec<K: Kind>(value: K::Value<'_>) -> Vec<u8> {
    K::value_bytes(value).as_ref().to_vec()
}

/// Bytes that print as text where they are text.
#[derive(PartialEq)]
struct Bytes<'a>(&'a [u8]);

impl std::fmt::Debug for Bytes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: T, expected: T) -> Result<(), String> {
    if got == expected { Ok(()) } else { Err(format!("{what}: {got:?} instead of {expected:?}")) }
}

impl<K: Kind> Kit<'_, K> {
    /// Appends a key that may be inserted, or one that never is, chosen at random, with the value numbered `value`.
    fn push(&self, present: bool, random: u64, value: u64, out: &mut K::Block) {
        if random.is_multiple_of(EDGE_OPS) {
            let (key, absent) = &self.edges[(random / EDGE_OPS % self.edges.len() as u64) as usize];
            self.source.push_key(if present { key } else { absent }, value, out);
        } else {
            self.source.push_pair(random % self.keys + if present { 0 } else { self.keys }, value, out);
        }
    }

    fn step(&mut self, op: u64, random: u64) -> Result<(), String> {
        let mut block = K::Block::default();
        // One key in eight is one that is never inserted; values differ from one operation to the next.
        let choice = random >> 32;
        let present = !choice.is_multiple_of(8);
        self.push(present, choice / 8, op, &mut block);
        let (key, value) = (block.key(0), block.value(0));
        let key_bytes = key_vec::<K>(key);
        // What was inserted into a static structure is only there when it is made anew: half of the operations between
        // two comparisons are for the one, half for the other.
        let turn = op % self.stretch;
        let (gathers, shows) = match self.facts.is_static {
            true => (turn < self.stretch / 2, turn >= self.stretch / 2),
            false => (true, true),
        };
        if self.facts.is_static && turn == self.stretch / 2 {
            self.subject.settle_timed();
            self.compare_all("just made")?;
        }
        match random % 16 {
            0..7 if present && gathers => {
                self.subject.insert_one(key, value);
                self.model.insert(key_bytes, value_vec::<K>(value));
                Ok(())
            }
            _ if !shows => Ok(()),
            7..11 if !self.facts.is_static => {
                let removed = self.subject.remove_one(key);
                same("remove", removed, self.model.remove(&key_bytes).is_some())
            }
            11 if self.facts.ordered => self.compare_scan(key, &key_bytes, choice % SCAN_PAIRS_END),
            12 => self.compare_batch(random),
            _ => self.compare_get(key, &key_bytes),
        }
    }

    fn compare_get(&self, key: K::Key<'_>, key_bytes: &[u8]) -> Result<(), String> {
        let (got, expected) = (self.get(key), self.model.get(key_bytes));
        let what = format!("get {}", key_bytes.escape_ascii());
        same(&what, got.as_deref().map(Bytes), expected.map(|value| Bytes(value)))
    }

    /// Inserts every edge, each followed by looks at its neighbour, then looks at all of them.
    fn compare_edges(&mut self) -> Result<(), String> {
        let mut block = K::Block::default();
        for (at, (key, absent)) in self.edges.iter().enumerate() {
            self.source.push_key(key, at as u64, &mut block);
            self.source.push_key(absent, at as u64, &mut block);
        }
        for at in (0..block.len()).step_by(2) {
            self.subject.insert_one(block.key(at), block.value(at));
            self.model.insert(key_vec::<K>(block.key(at)), value_vec::<K>(block.value(at)));
        }
        self.subject.settle_timed();
        for at in 0..block.len() {
            let key = block.key(at);
            self.compare_get(key, &key_vec::<K>(key))?;
            if self.facts.ordered {
                self.compare_scan(key, &key_vec::<K>(key), 50)?;
            }
        }
        self.compare_all("with all edges")?;
        if self.facts.is_static {
            return Ok(());
        }
        // The neighbours first, which must take nothing with them.
        for at in (1..block.len()).step_by(2).chain((0..block.len()).step_by(4)) {
            let removed = self.subject.remove_one(block.key(at));
            same("remove", removed, self.model.remove(&key_vec::<K>(block.key(at))).is_some())?;
        }
        self.compare_all("without half of the edges")
    }

    /// Removes half of the pairs while all are shown.
    fn compare_erased(&mut self) -> Result<(), String> {
        if !self.facts.retains {
            return Ok(());
        }
        let (mut shown, all) = (0, self.model.len());
        self.subject.retain_those(&mut |key, _| {
            shown += 1;
            measure::stays::<K>(key)
        });
        self.model.retain(|key, _| measure::stays::<K>(K::found(key)));
        same("pairs shown while half are erased", shown, all)?;
        self.compare_all("without the half that was erased")
    }

    fn get(&self, key: K::Key<'_>) -> Option<Vec<u8>> {
        let mut got = None;
        self.subject.get_one(key, &mut |value| got = Some(value_vec::<K>(value)));
        got
    }

    fn compare_scan(&self, from: K::Key<'_>, from_bytes: &Vec<u8>, count: u64) -> Result<(), String> {
        let count = count.max(1) as usize;
        let mut got = Vec::new();
        let mut see =
            |key: K::Found<'_>, value: K::Value<'_>| got.push((K::found_bytes(key), value_vec::<K>(value)));
        self.subject.scan_one(from, count, &mut see);
        let expected: Vec<_> = self.model.range::<Vec<u8>, _>(from_bytes..).take(count).collect();
        for (at, (got, expected)) in got.iter().zip(&expected).enumerate() {
            // Formatting long keys is slow, so only a difference is formatted.
            if (&got.0, &got.1) == *expected {
                continue;
            }
            let what = format!("scan from {}, pair {at}", from_bytes.escape_ascii());
            same(&what, (Bytes(&got.0), Bytes(&got.1)), (Bytes(expected.0), Bytes(expected.1)))?;
        }
        same("scan, pairs", got.len(), expected.len())
    }

    fn compare_batch(&self, random: u64) -> Result<(), String> {
        let mut block = K::Block::default();
        let len = 1 + random % BATCH_KEYS as u64;
        for at in 0..len {
            let random = mix(random ^ at);
            self.push(random.is_multiple_of(2), random / 2, 0, &mut block);
        }
        let keys: Vec<_> = (0..block.len()).map(|at| block.key(at)).collect();
        let mut got = vec![None; keys.len()];
        let mut calls = 0;
        self.subject.get_batch(&keys, &mut |at, value| {
            calls += 1;
            got[at] = value.map(|value| value_vec::<K>(value));
        });
        same("multi_get, answers", calls, keys.len())?;
        for (at, key) in keys.iter().enumerate() {
            let expected = self.model.get(&key_vec::<K>(*key)).map(|value| Bytes(value));
            same(&format!("multi_get, answer {at}"), got[at].as_deref().map(Bytes), expected)?;
        }
        Ok(())
    }

    fn content(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut got = Vec::new();
        self.subject.show_all(&mut |key, value| got.push((K::found_bytes(key), value_vec::<K>(value))));
        if !self.facts.ordered {
            got.sort();
        }
        got
    }

    fn compare_all(&self, when: &str) -> Result<(), String> {
        let got = self.content();
        same(&format!("number of pairs {when}"), got.len(), self.model.len())?;
        for (got, (key, value)) in got.iter().zip(&self.model) {
            same(&format!("content {when}"), (Bytes(&got.0), Bytes(&got.1)), (Bytes(key), Bytes(value)))?;
        }
        if self.facts.back {
            let mut back = Vec::new();
            self.subject
                .show_all_back(&mut |key, value| back.push((K::found_bytes(key), value_vec::<K>(value))));
            back.reverse();
            same(&format!("pairs backward {when}, are those forward"), back == got, true)?;
        }
        Ok(())
    }

    /// Two threads write at once: each sets half of the keys and removes a quarter of its own.
    fn write_together(&mut self) -> Result<(), String> {
        if !self.facts.shared {
            return Ok(());
        }
        let subject = &*self.subject;
        let blocks: Vec<_> = (0..2u64)
            .map(|half| {
                let mut block = K::Block::default();
                (0..self.keys)
                    .filter(|at| at % 2 == half)
                    .for_each(|at| self.source.push_pair(at, self.ops + at, &mut block));
                block
            })
            .collect();
        std::thread::scope(|scope| {
            for block in &blocks {
                scope.spawn(move || {
                    for at in 0..block.len() {
                        subject.insert_shared(block.key(at), block.value(at));
                        if at % 4 == 3 {
                            subject.remove_shared(block.key(at - 1));
                        }
                    }
                });
            }
        });
        for block in &blocks {
            for at in 0..block.len() {
                self.model.insert(key_vec::<K>(block.key(at)), value_vec::<K>(block.value(at)));
                if at % 4 == 3 {
                    self.model.remove(&key_vec::<K>(block.key(at - 1)));
                }
            }
        }
        self.compare_all("after two threads wrote")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Strings, Text, U64, Walk, receive_paths};
    use crate::subjects::{Pages, RbTree, Reader, Subject, Writer};

    /// A subject that forgets: values are never replaced.
    struct Forgetful(RbTree<U64>);

    impl Subject<U64> for Forgetful {
        type Reader<'a> = &'a RbTree<U64>;
        type Writer<'a> = FirstOnly<'a>;

        fn build(pages: Pages) -> Result<Self, String> {
            RbTree::build(pages).map(Forgetful)
        }

        fn reader(&self) -> &RbTree<U64> {
            &self.0
        }

        fn writer(&mut self) -> FirstOnly<'_> {
            FirstOnly(&mut self.0)
        }
    }

    struct FirstOnly<'a>(&'a mut RbTree<U64>);

    impl Writer<U64> for FirstOnly<'_> {
        fn insert(&mut self, key: u64, value: u64) {
            if (&*self.0).get(key, |_| ()).is_none() {
                self.0.writer().insert(key, value);
            }
        }

        fn remove(&mut self, key: u64) -> bool {
            self.0.writer().remove(key)
        }
    }

    /// A map of byte strings that looks at only a part of each key, a bug that real structures had.
    struct Careless {
        content: Model,
        part: fn(&[u8]) -> &[u8],
        /// Whether a lookup of an absent key returns the longest present key that is a prefix of it.
        prefixes: bool,
        /// Pairs that a walk backward leaves out.
        left_out: usize,
    }

    impl Careless {
        fn new(part: fn(&[u8]) -> &[u8], prefixes: bool) -> Self {
            Careless { content: Model::new(), part, prefixes, left_out: 0 }
        }

        fn find(&self, key: &[u8]) -> Option<&Vec<u8>> {
            let key = (self.part)(key);
            let begins = || (1..key.len()).rev().find_map(|len| self.content.get(&key[..len]));
            self.content.get(key).or_else(|| if self.prefixes { begins() } else { None })
        }
    }

    impl Subject<Strings> for Careless {
        const BACK: bool = true;
        crate::subjects::by_itself!(Careless::new(|key| key, false));
    }

    impl Reader<Strings> for &Careless {
        fn get<R>(&self, key: Text<'_>, see: impl FnOnce(&[u8]) -> R) -> Option<R> {
            self.find(key.bytes()).map(|value| see(value))
        }

        fn scan(&self, from: Text<'_>, count: usize, mut see: impl FnMut(&[u8], &[u8])) {
            let range = self.content.range((self.part)(from.bytes()).to_vec()..);
            range.take(count).for_each(|(key, value)| see(key, value));
        }

        fn iterate(&self, mut see: impl FnMut(&[u8], &[u8])) {
            self.content.iter().for_each(|(key, value)| see(key, value));
        }

        fn iterate_back(&self, mut see: impl FnMut(&[u8], &[u8])) {
            self.content.iter().rev().skip(self.left_out).for_each(|(key, value)| see(key, value));
        }
    }

    impl Writer<Strings> for &mut Careless {
        fn insert(&mut self, key: Text<'_>, value: &[u8]) {
            self.content.insert((self.part)(key.bytes()).to_vec(), value.to_vec());
        }

        fn remove(&mut self, key: Text<'_>) -> bool {
            self.content.remove((self.part)(key.bytes())).is_some()
        }
    }

    /// Paths of which none ends, begins another, or is long, where a careless structure goes wrong.
    fn harmless_paths() -> Walk {
        let mut bytes = 40_000u64.to_le_bytes().to_vec();
        for at in 0..40_000 {
            let path = format!("{at:08}/");
            bytes.extend((path.len() as u32).to_le_bytes());
            bytes.extend(path.as_bytes());
        }
        receive_paths(&mut bytes.as_slice()).unwrap()
    }

    #[test]
    fn the_ancestors_faults_are_found_whatever_the_data() {
        let source = Strings::source(KEYS, 5, harmless_paths());
        let check =
            |part, prefixes| check::<Strings>(&source, &mut Careless::new(part, prefixes), QUICK_OPS, 5);
        check(|key| key, false).unwrap();
        // Its cuckoo table dropped the last byte of each key, its trie all beyond the 255th.
        check(|key| &key[..key.len() - 1], false).unwrap_err();
        check(|key| &key[..key.len().min(255)], false).unwrap_err();
        check(|key| key, true).unwrap_err();
        let mut back = Careless { left_out: 1, ..Careless::new(|key| key, false) };
        let why = super::check::<Strings>(&source, &mut back, QUICK_OPS, 5).unwrap_err();
        assert!(why.contains("backward"), "{why}");
    }

    /// A static structure that is not made again when more has come.
    struct Stale(crate::subjects::sorted::Map<u64, u64>, bool);

    impl Subject<U64> for Stale {
        const STATIC: bool = true;
        type Reader<'a> = &'a crate::subjects::sorted::Map<u64, u64>;
        type Writer<'a> = &'a mut crate::subjects::sorted::Map<u64, u64>;

        fn build(pages: Pages) -> Result<Self, String> {
            Ok(Stale(Subject::<U64>::build(pages)?, false))
        }

        fn reader(&self) -> Self::Reader<'_> {
            &self.0
        }

        fn writer(&mut self) -> Self::Writer<'_> {
            &mut self.0
        }

        fn settle(&mut self) {
            if !std::mem::replace(&mut self.1, true) {
                Subject::<U64>::settle(&mut self.0);
            }
        }
    }

    #[test]
    fn static_structures_are_checked_too() {
        let source = U64::source(KEYS, 5, Walk::default());
        let mut right: crate::subjects::sorted::Map<u64, u64> = Subject::<U64>::build(Pages::Auto).unwrap();
        check::<U64>(&source, &mut right, OPS, 5).unwrap();
        check::<U64>(&source, &mut Stale::build(Pages::Auto).unwrap(), OPS, 5).unwrap_err();
    }

    #[test]
    fn tells_right_from_wrong() {
        let source = U64::source(KEYS, 5, Walk::default());
        check::<U64>(&source, &mut RbTree::<U64>::build(Pages::Auto).unwrap(), OPS, 5).unwrap();
        let why = check::<U64>(&source, &mut Forgetful::build(Pages::Auto).unwrap(), OPS, 5).unwrap_err();
        assert!(why.contains("seed 5") && why.contains("instead of"), "{why}");
    }
}
