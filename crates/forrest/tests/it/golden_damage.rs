//! Damaged copies of golden stores, and copies with other format versions: each causes exactly the recorded
//! error.
//!
//! `tests/golden/NAME.damaged.txt` has the changes to a copy of the store `NAME`, and their results:
//!
//! ```text
//! > flip FILE OFFSET        the lowest bit of a byte
//! > cut FILE LENGTH         the file ends there
//! > zeros FILE COUNT        this number of zeros follows its end
//! > remove FILE
//! > copy FILE OTHER         the first replaces the second
//! > forge FILE OFFSET HEX   other bytes, with correct checksums
//! > version FILE NUMBER     another format version, with correct checksums
//!   open: ok, or the error; then nothing follows, and no byte in the directory has changed
//!   read: ok, or the error of a full scan, or the number of pairs found, and the expected number
//!   verify: ok, or the error
//! ```
//!
//! Consecutive changes are made together. `FORREST_GOLDEN_BLESS=1` writes the results into the files.

use crate::golden::{Contents, Golden, all, contents, directory};
use crate::golden_make::names;
use forrest::Db;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64_with_seed as xxh3;

const HEADER: usize = 64;
const HEAD: usize = 16;
const PAGE: usize = 4096;
const FOOTER: usize = 128;

/// The seed of checksums of logs and manifests. Formats are fixed, so this test has its own copy.
fn frame_seed(number: u64, letter: u8, offset: usize) -> u64 {
    let place = number.rotate_left(32) ^ u64::from(letter).rotate_left(56) ^ offset as u64;
    place.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Recomputes the checksums of the header and the records of a log or manifest.
fn seal_records(file: &mut [u8], number: u64, letter: u8) {
    let sum = xxh3(&file[..56], frame_seed(number, letter, 0));
    file[56..HEADER].copy_from_slice(&sum.to_le_bytes());
    let mut at = HEADER;
    while let Some(length) = file.get(at + 8..at + 13) {
        let length = length.iter().rev().fold(0, |all, byte| all << 8 | usize::from(*byte));
        let Some(record) = file.get_mut(at..at + HEAD + length).filter(|_| length > 0) else { return };
        let sum = xxh3(&record[8..], frame_seed(number, letter, at));
        record[..8].copy_from_slice(&sum.to_le_bytes());
        at += HEAD + length;
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// Recomputes the checksum at the end of a piece of a table or REMIX.
fn seal_piece(piece: &mut [u8], number: u64, letter: u8, place: u64) {
    let (bytes, end) = piece.split_at_mut(piece.len() - 8);
    let seed = mix(mix(number.rotate_left(8) ^ u64::from(letter)) ^ place);
    end.copy_from_slice(&xxh3(bytes, seed).to_le_bytes());
}

/// Recomputes the checksums of the pages of a table or REMIX. The last page of a table is marked.
fn seal_pages(file: &mut [u8], number: u64, letter: u8) {
    let last = (file.len() / PAGE).saturating_sub(1);
    let field = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().expect("8 bytes"));
    let footer = file.len() - 8 - FOOTER;
    if letter == b'T' && field(footer + 8) as u32 == 2 {
        return seal_chunks(file, number, field(footer - 24), field(footer - 16) as usize);
    }
    for (at, page) in file.chunks_exact_mut(PAGE).enumerate() {
        let mark = if letter == b'T' && at == last { 1 << 63 } else { 0 };
        seal_piece(page, number, letter, at as u64 | mark);
    }
}

/// The same for a compressed table of `pages` pages, whose chunks take `bytes` bytes.
fn seal_chunks(file: &mut [u8], number: u64, pages: u64, bytes: usize) {
    let last = file.len() / PAGE - 1;
    seal_piece(&mut file[last * PAGE..], number, b'T', last as u64 | 1 << 63);
    let map = bytes.div_ceil(PAGE).min(last);
    let mut start = 0;
    for chunk in 0..pages.saturating_sub(1).div_ceil(4) {
        let (page, at) = (chunk as usize / 511, chunk as usize % 511);
        let at = (map + page) * PAGE + at * 8;
        // What is forged may be nowhere.
        let end =
            file.get(at..at + 8).map(|end| u64::from_le_bytes(end.try_into().expect("8 bytes")) as usize);
        let Some(end) = end.filter(|end| *end >= start + 8) else { break };
        let Some(piece) = file.get_mut(start..end) else { break };
        let pages = (pages - 1 - chunk * 4).min(4);
        if piece.len() == pages as usize * PAGE {
            for (page, place) in piece.chunks_exact_mut(PAGE).zip(chunk * 4..) {
                seal_piece(page, number, b'T', place);
            }
        } else {
            seal_piece(piece, number, b'T', chunk | 1 << 62);
        }
        start = end;
    }
    let map = file.get_mut(map * PAGE..last * PAGE).unwrap_or_default();
    for (page, place) in map.chunks_exact_mut(PAGE).zip(0..) {
        seal_piece(page, number, b'T', place | 1 << 61);
    }
}

fn seal(name: &str, file: &mut [u8]) {
    let (number, kind) = name.split_once('.').expect("a number and a kind");
    let number = number.parse().expect("a number");
    match kind {
        "log" => seal_records(file, number, b'l'),
        "manifest" => seal_records(file, number, b'm'),
        "table" => seal_pages(file, number, b'T'),
        _ => seal_pages(file, number, b'R'),
    }
}

/// Writes another format version to the place where this kind of file has it.
fn set_version(name: &str, file: &mut [u8], version: u32) {
    let (at, bytes) = match name.split_once('.').expect("a kind").1 {
        "table" => (file.len() - 8 - FOOTER + 8, 4),
        "remix" => (8, 2),
        _ => (8, 4),
    };
    file[at..at + bytes].copy_from_slice(&version.to_le_bytes()[..bytes]);
}

fn number(word: &str) -> usize {
    word.parse().unwrap_or_else(|_| panic!("{word} is no number"))
}

/// Makes a change to the files of a store.
fn change(path: &Path, line: &str) {
    let words: Vec<_> = line.split_whitespace().collect();
    let file = path.join(words[1]);
    let read = || fs::read(&file).unwrap_or_else(|error| panic!("{line}: {error}"));
    let write = |bytes: Vec<u8>| fs::write(&file, bytes).expect("a file that can be written");
    let mut bytes = read();
    match words[..] {
        ["flip", _, at] => bytes[number(at)] ^= 1,
        ["cut", _, length] => {
            assert!(number(length) < bytes.len(), "{line}: it has {} bytes", bytes.len());
            bytes.truncate(number(length));
        }
        ["zeros", _, count] => bytes.resize(bytes.len() + number(count), 0),
        ["remove", _] => return fs::remove_file(file).expect("a file that can be removed"),
        ["copy", _, to] => return fs::write(path.join(to), bytes).expect("a file that can be written"),
        ["forge", name, at, hex] => {
            for (at, digits) in (number(at)..).zip(hex.as_bytes().chunks(2)) {
                let digits = str::from_utf8(digits).expect("digits");
                bytes[at] = u8::from_str_radix(digits, 16).expect("hexadecimal digits");
            }
            seal(name, &mut bytes);
        }
        ["version", name, version] => {
            set_version(name, &mut bytes, number(version) as u32);
            seal(name, &mut bytes);
        }
        _ => panic!("{line}: no change"),
    }
    assert!(bytes != read(), "{line}: this changes nothing");
    write(bytes);
}

fn ok_or<E: Display>(result: Result<String, E>) -> String {
    result.unwrap_or_else(|error| error.to_string())
}

/// All files of a directory.
fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let bytes = |name: &String| fs::read(path.join(name)).expect("a file that can be read");
    names(path).into_iter().map(|name| (name.clone(), bytes(&name))).collect()
}

/// Makes changes to a copy of a store, and returns the results of opening, reading and verifying it.
fn outcome(golden: &Golden, expected: &Contents, changes: &[&str]) -> Vec<String> {
    let (_keep, path) = golden.copy();
    changes.iter().for_each(|line| change(&path, line));
    let before = files(&path);
    let db = match Db::open(path.to_str().expect("it is text")) {
        Ok(db) => db,
        Err(error) => {
            assert!(files(&path) == before, "{}, {changes:?}: the directory was changed", golden.name);
            return vec![format!("open: {error}")];
        }
    };
    let count = |contents: &Contents| contents.values().map(BTreeMap::len).sum::<usize>();
    let read = contents(&db).map(|found| match &found == expected {
        true => "ok".to_string(),
        false => format!("{} pairs of {}", count(&found), count(expected)),
    });
    vec![
        "open: ok".to_string(),
        format!("read: {}", ok_or(read)),
        format!("verify: {}", ok_or(db.verify().map(|()| "ok".to_string()))),
    ]
}

/// Checks that a file of another version is refused, if the store needs it.
fn check_version(what: &str, line: &str, outcome: &[String]) {
    if let ["version", file, version] = line.split_whitespace().collect::<Vec<_>>()[..] {
        let known = match file.rsplit_once('.') {
            Some((_, "manifest")) => "7 and older",
            Some((_, "log")) => "5 and older",
            Some((_, "table")) => "2 and older",
            _ => "1",
        };
        let refused = format!(
            "open: unsupported: {file} has format version {version}, and this build reads version {known};"
        );
        let is_refused = outcome.len() == 1 && outcome[0].starts_with(&refused);
        // Accepted only for a file that the store does not need.
        let is_left_over = what == "left-over" && outcome[0] == "open: ok";
        assert!(is_refused || is_left_over, "{what}, {line}: {outcome:?}");
    }
}

#[test]
fn damaged_golden_stores_give_the_errors_that_are_written_down() {
    let is_blessed = std::env::var_os("FORREST_GOLDEN_BLESS").is_some();
    let (mut wrong, mut versions) = (Vec::new(), 0);
    for golden in all() {
        let path = directory().join(format!("{}.damaged.txt", golden.name));
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let expected = contents(&golden.oracle()).expect("memory");
        let mut out = Vec::new();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            out.push(line.to_string());
            let Some(first) = line.strip_prefix("> ") else { continue };
            let mut changes = vec![first];
            while let Some(more) = lines.next_if(|line| line.starts_with("> ")) {
                out.push(more.to_string());
                changes.push(&more[2..]);
            }
            while lines.next_if(|line| line.starts_with("  ")).is_some() {}
            let outcome = outcome(&golden, &expected, &changes);
            changes.iter().for_each(|line| check_version(&golden.name, line, &outcome));
            versions += changes.iter().filter(|line| line.starts_with("version")).count();
            out.extend(outcome.into_iter().map(|line| format!("  {line}")));
        }
        let found = out.join("\n") + "\n";
        if is_blessed {
            fs::write(&path, found).expect("a file that can be written");
        } else if found != text {
            let mut pairs = text.lines().zip(found.lines()).enumerate();
            let differs = pairs.find(|(_, (expected, found))| expected != found);
            wrong.push(format!("{}: {differs:?}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(versions >= 20, "{versions} changes of versions");
}

/// Recomputing the checksums of a genuine file changes nothing. So forged files have correct checksums.
#[test]
fn genuine_files_are_sealed_already() {
    for golden in all() {
        for (name, bytes) in files(&golden.path()) {
            let mut sealed = bytes.clone();
            // Some files are incomplete.
            if sealed.len() >= HEADER {
                seal(&name, &mut sealed);
                assert!(sealed == bytes, "{}/{name}", golden.name);
            }
        }
    }
}
