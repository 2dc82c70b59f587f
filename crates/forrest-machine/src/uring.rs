//! Whether io_uring can be used, and if not, why.
//!
//! Probing only: a ring is set up and closed. Containers often forbid it although the kernel has it.

use std::fmt;

/// What became of setting up a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Support {
    /// A ring could be set up.
    Present {
        /// The kernel's `IORING_FEAT_*` bits.
        features: u32,
    },
    /// No ring.
    Absent(Why),
}

/// Why there is no ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Why {
    /// The system has no io_uring (`ENOSYS`): a kernel before 5.1, one built without it, an emulator, a
    /// sandbox, or not Linux.
    Missing,
    /// The administrator turned it off; carries the value of `kernel.io_uring_disabled` (1: for users without
    /// the capability or the group, 2: for all).
    Disabled(u8),
    /// Refused (`EPERM`) although not turned off: a sandbox.
    Refused,
    /// Failed otherwise; carries the error number.
    Failed(i32),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Missing => f.write_str("the system has none"),
            Why::Disabled(value) => write!(f, "turned off by kernel.io_uring_disabled = {value}"),
            Why::Refused => f.write_str("refused, as sandboxes do"),
            Why::Failed(errno) => {
                write!(f, "failed: {}", std::io::Error::from_raw_os_error(*errno))
            }
        }
    }
}

/// Sets up a ring of one entry and closes it.
#[cfg(target_os = "linux")]
pub fn probe() -> Support {
    use rustix::io::Errno;
    use rustix::io_uring::{io_uring_params, io_uring_setup};
    let mut params = io_uring_params::default();
    // SAFETY: the parameters ask for no work queue of another ring.
    match unsafe { io_uring_setup(1, &mut params) } {
        Ok(_closed_here) => Support::Present { features: params.features.bits() },
        Err(Errno::NOSYS) => Support::Absent(Why::Missing),
        Err(Errno::PERM | Errno::ACCESS) => Support::Absent(match disabled() {
            Some(value @ 1..) => Why::Disabled(value),
            _ => Why::Refused,
        }),
        Err(other) => Support::Absent(Why::Failed(other.raw_os_error())),
    }
}

/// io_uring is Linux's.
#[cfg(not(target_os = "linux"))]
pub fn probe() -> Support {
    Support::Absent(Why::Missing)
}

#[cfg(target_os = "linux")]
fn disabled() -> Option<u8> {
    std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_stable_and_told_in_words() {
        let first = probe();
        println!("{first:?}");
        assert_eq!(first, probe());
        if cfg!(not(target_os = "linux")) {
            assert_eq!(first, Support::Absent(Why::Missing));
        }
        for why in [Why::Missing, Why::Disabled(2), Why::Refused, Why::Failed(12)] {
            assert!(!why.to_string().is_empty());
        }
        assert_eq!(Why::Disabled(1).to_string(), "turned off by kernel.io_uring_disabled = 1");
    }
}
