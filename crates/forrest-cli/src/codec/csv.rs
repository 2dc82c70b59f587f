//! Comma-separated values as in RFC 4180: `KEY,VALUE`. A field in double quotes may have commas, line ends and quotes,
//! which are doubled. A carriage return before the line feed that ends a record belongs to the end, as there.

use super::item::{Item, Mistake};
use forrest::Op;

/// Reads records, which may have several lines. One quote too many takes the rest of a file, so the caller limits
/// [`begun_bytes`](Reader::begun_bytes).
#[derive(Default)]
pub(crate) struct Reader {
    /// The lines of the last record so far.
    record: Vec<u8>,
    /// Whether they end within quotes.
    in_quotes: bool,
}

impl Reader {
    /// The next line, without its line feed.
    pub(crate) fn line(&mut self, line: &[u8]) -> Result<Item, Mistake> {
        if self.in_quotes {
            self.record.push(b'\n');
        } else {
            self.record.clear();
        }
        self.record.extend_from_slice(line);
        self.in_quotes ^= line.iter().filter(|&&byte| byte == b'"').count() % 2 == 1;
        match self.in_quotes {
            true => Ok(Item::Nothing),
            false => read(self.record.strip_suffix(b"\r").unwrap_or(&self.record)),
        }
    }

    /// The lines of the last record so far, in which a [`Mistake`] has its offset.
    pub(crate) fn record(&self) -> &[u8] {
        &self.record
    }

    /// Whether a record has begun and not ended.
    pub(crate) fn is_within(&self) -> bool {
        self.in_quotes
    }

    /// Bytes of the record that has not ended.
    pub(crate) fn begun_bytes(&self) -> usize {
        // With the line feed that the next line begins with.
        if self.in_quotes { self.record.len() + 1 } else { 0 }
    }

    /// Fails within a record.
    pub(crate) fn end(&self) -> Result<(), &'static str> {
        if self.in_quotes { Err("the quotes of the last field are not closed") } else { Ok(()) }
    }
}

/// The pair of a record.
fn read(record: &[u8]) -> Result<Item, Mistake> {
    let (key, comma) = field(record, 0)?;
    if comma == record.len() {
        return Err(Mistake::new(comma, "no comma; a line is KEY,VALUE"));
    }
    let (value, end) = field(record, comma + 1)?;
    if end < record.len() {
        return Err(Mistake::new(
            end,
            "a third field; a line is KEY,VALUE, and a comma in a field needs quotes",
        ));
    }
    Ok(Item::Change(Op::Set { key, value }, None))
}

/// The field that begins at an offset, and the offset of the comma after it, or of the end.
fn field(record: &[u8], from: usize) -> Result<(Vec<u8>, usize), Mistake> {
    let rest = &record[from..];
    let Some(quoted) = rest.strip_prefix(b"\"") else {
        let len = rest.iter().position(|&byte| byte == b',').unwrap_or(rest.len());
        return match rest[..len].iter().position(|&byte| byte == b'"') {
            Some(at) => Err(Mistake::new(from + at, "a quote in a field that does not begin with one")),
            None => Ok((rest[..len].to_vec(), from + len)),
        };
    };
    let (mut bytes, mut at) = (Vec::new(), 0);
    while let Some(len) = quoted[at..].iter().position(|&byte| byte == b'"') {
        bytes.extend_from_slice(&quoted[at..at + len]);
        at += len + 1;
        match quoted.get(at) {
            Some(b'"') => bytes.push(b'"'),
            None | Some(b',') => return Ok((bytes, from + 1 + at)),
            Some(_) => {
                return Err(Mistake::new(from + 1 + at, "neither a comma nor the end after a closing quote"));
            }
        }
        at += 1;
    }
    Err(Mistake::new(record.len(), "quotes that are not closed"))
}

/// Appends a field, in quotes where it needs them.
pub(crate) fn write_word(bytes: &[u8], out: &mut Vec<u8>) {
    if !bytes.iter().any(|byte| b"\",\r\n".contains(byte)) {
        return out.extend_from_slice(bytes);
    }
    out.push(b'"');
    for &byte in bytes {
        if byte == b'"' {
            out.push(byte);
        }
        out.push(byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Pair = (Vec<u8>, Vec<u8>);

    /// What lines mean, in one reader.
    fn pairs(text: &[u8]) -> Result<Vec<Pair>, usize> {
        let (mut reader, mut pairs) = (Reader::default(), Vec::new());
        for line in text.split(|&byte| byte == b'\n') {
            match reader.line(line).map_err(|mistake| mistake.at)? {
                Item::Change(Op::Set { key, value }, None) => pairs.push((key, value)),
                Item::Nothing => {}
                _ => unreachable!("pairs alone"),
            }
        }
        reader.end().map_err(|_| usize::MAX)?;
        Ok(pairs)
    }

    #[test]
    fn records_are_read() {
        for (text, key, value) in [
            ("a,b", "a", "b"),
            (",", "", ""),
            ("#a,\\n", "#a", "\\n"),
            ("\"a,b\",\"c\"\"d\"", "a,b", "c\"d"),
            ("k,\"two\nlines\r\n\"\r", "k", "two\nlines\r\n"),
            ("k,v\r", "k", "v"),
        ] {
            assert_eq!(pairs(text.as_bytes()), Ok(vec![(key.into(), value.into())]), "{text}");
        }
    }

    #[test]
    fn a_mistake_tells_where() {
        for (text, at) in
            [("", 0), ("key", 3), ("a,b,c", 3), ("a\"\"b,c", 1), ("\"a\"b,\"c\"", 3), ("a,\"b", usize::MAX)]
        {
            assert_eq!(pairs(text.as_bytes()), Err(at), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(key: Vec<u8>, value: Vec<u8>) {
            let mut text = Vec::new();
            write_word(&key, &mut text);
            text.push(b',');
            write_word(&value, &mut text);
            prop_assert_eq!(pairs(&text), Ok(vec![(key, value)]));
        }
    }
}
