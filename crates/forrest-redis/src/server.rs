//! [`Server`]: what all connections share: the store, the clients, watched keys, cursors and settings.
//!
//! One thread has it. It is borrowed while the requests that a connection has sent are executed, and never while a
//! connection waits.

use crate::client::{Shared, Watched};
use crate::cursors::Cursors;
use crate::data::Data;
use crate::fault::Fault;
use crate::keys::{self, EXPIRY_BYTES};
use crate::options::{Options, Sync};
use crate::settings::Settings;
use crate::slowlog::SlowLog;
use crate::waiting::Waiting;
use forrest::{Capability, Db, Snapshot};
use forrest_base::random::Random;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::io::Write as _;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Keys that a round of expiry removes before it lets clients go on.
const EXPIRED_AT_ONCE: usize = 256;

/// The least time between two warnings.
const WARNINGS_APART: Duration = Duration::from_secs(60);

/// A snapshot that a client has made.
pub(crate) struct Kept {
    pub(crate) snapshot: Snapshot,
    pub(crate) since: Instant,
    /// The slots of the databases then.
    pub(crate) slots: Vec<u8>,
}

/// Counts since the server started, or since they were reset.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) commands: u64,
    pub(crate) connections: u64,
    pub(crate) refused: u64,
    pub(crate) expired: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) ended_for_memory: u64,
    pub(crate) ended_for_time: u64,
    pub(crate) syncs: u64,
}

/// See the module.
pub(crate) struct Server {
    pub(crate) data: Data,
    pub(crate) options: Options,
    pub(crate) settings: Settings,
    pub(crate) clients: BTreeMap<u64, Rc<Shared>>,
    pub(crate) last_client: u64,
    /// Connections that are still to agree on TLS.
    pub(crate) handshakes: usize,
    /// The clients that watch a key of a database.
    watched: HashMap<(usize, Vec<u8>), Vec<Rc<Shared>>>,
    /// The clients that wait for a key.
    pub(crate) waiting: Waiting,
    pub(crate) cursors: Cursors,
    pub(crate) snapshots: BTreeMap<u64, Kept>,
    pub(crate) last_snapshot: u64,
    pub(crate) slow_log: SlowLog,
    /// When the last command ended, or the first of those that have arrived together began.
    lap: Instant,
    /// The time of the request; 0 if nothing has asked for it.
    now_ms: Cell<u64>,
    /// When a request of a web page was last reported.
    warned: Option<Instant>,
    /// It was reported that the disk fails.
    has_warned_of_disk: bool,
    pub(crate) counts: Counts,
    pub(crate) started: Instant,
    /// Chooses members and keys. Not secret.
    pub(crate) random: Random,
    /// Bytes of all buffers of connections.
    pub(crate) buffers_bytes: usize,
    /// Commands that may change something and were executed.
    pub(crate) writes: u64,
    /// Keys are removed when they expire, not only when they are asked for.
    pub(crate) expires_actively: bool,
    /// Changes on disk are made durable.
    pub(crate) is_on_disk: bool,
    /// The bytes that the store takes in memory, looked at from time to time.
    used_bytes: u64,
    pub(crate) port: u16,
    /// `SHUTDOWN` was called.
    pub(crate) stop: Rc<tokio::sync::Notify>,
}

impl Server {
    pub(crate) fn new(db: &Db, options: Options) -> Result<Server, Fault> {
        let is_on_disk = db.capabilities().has(Capability::Sync);
        let mut server = Server {
            data: Data::open(db)?,
            settings: Settings::new(&options),
            options,
            clients: BTreeMap::new(),
            last_client: 0,
            handshakes: 0,
            watched: HashMap::new(),
            waiting: Waiting::default(),
            cursors: Cursors::default(),
            snapshots: BTreeMap::new(),
            last_snapshot: 0,
            slow_log: SlowLog::default(),
            lap: Instant::now(),
            now_ms: Cell::new(0),
            warned: None,
            has_warned_of_disk: false,
            counts: Counts::default(),
            started: Instant::now(),
            random: Random(RandomState::new().hash_one(0)),
            buffers_bytes: 0,
            writes: 0,
            expires_actively: true,
            is_on_disk,
            used_bytes: 0,
            port: 0,
            stop: Rc::default(),
        };
        server.look_at_memory();
        Ok(server)
    }

    /// The time of the request, in milliseconds since 1970: the same to its end, as in Redis, so that a key does not
    /// expire within a command or a transaction. The clock is read only if something asks.
    pub(crate) fn now_ms(&self) -> u64 {
        if self.now_ms.get() == 0 {
            self.now_ms.set(now_ms());
        }
        self.now_ms.get()
    }

