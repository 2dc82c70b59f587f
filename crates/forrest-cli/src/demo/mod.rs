//! The tour: it stores the metadata of real files, runs ordered queries, and measures each operation.
//!
//! It walks a directory tree of this machine and changes nothing there. It fills four keyspaces of a store on disk,
//! which is temporary unless `--db` names one: `files` and `by_time` (see meta.rs), and `extension_files` and
//! `extension_bytes`, counters by extension that `add` keeps. Paths are keys without an encoding, so a subtree is a
//! range: everything below `/usr/lib` is at or after `/usr/lib/` and before `/usr/lib0`, because `0` follows `/`.

mod ask;
mod change;
mod measure;
mod meta;
mod reopen;
mod walk;

use crate::args::DemoArgs;
use crate::codec::text;
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::Bar;
use crate::session::{Answer, Session};
use crate::shell;
use crate::term::{self, Style, Term};
use forrest::{Db, Keyspace, Stats, View};
use meta::Meta;
use std::fmt::Arguments;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use walk::{Progress, Report};

/// The largest size that counts towards `extension_bytes`, in bytes: sparse files may claim so much that
/// few of them would overflow a counter.
const COUNTED_BYTES_MAX: u64 = 1 << 50;
/// Pause between two drawings of a walk's progress.
const DRAW_PAUSE: Duration = Duration::from_millis(80);

/// Its keyspaces, but for those that it drops again.
const SPACES: [&str; 4] = ["files", "by_time", "extension_files", "extension_bytes"];

/// The store that the tour fills and asks.
struct Tour<'s> {
    session: &'s mut Session,
    db: Db,
    term: Term,
    root: PathBuf,
    files: Keyspace,
    by_time: Keyspace,
    extension_files: Keyspace,
    extension_bytes: Keyspace,
    sections: u32,
}

/// Runs the tour.
pub(crate) fn run(session: &mut Session, args: &DemoArgs) -> Result<Answer, Failure> {
    let root = fs::canonicalize(&args.dir)
        .map_err(|e| Failure::io(format!("cannot read the directory {}", args.dir.display()), e))?;
    let mut tour = Tour::new(session, root)?;
    let report = tour.fill(args.limit.unwrap_or(u64::MAX))?;
    if report.entries == 0 {
        tour.say(format_args!("   Nothing is in there, so there is nothing to ask."))?;
    } else {
        tour.ask_all(args, &report)?;
    }
    let files = tour.files.clone();
    if args.shell {
        session.line(format_args!(""))?;
        session.flush()?;
        session.space = files;
        return shell::run(session, None);
    }
    Ok(Answer::Done)
}

impl<'s> Tour<'s> {
    fn new(session: &'s mut Session, root: PathBuf) -> Result<Self, Failure> {
        let db = session.db.clone();
        for name in SPACES {
            if db.keyspace(name)?.first()?.is_some() {
                return Err(Failure::usage(format!(
                    "the demo needs the keyspace {name}, and it is not empty"
                )));
            }
        }
        let [files, by_time, extension_files, extension_bytes] = keyspaces(&db)?;
        let term = session.term;
        Ok(Tour { files, by_time, extension_files, extension_bytes, term, session, db, root, sections: 0 })
    }

    fn ask_all(&mut self, args: &DemoArgs, report: &Report) -> Result<(), Failure> {
        self.list()?;
        let subtrees = self.subtrees()?;
        self.newest()?;
        self.extensions()?;
        self.changes(&subtrees, report)?;
        let stats = self.db.stats()?;
        let spaces = self.payloads()?;
        self.timings(args.seed)?;
        if self.session.home.directory().is_none() {
            return self.memory(&stats, &spaces);
        }
        self.reopen(&spaces)?;
        self.memory(&self.db.stats()?, &spaces)
    }

    /// Walks the tree into the store.
    fn fill(&mut self, limit: u64) -> Result<Report, Failure> {
        let root = text::escape(self.root.as_os_str().as_bytes());
        let title = format!("forrest {}", env!("CARGO_PKG_VERSION"));
        let title = self.term.paint(Style::Bold, title);
        let about =
            self.term.paint(Style::Dim, "an ordered key-value store, shown on the files of this machine");
        self.say(format_args!("{title}  {about}"))?;
        self.tell_where()?;
        let shown = self.term.fit(&root, self.term.columns.saturating_sub(40)).into_owned();
        self.heading(format_args!("Walk {shown} and store path → metadata"))?;
        let start = Instant::now();
        let report = self.walk(limit, None, |path, meta| {
            let mut buf = Vec::with_capacity(160);
            meta.encode(&mut buf);
            self.files.set(path, &buf)?;
            if meta.kind == b'-' {
                meta.time.encode_key(path, &mut buf);
                self.by_time.set(&buf, "")?;
                let extension = extension(path);
                self.extension_files.add(extension, 1)?;
                self.extension_bytes.add(extension, meta.size.min(COUNTED_BYTES_MAX) as i64)?;
            }
            Ok(())
        })?;
        let elapsed = start.elapsed();
        let entries = term::plural(report.entries, "entry", "entries");
        let directories = term::plural(report.directories, "directory", "directories");
        self.say(format_args!(
            "   {entries} from {directories} in {}: {} a second",
            term::span(elapsed.as_nanos() as u64),
            term::rate(report.entries as f64 / elapsed.as_secs_f64())
        ))?;
        self.dim("each file is 4 changes: its path, its time, two counters of its extension")?;
        self.tell_of(&report)?;
        Ok(report)
    }

