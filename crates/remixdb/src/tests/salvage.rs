//! Salvage: of a store with any damage, everything outside of the reported ranges is exactly what it was, and what is
//! inside is something that once was there, or nothing.

use super::world::{Content, Pairs, World, options, salvaged_to};
use crate::disk::simulated::{Failure, Fault, Simulated, Times};
use crate::disk::{self, Kind, Name, Sealed};
use crate::manifest::{self, Manifest, ManifestState};
use crate::record::HEADER;
use crate::salvage::{Loss, Salvaged, copy};
use forrest_engine::{Durability, ErrorKind, MAX_KEY_BYTES, Op, Options, Result};
use forrest_testing::sized;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow, RangeBounds};
use std::sync::Arc;

type Files = Vec<(Name, Vec<u8>)>;

/// Everything that a key ever had, by keyspace.
type Past = BTreeMap<String, BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>>;

/// A store, what it has, and what it ever had.
struct Old {
    files: Files,
    content: Content,
    past: Past,
}

fn small() -> Options {
    Options { memtable_bytes: 1 << 20, ..options(Durability::Sync) }
}

/// Makes a store with two keyspaces of several partitions and tables, a dropped one, and logs.
struct Making {
    world: World,
    content: Content,
    past: Past,
}

impl Making {
    fn set(&mut self, space: &str, number: u32, value: &[u8]) {
        let key = format!("key{number:04}").into_bytes();
        let at = self.world.store.keyspace(space).unwrap();
        self.world.store.apply(&at, Op::Set { key: &key[..], value }).unwrap();
        self.past.entry(space.into()).or_default().entry(key.clone()).or_default().insert(value.to_vec());
        self.content.entry(space.into()).or_default().insert(key, value.to_vec());
    }

    fn delete(&mut self, space: &str, number: u32) {
        let key = format!("key{number:04}").into_bytes();
        let at = self.world.store.keyspace(space).unwrap();
        self.world.store.apply(&at, Op::Delete { key: &key[..] }).unwrap();
        self.content.entry(space.into()).or_default().remove(&key);
    }
}

fn store() -> Old {
    let disk = Simulated::new();
    let world = World::open(&disk, &small()).unwrap();
    let content = Content::from([("default".to_string(), Pairs::new())]);
    let mut making = Making { world, content, past: Past::new() };
    for space in ["other", "default", "gone"] {
        for number in (0..200).step_by(2) {
            making.set(space, number, &[number as u8; 24]);
        }
    }
    making.world.store.compact().unwrap();
    making.set("default", 7, &[5; 9_000]);
    for round in 0..3u32 {
        for number in (round..200).step_by(9) {
            making.set("default", number, &[round as u8; 11]);
            making.delete("default", number + 2);
        }
        making.set("other", 100 + round, b"new");
        making.world.store.flush_all().unwrap();
    }
    making.world.store.settle().unwrap();
    // What is in logs only: two of them, and one is half in tables.
    making.world.store.drop_space("gone").unwrap();
    making.content.remove("gone");
    for number in (0..60).step_by(5) {
        making.set("default", number, b"in a log");
        making.delete("other", number * 2);
    }
    let mut order = making.world.store.order();
    making.world.store.freeze(&mut order).unwrap();
    drop(order);
    for number in (0..60).step_by(7) {
        making.set("late", number, b"in another log");
        making.set("default", number, b"in another log");
    }
    // Nothing states that the last record was synced. It changes nothing.
    making.set("late", 0, b"in another log");
    let Making { world, content, past } = making;
    assert_eq!(world.content().unwrap(), content);
    drop(world);
    let files = disk.files();
    for (kind, least) in [(Kind::Table, 6), (Kind::Remix, 1), (Kind::Log, 2), (Kind::Manifest, 1)] {
        assert!(files.iter().filter(|(name, _)| name.kind == kind).count() >= least, "{kind:?}");
    }
    Old { files, content, past }
}

fn salvaged(from: &Simulated) -> Result<(Simulated, Salvaged)> {
    let to = Simulated::new();
    let before = from.files();
    let salvaged = salvaged_to(from.clone(), &to)?;
    assert!(from.files() == before, "the old store was written to");
    Ok((to, salvaged))
}

