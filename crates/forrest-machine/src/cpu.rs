//! Facts about the processor, and pinning threads to it.
//!
//! Everything is found out at run time: what users build needs no `target-cpu` and runs on any processor of its
//! architecture. Answers that the system does not give are empty, never guessed.

use std::fs;
use std::io;
use std::path::Path;

/// Pushes the names of those features that the processor has.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! detected {
    ($detect:tt: $($name:tt)*) => {{
        let mut names: Vec<&'static str> = Vec::new();
        $(if std::arch::$detect!($name) { names.push($name); })*
        names
    }};
}

/// Instruction sets beyond the architecture's base that Forrest could use and this processor (and kernel) has,
/// by the names that the compiler gives them, small ones first.
#[cfg(target_arch = "x86_64")]
pub fn features() -> Vec<&'static str> {
    detected!(is_x86_feature_detected:
        "sse3" "ssse3" "sse4.1" "sse4.2" "popcnt" "lzcnt" "bmi1" "bmi2" "avx" "avx2" "pclmulqdq" "aes" "vaes"
        "sha" "avx512f" "avx512bw" "avx512vl" "avx512dq" "avx512cd" "avx512vbmi" "avx512vbmi2")
}

/// Instruction sets beyond the architecture's base that Forrest could use and this processor (and kernel) has,
/// by the names that the compiler gives them, small ones first.
#[cfg(target_arch = "aarch64")]
pub fn features() -> Vec<&'static str> {
    detected!(is_aarch64_feature_detected: "neon" "crc" "aes" "pmull" "sha2" "lse" "lse2" "rcpc" "dotprod" "sve" "sve2")
}

/// Instruction sets: none are known for this architecture.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn features() -> Vec<&'static str> {
    Vec::new()
}

/// The processor's name, as `/proc/cpuinfo` has it; `None` on systems without that file.
pub fn model() -> Option<String> {
    model_in(&fs::read_to_string("/proc/cpuinfo").ok()?)
}

/// Finds a name in the text of `/proc/cpuinfo`: `model name`, or on AArch64 the numbers of maker and part.
fn model_in(cpuinfo: &str) -> Option<String> {
    let field = |name: &str| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    };
    field("model name").filter(|name| !name.is_empty()).or_else(|| {
        let (maker, part) = (field("CPU implementer")?, field("CPU part")?);
        let known = match (maker.as_str(), part.as_str()) {
            ("0x41", "0xd03") => Some("Arm Cortex-A53"),
            ("0x41", "0xd08") => Some("Arm Cortex-A72"),
            ("0x41", "0xd0b") => Some("Arm Cortex-A76"),
            ("0x41", "0xd0c") => Some("Arm Neoverse N1"),
            ("0x41", "0xd40") => Some("Arm Neoverse V1"),
            ("0x41", "0xd49") => Some("Arm Neoverse N2"),
            ("0x41", "0xd4f") => Some("Arm Neoverse V2"),
            ("0xc0", "0xac3") => Some("Ampere-1"),
            _ => None,
        };
        Some(known.map_or_else(|| format!("AArch64, maker {maker}, part {part}"), str::to_owned))
    })
}

/// The processors that this thread may run on, by number; `None` where the system does not tell.
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
pub fn allowed() -> Option<Vec<usize>> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    let set = sched_getaffinity(None).ok()?;
    Some((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// The processors that this thread may run on: this system does not tell.
#[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
pub fn allowed() -> Option<Vec<usize>> {
    None
}

/// How many threads can run at once: processors allowed, or fewer by a quota of the control group. At least 1.
pub fn parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Lets the current thread run on processor `cpu` only.
///
/// # Errors
///
/// `InvalidInput` for a processor that does not exist or is not allowed; `Unsupported` where threads cannot be
/// pinned.
pub fn pin(cpu: usize) -> io::Result<()> {
    confine(&[cpu])
}

/// Lets the current thread, and those that it starts from now on, run on these processors only.
///
/// # Errors
///
/// `InvalidInput` if one does not exist or none of them is allowed; `Unsupported` where threads cannot be pinned.
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
pub fn confine(cpus: &[usize]) -> io::Result<()> {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            let why = format!("processor {cpu} is beyond the {} that can be named", CpuSet::MAX_CPU);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        set.set(cpu);
    }
    sched_setaffinity(None, &set)?;
    Ok(())
}

/// Pinning threads: not on this system.
///
/// # Errors
///
/// `Unsupported`.
#[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
pub fn confine(cpus: &[usize]) -> io::Result<()> {
    let why = format!("threads cannot be pinned (to processors {cpus:?}) on this system");
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}

/// The content of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Both.
    Unified,
}

