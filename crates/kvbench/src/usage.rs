//! Resources used by a process so far: CPU time, bytes written, peak memory; and the disk usage of a directory. If the
//! system does not report a number, the result is `None`, never a guess.

use crate::machine;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Unit of `st_blocks`.
const BLOCK_BYTES: u64 = 512;

/// CPU time of this process, all threads, the system's work for it included.
pub(crate) fn process_cpu() -> Duration {
    clock(rustix::time::ClockId::ProcessCPUTime)
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu() -> Duration {
    clock(rustix::time::ClockId::ThreadCPUTime)
}

fn clock(id: rustix::time::ClockId) -> Duration {
    let time = rustix::time::clock_gettime(id);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// The number after `name:` in a file of the process's own.
fn own(file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/self/{file}")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Bytes that this process made the system write, or will have made it write: a page counts when it becomes dirty.
pub(crate) fn written_bytes() -> Option<u64> {
    own("io", "write_bytes")
}

/// Bytes that the system read from devices for this process so far: what was cached does not count.
pub(crate) fn read_bytes() -> Option<u64> {
    own("io", "read_bytes")
}

/// Read requests that the device of a directory has completed so far, those for other processes included. Neighbours
/// that the system merged are one request.
pub(crate) fn read_requests(directory: &Path) -> Option<u64> {
    let device = fs::metadata(directory).ok()?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let stat = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
    fs::read_to_string(stat).ok()?.split_whitespace().next()?.parse().ok()
}

/// What this process occupies beyond what it did at one time, pages of mapped files included.
#[derive(Clone, Copy)]
pub(crate) struct Growth(Option<u64>);

impl Growth {
    /// From now on. What the process occupied at its peak before is forgotten where the system lets it.
    pub(crate) fn begin() -> Growth {
        machine::begin_peak();
        Growth(own("status", "VmRSS"))
    }

    /// Most bytes at once since then.
    pub(crate) fn peak_bytes(self) -> Option<u64> {
        self.over("VmHWM")
    }

    /// Bytes now.
    pub(crate) fn bytes(self) -> Option<u64> {
        self.over("VmRSS")
    }

    fn over(self, name: &str) -> Option<u64> {
        Some(own("status", name)?.saturating_sub(self.0?) << 10)
    }
}

/// Whether a thread of this process other than the calling one runs, or waits for a disk.
pub(crate) fn others_work() -> bool {
    let own = fs::read_link("/proc/thread-self").ok();
    let own = own.as_deref().and_then(Path::file_name);
    let works = |task: fs::DirEntry| {
        let stat = fs::read_to_string(task.path().join("stat")).ok()?;
        // The name of a thread may contain brackets, so the state follows the last one.
        let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
        Some(matches!(state, 'R' | 'D') && Some(task.file_name().as_os_str()) != own)
    };
    fs::read_dir("/proc/self/task").into_iter().flatten().flatten().filter_map(works).any(|works| works)
}

/// Lets the system write what it has not written of the file system that a directory is on. So what a process writes
/// afterwards counts: a page that was dirty before would not. Where the system cannot, it stays uncounted.
pub(crate) fn clean(directory: &Path) {
    if let Ok(directory) = fs::File::open(directory) {
        let _ = rustix::fs::syncfs(&directory);
    }
}

/// Bytes that the files in a directory occupy on its device.
pub(crate) fn disk_bytes(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let occupied = |entry: fs::DirEntry| match entry.metadata() {
        Ok(of) if of.is_dir() => disk_bytes(&entry.path()),
        Ok(of) => of.blocks() * BLOCK_BYTES,
        // It may have been removed meanwhile.
        Err(_) => 0,
    };
    entries.map(occupied).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_found_on_the_disk() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("inner")).unwrap();
        let file = directory.path().join("inner/file");
        fs::write(&file, vec![1; 100_000]).unwrap();
        fs::File::open(&file).unwrap().sync_all().unwrap();
        assert!(disk_bytes(directory.path()) >= 100_000);
        let (bytes, requests) = (read_bytes(), read_requests(directory.path()));
        drop(fs::read(file).unwrap());
        assert!(read_bytes() >= bytes && read_requests(directory.path()) >= requests, "they only grow");
        assert!(process_cpu() >= thread_cpu());
        let growth = Growth::begin();
        let more = std::hint::black_box(vec![1_u8; 256 << 20]);
        // Other tests of this process take and give back memory too, but not as much.
        let is_most = |bytes: Option<u64>| bytes.is_none_or(|bytes| bytes > 128 << 20);
        assert!(is_most(growth.peak_bytes()) && is_most(growth.bytes()));
        drop(more);
    }
}
