//! [`Event`]: what can be counted.

use serde::{Deserialize, Serialize};

/// What can be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
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
    /// The first event that is given by its code.
    #[serde(rename = "raw_1")]
    #[value(skip)]
    Raw1,
    /// The second.
    #[serde(rename = "raw_2")]
    #[value(skip)]
    Raw2,
    /// The third.
    #[serde(rename = "raw_3")]
    #[value(skip)]
    Raw3,
    /// The fourth.
    #[serde(rename = "raw_4")]
    #[value(skip)]
    Raw4,
    /// Accesses to pages that were not mapped yet; the system counts them, as all that follow.
    PageFaults,
    /// How often another thread got the processor.
    ContextSwitches,
    /// How often the thread went on on another processor.
    CpuMigrations,
    /// Nanoseconds of a processor that the thread had.
    TaskClockNs,
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
    Event::Raw1,
    Event::Raw2,
    Event::Raw3,
    Event::Raw4,
    Event::PageFaults,
    Event::ContextSwitches,
    Event::CpuMigrations,
    Event::TaskClockNs,
];

/// The events that are given by their codes.
pub(crate) const RAW: [Event; 4] = [Event::Raw1, Event::Raw2, Event::Raw3, Event::Raw4];

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
            Event::Raw1 => "raw_1",
            Event::Raw2 => "raw_2",
            Event::Raw3 => "raw_3",
            Event::Raw4 => "raw_4",
            Event::PageFaults => "page_faults",
            Event::ContextSwitches => "context_switches",
            Event::CpuMigrations => "cpu_migrations",
            Event::TaskClockNs => "task_clock_ns",
        }
    }

    /// Whether it is of the system's doing, and so counted by the system and not by the processor.
    pub(super) fn is_of_system(self) -> bool {
        self >= Event::PageFaults
    }
}
