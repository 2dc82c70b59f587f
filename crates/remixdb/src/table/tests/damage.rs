//! Damaged tables: reported, or harmless, and never a wrong value, a panic or an allocation that the file
//! does not justify.

use super::*;
use crate::table::pack;
use crate::wrapped::{self, Place, Pointer, Wrapped};

/// Values, several blocks with every column, an index and bounds, on a few pages.
fn some_map() -> Map {
    let mut random = Random(2);
    let keys = (0..300_usize).map(|i| {
        let len = random.index(20);
        let value = (i % 7 > 0).then(|| random.bytes(i % 50));
        (random.bytes(len + 2), value)
    });
    keys.collect()
}

fn opened(bytes: Vec<u8>) -> Result<Table> {
    open(&Sealed::in_memory(Some((NAME, bytes))), 1 << 20)
}

/// Reads are right, or one of them fails.
fn read_all(table: &Table, map: &Map) -> Result<()> {
    let mut cursor = TableCursor::new(table);
    for (ordinal, (key, value)) in (0..).zip(map).step_by(13) {
        let mut found = Vec::new();
        cursor.key_into(ordinal, &mut found)?;
        assert_eq!(&found, key);
        assert_eq!(cursor.find(key)?, Some(ordinal));
        assert_eq!(cursor.kind(ordinal)? == Kind::Value, value.is_some());
        assert_eq!(cursor.value(ordinal)?, value.as_deref().unwrap_or_default());
    }
    Ok(())
}

/// Packed tables with chunks of both kinds, the last one with fewer pages.
fn packed_files() -> Vec<Vec<u8>> {
    let map = packed::mixed_map(MIXED);
    packed::methods().map(|method| packed_file_of(&map, true, method)).collect()
}

/// Entries of these.
const MIXED: u32 = 200;

#[test]
fn every_flipped_bit_is_reported() {
    let small = Map::from([(b"a".to_vec(), Some(b"1".to_vec())), (b"b".to_vec(), None)]);
    let files = [file_of(&small, false), file_of(&some_map(), false), file_of(&some_map(), true)];
    for (file, bits) in files.into_iter().chain(packed_files()).zip([8, 1, 1, 1, 1]) {
        for at in 0..file.len() {
            for bit in 0..bits {
                let mut bytes = file.clone();
                bytes[at] ^= 1 << ((at + bit) % 8);
                let Err(error) = opened(bytes).and_then(|table| table.verify()) else {
                    panic!("a flip at {at} went unseen");
                };
                assert_eq!(error.kind(), ErrorKind::Corrupt);
                assert!(error.to_string().contains("00000007.table at offset "), "{error}");
            }
        }
    }
}

#[test]
fn a_flipped_bit_never_changes_an_answer() {
    let (map, mixed) = (some_map(), packed::mixed_map(MIXED));
    let files = [(file_of(&map, false), &map), (file_of(&map, true), &map)];
    for (file, map) in files.into_iter().chain(packed_files().into_iter().map(|file| (file, &mixed))) {
        let mut reported = 0;
        for at in (0..file.len()).step_by(5) {
            let mut bytes = file.clone();
            bytes[at] ^= 1 << (at % 8);
            reported += u32::from(opened(bytes).and_then(|table| read_all(&table, map)).is_err());
        }
        assert!(reported > 0);
    }
}

#[test]
fn every_truncation_is_reported() {
    for file in [file_of(&some_map(), true)].into_iter().chain(packed_files()) {
        refuse_truncations(&file);
    }
}

fn refuse_truncations(file: &[u8]) {
    assert!(file.len() > 2 * 4096, "several pages");
    for len in 0..file.len() {
        assert!(opened(file[..len].to_vec()).is_err(), "cut off at {len}");
    }
    for more in [1, 4096] {
        assert!(opened([file, &vec![0; more]].concat()).is_err());
    }
    assert!(opened([file, file].concat()).is_err(), "the end repeated");
}

