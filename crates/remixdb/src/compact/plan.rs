//! Decides how a partition takes the new pairs of a memtable: the cheapest way that keeps it fast to read.

use crate::table::Expiries;

/// Maximum number of tables of a partition. More tables make reads slower. Fewer make writes more expensive,
/// because a pair is written again when tables are merged.
pub(crate) const TABLES_MAX: usize = 24;

/// Some partitions take up to as many tables less, so that not all of them are due at once.
const SPREAD: u64 = 8;

/// A partition with fewer bytes than this many full tables is not divided: to merge its newest tables costs less.
/// Dividing it writes all of it once more: one byte for each, whenever a store has grown by this factor.
const LARGE: u64 = 16;

/// Unless it has a fourth of the free space: all of it needs space once more when it is merged.
const OF_FREE: u64 = 4;

/// Tables are merged when scans have walked over them this many times.
const WALKS: f64 = 1.5;

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Add a table with the new pairs.
    Minor,
    /// Merge the new pairs with the tables from this one on into one table.
    Partial {
        /// Number of the oldest table that is merged, counted from the oldest one.
        from: usize,
    },
    /// Merge everything, into one table or as many partitions of one table as it takes.
    Major,
}

/// How many tables a partition has when some are merged. `oldest` is the number of its oldest table.
pub(crate) fn tables_most(oldest: u64) -> usize {
    TABLES_MAX - (oldest % SPREAD) as usize
}

/// With how many bytes a partition is divided, if a full table has `full`, and `free` are free.
pub(crate) fn large(full: u64, free: u64) -> u64 {
    full.saturating_mul(LARGE).min(full.max(free / OF_FREE))
}

/// Decides for tables of these sizes in bytes, the oldest first, and new pairs of `new` bytes. Some tables are merged
/// when there are `most`. With `large` bytes, which is asked for only then, a partition is divided.
pub(crate) fn plan(tables: &[u64], new: u64, most: usize, large: impl FnOnce() -> u64) -> Plan {
    if tables.len() < most {
        return Plan::Minor;
    }
    let large = large();
    if tables.iter().sum::<u64>() + new >= large {
        return Plan::Major;
    }
    // The newest tables, as many as cost least for each place that merging them frees.
    let (mut from, mut cost, mut bytes) = (0, f64::INFINITY, new);
    for (at, table) in tables.iter().enumerate().rev() {
        bytes += table;
        let freed = tables.len() - at;
        // One place is taken again at the next flush.
        if freed > 1 && bytes as f64 / freed as f64 <= cost {
            (from, cost) = (at, bytes as f64 / freed as f64);
        }
    }
    // One table of half of that would be written again when the partition is divided soon.
    let merged = tables[from..].iter().sum::<u64>() + new;
    if from == 0 || merged >= large / 2 { Plan::Major } else { Plan::Partial { from } }
}

/// Whether so much of the entries is dead that merging them gives back a third of the space.
pub(crate) fn is_dead(all: u64, live: u64) -> bool {
    all.saturating_mul(2) > live.saturating_mul(3)
}

/// The longest time that a value stays in a table after it has expired, in milliseconds, while there is room: 24 hours.
const EXPIRED_MOST: u64 = 24 * 60 * 60 * 1000;

/// Whether a value that expires at this time has to be removed now.
pub(crate) fn is_overdue(expires_ms: u64, now_ms: u64) -> bool {
    expires_ms.saturating_add(EXPIRED_MOST) <= now_ms
}

/// Whether tables with this number of entries are merged because of what has expired of them: about a third, as of
/// other dead entries, or something long ago. How much that is, is known of a table when all of it is over. Until then
/// its expiries count as evenly distributed.
pub(crate) fn is_expired(entries: u64, tables: impl Iterator<Item = Expiries>, now_ms: u64) -> bool {
    let (mut expired, mut is_due) = (0, false);
    for Expiries { values, first_ms, last_ms } in tables {
        is_due |= is_overdue(first_ms, now_ms);
        expired += match now_ms.checked_sub(first_ms) {
            None => 0,
            Some(_) if last_ms <= now_ms => u64::from(values),
            Some(passed) => (u128::from(values) * u128::from(passed) / u128::from(last_ms - first_ms)) as u64,
        };
    }
    is_due || (expired > 0 && is_dead(entries, entries.saturating_sub(expired)))
}

/// How many of the bytes of all tables are too many if `live` of them are live: more than half as many again.
pub(crate) fn excess(all: u64, live: u64) -> u64 {
    all.saturating_sub(live.saturating_add(live / 2))
}

/// Whether merging tables with that many bytes gives back enough for what it writes: a fourth.
pub(crate) fn is_worth_space(all: u64, live: u64) -> bool {
    all.saturating_mul(3) >= live.saturating_mul(4) && all > live
}

/// Whether so few of the entries are in the REMIX file that it is written again when there is time. A file of all takes
/// a few bytes an entry, and so a fraction of what the new entries took.
pub(crate) fn is_uncovered(all: u64, covered: u64) -> bool {
    all.saturating_sub(covered).saturating_mul(8) >= all
}

