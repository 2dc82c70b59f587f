//! Client requests to valgrind's tool callgrind, which counts on a simulated processor.
//!
//! A request is a sequence of instructions that changes nothing on a processor, and that valgrind recognizes
//! (`valgrind/valgrind.h` and `callgrind.h`, "client requests"). Only x86-64 has them here; elsewhere [`is_there`] is
//! false.

/// `VG_USERREQ__RUNNING_ON_VALGRIND`.
const RUNNING_ON_VALGRIND: u64 = 0x1001;
/// Where callgrind's own begin: `VG_USERREQ_TOOL_BASE('C', 'T')`.
const CALLGRIND: u64 = (b'C' as u64) << 24 | (b'T' as u64) << 16;
/// `VG_USERREQ__DUMP_STATS`.
const DUMP_STATS: u64 = CALLGRIND;
/// `VG_USERREQ__TOGGLE_COLLECT`.
const TOGGLE_COLLECT: u64 = CALLGRIND + 2;

/// `VG_USERREQ__START_INSTRUMENTATION`.
const START_INSTRUMENTATION: u64 = CALLGRIND + 4;

/// Whether this process runs under valgrind, with any tool.
pub fn is_there() -> bool {
    request(RUNNING_ON_VALGRIND) != 0
}

/// Starts the simulation. With `--instr-atstart=no`, the code before it has no effect on the simulated caches and
/// branch predictors. Does nothing outside callgrind, or the second time.
pub fn begin() {
    request(START_INSTRUMENTATION);
}

/// Toggles counting for the calling thread; the initial state is off with `--collect-atstart=no`. Does nothing
/// outside callgrind.
#[inline(always)]
pub fn toggle() {
    request(TOGGLE_COLLECT);
}

/// Writes the counts since the last dump to a file and resets them to zero. The file is complete when this returns. Its
/// name is that of `--callgrind-out-file` followed by `.1`, `.2` and so on. Does nothing outside callgrind.
pub fn dump() {
    request(DUMP_STATS);
}

/// Sends a client request to Valgrind; returns 0 outside Valgrind.
#[inline(always)]
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
fn request(request: u64) -> u64 {
    let words = [request, 0, 0, 0, 0, 0];
    let mut answer = 0;
    // SAFETY: four rotations by 128 bits in all, and an exchange of a register with itself, leave every register
    // unchanged. They change flags, which `asm!` assumes without `preserves_flags`. Valgrind reads the six words at
    // rax, which live until the end of the block, and writes rdx. The requests of this file let it write no other
    // memory of the program.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") words.as_ptr(),
            inout("rdx") answer,
            options(nostack)
        );
    }
    answer
}

/// There are no client requests here.
#[inline(always)]
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
fn request(_: u64) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tests run on a real processor, except under valgrind.
    #[test]
    fn requests_change_nothing_on_a_processor() {
        if is_there() {
            println!("skipped: this is valgrind");
            return;
        }
        let mut sum = 0;
        for at in 0..1000 {
            begin();
            toggle();
            dump();
            sum += at;
        }
        assert_eq!((sum, request(RUNNING_ON_VALGRIND)), (499_500, 0));
    }
}
