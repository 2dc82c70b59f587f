//! Memory that an index must give back, refuse or keep small: after forks and slow readers, at the capacity, with long
//! keys. The tests count bytes, never time.

use forrest_base::random::Random;
use forrest_index::{Batch, Direction, Effect, Error, Index, MAX_CAPACITY_BYTES, Options, Spare, Tree};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

/// One test at a time: a pin of another test would delay reclamation in this one.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn new_index() -> (Index, Tree) {
    let index = Index::new(&Options::default()).expect("an index");
    let tree = index.create_tree().expect("a tree");
    (index, tree)
}

fn of_capacity(capacity_bytes: usize) -> (Index, Tree) {
    let options = Options { capacity_bytes: Some(capacity_bytes), ..Options::default() };
    let index = Index::new(&options).expect("an index");
    let tree = index.create_tree().expect("a tree");
    (index, tree)
}

fn set_all(
    batch: &mut Batch<'_>,
    tree: &Tree,
    keys: impl Iterator<Item = u32>,
    value: &[u8],
) -> Result<(), Error> {
    for key in keys {
        batch.apply(tree, &key.to_be_bytes(), |_| (Effect::Put(value.into()), ()))?;
    }
    Ok(())
}

/// Runs `body` while another thread is inside a read of the tree, which must have the key.
fn beside_a_reader<R>(tree: &Tree, key: &[u8], body: impl FnOnce() -> R) -> R {
    let (entered, inside) = mpsc::channel();
    let (leave, left) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let seen = tree.get_with(key, |_| {
                entered.send(()).expect("the test waits");
                // Ends when the other side is dropped, also by a panic.
                let _ = left.recv();
            });
            assert!(seen.is_some(), "the key is there");
        });
        inside.recv().expect("the reader enters");
        let result = body();
        drop(leave);
        result
    })
}

/// What `body` returns in a child made by `fork`; 255 if it panics, 1,000 and the signal's number if it is killed.
fn in_a_child(body: impl FnOnce() -> u8) -> i32 {
    // SAFETY: the child uses its own thread only, and ends without returning to the test.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: `alarm` takes any number. It ends a child that waits for ever.
        unsafe { libc::alarm(30) };
        let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(255);
        // SAFETY: `_exit` ends the process without running handlers of the parent.
        unsafe { libc::_exit(i32::from(code)) };
    }
    let mut status = 0;
    // SAFETY: `status` is a valid place for an `int`.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 1000 + libc::WTERMSIG(status) }
}

/// Cause: the record of a reader of the parent stayed pinned in the child for ever. Cure: the child clears the records
/// of threads that it does not have.
#[test]
fn a_child_frees_memory_although_the_parent_was_reading_at_the_fork() {
    let _alone = alone();
    let (_index, tree) = new_index();
    tree.insert(b"oak", b"Quercus").expect("it is set");
    let megabytes = beside_a_reader(&tree, b"oak", || {
        in_a_child(|| {
            let (index, tree) = new_index();
            for round in 0..300_u32 {
                for key in 0..1000_u32 {
                    tree.insert(&key.to_be_bytes(), &round.to_be_bytes()).expect("it is set");
                }
            }
            u8::try_from(index.stats().node_bytes >> 20).unwrap_or(254)
        })
    });
    assert_eq!(megabytes, 0, "MiB of nodes for 1,000 keys in the child");
}

/// The pin of the forking thread itself outlasts the fork: it is inside a read in the child too.
#[test]
fn a_child_forked_inside_a_read_goes_on_reading() {
    let _alone = alone();
    let (_index, tree) = new_index();
    tree.insert(b"oak", b"Quercus").expect("it is set");
    let (other, other_tree) = new_index();
    let code = tree.get_with(b"oak", |value| {
        in_a_child(|| {
            for round in 0..20_000_u32 {
                other_tree.insert(b"oak", &round.to_be_bytes()).expect("it is set");
            }
            let held = other.stats().node_bytes;
            u8::from(value != b"Quercus" || held == 0)
        })
    });
    assert_eq!(code, Some(0));
}

