//! Comparing two sides by blocks of fresh processes: A B B A, or B A A B, in an order that the seed decides.
//!
//! The four of a block are there at once and take turns at the steps that only read, some tens of milliseconds each:
//! what befalls the machine for longer meets both sides alike, and what befalls it for a turn is not in the median of
//! the turns.
//!
//! The number of blocks is fixed in advance: measuring until a difference is significant always finds one. A block
//! during which other processes used the CPU measures those, so it is repeated and counted. After as many repetitions
//! as there are blocks, the comparison gives up, because it must not select blocks.
//!
//! Both sides pass the conformance kit first. The arms of a block have the same pairs, so they must show the same sums.
//! A side that is wrong is an error, and not a figure.
//!
//! The CPU time of a thread does not grow while another process has the CPU. That process leaves colder caches, which
//! both sides meet alike and the interval shows. So with that clock only what is in a figure repeats a block: the time
//! that the host of a virtual machine takes, and the shares of figures that wall time measures even so.

use crate::arm::SHARED_SUMS;
use crate::conform;
use crate::data::{Walk, mix};
use crate::job::{DataFile, Figures, Job, Outcome, Task};
use crate::machine;
use crate::measure::Clock;
use crate::runner::{self, Runner};
use crate::statistics::{self, Block, Judged, Verdict};
use crate::subjects::EMPTY;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;

/// The figure that an arm has once, however many turns it takes.
const INSERTION: &str = "insert_ns";

/// The two sides: each a subject, in a program.
pub(crate) struct Sides {
    /// The runner of each side.
    pub(crate) runners: [Runner; 2],
    /// The job of an arm of each side, without the seed.
    pub(crate) jobs: [Job; 2],
}

impl Sides {
    /// Lets each side pass the conformance kit, with `ops` operations. The error says which does not, and how.
    pub(crate) fn conform(&mut self, ops: u64, walk: &Walk) -> io::Result<()> {
        for (name, runner, job) in self.each() {
            if job.subject == EMPTY {
                continue;
            }
            // Values that differ are what is checked.
            let data = job.data.clone().map(|file| DataFile { no_values: false, ..file });
            let job = Job { task: Task::Conform(ops), keys: conform::KEYS, data, ..job.clone() };
            runner.expect(1, ops);
            let wrong = |why| io::Error::other(format!("{name} = {}: {why}", job.subject));
            runner.arm(&job, walk).measured().map_err(wrong)?;
        }
        Ok(())
    }

    fn each(&mut self) -> impl Iterator<Item = (&'static str, &mut Runner, &Job)> {
        let both = self.runners.iter_mut().zip(&self.jobs);
        ["a", "b"].into_iter().zip(both).map(|(name, (runner, job))| (name, runner, job))
    }
}

/// How a comparison is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Blocks.
    pub(crate) blocks: usize,
    /// The largest difference that counts as none: 0.01 is 1 %.
    pub(crate) margin: f64,
    /// Maximum share of an arm's time, or of all CPUs' time during a block, that other processes took, in percent.
    pub(crate) disturbed_percent_max: f64,
    /// Decides the order within blocks, and the data of each.
    pub(crate) seed: u64,
}

/// The result.
#[derive(Debug, Serialize)]
pub(crate) struct Compared {
    /// By figure; `None` if the figure is not a number in some block.
    pub(crate) judged: BTreeMap<String, Option<Judged>>,
    /// The measurements that the verdicts come from.
    pub(crate) blocks: BTreeMap<String, Vec<Block>>,
    /// Number of blocks that were repeated because other processes used the CPU.
    pub(crate) disturbed: usize,
    /// Whether there were too many of these.
    pub(crate) gave_up: bool,
    /// Whether the steps that only read were measured in turns, and insertion once in a process.
    #[serde(skip)]
    by_turns: bool,
}

impl Compared {
    /// The verdict over all figures.
    pub(crate) fn verdict(&self) -> Verdict {
        Verdict::of_all(self.judged.iter().filter_map(|(name, judged)| self.counts(name, judged.as_ref())))
    }

    /// What a figure adds to the verdict. Beside medians of turns, an insertion that shows no difference adds nothing:
    /// it is measured once in a process, so its interval is wide.
    pub(crate) fn counts(&self, name: &str, judged: Option<&Judged>) -> Option<Verdict> {
        let verdict = Verdict::of(judged);
        let is_aside = self.by_turns && name == INSERTION && verdict == Verdict::Inconclusive;
        (!is_aside).then_some(verdict)
    }
}

