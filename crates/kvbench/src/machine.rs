//! Facts about the machine and its available memory. If the system does not report a fact, the result is "unknown",
//! never a guess.

use crate::sizes;
use serde::{Deserialize, Serialize};
use std::fs;

/// The machine, as a record describes it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// Model of the processor.
    pub(crate) cpu: Option<String>,
    /// CPUs that this process may use.
    pub(crate) cpus: usize,
    /// Size of the last-level cache, as the system writes it.
    pub(crate) last_level_cache: Option<String>,
    /// Whether it is a virtual machine.
    pub(crate) virtual_machine: Option<bool>,
    /// Memory in all.
    pub(crate) memory_bytes: Option<u64>,
    /// The setting for transparent huge pages.
    pub(crate) transparent_huge_pages: Option<String>,
    /// Explicit huge pages free, in bytes.
    pub(crate) huge_pages_free_bytes: u64,
    /// Operating system, kernel, architecture.
    pub(crate) system: String,
    /// Runnable processes over the last minute before the run.
    pub(crate) load_1_min: Option<f64>,
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// The value of a `Name:   value` line.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines()
        .find_map(|line| line.split_once(':').filter(|(key, _)| key.trim() == name))
        .map(|(_, v)| v.trim())
}

fn kib(text: &str, name: &str) -> Option<u64> {
    field(text, name)?.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
}

impl Machine {
    /// Describes this machine.
    pub(crate) fn describe() -> Self {
        let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
        let meminfo = read("/proc/meminfo").unwrap_or_default();
        let caches =
            (0..8).rev().map(|level| format!("/sys/devices/system/cpu/cpu0/cache/index{level}/size"));
        let kernel = read("/proc/sys/kernel/osrelease").unwrap_or_default();
        let chosen = |text: String| text.split('[').nth(1)?.split(']').next().map(str::to_owned);
        Machine {
            cpu: field(&cpuinfo, "model name").map(str::to_owned),
            cpus: crate::affinity::cpus().len(),
            last_level_cache: caches.into_iter().find_map(|path| read(&path)),
            virtual_machine: field(&cpuinfo, "flags")
                .map(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            memory_bytes: kib(&meminfo, "MemTotal"),
            transparent_huge_pages: read("/sys/kernel/mm/transparent_hugepage/enabled").and_then(chosen),
            huge_pages_free_bytes: huge_pages_free_bytes(),
            system: format!("{} {kernel} {}", std::env::consts::OS, std::env::consts::ARCH),
            load_1_min: read("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok()),
        }
    }

    /// The machine in four lines, each of which fits a terminal.
    pub(crate) fn lines(&self) -> String {
        let unknown = || "unknown".to_owned();
        format!(
            "{}\n{} CPUs{}, last-level cache {}, memory {}\n{}\nhuge pages: transparent {}, explicit {} free",
            self.cpu.clone().unwrap_or_else(unknown),
            self.cpus,
            if self.virtual_machine == Some(true) { " (virtual)" } else { "" },
            self.last_level_cache.clone().unwrap_or_else(unknown),
            self.memory_bytes.map_or_else(unknown, sizes::text),
            self.system,
            self.transparent_huge_pages.clone().unwrap_or_else(unknown),
            sizes::text(self.huge_pages_free_bytes)
        )
    }
}

/// Bytes of explicit huge pages of all sizes that are neither used nor reserved.
pub(crate) fn huge_pages_free_bytes() -> u64 {
    let Ok(sizes) = fs::read_dir("/sys/kernel/mm/hugepages") else { return 0 };
    let free = |size: fs::DirEntry| {
        let kib: u64 =
            size.file_name().to_str()?.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        let count = |name| read(size.path().join(name).to_str()?)?.parse::<u64>().ok();
        Some((kib << 10) * count("free_hugepages")?.saturating_sub(count("resv_hugepages")?))
    };
    sizes.flatten().filter_map(free).sum()
}

/// Bytes that can still be allocated without swapping, except explicit huge pages; `None` if the system does not report
/// it.
pub(crate) fn available_bytes() -> Option<u64> {
    kib(&read("/proc/meminfo")?, "MemAvailable")
}

/// What the machine under a virtual one has taken of its CPUs, and all the time that they had, in the system's ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stolen {
    stolen: u64,
    all: u64,
}

impl Stolen {
    /// What was stolen since an earlier look, in percent of all time.
    pub(crate) fn percent_since(self, earlier: Stolen) -> f64 {
        let all = self.all.saturating_sub(earlier.all);
        100.0 * self.stolen.saturating_sub(earlier.stolen) as f64 / all.max(1) as f64
    }
}

/// CPU time stolen since the machine started; `None` if the system does not report it.
pub(crate) fn stolen() -> Option<Stolen> {
    parse_stolen(&read("/proc/stat")?)
}

/// Of the first line: user, nice, system, idle, waiting, interrupts, soft interrupts, stolen; guests are in the first
/// two.
fn parse_stolen(text: &str) -> Option<Stolen> {
    let numbers = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let ticks: Vec<u64> = numbers.take(8).map_while(|number| number.parse().ok()).collect();
    Some(Stolen { stolen: *ticks.get(7)?, all: ticks.iter().sum() })
}

/// Bytes of memory that this process occupies by itself, explicit huge pages included, pages of files (its code among
/// them) left out.
pub(crate) fn resident_bytes() -> Option<u64> {
    Occupied::of_process().map(|occupied| occupied.bytes)
}

/// What a process occupies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Occupied {
    /// Bytes of its own, explicit huge pages included, pages of files (its code among them) left out.
    pub(crate) bytes: u64,
    /// Of these, bytes on huge pages, explicit or transparent; `None` if the system does not report it.
    huge_bytes: Option<u64>,
    /// Of these, bytes on explicit ones.
    explicit_bytes: u64,
    /// Bytes of files.
    file_bytes: u64,
}