impl Old {
    /// Salvages damaged files, and checks the result. Returns what was lost.
    fn check(&self, files: Files, what: &str) -> Result<Vec<Loss>> {
        self.check_on(&Simulated::from_files(files), what).map(|salvaged| salvaged.lost)
    }

    /// The same for a disk.
    fn check_on(&self, from: &Simulated, what: &str) -> Result<Salvaged> {
        let (to, salvaged) = salvaged(from)?;
        let Salvaged { lost, pairs, keyspaces, .. } = &salvaged;
        let world = World::open(&to, &small()).unwrap_or_else(|error| panic!("{what}: {error}"));
        world.store.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = world.content().unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(*pairs, found.values().map(|pairs| pairs.len() as u64).sum::<u64>(), "{what}");
        assert_eq!(*keyspaces, found.len() as u64, "{what}");
        let nothing = Pairs::new();
        let names: BTreeSet<&String> = self.content.keys().chain(found.keys()).collect();
        for name in names {
            let (expected, found) =
                (self.content.get(name).unwrap_or(&nothing), found.get(name).unwrap_or(&nothing));
            let keys: BTreeSet<&Vec<u8>> = expected.keys().chain(found.keys()).collect();
            for key in keys {
                let is_nameless = found.is_empty();
                let of_key = |loss: &&Loss| {
                    (loss.keyspace == *name && loss.range.contains(key))
                        || (is_nameless && loss.keyspace == "(unknown)")
                };
                match lost.iter().find(of_key) {
                    None => assert_eq!(found.get(key), expected.get(key), "{what}: {name} {key:?}, {lost:?}"),
                    Some(_) => {
                        let past = match name.strip_prefix("keyspace-") {
                            Some(id) => ["default", "other", "gone", "late"][id.parse::<usize>().unwrap()],
                            None => name,
                        };
                        let had = |value: &Vec<u8>| self.past[past][key].contains(value);
                        assert!(found.get(key).is_none_or(had), "{what}: {name} {key:?}");
                    }
                }
            }
        }
        Ok(salvaged)
    }

    fn damaged(&self, at: usize, change: impl FnOnce(&mut Vec<u8>)) -> Files {
        let mut files = self.files.clone();
        change(&mut files[at].1);
        files
    }
}

/// The bytes that are changed: the ends of the file, and some between.
fn places(len: usize, every: usize) -> impl Iterator<Item = usize> {
    (0..len).filter(move |at| at % every == 0 || *at < 16 || at + 140 > len && at % 5 == 0)
}

#[test]
fn an_undamaged_store_is_copied_whole() {
    let old = store();
    assert_eq!(old.check(old.files.clone(), "whole").unwrap(), []);
    // One that was never closed as well.
    let disk = Simulated::from_files(old.files.clone());
    let world = World::open(&disk, &small()).unwrap();
    world.store.compact().unwrap();
    assert_eq!(old.check(disk.files(), "compacted, and open").unwrap(), []);
}

/// A bit of some bytes of every file, about each `every`-th one.
pub(super) fn flipped_bits(every: usize) {
    let old = store();
    for (at, (name, bytes)) in old.files.iter().enumerate() {
        let mut noticed = 0;
        let mut all = 0;
        for byte in places(bytes.len(), every) {
            let what = format!("{name} byte {byte}");
            let files = old.damaged(at, |bytes| bytes[byte] ^= 1 << (byte % 8));
            all += 1;
            match old.check(files, &what) {
                Ok(lost) => {
                    noticed += usize::from(!lost.is_empty());
                    let is_named = |loss: &Loss| loss.file == name.to_string();
                    // Only what nothing has is lost because of one file.
                    assert!(
                        lost.iter().all(|loss| is_named(loss) || loss.file.ends_with("log")),
                        "{what}: {lost:?}"
                    );
                    assert!(name.kind != Kind::Remix || lost.is_empty(), "{what}: {lost:?}");
                }
                Err(error) => {
                    assert_eq!(
                        (name.kind, error.kind()),
                        (Kind::Manifest, ErrorKind::Corrupt),
                        "{what}: {error}"
                    );
                }
            }
        }
        // A table has unused bytes in no page: each is covered.
        assert!(name.kind != Kind::Table || noticed == all, "{name}: {noticed} of {all}");
    }
}

