//! Functions of the program that a store calls: compaction filters, merge operators, and listeners for events.

use crate::argument::ended;
use forrest_rust::{Builder, Error, Job, MergeOperator, Verdict};
use std::ffi::{c_char, c_void};
use std::panic::resume_unwind;
use std::ptr;
use std::slice;
use std::time::Duration;

/// What a compaction filter returns: the value stays.
pub const FORREST_FILTER_KEEP: i32 = 0;
/// The key is deleted.
pub const FORREST_FILTER_DROP: i32 = 1;
/// The key has the value `replacement` from now on.
pub const FORREST_FILTER_REPLACE: i32 = 2;

/// A value that a compaction filter decides about. The pointers are valid until the filter returns.
#[derive(Debug)]
#[repr(C)]
pub struct Filtered {
    /// The name of the keyspace, without a zero byte at its end.
    pub keyspace: *const c_char,
    /// The length of `keyspace`.
    pub keyspace_bytes: usize,
    /// The key.
    pub key: *const c_void,
    /// The length of `key`.
    pub key_bytes: usize,
    /// The value.
    pub value: *const c_void,
    /// The length of `value`.
    pub value_bytes: usize,
    /// To be set before the filter returns `FORREST_FILTER_REPLACE`. The bytes must stay as they are until this thread
    /// calls the filter again or ends.
    pub replacement: *const c_void,
    /// The length of `replacement`.
    pub replacement_bytes: usize,
}

/// A compaction filter. It returns `FORREST_FILTER_KEEP`, `FORREST_FILTER_DROP` or `FORREST_FILTER_REPLACE`; any other
/// number means that the value stays. Several threads call it at once. It must not call this library, and must return
/// normally, not by an exception or `longjmp`.
pub type CompactionFilter = Option<unsafe extern "C" fn(context: *mut c_void, given: *mut Filtered) -> i32>;

/// A pointer that is of use in each thread.
#[derive(Debug, Clone, Copy)]
struct Context(*mut c_void);

// SAFETY: nothing here looks into it. That a function may be called with it by any thread is in the Safety sections of
// `forrest_options_set_compaction_filter`, `forrest_options_add_merge_operator` and `forrest_options_set_listener`.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// By this a closure captures the whole, and not its pointer alone.
    fn pointer(self) -> *mut c_void {
        self.0
    }
}

/// A compaction filter and its context.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filter(unsafe extern "C" fn(context: *mut c_void, given: *mut Filtered) -> i32, Context);

impl Filter {
    pub(crate) fn new(
        filter: unsafe extern "C" fn(context: *mut c_void, given: *mut Filtered) -> i32,
        context: *mut c_void,
    ) -> Filter {
        Filter(filter, Context(context))
    }

    /// The builder with this filter.
    pub(crate) fn put(self, builder: Builder) -> Builder {
        let Filter(filter, context) = self;
        builder.compaction_filter(move |keyspace, key, value| {
            let mut given = Filtered {
                keyspace: keyspace.as_ptr().cast(),
                keyspace_bytes: keyspace.len(),
                key: key.as_ptr().cast(),
                key_bytes: key.len(),
                value: value.as_ptr().cast(),
                value_bytes: value.len(),
                replacement: ptr::null(),
                replacement_bytes: 0,
            };
            // SAFETY: `filter` meets its requirements, as the Safety section of the function that took it demands.
            // `given` and what it points to live until it returns.
            let verdict = unsafe { filter(context.pointer(), &raw mut given) };
            match (verdict, given.replacement.is_null(), given.replacement_bytes) {
                (FORREST_FILTER_DROP, ..) => Verdict::Drop,
                (FORREST_FILTER_REPLACE, _, 0) => Verdict::Replace(Vec::new()),
                (FORREST_FILTER_REPLACE, false, bytes) => {
                    // SAFETY: `replacement` has as many readable bytes, which stay as they are until the next call, as
                    // the requirements of `forrest_compaction_filter` demand.
                    let new = unsafe { slice::from_raw_parts(given.replacement.cast::<u8>(), bytes) };
                    Verdict::Replace(new.to_vec())
                }
                _ => Verdict::Keep,
            }
        })
    }
}

