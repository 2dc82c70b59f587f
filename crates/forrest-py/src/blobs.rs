//! [`Blobs`]: values of any length, written and read in pieces. python/forrest/_blobs.py makes files of them.

use crate::argument::{Bytes, key_range};
use crate::db::Db;
use crate::failure::Failure;
use crate::scope::{Part, Scope};
use crate::snapshot::Snapshot;
use forrest_base::lock;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Values of any length, in a keyspace of their own.
#[pyclass(module = "forrest", subclass, frozen)]
pub(crate) struct Blobs {
    scope: Arc<Scope>,
    blobs: Part<forrest::Blobs>,
}

#[pymethods]
impl Blobs {
    #[new]
    #[pyo3(signature = (db, name, *, piece_bytes=None))]
    fn new(db: &Bound<'_, Db>, name: &str, piece_bytes: Option<u32>) -> PyResult<Blobs> {
        let (py, store) = (db.py(), db.as_super().get().store());
        let blobs = store.detached(py, |db| {
            let blobs = db.blobs(name)?;
            Ok(match piece_bytes {
                Some(bytes) => blobs.piece_bytes(bytes)?,
                None => blobs,
            })
        })?;
        let scope = store.scope().clone();
        let blobs = Part::new(&scope, blobs).map_err(|failure| failure.raise(py))?;
        Ok(Blobs { scope, blobs })
    }

    /// The name of the keyspace.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        self.blobs.at_once(py, |blobs| Ok(blobs.name().to_owned()))
    }

    #[pyo3(signature = (key, /))]
    fn _writer(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<BlobWriter> {
        let key = key.get();
        let writer = self.blobs.detached(py, |blobs| Ok(blobs.writer(key)?))?;
        let part = Part::new(&self.scope, Mutex::new(Some(writer)));
        part.map(BlobWriter).map_err(|failure| failure.raise(py))
    }

    #[pyo3(signature = (key, snapshot, /))]
    fn _reader(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        snapshot: Option<&Bound<'_, Snapshot>>,
    ) -> PyResult<Option<BlobReader>> {
        let key = key.get();
        let (scope, blob) = match snapshot {
            None => (&self.scope, self.blobs.detached(py, |blobs| Ok(blobs.get(key)?))?),
            Some(snapshot) => {
                let state = snapshot.get().state();
                let name = self.name(py)?;
                let blob = state.detached(py, |snapshot| Ok(snapshot.blob(&name, key)?))?;
                (state.scope(), blob)
            }
        };
        let part = blob.map(|blob| Part::new(scope, Mutex::new(blob))).transpose();
        part.map(|part| part.map(BlobReader)).map_err(|failure| failure.raise(py))
    }

    /// The length of a blob in bytes; None if there is none. Reads no piece.
    #[pyo3(signature = (key, /))]
    fn size(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<Option<u64>> {
        let key = key.get();
        self.blobs.detached(py, |blobs| Ok(blobs.blob_bytes(key)?))
    }

    /// Removes a blob. Returns True if there was one.
    #[pyo3(signature = (key, /))]
    fn delete(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<bool> {
        let key = key.get();
        self.blobs.detached(py, |blobs| Ok(blobs.delete(key)?))
    }

    /// The keys of a range, in order, each with the length of its blob in bytes, as a list.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None))]
    fn items<'py>(
        &self,
        py: Python<'py>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
    ) -> PyResult<Vec<(Bound<'py, PyBytes>, u64)>> {
        let range = key_range(start, stop, prefix);
        let all = self
            .blobs
            .detached(py, |blobs| Ok(blobs.range(range).collect::<forrest::Result<Vec<_>>>()?))?;
        Ok(all.into_iter().map(|(key, bytes)| (PyBytes::new(py, &key), bytes)).collect())
    }

    /// Removes what is left of blobs whose writers began at least `age`, a timedelta, ago and have not finished.
    /// Returns their number.
    #[pyo3(signature = (age, /))]
    fn remove_unfinished(&self, py: Python<'_>, age: Duration) -> PyResult<u64> {
        self.blobs.detached(py, |blobs| Ok(blobs.remove_unfinished(age)?))
    }
}

/// Writes a blob. After an error the blob is gone.
#[pyclass(module = "forrest", frozen)]
pub(crate) struct BlobWriter(Part<Mutex<Option<forrest::BlobWriter>>>);

#[pymethods]
impl BlobWriter {
    #[pyo3(signature = (data, /))]
    fn write(&self, py: Python<'_>, data: Bytes<'_>) -> PyResult<usize> {
        let bytes = data.get();
        self.0.detached(py, |writer| {
            let mut writer = lock(writer);
            let open = writer.as_mut().ok_or_else(discarded)?;
            match open.write_all(bytes) {
                Ok(()) => Ok(bytes.len()),
                Err(error) => {
                    *writer = None;
                    Err(forrest::Error::of_stream(error).into())
                }
            }
        })
    }

    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.0.detached(py, |writer| {
            let writer = lock(writer).take();
            Ok(writer.ok_or_else(discarded)?.finish()?)
        })
    }

    fn discard(&self, py: Python<'_>) -> PyResult<()> {
        self.0.detached(py, |writer| {
            let writer = lock(writer).take();
            drop(writer);
            Ok(())
        })
    }
}

fn discarded() -> Failure {
    Failure::Invalid("this blob is finished, or was discarded after an error; begin another one".to_owned())
}

/// Reads a blob.
#[pyclass(module = "forrest", frozen)]
pub(crate) struct BlobReader(Part<Mutex<forrest::Blob>>);

#[pymethods]
impl BlobReader {
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        self.0.detached(py, |blob| Ok(lock(blob).len()))
    }

    /// Up to `count` bytes from an offset on; fewer only at the end of the blob.
    #[pyo3(signature = (offset, count, /))]
    fn read_at<'py>(&self, py: Python<'py>, offset: u64, count: usize) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.0.detached(py, |blob| {
            let mut blob = lock(blob);
            let left = usize::try_from(blob.len().saturating_sub(offset)).unwrap_or(usize::MAX);
            let mut bytes = vec![0; count.min(left)];
            let read = blob.read_at(offset, &mut bytes)?;
            bytes.truncate(read);
            Ok(bytes)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }
}
