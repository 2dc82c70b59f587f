//! The index against `BTreeMap`, driven by random operations. A failure prints its seed; set
//! `FORREST_INDEX_SEED` to run that one again, `FORREST_INDEX_SEEDS` for how many.

use forrest_base::random::{Random, STEP};
use forrest_index::{Batch, Direction, Effect, Error, Found, Index, Options, Reader, Snapshot, Tree};
use forrest_testing::{number, sized};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One test at a time: a pin of another test would delay reclamation in this one.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// What keys and values look like, by number.
#[derive(Clone, Copy)]
struct Shape {
    keys: u64,
    values: u64,
}

/// Random keys, values and choices.
trait Draw {
    /// A key; there are few enough that operations meet.
    fn key(&mut self, shape: Shape, span: u64) -> Vec<u8>;
    fn value(&mut self, shape: Shape) -> Vec<u8>;
}

impl Draw for Random {
    fn key(&mut self, shape: Shape, span: u64) -> Vec<u8> {
        let n = self.below(span);
        match shape.keys {
            0 => n.wrapping_mul(STEP).to_be_bytes().to_vec(),
            1 => n.to_be_bytes().to_vec(),
            2 => format!("/usr/share/doc/package-{}/file-{}.txt", n % 37, n).into_bytes(),
            3 => vec![0xff; (n % 300) as usize],
            4 => {
                let mut key = vec![b'a'; (n % 40) as usize];
                key.extend((n / 40).to_le_bytes());
                key.truncate((n % 47) as usize);
                key
            }
            6 => [*b"prefixes", n.wrapping_mul(STEP).to_be_bytes()].concat(),
            _ => match self.below(50) {
                0 => vec![b'z'; 65_535 - (n % 3) as usize],
                1 => vec![b'y'; 20_000 + (n % 5) as usize],
                _ => self.key(Shape { keys: n % 5, ..shape }, span),
            },
        }
    }

    fn value(&mut self, shape: Shape) -> Vec<u8> {
        let len = match (shape.values, self.below(40)) {
            // Leaves with records of one size: of a word, of more than a line, with shared allocations, nearly.
            (1, _) => 8,
            (2, _) => 100,
            (3, _) => 300,
            (4, _) => 5 + self.below(3),
            (_, 0) => 239 + self.below(3),
            (_, 1) => 5000 + self.below(10),
            (_, 2..12) => self.below(60),
            _ => 8,
        };
        let fill = self.next() as u8;
        (0..len).map(|i| fill.wrapping_add(i as u8)).collect()
    }
}

fn bound(kind: u64, key: &[u8]) -> Bound<&[u8]> {
    match kind {
        0 => Bound::Unbounded,
        1 => Bound::Included(key),
        _ => Bound::Excluded(key),
    }
}

fn range<'m>(
    model: &'m Model,
    lower: Bound<&'m [u8]>,
    upper: Bound<&'m [u8]>,
) -> Box<dyn DoubleEndedIterator<Item = (&'m Vec<u8>, &'m Vec<u8>)> + 'm> {
    let empty = match (lower, upper) {
        (Bound::Included(l), Bound::Included(u)) => l > u,
        (Bound::Included(l) | Bound::Excluded(l), Bound::Included(u) | Bound::Excluded(u)) => l >= u,
        _ => false,
    };
    if empty { Box::new(std::iter::empty()) } else { Box::new(model.range::<[u8], _>((lower, upper))) }
}

fn check_all(reader: &Reader, model: &Model) {
    for direction in [Direction::Forward, Direction::Backward] {
        let mut seen = Vec::new();
        reader.scan(Bound::Unbounded, Bound::Unbounded, direction, |k, v| {
            seen.push((k.to_vec(), v.to_vec()));
            ControlFlow::Continue(())
        });
        if direction == Direction::Backward {
            seen.reverse();
        }
        let want: Vec<_> = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        assert!(seen == want, "{direction:?}: {} pairs, want {}", seen.len(), want.len());
    }
    assert_eq!(reader.count(Bound::Unbounded, Bound::Unbounded), model.len() as u64);
}

