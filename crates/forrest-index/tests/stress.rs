//! Concurrent threads on one index, with checks that hold at every moment. `cargo xtask races` runs them under
//! AddressSanitizer and ThreadSanitizer.
//!
//! `FORREST_STRESS_SECONDS` sets the time of all tests together (default 5), `FORREST_STRESS_SEED` the seed of the
//! random numbers. A seed does not repeat the interleaving of the threads.

use forrest_base::random::{Random, STEP, mix};
use forrest_index::{Batch, Direction, Effect, Error, Index, Options, Reader, Tree};
use forrest_testing::sized;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread::Scope;
use std::time::{Duration, Instant};

/// How many tests share the time.
const TESTS: u32 = 6;

/// A run of one test: the index, when it ends, and random numbers for each of its threads.
struct Stress {
    index: Index,
    seed: u64,
    until: Instant,
    /// Set by the first thread that panics, so that the others end too.
    stop: AtomicBool,
    threads: AtomicU64,
    _alone: MutexGuard<'static, ()>,
}

/// One test at a time: a thread of another test, suspended inside a call, would delay reclamation at the end.
static ALONE: Mutex<()> = Mutex::new(());

struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

impl Stress {
    fn new(name: &str) -> Stress {
        let alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
        let seconds = forrest_testing::number("FORREST_STRESS_SECONDS").unwrap_or(sized(2, 5));
        let time = Duration::from_secs(seconds) / TESTS;
        let seed = forrest_testing::number("FORREST_STRESS_SEED").unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.map_or(1, |since| since.as_nanos() as u64)
        });
        println!("{name}: FORREST_STRESS_SEED={seed}, {} ms", time.as_millis());
        Stress {
            index: Index::new(&Options { capacity_bytes: Some(512 << 20), ..Options::default() }).unwrap(),
            seed,
            until: Instant::now() + time,
            stop: AtomicBool::new(false),
            threads: AtomicU64::new(1),
            _alone: alone,
        }
    }

    fn more(&self) -> bool {
        !self.stop.load(Ordering::Relaxed) && Instant::now() < self.until
    }

    /// Runs `body` repeatedly in a new thread, with random numbers and the round.
    fn spawn<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        mut body: impl FnMut(&mut Random, u64) + Send + 'scope,
    ) {
        let thread = self.threads.fetch_add(1, Ordering::Relaxed);
        let mut random = Random(mix(self.seed ^ thread));
        scope.spawn(move || {
            let _stop = StopOnPanic(&self.stop);
            let mut round = 0;
            // At least once, however slow the machine.
            while round == 0 || self.more() {
                body(&mut random, round);
                round += 1;
            }
        });
    }

    /// Removes all keys and checks that the memory is freed.
    fn end(self, trees: &[&Tree], node_bytes_max: u64) {
        for tree in trees {
            let keys = tree.count(Bound::Unbounded, Bound::Unbounded);
            let removed: Result<u64, Error> =
                self.index.batch(|batch| batch.delete_range(tree, Bound::Unbounded, Bound::Unbounded));
            assert_eq!(removed, Ok(keys));
            // The last removal may leave two empty leaves as neighbours; the next one merges them.
            tree.insert(b"", b"").unwrap();
            tree.remove(b"").unwrap();
        }
        let stats = self.index.stats();
        assert_eq!((stats.keys, stats.blob_bytes, stats.snapshots), (0, 0, 0));
        let left = stats.node_bytes;
        assert!(left <= node_bytes_max, "{left} bytes of nodes left in an empty index");
    }
}

/// Keys of three shapes by number, in the order of the numbers or not: words, strings, and mixed lengths.
fn key(shape: u64, n: u64) -> Vec<u8> {
    match shape {
        0 => n.to_be_bytes().to_vec(),
        1 => n.wrapping_mul(STEP).to_be_bytes().to_vec(),
        2 => format!("/usr/share/doc/package-{:03}/file-{n:05}.txt", n % 37).into_bytes(),
        _ => {
            let mut key = vec![b'a' + (n % 3) as u8; (n % 41) as usize];
            key.extend(n.to_le_bytes());
            key
        }
    }
}
const SHAPES: u64 = 4;

fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// A value whose bytes all follow from its key and generation. The generation also decides its length: inside the
/// record, at the limit of a shared allocation, or far beyond it.
fn value(key: &[u8], generation: u64) -> Vec<u8> {
    let mixed = hash(key).wrapping_add(generation.wrapping_mul(STEP));
    let more = match mixed >> 32 & 31 {
        0 => 223 + mixed % 3,
        1 => 3_000 + mixed % 7_000,
        2 => 300,
        3..12 => mixed % 60,
        _ => 0,
    };
    let mut value = hash(key).to_le_bytes().to_vec();
    value.extend(generation.to_le_bytes());
    value.extend((0..more).map(|at| (mixed >> 8) as u8 ^ at as u8));
    value
}

/// The generation of a value, which must be whole and belong to the key.
fn generation(key: &[u8], seen: &[u8]) -> u64 {
    assert!(seen.len() >= 16, "{} bytes for {}", seen.len(), key.escape_ascii());
    let generation = u64::from_le_bytes(seen[8..16].try_into().unwrap());
    assert!(value(key, generation) == seen, "a value of {} that is none", key.escape_ascii());
    generation
}

fn scan(reader: &Reader, direction: Direction, mut see: impl FnMut(&[u8], &[u8])) {
    reader.scan(Bound::Unbounded, Bound::Unbounded, direction, |key, value| {
        see(key, &value);
        ControlFlow::Continue(())
    });
}

/// Scans and checks order and values; returns the number of keys for which `counts` is true.
fn check_scan(reader: &Reader, direction: Direction, mut counts: impl FnMut(&[u8]) -> bool) -> u64 {
    let mut last: Option<Vec<u8>> = None;
    let mut count = 0;
    scan(reader, direction, |key, value| {
        generation(key, value);
        if let Some(last) = &last {
            let ordered = match direction {
                Direction::Forward => last[..] < *key,
                Direction::Backward => last[..] > *key,
            };
            assert!(ordered, "{} after {}", key.escape_ascii(), last.escape_ascii());
        }
        last = Some(key.to_vec());
        count += u64::from(counts(key));
    });
    count
}

fn direction(random: &mut Random) -> Direction {
    if random.below(2) == 0 { Direction::Forward } else { Direction::Backward }
}

/// Writers of interleaved keys in shared leaves find their own keys as they left them.
#[test]
fn writers_keep_their_own_keys() {
    const WRITERS: u64 = 3;
    const SPAN: u64 = 1500;
    let stress = Stress::new("writers_keep_their_own_keys");
    let trees: Vec<Tree> = (0..SHAPES).map(|_| stress.index.create_tree().unwrap()).collect();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let mut own: Vec<BTreeMap<u64, u64>> = vec![BTreeMap::new(); SHAPES as usize];
            let trees = &trees;
            stress.spawn(scope, move |random, round| {
                // Grows and shrinks, so that leaves are split and merged.
                let shrinks = round / 4000 % 2 == 1;
                let shape = random.below(SHAPES);
                let (tree, own) = (&trees[shape as usize], &mut own[shape as usize]);
                let n = random.below(SPAN) * WRITERS + writer;
                let key = key(shape, n);
                let removes = random.below(10) < if shrinks { 7 } else { 3 };
                match random.below(4) {
                    0 => {
                        let seen = tree.get(&key).map(|value| generation(&key, &value));
                        assert_eq!(seen, own.get(&n).copied(), "{}", key.escape_ascii());
                    }
                    1 => assert_eq!(tree.contains(&key), own.contains_key(&n)),
                    _ if removes => assert_eq!(tree.remove(&key).unwrap(), own.remove(&n).is_some()),
                    _ => {
                        let was = tree.insert(&key, &value(&key, round)).unwrap();
                        assert_eq!(was, own.insert(n, round).is_some(), "{}", key.escape_ascii());
                    }
                }
                if round % 5000 == 4999 {
                    let keys: Vec<_> = own.keys().map(|&n| self::key(shape, n)).collect();
                    let mut generations = own.values();
                    tree.multi_get(&keys, |at, value| {
                        let seen = value.map(|value| generation(&keys[at], &value));
                        assert_eq!(seen, generations.next().copied());
                    });
                }
            });
        }
        for _ in 0..2 {
            stress.spawn(scope, |random, _| {
                let shape = random.below(SHAPES);
                let tree = &trees[shape as usize];
                let keys: Vec<_> = (0..40).map(|_| key(shape, random.below(SPAN * WRITERS))).collect();
                tree.multi_get(&keys, |at, value| {
                    value.map(|value| generation(&keys[at], &value));
                });
                for key in &keys {
                    // Owned, and checked after the call, when writers may have replaced it.
                    if let Some(value) = tree.get(key) {
                        generation(key, &value);
                    }
                    tree.get_with(key, |value| generation(key, value));
                }
            });
        }
    });
    stress.end(&trees.iter().collect::<Vec<_>>(), 64 << 10);
}

