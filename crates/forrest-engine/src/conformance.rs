//! Tests that every engine must pass, as functions that an engine's own tests call.
//!
//! [`check`] makes random changes and reads on a store and on a model, and demands that both agree. The model
//! is a map for each keyspace; [`Op::resolve`] decides its changes. Covered are single operations, batches
//! that are applied and batches that are not, every way to read, in both directions and with every kind of
//! bound, snapshots, and keyspaces that are created and dropped. Features that an engine lacks
//! ([`Store::capabilities`]) are not tested; instead the engine must return an `Unsupported` error for them.
//! Keys are short and few, so that operations meet. A failure names the seed and the step.

use crate::bounds::KeyBounds;
use crate::chunk::{Chunk, Filled, Goto};
use crate::contract::{Cursor, Keyspace, Snapshot, Store, View};
use crate::error::{ErrorKind, Result};
use crate::merge::{Operators, operators};
use crate::op::{Effect, Op, Outcome, Swap, Written};
use crate::options::{Compression, DEFAULT_KEYSPACE};
use crate::pairs::Pairs;
use crate::stats::Capability;
use forrest_base::random::Random;
use forrest_index::Direction;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};

/// The content of a keyspace.
pub(crate) type Map = BTreeMap<Vec<u8>, Vec<u8>>;
/// The content of all keyspaces.
type Named = Vec<(String, Map)>;
/// A range of keys.
pub(crate) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);
/// A pair.
type Pair = (Vec<u8>, Vec<u8>);

/// A store and its model.
struct Check<S: Store> {
    store: S,
    spaces: Vec<(S::Keyspace, Map)>,
    snapshots: Vec<(S::Snapshot, Named)>,
    random: Choice,
}

/// Makes `steps` random changes and reads on an empty store, and compares it with a model. `between` is
/// called after each step, for engines whose background work is done by the caller.
///
/// # Panics
/// If the store does not conform; the message names the seed, the step and the difference.
pub fn check<S: Store>(store: &S, seed: u64, steps: usize, mut between: impl FnMut(&S)) {
    let first = store.keyspace(DEFAULT_KEYSPACE).expect("the default keyspace is always there");
    let mut check = Check {
        store: store.clone(),
        spaces: vec![(first, Map::new())],
        snapshots: Vec::new(),
        random: Choice(Random(seed)),
    };
    if store.capabilities().has(Capability::Keyspaces) {
        let second = store.keyspace("second").expect("another keyspace");
        check.spaces.push((second, Map::new()));
    } else {
        let refused = store.keyspace("second").err().expect("there is one keyspace only");
        assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
    }
    for step in 0..steps {
        let at = format!("seed {seed}, step {step}");
        match check.random.below(20) {
            0..8 => check.apply(&at),
            8..11 => check.batch(&at),
            11..18 => check.read(&at),
            18 if check.random.below(4) > 0 => check.snapshot(&at),
            18 if check.random.below(4) == 0 => check.compress(&at),
            18 => check.ingest(&at),
            _ => check.come_and_go(&at),
        }
        between(store);
    }
    check.handles();
    check.all("at the end");
}

