//! LevelDB, the system's, by its functions for C: no compression, memtable and block cache by the budget, Bloom filters
//! of 10 bits; otherwise as it comes.
#![expect(unsafe_code, reason = "functions of a library in another language are called")]

use super::store::{Answer, Fault, Reader, Settings, Store, Way};
use crate::job::Durability;
use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::ptr;

/// Bits of Bloom filter for each key.
const FILTER_BITS: c_int = 10;

/// Something of LevelDB's.
type Handle = *mut c_void;

#[link(name = "leveldb")]
unsafe extern "C" {
    fn leveldb_major_version() -> c_int;
    fn leveldb_minor_version() -> c_int;
    fn leveldb_free(memory: *mut c_void);
    fn leveldb_options_create() -> Handle;
    fn leveldb_options_set_create_if_missing(options: Handle, is: c_uchar);
    fn leveldb_options_set_compression(options: Handle, compression: c_int);
    fn leveldb_options_set_write_buffer_size(options: Handle, bytes: usize);
    fn leveldb_options_set_cache(options: Handle, cache: Handle);
    fn leveldb_options_set_filter_policy(options: Handle, policy: Handle);
    fn leveldb_cache_create_lru(bytes: usize) -> Handle;
    fn leveldb_filterpolicy_create_bloom(bits: c_int) -> Handle;
    fn leveldb_readoptions_create() -> Handle;
    fn leveldb_writeoptions_create() -> Handle;
    fn leveldb_writeoptions_set_sync(options: Handle, is: c_uchar);
    fn leveldb_open(options: Handle, name: *const c_char, error: *mut *mut c_char) -> Handle;
    fn leveldb_close(db: Handle);
    fn leveldb_put(
        db: Handle,
        options: Handle,
        key: *const c_char,
        key_bytes: usize,
        value: *const c_char,
        value_bytes: usize,
        error: *mut *mut c_char,
    );
    fn leveldb_write(db: Handle, options: Handle, batch: Handle, error: *mut *mut c_char);
    fn leveldb_get(
        db: Handle,
        options: Handle,
        key: *const c_char,
        key_bytes: usize,
        value_bytes: *mut usize,
        error: *mut *mut c_char,
    ) -> *mut c_char;
    fn leveldb_compact_range(
        db: Handle,
        from: *const c_char,
        from_bytes: usize,
        to: *const c_char,
        to_bytes: usize,
    );
    fn leveldb_writebatch_create() -> Handle;
    fn leveldb_writebatch_destroy(batch: Handle);
    fn leveldb_writebatch_put(
        batch: Handle,
        key: *const c_char,
        key_bytes: usize,
        value: *const c_char,
        value_bytes: usize,
    );
    fn leveldb_create_iterator(db: Handle, options: Handle) -> Handle;
    fn leveldb_iter_destroy(iterator: Handle);
    fn leveldb_iter_valid(iterator: Handle) -> c_uchar;
    fn leveldb_iter_seek_to_first(iterator: Handle);
    fn leveldb_iter_seek_to_last(iterator: Handle);
    fn leveldb_iter_seek(iterator: Handle, key: *const c_char, key_bytes: usize);
    fn leveldb_iter_next(iterator: Handle);
    fn leveldb_iter_prev(iterator: Handle);
    fn leveldb_iter_key(iterator: Handle, bytes: *mut usize) -> *const c_char;
    fn leveldb_iter_value(iterator: Handle, bytes: *mut usize) -> *const c_char;
    fn leveldb_iter_get_error(iterator: Handle, error: *mut *mut c_char);
}

/// The version of the system's library.
pub(crate) fn version() -> String {
    // SAFETY: the functions have no preconditions.
    unsafe { format!("{}.{}", leveldb_major_version(), leveldb_minor_version()) }
}

/// Calls a function that reports errors through a pointer to a string.
fn checked<T>(call: impl FnOnce(*mut *mut c_char) -> T) -> Answer<T> {
    let mut error = ptr::null_mut();
    let done = call(&mut error);
    if error.is_null() {
        return Ok(done);
    }
    // SAFETY: LevelDB sets `error` to a string that ends in NUL.
    let told = unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned();
    // SAFETY: LevelDB allocated `error` for the caller, and it is freed once, here.
    unsafe { leveldb_free(error.cast()) };
    Err(Fault::from(told))
}

