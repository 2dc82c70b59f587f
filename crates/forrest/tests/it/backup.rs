//! Backups in the file system: each is a map of its time after the original is deleted; what is copied, refused and
//! left.

use forrest::{BackupOptions, Db, ErrorKind, Keep, backups, prune, restore, restore_with, verify_backup};
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn place() -> (TempDir, PathBuf, PathBuf) {
    let keep = tempfile::tempdir().unwrap();
    let (store, into) = (keep.path().join("store"), keep.path().join("backups"));
    (keep, store, into)
}

fn open(path: &Path) -> Db {
    Db::open(path.to_str().unwrap()).unwrap()
}

fn put(db: &Db, map: &mut Map, numbers: std::ops::Range<u32>, byte: u8) {
    for number in numbers {
        let (key, value) = (number.to_be_bytes().to_vec(), vec![byte; 60]);
        db.set(&key, &value).unwrap();
        map.insert(key, value);
    }
}

fn content(db: &Db) -> Map {
    db.range(..)
        .map(|pair| pair.and_then(|pair| Ok((pair.key().to_vec(), pair.value_bytes()?.to_vec()))).unwrap())
        .collect()
}

/// The sizes of the files of a kind in a directory, and the time of their last writes.
fn files(path: &Path, kind: &str) -> BTreeMap<String, (u64, std::time::SystemTime)> {
    let all = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    let all = all.filter(|entry| entry.path().extension().is_some_and(|is| is == kind));
    let of = |entry: fs::DirEntry| {
        let is = entry.metadata().unwrap();
        (entry.file_name().into_string().unwrap(), (is.len(), is.modified().unwrap()))
    };
    all.map(of).collect()
}

