//! The commands, by the type of key that they are for, and what they share.

pub(crate) mod bitfield;
pub(crate) mod bits;
pub(crate) mod blocking;
pub(crate) mod connection;
pub(crate) mod debug;
pub(crate) mod geo;
pub(crate) mod hashes;
pub(crate) mod info;
pub(crate) mod keyspace;
pub(crate) mod lcs;
pub(crate) mod lists;
pub(crate) mod members;
pub(crate) mod multi;
pub(crate) mod ranges;
pub(crate) mod scan;
pub(crate) mod scored;
pub(crate) mod server;
pub(crate) mod sets;
pub(crate) mod slow;
pub(crate) mod strings;
pub(crate) mod table;
pub(crate) mod zsets;

use crate::client::Client;
use crate::data::Found;
use crate::fault::{Done, Fault, NOT_FLOAT, NOT_INTEGER, WRONG_TYPE};
use crate::keys::{Kind, Record};
use crate::number;
use crate::reply::Reply;
use crate::server::{Server, now_ms};
use crate::slowlog;

/// The version of Redis whose commands these are. Clients choose features by it.
pub(crate) const VERSION: &str = "7.2.4";

/// It changes keys.
pub(crate) const WRITE: u8 = 1;
/// It reads keys.
pub(crate) const READ: u8 = 2;
/// It may take memory, so that it is refused above `maxmemory`.
pub(crate) const GROWS: u8 = 4;
/// It is called before the password is given.
pub(crate) const NO_AUTH: u8 = 8;
/// It is executed within `MULTI`, not queued.
pub(crate) const AT_ONCE: u8 = 16;
/// It looks at or changes the server.
pub(crate) const ADMIN: u8 = 32;
/// It is refused within `MULTI`.
pub(crate) const NEVER_QUEUED: u8 = 64;

/// What executes a command: it gets the arguments with the name, and writes the reply.
pub(crate) type Run = fn(&mut Context, &[&[u8]]) -> Done;

/// A command.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// How many arguments it takes with its name; if negative, at least that many.
    pub(crate) arity: i8,
    pub(crate) flags: u8,
    /// The first and last argument that is a key, and the step between them.
    pub(crate) keys: (i8, i8, i8),
    pub(crate) group: &'static str,
    pub(crate) run: Run,
}

impl Command {
    #[inline]
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    #[inline]
    pub(crate) fn takes(&self, args: usize) -> bool {
        let least = usize::from(self.arity.unsigned_abs());
        if self.arity < 0 { args >= least } else { args == least }
    }

    /// The names that Redis has for its properties.
    pub(crate) fn flag_names(&self) -> impl Iterator<Item = &'static str> {
        let names = [
            (WRITE, "write"),
            (READ, "readonly"),
            (GROWS, "denyoom"),
            (NO_AUTH, "no_auth"),
            (ADMIN, "admin"),
        ];
        names.into_iter().filter(|(flag, _)| self.has(*flag)).map(|(_, name)| name)
    }

    /// The keys of a request.
    pub(crate) fn keys_of<'a>(&self, args: &[&'a [u8]]) -> Vec<&'a [u8]> {
        let (first, last, step) = self.keys;
        let Ok(first) = usize::try_from(first) else { return Vec::new() };
        let last =
            if last < 0 { args.len().saturating_sub(last.unsigned_abs().into()) } else { last as usize };
        if first == 0 || step < 1 {
            return Vec::new();
        }
        (first..=last).step_by(step as usize).filter_map(|at| args.get(at).copied()).collect()
    }
}

pub(crate) const fn command(
    name: &'static str,
    arity: i8,
    flags: u8,
    keys: (i8, i8, i8),
    group: &'static str,
    run: Run,
) -> Command {
    Command { name, arity, flags, keys, group, run }
}

/// What a command works with.
pub(crate) struct Context<'a, 'o> {
    pub(crate) server: &'a mut Server,
    pub(crate) client: &'a mut Client,
    /// All commands, sorted by name.
    pub(crate) commands: &'static [Command],
    pub(crate) reply: Reply<'o>,
}

impl Context<'_, '_> {
    /// The slot of the client's database.
    #[inline]
    pub(crate) fn slot(&self) -> u8 {
        self.server.data.slot(self.client.database)
    }

    /// A key that exists. One that has expired is removed.
    #[inline]
    pub(crate) fn find(&mut self, key: &[u8]) -> Result<Option<Found>, Fault> {
        self.find_in(self.client.database, key)
    }

    pub(crate) fn find_in(&mut self, database: usize, key: &[u8]) -> Result<Option<Found>, Fault> {
        let slot = self.server.data.slot(database);
        match self.server.data.find(slot, key)? {
            Some(found) if found.record.is_expired(|| self.server.now_ms()) => {
                self.expire(database, key, &found.record)?;
                Ok(None)
            }
            found => Ok(found),
        }
    }

    #[cold]
    fn expire(&mut self, database: usize, key: &[u8], record: &Record) -> Result<(), Fault> {
        let slot = self.server.data.slot(database);
        self.server.data.delete(slot, key, record)?;
        self.server.counts.expired += 1;
        self.server.touch(database, key);
        Ok(())
    }

