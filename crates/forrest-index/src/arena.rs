//! Where nodes live: one reserved address range on huge pages, cut into chunks, spans and blocks.
//!
//! - A **line** is 64 bytes, the unit of all sizes. A [`Handle`] is a line number: 32 bits reach 256 GiB.
//! - A **chunk** is 2 MiB, the unit in which memory is taken from the system and given back.
//! - A **span** is 64 KiB of a chunk. It holds blocks of one size class, or is part of a run of spans for
//!   one large block. Blocks of the long classes (from 20 to 72 KiB) lie in a **group**, a run of spans that they fill.
//!
//! Spans belong to shards with a lock each; a thread allocates from its own shard, and a block goes back to
//! the shard that its span belongs to. An empty span goes back to the chunks, for any class. An empty chunk
//! goes back to the system, except for a few that are kept to avoid thrashing.
//!
//! If no span is left, an allocation takes a larger block, from any shard. A full arena still serves **removals**,
//! which need a block before they free one: some spans and some lines are reserved for them. Where these are gone as
//! well, cut into blocks of sizes that do not serve, removals take chunks beyond the capacity, up to a bound. Growth
//! never takes one of these.

use crate::error::{Error, MAX_CAPACITY_BYTES};
use crate::options::Options;
use crate::spare::{Left, Spare};
use forrest_base::lock;
use forrest_machine::pages::{PageKind, Region, fitting};
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Bytes in a line.
pub(crate) const LINE_BYTES: usize = 64;
const CHUNK_BYTES: usize = 2 << 20;
const SPAN_LINES: u32 = 1024;
const SPANS_PER_CHUNK: u32 = 32;
const CHUNK_LINES: u32 = SPAN_LINES * SPANS_PER_CHUNK;
/// Largest block of a class, in lines; larger ones take whole spans.
const CLASS_LINES_MAX: u32 = 1152;
/// Number of the classes whose blocks lie in single spans.
const SHORT_CLASSES: usize = 48;
/// Empty chunks kept instead of given back.
const CHUNKS_KEPT: usize = 4;
/// Fewest bytes of addresses to reserve without a requested capacity.
const RESERVED_MIN: usize = 256 << 20;
const SHARDS: usize = 16;
/// One of this many spans is reserved for removals, within the two bounds below.
const RESERVE_SHARE: u32 = 32;
const RESERVE_SPANS_MIN: u32 = 2;
const RESERVE_SPANS_MAX: u32 = 128;
/// Chunks beyond the capacity, for removals: one of this many, within two bounds.
const BEYOND_SHARE: usize = 16;
const BEYOND_CHUNKS_MAX: usize = 32;
/// Largest blocks that are kept free while spans of the reserve are taken.
const LARGE_BLOCKS_KEPT: u32 = 64;

const _: () =
    assert!(MAX_CAPACITY_BYTES.is_multiple_of(CHUNK_BYTES) && (MAX_CAPACITY_BYTES / LINE_BYTES) < 1 << 32);

/// A block's first line. Never 0.
pub(crate) type Handle = u32;

/// The long classes, in lines, and the least spans that blocks of one fill (nearly). The last holds the longest key.
const LONG_CLASSES: [(u16, u8); 9] =
    [(320, 1), (384, 3), (448, 7), (512, 1), (640, 5), (768, 3), (896, 7), (1024, 1), (1152, 9)];

/// Sizes of the classes, in lines: every size to 8, then eight steps per doubling to 16 KiB, then four.
const CLASSES: [u16; SHORT_CLASSES + LONG_CLASSES.len()] = {
    let mut classes = [0; SHORT_CLASSES + LONG_CLASSES.len()];
    let (mut size, mut i) = (1_u16, 0);
    while i < SHORT_CLASSES {
        classes[i] = size;
        let step = if size < 16 { 1 } else { 1 << (size.ilog2() - 3) };
        size += step;
        i += 1;
    }
    while i < classes.len() {
        classes[i] = LONG_CLASSES[i - SHORT_CLASSES].0;
        i += 1;
    }
    classes
};
const _: () = assert!(CLASSES[SHORT_CLASSES - 1] == 256);
const _: () = assert!(CLASSES[CLASSES.len() - 1] as u32 == CLASS_LINES_MAX);

/// The class of the smallest blocks that hold `lines`.
fn class_of(lines: u32) -> usize {
    CLASSES.partition_point(|&size| u32::from(size) < lines)
}

/// The lines that an allocation of `lines` really takes.
pub(crate) fn rounded(lines: u32) -> u32 {
    if lines <= CLASS_LINES_MAX {
        u32::from(CLASSES[class_of(lines)])
    } else {
        lines.next_multiple_of(SPAN_LINES)
    }
}

