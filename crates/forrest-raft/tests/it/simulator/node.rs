//! A simulated node: a store on a simulated disk, with a Raft group for each range of keys.

use super::net::{Connections, Net, Router};
use super::{GROUPS, Seeded};
use forrest::simulated::{self, Background, Simulated};
use forrest::{Db, Pages};
use forrest_raft::{Reader, State, Store};
use openraft::{Config, Raft, SnapshotPolicy};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub(crate) struct Node {
    pub(crate) id: u64,
    pub(crate) disk: Simulated,
    pub(crate) store: Store,
    pub(crate) background: Background,
    groups: BTreeMap<u64, (Raft<Seeded, State>, Reader)>,
    is_dead: Arc<AtomicBool>,
}

fn config() -> Arc<Config> {
    Arc::new(Config {
        heartbeat_interval: 50,
        election_timeout_min: 200,
        election_timeout_max: 400,
        snapshot_policy: SnapshotPolicy::LogsSinceLast(20),
        max_in_snapshot_log_to_keep: 5,
        purge_batch_size: 1,
        install_snapshot_timeout: 500,
        ..forrest_raft::config()
    })
}

impl Node {
    /// Starts a node on a disk, which may be new.
    ///
    /// # Errors
    /// If the power of the disk is cut meanwhile.
    pub(crate) async fn start(id: u64, disk: Simulated, net: &Net) -> Result<Arc<Node>, String> {
        let builder = Db::builder().pages(Pages::Plain).memtable_bytes(8 << 10).table_bytes(4 << 10);
        let builder = builder.cache_bytes(1 << 16).workers(1);
        let text = |error: forrest::Error| error.to_string();
        let (db, background) = simulated::open_unattended(disk.clone(), &builder).map_err(text)?;
        let store = Store::open_inline(db).map_err(text)?;
        let (mut groups, is_dead) = (BTreeMap::new(), Arc::new(AtomicBool::new(false)));
        for group in GROUPS {
            let (log, state) = store.group(group).map_err(text)?;
            let reader = state.reader();
            let router = Router { net: net.clone(), from: id, is_dead: Arc::clone(&is_dead) };
            let raft = Raft::new(id, config(), Connections { router, group }, log, state).await;
            groups.insert(group, (raft.map_err(|error| error.to_string())?, reader));
        }
        let node = Arc::new(Node { id, disk, store, background, groups, is_dead });
        net.put(Arc::clone(&node));
        Ok(node)
    }

    pub(crate) fn raft(&self, group: u64) -> &Raft<Seeded, State> {
        &self.groups[&group].0
    }

    pub(crate) fn reader(&self, group: u64) -> &Reader {
        &self.groups[&group].1
    }

    /// Ends its tasks. Until they have ended they send, receive and write nothing.
    pub(crate) async fn stop(&self) {
        // ORDERING: one thread runs everything.
        self.is_dead.store(true, Relaxed);
        self.disk.freeze();
        for (raft, _) in self.groups.values() {
            drop(raft.shutdown().await);
        }
    }
}
