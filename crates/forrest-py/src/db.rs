//! [`Db`]: opening and closing, and operations on the whole store.

use crate::backup::{Made, fields};
use crate::changes::Changes;
use crate::events::{self, Events};
use crate::failure::Failure;
use crate::keyspace::Keyspace;
use crate::options::{self, COMPRESSION, DURABILITY, PAGES, choose};
use crate::scope::{Part, Scope};
use crate::watch::Watch;
use forrest::{BackupOptions, Builder, OptionChanges};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyAny, PyDict};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// An open store.
#[pyclass(module = "forrest", extends = Keyspace, subclass, frozen)]
pub(crate) struct Db {
    store: Arc<Part<forrest::Db>>,
}

impl Db {
    fn run<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&forrest::Db) -> forrest::Result<R> + Send,
    ) -> PyResult<R> {
        self.store.detached(py, |db| Ok(work(db)?))
    }
}

/// Sets the options that are not `None`.
macro_rules! given {
    ($builder:ident, $($option:ident),*) => {
        $(let $builder = match $option { Some(value) => $builder.$option(value), None => $builder };)*
    };
}

#[pymethods]
impl Db {
    #[expect(clippy::too_many_arguments, reason = "all but the first have names and defaults")]
    #[new]
    #[pyo3(signature = (
        url, *, create=true, read_only=false, durability=None, capacity_bytes=None, cache_bytes=None, memtable_bytes=None,
        table_bytes=None, tags=None, workers=None, worker_cpus=None, open_files=None, batch_ops_max=None,
        batch_bytes_max=None, pages=None, numa=None, mode=None, wait=None,
        background_bytes_per_second=None, memory_bytes=None, log_directory=None, compression=None,
        history=None, history_bytes=None, history_age=None, latencies=None, metrics_file=None,
        encryption_key=None, large_values=None, listener=None,
    ))]
    fn new(
        url: &Bound<'_, PyAny>,
        create: bool,
        read_only: bool,
        durability: Option<&str>,
        capacity_bytes: Option<usize>,
        cache_bytes: Option<usize>,
        memtable_bytes: Option<usize>,
        table_bytes: Option<u64>,
        tags: Option<bool>,
        workers: Option<usize>,
        worker_cpus: Option<Vec<usize>>,
        open_files: Option<usize>,
        batch_ops_max: Option<usize>,
        batch_bytes_max: Option<usize>,
        pages: Option<&str>,
        numa: Option<Bound<'_, PyAny>>,
        mode: Option<u32>,
        wait: Option<Duration>,
        background_bytes_per_second: Option<u64>,
        memory_bytes: Option<usize>,
        log_directory: Option<PathBuf>,
        compression: Option<&str>,
        history: Option<bool>,
        history_bytes: Option<u64>,
        history_age: Option<Duration>,
        latencies: Option<bool>,
        metrics_file: Option<PathBuf>,
        encryption_key: Option<PyBackedBytes>,
        large_values: Option<usize>,
        listener: Option<Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Db>> {
        let py = url.py();
        let url = options::url(url)?;
        let durability = durability.map(|word| choose(py, "durability", DURABILITY, word)).transpose()?;
        let pages = pages.map(|word| choose(py, "pages", PAGES, word)).transpose()?;
        let numa = numa.as_ref().map(options::numa).transpose()?;
        let worker_cpus = worker_cpus.as_deref();
        let builder = Builder::default().create(create);
        given!(builder, durability, capacity_bytes, cache_bytes, memtable_bytes, table_bytes, tags, workers);
        given!(builder, worker_cpus, open_files, batch_ops_max, batch_bytes_max, pages, numa, mode, wait);
        let compression = compression.map(|word| choose(py, "compression", COMPRESSION, word)).transpose()?;
        given!(builder, background_bytes_per_second, memory_bytes, log_directory, compression);
        given!(builder, history, history_bytes, history_age, latencies, metrics_file);
        let encryption_key = options::perhaps_key(py, encryption_key)?;
        given!(builder, encryption_key, large_values);
        listener.as_ref().map_or(Ok(()), events::check)?;
        let (builder, events) = match listener {
            Some(listener) => {
                let (events, send) = Events::queue();
                (builder.listener(send), Some((events, listener)))
            }
            None => (builder, None),
        };
        let open = || if read_only { builder.open_read_only(&url) } else { builder.open(&url) };
        let db = py.detach(open).map_err(|error| Failure::from(error).raise(py))?;
        let initializer = || {
            let scope = Scope::new("store", db.capabilities().home() != "memory:");
            let default = (*db).clone();
            let store = Arc::new(Part::new(&scope, db)?);
            Ok(Keyspace::in_store(store.clone(), default, format!("{url:?}"))?.add_subclass(Db { store }))
        };
        let initializer = initializer().map_err(|failure: Failure| failure.raise(py))?;
        if let Some((events, listener)) = events {
            events.start(py, &listener)?;
        }
        Ok(initializer)
    }

    /// Closes the store with all its keyspaces, snapshots, batches, transactions and iterations, whose
    /// methods raise InvalidArgumentError from then on. Waits for calls in progress; a backup ends soon, with that
    /// error. Called while a backup of this thread reports its progress, or by a signal handler then, it does not wait,
    /// and the store is closed when the backup has ended. A second call does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let scope = self.store.scope();
        if scope.is_foreign() {
            return Err(Failure::Forked.raise(py));
        }
        py.detach(|| scope.close());
        Ok(())
    }

    /// Whether the store is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.store.scope().is_closed()
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    /// The names of all keyspaces, sorted.
    fn keyspaces(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.run(py, forrest::Db::keyspaces)
    }

    /// Removes a keyspace with all its pairs. False if there is no keyspace of that name.
    #[pyo3(signature = (name, /))]
    fn drop_keyspace(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        self.run(py, |db| db.drop_keyspace(name))
    }

    /// The changes after a sequence number, in their order, of a store on disk that is opened with history=True. An
    /// iteration returns those that there are; wait() waits for more. Raises GoneError if some are no longer kept.
    #[pyo3(signature = (since=0, *, durability=None))]
    fn changes(&self, py: Python<'_>, since: u64, durability: Option<&str>) -> PyResult<Changes> {
        let durability = durability.map(|word| choose(py, "durability", DURABILITY, word)).transpose()?;
        let changes = self.run(py, |db| match durability {
            Some(durability) => db.changes_with(since, durability),
            None => db.changes(since),
        })?;
        Changes::of(self.store.scope(), changes).map_err(|failure| failure.raise(py))
    }

    /// Makes everything written before as durable as this home can, and then returns. On disk it then
    /// survives a loss of power.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, forrest::Db::sync)
    }

    /// Writes a copy of the store, as it is at one moment of this call, to a new directory. The copy is an
    /// independent store on disk. Other threads do not wait meanwhile.
    #[pyo3(signature = (path, /))]
    fn checkpoint(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.run(py, |db| db.checkpoint(path))
    }

    /// Adds a backup of the store, as it is at one moment of this call, to a directory of backups.
    #[pyo3(signature = (directory, other_store, go_on, /))]
    fn _backup(
        &self,
        py: Python<'_>,
        directory: PathBuf,
        other_store: bool,
        go_on: Option<Py<PyAny>>,
    ) -> PyResult<Made> {
        let mut options = BackupOptions::default();
        options.other_store = other_store;
        let scope = self.store.scope();
        scope.check().map_err(|failure| failure.raise(py))?;
        let mut watch = Watch::of(scope, go_on);
        // The function and signals may close the store, so the backup has a handle of its own.
        let back_up = || {
            let db = self.store.with(|db| Ok(db.clone()))?;
            let made = db.backup_with(directory, &options, |progress| watch.see(progress));
            made.map_err(|error| scope.check().err().unwrap_or(error.into()))
        };
        let made = py.detach(|| scope.apart(back_up)).map_err(|failure| failure.raise(py));
        watch.finish(made.map(fields))
    }

    /// Reads all files and verifies their checksums, if the home has this feature. Takes time proportional to
    /// the size of the store.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, forrest::Db::verify)
    }

    /// Merges all tables, so that the store takes the least space, if the home has this feature.
    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, forrest::Db::compact)
    }

    /// Moves all changes from memory and logs to tables, on disk. They then survive a loss of power, and the next
    /// opening reads no logs. Does nothing in other homes.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, forrest::Db::flush)
    }

    /// Gives memory that a store in memory does not use back to the system, for example after many deletes beside
    /// a long scan, if no changes follow. Does nothing in other homes.
    fn trim(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, forrest::Db::trim)
    }

    /// Accepts changes again after a failure of the disk that has stopped the store, without opening it again. All
    /// changes that reads show are then durable. Does nothing if the store is not stopped.
    fn resume(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, forrest::Db::resume)
    }

    /// Replaces the key that opens an encrypted store on disk by another one of 32 bytes. No data is written again.
    /// When this returns, only the new key opens the store, also after a loss of power. Checkpoints and backups that
    /// were made before need the old one.
    fn rotate_key(&self, py: Python<'_>, key: PyBackedBytes) -> PyResult<()> {
        let key = options::encryption_key(py, &key)?;
        self.run(py, move |db| db.rotate_key(&key))
    }

    /// Adds a random data key to an encrypted store on disk, for the files that are made from now on. Older files keep
    /// theirs until they are merged. It is for a key that may have leaked together with a copy of the store.
    fn rotate_data_key(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, forrest::Db::rotate_data_key)
    }

    /// Changes sizes and limits of the open store, for all its handles. Those that are not given stay as they are.
    /// background_bytes_per_second=0 ends that limit.
    #[expect(clippy::too_many_arguments, reason = "all have names and defaults")]
    #[pyo3(signature = (
        *, memtable_bytes=None, cache_bytes=None, table_bytes=None, open_files=None, batch_ops_max=None,
        batch_bytes_max=None, wait=None, background_bytes_per_second=None, memory_bytes=None, workers=None,
    ))]
    fn set_options(
        &self,
        py: Python<'_>,
        memtable_bytes: Option<usize>,
        cache_bytes: Option<usize>,
        table_bytes: Option<u64>,
        open_files: Option<usize>,
        batch_ops_max: Option<usize>,
        batch_bytes_max: Option<usize>,
        wait: Option<Duration>,
        background_bytes_per_second: Option<u64>,
        memory_bytes: Option<usize>,
        workers: Option<usize>,
    ) -> PyResult<()> {
        let changes = OptionChanges::new();
        given!(
            changes,
            memtable_bytes,
            cache_bytes,
            table_bytes,
            open_files,
            batch_ops_max,
            batch_bytes_max,
            wait,
            memory_bytes,
            workers
        );
        let background_bytes_per_second = background_bytes_per_second.map(|rate| (rate > 0).then_some(rate));
        given!(changes, background_bytes_per_second);
        self.run(py, |db| db.set_options(&changes))
    }

    /// Finishes the background work that earlier changes have left, so that the next opening and the first reads are
    /// fast. Call it after a large load. Does nothing in homes other than disk.
    fn settle(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, forrest::Db::settle)
    }

    /// Takes over what another process has changed, if the store is on disk and was opened with read_only=True.
    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, forrest::Db::refresh)
    }

    /// Statistics of the store, by name. Sizes are in bytes.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.run(py, forrest::Db::stats)?;
        let figures = [
            ("keys", stats.keys),
            ("keyspaces", stats.keyspaces),
            ("snapshots", stats.snapshots),
            ("node_bytes", stats.node_bytes),
            ("value_bytes_outside", stats.value_bytes_outside),
            ("reserved_bytes", stats.reserved_bytes),
            ("explicit_huge_bytes", stats.explicit_huge_bytes),
            ("transparent_huge_bytes", stats.transparent_huge_bytes),
            ("tables", stats.tables),
            ("table_bytes", stats.table_bytes),
            ("table_plain_bytes", stats.table_plain_bytes),
            ("cache_bytes", stats.cache_bytes),
            ("index_bytes", stats.index_bytes),
            ("open_files", stats.open_files),
            ("held_bytes", stats.held_bytes),
            ("kept_bytes", stats.kept_bytes),
            ("cache_explicit_huge_bytes", stats.cache_explicit_huge_bytes),
            ("cache_transparent_huge_bytes", stats.cache_transparent_huge_bytes),
            ("value_log_bytes", stats.value_log_bytes),
            ("value_log_live_bytes", stats.value_log_live_bytes),
            ("expiring", stats.expiring),
            ("table_live_bytes", stats.table_live_bytes),
        ];
        let by_name = PyDict::new(py);
        figures.into_iter().try_for_each(|(name, value)| by_name.set_item(name, value))?;
        Ok(by_name)
    }

    /// What a store on disk has done since it was opened, by name: changes, bytes written, flushes, merges, waits, and
    /// pages found in the cache.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let metrics = self.run(py, forrest::Db::metrics)?;
        let by_name = PyDict::new(py);
        metrics.rows().into_iter().try_for_each(|(name, _, value, _)| by_name.set_item(name, value))?;
        Ok(by_name)
    }

    /// What it holds and has done, in the text format of Prometheus.
    fn prometheus(&self, py: Python<'_>) -> PyResult<String> {
        self.run(py, |db| Ok(db.metrics()?.prometheus(&db.stats()?)))
    }

    /// The capabilities, by name, and whether this home has each.
    fn capabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let by_name = PyDict::new(py);
        for (capability, has) in self.store.at_once(py, |db| Ok(db.capabilities()))?.iter() {
            by_name.set_item(capability.as_str(), has)?;
        }
        Ok(by_name)
    }
}
