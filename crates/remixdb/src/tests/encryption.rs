//! Encrypted stores: the gates pass on them, with few workloads in full size too, because they run in full without a
//! key; nothing of the content is readable, keys are checked and replaced.

use super::world::{Content, Step, World, beginning, encrypted, follow, options, seeds, steps};
use super::{backup, changes, checkpoint, conformance, crash, damage, faults, packed, resume};
use crate::backup::{Progress, verify};
use crate::core::Handle;
use crate::disk::simulated::{Failure, Fault, Simulated, Times, Watch};
use crate::disk::{self, Kind, Name, Sealed, Write};
use crate::{BackupOptions, Store, salvage};
use forrest_base::random::Random;
use forrest_engine::{Compression, Store as _, View as _};
use forrest_engine::{
    Durability, EncryptionKey, Error, ErrorKind, Keyspace as _, Op, Options, Pages, Result,
};
use forrest_testing::sized;
use std::collections::HashSet;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

fn key(byte: u8) -> EncryptionKey {
    EncryptionKey::from_bytes([byte; 32])
}

fn with_key(byte: u8) -> Options {
    Options { encryption_key: Some(key(byte)), ..options(Durability::Sync) }
}

#[test]
fn power_cuts_lose_nothing() {
    encrypted(|| assert!(crash::after_power_cuts(seeds(1, 2)) > 100));
}

#[test]
fn power_cuts_after_every_sequence_lose_nothing() {
    encrypted(|| assert!(crash::after_every_sequence(sized(1, 2)) > 100));
}

#[test]
fn any_io_may_fail() {
    encrypted(|| faults::failing_io(seeds(1, 1), &faults::FAILURES, sized(11, 5)));
}

#[test]
fn a_flipped_bit_is_reported_or_harmless() {
    encrypted(|| damage::flipped_bits(seeds(1, 1), sized(11, 4)));
}

#[test]
fn a_file_that_is_cut_or_missing_is_reported_or_harmless() {
    encrypted(|| damage::cut_and_missing_files(seeds(1, 1)));
}

#[test]
fn it_conforms() {
    encrypted(|| conformance::conforms(0..1));
}

#[test]
fn power_cuts_lose_nothing_that_is_compressed() {
    encrypted(|| packed::after_power_cuts(seeds(1, 1), sized(3, 4)));
}

#[test]
fn copies_and_changes_pass_their_gates() {
    encrypted(|| {
        checkpoint::power_cuts(seeds(1, 1));
        backup::descents(seeds(1, 2));
        changes::agree_with_the_model(seeds(2, 3));
        changes::beside_a_writer(seeds(1, 1));
        crash::cuts_upon_kills(seeds(1, 1), sized(37, 17));
        resume::resumed(seeds(1, 1), sized(9, 5));
    });
}

fn write(disk: &Sealed, file: &disk::SealedFile, name: Name, offset: u64, bytes: &[u8]) {
    let mut write = Write { offset, bytes: bytes.to_vec(), done: 0, sync: true };
    disk::write_all(disk, file, name, &mut write).expect("it is written");
}

/// Files of pages are written in pieces of any length, and read from any place.
#[test]
fn blocks_come_back_as_they_were_written() {
    let mut random = Random(5);
    for seed in 0..sized(40, 400) {
        let inner = Simulated::new();
        let disk = Sealed::open(inner.clone(), &with_key(1)).expect("it is made");
        let name = Name::table(7);
        let file = disk::create(&disk, name).expect("it is made");
        let mut content = Vec::new();
        for _ in 0..1 + random.below(6) {
            let len = random.below(if seed % 2 == 0 { 9000 } else { 50 }) as usize;
            let piece: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
            if seed % 3 == 0 {
                inner.fail(Fault { at: inner.ios(), times: Times::Once, kind: Failure::ShortWrite });
            }
            write(&disk, &file, name, content.len() as u64, &piece);
            content.extend(piece);
        }
        let opened = disk::open(&disk, name).expect("it is there");
        assert_eq!(disk::len(&disk, &opened, name).expect("it is measured"), content.len() as u64);
        for _ in 0..30 {
            let from = random.below(content.len() as u64 + 10) as usize;
            let mut buffer = vec![0; random.below(9000) as usize];
            if seed % 3 == 1 {
                inner.fail(Fault { at: inner.ios(), times: Times::Once, kind: Failure::ShortRead });
            }
            let count = disk::read_up_to(&disk, &opened, name, &mut buffer, from as u64).expect("it is read");
            let from = from.min(content.len());
            assert_eq!(buffer[..count], content[from..(from + buffer.len()).min(content.len())]);
        }
    }
}

