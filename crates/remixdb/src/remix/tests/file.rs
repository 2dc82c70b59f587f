//! The file: its bytes, and what happens if they change.

use super::reads::check;
use super::*;
use crate::disk::{Kind, Name, Sealed};
use crate::page::{self, BYTES, PAYLOAD};
use crate::rate::Counted;
use forrest_engine::ErrorKind;
use std::sync::Arc;

const NAME: Name = Name { kind: Kind::Remix, number: 12 };

/// A disk whose only file is this.
fn with(bytes: Vec<u8>) -> Arc<Sealed> {
    Sealed::in_memory(Some((NAME, bytes)))
}

fn bytes_of(disk: &Sealed) -> Vec<u8> {
    disk.memory().bytes(NAME).lock().unwrap().clone()
}

fn tables(remix: &Remix) -> Vec<(u64, u32)> {
    remix.runs().iter().enumerate().map(|(run, &entries)| (1 << 40 | run as u64, entries)).collect()
}

fn written(remix: &Remix) -> Vec<u8> {
    let disk = Sealed::in_memory(None);
    let spent = Counted::default();
    let len = remix.write_at_rate(&disk, NAME, &tables(remix), &spent).unwrap();
    assert_eq!(spent.bytes(), len, "every byte counts towards the rate");
    assert_eq!(len, bytes_of(&disk).len() as u64);
    bytes_of(&disk)
}

/// Runs 0 and 1 of the example at the head of `format.rs`.
fn example() -> World {
    example_with_large().without_large()
}

/// The same with values in logs, of which that of 20 is hidden, and has 131 bytes.
fn example_with_large() -> World {
    let old = (1..=0x20u8).map(|key| (vec![key], false)).collect();
    World::new(vec![old, BTreeMap::from([(vec![0x20], true), (vec![0x21], false)])])
}

#[test]
fn the_example_of_the_format_is_what_is_written_and_read() {
    let hex = "46 4F 52 52 45 4D 49 58  01 00 01 02  02 00 00 00  22 00 00 00 00 00 00 00
        20 00 00 00 00 00 00 00  01 00 00 00 00 00 00 00
        07 00 00 00 00 00 00 00 20 00 00 00  09 00 00 00 00 00 00 00 02 00 00 00
        20  00 00 00 00  00 00 00 00 00 00 00 00  1F 00 00 00 00 00 00 00";
    let mut golden: Vec<u8> =
        hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    assert_eq!(golden.len(), 85);
    golden.extend([0; 31]);
    golden.extend([0x3F, 0x41, 0x20, 0x01]);
    golden.extend([0x3F; 29]);
    assert_eq!(golden.len(), 149);
    (1..=0x1F).for_each(|key| golden.extend([0, 0, 0, key]));
    golden.extend([0xFF; 4]);
    golden.extend([0, 0, 0, 0x20, 0, 0, 0, 0x20, 0, 0, 0, 0x21]);
    golden.extend([0xFF; 29 * 4]);
    assert_eq!(golden.len(), 405);
    // The top bytes of xxh3 of 01, 02, ... 1F; an unused place; 20 twice and 21.
    golden.extend([
        0xE1, 0xC9, 0x13, 0x73, 0x92, 0xD7, 0x4C, 0xDC, 0xDE, 0x38, 0x4A, 0x26, 0x8A, 0xEF, 0x49, 0xEA,
    ]);
    golden.extend([
        0xF3, 0x32, 0xDD, 0x32, 0x11, 0xF0, 0xD1, 0x83, 0x29, 0x66, 0xC3, 0x48, 0xB4, 0x31, 0x05, 0,
    ]);
    golden.extend([0xFC, 0xFC, 0x5F]);
    let mut with_large = golden.clone();
    with_large[10] = 3;
    with_large.splice(64..64, 131_u64.to_le_bytes());

    for (world, mut golden) in [(example(), golden), (example_with_large(), with_large)] {
        let end = golden.len();
        golden.resize(BYTES, 0);
        page::seal(&mut golden, NAME, 0);
        let remix = world.build(true);
        let disk = Sealed::in_memory(None);
        assert_eq!(remix.write(&disk, NAME, &[(7, 32), (9, 2)]).unwrap(), BYTES as u64);
        let bytes = bytes_of(&disk);
        assert_eq!(bytes[..end], golden[..end]);
        assert!(bytes[end..PAYLOAD].iter().all(|&byte| byte == 0));
        let read = Remix::read(&with(golden), NAME, &[(7, 32), (9, 2)]).unwrap();
        assert_eq!(read, remix);
        check(&world, &read, "the example");
    }
}

