//! The changes of a store as a stream: a copy that follows it has what the store has, at each sequence number, after
//! restarts, crashes and damage, or gets the error that changes are gone.

use super::world::{
    Content, Pairs, Step, World, beginning, follow, ingest_steps, options, seeds, steps, wide_steps,
};
use crate::core::Handle;
use crate::disk::Kind;
use crate::disk::simulated::{Failure, Fault, Simulated, Times};
use crate::history::History;
use crate::recover;
use crate::stream::Stream;
use forrest_engine::{
    Change, Changes as _, Chunk, Durability, ErrorKind, Filled, Op, Options, Result, Snapshot as _,
    View as _, What,
};
use forrest_index::Direction;
use forrest_testing::sized;
use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

fn kept(durability: Durability) -> Options {
    Options { history: true, ..options(durability) }
}

fn reading() -> Options {
    Options { read_only: true, ..options(Durability::Buffered) }
}

fn stream(world: &World, since: u64, durability: Durability) -> Result<Stream> {
    world.store.changes(since, durability)
}

/// The changes that there are by now.
fn rest(stream: &mut Stream) -> Result<Vec<Change>> {
    let mut all = Vec::new();
    while let Some(change) = stream.next()? {
        all.push(change);
    }
    Ok(all)
}

fn all(world: &World, since: u64, durability: Durability) -> Result<Vec<Change>> {
    rest(&mut stream(world, since, durability)?)
}

/// The pairs of a range, both ends included, that a store has now.
fn pairs(world: &World, space: &str, first: &[u8], last: &[u8]) -> Pairs {
    let view = world.store.snapshot().expect("it is taken").view(space);
    let mut chunk = Chunk::default();
    chunk.clear(1024);
    let bounds = (Bound::Included(first), Bound::Included(last));
    let filled =
        view.fill(&mut chunk, &mut Default::default(), bounds, Direction::Forward).expect("it reads");
    assert!(matches!(filled, Filled::End), "it has more than is looked at");
    (0..chunk.len()).map(|at| (chunk.key(at).to_vec(), chunk.value_bytes(at).to_vec())).collect()
}

/// Makes a change; the pairs of an ingest are read from the store.
fn apply(content: &mut Content, change: &Change, world: &World) {
    let name = change.keyspace.to_string();
    if matches!(change.what, What::CreateKeyspace) {
        assert!(content.insert(name, Pairs::new()).is_none(), "it is there: {change:?}");
        return;
    }
    if matches!(change.what, What::DropKeyspace) {
        assert!(content.remove(&name).is_some(), "it is not there: {change:?}");
        return;
    }
    let own = content.get_mut(&name).unwrap_or_else(|| panic!("no keyspace: {change:?}"));
    match &change.what {
        What::Set { key, value } => drop(own.insert(key.clone(), value.clone())),
        What::Delete { key } => drop(own.remove(key)),
        What::DeleteRange { start, end } => {
            own.retain(|key, _| key < start || end.as_ref().is_some_and(|end| key >= end));
        }
        What::Ingest { first, last } => {
            own.retain(|key, _| key < first || key > last);
            own.extend(pairs(world, &name, first, last));
        }
        other => panic!("{other:?}"),
    }
}

/// Applies changes, whose numbers ascend.
fn apply_all(content: &mut Content, changes: &[Change], world: &World) {
    assert!(changes.is_sorted_by(|a, b| a.sequence < b.sequence), "{changes:?}");
    assert!(changes.last().is_none_or(|last| last.ends_batch), "a batch is not whole: {changes:?}");
    changes.iter().for_each(|change| apply(content, change, world));
}

fn first_content() -> Content {
    beginning().pop().expect("there is one")
}

/// Random work; the store is closed or killed now and then. One that follows from the beginning has the content of the
/// store after each step; one that comes later, at each number, too.
pub(super) fn agree_with_the_model(seeds: Range<u64>) {
    for seed in seeds {
        let options = kept(Durability::Buffered);
        let mut disk = Simulated::new();
        let mut world = World::open(&disk, &options).expect("it opens");
        let mut states = beginning();
        let (mut own, mut last) = (first_content(), 0);
        let mut at_numbers: BTreeMap<u64, Content> = BTreeMap::from([(0, own.clone())]);
        let mut follower = stream(&world, 0, Durability::Memory).expect("all is kept");
        let has_ingests = seed % 3 == 2;
        let work = match seed % 3 {
            0 => steps(seed, 60),
            1 => wide_steps(seed, 30),
            _ => ingest_steps(seed, 40),
        };
        for (at, step) in work.iter().enumerate() {
            follow(&mut states, step);
            world.run(step).unwrap_or_else(|error| panic!("seed {seed}, step {at}: {error}"));
            let changes =
                rest(&mut follower).unwrap_or_else(|error| panic!("seed {seed}, step {at}: {error}"));
            last = changes.last().map_or(last, |change| change.sequence);
            apply_all(&mut own, &changes, &world);
            assert_eq!(Some(&own), states.last(), "seed {seed}, step {at}, {step:?}");
            let sequence = world.store.snapshot().expect("it is taken").sequence().expect("it has one");
            at_numbers.insert(sequence, own.clone());
            if at % 7 == 3 {
                drop(follower);
                if at % 2 == 0 {
                    disk = disk.kill();
                }
                drop(world);
                world = World::open(&disk, &options).expect("it opens");
                follower = stream(&world, last, Durability::Memory).expect("all is kept");
            }
        }
        if has_ingests {
            continue;
        }
        let changes = all(&world, 0, Durability::Buffered).expect("all is kept");
        let mut content = first_content();
        for change in &changes {
            apply(&mut content, change, &world);
            // No state lies between two changes of a batch.
            assert!(!change.ends_batch || states.contains(&content), "seed {seed}, at {}", change.sequence);
            if let Some(then) = at_numbers.get(&change.sequence) {
                assert_eq!(&content, then, "seed {seed}, at {}", change.sequence);
                assert!(change.ends_batch, "seed {seed}, at {}", change.sequence);
            }
        }
        for since in (0..=last).step_by(7) {
            let some = all(&world, since, Durability::Buffered).expect("all is kept");
            let wanted = changes.iter().filter(|change| change.sequence > since);
            assert!(wanted.eq(&some), "seed {seed}, since {since}");
        }
    }
}

