//! Counts events of the calling thread while a loop runs.
//!
//! Each event uses the best available [`Provider`]: the processor's counters, in user mode; for events of the system,
//! its perf events or `getrusage`; on request, a simulated processor instead of all of them. An event has no figure if
//! it is unavailable, or if its counter was multiplexed and so missed a part: nothing is estimated, and a missing
//! figure is not zero. Counters are set up when an arm begins, and read outside of the timed part.

pub(crate) mod callgrind;
pub(crate) mod code;
mod event;
#[cfg(target_os = "linux")]
mod perf;
#[cfg(not(target_os = "linux"))]
#[path = "no_perf.rs"]
mod perf;

pub(crate) use event::{EVENTS, Event, RAW};

use crate::usage;
use callgrind::Simulation;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;

/// Instructions for a cycle of the core: the end of a figure's name.
pub(crate) const IPC: &str = "ipc";

/// The sources of counts, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Provider {
    /// The processor, whose counter is read without the system.
    Rdpmc,
    /// The processor, whose counter the system reads.
    Perf,
    /// The system's perf events.
    Software,
    /// The system's statistics of each thread.
    Getrusage,
    /// A simulated processor.
    Callgrind,
}

impl Provider {
    /// In words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Provider::Rdpmc => "the processor, read by rdpmc",
            Provider::Perf => "the processor, read by perf events",
            Provider::Software => "the system, by perf events",
            Provider::Getrusage => "the system, by getrusage",
            Provider::Callgrind => "callgrind (simulated)",
        }
    }
}

/// The provider of each requested event; `None` if there is none.
pub(crate) type Counted = BTreeMap<Event, Option<Provider>>;

/// What became of setting up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SetUp {
    /// The provider of each event.
    pub(crate) counted: Counted,
    /// The reasons why there is no provider, or no better one, each with its events.
    pub(crate) refused: BTreeMap<String, Vec<Event>>,
}

/// Names of events with commas between.
fn names<'e>(events: impl IntoIterator<Item = &'e Event>) -> String {
    events.into_iter().map(|event| event.name()).collect::<Vec<_>>().join(", ")
}

impl SetUp {
    fn refuse(&mut self, event: Event, why: String) {
        self.refused.entry(why).or_default().push(event);
    }

    /// Text for a report: a line for each provider, and for each reason.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut of: BTreeMap<Option<Provider>, Vec<Event>> = BTreeMap::new();
        self.counted.iter().for_each(|(event, provider)| of.entry(*provider).or_default().push(*event));
        let nobody = of.remove(&None);
        let mut lines: Vec<_> = of
            .iter()
            .filter_map(|(provider, events)| {
                Some(format!("{} counts {}", (*provider)?.words(), names(events)))
            })
            .collect();
        lines.extend(code::line());
        lines.extend(nobody.map(|events| format!("not counted: {}", names(&events))));
        lines.extend(self.refused.iter().map(|(why, events)| format!("{}: {why}", names(events))));
        lines
    }
}

/// Counts by event, without those that were not counted. A sum over loops of one thread lacks every event that one of
/// them lacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    counts: [u64; EVENTS.len()],
    missing: u16,
    /// Which of callgrind's dumps have more, from the first to the one after the last.
    dumps: (u32, u32),
}

impl Counts {
    /// Nothing was counted.
    fn none() -> Self {
        Counts { counts: [0; EVENTS.len()], missing: u16::MAX, dumps: (0, 0) }
    }

    fn set(&mut self, event: Event, count: u64) {
        self.counts[event as usize] = count;
        self.missing &= !(1 << event as u16);
    }

    /// The number of these events; `None` if it is not known.
    fn of(&self, event: Event) -> Option<u64> {
        (self.missing >> event as u16 & 1 == 0).then_some(self.counts[event as usize])
    }

    /// Adds those of another stretch.
    pub(crate) fn add(&mut self, other: Counts) {
        self.missing |= other.missing;
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
        self.dumps = match (self.dumps, other.dumps) {
            ((0, 0), dumps) | (dumps, (0, 0)) => dumps,
            ((first, end), (other, other_end)) => (first.min(other), end.max(other_end)),
        };
    }

    /// Adds the counts of callgrind's dumps. Fails if a dump is invalid.
    pub(crate) fn with_dumps(mut self) -> Result<Counts, String> {
        SIMULATION.with_borrow_mut(|simulation| {
            let Some(simulation) = simulation else { return Ok(self) };
            for (event, count) in simulation.counts(self.dumps)? {
                self.set(event, count);
            }
            Ok(self)
        })
    }