/// Spans in a group of a class: the best number, and the least that holds a block.
fn group_of(class: usize) -> [u32; 2] {
    let best = class.checked_sub(SHORT_CLASSES).map_or(1, |long| u32::from(LONG_CLASSES[long].1));
    [best, u32::from(CLASSES[class]).div_ceil(SPAN_LINES)]
}

/// The state of a span of a class, or of a group by its first span. Guarded by the lock of the shard that it belongs
/// to.
#[derive(Clone, Copy, Default)]
struct Span {
    class: u8,
    shard: u8,
    /// Spans of the group.
    spans: u8,
    /// Spans of the group before this one; all else is in the first.
    back: u8,
    live: u16,
    /// First free block plus one, in lines from the group's start; each free block names the next.
    free: u16,
    /// Blocks handed out at least once.
    fresh: u16,
    /// Neighbours in the list of spans with free blocks, plus one; 0 for none.
    prev: u32,
    next: u32,
    listed: bool,
}

impl Span {
    /// Lines of a block.
    fn size(&self) -> u32 {
        u32::from(CLASSES[usize::from(self.class)])
    }

    /// How many blocks there are, free or not.
    fn blocks(&self) -> u32 {
        u32::from(self.spans) * SPAN_LINES / self.size()
    }

    /// Lines at the end that no block covers.
    fn end(&self) -> u64 {
        u64::from(u32::from(self.spans) * SPAN_LINES % self.size())
    }
}

struct Shard {
    /// Head of the list of spans with free blocks, per class, plus one.
    partial: [u32; CLASSES.len()],
    lines: u64,
    /// Lines at the ends of spans that no block covers.
    ends: u64,
}

impl Default for Shard {
    fn default() -> Self {
        Shard { partial: [0; CLASSES.len()], lines: 0, ends: 0 }
    }
}

/// The chunks and which of their spans are free.
#[derive(Default)]
struct Chunks {
    /// A bit per span: set if free. `None` for a chunk that the system has.
    free: Vec<Option<u32>>,
    /// Chunks by the length of their longest run of free spans. Those without a free span are in no list.
    by_run: [Vec<u32>; SPANS_PER_CHUNK as usize],
    /// Where each chunk is in its list.
    places: Vec<u32>,
    /// Chunks that the system has, below `free.len()`.
    gone: Vec<u32>,
    empty: usize,
    kinds: [u64; 4],
    kind_of: Vec<PageKind>,
}

/// The allocator. All methods may be called from any thread.
pub(crate) struct Arena {
    base: NonNull<u8>,
    /// There until the arena is dropped.
    region: Option<Region>,
    /// Where it is left then. An arena that has this gives empty chunks back only when it is trimmed.
    spare: Option<Spare>,
    /// Number of chunks, with those beyond the capacity.
    chunks_max: u32,
    /// Those that only removals may take, once no other serves.
    chunks_beyond: u32,
    chunks: Mutex<Chunks>,
    shards: [Mutex<Shard>; SHARDS],
    spans: NonNull<Span>,
    committed: AtomicU64,
    /// Spans that are not taken, of committed chunks or not.
    spare_spans: AtomicU32,
    /// The largest class of which a span was ever taken.
    largest_class: AtomicU8,
}

/// The purpose of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// A write that may fail with `OutOfMemory`.
    Growth,
    /// A removal. It frees more than it takes, so it may use the reserve and must not fail when the arena is full.
    Removal,
}

/// Where one writer takes blocks from, and what for.
#[derive(Clone, Copy)]
pub(crate) struct Supply<'a> {
    pub(crate) arena: &'a Arena,
    pub(crate) thread: usize,
    pub(crate) purpose: Purpose,
}

impl Supply<'_> {
    /// As [`Arena::alloc`].
    pub(crate) fn take(&self, lines: u32) -> Option<Handle> {
        self.arena.alloc(lines, self.thread, self.purpose)
    }

    /// True if a new node should be no larger than the node that it replaces.
    pub(crate) fn is_scarce(&self) -> bool {
        self.purpose == Purpose::Removal && self.arena.is_nearly_full()
    }
}

// SAFETY: the pointers are to memory that the arena owns; spans are accessed under the locks as `Span` says.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

/// Bytes taken from the system, by kind of page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) explicit_huge: u64,
    pub(crate) transparent_huge: u64,
    pub(crate) plain: u64,
}

impl Taken {
    pub(crate) fn bytes(self) -> u64 {
        self.explicit_huge + self.transparent_huge + self.plain
    }
}

