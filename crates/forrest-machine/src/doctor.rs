//! What this machine gives Forrest, as findings, each with what to do about it.
//!
//! [`examine`] looks. `forrest doctor` prints the list, and `kvbench doctor` the same with what only measuring needs.
//! The judgement is in pure functions of the facts, so that each verdict is tested on any machine. Looking changes
//! nothing that lasts: it opens and closes a counter, and touches 8 MiB of memory for a moment.
//!
//! ```
//! for finding in forrest_machine::doctor::examine() {
//!     println!("{finding}");
//! }
//! ```

use std::fmt;

use crate::barrier;
use crate::counters;
use crate::cpu;
use crate::files;
use crate::memory::{self, Memory};
use crate::pages::{
    self, Coverage, Explicit, HUGE_2M_BYTES, Numa, Pages, Region, Transparent, TransparentMode,
};

/// How well a thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// As good as it gets; nothing to do.
    Good,
    /// Works, and could be better.
    Fair,
    /// Works at a price that will be felt.
    Poor,
    /// Not there; Forrest does without.
    Absent,
}

impl Verdict {
    /// One lower-case word.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Good => "good",
            Verdict::Fair => "fair",
            Verdict::Poor => "poor",
            Verdict::Absent => "absent",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The subject, in at most twelve characters; each topic occurs once.
    pub topic: &'static str,
    /// The verdict.
    pub state: Verdict,
    /// The finding, in one line.
    pub what: String,
    /// What to do, with the exact commands; `None` if there is nothing to do. Of several lines, those after the
    /// first are commands to choose from.
    pub advice: Option<String>,
}

impl Finding {
    /// One without advice.
    pub fn new(topic: &'static str, state: Verdict, what: impl Into<String>) -> Finding {
        Finding { topic, state, what: what.into(), advice: None }
    }

    /// The same with advice.
    #[must_use]
    pub fn advise(self, advice: impl Into<String>) -> Finding {
        Finding { advice: Some(advice.into()), ..self }
    }
}

/// A line for the finding, and an indented one for each line of the advice.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<6}  {:<12}  {}", self.state, self.topic, self.what)?;
        self.advice
            .iter()
            .flat_map(|advice| advice.lines())
            .try_for_each(|line| write!(f, "\n        {line}"))
    }
}

/// Looks at everything. Takes some milliseconds.
pub fn examine() -> Vec<Finding> {
    let memory = memory::now();
    let allowed = cpu::allowed().map(|cpus| cpus.len());
    vec![
        processor(cpu::model().as_deref(), allowed, cpu::parallelism(), &cpu::features(), &cpu::caches()),
        main_memory(memory, pages::nodes().len()),
        explicit_pages(&pages::explicit(), memory),
        transparent_pages(pages::transparent().as_ref(), trial()),
        barriers(barrier::init()),
        performance_counters(counters::probe()),
        open_files(files::limit()),
    ]
}

/// Touches a little memory with transparent huge pages requested, and reads which pages back it.
fn trial() -> Option<Coverage> {
    const BYTES: usize = 4 * HUGE_2M_BYTES;
    let region = Region::reserve(BYTES, Pages::Transparent, Numa::Local).ok()?;
    region.commit(0, BYTES).ok()?;
    for at in (0..BYTES).step_by(4096) {
        // SAFETY: the range is committed, and only this function uses the region.
        unsafe { region.base().add(at).write(1) };
    }
    region.coverage()
}

fn processor(
    model: Option<&str>,
    allowed: Option<usize>,
    parallelism: usize,
    features: &[&str],
    caches: &[cpu::Cache],
) -> Finding {
    let mut what = model.unwrap_or("unknown model").to_owned();
    let count = allowed.unwrap_or(parallelism);
    what += &format!(", {count} processor{} allowed", if count == 1 { "" } else { "s" });
    if parallelism < count {
        what += &format!(" (a quota lets {parallelism} run at once)");
    }
    for cache in caches.iter().filter(|cache| cache.kind != cpu::CacheKind::Instruction) {
        what += &format!(", L{} {}", cache.level, size(cache.bytes));
    }
    let known = ["avx512bw", "avx2", "sse4.2", "sve2", "sve", "neon"];
    match known.iter().find(|name| features.contains(name)) {
        Some(best) => {
            what += &format!(", {best}");
            let state = if *best == "sse4.2" { Verdict::Fair } else { Verdict::Good };
            Finding::new("processor", state, what)
        }
        None => Finding::new("processor", Verdict::Fair, what + ", no vector instructions that are used"),
    }
}

