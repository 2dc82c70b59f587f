//! Blobs against a map of byte strings, in memory, on disk and through power cuts; and what goes wrong with them.

use super::{Random, homes};
#[cfg(feature = "simulated")]
use crate::simulated::{self, Simulated};
use crate::{
    Blob, Blobs, Capability, Db, ErrorKind, MAX_BLOB_KEY_BYTES, MAX_PIECE_BYTES, WriteBatch, WriteOptions,
    Written,
};
use forrest_testing::sized;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Read, Seek, SeekFrom, Write};
use std::ops::Range;
#[cfg(feature = "simulated")]
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

/// Small pieces, so that a blob of a few KiB has some.
const PIECE_BYTES: u32 = 1 << 10;

fn blobs(db: &Db) -> Blobs {
    db.blobs("blobs").and_then(|blobs| blobs.piece_bytes(PIECE_BYTES)).expect("a keyspace of blobs")
}

fn whole(mut blob: Blob) -> Vec<u8> {
    let mut bytes = Vec::new();
    blob.read_to_end(&mut bytes).expect("it can be read");
    assert_eq!(bytes.len() as u64, blob.len());
    bytes
}

fn content(blobs: &Blobs) -> Content {
    let lengths = blobs.range(..).collect::<crate::Result<Vec<_>>>().expect("they can be read");
    let read = |(key, len)| {
        let bytes = whole(blobs.get(&key).expect("it can be read").expect("it is there"));
        assert_eq!((bytes.len() as u64, blobs.blob_bytes(&key).expect("it can be read")), (len, Some(len)));
        (key, bytes)
    };
    lengths.into_iter().map(read).collect()
}

/// The ids of blobs that have pieces, and of those that are complete or being written.
fn ids(db: &Db) -> (BTreeSet<Vec<u8>>, BTreeSet<Vec<u8>>) {
    let (mut pieces, mut owners) = (BTreeSet::new(), BTreeSet::new());
    for entry in db.keyspace("blobs").expect("it is there").range(..) {
        let entry = entry.expect("it can be read");
        let (key, value) = (entry.key(), entry.value().expect("it can be read"));
        match key[0] {
            2 => drop(owners.insert(key[1..].to_vec())),
            3 => drop(pieces.insert(key[1..9].to_vec())),
            4 if value[8..16] != [0; 8] => drop(owners.insert(value[..8].to_vec())),
            _ => {}
        }
    }
    (pieces, owners)
}

fn bytes(random: &mut Random, most: usize) -> Vec<u8> {
    (0..random.below(most + 1)).map(|_| random.below(256) as u8).collect()
}

fn write(blobs: &Blobs, random: &mut Random, key: &[u8], bytes: &[u8]) -> crate::Result<()> {
    let mut writer = blobs.writer(key)?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(1 + random.below(rest.len()));
        writer.write_all(now).expect("there is room");
        rest = later;
    }
    assert_eq!(writer.written_bytes(), bytes.len() as u64);
    writer.finish()
}

/// Compares reads of all kinds with what a blob has.
fn read_at_random(mut blob: Blob, expected: &[u8], random: &mut Random) {
    for _ in 0..5 {
        let (at, len) = (random.below(expected.len() + 10), random.below(3 * PIECE_BYTES as usize));
        let rest = &expected[at.min(expected.len())..];
        let mut buffer = vec![0; len];
        let read = blob.read_at(at as u64, &mut buffer).expect("it can be read");
        assert_eq!(&buffer[..read], &rest[..len.min(rest.len())]);
        assert_eq!(blob.seek(SeekFrom::Start(at as u64)).unwrap(), at as u64);
        assert!(rest.starts_with(blob.fill_buf().expect("it can be read")));
        let mut read = Vec::new();
        blob.by_ref().take(len as u64).read_to_end(&mut read).expect("it can be read");
        assert_eq!(read, &rest[..len.min(rest.len())]);
    }
}

