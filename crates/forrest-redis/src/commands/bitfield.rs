//! `BITFIELD`: integers of 1 to 64 bits at any bit of a string.
//!
//! All arguments are read before the key is looked at, and the length that the string will have is checked before it
//! is made. Bit 0 is the highest one of the first byte, and so is the highest one of a field.

use super::bits::{BAD_OFFSET, bit_offset};
use super::strings::rewrite;
use super::{Context, integer, is};
use crate::data::Found;
use crate::fault::{Done, Fault, SYNTAX};
use crate::keys::Kind;
use crate::number;

/// Bits around a field, which begins in the first byte: 7 before it, 64 of its own, one after it.
const WINDOW_BITS: u32 = 72;
const WINDOW_BYTES: usize = WINDOW_BITS as usize / 8;

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    is_signed: bool,
    bits: u32,
}

/// What becomes of a number that a field does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overflow {
    /// Its lowest bits are kept.
    Wrap,
    /// It becomes the nearest one that the field holds.
    Saturate,
    /// Nothing changes.
    Fail,
}

impl Field {
    /// Of its name: `i1` to `i64`, `u1` to `u63`.
    fn of(name: &[u8]) -> Option<Field> {
        let (is_signed, bits, most) = match name {
            [b'i', bits @ ..] => (true, bits, 64),
            [b'u', bits @ ..] => (false, bits, 63),
            _ => return None,
        };
        let bits = number::integer(bits).filter(|bits| (1..=most).contains(bits))?;
        Some(Field { is_signed, bits: bits as u32 })
    }

    fn mask(self) -> u128 {
        (1 << self.bits) - 1
    }

    /// The number of the lowest bits.
    fn wrapped(self, bits: u128) -> i64 {
        let bits = (bits & self.mask()) as i128;
        let is_negative = self.is_signed && bits >> (self.bits - 1) == 1;
        (if is_negative { bits - (1 << self.bits) } else { bits }) as i64
    }

    /// The number that the field gets in place of one that it may not hold.
    fn fit(self, number: i128, overflow: Overflow) -> Option<i64> {
        let (least, most) = match self.is_signed {
            true => (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1),
            false => (0, (1 << self.bits) - 1),
        };
        match overflow {
            _ if (least..=most).contains(&number) => Some(number as i64),
            Overflow::Wrap => Some(self.wrapped(number as u128)),
            Overflow::Saturate => Some(number.clamp(least, most) as i64),
            Overflow::Fail => None,
        }
    }

    /// The bytes from that of an offset on, and how far a field lies from the end of them.
    fn window(self, string: &[u8], offset: u64) -> (u128, u32) {
        let mut bytes = [0; WINDOW_BYTES];
        let rest = string.get((offset / 8) as usize..).unwrap_or(&[]);
        let len = rest.len().min(WINDOW_BYTES);
        bytes[..len].copy_from_slice(&rest[..len]);
        let window = bytes.iter().fold(0, |window, byte| window << 8 | u128::from(*byte));
        (window, WINDOW_BITS - (offset % 8) as u32 - self.bits)
    }

    fn get(self, string: &[u8], offset: u64) -> i64 {
        let (window, shift) = self.window(string, offset);
        self.wrapped(window >> shift)
    }

    /// The string is long enough.
    fn set(self, string: &mut [u8], offset: u64, number: i64) {
        let (window, shift) = self.window(string, offset);
        let window = window & !(self.mask() << shift) | (number as u128 & self.mask()) << shift;
        let bytes = (window << (u128::BITS - WINDOW_BITS)).to_be_bytes();
        let places = string[(offset / 8) as usize..].iter_mut();
        places.zip(&bytes[..WINDOW_BYTES]).for_each(|(byte, new)| *byte = *new);
    }