/// Scans come in strict order and show each key that is present all the time exactly once.
#[test]
fn scans_see_what_stays() {
    const SPAN: u64 = 2000;
    let stress = Stress::new("scans_see_what_stays");
    let trees: Vec<Tree> = (0..SHAPES).map(|_| stress.index.create_tree().unwrap()).collect();
    let stays = |n: u64| n.is_multiple_of(5);
    for shape in 0..SHAPES {
        for n in (0..SPAN).filter(|&n| stays(n)) {
            let key = key(shape, n);
            trees[shape as usize].insert(&key, &value(&key, 0)).unwrap();
        }
    }
    let permanent: Vec<std::collections::HashSet<Vec<u8>>> =
        (0..SHAPES).map(|shape| (0..SPAN).filter(|&n| stays(n)).map(|n| key(shape, n)).collect()).collect();
    std::thread::scope(|scope| {
        let (trees, permanent) = (&trees, &permanent);
        for _ in 0..2 {
            stress.spawn(scope, move |random, round| {
                let shape = random.below(SHAPES);
                let tree = &trees[shape as usize];
                // Runs of neighbours come and go, so that whole leaves do.
                let first = random.below(SPAN);
                let removes = random.below(2) == 0;
                for n in first..(first + random.below(300)).min(SPAN) {
                    let key = key(shape, n);
                    if removes && !stays(n) {
                        tree.remove(&key).unwrap();
                    } else if !removes || random.below(4) == 0 {
                        tree.insert(&key, &value(&key, round)).unwrap();
                    }
                }
            });
        }
        for _ in 0..2 {
            stress.spawn(scope, move |random, _| {
                let shape = random.below(SHAPES) as usize;
                let (tree, permanent) = (&trees[shape], &permanent[shape]);
                let direction = direction(random);
                let seen = check_scan(tree, direction, |key| permanent.contains(key));
                assert_eq!(seen, permanent.len() as u64, "{direction:?}");
                assert!(tree.count(Bound::Unbounded, Bound::Unbounded) >= permanent.len() as u64);
            });
        }
        stress.spawn(scope, move |random, _| {
            // A cursor changes direction in the middle of a scan.
            let shape = random.below(SHAPES);
            let tree = &trees[shape as usize];
            let mut cursor = tree.cursor();
            let start = key(shape, random.below(SPAN));
            let mut more = cursor.seek(&start);
            let mut last = start;
            let mut seen = Vec::new();
            while more && seen.len() < 200 {
                let key = cursor.key().unwrap().to_vec();
                assert!(key > last || (seen.is_empty() && key >= last));
                generation(&key, &cursor.value().unwrap());
                seen.push(key.clone());
                last = key;
                more = cursor.next();
            }
            let want = permanent[shape as usize].iter();
            if let (Some(first), Some(last)) = (seen.first(), seen.last()) {
                let want = want.filter(|key| *key >= first && *key <= last).count();
                let got = seen.iter().filter(|key| permanent[shape as usize].contains(*key)).count();
                assert_eq!(got, want);
            }
            if more {
                let mut before = cursor.key().unwrap().to_vec();
                for _ in 0..50 {
                    if !cursor.prev() {
                        break;
                    }
                    assert!(cursor.key().unwrap() < &before[..]);
                    before = cursor.key().unwrap().to_vec();
                }
            }
        });
    });
    stress.end(&trees.iter().collect::<Vec<_>>(), 64 << 10);
}

fn number(bytes: &[u8]) -> i64 {
    i64::from_be_bytes(bytes.try_into().expect("a counter has eight bytes"))
}

