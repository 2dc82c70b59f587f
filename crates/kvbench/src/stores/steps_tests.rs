//! A store that answers wrongly fails its arm, in whichever way it is wrong.

use super::steps;
use super::store::{Answer, Reader, Settings, Store, Way};
use crate::job::{Durability, Job, Life, Orders, Outcome, StoreStep as Step, Task};
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

const HONEST: u8 = 0;
const LOSES: u8 = 1;
const STALE: u8 = 2;
const SEEKS_TOO_FAR: u8 = 3;
const FINDS_WHAT_IS_NOT_THERE: u8 = 4;
const SCANS_FROM_ELSEWHERE: u8 = 5;
const MIXES_MANY_UP: u8 = 6;

/// An ordered map that is wrong in one way.
struct Map<const HOW: u8>(RwLock<BTreeMap<Vec<u8>, Vec<u8>>>);

impl<const HOW: u8> Store for Map<HOW> {
    const OFFERS: &'static [Durability] = &[Durability::Memory];
    type Reader<'s> = &'s Self;

    fn open(_: &Settings<'_>) -> Answer<Self> {
        Ok(Map(RwLock::default()))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Answer<()> {
        let mut map = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if !(HOW == LOSES && map.len() == 500 || HOW == STALE && map.contains_key(key)) {
            map.insert(key.to_vec(), value.to_vec());
        }
        Ok(())
    }

    fn put_batch<'p>(&self, mut pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>) -> Answer<()> {
        pairs.try_for_each(|(key, value)| self.put(key, value))
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Answer<()> {
        self.put(key, value)
    }

    fn reader(&self) -> Answer<&Self> {
        Ok(self)
    }

    fn scan_all(&self, way: Way, mut see: impl FnMut(&[u8], &[u8])) -> Answer<()> {
        let map = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match way {
            Way::Forward => map.iter().for_each(|(key, value)| see(key, value)),
            Way::Backward => map.iter().rev().for_each(|(key, value)| see(key, value)),
        }
        Ok(())
    }

    fn compact(&mut self) -> Answer<bool> {
        Ok(false)
    }
}

impl<const HOW: u8> Reader for &Map<HOW> {
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Answer<bool> {
        let map = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Ok(map.get(key).map(|value| see(value)).is_some() || HOW == FINDS_WHAT_IS_NOT_THERE)
    }

    fn many(&mut self, keys: &[impl AsRef<[u8]>], mut see: impl FnMut(&[u8])) -> Answer<()> {
        let mut keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        keys.rotate_left(usize::from(HOW == MIXES_MANY_UP));
        keys.iter().try_for_each(|key| self.get(key, &mut see).map(drop))
    }

    fn seek(&mut self, key: &[u8], see: impl FnOnce(&[u8], &[u8])) -> Answer<()> {
        let map = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((key, value)) = map.range(key.to_vec()..).nth(usize::from(HOW == SEEKS_TOO_FAR)) {
            see(key, value);
        }
        Ok(())
    }

    fn scan(&mut self, key: &[u8], pairs: usize, mut see: impl FnMut(&[u8], &[u8])) -> Answer<()> {
        let map = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let skipped = usize::from(HOW == SCANS_FROM_ELSEWHERE);
        map.range(key.to_vec()..).skip(skipped).take(pairs).for_each(|(key, value)| see(key, value));
        Ok(())
    }
}

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
