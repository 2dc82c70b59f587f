//! [`State`]: the state machine of a group, an ordered map.
//!
//! The effects of an entry, the response that its client's session keeps, and the number of the entry are one batch. So
//! each entry is applied exactly once, whatever crashes: a restarted node goes on after the entry that its data have.
//! Entries without conditions share a batch. Nothing here waits for the device: the log has every entry that is
//! applied, and what power loss takes from the data is applied again.

use crate::bytes::corrupt;
use crate::checkpoint::Checkpoint;
use crate::command::{self, Command, Response};
use crate::format::{self, Field};
use crate::group::{Group, applied, failed};
use crate::image::{Image, Kind, Moment, Receiver, Staged, membership};
use crate::types::{Config, Entry, LogId, Meta, Payload, StoredMembership};
use forrest::{ErrorKind, Keyspace, Result, WriteBatch, Written};
use futures_util::{Stream, TryStreamExt};
use openraft::storage::{ApplyResponder, EntryResponder, RaftSnapshotBuilder, RaftStateMachine, Snapshot};
use openraft::type_config::TypeConfigExt;
use openraft::{BasicNode, OptionalSend};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;

/// Operations, and bytes, that are gathered before they are written. A change of a session is an operation.
const RUN_OPS: usize = 1000;
const RUN_BYTES: usize = 1 << 20;

/// The state machine of a group, for openraft.
pub struct State {
    group: Arc<Group>,
    data: Keyspace,
    generation: u64,
    applied: Option<LogId>,
    membership: StoredMembership,
}

/// Reads the data of a group on this node. A clone is another handle to it.
///
/// What it reads is what this node has applied, which may be less than others have. For a read that sees every change
/// that was acknowledged before it began, call `openraft::Raft::ensure_linearizable` first, and then
/// [`moment`](Reader::moment).
#[derive(Clone)]
pub struct Reader {
    group: Arc<Group>,
}

impl Reader {
    /// The data as they are now, all at one instant. Copies nothing; while it lives, the store keeps values that are
    /// replaced.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub fn moment(&self) -> Result<Moment> {
        Moment::of(&self.group.shared.db, self.group.id, None)
    }

    /// Takes a snapshot that another node sends. Several may be on their way at once.
    ///
    /// # Errors
    /// `Io`, `OutOfSpace`, `Stopped`.
    pub fn receive(&self) -> Result<Receiver> {
        Receiver::new(&self.group)
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("group", &self.group.id).finish()
    }
}

/// Entries that are applied and not written yet.
struct Run<C: Config> {
    batch: WriteBatch,
    applied: Option<LogId>,
    membership: Option<StoredMembership>,
    /// The sessions that it changes: serial number and response; `None` for one that ends.
    sessions: BTreeMap<u64, Option<(u64, Response)>>,
    responses: Vec<(ApplyResponder<C>, Response)>,
}

impl<C: Config> Run<C> {
    fn new() -> Run<C> {
        let (batch, sessions, responses) = Default::default();
        Run { batch, applied: None, membership: None, sessions, responses }
    }
}

impl State {
    pub(crate) fn new(group: Arc<Group>) -> Result<State> {
        let shared = &group.shared;
        let (generation, applied) = applied(&shared.meta, group.id)?;
        let membership = membership(&shared.meta, group.id)?;
        let data = shared.db.keyspace(&format::data_name(group.id, generation))?;
        Ok(State { group, data, generation, applied, membership })
    }

    /// A handle to read the data, and to receive snapshots. Take it before openraft gets the state machine.
    pub fn reader(&self) -> Reader {
        Reader { group: Arc::clone(&self.group) }
    }