/// Adds to a counter and returns the new value.
fn add(old: Option<&[u8]>, delta: i64) -> (Effect<'static>, i64) {
    let new = old.map_or(0, number) + delta;
    (Effect::Put(new.to_be_bytes().to_vec().into()), new)
}

/// Changes by `apply` from many threads add up, and a reader never sees a counter go down.
#[test]
fn counters_add_up() {
    const COUNTERS: u64 = 300;
    let stress = Stress::new("counters_add_up");
    let tree = stress.index.create_tree().unwrap();
    let sums: Vec<AtomicU64> = (0..COUNTERS).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let (tree, sums, index) = (&tree, &sums, &stress.index);
            stress.spawn(scope, move |random, round| {
                let n = random.below(COUNTERS);
                let (key, delta) = (key(n % SHAPES, n), random.below(9) as i64 + 1);
                sums[n as usize].fetch_add(delta as u64, Ordering::Relaxed);
                let mut runs = 0;
                if writer == 0 && round % 100 == 0 {
                    let changed: Result<i64, Error> =
                        index.batch(|batch| batch.apply(tree, &key, |old| add(old, delta)));
                    changed.unwrap();
                } else {
                    tree.apply(&key, |old| {
                        runs += 1;
                        add(old, delta)
                    })
                    .unwrap();
                    assert_eq!(runs, 1, "the decision is taken once");
                }
                // Neighbours come and go.
                let mut beside = key.clone();
                beside.push(writer);
                if round % 2 == 0 {
                    tree.insert(&beside, b"beside").unwrap();
                } else {
                    tree.remove(&beside).unwrap();
                }
            });
        }
        let mut last = vec![0; COUNTERS as usize];
        let tree = &tree;
        stress.spawn(scope, move |random, _| {
            let n = random.below(COUNTERS);
            let seen = tree.get(&key(n % SHAPES, n)).map_or(0, |value| number(&value));
            assert!(seen >= last[n as usize], "counter {n} went from {} to {seen}", last[n as usize]);
            last[n as usize] = seen;
        });
    });
    for n in 0..COUNTERS {
        let seen = tree.get(&key(n % SHAPES, n)).map_or(0, |value| number(&value) as u64);
        assert_eq!(seen, sums[n as usize].load(Ordering::Relaxed), "counter {n}");
    }
    stress.end(&[&tree], 16 << 10);
}

/// A snapshot taken while writers run does not change.
#[test]
fn snapshots_do_not_change() {
    const SPAN: u64 = 800;
    let stress = Stress::new("snapshots_do_not_change");
    let trees: Vec<Tree> = (0..SHAPES).map(|_| stress.index.create_tree().unwrap()).collect();
    let all = |reader: &Reader| {
        let mut pairs = Vec::new();
        scan(reader, Direction::Forward, |key, value| {
            pairs.push((key.to_vec(), generation(key, value)));
        });
        pairs
    };
    std::thread::scope(|scope| {
        let (trees, index) = (&trees, &stress.index);
        for _ in 0..2 {
            stress.spawn(scope, move |random, round| {
                let shape = random.below(SHAPES);
                let key = key(shape, random.below(SPAN));
                if random.below(100) < if round / 3000 % 2 == 0 { 35 } else { 65 } {
                    trees[shape as usize].remove(&key).unwrap();
                } else {
                    trees[shape as usize].insert(&key, &value(&key, round)).unwrap();
                }
            });
        }
        for _ in 0..2 {
            let mut held = Vec::new();
            stress.spawn(scope, move |random, round| {
                let snapshot = index.snapshot();
                let shape = random.below(SHAPES) as usize;
                let reader = snapshot.reader(&trees[shape]);
                let first = all(&reader);
                let mut backward = Vec::new();
                scan(&reader, Direction::Backward, |key, value| {
                    backward.push((key.to_vec(), generation(key, value)));
                });
                backward.reverse();
                assert!(first == backward, "the way back differs");
                let keys: Vec<_> = first.iter().map(|(key, _)| key).collect();
                reader.multi_get(&keys, |at, value| {
                    let value = value.expect("a key of the snapshot is there");
                    assert_eq!(generation(keys[at], &value), first[at].1);
                });
                assert_eq!(reader.count(Bound::Unbounded, Bound::Unbounded), first.len() as u64);
                // Some are held for a while and dropped out of order.
                held.push((snapshot, reader, first));
                if held.len() > 3 || round % 3 == 0 {
                    let at = random.below(held.len() as u64) as usize;
                    let (snapshot, reader, first) = held.swap_remove(at);
                    drop(snapshot);
                    assert!(all(&reader) == first, "a snapshot changed");
                }
            });
        }
    });
    stress.end(&trees.iter().collect::<Vec<_>>(), 64 << 10);
}

