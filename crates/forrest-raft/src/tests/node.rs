//! A node on a simulated disk, and the work that the gates have it do.
//!
//! The work is the same each time: two groups append, vote, truncate, apply, purge, and install snapshots. It is done
//! once without harm, and the state after each step is kept. A group is looked at as a whole: vote, log, purged and
//! committed log ids, membership, data and sessions.

use super::machine::{apply, entry, id, set, swap};
use crate::format;
use crate::group::applied;
use crate::{Command, Entry, Log, LogId, Membership, Meta, Payload, Response, State, Store, Types, Vote};
use forrest::simulated::{self, Simulated};
use forrest::{Db, Pages, View};
use futures_util::stream;
use openraft::storage::{RaftLogStorage, RaftLogStorageExt, RaftStateMachine};
use openraft::{BasicNode, RaftLogReader, StoredMembership};
use std::collections::BTreeMap;
use std::io;

/// A group as it is seen.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Seen {
    vote: Option<Vote>,
    purged: Option<LogId>,
    last: Option<LogId>,
    committed: Option<LogId>,
    entries: Vec<Entry>,
    applied: Meta,
    pairs: Pairs,
    /// By client: serial number and response.
    sessions: Vec<(u64, Vec<u8>)>,
}

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// A step of the work, on one of the groups.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Vote(u64),
    Append(std::ops::Range<u64>, u64),
    Truncate(u64),
    Apply(std::ops::Range<u64>),
    Committed(u64),
    Purge(u64),
    /// Installs the present state of the other node's group.
    Install,
    Background,
}

const STEPS: &[(u64, Step)] = &[
    (1, Step::Vote(1)),
    (1, Step::Append(1..4, 1)),
    (2, Step::Vote(1)),
    (1, Step::Committed(3)),
    (1, Step::Apply(1..4)),
    (2, Step::Append(1..3, 1)),
    (1, Step::Append(4..8, 1)),
    (2, Step::Apply(1..3)),
    (1, Step::Vote(2)),
    (1, Step::Truncate(5)),
    (1, Step::Append(6..9, 2)),
    (2, Step::Background),
    (1, Step::Apply(4..8)),
    (1, Step::Purge(5)),
    (2, Step::Install),
    (1, Step::Background),
    (2, Step::Purge(20)),
    (2, Step::Append(21..23, 1)),
    (1, Step::Purge(8)),
    (2, Step::Vote(3)),
    (2, Step::Install),
    (1, Step::Append(9..11, 2)),
];

/// The steps, of which each changes what is seen at one instant: entries that compare are batches of their own.
pub(super) fn steps() -> Vec<(u64, Step)> {
    let mut steps = Vec::new();
    for (group, step) in STEPS {
        match step {
            Step::Apply(range) => {
                steps.extend(range.clone().map(|index| (*group, Step::Apply(index..index + 1))));
            }
            other => steps.push((*group, other.clone())),
        }
    }
    steps
}

pub(super) fn builder() -> forrest::Builder {
    Db::builder()
        .pages(Pages::Plain)
        .memtable_bytes(2 << 10)
        .table_bytes(1 << 10)
        .cache_bytes(1 << 16)
        .workers(1)
}

pub(super) fn block<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(work)
}

/// The entry of an index: every kind in turn, with values that fill memtables.
pub(super) fn made(index: u64, term: u64) -> Entry {
    let mut made = match index % 5 {
        0 => Entry { log_id: id(index), payload: Payload::Blank },
        1 => {
            let nodes = BTreeMap::from([(1, BasicNode::new("a")), (2, BasicNode::new(index))]);
            let membership = Membership::new(vec![[1, 2].into()], nodes).expect("it is valid");
            Entry { log_id: id(index), payload: Payload::Membership(membership) }
        }
        2 => entry(index, &swap("x", None, Some("1")).of_session(5, index)),
        3 => entry(index, &swap("x", Some("1"), None)),
        _ => entry(index, &set(&format!("{index:03}"), &"v".repeat(300)).of_session(6, index)),
    };
    made.log_id.leader_id.term = term;
    made
}

