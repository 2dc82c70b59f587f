//! A growable array of numbers whose memory goes back to the system when it is dropped.
//!
//! An allocator keeps what is freed. glibc's keeps blocks of up to 32 MiB, and up to 64 MiB at the end of each of its
//! arenas, once blocks of that size were freed. So a program that makes and drops large arrays in several threads holds
//! several times what it uses. An [`Array`] of at least [`MAPPED_BYTES`] is a mapping of its own instead. A smaller one
//! comes from the allocator.
//!
//! Growing moves pages (`mremap`), not bytes, where the system can do that.

use super::{HUGE_2M_BYTES, sys};
use std::alloc::{Layout, alloc, dealloc};
use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// An array with at least this many bytes has a mapping of its own.
pub const MAPPED_BYTES: usize = 128 << 10;
/// What a mapping grows by, and is a multiple of, in bytes: at least a page on every system.
const STEP_BYTES: usize = 64 << 10;
/// An array that is full grows by one part of this many.
const GROWTH: usize = 4;
/// The first capacity, in bytes.
const FIRST_BYTES: usize = 256;

/// An array; see the module's head.
///
/// ```
/// use forrest_machine::pages::Array;
///
/// let mut squares: Array<u64> = Array::with_capacity(1 << 20)?;
/// for number in 0..1 << 20 {
///     squares.push(number * number)?;
/// }
/// assert_eq!(squares[3], 9);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Array<T: Copy> {
    /// Dangling if there is no capacity.
    start: NonNull<T>,
    /// INVARIANT: the first `len` values are written, `len <= capacity`.
    len: usize,
    /// INVARIANT: what `start` points to was taken by `take` for exactly this capacity.
    capacity: usize,
}

// SAFETY: the array owns its values, as a vector does, and has no other state.
unsafe impl<T: Copy + Send> Send for Array<T> {}
// SAFETY: as above; a shared reference gives only shared references to the values.
unsafe impl<T: Copy + Sync> Sync for Array<T> {}

fn refused() -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, "the system refuses the memory of an array")
}

impl<T: Copy> Array<T> {
    /// An empty array, which has no memory yet.
    pub const fn new() -> Array<T> {
        const { assert!(size_of::<T>() > 0 && size_of::<T>() <= STEP_BYTES && align_of::<T>() <= 4096) };
        Array { start: NonNull::dangling(), len: 0, capacity: 0 }
    }