#[test]
fn a_block_opens_only_where_it_was_written() {
    blocks_in_their_places();
}

/// A block that is changed, cut, or somewhere else is damage, and names its place. Mutants must fail here.
pub(super) fn blocks_in_their_places() {
    let inner = Simulated::new();
    let disk = Sealed::open(inner.clone(), &with_key(1)).expect("it is made");
    let (name, other) = (Name::table(7), Name::table(8));
    let content: Vec<u8> = (0..3 * 4096 + 100_u32).map(|at| (at / 7) as u8).collect();
    for name in [name, other] {
        write(&disk, &disk::create(&disk, name).expect("it is made"), name, 0, &content);
    }
    let stored = inner.files().into_iter().find(|(found, _)| *found == name).expect("it is there").1;
    assert_eq!(stored.len(), content.len() + 4 * 16);
    let read = |bytes: &[u8], name: Name| -> Result<Vec<u8>> {
        inner.replace(name, bytes.to_vec());
        let file = disk::open(&disk, name)?;
        let mut buffer = vec![0; content.len() + 50];
        let count = disk::read_up_to(&disk, &file, name, &mut buffer, 0)?;
        buffer.truncate(count);
        Ok(buffer)
    };
    let damage = |found: Result<Vec<u8>>, block: usize| {
        let error = found.expect_err("nobody noticed");
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        let place = format!("00000007.table: the encrypted block at offset {} is damaged", block * 4096);
        assert!(error.to_string().contains(&place), "{error}");
    };
    for byte in (0..stored.len()).step_by(sized(13, 1)) {
        let mut bytes = stored.clone();
        bytes[byte] ^= 1 << (byte % 8);
        damage(read(&bytes, name), byte / 4112);
    }
    let mut swapped = stored.clone();
    swapped[..2 * 4112].rotate_left(4112);
    damage(read(&swapped, name), 0);
    damage(read(&stored[..stored.len() - 1], name), 3);
    damage(read(&stored[..4112 + 17], name), 1);
    // What ends after a block is shorter. The formats above know where a file ends.
    assert_eq!(read(&stored[..2 * 4112], name).expect("it is read"), content[..2 * 4096]);
    let of_other = inner.files().into_iter().find(|(found, _)| *found == other).expect("it is there").1;
    damage(read(&of_other, name), 0);
    assert_eq!(read(&stored, name).expect("it is read"), content);
}

/// A store with work in logs, tables and a REMIX.
fn made(options: &Options) -> (Simulated, Content) {
    let disk = Simulated::new();
    let world = World::open(&disk, options).expect("it opens");
    let mut states = beginning();
    for step in steps(3, 40) {
        follow(&mut states, &step);
        world.run(&step).expect("it works");
    }
    (disk, states.pop().expect("there is a last"))
}

fn refused(disk: &Simulated, options: &Options) -> Error {
    Sealed::open(disk.clone(), options).expect_err("it was opened")
}

#[test]
fn another_key_or_none_is_refused_with_the_reason() {
    let (disk, content) = made(&with_key(1));
    let plain = Options { encryption_key: None, ..with_key(1) };
    let error = refused(&disk, &with_key(2));
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("wrong key"), "{error}");
    let error = refused(&disk, &plain);
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("--key-file"), "{error}");
    // Without the key file the others say so.
    let (key_file, _) =
        disk.files().into_iter().find(|(name, _)| name.kind == Kind::Key).expect("it is there");
    let lost = Simulated::from_files(disk.files().into_iter().filter(|(name, _)| *name != key_file));
    let error = World::open(&lost, &plain).err().expect("it was opened");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(
        error.to_string().contains("the file is encrypted, and the key file (NUMBER.key) is missing"),
        "{error}"
    );
    assert_eq!(World::open(&disk, &with_key(1)).expect("it opens").content().expect("it is read"), content);
    let (disk, content) = made(&plain);
    let error = refused(&disk, &with_key(1));
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("not encrypted"), "{error}");
    assert_eq!(World::open(&disk, &plain).expect("it opens").content().expect("it is read"), content);
}

