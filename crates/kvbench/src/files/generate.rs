//! Made pairs: keys of several shapes, values of several sizes and as compressible as asked for.
//!
//! Pair number `i` is a pure function of the seed and `i`, and no two numbers have the same key, because what makes
//! them can be undone: nothing is kept, whatever the number of pairs. The order is random for every shape.

use super::{Pair, Sink};
use crate::data::{Permutation, Random, mix};
use crate::sizes;
use std::fmt::Write as _;
use std::io;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Shapes of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Keys {
    /// Random UUIDs as text, 36 bytes
    Uuid,
    /// Words that can be pronounced, 2 letters a syllable; the shorter the fewer there are
    Words,
    /// Addresses of pages: a few hosts have most of them
    Urls,
    /// Paths of a tree with 20 files and 30 directories in each directory
    Paths,
    /// The numbers below n, 8 bytes big endian
    Dense,
    /// Random 64-bit numbers, 8 bytes big endian
    Sparse,
    /// Stretches of 1,000 numbers that follow one another, 8 bytes big endian
    Clustered,
    /// Letters and digits, with lengths by Zipf's law: half as many of twice the excess over the least
    Zipf,
}

/// Lengths of values, in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Values {
    /// No values.
    None,
    /// All of one length.
    Fixed(u64),
    /// Any length between two, each as often.
    Uniform(u64, u64),
    /// Most short and a few long: the logarithm is normally distributed.
    LogNormal {
        /// Mean of the lengths.
        mean: f64,
        /// Deviation of the logarithm.
        sigma: f64,
    },
}

/// Longest value that can be asked for: 256 MiB.
const VALUE_BYTES_MAX: u64 = 256 << 20;
/// Longest value by chance: 16 MiB.
const CHANCE_BYTES_MAX: f64 = (16 << 20) as f64;
/// Least length of a key of letters and digits: a 64-bit number takes 11.
const ZIPF_BYTES_MIN: u64 = 11;
/// Greatest such length: what all structures here take.
const ZIPF_BYTES_MAX: u64 = 65_535;

impl FromStr for Values {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is none of none, fixed:BYTES, uniform:LEAST-MOST and lognormal:MEAN,SIGMA (256M at most)"
            )
        };
        let size =
            |text: &str| sizes::bytes(text).ok().filter(|size| *size <= VALUE_BYTES_MAX).ok_or_else(wrong);
        match text.split_once(':') {
            None if text == "none" => Ok(Values::None),
            Some(("fixed", len)) => size(len).map(Values::Fixed),
            Some(("uniform", lens)) => {
                let (least, most) = lens.split_once('-').ok_or_else(wrong)?;
                let (least, most) = (size(least)?, size(most)?);
                if least <= most { Ok(Values::Uniform(least, most)) } else { Err(wrong()) }
            }
            Some(("lognormal", shape)) => {
                let (mean, sigma) = shape.split_once(',').ok_or_else(wrong)?;
                let sigma =
                    sigma.parse().ok().filter(|sigma| (0.0..=10.0).contains(sigma)).ok_or_else(wrong)?;
                let mean = size(mean)?;
                if mean > 0 { Ok(Values::LogNormal { mean: mean as f64, sigma }) } else { Err(wrong()) }
            }
            _ => Err(wrong()),
        }
    }
}

/// Reads the least and the greatest length of a Zipf key.
pub(crate) fn key_lengths(text: &str) -> Result<RangeInclusive<u64>, String> {
    let wrong = || format!("{text:?} is no LEAST-MOST between {ZIPF_BYTES_MIN} and {ZIPF_BYTES_MAX}");
    let (least, most) = text.split_once('-').ok_or_else(wrong)?;
    let (least, most) = (sizes::bytes(least)?, sizes::bytes(most)?);
    if ZIPF_BYTES_MIN <= least && least <= most && most <= ZIPF_BYTES_MAX {
        Ok(least..=most)
    } else {
        Err(wrong())
    }
}

/// 0 to `end`, exclusive, `k` about 1/(k+1) times as often as 0.
fn zipf(random: &mut Random, end: u64) -> u64 {
    let number = ((end as f64 + 1.0).ln() * (1.0 - random.share())).exp() as u64;
    number.clamp(1, end.max(1)) - 1
}

/// Makes pairs by number.
pub(crate) struct Generator {
    keys: Keys,
    key_lengths: RangeInclusive<u64>,
    values: Values,
    ratio: f64,
    pairs: u64,
    seed: u64,
    order: Permutation,
    clusters: Permutation,
}

