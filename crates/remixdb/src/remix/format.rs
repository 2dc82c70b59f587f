//! The file of a [`Remix`]: its arrays in order, cut into pages ([`page`](crate::page)).
//!
//! Numbers are little endian. The payloads of the pages together are:
//!
//! | bytes | what |
//! |---|---|
//! | 8 | magic, `FORREMIX` |
//! | 2 | version, 1 |
//! | 1 | flags; bit 0: there are tags; bit 1: tables have values in logs; all others 0 |
//! | 1 | runs, at most 31 |
//! | 4 | segments |
//! | 8 | entries |
//! | 8 | live keys: the newest version is not a tombstone |
//! | 4 | bytes of the prefix of all anchors |
//! | 4 | bytes of all tails of anchors, the parts after the prefix |
//! | 12 for each run | number of its table (8), its entries (4); the oldest run first |
//! | 8, if flag bit 1 is set | bytes of values in logs that newer versions of their keys hide, about |
//! | variable | the prefix |
//! | 4 for each segment but the first | end of its anchor's tail among the tails |
//! | variable | the tails |
//! | 4 for each segment and run | entries of the run before the segment; all runs of a segment together |
//! | 32 for each segment | selectors: bits 0 to 4 run (31: no entry), bit 5 older version of the key before, bit 6 tombstone, bit 7 always 0; a place without an entry is 3F |
//! | 128 for each segment | heads, 4 for each place: the four bytes of the key, as a big-endian number, after the common prefix of the segment's anchor and the next one (from the key's beginning in the first segment and the last); FFFFFFFF where there is no entry |
//! | 32 for each segment, if there are tags | the top byte of xxh3 (64 bits) of each key; 0 where there is no entry |
//!
//! The length of a page, the checksum of the first page, the magic and the place of the version are the same
//! in every version, so that a build distinguishes a REMIX of another version from a damaged one. That is an
//! `Unsupported` error that names both versions. Opening the store detects it ([`check_version`]), although
//! the rest of the file is read later.
//!
//! The rest of the last page is 0. A file has exactly the pages that its content needs.
//!
//! An example with tags. Run 0 is table 7 with the keys 01, 02, ... 20 (hexadecimal, a byte each); run 1, newer, is
//! table 9 and deletes 20 and has 21. Of the two versions of 20 only one would fit in the first segment, so both
//! begin the second, and one place is unused.
//!
//! ```text
//!   0  46 4F 52 52 45 4D 49 58                          magic
//!   8  01 00  01  02                                    version; tags; two runs
//!  12  02 00 00 00                                      two segments
//!  16  22 00 00 00 00 00 00 00                          34 entries
//!  24  20 00 00 00 00 00 00 00                          32 live keys: all but 20
//!  32  01 00 00 00  00 00 00 00                         one byte of prefix, none of tails
//!  40  07 00 00 00 00 00 00 00  20 00 00 00             run 0: table 7, 32 entries
//!  52  09 00 00 00 00 00 00 00  02 00 00 00             run 1: table 9, 2 entries
//!  64  20                                               prefix: there is only one anchor, 20
//!  65  00 00 00 00                                      where the tail of segment 1 ends
//!  69  00 00 00 00  00 00 00 00                         segment 0: no entries before it
//!  77  1F 00 00 00  00 00 00 00                         segment 1: 31 of run 0, none of run 1
//!  85  00 (31 times)  3F                                segment 0: run 0; an unused place
//! 117  41 20 01  3F (29 times)                          segment 1: run 1 deletes 20; older, of run 0; 21 of run 1
//! 149  00 00 00 01  00 00 00 02 ... 00 00 00 1F  FF FF FF FF   heads, of which nothing is skipped
//! 277  00 00 00 20  00 00 00 20  00 00 00 21  FF (116 times)
//! 405  E1 C9 13 73 ... 05  00                           tags of 01, 02, 03, 04, ... 1F; an unused place
//! 437  FC FC 5F  00 (29 times)                          tags of 20, twice, and 21
//! 469  00 to the end of the page's payload
//! ```

use super::anchors::Anchors;
use super::paged::{File, Places};
use super::verify::Flaw;
use super::{Arrays, Body, RUNS_MAX, Remix, SEGMENT, Segment, View};
use crate::cache::Cache;
use crate::disk::{self, Name, Sealed, SealedFile, Write, damaged};
use crate::gauge::Share;
use crate::page::{self, BYTES, PAYLOAD};
use crate::rate::Spend;
use crate::room;
use forrest_engine::Result;
use forrest_machine::pages::Array;
use std::sync::Arc;

