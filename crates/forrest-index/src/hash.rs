//! The hash from which a leaf's tags are taken. It affects only speed: results are correct with any hash, and a leaf
//! of colliding keys is searched as a list of at most 142 entries.

const K: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    (wide as u64) ^ (wide >> 64) as u64
}

/// The eight bytes at `at`, or 0 if there are fewer. Callers pass an `at` that has eight.
#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u64 {
    match bytes[at..].first_chunk() {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => 0,
    }
}

/// Hashes a key to 64 bits; the top ones are the best.
#[inline(always)]
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    if bytes.len() == 8 {
        return hash_word(word(bytes, 0));
    }
    hash_any(bytes, K ^ bytes.len() as u64)
}

/// The hash of a key of eight bytes, given as a little-endian word.
#[inline(always)]
fn hash_word(word: u64) -> u64 {
    fold(word ^ K ^ 8, K)
}

fn hash_any(bytes: &[u8], seed: u64) -> u64 {
    let mut state = seed;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        state = fold(state ^ word(chunk, 0), K);
    }
    let rest = chunks.remainder();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    fold(state ^ u64::from_le_bytes(last), K ^ 0x5555)
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn tags_of_likely_keys_spread() {
        let families: [fn(u64) -> Vec<u8>; 4] = [
            |i| i.to_be_bytes().to_vec(),
            |i| (i << 32).to_be_bytes().to_vec(),
            |i| format!("/usr/share/doc/file-{i}.txt").into_bytes(),
            |i| vec![b'x'; i as usize],
        ];
        for (family, make) in families.iter().enumerate() {
            let mut tags = [0; 256];
            for i in 0..4096 {
                tags[(hash(&make(i)) >> 56) as usize] += 1;
            }
            assert!(tags.iter().all(|&n| n < 48), "family {family}: tags {tags:?}");
        }
    }
}
