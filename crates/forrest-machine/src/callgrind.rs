//! Counting by valgrind's tool callgrind, which simulates the processor: what a program asks of it while it runs there.
//!
//! A request is a sequence of instructions that changes nothing on a processor, and that valgrind knows
//! (`valgrind/valgrind.h` and `callgrind.h`, "client requests"). Elsewhere than on x86-64 there are none here, and
//! [`is_there`] is false.

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

/// Whether this process runs under valgrind, whichever its tool is.
pub fn is_there() -> bool {
    request(RUNNING_ON_VALGRIND) != 0
}

/// Begins to simulate: with `--instr-atstart=no`, what was done until now left no trace in caches and branch
/// predictors. Nothing happens elsewhere than under callgrind, or the second time.
pub fn begin() {
    request(START_INSTRUMENTATION);
}

/// Begins to count what the calling thread does if nothing is counted (`--collect-atstart=no`), and ends it if
/// something is. Nothing happens elsewhere than under callgrind.
#[inline(always)]
pub fn toggle() {
    request(TOGGLE_COLLECT);
}

/// Writes what was counted since the last time to a file, which is whole when this returns, and begins again from zero.
/// The files are named by `--callgrind-out-file`, with `.1`, `.2` and so on behind. Nothing happens elsewhere than
/// under callgrind.
pub fn dump() {
    request(DUMP_STATS);
}

/// Asks; 0 where nobody answers.
#[inline(always)]
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
fn request(request: u64) -> u64 {
    let words = [request, 0, 0, 0, 0, 0];
    let mut answer = 0;
    // SAFETY: four rotations by 128 bits in all, and an exchange of a register with itself, leave every register as it
    // was, and change flags, which are not said to be preserved. Valgrind reads the six words at rax, which live until
    // the end of the block, and writes rdx; the requests of this file have it write no other memory of the program.
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

/// Asks nobody.
#[inline(always)]
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
fn request(_: u64) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tests run on a processor, unless somebody runs them under valgrind.
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
