//! [`Stream`]: the changes of a store, read from its logs in their order.
//!
//! A stream reads the files that recovery reads, and those that [`history`](crate::history) keeps. It writes nothing
//! and holds no lock while it reads, so it delays no writer. Its place is a sequence number, and a place in a file as
//! long as it is open. The sequence numbers alone say whether changes are missing: where a log ends and the next one
//! does not begin with the next number, or is not there, or where a record is not intact, the changes are gone. So a
//! stream returns each change after its place, in order, or fails; never others.
//!
//! **Durability.** A stream returns the changes up to a limit:
//!
//! | asked for | up to |
//! |---|---|
//! | `Memory` | all that are visible: those in the queue of the log are written first |
//! | `Buffered` | those that are visible and written to the operating system |
//! | `Sync` | those that are visible and synced, in the log or as tables |
//!
//! It asks for no sync. In a read-only process, all that a log has is buffered. What a manifest states to be in tables
//! is synced, and so is what the logs state to be ([`proven`](crate::proven)): with the next record after a sync, which
//! a store that has nothing else to write writes for that, about a tenth of a second later. The same holds in the
//! process that changes the store before its first change.
//!
//! **Ingests.** Their pairs are in no log. The log has a change before the tables are added, and one after. The stream
//! returns the second one. If it is missing, because a crash came between, it returns the first one, once another
//! change follows: then it is decided whether the tables were added.
//!
//! Memory: one record, which has at least one batch, a window of 1 MiB, another one where the logs are asked what is
//! synced, and 8 bytes for each log that is ahead.

use crate::codec::Parts;
use crate::core::Handle;
use crate::disk::{self, Name, SealedFile};
use crate::proven::Proven;
use crate::record::{self, HEADER, Piece};
use crate::recover;
use crate::wal::{self, Change, Head, Note};
use crate::wrapped::{self, Wrapped};
use forrest_engine::{self as engine, Durability, Error, ErrorKind, Result, What};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// The longest pause between two looks for changes, and that beside another process, which cannot be heard.
const LOOK: Duration = Duration::from_millis(100);
const LOOK_BESIDE: Duration = Duration::from_millis(10);

/// See the head of the file.
pub(crate) struct Stream {
    store: Handle,
    durability: Durability,
    /// The sequence number of the next change.
    next: u64,
    /// Changes up to this one are durable enough; `None` before the first look.
    limit: Option<u64>,
    /// What the files state to be synced, for changes after that.
    proven: Proven,
    place: Option<Place>,
    /// The logs after that, from the newest that was seen back. Each log names the one before it, so the way forward is
    /// found from the newest one back, and kept.
    ahead: Vec<u64>,
    piece: Piece,
    /// The first change of an ingest, until it is known what follows.
    begun: Option<engine::Change>,
}

/// A place in a log.
struct Place {
    number: u64,
    file: SealedFile,
    /// The end of the record.
    end: u64,
    /// The rest of the record.
    body: Range<usize>,
    /// The sequence number of the next change in it.
    sequence: u64,
    /// The sequence number of the last change of the batch.
    batch: u64,
    /// The changes up to this one are none of the stream.
    moved: u64,
    names: BTreeMap<u32, Arc<str>>,
}

impl Place {
    fn begin((number, file, head): (u64, SealedFile, Head)) -> Place {
        Place {
            number,
            file,
            end: HEADER as u64,
            body: 0..0,
            sequence: head.first,
            batch: 0,
            moved: 0,
            names: BTreeMap::from([(0, engine::DEFAULT_KEYSPACE.into())]),
        }
    }
}

/// The error of changes that are not there any more.
#[cold]
fn gone(next: u64, why: impl std::fmt::Display) -> Error {
    let what = "start from a snapshot, and go on with the changes after it";
    Error::new(ErrorKind::Gone, format!("change {next} and those after it: {why}; {what}"))
}