/// Cause: locks that other threads held at the fork stay locked in the child. Cure: dropping takes none there.
#[test]
fn a_child_drops_an_index_of_the_parent_beside_its_writers() {
    let _alone = alone();
    let (index, tree) = new_index();
    for key in 0..10_000_u32 {
        tree.insert(&key.to_be_bytes(), &[1; 300]).expect("it is set");
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let _held = index.snapshot();
                    for key in 0..1000_u32 {
                        tree.insert(&key.to_be_bytes(), &[2; 300]).expect("it is set");
                    }
                }
            });
        }
        for _ in 0..20 {
            let snapshot = index.snapshot();
            let code = in_a_child(|| {
                drop(snapshot);
                // SAFETY: the child uses neither again, and never returns to their owner.
                unsafe { drop((std::ptr::read(&tree), std::ptr::read(&index))) };
                0
            });
            if code != 0 {
                stop.store(true, Ordering::Relaxed);
                panic!("the child ended with {code}");
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// What decides about a change may not use the same index, in a batch neither.
#[test]
fn a_decision_does_not_use_its_index() {
    let (index, tree) = new_index();
    tree.insert(b"key", b"old").unwrap();
    let nested: [(&str, &dyn Fn()); 3] = [
        ("a change", &|| drop(tree.insert(b"other", b"value"))),
        ("a snapshot", &|| drop(index.snapshot())),
        ("a batch", &|| drop(index.batch(|batch| set_all(batch, &tree, 0..1, b"value")))),
    ];
    for (what, nested) in nested {
        let decide = |_: Option<&[u8]>| {
            nested();
            (Effect::Put(b"new".into()), ())
        };
        let alone = || drop(tree.apply(b"key", decide));
        let in_a_batch = || drop(index.batch(|batch| batch.apply(&tree, b"key", decide)));
        for change in [&alone as &dyn Fn(), &in_a_batch] {
            let changed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(change));
            assert!(changed.is_err(), "{what} was let in");
            assert_eq!(tree.get(b"key").as_deref(), Some(&b"old"[..]), "{what}: the change took place");
            // Neither the leaf nor the gate stays closed.
            tree.insert(b"key", b"old").unwrap();
            drop(index.snapshot());
        }
    }
}

/// Cause: what decides about a change of one index changed another, and took away the thread's note at the gate of the
/// first. A snapshot did not wait for the change, and was changed by it. Cure: the second note has a place of its own.
#[test]
fn a_decision_may_use_another_index() {
    let ((one, tree), (other, elsewhere)) = (new_index(), new_index());
    tree.insert(b"key", b"old").unwrap();
    let (begin, begun) = mpsc::channel();
    let (taken, take) = mpsc::channel();
    thread::scope(|scope| {
        let one = &one;
        scope.spawn(move || {
            begun.recv().unwrap();
            taken.send(one.snapshot()).unwrap();
        });
        tree.apply(b"key", |_| {
            elsewhere.insert(b"key", b"value").unwrap();
            other.batch(|batch| set_all(batch, &elsewhere, 0..1, b"value")).unwrap();
            drop(other.snapshot());
            begin.send(()).unwrap();
            // It waits for this change.
            assert!(take.recv_timeout(Duration::from_millis(200)).is_err(), "a snapshot is taken meanwhile");
            (Effect::Put(b"new".into()), ())
        })
        .unwrap();
        let snapshot = take.recv().unwrap();
        assert_eq!(snapshot.reader(&tree).get(b"key").as_deref(), Some(&b"new"[..]));
        tree.insert(b"key", b"newest").unwrap();
        assert_eq!(snapshot.reader(&tree).get(b"key").as_deref(), Some(&b"new"[..]));
    });
    assert_eq!(elsewhere.get(b"key").as_deref(), Some(&b"value"[..]));
}

/// Cause: the root of one index was read in the memory of another, at a tree with the same number. Cure: a snapshot
/// refuses trees of other indexes, as a batch does.
#[test]
fn a_snapshot_reads_trees_of_its_own_index_only() {
    let _alone = alone();
    let (index, tree) = new_index();
    let (_other, other_tree) = new_index();
    (0..100_000_u32).for_each(|key| assert!(!tree.insert(&key.to_be_bytes(), b"here").expect("it is set")));
    let snapshot = index.snapshot();
    let refused = std::panic::catch_unwind(|| drop(snapshot.reader(&other_tree)));
    assert!(refused.is_err(), "a reader that would read foreign memory");
    assert_eq!(snapshot.reader(&tree).get(&7_u32.to_be_bytes()).as_deref(), Some(&b"here"[..]));
    // A tree that was made after the snapshot is empty in it.
    let new = index.create_tree().expect("a tree");
    new.insert(b"oak", b"Quercus").expect("it is set");
    assert_eq!(snapshot.reader(&new).get(b"oak"), None);
}

/// Cause: a batch collected nothing, so nodes that waited for a reader stayed after it had left. Cure: a batch collects
/// before it begins, and once if memory is refused.
#[test]
fn a_batch_collects_what_a_reader_left() {
    let _alone = alone();
    const KEYS: u32 = 120_000;
    let (index, tree) = of_capacity(64 << 20);
    (0..KEYS).for_each(|key| assert!(!tree.insert(&key.to_be_bytes(), &[1; 150]).expect("it is set")));
    let live = index.stats().node_bytes;
    assert!((20 << 20..30 << 20).contains(&live), "{live} bytes live");
    let overwrite = |from: u32| {
        let keys = (0..500).map(move |at| (from + at * 240) % KEYS);
        index.batch(|batch| set_all(batch, &tree, keys, &[2; 150]))
    };
    beside_a_reader(&tree, &[0; 4], || {
        let refused = (0..1000).find_map(|from| overwrite(from).err());
        assert!(matches!(refused, Some(Error::OutOfMemory(_))), "{refused:?}");
    });
    overwrite(7).expect("the reader has left");
    // A batch larger than what is free at once, in which each next leaf needs what is collected before.
    for from in 0..20 {
        overwrite(from).expect("nothing keeps memory");
    }
}

/// Cause: a batch retired its nodes under its own pin, so none could be freed. Cure: it retires them after its pin.
#[test]
fn a_range_delete_frees_its_memory() {
    let _alone = alone();
    let (index, tree) = new_index();
    (0..1_000_000_u32)
        .for_each(|key| assert!(!tree.insert(&key.to_be_bytes(), b"here and now").expect("it is set")));
    let before = index.memory_bytes();
    let removed = index.batch(|batch| batch.delete_range(&tree, Bound::Unbounded, Bound::Unbounded));
    assert_eq!(removed, Ok(1_000_000));
    let after = index.memory_bytes();
    assert!(before > 16 << 20 && after <= 10 << 20, "{before} bytes before, {after} after");
    index.trim();
    assert!(index.memory_bytes() <= 2 << 20, "{} bytes", index.memory_bytes());
}

/// Leaves much garbage in the name of a thread that has ended: overwrites beside a reader.
fn leave_garbage(tree: &Tree) {
    beside_a_reader(tree, b"oak", || {
        thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..400_u32 {
                    for key in 0..1000_u32 {
                        tree.insert(&key.to_be_bytes(), &[round as u8; 100]).expect("it is set");
                    }
                }
            });
        });
    });
}