fn kind_index(kind: PageKind) -> usize {
    match kind {
        PageKind::Huge1G => 0,
        PageKind::Huge2M => 1,
        PageKind::Transparent => 2,
        PageKind::Plain => 3,
    }
}

impl Arena {
    pub(crate) fn new(options: &Options) -> Result<Arena, Error> {
        // Handles are 32 bits of lines, and a store cannot outgrow the machine's memory by much.
        let machine = forrest_machine::memory::now().map_or(1 << 36, |memory| memory.total_bytes as usize);
        let want = match options.capacity_bytes {
            Some(bytes) if bytes > MAX_CAPACITY_BYTES => return Err(Error::CapacityTooLarge(bytes)),
            Some(bytes) => bytes,
            None => machine.saturating_mul(2),
        };
        let want = want.clamp(CHUNK_BYTES, MAX_CAPACITY_BYTES);
        // A requested capacity is had whole or not at all.
        let least = if options.capacity_bytes.is_some() { want } else { want.min(RESERVED_MIN) };
        let (Left { region, chunks }, bytes, beyond) = fitting(want, least, |bytes| {
            let bytes = bytes.next_multiple_of(CHUNK_BYTES);
            let beyond = (bytes / CHUNK_BYTES / BEYOND_SHARE).clamp(1, BEYOND_CHUNKS_MAX) * CHUNK_BYTES;
            let beyond = beyond.min(MAX_CAPACITY_BYTES - bytes);
            let left = options.spare.as_ref().and_then(|spare| spare.take(bytes + beyond, options.pages));
            let reserve = || {
                let region = Region::reserve(bytes + beyond, options.pages, options.numa);
                region.map(|region| Left { region, chunks: 0 })
            };
            let left = left.map_or_else(reserve, Ok);
            left.map_or(Err(Error::OutOfMemory(bytes)), |left| Ok((left, bytes, beyond)))
        })?;
        let chunks_max = ((bytes + beyond) / CHUNK_BYTES) as u32;
        let layout = Self::spans_layout(chunks_max);
        // SAFETY: the layout is not empty. Zero bytes are a valid `Span`.
        let spans = unsafe { std::alloc::alloc_zeroed(layout) };
        let spans = NonNull::new(spans.cast()).ok_or(Error::OutOfMemory(layout.size()))?;
        let arena = Arena {
            base: region.base(),
            region: Some(region),
            spare: options.spare.clone(),
            chunks_max,
            chunks_beyond: (beyond / CHUNK_BYTES) as u32,
            chunks: Mutex::default(),
            shards: Default::default(),
            spans,
            committed: AtomicU64::new(0),
            // The first span of all is never used.
            spare_spans: AtomicU32::new(chunks_max * SPANS_PER_CHUNK - 1),
            largest_class: AtomicU8::new(0),
        };
        arena.adopt(chunks);
        Ok(arena)
    }

    /// Takes chunks that are in the region already, but for those of them that were given back.
    fn adopt(&self, count: u32) {
        let mut chunks = lock(&self.chunks);
        // Fewer if the system has no more memory.
        let _all = (0..count).all(|_| self.commit(&mut chunks, count).is_some());
    }

    fn region(&self) -> &Region {
        self.region.as_ref().expect("it is there until the arena is dropped")
    }

    fn spans_layout(chunks: u32) -> std::alloc::Layout {
        std::alloc::Layout::array::<Span>(chunks as usize * SPANS_PER_CHUNK as usize)
            .unwrap_or_else(|_| unreachable!("an arena has at most 2^22 spans"))
    }

    /// The address of line 0.
    #[inline(always)]
    pub(crate) fn base(&self) -> *const u8 {
        self.base.as_ptr()
    }

    /// The address of a block.
    #[inline(always)]
    pub(crate) fn at(&self, handle: Handle) -> NonNull<u8> {
        debug_assert!(handle != 0 && u64::from(handle) < u64::from(self.chunks_max) * u64::from(CHUNK_LINES));
        // SAFETY: handles come from `alloc`, so the line is inside the region.
        unsafe { self.base.add(handle as usize * LINE_BYTES) }
    }

    /// A pointer to a span's record.
    fn span(&self, index: u32) -> *mut Span {
        debug_assert!(index < self.chunks_max * SPANS_PER_CHUNK);
        // SAFETY: indices come from handles and chunks inside the region.
        unsafe { self.spans.as_ptr().add(index as usize) }
    }

    /// Number of chunks within the capacity.
    fn chunks_within(&self) -> u32 {
        self.chunks_max - self.chunks_beyond
    }

    /// Spans beyond the capacity.
    fn spans_beyond(&self) -> u32 {
        self.chunks_beyond * SPANS_PER_CHUNK
    }

