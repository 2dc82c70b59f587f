//! What the commands that run arms have in common: a runner, a record, a count of failures; rounds in turning order;
//! and the comparison of what the arms showed.

use crate::cap::Cap;
use crate::data::Walk;
use crate::job::{Figures, Job, Outcome};
use crate::options::MallocPages;
use crate::record::Run;
use crate::runner::Runner;
use crate::sizes;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;

/// A run of arms.
pub(crate) struct Bench {
    /// Starts the arms.
    pub(crate) runner: Runner,
    /// Keeps what they measured.
    pub(crate) record: Run,
    /// Subjects that were wrong or broke.
    pub(crate) failures: usize,
}

/// Subjects with their figures, round by round.
pub(crate) type Rounds<W> = Vec<(W, Vec<Figures>)>;

impl Bench {
    /// A run that begins now and is appended to the file `json`, with these options.
    pub(crate) fn begin(json: Option<&Path>, options: Value, malloc_pages: MallocPages) -> io::Result<Bench> {
        let record = Run::begin(json, options)?;
        Ok(Bench { runner: Runner::new(malloc_pages)?, record, failures: 0 })
    }

    /// Does an arm, in the group of `cap` if there is one. An arm that is killed for its memory is left out.
    pub(crate) fn arm_within(&mut self, cap: Option<&Cap>, mut job: Job) -> Outcome {
        job.group = cap.map(|cap| cap.group().to_owned());
        let before = cap.map(Cap::killed);
        let end = self.runner.arm(&job, &Walk::default());
        match cap.filter(|cap| Some(cap.killed()) > before) {
            Some(cap) => Outcome::Left(format!("it needs more memory than {}", sizes::text(cap.bytes()))),
            None => end,
        }
    }

    /// The figures of an arm. If it has none, the reason is printed after `who` and recorded with `content`; a wrong
    /// result counts as a failure.
    pub(crate) fn figures(
        &mut self,
        out: &mut impl Write,
        who: &str,
        content: Value,
        end: Outcome,
    ) -> io::Result<Option<Figures>> {
        self.leave(out, who, content, &end)?;
        Ok(end.measured().ok())
    }

    /// As [`Bench::figures`], and leaves the figures where they are.
    pub(crate) fn leave(
        &mut self,
        out: &mut impl Write,
        who: &str,
        mut content: Value,
        end: &Outcome,
    ) -> io::Result<()> {
        let (what, why, failed) = match end {
            Outcome::Figures(_) => return Ok(()),
            Outcome::Left(why) => ("left out", why, false),
            Outcome::Failed(why) => ("FAILED", why, true),
        };
        self.failures += usize::from(failed);
        writeln!(out, "{who}: {what}: {why}")?;
        content["failed"] = json!(failed);
        content["why"] = json!(why);
        self.record.append("left_out", &content)
    }
}

/// Runs an arm of each subject in each round. The order is reversed in every other round, so that a drift of the
/// machine favours no subject. A subject that failed once gets no figures; one that has none of a round has no later
/// rounds. `arm` also gets the figures of the subject's earlier rounds.
pub(crate) fn rounds<W: Copy>(
    subjects: impl IntoIterator<Item = W>,
    rounds: u16,
    mut arm: impl FnMut(W, &[Figures]) -> io::Result<Outcome>,
) -> io::Result<Rounds<W>> {
    let mut all: Rounds<W> = subjects.into_iter().map(|subject| (subject, Vec::new())).collect();
    for round in 0..usize::from(rounds) {
        for place in 0..all.len() {
            let at = if round % 2 == 0 { place } else { all.len() - 1 - place };
            let (subject, measured) = &mut all[at];
            if measured.len() < round {
                continue;
            }
            match arm(*subject, measured)? {
                Outcome::Figures(figures) => measured.push(*figures),
                Outcome::Failed(_) => measured.clear(),
                Outcome::Left(_) => {}
            }
        }
    }
    Ok(all)
}