    /// Notes that the next request begins.
    pub(crate) fn begin_time(&mut self) {
        self.now_ms.set(0);
    }

    // Watched keys.

    pub(crate) fn watch(&mut self, database: usize, key: &[u8], client: &Rc<Shared>) {
        self.watched.entry((database, key.to_vec())).or_default().push(client.clone());
    }

    pub(crate) fn unwatch(&mut self, watched: &mut Vec<Watched>, client: &Rc<Shared>) {
        for Watched { database, key, .. } in watched.drain(..) {
            let key = (database, key);
            if let Some(clients) = self.watched.get_mut(&key) {
                clients.retain(|other| other.id != client.id);
                if clients.is_empty() {
                    self.watched.remove(&key);
                }
            }
        }
        client.is_dirty.set(false);
    }

    /// The keys of a database that clients watch.
    pub(crate) fn watched_of(&self, database: usize) -> HashSet<Vec<u8>> {
        let keys = self.watched.keys().filter(|(of, _)| *of == database);
        keys.map(|(_, key)| key.clone()).collect()
    }

    /// Notes that a key has changed.
    #[inline]
    pub(crate) fn touch(&mut self, database: usize, key: &[u8]) {
        if !self.watched.is_empty() {
            self.touch_watched(database, key);
        }
        if !self.waiting.is_empty() {
            self.waiting.touch(database, key);
        }
    }

    #[cold]
    fn touch_watched(&mut self, database: usize, key: &[u8]) {
        if let Some(clients) = self.watched.get(&(database, key.to_vec())) {
            clients.iter().for_each(|client| client.is_dirty.set(true));
        }
    }

    /// Notes that all keys of some databases may have changed: those that exist in one of them before.
    pub(crate) fn touch_all(
        &mut self,
        touched: impl Fn(usize) -> bool,
        looks_in: &[usize],
    ) -> Result<(), Fault> {
        self.waiting.touch_all(&touched);
        let now = self.now_ms();
        let keys: Vec<_> = self.watched.keys().filter(|(database, _)| touched(*database)).cloned().collect();
        for (database, key) in keys {
            let looks_in = if looks_in.is_empty() { &[database][..] } else { looks_in };
            for other in looks_in {
                let slot = self.data.slot(*other);
                let found = self.data.find(slot, &key)?;
                if found.is_some_and(|found| !found.record.is_expired(|| now)) {
                    self.touch_watched(database, &key);
                }
            }
        }
        Ok(())
    }

    // Expiry.