/// Cause: a writer freed only what its own shard of threads had retired. Cure: it looks at all shards.
#[test]
fn any_writer_frees_what_a_slow_reader_kept() {
    let _alone = alone();
    let (index, tree) = new_index();
    tree.insert(b"oak", b"Quercus").expect("it is set");
    leave_garbage(&tree);
    let before = index.memory_bytes();
    // This thread has had its record all the time, so its shard is not that of the thread that has ended.
    for key in 0..6000_u32 {
        tree.insert(&(key % 1000).to_be_bytes(), &[7; 100]).expect("it is set");
    }
    let after = index.memory_bytes();
    assert!(before > 64 << 20 && after <= 16 << 20, "{before} bytes before, {after} after");
}

#[test]
fn trimming_frees_what_a_slow_reader_kept() {
    let _alone = alone();
    let (index, tree) = new_index();
    tree.insert(b"oak", b"Quercus").expect("it is set");
    leave_garbage(&tree);
    let before = index.memory_bytes();
    index.trim();
    let after = index.memory_bytes();
    assert!(before > 64 << 20 && after <= 8 << 20, "{before} bytes before, {after} after");
    assert_eq!(tree.get(b"oak").as_deref(), Some(&b"Quercus"[..]));
}

/// Bytes of nodes per byte of keys.
fn share(index: &Index, key_bytes: u64) -> f64 {
    index.stats().node_bytes as f64 / key_bytes as f64
}

