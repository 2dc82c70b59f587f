//! Structures in C, in Perl and of a program of one's own: the examples, as they are and with faults.

use crate::{done, kvbench, records, scratch, text, words};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/foreign/array.c");
const INCLUDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/include");

/// Whether there is a C compiler. Without one these tests print a message and check nothing.
static COMPILER: LazyLock<bool> = LazyLock::new(|| {
    let found = Command::new("cc").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: structures in C, for there is no C compiler (Debian: gcc)");
    }
    found
});

/// The example as a library, with a fault if one is named. Tests run at once: each call makes a file of its own.
fn library(fault: &str) -> PathBuf {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let path = scratch(&format!("libarray-{}-{number}.so", fault.to_lowercase()));
    let mut command = Command::new("cc");
    command.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", INCLUDE]);
    command.arg(format!("-DFAULT={fault}")).arg("-o").arg(&path).arg(SOURCE);
    let output = command.output().expect("the compiler starts");
    assert!(output.status.success(), "{fault}: {}", text(&output.stderr));
    path
}

/// The example is built together with the tests; not if the tests of this file alone were asked for.
#[test]
fn a_structure_of_ones_own_is_measured_beside_the_others() {
    let example = Path::new(env!("CARGO_BIN_EXE_kvbench")).with_file_name("examples").join("own");
    if !example.exists() {
        eprintln!(
            "skipped: {} was not built: cargo test builds it, with --examples if targets are named",
            example.display()
        );
        return;
    }
    let own = |arguments: &[&str]| Command::new(&example).args(arguments).output().expect("it starts");
    let run = ["memory", "--quick", "-n", "3000", "--subjects", "array,btreemap", "--no-sweep"];
    let output = own(&run);
    let out = text(&output.stdout);
    assert!(output.status.success(), "{out}{}", text(&output.stderr));
    assert!(out.contains("u64: 2 subjects agree") && out.contains("strings: 2 subjects agree"), "{out}");
    assert!(text(&own(&["list"]).stdout).contains("a sorted array of pairs"));
    assert!(
        !text(&kvbench(&["list"]).stdout).contains("a sorted array of pairs"),
        "it is the example's alone"
    );
}

#[test]
fn a_library_in_c_is_measured_beside_the_others() {
    if !*COMPILER {
        return;
    }
    let (library, json) = (library("NONE"), scratch("foreign.jsonl"));
    let library = library.to_str().unwrap();
    let subjects = format!("btreemap,{library},{library}:array");
    let json_text = json.to_str().unwrap();
    let out =
        done(&words("memory --quick -n 3000 --no-sweep", &["--subjects", &subjects, "--json", json_text]));
    assert!(out.contains("u64: 2 subjects agree") && out.contains("strings: 2 subjects agree"), "{out}");
    let records = records(&json);
    let of = |subject: &str| {
        let mut figures =
            records.iter().filter(|one| one["record"] == "figures" && one["subject"] == *subject);
        let found =
            [figures.next(), figures.next()].map(|one| one.unwrap_or_else(|| panic!("{subject}: {out}")));
        assert!(figures.next().is_none(), "{subject} is measured once");
        found
    };
    for (foreign, own) in of(&format!("{library}:array")).into_iter().zip(of("btreemap")) {
        // The header has no way from the last pair to the first.
        let mut sums = own["sums"].clone();
        let back = sums.as_object_mut().and_then(|sums| sums.remove("iterate_back"));
        assert!(back.is_some() && foreign["sums"] == sums, "{foreign} {own}");
        assert_eq!(foreign["about"], "a sorted array in C");
        assert!(own["about"].is_null());
        // Bytes requested in C, and the most of them, are unknown: they were the final size with malloc's rounding.
        for name in ["live_bytes_per_key", "peak_live_bytes_per_key"] {
            assert!(
                foreign["figures"][name].is_null() && own["figures"][name].is_object(),
                "{name}: {foreign}"
            );
        }
        // What malloc gave out is counted in the same way for both. Two arrays of cells, at most twice as long as they
        // need be; the nodes of a tree, which take a header each.
        if cfg!(all(target_os = "linux", target_env = "gnu")) {
            let heap = |of: &Value| of["figures"]["heap_bytes_per_key"]["median"].as_f64().unwrap();
            assert!((16.0..600.0).contains(&heap(foreign)), "{foreign}");
            let live = own["figures"]["live_bytes_per_key"]["median"].as_f64().unwrap();
            assert!((live..2.0 * live).contains(&heap(own)), "{own}");
        }
    }
}

