//! The measuring loops. One loop serves every subject and every kind of pair, so that no two are measured
//! differently.
//!
//! Each loop sums its results, and the sums are checked. So the compiler cannot remove the work, and fast wrong results
//! are rejected. Nothing is allocated, printed or generated while a clock runs.

use crate::affinity;
use crate::alloc;
use crate::counters::{self, Counts};
use crate::data::{Block, Kind, mix};
use crate::latency::{Pace, Stopwatch, Unpaced};
use crate::subjects::{BATCH_KEYS, Reader, SESSION_OPS, Subject, Writer};
use crate::usage;
use crate::workload::{Op, Operations};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Which time a loop of one thread is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Clock {
    /// Elapsed time, including time in which other processes had the CPU.
    Wall,
    /// CPU time of the thread: for a machine that is not idle.
    Cpu,
}

/// What a loop measured.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Timed {
    /// How long it ran.
    pub(crate) time: Duration,
    /// CPU time of all threads; equal to the elapsed time if the system does not report it.
    pub(crate) cpu: Duration,
    /// How long all threads ran, added up.
    pub(crate) spent: Duration,
    /// Operations done.
    pub(crate) ops: u64,
    /// Sum over what was read.
    pub(crate) sum: u64,
    /// Bytes of keys and values shown, where the loop counts them.
    pub(crate) bytes: u64,
    /// The most that the thread held of what it asked the allocator for, in bytes.
    pub(crate) peak_bytes: i64,
    /// What was counted.
    pub(crate) counts: Counts,
}

impl Timed {
    /// Nanoseconds per operation.
    pub(crate) fn ns(&self, clock: Clock) -> f64 {
        let time = if clock == Clock::Wall { self.time } else { self.cpu };
        time.as_nanos() as f64 / self.ops.max(1) as f64
    }

    /// The share of the threads' time in which others had the CPU, in percent; `None` if no time passed.
    pub(crate) fn disturbed_percent(&self) -> Option<f64> {
        let share = self.cpu.as_secs_f64() / self.spent.as_secs_f64();
        (!self.spent.is_zero()).then(|| 100.0 * (1.0 - share).max(0.0))
    }

    /// Adds another stretch of the same loop.
    pub(crate) fn add(&mut self, other: Timed) {
        self.time += other.time;
        self.cpu += other.cpu;
        self.spent += other.spent;
        self.ops += other.ops;
        self.sum = self.sum.wrapping_add(other.sum);
        self.bytes += other.bytes;
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
        self.counts.add(other.counts);
    }
}

/// The percentage by which every loop of this process is made longer, as the bits of an `f64`.
static SLOWDOWN: AtomicU64 = AtomicU64::new(0);

/// Makes every loop longer by `percent`: it busy-waits before its clock stops.
pub(crate) fn slow_down(percent: f64) {
    SLOWDOWN.store(percent.max(0.0).to_bits(), Ordering::Relaxed);
}

/// Both clocks, running; none on a simulated processor. It has no time, and reading a clock would make its counts vary.
pub(crate) struct Watch(Option<Clocks>);

struct Clocks {
    wall: Instant,
    cpu: Duration,
}

impl Watch {
    /// Starts the clocks.
    pub(crate) fn start() -> Self {
        alloc::begin_peak();
        let simulated = counters::start();
        Watch((!simulated).then(|| Clocks { cpu: usage::thread_cpu(), wall: Instant::now() }))
    }

    /// Stops the clocks after `ops` operations whose results have this sum.
    pub(crate) fn stop(self, ops: u64, sum: u64) -> Timed {
        let (time, cpu) = self.0.map_or_else(Default::default, Clocks::stop);
        let counts = counters::stop();
        Timed { time, cpu, spent: time, ops, sum, bytes: 0, peak_bytes: alloc::peak_bytes(), counts }
    }
}

