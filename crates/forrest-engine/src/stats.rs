//! [`Stats`]: content and cost of a store; [`Capabilities`]: features of its home. Both print as tables. And
//! [`Approximate`]: what a range has, about.

use std::fmt;

/// Content and cost of a store, at about the time of the call. Prints as a table.
///
/// ```
/// # let db = forrest::Db::open("memory:")?;
/// db.set("oak", "Quercus robur")?;
/// let stats = db.stats()?;
/// assert_eq!((stats.keys, stats.keyspaces, stats.snapshots), (1, 1, 0));
/// println!("{stats}{} bytes a key", stats.bytes_per_key());
/// # Ok::<(), forrest::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Keys in all keyspaces. On disk an estimate: a key that is both in memory and in a table counts twice,
    /// and a key whose deletion is still in memory counts too.
    pub keys: u64,
    /// Keyspaces, including the default one.
    pub keyspaces: u64,
    /// Snapshots alive.
    pub snapshots: u64,
    /// Bytes in use for nodes: keys, values up to 239 bytes, and their overhead.
    pub node_bytes: u64,
    /// Bytes outside the nodes: of longer values, and in memory of values that expire and of the times of these, about.
    pub value_bytes_outside: u64,
    /// Bytes taken from the operating system for nodes.
    pub reserved_bytes: u64,
    /// Of these, bytes on explicit huge pages.
    pub explicit_huge_bytes: u64,
    /// Of these, bytes on transparent huge pages, as far as the system grants them.
    pub transparent_huge_bytes: u64,
    /// Tables on disk.
    pub tables: u64,
    /// Bytes of all tables.
    pub table_bytes: u64,
    /// Bytes that these tables would take without compression.
    pub table_plain_bytes: u64,
    /// Of the bytes of all tables, those of entries that were not replaced or deleted by what is in tables, about: in
    /// each partition their share of the entries, as if all had the same length. Values that have expired count, and so
    /// does all of which it is not known without reading.
    pub table_live_bytes: u64,
    /// Bytes of memory that hold data read from tables.
    pub cache_bytes: u64,
    /// Of the memory that the cache has taken from the operating system, bytes on explicit huge pages.
    pub cache_explicit_huge_bytes: u64,
    /// Of that, bytes on transparent huge pages, as far as the system grants them.
    pub cache_transparent_huge_bytes: u64,
    /// Bytes of memory that hold the locations of keys in tables.
    pub index_bytes: u64,
    /// Bytes of memtables and indexes that only snapshots and iterators still have, and of those that a flush or a
    /// merge is making.
    pub kept_bytes: u64,
    /// Files of the store that are open.
    pub open_files: u64,
    /// Bytes of files on disk that the store no longer needs, and that other processes read.
    pub held_bytes: u64,
    /// Bytes of the logs that are kept for large values in them.
    pub value_log_bytes: u64,
    /// Of these, bytes of values that tables refer to and that were not replaced or deleted, about. Changes in memory
    /// do not count yet.
    pub value_log_live_bytes: u64,
    /// Values that expire, about: in memory all, with expired ones that are still there; on disk those in tables, with
    /// replaced and expired ones that are still there, and one for each memtable that has some. 0 if there are none.
    pub expiring: u64,
}

impl Stats {
    /// Of the reserved bytes, those on plain pages.
    pub fn plain_bytes(&self) -> u64 {
        self.reserved_bytes.saturating_sub(self.explicit_huge_bytes + self.transparent_huge_bytes)
    }

    /// Total bytes in use.
    pub fn used_bytes(&self) -> u64 {
        self.node_bytes + self.value_bytes_outside
    }

    /// Bytes in use per key; 0 if there are no keys.
    pub fn bytes_per_key(&self) -> f64 {
        if self.keys == 0 { 0.0 } else { self.used_bytes() as f64 / self.keys as f64 }
    }

    /// The space amplification: bytes of tables and of logs of large values for each byte of them that is live, about;
    /// 0 if there is none. The log of changes that are in no table yet is not in it, and changes in memory have
    /// replaced nothing yet. Bytes are as they are stored, so compression and what a table adds to its pairs do not
    /// change it: it says how much space merges would give back.
    pub fn space_amplification(&self) -> f64 {
        let live = self.table_live_bytes + self.value_log_live_bytes;
        let all = self.table_bytes + self.value_log_bytes;
        if live == 0 { 0.0 } else { all as f64 / live as f64 }
    }

    /// Name, value and unit of each figure, in the table's order.
    pub fn rows(&self) -> [(&'static str, u64, &'static str); 23] {
        [
            ("keys", self.keys, ""),
            ("keyspaces", self.keyspaces, ""),
            ("snapshots", self.snapshots, ""),
            ("nodes", self.node_bytes, "bytes"),
            ("values outside nodes", self.value_bytes_outside, "bytes"),
            ("reserved", self.reserved_bytes, "bytes"),
            ("on explicit huge pages", self.explicit_huge_bytes, "bytes"),
            ("on transparent huge pages", self.transparent_huge_bytes, "bytes"),
            ("on plain pages", self.plain_bytes(), "bytes"),
            ("tables on disk", self.tables, ""),
            ("in tables", self.table_bytes, "bytes"),
            ("without compression", self.table_plain_bytes, "bytes"),
            ("live in tables", self.table_live_bytes, "bytes"),
            ("cached", self.cache_bytes, "bytes"),
            ("cache, explicit huge pages", self.cache_explicit_huge_bytes, "bytes"),
            ("cache, transparent ones", self.cache_transparent_huge_bytes, "bytes"),
            ("indexes of tables", self.index_bytes, "bytes"),
            ("kept for snapshots", self.kept_bytes, "bytes"),
            ("open files", self.open_files, ""),
            ("held for other readers", self.held_bytes, "bytes"),
            ("logs of large values", self.value_log_bytes, "bytes"),
            ("of these, live values", self.value_log_live_bytes, "bytes"),
            ("values that expire", self.expiring, ""),
        ]
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rows().iter().try_for_each(|(name, value, unit)| {
            writeln!(f, "{}", format!("{name:<26} {:>20} {unit}", thousands(*value)).trim_end())
        })
    }
}

fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// What a range of keys has, about. `View::approximate` of the API says how far it may be off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Approximate {
    /// Number of keys.
    pub keys: u64,
    /// Bytes that they and their values take: on disk in tables, after compression, with replaced and deleted pairs
    /// that are still there, and beside these in memtables; in memory without the overhead of nodes.
    pub bytes: u64,
}

/// A feature that a home may have.
///
/// ```
/// # let db = forrest::Db::open("memory:")?;
/// use forrest::Capability;
/// for (capability, has) in db.capabilities().iter() {
///     println!("{capability}: {has}");
/// }
/// assert!(db.capabilities().has(Capability::Batches));
/// assert_eq!(Capability::Batches.as_str(), "atomic batches");
/// # Ok::<(), forrest::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Capability {
    /// Ordered iteration both ways.
    Iteration,
    /// Atomic batches.
    Batches,
    /// Snapshots.
    Snapshots,
    /// More keyspaces than the default one.
    Keyspaces,
    /// Data outlives the process.
    Persistence,
    /// Several processes share one store.
    Sharing,
    /// [`Durability::Sync`](crate::Durability::Sync): data survives power loss.
    Sync,
    /// `Db::open_read_only`.
    ReadOnly,
    /// `Db::checkpoint`.
    Checkpoint,
    /// `Db::verify`.
    Verify,
    /// `Db::compact`.
    Compact,
    /// `Keyspace::ingest`.
    Ingest,
    /// Compressed tables.
    Compression,
    /// `Db::metrics`, and events for a listener.
    Metrics,
    /// `View::approximate`.
    Approximate,
    /// `Db::changes`.
    Changes,
    /// `Keyspace::merge`.
    Merge,
    /// `Db::backup`.
    Backup,
    /// `Keyspace::set_with_ttl`.
    Ttl,
}

impl Capability {
    /// All of them.
    pub const ALL: [Capability; 19] = [
        Capability::Iteration,
        Capability::Batches,
        Capability::Snapshots,
        Capability::Keyspaces,
        Capability::Persistence,
        Capability::Sharing,
        Capability::Sync,
        Capability::ReadOnly,
        Capability::Checkpoint,
        Capability::Verify,
        Capability::Compact,
        Capability::Ingest,
        Capability::Compression,
        Capability::Metrics,
        Capability::Approximate,
        Capability::Changes,
        Capability::Merge,
        Capability::Backup,
        Capability::Ttl,
    ];

    /// Its description in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Capability::Iteration => "ordered iteration both ways",
            Capability::Batches => "atomic batches",
            Capability::Snapshots => "snapshots",
            Capability::Keyspaces => "several keyspaces",
            Capability::Persistence => "data outlives the process",
            Capability::Sharing => "several processes share a store",
            Capability::Sync => "data survives power loss",
            Capability::ReadOnly => "opening read-only",
            Capability::Checkpoint => "checkpoint",
            Capability::Verify => "verify",
            Capability::Compact => "compact",
            Capability::Ingest => "ingest of sorted pairs",
            Capability::Compression => "compressed tables",
            Capability::Metrics => "metrics and events",
            Capability::Approximate => "approximate counts",
            Capability::Changes => "changes as a stream",
            Capability::Merge => "merge operators",
            Capability::Backup => "backups",
            Capability::Ttl => "values that expire",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The features of a home; using any other is an `Unsupported` error. Prints as a table.
///
/// ```
/// let db = forrest::Db::open("memory:")?;
/// assert!(db.capabilities().to_string().contains("atomic batches                   yes\n"));
/// # Ok::<(), forrest::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    home: &'static str,
    list: &'static [Capability],
}

impl Capabilities {
    /// The features of the home whose URLs begin with `home`.
    pub fn new(home: &'static str, list: &'static [Capability]) -> Capabilities {
        Capabilities { home, list }
    }

    /// The kind of home: the beginning of its URLs.
    pub fn home(&self) -> &'static str {
        self.home
    }

    /// True if the home has the feature.
    pub fn has(&self, capability: Capability) -> bool {
        self.list.contains(&capability)
    }

    /// Every capability, and whether the home has it.
    pub fn iter(&self) -> impl Iterator<Item = (Capability, bool)> {
        Capability::ALL.into_iter().map(|capability| (capability, self.has(capability)))
    }
}

impl fmt::Display for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|(capability, has)| {
            writeln!(f, "{:<32} {}", capability.as_str(), if has { "yes" } else { "no" })
        })
    }
}
