//! The state machine: what commands do, sessions, snapshots from node to node, reopening, groups beside each other.

use crate::{Command, Entry, Image, LeaderId, Log, LogId, Payload, Reader, State, Store, Types};
use forrest::{Db, Op, WriteBatch};
use futures_util::stream;
use openraft::RaftLogReader;
use openraft::storage::{RaftLogStorage, RaftLogStorageExt, RaftSnapshotBuilder, RaftStateMachine};
use std::path::Path;

pub(super) fn id(index: u64) -> LogId {
    LogId { leader_id: LeaderId { term: 1, node_id: 1 }, index }
}

pub(super) fn entry(index: u64, command: &Command) -> Entry {
    Entry { log_id: id(index), payload: Payload::Normal(command.clone()) }
}

pub(super) fn set(key: &str, value: &str) -> Command {
    Command::one(Op::Set { key, value }).expect("it fits")
}

pub(super) fn swap(key: &str, expected: Option<&str>, new: Option<&str>) -> Command {
    let mut batch = WriteBatch::new();
    batch.compare_and_swap(key, expected.map(str::as_bytes), new.map(str::as_bytes));
    Command::try_from(&batch).expect("it fits")
}

pub(super) async fn apply(state: &mut State, entries: impl IntoIterator<Item = Entry>) {
    let entries: Vec<_> = entries.into_iter().map(|entry| Ok((entry, None))).collect();
    RaftStateMachine::<Types>::apply(state, stream::iter(entries)).await.expect("it can be applied");
}

pub(super) fn pairs(reader: &Reader) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let moment = reader.moment().expect("it can be read");
    let pairs = moment.range(..).map(|pair| pair.expect("it can be read"));
    pairs.map(|pair| (text(pair.key()), text(pair.value_bytes().expect("a value")))).collect()
}

fn pair(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

fn memory() -> Store {
    Store::open(Db::open("memory:").expect("a new store")).expect("a new store")
}

#[tokio::test]
async fn commands_change_the_map() {
    let store = memory();
    let (_log, mut state) = store.group(1).expect("a group");
    let reader = state.reader();
    let mut batch = WriteBatch::new();
    batch.set("a", "1").set("b", "2").set("c", "3").delete("b").delete_range("c"..="c");
    let mixed = Command::try_from(&batch).expect("it fits");
    apply(&mut state, [entry(1, &mixed), entry(2, &set("d", "4"))]).await;
    assert_eq!(pairs(&reader), [pair("a", "1"), pair("d", "4")]);
    apply(&mut state, [entry(3, &swap("a", Some("1"), Some("5"))), entry(4, &swap("a", Some("1"), None))])
        .await;
    assert_eq!(pairs(&reader), [pair("a", "5"), pair("d", "4")]);
    assert_eq!(reader.moment().expect("it can be read").applied(), Some(id(4)));
}

/// A command that no node can apply is refused by all, and the next one is applied.
#[tokio::test]
async fn a_malformed_command_is_refused() {
    let store = memory();
    let (_log, mut state) = store.group(1).expect("a group");
    let bytes = set("a", "1").as_bytes().to_vec();
    for cut in 1..bytes.len() - 1 {
        let is_refused = Command::from_bytes(&bytes[..cut]).is_err();
        assert_eq!(is_refused, cut > 1, "a command of no operations does nothing; cut at {cut}");
    }
    assert!(Command::from_bytes(&[]).is_err());
    assert!(Command::from_bytes(&[2]).is_err());
    assert!(Command::one(Op::Add { key: "a", delta: 1 }).is_err());
    assert!(Command::one(Op::Delete { key: vec![0; 70_000] }).is_err());
    apply(&mut state, [entry(1, &set("a", "1"))]).await;
    assert_eq!(pairs(&state.reader()), [pair("a", "1")]);
}

/// Repeats of a client's command are applied once, also after a snapshot was installed.
#[tokio::test]
async fn a_session_applies_a_command_once() {
    let store = memory();
    let (_log, mut state) = store.group(1).expect("a group");
    let first = swap("a", None, Some("1")).of_session(9, 1);
    let second = set("a", "2").of_session(9, 2);
    apply(&mut state, [entry(1, &first), entry(2, &first), entry(3, &second), entry(4, &second)]).await;
    // A late repetition of the first changes nothing.
    apply(&mut state, [entry(5, &set("b", "1")), entry(6, &first), entry(7, &second)]).await;
    assert_eq!(pairs(&state.reader()), [pair("a", "2"), pair("b", "1")]);

    let other = memory();
    let (_log, mut copy) = other.group(1).expect("a group");
    send(&mut state, &mut copy).await;
    apply(&mut copy, [entry(8, &set("a", "3")), entry(9, &second), entry(10, &first)]).await;
    assert_eq!(pairs(&copy.reader()), [pair("a", "3"), pair("b", "1")]);
    apply(&mut copy, [entry(11, &Command::end_session(9)), entry(12, &second)]).await;
    assert_eq!(pairs(&copy.reader()), [pair("a", "2"), pair("b", "1")]);
}

/// Sends the current snapshot as bytes.
async fn send(from: &mut State, to: &mut State) {
    let snapshot = RaftStateMachine::<Types>::get_current_snapshot(from).await.expect("a snapshot");
    let snapshot = snapshot.expect("something was applied");
    let mut receiver = to.reader().receive().expect("it can be received");
    for chunk in snapshot.snapshot.chunks().expect("it can be read") {
        // In pieces, as they come from a network.
        for piece in chunk.expect("it can be read").chunks(7) {
            receiver.push(piece).expect("it is whole");
        }
    }
    let image: Image = receiver.finish().expect("it is complete");
    RaftStateMachine::<Types>::install_snapshot(to, &snapshot.meta, image)
        .await
        .expect("it can be installed");
}

#[tokio::test]
async fn a_snapshot_replaces_everything() {
    let directory = tempfile::tempdir().expect("a directory");
    let open = |name: &str| open(&directory.path().join(name));
    let (store, other) = (open("a"), open("b"));
    let (_log, mut state) = store.group(1).expect("a group");
    let (log, mut copy) = other.group(1).expect("a group");
    apply(&mut copy, [entry(1, &set("old", "")), entry(2, &set("older", ""))]).await;
    let many = (1..2000).map(|index| entry(index, &set(&format!("{index:05}"), &"x".repeat(500))));
    apply(&mut state, many).await;
    let builder = RaftStateMachine::<Types>::get_snapshot_builder(&mut state).await;
    let mut builder = builder;
    let built = RaftSnapshotBuilder::<Types>::build_snapshot(&mut builder).await.expect("it can be built");
    assert_eq!(built.meta.last_log_id, Some(id(1999)));
    send(&mut state, &mut copy).await;
    assert_eq!(pairs(&copy.reader()), pairs(&state.reader()));

    // Damage on the way is noticed, and leaves nothing.
    let bytes: Vec<u8> =
        built.snapshot.chunks().expect("chunks").flat_map(|chunk| chunk.expect("read")).collect();
    for at in (0..bytes.len()).step_by(bytes.len() / 50) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        let mut receiver = copy.reader().receive().expect("it can be received");
        let received = receiver.push(&damaged).and_then(|()| receiver.finish());
        assert!(received.is_err(), "byte {at} was changed");
    }
    drop(built);
    assert_eq!(
        other.db().keyspaces().expect("names").len(),
        5,
        "three of all groups, the data, the default one"
    );
    drop((log, copy, other));

    let other = open("b");
    let (_log, copy) = other.group(1).expect("a group");
    assert_eq!(pairs(&copy.reader()), pairs(&state.reader()), "after it was opened again");
}