impl Clocks {
    /// What passed, and how much of that the thread had a CPU.
    fn stop(self) -> (Duration, Duration) {
        let longer = f64::from_bits(SLOWDOWN.load(Ordering::Relaxed));
        if longer > 0.0 {
            let (wall, cpu) = (self.wall.elapsed(), usage::thread_cpu() - self.cpu);
            // By the time of the CPU, which is what the loop took if others were there.
            while usage::thread_cpu() - self.cpu < cpu.mul_f64(1.0 + longer / 100.0)
                && self.wall.elapsed() < wall * 4
            {}
        }
        let time = self.wall.elapsed();
        // The two clocks are not read at the same moment.
        (time, (usage::thread_cpu() - self.cpu).min(time))
    }
}

/// The sum that gets of all the block's keys must have.
pub(crate) fn expected_sum<K: Kind>(block: &K::Block) -> u64 {
    (0..block.len()).fold(0, |sum, at| sum.wrapping_add(K::fold_value(block.value(at))))
}

/// The sum that [`Measured::mixed`] must have, which gets every other key: the values are written as they are.
pub(crate) fn expected_mixed_sum<K: Kind>(block: &K::Block) -> u64 {
    let gets = (0..block.len()).step_by(2);
    gets.fold(0, |sum, at| sum.wrapping_add(K::fold_value(block.value(at))))
}

/// The positions of a block in stretches that one reader or writer serves.
fn sessions(len: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..len).step_by(SESSION_OPS).map(move |from| from..(from + SESSION_OPS).min(len))
}

/// Looks the block's keys up in batches of `size`, whose keys are laid side by side `ROOM` at a time: as many, or more.
#[inline(always)]
fn multi_get<K: Kind, S: Subject<K>, const ROOM: usize>(subject: &S, block: &K::Block, size: usize) -> Timed {
    if block.len() == 0 {
        return Timed::default();
    }
    let (watch, mut sum) = (Watch::start(), 0u64);
    for session in sessions(block.len()) {
        let reader = subject.reader();
        let (from, end) = (session.start, session.end);
        for from in (from..end).step_by(ROOM) {
            let len = ROOM.min(end - from);
            let keys: [_; ROOM] = std::array::from_fn(|i| block.key(from + i.min(len - 1)));
            for keys in keys[..len].chunks(size) {
                reader.multi_get(keys, |_, value| {
                    sum = sum.wrapping_add(value.map_or(0, |value| K::fold_value(value)));
                });
            }
        }
    }
    watch.stop(block.len() as u64, sum)
}

/// Shows every pair, from the first or from the last on. The sum depends on the order.
fn iterate<K: Kind, S: Subject<K>, const BACK: bool>(subject: &S) -> Timed {
    let (mut ops, mut bytes, mut sum) = (0, 0, 0u64);
    let watch = Watch::start();
    let see = |key: K::Found<'_>, value: K::Value<'_>| {
        ops += 1;
        bytes += K::pair_bytes(key, value);
        let pair = K::fold_found(key).wrapping_add(K::fold_value(value));
        sum = sum.rotate_left(1).wrapping_add(pair);
    };
    if BACK {
        subject.reader().iterate_back(see)
    } else {
        subject.reader().iterate(see)
    }
    Timed { bytes, ..watch.stop(ops, sum) }
}

/// Whether a key stays when half of them are erased: about half do, whatever their order.
pub(crate) fn stays<K: Kind>(key: K::Found<'_>) -> bool {
    mix(K::fold_found(key)).is_multiple_of(2)
}