/// A plain file in the place of an encrypted one, with valid checksums, is not taken.
#[test]
fn plain_files_are_not_taken_for_encrypted_ones() {
    let (disk, _) = made(&with_key(1));
    let (plain, _) = made(&Options { encryption_key: None, ..with_key(1) });
    for kind in [Kind::Manifest, Kind::Log] {
        let mut files = disk.files();
        let (name, bytes) = files.iter_mut().rfind(|(name, _)| name.kind == kind).expect("there is one");
        // The header has the number in its checksum, so it is of the same file.
        if let Some((_, other)) = plain.files().into_iter().find(|(other, _)| other == name) {
            *bytes = other;
            let error = World::open(&Simulated::from_files(files), &with_key(1)).err().expect("it was taken");
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        }
    }
}

#[test]
fn headers_of_logs_cannot_be_changed() {
    headers_in_their_places();
}

/// What the header of a log states is authenticated too: a log cannot lose its last changes while the next one is
/// changed to begin there, with a right checksum. Mutants must fail here.
pub(super) fn headers_in_their_places() {
    let disk = Simulated::new();
    let world = World::open(&disk, &with_key(1)).expect("it opens");
    for number in 0..12 {
        world.set_with_a_log_ahead(number);
    }
    let content = world.content().expect("it is read");
    drop(world);
    let files = disk.files();
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let logs: Vec<_> =
        files.iter().filter(|(name, bytes)| name.kind == Kind::Log && word(bytes, 0) != 0).collect();
    // Of the last one alone no record states that the header was synced.
    let [.., (first, before), (second, after), _] = logs[..] else { panic!("{} logs", logs.len()) };
    assert_eq!(word(after, 24), first.number);
    // Where the last record of the first log begins.
    let (mut at, mut last) = (64, 64);
    while at < word(after, 32) {
        last = at;
        at += 16 + (word(before, at as usize + 8) & ((1 << 40) - 1));
    }
    assert!(last > 64);
    let fields = [first.number, last, word(after, 40) - 1, word(after, 48).min(last << 1)];
    let mut cut = before.clone();
    cut.truncate(last as usize);
    let with = |changed: &[(Name, Vec<u8>)]| {
        let others = files.iter().filter(|(name, _)| changed.iter().all(|(other, _)| other != name));
        let disk = Simulated::from_files(others.chain(changed).cloned());
        World::open(&disk, &with_key(1)).and_then(|world| world.content())
    };
    let version = u32::from_le_bytes(after[8..12].try_into().expect("4 bytes"));
    let mut header = crate::record::header(*second, version, fields, None).to_vec();
    for sum in [None, Some(word(after, 56))] {
        if let Some(sum) = sum {
            header[56..].copy_from_slice(&sum.to_le_bytes());
        }
        let forged = [&header, &after[64..]].concat();
        let error = with(&[(*first, cut.clone()), (*second, forged)]).expect_err("changes were left out");
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
    for at in 8..64 {
        let mut forged = after.clone();
        forged[at] ^= 1 << (at % 8);
        let error = with(&[(*second, forged)]).expect_err("the header was taken");
        // A later version is named.
        assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported), "{at}: {error}");
    }
    assert_eq!(with(&[]).expect("it is read"), content);
}

/// Any bit of the key file: damage, and no other error, because the checksum comes first.
#[test]
fn a_damaged_key_file_is_no_wrong_key() {
    let (disk, _) = made(&with_key(1));
    let (name, bytes) =
        disk.files().into_iter().find(|(name, _)| name.kind == Kind::Key).expect("it is there");
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        disk.replace(name, damaged);
        assert_eq!(refused(&disk, &with_key(1)).kind(), ErrorKind::Corrupt, "{at}");
        disk.replace(name, bytes[..at].to_vec());
        assert_eq!(refused(&disk, &with_key(1)).kind(), ErrorKind::Corrupt, "{at}");
    }
}

