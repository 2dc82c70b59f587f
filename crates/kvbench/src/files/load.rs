//! All pairs of a file into memory, before any clock starts.

use super::{Pair, Reader};
use crate::data::{Set, SetBuilder};
use crate::errors::told;
use crate::machine;
use crate::sizes;
use forrest_machine::pages::Pages;
use std::io;

/// Addresses for each byte of a file. A record takes nine bytes more than its key and value, and a pair one byte of a
/// file at least; no format holds a key or a value in fewer bytes than it has, but numbers of 32 bits.
const ROOM: u64 = 16;
/// Addresses beside them.
const ROOM_BYTES: u64 = 16 << 20;
/// Pairs between two looks at what memory is left.
const LOOK_PAIRS: u64 = 1 << 16;

/// Loads a file, as numbers if `are_numbers`. It ends with an error when less than `margin_bytes` of memory would stay
/// free.
pub(crate) fn load(
    reader: &mut Reader,
    pages: Pages,
    are_numbers: bool,
    margin_bytes: u64,
) -> io::Result<Set> {
    let path = reader.path().to_owned();
    let named = |error: io::Error| told(path.display(), &error);
    let room = usize::try_from(reader.file_bytes.saturating_mul(ROOM).saturating_add(ROOM_BYTES));
    let mut set = SetBuilder::new(room.unwrap_or(usize::MAX), pages, are_numbers).map_err(named)?;
    let mut pair = Pair::default();
    while reader.next(&mut pair)? {
        set.push(&pair.key, pair.valued.then_some(&pair.value)).map_err(named)?;
        if reader.pairs().is_multiple_of(LOOK_PAIRS)
            && let Some(free) = machine::available_bytes().filter(|free| *free < margin_bytes)
        {
            let (in_it, left, free) = (reader.pairs(), sizes::text(free), sizes::text(margin_bytes));
            let what = format!("no room: {in_it} pairs loaded, {left} of memory left, {free} must stay free");
            return Err(named(io::Error::new(io::ErrorKind::OutOfMemory, what)));
        }
    }
    set.finish().map_err(named)
}
