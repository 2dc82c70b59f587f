//! Checkpoints that snapshots are read from: of encrypted stores and removed groups, damaged, empty, and ahead of the
//! data. None of them may stop a group, or show it data that are not its own.

use super::machine::{apply, entry, id, pairs, set};
use super::node::block;
use crate::{Log, LogId, State, Store, Types};
use forrest::{Builder, Db, EncryptionKey, Result};
use openraft::alias::SnapshotOf;
use openraft::storage::{RaftSnapshotBuilder, RaftStateMachine};
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// A store with checkpoints, in a directory.
struct Home {
    directory: tempfile::TempDir,
    builder: Builder,
}

impl Home {
    fn new(builder: Builder) -> Home {
        Home { directory: tempfile::tempdir().expect("a directory"), builder }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    fn open(&self) -> Store {
        let db = self.builder.open(self.path().to_str().expect("UTF-8")).expect("a store");
        Store::with_checkpoints(db, self.directory.path().join("checkpoints")).expect("a store")
    }

    /// The store, and group 1 in it.
    fn group(&self) -> (Store, Log, State) {
        let store = self.open();
        let (log, state) = group(&store);
        (store, log, state)
    }

    /// The directory of the checkpoints of group 1.
    fn checkpoints(&self) -> PathBuf {
        self.directory.path().join("checkpoints/0000000000000001")
    }

    /// The only checkpoint of group 1.
    fn checkpoint(&self) -> PathBuf {
        let mut found: Vec<_> = fs::read_dir(self.checkpoints()).expect("a directory").collect();
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0).expect("an entry").path()
    }
}

fn group(store: &Store) -> (Log, State) {
    store.group(1).unwrap_or_else(|error| panic!("{error}"))
}

fn write(state: &mut State, indices: RangeInclusive<u64>) {
    let text = |index| set(&format!("{index:05}"), &"x".repeat(500));
    block(apply(state, indices.map(|index| entry(index, &text(index)))));
}

fn build(state: &mut State) {
    block(async {
        let mut builder = RaftStateMachine::<Types>::get_snapshot_builder(state).await;
        RaftSnapshotBuilder::<Types>::build_snapshot(&mut builder).await.expect("it can be built");
    });
}

pub(super) fn current(state: &mut State) -> SnapshotOf<Types, crate::Image> {
    let current = block(RaftStateMachine::<Types>::get_current_snapshot(state));
    current.expect("it can be read").expect("something was applied")
}

fn last(state: &mut State) -> Option<LogId> {
    current(state).meta.last_log_id
}

/// Sends the current snapshot to a new group, and returns how many pairs it then has.
fn send(state: &mut State) -> Result<usize> {
    Ok(sent(state)?.1.len())
}

pub(super) type Pairs = Vec<(String, String)>;

/// The last entry of the current snapshot, and the pairs that a new group has to which it is sent.
pub(super) fn sent(state: &mut State) -> Result<(Option<LogId>, Pairs)> {
    let store = Store::open_inline(Db::open("memory:")?)?;
    let (_log, mut copy) = store.group(1)?;
    let sent = current(state);
    let mut receiver = copy.reader().receive()?;
    for chunk in sent.snapshot.chunks()? {
        receiver.push(&chunk?)?;
    }
    let image = receiver.finish()?;
    block(RaftStateMachine::<Types>::install_snapshot(&mut copy, &sent.meta, image)).expect("it is whole");
    Ok((sent.meta.last_log_id, pairs(&copy.reader())))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for file in fs::read_dir(from).expect("a directory").map(|file| file.expect("a file").path()) {
        let name = file.file_name().expect("it has one");
        if file.is_dir() { copy(&file, &to.join(name)) } else { drop(fs::copy(&file, to.join(name))) }
    }
}

#[test]
fn those_of_an_encrypted_store_are_read() {
    let key = |byte| EncryptionKey::from_bytes([byte; 32]);
    let mut home = Home::new(Db::builder().encryption_key(key(7)));
    {
        let (_store, _log, mut state) = home.group();
        write(&mut state, 1..=10);
        build(&mut state);
        write(&mut state, 11..=20);
        assert_eq!(last(&mut state), Some(id(10)));
        assert_eq!(send(&mut state).expect("it can be sent"), 10);
    }
    let (store, log, mut state) = home.group();
    assert_eq!(send(&mut state).expect("it can be sent"), 10, "after the store was opened again");
    // What the new key does not open is given up.
    store.db().rotate_key(&key(8)).expect("it is encrypted");
    drop((log, state, store));
    home.builder = Db::builder().encryption_key(key(8));
    let (_store, _log, mut state) = home.group();
    assert_eq!(last(&mut state), Some(id(20)));
    build(&mut state);
    assert_eq!(send(&mut state).expect("it can be sent"), 20);
}