    /// Applies an entry to a run.
    fn step<C: Config>(
        &mut self,
        entry: Entry,
        responder: Option<ApplyResponder<C>>,
        run: &mut Run<C>,
    ) -> Result<()> {
        let last = run.applied.or(self.applied).map(|last| last.index);
        if last.is_some_and(|last| entry.log_id.index <= last) {
            return Err(corrupt(format!("entry {} was applied already: the last is {last:?}", entry.log_id)));
        }
        let response = match &entry.payload {
            Payload::Blank => Response::Applied,
            Payload::Membership(membership) => {
                run.membership = Some(StoredMembership::new(Some(entry.log_id), membership.clone()));
                Response::Applied
            }
            Payload::Normal(command) => self.command(command, entry.log_id, run)?,
        };
        if self.applied == Some(entry.log_id) {
            // It had a batch for itself, which is written.
            responder.into_iter().for_each(|responder| responder.send(response.clone()));
            return Ok(());
        }
        run.applied = Some(entry.log_id);
        run.responses.extend(responder.map(|responder| (responder, response)));
        let ops = run.batch.len() + run.sessions.len();
        if ops >= RUN_OPS || run.batch.bytes() >= RUN_BYTES { self.write(run) } else { Ok(()) }
    }

    /// Applies a command, unless its session has it already.
    fn command<C: Config>(&mut self, command: &Command, id: LogId, run: &mut Run<C>) -> Result<Response> {
        if let Err(error) = command.check() {
            return Ok(Response::Refused(error.to_string()));
        }
        let Some((client, serial)) = command.session() else { return self.change(command, id, run, None) };
        if serial == command::END {
            run.sessions.insert(client, None);
            return Ok(Response::Applied);
        }
        match self.session(client, run)? {
            Some((last, response)) if last == serial => return Ok(response),
            Some((last, _)) if last > serial => return Ok(Response::Stale { last }),
            _ => {}
        }
        self.change(command, id, run, Some((client, serial)))
    }

    /// The last serial number of a client and its response.
    fn session<C: Config>(&self, client: u64, run: &Run<C>) -> Result<Option<(u64, Response)>> {
        if let Some(session) = run.sessions.get(&client) {
            return Ok(session.clone());
        }
        let key = format::session_key(self.group.id, self.generation, client);
        let bytes = self.group.shared.sessions.get(key)?;
        bytes.map(|bytes| format::session_value_of(&bytes)).transpose()
    }

    fn change<C: Config>(
        &mut self,
        command: &Command,
        id: LogId,
        run: &mut Run<C>,
        session: Option<(u64, u64)>,
    ) -> Result<Response> {
        let has_conditions = command.has_conditions();
        if has_conditions {
            // If the condition fails, so does the batch: it has this command alone.
            self.write(run)?;
        }
        for op in command.ops() {
            run.batch.on(&self.data).push(op?);
        }
        let note = |run: &mut Run<C>, response: &Response| {
            run.applied = Some(id);
            session.map(|(client, serial)| run.sessions.insert(client, Some((serial, response.clone()))));
        };
        note(run, &Response::Applied);
        if !has_conditions {
            return Ok(Response::Applied);
        }
        if let Written::Mismatch { op, found } = self.try_write(run)? {
            let found = found.map(|value| value.to_vec());
            let response = Response::Mismatch { op: u32::try_from(op).expect("few operations"), found };
            run.batch.clear();
            note(run, &response);
            return Ok(response);
        }
        Ok(Response::Applied)
    }

    /// Writes what a run has, as one batch, and then sends the responses.
    fn write<C: Config>(&mut self, run: &mut Run<C>) -> Result<()> {
        match self.try_write(run)? {
            Written::Applied => Ok(()),
            other => unreachable!("a batch without conditions came to {other:?}"),
        }
    }

    /// DURABILITY: one batch has the effects of entries, their sessions, and the number of the last of them.
    fn try_write<C: Config>(&mut self, run: &mut Run<C>) -> Result<Written> {
        let Some(applied) = run.applied else { return Ok(Written::Applied) };
        let shared = &self.group.shared;
        let ops = run.batch.len();
        for (client, session) in &run.sessions {
            let key = format::session_key(self.group.id, self.generation, *client);
            match session {
                Some((serial, response)) => {
                    run.batch.on(&shared.sessions).set(key, format::session_bytes(*serial, response));
                }
                None => drop(run.batch.on(&shared.sessions).delete(key)),
            }
        }
        self.put_applied(&mut run.batch, self.generation, Some(&applied), run.membership.as_ref());
        let written = shared.db.try_write_with(&run.batch, &shared.ordinary)?;
        if let Written::Mismatch { op, .. } = &written {
            debug_assert!(*op < ops, "the condition is one of the command's");
            return Ok(written);
        }
        self.applied = Some(applied);
        self.membership = run.membership.take().unwrap_or_else(|| self.membership.clone());
        run.responses.drain(..).for_each(|(responder, response)| responder.send(response));
        *run = Run::new();
        Ok(written)
    }