const MAGIC: [u8; 8] = *b"FORREMIX";
const VERSION: u16 = 1;
const TAGS: u8 = 1;
const LARGE: u8 = 2;
const HEADER: usize = 40;
/// Pages that are written or read at once.
const PAGES: usize = 64;

/// An error if the first page of the file is intact and of a version that this build does not read. Damage,
/// or that it is missing, is detected when the whole file is read.
///
/// # Errors
/// `Unsupported`, `Io`.
pub(crate) fn check_version(disk: &Sealed, name: Name) -> Result<()> {
    let Some(file) = disk::open_if_there(disk, name)? else { return Ok(()) };
    let mut first = vec![0; BYTES];
    let count = disk::read_up_to(disk, &file, name, &mut first, 0)?;
    if count < BYTES || page::check(&first, name, 0).is_err() || first[..8] != MAGIC {
        return Ok(());
    }
    known_version(name, &first)
}

/// An error if the header of a REMIX has another version.
fn known_version(name: Name, header: &[u8]) -> Result<()> {
    let version = u16::from_le_bytes([header[8], header[9]]);
    if version == VERSION { Ok(()) } else { Err(disk::other_version(name, version, VERSION)) }
}

impl Remix {
    /// Writes it to a new file and returns the file's length. `tables` are the number and the entries of each
    /// run's table.
    ///
    /// DURABILITY: the file is synced; its name is durable when the caller has synced the directory. After an
    /// error the file may exist in part.
    #[cfg(test)]
    pub(crate) fn write(&self, disk: &Sealed, name: Name, tables: &[(u64, u32)]) -> Result<u64> {
        self.write_at_rate(disk, name, tables, &crate::rate::Free)
    }

    /// The same. Asks `rate` before each write.
    pub(crate) fn write_at_rate(
        &self,
        disk: &Sealed,
        name: Name,
        tables: &[(u64, u32)],
        rate: &dyn Spend,
    ) -> Result<u64> {
        assert!(tables.iter().map(|table| table.1).eq(self.runs.iter().copied()), "a table for each run");
        let file = disk::create(disk, name)?;
        let mut sink = Sink { disk, file, name, rate, bytes: Vec::with_capacity(PAGES * BYTES), offset: 0 };
        sink.put(&MAGIC)?;
        sink.put(&VERSION.to_le_bytes())?;
        let tags = if self.has_tags() { TAGS } else { 0 };
        let large = if self.dead_large.is_some() { LARGE } else { 0 };
        sink.put(&[tags | large, self.runs.len() as u8])?;
        // None of these is truncated: the builders of a REMIX keep to 32 bits.
        sink.put(&(self.segments() as u32).to_le_bytes())?;
        sink.put(&self.entries.to_le_bytes())?;
        sink.put(&self.live.to_le_bytes())?;
        sink.put(&(self.anchors.prefix().len() as u32).to_le_bytes())?;
        sink.put(&(self.anchors.tails().len() as u32).to_le_bytes())?;
        for (number, entries) in tables {
            sink.put(&number.to_le_bytes())?;
            sink.put(&entries.to_le_bytes())?;
        }
        if let Some(dead) = self.dead_large {
            sink.put(&dead.to_le_bytes())?;
        }
        sink.put(self.anchors.prefix())?;
        sink.put_numbers(self.anchors.ends())?;
        sink.put(self.anchors.tails())?;
        let each = |put: &mut dyn FnMut(View<'_>) -> Result<()>| {
            let mut room = None;
            (0..self.segments()).try_for_each(|at| put(self.view(at, &mut room)?))
        };
        each(&mut |view| sink.put_numbers(view.ordinals()))?;
        each(&mut |view| sink.put(&view.segment.selectors))?;
        each(&mut |view| sink.put_numbers(&view.segment.heads))?;
        if self.has_tags {
            each(&mut |view| sink.put(&view.segment.tags))?;
        }
        sink.finish()
    }