impl Occupied {
    /// The memory of this process; `None` if the system does not report it. The system visits every page, which is
    /// slow.
    pub(crate) fn of_process() -> Option<Occupied> {
        Occupied::of("self")
    }

    /// The same of another process.
    pub(crate) fn of_other(process: u32) -> Option<Occupied> {
        Occupied::of(&process.to_string())
    }

    fn of(process: &str) -> Option<Occupied> {
        // The kernel keeps the counts in `status` per processor; they may lag by some hundred pages.
        let exactly = read(&format!("/proc/{process}/smaps_rollup")).and_then(|text| parse_rollup(&text));
        exactly.or_else(|| parse_status(&read(&format!("/proc/{process}/status"))?))
    }

    /// Percentage of the memory added since `earlier` that is on huge pages; `None` if nothing was added.
    pub(crate) fn huge_percent_since(self, earlier: Occupied) -> Option<f64> {
        let huge = self.huge_bytes?.saturating_sub(earlier.huge_bytes?);
        let all = self.bytes.checked_sub(earlier.bytes).filter(|all| *all > 0)?;
        Some(100.0 * huge.min(all) as f64 / all as f64)
    }

    /// The peak of this process's own memory since [`begin_peak`], where `self` is its memory now; as exact as the
    /// system's `status`. `None` if `status` does not have it.
    pub(crate) fn peak_bytes(self) -> Option<u64> {
        let peak = kib(&read("/proc/self/status")?, "VmHWM")?;
        // Explicit huge pages are not in it, and files are.
        let counted = self.bytes.checked_sub(self.explicit_bytes)? + self.file_bytes;
        Some(self.bytes + peak.saturating_sub(counted))
    }
}

/// The sums over all mappings: explicit huge pages are in none of the others.
fn parse_rollup(text: &str) -> Option<Occupied> {
    let sum = |names: &[&str]| names.iter().map(|name| kib(text, name)).sum::<Option<u64>>();
    let (explicit_bytes, resident) = (sum(&["Shared_Hugetlb", "Private_Hugetlb"])?, kib(text, "Rss")?);
    // Memory that is shared without a file came later than the others.
    let own = kib(text, "Anonymous")? + kib(text, "Pss_Shmem").unwrap_or(0);
    Some(Occupied {
        bytes: own + explicit_bytes,
        huge_bytes: Some(explicit_bytes + sum(&["AnonHugePages", "ShmemPmdMapped"])?),
        explicit_bytes,
        file_bytes: resident.saturating_sub(own),
    })
}

