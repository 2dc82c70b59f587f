//! Tests of the cache of pages.

use super::*;
use forrest_engine::Error;

fn cache(pages: usize) -> Arc<Cache> {
    Arc::new(Cache::new(pages * PAGE_COST + 1, PageSize::default(), Numa::default()))
}

fn fill(byte: u8) -> impl FnOnce(&mut [u8; page::BYTES]) -> Result<()> {
    move |bytes| {
        bytes.fill(byte);
        Ok(())
    }
}

fn no_read(_: &mut [u8; page::BYTES]) -> Result<()> {
    panic!("the page is kept")
}

#[test]
fn pages_are_kept_within_the_bound() {
    let cache = cache(3);
    let pages = Pages::new(&cache, Of::Table, 10);
    for round in 0..2 {
        for page in 0..10 {
            let got = pages.get(page, fill(page as u8)).unwrap();
            assert_eq!((got.len(), got[0], got[page::PAYLOAD - 1]), (page::PAYLOAD, page as u8, page as u8));
            assert!(cache.stats().pages <= 3, "round {round}");
        }
    }
    let stats = cache.stats();
    assert_eq!((stats.misses, stats.pages, stats.bytes), (20, 3, 3 * PAGE_COST as u64));
    pages.get(9, no_read).unwrap();
    assert_eq!(cache.stats().hits, 1);
}

#[test]
fn pages_of_remixes_are_counted_apart() {
    let cache = cache(8);
    let (table, remix) = (Pages::new(&cache, Of::Table, 4), Pages::new(&cache, Of::Remix, 4));
    for (pages, times) in [(&table, 5), (&remix, 2)] {
        (0..times).for_each(|_| drop(pages.get(0, fill(1)).unwrap()));
    }
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses), (5, 2));
    assert_eq!((stats.remix_hits, stats.remix_misses), (1, 1));
}

/// Cause: the size at which memory was refused once was the limit until somebody set another one.
#[test]
fn the_cache_grows_again_after_memory_was_refused() {
    let cache = cache(8);
    let pages = Pages::new(&cache, Of::Table, 20);
    let kept_of = |count| {
        (0..count).for_each(|page| drop(pages.get(page, fill(1)).unwrap()));
        cache.stats().pages
    };
    assert_eq!(kept_of(4), 4);
    let then = Instant::now();
    lock(&cache.clock).refuse(then);
    cache.grow_again(then + GROW_AGAIN - Duration::from_millis(1));
    assert_eq!(kept_of(20), 4);
    cache.grow_again(then + GROW_AGAIN);
    assert_eq!(kept_of(20), 8);
    // Another limit counts at once.
    lock(&cache.clock).refuse(then);
    cache.set_bytes(6 * PAGE_COST + 1).unwrap();
    cache.grow_again(then + GROW_AGAIN);
    assert_eq!(kept_of(20), 6);
}

#[test]
fn the_bound_is_changed_while_pages_are_read() {
    let cache = Arc::new(Cache::new(8 << 20, PageSize::Plain, Numa::default()));
    let committed = || cache.frames.as_ref().expect("there are addresses").committed().total_bytes();
    let pages = Pages::new(&cache, Of::Table, 10_000);
    let read = || {
        for page in 0..10_000 {
            assert_eq!(pages.get(page, fill(page as u8)).unwrap()[0], page as u8);
        }
        (cache.stats().bytes, committed())
    };
    let (bytes, memory) = read();
    assert!(((8 << 20) - PAGE_COST as u64..=8 << 20).contains(&bytes) && memory <= 8 << 20);
    let kept: Vec<_> = (0..10_000).filter(|&page| pages.fetch(page, 0..1)).collect();
    let held = pages.get(kept[kept.len() - 1], no_read).unwrap();

    cache.set_bytes(1 << 20).unwrap();
    assert!(cache.stats().bytes <= 1 << 20);
    assert_eq!(held[0], kept[kept.len() - 1] as u8, "a page that is read stays");
    assert!(
        committed() <= 4 << 20,
        "{} bytes: the step of the page that is read, and the first",
        committed()
    );
    assert!(read().0 <= 1 << 20);
    drop(held);
    cache.release();
    assert_eq!(committed(), 2 << 20);

    cache.set_bytes(32 << 20).unwrap();
    assert_eq!(read().0 / PAGE_COST as u64, ((32 << 20) / PAGE_COST as u64).min(10_000));
    cache.set_bytes(1).unwrap();
    assert_eq!(read(), (0, 0));
    let error = cache.set_bytes(33 << 20).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    cache.set_bytes(8 << 20).unwrap();
    assert!(read().0 > 7 << 20);
}

