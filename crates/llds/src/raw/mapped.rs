//! [`Mapped`]: a store of the kernel in the memory of this process, where keys are looked up without a system call.
//!
//! The kernel writes there, under its lock, while we read: so everything is read by atomic loads of words, copied, and
//! believed only as `sight.rs` says. The layout is that of `kernel/llds/buckets.h` and `entry.h`.

use super::abi;
use super::sight::{self, Entry, Look, Memory, Sequence};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// So often a look is tried before the kernel is asked.
const TRIES: u32 = 64;
/// Handles count so many bytes.
const UNIT_BYTES: usize = 16;
/// An entry lies in one of these, on a multiple of their length: from there on, blocks are in sight.
pub(super) const SLAB_BYTES: usize = 65_536;
/// Bytes of a bucket, and where its parts are.
const BUCKET_BYTES: usize = 64;
const NEXT: usize = 4;
const TAGS: usize = 8;
const HANDLES: usize = 20;
/// An entry begins with its version and its lengths.
pub(super) const HEAD_BYTES: usize = 8;
/// Lengths of key and value in the second of these, and that its value lies by itself.
const KEY_BITS: u32 = 13;
const BODY_BITS: u32 = 17;
pub(super) const APART: u32 = 0x4000_0000;

/// A store in sight.
#[derive(Debug)]
pub struct Mapped {
    header: NonNull<abi::Header>,
    blocks: NonNull<u8>,
    buckets: NonNull<u8>,
}

// SAFETY: the memory belongs to no thread, and is only read.
unsafe impl Send for Mapped {}
// SAFETY: all that changes is read by atomic loads.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// A store whose header, blocks and buckets are in sight there; `None` if it is none that can be read so, or the
    /// blocks do not begin at a multiple of [`SLAB_BYTES`].
    ///
    /// # Safety
    /// The header is there. If it says that the store can be mapped, the others are, as `uapi/llds.h` has it: with
    /// memory wherever a handle leads that is looked at as `sight.rs` does, for as long as this lives.
    pub(super) unsafe fn new(
        header: NonNull<abi::Header>,
        blocks: NonNull<u8>,
        buckets: NonNull<u8>,
    ) -> Option<Mapped> {
        // SAFETY: it is there, by contract, and these never change.
        let (abi, flags) = unsafe { ((*header.as_ptr()).abi, (*header.as_ptr()).flags) };
        let is_readable = abi == abi::ABI && flags & abi::MAPPABLE != 0;
        let is_aligned = blocks.addr().get().is_multiple_of(SLAB_BYTES);
        (is_readable && is_aligned).then_some(Mapped { header, blocks, buckets })
    }

    /// Looks a key up, and makes something of a copy of its value, or of its absence. `make` comes back if it cannot be
    /// seen here, because the value is a long one that lies by itself, or because others change the store all the time:
    /// then ask the engine.
    ///
    /// # Errors
    /// `make`, as said.
    #[inline]
    pub fn get<R, F: FnOnce(Option<&[u8]>) -> R>(&self, key: &[u8], make: F) -> Result<R, F> {
        // SAFETY: it is there, and the salt never changes.
        let salt = unsafe { (*self.header.as_ptr()).salt };
        if let Ok(word) = <[u8; 8]>::try_from(key) {
            let words = Words { key: u64::from_ne_bytes(word), value: 0, value_bytes: 0 };
            let mut looking = self.looking(hash_of_word(salt, words.key), words);
            match sight::look(&mut looking) {
                Look::Found => {
                    let Words { value, value_bytes, .. } = looking.copier;
                    return Ok(make(Some(&value.to_ne_bytes()[..value_bytes.min(8)])));
                }
                Look::Absent => return Ok(make(None)),
                Look::Apart | Look::Again => {}
            }
        }
        self.get_any(hash(salt, key), key, make)
    }

    /// The same, with an entry of any lengths.
    fn get_any<R, F: FnOnce(Option<&[u8]>) -> R>(&self, hash: u64, key: &[u8], make: F) -> Result<R, F> {
        let mut looking = self.looking(hash, Bytes { key, value: Vec::new(), start: 0, value_bytes: 0 });
        for _ in 0..TRIES {
            match sight::look(&mut looking) {
                Look::Found => return Ok(make(Some(looking.copier.value()))),
                Look::Absent => return Ok(make(None)),
                Look::Apart => return Err(make),
                Look::Again => std::hint::spin_loop(),
            }
        }
        Err(make)
    }

    #[inline]
    fn looking<C: Copier>(&self, hash: u64, copier: C) -> Looking<'_, C> {
        let tag = (hash >> 56) as u8;
        let tags = ONES * u64::from(if tag < 2 { tag + 2 } else { tag });
        Looking { mapped: self, hash: hash as u32, tags, copier }
    }

    pub(super) fn header(&self) -> NonNull<abi::Header> {
        self.header
    }

    #[inline]
    pub(super) fn as_one(&self) -> &Sequence {
        // SAFETY: the header is there; a sequence is its number.
        unsafe { &*(&raw const (*self.header.as_ptr()).sequence).cast() }
    }

    #[inline]
    pub(super) fn block(&self, handle: u32) -> *const u8 {
        self.blocks.as_ptr().wrapping_add(handle as usize * UNIT_BYTES)
    }
}

