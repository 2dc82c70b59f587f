//! [`Failure`]: why a command did not succeed.

/// Why a command did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It ran and something failed; already printed.
    Failed,
    /// It could not run; to be printed.
    Broken(String),
    /// It was called wrongly; to be printed.
    Usage(String),
}

/// Refuses arguments where a command takes none.
pub(crate) fn no_arguments(arguments: &[String]) -> Result<(), Failure> {
    match arguments.first() {
        None => Ok(()),
        Some(one) => Err(Failure::Usage(format!("unexpected argument {one:?}"))),
    }
}
