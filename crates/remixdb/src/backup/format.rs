//! The description of a backup: which files make up the store, where their copies are, and what their bytes are.
//!
//! It is a file `NUMBER.copy` with the framing of [`record`](crate::record): the header, whose version is 1, and one
//! record. The first field of the header is the version of the manifest whose edits the record has; the others are 0.
//! The file ends with the record.
//!
//! ```text
//! record  time, in milliseconds since 1970
//!         two numbers of the store's directory (see `Real::birth`), 0 where they are not known
//!         bytes that were copied for this backup
//!         count of files, and for each:
//!           kind, 1 byte: 1 log, 2 REMIX, 3 table, 4 log that is kept for values in it; its number in the store
//!           number of its copy: of `NUMBER.copy`, or for the kind 1 of a log with the same name
//!           length in bytes; checksum of all bytes, 16: xxh3, 128 bits
//!           two numbers of the file in the store (see `Disk::mark`), 0 and 0 if they are not known
//!           for each piece of 1 MiB, the last one maybe shorter: xxh3, 64 bits, seeded with its number from 0 on
//!         edits that make the state of the manifest (see `manifest::format`)
//! ```
//!
//! Numbers are encoded by [`codec`](crate::codec), checksums are little endian.
//!
//! For example, the description 5 of one table, which is table 7 of the store and copy 3 here, has 4,096 bytes, and no
//! known numbers; the next keyspace is 1, and the first log 0:
//!
//! ```text
//! 01  00 00  80 20  01  03 07 03 80 20 (16 bytes) 00 00 (8 bytes)  03 01 04 00
//! ```

use crate::codec::{Parts, put_number};
use crate::disk::{self, Kind, NUMBER_MAX, Name, Sealed, Write};
use crate::manifest::{Edit, ManifestState};
use crate::record;
use forrest_engine::Result;

/// Bytes of a piece with a checksum of its own.
pub(crate) const PIECE_BYTES: usize = 1 << 20;

/// What the bytes of a file are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) len: u64,
    pub(crate) whole: u128,
    pub(crate) pieces: Vec<u64>,
}

/// A file of the store in a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    /// Its name in the store.
    pub(crate) name: Name,
    /// The name of its copy.
    pub(crate) copy: Name,
    /// See [`Disk::mark`]; 0 and 0 if there is none.
    pub(crate) mark: (u64, u64),
    pub(crate) sums: Sums,
}

/// See the head of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) time: u64,
    pub(crate) store: [u64; 2],
    pub(crate) new_bytes: u64,
    pub(crate) files: Vec<Stored>,
    pub(crate) state: ManifestState,
}

/// The kinds of files in a backup, in the order of their numbers.
const KINDS: [fn(u64) -> Name; 4] = [Name::log, Name::remix, Name::table, Name::log];
/// The position there of a log that is kept for values in it: its copy is shared by backups, as those of tables.
const KEPT_LOG: usize = 3;

