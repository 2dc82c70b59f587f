//! The huge pages that the system offers, and the pages that back a range of addresses.
//!
//! Each call reads `/sys` and `/proc` anew; nothing is cached. On systems other than Linux there is nothing to read
//! and the results are empty.

use std::fs;
use std::ops::Range;
use std::path::Path;

use super::{HUGE_1G_BYTES, HUGE_2M_BYTES};

/// The pool of explicit huge pages of one size. All counts are pages of that size.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explicit {
    /// Size of a page.
    pub page_bytes: usize,
    /// Pages that an administrator set aside.
    pub reserved: u64,
    /// Of these, unused pages.
    pub free: u64,
    /// Of the free ones, pages reserved by mappings that have not touched them yet.
    pub promised: u64,
    /// Pages that the kernel may make on demand beyond those reserved.
    pub overcommit: u64,
}

impl Explicit {
    /// Pages available now without the kernel making any.
    pub fn available(&self) -> u64 {
        self.free.saturating_sub(self.promised)
    }

    /// Where the number of reserved pages is set.
    pub fn setting_path(&self) -> String {
        format!("{POOLS}/hugepages-{}kB/nr_hugepages", self.page_bytes >> 10)
    }
}

const POOLS: &str = "/sys/kernel/mm/hugepages";

/// The pools of 1 GiB and 2 MiB pages that this kernel and processor know, larger pages first.
pub fn explicit() -> Vec<Explicit> {
    [HUGE_1G_BYTES, HUGE_2M_BYTES].into_iter().filter_map(|bytes| pool(Path::new(POOLS), bytes)).collect()
}

fn pool(pools: &Path, page_bytes: usize) -> Option<Explicit> {
    let directory = pools.join(format!("hugepages-{}kB", page_bytes >> 10));
    let count = |name: &str| fs::read_to_string(directory.join(name)).ok()?.trim().parse::<u64>().ok();
    Some(Explicit {
        page_bytes,
        reserved: count("nr_hugepages")?,
        free: count("free_hugepages")?,
        promised: count("resv_hugepages").unwrap_or(0),
        overcommit: count("nr_overcommit_hugepages").unwrap_or(0),
    })
}

/// When the kernel makes transparent huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransparentMode {
    /// Wherever it can, asked or not.
    Always,
    /// Where asked by `madvise`, as [`super::Region`] does.
    Madvise,
    /// Never.
    Never,
}

/// The system's setting for transparent huge pages.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transparent {
    /// When they are made.
    pub mode: TransparentMode,
    /// Their size, where the kernel tells: 2 MiB with base pages of 4 KiB, far more with larger ones.
    pub page_bytes: Option<usize>,
    /// Whether this process, or a parent of it, gave them up by `prctl`.
    pub disabled_here: bool,
    /// The file that decides the mode.
    pub setting_path: String,
}

impl Transparent {
    /// Whether memory of a [`super::Region`] that asks for them can have them: the system allows it, the
    /// process did not forbid it, and one fits between a region's granules.
    pub fn usable(&self) -> bool {
        self.mode != TransparentMode::Never
            && !self.disabled_here
            && self.page_bytes.is_none_or(|bytes| bytes <= HUGE_2M_BYTES)
    }
}

const THP: &str = "/sys/kernel/mm/transparent_hugepage";

/// Where the setting for transparent huge pages of all sizes is.
pub const TRANSPARENT_PATH: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// The setting for transparent huge pages; `None` where the system knows none.
pub fn transparent() -> Option<Transparent> {
    let all = parse_choice(&fs::read_to_string(TRANSPARENT_PATH).ok()?)?;
    // Newer kernels have one for each size as well, which may say `inherit`.
    let own_path = format!("{THP}/hugepages-{}kB/enabled", HUGE_2M_BYTES >> 10);
    let own = fs::read_to_string(&own_path).ok().and_then(|text| parse_choice(&text));
    let (mode, setting_path) = match own {
        Some(own) => (own, own_path),
        None => (all, TRANSPARENT_PATH.to_owned()),
    };
    let size = fs::read_to_string(format!("{THP}/hpage_pmd_size"));
    Some(Transparent {
        mode,
        page_bytes: size.ok().and_then(|text| text.trim().parse().ok()),
        disabled_here: disabled_here(),
        setting_path,
    })
}

/// Parses a choice such as `always [madvise] never`; `None` for `[inherit]` and unknown words.
fn parse_choice(text: &str) -> Option<TransparentMode> {
    let (_, rest) = text.split_once('[')?;
    match rest.split_once(']')?.0 {
        "always" => Some(TransparentMode::Always),
        "madvise" => Some(TransparentMode::Madvise),
        "never" => Some(TransparentMode::Never),
        _ => None,
    }
}

#[cfg(target_os = "linux")]
fn disabled_here() -> bool {
    rustix::thread::transparent_huge_pages_are_disabled().unwrap_or(false)
}

#[cfg(not(target_os = "linux"))]
fn disabled_here() -> bool {
    false
}

