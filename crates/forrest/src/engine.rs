//! The homes that are compiled in, with the contract of `forrest-engine` as their interface.
//!
//! [`Store`], [`Keyspace`], [`View`], [`Snapshot`] and [`Cursor`] are enums over the homes. They implement
//! the contract's traits by calling the home's own implementation. The URL selects the home once, so the
//! processor predicts the branch. A new home needs an implementation of the contract, a line in `homes!`, and
//! a URL.

use crate::url::Home;
use forrest_engine::merge::SharedOperator;
use forrest_engine::{self as contract, *};
use std::ops::{Bound, ControlFlow};
use std::time::Duration;

/// Defines the enums. Each line is a home: its name, and the type of its stores.
macro_rules! homes {
    ($($(#[$if:meta])* $home:ident($store:ty),)+) => {
        /// An open store. Cloning makes another handle.
        #[derive(Clone)]
        pub(crate) enum Store {
            $($(#[$if])* $home($store),)+
        }

        /// A keyspace of an open store, to write to.
        #[derive(Clone)]
        pub(crate) enum Keyspace {
            $($(#[$if])* $home(<$store as contract::Store>::Keyspace),)+
        }

        /// The reads of a keyspace, in its newest state or a snapshot's.
        #[derive(Clone)]
        pub(crate) enum View {
            $($(#[$if])* $home(<$store as contract::Store>::View),)+
        }

        /// One state of all keyspaces.
        #[derive(Clone)]
        pub(crate) enum Snapshot {
            $($(#[$if])* $home(<$store as contract::Store>::Snapshot),)+
        }

        /// A position in a view.
        pub(crate) enum Cursor {
            $($(#[$if])* $home(<<$store as contract::Store>::View as contract::View>::Cursor),)+
        }

        /// Where a refill of an iteration stopped.
        #[derive(Default)]
        pub(crate) enum Resume {
            #[default]
            Start,
            $($(#[$if])* $home(<<$store as contract::Store>::View as contract::View>::Resume),)+
        }

        impl contract::Store for Store {
            type Keyspace = Keyspace;
            type View = View;
            type Snapshot = Snapshot;

            fn keyspace(&self, name: &str) -> Result<Keyspace> {
                match self {
                    $($(#[$if])* Store::$home(store) => store.keyspace(name).map(Keyspace::$home),)+
                }
            }

            fn keyspaces(&self) -> Result<Vec<String>> {
                match self {
                    $($(#[$if])* Store::$home(store) => store.keyspaces(),)+
                }
            }

            fn drop_keyspace(&self, name: &str) -> Result<bool> {
                match self {
                    $($(#[$if])* Store::$home(store) => store.drop_keyspace(name),)+
                }
            }

            fn write<'b>(
                &self,
                ops: impl Iterator<Item = (&'b Keyspace, Op<&'b [u8]>)>,
                durability: Option<Durability>,
            ) -> Result<Written> {
                match self {
                    $($(#[$if])* Store::$home(store) => store.write(
                        ops.map(|(keyspace, op)| match keyspace {
                            Keyspace::$home(keyspace) => (keyspace, op),
                            #[cfg(any(
                        all(feature = "memory", feature = "llds"),
                        all(feature = "disk", any(feature = "memory", feature = "llds")),
                    ))]
                            _ => unreachable!("a keyspace of another store was refused"),
                        }),
                        durability,
                    ),)+
                }
            }

            fn snapshot(&self) -> Result<Snapshot> {
                match self {
                    $($(#[$if])* Store::$home(store) => store.snapshot().map(Snapshot::$home),)+
                }
            }

            fn sync(&self) -> Result<()> {
                match self {
                    $($(#[$if])* Store::$home(store) => store.sync(),)+
                }
            }

            fn stats(&self) -> Result<Stats> {
                match self {
                    $($(#[$if])* Store::$home(store) => store.stats(),)+
                }
            }

            fn metrics(&self) -> Result<Metrics> {
                match self {
                    $($(#[$if])* Store::$home(store) => store.metrics(),)+
                }
            }

            fn capabilities(&self) -> Capabilities {
                match self {
                    $($(#[$if])* Store::$home(store) => store.capabilities(),)+
                }
            }

            fn verify(&self) -> Result<()> {
                match self {
                    $($(#[$if])* Store::$home(store) => store.verify(),)+
                }
            }

            fn trim(&self) -> Result<()> {
                match self {
                    $($(#[$if])* Store::$home(store) => store.trim(),)+
                }
            }

            fn refresh(&self) -> Result<()> {
                match self {
                    $($(#[$if])* Store::$home(store) => store.refresh(),)+
                }
            }

            fn set_options(&self, changes: &OptionChanges) -> Result<()> {
                match self {
                    $($(#[$if])* Store::$home(store) => store.set_options(changes),)+
                }
            }

            fn changes(&self, since: u64, durability: Durability) -> Result<Box<dyn contract::Changes>> {
                match self {
                    $($(#[$if])* Store::$home(store) => store.changes(since, durability),)+
                }
            }

            fn resume(&self) -> Result<()> {
                match self {
                    $($(#[$if])* Store::$home(store) => store.resume(),)+
                }
            }

            fn settle(&self) -> Result<()> {
                match self {
                    $($(#[$if])* Store::$home(store) => store.settle(),)+
                }
            }

            fn flush(&self) -> Result<()> {
                match self {
                    $($(#[$if])* Store::$home(store) => store.flush(),)+
                }
            }

            fn compact(&self) -> Result<()> {
                match self {
                    $($(#[$if])* Store::$home(store) => store.compact(),)+
                }
            }
        }

        impl contract::Keyspace for Keyspace {
            type View = View;

            fn name(&self) -> &str {
                match self {
                    $($(#[$if])* Keyspace::$home(keyspace) => keyspace.name(),)+
                }
            }

            fn view(&self) -> View {
                match self {
                    $($(#[$if])* Keyspace::$home(keyspace) => View::$home(keyspace.view()),)+
                }
            }

            fn same_store(&self, other: &Keyspace) -> bool {
                match (self, other) {
                    $($(#[$if])* (Keyspace::$home(a), Keyspace::$home(b)) => a.same_store(b),)+
                    #[cfg(any(
                        all(feature = "memory", feature = "llds"),
                        all(feature = "disk", any(feature = "memory", feature = "llds")),
                    ))]
                    _ => false,
                }
            }

            fn is(&self, other: &Keyspace) -> bool {
                match (self, other) {
                    $($(#[$if])* (Keyspace::$home(a), Keyspace::$home(b)) => a.is(b),)+
                    #[cfg(any(
                        all(feature = "memory", feature = "llds"),
                        all(feature = "disk", any(feature = "memory", feature = "llds")),
                    ))]
                    _ => false,
                }
            }

            #[inline]
            fn apply(&self, op: Op<&[u8]>) -> Result<Outcome> {
                match self {
                    $($(#[$if])* Keyspace::$home(keyspace) => keyspace.apply(op),)+
                }
            }

            fn compact_range(&self, start: &[u8], end: Option<&[u8]>) -> Result<()> {
                match self {
                    $($(#[$if])* Keyspace::$home(keyspace) => keyspace.compact_range(start, end),)+
                }
            }

            fn compression(&self) -> Compression {
                match self {
                    $($(#[$if])* Keyspace::$home(keyspace) => keyspace.compression(),)+
                }
            }

            fn set_compression(&self, method: Compression) -> Result<()> {
                match self {
                    $($(#[$if])* Keyspace::$home(keyspace) => keyspace.set_compression(method),)+
                }
            }

            fn merge_operator(&self) -> Option<SharedOperator> {
                match self {
                    $($(#[$if])* Keyspace::$home(keyspace) => keyspace.merge_operator(),)+
                }
            }

            fn set_merge_operator(&self, name: &str) -> Result<()> {
                match self {
                    $($(#[$if])* Keyspace::$home(keyspace) => keyspace.set_merge_operator(name),)+
                }
            }

            fn ttl(&self) -> Option<Duration> {
                match self {
                    $($(#[$if])* Keyspace::$home(keyspace) => keyspace.ttl(),)+
                }
            }

            fn set_ttl(&self, ttl: Option<Duration>) -> Result<()> {
                match self {
                    $($(#[$if])* Keyspace::$home(keyspace) => keyspace.set_ttl(ttl),)+
                }
            }

            fn ingest(&self) -> Result<Box<dyn contract::Ingest>> {
                match self {
                    $($(#[$if])* Keyspace::$home(keyspace) => keyspace.ingest(),)+
                }
            }
        }

        impl contract::Snapshot for Snapshot {
            type View = View;

            fn view(&self, name: &str) -> View {
                match self {
                    $($(#[$if])* Snapshot::$home(snapshot) => View::$home(snapshot.view(name)),)+
                }
            }

            fn keyspaces(&self) -> Vec<String> {
                match self {
                    $($(#[$if])* Snapshot::$home(snapshot) => snapshot.keyspaces(),)+
                }
            }

            fn ttl(&self, name: &str) -> Option<Duration> {
                match self {
                    $($(#[$if])* Snapshot::$home(snapshot) => snapshot.ttl(name),)+
                }
            }

            fn sequence(&self) -> Option<u64> {
                match self {
                    $($(#[$if])* Snapshot::$home(snapshot) => snapshot.sequence(),)+
                }
            }
        }

        impl contract::View for View {
            type Cursor = Cursor;
            type Resume = Resume;

            #[inline]
            fn get(&self, key: &[u8]) -> Result<Option<Value>> {
                match self {
                    $($(#[$if])* View::$home(view) => view.get(key),)+
                }
            }

            fn get_cached(&self, key: &[u8]) -> Result<Option<Option<Value>>> {
                match self {
                    $($(#[$if])* View::$home(view) => view.get_cached(key),)+
                }
            }

            #[inline]
            fn get_into(&self, key: &[u8], buf: &mut Vec<u8>) -> Result<bool> {
                match self {
                    $($(#[$if])* View::$home(view) => view.get_into(key, buf),)+
                }
            }

            fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
                match self {
                    $($(#[$if])* View::$home(view) => view.multi_get(keys),)+
                }
            }

            #[inline]
            fn contains(&self, key: &[u8]) -> Result<bool> {
                match self {
                    $($(#[$if])* View::$home(view) => view.contains(key),)+
                }
            }

            fn pieces(&self, key: &[u8]) -> Result<Option<Box<dyn Pieces>>> {
                match self {
                    $($(#[$if])* View::$home(view) => view.pieces(key),)+
                }
            }

            fn may_expire(&self) -> bool {
                match self {
                    $($(#[$if])* View::$home(view) => view.may_expire(),)+
                }
            }

            fn expires_ms(&self, key: &[u8]) -> Result<Option<Option<u64>>> {
                match self {
                    $($(#[$if])* View::$home(view) => view.expires_ms(key),)+
                }
            }

            fn count(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Result<u64> {
                match self {
                    $($(#[$if])* View::$home(view) => view.count(lower, upper),)+
                }
            }

            #[inline]
            fn scan(
                &self,
                bounds: (Bound<&[u8]>, Bound<&[u8]>),
                direction: Direction,
                see: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
            ) -> Result<()> {
                match self {
                    $($(#[$if])* View::$home(view) => view.scan(bounds, direction, see),)+
                }
            }

            fn scan_keys(
                &self,
                bounds: (Bound<&[u8]>, Bound<&[u8]>),
                direction: Direction,
                see: impl FnMut(&[u8]) -> ControlFlow<()>,
            ) -> Result<()> {
                match self {
                    $($(#[$if])* View::$home(view) => view.scan_keys(bounds, direction, see),)+
                }
            }

            fn multi_scan(
                &self,
                ranges: &[KeyBounds<'_>],
                limit: usize,
                keys_only: bool,
                see: impl FnMut(usize, &[u8], &[u8]) -> ControlFlow<()>,
            ) -> Result<()> {
                match self {
                    $($(#[$if])* View::$home(view) => view.multi_scan(ranges, limit, keys_only, see),)+
                }
            }

            fn approximate(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Result<Approximate> {
                match self {
                    $($(#[$if])* View::$home(view) => view.approximate(lower, upper),)+
                }
            }

            fn fill(
                &self,
                chunk: &mut Chunk,
                resume: &mut Resume,
                bounds: (Bound<&[u8]>, Bound<&[u8]>),
                direction: Direction,
            ) -> Result<Filled> {
                match self {
                    $($(#[$if])* View::$home(view) => {
                        if !matches!(resume, Resume::$home(_)) {
                            *resume = Resume::$home(Default::default());
                        }
                        let Resume::$home(resume) = resume else { unreachable!("it was just set") };
                        view.fill(chunk, resume, bounds, direction)
                    })+
                }
            }

            fn refills(&self) -> (usize, usize) {
                match self {
                    $($(#[$if])* View::$home(view) => view.refills(),)+
                }
            }

            fn cursor(&self) -> Cursor {
                match self {
                    $($(#[$if])* View::$home(view) => Cursor::$home(view.cursor()),)+
                }
            }
        }

        impl contract::Cursor for Cursor {
            fn goto(&mut self, goto: Goto<'_>) -> Result<bool> {
                match self {
                    $($(#[$if])* Cursor::$home(cursor) => cursor.goto(goto),)+
                }
            }

            fn keys_only(&mut self) {
                match self {
                    $($(#[$if])* Cursor::$home(cursor) => cursor.keys_only(),)+
                }
            }

            fn park(&mut self) {
                match self {
                    $($(#[$if])* Cursor::$home(cursor) => cursor.park(),)+
                }
            }

            fn key(&self) -> Option<&[u8]> {
                match self {
                    $($(#[$if])* Cursor::$home(cursor) => cursor.key(),)+
                }
            }

            fn value(&self) -> Option<Value> {
                match self {
                    $($(#[$if])* Cursor::$home(cursor) => cursor.value(),)+
                }
            }
        }
    };
}

homes! {
    #[cfg(feature = "memory")]
    Memory(crate::memory::MemoryStore),
    #[cfg(feature = "llds")]
    Kernel(::llds::Store),
    #[cfg(feature = "disk")]
    Disk(remixdb::Store),
}

#[cfg(not(any(feature = "memory", feature = "llds", feature = "disk")))]
compile_error!("choose at least one home: the features are `memory`, `llds` and `disk`");

/// Opens a store in its home.
pub(crate) fn open(home: &Home, options: &Options) -> Result<Store> {
    check_key(home, options)?;
    match home {
        #[cfg(feature = "memory")]
        Home::Memory => crate::memory::MemoryStore::open(options).map(Store::Memory),
        #[cfg(feature = "llds")]
        Home::Kernel(kind, name) => ::llds::Store::open(*kind, name, options, false).map(Store::Kernel),
        #[cfg(feature = "disk")]
        Home::Path(path) => {
            #[cfg(feature = "tracing")]
            let options = &crate::trace::traced(options);
            remixdb::Store::at(path, options).map(Store::Disk)
        }
        #[cfg(not(all(feature = "memory", feature = "llds", feature = "disk")))]
        _ => Err(absent(home)),
    }
}

/// Opens a store for reading only. Other processes may write to it.
pub(crate) fn open_read_only(home: &Home, options: &Options) -> Result<Store> {
    check_key(home, options)?;
    match home {
        Home::Memory => Err(Error::unsupported("opening \"memory:\" read-only: it would always be empty")),
        #[cfg(feature = "disk")]
        Home::Path(_) => open(home, &Options { read_only: true, ..options.clone() }),
        #[cfg(not(feature = "disk"))]
        Home::Path(_) => Err(absent(home)),
        #[cfg(feature = "llds")]
        Home::Kernel(kind, name) => ::llds::Store::open(*kind, name, options, true).map(Store::Kernel),
        #[cfg(not(feature = "llds"))]
        _ => Err(absent(home)),
    }
}

/// An error if a store is to be encrypted that cannot be.
fn check_key(home: &Home, options: &Options) -> Result<()> {
    match home {
        Home::Path(_) => Ok(()),
        _ if options.encryption_key.is_none() => Ok(()),
        _ => Err(Error::unsupported("an encryption key is given, and only stores on disk are encrypted")),
    }
}

/// An error for a home that was not compiled in.
#[cfg(not(all(feature = "memory", feature = "llds", feature = "disk")))]
fn absent(home: &Home) -> Error {
    let (url, feature) = match home {
        Home::Memory => ("memory:", "memory"),
        #[cfg(feature = "llds")]
        Home::Kernel(..) => ("llds:", "llds"),
        #[cfg(not(feature = "llds"))]
        Home::Kernel => ("llds:", "llds"),
        Home::Path(_) => ("PATH", "disk"),
    };
    Error::unsupported(format!(
        "the home \"{url}\" is not in this build; build with the feature `{feature}` of forrest"
    ))
}
