//! A stretch of operations of one kind, measured: time and CPU, the time of each operation, bytes written; and
//! waiting until a store is at rest.
//!
//! Operations are prepared in blocks with the clock stopped. So between blocks a store's threads have a little untimed
//! time; it is the same for all stores.

use super::store::{Answer, Store};
use crate::job::{Figures, TIMELINE_MS};
use crate::{latency, usage};
use hdrhistogram::Histogram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Operations prepared at a time.
const BLOCK: u64 = 4096;
/// A stretch of a time line.
const STRETCH: Duration = Duration::from_millis(TIMELINE_MS);
/// Stretches of a second.
const STRETCHES: usize = (1000 / TIMELINE_MS) as usize;
/// How often a store is checked for background work.
const LOOK: Duration = Duration::from_millis(20);
/// The arm fails if its store still works in the background after this time.
const REST_MOST: Duration = Duration::from_secs(1800);
/// Share of a CPU below which background threads are considered to only poll; and over how many looks.
const IDLE_SHARE: f64 = 0.02;
const LOOKS: usize = 25;

/// What was measured.
pub(crate) struct Lap {
    /// Operations done.
    pub(crate) ops: u64,
    /// Elapsed time of the operations.
    pub(crate) wall: Duration,
    /// CPU time of all threads, background work included.
    pub(crate) cpu: Duration,
    /// Bytes written, if the system reports them.
    pub(crate) written: Option<u64>,
    /// The same of bytes read from devices, and of read requests to the device of the store.
    pub(crate) read: [Option<u64>; 2],
    /// [`Store::block_reads`] of a lap without writes.
    pub(crate) block_reads: Option<u64>,
    /// Time of each operation in nanoseconds; empty if they were timed only as a whole.
    pub(crate) each: Histogram<u64>,
    /// Operations that ended in each interval of [`STRETCH`]; empty if they were timed only as a whole.
    pub(crate) timeline: Vec<u64>,
}

/// A lap that runs.
pub(crate) struct Running {
    cpu: Duration,
    /// CPU time of making operations, which is not the store's.
    making: Duration,
    written: Option<u64>,
    directory: PathBuf,
    read: [Option<u64>; 2],
    lap: Lap,
}

/// What was read so far.
fn read_of(directory: &Path) -> [Option<u64>; 2] {
    [usage::read_bytes(), usage::read_requests(directory)]
}

/// How much a counter grew.
pub(crate) fn grown((now, before): (Option<u64>, Option<u64>)) -> Option<u64> {
    now.zip(before).map(|(now, before)| now.saturating_sub(before))
}

impl Running {
    /// Starts, for a store in a directory.
    pub(crate) fn start(directory: &Path) -> Answer<Self> {
        Ok(Running {
            making: Duration::ZERO,
            written: usage::written_bytes(),
            directory: directory.to_owned(),
            read: read_of(directory),
            lap: Lap {
                ops: 0,
                wall: Duration::ZERO,
                cpu: Duration::ZERO,
                written: None,
                read: [None; 2],
                block_reads: None,
                each: latency::histogram(),
                timeline: Vec::new(),
            },
            cpu: usage::process_cpu(),
        })
    }

    /// Prepares and runs `ops` operations, and times each one.
    pub(crate) fn each<O>(
        &mut self,
        ops: u64,
        mut make: impl FnMut(u64) -> O,
        mut run: impl FnMut(&O) -> Answer<()>,
    ) -> Answer<()> {
        let mut block = Vec::with_capacity(BLOCK.min(ops) as usize);
        let (mut at, mut ended) = (0, 0);
        while at < ops {
            let making = usage::thread_cpu();
            block.clear();
            block.extend((at..ops.min(at + BLOCK)).map(&mut make));
            at += block.len() as u64;
            self.making += usage::thread_cpu() - making;
            let start = Instant::now();
            let mut last = start;
            for op in &block {
                run(op)?;
                let now = Instant::now();
                self.lap.each.saturating_record((now - last).as_nanos() as u64);
                last = now;
                // An operation that stalled counts in the interval in which it ends; intervals during the stall get 0.
                while self.lap.wall + (now - start) >= STRETCH * (self.lap.timeline.len() as u32 + 1) {
                    self.lap.timeline.push(std::mem::take(&mut ended));
                }
                ended += 1;
            }
            self.lap.wall += last - start;
        }
        self.lap.ops += ops;
        Ok(())
    }