/// Compares. It fails if an arm fails, or if the sides show different sums.
pub(crate) fn compare(sides: &mut Sides, plan: Plan, walk: &Walk) -> io::Result<Compared> {
    let mut blocks: BTreeMap<String, Vec<Block>> = BTreeMap::new();
    let by_turns = sides.jobs.iter().any(|job| job.turns > 1);
    let (mut done, mut disturbed) = (0, 0);
    while done < plan.blocks && disturbed <= plan.blocks {
        // A repeated block has a new number, so it gets other data.
        let number = (done + disturbed) as u64;
        let before = machine::stolen();
        let [a, b] = block(sides, mix(plan.seed ^ mix(number)), walk)?;
        if !sides.jobs.iter().any(|job| job.subject == EMPTY) {
            agree(&a, &b)?;
        }
        let stolen = before.zip(machine::stolen()).map(|(before, after)| after.percent_since(before));
        let clock = |side: usize| sides.jobs[side].clock;
        let arms = a.iter().map(|arm| (clock(0), arm)).chain(b.iter().map(|arm| (clock(1), arm)));
        let shares = arms.map(|(clock, arm)| disturbed_percent(arm, clock, by_turns)).chain([stolen]);
        if shares.flatten().any(|percent| percent > plan.disturbed_percent_max) {
            disturbed += 1;
            continue;
        }
        for name in a[0].values.keys() {
            let time = |figures: &Figures| time(name, *figures.values.get(name)?);
            if let (Some((name, first)), Some((_, second)), Some((_, third)), Some((_, fourth))) =
                (time(&a[0]), time(&a[1]), time(&b[0]), time(&b[1]))
            {
                let block = Block { a: [first, second], b: [third, fourth] };
                blocks.entry(name).or_default().push(block);
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
    Ok(Compared { judged: names.into_iter().zip(judged).collect(), blocks, disturbed, gave_up, by_turns })
}

/// Fails if the arms of a block show different sums.
fn agree(a: &[Figures; 2], b: &[Figures; 2]) -> io::Result<()> {
    for step in SHARED_SUMS {
        let of = |side: &[Figures; 2]| [0, 1].map(|arm| side[arm].sums.get(step).copied());
        let ([Some(a), Some(other_a)], [Some(b), Some(other_b)]) = (of(a), of(b)) else { continue };
        if [other_a, b, other_b].iter().any(|sum| *sum != a) {
            return Err(io::Error::other(format!(
                "{step}: of the same pairs a showed the sums {a:x} and {other_a:x}, b {b:x} and {other_b:x}; at least \
                 one side is wrong, so they are not compared"
            )));
        }
    }
    Ok(())
}

/// A figure as a time for an operation, with its name; `None` if it is none. The longest time of an operation is that
/// of one, and chance.
fn time(name: &str, value: f64) -> Option<(String, f64)> {
    match name.strip_suffix("_mops") {
        Some(step) => Some((format!("{step}_ns"), 1e3 / value)),
        None => (name.ends_with("_ns") && !name.ends_with("_max_ns")).then(|| (name.to_owned(), value)),
    }
}

/// The greatest share that others had of the time of a judged figure, in percent, where the clock counts that time.
/// Beside turns that of the insertion does not count: it would repeat blocks whose other figures are sound. Builds that
/// do not report it for each figure have one for all.
fn disturbed_percent(figures: &Figures, clock: Clock, by_turns: bool) -> Option<f64> {
    let is_aside = |name: &str| by_turns && name == INSERTION;
    let counts = |name: &str| (clock == Clock::Wall || is_wall_time(name)) && !is_aside(name);
    let judged = figures.disturbed.iter().filter(|(name, _)| time(name, 1.0).is_some() && counts(name));
    match figures.disturbed.is_empty() {
        true => figures.values.get("disturbed_percent").copied().filter(|_| clock == Clock::Wall),
        false => judged.map(|(_, share)| *share).reduce(f64::max),
    }
}

/// Whether a figure is of wall time with each clock: the rates of several threads, and the times of single operations.
fn is_wall_time(name: &str) -> bool {
    let each = ["_p50_ns", "_p99_ns", "_p999_ns", "_max_ns"];
    name.ends_with("_mops") || each.iter().any(|end| name.ends_with(end))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_use_counts_where_it_is_in_a_figure() {
        let shares = |shares: &[(&str, f64)]| Figures {
            disturbed: shares.iter().map(|(name, share)| ((*name).to_owned(), *share)).collect(),
            ..Figures::default()
        };
        let both = |figures: &Figures| {
            [Clock::Wall, Clock::Cpu].map(|clock| disturbed_percent(figures, clock, false))
        };
        // The last one is not judged.
        let one_thread = shares(&[("get_ns", 50.0), ("insert_ns", 20.0), ("iterate_gb_per_s", 90.0)]);
        assert_eq!(both(&one_thread), [Some(50.0), None]);
        let several = shares(&[("get_ns", 50.0), ("read_2t_mops", 30.0)]);
        assert_eq!(both(&several), [Some(50.0), Some(30.0)]);
        let each = shares(&[("get_ns", 5.0), ("get_p99_ns", 40.0), ("get_max_ns", 90.0)]);
        assert_eq!(both(&each), [Some(40.0), Some(40.0)]);
        let mut older = Figures::default();
        older.set("disturbed_percent", 60.0);
        assert_eq!(both(&older), [Some(60.0), None]);
        assert_eq!(both(&Figures::default()), [None, None]);
    }

    /// A comparison of gets gave up on a busy machine, because the insertion before them was disturbed.
    #[test]
    fn the_insertion_repeats_no_block_of_turns() {
        let figures = Figures {
            disturbed: BTreeMap::from([("get_ns".to_owned(), 1.0), (INSERTION.to_owned(), 90.0)]),
            ..Figures::default()
        };
        let share = |by_turns| disturbed_percent(&figures, Clock::Wall, by_turns);
        assert_eq!([share(false), share(true)], [Some(90.0), Some(1.0)]);
    }
}