    /// Spans within the capacity that only removals may take.
    fn reserve_spans(&self) -> u32 {
        let share = self.chunks_within() * SPANS_PER_CHUNK / RESERVE_SHARE;
        share.clamp(RESERVE_SPANS_MIN, RESERVE_SPANS_MAX)
    }

    /// Spans that are not taken, of those within the capacity.
    fn spare_spans(&self) -> u32 {
        // ORDERING: changed under the lock of the chunks; elsewhere a heuristic, and nothing else is read by it.
        self.spare_spans.load(Ordering::Relaxed).saturating_sub(self.spans_beyond())
    }

    /// True if no spans but the reserve and a few more are left.
    #[inline]
    fn is_nearly_full(&self) -> bool {
        self.spare_spans() <= 2 * self.reserve_spans()
    }

    /// True if growth must be refused, so that a removal finds a block: the lines of the reserve must be free
    /// somewhere, and as long as its spans are not, large blocks or very many lines elsewhere.
    fn is_full(&self, lines: u32) -> bool {
        if !self.is_nearly_full() {
            return false;
        }
        let reserve = self.reserve_spans();
        let spare = self.spare_spans();
        let all = u64::from(self.chunks_within() * SPANS_PER_CHUNK - 1) * u64::from(SPAN_LINES);
        let free =
            all.saturating_sub(self.sum(|shard| shard.lines.wrapping_add(shard.ends)) + u64::from(lines));
        let few = free < u64::from(reserve * SPAN_LINES);
        few || (spare < reserve && free < all / 4 && !self.has_large_blocks())
    }

    /// True if some blocks of the largest size ever requested are free.
    fn has_large_blocks(&self) -> bool {
        let largest = usize::from(self.largest_class.load(Ordering::Relaxed));
        let mut left = LARGE_BLOCKS_KEPT;
        for class in largest..CLASSES.len() {
            for shard in self.shards.iter().map(lock) {
                let mut head = shard.partial[class];
                while head != 0 {
                    // SAFETY: listed spans belong to the shard, whose lock we hold.
                    let span = unsafe { &*self.span(head - 1) };
                    left = left.saturating_sub(span.blocks() - u32::from(span.live));
                    if left == 0 {
                        return true;
                    }
                    head = span.next;
                }
            }
        }
        false
    }

    /// Takes a block of at least `rounded(lines)` lines, not zeroed. `None` where the system or the capacity
    /// has no more.
    pub(crate) fn alloc(&self, lines: u32, thread: usize, purpose: Purpose) -> Option<Handle> {
        debug_assert!(lines > 0 && lines <= CHUNK_LINES);
        if purpose == Purpose::Growth && self.is_full(lines) {
            return None;
        }
        if lines > CLASS_LINES_MAX {
            let count = lines.div_ceil(SPAN_LINES);
            let first = self.take_spans(count, purpose)?;
            let mut shard = lock(&self.shards[thread % SHARDS]);
            shard.lines = shard.lines.wrapping_add(u64::from(count * SPAN_LINES));
            return Some(first * SPAN_LINES);
        }
        let class = class_of(lines);
        let own = &self.shards[thread % SHARDS];
        let mut shard = lock(own);
        if shard.partial[class] == 0 && !self.open_span(&mut shard, class, thread, Purpose::Growth) {
            drop(shard);
            let scraped = self.scrape(class);
            if scraped.is_some() || purpose == Purpose::Growth {
                return scraped;
            }
            // The reserve is taken last: blocks of any class can be made of it.
            shard = lock(own);
            self.open_span(&mut shard, class, thread, purpose);
        }
        self.take_block(&mut shard, class)
    }

    /// Takes a span, or a group of them, for blocks of a class; false if there is none.
    fn open_span(&self, shard: &mut Shard, class: usize, thread: usize, purpose: Purpose) -> bool {
        let mut groups = group_of(class).into_iter();
        let taken = groups.find_map(|spans| self.take_spans(spans, purpose).map(|index| (index, spans)));
        let Some((index, spans)) = taken else { return false };
        // Long blocks are too rare to keep many of them free.
        self.largest_class.fetch_max(class.min(SHORT_CLASSES - 1) as u8, Ordering::Relaxed);
        let (class, thread_shard) = (class as u8, (thread % SHARDS) as u8);
        let blank = Span { class, shard: thread_shard, spans: spans as u8, ..Span::default() };
        for back in 0..spans {
            // SAFETY: the spans were free, so no other thread uses their records; `take_spans` gave them to this shard.
            unsafe { *self.span(index + back) = Span { back: back as u8, ..blank } };
        }
        shard.ends += blank.end();
        self.list(shard, index);
        true
    }

