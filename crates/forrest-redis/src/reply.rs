//! Replies: appended to the output of a connection, in the version of the protocol that it has chosen.
//!
//! A reply has a limit. What is longer is not sent: the command fails with an error that names the limit, and the
//! connection goes on.

use crate::fault::Fault;
use crate::number;

/// Where replies are written to.
pub(crate) struct Reply<'o> {
    out: &'o mut Vec<u8>,
    /// Version 3 of the protocol.
    pub(crate) is_3: bool,
    /// Where the reply begins.
    start: usize,
    bytes_max: usize,
    is_over: bool,
}

impl<'o> Reply<'o> {
    pub(crate) fn new(out: &'o mut Vec<u8>, is_3: bool, bytes_max: usize) -> Reply<'o> {
        let start = out.len();
        Reply { out, is_3, start, bytes_max, is_over: false }
    }

    /// Bytes of the reply so far.
    pub(crate) fn bytes(&self) -> usize {
        self.out.len() - self.start
    }

    /// True once the limit was passed: what is written is dropped, so that a command need not go on.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Notes that what belongs to the reply was too long.
    pub(crate) fn go_over(&mut self) {
        self.is_over = true;
    }

    /// Room for some more bytes, or not.
    fn has_room(&mut self, bytes: usize) -> bool {
        if self.bytes() + bytes > self.bytes_max {
            self.is_over = true;
        }
        !self.is_over
    }

    /// Fails if the limit was passed. What the command has changed is not applied then: nobody would get what it took.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        if !self.is_over {
            return Ok(());
        }
        let most = self.bytes_max;
        Err(Fault::new(format!(
            "ERR the reply has more than {most} bytes (--reply-bytes); ask for less at a time"
        )))
    }

    /// Replaces the reply so far by an error, whose first word is its code.
    pub(crate) fn fail(&mut self, message: &str) {
        self.is_over = false;
        self.out.truncate(self.start);
        self.bytes_max = usize::MAX;
        self.error(message);
    }

    /// An error. Line ends in it become spaces.
    pub(crate) fn error(&mut self, message: &str) {
        if self.has_room(message.len() + 3) {
            self.out.push(b'-');
            self.out.extend(message.bytes().map(|byte| if byte < b' ' { b' ' } else { byte }));
            self.out.extend_from_slice(b"\r\n");
        }
    }

    pub(crate) fn ok(&mut self) {
        self.simple("OK");
    }

    /// A short text without line ends.
    pub(crate) fn simple(&mut self, text: &str) {
        if self.has_room(text.len() + 3) {
            self.out.push(b'+');
            self.out.extend_from_slice(text.as_bytes());
            self.out.extend_from_slice(b"\r\n");
        }
    }

    fn header(&mut self, mark: u8, number: i64) {
        if self.has_room(24) {
            self.out.push(mark);
            number::push_integer(self.out, number);
            self.out.extend_from_slice(b"\r\n");
        }
    }

    pub(crate) fn integer(&mut self, number: i64) {
        self.header(b':', number);
    }

    pub(crate) fn count(&mut self, count: u64) {
        self.integer(i64::try_from(count).unwrap_or(i64::MAX));
    }

    pub(crate) fn bool(&mut self, value: bool) {
        self.integer(i64::from(value));
    }

    pub(crate) fn bulk(&mut self, bytes: &[u8]) {
        if self.has_room(bytes.len() + 24) {
            self.header(b'$', bytes.len() as i64);
            self.out.extend_from_slice(bytes);
            self.out.extend_from_slice(b"\r\n");
        }
    }

    /// Text with a format, which version 3 can say.
    pub(crate) fn verbatim(&mut self, text: &str) {
        if !self.is_3 {
            self.bulk(text.as_bytes());
        } else if self.has_room(text.len() + 28) {
            self.header(b'=', text.len() as i64 + 4);
            self.out.extend_from_slice(b"txt:");
            self.out.extend_from_slice(text.as_bytes());
            self.out.extend_from_slice(b"\r\n");
        }
    }

    pub(crate) fn null(&mut self) {
        let null: &[u8] = if self.is_3 { b"_\r\n" } else { b"$-1\r\n" };
        if self.has_room(null.len()) {
            self.out.extend_from_slice(null);
        }
    }

    pub(crate) fn null_array(&mut self) {
        let null: &[u8] = if self.is_3 { b"_\r\n" } else { b"*-1\r\n" };
        if self.has_room(null.len()) {
            self.out.extend_from_slice(null);
        }
    }

    pub(crate) fn bulk_or_null(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    pub(crate) fn double(&mut self, number: f64) {
        let text = number::double_text(number);
        if !self.is_3 {
            self.bulk(text.as_bytes());
        } else if self.has_room(text.len() + 3) {
            self.out.push(b',');
            self.out.extend_from_slice(text.as_bytes());
            self.out.extend_from_slice(b"\r\n");
        }
    }

    pub(crate) fn array(&mut self, len: usize) {
        self.header(b'*', len as i64);
    }

    pub(crate) fn set(&mut self, len: usize) {
        self.header(if self.is_3 { b'~' } else { b'*' }, len as i64);
    }

    /// A map of this number of pairs.
    pub(crate) fn map(&mut self, pairs: usize) {
        match self.is_3 {
            true => self.header(b'%', pairs as i64),
            false => self.header(b'*', pairs as i64 * 2),
        }
    }

    /// Bytes that are replies already.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        if self.has_room(bytes.len()) {
            self.out.extend_from_slice(bytes);
        }
    }

    /// An array of as many items as `write` returns. Its head is put before them afterwards.
    pub(crate) fn sequence<E>(&mut self, write: impl FnOnce(&mut Self) -> Result<usize, E>) -> Result<(), E> {
        let from = self.out.len();
        let items = write(self)?;
        let end = self.out.len();
        self.array(items);
        if !self.is_over {
            let head = self.out.len() - end;
            self.out[from..].rotate_right(head);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(is_3: bool, write: impl FnOnce(&mut Reply)) -> String {
        let mut out = Vec::new();
        let mut reply = Reply::new(&mut out, is_3, 1 << 20);
        write(&mut reply);
        assert_eq!(reply.check(), Ok(()));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn both_versions_are_written() {
        let all = |reply: &mut Reply| {
            reply.ok();
            reply.integer(-7);
            reply.bulk(b"a\r\nb");
            reply.null();
            reply.null_array();
            reply.double(1.5);
            reply.map(1);
            reply.set(2);
            reply.verbatim("hi");
        };
        let two = "+OK\r\n:-7\r\n$4\r\na\r\nb\r\n$-1\r\n*-1\r\n$3\r\n1.5\r\n*2\r\n*2\r\n$2\r\nhi\r\n";
        assert_eq!(written(false, all), two);
        let three = "+OK\r\n:-7\r\n$4\r\na\r\nb\r\n_\r\n_\r\n,1.5\r\n%1\r\n~2\r\n=6\r\ntxt:hi\r\n";
        assert_eq!(written(true, all), three);
        assert_eq!(written(false, |reply| reply.error("ERR a\r\nb")), "-ERR a  b\r\n");
    }

    #[test]
    fn a_sequence_counts_itself() {
        let text = written(false, |reply| {
            reply.ok();
            reply
                .sequence(|reply| {
                    reply.integer(1);
                    reply.integer(2);
                    Ok::<_, ()>(2)
                })
                .unwrap();
            reply.ok();
        });
        assert_eq!(text, "+OK\r\n*2\r\n:1\r\n:2\r\n+OK\r\n");
    }

    #[test]
    fn a_reply_that_is_too_long_becomes_an_error() {
        let mut out = b"+OK\r\n".to_vec();
        let mut reply = Reply::new(&mut out, false, 100);
        reply.bulk(&[b'x'; 76]);
        assert!(!reply.is_over());
        reply.bulk(&[]);
        assert!(reply.is_over());
        let why = reply.check().unwrap_err();
        reply.fail(&why.0);
        assert!(out.starts_with(b"+OK\r\n-ERR the reply has more than 100 bytes"), "{}", out.escape_ascii());
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 2);
    }
}