/// Makes `steps` random changes of keyspaces with merge operators, and compares them with a model. `between` is called
/// after each step.
///
/// # Panics
/// If the store does not conform.
pub fn check_merges<S: Store>(store: &S, seed: u64, steps: usize, mut between: impl FnMut(&S)) {
    let known = Operators::default();
    let mut random = Choice(Random(seed));
    let mut spaces = ["append", "max", "union"].map(|name| {
        let space = store.keyspace(name).expect("a keyspace");
        let refused = space.apply(Op::Merge { key: b"k", operand: b"" }).expect_err("there is no operator");
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
        space.set_merge_operator(name).expect("it is empty");
        let operator = known.get(name, name).expect("it is in every build").clone();
        (space, operator, Map::new())
    });
    for step in 0..steps {
        let at = format!("seed {seed}, step {step}");
        let mut after = spaces.each_ref().map(|(_, _, map)| map.clone());
        let count = if random.below(3) == 0 { random.below(6) } else { 1 };
        let mut ops = Vec::new();
        for _ in 0..count {
            let number = random.below(spaces.len());
            let key = random.key();
            let word = match number {
                2 => operators::set([random.key(), random.key()]),
                _ => random.value(),
            };
            let op = match random.below(10) {
                0..6 => Op::Merge { key, operand: word },
                6 => Op::Set { key, value: word },
                7 => Op::Delete { key },
                8 => Op::CompareAndSwap { expected: after[number].get(&key).cloned(), key, new: Some(word) },
                _ => Op::delete_range(random.bounds()),
            };
            let map = &mut after[number];
            match &op {
                Op::Merge { key, operand } => {
                    let new = spaces[number].1.merge(key, map.get(key).map(Vec::as_slice), operand);
                    map.insert(key.clone(), new);
                }
                op => drop(apply(map, op).unwrap_or_else(|error| panic!("{at}: {op}: {error}"))),
            }
            ops.push((number, op));
        }
        let batch = ops.iter().map(|(number, op)| (&spaces[*number].0, op.borrowed()));
        let done = store.write(batch, None).unwrap_or_else(|error| panic!("{at}: {error}"));
        assert!(done.is_applied(), "{at}: {done:?}");
        for ((space, _, map), after) in spaces.iter_mut().zip(after) {
            *map = after;
            for (key, value) in map.iter() {
                let found = space.view().get(key).unwrap_or_else(|error| panic!("{at}: {error}"));
                assert_eq!(found.as_deref(), Some(&value[..]), "{at}: {}", key.escape_ascii());
            }
        }
        let (bounds, key, pairs) = (random.bounds(), random.key(), 1 + random.below(5));
        let moves: Vec<_> = (0..random.below(6)).map(|_| random.below(6)).collect();
        for (space, _, map) in &spaces {
            compare(&space.view(), map, &bounds, &key, pairs, &moves, &at);
        }
        between(store);
    }
}

impl<S: Store> Check<S> {
    fn apply(&mut self, at: &str) {
        let number = self.random.below(self.spaces.len());
        let op = match self.random.below(8) {
            0 => self.random.comparison(&self.spaces[number].1),
            _ => self.random.op(),
        };
        let (keyspace, map) = &mut self.spaces[number];
        let (answer, expected) = (keyspace.apply(op.borrowed()), apply(map, &op));
        match (answer, expected) {
            (Ok(outcome), Ok(expected)) => assert_eq!(outcome, expected, "{at}: {op}"),
            (Err(error), Err(expected)) => assert_eq!(error.kind(), expected.kind(), "{at}: {op}: {error}"),
            (answer, expected) => panic!("{at}: {op}: {answer:?}, expected {expected:?}"),
        }
    }

    fn batch(&mut self, at: &str) {
        let mut ops: Vec<(usize, Op)> = Vec::new();
        // Comparisons of ranges come first.
        for _ in 0..self.random.below(4).saturating_sub(1) {
            let number = self.random.below(self.spaces.len());
            ops.push((number, self.random.comparison(&self.spaces[number].1)));
        }
        ops.extend(
            (0..self.random.below(8)).map(|_| (self.random.below(self.spaces.len()), self.random.op())),
        );
        let mut after: Vec<Map> = self.spaces.iter().map(|(_, map)| map.clone()).collect();
        let mut expected = Ok(Written::Applied);
        for (place, (number, op)) in ops.iter().enumerate() {
            match apply(&mut after[*number], op) {
                Ok(outcome) => match outcome.mismatch() {
                    Some(found) => expected = Ok(Written::Mismatch { op: place, found }),
                    None => continue,
                },
                Err(error) => expected = Err(error.at_op(place)),
            }
            break;
        }
        let given = ops.iter().map(|(number, op)| (&self.spaces[*number].0, op.borrowed()));
        match (self.store.write(given, None), expected) {
            (Ok(written), Ok(expected)) => {
                assert_eq!(written, expected, "{at}: {ops:?}");
                if written == Written::Applied {
                    self.spaces.iter_mut().zip(after).for_each(|((_, map), after)| *map = after);
                }
            }
            (Err(error), Err(expected)) => {
                assert_eq!((error.kind(), error.op()), (expected.kind(), expected.op()), "{at}: {ops:?}");
            }
            (answer, expected) => panic!("{at}: {ops:?}: {answer:?}, expected {expected:?}"),
        }
    }

