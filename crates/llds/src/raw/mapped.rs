//! [`Mapped`]: a kernel store that is mapped into this process, so that lookups need no system call.
//!
//! The kernel writes to this memory, under its lock, while we read it. So all loads are atomic loads of
//! words, and a copy is used only after the checks of `seqlock.rs`. The layout is that of
//! `kernel/llds/buckets.h` and `entry.h`.

use super::abi;
use super::seqlock::{self, Candidate, Memory, Read, Sequence};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Attempts of a seqlock read before the lookup falls back to a system call.
const TRIES: u32 = 64;
/// Bytes for each unit of a handle.
const UNIT_BYTES: usize = 16;
/// Bytes of a slab. An entry lies within one slab. Slabs are aligned to their size, and so is the mapping of
/// the blocks.
pub(super) const SLAB_BYTES: usize = 65_536;
/// Bytes of a bucket, and the offsets of its fields.
const BUCKET_BYTES: usize = 64;
const NEXT: usize = 4;
const TAGS: usize = 8;
const IS_CROWDED: u32 = 0xff00_0000;
const HANDLES: usize = 20;
/// An entry begins with its version and its lengths.
pub(super) const HEAD_BYTES: usize = 8;
/// The layout of the lengths: bits for the key's, bits for the value's, and the flag of a value in a separate
/// block.
const KEY_BITS: u32 = 13;
const BODY_BITS: u32 = 17;
pub(super) const APART: u32 = 0x4000_0000;

/// A mapped store.
#[derive(Debug)]
pub struct Mapped {
    header: NonNull<abi::Header>,
    blocks: NonNull<u8>,
    buckets: NonNull<u8>,
}

// SAFETY: the memory is not bound to a thread, and nothing here writes to it.
unsafe impl Send for Mapped {}
// SAFETY: fields that change are read by atomic loads; the others never change after `new`.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// The store with this header, these blocks and buckets. `None` if its header lacks [`abi::MAPPABLE`] or
    /// has another version, or if the blocks are not aligned to [`SLAB_BYTES`].
    ///
    /// # Safety
    /// `header` points to a header that stays readable as long as the result lives. If it has
    /// [`abi::MAPPABLE`], `blocks` and `buckets` point to the store's mappings as `uapi/llds.h` describes
    /// them, for as long: every handle that is followed as `seqlock.rs` demands leads to readable memory.
    pub(super) unsafe fn new(
        header: NonNull<abi::Header>,
        blocks: NonNull<u8>,
        buckets: NonNull<u8>,
    ) -> Option<Mapped> {
        // SAFETY: `header` is readable, as the caller of `new` ensures; these two fields never change.
        let (abi, flags) = unsafe { ((*header.as_ptr()).abi, (*header.as_ptr()).flags) };
        let is_readable = abi == abi::ABI && flags & abi::MAPPABLE != 0;
        let is_aligned = blocks.addr().get().is_multiple_of(SLAB_BYTES);
        (is_readable && is_aligned).then_some(Mapped { header, blocks, buckets })
    }

    /// Looks a key up, and passes a copy of its value, or `None` for its absence, to `make`.
    ///
    /// # Errors
    /// Returns `make` uncalled if the value is in a separate block, which is not mapped, if the key's bucket is
    /// crowded, or if 64 attempts met a concurrent change. The caller then reads through the engine.
    #[inline(always)]
    pub fn get<R, F: FnOnce(Option<&[u8]>) -> R>(&self, key: &[u8], make: F) -> Result<R, F> {
        if let Ok(word) = <[u8; 8]>::try_from(key) {
            let words = Words { key: u64::from_ne_bytes(word), value: 0, value_bytes: 0 };
            let mut lookup = self.lookup(hash_of_word(self.salt(), words.key), words);
            match seqlock::read_once(&mut lookup) {
                Read::Found => {
                    let Words { value, value_bytes, .. } = lookup.copier;
                    return Ok(make(Some(&value.to_ne_bytes()[..value_bytes.min(8)])));
                }
                Read::Absent => return Ok(make(None)),
                Read::Apart | Read::Retry => {}
            }
        }
        self.get_any(key, make)
    }

    /// The same for a key and a value of any length.
    #[cold]
    #[inline(never)]
    fn get_any<R, F: FnOnce(Option<&[u8]>) -> R>(&self, key: &[u8], make: F) -> Result<R, F> {
        let mut lookup =
            self.lookup(hash(self.salt(), key), Bytes { key, value: Vec::new(), start: 0, value_bytes: 0 });
        for _ in 0..TRIES {
            match seqlock::read_once(&mut lookup) {
                Read::Found => return Ok(make(Some(lookup.copier.value()))),
                Read::Absent => return Ok(make(None)),
                Read::Apart => return Err(make),
                Read::Retry => std::hint::spin_loop(),
            }
        }
        Err(make)
    }

    #[inline]
    fn salt(&self) -> u64 {
        // SAFETY: the header is readable while `self` lives (see `new`); the salt never changes.
        unsafe { (*self.header.as_ptr()).salt }
    }

    #[inline]
    fn lookup<C: Copier>(&self, hash: u64, copier: C) -> Lookup<'_, C> {
        Lookup { mapped: self, hash: hash as u32, tag: Tag::of(hash), copier }
    }

    pub(super) fn header(&self) -> NonNull<abi::Header> {
        self.header
    }

    #[inline]
    pub(super) fn as_one(&self) -> &Sequence {
        // SAFETY: the header is readable while `self` lives (see `new`), and `Sequence` is a transparent
        // `AtomicU32`.
        unsafe { &*(&raw const (*self.header.as_ptr()).sequence).cast() }
    }

    #[inline]
    pub(super) fn block(&self, handle: u32) -> *const u8 {
        self.blocks.as_ptr().wrapping_add(handle as usize * UNIT_BYTES)
    }
}

