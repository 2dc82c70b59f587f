//! The work of the benchmarks: one call after another, each with some operations.

use crate::args::{BenchArgs, Benchmark};
use crate::clock;
use crate::failure::Failure;
use crate::interrupt;
use clap::ValueEnum;
use forrest::{Db, Durability, Entry, Keyspace, WriteBatch, WriteOptions};
use forrest_base::random::{Random, mix_all};
use hdrhistogram::Histogram;
use std::hint::black_box;
use std::ops::Range;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Random bytes of which each value is a part.
const POOL_BYTES: usize = 1 << 20;
/// Pairs of one call of `readseq` and `readreverse`: one alone takes less than reading the clock.
const STRIDE: u64 = 100;
/// Operations for each of `fillsync`.
const SYNC_PART: u64 = 1_000;
/// Of `readrandomwriterandom`.
const READ_PERCENT: u64 = 90;

impl Benchmark {
    /// Its name.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// True if it begins with an empty store.
    pub(crate) fn is_fill(self) -> bool {
        use Benchmark::{FillBatch, FillRandom, FillSeq, FillSync};
        matches!(self, FillSeq | FillRandom | FillBatch | FillSync)
    }

    /// True if a concurrent thread writes.
    pub(crate) fn has_writer(self) -> bool {
        matches!(self, Benchmark::ReadWhileWriting | Benchmark::SeekRandomWhileWriting)
    }

    /// True if it asks for keys that may not be there.
    pub(crate) fn asks(self) -> bool {
        use Benchmark::{FillBatch, FillRandom, FillSeq, FillSync};
        !matches!(
            self,
            FillSeq
                | FillRandom
                | FillBatch
                | FillSync
                | Benchmark::Overwrite
                | Benchmark::ReadSeq
                | Benchmark::ReadReverse
                | Benchmark::Compact
        )
    }

    /// How many operations it is to make.
    pub(crate) fn ops(self, args: &BenchArgs) -> u64 {
        match self {
            Benchmark::Compact => 1,
            Benchmark::FillSync => (args.num / SYNC_PART).max(1),
            _ if self.is_fill() => args.num,
            Benchmark::DeleteSeq | Benchmark::DeleteRandom | Benchmark::Overwrite => args.num,
            _ => args.reads.unwrap_or(args.num),
        }
    }
}

/// The state that the threads of a benchmark share.
pub(crate) struct Shared<'a> {
    pub(crate) db: &'a Db,
    pub(crate) space: &'a Keyspace,
    pub(crate) args: &'a BenchArgs,
    pool: &'a [u8],
    /// The measured threads start together.
    start: Barrier,
    /// All threads stop.
    pub(crate) stop: AtomicBool,
    /// Operations of the measured threads.
    pub(crate) done: AtomicU64,
}

/// The bytes of which values are made.
pub(crate) fn pool(args: &BenchArgs) -> Vec<u8> {
    let mut pool = Vec::new();
    Random(mix_all(&[args.seed, 0])).append(POOL_BYTES + args.value_size as usize, &mut pool);
    pool
}

impl<'a> Shared<'a> {
    pub(crate) fn new(
        db: &'a Db,
        space: &'a Keyspace,
        args: &'a BenchArgs,
        pool: &'a [u8],
        threads: usize,
    ) -> Self {
        let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
        Shared { db, space, args, pool, start: Barrier::new(threads), stop, done }
    }

    /// True once all threads must stop.
    fn is_over(&self) -> bool {
        // ORDERING: relaxed, because no other read depends on this flag.
        self.stop.load(Ordering::Relaxed)
    }
}

/// The results of a thread, or of all threads.
pub(crate) struct Tally {
    /// When the first began.
    pub(crate) begin: Instant,
    /// When the last was done.
    pub(crate) end: Instant,
    pub(crate) ops: u64,
    /// Of keys and values written or read.
    pub(crate) bytes: u64,
    /// Keys that gets found.
    pub(crate) found: u64,
    /// The sum of all threads' times.
    pub(crate) busy: Duration,
    /// Of each call.
    pub(crate) latencies_ns: Histogram<u64>,
}

impl Tally {
    fn new() -> Self {
        let now = Instant::now();
        let latencies_ns = clock::latencies_ns();
        Tally { begin: now, end: now, ops: 0, bytes: 0, found: 0, busy: Duration::ZERO, latencies_ns }
    }

