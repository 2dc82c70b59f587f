//! Values that expire, compared with a map that has the time of each: while the clock jumps, memtables become tables,
//! tables are merged, and the store is opened again.

use super::crash::crash_everywhere;
use super::damage::flipped_bits_of;
use super::faults::{FAILURES, failing_io_of};
use super::world::{self, beginning, expiring, follow, ingest_steps, options, options_of, seeds, steps};
use crate::catalog::Space;
use crate::core::Handle;
use crate::disk::Sealed;
use crate::disk::simulated::Simulated;
use crate::view::Snapshot;
use forrest_base::random::Random;
use forrest_engine::{
    Changes as _, Chunk, Cursor as _, Direction, Durability, Expires, Filter, Goto, Ingest as _, Op, Options,
    Outcome, Snapshot as _, Swap, Verdict, View, What,
};
use forrest_testing::sized;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow, Range};
use std::sync::Arc;
use std::time::Duration;

/// Values with the time at which they expire, if they do.
type Map = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

struct World {
    disk: Simulated,
    options: Options,
    store: Handle,
    space: Arc<Space>,
    map: Map,
    now_ms: u64,
    snapshots: Vec<(Snapshot, Map)>,
}

/// What a reader at a time sees.
fn at(map: &Map, now_ms: u64) -> Map {
    let is_there = |expires_ms: &Option<u64>| expires_ms.is_none_or(|expires_ms| expires_ms > now_ms);
    map.iter()
        .filter(|(_, (_, expires_ms))| is_there(expires_ms))
        .map(|(key, own)| (key.clone(), own.clone()))
        .collect()
}

fn check(view: &impl View, expected: &Map, what: &str) {
    let keys: Vec<Vec<u8>> = (0..24).map(|number| vec![b'k', number]).collect();
    let values = view.multi_get(&keys).unwrap();
    for (key, value) in keys.iter().zip(values) {
        let wanted = expected.get(key);
        let at = || format!("{what}: {}", key.escape_ascii());
        assert_eq!(value.as_deref(), wanted.map(|(value, _)| &value[..]), "{}", at());
        assert_eq!(view.get(key).unwrap(), value, "{}", at());
        assert_eq!(view.contains(key).unwrap(), wanted.is_some(), "{}", at());
        assert_eq!(view.expires_ms(key).unwrap(), wanted.map(|(_, expires_ms)| *expires_ms), "{}", at());
    }
    let all = (Bound::Unbounded, Bound::Unbounded);
    assert_eq!(view.count(all.0, all.1).unwrap(), expected.len() as u64, "{what}");
    for direction in [Direction::Forward, Direction::Backward] {
        let (mut pairs, mut names) = (Vec::new(), Vec::new());
        view.scan(all, direction, |key, value| {
            pairs.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        })
        .unwrap();
        view.scan_keys(all, direction, |key| {
            names.push(key.to_vec());
            ControlFlow::Continue(())
        })
        .unwrap();
        let mut wanted: Vec<_> =
            expected.iter().map(|(key, (value, _))| (key.clone(), value.clone())).collect();
        if direction == Direction::Backward {
            wanted.reverse();
        }
        assert_eq!(pairs, wanted, "{what}, {direction:?}");
        assert!(names.iter().eq(wanted.iter().map(|(key, _)| key)), "{what}, {direction:?}");
    }
}

impl World {
    fn open(options: Options) -> World {
        let disk = Simulated::new();
        disk.set_now_ms(1000);
        let store = Handle::open_unattended(Sealed::plain(disk.clone()), &options).unwrap();
        let space = store.keyspace("default").unwrap();
        assert_eq!(store.newest().now_ms(), 1000);
        World { disk, options, store, space, map: Map::new(), now_ms: 1000, snapshots: Vec::new() }
    }

    fn reopen(&mut self) {
        self.snapshots.clear();
        // The old one is closed first.
        self.store = Handle::open_unattended(Sealed::plain(Simulated::new()), &self.options).unwrap();
        self.store = Handle::open_unattended(Sealed::plain(self.disk.clone()), &self.options).unwrap();
        self.space = self.store.keyspace("default").unwrap();
    }

    /// The clock is set. The store's time does not go back, once the store has looked at the clock.
    fn set_clock(&mut self, ms: u64) {
        self.disk.set_now_ms(ms);
        self.now_ms = self.now_ms.max(ms);
        assert_eq!(self.store.newest().now_ms(), self.now_ms);
    }

