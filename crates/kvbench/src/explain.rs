//! What a figure's name means: the step that was measured, which part of it, and the unit, each in words.
//!
//! A name is `STEP[_PART]_UNIT[@SIZE]`: `get_p99_ns`, `scan_50_ns`, `read_2t_mops`, `get_ns@1000000`. A step of which a
//! number is part is listed with `#` in its place, a mix that several threads do ends with their number, `ycsb_a_4t`;
//! one that is timed from when its operations were due ends with `_open`.

/// A figure's name, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Explained<'n> {
    /// The step, as the name has it.
    pub(crate) step: &'n str,
    /// What was measured.
    pub(crate) what: &'static str,
    /// Which part of it; empty for all.
    pub(crate) part: &'static str,
    /// The unit, short.
    pub(crate) unit: &'static str,
    /// The unit in words.
    pub(crate) unit_words: &'static str,
    /// Whether less is better.
    pub(crate) less_is_better: bool,
    /// Where it stands among the steps.
    pub(crate) order: usize,
    /// The size at which something that grows was measured.
    pub(crate) size: Option<u64>,
}

impl Explained<'_> {
    /// Whether it is of a whole step, at the size of the run.
    pub(crate) fn is_whole(&self) -> bool {
        self.size.is_none() && self.part.is_empty()
    }
}

/// Ends of names, the longest of those that end alike first: unit, words, whether less is better.
const UNITS: &[(&str, &str, &str, bool)] = &[
    ("_bytes_per_key", "B/key", "bytes for a key", true),
    ("_written_per_byte", "B/B", "bytes written to the device for each byte that the user wrote", true),
    ("_written_bytes", "B/op", "bytes written to the device during the step, for an operation", true),
    ("_block_reads", "blocks/op", "blocks for an operation that were not in the store's cache", true),
    (
        "_page_cache_reads",
        "blocks/op",
        "blocks for an operation that were not in the store's cache and not asked of the device, at most",
        true,
    ),
    ("_read_bytes", "B/op", "bytes read from the device for an operation", true),
    ("_reads", "requests/op", "requests to read that the device completed, for an operation", true),
    ("_disk_per_byte", "B/B", "bytes on the device for each byte that the user stored", true),
    ("_context_switches", "switches", "changes to another thread for an operation", true),
    ("_cpu_migrations", "moves", "moves to another processor for an operation", true),
    ("_task_clock_ns", "ns", "nanoseconds of a processor that the thread had for an operation", true),
    ("_page_faults", "faults", "accesses to pages that were not mapped, for an operation", true),
    ("_reference_cycles", "cycles", "cycles of the reference clock for an operation", true),
    ("_raw_1", "counts", "counts of the first event that was given by its code, for an operation", true),
    ("_raw_2", "counts", "counts of the second such event for an operation", true),
    ("_raw_3", "counts", "counts of the third such event for an operation", true),
    ("_raw_4", "counts", "counts of the fourth such event for an operation", true),
    ("_branch_misses", "branches", "branches predicted wrongly for an operation", true),
    ("_llc_references", "accesses", "accesses to the last-level cache for an operation", true),
    ("_instructions", "instr.", "instructions for an operation", true),
    ("_dtlb_misses", "loads", "loads for an operation whose page's translation was not at hand", true),
    ("_llc_misses", "accesses", "accesses for an operation that went to memory", true),
    ("_branches", "branches", "branches for an operation", true),
    ("_cycles", "cycles", "cycles of the core for an operation", true),
    ("_gb_per_s", "GB/s", "10^9 bytes of keys and values a second", false),
    ("_ops_per_s", "op/s", "operations a second", false),
    ("_ops", "ops", "operations", true),
    ("_ipc", "instr./cycle", "instructions for a cycle of the core", false),
    ("_mops", "M op/s", "million operations a second, of all threads", false),
    ("_huge_percent", "%", "percent that lie on huge pages", false),
    ("_percent", "%", "percent", true),
    ("_ratio", "x", "for that at the first size, or before", true),
    ("_bytes", "B", "bytes", true),
    ("_ns", "ns", "nanoseconds for an operation", true),
    ("_s", "s", "seconds in all", true),
];

/// The end of steps whose operations are due at a fixed rate.
const OPEN: &str = "_open";

