//! The memory that a store allocates, counted by the allocator of this process. So it is a binary of its own, with one
//! test at a time.
#![expect(unsafe_code, reason = "a global allocator cannot be written without it")]

use forrest_engine::{Durability, Keyspace as _, Op, Options, Store as _, View as _};
use forrest_testing::{number, sized};
use remixdb::Store;
use remixdb::disk::Real;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts the bytes in use, and their maximum.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn count(added: usize, removed: usize) {
    let before = IN_USE.fetch_add(added, Relaxed);
    MOST.fetch_max(before + added, Relaxed);
    IN_USE.fetch_sub(removed, Relaxed);
}

// SAFETY: all memory is the system allocator's; counting does not change it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's layout.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller's memory and layout.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes, layout.size());
        // SAFETY: the caller's memory, layout and size.
        unsafe { System.realloc(memory, layout, bytes) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const MIB: usize = 1 << 20;

/// FORREST_RANGE_KEYS and FORREST_RANGE_MEMTABLE set other sizes. Memory of memtables is mapped, so the allocator does
/// not see it; its limit has tests of its own.
#[test]
fn memory_of_a_range_delete_does_not_grow_with_the_range() {
    let keys: u64 = number("FORREST_RANGE_KEYS").unwrap_or(sized(400_000, 1_000_000));
    let memtable_bytes = number("FORREST_RANGE_MEMTABLE").unwrap_or(MIB);
    let options = Options {
        memtable_bytes,
        cache_bytes: MIB,
        durability: Some(Durability::Memory),
        // Few bytes of index a key.
        tags: false,
        ..Options::default()
    };
    let directory = tempfile::tempdir().expect("a directory can be made");
    let disk = Real::open(&directory.path().join("store"), &options).expect("it is there");
    let store = Store::open(disk, &options).expect("it opens");
    let space = store.keyspace("default").expect("it is there");
    for number in 0..keys {
        let key = format!("{number:016}");
        space.apply(Op::Set { key: key.as_bytes(), value: &[7; 100] }).expect("it fits");
    }
    store.compact().expect("it merges");
    let before = IN_USE.load(Relaxed);
    MOST.store(before, Relaxed);
    space.apply(Op::DeleteRange { start: b"", end: None }).expect("all can be deleted");
    let more = MOST.load(Relaxed) - before;
    println!("{keys} keys: {} MiB more than before at most, {} MiB before", more / MIB, before / MIB);
    let stats = store.stats().expect("it has figures");
    println!("memtables {} + {} MiB", stats.reserved_bytes / MIB as u64, stats.kept_bytes / MIB as u64);
    assert_eq!(space.view().count(Bound::Unbounded, Bound::Unbounded).expect("it reads"), 0);
    assert!(more < 4 * memtable_bytes + 24 * MIB, "{more} bytes");
}
