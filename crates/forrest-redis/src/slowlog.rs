//! [`SlowLog`]: the commands that took long, newest first, for `SLOWLOG`.
//!
//! It is bounded by entries and by bytes. An entry has the first arguments of a command, cut as Redis cuts them, and
//! never a password.

use std::collections::VecDeque;

/// Most arguments of an entry.
const ARGS_MAX: usize = 32;
/// Most bytes of one.
const ARG_BYTES_MAX: usize = 128;
/// Most bytes of all entries.
const BYTES_MAX: usize = 16 << 20;

/// A command that took long.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// One more than that of the entry before it.
    pub(crate) id: u64,
    /// When it ended, in seconds since 1970.
    pub(crate) time_s: u64,
    pub(crate) micros: u64,
    pub(crate) args: Vec<Vec<u8>>,
    pub(crate) address: String,
    /// The client's name.
    pub(crate) name: Vec<u8>,
}

impl Entry {
    /// Bytes that it takes, about.
    fn bytes(&self) -> usize {
        let args: usize = self.args.iter().map(|arg| size_of::<Vec<u8>>() + arg.len()).sum();
        size_of::<Entry>() + args + self.address.len() + self.name.len()
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct SlowLog {
    next: u64,
    bytes: usize,
    entries: VecDeque<Entry>,
}

impl SlowLog {
    /// Adds an entry, whose number it gets here. The oldest go if there are too many.
    pub(crate) fn push(&mut self, entry: Entry, entries_max: u64) {
        self.bytes += entry.bytes();
        self.entries.push_front(Entry { id: self.next, ..entry });
        self.next += 1;
        self.trim(entries_max);
    }

    pub(crate) fn trim(&mut self, entries_max: u64) {
        while self.entries.len() as u64 > entries_max || self.bytes > BYTES_MAX {
            let Some(oldest) = self.entries.pop_back() else { break };
            self.bytes -= oldest.bytes();
        }
    }

    /// Removes all. Numbers go on.
    pub(crate) fn clear(&mut self) {
        (self.bytes, self.entries) = (0, VecDeque::new());
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// From the newest on.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }
}

/// The arguments of a request as an entry has them.
pub(crate) fn cut(args: &[&[u8]]) -> Vec<Vec<u8>> {
    let kept = if args.len() > ARGS_MAX { ARGS_MAX - 1 } else { args.len() };
    let mut cut: Vec<Vec<u8>> = (0..kept)
        .map(|number| match args[number] {
            _ if is_secret(args, number) => b"(redacted)".to_vec(),
            arg if arg.len() <= ARG_BYTES_MAX => arg.to_vec(),
            arg => {
                let more = format!("... ({} more bytes)", arg.len() - ARG_BYTES_MAX);
                [&arg[..ARG_BYTES_MAX], more.as_bytes()].concat()
            }
        })
        .collect();
    if args.len() > kept {
        cut.push(format!("... ({} more arguments)", args.len() - kept).into_bytes());
    }
    cut
}

/// Whether an argument is a password, or next to one.
fn is_secret(args: &[&[u8]], number: usize) -> bool {
    let before = |word: &str, places: usize| {
        number > places && args[number - places].eq_ignore_ascii_case(word.as_bytes())
    };
    match args[0].to_ascii_lowercase().as_slice() {
        b"auth" => number > 0,
        b"hello" => before("auth", 1) || before("auth", 2),
        b"config" => before("requirepass", 1),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(args: Vec<Vec<u8>>) -> Entry {
        Entry { id: 0, time_s: 1, micros: 2, args, address: String::new(), name: Vec::new() }
    }

    fn cut_words(line: &str) -> String {
        let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let cut = cut(&args);
        String::from_utf8(cut.join(&b' ')).unwrap()
    }

    #[test]
    fn entries_and_bytes_have_limits() {
        let mut log = SlowLog::default();
        (0..5).for_each(|_| log.push(entry(vec![b"ping".to_vec()]), 3));
        assert_eq!(log.iter().map(|entry| entry.id).collect::<Vec<_>>(), [4, 3, 2]);
        log.trim(1);
        assert_eq!((log.len(), log.bytes), (1, log.entries[0].bytes()));
        log.clear();
        log.push(entry(Vec::new()), 0);
        assert_eq!((log.len(), log.bytes, log.next), (0, 0, 6));

        let large = || entry(vec![vec![b'x'; ARG_BYTES_MAX]; ARGS_MAX]);
        (0..10_000).for_each(|_| log.push(large(), u64::MAX));
        assert!(log.bytes <= BYTES_MAX && log.bytes + large().bytes() > BYTES_MAX, "{}", log.bytes);
        assert_eq!(log.bytes, log.len() * large().bytes());
    }

    #[test]
    fn arguments_are_cut() {
        let line = |args: usize| vec!["a"; args].join(" ");
        assert_eq!(cut_words(&line(32)), line(32));
        assert_eq!(cut_words(&line(33)), line(31) + " ... (2 more arguments)");
        let long = "x".repeat(ARG_BYTES_MAX);
        assert_eq!(cut_words(&long), long);
        assert_eq!(cut_words(&format!("{long}yz")), long + "... (2 more bytes)");
    }

    #[test]
    fn passwords_are_left_out() {
        for (line, expected) in [
            ("AUTH secret", "AUTH (redacted)"),
            ("auth default secret", "auth (redacted) (redacted)"),
            ("hello 3 auth default secret setname a", "hello 3 auth (redacted) (redacted) setname a"),
            ("config set timeout 1 RequirePass secret", "config set timeout 1 RequirePass (redacted)"),
            ("config get requirepass", "config get requirepass"),
            ("set auth 1", "set auth 1"),
        ] {
            assert_eq!(cut_words(line), expected);
        }
    }
}