    fn put_applied(
        &self,
        batch: &mut WriteBatch,
        generation: u64,
        applied: Option<&LogId>,
        membership: Option<&StoredMembership>,
    ) {
        let meta = &self.group.shared.meta;
        let key = |field| format::meta_key(self.group.id, field);
        batch.on(meta).set(key(Field::Applied), format::applied_bytes(generation, applied));
        if let Some(membership) = membership {
            let bytes = format::stored_membership_bytes(membership);
            batch.on(meta).set(key(Field::Membership), bytes);
        }
    }

    /// Makes data that were received those of the group, in one batch.
    ///
    /// DURABILITY: the data are durable before the batch, and the batch when this returns; only then is the old
    /// generation removed. What a crash leaves of either is removed when the store is opened.
    async fn switch(&mut self, staged: Staged) -> Result<()> {
        let shared = Arc::clone(&self.group.shared);
        let mut batch = WriteBatch::new();
        let Meta { last_log_id, last_membership } = staged.meta.clone();
        self.put_applied(&mut batch, staged.generation, last_log_id.as_ref(), Some(&last_membership));
        shared.db.write_with(&batch, &shared.relaxed)?;
        let old = std::mem::replace(&mut self.generation, staged.generation);
        self.data = staged.keyspace.clone();
        (self.applied, self.membership) = (last_log_id, last_membership);
        staged.keep();
        shared.synced().await?;
        shared.forget(self.group.id, old)
    }

    fn failed(&self, what: impl fmt::Display, error: &forrest::Error) -> io::Error {
        failed(self.group.id, what, error)
    }

    /// The snapshot to send: the newest checkpoint, if it has all that the log has not and nothing that the data have
    /// not, or else the present data. After a power cut a checkpoint may be ahead of them: it is durable when it is
    /// made, and the entries that it has may not be. The present data also take the place of a checkpoint that cannot
    /// be read, so that it does not stop the node.
    async fn current<C: Config>(&self) -> Result<Option<Moment>> {
        let Some(applied) = self.applied else { return Ok(None) };
        let shared = &self.group.shared;
        if let Some(checkpoint) = self.group.newest_checkpoint() {
            let purged = shared.meta.get(format::meta_key(self.group.id, Field::Purged))?;
            let purged = purged.map(|bytes| format::log_id_of(&bytes)).transpose()?;
            let (group, of) = (Arc::clone(&self.group), Arc::clone(&checkpoint));
            match apart::<C, _>(shared.may_spawn(), move || read(&of, &group)).await {
                Ok(moment) => {
                    let last = moment.applied();
                    if last.is_some_and(|last| Some(last) >= purged && last <= applied) {
                        return Ok(Some(moment));
                    }
                }
                Err(_) => {
                    checkpoint.retire();
                    drop(self.group.newest_checkpoint());
                }
            }
        }
        self.reader().moment().map(Some)
    }
}

/// Reads a group from a checkpoint.
fn read(checkpoint: &Arc<Checkpoint>, group: &Group) -> Result<Moment> {
    let open = checkpoint.open(&group.shared.db)?;
    Moment::of(&open.db, group.id, Some(Arc::clone(&open)))
}

/// Receives an image from another store.
fn copy(moment: Moment, group: &Arc<Group>) -> Result<Staged> {
    let mut receiver = Receiver::new(group)?;
    for chunk in Image::moment(moment).chunks()? {
        receiver.push(&chunk?)?;
    }
    match receiver.finish()?.0 {
        Kind::Staged(staged) => Ok(staged),
        Kind::Moment(_) => unreachable!("a receiver stages what it receives"),
    }
}

