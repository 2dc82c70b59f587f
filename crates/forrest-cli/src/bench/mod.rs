//! `bench`: a quick look at the speed of a store on this machine, with the names, options and figures of RocksDB's and
//! LevelDB's `db_bench`.
//!
//! It shows no confidence: one run, in one process, one reading of the clock for each call. For decisions use kvbench,
//! which takes turns, repeats, and gives intervals.

mod work;

use crate::args::{BenchArgs, Benchmark};
use crate::clock;
use crate::codec::{Format, text};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::session::{Answer, Session};
use crate::term::{self, Style};
use forrest::{Capability, Keyspace};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use work::{Shared, Tally, Worker};

/// The keyspace in which it works, where there can be several.
const SPACE: &str = "bench";
/// Pause between two drawings of the progress.
const DRAW_PAUSE: Duration = Duration::from_millis(80);

/// The result of one benchmark.
struct Measured {
    benchmark: Benchmark,
    threads: u64,
    tally: Tally,
    /// Changes by a concurrent writer.
    written: Option<u64>,
}

/// Runs the benchmarks one after another, and prints each result when its benchmark ends.
pub(crate) fn run(session: &mut Session, args: &BenchArgs) -> Result<Answer, Failure> {
    check(session, args)?;
    let clock_ns = clock::clock_ns();
    let pool = work::pool(args);
    if session.format != Format::Jsonl {
        head(session, args)?;
    }
    for benchmark in &args.benchmarks {
        let space = match benchmark.is_fill() && !args.use_existing {
            true => emptied(session)?,
            false => space(session)?,
        };
        session.changing();
        let measured = measure(session, &space, args, *benchmark, &pool)?;
        if session.format == Format::Jsonl {
            session.line(format_args!("{}", json(session, args, &measured)))?;
        } else {
            for line in lines(session, &measured) {
                session.line(format_args!("{line}"))?;
            }
        }
        session.flush()?;
    }
    if session.format != Format::Jsonl {
        foot(session, clock_ns)?;
    }
    Ok(Answer::Done)
}

/// Refuses what cannot be done before anything is.
fn check(session: &Session, args: &BenchArgs) -> Result<(), Failure> {
    let digits = args.num.saturating_sub(1).to_string().len() as u64;
    if u64::from(args.key_size) < digits {
        return Err(Failure::usage(format!(
            "keys of {} cannot tell {} apart; --key-size {digits} can",
            term::plural(args.key_size.into(), "byte", "bytes"),
            term::plural(args.num, "key", "keys")
        )));
    }
    let capabilities = session.db.capabilities();
    for (benchmark, capability) in
        [(Benchmark::FillSync, Capability::Sync), (Benchmark::Compact, Capability::Compact)]
    {
        if args.benchmarks.contains(&benchmark) && !capabilities.has(capability) {
            return Err(Failure::usage(format!(
                "{} does not have what {} measures: {}",
                session.home.url,
                benchmark.name(),
                capability.as_str()
            )));
        }
    }
    let fills = !args.use_existing && args.benchmarks.iter().any(|benchmark| benchmark.is_fill());
    if fills && !capabilities.has(Capability::Keyspaces) && session.space.first()?.is_some() {
        return Err(Failure::usage(format!(
            "{} is not empty and has one keyspace, which would be emptied; name another store",
            session.home.url
        )));
    }
    Ok(())
}

/// The keyspace to work in.
fn space(session: &Session) -> Result<Keyspace, Failure> {
    match session.db.capabilities().has(Capability::Keyspaces) {
        true => Ok(session.db.keyspace(SPACE)?),
        false => Ok(session.space.clone()),
    }
}

/// The keyspace to work in, with nothing in it.
fn emptied(session: &Session) -> Result<Keyspace, Failure> {
    match session.db.capabilities().has(Capability::Keyspaces) {
        true => drop(session.db.drop_keyspace(SPACE)?),
        false => session.space.delete_range(..)?,
    }
    space(session)
}

/// Runs one benchmark.
fn measure(
    session: &Session,
    space: &Keyspace,
    args: &BenchArgs,
    benchmark: Benchmark,
    pool: &[u8],
) -> Result<Measured, Failure> {
    let ops = benchmark.ops(args);
    let threads = if benchmark == Benchmark::Compact { 1 } else { args.threads.min(ops) };
    let shared = &Shared::new(&session.db, space, args, pool, threads as usize);
    let bar = Bar::new(&session.term, session.quiet, ops);
    thread::scope(|scope| {
        let writer = benchmark
            .has_writer()
            .then(|| scope.spawn(|| Worker::new(shared, Benchmark::Overwrite, threads).write_on()));
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let part = ops * thread / threads..ops * (thread + 1) / threads;
                scope.spawn(move || {
                    let done = Worker::new(shared, benchmark, thread).run(part);
                    if done.is_err() {
                        // The benchmark has failed, so the other threads stop too.
                        shared.stop.store(true, Ordering::Relaxed);
                    }
                    done
                })
            })
            .collect();
        while !bar.is_hidden() && !workers.iter().all(|worker| worker.is_finished()) {
            let done = shared.done.load(Ordering::Relaxed);
            bar.show(done, || {
                format!("{}: {}", benchmark.name(), term::plural(done, "operation", "operations"))
            });
            thread::park_timeout(DRAW_PAUSE);
        }
        let tallies: Result<Vec<_>, _> =
            workers.into_iter().map(|worker| worker.join().expect("it does not panic")).collect();
        shared.stop.store(true, Ordering::Relaxed);
        let written = writer.map(|writer| writer.join().expect("it does not panic")).transpose();
        let tally = Tally::of_all(tallies?);
        Ok(Measured { benchmark, threads, tally, written: written? })
    })
}