fn main_memory(memory: Option<Memory>, nodes: usize) -> Finding {
    const SCARCE_BYTES: u64 = 1 << 30;
    let Some(memory) = memory else {
        return Finding::new("memory", Verdict::Fair, "the system does not tell how much there is");
    };
    let mut what = format!("{}, {} available", size(memory.total_bytes), size(memory.available_bytes));
    if memory.limit_bytes.is_some() {
        what += ", limited by the control group";
    }
    if nodes > 1 {
        what += &format!(", on {nodes} nodes");
    }
    if memory.available_bytes >= SCARCE_BYTES {
        return Finding::new("memory", Verdict::Good, what);
    }
    let finding = Finding::new("memory", Verdict::Fair, what);
    if memory.limit_bytes.is_some() {
        finding.advise("Raise the control group's limit (memory.max), or free memory within the group.")
    } else {
        finding.advise("Close what takes the memory (ps aux --sort=-rss | head shows it).")
    }
}

fn explicit_pages(pools: &[Explicit], memory: Option<Memory>) -> Finding {
    const TOPIC: &str = "huge pages";
    if pools.is_empty() {
        return Finding::new(TOPIC, Verdict::Absent, "no explicit huge pages on this system");
    }
    let reserved: Vec<String> = pools
        .iter()
        .filter(|pool| pool.reserved > 0)
        .map(|pool| {
            let page = size(pool.page_bytes as u64);
            format!("{} of {} pages of {page} free", pool.available(), pool.reserved)
        })
        .collect();
    if pools.iter().any(|pool| pool.available() > 0) {
        return Finding::new(TOPIC, Verdict::Good, reserved.join(", "));
    }
    // Half of the available memory, so that the advice works as it is.
    let half = memory.map_or(1 << 30, |memory| memory.available_bytes / 2);
    let advice: Vec<String> = pools
        .iter()
        .map(|pool| (pool, pool.reserved + half / pool.page_bytes as u64))
        .filter(|(pool, count)| *count > pool.reserved)
        .map(|(pool, count)| {
            let page = size(pool.page_bytes as u64);
            if pool.page_bytes == HUGE_2M_BYTES {
                format!("sudo sysctl vm.nr_hugepages={count}  # pages of {page}")
            } else {
                format!("echo {count} | sudo tee {}  # pages of {page}", pool.setting_path())
            }
        })
        .collect();
    let finding = if reserved.is_empty() {
        Finding::new(TOPIC, Verdict::Absent, "no explicit huge pages are set aside")
    } else {
        Finding::new(TOPIC, Verdict::Fair, reserved.join(", "))
    };
    if advice.is_empty() {
        return finding.advise("Free memory first: there is too little to set any aside.");
    }
    finding.advise(format!(
        "Set pages aside, best soon after the start of the machine; for half of the memory available, one of:\n{}",
        advice.join("\n")
    ))
}

