//! The workload of llds's own benchmark: 64-bit integer keys, the decimal string of a counter for a value,
//! two threads (or more) that insert disjoint parts and then look all up; wall time.
//!
//! Keys come from the counter by a bijection and are kept nowhere, so that memory holds the structure alone.
//! Each thread looks up the part that the next one inserted, in another order, and checks every value.

use crate::data::{CounterSource, Counters, Decimal, Kind, Walk};
use crate::job::{Done, Figures, Job, Outcome, Report, room, wrong};
use crate::machine;
use crate::subjects::{BATCH_KEYS, Reader, SESSION_OPS, Subject, Writer};
use std::ops::Range;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Insertions of a thread between two looks at the memory that is left.
const ROOM_OPS: u64 = 1 << 17;

/// Inserts and looks up.
pub(crate) fn measure<S: Subject<Counters>>(job: &Job, subject: S, report: Report<'_>) -> Done<Figures> {
    let source = Counters::source(job.keys, job.seed, Walk::default());
    let mut figures = Figures::default();
    let (parts, keys) = (parts(job.keys, job.threads as u64), job.keys as f64);
    let resident = machine::resident_bytes();

    let inserted =
        in_threads(&parts, report, |_, part, say| insert(&subject, &source, part, job.margin_bytes, say));
    let insert_time = inserted.1;
    inserted.0.into_iter().collect::<Done<Vec<()>>>()?;
    figures.set("insert_s", insert_time.as_secs_f64());
    figures.set("insert_ns", insert_time.as_nanos() as f64 / keys);
    if let Some((before, after)) = resident.zip(machine::resident_bytes()) {
        let occupied = (after.saturating_sub(before) + subject.kernel_bytes()) as f64;
        figures.set("resident_bytes", occupied);
        figures.set("resident_bytes_per_key", occupied / keys);
    }
    figures.notes.extend(subject.memory_note());

    let mut looked_up = |name: &str, batched: bool| -> Done<Duration> {
        let (found, time) = in_threads(&parts, report, |thread, _, say| {
            let part = parts[(thread + 1) % parts.len()].clone();
            if batched {
                look_up_batched(&subject, &source, part)
            } else {
                look_up(&subject, &source, part, say)
            }
        });
        let right: u64 = found.iter().sum();
        if right != job.keys {
            return wrong(format!("{name}: {right} of {} keys had their value", job.keys));
        }
        Ok(time)
    };
    let get_time = looked_up("look-up", false)?;
    let batch_time = if S::BATCHED { Some(looked_up("batched look-up", true)?) } else { None };
    figures.set("get_s", get_time.as_secs_f64());
    figures.set("get_ns", get_time.as_nanos() as f64 / keys);
    figures.set("wall_s", (insert_time + get_time).as_secs_f64());
    if let Some(time) = batch_time {
        figures.set("multi_get_64_s", time.as_secs_f64());
    }
    std::mem::forget(subject);
    Ok(figures)
}

/// Cuts the counters into one part per thread.
fn parts(keys: u64, threads: u64) -> Vec<Range<u64>> {
    let cut = |at: u64| (u128::from(keys) * u128::from(at) / u128::from(threads)) as u64;
    (0..threads).map(|thread| cut(thread)..cut(thread + 1)).collect()
}

/// Runs `work` in a thread for each part; passes the progress of the first one on.
fn in_threads<R: Send>(
    parts: &[Range<u64>],
    report: Report<'_>,
    work: impl Fn(usize, Range<u64>, &dyn Fn(String)) -> R + Sync,
) -> (Vec<R>, Duration) {
    let (sender, progress) = mpsc::channel();
    let (start, work) = (Instant::now(), &work);
    std::thread::scope(|scope| {
        let mut sender = Some(sender);
        let threads: Vec<_> = (0..parts.len())
            .map(|thread| {
                let (part, sender) = (parts[thread].clone(), sender.take());
                scope.spawn(move || {
                    work(thread, part, &|step| {
                        // The receiver is gone only when the run is over.
                        sender.iter().for_each(|sender| drop(sender.send(step.clone())));
                    })
                })
            })
            .collect();
        progress.iter().for_each(&mut *report);
        let results =
            threads.into_iter().map(|thread| thread.join().expect("a measuring thread does not panic"));
        (results.collect(), start.elapsed())
    })
}

