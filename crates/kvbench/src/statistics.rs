//! Whether a difference is one: paired log ratios over blocks, with an interval, a floor and a verdict.
//!
//! A block is four arms, two of each side ([`Block`]). Its log ratio is that of the sides' geometric means; blocks are
//! independent of each other, arms of one block share what the machine was doing then. Over the blocks the trimmed mean
//! is taken (Yuen 1974: a tenth at each end counts as its neighbour in the variance and not in the mean), with
//! Student's interval, so that a few blocks during which something else happened move little. Several figures of one
//! comparison are corrected by Holm's procedure (1979).
//!
//! The *floor* is what the same machine, in the same minutes, shows between two arms of the same side, brought to as
//! many blocks. It knows nothing of the ratio, so a comparison cannot hide its own noise.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Maximum share of comparisons of a subject with itself that may end in "faster" or "slower".
pub(crate) const ALPHA: f64 = 0.01;
/// Share of the blocks at each end that the mean leaves out.
const TRIM: f64 = 0.1;
/// Fewer blocks than this have no interval.
pub(crate) const BLOCKS_MIN: usize = 4;

/// The middle of some values, or the mean of the two in the middle.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        len if len % 2 == 1 => sorted[half],
        _ => (sorted[half - 1] + sorted[half]) / 2.0,
    }
}

/// A number with three digits that count; a small one with one, and its power of ten.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        ..0.005 => format!("{value:.0e}"),
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// One figure over four arms, two of each side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Block {
    /// The two of the first side.
    pub(crate) a: [f64; 2],
    /// The two of the second.
    pub(crate) b: [f64; 2],
}

impl Block {
    /// The log of the second side over the first.
    fn ratio(&self) -> f64 {
        ((self.b[0] / self.a[0]).ln() + (self.b[1] / self.a[1]).ln()) / 2.0
    }

    /// The logs of either side over itself.
    fn selves(&self) -> [f64; 2] {
        [(self.a[1] / self.a[0]).ln(), (self.b[1] / self.b[0]).ln()]
    }
}

/// The verdict on the second side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Verdict {
    /// It takes less time.
    Faster,
    /// It takes more time.
    Slower,
    /// The difference is below the margin.
    Same,
    /// The measurements allow no verdict.
    Inconclusive,
}

impl Verdict {
    /// The word in tables.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }

    /// The verdict on a figure; inconclusive if it could not be judged.
    pub(crate) fn of(judged: Option<&Judged>) -> Verdict {
        judged.map_or(Verdict::Inconclusive, |judged| judged.verdict)
    }

    /// The verdict on several figures: slower if any is slower, else inconclusive if any is, else faster if any is.
    pub(crate) fn of_all(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
        let rank = |verdict: &Verdict| match verdict {
            Verdict::Slower => 3,
            Verdict::Inconclusive => 2,
            Verdict::Faster => 1,
            Verdict::Same => 0,
        };
        verdicts.into_iter().max_by_key(rank).unwrap_or(Verdict::Inconclusive)
    }
}

/// A figure, judged. All but the number of blocks are ratios: 1 is no difference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Judged {
    /// The second side's time over the first's.
    pub(crate) ratio: f64,
    /// The least that this may be.
    pub(crate) low: f64,
    /// The most.
    pub(crate) high: f64,
    /// What a comparison with itself may show, above 1.
    pub(crate) floor: f64,
    /// How likely a difference like this is where there is none, before the correction for several figures.
    pub(crate) p: f64,
    /// Blocks that this is from.
    pub(crate) blocks: usize,
    /// The verdict.
    pub(crate) verdict: Verdict,
}

/// A trimmed mean with its standard error and the degrees of freedom of that.
#[derive(Debug, Clone, Copy)]
struct Estimate {
    mean: f64,
    error: f64,
    freedom: f64,
}