/// The node whose snapshots are installed.
pub(super) fn other() -> (Store, Log, State) {
    let store = Store::open_inline(Db::open("memory:").expect("a new store")).expect("a new store");
    let (log, mut state) = store.group(2).expect("a group");
    block(apply(&mut state, (1..=20).map(|index| made(index, 1))));
    (store, log, state)
}

/// An open node.
pub(super) struct Node {
    pub(super) store: Store,
    pub(super) groups: BTreeMap<u64, (Log, State)>,
    pub(super) background: simulated::Background,
}

impl Node {
    pub(super) fn open(disk: &Simulated) -> forrest::Result<Node> {
        let (db, background) = simulated::open_unattended(disk.clone(), &builder())?;
        let store = Store::open_inline(db)?;
        let mut groups = BTreeMap::new();
        for group in [1, 2] {
            groups.insert(group, store.group(group)?);
        }
        Ok(Node { store, groups, background })
    }

    async fn step(&mut self, group: u64, step: &Step, other: &mut State) -> io::Result<()> {
        let (log, state) = self.groups.get_mut(&group).expect("it is open");
        let log_id = |index, term| made(index, term).log_id;
        match step {
            Step::Vote(term) => {
                let vote = Vote::new_committed(*term, 1);
                RaftLogStorage::<Types>::save_vote(log, &vote).await
            }
            Step::Append(range, term) => {
                let entries: Vec<_> = range.clone().map(|index| made(index, *term)).collect();
                RaftLogStorageExt::<Types>::blocking_append(log, entries).await.map_err(io::Error::other)
            }
            Step::Truncate(last) => {
                RaftLogStorage::<Types>::truncate_after(log, Some(log_id(*last, 1))).await
            }
            Step::Apply(range) => {
                let entries = range.clone().map(|index| made(index, if index < 6 { 1 } else { 2 }));
                let entries: Vec<_> = entries.map(|entry| Ok((entry, None))).collect();
                RaftStateMachine::<Types>::apply(state, stream::iter(entries)).await
            }
            Step::Committed(index) => {
                RaftLogStorage::<Types>::save_committed(log, Some(log_id(*index, 1))).await
            }
            Step::Purge(index) => RaftLogStorage::<Types>::purge(log, log_id(*index, 1)).await,
            Step::Install => {
                let snapshot = RaftStateMachine::<Types>::get_current_snapshot(other).await?;
                let snapshot = snapshot.expect("something was applied");
                RaftStateMachine::<Types>::install_snapshot(state, &snapshot.meta, snapshot.snapshot).await
            }
            Step::Background => self.background.run().map_err(io::Error::other),
        }
    }

    /// Nothing is stored but what belongs to the groups. What a failure leaves is removed when the store is opened.
    pub(super) fn is_clean(&self) -> bool {
        let db = self.store.db();
        let count = |name| db.keyspace(name).expect("it is there").count(..).expect("it can be read");
        let meta = db.keyspace(format::META).expect("it is there");
        let sessions = self.groups.keys().map(|group| self.sessions(&meta, *group).len() as u64);
        db.keyspaces().expect("names").len() == 6 && count(format::SESSIONS) == sessions.sum::<u64>()
    }

    /// The sessions that the present data of a group have.
    fn sessions(&self, meta: &View, group: u64) -> Vec<(u64, Vec<u8>)> {
        let generation = applied(meta, group).expect("it can be read").0;
        let sessions = self.store.db().keyspace(format::SESSIONS).expect("it is there");
        let sessions = sessions.prefix(format::sessions_key(group, generation)).map(|session| {
            let session = session.expect("a session");
            let (_, client) = format::session_of(session.key()).expect("its key");
            (client, session.value_bytes().expect("read").to_vec())
        });
        sessions.collect()
    }

