//! Tests of [`Region`] that hold on any machine, with any kinds of pages.

use super::*;

const ALL_NUMA: [Numa; 3] = [Numa::Local, Numa::Interleave, Numa::Node(0)];

/// Reads the first and last byte of each base page of a range.
fn sample(region: &Region, offset: usize, len: usize) -> Vec<u8> {
    assert!(offset + len <= region.len());
    (offset..offset + len)
        .step_by(4096)
        .flat_map(|at| {
            // SAFETY: the tests sample only what they committed.
            unsafe { [region.base().add(at).read(), region.base().add(at + 4095).read()] }
        })
        .collect()
}

fn fill(region: &Region, offset: usize, len: usize, byte: u8) {
    assert!(offset + len <= region.len());
    // SAFETY: the tests fill only what they committed.
    unsafe { region.base().add(offset).write_bytes(byte, len) };
}

#[test]
fn committed_memory_is_zero_and_writable_with_all_pages() {
    for pages in Pages::ALL {
        for numa in ALL_NUMA {
            let region = Region::reserve(4 * GRANULE_BYTES, pages, numa).expect("8 MiB of addresses");
            assert_eq!(region.len(), 4 * GRANULE_BYTES);
            assert_eq!(region.pages(), pages);
            assert!(region.base().as_ptr().addr().is_multiple_of(GRANULE_BYTES));
            let kind = region.commit(GRANULE_BYTES, 2 * GRANULE_BYTES).expect("4 MiB of memory");
            if pages == Pages::Plain {
                assert_eq!(kind, PageKind::Plain);
            }
            assert_eq!(region.committed().total_bytes(), 2 * GRANULE_BYTES);
            assert!(sample(&region, GRANULE_BYTES, 2 * GRANULE_BYTES).iter().all(|&byte| byte == 0));
            fill(&region, GRANULE_BYTES, 2 * GRANULE_BYTES, 7);
            assert!(sample(&region, GRANULE_BYTES, 2 * GRANULE_BYTES).iter().all(|&byte| byte == 7));
        }
    }
}