/// The pages that back a range of addresses, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Coverage {
    /// Memory present, on pages of whatever size.
    pub resident_bytes: u64,
    /// Of it, ordinary memory that the kernel gathered into huge pages.
    pub transparent_bytes: u64,
    /// Of it, explicit huge pages.
    pub explicit_bytes: u64,
}

impl Coverage {
    /// The share on huge pages of either sort, from 0 to 1; 0 if nothing is resident.
    pub fn huge_share(&self) -> f64 {
        if self.resident_bytes == 0 {
            return 0.0;
        }
        (self.transparent_bytes + self.explicit_bytes) as f64 / self.resident_bytes as f64
    }
}

/// Reads the coverage of `range` from `/proc/self/smaps`; `None` where there is none.
///
/// The kernel walks every page table of the process for it: milliseconds per gigabyte of small pages.
pub(super) fn coverage(range: Range<usize>) -> Option<Coverage> {
    parse_smaps(&fs::read_to_string("/proc/self/smaps").ok()?, range)
}

/// Sums the mappings that begin in `range`. `None` if the text has none of the fields, as under an emulator
/// that makes it up.
fn parse_smaps(smaps: &str, range: Range<usize>) -> Option<Coverage> {
    let mut coverage = Coverage::default();
    let (mut inside, mut fields) = (false, 0);
    for line in smaps.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else { continue };
        if let Some(start) = mapping_start(first) {
            inside = range.contains(&start);
            continue;
        }
        let Some(kib) = words.next().and_then(|word| word.parse::<u64>().ok()) else { continue };
        let field = match first {
            "Rss:" => &mut coverage.resident_bytes,
            "AnonHugePages:" => &mut coverage.transparent_bytes,
            "Shared_Hugetlb:" | "Private_Hugetlb:" => &mut coverage.explicit_bytes,
            _ => continue,
        };
        fields += 1;
        if inside {
            *field += kib << 10;
        }
    }
    // The kernel counts explicit huge pages in no Rss.
    coverage.resident_bytes += coverage.explicit_bytes;
    (fields > 0).then_some(coverage)
}

/// The first address of a mapping's heading, such as `7f00-8000 rw-p ...`; `None` for other lines.
fn mapping_start(word: &str) -> Option<usize> {
    let (start, end) = word.split_once('-')?;
    usize::from_str_radix(end, 16).ok()?;
    usize::from_str_radix(start, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_of_the_kernel() {
        assert_eq!(parse_choice("always [madvise] never\n"), Some(TransparentMode::Madvise));
        assert_eq!(parse_choice("[always] madvise never"), Some(TransparentMode::Always));
        assert_eq!(parse_choice("always madvise [never]"), Some(TransparentMode::Never));
        for other in ["always [inherit] madvise never", "", "[", "[new]"] {
            assert_eq!(parse_choice(other), None, "{other:?}");
        }
    }

    #[test]
    fn pools_are_consistent() {
        for pool in explicit() {
            assert!(pool.page_bytes == HUGE_1G_BYTES || pool.page_bytes == HUGE_2M_BYTES);
            assert!(pool.available() <= pool.free);
            assert!(pool.setting_path().ends_with("kB/nr_hugepages"));
        }
        assert_eq!(pool(Path::new("/nonexistent"), HUGE_2M_BYTES), None);
    }

    #[test]
    fn large_transparent_pages_do_not_fit() {
        let usable = |mode, page_bytes, disabled_here| {
            Transparent { mode, page_bytes, disabled_here, setting_path: String::new() }.usable()
        };
        assert!(usable(TransparentMode::Madvise, Some(HUGE_2M_BYTES), false));
        assert!(usable(TransparentMode::Always, None, false));
        assert!(!usable(TransparentMode::Madvise, Some(512 << 20), false));
        assert!(!usable(TransparentMode::Never, Some(HUGE_2M_BYTES), false));
        assert!(!usable(TransparentMode::Madvise, Some(HUGE_2M_BYTES), true));
    }

    #[test]
    fn smaps_are_summed_within_the_range() {
        let smaps = "\
            1000-3000 rw-p 00000000 00:00 0 \nRss: 8 kB\nAnonHugePages: 4 kB\nVmFlags: rd wr\n\
            3000-4000 rw-s 00000000 00:0f 12 /anon_hugepage (deleted)\nRss: 0 kB\nPrivate_Hugetlb: 2048 kB\n\
            9000-a000 r--p 00000000 00:00 0\nRss: 400 kB\n";
        let coverage = parse_smaps(smaps, 0x1000..0x4000).expect("the fields are there");
        assert_eq!(coverage.resident_bytes, (8 + 2048) << 10);
        assert_eq!(coverage.transparent_bytes, 4 << 10);
        assert_eq!(coverage.explicit_bytes, 2048 << 10);
        assert!(coverage.huge_share() > 0.99);
        assert_eq!(parse_smaps("1000-2000 rw-p\n", 0..1), None);
        assert_eq!(Coverage::default().huge_share().to_bits(), 0.0_f64.to_bits());
    }
}