/// A key of random bytes, so that keys have no common prefix and come in no order.
fn random_key(random: &mut Random, len: usize) -> Vec<u8> {
    let mut key = vec![0; len];
    random.fill(&mut key);
    key
}

/// Cause: a leaf had room for four more records of whatever length, and blocks above 16 KiB took whole spans of 64.
/// Cure: the room is limited in bytes, and there are classes up to 72 KiB.
#[test]
fn long_keys_take_little_more_than_their_bytes() {
    let _alone = alone();
    let mut too_much = Vec::new();
    for len in
        [520, 700, 1000, 2000, 4096, 6000, 8192, 9000, 12_000, 16_384, 20_000, 30_000, 40_960, 50_000, 65_535]
    {
        let (index, tree) = new_index();
        let mut random = Random(len as u64);
        let keys: Vec<_> = (0..(16 << 20) / len).map(|_| random_key(&mut random, len)).collect();
        keys.iter().for_each(|key| assert!(!tree.insert(key, b"here").expect("it is set")));
        let full = share(&index, (keys.len() * len) as u64);
        let (gone, left) = keys.split_at(keys.len() / 2);
        gone.iter().for_each(|key| assert!(tree.remove(key).expect("it is removed")));
        let half = share(&index, (left.len() * len) as u64);
        println!("keys of {len} bytes: {full:.2} times their bytes, {half:.2} after half were removed");
        if full > 1.5 || half > 1.5 {
            too_much.push(len);
        }
        left.iter().for_each(|key| assert!(tree.contains(key)));
    }
    assert!(too_much.is_empty(), "more than 1.5 times for keys of {too_much:?} bytes");
}

/// The same cause: few keys of 40 KiB filled the index.
#[test]
fn an_index_holds_nearly_its_capacity_of_long_keys() {
    let _alone = alone();
    let (_index, tree) = of_capacity(64 << 20);
    let mut random = Random(1);
    let mut bytes = 0;
    while tree.insert(&random_key(&mut random, 40 << 10), b"here").is_ok() {
        bytes += 40 << 10;
    }
    assert!(bytes >= 42 << 20, "full with {bytes} bytes of keys");
}

