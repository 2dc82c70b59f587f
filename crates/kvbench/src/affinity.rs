//! Pins threads to CPUs, so that a figure is not the scheduler's. Where the system cannot, nothing happens.

use std::sync::OnceLock;

/// The CPUs that this process may use, by number, as they were when this was first asked: before any thread
/// was pinned.
pub(crate) fn cpus() -> &'static [usize] {
    static CPUS: OnceLock<Vec<usize>> = OnceLock::new();
    CPUS.get_or_init(allowed)
}

/// Keeps the calling thread on the last CPU of this process.
pub(crate) fn pin_to_last() {
    if let Some(&cpu) = cpus().last() {
        pin(cpu);
    }
}

#[cfg(target_os = "linux")]
fn allowed() -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    sched_getaffinity(None)
        .map_or_else(|_| vec![0], |set| (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

#[cfg(not(target_os = "linux"))]
fn allowed() -> Vec<usize> {
    (0..std::thread::available_parallelism().map_or(1, usize::from)).collect()
}

/// Keeps the calling thread on one CPU; true if the system did it.
#[cfg(target_os = "linux")]
pub(crate) fn pin(cpu: usize) -> bool {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).is_ok()
}

/// Keeps the calling thread on one CPU; true if the system did it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn pin(_cpu: usize) -> bool {
    false
}