impl Measured {
    /// From the first start of a thread to the last end; never nothing, because it divides.
    fn took(&self) -> Duration {
        (self.tally.end - self.tally.begin).max(Duration::from_nanos(1))
    }

    /// Operations a second, of all threads.
    fn per_second(&self) -> f64 {
        self.tally.ops as f64 / self.took().as_secs_f64()
    }

    /// What an operation takes where it is made, in microseconds.
    fn us_per_op(&self) -> f64 {
        self.tally.busy.as_secs_f64() * 1e6 / self.tally.ops.max(1) as f64
    }

    /// Of keys and values.
    fn bytes_per_second(&self) -> f64 {
        self.tally.bytes as f64 / self.took().as_secs_f64()
    }
}

fn head(session: &mut Session, args: &BenchArgs) -> Result<(), Failure> {
    let url = text::escape(session.home.url.as_bytes());
    let url = session.term.fit(&url, session.term.columns.saturating_sub(26)).into_owned();
    let title = session.term.paint(Style::Bold, format_args!("bench on {url}"));
    let fate = if session.home.is_temporary() { ", temporary" } else { "" };
    session.line(format_args!("{title}{fate}"))?;
    session.line(format_args!(
        "   {} of {} bytes with values of {}; {} (seed {})",
        term::plural(args.num, "key", "keys"),
        args.key_size,
        args.value_size,
        term::plural(args.threads, "thread", "threads"),
        args.seed
    ))?;
    let head = format!(
        "{:<22}{:>9}{:>9}{:>9}{:>10}{:>10}{:>10}",
        "benchmark", "ops/s", "us/op", "MB/s", "p50", "p99", "p99.9"
    );
    session.line(format_args!(""))?;
    session.line(format_args!("{}", session.term.paint(Style::Dim, head)))?;
    session.flush()
}

fn lines(session: &Session, measured: &Measured) -> Vec<String> {
    let term = session.term;
    let at = |quantile| term::span(measured.tally.latencies_ns.value_at_quantile(quantile));
    let row = format!(
        "{:<22}{:>9}{:>9.3}{:>9.1}{:>10}{:>10}{:>10}",
        measured.benchmark.name(),
        term::short_rate(measured.per_second()),
        measured.us_per_op(),
        measured.bytes_per_second() / 1e6,
        at(0.50),
        at(0.99),
        at(0.999)
    );
    let mut lines = vec![term.plain(&row).into_owned()];
    let (found, ops) = (term::grouped(measured.tally.found), term::grouped(measured.tally.ops));
    let mut notes = Vec::new();
    if measured.benchmark.asks() {
        notes.push(format!("{found} of {ops} found"));
    }
    if let Some(written) = measured.written {
        notes.push(format!("{} beside it", term::plural(written, "change", "changes")));
    }
    if !notes.is_empty() {
        lines.push(term.paint(Style::Dim, format_args!("   {}", notes.join("; "))));
    }
    lines
}

fn json(session: &Session, args: &BenchArgs, measured: &Measured) -> serde_json::Value {
    let at = |quantile| measured.tally.latencies_ns.value_at_quantile(quantile);
    let mut json = serde_json::json!({
        "benchmark": measured.benchmark.name(),
        "home": session.db.capabilities().home(),
        "num": args.num,
        "key_bytes": args.key_size,
        "value_bytes": args.value_size,
        "threads": measured.threads,
        "ops": measured.tally.ops,
        "seconds": measured.took().as_secs_f64(),
        "ops_per_second": measured.per_second(),
        "us_per_op": measured.us_per_op(),
        "bytes_per_second": measured.bytes_per_second(),
        "calls": measured.tally.latencies_ns.len(),
        "call_ns_p50": at(0.50),
        "call_ns_p99": at(0.99),
        "call_ns_p999": at(0.999),
        "call_ns_max": measured.tally.latencies_ns.max(),
        "optimized": !cfg!(debug_assertions),
    });
    if measured.benchmark.asks() {
        json["found"] = measured.tally.found.into();
    }
    if let Some(written) = measured.written {
        json["changes_beside"] = written.into();
    }
    json
}

fn foot(session: &mut Session, clock_ns: u64) -> Result<(), Failure> {
    let mut foot = format!(
        "p50 and the others are of calls, which in fillbatch, multireadrandom, readseq and readreverse make many \
         operations. Every call holds one reading of the clock, {clock_ns} ns. A quick look: to decide something, \
         measure with kvbench."
    );
    if cfg!(debug_assertions) {
        foot += " This forrest was built without optimization: its figures mean nothing.";
    }
    session.line(format_args!(""))?;
    for line in term::wrap(&foot, session.term.columns.saturating_sub(3)) {
        session.line(format_args!("   {}", session.term.paint(Style::Dim, line)))?;
    }
    Ok(())
}