/// Cause: leaves and inner nodes were cut by the bytes of whole keys, so with a long common prefix a leaf had one key
/// and an inner node three children; and merges counted whole keys too, so empty leaves stayed. Cure: both count the
/// bytes after the prefix.
#[test]
fn a_long_common_prefix_is_stored_once_per_node() {
    let _alone = alone();
    for ascending in [true, false] {
        let (index, tree) = new_index();
        let mut random = Random(1);
        let mut key = random_key(&mut random, 60 << 10);
        let prefix_len = key.len();
        let mut numbers: Vec<u64> = (0..1000).map(|_| random.next()).collect();
        if ascending {
            numbers.sort_unstable();
        }
        let mut with = |number: u64, then: &mut dyn FnMut(&[u8])| {
            key.truncate(prefix_len);
            key.extend_from_slice(&number.to_be_bytes());
            then(&key);
        };
        for &number in &numbers {
            with(number, &mut |key| assert!(!tree.insert(key, b"here").expect("it is set")));
        }
        let full = index.stats().node_bytes;
        for &number in &numbers {
            with(number, &mut |key| assert_eq!(tree.get(key).as_deref(), Some(&b"here"[..])));
        }
        assert_eq!(tree.count(Bound::Unbounded, Bound::Unbounded), 1000);
        for &number in &numbers[..900] {
            with(number, &mut |key| assert!(tree.remove(key).expect("it is removed")));
        }
        let few = index.stats().node_bytes;
        for &number in &numbers[900..] {
            with(number, &mut |key| assert!(tree.remove(key).expect("it is removed")));
        }
        let empty = index.stats().node_bytes;
        println!("{full} bytes of nodes for 1,000 keys, {few} for 100, {empty} for none");
        assert!(full <= 40 * prefix_len as u64, "{full} bytes of nodes for 1,000 keys");
        assert!(few <= 12 * prefix_len as u64, "{few} bytes of nodes for 100 keys");
        assert!(empty <= 4096, "{empty} bytes of nodes for no key");
    }
}

/// A capacity that cannot be had is refused, where it was cut to 256 GiB.
#[test]
fn a_capacity_beyond_the_limit_is_refused() {
    for bytes in [MAX_CAPACITY_BYTES + 1, usize::MAX] {
        let made = Index::new(&Options { capacity_bytes: Some(bytes), ..Options::default() });
        let error = made.err().expect("it is refused");
        assert_eq!(error, Error::CapacityTooLarge(bytes));
        assert!(error.to_string().contains(&bytes.to_string()), "{error}");
    }
    drop(of_capacity(0));
}

/// Cause: a batch built each leaf anew that it changed, so a change cost several times as much as a single one. Cure:
/// it appends to leaves that others see, without showing it.
#[test]
fn a_batch_builds_few_leaves() {
    let _alone = alone();
    const KEYS: u32 = 200_000;
    const CHANGES: u32 = 500;
    let (index, tree) = new_index();
    (0..KEYS).for_each(|key| assert!(!tree.insert(&key.to_be_bytes(), &[1; 100]).expect("it is set")));
    let keys = || (0..CHANGES).map(|at| at * (KEYS / CHANGES));
    let before = index.stats().node_bytes;
    let added = index.batch(|batch| {
        set_all(batch, &tree, keys(), &[2; 100])?;
        Ok::<_, Error>(index.stats().node_bytes - before)
    });
    let leaf = 128 * 100;
    let added = added.expect("it is applied");
    assert!(added < u64::from(CHANGES) * leaf / 10, "{added} bytes of new nodes for {CHANGES} changes");
    assert!(keys().all(|key| tree.get(&key.to_be_bytes()).expect("it is there") == [2; 100]));
}