/// A lookup of one key.
struct Lookup<'m, C> {
    mapped: &'m Mapped,
    hash: u32,
    tag: Tag,
    copier: C,
}

/// Compares an entry with the key that is looked up, and copies it.
trait Copier {
    fn copy(&mut self, at: *const u8) -> Candidate;
}

/// The fast path: a key of 8 bytes and a value of 1 to 8. A value of another length counts as apart, and
/// `Bytes` reads it.
struct Words {
    key: u64,
    value: u64,
    value_bytes: usize,
}

/// What an entry with these sizes is, if its value is no word.
#[cold]
fn other_than_word(sizes: u32) -> Candidate {
    if key_bytes(sizes) == 8 { Candidate::Apart } else { Candidate::OtherKey }
}

impl Copier for Words {
    #[inline]
    fn copy(&mut self, at: *const u8) -> Candidate {
        // SAFETY: `at` is from a handle that `read_once` checked, so it points to a block that is or was an
        // entry. A block has 16 bytes or more.
        let (sizes, key) = unsafe { (word(at.add(4)), long_word(at.add(HEAD_BYTES))) };
        if key != self.key {
            return Candidate::OtherKey;
        }
        // One comparison for: the key has 8 bytes, the value 1 to 8, and no flag is set.
        let short = sizes.wrapping_sub(8 | 1 << KEY_BITS).rotate_right(KEY_BITS);
        if short >= 8 || !is_in_slab(at, HEAD_BYTES + 16) {
            return other_than_word(sizes);
        }
        // SAFETY: the value's word lies in the entry's slab, as `is_in_slab` has just checked.
        self.value = unsafe { long_word(at.add(HEAD_BYTES + 8)) };
        self.value_bytes = short as usize + 1;
        Candidate::Copied
    }
}

/// Any key, and any value within its entry's block.
struct Bytes<'k> {
    key: &'k [u8],
    /// The words that contain the value.
    value: Vec<u64>,
    /// The value's offset in the first word.
    start: usize,
    value_bytes: usize,
}

impl Bytes<'_> {
    fn value(&self) -> &[u8] {
        // SAFETY: the pointer and length cover exactly the vector's words, which are initialized.
        let bytes: &[u8] =
            unsafe { std::slice::from_raw_parts(self.value.as_ptr().cast(), self.value.len() * 8) };
        &bytes[self.start..][..self.value_bytes]
    }

    /// Whether the entry at `at` has the key. REQUIRES: an entry with a key of this length lies in the slab.
    fn has_key(&self, at: *const u8) -> bool {
        let (words, rest) = self.key.as_chunks::<8>();
        let mut at = at.wrapping_add(HEAD_BYTES);
        for word in words {
            // SAFETY: the key lies in the entry's slab: `copy` checked it by `is_in_slab`.
            if unsafe { long_word(at) } != u64::from_ne_bytes(*word) {
                return false;
            }
            at = at.wrapping_add(8);
        }
        // SAFETY: the rest of the key lies in the slab, and a slab is a whole number of words.
        rest.is_empty() || unsafe { long_word(at) }.to_ne_bytes()[..rest.len()] == *rest
    }
}