#[test]
fn one_that_follows_has_what_the_store_has() {
    agree_with_the_model(seeds(12, 60));
}

/// Power cuts at every I/O of some work, while somebody follows what is synced. What he has seen is never taken back,
/// and the changes that are there make the content that is there. Returns the number of states.
pub(super) fn after_power_cuts(seeds: Range<u64>, every: u64) -> u64 {
    cuts(seeds, every, false)
}

/// The same for one who follows in another process.
pub(super) fn after_power_cuts_beside(seeds: Range<u64>, every: u64) -> u64 {
    cuts(seeds, every, true)
}

fn cuts(seeds: Range<u64>, every: u64, is_beside: bool) -> u64 {
    let mut states = 0;
    for seed in seeds {
        let durability = [Durability::Buffered, Durability::Sync, Durability::Memory][(seed % 3) as usize];
        let options = kept(durability);
        let work = match seed % 2 {
            0 => steps(seed, 25),
            _ => ingest_steps(seed, 12),
        };
        let run = |disk: &Simulated| -> Vec<Change> {
            let mut seen = Vec::new();
            let Ok(world) = World::open(disk, &options) else { return seen };
            let reader = is_beside.then(|| World::open(disk, &reading()));
            let from = match &reader {
                None => &world,
                Some(Ok(reader)) => reader,
                Some(Err(_)) => return seen,
            };
            let Ok(mut follower) = stream(from, 0, Durability::Sync) else { return seen };
            for (at, step) in work.iter().enumerate() {
                let mut done = world.run(step);
                if is_beside && at % 3 == 2 {
                    done = done.and_then(|()| world.store.note_synced());
                }
                while let Ok(Some(change)) = follower.next() {
                    seen.push(change);
                }
                if done.is_err() {
                    break;
                }
            }
            seen
        };
        let whole = Simulated::new();
        assert!(!run(&whole).is_empty(), "seed {seed}: nothing was seen");
        for io in (0..=whole.ios()).step_by(every as usize) {
            let disk = Simulated::new();
            disk.cut_power_at(io);
            let seen = run(&disk);
            for (number, after) in disk.crash_states(2, io).enumerate() {
                let what = format!("seed {seed}, cut at I/O {io}, state {number}");
                follows(&after, &options, &seen, &what);
                states += 1;
            }
        }
    }
    states
}

/// The store on a disk has the changes that were seen, and they and the others make its content; and so after it was
/// changed.
fn follows(disk: &Simulated, options: &Options, seen: &[Change], what: &str) {
    let world = World::open(disk, options).unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut found = all(&world, 0, Durability::Memory).unwrap_or_else(|error| panic!("{what}: {error}"));
    let is_ingest = |change: &&Change| matches!(change.what, What::Ingest { .. });
    let has_ingest = found.iter().any(|change| is_ingest(&change));
    world.run(&Step::Set("default", 3, 9)).unwrap_or_else(|error| panic!("{what}: {error}"));
    let more = all(&world, found.last().map_or(0, |change| change.sequence), Durability::Memory);
    found.extend(more.unwrap_or_else(|error| panic!("{what}: {error}")));
    let is_there = |change: &Change| {
        // Of an ingest that a crash has cut, another change tells.
        found.contains(change)
            || found.iter().any(|other| is_ingest(&other) && is_ingest(&change) && other.what == change.what)
    };
    for change in seen {
        assert!(is_there(change), "{what}: {change:?} was synced and is not there: {found:?}");
    }
    let least = seen.iter().filter(|change| !is_ingest(change)).map(|change| change.sequence).max();
    let numbers = |changes: &[Change]| -> Vec<u64> {
        let others = changes.iter().filter(|change| !is_ingest(change));
        others.map(|change| change.sequence).filter(|number| Some(*number) <= least).collect()
    };
    assert_eq!(numbers(seen), numbers(&found), "{what}: others are there");
    let mut content = first_content();
    apply_all(&mut content, &found, &world);
    let now = world.content().unwrap_or_else(|error| panic!("{what}: {error}"));
    if has_ingest {
        // A range that was read has later changes too, which are made again.
        let names = |content: &Content| content.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&content), names(&now), "{what}");
    }
    assert_eq!(content, now, "{what}: {found:?}");
}

