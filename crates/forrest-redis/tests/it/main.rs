//! A server in this process, and clients that speak to it over sockets.
//!
//! | module | content |
//! |---|---|
//! | harness.rs | the server, and a client |
//! | bits.rs | bits of strings |
//! | blocking.rs | commands that wait for a key |
//! | commands.rs | commands of every type, in both versions of the protocol |
//! | durability.rs | stores on disk: what survives, and one sync for many clients |
//! | hostile.rs | clients that send halves, claim much, read slowly, or are too many |
//! | listening.rs | addresses, passwords, Unix sockets |
//! | geo.rs | places |
//! | slow.rs | the log of slow commands |
//! | transactions.rs | transactions |
//! | guide.rs | the guide's table of commands |
#![forbid(unsafe_code)]

mod bits;
mod blocking;
mod commands;
mod durability;
mod geo;
mod guide;
mod harness;
mod hostile;
mod listening;
mod slow;
mod transactions;