    /// A free block of a class, or of the next larger one that has any, of whatever shard.
    #[cold]
    fn scrape(&self, class: usize) -> Option<Handle> {
        (class..CLASSES.len())
            .find_map(|class| self.shards.iter().find_map(|shard| self.take_block(&mut lock(shard), class)))
    }

    /// Takes a block from the first span of a shard's list; `None` if the list is empty.
    #[inline]
    fn take_block(&self, shard: &mut Shard, class: usize) -> Option<Handle> {
        let size = u32::from(CLASSES[class]);
        let index = shard.partial[class].checked_sub(1)?;
        // SAFETY: the span is in our shard, whose lock we hold.
        let span = unsafe { &mut *self.span(index) };
        let start = index * SPAN_LINES;
        let handle = if span.free != 0 {
            let handle = start + u32::from(span.free) - 1;
            // SAFETY: a free block's first bytes hold the next free one, see `free`.
            span.free = unsafe { self.at_any(handle).cast::<u16>().read() };
            handle
        } else {
            span.fresh += 1;
            start + (u32::from(span.fresh) - 1) * size
        };
        span.live += 1;
        if span.free == 0 && u32::from(span.fresh) == span.blocks() {
            self.unlist(shard, index);
        }
        shard.lines = shard.lines.wrapping_add(u64::from(size));
        Some(handle)
    }

    fn at_any(&self, line: u32) -> *mut u8 {
        // SAFETY: callers pass lines of the region.
        unsafe { self.base.as_ptr().add(line as usize * LINE_BYTES) }
    }

    /// Gives back a block that was taken with the same `lines`.
    ///
    /// # Safety
    /// - `handle` came from `alloc` with a size that rounds to the same, and was not freed since.
    /// - No thread reads or writes the block any more, and its last accesses happen before this call (epochs, locks).
    pub(crate) unsafe fn free(&self, handle: Handle, lines: u32, thread: usize) {
        let index = handle / SPAN_LINES;
        if lines > CLASS_LINES_MAX {
            let count = lines.div_ceil(SPAN_LINES);
            // Shards' counts wrap where a block comes back through another shard; their sum does not.
            let mut shard = lock(&self.shards[thread % SHARDS]);
            shard.lines = shard.lines.wrapping_sub(u64::from(count * SPAN_LINES));
            drop(shard);
            self.return_spans(index, count);
            return;
        }
        // SAFETY: the group and the shard of a span with live blocks do not change, so reading them without the lock is
        // ordered by whatever handed us the block.
        let (index, owner) = unsafe {
            let Span { back, shard, .. } = *self.span(index);
            (index - u32::from(back), usize::from(shard))
        };
        let mut shard = lock(&self.shards[owner]);
        // SAFETY: the span is in the shard whose lock we hold.
        let span = unsafe { &mut *self.span(index) };
        let size = span.size();
        debug_assert!(usize::from(span.class) >= class_of(lines), "freed with a larger size");
        // The first two bytes of a free block link the list. Debug builds overwrite the rest, so that tests detect
        // a use after free.
        // SAFETY: the block has `size` lines, and no other thread uses it, as this function requires.
        unsafe {
            let at = self.at_any(handle);
            if cfg!(debug_assertions) {
                at.write_bytes(0xdd, size as usize * LINE_BYTES);
            }
            at.cast::<u16>().write(span.free);
        }
        span.free = (handle - index * SPAN_LINES + 1) as u16;
        span.live -= 1;
        shard.lines = shard.lines.wrapping_sub(u64::from(size));
        if span.live == 0 {
            shard.ends -= span.end();
            let spans = u32::from(span.spans);
            if span.listed {
                self.unlist(&mut shard, index);
            }
            drop(shard);
            self.return_spans(index, spans);
        } else if !span.listed {
            self.list(&mut shard, index);
        }
    }

    fn list(&self, shard: &mut Shard, index: u32) {
        // SAFETY: the caller holds the lock of the span's shard.
        let span = unsafe { &mut *self.span(index) };
        let head = &mut shard.partial[usize::from(span.class)];
        span.listed = true;
        span.prev = 0;
        span.next = *head;
        if *head != 0 {
            // SAFETY: listed spans are in the same shard.
            unsafe { (*self.span(*head - 1)).prev = index + 1 };
        }
        *head = index + 1;
    }

