//! How many files this process may have open.

/// The limits on open files (`RLIMIT_NOFILE`); `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limit {
    /// The limit in force.
    pub soft: Option<u64>,
    /// How far the process may raise it by itself.
    pub hard: Option<u64>,
}

/// Reads the limits.
pub fn limit() -> Limit {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    Limit { soft: limit.current, hard: limit.maximum }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_limit_in_force_is_not_above_the_hard_one() {
        let limit = super::limit();
        let number = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
        assert!(number(limit.soft) <= number(limit.hard), "{limit:?}");
        // The test runner itself has some open.
        assert!(number(limit.soft) > 3, "{limit:?}");
    }
}
