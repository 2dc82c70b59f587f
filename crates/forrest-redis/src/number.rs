//! Numbers as Redis's protocol writes and reads them.
//!
//! Integers are strict: no spaces, no plus sign, no leading zeros. A double is written as the shortest decimal that
//! reads back as the same number, and an integer of up to 17 digits without a point.

/// An integer, if the bytes are exactly how one is written.
pub(crate) fn integer(bytes: &[u8]) -> Option<i64> {
    let (negative, digits) = match bytes {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut number: i64 = 0;
    for digit in digits {
        let digit = i64::from(digit.checked_sub(b'0').filter(|digit| *digit < 10)?);
        // Downwards, because the least number has no positive twin.
        number = number.checked_mul(10)?.checked_sub(digit)?;
    }
    if negative { Some(number) } else { number.checked_neg() }
}

/// A double: decimal, hexadecimal is refused, `inf` and `infinity` with a sign or without. Not a number is refused.
pub(crate) fn double(bytes: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(bytes).ok()?;
    if text.is_empty() || text.len() > 400 {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    (!number.is_nan()).then_some(number)
}

/// Appends an integer.
pub(crate) fn push_integer(out: &mut Vec<u8>, number: i64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut left = number.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    if number < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    out.extend_from_slice(&digits[at..]);
}

/// An integer as text.
pub(crate) fn text(number: i64) -> Vec<u8> {
    let mut out = Vec::with_capacity(20);
    push_integer(&mut out, number);
    out
}

/// A double as text, as scores are written.
pub(crate) fn double_text(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "inf".to_owned() } else { "-inf".to_owned() };
    }
    let size = number.abs();
    if number == number.trunc() && size < 1e17 {
        return (number as i64).to_string();
    }
    if (1e-5..1e21).contains(&size) {
        return format!("{number}");
    }
    // An exponent has a sign, as C prints it.
    let text = format!("{number:e}");
    if text.contains("e-") { text } else { text.replace('e', "e+") }
}

/// A sum of decimals as text. Redis adds with 80 bits and rounds to 17 digits, so that 1.1 and 2.2 make 3.3. This adds
/// with 64 bits, and takes the decimal of 15 digits if it is at most two steps from the sum.
pub(crate) fn sum_text(number: f64) -> String {
    let short: f64 = format!("{number:.14e}").parse().unwrap_or(number);
    let is_near = short.to_bits().abs_diff(number.to_bits()) <= 2;
    let number = if is_near { short } else { number };
    if number == 0.0 { "0".to_owned() } else { format!("{number}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_strict() {
        for good in [0, 1, -1, 10, i64::MAX, i64::MIN, i64::MIN + 1] {
            assert_eq!(integer(&text(good)), Some(good));
            assert_eq!(text(good), good.to_string().into_bytes());
        }
        let bad: [&[u8]; 13] = [
            b"",
            b"-",
            b"-0",
            b"00",
            b"01",
            b"+1",
            b" 1",
            b"1 ",
            b"1.0",
            b"9223372036854775808",
            b"-9223372036854775809",
            b"99999999999999999999",
            b"1\0",
        ];
        for bytes in bad {
            assert_eq!(integer(bytes), None, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn doubles_read_back() {
        for (number, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (1e16, "10000000000000000"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e22, "1e+22"),
            (1e-7, "1e-7"),
        ] {
            assert_eq!(double_text(number), text);
            assert_eq!(double(text.as_bytes()), Some(number));
        }
        for bad in ["", "nan", "0x10", "1 ", " 1", "1e", "one", "1\0"] {
            assert_eq!(double(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(double(&[b'1'; 401]), None);
    }

    #[test]
    fn sums_of_decimals_are_decimals() {
        assert_eq!(sum_text(1.1 + 2.2), "3.3");
        assert_eq!(sum_text(0.1 + 0.2), "0.3");
        assert_eq!(sum_text(-0.0), "0");
        assert_eq!(sum_text(1.0 / 3.0), "0.3333333333333333");
        assert_eq!(sum_text(5e20), "500000000000000000000");
    }
}
