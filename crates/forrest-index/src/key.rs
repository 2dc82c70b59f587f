//! Key bytes as the nodes compare them: words and heads in big-endian order, without reading past the end.

use std::cell::Cell;
use std::cmp::Ordering;

/// A key to look for, with its first eight bytes at hand.
#[derive(Clone, Copy)]
pub(crate) struct Key<'k> {
    pub(crate) bytes: &'k [u8],
    /// The first eight bytes, big endian, zeros past the end.
    word: u64,
}

impl<'k> Key<'k> {
    #[inline(always)]
    pub(crate) fn new(bytes: &'k [u8]) -> Self {
        Key { bytes, word: first_word(bytes) }
    }

    /// The four bytes from `at`, big endian, zeros past the end.
    #[inline(always)]
    pub(crate) fn head(&self, at: usize) -> u32 {
        if at <= 4 {
            ((self.word << (8 * at)) >> 32) as u32
        } else {
            head_of(self.bytes.get(at..).unwrap_or(&[]))
        }
    }

    /// The first word of the key without its first `at` bytes.
    #[inline(always)]
    pub(crate) fn word_from(&self, at: usize) -> u64 {
        match self.bytes.len() {
            ..=8 => self.word.checked_shl(8 * at as u32).unwrap_or(0),
            _ => first_word(&self.bytes[at..]),
        }
    }

    /// How the key stands to all keys that begin with a prefix: `Equal` if it begins with it too.
    /// `word` is the prefix's first word.
    #[inline(always)]
    pub(crate) fn against_prefix(&self, word: u64, prefix: &[u8]) -> Ordering {
        if self.has_prefix(word, prefix) { Ordering::Equal } else { self.bytes.cmp(prefix) }
    }

    /// True if the key begins with a prefix of `len` bytes. `word` is its first word, `rest` has the bytes after it as
    /// far as they fit, and `prefix` is asked for all of them.
    #[inline(always)]
    pub(crate) fn begins_with<'p>(
        &self,
        word: u64,
        rest: &[u8],
        len: usize,
        prefix: impl FnOnce() -> &'p [u8],
    ) -> bool {
        if self.bytes.len() < len {
            return false;
        }
        if len <= 4 {
            // As in `head`, so that one comparison serves both. Two shifts, because one by 64 is none.
            return (self.word ^ word) >> 32 >> (32 - 8 * len) == 0;
        }
        if len <= 8 {
            return (self.word ^ word).checked_shr(64 - 8 * len as u32).unwrap_or(0) == 0;
        }
        match rest.get(..len - 8) {
            Some(rest) => self.word == word && self.bytes[8..len] == *rest,
            None => self.bytes[..len] == *prefix(),
        }
    }

    /// True if the key begins with the prefix.
    #[inline(always)]
    pub(crate) fn has_prefix(&self, word: u64, prefix: &[u8]) -> bool {
        self.begins_with(word, &[], prefix.len(), || prefix)
    }
}

/// The first four bytes, big endian, zeros past the end.
#[inline]
pub(crate) fn head_of(bytes: &[u8]) -> u32 {
    match bytes.first_chunk() {
        Some(chunk) => u32::from_be_bytes(*chunk),
        None => (first_word(bytes) >> 32) as u32,
    }
}

/// The first eight bytes, big endian, zeros past the end.
#[inline(always)]
pub(crate) fn first_word(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => short_word(bytes),
    }
}

/// As [`first_word`], for fewer than eight bytes.
#[inline]
fn short_word(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    if let (Some(low), Some(high)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let (low, high) = (u64::from(u32::from_be_bytes(*low)), u64::from(u32::from_be_bytes(*high)));
        // Two overlapping loads: the second one's bytes end at the end.
        return low << 32 | high << (64 - 8 * len);
    }
    bytes.iter().enumerate().fold(0, |word, (i, &b)| word | u64::from(b) << (56 - 8 * i))
}

/// Compares as slices do; quick where the first eight bytes tell.
#[inline(always)]
pub(crate) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    match first_word(a).cmp(&first_word(b)) {
        Ordering::Equal if a.len() <= 8 && b.len() <= 8 => a.len().cmp(&b.len()),
        Ordering::Equal => a.cmp(b),
        unequal => unequal,
    }
}

/// Equality as slices have it; quick for short ones.
#[inline(always)]
pub(crate) fn equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match a.len() {
        4..=8 => first_word(a) == first_word(b),
        _ => a == b,
    }
}

