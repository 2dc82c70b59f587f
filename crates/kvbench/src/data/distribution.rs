//! Which pairs are asked for, and how often.
//!
//! The pair chosen at a place is a pure function of the seed and the place. A permutation maps ranks to pairs, so that
//! frequent pairs are scattered over the data set, except in distributions that depend on the insertion order. Zipf's
//! law is exact: no rank is rounded to another, for any skew and number of pairs.

use super::{Permutation, Random, mix};
use rand_distr::{Distribution as _, Zipf};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Skew of YCSB.
const THETA: f64 = 0.99;
/// Greatest skew: of three operations nearly all are on one pair.
const THETA_MAX: f64 = 10.0;

/// How often each pair is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum Distribution {
    /// Each once in every round, in random order.
    #[default]
    Uniform,
    /// By rank: the pair of rank k 1/k^theta times as often as that of rank 1.
    Zipfian(f64),
    /// The same, where the pair that came last has rank 1, the one before it rank 2.
    Latest(f64),
    /// A part of the pairs gets a part of the operations.
    Hotspot {
        /// Percent of the pairs.
        keys: f64,
        /// Percent of the operations.
        ops: f64,
    },
    /// In the order in which they came.
    Sequential,
}

impl Distribution {
    /// Zipf's law with the skew of YCSB.
    pub(crate) const ZIPFIAN: Distribution = Distribution::Zipfian(THETA);
    /// What came last, with the skew of YCSB.
    pub(crate) const LATEST: Distribution = Distribution::Latest(THETA);
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Uniform => f.write_str("uniform"),
            Distribution::Zipfian(theta) => write!(f, "zipfian:{theta}"),
            Distribution::Latest(theta) => write!(f, "latest:{theta}"),
            Distribution::Hotspot { keys, ops } => write!(f, "hotspot:{keys},{ops}"),
            Distribution::Sequential => f.write_str("sequential"),
        }
    }
}

impl FromStr for Distribution {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is none of uniform, zipfian[:THETA], latest[:THETA] (theta above 0, {THETA_MAX} at most), \
                 hotspot:KEYS,OPS (percent) and sequential"
            )
        };
        let number = |text: &str, most: f64| {
            text.parse::<f64>().ok().filter(|number| *number > 0.0 && *number <= most).ok_or_else(wrong)
        };
        match text.split_once(':').map_or((text, None), |(name, shape)| (name, Some(shape))) {
            ("uniform", None) => Ok(Distribution::Uniform),
            ("sequential", None) => Ok(Distribution::Sequential),
            ("zipfian", theta) => {
                theta.map_or(Ok(THETA), |theta| number(theta, THETA_MAX)).map(Distribution::Zipfian)
            }
            ("latest", theta) => {
                theta.map_or(Ok(THETA), |theta| number(theta, THETA_MAX)).map(Distribution::Latest)
            }
            ("hotspot", Some(shape)) => {
                let (keys, ops) = shape.split_once(',').ok_or_else(wrong)?;
                Ok(Distribution::Hotspot { keys: number(keys, 100.0)?, ops: number(ops, 100.0)? })
            }
            _ => Err(wrong()),
        }
    }
}

impl TryFrom<String> for Distribution {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Distribution> for String {
    fn from(distribution: Distribution) -> String {
        distribution.to_string()
    }
}

/// A distribution over a data set: which pair is asked for at each place.
pub(crate) struct Choice {
    len: u64,
    seed: u64,
    order: Permutation,
    by: By,
}

enum By {
    Turn,
    Rank(Zipf<f64>),
    Age(Zipf<f64>),
    Heat { keys: u64, share: f64 },
    Place,
}

impl Choice {
    /// A choice among `len` pairs, of which there is at least one.
    pub(crate) fn new(distribution: Distribution, len: u64, seed: u64) -> Self {
        let zipf = |theta| Zipf::new(len.max(1) as f64, theta).expect("the skew and the number are above 0");
        let by = match distribution {
            Distribution::Uniform => By::Turn,
            Distribution::Zipfian(theta) => By::Rank(zipf(theta)),
            Distribution::Latest(theta) => By::Age(zipf(theta)),
            Distribution::Hotspot { keys, ops } => {
                By::Heat { keys: ((len as f64 * keys / 100.0).ceil() as u64).min(len), share: ops / 100.0 }
            }
            Distribution::Sequential => By::Place,
        };
        Choice { len, seed: mix(seed ^ 2), order: Permutation::new(len, seed), by }
    }