    fn set(&mut self, key: &[u8], value: &[u8], expires_ms: Option<u64>) {
        let op = match expires_ms {
            Some(expires_ms) => Op::SetUntil { key, value, expires: Expires::At(expires_ms) },
            None => Op::Set { key, value },
        };
        self.store.apply(&self.space, op).unwrap();
        self.map.insert(key.to_vec(), (value.to_vec(), expires_ms));
    }

    fn delete(&mut self, key: &[u8]) {
        let was_there = at(&self.map, self.now_ms).contains_key(key);
        assert_eq!(self.store.apply(&self.space, Op::Delete { key }).unwrap(), Outcome::Deleted(was_there));
        self.map.remove(key);
    }

    fn step(&mut self, random: &mut Random, what: &str) {
        let key = [b'k', random.below(24) as u8];
        let value = vec![random.next() as u8; random.below(40) as usize];
        let soon = self.now_ms + random.below(50);
        match random.below(16) {
            0..4 => self.set(&key, &value, Some(soon)),
            4..6 => self.set(&key, &value, None),
            6 => self.delete(&key),
            7 => {
                let found = at(&self.map, self.now_ms).get(&key[..]).map(|(value, _)| value.clone());
                let expected = if random.below(3) == 0 { None } else { found.clone() };
                let op = Op::CompareAndSwap {
                    key: &key[..],
                    expected: expected.as_deref(),
                    new: Some(&value[..]),
                };
                let outcome = self.store.apply(&self.space, op).unwrap();
                if found == expected {
                    assert_eq!(outcome, Outcome::Swapped(Swap::Done), "{what}");
                    if Some(&value) != expected.as_ref() {
                        self.map.insert(key.to_vec(), (value, None));
                    }
                } else {
                    assert_eq!(
                        outcome.mismatch().map(|found| found.map(|found| found.to_vec())),
                        Some(found),
                        "{what}"
                    );
                }
            }
            8 => {
                // A batch sees what it sets.
                let ops = [
                    (
                        &self.space,
                        Op::SetUntil {
                            key: &key[..],
                            value: &value[..],
                            expires: Expires::In(soon - self.now_ms),
                        },
                    ),
                    (
                        &self.space,
                        Op::CompareAndSwap { key: &key[..], expected: Some(&value[..]), new: None },
                    ),
                ];
                let done = self.store.write(&ops, None).unwrap().is_applied();
                assert_eq!(done, soon > self.now_ms, "{what}");
                if done {
                    self.map.remove(&key[..]);
                }
            }
            9 => {
                let (start, end) = (key, [b'k', key[1].saturating_add(3)]);
                self.store
                    .apply(&self.space, Op::DeleteRange { start: &start[..], end: Some(&end[..]) })
                    .unwrap();
                self.map.retain(|key, _| key[..] < start[..] || key[..] >= end[..]);
            }
            10..12 => self.set_clock(self.disk_ms() + random.below(30)),
            12 if random.below(4) == 0 => self.set_clock(self.disk_ms().saturating_sub(random.below(30))),
            13 => drop(self.store.step().unwrap()),
            14 => self.store.flush_all().unwrap(),
            15 if random.below(4) == 0 => {
                // A store that is opened again has the time of its clock.
                self.set_clock(self.now_ms);
                self.reopen();
                self.set_clock(self.now_ms);
            }
            15 if random.below(3) == 0 => self.store.compact().unwrap(),
            _ => {}
        }
    }

    fn disk_ms(&self) -> u64 {
        crate::disk::Disk::now_ms(&self.disk)
    }
}

/// Power cuts at every I/O; returns the number of states checked.
pub(super) fn after_power_cuts(seeds: Range<u64>) -> u64 {
    let crash = |seed| {
        let durability = if seed % 2 == 0 { Durability::Buffered } else { Durability::Sync };
        crash_everywhere(&format!("seed {seed}"), &expiring(seed, ingest_steps(seed, 16)), durability, 1)
    };
    seeds.map(crash).sum()
}

#[test]
fn power_may_be_cut_at_any_io() {
    assert!(after_power_cuts(seeds(1, 2)) > 100);
}

#[test]
fn any_io_may_fail() {
    failing_io_of(seeds(1, 1), |seed| expiring(seed, ingest_steps(seed, 12)), &FAILURES, sized(5, 2));
}