/// What a batch appends to leaves is seen by the batch alone, until it is applied; and never if it fails.
#[test]
fn what_a_batch_appends_is_its_own() {
    let _alone = alone();
    let (index, tree) = new_index();
    let mut expected: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    let mut random = Random(5);
    let long = |random: &mut Random| vec![random.next() as u8; [3, 100, 300, 5000][random.index(4)]];
    for _ in 0..3000 {
        let (key, value) = (random.below(6000).to_be_bytes()[5..].to_vec(), long(&mut random));
        tree.insert(&key, &value).expect("it is set");
        expected.insert(key, value);
    }
    let shown = |tree: &Tree| {
        let mut shown = BTreeMap::new();
        tree.scan(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |key, value| {
            shown.insert(key.to_vec(), value.to_vec());
            ControlFlow::Continue(())
        });
        shown
    };
    let mut snapshots = Vec::new();
    for round in 0..300 {
        if round % 7 == 0 {
            snapshots.truncate(1);
            snapshots.push((index.snapshot(), expected.clone()));
        }
        let (fails, len) = (round % 3 == 0, [1, 10, 300][round % 4 % 3]);
        let mut changed = expected.clone();
        let result = index.batch(|batch| {
            for _ in 0..len {
                let key = random.below(6000).to_be_bytes()[5..].to_vec();
                let value = (random.below(4) > 0).then(|| long(&mut random));
                let found = batch.apply(&tree, &key, |old| {
                    let effect = value.as_ref().map_or(Effect::Remove, |value| Effect::Put(value[..].into()));
                    (effect, old.map(<[u8]>::to_vec))
                })?;
                assert_eq!(found, changed.get(&key).cloned(), "the batch sees its changes");
                assert_eq!(tree.get(&key).as_deref(), expected.get(&key).map(Vec::as_slice), "others do not");
                match value {
                    Some(value) => drop(changed.insert(key, value)),
                    None => drop(changed.remove(&key)),
                }
            }
            if fails { Err(Error::OutOfMemory(0)) } else { Ok(()) }
        });
        assert_eq!(result.is_err(), fails);
        if !fails {
            expected = changed;
        }
        assert_eq!(shown(&tree), expected, "round {round}");
        assert_eq!(index.stats().keys, expected.len() as u64);
        // Ordinary writes go on in the leaves of a batch that failed.
        let (key, value) = (random.below(6000).to_be_bytes()[5..].to_vec(), long(&mut random));
        tree.insert(&key, &value).expect("it is set");
        expected.insert(key, value);
    }
    for (snapshot, expected) in snapshots {
        let mut shown = BTreeMap::new();
        snapshot.reader(&tree).scan(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |key, value| {
            shown.insert(key.to_vec(), value.to_vec());
            ControlFlow::Continue(())
        });
        assert_eq!(shown, expected);
    }
    index
        .batch(|batch| batch.delete_range(&tree, Bound::Unbounded, Bound::Unbounded))
        .expect("it is applied");
    let stats = index.stats();
    assert_eq!((stats.keys, stats.blob_bytes), (0, 0), "every value was freed, once");
}

/// Removals beside readers cut the reserve of a full index into blocks of many sizes. Once no block served, all were
/// refused for ever.
#[test]
fn a_full_index_takes_removals_for_ever() {
    let _alone = alone();
    let (_other, held) = new_index();
    held.insert(b"key", b"value").unwrap();
    for seed in [2, 5, 11, 14] {
        let mut random = Random(seed);
        let (_index, tree) = of_capacity(8 << 20);
        let set_one = |keys: &mut Vec<Vec<u8>>, random: &mut Random| {
            let (key, value) = (random_key(random, 8), random_key(random, 200));
            let set = tree.insert(&key, &value).is_ok();
            keys.extend(set.then_some(key));
            set
        };
        let mut keys = Vec::new();
        while set_one(&mut keys, &mut random) {}
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = Random(!seed);
                let wait = |micros| thread::park_timeout(Duration::from_micros(micros));
                while !done.load(Ordering::Relaxed) {
                    held.get_with(b"key", |_| wait(random.below(12_000)));
                    wait(random.below(200));
                }
            });
            let turns = (0..2_500).all(|_| {
                let key = keys.swap_remove(random.index(keys.len()));
                // An attempt gives up after a quarter of a second, and the reader never stays so long.
                let removed = (0..20).any(|_| tree.remove(&key).is_ok());
                set_one(&mut keys, &mut random);
                removed
            });
            done.store(true, Ordering::Relaxed);
            assert!(turns, "seed {seed}: refused with {} keys", keys.len());
        });
    }
}

/// Options of an index that leaves its memory.
fn leaving(spare: &Spare) -> Options {
    Options { capacity_bytes: Some(64 << 20), spare: Some(spare.clone()), ..Options::default() }
}