    /// What several threads did.
    pub(crate) fn of_all(threads: Vec<Tally>) -> Self {
        let mut threads = threads.into_iter();
        let mut all = threads.next().unwrap_or_else(Tally::new);
        for thread in threads {
            all.begin = all.begin.min(thread.begin);
            all.end = all.end.max(thread.end);
            all.ops += thread.ops;
            all.bytes += thread.bytes;
            all.found += thread.found;
            all.busy += thread.busy;
            all.latencies_ns.add(&thread.latencies_ns).expect("all have the same bounds");
        }
        all
    }
}

/// The pairs that a thread walks over.
type Walk = Box<dyn Iterator<Item = forrest::Result<Entry>>>;

/// One thread of a benchmark.
pub(crate) struct Worker<'a> {
    shared: &'a Shared<'a>,
    benchmark: Benchmark,
    random: Random,
    tally: Tally,
    key: Vec<u8>,
    value: Vec<u8>,
    walk: Option<Walk>,
}

impl<'a> Worker<'a> {
    /// Thread number `thread` of a benchmark.
    pub(crate) fn new(shared: &'a Shared<'a>, benchmark: Benchmark, thread: u64) -> Self {
        Worker {
            shared,
            benchmark,
            random: Random(mix_all(&[shared.args.seed, 1 + benchmark as u64, thread])),
            tally: Tally::new(),
            key: Vec::new(),
            value: Vec::new(),
            walk: None,
        }
    }

    /// Makes the operations of a part of the benchmark, or as many as the time allows.
    pub(crate) fn run(mut self, part: Range<u64>) -> Result<Tally, Failure> {
        let time = self.shared.args.duration.map(Duration::from_secs);
        self.shared.start.wait();
        let begin = Instant::now();
        let (mut last, mut at) = (begin, part.start);
        while at < part.end && !self.shared.is_over() {
            interrupt::check()?;
            let made = self.call(at, part.end)?;
            if made == 0 {
                break;
            }
            at += made;
            let end = Instant::now();
            self.tally.latencies_ns.saturating_record((end - last).as_nanos() as u64);
            last = end;
            self.shared.done.fetch_add(made, Ordering::Relaxed);
            if time.is_some_and(|time| end - begin >= time) {
                break;
            }
        }
        self.tally.ops = at - part.start;
        (self.tally.begin, self.tally.end, self.tally.busy) = (begin, last, last - begin);
        Ok(self.tally)
    }

    /// Writes until the benchmark is over. Returns the number of writes.
    pub(crate) fn write_on(mut self) -> Result<u64, Failure> {
        let mut count = 0;
        while !self.shared.is_over() {
            interrupt::check()?;
            let number = self.random.below(self.shared.args.num);
            self.set(number)?;
            count += 1;
        }
        Ok(count)
    }

    /// One call: operation `at` and perhaps more, but none from `end` on. Returns how many.
    fn call(&mut self, at: u64, end: u64) -> Result<u64, Failure> {
        let (space, args) = (self.shared.space, self.shared.args);
        match self.benchmark {
            Benchmark::FillSeq => self.set(at)?,
            Benchmark::FillRandom | Benchmark::Overwrite => {
                let number = self.random.below(args.num);
                self.set(number)?;
            }
            Benchmark::FillSync => {
                let number = self.random.below(args.num);
                self.batch(number..number + 1, Some(Durability::Sync))?;
            }
            Benchmark::FillBatch => {
                let batch = at..end.min(at + args.batch_size);
                let count = batch.end - batch.start;
                self.batch(batch, None)?;
                return Ok(count);
            }
            Benchmark::UpdateRandom => {
                let number = self.random.below(args.num);
                self.get(number)?;
                self.set(number)?;
            }
            Benchmark::ReadRandom | Benchmark::ReadWhileWriting => {
                let number = self.random.below(args.num);
                self.get(number)?;
            }
            Benchmark::ReadHot => {
                let number = self.random.below(args.num.div_ceil(100));
                self.get(number)?;
            }
            Benchmark::ReadMissing => {
                let number = self.random.below(args.num);
                self.make_key(number);
                self.key.push(b'.');
                self.tally.found += u64::from(space.get_into(&self.key, &mut self.value)?);
            }
            Benchmark::ReadRandomWriteRandom => {
                let number = self.random.below(args.num);
                if self.random.below(100) < READ_PERCENT { self.get(number)? } else { self.set(number)? }
            }
            Benchmark::MultiReadRandom => return self.multi_get(end - at),
            Benchmark::ReadSeq | Benchmark::ReadReverse => return self.walk(at, end),
            Benchmark::SeekRandom | Benchmark::SeekRandomWhileWriting => self.seek()?,
            Benchmark::DeleteSeq | Benchmark::DeleteRandom => {
                let is_random = self.benchmark == Benchmark::DeleteRandom;
                let number = if is_random { self.random.below(args.num) } else { at };
                self.make_key(number);
                self.tally.found += u64::from(space.delete(&self.key)?);
                self.tally.bytes += self.key.len() as u64;
            }
            Benchmark::Compact => self.shared.db.compact()?,
        }
        Ok(1)
    }

