//! Node's C interface (Node-API 8), made safe: values, functions, handles of objects, and work on other threads.
//!
//! Guarantees: no panic crosses into Node. No value outlives the call that made it. Bytes and strings that come from
//! JavaScript are copied before a call returns, so no other thread reads memory that JavaScript may change. A handle
//! of another kind, or an object that was never a handle, is refused.
//!
//! All of the crate's unsafe code is below this module.

mod function;
mod handle;
mod value;
mod work;

pub(crate) use function::{Call, Method, export};
pub(crate) use handle::Handle;
pub(crate) use value::{Env, Value};
pub(crate) use work::{Answer, Work};