#[test]
fn any_bit_may_flip() {
    flipped_bits_of(seeds(1, 2), sized(7, 3), |seed| expiring(seed, steps(seed, 40)));
}

/// Random work with values that expire, ingests and times to live: the store has what a map has, also after it is
/// opened again.
#[test]
fn random_work_is_right() {
    for seed in seeds(20, 100) {
        let (disk, options) = (Simulated::new(), options(Durability::Buffered));
        let mut world = world::World::open(&disk, &options).unwrap();
        let mut states = beginning();
        for (at, step) in expiring(seed, ingest_steps(seed, 40)).iter().enumerate() {
            follow(&mut states, step);
            let what = format!("seed {seed}, step {at}, {step:?}");
            world.run(step).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(Some(&world.content().unwrap()), states.last(), "{what}");
            if at % 10 == 9 {
                world.store.verify().unwrap();
                drop(world);
                world = world::World::open(&disk, &options).unwrap();
                assert_eq!(Some(&world.content().unwrap()), states.last(), "{what}, opened again");
            }
        }
    }
}

#[test]
fn expired_values_are_never_returned() {
    agree_with_a_map(seeds(12, 25));
}

/// Compares random work with a map.
pub(super) fn agree_with_a_map(seeds: Range<u64>) {
    for seed in seeds {
        let mut random = Random(seed);
        let mut world = World::open(options_of(seed, Durability::Buffered));
        for step in 0..150 {
            let what = format!("seed {seed}, step {step}");
            world.step(&mut random, &what);
            let seen = at(&world.map, world.now_ms);
            check(&world.store.view(&world.space), &seen, &what);
            if random.below(6) == 0 {
                let snapshot = (world.store.snapshot().unwrap(), seen);
                world.snapshots.push(snapshot);
            }
            if world.snapshots.len() > 3 {
                drop(world.snapshots.remove(random.below(3) as usize));
            }
            for (snapshot, expected) in &world.snapshots {
                check(&snapshot.view("default"), expected, &format!("{what}: a snapshot"));
            }
        }
    }
}

/// What a filter drops, and what expires, does not come back, and nothing older comes in its place: with range deletes,
/// and with ingests that meet partitions which begin meanwhile.
#[test]
fn what_is_dropped_stays_away() {
    for seed in seeds(12, 25) {
        let mut random = Random(seed ^ 50);
        let decide = |_: &str, _: &[u8], value: &[u8]| match value {
            [b'd', ..] => Verdict::Drop,
            _ => Verdict::Keep,
        };
        let filter = (seed % 4 > 0).then(|| Filter::new(decide));
        let mut world = World::open(Options { filter, ..options_of(seed, Durability::Buffered) });
        for step in 0..80 {
            let what = format!("seed {seed}, step {step}");
            if random.below(5) == 0 {
                world.ingest(&mut random);
            } else {
                world.wide_step(&mut random);
            }
            let seen = world.observe(&what);
            if random.below(6) == 0 {
                world.snapshots.push((world.store.snapshot().unwrap(), seen));
            }
            if world.snapshots.len() > 3 {
                drop(world.snapshots.remove(random.below(3) as usize));
            }
            for (snapshot, expected) in &world.snapshots {
                let view = snapshot.view("default");
                assert_eq!(pairs(&view), pairs_of(expected), "{what}: a snapshot");
            }
        }
    }
}

fn pairs(view: &impl View) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut pairs = BTreeMap::new();
    view.scan((Bound::Unbounded, Bound::Unbounded), Direction::Forward, |key, value| {
        pairs.insert(key.to_vec(), value.to_vec());
        ControlFlow::Continue(())
    })
    .unwrap();
    for number in 0..WIDE {
        let key = [b'k', number];
        assert_eq!(view.get(&key).unwrap().as_deref(), pairs.get(&key[..]).map(|value| &value[..]));
    }
    pairs
}

fn pairs_of(map: &Map) -> BTreeMap<Vec<u8>, Vec<u8>> {
    map.iter().map(|(key, (value, _))| (key.clone(), value.clone())).collect()
}

/// Keys of wide work.
const WIDE: u8 = 120;