/// What rotates keys, between changes.
fn rotations(store: &Store) -> Result<()> {
    let space = store.keyspace("default")?;
    let set = |name: &str| space.apply(Op::Set { key: name.as_bytes(), value: &[1; 200] }).map(drop);
    set("a")?;
    store.rotate_data_key()?;
    set("b")?;
    store.flush()?;
    set("c")?;
    store.rotate_key(&key(2))?;
    set("d")?;
    store.compact()?;
    store.rotate_data_key()?;
    set("e")
}

/// The names that are there; with the first key, or with the second.
fn found(disk: &Simulated) -> Result<String> {
    let opened = Sealed::open(disk.clone(), &with_key(1)).or_else(|error| match error.kind() {
        ErrorKind::InvalidArgument => Sealed::open(disk.clone(), &with_key(2)),
        _ => Err(error),
    })?;
    let store = Store::open_unattended(opened, &with_key(1))?;
    let view = store.keyspace("default")?.view();
    let names = ["a", "b", "c", "d", "e"];
    let mut there = String::new();
    for name in names {
        match view.get(name.as_bytes())? {
            Some(value) if value == [1; 200] => there.push_str(name),
            Some(_) => panic!("{name} has another value"),
            None => {}
        }
    }
    // The store goes on.
    store.keyspace("default")?.apply(Op::Set { key: b"z", value: b"1" })?;
    store.compact()?;
    store.verify()?;
    Ok(there)
}

#[test]
fn power_cuts_while_keys_are_replaced_lose_nothing() {
    cuts_while_keys_are_replaced();
}

/// Keys are replaced, and the power is cut at every I/O: one of the two keys opens the store, and nothing is lost.
/// Mutants must fail here.
pub(super) fn cuts_while_keys_are_replaced() {
    let run =
        |disk: &Simulated| Store::open_unattended(Sealed::open(disk.clone(), &with_key(1))?, &with_key(1));
    let whole = Simulated::new();
    rotations(&run(&whole).expect("it opens")).expect("it works");
    assert_eq!(found(&whole).expect("it is read"), "abcde");
    let mut states = 0;
    for io in 0..whole.ios() {
        let disk = Simulated::new();
        disk.cut_power_at(io);
        let done = run(&disk).and_then(|store| rotations(&store));
        for after in disk.crash_states(sized(1, 3), io).chain([disk.kill()]) {
            let there = found(&after).unwrap_or_else(|error| panic!("cut at I/O {io}: {error}"));
            assert!("abcde".starts_with(&there), "cut at I/O {io}: {there}");
            assert!(done.is_err() || there == "abcde", "cut at I/O {io}: {there}");
            states += 1;
        }
    }
    assert!(states > 500, "{states}");
}

/// Any I/O of a rotation may fail: what was acknowledged before and after is there.
#[test]
fn any_io_of_a_rotation_may_fail() {
    let kinds = [Failure::Eio, Failure::Enospc, Failure::ShortWrite, Failure::Interrupted];
    let kinds = kinds
        .into_iter()
        .chain(faults::FAILURES.into_iter().filter(|kind| matches!(kind, Failure::SyncFails(_))));
    let run =
        |disk: &Simulated| Store::open_unattended(Sealed::open(disk.clone(), &with_key(1))?, &with_key(1));
    for kind in kinds {
        for at in 0.. {
            let disk = Simulated::new();
            let store = run(&disk).expect("it opens");
            let space = store.keyspace("default").expect("it is there");
            let set = |name: &str| space.apply(Op::Set { key: name.as_bytes(), value: &[1; 200] }).is_ok();
            assert!(set("a"));
            disk.fail(Fault { at: disk.ios() + at, times: Times::Once, kind });
            let rotated = store.rotate_data_key().and_then(|()| store.rotate_key(&key(2)));
            let has_struck = disk.struck() > 0;
            disk.heal();
            let expected = match set("b") {
                true => "ab",
                false => "a",
            };
            // New files have a key, or are not made.
            let flushed = store.flush();
            for after in disk.crash_states(2, at).chain([disk.kill()]) {
                let there = found(&after).unwrap_or_else(|error| panic!("{kind:?} at {at}: {error}"));
                assert_eq!(there, expected, "{kind:?} at {at}: {rotated:?}, {flushed:?}");
            }
            if !has_struck {
                break;
            }
        }
    }
}

