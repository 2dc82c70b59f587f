//! The stored bytes: keys, log ids, votes, memberships and entries. Numbers are big endian, so that they sort.
//!
//! All groups of a store share the keyspaces [`LOG`], [`META`] and [`SESSIONS`]. Each group has a keyspace of its own
//! for its data, `raft.data.GROUP.GENERATION`, both in 16 hexadecimal digits, with the keys and values of its users as
//! they are.
//!
//! | keyspace | key | value |
//! |---|---|---|
//! | `raft.log` | group (8), index (8) | an entry |
//! | `raft.meta` | `format` | the version of this format (4) |
//! | `raft.meta` | group (8), 1 | the vote: term (8), node (8), committed (1) |
//! | `raft.meta` | group (8), 2 | the log id up to which the log is purged |
//! | `raft.meta` | group (8), 3 | the log id that was last known to be committed |
//! | `raft.meta` | group (8), 4 | generation of the data (8), log id of the last entry applied, if any |
//! | `raft.meta` | group (8), 5 | the membership last applied: 0, or 1 and its log id; the membership |
//! | `raft.sessions` | group (8), generation (8), client (8) | serial number (8), response |
//!
//! A log id is term (8), node (8), index (8). An entry is its kind (1), term (8), node (8), and what its kind has:
//! nothing if it is blank (0), a command (1; see command.rs), or a membership (2). A membership is the number of
//! configurations (4), each as the number of nodes (4) and their ids (8); the number of nodes (4), each as its id (8),
//! the length of its address (4) and the address.
//!
//! Bytes that are not of these forms give `Corrupt`; the store's checksums have found other damage before.

use crate::bytes::{Bytes, corrupt};
use crate::command::{Command, Response};
use crate::types::{Entry, LeaderId, LogId, Membership, Payload, StoredMembership, Vote};
use forrest::{Result, Value};
use openraft::BasicNode;
use std::collections::{BTreeMap, BTreeSet};

/// The version of this format.
pub(crate) const VERSION: u32 = 1;
/// Keyspaces that all groups share.
pub(crate) const LOG: &str = "raft.log";
pub(crate) const META: &str = "raft.meta";
pub(crate) const SESSIONS: &str = "raft.sessions";
/// Begins the names of the keyspaces with data.
const DATA: &str = "raft.data.";
/// The key of the version.
pub(crate) const FORMAT: &[u8] = b"format";

/// What `raft.meta` has of a group.
#[derive(Clone, Copy)]
pub(crate) enum Field {
    Vote = 1,
    Purged = 2,
    Committed = 3,
    Applied = 4,
    Membership = 5,
}

/// Bytes of an entry before its payload.
const HEADER: usize = 17;
const BLANK: u8 = 0;
const NORMAL: u8 = 1;
const MEMBERSHIP: u8 = 2;

/// The key of an entry.
pub(crate) fn entry_key(group: u64, index: u64) -> [u8; 16] {
    pair(group, index)
}

/// The index in such a key.
pub(crate) fn index_of(key: &[u8]) -> Result<u64> {
    let index = key.get(8..16).filter(|_| key.len() == 16);
    index
        .map(|bytes| u64::from_be_bytes(bytes.try_into().expect("8 bytes")))
        .ok_or_else(|| corrupt(format!("a key of the log has {} bytes, and not 16", key.len())))
}

/// The key of a field of a group.
pub(crate) fn meta_key(group: u64, field: Field) -> [u8; 9] {
    let mut key = [field as u8; 9];
    key[..8].copy_from_slice(&group.to_be_bytes());
    key
}

/// The first key of the sessions of a generation.
pub(crate) fn sessions_key(group: u64, generation: u64) -> [u8; 16] {
    pair(group, generation)
}

/// The key of a session.
pub(crate) fn session_key(group: u64, generation: u64, client: u64) -> [u8; 24] {
    let mut key = [0; 24];
    key[..16].copy_from_slice(&pair(group, generation));
    key[16..].copy_from_slice(&client.to_be_bytes());
    key
}