fn against_a_map(db: &Db, seed: u64) {
    let mut random = Random::new(seed);
    let (blobs, mut model) = (blobs(db), Content::new());
    for step in 0..sized(60, 300) {
        let key = bytes(&mut random, 2);
        match random.below(8) {
            0 => assert_eq!(
                blobs.delete(&key).unwrap(),
                model.remove(&key).is_some(),
                "seed {seed}, step {step}"
            ),
            1 => {
                let before = model.clone();
                let mut writer = blobs.writer(&key).unwrap();
                writer.write_all(&bytes(&mut random, 5_000)).unwrap();
                drop(writer);
                assert_eq!(content(&blobs), before, "seed {seed}, step {step}");
            }
            2 => {
                let snapshot = db.snapshot().unwrap();
                let old = model.get(&key).cloned();
                write(&blobs, &mut random, &key, b"new").unwrap();
                model.insert(key.clone(), b"new".to_vec());
                assert_eq!(snapshot.blob("blobs", &key).unwrap().map(whole), old, "seed {seed}, step {step}");
            }
            3 => match (blobs.get(&key).unwrap(), model.get(&key)) {
                (None, None) => {}
                (blob, expected) => read_at_random(blob.unwrap(), expected.unwrap(), &mut random),
            },
            _ => {
                let value = bytes(&mut random, 10_000);
                write(&blobs, &mut random, &key, &value).unwrap();
                model.insert(key, value);
            }
        }
    }
    assert_eq!(content(&blobs), model, "seed {seed}");
    let (pieces, owners) = ids(db);
    assert_eq!(pieces, owners, "seed {seed}");
}

#[test]
fn blobs_are_as_the_map() {
    as_the_map(0..sized(2, 6));
}

pub(super) fn as_the_map(seeds: Range<u64>) {
    for seed in seeds {
        for home in homes().iter().filter(|home| home.db.capabilities().has(Capability::Snapshots)) {
            against_a_map(&home.db, seed);
        }
    }
}

/// The first piece is applied, and its log cannot be written, so that the call fails. Whether the store makes it
/// durable later, and whether the caller gives the bytes again: a finished blob stays whole when the store is opened
/// again.
#[cfg(feature = "simulated")]
#[test]
fn a_first_piece_that_may_be_there_costs_no_blob() {
    first_pieces_that_may_be_there();
}

#[cfg(feature = "simulated")]
pub(super) fn first_pieces_that_may_be_there() {
    use crate::simulated::{Failure, Fault, Times};
    let builder = Db::builder().pages(crate::Pages::Plain).workers(1).durability(crate::Durability::Sync);
    let ways = [(false, true), (true, true), (false, false)];
    // The I/Os of the first piece and of the number that the blob gets before it.
    let mut failures = 0;
    for (later, (repeats, finishes)) in (0..6).flat_map(|later| ways.map(|way| (later, way))) {
        let disk = Simulated::new();
        let (db, _background) = simulated::open_unattended(disk.clone(), &builder).expect("a new store");
        let blobs = blobs(&db);
        let mut writer = blobs.writer("oak").expect("the key is short");
        db.set("the log", "has begun").expect("the disk works");
        disk.fail(Fault { at: disk.ios() + later, times: Times::Once, kind: Failure::Eio });
        let piece = [7; PIECE_BYTES as usize];
        let is_written = writer.write(&piece).is_ok();
        if disk.struck() == 0 {
            continue;
        }
        let mut expected = piece.to_vec();
        if !is_written {
            failures += 1;
            db.resume().expect("the disk works again");
            if !repeats {
                // Less than a piece: it comes with the end.
                expected = vec![9; PIECE_BYTES as usize / 2];
            }
            writer.write_all(&expected).expect("the disk works");
        }
        match finishes {
            true => writer.finish().expect("the disk works"),
            false => drop(writer),
        }
        drop((blobs, db));
        let (db, _background) = simulated::open_unattended(disk.kill(), &builder).expect("it opens");
        let blobs = self::blobs(&db);
        drop(blobs.writer("other").expect("the disk works"));
        let found = blobs.get("oak").expect("it can be read").map(whole);
        assert_eq!(found, finishes.then_some(expected), "I/O {later}, repeats: {repeats}");
        let (pieces, owners) = ids(&db);
        assert_eq!(pieces, owners, "I/O {later}, repeats: {repeats}");
    }
    assert!(failures >= 6, "{failures}");
}

