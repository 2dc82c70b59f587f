//! libforrest_node: the native addon of the npm package forrest-level, which is in `js`.
//!
//! The package is an `abstract-level` store. Its JavaScript encodes and decodes, and calls the functions of this
//! module, which take and return bytes. Whatever may wait for the disk runs on libuv's threads and returns a promise;
//! only `getSync` and making a snapshot do so on the thread of JavaScript. `get` and `has` return what is cached at
//! once, because a crossing to another thread takes ten times as long as such a read. Changes of a batch, keys, values
//! and pairs of a range cross in one call (`changes.rs`, `pages.rs`), because each crossing costs as much as reading
//! several pairs.
//!
//! Guarantees: wrong arguments throw, and never crash (`node`). A store closes after the works that were begun before.
//!
//! Not here: encodings, sublevels, hooks, events and the order of closing. Those are abstract-level's.

mod changes;
mod failure;
mod iteration;
mod node;
mod pages;
mod store;

use failure::Failure;
use forrest::{Cached, Compression, Db, Durability, ErrorKind, WriteBatch, WriteOptions};
use iteration::{Bounds, Iteration, Shape};
use node::{Call, Handle, Method, Value};
use pages::Page;
use std::ops::Bound;
use std::rc::Rc;
use store::{Reply, Snapshot, Store, bytes_value, view};

/// The largest number of bytes or items that an argument may state: whole numbers of JavaScript.
const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;
/// Changes and bytes of a batch of `clear` with a limit or a snapshot.
const CLEAR_KEYS: usize = 1000;
const CLEAR_BYTES: usize = 1 << 20;

/// What JavaScript calls.
static METHODS: &[Method] = &[
    Method { name: c"open", run: open },
    Method { name: c"close", run: |call| Store::of(call.argument(0))?.close(call.env) },
    Method { name: c"get", run: get },
    Method { name: c"getSync", run: get_sync },
    Method { name: c"getMany", run: get_many },
    Method { name: c"has", run: has },
    Method { name: c"hasMany", run: has_many },
    Method { name: c"write", run: write },
    Method { name: c"clear", run: clear },
    Method { name: c"iterate", run: iterate },
    Method { name: c"next", run: next },
    Method { name: c"seek", run: seek },
    Method { name: c"abort", run: abort },
    Method { name: c"closeIteration", run: close_iteration },
    Method { name: c"snapshot", run: snapshot },
    Method { name: c"closeSnapshot", run: close_snapshot },
    Method { name: c"approximateSize", run: approximate_size },
    Method { name: c"compactRange", run: compact_range },
    Method { name: c"sync", run: |call| on_db(call, |db| Ok(db.sync()?)) },
    Method { name: c"refresh", run: |call| on_db(call, |db| Ok(db.refresh()?)) },
    Method { name: c"verify", run: |call| on_db(call, |db| Ok(db.verify()?)) },
    Method { name: c"checkpoint", run: checkpoint },
    Method { name: c"flushSync", run: flush_sync },
    Method { name: c"version", run: |call| call.env.string(env!("CARGO_PKG_VERSION").as_bytes()) },
];

/// Node calls this for every environment that loads the addon.
///
/// # Safety
/// Only Node calls it, with an environment of the running thread and an object of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn napi_register_module_v1(
    env: napi_sys::napi_env,
    exports: napi_sys::napi_value,
) -> napi_sys::napi_value {
    // SAFETY: by the contract of this function.
    unsafe { node::export(env, exports, METHODS) };
    exports
}

/// The version of Node's interface that the addon is made for.
#[unsafe(no_mangle)]
pub extern "C" fn node_api_module_get_api_version_v1() -> i32 {
    8
}

type Returned<'e> = Result<Value<'e>, Failure>;