impl Handle {
    /// The changes after sequence number `since`.
    pub(crate) fn changes(&self, since: u64, durability: Durability) -> Result<Stream> {
        self.check_here()?;
        let is_alone = self.check_writable().is_ok();
        if is_alone && self.history.is_none() {
            return Err(Error::invalid("the store keeps no history; open it with the option `history`"));
        }
        if !is_alone && since > self.visible() {
            recover::refresh(self)?;
        }
        let last = self.visible();
        if since > last {
            let why = format!(
                "the store has had {last} changes; a power cut has taken more, or the number is of another store"
            );
            return Err(gone(since.saturating_add(1), why));
        }
        let mut stream = Stream {
            store: self.clone(),
            durability,
            next: since + 1,
            limit: None,
            proven: Proven::default(),
            place: None,
            ahead: Vec::new(),
            piece: Piece::default(),
            begun: None,
        };
        // Now, so that a place that is gone is found at once.
        stream.advance()?;
        Ok(stream)
    }
}

impl Stream {
    fn is_alone(&self) -> bool {
        self.store.history.is_some()
    }

    /// The change up to which they are durable enough.
    fn limit(&self) -> Result<u64> {
        let (store, log) = (&self.store, self.store.log());
        let Some(history) = &store.history else {
            return match self.durability {
                Durability::Memory | Durability::Buffered => Ok(u64::MAX),
                _ => recover::covered(store.disk()),
            };
        };
        // ORDERING: Acquire: what is visible was queued before.
        let visible = store.readers.visible().load(Ordering::Acquire);
        let limit = match self.durability {
            Durability::Memory => {
                log.write(visible)?;
                visible
            }
            Durability::Buffered => visible.min(log.written()),
            _ => visible.min(log.synced().max(history.covered.load(Ordering::Relaxed))),
        };
        // A change is applied after it is visible. Who gets it from the stream finds it in the store.
        store.readers.wait(limit);
        Ok(limit)
    }

    /// Whether the change of this number is durable enough.
    fn is_due(&mut self, sequence: u64) -> Result<bool> {
        if self.limit < Some(sequence) {
            self.limit = Some(self.limit()?);
        }
        Ok(self.limit >= Some(sequence))
    }

    /// Whether the files have to state what is synced: this process has not written all of them.
    fn asks_files(&self) -> bool {
        let is_synced = !matches!(self.durability, Durability::Memory | Durability::Buffered);
        is_synced && !(self.is_alone() && self.store.log().is_settled())
    }

    /// Whether the record at the place is durable enough, by what the files state.
    fn is_proven(&mut self) -> Result<bool> {
        let Some(place) = self.place.as_ref().filter(|_| self.asks_files()) else { return Ok(false) };
        if self.is_alone() && place.sequence > self.store.visible() {
            return Ok(false);
        }
        self.proven.covers(self.store.disk(), place.number, place.end)
    }

    /// Whether the change of this number, in the record at the place, is durable enough.
    fn is_durable(&mut self, sequence: u64) -> Result<bool> {
        if !self.asks_files() {
            return self.is_due(sequence);
        }
        if self.limit.is_none() {
            self.limit = Some(self.limit()?);
        }
        // Another look at the manifest comes last, because it reads all of it.
        Ok(self.limit >= Some(sequence) || self.is_proven()? || self.is_due(sequence)?)
    }

    fn next(&mut self) -> Result<Option<engine::Change>> {
        self.store.check_here()?;
        let due = self.place.as_ref().map_or(self.next, |place| place.sequence);
        if !self.asks_files() && !self.is_due(due)? {
            return Ok(None);
        }
        loop {
            if let Some(place) = &mut self.place {
                if !place.body.is_empty() {
                    let sequence = place.sequence;
                    if !self.is_durable(sequence)? {
                        return Ok(None);
                    }
                    match self.take()? {
                        None => continue,
                        Some(change) => {
                            self.next = change.sequence + 1;
                            return Ok(Some(change));
                        }
                    }
                }
                if self.read()? {
                    continue;
                }
            }
            if !self.advance()? {
                return Ok(None);
            }
        }
    }

    /// Reads the next record of the log; false if there is none yet.
    fn read(&mut self) -> Result<bool> {
        let Some(place) = &mut self.place else { return Ok(false) };
        let (disk, name) = (self.store.disk(), Name::log(place.number));
        let read = record::next(disk, &place.file, name, place.end, &mut self.piece);
        match read {
            Ok(None) => Ok(false),
            Ok(Some(record::Next { body, end, .. })) => {
                (place.body, place.end) = (body, end);
                Ok(true)
            }
            // A file that lost its descriptor beside another process may be removed.
            Err(error) if error.kind() == ErrorKind::Io && disk::open_if_there(disk, name)?.is_none() => {
                Err(gone(place.sequence, format_args!("{name} was removed while it was read")))
            }
            Err(error) => Err(error),
        }
    }