#[test]
fn what_is_written_is_read() {
    for seed in 3000..3060 {
        let world = World::random(seed);
        for tags in [false, true] {
            let remix = world.build(tags);
            let read = Remix::read(&with(written(&remix)), NAME, &tables(&remix)).unwrap();
            assert_eq!(read, remix, "seed {seed}");
        }
    }
}

#[test]
fn what_is_larger_than_a_write_is_written_and_read() {
    let old = (0..100_000u32).map(|number| (number.to_be_bytes().to_vec(), false)).collect();
    let world = World::new(vec![old, BTreeMap::new(), BTreeMap::from([(vec![7], true)])]);
    let remix = world.build(true);
    let bytes = written(&remix);
    assert!(bytes.len() > 64 * BYTES, "{} bytes", bytes.len());
    assert_eq!(Remix::read(&with(bytes), NAME, &tables(&remix)).unwrap(), remix);
}

#[test]
fn a_file_is_never_written_over() {
    let remix = example().build(true);
    let disk = with(vec![1, 2, 3]);
    assert_eq!(remix.write(&disk, NAME, &tables(&remix)).unwrap_err().kind(), ErrorKind::Io);
}

/// A REMIX of several pages.
fn large() -> Remix {
    let mut random = Random(5);
    let contents = (0..3).map(|_| (0..1500).map(|_| (key(&mut random, 2, 2000), false)).collect());
    World::new(contents.collect()).build(true)
}

#[test]
fn every_byte_that_changes_is_reported() {
    let remix = large();
    let bytes = written(&remix);
    assert!(bytes.len() >= 3 * BYTES);
    let disk = with(bytes.clone());
    let file = disk.memory().bytes(NAME);
    for (at, &byte) in bytes.iter().enumerate() {
        file.lock().unwrap()[at] ^= 1 << (at % 8);
        let error = Remix::read(&disk, NAME, &tables(&remix)).expect_err("a changed byte");
        assert_eq!(error.kind(), ErrorKind::Corrupt, "byte {at}: {error}");
        file.lock().unwrap()[at] = byte;
    }
    assert_eq!(Remix::read(&disk, NAME, &tables(&remix)).unwrap(), remix);
}

