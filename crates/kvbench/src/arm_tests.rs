//! Arms on structures that are right, and on some that are wrong only beside others.

use super::*;
use crate::subjects::{Forrest, Pages, Reader, Writer, shared_by_itself};
use forrest_base::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const KEYS: u64 = 2000;

/// Does these steps with two threads on a structure of numbers. `None` on a machine with one CPU.
fn measured<S: Subject<U64>>(steps: &[Step]) -> Option<Outcome> {
    if affinity::cpus().len() < 2 {
        eprintln!("skipped: two threads, for there is one CPU");
        return None;
    }
    let job = Job { threads: 2, steps: steps.to_vec(), ..Job::of(Task::Measure, "x", KEYS) };
    Some(run::<U64, S>(&job, Walk::default(), &mut |_| ()))
}

/// Finds nothing once more was inserted than there are keys.
struct Forgets {
    map: Mutex<BTreeMap<u64, u64>>,
    inserted: AtomicU64,
}

impl Forgets {
    fn new(_: Pages) -> Result<Self, String> {
        Ok(Forgets { map: Mutex::default(), inserted: AtomicU64::new(0) })
    }
}

impl Subject<U64> for Forgets {
    const ORDERED: bool = false;
    shared_by_itself!(Forgets::new);
}

impl Reader<U64> for &Forgets {
    fn get<R>(&self, key: u64, see: impl FnOnce(u64) -> R) -> Option<R> {
        let forgot = self.inserted.load(Ordering::Relaxed) > KEYS;
        lock(&self.map).get(&key).filter(|_| !forgot).map(|value| see(*value))
    }

    fn iterate(&self, _: impl FnMut(u64, u64)) {}
}

impl Writer<U64> for &Forgets {
    fn insert(&mut self, key: u64, value: u64) {
        self.inserted.fetch_add(1, Ordering::Relaxed);
        lock(&self.map).insert(key, value);
    }
}

/// The sums of gets beside writes were not checked; such gets could all miss.
#[test]
fn gets_beside_writes_are_checked() {
    let Some(end) = measured::<Forgets>(&[Step::Threads]) else { return };
    let Outcome::Failed(why) = end else { panic!("{end:?}") };
    assert!(why.starts_with("mixed_disjoint: ") && why.ends_with(" read wrong values"), "{why}");
}

/// Each judged step has its own share of others' time: a comparison of steps without one would judge what others did.
#[test]
fn each_step_notes_the_share_of_others() {
    use Step::{Erase, Get, Hits, Iterate, Latency, Miss, Mixed, Remove, Scan, Threads, Update};
    use Step::{YcsbA, YcsbB, YcsbC, YcsbD, YcsbE, YcsbF};
    let steps = [
        Erase, Get, Hits, Iterate, Latency, Miss, Mixed, Remove, Scan, Threads, Update, YcsbA, YcsbB, YcsbC,
        YcsbD, YcsbE, YcsbF,
    ];
    let Some(end) = measured::<Forrest>(&steps) else { return };
    let figures = end.measured().unwrap();
    let timed = |name: &&String| name.ends_with("_ns") || name.ends_with("_mops");
    let timed: Vec<_> = figures.values.keys().filter(timed).collect();
    for name in [
        "insert_ns",
        "remove_ns",
        "erase_ns",
        "update_ns",
        "mixed_50_ns",
        "ycsb_a_ns",
        "ycsb_b_ns",
        "ycsb_d_ns",
        "ycsb_e_ns",
        "ycsb_f_ns",
        "ycsb_a_write_p99_ns",
        "mixed_disjoint_2t_mops",
        "mixed_shared_2t_mops",
        "ycsb_a_2t_mops",
    ] {
        assert!(timed.iter().any(|timed| *timed == name), "{name}: {timed:?}");
    }
    let shares = &figures.disturbed;
    assert!(shares.values().all(|share| (0.0..=100.0).contains(share)), "{shares:?}");
    for name in timed {
        assert!(shares.contains_key(name), "{name}: {shares:?}");
    }
}