impl Description {
    /// The bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.sums.len).sum()
    }

    fn put(&self, out: &mut Vec<u8>) {
        for number in [self.time, self.store[0], self.store[1], self.new_bytes, self.files.len() as u64] {
            put_number(out, number);
        }
        for Stored { name, copy, mark, sums } in &self.files {
            let kind = KINDS.iter().position(|kind| kind(name.number) == *name).expect("a kind of a backup");
            let kind = if (name.kind, copy.kind) == (Kind::Log, Kind::Copy) { KEPT_LOG } else { kind };
            out.push(1 + kind as u8);
            [name.number, copy.number, sums.len].iter().for_each(|&number| put_number(out, number));
            out.extend_from_slice(&sums.whole.to_le_bytes());
            [mark.0, mark.1].iter().for_each(|&number| put_number(out, number));
            sums.pieces.iter().for_each(|piece| out.extend_from_slice(&piece.to_le_bytes()));
        }
        self.state.edits().for_each(|edit| edit.put(out));
    }

    fn take(parts: &mut Parts<'_>) -> Option<Description> {
        let number = |parts: &mut Parts<'_>| parts.number().filter(|&number| number <= NUMBER_MAX);
        let mut made = Description {
            time: parts.number()?,
            store: [parts.number()?, parts.number()?],
            new_bytes: parts.number()?,
            ..Description::default()
        };
        // No capacity is reserved for counts: the vectors grow with what is really there.
        for _ in 0..parts.number()? {
            let at = usize::from(parts.byte()?).checked_sub(1)?;
            let name = KINDS.get(at)?(number(parts)?);
            let copy = number(parts)?;
            let is_own = name.kind == Kind::Log && at != KEPT_LOG;
            let copy = if is_own { Name::log(copy) } else { Name::copy(copy) };
            let len = parts.number()?;
            let whole = u128::from_le_bytes(parts.take(16)?.try_into().ok()?);
            let mark = (parts.number()?, parts.number()?);
            let pieces = parts.take(len.div_ceil(PIECE_BYTES as u64).checked_mul(8)?)?;
            let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
            let pieces = pieces.chunks_exact(8).map(word).collect();
            made.files.push(Stored { name, copy, mark, sums: Sums { len, whole, pieces } });
        }
        while !parts.is_empty() {
            let edit = Edit::take(parts)?;
            made.state.apply(edit).then_some(())?;
        }
        Some(made)
    }

    /// Makes the file of the description. It is durable, and its name once the directory is synced.
    pub(crate) fn write(&self, disk: &Sealed, name: Name) -> Result<()> {
        let mut record = Vec::new();
        // If the directory is encrypted, so are the blocks of this file.
        record::begin(&mut record, record::HEADER as u64, None, false);
        self.put(&mut record);
        record::finish(&mut record, name, record::HEADER as u64, None);
        let mut bytes =
            record::header(name, record::BACKUP, [self.state.version().into(), 0, 0, 0], None).to_vec();
        bytes.append(&mut record);
        let file = disk::create(disk, name)?;
        disk::write_all(disk, &file, name, &mut Write { bytes, sync: true, ..Write::default() })
    }

    /// Reads a description that is complete.
    ///
    /// # Errors
    /// `Corrupt` if it is missing or damaged; `Unsupported` if it has another version; `Io`.
    pub(crate) fn read(disk: &Sealed, name: Name) -> Result<Description> {
        let file = disk::open_if_there(disk, name)?;
        let file = file.ok_or_else(|| disk::damaged(name, 0, "the description of the backup is missing"))?;
        let Some(fields) = record::fields_of(disk, &file, name)? else {
            return Err(disk::damaged(name, 0, "the header of the description of a backup is damaged"));
        };
        if fields[0] > record::MANIFEST.into() {
            let found = format_args!("{} with manifests of version {}", record::BACKUP, fields[0]);
            let known = format_args!("{} with manifests up to version {}", record::BACKUP, record::MANIFEST);
            return Err(disk::other_version(name, found, known));
        }
        let start = record::HEADER as u64;
        let mut made = None;
        let records = record::replay(disk, &file, name, start, |at, _, body| {
            let mut parts = Parts(body);
            let is_first = made.is_none();
            made = Description::take(&mut parts).filter(|_| is_first);
            match made {
                Some(_) => Ok(()),
                None => Err(disk::damaged(name, at, "a record with a valid checksum is malformed")),
            }
        })?;
        if records.end != disk::len(disk, &file, name)? {
            return Err(disk::damaged(name, records.end, "the description of a backup is damaged"));
        }
        made.ok_or_else(|| disk::damaged(name, start, "the description of a backup is damaged"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::simulated::Simulated;

    fn example() -> Description {
        let sums = Sums { len: 4096, whole: 0x0F0E_0D0C, pieces: vec![9] };
        let file = Stored { name: Name::table(7), copy: Name::copy(3), mark: (0, 0), sums };
        let state = ManifestState { next: 1, ..ManifestState::default() };
        Description { time: 1, store: [0, 0], new_bytes: 4096, files: vec![file], state }
    }

    #[test]
    fn the_example_is_what_it_says() {
        let mut bytes = Vec::new();
        example().put(&mut bytes);
        let mut expected = vec![1, 0, 0, 0x80, 0x20, 1, 3, 7, 3, 0x80, 0x20, 0x0C, 0x0D, 0x0E, 0x0F];
        expected.extend_from_slice(&[0; 12 + 2]);
        expected.extend_from_slice(&[9, 0, 0, 0, 0, 0, 0, 0]);
        // The floor is 0.
        expected.extend_from_slice(&[3, 1, 4, 0]);
        assert_eq!(bytes, expected);
        assert_eq!(Description::take(&mut Parts(&bytes)), Some(example()));
        for end in 0..bytes.len() - 4 {
            assert_eq!(Description::take(&mut Parts(&bytes[..end])), None, "{end}");
        }
    }

    #[test]
    fn a_log_that_is_kept_has_a_copy() {
        let mut is = example();
        is.files[0].name = Name::log(7);
        let mut own = is.clone();
        own.files[0].copy = Name::log(3);
        for (is, kind) in [(is, 4), (own, 1)] {
            let mut bytes = Vec::new();
            is.put(&mut bytes);
            assert_eq!((bytes[6], Description::take(&mut Parts(&bytes))), (kind, Some(is)));
        }
    }

    /// A later release that has other edits is asked for by name, and the backup is not damaged.
    #[test]
    fn edits_of_a_later_manifest_are_unsupported() {
        let name = Name::copy(5);
        let later = u64::from(record::MANIFEST) + 1;
        let bytes = record::header(name, record::BACKUP, [later, 0, 0, 0], None).to_vec();
        let error =
            Description::read(&Sealed::plain(Simulated::from_files([(name, bytes)])), name).unwrap_err();
        assert_eq!(error.kind(), forrest_engine::ErrorKind::Unsupported);
        assert!(error.to_string().contains(&later.to_string()), "{error}");
    }

    /// Each byte is covered by a checksum.
    #[test]
    fn a_damaged_description_is_refused() {
        let disk = Sealed::plain(Simulated::new());
        let name = Name::copy(5);
        example().write(&disk, name).expect("it is written");
        assert_eq!(Description::read(&disk, name).expect("it is read"), example());
        let genuine = disk.simulated().files().remove(0).1;
        for byte in 0..genuine.len() {
            let mut bytes = genuine.clone();
            bytes[byte] ^= 1 << (byte % 8);
            let disk = Sealed::plain(Simulated::from_files([(name, bytes)]));
            Description::read(&disk, name).expect_err("it is damaged");
        }
        for end in 0..genuine.len() {
            let disk = Sealed::plain(Simulated::from_files([(name, genuine[..end].to_vec())]));
            Description::read(&disk, name).expect_err("it is cut off");
        }
        let longer = Sealed::plain(Simulated::from_files([(name, [&genuine[..], &[0]].concat())]));
        Description::read(&longer, name).expect_err("it is longer");
    }
}
