//! Writing a table: entries in order come in, a finished and synced file comes out.
//!
//! Values go to the file as they come. Key blocks and the index come after the values, so they are kept in
//! memory until the end: about a seventh of a table of short pairs. The file is complete and durable when
//! [`Builder::finish`] returns; its *name* is durable when the caller has synced the directory. A builder
//! that is dropped leaves its file. The caller removes it, because only the caller knows that nothing names
//! it.

use super::format::{ALIGN, BLOCK_KEYS, FOOTER, Footer, GAP_MAX, Packing, Span, TAG_BYTES};
use super::pack::Packer;
use super::tags::tag;
use super::{block, index};
use crate::compression;
use crate::disk::{self, Name, Sealed, SealedFile, Write};
use crate::key::common_prefix;
use crate::page;
use crate::rate::{Free, Spend};
use crate::room;
use crate::wrapped::InTable;
use forrest_engine::{Compression, Error, ErrorKind, Result};
use forrest_engine::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use forrest_machine::pages::Array;
use std::ops::Deref;

/// Size of a write in bytes, in whole pages.
const PIECE: usize = 1 << 20;

const _: () = assert!(PIECE.is_multiple_of(page::BYTES));

/// The content of an entry.
pub(crate) use crate::wrapped::Entry as TableEntry;

/// A table that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Built {
    pub(crate) number: u64,
    pub(crate) entries: u32,
    /// The number of tombstones among them.
    pub(crate) tombstones: u32,
    pub(crate) file_bytes: u64,
    /// The first key; empty if there is none.
    pub(crate) least: Vec<u8>,
    /// The last key; empty if there is none.
    pub(crate) greatest: Vec<u8>,
}

/// Logical bytes, which are cut into pages and large writes.
struct Paged<'r, D: Deref<Target = Sealed>> {
    disk: D,
    file: SealedFile,
    name: Name,
    /// Asked before each write.
    rate: Box<dyn Spend + 'r>,
    /// Sealed pages and the beginning of the next one.
    write: Write,
    /// Number of sealed pages.
    pages: u64,
    /// Payload bytes in the page that is not sealed yet.
    in_page: usize,
    /// Packs the pages, if the table is packed.
    packer: Option<Packer>,
    /// Where in `write` the pages begin that are not packed yet.
    unpacked: usize,
}