    fn unlist(&self, shard: &mut Shard, index: u32) {
        // SAFETY: the caller holds the lock of the span's shard, and neighbours are in the same shard.
        unsafe {
            let span = &mut *self.span(index);
            span.listed = false;
            match span.prev {
                0 => shard.partial[usize::from(span.class)] = span.next,
                prev => (*self.span(prev - 1)).next = span.next,
            }
            if span.next != 0 {
                (*self.span(span.next - 1)).prev = span.prev;
            }
        }
    }

    /// Takes `count` neighbouring spans of one chunk.
    fn take_spans(&self, count: u32, purpose: Purpose) -> Option<u32> {
        let mut chunks = lock(&self.chunks);
        let (kept, chunks_max) = match purpose {
            Purpose::Growth => (self.reserve_spans() + self.spans_beyond(), self.chunks_within()),
            Purpose::Removal => (0, self.chunks_max),
        };
        // ORDERING: changed under the lock of the chunks only.
        let spare = self.spare_spans.load(Ordering::Relaxed);
        if spare < count + kept {
            return None;
        }
        let first = self.find_spans(&mut chunks, count, chunks_max)?;
        self.spare_spans.store(spare - count, Ordering::Relaxed);
        Some(first)
    }

    fn find_spans(&self, chunks: &mut Chunks, count: u32, chunks_max: u32) -> Option<u32> {
        // The shortest run that is long enough, so that long ones, and empty chunks, stay.
        let lists = &chunks.by_run[count as usize - 1..];
        if let Some(&chunk) = lists.iter().find_map(|list| list.last()) {
            let at = find_run(chunks.free[chunk as usize]?, count)?;
            return Some(chunks.take(chunk, at, count));
        }
        let chunk = match self.commit(chunks, chunks_max)? {
            0 if count == SPANS_PER_CHUNK => self.commit(chunks, chunks_max)?,
            chunk => chunk,
        };
        let at = find_run(chunks.free[chunk as usize]?, count)?;
        Some(chunks.take(chunk, at, count))
    }

    /// Makes one more chunk usable, if fewer than `chunks_max` are.
    fn commit(&self, chunks: &mut Chunks, chunks_max: u32) -> Option<u32> {
        if (chunks.free.len() - chunks.gone.len()) as u32 >= chunks_max {
            return None;
        }
        let chunk = chunks.gone.pop().unwrap_or(chunks.free.len() as u32);
        let Ok(kind) = self.region().commit(chunk as usize * CHUNK_BYTES, CHUNK_BYTES) else {
            if (chunk as usize) < chunks.free.len() {
                chunks.gone.push(chunk);
            }
            return None;
        };
        if chunk as usize == chunks.free.len() {
            chunks.free.push(None);
            chunks.places.push(0);
            chunks.kind_of.push(kind);
        }
        chunks.kind_of[chunk as usize] = kind;
        chunks.kinds[kind_index(kind)] += CHUNK_BYTES as u64;
        // The first span is never used, so that no handle is 0.
        chunks.set_free(chunk, Some(if chunk == 0 { u32::MAX - 1 } else { u32::MAX }));
        chunks.empty += usize::from(chunk != 0);
        self.committed.fetch_add(CHUNK_BYTES as u64, Ordering::Relaxed);
        Some(chunk)
    }

    fn return_spans(&self, first: u32, count: u32) {
        let mut chunks = lock(&self.chunks);
        // ORDERING: as in `take_spans`.
        self.spare_spans.store(self.spare_spans.load(Ordering::Relaxed) + count, Ordering::Relaxed);
        let (chunk, at) = (first / SPANS_PER_CHUNK, first % SPANS_PER_CHUNK);
        let before = chunks.free[chunk as usize].unwrap_or(0);
        let after = before | run(at, count);
        chunks.set_free(chunk, Some(after));
        if after == u32::MAX {
            chunks.empty += 1;
            if chunks.empty > CHUNKS_KEPT && self.spare.is_none() {
                self.give_back(&mut chunks, chunk);
            }
        }
    }

    /// Gives an empty chunk back to the system.
    fn give_back(&self, chunks: &mut Chunks, chunk: u32) {
        debug_assert_eq!(chunks.free[chunk as usize], Some(u32::MAX));
        chunks.empty -= 1;
        chunks.set_free(chunk, None);
        chunks.gone.push(chunk);
        let kind = chunks.kind_of[chunk as usize];
        chunks.kinds[kind_index(kind)] -= CHUNK_BYTES as u64;
        self.committed.fetch_sub(CHUNK_BYTES as u64, Ordering::Relaxed);
        // SAFETY: no span of the chunk is taken, so no pointer into it is used. If the system refuses, the memory
        // stays and the next commit finds it there.
        let _ = unsafe { self.region().decommit(chunk as usize * CHUNK_BYTES, CHUNK_BYTES) };
    }

