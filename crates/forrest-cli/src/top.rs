//! `top`: what a store that another process has open does, live, from the file that the process writes.

use crate::args::TopArgs;
use crate::codec::Format;
use crate::failure::Failure;
use crate::home::METRICS_FILE;
use crate::interrupt;
use crate::session::{Answer, Session};
use crate::term::{self, Style};
use forrest::Metrics;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// How often Ctrl-C, and a newer file, are looked for.
const LOOK: Duration = Duration::from_millis(50);
/// A file that is older than this is no longer written.
const STALE: Duration = Duration::from_secs(5);
/// Longer files are not metrics.
const BYTES_MAX: u64 = 1 << 20;
const CALLS: [(&str, &str); 5] =
    [("get", "gets"), ("multi_get", "multi-gets"), ("scan", "scans"), ("write", "writes"), ("sync", "syncs")];

/// The figures of one moment, by their name and labels.
struct Figures {
    written: SystemTime,
    all: BTreeMap<String, f64>,
}

pub(crate) fn run(session: &mut Session, args: &TopArgs) -> Result<Answer, Failure> {
    let path = file(&args.store);
    let each = Duration::from_secs_f64(args.interval);
    let mut before = read(&path)?;
    let mut left = args.count;
    loop {
        let after = newer(&path, &before, each)?;
        if session.format == Format::Jsonl {
            json(session, &before, &after)?;
        } else {
            let clears = session.term.is_terminal;
            show(session, &args.store, &before, &after, clears)?;
        }
        session.flush()?;
        before = after;
        left = left.map(|left| left.saturating_sub(1));
        if left == Some(0) {
            return Ok(Answer::Done);
        }
    }
}

/// The file of a store, or the file that is named.
fn file(store: &Path) -> PathBuf {
    if store.is_dir() { store.join(METRICS_FILE) } else { store.to_owned() }
}

fn read(path: &Path) -> Result<Figures, Failure> {
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::usage(format!(
            "there is no {}: the process that has the store open writes it with --metrics-file or \
             Builder::metrics_file",
            path.display()
        )),
        _ => Failure::io(format!("cannot read {}", path.display()), error),
    };
    let is = fs::metadata(path).map_err(failed)?;
    let written = is.modified().map_err(failed)?;
    let text = if is.len() <= BYTES_MAX { fs::read_to_string(path).map_err(failed)? } else { String::new() };
    let all = parse(&text);
    if all.is_empty() {
        return Err(Failure::usage(format!("{} has no metrics of a store in it", path.display())));
    }
    Ok(Figures { written, all })
}

/// The samples of a file in the text format of Prometheus.
fn parse(text: &str) -> BTreeMap<String, f64> {
    Metrics::read_prometheus(text).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The figures after some time. If the process stands still, or has ended, they are the same as before.
fn newer(path: &Path, before: &Figures, each: Duration) -> Result<Figures, Failure> {
    let begin = Instant::now();
    loop {
        interrupt::check()?;
        thread::sleep(LOOK.min(each));
        if begin.elapsed() < each {
            continue;
        }
        let after = read(path)?;
        if after.written > before.written || begin.elapsed() >= each + STALE {
            return Ok(after);
        }
    }
}

impl Figures {
    fn get(&self, name: &str) -> f64 {
        self.all.get(name).copied().unwrap_or(0.0)
    }
}

/// What has changed between two moments.
struct Between<'f> {
    before: &'f Figures,
    after: &'f Figures,
    seconds: f64,
}

impl<'f> Between<'f> {
    fn new(before: &'f Figures, after: &'f Figures) -> Between<'f> {
        let seconds = after.written.duration_since(before.written).unwrap_or_default().as_secs_f64();
        Between { before, after, seconds }
    }

    /// How much a counter has grown. A store that was opened again counts from 0.
    fn grown(&self, name: &str) -> f64 {
        let (before, after) = (self.before.get(name), self.after.get(name));
        if after >= before { after - before } else { after }
    }

    /// The same in a second.
    fn rate(&self, name: &str) -> f64 {
        if self.seconds > 0.0 { self.grown(name) / self.seconds } else { 0.0 }
    }

    /// Bytes written for each byte of changes; `None` if there were no changes.
    fn amplification(&self) -> Option<f64> {
        written(|name| self.grown(name))
    }

    /// The share of pages that were in the cache; `None` if none was read.
    fn found(&self) -> Option<f64> {
        let (found, not) = (self.grown("forrest_cache_hits_total"), self.grown("forrest_cache_misses_total"));
        (found + not > 0.0).then(|| found / (found + not))
    }

    /// What the calls of a kind did. `None` if there was no call.
    fn call(&self, call: &str) -> Option<Calls> {
        let name = format!("forrest_call_seconds_count{{call=\"{call}\"}}");
        let count = self.grown(&name);
        if count == 0.0 {
            return None;
        }
        let sum = self.grown(&format!("forrest_call_seconds_sum{{call=\"{call}\"}}"));
        let prefix = format!("forrest_call_seconds_bucket{{call=\"{call}\",le=\"");
        let mut within: Vec<(f64, f64)> = self
            .after
            .all
            .keys()
            .filter_map(|name| {
                let end = name.strip_prefix(&prefix)?.strip_suffix("\"}")?;
                Some((end.parse().ok()?, self.grown(name)))
            })
            .collect();
        within.sort_by(|one, other| one.0.total_cmp(&other.0));
        let end = within.iter().find(|(_, within)| *within >= 0.99 * count).map_or(f64::INFINITY, |at| at.0);
        let pages = self.grown(&format!("forrest_call_pages_total{{call=\"{call}\"}}")) / count;
        Some(Calls { rate: self.rate(&name), mean: nanos(sum / count), most: nanos(end), pages })
    }
}