/// Data keys of which no file is left are dropped.
#[test]
fn old_data_keys_go_when_their_files_have_gone() {
    let disk = Simulated::new();
    let sealed = Sealed::open(disk.clone(), &with_key(1)).expect("it is made");
    let store = Store::open_unattended(sealed, &with_key(1)).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    let len = || disk.files().iter().find(|(name, _)| name.kind == Kind::Key).expect("it is there").1.len();
    let one = len();
    for round in 0..6_u8 {
        space.apply(Op::Set { key: &[round], value: &[round; 300] }).expect("it is set");
        store.flush().expect("it works");
        store.rotate_data_key().expect("it works");
    }
    assert!(len() > one + 3 * 68, "there are tables of each");
    space.apply(Op::DeleteRange { start: b"", end: None }).expect("it is deleted");
    store.compact().expect("it works");
    store.rotate_data_key().expect("it works");
    // The manifest, the log, and what comes next.
    assert!(len() <= one + 2 * 68, "{} bytes", len());
    store.verify().expect("all is right");
}

/// A process that reads beside finds the data keys that are added, and does not need the new user's key for the old
/// ones.
#[test]
fn a_reader_beside_finds_new_data_keys() {
    let disk = Simulated::new();
    let world = World::open(&disk, &with_key(1)).expect("it opens");
    let beside = World::open(&disk, &Options { read_only: true, ..with_key(1) }).expect("it opens");
    for number in 0..6 {
        world.run(&Step::Set("default", number, 300)).expect("it works");
        let keys = world.store.disk();
        keys.rotate_data(|| world.store.next_number()).expect("it works");
        world.run(&Step::Flush).expect("it works");
        crate::recover::refresh(&beside.store).expect("it is read");
        assert_eq!(beside.content().expect("it is read"), world.content().expect("it is read"));
    }
    world.store.disk().rotate_user(&key(2), || world.store.next_number()).expect("it works");
    world.run(&Step::Set("default", 9, 300)).expect("it works");
    world.run(&Step::Flush).expect("it works");
    crate::recover::refresh(&beside.store).expect_err("the key was replaced");
    let beside = World::open(&disk, &Options { read_only: true, ..with_key(2) }).expect("it opens");
    assert_eq!(beside.content().expect("it is read"), world.content().expect("it is read"));
}

/// Single calls go wrong.
#[derive(Default)]
struct Odd {
    /// The next lists lack key files, as one may that is made while another process replaces them.
    blind: AtomicUsize,
    /// Whether the next file is made, and an error is returned.
    fails: AtomicBool,
}

impl Watch for Odd {
    fn listed(&self, names: &mut Vec<String>) {
        if self.blind.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            names.retain(|name| !name.ends_with(".key"));
        }
    }

    fn created(&self) -> io::Result<()> {
        if self.fails.swap(false, Relaxed) { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }
}

/// A list of names is not made at one moment: while a key file is made and the one before is removed, it may have
/// neither.
#[test]
fn a_reader_lists_again_while_the_key_file_is_replaced() {
    let (disk, _) = made(&with_key(1));
    let options = Options { read_only: true, ..with_key(1) };
    for blind in 0..4 {
        let odd = Odd { blind: blind.into(), ..Odd::default() };
        let opened = Sealed::open(disk.watched(Arc::new(odd)), &options);
        opened.unwrap_or_else(|error| panic!("{blind}: {error}"));
    }
    let (plain, _) = made(&Options { encryption_key: None, ..with_key(1) });
    let error = Sealed::open(plain, &options).expect_err("it was opened");
    assert!(error.to_string().contains("not encrypted"), "{error}");
}

/// A key file that was made although the call failed is no damage later.
#[test]
fn a_key_file_that_is_left_over_is_replaced() {
    let disk = Simulated::new();
    let odd = Arc::new(Odd::default());
    let sealed = Sealed::open(disk.watched(odd.clone()), &with_key(1)).expect("it is made");
    let store = Handle::open_unattended(sealed, &with_key(1)).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    let set = |name: &str| {
        store.apply(&space, Op::Set { key: name.as_bytes(), value: &[1; 200] }).expect("it is set");
    };
    let rotate = || store.disk().rotate_data(|| store.next_number());
    set("a");
    for name in ["b", "c"] {
        odd.fails.store(true, Relaxed);
        rotate().expect_err("the file was not made");
        set(name);
        store.flush_all().expect("it works");
        rotate().expect("it works");
    }
    let keys = disk.files().iter().filter(|(name, _)| name.kind == Kind::Key).count();
    assert_eq!(keys, 1);
    assert_eq!(found(&disk.kill()).expect("it is read"), "abc");
}

