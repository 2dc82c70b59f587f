//! [`EncryptionKey`]: the user's key of an encrypted store.
//!
//! It is never printed, and with the feature `encryption` its bytes are overwritten when it is dropped. Nothing here
//! encrypts anything.

use crate::error::{Error, ErrorKind, Result};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes of a key.
const BYTES: usize = 32;

/// The key that a store on disk is encrypted with: 256 random bits. Keep it where the store is not.
///
/// ```
/// use forrest_engine::EncryptionKey;
///
/// let key = EncryptionKey::from_bytes([7; 32]);
/// assert_eq!(format!("{key:?}"), "EncryptionKey");
/// ```
#[derive(Clone)]
pub struct EncryptionKey([u8; BYTES]);

impl EncryptionKey {
    /// A key of these bytes. They must be random: nothing makes a password of few bits stronger.
    pub fn from_bytes(bytes: [u8; 32]) -> EncryptionKey {
        EncryptionKey(bytes)
    }

    /// The key in a file that has 32 bytes, or 64 hexadecimal digits and maybe the end of a line.
    ///
    /// # Errors
    /// `Io` if the file cannot be read; `InvalidArgument` if it has something else.
    pub fn from_file(path: &Path) -> Result<EncryptionKey> {
        let failed =
            |error| Error::new(ErrorKind::Io, format!("reading the key file {}: {error}", path.display()));
        // Longer than any key, so that what is too long is not taken for one.
        let mut bytes = [0; 2 * BYTES + 3];
        let mut file = File::open(path).map_err(failed)?;
        let mut len = 0;
        while len < bytes.len() {
            match file.read(&mut bytes[len..]) {
                Ok(0) => break,
                Ok(count) => len += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        let key = parse(&bytes[..len]);
        erase(&mut bytes);
        key.ok_or_else(|| {
            Error::invalid(format!(
                "the key file {} has no key; it must have 32 bytes, or 64 hexadecimal digits",
                path.display()
            ))
        })
    }

    /// Its bytes, for the engine that uses it.
    #[doc(hidden)]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

fn parse(bytes: &[u8]) -> Option<EncryptionKey> {
    if let Ok(raw) = bytes.try_into() {
        return Some(EncryptionKey(raw));
    }
    let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let digits = line.strip_suffix(b"\r").unwrap_or(line);
    let mut key = EncryptionKey([0; BYTES]);
    if digits.len() != 2 * BYTES {
        return None;
    }
    for (byte, pair) in key.0.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = (digit(0)? << 4 | digit(1)?) as u8;
    }
    Some(key)
}

#[cfg(feature = "encryption")]
fn erase(bytes: &mut [u8]) {
    use zeroize::Zeroize as _;
    bytes.zeroize();
}

/// Without the feature no store has a key.
#[cfg(not(feature = "encryption"))]
fn erase(_: &mut [u8]) {}

impl Drop for EncryptionKey {
    fn drop(&mut self) {
        erase(&mut self.0);
    }
}

impl PartialEq for EncryptionKey {
    /// Takes as long for any two keys.
    fn eq(&self, other: &EncryptionKey) -> bool {
        self.0.iter().zip(&other.0).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }
}

impl Eq for EncryptionKey {}

impl fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EncryptionKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_32_bytes_or_64_digits_and_nothing_else() {
        let digits = "00ff1234567890abcdefABCDEF00000000000000000000000000000000000001";
        for end in ["", "\n", "\r\n"] {
            let key = parse(format!("{digits}{end}").as_bytes()).expect("it is a key");
            assert_eq!((key.0[1], key.0[10], key.0[31]), (0xFF, 0xAB, 1));
        }
        assert_eq!(parse(&[7; 32]).expect("it is a key").0, [7; 32]);
        let other = digits.replace('A', "g");
        for wrong in
            ["", "x", &digits[1..], &other, &format!("{digits}0"), &format!("{digits}\n\n"), &digits[..31]]
        {
            assert!(parse(wrong.as_bytes()).is_none(), "{wrong}");
        }
    }

    #[test]
    fn it_is_not_printed() {
        let options =
            crate::Options { encryption_key: Some(EncryptionKey([0xA5; 32])), ..Default::default() };
        let text = format!("{options:?}");
        assert!(text.contains("encryption_key: Some(EncryptionKey)"), "{text}");
    }
}
