//! What a user chooses and is shown: how an index takes memory, which way a scan goes, what it all costs.

/// How an index takes memory.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Most bytes that the nodes may take; `None` means what the machine has. Values above
    /// 239 bytes live outside.
    pub capacity_bytes: Option<usize>,
    /// Which pages the nodes should lie on.
    pub pages: forrest_machine::pages::Pages,
    /// Where the pages are taken from on a machine with several memory nodes.
    pub numa: forrest_machine::pages::Numa,
}

/// Which way a scan goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From small keys to large ones.
    Forward,
    /// From large keys to small ones.
    Backward,
}

/// What an index holds and what it costs.
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
    /// Of these, bytes for which transparent huge pages were asked and granted by the system's setting.
    pub transparent_huge_bytes: u64,
    /// Snapshots alive.
    pub snapshots: u64,
}