fn open(path: &Path) -> Store {
    let db = Db::builder().memtable_bytes(64 << 10).open(path.to_str().expect("UTF-8")).expect("a store");
    Store::with_checkpoints(db, path.with_extension("checkpoints")).expect("a store")
}

/// The same, and group 1 in it.
fn open_group(path: &Path) -> (Store, Log, State) {
    let store = open(path);
    let (log, state) = store.group(1).unwrap_or_else(|error| panic!("{error}"));
    (store, log, state)
}

/// A checkpoint serves the snapshot after a restart, also when newer entries were applied.
#[tokio::test]
async fn a_checkpoint_outlives_the_process() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store");
    {
        let (_store, _log, mut state) = open_group(&path);
        apply(&mut state, [entry(1, &set("a", "1"))]).await;
        for _ in 0..3 {
            let mut builder = RaftStateMachine::<Types>::get_snapshot_builder(&mut state).await;
            RaftSnapshotBuilder::<Types>::build_snapshot(&mut builder).await.expect("it can be built");
        }
        apply(&mut state, [entry(2, &set("b", "2"))]).await;
    }
    let (_store, mut log, mut state) = open_group(&path);
    let current = RaftStateMachine::<Types>::get_current_snapshot(&mut state).await.expect("it can be read");
    assert_eq!(current.expect("a checkpoint").meta.last_log_id, Some(id(1)));
    let checkpoints = path.with_extension("checkpoints").join("0000000000000001");
    assert_eq!(std::fs::read_dir(checkpoints).expect("a directory").count(), 1, "older ones are removed");
    // What the log has no more, a snapshot must have.
    RaftLogStorage::<Types>::purge(&mut log, id(2)).await.expect("it can be purged");
    let current = RaftStateMachine::<Types>::get_current_snapshot(&mut state).await.expect("it can be read");
    assert_eq!(current.expect("the present").meta.last_log_id, Some(id(2)));
}