fn text(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}

/// Bytes owned by LevelDB.
///
/// # Safety
///
/// `from` has `len` valid bytes, which do not change for `'a`.
unsafe fn bytes<'a>(from: *const c_char, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: LevelDB has `len` > 0 bytes at `from`, and they stay for `'a`: see `# Safety`.
    unsafe { std::slice::from_raw_parts(from.cast(), len) }
}

/// Each change is in the log, and the operating system has it, before a call returns; in the class of power it is
/// synced. Options, cache and filter stay as long as the process, which has one store.
pub(crate) struct Level {
    db: Handle,
    read: Handle,
    written: Handle,
    synced: Handle,
}

// SAFETY: any thread may use LevelDB's handles, concurrently too, except iterators and batches. Those never leave the
// call or reader that made them.
unsafe impl Send for Level {}
// SAFETY: as for `Send`.
unsafe impl Sync for Level {}

impl Level {
    fn put_with(&self, options: Handle, key: &[u8], value: &[u8]) -> Answer<()> {
        // SAFETY: all pointers have their lengths, and the store keeps its handles open until it is dropped.
        checked(|error| unsafe {
            leveldb_put(self.db, options, text(key), key.len(), text(value), value.len(), error);
        })
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        // SAFETY: `Iter` borrows the store, so no iterator is open; the handle is closed once, here.
        unsafe { leveldb_close(self.db) };
    }
}

impl Store for Level {
    const OFFERS: &'static [Durability] = &[Durability::Process, Durability::Power];
    type Reader<'s> = Asked<'s>;

    fn open(settings: &Settings<'_>) -> Answer<Self> {
        let path = CString::new(settings.directory.join("store").as_os_str().as_bytes())?;
        // SAFETY: every handle comes from the LevelDB function that creates its type.
        unsafe {
            let options = leveldb_options_create();
            leveldb_options_set_create_if_missing(options, 1);
            leveldb_options_set_compression(options, 0);
            leveldb_options_set_write_buffer_size(options, settings.memtable_bytes);
            leveldb_options_set_cache(options, leveldb_cache_create_lru(settings.cache_bytes));
            leveldb_options_set_filter_policy(options, leveldb_filterpolicy_create_bloom(FILTER_BITS));
            let (written, synced) = (leveldb_writeoptions_create(), leveldb_writeoptions_create());
            leveldb_writeoptions_set_sync(written, c_uchar::from(settings.durability == Durability::Power));
            leveldb_writeoptions_set_sync(synced, 1);
            let db = checked(|error| leveldb_open(options, path.as_ptr(), error))?;
            Ok(Level { db, read: leveldb_readoptions_create(), written, synced })
        }
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Answer<()> {
        self.put_with(self.written, key, value)
    }

    fn put_batch<'p>(&self, pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>) -> Answer<()> {
        // SAFETY: all pointers have their lengths, and the handles are open until `self` is dropped; the batch is freed
        // once, here.
        unsafe {
            let batch = leveldb_writebatch_create();
            pairs.for_each(|(key, value)| {
                leveldb_writebatch_put(batch, text(key), key.len(), text(value), value.len());
            });
            let done = checked(|error| leveldb_write(self.db, self.written, batch, error));
            leveldb_writebatch_destroy(batch);
            done
        }
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Answer<()> {
        self.put_with(self.synced, key, value)
    }

    fn reader(&self) -> Answer<Asked<'_>> {
        Ok(Asked { store: self, iterator: None })
    }

    fn scan_all(&self, way: Way, mut see: impl FnMut(&[u8], &[u8])) -> Answer<()> {
        let mut iterator = Iter::of(self);
        iterator.seek_end(way);
        while iterator.show(&mut see) {
            iterator.step(way);
        }
        iterator.ended()
    }

