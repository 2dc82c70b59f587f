//! [`Command`]: what clients ask a group to do. [`Response`]: what came of it.
//!
//! A command is one run of bytes from its client to every log, which nothing on the way takes apart: a flag for a
//! session (1), the client (8) and serial number (8) if there is one, and the operations. Each operation is its kind
//! (1) and its parts, each a length (4) and bytes: set (1) key, value; delete (2) key; delete range (3) start, a flag
//! for an end, end; compare-and-swap (4) key, a flag for the expected value, that, a flag for the new one, that.

use crate::bytes::{self, Bytes, corrupt};
use forrest::{Error, MAX_KEY_BYTES, Op, Result, Value, WriteBatch};
use std::fmt;

/// The most bytes of a command, to which its session does not count: 16 MiB.
pub const MAX_COMMAND_BYTES: usize = 16 << 20;
/// The most operations of a command: a million. So a batch of the store has room for a command beside what else it has.
pub const MAX_COMMAND_OPS: usize = 1_000_000;

/// Bytes of a session: client and serial number.
const SESSION_BYTES: usize = 16;
/// The serial number that ends a session.
pub(crate) const END: u64 = u64::MAX;

const SET: u8 = 1;
const DELETE: u8 = 2;
const DELETE_RANGE: u8 = 3;
const COMPARE_AND_SWAP: u8 = 4;

/// Changes that a group applies at one instant, or not at all. A clone shares the bytes.
///
/// It is made from a [`WriteBatch`], with operations on the default keyspace: sets, deletes, range deletes and
/// compare-and-swaps. If a comparison fails, nothing of the command is applied.
///
/// ```
/// use forrest::WriteBatch;
/// use forrest_raft::Command;
///
/// let mut batch = WriteBatch::new();
/// batch.set("oak", "Quercus").delete_range("x"..).compare_and_swap("elm", None, Some(b"Ulmus"));
/// let command = Command::try_from(&batch)?;
/// assert_eq!(command.ops().count(), 3);
/// # Ok::<(), forrest::Error>(())
/// ```
#[derive(Clone)]
pub struct Command {
    /// The bytes of the command stand at the end of it.
    value: Value,
    start: usize,
}

impl Command {
    /// One operation.
    ///
    /// # Errors
    /// As [`try_from`](Command::try_from).
    pub fn one(op: Op<impl AsRef<[u8]>>) -> Result<Command> {
        Command::encode(std::iter::once(op.borrowed()))
    }

    /// The same command as the change of a client with this serial number. A client numbers its commands upwards, and
    /// sends one only after it has the response to the one before. Then it may repeat a command whose response was
    /// lost: it is applied once, and each repetition gets the first response. A group keeps a record for each client
    /// until [`end_session`](Command::end_session).
    ///
    /// # Errors
    /// `InvalidArgument` for the serial number `u64::MAX`, which ends a session.
    ///
    /// ```
    /// use forrest::Op;
    /// use forrest_raft::Command;
    ///
    /// let command = Command::one(Op::Set { key: "oak", value: "Quercus" })?.with_session(7, 1)?;
    /// assert_eq!(command.session(), Some((7, 1)));
    /// # Ok::<(), forrest::Error>(())
    /// ```
    pub fn with_session(&self, client: u64, serial: u64) -> Result<Command> {
        if serial == END {
            return Err(Error::invalid(format!(
                "a change of client {client} with the serial number {END}: it ends a session"
            )));
        }
        Ok(self.of_session(client, serial))
    }

    /// The same for a serial number that may end the session.
    pub(crate) fn of_session(&self, client: u64, serial: u64) -> Command {
        let mut bytes = Vec::with_capacity(1 + SESSION_BYTES + self.as_bytes().len());
        bytes.push(1);
        bytes.extend_from_slice(&client.to_be_bytes());
        bytes.extend_from_slice(&serial.to_be_bytes());
        bytes.extend_from_slice(self.op_bytes());
        Command { value: bytes.into(), start: 0 }
    }

    /// A command that makes a group forget a client. A command of this client after it counts as its first.
    pub fn end_session(client: u64) -> Command {
        let command = Command { value: Value::from(&[0][..]), start: 0 };
        command.of_session(client, END)
    }

    /// The command that has these bytes, for a transport.
    ///
    /// # Errors
    /// `Corrupt` if they are not those of a command, `Limit` if a key or the whole is too long or has too many
    /// operations, `InvalidArgument` if it ends a session and has operations.
    pub fn from_bytes(bytes: &[u8]) -> Result<Command> {
        check_length(bytes)?;
        let command = Command { value: Value::from(bytes), start: 0 };
        command.check()?;
        Ok(command)
    }

    /// The bytes, for a transport.
    pub fn as_bytes(&self) -> &[u8] {
        &self.value[self.start..]
    }

    /// The command at the end of an entry's bytes. It is not checked.
    pub(crate) fn in_value(value: Value, start: usize) -> Command {
        Command { value, start }
    }

