//! A walk over a directory tree by several threads, for trees of millions of files.
//!
//! Guarantees: each entry under the root is shown once, with its metadata; symbolic links are shown and never
//! followed, so no loop is possible; the walk stays on the file system of the root. What cannot be read, and
//! what vanishes between being listed and being looked at, is counted and does not stop the walk.
//! Directories wait on one stack, so that the tree is walked depth first and few of them wait at any time.
//! It does not show entries in any order.

use crate::failure::Failure;
use crate::interrupt;
use forrest_base::lock;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::num::NonZero;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;

/// The whole walk, in the fixed-point shares that [`Progress::fraction`] adds up.
const WHOLE: u64 = 1 << 60;
/// More threads than this only wait for each other in the kernel's directory cache.
const THREADS_MAX: usize = 8;
/// Errors kept to be shown; the rest is counted.
const ERRORS_KEPT: usize = 3;

/// How far a walk is; may be read by other threads while it goes on.
#[derive(Default)]
pub(crate) struct Progress {
    entries: AtomicU64,
    directories: AtomicU64,
    done: AtomicU64,
    finished: AtomicBool,
    /// A directory that is being read now.
    current: Mutex<PathBuf>,
}

/// The counts of a walk, and the entries that it could not read.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Entries shown.
    pub(crate) entries: u64,
    /// Directories read.
    pub(crate) directories: u64,
    /// Directories that could not be read, or entries whose metadata could not.
    pub(crate) unreadable: u64,
    /// The first few of these.
    pub(crate) errors: Vec<(PathBuf, io::Error)>,
    /// Entries that were gone when looked at.
    pub(crate) vanished: u64,
    /// Directories not entered because another file system is mounted there.
    pub(crate) mounts: u64,
    /// The walk stopped because it reached the limit.
    pub(crate) limited: bool,
}

struct Directory {
    path: PathBuf,
    /// The part of [`WHOLE`] that this directory and all below it stand for.
    share: u64,
}

struct Stack {
    waiting: Vec<Directory>,
    /// Threads that hold a directory and may push more.
    busy: usize,
    /// No further directory is to be read.
    stopped: bool,
    report: Report,
    failure: Option<Failure>,
}

struct Walk<'a, F> {
    stack: Mutex<Stack>,
    changed: Condvar,
    device: u64,
    limit: u64,
    progress: &'a Progress,
    show: F,
}

impl Progress {
    /// Entries shown so far.
    pub(crate) fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Estimate of the part of the walk that is done, 0 to 1; it never decreases. Each directory splits its part evenly
    /// between itself and its subdirectories, because their sizes are not known yet.
    pub(crate) fn fraction(&self) -> f64 {
        self.done.load(Ordering::Relaxed) as f64 / WHOLE as f64
    }

    /// A directory that is being read now.
    pub(crate) fn current(&self) -> PathBuf {
        lock(&self.current).clone()
    }

    /// True when the walk is over.
    pub(crate) fn finished(&self) -> bool {
        self.finished.load(Ordering::Relaxed)
    }
}

/// Walks everything under `root`, a directory, and shows each entry's path and metadata to `show`, from
/// several threads at once. Stops after `limit` entries, when `show` fails, or on Ctrl-C.
pub(crate) fn walk<F>(root: &Path, limit: u64, progress: &Progress, show: F) -> Result<Report, Failure>
where
    F: Fn(&[u8], &Metadata) -> Result<(), Failure> + Sync,
{
    // Set even if `show` panics, because the thread that draws the progress waits for it.
    let _finish = Finish(progress);
    walk_inner(root, limit, progress, show)
}

struct Finish<'a>(&'a Progress);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.finished.store(true, Ordering::Relaxed);
    }
}