/// One cache of a processor.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cache {
    /// 1 for the nearest.
    pub level: u32,
    /// Its content.
    pub kind: CacheKind,
    /// Its size.
    pub bytes: u64,
    /// Size of its lines; 0 if unknown.
    pub line_bytes: u32,
}

/// The caches of the first processor, nearest first; empty if the system does not report them.
pub fn caches() -> Vec<Cache> {
    caches_in(Path::new("/sys/devices/system/cpu/cpu0/cache"))
}

fn caches_in(directory: &Path) -> Vec<Cache> {
    let cache = |index: usize| {
        let read = |name: &str| fs::read_to_string(directory.join(format!("index{index}/{name}"))).ok();
        Some(Cache {
            level: read("level")?.trim().parse().ok()?,
            kind: match read("type")?.trim() {
                "Data" => CacheKind::Data,
                "Instruction" => CacheKind::Instruction,
                _ => CacheKind::Unified,
            },
            bytes: parse_size(read("size")?.trim())?,
            line_bytes: read("coherency_line_size").and_then(|text| text.trim().parse().ok()).unwrap_or(0),
        })
    };
    (0..16).map_while(cache).collect()
}

/// Parses a size such as `48K` or `32M`.
fn parse_size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['K', 'M', 'G']);
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_named_once() {
        let features = features();
        for (at, name) in features.iter().enumerate() {
            assert!(!features[..at].contains(name), "{name}");
        }
        if cfg!(target_arch = "aarch64") {
            assert!(features.contains(&"neon"), "part of the base: {features:?}");
        }
    }

    #[test]
    fn models_are_found_in_either_form() {
        assert_eq!(model_in("processor\t: 0\nmodel name\t: Fast 9000\n").as_deref(), Some("Fast 9000"));
        assert_eq!(
            model_in("CPU implementer\t: 0x41\nCPU part\t: 0xd4f\n").as_deref(),
            Some("Arm Neoverse V2")
        );
        assert_eq!(
            model_in("CPU implementer : 0x99\nCPU part : 0x001\n").as_deref(),
            Some("AArch64, maker 0x99, part 0x001")
        );
        assert_eq!(model_in("nothing of the sort"), None);
        if let Some(model) = model() {
            assert!(!model.is_empty());
        }
    }

    #[test]
    fn a_thread_can_be_pinned_where_it_may_run() {
        assert!(parallelism() >= 1);
        let Some(cpus) = allowed() else {
            println!("skipped: this system does not tell which processors are allowed");
            assert_eq!(pin(0).map_err(|error| error.kind()), Err(io::ErrorKind::Unsupported));
            return;
        };
        let &last = cpus.last().expect("this thread runs somewhere");
        // A thread of its own: the others are not to be pinned.
        std::thread::spawn(move || {
            pin(last).expect("an allowed processor");
            assert_eq!(allowed(), Some(vec![last]));
        })
        .join()
        .expect("the pinned thread does not panic");
        let error = pin(usize::MAX).expect_err("no such processor");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn cache_sizes_parse() {
        assert_eq!(parse_size("48K"), Some(48 << 10));
        assert_eq!(parse_size("32M"), Some(32 << 20));
        assert_eq!(parse_size("512"), Some(512));
        for malformed in ["", "K", "4KK", "4T", "-1K", "99999999999999999999G"] {
            assert_eq!(parse_size(malformed), None, "{malformed:?}");
        }
        assert_eq!(caches_in(Path::new("/nonexistent")), []);
        for cache in caches() {
            assert!(cache.level >= 1 && cache.bytes > 0, "{cache:?}");
        }
    }
}
