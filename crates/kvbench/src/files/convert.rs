//! All pairs of one file into another.

use super::seen::Seen;
use super::{Pair, Reader, Sink};
use std::io;

/// What a conversion did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Converted {
    /// Pairs read.
    pub(crate) read: u64,
    /// Pairs written.
    pub(crate) written: u64,
    /// Pairs whose key an earlier one had; `None` if memory was too short to know.
    pub(crate) duplicates: Option<u64>,
    /// Whether the pairs had values.
    pub(crate) valued: bool,
}

/// Puts all pairs of a file into another, which is still to be completed; with `unique`, only the first of each key.
/// `see` is shown what was read of each pair and how far the file was read, in percent.
pub(crate) fn convert(
    reader: &mut Reader,
    sink: &mut dyn Sink,
    unique: bool,
    see: &mut dyn FnMut(&Pair, u64) -> io::Result<()>,
) -> io::Result<Converted> {
    let (mut pair, mut seen, mut written) = (Pair::default(), Seen::default(), 0);
    while reader.next(&mut pair)? {
        see(&pair, reader.percent())?;
        let again = seen.note(&pair.key);
        if unique && seen.duplicates().is_none() {
            let what = format!(
                "{}: memory is too short to tell which of its keys are there twice; --unique needs some 40 bytes a key",
                reader.path().display()
            );
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, what));
        }
        if !(unique && again) {
            sink.put(&pair)?;
            written += 1;
        }
    }
    Ok(Converted { read: reader.pairs(), written, duplicates: seen.duplicates(), valued: reader.valued() })
}
