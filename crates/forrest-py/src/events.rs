//! [`Event`]: what happens in a store on disk, passed to a function of Python by a thread of its own.
//!
//! The threads of the store never attach to the interpreter. They leave events in a queue, from which a daemon thread
//! of Python takes them. So the function is called without any lock of the store or of this package, may close the
//! store, and delays no work; and a store can be closed while the interpreter ends, when no thread can attach any more.
//! The thread ends when the store is closed and the queue is empty. It keeps the function, and not the store.
//! python/forrest/_events.py is what it runs.

use forrest_base::lock;
use forrest_machine::origin::Origin;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::mem;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Maximum number of events that wait for the function, as many as the library itself keeps waiting.
const WAITING_MAX: usize = 1_024;

/// What has happened in a store on disk. The option `listener` of forrest.open() names a function that is called with
/// each event, in their order. A daemon thread calls it, and holds no lock: it may use and close the store, and delays
/// no work. An exception in it goes to sys.unraisablehook. Up to 1,024 events wait for it; what comes then is lost. It
/// is kept until the store is closed; if it refers to the store, only close() or a with block closes that.
#[pyclass(module = "forrest", frozen)]
pub(crate) struct Event {
    /// What it is: "began", "ended", "failed" (a job), "stalled", "full", "has-room", "stopped" or "resumed".
    #[pyo3(get)]
    kind: &'static str,
    /// The job: "flush", "merge", "ingest" or "verification"; None for other events.
    #[pyo3(get)]
    job: Option<&'static str>,
    /// What an ended or failed job or a wait took, a timedelta; None for other events.
    #[pyo3(get)]
    took: Option<Duration>,
    /// Bytes that a job has written to tables.
    #[pyo3(get)]
    bytes: u64,
    /// What went wrong, if something did.
    #[pyo3(get)]
    error: Option<String>,
    /// Number of events between the one before and this one that were lost because the function was slow.
    #[pyo3(get)]
    lost: u64,
    text: String,
}

#[pymethods]
impl Event {
    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("<forrest.Event {:?}>", self.text)
    }
}

impl Event {
    fn new(event: &forrest::Event, lost: u64) -> Event {
        use forrest::Event as E;
        let (kind, job, took, bytes, error) = match event {
            E::Began(job) => ("began", Some(job), None, 0, None),
            E::Ended { job, took, bytes, error } => (
                if error.is_none() { "ended" } else { "failed" },
                Some(job),
                Some(took),
                *bytes,
                error.as_ref(),
            ),
            E::Stalled { took } => ("stalled", None, Some(took), 0, None),
            E::Full => ("full", None, None, 0, None),
            E::HasRoom => ("has-room", None, None, 0, None),
            E::Stopped { error } => ("stopped", None, None, 0, Some(error)),
            E::Resumed => ("resumed", None, None, 0, None),
            _ => ("unknown", None, None, 0, None),
        };
        let job = job.map(|job| job.as_str());
        Event { kind, job, took: took.copied(), bytes, error: error.cloned(), lost, text: event.to_string() }
    }
}

/// The end of the queue at which the store leaves events.
struct Sender {
    queue: SyncSender<Event>,
    /// Number of events for which there was no room since the last one that found some.
    lost: u64,
}

impl Sender {
    fn send(&mut self, event: &forrest::Event) {
        // After the end of the interpreter nobody takes events out, and they are lost.
        match self.queue.try_send(Event::new(event, self.lost)) {
            Ok(()) => self.lost = 0,
            Err(_) => self.lost += 1,
        }
    }
}

/// The other end, in the thread that calls the function.
#[pyclass(module = "forrest", frozen)]
pub(crate) struct Events {
    queue: Option<Mutex<Receiver<Event>>>,
    origin: Origin,
}

impl Events {
    /// A queue, and what the store calls with each event.
    pub(crate) fn queue() -> (Events, impl Fn(&forrest::Event) + Send + Sync + 'static) {
        let (sender, queue) = sync_channel(WAITING_MAX);
        let sender = Mutex::new(Sender { queue: sender, lost: 0 });
        let events = Events { queue: Some(Mutex::new(queue)), origin: Origin::here() };
        (events, move |event| lock(&sender).send(event))
    }

    /// Starts the thread that calls the function.
    pub(crate) fn start(self, py: Python<'_>, listener: &Bound<'_, PyAny>) -> PyResult<()> {
        let arguments = PyDict::new(py);
        arguments.set_item("target", py.import("forrest._events")?.getattr("run")?)?;
        arguments.set_item("args", (Bound::new(py, self)?, listener))?;
        arguments.set_item("name", "forrest-events")?;
        arguments.set_item("daemon", true)?;
        let thread = py.import("threading")?.getattr("Thread")?.call((), Some(&arguments))?;
        thread.call_method0("start").map(drop)
    }
}

#[pymethods]
impl Events {
    /// Waits for the next event. None if the store is closed.
    fn next(&self, py: Python<'_>) -> Option<Event> {
        py.detach(|| lock(self.queue.as_ref()?).recv().ok())
    }

    /// Passes an exception of a listener to sys.unraisablehook.
    #[pyo3(signature = (error, listener, /))]
    fn report(&self, error: Bound<'_, PyAny>, listener: &Bound<'_, PyAny>) {
        let py = error.py();
        PyErr::from_value(error).write_unraisable(py, Some(listener));
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if !self.origin.is_here() {
            // This is a forked process, which lacks the thread. It may have held a lock of the queue during the fork.
            mem::forget(self.queue.take());
        }
    }
}

/// Fails if an argument is not a function or the like.
pub(crate) fn check(listener: &Bound<'_, PyAny>) -> PyResult<()> {
    if listener.is_callable() { Ok(()) } else { Err(PyTypeError::new_err("listener must be callable")) }
}
