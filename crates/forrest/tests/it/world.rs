//! The objects that a script uses: a store, and named snapshots, iterations and cursors.

use crate::command::{Bounds, Command, Move, Target, show_mismatch, show_optional, show_pair};
use forrest::line::Line;
use forrest::{
    Cursor, DEFAULT_KEYSPACE, Db, Entry, Error, ErrorKind, KeyRange, Keyspace, Op, Outcome, Range,
    RangeCursor, Snapshot, Swap, View, WriteBatch, Written,
};
use std::collections::HashMap;
use std::ops::{Bound, ControlFlow};

/// Opens a store again with an option set.
pub(crate) type Reopen = Box<dyn Fn(usize) -> Result<Db, Error>>;

/// A store in use.
pub(crate) struct World {
    db: Db,
    /// `None` if nothing outlives the store.
    reopen: Option<Reopen>,
    snapshots: HashMap<String, Snapshot>,
    iterations: HashMap<String, Range>,
    cursors: HashMap<String, Cursor>,
}

/// An error as scripts show it: its kind, and for a batch the operation. Other tests check the messages.
pub(crate) fn show_error(error: &Error) -> String {
    match error.op() {
        Some(op) => format!("error at {op}: {}", error.kind()),
        None => format!("error: {}", error.kind()),
    }
}

fn pair(entry: &Entry) -> Result<String, Error> {
    Ok(show_pair(entry.key(), &entry.value()?))
}

fn borrowed(bounds: &Bounds) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (bounds.0.as_ref().map(Vec::as_slice), bounds.1.as_ref().map(Vec::as_slice))
}

/// All pairs, taken from the ends in turn.
fn drain(mut range: Range, ends: &str) -> Result<Vec<String>, Error> {
    let mut pairs = Vec::new();
    for end in ends.chars().cycle() {
        match if end == 'f' { range.next() } else { range.next_back() } {
            Some(entry) => pairs.push(pair(&entry?)?),
            None => break,
        }
    }
    assert!(range.next().is_none() && range.next_back().is_none(), "an iteration that ended goes on");
    Ok(pairs)
}

/// Compares reads of keys alone with the pairs of a range, from the front or the back.
fn check_keys(
    view: &View,
    bounds: (Bound<&[u8]>, Bound<&[u8]>),
    pairs: &[String],
    is_front: bool,
) -> Result<(), Error> {
    let of = |pair: &str| pair.split(' ').next().map(str::to_owned);
    let keys: Vec<_> = pairs.iter().map(|pair| of(pair)).collect();
    let mut range = view.range(bounds).keys();
    let mut found = Vec::new();
    while let Some(key) = if is_front { range.next() } else { range.next_back() } {
        found.push(of(&show_pair(&key?, b"")));
    }
    assert_eq!(found, keys, "an iteration over keys shows what one over pairs does");
    if is_front {
        let (mut scanned, mut first) = (Vec::new(), Vec::new());
        view.scan_keys(bounds, |key| {
            scanned.push(of(&show_pair(key, b"")));
            ControlFlow::Continue(())
        })?;
        assert_eq!(scanned, keys, "a scan of keys shows what an iteration does");
        view.multi_scan(&[bounds, bounds], 2, |range, key, value| {
            first.push((range, show_pair(key, value)));
            ControlFlow::Continue(())
        })?;
        let both =
            [0, 1].into_iter().flat_map(|range| pairs.iter().take(2).map(move |pair| (range, pair.clone())));
        assert_eq!(first, both.collect::<Vec<_>>(), "a scan of two ranges shows what iterations do");
    }
    Ok(())
}

impl World {
    pub(crate) fn new(db: Db) -> World {
        World {
            db,
            reopen: None,
            snapshots: HashMap::new(),
            iterations: HashMap::new(),
            cursors: HashMap::new(),
        }
    }

    /// A store that can be closed and opened again.
    pub(crate) fn reopenable(set: usize, reopen: Reopen) -> Result<World, Error> {
        let world = World::new(reopen(set)?);
        Ok(World { reopen: Some(reopen), ..world })
    }

