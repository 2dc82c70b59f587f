//! A failing disk: every I/O of a node's work fails in turn, in several ways. What cannot be made up for is an error of
//! the group; nothing that was reported as durable is lost; reads go on; and opened again, the store works again.

use super::machine::{entry, set};
use super::node::{Done, Node, Seen, block, builder, go_on, made, states, unharmed, work};
use crate::{Log, State, Store, Types, Vote};
use forrest::simulated::{self, Failure, Fate, Fault, Simulated, Times};
use forrest_testing::sized;
use openraft::RaftLogReader;
use openraft::storage::{RaftLogStorage, RaftLogStorageExt};
use std::io;

/// How an I/O fails, and how often.
const FAILURES: [(Failure, Times); 9] = [
    (Failure::Eio, Times::Once),
    (Failure::Eio, Times::ForEver),
    (Failure::Enospc, Times::Once),
    (Failure::Enospc, Times::ForEver),
    (Failure::ShortWrite, Times::Once),
    (Failure::Enomem, Times::Once),
    (Failure::SyncFails(Fate::Kept), Times::Once),
    // The names in a directory are trusted (docs/durability.md).
    (Failure::FileSyncFails(Fate::Dropped), Times::Once),
    (Failure::SyncFails(Fate::Reverted), Times::Once),
];

/// In steps of `every` I/Os, one fails in each way, and a different one in the next way.
pub(super) fn failing_io(failures: &[(Failure, Times)], every: usize) {
    let (ios, states) = (unharmed(), states());
    let (mut errors, mut looked) = (0, 0);
    for (number, &(kind, times)) in failures.iter().enumerate() {
        for at in (0..ios).skip(number % every).step_by(every) {
            let disk = Simulated::new();
            disk.fail(Fault { at, times, kind });
            let what = format!("{kind:?} {times:?} at I/O {at}");
            // A device that fails for good fails reads too.
            let can_read = (kind, times) != (Failure::Eio, Times::ForEver);
            let mut struck = 0;
            let Done { steps, durable, node, error } = work(&disk, |node, done| {
                if can_read && disk.struck() > struck {
                    // It was made up for.
                    struck = disk.struck();
                    assert_eq!(block(node.see()), states[done], "{what}, made up for in step {done}");
                }
            });
            errors += usize::from(error.is_some());
            let end = states.len().min(steps + 2);
            if let Some(mut node) = node.filter(|_| can_read) {
                // Reads go on.
                let seen = block(node.see());
                assert!(states[steps..end].contains(&seen), "{what}, {error:?}: {seen:#?}");
            }
            disk.heal();
            looked += again(&disk, &states[durable..end], &format!("{what}, {error:?}"));
        }
    }
    println!("{errors} errors at {ios} I/Os, {looked} states");
    assert!(errors > 0);
}

/// After the death of the process, and after a power cut, the node is in one of these states, goes on, and what it
/// then reports as durable is so. Returns how many states were looked at.
fn again(disk: &Simulated, states: &[Vec<Seen>], what: &str) -> usize {
    let mut looked = 0;
    let power_cuts = disk.crash_states(0, 0).take(sized(1, 3));
    for after in [disk.kill()].into_iter().chain(power_cuts) {
        let mut node = Node::open(&after).unwrap_or_else(|error| panic!("{what}: {error}"));
        let seen = block(node.see());
        assert!(states.contains(&seen), "{what}: {seen:#?}");
        assert!(node.is_clean(), "{what}: what no group uses: {:?}", node.store.db().keyspaces());
        go_on(&mut node, 0);
        looked += 1;
    }
    // From the state of a dead process on, all of the disk's mishaps are past.
    let after = disk.kill();
    let mut node = Node::open(&after).unwrap_or_else(|error| panic!("{what}: {error}"));
    let vote = Vote::new_committed(8, 1);
    block(RaftLogStorage::<Types>::save_vote(&mut node.groups.get_mut(&2).expect("it is open").0, &vote))
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    drop(node);
    let after = after.crash_states(0, 0).next().expect("one that has only what is durable");
    let mut node = Node::open(&after).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(block(vote_of(&mut node.groups.get_mut(&2).expect("it is open").0)), Some(vote), "{what}");
    looked + 1
}

async fn vote_of(log: &mut Log) -> Option<Vote> {
    let mut reader = RaftLogStorage::<Types>::get_log_reader(log).await;
    RaftLogReader::<Types>::read_vote(&mut reader).await.expect("it can be read")
}

#[test]
fn any_io_may_fail() {
    failing_io(&FAILURES, sized(9, 4));
}

