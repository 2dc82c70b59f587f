//! [`Ran`]: the result of a run of operations, checked for plausibility.

use super::abi;
use super::error::{Error, Result};

const WHAT: &str = "do a run of operations";

/// The result of a run of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ran {
    /// These operations were done. If an atomic run was not applied, the numbers name the operation that
    /// prevented it: its index, and the offset where it begins. The only answer is that operation's.
    Done {
        /// Number of operations.
        ops: u32,
        /// Bytes of these operations; those of the whole run if nothing prevented it.
        ops_bytes: usize,
        /// Bytes of their answers.
        answers_bytes: usize,
    },
    /// Nothing was done, because the answers need more room: at least this many bytes.
    Wants(usize),
}

/// The argument of a run. Its addresses are valid as long as the two borrows.
///
/// # Errors
/// `E2BIG` if a length does not fit in the 32 bits of the argument.
pub(super) fn argument(ops: &[u8], answers: &mut [u8], is_atomic: bool) -> Result<abi::Run> {
    let length = |bytes: usize| u32::try_from(bytes).map_err(|_| Error::system(WHAT, libc::E2BIG));
    let (ops_bytes, room) = (length(ops.len())?, answers.len().min(u32::MAX as usize));
    Ok(abi::Run {
        ops: ops.as_ptr().expose_provenance() as u64,
        answers: answers.as_mut_ptr().expose_provenance() as u64,
        ops_bytes,
        answers_bytes: length(room)?,
        flags: if is_atomic { abi::RUN_ATOMIC } else { 0 },
        ..abi::Run::default()
    })
}

/// Checks the argument after the call. `number` is the error number, or 0.
pub(super) fn judge(before: &abi::Run, after: &abi::Run, number: i32) -> Result<Ran> {
    match number {
        0 if after.done_bytes > before.ops_bytes => {
            Err(Error::nonsense(WHAT, "more operations were done than requested"))
        }
        0 if after.answers_bytes > before.answers_bytes => {
            Err(Error::nonsense(WHAT, "it is longer than its buffer"))
        }
        0 => Ok(Ran::Done {
            ops: after.done,
            ops_bytes: after.done_bytes as usize,
            answers_bytes: after.answers_bytes as usize,
        }),
        libc::EMSGSIZE if after.answers_bytes <= before.answers_bytes => {
            Err(Error::nonsense(WHAT, "it asks for no more room than it had"))
        }
        libc::EMSGSIZE => Ok(Ran::Wants(after.answers_bytes as usize)),
        other => Err(Error::system(WHAT, other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result for an argument with 100 bytes of operations and room for 200.
    fn judged(number: i32, done: u32, done_bytes: u32, answers_bytes: u32) -> Result<Ran> {
        let before = argument(&[0; 100], &mut [0; 200], false).expect("it is short");
        judge(&before, &abi::Run { done, done_bytes, answers_bytes, ..before }, number)
    }

    #[test]
    fn answers_must_be_possible() {
        assert_eq!(judged(0, 2, 100, 200), Ok(Ran::Done { ops: 2, ops_bytes: 100, answers_bytes: 200 }));
        assert_eq!(judged(0, 0, 0, 0), Ok(Ran::Done { ops: 0, ops_bytes: 0, answers_bytes: 0 }));
        assert!(judged(0, 2, 101, 0).is_err());
        assert!(judged(0, 2, 100, 201).is_err());
        assert!(judged(0, 2, u32::MAX, u32::MAX).is_err());
        assert_eq!(judged(libc::EMSGSIZE, 0, 0, 201), Ok(Ran::Wants(201)));
        // Retrying with the same room would never end.
        assert!(judged(libc::EMSGSIZE, 0, 0, 200).is_err());
        assert_eq!(judged(libc::ENOSPC, 0, 0, 0).unwrap_err().number(), Some(libc::ENOSPC));
    }

    #[test]
    fn arguments_say_what_was_lent() {
        let (ops, mut answers) = ([1_u8; 24], [0_u8; 48]);
        let run = argument(&ops, &mut answers, true).expect("it is short");
        assert_eq!((run.ops_bytes, run.answers_bytes, run.flags), (24, 48, abi::RUN_ATOMIC));
        assert_eq!((run.ops, run.answers), (ops.as_ptr().addr() as u64, answers.as_ptr().addr() as u64));
        assert_eq!((run.done, run.done_bytes, run.reserved), (0, 0, 0));
    }
}
