//! [`Image`]: the data of a group at one entry, to be sent to another node. [`Moment`]: the same, to be read.
//!
//! An image is sent as a stream of bytes: a head, the sessions and the pairs in the order of their keys, and an end
//! with their count and a checksum (XXH3, 64 bits) of all bytes before it.
//!
//! | part | bytes |
//! |---|---|
//! | head | `FORRRAFT`, version (4), length (4), then generation, applied entry and membership as in format.rs |
//! | session | 1, client (8), length (4), serial number and response |
//! | pair | 2, length of the key (4), length of the value (4), key, value |
//! | end | 0, number of sessions and pairs (8), checksum (8) |
//!
//! The receiver writes the pairs as tables of a new keyspace while they arrive, and the installation of the image only
//! changes which keyspace counts. So neither side needs memory for more than a chunk and a pair.

use crate::bytes::{Bytes, corrupt, put_length, put_part};
use crate::checkpoint::Open;
use crate::format::{self, Field};
use crate::group::{Group, applied};
use crate::types::{LogId, Meta, StoredMembership};
use forrest::{Db, Entry, Ingest, Keyspace, Range, Result, Snapshot, View, WriteBatch};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

const MAGIC: &[u8; 8] = b"FORRRAFT";
const VERSION: u32 = 1;
const END: u8 = 0;
const SESSION: u8 = 1;
const PAIR: u8 = 2;
/// Bytes of a chunk, about.
const CHUNK_BYTES: usize = 256 << 10;
/// The longest part of a stream that can be: a command has room for no more.
const PART_BYTES_MAX: usize = crate::command::MAX_COMMAND_BYTES + (1 << 16);
/// Bytes of the end that its checksum covers.
const END_HASHED: usize = 9;
/// Sessions that are written together.
const SESSIONS_MAX: usize = 1000;

/// The data of a group as they were after one entry. It dereferences to a [`View`], with all reads of Forrest.
pub struct Moment {
    view: View,
    meta: Meta,
    sessions: View,
    group: u64,
    generation: u64,
    /// Kept while it is read.
    _snapshot: Snapshot,
    checkpoint: Option<Arc<Open>>,
}

impl Moment {
    pub(crate) fn of(db: &Db, group: u64, checkpoint: Option<Arc<Open>>) -> Result<Moment> {
        let snapshot = db.snapshot()?;
        let meta = snapshot.keyspace(format::META)?;
        let (generation, last_log_id) = applied(&meta, group)?;
        let last_membership = membership(&meta, group)?;
        let view = snapshot.keyspace(&format::data_name(group, generation))?;
        let sessions = snapshot.keyspace(format::SESSIONS)?;
        let meta = Meta { last_log_id, last_membership };
        Ok(Moment { view, meta, sessions, group, generation, _snapshot: snapshot, checkpoint })
    }

    /// The entry that was applied last; `None` if none was.
    pub fn applied(&self) -> Option<LogId> {
        self.meta.last_log_id
    }

    /// What openraft calls the meta of the snapshot.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Deref for Moment {
    type Target = View;
    fn deref(&self) -> &View {
        &self.view
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Moment").field("group", &self.group).field("applied", &self.applied()).finish()
    }
}

/// The membership that was applied last.
pub(crate) fn membership(meta: &View, group: u64) -> Result<StoredMembership> {
    let bytes = meta.get(format::meta_key(group, Field::Membership))?;
    bytes.map_or(Ok(StoredMembership::default()), |bytes| {
        format::stored_membership_of(&bytes).map_err(|error| crate::group::at(group, "the membership", error))
    })
}

/// The data of a group after one entry, on their way from node to node: what openraft calls snapshot data.
///
/// The sender has one from openraft, and sends its [`chunks`](Image::chunks). The receiver feeds them to a
/// [`Receiver`], which gives an image for `openraft::Raft::install_full_snapshot`.
#[derive(Debug)]
pub struct Image(pub(crate) Kind);

#[derive(Debug)]
pub(crate) enum Kind {
    /// In a store that is read.
    Moment(Box<Moment>),
    /// In this store, not installed yet.
    Staged(Staged),
}

impl Image {
    pub(crate) fn moment(moment: Moment) -> Image {
        Image(Kind::Moment(Box::new(moment)))
    }

    /// What the image is of.
    pub fn meta(&self) -> &Meta {
        match &self.0 {
            Kind::Moment(moment) => &moment.meta,
            Kind::Staged(staged) => &staged.meta,
        }
    }