#[test]
fn threads_read_while_the_bound_changes() {
    let cache = Arc::new(Cache::new(4 << 20, PageSize::Plain, Numa::default()));
    let pages = Pages::new(&cache, Of::Table, 1500);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3_u32)
            .map(|thread| {
                let pages = &pages;
                scope.spawn(move || {
                    for at in 0..30_000_u32 {
                        let page = (at * 7 + thread * 500) % 1500;
                        assert_eq!(pages.get(page, fill(page as u8)).unwrap()[9], page as u8);
                    }
                })
            })
            .collect();
        let mut bytes = 1 << 20;
        while readers.iter().any(|reader| !reader.is_finished()) {
            cache.set_bytes(bytes).unwrap();
            bytes = if bytes > 6 << 20 { 1 << 16 } else { bytes + (1 << 18) };
        }
    });
    cache.set_bytes(1).unwrap();
    assert_eq!(cache.frames.as_ref().expect("there are addresses").committed().total_bytes(), 0);
}

/// A frame that was given out as a new one, and that another thread took and gave up meanwhile, is in the list of
/// free ones while it has a page.
#[test]
fn a_free_frame_that_has_a_page_loses_it_first() {
    let cache = cache(2);
    let frames = cache.frames.as_ref().unwrap();
    let pages = Pages::new(&cache, Of::Table, 10);
    let Room::Fresh(first) = lock(&cache.clock).claim(frames) else { panic!("no frame was used") };
    pages.get(1, fill(1)).unwrap();
    // The cache is full: the frame without a page is taken.
    assert!(pages.get(2, |_| Err(Error::invalid("no"))).is_err());
    assert_eq!(lock(&cache.clock).free, [first]);
    let mut claimed = cache.claim_fresh(frames, first).expect("nobody has it");
    claimed.fill(3);
    drop(cache.keep(frames, pages.slots.get().unwrap(), 3, claimed));
    assert_eq!(cache.stats().pages, 2);
    pages.get(4, fill(4)).unwrap();
    assert_eq!(cache.stats().pages, 2);
    assert_eq!(pages.get(3, fill(33)).unwrap()[0], 33, "its frame has another page");
}

/// A hand that stands before many pages of the other kind still finds a frame.
#[test]
fn a_page_is_kept_wherever_the_hands_stand() {
    let cache = cache(1000);
    let pages = Pages::new(&cache, Of::Table, 5000);
    (0..1000).for_each(|page| drop(pages.get(page, fill(1)).unwrap()));
    {
        let mut clock = lock(&cache.clock);
        // Proven ones are before the hand of new ones, and new ones before the other.
        for (at, seat) in clock.seats.iter_mut().enumerate() {
            seat.as_mut().unwrap().is_new = at >= 500;
        }
        clock.kept_new = 500;
        (clock.new_hand, clock.hand) = (0, 500);
    }
    pages.get(2000, fill(2)).unwrap();
    pages.get(2000, no_read).unwrap();
    assert_eq!(cache.stats().pages, 1000);
}

/// New pages that nobody requests leave, also while all that is read was read before.
#[test]
fn new_pages_leave_while_others_prove_themselves() {
    let cache = cache(160);
    let pages = Pages::new(&cache, Of::Table, 1000);
    let mut reads = 0;
    (0..20).for_each(|_| (0..155).for_each(|page| get(&pages, page, &mut reads)));
    (500..510).for_each(|page| get(&pages, page, &mut reads));
    (0..20).for_each(|_| (0..155).for_each(|page| get(&pages, page, &mut reads)));
    reads = 0;
    (0..155).for_each(|page| get(&pages, page, &mut reads));
    assert!(reads <= 2, "{reads} of 155");
}