    /// Maximum length of a key of this store.
    pub(crate) fn key_bytes_max(&self) -> usize {
        match self.db.capabilities().home() {
            "llds:" | "llds-user:" => forrest::llds::MAX_KEY_BYTES,
            _ => forrest::MAX_KEY_BYTES,
        }
    }

    /// Executes a command and returns its results as lines.
    pub(crate) fn execute(&mut self, command: &Command) -> Vec<String> {
        self.try_execute(command).unwrap_or_else(|error| vec![show_error(&error)])
    }

    /// The view to read from, or `None` if there is no such snapshot.
    fn view(&self, at: &Target) -> Result<Option<View>, Error> {
        Ok(match (&at.snapshot, &at.keyspace) {
            (None, None) => Some(View::clone(&self.db)),
            (None, Some(name)) => Some(View::clone(&*self.db.keyspace(name)?)),
            (Some(snapshot), None) => self.snapshots.get(snapshot).map(|snapshot| View::clone(snapshot)),
            (Some(snapshot), Some(name)) => match self.snapshots.get(snapshot) {
                Some(snapshot) => Some(snapshot.keyspace(name)?),
                None => None,
            },
        })
    }

    /// Reads from the target.
    fn read(
        &self,
        at: &Target,
        read: impl FnOnce(View) -> Result<Vec<String>, Error>,
    ) -> Result<Vec<String>, Error> {
        self.view(at)?.map_or_else(|| Ok(nothing_so_called()), read)
    }

    fn space(&self, name: &Option<String>) -> Result<Keyspace, Error> {
        self.db.keyspace(name.as_deref().unwrap_or(DEFAULT_KEYSPACE))
    }

    /// Writes a batch with more operations.
    fn write(&self, mut batch: WriteBatch, lines: &[Line]) -> Result<String, Error> {
        for line in lines {
            match &line.keyspace {
                None => drop(batch.push(line.op.borrowed())),
                Some(name) => drop(batch.on(&self.db.keyspace(name)?).push(line.op.borrowed())),
            }
        }
        Ok(match self.db.try_write(batch)? {
            Written::Mismatch { op, found } => format!("{} at {op}", show_mismatch(found.as_deref())),
            _applied => "applied".to_string(),
        })
    }

