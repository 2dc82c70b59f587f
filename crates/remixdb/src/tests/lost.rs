//! Damaged and missing tables: the reads of their partition fail, and everything else goes on.

use super::world::{Pairs, World, options};
use crate::compact::plan::TABLES_MAX;
use crate::disk::simulated::{Failure, Fault, Simulated, Times};
use crate::disk::{Kind, Name};
use crate::recover;
use forrest_engine::{Durability, Error, ErrorKind, Op, Options, Result, View as _};
use forrest_index::Direction;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

/// Pairs in order.
type Shown = Vec<(Vec<u8>, Vec<u8>)>;

type Files = Vec<(Name, Vec<u8>)>;

/// A keyspace, the bounds of one of its partitions, and the numbers of its tables.
type Place = (&'static str, Vec<u8>, Option<Vec<u8>>, Vec<u64>);

const SPACES: [&str; 2] = ["default", "other"];

fn key(number: u32) -> Vec<u8> {
    format!("key{number:04}").into_bytes()
}

fn small() -> Options {
    Options { memtable_bytes: 1 << 20, ..options(Durability::Sync) }
}

/// A store in use, and what it should hold.
struct Used {
    disk: Simulated,
    world: World,
    pairs: BTreeMap<&'static str, Pairs>,
}

impl Used {
    fn open(files: Files, pairs: BTreeMap<&'static str, Pairs>) -> Used {
        Used::on(Simulated::from_files(files), &small(), pairs)
    }

    fn on(disk: Simulated, options: &Options, pairs: BTreeMap<&'static str, Pairs>) -> Used {
        let world = World::open(&disk, options).expect("it opens, whatever the tables are");
        Used { disk, world, pairs }
    }

    fn again(self) -> Used {
        let Used { disk, world, pairs } = self;
        drop(world);
        Used::open(disk.files(), pairs)
    }

    fn set(&mut self, space: &'static str, number: u32, value: &[u8]) {
        let at = self.world.store.keyspace(space).unwrap();
        self.world.store.apply(&at, Op::Set { key: &key(number)[..], value }).unwrap();
        self.pairs.get_mut(space).unwrap().insert(key(number), value.to_vec());
    }

    /// Deletes a key blindly.
    fn delete(&mut self, space: &'static str, number: u32) {
        let at = self.world.store.keyspace(space).unwrap();
        let _applied = self.world.store.write(&[(&at, Op::Delete { key: &key(number)[..] })], None).unwrap();
        self.pairs.get_mut(space).unwrap().remove(&key(number));
    }

    fn get(&self, space: &str, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let view = self.world.store.view(&self.world.store.keyspace(space).unwrap());
        let found = view.get(key)?.map(|value| value.to_vec());
        assert_eq!(view.multi_get(&[key]).unwrap()[0].as_deref(), found.as_deref());
        Ok(found)
    }

    /// What a scan shows, and how it ends.
    fn scan(
        &self,
        space: &str,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> (Shown, Result<()>) {
        let view = self.world.store.view(&self.world.store.keyspace(space).unwrap());
        let mut pairs = Vec::new();
        let end = view.scan(bounds, direction, |key, value| {
            pairs.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        });
        if direction == Direction::Backward {
            pairs.reverse();
        }
        (pairs, end)
    }

    /// The partitions of both keyspaces.
    fn places(&self) -> Vec<Place> {
        let version = self.world.store.version();
        let mut places = Vec::new();
        for space in SPACES {
            let id = self.world.store.keyspace(space).unwrap().id;
            let partitions = version.partitions(id);
            for (at, partition) in partitions.iter().enumerate() {
                let end = partitions.get(at + 1).map(|next| next.low.clone());
                places.push((space, partition.low.clone(), end, partition.files().tables));
            }
        }
        places
    }

    fn expected(&self, space: &str, bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> Shown {
        let all = self.pairs[space].range::<[u8], _>(bounds);
        all.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// All places can be read, except that of the table `lost`, whose scans fail.
    fn check(&self, lost: Name, what: &str) {
        let is_right = |error: &Error| {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
            assert!(error.message().starts_with(&lost.to_string()), "{what}: {error}");
        };
        let mut met = 0;
        for (space, low, end, tables) in self.places() {
            let bounds =
                (Bound::Included(&low[..]), end.as_deref().map_or(Bound::Unbounded, Bound::Excluded));
            let expected = self.expected(space, bounds);
            let is_lost = tables.contains(&lost.number);
            met += usize::from(is_lost);
            for direction in [Direction::Forward, Direction::Backward] {
                let (found, ended) = self.scan(space, bounds, direction);
                if is_lost {
                    is_right(&ended.expect_err("a scan of what is lost"));
                    assert!(found.is_empty(), "{what}: {found:?}");
                } else {
                    ended.unwrap_or_else(|error| panic!("{what}: {space} from {low:?}: {error}"));
                    assert_eq!(found, expected, "{what}");
                }
            }
            for (key, value) in &expected {
                match self.get(space, key) {
                    Ok(found) => assert_eq!(found.as_ref(), Some(value), "{what}"),
                    Err(error) if is_lost => is_right(&error),
                    Err(error) => panic!("{what}: {error}"),
                }
            }
            // What is before and after the place is shown, and then the error.
            if is_lost {
                let before = (Bound::Unbounded, Bound::Excluded(&low[..]));
                let (found, ended) =
                    self.scan(space, (Bound::Unbounded, Bound::Unbounded), Direction::Forward);
                assert_eq!(found, self.expected(space, before), "{what}");
                is_right(&ended.expect_err("a scan into what is lost"));
                let (found, ended) =
                    self.scan(space, (Bound::Unbounded, Bound::Unbounded), Direction::Backward);
                let after =
                    end.as_deref().map(|end| self.expected(space, (Bound::Included(end), Bound::Unbounded)));
                assert_eq!(found, after.unwrap_or_default(), "{what}");
                is_right(&ended.expect_err("a scan back into what is lost"));
            }
        }
        assert_eq!(met, 1, "{what}");
        is_right(&self.world.store.verify().expect_err("it verifies"));
        self.world.store.stats().expect("stats of what is there");
        is_right(&self.world.checkpoint(&Simulated::new()).expect_err("a copy of what is lost"));
        self.world.store.log().check().unwrap_or_else(|error| panic!("{what}: {error}"));
    }

    fn file(&self, name: Name) -> Option<Vec<u8>> {
        self.disk.files().into_iter().find(|(other, _)| *other == name).map(|(_, bytes)| bytes)
    }
}

/// A store with several partitions of several tables in two keyspaces.
fn store() -> (Files, BTreeMap<&'static str, Pairs>) {
    let pairs = SPACES.iter().map(|&space| (space, Pairs::new())).collect();
    let mut used = Used::open(Vec::new(), pairs);
    for space in SPACES {
        for number in (0..240).step_by(2) {
            used.set(space, number, &[number as u8; 20]);
        }
    }
    used.world.store.compact().unwrap();
    used.world.store.flush_all().unwrap();
    for round in 1..3u32 {
        for number in (0..240).step_by(7 + round as usize) {
            used.set("default", number, &[round as u8; 9]);
            used.delete("default", number + 2);
        }
        used.world.store.flush_all().unwrap();
    }
    let places = used.places();
    assert!(places.iter().filter(|(space, ..)| *space == "default").count() > 2, "{places:?}");
    assert!(places.iter().any(|(.., tables)| tables.len() > 2), "{places:?}");
    let Used { disk, world, pairs } = used;
    drop(world);
    (disk.files(), pairs)
}

/// Everything that makes a table one that cannot be opened.
fn damages(bytes: &[u8]) -> Vec<(&'static str, Option<Vec<u8>>)> {
    let mut flipped = bytes.to_vec();
    let footer = flipped.len() - 60;
    flipped[footer] ^= 4;
    let longer = [bytes, &[0; 4096][..]].concat();
    vec![
        ("flipped", Some(flipped)),
        ("cut", Some(bytes[..bytes.len() - 1].to_vec())),
        ("empty", Some(Vec::new())),
        ("longer", Some(longer)),
        ("missing", None),
    ]
}

#[test]
fn a_damaged_table_fails_the_reads_of_its_range_only() {
    let (files, pairs) = store();
    for (at, (name, bytes)) in files.iter().enumerate().filter(|(_, (name, _))| name.kind == Kind::Table) {
        for (how, damaged) in damages(bytes) {
            let what = format!("{name} {how}");
            let mut files = files.clone();
            match &damaged {
                Some(damaged) => files[at].1.clone_from(damaged),
                None => drop(files.remove(at)),
            }
            let mut used = Used::open(files, pairs.clone());
            used.check(*name, &what);
            // Writes everywhere, in memory, in tables, and after opening again.
            for round in 0..3 {
                for number in (round..240).step_by(40) {
                    used.set("default", number, b"new");
                    used.set("other", number, b"new");
                    assert_eq!(used.get("default", &key(number)).unwrap().as_deref(), Some(&b"new"[..]));
                }
                if round > 0 {
                    used.world.store.flush_all().unwrap();
                }
                let error = used.world.store.compact().unwrap_err();
                assert!(error.message().starts_with(&name.to_string()), "{what}: {error}");
                while used.world.store.step().unwrap() {}
                assert!(
                    !used.world.store.compact_worn().unwrap() && !used.world.store.compact_dead().unwrap()
                );
                used = used.again();
                for number in (round..240).step_by(40) {
                    assert_eq!(used.get("default", &key(number)).unwrap().as_deref(), Some(&b"new"[..]));
                }
                used.check(*name, &what);
                assert_eq!(used.file(*name), damaged, "{what}: the damaged file was changed");
            }
        }
    }
}

/// Pairs in memory before a range that is lost are shown, and a range that ends before it is not touched.
#[test]
fn a_scan_shows_what_is_before_the_damage() {
    let (files, pairs) = store();
    let places = Used::open(files.clone(), pairs.clone()).places();
    let (space, low, end, tables) = places[1].clone();
    let name = Name::table(tables[0]);
    let mut used = Used::open(files.into_iter().filter(|(other, _)| *other != name).collect(), pairs);
    let at = used.world.store.keyspace(space).unwrap();
    // Between the last key in the tables before it and the lost range.
    let before = used.expected(space, (Bound::Unbounded, Bound::Excluded(&low[..]))).pop().unwrap().0;
    let between = [&before[..], b"+"].concat();
    assert!(between < low);
    let end = end.expect("it is not the last");
    for key in [&between, &end] {
        used.world.store.apply(&at, Op::Set { key: &key[..], value: b"x" }).unwrap();
        used.pairs.get_mut(space).unwrap().insert(key.clone(), b"x".to_vec());
    }
    used.check(name, "pairs in memory");
    for bound in [Bound::Excluded(&low[..]), Bound::Included(&between[..])] {
        let bounds = (Bound::Unbounded, bound);
        let (found, ended) = used.scan(space, bounds, Direction::Forward);
        ended.unwrap();
        assert_eq!(found, used.expected(space, bounds));
    }
    let bounds = (Bound::Included(&end[..]), Bound::Unbounded);
    let (found, ended) = used.scan(space, bounds, Direction::Backward);
    ended.unwrap();
    assert_eq!(found, used.expected(space, bounds));
    // Many deleted keys before the range: what a scan remembers of them does not hide the range.
    for (key, _) in used.expected(space, (Bound::Unbounded, Bound::Excluded(&low[..]))) {
        let _applied = used.world.store.write(&[(&at, Op::Delete { key: &key[..] })], None).unwrap();
        used.pairs.get_mut(space).unwrap().remove(&key);
    }
    for _ in 0..3 {
        used.check(name, "deleted keys");
    }
}

/// A reader beside a writer opens the store as well, and follows it.
#[test]
fn a_reader_beside_a_writer_meets_the_same_damage() {
    let (files, pairs) = store();
    let places = Used::open(files.clone(), pairs.clone()).places();
    let name = Name::table(places[1].3[0]);
    let files = files.into_iter().filter(|(other, _)| *other != name).collect();
    let mut writer = Used::open(files, pairs.clone());
    let open = |disk: &Simulated, pairs: &BTreeMap<&'static str, Pairs>| {
        let world = World::open(disk, &Options { read_only: true, ..small() }).expect("it opens");
        Used { disk: disk.clone(), world, pairs: pairs.clone() }
    };
    let mut reader = open(&writer.disk, &pairs);
    reader.check(name, "a reader");
    for round in 0..3 {
        for number in (0..240).step_by(31) {
            writer.set("default", number, &[round; 5]);
        }
        writer.world.store.flush_all().unwrap();
        reader.check(name, "before it is refreshed");
        recover::refresh(&reader.world.store).unwrap();
        reader.pairs = writer.pairs.clone();
        reader.check(name, "a refreshed reader");
        open(&writer.disk, &writer.pairs).check(name, "a new reader");
    }
}

/// A reader knows after its opening which tables are lost, and does not look for them again and again.
#[test]
fn a_reader_follows_a_writer_beside_a_lost_table_at_once() {
    let ios_of_refresh = |files: &Files, pairs: &BTreeMap<&'static str, Pairs>| {
        let mut writer = Used::open(files.clone(), pairs.clone());
        let options = Options { read_only: true, ..small() };
        let reader = World::open(&writer.disk, &options).expect("it opens");
        writer.set("default", 3, b"new");
        writer.world.store.flush_all().unwrap();
        let before = writer.disk.ios();
        recover::refresh(&reader.store).unwrap();
        writer.disk.ios() - before
    };
    let (files, pairs) = store();
    let places = Used::open(files.clone(), pairs.clone()).places();
    let whole = ios_of_refresh(&files, &pairs);
    for table in &places[1].3 {
        let lost = Name::table(*table);
        let files = files.iter().filter(|(name, _)| *name != lost).cloned().collect();
        let ios = ios_of_refresh(&files, &pairs);
        assert!(ios <= whole + 10, "{ios} I/Os without {lost}, {whole} with it");
    }
}

/// One partition of three tables, the oldest of which has many pages; its name and the number of its pages.
fn large() -> (Options, Files, BTreeMap<&'static str, Pairs>, Name, u64) {
    let options = Options { table_bytes: 1 << 20, ..small() };
    let pairs = SPACES.iter().map(|&space| (space, Pairs::new())).collect();
    let mut used = Used::on(Simulated::new(), &options, pairs);
    (0..600).for_each(|number| used.set("default", number, &[number as u8; 50]));
    used.world.store.compact().unwrap();
    for round in 0..2u8 {
        (0..600).step_by(90).for_each(|number| used.set("default", number, &[round; 9]));
        used.world.store.flush_all().unwrap();
    }
    let tables = &used.places()[0].3;
    assert_eq!(tables.len(), 3);
    let name = Name::table(tables[0]);
    let pages = used.file(name).unwrap().len() as u64 / 4096;
    assert!(pages >= 8, "{pages}");
    let Used { disk, world, pairs } = used;
    drop(world);
    (options, disk.files(), pairs, name, pages)
}

/// A page that the device does not return fails the reads that need it, with the device's error. Flushes and merges go
/// on around it, and try it seldom. Once it can be read again, everything is as if nothing had been.
#[test]
fn a_page_that_cannot_be_read_may_come_back() {
    let (options, files, pairs, name, pages) = large();
    for (page, reopened) in (0..pages).flat_map(|page| [(page, false), (page, true)]) {
        let what = format!("page {page} of {pages}");
        let is_right = |error: &Error| {
            assert_eq!(error.kind(), ErrorKind::Io, "{what}: {error}");
            assert!(error.message().starts_with(&format!("reading {name}")), "{what}: {error}");
        };
        let disk = Simulated::from_files(files.clone());
        disk.make_unreadable(name, page * 4096..(page + 1) * 4096);
        let mut used = Used::on(disk, &options, pairs.clone());
        let is_lost = used.world.store.has_lost();
        let mut wrong = 0;
        for (key, value) in &pairs["default"] {
            match used.get("default", key) {
                Ok(found) => assert_eq!(found.as_ref(), Some(value), "{what}"),
                Err(error) => {
                    is_right(&error);
                    wrong += 1;
                }
            }
        }
        assert!(wrong > 0, "{what}");
        is_right(&used.world.store.verify().expect_err("it verifies"));
        used.world.store.stats().unwrap_or_else(|error| panic!("{what}: {error}"));
        let refused = used.disk.refused_reads();
        for round in 0..60u32 {
            used.set("default", round % 7 * 80, &round.to_be_bytes());
            used.set("other", round, b"other");
            used.world.store.flush_all().unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(used.places()[0].3.len() <= TABLES_MAX + 4, "{what}: {:?}", used.places());
        }
        let refused = used.disk.refused_reads() - refused;
        assert!(refused < 20, "{what}: it was tried {refused} times in 60 flushes");
        is_right(&used.world.store.compact().unwrap_err());
        while used.world.store.step().unwrap() {}
        assert!(!used.world.store.compact_worn().unwrap() && !used.world.store.compact_dead().unwrap());
        used.world.store.log().check().unwrap_or_else(|error| panic!("{what}: {error}"));
        used.disk.heal();
        if is_lost || reopened {
            used = used.again();
        }
        // In every other case, flushes find out by themselves.
        if page % 2 == 1 {
            for round in 0..60u32 {
                used.set("default", round % 7 * 80, &round.to_be_bytes());
                used.world.store.flush_all().unwrap_or_else(|error| panic!("{what}: {error}"));
            }
            assert!(used.world.store.version().each().all(|(_, one)| one.damage().is_none()), "{what}");
        }
        used.world.store.compact().unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(used.file(name).is_none(), "{what}: its table was not merged");
        used.world.store.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
        let all = (Bound::Unbounded, Bound::Unbounded);
        let (found, ended) = used.scan("default", all, Direction::Forward);
        ended.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(found, used.expected("default", all), "{what}");
    }
}

/// A device may also fail to open a file, or to measure it.
#[test]
fn a_table_that_cannot_be_opened_is_lost_until_the_store_is_opened_again() {
    let (options, files, pairs, ..) = large();
    let mut lost = 0;
    for at in 0.. {
        let disk = Simulated::from_files(files.clone());
        disk.fail(Fault { at, times: Times::Once, kind: Failure::Eio });
        let opened = World::open(&disk, &options);
        if disk.struck() == 0 {
            break;
        }
        disk.heal();
        // The manifest and the logs are needed.
        let Ok(world) = opened else { continue };
        let used = Used { disk, world, pairs: pairs.clone() };
        lost += usize::from(used.world.store.has_lost());
        let used = used.again();
        used.world.store.verify().unwrap();
        used.world.store.compact().unwrap();
    }
    assert!(lost > 5, "{lost}");
}

/// A range with a damaged table takes any number of changes, in a bounded number of tables.
#[test]
fn a_damaged_range_takes_changes_for_ever() {
    let (files, pairs) = store();
    let places = Used::open(files.clone(), pairs.clone()).places();
    let (space, low, ..) = places[1].clone();
    for table in 0..places[1].3.len() {
        let name = Name::table(places[1].3[table]);
        let files = files.iter().filter(|(other, _)| *other != name).cloned().collect();
        let mut used = Used::open(files, pairs.clone());
        let first = (0..240).find(|&number| key(number) >= low).unwrap();
        for round in 0..100u32 {
            used.set(space, first + round % 5, &round.to_be_bytes());
            if round % 3 == 0 {
                used.delete(space, first + round % 4);
            }
            used.world.store.flush_all().unwrap();
            if round % 40 == 39 {
                used = used.again();
            }
            let tables = used.places()[1].3.len();
            assert!(tables <= TABLES_MAX + 4, "{tables} tables");
        }
        for number in first..first + 5 {
            let expected = used.pairs[space].get(&key(number)).cloned();
            assert_eq!(used.get(space, &key(number)).unwrap(), expected);
        }
        used.check(name, "after many changes");
    }
}

/// A page that is wrong in the middle of a table: flushes and merges that meet it go on around it, and nothing that was
/// written is lost or replaced.
#[test]
fn a_damaged_page_stops_no_flush_and_no_merge() {
    let (files, pairs) = store();
    for (at, (name, bytes)) in files.iter().enumerate().filter(|(_, (name, _))| name.kind != Kind::Log) {
        if name.kind == Kind::Manifest {
            continue;
        }
        for page in 0..bytes.len().div_ceil(4096) {
            let what = format!("{name} page {page}");
            let mut files = files.clone();
            files[at].1[page * 4096 + 17] ^= 2;
            let damaged = files[at].1.clone();
            let mut used = Used::open(files, pairs.clone());
            for round in 0..40u32 {
                for number in (round % 8..240).step_by(40) {
                    used.set("default", number, &round.to_be_bytes());
                }
                used.world.store.flush_all().unwrap_or_else(|error| panic!("{what}: {error}"));
                if round % 15 == 14 {
                    let compacted = used.world.store.compact();
                    assert!(compacted.is_ok() || name.kind == Kind::Table, "{what}: {compacted:?}");
                    while used.world.store.step().unwrap() {}
                }
                if round % 20 == 19 {
                    used = used.again();
                }
            }
            used.world.store.log().check().unwrap_or_else(|error| panic!("{what}: {error}"));
            let most = used.places().iter().map(|(.., tables)| tables.len()).max().unwrap();
            assert!(most < 40, "{what}: {most} tables");
            let is_table = name.kind == Kind::Table;
            if is_table && used.places().iter().any(|(.., tables)| tables.contains(&name.number)) {
                assert_eq!(used.file(*name), Some(damaged), "{what}");
                used.world.store.verify().expect_err("it verifies");
            }
            let mut wrong = 0;
            for space in SPACES {
                for number in 0..240 {
                    match used.get(space, &key(number)) {
                        Ok(found) => {
                            assert_eq!(found.as_ref(), used.pairs[space].get(&key(number)), "{what}")
                        }
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
                            wrong += 1;
                        }
                    }
                }
            }
            assert!(is_table || wrong == 0, "{what}: {wrong} keys cannot be read");
        }
    }
}
