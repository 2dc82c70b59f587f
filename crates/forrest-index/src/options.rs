//! Options of an index, the direction of a scan, and statistics.

/// How an index takes memory.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Maximum bytes of nodes, at most [`MAX_CAPACITY_BYTES`](crate::MAX_CAPACITY_BYTES); `None` means the memory of
    /// the machine. Values of more than 239 bytes are outside the nodes. Removals may take 1/16 more, at least 2 and at
    /// most 64 MiB, once no block within serves.
    pub capacity_bytes: Option<usize>,
    /// Which pages the nodes should lie on.
    pub pages: forrest_machine::pages::Pages,
    /// Where the pages are taken from on a machine with several memory nodes.
    pub numa: forrest_machine::pages::Numa,
    /// Where the index finds memory that another one has left, and leaves its own. Only for indexes with the same
    /// `numa`. Such an index keeps all its memory until it is trimmed or dropped.
    pub spare: Option<crate::Spare>,
}

/// Which way a scan goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From small keys to large ones.
    Forward,
    /// From large keys to small ones.
    Backward,
}

/// The content of an index and its memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Keys in all trees, newest state.
    pub keys: u64,
    /// Bytes in live nodes.
    pub node_bytes: u64,
    /// Bytes of values held outside the nodes.
    pub blob_bytes: u64,
    /// Bytes taken from the operating system for nodes.
    pub arena_bytes: u64,
    /// Of these, bytes on explicit huge pages.
    pub explicit_huge_bytes: u64,
    /// Of these, bytes for which transparent huge pages were requested and are enabled in the system.
    pub transparent_huge_bytes: u64,
    /// Snapshots alive.
    pub snapshots: u64,
}
