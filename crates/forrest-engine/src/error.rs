//! [`Error`]: failures, classified by what the caller should do.
//!
//! Every failure has an [`ErrorKind`], and a message that names the object, the limit and the length, or the
//! file and the offset. Absence is not an error, and neither is a failed comparison: both are values. A
//! broken invariant of the library panics; bad input never does.

use std::fmt;

/// The result of everything in this crate that can fail.
///
/// ```
/// # let db = forrest::Db::open("memory:")?;
/// fn visits(db: &forrest::Db) -> forrest::Result<i64> {
///     db.add("visits", 0)
/// }
/// assert_eq!(visits(&db)?, 0);
/// # Ok::<(), forrest::Error>(())
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kinds of errors, by what the caller should do.
///
/// ```
/// # let db = forrest::Db::open("memory:")?;
/// use forrest::ErrorKind;
/// db.set("name", "Ada")?;
/// match db.add("name", 1) {
///     Ok(_) => unreachable!(),
///     Err(error) if error.kind() == ErrorKind::InvalidArgument => println!("no counter: {error}"),
///     Err(error) => return Err(error),
/// }
/// # Ok::<(), forrest::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused a read, a write or another call. Look at the source; the store is
    /// unchanged.
    Io,
    /// Stored bytes are damaged; the message names file and offset. Restore them from elsewhere.
    Corrupt,
    /// The call is invalid: a malformed name or line, a counter that is not 8 bytes long, a handle to a
    /// dropped keyspace. Change the call.
    InvalidArgument,
    /// A key, value, name or batch exceeds a limit. Make it smaller.
    Limit,
    /// The capacity, the memory, the disk or the file descriptors are used up. Delete something, or raise the
    /// limit.
    OutOfSpace,
    /// Another process or handle holds the resource. Try again later.
    Busy,
    /// This home does not have the feature (see `Db::capabilities`); use another home. Or the files of a
    /// store on disk have a format version that this build does not read; the message names the file and both
    /// versions. Nothing is damaged or changed: open the store with the release that wrote it.
    Unsupported,
    /// An earlier failure made the store refuse all writes. Open it again.
    Stopped,
    /// A comparison in a batch did not hold, and nothing of the batch was applied; [`Error::op`] returns its
    /// index. Read and try again, or use `Db::try_write`, which returns this as a value.
    ConditionFailed,
    /// The store does not have the changes any more that `Db::changes` is to go on with. Start from a snapshot, and go
    /// on with the changes after it.
    Gone,
}

impl ErrorKind {
    /// The kind in words, as at the beginning of messages.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Io => "input/output",
            ErrorKind::Corrupt => "corrupt",
            ErrorKind::InvalidArgument => "invalid argument",
            ErrorKind::Limit => "limit exceeded",
            ErrorKind::OutOfSpace => "out of space",
            ErrorKind::Busy => "busy",
            ErrorKind::Unsupported => "unsupported",
            ErrorKind::Stopped => "stopped",
            ErrorKind::ConditionFailed => "condition failed",
            ErrorKind::Gone => "gone",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error. It is one pointer in size, so that results stay small.
///
/// ```
/// use forrest::{Db, ErrorKind, MAX_KEY_BYTES};
///
/// let db = Db::open("memory:")?;
/// let error = db.set(vec![0; MAX_KEY_BYTES + 1], "value").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Limit);
/// assert_eq!(error.to_string(), "limit exceeded: key of 65536 bytes; at most 65535 bytes are allowed");
/// # Ok::<(), forrest::Error>(())
/// ```
pub struct Error(Box<ErrorDetails>);

struct ErrorDetails {
    kind: ErrorKind,
    message: String,
    op: Option<usize>,
}

impl Error {
    /// An error of a kind, with its message: what failed, where, why, what to do.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error::boxed(kind, message.into())
    }

    /// The same. There is one of it for all types of messages.
    #[cold]
    #[inline(never)]
    fn boxed(kind: ErrorKind, message: String) -> Error {
        Error(Box::new(ErrorDetails { kind, message, op: None }))
    }

    /// An `InvalidArgument` error.
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::InvalidArgument, message)
    }

    /// An `Unsupported` error.
    pub fn unsupported(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Unsupported, message)
    }

    /// `length` units of `what` where at most `limit` are allowed.
    pub fn limit(what: &str, unit: &str, length: usize, limit: usize) -> Error {
        Error::new(ErrorKind::Limit, format!("{what} of {length} {unit}; at most {limit} {unit} are allowed"))
    }

    /// The error of the library within one of a stream, such as a [`BlobWriter`](https://docs.rs/forrest-db) returns;
    /// another one is of the kind `Io`.
    ///
    /// ```
    /// use forrest::{Error, ErrorKind};
    /// let error = std::io::Error::other(Error::invalid("no such tree"));
    /// assert_eq!(Error::of_stream(error).kind(), ErrorKind::InvalidArgument);
    /// let error = std::io::ErrorKind::TimedOut.into();
    /// assert_eq!(Error::of_stream(error).kind(), ErrorKind::Io);
    /// ```
    pub fn of_stream(error: std::io::Error) -> Error {
        error.downcast().unwrap_or_else(|error| Error::new(ErrorKind::Io, error.to_string()))
    }

    /// The same error, for an operation of a batch.
    pub fn at_op(mut self, op: usize) -> Error {
        self.0.op = Some(op);
        self
    }

    /// The message without the kind and the operation.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The kind of this error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// For a batch: the index of the operation that failed, counted from 0. Nothing of the batch was applied.
    ///
    /// ```
    /// # let db = forrest::Db::open("memory:")?;
    /// let mut batch = forrest::WriteBatch::new();
    /// batch.set("name", "not a counter");
    /// batch.add("name", 1);
    /// assert_eq!(db.write(batch).unwrap_err().op(), Some(1));
    /// assert_eq!(db.get("name")?, None);
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn op(&self) -> Option<usize> {
        self.0.op
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.kind, self.0.message)?;
        match self.0.op {
            Some(op) => write!(f, " (operation {op} of the batch; nothing of it was applied)"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("op", &self.0.op)
            .finish()
    }
}

impl std::error::Error for Error {}

/// The error for users of a store that an error of the index becomes.
pub fn of_index(error: forrest_index::Error) -> Error {
    use forrest_index::{Error as E, MAX_KEY_BYTES, MAX_VALUE_BYTES};
    match error {
        E::KeyTooLong(length) => Error::limit("key", "bytes", length, MAX_KEY_BYTES),
        E::ValueTooLong(length) => Error::limit("value", "bytes", length, MAX_VALUE_BYTES),
        E::CapacityTooLarge(bytes) => {
            Error::limit("capacity", "bytes", bytes, forrest_index::MAX_CAPACITY_BYTES)
        }
        other => Error::new(ErrorKind::OutOfSpace, other.to_string()),
    }
}
