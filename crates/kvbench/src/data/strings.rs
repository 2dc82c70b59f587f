//! Real strings: the paths of a directory tree, walked once, and copies of them with a suffix where more are
//! asked for than the tree has.
//!
//! Copy `k` of a path is `path;k` (copy 0 has no suffix). Paths that end like a suffix are left out, so no
//! two keys are equal. Paths longer than [`PATH_BYTES_MAX`] are left out too, because one of the peers takes
//! keys of at most 256 bytes; how many is reported.
//!
//! In place of paths there may be a [`Set`]: its pairs in its order, with its values, or with made ones if it has none.
//! Structures of [`Pointed`] keep what they are given where it lies in that set, if it is shown to them in place.

use super::{Block, KeyForm, Kind, Permutation, Set, Source, ValueForm, fold_bytes, mix};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::sync::OnceLock;

/// Longest path taken, in bytes; with a suffix it stays within 256.
pub(crate) const PATH_BYTES_MAX: usize = 240;
/// Length of every made value, in bytes: what a file's size, time and mode take.
pub(crate) const VALUE_BYTES: usize = 20;
/// Most paths kept of one tree.
const PATHS_MAX: usize = 4_000_000;

/// Paths to 20-byte values.
pub(crate) struct Strings;

/// A key as the loops pass it: its bytes, followed by a NUL for structures that need one.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a>(&'a [u8]);

impl<'a> Text<'a> {
    /// The key.
    #[inline]
    pub(crate) fn bytes(self) -> &'a [u8] {
        &self.0[..self.0.len() - 1]
    }

    /// The key, followed by a NUL.
    #[inline]
    pub(crate) fn with_nul(self) -> &'a [u8] {
        self.0
    }
}

impl AsRef<[u8]> for Text<'_> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

/// The paths that a walk found, packed.
#[derive(Default)]
pub(crate) struct Walk {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Paths that were too long, or ended like a suffix of ours.
    pub(crate) left_out: u64,
    /// What there is in place of paths, until the process ends.
    set: Option<&'static Set>,
    /// Whether pairs of the set have an empty value if the file has none.
    no_values: bool,
}

/// The bytes of the set of this process, if structures may keep what they are given where it lies.
static IN_PLACE: OnceLock<&'static [u8]> = OnceLock::new();

impl Walk {
    /// A set in place of paths, in whose memory structures may keep pairs if it is `in_place`. With `no_values` pairs
    /// of a file without values have empty ones.
    pub(crate) fn of_set(set: Set, in_place: bool, no_values: bool) -> Walk {
        let set: &'static Set = Box::leak(Box::new(set));
        if in_place {
            IN_PLACE.get_or_init(|| set.bytes());
        }
        Walk { set: Some(set), no_values, ..Walk::default() }
    }

    /// What there is in place of paths, and of random numbers.
    pub(crate) fn set(&self) -> Option<&'static Set> {
        self.set
    }

    fn push(&mut self, path: &[u8]) {
        self.bytes.extend_from_slice(path);
        self.ends.push(self.bytes.len());
    }

    fn path(&self, at: usize) -> &[u8] {
        let from = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[from..self.ends[at]]
    }

    /// The number of paths.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Mean length of a path, in bytes.
    pub(crate) fn mean_bytes(&self) -> f64 {
        self.bytes.len() as f64 / self.len().max(1) as f64
    }
}

/// Whether a path could be taken for a copy of another one.
fn ends_like_a_copy(path: &[u8]) -> bool {
    let digits = path.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && path.len() > digits && path[path.len() - digits - 1] == b';'
}

/// Walks the tree under `root` (no symbolic links followed, what cannot be read passed over) and returns its
/// paths in an order that the seed alone decides.
pub(crate) fn collect_paths(root: &Path, seed: u64) -> io::Result<Walk> {
    let mut found: Vec<Vec<u8>> = Vec::new();
    let mut left_out = 0;
    std::fs::read_dir(root)?;
    let mut open = vec![root.to_path_buf()];
    while let Some(directory) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(path.clone());
            }
            let bytes = path.into_os_string().into_encoded_bytes();
            if bytes.len() > PATH_BYTES_MAX || ends_like_a_copy(&bytes) {
                left_out += 1;
            } else {
                found.push(bytes);
            }
        }
        if found.len() >= PATHS_MAX {
            break;
        }
    }
    if found.is_empty() {
        return Err(io::Error::other("no files in it"));
    }
    found.sort_unstable();
    found.dedup();
    let order = Permutation::new(found.len() as u64, seed);
    let mut walk = Walk { left_out, ..Walk::default() };
    (0..found.len() as u64).for_each(|at| walk.push(&found[order.apply(at) as usize]));
    Ok(walk)
}

/// What a pipe of Linux holds.
const PIPE_BYTES: usize = 64 << 10;