    /// Ingests pairs, with another change before the end of it; or leaves them.
    fn ingest(&mut self, at: &str) {
        let number = self.random.below(self.spaces.len());
        let begun = self.spaces[number].0.ingest();
        if !self.store.capabilities().has(Capability::Ingest) {
            let refused = begun.err().unwrap_or_else(|| panic!("{at}: it cannot ingest"));
            assert_eq!(refused.kind(), ErrorKind::Unsupported, "{at}: {refused}");
            return;
        }
        let mut ingest = begun.unwrap_or_else(|error| panic!("{at}: {error}"));
        let pairs: Map = (0..self.random.below(20)).map(|_| (self.random.key(), self.random.key())).collect();
        let mut before = None;
        for (key, value) in &pairs {
            ingest.put(key, value).unwrap_or_else(|error| panic!("{at}: {error}"));
            let wrong = ingest.put(before.unwrap_or(key), b"wrong").expect_err("it is not greater");
            assert_eq!(wrong.kind(), ErrorKind::InvalidArgument, "{at}: {wrong}");
            before = Some(key);
            if self.random.below(8) == 0 {
                self.apply(at);
            }
        }
        if self.random.below(4) == 0 {
            drop(ingest);
        } else {
            let count = ingest.finish().unwrap_or_else(|error| panic!("{at}: {error}"));
            assert_eq!(count, pairs.len() as u64, "{at}");
            self.spaces[number].1.extend(pairs);
        }
        self.all(at);
    }

    /// Chooses a compression, which changes nothing that can be read.
    fn compress(&mut self, at: &str) {
        let (keyspace, _) = &self.spaces[self.random.below(self.spaces.len())];
        let method = if self.random.below(3) == 0 { Compression::None } else { Compression::Lz4 };
        let chosen = keyspace.set_compression(method);
        if method == Compression::None || self.store.capabilities().has(Capability::Compression) {
            chosen.unwrap_or_else(|error| panic!("{at}: {error}"));
            assert_eq!(keyspace.compression(), method, "{at}");
        } else {
            let refused = chosen.expect_err("it cannot compress");
            assert_eq!(refused.kind(), ErrorKind::Unsupported, "{at}: {refused}");
        }
    }

    fn read(&mut self, at: &str) {
        let bounds = self.random.bounds();
        let (key, pairs) = (self.random.key(), 1 + self.random.below(5));
        let moves: Vec<_> = (0..self.random.below(6)).map(|_| self.random.below(6)).collect();
        for (keyspace, map) in &self.spaces {
            compare(&keyspace.view(), map, &bounds, &key, pairs, &moves, at);
        }
        for (snapshot, maps) in &self.snapshots {
            for (name, map) in maps {
                compare(&snapshot.view(name), map, &bounds, &key, pairs, &moves, at);
            }
        }
    }

    fn snapshot(&mut self, at: &str) {
        if !self.store.capabilities().has(Capability::Snapshots) {
            let refused = self.store.snapshot().err().expect("there are no snapshots");
            assert_eq!(refused.kind(), ErrorKind::Unsupported, "{at}: {refused}");
            return;
        }
        let maps = self.spaces.iter().map(|(keyspace, map)| (keyspace.name().to_owned(), map.clone()));
        let maps: Vec<_> = maps.chain([("never made".to_owned(), Map::new())]).collect();
        self.snapshots.push((self.store.snapshot().expect("a snapshot"), maps));
        if self.snapshots.len() > 3 {
            self.snapshots.remove(self.random.below(4));
        }
    }

