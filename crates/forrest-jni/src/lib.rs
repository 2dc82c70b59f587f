//! libforrest_jni: the native methods of the Java class `forrest.Native`.
//!
//! Java holds numbers in place of the library's objects, and every call checks them (`table.rs`). A store closes what
//! was made of it before itself. A failure becomes a Java exception; a panic becomes an `InternalError` and never
//! crosses into the virtual machine. No reference to a Java object outlives its call. Changes cross in batches and
//! ranges in pages (`pages.rs`), because each crossing costs as much as reading several pairs.
//!
//! Not here: anything about Kafka. That is Java, over this.

mod failure;
mod pages;
mod table;

use failure::{Failure, Throw};
use forrest::{
    Approximate, Compression, DEFAULT_KEYSPACE, Db, Durability, Keyspace, OptionChanges, Snapshot, Swap,
    Value, View, WriteOptions,
};
use forrest_base::lock;
use jni::objects::{JByteArray, JClass, JLongArray, JString};
use jni::refs::Reference;
use jni::sys::{jboolean, jint, jlong};
use jni::{Env, EnvUnowned};
use pages::Page;
use std::ops::{Bound, Deref};
use std::sync::Mutex;
use table::Table;

static STORES: Table<Db> = Table::new("store");
static SNAPSHOTS: Table<Snapshot> = Table::new("snapshot");
static VIEWS: Table<Reader> = Table::new("store or snapshot");
static RANGES: Table<Iteration> = Table::new("iterator");

/// What can be read: a keyspace, or that of a snapshot.
enum Reader {
    Keyspace(Keyspace),
    Snapshot(View),
}

/// The bounds of a range.
type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// An iteration. Between two pages it holds nothing of the store: the next one begins after the last key.
struct Iteration {
    view: View,
    /// The bounds of what follows.
    rest: Mutex<Bounds>,
    is_backward: bool,
    /// The handle of the view, which closes it.
    parent: jlong,
}

impl Deref for Reader {
    type Target = View;

    fn deref(&self) -> &View {
        match self {
            Reader::Keyspace(keyspace) => keyspace,
            Reader::Snapshot(view) => view,
        }
    }
}

impl Reader {
    fn keyspace(&self) -> Result<&Keyspace, Failure> {
        match self {
            Reader::Keyspace(keyspace) => Ok(keyspace),
            Reader::Snapshot(_) => Err(Failure::Invalid("a snapshot cannot be changed")),
        }
    }
}

/// Runs a native method. Failures and panics become exceptions.
fn run<'local, T: Default>(
    env: &mut EnvUnowned<'local>,
    f: impl FnOnce(&mut Env<'local>) -> Result<T, Failure>,
) -> T {
    env.with_env(f).resolve::<Throw>()
}

/// The bytes of an array that is not null.
fn bytes(env: &Env<'_>, array: &JByteArray<'_>) -> Result<Vec<u8>, Failure> {
    optional(env, array)?.ok_or(Failure::Invalid("null bytes"))
}

/// The bytes of an array that may be null.
fn optional(env: &Env<'_>, array: &JByteArray<'_>) -> Result<Option<Vec<u8>>, Failure> {
    if array.is_null() {
        return Ok(None);
    }
    Ok(Some(env.convert_byte_array(array)?))
}

/// A string that is not null.
fn text(env: &Env<'_>, string: &JString<'_>) -> Result<String, Failure> {
    if string.is_null() {
        return Err(Failure::Invalid("a null string"));
    }
    Ok(string.try_to_string(env)?)
}

/// An array of a value, null if there is none.
fn returned<'local>(
    env: &mut Env<'local>,
    value: Option<impl AsRef<[u8]>>,
) -> Result<JByteArray<'local>, Failure> {
    match value {
        None => Ok(JByteArray::null()),
        Some(value) => Ok(env.byte_array_from_slice(value.as_ref())?),
    }
}

