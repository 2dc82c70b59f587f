//! [`See`]: what a reader does with a value. It looks at it where that is, or has it read into memory of its own, so that
//! a value which is read from a file for one reader is not copied once more.

use crate::room;
use forrest_engine::{Result, Value};
use std::sync::Arc;

/// See the head of the file. A closure looks at the bytes.
pub(crate) trait See<R>: Sized {
    /// Whether it needs the bytes of a value that is elsewhere.
    const READS: bool = true;

    /// Looks at a value that is in memory.
    fn here(self, bytes: &[u8]) -> R;

    /// Has a value of `len` bytes read. `read` fills all of its buffer, or fails.
    ///
    /// # Errors
    /// Those of `read`; `OutOfSpace` without memory.
    fn elsewhere(self, len: usize, read: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<R>;
}

impl<R, F: FnOnce(&[u8]) -> R> See<R> for F {
    #[inline(always)]
    fn here(self, bytes: &[u8]) -> R {
        self(bytes)
    }

    fn elsewhere(self, len: usize, read: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<R> {
        let mut bytes = Vec::new();
        ToBuffer(&mut bytes).elsewhere(len, read)?;
        Ok(self(&bytes))
    }
}

/// Makes a [`Value`].
#[derive(Clone, Copy)]
pub(crate) struct ToValue;

impl See<Value> for ToValue {
    #[inline(always)]
    fn here(self, bytes: &[u8]) -> Value {
        Value::from(bytes)
    }

    fn elsewhere(self, len: usize, read: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Value> {
        // Shared memory cannot be asked for without an abort if there is none, so other memory is, first.
        Vec::<u8>::new().try_reserve_exact(len).map_err(room::refused)?;
        let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, len).collect();
        read(Arc::get_mut(&mut bytes).expect("nobody else has it"))?;
        Ok(Value::from(bytes))
    }
}

impl See<Value> for &mut ToValue {
    #[inline(always)]
    fn here(self, bytes: &[u8]) -> Value {
        ToValue.here(bytes)
    }

    fn elsewhere(self, len: usize, read: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Value> {
        ToValue.elsewhere(len, read)
    }
}

/// Replaces the content of a buffer. After an error it may have anything.
pub(crate) struct ToBuffer<'b>(pub(crate) &'b mut Vec<u8>);

impl See<()> for &mut ToBuffer<'_> {
    #[inline(always)]
    fn here(self, bytes: &[u8]) {
        self.0.clear();
        self.0.extend_from_slice(bytes);
    }

    fn elsewhere(self, len: usize, read: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<()> {
        if self.0.capacity() < len {
            self.0.clear();
            self.0.try_reserve_exact(len).map_err(room::refused)?;
        }
        // What it had before is not cleared: all of it is written over.
        self.0.resize(len, 0);
        read(self.0)
    }
}

/// Sees that there is a value, and reads none.
pub(crate) struct Presence;

impl See<()> for &mut Presence {
    const READS: bool = false;

    #[inline(always)]
    fn here(self, _bytes: &[u8]) {}

    fn elsewhere(self, _len: usize, _read: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forrest_engine::{Error, ErrorKind};

    fn fill(bytes: &mut [u8]) -> Result<()> {
        bytes.iter_mut().zip(1..).for_each(|(byte, number)| *byte = number);
        Ok(())
    }

    #[test]
    fn all_see_the_same() {
        for len in [0, 3, 100] {
            let mut expected = vec![9; len];
            fill(&mut expected).unwrap();
            let seen: Vec<u8> = (|bytes: &[u8]| bytes.to_vec()).elsewhere(len, fill).unwrap();
            assert_eq!(seen, expected);
            assert_eq!((|bytes: &[u8]| bytes.to_vec()).here(&expected), expected);
            assert_eq!(ToValue.elsewhere(len, fill).unwrap(), expected);
            assert_eq!((&mut ToValue).here(&expected), expected);
            for before in [vec![7; 2], vec![7; 200], Vec::new()] {
                let mut buffer = before.clone();
                (&mut ToBuffer(&mut buffer)).elsewhere(len, fill).unwrap();
                assert_eq!(buffer, expected);
                let mut buffer = before;
                (&mut ToBuffer(&mut buffer)).here(&expected);
                assert_eq!(buffer, expected);
            }
        }
    }

    #[test]
    fn failures_are_passed_on() {
        let fails = |_: &mut [u8]| Err(Error::invalid("no"));
        let error = ToValue.elsewhere(5, fails).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!((|_: &[u8]| ()).elsewhere(5, fails).is_err());
        assert!((&mut ToBuffer(&mut Vec::new())).elsewhere(5, fails).is_err());
        let error = (|_: &[u8]| ()).elsewhere(usize::MAX, fails).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfSpace);
        let error = ToValue.elsewhere(isize::MAX as usize, fails).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfSpace);
    }
}