    fn compact(&mut self) -> Answer<bool> {
        // SAFETY: the handle is open until `self` is dropped; null means no bound on that side.
        unsafe { leveldb_compact_range(self.db, ptr::null(), 0, ptr::null(), 0) };
        Ok(true)
    }
}

/// An iterator.
struct Iter<'s> {
    iterator: Handle,
    store: PhantomData<&'s Level>,
}

impl<'s> Iter<'s> {
    fn of(store: &'s Level) -> Self {
        // SAFETY: `store` keeps its handles open for `'s`, longer than the iterator lives.
        let iterator = unsafe { leveldb_create_iterator(store.db, store.read) };
        Iter { iterator, store: PhantomData }
    }

    fn seek_end(&mut self, way: Way) {
        // SAFETY: the iterator is open, and only this call uses it.
        unsafe {
            match way {
                Way::Forward => leveldb_iter_seek_to_first(self.iterator),
                Way::Backward => leveldb_iter_seek_to_last(self.iterator),
            }
        }
    }

    fn seek(&mut self, key: &[u8]) {
        // SAFETY: the iterator is open, and only this call uses it.
        unsafe { leveldb_iter_seek(self.iterator, text(key), key.len()) };
    }

    /// Moves to the next pair. The iterator must be at a pair.
    fn step(&mut self, way: Way) {
        // SAFETY: the iterator is open and at a pair.
        unsafe {
            match way {
                Way::Forward => leveldb_iter_next(self.iterator),
                Way::Backward => leveldb_iter_prev(self.iterator),
            }
        }
    }

    /// Shows the pair that it is at; false if there is none.
    fn show(&self, see: impl FnOnce(&[u8], &[u8])) -> bool {
        let (mut key_bytes, mut value_bytes) = (0, 0);
        // SAFETY: key and value stay valid until the iterator moves, which is after `see` returns.
        unsafe {
            if leveldb_iter_valid(self.iterator) == 0 {
                return false;
            }
            let key = leveldb_iter_key(self.iterator, &mut key_bytes);
            let value = leveldb_iter_value(self.iterator, &mut value_bytes);
            see(bytes(key, key_bytes), bytes(value, value_bytes));
        }
        true
    }

    /// Whether it ended because there is no more.
    fn ended(&self) -> Answer<()> {
        // SAFETY: the iterator is open.
        checked(|error| unsafe { leveldb_iter_get_error(self.iterator, error) })
    }
}

impl Drop for Iter<'_> {
    fn drop(&mut self) {
        // SAFETY: `self` owns the iterator, and it is destroyed once, here.
        unsafe { leveldb_iter_destroy(self.iterator) };
    }
}

/// The store, and an iterator once something was sought.
pub(crate) struct Asked<'s> {
    store: &'s Level,
    iterator: Option<Iter<'s>>,
}

impl Reader for Asked<'_> {
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Answer<bool> {
        let mut len = 0;
        // SAFETY: the key has its length, and the store keeps its handles open until it is dropped.
        let value = checked(|error| unsafe {
            leveldb_get(self.store.db, self.store.read, text(key), key.len(), &mut len, error)
        })?;
        if value.is_null() {
            return Ok(false);
        }
        // SAFETY: `value` is a copy of `len` bytes that LevelDB made for the caller; it is freed once, after `see`.
        unsafe {
            see(bytes(value, len));
            leveldb_free(value.cast());
        }
        Ok(true)
    }

    fn seek(&mut self, key: &[u8], see: impl FnOnce(&[u8], &[u8])) -> Answer<()> {
        let iterator = self.iterator.get_or_insert_with(|| Iter::of(self.store));
        iterator.seek(key);
        if iterator.show(see) { Ok(()) } else { iterator.ended() }
    }

    fn scan(&mut self, key: &[u8], pairs: usize, mut see: impl FnMut(&[u8], &[u8])) -> Answer<()> {
        let iterator = self.iterator.get_or_insert_with(|| Iter::of(self.store));
        iterator.seek(key);
        for _ in 0..pairs {
            if !iterator.show(&mut see) {
                return iterator.ended();
            }
            iterator.step(Way::Forward);
        }
        Ok(())
    }
}
