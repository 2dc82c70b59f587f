//! The two vectorized searches of nodes, each with a portable version that is its oracle in the tests.
//!
//! The base of each architecture has the needed vectors (SSE2, NEON). On x86-64 wider vectors take a fifth of the
//! instructions, which decides how many lookups a core overlaps. So whole operations are also compiled for AVX2 and
//! AVX-512 and chosen at run time: an operation is generic over [`Isa`], and [`dispatch!`] calls it through a function
//! that enables the features.

/// Heads in an inner node, padded with `i32::MAX`.
pub(crate) const HEADS: usize = 64;
/// Tags compared at a time in a leaf.
pub(crate) const TAGS_AT_ONCE: usize = 64;

/// An instruction set.
pub(crate) trait Isa {
    /// How many of the sorted `heads` are below `head`.
    ///
    /// # Safety
    /// The processor has the instruction set.
    unsafe fn rank(heads: &[i32; HEADS], head: i32) -> usize;

    /// A bit for each of `tags` that equals `tag`.
    ///
    /// # Safety
    /// The processor has the instruction set.
    unsafe fn matches(tags: &[u8; TAGS_AT_ONCE], tag: u8) -> u64;
}

/// What every processor of the architecture has.
pub(crate) struct Base;

// Each contract is the trait's: the base needs nothing.
impl Isa for Base {
    #[inline(always)]
    unsafe fn rank(heads: &[i32; HEADS], head: i32) -> usize {
        rank(heads, head)
    }

    #[inline(always)]
    unsafe fn matches(tags: &[u8; TAGS_AT_ONCE], tag: u8) -> u64 {
        matches(tags, tag)
    }
}

/// The portable versions, as a measurement can ask for them.
#[cfg(feature = "portable")]
pub(crate) struct Portable;

// Each contract is the trait's: portable code needs nothing.
#[cfg(feature = "portable")]
impl Isa for Portable {
    #[inline(always)]
    unsafe fn rank(heads: &[i32; HEADS], head: i32) -> usize {
        portable::rank(heads, head)
    }

    #[inline(always)]
    unsafe fn matches(tags: &[u8; TAGS_AT_ONCE], tag: u8) -> u64 {
        portable::matches(tags, tag)
    }
}

/// Makes the searches of lookups portable code, in all indexes of the process from now on: to measure what vector
/// instructions save. The compiler may still use those of the architecture's base.
#[cfg(feature = "portable")]
pub fn use_portable_search() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    LEVEL.store(4, std::sync::atomic::Ordering::Relaxed);
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    PORTABLE.store(true, std::sync::atomic::Ordering::Relaxed);
}

