//! Bytes as pairs of hexadecimal digits: written in lower case, read in either.

use super::item::Mistake;

/// Appends `bytes` to `out` in hexadecimal.
pub(crate) fn encode_into(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend(bytes.iter().flat_map(|b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]]));
}

/// Turns hexadecimal back; a mistake carries the offset of the first character that does not fit.
pub(crate) fn decode(text: &[u8]) -> Result<Vec<u8>, Mistake> {
    if let Some(at) = text.iter().position(|b| !b.is_ascii_hexdigit()) {
        return Err(Mistake::new(at, "not a hexadecimal digit"));
    }
    if text.len() % 2 == 1 {
        return Err(Mistake::new(text.len() - 1, "an odd number of hexadecimal digits"));
    }
    Ok(text.chunks_exact(2).map(|d| digit(d[0]) << 4 | digit(d[1])).collect())
}

/// The value of one hexadecimal digit.
pub(crate) fn digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let all: Vec<u8> = (0..=255).collect();
        let mut text = Vec::new();
        encode_into(&all, &mut text);
        assert_eq!(decode(&text).unwrap(), all);
        assert_eq!(decode(b"aAfF09").unwrap(), [0xaa, 0xff, 0x09]);
    }

    #[test]
    fn a_mistake_tells_where() {
        assert_eq!(decode(b"00g0").unwrap_err().at, 2);
        assert_eq!(decode(b"000").unwrap_err().at, 2);
        assert_eq!(decode(b"0 0").unwrap_err().at, 1);
    }
}
