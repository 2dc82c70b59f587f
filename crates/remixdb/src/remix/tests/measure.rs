//! What it costs: `cargo test --release -p remixdb --lib remix::tests::measure -- --ignored --nocapture`.

use super::*;
use std::hint::black_box;
use std::time::Instant;

const KEYS: usize = 1_000_000;
const ASKED: usize = 500_000;

/// Keys of 16 bytes, contiguous, so that a measurement is of the REMIX and not of allocations.
struct FlatRun(Rc<Vec<[u8; 16]>>);

impl Run for FlatRun {
    fn len(&self) -> u32 {
        self.0.len() as u32
    }

    #[inline]
    fn compare(&mut self, ordinal: u32, key: &[u8]) -> Result<Ordering> {
        Ok(self.0[ordinal as usize][..].cmp(key))
    }

    #[inline]
    fn key_into(&mut self, ordinal: u32, into: &mut Vec<u8>) -> Result<()> {
        into.clear();
        into.extend_from_slice(&self.0[ordinal as usize]);
        Ok(())
    }

    #[inline]
    fn is_tombstone(&mut self, _: u32) -> Result<bool> {
        Ok(false)
    }
}

/// Nanoseconds for each of `count`.
fn each<T>(count: usize, f: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = black_box(f());
    (start.elapsed().as_nanos() as f64 / count as f64, result)
}

fn keys(random: &mut Random, count: usize) -> Vec<[u8; 16]> {
    let key = |_| [random.next().to_be_bytes(), random.next().to_be_bytes()].concat().try_into().unwrap();
    (0..count).map(key).collect()
}

fn open(runs: &[Rc<Vec<[u8; 16]>>]) -> Vec<FlatRun> {
    runs.iter().cloned().map(FlatRun).collect()
}

#[test]
#[ignore = "a measurement"]
fn nanoseconds_for_each_operation() {
    println!(
        "runs  bytes/key  find  seek  next  prev  hit  miss  hit-  miss-   build  rebuild +1/100  +1/16 a key"
    );
    for count in [1, 2, 4, 8, 16] {
        measure(count);
    }
}

fn measure(count: usize) {
    let random = &mut Random(count as u64);
    let sorted = |mut keys: Vec<[u8; 16]>| {
        keys.sort_unstable();
        Rc::new(keys)
    };
    let runs: Vec<_> = (0..count).map(|_| sorted(keys(random, KEYS / count))).collect();
    let absent = keys(random, ASKED);
    let present: Vec<[u8; 16]> =
        (0..ASKED).map(|_| runs[random.index(count)][random.index(KEYS / count)]).collect();

    let (build_ns, remix) = each(KEYS, || build(&mut open(&runs), true).unwrap());
    let plain = build(&mut open(&runs), false).unwrap();
    let mut rebuilt = [100, 16].map(|part| {
        let mut all = open(&runs);
        all.push(FlatRun(sorted(keys(random, KEYS / part))));
        each(KEYS + KEYS / part, || rebuild(&remix, &mut all, true).unwrap()).0
    });
    rebuilt.iter_mut().for_each(|ns| *ns = (*ns * 10.0).round() / 10.0);

    let (find_ns, _) = each(ASKED, || absent.iter().fold(0, |sum, key| sum ^ remix.anchors.find(key)));
    let mut cursor = RemixCursor::new(&remix, open(&runs), Show::Live);
    let (seek_ns, ()) = each(ASKED, || {
        for key in &absent {
            black_box(cursor.seek(key).unwrap());
            black_box(cursor.entry());
        }
    });
    assert!(cursor.first().unwrap());
    let (next_ns, ()) = each(KEYS, || {
        while cursor.next().unwrap() {
            black_box(cursor.entry());
        }
    });
    assert!(cursor.last().unwrap());
    let (prev_ns, ()) = each(KEYS, || {
        while cursor.prev().unwrap() {
            black_box(cursor.entry());
        }
    });
    let get = |remix: &Remix, keys: &[[u8; 16]], hit: bool| {
        let mut runs = open(&runs);
        let all = || keys.iter().all(|key| get(remix, &mut runs, key).unwrap().is_some() == hit);
        let (ns, right) = each(ASKED, all);
        assert!(right);
        ns
    };
    let (hit, miss) = (get(&remix, &present, true), get(&remix, &absent, false));
    let (hit_plain, miss_plain) = (get(&plain, &present, true), get(&plain, &absent, false));
    let bytes = remix.bytes() as f64 / KEYS as f64;
    println!(
        "{count:4}  {bytes:9.2}  {find_ns:4.0}  {seek_ns:4.0}  {next_ns:4.1}  {prev_ns:4.1}  {hit:3.0}  {miss:4.0}  \
         {hit_plain:4.0}  {miss_plain:5.0}  {build_ns:6.1}  {:14.1}  {:11.1}",
        rebuilt[0], rebuilt[1]
    );
}
