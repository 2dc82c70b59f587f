//! [`Session`]: one open store, the keyspace and format in use, and standard output. Every command works on it.

use crate::args::{Bounds, StoreArgs};
use crate::codec::{Format, text};
use crate::failure::Failure;
use crate::home::{Home, MEMORY};
use crate::interrupt::Patient;
use crate::term::{self, Term};
use forrest::{Capability, Db, Keyspace, Outcome, Snapshot, WriteBatch};
use std::ffi::{OsStr, OsString};
use std::fmt::Arguments;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Stdout, Write};
use std::ops::Bound;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

/// Where a range of keys starts and ends.
type KeyBounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The result of a command that did not fail, for its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Success.
    Done,
    /// The key or store does not exist, or did not match.
    NotFound,
}

impl Answer {
    /// [`Answer::Done`] if `found`.
    pub(crate) fn found(found: bool) -> Self {
        if found { Answer::Done } else { Answer::NotFound }
    }

    /// `Done` only if both are.
    pub(crate) fn and(self, other: Self) -> Self {
        Answer::found(self == Answer::Done && other == Answer::Done)
    }
}

/// A keyspace that is not there, and that a read must not create.
pub(crate) fn no_keyspace(name: &str, home: &Home) -> Failure {
    Failure::Absent(format!("there is no keyspace {name} in {}", home.url))
}

/// One open store, and the options of its input and output.
pub(crate) struct Session {
    pub(crate) db: Db,
    /// The keyspace in use.
    pub(crate) space: Keyspace,
    /// `--keyspace` was given: dump only that.
    pub(crate) space_is_chosen: bool,
    pub(crate) format: Format,
    pub(crate) term: Term,
    pub(crate) quiet: bool,
    /// Changes collected since the shell's `begin`.
    pub(crate) batch: Option<WriteBatch>,
    /// The snapshot of the shell's `snapshot`.
    pub(crate) snapshot: Option<Snapshot>,
    /// Something was loaded or changed, so an empty result needs no explanation.
    pub(crate) was_filled: bool,
    /// A command changed something, which would be lost with the process.
    pub(crate) was_changed: bool,
    /// The changes have been dumped.
    pub(crate) was_dumped: bool,
    /// Commands come from the shell.
    pub(crate) in_shell: bool,
    /// Commands come from a user at a prompt.
    pub(crate) at_prompt: bool,
    /// Standard input has a reader already.
    stdin_is_taken: bool,
    /// `--sync` was given.
    syncs: bool,
    /// Something may have been changed since the last sync.
    is_unsynced: bool,
    out: BufWriter<Patient<Stdout>>,
    /// Where the store is; last, because a temporary one must be closed before it goes.
    pub(crate) home: Home,
}

impl Session {
    /// Opens the store that the arguments name, and the keyspace. Where the store may be made, the keyspace may be too.
    pub(crate) fn open(args: &StoreArgs, home: Home) -> Result<Self, Failure> {
        let (db, is_beside) = home.open()?;
        if args.sync && !db.capabilities().has(Capability::Sync) {
            return Err(Failure::usage(format!("{} keeps nothing that --sync could make safe", home.url)));
        }
        let name = args.keyspace.as_deref().unwrap_or(forrest::DEFAULT_KEYSPACE);
        let is_kept = db.capabilities().has(Capability::Persistence);
        if is_kept && home.only_exists() && !name.is_empty() && !db.keyspaces()?.iter().any(|n| n == name) {
            // A read must not create a keyspace.
            return Err(no_keyspace(name, &home));
        }
        let space = db.keyspace(name)?;
        let session = Session {
            db,
            space,
            space_is_chosen: args.keyspace.is_some(),
            format: args.format,
            term: Term::detect(),
            quiet: args.quiet,
            batch: None,
            snapshot: None,
            was_filled: false,
            was_changed: false,
            was_dumped: false,
            in_shell: false,
            at_prompt: false,
            stdin_is_taken: false,
            syncs: args.sync,
            is_unsynced: true,
            out: BufWriter::new(Patient(io::stdout())),
            home,
        };
        if is_beside {
            session.note(format_args!(
                "another process has the store open; this is its state of now, read beside it"
            ));
        }
        Ok(session)
    }

    /// Closes the store and opens it again; all other handles to it must be gone. Returns what both took.
    pub(crate) fn reopen(&mut self) -> Result<[Duration; 2], Failure> {
        let name = self.space.name().to_owned();
        let start = Instant::now();
        // Something must stand in its place meanwhile.
        self.db = Db::open(MEMORY)?;
        self.space = self.db.keyspace(forrest::DEFAULT_KEYSPACE)?;
        let closed = Instant::now();
        (self.db, _) = self.home.open()?;
        let opened = closed.elapsed();
        self.space = self.db.keyspace(&name)?;
        Ok([closed - start, opened])
    }

