//! The model: computes the expected results of a store from a map of histories, simple enough to be obviously
//! correct.
//!
//! A key's history lists its values, each with the version at which it was set. A snapshot is a version. So
//! every result is known exactly, except those of iterations and cursors over a newest state that changes
//! meanwhile. For these the histories decide which pairs may be shown, and which must be.

use crate::command::{Bounds, Command, Move, Target, show_mismatch, show_optional, show_pair};
use crate::world::{nothing_so_called, ok_if};
use forrest::line::Line;
use forrest::pairs::Pairs;
use forrest::{DEFAULT_KEYSPACE, Expires, MAX_KEY_BYTES, Op};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, RangeInclusive};
use std::rc::Rc;

type Value = Rc<[u8]>;
/// The values of a key, each with the version at which it was set.
type History = Vec<(u64, Option<Value>)>;

#[derive(Clone, Default)]
struct Space {
    histories: BTreeMap<Vec<u8>, History>,
    /// The name of its merge operator, one of [`OPERATORS`].
    operator: Option<String>,
    dropped: bool,
}

impl Space {
    /// The histories of all keys that were ever in a range.
    fn range<'m>(
        &'m self,
        bounds: &'m Bounds,
    ) -> impl DoubleEndedIterator<Item = (&'m Vec<u8>, &'m History)> {
        let bounds = (!inverted(bounds)).then_some((bounds.0.as_ref(), bounds.1.as_ref()));
        bounds.into_iter().flat_map(|bounds| self.histories.range::<Vec<u8>, _>(bounds))
    }
}

/// Names of keyspaces, and their indices in `Model::spaces`.
type Names = BTreeMap<String, usize>;

/// The merge operators that the model knows.
pub(crate) const OPERATORS: [&str; 2] = ["append", "max"];

struct Iteration {
    /// `None` if the keyspace did not exist in the snapshot.
    space: Option<usize>,
    /// A snapshot's version; `None` for the newest state.
    version: Option<u64>,
    /// The version at the first call, for the newest state.
    began: Option<u64>,
    bounds: Bounds,
    ended: bool,
}

struct Cursor {
    space: Option<usize>,
    version: Option<u64>,
    /// The version at the last jump, for the newest state.
    since: u64,
    key: Option<Vec<u8>>,
}

pub(crate) struct Model {
    key_bytes_max: usize,
    version: u64,
    spaces: Vec<Space>,
    names: Names,
    snapshots: BTreeMap<String, (u64, Names)>,
    iterations: BTreeMap<String, Iteration>,
    cursors: BTreeMap<String, Cursor>,
}

/// The value of a key at a version.
fn value_at(history: &History, version: u64) -> Option<Value> {
    let after = history.partition_point(|(from, _)| *from <= version);
    history[..after].last().and_then(|(_, value)| value.clone())
}

/// True if the key had a value at every version from `from` to `to`.
fn throughout(history: &History, from: u64, to: u64) -> bool {
    value_at(history, from).is_some()
        && history.iter().all(|(version, value)| !(from..=to).contains(version) || value.is_some())
}

/// True if the key had this value at some version from `from` to `to`.
fn at_some_time(history: &History, from: u64, to: u64, shown: impl Fn(&[u8]) -> bool) -> bool {
    let held = |value: &Option<Value>| value.as_deref().is_some_and(&shown);
    held(&value_at(history, from))
        || history.iter().any(|(version, value)| (from..=to).contains(version) && held(value))
}