    /// Makes the key with a number: its decimal digits, with zeros before them.
    fn make_key(&mut self, number: u64) {
        self.key.clear();
        let width = self.shared.args.key_size as usize;
        self.key.extend_from_slice(format!("{number:0width$}").as_bytes());
    }

    /// A value: some part of the pool.
    fn value(&mut self) -> &'a [u8] {
        let start = self.random.below(POOL_BYTES as u64) as usize;
        &self.shared.pool[start..start + self.shared.args.value_size as usize]
    }

    fn set(&mut self, number: u64) -> Result<(), Failure> {
        let value = self.value();
        self.make_key(number);
        self.shared.space.set(&self.key, value)?;
        self.tally.bytes += (self.key.len() + value.len()) as u64;
        Ok(())
    }

    fn batch(&mut self, numbers: Range<u64>, durability: Option<Durability>) -> Result<(), Failure> {
        let mut batch = WriteBatch::new();
        for number in numbers {
            let value = self.value();
            self.make_key(number);
            batch.on(self.shared.space).set(&self.key, value);
            self.tally.bytes += (self.key.len() + value.len()) as u64;
        }
        self.shared.db.write_with(&batch, &WriteOptions::new().durability(durability))?;
        Ok(())
    }

    fn get(&mut self, number: u64) -> Result<(), Failure> {
        self.make_key(number);
        if self.shared.space.get_into(&self.key, &mut self.value)? {
            self.tally.found += 1;
            self.tally.bytes += (self.key.len() + self.value.len()) as u64;
        }
        Ok(())
    }

    fn multi_get(&mut self, most: u64) -> Result<u64, Failure> {
        let count = most.min(self.shared.args.batch_size);
        let mut keys = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let number = self.random.below(self.shared.args.num);
            self.make_key(number);
            keys.push(self.key.clone());
        }
        for (key, value) in keys.iter().zip(self.shared.space.multi_get(&keys)?) {
            if let Some(value) = value {
                self.tally.found += 1;
                self.tally.bytes += (key.len() + value.len()) as u64;
            }
        }
        Ok(count)
    }

    /// Goes on through the pairs that lie between the keys of this thread's part.
    fn walk(&mut self, at: u64, end: u64) -> Result<u64, Failure> {
        let space = self.shared.space;
        if self.walk.is_none() {
            let is_reverse = self.benchmark == Benchmark::ReadReverse;
            let mut bound = |number| {
                self.make_key(number);
                self.key.clone()
            };
            let range = space.range(bound(at)..bound(end));
            self.walk = Some(if is_reverse { Box::new(range.rev()) } else { Box::new(range) });
        }
        let Some(walk) = &mut self.walk else { return Ok(0) };
        let mut count = 0;
        while count < STRIDE.min(end - at)
            && let Some(entry) = walk.next()
        {
            let entry = entry?;
            let value = black_box(entry.value()?);
            self.tally.bytes += (entry.key().len() + value.len()) as u64;
            count += 1;
        }
        Ok(count)
    }

    /// Goes to a key with a new cursor, and on from there.
    fn seek(&mut self) -> Result<(), Failure> {
        let number = self.random.below(self.shared.args.num);
        self.make_key(number);
        let mut cursor = self.shared.space.cursor();
        let mut is_there = cursor.seek(&self.key)?;
        self.tally.found += u64::from(is_there && cursor.key() == Some(&self.key));
        let mut left = self.shared.args.seek_nexts;
        while is_there {
            let value = black_box(cursor.value()?);
            self.tally.bytes += (cursor.key().map_or(0, <[u8]>::len) + value.map_or(0, |v| v.len())) as u64;
            if left == 0 {
                break;
            }
            left -= 1;
            is_there = cursor.next()?;
        }
        Ok(())
    }
}
