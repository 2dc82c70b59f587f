//! Packed tables: how small they are, what is read of them, and what they share with others. That they have the same
//! entries is checked with all others.

use super::*;
use crate::compression;

/// The methods that this build has.
pub(super) fn methods() -> impl Iterator<Item = Compression> {
    let is_here = |method: &Compression| *method != Compression::None && compression::check(*method).is_ok();
    Compression::ALL.into_iter().filter(is_here)
}

/// Values of text first, then random ones: chunks of both kinds.
pub(super) fn mixed_map(count: u32) -> Map {
    let mut random = Random(4);
    let entries = (0..count).map(|i| {
        let text = format!("{{\"number\":{i},\"kind\":\"event\",\"state\":\"done\"}}").repeat(2);
        let value = if i < count / 2 { text.into_bytes() } else { random.bytes(100) };
        (i.to_be_bytes().to_vec(), (i % 50 > 0).then_some(value))
    });
    entries.collect()
}

#[test]
fn text_takes_less_and_noise_no_more() {
    let map = mixed_map(4_000);
    let plain = file_of(&map, true).len();
    for method in methods() {
        let packed = packed_file_of(&map, true, method).len();
        assert!(packed < plain * 7 / 10, "{method}: {packed} of {plain}");
    }
    let mut random = Random(8);
    let noise: Map = (0..4_000_u32).map(|i| (i.to_be_bytes().to_vec(), Some(random.bytes(200)))).collect();
    for method in methods() {
        let disk = Sealed::in_memory(None);
        build_packed(&disk, &noise, true, method);
        let table = open(&disk, 1 << 20).unwrap();
        assert!(table.file_bytes() <= table.plain_bytes() + 2 * 4096, "{table:?}");
        let bytes = table.memory_bytes();
        // A page of noise is read alone.
        table.index().unwrap();
        table.tags().unwrap();
        disk.memory().read.lock().unwrap().clear();
        TableCursor::new(&table).value(2_000).unwrap();
        assert!(disk.memory().read.lock().unwrap().len() <= 4, "{:?}", disk.memory().read);
        assert!(table.memory_bytes() > bytes, "the map counts");
    }
}

/// A table of one page is one of version 1, whatever it has.
#[test]
fn one_page_is_not_packed() {
    let map = Map::from([(b"k".to_vec(), Some(vec![7; 3_000]))]);
    for method in methods() {
        assert_eq!(packed_file_of(&map, true, method), file_of(&map, true));
    }
}

/// A walk unpacks each chunk once, and a lookup leaves what it did not ask for.
#[test]
fn a_walk_unpacks_each_chunk_once() {
    let map: Map = (0..20_000_u32).map(|i| (i.to_be_bytes().to_vec(), Some(vec![1; 100]))).collect();
    let disk = Sealed::in_memory(None);
    build_packed(&disk, &map, false, Compression::Lz4);
    for forward in [true, false] {
        let table = open(&disk, 1 << 24).unwrap();
        table.index().unwrap();
        disk.memory().read.lock().unwrap().clear();
        let mut cursor = TableCursor::walking(&table);
        let step = |at: u32| if forward { at } else { table.entries() - 1 - at };
        (0..table.entries()).map(step).for_each(|ordinal| {
            cursor.key_at(ordinal).unwrap();
            cursor.value_with(ordinal, <[u8]>::len).unwrap();
        });
        let reads = disk.memory().read.lock().unwrap().len() as u64;
        let chunks = table.footer.packing.unwrap().chunks(table.footer.pages);
        assert!(reads <= chunks + 2, "{reads} reads of {chunks} chunks, forward: {forward}");
        assert!(table.cache().stats().misses <= chunks + 2);
    }
    let table = open(&disk, 1 << 24).unwrap();
    table.index().unwrap();
    let before = table.cache().stats().pages;
    TableCursor::new(&table).value(10_000).unwrap();
    let kept = table.cache().stats().pages - before;
    assert!(kept <= 4, "{kept} pages for a key and its value");
}

/// A value on several pages is read with as many reads as there are chunks.
#[test]
fn a_long_value_unpacks_each_chunk_once() {
    let map: Map = (0..20_u8).map(|i| (vec![i], Some(vec![i; 30_000]))).collect();
    let disk = Sealed::in_memory(None);
    build_packed(&disk, &map, false, Compression::Lz4);
    let table = open(&disk, 1 << 24).unwrap();
    table.index().unwrap();
    let mut cursor = TableCursor::new(&table);
    cursor.value(0).unwrap();
    disk.memory().read.lock().unwrap().clear();
    assert_eq!(cursor.value(9).unwrap(), vec![9; 30_000]);
    let reads = disk.memory().read.lock().unwrap().len();
    assert!(reads <= 5, "{reads} reads of 8 pages");
}