    /// Walks the tree with a progress bar, which is exact if the number of entries is known.
    fn walk(
        &self,
        limit: u64,
        known: Option<u64>,
        store: impl Fn(&[u8], Meta) -> Result<(), Failure> + Sync,
    ) -> Result<Report, Failure> {
        const STEPS: u64 = 1000;
        let (term, progress) = (self.term, Progress::default());
        let bar = Bar::new(&term, self.session.quiet, STEPS);
        let draw = || {
            let fraction = match known {
                Some(whole) => progress.entries() as f64 / whole.max(1) as f64,
                None => progress.fraction(),
            };
            bar.show((fraction * STEPS as f64) as u64, || {
                let entries = term::plural(progress.entries(), "entry", "entries");
                let current = text::escape(progress.current().as_os_str().as_bytes());
                let room = bar.message_columns().saturating_sub(entries.len() + 2);
                format!("{entries}  {}", term::shorten(&current, room, term.glyph("…", "...")))
            });
        };
        thread::scope(|scope| {
            let drawer = scope.spawn(|| {
                while !bar.is_hidden() && !progress.finished() {
                    draw();
                    thread::park_timeout(DRAW_PAUSE);
                }
            });
            let report =
                walk::walk(&self.root, limit, &progress, |path, metadata| store(path, Meta::of(metadata)));
            drawer.thread().unpark();
            report
        })
    }

    fn tell_of(&mut self, report: &Report) -> Result<(), Failure> {
        if report.limited {
            self.say(format_args!("   stopped there, as --limit asks"))?;
        }
        if report.mounts > 0 {
            let mounts = term::plural(report.mounts, "directory was", "directories were");
            self.say(format_args!("   {mounts} not entered: another file system is mounted there"))?;
        }
        if report.vanished > 0 {
            let vanished = term::plural(report.vanished, "entry", "entries");
            self.say(format_args!("   {vanished} vanished while being looked at"))?;
        }
        if report.unreadable > 0 {
            let warning =
                format!("{} could not be read:", term::plural(report.unreadable, "entry", "entries"));
            self.say(format_args!("   {}", self.term.paint(Style::Yellow, warning)))?;
            for (path, error) in &report.errors {
                let why = error.to_string();
                let why = why.split(" (os error").next().unwrap_or_default();
                self.path_line(format_args!("   {}", term::pad(why, 20)), path.as_os_str().as_bytes())?;
            }
            let shown = report.errors.len() as u64;
            if report.unreadable > shown {
                self.dim(&format!("and {} more", term::grouped(report.unreadable - shown)))?;
            }
        }
        Ok(())
    }

    /// Times every operation and prints the table.
    fn timings(&mut self, seed: u64) -> Result<(), Failure> {
        self.heading(format_args!("What the operations cost"))?;
        self.session.flush()?;
        let bar = Bar::new(&self.term, self.session.quiet, measure::Table::OPERATIONS);
        let table = measure::measure(&self.db, &self.files, seed, &bar)?;
        drop(bar);
        for line in table.lines(&self.term) {
            self.say(format_args!("{line}"))?;
        }
        Ok(())
    }

    /// Keys, and bytes of keys and values, of each keyspace.
    fn payloads(&self) -> Result<Vec<(String, [u64; 3])>, Failure> {
        let spaces = [&self.files, &self.by_time, &self.extension_files, &self.extension_bytes];
        spaces.into_iter().map(|space| Ok((space.name().to_owned(), payload(space)?))).collect()
    }

