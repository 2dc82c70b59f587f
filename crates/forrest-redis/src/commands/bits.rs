//! Bits of strings: single ones, how many are set, where the first one is, and operations on whole strings.
//!
//! Bit 0 is the highest one of the first byte. A string has zeros after its end.

use super::strings::rewrite;
use super::{Context, integer, is, natural};
use crate::data::Found;
use crate::fault::{Done, Fault, SYNTAX};
use crate::keys::Kind;
use std::ops::Range;

pub(super) const BAD_OFFSET: &str = "ERR bit offset is not an integer or out of range";

/// The number of a bit, in a string of at most the longest length.
pub(super) fn bit_offset(context: &Context, arg: &[u8]) -> Result<u64, Fault> {
    let offset = natural(arg, BAD_OFFSET)?;
    if offset / 8 >= context.string_bytes_max() {
        return Err(Fault::new(BAD_OFFSET));
    }
    Ok(offset)
}

pub(crate) fn setbit(context: &mut Context, args: &[&[u8]]) -> Done {
    let offset = bit_offset(context, args[2])? as usize;
    let is_set = match args[3] {
        b"0" => false,
        b"1" => true,
        _ => return Err(Fault::new("ERR bit is not an integer or out of range")),
    };
    let old = context.find_kind(args[1], Kind::String)?;
    let mut value = old.as_ref().map_or(Vec::new(), |old| old.string().to_vec());
    value.resize(value.len().max(offset / 8 + 1), 0);
    let mask = 0x80 >> (offset % 8);
    let was = value[offset / 8] & mask != 0;
    if was != is_set || old.as_ref().is_none_or(|old| old.string().len() < value.len()) {
        value[offset / 8] ^= if was == is_set { 0 } else { mask };
        rewrite(context, args[1], old.as_ref().map(|old| &old.record), &value)?;
    }
    context.reply.bool(was);
    Ok(())
}

pub(crate) fn getbit(context: &mut Context, args: &[&[u8]]) -> Done {
    let offset = bit_offset(context, args[2])? as usize;
    let found = context.look(args[1], Kind::String)?;
    let byte = found.as_ref().and_then(|found| found.string().get(offset / 8).copied()).unwrap_or(0);
    context.reply.bool(byte & (0x80 >> (offset % 8)) != 0);
    Ok(())
}

/// A part of a string, as the arguments name it: from one place to another, which count from the end if negative.
struct Part {
    start: i64,
    /// `None` if the last argument is missing.
    end: Option<i64>,
    by_bit: bool,
}

impl Part {
    fn of(args: &[&[u8]]) -> Result<Part, Fault> {
        let start = args.first().map_or(Ok(0), |start| integer(start))?;
        let by_bit = match args.get(2) {
            None => false,
            Some(unit) if is(unit, "BYTE") => false,
            Some(unit) if is(unit, "BIT") => true,
            Some(_) => return Err(SYNTAX),
        };
        let end = args.get(1).map(|end| integer(end)).transpose()?;
        if args.len() > 3 { Err(SYNTAX) } else { Ok(Part { start, end, by_bit }) }
    }

    /// The bits of it that a string has. An end before the first place is the first place, as in Redis.
    fn bits(&self, string: &[u8]) -> Range<u64> {
        let unit = if self.by_bit { 1 } else { 8 };
        let len = string.len() as i64 * 8 / unit;
        let at = |place: i64| if place < 0 { (place + len).max(0) } else { place };
        let (start, end) = (at(self.start), at(self.end.unwrap_or(-1)).min(len - 1));
        if start > end { 0..0 } else { (start * unit) as u64..((end + 1) * unit) as u64 }
    }
}

/// The bytes that a range of bits touches, and which bits of the first and of the last one are within it.
fn bytes_of(bits: &Range<u64>) -> (Range<usize>, u8, u8) {
    let bytes = (bits.start / 8) as usize..bits.end.div_ceil(8) as usize;
    (bytes, 0xFF >> (bits.start % 8), 0xFF << ((8 - bits.end % 8) % 8))
}

/// How many bits of a range are set.
fn count(string: &[u8], bits: &Range<u64>) -> u64 {
    let (bytes, first, last) = bytes_of(bits);
    let bytes = &string[bytes];
    let (Some(head), Some(tail)) = (bytes.first(), bytes.last()) else { return 0 };
    let all: u64 = bytes.iter().map(|byte| u64::from(byte.count_ones())).sum();
    all - u64::from((head & !first).count_ones()) - u64::from((tail & !last).count_ones())
}