/// What reads and writes in one thread.
trait Hands<K: Kind> {
    /// A number that depends on the key's value; 0 without one.
    fn get(&self, key: K::Key<'_>) -> u64;
    /// Gives the key a value.
    fn put(&mut self, key: K::Key<'_>, value: K::Value<'_>);
    /// A number that depends on what a scan shows, and on its order.
    fn scan(&self, from: K::Key<'_>, count: usize, sum: u64) -> u64;
}

fn get_folded<K: Kind>(reader: &impl Reader<K>, key: K::Key<'_>) -> u64 {
    reader.get(key, |value| K::fold_value(value)).unwrap_or(0)
}

fn scan_folded<K: Kind>(reader: &impl Reader<K>, from: K::Key<'_>, count: usize, mut sum: u64) -> u64 {
    reader.scan(from, count, |key, value| {
        let pair = K::fold_found(key).wrapping_add(K::fold_value(value));
        sum = sum.rotate_left(1).wrapping_add(pair);
    });
    sum
}

/// Held both at once, where a subject lets several write.
struct Both<R, W>(R, W);

impl<K: Kind, R: Reader<K>, W: Writer<K>> Hands<K> for Both<R, W> {
    #[inline]
    fn get(&self, key: K::Key<'_>) -> u64 {
        get_folded::<K>(&self.0, key)
    }

    #[inline]
    fn put(&mut self, key: K::Key<'_>, value: K::Value<'_>) {
        self.1.insert(key, value);
    }

    #[inline]
    fn scan(&self, from: K::Key<'_>, count: usize, sum: u64) -> u64 {
        scan_folded::<K>(&self.0, from, count, sum)
    }
}

/// Taken by turns, where only one may write: nothing is held over several operations there.
struct InTurn<'s, S>(&'s mut S);

impl<K: Kind, S: Subject<K>> Hands<K> for InTurn<'_, S> {
    #[inline]
    fn get(&self, key: K::Key<'_>) -> u64 {
        get_folded::<K>(&self.0.reader(), key)
    }

    #[inline]
    fn put(&mut self, key: K::Key<'_>, value: K::Value<'_>) {
        self.0.writer().insert(key, value);
    }

    #[inline]
    fn scan(&self, from: K::Key<'_>, count: usize, sum: u64) -> u64 {
        scan_folded::<K>(&self.0.reader(), from, count, sum)
    }
}

/// Does a series of operations, and adds the read values to `sum`.
#[inline]
fn stretch<K: Kind>(
    hands: &mut impl Hands<K>,
    work: &Operations<K>,
    range: std::ops::Range<usize>,
    pace: &mut impl Pace,
    mut sum: u64,
) -> u64 {
    for at in range {
        let (op, key) = (work.ops[at], work.block.key(at));
        pace.before();
        match op {
            Op::Get => sum = sum.wrapping_add(hands.get(key)),
            Op::Put => hands.put(key, work.block.value(at)),
            Op::Scan(count) => sum = hands.scan(key, usize::from(count), sum),
            Op::Modify => {
                sum = sum.wrapping_add(hands.get(key));
                hands.put(key, work.block.value(at));
            }
        }
        pace.after(op);
    }
    sum
}

/// Does operations one after the other, from one thread.
fn operate<K: Kind, S: Subject<K>>(subject: &mut S, work: &Operations<K>, pace: &mut impl Pace) -> Timed {
    let (watch, mut sum) = (Watch::start(), 0);
    for session in sessions(work.ops.len()) {
        pace.stretch();
        // Which of the two it is, the compiler sees.
        sum = if let Some(writer) = subject.shared_writer() {
            stretch(&mut Both(subject.reader(), writer), work, session, pace, sum)
        } else {
            stretch(&mut InTurn(subject), work, session, pace, sum)
        };
    }
    watch.stop(work.ops.len() as u64, sum)
}

/// Facts about a subject that are needed before it is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    /// [`Subject::ORDERED`].
    pub(crate) ordered: bool,
    /// [`Subject::STATIC`].
    pub(crate) is_static: bool,
    /// [`Subject::ANSWERS`].
    pub(crate) answers: bool,
    /// [`Subject::BACK`].
    pub(crate) back: bool,
    /// [`Subject::BATCHED`].
    pub(crate) batched: bool,
    /// [`Subject::RETAINS`].
    pub(crate) retains: bool,
    /// [`Subject::REPLACES`].
    pub(crate) replaces: bool,
    /// [`Subject::COUNTED`].
    pub(crate) counted: bool,
    /// Whether several may write at once.
    pub(crate) shared: bool,
    /// Whether it is only asked to do the same with each key of a block.
    pub(crate) by_block: bool,
}

