//! A node of a replicated ordered store over HTTP. Keys are divided into ranges, and each range is a Raft group.
//!
//! ```sh
//! cargo run --example node -- 1 127.0.0.1:7001 /var/lib/store-1 m
//! ```
//!
//! The arguments are the node's id, its address, its directory, and the first key of each range but the first, in
//! ascending order, the same on all nodes. docs/guides/raft.md leads through it.

#![expect(clippy::result_large_err, reason = "a handler fails with the response that it sends")]

mod api;
mod peers;

use forrest::Db;
use forrest_raft::{Reader, State, Store, Types};
use openraft::{Config, Raft, SnapshotPolicy};
use peers::{Connections, Peers};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

/// A range of keys, and the group that has it.
pub(crate) struct Part {
    pub(crate) group: u64,
    /// Its first key, and the first key after it.
    pub(crate) start: String,
    pub(crate) end: Option<String>,
    pub(crate) raft: Raft<Types, State>,
    pub(crate) reader: Reader,
}

/// The node.
pub(crate) struct App {
    pub(crate) parts: Vec<Part>,
    pub(crate) peers: Peers,
}

fn config() -> Result<Arc<Config>, Box<dyn Error>> {
    let config = Config {
        heartbeat_interval: 150,
        election_timeout_min: 600,
        election_timeout_max: 1200,
        // Small, so that snapshots are seen at work. A real store would take 100,000 entries.
        snapshot_policy: SnapshotPolicy::LogsSinceLast(500),
        max_in_snapshot_log_to_keep: 100,
        ..forrest_raft::config()
    };
    Ok(Arc::new(config.validate()?))
}

async fn start(id: u64, directory: &Path, splits: Vec<String>) -> Result<App, Box<dyn Error>> {
    std::fs::create_dir_all(directory)?;
    let path = directory.join("store");
    let db = Db::open(path.to_str().ok_or("the directory is not UTF-8")?)?;
    let store = Store::with_checkpoints(db, directory.join("snapshots"))?;
    let (peers, config) = (Peers::new(id), config()?);
    let mut parts = Vec::new();
    for at in 0..=splits.len() {
        let group = at as u64 + 1;
        let (log, state) = store.group(group)?;
        let reader = state.reader();
        let network = Connections { peers: peers.clone(), group };
        let raft = Raft::new(id, Arc::clone(&config), network, log, state).await?;
        let start = at.checked_sub(1).map(|before| splits[before].clone()).unwrap_or_default();
        parts.push(Part { group, start, end: splits.get(at).cloned(), raft, reader });
    }
    Ok(App { parts, peers })
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [id, address, directory, splits @ ..] = &arguments[..] else {
        return Err("usage: node ID ADDRESS DIRECTORY [FIRST_KEY...]".into());
    };
    let id: u64 = id.parse().map_err(|_| format!("\"{id}\" is no id of a node: it is a number"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let app = start(id, Path::new(directory), splits.to_vec()).await?;
        let listener = tokio::net::TcpListener::bind(address).await?;
        println!("node {id} listens at {address}");
        axum::serve(listener, api::routes(Arc::new(app))).await?;
        Ok(())
    })
}
