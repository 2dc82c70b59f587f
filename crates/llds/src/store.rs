//! [`Store`]: operations on an open store of the kernel module, or of the same engine in this process.
//!
//! A request is a sequence of operations (wire.rs); one call of the engine does them and writes their answers
//! to one buffer. Most reads need no call: they are seqlock reads of the store's mapping. Each operation
//! takes effect at one instant for all processes that share the store, and so does a batch. There are no
//! snapshots, and there is one keyspace. A read sees the newest state. A scan sees one state for each piece;
//! the next piece begins after the last key.
//!
//! Nothing of the store's content is cached here, so nothing can be stale. Each thread keeps its buffers.

use crate::buffers::{self, Buffers, ROOM_BYTES};
use crate::failure::{self, Kind};
use crate::name::{self, Name};
use crate::raw::{self as llds, Attach, abi};
use crate::wire::{self, Answer, Answers, Head, Ops, nonsense};
use forrest_engine::bounds::clamp_to;
use forrest_engine::chunk::COPIED_VALUE_BYTES;
use forrest_engine::pairs::{PAIR_BYTES, Pairs};
use forrest_engine::{
    Capabilities, Capability, Chunk, DEFAULT_KEYSPACE, Direction, Durability, Error, Filled, Op, Options,
    Outcome, Result, Stats, Swap, Value, Written,
};
use std::ops::{Bound, ControlFlow, RangeBounds};
use std::sync::Arc;

/// Maximum bytes of a run of gets.
const GETS_BYTES: usize = 1 << 20;
/// The first room for each answer of a run of gets. The engine stops where it is used up.
const GET_ROOM_BYTES: usize = 64;
/// Room for each pair of a scan, an estimate.
const PAIR_ROOM_BYTES: usize = 96;
/// Room for a short scan: as much as the engine has without an allocation.
const ROOM_BYTES_MIN: usize = 256;

/// An open store. Cloning makes another handle.
#[derive(Clone)]
pub struct Store(Arc<OpenStore>);

struct OpenStore {
    kind: Kind,
    name: String,
    store: llds::RawStore,
    value_bytes_max: usize,
}

impl Store {
    /// Removes the store's name, unless that is another store's by now.
    pub(crate) fn destroy(&self, name: Name<'_>) -> llds::Result<()> {
        self.0.store.destroy(name.user, name.bytes)
    }

    /// Opens a store, for reading only if `is_read_only`.
    ///
    /// # Errors
    /// `Io` if the module is not loaded, if this user may not use the store, or if it does not exist and the
    /// options do not create it; `Unsupported` for a durability that the home does not have, or another
    /// version of the module; `Limit`.
    pub fn open(kind: Kind, name: &str, options: &Options, is_read_only: bool) -> Result<Store> {
        demand(kind, options.durability)?;
        if name.contains('\0') {
            return Err(Error::invalid("the name of a store has no byte 0"));
        }
        let of = match kind {
            Kind::Kernel => Name::of(name.as_bytes(), name::own())?,
            // They are of this process.
            Kind::User => Name { user: None, bytes: name.as_bytes() },
        };
        if of.bytes.len() > abi::NAME_BYTES_MAX {
            return Err(Error::limit("name of a store", "bytes", of.bytes.len(), abi::NAME_BYTES_MAX));
        }
        let attach = Attach {
            name: of.bytes,
            user: of.user,
            makes: options.create && !is_read_only,
            bytes_max: options.capacity_bytes.map_or(0, |bytes| bytes as u64),
            mode: options.mode,
            numa: options.numa,
        };
        let opened = match kind {
            Kind::Kernel => llds::RawStore::open(&attach, !is_read_only),
            Kind::User => user(&attach, !is_read_only)?,
        };
        let store = opened.map_err(|error| failure::opening(kind, name, &error))?;
        Ok(Store::of(kind, name.to_owned(), store))
    }

    /// A store that was opened.
    pub(crate) fn of(kind: Kind, name: String, store: llds::RawStore) -> Store {
        let value_bytes_max = usize::try_from(store.value_bytes_max()).unwrap_or(usize::MAX);
        // The lengths of one operation must add up to less than 4 GiB, what a run can express.
        let value_bytes_max = value_bytes_max.min(1 << 30);
        Store(Arc::new(OpenStore { kind, name, store, value_bytes_max }))
    }