    /// How many bytes a string needs that has the field.
    fn end(self, offset: u64) -> u64 {
        (offset + u64::from(self.bits)).div_ceil(8)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Nothing,
    Set(i64),
    Add(i64),
}

/// One of the operations of a request.
struct Operation {
    change: Change,
    field: Field,
    offset: u64,
    overflow: Overflow,
}

/// An offset in bits, or after `#` in fields.
fn field_offset(context: &Context, field: Field, arg: &[u8]) -> Result<u64, Fault> {
    let Some(number) = arg.strip_prefix(b"#") else { return bit_offset(context, arg) };
    let number = bit_offset(context, number)?;
    let offset = number.checked_mul(u64::from(field.bits));
    let offset = offset.filter(|offset| offset / 8 < context.string_bytes_max());
    offset.ok_or(Fault::new(BAD_OFFSET))
}

fn operations(context: &Context, args: &[&[u8]]) -> Result<Vec<Operation>, Fault> {
    let mut operations = Vec::new();
    let mut overflow = Overflow::Wrap;
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        if is(word, "OVERFLOW") {
            overflow = match rest.next().ok_or(SYNTAX)? {
                how if is(how, "WRAP") => Overflow::Wrap,
                how if is(how, "SAT") => Overflow::Saturate,
                how if is(how, "FAIL") => Overflow::Fail,
                _ => return Err(Fault::new("ERR Invalid OVERFLOW type specified")),
            };
            continue;
        }
        let changes = is(word, "SET") || is(word, "INCRBY");
        if !changes && !is(word, "GET") || rest.len() < if changes { 3 } else { 2 } {
            return Err(SYNTAX);
        }
        let mut next = || rest.next().copied().ok_or(SYNTAX);
        let field = Field::of(next()?).ok_or(Fault::new(
            "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
        ))?;
        let offset = field_offset(context, field, next()?)?;
        let change = match changes {
            false => Change::Nothing,
            true if is(word, "SET") => Change::Set(integer(next()?)?),
            true => Change::Add(integer(next()?)?),
        };
        operations.push(Operation { change, field, offset, overflow });
    }
    Ok(operations)
}

/// Replies with fields of a string that does not change.
fn look(context: &mut Context, key: &[u8], operations: &[Operation]) -> Done {
    let found = context.look(key, Kind::String)?;
    let string = found.as_ref().map_or(&[][..], Found::string);
    context.reply.array(operations.len());
    operations.iter().for_each(|operation| {
        context.reply.integer(operation.field.get(string, operation.offset));
    });
    Ok(())
}

/// Applies an operation. Returns its reply, and whether it has changed something.
fn apply(string: &mut [u8], operation: &Operation) -> (Option<i64>, bool) {
    let Operation { change, field, offset, overflow } = *operation;
    let old = field.get(string, offset);
    let new = match change {
        Change::Nothing => return (Some(old), false),
        Change::Set(number) if field.is_signed => field.fit(number.into(), overflow),
        // A negative number is a large one without a sign.
        Change::Set(number) => field.fit((number as u64).into(), overflow),
        Change::Add(number) => field.fit(i128::from(old) + i128::from(number), overflow),
    };
    let Some(new) = new else { return (None, false) };
    field.set(string, offset, new);
    match change {
        Change::Add(_) => (Some(new), true),
        _ => (Some(old), old != new),
    }
}

pub(crate) fn bitfield(context: &mut Context, args: &[&[u8]]) -> Done {
    let operations = operations(context, &args[2..])?;
    let changes = operations.iter().filter(|operation| operation.change != Change::Nothing);
    let Some(end) = changes.map(|operation| operation.field.end(operation.offset)).max() else {
        return look(context, args[1], &operations);
    };
    let old = context.find_kind(args[1], Kind::String)?;
    if end > context.string_bytes_max() {
        return Err(Fault::new(BAD_OFFSET));
    }
    let string = old.as_ref().map_or(&[][..], Found::string);
    let len = string.len().max(end as usize);
    let mut value = Vec::with_capacity(len);
    value.extend_from_slice(string);
    value.resize(len, 0);
    let mut is_changed = old.is_none() || value.len() > string.len();
    context.reply.array(operations.len());
    for operation in &operations {
        let (reply, changes) = apply(&mut value, operation);
        is_changed |= changes;
        match reply {
            Some(number) => context.reply.integer(number),
            None => context.reply.null(),
        }
    }
    if is_changed {
        rewrite(context, args[1], old.as_ref().map(|old| &old.record), &value)?;
    }
    Ok(())
}