/// After a power cut each blob is as it was after some step, since the last one that was durable, and nothing is left
/// of blobs that were being written.
#[cfg(feature = "simulated")]
#[test]
fn blobs_survive_power_cuts() {
    through_power_cuts(0..sized(3, 4));
}

#[cfg(feature = "simulated")]
pub(super) fn through_power_cuts(seeds: Range<u64>) {
    let small = Db::builder().pages(crate::Pages::Plain).memtable_bytes(16 << 10).table_bytes(8 << 10);
    let builder = small.workers(1).durability(crate::Durability::Buffered).large_values(512);
    for seed in seeds {
        let disk = Simulated::new();
        let (db, background) = simulated::open_unattended(disk.clone(), &builder).expect("a new store");
        let (blobs, mut random) = (blobs(&db), Random::new(seed));
        db.sync().expect("the disk works");
        let (mut states, mut durable, mut looked) = (vec![Content::new()], 0, 0);
        let mut open = Vec::new();
        for step in 0..sized(25, 80) {
            let key = vec![random.below(4) as u8];
            let mut next = states.last().expect("the first").clone();
            match random.below(8) {
                0 => {
                    db.sync().expect("the disk works");
                    durable = states.len() - 1;
                }
                1 | 2 => drop(background.step().expect("the disk works")),
                3 => drop(next.remove(&key).is_some().then(|| blobs.delete(&key).expect("the disk works"))),
                4 if open.len() < 2 => {
                    let mut writer = blobs.writer(&key).expect("the key is short");
                    writer.write_all(&bytes(&mut random, 4_000)).expect("the disk works");
                    open.push(writer);
                }
                4 => drop(open.remove(0)),
                _ => {
                    let value = bytes(&mut random, 5_000);
                    write(&blobs, &mut random, &key, &value).expect("the disk works");
                    next.insert(key, value);
                }
            }
            states.push(next);
            if !random.one_in(2) {
                continue;
            }
            for after in disk.crash_states(2, seed ^ step) {
                let (reopened, _) = simulated::open_unattended(after, &builder)
                    .unwrap_or_else(|error| panic!("seed {seed}, step {step}: {error}"));
                let reopened_blobs = self::blobs(&reopened);
                drop(reopened_blobs.writer("new").expect("the disk works"));
                let found = content(&reopened_blobs);
                assert!(
                    states[durable..].contains(&found),
                    "seed {seed}, step {step}: no state since {durable}"
                );
                let marks = reopened.keyspace("blobs").expect("it is there").prefix([2]).count();
                assert_eq!(marks, 0, "seed {seed}, step {step}");
                let (pieces, owners) = ids(&reopened);
                assert_eq!(pieces, owners, "seed {seed}, step {step}");
                looked += 1;
            }
        }
        assert!(looked > 10, "seed {seed}: {looked} states");
    }
}

/// Writers of one key finish at the same time: one of them comes last, and nothing is left of the others.
#[test]
fn writers_of_one_key_leave_one_blob() {
    let db = Db::open("memory:").unwrap();
    let blobs = blobs(&db);
    for round in 0..sized(20, 200) {
        thread::scope(|scope| {
            for thread in 0..3 {
                let blobs = &blobs;
                scope.spawn(move || {
                    let mut writer = blobs.writer("key").unwrap();
                    writer.write_all(&vec![thread; 3_000]).unwrap();
                    writer.finish().unwrap();
                });
            }
            scope.spawn(|| blobs.delete("key").unwrap());
        });
        let found = blobs.get("key").unwrap().map(whole);
        assert!(found.is_none_or(|bytes| bytes.len() == 3_000 && bytes.iter().all(|byte| *byte == bytes[0])));
        let (pieces, owners) = ids(&db);
        assert_eq!(pieces, owners, "round {round}");
    }
}

/// The keyspace gets its layout from one of them. None takes it for a keyspace of other pairs meanwhile.
#[test]
fn the_first_writers_of_a_keyspace_begin_at_once() {
    for _ in 0..sized(200, 2_000) {
        let db = Db::open("memory:").unwrap();
        let blobs = blobs(&db);
        let start = Barrier::new(3);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    start.wait();
                    drop(blobs.writer("key").unwrap());
                });
            }
        });
    }
}