#[test]
fn every_length_but_the_right_one_is_reported() {
    let remix = large();
    let bytes = written(&remix);
    let lengths =
        (0..bytes.len()).step_by(97).chain([BYTES - 1, BYTES, bytes.len() - BYTES, bytes.len() - 1]);
    for len in lengths {
        let error = Remix::read(&with(bytes[..len].to_vec()), NAME, &tables(&remix)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{len} bytes: {error}");
    }
    for more in [1, BYTES] {
        let longer = [&bytes[..], &vec![0; more]].concat();
        let error = Remix::read(&with(longer), NAME, &tables(&remix)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{more} bytes more: {error}");
    }
    // Pages of the file itself, but not in their places.
    let swapped =
        [&bytes[..BYTES], &bytes[2 * BYTES..3 * BYTES], &bytes[BYTES..2 * BYTES], &bytes[3 * BYTES..]]
            .concat();
    assert!(Remix::read(&with(swapped), NAME, &tables(&remix)).is_err());
}

/// With valid checksums any content can be forged, but it causes no panic and no endless walk.
#[test]
fn a_change_under_a_good_checksum_is_reported_or_harmless() {
    changed_under_good_checksums(&example(), 64);
    // Before the prefix are the bytes of hidden values.
    changed_under_good_checksums(&example_with_large(), 72);
}

fn changed_under_good_checksums(world: &World, prefix: usize) {
    let remix = world.build(true);
    let tables = [(7, 32), (9, 2)];
    let disk = Sealed::in_memory(None);
    remix.write(&disk, NAME, &tables).unwrap();
    let bytes = bytes_of(&disk);
    let file = disk.memory().bytes(NAME);
    let mut harmless = Vec::new();
    for at in 0..PAYLOAD {
        for change in [1, 2, 0x20, 0x40, 0x80, 0xFF] {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            page::seal(&mut changed, NAME, 0);
            *file.lock().unwrap() = changed;
            let Ok(read) = Remix::read(&disk, NAME, &tables) else { continue };
            harmless.push(at);
            // A wrong tag or anchor can be detected only from the keys.
            let tags = prefix + 341;
            if !(tags + 35..tags + 64).contains(&at) && !(tags + 31..tags + 32).contains(&at) {
                assert!(read.verify(&mut world.older(2)).is_err(), "byte {at}");
            }
            let mut cursor = world.cursor(&read, Show::Live);
            let mut count = u64::from(cursor.first().unwrap());
            while cursor.next().unwrap() {
                count += 1;
            }
            assert_eq!(count, read.live(), "byte {at}");
            for probe in world.probes() {
                cursor.seek(&probe).unwrap();
                get(&read, &mut world.older(2), &probe).unwrap();
            }
        }
    }
    harmless.dedup();
    let (selectors, heads) = (prefix + 53, prefix + 85);
    let free = [64..prefix + 1, selectors..selectors + 3, heads..heads + 320];
    let free = |at: &usize| free.iter().any(|range| range.contains(at));
    assert!(harmless.iter().all(free), "{harmless:?}");
}

#[test]
fn a_remix_of_other_tables_is_refused() {
    let remix = example().build(true);
    let right = tables(&remix);
    let disk = with(written(&remix));
    for newer in [&[][..], &[(3, 1)]] {
        assert_eq!(Remix::read(&disk, NAME, &[&right[..], newer].concat()).unwrap(), remix);
    }
    let mut wrong = vec![vec![], vec![right[0]], vec![right[1], right[0]]];
    wrong.push(vec![(right[0].0, 31), right[1]]);
    wrong.push(vec![right[0], (right[1].0 + 1, right[1].1)]);
    for tables in wrong {
        assert_eq!(Remix::read(&disk, NAME, &tables).unwrap_err().kind(), ErrorKind::Corrupt, "{tables:?}");
    }
    let other = Name { number: 13, ..NAME };
    assert_eq!(Remix::read(&disk, other, &right).unwrap_err().kind(), ErrorKind::Corrupt);
}

/// The REMIX of a file, with its segments left there. The cache has a few pages only.
fn opened(bytes: Vec<u8>, tables: &[(u64, u32)], pages: usize) -> Result<Remix> {
    let (size, numa) = (forrest_engine::Pages::Plain, forrest_engine::Numa::Local);
    let cache = Arc::new(crate::cache::Cache::new(pages * BYTES, size, numa));
    Remix::open(&with(bytes), NAME, tables, &cache)
}

#[test]
fn a_remix_in_its_file_answers_as_one_in_memory() {
    for seed in 0..60 {
        let world = World::random(seed);
        for tags in [false, true] {
            let what = format!("seed {seed}, tags {tags}, in the file");
            let remix = world.build(tags);
            let file = opened(written(&remix), &tables(&remix), 1 + seed as usize % 4).unwrap();
            check(&world, &file, &what);
            assert_eq!(written(&file), written(&remix), "{what}");
            // The anchors are all that it keeps of the keys.
            assert!(file.bytes() < remix.bytes() / 4 + 1024, "{what}: {} bytes", file.bytes());
        }
    }
}

#[test]
fn what_is_rebuilt_from_a_file_is_what_is_rebuilt_from_memory() {
    for seed in 3000..3060 {
        let world = World::random(seed);
        let first = Random(seed).index(world.runs.len() + 1);
        for (before, after) in [(true, true), (true, false), (false, true)] {
            let remix = build(&mut world.older(first), before).unwrap();
            let file = opened(written(&remix), &tables(&remix), 2).unwrap();
            let runs = &mut world.older(world.runs.len());
            let rebuilt = rebuild(&file, runs, after).unwrap();
            assert_eq!(rebuilt, rebuild(&remix, runs, after).unwrap(), "seed {seed}");
        }
    }
}

/// What no checksum shows: a file that was never as it should be.
#[test]
fn a_walk_over_a_wrong_file_stays_in_its_runs() {
    let world = example();
    let remix = world.build(true);
    let (bytes, tables) = (written(&remix), tables(&remix));
    for at in 0..PAYLOAD.min(500) {
        for change in [1, 2, 0x20, 0x40, 0x80, 0xFF] {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            page::seal(&mut changed, NAME, 0);
            let Ok(file) = opened(changed, &tables, 1) else { continue };
            let _ = file.verify(&mut world.older(2));
            let mut cursor = world.cursor(&file, Show::Live);
            let mut is = cursor.first();
            while let Ok(true) = is {
                cursor.key_into(&mut Vec::new()).unwrap();
                is = cursor.next();
            }
            let mut is = cursor.last();
            while let Ok(true) = is {
                cursor.key_into(&mut Vec::new()).unwrap();
                is = cursor.prev();
            }
            for probe in world.probes() {
                let _ = cursor.seek(&probe).and_then(|_| cursor.next());
                let _ = cursor.seek_for_prev(&probe);
                let _ = get(&file, &mut world.older(2), &probe);
            }
        }
    }
}

#[test]
fn a_cursor_that_met_an_error_goes_on_from_there() {
    let world = numbered();
    let remix = world.build(true);
    let tables = tables(&remix);
    let disk = with(written(&remix));
    let (size, numa) = (forrest_engine::Pages::Plain, forrest_engine::Numa::Local);
    let cache = Arc::new(crate::cache::Cache::new(0, size, numa));
    let file = Remix::open(&disk, NAME, &tables, &cache).unwrap();
    let (whole, expected) = (bytes_of(&disk), world.visible(Show::Live));
    let damaged = vec![0; whole.len()];
    let set = |bytes: &Vec<u8>| *disk.memory().bytes(NAME).lock().unwrap() = bytes.clone();
    let mut cursor = world.cursor(&file, Show::Live);
    assert!(cursor.first().unwrap());
    let mut errors = 0;
    for (_, entry) in &expected[1..] {
        set(&damaged);
        let is = cursor.next();
        set(&whole);
        errors += usize::from(is.is_err());
        assert!(is.or_else(|_| cursor.next()).unwrap());
        assert_eq!(cursor.entry(), Some(*entry));
    }
    for (_, entry) in expected.iter().rev().skip(1) {
        set(&damaged);
        let is = cursor.prev();
        set(&whole);
        errors += usize::from(is.is_err());
        assert!(is.or_else(|_| cursor.prev()).unwrap());
        assert_eq!(cursor.entry(), Some(*entry));
    }
    assert!(errors >= 2 * (file.segments() - 1), "{errors} errors");
}

/// Two runs that overlap, with tombstones at both ends of segments.
fn numbered() -> World {
    let run = |from: u32, step| {
        let keys = (from..400).step_by(step);
        keys.map(|key| (key.to_be_bytes().to_vec(), key % 32 < 3 || key % 37 == 0)).collect()
    };
    World::new(vec![run(0, 1), run(5, 3)])
}