/// Calls a function with the store of the first argument, on another thread.
fn on_db<'e>(call: &Call<'e>, run: impl FnOnce(Db) -> Result<(), Failure> + Send + 'static) -> Returned<'e> {
    let store = Store::of(call.argument(0))?;
    let db = store.db()?;
    store.work(call.env, move || run(db).map(|()| Reply::Nothing))
}

/// A small number, such as flags.
fn small(value: Value<'_>, what: &str, most: u8) -> Result<u8, Failure> {
    Ok(value.whole(what, most.into())? as u8)
}

/// A size, or `None` for 0.
fn size(value: Value<'_>, what: &str) -> Result<Option<usize>, Failure> {
    let number = value.whole(what, WHOLE_MAX)?;
    let number = usize::try_from(number).map_err(|_| Failure::argument(format!("{what} is too large")))?;
    Ok((number > 0).then_some(number))
}

/// A durability by its number in the package; `None` is that of the store.
fn durability(value: Value<'_>) -> Result<Option<Durability>, Failure> {
    Ok(match small(value, "the durability", 3)? {
        0 => None,
        1 => Some(Durability::Memory),
        2 => Some(Durability::Buffered),
        _ => Some(Durability::Sync),
    })
}

/// The bounds of a range: two keys that may be undefined, and flags: 1 without the first key, 2 without the last.
fn bounds(lower: Value<'_>, upper: Value<'_>, flags: u8) -> Result<Bounds, Failure> {
    let bound = |value: Value<'_>, what: &str, is_excluded: bool| -> Result<Bound<Vec<u8>>, Failure> {
        if value.is_nullish()? {
            return Ok(Bound::Unbounded);
        }
        let key = value.bytes(what)?;
        Ok(if is_excluded { Bound::Excluded(key) } else { Bound::Included(key) })
    };
    Ok((bound(lower, "the lower bound", flags & 1 != 0)?, bound(upper, "the upper bound", flags & 2 != 0)?))
}

/// `open(location, flags, durability, memoryBytes, workers, compression)`. Flags: 1 create it, 2 it must be new, 4 only
/// to be read. Zero means the default.
fn open<'e>(call: &Call<'e>) -> Returned<'e> {
    let location = call.argument(0).string("the location")?;
    let flags = small(call.argument(1), "the flags", 7)?;
    let mut builder = Db::builder();
    if let Some(durability) = durability(call.argument(2))? {
        builder = builder.durability_at_most(durability);
    }
    if let Some(bytes) = size(call.argument(3), "memoryBytes")? {
        builder = builder.memory_bytes(bytes);
    }
    if let Some(workers) = size(call.argument(4), "workers")? {
        builder = builder.workers(workers);
    }
    if !call.argument(5).is_nullish()? {
        let compression: Compression = call.argument(5).string("compression")?.parse()?;
        builder = builder.compression(compression);
    }
    let run = move || {
        if flags & 4 != 0 {
            return Ok(Reply::Opened(builder.open_read_only(&location)?));
        }
        if flags & 2 != 0 && forrest::directory(&location).is_some() {
            // A store that is there opens without being created, or is locked or damaged.
            match builder.clone().create(false).open(&location) {
                Ok(_) => {
                    let message = format!("{location}: a store exists, and errorIfExists is true");
                    return Err(Failure::new("LEVEL_EXISTS", message));
                }
                // There is none. Another failure of the disk returns below.
                Err(error) if error.kind() == ErrorKind::Io => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Reply::Opened(builder.create(flags & 1 != 0).open(&location)?))
    };
    // The store does not exist yet, so nothing counts this work.
    let (work, promise) = node::Work::new(call.env, run, || ())?;
    work.queue();
    Ok(promise)
}

/// `get(store, snapshot, key, asText)`: the value, or a promise of it if it must be read from the disk.
fn get<'e>(call: &Call<'e>) -> Returned<'e> {
    let store = Store::of(call.argument(0))?;
    let view = view(&store, call.argument(1))?;
    let key = call.argument(2).bytes("the key")?;
    let as_text = small(call.argument(3), "asText", 1)? == 1;
    match view.get_cached(&key)? {
        Cached::Known(value) => bytes_value(call.env, value.as_deref(), as_text),
        Cached::Unknown => store.work(call.env, move || Ok(Reply::Bytes { bytes: view.get(key)?, as_text })),
    }
}

