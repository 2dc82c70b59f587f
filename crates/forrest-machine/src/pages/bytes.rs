//! Append-only bytes that never move, on the largest pages available.
//!
//! Like a vector that never reallocates: addresses for the maximum size are reserved at the beginning, and memory is
//! committed as it is needed. Bytes cannot be removed.

use super::{Committed, GRANULE_BYTES, Numa, Pages, Region};
use std::io;
use std::ops::Deref;

/// Bytes on large pages; see the module's head.
///
/// ```
/// use forrest_machine::pages::{Bytes, Pages};
///
/// let mut bytes = Bytes::with_room(1 << 20, Pages::Auto)?;
/// bytes.extend(b"key")?;
/// bytes.extend(b"value")?;
/// assert_eq!(&bytes[3..], b"value");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Bytes {
    region: Region,
    /// INVARIANT: the first `len` bytes of the region are written, `len <= committed <= region.len()`.
    len: usize,
    committed: usize,
}

impl Bytes {
    /// Reserves addresses for `room` bytes or a little more; no memory yet.
    ///
    /// # Errors
    ///
    /// As [`Region::reserve`]. A `room` of 0 reserves as for one byte.
    pub fn with_room(room: usize, pages: Pages) -> io::Result<Bytes> {
        Ok(Bytes { region: Region::reserve(room.max(1), pages, Numa::Local)?, len: 0, committed: 0 })
    }

    /// Appends bytes.
    ///
    /// # Errors
    ///
    /// `OutOfMemory` if there is no room for them; otherwise as [`Region::commit`]. Nothing was appended then.
    pub fn extend(&mut self, bytes: &[u8]) -> io::Result<()> {
        let end = self.len.checked_add(bytes.len()).filter(|end| *end <= self.region.len());
        let Some(end) = end else {
            return Err(io::Error::new(
                io::ErrorKind::OutOfMemory,
                "no room is left in the reserved addresses",
            ));
        };
        if end > self.committed {
            // The region's length is a multiple as well.
            let more = (end - self.committed).next_multiple_of(GRANULE_BYTES);
            self.region.commit(self.committed, more)?;
            self.committed += more;
        }
        // SAFETY: `len + bytes.len() <= committed`, ensured above. This value owns the target and is borrowed mutably,
        // so `bytes`, a shared reference, cannot overlap it.
        unsafe {
            let to = self.region.base().as_ptr().add(self.len);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
        self.len = end;
        Ok(())
    }

    /// Committed bytes, by the kind of page.
    pub fn committed(&self) -> Committed {
        self.region.committed()
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the first `len` bytes are committed and written (the invariant of `len`), they stay committed while
        // this is borrowed, and only a mutable borrow changes them.
        unsafe { std::slice::from_raw_parts(self.region.base().as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_stays_where_it_is() {
        for pages in Pages::ALL {
            let mut bytes = Bytes::with_room(3 * GRANULE_BYTES, pages).unwrap();
            assert!(bytes.is_empty());
            bytes.extend(b"first").unwrap();
            let first = bytes.as_ptr();
            bytes.extend(&vec![7; 2 * GRANULE_BYTES]).unwrap();
            bytes.extend(b"last").unwrap();
            assert_eq!(
                (&bytes[..5], &bytes[5..8], &bytes[2 * GRANULE_BYTES + 5..]),
                (&b"first"[..], &[7; 3][..], &b"last"[..])
            );
            assert_eq!(bytes.as_ptr(), first);
            assert_eq!(bytes.committed().total_bytes(), 3 * GRANULE_BYTES);
            let len = bytes.len();
            assert_eq!(bytes.extend(&vec![1; GRANULE_BYTES]).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
            assert_eq!(bytes.len(), len);
            bytes.extend(&vec![1; 3 * GRANULE_BYTES - len]).unwrap();
            bytes.extend(b"").unwrap();
            assert!(bytes.extend(b"x").is_err());
        }
    }
}