fn walk_inner<F>(root: &Path, limit: u64, progress: &Progress, show: F) -> Result<Report, Failure>
where
    F: Fn(&[u8], &Metadata) -> Result<(), Failure> + Sync,
{
    let about_root = |e| Failure::io(format!("cannot read the directory {}", root.display()), e);
    let device = fs::metadata(root).map_err(about_root)?.dev();
    // A root that cannot be read is an error, not an empty tree.
    drop(fs::read_dir(root).map_err(about_root)?);
    let first = Directory { path: root.to_path_buf(), share: WHOLE };
    let stack =
        Stack { waiting: vec![first], busy: 0, stopped: false, report: Report::default(), failure: None };
    let walk = Walk { stack: Mutex::new(stack), changed: Condvar::new(), device, limit, progress, show };
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX);
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| walk.work());
        }
        walk.work();
    });
    let stack = walk.stack.into_inner().unwrap_or_else(|e| e.into_inner());
    match stack.failure {
        Some(failure) => Err(failure),
        None => Ok(Report {
            entries: progress.entries().min(limit),
            directories: progress.directories.load(Ordering::Relaxed),
            limited: progress.entries() > limit,
            ..stack.report
        }),
    }
}

impl<F: Fn(&[u8], &Metadata) -> Result<(), Failure> + Sync> Walk<'_, F> {
    /// What each thread does: reads one directory after another until none waits and none can come.
    fn work(&self) {
        while let Some(directory) = self.take() {
            let mut report = Report::default();
            let result = self.read(directory, &mut report);
            self.put_back(report, result.err());
        }
    }

    fn take(&self) -> Option<Directory> {
        let mut stack = lock(&self.stack);
        loop {
            if stack.stopped {
                return None;
            }
            if let Some(directory) = stack.waiting.pop() {
                stack.busy += 1;
                return Some(directory);
            }
            if stack.busy == 0 {
                return None;
            }
            stack = self.changed.wait(stack).unwrap_or_else(|e| e.into_inner());
        }
    }

    fn put_back(&self, report: Report, failure: Option<Failure>) {
        let mut stack = lock(&self.stack);
        stack.busy -= 1;
        stack.report.unreadable += report.unreadable;
        stack.report.vanished += report.vanished;
        stack.report.mounts += report.mounts;
        stack.report.errors.extend(report.errors);
        stack.report.errors.truncate(ERRORS_KEPT);
        if failure.is_some() || self.progress.entries() > self.limit {
            stack.stopped = true;
            stack.failure = stack.failure.take().or(failure);
        }
        if stack.busy == 0 || stack.stopped {
            self.changed.notify_all();
        }
    }

    fn read(&self, directory: Directory, report: &mut Report) -> Result<(), Failure> {
        let Directory { path, share } = directory;
        lock(&self.progress.current).clone_from(&path);
        let mut below = Vec::new();
        match fs::read_dir(&path) {
            Ok(entries) => {
                self.progress.directories.fetch_add(1, Ordering::Relaxed);
                self.read_entries(&path, entries, &mut below, report)?;
            }
            Err(e) => report.note(path, e),
        }
        let part = share / (below.len() as u64 + 1);
        self.progress.done.fetch_add(share - part * below.len() as u64, Ordering::Relaxed);
        if !below.is_empty() {
            let mut stack = lock(&self.stack);
            stack.waiting.extend(below.into_iter().map(|path| Directory { path, share: part }));
            self.changed.notify_all();
        }
        Ok(())
    }

    fn read_entries(
        &self,
        path: &Path,
        entries: fs::ReadDir,
        below: &mut Vec<PathBuf>,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let mut key = path.as_os_str().as_bytes().to_vec();
        if key.last() != Some(&b'/') {
            key.push(b'/');
        }
        let stem = key.len();
        for entry in entries {
            interrupt::check()?;
            let entry = match entry {
                Ok(entry) => entry,
                Err(e) => {
                    report.note(path.to_path_buf(), e);
                    break;
                }
            };
            key.truncate(stem);
            key.extend_from_slice(entry.file_name().as_bytes());
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    report.vanished += 1;
                    continue;
                }
                Err(e) => {
                    report.note(entry.path(), e);
                    continue;
                }
            };
            if self.progress.entries.fetch_add(1, Ordering::Relaxed) >= self.limit {
                break;
            }
            (self.show)(&key, &metadata)?;
            if metadata.is_dir() {
                if metadata.dev() == self.device {
                    below.push(PathBuf::from(OsString::from_vec(key.clone())));
                } else {
                    report.mounts += 1;
                }
            }
        }
        Ok(())
    }
}