/// A value with the bytes of a footer is not taken for one when the file is cut off after it.
#[test]
fn a_forged_footer_is_no_footer() {
    let forged = file_of(&Map::from([(b"forged".to_vec(), None)]), false)[..page::PAYLOAD].to_vec();
    let file = file_of(&Map::from([(b"k".to_vec(), Some(forged))]), false);
    assert!(opened(file.clone()).unwrap().verify().is_ok());
    assert!(opened(file[..4096].to_vec()).is_err());
}

#[test]
fn pages_in_the_wrong_place_are_reported() {
    for file in [file_of(&some_map(), true)].into_iter().chain(packed_files()) {
        refuse_moved_pages(&file);
    }
}

fn refuse_moved_pages(file: &[u8]) {
    let pages = file.len() / 4096;
    for (one, two) in (0..pages).flat_map(|one| (0..pages).map(move |two| (one, two))) {
        let (one, two) = (one * 4096, two * 4096);
        if one == two {
            continue;
        }
        let mut copied = file.to_vec();
        copied.copy_within(one..one + 4096, two);
        let mut swapped = copied.clone();
        swapped[one..one + 4096].copy_from_slice(&file[two..two + 4096]);
        for bytes in [copied, swapped] {
            assert!(opened(bytes).and_then(|table| table.verify()).is_err(), "{one} {two}");
        }
    }
    let mut zeroed = file.to_vec();
    zeroed[..4096].fill(0);
    assert!(opened(zeroed).unwrap().verify().is_err());
}