    /// A key of a type.
    #[inline]
    pub(crate) fn find_kind(&mut self, key: &[u8], kind: Kind) -> Result<Option<Found>, Fault> {
        match self.find(key)? {
            Some(found) if found.record.kind != kind => Err(WRONG_TYPE),
            found => Ok(found),
        }
    }

    /// The same for commands that only look, which counts hits.
    #[inline]
    pub(crate) fn look(&mut self, key: &[u8], kind: Kind) -> Result<Option<Found>, Fault> {
        let found = self.find_kind(key, kind)?;
        match found {
            Some(_) => self.server.counts.hits += 1,
            None => self.server.counts.misses += 1,
        }
        Ok(found)
    }

    /// Notes that a key of the client's database has changed.
    #[inline]
    pub(crate) fn touch(&mut self, key: &[u8]) {
        self.server.touch(self.client.database, key);
    }

    /// Sets a string in place of what the key had.
    #[inline]
    pub(crate) fn set_string(
        &mut self,
        key: &[u8],
        old: Option<&Record>,
        value: &[u8],
        expires: u64,
    ) -> Result<(), Fault> {
        let slot = self.slot();
        self.server.data.set(slot, key, old, &Record::string(expires), value)?;
        self.touch(key);
        Ok(())
    }

    /// Removes a key with its members.
    pub(crate) fn delete(&mut self, key: &[u8], old: &Record) -> Result<(), Fault> {
        let slot = self.slot();
        self.server.data.delete(slot, key, old)?;
        self.touch(key);
        Ok(())
    }

    /// Notes that a command is over, which is logged if it was slow. One that waits is not over, and `EXEC` is not
    /// logged, but its commands are.
    #[inline]
    pub(crate) fn end_command(&mut self, command: &Command, args: &[&[u8]]) {
        let Some(micros) = self.server.slow_lap() else { return };
        if self.client.wait.is_none() && command.name != "exec" {
            self.log_slow(micros, args);
        }
    }

    #[cold]
    fn log_slow(&mut self, micros: u64, args: &[&[u8]]) {
        let shared = &self.client.shared;
        let entry = slowlog::Entry {
            id: 0,
            time_s: now_ms() / 1000,
            micros,
            args: slowlog::cut(args),
            address: shared.address.clone(),
            name: shared.name.borrow().clone(),
        };
        self.server.slow_log.push(entry, self.server.settings.slow_entries_max);
    }

    /// A command by its name, in any case.
    pub(crate) fn command(&self, name: &[u8]) -> Option<&'static Command> {
        let name = name.to_ascii_lowercase();
        let at = self.commands.binary_search_by(|command| command.name.as_bytes().cmp(&name));
        at.ok().map(|at| &self.commands[at])
    }

    /// Longest string that a command makes.
    pub(crate) fn string_bytes_max(&self) -> u64 {
        self.server.options.limits.request_bytes as u64
    }

    /// Fails if a string would be too long.
    pub(crate) fn check_string(&self, bytes: u64) -> Result<(), Fault> {
        if bytes <= self.string_bytes_max() {
            return Ok(());
        }
        Err(Fault::new("ERR string exceeds maximum allowed size (proto-max-bulk-len)"))
    }
}

pub(crate) fn integer(arg: &[u8]) -> Result<i64, Fault> {
    number::integer(arg).ok_or(NOT_INTEGER)
}

/// A number that is not negative.
pub(crate) fn natural(arg: &[u8], otherwise: &'static str) -> Result<u64, Fault> {
    let natural = number::integer(arg).and_then(|number| u64::try_from(number).ok());
    natural.ok_or(Fault::new(otherwise))
}

pub(crate) fn float(arg: &[u8]) -> Result<f64, Fault> {
    number::double(arg).ok_or(NOT_FLOAT)
}

/// Whether an argument is this word, in any case.
#[inline]
pub(crate) fn is(arg: &[u8], word: &str) -> bool {
    arg.eq_ignore_ascii_case(word.as_bytes())
}

/// The part of a sequence from one index to another, which count from the end if they are negative.
pub(crate) fn slice(start: i64, stop: i64, len: u64) -> std::ops::Range<u64> {
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let start = if start < 0 { (start + len).max(0) } else { start };
    let stop = if stop < 0 { stop + len } else { stop.min(len - 1) };
    if start > stop || start >= len { 0..0 } else { start as u64..stop as u64 + 1 }
}

#[cfg(test)]
mod tests {
    use super::slice;

    #[test]
    fn indexes_count_from_both_ends() {
        assert_eq!(slice(0, -1, 5), 0..5);
        assert_eq!(slice(-2, -1, 5), 3..5);
        assert_eq!(slice(-100, 100, 5), 0..5);
        assert_eq!(slice(3, 1, 5), 0..0);
        assert_eq!(slice(5, 9, 5), 0..0);
        assert_eq!(slice(0, -6, 5), 0..0);
        assert_eq!(slice(i64::MIN, i64::MAX, 0), 0..0);
        assert_eq!(slice(0, i64::MIN, 5), 0..0);
    }
}
