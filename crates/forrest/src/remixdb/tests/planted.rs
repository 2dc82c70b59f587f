//! Whether the gates would find a mistake: planted bugs, one after the other, each of which its gate must catch.

use super::{checkpoint, crash, damage, faults};
use crate::remixdb::disk::simulated::{Failure, Fate};
use crate::remixdb::planted::{Bug, plant};
use forrest_testing::sized;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The gate that is to catch a bug, on a few workloads: enough for any mistake, not for all of its faces.
fn gate(bug: Bug) -> fn() {
    use Bug as B;
    match bug {
        B::WrittenTooEarly | B::CatalogForgotten | B::RemovedBeforeManifest => || crash::after_a_kill(0..8),
        B::TombstoneDropped | B::OlderTableWins | B::OlderMemtableWins => || crash::after_a_kill(0..8),
        B::FirstPieceForgotten => || crash::after_a_kill(0..60),
        B::NewManifestNotSynced | B::NumbersReused | B::RecoveredNotSynced | B::GivenUpLogsRead => || {
            crash::crashes_upon_crashes(0..20, 1);
        },
        B::PageNotChecked | B::SyncedNotStated | B::DroppedFilesStay => || damage::flipped_bits(0..1),
        B::MissingManifestIsNew => || damage::cut_and_missing_files(0..1),
        B::SyncTriedAgain => || faults::failing_io(0..2, &[Failure::SyncFails(Fate::Dropped)], 1),
        B::ShortWriteForgotten => || faults::failing_io(0..2, &[Failure::ShortWrite], 1),
        B::ShortReadIsEnd => || faults::failing_io(0..2, &[Failure::ShortRead], 1),
        B::CopyNotSynced | B::CheckpointLogNotSynced | B::CheckpointWithoutTombstones => || {
            checkpoint::power_cuts(0..8);
        },
        B::FloorTooHigh => || faults::failing_io(0..2, &[Failure::Eio], 1),
        _ => || {
            crash::after_power_cuts(0..6);
        },
    }
}

/// In quick size every fifth of them.
#[test]
fn every_planted_bug_is_caught() {
    let mut missed = Vec::new();
    for bug in Bug::ALL.into_iter().step_by(sized(5, 1)) {
        let start = std::time::Instant::now();
        plant(Some(bug));
        let caught = catch_unwind(AssertUnwindSafe(gate(bug))).is_err();
        plant(None);
        println!("{bug:?}: {} after {:?}", if caught { "caught" } else { "not caught" }, start.elapsed());
        missed.extend((!caught).then_some(bug));
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