    fn memory(&mut self, stats: &Stats, spaces: &[(String, [u64; 3])]) -> Result<(), Failure> {
        let files = self.session.home.files()?;
        self.heading(format_args!("{}", if files.is_some() { "Disk and memory" } else { "Memory" }))?;
        let head =
            format!("   {:<17}{:>12}{:>18}{:>20}", "keyspace", "keys", "bytes of a key", "bytes of a value");
        self.say(format_args!("{}", self.term.paint(Style::Dim, head)))?;
        let mut all = [0; 3];
        for (name, payload) in spaces {
            let [keys, key_bytes, value_bytes] = *payload;
            let mean = |bytes: u64| if keys == 0 { 0.0 } else { bytes as f64 / keys as f64 };
            self.say(format_args!(
                "   {name:<17}{:>12}{:>18.1}{:>20.1}",
                term::grouped(keys),
                mean(key_bytes),
                mean(value_bytes)
            ))?;
            (0..3).for_each(|i| all[i] += payload[i]);
        }
        let per_key = |bytes: u64| bytes as f64 / all[0].max(1) as f64;
        let (used, payload) = (stats.used_bytes(), per_key(all[1] + all[2]));
        if let Some((bytes, count)) = files {
            self.say(format_args!(
                "   on disk: {} in {}, {:.1} bytes per key, for {payload:.1} of key and value",
                term::size(bytes),
                term::plural(count, "file", "files"),
                per_key(bytes)
            ))?;
            self.say(format_args!(
                "   in memory: {} newest changes, {} cached, {} indexes",
                term::size(used),
                term::size(stats.cache_bytes),
                term::size(stats.index_bytes)
            ))?;
        } else if used > 0 {
            let used_per_key = per_key(used);
            self.say(format_args!(
                "   in use: {}, {used_per_key:.1} bytes per key, for {payload:.1} bytes of key and value",
                term::size(used)
            ))?;
            if used_per_key < payload {
                self.dim("less than it holds: what neighbouring keys begin with is kept once")?;
            }
        }
        let pages = [
            ("explicit huge pages", stats.explicit_huge_bytes),
            ("transparent huge pages", stats.transparent_huge_bytes),
            ("plain pages", stats.plain_bytes()),
        ];
        let pages: Vec<_> = pages
            .into_iter()
            .filter(|(_, bytes)| *bytes > 0)
            .map(|(name, bytes)| format!("{} on {name}", term::size(bytes)))
            .collect();
        if !pages.is_empty() {
            self.say(format_args!("   reserved: {}", pages.join(", ")))?;
        }
        if files.is_none() && stats.explicit_huge_bytes + stats.transparent_huge_bytes == 0 {
            self.dim("no huge pages were had: forrest doctor tells what to do about it")?;
        }
        self.say(format_args!(""))?;
        self.dim("Next: forrest demo --shell to ask it more, forrest doctor for the machine.")
    }

    fn heading(&mut self, title: Arguments<'_>) -> Result<(), Failure> {
        self.sections += 1;
        let heading = format!("{}  {title}", self.sections);
        self.say(format_args!(""))?;
        self.say(format_args!("{}", self.term.paint(Style::Bold, heading)))?;
        // Progress is drawn below it, on another stream.
        self.session.flush()
    }

    fn say(&mut self, line: Arguments<'_>) -> Result<(), Failure> {
        let line = line.to_string();
        self.session.line(format_args!("{}", self.term.plain(&line)))
    }

    /// What matters less.
    fn dim(&mut self, line: &str) -> Result<(), Failure> {
        for part in term::wrap(line, self.term.columns.saturating_sub(4)) {
            self.say(format_args!("   {}", self.term.paint(Style::Dim, part)))?;
        }
        Ok(())
    }

    /// A line that ends with a path, which is shortened to the rest of the terminal's width.
    fn path_line(&mut self, start: Arguments<'_>, path: &[u8]) -> Result<(), Failure> {
        let start = start.to_string();
        let room = self.term.columns.saturating_sub(term::width(&start) + 3);
        let path = text::escape(path);
        let path = self.term.fit(&path, room);
        self.say(format_args!("{start}  {path}"))
    }
}

/// The keyspaces of the tour, opened.
fn keyspaces(db: &Db) -> Result<[Keyspace; 4], Failure> {
    let [a, b, c, d] = SPACES.map(|name| db.keyspace(name));
    Ok([a?, b?, c?, d?])
}

/// The extension of a path's last part: what follows its last dot, unless that is its first character;
/// nothing if it is long or holds other characters than letters, digits, `+`, `-` and `_`.
fn extension(path: &[u8]) -> &[u8] {
    const BYTES_MAX: usize = 12;
    let name = path.rsplit(|&b| b == b'/').next().unwrap_or_default();
    let Some(dot) = name.iter().rposition(|&b| b == b'.').filter(|&dot| dot > 0) else { return b"" };
    let extension = &name[dot + 1..];
    let is_plain = extension.iter().all(|&b| b.is_ascii_alphanumeric() || b"+-_".contains(&b));
    if is_plain && extension.len() <= BYTES_MAX { extension } else { b"" }
}

/// What every key below a directory begins with.
fn below(directory: &Path) -> Vec<u8> {
    let mut prefix = directory.as_os_str().as_bytes().to_vec();
    if prefix.last() != Some(&b'/') {
        prefix.push(b'/');
    }
    prefix
}

/// Keys, bytes of keys and bytes of values of a keyspace.
fn payload(space: &View) -> Result<[u64; 3], Failure> {
    let mut sums = [0; 3];
    for entry in space.range(..) {
        interrupt::check()?;
        let entry = entry?;
        sums[0] += 1;
        sums[1] += entry.key().len() as u64;
        sums[2] += entry.value()?.len() as u64;
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions() {
        for (path, want) in [
            ("/a/b.rs", "rs"),
            ("/a.d/b", ""),
            ("/a/.profile", ""),
            ("/a/x.tar.gz", "gz"),
            ("/a/x.", ""),
            ("/a/libc.so.6", "6"),
            ("/a/mail.2024-01-01T00:00", ""),
            ("/a/x.averyveryverylongone", ""),
        ] {
            assert_eq!(extension(path.as_bytes()), want.as_bytes(), "{path}");
        }
    }
}
