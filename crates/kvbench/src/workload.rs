//! Operations of several sorts on one structure, decided beforehand and laid out in memory in the order in which they
//! are done: mixes of reads and writes, and YCSB's workloads A to F (Cooper and others: "Benchmarking cloud serving
//! systems with YCSB", 2010).
//!
//! A model of the last writes gives the expected result of every read. For scans it does not; there the subjects must
//! agree with each other.

use crate::data::{Block, Choice, Distribution, Kind, Random, Source, mix};
use std::collections::HashMap;

/// Longest scan of a mix; all lengths from 1 on are as frequent.
const SCAN_PAIRS_MAX: u64 = 100;
/// Values numbered from here on are in no data set.
const WRITTEN: u64 = 1 << 40;

/// An operation on a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    /// Its value is read.
    Get,
    /// Its value is set, whether or not the key is present.
    Put,
    /// This number of pairs from the key on are read.
    Scan(u8),
    /// Its value is read, then replaced.
    Modify,
}

impl Op {
    /// The sorts, by [`Op::sort`], as figures are named.
    pub(crate) const SORTS: [&str; 4] = ["read", "write", "scan", "modify"];

    /// Which sort it is.
    pub(crate) fn sort(self) -> usize {
        match self {
            Op::Get => 0,
            Op::Put => 1,
            Op::Scan(_) => 2,
            Op::Modify => 3,
        }
    }
}

/// The shares of operations. The rest up to 100 % are updates.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mix {
    /// The step, as figures are named.
    pub(crate) name: String,
    /// Percent of gets.
    pub(crate) gets: u8,
    /// Percent of insertions of keys that are not there yet.
    pub(crate) inserts: u8,
    /// Percent of scans.
    pub(crate) scans: u8,
    /// Percent of reads that are followed by a write of the same key.
    pub(crate) modifies: u8,
    /// Which keys.
    pub(crate) distribution: Distribution,
}

impl Mix {
    /// Gets, and updates for the rest.
    pub(crate) fn of(name: impl Into<String>, gets: u8, distribution: Distribution) -> Self {
        Mix { name: name.into(), gets, inserts: 0, scans: 0, modifies: 0, distribution }
    }

    /// YCSB's workloads, in the order in which they may follow one another.
    pub(crate) fn ycsb() -> [Mix; 6] {
        let zipfian = |name, gets| Mix::of(name, gets, Distribution::ZIPFIAN);
        [
            zipfian("ycsb_a", 50),
            zipfian("ycsb_b", 95),
            zipfian("ycsb_c", 100),
            Mix { modifies: 50, ..zipfian("ycsb_f", 50) },
            Mix { inserts: 5, ..Mix::of("ycsb_d", 95, Distribution::LATEST) },
            Mix { scans: 95, inserts: 5, ..zipfian("ycsb_e", 0) },
        ]
    }

    /// Whether anything is written.
    pub(crate) fn writes(&self) -> bool {
        self.gets + self.scans < 100
    }

    /// Which sorts of operations there are, by [`Op::sort`].
    pub(crate) fn sorts(&self) -> [bool; Op::SORTS.len()] {
        let writes = 100 - self.gets - self.scans - self.modifies;
        [self.gets, writes, self.scans, self.modifies].map(|percent| percent > 0)
    }

    /// Whether there are operations of several sorts.
    pub(crate) fn has_sorts(&self) -> bool {
        self.sorts().into_iter().filter(|there| *there).count() > 1
    }

    /// The operation of a number below 100, and whether its key is to be a new one.
    pub(crate) fn op(&self, number: u64, random: &mut Random) -> (Op, bool) {
        let ends = [self.gets, self.inserts, self.scans, self.modifies].map(u64::from);
        let mut end = 0;
        let sort = ends.iter().position(|share| {
            end += share;
            number < end
        });
        match sort {
            Some(0) => (Op::Get, false),
            Some(1) => (Op::Put, true),
            Some(2) => (Op::Scan(1 + random.below(SCAN_PAIRS_MAX) as u8), false),
            Some(_) => (Op::Modify, false),
            None => (Op::Put, false),
        }
    }
}

/// Operations, laid out.
pub(crate) struct Operations<K: Kind> {
    /// The operations.
    pub(crate) ops: Vec<Op>,
    /// Their keys; the value is the one to write, or the expected result of a get.
    pub(crate) block: K::Block,
    /// The sum of what must be read; `None` if there are scans.
    pub(crate) expected: Option<u64>,
}

/// The changes to a structure since its data set was loaded.
#[derive(Debug, Default)]
pub(crate) struct Model {
    /// The number of the value that was written last, by the key's.
    values: HashMap<u64, u64>,
    /// Writes so far.
    writes: u64,
    /// Keys inserted after those of the data set.
    inserted: u64,
}

