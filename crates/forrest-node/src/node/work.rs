//! [`Work`]: a function that runs on a thread of libuv's pool, and a promise of what it returns.

use super::value::{Env, Value, check};
use crate::failure::Failure;
use napi_sys as sys;
use std::ffi::c_void;
use std::panic::{self, AssertUnwindSafe};
use std::ptr;

/// What a work returns, to be made a value of JavaScript on its thread.
pub(crate) trait Answer: Send + 'static {
    fn value(self, env: Env<'_>) -> Result<Value<'_>, Failure>;
}

/// A work that is not queued yet. Its promise is pending. One that is dropped before stays allocated, and its promise
/// pending: that is only done while the environment ends.
pub(crate) struct Work<A: Answer>(*mut Job<A>);

struct Job<A> {
    /// Taken on the thread of the pool.
    run: Option<Box<dyn FnOnce() -> Result<A, Failure> + Send>>,
    result: Option<Result<A, Failure>>,
    /// Called on the thread of JavaScript before the promise is settled. Not `Send`: only that thread touches it.
    after: Option<Box<dyn FnOnce()>>,
    deferred: sys::napi_deferred,
    work: sys::napi_async_work,
    env: sys::napi_env,
}

impl<A: Answer> Work<A> {
    /// A work, and its promise.
    pub(crate) fn new<'e>(
        env: Env<'e>,
        run: impl FnOnce() -> Result<A, Failure> + Send + 'static,
        after: impl FnOnce() + 'static,
    ) -> Result<(Work<A>, Value<'e>), Failure> {
        let name = env.string(b"forrest")?;
        let job = Box::into_raw(Box::new(Job {
            run: Some(Box::new(run)),
            result: None,
            after: Some(Box::new(after)),
            deferred: ptr::null_mut(),
            work: ptr::null_mut(),
            env: env.raw,
        }));
        // SAFETY: the job stays at its address until `complete` frees it; Node calls nothing before it is queued.
        let status = unsafe {
            sys::napi_create_async_work(
                env.raw,
                ptr::null_mut(),
                name.raw,
                Some(execute::<A>),
                Some(complete::<A>),
                job.cast(),
                &raw mut (*job).work,
            )
        };
        let made = check(status, "make a work").and_then(|()| {
            // SAFETY: places for both results.
            env.made("make a promise", |raw, promise| unsafe {
                sys::napi_create_promise(raw, &raw mut (*job).deferred, promise)
            })
        });
        match made {
            Ok(promise) => Ok((Work(job), promise)),
            Err(failure) => {
                // SAFETY: it is not queued, so Node does not use it. The work in it, if there is one, stays allocated.
                drop(unsafe { Box::from_raw(job) });
                Err(failure)
            }
        }
    }

    /// Queues it. Works begin in the order in which they are queued.
    ///
    /// The caller is on the thread of the environment, as a work is not `Send`.
    pub(crate) fn queue(self) {
        let job = self.0;
        // SAFETY: the job was made by `new`, in an environment that this thread still serves, and is queued once. From
        // here on it belongs to Node, until `complete`.
        let status = unsafe { sys::napi_queue_async_work((*job).env, (*job).work) };
        // Node refuses no work that it has made.
        assert_eq!(status, sys::Status::napi_ok, "Node refused to queue a work");
    }
}

unsafe extern "C" fn execute<A: Answer>(_: sys::napi_env, data: *mut c_void) {
    // SAFETY: `queue` passed the job, and nothing else touches it until this returns. Only parts that are `Send` are
    // used.
    let job = unsafe { &mut *data.cast::<Job<A>>() };
    let Some(run) = job.run.take() else { return };
    // The closure is consumed, so nothing broken is seen afterwards but what the library guards itself.
    let result = panic::catch_unwind(AssertUnwindSafe(run));
    job.result = Some(result.unwrap_or_else(|payload| Err(Failure::panic(&*payload))));
}

unsafe extern "C" fn complete<A: Answer>(raw: sys::napi_env, _: sys::napi_status, data: *mut c_void) {
    // SAFETY: as in `execute`; Node calls this once, after it, and the job is ours again.
    let mut job = unsafe { Box::from_raw(data.cast::<Job<A>>()) };
    // SAFETY: Node passes its environment for the time of this call.
    let env = unsafe { Env::new(raw) };
    let settle = || {
        if let Some(after) = job.after.take() {
            after();
        }
        // A work that is cancelled, as when its environment ends, has no result.
        let cancelled = || Err(Failure::new("LEVEL_ABORTED", "the environment ends"));
        let value = job.result.take().unwrap_or_else(cancelled).and_then(|answer| answer.value(env));
        // An environment that ends refuses both, and nobody waits for the promise any more.
        match value {
            // SAFETY: a value of this environment; the promise is settled once.
            Ok(value) => unsafe { sys::napi_resolve_deferred(raw, job.deferred, value.raw) },
            Err(failure) => match env.error(&failure) {
                // SAFETY: as above.
                Ok(error) => unsafe { sys::napi_reject_deferred(raw, job.deferred, error.raw) },
                Err(_) => sys::Status::napi_generic_failure,
            },
        }
    };
    let _panicked = panic::catch_unwind(AssertUnwindSafe(settle));
    // SAFETY: the work has completed.
    let _ended = unsafe { sys::napi_delete_async_work(raw, job.work) };
}
