//! The file with the figures of a store, which is there while the store is open.

use forrest::{Db, ErrorKind};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

fn open(store: &Path, file: &Path) -> forrest::Result<Db> {
    Db::builder().metrics_file(file).latencies(true).open(store.to_str().expect("it is text"))
}

#[test]
fn figures_are_in_a_file_while_the_store_is_open() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = directory.path().join("store");
    for round in 0..2 {
        // In the directory of the store itself, where `forrest top` looks for it.
        let file = store.join("metrics.prom");
        let db = open(&store, &file).expect("it opens");
        let keys = fs::read_to_string(&file).expect("it is there at once");
        assert!(keys.contains(&format!("\nforrest_keys {round}\n")), "{keys}");
        db.set("oak", "Quercus").expect("it is set");
        let begin = Instant::now();
        while !fs::read_to_string(&file).expect("it is there").contains("\nforrest_changes_total 1\n") {
            assert!(begin.elapsed() < Duration::from_secs(30), "it is not written again");
            std::thread::yield_now();
        }
        assert!(
            fs::read_to_string(&file)
                .expect("it is there")
                .contains("forrest_call_seconds_count{call=\"write\"} 1\n")
        );
        drop(db);
        assert!(!file.exists() && !store.join("metrics.prom.new").exists(), "it is removed");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = directory.path().join("store");
    let error = open(&store, &directory.path().join("none/metrics.prom")).expect_err("there is no directory");
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("none/metrics.prom"), "{error}");
    assert_eq!(open(&store, Path::new("/")).expect_err("it has no name").kind(), ErrorKind::InvalidArgument);
    Db::open(store.to_str().expect("it is text")).expect("it is closed, and can be opened");
}
