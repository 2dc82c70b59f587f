//! In the class of power every write is synced, and a write that is to be synced is not synced twice.
//!
//! Calls of the C library's `fsync` and `fdatasync` are counted: in this test program they are the functions below,
//! which count and call the system. A store that calls the system by itself (forrest) is not seen, and none that syncs
//! in another thread is.

#![expect(unsafe_code, reason = "functions of the C library are replaced to count their calls")]

use super::store::{Answer, Settings, Store};
use super::{fjall, lmdb, redb, sqlite};
use crate::job::Durability;
use std::cell::Cell;
use std::ffi::{c_int, c_long};

thread_local! {
    static SYNCS: Cell<u32> = const { Cell::new(0) };
}

fn counted(call: c_long, file: c_int) -> c_int {
    // A thread that is about to end counts nothing any more.
    let _ = SYNCS.try_with(|syncs| syncs.set(syncs.get() + 1));
    // SAFETY: both calls take a file descriptor and no memory, and fail with an error if it is not open.
    unsafe { libc::syscall(call, file) as c_int }
}

// SAFETY: it has the type and does the work of the function of that name in the C library.
#[unsafe(no_mangle)]
extern "C" fn fsync(file: c_int) -> c_int {
    counted(libc::SYS_fsync, file)
}

// SAFETY: it has the type and does the work of the function of that name in the C library.
#[unsafe(no_mangle)]
extern "C" fn fdatasync(file: c_int) -> c_int {
    counted(libc::SYS_fdatasync, file)
}

/// Syncs of a put and of a synced put, and of what is done at the end of a step.
fn syncs<S: Store>(durability: Durability) -> Answer<[u32; 3]> {
    let directory = tempfile::tempdir()?;
    let store = S::open(&Settings::shared_out(directory.path(), 64 << 20, durability))?;
    // The first write may make files. SQLite writes nothing for a value that is there already.
    store.put(b"key", b"1")?;
    store.put_synced(b"key", b"2")?;
    let during = |work: &dyn Fn() -> Answer<()>| -> Answer<u32> {
        SYNCS.set(0);
        work()?;
        Ok(SYNCS.get())
    };
    Ok([
        during(&|| store.put(b"key", b"3"))?,
        during(&|| store.put_synced(b"key", b"4"))?,
        during(&|| store.hand_over())?,
    ])
}

#[test]
fn no_write_is_synced_twice() {
    use Durability::{Power, Process};
    for (name, syncs) in [
        ("fjall", syncs::<fjall::Fjall>(Power).unwrap()),
        ("lmdb", syncs::<lmdb::Lmdb>(Power).unwrap()),
        ("redb", syncs::<redb::Redb>(Power).unwrap()),
        ("sqlite", syncs::<sqlite::Sqlite>(Power).unwrap()),
    ] {
        assert!(syncs[0] > 0 && syncs[1] == syncs[0] && syncs[2] == 0, "{name}: {syncs:?}");
    }
    // A synced write of a store whose commits do not sync.
    for (name, syncs) in [
        ("fjall", syncs::<fjall::Fjall>(Process).unwrap()),
        ("lmdb", syncs::<lmdb::Lmdb>(Process).unwrap()),
        ("sqlite", syncs::<sqlite::Sqlite>(Process).unwrap()),
    ] {
        assert!(syncs[0] == 0 && syncs[1] > 0, "{name}: {syncs:?}");
    }
}