fn check_some(random: &mut Random, reader: &Reader, model: &Model, shape: Shape, span: u64) {
    match random.below(5) {
        0 => {
            let (a, b) = (random.key(shape, span), random.key(shape, span));
            let (lower, upper) = (bound(random.below(3), &a), bound(random.below(3), &b));
            let limit = random.below(200) as usize;
            for direction in [Direction::Forward, Direction::Backward] {
                let mut seen = Vec::new();
                reader.scan(lower, upper, direction, |k, v| {
                    seen.push((k.to_vec(), v.to_vec()));
                    if seen.len() > limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                });
                let pairs = range(model, lower, upper).map(|(k, v)| (k.clone(), v.clone()));
                let want: Vec<_> = match direction {
                    Direction::Forward => pairs.take(limit + 1).collect(),
                    Direction::Backward => pairs.rev().take(limit + 1).collect(),
                };
                assert_eq!(seen, want, "{direction:?} {lower:?} {upper:?}");
            }
            assert_eq!(reader.count(lower, upper), range(model, lower, upper).count() as u64);
        }
        1 => {
            let mut cursor = reader.cursor();
            let key = random.key(shape, span);
            let mut at = if random.below(2) == 0 {
                cursor.seek(&key);
                range(model, Bound::Included(&key), Bound::Unbounded).next()
            } else {
                cursor.seek_for_prev(&key);
                range(model, Bound::Unbounded, Bound::Included(&key)).next_back()
            };
            for _ in 0..random.below(60) {
                assert_eq!(cursor.key(), at.map(|(k, _)| &k[..]));
                assert_eq!(cursor.value().as_deref(), at.map(|(_, v)| &v[..]));
                let Some((key, _)) = at else { break };
                at = if random.below(4) > 0 {
                    cursor.next();
                    range(model, Bound::Excluded(key), Bound::Unbounded).next()
                } else {
                    cursor.prev();
                    range(model, Bound::Unbounded, Bound::Excluded(key)).next_back()
                };
            }
        }
        2 => {
            let keys: Vec<_> = (0..random.below(80)).map(|_| random.key(shape, span)).collect();
            let mut answers = vec![None; keys.len()];
            reader.multi_get(&keys, |i, v| answers[i] = v.as_deref().map(<[u8]>::to_vec));
            for (key, answer) in keys.iter().zip(&answers) {
                assert_eq!(answer.as_ref(), model.get(key), "{key:?}");
            }
        }
        _ => {
            let key = random.key(shape, span);
            assert_eq!(reader.get(&key).as_deref(), model.get(&key).map(|v| &v[..]), "{key:?}");
            assert_eq!(reader.contains(&key), model.contains_key(&key));
        }
    }
}

fn change(random: &mut Random, shape: Shape, span: u64) -> (Vec<u8>, Option<Vec<u8>>) {
    let key = random.key(shape, span);
    let value = (random.below(10) < 6).then(|| random.value(shape));
    (key, value)
}

