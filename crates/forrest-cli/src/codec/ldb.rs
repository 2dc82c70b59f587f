//! The format of RocksDB's `ldb dump --hex` and `ldb load --hex`.
//!
//! ```text
//! 0x6F616B ==> 0x51756572637573
//! 0x666972 ==> 0x
//! Keys in range: 2
//! ```
//!
//! The last line counts the pairs before it, so that a truncated dump is detected; `ldb scan` has none. The format has
//! no name of a column family, so it holds one keyspace.

use super::hex;
use super::item::{Item, Mistake};
use forrest::Op;

/// Separates key and value.
pub(super) const ARROW: &str = " ==> ";
/// Start of the line with the count.
const COUNT: &str = "Keys in range: ";
/// Start of a message that `ldb` may print between the lines, and skips itself.
const CHATTER: &[u8] = b"Created bg thread 0x";

/// Appends a key or a value.
pub(super) fn write_word(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"0x");
    let start = out.len();
    hex::encode_into(bytes, out);
    out[start..].make_ascii_uppercase();
}

/// Appends the line after the pairs.
pub(super) fn write_end(pairs: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{COUNT}{pairs}\n").as_bytes());
}

/// Reads a key or a value.
pub(super) fn read_word(word: &[u8]) -> Result<Vec<u8>, Mistake> {
    match word.strip_prefix(b"0x") {
        Some(digits) => hex::decode(digits).map_err(|m| m.after(2)),
        None => Err(Mistake::new(0, "expected 0x before a key or value, as ldb --hex prints it")),
    }
}

/// Reads a dump line by line.
#[derive(Default)]
pub(crate) struct Reader {
    /// Since the last count.
    pairs: u64,
}

impl Reader {
    pub(super) fn line(&mut self, line: &[u8]) -> Result<Item, Mistake> {
        if let Some(count) = line.strip_prefix(COUNT.as_bytes()) {
            let pairs = std::mem::take(&mut self.pairs);
            return match std::str::from_utf8(count)
                .ok()
                .and_then(|count| count.trim_end().parse::<u64>().ok())
            {
                Some(count) if count == pairs => Ok(Item::Nothing),
                Some(_) => Err(Mistake::new(COUNT.len(), format!("there were {pairs} before this line"))),
                None => Err(Mistake::new(COUNT.len(), "not a number of keys")),
            };
        }
        if line.is_empty() || line.starts_with(b"#") || line.starts_with(CHATTER) {
            return Ok(Item::Nothing);
        }
        let arrow = line.windows(ARROW.len()).position(|part| part == ARROW.as_bytes());
        let key = read_word(&line[..arrow.unwrap_or(line.len())])?;
        let Some(arrow) = arrow else {
            return Err(Mistake::new(line.len(), "expected ==> and a value after the key"));
        };
        let start = arrow + ARROW.len();
        let value = read_word(&line[start..]).map_err(|m| m.after(start))?;
        self.pairs += 1;
        Ok(Item::Change(Op::Set { key, value }, None))
    }
}