    /// A keyspace is dropped and made again, and its old handle fails from then on.
    fn come_and_go(&mut self, at: &str) {
        if self.spaces.len() == 1 {
            return;
        }
        let (old, _) = self.spaces.pop().expect("there are two");
        assert!(self.store.drop_keyspace("second").expect("it can be dropped"), "{at}");
        assert!(!self.store.drop_keyspace("second").expect("it is gone"), "{at}");
        for refused in [old.view().get(b"key").err(), old.apply(Op::Delete { key: b"key" }).err()] {
            let refused = refused.expect("a handle of a keyspace that was dropped");
            assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{at}: {refused}");
        }
        let new = self.store.keyspace("second").expect("it can be made again");
        assert!(!new.is(&old) && new.same_store(&old), "{at}");
        self.spaces.push((new, Map::new()));
    }

    /// Names and handles.
    fn handles(&self) {
        let mut names: Vec<_> = self.spaces.iter().map(|(keyspace, _)| keyspace.name().to_owned()).collect();
        names.sort();
        assert_eq!(self.store.keyspaces().expect("the names"), names);
        for (at, (a, _)) in self.spaces.iter().enumerate() {
            for (other, (b, _)) in self.spaces.iter().enumerate() {
                assert!(a.is(b) == (at == other) && a.same_store(b), "{} and {}", a.name(), b.name());
            }
        }
        let stats = self.store.stats().expect("statistics");
        assert_eq!(stats.keyspaces, names.len() as u64);
        self.store.sync().expect("all is as durable as it can be");
        for (capability, done) in
            [(Capability::Verify, self.store.verify()), (Capability::Compact, self.store.compact())]
        {
            match done {
                Ok(()) => assert!(self.store.capabilities().has(capability), "{capability}"),
                Err(error) => {
                    assert!(!self.store.capabilities().has(capability), "{capability}: {error}");
                    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
                }
            }
        }
    }

    fn all(&self, at: &str) {
        let everything = (Bound::Unbounded, Bound::Unbounded);
        for (keyspace, map) in &self.spaces {
            compare(&keyspace.view(), map, &everything, b"", 3, &[0, 2, 2, 3], at);
        }
    }
}

/// Does an operation on the model.
pub(crate) fn apply(map: &mut Map, op: &Op) -> Result<Outcome> {
    if let Op::DeleteRange { start, end } = op {
        let end = end.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let gone: Vec<_> = map
            .keys()
            .filter(|key| is_in(key, &(Bound::Included(start.clone()), end.clone())))
            .cloned()
            .collect();
        gone.iter().for_each(|key| drop(map.remove(key)));
        return Ok(Outcome::DeletedRange);
    }
    if let Op::CompareRange { start, end, pairs } = op {
        let end = end.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let bounds = (Bound::Included(start.clone()), end);
        let found = map.iter().filter(|(key, _)| is_in(key, &bounds));
        let found: Map = found.map(|(key, value)| (key.clone(), value.clone())).collect();
        let expected: Map = Pairs::new(pairs).map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        let keys: BTreeSet<&Vec<u8>> = found.keys().chain(expected.keys()).collect();
        let differs = keys.into_iter().find(|key| found.get(*key) != expected.get(*key));
        return Ok(Outcome::ComparedRange(match differs {
            Some(key) => Swap::Mismatch(Some(key[..].into())),
            None => Swap::Done,
        }));
    }
    let op = op.borrowed();
    let key = op.key();
    let (effect, outcome) = op.resolve(map.get(key).map(Vec::as_slice))?;
    match effect {
        Effect::Keep => {}
        Effect::Put(bytes) => drop(map.insert(key.to_vec(), bytes.into_owned())),
        Effect::PutValue(value) => drop(map.insert(key.to_vec(), value.to_vec())),
        Effect::Remove => drop(map.remove(key)),
    }
    Ok(outcome)
}

