//! A client: it makes calls until all is over, and notes what they returned.

use super::Seeded;
use super::net::Net;
use super::node::Node;
use crate::history::{Call, Record};
use forrest::{Op, WriteBatch};
use forrest_base::random::Random;
use forrest_raft::{Command, Response};
use openraft::ReadPolicy;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What all clients share.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) histories: Mutex<BTreeMap<u64, Vec<Record>>>,
    pub(crate) is_over: AtomicBool,
    pub(crate) clock: AtomicU64,
    /// Writes of which nobody knows whether they happened. Each makes the search for an order longer.
    open: AtomicU64,
    /// Commands that were sent again.
    pub(crate) repeated: AtomicU64,
}

const OPEN_MAX: u64 = 4;

pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) group: u64,
    pub(crate) nodes: u64,
    pub(crate) random: Random,
    pub(crate) net: Net,
    pub(crate) shared: Arc<Shared>,
    serial: u64,
    /// The node that is asked first.
    guess: u64,
    /// A value that some key had, for comparisons.
    known: Option<(String, Option<String>)>,
}

impl Client {
    pub(crate) fn new(id: u64, group: u64, nodes: u64, net: &Net, shared: &Arc<Shared>, seed: u64) -> Client {
        let (net, shared, random) = (net.clone(), Arc::clone(shared), Random(seed));
        Client { id, group, nodes, random, net, shared, serial: 0, guess: 1, known: None }
    }

    // ORDERING: one thread runs them all.
    fn now(&self) -> u64 {
        self.shared.clock.fetch_add(1, Relaxed)
    }

    fn key(&mut self, below: u64) -> String {
        format!("{}{}", if self.group == 1 { 'a' } else { 'n' }, self.random.below(below))
    }

    fn note(&self, begin: u64, end: Option<u64>, calls: Vec<Call>) {
        let record = Record { client: self.id, begin, end, calls };
        self.shared.histories.lock().expect("no panic").entry(self.group).or_default().push(record);
    }

    pub(crate) async fn run(mut self) {
        while !self.shared.is_over.load(Relaxed) {
            tokio::time::sleep(Duration::from_millis(5 + self.random.below(60))).await;
            match self.random.below(10) {
                0..3 => self.set().await,
                3 => self.delete().await,
                4 => self.delete_range().await,
                5 | 6 => self.swap().await,
                7 | 8 => self.get().await,
                _ => self.range().await,
            }
        }
    }

    async fn set(&mut self) {
        let key = self.key(4);
        let value = format!("{}.{}", self.id, self.serial);
        let command = Command::one(Op::Set { key: &key, value: &value }).expect("it fits");
        self.blind(command, vec![Call::Set(key, value)]).await;
    }

    async fn delete(&mut self) {
        let key = self.key(4);
        let command = Command::one(Op::Delete { key: &key }).expect("it fits");
        self.blind(command, vec![Call::Delete(key)]).await;
    }

    /// Deletes a range and sets a key of it, in one command.
    async fn delete_range(&mut self) {
        let (start, end, key) = (self.key(2), self.key(4), self.key(4));
        let value = format!("{}.{}", self.id, self.serial);
        let mut batch = WriteBatch::new();
        batch.delete_range(start.clone()..end.clone()).set(&key, &value);
        let command = Command::try_from(&batch).expect("it fits");
        let deleted = if start < end { Some(Call::DeleteRange(start, end)) } else { None };
        self.blind(command, deleted.into_iter().chain([Call::Set(key, value)]).collect()).await;
    }

    /// A write whose result is known beforehand. Some are sent without a session, and once.
    async fn blind(&mut self, command: Command, calls: Vec<Call>) {
        let begin = self.now();
        self.serial += 1;
        if self.random.below(4) == 0 && self.shared.open.load(Relaxed) < OPEN_MAX {
            let Some(node) = self.leader() else { return };
            let written = write(&node, self.group, command).await;
            let end = written.is_some().then(|| self.now());
            self.shared.open.fetch_add(u64::from(end.is_none()), Relaxed);
            return self.note(begin, end, calls);
        }
        let response = self.repeat(command).await;
        assert_eq!(response, Response::Applied);
        self.note(begin, Some(self.now()), calls);
    }

