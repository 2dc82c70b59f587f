//! [`Value`]: an owned value that is cheap to clone.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// Longest value that a [`Value`] holds without a heap allocation, in bytes.
pub const VALUE_INLINE_BYTES: usize = 30;

/// An owned value. Short values are stored in place, longer ones share one reference-counted allocation, so a clone
/// never copies more than 32 bytes. A value stays valid whatever happens to its store.
///
/// ```
/// let value = forrest_index::Value::from(&b"forrest"[..]);
/// assert_eq!(&value[..], b"forrest");
/// ```
///
/// It compares, sorts and hashes as its bytes do, so that a map of values can be asked with a slice.
///
/// ```
/// # use forrest_index::Value;
/// let words = ["oak", "ash", "elm"].map(|word| Value::from(word.as_bytes()));
/// let sorted = std::collections::BTreeSet::from(words);
/// assert!(sorted.contains(&b"elm"[..]));
/// assert_eq!(Vec::from(sorted.first().unwrap().clone()), b"ash");
/// ```
#[derive(Clone)]
pub struct Value(Repr);

#[derive(Clone)]
enum Repr {
    Inline { len: u8, bytes: [u8; VALUE_INLINE_BYTES] },
    Shared(Arc<[u8]>),
}

impl Value {
    /// The bytes of the value.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Repr::Shared(shared) => shared,
        }
    }

    /// The value as a reference-counted slice; copies only a value that is held in place.
    pub fn into_shared(self) -> Arc<[u8]> {
        match self.0 {
            Repr::Inline { len, bytes } => Arc::from(&bytes[..usize::from(len)]),
            Repr::Shared(shared) => shared,
        }
    }
}

impl From<&[u8]> for Value {
    #[inline]
    fn from(slice: &[u8]) -> Self {
        if slice.len() <= VALUE_INLINE_BYTES {
            let mut bytes = [0; VALUE_INLINE_BYTES];
            bytes[..slice.len()].copy_from_slice(slice);
            Value(Repr::Inline { len: slice.len() as u8, bytes })
        } else {
            Value(Repr::Shared(Arc::from(slice)))
        }
    }
}

impl From<Arc<[u8]>> for Value {
    fn from(shared: Arc<[u8]>) -> Self {
        Value(Repr::Shared(shared))
    }
}

impl From<Vec<u8>> for Value {
    fn from(vec: Vec<u8>) -> Self {
        Value::from(vec.as_slice())
    }
}

/// Copies the bytes.
impl From<Value> for Vec<u8> {
    fn from(value: Value) -> Self {
        value.to_vec()
    }
}

impl Deref for Value {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

// `Eq`, `Ord` and `Hash` below are those of the slice, as this asks for.
impl Borrow<[u8]> for Value {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Value(b\"{}\")", self.escape_ascii())
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Value {
    fn eq(&self, other: &T) -> bool {
        self.as_slice() == other.as_ref()
    }
}

impl Eq for Value {}

impl<T: AsRef<[u8]> + ?Sized> PartialOrd<T> for Value {
    fn partial_cmp(&self, other: &T) -> Option<Ordering> {
        Some(self.as_slice().cmp(other.as_ref()))
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::BuildHasher;

    /// Held in place and shared, and of equal bytes in either form.
    #[test]
    fn values_are_as_their_bytes() {
        let long = [b'b'; VALUE_INLINE_BYTES + 1];
        let slices = [&b""[..], b"\0", b"a", b"ab", b"b", &long[..VALUE_INLINE_BYTES], &long, b"c", b"\xff"];
        let hashes = std::collections::hash_map::RandomState::new();
        for (at, &one) in slices.iter().enumerate() {
            let forms = [Value::from(one), Value::from(Arc::<[u8]>::from(one)), Value::from(one.to_vec())];
            for value in forms {
                assert_eq!(hashes.hash_one(&value), hashes.hash_one(one));
                assert_eq!(Vec::from(value.clone()), one);
                for (other_at, &other) in slices.iter().enumerate() {
                    let expected = at.cmp(&other_at);
                    assert_eq!(value.cmp(&Value::from(other)), expected);
                    assert_eq!(value.partial_cmp(other), Some(expected));
                    assert_eq!(value == other, expected == Ordering::Equal);
                }
            }
        }
    }
}