#[test]
fn a_power_cut_takes_nothing_back_that_was_seen_as_synced() {
    let states = after_power_cuts(seeds(3, 8), sized(3, 2));
    println!("{states} states");
    assert!(states > 100, "only {states} states were looked at");
}

#[test]
fn a_power_cut_takes_nothing_back_that_another_process_has_seen_as_synced() {
    let states = after_power_cuts_beside(seeds(3, 8), sized(4, 2));
    println!("{states} states");
    assert!(states > 100, "only {states} states were looked at");
}

fn numbers(changes: &[Change]) -> Vec<u64> {
    changes.iter().map(|change| change.sequence).collect()
}

/// In another process, a change comes as synced with the next record after its sync, or with the one that is written
/// when there is nothing else to write, and not with its flush, which may come much later.
pub(super) fn synced_beside() {
    let (disk, options) = (Simulated::new(), kept(Durability::Buffered));
    let world = World::open(&disk, &options).expect("it opens");
    let reader = World::open(&disk, &reading()).expect("it opens");
    let mut synced = stream(&reader, 0, Durability::Sync).expect("all is kept");
    let mut next = || numbers(&rest(&mut synced).expect("all is kept"));
    for number in 0..3 {
        world.set_number(number).expect("it works");
    }
    assert_eq!(next(), [], "they are written only");
    world.store.sync().expect("it works");
    world.set_number(3).expect("it works");
    assert_eq!(next(), [1, 2, 3], "and not the change that states it");
    world.store.sync().expect("it works");
    assert_eq!(next(), [], "nothing states that it was synced");
    let written = disk.bytes_written();
    for _ in 0..3 {
        world.store.note_synced().expect("it works");
    }
    assert!((1..64).contains(&(disk.bytes_written() - written)), "it is stated once");
    assert_eq!(next(), [4]);
    // The next log states how much of this one is synced.
    world.set_number(4).expect("it works");
    world.store.sync().expect("it works");
    world.set_number(5).expect("it works");
    world.store.freeze(&mut world.store.order()).expect("it works");
    assert_eq!(next(), [5], "the one after it is written only");
    world.set_number(6).expect("it works");
    assert_eq!(next(), []);
    // If a log was synced, so are those before it.
    world.store.sync().expect("it works");
    world.store.note_synced().expect("it works");
    assert_eq!(next(), [6, 7]);
    // What was written is made durable with the first change of the next process.
    world.set_number(7).expect("it works");
    drop(world);
    let world = World::open(&disk.kill(), &options).expect("it opens");
    drop(world);
    assert_eq!(next(), [], "opening syncs nothing");
    let world = World::open(&disk, &options).expect("it opens");
    world.set_number(8).expect("it works");
    assert_eq!(next(), [8]);
}

/// The header of a log is synced alone, when nothing of the logs before it may be.
pub(super) fn headers_prove_nothing_beside() {
    let (disk, options) = (Simulated::new(), kept(Durability::Buffered));
    let world = World::open(&disk, &options).expect("it opens");
    let reader = World::open(&disk, &reading()).expect("it opens");
    let mut synced = stream(&reader, 0, Durability::Sync).expect("all is kept");
    for number in 0..3 {
        world.set_number(number).expect("it works");
        world.store.freeze(&mut world.store.order()).expect("it works");
    }
    world.set_number(3).expect("it works");
    assert_eq!(numbers(&rest(&mut synced).expect("all is kept")), [], "all is written only");
    world.store.sync().expect("it works");
    world.store.note_synced().expect("it works");
    assert_eq!(numbers(&rest(&mut synced).expect("all is kept")), [1, 2, 3, 4]);
}

#[test]
fn a_header_that_was_synced_alone_proves_nothing() {
    headers_prove_nothing_beside();
}

#[test]
fn a_reader_beside_gets_what_is_synced_before_it_is_in_tables() {
    synced_beside();
}

/// A store that has nothing else to write states by itself what was synced.
#[test]
fn a_reader_beside_a_store_at_rest_gets_what_is_synced() {
    let (disk, options) = (Simulated::new(), kept(Durability::Sync));
    let store = Handle::open(super::world::sealed(&disk, &options).unwrap(), &options).expect("it opens");
    let reader = World::open(&disk, &reading()).expect("it opens");
    let mut synced = stream(&reader, 0, Durability::Sync).expect("all is kept");
    let space = store.keyspace("default").expect("it is there");
    for number in 1..=2 {
        store.apply(&space, Op::Set { key: &b"k"[..], value: &[number] }).expect("it is set");
        let change = synced.wait(Duration::from_secs(600)).expect("it waits").expect("it comes");
        assert_eq!(change.sequence, u64::from(number));
    }
}