/// An index in memory that others have used has its own content only, gives chunks back when it is trimmed, and leaves
/// what it has.
#[test]
fn an_index_fills_the_memory_that_another_one_has_left() {
    let _alone = alone();
    let spare = Spare::new(u64::MAX);
    let waiting = || spare.committed().total_bytes() as u64;
    let mut random = Random(7);
    let mut left = 0;
    for round in 0..8_u64 {
        let index = Index::new(&leaving(&spare)).expect("an index");
        assert_eq!(waiting(), 0, "it has taken the memory");
        assert!(index.memory_bytes() >= left, "{} of {left} bytes", index.memory_bytes());
        let tree = index.create_tree().expect("a tree");
        let mut oracle = BTreeMap::new();
        for _ in 0..40_000 {
            let key = (random.below(20_000) as u32).to_be_bytes();
            if random.below(4) == 0 {
                assert_eq!(tree.remove(&key).expect("it is removed"), oracle.remove(&key).is_some());
            } else {
                let value = vec![random.below(256) as u8; 1 + random.below(300) as usize];
                tree.insert(&key, &value).expect("it is set");
                oracle.insert(key, value);
            }
        }
        let mut expected = oracle.iter();
        tree.scan(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |key, value| {
            let (wanted, content) = expected.next().expect("no more than was set");
            assert_eq!((key, value.as_slice()), (&wanted[..], &content[..]));
            ControlFlow::Continue(())
        });
        assert!(expected.next().is_none(), "round {round}: all of it is there");
        if round == 4 {
            for key in oracle.keys() {
                assert!(tree.remove(key).expect("it is removed"));
            }
            let before = index.memory_bytes();
            index.trim();
            assert!(index.memory_bytes() <= before / 2, "{} of {before} bytes", index.memory_bytes());
        }
        let had = index.memory_bytes();
        drop(tree);
        assert_eq!(waiting(), 0, "the index is there still");
        drop(index);
        left = waiting();
        assert!(left > 0 && left <= had, "round {round}: {left} of {had} bytes are left");
    }
    spare.clear();
    assert_eq!(waiting(), 0);
}

/// A snapshot has the content of an index that was dropped. So the memory is not for others yet.
#[test]
fn memory_that_a_snapshot_needs_is_not_left() {
    let _alone = alone();
    let spare = Spare::new(u64::MAX);
    let index = Index::new(&leaving(&spare)).expect("an index");
    let tree = index.create_tree().expect("a tree");
    tree.insert(b"oak", b"Quercus").expect("it is set");
    let snapshot = index.snapshot();
    let reader = snapshot.reader(&tree);
    drop((tree, index));
    assert_eq!(spare.committed().total_bytes(), 0);
    let other = Index::new(&leaving(&spare)).expect("an index");
    other.create_tree().expect("a tree").insert(b"oak", b"Eiche").expect("it is set");
    drop(other);
    assert_eq!(reader.get(b"oak").expect("it is there"), *b"Quercus");
    spare.clear();
    drop((reader, snapshot));
    assert!(spare.committed().total_bytes() > 0);
}

/// What waits has a limit, and nobody gets memory of another size.
#[test]
fn memory_beyond_the_limit_or_of_another_size_goes_back() {
    let _alone = alone();
    let waits_after = |most: u64, capacity: usize| {
        let spare = Spare::new(most);
        let index = Index::new(&leaving(&spare)).expect("an index");
        let tree = index.create_tree().expect("a tree");
        for key in 0..50_000_u32 {
            tree.insert(&key.to_be_bytes(), &[1; 100]).expect("it is set");
        }
        let bytes = index.memory_bytes();
        drop((tree, index));
        let waited = spare.committed().total_bytes() as u64;
        let next =
            Index::new(&Options { capacity_bytes: Some(capacity), ..leaving(&spare) }).expect("an index");
        assert_eq!(spare.committed().total_bytes(), 0, "nothing waits that nobody takes");
        (bytes, waited, next.memory_bytes())
    };
    let (bytes, waited, taken) = waits_after(u64::MAX, 64 << 20);
    assert_eq!((waited, taken), (bytes, bytes));
    assert_eq!(waits_after(bytes, 64 << 20), (bytes, bytes, bytes), "exactly the limit");
    assert_eq!(waits_after(bytes - 1, 64 << 20), (bytes, 0, 0), "one byte more than the limit");
    assert_eq!(waits_after(u64::MAX, 128 << 20), (bytes, bytes, 0), "another size");
}