/// A crash while the key of a directory of backups was replaced has left two key files. The next backup replaces them,
/// and fails later: the backups before it are still there.
#[test]
fn a_backup_that_fails_keeps_the_key_of_those_before() {
    keys_of_failed_backups();
}

pub(super) fn keys_of_failed_backups() {
    let (disk, _) = made(&with_key(1));
    let sealed = Sealed::open(disk, &with_key(1)).expect("it opens");
    let store = Handle::open_unattended(sealed, &with_key(1)).expect("it opens");
    let into = Simulated::new();
    let open = |byte: u8| Sealed::with(into.clone(), Some(&key(byte)), false, true);
    let back_up = |byte: u8, see: &mut dyn FnMut(Progress) -> ControlFlow<()>| {
        store.backup(open(byte).expect("it opens"), [3, 5], &BackupOptions::default(), see)
    };
    let first = back_up(1, &mut |_| ControlFlow::Continue(())).expect("it is made");
    let old = into.files().into_iter().find(|(name, _)| name.kind == Kind::Key).expect("there is one");
    let sealed = open(1).expect("it opens");
    sealed.rotate_user(&key(2), || 0).expect("it is replaced");
    drop(sealed);
    into.replace(old.0, old.1);
    let error = back_up(2, &mut |_| ControlFlow::Break(())).expect_err("it was ended");
    assert_eq!(error.kind(), ErrorKind::Busy);
    let verified = verify(&open(2).expect("it opens"), Some(first.id), &mut |_| ControlFlow::Continue(()));
    verified.expect("it is whole");
}

/// A foreign file with the greatest number leaves none for another key file, and nothing is removed.
#[test]
fn key_files_have_numbers_that_are_found_again() {
    let (disk, content) = made(&with_key(1));
    let last = Name::key(disk::NUMBER_MAX);
    let files = disk.files().into_iter().chain([(last, Vec::new())]);
    let with = Simulated::from_files(files);
    let world = World::open(&with, &with_key(1)).expect("it opens");
    let error = world.run(&Step::Set("default", 1, 300)).and_then(|()| world.run(&Step::Flush));
    error.expect_err("there was a number");
    drop(world);
    let without = Simulated::from_files(with.files().into_iter().filter(|(name, _)| *name != last));
    let world = World::open(&without, &with_key(1)).expect("it opens");
    assert_eq!(world.content().expect("it is read"), content);
}

#[test]
fn copies_have_keys_of_their_own() {
    copies_apart();
}

/// A store and its copies share files, and what each of them makes afterwards has another key: a file of one is no file
/// of the other. Mutants must fail here.
pub(super) fn copies_apart() {
    let disk = Simulated::new();
    let world = World::open(&disk, &with_key(1)).expect("it opens");
    let work = |world: &World| {
        for number in 0..8 {
            world.run(&Step::Set("default", number, 200)).expect("it works");
            world.run(&Step::Flush).expect("it works");
        }
    };
    work(&world);
    let copy = Simulated::new();
    world.checkpoint(&copy).expect("it is copied");
    let shared: Vec<Name> =
        copy.files().into_iter().map(|(name, _)| name).filter(|name| name.kind == Kind::Table).collect();
    let other = World::open(&copy, &with_key(1)).expect("it opens");
    for world in [&world, &other] {
        work(world);
    }
    let of = other.store.disk();
    let is_alike = |(name, bytes): &(Name, Vec<u8>)| {
        name.kind == Kind::Table
            && !shared.contains(name)
            && disk.files().iter().any(|(it, _)| it == name)
            && !bytes.is_empty()
    };
    let alike: Vec<_> = copy.files().into_iter().filter(is_alike).collect();
    assert!(!alike.is_empty());
    for (name, _) in alike {
        let bytes = disk.files().into_iter().find(|(it, _)| *it == name).expect("it is there").1;
        copy.replace(name, bytes);
        let mut page = [0; 4096];
        let file = disk::open(of, name).expect("it is there");
        let error = disk::read_exact(of, &file, name, &mut page, 0).expect_err("it was taken");
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    }
}