    /// An empty array with room for at least `capacity` values. Huge pages are requested for whole ones inside it.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn with_capacity(capacity: usize) -> io::Result<Array<T>> {
        let mut array = Array::new();
        array.set_capacity(capacity)?;
        array.advise_huge();
        Ok(array)
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        self.capacity * size_of::<T>()
    }

    /// Appends a value.
    ///
    /// # Errors
    /// `OutOfMemory`; nothing was appended then.
    #[inline]
    pub fn push(&mut self, value: T) -> io::Result<()> {
        self.extend(&[value])
    }

    /// Appends values.
    ///
    /// # Errors
    /// `OutOfMemory`; nothing was appended then.
    #[inline]
    pub fn extend(&mut self, values: &[T]) -> io::Result<()> {
        self.reserve(values.len())?;
        // SAFETY: `reserve` made room for the values after the first `len`. They cannot overlap a shared slice, because
        // the array is borrowed mutably.
        unsafe { self.start.as_ptr().add(self.len).copy_from_nonoverlapping(values.as_ptr(), values.len()) };
        self.len += values.len();
        Ok(())
    }

    /// Appends copies of a value, so that there are `len`, or drops values, so that there are no more.
    ///
    /// # Errors
    /// `OutOfMemory`; nothing has changed then.
    pub fn resize(&mut self, len: usize, value: T) -> io::Result<()> {
        if len > self.len {
            self.reserve(len - self.len)?;
            for at in self.len..len {
                // SAFETY: `reserve` made room for `len` values.
                unsafe { self.start.as_ptr().add(at).write(value) };
            }
        }
        self.len = len;
        Ok(())
    }

    /// Makes room for `more` values after those that are there.
    ///
    /// # Errors
    /// `OutOfMemory`; nothing has changed then.
    #[inline]
    pub fn reserve(&mut self, more: usize) -> io::Result<()> {
        if more <= self.capacity - self.len { Ok(()) } else { self.grow(more) }
    }

    #[cold]
    fn grow(&mut self, more: usize) -> io::Result<()> {
        let least = self.len.checked_add(more).ok_or_else(refused)?;
        let larger = self.capacity.saturating_add(self.capacity / GROWTH);
        self.set_capacity(least.max(larger).max(FIRST_BYTES / size_of::<T>()))
    }

    /// Gives back memory that no value needs. If that fails, it stays.
    pub fn shrink_to_fit(&mut self) {
        let _ = self.set_capacity(self.len);
    }

    /// Moves the values to memory with room for at least `capacity` of them, and for those that there are.
    fn set_capacity(&mut self, capacity: usize) -> io::Result<()> {
        let capacity = Self::rounded(capacity.max(self.len))?;
        if capacity == self.capacity {
            return Ok(());
        }
        let (old, new) = (Self::memory_of(self.capacity), Self::memory_of(capacity));
        if old >= MAPPED_BYTES && new >= MAPPED_BYTES {
            // SAFETY: the range is a mapping that `take` made, with `old` bytes, and the new one takes its place:
            // nothing refers to the values while the array is borrowed mutably.
            let moved = unsafe { sys::resize(self.start.as_ptr().cast(), old, new) };
            // If it cannot be moved, it is copied.
            if let Some(start) = moved.and_then(Result::ok).and_then(|moved| NonNull::new(moved.cast())) {
                self.start = start;
                self.capacity = capacity;
                return Ok(());
            }
        }
        let start = Self::take(capacity)?;
        // SAFETY: both have room for `len` values, those of the old memory are written, and the new one was just taken.
        unsafe { start.as_ptr().copy_from_nonoverlapping(self.start.as_ptr(), self.len) };
        let len = self.len;
        drop(std::mem::replace(self, Array { start, len, capacity }));
        Ok(())
    }

    /// The least capacity that is no less, and whose bytes are what memory is taken by.
    fn rounded(capacity: usize) -> io::Result<usize> {
        let bytes = capacity.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= isize::MAX as usize / 2);
        let bytes = bytes.ok_or_else(refused)?;
        // Values may leave less than one of them unused at the end, and the rest must not look like an allocation.
        let whole = bytes.max(MAPPED_BYTES + size_of::<T>()).next_multiple_of(STEP_BYTES) / size_of::<T>();
        Ok(if bytes >= MAPPED_BYTES { whole } else { capacity })
    }

    /// Bytes of the memory of a capacity: of a mapping they are whole steps.
    fn memory_of(capacity: usize) -> usize {
        let bytes = capacity * size_of::<T>();
        if bytes >= MAPPED_BYTES { bytes.next_multiple_of(STEP_BYTES) } else { bytes }
    }

    /// Takes memory for a capacity that `rounded` returned.
    fn take(capacity: usize) -> io::Result<NonNull<T>> {
        let bytes = capacity * size_of::<T>();
        let start = match bytes {
            0 => return Ok(NonNull::dangling()),
            MAPPED_BYTES.. => sys::take(Self::memory_of(capacity))?.cast(),
            // SAFETY: the layout has bytes.
            _ => unsafe { alloc(Self::layout(capacity)) }.cast(),
        };
        NonNull::new(start).ok_or_else(refused)
    }

    fn layout(capacity: usize) -> Layout {
        Layout::array::<T>(capacity).expect("`rounded` limits the bytes")
    }

    /// Requests huge pages for whole ones in the memory.
    fn advise_huge(&mut self) {
        if self.bytes() >= HUGE_2M_BYTES {
            // All of the mapping, because the system divides one of which a part has other advice, and resizes no two.
            let bytes = Self::memory_of(self.capacity);
            // SAFETY: it is the mapping of this array; the advice changes the size of pages, not what they hold.
            let _ = unsafe { sys::advise_huge(self.start.as_ptr().cast(), bytes, true) };
        }
    }
}