#[test]
fn a_reader_keeps_the_blob_that_it_began_with() {
    let directory = tempfile::tempdir().unwrap();
    for url in ["memory:", directory.path().join("forest").to_str().unwrap()] {
        let db = Db::open(url).unwrap();
        let blobs = blobs(&db);
        write(&blobs, &mut Random::new(1), b"oak", &[1; 10_000]).unwrap();
        let mut reader = blobs.get("oak").unwrap().unwrap();
        let mut first = [0; 10];
        reader.read_exact(&mut first).unwrap();
        write(&blobs, &mut Random::new(1), b"oak", &[2; 100]).unwrap();
        assert!(blobs.delete("oak").unwrap());
        db.sync().unwrap();
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, [1; 9_990]);
    }
}

#[test]
fn a_batch_and_a_blob_are_applied_together_or_not_at_all() {
    let db = Db::open("memory:").unwrap();
    let blobs = blobs(&db);
    db.set("owner", "ada").unwrap();
    for (owner, applied) in [("bob", false), ("ada", true)] {
        let mut writer = blobs.writer("oak").unwrap();
        writer.write_all(&[7; 2_500]).unwrap();
        let mut batch = WriteBatch::new();
        batch.add("blobs", 1).compare_and_swap("owner", Some(owner.as_bytes()), Some(b"eve"));
        let written = writer.finish_with(batch, &WriteOptions::default()).unwrap();
        assert_eq!(written.is_applied(), applied);
        assert!(applied || matches!(written, Written::Mismatch { op: 1, .. }));
        assert_eq!(blobs.get("oak").unwrap().is_some(), applied);
        assert_eq!(db.add("blobs", 0).unwrap(), i64::from(applied));
        let (pieces, owners) = ids(&db);
        assert_eq!(pieces, owners);
    }
}

#[test]
fn unfinished_blobs_are_removed_by_their_age() {
    unfinished_by_age();
}

pub(super) fn unfinished_by_age() {
    let db = Db::open("memory:").unwrap();
    let blobs = blobs(&db);
    let mut writer = blobs.writer("oak").unwrap();
    writer.write_all(&[7; 2_500]).unwrap();
    assert_eq!(blobs.remove_unfinished(Duration::from_secs(3_600)).unwrap(), 0);
    // Another handle of the same opening leaves it alone.
    drop(db.blobs("blobs").unwrap().writer("elm").unwrap());
    assert_eq!(ids(&db).0.len(), 1);
    assert_eq!(blobs.remove_unfinished(Duration::ZERO).unwrap(), 1);
    let error = writer.write_all(&[7; 2_500]).unwrap_err();
    let error = error.get_ref().and_then(|error| error.downcast_ref::<crate::Error>()).unwrap();
    assert_eq!(error.kind(), ErrorKind::ConditionFailed);
    assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::ConditionFailed);
    let (pieces, owners) = ids(&db);
    assert_eq!((pieces.len(), owners.len()), (0, 0));
}

/// What another opening left is removed when the keyspace is opened, and not by a process that reads.
#[test]
fn unfinished_blobs_of_an_earlier_opening_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("forest");
    let path = path.to_str().unwrap();
    let db = Db::open(path).unwrap();
    let mut writer = blobs(&db).writer("oak").unwrap();
    writer.write_all(&[7; 2_500]).unwrap();
    write(&blobs(&db), &mut Random::new(1), b"elm", &[3; 2_500]).unwrap();
    let reader = Db::open_read_only(path).unwrap();
    assert_eq!(content(&reader.blobs("blobs").unwrap()).len(), 1);
    assert_eq!(ids(&reader).0.len(), 2);
    assert_eq!(reader.blobs("blobs").unwrap().delete("elm").unwrap_err().kind(), ErrorKind::Unsupported);

    let copy = directory.path().join("copy");
    db.checkpoint(&copy).unwrap();
    drop(writer);
    let copy = Db::open(copy.to_str().unwrap()).unwrap();
    let copied = copy.blobs("blobs").unwrap();
    assert_eq!((content(&copied).len(), copied.delete("ash").unwrap()), (1, false));
    // A copy that is only read keeps what the other store may go on with.
    assert_eq!(ids(&copy).0.len(), 2);
    drop(copied.writer("ash").unwrap());
    assert_eq!(ids(&copy).0.len(), 1);
}

