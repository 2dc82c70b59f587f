//! [`Log`]: the log and the vote of a group.
//!
//! Each change is one batch, so the log has no holes at any moment. Appends, votes, truncations and purges are written
//! in their order; a vote and an append are reported when the device has them, and with them everything before. A
//! truncation and a purge need no sync of their own: nothing depends on them until the next append or vote, which
//! makes them durable first.
//!
//! Entries are read from a snapshot, so that a read is atomic, and one by one, so that a stream takes no more memory
//! than a chunk of an iteration. A command shares the memory of the value that the store returns.

use crate::bytes::corrupt;
use crate::command::MAX_COMMAND_BYTES;
use crate::format::{self, Field};
use crate::group::{Group, at, failed};
use crate::types::{Config, Entry, LeaderId, LogId, Vote};
use forrest::{Error, Op, Result, View, WriteBatch};
use futures_util::stream::{self, Stream, StreamExt};
use openraft::OptionalSend;
use openraft::errors::LeaderChanged;
use openraft::storage::{
    IOFlushed, LeaderBoundedStreamError, LeaderBoundedStreamResult, LogState, RaftLogReader, RaftLogStorage,
};
use openraft::type_config::TypeConfigExt;
use std::fmt::{self, Debug};
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// Bytes of entries after which a limited read stops.
const LIMIT_BYTES: usize = 1 << 20;
/// Bytes of entries, and their number, that are gathered for one write.
const APPEND_BYTES: usize = 4 * MAX_COMMAND_BYTES;
const APPEND_OPS: usize = 100_000;

/// The log and the vote of a group, for openraft.
pub struct Log {
    reader: Reader,
    /// The index of the last entry, if there is one.
    last: Option<u64>,
}

/// Reads the log of a group. A clone is another handle to it.
#[derive(Clone)]
pub struct Reader {
    group: Arc<Group>,
}

impl Log {
    pub(crate) fn new(group: Arc<Group>) -> Result<Log> {
        let reader = Reader { group };
        let last = reader.last(&reader.group.shared.log)?.map(|id| id.index);
        Ok(Log { reader, last })
    }

    fn group(&self) -> &Group {
        &self.reader.group
    }

    /// Writes a batch of one group.
    fn write(&self, batch: &WriteBatch, what: impl fmt::Display) -> io::Result<()> {
        let Group { shared, id, .. } = self.group();
        shared.db.write_with(batch, &shared.relaxed).map_err(|error| failed(*id, what, &error))
    }

    /// Writes entries in batches that are not too large. Each leaves a log without holes.
    fn put(&mut self, entries: impl Iterator<Item = Entry>) -> io::Result<()> {
        let id = self.group().id;
        let (mut batch, mut bytes, mut last) = (WriteBatch::new(), Vec::new(), self.last);
        for entry in entries {
            let index = entry.log_id.index;
            // After a purge of everything, or in a new log, openraft decides where it begins.
            if last.is_some_and(|last| last.checked_add(1) != Some(index)) {
                let error = Error::invalid(format!("entry {index} does not follow {last:?}"));
                return Err(failed(id, "appending to the log", &error));
            }
            bytes.clear();
            format::put_entry(&mut bytes, &entry);
            let key = format::entry_key(id, index);
            batch.on(&self.reader.group.shared.log).set(key, &bytes);
            last = Some(index);
            if batch.bytes() >= APPEND_BYTES || batch.len() >= APPEND_OPS {
                self.write(&batch, format_args!("appending entries up to {index}"))?;
                self.last = last;
                batch.clear();
            }
        }
        if !batch.is_empty() {
            self.write(&batch, format_args!("appending entries up to {}", last.unwrap_or_default()))?;
        }
        self.last = last;
        Ok(())
    }
}

impl Reader {
    /// The field of `raft.meta`, in a state of the store.
    fn field<T>(
        &self,
        meta: &View,
        field: Field,
        name: &str,
        decode: fn(&[u8]) -> Result<T>,
    ) -> Result<Option<T>> {
        let bytes = meta.get(format::meta_key(self.group.id, field))?;
        bytes.map(|bytes| decode(&bytes).map_err(|error| at(self.group.id, name, error))).transpose()
    }

    fn vote(&self, meta: &View) -> Result<Option<Vote>> {
        self.field(meta, Field::Vote, "the vote", format::vote_of)
    }

    fn purged(&self) -> Result<Option<LogId>> {
        self.field(&self.group.shared.meta, Field::Purged, "the purged log id", format::log_id_of)
    }

    /// The log id of the last entry.
    fn last(&self, log: &View) -> Result<Option<LogId>> {
        let range = self.keys(&(..));
        let Some(entry) = log.range((range.0, range.1)).next_back().transpose()? else { return Ok(None) };
        let index = format::index_of(entry.key())?;
        let id = format::entry_id_of(index, entry.value_bytes()?);
        id.map(Some).map_err(|error| at(self.group.id, &format!("entry {index}"), error))
    }

