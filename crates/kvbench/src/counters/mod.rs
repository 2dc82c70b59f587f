//! What the processor counts while a loop runs, of the calling thread alone, in user mode.
//!
//! The provider is the system's perf events. A counter that cannot be had, or that had to share its place in the processor
//! with others and so missed a part, has no figure: nothing is estimated, and nothing missing is zero. Counters are set up
//! when an arm begins, and started and read outside of what is timed.

use serde::{Deserialize, Serialize};
use std::cell::RefCell;

/// What can be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Event {
    /// Instructions that were carried out.
    Instructions,
    /// Cycles of the core.
    Cycles,
    /// Cycles of the reference clock.
    ReferenceCycles,
    /// Accesses to the last-level cache.
    LlcReferences,
    /// Of these, those that went to memory.
    LlcMisses,
    /// Branches.
    Branches,
    /// Of these, those that were predicted wrongly.
    BranchMisses,
    /// Loads whose page was not in the buffer of translations.
    DtlbMisses,
}

/// All of them, in the order of tables.
pub(crate) const EVENTS: &[Event] = &[
    Event::Instructions,
    Event::Cycles,
    Event::ReferenceCycles,
    Event::LlcReferences,
    Event::LlcMisses,
    Event::Branches,
    Event::BranchMisses,
    Event::DtlbMisses,
];

impl Event {
    /// The name, which is the end of a figure's.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Event::Instructions => "instructions",
            Event::Cycles => "cycles",
            Event::ReferenceCycles => "reference_cycles",
            Event::LlcReferences => "llc_references",
            Event::LlcMisses => "llc_misses",
            Event::Branches => "branches",
            Event::BranchMisses => "branch_misses",
            Event::DtlbMisses => "dtlb_misses",
        }
    }
}

/// What was counted, by event; those that were not are missing. Sums of loops of one thread: what is missing in one is
/// missing in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    counts: [u64; EVENTS.len()],
    missing: u16,
}

impl Counts {
    /// Nothing was counted.
    fn none() -> Self {
        Counts { counts: [0; EVENTS.len()], missing: u16::MAX }
    }

    /// How often this happened; `None` if that is not known.
    pub(crate) fn of(&self, event: Event) -> Option<u64> {
        (self.missing >> event as u16 & 1 == 0).then_some(self.counts[event as usize])
    }

    /// Adds those of another stretch.
    pub(crate) fn add(&mut self, other: Counts) {
        self.missing |= other.missing;
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
    }
}

thread_local! {
    static COUNTERS: RefCell<Vec<(Event, provider::Counter)>> = const { RefCell::new(Vec::new()) };
}

/// Sets counters up for the calling thread. Says who counts what, or why nobody does.
pub(crate) fn set_up(events: &[Event]) -> String {
    let mut counters = Vec::new();
    let mut refused = None;
    for &event in events {
        match provider::open(event) {
            Ok(counter) => counters.push((event, counter)),
            Err(why) => refused = Some(why),
        }
    }
    let names: Vec<_> = counters.iter().map(|(event, _)| event.name()).collect();
    let said = match refused {
        _ if events.is_empty() => "nothing is to be counted".to_owned(),
        Some(why) if names.is_empty() => format!("nothing is counted: {why}"),
        Some(why) => format!("perf events count {}; not the others: {why}", names.join(", ")),
        None => format!("perf events count {}", names.join(", ")),
    };
    COUNTERS.with_borrow_mut(|own| *own = counters);
    said
}

/// Begins to count, from zero.
pub(crate) fn start() {
    COUNTERS.with_borrow_mut(|counters| counters.iter_mut().for_each(|(_, counter)| counter.start()));
}

/// Ends that; what was counted.
pub(crate) fn stop() -> Counts {
    COUNTERS.with_borrow_mut(|counters| {
        let mut counts = Counts::none();
        counters.iter_mut().for_each(|(_, counter)| counter.stop());
        for (event, counter) in counters {
            if let Some(count) = counter.read() {
                counts.counts[*event as usize] = count;
                counts.missing &= !(1 << *event as u16);
            }
        }
        counts
    })
}