const SECRETS: [&str; 4] = ["Quercus robur", "Fagus sylvatica", "a value that nobody may read", "Herbarium"];

/// The files of a directory that have one of the secrets.
fn readable(at: &Path) -> Vec<String> {
    let mut found = Vec::new();
    // Also what compression leaves of them.
    let parts: HashSet<&[u8]> = SECRETS.iter().flat_map(|secret| secret.as_bytes().windows(6)).collect();
    for entry in std::fs::read_dir(at).expect("it is there") {
        let entry = entry.expect("it is there");
        let bytes = std::fs::read(entry.path()).expect("it is read");
        if let Some(part) = bytes.windows(6).find(|window| parts.contains(window)) {
            found.push(format!("{}: {}", entry.path().display(), part.escape_ascii()));
        }
    }
    found
}

/// Work that goes through all paths, in a directory; the other directories that it makes.
fn all_paths(within: &Path, encryption_key: Option<EncryptionKey>) -> Vec<&'static str> {
    let at = |name: &str| within.join(name);
    let options = Options {
        memtable_bytes: 1 << 20,
        cache_bytes: 1 << 20,
        pages: Pages::Plain,
        history: true,
        log_directory: Some(at("logs")),
        encryption_key: encryption_key.clone(),
        ..Options::default()
    };
    let [tree, other, secret, keyspace] = SECRETS;
    let store = Store::at(&at("store"), &options).expect("it opens");
    let space = store.keyspace(keyspace).expect("it is made");
    let set = |name: String| {
        space.apply(Op::Set { key: name.as_bytes(), value: secret.as_bytes() }).expect("it is set")
    };
    for round in 0..3 {
        for number in 0..300 {
            set(format!("{tree} {number:04} {round}"));
        }
        store.flush().expect("it works");
    }
    let mut ingest = space.ingest().expect("it begins");
    ingest.put(format!("{other} 1").as_bytes(), secret.repeat(30).as_bytes()).expect("it is put");
    ingest.finish().expect("it is done");
    space.set_compression(Compression::Lz4).expect("it is chosen");
    space
        .apply(Op::DeleteRange { start: tree.as_bytes(), end: Some(format!("{tree} 0100").as_bytes()) })
        .expect("ok");
    for number in 0..300 {
        set(format!("{other} {number:04}"));
    }
    store.compact().expect("it works");
    set(format!("{other} in the log"));
    store.sync().expect("it is synced");
    store.checkpoint(&at("copy")).expect("it is copied");
    let go = &mut |_| ControlFlow::Continue(());
    store.backup(&at("backups"), &BackupOptions::default(), go).expect("it is backed up");
    drop((space, store));
    let key = encryption_key.as_ref();
    crate::verify_backup(&at("backups"), key, None, &mut |_| ControlFlow::Continue(())).expect("it is right");
    crate::restore(&at("backups"), key, None, &at("restored"), &mut |_| ControlFlow::Continue(()))
        .expect("it works");
    let own = Options { log_directory: None, ..options.clone() };
    for name in ["copy", "restored"] {
        let store = Store::at(&at(name), &own).expect("it opens");
        store.verify().expect("all is right");
        let space = store.keyspace(keyspace).expect("it is there");
        let value = space.view().get(format!("{other} in the log").as_bytes()).expect("it is read");
        assert_eq!(value.as_deref(), Some(secret.as_bytes()));
    }
    disk::move_log(&at("store"), None).expect("they are moved");
    disk::move_log(&at("store"), Some(&at("logs"))).expect("they are moved");
    salvage(&at("store"), key, &at("salvaged"), &mut |_| ControlFlow::Continue(())).expect("it is whole");
    let store = Store::at(&at("salvaged"), &own).expect("it opens");
    store.verify().expect("all is right");
    vec!["store", "logs", "copy", "backups", "restored", "salvaged"]
}