/// In the process that opens a store again, what was stated to be synced comes at once, and the rest with the first
/// change, whatever its durability.
pub(super) fn synced_again() {
    let (disk, options) = (Simulated::new(), kept(Durability::Buffered));
    let world = World::open(&disk, &options).expect("it opens");
    world.set_number(0).expect("it works");
    world.store.sync().expect("it works");
    world.set_number(1).expect("it works");
    let disk = disk.kill();
    drop(world);
    let world = World::open(&disk, &options).expect("it opens");
    let written = disk.bytes_written();
    let mut synced = stream(&world, 0, Durability::Sync).expect("all is kept");
    let mut next = || numbers(&rest(&mut synced).expect("all is kept"));
    assert_eq!(next(), [1]);
    assert_eq!(disk.bytes_written(), written, "it asks for no sync");
    world.set_number(2).expect("it works");
    assert_eq!(next(), [2], "the first change has synced what was before it");
    world.store.sync().expect("it works");
    assert_eq!(next(), [3]);
}

#[test]
fn what_was_synced_before_the_store_was_opened_comes_at_once() {
    synced_again();
}

/// One who follows the whole of a long history reads each byte a few times, and the manifest not for each change.
#[test]
fn statements_are_read_once() {
    let (disk, options) =
        (Simulated::new(), Options { memtable_bytes: 1 << 20, ..kept(Durability::Buffered) });
    let world = World::open(&disk, &options).expect("it opens");
    let bytes_for = |changes: u32| {
        for number in 0..changes {
            world.set_number(number).expect("it works");
            if number % 4 == 0 {
                world.store.sync().expect("it works");
            }
        }
        let reader = World::open(&disk, &reading()).expect("it opens");
        let before = disk.bytes_read();
        let found = all(&reader, 0, Durability::Sync).expect("all is kept");
        (found.len(), disk.bytes_read() - before)
    };
    let (few, many) = (bytes_for(200), bytes_for(1800));
    assert!(few.0 > 190 && many.0 > 1990, "{few:?}, {many:?}");
    assert!(many.1 < 12 * few.1, "{few:?}, {many:?}");
}

/// The bytes that the logs count which a store does not need, and their number.
fn log_bytes(disk: &Simulated, world: &World) -> (u64, usize) {
    let floor = forrest_base::lock(&world.store.manifest).state().floor;
    let logs = disk.files().into_iter().filter(|(name, _)| name.kind == Kind::Log);
    let old: Vec<u64> = logs
        .filter(|(name, _)| name.number < floor)
        .map(|(_, bytes)| (bytes.len() as u64).max(64 << 10))
        .collect();
    (old.iter().sum(), old.len())
}

fn history(world: &World) -> &History {
    world.store.history.as_ref().expect("it keeps history")
}