    /// Sends a command with a session until there is a response.
    async fn repeat(&mut self, command: Command) -> Response {
        let command = command.with_session(self.id, self.serial).expect("it ends no session");
        loop {
            if let Some(node) = self.leader()
                && let Some(response) = write(&node, self.group, command.clone()).await
            {
                return response;
            }
            self.shared.repeated.fetch_add(1, Relaxed);
            self.elsewhere().await;
        }
    }

    /// Compares with what it knows, and changes that.
    async fn swap(&mut self) {
        let Some((key, expected)) = self.known.take() else { return };
        let begin = self.now();
        self.serial += 1;
        let new = (self.random.below(3) > 0).then(|| format!("{}.{}", self.id, self.serial));
        let mut batch = WriteBatch::new();
        batch.compare_and_swap(
            &key,
            expected.as_ref().map(String::as_bytes),
            new.as_ref().map(String::as_bytes),
        );
        let response = self.repeat(Command::try_from(&batch).expect("it fits")).await;
        let calls = match response {
            Response::Applied => {
                let change = match new {
                    Some(new) => Call::Set(key.clone(), new),
                    None => Call::Delete(key.clone()),
                };
                vec![Call::Get(key, expected), change]
            }
            Response::Mismatch { op: 0, found } => vec![Call::Get(key, found.as_deref().map(text))],
            other => panic!("{other:?}"),
        };
        self.note(begin, Some(self.now()), calls);
    }

    async fn get(&mut self) {
        let key = self.key(4);
        let (begin, node) = self.linearizable().await;
        let read = || node.reader(self.group).moment()?.get(&key);
        let Some(value) = unless_cut(&node, read()) else { return };
        let value = value.map(|value| text(&value));
        self.known = Some((key.clone(), value.clone()));
        self.note(begin, Some(self.now()), vec![Call::Get(key, value)]);
    }

    async fn range(&mut self) {
        let (start, end) = (self.key(2), self.key(5));
        let (begin, node) = self.linearizable().await;
        if start >= end {
            return;
        }
        let read = || {
            let moment = node.reader(self.group).moment()?;
            let pair = |pair: forrest::Result<forrest::Entry>| {
                let pair = pair?;
                Ok((text(pair.key()), text(pair.value_bytes()?)))
            };
            moment.range(start.as_str()..end.as_str()).map(pair).collect()
        };
        let Some(pairs) = unless_cut(&node, read()) else { return };
        let call = Call::Range(start.clone(), end.clone(), pairs);
        self.note(begin, Some(self.now()), vec![call]);
    }

    /// A node that has all that was acknowledged before the moment that is returned.
    async fn linearizable(&mut self) -> (u64, Arc<Node>) {
        loop {
            let begin = self.now();
            if let Some(node) = self.leader() {
                let wait = node.raft(self.group).ensure_linearizable(ReadPolicy::ReadIndex);
                if let Ok(Ok(_)) = tokio::time::timeout(Duration::from_millis(500), wait).await
                    && !node.disk.is_cut()
                {
                    return (begin, node);
                }
            }
            self.elsewhere().await;
        }
    }

    /// The node that is asked next, if it takes itself for the leader.
    fn leader(&mut self) -> Option<Arc<Node>> {
        let node = self.net.node(self.guess)?;
        node.raft(self.group).is_leader().then_some(node)
    }

    async fn elsewhere(&mut self) {
        self.guess = 1 + self.random.below(self.nodes);
        tokio::time::sleep(Duration::from_millis(10 + self.random.below(20))).await;
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Sends a command to a node. `None` if nobody knows what came of it.
async fn write(node: &Node, group: u64, command: Command) -> Option<Response> {
    let write = node.raft(group).client_write(command);
    let response: Result<Result<openraft::raft::ClientWriteResponse<Seeded>, _>, _> =
        tokio::time::timeout(Duration::from_millis(600), write).await;
    Some(response.ok()?.ok()?.data)
}

/// What was read; `None` if the read itself was the I/O at which the node lost its power.
fn unless_cut<T>(node: &Node, read: forrest::Result<T>) -> Option<T> {
    match read {
        Ok(read) => Some(read),
        Err(error) => {
            assert!(node.disk.is_cut(), "it can be read: {error}");
            None
        }
    }
}