/// What the calls of a kind did between two moments.
#[derive(Debug, PartialEq)]
struct Calls {
    /// Calls in a second.
    rate: f64,
    /// The mean time, in nanoseconds.
    mean: u64,
    /// The time within which 99 % were done, as far as it is known, in nanoseconds.
    most: u64,
    /// Pages that a call read from files.
    pages: f64,
}

fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// Bytes written for each byte of changes, of figures by their names.
fn written(of: impl Fn(&str) -> f64) -> Option<f64> {
    let jobs =
        ["flush", "merge", "ingest"].map(|job| of(&format!("forrest_job_bytes_total{{job=\"{job}\"}}")));
    let bytes = of("forrest_change_bytes_total");
    (bytes > 0.0).then(|| (of("forrest_log_bytes_total") + jobs.iter().sum::<f64>()) / bytes)
}

fn show(
    session: &mut Session,
    store: &Path,
    before: &Figures,
    after: &Figures,
    clears: bool,
) -> Result<(), Failure> {
    let between = Between::new(before, after);
    let term = session.term;
    if clears {
        session.write(b"\x1b[H\x1b[2J")?;
    }
    let title = store.display().to_string();
    let title = term.fit(&title, term.columns.saturating_sub(24)).into_owned();
    let age = after.written.elapsed().unwrap_or_default();
    let state = if age >= STALE {
        term.paint(Style::Red, format_args!("not written for {} s", age.as_secs()))
    } else {
        format!("{:.1} s", between.seconds)
    };
    session.line(format_args!("{}  {state}", term.paint(Style::Bold, title)))?;
    let row = |session: &mut Session, name: &str, text: String| -> Result<(), Failure> {
        session.line(format_args!("  {name:<12} {text}"))
    };
    let bytes = |name: &str| term::size(after.get(name) as u64);
    let per_second = |name: &str| format!("{}/s", term::size(between.rate(name) as u64));
    let tables = format!("{} in {}", bytes("forrest_table_bytes"), after.get("forrest_tables"));
    row(session, "keys", format!("{}, tables {tables}", term::grouped(after.get("forrest_keys") as u64)))?;
    let cache = between.found().map_or_else(String::new, |found| format!(", found {:.1} %", 100.0 * found));
    let memory = ["memtable", "cache", "index"].map(|part| bytes(&format!("forrest_{part}_bytes")));
    row(
        session,
        "memory",
        format!("memtables {}, cache {}, indexes {}{cache}", memory[0], memory[1], memory[2]),
    )?;
    let changes = term::rate(between.rate("forrest_changes_total"));
    row(session, "changes", format!("{changes}/s, {}", per_second("forrest_change_bytes_total")))?;
    let syncs = between.grown("forrest_log_syncs_total");
    let sync = nanos(between.grown("forrest_log_sync_seconds_total") / syncs.max(1.0));
    let syncs = term::rate(between.rate("forrest_log_syncs_total"));
    row(
        session,
        "log",
        format!("{}, {syncs} syncs/s of {}", per_second("forrest_log_bytes_total"), term::span(sync)),
    )?;
    for (name, job) in [("flushes", "flush"), ("merges", "merge"), ("ingests", "ingest")] {
        let [count, failed, bytes] = ["jobs_total", "jobs_failed_total", "job_bytes_total"]
            .map(|of| format!("forrest_{of}{{job=\"{job}\"}}"));
        if after.get(&count) + after.get(&failed) == 0.0 {
            continue;
        }
        let failures = match after.get(&failed) {
            0.0 => String::new(),
            failures => term.paint(Style::Red, format_args!(", {failures} failed")),
        };
        row(session, name, format!("{}, {} in all{failures}", per_second(&bytes), after.get(&count)))?;
    }
    if after.get("forrest_value_log_bytes") > 0.0 {
        let [all, live] = ["log", "log_live"].map(|part| bytes(&format!("forrest_value_{part}_bytes")));
        let [read, moved] =
            ["read", "moved"].map(|what| per_second(&format!("forrest_value_{what}_bytes_total")));
        row(session, "large values", format!("{all}, live {live}, {read} read, {moved} moved"))?;
    }
    let [all, live] = ["", "_live"].map(|part| {
        let bytes = |of: &str| after.get(&format!("forrest_{of}{part}_bytes"));
        bytes("table") + bytes("value_log")
    });
    let space = if live > 0.0 { format!("{:.2}", all / live) } else { "-".into() };
    row(session, "space", format!("{space} bytes on disk a live byte"))?;
    let of_all = written(|name| after.get(name)).map_or_else(|| "-".into(), |all| format!("{all:.2}"));
    let now = between.amplification().map_or_else(|| "-".into(), |now| format!("{now:.2}"));
    row(session, "written", format!("{now} bytes a byte of changes, {of_all} since it was opened"))?;
    let waits = ["pace", "memory"].map(|cause| {
        let share = 100.0 * between.rate(&format!("forrest_wait_seconds_total{{cause=\"{cause}\"}}"));
        format!("{share:.1} %")
    });
    row(session, "waits", format!("{} of a thread's time for pace, {} for memory", waits[0], waits[1]))?;
    for (call, name) in CALLS {
        if let Some(Calls { rate, mean, most, pages }) = between.call(call) {
            let most = if most == u64::MAX { "above 17 s".into() } else { term::span(most) };
            let rate = term::rate(rate);
            let mean = term::span(mean);
            row(session, name, format!("{rate}/s of {mean}, 99 % within {most}, {pages:.2} pages read"))?;
        }
    }
    if !clears {
        session.line(format_args!(""))?;
    }
    Ok(())
}

