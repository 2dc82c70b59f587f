//! [`Waiting`]: clients that wait for a key with an element to take, in the order in which they came.
//!
//! A command such as `BLPOP` that finds nothing to take is kept as a [`Wait`], and its connection executes nothing
//! more. A change of a key makes the key ready if a client waits for it. After the command that made the change, or
//! after its whole transaction, `execute.rs` executes the waiting commands again, those that came first before the
//! others, until the key has nothing left. So an element goes to the client that has waited longest, and to nobody
//! who asks later.

use crate::client::{Shared, Wait};
use crate::keys::Kind;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// The place of a client among those that wait for a key: by type, then by ticket.
type Place = (Kind, u64);
type Key = (usize, Vec<u8>);

/// The clients that wait for one key.
#[derive(Default)]
struct Clients {
    /// The key is among those that are ready.
    is_ready: bool,
    places: BTreeMap<Place, Rc<Shared>>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Waiting {
    keys: HashMap<Key, Clients>,
    /// Keys that have changed. Each is there once as long as a client waits for it.
    ready: Vec<Key>,
    clients: usize,
    last_ticket: u64,
}

impl Waiting {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.clients == 0
    }

    /// The number of clients that wait.
    pub(crate) fn clients(&self) -> usize {
        self.clients
    }

    /// Notes that a key has changed.
    pub(crate) fn touch(&mut self, database: usize, key: &[u8]) {
        let key = (database, key.to_vec());
        if let Some(clients) = self.keys.get_mut(&key)
            && !clients.is_ready
        {
            clients.is_ready = true;
            self.ready.push(key);
        }
    }

    /// Notes that all keys of some databases may have changed.
    pub(crate) fn touch_all(&mut self, touched: impl Fn(usize) -> bool) {
        let keys = self.keys.iter_mut().filter(|(key, clients)| touched(key.0) && !clients.is_ready);
        for (key, clients) in keys {
            clients.is_ready = true;
            self.ready.push(key.clone());
        }
    }

    /// Lets a client wait, at the place that it had if it had one.
    pub(crate) fn park(&mut self, client: &Rc<Shared>, mut wait: Wait) {
        if wait.ticket == 0 {
            self.last_ticket += 1;
            wait.ticket = self.last_ticket;
        }
        for key in &wait.keys {
            let clients = self.keys.entry((wait.database, key.clone())).or_default();
            clients.places.insert((wait.kind, wait.ticket), client.clone());
        }
        self.clients += 1;
        *client.wait.borrow_mut() = Some(wait);
    }

    /// Forgets that a client waits, and returns for what, if it does.
    pub(crate) fn forget(&mut self, client: &Shared) -> Option<Wait> {
        let wait = client.wait.borrow_mut().take()?;
        self.clients -= 1;
        for key in &wait.keys {
            let key = (wait.database, key.clone());
            if let Some(clients) = self.keys.get_mut(&key) {
                clients.places.remove(&(wait.kind, wait.ticket));
                if clients.places.is_empty() {
                    self.keys.remove(&key);
                }
            }
        }
        Some(wait)
    }

    /// True if a key is ready.
    #[inline]
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The keys that are ready, which are so no more.
    pub(crate) fn take_ready(&mut self) -> Vec<Key> {
        let ready = std::mem::take(&mut self.ready);
        for key in &ready {
            if let Some(clients) = self.keys.get_mut(key) {
                clients.is_ready = false;
            }
        }
        ready
    }

    /// The first client after a ticket that waits for a key of a type, and its ticket.
    pub(crate) fn next(&self, key: &Key, kind: Kind, after: u64) -> Option<(u64, Rc<Shared>)> {
        let places = &self.keys.get(key)?.places;
        let (place, client) = places.range((kind, after + 1)..=(kind, u64::MAX)).next()?;
        Some((place.1, client.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(keys: &[&str], kind: Kind) -> Wait {
        Wait {
            ticket: 0,
            database: 0,
            keys: keys.iter().map(|key| key.as_bytes().to_vec()).collect(),
            kind,
            args: Vec::new(),
            is_3: false,
            drops_reply: false,
            deadline: None,
            nothing: b"",
        }
    }

    fn key(name: &str) -> Key {
        (0, name.as_bytes().to_vec())
    }

    #[test]
    fn who_came_first_is_first_and_nobody_is_left() {
        let mut waiting = Waiting::default();
        let clients: Vec<_> = (0..3).map(|id| Shared::new(id, String::new())).collect();
        waiting.park(&clients[0], wait(&["a", "b", "a"], Kind::List));
        waiting.park(&clients[1], wait(&["a"], Kind::SortedSet));
        waiting.park(&clients[2], wait(&["a"], Kind::List));
        assert_eq!(waiting.clients(), 3);
        waiting.touch(0, b"a");
        waiting.touch(0, b"a");
        waiting.touch(1, b"a");
        waiting.touch(0, b"c");
        assert_eq!(waiting.take_ready(), [key("a")]);
        assert!(waiting.take_ready().is_empty());
        let next = |waiting: &Waiting, kind, after| {
            waiting.next(&key("a"), kind, after).map(|(ticket, client)| (ticket, client.id))
        };
        assert_eq!(next(&waiting, Kind::List, 0), Some((1, 0)));
        assert_eq!(next(&waiting, Kind::List, 1), Some((3, 2)));
        assert_eq!(next(&waiting, Kind::List, 3), None);
        assert_eq!(next(&waiting, Kind::SortedSet, 0), Some((2, 1)));

        // One that is kept once more has the place that it had.
        let first = waiting.forget(&clients[0]).expect("it waits");
        assert_eq!(next(&waiting, Kind::List, 0), Some((3, 2)));
        waiting.park(&clients[0], first);
        assert_eq!(next(&waiting, Kind::List, 0), Some((1, 0)));

        waiting.touch_all(|database| database == 0);
        assert_eq!(waiting.take_ready().len(), 2);
        for client in &clients {
            assert!(waiting.forget(client).is_some());
            assert!(waiting.forget(client).is_none());
        }
        assert!(waiting.is_empty() && waiting.keys.is_empty());
    }
}
