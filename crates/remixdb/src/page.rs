//! Pages: the unit in which tables and REMIXes are read, with a checksum that proves that the bytes are those
//! that were written.
//!
//! A page is 4,096 bytes: 4,088 of payload, then 8 of checksum, little endian: xxh3 of the payload, 64 bits,
//! seeded with the file's kind and number and with the page's number. So an intact page in another place, or
//! in another file, is damage too. The last page of a file has a marked number ([`LAST`]): a file that was
//! cut off between two pages ends in a page that is not a last one, whatever its bytes are.
//!
//! The payloads of a file's pages, in order, are its logical bytes. A logical offset counts these.
//!
//! Not here: reading pages, and keeping them (see [`cache`](crate::cache)).

use crate::disk::{self, Kind, Name};
use forrest_base::random::finalize;
use forrest_engine::Result;
use xxhash_rust::xxh3::xxh3_64_with_seed as xxh3;

/// Bytes of a page in its file.
pub(crate) const BYTES: usize = 4096;
/// Bytes of a page without its checksum. A multiple of 8, so that aligned logical offsets are aligned in
/// pages.
pub(crate) const PAYLOAD: usize = BYTES - 8;
/// Set in the page number that seals the last page of a file.
pub(crate) const LAST: u64 = 1 << 63;

const _: () = assert!(PAYLOAD.is_multiple_of(8));

/// The seed of a page's checksum. The letters are part of the format; the order of [`Kind`] is not.
fn seed(name: Name, number: u64) -> u64 {
    let letter = match name.kind {
        Kind::Log => b'L',
        Kind::Manifest => b'M',
        Kind::Remix => b'R',
        Kind::Table => b'T',
        Kind::Copy => b'C',
        Kind::Backup => b'B',
        Kind::Key => b'K',
    };
    finalize(finalize(name.number.rotate_left(8) ^ u64::from(letter)) ^ number)
}

/// The checksum of bytes in one place of a file, which the number names.
pub(crate) fn sum(bytes: &[u8], name: Name, number: u64) -> u64 {
    xxh3(bytes, seed(name, number))
}

/// Completes page `number` of a file, whose payload is there.
pub(crate) fn seal(page: &mut [u8], name: Name, number: u64) {
    assert_eq!(page.len(), BYTES, "a page");
    let sum = sum(&page[..PAYLOAD], name, number);
    page[PAYLOAD..].copy_from_slice(&sum.to_le_bytes());
}

/// An error unless these bytes were sealed as page `number` of the file.
///
/// # Errors
/// `Corrupt`.
pub(crate) fn check(page: &[u8], name: Name, number: u64) -> Result<()> {
    check_at(page, name, number, (number & !LAST).saturating_mul(BYTES as u64))
}

/// The same for a page that is at another offset of the file than its number says.
///
/// # Errors
/// `Corrupt`.
pub(crate) fn check_at(page: &[u8], name: Name, number: u64, offset: u64) -> Result<()> {
    assert_eq!(page.len(), BYTES, "a page");
    if page[PAYLOAD..] == sum(&page[..PAYLOAD], name, number).to_le_bytes() {
        return Ok(());
    }
    Err(disk::damaged(name, offset, "wrong page checksum"))
}

/// The page in which a logical offset lies, and where in the page.
#[inline]
pub(crate) fn place(offset: u64) -> (u64, usize) {
    (offset / PAYLOAD as u64, (offset % PAYLOAD as u64) as usize)
}

/// Where in the file the byte at a logical offset is.
pub(crate) fn file_offset(offset: u64) -> u64 {
    let (page, at) = place(offset);
    page.saturating_mul(BYTES as u64).saturating_add(at as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_whole_in_one_place_only() {
        let name = Name::table(7);
        let mut page = vec![0; BYTES];
        page[..3].copy_from_slice(b"abc");
        seal(&mut page, name, 5);
        assert!(check(&page, name, 5).is_ok());
        for (other, number) in [(name, 4), (name, 5 | LAST), (Name::table(8), 5), (Name::log(7), 5)] {
            assert!(check(&page, other, number).is_err(), "{other} {number}");
        }
        for byte in 0..BYTES {
            page[byte] ^= 1 << (byte % 8);
            assert!(check(&page, name, 5).is_err(), "byte {byte}");
            page[byte] ^= 1 << (byte % 8);
        }
        let error = check(&page, name, 9 | LAST).unwrap_err().to_string();
        assert!(error.contains("00000007.table at offset 36864"), "{error}");
    }

    /// The seed is part of the format.
    #[test]
    fn checksums_do_not_drift() {
        let mut page = vec![0; BYTES];
        page[0] = 1;
        seal(&mut page, Name::table(7), 5);
        assert_eq!(u64::from_le_bytes(page[PAYLOAD..].try_into().unwrap()), 0x2E1B_F0DC_FE9B_CE8A);
    }

    #[test]
    fn logical_offsets_skip_checksums() {
        assert_eq!((place(0), place(4087), place(4088)), ((0, 0), (0, 4087), (1, 0)));
        assert_eq!((file_offset(4087), file_offset(4088), file_offset(2 * 4088 + 1)), (4087, 4096, 8193));
    }
}