impl<D: Deref<Target = Sealed>> Paged<'_, D> {
    /// The logical offset of the next byte.
    fn offset(&self) -> u64 {
        self.pages * page::PAYLOAD as u64 + self.in_page as u64
    }

    fn put(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(page::PAYLOAD - self.in_page));
            self.write.bytes.extend_from_slice(now);
            self.in_page += now.len();
            bytes = later;
            if self.in_page == page::PAYLOAD {
                self.seal(self.pages);
                let is_whole = self.ends_chunk();
                if is_whole {
                    self.pack();
                }
                if is_whole && self.write.bytes.len() >= PIECE {
                    self.flush(false)?;
                }
            }
        }
        Ok(())
    }

    /// Whether no page waits for others of its chunk.
    fn ends_chunk(&self) -> bool {
        self.packer.as_ref().is_none_or(|packer| self.pages.is_multiple_of(packer.pages_of_chunk()))
    }

    /// Puts zeros up to a logical offset, which is less than two pages away.
    fn zeros_to(&mut self, offset: u64) -> Result<()> {
        let zeros = [0; 2 * page::BYTES];
        self.put(&zeros[..(offset - self.offset()) as usize])
    }

    fn align(&mut self) -> Result<()> {
        self.zeros_to(self.offset().next_multiple_of(ALIGN))
    }

    fn seal(&mut self, number: u64) {
        let end = self.write.bytes.len() + page::BYTES - page::PAYLOAD;
        self.write.bytes.resize(end, 0);
        page::seal(&mut self.write.bytes[end - page::BYTES..], self.name, number);
        self.pages += 1;
        self.in_page = 0;
    }

    /// Packs the pages that are not, if the table is packed.
    fn pack(&mut self) {
        if let Some(packer) = &mut self.packer {
            packer.pack(self.name, self.write.offset, &mut self.write.bytes, self.unpacked);
            self.unpacked = self.write.bytes.len();
        }
    }

    /// DURABILITY: the last one syncs, and so covers all that was written before it.
    fn flush(&mut self, sync: bool) -> Result<()> {
        self.rate.spend(self.write.bytes.len())?;
        self.write.sync = sync;
        disk::write_all(&*self.disk, &self.file, self.name, &mut self.write)?;
        self.write.offset += self.write.bytes.len() as u64;
        self.write.bytes.clear();
        self.write.done = 0;
        self.unpacked = 0;
        Ok(())
    }

    /// Offset in the file of the next byte that is written.
    fn file_offset(&self) -> u64 {
        self.write.offset + self.write.bytes.len() as u64
    }

    /// Puts the footer at the end of the last page, and makes the whole file durable.
    fn finish(&mut self, mut footer: Footer) -> Result<u64> {
        let has_large = footer.large > 0;
        if self.pages == 0 && self.in_page <= page::PAYLOAD - Footer::bytes(false, has_large) {
            // One page.
            self.packer = None;
        }
        let tail = Footer::bytes(self.packer.is_some(), has_large);
        if self.in_page > page::PAYLOAD - tail {
            self.zeros_to((self.pages + 1) * page::PAYLOAD as u64)?;
        }
        self.zeros_to((self.pages + 1) * page::PAYLOAD as u64 - tail as u64)?;
        footer.pages = self.pages + 1;
        if self.packer.is_some() {
            let last = self.write.bytes.split_off(self.write.bytes.len() - self.in_page);
            footer.packing = Some(self.finish_chunks());
            self.write.bytes.extend_from_slice(&last);
        }
        footer.file_pages = (self.file_offset() - self.in_page as u64) / page::BYTES as u64 + 1;
        self.write.bytes.extend_from_slice(&footer.encode_before());
        self.write.bytes.extend_from_slice(&footer.encode(self.name));
        self.seal((footer.file_pages - 1) | page::LAST);
        self.flush(true)?;
        Ok(self.write.offset)
    }

    /// Packs what is left, and puts the map. REQUIRES: it packs.
    fn finish_chunks(&mut self) -> Packing {
        if !self.ends_chunk() {
            self.pack();
        }
        let packer = self.packer.as_ref().expect("it packs");
        let end = self.file_offset().next_multiple_of(page::BYTES as u64) - self.write.offset;
        self.write.bytes.resize(end as usize, 0);
        self.write.bytes.extend_from_slice(&packer.map(self.name));
        packer.packing()
    }
}

/// A table that is being written, to a disk that it borrows or shares.
pub(crate) struct Builder<'r, D: Deref<Target = Sealed>> {
    out: Paged<'r, D>,
    entries: u32,
    tombstones: u32,
    /// Wrapped values among the entries.
    wrapped: u32,
    /// Those of them that expire.
    expiring: u32,
    /// Whether some have operands.
    operands: bool,
    /// Bytes of the values that are in logs.
    large: u64,
    /// The earliest and the latest expiry.
    expiries: [u64; 2],
    /// Total bytes of values.
    values: u64,
    /// Bytes of the values before the pending block.
    values_before: u64,
    pending: block::Pending,
    /// Finished blocks, back to back.
    blocks: Array<u8>,
    /// A block that is being made, in a buffer that is reused.
    block: Vec<u8>,
    /// The length of each in bytes.
    lengths: Vec<u32>,
    index: index::Pending,
    /// The tags of the keys, if the table gets any, as they are stored.
    tags: Option<Array<u8>>,
    least: Vec<u8>,
    /// The last key that was added.
    greatest: Vec<u8>,
    /// The last key of the last finished block.
    before: Vec<u8>,
}

#[cold]
fn too_large(name: Name, what: &str) -> Error {
    Error::new(ErrorKind::Limit, format!("{name}: more {what} than a table can have"))
}