    /// The known counts divided by `ops`, each with the end of its figure's name.
    pub(crate) fn figures(&self, ops: u64) -> Vec<(&'static str, f64)> {
        let each = |event: &Event| Some((event.name(), self.of(*event)? as f64 / ops.max(1) as f64));
        let ipc = self.of(Event::Instructions).zip(self.of(Event::Cycles).filter(|cycles| *cycles > 0));
        let ipc = ipc.map(|(instructions, cycles)| (IPC, instructions as f64 / cycles as f64));
        EVENTS.iter().filter_map(each).chain(ipc).collect()
    }
}

/// A counter that is read before and after; the difference is the count.
enum Source {
    Perf(perf::Counter),
    /// A number that the system keeps for every thread.
    Told(fn() -> Option<u64>),
}

impl Source {
    /// The current value; `None` if it missed something.
    fn now(&mut self) -> Option<u64> {
        match self {
            Source::Perf(counter) => counter.now(),
            Source::Told(now) => now(),
        }
    }
}

/// An event that is counted, and its value when the loop began.
struct Running {
    event: Event,
    source: Source,
    from: Option<u64>,
}

thread_local! {
    static RUNNING: RefCell<Vec<Running>> = const { RefCell::new(Vec::new()) };
    static SIMULATION: RefCell<Option<Simulation>> = const { RefCell::new(None) };
    static SIMULATED: Cell<bool> = const { Cell::new(false) };
}

/// The function that reads this event for the calling thread without perf events.
fn told(event: Event) -> Option<fn() -> Option<u64>> {
    fn usage_of(which: fn(forrest_machine::counters::Usage) -> u64) -> Option<u64> {
        forrest_machine::counters::thread_usage().map(which)
    }
    let told: fn() -> Option<u64> = match event {
        Event::PageFaults => || usage_of(|usage| usage.page_faults),
        Event::ContextSwitches => || usage_of(|usage| usage.context_switches),
        Event::TaskClockNs => || u64::try_from(usage::thread_cpu().as_nanos()).ok(),
        _ => return None,
    };
    told().is_some().then_some(told)
}

/// Sets counters up for the calling thread, in place of those that were: by callgrind if there is a simulation, whose
/// directory this is, and else by the best provider of each event.
pub(crate) fn set_up(events: &[Event], simulation: Option<&Path>) -> SetUp {
    let (mut running, mut done) = (Vec::new(), SetUp::default());
    for &event in events {
        let provider = match simulation {
            Some(_) => callgrind::counts(event).map(|()| Provider::Callgrind),
            None if event.is_of_system() => match perf::open_of_system(event) {
                Ok(counter) => {
                    running.push(Running { event, source: Source::Perf(counter), from: None });
                    Ok(Provider::Software)
                }
                Err(why) => match told(event) {
                    Some(told) => {
                        running.push(Running { event, source: Source::Told(told), from: None });
                        done.refuse(event, format!("no perf event: {why}"));
                        Ok(Provider::Getrusage)
                    }
                    None => Err(why),
                },
            },
            None => perf::open(event).map(|counter| {
                let why = counter.why_not_rdpmc();
                running.push(Running { event, source: Source::Perf(counter), from: None });
                match why {
                    None => Provider::Rdpmc,
                    Some(why) => {
                        done.refuse(event, format!("not read by rdpmc: {why}"));
                        Provider::Perf
                    }
                }
            }),
        };
        let provider = provider.map_err(|why| done.refuse(event, why)).ok();
        done.counted.insert(event, provider);
    }
    RUNNING.set(running);
    SIMULATED.set(simulation.is_some());
    SIMULATION.set(simulation.map(|directory| Simulation::new(directory, events)));
    if simulation.is_some() {
        forrest_machine::callgrind::begin();
    }
    done
}

/// Begins to count; true if a processor is simulated.
#[inline]
pub(crate) fn start() -> bool {
    RUNNING.with_borrow_mut(|running| running.iter_mut().for_each(|one| one.from = one.source.now()));
    let simulated = SIMULATED.get();
    if simulated {
        forrest_machine::callgrind::toggle();
    }
    simulated
}

