//! [`Metrics`]: what a store has done since it was opened; [`Event`]: what it tells a [`Listener`] meanwhile.

use crate::latency::{Call, Latency};
use crate::stats::Stats;
use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

/// A kind of work that a store does beside reads and changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Job {
    /// Changes in memory become tables.
    Flush,
    /// Tables are merged.
    Merge,
    /// Tables that an ingest has made become part of the store.
    Ingest,
    /// Everything stored is read and checked.
    Verification,
}

impl Job {
    /// All of them.
    pub const ALL: [Job; 4] = [Job::Flush, Job::Merge, Job::Ingest, Job::Verification];

    /// Its name: `flush`, `merge`, `ingest` or `verification`.
    pub fn as_str(self) -> &'static str {
        match self {
            Job::Flush => "flush",
            Job::Merge => "merge",
            Job::Ingest => "ingest",
            Job::Verification => "verification",
        }
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How often something was done, and what it took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Work {
    /// How often it was done.
    pub count: u64,
    /// How often it failed. That is not in `count`.
    pub failed: u64,
    /// Bytes that were written, also those of failures; of reads, those that were read.
    pub bytes: u64,
    /// The time that it took, failures included.
    pub took: Duration,
}

/// How often changes waited for a cause, and for how long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waits {
    /// How often.
    pub count: u64,
    /// The sum of the waits of all threads.
    pub took: Duration,
}

/// What a store on disk has done since it was opened by this process. The parts are read one after the other while the
/// store works on. Counting is no option: it costs a few instructions for each change, and none for a cached read.
///
/// `Db::metrics` has an example.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Keys set or removed, and ranges deleted. Pairs of an ingest count when it is done.
    pub changes: u64,
    /// Bytes of their keys and values.
    pub change_bytes: u64,
    /// Writes to the log. One write has the changes of all threads that wait for it. Their time is not taken.
    pub log_writes: Work,
    /// Syncs of the log.
    pub log_syncs: Work,
    /// Flushes: changes in memory became tables.
    pub flushes: Work,
    /// Merges of tables.
    pub merges: Work,
    /// Ingests. What they write before they are done counts for the job that is under way.
    pub ingests: Work,
    /// Verifications.
    pub verifications: Work,
    /// Bytes that were written to tables and logs of values while none of these jobs was under way: by ingests, most of
    /// which is written before the job begins, and for the orders over tables that a store stores when it is idle.
    pub other_table_bytes: u64,
    /// Changes that waited a little, so that they arrive about as fast as tables are written.
    pub paced: Waits,
    /// Changes that waited because memory was full of changes that were not in tables yet. These are the long waits.
    pub stalls: Waits,
    /// Pages of tables and REMIXes that reads found in the cache.
    pub cache_hits: u64,
    /// Pages of tables and REMIXes that reads did not find there: each was read from the device, or from the system's
    /// cache.
    pub cache_misses: u64,
    /// Of the pages that were found, those of REMIXes.
    pub remix_hits: u64,
    /// Of the pages that were not found, those of REMIXes. If there are many, the cache is too small for the
    /// REMIXes.
    pub remix_misses: u64,
    /// Passes through logs of large values, whose space then comes back, and bytes of values that they wrote once more.
    /// Their time is not taken.
    pub value_passes: Work,
    /// Values that were read from logs for reads and merges, and their bytes. Their time is not taken.
    pub value_reads: Work,
    /// Events that were not reported to the listener, because more than 1,024 waited.
    pub events_lost: u64,
    /// How long calls took and how many pages they read, for each kind that was called; empty without
    /// `Builder::latencies`.
    pub latencies: Vec<Latency>,
}

/// The names of the figures of a kind of call, for programs and in words.
macro_rules! names {
    ($call:literal, $calls:literal) => {
        [
            (concat!($call, "_calls"), concat!("timed ", $calls)),
            (concat!($call, "_p50_ns"), concat!("half of the ", $calls, " within")),
            (concat!($call, "_p99_ns"), "99 % within"),
            (concat!($call, "_p999_ns"), "99.9 % within"),
            (concat!($call, "_longest_ns"), "the longest"),
            (concat!($call, "_pages"), "pages that they read"),
        ]
    };
}

