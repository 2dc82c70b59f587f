//! [`ValueReader`]: a value that is read in pieces. python/forrest/_blobs.py makes a file of it.

use crate::failure::Failure;
use crate::scope::{Part, Scope};
use forrest_base::lock;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io::Read;
use std::sync::{Arc, Mutex};

/// Reads a value from its beginning on.
#[pyclass(module = "forrest", frozen)]
pub(crate) struct ValueReader(Part<Mutex<forrest::ValueReader>>);

impl ValueReader {
    pub(crate) fn new(scope: &Arc<Scope>, reader: forrest::ValueReader) -> Result<ValueReader, Failure> {
        Part::new(scope, Mutex::new(reader)).map(ValueReader)
    }
}

#[pymethods]
impl ValueReader {
    /// The next bytes: `count`, or as many as are left.
    #[pyo3(signature = (count, /))]
    fn read<'py>(&self, py: Python<'py>, count: usize) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.0.detached(py, |reader| {
            let mut bytes = vec![0; count];
            let read = lock(reader).read(&mut bytes).map_err(forrest::Error::of_stream)?;
            bytes.truncate(read);
            Ok(bytes)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }
}