impl Copier for Bytes<'_> {
    fn copy(&mut self, at: *const u8) -> Candidate {
        // SAFETY: `at` is from a handle that `read_once` checked, so it points to a block that is or was an
        // entry, with the 8 bytes of an entry's head.
        let sizes = unsafe { word(at.add(4)) };
        let value_bytes = body_bytes(sizes);
        let key_end = HEAD_BYTES + self.key.len();
        if key_bytes(sizes) != self.key.len() || !is_in_slab(at, key_end + value_bytes) || !self.has_key(at) {
            return Candidate::OtherKey;
        }
        if sizes & APART != 0 {
            return Candidate::Apart;
        }
        self.start = key_end % 8;
        self.value_bytes = value_bytes;
        let first = at.wrapping_add(key_end - self.start);
        let words = (self.start + value_bytes).div_ceil(8);
        self.value.clear();
        // SAFETY: the value lies in the entry's slab, as `is_in_slab` has just checked; a slab is a whole
        // number of words.
        self.value.extend((0..words).map(|number| unsafe { long_word(first.add(8 * number)) }));
        Candidate::Copied
    }
}

#[inline]
pub(super) fn key_bytes(sizes: u32) -> usize {
    (sizes & ((1 << KEY_BITS) - 1)) as usize
}

/// Bytes of the value in the entry's block, after the key.
#[inline]
pub(super) fn body_bytes(sizes: u32) -> usize {
    (sizes >> KEY_BITS & ((1 << BODY_BITS) - 1)) as usize
}

/// Whether an entry of `bytes` bytes at `at` stays within its slab, all of which is readable. A block that is
/// no longer an entry may hold any lengths, so callers check this before they use one.
#[inline]
pub(super) fn is_in_slab(at: *const u8, bytes: usize) -> bool {
    at.addr() % SLAB_BYTES + bytes <= SLAB_BYTES
}

/// Loads 4 bytes that a writer may change at the same time.
///
/// # Safety
/// `at` points to 4 bytes that are readable while the store is mapped, and is aligned to 4.
#[inline]
pub(super) unsafe fn word(at: *const u8) -> u32 {
    // SAFETY: `at` is readable and aligned, as the caller ensures; writers store such words atomically.
    unsafe { (*at.cast::<AtomicU32>()).load(Ordering::Relaxed) }
}

/// Loads 8 bytes that a writer may change at the same time.
///
/// # Safety
/// `at` points to 8 bytes that are readable while the store is mapped, and is aligned to 8.
#[inline]
pub(super) unsafe fn long_word(at: *const u8) -> u64 {
    // SAFETY: `at` is readable and aligned, as the caller ensures.
    unsafe { (*at.cast::<AtomicU64>()).load(Ordering::Relaxed) }
}

/// The bits of a bucket's 11 slots.
const SLOTS: u32 = (1 << 11) - 1;
/// The least tag of an entry.
const TAG_MIN: u8 = 2;

/// The tag of a key: the highest byte of its hash, or [`TAG_MIN`] if that is more.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
#[derive(Clone, Copy)]
struct Tag(u8);

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
impl Tag {
    #[inline]
    fn of(hash: u64) -> Tag {
        Tag(((hash >> 56) as u8).max(TAG_MIN))
    }

    /// Which of 16 tags of a bucket are this one: bit i for tag i.
    ///
    /// # Safety
    /// `bucket` is aligned to 8, and its bytes are readable while the store is mapped.
    #[inline]
    unsafe fn slots(self, bucket: *const u8) -> u32 {
        // SAFETY: the tags are readable and aligned, as the caller ensures.
        let words = unsafe { [long_word(bucket.add(TAGS)), long_word(bucket.add(TAGS + 8))] };
        let tags = u128::from(words[0]) | u128::from(words[1]) << 64;
        tags.to_le_bytes().iter().rev().fold(0, |slots, tag| slots << 1 | u32::from(*tag == self.0))
    }
}

/// The tag of a key in each of 16 bytes.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[derive(Clone, Copy)]
struct Tag(std::arch::x86_64::__m128i);

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
impl Tag {
    #[inline]
    fn of(hash: u64) -> Tag {
        use std::arch::x86_64 as x86;
        // SAFETY: the processor has SSE2, as this implementation's condition says.
        unsafe {
            let hash = x86::_mm_cvtsi64_si128(hash as i64);
            // The highest byte twice, four times, in all bytes.
            let words = x86::_mm_unpacklo_epi8(hash, hash);
            let half = x86::_mm_shufflehi_epi16::<0xff>(words);
            let tags = x86::_mm_unpackhi_epi64(half, half);
            Tag(x86::_mm_max_epu8(tags, x86::_mm_set1_epi8(TAG_MIN as i8)))
        }
    }

