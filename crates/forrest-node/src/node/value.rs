//! [`Env`] and [`Value`]: an environment of JavaScript, and the values in it.

use crate::failure::Failure;
use napi_sys as sys;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr;

/// Bytes of strings that are fetched without asking for their length first.
const SHORT: usize = 512;

/// The environment, while Node calls this crate on its thread. Its pointer makes it neither `Send` nor `Sync`.
#[derive(Clone, Copy)]
pub(crate) struct Env<'e> {
    pub(super) raw: sys::napi_env,
    call: PhantomData<&'e ()>,
}

/// A value of JavaScript.
#[derive(Clone, Copy)]
pub(crate) struct Value<'e> {
    pub(super) raw: sys::napi_value,
    env: Env<'e>,
}

/// Turns a status of Node into a result.
pub(super) fn check(status: sys::napi_status, what: &str) -> Result<(), Failure> {
    if status == sys::Status::napi_ok {
        return Ok(());
    }
    Err(Failure::new("LEVEL_ERROR", format!("Node refused to {what} (Node-API status {status})")))
}

impl<'e> Env<'e> {
    /// # Safety
    /// `raw` is the environment that Node has passed to the running callback, on its thread, and `'e` ends with the
    /// callback.
    pub(super) unsafe fn new(raw: sys::napi_env) -> Env<'e> {
        Env { raw, call: PhantomData }
    }

    /// Calls a function that makes a value.
    pub(super) fn made(
        self,
        what: &str,
        make: impl FnOnce(sys::napi_env, *mut sys::napi_value) -> sys::napi_status,
    ) -> Result<Value<'e>, Failure> {
        let mut raw = ptr::null_mut();
        check(make(self.raw, &raw mut raw), what)?;
        Ok(Value { raw, env: self })
    }

    /// # Safety
    /// `raw` is a value of this environment whose scope lasts for `'e`.
    pub(super) unsafe fn value(self, raw: sys::napi_value) -> Value<'e> {
        Value { raw, env: self }
    }

    pub(crate) fn undefined(self) -> Result<Value<'e>, Failure> {
        // SAFETY: the environment is valid for 'e, and the result is a place for a value.
        self.made("make undefined", |env, result| unsafe { sys::napi_get_undefined(env, result) })
    }

    pub(crate) fn boolean(self, truth: bool) -> Result<Value<'e>, Failure> {
        // SAFETY: as in `undefined`.
        self.made("make a boolean", |env, result| unsafe { sys::napi_get_boolean(env, truth, result) })
    }

    pub(crate) fn number(self, number: f64) -> Result<Value<'e>, Failure> {
        // SAFETY: as in `undefined`.
        self.made("make a number", |env, result| unsafe { sys::napi_create_double(env, number, result) })
    }

    /// A string. Bytes that are not UTF-8 become U+FFFD, as in Node's own decoder.
    pub(crate) fn string(self, text: &[u8]) -> Result<Value<'e>, Failure> {
        let length = isize::try_from(text.len()).unwrap_or(isize::MAX);
        // SAFETY: as in `undefined`; `text` has `length` bytes, which Node copies.
        self.made("make a string", |env, result| unsafe {
            sys::napi_create_string_utf8(env, text.as_ptr().cast(), length, result)
        })
    }

    /// A `Buffer` with a copy of `bytes`, in an array of its own.
    pub(crate) fn buffer(self, bytes: &[u8]) -> Result<Value<'e>, Failure> {
        // SAFETY: as in `undefined`; Node copies the bytes, and may leave out where to.
        self.made("make a buffer", |env, result| unsafe {
            sys::napi_create_buffer_copy(env, bytes.len(), bytes.as_ptr().cast(), ptr::null_mut(), result)
        })
    }

    /// An `Error` with a code.
    pub(crate) fn error(self, failure: &Failure) -> Result<Value<'e>, Failure> {
        let code = self.string(failure.code.as_bytes())?;
        let message = self.string(failure.message.as_bytes())?;
        let make = if failure.is_type_error { sys::napi_create_type_error } else { sys::napi_create_error };
        // SAFETY: as in `undefined`; both are strings of this environment.
        self.made("make an error", |env, result| unsafe { make(env, code.raw, message.raw, result) })
    }

    /// An empty object.
    pub(super) fn object(self) -> Result<Value<'e>, Failure> {
        // SAFETY: as in `undefined`.
        self.made("make an object", |env, result| unsafe { sys::napi_create_object(env, result) })
    }
}