/// The same of a process's status, which does not know of transparent huge pages.
fn parse_status(text: &str) -> Option<Occupied> {
    let explicit_bytes = kib(text, "HugetlbPages").unwrap_or(0);
    let own = kib(text, "RssAnon")? + kib(text, "RssShmem")?;
    let file_bytes = kib(text, "RssFile")?;
    Some(Occupied { bytes: own + explicit_bytes, huge_bytes: None, explicit_bytes, file_bytes })
}

/// Forgets the most that this process has occupied, so that [`Occupied::peak_bytes`] is of what follows; false if the
/// system does not let it.
pub(crate) fn begin_peak() -> bool {
    fs::write("/proc/self/clear_refs", "5").is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_found() {
        let at = |text| parse_stolen(text).unwrap();
        let before = at("cpu  100 0 50 800 5 3 2 40 7 0\ncpu0 1 2 3");
        let after = at("cpu  150 0 50 840 5 3 2 50 9 0\ncpu0 1 2 3");
        assert_eq!(after.percent_since(before), 10.0);
        assert_eq!(before.percent_since(after), 0.0);
        assert!(
            ["", "cpu", "cpu  1 2 3 4", "cpu  a b c d e f g h"]
                .iter()
                .all(|text| parse_stolen(text).is_none())
        );
    }

    #[test]
    fn each_line_fits_a_terminal() {
        // A processor's own name has 48 bytes at the most.
        let machine = Machine {
            cpu: Some("N".repeat(48)),
            cpus: 1024,
            last_level_cache: Some("1048576K".to_owned()),
            virtual_machine: Some(true),
            memory_bytes: Some(u64::MAX),
            transparent_huge_pages: Some("madvise".to_owned()),
            huge_pages_free_bytes: u64::MAX,
            system: "s".repeat(70),
            load_1_min: None,
        };
        assert!(machine.lines().lines().all(|line| line.len() <= 80), "{}", machine.lines());
    }

    #[test]
    fn huge_pages_are_told_from_others() {
        let text = |anonymous: u64, explicit: u64, transparent: u64| {
            let resident = anonymous + 700;
            format!(
                "55-7f ---p 00000000 00:00 0    [rollup]\nRss: {resident} kB\nPss_Shmem: 0 kB\nAnonymous: {anonymous} kB\n\
                 AnonHugePages: {transparent} kB\nShmemPmdMapped: 0 kB\nShared_Hugetlb: 0 kB\nPrivate_Hugetlb: {explicit} kB\n"
            )
        };
        let at =
            |anonymous, explicit, transparent| parse_rollup(&text(anonymous, explicit, transparent)).unwrap();
        let (before, after) = (at(1000, 0, 0), at(3000, 2000, 1000));
        assert_eq!((after.bytes, after.huge_bytes), (5000 << 10, Some(3000 << 10)));
        assert_eq!((after.explicit_bytes, after.file_bytes), (2000 << 10, 700 << 10));
        assert_eq!(after.huge_percent_since(before), Some(75.0));
        assert_eq!((before.huge_percent_since(after), after.huge_percent_since(after)), (None, None));
        assert_eq!(at(3000, 0, 0).huge_percent_since(before), Some(0.0));
        let status =
            "VmHWM: 9 kB\nRssAnon: 2999 kB\nRssFile: 700 kB\nRssShmem: 1 kB\nHugetlbPages: 2000 kB\n";
        assert_eq!(parse_status(status), Some(Occupied { huge_bytes: None, ..after }));
        assert_eq!(parse_status(status).unwrap().huge_percent_since(before), None);
        assert!(
            ["", "Rss: 1 kB\n"]
                .iter()
                .all(|text| parse_rollup(text).is_none() && parse_status(text).is_none())
        );
    }

    #[test]
    fn the_peak_is_at_least_what_is_occupied() {
        let Some(before) = Occupied::of_process() else {
            return println!("skipped: the system does not tell");
        };
        println!("the peak can be forgotten: {}", begin_peak());
        let held = std::hint::black_box(vec![1_u8; 32 << 20]);
        let after = Occupied::of_process().unwrap();
        assert!(after.bytes >= before.bytes / 2 && after.bytes >= held.len() as u64, "{before:?} {after:?}");
        assert!(after.peak_bytes().is_none_or(|peak| peak >= after.bytes), "{after:?}");
    }
}