impl World {
    fn wide_step(&mut self, random: &mut Random) {
        let value = |random: &mut Random| {
            let mut value = vec![if random.below(2) == 0 { b'd' } else { b'k' }];
            value.resize(1 + random.below(30) as usize, random.next() as u8);
            value
        };
        match random.below(16) {
            0..5 => {
                let from = random.below(WIDE.into()) as u8;
                for number in from..WIDE.min(from + random.below(50) as u8) {
                    let expires_ms = (random.below(2) == 0).then(|| self.now_ms + random.below(60));
                    self.set(&[b'k', number], &value(random), expires_ms);
                }
            }
            5..7 => self.delete(&[b'k', random.below(WIDE.into()) as u8]),
            7 => {
                let start = [b'k', random.below(WIDE.into()) as u8];
                let end = [b'k', start[1] + random.below(60) as u8];
                let op = Op::DeleteRange { start: &start[..], end: Some(&end[..]) };
                self.store.apply(&self.space, op).unwrap();
                self.map.retain(|key, _| key[..] < start[..] || key[..] >= end[..]);
            }
            8..10 => self.set_clock(self.disk_ms() + random.below(40)),
            10 => drop(self.store.compact_expired().unwrap()),
            11 => drop(self.store.step().unwrap()),
            12..14 => self.store.flush_all().unwrap(),
            14 if random.below(3) == 0 => {
                self.set_clock(self.now_ms);
                self.reopen();
                self.set_clock(self.now_ms);
            }
            15 => self.store.compact().unwrap(),
            _ => {}
        }
    }

    /// Ingests pairs that may expire, while others are set, dropped and merged.
    fn ingest(&mut self, random: &mut Random) {
        let (ttl_ms, from) = (random.below(60), random.below(40) as u8);
        self.store.choose_ttl(&self.space, (ttl_ms > 0).then(|| Duration::from_millis(ttl_ms))).unwrap();
        let mut ingest = Box::new(crate::ingest::Ingest::begin(&self.store, &self.space).unwrap());
        let expires_ms = (ttl_ms > 0).then_some(self.now_ms + ttl_ms);
        let mut added = Map::new();
        for number in (from..WIDE).filter(|_| random.below(3) > 0).collect::<Vec<_>>() {
            let value = if random.below(2) == 0 { b"drop it" } else { b"keep it" };
            ingest.put(&[b'k', number], value).unwrap();
            added.insert(vec![b'k', number], (value.to_vec(), expires_ms));
        }
        self.store.choose_ttl(&self.space, None).unwrap();
        for _ in 0..random.below(5) {
            self.set_clock(self.disk_ms() + random.below(30));
            // The ingest keeps the store open.
            self.observe("while pairs are ingested");
            match random.below(3) {
                0 => self.store.flush_all().unwrap(),
                1 => self.store.compact().unwrap(),
                _ => {
                    for number in 0..WIDE {
                        self.set(&[b'k', number], &[b'k'; 20], None);
                    }
                }
            }
        }
        ingest.finish().unwrap();
        self.map.append(&mut added);
    }

    /// What the store has: what the map has, but for values that the filter drops, which the map loses then.
    fn observe(&mut self, what: &str) -> Map {
        let found = pairs(&self.store.view(&self.space));
        let expected = at(&self.map, self.now_ms);
        for (key, value) in &found {
            let wanted = expected.get(key).map(|(value, _)| value);
            assert_eq!(Some(value), wanted, "{what}: {}", key.escape_ascii());
        }
        for (key, (value, _)) in &expected {
            if !found.contains_key(key) {
                let is_dropped = self.options.filter.is_some() && value.starts_with(b"d");
                assert!(is_dropped, "{what}: {} is missing", key.escape_ascii());
                self.map.remove(key);
            }
        }
        at(&self.map, self.now_ms)
    }
}

#[test]
pub(super) fn a_snapshot_sees_what_a_later_scan_passes_as_expired() {
    // The snapshot does not jump over a gap of values that it still sees, merged away or not.
    for is_merged in [false, true] {
        let mut world = World::open(Options { memtable_bytes: 1 << 20, ..options(Durability::Memory) });
        for number in 0..24 {
            world.set(&[b'k', number], b"v", (number % 2 == 0).then_some(2000));
        }
        world.store.flush_all().unwrap();
        for number in (1..24).step_by(2) {
            world.delete(&[b'k', number]);
        }
        let (snapshot, seen) = (world.store.snapshot().unwrap(), at(&world.map, world.now_ms));
        world.set_clock(3000);
        assert!(!is_merged || world.store.compact_expired().unwrap());
        for _ in 0..3 {
            check(&world.store.view(&world.space), &at(&world.map, 3000), "later");
            check(&snapshot.view("default"), &seen, "before");
        }
        let mut cursor = snapshot.view("default").cursor();
        assert!(cursor.goto(Goto::First).unwrap());
        assert_eq!(cursor.key(), Some(&b"k\0"[..]));
    }
}

