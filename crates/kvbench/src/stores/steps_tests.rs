//! A store that answers wrongly fails its arm, in whichever way it is wrong.

use super::steps;
use super::testing::{
    FINDS_WHAT_IS_NOT_THERE, HONEST, LOSES, MIXES_MANY_UP, Map, SCANS_FROM_ELSEWHERE, SEEKS_TOO_FAR, STALE,
};
use crate::job::{Durability, Job, Life, Orders, Outcome, StoreStep as Step, Task};

/// How an arm ends that does these steps.
fn end<const HOW: u8>(steps: &[Step]) -> Outcome {
    end_of_life::<HOW>(Life::Whole, Durability::Memory, steps)
}

fn end_of_life<const HOW: u8>(life: Life, durability: Durability, steps: &[Step]) -> Outcome {
    let directory = tempfile::tempdir().expect("a directory");
    let orders = Orders {
        directory: directory.path().to_owned(),
        budget_bytes: 1 << 24,
        durability,
        compression: Default::default(),
        values: Default::default(),
        life,
        synced: 10,
        warm_up_millis: 1000,
        steps: steps.to_vec(),
    };
    let job = Job { seed: 1, ..Job::of(Task::Store(orders.clone()), "map", 1000) };
    steps::run::<Map<HOW>>(&job, &orders, None, &mut |_| ())
}

// One test, because what a process uses is measured: others beside it would never let it rest.
#[test]
fn right_answers_are_measured_and_wrong_ones_fail() {
    let Outcome::Figures(figures) = end::<HONEST>(&[
        Step::Get,
        Step::Miss,
        Step::Many,
        Step::Seek,
        Step::Scan,
        Step::Full,
        Step::Update,
        Step::Insert,
        Step::Batch,
        Step::Synced,
        Step::Compact,
    ]) else {
        panic!("an honest store fails");
    };
    assert!(figures.values["get_ns"] > 0.0 && !figures.values.contains_key("compact_ns"));
    assert!(figures.sums.contains_key("forward"));
    for step in ["get", "miss", "multi_get_64", "seek", "scan"] {
        assert!(figures.values[&format!("{step}_warm_up_s")] > 0.0, "{step}: {figures:?}");
        // Where the system reports them.
        let has = |name: &str| figures.values.contains_key(&format!("{step}_{name}"));
        assert_eq!(has("warm_up_written_bytes"), has("written_bytes"), "{step}: {figures:?}");
    }
    let whole = (figures.sums["pairs"], figures.sums["content"]);
    assert!(whole.0 > 1000 && whole.1 != 0);
    // Data only in memory is lost at reopening. Only one durability allows this, and only after a kill.
    let reopened = Life::Reopened { pairs: whole.0, sum: whole.1 };
    let Outcome::Figures(figures) = end_of_life::<HONEST>(Life::Recovered, Durability::Memory, &[]) else {
        panic!("a write without a durability guarantee is reported as lost");
    };
    assert!(figures.values["recovered_percent"] == 0.0 && figures.values["recover_s"] > 0.0);
    let ends = [
        end_of_life::<HONEST>(reopened, Durability::Memory, &[]),
        end_of_life::<HONEST>(Life::Recovered, Durability::Process, &[]),
        end_of_life::<HONEST>(Life::Recovered, Durability::Power, &[]),
        end::<LOSES>(&[]),
        end::<STALE>(&[Step::Update]),
        end::<SEEKS_TOO_FAR>(&[Step::Seek]),
        end::<FINDS_WHAT_IS_NOT_THERE>(&[Step::Miss]),
        end::<MIXES_MANY_UP>(&[Step::Many]),
        end::<SCANS_FROM_ELSEWHERE>(&[Step::Scan]),
    ];
    for (at, end) in ends.into_iter().enumerate() {
        assert!(matches!(end, Outcome::Failed(_)), "{at}");
    }
}
