//! [`Decimal`]: numbers as text, without an allocation.

/// A number as decimal digits.
#[derive(Clone, Copy)]
pub(crate) struct Decimal {
    digits: [u8; 20],
    from: u8,
}

impl Decimal {
    /// Writes a number out.
    #[inline]
    pub(crate) fn new(mut number: u64) -> Self {
        let (mut digits, mut from) = ([0; 20], 20);
        loop {
            from -= 1;
            digits[from] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return Decimal { digits, from: from as u8 };
            }
        }
    }

    /// The digits.
    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.digits[usize::from(self.from)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_read_as_they_print() {
        for number in [0, 1, 9, 10, 99, 100, 1_234_567_890, u64::MAX] {
            assert_eq!(Decimal::new(number).as_bytes(), number.to_string().as_bytes());
        }
    }
}
