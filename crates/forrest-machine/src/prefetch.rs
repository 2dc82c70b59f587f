//! Fetching a cache line before it is needed.
//!
//! It is a hint: it has no visible effect, never faults, and does nothing on processors other than x86-64 and
//! AArch64. Its benefit depends on the work between the hint and the use; a lookup that waits for the line at once
//! gains nothing.

/// Asks for the cache line that holds `address`, for reading, into all levels of cache.
///
/// Any address is allowed, mapped or not: the hint never faults. On a page whose translation is in no
/// TLB the processor may walk the page table or drop the hint.
#[inline(always)]
pub fn read(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint that neither faults nor changes what the program can see, whatever
        // the address; SSE, which brings the instruction, is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast::<i8>()) }
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        // SAFETY: `prfm` is a hint of the base instruction set that neither faults nor changes what the
        // program can see, whatever the address; it touches no flags and no stack.
        unsafe {
            std::arch::asm!(
                "prfm pldl1keep, [{address}]",
                address = in(reg) address,
                options(nostack, preserves_flags, readonly)
            );
        }
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    #[test]
    fn any_address_may_be_asked_for() {
        let line = [0_u8; 64];
        super::read(line.as_ptr());
        super::read(std::ptr::null());
        super::read(std::ptr::without_provenance(usize::MAX));
        // Non-canonical on x86-64, outside both halves on AArch64.
        super::read(std::ptr::without_provenance(1 << 62));
    }
}