/// Copies as `copy_from_nonoverlapping` does; quick for short ones, where calling out costs more than copying.
///
/// # Safety
/// As `copy_from_nonoverlapping`.
#[inline(always)]
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: `from` is readable and `to` writable for `len` bytes, without overlap, as for `copy_from_nonoverlapping`;
    // each case's accesses stay inside `len` bytes, since it has at least that many.
    unsafe {
        match len {
            8..=16 => {
                let (low, high) = (from.cast::<u64>(), from.add(len - 8).cast::<u64>());
                let (low, high) = (low.read_unaligned(), high.read_unaligned());
                to.cast::<u64>().write_unaligned(low);
                to.add(len - 8).cast::<u64>().write_unaligned(high);
            }
            4..=7 => {
                let (low, high) = (from.cast::<u32>(), from.add(len - 4).cast::<u32>());
                let (low, high) = (low.read_unaligned(), high.read_unaligned());
                to.cast::<u32>().write_unaligned(low);
                to.add(len - 4).cast::<u32>().write_unaligned(high);
            }
            0 => {}
            1..=3 => {
                let (first, middle, last) = (from.read(), from.add(len / 2).read(), from.add(len - 1).read());
                to.write(first);
                to.add(len / 2).write(middle);
                to.add(len - 1).write(last);
            }
            _ => to.copy_from_nonoverlapping(from, len),
        }
    }
}

/// A key composed of a prefix and a suffix, in a buffer that the thread reuses.
pub(crate) struct Composed {
    /// The prefix, with capacity for at least eight bytes more.
    key: Vec<u8>,
    prefix_len: usize,
}

thread_local! {
    static KEPT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl Composed {
    /// Takes the thread's buffer, or a new one if that is in use or already dropped.
    pub(crate) fn take() -> Composed {
        Composed { key: KEPT.try_with(Cell::take).unwrap_or_default(), prefix_len: 0 }
    }

    /// Starts a key with this prefix.
    #[inline]
    pub(crate) fn begin(&mut self, prefix: &[u8]) {
        self.key.clear();
        self.key.reserve(prefix.len() + 8);
        self.key.extend_from_slice(prefix);
        self.prefix_len = prefix.len();
    }

    /// Returns the prefix followed by this suffix.
    #[inline(always)]
    pub(crate) fn with(&mut self, suffix: &[u8]) -> &[u8] {
        let len = self.prefix_len + suffix.len();
        if self.key.capacity() < len {
            self.key.reserve(suffix.len() + 8);
        }
        // SAFETY: `len <= capacity`, reserved above; the first `prefix_len` bytes are the prefix, written by `begin`.
        unsafe {
            copy(suffix.as_ptr(), self.key.as_mut_ptr().add(self.prefix_len), suffix.len());
            std::slice::from_raw_parts(self.key.as_ptr(), len)
        }
    }

    /// How to write the last word of keys whose suffix has `suffix_len` bytes; see [`Composed::with_word`].
    #[inline]
    pub(crate) fn last_word(&self, suffix_len: usize) -> LastWord {
        debug_assert!(suffix_len <= 8);
        let len = self.prefix_len + suffix_len;
        match len {
            // A key of one word is written with one store: two stores read back as one word defeat store forwarding.
            0..=8 => LastWord { at: 0, lead: first_word(&self.key), shift: 8 * self.prefix_len as u32, len },
            _ => LastWord { at: self.prefix_len, lead: 0, shift: 0, len },
        }
    }

    /// Returns the prefix followed by a suffix, which is given as a big-endian word with zeros past its end.
    #[inline(always)]
    pub(crate) fn with_word(&mut self, word: u64, last: LastWord) -> &[u8] {
        debug_assert!(self.key.capacity() >= last.at + 8);
        let word = last.lead | word.checked_shr(last.shift).unwrap_or(0);
        // SAFETY: `begin` reserved eight bytes after the prefix, and `last.at <= prefix_len`.
        unsafe {
            let key = self.key.as_mut_ptr();
            key.add(last.at).cast::<u64>().write_unaligned(word.to_be());
            std::slice::from_raw_parts(key, last.len)
        }
    }
}

/// How to compose keys that end in a word, see [`Composed::last_word`].
#[derive(Clone, Copy)]
pub(crate) struct LastWord {
    /// Where in the key the word begins.
    at: usize,
    /// The part of the prefix that is in the word.
    lead: u64,
    /// Bits of the word before the suffix.
    shift: u32,
    /// Length of the whole key in bytes.
    len: usize,
}

impl Drop for Composed {
    fn drop(&mut self) {
        let _ = KEPT.try_with(|kept| kept.set(std::mem::take(&mut self.key)));
    }
}

/// Length of the longest common prefix.
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    const STEP: usize = 64;
    let steps = a.chunks_exact(STEP).zip(b.chunks_exact(STEP)).take_while(|(x, y)| x == y).count();
    let at = steps * STEP;
    at + a[at..].iter().zip(&b[at..]).take_while(|(x, y)| x == y).count()
}

/// Bytes in two pieces, either of which may be empty: a prefix and a suffix of different places.
#[derive(Clone, Copy, Default)]
pub(crate) struct Pieces<'s>(pub(crate) [&'s [u8]; 2]);

impl<'s> Pieces<'s> {
    pub(crate) fn len(self) -> usize {
        self.0[0].len() + self.0[1].len()
    }

    /// How these bytes compare with others.
    pub(crate) fn compare(self, bytes: &[u8]) -> Ordering {
        let [first, second] = self.0;
        let (head, tail) = bytes.split_at(first.len().min(bytes.len()));
        first.cmp(head).then_with(|| second.cmp(tail))
    }