#[test]
fn those_of_a_removed_group_are_removed() {
    let home = Home::new(Db::builder());
    let (store, log, mut state) = home.group();
    write(&mut state, 1..=10);
    build(&mut state);
    drop((log, state));
    let saved = home.directory.path().join("saved");
    copy(&home.checkpoints(), &saved);
    store.remove(1).expect("it can be removed");
    let (log, mut state) = group(&store);
    write(&mut state, 1..=5);
    assert_eq!(last(&mut state), Some(id(5)));
    drop((log, state, store));
    let (store, log, mut state) = home.group();
    assert_eq!(last(&mut state), Some(id(5)), "after the store was opened again");

    // A power cut may bring the files back.
    drop((log, state));
    store.remove(1).expect("it can be removed");
    copy(&saved, &home.checkpoints());
    let (_log, mut state) = group(&store);
    write(&mut state, 1..=20);
    assert_eq!(last(&mut state), Some(id(20)));
}

/// No file of it stays open, and no memory is taken for it, while nobody reads it.
#[cfg(target_os = "linux")]
#[test]
fn one_is_open_only_while_it_is_read() {
    let home = Home::new(Db::builder());
    let (_store, _log, mut state) = home.group();
    write(&mut state, 1..=10);
    build(&mut state);
    let open = || {
        let links = fs::read_dir("/proc/self/fd").expect("Linux has it");
        let links = links.filter_map(|link| fs::read_link(link.ok()?.path()).ok());
        links.filter(|path| path.starts_with(home.checkpoints())).count()
    };
    assert_eq!(open(), 0, "after it was made");
    let sent = current(&mut state);
    assert!(open() > 0, "while it is read");
    // Who reads it keeps it open and on disk, whatever takes its place meanwhile.
    let (mut chunks, second) = (sent.snapshot.chunks().expect("chunks"), current(&mut state));
    drop((sent, second));
    write(&mut state, 11..=20);
    build(&mut state);
    assert!(chunks.all(|chunk| chunk.is_ok()));
    drop(chunks);
    assert_eq!(open(), 0, "afterwards");
    assert!(home.checkpoint().ends_with("0000000000000001"));
    assert_eq!(last(&mut state), Some(id(20)));
}

/// An interruption of a removal leaves an empty directory.
#[test]
fn an_empty_one_stops_no_group() {
    let home = Home::new(Db::builder());
    {
        let (_store, _log, mut state) = home.group();
        write(&mut state, 1..=10);
        build(&mut state);
        write(&mut state, 11..=20);
    }
    let checkpoint = home.checkpoint();
    fs::remove_dir_all(&checkpoint).expect("it is there");
    fs::create_dir(&checkpoint).expect("it can be made");
    let (_store, _log, mut state) = home.group();
    assert_eq!(last(&mut state), Some(id(20)));
    build(&mut state);
    assert_eq!(send(&mut state).expect("it can be sent"), 20);
}

/// The damage is found while it is sent, which fails. The next try sends the present data.
#[test]
fn one_that_is_found_damaged_is_given_up() {
    let home = Home::new(Db::builder().pages(forrest::Pages::Plain));
    let (store, _log, mut state) = home.group();
    write(&mut state, 1..=200);
    store.db().flush().expect("it is written to a table");
    build(&mut state);
    write(&mut state, 201..=201);
    let files = fs::read_dir(home.checkpoint()).expect("files").map(|file| file.expect("a file").path());
    for table in files.filter(|file| file.extension().is_some_and(|extension| extension == "table")) {
        let mut bytes = fs::read(&table).expect("it can be read");
        // The store has another name of the file, and keeps the bytes. Their block is one of the first.
        fs::remove_file(&table).expect("it is there");
        let at = bytes.windows(100).position(|bytes| bytes == [b'x'; 100]);
        if let Some(at) = at {
            bytes[at + 50] ^= 16;
        }
        fs::write(&table, bytes).expect("it is written");
    }
    assert_eq!(last(&mut state), Some(id(200)));
    send(&mut state).expect_err("it is damaged");
    assert_eq!(last(&mut state), Some(id(201)));
    assert_eq!(send(&mut state).expect("the present data are whole"), 201);
}

/// It is durable when it was made, and the entries that it has may not be. After a power cut it may be ahead of them.
#[test]
fn one_that_is_ahead_of_the_data_is_not_sent() {
    let home = Home::new(Db::builder());
    let before = home.directory.path().join("before");
    {
        let store = home.open();
        write(&mut group(&store).1, 1..=3);
    }
    copy(&home.path(), &before);
    {
        let (_store, _log, mut state) = home.group();
        write(&mut state, 4..=5);
        build(&mut state);
        assert_eq!(last(&mut state), Some(id(5)));
    }
    fs::remove_dir_all(home.path()).expect("it is there");
    copy(&before, &home.path());
    let (_store, _log, mut state) = home.group();
    assert_eq!(last(&mut state), Some(id(3)));
}