/// The ends of the buckets of times for a monitor: powers of four, from a quarter of a microsecond to 17 seconds.
const ENDS: std::ops::RangeInclusive<u32> = 4..=17;

/// One figure as a monitor takes it.
struct Sample {
    name: &'static str,
    label: Option<(&'static str, &'static str)>,
    help: &'static str,
    is_counter: bool,
    value: f64,
}

impl Metrics {
    /// The work of a kind.
    pub fn job(&self, job: Job) -> Work {
        match job {
            Job::Flush => self.flushes,
            Job::Merge => self.merges,
            Job::Ingest => self.ingests,
            Job::Verification => self.verifications,
        }
    }

    /// Bytes written to tables, and by ingests to logs of values.
    pub fn table_bytes(&self) -> u64 {
        Job::ALL.iter().map(|&job| self.job(job).bytes).sum::<u64>() + self.other_table_bytes
    }

    /// Bytes written to the log and to tables for each byte of changes; 0 if there were none.
    pub fn write_amplification(&self) -> f64 {
        let written = self.log_writes.bytes + self.table_bytes();
        if self.change_bytes == 0 { 0.0 } else { written as f64 / self.change_bytes as f64 }
    }

    /// The share of pages that were found in the cache, from 0 to 1; 0 if there were none.
    pub fn cache_hit_ratio(&self) -> f64 {
        let all = self.cache_hits + self.cache_misses;
        if all == 0 { 0.0 } else { self.cache_hits as f64 / all as f64 }
    }

    /// The times of a kind of call; `None` if they were not taken, or there was no call.
    pub fn latency(&self, call: Call) -> Option<&Latency> {
        self.latencies.iter().find(|latency| latency.call() == call)
    }

    /// Each figure: its name for programs, its name in words, its value and its unit.
    pub fn rows(&self) -> Vec<(&'static str, &'static str, u64, &'static str)> {
        let ms = |took: Duration| took.as_millis() as u64;
        let mut rows = vec![
            ("changes", "changes", self.changes, ""),
            ("change_bytes", "in their keys and values", self.change_bytes, "bytes"),
            ("log_writes", "writes to the log", self.log_writes.count, ""),
            ("log_bytes", "written to the log", self.log_writes.bytes, "bytes"),
            ("log_syncs", "syncs of the log", self.log_syncs.count, ""),
            ("log_sync_ms", "time of these syncs", ms(self.log_syncs.took), "ms"),
            ("flushes", "flushes", self.flushes.count, ""),
            ("flushes_failed", "failed flushes", self.flushes.failed, ""),
            ("flush_bytes", "written by flushes", self.flushes.bytes, "bytes"),
            ("flush_ms", "time of flushes", ms(self.flushes.took), "ms"),
            ("merges", "merges", self.merges.count, ""),
            ("merges_failed", "failed merges", self.merges.failed, ""),
            ("merge_bytes", "written by merges", self.merges.bytes, "bytes"),
            ("merge_ms", "time of merges", ms(self.merges.took), "ms"),
            ("ingests", "ingests", self.ingests.count, ""),
            ("ingest_bytes", "written by ingests", self.ingests.bytes + self.other_table_bytes, "bytes"),
            ("paced", "changes slowed down", self.paced.count, ""),
            ("paced_ms", "by", ms(self.paced.took), "ms"),
            ("stalls", "changes stalled", self.stalls.count, ""),
            ("stall_ms", "for", ms(self.stalls.took), "ms"),
            ("cache_hits", "pages found in the cache", self.cache_hits, ""),
            ("cache_misses", "pages read from files", self.cache_misses, ""),
            ("remix_hits", "pages of REMIXes found", self.remix_hits, ""),
            ("remix_misses", "pages of REMIXes read", self.remix_misses, ""),
            ("value_passes", "logs of large values emptied", self.value_passes.count, ""),
            ("value_moved_bytes", "values moved for that", self.value_passes.bytes, "bytes"),
            ("value_reads", "large values read", self.value_reads.count, ""),
            ("value_read_bytes", "bytes of these", self.value_reads.bytes, "bytes"),
            ("events_lost", "events lost", self.events_lost, ""),
        ];
        for latency in &self.latencies {
            let names = match latency.call() {
                Call::Get => names!("get", "gets"),
                Call::MultiGet => names!("multi_get", "multi-gets"),
                Call::Scan => names!("scan", "scans"),
                Call::Write => names!("write", "writes"),
                Call::Sync => names!("sync", "syncs"),
            };
            let nanos = |share| latency.quantile(share).as_nanos() as u64;
            let longest = latency.longest().as_nanos() as u64;
            let values = [latency.count(), nanos(0.5), nanos(0.99), nanos(0.999), longest, latency.pages()];
            let rest = names.into_iter().zip(values);
            rows.extend(rest.map(|((name, words), value)| {
                (name, words, value, if name.ends_with("_ns") { "ns" } else { "" })
            }));
        }
        rows
    }