/// From any I/O on there is no space. A vote and an entry are refused, or are durable; nothing stops the store, and it
/// takes what it has refused when there is space again.
pub(super) fn full_disk(ios: u64) {
    let mut refusals = [0, 0];
    for at in 0..ios {
        let disk = Simulated::new();
        let mut node = Node::open(&disk).expect("it opens");
        disk.fail(Fault { at: disk.ios() + at, times: Times::ForEver, kind: Failure::Enospc });
        let what = format!("full from I/O {at} on");
        let (mut voted, mut last) = (None, 0);
        for turn in 1..=20 {
            let is_full = turn < 20;
            if !is_full {
                disk.heal();
                node.background.run().unwrap_or_else(|error| panic!("{what}: {error}"));
            }
            let (log, _) = node.groups.get_mut(&1).expect("it is open");
            let vote = Vote::new(turn, 1);
            match block(RaftLogStorage::<Types>::save_vote(log, &vote)) {
                Ok(()) => voted = Some(vote),
                Err(error) => {
                    assert!(is_full && error.kind() == io::ErrorKind::StorageFull, "{what}: {error}");
                    refusals[0] += 1;
                }
            }
            // Longer than the space that a log takes at first.
            let more = entry(last + 1, &set(&format!("{turn}"), &"v".repeat(25_000)));
            match block(RaftLogStorageExt::<Types>::blocking_append(log, [more])) {
                Ok(()) => last += 1,
                Err(error) => {
                    assert!(is_full && error.to_string().contains("group 1: "), "{what}: {error}");
                    refusals[1] += 1;
                }
            }
            let _full = node.background.step();
        }
        drop(node);
        let after = disk.crash_states(0, 0).next().expect("one that has only what is durable");
        let mut node = Node::open(&after).unwrap_or_else(|error| panic!("{what}: {error}"));
        let (log, _) = node.groups.get_mut(&1).expect("it is open");
        assert_eq!(block(vote_of(log)), voted, "{what}");
        let mut reader = block(RaftLogStorage::<Types>::get_log_reader(log));
        let entries = block(RaftLogReader::<Types>::try_get_log_entries(&mut reader, ..));
        let entries = entries.unwrap_or_else(|error| panic!("{what}: {error}"));
        let indices: Vec<u64> = entries.iter().map(|entry| entry.log_id.index).collect();
        assert_eq!(indices, (1..=last).collect::<Vec<_>>(), "{what}");
    }
    println!("{refusals:?} votes and entries refused");
    assert!(refusals.iter().all(|count| *count > 2), "{refusals:?}");
}

#[test]
fn a_full_disk_refuses_and_goes_on() {
    full_disk(sized(20, 60));
}

/// A sync that fails is an error for every group that waits for it, and none takes more until the store is opened
/// again. Then each has its acknowledged entry.
pub(super) fn failing_sync_of_many() {
    let disk = Simulated::new();
    let open = |disk: &Simulated| {
        let store = Store::open(simulated::open(disk.clone(), &builder()).expect("it opens"));
        let store = store.expect("it opens");
        let groups: Vec<(Log, State)> = (1..=4).map(|id| store.group(id).expect("a group")).collect();
        (store, groups)
    };
    let (store, groups) = open(&disk);
    block(async {
        let mut tasks = Vec::new();
        for (mut log, state) in groups {
            RaftLogStorageExt::<Types>::blocking_append(&mut log, [made(1, 1)]).await.expect("it works");
            tasks.push((log, state));
        }
        disk.fail(Fault { at: 0, times: Times::ForEver, kind: Failure::SyncFails(Fate::Dropped) });
        let tasks = tasks.into_iter().zip(1..).map(|((mut log, state), group)| {
            tokio::spawn(async move {
                let error = if group == 4 {
                    let vote = Vote::new(7, 1);
                    let saved = RaftLogStorage::<Types>::save_vote(&mut log, &vote).await;
                    saved.expect_err("the sync failed").to_string()
                } else {
                    let more = entry(2, &set("a", "1"));
                    let appended = RaftLogStorageExt::<Types>::blocking_append(&mut log, [more]).await;
                    appended.expect_err("the sync failed").to_string()
                };
                assert!(error.contains(&format!("group {group}: ")), "group {group}: {error}");
                let again = RaftLogStorage::<Types>::save_vote(&mut log, &Vote::new(8, 1)).await;
                assert!(again.is_err(), "group {group} goes on after a failed sync");
                let mut reader = RaftLogStorage::<Types>::get_log_reader(&mut log).await;
                let entries = RaftLogReader::<Types>::try_get_log_entries(&mut reader, 1..2).await;
                assert_eq!(entries.expect("reads go on"), [made(1, 1)]);
                drop(state);
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.expect("no panic");
        }
    });
    drop(store);
    disk.heal();
    let after = disk.crash_states(0, 0).next().expect("one that has only what is durable");
    let (_store, groups) = open(&after);
    block(async {
        for (mut log, _state) in groups {
            let mut reader = RaftLogStorage::<Types>::get_log_reader(&mut log).await;
            let entries = RaftLogReader::<Types>::try_get_log_entries(&mut reader, 1..2).await;
            assert_eq!(entries.expect("they can be read"), [made(1, 1)]);
            RaftLogStorage::<Types>::save_vote(&mut log, &Vote::new(9, 1)).await.expect("it works again");
        }
    });
}

#[test]
fn a_failed_sync_reaches_all_that_wait() {
    failing_sync_of_many();
}