fn insert<S: Subject<Counters>>(
    subject: &S,
    source: &CounterSource,
    part: Range<u64>,
    margin_bytes: u64,
    say: &dyn Fn(String),
) -> Done<()> {
    let len = part.end - part.start;
    for from in part.clone().step_by(SESSION_OPS) {
        let done = from - part.start;
        if done.is_multiple_of(ROOM_OPS) {
            room(done, margin_bytes)?;
            say(format!("insert {}%", done * 100 / len));
        }
        let Some(mut writer) = subject.shared_writer() else {
            return Err(Outcome::Left("takes one writer only".to_owned()));
        };
        for counter in from..part.end.min(from + SESSION_OPS as u64) {
            writer.insert(source.key(counter), Decimal::new(counter).as_bytes());
        }
    }
    Ok(())
}

/// A step that visits every number below `len` once, far from the one before, for hardly any time.
fn stride(len: u64) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let golden = (len as f64 * 0.618_033_988_749_894_9) as u64;
    (golden.max(1)..).find(|&step| gcd(step, len) == 1).unwrap_or(1)
}

/// Looks every counter of the part up; returns how many had their value.
fn look_up<S: Subject<Counters>>(
    subject: &S,
    source: &CounterSource,
    part: Range<u64>,
    say: &dyn Fn(String),
) -> u64 {
    let len = part.end - part.start;
    let (step, mut at, mut right) = (stride(len), 0, 0);
    for from in (0..len).step_by(SESSION_OPS) {
        if from.is_multiple_of(ROOM_OPS) {
            say(format!("look up {}%", from * 100 / len));
        }
        let reader = subject.reader();
        for _ in from..len.min(from + SESSION_OPS as u64) {
            let counter = part.start + at;
            let value = Decimal::new(counter);
            let same = reader.get(source.key(counter), |found| found == value.as_bytes());
            right += u64::from(same == Some(true));
            at += step;
            at -= if at >= len { len } else { 0 };
        }
    }
    right
}

/// As [`look_up`], in batches.
fn look_up_batched<S: Subject<Counters>>(subject: &S, source: &CounterSource, part: Range<u64>) -> u64 {
    let len = part.end - part.start;
    let (step, mut at, mut right) = (stride(len), 0, 0);
    let (mut keys, mut counters) = ([0; BATCH_KEYS], [0; BATCH_KEYS]);
    for from in (0..len).step_by(BATCH_KEYS) {
        let batch = (len - from).min(BATCH_KEYS as u64) as usize;
        for i in 0..batch {
            counters[i] = part.start + at;
            keys[i] = source.key(counters[i]);
            at += step;
            at -= if at >= len { len } else { 0 };
        }
        subject.reader().multi_get(&keys[..batch], |i, found| {
            right += u64::from(found == Some(Decimal::new(counters[i]).as_bytes()));
        });
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_visit_every_number_once() {
        for len in [1, 2, 3, 10, 97, 1000, 65_536] {
            let (step, mut at) = (stride(len), 0);
            let mut seen = vec![false; len as usize];
            for _ in 0..len {
                assert!(!std::mem::replace(&mut seen[at as usize], true));
                at += step;
                at -= if at >= len { len } else { 0 };
            }
        }
    }

    #[test]
    fn parts_cover_everything() {
        assert_eq!(parts(10, 3), [0..3, 3..6, 6..10]);
        assert_eq!(parts(1, 2), [0..0, 0..1]);
    }
}
