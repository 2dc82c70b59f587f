//! Random numbers that a seed replays, and the keys and values that the model test makes of them, of every
//! kind that an engine may treat differently.

use forrest_base::random;

/// The source of random numbers.
#[derive(Clone)]
enum Source {
    Seed(random::Random),
    /// A fuzzer's bytes, last ones first.
    Bytes(Vec<u8>),
}

/// Random numbers, from a seed or from a fuzzer.
#[derive(Clone)]
pub(crate) struct Random(Source);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(Source::Seed(random::Random(seed)))
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Random {
        Random(Source::Bytes(bytes.iter().rev().copied().collect()))
    }

    /// True if the numbers come to an end.
    pub(crate) fn is_finite(&self) -> bool {
        matches!(self.0, Source::Bytes(_))
    }

    /// True if the numbers have come to an end; further ones are 0.
    pub(crate) fn is_spent(&self) -> bool {
        matches!(&self.0, Source::Bytes(bytes) if bytes.is_empty())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.take(8)
    }

    /// A number that depends on the next `len` bytes.
    fn take(&mut self, len: usize) -> u64 {
        match &mut self.0 {
            Source::Seed(seed) => seed.next(),
            Source::Bytes(bytes) => (0..len).fold(0, |n, _| n << 8 | u64::from(bytes.pop().unwrap_or(0))),
        }
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let bytes = if end <= 1 << 8 { 1 } else { 2 };
        (self.take(bytes) % end as u64) as usize
    }

    /// True once in `n` times.
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// `len` bytes that differ from those of another seed in the last two only: as keys, they share nearly all
/// of their length.
pub(crate) fn pattern(len: usize, seed: u16) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
    if let Some(last) = len.checked_sub(2) {
        bytes[last..].copy_from_slice(&seed.to_be_bytes());
    }
    bytes
}

/// The keys of a run, few enough to be used repeatedly, of at most `key_bytes_max` bytes.
pub(crate) fn keys(random: &mut Random, key_bytes_max: usize) -> Vec<Vec<u8>> {
    let mut keys = vec![Vec::new(), vec![0], vec![0xFF], vec![0xFF; 9]];
    let kinds = 1 + random.below(3);
    for _ in 0..kinds {
        let kind = random.below(9);
        let count = if kind == 7 && random.one_in(2) { 3000 } else { 20 + random.below(60) };
        keys.extend((0..count).map(|at| key(random, kind, at)));
    }
    if random.one_in(3) {
        let long = [2, 1, 0].map(|less| pattern(key_bytes_max - less, random.below(3) as u16));
        keys.extend(long);
    }
    keys
}

fn key(random: &mut Random, kind: usize, at: usize) -> Vec<u8> {
    match kind {
        0 => (0..random.below(5)).map(|_| *random.pick(b"ab")).collect(),
        1 => {
            format!("/usr/share/doc/{}/{}", random.pick(&["alpha", "beta", "gamma"]), random.below(40)).into()
        }
        2 => random.next().to_be_bytes().to_vec(),
        3 => (random.next() as u32).to_le_bytes().to_vec(),
        4 => vec![0xFF; random.below(20)],
        5 => [vec![b'p'; 30 * random.below(12)], random.next().to_be_bytes()[..random.below(9)].to_vec()]
            .concat(),
        6 => (0..random.below(12)).map(|_| *random.pick(&[0, 1, 0x7F, 0x80, 0xFE, 0xFF])).collect(),
        7 => (at as u64).to_be_bytes().to_vec(),
        _ => pattern(100 + random.below(400), random.below(6) as u16),
    }
}

/// A value: mostly short, sometimes with a length near a boundary of an engine.
pub(crate) fn value(random: &mut Random) -> Vec<u8> {
    let seed = random.next() as u16;
    match random.below(200) {
        0 => pattern(1 << 20, seed),
        1..10 => pattern(4096, seed),
        10..40 => pattern(*random.pick(&[29, 30, 31, 32, 238, 239, 240, 241, 255, 256, 257]), seed),
        40..60 => Vec::new(),
        60..90 => counter(random).to_be_bytes().to_vec(),
        // Few different ones, so that comparisons succeed.
        _ => format!("v{}", random.below(4)).into(),
    }
}

/// The start of a counter, or a number to add to it.
pub(crate) fn counter(random: &mut Random) -> i64 {
    match random.below(12) {
        0 => i64::MAX,
        1 => i64::MIN,
        2 => 0,
        _ => random.below(200) as i64 - 100,
    }
}
