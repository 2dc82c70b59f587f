//! [`Event`]: what can be counted.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// What can be counted, in the order of tables.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    clap::ValueEnum,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
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
    #[strum(serialize = "raw_1")]
    #[value(skip)]
    Raw1,
    /// The second.
    #[serde(rename = "raw_2")]
    #[strum(serialize = "raw_2")]
    #[value(skip)]
    Raw2,
    /// The third.
    #[serde(rename = "raw_3")]
    #[strum(serialize = "raw_3")]
    #[value(skip)]
    Raw3,
    /// The fourth.
    #[serde(rename = "raw_4")]
    #[strum(serialize = "raw_4")]
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

/// All of them.
pub(crate) const EVENTS: &[Event] = Event::VARIANTS;

/// The events that are given by their codes.
pub(crate) const RAW: [Event; 4] = [Event::Raw1, Event::Raw2, Event::Raw3, Event::Raw4];

impl Event {
    /// The name, which is the end of a figure's.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }

    /// Whether it is of the system's doing, and so counted by the system and not by the processor.
    pub(super) fn is_of_system(self) -> bool {
        self >= Event::PageFaults
    }
}
