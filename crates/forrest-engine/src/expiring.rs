//! Tests that every engine with values that expire must pass ([`Capability::Ttl`](crate::Capability::Ttl)), as a
//! function that an engine's own tests call.
//!
//! [`check`] makes random changes and reads on a store while its clock jumps forward and back, and on a model that has
//! the time of each value. Covered are values with a time of their own, times to live of keyspaces, operations and
//! batches that meet what has expired, merges, ingests, range deletes, every way to read, and snapshots, which repeat
//! their reads.

use crate::MAX_VALUE_BYTES;
use crate::conformance::{Bounds, Choice, Map, apply, compare, is_in};
use crate::contract::{Keyspace, Snapshot, Store, View};
use crate::error::{ErrorKind, Result};
use crate::merge::{self, Operators, SharedOperator};
use crate::op::{Effect, Expires, Op, Outcome, Written};
use crate::options::DEFAULT_KEYSPACE;
use forrest_base::random::Random;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

/// Values with the times at which they expire, if they do.
#[derive(Clone, Default)]
struct Timed(BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>);

/// A keyspace and its model.
struct Space<S: Store> {
    keyspace: S::Keyspace,
    operator: Option<SharedOperator>,
    ttl_ms: Option<u64>,
    content: Timed,
}

struct Check<'c, S: Store> {
    store: S,
    set_clock: &'c dyn Fn(u64),
    wall_ms: u64,
    /// The store's time, which does not go back.
    now_ms: u64,
    spaces: Vec<Space<S>>,
    /// For each keyspace what it had.
    snapshots: Vec<(S::Snapshot, Vec<Timed>)>,
    random: Choice,
}

/// Makes `steps` random changes and reads on an empty store, and compares it with a model. `set_clock` sets the wall
/// clock of the store, which nobody has read yet, to milliseconds since 1970. `between` is called after each step, for
/// background work that the caller does; it also removes from memory or the disk what has expired.
///
/// # Panics
/// If the store does not conform; the message names the seed, the step and the difference.
pub fn check<S: Store>(
    store: &S,
    seed: u64,
    steps: usize,
    set_clock: &dyn Fn(u64),
    mut between: impl FnMut(&S),
) {
    let known = Operators::default();
    let space = |name: &str, operator: Option<&str>| -> Space<S> {
        let keyspace = store.keyspace(name).expect("a keyspace");
        if let Some(operator) = operator {
            keyspace.set_merge_operator(operator).expect("it is empty");
        }
        let operator =
            operator.map(|operator| known.get(name, operator).expect("it is in every build").clone());
        Space { keyspace, operator, ttl_ms: None, content: Timed::default() }
    };
    let spaces = vec![space(DEFAULT_KEYSPACE, None), space("joined", Some("append"))];
    let random = Choice(Random(seed));
    let mut check = Check {
        store: store.clone(),
        set_clock,
        wall_ms: 0,
        now_ms: 0,
        spaces,
        snapshots: Vec::new(),
        random,
    };
    check.set_clock(1000);
    for step in 0..steps {
        let at = format!("seed {seed}, step {step}");
        match check.random.below(20) {
            0..7 => check.apply(&at),
            7..11 => check.batch(&at),
            11 => check.ingest(&at),
            12..14 => check.choose_ttl(&at),
            14..17 => {
                let later = check.wall_ms + check.random.below(40) as u64;
                check.set_clock(later);
            }
            17 => {
                let earlier = check.wall_ms.saturating_sub(check.random.below(40) as u64);
                check.set_clock(earlier);
            }
            _ => check.snapshot(),
        }
        between(store);
        check.read(&at);
    }
}

impl Timed {
    /// What a reader at a time sees.
    fn at(&self, now_ms: u64) -> Map {
        let there = self.0.iter().filter(|(_, (_, ms))| ms.is_none_or(|ms| ms > now_ms));
        there.map(|(key, (value, _))| (key.clone(), value.clone())).collect()
    }