    /// The keys of a range of indices.
    fn keys(&self, range: &impl RangeBounds<u64>) -> (Bound<[u8; 16]>, Bound<[u8; 16]>) {
        let key = |index: &u64| format::entry_key(self.group.id, *index);
        let lower = match range.start_bound() {
            Bound::Included(index) => Bound::Included(key(index)),
            Bound::Excluded(index) => Bound::Excluded(key(index)),
            Bound::Unbounded => Bound::Included(key(&0)),
        };
        let upper = match range.end_bound() {
            Bound::Included(index) => Bound::Included(key(index)),
            Bound::Excluded(index) => Bound::Excluded(key(index)),
            Bound::Unbounded => Bound::Included(key(&u64::MAX)),
        };
        (lower, upper)
    }

    /// The entries of a range, in a state of the log. Fails where one is missing.
    fn entries(&self, log: &View, range: &impl RangeBounds<u64>) -> Entries {
        let pairs = if is_empty(range) { None } else { Some(log.range(self.keys(range))) };
        Entries { group: self.group.id, pairs, last: None }
    }

    /// A state of the log to read from.
    fn log(&self) -> io::Result<View> {
        let Group { shared, id, .. } = &*self.group;
        let log = shared.db.snapshot().and_then(|snapshot| snapshot.keyspace(format::LOG));
        log.map_err(|error| failed(*id, "reading the log", &error))
    }
}

/// Entries in ascending order, until one fails.
struct Entries {
    group: u64,
    /// `None` after the end or an error.
    pairs: Option<forrest::Range>,
    last: Option<u64>,
}

impl Entries {
    fn entry(&mut self, pair: &forrest::Entry) -> Result<Entry> {
        let index = format::index_of(pair.key())?;
        if let Some(last) = self.last.filter(|last| last + 1 != index) {
            return Err(corrupt(format!("entry {index} follows entry {last}: the log has a hole")));
        }
        self.last = Some(index);
        format::entry_of(index, pair.value()?)
    }
}

impl Iterator for Entries {
    type Item = io::Result<Entry>;

    fn next(&mut self) -> Option<io::Result<Entry>> {
        let pair = self.pairs.as_mut()?.next()?;
        let entry = pair.and_then(|pair| self.entry(&pair));
        if entry.is_err() {
            self.pairs = None;
        }
        Some(entry.map_err(|error| failed(self.group, "reading the log", &error)))
    }
}

/// Whether a range has no index, also one that ends before it begins.
fn is_empty(range: &impl RangeBounds<u64>) -> bool {
    let start = match range.start_bound() {
        Bound::Included(start) => Some(*start),
        Bound::Excluded(start) => start.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    match (start, range.end_bound()) {
        (None, _) => true,
        (Some(start), Bound::Included(end)) => start > *end,
        (Some(start), Bound::Excluded(end)) => start >= *end,
        (_, Bound::Unbounded) => false,
    }
}

impl<C: Config> RaftLogReader<C> for Reader {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> io::Result<Vec<Entry>> {
        self.entries(&self.log()?, &range).collect()
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> io::Result<Vec<Entry>> {
        let (mut entries, mut bytes) = (Vec::new(), 0);
        for entry in self.entries(&self.log()?, &(start..end)) {
            let entry = entry?;
            if let openraft::EntryPayload::Normal(command) = &entry.payload {
                bytes += command.as_bytes().len();
            }
            entries.push(entry);
            if bytes >= LIMIT_BYTES {
                break;
            }
        }
        Ok(entries)
    }

    async fn entries_stream<RB>(&mut self, range: RB) -> impl Stream<Item = io::Result<Entry>> + OptionalSend
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        match self.log() {
            Ok(log) => stream::iter(self.entries(&log, &range)).left_stream(),
            Err(error) => stream::iter([Err(error)]).right_stream(),
        }
    }

    async fn leader_bounded_stream<RB>(
        &mut self,
        leader: LeaderId,
        range: RB,
    ) -> impl Stream<Item = LeaderBoundedStreamResult<C>> + OptionalSend
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        let log = match self.log() {
            Ok(log) => log,
            Err(error) => return stream::iter([Err(error.into())]).left_stream(),
        };
        // The vote is read after the snapshot was taken, and before each entry: one that was read under the leader's
        // vote was there under it.
        let (entries, reader) = (self.entries(&log, &range), self.clone());
        let mut is_over = false;
        let mut entries = std::iter::once(None).chain(entries.map(Some));
        stream::iter(std::iter::from_fn(move || {
            loop {
                if is_over {
                    return None;
                }
                let entry = entries.next()?;
                let vote = match reader.vote(&reader.group.shared.meta) {
                    Ok(vote) => vote,
                    Err(error) => {
                        is_over = true;
                        return Some(Err(failed(reader.group.id, "reading the vote", &error).into()));
                    }
                };
                if !is_of(vote.as_ref(), &leader) {
                    is_over = true;
                    return Some(Err(LeaderChanged::new(leader, vote).into()));
                }
                if let Some(entry) = entry {
                    is_over = entry.is_err();
                    return Some(entry.map_err(LeaderBoundedStreamError::from));
                }
            }
        }))
        .right_stream()
    }

    async fn read_vote(&mut self) -> io::Result<Option<Vote>> {
        self.vote(&self.group.shared.meta).map_err(|error| failed(self.group.id, "reading the vote", &error))
    }
}