#[test]
fn sizes_are_rounded_up_and_bounds_checked() {
    let region = Region::reserve(1, Pages::Auto, Numa::Local).expect("one granule of addresses");
    assert_eq!(region.len(), GRANULE_BYTES);
    for (offset, len) in [
        (0, 0),
        (0, 1),
        (1, GRANULE_BYTES),
        (0, 2 * GRANULE_BYTES),
        (GRANULE_BYTES, GRANULE_BYTES),
        (usize::MAX - GRANULE_BYTES + 1, GRANULE_BYTES),
    ] {
        let error = region.commit(offset, len).expect_err("not a range of the region");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{offset} {len}");
        // SAFETY: nothing was committed.
        let error = unsafe { region.decommit(offset, len) }.expect_err("not a range of the region");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{offset} {len}");
    }
    for bytes in [0, usize::MAX] {
        let error = Region::reserve(bytes, Pages::Auto, Numa::Local).expect_err("no such size");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
    // More than any processor can address: an error of the system, not a panic.
    Region::reserve(1 << 62, Pages::Auto, Numa::Local).expect_err("4 EiB of addresses");
}

#[test]
fn committing_twice_keeps_what_was_written() {
    for pages in Pages::ALL {
        let region = Region::reserve(3 * GRANULE_BYTES, pages, Numa::Local).expect("6 MiB of addresses");
        region.commit(GRANULE_BYTES, GRANULE_BYTES).expect("2 MiB of memory");
        fill(&region, GRANULE_BYTES, GRANULE_BYTES, 1);
        region.commit(0, 3 * GRANULE_BYTES).expect("6 MiB of memory");
        assert!(sample(&region, GRANULE_BYTES, GRANULE_BYTES).iter().all(|&byte| byte == 1));
        assert!(sample(&region, 0, GRANULE_BYTES).iter().all(|&byte| byte == 0));
        assert!(sample(&region, 2 * GRANULE_BYTES, GRANULE_BYTES).iter().all(|&byte| byte == 0));
    }
}

#[test]
fn decommitted_memory_comes_back_zero() {
    for pages in Pages::ALL {
        for numa in ALL_NUMA {
            let region = Region::reserve(4 * GRANULE_BYTES, pages, numa).expect("8 MiB of addresses");
            region.commit(0, 4 * GRANULE_BYTES).expect("8 MiB of memory");
            fill(&region, 0, 4 * GRANULE_BYTES, 9);
            // SAFETY: nothing refers to the range.
            unsafe { region.decommit(GRANULE_BYTES, 2 * GRANULE_BYTES) }.expect("own memory");
            assert_eq!(region.committed().total_bytes(), 2 * GRANULE_BYTES);
            // Twice is allowed.
            // SAFETY: nothing refers to the range.
            unsafe { region.decommit(GRANULE_BYTES, GRANULE_BYTES) }.expect("nothing to do");
            region.commit(0, 4 * GRANULE_BYTES).expect("8 MiB of memory");
            assert!(sample(&region, 0, GRANULE_BYTES).iter().all(|&byte| byte == 9));
            assert!(sample(&region, GRANULE_BYTES, 2 * GRANULE_BYTES).iter().all(|&byte| byte == 0));
            assert!(sample(&region, 3 * GRANULE_BYTES, GRANULE_BYTES).iter().all(|&byte| byte == 9));
        }
    }
}

/// Addresses are free: a region may be far larger than the memory, and is aligned for 1 GiB pages.
#[test]
fn large_regions_are_aligned_and_cost_nothing() {
    let bytes = 5 * HUGE_1G_BYTES + 3 * GRANULE_BYTES;
    for pages in Pages::ALL {
        let region = match Region::reserve(bytes, pages, Numa::Local) {
            Ok(region) => region,
            Err(error) => {
                println!("skipped: 5 GiB of addresses are not to be had (ulimit -v?): {error}");
                return;
            }
        };
        assert!(region.base().as_ptr().addr().is_multiple_of(HUGE_1G_BYTES));
        assert_eq!(region.committed(), Committed::default());
        // Across the border of two gibibytes, and in the last, incomplete one.
        for offset in [HUGE_1G_BYTES - GRANULE_BYTES, bytes - 2 * GRANULE_BYTES] {
            region.commit(offset, 2 * GRANULE_BYTES).expect("4 MiB of memory");
            fill(&region, offset, 2 * GRANULE_BYTES, 3);
            // SAFETY: nothing refers to the range.
            unsafe { region.decommit(offset, 2 * GRANULE_BYTES) }.expect("own memory");
        }
        assert_eq!(region.committed(), Committed::default());
    }
}

#[test]
fn coverage_sees_what_was_touched() {
    let region = Region::reserve(8 * GRANULE_BYTES, Pages::Auto, Numa::Local).expect("16 MiB of addresses");
    region.commit(0, 8 * GRANULE_BYTES).expect("16 MiB of memory");
    fill(&region, 0, 8 * GRANULE_BYTES, 1);
    let Some(coverage) = region.coverage() else {
        println!("skipped: this system does not tell the coverage");
        return;
    };
    println!("{coverage:?} for {:?}", region.committed());
    if coverage.resident_bytes == 0 {
        println!("skipped: the memory map is not this process's own (an emulator's)");
        return;
    }
    assert!(coverage.transparent_bytes + coverage.explicit_bytes <= coverage.resident_bytes);
    assert!(coverage.explicit_bytes >= region.committed().huge_2m_bytes as u64);
}

#[test]
fn threads_commit_side_by_side() {
    const THREADS: usize = 4;
    const EACH: usize = 4;
    let region = Region::reserve(THREADS * EACH * GRANULE_BYTES, Pages::Auto, Numa::Local)
        .expect("32 MiB of addresses");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let region = &region;
            scope.spawn(move || {
                for round in 0..EACH {
                    // Neighbouring granules belong to different threads.
                    let offset = (round * THREADS + thread) * GRANULE_BYTES;
                    region.commit(offset, GRANULE_BYTES).expect("2 MiB of memory");
                    fill(region, offset, GRANULE_BYTES, thread as u8 + 1);
                    assert!(sample(region, offset, GRANULE_BYTES).iter().all(|&b| b == thread as u8 + 1));
                    // SAFETY: only this thread uses the granule.
                    unsafe { region.decommit(offset, GRANULE_BYTES) }.expect("own memory");
                }
            });
        }
    });
    assert_eq!(region.committed().total_bytes(), 0);
}