#[test]
pub(super) fn a_merge_leaves_a_tombstone_where_an_older_table_has_the_key() {
    let mut world = World::open(Options { memtable_bytes: 1 << 20, ..options(Durability::Memory) });
    world.set(b"k\x01", b"old", None);
    world.store.flush_all().unwrap();
    world.set(b"k\x01", b"new", Some(1500));
    world.set_clock(2000);
    world.store.flush_all().unwrap();
    check(&world.store.view(&world.space), &Map::new(), "after the flush");
    world.map.clear();
    world.store.compact().unwrap();
    check(&world.store.view(&world.space), &Map::new(), "after the merge");
    // Nothing is left of them.
    let version = world.store.version();
    let entries =
        version.partitions(0).iter().flat_map(|partition| partition.tables()).map(|table| table.entries());
    assert_eq!(entries.sum::<u32>(), 0);
}

/// A value expires in a newer table, which is merged without the old one that has the key.
#[test]
pub(super) fn a_partial_merge_leaves_a_tombstone() {
    let sizes = Options { memtable_bytes: 1 << 20, table_bytes: 16 << 20, ..options(Durability::Memory) };
    let mut world = World::open(sizes);
    for number in 0..4000_u32 {
        world.set(&number.to_be_bytes(), &[7; 100], None);
    }
    world.store.flush_all().unwrap();
    world.set(&7_u32.to_be_bytes(), b"new", Some(1500));
    world.store.flush_all().unwrap();
    world.set_clock(2000);
    let tables =
        |world: &World| world.store.version().partitions(0).iter().map(|one| one.tables().len()).sum();
    let (mut before, mut merges) = (0, 0);
    for number in 5000..5060_u32 {
        world.set(&number.to_be_bytes(), b"more", None);
        world.store.flush_all().unwrap();
        let now: usize = tables(&world);
        merges += usize::from(now <= before);
        assert!(now > 1, "the old table is merged too");
        before = now;
        assert_eq!(world.store.view(&world.space).get(&7_u32.to_be_bytes()).unwrap(), None, "{number}");
    }
    assert!(merges > 0, "{before} tables");
}

#[test]
fn the_changes_have_the_time_and_not_its_coming() {
    let mut world = World::open(Options { history: true, ..options(Durability::Buffered) });
    world.set(b"k\x01", b"v", Some(1500));
    world.set_clock(2000);
    world.store.flush_all().unwrap();
    let mut changes = world.store.changes(0, Durability::Buffered).unwrap();
    let change = changes.next().unwrap().expect("there is one");
    assert_eq!(
        change.what,
        What::SetUntil { key: b"k\x01".to_vec(), value: b"v".to_vec(), expires_ms: 1500 }
    );
    assert_eq!(changes.next().unwrap(), None);
}

/// A partition that begins meanwhile cuts a table that is ingested. What has expired in it by then, or is dropped,
/// hides older values all the same.
#[test]
pub(super) fn what_is_cut_hides_older_values() {
    for is_filtered in [false, true] {
        let decide = |_: &str, _: &[u8], value: &[u8]| match value {
            b"new" => Verdict::Drop,
            _ => Verdict::Keep,
        };
        let filter = is_filtered.then(|| Filter::new(decide));
        let mut world =
            World::open(Options { memtable_bytes: 1 << 20, filter, ..options(Durability::Memory) });
        world.set(b"k\x01", b"old", None);
        world.store.flush_all().unwrap();
        world.store.choose_ttl(&world.space, (!is_filtered).then_some(Duration::from_millis(500))).unwrap();
        let mut ingest = crate::ingest::Ingest::begin(&world.store, &world.space).unwrap();
        ingest.put(b"k\x01", b"new").unwrap();
        ingest.put(b"z", b"new").unwrap();
        world.store.choose_ttl(&world.space, None).unwrap();
        for number in 0..100 {
            world.set(&[b'm', number], &[7; 40], None);
        }
        world.store.flush_all().unwrap();
        assert!(world.store.version().partitions(0).len() > 1, "it is cut");
        world.set_clock(2000);
        Box::new(ingest).finish().unwrap();
        for _ in 0..2 {
            assert_eq!(world.store.view(&world.space).get(b"k\x01").unwrap(), None, "{is_filtered}");
            world.store.verify().unwrap();
            world.store.compact().unwrap();
        }
    }
}

