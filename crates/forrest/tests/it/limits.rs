//! Every limit, and one beyond it.

use crate::random::Random;
use crate::world::removed;
use forrest::{
    Db, Error, ErrorKind, Keyspace, MAX_KEY_BYTES, MAX_KEYSPACE_NAME_BYTES, MAX_KEYSPACES, MAX_VALUE_BYTES,
    Op, Pages, WriteBatch,
};
use std::ops::Bound;

fn memory() -> Db {
    Db::open("memory:").expect("a store in memory")
}

fn assert_limit<T: std::fmt::Debug>(result: Result<T, Error>, message: &str) {
    let error = result.expect_err("this is beyond a limit");
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert_eq!(error.to_string(), format!("limit exceeded: {message}"));
}

const KEY_MESSAGE: &str = "key of 65536 bytes; at most 65535 bytes are allowed";

#[test]
fn keys_of_the_greatest_and_the_least_length_do_everything() {
    let db = memory();
    for key in [vec![], vec![7; MAX_KEY_BYTES]] {
        db.set(&key, "1").unwrap();
        assert_eq!(db.get(&key).unwrap().unwrap(), "1");
        assert!(db.contains(&key).unwrap());
        assert!(db.cursor().seek(&key).unwrap());
        assert!(db.cursor().seek_for_prev(&key).unwrap());
        assert_eq!(db.count(&key[..]..=&key[..]).unwrap(), 1);
        assert!(db.compare_and_swap(&key, Some(b"1"), None).unwrap().is_done());
        assert_eq!(db.add(&key, 5).unwrap(), 5);
        assert_eq!(db.update(&key, |_| Some(vec![9])).unwrap().unwrap(), [9]);
        assert!(db.delete(&key).unwrap());
        let mut batch = WriteBatch::new();
        batch.set(&key, "2");
        db.write(batch).unwrap();
        assert_eq!(removed(&db, &key[..]..=&key[..]), 1);
        assert_eq!(db.count(..).unwrap(), 0);
    }
}

#[test]
fn a_key_that_is_one_byte_too_long_does_nothing() {
    let db = memory();
    let key = vec![7; MAX_KEY_BYTES + 1];
    assert_limit(db.set(&key, "1"), KEY_MESSAGE);
    assert_limit(db.get(&key), KEY_MESSAGE);
    assert_limit(db.get_into(&key, &mut Vec::new()), KEY_MESSAGE);
    assert_limit(db.multi_get(&[&b"short"[..], &key]), KEY_MESSAGE);
    assert_limit(db.contains(&key), KEY_MESSAGE);
    assert_limit(db.delete(&key), KEY_MESSAGE);
    assert_limit(db.add(&key, 1), KEY_MESSAGE);
    assert_limit(db.compare_and_swap(&key, None, None), KEY_MESSAGE);
    assert_limit(db.update(&key, |_| unreachable!("there is nothing to update")), KEY_MESSAGE);
    assert_limit(db.apply(Op::DeleteRange { start: &key, end: None }), KEY_MESSAGE);
    assert_limit(db.apply(Op::DeleteRange { start: &vec![], end: Some(&key) }), KEY_MESSAGE);
    let mut batch = WriteBatch::new();
    batch.set("short", "1").delete(&key);
    let at_one = format!("{KEY_MESSAGE} (operation 1 of the batch; nothing of it was applied)");
    assert_limit(db.write(batch), &at_one);
    assert_eq!(db.count(..).unwrap(), 0);
}

/// Bounds may be of any length: no key lies between a longer bound and its first 65,535 bytes.
#[test]
fn bounds_longer_than_a_key_stand_where_they_should() {
    let below = vec![6; MAX_KEY_BYTES];
    let longest = vec![7; MAX_KEY_BYTES];
    let above = vec![8];
    let bound = [&longest[..], &[0]].concat();
    let db = memory();
    let fill = || [&below, &longest, &above].into_iter().for_each(|key| db.set(key, "").unwrap());
    fill();
    assert_eq!(db.count(&bound[..]..).unwrap(), 1);
    assert_eq!(db.count((Bound::Excluded(&bound), Bound::Unbounded)).unwrap(), 1);
    assert_eq!(db.count(..&bound[..]).unwrap(), 2);
    assert_eq!(db.count(..=&bound[..]).unwrap(), 2);
    assert_eq!(db.range(&bound[..]..).count(), 1);
    assert_eq!(db.range(..&bound[..]).rev().count(), 2);
    assert_eq!(db.prefix(&bound).count(), 0);
    let mut cursor = db.cursor();
    assert!(cursor.seek(&bound).unwrap() && cursor.key() == Some(&above[..]));
    assert!(cursor.seek_for_prev(&bound).unwrap() && cursor.key() == Some(&longest[..]));
    assert!(cursor.seek([&below[..], &[0]].concat()).unwrap() && cursor.key() == Some(&longest[..]));
    assert!(!cursor.seek(vec![9; MAX_KEY_BYTES + 1]).unwrap() && cursor.key().is_none());
    assert!(!cursor.seek_for_prev(vec![5; MAX_KEY_BYTES + 1]).unwrap() && cursor.key().is_none());
    assert_eq!(removed(&db, &bound[..]..), 1);
    fill();
    assert_eq!(removed(&db, (Bound::Excluded(&bound), Bound::Unbounded)), 1);
    fill();
    assert_eq!(removed(&db, ..&bound[..]), 2);
    fill();
    assert_eq!(removed(&db, ..=&bound[..]), 2);
    fill();
    // No key is after the greatest possible one.
    let largest = vec![0xFF; MAX_KEY_BYTES];
    db.set(&largest, "").unwrap();
    assert_eq!(removed(&db, (Bound::Excluded(&largest), Bound::Unbounded)), 0);
    assert_eq!(removed(&db, [&largest[..], &[0xFF]].concat()..), 0);
    assert_eq!(removed(&db, &largest[..]..=&largest[..]), 1);
    assert_eq!(db.count(..).unwrap(), 3);
}