#[test]
fn a_region_that_lost_granules_spares_them() {
    let mut region = Region::reserve(4 * GRANULE_BYTES, Pages::Plain, Numa::Local).expect("addresses");
    region.commit(0, 4 * GRANULE_BYTES).expect("8 MiB of memory");
    region.state.get_mut().expect("no panic so far").granules[1] = Granule::Lost;
    let lost = region.base().as_ptr().wrapping_add(GRANULE_BYTES);
    let error = region.commit(GRANULE_BYTES, GRANULE_BYTES).expect_err("never used again");
    assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
    drop(region);
    // SAFETY: the drop left this granule mapped, and nothing else uses it.
    unsafe {
        lost.write(1);
        assert_eq!(lost.read(), 1);
        sys::unmap(lost, GRANULE_BYTES).expect("own memory");
    }
}

#[test]
fn ranges_are_cut_at_gibibytes() {
    let cut = |range| within_giants(range).map(|part| (part.start, part.end)).collect::<Vec<_>>();
    const GIANT: usize = GIANT_GRANULES;
    assert_eq!(cut(0..0), []);
    assert_eq!(cut(3..5), [(3, 5)]);
    assert_eq!(cut(0..GIANT), [(0, GIANT)]);
    assert_eq!(
        cut(GIANT - 1..2 * GIANT + 1),
        [(GIANT - 1, GIANT), (GIANT, 2 * GIANT), (2 * GIANT, 2 * GIANT + 1)]
    );
}

/// Runs if an administrator has reserved huge pages; otherwise it prints that it is skipped.
#[test]
fn explicit_pages_are_used_where_there_are_any() {
    let available = |bytes: usize| {
        crate::pages::explicit()
            .iter()
            .find(|pool| pool.page_bytes == bytes)
            .map_or(0, |pool| pool.available())
    };
    if available(HUGE_2M_BYTES) < 64 {
        println!("skipped: fewer than 64 explicit 2 MiB pages are free");
    } else {
        let region = Region::reserve(4 * GRANULE_BYTES, Pages::Huge2M, Numa::Local).expect("addresses");
        assert_eq!(region.commit(0, 4 * GRANULE_BYTES).expect("8 MiB of memory"), PageKind::Huge2M);
        fill(&region, 0, 4 * GRANULE_BYTES, 1);
        assert_eq!(region.coverage().map(|coverage| coverage.explicit_bytes), Some(4 * GRANULE_BYTES as u64));
        // SAFETY: nothing refers to the range.
        unsafe { region.decommit(0, 3 * GRANULE_BYTES) }.expect("own memory");
        assert_eq!(region.coverage().map(|coverage| coverage.explicit_bytes), Some(GRANULE_BYTES as u64));
        // More pages than exist: the whole call falls back and reports the smaller kind.
        let large = Region::reserve(HUGE_1G_BYTES * 64, Pages::Huge2M, Numa::Local).expect("addresses");
        let kind = large.commit(0, HUGE_1G_BYTES * 64).expect("memory is found when touched");
        assert!(kind > PageKind::Huge2M || available(HUGE_2M_BYTES) > 0);
        fill(&large, HUGE_1G_BYTES, GRANULE_BYTES, 1);
    }
    if available(HUGE_1G_BYTES) < 1 {
        println!("skipped: no explicit 1 GiB page is free");
    } else {
        let region = Region::reserve(HUGE_1G_BYTES, Pages::Huge1G, Numa::Local).expect("addresses");
        assert_eq!(region.commit(0, GRANULE_BYTES).expect("2 MiB of memory"), PageKind::Huge1G);
        assert_eq!(region.committed().spare_bytes, HUGE_1G_BYTES - GRANULE_BYTES);
        fill(&region, 0, GRANULE_BYTES, 1);
        region.commit(5 * GRANULE_BYTES, GRANULE_BYTES).expect("2 MiB of memory");
        // SAFETY: nothing refers to the range.
        unsafe { region.decommit(0, GRANULE_BYTES) }.expect("own memory");
        assert_eq!(region.committed().huge_1g_bytes, GRANULE_BYTES);
        region.commit(0, GRANULE_BYTES).expect("2 MiB of memory");
        assert!(sample(&region, 0, GRANULE_BYTES).iter().all(|&byte| byte == 0));
        // SAFETY: nothing refers to the range.
        unsafe { region.decommit(0, HUGE_1G_BYTES) }.expect("own memory");
        assert_eq!(region.committed(), Committed::default());
    }
}