/// A durability by its number in Java.
fn durability(number: jint) -> Result<Durability, Failure> {
    match number {
        0 => Ok(Durability::Memory),
        1 => Ok(Durability::Buffered),
        2 => Ok(Durability::Sync),
        _ => Err(Failure::Invalid("an unknown durability")),
    }
}

/// A size that Java passes with a sign.
fn size(bytes: jlong) -> Result<usize, Failure> {
    usize::try_from(bytes).map_err(|_| Failure::Invalid("a negative size"))
}

/// The bounds of a range: from, included; to, included if `is_closed`. Null is no bound.
fn bounds(from: Option<Vec<u8>>, to: Option<Vec<u8>>, is_closed: bool) -> Bounds {
    let from = from.map_or(Bound::Unbounded, Bound::Included);
    let to = match to {
        None => Bound::Unbounded,
        Some(to) if is_closed => Bound::Included(to),
        Some(to) => Bound::Excluded(to),
    };
    (from, to)
}

impl Iteration {
    /// The next page.
    fn page(&self, bytes: usize) -> Result<Page, Failure> {
        let mut rest = lock(&self.rest);
        let mut page = Page::new(bytes);
        let bounds = (rest.0.as_ref(), rest.1.as_ref());
        let see = |key: &[u8], value: &[u8]| page.push(key, value);
        if self.is_backward {
            self.view.scan_back(bounds, see)?;
        } else {
            self.view.scan(bounds, see)?;
        }
        if page.is_full() {
            let end = if self.is_backward { &mut rest.1 } else { &mut rest.0 };
            *end = Bound::Excluded(page.last_key().to_vec());
        }
        Ok(page)
    }
}

fn close_view(handle: jlong) -> bool {
    VIEWS.close(handle)
}

fn close_snapshot(handle: jlong) -> bool {
    SNAPSHOTS.close(handle)
}

fn close_range(handle: jlong) -> bool {
    RANGES.close(handle)
}

/// The version of the library.
#[unsafe(no_mangle)]
pub extern "system" fn Java_forrest_Native_version<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
) -> JString<'local> {
    run(&mut env, |env| Ok(JString::new(env, env!("CARGO_PKG_VERSION"))?))
}

/// Opens a store. 0 for `memory_bytes` or `workers`, -1 for `large_values` or `durable` and null for `compression` mean
/// the default.
/// `flags`: 1 create it, 2 only read it.
#[unsafe(no_mangle)]
pub extern "system" fn Java_forrest_Native_open<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
    url: JString<'local>,
    memory_bytes: jlong,
    workers: jint,
    large_values: jlong,
    durable: jint,
    compression: JString<'local>,
    flags: jint,
) -> jlong {
    run(&mut env, |env| {
        let url = text(env, &url)?;
        let mut builder = Db::builder().create(flags & 1 != 0);
        if durable >= 0 {
            builder = builder.durability(durability(durable)?);
        }
        if memory_bytes != 0 {
            builder = builder.memory_bytes(size(memory_bytes)?);
        }
        if workers != 0 {
            builder = builder.workers(size(workers.into())?);
        }
        if large_values >= 0 {
            builder = builder.large_values(size(large_values)?);
        }
        if !compression.is_null() {
            let compression: Compression = text(env, &compression)?.parse()?;
            builder = builder.compression(compression);
        }
        let db = if flags & 2 != 0 { builder.open_read_only(url)? } else { builder.open(url)? };
        Ok(STORES.insert(db))
    })
}

/// Closes a store, and all that was made of it. Returns whether it was open.
#[unsafe(no_mangle)]
pub extern "system" fn Java_forrest_Native_close<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
    store: jlong,
) -> jboolean {
    run(&mut env, |_| Ok(STORES.close(store) as jboolean))
}