    /// Does an operation. `ttl_ms` is the keyspace's time to live.
    fn apply(
        &mut self,
        op: &Op,
        operator: Option<&SharedOperator>,
        now_ms: u64,
        ttl_ms: Option<u64>,
    ) -> Result<Outcome> {
        match op {
            Op::DeleteRange { start, end } => {
                let end = end.clone().map_or(Bound::Unbounded, Bound::Excluded);
                let bounds: Bounds = (Bound::Included(start.clone()), end);
                self.0.retain(|key, _| !is_in(key, &bounds));
                return Ok(Outcome::DeletedRange);
            }
            Op::CompareRange { .. } => return apply(&mut self.at(now_ms), op),
            _ => {}
        }
        let op = op.borrowed();
        let (key, seen) = (op.key(), self.at(now_ms));
        let old = seen.get(key).map(Vec::as_slice);
        let (effect, outcome) = merge::resolve(operator, &op, old, MAX_VALUE_BYTES)?;
        let expires = match op {
            Op::SetUntil { expires, .. } => Some(expires),
            _ => ttl_ms.map(Expires::In),
        };
        let expires_ms = expires.map(|expires| expires.at_ms(|| now_ms));
        match effect {
            Effect::Keep => {}
            Effect::Put(bytes) => drop(self.0.insert(key.to_vec(), (bytes.into_owned(), expires_ms))),
            Effect::PutValue(value) => drop(self.0.insert(key.to_vec(), (value.to_vec(), expires_ms))),
            Effect::Remove => drop(self.0.remove(key)),
        }
        Ok(outcome)
    }
}