impl<T: Copy> Drop for Array<T> {
    fn drop(&mut self) {
        match self.bytes() {
            0 => {}
            MAPPED_BYTES.. => {
                let bytes = Self::memory_of(self.capacity);
                // SAFETY: `take` made this mapping, with as many bytes, and nothing refers to it any more.
                let unmapped = unsafe { sys::unmap(self.start.as_ptr().cast(), bytes) };
                debug_assert!(unmapped.is_ok(), "munmap of an own mapping: {unmapped:?}");
            }
            // SAFETY: `take` allocated it with this layout, and nothing refers to it any more.
            _ => unsafe { dealloc(self.start.as_ptr().cast(), Self::layout(self.capacity)) },
        }
    }
}

impl<T: Copy> Deref for Array<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the first `len` values are written (the invariant of `len`), and only a mutable borrow changes them.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Copy> DerefMut for Array<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above; this borrow is the mutable one.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Copy> Default for Array<T> {
    fn default() -> Array<T> {
        Array::new()
    }
}

impl<T: Copy + fmt::Debug> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Copy + PartialEq> PartialEq for Array<T> {
    fn eq(&self, other: &Array<T>) -> bool {
        **self == **other
    }
}

impl<T: Copy + Eq> Eq for Array<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_a_vector_holds_at_every_size() {
        let (mut array, mut vec) = (Array::new(), Vec::new());
        for step in 0..400u64 {
            let values: Vec<u64> = (0..step * step * 7 % 9_973).map(|value| value << 32 | step).collect();
            match step % 9 {
                7 => array.shrink_to_fit(),
                8 => {
                    array.resize(vec.len() / 3, 0).unwrap();
                    vec.truncate(vec.len() / 3);
                }
                4 => {
                    array.resize(vec.len() + values.len(), step).unwrap();
                    vec.resize(vec.len() + values.len(), step);
                }
                _ => {
                    array.extend(&values).unwrap();
                    vec.extend_from_slice(&values);
                }
            }
            assert_eq!(array[..], vec[..], "step {step}");
            assert!(array.bytes() >= size_of_val(&vec[..]));
        }
        assert!(array.bytes() >= MAPPED_BYTES, "it was large");
        array.resize(3, 0).unwrap();
        array.shrink_to_fit();
        assert_eq!((array.bytes(), &array[..]), (24, &vec[..3]));
        array.resize(0, 0).unwrap();
        array.shrink_to_fit();
        assert_eq!((array.bytes(), array.is_empty()), (0, true));
    }

    #[test]
    fn a_large_one_is_aligned_and_grows_by_little() {
        #[derive(Clone, Copy)]
        #[repr(align(64))]
        struct Line([u8; 192]);
        let mut lines = Array::with_capacity(50_000).unwrap();
        let bytes = lines.bytes();
        assert!((50_000 * 192..50_000 * 192 + STEP_BYTES).contains(&bytes));
        // One more than it has room for.
        let count = lines.capacity + 1;
        for at in 0..count {
            lines.push(Line([at as u8; 192])).unwrap();
        }
        assert!(lines.as_ptr().addr().is_multiple_of(64));
        assert!(lines.iter().enumerate().all(|(at, line)| line.0 == [at as u8; 192]));
        assert!(lines.bytes() <= bytes + bytes / GROWTH + STEP_BYTES);
        lines[7].0[3] = 1;
        lines.shrink_to_fit();
        assert_eq!((lines[7].0[3], lines.len()), (1, count));
        assert!(lines.bytes() < count * 192 + STEP_BYTES);
    }

    #[test]
    fn memory_that_cannot_be_is_refused() {
        let error = Array::<u64>::with_capacity(usize::MAX / 8).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        let mut array = Array::new();
        array.push(7u64).unwrap();
        assert!(array.reserve(usize::MAX).is_err() && array.reserve(usize::MAX / 16).is_err());
        assert_eq!(array[..], [7]);
    }
}