/// Shows a value.
pub(crate) type SeeValue<'a, K> = &'a mut dyn FnMut(<K as Kind>::Value<'_>);
/// Shows a pair.
pub(crate) type SeePair<'a, K> = &'a mut dyn FnMut(<K as Kind>::Found<'_>, <K as Kind>::Value<'_>);
/// Shows a pair; true if it stays.
pub(crate) type Keep<'a, K> = &'a mut dyn FnMut(<K as Kind>::Found<'_>, <K as Kind>::Value<'_>) -> bool;
/// Shows the answer for the key at a position.
pub(crate) type SeeAnswer<'a, K> = &'a mut dyn FnMut(usize, Option<<K as Kind>::Value<'_>>);

/// A subject with its type erased: whole loops, whose bodies have no virtual calls, and single operations for checks.
/// So the code around the loops is compiled once for each kind of pairs, not for each of some two hundred subjects.
/// Those with a body are not asked of every subject.
pub(crate) trait Measured<K: Kind>: Send + Sync {
    /// Facts about the subject.
    fn facts(&self) -> Facts;
    /// [`Subject::reserve`], timed.
    fn reserve_timed(&mut self, _keys: usize) -> Option<Timed> {
        None
    }
    /// [`Subject::settle`], timed.
    fn settle_timed(&mut self) -> Timed {
        Timed::default()
    }
    /// [`Subject::own_bytes`].
    fn bytes(&self) -> u64 {
        0
    }
    /// The process that has its memory, if that is another one.
    fn process(&self) -> Option<u32> {
        None
    }
    /// [`Subject::memory_note`].
    fn note(&self) -> Option<String>;

    /// Inserts a block.
    fn insert_all(&mut self, block: &K::Block) -> Timed;
    /// Removes a block's keys; the sum is the number that were there.
    fn remove_all(&mut self, block: &K::Block) -> Timed;
    /// Looks a block's keys up, each independent of the others: the core may work on several at once.
    fn get_all(&self, block: &K::Block) -> Timed;
    /// Looks a block's keys up, one after the other: which key is next is not known before the last answer is there.
    fn get_dependent(&self, _block: &K::Block) -> Timed {
        Timed::default()
    }
    /// Looks a block's keys up in batches of `size`, from 1 to [`SESSION_OPS`], where they are more than single gets.
    fn get_batches(&self, _block: &K::Block, _size: usize) -> Timed {
        Timed::default()
    }
    /// Scans `count` pairs from each key of a block on. The sum depends on the order of the pairs.
    fn scan_all(&self, block: &K::Block, count: usize) -> Timed;
    /// Shows every pair. The sum depends on the order.
    fn iterate_all(&self) -> Timed;
    /// The same from the last to the first, where it can be.
    fn iterate_back_all(&self) -> Timed {
        Timed::default()
    }
    /// Removes half of the pairs while all are iterated, where it can. The sum is over those that are removed, in any
    /// order.
    fn erase_half(&mut self) -> Timed {
        Timed::default()
    }
    /// Half reads, half writes, in turn: the block's keys, each written with the value that it has.
    fn mixed(&self, _block: &K::Block) -> Timed {
        Timed::default()
    }
    /// Does operations one after the other.
    fn operate(&mut self, _work: &Operations<K>) -> Timed {
        Timed::default()
    }
    /// The same beside others; nothing where only one may write.
    fn operate_shared(&self, _work: &Operations<K>) -> Timed {
        Timed::default()
    }
    /// As [`Measured::operate`], each timed by itself.
    fn operate_timed(&mut self, _work: &Operations<K>, _each: &mut Stopwatch) -> Timed {
        Timed::default()
    }

    /// Maps a key to a value.
    fn insert_one(&mut self, key: K::Key<'_>, value: K::Value<'_>);
    /// The same, beside others; nothing where only one may write.
    fn insert_shared(&self, _key: K::Key<'_>, _value: K::Value<'_>) {}
    /// Removes a key; true if it was there.
    fn remove_one(&mut self, key: K::Key<'_>) -> bool;
    /// The same, beside others; nothing where only one may write.
    fn remove_shared(&self, _key: K::Key<'_>) -> bool {
        false
    }
    /// Shows the value of a key, if it has one.
    fn get_one(&self, key: K::Key<'_>, see: SeeValue<'_, K>);
    /// [`Subject::retain`].
    fn retain_those(&mut self, _keep: Keep<'_, K>) {}
    /// Looks keys up together.
    fn get_batch(&self, keys: &[K::Key<'_>], see: SeeAnswer<'_, K>);
    /// Shows up to `count` pairs from a key on.
    fn scan_one(&self, from: K::Key<'_>, count: usize, see: SeePair<'_, K>);
    /// Shows every pair.
    fn show_all(&self, see: SeePair<'_, K>);
    /// The same from the last to the first, where it can be.
    fn show_all_back(&self, _see: SeePair<'_, K>) {}
}

impl<K: Kind, S: Subject<K>> Measured<K> for S {
    fn facts(&self) -> Facts {
        Facts {
            ordered: S::ORDERED,
            is_static: S::STATIC,
            answers: S::ANSWERS,
            back: S::BACK,
            batched: S::BATCHED,
            retains: S::RETAINS,
            replaces: S::REPLACES,
            counted: S::COUNTED,
            shared: self.shared_writer().is_some(),
            by_block: false,
        }
    }

    fn reserve_timed(&mut self, keys: usize) -> Option<Timed> {
        let watch = Watch::start();
        self.reserve(keys).then(|| watch.stop(0, 0))
    }

    fn settle_timed(&mut self) -> Timed {
        let watch = Watch::start();
        self.settle();
        watch.stop(0, 0)
    }

    fn bytes(&self) -> u64 {
        self.own_bytes()
    }

    fn note(&self) -> Option<String> {
        self.memory_note()
    }

    fn insert_all(&mut self, block: &K::Block) -> Timed {
        let watch = Watch::start();
        for session in sessions(block.len()) {
            let mut writer = self.writer();
            for at in session {
                writer.insert(block.key(at), block.value(at));
            }
        }
        watch.stop(block.len() as u64, 0)
    }

    fn remove_all(&mut self, block: &K::Block) -> Timed {
        let (watch, mut sum) = (Watch::start(), 0);
        for session in sessions(block.len()) {
            let mut writer = self.writer();
            for at in session {
                sum += u64::from(writer.remove(block.key(at)));
            }
        }
        watch.stop(block.len() as u64, sum)
    }

    fn get_all(&self, block: &K::Block) -> Timed {
        let (watch, mut sum) = (Watch::start(), 0u64);
        for session in sessions(block.len()) {
            let reader = self.reader();
            for at in session {
                sum = sum.wrapping_add(get_folded::<K>(&reader, block.key(at)));
            }
        }
        watch.stop(block.len() as u64, sum)
    }

    fn get_dependent(&self, block: &K::Block) -> Timed {
        // The position of a key has the last answer's bits added after an "and" with a zero that the compiler cannot
        // see.
        let zero = black_box(0);
        let (watch, mut sum, mut last) = (Watch::start(), 0u64, 0);
        for session in sessions(block.len()) {
            let reader = self.reader();
            for at in session {
                let at = at + (last & zero) as usize;
                last = get_folded::<K>(&reader, block.key(at));
                sum = sum.wrapping_add(last);
            }
        }
        watch.stop(block.len() as u64, sum)
    }

    fn get_batches(&self, block: &K::Block, size: usize) -> Timed {
        match size {
            // It has no loop of its own to be measured.
            _ if !S::BATCHED => Timed::default(),
            // The size that all records have is one that the compiler knows.
            BATCH_KEYS => multi_get::<K, S, BATCH_KEYS>(self, block, BATCH_KEYS),
            _ => multi_get::<K, S, SESSION_OPS>(self, block, size),
        }
    }

    fn scan_all(&self, block: &K::Block, count: usize) -> Timed {
        let (watch, mut sum) = (Watch::start(), 0u64);
        for session in sessions(block.len()) {
            let reader = self.reader();
            for at in session {
                sum = scan_folded::<K>(&reader, block.key(at), count, sum);
            }
        }
        watch.stop(block.len() as u64, sum)
    }

    fn iterate_all(&self) -> Timed {
        iterate::<K, S, false>(self)
    }

    fn iterate_back_all(&self) -> Timed {
        iterate::<K, S, true>(self)
    }

    fn erase_half(&mut self) -> Timed {
        let (mut ops, mut sum) = (0, 0u64);
        let watch = Watch::start();
        self.retain(|key, value| {
            ops += 1;
            let stays = stays::<K>(key);
            if !stays {
                sum = sum.wrapping_add(K::fold_value(value) | 1);
            }
            stays
        });
        watch.stop(ops, sum)
    }

    fn mixed(&self, block: &K::Block) -> Timed {
        let (watch, mut sum) = (Watch::start(), 0u64);
        for session in sessions(block.len()) {
            let reader = self.reader();
            let Some(mut writer) = self.shared_writer() else { return Timed::default() };
            for at in session {
                if at % 2 == 0 {
                    sum = sum.wrapping_add(get_folded::<K>(&reader, block.key(at)));
                } else {
                    writer.insert(block.key(at), block.value(at));
                }
            }
        }
        watch.stop(block.len() as u64, sum)
    }

    fn operate(&mut self, work: &Operations<K>) -> Timed {
        operate(self, work, &mut Unpaced)
    }

    fn operate_shared(&self, work: &Operations<K>) -> Timed {
        let (watch, mut sum) = (Watch::start(), 0);
        for session in sessions(work.ops.len()) {
            let Some(writer) = self.shared_writer() else { return Timed::default() };
            sum = stretch(&mut Both(self.reader(), writer), work, session, &mut Unpaced, sum);
        }
        watch.stop(work.ops.len() as u64, sum)
    }

    fn operate_timed(&mut self, work: &Operations<K>, each: &mut Stopwatch) -> Timed {
        operate(self, work, each)
    }

    fn insert_one(&mut self, key: K::Key<'_>, value: K::Value<'_>) {
        self.writer().insert(key, value);
    }

    fn insert_shared(&self, key: K::Key<'_>, value: K::Value<'_>) {
        if let Some(mut writer) = self.shared_writer() {
            writer.insert(key, value);
        }
    }

    fn remove_one(&mut self, key: K::Key<'_>) -> bool {
        self.writer().remove(key)
    }

    fn remove_shared(&self, key: K::Key<'_>) -> bool {
        self.shared_writer().is_some_and(|mut writer| writer.remove(key))
    }

    fn get_one(&self, key: K::Key<'_>, see: SeeValue<'_, K>) {
        self.reader().get(key, see);
    }

    fn retain_those(&mut self, keep: Keep<'_, K>) {
        self.retain(keep);
    }

    fn get_batch(&self, keys: &[K::Key<'_>], see: SeeAnswer<'_, K>) {
        self.reader().multi_get(keys, see);
    }

    fn scan_one(&self, from: K::Key<'_>, count: usize, see: SeePair<'_, K>) {
        self.reader().scan(from, count, see);
    }

    fn show_all(&self, see: SeePair<'_, K>) {
        self.reader().iterate(see);
    }

    fn show_all_back(&self, see: SeePair<'_, K>) {
        self.reader().iterate_back(see);
    }
}

/// How long the calling thread has waited for a CPU that others had; `None` if the system does not report it.
struct Waits(Option<File>);

impl Waits {
    /// Those of the calling thread.
    fn of_thread() -> Waits {
        Waits(File::open("/proc/thread-self/schedstat").ok())
    }

    /// Up to now.
    fn so_far(&self) -> Option<Duration> {
        let mut text = [0; 64];
        let read = self.0.as_ref()?.read_at(&mut text, 0).ok()?;
        // Nanoseconds on a CPU, nanoseconds in which it was ready and had none, times that it got one.
        let waited = str::from_utf8(&text[..read]).ok()?.split(' ').nth(1)?;
        waited.parse().ok().map(Duration::from_nanos)
    }
}

/// Does each piece of work in a thread of its own, all from the same moment, and returns the time until the last has
/// ended, with all operations and the sum over all. Waiting for one another, as at a lock, counts as CPU time: it is
/// not the work of others.
///
/// Before that, each thread does `warm`, so that its stack and its CPU are not new to the structure.
pub(crate) fn together<W: Sync>(
    works: &[W],
    pin: bool,
    warm: impl Fn() -> Timed + Sync,
    work: impl Fn(&W) -> Timed + Sync,
) -> Timed {
    let cpus = affinity::cpus();
    let barrier = Barrier::new(works.len());
    let run = |thread: usize| {
        if pin && let Some(&cpu) = cpus.get(thread) {
            affinity::pin(cpu);
        }
        black_box(warm().sum);
        let waits = Waits::of_thread();
        barrier.wait();
        let before = waits.so_far();
        let start = Instant::now();
        let timed = work(&works[thread]);
        let end = start + timed.time;
        let waited = before.zip(waits.so_far()).map(|(before, after)| after - before);
        let cpu = waited.map_or(timed.cpu, |waited| timed.time.saturating_sub(waited));
        (start, end, Timed { cpu, ..timed })
    };
    let run = &run;
    let runs: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..works.len()).map(|thread| scope.spawn(move || run(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a measuring thread does not panic")).collect()
    });
    let start = runs.iter().map(|run| run.0).min();
    let end = runs.iter().map(|run| run.1).max();
    let mut total = Timed::default();
    runs.iter().for_each(|run| total.add(run.2));
    total.time = end.zip(start).map_or(Duration::ZERO, |(end, start)| end - start);
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Distribution, U64, Walk};
    use crate::subjects::Pages;
    use crate::workload::{Mix, Model};
    use std::collections::BTreeMap;

    /// Answers after 100 ns, but once after 1 ms, by a clock of which each look takes 10 ns.
    struct Stalls<'t> {
        time: &'t AtomicU64,
        asked: AtomicU64,
    }

    impl Subject<U64> for Stalls<'static> {
        crate::subjects::by_itself!(Stalls { time: Box::leak(Box::default()), asked: AtomicU64::new(0) });
    }

    impl Reader<U64> for &Stalls<'static> {
        fn get<R>(&self, _: u64, _: impl FnOnce(u64) -> R) -> Option<R> {
            let takes = if self.asked.fetch_add(1, Ordering::Relaxed) == 500 { 1_000_000 } else { 100 };
            self.time.fetch_add(takes, Ordering::Relaxed);
            None
        }

        fn iterate(&self, _: impl FnMut(u64, u64)) {}
    }

    impl Writer<U64> for &mut Stalls<'static> {
        fn insert(&mut self, _: u64, _: u64) {}
    }

    /// What 1,000 gets of it show.
    fn stalled(rate: Option<u64>) -> BTreeMap<String, f64> {
        let mut subject = Stalls::build(Pages::Auto).unwrap();
        let time = subject.time;
        let mut each = Stopwatch::new(move || time.fetch_add(10, Ordering::Relaxed), rate);
        let gets = Mix::of("x", 100, Distribution::Uniform);
        let work = Model::default().lay_out::<U64>(&U64::source(1000, 7, Walk::default()), &gets, 1000, 7);
        assert_eq!(operate(&mut subject, &work, &mut each).ops, 1000);
        each.figures("x", false).into_iter().collect()
    }

    #[test]
    fn a_stall_is_one_operation_closed_and_all_that_waited_open() {
        let near = |value: f64, wanted: f64| (value - wanted).abs() <= wanted / 100.0;
        let closed = stalled(None);
        // The first one has the reading of the clock before it as well.
        assert!(near(closed["x_p50_ns"], 110.0) && closed["x_p999_ns"] <= 120.0, "{closed:?}");
        assert!(near(closed["x_max_ns"], 1_000_000.0) && closed.len() == 4, "{closed:?}");

        // One is due every 10 us: a hundred of a thousand were due while the stall lasted.
        let open = stalled(Some(100_000));
        assert!(open["x_open_p50_ns"] < 150.0 && open["x_open_p99_ns"] > 800_000.0, "{open:?}");
        assert!(near(open["x_open_ops_per_s"], 100_000.0), "{open:?}");

        // Ten million a second are more than can be done: the last waits for all.
        let late = stalled(Some(10_000_000));
        assert!(near(late["x_open_ops_per_s"], 1e12 / (1_000_000.0 + 999.0 * 100.0 + 20_000.0)), "{late:?}");
    }
}
