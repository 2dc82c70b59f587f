//! [`Effect`]: what a change does.

use crate::value::Value;
use std::borrow::Cow;

/// What a change does to one key, decided from the value that the key has.
#[derive(Debug, Clone)]
pub enum Effect<'v> {
    /// Leave the key as it is.
    Keep,
    /// Map the key to these bytes, which are copied.
    Put(Cow<'v, [u8]>),
    /// Map the key to this value; a shared value is not copied.
    PutValue(Value),
    /// Remove the key.
    Remove,
}
