//! Facts about the content of a file of pairs.

use super::seen::Seen;
use super::{Pair, Reader};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::io;

/// Bytes of keys, and as many of values, of which entropy and compressibility are taken: the first of the file.
const SAMPLE_BYTES: usize = 4 << 20;
/// Bytes that are compressed at once.
const COMPRESS_BYTES: usize = 64 << 10;
/// Pairs that are shown, and how much of a key or value.
const SHOWN_PAIRS: usize = 5;
const SHOWN_BYTES: usize = 60;

/// The content of a file.
#[derive(Debug, Serialize)]
pub(crate) struct Inspected {
    /// Its format.
    pub(crate) format: &'static str,
    /// Its length, in bytes.
    pub(crate) file_bytes: u64,
    /// Number of pairs.
    pub(crate) pairs: u64,
    /// The keys.
    pub(crate) keys: Parts,
    /// The values; `None` where there are none.
    pub(crate) values: Option<Parts>,
    /// How the keys follow one another.
    pub(crate) order: Order,
    /// Pairs whose key an earlier one had; `None` if memory was too short to know.
    pub(crate) duplicates: Option<u64>,
    /// Keys with a zero byte in them: some structures cannot hold these.
    pub(crate) keys_with_nul: u64,
    /// What was checked, or passed over.
    pub(crate) remark: Option<String>,
    /// The first pairs, escaped and cut.
    pub(crate) first: Vec<Shown>,
}

/// Keys or values.
#[derive(Debug, Serialize)]
pub(crate) struct Parts {
    /// Bytes of all.
    pub(crate) bytes: u64,
    /// Lengths: least, mean, percentiles and most.
    pub(crate) lengths: Lengths,
    /// Bytes of the sample, from the beginning of the file.
    pub(crate) sample_bytes: usize,
    /// Entropy of the sample's bytes, each taken by itself, in bits (8: any byte is as frequent as another).
    pub(crate) entropy_bits: f64,
    /// How many times smaller LZ4 makes the sample, in blocks of 64 KiB.
    pub(crate) lz4_ratio: f64,
}

/// Lengths in bytes. Percentiles are right within a thousandth.
#[derive(Debug, Serialize)]
pub(crate) struct Lengths {
    pub(crate) min: u64,
    pub(crate) mean: f64,
    pub(crate) p50: u64,
    pub(crate) p90: u64,
    pub(crate) p99: u64,
    pub(crate) max: u64,
}

/// How the keys follow one another.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Order {
    /// Keys greater than the one before.
    pub(crate) ascending: u64,
    /// Keys that are the one before.
    pub(crate) equal: u64,
    /// Keys less than the one before.
    pub(crate) descending: u64,
}

/// A pair, escaped and cut.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    pub(crate) key: String,
    pub(crate) value: Option<String>,
}

impl Order {
    /// In words.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Order { ascending: 0, equal: 0, descending: 0 } => "of less than two keys",
            Order { equal: 0, descending: 0, .. } => "ascending, no key twice",
            Order { descending: 0, .. } => "ascending",
            Order { ascending: 0, .. } => "descending",
            _ => "not sorted",
        }
    }
}

/// The measures of keys or values, being taken.
struct Taken {
    lengths: Histogram<u64>,
    bytes: u64,
    min: u64,
    max: u64,
    sample: Vec<u8>,
}

impl Taken {
    fn new() -> io::Result<Self> {
        let lengths = Histogram::new(3).map_err(io::Error::other)?;
        Ok(Taken { lengths, bytes: 0, min: u64::MAX, max: 0, sample: Vec::new() })
    }

    fn note(&mut self, part: &[u8]) -> io::Result<()> {
        let len = part.len() as u64;
        self.lengths.record(len).map_err(io::Error::other)?;
        self.bytes += len;
        (self.min, self.max) = (self.min.min(len), self.max.max(len));
        let room = SAMPLE_BYTES - self.sample.len();
        self.sample.extend_from_slice(&part[..part.len().min(room)]);
        Ok(())
    }