#[test]
fn arguments_that_cannot_be_are_refused() {
    let db = Db::open("memory:").unwrap();
    let (blobs, long) = (blobs(&db), vec![0; MAX_BLOB_KEY_BYTES + 1]);
    assert_eq!(blobs.writer(&long).unwrap_err().kind(), ErrorKind::Limit);
    assert_eq!(blobs.get(&long).unwrap_err().kind(), ErrorKind::Limit);
    assert_eq!(blobs.delete(&long).unwrap_err().kind(), ErrorKind::Limit);
    write(&blobs, &mut Random::new(1), &long[1..], b"fits").unwrap();
    for bytes in [0, 1_023, MAX_PIECE_BYTES + 1] {
        assert_eq!(blobs.clone().piece_bytes(bytes).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    let mut blob = blobs.get(&long[1..]).unwrap().unwrap();
    assert!(blob.seek(SeekFrom::Current(-1)).is_err());
    assert_eq!(blob.seek(SeekFrom::End(100)).unwrap(), 104);
    assert_eq!(blob.read(&mut [0; 10]).unwrap(), 0);

    db.keyspace("pairs").unwrap().set("oak", "Quercus").unwrap();
    let error = db.blobs("pairs").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("\"pairs\" has pairs that are no blobs"), "{error}");
    db.keyspace("later").unwrap().set([0], "forrest blobs 2").unwrap();
    assert_eq!(db.blobs("later").unwrap_err().kind(), ErrorKind::Unsupported);
    let snapshot = db.snapshot().unwrap();
    for (name, kind) in [("pairs", ErrorKind::InvalidArgument), ("later", ErrorKind::Unsupported)] {
        assert_eq!(snapshot.blob(name, "oak").unwrap_err().kind(), kind);
    }
    // Looking makes no keyspace one of blobs.
    let empty = db.keyspace("empty").unwrap();
    let looked = db.blobs("empty").unwrap();
    assert!(looked.get("oak").unwrap().is_none() && looked.range(..).next().is_none());
    assert!(!looked.delete("oak").unwrap() && empty.count(..).unwrap() == 0);
}

/// Cause: the pairs of blobs got the time to live of their keyspace. The layout expired first, so that the blobs were
/// pairs of another kind, and the counter, so that new blobs got the ids of old ones.
#[cfg(feature = "disk")]
#[test]
fn a_keyspace_has_blobs_or_a_time_to_live() {
    let directory = tempfile::tempdir().expect("a directory");
    let db = Db::open(directory.path().join("store").to_str().expect("it is text")).expect("a store on disk");
    let (space, hour) = (db.keyspace("blobs").unwrap(), Some(Duration::from_secs(3600)));
    let blobs = blobs(&db);
    space.set_ttl(hour).unwrap();
    for error in [db.blobs("blobs").unwrap_err(), blobs.writer("oak").unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("\"blobs\" has a time to live of 3600000 ms"), "{error}");
    }
    space.set_ttl(None).unwrap();
    write(&blobs, &mut Random::new(1), b"oak", b"Quercus").unwrap();
    let error = space.set_ttl(hour).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("\"blobs\" has blobs"), "{error}");
    assert_eq!(space.ttl(), None);
    space.set_ttl(None).unwrap();
}

/// Cause: a thread looked whether there are blobs, another one laid the keyspace out for some, and then the first one
/// chose the time to live. Cure: a lock from the look to the choice. A flush of a new keyspace comes between them, so
/// that the other thread had the time.
#[cfg(feature = "simulated")]
#[test]
fn blobs_and_a_time_to_live_do_not_come_at_once() {
    blobs_or_a_time_to_live();
}