impl<'r, D: Deref<Target = Sealed>> Builder<'r, D> {
    /// Creates a file, which must not exist.
    ///
    /// # Errors
    /// `Io`, `OutOfSpace`.
    pub(crate) fn new(disk: D, name: Name) -> Result<Builder<'r, D>> {
        let file = disk::create(&*disk, name)?;
        let write = Write { bytes: Vec::with_capacity(PIECE), ..Write::default() };
        Ok(Builder {
            out: Paged {
                disk,
                file,
                name,
                rate: Box::new(Free),
                write,
                pages: 0,
                in_page: 0,
                packer: None,
                unpacked: 0,
            },
            entries: 0,
            tombstones: 0,
            wrapped: 0,
            expiring: 0,
            operands: false,
            large: 0,
            expiries: [0, 0],
            values: 0,
            values_before: 0,
            pending: block::Pending::default(),
            blocks: Array::new(),
            block: Vec::new(),
            lengths: Vec::new(),
            index: index::Pending::default(),
            tags: None,
            least: Vec::new(),
            greatest: Vec::new(),
            before: Vec::new(),
        })
    }

    /// Asks `rate` before each write.
    pub(crate) fn at_rate(mut self, rate: impl Spend + 'r) -> Self {
        self.out.rate = Box::new(rate);
        self
    }

    /// Gives the table tags, if `tags` is set: it will be alone in its partition. REQUIRES: it has no entry yet.
    pub(crate) fn tagged(mut self, tags: bool) -> Self {
        self.tags = tags.then(Array::new);
        self
    }

    /// Compresses the table. REQUIRES: it has no entry yet.
    ///
    /// # Errors
    /// `Unsupported` if this build does not have the method.
    pub(crate) fn packed(mut self, method: Compression) -> Result<Self> {
        compression::check(method)?;
        self.out.packer = (method != Compression::None).then(|| Packer::new(method));
        Ok(self)
    }

    /// Whether a key is greater than all that were added before.
    #[inline]
    pub(crate) fn takes(&self, key: &[u8]) -> bool {
        self.entries == 0 || key > &self.greatest[..]
    }

    /// Adds an entry. Its key must be greater than all that were added before.
    ///
    /// # Errors
    /// `Limit`, `Io`, `OutOfSpace`; the builder can then only be dropped.
    pub(crate) fn add(&mut self, key: &[u8], entry: TableEntry<'_>) -> Result<()> {
        assert!(self.takes(key), "keys come in ascending order, each once");
        let (kind, value) = (entry.kind(), entry.bytes());
        if key.len() > MAX_KEY_BYTES {
            return Err(Error::limit("key", "bytes", key.len(), MAX_KEY_BYTES));
        }
        if value.len() > MAX_VALUE_BYTES {
            return Err(Error::limit("value", "bytes", value.len(), MAX_VALUE_BYTES));
        }
        if self.entries == u32::MAX {
            return Err(too_large(self.out.name, "entries"));
        }
        if self.entries == 0 {
            self.least = key.to_vec();
        }
        if let Some(tags) = &mut self.tags {
            room::extend(tags, &tag(key).to_le_bytes())?;
        }
        self.pending.push(key, value.len() as u64, kind);
        self.greatest.clear();
        self.greatest.extend_from_slice(key);
        self.entries += 1;
        self.tombstones += u32::from(kind == block::Kind::Tombstone);
        if let TableEntry::Wrapped(bytes) = entry {
            self.wrapped += 1;
            self.note_wrapped(bytes);
        }
        self.values += value.len() as u64;
        self.out.put(value)?;
        if self.pending.len() == BLOCK_KEYS as usize {
            self.end_block()?;
        }
        Ok(())
    }

    #[cold]
    fn note_wrapped(&mut self, bytes: &[u8]) {
        let stored = InTable::read(bytes);
        if let Some(InTable::Elsewhere { pointer, .. }) = stored {
            self.large += pointer.len;
        }
        self.operands |= matches!(stored, Some(InTable::Operands));
        let Some(ms) = stored.and_then(|stored| stored.expires_ms()) else { return };
        self.expiring += 1;
        let [first, last] = &mut self.expiries;
        *first = if *first == 0 { ms } else { ms.min(*first) };
        *last = ms.max(*last);
    }

    /// Moves the pending keys to the finished blocks.
    fn end_block(&mut self) -> Result<()> {
        let first = self.pending.first_key();
        let separator = match self.lengths.len() {
            0 => &[],
            _ => &first[..common_prefix(&self.before, first) + 1],
        };
        if !self.index.separator(separator) {
            return Err(too_large(self.out.name, "bytes of separators"));
        }
        self.block.clear();
        self.pending.encode(self.values_before, &mut self.block);
        room::extend(&mut self.blocks, &self.block)?;
        self.lengths.push(self.block.len() as u32);
        self.values_before = self.values;
        self.before.clone_from(&self.greatest);
        Ok(())
    }

    /// Approximate size of the file if it were finished now, in bytes. That of a packed one is less.
    pub(crate) fn bytes(&self) -> u64 {
        let tags = self.tags.as_ref().map_or(0, |tags| tags.len());
        let kept = self.blocks.len() + self.pending.bytes() + self.index.bytes() + tags;
        self.values + self.values / page::PAYLOAD as u64 * 8 + kept as u64 + FOOTER as u64
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let tags = self.tags.as_ref().map_or(0, Array::bytes);
        let ends = self.out.packer.as_ref().map_or(0, Packer::bytes);
        self.blocks.bytes() + tags + ends + self.index.bytes() + self.lengths.len() * size_of::<u32>() + PIECE
    }

    /// Completes the file. All its bytes are then durable.
    ///
    /// # Errors
    /// `Limit`, `Io`, `OutOfSpace`.
    pub(crate) fn finish(mut self) -> Result<Built> {
        if self.pending.len() > 0 {
            self.end_block()?;
        }
        let keys = self.put_blocks()?;
        self.out.align()?;
        let stored = self.index.encode();
        let index = Span { offset: self.out.offset(), bytes: stored.len() as u64 };
        self.out.put(&stored)?;
        if let Some(tags) = &self.tags {
            debug_assert_eq!(tags.len(), self.entries as usize * TAG_BYTES);
            self.out.align()?;
            self.out.put(tags)?;
        }
        let bounds = self.out.offset();
        self.out.put(&self.least)?;
        self.out.put(&self.greatest)?;
        let file_bytes = self.out.finish(Footer {
            entries: self.entries,
            tombstones: self.tombstones,
            blocks: self.lengths.len() as u32,
            pages: 0,
            file_pages: 0,
            packing: None,
            values: self.values,
            keys,
            index,
            bounds,
            least: self.least.len() as u32,
            greatest: self.greatest.len() as u32,
            expiries: self.expiries,
            tagged: self.tags.is_some(),
            wrapped: self.wrapped,
            operands: self.operands,
            expiring: self.expiring,
            large: self.large,
        })?;
        Ok(Built {
            number: self.out.name.number,
            entries: self.entries,
            tombstones: self.tombstones,
            file_bytes,
            least: self.least,
            greatest: self.greatest,
        })
    }

    /// Writes each block in its place, and adds the places to the index.
    fn put_blocks(&mut self) -> Result<Span> {
        self.out.align()?;
        let mut keys = Span { offset: self.out.offset(), bytes: 0 };
        let mut from = 0;
        for &length in &self.lengths {
            let length = length as usize;
            self.out.align()?;
            let room = page::PAYLOAD - self.out.in_page;
            if length > room && room <= GAP_MAX {
                self.out.zeros_to((self.out.pages + 1) * page::PAYLOAD as u64)?;
            }
            if from == 0 {
                keys.offset = self.out.offset();
            }
            if !self.index.place(self.out.offset() - keys.offset) {
                return Err(too_large(self.out.name, "bytes of keys"));
            }
            self.out.put(&self.blocks[from..from + length])?;
            from += length;
            keys.bytes = self.out.offset() - keys.offset;
        }
        Ok(keys)
    }
}