/// What is kept has no more bytes than the option says, and as many as fit. Who comes too late, or is too slow, gets
/// an error, and never other changes.
pub(super) fn bounded_in_bytes() {
    let disk = Simulated::new();
    let most = 320 << 10;
    let options = Options { history_bytes: most, ..kept(Durability::Buffered) };
    let world = World::open(&disk, &options).expect("it opens");
    let mut slow = stream(&world, 0, Durability::Buffered).expect("all is kept");
    assert!(slow.next().expect("it reads").is_none());
    world.set_number(0).expect("it works");
    assert_eq!(slow.next().expect("it reads").expect("there is one").sequence, 1);
    for number in 1..400 {
        world.set_number(number).expect("it works");
        if number % 10 == 0 {
            world.run(&Step::Flush).expect("it works");
            let (bytes, _) = log_bytes(&disk, &world);
            assert!(bytes <= most, "{bytes} bytes");
        }
    }
    let (bytes, logs) = log_bytes(&disk, &world);
    assert!(bytes > most / 2 && logs > 2, "more would fit: {bytes} bytes in {logs} logs");
    let late = stream(&world, 0, Durability::Buffered).err().expect("it is too late");
    assert_eq!(late.kind(), ErrorKind::Gone, "{late}");
    let mut seen = 1;
    let error = loop {
        match slow.next() {
            Ok(Some(change)) => {
                assert_eq!(change.sequence, seen + 1);
                seen += 1;
            }
            Ok(None) => panic!("it was too slow"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Gone, "{error}");
    // Each place is gone, or all that follows is there, and so it stays when the store is opened again.
    let last = world.store.snapshot().expect("it is taken").sequence().expect("it has one");
    let kept: Vec<bool> = (0..=last).map(|since| all(&world, since, Durability::Buffered).is_ok()).collect();
    assert!(kept.is_sorted() && !kept[0] && kept[last as usize]);
    drop((slow, world));
    let world = World::open(&disk, &options).expect("it opens");
    for (since, is_kept) in kept.iter().enumerate() {
        let found = all(&world, since as u64, Durability::Buffered);
        assert_eq!(found.is_ok(), *is_kept, "{since}");
        if let Ok(found) = found {
            let numbers: Vec<u64> = found.iter().map(|change| change.sequence).collect();
            assert_eq!(numbers, (since as u64 + 1..=last).collect::<Vec<_>>());
        }
    }
    let error = stream(&world, last + 1, Durability::Buffered).err().expect("there is no such change");
    assert_eq!(error.kind(), ErrorKind::Gone, "{error}");
}

#[test]
fn history_is_bounded_in_bytes() {
    bounded_in_bytes();
}

/// A log goes when all of its changes are older than the option says, and not before.
#[test]
fn history_is_bounded_in_time() {
    let disk = Simulated::new();
    let options = Options { history_age: Duration::from_secs(60), ..kept(Durability::Buffered) };
    let world = World::open(&disk, &options).expect("it opens");
    for number in 0..5 {
        world.set_number(number).expect("it works");
        world.run(&Step::Flush).expect("it works");
    }
    world.set_number(5).expect("it works");
    world.store.sync().expect("it works");
    assert_eq!(log_bytes(&disk, &world).1, 5);
    for (later_ms, logs) in [(30_000, 5), (59_000, 5), (3_600_000, 0)] {
        history(&world).later_ms.store(later_ms, Relaxed);
        world.store.remove_waiting().expect("it works");
        assert_eq!(log_bytes(&disk, &world).1, logs, "{later_ms}");
    }
    assert_eq!(stream(&world, 4, Durability::Buffered).err().expect("it is old").kind(), ErrorKind::Gone);
    assert_eq!(all(&world, 5, Durability::Buffered).expect("the store needs it").len(), 1);
    // Without the option nothing is kept.
    drop(world);
    let world = World::open(&disk, &options_without(&options)).expect("it opens");
    world.set_number(6).expect("it works");
    world.run(&Step::Flush).expect("it works");
    assert_eq!(log_bytes(&disk, &world).1, 0);
    let error = stream(&world, 6, Durability::Buffered).err().expect("there is no history");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    drop(world);
    // It begins again after the changes that were made without it.
    let world = World::open(&disk, &options).expect("it opens");
    assert_eq!(stream(&world, 6, Durability::Buffered).err().expect("a gap").kind(), ErrorKind::Gone);
    let mut follower = stream(&world, 7, Durability::Buffered).expect("nothing is missing");
    assert!(follower.next().expect("it reads").is_none());
    world.set_number(7).expect("it works");
    assert_eq!(follower.next().expect("it reads").expect("it is there").sequence, 8);
}

fn options_without(options: &Options) -> Options {
    Options { history: false, ..options.clone() }
}

/// A store that is out of space removes its history before it refuses changes for long.
#[test]
fn history_gives_way_to_changes() {
    let disk = Simulated::with_capacity(6 << 20);
    let sizes = Options { memtable_bytes: 64 << 10, table_bytes: 64 << 10, ..kept(Durability::Buffered) };
    let options = Options { history_bytes: u64::MAX, ..sizes };
    let world = World::open(&disk, &options).expect("it opens");
    let (mut refused, mut done) = (0, 0);
    for number in 0..20_000_u32 {
        match world.run(&Step::Set("default", number as u8 % 8, 400)) {
            Ok(()) => (refused, done) = (0, done + 1),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::OutOfSpace, "{error}");
                refused += 1;
                assert!(refused < 20, "{done} changes: the store does not go on");
            }
        }
        let _ = world.store.step();
    }
    assert!(done > 19_000, "{done} changes");
    let error = stream(&world, 0, Durability::Buffered).err().expect("it was removed");
    assert_eq!(error.kind(), ErrorKind::Gone, "{error}");
}

/// Writers go on while a snapshot is taken and followed: nothing is missing and nothing comes twice.
#[test]
fn a_snapshot_and_the_changes_after_it_are_the_store() {
    let rounds = sized(5, 30);
    for round in 0..rounds {
        let disk = Simulated::new();
        let world = World::open(&disk, &kept(Durability::Buffered)).expect("it opens");
        let is_over = AtomicBool::new(false);
        let write = |own: u8| {
            for number in 0..150_u8 {
                let (a, b) = (own.wrapping_add(number % 5), own);
                let pair = Step::Batch(vec![("default", a, Some(9)), ("default", b, Some(number.into()))]);
                world.run(&pair).expect("it works");
                world.run(&Step::Set("default", own + 1 + number % 3, number.into())).expect("it works");
                if number % 60 == 59 {
                    world.run(&Step::Flush).expect("it works");
                }
            }
        };
        thread::scope(|scope| {
            let writers = [0, 20, 40].map(|own| scope.spawn(move || write(own)));
            let follower = scope.spawn(|| {
                while world.store.snapshot().expect("it is taken").sequence() < Some(40 + round) {
                    thread::yield_now();
                }
                let snapshot = world.store.snapshot().expect("it is taken");
                let since = snapshot.sequence().expect("it has one");
                let mut content = first_content();
                let view = snapshot.view("default");
                let take = |key: &[u8], value: &[u8]| {
                    content.get_mut("default").expect("it is there").insert(key.to_vec(), value.to_vec());
                    std::ops::ControlFlow::Continue(())
                };
                let bounds = (Bound::Unbounded, Bound::Unbounded);
                view.scan(bounds, Direction::Forward, take).expect("it reads");
                let mut stream = stream(&world, since, Durability::Buffered).expect("it is kept");
                let mut last = since;
                loop {
                    let is_last = is_over.load(Relaxed);
                    match stream.wait(Duration::from_millis(20)).expect("it is kept") {
                        Some(change) => {
                            assert_eq!(change.sequence, last + 1);
                            last = change.sequence;
                            apply(&mut content, &change, &world);
                        }
                        None if is_last => return (content, last),
                        None => {}
                    }
                }
            });
            writers.into_iter().for_each(|writer| writer.join().expect("it ends"));
            is_over.store(true, Relaxed);
            let (content, last) = follower.join().expect("it ends");
            assert_eq!(content, world.content().expect("it reads"), "round {round}");
            assert_eq!(last, world.store.snapshot().expect("it is taken").sequence().expect("it has one"));
        });
    }
}