#[test]
fn what_is_intact_is_copied_from_a_store_with_a_flipped_bit() {
    flipped_bits(sized(307, 211));
}

/// A block that the device does not return is damage, and the rest of its file is copied.
#[test]
fn what_can_be_read_is_copied_from_a_store_with_unreadable_blocks() {
    let old = store();
    for (name, bytes) in &old.files {
        for block in 0..(bytes.len() as u64).div_ceil(4096) {
            let what = format!("{name} block {block}");
            let from = Simulated::from_files(old.files.clone());
            from.make_unreadable(*name, block * 4096..(block + 1) * 4096);
            match old.check_on(&from, &what) {
                Ok(Salvaged { lost, .. }) => {
                    assert_eq!(lost.is_empty(), name.kind == Kind::Remix, "{what}: {lost:?}")
                }
                Err(error) => {
                    assert_eq!((name.kind, error.kind()), (Kind::Manifest, ErrorKind::Corrupt), "{what}")
                }
            }
        }
    }
}

/// Records of a log before and after blocks that cannot be read are copied.
#[test]
fn a_log_is_read_around_blocks_that_cannot_be_read() {
    let disk = Simulated::new();
    let world = World::open(&disk, &small()).unwrap();
    let content = Content::from([("default".to_string(), Pairs::new())]);
    let mut making = Making { world, content, past: Past::new() };
    (0..900).for_each(|number| making.set("default", number, &[number as u8; 40]));
    let Making { world, content, past } = making;
    drop(world);
    let old = Old { files: disk.files(), content, past };
    let logs = old.files.iter().filter(|(name, _)| name.kind == Kind::Log);
    let (name, bytes) = logs.max_by_key(|(_, bytes)| bytes.len()).unwrap();
    let blocks = bytes.len() as u64 / 4096;
    assert!(blocks > 10, "{blocks}");
    for block in 0..blocks {
        let from = Simulated::from_files(old.files.clone());
        from.make_unreadable(*name, block * 4096 + 100..(block + 2) * 4096 - 100);
        let Salvaged { pairs, lost, .. } = old.check_on(&from, &format!("block {block}")).unwrap();
        assert!((600..900).contains(&pairs), "block {block}: {pairs} pairs");
        let is_said =
            |loss: &Loss| loss.reason.contains("reading") && loss.reason.contains("intact are copied");
        assert!(lost.iter().any(is_said), "{lost:?}");
    }
}

/// The newest manifest has lost its beginning, and an older one is still there because a reader holds it.
#[test]
fn an_older_manifest_has_what_a_newer_one_has_lost() {
    let disk = Simulated::new();
    let world = World::open(&disk, &small()).unwrap();
    let content = Content::from([("default".to_string(), Pairs::new())]);
    let mut making = Making { world, content, past: Past::new() };
    (0..20).for_each(|number| making.set("default", number, b"once"));
    let mut manifests = Vec::new();
    let mut holds = Vec::new();
    for round in 0..4u32 {
        (0..80).for_each(|number| making.set("other", number * 2 + round % 2, &[round as u8; 30]));
        making.world.store.flush_all().unwrap();
        let newest = disk.files().into_iter().map(|(name, _)| name).rfind(|name| name.kind == Kind::Manifest);
        manifests.push(newest.unwrap());
        if round == 1 {
            holds.push(disk::hold(&disk, manifests[1]).unwrap().expect("it is there"));
        }
    }
    let Making { world, content, past } = making;
    drop(world);
    let old = Old { files: disk.files(), content, past };
    let (held, newest) = (manifests[1], manifests[3]);
    let place = |name: Name| old.files.iter().position(|(other, _)| *other == name).expect("it is there");
    assert!(held < newest && place(held) < place(newest));
    let damaged = old.damaged(place(newest), |bytes| bytes[64 + 30] ^= 1);
    let from = Simulated::from_files(damaged.clone());
    let Salvaged { pairs, lost, .. } = old.check_on(&from, "with the older manifest").unwrap();
    assert_eq!(pairs, 180, "{lost:?}");
    assert!(lost.iter().all(|loss| loss.file == newest.to_string()) && !lost.is_empty(), "{lost:?}");
    // Without it, the tables that only the beginning named are lost.
    let without: Files = damaged.into_iter().filter(|(name, _)| *name != held).collect();
    let from = Simulated::from_files(without);
    assert!(old.check_on(&from, "without it").unwrap().pairs <= 160);
}