    /// The number of the pair that is asked for at this place.
    pub(crate) fn pick(&self, at: u64) -> u64 {
        self.pick_of(at, self.len)
    }

    /// The same, when there are `there` pairs: as many as at first, or more.
    pub(crate) fn pick_of(&self, at: u64, there: u64) -> u64 {
        let mut random = Random::new(mix(at ^ self.seed));
        let mut rank = |zipf: &Zipf<f64>| (zipf.sample(&mut random) as u64).clamp(1, self.len) - 1;
        match &self.by {
            By::Turn => self.order.apply(at % self.len),
            By::Rank(zipf) => self.order.apply(rank(zipf)),
            By::Age(zipf) => there - 1 - rank(zipf),
            By::Heat { keys, share } => {
                let hot = random.share() <= *share || *keys == self.len;
                let rank = if hot { random.below(*keys) } else { keys + random.below(self.len - keys) };
                self.order.apply(rank)
            }
            By::Place => at % self.len,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u64 = 200_000;

    /// Numbers between the ends of cells, with the probability of each cell, against what was drawn: Pearson's
    /// statistic is below its mean by five deviations. The seeds are fixed, so it holds always or never.
    fn fits(cells: &[(std::ops::Range<u64>, f64)], draw: impl Fn(u64) -> u64) {
        let mut counts = vec![0u64; cells.len()];
        for at in 0..DRAWS {
            let drawn = draw(at);
            counts[cells.partition_point(|(range, _)| range.end <= drawn)] += 1;
        }
        let all: f64 = cells.iter().map(|(_, share)| share).sum();
        assert!((all - 1.0).abs() < 1e-6, "{all}");
        let statistic: f64 = cells
            .iter()
            .zip(counts)
            .map(|((_, share), count)| {
                let expected = share * DRAWS as f64;
                assert!(expected > 5.0, "{expected}");
                (count as f64 - expected).powi(2) / expected
            })
            .sum();
        let freedom = (cells.len() - 1) as f64;
        assert!(statistic < freedom + 5.0 * (2.0 * freedom).sqrt(), "{statistic} of {freedom}");
    }

    /// The sum of k^-theta over ranks in a range from 1 on: the first terms one by one, the rest by the Euler-Maclaurin
    /// formula.
    fn zeta(ranks: std::ops::Range<u64>, theta: f64) -> f64 {
        let power = |rank: u64| (rank as f64).powf(-theta);
        let middle = ranks.end.min(ranks.start.max(1000));
        let near: f64 = (ranks.start..middle).map(power).sum();
        if middle == ranks.end {
            return near;
        }
        let (from, end) = (middle as f64, ranks.end as f64);
        let integral = if theta == 1.0 {
            (end / from).ln()
        } else {
            (end.powf(1.0 - theta) - from.powf(1.0 - theta)) / (1.0 - theta)
        };
        let slope = |at: f64| -theta * at.powf(-theta - 1.0);
        near + integral - (power(ranks.end) - power(middle)) / 2.0 + (slope(end) - slope(from)) / 12.0
    }

    /// Ranks from 0: the first by themselves, the others in cells that grow.
    fn zipf_cells(len: u64, theta: f64) -> Vec<(std::ops::Range<u64>, f64)> {
        let all = zeta(1..len + 1, theta);
        let mut cells: Vec<(std::ops::Range<u64>, f64)> = Vec::new();
        let mut from = 0;
        while from < len {
            let end = (from + 1 + from / 20).min(len);
            let share = zeta(from + 1..end + 1, theta) / all;
            match cells.last_mut() {
                // Too few are expected for a cell of their own.
                Some(last) if share * (DRAWS as f64) < 10.0 || last.1 * (DRAWS as f64) < 10.0 => {
                    *last = (last.0.start..end, last.1 + share);
                }
                _ => cells.push((from..end, share)),
            }
            from = end;
        }
        cells
    }

    /// The ranks of numbers: the inverse of the permutation.
    fn ranks(len: u64, seed: u64) -> Vec<u64> {
        let order = Permutation::new(len, seed);
        let mut ranks = vec![0; len as usize];
        (0..len).for_each(|rank| ranks[order.apply(rank) as usize] = rank);
        ranks
    }

    #[test]
    fn zipfs_law_holds_for_any_skew() {
        for theta in [0.2, 0.5, 0.99, 1.0, 1.001, 1.5] {
            for len in [2, 10, 1000, 20_000] {
                let (choice, ranks) = (Choice::new(Distribution::Zipfian(theta), len, 7), ranks(len, 7));
                fits(&zipf_cells(len, theta), |at| ranks[choice.pick(at) as usize]);
            }
        }
    }

    #[test]
    fn zipfs_law_holds_for_many_pairs() {
        let len = 50_000_000;
        for theta in [0.99, 1.0] {
            let choice = Choice::new(Distribution::Latest(theta), len, 11);
            fits(&zipf_cells(len, theta), |at| len - 1 - choice.pick(at));
        }
    }

    #[test]
    fn what_came_last_is_asked_for_most() {
        let choice = Choice::new(Distribution::LATEST, 1000, 3);
        fits(&zipf_cells(1000, THETA), |at| 1499 - choice.pick_of(at, 1500));
    }

    #[test]
    fn a_hot_spot_gets_its_share() {
        let choice = Choice::new(Distribution::Hotspot { keys: 20.0, ops: 80.0 }, 100, 3);
        let ranks = ranks(100, 3);
        let cells: Vec<_> =
            (0..100).map(|rank| (rank..rank + 1, if rank < 20 { 0.04 } else { 0.0025 })).collect();
        fits(&cells, |at| ranks[choice.pick(at) as usize]);
        let all = Choice::new(Distribution::Hotspot { keys: 100.0, ops: 1.0 }, 10, 3);
        fits(&(0..10).map(|rank| (rank..rank + 1, 0.1)).collect::<Vec<_>>(), |at| all.pick(at));
    }

    #[test]
    fn others_ask_for_each_once_in_a_round() {
        for distribution in [Distribution::Uniform, Distribution::Sequential] {
            let choice = Choice::new(distribution, 1000, 5);
            for round in 0..2 {
                let mut seen: Vec<_> = (0..1000).map(|at| choice.pick(round * 1000 + at)).collect();
                assert_eq!(seen.is_sorted(), distribution == Distribution::Sequential);
                seen.sort_unstable();
                assert!(seen.into_iter().eq(0..1000), "{distribution}");
            }
        }
        for distribution in ["uniform", "zipfian", "latest", "hotspot:1,99", "sequential"] {
            assert_eq!(Choice::new(distribution.parse().unwrap(), 1, 5).pick(9), 0, "{distribution}");
        }
    }

    #[test]
    fn names_are_read_as_they_print() {
        for text in ["uniform", "zipfian:0.99", "zipfian:1", "latest:0.5", "hotspot:20,80", "sequential"] {
            assert_eq!(text.parse::<Distribution>().unwrap().to_string(), text);
        }
        assert_eq!("zipfian".parse(), Ok(Distribution::ZIPFIAN));
        assert_eq!("latest".parse(), Ok(Distribution::LATEST));
        for text in [
            "",
            "zipf",
            "uniform:1",
            "zipfian:0",
            "zipfian:nan",
            "zipfian:11",
            "hotspot",
            "hotspot:5",
            "hotspot:0,5",
            "hotspot:5,101",
        ] {
            let error = text.parse::<Distribution>().unwrap_err();
            assert!(error.contains("hotspot:KEYS,OPS"), "{error}");
        }
    }
}
