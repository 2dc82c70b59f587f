//! What the tests of the formats share.

use super::pair::{Pair, Source};
use std::io;
use std::path::PathBuf;
use tempfile::TempDir;

/// A file of this name in a directory that goes away.
pub(crate) fn scratch(name: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    (directory, path)
}

/// A pair of text.
pub(crate) fn pair(key: &str, value: Option<&str>) -> Pair {
    let bytes = value.unwrap_or_default().as_bytes().to_vec();
    Pair { key: key.as_bytes().to_vec(), value: bytes, valued: value.is_some() }
}

/// All pairs of a file.
pub(crate) fn read_all(source: &mut dyn Source) -> io::Result<Vec<Pair>> {
    let (mut pairs, mut pair) = (Vec::new(), Pair::default());
    while source.next(&mut pair)? {
        pairs.push(pair.clone());
    }
    Ok(pairs)
}