    /// The figures of a store in the text format of Prometheus (0.0.4): counters and gauges whose names begin with
    /// `forrest_`, with seconds and bytes as units. Serve it at `/metrics`, or write it to a file for the node
    /// exporter. With several stores in one process, put a label before each sample that says which one it is.
    ///
    /// ```
    /// # let stats = forrest::Stats::default();
    /// # let metrics = forrest::Metrics::default();
    /// let text = metrics.prometheus(&stats);
    /// assert!(text.contains("# TYPE forrest_changes_total counter\nforrest_changes_total 0\n"));
    /// ```
    pub fn prometheus(&self, stats: &Stats) -> String {
        let mut text = String::new();
        let mut before = "";
        for Sample { name, label, help, is_counter, value } in self.samples(stats) {
            if name != before {
                let kind = if is_counter { "counter" } else { "gauge" };
                let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
                before = name;
            }
            let _ = match label {
                Some((key, of)) => writeln!(text, "{name}{{{key}=\"{of}\"}} {value}"),
                None => writeln!(text, "{name} {value}"),
            };
        }
        self.put_latencies(&mut text);
        text
    }

    /// The samples of such a text: the name with its labels, and the value. Lines of other programs are left out.
    ///
    /// ```
    /// # let (stats, metrics) = (forrest::Stats::default(), forrest::Metrics::default());
    /// let text = metrics.prometheus(&stats);
    /// assert!(forrest::Metrics::read_prometheus(&text).any(|sample| sample == ("forrest_changes_total", 0.0)));
    /// ```
    pub fn read_prometheus(text: &str) -> impl Iterator<Item = (&str, f64)> {
        let samples = text.lines().filter(|line| line.starts_with("forrest_"));
        let samples = samples.filter_map(|line| line.rsplit_once(' '));
        samples.filter_map(|(name, value)| Some((name, value.parse().ok()?)))
    }

    /// The times of calls, as a histogram, and the pages that they read.
    fn put_latencies(&self, text: &mut String) {
        if self.latencies.is_empty() {
            return;
        }
        let name = "forrest_call_seconds";
        let _ = write!(text, "# HELP {name} Time of calls.\n# TYPE {name} histogram\n");
        for latency in &self.latencies {
            let call = latency.call();
            for end in ENDS.map(|log| Duration::from_nanos(1 << (2 * log))) {
                let (within, end) = (latency.count_within(end), end.as_secs_f64());
                let _ = writeln!(text, "{name}_bucket{{call=\"{call}\",le=\"{end}\"}} {within}");
            }
            let (count, sum) = (latency.count(), latency.took().as_secs_f64());
            let _ = writeln!(text, "{name}_bucket{{call=\"{call}\",le=\"+Inf\"}} {count}");
            let _ = writeln!(text, "{name}_sum{{call=\"{call}\"}} {sum}");
            let _ = writeln!(text, "{name}_count{{call=\"{call}\"}} {count}");
        }
        let name = "forrest_call_pages_total";
        let _ = write!(text, "# HELP {name} Pages that calls read from files.\n# TYPE {name} counter\n");
        for latency in &self.latencies {
            let _ = writeln!(text, "{name}{{call=\"{}\"}} {}", latency.call(), latency.pages());
        }
    }