/// Iterations and cursors that are held open.
#[test]
pub(super) fn what_expires_between_two_steps_is_not_returned() {
    for tables in 0..3_u8 {
        let sizes = Options { memtable_bytes: 1 << 20, table_bytes: 16 << 20, ..options(Durability::Memory) };
        let mut world = World::open(sizes);
        let parts = tables.max(1);
        for part in 0..parts {
            for number in (part..24).step_by(parts.into()) {
                world.set(&[b'k', number], b"v", (number % 2 == 0).then_some(2000));
            }
            if tables > 0 {
                world.store.flush_all().unwrap();
            }
        }
        let view = world.store.view(&world.space);
        let mut cursors =
            [Direction::Forward, Direction::Backward].map(|direction| (direction, view.cursor()));
        for (direction, cursor) in &mut cursors {
            let goto = if *direction == Direction::Forward { Goto::First } else { Goto::Last };
            assert!(cursor.goto(goto).unwrap());
        }
        let (mut chunk, mut resume) = (Chunk::default(), Default::default());
        chunk.clear(2);
        let all = (Bound::Unbounded, Bound::Unbounded);
        view.fill(&mut chunk, &mut resume, all, Direction::Forward).unwrap();
        world.set_clock(2000);
        chunk.clear(24);
        let from = (Bound::Excluded(&b"k\x01"[..]), Bound::Unbounded);
        view.fill(&mut chunk, &mut resume, from, Direction::Forward).unwrap();
        let found: Vec<u8> = (0..chunk.len()).map(|at| chunk.key(at)[1]).collect();
        assert_eq!(found, (3..24).step_by(2).collect::<Vec<u8>>(), "{tables}");
        for (direction, cursor) in &mut cursors {
            let mut found = Vec::new();
            let goto = if *direction == Direction::Forward { Goto::Skip(1) } else { Goto::Prev };
            while cursor.goto(goto).unwrap() {
                found.extend(cursor.key().map(|key| key[1]));
            }
            let mut wanted: Vec<u8> = (1..24).step_by(2).collect();
            if *direction == Direction::Backward {
                wanted.reverse();
                wanted.remove(0);
            }
            assert_eq!(found, wanted, "{tables}, {direction:?}");
        }
    }
}

/// A footer has no room for times that are as late as this.
#[test]
fn nothing_is_merged_for_what_never_expires() {
    let mut world = World::open(Options { memtable_bytes: 1 << 20, ..options(Durability::Memory) });
    world.set(b"k\x01", b"v", Some(u64::MAX));
    world.store.flush_all().unwrap();
    for ms in [1 << 47, 1 << 49] {
        world.set_clock(ms);
        assert!(!world.store.compact_expired().unwrap(), "{ms}");
    }
    check(&world.store.view(&world.space), &world.map, "at the end of time");
}

/// A merge that fails without space is not tried again at once, and is later.
#[test]
pub(super) fn a_merge_without_space_waits() {
    let sizes = Options { memtable_bytes: 1 << 20, table_bytes: 16 << 20, ..options(Durability::Memory) };
    let mut world = World::open(sizes);
    for number in 0..3000_u32 {
        world.set(&number.to_be_bytes(), &[7; 100], (number % 2 == 0).then_some(2000));
    }
    world.store.flush_all().unwrap();
    world.set_clock(2000);
    let used: usize = world.disk.files().iter().map(|(_, bytes)| bytes.len()).sum();
    world.disk.set_capacity(Some(used as u64 + 100_000));
    let failed = world.store.compact_expired().unwrap_err();
    assert_eq!(failed.kind(), forrest_engine::ErrorKind::OutOfSpace);
    let number = world.store.first_free_number();
    assert!(!world.store.compact_expired().unwrap());
    assert_eq!(world.store.first_free_number(), number, "no table is begun");
    world.disk.set_capacity(None);
    world.set_clock(2000 + 60_000);
    assert!(world.store.compact_expired().unwrap());
    assert_eq!(entries(&world), 1500);
}

