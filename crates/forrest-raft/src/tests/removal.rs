//! The removal of a group, cut or failing at each of its I/Os: afterwards all of the group is there, or nothing of it.

use super::node::{Node, Seen, block, builder, work};
use super::power::torn;
use crate::{Store, format};
use forrest::WriteBatch;
use forrest::simulated::{self, Failure, Fate, Fault, Simulated, Times};

/// A disk with two groups, and how they look.
fn begin() -> (Simulated, Vec<Seen>) {
    let disk = Simulated::new();
    let done = work(&disk, |_, _| {});
    let mut node = done.node.expect("it was opened");
    node.store.db().sync().expect("it is synced");
    let seen = block(node.see());
    drop(node);
    (disk.kill(), seen)
}

fn open(disk: &Simulated) -> forrest::Result<Store> {
    Store::open_inline(simulated::open_unattended(disk.clone(), &builder())?.0)
}

/// The groups that a disk has: both as they were, or the second one alone.
fn check(disk: &Simulated, before: &[Seen], what: &str) -> Vec<u64> {
    let store = open(disk).unwrap_or_else(|error| panic!("{what}: {error}"));
    let groups = store.groups().expect("names");
    drop(store);
    let mut node = Node::open(disk).unwrap_or_else(|error| panic!("{what}: {error}"));
    let seen = block(node.see());
    assert_eq!(seen[1], before[1], "{what}: the other group");
    match &groups[..] {
        [1, 2] => assert_eq!(seen[0], before[0], "{what}"),
        [2] => assert_eq!(seen[0], Seen::default(), "{what}"),
        other => panic!("{what}: groups {other:?}"),
    }
    assert!(node.is_clean(), "{what}: what no group uses: {:?}", node.store.db().keyspaces());
    groups
}

/// A sync of another group may come between the removal of the entries and that of the keyspace. What a crash then
/// leaves is no group.
#[test]
fn data_alone_are_no_group() {
    let (begin, before) = begin();
    let store = open(&begin).expect("it opens");
    let mut batch = WriteBatch::new();
    for name in [format::LOG, format::META, format::SESSIONS] {
        let keyspace = store.db().keyspace(name).expect("it is there");
        batch.on(&keyspace).delete_range(1_u64.to_be_bytes()..2_u64.to_be_bytes());
    }
    store.db().write(&batch).expect("it is written");
    store.db().sync().expect("it is synced");
    drop(store);
    assert_eq!(check(&begin.kill(), &before, "data alone"), [2]);
}

/// Removes group 1 on a copy of a disk, which is harmed when the store is open.
fn remove(begin: &Simulated, harm: impl FnOnce(&Simulated)) -> (Simulated, Store, forrest::Result<()>) {
    let disk = begin.kill();
    let store = open(&disk).expect("it opens");
    harm(&disk);
    let removed = store.remove(1);
    (disk, store, removed)
}

#[test]
fn after_power_cuts_at_every_io() {
    let (begin, before) = begin();
    let (mut at, mut kept) = (0, 0);
    loop {
        let (disk, store, removed) = remove(&begin, |disk| disk.cut_power_at(disk.ios() + at));
        let is_cut = disk.is_cut();
        disk.heal();
        drop(store);
        let states = disk.crash_states(4, at).chain([disk.kill()]);
        for after in states {
            let groups = check(&after, &before, &format!("cut at {at}"));
            assert!(is_cut || groups == [2], "it was removed durably");
            kept += usize::from(groups.len() == 2);
        }
        if !is_cut {
            removed.expect("nothing failed");
            break;
        }
        at += 1;
    }
    assert!(at > 2 && kept > 0, "{at} I/Os, {kept} times both groups");
}

#[test]
fn after_torn_writes() {
    let (begin, before) = begin();
    let (mut last, mut looked) = (begin.kill(), 0);
    for at in 0.. {
        let (disk, store, _) = remove(&begin, |disk| disk.cut_power_at(disk.ios() + at));
        if !disk.is_cut() {
            break;
        }
        drop(store);
        let whole = disk.kill();
        looked += torn(&last, &whole, 1, |torn, what| {
            check(torn, &before, &format!("cut at {at}, {what}"));
        });
        last = whole;
    }
    assert!(looked > 50, "{looked} torn writes");
}

#[test]
fn any_io_may_fail() {
    let ((begin, before), mut errors) = (begin(), 0);
    for (kind, times) in [
        (Failure::Eio, Times::Once),
        (Failure::Eio, Times::ForEver),
        (Failure::Enospc, Times::ForEver),
        (Failure::ShortWrite, Times::Once),
        (Failure::SyncFails(Fate::Dropped), Times::Once),
    ] {
        errors += failing(&begin, &before, kind, times);
    }
    assert!(errors > 0);
}

/// Has each I/O fail, and returns how often that was an error.
fn failing(begin: &Simulated, before: &[Seen], kind: Failure, times: Times) -> usize {
    let mut errors = 0;
    for at in 0.. {
        let (disk, store, removed) = remove(begin, |disk| {
            disk.fail(Fault { at: disk.ios() + at, times, kind });
        });
        let is_struck = disk.struck() > 0;
        if let Err(error) = removed {
            errors += 1;
            let what = format!("{kind:?} {times:?} at {at}: {error}");
            let can_read = (kind, times) != (Failure::Eio, Times::ForEver);
            // The same process goes on, if the store does.
            if can_read && let Ok((_log, state)) = store.group(1) {
                let moment = state.reader().moment().expect("it can be read");
                let is_empty = moment.count(..).expect("it can be read") == 0;
                assert_eq!(is_empty, moment.applied().is_none(), "{what}");
            }
        }
        disk.heal();
        drop(store);
        check(&disk.kill(), before, &format!("{kind:?} {times:?} at {at}"));
        if !is_struck {
            break;
        }
    }
    errors
}
