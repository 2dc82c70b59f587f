//! Containers, whole and damaged.

use super::*;
use crate::files::testing::{pair, read_all, scratch};
use proptest::prelude::*;

fn write(path: &Path, pairs: &[Pair], part_bytes: u32) {
    let mut writer = Box::new(Writer::with_parts(path, part_bytes).unwrap());
    pairs.iter().for_each(|pair| writer.put(pair).unwrap());
    writer.finish().unwrap();
}

fn read(path: &Path) -> io::Result<Vec<Pair>> {
    read_all(&mut Reader::open(path)?)
}

/// Several parts, one of them of several times the fixed size.
fn small() -> Vec<Pair> {
    let mut pairs = vec![pair("", Some("")), pair("k", Some("v")), pair("ab", Some(&"long".repeat(30)))];
    pairs.extend((0..9).map(|n| pair(&format!("key{n}"), Some(&format!("value {n}")))));
    pairs
}

#[test]
fn the_example_of_the_head_is_what_is_written() {
    let (_directory, path) = scratch("x.kvb");
    write(&path, &[pair("key", Some("v"))], 64);
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.len(), 64 + 24 + 4 + 4 + 3 + 1);
    assert_eq!(bytes[..16], *b"kvbench\0\x01\0\0\0\x01\0\0\0");
    assert_eq!(bytes[16..40], *b"\x01\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0");
    assert_eq!(bytes[40..56], *b"\x64\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0");
    assert_eq!(bytes[72..88], *b"\x24\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0");
    assert_eq!(bytes[88..], *b"\x03\0\0\0\x01\0\0\0keyv");
}

#[test]
fn pairs_come_back_in_order() {
    let (_directory, path) = scratch("x.kvb");
    let keys = ["a", "", "b", "a"].map(|key| pair(key, None));
    for pairs in [small(), keys.to_vec(), Vec::new()] {
        for part_bytes in [25, 64, 100, PART_BYTES] {
            write(&path, &pairs, part_bytes);
            assert_eq!(read(&path).unwrap(), pairs);
            let reader = Reader::open(&path).unwrap();
            assert_eq!(reader.claimed(), Some(pairs.len() as u64));
        }
    }
}

#[test]
fn every_flipped_byte_is_found() {
    let (_directory, path) = scratch("x.kvb");
    write(&path, &small(), 64);
    let right = std::fs::read(&path).unwrap();
    assert!(right.len() > 64 + 5 * 64, "several parts");
    for at in 0..right.len() {
        for flip in [1 << (at % 8), 0xff] {
            let mut wrong = right.clone();
            wrong[at] ^= flip;
            std::fs::write(&path, &wrong).unwrap();
            let error = read(&path).expect_err(&format!("byte {at} with {flip:x}")).to_string();
            let place = error.strip_prefix(&format!("{}: byte ", path.display()));
            let place = place.and_then(|rest| rest.split(':').next()).and_then(|at| at.parse::<usize>().ok());
            assert!(place.is_some_and(|place| place <= right.len()), "byte {at}: {error}");
        }
    }
}

#[test]
fn every_cut_and_every_addition_is_found() {
    let (_directory, path) = scratch("x.kvb");
    write(&path, &small(), 64);
    let right = std::fs::read(&path).unwrap();
    for len in 0..right.len() {
        std::fs::write(&path, &right[..len]).unwrap();
        let error = read(&path).expect_err(&format!("cut to {len}")).to_string();
        assert!(error.contains(": byte ") && error.contains("x.kvb"), "{error}");
    }
    std::fs::write(&path, [&right[..], &[0]].concat()).unwrap();
    assert!(read(&path).is_err());
    // Two parts of one length, exchanged.
    let part = |at: usize| 64 + at * 64..64 + (at + 1) * 64;
    let lengths: Vec<_> = (0..(right.len() - 64) / 64).map(|at| right[part(at)][8]).collect();
    let (first, second) = (lengths.len() - 2, lengths.len() - 1);
    assert_eq!((lengths[first], lengths[second]), (64, 64), "{lengths:?}");
    let mut wrong = right.clone();
    wrong[part(first)].copy_from_slice(&right[part(second)]);
    wrong[part(second)].copy_from_slice(&right[part(first)]);
    std::fs::write(&path, &wrong).unwrap();
    assert!(read(&path).unwrap_err().to_string().contains("checksum"));
}

/// Wrong lengths with valid checksums: they must not be trusted.
#[test]
fn lies_with_right_checksums_are_errors() {
    let (_directory, path) = scratch("x.kvb");
    write(&path, &[pair("key", Some("v"))], 64);
    let right = std::fs::read(&path).unwrap();
    // The key's length, the value's, the part's number of pairs, the part's length.
    for (at, what) in [(88, "a key"), (92, "a value"), (80, "pairs"), (72, "the part")] {
        for lie in [2, 4, 36, 64, 255, u32::MAX] {
            let mut wrong = right.clone();
            if wrong[at..at + 4] == lie.to_le_bytes() {
                continue;
            }
            wrong[at..at + 4].copy_from_slice(&lie.to_le_bytes());
            let checksum = xxh3_64_with_seed(&wrong[72..], 64);
            wrong[64..72].copy_from_slice(&checksum.to_le_bytes());
            std::fs::write(&path, &wrong).unwrap();
            let error = read(&path).expect_err(&format!("{what} of {lie}"));
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
        }
    }
    for (at, lie) in [(8, 2), (12, 2), (12, 0), (16, 2), (24, 9), (32, 0), (48, 24), (52, 1)] {
        let mut wrong = right.clone();
        wrong[at] = lie;
        let checksum = xxh3_64(&wrong[..56]);
        wrong[56..64].copy_from_slice(&checksum.to_le_bytes());
        std::fs::write(&path, &wrong).unwrap();
        let error = read(&path).expect_err(&format!("byte {at} of the header is {lie}"));
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_written_is_read(
        pairs in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..300), prop::collection::vec(any::<u8>(), 0..300)), 0..40),
        part_bytes in 25u32..2000,
        valued: bool,
    ) {
        let (_directory, path) = scratch("x.kvb");
        let pairs: Vec<_> = pairs
            .into_iter()
            .map(|(key, value)| Pair { key, value: if valued { value } else { Vec::new() }, valued })
            .collect();
        write(&path, &pairs, part_bytes);
        prop_assert_eq!(read(&path).unwrap(), pairs);
    }

    #[test]
    fn noise_is_no_container_and_no_panic(noise in prop::collection::vec(any::<u8>(), 0..400)) {
        let (_directory, path) = scratch("x.kvb");
        std::fs::write(&path, &noise).unwrap();
        prop_assert!(read(&path).is_err());
    }
}