/// Gets a page, and counts in `reads` if it was read.
fn get(pages: &Pages, page: u32, reads: &mut u32) {
    let read = |bytes: &mut [u8; page::BYTES]| {
        *reads += 1;
        fill(page as u8)(bytes)
    };
    assert_eq!(pages.get(page, read).unwrap()[1], page as u8);
}

#[test]
fn a_page_that_is_asked_for_outlives_a_scan() {
    for count in [8, 100] {
        let cache = cache(count);
        let pages = Pages::new(&cache, Of::Table, 2000);
        let (mut reads, mut others) = (0, 0);
        for page in 1..2000 {
            get(&pages, 0, &mut reads);
            // A page of a scan is requested many times at once, and is still new.
            (0..3).for_each(|_| get(&pages, page, &mut others));
        }
        assert_eq!((reads, others), (2, 1999), "it was evicted once, and proven then, with {count}");
    }
}

#[test]
fn a_scan_leaves_what_was_read_again() {
    let cache = cache(160);
    let pages = Pages::new(&cache, Of::Table, 10_000);
    let mut reads = 0;
    // More than fit, so that they are evicted and read again.
    (0..10).for_each(|_| (0..165).for_each(|page| get(&pages, page, &mut reads)));
    (0..10).for_each(|_| (0..140).for_each(|page| get(&pages, page, &mut reads)));
    (1000..1400).for_each(|page| get(&pages, page, &mut reads));
    reads = 0;
    (0..140).for_each(|page| get(&pages, page, &mut reads));
    assert!(reads < 30, "{reads} of 140 pages were evicted by a scan of 400");
}

#[test]
fn pages_that_nobody_requests_any_more_make_room() {
    let cache = cache(160);
    let pages = Pages::new(&cache, Of::Table, 10_000);
    let mut reads = 0;
    (0..20).for_each(|_| (0..170).for_each(|page| get(&pages, page, &mut reads)));
    // Another set, in turns, larger than the memory of what was evicted.
    (0..30).for_each(|_| (1000..1150).for_each(|page| get(&pages, page, &mut reads)));
    reads = 0;
    (1000..1150).for_each(|page| get(&pages, page, &mut reads));
    assert!(reads <= 15, "{reads} of 150");
}

#[test]
fn a_tiny_bound_keeps_nothing() {
    let cache = cache(0);
    let pages = Pages::new(&cache, Of::Table, 1);
    for byte in 0..3 {
        assert_eq!(pages.get(0, fill(byte)).unwrap()[0], byte);
    }
    assert_eq!(
        cache.stats(),
        Stats { hits: 0, misses: 3, remix_hits: 0, remix_misses: 0, pages: 0, bytes: 0 }
    );
}

#[test]
fn what_failed_is_not_kept_and_what_is_held_stays() {
    let cache = cache(1);
    let pages = Pages::new(&cache, Of::Table, 2);
    assert!(pages.get(0, |_| Err(Error::invalid("no"))).is_err());
    assert_eq!(cache.stats().pages, 0);
    let held = pages.get(0, fill(7)).unwrap();
    assert_eq!(pages.get(1, fill(8)).unwrap()[5], 8);
    assert_eq!(pages.get(1, fill(9)).unwrap()[5], 9, "the only frame is held");
    let again = held.clone();
    drop(held);
    assert_eq!((pages.get(0, no_read).unwrap()[5], pages.get(1, fill(10)).unwrap()[5]), (7, 10));
    assert_eq!(again[5], 7);
    drop(again);
    pages.get(1, fill(11)).unwrap();
    assert_eq!((pages.get(1, no_read).unwrap()[5], pages.get(0, fill(12)).unwrap()[5]), (11, 12));
    assert_eq!(cache.stats().pages, 1);
}

#[test]
fn a_read_that_panics_leaves_the_frame() {
    let cache = cache(1);
    let pages = Pages::new(&cache, Of::Table, 1);
    let read = || pages.get(0, |_| panic!("it cannot be read")).map(|_| ());
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).is_err());
    pages.get(0, fill(1)).unwrap();
    pages.get(0, no_read).unwrap();
}

