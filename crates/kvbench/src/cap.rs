//! A memory limit for the arms of a run, including the page cache of their files: a control group that is removed
//! after the run.
//!
//! Both versions of control groups are supported. Creating a group requires root or a group delegated to this user;
//! otherwise the error says so.

use crate::errors::told;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// How the names of such groups begin.
const PREFIX: &str = "kvbench-memory-";
/// Files that hold the limits of memory and of swap: of version 2, of version 1.
const LIMITS: [(&str, &str); 2] =
    [("memory.max", "memory.swap.max"), ("memory.limit_in_bytes", "memory.swappiness")];
/// Files that count the processes killed by the OOM killer, in the same order.
const EVENTS: [&str; 2] = ["memory.events", "memory.oom_control"];

/// A control group with a memory limit.
pub(crate) struct Cap {
    group: PathBuf,
    bytes: u64,
}

impl Cap {
    /// Creates a group without processes, whose limit is `bytes`.
    pub(crate) fn new(bytes: u64) -> io::Result<Cap> {
        let read = |path| fs::read_to_string(path).map_err(|error| told(path, &error));
        let (mounts, own) = (read("/proc/self/mountinfo")?, read("/proc/self/cgroup")?);
        let mut fault = None;
        for place in places(&mounts, &own) {
            let group = place.join(format!("{PREFIX}{}", std::process::id()));
            match fs::create_dir(&group) {
                // It is removed however this ends.
                Ok(()) => {
                    let cap = Cap { group, bytes };
                    match cap.limit() {
                        Ok(()) => return Ok(cap),
                        Err(error) => fault = fault.or(Some(told(cap.group.display(), &error))),
                    }
                }
                Err(error) => fault = fault.or(Some(told(place.display(), &error))),
            }
        }
        let why = fault
            .map_or_else(|| "no control groups for memory are mounted".to_owned(), |fault| fault.to_string());
        Err(io::Error::other(format!(
            "memory cannot be limited: {why} (it takes root, or a group of this user's)"
        )))
    }

    fn limit(&self) -> io::Result<()> {
        let known = LIMITS.iter().find(|(most, _)| self.group.join(most).exists());
        let Some((most, swap)) = known else {
            return Err(io::Error::other("memory is not limited by its group"));
        };
        fs::write(self.group.join(most), self.bytes.to_string())?;
        // There may be no swap to be kept from.
        drop(fs::write(self.group.join(swap), "0"));
        Ok(())
    }

    /// Its directory, by which an arm joins it.
    pub(crate) fn group(&self) -> &Path {
        &self.group
    }

    /// Its limit, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of processes in the group that the OOM killer killed.
    pub(crate) fn killed(&self) -> u64 {
        let count = |name: &&str| {
            let text = fs::read_to_string(self.group.join(name)).ok()?;
            text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok())
        };
        EVENTS.iter().find_map(count).unwrap_or(0)
    }
}

impl Drop for Cap {
    fn drop(&mut self) {
        // What an arm has left of it goes with the arm, and the sweeper tries again.
        drop(remove(&self.group));
    }
}

/// Removes such a group; it must be empty.
pub(crate) fn remove(group: &Path) -> io::Result<()> {
    let name = group.file_name().and_then(|name| name.to_str());
    if name.is_none_or(|name| !name.starts_with(PREFIX)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is no group of a run"));
    }
    match fs::remove_dir(group) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Puts this process in a group, with all that it allocates and all files that it reads and writes first.
pub(crate) fn join(group: &Path) -> io::Result<()> {
    let processes = group.join("cgroup.procs");
    fs::write(&processes, std::process::id().to_string()).map_err(|error| told(processes.display(), &error))
}

/// Directories in which a group may be made, the nearest first.
fn places(mounts: &str, own: &str) -> Vec<PathBuf> {
    let mut places = Vec::new();
    for line in mounts.lines() {
        let Some((mount, system)) = line.split_once(" - ") else { continue };
        let mut mount = mount.split(' ').skip(3);
        let (Some(root), Some(at)) = (mount.next(), mount.next()) else { continue };
        let mut system = system.split(' ');
        let (kind, options) = (system.next(), system.nth(1).unwrap_or_default());
        let first = kind == Some("cgroup") && options.split(',').any(|option| option == "memory");
        if !first && kind != Some("cgroup2") {
            continue;
        }
        // `NUMBER:CONTROLLERS:GROUP`; version 2 names no controllers.
        let of = |line: &&str| match line.split(':').nth(1) {
            Some(controllers) if first => controllers.split(',').any(|one| one == "memory"),
            Some(controllers) => controllers.is_empty(),
            None => false,
        };
        let group = own.lines().find(of).and_then(|line| line.splitn(3, ':').nth(2)).unwrap_or("/");
        let within = Path::new(group).strip_prefix(root).or_else(|_| Path::new(group).strip_prefix("/"));
        let nearest = within.map_or_else(|_| PathBuf::from(at), |within| Path::new(at).join(within));
        let above = nearest.ancestors().take_while(|place| place.starts_with(at));
        // Without a slash at the end.
        places.extend(above.map(|place| place.components().collect::<PathBuf>()));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "30 24 0:26 / /sys/fs/cgroup ro,nosuid shared:9 - tmpfs tmpfs ro,mode=755
35 30 0:32 / /sys/fs/cgroup/memory rw,nosuid shared:16 - cgroup cgroup rw,memory
36 30 0:33 / /sys/fs/cgroup/cpu rw,nosuid shared:17 - cgroup cgroup rw,cpu";
    const SECOND: &str = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";

    #[test]
    fn groups_are_looked_for_from_ones_own_upwards() {
        let found = |mounts, own| {
            places(mounts, own).into_iter().map(|place| place.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(
            found(FIRST, "4:memory:/a/b\n3:cpu:/c\n0::/"),
            ["/sys/fs/cgroup/memory/a/b", "/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/memory"]
        );
        assert_eq!(found(FIRST, ""), ["/sys/fs/cgroup/memory"]);
        assert_eq!(found(SECOND, "0::/user.slice\n"), ["/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"]);
        let bound = "35 30 0:32 /docker/1 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
        assert_eq!(
            found(bound, "4:memory:/docker/1/x"),
            ["/sys/fs/cgroup/memory/x", "/sys/fs/cgroup/memory"]
        );
        assert_eq!(found("nonsense\n - \na - b", "x"), [""; 0]);
    }

    #[test]
    fn nothing_else_is_removed() {
        assert!(remove(Path::new("/sys/fs/cgroup/other")).is_err());
        assert!(remove(Path::new("/")).is_err());
        assert!(remove(&Path::new("/nowhere").join(format!("{PREFIX}1"))).is_ok());
    }

    #[test]
    fn a_group_is_made_and_gone() {
        match Cap::new(64 << 20) {
            Ok(cap) => {
                let group = cap.group().to_owned();
                assert!(group.join("cgroup.procs").exists());
                assert_eq!(cap.killed(), 0);
                drop(cap);
                assert!(!group.exists());
            }
            Err(error) => eprintln!("skipped: {error}"),
        }
    }
}