    /// Times `run` as a whole; it counts as `ops` operations.
    pub(crate) fn whole(&mut self, ops: u64, run: impl FnOnce() -> Answer<()>) -> Answer<()> {
        let start = Instant::now();
        run()?;
        self.lap.wall += start.elapsed();
        self.lap.ops += ops;
        Ok(())
    }

    /// Adds the times of operations that other threads did.
    pub(crate) fn add_each(&mut self, each: &Histogram<u64>) -> Answer<()> {
        Ok(self.lap.each.add(each)?)
    }

    /// Ends where nothing was written.
    pub(crate) fn stop(mut self) -> Lap {
        self.lap.cpu = usage::process_cpu().saturating_sub(self.cpu + self.making);
        self.lap.written = grown((usage::written_bytes(), self.written));
        let [bytes, requests] = read_of(&self.directory);
        self.lap.read = [(bytes, self.read[0]), (requests, self.read[1])].map(grown);
        self.lap
    }

    /// Ends when the store is at rest. CPU and bytes include the background work. Also returns how long it took.
    pub(crate) fn settle(self, store: &impl Store) -> Answer<(Lap, Duration)> {
        let took = settle(store)?;
        Ok((self.stop(), took))
    }
}

/// What a look at a store showed of the time since the look before.
#[derive(Clone, Copy, Default)]
struct Look {
    took: Duration,
    cpu: Duration,
    /// Whether it wrote, or reports work.
    acts: bool,
    /// Whether one of its threads runs, or waits for a disk.
    runs: bool,
}

/// How long a store worked, and how long it has done nothing since.
///
/// Counts as work: a look that wrote or found the store busy; the second of two looks in a row with a running thread;
/// more than [`IDLE_SHARE`] of a CPU both in a look and in the last [`LOOKS`]. So threads that only look for work now
/// and then do not count, also where other processes have the CPU and such a thread is seen as it waits for its turn.
struct Rest {
    worked: Duration,
    idle: Duration,
    last: [Look; LOOKS],
}

impl Rest {
    fn new() -> Rest {
        let last = [Look { took: LOOK, ..Look::default() }; LOOKS];
        Rest { worked: Duration::ZERO, idle: Duration::ZERO, last }
    }

    /// Adds a stretch of time. What a store waits for, with nothing to do, is not its work, even if it works later.
    fn add(&mut self, look: Look) {
        let ran = self.last[LOOKS - 1].runs;
        self.last.rotate_left(1);
        self.last[LOOKS - 1] = look;
        let is_much = |looks: &[Look]| {
            let of = |part: fn(&Look) -> Duration| looks.iter().map(part).sum::<Duration>();
            of(|look| look.cpu) > of(|look| look.took).mul_f64(IDLE_SHARE)
        };
        if look.acts || look.runs && ran || is_much(&[look]) && is_much(&self.last) {
            self.worked += look.took;
            self.idle = Duration::ZERO;
        } else {
            self.idle += look.took;
        }
    }
}

/// Waits until a store is at rest. Returns how long it worked.
pub(crate) fn settle(store: &impl Store) -> Answer<Duration> {
    settle_beside(store, || ())
}

/// Does the same, and looks at something else now and then. The work of `look` does not count as the store's.
pub(crate) fn settle_beside<S: Store>(store: &S, mut look: impl FnMut()) -> Answer<Duration> {
    let (start, mut rest) = (Instant::now(), Rest::new());
    store.hand_over()?;
    rest.worked += start.elapsed();
    let (mut looked, mut cpu, mut written) = (Instant::now(), usage::process_cpu(), usage::written_bytes());
    while rest.idle < S::REST {
        if start.elapsed() > REST_MOST {
            return Err("it does not come to rest".into());
        }
        std::thread::sleep(LOOK);
        let (now_cpu, now_written, took) = (usage::process_cpu(), usage::written_bytes(), looked.elapsed());
        rest.add(Look {
            took,
            cpu: now_cpu - cpu,
            acts: now_written != written || store.is_busy(),
            runs: usage::others_work(),
        });
        look();
        // The cost of the looks is not counted.
        (looked, cpu, written) = (Instant::now(), usage::process_cpu(), now_written);
    }
    Ok(rest.worked)
}