/// Runs what may take long on another thread, if there may be one.
async fn apart<C: Config, T: Send + 'static>(
    may_spawn: bool,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    if !may_spawn {
        return work();
    }
    let done = C::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        Err(forrest::Error::new(ErrorKind::Stopped, format!("a thread for a snapshot: {error}")))
    })
}

impl<C: Config> RaftStateMachine<C> for State {
    type SnapshotData = Image;
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> io::Result<(Option<LogId>, StoredMembership)> {
        Ok((self.applied, self.membership.clone()))
    }

    async fn apply<S>(&mut self, mut entries: S) -> io::Result<()>
    where
        S: Stream<Item = io::Result<EntryResponder<C>>> + Unpin + OptionalSend,
    {
        let mut run = Run::new();
        while let Some((entry, responder)) = entries.try_next().await? {
            let id = entry.log_id;
            self.step(entry, responder, &mut run)
                .map_err(|error| self.failed(format_args!("applying entry {id}"), &error))?;
        }
        self.write(&mut run).map_err(|error| self.failed("applying entries", &error))
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        Builder { moment: Some(self.reader().moment()), group: Arc::clone(&self.group) }
    }

    async fn install_snapshot(&mut self, meta: &Meta, snapshot: Image) -> io::Result<()> {
        if snapshot.meta() != meta {
            let error = corrupt(format!("it is of {}", snapshot.meta()));
            return Err(self.failed(format_args!("installing a snapshot of {meta}"), &error));
        }
        let (group, may_spawn) = (Arc::clone(&self.group), self.group.shared.may_spawn());
        let staged = match snapshot.0 {
            Kind::Staged(staged) if staged.is_of(&self.group) => Ok(staged),
            Kind::Staged(_) => Err(forrest::Error::invalid("it was received by another group")),
            Kind::Moment(moment) => apart::<C, _>(may_spawn, move || copy(*moment, &group)).await,
        };
        let result = match staged {
            Ok(staged) => self.switch(staged).await,
            Err(error) => Err(error),
        };
        result.map_err(|error| self.failed(format_args!("installing a snapshot of {meta}"), &error))?;
        if let Some(old) = self.group.checkpoint().take() {
            old.retire();
        }
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> io::Result<Option<openraft::alias::SnapshotOf<C, Image>>> {
        let moment = self.current::<C>().await;
        let moment = moment.map_err(|error| self.failed("reading the snapshot", &error))?;
        Ok(moment.map(snapshot))
    }
}

fn snapshot(moment: Moment) -> Snapshot<crate::types::LeaderId, u64, BasicNode, Image> {
    Snapshot { meta: moment.meta().clone(), snapshot: Image::moment(moment) }
}

/// Makes snapshots of a group, for openraft.
pub struct Builder {
    moment: Option<Result<Moment>>,
    group: Arc<Group>,
}

impl<C: Config> RaftSnapshotBuilder<C> for Builder {
    type SnapshotData = Image;

    async fn build_snapshot(&mut self) -> io::Result<openraft::alias::SnapshotOf<C, Image>> {
        let id = self.group.id;
        let fail = |error: forrest::Error| failed(id, "building a snapshot", &error);
        let moment = self.moment.take();
        let moment = moment.unwrap_or_else(|| Moment::of(&self.group.shared.db, id, None)).map_err(fail)?;
        if let Some(directory) = self.group.shared.checkpoints_of(id) {
            let db = self.group.shared.db.clone();
            let made =
                apart::<C, _>(self.group.shared.may_spawn(), move || Checkpoint::make(&db, &directory));
            // One that cannot be made, for example without space, is no reason to stop: the older one stays, and where
            // it lacks what was purged, the present data are sent.
            if let Ok(made) = made.await
                && let Some(old) = self.group.checkpoint().replace(made)
            {
                old.retire();
            }
        }
        Ok(snapshot(moment))
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("group", &self.group.id).field("applied", &self.applied).finish()
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("group", &self.group.id).finish()
    }
}
