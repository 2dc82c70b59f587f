//! A server that speaks Redis's protocol, in versions 2 and 3, over a Forrest store.
//!
//! Programs use it by the clients that they have: strings, counters, hashes, lists, sets, sorted sets, keys that
//! expire, transactions, and the `SCAN` family; and commands of its own for ranges of keys and snapshots. The store may
//! be in memory, on disk or in the kernel. `docs/guides/redis.md` lists all commands, those that are declined with the
//! reason, and the limits.
//!
//! ```no_run
//! use forrest::{Db, Durability};
//! use forrest_redis::{Options, Server};
//!
//! // The server itself makes changes durable, for many clients at once.
//! let db = Db::builder().durability(Durability::Memory).open("trees")?;
//! let options = Options { listen: vec!["127.0.0.1:6379".parse()?], ..Options::default() };
//! let server = Server::bind(&db, options)?;
//! println!("at {}", server.addresses()[0]);
//! server.run(std::future::pending())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! One thread executes all commands, one after the other, as Redis does. So each command is atomic, and a slow one
//! keeps all clients waiting. On disk, a second thread syncs.
//!
//! # Map
//!
//! From top to bottom; `docs/layers.txt` has the exact order.
//!
//! | module | content |
//! |---|---|
//! | listen.rs | addresses, and new connections |
//! | connection.rs | one connection: buffers, deadlines, turns |
//! | execute.rs | one request: its command, and whether the client may call it |
//! | commands/ | the commands; table.rs lists them |
//! | server.rs | what connections share |
//! | waiting.rs | clients that wait for a key |
//! | durable.rs | syncs for all connections at once |
//! | data.rs | the store, as commands see it |
//! | client.rs, cursors.rs, settings.rs | the state of a connection, of iterations, of the server |
//! | slowlog.rs | the commands that took long |
//! | keys.rs | how typed keys are laid out in one ordered keyspace |
//! | resp.rs, reply.rs | requests and replies |
//! | options.rs | [`Options`], [`Limits`] |
//! | fault.rs, geohash.rs, glob.rs, number.rs | errors, places, patterns, numbers |

#![forbid(unsafe_code)]

mod client;
mod commands;
mod connection;
mod cursors;
mod data;
mod durable;
mod execute;
mod fault;
mod geohash;
mod glob;
mod keys;
mod listen;
mod number;
mod options;
mod reply;
mod resp;
mod server;
mod settings;
mod slowlog;
mod waiting;

pub use listen::Server;
pub use options::{Limits, Options, Sync, Tls};

/// The names of all commands, sorted, in lower case.
pub fn commands() -> impl Iterator<Item = &'static str> {
    commands::table::COMMANDS.iter().map(|command| command.name)
}

/// Commands of Redis that there are not: what their names begin with, and why.
pub fn declined() -> impl Iterator<Item = (&'static str, &'static str)> {
    commands::table::DECLINED.iter().copied()
}