impl Lap {
    /// Notes the figures under a name. Times are for one of `parts` in which an operation is counted.
    pub(crate) fn note(&self, name: &str, parts: u64, figures: &mut Figures) {
        let ops = (self.ops * parts).max(1) as f64;
        let ns = |time: Duration| time.as_nanos() as f64 / ops;
        figures.set(&format!("{name}_ns"), ns(self.wall));
        figures.set(&format!("{name}_cpu_ns"), ns(self.cpu));
        figures.set(&format!("{name}_ops_per_s"), ops / self.wall.as_secs_f64().max(1e-9));
        for (name, read) in [format!("{name}_read_bytes"), format!("{name}_reads")].iter().zip(self.read) {
            if let Some(read) = read {
                figures.set(name, read as f64 / ops);
            }
        }
        if !self.each.is_empty() {
            figures.values.extend(latency::quantiles(name, &self.each));
        }
        let seconds = self.timeline.windows(STRETCHES).map(|second| second.iter().sum::<u64>());
        if let Some(worst) = seconds.min() {
            figures.set(&format!("{name}_worst_ops_per_s"), (worst * parts) as f64);
            figures.timelines.insert(name.to_owned(), self.timeline.clone());
        }
    }

    /// The same of a step without writes, and what a store wrote meanwhile: it may merge what was read often. Of the
    /// blocks that were not in the store's cache, those that the device was not asked for were in the system's, which
    /// may also read several by one request.
    pub(crate) fn note_read(&self, name: &str, parts: u64, figures: &mut Figures) {
        self.note(name, parts, figures);
        let ops = (self.ops * parts).max(1) as f64;
        let cached = self.block_reads.zip(self.read[1]).map(|(blocks, device)| blocks.saturating_sub(device));
        for (figure, count) in
            [("written_bytes", self.written), ("block_reads", self.block_reads), ("page_cache_reads", cached)]
        {
            if let Some(count) = count {
                figures.set(&format!("{name}_{figure}"), count as f64 / ops);
            }
        }
    }

    /// Bytes written for a byte stored, if the system reports them.
    pub(crate) fn written_per_byte(&self, stored: u64) -> Option<f64> {
        Some(self.written? as f64 / stored.max(1) as f64)
    }

    /// Notes bytes written for a byte stored.
    pub(crate) fn note_written(&self, name: &str, stored: u64, figures: &mut Figures) {
        if let Some(written) = self.written_per_byte(stored) {
            figures.set(&format!("{name}_written_per_byte"), written);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// What looks show, each of 20 ms: worked and idle.
    fn seen(looks: &[Look]) -> (Duration, Duration) {
        let mut rest = Rest::new();
        looks.iter().for_each(|look| rest.add(Look { took: MS(20), ..*look }));
        (rest.worked, rest.idle)
    }

    #[test]
    fn idle_time_before_late_work_is_no_work() {
        let (idle, acts) = (Look::default(), Look { acts: true, ..Look::default() });
        assert_eq!(seen(&[acts, idle, idle]), (MS(20), MS(40)));
        assert_eq!(seen(&[acts, idle, idle, acts]), (MS(40), MS(0)));
        assert_eq!(seen(&[acts, idle, idle, acts, idle]), (MS(40), MS(20)));
    }

    /// On a busy machine a store never came to rest, because its thread that looks for work was seen waiting for a CPU.
    #[test]
    fn who_looks_for_work_now_and_then_has_none() {
        let (idle, runs) = (Look::default(), Look { runs: true, ..Look::default() });
        assert_eq!(seen(&[runs, idle, idle, runs, idle]), (MS(0), MS(100)));
        assert_eq!(seen(&[idle, runs, runs, runs, idle]), (MS(40), MS(20)));
        let polls = Look { cpu: MS(1), ..idle };
        assert_eq!(seen(&[polls, idle, idle, idle, idle, polls, idle]), (MS(0), MS(140)));
        // A thread that looks at much once a second, after which its caches are cold.
        let once = Look { cpu: MS(4), ..idle };
        let second: Vec<Look> = [once].into_iter().chain([idle; 49]).collect();
        assert_eq!(seen(&second.repeat(3)), (MS(0), MS(3000)));
        // More than a fiftieth of the time is work, in several looks or in one.
        assert_eq!(seen(&[&[idle][..], &[polls; 12], &[idle]].concat()), (MS(40), MS(20)));
        assert_eq!(seen(&[Look { cpu: MS(20), ..idle }, idle, idle]), (MS(20), MS(40)));
    }
}