/// Takes the figures from the subjects whose sums differ from those of most others, and returns each of these with what
/// to say of it. `counts` chooses the sums that all must share. Of these no right value is known; each arm has compared
/// those of which one is. So if no sum is that of more than half, all subjects are named, and none has figures.
pub(crate) fn take_odd<W: Copy>(all: &mut Rounds<W>, counts: impl Fn(W, &str) -> bool) -> Vec<(W, String)> {
    let mut steps: BTreeMap<&str, Vec<(usize, u64)>> = BTreeMap::new();
    for (at, (subject, rounds)) in all.iter().enumerate() {
        let shown = rounds.iter().flat_map(|round| &round.sums).filter(|(step, _)| counts(*subject, step));
        // A subject has a vote for each sum that it shows, however many rounds there are.
        for (step, sum) in shown.collect::<BTreeSet<_>>() {
            steps.entry(step).or_default().push((at, *sum));
        }
    }
    let mut odd = Vec::new();
    for (step, sums) in steps {
        let mut votes: BTreeMap<u64, usize> = BTreeMap::new();
        sums.iter().for_each(|(_, sum)| *votes.entry(*sum).or_default() += 1);
        let right = votes.iter().find(|(_, count)| 2 * **count > sums.len()).map(|(sum, _)| *sum);
        let wrong = sums.iter().filter(|(_, sum)| Some(*sum) != right);
        odd.extend(wrong.map(|(at, sum)| {
            let others = match right {
                Some(right) => format!("that of most to {right:x}"),
                None => {
                    let others = votes.keys().filter(|other| *other != sum);
                    let others: Vec<_> = others.map(|other| format!("{other:x}")).collect();
                    format!(
                        "others' to {}; they differ, and which is right is not known",
                        others.join(" and ")
                    )
                }
            };
            (*at, format!("{step}: what it showed sums to {sum:x}, {others}"))
        }));
    }
    let taken = odd.into_iter().map(|(at, why)| {
        all[at].1.clear();
        (all[at].0, why)
    });
    taken.collect()
}

/// The sums of the last round, for a record: as text, since the numbers of JSON readers are rarely 64 bits wide.
pub(crate) fn sums(rounds: &[Figures]) -> BTreeMap<String, String> {
    let sums = rounds.last().map(|last| &last.sums).into_iter().flatten();
    sums.map(|(name, sum)| (name.clone(), format!("{sum:x}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn showed(sum: u64) -> Outcome {
        Figures { sums: BTreeMap::from([("scan".to_owned(), sum)]), ..Figures::default() }.into()
    }

    #[test]
    fn rounds_turn_and_end_with_the_first_that_fails() {
        let mut order = String::new();
        let measured = rounds(['a', 'b', 'c'], 3, |subject, before| {
            order.push(subject);
            assert_eq!(before.len(), order.matches(subject).count() - 1);
            Ok(match (subject, order.len()) {
                ('b', 4..) => Outcome::Failed("wrong".to_owned()),
                ('c', _) => Outcome::Left("too large".to_owned()),
                _ => showed(1),
            })
        });
        let counts: Vec<_> = measured.unwrap().into_iter().map(|(of, rounds)| (of, rounds.len())).collect();
        assert_eq!((order.as_str(), &counts[..]), ("abcbaa", &[('a', 3), ('b', 0), ('c', 0)][..]));
    }

    #[test]
    fn those_that_differ_from_most_are_odd() {
        let mut sums = [7, 9, 7, 8].into_iter();
        let mut measured = rounds(['a', 'b', 'c', 'x'], 1, |_, _| Ok(showed(sums.next().unwrap()))).unwrap();
        let odd = take_odd(&mut measured, |of, step| of != 'x' && step == "scan");
        assert_eq!(odd, [('b', "scan: what it showed sums to 9, that of most to 7".to_owned())]);
        // It has no row in tables, no record and no part in goals.
        assert_eq!(measured.iter().map(|(_, rounds)| rounds.len()).collect::<Vec<_>>(), [1, 0, 1, 1]);
        assert_eq!(super::sums(&measured[0].1)["scan"], "7");
    }

    #[test]
    fn without_a_majority_nobody_is_taken_to_be_right() {
        let odd = |sums: &[u64]| {
            let mut sums = sums.iter();
            let all = ['a', 'b', 'c', 'd'];
            let mut measured =
                rounds(all[..sums.len()].iter().copied(), 1, |_, _| Ok(showed(*sums.next().unwrap())))
                    .unwrap();
            take_odd(&mut measured, |_, _| true)
        };
        let what = |own: u64, other: u64| {
            format!(
                "scan: what it showed sums to {own}, others' to {other}; they differ, and which is right is not known"
            )
        };
        assert_eq!(odd(&[7, 9]), [('a', what(7, 9)), ('b', what(9, 7))]);
        assert_eq!(odd(&[7, 9, 7, 9]).len(), 4);
        assert_eq!(odd(&[7, 7, 8, 9]).len(), 4, "half is no majority");
        assert_eq!(odd(&[7, 9, 7, 7]).len(), 1);
        assert!(odd(&[7]).is_empty() && odd(&[7, 7]).is_empty());
    }

    #[test]
    fn a_subject_has_one_vote_in_all_rounds() {
        let mut sums = [7, 9, 8, 7].into_iter();
        let mut measured = rounds(['a', 'b'], 2, |_, _| Ok(showed(sums.next().unwrap()))).unwrap();
        // The second round goes the other way: a shows 7 twice, b shows 9 and 8.
        assert_eq!(take_odd(&mut measured, |_, _| true).len(), 3);
    }
}
