//! On which memory nodes a region's pages lie.

use std::io;

/// The memory nodes (NUMA) that pages are allocated from. It has no effect on a machine with one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Numa {
    /// The policy of the thread: by default the node of the thread that first touches a page. A policy set from
    /// outside (`numactl`) is respected.
    #[default]
    Local,
    /// All nodes that have memory, in turn, page by page. Every thread sees the mean latency, and the bandwidth
    /// of all nodes is used.
    Interleave,
    /// The node with this number ([`nodes`] lists them), and the others once it has no memory left.
    Node(u32),
}

/// The numbers of the memory nodes of this machine; `[0]` where the system does not report them.
pub fn nodes() -> Vec<usize> {
    let listed = ["/sys/devices/system/node/has_memory", "/sys/devices/system/node/online"]
        .into_iter()
        .find_map(|path| parse_list(std::fs::read_to_string(path).ok()?.trim()));
    listed.unwrap_or_else(|| vec![0])
}

impl Numa {
    /// Whether the machine has what this names.
    pub fn is_here(self) -> bool {
        match self {
            Numa::Local | Numa::Interleave => true,
            Numa::Node(node) => nodes().contains(&(node as usize)),
        }
    }

    /// The nodes that pages go to in turn; none if the thread's own policy decides.
    pub(super) fn turns(self) -> Vec<usize> {
        match self {
            Numa::Local => Vec::new(),
            Numa::Interleave => Some(nodes()).filter(|nodes| nodes.len() > 1).unwrap_or_default(),
            Numa::Node(node) => vec![node as usize],
        }
    }
}

/// Parses a kernel list such as `0-3,8`; `None` if it is empty or malformed.
fn parse_list(list: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last - first > 4096 {
            return None;
        }
        numbers.extend(first..=last);
    }
    (!numbers.is_empty()).then_some(numbers)
}

/// Spreads a reserved range over `nodes` from now on; nothing if there are none.
///
/// # Safety
///
/// The range lies in a mapping of the caller.
pub(super) unsafe fn interleave(address: *mut u8, bytes: usize, nodes: &[usize]) -> io::Result<()> {
    if nodes.is_empty() {
        return Ok(());
    }
    // SAFETY: the range is in a mapping of the caller, as this function requires.
    unsafe { sys::bind_interleaved(address, bytes, nodes) }
}

/// Runs `allocate` with pages that it allocates in this thread spread over `nodes`; simply runs it if there are none,
/// or where the policy cannot be set.
pub(super) fn interleaved<R>(nodes: &[usize], allocate: impl FnOnce() -> R) -> R {
    let _policy = if nodes.is_empty() { None } else { sys::ThreadPolicy::interleave(nodes).ok() };
    allocate()
}

#[cfg(target_os = "linux")]
mod sys {
    use std::io;

    /// Bits in a mask of nodes; the kernel is built for at most 1024.
    const MASK_BITS: usize = 1024;
    const WORD_BITS: usize = usize::BITS as usize;

    /// A mask of nodes as the kernel takes it: an array of `unsigned long`.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Mask([usize; MASK_BITS / WORD_BITS]);

    // The system calls take MASK_BITS + 1, because the kernel uses one bit fewer than it is passed. It reads whole
    // words.
    const _: () = assert!(size_of::<Mask>() * 8 == MASK_BITS);
    const _: () = assert!(size_of::<usize>() == size_of::<libc::c_ulong>());

    impl Mask {
        pub(super) fn of(nodes: &[usize]) -> Mask {
            let mut words = [0; MASK_BITS / WORD_BITS];
            for &node in nodes.iter().filter(|&&node| node < MASK_BITS) {
                words[node / WORD_BITS] |= 1 << (node % WORD_BITS);
            }
            Mask(words)
        }
    }

