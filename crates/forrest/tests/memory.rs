//! The memory that a store allocates, counted by the allocator of this process. So it is a binary of its own, with one
//! test at a time.
#![expect(unsafe_code, reason = "a global allocator cannot be written without it")]

use forrest::{Db, Durability};
use forrest_testing::{number, sized};
use std::alloc::{GlobalAlloc, Layout, System};
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
    let directory = tempfile::tempdir().expect("a directory can be made");
    // Without tags an index has few bytes a key.
    let builder = Db::builder()
        .memtable_bytes(memtable_bytes)
        .cache_bytes(MIB)
        .durability(Durability::Memory)
        .tags(false);
    let db = builder.open(directory.path().join("store").to_str().expect("it is text")).expect("it opens");
    for number in 0..keys {
        db.set(format!("{number:016}"), [7; 100]).expect("it fits");
    }
    db.compact().expect("it merges");
    let before = IN_USE.load(Relaxed);
    MOST.store(before, Relaxed);
    db.delete_range(..).expect("all can be deleted");
    let more = MOST.load(Relaxed) - before;
    println!("{keys} keys: {} MiB more than before at most, {} MiB before", more / MIB, before / MIB);
    let stats = db.stats().expect("it has figures");
    println!("memtables {} + {} MiB", stats.reserved_bytes / MIB as u64, stats.kept_bytes / MIB as u64);
    assert_eq!(db.count(..).expect("it reads"), 0);
    assert!(more < 4 * memtable_bytes + 24 * MIB, "{more} bytes");
}