/// Whatever is done with an encrypted store, no file has a piece of a key, of a value, or of the name of a keyspace.
#[test]
fn nothing_can_be_read_without_the_key() {
    let within = tempfile::tempdir().expect("a directory");
    for name in all_paths(within.path(), Some(key(7))) {
        assert_eq!(readable(&within.path().join(name)), [""; 0], "{name}");
    }
    // They are found where nothing is encrypted.
    let within = tempfile::tempdir().expect("a directory");
    for name in all_paths(within.path(), None) {
        assert_ne!(readable(&within.path().join(name)), [""; 0], "{name}");
    }
}

/// A checkpoint shares the tables, and opens with the same key.
#[test]
fn a_checkpoint_shares_the_tables() {
    let within = tempfile::tempdir().expect("a directory");
    let options = Options { encryption_key: Some(key(3)), ..options(Durability::Buffered) };
    let store = Store::at(&within.path().join("store"), &options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    space.apply(Op::Set { key: b"oak", value: b"1" }).expect("it is set");
    store.flush().expect("it works");
    store.rotate_data_key().expect("it works");
    store.checkpoint(&within.path().join("copy")).expect("it is copied");
    let table = |name: &str| {
        use std::os::unix::fs::MetadataExt as _;
        let entries = std::fs::read_dir(within.path().join(name)).expect("it is there");
        let mut entries = entries.map(|entry| entry.expect("it is there").path());
        let table = entries.find(|path| path.extension().is_some_and(|extension| extension == "table"));
        std::fs::metadata(table.expect("there is one")).expect("it is there").ino()
    };
    assert_eq!(table("store"), table("copy"));
    drop(store);
    drop(Store::at(&within.path().join("copy"), &options).expect("it opens"));
    let other = Options { encryption_key: Some(key(4)), ..options.clone() };
    for (options, what) in
        [(&other, "wrong key"), (&Options { encryption_key: None, ..options }, "encrypted")]
    {
        let error = Store::at(&within.path().join("copy"), options).err().expect("it was opened");
        assert!(error.to_string().contains(what), "{error}");
    }
}

/// The directory of the golden store.
fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/encrypted")
}

/// The files of a directory, except `LOCK`.
fn copy_files(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("it is made");
    for entry in std::fs::read_dir(from).expect("it is there") {
        let entry = entry.expect("it is there");
        if entry.file_name() != "LOCK" {
            std::fs::copy(entry.path(), to.join(entry.file_name())).expect("it is copied");
        }
    }
}

/// The content of the golden store, in the order in which it was written, and what is done after each.
fn golden_pairs() -> impl Iterator<Item = (String, String)> {
    (0..40_u32).map(|number| (format!("tree/{number:02}"), format!("value {}", number * number)))
}

/// Makes the golden store, with two data keys, tables and a log. Only where the format changes.
#[test]
#[ignore = "it writes to the sources"]
fn make_golden() {
    let within = tempfile::tempdir().expect("a directory");
    let path = within.path().join("store");
    let options = Options { encryption_key: Some(key(7)), ..options(Durability::Sync) };
    let store = Store::at(&path, &options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    for (at, (key, value)) in golden_pairs().enumerate() {
        space.apply(Op::Set { key: key.as_bytes(), value: value.as_bytes() }).expect("it is set");
        match at {
            15 => store.flush().expect("it works"),
            20 => store.rotate_data_key().expect("it works"),
            30 => store.flush().expect("it works"),
            _ => {}
        }
    }
    drop((space, store));
    copy_files(&path, &golden());
}

/// A store that an earlier build has encrypted is read, verified, and written to.
#[test]
fn the_golden_store_is_read() {
    let within = tempfile::tempdir().expect("a directory");
    let path = within.path().join("store");
    copy_files(&golden(), &path);
    let options = Options { encryption_key: Some(key(7)), ..options(Durability::Sync) };
    for _ in 0..2 {
        let store = Store::at(&path, &options).expect("it opens");
        store.verify().expect("all is right");
        let space = store.keyspace("default").expect("it is there");
        for (key, value) in golden_pairs() {
            let found = space.view().get(key.as_bytes()).expect("it is read");
            assert_eq!(found.as_deref(), Some(value.as_bytes()), "{key}");
        }
        space.apply(Op::Set { key: b"zelkova", value: b"1" }).expect("it is set");
        store.compact().expect("it works");
    }
}