/// The same, on the thread of JavaScript.
fn get_sync<'e>(call: &Call<'e>) -> Returned<'e> {
    let store = Store::of(call.argument(0))?;
    let view = view(&store, call.argument(1))?;
    let key = call.argument(2).bytes("the key")?;
    let as_text = small(call.argument(3), "asText", 1)? == 1;
    bytes_value(call.env, view.get(key)?.as_deref(), as_text)
}

/// `getMany(store, snapshot, keys)`: a page of values.
fn get_many<'e>(call: &Call<'e>) -> Returned<'e> {
    let store = Store::of(call.argument(0))?;
    let view = view(&store, call.argument(1))?;
    let keys = call.argument(2).bytes("the keys")?;
    store.work(call.env, move || {
        let mut page = Page::default();
        for value in view.multi_get(&changes::keys(&keys)?)? {
            page.value(value.as_ref())?;
        }
        Ok(Reply::Page(page.finish()))
    })
}

/// `has(store, snapshot, key)`: the answer, or a promise of it, as `get`.
fn has<'e>(call: &Call<'e>) -> Returned<'e> {
    let store = Store::of(call.argument(0))?;
    let view = view(&store, call.argument(1))?;
    let key = call.argument(2).bytes("the key")?;
    match view.get_cached(&key)? {
        Cached::Known(value) => call.env.boolean(value.is_some()),
        Cached::Unknown => store.work(call.env, move || Ok(Reply::Truth(view.contains(key)?))),
    }
}

/// `hasMany(store, snapshot, keys)`: a byte for each key, 1 if it exists.
fn has_many<'e>(call: &Call<'e>) -> Returned<'e> {
    let store = Store::of(call.argument(0))?;
    let view = view(&store, call.argument(1))?;
    let keys = call.argument(2).bytes("the keys")?;
    store.work(call.env, move || {
        let found = changes::keys(&keys)?.into_iter().map(|key| Ok(u8::from(view.contains(key)?)));
        Ok(Reply::Page(found.collect::<Result<_, Failure>>()?))
    })
}

/// `write(store, changes, durability)`: the changes of `changes.rs`, all of them or none.
fn write<'e>(call: &Call<'e>) -> Returned<'e> {
    let bytes = call.argument(1).bytes("the changes")?;
    let options = WriteOptions::new().durability(durability(call.argument(2))?);
    on_db(call, move |db| Ok(db.write_with(changes::batch(&bytes)?, &options)?))
}

/// `clear(store, snapshot, lower, upper, flags, limit, durability)`. Flags as for `bounds`, and 4 backward. Limit 0 is
/// none.
fn clear<'e>(call: &Call<'e>) -> Returned<'e> {
    let store = Store::of(call.argument(0))?;
    let db = store.db()?;
    let flags = small(call.argument(4), "the flags", 7)?;
    let bounds = bounds(call.argument(2), call.argument(3), flags)?;
    let limit = size(call.argument(5), "the limit")?;
    let options = WriteOptions::new().durability(durability(call.argument(6))?);
    if limit.is_none() && call.argument(1).is_nullish()? {
        return store.work(call.env, move || {
            let mut batch = WriteBatch::new();
            batch.delete_range(bounds);
            db.write_with(batch, &options)?;
            Ok(Reply::Nothing)
        });
    }
    let view = view(&store, call.argument(1))?;
    store.work(call.env, move || {
        let mut keys = view.range(bounds).keys();
        let next = || if flags & 4 != 0 { keys.next_back() } else { keys.next() };
        let keys = std::iter::from_fn(next).take(limit.unwrap_or(usize::MAX));
        let mut batch = WriteBatch::new();
        for key in keys {
            batch.delete(key?);
            if batch.len() >= CLEAR_KEYS || batch.bytes() >= CLEAR_BYTES {
                db.write_with(&batch, &options)?;
                batch.clear();
            }
        }
        db.write_with(&batch, &options)?;
        Ok(Reply::Nothing)
    })
}