#[test]
fn a_table_under_another_name_is_reported() {
    let disk = Sealed::in_memory(Some((Name::table(8), file_of(&some_map(), false))));
    let cache = Arc::new(Cache::new(1 << 20, Default::default(), Default::default()));
    assert_eq!(Table::open(disk.clone(), Name::table(8), &cache).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(Table::open(disk, NAME, &cache).unwrap_err().kind(), ErrorKind::Io, "there is none");
}

/// Seals a page again, so that only its structure shows the change.
fn resealed(mut file: Vec<u8>, page: usize) -> Vec<u8> {
    let pages = file.len() / 4096;
    let number = page as u64 | if page + 1 == pages { page::LAST } else { 0 };
    page::seal(&mut file[page * 4096..(page + 1) * 4096], NAME, number);
    file
}

#[test]
fn footers_that_lie_are_refused() {
    for tags in [false, true] {
        refuse_lies(&file_of(&some_map(), tags));
    }
}

fn refuse_lies(file: &Vec<u8>) {
    let (last, at) = (file.len() / 4096 - 1, file.len() - 8 - 128);
    let fields = [8, 12, 16, 20, 24, 32, 40, 48, 56, 64, 72, 80, 88, 92, 112, 116, 120];
    for field in fields {
        for lie in [u64::MAX, u64::from(u32::MAX), 1 << 40, 1 << 63, 12_345_678, 8, 1, 0] {
            let mut bytes = file.clone();
            let width = if matches!(field, 8 | 12 | 16 | 20 | 88 | 92 | 112 | 116) { 4 } else { 8 };
            bytes[at + field..at + field + width].copy_from_slice(&lie.to_le_bytes()[..width]);
            if bytes == *file {
                continue;
            }
            let told = opened(resealed(bytes, last)).and_then(|table| table.verify());
            assert!(told.is_err(), "field {field}: {lie}");
        }
    }
}

#[test]
fn what_a_later_version_wrote_is_refused_in_words() {
    let one = Map::from([(b"a".to_vec(), None), (b"b".to_vec(), None)]);
    let file = file_of(&one, false);
    // The block is at 0: its flags at 21, its kinds after its head.
    for (at, byte, words) in [(21, 3, "sequence numbers"), (21, 5, "newer version"), (24, 2, "newer version")]
    {
        let mut bytes = file.clone();
        bytes[at] = byte;
        let table = opened(resealed(bytes, 0)).unwrap();
        for error in [table.verify().unwrap_err(), TableCursor::new(&table).find(b"a").unwrap_err()] {
            assert!(error.to_string().contains(words), "{error}");
        }
    }
    let mut bytes = file.clone();
    bytes[4096 - 8 - 128 + 8] = 3;
    let error = opened(resealed(bytes, 0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(
        error.to_string().contains("format version 3, and this build reads version 2 and older"),
        "{error}"
    );
}

/// What is before the footer of a packed table, each field with lies.
#[test]
fn packings_that_lie_are_refused() {
    for file in packed_files() {
        let (last, at) = (file.len() / 4096 - 1, file.len() - 8 - 160);
        for field in [0, 4, 8, 16, 24] {
            let width = if field < 8 { 4 } else { 8 };
            let mut stored = [0; 8];
            stored[..width].copy_from_slice(&file[at + field..at + field + width]);
            let stored = u64::from_le_bytes(stored);
            let near = [stored + 1, stored.wrapping_sub(1), stored + 4, stored + 4096, stored * 2];
            for lie in
                near.into_iter().chain([u64::MAX, u64::from(u32::MAX), 1 << 40, 1 << 63, 12_345_678, 8, 1, 0])
            {
                let mut bytes = file.clone();
                bytes[at + field..at + field + width].copy_from_slice(&lie.to_le_bytes()[..width]);
                if bytes == file {
                    continue;
                }
                let refused = opened(resealed(bytes, last)).and_then(|table| table.verify());
                assert!(refused.is_err(), "field {field}: {lie}");
            }
        }
    }
}

/// A packed table with valid checksums and random content: as above. The chunks have it too.
#[test]
fn packed_nonsense_is_survived() {
    let map = packed::mixed_map(MIXED);
    let mut random = Random(10);
    for file in packed_files() {
        let mut found = 0;
        let tries = forrest_testing::sized(600, 3_000);
        for _ in 0..tries {
            let mut bytes = file.clone();
            for _ in 0..1 + random.index(3) {
                // The map and the footer take two pages.
                let at = match random.index(4) {
                    0 => bytes.len() - 2 * 4096 + random.index(60),
                    1 => bytes.len() - 8 - 160 + random.index(160),
                    _ => random.index(bytes.len()),
                };
                bytes[at] = [0, 1, 0x7F, 0xFF, random.next() as u8][random.index(5)];
            }
            pack::seal_all(&mut bytes, NAME);
            let Ok(table) = opened(bytes) else { continue };
            found += u32::from(table.verify().is_err());
            read_some(&table, &map);
        }
        assert!(found > tries / 20, "{found} of {tries}");
    }
}

/// Reads without looking at what comes.
fn read_some(table: &Table, map: &Map) {
    let (mut cursor, mut out) = (TableCursor::new(table), Vec::new());
    for ordinal in (0..table.entries().min(200)).step_by(9) {
        let _ = cursor.key_into(ordinal, &mut out);
        let _ = cursor.value_into(ordinal, &mut out);
        out.clear();
    }
    for (key, _) in map.iter().step_by(31) {
        let _ = cursor.find(key);
    }
}

/// Files with valid checksums and random content: errors or wrong values, but no panic, and no endless loop.
#[test]
fn nonsense_is_survived() {
    let map = some_map();
    let file = file_of(&map, true);
    let mut random = Random(9);
    let mut found = 0;
    let tries = forrest_testing::sized(1_500, 6_000);
    for _ in 0..tries {
        let mut bytes = file.clone();
        let page = random.index(file.len() / 4096);
        for _ in 0..1 + random.index(3) {
            let byte = [0, 1, 0x7F, 0xFF, random.next() as u8][random.index(5)];
            // Sections that a random place would rarely hit are hit on purpose.
            let at = match random.index(3) {
                0 => page * 4096 + random.index(page::PAYLOAD),
                1 => page * 4096 + page::PAYLOAD - 1 - random.index(128),
                _ => page * 4096 + random.index(page::PAYLOAD / 8) * 8,
            };
            bytes[at] = byte;
        }
        let Ok(table) = opened(resealed(bytes, page)) else { continue };
        found += u32::from(table.verify().is_err());
        let mut cursor = TableCursor::new(&table);
        let mut out = Vec::new();
        for ordinal in (0..table.entries().min(200)).step_by(9) {
            let _ = cursor.key_into(ordinal, &mut out);
            let _ = cursor.value_into(ordinal, &mut out);
            let _ = cursor.value(ordinal);
            let _ = cursor.kind(ordinal);
            let _ = cursor.compare(ordinal, b"key");
            out.clear();
        }
        for (key, _) in map.iter().step_by(31) {
            let _ = cursor.find(key);
        }
    }
    assert!(found > tries / 60, "{found} of {tries}");
}

/// The first value of a table may be wrapped, and have no bytes: no place of its own shows that.
#[test]
fn a_wrapped_value_without_a_header_is_damage() {
    let disk = Sealed::in_memory(None);
    let mut builder = Builder::new(&*disk, NAME).unwrap();
    builder.add(b"a", TableEntry::Wrapped(b"")).unwrap();
    builder.add(b"b", TableEntry::Value(b"")).unwrap();
    builder.finish().unwrap();
    let table = open(&disk, 1 << 20).unwrap();
    let mut cursor = TableCursor::new(&table);
    assert_eq!(cursor.value_with(0, |_| ()).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(cursor.is_gone(0, 1).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(cursor.value_with(1, <[u8]>::to_vec).unwrap(), Vec::new());
}

/// A table whose wrapped values are of these kinds, beside a value and a tombstone.
fn wrapped_file_of(wrapped: &[Vec<u8>], method: Compression) -> Vec<u8> {
    let disk = Sealed::in_memory(None);
    let mut builder = Builder::new(&*disk, NAME).unwrap().packed(method).unwrap();
    builder.add(b"a", TableEntry::Value(&[7; 5000])).unwrap();
    for (at, bytes) in (0_u8..).zip(wrapped) {
        builder.add(&[b'b', at], TableEntry::Wrapped(bytes)).unwrap();
    }
    builder.add(b"c", TableEntry::Tombstone).unwrap();
    builder.finish().unwrap();
    disk.memory().bytes(NAME).lock().unwrap().clone()
}

fn expiring(expires_ms: u64) -> Vec<u8> {
    Wrapped { expires_ms: Some(expires_ms), content: &[1; 100] }.encode()
}

fn elsewhere(expires_ms: Option<u64>) -> Vec<u8> {
    Pointer::to(Place { log: 3, offset: 130 }, &[1; 500]).encode(expires_ms)
}

/// What the footer says of all wrapped values together is compared with them: tables with a footer that is not theirs,
/// under a good checksum.
#[test]
fn footers_that_lie_about_wrapped_values_are_found() {
    let operands = wrapped::of_operands([&[1; 300][..], &[2; 9000]]);
    let far = expiring(u64::MAX);
    let tables = [
        vec![operands.clone()],
        vec![expiring(7)],
        vec![expiring(7), far, expiring(9)],
        vec![elsewhere(None)],
        vec![elsewhere(Some(7)), operands, expiring(5)],
    ];
    for (wrapped, method) in
        tables.iter().flat_map(|table| packed::methods().map(move |method| (table, method)))
    {
        let file = wrapped_file_of(wrapped, method);
        let table = opened(file.clone()).unwrap();
        table.verify().unwrap();
        let (last, end) = (file.len() / 4096 - 1, file.len() - 8);
        let has_large = table.large_bytes() > 0;
        // Features: some have operands. Expiries: the earliest and the latest. Before the footer: bytes in logs, and
        // the number of those that expire.
        let mut lies = vec![(end - 8, 8), (end - 32, 1), (end - 26, 1)];
        lies.extend([(end - 144, 1), (end - 136, 1)].into_iter().filter(|_| has_large));
        for (at, bit) in lies {
            let mut bytes = file.clone();
            bytes[at] ^= bit;
            let error = opened(resealed(bytes, last)).and_then(|table| table.verify()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.to_string().contains("00000007.table at offset "), "{error}");
        }
    }
}

/// So is the header of each wrapped value.
#[test]
fn malformed_headers_are_found() {
    for bytes in [&[][..], &[2], &[2, 9, 1], &[0x40, 1], &[1, 2], &[4, 7, 2, 3], &[6; 90]] {
        let error =
            opened(wrapped_file_of(&[bytes.to_vec()], Compression::None)).unwrap().verify().unwrap_err();
        assert!(error.to_string().contains(wrapped::FLAW), "{bytes:?}: {error}");
    }
}