#[cfg(target_os = "linux")]
mod provider {
    use super::Event;
    use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Hardware};
    use perf_event::{Builder, ReadFormat};

    pub(super) struct Counter(perf_event::Counter);

    fn built<E: perf_event::events::Event>(event: E) -> std::io::Result<perf_event::Counter> {
        // The kernel and a hypervisor are left out unless they are asked for.
        Builder::new(event)
            .read_format(ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING)
            .build()
    }

    pub(super) fn open(event: Event) -> Result<Counter, String> {
        let translations =
            Cache { which: CacheId::DTLB, operation: CacheOp::READ, result: CacheResult::MISS };
        let counter = match event {
            Event::Instructions => built(Hardware::INSTRUCTIONS),
            Event::Cycles => built(Hardware::CPU_CYCLES),
            Event::ReferenceCycles => built(Hardware::REF_CPU_CYCLES),
            Event::LlcReferences => built(Hardware::CACHE_REFERENCES),
            Event::LlcMisses => built(Hardware::CACHE_MISSES),
            Event::Branches => built(Hardware::BRANCH_INSTRUCTIONS),
            Event::BranchMisses => built(Hardware::BRANCH_MISSES),
            Event::DtlbMisses => built(translations),
        };
        counter.map(Counter).map_err(|error| format!("{}: {error}", event.name()))
    }

    impl Counter {
        pub(super) fn start(&mut self) {
            // One that does not start has no time, and so no figure.
            drop(self.0.reset());
            drop(self.0.enable());
        }

        pub(super) fn stop(&mut self) {
            drop(self.0.disable());
        }

        /// The count, if nothing was missed.
        pub(super) fn read(&mut self) -> Option<u64> {
            let read = self.0.read_full().ok()?;
            let (enabled, running) = (read.time_enabled()?, read.time_running()?);
            (running > std::time::Duration::ZERO && running == enabled).then(|| read.count())
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod provider {
    use super::Event;

    pub(super) enum Counter {}

    pub(super) fn open(_: Event) -> Result<Counter, String> {
        Err("there are no perf events on this system".to_owned())
    }

    impl Counter {
        pub(super) fn start(&mut self) {
            match *self {}
        }

        pub(super) fn stop(&mut self) {
            match *self {}
        }

        pub(super) fn read(&mut self) -> Option<u64> {
            match *self {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_once_is_missing_in_the_sum() {
        let counted = |missing| Counts { counts: [5; EVENTS.len()], missing };
        let mut sum = Counts::default();
        sum.add(counted(0));
        sum.add(counted(1 << Event::Cycles as u16));
        assert_eq!((sum.of(Event::Instructions), sum.of(Event::Cycles)), (Some(10), None));
        assert!(EVENTS.iter().enumerate().all(|(at, event)| *event as usize == at));
    }

    /// On a machine that counts, a loop of a million steps has as many instructions, and more the longer it is.
    #[test]
    fn counts_grow_with_the_work() {
        let said = set_up(EVENTS);
        let work = |steps: u64| {
            start();
            std::hint::black_box(
                (0..std::hint::black_box(steps)).fold(0, |sum, at| sum ^ std::hint::black_box(at)),
            );
            stop()
        };
        let (short, long) = (work(1_000_000), work(4_000_000));
        match short.of(Event::Instructions).zip(long.of(Event::Instructions)) {
            Some((short, long)) => {
                assert!(
                    (1_000_000..100_000_000).contains(&short) && long > 3 * short,
                    "{short} {long}: {said}"
                )
            }
            None => println!("skipped: instructions are not counted here: {said}"),
        }
        set_up(&[]);
        assert_eq!(work(1), Counts::none());
    }
}
