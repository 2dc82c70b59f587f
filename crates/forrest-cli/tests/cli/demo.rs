//! The tour on trees of all kinds.

use crate::harness::{Place, Ran};
use crate::terminal::Terminal;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

/// A small tree with something of everything.
fn tree(place: &Place) {
    for i in 0..120 {
        place.write(format!("tree/src/module{}/file{i}.rs", i % 7), "x".repeat(i));
    }
    place.write("tree/docs/guide.md", "# Guide");
    place.write("tree/docs/deep/er/and/deeper/x.txt", "");
    place.write("tree/README", "");
    place.write("tree/名前/ファイル.txt", "");
    fs::create_dir(place.path().join("tree/empty")).unwrap();
    symlink("..", place.path().join("tree/docs/loop")).unwrap();
    symlink("nowhere", place.path().join("tree/dangling")).unwrap();
}

#[test]
fn it_tells_what_is_there() {
    let place = Place::new();
    tree(&place);
    let ran = place.run(&["demo", "tree"]);
    let text = ran.ok();
    // 120 files in src, 7 modules, src; guide, deep, er, and, deeper, x.txt, loop, docs; README; 名前 and its
    // file; empty; dangling. Directories: tree, src, 7 modules, docs, deep, er, and, deeper, 名前, empty.
    assert!(text.contains("141 entries from 16 directories"), "{text}");
    for line in ["docs/", "empty/", "src/", "README", "dangling"] {
        assert!(text.lines().any(|l| l.ends_with(&format!("  {line}"))), "{line}\n{text}");
    }
    let counted = |line: &str, start: &str, end: &str| {
        line.split_whitespace().next() == Some(start) && line.ends_with(end)
    };
    assert!(text.lines().any(|l| counted(l, "127", "tree/src")), "{text}");
    assert!(text.lines().any(|l| counted(l, "120", " .rs")), "{text}");
    assert!(text.contains("no difference between the snapshot and the store"), "{text}");
    assert!(text.contains("bytes of a key"), "{text}");
    assert_eq!(ran.stderr, "");
}

#[test]
fn its_store_is_on_disk_and_the_same_when_opened_again() {
    let place = Place::new();
    tree(&place);
    fs::create_dir(place.path().join("tmp")).unwrap();
    let mut command = place.command(&["demo", "tree"]);
    let command = command.env("TMPDIR", place.path().join("tmp")).env("FORREST_URL", "mine");
    let ran = Ran::from(command.output().unwrap());
    assert!(ran.ok().contains("the same: ") && ran.text().contains("compacted in"), "{}", ran.text());
    assert!(ran.text().contains("   on disk: "), "{}", ran.text());
    assert_eq!(fs::read_dir(place.path().join("tmp")).unwrap().count(), 0, "the store is still there");
    assert!(!place.path().join("mine").exists());

    place.run(&["demo", "tree", "--db", "store"]).ok();
    assert_eq!(place.run(&["--db", "store", "-k", "files", "count"]).ok(), "141\n");
    let again = place.run(&["demo", "tree", "--db", "store"]);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("not empty"), "{}", again.stderr);

    let memory = place.run(&["demo", "tree", "--db", "memory:"]);
    assert!(memory.ok().contains("in use: ") && !memory.text().contains("opened"), "{}", memory.text());
}

#[test]
fn it_fits_a_terminal_and_shows_a_bar() {
    let place = Place::new();
    tree(&place);
    let mut terminal = Terminal::start(&place, 80, &["demo", "tree"], &[]);
    assert_eq!(terminal.end(), 0);
    terminal.assert_tidy();
    assert!(terminal.raw_text().contains("0%"), "no bar was drawn");
    assert!(!terminal.text().contains('%'), "a bar is still there:\n{}", terminal.text());
    let long = terminal.text().lines().map(|line| line.chars().count()).max();
    assert!(long.is_some_and(|columns| columns <= 80));
}

#[test]
fn its_shell_asks_the_filled_store() {
    let place = Place::new();
    tree(&place);
    let ran =
        place.run_with(&["demo", "tree", "--shell"], "count\n@extension_files get rs --int\nget /nowhere\n");
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.text().ends_with("\n141\n120\n"), "{}", ran.text());
}