    fn answer(code: libc::c_long) -> io::Result<()> {
        if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// # Safety
    ///
    /// The range lies in a mapping of the caller.
    pub(super) unsafe fn bind_interleaved(address: *mut u8, bytes: usize, nodes: &[usize]) -> io::Result<()> {
        let mask = Mask::of(nodes);
        let flags: libc::c_uint = 0;
        // SAFETY: a policy changes where pages will lie, not what they hold; the mask has MASK_BITS bits.
        answer(unsafe {
            libc::syscall(
                libc::SYS_mbind,
                address,
                bytes,
                libc::MPOL_INTERLEAVE,
                mask.0.as_ptr(),
                MASK_BITS + 1,
                flags,
            )
        })
    }

    /// The thread's policy as it was; put back on drop.
    #[derive(Debug)]
    pub(super) struct ThreadPolicy {
        mode: libc::c_int,
        mask: Mask,
    }

    impl ThreadPolicy {
        pub(super) fn interleave(nodes: &[usize]) -> io::Result<ThreadPolicy> {
            let (mut mode, mut mask): (libc::c_int, Mask) = (0, Mask::of(&[]));
            let no_address = std::ptr::null_mut::<libc::c_void>();
            // SAFETY: `mode` and `mask` are writable, and the mask has MASK_BITS bits.
            answer(unsafe {
                libc::syscall(
                    libc::SYS_get_mempolicy,
                    &raw mut mode,
                    mask.0.as_mut_ptr(),
                    MASK_BITS + 1,
                    no_address,
                    0_usize,
                )
            })?;
            let before = ThreadPolicy { mode, mask };
            set(libc::MPOL_INTERLEAVE, &Mask::of(nodes))?;
            Ok(before)
        }
    }

    impl Drop for ThreadPolicy {
        fn drop(&mut self) {
            let restored = set(self.mode, &self.mask);
            debug_assert!(
                restored.is_ok(),
                "the kernel refused the policy that it had returned: {restored:?}"
            );
        }
    }

    fn set(mode: libc::c_int, mask: &Mask) -> io::Result<()> {
        // SAFETY: changes where later pages of this thread lie; the mask has MASK_BITS bits.
        answer(unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask.0.as_ptr(), MASK_BITS + 1) })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn masks_have_the_bits_of_their_nodes() {
            let mask = Mask::of(&[0, 2, 65, MASK_BITS]);
            assert_eq!(mask.0[0], 0b101);
            assert_eq!(mask.0[1], 0b10);
            assert!(mask.0[2..].iter().all(|&word| word == 0));
        }

        /// One node is a degenerate spread, but the calls and their arguments are the same.
        #[test]
        fn the_policy_is_set_and_put_back() {
            let nodes = crate::pages::nodes();
            match ThreadPolicy::interleave(&nodes[..1]) {
                Err(error) => println!("skipped: no memory policies here: {error}"),
                Ok(before) => {
                    let mode = before.mode;
                    drop(before);
                    let after = ThreadPolicy::interleave(&nodes[..1]).expect("it could be set before");
                    assert_eq!(after.mode, mode);
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod sys {
    use std::io;

    /// # Safety
    ///
    /// None: there is no such call here.
    pub(super) unsafe fn bind_interleaved(_: *mut u8, _: usize, _: &[usize]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[derive(Debug)]
    pub(super) struct ThreadPolicy;

    impl ThreadPolicy {
        pub(super) fn interleave(_: &[usize]) -> io::Result<ThreadPolicy> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_kernel() {
        assert_eq!(parse_list("0"), Some(vec![0]));
        assert_eq!(parse_list("0-2,8"), Some(vec![0, 1, 2, 8]));
        for malformed in ["", "0-", "a", "3-1", "0-99999999999"] {
            assert_eq!(parse_list(malformed), None, "{malformed:?}");
        }
    }

    #[test]
    fn there_is_always_a_node() {
        assert!(!nodes().is_empty());
    }

    #[test]
    fn a_node_is_one_of_the_machine() {
        let first = nodes()[0];
        assert!(Numa::Node(first as u32).is_here() && Numa::Local.is_here() && Numa::Interleave.is_here());
        assert!(!Numa::Node(u32::MAX).is_here());
        assert_eq!(Numa::Node(3).turns(), [3]);
        assert!(Numa::Local.turns().is_empty() && Numa::Interleave.turns().len() != 1);
    }

    #[test]
    fn interleaving_runs_the_closure_once() {
        for nodes in [&[][..], &[0], &[0, 1]] {
            let mut runs = 0;
            interleaved(nodes, || runs += 1);
            assert_eq!(runs, 1);
        }
    }
}