/// The generation and the client in such a key.
pub(crate) fn session_of(key: &[u8]) -> Result<(u64, u64)> {
    let mut rest = Bytes(key);
    let _group = rest.u64()?;
    let both = (rest.u64()?, rest.u64()?);
    rest.end()?;
    Ok(both)
}

/// The value of a session: the client's last serial number, and the response to it.
pub(crate) fn session_bytes(serial: u64, response: &Response) -> Vec<u8> {
    let mut bytes = serial.to_be_bytes().to_vec();
    response.put(&mut bytes);
    bytes
}

pub(crate) fn session_value_of(bytes: &[u8]) -> Result<(u64, Response)> {
    let mut rest = Bytes(bytes);
    Ok((rest.u64()?, Response::of(rest.0)?))
}

fn pair(first: u64, second: u64) -> [u8; 16] {
    ((u128::from(first) << 64) | u128::from(second)).to_be_bytes()
}

/// The name of the keyspace with the data of a group.
pub(crate) fn data_name(group: u64, generation: u64) -> String {
    format!("{DATA}{group:016x}.{generation:016x}")
}

/// The group and the generation in such a name; `None` for any other name.
pub(crate) fn data_of(name: &str) -> Option<(u64, u64)> {
    let (group, generation) = name.strip_prefix(DATA)?.split_once('.')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let both = (number(group)?, number(generation)?);
    (data_name(both.0, both.1) == name).then_some(both)
}

pub(crate) fn put_log_id(bytes: &mut Vec<u8>, id: &LogId) {
    bytes.extend_from_slice(&id.leader_id.term.to_be_bytes());
    bytes.extend_from_slice(&id.leader_id.node_id.to_be_bytes());
    bytes.extend_from_slice(&id.index.to_be_bytes());
}

pub(crate) fn log_id_bytes(id: &LogId) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(24);
    put_log_id(&mut bytes, id);
    bytes
}

pub(crate) fn log_id_of(bytes: &[u8]) -> Result<LogId> {
    let mut rest = Bytes(bytes);
    let id = rest.log_id()?;
    rest.end()?;
    Ok(id)
}

pub(crate) fn vote_bytes(vote: &Vote) -> Vec<u8> {
    let LeaderId { term, node_id } = vote.leader_id;
    let mut bytes = [term.to_be_bytes(), node_id.to_be_bytes()].concat();
    bytes.push(u8::from(vote.committed));
    bytes
}

pub(crate) fn vote_of(bytes: &[u8]) -> Result<Vote> {
    let mut rest = Bytes(bytes);
    let leader_id = rest.leader_id()?;
    let committed = rest.flag()?;
    rest.end()?;
    Ok(Vote { leader_id, committed })
}

/// The generation of a group's data, and the entry that was last applied to it.
pub(crate) fn applied_bytes(generation: u64, applied: Option<&LogId>) -> Vec<u8> {
    let mut bytes = generation.to_be_bytes().to_vec();
    applied.into_iter().for_each(|id| put_log_id(&mut bytes, id));
    bytes
}

pub(crate) fn applied_of(bytes: &[u8]) -> Result<(u64, Option<LogId>)> {
    let mut rest = Bytes(bytes);
    let generation = rest.u64()?;
    let applied = if rest.0.is_empty() { None } else { Some(rest.log_id()?) };
    rest.end()?;
    Ok((generation, applied))
}

pub(crate) fn stored_membership_bytes(stored: &StoredMembership) -> Vec<u8> {
    let mut bytes = vec![u8::from(stored.log_id().is_some())];
    stored.log_id().iter().for_each(|id| put_log_id(&mut bytes, id));
    put_membership(&mut bytes, stored.membership());
    bytes
}

