//! Tables compared with a `BTreeMap`: entries come out as they went in, by ordinal and by key. Damage has its
//! own file.

mod damage;
mod packed;

use super::build::Built;
use super::*;
use crate::rate::Counted;
use forrest_base::random::Random;
use forrest_engine::{Compression, Error, ErrorKind};
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

/// Bytes, one of each number: the format's test relies on them.
trait RandomBytes {
    fn bytes(&mut self, len: usize) -> Vec<u8>;
}

impl RandomBytes for Random {
    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

type Map = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

const NAME: Name = Name { kind: disk::Kind::Table, number: 7 };

fn build(disk: &Sealed, map: &Map, tags: bool) -> Built {
    build_packed(disk, map, tags, Compression::None)
}

fn build_packed(disk: &Sealed, map: &Map, tags: bool, method: Compression) -> Built {
    let spent = Counted::default();
    let builder = Builder::new(disk, NAME).unwrap().at_rate(&spent).tagged(tags);
    let mut builder = builder.packed(method).unwrap();
    for (key, value) in map {
        builder
            .add(key, value.as_ref().map_or(TableEntry::Tombstone, |value| TableEntry::Value(value)))
            .unwrap();
    }
    let built = builder.finish().unwrap();
    assert_eq!(spent.bytes(), built.file_bytes, "every byte counts towards the rate");
    built
}

fn file_of(map: &Map, tags: bool) -> Vec<u8> {
    packed_file_of(map, tags, Compression::None)
}

fn packed_file_of(map: &Map, tags: bool, method: Compression) -> Vec<u8> {
    let disk = Sealed::in_memory(None);
    build_packed(&disk, map, tags, method);
    disk.memory().bytes(NAME).lock().unwrap().clone()
}

fn open(disk: &Arc<Sealed>, cache_bytes: usize) -> Result<Table> {
    Table::open(
        disk.clone(),
        NAME,
        &Arc::new(Cache::new(cache_bytes, Default::default(), Default::default())),
    )
}

/// Everything that a table returns for every entry, and for keys around every key, agrees with the map, without tags
/// and with them, and compressed. Returns the size without.
fn assert_same(map: &Map, cache_bytes: usize) -> u64 {
    let bytes = assert_same_with(map, cache_bytes, false, Compression::None);
    let tagged = assert_same_with(map, cache_bytes, true, Compression::None);
    let more = tagged - bytes;
    for method in packed::methods() {
        let packed = assert_same_with(map, cache_bytes, true, method);
        // The map of chunks, and what is not filled in two pages.
        assert!(
            packed <= tagged + tagged / 2_000 + 2 * page::BYTES as u64,
            "{method}: {packed} for {tagged}"
        );
    }
    let tags = 2 * map.len() as u64;
    assert!(more < tags + 2 * page::BYTES as u64 + tags / 100, "{more} bytes more for {} tags", map.len());
    bytes
}

fn assert_same_with(map: &Map, cache_bytes: usize, tags: bool, method: Compression) -> u64 {
    let disk = Sealed::in_memory(None);
    let built = build_packed(&disk, map, tags, method);
    let table = open(&disk, cache_bytes).unwrap();
    table.verify().unwrap();
    let packed = table.footer.packing.map_or(Compression::None, |packing| packing.method);
    assert_eq!(packed, if table.footer.pages > 1 { method } else { Compression::None });
    assert_eq!(table.tags().unwrap().is_some(), tags);
    let tombstones = map.values().filter(|value| value.is_none()).count() as u32;
    let least = map.first_key_value().map_or(&[][..], |(key, _)| key);
    let greatest = map.last_key_value().map_or(&[][..], |(key, _)| key);
    assert_eq!((table.entries(), table.tombstones()), (map.len() as u32, tombstones));
    assert_eq!((table.least(), table.greatest()), (least, greatest));
    assert_eq!(table.file_bytes(), disk.memory().bytes(NAME).lock().unwrap().len() as u64);
    let expected = Built {
        number: 7,
        entries: table.entries(),
        tombstones,
        file_bytes: table.file_bytes(),
        least: least.to_vec(),
        greatest: greatest.to_vec(),
    };
    assert_eq!(built, expected);

    let mut cursor = TableCursor::new(&table);
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for (ordinal, (expected_key, expected_value)) in (0..).zip(map) {
        key.clear();
        cursor.key_into(ordinal, &mut key).unwrap();
        assert_eq!(&key, expected_key);
        let kind = if expected_value.is_some() { Kind::Value } else { Kind::Tombstone };
        assert_eq!(cursor.kind(ordinal).unwrap(), kind);
        let expected_value = expected_value.as_deref().unwrap_or_default();
        value.clear();
        cursor.value_into(ordinal, &mut value).unwrap();
        assert_eq!(value, expected_value);
        assert_eq!(cursor.value(ordinal).unwrap(), expected_value);
        assert_eq!(cursor.value_len(ordinal).unwrap(), expected_value.len() as u64);
    }
    // What is passed of tables with tombstones depends on the block.
    if tombstones == 0 {
        let all: Vec<_> = map.iter().map(|(key, value)| (&key[..], value.as_deref())).collect();
        walk(&table, &all, true);
    }
    let ordinals: HashMap<&[u8], u32> = map.keys().map(|key| &key[..]).zip(0..).collect();
    let mut other = TableCursor::new(Arc::new(open(&disk, 1 << 20).unwrap()));
    for (ordinal, key) in (0..).zip(map.keys()) {
        let mut near = vec![key.clone(), [key, &b"\0"[..]].concat(), [key, &b"\xFF\xFF"[..]].concat()];
        if let Some((&last, rest)) = key.split_last() {
            near.push(rest.to_vec());
            near.push([rest, &[last.wrapping_add(1)]].concat());
            near.push([rest, &[last.wrapping_sub(1), 0xFF]].concat());
        }
        for near in near {
            let after = map.range(near.clone()..).next();
            let bound = after.map_or(map.len() as u32, |(key, _)| ordinals[&key[..]]);
            assert_eq!(cursor.lower_bound(&near).unwrap(), bound);
            assert_eq!(other.find(&near).unwrap(), map.contains_key(&near).then_some(bound));
            assert_eq!(cursor.compare(ordinal, &near).unwrap(), key.as_slice().cmp(&near));
        }
    }
    assert_eq!(cursor.compare(table.entries(), b"").unwrap_err().kind(), ErrorKind::Corrupt);
    table.file_bytes()
}

/// Walks over all pairs, and if it `stops`, now and then ends there. Returns how many were passed without being looked
/// up one by one.
fn walk(table: &Table, all: &[(&[u8], Option<&[u8]>)], stops: bool) -> usize {
    let (mut random, end) = (Random(all.len() as u64), all.len() as u32);
    let (mut cursor, mut at, mut passed) = (TableCursor::walking(table), 0, 0);
    while at < end {
        let (first, most) = (at, 1 + random.index(100));
        let to = if stops { end.min(first + random.index(200) as u32) } else { end };
        let mut seen = 0;
        let flow = cursor.walk_kept(&mut at, to, |key, value| {
            assert_eq!((key, Some(value)), all[first as usize + seen]);
            seen += 1;
            match random.index(200) {
                _ if !stops => Ok(ControlFlow::Continue(())),
                0 => Err(Error::invalid("no")),
                _ if seen == most => Ok(ControlFlow::Break(())),
                _ => Ok(ControlFlow::Continue(())),
            }
        });
        passed += seen;
        let last = first + seen as u32 - u32::from(!matches!(flow, Ok(ControlFlow::Continue(()))));
        assert_eq!(at, last, "from {first} up to {to}: {flow:?}");
        assert!(at <= to.max(first), "from {first} up to {to}");
        if seen > 0 && at > first {
            assert_eq!(cursor.kept_key(), all[first as usize + seen - 1].0);
        }
        if at < end {
            cursor.key_at(at).unwrap();
            let value = cursor.value_with(at, <[u8]>::to_vec).unwrap();
            assert_eq!((cursor.kept_key(), Some(&value[..])), all[at as usize]);
            at += 1;
        }
    }
    passed
}

/// Only the first pair of a page is looked up, and one that is in two pages; so also where sizes differ.
#[test]
fn a_walk_looks_up_few_pairs() {
    let size = |len: usize, differ: bool, random: &mut Random| match differ {
        true => 4 + random.index(2 * len),
        false => len,
    };
    for (key_len, value_len, differ, most) in [
        (16, 100, false, 80),
        (16, 1, false, 20),
        (40, 8, false, 40),
        (4, 1000, false, 600),
        (16, 100, true, 80),
        (40, 8, true, 40),
    ] {
        let mut random = Random(5);
        let mut pair = || {
            let (key, value) = (size(key_len, differ, &mut random), size(value_len, differ, &mut random));
            (random.bytes(key), Some(random.bytes(value)))
        };
        let map: Map = (0..1_000).map(|_| pair()).collect();
        let disk = Sealed::in_memory(None);
        build(&disk, &map, false);
        let all: Vec<_> = map.iter().map(|(key, value)| (&key[..], value.as_deref())).collect();
        let table = open(&disk, 1 << 22).unwrap();
        let passed = walk(&table, &all, false);
        assert!(map.len() - passed < most, "{key_len} + {value_len}: {passed} of {}", map.len());
        // The first key of each block is looked up, and no value.
        let mut cursor = TableCursor::of_walk(&table, false, true, Vec::new());
        for first in (0..1_000).step_by(block_after(0) as usize) {
            cursor.key_at(first).unwrap();
            let (mut at, mut next) = (first, first);
            let flow = cursor.walk_kept(&mut at, u32::MAX, |key, value| {
                assert_eq!((key, value), (all[next as usize].0, &b""[..]));
                next += 1;
                Ok(ControlFlow::Continue(()))
            });
            assert!(matches!(flow, Ok(ControlFlow::Continue(()))), "{flow:?}");
            assert_eq!(at, block_after(first).min(1_000), "from {first}");
        }
    }
}

#[test]
fn the_empty_table() {
    assert_eq!(assert_same(&Map::new(), 1 << 20), 4096);
    let disk = Sealed::in_memory(None);
    build(&disk, &Map::new(), true);
    let table = open(&disk, 0).unwrap();
    let mut cursor = TableCursor::new(&table);
    assert_eq!((cursor.lower_bound(b"").unwrap(), cursor.find(b"a").unwrap()), (0, None));
}

#[test]
fn tables_of_every_shape() {
    for seed in 0..150 {
        let mut random = Random(seed);
        let count = [1_u32, 2, 63, 64, 65, 128, 129, 700][random.index(8)];
        let (key_shape, value_shape) = (random.index(9), random.index(6));
        let stem = random.bytes(12);
        let mut map = Map::new();
        for i in 0..count {
            let len = random.index(30);
            let key = match key_shape {
                0 => random.bytes(16),
                1 => random.bytes(3),
                2 => random.bytes(len),
                3 => [&stem[..], &random.bytes(len)].concat(),
                4 => format!("tree/{i:05}").into_bytes(),
                // Heads that are equal, in the block where the two kinds meet.
                5 => [&[b'a' + (i % 2) as u8], &stem[..], &random.bytes(len)].concat(),
                6 => [&[b'a' + (i % 2) as u8], &stem[..], &random.bytes(4)].concat(),
                // Keys that differ in the zeros at their ends.
                7 => [&(i % 40 + 1).to_be_bytes()[..], &[0; 24][..random.index(25)]].concat(),
                _ => random.next().to_be_bytes().map(|byte| byte & 1).to_vec(),
            };
            let len = random.index(300);
            let value = match value_shape {
                0 => Some(random.bytes(100)),
                1 => Some(Vec::new()),
                2 => Some(random.bytes(len)),
                3 => (i / 50 % 2 == 0).then(|| random.bytes(len)),
                4 => None,
                _ => Some(random.bytes(if i % 40 == 0 { 9_000 } else { 4 })),
            };
            map.insert(key, value);
        }
        assert_same(&map, [1, 20_000, 1 << 22][random.index(3)]);
    }
}

#[test]
fn long_keys_and_long_values() {
    let mut random = Random(1);
    let mut map = Map::from([(vec![], Some(vec![])), (vec![0xFF; 65_535], Some(random.bytes(1 << 20)))]);
    for i in 0..70_u8 {
        map.insert(vec![i; 65_535 - usize::from(i)], (i % 3 > 0).then(|| vec![i; 10]));
        map.insert(vec![i; usize::from(i) * 40], Some(vec![i; usize::from(i) * 100]));
    }
    map.insert(b"m".to_vec(), Some(random.bytes((1 << 20) + 1)));
    assert_same(&map, 1 << 22);
    // Blocks slightly smaller and slightly larger than pages, and keys that differ only at their ends.
    for len in [20, 40, 55, 58, 62, 63, 64, 80, 300] {
        let keys = (0..300_u32).map(|i| [&random.bytes(len)[..], &i.to_be_bytes()[..]].concat());
        assert_same(&keys.map(|key| (key, Some(vec![1; 20]))).collect(), 1 << 20);
    }
    let keys = (0..200_u32).map(|i| [&vec![b'k'; 5_000][..], &i.to_be_bytes()[..]].concat());
    assert_same(&keys.map(|key| (key, Some(vec![1; 20]))).collect(), 1 << 20);
}

/// A page that a footer just fits into, and one that it does not fit into.
#[test]
fn footers_at_every_place() {
    for len in (3_800..3_960).chain([4_088, 8_176]) {
        let file_bytes = assert_same(&Map::from([(b"k".to_vec(), Some(vec![9; len]))]), 1 << 20);
        assert!(file_bytes <= len as u64 + 2 * 4096);
    }
}

#[test]
fn what_does_not_belong_in_a_table() {
    let disk = Sealed::in_memory(None);
    let mut builder = Builder::new(&*disk, NAME).unwrap();
    assert_eq!(builder.add(&vec![0; 65_536], TableEntry::Tombstone).unwrap_err().kind(), ErrorKind::Limit);
    assert_eq!(Builder::new(&*disk, NAME).err().unwrap().kind(), ErrorKind::Io);
}

#[test]
#[should_panic(expected = "ascending order")]
fn keys_come_in_order() {
    let disk = Sealed::in_memory(None);
    let mut builder = Builder::new(&*disk, NAME).unwrap();
    builder.add(b"a", TableEntry::Tombstone).unwrap();
    let _ = builder.add(b"a", TableEntry::Tombstone);
}

/// 16 random bytes of key and 100 of value, as the decision record promises. Longer ones would share less.
#[test]
fn pairs_take_little_more_than_their_bytes() {
    for (key_len, bound) in [(16, 1.01), (8, 1.01), (24, 1.01), (36, 1.03), (80, 1.03)] {
        let mut random = Random(3);
        let map: Map = (0..100_000).map(|_| (random.bytes(key_len), Some(vec![7; 100]))).collect();
        let disk = Sealed::in_memory(None);
        let built = build(&disk, &map, false);
        let user: usize = map.iter().map(|(key, value)| key.len() + value.as_ref().unwrap().len()).sum();
        let stored = built.file_bytes as f64 / user as f64;
        println!(
            "{key_len} + 100: {:.2} bytes a pair, {stored:.4}",
            built.file_bytes as f64 / map.len() as f64
        );
        assert!(stored < bound, "{key_len} + 100: {stored:.4}");
    }
}

#[test]
fn a_builder_knows_about_how_long_its_file_becomes() {
    let disk = Sealed::in_memory(None);
    let mut builder = Builder::new(&*disk, NAME).unwrap();
    for i in 0..10_000_u32 {
        builder.add(&i.to_be_bytes(), TableEntry::Value(&[1; 50])).unwrap();
    }
    let about = builder.bytes() as f64;
    let is = builder.finish().unwrap().file_bytes as f64;
    assert!((about / is - 1.0).abs() < 0.05, "{about} {is}");
}

/// A cursor requests each page from the cache once, and a second table requests none of the first one's.
#[test]
fn a_walk_fetches_each_page_once() {
    let map: Map = (0..2_000_u32).map(|i| (i.to_be_bytes().to_vec(), Some(vec![1; 100]))).collect();
    let disk = Sealed::in_memory(None);
    build(&disk, &map, false);
    let cache = Arc::new(Cache::new(1 << 24, Default::default(), Default::default()));
    let table = Arc::new(Table::open(disk, NAME, &cache).unwrap());
    assert_eq!(cache.stats().misses, 0);
    let mut cursor = TableCursor::new(table.clone());
    let mut out = Vec::new();
    for ordinal in 0..table.entries() {
        cursor.key_into(ordinal, &mut out).unwrap();
        cursor.value_into(ordinal, &mut out).unwrap();
    }
    let stats = cache.stats();
    assert!(stats.hits <= 2 && stats.misses <= table.file_bytes() / 4096, "{stats:?}");
    assert!(table.memory_bytes() > 0);
    drop((cursor, table));
    assert_eq!(cache.stats().pages, 0);
}

/// The device is asked for pages that are read right after, and for none that is in the cache.
#[test]
fn what_will_be_read_is_said_before() {
    let map: Map = (0..20_000_u32).map(|i| (i.to_be_bytes().to_vec(), Some(vec![1; 100]))).collect();
    let disk = Sealed::in_memory(None);
    build(&disk, &map, false);
    // A value may be on two pages, and a walk that has entered the second one will go on to a third.
    for (walks, most) in [(false, 2), (true, 3)] {
        let table = Arc::new(open(&disk, 1 << 24).unwrap());
        table.index().unwrap();
        let mut random = Random(6);
        let mut most_said = 0;
        for _ in 0..500 {
            let ordinal = random.index(20_000) as u32;
            for is_again in [false, true] {
                disk.memory().announced.lock().unwrap().clear();
                disk.memory().read.lock().unwrap().clear();
                let mut cursor =
                    if walks { TableCursor::walking(table.clone()) } else { TableCursor::new(table.clone()) };
                cursor.fetch(ordinal);
                cursor.value_into(ordinal, &mut Vec::new()).unwrap();
                let (said, read) =
                    (disk.memory().announced.lock().unwrap(), disk.memory().read.lock().unwrap());
                let beyond = said.iter().filter(|offset| !read.contains(offset)).count();
                assert!(beyond <= usize::from(walks) && said.len() <= most, "{said:?} {read:?}");
                assert!(!is_again || (read.is_empty() && said.len() == beyond), "{said:?} {read:?}");
                most_said = most_said.max(said.len());
            }
        }
        assert_eq!(most_said, most);
        table.fetch(0, true, false);
    }
}

/// A walk announces all pages but the first of each section, in few calls.
#[test]
fn a_walk_announces_what_it_reads() {
    let map: Map = (0..20_000_u32).map(|i| (i.to_be_bytes().to_vec(), Some(vec![1; 100]))).collect();
    let disk = Sealed::in_memory(None);
    build(&disk, &map, false);
    for forward in [true, false] {
        let table = open(&disk, 1 << 24).unwrap();
        table.index().unwrap();
        for calls in [&disk.memory().announced, &disk.memory().read] {
            calls.lock().unwrap().clear();
        }
        let mut cursor = TableCursor::of_walk(&table, true, false, Vec::new());
        let step = |at: u32| if forward { at } else { table.entries() - 1 - at };
        (0..table.entries()).map(step).for_each(|ordinal| {
            cursor.key_at(ordinal).unwrap();
            cursor.value_with(ordinal, <[u8]>::len).unwrap();
        });
        let (said, read) = (disk.memory().announced.lock().unwrap(), disk.memory().read.lock().unwrap());
        let silent = read.iter().filter(|offset| !said.contains(offset)).count();
        assert!(read.len() > 490 && silent <= 2, "{silent} of {} pages, forward: {forward}", read.len());
        assert_eq!(cursor.take_reads(), read.len() as u64);
        assert!(said.len() <= read.len() + 1, "{} announced of {}", said.len(), read.len());
    }
}

/// A lookup of a key that is not there reads nothing with tags, but for one of 65,536 of those that it compares.
#[test]
fn misses_read_no_keys_if_there_are_tags() {
    let map: Map = (0..20_000_u32).map(|i| ((2 * i).to_be_bytes().to_vec(), Some(vec![1; 100]))).collect();
    for (tags, most) in [(false, 1_000), (true, 5)] {
        let disk = Sealed::in_memory(None);
        build(&disk, &map, tags);
        let table = open(&disk, 0).unwrap();
        let find = |key: u32| TableCursor::new(&table).find(&key.to_be_bytes()).unwrap();
        assert_eq!(find(2), Some(1), "reads the index and the tags");
        disk.memory().read.lock().unwrap().clear();
        assert!((0..1_000).all(|i| find(2 * i + 1).is_none()));
        let read = disk.memory().read.lock().unwrap().len();
        assert!(read <= most && (tags || read == most), "{read} reads with tags: {tags}");
    }
}

/// Tags that there is no memory for are left in the file, and counted once they are read.
#[test]
fn tags_are_read_where_there_is_room() {
    let map: Map = (0..1_000_u32).map(|i| (i.to_be_bytes().to_vec(), None)).collect();
    let disk = Sealed::in_memory(None);
    build(&disk, &map, true);
    let table = open(&disk, 1 << 20).unwrap();
    let indexes = table.cache().indexes().clone();
    let find = |key: u32| TableCursor::new(&table).find(&key.to_be_bytes()).unwrap();
    indexes.set_most(indexes.bytes() + 1_000);
    assert_eq!((find(7), find(1_000), table.tags.get().is_some()), (Some(7), None, false));
    indexes.set_most(indexes.bytes() + 3_000);
    let before = indexes.bytes();
    assert_eq!((find(7), find(1_000), table.tags.get().is_some()), (Some(7), None, true));
    assert!(indexes.bytes() >= before + 2_000, "they count");
}

#[test]
fn threads_share_a_table() {
    let mut random = Random(5);
    let map: Map = (0..3_000).map(|_| (random.bytes(16), Some(random.bytes(60)))).collect();
    let disk = Sealed::in_memory(None);
    build(&disk, &map, true);
    let table = open(&disk, 30_000).unwrap();
    let pairs: Vec<_> = map.iter().collect();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (table, pairs) = (&table, &pairs);
            scope.spawn(move || {
                let (mut random, mut cursor) = (Random(thread), TableCursor::new(table));
                for _ in 0..2_000 {
                    let (key, value) = pairs[random.index(pairs.len())];
                    let ordinal = cursor.find(key).unwrap().unwrap();
                    assert_eq!(cursor.value(ordinal).unwrap(), value.as_ref().unwrap());
                }
            });
        }
    });
}

