//! The cost of each operation, call by call.
//!
//! Every call is timed alone, on one thread, between two readings of the clock. The cost of the readings (the median
//! of many pairs with nothing between them) is subtracted from each figure. A rate is the number of calls divided by
//! the sum of these corrected times, so it excludes the loop. Keys come from the store in an order that follows from
//! a seed alone.

use crate::clock;
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::Bar;
use crate::term::{self, Style, Term};
use forrest::{Db, View, WriteBatch};
use forrest_base::random::Random;
use hdrhistogram::Histogram;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Most keys that take part.
const KEYS_MAX: usize = 1_000_000;
/// Most time for one operation.
const BUDGET: Duration = Duration::from_millis(400);
/// Keys of one `multi_get`.
const MULTI_GET_KEYS: usize = 64;
/// Pairs of one range.
const RANGE_PAIRS: usize = 50;
/// Changes of one batch.
const BATCH_OPS: usize = 100;
/// Counters that `add` is tried on.
const COUNTERS: usize = 10_000;
/// Keyspace that the writes go to; dropped at the end.
const TIMED: &str = "demo.timed";

/// What one operation cost.
pub(crate) struct Row {
    name: &'static str,
    keys_per_call: usize,
    total_ns: u64,
    latencies_ns: Histogram<u64>,
}

/// All operations, and the cost of the clock.
pub(crate) struct Table {
    rows: Vec<Row>,
    clock_ns: u64,
    keys: usize,
    seed: u64,
}

/// Keys in one piece of memory, so that a million of them do not cost a million allocations.
struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    order: Vec<u32>,
}

impl Keys {
    /// At most [`KEYS_MAX`] keys, evenly spread over all keys of `view`.
    fn sample(view: &View, random: &mut Random) -> Result<Self, Failure> {
        let count = view.count(..)? as usize;
        let every = count.div_ceil(KEYS_MAX).max(1);
        let mut keys = Keys { bytes: Vec::new(), ends: Vec::new(), order: Vec::new() };
        for entry in view.range(..).step_by(every).take(KEYS_MAX) {
            interrupt::check()?;
            keys.bytes.extend_from_slice(entry?.key());
            keys.ends.push(keys.bytes.len());
        }
        keys.order = (0..keys.ends.len() as u32).collect();
        random.shuffle(&mut keys.order);
        Ok(keys)
    }

    fn len(&self) -> usize {
        self.order.len()
    }

    /// The key at a place of the random order, which begins again after its end.
    fn get(&self, i: usize) -> &[u8] {
        let at = self.order[i % self.order.len()] as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[at]]
    }
}

/// Runs one operation after another.
struct Runner<'a> {
    clock_ns: u64,
    bar: &'a Bar,
    rows: Vec<Row>,
}

impl Runner<'_> {
    /// Times `call(i)` for i from 0 up to `calls`, or until the budget is used up.
    fn time<T>(
        &mut self,
        name: &'static str,
        keys_per_call: usize,
        calls: usize,
        mut call: impl FnMut(usize) -> forrest::Result<T>,
    ) -> Result<usize, Failure> {
        self.bar.show(self.rows.len() as u64, || format!("timing {name}"));
        let mut latencies_ns = clock::latencies_ns();
        let mut total_ns = 0;
        let begin = Instant::now();
        let mut done = 0;
        while done < calls {
            interrupt::check()?;
            let start = Instant::now();
            // The time includes the drop of the result: a caller that gets a value must also free it.
            drop(black_box(call(done)?));
            let end = Instant::now();
            let ns = (end - start).as_nanos() as u64;
            let ns = ns.saturating_sub(self.clock_ns).max(1);
            latencies_ns.saturating_record(ns);
            total_ns += ns;
            done += 1;
            if end - begin > BUDGET {
                break;
            }
        }
        self.rows.push(Row { name, keys_per_call, total_ns, latencies_ns });
        Ok(done)
    }
}

