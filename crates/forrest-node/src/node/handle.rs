//! [`Handle`]: objects of this crate in the hands of JavaScript.
//!
//! A handle is an object of JavaScript that carries a reference to one of this crate's objects, and a tag that no
//! other object has. JavaScript's garbage collector, or the end of the environment, drops the reference.

use super::value::{Env, Value, check};
use crate::failure::Failure;
use napi_sys as sys;
use std::ffi::c_void;
use std::panic::{self, AssertUnwindSafe};
use std::ptr;
use std::rc::Rc;

/// A type whose objects JavaScript holds.
pub(crate) trait Handle: Sized + 'static {
    /// What the object is called in messages.
    const WHAT: &'static str;
    /// The second half of the tag, one for each type.
    const TAG: u64;

    /// A new handle of an object.
    fn handle(self: Rc<Self>, env: Env<'_>) -> Result<Value<'_>, Failure> {
        let object = env.object()?;
        let tag = tag::<Self>();
        // SAFETY: an object of this environment, and a tag that Node copies.
        check(unsafe { sys::napi_type_tag_object(env.raw, object.raw, &raw const tag) }, "tag an object")?;
        let data = Box::into_raw(Box::new(self));
        // SAFETY: `data` is valid until Node calls `dropped::<Self>`, once.
        let status = unsafe {
            sys::napi_wrap(
                env.raw,
                object.raw,
                data.cast(),
                Some(dropped::<Self>),
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        if let Err(failure) = check(status, "wrap an object") {
            // SAFETY: Node has refused it, so it is still ours.
            drop(unsafe { Box::from_raw(data) });
            return Err(failure);
        }
        Ok(object)
    }

    /// The object of a handle.
    fn of(value: Value<'_>) -> Result<Rc<Self>, Failure> {
        let env = value.env().raw;
        let mut is_ours = false;
        if value.is_object()? {
            let tag = tag::<Self>();
            // SAFETY: an object of this environment, a tag, and a place for the result.
            let status =
                unsafe { sys::napi_check_object_type_tag(env, value.raw, &raw const tag, &raw mut is_ours) };
            check(status, "read the tag of an object")?;
        }
        if !is_ours {
            return Err(Failure::argument(format!("this is not a handle of a {}", Self::WHAT)));
        }
        let mut data = ptr::null_mut();
        // SAFETY: the tag says that `handle` made the object.
        check(unsafe { sys::napi_unwrap(env, value.raw, &raw mut data) }, "unwrap an object")?;
        // SAFETY: `handle::<Self>` has set it, and Node drops it only after the object, which the caller holds.
        Ok(Rc::clone(unsafe { &*data.cast::<Rc<Self>>() }))
    }
}

/// The tag of a type. The first half is random, made for this crate.
fn tag<T: Handle>() -> sys::napi_type_tag {
    sys::napi_type_tag { lower: 0x6b8c_41f2_a5d9_3e07, upper: T::TAG }
}

/// What Node calls, on the thread of the environment, when nothing refers to a handle any more.
unsafe extern "C" fn dropped<T: Handle>(_: sys::napi_env, data: *mut c_void, _: *mut c_void) {
    // SAFETY: `handle::<T>` made the box, and Node calls this once.
    let drop = || drop(unsafe { Box::from_raw(data.cast::<Rc<T>>()) });
    // A panic has nowhere to go.
    let _panicked = panic::catch_unwind(AssertUnwindSafe(drop));
}