/// A keyspace, made if it is missing. Null is the default one.
#[unsafe(no_mangle)]
pub extern "system" fn Java_forrest_Native_keyspace<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
    store: jlong,
    name: JString<'local>,
) -> jlong {
    run(&mut env, |env| {
        let name = if name.is_null() { DEFAULT_KEYSPACE.to_owned() } else { text(env, &name)? };
        let make = |db: &Db| Ok(VIEWS.insert(Reader::Keyspace(db.keyspace(&name)?)));
        STORES.held(store)?.child(make, close_view)
    })
}

/// A snapshot of a store.
#[unsafe(no_mangle)]
pub extern "system" fn Java_forrest_Native_snapshot<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
    store: jlong,
) -> jlong {
    run(&mut env, |_| STORES.held(store)?.child(|db| Ok(SNAPSHOTS.insert(db.snapshot()?)), close_snapshot))
}

/// A keyspace of a snapshot. Null is the default one.
#[unsafe(no_mangle)]
pub extern "system" fn Java_forrest_Native_snapshotKeyspace<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
    snapshot: jlong,
    name: JString<'local>,
) -> jlong {
    run(&mut env, |env| {
        let name = if name.is_null() { DEFAULT_KEYSPACE.to_owned() } else { text(env, &name)? };
        let make = |snapshot: &Snapshot| Ok(VIEWS.insert(Reader::Snapshot(snapshot.keyspace(&name)?)));
        SNAPSHOTS.held(snapshot)?.child(make, close_view)
    })
}

/// Closes a snapshot, and all that was made of it.
#[unsafe(no_mangle)]
pub extern "system" fn Java_forrest_Native_closeSnapshot<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
    store: jlong,
    snapshot: jlong,
) {
    run(&mut env, |_| {
        if SNAPSHOTS.close(snapshot)
            && let Ok(store) = STORES.held(store)
        {
            store.forget(snapshot);
        }
        Ok(())
    });
}

/// The value of a key, or null.
#[unsafe(no_mangle)]
pub extern "system" fn Java_forrest_Native_get<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
    view: jlong,
    key: JByteArray<'local>,
) -> JByteArray<'local> {
    run(&mut env, |env| {
        let key = bytes(env, &key)?;
        let value = VIEWS.with(view, |view| Ok(view.get(key)?))?;
        returned(env, value)
    })
}

/// Sets a key. A null value deletes it.
#[unsafe(no_mangle)]
pub extern "system" fn Java_forrest_Native_put<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
    view: jlong,
    key: JByteArray<'local>,
    value: JByteArray<'local>,
) {
    run(&mut env, |env| {
        let (key, value) = (bytes(env, &key)?, optional(env, &value)?);
        VIEWS.with(view, |view| {
            let keyspace = view.keyspace()?;
            match value {
                None => drop(keyspace.delete(key)?),
                Some(value) => keyspace.set(key, value)?,
            }
            Ok(())
        })
    });
}

/// Changes a key from one value to another; null is none. Returns whether it had the first one.
#[unsafe(no_mangle)]
pub extern "system" fn Java_forrest_Native_compareAndSwap<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
    view: jlong,
    key: JByteArray<'local>,
    from: JByteArray<'local>,
    to: JByteArray<'local>,
) -> jboolean {
    run(&mut env, |env| {
        let (key, from, to) = (bytes(env, &key)?, optional(env, &from)?, optional(env, &to)?);
        VIEWS.with(view, |view| {
            let swap = view.keyspace()?.compare_and_swap(key, from.as_deref(), to.as_deref())?;
            Ok(matches!(swap, Swap::Done) as jboolean)
        })
    })
}

/// Sets a key that has no value. Returns the one that it has, or null.
#[unsafe(no_mangle)]
pub extern "system" fn Java_forrest_Native_putIfAbsent<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
    view: jlong,
    key: JByteArray<'local>,
    value: JByteArray<'local>,
) -> JByteArray<'local> {
    run(&mut env, |env| {
        let (key, value) = (bytes(env, &key)?, optional(env, &value)?);
        let found = VIEWS.with(view, |view| {
            let keyspace = view.keyspace()?;
            let Some(value) = value else { return Ok(keyspace.get(key)?) };
            match keyspace.compare_and_swap(key, None, Some(&value))? {
                Swap::Mismatch(found) => Ok(found),
                _ => Ok(None),
            }
        })?;
        returned(env, found)
    })
}