    /// Removes some keys that have expired. True if there may be more.
    pub(crate) fn expire_some(&mut self) -> Result<bool, Fault> {
        self.begin_time();
        let now = self.now_ms();
        let mut has_more = false;
        for database in 0..self.settings.databases {
            let slot = self.data.slot(database);
            let (start, end) = (keys::expiry(slot, 0, b""), keys::expiry(slot, now + 1, b""));
            let mut due: Vec<(u64, Vec<u8>)> = Vec::new();
            self.data.scan((&start, &end), false, |key, _| {
                let (head, key) = key.split_at(EXPIRY_BYTES);
                let time = keys::take(&mut &head[2..]).unwrap_or(0);
                due.push((time, key.to_vec()));
                if due.len() < EXPIRED_AT_ONCE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            has_more |= due.len() == EXPIRED_AT_ONCE;
            for (time, key) in due {
                match self.data.find(slot, &key)? {
                    Some(found) if found.record.expires == time => {
                        self.data.delete(slot, &key, &found.record)?;
                        self.counts.expired += 1;
                        self.touch(database, &key);
                    }
                    // The entry is of a key that has changed since; a crash cannot leave one.
                    _ => self.data.remove(&keys::expiry(slot, time, &key))?,
                }
            }
            self.data.commit()?;
        }
        Ok(has_more)
    }

    // Limits.

    /// Looks at the memory that the store takes, which takes some microseconds.
    pub(crate) fn look_at_memory(&mut self) {
        if let Ok(stats) = self.data.db().stats() {
            self.used_bytes = stats.node_bytes + stats.value_bytes_outside;
        }
    }

    pub(crate) fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    /// True if commands that take memory are refused.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.settings.memory_bytes_max > 0 && self.used_bytes > self.settings.memory_bytes_max
    }

    /// Counts the buffers of a connection, and ends the one with the largest if all are too large.
    pub(crate) fn count_memory(&mut self, client: &Shared, bytes: usize) {
        let before = client.memory_bytes.replace(bytes);
        self.buffers_bytes = self.buffers_bytes + bytes - before;
        if self.buffers_bytes <= self.options.limits.buffers_bytes || bytes <= before {
            return;
        }
        // Those that were ended before give their buffers back when their tasks run.
        let going_on = || self.clients.values().filter(|client| !client.is_ended.get());
        let held: usize = going_on().map(|client| client.memory_bytes.get()).sum();
        let largest = going_on().max_by_key(|client| client.memory_bytes.get()).cloned();
        if let Some(largest) = largest.filter(|_| held > self.options.limits.buffers_bytes) {
            self.end(&largest);
            self.counts.ended_for_memory += 1;
        }
    }

    /// Ends a connection. From here on nothing is served to it.
    pub(crate) fn end(&mut self, client: &Shared) {
        self.waiting.forget(client);
        client.end();
    }

    // Slow commands.

    /// Notes when the next command begins.
    pub(crate) fn begin_lap(&mut self, now: Instant) {
        self.lap = now;
    }

    /// Notes that a command is over and the next one begins, by one look at the clock. Returns how many microseconds it
    /// took if it is to be logged for that. What waits for a sync or for the client is not part of it.
    #[inline]
    pub(crate) fn slow_lap(&mut self) -> Option<u64> {
        let limit = self.settings.slow_micros?;
        let now = Instant::now();
        let time = now.duration_since(self.lap);
        self.lap = now;
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        (micros >= limit).then_some(micros)
    }

    /// Reports a request of a web page on standard error, once in a while.
    pub(crate) fn warn_of_page(&mut self, address: &str) {
        if self.warned.is_none_or(|last| last.elapsed() >= WARNINGS_APART) {
            self.warned = Some(Instant::now());
            // A server whose standard error is closed goes on.
            let _ = writeln!(
                std::io::stderr().lock(),
                "warning: {address} sent HTTP, perhaps for a web page that tries to run commands; its connection was \
                 closed"
            );
        }
    }

    /// Reports on standard error, once, that changes were not made durable.
    pub(crate) fn warn_of_disk(&mut self, why: &str) {
        if !std::mem::replace(&mut self.has_warned_of_disk, true) {
            // A server whose standard error is closed goes on.
            let _ = writeln!(
                std::io::stderr().lock(),
                "warning: changes were not made durable, and are refused from now on: {why}; mend the disk, or free \
                 space on it, and start the server again"
            );
        }
    }

    /// Drops snapshots that are too old.
    pub(crate) fn drop_snapshots(&mut self) {
        let age = self.options.limits.snapshot_age;
        self.snapshots.retain(|_, kept| kept.since.elapsed() < age);
    }

    /// How durable replies have to be.
    pub(crate) fn sync(&self) -> Sync {
        self.settings.sync
    }
}

/// The time now, in milliseconds since 1970. Commands use that of their [request](Server::now_ms).
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Wait;
    use crate::keys::Kind;
    use crate::options::Limits;

    fn server(buffers_bytes: usize, clients: u64) -> (Server, Vec<Rc<Shared>>) {
        let limits = Limits { buffers_bytes, ..Limits::default() };
        let options = Options { limits, ..Options::default() };
        let mut server = Server::new(&Db::open("memory:").unwrap(), options).unwrap();
        let clients: Vec<_> = (1..=clients).map(|id| Shared::new(id, String::new())).collect();
        clients.iter().for_each(|client| drop(server.clients.insert(client.id, client.clone())));
        (server, clients)
    }

    #[test]
    fn the_largest_that_was_not_ended_is_ended() {
        let (mut server, clients) = server(100, 3);
        let ended =
            |clients: &[Rc<Shared>]| clients.iter().map(|client| client.is_ended.get()).collect::<Vec<_>>();
        server.count_memory(&clients[0], 150);
        assert_eq!(ended(&clients), [true, false, false]);
        // Those that go on have little.
        server.count_memory(&clients[1], 60);
        server.count_memory(&clients[2], 40);
        assert_eq!(ended(&clients), [true, false, false]);
        server.count_memory(&clients[2], 41);
        assert_eq!(ended(&clients), [true, true, false]);
        assert_eq!(server.counts.ended_for_memory, 2);
    }

    #[test]
    fn one_that_is_ended_for_its_memory_waits_no_more() {
        let (mut server, clients) = server(100, 1);
        let wait = Wait {
            ticket: 0,
            database: 0,
            keys: vec![b"q".to_vec()],
            kind: Kind::List,
            args: Vec::new(),
            is_3: false,
            drops_reply: false,
            deadline: None,
            nothing: b"",
        };
        server.waiting.park(&clients[0], wait);
        server.count_memory(&clients[0], 101);
        assert!(server.waiting.is_empty());
    }
}
