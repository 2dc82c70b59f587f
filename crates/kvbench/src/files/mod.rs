//! Data sets as files: formats, their detection, conversion, generation, inspection, and loading one into memory.
//!
//! Guarantees:
//!
//! - Memory does not grow with the size of a file, except for the fingerprints that detect duplicate keys, and for a
//!   set that is loaded as a whole.
//! - Every length in a file is checked against the length of the file.
//! - Errors name the file, the offset and the reason.
//! - A file that is written gets its name only when it is complete.

mod ancestor;
mod container;
mod convert;
mod csv;
mod generate;
mod input;
mod inspect;
mod jsonl;
mod load;
mod output;
mod pair;
mod seen;
mod sosd;
#[cfg(test)]
pub(crate) mod testing;
mod text;
mod ycsb;

pub(crate) use convert::convert;
pub(crate) use generate::{Generator, Keys, Values, generate, key_lengths};
pub(crate) use inspect::{Inspected, inspect};
pub(crate) use load::load;
pub(crate) use output::Output;
pub(crate) use pair::{Pair, Sink};

use crate::errors::told;
use input::Input;
use pair::Source;
use std::io;
use std::path::{Path, PathBuf};

/// What a file of pairs may be.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    clap::ValueEnum,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Format {
    /// kvbench's container: checksums, 64 bits (.kvb)
    Kvb,
    /// Words between white space (.txt); written as lines
    Text,
    /// The ancestor's words: u32 count, then u32 size and bytes of each
    BinText,
    /// What the ancestor's convert-text1 makes: 64-bit count and key bytes before
    BinText1,
    /// The ancestor's pairs of text: u32 count, then size, key, size, value
    BinTextKv,
    /// The same of any bytes
    BinSliceKv,
    /// Comma-separated values: key, or key,value (.csv)
    Csv,
    /// {"key": "...", "value": "..."} a line (.jsonl)
    Jsonl,
    /// SOSD: u64 count, then 64-bit numbers (..._uint64)
    SosdU64,
    /// SOSD: u64 count, then 32-bit numbers (..._uint32)
    SosdU32,
    /// Loading as YCSB's basic binding prints it; only read
    Ycsb,
}

impl Format {
    /// The name on the command line and in records.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }

    /// Whether it is one of the ancestor's.
    pub(crate) fn layout(self) -> Option<ancestor::Layout> {
        match self {
            Format::BinText => Some(ancestor::TEXT),
            Format::BinText1 => Some(ancestor::TEXT1),
            Format::BinTextKv | Format::BinSliceKv => Some(ancestor::KV),
            _ => None,
        }
    }

    /// Whether it has a place for values.
    pub(crate) fn holds_values(self) -> bool {
        matches!(
            self,
            Format::Kvb | Format::BinTextKv | Format::BinSliceKv | Format::Csv | Format::Jsonl | Format::Ycsb
        )
    }

    /// Whether damage in it is found by checksums.
    pub(crate) fn is_checked(self) -> bool {
        self == Format::Kvb
    }

    /// The format that a file's name speaks of.
    pub(crate) fn of_name(path: &Path) -> Option<Format> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("kvb") => return Some(Format::Kvb),
            Some("txt") => return Some(Format::Text),
            Some("csv") => return Some(Format::Csv),
            Some("jsonl" | "ndjson") => return Some(Format::Jsonl),
            Some("ycsb") => return Some(Format::Ycsb),
            _ => {}
        }
        let stem = path.file_stem()?.to_str()?;
        let ends = [("_uint64", Format::SosdU64), ("_uint32", Format::SosdU32)];
        ends.iter().find(|(end, _)| stem.ends_with(end)).map(|(_, format)| *format)
    }

    /// The format of a file: what its first bytes say, else its name, else what its lengths lead to.
    pub(crate) fn of_file(path: &Path) -> io::Result<Format> {
        let mut input = Input::open(path)?;
        let beginning = input.peek()?.to_vec();
        if beginning.starts_with(&container::MAGIC) {
            return Ok(Format::Kvb);
        }
        if let Some(format) = Format::of_name(path) {
            return Ok(format);
        }
        match of_lengths(&mut input)?[..] {
            [format] => return Ok(format),
            [] => {}
            _ => return Err(told(path.display(), &unknown("could be of several formats"))),
        }
        // Text has no NUL; a binary file has one in its first count.
        if !beginning.is_empty() && !beginning.contains(&0) {
            let begins =
                [(&b"{\"key"[..], Format::Jsonl), (b"key,value", Format::Csv), (ycsb::INSERT, Format::Ycsb)];
            let format = begins.iter().find(|(text, _)| beginning.starts_with(text));
            return Ok(format.map_or(Format::Text, |(_, format)| *format));
        }
        Err(told(path.display(), &unknown("is of no format that is known")))
    }
}