/// One that waits is woken by a change, and returns without one when its time is over.
#[test]
fn one_that_waits_is_woken() {
    let world = World::open(&Simulated::new(), &kept(Durability::Buffered)).expect("it opens");
    let mut follower = stream(&world, 0, Durability::Buffered).expect("it is kept");
    assert!(follower.wait(Duration::from_millis(5)).expect("it waits").is_none());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| follower.wait(Duration::from_secs(600)).expect("it waits"));
        world.set_number(1).expect("it works");
        assert_eq!(waiting.join().expect("it ends").expect("it is woken").sequence, 1);
    });
}

/// One that is far back opens each log once, and not all newer ones again for each.
#[test]
fn one_that_is_far_back_reads_each_log_once() {
    let read_for = |logs: u32| {
        let (disk, options) = (Simulated::new(), kept(Durability::Buffered));
        let world = World::open(&disk, &options).expect("it opens");
        for number in 0..logs {
            world.set_number(number).expect("it works");
            world.run(&Step::Flush).expect("it works");
        }
        [Some(&world), None].map(|writer| {
            let reader = World::open(&disk, &reading()).expect("it opens");
            let before = disk.bytes_read();
            let found = all(writer.unwrap_or(&reader), 0, Durability::Buffered).expect("all is kept");
            assert_eq!(found.len(), logs as usize);
            disk.bytes_read() - before
        })
    };
    for (few, many) in read_for(20).into_iter().zip(read_for(80)) {
        assert!(many <= 5 * few, "{few} bytes for 20 logs, {many} for 80");
    }
}

/// A log that has no changes may go while a stream that is before it remembers it: those after it have all.
#[test]
fn a_log_without_changes_may_go_meanwhile() {
    let (disk, options) = (Simulated::new(), kept(Durability::Buffered));
    let mut opened = Vec::new();
    for number in 0..3 {
        let world = World::open(&disk, &options).expect("it opens");
        world.set_number(number).expect("it works");
        world.store.sync().expect("it works");
        opened.push(world.store.log().newest());
        world.run(&Step::Flush).expect("it works");
    }
    let world = World::open(&disk, &options).expect("it opens");
    let mut follower = stream(&world, 0, Durability::Buffered).expect("it is kept");
    assert_eq!(follower.next().expect("it reads").expect("it is there").sequence, 1);
    // History gives way from its oldest log on.
    let logs = disk.files().into_iter().map(|(name, _)| name).filter(|name| name.kind == Kind::Log);
    let empty = logs.filter(|name| opened[0] < name.number && name.number < opened[1]);
    assert!(empty.filter(|name| disk.remove(*name)).count() > 0);
    assert_eq!(rest(&mut follower).expect("nothing is gone").len(), 2);
}

/// Changes come at the durability that is asked for, and not before.
#[test]
fn changes_come_when_they_are_durable() {
    let world = World::open(&Simulated::new(), &kept(Durability::Memory)).expect("it opens");
    let levels = [Durability::Memory, Durability::Buffered, Durability::Sync];
    let [mut memory, mut buffered, mut synced] =
        levels.map(|level| stream(&world, 0, level).expect("all is kept"));
    world.set_number(1).expect("it works");
    assert_eq!((rest(&mut buffered).unwrap().len(), rest(&mut synced).unwrap().len()), (0, 0));
    assert_eq!(rest(&mut memory).unwrap().len(), 1, "it is written for this");
    assert_eq!((rest(&mut buffered).unwrap().len(), rest(&mut synced).unwrap().len()), (1, 0));
    world.store.sync().expect("it works");
    assert_eq!((rest(&mut buffered).unwrap().len(), rest(&mut synced).unwrap().len()), (0, 1));
}