/// One who looks for a key.
struct Looking<'m, C> {
    mapped: &'m Mapped,
    hash: u32,
    /// The tag, eight times.
    tags: u64,
    copier: C,
}

/// What knows the key, and copies its entry.
trait Copier {
    fn copy(&mut self, at: *const u8) -> Entry;
}

/// A key and a value of a word at most, which is what most have. To this, other values lie apart.
struct Words {
    key: u64,
    value: u64,
    value_bytes: usize,
}

impl Copier for Words {
    #[inline]
    fn copy(&mut self, at: *const u8) -> Entry {
        // SAFETY: a handle that was looked at leads to an entry, or what was one; its first 16 bytes are there, for no
        // block has less.
        let (sizes, key) = unsafe { (word(at.add(4)), long_word(at.add(HEAD_BYTES))) };
        if key != self.key {
            return Entry::Other;
        }
        // The lengths are 8 and one of 1 to 8, and nothing else is said: one comparison.
        let short = sizes.wrapping_sub(8 | 1 << KEY_BITS).rotate_right(KEY_BITS);
        if short < 8 && is_in_slab(at, HEAD_BYTES + 16) {
            // SAFETY: it lies in the slab of the entry.
            self.value = unsafe { long_word(at.add(HEAD_BYTES + 8)) };
            self.value_bytes = short as usize + 1;
            return Entry::Same;
        }
        if key_bytes(sizes) == 8 { Entry::Apart } else { Entry::Other }
    }
}

/// Any key, and any value that does not lie by itself.
struct Bytes<'k> {
    key: &'k [u8],
    /// The words that have the value.
    value: Vec<u64>,
    /// Where it starts in the first of them.
    start: usize,
    value_bytes: usize,
}

impl Bytes<'_> {
    fn value(&self) -> &[u8] {
        // SAFETY: any word is eight bytes.
        let bytes: &[u8] =
            unsafe { std::slice::from_raw_parts(self.value.as_ptr().cast(), self.value.len() * 8) };
        &bytes[self.start..][..self.value_bytes]
    }

    /// Whether the entry there has the key.
    fn has_key(&self, at: *const u8) -> bool {
        let (words, rest) = self.key.as_chunks::<8>();
        let mut at = at.wrapping_add(HEAD_BYTES);
        for word in words {
            // SAFETY: it lies in the slab of the entry.
            if unsafe { long_word(at) } != u64::from_ne_bytes(*word) {
                return false;
            }
            at = at.wrapping_add(8);
        }
        // SAFETY: likewise; a slab ends with a word.
        rest.is_empty() || unsafe { long_word(at) }.to_ne_bytes()[..rest.len()] == *rest
    }
}

impl Copier for Bytes<'_> {
    fn copy(&mut self, at: *const u8) -> Entry {
        // SAFETY: a handle that was looked at leads to an entry, or what was one; it is there, with its lengths.
        let sizes = unsafe { word(at.add(4)) };
        let value_bytes = body_bytes(sizes);
        let behind = HEAD_BYTES + self.key.len();
        if key_bytes(sizes) != self.key.len() || !is_in_slab(at, behind + value_bytes) || !self.has_key(at) {
            return Entry::Other;
        }
        if sizes & APART != 0 {
            return Entry::Apart;
        }
        self.start = behind % 8;
        self.value_bytes = value_bytes;
        let first = at.wrapping_add(behind - self.start);
        let words = (self.start + value_bytes).div_ceil(8);
        self.value.clear();
        // SAFETY: it lies in the slab of the entry, which ends with a word.
        self.value.extend((0..words).map(|number| unsafe { long_word(first.add(8 * number)) }));
        Entry::Same
    }
}

