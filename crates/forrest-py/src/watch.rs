//! [`Watch`]: the progress of long work, which signals and a function of Python can end.

use crate::scope::Scope;
use forrest::Progress;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time between two looks whether to go on.
const LOOK: Duration = Duration::from_millis(50);

/// See the head of the file.
pub(crate) struct Watch {
    go_on: Option<Py<PyAny>>,
    looked: Option<Instant>,
    raised: Option<PyErr>,
    /// The work ends when this is closed.
    scope: Option<Arc<Scope>>,
}

impl Watch {
    /// `go_on` is called now and then with the bytes that are done, and all. The work ends if it returns False or
    /// raises.
    pub(crate) fn new(go_on: Option<Py<PyAny>>) -> Watch {
        Watch { go_on, looked: None, raised: None, scope: None }
    }

    /// A watch of work on a store, which also ends when the store is closed.
    pub(crate) fn of(scope: &Arc<Scope>, go_on: Option<Py<PyAny>>) -> Watch {
        Watch { scope: Some(scope.clone()), ..Watch::new(go_on) }
    }

    fn is_closed(&self) -> bool {
        self.scope.as_ref().is_some_and(|scope| scope.is_closed())
    }

    /// What the work, which runs without the interpreter, calls with its progress.
    pub(crate) fn see(&mut self, progress: Progress) -> ControlFlow<()> {
        if self.is_closed() {
            return ControlFlow::Break(());
        }
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return ControlFlow::Continue(());
        }
        self.looked = Some(Instant::now());
        let ends = Python::attach(|py| -> PyResult<bool> {
            py.check_signals()?;
            let Some(go_on) = &self.go_on else { return Ok(false) };
            let answer = go_on.bind(py).call1((progress.done, progress.whole))?;
            Ok(answer.is(PyBool::new(py, false)))
        });
        match ends {
            // What was just called may have closed the store.
            Ok(false) if !self.is_closed() => ControlFlow::Continue(()),
            Ok(_) => ControlFlow::Break(()),
            Err(error) => {
                self.raised = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// The result of the work; what was raised meanwhile, if anything was.
    pub(crate) fn finish<T>(self, result: PyResult<T>) -> PyResult<T> {
        match self.raised {
            Some(error) => Err(error),
            None => result,
        }
    }
}
