//! The conformance kit: every adapter passes it before it may be timed. A hundred thousand random operations
//! are done on the subject and on a `BTreeMap`, and every answer is compared: insertion over an old value,
//! removal, gets that hit and miss, batches, scans, and the whole content in order; then two threads write
//! at once where the subject allows it. The seed replays it.

use crate::data::{Block, Kind, Source, mix};
use crate::measure::{Facts, Measured};
use crate::subjects::BATCH_KEYS;
use std::collections::BTreeMap;

/// Operations done.
pub(crate) const OPS: u64 = 100_000;
/// Keys that they are done on; as many are never inserted.
pub(crate) const KEYS: u64 = 10_000;
/// Operations between two comparisons of the whole content.
const COMPARE_OPS: u64 = 20_000;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

struct Kit<'a, K: Kind> {
    source: &'a K::Source,
    subject: &'a mut dyn Measured<K>,
    facts: Facts,
    model: Model,
}

/// Checks a subject, which must be empty, on a source of [`KEYS`] pairs. The error says what was wrong.
pub(crate) fn check<K: Kind>(
    source: &K::Source,
    subject: &mut dyn Measured<K>,
    seed: u64,
) -> Result<(), String> {
    let facts = subject.facts();
    let mut kit = Kit { source, subject, facts, model: Model::new() };
    kit.compare_all("empty")?;
    for op in 0..OPS {
        let random = mix(seed ^ mix(op));
        kit.step(op, random).map_err(|why| format!("operation {op} (seed {seed}): {why}"))?;
        if op % COMPARE_OPS == COMPARE_OPS - 1 {
            kit.compare_all(&format!("after {} operations (seed {seed})", op + 1))?;
        }
    }
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
    fn step(&mut self, op: u64, random: u64) -> Result<(), String> {
        let mut block = K::Block::default();
        // One key in eight is one that is never inserted; values differ from one operation to the next.
        let choice = random >> 32;
        let number = if choice.is_multiple_of(8) { KEYS + choice % KEYS } else { choice % KEYS };
        self.source.push_pair(number, op, &mut block);
        let (key, value) = (block.key(0), block.value(0));
        let (key_bytes, present) = (key_vec::<K>(key), number < KEYS);
        match random % 16 {
            0..7 if present => {
                self.subject.insert_one(key, value);
                self.model.insert(key_bytes, value_vec::<K>(value));
                Ok(())
            }
            7..11 => {
                let removed = self.subject.remove_one(key);
                same("remove", removed, self.model.remove(&key_bytes).is_some())
            }
            11 if self.facts.ordered => self.compare_scan(key, &key_bytes),
            12 => self.compare_batch(random),
            _ => {
                let got = self.get(key);
                same("get", got.as_deref().map(Bytes), self.model.get(&key_bytes).map(|value| Bytes(value)))
            }
        }
    }

    fn get(&self, key: K::Key<'_>) -> Option<Vec<u8>> {
        let mut got = None;
        self.subject.get_one(key, &mut |value| got = Some(value_vec::<K>(value)));
        got
    }

    fn compare_scan(&self, from: K::Key<'_>, from_bytes: &Vec<u8>) -> Result<(), String> {
        let mut got = Vec::new();
        let mut see =
            |key: K::Found<'_>, value: K::Value<'_>| got.push((K::found_bytes(key), value_vec::<K>(value)));
        self.subject.scan_one(from, 50, &mut see);
        let expected: Vec<_> = self.model.range::<Vec<u8>, _>(from_bytes..).take(50).collect();
        for (at, (got, expected)) in got.iter().zip(&expected).enumerate() {
            let what = format!("scan from {}, pair {at}", from_bytes.escape_ascii());
            same(&what, (Bytes(&got.0), Bytes(&got.1)), (Bytes(expected.0), Bytes(expected.1)))?;
        }
        same("scan, pairs", got.len(), expected.len())
    }

    fn compare_batch(&self, random: u64) -> Result<(), String> {
        let mut block = K::Block::default();
        let len = 1 + random % BATCH_KEYS as u64;
        (0..len).for_each(|at| self.source.push(mix(random ^ at) % (2 * KEYS), &mut block));
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
                (0..KEYS)
                    .filter(|at| at % 2 == half)
                    .for_each(|at| self.source.push_pair(at, OPS + at, &mut block));
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
    use crate::data::{U64, Walk};
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

    #[test]
    fn tells_right_from_wrong() {
        let source = U64::source(KEYS, 5, Walk::default());
        check::<U64>(&source, &mut RbTree::<U64>::build(Pages::Auto).unwrap(), 5).unwrap();
        let why = check::<U64>(&source, &mut Forgetful::build(Pages::Auto).unwrap(), 5).unwrap_err();
        assert!(why.contains("seed 5") && why.contains("instead of"), "{why}");
    }
}
