//! The network between the simulated nodes: it delays, loses and cuts, by a seed.

use super::Seeded;
use super::node::Node;
use forrest_base::random::Random;
use forrest_raft::{Image, Vote};
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{RPCOption, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse,
};
use openraft::{AnyError, BasicNode, OptionalSend, Snapshot, alias::SnapshotOf};
use openraft_multi::{GroupNetworkAdapter, GroupRouter};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The network. A clone is another handle to it.
#[derive(Clone)]
pub(crate) struct Net(Arc<Inner>);

struct Inner {
    random: Mutex<Random>,
    /// Directions in which nothing passes.
    blocked: Mutex<BTreeSet<(u64, u64)>>,
    nodes: Mutex<BTreeMap<u64, Arc<Node>>>,
}

impl Net {
    pub(crate) fn new(seed: u64) -> Net {
        let (blocked, nodes) = Default::default();
        Net(Arc::new(Inner { random: Mutex::new(Random(seed)), blocked, nodes }))
    }

    pub(crate) fn below(&self, end: u64) -> u64 {
        self.0.random.lock().expect("no panic").below(end)
    }

    pub(crate) fn put(&self, node: Arc<Node>) {
        self.0.nodes.lock().expect("no panic").insert(node.id, node);
    }

    pub(crate) fn take(&self, id: u64) -> Option<Arc<Node>> {
        self.0.nodes.lock().expect("no panic").remove(&id)
    }

    pub(crate) fn node(&self, id: u64) -> Option<Arc<Node>> {
        self.0.nodes.lock().expect("no panic").get(&id).cloned()
    }

    pub(crate) fn nodes(&self) -> Vec<Arc<Node>> {
        self.0.nodes.lock().expect("no panic").values().cloned().collect()
    }

    pub(crate) fn block(&self, from: u64, to: u64) {
        self.0.blocked.lock().expect("no panic").insert((from, to));
    }

    pub(crate) fn heal(&self) {
        self.0.blocked.lock().expect("no panic").clear();
    }

    /// One way from node to node. Returns false if what was sent is lost.
    async fn travel(&self, from: u64, to: u64) -> bool {
        let delay = if self.below(50) == 0 { self.below(100) } else { 1 + self.below(4) };
        tokio::time::sleep(Duration::from_millis(delay)).await;
        let is_lost = self.below(200) == 0;
        !is_lost && !self.0.blocked.lock().expect("no panic").contains(&(from, to))
    }
}

/// The network as a node sees it.
#[derive(Clone)]
pub(crate) struct Router {
    pub(crate) net: Net,
    pub(crate) from: u64,
    /// What a dead process has sent does not arrive, and no response does.
    pub(crate) is_dead: Arc<AtomicBool>,
}

fn unreachable(what: &str) -> RPCError<Seeded> {
    RPCError::Unreachable(Unreachable::new(&AnyError::error(what)))
}

impl Router {
    /// Sends a request, and waits for its response.
    async fn call<T, F: Future<Output = Result<T, AnyError>>>(
        &self,
        to: u64,
        option: &RPCOption,
        request: impl FnOnce(Arc<Node>) -> F,
    ) -> Result<T, RPCError<Seeded>> {
        let call = async {
            if !self.net.travel(self.from, to).await || self.is_dead.load(Relaxed) {
                return std::future::pending().await;
            }
            let Some(node) = self.net.node(to) else { return Err(unreachable("the node is down")) };
            let response = request(node).await;
            if !self.net.travel(to, self.from).await || self.is_dead.load(Relaxed) {
                return std::future::pending().await;
            }
            response.map_err(|error| RPCError::Network(NetworkError::new(&error)))
        };
        let result = tokio::time::timeout(option.hard_ttl(), call).await;
        result.unwrap_or_else(|_| Err(unreachable("no response in time")))
    }
}

impl GroupRouter<Seeded, u64> for Router {
    type SnapshotData = Image;

    async fn append_entries(
        &self,
        target: u64,
        group: u64,
        rpc: AppendEntriesRequest<Seeded>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<Seeded>, RPCError<Seeded>> {
        let request = async |node: Arc<Node>| {
            node.raft(group).append_entries(rpc).await.map_err(|error| AnyError::new(&error))
        };
        self.call(target, &option, request).await
    }

    async fn vote(
        &self,
        target: u64,
        group: u64,
        rpc: VoteRequest<Seeded>,
        option: RPCOption,
    ) -> Result<VoteResponse<Seeded>, RPCError<Seeded>> {
        let request =
            async |node: Arc<Node>| node.raft(group).vote(rpc).await.map_err(|error| AnyError::new(&error));
        self.call(target, &option, request).await
    }

    async fn pre_vote(
        &self,
        target: u64,
        group: u64,
        rpc: VoteRequest<Seeded>,
        option: RPCOption,
    ) -> Result<VoteResponse<Seeded>, RPCError<Seeded>> {
        let request = async |node: Arc<Node>| {
            node.raft(group).pre_vote(rpc).await.map_err(|error| AnyError::new(&error))
        };
        self.call(target, &option, request).await
    }

    async fn full_snapshot(
        &self,
        target: u64,
        group: u64,
        vote: Vote,
        snapshot: SnapshotOf<Seeded, Image>,
        _cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<Seeded>, StreamingError<Seeded>> {
        let request = async |node: Arc<Node>| {
            let failed = |error: forrest::Error| AnyError::new(&error);
            let mut receiver = node.reader(group).receive().map_err(failed)?;
            for chunk in snapshot.snapshot.chunks().map_err(failed)? {
                receiver.push(&chunk.map_err(failed)?).map_err(failed)?;
                // It takes its time, so that nodes crash in the middle of it.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let image = receiver.finish().map_err(failed)?;
            let snapshot = Snapshot { meta: snapshot.meta, snapshot: image };
            let installed = node.raft(group).install_full_snapshot(vote, snapshot).await;
            installed.map_err(|error| AnyError::new(&error))
        };
        self.call(target, &option, request).await.map_err(|error| match error {
            RPCError::Unreachable(error) => StreamingError::Unreachable(error),
            other => StreamingError::Network(NetworkError::new(&other)),
        })
    }
}

/// The connections of one group of a node.
pub(crate) struct Connections {
    pub(crate) router: Router,
    pub(crate) group: u64,
}

impl RaftNetworkFactory<Seeded> for Connections {
    type Network = GroupNetworkAdapter<Seeded, u64, Router>;

    async fn new_client(&mut self, target: u64, _node: &BasicNode) -> Self::Network {
        GroupNetworkAdapter::new(self.router.clone(), target, self.group)
    }
}