pub(crate) fn stored_membership_of(bytes: &[u8]) -> Result<StoredMembership> {
    let mut rest = Bytes(bytes);
    let id = if rest.flag()? { Some(rest.log_id()?) } else { None };
    let membership = rest.membership()?;
    rest.end()?;
    Ok(StoredMembership::new(id, membership))
}

fn put_membership(bytes: &mut Vec<u8>, membership: &Membership) {
    let put_count = |bytes: &mut Vec<u8>, count: usize| {
        bytes.extend_from_slice(&u32::try_from(count).expect("fewer than 2^32 nodes").to_be_bytes());
    };
    put_count(bytes, membership.get_joint_config().len());
    for config in membership.get_joint_config() {
        put_count(bytes, config.len());
        config.iter().for_each(|id| bytes.extend_from_slice(&id.to_be_bytes()));
    }
    put_count(bytes, membership.nodes().count());
    for (id, node) in membership.nodes() {
        bytes.extend_from_slice(&id.to_be_bytes());
        put_count(bytes, node.addr.len());
        bytes.extend_from_slice(node.addr.as_bytes());
    }
}

/// The value of an entry.
pub(crate) fn put_entry(bytes: &mut Vec<u8>, entry: &Entry) {
    let kind = match &entry.payload {
        Payload::Blank => BLANK,
        Payload::Normal(_) => NORMAL,
        Payload::Membership(_) => MEMBERSHIP,
    };
    bytes.push(kind);
    bytes.extend_from_slice(&entry.log_id.leader_id.term.to_be_bytes());
    bytes.extend_from_slice(&entry.log_id.leader_id.node_id.to_be_bytes());
    match &entry.payload {
        Payload::Blank => {}
        Payload::Normal(command) => bytes.extend_from_slice(command.as_bytes()),
        Payload::Membership(membership) => put_membership(bytes, membership),
    }
}

/// An entry from its value. A command shares the value's memory.
pub(crate) fn entry_of(index: u64, value: Value) -> Result<Entry> {
    let mut rest = Bytes(&value);
    let kind = rest.u8()?;
    let log_id = LogId { leader_id: rest.leader_id()?, index };
    let payload = match kind {
        BLANK => {
            rest.end()?;
            Payload::Blank
        }
        MEMBERSHIP => {
            let membership = rest.membership()?;
            rest.end()?;
            Payload::Membership(membership)
        }
        NORMAL => Payload::Normal(Command::in_value(value, HEADER)),
        other => return Err(corrupt(format!("entry {index} of the log is of the unknown kind {other}"))),
    };
    Ok(Entry { log_id, payload })
}

/// The log id of an entry, from its value.
pub(crate) fn entry_id_of(index: u64, value: &[u8]) -> Result<LogId> {
    let mut rest = Bytes(value);
    rest.u8()?;
    Ok(LogId { leader_id: rest.leader_id()?, index })
}

/// What is made of several numbers.
impl Bytes<'_> {
    fn leader_id(&mut self) -> Result<LeaderId> {
        Ok(LeaderId { term: self.u64()?, node_id: self.u64()? })
    }

    pub(crate) fn log_id(&mut self) -> Result<LogId> {
        Ok(LogId { leader_id: self.leader_id()?, index: self.u64()? })
    }

    fn membership(&mut self) -> Result<Membership> {
        let mut configs = Vec::new();
        for _ in 0..self.u32()? {
            let mut config = BTreeSet::new();
            for _ in 0..self.u32()? {
                config.insert(self.u64()?);
            }
            configs.push(config);
        }
        let mut nodes = BTreeMap::new();
        for _ in 0..self.u32()? {
            let id = self.u64()?;
            let addr = String::from_utf8(self.part()?.to_vec())
                .map_err(|error| corrupt(format!("the address of node {id}: {error}")))?;
            nodes.insert(id, BasicNode { addr });
        }
        if configs.is_empty() && nodes.is_empty() {
            return Ok(Membership::default());
        }
        Membership::new(configs, nodes).map_err(|error| corrupt(format!("a membership: {error}")))
    }
}