/// Deletes a key. Returns the value that it had, or null.
#[unsafe(no_mangle)]
pub extern "system" fn Java_forrest_Native_remove<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
    view: jlong,
    key: JByteArray<'local>,
) -> JByteArray<'local> {
    run(&mut env, |env| {
        let key = bytes(env, &key)?;
        let old = VIEWS.with(view, |view| removed(view.keyspace()?, &key))?;
        returned(env, old)
    })
}

/// Deletes a key, and returns the value that was deleted.
fn removed(keyspace: &Keyspace, key: &[u8]) -> Result<Option<Value>, Failure> {
    let mut old = keyspace.get(key)?;
    while old.is_some() {
        match keyspace.compare_and_swap(key, old.as_deref(), None)? {
            Swap::Mismatch(found) => old = found,
            _ => break,
        }
    }
    Ok(old)
}

/// Applies a batch, all of it or nothing. Its changes name their views by the place in `views`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_forrest_Native_write<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
    store: jlong,
    changes: JByteArray<'local>,
    length: jint,
    views: JLongArray<'local>,
    durable: jint,
) {
    run(&mut env, |env| {
        if changes.is_null() || views.is_null() {
            return Err(Failure::Invalid("null changes"));
        }
        let durability = if durable < 0 { None } else { Some(durability(durable)?) };
        let mut handles = vec![0; views.len(env)?];
        views.get_region(env, 0, &mut handles)?;
        let length = size(length.into())?;
        if length > changes.len(env)? {
            return Err(Failure::Invalid("a malformed batch"));
        }
        let mut buffer = vec![0; length];
        changes.get_region(env, 0, &mut buffer)?;
        let buffer: Vec<u8> = buffer.into_iter().map(|byte: i8| byte as u8).collect();
        STORES.with(store, |db| {
            let clone = |view: &i64| VIEWS.with(*view, |view| Ok(view.keyspace()?.clone()));
            let keyspaces = handles.iter().map(clone).collect::<Result<Vec<_>, _>>()?;
            let batch = pages::batch(&buffer, &keyspaces)?;
            Ok(db.write_with(&batch, &WriteOptions::new().durability(durability))?)
        })
    });
}

/// Deletes the keys of a range.
#[unsafe(no_mangle)]
pub extern "system" fn Java_forrest_Native_deleteRange<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
    view: jlong,
    from: JByteArray<'local>,
    to: JByteArray<'local>,
) {
    run(&mut env, |env| {
        let range = bounds(optional(env, &from)?, optional(env, &to)?, false);
        VIEWS.with(view, |view| Ok(view.keyspace()?.delete_range(range)?))
    });
}

/// The first page of a range. `flags`: 1 backward, 2 with `to`, 4 only the first pair, after which nothing follows.
#[unsafe(no_mangle)]
pub extern "system" fn Java_forrest_Native_range<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
    view: jlong,
    from: JByteArray<'local>,
    to: JByteArray<'local>,
    flags: jint,
    page_bytes: jint,
) -> JByteArray<'local> {
    run(&mut env, |env| {
        let range = bounds(optional(env, &from)?, optional(env, &to)?, flags & 2 != 0);
        let mut page = None;
        let make = |reader: &Reader| {
            let is_backward = flags & 1 != 0;
            let iteration =
                Iteration { view: View::clone(reader), rest: Mutex::new(range), is_backward, parent: view };
            let is_first = flags & 4 != 0;
            let first = iteration.page(if is_first { 1 } else { size(page_bytes.into())? })?;
            // A range that ends here needs no handle.
            let handle = if first.is_full() && !is_first { RANGES.insert(iteration) } else { 0 };
            page = Some(first.finish(handle));
            Ok(handle)
        };
        VIEWS.held(view)?.child(make, close_range)?;
        returned(env, page)
    })
}