#[test]
fn what_it_stores_can_be_dumped() {
    let place = Place::new();
    tree(&place);
    place.run(&["demo", "tree", "--dump", "files.txt"]).ok();
    assert_eq!(place.run(&["--load", "files.txt", "-k", "files", "count"]).ok(), "141\n");
    let ran = place.run(&["--load", "files.txt", "-k", "extension_files", "get", "--int", "rs"]);
    assert_eq!(ran.ok(), "120\n");
}

#[test]
fn empty_trees_and_single_files() {
    let place = Place::new();
    fs::create_dir(place.path().join("empty")).unwrap();
    assert!(place.run(&["demo", "empty"]).ok().contains("nothing to ask"));
    place.write("one/file", "x");
    assert!(place.run(&["demo", "one"]).ok().contains("1 entry from 1 directory"));
    fs::create_dir_all(place.path().join("dirs/a/b")).unwrap();
    assert!(place.run(&["demo", "dirs"]).ok().contains("2 entries from 3 directories"));
    symlink("one", place.path().join("link")).unwrap();
    assert!(place.run(&["demo", "link"]).ok().contains("1 entry from 1 directory"));
}

#[test]
fn the_limit_is_kept() {
    let place = Place::new();
    tree(&place);
    let ran = place.run(&["demo", "tree", "--limit", "50"]);
    assert!(ran.ok().contains("50 entries"), "{}", ran.text());
    assert!(ran.text().contains("as --limit asks"), "{}", ran.text());
    assert!(ran.text().contains("no difference"), "{}", ran.text());
    assert!(place.run(&["demo", "tree", "--limit", "0"]).ok().contains("nothing to ask"));
}

#[test]
fn names_that_are_not_text() {
    let place = Place::new();
    for name in [
        &b"tree/\xff\xfe"[..],
        b"tree/new\nline",
        b"tree/\x1b[31mred",
        b"tree/tab\there",
        b"tree/back\\slash",
    ] {
        let path = place.path().join(OsStr::from_bytes(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if let Err(e) = fs::write(&path, "") {
            eprintln!("skipped: this file system refuses the name {}: {e}", name.escape_ascii());
            return;
        }
    }
    let ran = place.run(&["demo", "tree"]);
    for name in [r"\xff\xfe", r"new\nline", r"\x1b[31mred", r"tab\there", r"back\\slash"] {
        assert!(ran.ok().contains(name), "{name}: {}", ran.text());
    }
    let mut terminal = Terminal::start(&place, 80, &["demo", "tree"], &[]);
    assert_eq!(terminal.end(), 0);
    terminal.assert_tidy();
}

#[test]
fn what_cannot_be_read_is_told_and_passed_over() {
    let place = Place::new();
    place.write("tree/fine/file", "");
    // A path longer than the system takes cannot be read by anybody, root included.
    let name = "d".repeat(200);
    let deep =
        format!("cd tree; for i in $(seq 30); do mkdir {name} && cd -P {name} || exit 1; done; touch file");
    let made = place.shell(&deep);
    if made.code != Some(0) {
        eprintln!("skipped: no path longer than the system takes can be made here: {}", made.stderr);
        return;
    }
    let ran = place.run(&["demo", "tree"]);
    assert!(ran.ok().contains("1 entry could not be read"), "{}", ran.text());
    assert!(ran.text().contains("File name too long"), "{}", ran.text());
    // So that the directory can be removed.
    place.shell(&format!("cd tree; mv {name} a; rm -rf a"));
}

#[test]
fn directories_without_permission() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.write("tree/secret/file", "");
    place.write("tree/fine/file", "");
    let secret = place.path().join("tree/secret");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read_dir(&secret).is_ok() {
        eprintln!("skipped: permissions do not hold for this user, who may read everything");
        return;
    }
    let ran = place.run(&["demo", "tree"]);
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o700)).unwrap();
    assert!(ran.ok().contains("1 entry could not be read"), "{}", ran.text());
    assert!(ran.text().contains("Permission denied"), "{}", ran.text());
}

#[test]
fn the_order_of_the_timings_follows_from_the_seed() {
    let place = Place::new();
    tree(&place);
    assert!(place.run(&["demo", "tree", "--seed", "42"]).ok().contains("seed 42"));
}