fn run(seed: u64) {
    let mut random = Random(seed);
    let shape = Shape { keys: random.below(7), values: random.below(6) };
    let span = [8, 60, 600, 6000][random.below(4) as usize];
    let index = Index::new(&Options { capacity_bytes: Some(256 << 20), ..Options::default() }).unwrap();
    let trees: Vec<Tree> = (0..2).map(|_| index.create_tree().unwrap()).collect();
    let mut models = vec![Model::new(); 2];
    let mut snapshots: Vec<(Snapshot, Vec<Model>)> = Vec::new();
    let grow = random.below(2) == 0;
    for step in 0..3000 {
        let which = random.below(2) as usize;
        let (tree, model) = (&trees[which], &mut models[which]);
        match random.below(if grow { 400 } else { 100 }) {
            0 => {
                let taken = (index.snapshot(), models.clone());
                snapshots.push(taken);
            }
            1 | 2 if !snapshots.is_empty() => {
                let at = random.below(snapshots.len() as u64) as usize;
                let (snapshot, models) = snapshots.swap_remove(at);
                check_all(&snapshot.reader(&trees[which]), &models[which]);
            }
            3 => {
                let (a, b) = (random.key(shape, span), random.key(shape, span));
                let (lower, upper) = (bound(random.below(3), &a), bound(random.below(3), &b));
                let keys: Vec<_> = range(model, lower, upper).map(|(k, _)| k.clone()).collect();
                let removed: Result<u64, Error> = index.batch(|batch| batch.delete_range(tree, lower, upper));
                assert_eq!(removed, Ok(keys.len() as u64), "{lower:?} {upper:?}");
                keys.iter().for_each(|k| drop(model.remove(k)));
            }
            4..7 => {
                let mut copy = models.clone();
                let fails = random.below(3) == 0;
                let changes: Vec<_> =
                    (0..random.below(300)).map(|_| change(&mut random, shape, span)).collect();
                let both = random.below(2) == 0;
                let result = index.batch(|batch| {
                    for (i, (key, value)) in changes.iter().enumerate() {
                        let which = if both { i % 2 } else { which };
                        batch.apply(&trees[which], key, |old| {
                            assert_eq!(old, copy[which].get(key).map(|v| &v[..]));
                            match value {
                                Some(value) => (Effect::Put(value.into()), ()),
                                None => (Effect::Remove, ()),
                            }
                        })?;
                        match value {
                            Some(value) => copy[which].insert(key.clone(), value.clone()),
                            None => copy[which].remove(key),
                        };
                    }
                    if fails { Err(Error::OutOfMemory(1)) } else { Ok(()) }
                });
                assert_eq!(result, if fails { Err(Error::OutOfMemory(1)) } else { Ok(()) }, "{}", shape.keys);
                if !fails {
                    models = copy;
                }
            }
            7..40 => {
                check_some(&mut random, tree, model, shape, span);
                if !snapshots.is_empty() {
                    let at = random.below(snapshots.len() as u64) as usize;
                    let (snapshot, models) = &snapshots[at];
                    check_some(&mut random, &snapshot.reader(tree), &models[which], shape, span);
                }
            }
            _ => {
                let (key, value) = change(&mut random, shape, span);
                match value {
                    Some(value) => {
                        let was = tree.insert(&key, &value).unwrap();
                        assert_eq!(was, model.insert(key, value).is_some());
                    }
                    None => assert_eq!(tree.remove(&key).unwrap(), model.remove(&key).is_some()),
                }
            }
        }
        if step % 1000 == 999 {
            trees.iter().zip(&models).for_each(|(tree, model)| check_all(tree, model));
        }
    }
    for (snapshot, models) in snapshots {
        trees.iter().zip(&models).for_each(|(tree, model)| check_all(&snapshot.reader(tree), model));
    }
    assert_eq!(index.stats().keys, models.iter().map(|m| m.len() as u64).sum::<u64>());
    // All that was stored comes back.
    for tree in &trees {
        let removed: Result<u64, Error> =
            index.batch(|batch| batch.delete_range(tree, Bound::Unbounded, Bound::Unbounded));
        removed.unwrap();
        // The last removal may leave two empty leaves as neighbours; the next one merges them.
        tree.insert(b"", b"").unwrap();
        tree.remove(b"").unwrap();
    }
    let stats = index.stats();
    assert_eq!((stats.keys, stats.blob_bytes, stats.snapshots), (0, 0, 0));
    // A few empty leaves may be left between separators; with keys of 64 KiB these are large.
    assert!(
        stats.node_bytes <= if shape.keys == 5 { 512 << 10 } else { 4096 },
        "{} bytes of nodes left in an empty index",
        stats.node_bytes
    );
}

/// Trees of three levels, of which a batch removes ranges that hold whole subtrees, before and after other changes.
#[test]
fn subtrees_are_removed_whole() {
    let _alone = alone();
    for seed in 0..sized(2, 6) {
        let mut random = Random(seed);
        let (shape, span) = (Shape { keys: 0, values: seed }, sized(60_000, 200_000));
        let index = Index::new(&Options { capacity_bytes: Some(512 << 20), ..Options::default() }).unwrap();
        let tree = index.create_tree().unwrap();
        let mut model = Model::new();
        for _ in 0..span {
            let (key, value) = (random.key(shape, span), random.value(shape));
            tree.insert(&key, &value).unwrap();
            model.insert(key, value);
        }
        let mut snapshots: Vec<(Snapshot, Model)> = Vec::new();
        for round in 0..12 {
            if round % 4 == 1 {
                snapshots.push((index.snapshot(), model.clone()));
            }
            let mut copy = model.clone();
            let fails = random.below(4) == 0;
            let result = index.batch(|batch| {
                for _ in 0..1 + random.below(3) {
                    for _ in 0..random.below(300) {
                        let (key, value) = change(&mut random, shape, span);
                        batch.apply(&tree, &key, |_| match &value {
                            Some(value) => (Effect::Put(value.into()), ()),
                            None => (Effect::Remove, ()),
                        })?;
                        match value {
                            Some(value) => drop(copy.insert(key, value)),
                            None => drop(copy.remove(&key)),
                        }
                    }
                    let (a, b) = (random.key(shape, span), random.key(shape, span));
                    let (low, high) = if a < b { (a, b) } else { (b, a) };
                    // From one subtree to nearly all of them.
                    let part = [&high[..1], &low[1..]].concat();
                    let high = if random.below(2) == 0 { high } else { part };
                    let (lower, upper) = (bound(random.below(20), &low), bound(random.below(20), &high));
                    let keys: Vec<_> = range(&copy, lower, upper).map(|(key, _)| key.clone()).collect();
                    assert_eq!(batch.delete_range(&tree, lower, upper)?, keys.len() as u64);
                    keys.iter().for_each(|key| drop(copy.remove(key)));
                }
                if fails { Err(Error::OutOfMemory(1)) } else { Ok(()) }
            });
            assert_eq!(result.is_err(), fails);
            if !fails {
                model = copy;
            }
            check_all(&tree, &model);
            for _ in 0..span / 30 {
                let (key, value) = (random.key(shape, span), random.value(shape));
                tree.insert(&key, &value).unwrap();
                model.insert(key, value);
            }
            check_all(&tree, &model);
        }
        for (snapshot, model) in snapshots {
            check_all(&snapshot.reader(&tree), &model);
        }
        let all = |batch: &mut Batch<'_>| batch.delete_range(&tree, Bound::Unbounded, Bound::Unbounded);
        assert_eq!(index.batch(all), Ok(model.len() as u64));
        let stats = index.stats();
        assert_eq!((stats.keys, stats.blob_bytes, stats.snapshots), (0, 0, 0));
        assert!(stats.node_bytes <= 4096, "{} bytes of nodes left in an empty index", stats.node_bytes);
    }
}