    /// The bytes to send, in chunks of about 256 KiB, or more where a pair is longer. Reads from the store, and may
    /// wait for the device.
    ///
    /// # Errors
    /// `InvalidArgument` for an image that was received and is not installed; `Io`, `Corrupt`. The chunks fail as reads
    /// of Forrest do.
    pub fn chunks(&self) -> Result<Chunks> {
        match &self.0 {
            Kind::Moment(moment) => Chunks::new(moment),
            Kind::Staged(_) => Err(forrest::Error::invalid(
                "chunks of an image that was received: install it, and send another one",
            )),
        }
    }
}

/// The bytes of an [`Image`].
pub struct Chunks {
    head: Option<Vec<u8>>,
    sessions: Range,
    pairs: Range,
    /// Kept while it is read.
    checkpoint: Option<Arc<Open>>,
    hash: Xxh3,
    count: u64,
    is_over: bool,
}

impl Chunks {
    fn new(moment: &Moment) -> Result<Chunks> {
        let mut head = MAGIC.to_vec();
        head.extend_from_slice(&VERSION.to_be_bytes());
        put_part(&mut head, &format::applied_bytes(moment.generation, moment.meta.last_log_id.as_ref()));
        put_part(&mut head, &format::stored_membership_bytes(&moment.meta.last_membership));
        Ok(Chunks {
            head: Some(head),
            sessions: moment.sessions.prefix(format::sessions_key(moment.group, moment.generation)),
            pairs: moment.view.range(..),
            checkpoint: moment.checkpoint.clone(),
            hash: Xxh3::new(),
            count: 0,
            is_over: false,
        })
    }

    fn fill(&mut self, chunk: &mut Vec<u8>) -> Result<()> {
        while chunk.len() < CHUNK_BYTES {
            if let Some(session) = self.sessions.next() {
                put_session(chunk, &session?)?;
            } else if let Some(pair) = self.pairs.next() {
                let pair = pair?;
                let (key, value) = (pair.key(), pair.value_bytes()?);
                chunk.push(PAIR);
                put_length(chunk, key);
                put_length(chunk, value);
                chunk.extend_from_slice(key);
                chunk.extend_from_slice(value);
            } else {
                chunk.push(END);
                chunk.extend_from_slice(&self.count.to_be_bytes());
                self.is_over = true;
                return Ok(());
            }
            self.count += 1;
        }
        Ok(())
    }
}

impl Iterator for Chunks {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Result<Vec<u8>>> {
        if self.is_over {
            return None;
        }
        let mut chunk = self.head.take().unwrap_or_default();
        if let Err(error) = self.fill(&mut chunk) {
            self.is_over = true;
            // The next snapshot is not read from it.
            self.checkpoint.iter().for_each(|checkpoint| checkpoint.give_up());
            return Some(Err(error));
        }
        self.hash.update(&chunk);
        if self.is_over {
            chunk.extend_from_slice(&self.hash.digest().to_be_bytes());
        }
        Some(Ok(chunk))
    }
}

impl fmt::Debug for Chunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunks").field("sent", &self.count).finish_non_exhaustive()
    }
}

fn put_session(bytes: &mut Vec<u8>, session: &Entry) -> Result<()> {
    let (_, client) = format::session_of(session.key())?;
    bytes.push(SESSION);
    bytes.extend_from_slice(&client.to_be_bytes());
    put_part(bytes, session.value_bytes()?);
    Ok(())
}

/// The data of an image in a keyspace that does not count yet. Dropping it removes them.
pub(crate) struct Staged {
    group: Arc<Group>,
    pub(crate) generation: u64,
    pub(crate) keyspace: Keyspace,
    pub(crate) meta: Meta,
    is_kept: bool,
}

impl Staged {
    /// It counts from now on.
    pub(crate) fn keep(mut self) {
        self.is_kept = true;
    }

    pub(crate) fn is_of(&self, group: &Arc<Group>) -> bool {
        Arc::ptr_eq(&self.group, group)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.is_kept {
            // What stays after an error is removed when the store is opened.
            drop(self.group.shared.forget(self.group.id, self.generation));
        }
    }
}

impl fmt::Debug for Staged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staged").field("group", &self.group.id).field("meta", &self.meta).finish()
    }
}

/// Takes the bytes of an image, in pieces of any size. Its calls write to the store, and may wait for the device.
///
/// Dropping it, or the image that it gives, removes what was received.
pub struct Receiver {
    ingest: Option<Ingest>,
    sessions: WriteBatch,
    staged: Staged,
    /// What has come and is not complete.
    rest: Vec<u8>,
    hash: Xxh3,
    count: u64,
    has_head: bool,
    is_over: bool,
}