    fn try_execute(&mut self, command: &Command) -> Result<Vec<String>, Error> {
        let one = |line: String| Ok(vec![line]);
        match command {
            Command::Write(line) => {
                let outcome = match &line.keyspace {
                    None => self.db.apply(line.op.borrowed())?,
                    Some(name) => self.db.keyspace(name)?.apply(line.op.borrowed())?,
                };
                one(show_outcome(&outcome))
            }
            Command::Append { keyspace, key, suffix } => {
                let space = self.space(keyspace)?;
                let new = space.update(key, |old| Some([old.unwrap_or_default(), suffix].concat()))?;
                one(show_optional(new.as_deref()))
            }
            Command::Batch(lines) => one(self.write(WriteBatch::new(), lines)?),
            Command::Guard { keyspace, bounds, lines } => {
                let space = self.space(keyspace)?;
                let mut pairs = Vec::new();
                space.scan(borrowed(bounds), |key, value| {
                    pairs.push((key.to_vec(), value.to_vec()));
                    ControlFlow::Continue(())
                })?;
                let mut batch = WriteBatch::new();
                batch.on(&space).compare_range(borrowed(bounds), pairs);
                one(self.write(batch, lines)?)
            }
            Command::Ingest { keyspace, lines } => {
                let mut ingest = self.space(keyspace)?.ingest()?;
                let mut shown = Vec::new();
                for line in lines {
                    let Op::Set { key, value } = &line.op else { unreachable!("an ingest sets") };
                    shown.extend(ingest.put(key, value).err().map(|error| show_error(&error)));
                }
                shown.push(ingest.finish()?.to_string());
                Ok(shown)
            }
            Command::Operator { keyspace, name } => {
                self.space(keyspace)?.set_merge_operator(name)?;
                one("ok".into())
            }
            Command::Get(at, key) => self.read(at, |view| one(show_optional(view.get(key)?.as_deref()))),
            Command::GetInto(at, key) => self.read(at, |view| {
                let mut buf = b"left over".to_vec();
                let found = view.get_into(key, &mut buf)?;
                one(show_optional(found.then_some(&buf)))
            }),
            Command::Contains(at, key) => self.read(at, |view| one(view.contains(key)?.to_string())),
            Command::MultiGet(at, keys) => self.read(at, |view| {
                let values = view.multi_get(keys)?;
                Ok(values.iter().map(|value| show_optional(value.as_deref())).collect())
            }),
            Command::Count(at, bounds) => {
                self.read(at, |view| one(view.count(borrowed(bounds))?.to_string()))
            }
            Command::Scan(at, ends, bounds) => self.read(at, |view| {
                let pairs = drain(view.range(borrowed(bounds)), ends)?;
                if *ends == "f" || *ends == "b" {
                    check_keys(&view, borrowed(bounds), &pairs, *ends == "f")?;
                }
                let mut shown = Vec::new();
                let see = |key: &[u8], value: &[u8]| {
                    shown.push(show_pair(key, value));
                    ControlFlow::Continue(())
                };
                match &ends[..] {
                    "f" => view.scan(borrowed(bounds), see)?,
                    "b" => view.scan_back(borrowed(bounds), see)?,
                    _ => return Ok(pairs),
                }
                assert_eq!(shown, pairs, "a scan shows what an iteration does");
                Ok(pairs)
            }),
            Command::Prefix(at, ends, prefix) => self.read(at, |view| drain(view.prefix(prefix), ends)),
            Command::First(at) => {
                self.read(at, |view| one(view.first()?.as_ref().map_or(Ok("-".into()), pair)?))
            }
            Command::Last(at) => {
                self.read(at, |view| one(view.last()?.as_ref().map_or(Ok("-".into()), pair)?))
            }
            Command::Snapshot(name) => {
                self.snapshots.insert(name.clone(), self.db.snapshot()?);
                one("ok".into())
            }
            Command::Release(name) => Ok(ok_if(self.snapshots.remove(name).is_some())),
            Command::Keyspace(name) => one(format!("ok {}", self.db.keyspace(name)?.name())),
            Command::DropKeyspace(name) => one(self.db.drop_keyspace(name)?.to_string()),
            Command::Keyspaces(at) => match &at.snapshot {
                None => self.db.keyspaces(),
                Some(name) => match self.snapshots.get(name) {
                    Some(snapshot) => snapshot.keyspaces(),
                    None => Ok(nothing_so_called()),
                },
            },
            Command::Iterate(name, at, bounds) => match self.view(at)? {
                Some(view) => {
                    self.iterations.insert(name.clone(), view.range(borrowed(bounds)));
                    one("ok".into())
                }
                None => Ok(nothing_so_called()),
            },
            Command::Step(name, ends) => {
                let Some(range) = self.iterations.get_mut(name) else { return Ok(nothing_so_called()) };
                let steps = ends.chars().map(|end| if end == 'f' { range.next() } else { range.next_back() });
                Ok(steps
                    .map(|step| match step {
                        Some(Ok(entry)) => pair(&entry).unwrap_or_else(|error| show_error(&error)),
                        Some(Err(error)) => show_error(&error),
                        None => "-".to_string(),
                    })
                    .collect())
            }
            Command::Cursor(name, at) => match self.view(at)? {
                Some(view) => {
                    self.cursors.insert(name.clone(), view.cursor());
                    one("ok".into())
                }
                None => Ok(nothing_so_called()),
            },
            Command::Move(name, to) => {
                let Some(cursor) = self.cursors.get_mut(name) else { return Ok(nothing_so_called()) };
                let found = match to {
                    Move::First => cursor.first(),
                    Move::Last => cursor.last(),
                    Move::Skip(1) => cursor.next(),
                    Move::Skip(count) => cursor.skip(*count as u64),
                    Move::Prev => cursor.prev(),
                    Move::Seek(key) => cursor.seek(key),
                    Move::SeekForPrev(key) => cursor.seek_for_prev(key),
                }?;
                let shown = cursor.key().zip(cursor.value()?).map(|(key, value)| show_pair(key, &value));
                assert_eq!(found, shown.is_some(), "a cursor's answer and its pair disagree");
                one(shown.unwrap_or_else(|| "-".into()))
            }
            Command::Park(name) => {
                let cursor = self.cursors.get_mut(name);
                let parked = cursor.map(|cursor| {
                    let key = cursor.key().map(<[u8]>::to_vec);
                    cursor.park();
                    assert_eq!(cursor.key(), key.as_deref(), "parking moved a cursor");
                });
                Ok(ok_if(parked.is_some()))
            }
            Command::Close(name) => {
                let (iteration, cursor) = (self.iterations.remove(name), self.cursors.remove(name));
                Ok(ok_if(iteration.is_some() || cursor.is_some()))
            }
            Command::Take { keyspace, ends, count, bounds } => {
                let space = self.space(keyspace)?;
                self.db.transact(|transaction| {
                    let draft = transaction.on(&space);
                    let mut cursor = RangeCursor::new(borrowed(bounds));
                    let mut shown = Vec::new();
                    for end in ends.chars().cycle().take(*count) {
                        let pair = if end == 'f' { cursor.next(draft)? } else { cursor.next_back(draft)? };
                        let Some((key, value)) = pair else { break };
                        draft.delete(&key)?;
                        assert!(!draft.contains(&key)?, "a transaction does not see its own change");
                        shown.push(show_pair(&key, &value));
                    }
                    Ok(shown)
                })
            }
            Command::Keys => one(self.db.stats()?.keys.to_string()),
            Command::Sync => done(self.db.sync()),
            Command::Compact => done(self.db.compact()),
            Command::Verify => done(self.db.verify()),
            Command::Reopen(set) => {
                self.snapshots.clear();
                self.iterations.clear();
                self.cursors.clear();
                if let Some(reopen) = &self.reopen {
                    // A store can only be open once. A store in memory takes its place until it is open
                    // again.
                    self.db = Db::open("memory:")?;
                    self.db = reopen(*set)?;
                }
                one("ok".into())
            }
        }
    }
}