pub(crate) fn inverted(bounds: &Bounds) -> bool {
    match bounds {
        (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (
            Bound::Included(lower) | Bound::Excluded(lower),
            Bound::Included(upper) | Bound::Excluded(upper),
        ) => lower >= upper,
    }
}

/// Whether a line's operation fails because of its lengths. The ends of a range may be longer than the
/// store's keys.
fn too_long(op: &Op, key_bytes_max: usize) -> bool {
    let is_range = matches!(op, Op::DeleteRange { .. } | Op::CompareRange { .. });
    let most = if is_range { MAX_KEY_BYTES } else { key_bytes_max };
    let keys = match op {
        Op::DeleteRange { start, end } | Op::CompareRange { start, end, .. } => {
            vec![start, end.as_ref().unwrap_or(start)]
        }
        Op::Set { key, .. } | Op::Delete { key } | Op::Add { key, .. } | Op::CompareAndSwap { key, .. } => {
            vec![key]
        }
        Op::SetUntil { key, .. } | Op::Merge { key, .. } => vec![key],
        other => unreachable!("the model does not know {other}"),
    };
    keys.iter().any(|key| key.len() > most)
}

/// Whether a value is gone at once. Others outlive the test.
fn is_over(expires: Expires) -> bool {
    matches!(expires, Expires::At(0..=1) | Expires::In(0))
}

const LIMIT: &str = "error: limit exceeded";
const INVALID: &str = "error: invalid argument";

impl Model {
    /// The model of a store whose keys have at most `key_bytes_max` bytes.
    pub(crate) fn new(key_bytes_max: usize) -> Model {
        Model {
            key_bytes_max,
            version: 0,
            spaces: vec![Space::default()],
            names: Names::from([(DEFAULT_KEYSPACE.to_string(), 0)]),
            snapshots: BTreeMap::new(),
            iterations: BTreeMap::new(),
            cursors: BTreeMap::new(),
        }
    }

    /// Opens or creates.
    fn keyspace(&mut self, name: Option<&str>) -> usize {
        let name = name.unwrap_or(DEFAULT_KEYSPACE);
        *self.names.entry(name.to_string()).or_insert_with(|| {
            self.spaces.push(Space::default());
            self.spaces.len() - 1
        })
    }

    /// The keyspace and version that a command reads. The outer `None` if there is no such snapshot, the
    /// inner one if the snapshot has no such keyspace.
    fn target(&mut self, at: &Target) -> Option<(Option<usize>, Option<u64>)> {
        match &at.snapshot {
            None => Some((Some(self.keyspace(at.keyspace.as_deref())), None)),
            Some(snapshot) => {
                let (version, names) = self.snapshots.get(snapshot)?;
                let name = at.keyspace.as_deref().unwrap_or(DEFAULT_KEYSPACE);
                Some((names.get(name).copied(), Some(*version)))
            }
        }
    }

    fn value(&self, space: Option<usize>, version: Option<u64>, key: &[u8]) -> Option<Value> {
        let history = self.spaces[space?].histories.get(key)?;
        value_at(history, version.unwrap_or(self.version))
    }

    /// The pairs of a range at a version.
    fn pairs<'m>(
        &'m self,
        space: Option<usize>,
        version: Option<u64>,
        bounds: &'m Bounds,
    ) -> impl DoubleEndedIterator<Item = (&'m Vec<u8>, Value)> {
        let version = version.unwrap_or(self.version);
        let space = space.map(|space| &self.spaces[space]);
        space
            .into_iter()
            .flat_map(|space| space.range(bounds))
            .filter_map(move |(key, history)| Some((key, value_at(history, version)?)))
    }

    /// The first or last pair of a range at a version.
    fn end_pair(
        &self,
        space: Option<usize>,
        version: Option<u64>,
        bounds: &Bounds,
        is_front: bool,
    ) -> Option<(Vec<u8>, Value)> {
        let mut pairs = self.pairs(space, version, bounds);
        let pair = if is_front { pairs.next() } else { pairs.next_back() };
        pair.map(|(key, value)| (key.clone(), value))
    }

    /// Applies operations as one change. Returns the results, or the number of the operation that failed, and
    /// the error.
    fn apply(&mut self, ops: &[(usize, &Op)]) -> Result<Vec<String>, (usize, String)> {
        let next = self.version + 1;
        let mut undo: Vec<(usize, Vec<u8>)> = Vec::new();
        let mut answers = Vec::new();
        for (at, (space, op)) in ops.iter().enumerate() {
            match self.apply_one(*space, op, next, &mut undo) {
                Ok(answer) => answers.push(answer),
                Err(failure) => {
                    for (space, key) in undo {
                        let histories = &mut self.spaces[space].histories;
                        let history = histories.get_mut(&key).expect("it was changed");
                        history.retain(|(version, _)| *version < next);
                    }
                    return Err((at, failure));
                }
            }
        }
        self.version = next;
        Ok(answers)
    }

    /// The result of a batch. Before its lines are conditions that hold.
    fn batch(&mut self, lines: &[Line], before: usize) -> String {
        let spaces: Vec<_> = lines.iter().map(|line| self.keyspace(line.keyspace.as_deref())).collect();
        let failed = |at: usize, error: &str| error.replace("error", &format!("error at {}", before + at));
        let compares = |line: &Line| matches!(line.op, Op::CompareRange { .. });
        let first = lines.iter().position(|line| !compares(line)).unwrap_or(lines.len());
        // First what every store refuses, then the lengths that only this one refuses.
        let too_long = |most| lines.iter().position(|line| too_long(&line.op, most));
        let refused = too_long(MAX_KEY_BYTES);
        let misplaced = (first..lines.len()).find(|&at| compares(&lines[at]));
        if let Some(at) = misplaced.filter(|&at| refused.is_none_or(|refused| at < refused)) {
            return failed(at, INVALID);
        }
        if let Some(at) = refused.or_else(|| too_long(self.key_bytes_max)) {
            return failed(at, LIMIT);
        }
        let ops: Vec<_> = spaces.into_iter().zip(lines.iter().map(|line| &line.op)).collect();
        match self.apply(&ops) {
            Ok(_) => "applied".into(),
            Err((at, failure)) if failure.starts_with("error") => failed(at, &failure),
            Err((at, mismatch)) => format!("{mismatch} at {}", before + at),
        }
    }

    fn apply_one(
        &mut self,
        space: usize,
        op: &Op,
        next: u64,
        undo: &mut Vec<(usize, Vec<u8>)>,
    ) -> Result<String, String> {
        let Space { histories, operator, .. } = &mut self.spaces[space];
        let mut put = |histories: &mut BTreeMap<_, History>, key: &Vec<u8>, value: Option<Value>| {
            undo.push((space, key.clone()));
            histories.entry(key.clone()).or_default().push((next, value));
        };
        let current = |histories: &BTreeMap<_, History>, key: &Vec<u8>| {
            histories.get(key).and_then(|history| history.last()?.1.clone())
        };
        match op {
            Op::Set { key, value } => {
                put(histories, key, Some(value[..].into()));
                Ok("ok".into())
            }
            Op::SetUntil { key, value, expires } => {
                put(histories, key, (!is_over(*expires)).then(|| value[..].into()));
                Ok("ok".into())
            }
            Op::Merge { key, operand } => {
                let old = current(histories, key);
                let old = old.as_deref();
                let value = match operator.as_deref().ok_or(INVALID)? {
                    "append" => [old.unwrap_or_default(), operand].concat(),
                    "max" => old.map_or(&operand[..], |old| old.max(operand)).to_vec(),
                    other => unreachable!("the model does not know the operator {other}"),
                };
                put(histories, key, Some(value.into()));
                Ok("ok".into())
            }
            Op::CompareRange { start, end, pairs } => {
                let expected: BTreeMap<_, _> = Pairs::new(pairs).collect();
                let is_in = |key: &[u8]| key >= &start[..] && end.as_ref().is_none_or(|end| key < &end[..]);
                let there: Vec<_> = histories.keys().filter(|key| is_in(key)).map(|key| &key[..]).collect();
                let keys: BTreeSet<&[u8]> = expected.keys().copied().chain(there).collect();
                let differs =
                    |key: &&[u8]| current(histories, &key.to_vec()).as_deref() != expected.get(key).copied();
                match keys.into_iter().find(differs) {
                    Some(key) => Err(show_mismatch(Some(key))),
                    None => Ok("compared".into()),
                }
            }
            Op::Delete { key } => {
                let was_there = current(histories, key).is_some();
                put(histories, key, None);
                Ok(was_there.to_string())
            }
            Op::Add { key, delta } => {
                let old = match current(histories, key) {
                    None => 0,
                    Some(value) => i64::from_be_bytes(value[..].try_into().map_err(|_| INVALID.to_string())?),
                };
                let sum = old.checked_add(*delta).ok_or(INVALID)?;
                put(histories, key, Some(sum.to_be_bytes()[..].into()));
                Ok(sum.to_string())
            }
            Op::CompareAndSwap { key, expected, new } => {
                let old = current(histories, key);
                if old.as_deref() != expected.as_deref() {
                    return Err(show_mismatch(old.as_deref()));
                }
                put(histories, key, new.as_ref().map(|value| value[..].into()));
                Ok("swapped".into())
            }
            Op::DeleteRange { start, end } => {
                let keys: Vec<_> = histories.range(start.clone()..).map(|(key, _)| key.clone()).collect();
                for key in keys.iter().filter(|key| end.as_ref().is_none_or(|end| *key < end)) {
                    if current(histories, key).is_some() {
                        put(histories, key, None);
                    }
                }
                Ok("ok".into())
            }
            other => unreachable!("the model does not know {other}"),
        }
    }

    /// The expected results of a command; `None` if [`check`](Self::check) must decide.
    pub(crate) fn execute(&mut self, command: &Command) -> Option<Vec<String>> {
        let one = |line: String| Some(vec![line]);
        match command {
            Command::Write(Line { keyspace, op }) => {
                let space = self.keyspace(keyspace.as_deref());
                if too_long(op, self.key_bytes_max) {
                    return one(LIMIT.into());
                }
                match self.apply(&[(space, op)]) {
                    Ok(answers) => Some(answers),
                    Err((_, failure)) => one(failure),
                }
            }
            Command::Append { keyspace, key, suffix } => {
                let space = self.keyspace(keyspace.as_deref());
                if key.len() > self.key_bytes_max {
                    return one(LIMIT.into());
                }
                let old = self.value(Some(space), None, key);
                let value = [old.as_deref().unwrap_or_default(), suffix].concat();
                let shown = show_optional(Some(&value));
                self.apply(&[(space, &Op::Set { key: key.clone(), value })]).expect("a set succeeds");
                one(shown)
            }
            Command::Batch(lines) => one(self.batch(lines, 0)),
            Command::Guard { keyspace, lines, .. } => {
                // Its condition holds.
                self.keyspace(keyspace.as_deref());
                one(self.batch(lines, 1))
            }
            Command::Ingest { keyspace, lines } => {
                let space = self.keyspace(keyspace.as_deref());
                let (mut ops, mut shown, mut last) = (Vec::new(), Vec::new(), None);
                for Line { op, .. } in lines {
                    let Op::Set { key, .. } = op else { unreachable!("an ingest sets") };
                    if key.len() > self.key_bytes_max {
                        shown.push(LIMIT.to_string());
                    } else if last.is_some_and(|last| last >= key) {
                        shown.push(INVALID.to_string());
                    } else {
                        ops.push((space, op));
                        last = Some(key);
                    }
                }
                self.apply(&ops).expect("a set succeeds");
                shown.push(ops.len().to_string());
                Some(shown)
            }
            Command::Operator { keyspace, name } => {
                let space = self.keyspace(keyspace.as_deref());
                let all = (Bound::Unbounded, Bound::Unbounded);
                let is_empty = self.pairs(Some(space), None, &all).next().is_none();
                let operator = &mut self.spaces[space].operator;
                let may_be = match operator {
                    Some(has) => has == name,
                    None => is_empty && OPERATORS.contains(&&name[..]),
                };
                if may_be {
                    *operator = Some(name.clone());
                }
                one(if may_be { "ok".into() } else { INVALID.into() })
            }
            Command::Get(at, key) | Command::GetInto(at, key) | Command::Contains(at, key) => {
                let Some((space, version)) = self.target(at) else { return Some(nothing_so_called()) };
                if key.len() > self.key_bytes_max {
                    return one(LIMIT.into());
                }
                let value = self.value(space, version, key);
                match command {
                    Command::Contains(..) => one(value.is_some().to_string()),
                    _ => one(show_optional(value.as_deref())),
                }
            }
            Command::MultiGet(at, keys) => {
                let Some((space, version)) = self.target(at) else { return Some(nothing_so_called()) };
                if keys.iter().any(|key| key.len() > self.key_bytes_max) {
                    return one(LIMIT.into());
                }
                Some(
                    keys.iter()
                        .map(|key| show_optional(self.value(space, version, key).as_deref()))
                        .collect(),
                )
            }
            Command::Count(at, bounds) => {
                let Some((space, version)) = self.target(at) else { return Some(nothing_so_called()) };
                one(self.pairs(space, version, bounds).count().to_string())
            }
            Command::Scan(at, ends, bounds) => self.scan(at, ends, bounds, |_| true),
            Command::Prefix(at, ends, prefix) => {
                let bounds = (Bound::Included(prefix.clone()), Bound::Unbounded);
                self.scan(at, ends, &bounds, |key| key.starts_with(prefix))
            }
            Command::First(at) | Command::Last(at) => {
                let Some((space, version)) = self.target(at) else { return Some(nothing_so_called()) };
                let bounds = (Bound::Unbounded, Bound::Unbounded);
                let mut pairs = self.pairs(space, version, &bounds);
                let pair =
                    if matches!(command, Command::First(_)) { pairs.next() } else { pairs.next_back() };
                one(pair.map_or("-".into(), |(key, value)| show_pair(key, &value)))
            }
            Command::Snapshot(name) => {
                self.snapshots.insert(name.clone(), (self.version, self.names.clone()));
                one("ok".into())
            }
            Command::Release(name) => Some(ok_if(self.snapshots.remove(name).is_some())),
            Command::Keyspace(name) => {
                self.keyspace(Some(name));
                one(format!("ok {name}"))
            }
            Command::DropKeyspace(name) if name == DEFAULT_KEYSPACE => one(INVALID.into()),
            Command::DropKeyspace(name) => {
                let Some(space) = self.names.remove(name) else { return one("false".into()) };
                let all = Op::DeleteRange { start: Vec::new(), end: None };
                self.apply(&[(space, &all)]).expect("a range deletion succeeds");
                self.spaces[space].dropped = true;
                one("true".into())
            }
            Command::Keyspaces(at) => match &at.snapshot {
                None => Some(self.names.keys().cloned().collect()),
                Some(name) => Some(match self.snapshots.get(name) {
                    Some((_, names)) => names.keys().cloned().collect(),
                    None => nothing_so_called(),
                }),
            },
            Command::Iterate(name, at, bounds) => {
                let Some((space, version)) = self.target(at) else { return Some(nothing_so_called()) };
                let iteration =
                    Iteration { space, version, began: None, bounds: bounds.clone(), ended: false };
                self.iterations.insert(name.clone(), iteration);
                one("ok".into())
            }
            Command::Step(name, ends) => {
                let Some(iteration) = self.iterations.get(name) else { return Some(nothing_so_called()) };
                let version = iteration.version?;
                let mut iteration = self.iterations.remove(name).expect("it was just there");
                let steps = ends.chars().map(|end| {
                    let pair = self.end_pair(iteration.space, Some(version), &iteration.bounds, end == 'f');
                    let Some((key, value)) = pair else { return "-".to_string() };
                    let shown = show_pair(&key, &value);
                    iteration.narrow(end, key);
                    shown
                });
                let shown = steps.collect();
                self.iterations.insert(name.clone(), iteration);
                Some(shown)
            }
            Command::Cursor(name, at) => {
                let Some((space, version)) = self.target(at) else { return Some(nothing_so_called()) };
                self.cursors.insert(name.clone(), Cursor { space, version, since: 0, key: None });
                one("ok".into())
            }
            Command::Move(name, to) => {
                let Some(cursor) = self.cursors.get(name) else { return Some(nothing_so_called()) };
                if matches!(to, Move::Seek(key) | Move::SeekForPrev(key) if key.len() > self.key_bytes_max) {
                    return one(LIMIT.into());
                }
                if cursor.version.is_none() && cursor.space.is_some_and(|space| self.spaces[space].dropped) {
                    // The move happens, but finds no pair in an emptied keyspace.
                    self.cursors.get_mut(name).expect("it was just there").key = None;
                    return one(INVALID.into());
                }
                if cursor.version.is_none()
                    && cursor.key.is_some()
                    && matches!(to, Move::Skip(_) | Move::Prev)
                {
                    return None;
                }
                let from = |key: &Vec<u8>| (Bound::Included(key.clone()), Bound::Unbounded);
                let through = |key: &Vec<u8>| (Bound::Unbounded, Bound::Included(key.clone()));
                let (bounds, forward) = match (to, &cursor.key) {
                    (Move::First, _) => ((Bound::Unbounded, Bound::Unbounded), true),
                    (Move::Last, _) => ((Bound::Unbounded, Bound::Unbounded), false),
                    (Move::Seek(key), _) => (from(key), true),
                    (Move::SeekForPrev(key), _) => (through(key), false),
                    (Move::Skip(_) | Move::Prev, None) => return one("-".into()),
                    (Move::Skip(_), Some(key)) => ((Bound::Excluded(key.clone()), Bound::Unbounded), true),
                    (Move::Prev, Some(key)) => ((Bound::Unbounded, Bound::Excluded(key.clone())), false),
                };
                let mut pairs = self.pairs(cursor.space, cursor.version, &bounds);
                let pair = match to {
                    Move::Skip(count) => pairs.nth(count - 1),
                    _ if forward => pairs.next(),
                    _ => pairs.next_back(),
                };
                let pair = pair.map(|(key, value)| (key.clone(), value));
                drop(pairs);
                let shown = pair.as_ref().map_or("-".into(), |(key, value)| show_pair(key, value));
                let since = self.version;
                let cursor = self.cursors.get_mut(name).expect("it was just there");
                (cursor.key, cursor.since) = (pair.map(|(key, _)| key), since);
                one(shown)
            }
            Command::Park(name) => Some(ok_if(self.cursors.contains_key(name))),
            Command::Close(name) => {
                let (iteration, cursor) = (self.iterations.remove(name), self.cursors.remove(name));
                Some(ok_if(iteration.is_some() || cursor.is_some()))
            }
            Command::Take { keyspace, ends, count, bounds } => {
                let space = self.keyspace(keyspace.as_deref());
                let mut pairs = self.pairs(Some(space), None, bounds);
                let ends = ends.chars().cycle().take(*count);
                let taken: Vec<(Vec<u8>, Value)> = ends
                    .map_while(|end| if end == 'f' { pairs.next() } else { pairs.next_back() })
                    .map(|(key, value)| (key.clone(), value))
                    .collect();
                drop(pairs);
                let ops: Vec<Op> = taken.iter().map(|(key, _)| Op::Delete { key: key.clone() }).collect();
                let ops: Vec<_> = ops.iter().map(|op| (space, op)).collect();
                self.apply(&ops).expect("a delete succeeds");
                Some(taken.iter().map(|(key, value)| show_pair(key, value)).collect())
            }
            Command::Keys => {
                let all = (Bound::Unbounded, Bound::Unbounded);
                let keys: usize =
                    self.names.values().map(|&space| self.pairs(Some(space), None, &all).count()).sum();
                one(keys.to_string())
            }
            Command::Sync | Command::Compact | Command::Verify => one("ok".into()),
            Command::Reopen(_) => {
                self.snapshots.clear();
                self.iterations.clear();
                self.cursors.clear();
                one("ok".into())
            }
        }
    }

    fn scan(
        &mut self,
        at: &Target,
        ends: &str,
        bounds: &Bounds,
        is_wanted: impl Fn(&[u8]) -> bool,
    ) -> Option<Vec<String>> {
        let Some((space, version)) = self.target(at) else { return Some(nothing_so_called()) };
        let mut pairs = self.pairs(space, version, bounds).filter(|(key, _)| is_wanted(key));
        let mut shown = Vec::new();
        for end in ends.chars().cycle() {
            match if end == 'f' { pairs.next() } else { pairs.next_back() } {
                Some((key, value)) => shown.push(show_pair(key, &value)),
                None => break,
            }
        }
        Some(shown)
    }

    /// Checks results from a newest state that changes meanwhile.
    pub(crate) fn check(&mut self, command: &Command, shown: &[String]) -> Result<(), String> {
        match command {
            Command::Step(name, ends) => self.check_steps(name, ends, shown),
            Command::Move(name, Move::Skip(count)) => self.check_move(name, true, count - 1, &shown[0]),
            Command::Move(name, _) => self.check_move(name, false, 0, &shown[0]),
            _ => unreachable!("of all else the answer is known"),
        }
    }

    /// Steps of an iteration.
    fn check_steps(&mut self, name: &str, ends: &str, shown: &[String]) -> Result<(), String> {
        let iteration = self.iterations.get_mut(name).expect("only known iterations are judged");
        let space = &self.spaces[iteration.space.expect("the newest state has every keyspace")];
        let began = *iteration.began.get_or_insert(self.version);
        if shown.len() != ends.len() {
            return Err(format!("{} steps gave {} answers", ends.len(), shown.len()));
        }
        for (end, line) in ends.chars().zip(shown) {
            if line == INVALID && space.dropped {
                continue;
            }
            match space.check_next(&iteration.bounds, end == 'f', 0, began..=self.version, line)? {
                Some(_) if iteration.ended => return Err(format!("{line} after the end")),
                Some(key) => iteration.narrow(end, key),
                None => iteration.ended = true,
            }
        }
        Ok(())
    }

    /// Checks a move of a cursor that skips some pairs.
    fn check_move(
        &mut self,
        name: &str,
        is_forward: bool,
        skipped: usize,
        shown: &str,
    ) -> Result<(), String> {
        let cursor = self.cursors.get_mut(name).expect("only known cursors are judged");
        let space = &self.spaces[cursor.space.expect("the newest state has every keyspace")];
        let here = Bound::Excluded(cursor.key.clone().expect("only steps from a pair are judged"));
        let bounds = if is_forward { (here, Bound::Unbounded) } else { (Bound::Unbounded, here) };
        cursor.key = space.check_next(&bounds, is_forward, skipped, cursor.since..=self.version, shown)?;
        Ok(())
    }
}