    pub(super) async fn see(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        let meta = self.store.db().keyspace(format::META).expect("it is there");
        let mut sessions: BTreeMap<u64, _> =
            self.groups.keys().map(|group| (*group, self.sessions(&meta, *group))).collect();
        for (group, (log, state)) in &mut self.groups {
            let mut reader = RaftLogStorage::<Types>::get_log_reader(log).await;
            let ends = RaftLogStorage::<Types>::get_log_state(log).await.expect("the ends");
            let moment = state.reader().moment().expect("the data");
            let pairs = moment.range(..).map(|pair| pair.expect("a pair"));
            seen.push(Seen {
                vote: RaftLogReader::<Types>::read_vote(&mut reader).await.expect("the vote"),
                purged: ends.last_purged_log_id,
                last: ends.last_log_id,
                committed: RaftLogStorage::<Types>::read_committed(log).await.expect("the committed log id"),
                entries: RaftLogReader::<Types>::try_get_log_entries(&mut reader, ..).await.expect("entries"),
                applied: moment.meta().clone(),
                pairs: pairs
                    .map(|pair| (pair.key().to_vec(), pair.value_bytes().expect("read").to_vec()))
                    .collect(),
                sessions: sessions.remove(group).expect("those of each group"),
            });
        }
        seen
    }
}

/// Whether a step is durable when it has returned.
fn is_durable(step: &Step) -> bool {
    matches!(step, Step::Vote(_) | Step::Append(..) | Step::Install)
}

/// How far the work came.
pub(super) struct Done {
    /// How many steps have returned, and how many of them are durable.
    pub(super) steps: usize,
    pub(super) durable: usize,
    /// The node, if it could be opened.
    pub(super) node: Option<Node>,
    /// What failed, and why.
    pub(super) error: Option<String>,
}

/// Does the work until something fails. `each` is called after each step, with their number.
pub(super) fn work(disk: &Simulated, mut each: impl FnMut(&mut Node, usize)) -> Done {
    let (_store, _log, mut other) = other();
    let mut node = match Node::open(disk) {
        Ok(node) => node,
        Err(error) => return Done { steps: 0, durable: 0, node: None, error: Some(error.to_string()) },
    };
    let (mut done, mut durable, mut error) = (0, 0, None);
    each(&mut node, done);
    for (group, step) in &steps() {
        if let Err(why) = block(node.step(*group, step, &mut other)) {
            let text = why.to_string();
            let is_named = text.contains(&format!("group {group}")) || matches!(step, Step::Background);
            assert!(is_named, "{step:?} of group {group}: {text}");
            error = Some(format!("{step:?}: {text}"));
            break;
        }
        done += 1;
        if is_durable(step) {
            durable = done;
        }
        each(&mut node, done);
    }
    Done { steps: done, durable, node: Some(node), error }
}

/// What a group must be like.
#[derive(Default)]
struct Model {
    vote: Option<Vote>,
    purged: Option<LogId>,
    committed: Option<LogId>,
    entries: BTreeMap<u64, Entry>,
    applied: Meta,
    pairs: BTreeMap<Vec<u8>, Vec<u8>>,
    sessions: BTreeMap<u64, (u64, Response)>,
}

impl Model {
    fn step(&mut self, step: &Step) {
        match step {
            Step::Vote(term) => self.vote = Some(Vote::new_committed(*term, 1)),
            Step::Append(range, term) => {
                self.entries.extend(range.clone().map(|index| (index, made(index, *term))));
            }
            Step::Truncate(last) => self.entries.retain(|index, _| index <= last),
            Step::Apply(range) => {
                range.clone().for_each(|index| self.apply(made(index, if index < 6 { 1 } else { 2 })));
            }
            Step::Committed(index) => self.committed = Some(made(*index, 1).log_id),
            Step::Purge(last) => {
                self.purged = Some(made(*last, 1).log_id);
                self.entries.retain(|index, _| index > last);
            }
            Step::Install => {
                let mut other = Model::default();
                (1..=20).for_each(|index| other.apply(made(index, 1)));
                (self.applied, self.pairs, self.sessions) = (other.applied, other.pairs, other.sessions);
            }
            Step::Background => {}
        }
    }

    /// As the index says, by which `made` chooses.
    fn apply(&mut self, entry: Entry) {
        let (id, x, one) = (entry.log_id, b"x".to_vec(), b"1".to_vec());
        self.applied.last_log_id = Some(id);
        let found = self.pairs.get(&x).cloned();
        match (id.index % 5, entry.payload) {
            (1, Payload::Membership(membership)) => {
                self.applied.last_membership = StoredMembership::new(Some(id), membership);
            }
            (2, _) => {
                let response = match found {
                    None => Response::Applied,
                    found => Response::Mismatch { op: 0, found },
                };
                self.pairs.entry(x).or_insert(one);
                self.sessions.insert(5, (id.index, response));
            }
            (3, _) if found == Some(one) => drop(self.pairs.remove(&x)),
            (4, _) => {
                self.pairs.insert(format!("{:03}", id.index).into_bytes(), vec![b'v'; 300]);
                self.sessions.insert(6, (id.index, Response::Applied));
            }
            _ => {}
        }
    }