const PARTS: &[(&str, &str)] = &[
    ("_open_p50", "half of the operations were done no later after they were due"),
    ("_open_p999", "all but one of a thousand were done no later after they were due"),
    ("_open_p99", "all but one of a hundred were done no later after they were due"),
    ("_open_max", "the latest, after it was due"),
    (OPEN, "done, of those that were due"),
    ("_p50", "half of the operations took no longer"),
    ("_p999", "all but one of a thousand took no longer"),
    ("_p99", "all but one of a hundred took no longer"),
    ("_max", "the longest"),
    ("_worst", "in the slowest second"),
    ("_cpu", "CPU time of the whole process, background work included"),
    ("_plain", "without tags"),
    (
        "_warm_up_change",
        "its rate at the end of the warm-up against that just before: not above 5 if it was steady",
    ),
    ("_warm_up", "it was done until its rate was steady, or no longer, and not timed"),
];

/// Steps, in the order of a report.
const STEPS: &[(&str, &str)] = &[
    ("load", "all pairs in random order into an empty store"),
    ("load_settle", "from the end of the load until nothing worked in the background"),
    ("warm_up", "before the first step that is timed"),
    ("insert", "inserted pairs; in stores: 1 of 20 operations of a mix, the others are scans of 50 pairs"),
    (
        "insert_reserved",
        "inserted pairs, after the structure reserved room for all of them; includes the reserving",
    ),
    ("get", "keys that are there; independent of each other, so the core overlaps them"),
    ("get_dependent", "keys that are there; the result of one lookup gives the next key: true latency"),
    ("get_miss", "keys that are not there"),
    ("miss", "keys that are not there"),
    ("hit", "keys that are there, below the memtables"),
    ("get_hits_#", "gets; the number is the percentage of keys that are there"),
    ("multi_get_#", "gets in batches of this number of keys; for each key"),
    ("seek", "the first pair at or after a key"),
    ("seek_merging", "the same by a merging iterator over the same tables"),
    ("scan_50", "50 pairs from a random key on; every byte is read"),
    ("scan", "50 pairs from a random key on"),
    ("scan_merging", "the same by a merging iterator over the same tables"),
    ("iterate", "all pairs in order; every byte is read"),
    ("iterate_back", "all pairs from the last to the first; every byte is read"),
    ("forward", "all pairs in order"),
    ("backward", "all pairs in descending order"),
    ("update", "of structures: keys that are there get another value; of stores: half updates, half gets"),
    ("mixed_#", "gets and updates of keys that are there; the number is the percentage of gets"),
    ("mixed_#_read", "the gets among them"),
    ("mixed_#_write", "the updates among them"),
    ("ycsb_a", "YCSB A: half gets, half updates, by Zipf's law"),
    ("ycsb_a_read", "the gets of YCSB A"),
    ("ycsb_a_write", "the updates of YCSB A"),
    ("ycsb_b", "YCSB B: 95 % gets, 5 % updates, by Zipf's law"),
    ("ycsb_b_read", "the gets of YCSB B"),
    ("ycsb_b_write", "the updates of YCSB B"),
    ("ycsb_c", "YCSB C: gets, by Zipf's law"),
    ("ycsb_d", "YCSB D: 95 % gets, mostly of what came last, 5 % insertions"),
    ("ycsb_d_read", "the gets of YCSB D"),
    ("ycsb_d_write", "the insertions of YCSB D"),
    ("ycsb_e", "YCSB E: 95 % scans of 1 to 100 pairs, by Zipf's law, 5 % insertions"),
    ("ycsb_e_scan", "the scans of YCSB E"),
    ("ycsb_e_write", "the insertions of YCSB E"),
    ("ycsb_f", "YCSB F: half gets, half reads followed by a write of the same key, by Zipf's law"),
    ("ycsb_f_read", "the gets of YCSB F"),
    ("ycsb_f_modify", "the reads followed by a write of YCSB F"),
    ("update_zipfian", "half updates, half gets, of keys that are asked for by Zipf's law"),
    ("insert_zipfian", "the same mix, of keys that are asked for by Zipf's law"),
    ("batch", "atomic batches of 100 writes"),
    ("synced_1t", "single writes, each synced, one thread"),
    ("synced_2t", "single writes, each synced, two threads"),
    ("synced_8t", "single writes, each synced, eight threads"),
    ("remove", "a tenth of the keys, at random"),
    ("erase", "half of the pairs are removed while all are iterated; for each pair that is shown"),
    ("compact", "the store's own way to take the least space"),
    ("open", "opening a store that was closed, until a pair is read"),
    ("recover", "opening a store whose process was killed after it was loaded, until a pair is read"),
    (
        "recovered",
        "of the pairs written before a kill, those that are there; all unless they may be lost with the process",
    ),
    ("put", "single writes by two threads without pause"),
    ("snapshot", "a snapshot, made and dropped, beside two threads that write without pause"),
    ("overwrite", "overwrites of pairs chosen uniformly, by two threads"),
    ("overwrite_peak", "the most during the overwrites"),
    (
        "growth",
        "pairs in random order, from the previous size to this one, until nothing worked in the background",
    ),
    ("growth_first", "the same, to the first size"),
    ("growth_last", "the same, to the last size"),
    ("resident_peak", "the most by which the store's process grew since before it was opened"),
    ("resident_rest", "memory by which it had grown when nothing worked in the background"),
    ("disk_peak", "the most that the store's files occupied"),
    ("disk_rest", "what they occupied when nothing worked in the background"),
    ("disk_loaded", "what they occupied when the store was loaded"),
    ("disk_idle", "what they occupied after pairs were deleted and the store was idle"),
    ("range_delete", "the delete of half of the keys, as one range"),
    ("small_range", "the deletes of a thousand small ranges, one by one"),
    ("scan_first", "the first scan across the large range"),
    ("scan_across", "scans of 50 pairs across it"),
    ("scan_later", "the same when the store was idle"),
    ("close", "closing a store"),
    ("kept", "of the pairs written before it was closed, those that are there"),
    ("closed_open", "opening a store that was closed"),
    ("closed_first_get", "the first get then"),
    ("closed_open_and_get", "both"),
    ("killed_open", "opening a store whose process was killed"),
    ("killed_first_get", "the first get then"),
    ("killed_open_and_get", "both"),
    ("killed_replay", "pairs that were in the log, for the time of that opening"),
    ("value_load", "long values put in random order, until nothing worked in the background"),
    ("value_get", "a long value got, each once"),
    ("value_get_again", "the same after they were overwritten"),
    ("value_overwrite", "long values overwritten, chosen uniformly"),
    ("value_peak", "the most that the files occupied meanwhile"),
    ("ingest", "sorted pairs added at one instant"),
    ("ingest_settle", "the work in the background after that"),
    ("transfer", "a transaction that reads and sets two keys, tried again until it commits"),
    ("transfer_met", "of all tries, those that met another transaction"),
    ("pop", "the first pair is read and deleted"),
    ("pop_first", "the first thousand of them"),
    ("pop_last", "the last thousand of them"),
    ("mix", "a mix of operations by several threads, which the name of the scenario says"),
    (
        "mix_not_begun",
        "those that were due and could not begin before the end; their times are those up to the end",
    ),
    ("mix_read", "the gets among them"),
    ("mix_write", "the updates and insertions among them, or those of the one thread that writes"),
    ("mix_scan", "the scans of 1 to 100 pairs among them"),
    ("mix_modify", "the updates among them that get the pair first"),
    ("build", "making the REMIX from the runs alone"),
    ("rebuild", "making the REMIX from that of all runs but the newest"),
    ("read_#t", "keys that are there, by several threads"),
    ("mixed_disjoint_#t", "half reads, half writes, by several threads, each with its own keys"),
    ("mixed_shared_#t", "half reads, half writes, by several threads on the same keys"),
    (
        "chase",
        "a load from a random line of memory, at the address that the previous load gave: true latency",
    ),
    ("chase_8", "the same from eight places at once, which the core overlaps; for each load"),
    ("wall", "all of the workload"),
    ("live", "memory that the structure holds, as it asked for it"),
    ("peak_live", "the most that the structure held while it was built, as it asked for it"),
    ("heap", "memory of the structure with the overhead of malloc, as malloc reports it for all languages"),
    ("resident", "memory by which the process grew while the structure was built"),
    ("peak_resident", "the most by which the process grew while the structure was built"),
    ("memory", "memory of the REMIX with its tags, or of one table's index"),
    ("order", "the part of the REMIX that knows the order of the keys"),
    ("peak", "the most by which the process grew since it opened the store"),
    ("load_peak", "the most by which the process grew while it loaded"),
    ("threads_disturbed", "of the time of several threads, others had the CPUs; the most of all steps"),
    ("disturbed", "of the measured time, others had the CPU"),
];