/// A read-only process follows the one that writes, across its restarts.
pub(super) fn beside_a_writer(seeds: Range<u64>) {
    for seed in seeds {
        let options = kept(Durability::Buffered);
        let disk = Simulated::new();
        let mut world = World::open(&disk, &options).expect("it opens");
        let reader = World::open(&disk, &reading()).expect("it opens");
        let mut follower = stream(&reader, 0, Durability::Buffered).expect("all is kept");
        let mut synced = stream(&reader, 0, Durability::Sync).expect("all is kept");
        let mut states = beginning();
        let (mut own, mut durable) = (first_content(), Vec::new());
        for (at, step) in ingest_steps(seed, 40).iter().enumerate() {
            follow(&mut states, step);
            world.run(step).unwrap_or_else(|error| panic!("seed {seed}, step {at}: {error}"));
            let changes = rest(&mut follower).unwrap_or_else(|error| panic!("seed {seed}, {at}: {error}"));
            // What comes is there for one that refreshes.
            recover::refresh(&reader.store).expect("it refreshes");
            apply_all(&mut own, &changes, &reader);
            assert_eq!(Some(&own), states.last(), "seed {seed}, step {at}, {step:?}");
            durable.extend(rest(&mut synced).expect("all is kept"));
            if at % 11 == 5 {
                drop(world);
                world = World::open(&disk, &options).expect("it opens");
            }
        }
        // A memtable without pairs becomes no table.
        world.run(&Step::Set("default", 1, 3)).expect("it works");
        world.run(&Step::Flush).expect("it works");
        durable.extend(rest(&mut synced).expect("all is kept"));
        world.run(&Step::Set("default", 1, 4)).expect("it works");
        assert!(rest(&mut synced).expect("all is kept").is_empty(), "it is in no table");
        let mut all = all(&world, 0, Durability::Memory).expect("all is kept");
        all.pop();
        assert_eq!(durable, all, "seed {seed}");
        recover::refresh(&reader.store).expect("it refreshes");
        let snapshot = reader.store.snapshot().expect("it is taken");
        assert!(snapshot.sequence() >= all.last().map(|change| change.sequence));
    }
}

#[test]
fn a_reader_follows_another_process() {
    beside_a_writer(seeds(9, 40));
}

/// Each byte of a log that is kept is damaged: what is returned is right, and what is missing is an error.
#[test]
fn damage_of_history_is_never_returned() {
    let disk = Simulated::new();
    let options = kept(Durability::Buffered);
    let world = World::open(&disk, &options).expect("it opens");
    for step in steps(3, 25) {
        world.run(&step).expect("it works");
    }
    world.run(&Step::Flush).expect("it works");
    world.run(&Step::Set("default", 1, 20)).expect("it works");
    world.store.sync().expect("it works");
    let genuine = all(&world, 0, Durability::Buffered).expect("all is kept");
    let floor = forrest_base::lock(&world.store.manifest).state().floor;
    let files = disk.files();
    let (mut errors, mut tries) = (0, 0);
    for (name, bytes) in files.iter().filter(|(name, _)| name.kind == Kind::Log && name.number < floor) {
        for byte in (0..bytes.len()).step_by(sized(3, 1)) {
            let damaged = Simulated::from_files(files.clone());
            damaged.flip(*name, byte, (byte % 8) as u32);
            let world = World::open(&damaged, &options).expect("the store does not need it");
            let mut follower = match stream(&world, 0, Durability::Buffered) {
                Ok(follower) => follower,
                Err(error) => {
                    assert!([ErrorKind::Gone, ErrorKind::Corrupt].contains(&error.kind()), "{error}");
                    (errors, tries) = (errors + 1, tries + 1);
                    continue;
                }
            };
            let mut found = Vec::new();
            let ended = loop {
                match follower.next() {
                    Ok(Some(change)) => found.push(change),
                    Ok(None) => break true,
                    Err(error) => {
                        let kinds = [ErrorKind::Gone, ErrorKind::Corrupt, ErrorKind::Unsupported];
                        assert!(kinds.contains(&error.kind()), "{name} at {byte}: {error}");
                        break false;
                    }
                }
            };
            assert!(genuine.starts_with(&found), "{name} at {byte}: {found:?}");
            assert!(!ended || found.len() == genuine.len(), "{name} at {byte}: some are missing");
            (errors, tries) = (errors + usize::from(!ended), tries + 1);
        }
    }
    // What is reserved after the end of a log counts for nothing.
    println!("{errors} errors of {tries}");
    assert!(errors > 200 && errors * 10 > tries * 5, "{errors} of {tries}");
}

/// Each I/O of a store that keeps history fails, also those of one that follows. What he gets is right, and goes on
/// when nothing fails any more.
pub(super) fn failing_io(seeds: Range<u64>, every: usize) {
    for seed in seeds {
        let options = Options { history_bytes: 4 << 10, ..kept(Durability::Buffered) };
        let work = ingest_steps(seed, 14);
        let run = |disk: &Simulated, what: &str| -> Option<()> {
            let world = World::open(disk, &options).ok()?;
            let mut follower = stream(&world, 0, Durability::Buffered).ok()?;
            let mut last = 0;
            for step in &work {
                let done = world.run(step);
                loop {
                    match follower.next() {
                        Ok(Some(change)) => {
                            // One number more for each ingest that was begun.
                            assert!(change.sequence > last, "{what}: {change:?} after {last}");
                            assert!(change.sequence <= last + 2, "{what}: {change:?} after {last}");
                            last = change.sequence;
                        }
                        Ok(None) => break,
                        Err(error) if disk.struck() > 0 => {
                            let kinds = [ErrorKind::Io, ErrorKind::OutOfSpace, ErrorKind::Gone];
                            assert!(kinds.contains(&error.kind()), "{what}: {error}");
                            break;
                        }
                        Err(error) => panic!("{what}: {error}"),
                    }
                }
                done.ok()?;
            }
            Some(())
        };
        let whole = Simulated::new();
        run(&whole, "nothing fails").expect("nothing fails");
        for (number, kind) in
            [Failure::Eio, Failure::Enospc, Failure::ShortRead, Failure::Emfile].into_iter().enumerate()
        {
            for at in (0..whole.ios()).skip(number % every).step_by(every) {
                let disk = Simulated::new();
                disk.fail(Fault { at, times: Times::Once, kind });
                let what = format!("seed {seed}, {kind:?} at I/O {at}");
                run(&disk, &what);
                disk.heal();
                // The store is whole, and its history is right from some place on.
                let world =
                    World::open(&disk.kill(), &options).unwrap_or_else(|error| panic!("{what}: {error}"));
                world.content().unwrap_or_else(|error| panic!("{what}: {error}"));
                let last = world.store.snapshot().expect("it is taken").sequence().expect("it has one");
                let since = (0..=last).find(|&since| stream(&world, since, Durability::Memory).is_ok());
                if let Err(error) = all(&world, since.expect("the last one is"), Durability::Memory) {
                    assert_eq!(error.kind(), ErrorKind::Gone, "{what}: {error}");
                }
            }
        }
    }
}