/// Numbers of a stretch of [`Keys::Clustered`].
const CLUSTER: u64 = 1000;
/// Bits of a stretch's number; its 10 others are for the number within.
const CLUSTER_BITS: u32 = 54;

/// Appends the word of a number; no two numbers have the same. Numbers to the base of the syllables, without a zero, so
/// that no word is another one with something in front.
fn word(mut number: u64, out: &mut Vec<u8>) {
    const CONSONANTS: &[u8; 20] = b"tnrslkmdpgbhvfjwzycx";
    const VOWELS: &[u8; 5] = b"aeiou";
    loop {
        let syllable = (number % 100) as usize;
        out.extend_from_slice(&[CONSONANTS[syllable / 5], VOWELS[syllable % 5]]);
        number /= 100;
        if number == 0 {
            return;
        }
        number -= 1;
    }
}

fn alphanumeric(number: u64) -> u8 {
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[(number % 62) as usize]
}

impl Generator {
    /// The data set of this many pairs. Values are compressed about `ratio` times, if they have 100 bytes or more; 1 is
    /// random bytes.
    pub(crate) fn new(
        keys: Keys,
        key_lengths: RangeInclusive<u64>,
        values: Values,
        ratio: f64,
        pairs: u64,
        seed: u64,
    ) -> Self {
        let order = Permutation::new(pairs, seed);
        let clusters = Permutation::new(1 << CLUSTER_BITS, seed);
        Generator { keys, key_lengths, values, ratio, pairs, seed: mix(seed), order, clusters }
    }

    /// The number of pairs.
    pub(crate) fn len(&self) -> u64 {
        self.pairs
    }

    /// Mean bytes of a key and its value, of the first ones.
    pub(crate) fn mean_bytes(&self) -> f64 {
        let (mut pair, sample) = (Pair::default(), self.pairs.min(1000));
        let bytes = (0..sample).map(|number| {
            self.pair(number, &mut pair);
            pair.key.len() + pair.value.len()
        });
        bytes.sum::<usize>() as f64 / sample.max(1) as f64
    }

    /// Makes pair `number` of `pair`.
    pub(crate) fn pair(&self, number: u64, pair: &mut Pair) {
        pair.key.clear();
        self.push_key(number, &mut pair.key);
        pair.value.clear();
        pair.valued = self.values != Values::None;
        if pair.valued {
            let mut random = Random::new(mix(self.seed ^ mix(number)) ^ 1);
            let len = self.value_len(&mut random);
            pair.value.resize(len, 0);
            let unique = ((len as f64 / self.ratio).ceil() as usize).min(len);
            random.fill(&mut pair.value[..unique]);
        }
    }

    fn value_len(&self, random: &mut Random) -> usize {
        match self.values {
            Values::None => 0,
            Values::Fixed(len) => len as usize,
            Values::Uniform(least, most) => (least + random.below(most - least + 1)) as usize,
            Values::LogNormal { mean, sigma } => {
                // Box and Muller's way to a normal distribution.
                let normal =
                    (-2.0 * random.share().ln()).sqrt() * (std::f64::consts::TAU * random.share()).cos();
                let len = (mean.ln() - sigma * sigma / 2.0 + sigma * normal).exp();
                len.round().min(CHANCE_BYTES_MAX) as usize
            }
        }
    }

    fn push_key(&self, number: u64, key: &mut Vec<u8>) {
        let (unique, at) = (mix(number ^ self.seed), self.order.apply(number));
        let mut random = Random::new(mix(unique));
        match self.keys {
            Keys::Dense => key.extend_from_slice(&at.to_be_bytes()),
            Keys::Sparse => key.extend_from_slice(&unique.to_be_bytes()),
            Keys::Clustered => {
                let base = self.clusters.apply(at / CLUSTER) << (u64::BITS - CLUSTER_BITS);
                key.extend_from_slice(&(base | (at % CLUSTER)).to_be_bytes());
            }
            Keys::Words => word(at, key),
            Keys::Uuid => push_uuid(unique, random.next(), key),
            Keys::Urls => {
                key.extend_from_slice(b"https://www.");
                let host = zipf(&mut random, 10_000);
                word(1000 + host, key);
                key.extend_from_slice(if host.is_multiple_of(3) { b".org/" } else { b".com/" });
                word(100 + zipf(&mut random, 50), key);
                key.push(b'/');
                word(100 + zipf(&mut random, 5000), key);
                // The only hyphen starts the part that makes the key unique.
                key.push(b'-');
                word(at, key);
            }
            Keys::Paths => push_path(at, key),
            Keys::Zipf => {
                let (least, most) = (*self.key_lengths.start(), *self.key_lengths.end());
                let len = least + zipf(&mut random, most - least + 1);
                let mut rest = unique;
                for _ in 0..ZIPF_BYTES_MIN {
                    key.push(alphanumeric(rest));
                    rest /= 62;
                }
                (ZIPF_BYTES_MIN..len).for_each(|_| key.push(alphanumeric(random.below(62))));
            }
        }
    }
}

