//! Address ranges backed by the largest pages that the machine provides.
//!
//! A [`Region`] reserves addresses and commits memory piece by piece. A request is a [`Pages`], and the result is a
//! [`PageKind`]. Without huge pages a request does not fail: it falls back to smaller pages and reports their kind.
//! [`explicit`] and [`transparent`] report what the system offers; [`Region::coverage`] reports the pages that back a
//! region.
//!
//! On systems other than Linux all memory is reported as [`PageKind::Plain`], because such a kernel does not show
//! whether it enlarges pages by itself.
//!
//! ```
//! use forrest_machine::pages::{GRANULE_BYTES, Numa, Pages, Region};
//!
//! let region = Region::reserve(1 << 30, Pages::Auto, Numa::Local)?;
//! let kind = region.commit(0, 4 * GRANULE_BYTES)?;
//! println!("8 MiB on {kind} pages at {:?}", region.base());
//! // SAFETY: the first byte is committed, and nobody else uses it.
//! assert_eq!(unsafe { region.base().read() }, 0);
//! # Ok::<(), std::io::Error>(())
//! ```

mod array;
mod bytes;
mod fitting;
mod hugetlb;
mod numa;
mod region;
mod report;
mod sys;

pub use array::{Array, MAPPED_BYTES};
pub use bytes::Bytes;
pub use fitting::fitting;
pub use numa::{Numa, nodes};
pub use region::{Committed, GRANULE_BYTES, Region};
pub use report::{Coverage, Explicit, TRANSPARENT_PATH, Transparent, TransparentMode, explicit, transparent};

use std::fmt;
use std::str::FromStr;

/// Size of the smaller explicit huge page, in bytes.
pub const HUGE_2M_BYTES: usize = 2 << 20;
/// Size of the larger explicit huge page, in bytes.
pub const HUGE_1G_BYTES: usize = 1 << 30;

/// Which pages to request.
///
/// An administrator reserves explicit pages (`vm.nr_hugepages`). The kernel makes transparent ones out of ordinary
/// memory when `madvise` requests them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Pages {
    /// Explicit 1 GiB pages, else explicit 2 MiB pages, else transparent ones, else plain ones. Each commit takes the
    /// first kind that is available.
    #[default]
    Auto,
    /// Explicit 1 GiB pages; where there are none, as `Transparent`.
    Huge1G,
    /// Explicit 2 MiB pages; where there are none, as `Transparent`.
    Huge2M,
    /// Ordinary memory that the kernel may gather into huge pages; else plain.
    Transparent,
    /// The base page size, which `madvise` forbids the kernel to enlarge: for comparison.
    Plain,
}

/// Which pages were obtained, from the largest to the smallest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PageKind {
    /// Explicit pages of 1 GiB.
    Huge1G,
    /// Explicit pages of 2 MiB.
    Huge2M,
    /// `madvise` requested huge pages, and the system's setting allows them. [`Region::coverage`] reports how much of
    /// the memory the kernel really enlarged.
    Transparent,
    /// Pages of the base size.
    Plain,
}

impl Pages {
    /// Every value, in the order of the documentation.
    pub const ALL: [Pages; 5] = [Pages::Auto, Pages::Huge1G, Pages::Huge2M, Pages::Transparent, Pages::Plain];

    /// The name that options and reports use: `auto`, `1g`, `2m`, `transparent`, `plain`.
    pub fn name(self) -> &'static str {
        match self {
            Pages::Auto => "auto",
            Pages::Huge1G => "1g",
            Pages::Huge2M => "2m",
            Pages::Transparent => "transparent",
            Pages::Plain => "plain",
        }
    }

    fn may_use_1g(self) -> bool {
        matches!(self, Pages::Auto | Pages::Huge1G)
    }

    fn may_use_2m(self) -> bool {
        matches!(self, Pages::Auto | Pages::Huge2M)
    }
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is none of those of [`Pages`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPages(String);

impl fmt::Display for UnknownPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no pages are called {:?}; there are", self.0)?;
        for (at, pages) in Pages::ALL.into_iter().enumerate() {
            write!(f, "{} {pages}", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownPages {}

impl FromStr for Pages {
    type Err = UnknownPages;

    fn from_str(name: &str) -> Result<Pages, UnknownPages> {
        Pages::ALL.into_iter().find(|pages| pages.name() == name).ok_or_else(|| UnknownPages(name.to_owned()))
    }
}

impl PageKind {
    /// A short name for reports, such as `1 GiB explicit`.
    pub fn name(self) -> &'static str {
        match self {
            PageKind::Huge1G => "1 GiB explicit",
            PageKind::Huge2M => "2 MiB explicit",
            PageKind::Transparent => "transparent",
            PageKind::Plain => "plain",
        }
    }

    /// Whether an administrator set these pages aside.
    pub fn is_explicit(self) -> bool {
        matches!(self, PageKind::Huge1G | PageKind::Huge2M)
    }
}

impl fmt::Display for PageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_pages_parse_back() {
        for pages in Pages::ALL {
            assert_eq!(pages.name().parse(), Ok(pages));
        }
        assert_eq!(
            "4k".parse::<Pages>().map_err(|error| error.to_string()),
            Err(r#"no pages are called "4k"; there are auto, 1g, 2m, transparent, plain"#.to_owned())
        );
    }

    #[test]
    fn kinds_sort_from_large_to_small() {
        assert!(PageKind::Huge1G < PageKind::Huge2M);
        assert!(PageKind::Huge2M < PageKind::Transparent);
        assert!(PageKind::Transparent < PageKind::Plain);
    }
}