/// Ends that; what was counted.
#[inline]
pub(crate) fn stop() -> Counts {
    let mut counts = Counts::none();
    if SIMULATED.get() {
        forrest_machine::callgrind::toggle();
        counts.dumps =
            SIMULATION.with_borrow_mut(|simulation| simulation.as_mut().map_or((0, 0), Simulation::dump));
    }
    // The other way round, so that reading one is counted by as few of the others as can be.
    RUNNING.with_borrow_mut(|running| {
        for one in running.iter_mut().rev() {
            let count = one.source.now().zip(one.from).and_then(|(now, from)| now.checked_sub(from));
            count.into_iter().for_each(|count| counts.set(one.event, count));
        }
    });
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn what_is_missing_once_is_missing_in_the_sum() {
        let counted = |missing| Counts { counts: [5; EVENTS.len()], missing, dumps: (0, 0) };
        let mut sum = Counts::default();
        sum.add(counted(0));
        sum.add(counted(1 << Event::Cycles as u16));
        assert_eq!((sum.of(Event::Instructions), sum.of(Event::Cycles)), (Some(10), None));
        assert!(EVENTS.iter().enumerate().all(|(at, event)| *event as usize == at));
    }

    #[test]
    fn the_sum_has_all_dumps() {
        let of = |dumps| Counts { dumps, ..Counts::none() };
        let mut sum = Counts::default();
        [(3, 4), (4, 5), (0, 0), (5, 7)].into_iter().for_each(|dumps| sum.add(of(dumps)));
        assert_eq!(sum.dumps, (3, 7));
    }

    #[test]
    fn instructions_for_a_cycle_need_both() {
        let mut counts = Counts::none();
        assert_eq!(counts.figures(10), []);
        counts.set(Event::Instructions, 60);
        assert_eq!(counts.figures(10), [("instructions", 6.0)]);
        counts.set(Event::Cycles, 0);
        assert_eq!(counts.figures(10), [("instructions", 6.0), ("cycles", 0.0)]);
        counts.set(Event::Cycles, 20);
        assert_eq!(counts.figures(10), [("instructions", 6.0), ("cycles", 2.0), ("ipc", 3.0)]);
    }

    #[test]
    fn an_event_has_one_name_everywhere() {
        for event in EVENTS {
            let by_name = Event::from_str(event.name(), false);
            assert_eq!(by_name.ok(), Some(*event).filter(|event| !RAW.contains(event)));
            assert_eq!(serde_json::to_value(event).unwrap(), event.name());
        }
        assert_eq!(
            Event::value_variants().iter().filter(|event| !RAW.contains(event)).count() + RAW.len(),
            EVENTS.len()
        );
    }

    /// Each event has either a provider or a reason, never both or neither.
    #[test]
    fn every_event_has_a_provider_or_a_reason() {
        let done = set_up(EVENTS, None);
        assert_eq!(done.counted.len(), EVENTS.len());
        for (event, provider) in &done.counted {
            let refused = done.refused.values().flatten().any(|of| of == event);
            assert!(provider.is_some() || refused, "{event:?}: {done:?}");
            // What the processor would count is not made up of what the system knows.
            let of_system = matches!(provider, Some(Provider::Software | Provider::Getrusage));
            assert!(!of_system || event.is_of_system(), "{event:?}: {provider:?}");
        }
        println!("{}", done.lines().join("\n"));
        set_up(&[], None);
        start();
        assert_eq!(stop(), Counts::none());
    }

    /// On a machine that counts, a loop of a million steps has as many instructions, and more the longer it is.
    #[test]
    fn counts_grow_with_the_work() {
        let said = set_up(EVENTS, None).lines();
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
                    "{short} {long}: {said:?}"
                )
            }
            None => println!("skipped: instructions are not counted here: {said:?}"),
        }
    }

    /// Untouched pages fault once each, or once per huge page. Both providers count this.
    #[test]
    fn page_faults_are_counted_where_the_system_tells() {
        const BYTES: u64 = 64 << 20;
        fn touch() {
            let mut touched = vec![0_u8; BYTES as usize];
            touched.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
            std::hint::black_box(&touched);
        }
        let faults = BYTES >> 21..BYTES >> 9;
        let done = set_up(&[Event::PageFaults], None);
        start();
        touch();
        let count = stop().of(Event::PageFaults);
        assert_eq!(count.is_some(), done.counted[&Event::PageFaults].is_some(), "{done:?}");
        assert!(count.is_none_or(|count| faults.contains(&count)), "{count:?}");
        match told(Event::PageFaults) {
            Some(now) => {
                let before = now();
                touch();
                let count = now().zip(before).map(|(now, before)| now - before);
                assert!(count.is_some_and(|count| faults.contains(&count)), "{count:?}");
            }
            None => println!("skipped: the system has no statistics of single threads"),
        }
        assert!(told(Event::CpuMigrations).is_none() && told(Event::Cycles).is_none());
    }
}