/// Times all operations: reads on `files`, which stays unchanged, writes on a separate keyspace.
pub(crate) fn measure(db: &Db, files: &View, seed: u64, bar: &Bar) -> Result<Table, Failure> {
    let mut random = Random(seed);
    let keys = Keys::sample(files, &mut random)?;
    let timed = db.keyspace(TIMED)?;
    let mut run = Runner { clock_ns: clock::clock_ns(), bar, rows: Vec::new() };
    let n = keys.len();
    let mut buf = Vec::new();

    let value = [0x55; 24];
    let set = run.time("set", 1, n, |i| timed.set(keys.get(i), value))?;
    run.time("get, there", 1, n, |i| files.get(keys.get(i)))?;
    // A key and one byte more is not there, but lies beside one that is.
    let absent: Vec<Vec<u8>> = (0..n.min(COUNTERS * 10)).map(|i| [keys.get(i), b"\0"].concat()).collect();
    run.time("get, absent", 1, n, |i| files.get(&absent[i % absent.len()]))?;
    drop(absent);
    run.time("get_into", 1, n, |i| files.get_into(keys.get(i), &mut buf))?;
    let mut wanted: Vec<&[u8]> = vec![b""; MULTI_GET_KEYS];
    let groups: Vec<Vec<&[u8]>> = (0..n.div_ceil(MULTI_GET_KEYS))
        .map(|g| (0..MULTI_GET_KEYS).map(|i| keys.get(g * MULTI_GET_KEYS + i)).collect())
        .collect();
    run.time("multi_get of 64", MULTI_GET_KEYS, groups.len(), |g| {
        wanted.copy_from_slice(&groups[g]);
        files.multi_get(&wanted)
    })?;
    drop(groups);
    run.time("range of 50", RANGE_PAIRS, n, |i| {
        for entry in files.range(keys.get(i)..).take(RANGE_PAIRS) {
            let entry = entry?;
            black_box((entry.key(), entry.value()?));
        }
        Ok(())
    })?;
    let counters: Vec<Vec<u8>> = (0..n.min(COUNTERS)).map(|i| [b"#", keys.get(i)].concat()).collect();
    counters.iter().try_for_each(|counter| timed.add(counter, 0).map(drop))?;
    run.time("add", 1, n, |i| timed.add(&counters[i % counters.len()], 1))?;
    run.time("batch of 100 sets", BATCH_OPS, n.div_ceil(BATCH_OPS), |call| {
        let mut batch = WriteBatch::new();
        let mut on = batch.on(&timed);
        for i in 0..BATCH_OPS {
            on.set(keys.get(call * BATCH_OPS + i), value);
        }
        db.write(batch)
    })?;
    run.time("delete", 1, set, |i| timed.delete(keys.get(i)))?;
    db.drop_keyspace(TIMED)?;
    Ok(Table { rows: run.rows, clock_ns: run.clock_ns, keys: n, seed })
}

impl Table {
    /// The lines of the table, at most 80 columns each.
    pub(crate) fn lines(&self, term: &Term) -> Vec<String> {
        let head = format!(
            "   {:<18}{:>10}{:>9}{:>9}{:>10}{:>9}{:>9}",
            "operation", "calls", "calls/s", "keys/s", "p50", "p99", "p99.9"
        );
        let mut lines = vec![term.paint(Style::Dim, head)];
        lines.extend(self.rows.iter().map(|row| {
            let per_second = row.latencies_ns.len() as f64 / (row.total_ns.max(1) as f64 / 1e9);
            let at = |quantile| term::span(row.latencies_ns.value_at_quantile(quantile));
            format!(
                "   {:<18}{:>10}{:>9}{:>9}{:>10}{:>9}{:>9}",
                row.name,
                term::grouped(row.latencies_ns.len()),
                term::short_rate(per_second),
                term::short_rate(per_second * row.keys_per_call as f64),
                at(0.50),
                at(0.99),
                at(0.999)
            )
        }));
        let foot = format!(
            "One thread; {} keys in random order (seed {}). Each call is timed alone; reading the clock takes \
             {} ns, which is taken off every figure.",
            term::grouped(self.keys as u64),
            self.seed,
            self.clock_ns
        );
        let foot = term::wrap(&foot, term.columns.saturating_sub(3));
        lines.extend(foot.into_iter().map(|line| format!("   {}", term.paint(Style::Dim, line))));
        lines
    }

    /// How many operations are timed: the units of the bar.
    pub(crate) const OPERATIONS: u64 = 9;
}