/// Values with stamps.
type Stamps = BTreeMap<Vec<u8>, Stamped>;
type Stamped = (Vec<u8>, u64);

fn check_stamps(reader: &Reader, model: &Stamps) {
    let wanted: Vec<_> =
        model.iter().map(|(key, (value, stamp))| (key.clone(), value.clone(), *stamp)).collect();
    for direction in [Direction::Forward, Direction::Backward] {
        let mut found = Vec::new();
        reader.scan(Bound::Unbounded, Bound::Unbounded, direction, |key, value| {
            assert!(value.stamp() == 0 || value.is_shared());
            found.push((key.to_vec(), value.to_vec(), value.stamp()));
            ControlFlow::Continue(())
        });
        if direction == Direction::Backward {
            found.reverse();
        }
        assert!(found == wanted, "{direction:?}");
    }
    let (mut cursor, mut at) = (reader.cursor(), 0);
    let mut is_there = cursor.first();
    while is_there {
        let pair = (cursor.key().unwrap().to_vec(), cursor.value().unwrap().to_vec(), cursor.stamp());
        assert!(pair == wanted[at]);
        (is_there, at) = (cursor.next(), at + 1);
    }
    assert_eq!((at, cursor.stamp()), (wanted.len(), 0));
    assert_eq!(reader.count(Bound::Unbounded, Bound::Unbounded), wanted.len() as u64);
    let keys: Vec<&Vec<u8>> = model.keys().collect();
    reader.multi_get(&keys, |at, value| assert_eq!(value.unwrap().stamp(), wanted[at].2));
    for (key, value, stamp) in &wanted {
        let found = reader.find(key, |found| (found.to_vec(), found.to_value().to_vec(), found.stamp()));
        assert!(found == Some((value.clone(), value.clone(), *stamp)));
    }
}

/// A key with what it gets and what it had; the model has that already.
fn restamp(
    random: &mut Random,
    shape: Shape,
    span: u64,
    model: &mut Stamps,
) -> (Vec<u8>, Option<Stamped>, Option<Stamped>) {
    let key = random.key(shape, span);
    let stamp = if random.below(2) == 0 { 0 } else { random.next() };
    let new = (random.below(4) > 0).then(|| (random.value(shape), stamp));
    let old = match new.clone() {
        Some(new) => model.insert(key.clone(), new),
        None => model.remove(&key),
    };
    (key, new, old)
}