#[test]
fn a_library_in_c_is_told_how_many_keys_will_come() {
    if !*COMPILER {
        return;
    }
    let (library, json) = (library("NONE"), scratch("foreign-reserve.jsonl"));
    let subjects = format!("hashbrown,{}", library.display());
    let how = ["memory", "-n", "3000", "--kinds", "u64", "--no-sweep", "--only", "reserve"];
    let output = kvbench(&[&how[..], &["--subjects", &subjects, "--json", json.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    let all = records(&json).into_iter().filter(|one| one["record"] == "figures");
    let reserved = all.filter(|one| one["figures"]["insert_reserved_ns"]["median"].as_f64() > Some(0.0));
    assert_eq!(reserved.count(), 2);
}

#[test]
fn a_library_that_is_none_says_why() {
    let absent = kvbench(&["memory", "--quick", "--subjects", "./absent.so"]);
    assert_eq!(absent.status.code(), Some(2));
    assert!(text(&absent.stderr).contains("./absent.so cannot be loaded"), "{}", text(&absent.stderr));
    if !*COMPILER {
        return;
    }
    for (fault, why) in [
        ("OTHER_ABI", "is made for version 2 of kvbench_subject.h, this is 1"),
        ("NO_GET", "array has no function \"get\""),
        ("NO_SCAN", "array has no function \"scan\""),
        ("BAD_NAME", "is named \"Array, sorted\""),
        ("NO_KINDS", "array holds neither numbers nor strings"),
        ("UNKNOWN_FLAG", "array has unknown flags: 0x80000000"),
        ("EMPTY_LIST", "offers nothing"),
        ("TWICE", ":array twice"),
    ] {
        let path = library(fault);
        let output = kvbench(&["memory", "--quick", "--subjects", path.to_str().unwrap()]);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{fault}: {error}");
        assert!(error.contains(why) && error.contains("libarray-"), "{fault}: {error}");
    }
    let path = library("NONE");
    let named = format!("{}:list", path.display());
    let error = text(&kvbench(&["memory", "--quick", "--subjects", &named]).stderr);
    assert!(error.contains("offers no \"list\", but array"), "{error}");
}

#[test]
fn a_library_that_is_wrong_is_not_timed() {
    if !*COMPILER {
        return;
    }
    for (fault, why) in [
        ("LOSES_LAST_BYTE", "strings: FAILED"),
        ("NO_UPDATE", "u64: FAILED: operation"),
        ("CRASHES", "its process broke off: signal: 6"),
    ] {
        let path = library(fault);
        let output =
            kvbench(&["memory", "--quick", "-n", "1000", "--no-sweep", "--subjects", path.to_str().unwrap()]);
        let out = text(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{fault}: {out}");
        assert!(out.contains(why), "{fault}: {out}");
    }
}

/// A subject that its sums show to be wrong stayed in tables, records and goals.
#[test]
fn a_library_whose_sums_differ_has_no_figures() {
    if !*COMPILER {
        return;
    }
    let (path, json) = (library("LOSES_SCANS"), scratch("foreign-sums.jsonl"));
    let subjects = format!("btreemap,skiplist,{}", path.display());
    let how = words("memory -n 20500 --kinds u64 --no-sweep --only scan --probes 2000", &[]);
    let output = kvbench(&[&how[..], &["--subjects", &subjects, "--json", json.to_str().unwrap()]].concat());
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{out}");
    let why = "array, 20500 u64: FAILED: scan: what it showed sums to ";
    assert!(out.contains(why) && !out.lines().any(|line| line.ends_with(":array")), "{out}");
    let records = records(&json);
    let of = |record: &str| records.iter().filter(|one| one["record"] == *record).count();
    assert_eq!((of("figures"), of("left_out")), (2, 1), "{out}");
}

/// Scans without pairs were compared as faster ones: neither the kit nor the sums looked at a comparison.
#[test]
fn a_side_that_is_wrong_is_not_compared() {
    if !*COMPILER {
        return;
    }
    for (fault, why) in [
        ("SCANS_NOTHING", "b = ./"),
        ("LOSES_SCANS", "scan: of the same pairs a showed the sums "),
        ("NO_UPDATE", "operation "),
    ] {
        let path = library(fault);
        // A path from here, as a user gives it.
        let named = format!("./{}", path.file_name().unwrap().to_str().unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_kvbench"));
        command.current_dir(path.parent().unwrap()).args(["compare", "btreemap", &named, "-n", "20500"]);
        command.args(["--only", "scan", "--probes", "2000", "--blocks", "4", "--disturbed", "100"]);
        let output = command.output().expect("the program starts");
        let out = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{fault}: {out}");
        assert!(out.contains(why) && !out.contains("b is"), "{fault}: {out}");
    }
}

/// Measures the example in Perl, with a fault if one is named.
fn spoken(fault: &str, more: &[&str]) -> (Option<i32>, String) {
    let program = concat!("exec:", env!("CARGO_MANIFEST_DIR"), "/tests/foreign/map.pl");
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvbench"));
    command.args(["memory", "-n", "3000", "--quick", "--no-sweep", "--subjects"]);
    command.arg(format!("hashmap,{program}")).args(more).env("KVBENCH_TEST_FAULT", fault);
    let output = command.output().expect("the program starts");
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn a_program_is_measured_by_lines() {
    if Command::new("perl").arg("-v").output().is_err() {
        return eprintln!("skipped: programs that are spoken to, for there is no perl");
    }
    let json = scratch("spoken.jsonl");
    let (code, out) = spoken("", &["--json", json.to_str().unwrap()]);
    assert!(code == Some(0) && out.contains("u64: 2 subjects agree"), "{out}");
    assert!(out.contains("map.pl, strings: left out: what is spoken by lines is numbers"), "{out}");
    // Its memory is that of its process, which has a scalar of Perl for each key; it was that of the harness, which has
    // nothing for a key. What it requested, and at most, is unknown.
    let records = records(&json);
    let is_program = |one: &&Value| one["subject"].as_str().is_some_and(|name| name.starts_with("exec:"));
    let figures = records.iter().filter(|one| one["record"] == "figures").find(is_program);
    let figures = &figures.unwrap()["figures"];
    if cfg!(target_os = "linux") {
        assert!(figures["resident_bytes_per_key"]["median"].as_f64() > Some(32.0), "{figures}");
    }
    for name in ["live", "peak_live", "peak_resident", "heap"] {
        assert!(figures[format!("{name}_bytes_per_key")].is_null(), "{name}: {figures}");
    }
    assert!(figures["resident_huge_percent"].is_null(), "{figures}");
    for (fault, why) in [
        ("hello", "unexpected line \"hello\", expected \"ordered\" or \"unordered\""),
        ("ready", "unexpected line \"steady\", expected \"ready\""),
        ("ends", "FAILED: it ended"),
        ("sum", "get_ns: the answers sum to"),
    ] {
        let (code, out) = spoken(fault, &[]);
        assert!(code == Some(1) && out.contains(why), "{fault}: {out}");
    }
    let output = kvbench(&["memory", "--quick", "--kinds", "u64", "--subjects", "exec:/nowhere/map"]);
    let out = text(&output.stdout);
    assert!(output.status.code() == Some(1) && out.contains("/nowhere/map cannot be started"), "{out}");
}

#[test]
fn a_program_is_not_simulated() {
    if super::counted::simulates() {
        let program = concat!("exec:", env!("CARGO_MANIFEST_DIR"), "/tests/foreign/map.pl");
        let few = ["memory", "-n", "300", "--quick", "--kinds", "u64", "--no-sweep", "--simulate"];
        let out = text(&kvbench(&[&few[..], &["--subjects", program]].concat()).stdout);
        assert!(out.contains("left out: a program is a process of its own, which is not simulated"), "{out}");
    }
}

/// A source with the names and the layout of folly's, so small that the tests can hold it. What `kvbench peer` does
/// with folly's own is the same; that needs a copy of folly.
fn small_folly() -> PathBuf {
    let tree = scratch("folly");
    let write = |name: &str, text: &str| {
        let path = tree.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "folly/container/F14Map.h",
        "#pragma once\n#include <folly/folly-config.h>\n#include <map>\n#include <string_view>\nnamespace folly {\n\
         using StringPiece = std::string_view;\nvoid linked();\n\
         template <class K, class V> struct F14ValueMap : std::map<K, V, std::less<>> {\n\
         void reserve(size_t) { linked(); }\n};\n\
         template <class K, class V> using F14FastMap = F14ValueMap<K, V>;\n}\n",
    );
    let linked = "#include <folly/container/F14Map.h>\nvoid folly::linked() {}\n";
    write("folly/container/detail/F14Table.cpp", linked);
    write("folly/lang/SafeAssert.cpp", "");
    write("folly/lang/ToAscii.cpp", "");
    tree
}

#[test]
fn a_source_without_a_package_is_built_and_measured() {
    if Command::new("c++").arg("--version").output().is_err() {
        eprintln!("skipped: kvbench peer, for there is no C++ compiler (Debian: g++)");
        return;
    }
    let (tree, library) = (small_folly(), scratch("libfolly.so"));
    let (source, file) = (format!("folly={}", tree.display()), library.to_str().unwrap());
    let output = kvbench(&["peer", &source, "--output", file]);
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}{errors}");
    let subjects = format!("{file}:f14-value,{file}:f14-fast");
    assert!(out.contains(&format!("--subjects {subjects},forrest,btreemap")), "{out}");
    let subjects = format!("{subjects},btreemap");
    let out = done(&["memory", "--quick", "-n", "2000", "--no-sweep", "--subjects", &subjects]);
    assert!(out.contains("u64: 3 subjects agree") && out.contains("strings: 3 subjects agree"), "{out}");

    // What the compiler says is shown, and what the source needs; the library stays as it was.
    let before = std::fs::read(&library).unwrap();
    std::fs::write(tree.join("folly/lang/ToAscii.cpp"), "#include <no_such_header.h>\n").unwrap();
    let output = kvbench(&["peer", &source, "--output", file]);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("no_such_header.h") && errors.contains("libfmt-dev"), "{errors}");
    assert!(std::fs::read(&library).unwrap() == before, "the library was changed");
}

#[test]
fn a_peer_without_its_source_is_an_error() {
    let empty = scratch("no-source");
    std::fs::create_dir_all(&empty).unwrap();
    let hot = format!("hot={}", empty.display());
    for (argument, code, why) in [
        ("hot", 2, "NAME=DIR is needed"),
        ("art=.", 2, "there is no peer \"art\", but folly, hot"),
        (hot.as_str(), 1, "HOTSingleThreaded.hpp is missing"),
    ] {
        let output = kvbench(&["peer", argument]);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{argument}: {errors}");
        assert!(errors.contains(why), "{argument}: {errors}");
    }
}
