//! [`Value`]: an owned, cheap copy of what a key maps to.

use std::ops::Deref;
use std::sync::Arc;

/// Longest value that a [`Value`] holds without a heap allocation, in bytes.
pub const VALUE_INLINE_BYTES: usize = 30;

/// A value that owns what it needs: short ones are held in place, longer ones share one reference-counted
/// allocation, so that cloning never copies more than 32 bytes. It stays valid whatever happens to the
/// store that it came from.
///
/// ```
/// let value = forrest_index::Value::from(&b"forrest"[..]);
/// assert_eq!(&value[..], b"forrest");
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