    /// Reads it to memory, and checks that it covers the first of these tables, by the number and the
    /// entries of each run's table.
    pub(crate) fn read(disk: &Sealed, name: Name, tables: &[(u64, u32)]) -> Result<Remix> {
        let mut source = Source::open(disk, name)?;
        let Begin { header, tables, dead_large, anchors } = source.begin(tables)?;
        let mut rows = room::filled(header.segments * (tables.len() + 1), 0)?;
        for (at, row) in rows.chunks_exact_mut(tables.len() + 1).enumerate() {
            source.fill_numbers(&mut row[..tables.len()])?;
            row[tables.len()] = anchors.skip(at) as u32;
        }
        let selectors_at = source.place();
        let mut segments = room::filled(header.segments, Segment::EMPTY)?;
        for segment in segments.iter_mut() {
            source.fill(&mut segment.selectors)?;
        }
        for segment in segments.iter_mut() {
            source.fill_numbers(&mut segment.heads)?;
        }
        if header.tags {
            for segment in segments.iter_mut() {
                source.fill(&mut segment.tags)?;
            }
        }
        source.expect_end()?;
        let remix = Remix {
            runs: tables.iter().map(|table| table.1).collect(),
            anchors,
            body: Body::Memory(Arrays { rows, segments }),
            has_tags: header.tags,
            entries: header.entries,
            live: header.live,
            dead_large,
            share: Share::default(),
        };
        if let Err(Flaw { segment, what }) = remix.check() {
            let at = selectors_at + (segment * SEGMENT) as u64;
            return Err(damaged(name, offset_of(at), format!("segment {segment}: {what}")));
        }
        Ok(remix)
    }

    /// The same without reading the segments, of which the cache keeps what is used. Each is checked when it is read.
    pub(crate) fn open(
        disk: &Arc<Sealed>,
        name: Name,
        tables: &[(u64, u32)],
        cache: &Arc<Cache>,
    ) -> Result<Remix> {
        let mut source = Source::open(disk, name)?;
        let Begin { header, tables, dead_large, anchors } = source.begin(tables)?;
        let rows = source.place();
        let selectors = rows + 4 * (tables.len() * header.segments) as u64;
        let heads = selectors + (SEGMENT * header.segments) as u64;
        let tags = header.tags.then_some(heads + (4 * SEGMENT * header.segments) as u64);
        if let Some(at) = anchors.disorder() {
            let what = format!("segment {}: its anchor is not greater than the previous one", at + 1);
            return Err(damaged(name, offset_of(rows), what));
        }
        let entries: u64 = tables.iter().map(|table| u64::from(table.1)).sum();
        if entries != header.entries || header.live > entries || (entries > 0) != (header.segments > 0) {
            return Err(source.wrong(16, "the counts differ from those of the tables"));
        }
        let Source { file, len, .. } = source;
        let places = Places { rows, selectors, heads, tags };
        let file = Box::new(File::new(disk.clone(), file, name, len, cache, places));
        Ok(Remix {
            runs: tables.iter().map(|table| table.1).collect(),
            anchors,
            body: Body::File { segments: header.segments, file },
            has_tags: header.tags,
            entries,
            live: header.live,
            dead_large,
            share: Share::default(),
        })
    }
}

/// What a file has before its rows.
struct Begin<'t> {
    header: Header,
    /// Those that it covers.
    tables: &'t [(u64, u32)],
    dead_large: Option<u64>,
    anchors: Anchors,
}

/// The head of a file.
struct Header {
    tags: bool,
    large: bool,
    runs: usize,
    segments: usize,
    entries: u64,
    live: u64,
    prefix: usize,
    tails: usize,
}