/// The result of a command that some homes do not support.
fn done(result: Result<(), Error>) -> Result<Vec<String>, Error> {
    match result {
        Err(error) if error.kind() != ErrorKind::Unsupported => Err(error),
        _ => Ok(vec!["ok".to_string()]),
    }
}

/// The result of a command that names a missing snapshot, iteration or cursor.
pub(crate) fn nothing_so_called() -> Vec<String> {
    vec!["nothing so called".to_string()]
}

/// The result of a command that removes something.
pub(crate) fn ok_if(there: bool) -> Vec<String> {
    if there { vec!["ok".to_string()] } else { nothing_so_called() }
}

fn show_outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Set | Outcome::Merged => "ok".into(),
        Outcome::Deleted(was_there) => was_there.to_string(),
        Outcome::Added(sum) => sum.to_string(),
        Outcome::Swapped(Swap::Done) => "swapped".into(),
        Outcome::Swapped(Swap::Mismatch(found)) | Outcome::ComparedRange(Swap::Mismatch(found)) => {
            show_mismatch(found.as_deref())
        }
        Outcome::ComparedRange(Swap::Done) => "compared".into(),
        Outcome::DeletedRange => "ok".into(),
        other => unreachable!("a script cannot ask for {other:?}"),
    }
}

/// Removes all keys of a range, and returns their number.
pub(crate) fn removed(space: &Keyspace, range: impl KeyRange) -> u64 {
    let before = space.count(..).expect("it can be counted");
    space.delete_range(range).expect("they can be removed");
    before - space.count(..).expect("it can be counted")
}
