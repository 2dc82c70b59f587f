//! Linux's perf events of the calling thread: the processor's counters and the system's own.
//!
//! A counter of the processor is read by `rdpmc` through the page that the system maps for it, where that page allows
//! it and a trial agreed with the system; else by a call. Counters run from when they are opened on; a loop is the
//! difference of two readings.

use super::code;
use super::event::Event;
use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Hardware, Raw, Software};
use perf_event::{Builder, ReadFormat, Sampler};
use std::io;
use std::time::Duration;

/// A counter that runs.
pub(super) struct Counter(Read);

/// How it is read.
enum Read {
    /// Through its page.
    Page(Sampler),
    /// By a call; and why not through its page.
    Call(perf_event::Counter, String),
}

/// Steps of the trial.
const TRIAL_STEPS: u64 = 10_000;

fn built<E: perf_event::events::Event>(event: E, with_kernel: bool) -> io::Result<perf_event::Counter> {
    // The hypervisor is left out in any case.
    Builder::new(event)
        .exclude_kernel(!with_kernel)
        .read_format(ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING)
        .enabled(true)
        .build()
}

/// The processor's counter of an event, in user mode.
fn of_processor(event: Event) -> Result<perf_event::Counter, String> {
    let translations = Cache { which: CacheId::DTLB, operation: CacheOp::READ, result: CacheResult::MISS };
    let hardware = match event {
        Event::Instructions => Hardware::INSTRUCTIONS,
        Event::Cycles => Hardware::CPU_CYCLES,
        Event::ReferenceCycles => Hardware::REF_CPU_CYCLES,
        Event::LlcReferences => Hardware::CACHE_REFERENCES,
        Event::LlcMisses => Hardware::CACHE_MISSES,
        Event::Branches => Hardware::BRANCH_INSTRUCTIONS,
        Event::BranchMisses => Hardware::BRANCH_MISSES,
        Event::DtlbMisses => return built(translations, false).map_err(|error| error.to_string()),
        raw => {
            let config = code::config_of(raw).ok_or("the processor does not count it")?;
            return built(Raw::new(config), false).map_err(|error| error.to_string());
        }
    };
    built(hardware, false).map_err(|error| error.to_string())
}

/// Opens the processor's counter of an event. The error is why there is none.
pub(super) fn open(event: Event) -> Result<Counter, String> {
    // Mapping the page takes the counter, also if it fails: then there is another one.
    Ok(Counter(match of_processor(event)?.sampled(1) {
        Ok(mut sampler) => match trial(&mut sampler) {
            Ok(()) => Read::Page(sampler),
            Err(why) => Read::Call(sampler.into_counter(), why),
        },
        Err(error) => Read::Call(of_processor(event)?, format!("no page is mapped: {error}")),
    }))
}

/// Opens the system's counter of an event; the kernel's part is in it, for most of these events are nothing else. The
/// error is why there is none.
pub(super) fn open_of_system(event: Event) -> Result<Counter, String> {
    let software = match event {
        Event::PageFaults => Software::PAGE_FAULTS,
        Event::ContextSwitches => Software::CONTEXT_SWITCHES,
        Event::CpuMigrations => Software::CPU_MIGRATIONS,
        Event::TaskClockNs => Software::TASK_CLOCK,
        _ => return Err("the system does not count it".to_owned()),
    };
    let counter = built(software, true).map_err(|error| error.to_string())?;
    Ok(Counter(Read::Call(counter, "the processor has no part in it".to_owned())))
}

/// Checks that reading through the page gives the system's counts. The error says why not.
fn trial(sampler: &mut Sampler) -> Result<(), String> {
    let through_page =
        |of: &mut Sampler| of.read_user().count().ok_or_else(|| "its page does not allow it".to_owned());
    let by_call =
        |of: &mut Sampler| of.read_full().map(|read| read.count()).map_err(|error| error.to_string());
    let work = || std::hint::black_box((0..TRIAL_STEPS).fold(0, |sum, at| sum ^ std::hint::black_box(at)));
    // Each reading lies between those around it.
    let first = by_call(sampler)?;
    let second = through_page(sampler)?;
    work();
    let third = through_page(sampler)?;
    let fourth = by_call(sampler)?;
    if first <= second && second <= third && third <= fourth && (first == fourth || second < fourth) {
        return Ok(());
    }
    Err(format!("a trial read {second} and {third} between {first} and {fourth}"))
}

impl Counter {
    /// Why it is not read by `rdpmc`; `None` if it is.
    pub(super) fn why_not_rdpmc(&self) -> Option<String> {
        match &self.0 {
            Read::Page(_) => None,
            Read::Call(_, why) => Some(why.clone()),
        }
    }

    /// What it stands at; `None` if there were moments since it was opened in which others had its place.
    pub(super) fn now(&mut self) -> Option<u64> {
        let (count, enabled, running) = match &mut self.0 {
            Read::Page(sampler) => {
                let read = sampler.read_user();
                (read.count()?, read.time_enabled(), read.time_running())
            }
            Read::Call(counter, _) => {
                let read = counter.read_full().ok()?;
                (read.count(), read.time_enabled()?, read.time_running()?)
            }
        };
        (running > Duration::ZERO && running == enabled).then_some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways of reading give the same counts, if both are available.
    #[test]
    fn a_counter_of_the_processor_passes_its_trial_or_says_why_not() {
        match open(Event::Instructions) {
            Err(why) => println!("skipped: the processor counts nothing here: {why}"),
            Ok(mut counter) => {
                println!("not by rdpmc: {:?}", counter.why_not_rdpmc());
                let (first, second) = (counter.now(), counter.now());
                assert!(first.zip(second).is_none_or(|(first, second)| first <= second));
            }
        }
        assert!(open(Event::PageFaults).is_err() && open_of_system(Event::Cycles).is_err());
    }
}