    /// Takes the next change of the record; `None` if it is not to be returned.
    fn take(&mut self) -> Result<Option<engine::Change>> {
        let place = self.place.as_mut().expect("there is a record");
        let bytes = self.piece.bytes(place.body.clone());
        let mut parts = Parts(bytes);
        let name = Name::log(place.number);
        let Some(change) = Change::take(&mut parts) else {
            return Err(disk::damaged(name, place.end, "the record before it has an unknown change"));
        };
        if let Change::Note(note) = change {
            match note {
                Note::Time { .. } => {}
                Note::Batch { count } => {
                    place.batch = place.sequence.saturating_add(count).saturating_sub(1);
                }
                Note::Moved { count } => {
                    place.moved = place.sequence.saturating_add(count).saturating_sub(1);
                }
                Note::Name { space, name } => {
                    place.names.insert(space, name.into());
                }
            }
            place.body.start += bytes.len() - parts.0.len();
            return Ok(None);
        }
        let sequence = place.sequence;
        let is_end_of_ingest = matches!(change, Change::Ingest { is_done: true, .. });
        if !is_end_of_ingest && let Some(begun) = self.begun.take() {
            // It is decided by now whether the tables were added.
            return Ok(Some(begun));
        }
        self.begun = None;
        if sequence <= place.moved {
            place.body.start += bytes.len() - parts.0.len();
            place.sequence += 1;
            return Ok(None);
        }
        let ends_batch = sequence >= place.batch;
        let is_wanted = sequence >= self.next;
        let mut dropped = None;
        let (space, what) = match change {
            Change::Create { space, name } => {
                place.names.insert(space, name.into());
                (space, What::CreateKeyspace)
            }
            Change::Drop { space } => {
                dropped = Some(space);
                (space, What::DropKeyspace)
            }
            // Nothing is copied that is not returned.
            _ if !is_wanted => (0, What::CreateKeyspace),
            Change::Put { space, key, value } => {
                (space, What::Set { key: key.to_vec(), value: value.to_vec() })
            }
            // A store with history stores no operands: a merge reads, and what is noted is the value.
            Change::Wrapped { space, key, bytes } => {
                let Some(Wrapped { expires_ms, content }) = Wrapped::read(bytes) else {
                    return Err(disk::damaged(name, place.end, wrapped::FLAW));
                };
                let (key, value) = (key.to_vec(), content.to_vec());
                match expires_ms {
                    Some(expires_ms) => (space, What::SetUntil { key, value, expires_ms }),
                    None => (space, What::Set { key, value }),
                }
            }
            Change::Delete { space, key } => (space, What::Delete { key: key.to_vec() }),
            Change::DeleteRange { space, start, end } => {
                (space, What::DeleteRange { start: start.to_vec(), end: end.map(<[u8]>::to_vec) })
            }
            Change::Ingest { space, first, last, .. } => {
                (space, What::Ingest { first: first.to_vec(), last: last.to_vec() })
            }
            Change::Note(_) => unreachable!("notes were taken"),
        };
        let is_begun = matches!(change, Change::Ingest { is_done: false, .. });
        let called = place.names.get(&space).cloned();
        let made = match (is_wanted, called) {
            (false, _) => None,
            (true, Some(called)) => Some(engine::Change::new(sequence, called, what, ends_batch)),
            (true, None) => {
                let why = format!("{name} does not state the name of keyspace {space}");
                return Err(gone(sequence, why));
            }
        };
        if let Some(space) = dropped {
            place.names.remove(&space);
        }
        place.body.start += bytes.len() - parts.0.len();
        place.sequence += 1;
        if is_begun {
            self.begun = made;
            return Ok(None);
        }
        Ok(made)
    }