    /// The client and the serial number, if it has them.
    pub fn session(&self) -> Option<(u64, u64)> {
        let (flag, rest) = self.as_bytes().split_first()?;
        let mut rest = Bytes(rest);
        if *flag == 1 { Some((rest.u64().ok()?, rest.u64().ok()?)) } else { None }
    }

    fn op_bytes(&self) -> &[u8] {
        let bytes = self.as_bytes();
        let start = if bytes.first() == Some(&1) { 17 } else { 1 };
        bytes.get(start..).unwrap_or_default()
    }

    /// The operations in order. Ends with an error where the bytes are not those of a command.
    pub fn ops(&self) -> impl Iterator<Item = Result<Op<&[u8]>>> {
        let mut rest = Bytes(self.op_bytes());
        std::iter::from_fn(move || {
            if rest.0.is_empty() {
                return None;
            }
            let op = next_op(&mut rest);
            if op.is_err() {
                rest.0 = &[];
            }
            Some(op)
        })
    }

    /// Whether it can be applied, which depends on its bytes alone: all nodes agree.
    pub(crate) fn check(&self) -> Result<()> {
        let bytes = self.as_bytes();
        check_length(bytes)?;
        match (bytes.first(), self.session()) {
            (Some(0), _) => {}
            (Some(1), Some((_, END))) if !self.op_bytes().is_empty() => {
                return Err(Error::invalid("a command that ends a session has operations"));
            }
            (Some(1), Some(_)) => {}
            _ => return Err(corrupt("a command has no flag for a session, or none of its session")),
        }
        let mut count = 0;
        for op in self.ops() {
            check_op(&op?).map_err(|error| error.at_op(count))?;
            count += 1;
        }
        check_count(count)
    }

    /// Whether it compares, and so may fail as a whole.
    pub(crate) fn has_conditions(&self) -> bool {
        self.ops().any(|op| matches!(op, Ok(Op::CompareAndSwap { .. })))
    }

    fn encode<'o>(ops: impl Iterator<Item = Op<&'o [u8]>>) -> Result<Command> {
        let (mut bytes, mut count) = (vec![0], 0);
        for op in ops {
            check_op(&op).and_then(|()| put_op(&mut bytes, op)).map_err(|error| error.at_op(count))?;
            count += 1;
        }
        check_count(count)?;
        check_length(&bytes)?;
        Ok(Command { value: bytes.into(), start: 0 })
    }
}

/// # Errors
/// `Unsupported` for operations of other kinds, and on other keyspaces than the default one; `Limit` for a key that is
/// too long, and for more than [`MAX_COMMAND_BYTES`] or [`MAX_COMMAND_OPS`].
impl TryFrom<&WriteBatch> for Command {
    type Error = Error;

    fn try_from(batch: &WriteBatch) -> Result<Command> {
        if batch.ops().any(|(keyspace, _)| keyspace.is_some()) {
            return Err(Error::unsupported("a command on a keyspace: a group has the default one only"));
        }
        Command::encode(batch.ops().map(|(_, op)| op))
    }
}

fn check_length(bytes: &[u8]) -> Result<()> {
    let session = if bytes.first() == Some(&1) { SESSION_BYTES } else { 0 };
    let length = bytes.len().saturating_sub(session);
    if length <= MAX_COMMAND_BYTES {
        return Ok(());
    }
    Err(Error::limit("command", "bytes", length, MAX_COMMAND_BYTES))
}

fn check_count(ops: usize) -> Result<()> {
    if ops <= MAX_COMMAND_OPS {
        return Ok(());
    }
    Err(Error::limit("command", "operations", ops, MAX_COMMAND_OPS))
}

fn check_op(op: &Op<&[u8]>) -> Result<()> {
    let check_key = |key: &[u8]| {
        let is_short = key.len() <= MAX_KEY_BYTES;
        if is_short { Ok(()) } else { Err(Error::limit("key", "bytes", key.len(), MAX_KEY_BYTES)) }
    };
    match op {
        Op::Set { key, .. } | Op::Delete { key } | Op::CompareAndSwap { key, .. } => check_key(key),
        // The ends of a range are no keys: longer ones are shortened to what they mean.
        Op::DeleteRange { start, end } => {
            check_key(start)?;
            end.map_or(Ok(()), check_key)
        }
        other => Err(Error::unsupported(format!("\"{other}\" in a command of a group"))),
    }
}

fn put_part(bytes: &mut Vec<u8>, part: &[u8]) -> Result<()> {
    if part.len() > MAX_COMMAND_BYTES {
        return Err(Error::limit("part of a command", "bytes", part.len(), MAX_COMMAND_BYTES));
    }
    bytes::put_part(bytes, part);
    Ok(())
}

fn put_optional(bytes: &mut Vec<u8>, part: Option<&[u8]>) -> Result<()> {
    bytes.push(u8::from(part.is_some()));
    part.map_or(Ok(()), |part| put_part(bytes, part))
}

