//! What YCSB's basic binding prints while it loads: `INSERT usertable user123 [ field0=... field1=... ]`. Each such
//! line is a pair; the value is what stands between the brackets. All other lines are passed over and counted.

use super::input::Input;
use super::pair::{Pair, Source};
use std::io;
use std::path::Path;

/// What the line of a pair begins with.
pub(crate) const INSERT: &[u8] = b"INSERT ";

/// Reads a trace.
pub(crate) struct Reader {
    input: Input,
    line: Vec<u8>,
    others: u64,
}

impl Reader {
    /// Begins to read.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Reader { input: Input::open(path)?, line: Vec::new(), others: 0 })
    }
}

/// The key and the value of a line, given the line without its first word.
fn parse(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = |bytes: &[u8]| bytes.iter().position(|byte| *byte == b' ');
    let rest = &rest[space(rest)? + 1..];
    let (key, fields) = rest.split_at(space(rest)?);
    let fields = fields.strip_prefix(b" [")?.strip_suffix(b"]")?;
    let fields = fields.strip_prefix(b" ").unwrap_or(fields);
    Some((key, fields.strip_suffix(b" ").unwrap_or(fields)))
}

impl Source for Reader {
    fn next(&mut self, pair: &mut Pair) -> io::Result<bool> {
        loop {
            let at = self.input.at();
            if !self.input.line(&mut self.line)? {
                return Ok(false);
            }
            let Some(rest) = self.line.strip_prefix(INSERT) else {
                self.others += 1;
                continue;
            };
            let Some((key, value)) = parse(rest) else {
                return Err(self.input.damaged(at, "an INSERT without table, key and [ fields ]"));
            };
            pair.key.clear();
            pair.key.extend_from_slice(key);
            pair.value.clear();
            pair.value.extend_from_slice(value);
            pair.valued = true;
            return Ok(true);
        }
    }

    fn at(&self) -> u64 {
        self.input.at()
    }

    fn remark(&self) -> Option<String> {
        (self.others > 0).then(|| format!("{} lines that load nothing were passed over", self.others))
    }
}
