//! Shared by the gates: random work on a store, and the states that it goes through.
//!
//! The work is a list of steps, made from a seed. A map goes through the same steps as the store. Its state
//! after each step is kept, so that any later content of the store can be searched among them.

use crate::backup::Progress;
use crate::catalog::Space;
use crate::core::Handle;
use crate::disk::Sealed;
use crate::disk::simulated::Simulated;
use crate::ingest::Ingest;
use crate::salvage::{self, Salvaged};
use forrest_base::random::Random;
use forrest_engine::options::LARGE_VALUES_LEAST;
use forrest_engine::{
    Compression, Durability, EncryptionKey, Expires, Filled, Filter, Ingest as _, Op, Options, Outcome,
    Pages, Result, Swap, Verdict, View as _,
};
use forrest_index::Direction;
use forrest_testing::{number, sized};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow, Range};
use std::sync::Arc;
use std::time::Duration;

pub(super) type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;
/// Keyspaces by name.
pub(super) type Content = BTreeMap<String, Pairs>;

/// More pairs than any workload makes in a keyspace.
const PAIRS_MAX: usize = 1024;

/// A step of the work.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Set(&'static str, u8, usize),
    /// A value that has expired, or one that never does in these tests.
    SetUntil(&'static str, u8, usize, bool),
    Delete(&'static str, u8),
    /// Appends to a value.
    Merge(&'static str, u8, usize),
    /// A batch that appends to two values, sets the second one, and appends to both again.
    Merges(&'static str, u8, u8),
    Add(&'static str, i64),
    Batch(Vec<(&'static str, u8, Option<usize>)>),
    DeleteRange(&'static str, u8, u8),
    /// A batch that sets a key if a range has the pairs that it has, or if it has another one, which it has not.
    Guard(&'static str, (u8, u8), bool, u8, usize),
    /// A compare-and-swap that expects what a key has, or what it has not, to a value or to none.
    Swap(&'static str, u8, bool, Option<usize>),
    /// A batch that sets keys, deletes a range, and sets some of its keys again.
    Replace(&'static str, u8, u8),
    /// An ingest of ascending keys; the steps are made before the end of it.
    Ingest(&'static str, Vec<u8>, usize, Vec<Step>),
    Drop(&'static str),
    /// The compression of a keyspace from now on.
    Compress(&'static str, Compression),
    /// Whether the values that a keyspace gets from now on expire, long after the test.
    Live(&'static str, bool),
    Sync,
    /// Background work.
    Work,
    /// All of it, including the content of memory.
    Flush,
    Compact,
}

/// The seeds of the workloads that a gate runs: by the size of the tests, or FORREST_GATE_SEEDS, or only
/// FORREST_GATE_SEED.
pub(super) fn seeds(quick: u64, full: u64) -> Range<u64> {
    match number("FORREST_GATE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("FORREST_GATE_SEEDS").unwrap_or(sized(quick, full)),
    }
}

/// Maximum length of the sequences that are all tried: by the size of the tests, or FORREST_GATE_LENGTH.
pub(super) fn lengths(quick: usize, full: usize) -> usize {
    number("FORREST_GATE_LENGTH").unwrap_or(sized(quick, full))
}

thread_local! {
    static KEY: RefCell<Option<EncryptionKey>> = const { RefCell::new(None) };
    /// Whether this thread's stores leave values in the log, and its work has such values.
    static LARGE: Cell<bool> = const { Cell::new(false) };
    /// Whether its keyspaces have a merge operator, and its work merges.
    static MERGES: Cell<bool> = const { Cell::new(false) };
    /// Whether its stores have the filter [`decide`].
    static FILTERED: Cell<bool> = const { Cell::new(false) };
    /// Whether its work has all operations.
    static ALL: Cell<bool> = const { Cell::new(false) };
}

/// Runs a gate on encrypted stores.
#[cfg(feature = "encryption")]
pub(super) fn encrypted<R>(run: impl FnOnce() -> R) -> R {
    KEY.set(Some(EncryptionKey::from_bytes([0x5A; 32])));
    let result = run();
    KEY.set(None);
    result
}

/// Runs a gate on stores that leave values in the log.
pub(super) fn with_large<R>(run: impl FnOnce() -> R) -> R {
    LARGE.set(true);
    let result = run();
    LARGE.set(false);
    result
}

/// Runs a gate on keyspaces with the merge operator `append`, with merges.
pub(super) fn with_merges<R>(run: impl FnOnce() -> R) -> R {
    MERGES.set(true);
    let result = run();
    MERGES.set(false);
    result
}

/// Runs a gate on stores with a compaction filter. Their work has only changes that do not depend on values: they would
/// depend on how far the filter has come.
pub(super) fn with_filter<R>(run: impl FnOnce() -> R) -> R {
    FILTERED.set(true);
    let result = run();
    FILTERED.set(false);
    result
}

/// The filter drops some values, and replaces some by others, which it keeps.
fn decide(_space: &str, _key: &[u8], value: &[u8]) -> Verdict {
    match (value, value.len() % 4) {
        (_, 0) => Verdict::Drop,
        // It tells which value it was.
        ([first, ..], 1) => Verdict::Replace(vec![b'=', *first, (value.len() / 4) as u8]),
        _ => Verdict::Keep,
    }
}

/// The content with the filter applied to all of it, if this thread's stores have one.
pub(super) fn filtered(content: &Content) -> Content {
    let mut content = content.clone();
    if FILTERED.get() {
        for (name, pairs) in &mut content {
            pairs.retain(|key, value| match decide(name, key, value) {
                Verdict::Drop => false,
                Verdict::Replace(new) => {
                    *value = new;
                    true
                }
                _ => true,
            });
        }
    }
    content
}

/// Whether the content is one of these states, each of whose values the filter may have decided about.
pub(super) fn is_one_of(content: &Content, states: &[Content]) -> bool {
    if !FILTERED.get() {
        return states.contains(content);
    }
    let is = |state: &Content| {
        let all = filtered(state);
        let is_pair = |name: &String, key: &Vec<u8>| {
            let found = content[name].get(key);
            found == state[name].get(key) || found == all[name].get(key)
        };
        let keys = |name: &String| content[name].keys().chain(state[name].keys());
        content.keys().eq(state.keys()) && content.keys().all(|name| keys(name).all(|key| is_pair(name, key)))
    };
    states.iter().any(is)
}

/// Runs a gate with all operations; merges only within [`with_merges`].
pub(super) fn with_all<R>(run: impl FnOnce() -> R) -> R {
    ALL.set(true);
    let result = run();
    ALL.set(false);
    result
}

/// Whether this thread's work has all operations.
pub(super) fn are_all() -> bool {
    ALL.get()
}

/// Whether this thread's work merges.
pub(super) fn are_merges() -> bool {
    MERGES.get()
}

pub(super) fn options(durability: Durability) -> Options {
    // Small enough that everything happens: memtables become immutable, tables are merged and cut, and merged
    // in pieces.
    Options {
        pages: Pages::Plain,
        durability: Some(durability),
        memtable_bytes: 600,
        batch_bytes_max: 1 << 20,
        cache_bytes: 1,
        table_bytes: 1 << 10,
        workers: Some(3),
        encryption_key: KEY.with_borrow(Clone::clone),
        large_values: if LARGE.get() { LARGE_VALUES_LEAST } else { 0 },
        filter: FILTERED.get().then(|| Filter::new(decide)),
        ..Options::default()
    }
}

/// The same; with each second seed, memory is so short that all orders over tables stay in their files.
pub(super) fn options_of(seed: u64, durability: Durability) -> Options {
    // Batches have to fit.
    let least = if LARGE.get() { 16 << 10 } else { 4096 };
    Options { memory_bytes: (seed % 2 == 1).then_some(least), ..options(durability) }
}

fn key(number: u8) -> Vec<u8> {
    vec![b'k', number]
}

fn value(number: u8, len: usize) -> Vec<u8> {
    if len >= LONG && number.is_multiple_of(2) {
        // What no method makes smaller.
        let mut random = Random(number.into());
        return (0..len).map(|_| random.next() as u8).collect();
    }
    (0..len).map(|at| number ^ at as u8).collect()
}

/// What a [`Step::Replace`] sets before its range delete and after it: some keys on both sides of its end.
fn replaced(start: u8, end: u8) -> [impl Iterator<Item = u8>; 2] {
    let some = move |parts: u8| {
        let numbers = start.min(end)..end.saturating_add(3);
        numbers.step_by(usize::from(parts) + 3)
    };
    [some(0), some(1)]
}

/// Values with this number of bytes or more come only with compression.
const LONG: usize = 1 << 10;

/// Compressed and plain tables, of several chunks: the work of another seed with longer values.
pub(super) fn packed_steps(seed: u64, count: usize) -> Vec<Step> {
    let mut random = Random(seed ^ 30);
    let mut made = vec![Step::Compress("default", Compression::Lz4)];
    for mut step in ingest_steps(seed, count) {
        lengthen(&mut step);
        made.push(step);
        if random.below(6) == 0 {
            let space = if random.below(3) == 0 { "other" } else { "default" };
            let method = if random.below(3) == 0 { Compression::None } else { Compression::Lz4 };
            made.push(Step::Compress(space, method));
        }
    }
    made
}

/// Other work with values that expire: some have, and others are there to the end.
pub(super) fn expiring(seed: u64, work: Vec<Step>) -> Vec<Step> {
    let mut random = Random(seed ^ 40);
    let mut made = Vec::new();
    for step in work {
        made.push(match step {
            Step::Set(space, number, len) if random.below(2) == 0 => {
                Step::SetUntil(space, number, len, random.below(3) == 0)
            }
            step => step,
        });
        if random.below(6) == 0 {
            let space = if random.below(3) == 0 { "other" } else { "default" };
            made.push(Step::Live(space, random.below(2) == 0));
        }
    }
    made
}

/// Other work with merges, if this thread's work has some.
fn merging(seed: u64, work: Vec<Step>) -> Vec<Step> {
    if !MERGES.get() {
        return work;
    }
    let mut random = Random(seed ^ 50);
    let mut made = Vec::new();
    for step in work {
        made.push(match step {
            Step::Set(space, number, len) if random.below(3) > 0 => Step::Merge(space, number, len),
            step => step,
        });
        let space = if random.below(4) == 0 { "other" } else { "default" };
        match random.below(12) {
            0 => made.push(Step::Merges(space, random.below(12) as u8, random.below(12) as u8)),
            1..3 => made.push(Step::Merge(space, random.below(12) as u8, random.below(9) as usize)),
            _ => {}
        }
    }
    made
}

/// Makes long values of those that are not short.
fn lengthen(step: &mut Step) {
    let longer = |len: &mut usize| *len = if *len >= 35 { *len * 60 % 20_000 + LONG } else { *len };
    match step {
        Step::Set(_, _, len)
        | Step::SetUntil(_, _, len, _)
        | Step::Guard(.., len)
        | Step::Swap(.., Some(len)) => longer(len),
        Step::Batch(changes) => changes.iter_mut().filter_map(|(_, _, len)| len.as_mut()).for_each(longer),
        Step::Ingest(_, _, len, meanwhile) => {
            // Of each key.
            *len *= 10;
            meanwhile.iter_mut().for_each(lengthen);
        }
        _ => {}
    }
}

/// The work of a seed, on few keys, so that operations meet.
pub(super) fn steps(seed: u64, count: usize) -> Vec<Step> {
    let mut random = Random(seed);
    let space = |random: &mut Random| if random.below(4) == 0 { "other" } else { "default" };
    let key = |random: &mut Random| random.below(12) as u8;
    let len = |random: &mut Random| match random.below(8) {
        0 => 300,
        1..4 if LARGE.get() => LARGE_VALUES_LEAST + random.below(200) as usize,
        _ => random.below(40) as usize,
    };
    let made = (0..count)
        .map(|_| match random.below(24) {
            0..8 => Step::Set(space(&mut random), key(&mut random), len(&mut random)),
            8..11 => Step::Delete(space(&mut random), key(&mut random)),
            11 => Step::Add(space(&mut random), random.below(100) as i64),
            12..15 => Step::Batch(
                (0..1 + random.below(4))
                    .map(|_| {
                        let len = (random.below(3) > 0).then(|| len(&mut random));
                        (space(&mut random), key(&mut random), len)
                    })
                    .collect(),
            ),
            15 if random.below(2) == 0 => {
                Step::Replace(space(&mut random), key(&mut random), key(&mut random))
            }
            15 => Step::DeleteRange(space(&mut random), key(&mut random), key(&mut random)),
            16 => Step::Drop("other"),
            17 | 18 => Step::Sync,
            19..22 => Step::Work,
            22 => Step::Flush,
            _ => Step::Compact,
        })
        .filter(|step| !FILTERED.get() || !matches!(step, Step::Add(..)));
    merging(seed, made.collect())
}

/// The work of a seed with all operations: it also ingests, values expire, and some sets and deletes have a condition
/// on a range or on the value that they replace.
pub(super) fn all_steps(seed: u64, count: usize) -> Vec<Step> {
    let mut random = Random(seed ^ 60);
    let guard = |step| match (step, random.below(6)) {
        (Step::Set(space, number, len), 0) => {
            let start = random.below(12) as u8;
            let range = (start, start + random.below(12) as u8);
            Step::Guard(space, range, random.below(4) > 0, number, len)
        }
        (Step::Set(space, number, len), 1) => Step::Swap(space, number, random.below(4) > 0, Some(len)),
        (Step::Delete(space, number), 0..3) => Step::Swap(space, number, random.below(4) > 0, None),
        (step, _) => step,
    };
    // An even seed has few keys: wide batches do not fit where memory is short, if all their values expire.
    expiring(seed, ingest_steps(2 * seed, count)).into_iter().map(guard).collect()
}

/// The same on enough keys that a partition becomes several, and is merged in pieces.
pub(super) fn wide_steps(seed: u64, count: usize) -> Vec<Step> {
    let mut random = Random(seed);
    merging(seed, (0..count).map(|_| wide_step(&mut random)).collect())
}

/// The work of a seed, with ingests: of a few keys, or of many, which make several tables.
pub(super) fn ingest_steps(seed: u64, count: usize) -> Vec<Step> {
    let mut random = Random(seed);
    let all = if seed.is_multiple_of(2) { steps(seed, count) } else { wide_steps(seed, count) };
    let mut made = Vec::new();
    let mut rest = all.into_iter();
    while let Some(step) = rest.next() {
        made.push(step);
        if random.below(5) > 0 {
            continue;
        }
        let space = if random.below(4) == 0 { "other" } else { "default" };
        let (from, to) = (random.below(60) as u8, 1 + random.below(90) as u8);
        let keys = (from..from + to).filter(|_| random.below(4) > 0).collect();
        let meanwhile = rest.by_ref().take(random.below(3) as usize);
        // The keyspace stays until the end of the ingest.
        let meanwhile = meanwhile.filter(|step| !matches!(step, Step::Drop(_))).collect();
        // Some of them stay in logs, if any do.
        let most = if LARGE.get() { 4 * LARGE_VALUES_LEAST as u64 } else { 60 };
        made.push(Step::Ingest(space, keys, random.below(most) as usize, meanwhile));
    }
    made
}

fn wide_step(random: &mut Random) -> Step {
    match random.below(16) {
        0..3 => {
            let from = random.below(30) as u8;
            let len = if LARGE.get() { LARGE_VALUES_LEAST } else { 6 };
            Step::Batch((from..from + 90).map(|number| ("default", number, Some(len))).collect())
        }
        3 => Step::Replace("default", random.below(12) as u8, 30 + random.below(60) as u8),
        4..6 => Step::DeleteRange("default", random.below(12) as u8, 30 + random.below(60) as u8),
        6..9 => Step::Set("default", random.below(120) as u8, random.below(40) as usize),
        9 => Step::Delete("default", random.below(120) as u8),
        10 => Step::Sync,
        11 => Step::Work,
        12..14 => Step::Flush,
        _ => Step::Compact,
    }
}

/// The time, which stands still.
const NOW_MS: u64 = 1000;

/// A time to live that does not end in these tests.
const LONG_LIFE: Duration = Duration::from_secs(1 << 40);

/// The disk as the options say. Without a key nothing is looked for.
pub(super) fn sealed(disk: &Simulated, options: &Options) -> Result<Sealed> {
    match options.encryption_key {
        None => Ok(Sealed::plain(disk.clone())),
        Some(_) => Sealed::open(disk.clone(), options),
    }
}

/// The same for any directory.
pub(super) fn on(disk: &Simulated) -> Result<Sealed> {
    sealed(disk, &options(Durability::Sync))
}

/// Salvages a disk that has no key to an empty one.
pub(super) fn salvaged_to(from: Simulated, to: &Simulated) -> Result<Salvaged> {
    let see = &mut |_: Progress| ControlFlow::Continue(());
    salvage::copy(Sealed::plain(from), Sealed::plain(to.clone()), None, see)
}

/// A store in use.
pub(super) struct World {
    pub(super) store: Handle,
}

impl World {
    pub(super) fn open(disk: &Simulated, options: &Options) -> Result<World> {
        disk.set_now_ms(NOW_MS);
        Ok(World { store: Handle::open_unattended(sealed(disk, options)?, options)? })
    }

    /// Copies the store to an empty disk.
    pub(super) fn checkpoint(&self, into: &Simulated) -> Result<()> {
        self.store.checkpoint(self.store.disk().beside(into.clone()))
    }

    fn space(&self, name: &str) -> Result<Arc<Space>> {
        let space = self.store.keyspace(name)?;
        if MERGES.get() && self.store.check_writable().is_ok() {
            // When it is chosen first, nothing is in it yet.
            self.store.choose_operator(&space, "append")?;
        }
        Ok(space)
    }

    /// Sets a key of four bytes to itself, in the keyspace `default`.
    pub(super) fn set_number(&self, number: u32) -> Result<()> {
        let (space, key) = (self.store.keyspace("default")?, number.to_be_bytes());
        self.store.apply(&space, Op::Set { key: &key, value: &key }).map(|_| ())
    }

    /// Sets a key, makes the next log ahead, and returns the step that it took. A few of them make several logs.
    pub(super) fn set_with_a_log_ahead(&self, number: u8) -> Step {
        let step = Step::Set("default", number, 150);
        self.run(&step).expect("nothing fails");
        self.store.prepare_log().expect("nothing fails");
        step
    }

    pub(super) fn run(&self, step: &Step) -> Result<()> {
        match step {
            Step::Set(space, number, len) => {
                let (key, value) = (key(*number), value(*number, *len));
                self.store.apply(&self.space(space)?, Op::Set { key: &key, value: &value })?;
            }
            Step::SetUntil(space, number, len, is_over) => {
                let (key, value) = (key(*number), value(*number, *len));
                let expires = Expires::At(if *is_over { NOW_MS } else { NOW_MS + 1 });
                let op = Op::SetUntil { key: &key[..], value: &value[..], expires };
                self.store.apply(&self.space(space)?, op)?;
            }
            Step::Delete(space, number) => {
                self.store.apply(&self.space(space)?, Op::Delete { key: &key(*number) })?;
            }
            Step::Merge(space, number, len) => {
                let (key, operand) = (key(*number), value(*number, *len));
                self.store.apply(&self.space(space)?, Op::Merge { key: &key, operand: &operand })?;
            }
            Step::Merges(space, first, second) => {
                let (space, first, second) = (self.space(space)?, key(*first), key(*second));
                let merge = |key, operand| (&space, Op::Merge { key, operand });
                let ops = [
                    merge(&first[..], &b"1"[..]),
                    merge(&second[..], &b"2"[..]),
                    (&space, Op::Set { key: &second[..], value: &b"="[..] }),
                    merge(&first[..], &b"3"[..]),
                    merge(&second[..], &b"4"[..]),
                ];
                let _no_condition = self.store.write(&ops, None)?;
            }
            Step::Add(space, delta) => {
                self.store.apply(&self.space(space)?, Op::Add { key: b"counter", delta: *delta })?;
            }
            Step::Batch(changes) => {
                let mut owned = Vec::new();
                for (space, number, len) in changes {
                    owned.push((self.space(space)?, key(*number), len.map(|len| value(*number, len))));
                }
                let ops: Vec<_> = owned
                    .iter()
                    .map(|(space, key, value)| match value {
                        Some(value) => (space, Op::Set { key: &key[..], value: &value[..] }),
                        None => (space, Op::Delete { key: &key[..] }),
                    })
                    .collect();
                let _no_condition = self.store.write(&ops, None)?;
            }
            Step::DeleteRange(space, start, end) => {
                let (start, end) = (key(*start), key(*end));
                self.store.apply(&self.space(space)?, Op::DeleteRange { start: &start, end: Some(&end) })?;
            }
            Step::Guard(space, (start, end), holds, number, len) => {
                let (space, start, end) = (self.space(space)?, key(*start), key(*end));
                let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
                let bounds = (Bound::Included(&start[..]), Bound::Excluded(&end[..]));
                self.store.view(&space).scan(bounds, Direction::Forward, |key, value| {
                    pairs.push((key.to_vec(), value.to_vec()));
                    ControlFlow::Continue(())
                })?;
                match pairs.last_mut() {
                    _ if *holds || start >= end => {}
                    Some((_, last)) => last.push(0),
                    None => pairs.push((start.clone(), Vec::new())),
                }
                let (key, value) = (key(*number), value(*number, *len));
                let condition = Op::compare_range(&start[..]..&end[..], pairs);
                let ops = [(&space, condition.borrowed()), (&space, Op::Set { key: &key, value: &value })];
                let is_applied = self.store.write(&ops, None)?.is_applied();
                assert_eq!(is_applied, *holds || start >= end, "whether the condition holds");
            }
            Step::Swap(space, number, holds, len) => {
                let (space, key) = (self.space(space)?, key(*number));
                let new = len.map(|len| value(*number, len));
                let found = self.store.view(&space).get(&key)?;
                let wrong = found.is_none().then_some(&b"not there"[..]);
                let expected = if *holds { found.as_deref() } else { wrong };
                let op = Op::CompareAndSwap { key: &key[..], expected, new: new.as_deref() };
                let swap = if *holds { Swap::Done } else { Swap::Mismatch(found.clone()) };
                assert_eq!(self.store.apply(&space, op)?, Outcome::Swapped(swap));
            }
            Step::Replace(space, start, end) => {
                let (name, start, end) = (self.space(space)?, *start, *end);
                let [before, after] = replaced(start, end);
                let pair = |number: u8| (key(number), value(number, usize::from(number % 7)));
                let (before, after): (Vec<_>, Vec<_>) =
                    (before.map(pair).collect(), after.map(pair).collect());
                let bounds = (key(start), key(end));
                let ops = before.iter().map(|(key, value)| Op::Set { key: &key[..], value: &value[..] });
                let ops = ops.chain([Op::DeleteRange { start: &bounds.0[..], end: Some(&bounds.1[..]) }]);
                let ops =
                    ops.chain(after.iter().map(|(key, value)| Op::Set { key: &key[..], value: &value[..] }));
                let ops: Vec<_> = ops.map(|op| (&name, op)).collect();
                let _no_condition = self.store.write(&ops, None)?;
            }
            Step::Ingest(space, keys, len, meanwhile) => {
                let mut ingest = Box::new(Ingest::begin(&self.store, &self.space(space)?)?);
                for number in keys {
                    ingest.put(&key(*number), &value(*number, *len))?;
                }
                meanwhile.iter().try_for_each(|step| self.run(step))?;
                let count = ingest.finish()?;
                assert_eq!(count, keys.len() as u64);
            }
            Step::Drop(space) => {
                self.store.drop_space(space)?;
            }
            Step::Compress(space, method) => self.store.choose_compression(&*self.space(space)?, *method)?,
            Step::Live(space, is_limited) => {
                self.store.choose_ttl(&*self.space(space)?, is_limited.then_some(LONG_LIFE))?
            }
            Step::Sync => self.store.sync()?,
            Step::Work => {
                self.store.prepare_log()?;
                self.store.step()?;
            }
            Step::Flush => self.store.flush_all()?,
            Step::Compact => self.store.compact()?,
        }
        Ok(())
    }

    /// The whole content of the store, read forward; reading backward must give the same.
    pub(super) fn content(&self) -> Result<Content> {
        let mut content = Content::new();
        for name in self.store.keyspaces()? {
            let view = self.store.view(&self.store.keyspace(&name)?);
            let read = |direction| {
                let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
                loop {
                    let mut chunk = forrest_engine::Chunk::default();
                    chunk.clear(PAIRS_MAX);
                    let rest = pairs.last().map_or(Bound::Unbounded, |(key, _)| Bound::Excluded(&key[..]));
                    let bounds = match direction {
                        Direction::Forward => (rest, Bound::Unbounded),
                        Direction::Backward => (Bound::Unbounded, rest),
                    };
                    let filled = view.fill(&mut chunk, &mut Default::default(), bounds, direction)?;
                    let pair = |at| (chunk.key(at).to_vec(), chunk.value_bytes(at).to_vec());
                    pairs.extend((0..chunk.len()).map(pair));
                    assert!(pairs.len() < PAIRS_MAX, "the store holds more than a test looks at");
                    // What comes before an error is shown first.
                    if matches!(filled, Filled::End) {
                        return Ok::<Vec<_>, forrest_engine::Error>(pairs);
                    }
                }
            };
            let (pairs, mut backward) = (read(Direction::Forward)?, read(Direction::Backward)?);
            backward.reverse();
            assert_eq!(pairs, backward, "the two directions differ");
            for (key, value) in &pairs {
                assert_eq!(view.get(key)?.as_deref(), Some(&value[..]), "a get differs from a scan");
            }
            assert!(pairs.is_sorted_by(|a, b| a.0 < b.0), "keys are out of order");
            content.insert(name, pairs.into_iter().collect());
        }
        Ok(content)
    }
}

/// The states after a step: a keyspace is made before the change that needs it.
pub(super) fn follow(states: &mut Vec<Content>, step: &Step) {
    let mut now = states.last().expect("there is a first").clone();
    let made = |states: &mut Vec<Content>, now: &mut Content, space: &str| {
        if !now.contains_key(space) {
            now.insert(space.to_string(), Pairs::new());
            states.push(now.clone());
        }
    };
    match step {
        Step::Set(space, number, len) => {
            made(states, &mut now, space);
            now.get_mut(*space).expect("it is there").insert(key(*number), value(*number, *len));
        }
        Step::SetUntil(space, number, len, is_over) => {
            made(states, &mut now, space);
            let pairs = now.get_mut(*space).expect("it is there");
            match is_over {
                true => pairs.remove(&key(*number)),
                false => pairs.insert(key(*number), value(*number, *len)),
            };
        }
        Step::Delete(space, number) => {
            made(states, &mut now, space);
            now.get_mut(*space).expect("it is there").remove(&key(*number));
        }
        Step::Merge(space, number, len) => {
            made(states, &mut now, space);
            let pairs = now.get_mut(*space).expect("it is there");
            pairs.entry(key(*number)).or_default().extend(value(*number, *len));
        }
        Step::Merges(space, first, second) => {
            made(states, &mut now, space);
            let pairs = now.get_mut(*space).expect("it is there");
            pairs.entry(key(*first)).or_default().extend(b"1");
            pairs.insert(key(*second), b"=".to_vec());
            pairs.entry(key(*first)).or_default().extend(b"3");
            pairs.entry(key(*second)).or_default().extend(b"4");
        }
        Step::Add(space, delta) => {
            made(states, &mut now, space);
            let pairs = now.get_mut(*space).expect("it is there");
            let old = pairs
                .get(&b"counter"[..])
                .map_or(0, |old| i64::from_be_bytes(old[..].try_into().expect("a counter")));
            pairs.insert(b"counter".to_vec(), (old + delta).to_be_bytes().to_vec());
        }
        Step::Batch(changes) => {
            for (space, ..) in changes {
                made(states, &mut now, space);
            }
            for (space, number, len) in changes {
                let pairs = now.get_mut(*space).expect("it is there");
                match len {
                    Some(len) => pairs.insert(key(*number), value(*number, *len)),
                    None => pairs.remove(&key(*number)),
                };
            }
        }
        Step::DeleteRange(space, start, end) => {
            made(states, &mut now, space);
            let (start, end) = (key(*start), key(*end));
            now.get_mut(*space).expect("it is there").retain(|key, _| *key < start || *key >= end);
        }
        Step::Guard(space, (start, end), holds, number, len) => {
            made(states, &mut now, space);
            if *holds || start >= end {
                now.get_mut(*space).expect("it is there").insert(key(*number), value(*number, *len));
            }
        }
        Step::Swap(space, number, holds, len) => {
            made(states, &mut now, space);
            let pairs = now.get_mut(*space).expect("it is there");
            match len {
                _ if !holds => {}
                Some(len) => drop(pairs.insert(key(*number), value(*number, *len))),
                None => drop(pairs.remove(&key(*number))),
            }
        }
        Step::Replace(space, start, end) => {
            made(states, &mut now, space);
            let pairs = now.get_mut(*space).expect("it is there");
            let [before, after] = replaced(*start, *end);
            let pair = |number: u8| (key(number), value(number, usize::from(number % 7)));
            pairs.extend(before.map(pair));
            let (start, end) = (key(*start), key(*end));
            pairs.retain(|key, _| *key < start || *key >= end);
            pairs.extend(after.map(pair));
        }
        Step::Ingest(space, keys, len, meanwhile) => {
            made(states, &mut now, space);
            meanwhile.iter().for_each(|step| follow(states, step));
            now = states.last().expect("there is a first").clone();
            let pairs = keys.iter().map(|number| (key(*number), value(*number, *len)));
            now.get_mut(*space).expect("it is there").extend(pairs);
        }
        Step::Drop(space) => {
            now.remove(*space);
        }
        Step::Compress(space, _) | Step::Live(space, _) => made(states, &mut now, space),
        Step::Sync | Step::Work | Step::Flush | Step::Compact => {}
    }
    if states.last() != Some(&now) {
        states.push(now);
    }
}

/// The states before any step: no keyspace, and then the default one.
pub(super) fn beginning() -> Vec<Content> {
    vec![Content::from([("default".to_string(), Pairs::new())])]
}