/// A checkpoint whose files are damaged, cut or missing does no harm to the group: the present data take its place.
#[tokio::test]
async fn a_damaged_checkpoint_stops_no_group() {
    for extension in ["manifest", "table"] {
        for how in ["cut", "removed", "flipped"] {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join("store");
            {
                let (store, _log, mut state) = open_group(&path);
                apply(&mut state, [entry(1, &set("a", "1"))]).await;
                store.db().flush().expect("it is written to a table");
                apply(&mut state, [entry(2, &set("a", "2"))]).await;
                let mut builder = RaftStateMachine::<Types>::get_snapshot_builder(&mut state).await;
                RaftSnapshotBuilder::<Types>::build_snapshot(&mut builder).await.expect("it can be built");
                apply(&mut state, [entry(3, &set("a", "3"))]).await;
            }
            harm(
                &path.with_extension("checkpoints").join("0000000000000001/0000000000000000"),
                extension,
                how,
            );
            let what = format!("{extension}, {how}");
            let (_store, _log, mut state) = open_group(&path);
            assert_eq!(pairs(&state.reader()), [pair("a", "3")], "{what}");
            let current = RaftStateMachine::<Types>::get_current_snapshot(&mut state).await;
            let current = current.unwrap_or_else(|error| panic!("{what}: {error}")).expect("it is there");
            let other = memory();
            let (_log, copy) = other.group(1).expect("a group");
            let mut receiver = copy.reader().receive().expect("it can be received");
            let mut chunks = current.snapshot.chunks().expect("chunks");
            let sent = chunks.try_for_each(|chunk| receiver.push(&chunk?));
            sent.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(current.meta.last_log_id, Some(id(3)), "{what}: the present");
        }
    }
}

/// Damages the files of a checkpoint with this extension. The store has other names of them, and keeps the bytes.
fn harm(checkpoint: &Path, extension: &str, how: &str) {
    let files = std::fs::read_dir(checkpoint).expect("files").map(|file| file.expect("a file").path());
    let files: Vec<_> = files.filter(|file| file.extension().is_some_and(|own| own == extension)).collect();
    assert!(!files.is_empty(), "no {extension} in the checkpoint");
    for file in files {
        let mut bytes = std::fs::read(&file).expect("it can be read");
        std::fs::remove_file(&file).expect("it is there");
        match how {
            "removed" => continue,
            "cut" => bytes.truncate(bytes.len() / 2),
            _ => bytes.iter_mut().step_by(7).for_each(|byte| *byte ^= 16),
        }
        std::fs::write(&file, bytes).expect("it is written");
    }
}

/// Groups share a store and nothing else; a group is open once, and can be removed.
#[tokio::test]
async fn groups_are_apart() {
    let store = memory();
    let (mut one_log, mut one) = store.group(1).expect("a group");
    let (mut two_log, mut two) = store.group(2).expect("a group");
    assert!(store.group(1).is_err(), "it is open");
    for (log, state, value) in [(&mut one_log, &mut one, "1"), (&mut two_log, &mut two, "2")] {
        let entries = [entry(1, &set("key", value))];
        RaftLogStorageExt::<Types>::blocking_append(log, entries.clone()).await.expect("it can be appended");
        apply(state, entries).await;
    }
    RaftLogStorage::<Types>::purge(&mut one_log, id(1)).await.expect("it can be purged");
    let mut reader = RaftLogStorage::<Types>::get_log_reader(&mut two_log).await;
    let entries = RaftLogReader::<Types>::try_get_log_entries(&mut reader, ..).await.expect("entries");
    assert_eq!(entries, [entry(1, &set("key", "2"))]);
    assert_eq!(pairs(&one.reader()), [pair("key", "1")]);
    drop((one_log, one));
    assert_eq!(store.groups().expect("groups"), [1, 2]);
    store.remove(1).expect("it can be removed");
    assert_eq!(store.groups().expect("groups"), [2]);
    let (_log, one) = store.group(1).expect("a new group");
    assert_eq!(pairs(&one.reader()), []);
    assert_eq!(pairs(&two.reader()), [pair("key", "2")]);
}

/// A log refuses what would leave a hole.
#[tokio::test]
async fn a_log_has_no_holes() {
    let store = memory();
    let (mut log, _state) = store.group(1).expect("a group");
    let log: &mut Log = &mut log;
    RaftLogStorageExt::<Types>::blocking_append(log, [entry(5, &set("a", "1"))]).await.expect("the first");
    let error = RaftLogStorageExt::<Types>::blocking_append(log, [entry(7, &set("a", "1"))]).await;
    let error = error.expect_err("a hole").to_string();
    assert!(error.contains("group 1") && error.contains("entry 7 does not follow"), "{error}");
}