    /// Gives all empty chunks back to the system.
    pub(crate) fn trim(&self) {
        let mut chunks = lock(&self.chunks);
        while let Some(&chunk) = chunks.by_run[SPANS_PER_CHUNK as usize - 1].last() {
            self.give_back(&mut chunks, chunk);
        }
    }

    /// Bytes in blocks that are taken.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.sum(|shard| shard.lines) * LINE_BYTES as u64
    }

    fn sum(&self, of: impl Fn(&Shard) -> u64) -> u64 {
        self.shards.iter().fold(0_u64, |sum, shard| sum.wrapping_add(of(&lock(shard))))
    }

    /// Bytes taken from the system.
    pub(crate) fn taken(&self) -> Taken {
        let kinds = lock(&self.chunks).kinds;
        Taken { explicit_huge: kinds[0] + kinds[1], transparent_huge: kinds[2], plain: kinds[3] }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with the same layout.
        unsafe { std::alloc::dealloc(self.spans.as_ptr().cast(), Self::spans_layout(self.chunks_max)) };
        // No block is used any more: whatever refers to one has a share in the index.
        if let (Some(spare), Some(region)) = (&self.spare, self.region.take()) {
            spare.put(Left { region, chunks: lock(&self.chunks).free.len() as u32 });
        }
    }
}

impl Chunks {
    /// Notes which spans of a chunk are free, and moves the chunk to the list for its longest run.
    fn set_free(&mut self, chunk: u32, free: Option<u32>) {
        let before = std::mem::replace(&mut self.free[chunk as usize], free);
        let [before, after] = [before, free].map(|free| longest_run(free.unwrap_or(0)));
        if before == after {
            return;
        }
        if let Some(list) = before.checked_sub(1) {
            let place = self.places[chunk as usize];
            let list = &mut self.by_run[list];
            list.swap_remove(place as usize);
            if let Some(&moved) = list.get(place as usize) {
                self.places[moved as usize] = place;
            }
        }
        if let Some(list) = after.checked_sub(1) {
            self.places[chunk as usize] = self.by_run[list].len() as u32;
            self.by_run[list].push(chunk);
        }
    }

    fn take(&mut self, chunk: u32, at: u32, count: u32) -> u32 {
        let free = self.free[chunk as usize].unwrap_or(0);
        self.empty -= usize::from(free == u32::MAX);
        self.set_free(chunk, Some(free & !run(at, count)));
        chunk * SPANS_PER_CHUNK + at
    }
}

fn run(at: u32, count: u32) -> u32 {
    (((1_u64 << count) - 1) << at) as u32
}

/// Length of the longest run of set bits.
fn longest_run(mut free: u32) -> usize {
    let mut len = 0;
    while free != 0 {
        free &= free << 1;
        len += 1;
    }
    len
}

