//! The two searches that nodes are made for, each with a portable twin that is its oracle. SSE2 and NEON
//! belong to the base of their architectures, so nothing is detected at run time.

/// Heads in an inner node, padded with `i32::MAX`.
pub(crate) const HEADS: usize = 64;
/// Tags compared at a time in a leaf.
pub(crate) const TAGS: usize = 128;

/// How many of the sorted `heads` are below `head`.
#[inline(always)]
pub(crate) fn rank(heads: &[i32; HEADS], head: i32) -> usize {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    return x86::rank(heads, head);
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    portable::rank(heads, head)
}

/// A bit for each of `tags` that equals `tag`.
#[inline(always)]
pub(crate) fn matches(tags: &[u8; TAGS], tag: u8) -> u128 {
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
mod x86 {
    use super::{HEADS, TAGS};
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
    pub(super) fn matches(tags: &[u8; TAGS], tag: u8) -> u128 {
        let mut mask = 0;
        for (i, chunk) in tags.chunks_exact(16).enumerate() {
            // SAFETY: SSE2 is part of x86-64, and the load stays inside the array.
            let bits = unsafe {
                let equal = _mm_cmpeq_epi8(_mm_loadu_si128(chunk.as_ptr().cast()), _mm_set1_epi8(tag as i8));
                _mm_movemask_epi8(equal) as u32
            };
            mask |= u128::from(bits) << (16 * i);
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
    use super::TAGS;
    use std::arch::aarch64::*;

    #[inline(always)]
    pub(super) fn matches(tags: &[u8; TAGS], tag: u8) -> u128 {
        // SAFETY: NEON is part of AArch64, and the loads stay inside the arrays.
        unsafe {
            let bits = vld1q_u8([1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128].as_ptr());
            let needle = vdupq_n_u8(tag);
            let at = |i: usize| vandq_u8(vceqq_u8(vld1q_u8(tags.as_ptr().add(16 * i)), needle), bits);
            let half = |i: usize| {
                let quarters = vpaddq_u8(vpaddq_u8(at(i), at(i + 1)), vpaddq_u8(at(i + 2), at(i + 3)));
                vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(quarters, quarters)))
            };
            u128::from(half(0)) | u128::from(half(4)) << 64
        }
    }
}

#[cfg_attr(target_arch = "x86_64", cfg(any(test, miri)))]
mod portable {
    use super::HEADS;
    #[cfg(any(test, miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    use super::TAGS;

    #[inline(always)]
    pub(super) fn rank(heads: &[i32; HEADS], head: i32) -> usize {
        heads.iter().map(|&h| u32::from(h < head)).sum::<u32>() as usize
    }

    #[cfg(any(test, miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    pub(super) fn matches(tags: &[u8; TAGS], tag: u8) -> u128 {
        tags.iter().rev().fold(0, |mask, &t| mask << 1 | u128::from(t == tag))
    }

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
        let mut state = 0x1234_5678_9abc_def0_u64;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        }
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
                assert_eq!(rank(&heads, head), portable::rank(&heads, head), "{heads:?} {head}");
            }
        }
    }

    #[test]
    fn matches_agree_with_their_twins() {
        let mut random = random();
        for _ in 0..2000 {
            let mut tags = [0; TAGS];
            tags.fill_with(|| (random() % 4 * 85) as u8);
            let tag = (random() % 4 * 85) as u8;
            assert_eq!(matches(&tags, tag), portable::matches(&tags, tag));
            let (low, high) = (random() & 0xff00ff00ff00, random() & 0xff00ff00ff00ff);
            assert_eq!(matches16(low, high, tag), portable::matches16(low, high, tag));
            assert_eq!(matches16(low, high, 0), portable::matches16(low, high, 0));
        }
    }
}