/// The bytes that a text begins with, each of two digits, up to two spaces. None if there is anything else.
fn hex(text: &str) -> Vec<u8> {
    let bytes = text.split("  ").next().unwrap_or_default().split(' ');
    let bytes = bytes.map(|byte| u8::from_str_radix(byte, 16).ok().filter(|_| byte.len() == 2));
    bytes.collect::<Option<_>>().unwrap_or_default()
}

/// The example at the head of format.rs is written and read byte by byte.
#[test]
fn the_example_of_the_format() {
    let map = Map::from([
        (b"ash".to_vec(), Some(b"1".to_vec())),
        (b"elm".to_vec(), None),
        (b"oak".to_vec(), Some(b"22".to_vec())),
    ]);
    let mut expected = vec![0; 4096];
    let mut lines = 0;
    for line in include_str!("format.rs").lines() {
        let Some(line) = line.strip_prefix("//! ") else { continue };
        let Some((offset, bytes)) = line.trim_start().split_once("  ") else { continue };
        let (Ok(offset), bytes) = (offset.parse::<usize>(), hex(bytes)) else { continue };
        if !bytes.is_empty() {
            expected[offset..offset + bytes.len()].copy_from_slice(&bytes);
            lines += 1;
        }
    }
    assert_eq!(lines, 18, "lines of the example");
    page::seal(&mut expected, NAME, page::LAST);
    assert_eq!(file_of(&map, false), expected);
    // So it cannot drift together with its description.
    assert_eq!(u64::from_le_bytes(expected[4088..].try_into().unwrap()), 0x5A95_9F3D_5D5A_B677);
    assert_same(&map, 1);
}

/// The bytes of a larger table, by their hash: two sizes of every column, straddling blocks and values.
#[test]
fn the_format_does_not_drift() {
    let mut random = Random(11);
    let mut map = Map::new();
    for i in 0..500_u32 {
        let key_len = if i < 200 { 9 } else { random.index(200) };
        let value_len = if i < 300 { 20 } else { random.index(2_000) };
        let key = [&i.to_be_bytes()[..], &random.bytes(key_len)].concat();
        map.insert(key, (i % 100 < 80).then(|| random.bytes(value_len)));
    }
    map.insert(b"\x01large".to_vec(), Some(random.bytes(100_000)));
    assert_same(&map, 1 << 20);
    assert_eq!(xxhash_rust::xxh3::xxh3_64(&file_of(&map, false)), 0xD104_80F7_F3FA_7028);
    assert_eq!(xxhash_rust::xxh3::xxh3_64(&file_of(&map, true)), 0x446E_CC94_27FE_5935);
}