pub(crate) fn is_in(key: &[u8], (lower, upper): &Bounds) -> bool {
    let above = match lower {
        Bound::Unbounded => true,
        Bound::Included(bound) => key >= &bound[..],
        Bound::Excluded(bound) => key > &bound[..],
    };
    above
        && match upper {
            Bound::Unbounded => true,
            Bound::Included(bound) => key <= &bound[..],
            Bound::Excluded(bound) => key < &bound[..],
        }
}

/// Reads a view in every way.
pub(crate) fn compare<V: View>(
    view: &V,
    map: &Map,
    bounds: &Bounds,
    key: &[u8],
    pairs: usize,
    moves: &[usize],
    at: &str,
) {
    let expected = map.get(key).cloned();
    assert_eq!(view.get(key).expect("get").map(|value| value.to_vec()), expected, "{at}: get {key:?}");
    assert_eq!(view.contains(key).expect("contains"), expected.is_some(), "{at}: contains {key:?}");
    let mut buffer = b"what was there".to_vec();
    assert_eq!(
        view.get_into(key, &mut buffer).expect("get_into"),
        expected.is_some(),
        "{at}: get_into {key:?}"
    );
    assert_eq!(buffer, expected.clone().unwrap_or_default(), "{at}: get_into {key:?}");
    let pieces = view.pieces(key).expect("pieces").map(|mut pieces| {
        let (mut value, mut piece) = (Vec::new(), [0; 7]);
        let value_bytes = pieces.value_bytes();
        loop {
            let len = pieces.read(&mut piece).expect("a piece");
            value.extend_from_slice(&piece[..len]);
            if len < piece.len() {
                assert_eq!((value.len() as u64, pieces.read(&mut piece).expect("the end")), (value_bytes, 0));
                return value;
            }
        }
    });
    assert_eq!(pieces, expected, "{at}: pieces {key:?}");
    let cached = view.get_cached(key).expect("get_cached").map(|value| value.map(|value| value.to_vec()));
    assert!(cached.is_none() || cached == Some(expected.clone()), "{at}: get_cached {key:?}: {cached:?}");
    let keys = [key, b"", b"b", key];
    let found: Vec<_> = view.multi_get(&keys).expect("multi_get");
    let found: Vec<_> = found.into_iter().map(|value| value.map(|value| value.to_vec())).collect();
    assert_eq!(found, keys.map(|key| map.get(key).cloned()), "{at}: multi_get {keys:?}");

    let borrowed = || (bounds.0.as_ref().map(Vec::as_slice), bounds.1.as_ref().map(Vec::as_slice));
    let mut inside: Vec<Pair> = map
        .iter()
        .filter(|(key, _)| is_in(key, bounds))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let (lower, upper) = borrowed();
    assert_eq!(view.count(lower, upper).expect("count"), inside.len() as u64, "{at}: count {bounds:?}");
    for direction in [Direction::Forward, Direction::Backward] {
        let mut seen: Vec<Pair> = Vec::new();
        let see = |key: &[u8], value: &[u8]| {
            seen.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        };
        view.scan(borrowed(), direction, see).expect("scan");
        assert_eq!(seen, inside, "{at}: scan {direction:?} {bounds:?}");
        let filled = |keys_only| filled(view, bounds, direction, pairs, keys_only);
        assert_eq!(filled(false), inside, "{at}: fill {direction:?} {bounds:?}");
        let keys: Vec<Pair> = inside.iter().map(|(key, _)| (key.clone(), Vec::new())).collect();
        assert_eq!(filled(true), keys, "{at}: fill with keys {direction:?} {bounds:?}");
        let mut seen: Vec<Pair> = Vec::new();
        let see = |key: &[u8]| {
            seen.push((key.to_vec(), Vec::new()));
            ControlFlow::Continue(())
        };
        view.scan_keys(borrowed(), direction, see).expect("scan_keys");
        assert_eq!(seen, keys, "{at}: scan_keys {direction:?} {bounds:?}");
        inside.reverse();
    }
    walk(view, map, key, moves, false, at);
    walk(view, map, key, moves, true, at);
    let ranges =
        [borrowed(), (Bound::Included(key), Bound::Unbounded), (Bound::Unbounded, Bound::Excluded(key))];
    scan_several(view, map, &ranges, pairs, at);
    let all = || view.approximate(Bound::Unbounded, Bound::Unbounded);
    // Work in the background changes what is estimated. It ends, because nobody writes.
    let (part, all) = loop {
        let (before, part, after) = (all(), view.approximate(lower, upper), all());
        match (&before, &after) {
            (Ok(before), Ok(after)) if before != after => {}
            _ => break (part, after),
        }
    };
    match (part, all) {
        (Ok(part), Ok(all)) => {
            assert!(part.keys <= all.keys && part.bytes <= all.bytes, "{at}: {part:?} of {all:?}");
        }
        (part, _) => {
            let refused = part.expect_err("both or none");
            assert_eq!(refused.kind(), ErrorKind::Unsupported, "{at}: {refused}");
        }
    }
}

