//! Three and five nodes in one thread, with a clock that leaps over waits: their disks lose power at any I/O, their
//! processes are killed, their network delays, loses and is cut, and their membership changes. Whatever happens, what
//! clients saw must be linearizable, and in the end all nodes agree.
//!
//! Each node has two groups, each with a range of keys, in one store, over openraft-multi. The random numbers of
//! openraft, the network, the disks and the clients follow from a seed, which is printed. Tokio's channels wake their
//! waiters in an order of their own, so a seed repeats a run only nearly.

mod client;
mod net;
mod node;

use crate::history;
use client::{Client, Shared};
use forrest::simulated::Simulated;
use forrest_base::random::Random;
use forrest_raft::{Command, Response, Types};
use forrest_testing::{number, sized};
use net::Net;
use node::Node;
use openraft::rt::deterministic_rng::DeterministicRng;
use openraft::{BasicNode, RaftTypeConfig};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

type Tokio = <Types as RaftTypeConfig>::AsyncRuntime;

openraft::declare_raft_types!(
    /// The types of this crate, with random numbers from a seed.
    pub(crate) Seeded:
        D = Command,
        R = Response,
        AsyncRuntime = DeterministicRng<Tokio>,
);

/// The groups: keys from "a" on, and from "n" on.
const GROUPS: [u64; 2] = [1, 2];

/// What happens to the nodes.
struct Nemesis {
    net: Net,
    nodes: u64,
    random: Random,
    /// The disks of nodes that are down.
    down: BTreeMap<u64, Simulated>,
    counts: BTreeMap<&'static str, u64>,
}

impl Nemesis {
    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    async fn wait(&mut self, least: u64, most: u64) {
        tokio::time::sleep(Duration::from_millis(least + self.random.below(most - least))).await;
    }

    async fn strike(&mut self) {
        match self.random.below(8) {
            0 => self.part(),
            1 => self.isolate_the_leader(),
            2 => self.block_one_way(),
            3 => self.crash(true).await,
            4 => self.crash(false).await,
            5 => self.crash_all().await,
            _ => self.change_membership().await,
        }
        self.wait(200, 1200).await;
        self.mend().await;
        self.wait(100, 800).await;
    }

    /// Cuts the network into two parts.
    fn part(&mut self) {
        self.count("partitions");
        let side: BTreeSet<u64> = (1..=self.nodes).filter(|_| self.random.below(2) == 0).collect();
        for (from, to) in self.pairs() {
            if side.contains(&from) != side.contains(&to) {
                self.net.block(from, to);
            }
        }
    }

    fn isolate_the_leader(&mut self) {
        self.count("isolated leaders");
        let leader = self.net.nodes().iter().find(|node| node.raft(1).is_leader()).map_or(1, |node| node.id);
        for (from, to) in self.pairs() {
            if from == leader || to == leader {
                self.net.block(from, to);
            }
        }
    }

    fn block_one_way(&mut self) {
        self.count("one-way partitions");
        let from = 1 + self.random.below(self.nodes);
        (1..=self.nodes).for_each(|to| self.net.block(from, to));
    }

    fn pairs(&self) -> Vec<(u64, u64)> {
        let all = 1..=self.nodes;
        all.clone().flat_map(|from| all.clone().map(move |to| (from, to))).collect()
    }