#[cfg(feature = "simulated")]
pub(super) fn blobs_or_a_time_to_live() {
    for round in 0..sized(200, 500) {
        let (db, _background) =
            simulated::open_unattended(Simulated::new(), &Db::builder()).expect("a store");
        let (space, blobs) = (db.keyspace("blobs").unwrap(), blobs(&db));
        (0..200_u32).for_each(|number| db.set(number.to_be_bytes(), [7; 100]).unwrap());
        let begin = Barrier::new(2);
        let (chosen, written) = thread::scope(|scope| {
            let chosen = scope.spawn(|| {
                begin.wait();
                space.set_ttl(Some(Duration::from_secs(3600)))
            });
            begin.wait();
            let written = write(&blobs, &mut Random::new(round), b"oak", &[7; 2_500]);
            (chosen.join().unwrap(), written)
        });
        assert_ne!(chosen.is_ok(), written.is_ok(), "round {round}: {chosen:?}, {written:?}");
        let error = chosen.and(written).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "round {round}: {error}");
        assert_eq!(space.ttl().is_none(), space.contains([0]).unwrap(), "round {round}");
    }
}

/// Cause: a handle looked for the layout once only, so that after the keyspace was cleared its blobs were pairs without
/// a layout, which no handle reads. Cure: each writer looks, and the first batches of a blob have a condition.
#[test]
fn a_cleared_keyspace_is_laid_out_again() {
    cleared();
}

pub(super) fn cleared() {
    let db = Db::open("memory:").unwrap();
    let (space, blobs) = (db.keyspace("blobs").unwrap(), blobs(&db));
    write(&blobs, &mut Random::new(1), b"oak", &[7; 2_500]).unwrap();
    for len in [10, 2_500] {
        space.clear().unwrap();
        write(&blobs, &mut Random::new(1), b"elm", &vec![7; len]).unwrap();
        assert_eq!(blobs.get("elm").unwrap().map(whole), Some(vec![7; len]));
        let mut writer = blobs.writer("ash").unwrap();
        space.clear().unwrap();
        assert_eq!(writer.write_all(&vec![7; len]).is_err(), len > 1024, "the first piece has the condition");
        assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::ConditionFailed);
        assert_eq!(space.count(..).unwrap(), 0);
    }
}

/// The first piece fails after the blob has its id. The keyspace is cleared before the bytes are given again.
#[cfg(feature = "simulated")]
#[test]
fn a_cleared_keyspace_gets_no_blob_without_a_layout() {
    cleared_after_a_failure();
}

#[cfg(feature = "simulated")]
pub(super) fn cleared_after_a_failure() {
    use crate::simulated::{Failure, Fault, Times};
    let builder = Db::builder().pages(crate::Pages::Plain).workers(1).durability(crate::Durability::Sync);
    let mut failures = 0;
    for (later, len) in (0..6).flat_map(|later| [10, PIECE_BYTES as usize].map(|len| (later, len))) {
        let disk = Simulated::new();
        let (db, _background) = simulated::open_unattended(disk.clone(), &builder).expect("a new store");
        let (space, blobs) = (db.keyspace("blobs").unwrap(), blobs(&db));
        let mut writer = blobs.writer("oak").expect("the key is short");
        disk.fail(Fault { at: disk.ios() + later, times: Times::Once, kind: Failure::Eio });
        if writer.write(&[7; PIECE_BYTES as usize]).is_ok() {
            continue;
        }
        failures += 1;
        db.resume().expect("the disk works again");
        space.clear().expect("the disk works");
        let _refused = writer.write_all(&vec![7; len]);
        assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::ConditionFailed, "I/O {later}");
        assert_eq!(space.count(..).unwrap(), 0, "I/O {later}");
    }
    assert!(failures >= 4, "{failures}");
}

/// Cause: after a clear, ids began at 1 again, so a later blob had the id of a writer from before. Cure: no id comes
/// twice.
#[test]
fn a_writer_from_before_a_clear_harms_no_later_blob() {
    before_a_clear();
}

