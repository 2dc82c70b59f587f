//! [`Call`]: a call of one of this crate's functions from JavaScript.

use super::value::{Env, Value, check};
use crate::failure::Failure;
use napi_sys as sys;
use std::ffi::{CStr, c_void};
use std::panic::{self, AssertUnwindSafe};
use std::ptr;

/// Most arguments of a function. Further ones are ignored, as JavaScript does.
const ARGUMENTS_MAX: usize = 8;

/// A function that JavaScript calls, with its name.
pub(crate) struct Method {
    pub(crate) name: &'static CStr,
    pub(crate) run: for<'e> fn(&Call<'e>) -> Result<Value<'e>, Failure>,
}

/// The arguments of a call.
pub(crate) struct Call<'e> {
    pub(crate) env: Env<'e>,
    /// Missing arguments are undefined.
    arguments: [Value<'e>; ARGUMENTS_MAX],
}

impl<'e> Call<'e> {
    /// The argument at a place, counted from 0.
    pub(crate) fn argument(&self, at: usize) -> Value<'e> {
        self.arguments[at]
    }
}

/// Makes the functions properties of the module's exports.
///
/// # Safety
/// Node calls this to register the module, with these arguments.
pub(crate) unsafe fn export(raw: sys::napi_env, exports: sys::napi_value, methods: &'static [Method]) {
    // SAFETY: by the contract of this function.
    let env = unsafe { Env::new(raw) };
    for method in methods {
        let data = ptr::from_ref(method).cast_mut().cast::<c_void>();
        let name = method.name.as_ptr();
        // SAFETY: the name ends with a zero, and the method, which `called` gets back, lasts for ever.
        let made = env.made("make a function", |raw, result| unsafe {
            sys::napi_create_function(
                raw,
                name,
                method.name.count_bytes().cast_signed(),
                Some(called),
                data,
                result,
            )
        });
        let set = made.and_then(|function| {
            // SAFETY: both are values of this environment.
            let status = unsafe { sys::napi_set_named_property(raw, exports, name, function.raw) };
            check(status, "set a property")
        });
        if let Err(failure) = set {
            throw(env, &failure);
            return;
        }
    }
}

/// What Node calls for every function.
unsafe extern "C" fn called(raw: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    // SAFETY: Node passes its environment for the time of this call.
    let env = unsafe { Env::new(raw) };
    // SAFETY: these are Node's arguments.
    let run = || unsafe { dispatch(env, info) };
    let result =
        panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| Err(Failure::panic(&*payload)));
    match result {
        Ok(value) => value.raw,
        Err(failure) => {
            throw(env, &failure);
            ptr::null_mut()
        }
    }
}

/// # Safety
/// `info` is that of the running call, of a function that `export` made.
unsafe fn dispatch<'e>(env: Env<'e>, info: sys::napi_callback_info) -> Result<Value<'e>, Failure> {
    let mut raw = [ptr::null_mut(); ARGUMENTS_MAX];
    let (mut count, mut data) = (ARGUMENTS_MAX, ptr::null_mut());
    // SAFETY: there is room for `count` arguments; Node fills what is missing with undefined.
    let status = unsafe {
        sys::napi_get_cb_info(env.raw, info, &raw mut count, raw.as_mut_ptr(), ptr::null_mut(), &raw mut data)
    };
    check(status, "read the arguments")?;
    // SAFETY: the arguments last as long as the call.
    let arguments = raw.map(|argument| unsafe { env.value(argument) });
    // SAFETY: `export` passed a method that lasts for ever.
    let method = unsafe { &*data.cast::<Method>() };
    (method.run)(&Call { env, arguments })
}

/// Throws a failure. If that fails, for example because the environment ends, nothing is thrown.
fn throw(env: Env<'_>, failure: &Failure) {
    if let Ok(error) = env.error(failure) {
        // SAFETY: an error of this environment. An exception that is pending already stays.
        let _ended = unsafe { sys::napi_throw(env.raw, error.raw) };
    }
}