const ACCOUNTS: u64 = 120;
const TOTAL: i64 = ACCOUNTS as i64 * 1000;

/// Moves an amount from an account to another, in one tree or two.
fn move_amount(batch: &mut Batch<'_>, trees: &[Tree], random: &mut Random) -> Result<(), Error> {
    let mut account = || {
        let n = random.below(ACCOUNTS);
        (&trees[(n % 2) as usize], key(n % SHAPES, n))
    };
    let ((from, from_key), (to, to_key)) = (account(), account());
    let amount = random.below(100) as i64;
    batch.apply(from, &from_key, |old| add(old, -amount))?;
    batch.apply(to, &to_key, |old| add(old, amount))?;
    Ok(())
}

fn sum(reader: &Reader) -> i64 {
    let mut sum = 0;
    scan(reader, Direction::Forward, |key, value| {
        if value.len() == 8 && !key.starts_with(b"noise") {
            sum += number(value);
        }
    });
    sum
}

/// Batches that move amounts keep the sum in every snapshot, and later reads see a batch in all trees once one read
/// has seen it in one.
#[test]
fn batches_are_seen_whole() {
    let stress = Stress::new("batches_are_seen_whole");
    let trees: Vec<Tree> = (0..2).map(|_| stress.index.create_tree().unwrap()).collect();
    // Two more trees, each with the number of the last batch, which make the order of batches visible.
    let marks: Vec<Tree> = (0..2).map(|_| stress.index.create_tree().unwrap()).collect();
    for n in 0..ACCOUNTS {
        trees[(n % 2) as usize].insert(&key(n % SHAPES, n), &1000_i64.to_be_bytes()).unwrap();
    }
    std::thread::scope(|scope| {
        let (trees, marks, index) = (&trees, &marks, &stress.index);
        for _ in 0..2 {
            stress.spawn(scope, move |random, round| {
                let fails = random.below(4) == 0;
                let result: Result<(), Error> = index.batch(|batch| {
                    (0..random.below(5)).try_for_each(|_| move_amount(batch, trees, random))?;
                    for mark in marks {
                        batch.apply(mark, b"mark", |old| add(old, 1))?;
                    }
                    if fails { Err(Error::OutOfMemory(round as usize)) } else { Ok(()) }
                });
                assert_eq!(result, if fails { Err(Error::OutOfMemory(round as usize)) } else { Ok(()) });
            });
        }
        // Concurrent ordinary writers, in the same leaves.
        stress.spawn(scope, move |random, _| {
            let key = [b"noise", &key(0, random.below(500))[..]].concat();
            let tree = &trees[random.below(2) as usize];
            if random.below(2) == 0 {
                tree.insert(&key, &[7; 8]).unwrap();
            } else {
                tree.remove(&key).unwrap();
            }
        });
        stress.spawn(scope, move |_, _| {
            let snapshot = index.snapshot();
            let sums = [0, 1].map(|tree| sum(&snapshot.reader(&trees[tree])));
            assert_eq!(sums[0] + sums[1], TOTAL, "in a snapshot");
            let marks = [0, 1]
                .map(|tree| snapshot.reader(&marks[tree]).get(b"mark").map_or(0, |value| number(&value)));
            assert_eq!(marks[0], marks[1]);
        });
        for first in 0..2_usize {
            let mut last = 0;
            stress.spawn(scope, move |_, _| {
                for tree in [first, 1 - first] {
                    let seen = marks[tree].get(b"mark").map_or(0, |value| number(&value));
                    assert!(seen >= last, "after batch {last} was seen, tree {tree} was at batch {seen}");
                    last = seen;
                }
            });
        }
    });
    assert_eq!(sum(&trees[0]) + sum(&trees[1]), TOTAL);
    stress.end(&[&trees[0], &trees[1], &marks[0], &marks[1]], 64 << 10);
}

