//! Opening leaves nothing over: no logs of many short uses, and no store where the options are wrong.

use forrest::{Db, ErrorKind};
use std::fs;

#[test]
fn many_short_uses_leave_few_logs() {
    const USES: u32 = 40;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store");
    let open = || Db::open(path.to_str().expect("it is text")).expect("it opens");
    for number in 0..USES {
        open().set(number.to_be_bytes(), "once").expect("it fits");
    }
    let entries = fs::read_dir(&path).expect("a directory");
    let is_log = |entry: &fs::DirEntry| entry.path().extension().is_some_and(|extension| extension == "log");
    let logs = entries.map(|entry| entry.expect("an entry")).filter(is_log).count();
    assert!(logs <= 3, "{logs} logs after {USES} uses");
    assert_eq!(open().count(..).expect("it reads"), u64::from(USES));
}

/// Options that this machine cannot follow are refused before anything is created.
#[test]
fn wrong_processors_leave_no_store() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store");
    let error = Db::builder().worker_cpus(&[1 << 20]).open(path.to_str().expect("it is text")).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument | ErrorKind::Unsupported), "{error}");
    assert!(error.message().contains("worker_cpus"), "{error}");
    assert!(!path.exists(), "something was created");
}
