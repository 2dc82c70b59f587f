//! The metadata of a file that the demo stores, and its encoding.
//!
//! **`files`**: path → one line of text, `KIND MODE SIZE SECONDS.NANOS`: kind as in `ls -l`
//! (`-`, `d`, `l`, ...), mode in octal, size in bytes, time of last change since 1970, for example
//! `- 755 142312 1712345678.012345678`. It is text so that it can be read in `forrest demo --shell`; a
//! binary form would be ten bytes shorter.
//!
//! **`by_time`**: time, then path → nothing. The time is 12 bytes, seconds and nanoseconds, big endian
//! and with the sign bit of the seconds turned over, because keys sort by their bytes and so sort by time.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// The metadata of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Meta {
    /// As the first letter of a line of `ls -l`.
    pub(crate) kind: u8,
    /// Permission bits.
    pub(crate) mode: u32,
    /// Size in bytes.
    pub(crate) size: u64,
    /// Time of last change of the content.
    pub(crate) time: Time,
}

/// A moment: seconds since 1970 in UTC, and nanoseconds after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time {
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

impl Meta {
    /// From the metadata of the file system.
    pub(crate) fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::FileTypeExt;
        let file_type = metadata.file_type();
        let kind = match () {
            () if file_type.is_file() => b'-',
            () if file_type.is_dir() => b'd',
            () if file_type.is_symlink() => b'l',
            () if file_type.is_block_device() => b'b',
            () if file_type.is_char_device() => b'c',
            () if file_type.is_fifo() => b'p',
            () if file_type.is_socket() => b's',
            () => b'?',
        };
        let nanos = metadata.mtime_nsec().clamp(0, 999_999_999) as u32;
        let time = Time { seconds: metadata.mtime(), nanos };
        Meta { kind, mode: metadata.mode() & 0o7777, size: metadata.size(), time }
    }

    /// Replaces the content of `out` by the stored form.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        use std::io::Write;
        out.clear();
        let Time { seconds, nanos } = self.time;
        write!(out, "{} {:o} {} {seconds}.{nanos:09}", char::from(self.kind), self.mode, self.size)
            .expect("writing to memory does not fail");
    }

    /// Reads the stored form; `None` if it is not one.
    pub(crate) fn decode(stored: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(stored).ok()?.split(' ');
        let &[kind] = words.next()?.as_bytes() else { return None };
        let mode = u32::from_str_radix(words.next()?, 8).ok()?;
        let size = words.next()?.parse().ok()?;
        let (seconds, nanos) = words.next()?.split_once('.')?;
        let time = Time { seconds: seconds.parse().ok()?, nanos: nanos.parse().ok()? };
        words.next().is_none().then_some(Meta { kind, mode, size, time })
    }

    /// Kind and mode as `ls -l` shows them, for example `drwxr-xr-x`.
    pub(crate) fn permissions(&self) -> String {
        let mut out = String::with_capacity(10);
        out.push(char::from(self.kind));
        for (shift, special, with_x, without) in
            [(6, 0o4000, 's', 'S'), (3, 0o2000, 's', 'S'), (0, 0o1000, 't', 'T')]
        {
            let bits = self.mode >> shift;
            out.push(if bits & 4 != 0 { 'r' } else { '-' });
            out.push(if bits & 2 != 0 { 'w' } else { '-' });
            out.push(match (bits & 1 != 0, self.mode & special != 0) {
                (true, false) => 'x',
                (false, false) => '-',
                (true, true) => with_x,
                (false, true) => without,
            });
        }
        out
    }
}

impl Time {
    /// Replaces the content of `out` by the key of `by_time` for this moment and a path.
    pub(crate) fn encode_key(self, path: &[u8], out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&((self.seconds as u64) ^ (1 << 63)).to_be_bytes());
        out.extend_from_slice(&self.nanos.to_be_bytes());
        out.extend_from_slice(path);
    }

    /// Splits a key of `by_time`; `None` if it is not one.
    pub(crate) fn decode_key(key: &[u8]) -> Option<(Self, &[u8])> {
        let (seconds, rest) = key.split_first_chunk()?;
        let (nanos, path) = rest.split_first_chunk()?;
        let seconds = (u64::from_be_bytes(*seconds) ^ (1 << 63)) as i64;
        Some((Time { seconds, nanos: u32::from_be_bytes(*nanos) }, path))
    }

    /// Date and time of day in UTC, to the second.
    pub(crate) fn to_utc(self) -> String {
        let (days, second) = (self.seconds.div_euclid(86_400), self.seconds.rem_euclid(86_400));
        let (year, month, day) = date(days);
        format!(
            "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}",
            second / 3600,
            second / 60 % 60,
            second % 60
        )
    }
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar. Years start in March
/// here, so that the leap day is the last of a year, and come in eras of 400 years with 146,097 days.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year_of_era + era * 400 + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_stored_form_is_as_documented() {
        let time = Time { seconds: 1_712_345_678, nanos: 12_345_678 };
        let meta = Meta { kind: b'-', mode: 0o755, size: 142_312, time };
        let mut stored = Vec::new();
        meta.encode(&mut stored);
        assert_eq!(stored, b"- 755 142312 1712345678.012345678");
        assert_eq!(Meta::decode(&stored), Some(meta));
        for wrong in
            [&b""[..], b"- 755 1", b"-- 755 1 1.0", b"- 9 1 1.0", b"- 7 1 1", b"- 7 1 1.0 1", b"\xff"]
        {
            assert_eq!(Meta::decode(wrong), None);
        }
    }

    #[test]
    fn permissions_look_as_in_ls() {
        let time = Time { seconds: 0, nanos: 0 };
        let shown = |kind, mode| Meta { kind, mode, size: 0, time }.permissions();
        assert_eq!(shown(b'd', 0o755), "drwxr-xr-x");
        assert_eq!(shown(b'-', 0o4755), "-rwsr-xr-x");
        assert_eq!(shown(b'd', 0o1777), "drwxrwxrwt");
        assert_eq!(shown(b'-', 0o7000), "---S--S--T");
    }

    #[test]
    fn dates() {
        let shown = |seconds| Time { seconds, nanos: 0 }.to_utc();
        assert_eq!(shown(0), "1970-01-01 00:00:00");
        assert_eq!(shown(-1), "1969-12-31 23:59:59");
        assert_eq!(shown(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(shown(4_107_542_399), "2100-02-28 23:59:59");
        assert_eq!(shown(1_712_345_678), "2024-04-05 19:34:38");
        // Nothing that a file system can say makes the arithmetic overflow.
        shown(i64::MIN);
        shown(i64::MAX);
    }

    proptest! {
        #[test]
        fn keys_sort_by_time(a: (i64, u32), b: (i64, u32), path: Vec<u8>) {
            let key = |(seconds, nanos)| {
                let mut key = Vec::new();
                Time { seconds, nanos }.encode_key(&path, &mut key);
                key
            };
            prop_assert_eq!(key(a).cmp(&key(b)), a.cmp(&b));
            let (seconds, nanos) = a;
            let key = key(a);
            prop_assert_eq!(Time::decode_key(&key), Some((Time { seconds, nanos }, &path[..])));
        }
    }
}