/// Everything at once: single changes, batches with ranges removed, batches that fail, snapshots, scans.
#[test]
fn everything_at_once() {
    const SPAN: u64 = 1500;
    let stress = Stress::new("everything_at_once");
    let trees: Vec<Tree> = (0..SHAPES).map(|_| stress.index.create_tree().unwrap()).collect();
    std::thread::scope(|scope| {
        let (trees, index) = (&trees, &stress.index);
        for writer in 0..2_u64 {
            stress.spawn(scope, move |random, round| {
                let shape = random.below(SHAPES);
                let tree = &trees[shape as usize];
                let key = key(shape, random.below(SPAN));
                match random.below(if writer == 0 { 60 } else { 200 }) {
                    0 => {
                        let other = self::key(shape, random.below(SPAN));
                        let (lower, upper) = if key < other { (key, other) } else { (other, key) };
                        if lower == upper {
                            return;
                        }
                        let bounds = (Bound::Included(&lower[..]), Bound::Excluded(&upper[..]));
                        let fails = random.below(2) == 0;
                        let result: Result<(), Error> = index.batch(|batch| {
                            let before = tree.count(bounds.0, bounds.1);
                            assert_eq!(batch.delete_range(tree, bounds.0, bounds.1)?, before);
                            batch.apply(tree, &lower, |old| {
                                assert!(old.is_none(), "it was removed in this batch");
                                (Effect::Put(value(&lower, round).into()), ())
                            })?;
                            // Not visible yet.
                            assert_eq!(tree.count(bounds.0, bounds.1), before);
                            if fails { Err(Error::OutOfMemory(1)) } else { Ok(()) }
                        });
                        assert_eq!(result.is_err(), fails);
                    }
                    1 => {
                        let fails = random.below(2) == 0;
                        let result: Result<(), Error> = index.batch(|batch| {
                            for _ in 0..random.below(200) {
                                let shape = random.below(SHAPES);
                                let key = self::key(shape, random.below(SPAN));
                                let removes = random.below(2) == 0;
                                batch.apply(&trees[shape as usize], &key, |old| {
                                    old.map(|old| generation(&key, old));
                                    let new = || Effect::Put(value(&key, round).into());
                                    (if removes { Effect::Remove } else { new() }, ())
                                })?;
                            }
                            if fails { Err(Error::OutOfMemory(1)) } else { Ok(()) }
                        });
                        assert_eq!(result.is_err(), fails);
                    }
                    2..20 => drop(tree.remove(&key).unwrap()),
                    20 => assert_eq!(tree.insert(&vec![0; 65_536], b""), Err(Error::KeyTooLong(65_536))),
                    _ => drop(tree.insert(&key, &value(&key, round)).unwrap()),
                }
            });
        }
        stress.spawn(scope, move |random, _| {
            let snapshot = index.snapshot();
            let shape = random.below(SHAPES) as usize;
            let reader = snapshot.reader(&trees[shape]);
            let forward = check_scan(&reader, Direction::Forward, |_| true);
            assert_eq!(check_scan(&reader, Direction::Backward, |_| true), forward);
            assert_eq!(reader.count(Bound::Unbounded, Bound::Unbounded), forward);
        });
        for _ in 0..2 {
            stress.spawn(scope, move |random, _| {
                let shape = random.below(SHAPES);
                let tree = &trees[shape as usize];
                check_scan(tree, direction(random), |_| true);
                let keys: Vec<_> = (0..70).map(|_| key(shape, random.below(SPAN))).collect();
                tree.multi_get(&keys, |at, value| {
                    value.map(|value| generation(&keys[at], &value));
                });
            });
        }
        // Trees come and go, and memory is counted, all the time.
        stress.spawn(scope, move |random, round| {
            let tree = index.create_tree().unwrap();
            let snapshot = (round % 3 == 0).then(|| index.snapshot());
            for n in 0..random.below(400) {
                let key = key(n % SHAPES, n);
                tree.insert(&key, &value(&key, round)).unwrap();
            }
            check_scan(&tree, Direction::Forward, |_| true);
            if let Some(snapshot) = snapshot {
                assert_eq!(snapshot.reader(&tree).count(Bound::Unbounded, Bound::Unbounded), 0);
            }
            index.stats();
        });
    });
    stress.end(&trees.iter().collect::<Vec<_>>(), 64 << 10);
}