/// A UUID of version 4 whose 122 bits have a number of 64 in them, and 58 others.
fn push_uuid(unique: u64, other: u64, key: &mut Vec<u8>) {
    let bits = u128::from(unique) << 58 | u128::from(other >> 6);
    let (high, middle, low) = (bits >> 74, bits >> 62 & 0xfff, bits & ((1 << 62) - 1));
    let number = high << 80 | 4 << 76 | middle << 64 | 0b10 << 62 | low;
    let mut text = String::with_capacity(36);
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        number >> 96,
        number >> 80 & 0xffff,
        number >> 64 & 0xffff,
        number >> 48 & 0xffff,
        number & 0xffff_ffff_ffff
    );
    key.extend_from_slice(text.as_bytes());
}

/// The path of a file: its directory's number to the base of 30, without a zero, then its number in there.
fn push_path(at: u64, key: &mut Vec<u8>) {
    const FILES: u64 = 20;
    const DIRECTORIES: u64 = 30;
    key.extend_from_slice(b"/srv");
    let (mut directory, mut depth) = (at / FILES, 0);
    while directory > 0 {
        directory -= 1;
        key.push(b'/');
        word(100 + 7 * (directory % DIRECTORIES) + 300 * depth, key);
        (directory, depth) = (directory / DIRECTORIES, depth + 1);
    }
    key.push(b'/');
    word(mix(at / FILES) % 10_000, key);
    let file = at % FILES;
    key.extend_from_slice(&[b'-', b'0' + (file / 10) as u8, b'0' + (file % 10) as u8]);
    key.extend_from_slice([&b".txt"[..], b".rs", b".jpeg", b".html"][(file % 4) as usize]);
}