/// A merge operator makes the value that a key has after an operand. `old` is the value before, and null if there is
/// none. There is always a result: bytes with which the operator could not work were refused before. If it returns
/// false all the same, the call that needs the value fails with `FORREST_INVALID_ARGUMENT`, and nothing is lost.
pub const FORREST_MERGE_APPLY: i32 = 0;
/// It makes one operand that does what `old` and then `operand` do to any value. False if there is none; then the
/// operands are applied one after the other.
pub const FORREST_MERGE_COMBINE: i32 = 1;
/// It checks an operand before it is stored. False refuses it, with `FORREST_INVALID_ARGUMENT`.
pub const FORREST_MERGE_CHECK_OPERAND: i32 = 2;
/// It checks `operand`, a value that is set in the keyspace, before it is stored. False refuses it.
pub const FORREST_MERGE_CHECK_VALUE: i32 = 3;

/// What a merge operator is given. The pointers are valid until it returns.
#[derive(Debug)]
#[repr(C)]
pub struct Merging {
    /// What to do: one of `FORREST_MERGE_APPLY` to `FORREST_MERGE_CHECK_VALUE`. Return false for other numbers, which
    /// later versions may have.
    pub call: i32,
    /// The key; null for a check.
    pub key: *const c_void,
    /// The length of `key`.
    pub key_bytes: usize,
    /// The value, or the first of two operands; null if there is none.
    pub old: *const c_void,
    /// The length of `old`.
    pub old_bytes: usize,
    /// The operand, or the value that is checked.
    pub operand: *const c_void,
    /// The length of `operand`.
    pub operand_bytes: usize,
    /// To be set before the operator returns true for `FORREST_MERGE_APPLY` and `FORREST_MERGE_COMBINE`. It may be
    /// `old` or `operand`. Other bytes must stay as they are until this thread calls the operator again or ends.
    pub result: *const c_void,
    /// The length of `result`.
    pub result_bytes: usize,
}

/// A merge operator. It returns true if it has done what `given->call` says; checks have no result. It must be a
/// function of what it is given alone: it is called for the same operands again, at any later time. Several threads
/// call it at once. It must not call this library, and must return normally, not by an exception or `longjmp`.
pub type MergeFunction = Option<unsafe extern "C" fn(context: *mut c_void, given: *mut Merging) -> bool>;

/// A merge operator and its context.
pub(crate) struct Operator {
    name: String,
    function: unsafe extern "C" fn(context: *mut c_void, given: *mut Merging) -> bool,
    context: Context,
}

impl Operator {
    pub(crate) fn new(
        name: &str,
        function: unsafe extern "C" fn(context: *mut c_void, given: *mut Merging) -> bool,
        context: *mut c_void,
    ) -> Operator {
        Operator { name: name.to_owned(), function, context: Context(context) }
    }

    /// Calls the function; `None` if it returns false.
    fn call(&self, call: i32, key: Option<&[u8]>, old: Option<&[u8]>, operand: &[u8]) -> Option<Vec<u8>> {
        let start = |bytes: &[u8]| bytes.as_ptr().cast();
        let mut given = Merging {
            call,
            key: key.map_or(ptr::null(), start),
            key_bytes: key.map_or(0, <[u8]>::len),
            old: old.map_or(ptr::null(), start),
            old_bytes: old.map_or(0, <[u8]>::len),
            operand: start(operand),
            operand_bytes: operand.len(),
            result: ptr::null(),
            result_bytes: 0,
        };
        // SAFETY: `function` meets its requirements, as the Safety section of the function that took it demands.
        // `given` and what it points to live until it returns.
        if !unsafe { (self.function)(self.context.pointer(), &raw mut given) } {
            return None;
        }
        if given.result.is_null() || given.result_bytes == 0 {
            return Some(Vec::new());
        }
        // SAFETY: `result` has as many readable bytes, which stay as they are until the next call, as the requirements
        // of `forrest_merge_function` demand.
        Some(unsafe { slice::from_raw_parts(given.result.cast::<u8>(), given.result_bytes) }.to_vec())
    }

    fn check(&self, call: i32, bytes: &[u8], what: &str) -> Result<(), Error> {
        match self.call(call, None, None, bytes) {
            Some(_) => Ok(()),
            None => Err(Error::invalid(format!(
                "the merge operator \"{}\" refuses {what} of {} bytes",
                self.name.escape_debug(),
                bytes.len()
            ))),
        }
    }
}

impl MergeOperator for Operator {
    fn name(&self) -> &str {
        &self.name
    }

    fn merge(&self, key: &[u8], old: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
        // As a panic, which the engine catches: the call that needs the value fails, and stored operands stay.
        let made = self.call(FORREST_MERGE_APPLY, Some(key), old, operand);
        made.unwrap_or_else(|| resume_unwind(Box::new("it has no result")))
    }