    /// Goes on in the log that has the next change; false if there is none yet.
    fn advance(&mut self) -> Result<bool> {
        let newest = match self.is_alone() {
            true => self.store.log().newest(),
            false => recover::newest_log(self.store.disk())?,
        };
        let (current, wanted) = match &self.place {
            Some(place) if place.number == newest => return Ok(false),
            Some(place) => (place.number, place.sequence),
            None => (0, self.next),
        };
        let found = self.find(newest, current, wanted)?;
        // The log may have grown before the next one was begun.
        if self.place.is_some() {
            self.piece.clear();
            if self.read()? {
                return Ok(true);
            }
        }
        match found {
            Found::Nothing => Ok(false),
            Found::Log(log) if goes_on(&log.2, current, wanted) => {
                self.ahead.pop();
                self.place = Some(Place::begin(log));
                Ok(true)
            }
            Found::Log((number, _, head)) => {
                let why = format!(
                    "{} ends before change {wanted}, and {} begins with change {}",
                    Name::log(current),
                    Name::log(number),
                    head.first
                );
                Err(gone(wanted, why))
            }
        }
    }

    /// Looks for the log that begins with a change, or has it, or else for the one after the current log. It is the
    /// last of those that are ahead then.
    fn find(&mut self, newest: u64, current: u64, wanted: u64) -> Result<Found> {
        let is_remembered = !self.ahead.is_empty();
        let mut found = self.walk(newest, current, wanted);
        let is_gone = |found: &Result<Found>| match found {
            Ok(Found::Log((.., head))) => !goes_on(head, current, wanted),
            Err(error) => error.kind() == ErrorKind::Gone,
            Ok(Found::Nothing) => false,
        };
        if is_remembered && is_gone(&found) {
            // A log that had no changes may have been removed meanwhile, and those after it name others.
            self.ahead.clear();
            found = self.walk(newest, current, wanted);
        }
        if is_gone(&found) {
            self.ahead.clear();
        }
        found
    }

    /// Does that from the last log that is ahead, or from the newest one back.
    fn walk(&mut self, newest: u64, current: u64, wanted: u64) -> Result<Found> {
        let disk = self.store.disk();
        let mut after = None;
        let mut number = self.ahead.pop().unwrap_or(newest);
        while number != current || current == 0 {
            self.ahead.push(number);
            let opened = disk::open_if_there(disk, Name::log(number))?;
            let head = match &opened {
                None => None,
                Some(file) => wal::head(disk, file, number)?,
            };
            let (Some(file), Some(head)) = (opened, head) else {
                return Err(gone(wanted, "they are no longer kept"));
            };
            if !head.has_history {
                if number == newest && self.is_alone() && wanted > self.store.visible() {
                    // The next change begins a log with history.
                    self.ahead.clear();
                    return Ok(Found::Nothing);
                }
                let why = format!("{} was written without the option `history`", Name::log(number));
                return Err(gone(wanted, why));
            }
            if head.first <= wanted {
                return Ok(Found::Log((number, file, head)));
            }
            let before = head.before.number;
            if before >= number {
                let why = format!("{} names {} as the one before it", Name::log(number), Name::log(before));
                return Err(gone(wanted, why));
            }
            after = Some((number, file, head));
            number = before;
        }
        Ok(after.map_or(Found::Nothing, Found::Log))
    }
}

/// Whether a stream goes on in a log: a new one begins anywhere in it, one that comes from another log at its start.
fn goes_on(head: &Head, current: u64, wanted: u64) -> bool {
    current == 0 || head.first == wanted
}

/// Where a stream goes on.
enum Found {
    Nothing,
    Log((u64, SealedFile, Head)),
}

impl engine::Changes for Stream {
    fn next(&mut self) -> Result<Option<engine::Change>> {
        Stream::next(self)
    }

    fn wait(&mut self, most: Duration) -> Result<Option<engine::Change>> {
        let store = self.store.clone();
        if let Some(history) = &store.history {
            return history.wait(most, LOOK, || Stream::next(self));
        }
        let end = Instant::now().checked_add(most);
        loop {
            let found = Stream::next(self)?;
            let left = end.map_or(LOOK_BESIDE, |end| end.saturating_duration_since(Instant::now()));
            if found.is_some() || left.is_zero() {
                return Ok(found);
            }
            thread::sleep(left.min(LOOK_BESIDE));
        }
    }
}