impl Report {
    fn note(&mut self, path: PathBuf, error: io::Error) {
        if error.kind() == io::ErrorKind::NotFound {
            self.vanished += 1;
            return;
        }
        self.unreadable += 1;
        if self.errors.len() < ERRORS_KEPT {
            self.errors.push((path, error));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn paths(root: &Path, limit: u64) -> (BTreeSet<Vec<u8>>, Report) {
        let seen = Mutex::new(BTreeSet::new());
        let progress = Progress::default();
        let report = walk(root, limit, &progress, |path, _| {
            assert!(lock(&seen).insert(path.to_vec()), "shown twice");
            Ok(())
        });
        assert!(progress.finished());
        (seen.into_inner().unwrap(), report.unwrap())
    }

    fn relative(root: &Path, names: &[&str]) -> BTreeSet<Vec<u8>> {
        names.iter().map(|n| root.join(n).into_os_string().into_vec()).collect()
    }

    #[test]
    fn shows_each_entry_once_and_follows_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        fs::write(root.join("a/file"), "x").unwrap();
        std::os::unix::fs::symlink("..", root.join("a/b/loop")).unwrap();
        std::os::unix::fs::symlink("nowhere", root.join("dangling")).unwrap();
        let (seen, report) = paths(root, u64::MAX);
        assert_eq!(seen, relative(root, &["a", "a/b", "a/b/c", "a/b/loop", "a/file", "dangling"]));
        assert_eq!((report.entries, report.directories, report.unreadable), (6, 4, 0));
        assert!(!report.limited);
    }

    #[test]
    fn an_empty_directory_is_no_error_and_a_missing_one_is() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(paths(dir.path(), u64::MAX).0.len(), 0);
        let missing = walk(&dir.path().join("no"), 1, &Progress::default(), |_, _| Ok(()));
        assert!(missing.is_err());
    }

    #[test]
    fn the_limit_holds_exactly() {
        let dir = tempfile::tempdir().unwrap();
        for i in 0..40 {
            fs::create_dir(dir.path().join(i.to_string())).unwrap();
            fs::write(dir.path().join(format!("{i}/file")), "").unwrap();
        }
        for (limit, limited) in [(0, true), (1, true), (57, true), (79, true), (80, false), (81, false)] {
            let (seen, report) = paths(dir.path(), limit);
            assert_eq!(seen.len() as u64, limit.min(80));
            assert_eq!((report.entries, report.limited), (limit.min(80), limited), "limit {limit}");
        }
    }

    #[test]
    fn names_need_not_be_utf8() {
        let dir = tempfile::tempdir().unwrap();
        let name = OsString::from_vec(b"\xff\xfe".to_vec());
        if let Err(e) = fs::write(dir.path().join(&name), "") {
            eprintln!("skipped: this file system refuses names that are not UTF-8: {e}");
            return;
        }
        let (seen, _) = paths(dir.path(), u64::MAX);
        assert!(seen.iter().next().unwrap().ends_with(b"/\xff\xfe"));
    }

    #[test]
    fn progress_ends_at_the_whole() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b/c/d")).unwrap();
        fs::create_dir_all(dir.path().join("e/f")).unwrap();
        let progress = Progress::default();
        walk(dir.path(), u64::MAX, &progress, |_, _| Ok(())).unwrap();
        assert_eq!(progress.fraction(), 1.0);
    }

    #[test]
    fn a_failure_ends_the_walk() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("x"), "").unwrap();
        let result = walk(dir.path(), u64::MAX, &Progress::default(), |_, _| Err(Failure::usage("no")));
        assert!(result.is_err());
    }
}