/// Scans the ranges, each many times, so that they are more than what an engine scans at once.
fn scan_several<V: View>(view: &V, map: &Map, ranges: &[KeyBounds<'_>], limit: usize, at: &str) {
    let ranges: Vec<_> = ranges.iter().cycle().take(11 * ranges.len()).copied().collect();
    let mut expected = Vec::new();
    for (number, (lower, upper)) in ranges.iter().enumerate() {
        let bounds = (lower.map(<[u8]>::to_vec), upper.map(<[u8]>::to_vec));
        let inside = map.iter().filter(|(key, _)| is_in(key, &bounds));
        expected.extend(inside.take(limit).map(|(key, value)| (number, key.clone(), value.clone())));
    }
    for keys_only in [false, true] {
        for most in [expected.len() + 1, expected.len().div_ceil(2)] {
            let mut seen = Vec::new();
            let see = |number: usize, key: &[u8], value: &[u8]| {
                seen.push((number, key.to_vec(), value.to_vec()));
                if seen.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            view.multi_scan(&ranges, limit, keys_only, see).expect("multi_scan");
            let mut expected = expected[..most.min(expected.len())].to_vec();
            if keys_only {
                expected.iter_mut().for_each(|(_, _, value)| value.clear());
            }
            assert_eq!(seen, expected, "{at}: multi_scan of {ranges:?}, {limit} of each");
        }
    }
}

/// All pairs of a range, or its keys with empty values, fetched in refills.
fn filled<V: View>(
    view: &V,
    bounds: &Bounds,
    direction: Direction,
    pairs: usize,
    keys_only: bool,
) -> Vec<Pair> {
    let (mut lower, mut upper) = bounds.clone();
    let (mut chunk, mut resume, mut all) = (Chunk::default(), V::Resume::default(), Vec::new());
    if keys_only {
        chunk.set_keys_only();
    }
    loop {
        chunk.clear(pairs);
        let within = (lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice));
        let filled = view.fill(&mut chunk, &mut resume, within, direction).expect("fill");
        assert!(chunk.len() <= pairs, "a refill brings no more than was asked for");
        all.extend((0..chunk.len()).map(|at| (chunk.key(at).to_vec(), chunk.value(at).to_vec())));
        match filled {
            Filled::End => return all,
            Filled::More => {
                let last =
                    Bound::Excluded(all.last().expect("there is a pair before there are more").0.clone());
                if direction == Direction::Forward { lower = last } else { upper = last }
            }
        }
    }
}

/// Moves a cursor.
fn walk<V: View>(view: &V, map: &Map, key: &[u8], moves: &[usize], keys_only: bool, at: &str) {
    let mut cursor = view.cursor();
    if keys_only {
        cursor.keys_only();
    }
    assert_eq!((cursor.key(), cursor.value()), (None, None), "{at}: a new cursor is at no pair");
    let mut place: Option<Vec<u8>> = None;
    for (number, kind) in moves.iter().enumerate() {
        let after = |key: &Vec<u8>| {
            map.range::<Vec<u8>, _>((Bound::Excluded(key), Bound::Unbounded))
                .next()
                .map(|(key, _)| key.clone())
        };
        let (goto, expected) = match kind {
            0 => (Goto::First, map.keys().next().cloned()),
            1 => (Goto::Last, map.keys().next_back().cloned()),
            2 => (Goto::Skip(1), place.as_ref().and_then(after)),
            3 => {
                let before =
                    |key: &Vec<u8>| map.range::<Vec<u8>, _>(..key).next_back().map(|(key, _)| key.clone());
                (Goto::Prev, place.as_ref().and_then(before))
            }
            4 => (Goto::Seek(key), map.range(key.to_vec()..).next().map(|(key, _)| key.clone())),
            _ => (Goto::SeekForPrev(key), map.range(..=key.to_vec()).next_back().map(|(key, _)| key.clone())),
        };
        assert_eq!(cursor.goto(goto).expect("goto"), expected.is_some(), "{at}: move {number} of {moves:?}");
        if number % 2 == 1 {
            cursor.park();
        }
        assert_eq!(cursor.key(), expected.as_deref(), "{at}: move {number} of {moves:?}");
        let value = expected.as_ref().and_then(|key| map.get(key));
        let value = value.map(|value| if keys_only { &[][..] } else { value });
        assert_eq!(cursor.value().as_deref(), value, "{at}: move {number} of {moves:?}");
        place = expected;
    }
}

/// Keys with these ends differ in zeros only, or only after their eighth or sixteenth byte: where stores compare words
/// of a key.
const ENDS: &[&[u8]] = &[
    b"\0",
    b"\0\0\0\0\0\0\0\0",
    b"seven..",
    b"seven..\0",
    b"eight...",
    b"eight...\0",
    b"eight...sixteen.",
    b"eight...sixteen.\0",
    b"eight...sixteen.x",
];

/// Random choices that follow from the seed.
pub(crate) struct Choice(pub(crate) Random);

impl Choice {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.index(end)
    }

    /// One of some forty short keys, or of as many that have an end of [`ENDS`].
    pub(crate) fn key(&mut self) -> Vec<u8> {
        let (length, end) = match self.below(4) {
            0 => (self.below(2), ENDS[self.below(ENDS.len())]),
            _ => (self.below(4), &b""[..]),
        };
        let start = (0..length).map(|_| [b'a', b'b', 0xFF][self.below(3)]).collect::<Vec<u8>>();
        [&start[..], end].concat()
    }

    /// An empty value, a counter, a short value, or one that is too long for a node.
    pub(crate) fn value(&mut self) -> Vec<u8> {
        let length = [0, 8, 20, 300, 3000][self.below(5)];
        vec![self.below(256) as u8; length]
    }

    pub(crate) fn bounds(&mut self) -> Bounds {
        let mut bound = || match self.below(3) {
            0 => Bound::Unbounded,
            1 => Bound::Included(self.key()),
            _ => Bound::Excluded(self.key()),
        };
        (bound(), bound())
    }

    /// A comparison of a range with what it has, or nearly.
    pub(crate) fn comparison(&mut self, map: &Map) -> Op {
        let bounds = self.bounds();
        let mut pairs: Map = map.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        match self.below(6) {
            0 => drop(pairs.insert(self.key(), self.value())),
            1 => drop(pairs.remove(&self.key())),
            _ => {}
        }
        pairs.retain(|key, _| is_in(key, &bounds));
        Op::compare_range(bounds, pairs)
    }

    pub(crate) fn op(&mut self) -> Op {
        let key = self.key();
        match self.below(12) {
            0..5 => Op::Set { key, value: self.value() },
            5..7 => Op::Delete { key },
            7..9 => Op::Add { key, delta: self.below(100) as i64 - 50 },
            9 => Op::CompareAndSwap { key, expected: None, new: Some(self.value()) },
            10 => Op::CompareAndSwap { key, expected: Some(self.value()), new: None },
            _ => Op::delete_range(self.bounds()),
        }
    }
}
