//! Requests to other nodes: openraft's messages as MessagePack, in POST requests, and snapshots as streams.

use axum::body::{Body, Bytes};
use axum::http::Request;
use forrest_raft::{Image, Types, Vote};
use futures_util::stream::{self, StreamExt};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{RPCOption, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse,
};
use openraft::{AnyError, BasicNode, OptionalSend, alias::SnapshotOf};
use openraft_multi::{GroupNetworkAdapter, GroupRouter};
use serde::{Serialize, de::DeserializeOwned};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Names the sender of a request.
pub(crate) const FROM: &str = "x-from";
/// The longest message but a snapshot.
pub(crate) const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// Connections to all nodes, for all groups. A clone is another handle to them.
#[derive(Clone)]
pub(crate) struct Peers(Arc<Inner>);

struct Inner {
    id: u64,
    client: Client<HttpConnector, Body>,
    addresses: Mutex<BTreeMap<u64, String>>,
    /// Nodes from which this one is cut off, for tests.
    cut: Mutex<BTreeSet<u64>>,
}

impl Peers {
    pub(crate) fn new(id: u64) -> Peers {
        let client = Client::builder(TokioExecutor::new()).build_http();
        let (addresses, cut) = Default::default();
        Peers(Arc::new(Inner { id, client, addresses, cut }))
    }

    /// Cuts this node off from others, in both directions.
    pub(crate) fn cut(&self, nodes: BTreeSet<u64>) {
        *self.0.cut.lock().unwrap_or_else(PoisonError::into_inner) = nodes;
    }

    pub(crate) fn is_cut(&self, node: u64) -> bool {
        self.0.cut.lock().unwrap_or_else(PoisonError::into_inner).contains(&node)
    }

    /// Sends a request, and waits for the response.
    async fn post<T: DeserializeOwned>(&self, target: u64, path: &str, body: Body) -> Result<T, AnyError> {
        if self.is_cut(target) {
            return Err(AnyError::error(format!("cut off from node {target}")));
        }
        let address = self.0.addresses.lock().unwrap_or_else(PoisonError::into_inner).get(&target).cloned();
        let address = address.ok_or_else(|| AnyError::error(format!("node {target} has no address")))?;
        let request = Request::post(format!("http://{address}{path}")).header(FROM, self.0.id).body(body);
        let request = request.map_err(|error| AnyError::new(&error))?;
        let response = self.0.client.request(request).await.map_err(|error| AnyError::new(&error))?;
        let is_ok = response.status().is_success();
        let bytes = axum::body::to_bytes(Body::new(response.into_body()), MESSAGE_BYTES_MAX).await;
        let bytes = bytes.map_err(|error| AnyError::new(&error))?;
        if !is_ok {
            return Err(AnyError::error(String::from_utf8_lossy(&bytes)));
        }
        rmp_serde::from_slice(&bytes).map_err(|error| AnyError::new(&error))
    }

    async fn message<T: DeserializeOwned>(
        &self,
        target: u64,
        group: u64,
        what: &str,
        message: &impl Serialize,
        option: &RPCOption,
    ) -> Result<T, RPCError<Types>> {
        let body =
            rmp_serde::to_vec(message).map_err(|error| RPCError::Network(NetworkError::new(&error)))?;
        let path = format!("/raft/{group}/{what}");
        let response =
            tokio::time::timeout(option.hard_ttl(), self.post(target, &path, Body::from(body))).await;
        let response = response.unwrap_or_else(|_| Err(late(target, &path, option.hard_ttl())));
        response.map_err(|error| RPCError::Unreachable(Unreachable::new(&error)))
    }
}

fn late(target: u64, path: &str, most: Duration) -> AnyError {
    AnyError::error(format!("{path} of node {target}: nothing in {most:?}"))
}

impl GroupRouter<Types, u64> for Peers {
    type SnapshotData = Image;

    async fn append_entries(
        &self,
        target: u64,
        group: u64,
        message: AppendEntriesRequest<Types>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<Types>, RPCError<Types>> {
        self.message(target, group, "append", &message, &option).await
    }

    async fn vote(
        &self,
        target: u64,
        group: u64,
        message: VoteRequest<Types>,
        option: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        self.message(target, group, "vote", &message, &option).await
    }

    async fn pre_vote(
        &self,
        target: u64,
        group: u64,
        message: VoteRequest<Types>,
        option: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        self.message(target, group, "pre-vote", &message, &option).await
    }

    /// The length of a head, the head (the vote and what the snapshot is of), and the bytes of the image. The time is
    /// limited for each chunk, and for the installation after the last one: the whole may take long.
    async fn full_snapshot(
        &self,
        target: u64,
        group: u64,
        vote: Vote,
        snapshot: SnapshotOf<Types, Image>,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        let failed = |error: &AnyError| StreamingError::Network(NetworkError::new(error));
        let head =
            rmp_serde::to_vec(&(vote, snapshot.meta)).map_err(|error| failed(&AnyError::new(&error)))?;
        let length = u32::try_from(head.len()).expect("a membership is short").to_be_bytes();
        let head = Bytes::from([&length[..], &head].concat());
        let chunks = snapshot.snapshot.chunks().map_err(|error| failed(&AnyError::new(&error)))?;
        // A chunk is read when the connection has taken the one before.
        let (taken, path) = (Arc::new(Notify::new()), format!("/raft/{group}/snapshot"));
        let notice = Arc::clone(&taken);
        let chunks = stream::iter(chunks.map(move |chunk| {
            notice.notify_one();
            chunk.map(Bytes::from)
        }));
        let body = Body::from_stream(stream::iter([Ok(head)]).chain(chunks));
        let stalled =
            async { while tokio::time::timeout(option.hard_ttl(), taken.notified()).await.is_ok() {} };
        tokio::select! {
            closed = cancel => Err(StreamingError::Closed(closed)),
            response = self.post(target, &path, body) => response.map_err(|error| failed(&error)),
            () = stalled => Err(failed(&late(target, &path, option.hard_ttl()))),
        }
    }
}

/// The connections of one group.
pub(crate) struct Connections {
    pub(crate) peers: Peers,
    pub(crate) group: u64,
}

impl RaftNetworkFactory<Types> for Connections {
    type Network = GroupNetworkAdapter<Types, u64, Peers>;

    async fn new_client(&mut self, target: u64, node: &BasicNode) -> Self::Network {
        let mut addresses = self.peers.0.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        addresses.insert(target, node.addr.clone());
        drop(addresses);
        GroupNetworkAdapter::new(self.peers.clone(), target, self.group)
    }
}
