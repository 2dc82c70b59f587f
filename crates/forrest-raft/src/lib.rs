//! Storage for [openraft](https://docs.rs/openraft) on [Forrest](https://docs.rs/forrest-db): the log, the vote and an
//! ordered state machine, of many groups in one store.
//!
//! ```
//! use forrest::Db;
//! use forrest_raft::Store;
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("node-1");
//! # let path = path.to_str().unwrap();
//! let store = Store::open(Db::open(path)?)?;
//! let (log, state) = store.group(1)?;
//! let reader = state.reader();
//! // let config = Arc::new(forrest_raft::config().validate()?);
//! // let raft = openraft::Raft::<Types, State>::new(1, config, network, log, state).await?;
//! assert_eq!(reader.moment()?.applied(), None);
//! # drop((log, state));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it guarantees
//!
//! - A vote is reported when the device has it, and so are entries. One sync serves all groups that wait.
//! - The log has no holes, after any crash.
//! - Each entry is applied exactly once to the data that remain: effects and number of an entry are one batch.
//! - A snapshot is installed as a whole or not at all, after any crash. Sender and receiver need memory for a chunk of
//!   256 KiB and a pair.
//! - Errors name the group, what failed and why. openraft stops the node on them.
//!
//! Linearizable reads need openraft's setting `enable_leader_restore` off, as in [`config`].
//!
//! What it does not do: elections, replication and membership are openraft's, and the network is the program's.
//!
//! # Versions
//!
//! openraft 0.10 is not released. An alpha may change its traits in any release, so this crate needs one exactly,
//! `=0.10.0-alpha.37`, and so must its users and `openraft-multi`. With 0.10.0 the requirement becomes `0.10`, and
//! stores of this crate stay readable: their bytes are this crate's own (format.rs), not openraft's.
//!
//! # Map
//!
//! | module | content |
//! |---|---|
//! | store.rs | [`Store`]: a Forrest store for many groups |
//! | state.rs | [`State`]: the state machine of a group; [`Reader`] |
//! | log.rs | [`Log`]: the log and the vote of a group |
//! | image.rs | [`Image`], [`Receiver`]: snapshots on their way; [`Moment`]: data to read |
//! | checkpoint.rs | checkpoints, from which snapshots are read |
//! | types.rs | [`Types`], [`Config`], [`config`]: the types that openraft is used with |
//! | group.rs | what the groups of a store share |
//! | format.rs | the stored bytes |
//! | command.rs | [`Command`], [`Response`] |
//! | bytes.rs | bytes that are read from the front |

#![forbid(unsafe_code)]

mod bytes;
mod checkpoint;
mod command;
mod format;
mod group;
mod image;
mod log;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod types;

pub use command::{Command, MAX_COMMAND_BYTES, MAX_COMMAND_OPS, Response};
pub use image::{Chunks, Image, Moment, Receiver};
pub use log::{Log, Reader as LogReader};
pub use state::{Builder, Reader, State};
pub use store::Store;
pub use types::{
    Config, Entry, LeaderId, LogId, Membership, Meta, Payload, StoredMembership, Types, Vote, config,
};

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