#[test]
fn a_value_that_is_one_byte_too_long_does_nothing() {
    if Vec::<u8>::new().try_reserve_exact(MAX_VALUE_BYTES + 1).is_err() {
        println!("skipped: there are not 4 GiB of addresses");
        return;
    }
    // Zeroed memory takes no pages until it is touched.
    let value = vec![0_u8; MAX_VALUE_BYTES + 1];
    let message = "value of 4294967296 bytes; at most 4294967295 bytes are allowed";
    let db = memory();
    assert_limit(db.set("key", &value), message);
    assert_limit(db.compare_and_swap("key", None, Some(&value)), message);
    assert_limit(db.compare_and_swap("key", Some(&value), None), message);
    assert_eq!(db.count(..).unwrap(), 0);
}

/// Takes 8 GiB and some seconds, so it runs on demand, and on machines with enough memory.
#[test]
fn a_value_of_the_greatest_length() {
    if std::env::var_os("FORREST_HUGE_VALUES").is_none() {
        println!("skipped: FORREST_HUGE_VALUES=1 runs it, with 12 GiB of memory");
        return;
    }
    let free = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = free.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB"));
    let free_kib: u64 = free.and_then(|kib| kib.parse().ok()).unwrap_or(0);
    if free_kib < 12 << 20 {
        println!("skipped: {} MiB of memory are available, and it takes 12288", free_kib >> 10);
        return;
    }
    let mut value = vec![0_u8; MAX_VALUE_BYTES];
    value[MAX_VALUE_BYTES - 1] = 9;
    let db = memory();
    db.set("key", &value).unwrap();
    drop(value);
    for found in [db.get("key").unwrap().unwrap(), db.first().unwrap().unwrap().value().unwrap()] {
        assert_eq!((found.len(), found[0], found[MAX_VALUE_BYTES - 1]), (MAX_VALUE_BYTES, 0, 9));
    }
    assert!(db.delete("key").unwrap());
}

#[test]
fn batches_have_two_limits() {
    let db = Db::builder().batch_ops_max(3).batch_bytes_max(10).open("memory:").unwrap();
    let mut batch = WriteBatch::new();
    batch.delete("a").delete("b").set("c", "4567890");
    assert_eq!((batch.len(), batch.bytes()), (3, 10));
    db.write(&batch).unwrap();
    assert_limit(
        db.write(batch.clone().delete("")),
        "batch of 4 operations; at most 3 operations are allowed",
    );
    batch.clear();
    batch.set("key", "beyond10");
    assert_limit(db.write(&batch), "batch of 11 bytes; at most 10 bytes are allowed");
    assert_eq!(db.count(..).unwrap(), 1);
}

#[test]
fn batches_have_limits_by_default() {
    let mut batch = WriteBatch::new();
    for _ in 0..=forrest::DEFAULT_BATCH_OPS_MAX {
        batch.delete("");
    }
    let message = "batch of 1048577 operations; at most 1048576 operations are allowed";
    assert_limit(memory().write(&batch), message);
}

