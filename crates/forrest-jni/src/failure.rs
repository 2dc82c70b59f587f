//! [`Failure`]: why a call failed, and the Java exception for it.

use forrest::ErrorKind;
use forrest_base::panic_text;
use jni::errors::{Error, ErrorPolicy};
use jni::strings::JNIString;
use jni::{Env, jni_str};
use std::any::Any;
use std::fmt;

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library's error.
    Store(forrest::Error),
    /// The object, named by its kind, is closed.
    Closed(&'static str),
    /// An argument has no meaning.
    Invalid(&'static str),
    /// The virtual machine refused a call.
    Machine(Error),
}

impl From<forrest::Error> for Failure {
    fn from(error: forrest::Error) -> Failure {
        Failure::Store(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Machine(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Store(error) => error.fmt(f),
            Failure::Closed(what) => write!(f, "the {what} is closed"),
            Failure::Invalid(message) => f.write_str(message),
            Failure::Machine(error) => error.fmt(f),
        }
    }
}

/// Throws a failure as the Java exception for it, and a panic as an `InternalError`. The call then returns the default
/// of its type, which Java never sees.
pub(crate) struct Throw;

impl<T: Default> ErrorPolicy<T, Failure> for Throw {
    type Captures<'local: 'method, 'method> = ();

    fn on_error<'local: 'method, 'method>(
        env: &mut Env<'local>,
        (): &mut (),
        failure: Failure,
    ) -> jni::errors::Result<T> {
        if env.exception_check() {
            return Ok(T::default());
        }
        let message = JNIString::new(failure.to_string());
        let class = match &failure {
            Failure::Store(error) if error.kind() == ErrorKind::InvalidArgument => {
                jni_str!("java/lang/IllegalArgumentException")
            }
            Failure::Store(_) => jni_str!("forrest/ForrestException"),
            Failure::Closed(_) => jni_str!("java/lang/IllegalStateException"),
            Failure::Invalid(_) => jni_str!("java/lang/IllegalArgumentException"),
            Failure::Machine(_) => jni_str!("java/lang/InternalError"),
        };
        thrown(env.throw_new(class, message))
    }

    fn on_panic<'local: 'method, 'method>(
        env: &mut Env<'local>,
        (): &mut (),
        payload: Box<dyn Any + Send + 'static>,
    ) -> jni::errors::Result<T> {
        if env.exception_check() {
            return Ok(T::default());
        }
        let text = panic_text(&*payload).unwrap_or("a panic");
        let message = JNIString::new(format!("a bug in forrest: {text}"));
        thrown(env.throw_new(jni_str!("java/lang/InternalError"), message))
    }
}

/// What a call that threw returns. To throw is what was asked for.
fn thrown<T: Default>(result: jni::errors::Result<()>) -> jni::errors::Result<T> {
    match result {
        Ok(()) | Err(Error::JavaException) => Ok(T::default()),
        Err(error) => Err(error),
    }
}
