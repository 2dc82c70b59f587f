//! The dumps of other stores, made and read by their own programs: RocksDB's `ldb` and LMDB's `mdb_dump` and
//! `mdb_load`. (`formats.rs` and `scripts/foreign.txt` have what needs none of them.)

use crate::harness::{FORREST, Place};
use std::collections::BTreeMap;
use std::process::Command;

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

/// True if these programs are there; else says why a test is skipped.
fn are_there(programs: &[&str], package: &str) -> bool {
    let missing = programs.iter().find(|program| Command::new(program).arg("--help").output().is_err());
    if let Some(program) = missing {
        println!("skipped: there is no {program}; apt-get install {package}");
    }
    missing.is_none()
}

/// Pairs with all bytes, as keys that begin each other, and values from none to more than a page of LMDB.
fn pairs(seed: u8) -> Pairs {
    let mut pairs = Pairs::new();
    for byte in 0..=u8::MAX {
        let value = (0..usize::from(byte) * 23).map(|at| (at as u8).wrapping_mul(31) ^ seed).collect();
        pairs.insert(vec![byte], value);
        pairs.insert(
            vec![b'a', byte, b'b', b'\\', seed],
            format!("value {byte}\\\n\t of {seed}").into_bytes(),
        );
    }
    pairs.insert(vec![b'k'; 511], b"the longest key of LMDB".to_vec());
    pairs
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The pairs in the command's own hexadecimal.
fn as_hex(pairs: &Pairs) -> String {
    pairs.iter().map(|(key, value)| format!("{}\t{}\n", hex(key), hex(value))).collect()
}

#[test]
fn ldb_reads_what_is_dumped_and_what_it_dumps_is_read() {
    if !are_there(&["ldb"], "rocksdb-tools") {
        return;
    }
    let place = Place::new();
    let wanted = as_hex(&pairs(7));
    place.write("in.hex", &wanted);
    for home in ["memory:", "store"] {
        let options = format!("{FORREST} --db {home} -q -f ldb");
        place.shell(&format!("{options} --load in.hex dump > out.ldb")).ok();
        let ran = place.shell("rm -rf rocks; ldb load --hex --db=rocks --create_if_missing < out.ldb");
        assert_eq!((ran.code, ran.stderr.contains("bad lines")), (Some(0), false), "{}", ran.stderr);
        // Byte for byte the same, the count at the end as well.
        place.shell("ldb dump --hex --db=rocks > rocks.ldb && cmp out.ldb rocks.ldb").ok();
        place.shell(&format!("rm -rf store; {options} load rocks.ldb --dump back.hex")).ok();
        assert_eq!(std::fs::read_to_string(place.path().join("back.hex")).unwrap(), wanted, "{home}");
        place.shell("rm -rf store").ok();
    }
}

#[test]
fn mdb_load_reads_what_is_dumped_and_what_mdb_dump_prints_is_read() {
    if !are_there(&["mdb_dump", "mdb_load"], "lmdb-utils") {
        return;
    }
    let place = Place::new();
    for home in ["memory:", "store"] {
        for (format, print) in [("mdb", ""), ("mdb", "-p"), ("mdb-print", ""), ("mdb-print", "-p")] {
            let mut pairs = pairs(7);
            if print == "-p" {
                // With -p, LMDB up to 0.9.24 does not escape backslashes, so its output is ambiguous.
                let without = |bytes: Vec<u8>| bytes.into_iter().filter(|&b| b != b'\\').collect();
                pairs = pairs.into_iter().map(|(key, value)| (without(key), without(value))).collect();
                // The key that was only a backslash is empty now.
                pairs.remove(&b""[..]);
            }
            let wanted = as_hex(&pairs);
            place.write("in.hex", &wanted);
            let options = format!("{FORREST} --db {home} -q -f {format}");
            place.shell(&format!("{options} --load in.hex dump > out.mdb")).ok();
            place.shell("rm -rf env && mkdir env && mdb_load env < out.mdb").ok();
            place.shell(&format!("rm -rf store; mdb_dump {print} env > env.mdb")).ok();
            place.shell(&format!("{options} load env.mdb --dump back.hex")).ok();
            let back = std::fs::read_to_string(place.path().join("back.hex")).unwrap();
            assert_eq!(back, wanted, "{home} {format} {print}");
            place.shell("rm -rf store").ok();
        }
    }
}

#[test]
fn keyspaces_are_the_databases_of_lmdb() {
    if !are_there(&["mdb_dump", "mdb_load"], "lmdb-utils") {
        return;
    }
    let place = Place::new();
    let wanted = format!("#keyspace default\n{}#keyspace trees\n{}", as_hex(&pairs(1)), as_hex(&pairs(2)));
    place.write("in.hex", &wanted);
    for format in ["mdb", "mdb-print"] {
        place.shell(&format!("{FORREST} -q -f {format} --load in.hex dump > out.mdb")).ok();
        place.shell("rm -rf env && mkdir env && mdb_load env < out.mdb").ok();
        assert_eq!(place.shell("mdb_dump -l env").ok(), "default\ntrees\n");
        place.shell(&format!("mdb_dump -a env | {FORREST} -q -f {format} load - --dump back.hex")).ok();
        assert_eq!(std::fs::read_to_string(place.path().join("back.hex")).unwrap(), wanted, "{format}");
    }
}

#[test]
fn lmdb_has_room_for_what_is_dumped() {
    if !are_there(&["mdb_dump", "mdb_load"], "lmdb-utils") {
        return;
    }
    let place = Place::new();
    // Values of a bit more than half a page, which take a whole one, and far more of them than LMDB has room for by
    // itself.
    let value = "v".repeat(2_100);
    let lines: String = (0..20_000).map(|i| format!("key {i:06}\t{value}\n")).collect();
    place.write("in.txt", lines);
    place
        .shell(&format!(
            "{FORREST} -q -f mdb --load in.txt dump > out.mdb && mkdir env && mdb_load env < out.mdb"
        ))
        .ok();
    let ran = place.shell(&format!("mdb_dump env | {FORREST} -q -f mdb load - -- count"));
    assert_eq!(ran.ok(), "20000\n");
}