pub(super) fn before_a_clear() {
    let db = Db::open("memory:").unwrap();
    let (space, blobs) = (db.keyspace("blobs").unwrap(), blobs(&db));
    let piece = |byte: u8| vec![byte; PIECE_BYTES as usize];
    for _ in 0..100 {
        let mut old = blobs.writer("oak").unwrap();
        old.write_all(&piece(1)).unwrap();
        space.clear().unwrap();
        let mut new = blobs.writer("elm").unwrap();
        new.write_all(&piece(2)).unwrap();
        assert!(old.write_all(&piece(1)).is_err());
        drop(old);
        new.write_all(&piece(2)).unwrap();
        new.finish().unwrap();
        assert_eq!(blobs.get("elm").unwrap().map(whole), Some([piece(2), piece(2)].concat()));
        space.clear().unwrap();
    }
}

/// The same with a writer whose first piece has failed, so that it does not know whether its mark is there.
#[cfg(feature = "simulated")]
#[test]
fn a_failed_writer_from_before_a_clear_harms_no_later_blob() {
    use crate::simulated::{Failure, Fault, Times};
    let builder = Db::builder().pages(crate::Pages::Plain).workers(1).durability(crate::Durability::Sync);
    let mut failures = 0;
    for later in 0..6 {
        let disk = Simulated::new();
        let (db, _background) = simulated::open_unattended(disk.clone(), &builder).expect("a new store");
        let (space, blobs) = (db.keyspace("blobs").unwrap(), blobs(&db));
        let mut old = blobs.writer("oak").expect("the key is short");
        disk.fail(Fault { at: disk.ios() + later, times: Times::Once, kind: Failure::Eio });
        if old.write(&[7; PIECE_BYTES as usize]).is_ok() {
            continue;
        }
        failures += 1;
        db.resume().expect("the disk works again");
        space.clear().expect("the disk works");
        write(&blobs, &mut Random::new(1), b"elm", &[8; 2_500]).expect("the disk works");
        drop(old);
        assert_eq!(blobs.get("elm").unwrap().map(whole), Some(vec![8; 2_500]), "I/O {later}");
    }
    assert!(failures >= 4, "{failures}");
}

/// Each pair of a blob is removed or changed: what is read then is an error, and no other value.
#[test]
fn damaged_blobs_are_reported() {
    damaged();
}

pub(super) fn damaged() {
    let db = Db::open("memory:").unwrap();
    let blobs = blobs(&db);
    write(&blobs, &mut Random::new(1), b"oak", &[7; 2_500]).unwrap();
    let space = db.keyspace("blobs").unwrap();
    let pair = |entry: crate::Entry| (entry.key().to_vec(), entry.value().unwrap().to_vec());
    let pairs: Vec<_> = space.range([3]..).map(|entry| pair(entry.unwrap())).collect();
    assert_eq!(pairs.len(), 4);
    for (key, value) in &pairs {
        for damage in [Some(value[1..].to_vec()), Some([&value[..], &[0]].concat()), Some(vec![]), None] {
            match &damage {
                Some(bytes) => space.set(key, bytes).unwrap(),
                None => drop(space.delete(key).unwrap()),
            }
            let read = blobs.get("oak").map_err(|error| error.kind()).and_then(|blob| {
                let Some(mut blob) = blob else { return Ok(None) };
                let mut buffer = vec![0; 3_000];
                blob.read_at(0, &mut buffer).map(Some).map_err(|error| error.kind())
            });
            match damage {
                None if key[0] == 4 => assert_eq!(read, Ok(None)),
                _ => assert_eq!(read, Err(ErrorKind::Corrupt)),
            }
            space.set(key, value).unwrap();
        }
    }
    // Lengths that no blob can have allocate nothing.
    for (len, piece_bytes) in [(u64::MAX, 1_u32), (10, 0), (10, u32::MAX), (1 << 40, 1)] {
        let head = [&1_u64.to_be_bytes()[..], &len.to_be_bytes(), &piece_bytes.to_be_bytes()].concat();
        space.set([4, b'x'], head).unwrap();
        let read = blobs.get("x").map(drop);
        assert_eq!(read.unwrap_err().kind(), ErrorKind::Corrupt, "{len} {piece_bytes}");
        assert!(blobs.range(..).any(|entry| entry.is_err()));
    }
}