impl<'e> Value<'e> {
    pub(super) fn env(self) -> Env<'e> {
        self.env
    }

    fn kind(self) -> Result<sys::napi_valuetype, Failure> {
        let mut kind = 0;
        // SAFETY: a value of its environment, and a place for the result.
        check(unsafe { sys::napi_typeof(self.env.raw, self.raw, &raw mut kind) }, "look at a value")?;
        Ok(kind)
    }

    /// Whether it is undefined or null.
    pub(crate) fn is_nullish(self) -> Result<bool, Failure> {
        Ok(matches!(self.kind()?, sys::ValueType::napi_undefined | sys::ValueType::napi_null))
    }

    pub(super) fn is_object(self) -> Result<bool, Failure> {
        Ok(self.kind()? == sys::ValueType::napi_object)
    }

    /// A whole number from 0 to `most`.
    pub(crate) fn whole(self, what: &str, most: f64) -> Result<u64, Failure> {
        let mut number = 0.0;
        // SAFETY: a value of its environment, and a place for the result; another type is refused by Node.
        let status = unsafe { sys::napi_get_value_double(self.env.raw, self.raw, &raw mut number) };
        let is_right =
            status == sys::Status::napi_ok && number.fract() == 0.0 && (0.0..=most).contains(&number);
        if !is_right {
            return Err(Failure::argument(format!("{what} must be a whole number from 0 to {most}")));
        }
        Ok(number as u64)
    }

    /// The bytes of a string in UTF-8, or of a view of an `ArrayBuffer`.
    pub(crate) fn bytes(self, what: &str) -> Result<Vec<u8>, Failure> {
        match self.kind()? {
            sys::ValueType::napi_string => self.text(),
            sys::ValueType::napi_object => match self.viewed()? {
                Some(bytes) => Ok(bytes),
                None => Err(Failure::argument(format!("{what} must be a string, Buffer or Uint8Array"))),
            },
            _ => Err(Failure::argument(format!("{what} must be a string, Buffer or Uint8Array"))),
        }
    }

    /// A string.
    pub(crate) fn string(self, what: &str) -> Result<String, Failure> {
        if self.kind()? != sys::ValueType::napi_string {
            return Err(Failure::argument(format!("{what} must be a string")));
        }
        String::from_utf8(self.text()?).map_err(|_| Failure::argument(format!("{what} must be well-formed")))
    }

    /// The bytes of a string, which this is. Lone surrogates become U+FFFD.
    fn text(self) -> Result<Vec<u8>, Failure> {
        let mut bytes = vec![0; SHORT];
        let mut length = self.copy_text(&mut bytes)?;
        // Node ends the text with a zero. It leaves out a character that does not fit, of at most four bytes.
        if length + 5 > SHORT {
            // SAFETY: without a buffer, Node only writes the length.
            let status = unsafe {
                sys::napi_get_value_string_utf8(self.env.raw, self.raw, ptr::null_mut(), 0, &raw mut length)
            };
            check(status, "measure a string")?;
            bytes = vec![0; length + 1];
            length = self.copy_text(&mut bytes)?;
        }
        bytes.truncate(length);
        Ok(bytes)
    }

    fn copy_text(self, into: &mut [u8]) -> Result<usize, Failure> {
        let mut length = 0;
        // SAFETY: Node writes at most `into.len()` bytes, with the zero at the end, and the length without it.
        let status = unsafe {
            sys::napi_get_value_string_utf8(
                self.env.raw,
                self.raw,
                into.as_mut_ptr().cast(),
                into.len(),
                &raw mut length,
            )
        };
        check(status, "read a string")?;
        Ok(length)
    }

    /// A copy of the bytes of a typed array or `DataView`; `None` if it is another object.
    fn viewed(self) -> Result<Option<Vec<u8>>, Failure> {
        let env = self.env.raw;
        let (mut is_array, mut is_view) = (false, false);
        // SAFETY: a value of its environment, and a place for the result.
        check(unsafe { sys::napi_is_typedarray(env, self.raw, &raw mut is_array) }, "look at an object")?;
        let (mut length, mut data) = (0, ptr::null_mut::<c_void>());
        if is_array {
            let mut kind = 0;
            // SAFETY: this is a typed array; places that are null are left out.
            let status = unsafe {
                sys::napi_get_typedarray_info(
                    env,
                    self.raw,
                    &raw mut kind,
                    &raw mut length,
                    &raw mut data,
                    ptr::null_mut(),
                    ptr::null_mut(),
                )
            };
            check(status, "read a typed array")?;
            // Node counts elements.
            length *= element_bytes(kind);
        } else {
            // SAFETY: as above.
            check(unsafe { sys::napi_is_dataview(env, self.raw, &raw mut is_view) }, "look at an object")?;
            if !is_view {
                return Ok(None);
            }
            // SAFETY: this is a DataView; places that are null are left out.
            let status = unsafe {
                sys::napi_get_dataview_info(
                    env,
                    self.raw,
                    &raw mut length,
                    &raw mut data,
                    ptr::null_mut(),
                    ptr::null_mut(),
                )
            };
            check(status, "read a DataView")?;
        }
        // An empty or detached array may have no memory.
        if length == 0 || data.is_null() {
            return Ok(Some(Vec::new()));
        }
        let mut bytes = Vec::with_capacity(length);
        // SAFETY: Node states that `length` bytes are at `data`, and no JavaScript of this thread runs until they are
        // copied. Those of a SharedArrayBuffer may change meanwhile; no reference to them is made.
        unsafe {
            ptr::copy_nonoverlapping(data.cast::<u8>(), bytes.as_mut_ptr(), length);
            bytes.set_len(length);
        }
        Ok(Some(bytes))
    }
}

/// Bytes of an element of a typed array.
fn element_bytes(kind: sys::napi_typedarray_type) -> usize {
    use sys::TypedarrayType as T;
    match kind {
        T::int16_array | T::uint16_array => 2,
        T::int32_array | T::uint32_array | T::float32_array => 4,
        T::float64_array | T::bigint64_array | T::biguint64_array => 8,
        // A kind that came after these must not be read beyond its end.
        _ => 1,
    }
}