#[test]
fn knobs_have_limits() {
    let message = |builder: &forrest::Builder| builder.open("memory:").unwrap_err().to_string();
    assert_eq!(
        message(&Db::builder().batch_ops_max(0)),
        "invalid argument: batch_ops_max is 0; it must be from 1 to 4294967295"
    );
    assert_eq!(
        message(&Db::builder().batch_bytes_max((1 << 40) + 1)),
        "invalid argument: batch_bytes_max is 1099511627777; it must be from 1 to 1099511627776"
    );
    assert_eq!(
        message(&Db::builder().capacity_bytes(0)),
        "invalid argument: capacity_bytes is 0; it must be from 1 to 18446744073709551615"
    );
    assert_eq!(
        message(&Db::builder().mode(0o755)),
        "invalid argument: mode is 0o755; it has bits for reading and writing only, 0o666 at most"
    );
    assert_eq!(
        message(&Db::builder().create(false)),
        "invalid argument: \"memory:\" is always a new store, and create(false) does not allow creating one"
    );
    assert!(Db::builder().batch_ops_max(u32::MAX as usize).batch_bytes_max(1 << 40).open("memory:").is_ok());
}

/// Sets keys of 8 bytes until the store is full. Returns their number, and the error.
fn fill(keyspace: &Keyspace) -> (u64, Error) {
    let mut set = 0_u64;
    loop {
        match keyspace.set(set.to_be_bytes(), [7; 200]) {
            Ok(()) => set += 1,
            Err(error) => return (set, error),
        }
    }
}

/// A change that does not fit is refused as a whole, and all other operations work.
#[test]
fn a_full_store_says_so() {
    let db = Db::builder().capacity_bytes(8 << 20).pages(Pages::Plain).open("memory:").unwrap();
    let first = db.keyspace("first").unwrap();
    let (set, error) = fill(&first);
    assert_eq!(error.kind(), ErrorKind::OutOfSpace, "{error}");
    assert!((10_000..60_000).contains(&set), "{set} values of 200 bytes in 8 MiB");
    let assert_unchanged = || {
        assert_eq!(first.count(..).unwrap(), set);
        assert!(!first.contains(set.to_be_bytes()).unwrap());
        assert_eq!(first.get(0_u64.to_be_bytes()).unwrap().unwrap(), [7; 200]);
        assert_eq!(first.range(..).rev().count() as u64, set);
        assert_eq!(db.count(..).unwrap(), 0);
    };
    assert_unchanged();

    let mut batch = WriteBatch::new();
    batch.set("in the default keyspace", "");
    for key in 0..set {
        batch.on(&first).set((key + set).to_be_bytes(), [8; 200]);
    }
    let error = db.write(&batch).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfSpace);
    assert!(error.op().is_some());
    assert_unchanged();

    // Dropping a keyspace frees all its memory.
    assert!(db.drop_keyspace("first").unwrap());
    drop((first, batch));
    let (again, error) = fill(&db);
    assert_eq!(error.kind(), ErrorKind::OutOfSpace);
    assert!(again >= set - set / 10, "{again} after {set}");
    assert_eq!(db.stats().unwrap().keys, again);
}

/// Does what a full store refuses only as long as readers of other tests keep memory from being freed. They read under
/// a pin for many seconds where tests are slow.
fn after_readers<T>(mut attempt: impl FnMut() -> forrest::Result<T>) -> T {
    for _ in 0..12_000 {
        match attempt() {
            Err(error) if error.kind() == ErrorKind::OutOfSpace => {
                std::thread::park_timeout(std::time::Duration::from_millis(5));
            }
            done => return done.unwrap(),
        }
    }
    panic!("a full store takes no deletes");
}

/// A store at its capacity can be made smaller, by single deletes in any order, by ranges, and by batches of
/// deletes. The freed memory can be used again.
#[test]
fn a_full_store_takes_deletes() {
    for seed in 1..=3 {
        let mut random = Random::new(seed);
        let db = Db::builder().capacity_bytes(8 << 20).pages(Pages::Plain).open("memory:").unwrap();
        let mut keys = Vec::new();
        let set_one = |keys: &mut Vec<Vec<u8>>, random: &mut Random| {
            let mut bytes = |len: usize| (0..len).map(|_| random.next() as u8).collect::<Vec<u8>>();
            let (key_len, value_len) = match seed {
                1 => (8, 8),
                2 => (8, 200),
                _ => (4 + keys.len() % 50, keys.len() * 7 % 230),
            };
            let (key, value) = (bytes(key_len), bytes(value_len));
            let set = db.set(&key, value);
            if set.is_ok() {
                keys.push(key);
            }
            set.map_err(|error| assert_eq!(error.kind(), ErrorKind::OutOfSpace, "{error}"))
        };
        let fill = |keys: &mut Vec<Vec<u8>>, random: &mut Random| {
            // Readers of other tests may keep memory from being freed for a while.
            for _ in 0..40 {
                while set_one(keys, random).is_ok() {}
                std::thread::park_timeout(std::time::Duration::from_millis(5));
            }
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(db.count(..).unwrap() as usize, keys.len(), "seed {seed}");
        };
        fill(&mut keys, &mut random);
        let most = keys.len();
        for turn in 0..4000 {
            let key = keys.swap_remove(random.next() as usize % keys.len());
            assert!(after_readers(|| db.delete(&key)), "seed {seed}, turn {turn}");
            let _ = set_one(&mut keys, &mut random);
        }
        fill(&mut keys, &mut random);
        let half = keys.split_off(keys.len() / 2);
        after_readers(|| db.delete_range(&half[0][..]..));
        assert_eq!(db.count(..).unwrap() as usize, keys.len(), "seed {seed}");
        fill(&mut keys, &mut random);
        assert!(keys.len() > most / 2, "seed {seed}: {} keys after {most}", keys.len());
        let mut batch = WriteBatch::new();
        batch.delete(keys.pop().unwrap()).delete(keys.pop().unwrap());
        after_readers(|| db.write(&batch));
        while !keys.is_empty() {
            let key = keys.swap_remove(random.next() as usize % keys.len());
            assert!(after_readers(|| db.delete(&key)), "seed {seed}");
        }
        assert_eq!(db.count(..).unwrap(), 0);
        for _ in 0..100 {
            fill(&mut keys, &mut random);
            if keys.len() > most - most / 10 {
                break;
            }
        }
        assert!(keys.len() > most - most / 10, "seed {seed}: {} keys after {most}", keys.len());
    }
}

