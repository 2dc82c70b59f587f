//! The files of SOSD ("Benchmarking learned indexes", Marcus et al., 2020): a `u64` count, then as many keys of 64 or
//! of 32 bits, all little endian, as a rule sorted. There are no values.
//!
//! Here a number is a key of as many bytes, big endian, so that keys are ordered as the numbers are.

use super::input::Input;
use super::output::Output;
use super::pair::{Pair, Sink, Source};
use std::io::{self, Write};
use std::path::Path;

/// Reads a file.
pub(crate) struct Reader {
    input: Input,
    width: u64,
    pairs: u64,
    left: u64,
}

impl Reader {
    /// Begins to read; `width` is the bytes of a number.
    pub(crate) fn open(path: &Path, width: u64) -> io::Result<Self> {
        let mut input = Input::open(path)?;
        let pairs = input.u64("the number of keys")?;
        if pairs.checked_mul(width) != Some(input.left()) {
            let what =
                format!("the header states {pairs} keys of {width} bytes, but {} bytes follow", input.left());
            return Err(input.damaged(0, what));
        }
        Ok(Reader { input, width, pairs, left: pairs })
    }
}

impl Source for Reader {
    fn next(&mut self, pair: &mut Pair) -> io::Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        self.left -= 1;
        self.input.piece(self.width, "a key", &mut pair.key)?;
        pair.key.reverse();
        pair.value.clear();
        pair.valued = false;
        Ok(true)
    }

    fn at(&self) -> u64 {
        self.input.at()
    }

    fn claimed(&self) -> Option<u64> {
        Some(self.pairs)
    }
}

/// Writes a file.
pub(crate) struct Writer {
    out: Output,
    width: u64,
    pairs: u64,
}

impl Writer {
    /// Begins a file.
    pub(crate) fn create(path: &Path, width: u64) -> io::Result<Self> {
        let mut out = Output::create(path)?;
        out.write_all(&[0; 8])?;
        Ok(Writer { out, width, pairs: 0 })
    }
}

impl Sink for Writer {
    fn put(&mut self, pair: &Pair) -> io::Result<()> {
        if pair.key.len() as u64 != self.width {
            let (path, len) = (self.out.path().display(), pair.key.len());
            let what = format!(
                "{path}: key {} has {len} bytes; this format holds keys of {}",
                self.pairs, self.width
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let mut number = pair.key.clone();
        number.reverse();
        self.out.write_all(&number)?;
        self.pairs += 1;
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.out.finish(&self.pairs.to_le_bytes())
    }
}