impl Receiver {
    pub(crate) fn new(group: &Arc<Group>) -> Result<Receiver> {
        let generation = group.new_generation();
        let keyspace = group.shared.db.keyspace(&format::data_name(group.id, generation))?;
        let (group, meta) = (Arc::clone(group), Meta::default());
        Ok(Receiver {
            ingest: None,
            sessions: WriteBatch::new(),
            staged: Staged { group, generation, keyspace, meta, is_kept: false },
            rest: Vec::new(),
            hash: Xxh3::new(),
            count: 0,
            has_head: false,
            is_over: false,
        })
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// `Corrupt` for bytes that are not those of an image, `Unsupported` for one of another version, and those of
    /// writes. Afterwards the receiver is of no use any more.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.rest.extend_from_slice(bytes);
        let rest = std::mem::take(&mut self.rest);
        let mut taken = 0;
        while let Some(length) = self.step(&rest[taken..])? {
            self.hash.update(&rest[taken..taken + length]);
            taken += length;
        }
        self.rest = rest;
        self.rest.drain(..taken);
        if self.rest.len() > PART_BYTES_MAX {
            return Err(corrupt("an image: a part that is longer than any can be"));
        }
        Ok(())
    }

    /// Takes one part from the front, and returns its length; `None` if it is not complete.
    fn step(&mut self, bytes: &[u8]) -> Result<Option<usize>> {
        if self.is_over {
            return Ok(None);
        }
        let mut rest = Bytes(bytes);
        let is_whole = if self.has_head { self.part(&mut rest, bytes)? } else { self.take_head(&mut rest)? };
        Ok(is_whole.then(|| bytes.len() - rest.0.len()))
    }

    fn take_head(&mut self, rest: &mut Bytes<'_>) -> Result<bool> {
        let Ok(magic) = rest.take(MAGIC.len()) else { return Ok(false) };
        if magic != MAGIC {
            return Err(corrupt("an image: it does not begin as one"));
        }
        let Ok(version) = rest.u32() else { return Ok(false) };
        if version != VERSION {
            return Err(forrest::Error::unsupported(format!(
                "an image of version {version}; this build reads {VERSION}"
            )));
        }
        let (Ok(applied), Ok(membership)) = (rest.part(), rest.part()) else { return Ok(false) };
        let (_, last_log_id) = format::applied_of(applied)?;
        self.staged.meta = Meta { last_log_id, last_membership: format::stored_membership_of(membership)? };
        self.has_head = true;
        Ok(true)
    }

    fn part(&mut self, rest: &mut Bytes<'_>, whole: &[u8]) -> Result<bool> {
        match rest.u8() {
            Err(_) => return Ok(false),
            Ok(SESSION) => {
                let (Ok(client), Ok(session)) = (rest.u64(), rest.part()) else { return Ok(false) };
                self.put_session(client, session)?;
            }
            Ok(PAIR) => {
                let (Ok(key), Ok(value)) = (rest.u32(), rest.u32()) else { return Ok(false) };
                let (Ok(key), Ok(value)) = (rest.take(key as usize), rest.take(value as usize)) else {
                    return Ok(false);
                };
                if self.ingest.is_none() {
                    self.ingest = Some(self.staged.keyspace.ingest()?);
                }
                self.ingest.as_mut().expect("it was just made").put(key, value)?;
            }
            Ok(END) => {
                let (Ok(count), Ok(hash)) = (rest.u64(), rest.u64()) else { return Ok(false) };
                self.hash.update(&whole[..END_HASHED]);
                if (count, hash) != (self.count, self.hash.digest()) {
                    return Err(corrupt("an image: its checksum differs from that of its bytes"));
                }
                self.is_over = true;
                return Ok(true);
            }
            Ok(other) => return Err(corrupt(format!("an image: a part of the unknown kind {other}"))),
        }
        self.count += 1;
        Ok(true)
    }

    fn put_session(&mut self, client: u64, session: &[u8]) -> Result<()> {
        // It is read again only with the client's next command: an error then would stop the node for ever.
        format::session_value_of(session)?;
        let (group, generation) = (&self.staged.group, self.staged.generation);
        let key = format::session_key(group.id, generation, client);
        self.sessions.on(&group.shared.sessions).set(key, session);
        if self.sessions.len() < SESSIONS_MAX { Ok(()) } else { self.write_sessions() }
    }

    fn write_sessions(&mut self) -> Result<()> {
        let shared = &self.staged.group.shared;
        shared.db.write_with(&self.sessions, &shared.relaxed)?;
        self.sessions.clear();
        Ok(())
    }

    /// The image, when all bytes have been taken.
    ///
    /// # Errors
    /// `Corrupt` if the end is missing; those of writes.
    pub fn finish(mut self) -> Result<Image> {
        if !self.is_over || !self.rest.is_empty() {
            return Err(corrupt("an image: it ends too early or too late"));
        }
        self.write_sessions()?;
        if let Some(ingest) = self.ingest.take() {
            ingest.finish()?;
        }
        Ok(Image(Kind::Staged(self.staged)))
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("received", &self.count).finish_non_exhaustive()
    }
}