/// Whether [`use_portable_search`] was called.
#[cfg(all(feature = "portable", not(all(target_arch = "x86_64", not(miri)))))]
pub(crate) static PORTABLE: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Which instruction set to use: 0 not yet known, 1 the base, 2 AVX2, 3 AVX-512, 4 none that has vectors.
#[cfg(all(target_arch = "x86_64", not(miri)))]
static LEVEL: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub(crate) fn level() -> u8 {
    match LEVEL.load(std::sync::atomic::Ordering::Relaxed) {
        0 => detect(),
        level => level,
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[cold]
fn detect() -> u8 {
    let level = detected();
    LEVEL.store(level, std::sync::atomic::Ordering::Relaxed);
    level
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn detected() -> u8 {
    /// True if the processor has all of these. Those that `dispatch` enables are the same ones.
    macro_rules! all {
        ($($feature:tt),*) => { $(is_x86_feature_detected!($feature))&&* };
    }
    let has_common = all!("popcnt", "bmi1", "bmi2", "lzcnt");
    if has_common && all!("avx512f", "avx512bw", "avx512vl") {
        3
    } else if has_common && all!("avx2") {
        2
    } else {
        1
    }
}

/// Defines a function that runs `$body::<I>(args)` for the best instruction set `I` of this processor.
macro_rules! dispatch {
    ($(#[$meta:meta])* $vis:vis fn $name:ident<$life:lifetime>($($arg:ident: $type:ty),*) -> $result:ty = $body:ident) => {
        $(#[$meta])*
        #[inline(always)]
        $vis fn $name<$life>($($arg: $type),*) -> $result {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512vl,popcnt,bmi1,bmi2,lzcnt")]
                fn avx512<$life>($($arg: $type),*) -> $result {
                    // SAFETY: this function is called only where the processor has AVX-512.
                    unsafe { $body::<crate::simd::Avx512>($($arg),*) }
                }
                #[target_feature(enable = "avx2,popcnt,bmi1,bmi2,lzcnt")]
                fn avx2<$life>($($arg: $type),*) -> $result {
                    // SAFETY: this function is called only where the processor has AVX2.
                    unsafe { $body::<crate::simd::Avx2>($($arg),*) }
                }
                match crate::simd::level() {
                    // SAFETY: detected.
                    3 => return unsafe { avx512($($arg),*) },
                    // SAFETY: detected.
                    2 => return unsafe { avx2($($arg),*) },
                    // SAFETY: portable code needs nothing.
                    #[cfg(feature = "portable")]
                    4 => return unsafe { $body::<crate::simd::Portable>($($arg),*) },
                    _ => {}
                }
            }
            #[cfg(all(feature = "portable", not(all(target_arch = "x86_64", not(miri)))))]
            if crate::simd::PORTABLE.load(std::sync::atomic::Ordering::Relaxed) {
                // SAFETY: portable code needs nothing.
                return unsafe { $body::<crate::simd::Portable>($($arg),*) };
            }
            // SAFETY: every processor has the base.
            unsafe { $body::<crate::simd::Base>($($arg),*) }
        }
    };
}
pub(crate) use dispatch;

#[inline(always)]
fn rank(heads: &[i32; HEADS], head: i32) -> usize {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    return x86::rank(heads, head);
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    portable::rank(heads, head)
}

#[inline(always)]
pub(crate) fn matches(tags: &[u8; TAGS_AT_ONCE], tag: u8) -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    return x86::matches(tags, tag);
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    return neon::matches(tags, tag);
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    portable::matches(tags, tag)
}

/// A bit for each of the sixteen bytes of `low` and `high` (little end first) that equals `tag`.
#[inline(always)]
pub(crate) fn matches16(low: u64, high: u64, tag: u8) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    return x86::matches16(low, high, tag);
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    portable::matches16(low, high, tag)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) use wide::{Avx2, Avx512};

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod wide {
    use super::{HEADS, Isa, TAGS_AT_ONCE};
    use std::arch::x86_64::*;

    /// AVX2 with bit counting.
    pub(crate) struct Avx2;

    impl Isa for Avx2 {
        #[inline(always)]
        unsafe fn rank(heads: &[i32; HEADS], head: i32) -> usize {
            // SAFETY: the caller has AVX2; the loads stay inside the array.
            unsafe {
                let needle = _mm256_set1_epi32(head);
                let mut sums = [_mm256_setzero_si256(); 2];
                for (i, chunk) in heads.chunks_exact(8).enumerate() {
                    let below = _mm256_cmpgt_epi32(needle, _mm256_loadu_si256(chunk.as_ptr().cast()));
                    sums[i % 2] = _mm256_sub_epi32(sums[i % 2], below);
                }
                let sum = _mm256_add_epi32(sums[0], sums[1]);
                let sum = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
                let sum = _mm_add_epi32(sum, _mm_shuffle_epi32::<0b01_00_11_10>(sum));
                let sum = _mm_add_epi32(sum, _mm_shuffle_epi32::<0b10_11_00_01>(sum));
                _mm_cvtsi128_si32(sum) as usize
            }
        }

        #[inline(always)]
        unsafe fn matches(tags: &[u8; TAGS_AT_ONCE], tag: u8) -> u64 {
            let mut mask = 0;
            for (i, chunk) in tags.chunks_exact(32).enumerate() {
                // SAFETY: the caller has AVX2; the load stays inside the array.
                let bits = unsafe {
                    let tags = _mm256_loadu_si256(chunk.as_ptr().cast());
                    _mm256_movemask_epi8(_mm256_cmpeq_epi8(tags, _mm256_set1_epi8(tag as i8))) as u32
                };
                mask |= u64::from(bits) << (32 * i);
            }
            mask
        }
    }

    /// AVX-512 (F, BW) with bit counting.
    pub(crate) struct Avx512;

    impl Isa for Avx512 {
        #[inline(always)]
        unsafe fn rank(heads: &[i32; HEADS], head: i32) -> usize {
            // SAFETY: the caller has AVX-512; the loads stay inside the array.
            unsafe {
                let needle = _mm512_set1_epi32(head);
                let below = |i: usize| {
                    let heads = _mm512_loadu_si512(heads.as_ptr().add(16 * i).cast());
                    u64::from(_mm512_cmpgt_epi32_mask(needle, heads)) << (16 * i)
                };
                (below(0) | below(1) | below(2) | below(3)).count_ones() as usize
            }
        }

        #[inline(always)]
        unsafe fn matches(tags: &[u8; TAGS_AT_ONCE], tag: u8) -> u64 {
            // SAFETY: the caller has AVX-512; the load is of the array.
            unsafe {
                _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(tags.as_ptr().cast()), _mm512_set1_epi8(tag as i8))
            }
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86 {
    use super::{HEADS, TAGS_AT_ONCE};
    use std::arch::x86_64::*;

    #[inline(always)]
    pub(super) fn rank(heads: &[i32; HEADS], head: i32) -> usize {
        // SAFETY: SSE2 is part of x86-64, and the loads stay inside the array.
        unsafe {
            let needle = _mm_set1_epi32(head);
            let mut sums = [_mm_setzero_si128(); 4];
            for (i, chunk) in heads.chunks_exact(4).enumerate() {
                let below = _mm_cmpgt_epi32(needle, _mm_loadu_si128(chunk.as_ptr().cast()));
                sums[i % 4] = _mm_sub_epi32(sums[i % 4], below);
            }
            let sum = _mm_add_epi32(_mm_add_epi32(sums[0], sums[1]), _mm_add_epi32(sums[2], sums[3]));
            let sum = _mm_add_epi32(sum, _mm_shuffle_epi32::<0b01_00_11_10>(sum));
            let sum = _mm_add_epi32(sum, _mm_shuffle_epi32::<0b10_11_00_01>(sum));
            _mm_cvtsi128_si32(sum) as usize
        }
    }

    #[inline(always)]
    pub(super) fn matches(tags: &[u8; TAGS_AT_ONCE], tag: u8) -> u64 {
        let mut mask = 0;
        for (i, chunk) in tags.chunks_exact(16).enumerate() {
            // SAFETY: SSE2 is part of x86-64, and the load stays inside the array.
            let bits = unsafe {
                let equal = _mm_cmpeq_epi8(_mm_loadu_si128(chunk.as_ptr().cast()), _mm_set1_epi8(tag as i8));
                _mm_movemask_epi8(equal) as u32
            };
            mask |= u64::from(bits) << (16 * i);
        }
        mask
    }

    #[inline(always)]
    pub(super) fn matches16(low: u64, high: u64, tag: u8) -> u32 {
        // SAFETY: SSE2 is part of x86-64.
        unsafe {
            let tags = _mm_set_epi64x(high as i64, low as i64);
            _mm_movemask_epi8(_mm_cmpeq_epi8(tags, _mm_set1_epi8(tag as i8))) as u32
        }
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod neon {
    use super::TAGS_AT_ONCE;
    use std::arch::aarch64::*;

    #[inline(always)]
    pub(super) fn matches(tags: &[u8; TAGS_AT_ONCE], tag: u8) -> u64 {
        // SAFETY: NEON is part of AArch64, and the loads stay inside the arrays.
        unsafe {
            let bits = vld1q_u8([1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128].as_ptr());
            let needle = vdupq_n_u8(tag);
            let at = |i: usize| vandq_u8(vceqq_u8(vld1q_u8(tags.as_ptr().add(16 * i)), needle), bits);
            let quarters = vpaddq_u8(vpaddq_u8(at(0), at(1)), vpaddq_u8(at(2), at(3)));
            vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(quarters, quarters)))
        }
    }
}

#[cfg_attr(target_arch = "x86_64", cfg(any(test, miri, feature = "portable")))]
mod portable {
    use super::HEADS;
    #[cfg(any(
        test,
        miri,
        feature = "portable",
        not(any(target_arch = "x86_64", target_arch = "aarch64"))
    ))]
    use super::TAGS_AT_ONCE;

    #[inline(always)]
    pub(super) fn rank(heads: &[i32; HEADS], head: i32) -> usize {
        heads.iter().map(|&h| u32::from(h < head)).sum::<u32>() as usize
    }

    #[cfg(any(test, miri, feature = "portable", not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    #[inline(always)]
    pub(super) fn matches(tags: &[u8; TAGS_AT_ONCE], tag: u8) -> u64 {
        tags.iter().rev().fold(0, |mask, &t| mask << 1 | u64::from(t == tag))
    }

    #[cfg(any(test, miri, not(target_arch = "x86_64")))]
    #[inline(always)]
    pub(super) fn matches16(low: u64, high: u64, tag: u8) -> u32 {
        let tags = u128::from(low) | u128::from(high) << 64;
        tags.to_le_bytes().iter().rev().fold(0, |mask, &t| mask << 1 | u32::from(t == tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random() -> impl FnMut() -> u64 {
        let mut random = forrest_base::random::Random(1);
        move || random.next()
    }

    #[test]
    fn rank_agrees_with_its_twin() {
        let mut random = random();
        for round in 0..2000 {
            let mut heads = [i32::MAX; HEADS];
            let used = round % (HEADS + 1);
            heads[..used].fill_with(|| (random() % 100) as i32 - 50);
            heads[..used].sort_unstable();
            for head in [i32::MIN, i32::MAX, (random() % 100) as i32 - 50] {
                let want = portable::rank(&heads, head);
                assert_eq!(rank(&heads, head), want, "{heads:?} {head}");
                // SAFETY: `detected` says what the processor has.
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                unsafe {
                    assert!(detected() < 2 || Avx2::rank(&heads, head) == want);
                    assert!(detected() < 3 || Avx512::rank(&heads, head) == want);
                }
            }
        }
    }

    #[test]
    fn matches_agree_with_their_twins() {
        let mut random = random();
        for _ in 0..2000 {
            let mut tags = [0; TAGS_AT_ONCE];
            tags.fill_with(|| (random() % 4 * 85) as u8);
            let tag = (random() % 4 * 85) as u8;
            let want = portable::matches(&tags, tag);
            assert_eq!(matches(&tags, tag), want);
            // SAFETY: `detected` says what the processor has.
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            unsafe {
                assert!(detected() < 2 || Avx2::matches(&tags, tag) == want);
                assert!(detected() < 3 || Avx512::matches(&tags, tag) == want);
            }
            let (low, high) = (random() & 0xff00ff00ff00, random() & 0xff00ff00ff00ff);
            assert_eq!(matches16(low, high, tag), portable::matches16(low, high, tag));
            assert_eq!(matches16(low, high, 0), portable::matches16(low, high, 0));
        }
    }
}