    /// The beginning of the store's URL.
    pub(crate) fn scheme(&self) -> &'static str {
        self.0.kind.scheme()
    }

    pub(crate) fn abilities(&self) -> Capabilities {
        use Capability as C;
        let list: &[C] = match self.0.kind {
            Kind::Kernel => &[C::Iteration, C::Batches, C::Persistence, C::Sharing, C::ReadOnly],
            Kind::User => &[C::Iteration, C::Batches, C::ReadOnly],
        };
        Capabilities::new(self.scheme(), list)
    }

    /// Fails if `name` is not the name of the one keyspace.
    pub(crate) fn check_keyspace(&self, name: &str) -> Result<()> {
        if name == DEFAULT_KEYSPACE {
            return Ok(());
        }
        let (url, name) = (self.0.kind.scheme(), name.escape_debug());
        Err(Error::unsupported(format!(
            "keyspace \"{name}\" in \"{url}\": a store there has the keyspace \"{DEFAULT_KEYSPACE}\" only; use a store for each"
        )))
    }

    pub(crate) fn same(&self, other: &Store) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn statistics(&self) -> Result<Stats> {
        let stats = self.0.store.stats().map_err(|error| self.failed(&error))?;
        // The module does not distinguish used memory from memory reserved for further pairs.
        let bytes = stats.bytes;
        let mut all = Stats::default();
        (all.keys, all.keyspaces) = (stats.keys, 1);
        (all.node_bytes, all.reserved_bytes) = (bytes, bytes);
        Ok(all)
    }

    fn failed(&self, error: &llds::Error) -> Error {
        failure::using(self.0.kind, &self.0.name, error)
    }

    /// The error for an operation with a negative status.
    fn refused(&self, op: &Op<&[u8]>, status: i32) -> Error {
        failure::refused(self.0.kind, &self.0.name, op, status)
    }

    /// Fails if the store is open read-only.
    fn check_writable(&self) -> Result<()> {
        if self.0.store.may_change() {
            return Ok(());
        }
        Err(failure::read_only(self.0.kind, &self.0.name))
    }

    fn check_value(&self, value: &[u8]) -> Result<()> {
        let most = self.0.value_bytes_max;
        if value.len() > most { Err(Error::limit("value", "bytes", value.len(), most)) } else { Ok(()) }
    }

    /// Checks the lengths of an operation. A range's bounds may have any length.
    fn check(&self, op: &Op<&[u8]>) -> Result<()> {
        match *op {
            Op::DeleteRange { .. } => Ok(()),
            Op::CompareRange { pairs, .. } => {
                let most = self.0.value_bytes_max;
                Pairs::new(pairs).try_for_each(|(key, value)| {
                    check_key(key)?;
                    let bytes = wire::pair_bytes(key, value);
                    if bytes > most {
                        return Err(Error::limit("pair of a range that is compared", "bytes", bytes, most));
                    }
                    Ok(())
                })
            }
            Op::Delete { key } | Op::Add { key, .. } => check_key(key),
            Op::Set { key, value } => check_key(key).and_then(|()| self.check_value(value)),
            Op::CompareAndSwap { key, expected, new } => {
                check_key(key)?;
                expected.into_iter().chain(new).try_for_each(|value| self.check_value(value))
            }
            Op::SetUntil { .. } => Err(forrest_engine::no_expiry()),
            _ => Err(Error::unsupported(format!("this operation with \"{}\"", self.scheme()))),
        }
    }

    /// Does operations until the room for answers is used up; grows the room only if the first answer needs
    /// more. Returns the number of operations done, their bytes, and the answers.
    fn run<'a>(
        &self,
        ops: &[u8],
        answers: &'a mut Vec<u8>,
        mut room: usize,
        is_atomic: bool,
    ) -> Result<(usize, usize, Answers<'a>)> {
        loop {
            buffers::make_room(answers, room)?;
            let ran = self.0.store.run(ops, &mut answers[..room], is_atomic);
            match ran.map_err(|error| self.failed(&error))? {
                llds::Ran::Done { ops, ops_bytes, answers_bytes } => {
                    let answers = answers.get(..answers_bytes).ok_or_else(|| nonsense("it is too long"))?;
                    return Ok((ops as usize, ops_bytes, Answers::new(answers)));
                }
                llds::Ran::Wants(bytes) => room = bytes,
            }
        }
    }

    /// Does one operation and reads its answer.
    #[inline]
    fn one<R>(
        &self,
        is_atomic: bool,
        push: impl FnOnce(&mut Ops),
        read: impl FnOnce(Answer<'_>) -> Result<R>,
    ) -> Result<R> {
        let mut buffers = Buffers::take();
        let Buffers { ops, answers, .. } = &mut *buffers;
        push(ops);
        let room = answers.len();
        let (_, _, mut answers) = self.run(ops.bytes(), answers, room, is_atomic)?;
        let answer = answers.next()?;
        answers.end()?;
        read(answer)
    }

    /// Makes one change.
    pub(crate) fn apply(&self, op: Op<&[u8]>) -> Result<Outcome> {
        if matches!(op, Op::CompareRange { .. }) {
            return Ok(Outcome::ComparedRange(match self.write_all([op].into_iter(), None)? {
                Written::Mismatch { found, .. } => Swap::Mismatch(found),
                _ => Swap::Done,
            }));
        }
        self.check_writable()?;
        self.check(&op)?;
        // Not even a range is an atomic run: its journal takes memory, which a full store does not have.
        self.one(false, |ops| push(ops, &op), |answer| self.outcome(&op, &answer))
    }

    /// The outcome of an operation from its answer.
    fn outcome(&self, op: &Op<&[u8]>, answer: &Answer<'_>) -> Result<Outcome> {
        match (op, answer.status) {
            (_, number) if number < 0 => Err(self.refused(op, number)),
            (Op::Set { .. }, abi::DONE) => Ok(Outcome::Set),
            (Op::Delete { .. }, abi::DONE) => Ok(Outcome::Deleted(true)),
            (Op::Delete { .. }, abi::ABSENT) => Ok(Outcome::Deleted(false)),
            (Op::Add { .. }, abi::DONE) => Ok(Outcome::Added(i64::from_ne_bytes(answer.eight_bytes()?))),
            (Op::CompareAndSwap { .. }, abi::DONE) => Ok(Outcome::Swapped(Swap::Done)),
            (Op::CompareAndSwap { .. }, abi::ABSENT) => Ok(Outcome::Swapped(Swap::Mismatch(None))),
            (Op::CompareAndSwap { .. }, abi::DIFFERS) => {
                Ok(Outcome::Swapped(Swap::Mismatch(Some(answer.bytes.into()))))
            }
            // The module counts the keys; the count is not used.
            (Op::CompareRange { .. }, abi::DONE) => Ok(Outcome::ComparedRange(Swap::Done)),
            (Op::CompareRange { .. }, abi::DIFFERS) => {
                Ok(Outcome::ComparedRange(Swap::Mismatch(Some(answer.bytes.into()))))
            }
            (Op::DeleteRange { .. }, abi::DONE) => answer.eight_bytes().map(|_| Outcome::DeletedRange),
            _ => Err(nonsense("the status does not fit the operation")),
        }
    }

    /// Applies operations in order, all or none, visible at one instant.
    pub(crate) fn write_all<'b>(
        &self,
        changes: impl Iterator<Item = Op<&'b [u8]>>,
        durability: Option<Durability>,
    ) -> Result<Written> {
        demand(self.0.kind, durability)?;
        self.check_writable()?;
        let mut buffers = Buffers::take();
        let Buffers { ops, answers, .. } = &mut *buffers;
        let mut list = Vec::new();
        for (at, op) in changes.enumerate() {
            self.check(&op).map_err(|error| error.at_op(at))?;
            match op {
                Op::CompareRange { start, end, pairs } => {
                    compare_in_pieces((start, end), pairs, self.0.value_bytes_max, |piece| {
                        push(ops, &piece);
                        list.push((at, piece));
                    });
                }
                _ => {
                    push(ops, &op);
                    list.push((at, op));
                }
            }
            if ops.bytes().len() > abi::ATOMIC_BYTES_MAX {
                let (bytes, most) = (ops.bytes().len(), abi::ATOMIC_BYTES_MAX);
                return Err(Error::limit("batch with its framing", "bytes", bytes, most));
            }
        }
        if list.is_empty() {
            return Ok(Written::Applied);
        }
        // The longest answer of an operation that succeeds is a number.
        let room = list.len().saturating_mul(wire::ANSWER_BYTES_MIN + 8);
        let (done, done_bytes, mut answers) = self.run(ops.bytes(), answers, room, true)?;
        if done_bytes == ops.bytes().len() {
            return Ok(Written::Applied);
        }
        let Some((at, op)) = list.get(done) else {
            return Err(nonsense("more operations were done than requested"));
        };
        let answer = answers.next()?;
        match self.outcome(op, &answer).map_err(|error| error.at_op(*at))?.mismatch() {
            Some(found) => Ok(Written::Mismatch { op: *at, found }),
            None => Err(nonsense("a batch was not applied, but no operation failed")),
        }
    }

    /// Sets pairs, not as one: if one fails, any of the others may be set.
    pub(crate) fn set_all(&self, pairs: Vec<(&[u8], &[u8])>) -> Result<()> {
        self.check_writable()?;
        let mut buffers = Buffers::take();
        let Buffers { ops, answers, .. } = &mut *buffers;
        let mut list = Vec::new();
        for (key, value) in pairs {
            let op = Op::Set { key, value };
            self.check(&op)?;
            push(ops, &op);
            list.push(op);
        }
        let (mut done, mut at) = (0, 0);
        while done < list.len() {
            let left = ops.bytes().get(at..).unwrap_or_default();
            let room =
                (list.len() - done).saturating_mul(wire::ANSWER_BYTES_MIN).clamp(ROOM_BYTES_MIN, ROOM_BYTES);
            let (more, bytes, mut answers) = self.run(left, answers, room, false)?;
            let Some(sets) = list.get(done..done + more).filter(|sets| !sets.is_empty()) else {
                return Err(nonsense("the number of operations done is impossible"));
            };
            for op in sets {
                self.outcome(op, &answers.next()?)?;
            }
            answers.end()?;
            done += more;
            at += bytes;
        }
        Ok(())
    }

    #[inline]
    fn get_with<R>(&self, key: &[u8], flags: u8, read: impl FnOnce(Option<&[u8]>) -> R) -> Result<R> {
        check_key(key)?;
        // Most gets are seqlock reads.
        let read = match self.0.store.mapped() {
            Some(mapped) => match mapped.get(key, read) {
                Ok(made) => return Ok(made),
                Err(read) => read,
            },
            None => read,
        };
        let push = |ops: &mut Ops| ops.push(Head::new(abi::GET, flags), key, &[], &[]);
        self.one(false, push, |answer| Ok(read(found(&answer)?)))
    }

    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.get_with(key, 0, |value| value.map(Value::from))
    }

    #[inline]
    pub(crate) fn get_into(&self, key: &[u8], buf: &mut Vec<u8>) -> Result<bool> {
        buf.clear();
        self.get_with(key, 0, |value| value.inspect(|value| buf.extend_from_slice(value)).is_some())
    }

    pub(crate) fn contains(&self, key: &[u8]) -> Result<bool> {
        self.get_with(key, abi::NO_VALUE, |value| value.is_some())
    }

    pub(crate) fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        keys.iter().try_for_each(|key| check_key(key.as_ref()))?;
        let mut values = Vec::with_capacity(keys.len());
        let mut buffers = Buffers::take();
        let Buffers { ops, answers, .. } = &mut *buffers;
        while values.len() < keys.len() {
            ops.clear();
            let mut asked = values.len();
            while asked < keys.len() && ops.bytes().len() < GETS_BYTES {
                ops.push(Head::new(abi::GET, 0), keys[asked].as_ref(), &[], &[]);
                asked += 1;
            }
            let room = ((asked - values.len()) * GET_ROOM_BYTES).clamp(ROOM_BYTES, GETS_BYTES);
            let mut at = 0;
            while values.len() < asked {
                let left = ops.bytes().get(at..).unwrap_or_default();
                let (done, done_bytes, mut answers) = self.run(left, answers, room, false)?;
                if done == 0 || done > asked - values.len() {
                    return Err(nonsense("the number of operations done is impossible"));
                }
                for _ in 0..done {
                    values.push(found(&answers.next()?)?.map(Value::from));
                }
                answers.end()?;
                at += done_bytes;
            }
        }
        Ok(values)
    }

    pub(crate) fn count(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Result<u64> {
        let mut keys = 0;
        self.scan((lower, upper), Direction::Forward, |_, _| {
            keys += 1;
            ControlFlow::Continue(())
        })?;
        Ok(keys)
    }

    pub(crate) fn scan(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        mut see: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut buffers = Buffers::take();
        let mut last: Option<Vec<u8>> = None;
        loop {
            let bounds = match (&last, direction) {
                (None, _) => bounds,
                (Some(last), Direction::Forward) => (Bound::Excluded(&last[..]), bounds.1),
                (Some(last), Direction::Backward) => (bounds.0, Bound::Excluded(&last[..])),
            };
            let (is_more, pairs) = self.piece(&mut buffers, bounds, direction, 0)?;
            for pair in pairs.clone() {
                let (key, value) = pair?;
                if see(key, value).is_break() {
                    return Ok(());
                }
            }
            if !is_more {
                return Ok(());
            }
            let end = last_key(pairs)?.to_vec();
            last = Some(end);
        }
    }

    /// Fills an empty chunk with at most `pairs` pairs of a range.
    pub(crate) fn fill(
        &self,
        chunk: &mut Chunk,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<Filled> {
        let mut buffers = Buffers::take();
        let limit = u32::try_from(chunk.pairs_max()).unwrap_or(u32::MAX);
        let (is_more, pairs) = self.piece(&mut buffers, (lower, upper), direction, limit)?;
        for pair in pairs {
            let (key, value) = pair?;
            if chunk.is_keys_only() {
                chunk.push_copied(key, &[]);
            } else if value.len() <= COPIED_VALUE_BYTES {
                chunk.push_copied(key, value);
            } else {
                chunk.push_shared(key, value.into());
            }
        }
        Ok(if is_more { Filled::More } else { Filled::End })
    }

    /// The first pairs of a range in `direction`, at most `limit` of them if that is not 0; and whether the
    /// range may have more pairs. If so, the piece is not empty and ends within the range.
    fn piece<'b>(
        &self,
        buffers: &'b mut Buffers,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        limit: u32,
    ) -> Result<(bool, wire::Pairs<'b>)> {
        let Buffers { ops, answers, seen } = buffers;
        let (lower, upper) = clamp_to(bounds, abi::KEY_BYTES_MAX);
        // Most pieces are seqlock scans.
        if let Some(mapped) = self.0.store.mapped() {
            let most = if limit == 0 { usize::MAX } else { limit as usize };
            let down = matches!(direction, Direction::Backward);
            if let Some(piece) = mapped.piece((lower, upper), down, most, seen) {
                return Ok((piece == llds::Piece::More, wire::Pairs::new(seen)));
            }
        }
        let flags = match direction {
            Direction::Forward => 0,
            Direction::Backward => abi::DOWN,
        };
        ops.clear();
        ops.push_range(Head { limit, ..Head::new(abi::SCAN, flags) }, lower, upper);
        // An estimate. If the room is too small, the engine fills it and reports that there are more pairs.
        let room = match limit as usize {
            0 => ROOM_BYTES,
            limit => limit.saturating_mul(PAIR_ROOM_BYTES).clamp(ROOM_BYTES_MIN, ROOM_BYTES),
        };
        let (_, _, mut answers) = self.run(ops.bytes(), answers, room, false)?;
        let answer = answers.next()?;
        answers.end()?;
        let is_more = match answer.status {
            abi::DONE => false,
            abi::MORE => true,
            _ => return Err(nonsense("a scan has an impossible status")),
        };
        if is_more && !(lower, upper).contains(last_key(answer.pairs())?) {
            return Err(nonsense("a scan left its range"));
        }
        Ok((is_more, answer.pairs()))
    }
}