/// Writes all pairs to a file; the caller completes it. `see` receives the progress in percent.
pub(crate) fn generate(
    generator: &Generator,
    sink: &mut dyn Sink,
    see: &mut dyn FnMut(u64),
) -> io::Result<()> {
    let mut pair = Pair::default();
    for number in 0..generator.len() {
        generator.pair(number, &mut pair);
        sink.put(&pair)?;
        see((number as f64 / generator.len() as f64 * 100.0) as u64);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::inspect::lz4_ratio;
    use super::*;
    use clap::ValueEnum;
    use std::collections::HashSet;

    fn pairs(keys: Keys, values: &str, ratio: f64, pairs: u64, seed: u64) -> Vec<Pair> {
        let generator = Generator::new(keys, 12..=200, values.parse().unwrap(), ratio, pairs, seed);
        let mut pair = Pair::default();
        let made = (0..pairs).map(|number| {
            generator.pair(number, &mut pair);
            pair.clone()
        });
        made.collect()
    }

    #[test]
    fn keys_are_distinct_and_decided_by_the_seed() {
        for &keys in Keys::value_variants() {
            let made = pairs(keys, "none", 1.0, 6000, 7);
            let distinct: HashSet<_> = made.iter().map(|pair| &pair.key).collect();
            assert_eq!(distinct.len(), made.len(), "{keys:?}");
            let again = pairs(keys, "none", 1.0, 6000, 7);
            assert!(made == again && pairs(keys, "none", 1.0, 6000, 8) != made, "{keys:?}");
            assert!(made.windows(2).any(|two| two[0].key > two[1].key), "{keys:?}");
            let number = matches!(keys, Keys::Dense | Keys::Sparse | Keys::Clustered);
            for pair in &made {
                assert!(if number {
                    pair.key.len() == 8
                } else {
                    pair.key.is_ascii() && !pair.key.contains(&0)
                });
            }
        }
    }

    #[test]
    fn keys_have_their_shapes() {
        let key =
            |keys, at: usize| String::from_utf8(pairs(keys, "none", 1.0, 1000, 1)[at].key.clone()).unwrap();
        let uuid = key(Keys::Uuid, 3);
        assert!(uuid.len() == 36 && uuid[14..].starts_with('4') && "89ab".contains(&uuid[19..20]), "{uuid}");
        assert!(key(Keys::Urls, 3).starts_with("https://www.") && key(Keys::Paths, 3).starts_with("/srv/"));
        let dense: HashSet<_> =
            pairs(Keys::Dense, "none", 1.0, 1000, 1).into_iter().map(|pair| pair.key).collect();
        assert!((0..1000u64).all(|number| dense.contains(&number.to_be_bytes()[..])));
        let lens: Vec<_> =
            pairs(Keys::Zipf, "none", 1.0, 10_000, 1).iter().map(|pair| pair.key.len()).collect();
        assert!(lens.iter().all(|len| (12..=200).contains(len)));
        let count = |range: RangeInclusive<usize>| lens.iter().filter(|len| range.contains(len)).count();
        assert!(count(12..=12) > 1000 && count(12..=30) > 2 * count(100..=200) && count(190..=200) > 20);
        let mut clustered: Vec<_> =
            pairs(Keys::Clustered, "none", 1.0, 5000, 1).into_iter().map(|pair| pair.key).collect();
        clustered.sort();
        let number = |key: &Vec<u8>| u64::from_be_bytes(key[..].try_into().unwrap());
        let steps = clustered.windows(2).filter(|two| number(&two[1]) - number(&two[0]) == 1).count();
        assert_eq!(steps, 5000 - 5);
    }

    #[test]
    fn words_of_far_numbers_are_distinct() {
        let numbers = (0..40_000).chain((1 << 40)..(1 << 40) + 1000).chain([u64::MAX]);
        let words: HashSet<_> = numbers
            .map(|number| {
                let mut text = Vec::new();
                word(number, &mut text);
                text
            })
            .collect();
        assert_eq!(words.len(), 41_001);
    }

    #[test]
    fn values_have_the_lengths_asked_for() {
        let lens = |values: &str| -> Vec<usize> {
            pairs(Keys::Dense, values, 1.0, 20_000, 3).iter().map(|pair| pair.value.len()).collect()
        };
        assert!(
            !pairs(Keys::Dense, "none", 1.0, 2, 3)[0].valued
                && pairs(Keys::Dense, "fixed:0", 1.0, 2, 3)[0].valued
        );
        assert!(lens("fixed:1K").iter().all(|len| *len == 1024));
        let mean = |lens: &[usize]| lens.iter().sum::<usize>() as f64 / lens.len() as f64;
        let uniform = lens("uniform:10-20");
        assert_eq!((uniform.iter().min(), uniform.iter().max()), (Some(&10), Some(&20)));
        assert!((mean(&uniform) - 15.0).abs() < 0.2);
        let normal = lens("lognormal:100,0.5");
        assert!((mean(&normal) - 100.0).abs() < 3.0 && normal.iter().max() > Some(&400), "{}", mean(&normal));
        for wrong in [
            "",
            "fixed",
            "fixed:x",
            "fixed:1T",
            "uniform:20-10",
            "uniform:5",
            "lognormal:0,1",
            "lognormal:9",
            "lognormal:9,-1",
        ] {
            assert!(wrong.parse::<Values>().is_err(), "{wrong}");
        }
        assert!(
            key_lengths("11-11").is_ok() && key_lengths("10-20").is_err() && key_lengths("20-12").is_err()
        );
    }

    #[test]
    fn values_are_as_compressible_as_asked_for() {
        for values in ["fixed:300", "fixed:5000", "lognormal:1K,0.5"] {
            for ratio in [1.0, 1.5, 2.0, 4.0] {
                let all: Vec<u8> = pairs(Keys::Dense, values, ratio, 60, 3)
                    .into_iter()
                    .flat_map(|pair| pair.value)
                    .collect();
                let got = lz4_ratio(&all);
                assert!((got / ratio - 1.0).abs() < 0.12, "{values}, {ratio}: {got}");
            }
        }
    }

    /// More pairs than memory could hold the keys of: the numbers at the far end are as good as the first ones.
    #[test]
    fn sets_of_billions_need_no_memory() {
        let pairs = 8_000_000_000_000;
        for &keys in Keys::value_variants() {
            let generator = Generator::new(keys, 12..=200, Values::None, 1.0, pairs, 7);
            let (mut pair, mut seen) = (Pair::default(), HashSet::new());
            for number in (0..500).chain(pairs - 500..pairs) {
                generator.pair(number, &mut pair);
                assert!(seen.insert(pair.key.clone()), "{keys:?}, {number}");
            }
        }
    }
}