    fn combine(&self, key: &[u8], first: &[u8], then: &[u8]) -> Option<Vec<u8>> {
        self.call(FORREST_MERGE_COMBINE, Some(key), Some(first), then)
    }

    fn check_operand(&self, operand: &[u8]) -> Result<(), Error> {
        self.check(FORREST_MERGE_CHECK_OPERAND, operand, "an operand")
    }

    fn check_value(&self, value: &[u8]) -> Result<(), Error> {
        self.check(FORREST_MERGE_CHECK_VALUE, value, "a value")
    }
}

/// A job has begun.
pub const FORREST_EVENT_BEGAN: i32 = 0;
/// A job has ended.
pub const FORREST_EVENT_ENDED: i32 = 1;
/// A job has failed. The store tries again what it can.
pub const FORREST_EVENT_FAILED: i32 = 2;
/// A change had waited because memory was full of changes that were not in tables yet.
pub const FORREST_EVENT_STALLED: i32 = 3;
/// There is no room for tables or for the log.
pub const FORREST_EVENT_FULL: i32 = 4;
/// A flush or a change has found room again.
pub const FORREST_EVENT_HAS_ROOM: i32 = 5;
/// The store takes no changes until it is opened again or resumed, because a write or a sync has failed.
pub const FORREST_EVENT_STOPPED: i32 = 6;
/// It takes changes again.
pub const FORREST_EVENT_RESUMED: i32 = 7;

/// What has happened in a store on disk. Later versions of the library may add fields at the end.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Event {
    /// One of `FORREST_EVENT_BEGAN` to `FORREST_EVENT_RESUMED`, or a number of a later version.
    pub kind: i32,
    /// The job, if there is one: "flush", "merge", "ingest" or "verification"; otherwise null.
    pub job: *const c_char,
    /// What a job or a wait took, in nanoseconds; otherwise 0.
    pub took_ns: u64,
    /// Bytes that a job has written to tables; otherwise 0.
    pub bytes: u64,
    /// The event in words, with the error if there is one. Never null.
    pub text: *const c_char,
}

/// A function to which a store reports events, with the `context` that was given with it. The event, and its texts, are
/// valid until the function returns. It is called by threads of the library, and by threads that are in a call of the
/// library, but never by two at once. It must return normally, not by an exception or `longjmp`. It may call this
/// library, but must not close the store.
pub type Listen = Option<unsafe extern "C" fn(context: *mut c_void, event: *const Event)>;

/// A listener and its context.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listener(unsafe extern "C" fn(context: *mut c_void, event: *const Event), Context);

impl Listener {
    pub(crate) fn new(
        listen: unsafe extern "C" fn(context: *mut c_void, event: *const Event),
        context: *mut c_void,
    ) -> Listener {
        Listener(listen, Context(context))
    }

    /// The builder with this listener.
    pub(crate) fn put(self, builder: Builder) -> Builder {
        let Listener(listen, context) = self;
        builder.listener(move |event| {
            let text = ended(&event.to_string());
            let mut seen = Event { kind: 0, job: ptr::null(), took_ns: 0, bytes: 0, text: text.as_ptr() };
            let job = fill(&mut seen, event).map(|job| ended(job.as_str()));
            seen.job = job.as_ref().map_or(ptr::null(), |job| job.as_ptr());
            // SAFETY: `listen` meets its requirements, as the Safety section of the function that took it demands.
            // `seen` and its texts live until it returns.
            unsafe { listen(context.pointer(), &raw const seen) };
        })
    }
}

/// Writes what an event is; the job that it is about.
fn fill(seen: &mut Event, event: &forrest_rust::Event) -> Option<Job> {
    use forrest_rust::Event as E;
    let nanos = |took: &Duration| u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    let (kind, job) = match event {
        E::Began(job) => (FORREST_EVENT_BEGAN, Some(*job)),
        E::Ended { job, took, bytes, error } => {
            (seen.took_ns, seen.bytes) = (nanos(took), *bytes);
            (if error.is_none() { FORREST_EVENT_ENDED } else { FORREST_EVENT_FAILED }, Some(*job))
        }
        E::Stalled { took } => {
            seen.took_ns = nanos(took);
            (FORREST_EVENT_STALLED, None)
        }
        E::Full => (FORREST_EVENT_FULL, None),
        E::HasRoom => (FORREST_EVENT_HAS_ROOM, None),
        E::Stopped { .. } => (FORREST_EVENT_STOPPED, None),
        E::Resumed => (FORREST_EVENT_RESUMED, None),
        _ => (i32::MAX, None),
    };
    seen.kind = kind;
    job
}
