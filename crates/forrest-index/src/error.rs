//! [`Error`], and the limits of keys and values.

/// Longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 65_535;
/// Longest value, in bytes.
pub const MAX_VALUE_BYTES: usize = u32::MAX as usize;

/// Largest capacity of an index, in bytes: nodes are numbered by 32 bits, in units of 64 bytes.
pub const MAX_CAPACITY_BYTES: usize = (1 << 38) - (2 << 20);

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A key longer than [`MAX_KEY_BYTES`]; carries its length.
    KeyTooLong(usize),
    /// A value longer than [`MAX_VALUE_BYTES`]; carries its length.
    ValueTooLong(usize),
    /// The operating system refused memory, or the capacity is used up; carries the requested bytes.
    OutOfMemory(usize),
    /// A requested capacity of more than [`MAX_CAPACITY_BYTES`]; carries it.
    CapacityTooLarge(usize),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::KeyTooLong(n) => write!(f, "key of {n} bytes exceeds the limit of {MAX_KEY_BYTES} bytes"),
            Error::ValueTooLong(n) => {
                write!(f, "value of {n} bytes exceeds the limit of {MAX_VALUE_BYTES} bytes")
            }
            Error::CapacityTooLarge(n) => write!(
                f,
                "a capacity of {n} bytes exceeds the limit of {MAX_CAPACITY_BYTES} bytes; request less, or none"
            ),
            Error::OutOfMemory(n) => write!(f, "no memory for {n} more bytes"),
        }
    }
}

impl std::error::Error for Error {}