    /// Closes the session; with `explain`, notes which changes are lost with the process.
    pub(crate) fn close(mut self, explain: bool) -> Result<(), Failure> {
        self.flush()?;
        let explain = explain && !self.db.capabilities().has(Capability::Persistence);
        if explain && self.was_changed && !self.was_dumped {
            self.note(format_args!(
                "the change was made in memory and is gone; keep it by --dump FILE, or use forrest shell"
            ));
        } else if explain && !self.was_filled {
            self.note(format_args!(
                "a store in memory starts empty; fill it by --load FILE, or use forrest shell"
            ));
        }
        Ok(())
    }

    /// Standard input, which can have only one reader.
    pub(crate) fn take_stdin(&mut self) -> Result<BufReader<Patient<File>>, Failure> {
        if std::mem::replace(&mut self.stdin_is_taken, true) {
            return Err(Failure::usage("standard input is being read already, and cannot be read twice"));
        }
        let stdin = io::stdin().as_fd().try_clone_to_owned();
        let stdin = stdin.map_err(|error| Failure::io("cannot read standard input", error))?;
        Ok(BufReader::with_capacity(1 << 16, Patient(File::from(stdin))))
    }

    /// The bytes of an argument.
    pub(crate) fn argument(&self, what: &str, argument: &OsStr) -> Result<Vec<u8>, Failure> {
        // The shell has taken the escapes out already when it split its line into words.
        match self.format {
            format if self.in_shell && !format.is_hex() => Ok(argument.as_bytes().to_vec()),
            format => format.read_argument(what, argument.as_bytes()),
        }
    }

    /// The bytes of an argument that is a key.
    pub(crate) fn key(&self, key: &OsStr) -> Result<Vec<u8>, Failure> {
        self.argument("key", key)
    }

    /// The keys that lie within the prefix, of which there is one at most, and within the bounds.
    pub(crate) fn range(&self, bounds: &Bounds) -> Result<KeyBounds, Failure> {
        match &bounds.prefix[..] {
            [] => self.within(None, bounds),
            [prefix] => self.within(Some(prefix), bounds),
            _ => Err(Failure::usage("only scan takes several times --prefix")),
        }
    }

    /// The keys that lie within each of the prefixes and within the bounds.
    pub(crate) fn ranges(&self, bounds: &Bounds) -> Result<Vec<KeyBounds>, Failure> {
        bounds.prefix.iter().map(|prefix| self.within(Some(prefix), bounds)).collect()
    }

    fn within(&self, prefix: Option<&OsString>, bounds: &Bounds) -> Result<KeyBounds, Failure> {
        let read = |word: Option<&OsString>| word.map(|word| self.key(word)).transpose();
        let (prefix, from, to) = (read(prefix)?, read(bounds.from.as_ref())?, read(bounds.to.as_ref())?);
        let prefix_end = prefix.as_deref().and_then(forrest::prefix_end);
        // `None` sorts first, which is right for a start; an end takes the smaller of those that are there.
        let start = prefix.max(from);
        let end = [prefix_end, to].into_iter().flatten().min();
        Ok((start.map_or(Bound::Unbounded, Bound::Included), end.map_or(Bound::Unbounded, Bound::Excluded)))
    }

    /// Notes that a key is not there.
    pub(crate) fn not_found(&self, key: &[u8]) {
        self.note(format_args!("not found: {}", text::escape(key)));
    }

    /// Writes to standard output.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.out.write_all(bytes).map_err(Failure::stdout)
    }

    /// Writes a line to standard output.
    pub(crate) fn line(&mut self, line: Arguments<'_>) -> Result<(), Failure> {
        self.out.write_fmt(line).and_then(|()| self.out.write_all(b"\n")).map_err(Failure::stdout)
    }

    /// Flushes standard output.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(Failure::stdout)
    }

    /// Prints a note to standard error.
    pub(crate) fn note(&self, note: Arguments<'_>) {
        match self {
            _ if self.quiet => {}
            _ if self.at_prompt => drop(writeln!(io::stderr().lock(), "{note}")),
            _ => term::say(format_args!("note: {note}")),
        }
    }

    /// Makes the changes survive power loss, if `--sync` was given.
    pub(crate) fn sync_changes(&mut self) -> Result<(), Failure> {
        if self.syncs && std::mem::take(&mut self.is_unsynced) {
            self.db.sync()?;
        }
        Ok(())
    }

    /// Notes that changes have begun, which may be incomplete.
    pub(crate) fn changing(&mut self) {
        self.is_unsynced = true;
        self.was_filled = true;
    }

    /// Notes that a command changed something.
    pub(crate) fn changed(&mut self) {
        self.changing();
        self.was_changed = true;
        self.was_dumped = false;
    }

    /// Applies one change, or adds it to the shell's batch; `None` means that it is in the batch.
    pub(crate) fn apply(&mut self, op: forrest::Op<&[u8]>) -> Result<Option<Outcome>, Failure> {
        let Some(batch) = &mut self.batch else {
            let outcome = self.space.apply(op)?;
            let changes_nothing = matches!(outcome, Outcome::Deleted(false) | Outcome::ComparedRange(_));
            if !changes_nothing && outcome.clone().mismatch().is_none() {
                self.changed();
            }
            return Ok(Some(outcome));
        };
        op.check()?;
        batch.on(&self.space).push(op);
        Ok(None)
    }
}
