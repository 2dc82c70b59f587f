//! Numbers and strings of varying length in records. A number is little-endian groups of seven bits. A string
//! is its length and its bytes.
//!
//! The decoder trusts nothing: it checks every length against the bytes that are left.

/// Appends a number: seven bits a byte, the lowest first, the high bit set on all but the last.
#[inline]
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends the length of some bytes, and the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Decodes numbers and strings from the front of some bytes. `None` means that they are not encoded so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts<'b>(pub(crate) &'b [u8]);

impl<'b> Parts<'b> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// A number in its shortest form, which is the only valid one.
    #[inline]
    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if bits << shift >> shift != bits || (byte == 0 && shift > 0) {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// The next `len` bytes.
    #[inline]
    pub(crate) fn take(&mut self, len: u64) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    /// A length, and that many bytes.
    pub(crate) fn bytes(&mut self) -> Option<&'b [u8]> {
        let len = self.number()?;
        self.take(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_have_one_form() {
        let numbers = [0, 1, 0x7F, 0x80, 0x3FFF, 0x4000, u64::from(u32::MAX), u64::MAX - 1, u64::MAX];
        for number in numbers {
            let mut out = Vec::new();
            put_number(&mut out, number);
            let mut parts = Parts(&out);
            assert_eq!((parts.number(), parts.is_empty()), (Some(number), true));
            assert_eq!(Parts(&out[..out.len() - 1]).number(), None);
        }
        assert_eq!(Parts(&[0x80, 0]).number(), None, "longer than it has to be");
        assert_eq!(Parts(&[0xFF; 10]).number(), None, "more than 64 bits");
    }

    #[test]
    fn lengths_are_not_believed() {
        assert_eq!(Parts(&[3, 1, 2]).bytes(), None);
        assert_eq!(Parts(&[2, 1, 2]).bytes(), Some(&[1, 2][..]));
        assert_eq!(Parts(&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1]).bytes(), None);
    }
}
