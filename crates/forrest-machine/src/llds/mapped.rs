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
/// An entry lies in one of these, on a multiple of their length.
const SLAB_BYTES: usize = 65_536;
/// Bytes of a bucket, and where its parts are.
const BUCKET_BYTES: usize = 64;
const NEXT: usize = 4;
const TAGS: usize = 8;
const HANDLES: usize = 20;
/// Lengths of key and value in the second word of an entry, and that its value lies by itself.
const KEY_BITS: u32 = 13;
const BODY_BITS: u32 = 17;
const APART: u32 = 0x4000_0000;
/// An entry of so many words is copied to the stack.
const SHORT_WORDS: usize = 33;

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
    /// A store whose header, blocks and buckets are in sight there; `None` if it is none that can be read so.
    ///
    /// # Safety
    /// The header is there. If it says that the store can be mapped, the others are, as `uapi/llds.h` has it: with memory
    /// wherever a handle leads that is looked at as `sight.rs` does, for as long as this lives.
    pub(super) unsafe fn new(
        header: NonNull<abi::Header>,
        blocks: NonNull<u8>,
        buckets: NonNull<u8>,
    ) -> Option<Mapped> {
        // SAFETY: it is there, by contract, and these never change.
        let (abi, flags) = unsafe { ((*header.as_ptr()).abi, (*header.as_ptr()).flags) };
        (abi == abi::ABI && flags & abi::MAPPABLE != 0).then_some(Mapped { header, blocks, buckets })
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
        let hash = hash(salt, key);
        let tag = (hash >> 56) as u8;
        let mut looking = Looking {
            mapped: self,
            key,
            hash: hash as u32,
            tag: if tag < 2 { tag + 2 } else { tag },
            short: [0; SHORT_WORDS],
            long: Vec::new(),
            body_bytes: 0,
        };
        for _ in 0..TRIES {
            match sight::look(&mut looking) {
                Look::Found => return Ok(make(Some(looking.value()))),
                Look::Absent => return Ok(make(None)),
                Look::Apart => return Err(make),
                Look::Again => std::hint::spin_loop(),
            }
        }
        Err(make)
    }

    fn block(&self, handle: u32) -> *const u8 {
        self.blocks.as_ptr().wrapping_add(handle as usize * UNIT_BYTES)
    }
}

/// One who looks for a key, and what was copied for him.
struct Looking<'m, 'k> {
    mapped: &'m Mapped,
    key: &'k [u8],
    hash: u32,
    tag: u8,
    /// The entry behind its first word, if it is short.
    short: [u64; SHORT_WORDS],
    /// If it is not.
    long: Vec<u64>,
    body_bytes: usize,
}

impl Looking<'_, '_> {
    /// The bytes that were copied.
    #[inline]
    fn bytes(&self) -> &[u8] {
        let words = if self.long.is_empty() { &self.short[..] } else { &self.long[..] };
        // SAFETY: any word is eight bytes.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len() * 8) }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        &self.bytes()[self.key.len()..][..self.body_bytes]
    }
}

/// Reads what may be changed meanwhile.
///
/// # Safety
/// There is memory, for as long as the store is in sight, and it is aligned.
#[inline]
unsafe fn word(at: *const u8) -> u32 {
    // SAFETY: by contract.
    unsafe { (*at.cast::<AtomicU32>()).load(Ordering::Relaxed) }
}

/// The same of eight bytes.
///
/// # Safety
/// As `word`.
#[inline]
unsafe fn long_word(at: *const u8) -> u64 {
    // SAFETY: by contract.
    unsafe { (*at.cast::<AtomicU64>()).load(Ordering::Relaxed) }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

impl Memory for Looking<'_, '_> {
    type Bucket = *const u8;

    #[inline]
    fn as_one(&self) -> &Sequence {
        // SAFETY: the header is there; a sequence is its number.
        unsafe { &*(&raw const (*self.mapped.header.as_ptr()).sequence).cast() }
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

    /// Bit 8 i for slot i, and bit 8 i + 4 for slot 8 + i: see `slots_with()` in `kernel/llds/buckets.c`.
    #[inline]
    fn slots(&self, bucket: *const u8) -> u64 {
        let tags = ONES * u64::from(self.tag);
        // SAFETY: the parts of a bucket.
        let (first, last) = unsafe { (long_word(bucket.add(TAGS)), word(bucket.add(TAGS + 8))) };
        let first = first ^ tags;
        let last = u64::from(last ^ tags as u32);
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
        let at = self.mapped.block(handle);
        // SAFETY: a handle that was looked at leads to an entry, or what was one; it is there, with its lengths.
        let sizes = unsafe { word(at.add(4)) };
        let key_bytes = (sizes & ((1 << KEY_BITS) - 1)) as usize;
        let body_bytes = (sizes >> KEY_BITS & ((1 << BODY_BITS) - 1)) as usize;
        if key_bytes != self.key.len() {
            return Entry::Other;
        }
        let words = (key_bytes + body_bytes).div_ceil(8);
        // What is no entry any more has any lengths. Of a slab all is there.
        if at.addr() % SLAB_BYTES + 8 + 8 * words > SLAB_BYTES {
            return Entry::Other;
        }
        let to = if words <= SHORT_WORDS {
            self.long = Vec::new();
            &mut self.short[..words]
        } else {
            self.long.resize(words, 0);
            &mut self.long[..words]
        };
        for (i, to) in to.iter_mut().enumerate() {
            // SAFETY: it lies in the slab of the entry.
            *to = unsafe { long_word(at.add(8 + 8 * i)) };
        }
        let is_same = match *self.key {
            // The most usual length, and one comparison.
            [a, b, c, d, e, f, g, h] => to[0] == u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            _ => self.bytes()[..key_bytes] == *self.key,
        };
        if !is_same {
            return Entry::Other;
        }
        self.body_bytes = body_bytes;
        if sizes & APART == 0 { Entry::Same } else { Entry::Apart }
    }
}

/// The hash of a key, as `llds_hash()` in `kernel/llds/buckets.h` has it.
#[inline]
fn hash(salt: u64, key: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = salt ^ key.len() as u64;
    let (words, rest) = key.as_chunks::<8>();
    for word in words {
        hash = fold(hash ^ u64::from_ne_bytes(*word), FACTOR);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = fold(hash ^ u64::from_ne_bytes(last), FACTOR);
    }
    fold(hash, 0xd6e8_feb8_6659_fd93)
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(all(test, feature = "llds-user"))]
#[path = "mapped_tests.rs"]
mod tests;