/// The next page of a range, which is closed after its last one.
#[unsafe(no_mangle)]
pub extern "system" fn Java_forrest_Native_page<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
    range: jlong,
    page_bytes: jint,
) -> JByteArray<'local> {
    run(&mut env, |env| {
        let page_bytes = size(page_bytes.into())?;
        let page = RANGES.with(range, |iteration| iteration.page(page_bytes))?;
        let rest = if page.is_full() { range } else { 0 };
        if rest == 0 {
            ended(range);
        }
        returned(env, Some(page.finish(rest)))
    })
}

/// Closes a range before its end.
#[unsafe(no_mangle)]
pub extern "system" fn Java_forrest_Native_closeRange<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
    range: jlong,
) {
    run(&mut env, |_| {
        ended(range);
        Ok(())
    });
}

/// Closes a range, and lets its view forget it.
fn ended(range: jlong) {
    let Ok(parent) = RANGES.with(range, |iteration| Ok(iteration.parent)) else { return };
    if RANGES.close(range)
        && let Ok(parent) = VIEWS.held(parent)
    {
        parent.forget(range);
    }
}

/// An estimate of the keys of a range.
#[unsafe(no_mangle)]
pub extern "system" fn Java_forrest_Native_approximate<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
    view: jlong,
    from: JByteArray<'local>,
    to: JByteArray<'local>,
) -> jlong {
    run(&mut env, |env| {
        let range = bounds(optional(env, &from)?, optional(env, &to)?, false);
        let Approximate { keys, .. } = VIEWS.with(view, |view| Ok(view.approximate(range)?))?;
        Ok(jlong::try_from(keys).unwrap_or(jlong::MAX))
    })
}

/// Waits until all that was written is on the device.
#[unsafe(no_mangle)]
pub extern "system" fn Java_forrest_Native_sync<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
    store: jlong,
) {
    run(&mut env, |_| STORES.with(store, |db| Ok(db.sync()?)));
}

/// Changes the memory of an open store.
#[unsafe(no_mangle)]
pub extern "system" fn Java_forrest_Native_setMemory<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
    store: jlong,
    memory_bytes: jlong,
) {
    run(&mut env, |_| {
        let changes = OptionChanges::new().memory_bytes(size(memory_bytes)?);
        STORES.with(store, |db| Ok(db.set_options(&changes)?))
    });
}

/// Writes a copy of an open store to a directory that does not exist.
#[unsafe(no_mangle)]
pub extern "system" fn Java_forrest_Native_checkpoint<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
    store: jlong,
    path: JString<'local>,
) {
    run(&mut env, |env| {
        let path = text(env, &path)?;
        STORES.with(store, |db| Ok(db.checkpoint(path)?))
    });
}

/// Statistics: keys, bytes of tables, bytes of memory reserved, of the cache, of indexes, tables, snapshots.
#[unsafe(no_mangle)]
pub extern "system" fn Java_forrest_Native_stats<'local>(
    mut env: EnvUnowned<'local>,
    _: JClass<'local>,
    store: jlong,
) -> JLongArray<'local> {
    run(&mut env, |env| {
        let stats = STORES.with(store, |db| Ok(db.stats()?))?;
        let counts = [
            stats.keys,
            stats.table_bytes,
            stats.reserved_bytes,
            stats.cache_bytes,
            stats.index_bytes,
            stats.tables,
            stats.snapshots,
        ];
        let counts = counts.map(|count| jlong::try_from(count).unwrap_or(jlong::MAX));
        let array = JLongArray::new(env, counts.len())?;
        array.set_region(env, 0, &counts)?;
        Ok(array)
    })
}