#[test]
fn two_who_miss_at_once_keep_one_copy() {
    let cache = cache(3);
    let pages = Pages::new(&cache, Of::Table, 1);
    let outer = pages.get(0, |bytes| {
        assert_eq!(pages.get(0, fill(1)).unwrap()[0], 1);
        fill(2)(bytes)
    });
    assert_eq!((outer.unwrap()[0], cache.stats().pages), (1, 1));
    // The other frame holds another page.
    let other = Pages::new(&cache, Of::Table, 2);
    (0..2).for_each(|page| assert_eq!(other.get(page, fill(3)).unwrap()[0], 3));
    assert_eq!((pages.get(0, no_read).unwrap()[0], cache.stats().pages), (1, 3));
}

#[test]
fn what_is_held_outlives_its_file_and_the_cache() {
    let cache = cache(2);
    let pages = Pages::new(&cache, Of::Table, 2);
    let held = [0, 1].map(|page| pages.get(page, fill(page as u8)).unwrap());
    drop(pages);
    assert_eq!(cache.stats().pages, 0);
    let other = Pages::new(&cache, Of::Table, 1);
    assert_eq!(other.get(0, fill(9)).unwrap()[0], 9);
    let [first, second] = held;
    drop(first);
    assert_eq!(other.get(0, fill(8)).unwrap()[0], 8);
    assert_eq!((other.get(0, no_read).unwrap()[0], cache.stats().pages), (8, 1));
    drop((other, cache));
    assert!(second.iter().all(|&byte| byte == 1));
}

#[test]
fn a_closed_file_leaves_nothing() {
    let cache = cache(100);
    let (one, two) = (Pages::new(&cache, Of::Table, 50), Pages::new(&cache, Of::Table, 50));
    for page in 0..50 {
        one.get(page, fill(1)).unwrap();
        two.get(page, fill(2)).unwrap();
    }
    drop(one);
    assert_eq!(cache.stats().pages, 50);
    (0..50).for_each(|page| assert_eq!(two.get(page, no_read).unwrap()[0], 2));
    drop(two);
    assert_eq!(cache.stats().bytes, 0);
    drop(Pages::new(&cache, Of::Table, u32::MAX));
}

mod limits {
    use super::*;

    #[test]
    fn no_bound_is_too_large_to_open() {
        for bytes in [1 << 40, usize::MAX] {
            let cache = Arc::new(Cache::new(bytes, PageSize::Plain, Numa::Local));
            let pages = Pages::new(&cache, Of::Table, 1);
            pages.get(0, fill(1)).unwrap();
            let count = cache.frames.as_ref().map_or(0, Frames::count);
            assert!(count.saturating_mul(PAGE_COST) <= bytes, "{count} frames");
        }
    }
}

#[test]
fn threads_see_whole_pages_and_the_bound_holds() {
    let cache = cache(20);
    let pages = Pages::new(&cache, Of::Table, 64);
    let check = |page: u32, got: &PageRef| assert!(got.iter().all(|&byte| byte == page as u8));
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (cache, pages) = (&cache, &pages);
            scope.spawn(move || {
                let mut random = thread;
                // Some are held for a while, and files come and go.
                let mut held = [const { None::<(u32, PageRef)> }; 3];
                let mut file = Pages::new(cache, Of::Table, 64);
                for turn in 0..5_000 {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    let page = (random >> 33) as u32 % 64;
                    let from = if turn % 4 == 0 { &file } else { pages };
                    let got = from.get(page, fill(page as u8)).unwrap();
                    check(page, &got);
                    if let Some((page, got)) = held[turn % 3].replace((page, got)) {
                        check(page, &got);
                    }
                    assert!(cache.stats().pages <= 20);
                    if turn % 100 == 0 {
                        file = Pages::new(cache, Of::Table, 64);
                    }
                }
            });
        }
    });
    let stats = cache.stats();
    assert_eq!(stats.hits + stats.misses, 20_000);
    drop(pages);
    assert_eq!(cache.stats().pages, 0);
    // No frame was lost: all can be filled again.
    let pages = Pages::new(&cache, Of::Table, 20);
    (0..20).for_each(|page| drop(pages.get(page, fill(1)).unwrap()));
    (0..20).for_each(|page| drop(pages.get(page, no_read).unwrap()));
}