/// `iterate(store, snapshot, lower, upper, flags)`. Flags as for `clear`, and 8 with keys, 16 with values.
fn iterate<'e>(call: &Call<'e>) -> Returned<'e> {
    let store = Store::of(call.argument(0))?;
    let flags = small(call.argument(4), "the flags", 31)?;
    let bounds = bounds(call.argument(2), call.argument(3), flags)?;
    let db = store.db()?;
    let snapshot = call.argument(1);
    let state = if snapshot.is_nullish()? { db.snapshot()? } else { Snapshot::of(snapshot)?.state()? };
    let shape = Shape { is_backward: flags & 4 != 0, keys: flags & 8 != 0, values: flags & 16 != 0 };
    Rc::new(Iteration::new(store, state, bounds, shape)).handle(call.env)
}

/// `next(iteration, items, bytes)`
fn next<'e>(call: &Call<'e>) -> Returned<'e> {
    let items = size(call.argument(1), "the number of items")?.unwrap_or(1);
    let bytes = size(call.argument(2), "highWaterMarkBytes")?.unwrap_or(1);
    Iteration::of(call.argument(0))?.page(call.env, items, bytes)
}

/// `seek(iteration, target)`
fn seek<'e>(call: &Call<'e>) -> Returned<'e> {
    Iteration::of(call.argument(0))?.seek(call.argument(1).bytes("the target")?)?;
    call.env.undefined()
}

/// `abort(iteration)`
fn abort<'e>(call: &Call<'e>) -> Returned<'e> {
    Iteration::of(call.argument(0))?.abort();
    call.env.undefined()
}

/// `closeIteration(iteration)`
fn close_iteration<'e>(call: &Call<'e>) -> Returned<'e> {
    Iteration::of(call.argument(0))?.close();
    call.env.undefined()
}

/// `snapshot(store)`
fn snapshot<'e>(call: &Call<'e>) -> Returned<'e> {
    let snapshot = Snapshot::new(&*Store::of(call.argument(0))?)?;
    Rc::new(snapshot).handle(call.env)
}

/// `closeSnapshot(snapshot)`
fn close_snapshot<'e>(call: &Call<'e>) -> Returned<'e> {
    Snapshot::of(call.argument(0))?.close();
    call.env.undefined()
}

/// `approximateSize(store, start, end)`: bytes of the pairs from `start` to `end`, without it.
fn approximate_size<'e>(call: &Call<'e>) -> Returned<'e> {
    let store = Store::of(call.argument(0))?;
    let db = store.db()?;
    let (start, end) = (call.argument(1).bytes("the start")?, call.argument(2).bytes("the end")?);
    store.work(call.env, move || Ok(Reply::Number(db.approximate(start..end)?.bytes as f64)))
}

/// `compactRange(store, start, end)`: both included.
fn compact_range<'e>(call: &Call<'e>) -> Returned<'e> {
    let (start, end) = (call.argument(1).bytes("the start")?, call.argument(2).bytes("the end")?);
    on_db(call, move |db| Ok(db.compact_range(start..=end)?))
}

/// `checkpoint(store, path)`
fn checkpoint<'e>(call: &Call<'e>) -> Returned<'e> {
    let path = call.argument(1).string("the path")?;
    on_db(call, move |db| Ok(db.checkpoint(path)?))
}

/// `flushSync(store)`: passes what is only in memory to the system, on the thread of JavaScript, because the process
/// ends.
fn flush_sync<'e>(call: &Call<'e>) -> Returned<'e> {
    Store::of(call.argument(0))?.flush()?;
    call.env.undefined()
}
