//! A store that is opened, changed and closed many times does not collect logs.

use forrest::Db;
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
