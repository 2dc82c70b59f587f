//! Tests of [`Frames`]. Threads against each other are in tests/stress.rs.

use super::*;

fn small(count: usize) -> Frames {
    Frames::new(count, Pages::Plain, Numa::Local).expect("a few pages of heap")
}

fn publish(frames: &Frames, frame: u32, byte: u8) -> Pinned {
    let mut claimed = frames.claim(frame).expect("nobody has it");
    claimed.fill(byte);
    claimed.publish()
}

#[test]
fn one_writes_or_many_read() {
    let frames = small(3);
    assert!(frames.pin(1).is_none(), "it was never claimed");
    let claimed = frames.claim(1).expect("nobody has it");
    assert!(frames.claim(1).is_err() && frames.pin(1).is_none());
    assert_eq!((claimed.frame(), *claimed), (1, [0; FRAME_BYTES]));
    drop(claimed);
    let first = publish(&frames, 1, 7);
    let second = frames.pin(1).expect("it is published");
    let third = second.clone();
    assert!(first.as_ptr().addr().is_multiple_of(FRAME_BYTES));
    for pin in [first, second, third] {
        assert!(frames.claim(1).is_err());
        assert_eq!(*pin, [7; FRAME_BYTES]);
    }
    assert_eq!(frames.claim(1).expect("nobody reads any more")[9], 7);
}

#[test]
fn pins_outlive_the_pool() {
    let frames = small(4);
    let kept: Vec<Pinned> = (1..4).map(|frame| publish(&frames, frame, frame as u8)).collect();
    let again = kept[0].clone();
    drop(frames);
    for (frame, pin) in (1..4).zip(kept) {
        assert!(pin.clone().iter().all(|&byte| byte == frame));
    }
    assert!(again.iter().all(|&byte| byte == 1));
    // Also a pool that is dropped with a leaked claim, and one that was never used.
    let frames = small(1);
    drop(publish(&frames, 0, 1));
    std::mem::forget(frames.claim(0));
    drop(frames);
    drop(small(100));
}

#[test]
fn sizes_are_checked() {
    for count in [0, FRAMES_MAX, usize::MAX] {
        let refused = Frames::new(count, Pages::Plain, Numa::Local).map(|_| ());
        assert_eq!(refused.map_err(|error| error.kind()), Err(io::ErrorKind::InvalidInput));
    }
    let frames = small(2);
    for frame in [2, u32::MAX] {
        let asked = std::panic::catch_unwind(|| frames.pin(frame).is_some());
        assert!(asked.is_err());
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no huge pages")]
fn memory_comes_step_by_step() {
    const PER_GRANULE: u32 = (GRANULE_BYTES / FRAME_BYTES) as u32;
    let frames = Frames::new(4 * PER_GRANULE as usize - 3, Pages::default(), Numa::Local).unwrap();
    assert_eq!((frames.count(), frames.committed().total_bytes()), (4 * PER_GRANULE as usize - 3, 0));
    let last = frames.count() as u32 - 1;
    let pins = [0, last, 1, PER_GRANULE - 1].map(|frame| publish(&frames, frame, frame as u8));
    assert_eq!(frames.committed().total_bytes(), 2 * GRANULE_BYTES, "{frames:?}");
    assert!(frames.pin(PER_GRANULE).is_none());
    drop(frames);
    assert_eq!(pins.map(|pin| pin[FRAME_BYTES - 1]), [0, last as u8, 1, (PER_GRANULE - 1) as u8]);
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no huge pages")]
fn a_large_pool_costs_addresses_only() {
    let Ok(frames) = Frames::new(1 << 22, Pages::Plain, Numa::Local) else {
        println!("skipped: there are no 16 GiB of addresses");
        return;
    };
    let pin = publish(&frames, (1 << 22) - 1, 5);
    assert_eq!(frames.committed().total_bytes(), 8 * GRANULE_BYTES);
    drop(frames);
    assert_eq!(pin[0], 5);
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no huge pages")]
fn memory_of_frames_that_nobody_uses_goes_back() {
    const PER_GRANULE: usize = GRANULE_BYTES / FRAME_BYTES;
    let frames = Frames::new(3 * PER_GRANULE, Pages::Plain, Numa::Local).unwrap();
    let last = 3 * PER_GRANULE - 1;
    let publish = |frame: usize| publish(&frames, frame as u32, 1);
    drop([publish(0), publish(PER_GRANULE)]);
    let held = publish(last);
    assert!(!frames.release(1), "a frame in use keeps its step");
    assert_eq!(frames.committed().total_bytes(), 2 * GRANULE_BYTES, "the step of frame 0 begins before 1");
    assert_eq!(
        (held[0], frames.pool().words[last].has_memory(), frames.pool().words[PER_GRANULE].has_memory()),
        (1, true, false)
    );
    assert!(frames.pin(PER_GRANULE as u32).is_none());
    drop(held);
    assert!(frames.release(1) && frames.release(1));
    assert_eq!(frames.committed().total_bytes(), GRANULE_BYTES);
    assert_eq!(frames.claim(last as u32).expect("it is free")[0], 0, "it has new memory");
    assert_eq!(frames.committed().total_bytes(), 2 * GRANULE_BYTES);
    let claimed = frames.claim(PER_GRANULE as u32);
    assert!(!frames.release(0) && frames.committed().total_bytes() == GRANULE_BYTES);
    drop(claimed);
}

/// A thread that is just taking the memory of a frame, or is releasing it, has claimed a frame without memory.
#[test]
fn a_frame_whose_memory_is_on_its_way_is_in_use() {
    let frames = small(2);
    let word = &frames.pool().words[1];
    assert_eq!(word.claim(), Some(Claim::Absent));
    assert!(!word.has_memory() && frames.claim(1).err() == Some(Refused::InUse));
    word.give_up();
    assert!(frames.claim(1).is_ok());
}

#[test]
fn threads_may_share_them() {
    fn shared<T: Send + Sync + std::panic::RefUnwindSafe + std::panic::UnwindSafe + 'static>() {}
    shared::<Frames>();
    shared::<Pinned>();
    shared::<Slot>();
}