impl Model {
    /// Decides and lays out the next operations of a mix.
    pub(crate) fn lay_out<K: Kind>(
        &mut self,
        source: &K::Source,
        mix_of: &Mix,
        count: u64,
        seed: u64,
    ) -> Operations<K> {
        // What was inserted is asked for as well.
        let choice = Choice::new(mix_of.distribution, source.len() + self.inserted, seed);
        let mut ops = Vec::with_capacity(count as usize);
        let (mut block, mut read) = (K::Block::default(), K::Block::default());
        let mut sum = Some(0u64);
        for at in 0..count {
            let mut random = Random::new(mix(seed ^ mix(at)));
            let number = random.below(100);
            let (op, new) = mix_of.op(number, &mut random);
            let there = source.len() + self.inserted;
            // Where all keys are there, one of them gets a value.
            let new = new && there < source.keys_max();
            let key = if new { there } else { choice.pick_of(at, there) };
            let last = self.values.get(&key).copied().unwrap_or(key);
            match op {
                Op::Get | Op::Modify => {
                    read.clear();
                    source.push_pair(key, last, &mut read);
                    sum = sum.map(|sum| sum.wrapping_add(K::fold_value(read.value(0))));
                }
                Op::Scan(_) => sum = None,
                Op::Put => {}
            }
            let value = match op {
                Op::Get | Op::Scan(_) => last,
                Op::Put | Op::Modify => {
                    self.writes += 1;
                    self.values.insert(key, WRITTEN + self.writes);
                    WRITTEN + self.writes
                }
            };
            self.inserted += u64::from(new);
            source.push_pair(key, value, &mut block);
            ops.push(op);
        }
        Operations { ops, block, expected: sum }
    }

    /// All pairs that were written, as they are to be found.
    pub(crate) fn written<K: Kind>(&self, source: &K::Source) -> K::Block {
        let mut block = K::Block::default();
        self.values.iter().for_each(|(key, value)| source.push_pair(*key, *value, &mut block));
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{U64, Walk};
    use std::collections::{BTreeMap, HashSet};

    const KEYS: u64 = 1000;
    const OPS: u64 = 20_000;

    /// Runs operations on a map with the data set, and counts them by sort, and the insertions.
    fn replay(map: &mut BTreeMap<u64, u64>, work: &Operations<U64>) -> ([usize; 4], usize) {
        let (mut sorts, mut inserted, mut sum) = ([0; 4], 0, 0u64);
        for (at, op) in work.ops.iter().enumerate() {
            let (key, value) = (work.block.key(at), work.block.value(at));
            sorts[op.sort()] += 1;
            match op {
                Op::Get => {
                    assert_eq!(map.get(&key), Some(&value));
                    sum = sum.wrapping_add(value);
                }
                Op::Put => inserted += usize::from(map.insert(key, value).is_none()),
                Op::Scan(pairs) => assert!(map.contains_key(&key) && (1..=100).contains(pairs)),
                Op::Modify => sum = sum.wrapping_add(map.insert(key, value).unwrap()),
            }
        }
        assert_eq!(work.expected, (sorts[2] == 0).then_some(sum));
        (sorts, inserted)
    }

    #[test]
    fn mixes_have_their_shares_and_the_model_knows_every_answer() {
        let source = U64::source(KEYS, 7, Walk::default());
        let all = crate::data::block_of::<U64>(&source, 0..KEYS);
        let mut map: BTreeMap<_, _> = (0..all.len()).map(|at| (all.key(at), all.value(at))).collect();
        let mut model = Model::default();
        // Percent of reads, writes, scans and modifications, and of insertions among the writes.
        let wanted = [
            ([50, 50, 0, 0], 0),
            ([95, 5, 0, 0], 0),
            ([100, 0, 0, 0], 0),
            ([50, 0, 0, 50], 0),
            ([95, 5, 0, 0], 5),
            ([0, 5, 95, 0], 5),
            ([30, 70, 0, 0], 0),
        ];
        let mixes = Mix::ycsb().into_iter().chain([Mix::of("mixed_30", 30, Distribution::Uniform)]);
        for (at, (mix, (shares, inserts))) in mixes.zip(wanted).enumerate() {
            let work = model.lay_out::<U64>(&source, &mix, OPS, at as u64);
            let (sorts, inserted) = replay(&mut map, &work);
            let near = |count: usize, percent: usize| {
                count.abs_diff(OPS as usize * percent / 100) < 300 && (count > 0) == (percent > 0)
            };
            assert!(sorts.iter().zip(shares).all(|(count, share)| near(*count, share)), "{mix:?} {sorts:?}");
            assert!(near(inserted, inserts), "{mix:?} {inserted}");
            assert_eq!(mix.writes(), sorts[1] + sorts[3] > 0);
        }
        let written = model.written::<U64>(&source);
        let keys: HashSet<_> = (0..written.len()).map(|at| written.key(at)).collect();
        assert!(keys.len() == written.len() && keys.len() > KEYS as usize);
        assert!((0..written.len()).all(|at| map[&written.key(at)] == written.value(at)));
    }

    #[test]
    fn what_is_asked_for_follows_the_distribution() {
        let source = U64::source(KEYS, 7, Walk::default());
        let most = |mix: &Mix| {
            let work = Model::default().lay_out::<U64>(&source, mix, OPS, 3);
            let mut counts: HashMap<u64, u64> = HashMap::new();
            (0..OPS as usize).for_each(|at| *counts.entry(work.block.key(at)).or_default() += 1);
            counts.into_values().max().unwrap_or(0)
        };
        let [a, .., d, _] = Mix::ycsb();
        // In a, 1 of zeta(1000, 0.99) operations goes to the most frequent key. In d the newest key keeps changing.
        assert!((2400..3000).contains(&most(&a)), "{}", most(&a));
        assert!(most(&d) < 300, "{}", most(&d));
        assert_eq!(most(&Mix::of("mixed_50", 50, Distribution::Uniform)), OPS / KEYS);
    }
}
