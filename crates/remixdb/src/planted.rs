//! Bugs that the gates plant to show that they would be found. In what users build there are none: the question is
//! answered by a constant.
//!
//! Each is a mistake that somebody could make in the place where it is asked for. `tests/planted.rs` plants one after
//! the other and demands that some gate fails.

/// A mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A log is written to before its name is durable.
    LogNameNotSynced,
    /// A log is written to before its header is durable.
    LogHeaderNotSynced,
    /// A log is synced while one before it is not.
    OlderLogNotSynced,
    /// A failed sync of the log is taken for one that worked.
    SyncFailureIgnored,
    /// A failed sync is tried again, and believed.
    SyncTriedAgain,
    /// Changes count as synced before they are.
    SyncedTooEarly,
    /// Changes count as written before they are.
    WrittenTooEarly,
    /// A batch becomes several records.
    BatchSplit,
    /// A record says that more was synced than was.
    SyncedOverstated,
    /// No record says what was synced.
    SyncedNotStated,
    /// A record is taken without looking at its checksum.
    RecordNotChecked,
    /// A page is taken without looking at its checksum.
    PageNotChecked,
    /// The rest of a short write is forgotten.
    ShortWriteForgotten,
    /// A short read is taken for the end of the file.
    ShortReadIsEnd,
    /// The manifest names tables whose names are not durable.
    TableNameNotSynced,
    /// The manifest names tables whose content is not durable.
    TableNotSynced,
    /// Files are removed before the manifest that does not name them is durable.
    ManifestNotSynced,
    /// The old manifest is removed before the new one's name is durable.
    NewManifestNotSynced,
    /// Files are removed before the manifest says so at all.
    RemovedBeforeManifest,
    /// Logs are given up that hold what is in no table.
    FloorTooHigh,
    /// Keyspaces are forgotten with the log that made them.
    CatalogForgotten,
    /// Numbers begin above those that the manifest names.
    NumbersReused,
    /// What was read from logs is built upon before it is durable.
    RecoveredNotSynced,
    /// Logs that an earlier recovery gave up are taken for damage.
    GivenUpLogsRead,
    /// A log behind a torn one is read.
    BehindTornLogRead,
    /// A directory without a manifest is a new store.
    MissingManifestIsNew,
    /// A tombstone is left out although an older table has the key.
    TombstoneDropped,
    /// Of two versions of a key, the one in the older table wins a merge.
    OlderTableWins,
    /// A frozen memtable is asked before the one that is written to.
    OlderMemtableWins,
    /// The bounds of partitions are those of the first table.
    LowForgotten,
    /// What is written in pieces begins where the first piece does that has anything left.
    FirstPieceForgotten,
    /// A drop of a keyspace leaves its files.
    DroppedFilesStay,
    /// A checkpoint names copies of tables that are not durable.
    CopyNotSynced,
    /// A checkpoint is done before its logs are durable.
    CheckpointLogNotSynced,
    /// A checkpoint leaves deletions out.
    CheckpointWithoutTombstones,
}

impl Bug {
    #[cfg(test)]
    pub(crate) const ALL: [Bug; 35] = [
        Bug::LogNameNotSynced,
        Bug::LogHeaderNotSynced,
        Bug::OlderLogNotSynced,
        Bug::SyncFailureIgnored,
        Bug::SyncTriedAgain,
        Bug::SyncedTooEarly,
        Bug::WrittenTooEarly,
        Bug::BatchSplit,
        Bug::SyncedOverstated,
        Bug::SyncedNotStated,
        Bug::RecordNotChecked,
        Bug::PageNotChecked,
        Bug::ShortWriteForgotten,
        Bug::ShortReadIsEnd,
        Bug::TableNameNotSynced,
        Bug::TableNotSynced,
        Bug::ManifestNotSynced,
        Bug::NewManifestNotSynced,
        Bug::RemovedBeforeManifest,
        Bug::FloorTooHigh,
        Bug::CatalogForgotten,
        Bug::NumbersReused,
        Bug::RecoveredNotSynced,
        Bug::GivenUpLogsRead,
        Bug::BehindTornLogRead,
        Bug::MissingManifestIsNew,
        Bug::TombstoneDropped,
        Bug::OlderTableWins,
        Bug::OlderMemtableWins,
        Bug::LowForgotten,
        Bug::FirstPieceForgotten,
        Bug::DroppedFilesStay,
        Bug::CopyNotSynced,
        Bug::CheckpointLogNotSynced,
        Bug::CheckpointWithoutTombstones,
    ];

    /// Whether this bug is planted in the calling thread.
    #[cfg(not(test))]
    #[inline(always)]
    pub(crate) const fn is_planted(self) -> bool {
        false
    }

    /// Whether this bug is planted in the calling thread.
    #[cfg(test)]
    pub(crate) fn is_planted(self) -> bool {
        PLANTED.get() == Some(self)
    }
}

#[cfg(test)]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Plants a bug in the calling thread, or pulls it out.
#[cfg(test)]
pub(crate) fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}