/// Fails if a home does not have this durability.
fn demand(kind: Kind, durability: Option<Durability>) -> Result<()> {
    let why = match kind {
        Kind::Kernel => "is in memory alone",
        Kind::User => "ends with its process",
    };
    match durability {
        Some(more) if more > kind.durability_max() => {
            let scheme = kind.scheme();
            Err(Error::unsupported(format!("durability {more:?} with \"{scheme}\", whose content {why}")))
        }
        _ => Ok(()),
    }
}

/// Opens a store of this process.
#[cfg(feature = "user")]
fn user(attach: &Attach<'_>, may_change: bool) -> Result<llds::Result<llds::RawStore>> {
    Ok(llds::User::open(attach, may_change).map(llds::RawStore::User))
}

/// Fails: this build lacks the engine.
#[cfg(not(feature = "user"))]
fn user(_: &Attach<'_>, _: bool) -> Result<llds::Result<llds::RawStore>> {
    Err(Error::unsupported(
        "\"llds-user:\", the kernel module's engine in this process, is not part of this build: build with the feature \
         llds-user (cargo build --features llds-user), which needs a C compiler",
    ))
}

pub(crate) fn check_key(key: &[u8]) -> Result<()> {
    let most = abi::KEY_BYTES_MAX;
    if key.len() > most { Err(Error::limit("key", "bytes", key.len(), most)) } else { Ok(()) }
}