impl Space {
    /// Checks the pair of a range that was shown as the next one from an end, or after some skipped pairs, by
    /// an iteration that spans several versions. Returns its key.
    fn check_next(
        &self,
        bounds: &Bounds,
        is_forward: bool,
        skipped: usize,
        versions: RangeInclusive<u64>,
        shown: &str,
    ) -> Result<Option<Vec<u8>>, String> {
        let (since, now) = versions.into_inner();
        let mut rest: Vec<_> = self.range(bounds).collect();
        if !is_forward {
            rest.reverse();
        }
        let is_shown = |(key, history): &(&Vec<u8>, &History)| {
            at_some_time(history, since, now, |value| shown == show_pair(key, value))
        };
        let found = rest.iter().position(is_shown);
        if found.is_none() && shown != "-" {
            return Err(format!("{shown} was not there since the iteration began, or not in what is left"));
        }
        let passed = &rest[..found.unwrap_or(rest.len())];
        let mut there = passed.iter().filter(|(_, history)| throughout(history, since, now));
        if let Some((key, _)) = there.nth(skipped) {
            return Err(format!("{} was there throughout and was left out", show_optional(Some(key))));
        }
        Ok(found.map(|at| rest[at].0.clone()))
    }
}

impl Iteration {
    /// Removes the part up to a pair that was shown at one end.
    fn narrow(&mut self, end: char, key: Vec<u8>) {
        match end {
            'f' => self.bounds.0 = Bound::Excluded(key),
            _ => self.bounds.1 = Bound::Excluded(key),
        }
    }
}
