//! A pointer chase: what a load costs whose address is not known before the last one has come, in memory of some size
//! on pages of some kind. It is the price that a structure of scattered nodes pays on every level.
//!
//! The memory is lines of 64 bytes in one cycle of random order; each has the number of the next. One chase shows true
//! latency; eight chases at once show how much the core can overlap.

use crate::affinity;
use crate::data::Permutation;
use crate::job::{Done, Figures, Job, Outcome, Report, Task, room, wrong};
use crate::machine::Occupied;
use crate::measure::{Timed, Watch};
use crate::sizes;
use forrest_machine::pages::Bytes;
use std::io;

/// Bytes of a line.
pub(crate) const LINE_BYTES: usize = 64;
/// Chases at once.
const AT_ONCE: usize = 8;
/// Lines put at a time.
const PUT_LINES: usize = 1 << 14;

/// Does a job of this kind.
pub(crate) fn dispatch(job: &Job, report: Report<'_>) -> Outcome {
    let Task::Chase(sizes) = &job.task else { return Outcome::Left("not a chase".to_owned()) };
    if job.pin {
        affinity::pin_to_last();
    }
    let mut figures = Figures::default();
    for &bytes in sizes {
        report(format!("chase through {}", sizes::text(bytes)));
        if let Err(end) = chase(job, bytes, &mut figures) {
            return end;
        }
    }
    figures.into()
}

fn chase(job: &Job, bytes: u64, figures: &mut Figures) -> Done<()> {
    let broken = |error: io::Error| Outcome::Failed(error.to_string());
    let lines = (bytes / LINE_BYTES as u64).max(AT_ONCE as u64);
    // An eighth more while the order is laid out.
    room(lines, job.margin_bytes.saturating_add(bytes + bytes / 8))?;
    let before = Occupied::of_process();
    let memory = lay_out(lines, job).map_err(broken)?;
    let (memory, _) = memory.as_chunks::<LINE_BYTES>();
    if let Some((before, after)) = before.zip(Occupied::of_process())
        && let Some(percent) = after.huge_percent_since(before)
    {
        figures.set(&format!("resident_huge_percent@{lines}"), percent);
    }
    // Once round, so that every page is there and every line was somewhere, unless that takes longer than what is
    // measured.
    let loads = job.probes;
    std::hint::black_box(follow(memory, [0], loads.min(lines)).sum);
    let alone = follow(memory, [0], loads);
    figures.set(&format!("chase_ns@{lines}"), alone.ns(job.clock));
    let starts = std::array::from_fn(|at| (at as u64 * (lines / AT_ONCE as u64)) as usize);
    let together = follow::<AT_ONCE>(memory, starts, loads);
    figures.set(&format!("chase_8_ns@{lines}"), together.ns(job.clock));
    let expected = walked(lines, job, loads);
    if alone.sum != expected {
        return wrong(format!("{lines} lines: the chase ended at line {}, not {expected}", alone.sum));
    }
    Ok(())
}

/// The order of the cycle: line `order(k)` has the number `order(k + 1)`.
fn order(lines: u64, job: &Job) -> Permutation {
    Permutation::new(lines, job.seed)
}

/// The line that a chase from line 0 reaches after `loads` loads.
fn walked(lines: u64, job: &Job, loads: u64) -> u64 {
    let order = order(lines, job);
    let begin = (0..lines).find(|place| order.apply(*place) == 0).unwrap_or(0);
    order.apply((begin + loads) % lines)
}

fn lay_out(lines: u64, job: &Job) -> io::Result<Bytes> {
    let order = order(lines, job);
    let mut next = vec![0u64; lines as usize];
    let mut line = order.apply(0);
    for place in 1..=lines {
        let following = order.apply(place % lines);
        next[line as usize] = following;
        line = following;
    }
    let mut memory = Bytes::with_room(lines as usize * LINE_BYTES, job.pages.into())?;
    let mut some = Vec::with_capacity(PUT_LINES * LINE_BYTES);
    for part in next.chunks(PUT_LINES) {
        some.clear();
        for next in part {
            some.extend_from_slice(&next.to_le_bytes());
            some.resize(some.len() + LINE_BYTES - size_of::<u64>(), 0);
        }
        memory.extend(&some)?;
    }
    Ok(memory)
}

/// The line after a line.
#[inline]
fn after(memory: &[[u8; LINE_BYTES]], line: usize) -> usize {
    memory[line].first_chunk().map_or(0, |next| u64::from_le_bytes(*next)) as usize
}

/// Follows `N` chases, `loads` loads in total. The sum is of the lines where they end.
fn follow<const N: usize>(memory: &[[u8; LINE_BYTES]], mut at: [usize; N], loads: u64) -> Timed {
    let watch = Watch::start();
    for _ in 0..loads / N as u64 {
        at = at.map(|line| after(memory, line));
    }
    watch.stop(loads / N as u64 * N as u64, at.iter().map(|line| *line as u64).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subjects::Pages;

    fn job(pages: Pages, sizes: &[u64], probes: u64) -> Job {
        Job { pages, probes, ..Job::of(Task::Chase(sizes.to_vec()), "chase", 0) }
    }

    #[test]
    fn every_line_is_in_the_one_cycle() {
        for lines in [8, 9, 1000, 4097] {
            let job = job(Pages::Plain, &[], 0);
            let memory = lay_out(lines, &job).unwrap();
            let memory = memory.as_chunks::<LINE_BYTES>().0;
            assert_eq!(memory.len() as u64, lines);
            let (mut seen, mut line) = (vec![false; lines as usize], 0);
            for _ in 0..lines {
                assert!(!std::mem::replace(&mut seen[line], true), "{lines}: {line} comes early");
                line = after(memory, line);
            }
            assert_eq!(line, 0);
            for loads in [0, 1, 7, lines, 3 * lines + 5] {
                assert_eq!(follow(memory, [0], loads).sum, walked(lines, &job, loads), "{lines}, {loads}");
            }
        }
    }

    #[test]
    fn sizes_are_measured_one_after_the_other() {
        let Outcome::Figures(figures) =
            dispatch(&job(Pages::Plain, &[1 << 16, 1 << 18], 10_000), &mut |_| ())
        else {
            panic!("it was not measured");
        };
        for name in ["chase_ns@1024", "chase_ns@4096", "chase_8_ns@1024", "chase_8_ns@4096"] {
            assert!(figures.values[name] > 0.0, "{name}");
        }
        assert!(matches!(dispatch(&job(Pages::Plain, &[1 << 50], 1), &mut |_| ()), Outcome::Left(_)));
    }
}