/// All figures, and the seconds since those before.
fn json(session: &mut Session, before: &Figures, after: &Figures) -> Result<(), Failure> {
    let seconds = Between::new(before, after).seconds;
    let mut all: serde_json::Map<String, serde_json::Value> =
        after.all.iter().map(|(name, value)| (name.clone(), (*value).into())).collect();
    all.insert("seconds".into(), seconds.into());
    session.line(format_args!("{}", serde_json::Value::Object(all)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(second: u64, text: &str) -> Figures {
        Figures { written: SystemTime::UNIX_EPOCH + Duration::from_secs(second), all: parse(text) }
    }

    #[test]
    fn what_a_store_writes_is_read() {
        let text = Metrics::default().prometheus(&forrest::Stats::default());
        let read = parse(&text);
        assert!(read.len() > 20 && read.contains_key("forrest_jobs_total{job=\"flush\"}"));
        for name in ["forrest_keys", "forrest_log_bytes_total", "forrest_job_bytes_total{job=\"merge\"}"] {
            assert!(read.contains_key(name), "{name}");
        }
        assert!(parse("# HELP forrest_keys x\nother 7\nforrest_keys\nforrest_keys x\n").is_empty());
    }

    #[test]
    fn rates_are_of_the_time_between() {
        let before = figures(10, "forrest_changes_total 100\nforrest_change_bytes_total 1000\n");
        let after = figures(
            14,
            "forrest_changes_total 300\nforrest_change_bytes_total 2000\nforrest_log_bytes_total 1500\n\
             forrest_job_bytes_total{job=\"merge\"} 500\n\
             forrest_call_seconds_bucket{call=\"get\",le=\"0.001\"} 98\n\
             forrest_call_seconds_bucket{call=\"get\",le=\"0.004\"} 100\n\
             forrest_call_seconds_sum{call=\"get\"} 0.05\nforrest_call_seconds_count{call=\"get\"} 100\n\
             forrest_call_pages_total{call=\"get\"} 25\n",
        );
        let between = Between::new(&before, &after);
        assert_eq!((between.rate("forrest_changes_total"), between.amplification()), (50.0, Some(2.0)));
        let expected = Calls { rate: 25.0, mean: 500_000, most: 4_000_000, pages: 0.25 };
        assert_eq!(between.call("get"), Some(expected));
        assert_eq!((between.call("sync"), between.found()), (None, None));
        // Opened again.
        assert_eq!(Between::new(&after, &before).grown("forrest_changes_total"), 100.0);
    }
}