/// Time moves on over ascending keys that expire: no ranges without keys are left.
#[test]
pub(super) fn ascending_keys_that_expire_leave_no_partitions() {
    let mut world = World::open(options(Durability::Memory));
    for round in 0..20_u32 {
        for number in 0..40 {
            let expires_ms = Some(world.now_ms + 1000);
            world.set(&(round * 40 + number).to_be_bytes(), &[7; 40], expires_ms);
        }
        world.store.flush_all().unwrap();
        world.set_clock(world.now_ms + 500);
        while world.store.compact_expired().unwrap() {}
    }
    world.set_clock(world.now_ms + 1000);
    while world.store.compact_expired().unwrap() {}
    let version = world.store.version();
    let tables = version.partitions(0).iter().map(|one| one.tables().len()).collect::<Vec<_>>();
    assert_eq!(tables, [0]);
}

/// Entries of all tables.
fn entries(world: &World) -> u32 {
    let version = world.store.version();
    let tables = version.each().flat_map(|(_, partition)| partition.tables());
    tables.map(|table| table.entries()).sum()
}

const HOUR: u64 = 60 * 60 * 1000;

#[test]
pub(super) fn what_has_expired_leaves_the_tables() {
    let mut world = World::open(Options { memtable_bytes: 1 << 20, ..options(Durability::Memory) });
    world.set(b"k\x01", b"one", Some(2000));
    world.set(b"k\x02", b"two", Some(3000));
    world.set(b"k\x03", b"three", None);
    world.store.flush_all().unwrap();
    world.set_clock(2499);
    assert!(!world.store.compact_expired().unwrap(), "about half of one");
    world.set_clock(3000);
    assert!(world.store.compact_expired().unwrap(), "two of three have expired");
    assert_eq!((world.store.compact_expired().unwrap(), entries(&world)), (false, 1));
    world.set(b"k\x01", b"one", Some(4000));
    world.set(b"k\x02", b"two", Some(100 * HOUR));
    world.store.flush_all().unwrap();
    world.set_clock(4000 + 24 * HOUR - 1);
    assert!(!world.store.compact_expired().unwrap(), "it has not been long");
    world.set_clock(4000 + 24 * HOUR);
    assert!(world.store.compact_expired().unwrap(), "one has expired a day ago");
    assert_eq!((world.store.compact_expired().unwrap(), entries(&world)), (false, 2));
    check(&world.store.view(&world.space), &at(&world.map, world.now_ms), "at the end");
    world.store.verify().unwrap();
    // A memtable.
    world.set(b"k\x04", b"four", Some(world.now_ms + 1));
    world.set_clock(world.now_ms + 24 * HOUR);
    assert!(!world.store.compact_expired().unwrap() && world.store.version().memtable.bytes() > 0);
    world.set_clock(world.now_ms + 1);
    world.store.compact_expired().unwrap();
    assert_eq!(world.store.version().memtable.bytes(), 0, "its log is not needed");
}

/// Scans remember the gaps that values leave which expire, as they do for deletes.
#[test]
pub(super) fn no_scan_passes_the_same_expired_values_twice() {
    for tables in 0..3 {
        let sizes = Options { memtable_bytes: 1 << 20, table_bytes: 16 << 20, ..options(Durability::Memory) };
        let mut world = World::open(sizes);
        let parts = if tables == 2 { 2 } else { 1 };
        for part in 0..parts {
            for number in (part..200).step_by(parts.into()) {
                world.set(&[b'k', number], b"v", Some(2000));
            }
            if tables > 0 {
                world.store.flush_all().unwrap();
            }
        }
        world.set(b"z", b"v", None);
        world.set_clock(2000);
        let mut cursor = world.store.view(&world.space).cursor();
        for _ in 0..2 {
            assert!(cursor.goto(Goto::First).unwrap());
            assert_eq!(cursor.key(), Some(&b"z"[..]));
        }
        let newest = world.store.newest();
        let from = Bound::Included(&b"k\x50"[..]);
        let jump = world.store.gaps.jump(world.space.id, newest, from, Direction::Forward);
        assert!(jump.is_some(), "{tables} tables");
    }
}

