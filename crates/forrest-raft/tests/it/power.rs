//! Power cuts at every I/O of a node's work. The store must then be in a state that it was in, no older than the last
//! vote, entry or snapshot that was reported as durable, and must go on from there.
//!
//! The work is the same each time: two groups append, vote, truncate, apply, purge, and install snapshots. It is done
//! once without a cut, and the state after each step is kept. A group is looked at as a whole: vote, log, purged and
//! committed log ids, membership and data; sessions by repeated commands.

use crate::machine::{apply, entry, id, set, swap};
use forrest::simulated::{self, Simulated};
use forrest::{Db, Pages};
use forrest_raft::{Command, Entry, Log, LogId, Membership, Meta, Payload, State, Store, Types, Vote};
use forrest_testing::sized;
use futures_util::stream;
use openraft::storage::{RaftLogStorage, RaftLogStorageExt, RaftStateMachine};
use openraft::{BasicNode, RaftLogReader};
use std::collections::BTreeMap;
use std::io;

/// A group as it is seen.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    vote: Option<Vote>,
    purged: Option<LogId>,
    last: Option<LogId>,
    committed: Option<LogId>,
    entries: Vec<Entry>,
    applied: Meta,
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A step of the work, on one of the groups.
#[derive(Debug, Clone)]
enum Step {
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
fn steps() -> Vec<(u64, Step)> {
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

fn builder() -> forrest::Builder {
    Db::builder()
        .pages(Pages::Plain)
        .memtable_bytes(2 << 10)
        .table_bytes(1 << 10)
        .cache_bytes(1 << 16)
        .workers(1)
}

fn block<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(work)
}

/// The entry of an index: every kind in turn, with values that fill memtables.
fn made(index: u64, term: u64) -> Entry {
    let mut made = match index % 5 {
        0 => Entry { log_id: id(index), payload: Payload::Blank },
        1 => {
            let nodes = BTreeMap::from([(1, BasicNode::new("a")), (2, BasicNode::new(index))]);
            let membership = Membership::new(vec![[1, 2].into()], nodes).expect("it is valid");
            Entry { log_id: id(index), payload: Payload::Membership(membership) }
        }
        2 => entry(index, &swap("x", None, Some("1")).with_session(5, index)),
        3 => entry(index, &swap("x", Some("1"), None)),
        _ => entry(index, &set(&format!("{index:03}"), &"v".repeat(300)).with_session(6, index)),
    };
    made.log_id.leader_id.term = term;
    made
}

/// The node whose snapshots are installed.
fn other() -> (Store, Log, State) {
    let store = Store::open_inline(Db::open("memory:").expect("a new store")).expect("a new store");
    let (log, mut state) = store.group(2).expect("a group");
    block(apply(&mut state, (1..=20).map(|index| made(index, 1))));
    (store, log, state)
}

/// An open node.
struct Node {
    store: Store,
    groups: BTreeMap<u64, (Log, State)>,
    background: simulated::Background,
}

impl Node {
    fn open(disk: &Simulated) -> forrest::Result<Node> {
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

    async fn see(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        for (log, state) in self.groups.values_mut() {
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
            });
        }
        seen
    }
}

/// Whether a step is durable when it has returned.
fn is_durable(step: &Step) -> bool {
    matches!(step, Step::Vote(_) | Step::Append(..) | Step::Install)
}

/// Does the work until the power is cut. Returns how many steps have returned, and how many of them are durable.
fn work(disk: &Simulated, mut each: impl FnMut(&mut Node)) -> (usize, usize) {
    let (_store, _log, mut other) = other();
    let Ok(mut node) = Node::open(disk) else { return (0, 0) };
    each(&mut node);
    let (mut done, mut durable) = (0, 0);
    for (group, step) in &steps() {
        if let Err(error) = block(node.step(*group, step, &mut other)) {
            assert!(disk.is_cut(), "{step:?}: {error}");
            let text = error.to_string();
            assert!(text.contains("group ") || matches!(step, Step::Background), "{step:?}: {text}");
            break;
        }
        done += 1;
        if is_durable(step) {
            durable = done;
        }
        each(&mut node);
    }
    (done, durable)
}

#[test]
fn after_power_cuts_at_every_io() {
    let mut states = Vec::new();
    let disk = Simulated::new();
    work(&disk, |node| states.push(block(node.see())));
    assert_eq!(states.len(), steps().len() + 1);
    let (ios, mut looked, mut between) = (disk.ios(), 0, 0);
    let stride = sized(3, 1);
    for io in (0..ios).step_by(stride) {
        let disk = Simulated::new();
        disk.cut_power_at(io);
        let (done, durable) = work(&disk, |_| {});
        for after in disk.crash_states(sized(1, 4), io) {
            let mut node = Node::open(&after).unwrap_or_else(|error| panic!("cut at {io}: {error}"));
            let seen = block(node.see());
            // The step that was cut may be there.
            let expected = &states[durable..states.len().min(done + 2)];
            assert!(
                expected.contains(&seen),
                "cut at {io}, after {done} steps, {durable} durable: {seen:#?}"
            );
            looked += 1;
            between += usize::from(seen != states[done]);
            let names = node.store.db().keyspaces().expect("names");
            assert_eq!(names.len(), 6, "cut at {io}: data that no group uses: {names:?}");
            go_on(&mut node, io);
        }
    }
    println!("{looked} states after cuts at {ios} I/Os, {between} of them between steps");
    assert!(looked as u64 * stride as u64 > ios, "{looked} states, {ios} I/Os");
}

/// The recovered node takes a vote, entries, and applies them; a repeated command of a session changes nothing.
fn go_on(node: &mut Node, io: u64) {
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
        let set: Command = set("y", &io.to_string()).with_session(8, 1);
        let again = swap("y", Some(&io.to_string()), None).with_session(8, 1);
        apply(state, [entry(next, &set), entry(next + 1, &again)]).await;
        let value = state.reader().moment().expect("the data").get("y").expect("it can be read");
        assert_eq!(value.as_deref(), Some(io.to_string().as_bytes()));
    });
}