/// Divides the comparison of a range into comparisons whose pairs take at most `most` bytes, as a value may. REQUIRES:
/// no pair takes more.
fn compare_in_pieces<'p>(
    (start, end): (&'p [u8], Option<&'p [u8]>),
    pairs: &'p [u8],
    most: usize,
    mut piece: impl FnMut(Op<&'p [u8]>),
) {
    let (mut start, mut begin, mut at, mut bytes) = (start, 0, 0, 0);
    for (key, value) in Pairs::new(pairs) {
        let more = wire::pair_bytes(key, value);
        if bytes + more > most {
            piece(Op::CompareRange { start, end: Some(key), pairs: &pairs[begin..at] });
            (start, begin, bytes) = (key, at, 0);
        }
        bytes += more;
        at += PAIR_BYTES + key.len() + value.len();
    }
    piece(Op::CompareRange { start, end, pairs: &pairs[begin..at] });
}

/// Appends a change to a run. REQUIRES: its lengths have been checked.
fn push(ops: &mut Ops, op: &Op<&[u8]>) {
    match *op {
        Op::Set { key, value } => ops.push(Head::new(abi::SET, 0), key, value, &[]),
        Op::Delete { key } => ops.push(Head::new(abi::DELETE, 0), key, &[], &[]),
        Op::Add { key, delta } => ops.push(Head::new(abi::ADD, 0), key, &delta.to_ne_bytes(), &[]),
        Op::CompareAndSwap { key, expected, new } => {
            let flags = [(new, abi::NO_VALUE), (expected, abi::NO_OTHER)];
            let flags = flags.iter().filter(|(part, _)| part.is_none()).fold(0, |all, (_, flag)| all | flag);
            let (new, expected) = (new.unwrap_or_default(), expected.unwrap_or_default());
            ops.push(Head::new(abi::SWAP, flags), key, new, expected);
        }
        Op::DeleteRange { start, end } => {
            let (lower, upper) = range_of(start, end);
            ops.push_range(Head::new(abi::DELETE_RANGE, 0), lower, upper);
        }
        Op::CompareRange { start, end, pairs } => {
            let (lower, upper) = range_of(start, end);
            ops.push_compare(lower, upper, pairs);
        }
        _ => unreachable!("`check` refuses other operations"),
    }
}

/// A range of keys that the engine can have.
fn range_of<'k>(start: &'k [u8], end: Option<&'k [u8]>) -> (Bound<&'k [u8]>, Bound<&'k [u8]>) {
    clamp_to((Bound::Included(start), end.map_or(Bound::Unbounded, Bound::Excluded)), abi::KEY_BYTES_MAX)
}

/// The value that a get found.
fn found<'a>(answer: &Answer<'a>) -> Result<Option<&'a [u8]>> {
    match answer.status {
        abi::DONE => Ok(Some(answer.bytes)),
        abi::ABSENT => Ok(None),
        _ => Err(nonsense("a get has an impossible status")),
    }
}

/// The last key of a piece that is not the range's last. Fails if the piece is empty.
fn last_key<'a>(pairs: wire::Pairs<'a>) -> Result<&'a [u8]> {
    let last = pairs.last().ok_or_else(|| nonsense("a range has more pairs, but this piece is empty"))?;
    Ok(last?.0)
}

#[cfg(all(test, feature = "user"))]
mod tests;