/// Whether this is the step, with any number in the place of a `#`.
fn is(known: &str, step: &str) -> bool {
    known.split_once('#').map_or(known == step, |(before, behind)| {
        let number = step.strip_prefix(before).and_then(|rest| rest.strip_suffix(behind));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// A step without its number of threads, if its name has one.
fn one_thread(step: &str) -> Option<&str> {
    let (step, threads) = step.strip_suffix('t')?.rsplit_once('_')?;
    let is_number = !threads.is_empty() && threads.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(step)
}

/// Explains the name of a figure; `None` if the name is unknown.
pub(crate) fn explain(name: &str) -> Option<Explained<'_>> {
    let (name, size) = match name.split_once('@') {
        Some((name, size)) => (name, Some(size.parse().ok()?)),
        None => (name, None),
    };
    let (rest, unit) = UNITS.iter().find_map(|unit| Some((name.strip_suffix(unit.0)?, unit)))?;
    let place = |step: &str| STEPS.iter().position(|known| is(known.0, step));
    let (step, order, part) = match place(rest).or_else(|| place(one_thread(rest)?)) {
        Some(order) => (rest, order, ""),
        None => {
            let (closed, end, part) =
                PARTS.iter().find_map(|part| Some((rest.strip_suffix(part.0)?, part.0, part.1)))?;
            let open = if end.starts_with(OPEN) { OPEN.len() } else { 0 };
            (&rest[..closed.len() + open], place(closed)?, part)
        }
    };
    let (_, unit, unit_words, less_is_better) = *unit;
    Some(Explained { step, what: STEPS[order].1, part, unit, unit_words, less_is_better, order, size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let get = explain("get_p999_ns").unwrap();
        assert_eq!((get.step, get.unit, get.size), ("get", "ns", None));
        assert_eq!(get.part, "all but one of a thousand took no longer");
        let grown = explain("multi_get_64_ns@3000000").unwrap();
        assert_eq!((grown.step, grown.part, grown.size), ("multi_get_64", "", Some(3_000_000)));
        assert!(!explain("read_2t_mops").unwrap().less_is_better);
        assert_eq!(explain("load_peak_bytes").unwrap().step, "load_peak");
        let open = explain("mixed_90_read_open_p99_ns").unwrap();
        assert_eq!((open.step, open.what), ("mixed_90_read_open", "the gets among them"));
        assert!(open.part.ends_with("after they were due"));
        assert_eq!(explain("get_open_ops_per_s").unwrap().step, "get_open");
        let together = explain("ycsb_a_4t_mops").unwrap();
        assert_eq!((together.step, together.part), ("ycsb_a_4t", ""));
        assert!(together.what.starts_with("YCSB A") && explain("mixed_50_2t_mops").is_some());
        for name in [
            "ycsb_a_t_mops",
            "ycsb_a_4_mops",
            "unknown_4t_mops",
            "mixed__ns",
            "mixed_x_ns",
            "mixed_9",
            "_open_ns",
            "get_open_ns_open",
        ] {
            assert_eq!(explain(name), None, "{name}");
        }
        for name in ["", "get", "_ns", "get_ns@", "get_ns@x", "unknown_ns", "get_p98_ns"] {
            assert_eq!(explain(name), None, "{name}");
        }
    }

    /// A new figure needs an explanation here.
    #[test]
    fn every_figure_that_was_ever_recorded_is_explained() {
        let mut names = 0;
        for row in crate::recorded::committed().iter().flat_map(|record| &record.rows) {
            for name in row.figures.keys() {
                assert!(explain(name).is_some(), "{} of {}: {name}", row.label(), row.run);
                names += 1;
            }
        }
        assert!(names > 500, "{names}");
    }
    #[test]
    fn what_can_be_counted_is_explained() {
        for event in crate::counters::EVENTS {
            assert_eq!(explain(&format!("get_{}", event.name())).unwrap().step, "get", "{event:?}");
        }
        assert!(!explain("get_ipc@1000").unwrap().less_is_better);
        for name in ["peak_live_bytes_per_key", "peak_resident_bytes_per_key", "resident_huge_percent"] {
            assert!(explain(name).is_some(), "{name}");
        }
    }
}