#[inline]
pub(super) fn key_bytes(sizes: u32) -> usize {
    (sizes & ((1 << KEY_BITS) - 1)) as usize
}

/// Bytes of what lies behind the key.
#[inline]
pub(super) fn body_bytes(sizes: u32) -> usize {
    (sizes >> KEY_BITS & ((1 << BODY_BITS) - 1)) as usize
}

/// Whether so many bytes of an entry would lie in its slab, all of which is there: what is no entry any more has any
/// lengths.
#[inline]
pub(super) fn is_in_slab(at: *const u8, bytes: usize) -> bool {
    at.addr() % SLAB_BYTES + bytes <= SLAB_BYTES
}

/// Reads what may be changed meanwhile.
///
/// # Safety
/// There is memory, for as long as the store is in sight, and it is aligned.
#[inline]
pub(super) unsafe fn word(at: *const u8) -> u32 {
    // SAFETY: by contract.
    unsafe { (*at.cast::<AtomicU32>()).load(Ordering::Relaxed) }
}

/// The same of eight bytes.
///
/// # Safety
/// As `word`.
#[inline]
pub(super) unsafe fn long_word(at: *const u8) -> u64 {
    // SAFETY: by contract.
    unsafe { (*at.cast::<AtomicU64>()).load(Ordering::Relaxed) }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

impl<C: Copier> Memory for Looking<'_, C> {
    type Bucket = *const u8;

    #[inline]
    fn as_one(&self) -> &Sequence {
        self.mapped.as_one()
    }

    #[inline]
    fn buckets(&self) -> u32 {
        // SAFETY: the header is there.
        unsafe { word((&raw const (*self.mapped.header.as_ptr()).buckets).cast()) }
    }

    #[inline]
    fn home(&self, buckets: u32) -> *const u8 {
        let mask = u32::MAX >> (buckets.wrapping_sub(1) | 1).leading_zeros();
        let at = self.hash & mask;
        let at = if at < buckets { at } else { at & (mask >> 1) };
        self.mapped.buckets.as_ptr().wrapping_add(at as usize * BUCKET_BYTES)
    }

    #[inline]
    fn sequence(&self, bucket: *const u8) -> &Sequence {
        // SAFETY: a bucket begins with its sequence, and one that there is stays.
        unsafe { &*bucket.cast() }
    }

    /// Bit 8 i for slot i, and bit 8 i + 4 for slot 8 + i: see `llds_slots_with()` in `kernel/llds/buckets.h`.
    #[inline]
    fn slots(&self, bucket: *const u8) -> u64 {
        // SAFETY: the parts of a bucket.
        let (first, last) = unsafe { (long_word(bucket.add(TAGS)), word(bucket.add(TAGS + 8))) };
        let first = first ^ self.tags;
        let last = u64::from(last ^ self.tags as u32);
        let first = (first.wrapping_sub(ONES) & !first & HIGHS) >> 7;
        first | (last.wrapping_sub(0x0101_0101) & !last & 0x80_8080) >> 3
    }

    #[inline]
    fn handle(&self, bucket: *const u8, slots: u64) -> u32 {
        let bit = slots.trailing_zeros() as usize;
        let slot = (bit >> 3) + ((bit & 4) << 1);
        // SAFETY: a slot is one of eleven, by the form of `slots`.
        unsafe { word(bucket.add(HANDLES + 4 * slot)) }
    }

    #[inline]
    fn more(&self, bucket: *const u8) -> u32 {
        // SAFETY: a part of a bucket.
        unsafe { word(bucket.add(NEXT)) }
    }

    #[inline]
    fn continued(&self, handle: u32) -> *const u8 {
        self.mapped.block(handle)
    }

    #[inline]
    fn copy(&mut self, handle: u32) -> Entry {
        self.copier.copy(self.mapped.block(handle))
    }
}

const FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];

/// The hash of a key, as `llds_hash()` in `kernel/llds/buckets.h` has it.
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

/// The same of a key of eight bytes.
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