/// Hands the paths to another process, as many at a time as a pipe holds.
pub(crate) fn send_paths(walk: &Walk, to: &mut impl Write) -> io::Result<()> {
    let mut to = BufWriter::with_capacity(PIPE_BYTES, to);
    to.write_all(&(walk.len() as u64).to_le_bytes())?;
    for at in 0..walk.len() {
        let path = walk.path(at);
        to.write_all(&(path.len() as u32).to_le_bytes())?;
        to.write_all(path)?;
    }
    to.flush()
}

/// Takes the paths that [`send_paths`] sent, and nothing else follows.
pub(crate) fn receive_paths(from: &mut impl Read) -> io::Result<Walk> {
    let mut from = BufReader::with_capacity(PIPE_BYTES, from);
    let mut count = [0; 8];
    from.read_exact(&mut count)?;
    let mut walk = Walk::default();
    let mut path = Vec::new();
    for _ in 0..u64::from_le_bytes(count) {
        let mut len = [0; 4];
        from.read_exact(&mut len)?;
        path.resize(u32::from_le_bytes(len) as usize, 0);
        from.read_exact(&mut path)?;
        walk.push(&path);
    }
    Ok(walk)
}

/// Numbers the paths and their copies.
pub(crate) struct TextSource {
    walk: Walk,
    order: Permutation,
    seed: u64,
    len: u64,
}

impl TextSource {
    /// The data set of this many pairs, or of all of a set that has fewer.
    pub(crate) fn new(walk: Walk, len: u64, seed: u64) -> Self {
        let len = walk.set.map_or(len, |set| len.min(set.len()));
        TextSource { walk, order: Permutation::new(len, seed ^ 1), seed: mix(seed), len }
    }

    fn value(&self, number: u64) -> [u8; VALUE_BYTES] {
        let mut bytes = [0; VALUE_BYTES];
        let random = mix(number.wrapping_add(self.seed));
        bytes[..8].copy_from_slice(&random.to_le_bytes());
        bytes[8..16].copy_from_slice(&mix(random).to_le_bytes());
        bytes[16..].copy_from_slice(&(random as u32).to_le_bytes());
        bytes
    }
}

impl TextSource {
    /// Appends a path, or a copy of one, and a NUL.
    fn push_path(&self, key: u64, keys: &mut Vec<u8>) {
        let (number, paths) = (self.order.apply(key), self.walk.len() as u64);
        let (at, copy) = ((number % paths) as usize, number / paths);
        keys.extend_from_slice(self.walk.path(at));
        if copy > 0 {
            keys.push(b';');
            keys.extend_from_slice(super::Decimal::new(copy).as_bytes());
        }
        keys.push(0);
    }
}

impl Source<Strings> for TextSource {
    fn push_pair(&self, key: u64, value: u64, out: &mut TextBlock) {
        match &self.walk.set {
            Some(set) if key < set.len() => out.keys.extend_from_slice(set.key(key)),
            Some(set) => set.push_absent(key - set.len(), &mut out.keys),
            None => self.push_path(key, &mut out.keys),
        }
        out.ends.push(out.keys.len());
        match self.walk.set.and_then(|set| set.value(value % set.len())) {
            Some(value) => out.push_value(value),
            None if self.walk.no_values => out.push_value(&[]),
            None => out.push_value(&self.value(value)),
        }
    }

    fn push_in_place(&self, number: u64, out: &mut TextBlock) {
        match self.walk.set.filter(|set| IN_PLACE.get().is_some() && number < set.len()) {
            Some(set) if self.walk.no_values || set.value(number).is_some() => {
                out.there.push((set.key(number), set.value(number).unwrap_or_default()));
            }
            _ => self.push(number, out),
        }
    }

    fn push_key(&self, key: &[u8], value: u64, out: &mut TextBlock) {
        out.keys.extend_from_slice(key);
        out.keys.push(0);
        out.ends.push(out.keys.len());
        out.push_value(&self.value(value));
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn keys_max(&self) -> u64 {
        self.walk.set.map_or(u64::MAX, Set::keys_max)
    }
}

/// Concatenated keys, each followed by a NUL, and values; or pairs where they lie in a set.
#[derive(Default)]
pub(crate) struct TextBlock {
    there: Vec<(&'static [u8], &'static [u8])>,
    keys: Vec<u8>,
    ends: Vec<usize>,
    values: Vec<u8>,
    value_ends: Vec<usize>,
}

impl TextBlock {
    fn push_value(&mut self, value: &[u8]) {
        self.values.extend_from_slice(value);
        self.value_ends.push(self.values.len());
    }
}

impl Block<Strings> for TextBlock {
    fn len(&self) -> usize {
        self.there.len().max(self.ends.len())
    }

    #[inline]
    fn key(&self, at: usize) -> Text<'_> {
        if let Some((key, _)) = self.there.get(at) {
            return Text(key);
        }
        let from = if at == 0 { 0 } else { self.ends[at - 1] };
        Text(&self.keys[from..self.ends[at]])
    }