    fn samples(&self, stats: &Stats) -> Vec<Sample> {
        let plain = |name, help, is_counter, value: u64| Sample {
            name,
            label: None,
            help,
            is_counter,
            value: value as f64,
        };
        let mut all = vec![
            plain("forrest_keys", "Keys in all keyspaces, about.", false, stats.keys),
            plain("forrest_snapshots", "Snapshots alive.", false, stats.snapshots),
            plain("forrest_memtable_bytes", "Memory of memtables.", false, stats.used_bytes()),
            plain("forrest_kept_bytes", "Memory kept for snapshots and iterators.", false, stats.kept_bytes),
            plain("forrest_cache_bytes", "Memory of cached pages.", false, stats.cache_bytes),
            plain("forrest_index_bytes", "Memory of the indexes of tables.", false, stats.index_bytes),
            plain("forrest_tables", "Tables on disk.", false, stats.tables),
            plain("forrest_table_bytes", "Bytes of tables on disk.", false, stats.table_bytes),
            plain(
                "forrest_table_live_bytes",
                "Bytes of live entries in them, about.",
                false,
                stats.table_live_bytes,
            ),
            plain("forrest_open_files", "Open files.", false, stats.open_files),
            plain("forrest_value_log_bytes", "Bytes of logs of large values.", false, stats.value_log_bytes),
            plain(
                "forrest_value_log_live_bytes",
                "Bytes of live values in them, about.",
                false,
                stats.value_log_live_bytes,
            ),
            plain("forrest_changes_total", "Keys set or removed, and ranges deleted.", true, self.changes),
            plain("forrest_change_bytes_total", "Bytes of changed keys and values.", true, self.change_bytes),
            plain("forrest_log_writes_total", "Writes to the log.", true, self.log_writes.count),
            plain("forrest_log_bytes_total", "Bytes written to the log.", true, self.log_writes.bytes),
            plain("forrest_log_syncs_total", "Syncs of the log.", true, self.log_syncs.count),
            plain("forrest_cache_hits_total", "Pages found in the cache.", true, self.cache_hits),
            plain("forrest_cache_misses_total", "Pages read from files.", true, self.cache_misses),
            plain("forrest_remix_hits_total", "Pages of REMIXes among those found.", true, self.remix_hits),
            plain(
                "forrest_remix_misses_total",
                "Pages of REMIXes among those read.",
                true,
                self.remix_misses,
            ),
            plain(
                "forrest_value_passes_total",
                "Logs of large values emptied.",
                true,
                self.value_passes.count,
            ),
            plain("forrest_value_moved_bytes_total", "Values moved for that.", true, self.value_passes.bytes),
            plain("forrest_value_reads_total", "Large values read.", true, self.value_reads.count),
            plain("forrest_value_read_bytes_total", "Bytes of these.", true, self.value_reads.bytes),
            plain("forrest_events_lost_total", "Events that were not reported.", true, self.events_lost),
        ];
        let seconds = |took: Duration| took.as_secs_f64();
        all.push(Sample {
            value: seconds(self.log_syncs.took),
            ..plain("forrest_log_sync_seconds_total", "Time of syncs of the log.", true, 0)
        });
        let mut labelled = |name, help, key, each: &[(&'static str, f64)]| {
            all.extend(each.iter().map(|&(of, value)| Sample {
                name,
                label: Some((key, of)),
                help,
                is_counter: true,
                value,
            }));
        };
        let jobs = |value: fn(Work) -> f64| Job::ALL.map(|job| (job.as_str(), value(self.job(job))));
        labelled("forrest_jobs_total", "Jobs that were done.", "job", &jobs(|work| work.count as f64));
        labelled("forrest_jobs_failed_total", "Jobs that failed.", "job", &jobs(|work| work.failed as f64));
        let other = ("other", self.other_table_bytes as f64);
        let bytes: Vec<_> = jobs(|work| work.bytes as f64).into_iter().chain([other]).collect();
        labelled("forrest_job_bytes_total", "Bytes written by jobs.", "job", &bytes);
        labelled("forrest_job_seconds_total", "Time of jobs.", "job", &jobs(|work| work.took.as_secs_f64()));
        let waits = [("pace", self.paced), ("memory", self.stalls)];
        let counts = waits.map(|(cause, waits)| (cause, waits.count as f64));
        labelled("forrest_waits_total", "Changes that waited.", "cause", &counts);
        let times = waits.map(|(cause, waits)| (cause, seconds(waits.took)));
        labelled("forrest_wait_seconds_total", "Time that changes waited.", "cause", &times);
        all
    }
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (_, name, value, unit) in self.rows() {
            writeln!(f, "{}", format!("{name:<26} {value:>20} {unit}").trim_end())?;
        }
        writeln!(f, "{:<26} {:>20.2}", "bytes written a byte", self.write_amplification())
    }
}

