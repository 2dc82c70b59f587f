//! A REMIX whose segments stay in its file. The cache keeps the pages that are read, as for tables.
//!
//! What the file has is checked whenever a segment is read, so that no walk leaves the runs: pages have checksums, but
//! nobody has looked at the whole.

use super::verify::walk;
use super::{Loaded, Paged, RUNS_MAX, Row, SEGMENT, Segment, Selectors, Tags};
use crate::cache::{self, Cache, Of, Pages};
use crate::disk::{self, Name, Sealed, SealedFile};
use crate::page;
use forrest_engine::Result;
use std::fmt;
use std::sync::Arc;

/// The logical offsets of the arrays in a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    pub(super) rows: u64,
    pub(super) selectors: u64,
    pub(super) heads: u64,
    /// `None` if there are no tags.
    pub(super) tags: Option<u64>,
}

/// An open file.
pub(super) struct File {
    disk: Arc<Sealed>,
    file: SealedFile,
    name: Name,
    pages: Pages,
    places: Places,
}

impl File {
    /// A file of `len` bytes.
    pub(super) fn new(
        disk: Arc<Sealed>,
        file: SealedFile,
        name: Name,
        len: u64,
        cache: &Arc<Cache>,
        places: Places,
    ) -> File {
        // A file that is longer was refused.
        let pages = Pages::new(cache, Of::Remix, (len / page::BYTES as u64) as u32);
        File { disk, file, name, pages, places }
    }

    /// Reads the bytes from a logical offset on.
    fn read(&self, from: u64, out: &mut [u8]) -> Result<()> {
        cache::copy(from, out, |number| {
            self.pages.get(number as u32, |bytes| {
                disk::read_exact(&*self.disk, &self.file, self.name, bytes, number * page::BYTES as u64)?;
                page::check(bytes, self.name, number)
            })
        })
    }

    fn read_numbers(&self, from: u64, out: &mut [u32]) -> Result<()> {
        let mut bytes = [0; 4 * SEGMENT];
        let bytes = &mut bytes[..4 * out.len()];
        self.read(from, bytes)?;
        for (number, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
            *number = u32::from_le_bytes(*bytes);
        }
        Ok(())
    }
}

impl Paged for File {
    fn load(&self, at: usize, runs: &[u32]) -> Result<Loaded> {
        let Places { rows, selectors, heads, tags } = self.places;
        let nth = at as u64;
        let mut row: Row = [0; RUNS_MAX + 1];
        self.read_numbers(rows + 4 * (runs.len() as u64) * nth, &mut row[..runs.len()])?;
        let mut segment = Segment::EMPTY;
        let selectors_at = selectors + (SEGMENT as u64) * nth;
        self.read(selectors_at, &mut segment.selectors)?;
        self.read_numbers(heads + 4 * (SEGMENT as u64) * nth, &mut segment.heads)?;
        if let Some(tags) = tags {
            self.read(tags + (size_of::<Tags>() as u64) * nth, &mut segment.tags)?;
        }
        let mut next = row;
        let what = match walk(&segment, &mut next, runs.len()) {
            Err(what) => what,
            Ok(_) if next.iter().zip(runs).any(|(next, entries)| next > entries) => "a run has fewer entries",
            Ok(_) => return Ok(Loaded { segment, row }),
        };
        Err(disk::damaged(self.name, page::file_offset(selectors_at), format!("segment {at}: {what}")))
    }

    fn selectors(&self, at: usize) -> Result<Selectors> {
        let mut selectors = [0; SEGMENT];
        self.read(self.places.selectors + (SEGMENT as u64) * at as u64, &mut selectors)?;
        Ok(selectors)
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.pages.slot_bytes()
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)
    }
}