    fn parts(&self) -> Parts {
        let at = |percent| self.lengths.value_at_percentile(percent).clamp(self.min.min(self.max), self.max);
        let lengths = Lengths {
            min: self.min.min(self.max),
            mean: self.bytes as f64 / self.lengths.len().max(1) as f64,
            p50: at(50.0),
            p90: at(90.0),
            p99: at(99.0),
            max: self.max,
        };
        Parts {
            bytes: self.bytes,
            lengths,
            sample_bytes: self.sample.len(),
            entropy_bits: entropy_bits(&self.sample),
            lz4_ratio: lz4_ratio(&self.sample),
        }
    }
}

/// Entropy of bytes, each taken by itself, in bits.
fn entropy_bits(bytes: &[u8]) -> f64 {
    let mut counts = [0u64; 256];
    bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let share = |count: &u64| *count as f64 / bytes.len() as f64;
    counts.iter().filter(|count| **count > 0).map(|count| -share(count) * share(count).log2()).sum::<f64>()
        + 0.0
}

/// How many times smaller LZ4 makes it.
pub(crate) fn lz4_ratio(bytes: &[u8]) -> f64 {
    let compressed: usize =
        bytes.chunks(COMPRESS_BYTES).map(|chunk| lz4_flex::block::compress(chunk).len()).sum();
    if compressed == 0 { 1.0 } else { bytes.len() as f64 / compressed as f64 }
}

fn shown(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(SHOWN_BYTES)];
    let more = if cut.len() < bytes.len() { "..." } else { "" };
    format!("{}{more}", cut.escape_ascii())
}

/// Reads a file to its end and returns facts about it. `see` receives the progress in percent.
pub(crate) fn inspect(reader: &mut Reader, see: &mut dyn FnMut(u64)) -> io::Result<Inspected> {
    let (mut pair, mut seen, mut last) = (Pair::default(), Seen::default(), Vec::new());
    let (mut keys, mut values) = (Taken::new()?, Taken::new()?);
    let (mut order, mut keys_with_nul, mut first) = (Order::default(), 0, Vec::new());
    while reader.next(&mut pair)? {
        see(reader.percent());
        keys.note(&pair.key)?;
        if pair.valued {
            values.note(&pair.value)?;
        }
        if reader.pairs() > 1 {
            match pair.key.cmp(&last) {
                std::cmp::Ordering::Greater => order.ascending += 1,
                std::cmp::Ordering::Equal => order.equal += 1,
                std::cmp::Ordering::Less => order.descending += 1,
            }
        }
        seen.note(&pair.key);
        keys_with_nul += u64::from(pair.key.contains(&0));
        if first.len() < SHOWN_PAIRS {
            first.push(Shown { key: shown(&pair.key), value: pair.valued.then(|| shown(&pair.value)) });
        }
        std::mem::swap(&mut last, &mut pair.key);
    }
    Ok(Inspected {
        format: reader.format.name(),
        file_bytes: reader.file_bytes,
        pairs: reader.pairs(),
        keys: keys.parts(),
        values: reader.valued().then(|| values.parts()),
        order,
        duplicates: seen.duplicates(),
        keys_with_nul,
        remark: reader.remark(),
        first,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_and_compressibility_are_those_of_the_bytes() {
        assert_eq!((entropy_bits(b""), lz4_ratio(b"")), (0.0, 1.0));
        assert_eq!(entropy_bits(&[7; 100]), 0.0);
        let all: Vec<u8> = (0..=255).collect();
        assert!((entropy_bits(&all) - 8.0).abs() < 1e-9);
        assert!((entropy_bits(b"abababab") - 1.0).abs() < 1e-9);
        assert!(lz4_ratio(&[7; 100_000]) > 50.0 && lz4_ratio(&all) < 1.0);
    }
}
