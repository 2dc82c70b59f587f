//! [`Db`]: opening and closing, and the store as a whole.

use crate::failure::Failure;
use crate::keyspace::Keyspace;
use crate::options::{self, DURABILITY, NUMA, PAGES, choose};
use crate::scope::{Part, Scope};
use forrest::Builder;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyDict};
use std::path::PathBuf;
use std::sync::Arc;

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

/// Sets those options that are given.
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
        batch_bytes_max=None, pages=None, numa=None, mode=None,
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
        numa: Option<&str>,
        mode: Option<u32>,
    ) -> PyResult<PyClassInitializer<Db>> {
        let py = url.py();
        let url = options::url(url)?;
        let durability = durability.map(|word| choose(py, "durability", DURABILITY, word)).transpose()?;
        let pages = pages.map(|word| choose(py, "pages", PAGES, word)).transpose()?;
        let numa = numa.map(|word| choose(py, "numa", NUMA, word)).transpose()?;
        let worker_cpus = worker_cpus.as_deref();
        let builder = Builder::default().create(create);
        given!(builder, durability, capacity_bytes, cache_bytes, memtable_bytes, table_bytes, tags, workers);
        given!(builder, worker_cpus, open_files, batch_ops_max, batch_bytes_max, pages, numa, mode);
        let open = || if read_only { forrest::Db::open_read_only(&url) } else { builder.open(&url) };
        let db = py.detach(open).map_err(|error| Failure::from(error).raise(py))?;
        let initializer = || {
            let scope = Scope::new("store", db.capabilities().home() != "memory:");
            let default = (*db).clone();
            let store = Arc::new(Part::new(&scope, db)?);
            Ok(Keyspace::in_store(store.clone(), default, format!("{url:?}"))?.add_subclass(Db { store }))
        };
        initializer().map_err(|failure: Failure| failure.raise(py))
    }

    /// Closes the store, and with it all keyspaces, snapshots, batches, transactions and iterations that came from it,
    /// which are of no use then. Waits for calls that are under way. A second time it does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let scope = self.store.scope();
        if scope.is_foreign() {
            return Err(Failure::Forked.raise(py));
        }
        py.detach(|| scope.close());
        Ok(())
    }

    /// Whether it was closed.
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

    /// Removes a keyspace with all that it holds; false if there is none of that name.
    #[pyo3(signature = (name, /))]
    fn drop_keyspace(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        self.run(py, |db| db.drop_keyspace(name))
    }

    /// Returns when everything written before is as durable as this home can make it; on disk, it survives power loss
    /// then.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, forrest::Db::sync)
    }

    /// Writes a copy of the store, as it is at one moment, to a new directory, which is a store on disk of its own;
    /// others go on meanwhile.
    #[pyo3(signature = (path, /))]
    fn checkpoint(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.run(py, |db| db.checkpoint(path))
    }

    /// Reads everything stored and checks it, where the home can do that. Takes time in proportion to the store.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, forrest::Db::verify)
    }

    /// Merges everything, so that the store takes the least space, where the home can do that.
    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, forrest::Db::compact)
    }

    /// What the store holds and what it costs, by name; sizes in bytes.
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
            ("cache_bytes", stats.cache_bytes),
            ("index_bytes", stats.index_bytes),
            ("open_files", stats.open_files),
        ];
        let by_name = PyDict::new(py);
        figures.into_iter().try_for_each(|(name, value)| by_name.set_item(name, value))?;
        Ok(by_name)
    }

    /// What this home can do, by words, and whether it can.
    fn capabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let by_name = PyDict::new(py);
        for (capability, has) in self.store.at_once(py, |db| Ok(db.capabilities()))?.iter() {
            by_name.set_item(capability.as_str(), has)?;
        }
        Ok(by_name)
    }
}