/// The device is asked for the pages of the file that have the chunks.
/// A damaged page of the map loses the chunks whose ends it has, and no others. The last page has the index's.
#[test]
fn a_damaged_page_of_the_map_loses_its_chunks_only() {
    let map: Map = (0..60_000_u32).map(|i| (i.to_be_bytes().to_vec(), Some(vec![i as u8; 400]))).collect();
    let disk = Sealed::in_memory(None);
    build_packed(&disk, &map, false, Compression::Lz4);
    let packing = open(&disk, 1 << 20).unwrap().footer.packing.expect("it is packed");
    let place = pack::Map::place(&packing, open(&disk, 1 << 20).unwrap().footer.pages);
    assert!(place.end - place.start >= 3, "the map has several pages");
    for page in place.clone() {
        let flipped = page as usize * page::BYTES + 100;
        disk.memory().bytes(NAME).lock().unwrap()[flipped] ^= 1;
        let table = open(&disk, 1 << 20).unwrap();
        table.verify().expect_err("it is damaged");
        let mut cursor = TableCursor::new(&table);
        let found = (0..60_000).step_by(7).map(|ordinal| cursor.value(ordinal).map(drop));
        let (read, lost): (Vec<_>, Vec<_>) = found.partition(Result::is_ok);
        let all = read.len() + lost.len();
        let most = if page + 1 == place.end { all } else { all * 6 / 10 };
        assert!(
            (1..=most).contains(&lost.len()),
            "{} of {all} are lost with {page} of {place:?}",
            lost.len()
        );
        let error = lost.into_iter().find_map(Result::err);
        assert!(error.is_none_or(|error| error.kind() == ErrorKind::Corrupt));
        disk.memory().bytes(NAME).lock().unwrap()[flipped] ^= 1;
    }
    open(&disk, 1 << 20).unwrap().verify().expect("it is whole again");
}

#[test]
fn what_will_be_read_is_announced() {
    let map = mixed_map(20_000);
    let disk = Sealed::in_memory(None);
    build_packed(&disk, &map, false, Compression::Lz4);
    let table = open(&disk, 1 << 24).unwrap();
    table.index().unwrap();
    for calls in [&disk.memory().announced, &disk.memory().read] {
        calls.lock().unwrap().clear();
    }
    let mut cursor = TableCursor::of_walk(&table, true, false, Vec::new());
    for ordinal in 0..table.entries() {
        cursor.key_at(ordinal).unwrap();
        cursor.value_with(ordinal, <[u8]>::len).unwrap();
    }
    let (said, read) = (disk.memory().announced.lock().unwrap(), disk.memory().read.lock().unwrap());
    let silent = read.iter().filter(|&offset| !said.contains(&(offset / 4096 * 4096))).count();
    assert!(read.len() > 200 && silent <= 3, "{silent} of {} reads", read.len());
    assert!(said.iter().all(|offset| *offset < table.file_bytes()), "beyond the end");
}

/// Builds of today read what the first ones wrote, with chunks of four pages and of two.
#[test]
fn the_format_of_chunks() {
    let map = mixed_map(200);
    let file = packed_file_of(&map, true, Compression::Lz4);
    if let Some(path) = std::env::var_os("FORREST_PACKED_TABLE") {
        std::fs::write(path, &file).unwrap();
    }
    let (four, two) = (include_bytes!("packed.table"), include_bytes!("packed-2.table"));
    for (kept, pages) in [(&four[..], 4), (two, 2)] {
        let table = open(&Sealed::in_memory(Some((NAME, kept.to_vec()))), 1 << 20).unwrap();
        assert_eq!(table.footer.packing.unwrap().chunk, pages);
        table.verify().unwrap();
        let mut cursor = TableCursor::new(&table);
        for (ordinal, (key, value)) in (0..).zip(&map) {
            assert_eq!(cursor.find(key).unwrap(), Some(ordinal));
            assert_eq!(cursor.value(ordinal).unwrap(), value.as_deref().unwrap_or_default());
        }
    }
    // Another version of LZ4 may find other matches. Until then it is the same.
    assert!(file == two, "the bytes of a packed table have changed");
}
