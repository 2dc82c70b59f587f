//! Backups: each is the store at its moment, whatever becomes of the store; only new files are copied. Neither a crash
//! nor a failing disk harms the backups that are there, and damage is found.

use super::faults::FAILURES;
use super::world::{
    Content, Step, World, beginning, follow, on, options, options_of, seeds, steps, wide_steps,
};
use crate::backup::format::Description;
use crate::backup::{Backup, BackupOptions, Keep, Progress, list, prune_in, restore_into, verify};
use crate::disk::simulated::{Fault, Simulated, Times};
use crate::disk::{self, Disk, Kind, Name, Sealed};
use forrest_engine::{Durability, ErrorKind, Options, Result};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DURABILITIES: [Durability; 3] = [Durability::Memory, Durability::Buffered, Durability::Sync];
const STORE: [u64; 2] = [3, 5];

fn go(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn sealed(disk: &Simulated) -> Arc<Sealed> {
    Arc::new(plain(disk))
}

fn plain(disk: &Simulated) -> Sealed {
    Sealed::plain(disk.clone())
}

fn back_up(world: &World, into: &Simulated) -> Result<Backup> {
    world.store.backup(on(into)?, STORE, &BackupOptions::default(), &mut go)
}

/// The content of a backup, as a restored store has it, which can be used like any other.
fn content(from: &Simulated, id: u64, options: &Options, what: &str) -> Content {
    let disk = Simulated::new();
    let restored =
        on(from).and_then(|from| restore_into(&from, Some(id), from.beside(disk.clone()), &mut go));
    restored.unwrap_or_else(|error| panic!("{what}: {error}"));
    // Everything is durable.
    let disk = disk.crash_states(0, 0).next().expect("there is one");
    let world = World::open(&disk, options).unwrap_or_else(|error| panic!("{what}: {error}"));
    world.store.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
    let content = world.content().unwrap_or_else(|error| panic!("{what}: {error}"));
    world.run(&Step::Set("default", 5, 30)).unwrap_or_else(|error| panic!("{what}: {error}"));
    world.run(&Step::Compact).unwrap_or_else(|error| panic!("{what}: {error}"));
    content
}

fn check(from: &Simulated, backups: &[(u64, Content)], options: &Options, what: &str) {
    for (id, expected) in backups {
        let verified = on(from).and_then(|from| verify(&from, Some(*id), &mut go));
        verified.unwrap_or_else(|error| panic!("{what}: backup {id}: {error}"));
        assert_eq!(&content(from, *id, options, what), expected, "{what}: backup {id}");
    }
}

/// The work of a seed, and the store, directory and backups after it.
struct Made {
    options: Options,
    disk: Simulated,
    world: World,
    state: Content,
    into: Simulated,
    backups: Vec<(u64, Content)>,
}

/// A store with some backups, and work since the last one.
fn made(seed: u64, count: usize, each: usize) -> Made {
    let options = options_of(seed, DURABILITIES[(seed % 3) as usize]);
    let (disk, into) = (Simulated::new(), Simulated::new());
    let world = World::open(&disk, &options).expect("it opens");
    let (mut states, mut backups) = (beginning(), Vec::new());
    let work = if seed % 4 == 3 { wide_steps(seed, count) } else { steps(seed, count) };
    for (at, step) in work.iter().enumerate() {
        follow(&mut states, step);
        world.run(step).expect("it works");
        if at % each == each / 2 {
            let backup = back_up(&world, &into).expect("it is made");
            backups.push((backup.id, states.last().expect("there is one").clone()));
        }
    }
    let state = states.pop().expect("there is one");
    Made { options, disk, world, state, into, backups }
}

/// Each backup is the store at its moment, and stays so when the store goes on, and when it is lost.
#[test]
pub(super) fn a_backup_is_the_store_at_that_moment() {
    for seed in seeds(4, 24) {
        let Made { options, disk, world, state, into, backups } = made(seed, 80, 10);
        drop((world, disk));
        let what = format!("seed {seed}");
        check(&into, &backups, &options, &what);
        let listed = list(sealed(&into)).expect("they are listed");
        let ids: Vec<_> = backups.iter().map(|(id, _)| *id).collect();
        assert_eq!(listed.iter().map(|backup| backup.id).collect::<Vec<_>>(), ids, "{what}");
        assert!(listed.iter().all(|backup| backup.damage.is_none() && backup.new_bytes <= backup.bytes));
        drop(state);
    }
}

/// A backup of a store that did not change copies only what memory has; one after a flush the new tables.
#[test]
fn only_what_is_new_is_copied() {
    let options = options(Durability::Buffered);
    let (disk, into) = (Simulated::new(), Simulated::new());
    let world = World::open(&disk, &options).expect("it opens");
    for number in 0..60 {
        world.run(&Step::Set("default", number, 200)).expect("it works");
    }
    world.run(&Step::Compact).expect("it works");
    let first = back_up(&world, &into).expect("it is made");
    let tables = |disk: &Simulated| {
        let files = disk.files().into_iter();
        let files = files.filter(|(name, _)| matches!(name.kind, Kind::Table | Kind::Remix));
        files.map(|(name, bytes)| (name, bytes.len() as u64)).collect::<Vec<_>>()
    };
    let before = tables(&disk);
    let log = first.bytes - before.iter().map(|(_, len)| len).sum::<u64>();
    assert_eq!((first.bytes, first.files), (first.new_bytes, before.len() as u64 + 1));
    assert!(log < 200, "a log without a change has {log} bytes");

    let read = disk.bytes_read();
    let again = back_up(&world, &into).expect("it is made");
    assert_eq!((again.bytes, again.new_bytes), (first.bytes, log));
    assert_eq!(disk.bytes_read(), read, "nothing of the store was read");

    world.run(&Step::Set("other", 1, 300)).expect("it works");
    world.run(&Step::Flush).expect("it works");
    let third = back_up(&world, &into).expect("it is made");
    let new = tables(&disk).into_iter().filter(|file| !before.contains(file)).map(|(_, len)| len);
    assert_eq!(third.new_bytes, new.sum::<u64>() + log);
}

/// A restored store, and one that was copied with its numbers, follow another one in its directory. Their new tables
/// have numbers that the original has used as well.
pub(super) fn descents(seeds: Range<u64>) {
    for seed in seeds {
        let Made { options, disk, world, state, into, mut backups } = made(seed, 30, 9);
        let what = format!("seed {seed}");
        // Two stores with one past go apart, by values of the same length.
        let copy = disk.kill();
        let twin = World::open(&copy, &options).expect("it opens");
        let mut states = [vec![state], vec![twin.content().expect("it is read")]];
        for number in 0..24 {
            for (world, (states, key)) in [&world, &twin].into_iter().zip(states.iter_mut().zip([7, 8])) {
                for step in [Step::Set("default", number, 40), Step::Set("default", key, 41)] {
                    follow(states, &step);
                    world.run(&step).expect("it works");
                }
                if number % 6 == 5 {
                    follow(states, &Step::Flush);
                    world.run(&Step::Flush).expect("it works");
                    let backup = back_up(world, &into).expect("it is made");
                    backups.push((backup.id, states.last().expect("there is one").clone()));
                }
            }
        }
        check(&into, &backups, &options, &what);
        // One of them is restored and goes on.
        let (id, content) = backups[1].clone();
        let restored = Simulated::new();
        let from = on(&into).expect("it opens");
        let new = from.beside(restored.clone());
        restore_into(&from, Some(id), new, &mut go).expect("it is restored");
        let world = World::open(&restored, &options).expect("it opens");
        let mut states = vec![content];
        for number in 0..12 {
            for step in [Step::Set("default", number, 77), Step::Flush] {
                follow(&mut states, &step);
                world.run(&step).expect("it works");
            }
            let backup = back_up(&world, &into).expect("it is made");
            backups.push((backup.id, states.last().expect("there is one").clone()));
        }
        check(&into, &backups, &options, &what);
    }
}

#[test]
fn stores_of_one_descent_are_not_mixed_up() {
    descents(seeds(6, 40));
}

/// Number of I/Os of the next backup in its directory.
fn ios(world: &World, into: &Simulated) -> u64 {
    let copy = into.kill();
    back_up(world, &copy).expect("it is made");
    copy.ios()
}

/// Cuts the power at every I/O of a backup and of a prune, in every way that the simulated disk knows: earlier backups
/// stay whole, a finished one is there, and the next backup and the next prune work. Returns the number of states.
pub(super) fn power_cuts(seeds: Range<u64>) -> u64 {
    let mut looked = 0;
    for seed in seeds {
        let Made { options, world, state, into, backups, .. } = made(seed, 24, 9);
        for io in 0..=ios(&world, &into) {
            let what = format!("seed {seed}, a backup cut at I/O {io}");
            let disk = into.kill();
            disk.cut_power_at(io);
            let done = back_up(&world, &disk);
            for after in disk.crash_states(3, io) {
                looked += 1;
                let mut expected = backups.clone();
                let listed = list(sealed(&after)).expect("they are listed");
                if done.is_ok() || listed.len() > backups.len() {
                    expected.push((listed.last().expect("there is one").id, state.clone()));
                }
                assert_eq!(listed.len(), expected.len(), "{what}");
                check(&after, &expected[backups.len() - 1..], &options, &what);
                check(&after, &expected[..1], &options, &what);
                let backup = back_up(&world, &after).unwrap_or_else(|error| panic!("{what}: {error}"));
                expected.push((backup.id, state.clone()));
                check(&after, &expected[expected.len() - 1..], &options, &what);
                check_nothing_left(&after, &what);
            }
        }
        looked += cut_prunes(&into, &backups, &options, &format!("seed {seed}"));
    }
    looked
}

fn cut_prunes(into: &Simulated, backups: &[(u64, Content)], options: &Options, what: &str) -> u64 {
    let (mut looked, keep) = (0, Keep::Newest(1));
    for io in 0.. {
        let what = format!("{what}, a prune cut at I/O {io}");
        let disk = into.kill();
        disk.cut_power_at(io);
        let done = prune_in(sealed(&disk), keep);
        for after in disk.crash_states(3, io) {
            looked += 1;
            let listed = list(sealed(&after)).expect("they are listed");
            // What is listed is whole, and the newest one always is.
            let there = backups.iter().filter(|(id, _)| listed.iter().any(|backup| backup.id == *id));
            let there: Vec<_> = there.cloned().collect();
            assert_eq!(there.len(), listed.len(), "{what}");
            assert_eq!(there.last(), backups.last(), "{what}");
            if done.is_ok() {
                assert_eq!(listed.len(), 1, "{what}");
            }
            check(&after, &there, options, &what);
            prune_in(sealed(&after), keep).unwrap_or_else(|error| panic!("{what}: {error}"));
            check(&after, &backups[backups.len() - 1..], options, &what);
            check_nothing_left(&after, &what);
        }
        if done.is_ok() {
            return looked;
        }
    }
    unreachable!("a prune ends")
}

/// A prune that keeps all finds nothing to remove.
fn check_nothing_left(disk: &Simulated, what: &str) {
    let before = disk.files().len();
    let pruned = prune_in(sealed(disk), Keep::Newest(100)).expect("it works");
    assert_eq!((pruned.removed.len(), pruned.bytes, disk.files().len()), (0, 0, before), "{what}");
}

#[test]
fn a_power_cut_harms_no_backup() {
    let looked = power_cuts(seeds(2, 4));
    println!("{looked} states");
    assert!(looked > 0, "no state was looked at");
}

/// Every I/O of a backup fails in turn, in every way: it is made nevertheless, or returns an error. What was there is
/// whole, also after a power cut, and the next backup works.
pub(super) fn failures(seeds: Range<u64>) {
    for seed in seeds {
        let Made { options, world, state, into, backups, .. } = made(seed, 24, 9);
        for io in 0..ios(&world, &into) {
            for kind in FAILURES {
                let what = format!("seed {seed}, {kind:?} at I/O {io}");
                let disk = into.kill();
                disk.fail(Fault { at: io, times: Times::Once, kind });
                let done = back_up(&world, &disk);
                if let Err(error) = &done {
                    let kinds = [ErrorKind::Io, ErrorKind::OutOfSpace];
                    assert!(kinds.contains(&error.kind()), "{what}: {error}");
                }
                disk.heal();
                for disk in disk.crash_states(1, io).chain([disk.clone()]) {
                    check(&disk, &backups[backups.len() - 1..], &options, &what);
                    let listed = list(sealed(&disk)).expect("they are listed");
                    assert!(done.is_err() || listed.len() > backups.len(), "{what}");
                    if listed.len() > backups.len() {
                        let id = listed.last().expect("there is one").id;
                        check(&disk, &[(id, state.clone())], &options, &what);
                    }
                }
                back_up(&world, &disk).unwrap_or_else(|error| panic!("{what}: {error}"));
                check_nothing_left(&disk, &what);
            }
        }
    }
}

#[test]
fn any_io_of_a_backup_may_fail() {
    failures(seeds(1, 3));
}

/// A prune fails at each I/O in each way: what is listed then is whole, and the next prune removes the rest.
#[test]
fn any_io_of_a_prune_may_fail() {
    let Made { options, into, backups, .. } = made(4, 24, 9);
    let newest = &backups[backups.len() - 1..];
    for io in 0.. {
        let mut ended = true;
        for kind in FAILURES {
            let what = format!("{kind:?} at I/O {io} of a prune");
            let disk = into.kill();
            disk.fail(Fault { at: io, times: Times::Once, kind });
            let done = prune_in(sealed(&disk), Keep::Newest(1));
            ended &= done.is_ok();
            disk.heal();
            for disk in disk.crash_states(1, io).chain([disk.clone()]) {
                let listed = list(sealed(&disk)).expect("they are listed");
                let there = backups.iter().filter(|(id, _)| listed.iter().any(|backup| backup.id == *id));
                let there: Vec<_> = there.cloned().collect();
                assert!(there.len() == listed.len() && there.ends_with(newest), "{what}");
                check(&disk, &there, &options, &what);
                let pruned = prune_in(sealed(&disk), Keep::Newest(1));
                pruned.unwrap_or_else(|error| panic!("{what}: {error}"));
                check_nothing_left(&disk, &what);
                check(&disk, newest, &options, &what);
            }
        }
        if ended && io > ios_of_a_prune(&into) {
            return;
        }
    }
}

fn ios_of_a_prune(into: &Simulated) -> u64 {
    let copy = into.kill();
    prune_in(sealed(&copy), Keep::Newest(1)).expect("it works");
    copy.ios()
}

/// A restore fails at each I/O on both sides in each way, or the power is cut: the new store is whole, or there is an
/// error, and the backups stay.
#[test]
fn any_io_of_a_restore_may_fail() {
    let Made { options, into, backups, .. } = made(3, 24, 9);
    let (id, expected) = &backups[backups.len() - 1];
    let (from, to) = (into.kill(), Simulated::new());
    restore_into(&plain(&from), Some(*id), plain(&to), &mut go).expect("it works");
    let mut found = 0;
    for (of_backup, count) in [(true, from.ios()), (false, to.ios())] {
        for io in 0..count {
            for kind in FAILURES {
                let what = format!("{kind:?} at I/O {io}, of the backup: {of_backup}");
                let (from, to) = (into.kill(), Simulated::new());
                let failing = if of_backup { &from } else { &to };
                failing.fail(Fault { at: io, times: Times::Once, kind });
                match restore_into(&plain(&from), Some(*id), plain(&to), &mut go) {
                    Ok(_) => {
                        to.heal();
                        for to in to.crash_states(1, io) {
                            let world =
                                World::open(&to, &options).unwrap_or_else(|error| panic!("{what}: {error}"));
                            assert_eq!(&world.content().expect("it is read"), expected, "{what}");
                        }
                    }
                    Err(error) => {
                        let kinds = [ErrorKind::Io, ErrorKind::OutOfSpace, ErrorKind::Corrupt];
                        assert!(kinds.contains(&error.kind()), "{what}: {error}");
                        found += 1;
                    }
                }
                from.heal();
                check(&from, &backups[backups.len() - 1..], &options, &what);
            }
        }
    }
    assert!(found > 0, "no failure was reported");
}

/// A bit of every byte of every file, and files that are missing or cut off: what a backup needs is reported, and never
/// restored.
#[test]
fn damage_is_found_and_never_restored() {
    let Made { options, into, backups, .. } = made(2, 24, 11);
    let files = into.files();
    for (name, bytes) in &files {
        let mut changes: Vec<Option<Vec<u8>>> = vec![None];
        if let Some(last) = bytes.len().checked_sub(1) {
            changes.push(Some(bytes[..last].to_vec()));
            changes.push(Some([bytes, &[0][..]].concat()));
            let step = if forrest_testing::sized(true, false) && bytes.len() > 2048 { 7 } else { 1 };
            changes.extend((0..bytes.len()).step_by(step).map(|at| {
                let mut bytes = bytes.clone();
                bytes[at] ^= 1 << (at % 8);
                Some(bytes)
            }));
        }
        for (at, change) in changes.into_iter().enumerate() {
            let what = format!("{name}, change {at}");
            let disk = Simulated::from_files(files.clone());
            match change {
                Some(bytes) => disk.replace(*name, bytes),
                None => drop(disk.remove(*name)),
            }
            let mut is_found = name.kind == Kind::Backup;
            for (id, expected) in &backups {
                if verify(&plain(&disk), Some(*id), &mut go).is_ok() {
                    // Another one is damaged. Those that are whole need not be restored each time.
                    if at < 3 {
                        assert_eq!(&content(&disk, *id, &options, &what), expected, "{what}");
                    }
                    continue;
                }
                is_found = true;
                restore_into(&plain(&disk), Some(*id), plain(&Simulated::new()), &mut go).expect_err(&what);
            }
            assert!(is_found, "{what}: nobody noticed it");
        }
    }
}

/// Damage of a description keeps a prune from removing anything, until newer backups have taken its place.
#[test]
fn nothing_is_removed_that_a_damaged_description_may_name() {
    let Made { options, world, state, into, backups, .. } = made(1, 24, 9);
    let (newest, _) = backups[backups.len() - 1];
    into.flip(Name::copy(newest), 70, 1);
    let listed = list(sealed(&into)).expect("they are listed");
    let damage = listed.last().and_then(|backup| backup.damage.as_ref()).expect("it is damaged");
    assert!(damage.contains(&Name::copy(newest).to_string()), "{damage}");
    let files = into.files();
    let error =
        prune_in(Arc::new(on(&into).expect("it opens")), Keep::Newest(1)).expect_err("it may name anything");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(into.files() == files);
    let backup = back_up(&world, &into).expect("it is made");
    let pruned =
        prune_in(Arc::new(on(&into).expect("it opens")), Keep::Newest(1)).expect("it is not needed any more");
    assert_eq!(pruned.removed.last(), Some(&newest));
    check(&into, &[(backup.id, state)], &options, "after the prune");
    check_nothing_left(&into, "after the prune");
}

/// Backups that are being read are not removed, and the last one never is.
#[test]
fn what_is_read_is_not_removed() {
    let Made { options, into, backups, .. } = made(0, 24, 7);
    let hold = into.hold(Name::backup(backups[0].0)).expect("it is there");
    let keep = Keep::Newest(0);
    let error = prune_in(Arc::new(on(&into).expect("it opens")), keep).expect_err("it is read");
    assert_eq!(error.kind(), ErrorKind::Busy);
    check(&into, &backups, &options, "while one is read");
    drop(hold);
    let pruned = prune_in(Arc::new(on(&into).expect("it opens")), keep).expect("it works");
    assert_eq!(pruned.removed.len(), backups.len() - 1);
    let later = SystemTime::now() + Duration::from_secs(60);
    let pruned = prune_in(Arc::new(on(&into).expect("it opens")), Keep::Since(later)).expect("it works");
    assert_eq!(pruned.removed, []);
    check(&into, &backups[backups.len() - 1..], &options, "the last one");
}

/// The clock was wrong for the last backup: those before it are kept by their time all the same.
#[test]
fn a_clock_that_was_wrong_once_costs_no_backup() {
    prunes_by_a_wrong_clock();
}

pub(super) fn prunes_by_a_wrong_clock() {
    let Made { options, into, backups, .. } = made(0, 24, 7);
    let within = on(&into).expect("it opens");
    for (at, (id, _)) in backups.iter().enumerate() {
        let time = if at + 1 == backups.len() { 0 } else { 1_000 * (1 + at as u64) };
        let described = Description::read(&within, Name::copy(*id)).expect("it is whole");
        disk::unlink(&within, Name::copy(*id)).expect("it is removed");
        Description { time, ..described }.write(&within, Name::copy(*id)).expect("it is written");
    }
    drop(within);
    let keep = Keep::Since(UNIX_EPOCH + Duration::from_secs(2));
    let pruned = prune_in(Arc::new(on(&into).expect("it opens")), keep).expect("it works");
    assert!(backups.len() > 2);
    assert_eq!(pruned.removed, [backups[0].0]);
    check(&into, &backups[1..], &options, "after it");
}

/// The wrong directory is refused, and a callback may end it; nothing is left.
#[test]
fn another_store_is_refused() {
    let Made { world, into, backups, .. } = made(0, 24, 7);
    let files = into.files();
    let mut options = BackupOptions::default();
    let error = world
        .store
        .backup(on(&into).expect("it opens"), [4, 5], &options, &mut go)
        .expect_err("it is another one");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    options.other_store = true;
    let mut end = |_| ControlFlow::Break(());
    let error = world
        .store
        .backup(on(&into).expect("it opens"), [4, 5], &options, &mut end)
        .expect_err("it is ended");
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(into.files() == files);
    world.store.backup(on(&into).expect("it opens"), [4, 5], &options, &mut go).expect("it is meant");
    assert_eq!(list(sealed(&into)).expect("they are listed").len(), backups.len() + 1);
}

/// A directory of backups is never opened as a store.
#[test]
fn a_directory_of_backups_is_no_store() {
    let Made { options, into, .. } = made(0, 24, 7);
    let files = into.files();
    let error = World::open(&into, &options).err().expect("it is none");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("backup restore"), "{error}");
    assert!(into.files() == files);
}