#[test]
fn each_backup_is_restored_after_the_original_is_deleted() {
    let (keep, store, into) = place();
    let db = open(&store);
    let (mut map, mut made) = (Map::new(), Vec::new());
    put(&db, &mut map, 0..20_000, 1);
    db.compact().unwrap();
    let first = db.backup(&into).unwrap();
    assert_eq!(first.bytes, first.new_bytes);
    made.push((first.id, map.clone()));

    // In memory only; no table is copied again.
    put(&db, &mut map, 100..110, 2);
    let before = files(&into, "copy");
    let second = db.backup(&into).unwrap();
    assert!(second.new_bytes < 10_000 && second.bytes > 1_000_000, "{second:?}");
    made.push((second.id, map.clone()));
    let after = files(&into, "copy");
    assert_eq!(after.len(), before.len() + 1, "the description");
    assert!(before.iter().all(|file| after.get(file.0) == Some(file.1)), "a copy was written again");

    put(&db, &mut map, 10_000..30_000, 3);
    db.delete(7_u32.to_be_bytes()).unwrap();
    map.remove(&7_u32.to_be_bytes()[..]);
    db.compact().unwrap();
    made.push((db.backup(&into).unwrap().id, map.clone()));
    drop(db);
    fs::remove_dir_all(&store).unwrap();

    let ids: Vec<_> = backups(&into).unwrap().iter().map(|backup| backup.id).collect();
    assert_eq!(ids, made.iter().map(|(id, _)| *id).collect::<Vec<_>>());
    for (id, map) in &made {
        verify_backup(&into, Some(*id)).unwrap();
        let to = keep.path().join(format!("restored-{id}"));
        restore(&into, Some(*id), &to).unwrap();
        let db = open(&to);
        db.verify().unwrap();
        assert!(content(&db) == *map, "backup {id}");
        db.set("new", "change").unwrap();
        assert_eq!(restore(&into, None, &to).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    // A restored store goes on in the same place, if that is meant.
    let db = open(&keep.path().join(format!("restored-{}", made[0].0)));
    let error = db.backup(&into).unwrap_err();
    assert!(error.to_string().contains("another store"), "{error}");
    let mut options = BackupOptions::default();
    options.other_store = true;
    let backup = db.backup_with(&into, &options, |_| ControlFlow::Continue(())).unwrap();
    assert!(backup.new_bytes < 10_000, "its tables were there: {backup:?}");
    db.backup(&into).expect("it is the store of the newest backup now");
}

#[test]
fn old_backups_are_removed_and_the_others_stay() {
    let (keep, store, into) = place();
    let db = open(&store);
    let mut map = Map::new();
    let mut ids = Vec::new();
    for round in 0..4 {
        put(&db, &mut map, 0..3000, round);
        db.compact().unwrap();
        ids.push(db.backup(&into).unwrap().id);
    }
    let before = files(&into, "copy").len();
    let pruned = prune(&into, Keep::Newest(2)).unwrap();
    assert_eq!(pruned.removed, ids[..2]);
    assert!(pruned.bytes > 2 * 3000 * 60, "{pruned:?}");
    assert_eq!(files(&into, "backup").len(), 2);
    assert!(files(&into, "copy").len() < before);
    ids[2..].iter().for_each(|&id| drop(verify_backup(&into, Some(id)).unwrap()));
    let error = restore(&into, Some(ids[0]), keep.path().join("old")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(!keep.path().join("old").exists());
}

#[test]
fn what_is_wrong_is_refused_and_left_alone() {
    let (keep, store, into) = place();
    let db = open(&store);
    db.set("oak", "Quercus").unwrap();
    let kind = |path: &Path| db.backup(path).unwrap_err().kind();
    assert_eq!(kind(&store), ErrorKind::InvalidArgument, "the store itself");
    assert_eq!(kind(&store.join("backups")), ErrorKind::InvalidArgument, "within the store");
    assert!(!store.join("backups").exists());
    let other = keep.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("diary"), "mine").unwrap();
    assert_eq!(kind(&other), ErrorKind::InvalidArgument);
    assert_eq!(fs::read_dir(&other).unwrap().count(), 1);
    assert_eq!(kind(Path::new("memory:")), ErrorKind::InvalidArgument);
    assert_eq!(backups(&into).unwrap_err().kind(), ErrorKind::Io);
    let memory = Db::open("memory:").unwrap();
    assert_eq!(memory.backup(&into).unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(!into.exists());

    let first = db.backup(&into).unwrap();
    let ended = restore_with(&into, None, keep.path().join("new"), |_| ControlFlow::Break(()));
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Busy);
    assert!(!keep.path().join("new").exists());
    // One at a time changes it; others read meanwhile.
    let mut during = Vec::new();
    let options = BackupOptions::default();
    db.set("elm", "Ulmus").unwrap();
    db.flush().unwrap();
    db.backup_with(&into, &options, |_| {
        during.push(db.backup(&into).unwrap_err().kind());
        during.push(prune(&into, Keep::Newest(1)).unwrap_err().kind());
        assert_eq!(backups(&into).unwrap().len(), 1);
        verify_backup(&into, None).unwrap();
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(during.len() >= 2 && during.iter().all(|kind| *kind == ErrorKind::Busy), "{during:?}");
    assert_eq!(backups(&into).unwrap()[0], first);

    // It is no store, and says so.
    let error = Db::open(into.to_str().unwrap()).expect_err("it is no store");
    assert!(error.to_string().contains("directory of backups"), "{error}");
    assert_eq!(backups(&into).unwrap().len(), 2);
}

/// Beside the process that has the store open, one that reads it backs it up.
#[test]
fn a_reader_backs_up_too() {
    let (_keep, store, into) = place();
    let db = open(&store);
    let mut map = Map::new();
    put(&db, &mut map, 0..5000, 4);
    db.flush().unwrap();
    put(&db, &mut map, 2000..2010, 5);
    let reader = Db::open_read_only(store.to_str().unwrap()).unwrap();
    let first = reader.backup(&into).unwrap();
    let second = db.backup(&into).unwrap();
    assert!(second.new_bytes < 10_000, "both are one store: {first:?} {second:?}");
}