/// Values with and without stamps, of all forms of leaves: changed alone, in batches that may fail, and by removals of
/// ranges, which pass the stamps; and read, also in snapshots.
#[test]
fn stamps_stay_with_their_values() {
    let _alone = alone();
    for seed in 0..sized(20, 100) {
        let mut random = Random(seed);
        let (shape, span) = (Shape { keys: seed % 7, values: seed / 7 % 4 }, sized(300, 2000));
        let index = Index::new(&Options { capacity_bytes: Some(512 << 20), ..Options::default() }).unwrap();
        let tree = index.create_tree().unwrap();
        let (mut model, mut snapshots) = (Stamps::new(), Vec::new());
        for round in 0..40 {
            let mut copy = model.clone();
            let decide = |new: &Option<Stamped>, found: Option<Found<'_>>| {
                let found = found.map(|found| (found.to_vec(), found.stamp()));
                match new {
                    Some((value, _)) => (Effect::Put(value.clone().into()), found),
                    None => (Effect::Remove, found),
                }
            };
            if round % 2 == 0 {
                for _ in 0..50 {
                    let (key, new, old) = restamp(&mut random, shape, span, &mut copy);
                    let stamp = new.as_ref().map_or(0, |new| new.1);
                    let found = tree.apply_stamped(&key, stamp, |found| decide(&new, found)).unwrap();
                    assert!(found == old, "seed {seed}");
                }
                model = copy;
            } else {
                let fails = random.below(4) == 0;
                let result = index.batch(|batch| {
                    for _ in 0..20 {
                        let (key, new, old) = restamp(&mut random, shape, span, &mut copy);
                        let stamp = new.as_ref().map_or(0, |new| new.1);
                        let found = batch.apply_stamped(&tree, &key, stamp, |found| decide(&new, found))?;
                        assert!(found == old, "seed {seed}");
                    }
                    let (low, high) = (random.key(shape, span), random.key(shape, span));
                    let (lower, upper) = (Bound::Included(&low[..]), Bound::Excluded(&high[..]));
                    let mut gone = Stamps::new();
                    let kept = copy.iter().filter(|(key, _)| low > high || **key < low || **key >= high);
                    let kept: Stamps = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
                    for (key, value) in copy.iter().filter(|(key, _)| !kept.contains_key(*key)) {
                        if value.1 != 0 {
                            gone.insert(key.clone(), (Vec::new(), value.1));
                        }
                    }
                    batch.delete_range_stamped(&tree, lower, upper, |key, stamp| {
                        let expected = gone.remove(key).map(|(_, stamp)| stamp);
                        assert_eq!(expected, Some(stamp), "seed {seed}");
                    })?;
                    assert!(gone.is_empty(), "seed {seed}");
                    copy = kept;
                    if fails { Err(Error::OutOfMemory(1)) } else { Ok(()) }
                });
                assert_eq!(result.is_err(), fails);
                if !fails {
                    model = copy;
                }
            }
            check_stamps(&tree, &model);
            if round % 8 == 3 {
                let (snapshot, noted) = index.snapshot_with(|| round);
                assert_eq!(noted, round);
                snapshots.push((snapshot, model.clone()));
            }
            for (snapshot, model) in &snapshots {
                check_stamps(&snapshot.reader(&tree), model);
            }
        }
        drop(snapshots);
        index.batch(|batch| batch.delete_range(&tree, Bound::Unbounded, Bound::Unbounded)).unwrap();
        assert_eq!((index.stats().keys, index.stats().blob_bytes), (0, 0), "seed {seed}");
    }
}

/// A lookup compared the rest of a key of more than eight bytes, after a prefix of at most eight, as if it were zeros
/// beyond the eighth: so an absent key, or another one, could be found to be the one that has zeros there. Now the
/// rest is read from the key.
#[test]
fn the_rest_of_a_key_is_compared_whole() {
    let _alone = alone();
    let tree = Index::new(&Options::default()).unwrap().create_tree().unwrap();
    let key = |prefix: &str, n: u64| [prefix.as_bytes(), &n.to_be_bytes()].concat();
    for prefix in ["one", "eight...", "more than eight"] {
        (0..1000).for_each(|n| assert!(!tree.insert(&key(prefix, n << 40), &n.to_be_bytes()).unwrap()));
        for n in 0..20_000 {
            assert_eq!(tree.get(&key(prefix, n)).is_some(), n == 0, "{prefix} {n}");
        }
    }
}

#[test]
fn index_agrees_with_btreemap() {
    let _alone = alone();
    let seeds = match std::env::var("FORREST_INDEX_SEED") {
        Ok(seed) => vec![seed.parse().expect("FORREST_INDEX_SEED is a number")],
        Err(_) => (1..=number("FORREST_INDEX_SEEDS").unwrap_or(sized(30, 120))).collect(),
    };
    for seed in seeds {
        if let Err(panic) = std::panic::catch_unwind(|| run(seed)) {
            eprintln!("failed with FORREST_INDEX_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
