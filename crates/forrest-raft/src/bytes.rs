//! [`Bytes`]: stored or sent bytes, read from the front. What is missing or too much is `Corrupt`. And how parts of
//! them are written.

use forrest::{Error, ErrorKind, Result};

/// Bytes that are read from the front.
pub(crate) struct Bytes<'b>(pub(crate) &'b [u8]);

impl<'b> Bytes<'b> {
    pub(crate) fn take(&mut self, count: usize) -> Result<&'b [u8]> {
        let Some((taken, rest)) = self.0.split_at_checked(count) else {
            return Err(corrupt(format!("{} bytes where {count} are expected", self.0.len())));
        };
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.take(4)?.try_into().expect("4 bytes")))
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_be_bytes(self.take(8)?.try_into().expect("8 bytes")))
    }

    pub(crate) fn flag(&mut self) -> Result<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(corrupt(format!("{other} where 0 or 1 is expected"))),
        }
    }

    /// A length (4), and as many bytes.
    pub(crate) fn part(&mut self) -> Result<&'b [u8]> {
        let length = self.u32()? as usize;
        self.take(length)
    }

    pub(crate) fn end(&self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(corrupt(format!("{} bytes too many", self.0.len()))) }
    }
}

/// Writes the length (4) of a part.
pub(crate) fn put_length(bytes: &mut Vec<u8>, part: &[u8]) {
    let length = u32::try_from(part.len()).expect("keys, values and commands are shorter than 4 GiB");
    bytes.extend_from_slice(&length.to_be_bytes());
}

/// Writes a length (4), and as many bytes.
pub(crate) fn put_part(bytes: &mut Vec<u8>, part: &[u8]) {
    put_length(bytes, part);
    bytes.extend_from_slice(part);
}

#[cold]
pub(crate) fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}
