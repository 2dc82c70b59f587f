//! Decides how a partition takes the new pairs of a memtable: the cheapest way that keeps it fast to read.

/// Maximum number of tables of a partition. More tables make reads slower. Fewer make writes more expensive,
/// because a pair is written again when tables are merged.
pub(crate) const TABLES_MAX: usize = 16;

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

/// Decides for tables of these sizes in bytes, the oldest first, and new pairs of `new` bytes.
pub(crate) fn plan(tables: &[u64], new: u64) -> Plan {
    if tables.len() < TABLES_MAX {
        return Plan::Minor;
    }
    // Merging a longer tail frees more places but writes more. A tail is worth merging while it is small
    // compared with the rest. Otherwise the partition is rewritten as a whole.
    let all: u64 = tables.iter().sum::<u64>() + new;
    let half = tables.len() / 2;
    let tail: u64 = tables[half..].iter().sum::<u64>() + new;
    if tail * 4 <= all { Plan::Partial { from: half } } else { Plan::Major }
}

/// Whether so much of the entries is dead that merging them gives back a third of the space.
pub(crate) fn is_dead(all: u64, live: u64) -> bool {
    all.saturating_mul(2) > live.saturating_mul(3)
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
        assert_eq!(plan(&[], 5), Plan::Minor);
        assert_eq!(plan(&[100; TABLES_MAX - 1], 5), Plan::Minor);
        assert_eq!(plan(&[100; TABLES_MAX], 5), Plan::Major);
        let mut tables = [1; TABLES_MAX];
        tables[0] = 1000;
        assert_eq!(plan(&tables, 5), Plan::Partial { from: TABLES_MAX / 2 });
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
}