fn unknown(what: &str) -> io::Error {
    let names: Vec<_> =
        <Format as clap::ValueEnum>::value_variants().iter().map(|format| format.name()).collect();
    let what = format!("{what}; if it is one of {}, say which", names.join(", "));
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// The formats of numbers and the ancestor's that a file's lengths lead through to its very end.
fn of_lengths(input: &mut Input) -> io::Result<Vec<Format>> {
    let mut fit = Vec::new();
    if input.len() > 8 {
        let said = input.u64("")?;
        let width = |width| said.checked_mul(width) == Some(input.left());
        fit.extend(width(8).then_some(Format::SosdU64));
        fit.extend(width(4).then_some(Format::SosdU32));
    }
    for wide in [false, true] {
        input.seek(0)?;
        let head = if wide { 16 } else { 4 };
        if input.len() < head {
            continue;
        }
        let said = if wide { input.u64("")? } else { u64::from(input.u32("")?) };
        let said_bytes = if wide { input.u64("")? } else { 0 };
        let (mut pieces, mut bytes) = (0, 0);
        let whole = loop {
            if input.left() == 0 {
                break true;
            }
            if input.left() < 4 || pieces / 2 > said {
                break false;
            }
            let size = u64::from(input.u32("")?);
            if size > input.left() {
                break false;
            }
            input.skip(size)?;
            (pieces, bytes) = (pieces + 1, bytes + size);
        };
        match (whole, wide) {
            (true, true) if pieces == said && bytes == said_bytes => fit.push(Format::BinText1),
            (true, false) if pieces == said => fit.push(Format::BinText),
            (true, false) if said.checked_mul(2) == Some(pieces) => fit.push(Format::BinTextKv),
            _ => {}
        }
    }
    Ok(fit)
}

/// A file of pairs being read.
pub(crate) struct Reader {
    path: PathBuf,
    /// Its format.
    pub(crate) format: Format,
    /// Its length, in bytes.
    pub(crate) file_bytes: u64,
    source: Box<dyn Source>,
    pairs: u64,
    valued: bool,
}

impl Reader {
    /// Begins to read a file; without a format, it is found out. `terminated` takes a NUL off each key of the
    /// ancestor's formats.
    pub(crate) fn open(path: &Path, format: Option<Format>, terminated: bool) -> io::Result<Reader> {
        let format = format.map_or_else(|| Format::of_file(path), Ok)?;
        let source: Box<dyn Source> = match (format, format.layout()) {
            (_, Some(layout)) => Box::new(ancestor::Reader::open(path, layout, terminated)?),
            (Format::Kvb, _) => Box::new(container::Reader::open(path)?),
            (Format::Csv, _) => Box::new(csv::Reader::open(path)?),
            (Format::Jsonl, _) => Box::new(jsonl::Reader::open(path)?),
            (Format::SosdU64, _) => Box::new(sosd::Reader::open(path, 8)?),
            (Format::SosdU32, _) => Box::new(sosd::Reader::open(path, 4)?),
            (Format::Ycsb, _) => Box::new(ycsb::Reader::open(path)?),
            _ => Box::new(text::Reader::open(path)?),
        };
        let file_bytes = std::fs::metadata(path).map_err(|error| told(path.display(), &error))?.len();
        Ok(Reader { path: path.to_owned(), format, file_bytes, source, pairs: 0, valued: false })
    }

    /// Its name, as it was given.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the next pair of it; false at the end.
    pub(crate) fn next(&mut self, pair: &mut Pair) -> io::Result<bool> {
        let at = self.source.at();
        if !self.source.next(pair)? {
            return Ok(false);
        }
        if self.pairs > 0 && pair.valued != self.valued {
            let has = |valued| if valued { "a value" } else { "none" };
            let what = format!(
                "pair {} has {}, those before have {}",
                self.pairs,
                has(pair.valued),
                has(self.valued)
            );
            return Err(input::damaged(&self.path, at, what));
        }
        self.valued = pair.valued;
        self.pairs += 1;
        Ok(true)
    }

    /// How much of the file has been read, in percent.
    pub(crate) fn percent(&self) -> u64 {
        (self.source.at() as f64 / self.file_bytes.max(1) as f64 * 100.0) as u64
    }

    /// Pairs read so far.
    pub(crate) fn pairs(&self) -> u64 {
        self.pairs
    }

    /// Whether the pairs read so far have values.
    pub(crate) fn valued(&self) -> bool {
        self.valued
    }

    /// Number of pairs that the file states in advance, if it does; not verified until all pairs are read.
    pub(crate) fn claimed(&self) -> Option<u64> {
        self.source.claimed()
    }

    /// A remark to print at the end about what was checked or skipped.
    pub(crate) fn remark(&self) -> Option<String> {
        self.source.remark()
    }
}

/// Begins a file of a format. `terminated` ends each key of the ancestor's formats with a NUL. `pairs` is the number of
/// pairs, if it is known: a number that the format cannot store is refused before anything is written.
pub(crate) fn create(
    path: &Path,
    format: Format,
    terminated: bool,
    pairs: Option<u64>,
) -> io::Result<Box<dyn Sink>> {
    Ok(match (format, format.layout()) {
        (_, Some(layout)) => {
            layout.check_count(path, pairs.unwrap_or(0))?;
            Box::new(ancestor::Writer::create(path, layout, terminated)?)
        }
        (Format::Kvb, _) => Box::new(container::Writer::create(path)?),
        (Format::Csv, _) => Box::new(csv::Writer::create(path)?),
        (Format::Jsonl, _) => Box::new(jsonl::Writer::create(path)?),
        (Format::SosdU64, _) => Box::new(sosd::Writer::create(path, 8)?),
        (Format::SosdU32, _) => Box::new(sosd::Writer::create(path, 4)?),
        (Format::Ycsb, _) => {
            let what = "traces of YCSB are read and not written";
            return Err(told(path.display(), &io::Error::new(io::ErrorKind::Unsupported, what)));
        }
        _ => Box::new(text::Writer::create(path)?),
    })
}

#[cfg(test)]
#[path = "formats_tests.rs"]
mod tests;
