//! The memory of the machine, and the part of it that this process may use.
//!
//! Limits of control groups count, because a container has less than the machine. Limits per process (`ulimit -v`) do
//! not: they bound addresses.

use std::fs;
use std::path::{Path, PathBuf};

/// Memory at a moment, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// The machine's memory, or the limit of the control group if that is less.
    pub total_bytes: u64,
    /// Memory available without swapping. The total, if the system does not report it.
    pub available_bytes: u64,
    /// The limit of the control group, if there is one below the machine's memory.
    pub limit_bytes: Option<u64>,
}

/// Reads the memory; `None` if the system does not report it.
pub fn now() -> Option<Memory> {
    let (total, available) = machine()?;
    let group = fs::read_to_string("/proc/self/cgroup").ok();
    let tightest = group.and_then(|own| tightest(Path::new("/sys/fs/cgroup"), &own));
    Some(combine(total, available, tightest))
}

fn combine(total: u64, available: u64, group: Option<Limit>) -> Memory {
    match group.filter(|group| group.bytes < total) {
        None => Memory { total_bytes: total, available_bytes: available, limit_bytes: None },
        Some(group) => Memory {
            total_bytes: group.bytes,
            available_bytes: available.min(group.bytes.saturating_sub(group.used_bytes)),
            limit_bytes: Some(group.bytes),
        },
    }
}

/// Total and available bytes of the machine.
fn machine() -> Option<(u64, u64)> {
    match fs::read_to_string("/proc/meminfo") {
        Ok(meminfo) => parse_meminfo(&meminfo),
        Err(_) => physical().map(|total| (total, total)),
    }
}

fn parse_meminfo(meminfo: &str) -> Option<(u64, u64)> {
    let field = |name: &str| {
        let line = meminfo.lines().find(|line| line.starts_with(name))?;
        Some(line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
    };
    let total = field("MemTotal:")?;
    Some((total, field("MemAvailable:").or_else(|| field("MemFree:")).unwrap_or(total)))
}

/// Physical memory as POSIX tells it.
fn physical() -> Option<u64> {
    // SAFETY: asks for a number; there is nothing to get wrong.
    let (pages, page_bytes) =
        unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    u64::try_from(pages).ok()?.checked_mul(u64::try_from(page_bytes).ok()?)
}

/// A control group's limit and what counts against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limit {
    bytes: u64,
    used_bytes: u64,
}

/// The limit that leaves least, of the process's group and all above it. `own` is the text of
/// `/proc/self/cgroup`.
fn tightest(root: &Path, own: &str) -> Option<Limit> {
    let mut limits = Vec::new();
    for line in own.lines() {
        // Such as `0::/user.slice` (version 2) or `4:memory:/user.slice` (version 1).
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let (root, read): (PathBuf, fn(&Path) -> Option<Limit>) = if controllers.is_empty() {
            (root.to_owned(), version_2)
        } else if controllers.split(',').any(|one| one == "memory") {
            (root.join("memory"), version_1)
        } else {
            continue;
        };
        // In a container the path may be the host's and not exist; the root is then the group itself.
        let own = root.join(path.trim_start_matches('/'));
        limits.extend(own.ancestors().take_while(|above| above.starts_with(&root)).filter_map(read));
    }
    limits.into_iter().min_by_key(|limit| limit.bytes.saturating_sub(limit.used_bytes))
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// A value of `memory.stat`, which is cache that the kernel drops on demand.
fn inactive_file(group: &Path, name: &str) -> u64 {
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let value = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    value.unwrap_or(0)
}

fn version_2(group: &Path) -> Option<Limit> {
    // "max" is no number, and no limit.
    let bytes = number(&group.join("memory.max"))?;
    let used = number(&group.join("memory.current")).unwrap_or(0);
    Some(Limit { bytes, used_bytes: used.saturating_sub(inactive_file(group, "inactive_file")) })
}

fn version_1(group: &Path) -> Option<Limit> {
    // No limit is a number near 2^63 here.
    let bytes = number(&group.join("memory.limit_in_bytes")).filter(|&bytes| bytes < 1 << 60)?;
    let used = number(&group.join("memory.usage_in_bytes")).unwrap_or(0);
    Some(Limit { bytes, used_bytes: used.saturating_sub(inactive_file(group, "total_inactive_file")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_memory() {
        match now() {
            None => println!("skipped: this system does not tell its memory"),
            Some(memory) => {
                assert!(memory.total_bytes > 16 << 20, "{memory:?}");
                assert!(memory.available_bytes <= memory.total_bytes, "{memory:?}");
                assert!(memory.limit_bytes.is_none_or(|limit| limit == memory.total_bytes), "{memory:?}");
            }
        }
        assert!(physical().is_none_or(|bytes| bytes > 16 << 20));
    }

    #[test]
    fn meminfo_is_in_kibibytes() {
        assert_eq!(
            parse_meminfo("MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable: 50 kB\n"),
            Some((102_400, 51_200))
        );
        assert_eq!(parse_meminfo("MemTotal: 100 kB\nMemFree: 1 kB\n"), Some((102_400, 1024)));
        assert_eq!(parse_meminfo("MemTotal: 100 kB\n"), Some((102_400, 102_400)));
        assert_eq!(parse_meminfo(""), None);
    }

    #[test]
    fn a_limit_counts_only_below_the_machine() {
        let group = |bytes, used_bytes| Some(Limit { bytes, used_bytes });
        assert_eq!(combine(100, 60, None).available_bytes, 60);
        assert_eq!(combine(100, 60, group(200, 0)).limit_bytes, None);
        let memory = combine(100, 60, group(50, 20));
        assert_eq!((memory.total_bytes, memory.available_bytes, memory.limit_bytes), (50, 30, Some(50)));
        assert_eq!(combine(100, 60, group(50, 70)).available_bytes, 0);
    }

    /// A tree of control groups in a directory of its own, removed on drop.
    struct Groups(PathBuf);

    impl Groups {
        fn new(name: &str, files: &[(&str, &str)]) -> Groups {
            let root = std::env::temp_dir().join(format!("forrest-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().expect("below the root")).expect("a temporary directory");
                fs::write(path, text).expect("a temporary file");
            }
            Groups(root)
        }
    }

    impl Drop for Groups {
        fn drop(&mut self) {
            let _gone = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_tightest_group_above_counts() {
        let groups = Groups::new(
            "groups",
            &[
                ("a/memory.max", "1000\n"),
                ("a/memory.current", "900\n"),
                ("a/memory.stat", "anon 1\ninactive_file 300\n"),
                ("a/b/memory.max", "max\n"),
                ("a/b/c/memory.max", "2000\n"),
                ("a/b/c/memory.current", "10\n"),
                ("memory/x/memory.limit_in_bytes", "500\n"),
                ("memory/x/memory.usage_in_bytes", "450\n"),
                ("memory/x/memory.stat", "total_inactive_file 50\n"),
                ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ],
        );
        let limit = |own| tightest(&groups.0, own);
        assert_eq!(limit("0::/a/b/c\n"), Some(Limit { bytes: 1000, used_bytes: 600 }));
        assert_eq!(limit("1:name=systemd:/\n4:cpu,memory:/x\n"), Some(Limit { bytes: 500, used_bytes: 400 }));
        assert_eq!(limit("4:memory:/not/here\n0::/nor/here\n"), None);
        assert_eq!(limit(""), None);
    }
}