/// The first bit of a range that is set, or that is not.
fn position(string: &[u8], bits: &Range<u64>, is_set: bool) -> Option<u64> {
    let (bytes, first, _) = bytes_of(bits);
    let flip = if is_set { 0 } else { 0xFF };
    let start = bytes.start;
    let (head, rest) = string[bytes].split_first()?;
    let head = (head ^ flip) & first;
    let (at, byte) = match head {
        0 => rest.iter().position(|byte| byte ^ flip != 0).map(|at| (at + 1, rest[at] ^ flip))?,
        head => (0, head),
    };
    let bit = (start + at) as u64 * 8 + u64::from(byte.leading_zeros());
    (bit < bits.end).then_some(bit)
}

pub(crate) fn bitcount(context: &mut Context, args: &[&[u8]]) -> Done {
    let part = Part::of(&args[2..])?;
    let found = context.look(args[1], Kind::String)?;
    let string = found.as_ref().map_or(&[][..], Found::string);
    // Only here an end before the start is looked at before both are moved to the first place.
    let is_empty = part.end.is_some_and(|end| part.start < 0 && end < part.start);
    context.reply.count(if is_empty { 0 } else { count(string, &part.bits(string)) });
    Ok(())
}

pub(crate) fn bitpos(context: &mut Context, args: &[&[u8]]) -> Done {
    let is_set = match integer(args[2])? {
        0 => false,
        1 => true,
        _ => return Err(Fault::new("ERR The bit argument must be 1 or 0.")),
    };
    let part = Part::of(&args[3..])?;
    let Some(found) = context.look(args[1], Kind::String)? else {
        context.reply.integer(if is_set { -1 } else { 0 });
        return Ok(());
    };
    let string = found.string();
    let bits = part.bits(string);
    let position = match position(string, &bits, is_set) {
        // The zeros after the string count if no end is given.
        None if !is_set && part.end.is_none() && !bits.is_empty() => Some(bits.end),
        position => position,
    };
    context.reply.integer(position.map_or(-1, |position| position as i64));
    Ok(())
}

/// Combines strings, one after the other, so that no more than one of them is in memory besides the result.
pub(crate) fn bitop(context: &mut Context, args: &[&[u8]]) -> Done {
    let operation = ["AND", "OR", "XOR", "NOT"].into_iter().find(|name| is(args[1], name)).ok_or(SYNTAX)?;
    let (target, sources) = (args[2], &args[3..]);
    if operation == "NOT" && sources.len() > 1 {
        return Err(Fault::new("ERR BITOP NOT must be called with a single source key."));
    }
    let mut result = Vec::new();
    for (number, key) in sources.iter().enumerate() {
        let found = context.find_kind(key, Kind::String)?;
        let string = found.as_ref().map_or(&[][..], Found::string);
        context.check_string(string.len() as u64)?;
        result.resize(result.len().max(string.len()), 0);
        match operation {
            _ if number == 0 => result.copy_from_slice(string),
            "AND" => result[string.len()..].fill(0),
            _ => {}
        }
        let pairs = result.iter_mut().zip(string);
        match operation {
            "NOT" => pairs.for_each(|(byte, _)| *byte = !*byte),
            _ if number == 0 => {}
            "AND" => pairs.for_each(|(byte, other)| *byte &= other),
            "OR" => pairs.for_each(|(byte, other)| *byte |= other),
            _ => pairs.for_each(|(byte, other)| *byte ^= other),
        }
    }
    let old = context.find(target)?;
    match &old {
        Some(old) if result.is_empty() => context.delete(target, &old.record)?,
        None if result.is_empty() => {}
        old => context.set_string(target, old.as_ref().map(|old| &old.record), &result, 0)?,
    }
    context.reply.count(result.len() as u64);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use forrest_base::random::Random;

    /// Each range of random strings against a look at every bit.
    #[test]
    fn ranges_of_bits_are_as_single_bits() {
        let seed = 7;
        let mut random = Random(seed);
        for round in 0..400 {
            let mut string = Vec::new();
            let len = random.index(6);
            random.append(len, &mut string);
            if round % 4 < 2 {
                // Most bytes are alike.
                let all = if round % 4 == 0 { 0 } else { 0xFF };
                (0..len).for_each(|at| string[at] = if random.below(4) == 0 { string[at] } else { all });
            }
            let is_set = |bit: u64| string[(bit / 8) as usize] & (0x80 >> (bit % 8)) != 0;
            let end = len as u64 * 8;
            for start in 0..end {
                for end in start + 1..=end {
                    let what = format!("seed {seed}, round {round}, {start}..{end}");
                    let ones = (start..end).filter(|bit| is_set(*bit)).count() as u64;
                    assert_eq!(count(&string, &(start..end)), ones, "{what}");
                    for wanted in [false, true] {
                        let first = (start..end).find(|bit| is_set(*bit) == wanted);
                        assert_eq!(position(&string, &(start..end), wanted), first, "{what}");
                    }
                }
            }
            assert_eq!((count(&string, &(0..0)), position(&string, &(0..0), true)), (0, None));
        }
    }
}
