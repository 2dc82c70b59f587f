//! `salvage`: a store of files, what it refuses, and that it leaves nothing when it fails.

use forrest::{Db, ErrorKind, salvage, salvage_with};
use std::fs;
use std::ops::{Bound, ControlFlow, RangeBounds};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn open(path: &Path) -> forrest::Result<Db> {
    Db::open(path.to_str().unwrap())
}

/// A store with pairs of two keyspaces in tables and some in a log.
fn place() -> (TempDir, PathBuf, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let (old, new) = (directory.path().join("old"), directory.path().join("new"));
    let db = open(&old).unwrap();
    for number in 0..5000_u32 {
        db.set(number.to_be_bytes(), [number as u8; 50]).unwrap();
    }
    db.keyspace("other").unwrap().set("oak", "Quercus").unwrap();
    db.flush().unwrap();
    db.set("elm", "Ulmus").unwrap();
    drop(db);
    (directory, old, new)
}

#[test]
fn what_is_intact_of_a_damaged_table_is_in_the_new_store() {
    let (keep, old, new) = place();
    let table = names(&old)
        .into_iter()
        .find(|name| name.ends_with("table") && fs::metadata(old.join(name)).unwrap().len() > 100_000);
    let table = table.expect("a large table");
    let mut bytes = fs::read(old.join(&table)).unwrap();
    bytes[20_000] ^= 1;
    fs::write(old.join(&table), bytes).unwrap();
    let before: Vec<_> = names(&old).iter().map(|name| fs::read(old.join(name)).unwrap()).collect();
    let salvaged = salvage(&old, &new).unwrap();
    let after: Vec<_> = names(&old).iter().map(|name| fs::read(old.join(name)).unwrap()).collect();
    assert!(before == after, "the old store was changed");
    assert_eq!(names(keep.path()), ["new", "old"]);
    assert_eq!(salvaged.keyspaces, 2);
    assert!(!salvaged.lost.is_empty() && salvaged.lost.len() < 200, "{:?}", salvaged.lost);
    let db = open(&new).unwrap();
    db.verify().unwrap();
    let mut missing = 0;
    for number in 0..5000_u32 {
        let found = db.get(number.to_be_bytes()).unwrap();
        let is_lost = salvaged.lost.iter().any(|loss| {
            let (from, to) = &loss.range;
            let range = (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
            assert_eq!((&*loss.keyspace, &*loss.file), ("default", &*table));
            <(Bound<&[u8]>, Bound<&[u8]>) as RangeBounds<[u8]>>::contains(&range, &number.to_be_bytes()[..])
        });
        assert_eq!(found.is_none(), is_lost, "{number}");
        missing += usize::from(is_lost);
    }
    assert!((1..200).contains(&missing), "{missing}");
    assert_eq!(db.get("elm").unwrap().as_deref(), Some(&b"Ulmus"[..]));
    assert_eq!(db.keyspace("other").unwrap().get("oak").unwrap().as_deref(), Some(&b"Quercus"[..]));
    assert_eq!(salvaged.pairs, 5002 - missing as u64);
}

#[test]
fn a_salvage_that_fails_leaves_nothing() {
    let (keep, old, new) = place();
    let kind = |result: forrest::Result<_>| result.map(|_: forrest::Salvaged| ()).unwrap_err().kind();
    assert_eq!(kind(salvage_with(&old, &new, |_| ControlFlow::Break(()))), ErrorKind::Busy);
    assert_eq!(kind(salvage(&old, old.join("within"))), ErrorKind::InvalidArgument);
    assert_eq!(kind(salvage(&old, "memory:")), ErrorKind::InvalidArgument);
    assert_eq!(kind(salvage("memory:", &new)), ErrorKind::InvalidArgument);
    assert_eq!(kind(salvage(keep.path().join("nothing"), &new)), ErrorKind::Io);
    fs::create_dir(&new).unwrap();
    fs::write(new.join("file"), "mine").unwrap();
    assert_eq!(kind(salvage(&old, &new)), ErrorKind::InvalidArgument);
    assert_eq!(names(&new), ["file"]);
    fs::remove_dir_all(&new).unwrap();
    assert_eq!(salvage(&old, &new).unwrap().lost, []);
    fs::remove_dir_all(&new).unwrap();
    for name in names(&old).iter().filter(|name| name.ends_with("manifest")) {
        fs::remove_file(old.join(name)).unwrap();
    }
    assert_eq!(kind(salvage(&old, &new)), ErrorKind::Corrupt);
    assert_eq!(names(keep.path()), ["old"]);
}

/// Files that a writer replaces would look like losses.
#[test]
fn a_salvage_beside_a_writer_is_refused() {
    let keep = tempfile::tempdir().unwrap();
    let (old, new) = (keep.path().join("old"), keep.path().join("new"));
    let db = open(&old).unwrap();
    db.set("oak", "Quercus").unwrap();
    let error = salvage(&old, &new).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    if cfg!(target_os = "linux") {
        assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    }
    assert!(!new.exists());
    drop(db);
    // Readers change nothing.
    let reader = Db::open_read_only(old.to_str().unwrap()).unwrap();
    assert_eq!(salvage(&old, &new).unwrap().pairs, 1);
    assert_eq!(reader.get("oak").unwrap().as_deref(), Some(&b"Quercus"[..]));
}