/// The first of `count` neighbouring set bits.
fn find_run(free: u32, count: u32) -> Option<u32> {
    (0..=SPANS_PER_CHUNK - count).find(|&at| free & run(at, count) == run(at, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arena() -> Arena {
        Arena::new(&Options { capacity_bytes: Some(64 << 20), ..Options::default() }).unwrap()
    }

    #[test]
    fn classes_cover_and_waste_little() {
        for lines in 1..=CLASS_LINES_MAX {
            let size = rounded(lines);
            let steps = if lines <= 256 { 8 } else { 4 };
            assert!(size >= lines && (size - lines) * steps <= size, "{lines} -> {size}");
        }
        assert_eq!([257, 1100, 1153].map(rounded), [320, 1152, 2048]);
        for class in SHORT_CLASSES..CLASSES.len() {
            let [spans, least] = group_of(class);
            let span = Span { class: class as u8, spans: spans as u8, ..Span::default() };
            assert!(spans >= least && span.end() * 8 <= u64::from(spans * SPAN_LINES), "class {class}");
        }
    }

    #[test]
    fn blocks_do_not_overlap_and_memory_comes_back() {
        let arena = arena();
        let mut seed = 1_u64;
        let mut live: Vec<(Handle, u32, u8)> = Vec::new();
        for round in 0..40_000_u32 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let dice = (seed >> 33) as u32;
            if dice % 100 < 55 || live.is_empty() {
                let lines = match dice % 50 {
                    0 => 257 + dice % 5000,
                    n => 1 + (n * 7 + dice / 50) % 60,
                };
                let Some(handle) = arena.alloc(lines, (dice % 3) as usize, Purpose::Growth) else { continue };
                let mark = round as u8;
                // SAFETY: the block is ours.
                unsafe { arena.at(handle).as_ptr().write_bytes(mark, rounded(lines) as usize * LINE_BYTES) };
                live.push((handle, lines, mark));
            } else {
                let (handle, lines, mark) = live.swap_remove(dice as usize % live.len());
                let bytes = rounded(lines) as usize * LINE_BYTES;
                // SAFETY: the block is ours, initialised above.
                let slice = unsafe { std::slice::from_raw_parts(arena.at(handle).as_ptr(), bytes) };
                assert!(slice.iter().all(|&b| b == mark), "a block was overwritten");
                // SAFETY: taken above with the same size, and not used after.
                unsafe { arena.free(handle, lines, (dice % 5) as usize) };
            }
        }
        for (handle, lines, _) in live {
            // SAFETY: taken above with the same size, and not used after.
            unsafe { arena.free(handle, lines, 0) };
        }
        assert_eq!(arena.live_bytes(), 0);
        let taken = arena.taken();
        let sum = taken.explicit_huge + taken.transparent_huge + taken.plain;
        assert!(sum <= ((CHUNKS_KEPT + 1) * CHUNK_BYTES) as u64, "{sum} bytes kept");
    }

    #[test]
    fn capacity_is_a_limit_and_removals_have_a_reserve() {
        let arena = arena();
        let all = |lines, purpose| std::iter::from_fn(|| arena.alloc(lines, 0, purpose)).count() as u32;
        assert_eq!(all(CHUNK_LINES, Purpose::Growth), 30);
        // Two chunks less the span that is never used, and less the reserve, of four blocks to a span.
        assert_eq!(all(256, Purpose::Growth), (2 * SPANS_PER_CHUNK - 1 - arena.reserve_spans()) * 4);
        assert_eq!(all(1, Purpose::Growth), 0);
        assert_eq!(all(256, Purpose::Removal), (arena.reserve_spans() + arena.spans_beyond()) * 4);
        assert_eq!(all(1, Purpose::Removal), 0);
    }

    #[test]
    fn the_longest_run_is_that_which_is_found() {
        let mut seed = 7_u32;
        for _ in 0..10_000 {
            seed = seed.wrapping_mul(747796405).wrapping_add(2891336453);
            let free = seed & seed.rotate_left(5) | seed >> 11;
            let len = (1..=SPANS_PER_CHUNK).rev().find(|&len| find_run(free, len).is_some()).unwrap_or(0);
            assert_eq!(longest_run(free), len as usize, "{free:b}");
        }
        assert_eq!([0, u32::MAX].map(longest_run), [0, SPANS_PER_CHUNK as usize]);
    }

    #[test]
    fn a_long_run_is_found_in_any_chunk() {
        let arena = arena();
        // Two blocks to a chunk, in all but the last few.
        let half = CHUNK_LINES / 2;
        let blocks: Vec<_> = std::iter::from_fn(|| arena.alloc(half, 0, Purpose::Growth)).collect();
        assert_eq!(blocks.len(), 61);
        let taken = arena.taken();
        // The oldest chunk gets a long run, and many newer ones a short one.
        // SAFETY: taken above with the same size, and not used after.
        unsafe { arena.free(blocks[1], half, 0) };
        for &block in &blocks[20..40] {
            // SAFETY: as above; the block is taken again but for a few spans at its end.
            unsafe { arena.free(block, half, 0) };
            assert!(arena.alloc(half - 4 * SPAN_LINES, 0, Purpose::Removal).is_some());
        }
        assert!(arena.alloc(half, 0, Purpose::Removal).is_some(), "a run of half a chunk is free");
        assert_eq!(arena.taken(), taken);
    }

    #[test]
    fn removals_take_larger_blocks_where_theirs_are_gone() {
        let arena = arena();
        let blocks: Vec<_> = std::iter::from_fn(|| arena.alloc(20, 0, Purpose::Removal)).collect();
        // SAFETY: taken above with the same size, and not used after.
        blocks[..10].iter().for_each(|&block| unsafe { arena.free(block, 20, 0) });
        let live = arena.live_bytes();
        let small: Vec<_> = std::iter::from_fn(|| arena.alloc(3, 5, Purpose::Removal)).collect();
        assert_eq!(small.len(), 10);
        assert!(arena.alloc(1, 5, Purpose::Growth).is_none());
        // SAFETY: taken above with the same size, and not used after.
        small.iter().for_each(|&block| unsafe { arena.free(block, 3, 5) });
        assert_eq!(arena.live_bytes(), live);
        // SAFETY: as above.
        blocks[10..].iter().for_each(|&block| unsafe { arena.free(block, 20, 0) });
        assert_eq!(arena.live_bytes(), 0);
    }
}