#[test]
fn what_is_intact_is_copied_from_a_store_with_a_missing_or_cut_file() {
    let old = store();
    let newest = old.files.iter().map(|(name, _)| *name).rfind(|name| name.kind == Kind::Log).unwrap();
    for (at, (name, bytes)) in old.files.iter().enumerate() {
        let mut files = old.files.clone();
        files.remove(at);
        let lost = match name.kind {
            // Nothing names the newest log.
            Kind::Log if *name == newest => continue,
            Kind::Manifest => {
                assert_eq!(old.check(files, "no manifest").unwrap_err().kind(), ErrorKind::Corrupt);
                continue;
            }
            _ => old.check(files, &format!("{name} is missing")).unwrap(),
        };
        assert_eq!(lost.is_empty(), name.kind == Kind::Remix, "{name}: {lost:?}");
        for len in places(bytes.len(), sized(307, 211)).filter(|_| name.kind != Kind::Log || *name != newest)
        {
            match old.check(old.damaged(at, |bytes| bytes.truncate(len)), &format!("{name} cut to {len}")) {
                Ok(_) => {}
                Err(error) => assert_eq!((name.kind, error.kind()), (Kind::Manifest, ErrorKind::Corrupt)),
            }
        }
    }
}

/// Logs that were never synced, of which one has lost its beginning, or is missing. A keyspace that only the first of
/// them names has old values then, and that is reported too.
#[test]
fn what_logs_have_lost_is_reported_of_every_keyspace() {
    let disk = Simulated::new();
    let world = World::open(&disk, &Options { durability: Some(Durability::Buffered), ..small() }).unwrap();
    let content = ["default", "other", "gone"].map(|name| (name.to_string(), Pairs::new())).into();
    let mut making = Making { world, content, past: Past::new() };
    for space in ["other", "gone"] {
        making.world.store.keyspace(space).unwrap();
    }
    for round in 0..3u8 {
        for number in 0..60 {
            making.set("late", number, &[round; 24]);
            making.set("default", number, &[round + 100; 24]);
        }
        making.delete("late", u32::from(round));
        let mut order = making.world.store.order();
        making.world.store.freeze(&mut order).unwrap();
    }
    (70..100).for_each(|number| making.set("late", number, b"last"));
    let Making { content, past, .. } = making;
    let old = Old { files: disk.files(), content, past };
    assert!(old.check(old.files.clone(), "nothing is damaged").unwrap().is_empty());
    let logs: Vec<usize> = (0..old.files.len())
        .filter(|&at| old.files[at].0.kind == Kind::Log && old.files[at].1.len() > 64)
        .collect();
    assert!(logs.len() >= 4, "{logs:?}");
    for &at in &logs {
        let name = old.files[at].0;
        let lost = old
            .check(old.damaged(at, |bytes| bytes.iter_mut().take(512).for_each(|byte| *byte = 0)), "")
            .unwrap();
        assert!(
            lost.iter().any(|loss| loss.keyspace == "late" || name == old.files[logs[0]].0),
            "{name}: {lost:?}"
        );
        assert!(!lost.is_empty(), "{name}");
    }
    for &at in &logs[1..logs.len() - 1] {
        let mut files = old.files.clone();
        let (name, _) = files.remove(at);
        let lost = old.check(files, "a log is missing").unwrap();
        assert!(lost.iter().any(|loss| loss.keyspace == "late"), "{name}: {lost:?}");
    }
}