fn put_op(bytes: &mut Vec<u8>, op: Op<&[u8]>) -> Result<()> {
    match op {
        Op::Set { key, value } => {
            bytes.push(SET);
            put_part(bytes, key)?;
            put_part(bytes, value)
        }
        Op::Delete { key } => {
            bytes.push(DELETE);
            put_part(bytes, key)
        }
        Op::DeleteRange { start, end } => {
            bytes.push(DELETE_RANGE);
            put_part(bytes, start)?;
            put_optional(bytes, end)
        }
        Op::CompareAndSwap { key, expected, new } => {
            bytes.push(COMPARE_AND_SWAP);
            put_part(bytes, key)?;
            put_optional(bytes, expected)?;
            put_optional(bytes, new)
        }
        other => Err(Error::unsupported(format!("\"{other}\" in a command of a group"))),
    }
}

fn next_optional<'b>(rest: &mut Bytes<'b>) -> Result<Option<&'b [u8]>> {
    if rest.flag()? { rest.part().map(Some) } else { Ok(None) }
}

fn next_op<'b>(rest: &mut Bytes<'b>) -> Result<Op<&'b [u8]>> {
    Ok(match rest.u8()? {
        SET => Op::Set { key: rest.part()?, value: rest.part()? },
        DELETE => Op::Delete { key: rest.part()? },
        DELETE_RANGE => Op::DeleteRange { start: rest.part()?, end: next_optional(rest)? },
        COMPARE_AND_SWAP => Op::CompareAndSwap {
            key: rest.part()?,
            expected: next_optional(rest)?,
            new: next_optional(rest)?,
        },
        other => return Err(corrupt(format!("operation of the unknown kind {other} in a command"))),
    })
}

impl PartialEq for Command {
    fn eq(&self, other: &Command) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Command {}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Command({self})")
    }
}

/// The operations in the form of lines, separated by semicolons.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((client, serial)) = self.session() {
            write!(f, "client {client}, serial {serial}: ")?;
        }
        for (at, op) in self.ops().enumerate() {
            f.write_str(if at == 0 { "" } else { "; " })?;
            match op {
                Ok(op) => write!(f, "{op}")?,
                Err(error) => write!(f, "({error})")?,
            }
        }
        Ok(())
    }
}

/// What came of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Response {
    /// Everything of the command was applied. So it is for entries without a command.
    Applied,
    /// A comparison failed, and nothing was applied.
    Mismatch {
        /// The number of the operation in its command, from 0.
        op: u32,
        /// The value that the key had; `None` if it was absent.
        found: Option<Vec<u8>>,
    },
    /// The command is malformed or beyond a limit, and nothing was applied. Every node refuses it in the same way.
    Refused(String),
    /// The client has sent a command with a greater serial number before, so that this one is a late repetition.
    /// Nothing was applied now.
    Stale {
        /// The greatest serial number.
        last: u64,
    },
}

const APPLIED: u8 = 0;
const MISMATCH: u8 = 1;
const REFUSED: u8 = 2;

impl Response {
    /// The bytes that a session keeps.
    pub(crate) fn put(&self, bytes: &mut Vec<u8>) {
        match self {
            Response::Applied | Response::Stale { .. } => bytes.push(APPLIED),
            Response::Mismatch { op, found } => {
                bytes.push(MISMATCH);
                bytes.extend_from_slice(&op.to_be_bytes());
                bytes.push(u8::from(found.is_some()));
                bytes.extend_from_slice(found.as_deref().unwrap_or_default());
            }
            Response::Refused(why) => {
                bytes.push(REFUSED);
                bytes.extend_from_slice(why.as_bytes());
            }
        }
    }

    pub(crate) fn of(bytes: &[u8]) -> Result<Response> {
        let mut rest = Bytes(bytes);
        match rest.u8()? {
            APPLIED => rest.end().map(|()| Response::Applied),
            MISMATCH => {
                let op = rest.u32()?;
                let found = rest.flag()?.then(|| rest.0.to_vec());
                Ok(Response::Mismatch { op, found })
            }
            REFUSED => Ok(Response::Refused(String::from_utf8_lossy(rest.0).into_owned())),
            other => Err(corrupt(format!("response of the unknown kind {other}"))),
        }
    }
}

#[cfg(feature = "serde")]
mod with_serde {
    use super::Command;
    use serde::de::{Error, SeqAccess, Visitor};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::fmt;

    /// As bytes.
    impl Serialize for Command {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(self.as_bytes())
        }
    }

    struct Checked;

    impl<'de> Visitor<'de> for Checked {
        type Value = Command;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the bytes of a command")
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Command, E> {
            Command::from_bytes(bytes).map_err(E::custom)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Command, A::Error> {
            let mut bytes = Vec::new();
            while let Some(byte) = sequence.next_element()? {
                bytes.push(byte);
            }
            Command::from_bytes(&bytes).map_err(A::Error::custom)
        }
    }

    impl<'de> Deserialize<'de> for Command {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Command, D::Error> {
            deserializer.deserialize_bytes(Checked)
        }
    }
}
