//! Bytes as readable text that a program can decode: printable UTF-8 stands for itself, and everything else is
//! escaped. `unescape(escape(x)) == x` for any bytes.
//!
//! | written | means |
//! |---|---|
//! | `\\` `\t` `\n` `\r` | backslash, tab, line feed, carriage return |
//! | `\xNN` | the byte NN, two hexadecimal digits |
//! | anything else | itself, as UTF-8 |
//!
//! Input may have bytes that output would escape: a raw control character or a byte that is not UTF-8 stands for
//! itself. Only a backslash that starts none of the above is an error.

use super::hex;
use super::item::Mistake;

/// Appends `bytes` to `out`, escaped.
pub(crate) fn escape_into(bytes: &[u8], out: &mut Vec<u8>) {
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.extend_from_slice(br"\\"),
                '\t' => out.extend_from_slice(br"\t"),
                '\n' => out.extend_from_slice(br"\n"),
                '\r' => out.extend_from_slice(br"\r"),
                c if is_shown(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                c => c.encode_utf8(&mut [0; 4]).bytes().for_each(|b| escape_byte(b, out)),
            }
        }
        chunk.invalid().iter().for_each(|&b| escape_byte(b, out));
    }
}

/// `bytes`, escaped.
pub(crate) fn escape(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len() + 8);
    escape_into(bytes, &mut out);
    String::from_utf8(out).expect("the escaped form is UTF-8")
}

/// Appends one byte as `\xNN`.
pub(crate) fn escape_byte(byte: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(br"\x");
    hex::encode_into(&[byte], out);
}

/// Turns the escaped form back; a mistake carries the offset of the backslash.
pub(crate) fn unescape(text: &[u8]) -> Result<Vec<u8>, Mistake> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(i) = rest.iter().position(|&b| b == b'\\') {
        out.extend_from_slice(&rest[..i]);
        let at = text.len() - rest.len() + i;
        let (byte, used) = match rest[i + 1..] {
            [b'\\', ..] => (b'\\', 2),
            [b't', ..] => (b'\t', 2),
            [b'n', ..] => (b'\n', 2),
            [b'r', ..] => (b'\r', 2),
            [b'x', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                (hex::digit(high) << 4 | hex::digit(low), 4)
            }
            [b'x', ..] => return Err(Mistake::new(at, r"\x needs two hexadecimal digits after it")),
            [] => return Err(Mistake::new(at, r"a backslash at the end; write \\ for one")),
            _ => {
                let what = rest[i + 1..].utf8_chunks().next().and_then(|c| c.valid().chars().next());
                let what = what.filter(|&c| is_shown(c)).map_or(String::from("this"), |c| format!(r"\{c}"));
                return Err(Mistake::new(at, format!(r"{what} is no escape; there are \\ \t \n \r \xNN")));
            }
        };
        out.push(byte);
        rest = &rest[i + used..];
    }
    out.extend_from_slice(rest);
    Ok(out)
}

/// True for characters that a terminal shows by themselves or as part of the character before. Controls and the
/// invisible characters that change the order or breaking of a line are escaped, so that the text shows all stored
/// bytes.
fn is_shown(c: char) -> bool {
    !c.is_control()
        && !matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_printable_stays_and_the_rest_is_escaped() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"apple", "apple"),
            ("Ω, 林".as_bytes(), "Ω, 林"),
            (b"a\tb\nc\rd\\", r"a\tb\nc\rd\\"),
            (b"\0\x7f\xff", r"\x00\x7f\xff"),
            (b"\xe2\x82", r"\xe2\x82"),
            ("\u{202e}x".as_bytes(), r"\xe2\x80\xaex"),
        ] {
            assert_eq!(escape(bytes), text);
            assert_eq!(unescape(text.as_bytes()).unwrap(), bytes);
        }
    }

    #[test]
    fn raw_bytes_stand_for_themselves() {
        assert_eq!(unescape(b"\xff\0").unwrap(), b"\xff\0");
    }

    #[test]
    fn a_mistake_tells_where() {
        for (text, at) in [(r"ab\q", 2), (r"\x4", 0), (r"a\xg0", 1), (r"a\", 1), (r"\\\", 2)] {
            assert_eq!(unescape(text.as_bytes()).unwrap_err().at, at, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(bytes: Vec<u8>) {
            let text = escape(&bytes);
            prop_assert!(!text.contains(['\n', '\t', '\r']));
            prop_assert_eq!(unescape(text.as_bytes()).unwrap(), bytes);
        }

        #[test]
        fn no_text_panics(text: Vec<u8>) {
            let _ = unescape(&text);
        }
    }
}
