//! [`Page`]: the bytes in which many pairs or values pass to JavaScript in one call.
//!
//! Numbers are words of 4 bytes in the byte order of the machine, and aligned, so that JavaScript reads them by a
//! `Uint32Array` over the page.
//!
//! | what | bytes |
//! |---|---|
//! | page | number of items · flags: 1 the range ends here, 2 all characters are ASCII · lengths · items |
//! | lengths of pairs | for each: that of the key, that of the value |
//! | lengths of values | for each: its length, or 0xFFFFFFFF if there is none |
//! | items | keys and values, one after the other |

use crate::failure::Failure;
use forrest::Value;

/// The length of a value that is not there.
const ABSENT: u32 = u32::MAX;
const ENDS: u32 = 1;
const ASCII: u32 = 2;
/// Most bytes of a page: the largest length that a word states is not used up by items.
const BYTES_MAX: usize = 0xFFFF_0000;

/// A page that is being filled.
#[derive(Default)]
pub(crate) struct Page {
    items: u32,
    lengths: Vec<u32>,
    bytes: Vec<u8>,
    /// The range ends with this page.
    pub(crate) is_last: bool,
}

impl Page {
    /// Number of items.
    pub(crate) fn len(&self) -> usize {
        self.items as usize
    }

    /// Bytes of the items.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Adds a pair. What is not wanted of it is empty.
    pub(crate) fn pair(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.add(key)?;
        self.add(value)?;
        self.items += 1;
        Ok(())
    }

    /// Adds a value, or that there is none.
    pub(crate) fn value(&mut self, value: Option<&Value>) -> Result<(), Failure> {
        match value {
            Some(value) => self.add(value)?,
            None => self.lengths.push(ABSENT),
        }
        self.items += 1;
        Ok(())
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.bytes.len() + bytes.len() > BYTES_MAX {
            let message =
                format!("the values have more than {BYTES_MAX} bytes together; ask for fewer at a time");
            return Err(Failure::new("LEVEL_LIMIT_EXCEEDED", message));
        }
        self.lengths.push(bytes.len() as u32);
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// The bytes of the page.
    pub(crate) fn finish(self) -> Vec<u8> {
        let mut flags = 0;
        if self.is_last {
            flags |= ENDS;
        }
        if self.bytes.is_ascii() {
            flags |= ASCII;
        }
        let words = [self.items, flags];
        let mut page = Vec::with_capacity((words.len() + self.lengths.len()) * 4 + self.bytes.len());
        for word in words.iter().chain(&self.lengths) {
            page.extend_from_slice(&word.to_ne_bytes());
        }
        page.extend_from_slice(&self.bytes);
        page
    }
}