#[test]
fn a_keyspace_has_a_time_to_live() {
    let mut world = World::open(Options { memtable_bytes: 1 << 20, ..options(Durability::Buffered) });
    let space = world.store.keyspace("sessions").unwrap();
    let expires =
        |world: &World, space: &Arc<Space>, key: &[u8]| world.store.view(space).expires_ms(key).unwrap();
    world.store.apply(&space, Op::Set { key: b"before", value: b"v" }).unwrap();
    let zero = world.store.choose_ttl(&space, Some(Duration::ZERO)).unwrap_err();
    assert_eq!(zero.kind(), forrest_engine::ErrorKind::InvalidArgument);
    world.store.choose_ttl(&space, Some(Duration::from_micros(500_001))).unwrap();
    world.store.apply(&space, Op::Add { key: b"n", delta: 3 }).unwrap();
    world.store.apply(&space, Op::SetUntil { key: b"own", value: b"v", expires: Expires::In(7) }).unwrap();
    let mut ingest = crate::ingest::Ingest::begin(&world.store, &space).unwrap();
    ingest.put(b"pair", b"v").unwrap();
    Box::new(ingest).finish().unwrap();
    drop(space);
    world.reopen();
    let space = world.store.keyspace("sessions").unwrap();
    assert_eq!(space.ttl_ms(), Some(501));
    world.store.apply(&space, Op::Set { key: b"after", value: b"v" }).unwrap();
    let all = |world: &World| {
        [&b"before"[..], b"n", b"own", b"pair", b"after"].map(|key| expires(world, &space, key))
    };
    let [ttl, own] = [1501, 1007].map(|ms| Some(Some(ms)));
    assert_eq!(all(&world), [Some(None), ttl, own, ttl, ttl]);
    world.set_clock(1501);
    assert_eq!(all(&world), [Some(None), None, None, None, None]);
    let outcome = world.store.apply(&space, Op::Add { key: b"n", delta: 3 }).unwrap();
    assert_eq!(outcome, Outcome::Added(3), "it counts from nothing");
    world.store.choose_ttl(&space, None).unwrap();
    world.store.apply(&space, Op::Set { key: b"after", value: b"v" }).unwrap();
    assert_eq!(expires(&world, &space, b"after"), Some(None));
    drop(space);
    world.reopen();
    assert_eq!(world.store.keyspace("sessions").unwrap().ttl_ms(), None);
}

/// A filter that drops values which begin with `drop`, and changes those that begin with `new`.
pub(super) fn values_are_filtered() {
    let decide = |space: &str, key: &[u8], value: &[u8]| match value {
        [b'p', ..] => panic!("as it should"),
        [b'd', ..] if space == "default" && key != b"k\x09" => Verdict::Drop,
        [b'n', rest @ ..] => Verdict::Replace(rest.to_vec()),
        _ => Verdict::Keep,
    };
    let filter = Some(Filter::new(decide));
    let sizes =
        Options { memtable_bytes: 1 << 20, table_bytes: 16 << 20, filter, ..options(Durability::Memory) };
    let mut world = World::open(sizes);
    for (number, value) in (0..).zip(["keep", "drop", "new", "keep", "panic"]) {
        world.set(&[b'k', number], value.as_bytes(), (number == 2).then_some(5000));
    }
    world.set(&[b'k', 9], b"drop", None);
    let (snapshot, before) = (world.store.snapshot().unwrap(), world.map.clone());
    world.store.flush_all().unwrap();
    let change = |world: &mut World, number: u8, value: Option<&[u8]>| {
        let own = world.map.get_mut(&vec![b'k', number]).expect("it is there");
        match value {
            Some(value) => own.0 = value.to_vec(),
            None => drop(world.map.remove(&vec![b'k', number])),
        }
    };
    change(&mut world, 1, None);
    change(&mut world, 2, Some(b"ew"));
    let now = |world: &World| (world.store.view(&world.space), at(&world.map, world.now_ms));
    let both = |world: &World, what: &str| {
        check(&now(world).0, &now(world).1, what);
        check(&snapshot.view("default"), &before, "a snapshot");
    };
    both(&world, "after the flush");
    // In an older table there is a value that stays.
    world.set(&[b'k', 0], b"drop", None);
    world.set(&[b'k', 3], b"drop", None);
    world.store.flush_all().unwrap();
    change(&mut world, 0, None);
    change(&mut world, 3, None);
    both(&world, "after another flush");
    world.store.compact().unwrap();
    both(&world, "after a merge");
    world.set_clock(5000);
    both(&world, "what is replaced expires");
}

#[test]
fn a_filter_decides_which_values_stay() {
    values_are_filtered();
}