    fn seen(&self) -> Seen {
        let session = |(client, (serial, response)): (&u64, &(u64, Response))| {
            (*client, format::session_bytes(*serial, response))
        };
        Seen {
            vote: self.vote,
            purged: self.purged,
            last: self.entries.values().next_back().map(|entry| entry.log_id).or(self.purged),
            committed: self.committed,
            entries: self.entries.values().cloned().collect(),
            applied: self.applied.clone(),
            pairs: self.pairs.clone().into_iter().collect(),
            sessions: self.sessions.iter().map(session).collect(),
        }
    }
}

/// What the groups must be like at the beginning and after each step.
pub(super) fn states() -> Vec<Vec<Seen>> {
    let mut models = BTreeMap::from([(1, Model::default()), (2, Model::default())]);
    let mut states = vec![models.values().map(Model::seen).collect()];
    for (group, step) in steps() {
        models.get_mut(&group).expect("one of both").step(&step);
        states.push(models.values().map(Model::seen).collect());
    }
    states
}

/// Without harm each step has the effect that it should have. Returns the number of I/Os.
pub(super) fn unharmed() -> u64 {
    let states = states();
    let done = work(&Simulated::new(), |node, done| {
        assert_eq!(block(node.see()), states[done], "after {done} steps");
        assert!(node.is_clean(), "after {done} steps");
    });
    assert_eq!((done.error, done.steps), (None, states.len() - 1));
    // To look at it takes I/Os too.
    let disk = Simulated::new();
    work(&disk, |_, _| {});
    let ios = disk.ios();
    opened_again(&disk.kill(), states.last().expect("there is one"));
    ios
}

/// A node that was opened again has the same state, and takes snapshots beside the data that it has.
fn opened_again(disk: &Simulated, state: &[Seen]) {
    let mut image = Model::default();
    image.step(&Step::Install);
    let Seen { applied, pairs, sessions, .. } = image.seen();
    let mut state = state.to_vec();
    for _ in 0..3 {
        let mut node = Node::open(disk).expect("it opens");
        assert_eq!(block(node.see()), state);
        let (_store, _log, mut other) = other();
        block(node.step(1, &Step::Install, &mut other)).expect("it can be installed");
        let [one, _] = &mut state[..] else { unreachable!("there are two groups") };
        (one.applied, one.pairs, one.sessions) = (applied.clone(), pairs.clone(), sessions.clone());
        assert_eq!(block(node.see()), state);
        assert!(node.is_clean());
    }
}

#[test]
fn the_work_is_that_of_the_model() {
    assert!(unharmed() > 100);
}

/// The recovered node takes a vote, entries, and applies them; a repeated command of a session changes nothing.
pub(super) fn go_on(node: &mut Node, io: u64) {
    let (log, state) = node.groups.get_mut(&1).expect("it is open");
    block(async {
        let ends = RaftLogStorage::<Types>::get_log_state(log).await.expect("the ends");
        let (applied, _) = RaftStateMachine::<Types>::applied_state(state).await.expect("it can be read");
        let next = ends.last_log_id.max(applied).map_or(1, |last| last.index + 1);
        RaftLogStorage::<Types>::save_vote(log, &Vote::new_committed(9, 1)).await.expect("a vote");
        if ends.last_log_id.is_none_or(|last| last.index + 1 == next) {
            let more = [made(next, 9), made(next + 1, 9)];
            RaftLogStorageExt::<Types>::blocking_append(log, more).await.expect("entries");
        }
        let set: Command = set("y", &io.to_string()).of_session(8, 1);
        let again = swap("y", Some(&io.to_string()), None).of_session(8, 1);
        apply(state, [entry(next, &set), entry(next + 1, &again)]).await;
        let value = state.reader().moment().expect("the data").get("y").expect("it can be read");
        assert_eq!(value.as_deref(), Some(io.to_string().as_bytes()));
    });
}