/// Whether tables with `entries` entries each were scanned so much that merging them pays off.
///
/// The assumption is that what was read will be read as often again. Merging an entry takes as long as
/// walking over three, and a merge saves half of a walk over many tables. So a merge after [`WALKS`] walks
/// costs at most a few times what the walks cost, whatever follows. Only the steps from one table to another
/// are saved. If a walk takes entries from the tables at random, the share of these steps is one minus the
/// sum of the squares of the tables' shares.
pub(crate) fn is_worn(entries: &[u64], walked: u64) -> bool {
    let all: u64 = entries.iter().sum();
    let share = |entries: u64| entries as f64 / all as f64;
    let saved: f64 = 1.0 - entries.iter().map(|&entries| share(entries).powi(2)).sum::<f64>();
    entries.len() > 1 && walked as f64 * saved >= WALKS * all as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_added_while_there_are_few_and_merged_where_it_costs_least() {
        let plan = |tables: &[u64]| plan(tables, 5, TABLES_MAX, || large(1_000, u64::MAX));
        assert_eq!(plan(&[]), Plan::Minor);
        assert_eq!(plan(&[100; TABLES_MAX - 1]), Plan::Minor);
        assert_eq!(plan(&[100; TABLES_MAX]), Plan::Major, "all of them free most places");
        let mut tables = [5; TABLES_MAX];
        tables[0] = 1_000;
        assert_eq!(plan(&tables), Plan::Partial { from: 1 });
        tables[1..8].fill(100);
        assert_eq!(plan(&tables), Plan::Partial { from: 8 });
        tables[0] = 16_000;
        assert_eq!(plan(&tables), Plan::Major, "it is divided");
        tables.fill(500);
        tables[0] = 2_000;
        assert_eq!(plan(&tables), Plan::Major, "what is merged would be half of a large partition");
    }

    #[test]
    fn partitions_are_divided_sooner_where_there_is_little_space() {
        assert_eq!((large(100, u64::MAX), large(100, 2_000), large(100, 0)), (1_600, 500, 100));
    }

    #[test]
    fn partitions_are_due_at_different_times() {
        let mut most: Vec<_> = (100..108).map(tables_most).collect();
        most.sort_unstable();
        assert_eq!(most, (TABLES_MAX - 7..=TABLES_MAX).collect::<Vec<_>>());
    }

    /// A store that grows, with flushes to partitions that are all alike: what is written for a byte, and the most that
    /// one flush writes, in memtables. The log takes one byte of it.
    #[test]
    fn a_growing_store_writes_each_byte_three_times() {
        const NEW: u64 = 56 << 20;
        const FULL: u64 = 80 << 20;
        let mut partitions = vec![(NEW, Vec::new(), 0)];
        let (mut written, mut number, mut longest) = (0, 0, 0);
        for flush in 1..=200 {
            let before = written;
            for (new, mut tables, oldest) in std::mem::take(&mut partitions) {
                written += new;
                match plan(&tables, new, tables_most(oldest), || large(FULL, u64::MAX)) {
                    Plan::Minor => {
                        tables.push(new);
                        partitions.push((new, tables, oldest));
                    }
                    Plan::Partial { from } => {
                        let merged: u64 = tables.drain(from..).sum();
                        tables.push(merged + new);
                        written += merged;
                        partitions.push((new, tables, oldest));
                    }
                    Plan::Major => {
                        let old: u64 = tables.iter().sum();
                        let pieces = (old + new).div_ceil(FULL);
                        written += old;
                        for _ in 0..pieces {
                            number += 1;
                            partitions.push((new / pieces, vec![(old + new) / pieces], number));
                        }
                    }
                }
            }
            if partitions.len() > 1 {
                longest = longest.max(written - before);
            }
            let all = NEW * flush;
            let each = (all + written) as f64 / all as f64;
            assert!(each <= 3.0, "{each} bytes for each after {flush} flushes");
        }
        assert!(partitions.len() > 10 && longest < 30 * NEW, "{} in one flush", longest / NEW);
    }

    #[test]
    fn tables_are_merged_for_their_space_where_that_pays() {
        assert_eq!((excess(150, 100), excess(160, 100), excess(0, 0)), (0, 10, 0));
        assert!(!is_worth_space(133, 100) && is_worth_space(134, 100) && is_worth_space(10, 0));
        assert!(!is_worth_space(0, 0));
    }

    #[test]
    fn tables_are_worn_when_walking_them_has_cost_what_merging_would() {
        assert!(!is_worn(&[], 0) && !is_worn(&[0, 0], 0));
        assert!(!is_worn(&[100], 1 << 40), "there is nothing to merge");
        assert!(!is_worn(&[100; 10], 1600), "a tenth of the steps stays in one table");
        assert!(is_worn(&[100; 10], 1700));
        assert!(!is_worn(&[1000, 10], 50_000), "hardly any step leaves the large one");
        assert!(is_worn(&[1000, 10], 200_000));
    }

    #[test]
    fn what_expires_is_merged_where_a_third_of_it_has_or_after_a_day() {
        let is_expired = |entries, tables: &[(u32, u64, u64)], now_ms| {
            let tables =
                tables.iter().map(|&(values, first_ms, last_ms)| Expiries { values, first_ms, last_ms });
            is_expired(entries, tables, now_ms)
        };
        assert!(!is_expired(100, &[], u64::MAX) && !is_expired(0, &[(0, 1, 1)], 1));
        assert!(!is_expired(100, &[(90, 1000, 2000)], 1200), "a fifth, about");
        assert!(is_expired(100, &[(90, 1000, 2000)], 1500), "half");
        assert!(!is_expired(100, &[(10, 1000, 2000)], 2000), "all, but that is little");
        assert!(!is_expired(100, &[(10, 1000, 2000), (60, 2000, 3000)], 2300));
        assert!(is_expired(100, &[(10, 1000, 2000), (60, 2000, 3000)], 2600));
        assert!(!is_expired(1_000_000, &[(1, 1000, u64::MAX)], 999 + EXPIRED_MOST));
        assert!(is_expired(1_000_000, &[(1, 1000, u64::MAX)], 1000 + EXPIRED_MOST));
    }
}
