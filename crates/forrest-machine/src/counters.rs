//! Probes the processor's performance counters, and reads the system's counters of a thread.
//!
//! A probe only opens and closes a counter of the current thread, in user mode.

use std::fmt;

/// The best sort of counter that could be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// The processor's own: cycles, instructions, cache and TLB misses.
    Hardware,
    /// The kernel's only: time on the processor, page faults, migrations. Usual in virtual machines.
    Software,
    /// None.
    Nothing,
}

/// The result of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Support {
    /// The best that could be opened.
    pub level: Level,
    /// The error number of the first sort that could not, if one could not.
    pub errno: Option<i32>,
    /// `kernel.perf_event_paranoid`, where there is one: above 2, some systems refuse ordinary users.
    pub paranoid: Option<i32>,
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.level {
            Level::Hardware => "hardware counters",
            Level::Software => "software counters only",
            Level::Nothing => "no counters",
        })?;
        match self.errno {
            None => Ok(()),
            Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => {
                f.write_str("; the processor's are hidden from this machine, or unknown to its kernel")
            }
            Some(libc::EACCES | libc::EPERM) => f.write_str("; the processor's are refused"),
            Some(errno) => write!(f, "; {}", std::io::Error::from_raw_os_error(errno)),
        }
    }
}

/// Opens a hardware counter, and a software counter if that fails.
#[cfg(target_os = "linux")]
pub fn probe() -> Support {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let paranoid = paranoid.ok().and_then(|text| text.trim().parse().ok());
    let hardware = linux::open(linux::HARDWARE, linux::CPU_CYCLES);
    let level = match hardware {
        Ok(()) => Level::Hardware,
        Err(_) if linux::open(linux::SOFTWARE, linux::TASK_CLOCK).is_ok() => Level::Software,
        Err(_) => Level::Nothing,
    };
    Support { level, errno: hardware.err(), paranoid }
}

/// `perf_event_open` is Linux's.
#[cfg(not(target_os = "linux"))]
pub fn probe() -> Support {
    Support { level: Level::Nothing, errno: None, paranoid: None }
}

/// The system's counters of a thread since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Usage {
    /// Accesses to pages that were not mapped, whether or not a device had to be read for it.
    pub page_faults: u64,
    /// How often another thread got the processor, by choice of this thread or not.
    pub context_switches: u64,
}

/// The system's counters of the calling thread (`getrusage`); `None` if it has none for single threads.
#[cfg(target_os = "linux")]
pub fn thread_usage() -> Option<Usage> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one `rusage`, for which there is room.
    let done = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    // SAFETY: all bytes are initialised, and any are valid numbers.
    let usage = unsafe { usage.assume_init() };
    (done == 0).then(|| Usage {
        page_faults: (usage.ru_minflt + usage.ru_majflt).unsigned_abs(),
        context_switches: (usage.ru_nvcsw + usage.ru_nivcsw).unsigned_abs(),
    })
}

/// `RUSAGE_THREAD` is Linux's.
#[cfg(not(target_os = "linux"))]
pub fn thread_usage() -> Option<Usage> {
    None
}

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::{FromRawFd, OwnedFd};

    /// `PERF_TYPE_HARDWARE`.
    pub(super) const HARDWARE: u32 = 0;
    /// `PERF_TYPE_SOFTWARE`.
    pub(super) const SOFTWARE: u32 = 1;
    /// `PERF_COUNT_HW_CPU_CYCLES`.
    pub(super) const CPU_CYCLES: u64 = 0;
    /// `PERF_COUNT_SW_TASK_CLOCK`.
    pub(super) const TASK_CLOCK: u64 = 1;

    /// `struct perf_event_attr` in its first published form (`PERF_ATTR_SIZE_VER0`), which every kernel takes.
    #[repr(C)]
    struct Attributes {
        kind: u32,
        size: u32,
        config: u64,
        sample_period: u64,
        sample_type: u64,
        read_format: u64,
        flags: u64,
        wakeup_events: u32,
        breakpoint_type: u32,
        config_1: u64,
    }

    const _: () = assert!(size_of::<Attributes>() == 64 && align_of::<Attributes>() == 8);
    const _: () = assert!(std::mem::offset_of!(Attributes, config) == 8);
    const _: () = assert!(std::mem::offset_of!(Attributes, flags) == 40);
    const _: () = assert!(std::mem::offset_of!(Attributes, config_1) == 56);

    /// Bits of `flags`, on little-endian machines: do not count yet; not in the kernel, not in the hypervisor.
    const DISABLED: u64 = 1 << 0;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HYPERVISOR: u64 = 1 << 6;

    /// Opens a counter of this thread and closes it; the error number if it cannot be had.
    pub(super) fn open(kind: u32, config: u64) -> Result<(), i32> {
        let attributes = Attributes {
            kind,
            size: size_of::<Attributes>() as u32,
            config,
            sample_period: 0,
            sample_type: 0,
            read_format: 0,
            flags: DISABLED | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
            wakeup_events: 0,
            breakpoint_type: 0,
            config_1: 0,
        };
        /// `PERF_FLAG_FD_CLOEXEC`.
        const CLOEXEC: libc::c_ulong = 1 << 3;
        let (this_thread, any_cpu, no_group): (libc::pid_t, libc::c_int, libc::c_int) = (0, -1, -1);
        // SAFETY: the kernel reads as many bytes of the attributes as they say they have.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                this_thread,
                any_cpu,
                no_group,
                CLOEXEC,
            )
        };
        let fd = i32::try_from(fd).unwrap_or(-1);
        if fd < 0 {
            return Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO));
        }
        // SAFETY: the kernel opened it just now, and no other code owns it.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_consistent() {
        let support = probe();
        println!("{support}, paranoid {:?}", support.paranoid);
        match support.level {
            Level::Hardware => assert_eq!(support.errno, None),
            Level::Software | Level::Nothing => {
                assert_eq!(support.errno.is_some(), cfg!(target_os = "linux"));
            }
        }
        assert!(!support.to_string().is_empty());
    }
    /// The first access to memory maps it.
    #[test]
    fn a_thread_counts_its_page_faults() {
        let Some(before) = thread_usage() else {
            println!("skipped: the system has no counters for single threads");
            return;
        };
        let mut touched = vec![0_u8; 8 << 20];
        touched.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        let after = thread_usage().expect("it was available before");
        assert!(std::hint::black_box(&touched).contains(&1) && after.page_faults > before.page_faults);
        assert!(after.context_switches >= before.context_switches);
    }
}