impl Header {
    /// Reads it and checks that the file has the length that follows from it.
    fn read(source: &mut Source<'_>) -> Result<Header> {
        let mut bytes = [0; HEADER];
        source.fill(&mut bytes)?;
        let [flags, runs] = [bytes[10], bytes[11]];
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let short = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        if bytes[..8] != MAGIC {
            return Err(source.wrong(0, "not a REMIX"));
        }
        known_version(source.name, &bytes)?;
        if flags & !(TAGS | LARGE) != 0 {
            return Err(source.wrong(10, format!("unknown flags {flags:#04x}")));
        }
        if usize::from(runs) > RUNS_MAX {
            return Err(source.wrong(11, format!("{runs} runs, more than the maximum of {RUNS_MAX}")));
        }
        let (segments, prefix, tails) = (short(12), short(32), short(36));
        // No product of these exceeds 64 bits.
        let for_each = 4 * u64::from(runs) + SEGMENT as u64 * if flags & TAGS == 0 { 5 } else { 6 };
        let numbers = 4 * u64::from(segments.saturating_sub(1)) + for_each * u64::from(segments);
        let tables = 12 * u64::from(runs) + if flags & LARGE == 0 { 0 } else { 8 };
        let all = HEADER as u64 + tables + u64::from(prefix) + u64::from(tails) + numbers;
        let expected = all.div_ceil(PAYLOAD as u64) * BYTES as u64;
        if source.len != expected {
            let what = format!("the file has {} bytes, its header states {expected}", source.len);
            return Err(damaged(source.name, 0, what));
        }
        Ok(Header {
            tags: flags & TAGS != 0,
            large: flags & LARGE != 0,
            runs: runs.into(),
            segments: segments as usize,
            entries: number(16),
            live: number(24),
            prefix: prefix as usize,
            tails: tails as usize,
        })
    }
}

/// The offset in the file of the n-th byte of all payloads.
fn offset_of(place: u64) -> u64 {
    place / PAYLOAD as u64 * BYTES as u64 + place % PAYLOAD as u64
}

/// A file that is written page by page.
struct Sink<'d> {
    disk: &'d Sealed,
    file: SealedFile,
    name: Name,
    rate: &'d dyn Spend,
    /// Complete pages, sealed, and the payload of an incomplete one.
    bytes: Vec<u8>,
    /// Their offset in the file.
    offset: u64,
}

impl Sink<'_> {
    fn put(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PAYLOAD - self.bytes.len() % BYTES));
            self.bytes.extend_from_slice(now);
            bytes = later;
            if self.bytes.len() % BYTES == PAYLOAD {
                self.seal();
                if self.bytes.len() == PAGES * BYTES {
                    self.flush(false)?;
                }
            }
        }
        Ok(())
    }

    fn put_numbers(&mut self, numbers: &[u32]) -> Result<()> {
        let mut bytes = [0; 1024];
        for chunk in numbers.chunks(bytes.len() / 4) {
            for (bytes, number) in bytes.chunks_exact_mut(4).zip(chunk) {
                bytes.copy_from_slice(&number.to_le_bytes());
            }
            self.put(&bytes[..chunk.len() * 4])?;
        }
        Ok(())
    }

    /// Completes the current page.
    fn seal(&mut self) {
        let start = self.bytes.len() / BYTES * BYTES;
        self.bytes.resize(start + BYTES, 0);
        page::seal(&mut self.bytes[start..], self.name, (self.offset + start as u64) / BYTES as u64);
    }

    fn flush(&mut self, sync: bool) -> Result<()> {
        self.rate.spend(self.bytes.len())?;
        let bytes = std::mem::take(&mut self.bytes);
        let mut write = Write { offset: self.offset, bytes, done: 0, sync };
        disk::write_all(self.disk, &self.file, self.name, &mut write)?;
        self.bytes = write.bytes;
        self.offset += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }

    /// Writes and syncs the rest; returns the length of the file.
    fn finish(mut self) -> Result<u64> {
        if !self.bytes.len().is_multiple_of(BYTES) {
            self.seal();
        }
        self.flush(true)?;
        Ok(self.offset)
    }
}

/// A file that is read page by page.
struct Source<'d> {
    disk: &'d Sealed,
    file: SealedFile,
    name: Name,
    len: u64,
    /// Whole pages, checked.
    bytes: Vec<u8>,
    /// Number of `bytes` that were consumed.
    at: usize,
    /// The offset of the pages after `bytes`.
    offset: u64,
}