impl<S: Store> Check<'_, S> {
    /// Sets the wall clock, and has the store look at it.
    fn set_clock(&mut self, ms: u64) {
        (self.set_clock)(ms);
        self.wall_ms = ms;
        self.now_ms = self.now_ms.max(ms);
        let look = Op::SetUntil { key: &b""[..], value: b"", expires: Expires::In(0) };
        for space in &mut self.spaces {
            space.keyspace.apply(look).expect("it is set");
            space.content.0.remove(&b""[..]);
        }
    }

    fn op(&mut self, number: usize) -> Op {
        let soon = self.random.below(50) as u64;
        match self.random.below(8) {
            0..2 => {
                let expires = Expires::At((self.now_ms + soon).saturating_sub(10));
                Op::SetUntil { key: self.random.key(), value: self.random.value(), expires }
            }
            2 => {
                let expires = Expires::In(soon);
                Op::SetUntil { key: self.random.key(), value: self.random.value(), expires }
            }
            3 => {
                // What is there, or what was.
                let (key, content) = (self.random.key(), &self.spaces[number].content);
                let expected = match self.random.below(3) {
                    0 => content.0.get(&key).map(|(value, _)| value.clone()),
                    _ => content.at(self.now_ms).get(&key).cloned(),
                };
                let new = match self.random.below(4) {
                    0 => None,
                    1 => expected.clone(),
                    _ => Some(self.random.value()),
                };
                Op::CompareAndSwap { key, expected, new }
            }
            4 if self.spaces[number].operator.is_some() => {
                Op::Merge { key: self.random.key(), operand: b"+".to_vec() }
            }
            _ => self.random.op(),
        }
    }

    fn apply(&mut self, at: &str) {
        let number = self.random.below(self.spaces.len());
        let op = match self.random.below(8) {
            0 => self.random.comparison(&self.spaces[number].content.at(self.now_ms)),
            _ => self.op(number),
        };
        let Space { keyspace, operator, ttl_ms, content } = &mut self.spaces[number];
        let expected = content.apply(&op, operator.as_ref(), self.now_ms, *ttl_ms);
        match (keyspace.apply(op.borrowed()), expected) {
            (Ok(outcome), Ok(expected)) => assert_eq!(outcome, expected, "{at}: {op}"),
            (Err(error), Err(expected)) => assert_eq!(error.kind(), expected.kind(), "{at}: {op}: {error}"),
            (answer, expected) => panic!("{at}: {op}: {answer:?}, expected {expected:?}"),
        }
    }

    fn batch(&mut self, at: &str) {
        let ops: Vec<(usize, Op)> = (0..self.random.below(8))
            .map(|_| {
                let number = self.random.below(self.spaces.len());
                (number, self.op(number))
            })
            .collect();
        let mut after: Vec<Timed> = self.spaces.iter().map(|space| space.content.clone()).collect();
        let mut expected = Ok(Written::Applied);
        for (place, (number, op)) in ops.iter().enumerate() {
            let Space { operator, ttl_ms, .. } = &self.spaces[*number];
            match after[*number].apply(op, operator.as_ref(), self.now_ms, *ttl_ms) {
                Ok(outcome) => match outcome.mismatch() {
                    Some(found) => expected = Ok(Written::Mismatch { op: place, found }),
                    None => continue,
                },
                Err(error) => expected = Err(error.at_op(place)),
            }
            break;
        }
        let given = ops.iter().map(|(number, op)| (&self.spaces[*number].keyspace, op.borrowed()));
        match (self.store.write(given, None), expected) {
            (Ok(written), Ok(expected)) => {
                assert_eq!(written, expected, "{at}: {ops:?}");
                if written.is_applied() {
                    self.spaces.iter_mut().zip(after).for_each(|(space, after)| space.content = after);
                }
            }
            (Err(error), Err(expected)) => {
                assert_eq!((error.kind(), error.op()), (expected.kind(), expected.op()), "{at}: {ops:?}");
            }
            (answer, expected) => panic!("{at}: {ops:?}: {answer:?}, expected {expected:?}"),
        }
    }

    fn ingest(&mut self, at: &str) {
        let pairs: Map =
            (0..self.random.below(20)).map(|_| (self.random.key(), self.random.value())).collect();
        let Space { keyspace, ttl_ms, content, .. } = &mut self.spaces[0];
        let mut ingest = keyspace.ingest().unwrap_or_else(|error| panic!("{at}: {error}"));
        for (key, value) in &pairs {
            ingest.put(key, value).unwrap_or_else(|error| panic!("{at}: {error}"));
        }
        ingest.finish().unwrap_or_else(|error| panic!("{at}: {error}"));
        let expires_ms = ttl_ms.map(|ttl_ms| self.now_ms + ttl_ms);
        content.0.extend(pairs.into_iter().map(|(key, value)| (key, (value, expires_ms))));
    }

    fn choose_ttl(&mut self, at: &str) {
        let ttl_ms = (self.random.below(2) == 0).then(|| 1 + self.random.below(50) as u64);
        let number = self.random.below(self.spaces.len());
        let space = &mut self.spaces[number];
        let refused = space.keyspace.set_ttl(Some(Duration::ZERO)).expect_err("it is no time");
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{at}: {refused}");
        assert_eq!(space.keyspace.ttl(), space.ttl_ms.map(Duration::from_millis), "{at}");
        let chosen = space.keyspace.set_ttl(ttl_ms.map(Duration::from_millis));
        chosen.unwrap_or_else(|error| panic!("{at}: {error}"));
        space.ttl_ms = ttl_ms;
        assert_eq!(space.keyspace.ttl(), ttl_ms.map(Duration::from_millis), "{at}");
    }

    fn snapshot(&mut self) {
        // Nothing expires in it later: the model has what was there, with the times.
        let now_ms = self.now_ms;
        let mut contents: Vec<Timed> = self.spaces.iter().map(|space| space.content.clone()).collect();
        contents.iter_mut().for_each(|timed| timed.0.retain(|_, (_, ms)| ms.is_none_or(|ms| ms > now_ms)));
        self.snapshots.push((self.store.snapshot().expect("a snapshot"), contents));
        if self.snapshots.len() > 3 {
            self.snapshots.remove(self.random.below(4));
        }
    }

    fn read(&mut self, at: &str) {
        let (bounds, key, pairs) = (self.random.bounds(), self.random.key(), 1 + self.random.below(5));
        let moves: Vec<_> = (0..self.random.below(6)).map(|_| self.random.below(6)).collect();
        let read = |view: &S::View, content: &Timed, now_ms: u64, at: &str| {
            let seen = content.at(now_ms);
            compare(view, &seen, &bounds, &key, pairs, &moves, at);
            for (key, (_, ms)) in &content.0 {
                let expected = seen.contains_key(key).then_some(*ms);
                let found = view.expires_ms(key).unwrap_or_else(|error| panic!("{at}: {error}"));
                assert_eq!(found, expected, "{at}: the time of {}", key.escape_ascii());
                assert!(view.may_expire() || expected.flatten().is_none(), "{at}");
            }
        };
        for space in &self.spaces {
            read(&space.keyspace.view(), &space.content, self.now_ms, at);
        }
        for (snapshot, contents) in &self.snapshots {
            for (space, content) in self.spaces.iter().zip(contents) {
                read(&snapshot.view(space.keyspace.name()), content, 0, &format!("{at}, in a snapshot"));
            }
        }
    }
}