/// Of a table with one damaged page, all other pages are copied, and the range that is reported is small.
#[test]
fn a_damaged_page_loses_little() {
    let disk = Simulated::new();
    let options = Options { table_bytes: 1 << 20, ..small() };
    let world = World::open(&disk, &options).unwrap();
    let content = Content::from([("default".to_string(), Pairs::new())]);
    let mut making = Making { world, content, past: Past::new() };
    for number in 0..1000 {
        making.set("default", number, &[number as u8; 40]);
    }
    making.world.store.compact().unwrap();
    let Making { world, content, past } = making;
    drop(world);
    let old = Old { files: disk.files(), content, past };
    let (at, (_, bytes)) =
        old.files.iter().enumerate().find(|(_, (name, _))| name.kind == Kind::Table).unwrap();
    let pages = bytes.len() / 4096;
    assert!(pages > 10, "{pages}");
    let mut few = 0;
    for page in 0..pages - 1 {
        let files = old.damaged(at, |bytes| bytes[page * 4096 + 1000] ^= 1);
        let lost = old.check(files, &format!("page {page}")).unwrap();
        let is_lost = |key: &Vec<u8>| lost.iter().any(|loss| loss.range.contains(key));
        let count = old.content["default"].keys().filter(|key| is_lost(key)).count();
        few += usize::from(count < 1000);
        assert!(count > 0 && (count < 400 || count == 1000), "{count} keys of page {page}");
    }
    assert!(few + 2 >= pages - 1, "{few} of {pages} pages");
}

/// A salvage that fails or is given up is an error, whatever fails. (The directory is removed: see `disk::unfinished`.)
#[test]
fn a_salvage_may_fail_and_be_given_up() {
    let old = store();
    let from = || Simulated::from_files(old.files.clone());
    let to = Simulated::new();
    let mut calls = 0;
    let ended = copy(Sealed::plain(from()), Sealed::plain(to), None, &mut |progress| {
        assert!(progress.done <= progress.whole * 2);
        calls += 1;
        if calls == 10 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Busy);
    let full = Simulated::with_capacity(4_000);
    let ended = salvaged_to(from(), &full);
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::OutOfSpace);
    // A device that cannot read a place for ever has damage there.
    for at in (0..60).step_by(7) {
        let from = from();
        from.fail(Fault { at, times: Times::Once, kind: Failure::Eio });
        let _either = salvaged_to(from, &Simulated::new());
    }
}

#[test]
fn a_half_open_range_has_the_same_keys() {
    let half_open = |from: Bound<&[u8]>, to: Bound<&[u8]>| {
        let range = (from.map(<[u8]>::to_vec), to.map(<[u8]>::to_vec));
        Loss { keyspace: String::new(), range, file: String::new(), reason: String::new() }.half_open()
    };
    let (longest, last) = (vec![b'a'; MAX_KEY_BYTES], vec![0xFF; MAX_KEY_BYTES]);
    assert_eq!(half_open(Bound::Unbounded, Bound::Unbounded), (vec![], None));
    assert_eq!(half_open(Bound::Included(b"a"), Bound::Excluded(b"b")), (b"a".to_vec(), Some(b"b".to_vec())));
    assert_eq!(
        half_open(Bound::Excluded(b"a"), Bound::Included(b"b")),
        (b"a\0".to_vec(), Some(b"b\0".to_vec()))
    );
    let after = [&longest[1..], b"b"].concat();
    let found = half_open(Bound::Excluded(&longest), Bound::Included(&longest));
    assert_eq!(found, (after.clone(), Some(after)));
    assert_eq!(half_open(Bound::Excluded(&last), Bound::Included(&last)), (last, None));
}

/// Cause: the statement after a record counted as one, so a manifest of which nothing was intact had an empty state.
#[test]
fn a_statement_alone_makes_no_state() {
    let disk = Simulated::new();
    let sealed = Arc::new(Sealed::plain(disk.clone()));
    Manifest::create(&sealed, 1, ManifestState { floor: 7, ..ManifestState::default() }).expect("it is made");
    let mut files = disk.files();
    let [(name, bytes)] = &mut files[..] else { panic!("there is one file") };
    let name = *name;
    bytes[HEADER + 20] ^= 1;
    let damaged = Sealed::plain(Simulated::from_files(files));
    let salvaged = manifest::salvage(&damaged, name, &ManifestState::default()).expect("it is read");
    assert!(salvaged.state.is_none() && !salvaged.begins && salvaged.damage.is_some());
}