impl<'d> Source<'d> {
    fn open(disk: &'d Sealed, name: Name) -> Result<Source<'d>> {
        let file = disk::open_named(disk, name)?;
        let len = disk::len(disk, &file, name)?;
        Ok(Source { disk, file, name, len, bytes: Vec::new(), at: 0, offset: 0 })
    }

    fn begin<'t>(&mut self, tables: &'t [(u64, u32)]) -> Result<Begin<'t>> {
        let header = Header::read(self)?;
        let tables = self.expect_tables(&header, tables)?;
        let dead_large = if header.large { Some(self.long()?) } else { None };
        // From here on the file is known to be as long as these lengths say.
        let prefix = self.take(header.prefix)?;
        let ends = self.take_numbers(header.segments.saturating_sub(1))?;
        self.expect_ends(&ends, header.tails)?;
        let tails = self.take(header.tails)?;
        Ok(Begin { header, tables, dead_large, anchors: Anchors::new(prefix.to_vec(), ends, tails)? })
    }

    fn fill(&mut self, mut into: &mut [u8]) -> Result<()> {
        while !into.is_empty() {
            if self.at == self.bytes.len() {
                self.load()?;
            }
            let count = into.len().min(PAYLOAD - self.at % BYTES);
            let (now, later) = into.split_at_mut(count);
            now.copy_from_slice(&self.bytes[self.at..self.at + count]);
            into = later;
            self.at += count;
            if self.at % BYTES == PAYLOAD {
                self.at += BYTES - PAYLOAD;
            }
        }
        Ok(())
    }

    /// Reads the next pages.
    fn load(&mut self) -> Result<()> {
        let left = self.len.saturating_sub(self.offset);
        // If the file is not a whole number of pages, reading the last one finds it too short.
        let pages = left.div_ceil(BYTES as u64).clamp(1, PAGES as u64) as usize;
        self.bytes.resize(pages * BYTES, 0);
        disk::read_exact(self.disk, &self.file, self.name, &mut self.bytes, self.offset)?;
        for page in self.bytes.chunks_exact(BYTES) {
            page::check(page, self.name, self.offset / BYTES as u64)?;
            self.offset += BYTES as u64;
        }
        self.at = 0;
        Ok(())
    }

    fn take(&mut self, count: usize) -> Result<Array<u8>> {
        let mut bytes = room::filled(count, 0)?;
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn take_numbers(&mut self, count: usize) -> Result<Array<u32>> {
        let mut numbers = room::filled(count, 0)?;
        self.fill_numbers(&mut numbers)?;
        Ok(numbers)
    }

    fn fill_numbers(&mut self, numbers: &mut [u32]) -> Result<()> {
        let mut bytes = [0; 1024];
        for chunk in numbers.chunks_mut(bytes.len() / 4) {
            let bytes = &mut bytes[..chunk.len() * 4];
            self.fill(bytes)?;
            for (number, bytes) in chunk.iter_mut().zip(bytes.as_chunks().0) {
                *number = u32::from_le_bytes(*bytes);
            }
        }
        Ok(())
    }

    fn long(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Number of payload bytes that were consumed.
    fn place(&self) -> u64 {
        let before = (self.offset - self.bytes.len() as u64) / BYTES as u64 * PAYLOAD as u64;
        before + (self.at / BYTES * PAYLOAD + self.at % BYTES) as u64
    }

    /// Damage at a place of the payloads.
    #[cold]
    fn wrong(&self, place: u64, what: impl std::fmt::Display) -> forrest_engine::Error {
        damaged(self.name, offset_of(place), what)
    }

    /// Reads the tables that it covers, and checks that they are the first of these; returns them.
    fn expect_tables<'t>(&mut self, header: &Header, tables: &'t [(u64, u32)]) -> Result<&'t [(u64, u32)]> {
        let Some(tables) = tables.get(..header.runs) else {
            let what = format!("it covers {} tables, and the partition has {}", header.runs, tables.len());
            return Err(self.wrong(11, what));
        };
        for &(number, entries) in tables {
            let place = self.place();
            let mut bytes = [0; 12];
            self.fill(&mut bytes)?;
            if bytes[..8] != number.to_le_bytes() || bytes[8..] != entries.to_le_bytes() {
                let what = format!("it does not cover {} with {entries} entries", Name::table(number));
                return Err(self.wrong(place, what));
            }
        }
        Ok(tables)
    }

    /// Checks the ends of the anchors' tails.
    fn expect_ends(&self, ends: &[u32], tails: usize) -> Result<()> {
        if ends.is_sorted() && ends.last().map_or(0, |&end| end as usize) == tails {
            return Ok(());
        }
        Err(self.wrong(self.place(), "the ends of the anchors' tails do not ascend"))
    }

    /// Checks that the rest is zeros.
    fn expect_end(&mut self) -> Result<()> {
        let place = self.place();
        while self.at < self.bytes.len() {
            let mut byte = [0];
            self.fill(&mut byte)?;
            if byte != [0] {
                return Err(self.wrong(place, "the rest of the last page is not empty"));
            }
        }
        Ok(())
    }
}