#[test]
fn any_io_of_history_may_fail() {
    failing_io(seeds(1, 3), sized(7, 1));
}

/// After a failure the store goes on with a log that does not go on where the last one ended. Those that have not seen
/// all get an error.
pub(super) fn gap_after_a_failure() {
    let disk = Simulated::new();
    let world = World::open(&disk, &kept(Durability::Memory)).expect("it opens");
    let mut behind = stream(&world, 0, Durability::Buffered).expect("all is kept");
    world.set_number(1).expect("it works");
    world.store.sync().expect("it works");
    world.set_number(2).expect("it works");
    disk.fail(Fault { at: disk.ios(), times: Times::Once, kind: Failure::Eio });
    world.store.write_queue().expect_err("it fails");
    disk.heal();
    world.store.resume().expect("it goes on");
    world.set_number(3).expect("it works");
    assert_eq!(behind.next().expect("it was written").expect("it is there").sequence, 1);
    let error = behind.next().expect_err("the next was never written");
    assert_eq!(error.kind(), ErrorKind::Gone, "{error}");
    let found = all(&world, 2, Durability::Memory).expect("it goes on there");
    assert_eq!(found.iter().map(|change| change.sequence).collect::<Vec<_>>(), [3]);
    let set = Op::Set { key: &b"a"[..], value: &b"b"[..] };
    world.store.apply(&world.store.keyspace("late").expect("it is made"), set).expect("it works");
    assert_eq!(all(&world, 3, Durability::Memory).expect("it is there").len(), 2);
}

#[test]
fn a_gap_that_a_failure_has_left_is_reported() {
    gap_after_a_failure();
}

/// A store that cannot be changed is followed as one that is opened to be read.
#[test]
fn a_directory_that_cannot_be_written_to_is_followed() {
    let (disk, options) = (Simulated::new(), kept(Durability::Buffered));
    let world = World::open(&disk, &options).expect("it opens");
    world.set_number(1).expect("it works");
    world.run(&Step::Flush).expect("it works");
    world.set_number(2).expect("it works");
    world.store.sync().expect("it works");
    drop(world);
    disk.freeze();
    for options in [reading(), options] {
        let world = World::open(&disk, &options).expect("it opens");
        for level in [Durability::Memory, Durability::Buffered] {
            assert_eq!(all(&world, 0, level).expect("they are there").len(), 2, "{level:?}");
        }
    }
}

/// The tables of an ingest may be missing until the log has its end, however often a reader refreshes.
#[test]
fn a_reader_beside_an_ingest_takes_no_number_behind_it() {
    let disk = Simulated::new();
    let world = World::open(&disk, &kept(Durability::Buffered)).expect("it opens");
    world.set_number(1).expect("it works");
    let reader = World::open(&disk, &reading()).expect("it opens");
    let space = world.store.keyspace("default").expect("it is there");
    let mut order = world.store.order();
    world.store.note_ingest(&mut order, &space, false, (b"a", b"b")).expect("there is room");
    let last = order.sequence;
    drop(order);
    world.store.log().commit(last, Durability::Sync).expect("it is written");
    for _ in 0..3 {
        recover::refresh(&reader.store).expect("it refreshes");
        assert_eq!(reader.store.snapshot().expect("there are some").sequence(), Some(1));
    }
}

/// History takes no space that changes need: what a store takes without it, it takes with it.
#[test]
fn no_change_is_refused_for_history() {
    let sizes = Options { memtable_bytes: 64 << 10, table_bytes: 64 << 10, ..kept(Durability::Buffered) };
    for history in [false, true] {
        let disk = Simulated::with_capacity(6 << 20);
        let options = Options { history, history_bytes: u64::MAX, ..sizes.clone() };
        let world = World::open(&disk, &options).expect("it opens");
        for number in 0..20_000_u32 {
            let step = Step::Set("default", number as u8 % 8, 400);
            world.run(&step).unwrap_or_else(|error| panic!("with history {history}: {error}"));
            if number % 50 == 0 {
                while let Ok(true) = world.store.step() {}
            }
        }
    }
}