    #[inline]
    fn value(&self, at: usize) -> &[u8] {
        if let Some((_, value)) = self.there.get(at) {
            return value;
        }
        let from = if at == 0 { 0 } else { self.value_ends[at - 1] };
        &self.values[from..self.value_ends[at]]
    }

    fn clear(&mut self) {
        self.there.clear();
        self.keys.clear();
        self.ends.clear();
        self.values.clear();
        self.value_ends.clear();
    }
}

impl Kind for Strings {
    type Key<'a> = Text<'a>;
    type Found<'a> = &'a [u8];
    type Value<'a> = &'a [u8];
    type KeyBytes<'a> = Text<'a>;
    type ValueBytes<'a> = &'a [u8];
    type Query = [u8];
    type Source = TextSource;
    type Block = TextBlock;

    fn source(len: u64, seed: u64, walk: Walk) -> TextSource {
        TextSource::new(walk, len, seed)
    }

    fn edges() -> Vec<super::Edge> {
        super::edges::of_strings()
    }

    #[inline]
    fn hash<H: crate::hashes::HashFunction>(query: &[u8]) -> u64 {
        H::of_bytes(query)
    }

    #[inline]
    fn query<'a>(key: &'a Text<'_>) -> &'a [u8] {
        key.bytes()
    }

    #[inline]
    fn key_bytes(key: Self::Key<'_>) -> Self::KeyBytes<'_> {
        key
    }

    #[inline]
    fn found(bytes: &[u8]) -> &[u8] {
        bytes
    }

    fn found_bytes(found: &[u8]) -> Vec<u8> {
        found.to_vec()
    }

    #[inline]
    fn value_bytes(value: Self::Value<'_>) -> Self::ValueBytes<'_> {
        value
    }

    #[inline]
    fn value(bytes: &[u8]) -> &[u8] {
        bytes
    }

    #[inline]
    fn fold_found(found: &[u8]) -> u64 {
        fold_bytes(found)
    }

    #[inline]
    fn fold_value(value: &[u8]) -> u64 {
        // An empty value counts, too.
        fold_bytes(value).wrapping_add(1)
    }

    #[inline]
    fn pair_bytes(found: &[u8], value: &[u8]) -> u64 {
        (found.len() + value.len()) as u64
    }
}

/// `Vec<u8>` and `Box<[u8]>` own strings in the same way.
macro_rules! forms {
    ($($form:ty),*) => {$(
        impl KeyForm<Strings> for $form {
            #[inline]
            fn own(key: Text<'_>) -> Self {
                key.bytes().into()
            }

            #[inline]
            fn found(&self) -> &[u8] {
                self
            }
        }

        impl ValueForm<Strings> for $form {
            #[inline]
            fn own(value: &[u8]) -> Self {
                value.into()
            }

            #[inline]
            fn show(&self) -> &[u8] {
                self
            }
        }
    )*};
}
forms!(Vec<u8>, Box<[u8]>, Pointed);

/// A key or value where it lies in the set of this process. One that was shown elsewhere, as in checks, is copied and
/// never freed.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Pointed(&'static [u8]);

impl From<&[u8]> for Pointed {
    #[inline]
    fn from(bytes: &[u8]) -> Pointed {
        let in_place = IN_PLACE.get().and_then(|set| {
            let from = bytes.as_ptr().addr().checked_sub(set.as_ptr().addr())?;
            set.get(from..from.checked_add(bytes.len())?)
        });
        match in_place {
            Some(there) => Pointed(there),
            None if bytes.is_empty() => Pointed(&[]),
            None => Pointed(bytes.to_vec().leak()),
        }
    }
}

impl std::ops::Deref for Pointed {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.0
    }
}

impl std::borrow::Borrow<[u8]> for Pointed {
    #[inline]
    fn borrow(&self) -> &[u8] {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::block_of;
    use std::collections::HashSet;

    #[test]
    fn copies_are_told_from_paths() {
        for (path, copy) in
            [("a;1", true), ("a;", false), ("a;x1", false), (";1", true), ("1", false), ("", false)]
        {
            assert_eq!(ends_like_a_copy(path.as_bytes()), copy, "{path:?}");
        }
    }

    #[test]
    fn keys_are_distinct_and_survive_the_pipe() {
        let mut walk = Walk::default();
        ["/a", "/a/b", "/a;b", "/c"].iter().for_each(|p| walk.push(p.as_bytes()));
        let mut pipe = Vec::new();
        send_paths(&walk, &mut pipe).unwrap();
        let source = TextSource::new(receive_paths(&mut pipe.as_slice()).unwrap(), 10, 3);
        let block = block_of::<Strings>(&source, 0..20);
        let inside: HashSet<&[u8]> = (0..10).map(|at| block.key(at).bytes()).collect();
        let all: HashSet<&[u8]> = (0..20).map(|at| block.key(at).bytes()).collect();
        assert_eq!((inside.len(), all.len()), (10, 20));
        assert!(inside.contains(&b"/a"[..]) && inside.contains(&b"/c;1"[..]), "{inside:?}");
    }
}