    /// Which of 16 tags of a bucket are this one: bit i for tag i.
    ///
    /// # Safety
    /// The bytes of `bucket` are readable while the store is mapped.
    #[inline]
    unsafe fn slots(self, bucket: *const u8) -> u32 {
        use std::arch::x86_64 as x86;
        let tags: x86::__m128i;
        // SAFETY: the tags are readable, as the caller ensures. A writer may change them meanwhile. To the compiler
        // this is a load by foreign code, and what it loaded counts only if the bucket's sequence has not changed.
        unsafe {
            std::arch::asm!(
                "movdqu {tags}, [{bucket} + {TAGS}]",
                tags = out(xmm_reg) tags,
                bucket = in(reg) bucket,
                TAGS = const TAGS,
                options(readonly, nostack, preserves_flags),
            );
        }
        // SAFETY: the processor has SSE2, as this implementation's condition says.
        unsafe { x86::_mm_movemask_epi8(x86::_mm_cmpeq_epi8(tags, self.0)) as u32 }
    }
}

impl<C: Copier> Memory for Lookup<'_, C> {
    type Bucket = *const u8;

    #[inline]
    fn as_one(&self) -> &Sequence {
        self.mapped.as_one()
    }

    #[inline]
    fn buckets(&self) -> u64 {
        // SAFETY: the header is readable while `mapped` lives (see `Mapped::new`).
        unsafe { long_word((&raw const (*self.mapped.header.as_ptr()).buckets).cast()) }
    }

    #[inline]
    fn home(&self, buckets: u64) -> *const u8 {
        let (count, mask) = (buckets as u32, (buckets >> 32) as u32);
        let (at, before) = (self.hash & mask, self.hash & (mask >> 1));
        let at = if at < count { at } else { before };
        self.mapped.buckets.as_ptr().wrapping_add(at as usize * BUCKET_BYTES)
    }

    #[inline]
    fn sequence(&self, bucket: *const u8) -> &Sequence {
        // SAFETY: `bucket` is from `home`. A bucket begins with its sequence, and its memory stays mapped.
        unsafe { &*bucket.cast() }
    }

    /// Bit i for slot i.
    #[inline]
    fn slots(&self, bucket: *const u8) -> u32 {
        // SAFETY: all of a bucket's 64 bytes are readable, and aligned; `bucket` is from `home` or `continued`.
        unsafe { self.tag.slots(bucket) & SLOTS }
    }

    #[inline]
    fn handle(&self, bucket: *const u8, slots: u32) -> u32 {
        let slot = slots.trailing_zeros() as usize;
        // SAFETY: `slot < 11`, from the bits that `slots` can set, so the handle lies within the bucket's 64
        // bytes.
        unsafe { word(bucket.add(HANDLES + 4 * slot)) }
    }

    #[inline]
    fn more(&self, bucket: *const u8) -> u32 {
        // SAFETY: this offset lies within a bucket's 64 bytes; `bucket` is from `home` or `continued`.
        unsafe { word(bucket.add(NEXT)) }
    }

    #[inline]
    fn continued(&self, handle: u32) -> *const u8 {
        self.mapped.block(handle)
    }

    #[inline]
    fn is_crowded(&self, home: *const u8) -> bool {
        // SAFETY: this offset lies within a bucket's 64 bytes; `home` is from `home`.
        unsafe { word(home.add(TAGS + 8)) & IS_CROWDED != 0 }
    }

    #[inline]
    fn copy(&mut self, handle: u32) -> Candidate {
        self.copier.copy(self.mapped.block(handle))
    }
}

const FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];

/// The hash of a key, the same as `llds_hash()` in `kernel/llds/buckets.h`.
fn hash(salt: u64, key: &[u8]) -> u64 {
    let mut hash = salt ^ key.len() as u64;
    let (words, rest) = key.as_chunks::<8>();
    for word in words {
        hash = fold(hash ^ u64::from_ne_bytes(*word), FACTORS[0]);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = fold(hash ^ u64::from_ne_bytes(last), FACTORS[0]);
    }
    fold(hash, FACTORS[1])
}

/// The same for a key of eight bytes.
#[inline]
fn hash_of_word(salt: u64, key: u64) -> u64 {
    fold(fold(salt ^ 8 ^ key, FACTORS[0]), FACTORS[1])
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(all(test, feature = "user"))]
#[path = "mapped_tests.rs"]
pub(super) mod tests;
