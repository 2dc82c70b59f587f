//! The types that openraft is used with.

use crate::command::{Command, Response};
use openraft::{BasicNode, RaftTypeConfig};

openraft::declare_raft_types!(
    /// openraft's configuration, with Tokio as the runtime.
    pub Types:
        D = Command,
        R = Response,
);

/// The id of a leader: a term and a node.
pub type LeaderId = openraft::impls::leader_id_adv::LeaderId<u64, u64>;
/// The id of an entry: the leader that made it, and its index in the log.
pub type LogId = openraft::LogId<LeaderId>;
/// A vote.
pub type Vote = openraft::vote::Vote<LeaderId>;
/// The nodes of a group, with their addresses.
pub type Membership = openraft::Membership<u64, BasicNode>;
/// A membership with the entry that has it.
pub type StoredMembership = openraft::StoredMembership<LeaderId, u64, BasicNode>;
/// What an entry has.
pub type Payload = openraft::EntryPayload<Command, u64, BasicNode>;
/// An entry of the log.
pub type Entry = openraft::Entry<LeaderId, Payload>;
/// What a snapshot says of itself.
pub type Meta = openraft::SnapshotMeta<LeaderId, u64, BasicNode>;

/// openraft's settings, as this storage needs them. Change what you like, except `enable_leader_restore`, which is off.
///
/// `install_snapshot_timeout` is 10 seconds. openraft's default is 200 ms, and each try that takes longer begins anew.
/// The network of the program decides what the time is for: let it be one chunk and the installation, and not the
/// whole snapshot, which may take any time.
///
/// With `enable_leader_restore`, a leader that is started again goes on as leader without an election. This storage
/// syncs the log, and not the number of the entry that is known to be committed, nor the data, which follow from the
/// log. So after a power cut such a leader could have data that are older than what it has shown before, and its
/// linearizable reads would return them. A new election finds out what is committed first.
///
/// ```
/// let config = openraft::Config { heartbeat_interval: 100, ..forrest_raft::config() };
/// assert_eq!(config.validate()?.enable_leader_restore, Some(false));
/// # Ok::<(), openraft::ConfigError>(())
/// ```
pub fn config() -> openraft::Config {
    openraft::Config {
        enable_leader_restore: Some(false),
        install_snapshot_timeout: 10_000,
        ..openraft::Config::default()
    }
}

/// Any configuration of openraft with the types of this crate. The runtime, the responders and the batches are free:
/// [`Types`] has Tokio, and a test may have a runtime with a seed.
pub trait Config:
    RaftTypeConfig<
        D = Command,
        R = Response,
        NodeId = u64,
        Node = BasicNode,
        Term = u64,
        LeaderId = LeaderId,
        Vote = Vote,
        Payload = Payload,
        Entry = Entry,
    >
{
}

impl<C> Config for C where
    C: RaftTypeConfig<
            D = Command,
            R = Response,
            NodeId = u64,
            Node = BasicNode,
            Term = u64,
            LeaderId = LeaderId,
            Vote = Vote,
            Payload = Payload,
            Entry = Entry,
        >
{
}