impl Estimate {
    /// The estimate from these values; `None` if there are too few, or if one is not a number.
    fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        if values.len() < BLOCKS_MIN || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        values.sort_by(f64::total_cmp);
        let cut = (values.len() as f64 * TRIM) as usize;
        let kept = &values[cut..values.len() - cut];
        let mean = kept.iter().sum::<f64>() / kept.len() as f64;
        // Winsorized: those left out count as the last that was not.
        let (least, most) = (kept[0], kept[kept.len() - 1]);
        let drawn_in: Vec<f64> = values.iter().map(|value| value.clamp(least, most)).collect();
        let centre = drawn_in.iter().sum::<f64>() / drawn_in.len() as f64;
        let squares: f64 = drawn_in.iter().map(|value| (value - centre).powi(2)).sum();
        let deviation = (squares / (values.len() - 1) as f64).sqrt();
        let share = kept.len() as f64 / values.len() as f64;
        let error = deviation / (share * (values.len() as f64).sqrt());
        Some(Estimate { mean, error, freedom: (kept.len() - 1) as f64 })
    }

    fn student(&self) -> Option<StudentsT> {
        StudentsT::new(0.0, 1.0, self.freedom).ok()
    }

    /// How likely a mean this far from zero is, or further.
    fn p(&self) -> f64 {
        if self.error == 0.0 {
            return f64::from(self.mean == 0.0);
        }
        self.student().map_or(1.0, |student| 2.0 * student.sf((self.mean / self.error).abs()))
    }

    /// Half of the interval that holds the mean but for `alpha` of all cases.
    fn half(&self, alpha: f64) -> f64 {
        let student = self.student();
        student.map_or(f64::INFINITY, |student| self.error * student.inverse_cdf(1.0 - alpha / 2.0))
    }
}

/// The levels at which figures with these p are tested, and whether each is a difference: Holm's procedure.
fn holm(ps: &[f64], alpha: f64) -> Vec<(f64, bool)> {
    let mut order: Vec<usize> = (0..ps.len()).collect();
    order.sort_by(|&a, &b| ps[a].total_cmp(&ps[b]));
    let mut levels = vec![(alpha, false); ps.len()];
    let mut failed = None;
    for (rank, &at) in order.iter().enumerate() {
        let level = failed.unwrap_or(alpha / (ps.len() - rank) as f64);
        let differs = failed.is_none() && ps[at] <= level;
        if !differs {
            failed = Some(level);
        }
        levels[at] = (level, differs);
    }
    levels
}

/// The judgement of an estimate tested at a level, and whether there is a difference at that level.
fn conclude(
    ratio: Estimate,
    (level, differs): (f64, bool),
    floor: f64,
    margin: f64,
    blocks: usize,
) -> Judged {
    let (half, p) = (ratio.half(level), ratio.p());
    let verdict = if ratio.mean.abs() + half <= margin.ln_1p() {
        Verdict::Same
    } else if differs && ratio.mean.abs() > floor {
        if ratio.mean < 0.0 { Verdict::Faster } else { Verdict::Slower }
    } else {
        Verdict::Inconclusive
    };
    Judged {
        ratio: ratio.mean.exp(),
        low: (ratio.mean - half).exp(),
        high: (ratio.mean + half).exp(),
        floor: floor.exp(),
        p,
        blocks,
        verdict,
    }
}

/// Judges the figures of one comparison, each over its blocks. Within `margin` (0.01 is a hundredth) is the same.
/// `None` for a figure of too few blocks.
pub(crate) fn judge(figures: &[Vec<Block>], margin: f64) -> Vec<Option<Judged>> {
    let ratios: Vec<_> = figures.iter().map(|blocks| Estimate::of(blocks.iter().map(Block::ratio))).collect();
    let mut levels = levels_of(&ratios);
    let judged = ratios.iter().zip(figures).map(|(ratio, blocks)| {
        let ratio = (*ratio)?;
        let level = levels.next()?;
        let selves = Estimate::of(blocks.iter().flat_map(Block::selves).flat_map(|log| [log, -log]))?;
        // Of both signs, so the error is that of a single log ratio over all; a block has the mean of two on each
        // side, which halves its square.
        let one = selves.error * ((4 * blocks.len()) as f64).sqrt();
        let error = one / 2f64.sqrt() / (blocks.len() as f64).sqrt();
        let floor = Estimate { mean: 0.0, error, freedom: ratio.freedom }.half(level.0);
        Some(conclude(ratio, level, floor, margin, blocks.len()))
    });
    judged.collect()
}