impl<C: Config> RaftLogStorage<C> for Log {
    type LogReader = Reader;

    async fn get_log_state(&mut self) -> io::Result<LogState<C>> {
        let read = || Ok((self.reader.purged()?, self.reader.last(&self.group().shared.log)?));
        let (purged, last) =
            read().map_err(|error| failed(self.group().id, "reading the ends of the log", &error))?;
        Ok(LogState { last_purged_log_id: purged, last_log_id: last.or(purged) })
    }

    async fn get_log_reader(&mut self) -> Reader {
        self.reader.clone()
    }

    /// DURABILITY: the vote and everything before it.
    async fn save_vote(&mut self, vote: &Vote) -> io::Result<()> {
        let Group { shared, id, .. } = self.group();
        let mut batch = WriteBatch::new();
        batch.on(&shared.meta).set(format::meta_key(*id, Field::Vote), format::vote_bytes(vote));
        self.write(&batch, format_args!("saving the vote {vote}"))?;
        shared.synced().await.map_err(|error| failed(*id, format_args!("syncing the vote {vote}"), &error))
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> io::Result<()> {
        let Group { shared, id, .. } = self.group();
        let key = format::meta_key(*id, Field::Committed);
        let mut batch = WriteBatch::new();
        match committed {
            Some(committed) => batch.on(&shared.meta).set(key, format::log_id_bytes(&committed)),
            None => batch.on(&shared.meta).delete(key),
        };
        self.write(&batch, "saving the committed log id")
    }

    async fn read_committed(&mut self) -> io::Result<Option<LogId>> {
        let meta = &self.group().shared.meta;
        let committed = self.reader.field(meta, Field::Committed, "the committed log id", format::log_id_of);
        committed.map_err(|error| failed(self.group().id, "reading the committed log id", &error))
    }

    /// DURABILITY: the callback is called when the device has the entries, and everything before them. The sync serves
    /// every group that waits.
    async fn append<I>(&mut self, entries: I, callback: IOFlushed<C>) -> io::Result<()>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        self.put(entries.into_iter())?;
        let (id, last) = (self.group().id, self.last);
        let done = move |result: Result<()>| {
            callback.io_completed(result.map_err(|error| {
                failed(id, format_args!("syncing the log up to entry {}", last.unwrap_or_default()), &error)
            }));
        };
        match &self.group().shared.syncer {
            Some(syncer) => {
                let synced = syncer.synced();
                drop(C::spawn(async move { done(synced.await) }));
            }
            None => done(self.group().shared.db.sync()),
        }
        Ok(())
    }

    async fn truncate_after(&mut self, last_log_id: Option<LogId>) -> io::Result<()> {
        let Group { shared, id, .. } = self.group();
        let first = last_log_id.map_or(Some(0), |last| last.index.checked_add(1));
        let Some(first) = first else { return Ok(()) };
        let mut batch = WriteBatch::new();
        batch.on(&shared.log).push(delete_entries(*id, first, None).borrowed());
        self.write(&batch, format_args!("removing the entries from {first} on"))?;
        let last = self.reader.last(&self.group().shared.log);
        self.last =
            last.map_err(|error| failed(self.group().id, "reading the log", &error))?.map(|id| id.index);
        Ok(())
    }

    async fn purge(&mut self, log_id: LogId) -> io::Result<()> {
        let Group { shared, id, .. } = self.group();
        let mut batch = WriteBatch::new();
        batch.on(&shared.meta).set(format::meta_key(*id, Field::Purged), format::log_id_bytes(&log_id));
        batch.on(&shared.log).push(delete_entries(*id, 0, Some(log_id.index)).borrowed());
        self.write(&batch, format_args!("purging the entries up to {}", log_id.index))?;
        self.last = self.last.filter(|last| *last > log_id.index);
        Ok(())
    }
}

/// Whether a leader has the vote.
fn is_of(vote: Option<&Vote>, leader: &LeaderId) -> bool {
    vote.is_some_and(|vote| vote.leader_id == *leader && vote.committed)
}

/// Removes the entries of a range of indices, both included.
fn delete_entries(group: u64, first: u64, last: Option<u64>) -> Op {
    let key = |index: u64| format::entry_key(group, index);
    let end = [&key(last.unwrap_or(u64::MAX))[..], &[0]].concat();
    Op::DeleteRange { start: key(first).to_vec(), end: Some(end) }
}

impl Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("group", &self.group().id).field("last", &self.last).finish()
    }
}

impl Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("group", &self.group.id).finish()
    }
}