fn transparent_pages(setting: Option<&Transparent>, trial: Option<Coverage>) -> Finding {
    const TOPIC: &str = "transparent";
    let Some(setting) = setting else {
        return Finding::new(TOPIC, Verdict::Absent, "no transparent huge pages on this system");
    };
    let mode = match setting.mode {
        TransparentMode::Always => "always",
        TransparentMode::Madvise => "where asked for",
        TransparentMode::Never => "never",
    };
    let mut what = format!("transparent huge pages: {mode}");
    if setting.mode == TransparentMode::Never {
        return Finding::new(TOPIC, Verdict::Poor, what)
            .advise(format!("echo madvise | sudo tee {}", setting.setting_path));
    }
    if setting.disabled_here {
        return Finding::new(TOPIC, Verdict::Poor, what + ", but this process gave them up")
            .advise("Start it without PR_SET_THP_DISABLE (a service manager or wrapper sets it).");
    }
    if !setting.usable() {
        let page = setting.page_bytes.map_or_else(|| "unknown size".to_owned(), |bytes| size(bytes as u64));
        return Finding::new(TOPIC, Verdict::Absent, format!("{what}, but of {page}, which is too large"))
            .advise("Set explicit pages of 2 MiB aside, or use a kernel with base pages of 4 KiB.");
    }
    let Some(trial) = trial.filter(|trial| trial.resident_bytes > 0) else {
        return Finding::new(TOPIC, Verdict::Good, what);
    };
    let (had, of) = (size(trial.transparent_bytes), size(trial.resident_bytes));
    what += &format!("; a trial had {had} of {of}");
    if trial.huge_share() > 0.9 {
        return Finding::new(TOPIC, Verdict::Good, what);
    }
    Finding::new(TOPIC, Verdict::Fair, what).advise(
        "Memory is scarce or in small pieces; to gather it: echo 1 | sudo tee /proc/sys/vm/compact_memory",
    )
}

fn barriers(mode: barrier::Mode) -> Finding {
    match mode {
        barrier::Mode::Asymmetric => {
            Finding::new("barriers", Verdict::Good, "membarrier: readers pay no fence")
        }
        barrier::Mode::Symmetric => {
            let finding =
                Finding::new("barriers", Verdict::Fair, "no membarrier: each read pays a full fence");
            if cfg!(target_os = "linux") {
                finding
                    .advise("Linux 4.14 or newer has it; in a container, allow the system call membarrier.")
            } else {
                finding
            }
        }
    }
}

fn performance_counters(support: counters::Support) -> Finding {
    const TOPIC: &str = "counters";
    let state = match support.level {
        counters::Level::Hardware => return Finding::new(TOPIC, Verdict::Good, support.to_string()),
        counters::Level::Software => Verdict::Fair,
        counters::Level::Nothing => Verdict::Absent,
    };
    let finding = Finding::new(TOPIC, state, support.to_string());
    match support.errno {
        Some(libc::EACCES | libc::EPERM) => match support.paranoid {
            Some(3..) => finding.advise("sudo sysctl kernel.perf_event_paranoid=2"),
            _ => finding.advise("In a container, allow the system call perf_event_open (--cap-add PERFMON)."),
        },
        Some(libc::ENOSYS) => finding.advise("Use a kernel built with CONFIG_PERF_EVENTS."),
        Some(_) => finding.advise(
            "A virtual machine shows the processor's counters only if its host lets it (QEMU: -cpu host,pmu=on).",
        ),
        None => finding,
    }
}

fn open_files(limit: files::Limit) -> Finding {
    /// Enough for a large store's tables and many connections.
    const ENOUGH: u64 = 4096;
    const TOPIC: &str = "open files";
    let told = |limit: Option<u64>| limit.map_or_else(|| "no limit".to_owned(), |limit| limit.to_string());
    let what = format!("{} at once (can be raised to {})", told(limit.soft), told(limit.hard));
    let soft = limit.soft.unwrap_or(u64::MAX);
    if soft >= ENOUGH {
        return Finding::new(TOPIC, Verdict::Good, what);
    }
    let finding = Finding::new(TOPIC, if soft < 256 { Verdict::Poor } else { Verdict::Fair }, what);
    if limit.hard.is_none_or(|hard| hard >= ENOUGH) {
        let wanted = limit.hard.unwrap_or(65_536).min(65_536);
        finding.advise(format!("ulimit -n {wanted}  # in the shell that starts Forrest"))
    } else {
        finding.advise(
            "Raise the hard limit: a line '* hard nofile 65536' in /etc/security/limits.conf, or LimitNOFILE=65536 \
             in the service's unit; then log in again or restart it.",
        )
    }
}

/// A size in the largest binary unit that leaves at least 1, with one decimal where it is not whole.
pub fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.into_iter().find(|(_, unit)| bytes >= *unit) {
        None => format!("{bytes} bytes"),
        Some((name, unit)) if bytes.is_multiple_of(unit) => format!("{} {name}", bytes / unit),
        Some((name, unit)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
    }
}

#[cfg(test)]
#[path = "doctor_tests.rs"]
mod tests;