/// The levels for those of the estimates that there are.
fn levels_of(ratios: &[Option<Estimate>]) -> std::vec::IntoIter<(f64, bool)> {
    let ps: Vec<f64> = ratios.iter().flatten().map(Estimate::p).collect();
    holm(&ps, ALPHA).into_iter()
}

/// Judges figures of two runs that were not made by turns, each with the values of its rounds; `floor` is what two runs
/// of one thing may differ by (0.08 is eight hundredths). `None` for a figure of too few rounds.
pub(crate) fn judge_apart(figures: &[(&[f64], &[f64])], margin: f64, floor: f64) -> Vec<Option<Judged>> {
    let logs = |values: &[f64]| Estimate::of(values.iter().map(|value| value.ln()));
    // Welch (1947): the variances of the two are their own.
    let ratio = |(a, b): &(&[f64], &[f64])| {
        let (a, b) = (logs(a)?, logs(b)?);
        let (first, second) = (a.error.powi(2), b.error.powi(2));
        let freedom = (first + second).powi(2) / (first.powi(2) / a.freedom + second.powi(2) / b.freedom);
        let freedom = if freedom.is_finite() { freedom } else { a.freedom.min(b.freedom) };
        Some(Estimate { mean: b.mean - a.mean, error: (first + second).sqrt(), freedom })
    };
    let ratios: Vec<_> = figures.iter().map(ratio).collect();
    let mut levels = levels_of(&ratios);
    let judged = ratios.iter().zip(figures).map(|(ratio, (a, b))| {
        Some(conclude((*ratio)?, levels.next()?, floor.ln_1p(), margin, a.len().min(b.len())))
    });
    judged.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::mix;

    /// Random numbers with a bell's distribution, and now and then one from far outside.
    struct Noise(u64);

    impl Noise {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(1);
            (mix(self.0) >> 11) as f64 / (1u64 << 53) as f64
        }

        fn next(&mut self, deviation: f64) -> f64 {
            let bell: f64 = (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0;
            let factor = if self.uniform() < 0.03 { 8.0 } else { 1.0 };
            bell * deviation * factor
        }
    }

    /// Blocks of arms that take about 100, the second side longer by a factor.
    fn blocks(noise: &mut Noise, many: usize, deviation: f64, factor: f64) -> Vec<Block> {
        let block = |_| {
            let drift = noise.next(0.1);
            let mut arm = |factor: f64| 100.0 * factor * (drift + noise.next(deviation)).exp();
            Block { a: [arm(1.0), arm(1.0)], b: [arm(factor), arm(factor)] }
        };
        (0..many).map(block).collect()
    }

    fn verdicts(figures: usize, deviation: f64, factor: f64) -> [usize; 4] {
        let mut noise = Noise(figures as u64 * 1000);
        let mut counts = [0; 4];
        for _ in 0..400 {
            let compared: Vec<_> = (0..figures).map(|_| blocks(&mut noise, 20, deviation, factor)).collect();
            let judged = judge(&compared, 0.01);
            counts[Verdict::of_all(judged.iter().flatten().map(|one| one.verdict)) as usize] += 1;
        }
        counts
    }

    #[test]
    fn what_is_the_same_is_seldom_told_apart() {
        for (figures, deviation) in [(1, 0.01), (1, 0.1), (6, 0.02)] {
            let [faster, slower, ..] = verdicts(figures, deviation, 1.0);
            assert!(faster + slower <= 8, "{figures} figures, {deviation}: {faster} + {slower} of 400");
        }
        let [_, _, same, _] = verdicts(1, 0.005, 1.0);
        assert!(same >= 380, "{same} of 400");
    }

    #[test]
    fn three_hundredths_are_found() {
        for (factor, verdict) in [(1.03, Verdict::Slower), (1.0 / 1.03, Verdict::Faster)] {
            let counts = verdicts(1, 0.015, factor);
            assert!(counts[verdict as usize] >= 390, "{counts:?}");
        }
    }

    #[test]
    fn a_wild_machine_is_inconclusive() {
        let [faster, slower, same, inconclusive] = verdicts(1, 0.3, 1.01);
        assert!(inconclusive >= 385, "{faster} {slower} {same} {inconclusive}");
    }

    #[test]
    fn intervals_hold_the_ratio_as_often_as_they_say() {
        let mut noise = Noise(7);
        let held = (0..1000).filter(|_| {
            let judged = judge(&[blocks(&mut noise, 20, 0.02, 1.05)], 0.01);
            let judged = judged[0].as_ref().unwrap();
            judged.low <= 1.05 && 1.05 <= judged.high
        });
        let held = held.count();
        assert!((975..=1000).contains(&held), "{held} of 1000");
    }

    #[test]
    fn several_figures_are_tested_more_strictly() {
        let levels = holm(&[0.004, 0.0001, 0.9], 0.01);
        assert_eq!(levels, [(0.005, true), (0.01 / 3.0, true), (0.01, false)]);
        // All p-values after the first failure fail, even if they are below their own levels.
        let levels = holm(&[0.006, 0.007, 0.0001], 0.01);
        assert_eq!(levels, [(0.005, false), (0.005, false), (0.01 / 3.0, true)]);
        assert!(holm(&[], 0.01).is_empty());
    }

    #[test]
    fn who_loses_once_has_lost() {
        use Verdict::{Faster, Inconclusive, Same, Slower};
        assert_eq!(Verdict::of_all([Same, Faster, Inconclusive, Slower]), Slower);
        assert_eq!(Verdict::of_all([Same, Faster, Inconclusive]), Inconclusive);
        assert_eq!(Verdict::of_all([Same, Faster]), Faster);
        assert_eq!(Verdict::of_all([Same]), Same);
        assert_eq!(Verdict::of_all([]), Inconclusive);
    }

    #[test]
    fn runs_at_different_times_must_differ_by_more() {
        let mut noise = Noise(9);
        let mut run =
            |factor: f64| -> Vec<f64> { (0..10).map(|_| factor * noise.next(0.01).exp()).collect() };
        let (base, near, far) = (run(100.0), run(106.0), run(115.0));
        let judged =
            judge_apart(&[(&base, &near), (&base, &far), (&far, &base), (&base, &far[..3])], 0.01, 0.08);
        let verdicts: Vec<_> = judged.iter().map(|one| one.as_ref().map(|one| one.verdict)).collect();
        use Verdict::{Faster, Inconclusive, Slower};
        assert_eq!(verdicts, [Some(Inconclusive), Some(Slower), Some(Faster), None]);
    }

    #[test]
    fn nothing_is_said_of_too_little() {
        let one = Block { a: [1.0, 1.0], b: [2.0, 2.0] };
        assert_eq!(judge(&[vec![one; 3]], 0.01), [None]);
        let alike = judge(&[vec![one; 4]], 0.01);
        assert_eq!(alike[0].as_ref().unwrap().verdict, Verdict::Slower);
        let broken = Block { a: [0.0, 1.0], b: [1.0, 1.0] };
        assert_eq!(judge(&[vec![broken; 20]], 0.01), [None]);
    }

    #[test]
    fn three_digits_count() {
        for (value, text) in [
            (0.0, "0"),
            (0.0032, "3e-3"),
            (0.00999, "0.01"),
            (0.456, "0.46"),
            (12.34, "12.3"),
            (123.4, "123"),
            (12345.6, "12346"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