    /// The bytes before an offset, and from there on.
    pub(crate) fn split_at(self, at: usize) -> (Pieces<'s>, Pieces<'s>) {
        let [first, second] = self.0;
        match at.checked_sub(first.len()) {
            None => (Pieces([&first[..at], &[]]), Pieces([&first[at..], second])),
            Some(at) => (Pieces([first, &second[..at]]), Pieces([&[], &second[at..]])),
        }
    }

    /// Length of the longest common prefix.
    pub(crate) fn common_prefix(self, other: Pieces<'_>) -> usize {
        let [a, b] = [self.0, other.0];
        // Most have the same piece first, that of one node.
        let mut common = match std::ptr::eq(a[0], b[0]) {
            true => a[0].len(),
            false => common_prefix(a[0], b[0]),
        };
        // Each step begins where a piece of one of the two ends.
        while common < self.len().min(other.len()) {
            let [rest, other_rest] =
                [self.split_at(common).1, other.split_at(common).1].map(|rest| match rest.0 {
                    [[], second] => second,
                    [first, _] => first,
                });
            let more = common_prefix(rest, other_rest);
            common += more;
            if more < rest.len().min(other_rest.len()) {
                break;
            }
        }
        common
    }

    /// The first bytes, with zeros past the end.
    pub(crate) fn start<const N: usize>(self) -> [u8; N] {
        let mut start = [0; N];
        start.iter_mut().zip(self.0[0].iter().chain(self.0[1])).for_each(|(to, from)| *to = *from);
        start
    }

    /// Writes all bytes.
    ///
    /// # Safety
    /// `len` bytes at `to` are the caller's to write.
    pub(crate) unsafe fn write(self, to: *mut u8) {
        let [first, second] = self.0;
        // SAFETY: as many bytes at `to` are writable, as this function requires.
        unsafe {
            copy(first.as_ptr(), to, first.len());
            copy(second.as_ptr(), to.add(first.len()), second.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_as_their_bytes() {
        let texts: Vec<Vec<u8>> = [0, 1, 3, 64, 65, 70, 130]
            .into_iter()
            .flat_map(|len| [0, 3, 64, 129].map(|at| (0..len).map(|i| u8::from(i == at)).collect()))
            .collect();
        for (a, b) in texts.iter().flat_map(|a| texts.iter().map(move |b| (a, b))) {
            let wanted = a.iter().zip(b).take_while(|(x, y)| x == y).count();
            assert_eq!(common_prefix(a, b), wanted);
            for (cut, other_cut) in [(0, 0), (1, 2), (a.len(), 1), (64, 64), (65, 3), (70, 129)] {
                let [one, other] = [(a, cut), (b, other_cut)].map(|(text, cut)| {
                    let (head, tail) = text.split_at(cut.min(text.len()));
                    Pieces([head, tail])
                });
                assert_eq!(one.common_prefix(other), wanted, "{a:?} {cut} {b:?} {other_cut}");
                let (head, tail) = one.split_at(wanted);
                assert_eq!((head.0.concat(), tail.0.concat()), (a[..wanted].to_vec(), a[wanted..].to_vec()));
                assert_eq!(u32::from_be_bytes(one.start()), head_of(a));
            }
        }
    }

    #[test]
    fn copies_copy() {
        let from: Vec<u8> = (1..=40).collect();
        for len in 0..=40 {
            let mut to = [0; 42];
            // SAFETY: both have 40 bytes.
            unsafe { copy(from.as_ptr(), to[1..].as_mut_ptr(), len) };
            assert_eq!(&to[1..=len], &from[..len]);
            assert!(to[0] == 0 && to[len + 1..].iter().all(|&b| b == 0), "{len}");
        }
    }

    #[test]
    fn words_heads_and_comparisons_agree_with_slices() {
        let mut keys: Vec<Vec<u8>> = vec![vec![]];
        for len in 1..20 {
            for fill in [0_u8, 1, 0x7f, 0x80, 0xff] {
                let mut key = vec![fill; len];
                keys.push(key.clone());
                key[len - 1] ^= 1;
                keys.push(key.clone());
                key[len / 2] ^= 0x80;
                keys.push(key);
            }
        }
        for a in &keys {
            let padded: Vec<u8> = a.iter().copied().chain([0; 16]).collect();
            let key = Key::new(a);
            for at in 0..a.len() + 2 {
                let want = u32::from_be_bytes(padded.get(at..at + 4).unwrap_or(&[0; 4]).try_into().unwrap());
                assert_eq!(key.head(at), if at >= a.len() { 0 } else { want }, "{a:?} at {at}");
            }
            for at in 0..=a.len() {
                let want = u64::from_be_bytes(padded[at..at + 8].try_into().unwrap());
                assert_eq!(key.word_from(at), want, "{a:?} from {at}");
            }
            for b in &keys {
                assert_eq!(compare(a, b), a.cmp(b), "{a:?} {b:?}");
                assert_eq!(equal(a, b), a == b);
                let against = key.against_prefix(first_word(b), b);
                let want = if a.starts_with(b) { Ordering::Equal } else { a.cmp(b) };
                assert_eq!(against, want, "{a:?} against {b:?}");
                assert_eq!(key.has_prefix(first_word(b), b), a.starts_with(b));
            }
        }
    }
}
