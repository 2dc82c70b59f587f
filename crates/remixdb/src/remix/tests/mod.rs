//! A REMIX compared with a map of all keys: random runs of every shape, queried in every way.

mod builds;
mod file;
mod measure;
mod reads;

use super::*;
use forrest_base::random::Random;
use forrest_engine::Result;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Counts of reads, for the runs that share it.
#[derive(Default)]
struct Asked {
    compared: Cell<usize>,
    read: Cell<usize>,
}

/// A run in memory.
#[derive(Clone, Default)]
struct VecRun {
    entries: Rc<Vec<(Vec<u8>, bool)>>,
    /// Whether some values count as values in logs.
    large: bool,
    asked: Rc<Asked>,
}

impl Run for VecRun {
    fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    fn compare(&mut self, ordinal: u32, key: &[u8]) -> Result<Ordering> {
        self.asked.compared.set(self.asked.compared.get() + 1);
        Ok(self.entries[ordinal as usize].0[..].cmp(key))
    }

    fn key_into(&mut self, ordinal: u32, into: &mut Vec<u8>) -> Result<()> {
        self.asked.read.set(self.asked.read.get() + 1);
        into.clear();
        into.extend_from_slice(&self.entries[ordinal as usize].0);
        Ok(())
    }

    fn is_tombstone(&mut self, ordinal: u32) -> Result<bool> {
        Ok(self.entries[ordinal as usize].1)
    }

    fn has_large(&self) -> bool {
        (0..self.len()).any(|ordinal| self.large(ordinal) > 0)
    }

    fn large_bytes(&mut self, ordinal: u32) -> Result<u64> {
        Ok(self.large(ordinal))
    }
}

impl VecRun {
    /// The bytes of an entry's value in a log: every third key has some there.
    fn large(&self, ordinal: u32) -> u64 {
        let (key, tombstone) = &self.entries[ordinal as usize];
        let is_third = key.iter().map(|&byte| u32::from(byte)).sum::<u32>() % 3 == 2;
        if self.large && is_third && !tombstone { 100 + u64::from(ordinal) } else { 0 }
    }
}

/// Runs, and the newest version of each key.
struct World {
    runs: Vec<VecRun>,
    newest: BTreeMap<Vec<u8>, RunEntry>,
    asked: Rc<Asked>,
}

impl World {
    /// A world of keys and whether they are tombstones, run by run, the oldest first.
    fn new(contents: Vec<BTreeMap<Vec<u8>, bool>>) -> World {
        let asked = Rc::new(Asked::default());
        let mut newest = BTreeMap::new();
        let mut runs = Vec::new();
        for (run, content) in contents.into_iter().enumerate() {
            for (ordinal, (key, &tombstone)) in content.iter().enumerate() {
                newest.insert(key.clone(), RunEntry { run, ordinal: ordinal as u32, tombstone });
            }
            let entries = Rc::new(content.into_iter().collect());
            runs.push(VecRun { entries, large: true, asked: asked.clone() });
        }
        World { runs, newest, asked }
    }

    /// The same without values in logs.
    fn without_large(mut self) -> World {
        self.runs.iter_mut().for_each(|run| run.large = false);
        self
    }

    /// A world of a seed: any number of runs, keys of a shape, with more or less overlap.
    fn random(seed: u64) -> World {
        let random = &mut Random(seed);
        let count = [1, 2, 3, 1 + random.index(8), 1 + random.index(31), 31][random.index(6)];
        let shape = random.index(6);
        let sizes = [3, 40, 300, 1500][random.index(4)];
        let space = [5, 50, 400, 5000][random.index(4)];
        let tombstones = [0, 1, 5][random.index(3)];
        let contents = (0..count).map(|_| {
            let size = if random.index(6) == 0 { 0 } else { 1 + random.index(sizes) };
            (0..size).map(|_| (key(random, shape, space), random.index(10) < tombstones)).collect()
        });
        World::new(contents.collect())
    }

    /// The `count` oldest runs.
    fn older(&self, count: usize) -> Vec<VecRun> {
        self.runs[..count].to_vec()
    }

    /// What a cursor sees.
    fn visible(&self, show: Show) -> Vec<(&[u8], RunEntry)> {
        let seen = |entry: &RunEntry| show == Show::Tombstones || !entry.tombstone;
        self.newest.iter().filter(|(_, entry)| seen(entry)).map(|(key, entry)| (&key[..], *entry)).collect()
    }

    /// Keys that are there, and beside each of them keys that are not.
    fn probes(&self) -> BTreeSet<Vec<u8>> {
        let mut probes = BTreeSet::from([vec![], vec![0], vec![0xFF; 20]]);
        let every = self.newest.len() / 500 + 1;
        for key in self.newest.keys().step_by(every) {
            probes.insert(key.clone());
            probes.insert([&key[..], &[0]].concat());
            probes.insert(key[..key.len() / 2].to_vec());
            if let Some((last, rest)) = key.split_last() {
                probes.insert([rest, &[last.wrapping_sub(1)]].concat());
                probes.insert([rest, &[last.wrapping_add(1)]].concat());
                probes.insert(rest.to_vec());
            }
        }
        probes
    }

    fn build(&self, tags: bool) -> Remix {
        build(&mut self.older(self.runs.len()), tags).unwrap()
    }

    fn cursor<'a>(&self, remix: &'a Remix, show: Show) -> RemixCursor<&'a Remix, VecRun> {
        RemixCursor::new(remix, self.runs.clone(), show)
    }

    /// How many comparisons `f` makes.
    fn compared<T>(&self, f: impl FnOnce() -> T) -> (usize, T) {
        let before = self.asked.compared.get();
        let result = f();
        (self.asked.compared.get() - before, result)
    }
}

/// The newest version of a key.
fn get<R: Run>(remix: &Remix, runs: &mut [R], key: &[u8]) -> Result<Option<RunEntry>> {
    remix.get(remix.find(key), key, |entry| runs[entry.run].compare(entry.ordinal, key))
}

/// A key of a shape, out of about `space`.
fn key(random: &mut Random, shape: usize, space: usize) -> Vec<u8> {
    let number = random.index(space) as u64;
    match shape {
        // Numbers.
        0 => number.to_be_bytes().to_vec(),
        // Hardly any different bytes, and the empty key: heads that are equal except for their zeros.
        1 => (0..random.index(12)).map(|_| [0, 1, 0xFF][random.index(3)]).collect(),
        // Evenly distributed.
        2 => [Random(number).next().to_be_bytes(), Random(!number).next().to_be_bytes()].concat(),
        // Long common prefixes.
        3 => format!("https://example.org/a/long/way/{number}/{}", "x".repeat(random.index(3))).into_bytes(),
        // Long keys that differ only after the heads.
        4 => [&vec![b'k'; 700 + random.index(2)][..], &number.to_be_bytes()].concat(),
        // The same eight bytes over and over, so that whole anchors decide.
        _ => [&[number as u8 % 3 * 7, 1, 2, 3, 4, 5, 6, 7, 8][..], &number.to_be_bytes()].concat(),
    }
}