#[test]
fn names_of_keyspaces_have_limits() {
    let db = memory();
    let longest = "\u{fc}".repeat(MAX_KEYSPACE_NAME_BYTES / 2) + "x";
    assert_eq!(longest.len(), MAX_KEYSPACE_NAME_BYTES);
    assert_eq!(db.keyspace(&longest).unwrap().name(), longest);
    assert_eq!(db.keyspace("x").unwrap().name(), "x");
    let message = "keyspace name of 256 bytes; at most 255 bytes are allowed";
    let longer = longest + "x";
    assert_limit(db.keyspace(&longer), message);
    assert_limit(db.drop_keyspace(&longer), message);
    assert_limit(db.snapshot().unwrap().keyspace(&longer), message);
    assert_eq!(db.keyspace("").unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(db.drop_keyspace("").unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(db.snapshot().unwrap().keyspace("").unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn there_are_so_many_keyspaces() {
    let db = memory();
    for number in 1..MAX_KEYSPACES {
        db.keyspace(&number.to_string()).unwrap().set("number", number.to_be_bytes()).unwrap();
    }
    assert_eq!(db.keyspaces().unwrap().len(), MAX_KEYSPACES);
    assert_limit(db.keyspace("more"), "store of 4097 keyspaces; at most 4096 keyspaces are allowed");
    assert!(db.keyspace("17").unwrap().contains("number").unwrap());
    assert!(db.drop_keyspace("17").unwrap());
    assert_eq!(db.keyspace("more").unwrap().count(..).unwrap(), 0);
}

#[test]
fn counters_end_where_64_bits_end() {
    let db = memory();
    assert_eq!(db.add("up", i64::MAX).unwrap(), i64::MAX);
    let error = db.add("up", 1).unwrap_err();
    assert_eq!(error.to_string(), "invalid argument: adding 1 overflows the counter");
    assert_eq!(db.add("down", i64::MIN).unwrap(), i64::MIN);
    assert_eq!(db.add("down", -1).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(db.add("up", 0).unwrap(), i64::MAX);
    assert_eq!(db.add("down", 0).unwrap(), i64::MIN);
    for length in [0, 7, 9] {
        db.set("text", vec![0; length]).unwrap();
        let error = db.add("text", 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("invalid argument: the value is {length} bytes long, and a counter is 8 bytes")
        );
        assert_eq!(db.get("text").unwrap().unwrap(), vec![0; length]);
    }
}

/// Where addresses are few, as under `ulimit -v`, a store leaves room for others: it takes no more than half of what
/// is left. This test runs itself in a shell that sets the limit.
#[cfg(target_os = "linux")]
#[test]
fn stores_share_few_addresses() {
    const INSIDE: &str = "FORREST_FEW_ADDRESSES";
    if std::env::var_os(INSIDE).is_some() {
        let directory = tempfile::tempdir().unwrap();
        let homes = ["memory:", "one", "memory:", "two"];
        let stores = homes.map(|home| match home {
            "memory:" => Db::open(home).unwrap(),
            name => Db::open(directory.path().join(name).to_str().unwrap()).unwrap(),
        });
        for db in &stores {
            db.set("key", vec![1; 1 << 20]).unwrap();
            assert_eq!(db.get("key").unwrap().unwrap().len(), 1 << 20);
        }
        return;
    }
    let own = std::env::current_exe().unwrap();
    let ran = std::process::Command::new("sh")
        .args(["-c", "ulimit -v 10000000 && exec \"$0\" --exact limits::stores_share_few_addresses"])
        .arg(own)
        .env(INSIDE, "1")
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
}