/// What a store tells its [`Listener`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A job has begun.
    Began(Job),
    /// A job has ended.
    Ended {
        /// Which one.
        job: Job,
        /// The time that it took.
        took: Duration,
        /// Bytes that it has written to tables.
        bytes: u64,
        /// What went wrong, if it failed. The store tries again what it can.
        error: Option<String>,
    },
    /// A change had waited because memory was full of changes that were not in tables yet.
    Stalled {
        /// For this long.
        took: Duration,
    },
    /// There is no room for tables or for the log. Changes that need room fail with `OutOfSpace`; deletes go on.
    Full,
    /// A flush or a change has found room again.
    HasRoom,
    /// The store takes no changes until it is opened again or resumed, because a write or a sync has failed.
    Stopped {
        /// The failure.
        error: String,
    },
    /// It takes changes again.
    Resumed,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Began(job) => write!(f, "{job} began"),
            Event::Ended { job, took, bytes, error: None } => {
                write!(f, "{job} ended after {took:.3?}; it wrote {bytes} bytes")
            }
            Event::Ended { job, took, error: Some(error), .. } => {
                write!(f, "{job} failed after {took:.3?}: {error}")
            }
            Event::Stalled { took } => write!(f, "a change waited {took:.3?} for memory"),
            Event::Full => f.write_str("there is no room for tables or the log"),
            Event::HasRoom => f.write_str("there is room again"),
            Event::Stopped { error } => write!(f, "the store takes no changes: {error}"),
            Event::Resumed => f.write_str("the store takes changes again"),
        }
    }
}

/// A function that a store tells its events, see `Builder::listener`.
#[derive(Clone)]
pub struct Listener(Arc<dyn Fn(&Event) + Send + Sync>);

impl Listener {
    /// Calls `tell` with each event.
    pub fn new(tell: impl Fn(&Event) + Send + Sync + 'static) -> Listener {
        Listener(Arc::new(tell))
    }

    /// Tells an event.
    pub fn tell(&self, event: &Event) {
        (self.0)(event);
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_figure_has_one_name() {
        let rows = Metrics::default().rows();
        let names: BTreeSet<_> = rows.iter().map(|row| row.0).collect();
        assert_eq!(names.len(), rows.len());
    }

    #[test]
    fn a_monitor_can_read_the_text() {
        let mut metrics = Metrics::default();
        (metrics.changes, metrics.change_bytes, metrics.log_writes.bytes) = (3, 100, 120);
        (metrics.flushes.count, metrics.flushes.bytes, metrics.flushes.took) =
            (2, 80, Duration::from_millis(1500));
        (metrics.value_passes.count, metrics.value_reads.bytes) = (4, 90);
        (metrics.ingests.bytes, metrics.other_table_bytes, metrics.change_bytes) = (10, 90, 150);
        assert!((metrics.write_amplification() - 2.0).abs() < 1e-9);
        let text = metrics.prometheus(&Stats::default());
        for line in [
            "# TYPE forrest_changes_total counter",
            "forrest_changes_total 3",
            "# TYPE forrest_keys gauge",
            "forrest_jobs_total{job=\"flush\"} 2",
            "forrest_jobs_total{job=\"merge\"} 0",
            "forrest_job_bytes_total{job=\"ingest\"} 10",
            "forrest_job_bytes_total{job=\"other\"} 90",
            "forrest_job_seconds_total{job=\"flush\"} 1.5",
            "forrest_wait_seconds_total{cause=\"memory\"} 0",
            "# TYPE forrest_value_log_bytes gauge",
            "forrest_value_passes_total 4",
            "forrest_value_read_bytes_total 90",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} is missing in\n{text}");
        }
        // Help and type stand before the first sample of a name, and once.
        let mut named = BTreeSet::new();
        for line in text.lines().filter(|line| line.starts_with("# TYPE ")) {
            assert!(named.insert(line.split(' ').nth(2).expect("a name")), "{line} comes twice");
        }
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').expect("a name and a value");
            assert!(named.contains(name.split('{').next().expect("a name")), "{line} has no type");
            value.parse::<f64>().expect("it is a number");
        }
    }
}
