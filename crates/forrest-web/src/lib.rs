//! A page in the browser to look at a Forrest store: its keyspaces, ranges of pairs, values, and what it does now.
//!
//! It changes nothing: all requests are GET, and none writes. `forrest web` serves it; a program can, too:
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let db = forrest::Db::open_read_only("/var/lib/forest")?;
//! let web = forrest_web::Web::bind(db, &forrest_web::Options::new())?;
//! println!("{}", web.url());
//! let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! runtime.block_on(web.run(std::future::pending()))?;
//! # Ok(())
//! # }
//! ```
//!
//! # Who can read the store
//!
//! Each user of this machine who has the URL. The server listens on a loopback address only. The URL has a random token
//! of 128 bits, and a request without it gets nothing of the store. The `Host` of a request must be the server's own,
//! so that a page of another site, whose name was made to lead here, is refused. There are no headers that let pages of
//! other sites read responses (CORS), and the page runs no script but its own. Keys and values are shown as text, never
//! as markup. There is no encryption: to look from another machine, use a tunnel, such as `ssh -L`.
//!
//! # Limits
//!
//! 64 connections at once, four reads of the store at once; a request has about 272 KiB, for two keys of the largest
//! size, and 10 seconds; a connection lasts 5 minutes at most. A response has at most 500 pairs, about 1 MiB of keys,
//! the first 256 bytes of each value of a range, and the first 64 KiB of a single value. A range ends after 2 seconds
//! and the pair that it reads then; of values that the logs of a store on disk have, only the beginnings are read.
//!
//! | module | content |
//! |---|---|
//! | server.rs | the listener, its connections, and the page |
//! | guard.rs | which requests are served |
//! | api.rs | what the page asks for, as JSON |

#![forbid(unsafe_code)]

mod api;
mod guard;
mod server;

pub use server::{Options, Web};