pub(crate) fn bitfield_ro(context: &mut Context, args: &[&[u8]]) -> Done {
    let operations = operations(context, &args[2..])?;
    if operations.iter().any(|operation| operation.change != Change::Nothing) {
        return Err(Fault::new("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    look(context, args[1], &operations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use forrest_base::random::Random;

    #[test]
    fn names_of_fields_are_strict() {
        for bits in 1..=64 {
            let field = |is_signed| Some(Field { is_signed, bits });
            assert_eq!(Field::of(format!("i{bits}").as_bytes()), field(true));
            assert_eq!(Field::of(format!("u{bits}").as_bytes()), field(false).filter(|_| bits < 64));
        }
        for bad in
            ["", "i", "8", "i0", "u0", "i65", "u064", "i-1", "I8", "u 8", "u8 ", "u99999999999999999999"]
        {
            assert_eq!(Field::of(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn numbers_fit_or_overflow() {
        let all = |name: &str, number: i128| {
            let field = Field::of(name.as_bytes()).unwrap();
            [Overflow::Wrap, Overflow::Saturate, Overflow::Fail].map(|overflow| field.fit(number, overflow))
        };
        assert_eq!(all("u8", 255), [Some(255); 3]);
        assert_eq!(all("u8", 256), [Some(0), Some(255), None]);
        assert_eq!(all("u8", -1), [Some(255), Some(0), None]);
        assert_eq!(all("i8", -128), [Some(-128); 3]);
        assert_eq!(all("i8", 128), [Some(-128), Some(127), None]);
        assert_eq!(all("i8", -129), [Some(127), Some(-128), None]);
        assert_eq!(all("i1", 1), [Some(-1), Some(0), None]);
        assert_eq!(all("u63", u64::MAX.into()), [Some(i64::MAX), Some(i64::MAX), None]);
        let (least, most) = (i64::MIN, i64::MAX);
        assert_eq!(all("i64", i128::from(most) + 1), [Some(least), Some(most), None]);
        assert_eq!(all("i64", 2 * i128::from(least)), [Some(0), Some(least), None]);
    }

    /// Fields of random types and places against a look at every bit.
    #[test]
    fn fields_are_as_single_bits() {
        let seed = 11;
        let mut random = Random(seed);
        for round in 0..20_000 {
            let is_signed = random.below(2) == 1;
            let bits = random.below(if is_signed { 64 } else { 63 }) as u32 + 1;
            let (field, offset) = (Field { is_signed, bits }, random.below(80));
            let mut string = Vec::new();
            // It may end before the field, which is read all the same.
            let len = random.index(20);
            random.append(len, &mut string);
            let what = format!("seed {seed}, round {round}, {field:?} at {offset} of {len}");
            let bit = |string: &[u8], at: u64| {
                string.get((at / 8) as usize).is_some_and(|byte| byte & (0x80 >> (at % 8)) != 0)
            };
            let ends = offset + u64::from(bits);
            let unsigned = (offset..ends).fold(0, |sum, at| sum << 1 | i128::from(bit(&string, at)));
            let is_negative = is_signed && bit(&string, offset);
            let expected = unsigned - if is_negative { 1 << bits } else { 0 };
            assert_eq!(i128::from(field.get(&string, offset)), expected, "{what}");

            string.resize(len.max(field.end(offset) as usize), 0);
            let before = string.clone();
            let number = field.wrapped(u128::from(random.next()));
            field.set(&mut string, offset, number);
            assert_eq!(field.get(&string, offset), number, "{what}");
            let others = (0..string.len() as u64 * 8).filter(|at| !(offset..ends).contains(at));
            others.for_each(|at| assert_eq!(bit(&string, at), bit(&before, at), "{what}, bit {at}"));
        }
    }
}