    /// Ends a process, or cuts its power at one of the next I/Os.
    async fn crash(&mut self, with_power: bool) {
        let id = 1 + self.random.below(self.nodes);
        let Some(node) = self.net.node(id) else { return };
        if with_power {
            let at = node.disk.ios() + self.random.below(40);
            node.disk.cut_power_at(at);
            for _ in 0..100 {
                if node.disk.is_cut() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        self.stop(id, with_power).await;
    }

    async fn stop(&mut self, id: u64, with_power: bool) {
        let Some(node) = self.net.take(id) else { return };
        self.count(if with_power { "power cuts" } else { "kills" });
        let seed = self.random.next();
        let disk = if with_power {
            let mut states: Vec<Simulated> = node.disk.crash_states(2, seed).collect();
            states.swap_remove(self.random.index(states.len()))
        } else {
            node.disk.kill()
        };
        node.stop().await;
        self.down.insert(id, disk);
    }

    /// The power of all nodes at once.
    async fn crash_all(&mut self) {
        for id in 1..=self.nodes {
            self.stop(id, true).await;
        }
    }

    async fn change_membership(&mut self) {
        let most = self.nodes;
        let mut voters: Vec<u64> = (1..=most).collect();
        self.random.shuffle(&mut voters);
        voters.truncate((3 + self.random.index(voters.len() - 2)).min(voters.len()));
        for group in GROUPS {
            let leader = self.net.nodes().into_iter().find(|node| node.raft(group).is_leader());
            let Some(leader) = leader else { continue };
            for id in &voters {
                let added = leader.raft(group).add_learner(*id, BasicNode::new(id), false);
                drop(tokio::time::timeout(Duration::from_millis(500), added).await);
            }
            let voters: BTreeSet<u64> = voters.iter().copied().collect();
            let changed = leader.raft(group).change_membership(voters, true);
            if let Ok(Ok(_)) = tokio::time::timeout(Duration::from_secs(2), changed).await {
                self.count("changes of membership");
            }
        }
    }

    /// Starts what is down, and heals the network.
    async fn mend(&mut self) {
        self.net.heal();
        while let Some((id, disk)) = self.down.pop_first() {
            Node::start(id, disk, &self.net).await.expect("it starts again after a crash");
        }
    }
}

/// Does the background work of all nodes until it is dropped.
async fn work_in_the_background(net: Net) {
    loop {
        for node in net.nodes() {
            if !node.disk.is_cut() {
                // A cut may strike here too.
                drop(node.background.step());
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until something holds, for at most a minute of the simulated clock.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}: not within a minute");
}

async fn simulate(seed: u64, nodes: u64, rounds: u64) {
    let net = Net::new(seed ^ 1);
    for id in 1..=nodes {
        Node::start(id, Simulated::new(), &net).await.expect("a new node");
    }
    let background = tokio::spawn(work_in_the_background(net.clone()));
    let members: BTreeMap<u64, BasicNode> = (1..=nodes).map(|id| (id, BasicNode::new(id))).collect();
    for group in GROUPS {
        let first = net.node(1).expect("it runs");
        first.raft(group).initialize(members.clone()).await.expect("it is new");
    }
    let shared = Arc::new(Shared::default());
    let mut clients = Vec::new();
    for id in 1..=6 {
        let group = GROUPS[id as usize % 2];
        let client = Client::new(id, group, nodes, &net, &shared, seed * 100 + id);
        clients.push(tokio::spawn(client.run()));
    }
    let (down, counts) = Default::default();
    let mut nemesis = Nemesis { net: net.clone(), nodes, random: Random(seed ^ 2), down, counts };
    for _ in 0..rounds {
        nemesis.strike().await;
    }
    shared.is_over.store(true, Relaxed);
    for client in clients {
        let done = tokio::time::timeout(Duration::from_secs(60), client).await;
        done.expect("each client gets its response").expect("no client panics");
    }
    agree(&net, nodes).await;
    background.abort();
    let repeated = shared.repeated.load(Relaxed);
    for (group, records) in &*shared.histories.lock().expect("no panic") {
        history::export(&format!("raft-{nodes}-{seed}-{group}"), records);
        assert!(history::is_linearizable(records), "seed {seed}, {nodes} nodes, group {group}: {records:#?}");
        println!("seed {seed}, {nodes} nodes, group {group}: {} calls", records.len());
        assert!(records.len() > 20, "seed {seed}: {} calls", records.len());
    }
    println!("seed {seed}: {:?}, {repeated} repetitions", nemesis.counts);
}

/// All members come to have the same data, and every store is intact.
async fn agree(net: &Net, nodes: u64) {
    for group in GROUPS {
        let members: BTreeSet<u64> = (1..=nodes).collect();
        until("all nodes are members", || net.nodes().iter().any(|node| node.raft(group).is_leader())).await;
        // Everybody is a member again.
        for _ in 0..100 {
            let leader = net.nodes().into_iter().find(|node| node.raft(group).is_leader());
            if let Some(leader) = leader {
                let raft = leader.raft(group);
                let changed = raft.change_membership(members.clone(), true);
                if let Ok(Ok(_)) = tokio::time::timeout(Duration::from_secs(2), changed).await {
                    break;
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let content = |node: &Node| {
            let moment = node.reader(group).moment().expect("it can be read");
            let pairs = moment.range(..).map(|pair| pair.expect("it can be read"));
            let pairs: Vec<_> =
                pairs.map(|pair| (pair.key().to_vec(), pair.value_bytes().expect("read").to_vec())).collect();
            (moment.applied(), pairs)
        };
        until("all nodes agree", || {
            let all: Vec<_> = net.nodes().iter().map(|node| content(node)).collect();
            all.len() as u64 == nodes && all.windows(2).all(|two| two[0] == two[1])
        })
        .await;
    }
    for node in net.nodes() {
        node.store.db().verify().expect("it is intact");
        node.stop().await;
    }
}

/// Runs simulations with a clock that leaps.
fn run(nodes: u64, seeds: std::ops::Range<u64>, rounds: u64) {
    let seeds = number("FORREST_RAFT_SEED").map_or(seeds, |seed| seed..seed + 1);
    for seed in seeds {
        let work: std::pin::Pin<Box<dyn Future<Output = ()>>> = Box::pin(simulate(seed, nodes, rounds));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        println!("FORREST_RAFT_SEED={seed}, {nodes} nodes");
        runtime.expect("a runtime").block_on(DeterministicRng::<Tokio>::scope(seed, work));
    }
}

#[test]
fn three_nodes() {
    run(3, 0..sized(2, 4), sized(6, 10));
}

#[test]
fn five_nodes() {
    run(5, 100..sized(101, 103), sized(6, 10));
}
