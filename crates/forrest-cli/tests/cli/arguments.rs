//! Bad arguments: each is exit code 2, a message on standard error, and nothing on standard output.

use crate::harness::Place;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

#[test]
fn bad_arguments_are_told_apart_from_other_failures() {
    let place = Place::new();
    place.write("in.txt", "a\t1\n");
    for (line, says) in [
        ("", "Usage"),
        ("frobnicate", "unrecognized subcommand"),
        ("get", "<KEY>"),
        ("get --raw --int a", "cannot be used with"),
        ("set a", "<VALUE>"),
        ("set a b c", "unexpected argument"),
        ("set a b --from-file c", "cannot be used with"),
        ("add n x", "invalid value"),
        ("add n 9223372036854775808", "invalid value"),
        ("cas a", "--expect"),
        ("cas a --expect 1", "--set"),
        ("cas a --expect 1 --absent --set 2", "cannot be used with"),
        ("delete", "<KEY>"),
        ("delete-range", "--all"),
        ("delete-range --all --prefix a", "cannot be used with"),
        ("scan --limit -1", "-1"),
        ("scan --limit many", "invalid value"),
        ("scan --keys --values", "cannot be used with"),
        ("scan --color", "unexpected argument"),
        ("--format xml scan", "invalid value"),
        ("--format ldb get 6162", "expected 0x"),
        ("--format hex get xyz", "hexadecimal"),
        ("--format hex get abc", "odd number"),
        (r"get a\q", "no escape"),
        (r"get a\x1", "two hexadecimal digits"),
        (r"scan --prefix \", "backslash at the end"),
        ("load", "<FILE>"),
        ("load in.txt -- frobnicate", "unrecognized subcommand"),
        ("load - -- load -", "cannot be read twice"),
        ("--load - shell", "cannot be read twice"),
        ("doctor extra", "unexpected argument"),
        ("doctor --load in.txt", "mean nothing"),
        ("demo --limit x", "invalid value"),
        ("demo a b", "unexpected argument"),
        ("--keyspace= get a", "name"),
        ("--db nowhere: get a", "nowhere:"),
        ("--db= get a", "URL"),
        ("--db memory: set a 1 --sync", "memory:"),
        ("set a 1", "no store is named"),
        ("stress --threads 1", "2..=1024"),
        ("stress a --db b", "two stores"),
        ("crash", "<DIR>"),
        ("crash memory:", "on disk"),
        ("crash a --expect 1/2", "RUN/THREAD/PAIR"),
        ("crash a --endless --pairs 3", "cannot be used with"),
        ("stress --load in.txt", "mean nothing"),
        ("verify one --db two", "two stores"),
        ("load in.txt -- verify one", "memory:"),
        ("--db a doctor", "looks at the machine"),
        ("--db a pages out", "--db a means nothing"),
        ("--db a llds list", "all the stores"),
        ("--db a llds destroy b", "after llds destroy"),
        ("--db a llds save b c", "after llds save"),
        ("--db a llds restore b", "after the file for llds restore"),
        ("--db a salvage b c", "after salvage"),
        ("--db a top b", "name the store after top"),
        ("--db a move-log b", "after move-log"),
        ("--db a backup list b", "the directory of backups"),
        ("--db a backup verify b", "the directory of backups"),
        ("--db a backup restore b c", "the directory of backups"),
        ("--db a backup prune b --keep 1", "the directory of backups"),
        ("--db a backup rotate-key b in.txt", "the directory of backups"),
        ("--db a backup create b c", "two stores"),
        ("--memory-bytes 64M salvage a b", "--memory-bytes mean nothing"),
        ("--tags false backup list a", "options of a store"),
        ("--workers 1 backup verify a", "options of a store"),
        ("--table-bytes 1M backup restore a b", "options of a store"),
        ("--open-files 10 backup prune a --keep 1", "options of a store"),
        ("--pages plain backup rotate-key a in.txt", "options of a store"),
        ("--metrics-file m top a", "options of a store"),
        ("--worker-cpus 0 move-log a", "options of a store"),
        ("--capacity-bytes 1G llds list", "options of a store"),
        ("--compression lz4 doctor", "options of a store"),
    ] {
        let arguments: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        let ran = place.run(&arguments);
        assert_eq!(ran.code, Some(2), "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{line}: {}", ran.stderr);
        assert_eq!(ran.text(), "", "{line}");
    }
}

/// The store of the environment is for all commands, also for those that name their own.
#[test]
fn the_environment_may_name_a_store_that_is_not_used() {
    let place = Place::new();
    assert_eq!(place.shell("FORREST_URL=store forrest doctor | grep -c .").code, Some(0));
    let listed = place.shell("FORREST_URL=store forrest backup list none");
    assert!(!listed.stderr.contains("means nothing"), "{}", listed.stderr);
}

/// The file for wrong lines is made before the others are read.
#[test]
fn the_file_for_wrong_lines_is_none_of_those_to_load() {
    let place = Place::new();
    place.write("in.txt", "a\t1\nwrong\n");
    place.write("other.txt", "b\t2\n");
    std::os::unix::fs::symlink("in.txt", place.path().join("link")).unwrap();
    std::fs::hard_link(place.path().join("in.txt"), place.path().join("twin")).unwrap();
    for line in [
        "load in.txt --skip-errors in.txt",
        "load other.txt in.txt --skip-errors ./in.txt",
        "load in.txt --skip-errors link",
        "load link --skip-errors in.txt",
        "load twin --skip-errors in.txt",
        "load - --skip-errors in.txt <in.txt",
        "load other.txt --load in.txt --skip-errors in.txt",
        "load none --skip-errors none",
    ] {
        let ran = place.shell(&format!("forrest --db store {line}"));
        assert_eq!(ran.code, Some(2), "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains("would be emptied"), "{line}: {}", ran.stderr);
        assert_eq!(std::fs::read(place.path().join("in.txt")).unwrap(), b"a\t1\nwrong\n", "{line}");
        assert!(!place.path().join("store").exists() && !place.path().join("none").exists(), "{line}");
    }
    for line in ["--dump out", "--dump ./out", "--dump to-out"] {
        let ran = place
            .shell(&format!("ln -sf out to-out; forrest --db store load in.txt --skip-errors out {line}"));
        assert!(ran.code == Some(2) && ran.stderr.contains("would replace it"), "{line}: {}", ran.stderr);
        place.write("out", "");
    }
    let ran = place.run_with(&["--db", "store", "shell"], "load in.txt --skip-errors link\n");
    assert!(ran.code == Some(2) && ran.stderr.contains("would be emptied"), "{}", ran.stderr);
    // A device may be both.
    place.shell("forrest --db store load - --skip-errors /dev/null </dev/null").ok();
    place.run(&["--db", "store", "load", "in.txt", "--skip-errors", "wrong.txt"]).ok();
    assert_eq!(std::fs::read(place.path().join("wrong.txt")).unwrap(), b"wrong\n");
}

#[test]
fn the_kernel_without_its_module_says_what_to_do() {
    if std::path::Path::new("/dev/llds").exists() {
        println!("skipped: the kernel module is loaded");
        return;
    }
    let place = Place::new();
    for arguments in [
        &["--db", "llds:main", "get", "a"][..],
        &["--db", "llds:main", "set", "a", "1"],
        &["llds", "list"],
        &["llds", "destroy", "main"],
    ] {
        let ran = place.run(arguments);
        assert_eq!(ran.code, Some(4), "{arguments:?}");
        assert!(ran.stderr.contains("modprobe llds") && ran.stderr.contains("doctor"), "{}", ran.stderr);
        assert_eq!(ran.text(), "");
    }
}

#[test]
fn the_kernel_engine_in_this_process_is_there_if_it_was_built() {
    let place = Place::new();
    let ran = place.run_with(&["--db", "llds-user:main", "shell"], "set a 1\nget a\nscan\n");
    if cfg!(feature = "llds-user") {
        assert_eq!(ran.ok(), "1\na\t1\n");
        let ran = place.run(&["--db", "llds-user:main", "-k", "people", "get", "a"]);
        assert_eq!(ran.code, Some(4));
        assert!(ran.stderr.contains("keyspace"), "{}", ran.stderr);
    } else {
        assert_eq!(ran.code, Some(4));
        assert!(ran.stderr.contains("feature llds-user"), "{}", ran.stderr);
    }
}

#[test]
fn what_is_wrong_elsewhere_has_another_code() {
    let place = Place::new();
    place.write("in.txt", "a\t1\n");
    let long = "k".repeat(65_536);
    for (arguments, says) in [
        (&["--load", "missing.txt", "scan"][..], "missing.txt"),
        (&["--load", ".", "scan"], "directory"),
        (&["--load", "in.txt", "scan", "--dump", "no/such/dir"], "no/such/dir"),
        (&["shell", "missing.txt"], "missing.txt"),
        (&["--db", "memory:", "set", "a", "--from-file", "missing.bin"], "missing.bin"),
        (&["get", &long], "65535"),
        (&["--db", "memory:", "set", &long, "x"], "65536"),
        (&["demo", "missing"], "missing"),
        (&["demo", "in.txt"], "in.txt"),
    ] {
        let ran = place.run(arguments);
        assert_eq!(ran.code, Some(4), "{arguments:.60?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{arguments:.60?}: {}", ran.stderr);
    }
}

#[test]
fn arguments_need_not_be_utf8() {
    let place = Place::new();
    let raw = OsStr::from_bytes(b"k\xff");
    let dump = place.run(&[OsStr::new("set"), raw, raw, OsStr::new("--dump"), OsStr::new("-")]);
    assert_eq!(dump.ok(), "k\\xff\tk\\xff\n");
    place.write("in.txt", &dump.stdout);
    let get =
        place.run(&[OsStr::new("--load"), OsStr::new("in.txt"), OsStr::new("get"), OsStr::new("--raw"), raw]);
    assert_eq!(get.stdout, b"k\xff");
}
