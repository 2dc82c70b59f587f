//! Comparing two sides by blocks of fresh processes: A B B A, or B A A B, in an order that the seed decides.
//!
//! The four of a block are there at once and take turns at the steps that only read, some tens of milliseconds each:
//! what befalls the machine for longer meets both sides alike, and what befalls it for a turn is not in the median of
//! the turns.
//!
//! The number of blocks is fixed before the first: who looks until it is significant finds something. A block during
//! which others had the CPU is done again, because it says something of them; it is counted, and after as many of these
//! as there are blocks, the comparison gives up rather than to choose the blocks that it likes.

use crate::data::{Walk, mix};
use crate::job::{Figures, Job, Outcome};
use crate::machine;
use crate::runner::{self, Runner};
use crate::statistics::{self, Block, Judged, Verdict};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;

/// The two sides: each a subject, in a program.
pub(crate) struct Sides {
    /// Who starts the arms of each.
    pub(crate) runners: [Runner; 2],
    /// What an arm of each is told, but for the seed.
    pub(crate) jobs: [Job; 2],
}

/// How a comparison is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Blocks.
    pub(crate) blocks: usize,
    /// What is still the same: 0.01 is a hundredth.
    pub(crate) margin: f64,
    /// What of the time of an arm, or of all CPUs while a block was done, others may have had, in percent.
    pub(crate) disturbed_percent_max: f64,
    /// Decides the order within blocks, and the data of each.
    pub(crate) seed: u64,
}

/// What came of it.
#[derive(Debug, Serialize)]
pub(crate) struct Compared {
    /// By figure; `None` for those that are no number in some block.
    pub(crate) judged: BTreeMap<String, Option<Judged>>,
    /// What the verdicts are from.
    pub(crate) blocks: BTreeMap<String, Vec<Block>>,
    /// Blocks that were done again, because others had the CPU.
    pub(crate) disturbed: usize,
    /// Whether there were too many of these.
    pub(crate) gave_up: bool,
}

impl Compared {
    /// What is said of all figures together.
    pub(crate) fn verdict(&self) -> Verdict {
        Verdict::of_all(self.judged.values().map(|judged| Verdict::of(judged.as_ref())))
    }
}

/// Compares. The error is why an arm did not measure.
pub(crate) fn compare(sides: &mut Sides, plan: Plan, walk: &Walk) -> io::Result<Compared> {
    let mut blocks: BTreeMap<String, Vec<Block>> = BTreeMap::new();
    // What is measured once in a process is no match for medians, and is left to comparisons without turns.
    let by_turns = sides.jobs.iter().any(|job| job.turns > 1);
    let is_judged = |name: &str| name.ends_with("_ns") && !(by_turns && name == "insert_ns");
    let (mut done, mut disturbed) = (0, 0);
    while done < plan.blocks && disturbed <= plan.blocks {
        // One that is done again has other data: it is another block.
        let number = (done + disturbed) as u64;
        let before = machine::stolen();
        let [a, b] = block(sides, mix(plan.seed ^ mix(number)), walk)?;
        let stolen = before.zip(machine::stolen()).map(|(before, after)| after.percent_since(before));
        let arms = a.iter().chain(&b).map(|figures| figures.values.get("disturbed_percent").copied());
        if arms.chain([stolen]).flatten().any(|percent| percent > plan.disturbed_percent_max) {
            disturbed += 1;
            continue;
        }
        for (name, first) in a[0].values.iter().filter(|(name, _)| is_judged(name)) {
            let others = [&a[1], &b[0], &b[1]].map(|figures| figures.values.get(name).copied());
            if let [Some(second), Some(third), Some(fourth)] = others {
                let block = Block { a: [*first, second], b: [third, fourth] };
                blocks.entry(name.clone()).or_default().push(block);
            }
        }
        done += 1;
    }
    let gave_up = done < plan.blocks;
    let names: Vec<String> = blocks.keys().cloned().collect();
    let figures: Vec<Vec<Block>> = blocks.values().cloned().collect();
    let mut judged = statistics::judge(&figures, plan.margin);
    if gave_up {
        judged.iter_mut().flatten().for_each(|one| one.verdict = Verdict::Inconclusive);
    }
    Ok(Compared { judged: names.into_iter().zip(judged).collect(), blocks, disturbed, gave_up })
}

/// One block, of data that the seed decides: the two arms of each side.
fn block(sides: &mut Sides, seed: u64, walk: &Walk) -> io::Result<[[Figures; 2]; 2]> {
    let outer = (seed & 1) as usize;
    sides.jobs.iter_mut().for_each(|job| job.seed = seed);
    let order = [outer, 1 - outer, 1 - outer, outer].map(|side| (side, &sides.jobs[side]));
    let mut ends = runner::by_turns(&mut sides.runners, &order, walk).into_iter();
    let mut next = || ends.next().map_or_else(|| Ok(Figures::default()), Outcome::measured);
    let (first, second, third, fourth) = (next()?, next()?, next()?, next()?);
    let (outside, inside) = ([first, fourth], [second, third]);
    Ok(if outer == 0 { [outside, inside] } else { [inside, outside] })
}
