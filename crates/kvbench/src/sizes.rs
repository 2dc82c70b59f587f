//! Numbers as people write them on a command line, 500000, 10M, 1.5G; and sizes as they read them.

/// Parses a number with a unit of the given size.
fn scaled(text: &str, unit: u64) -> Result<u64, String> {
    let (digits, factor) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], unit),
        Some((at, 'm' | 'M')) => (&text[..at], unit * unit),
        Some((at, 'g' | 'G')) => (&text[..at], unit * unit * unit),
        _ => (text, 1),
    };
    let number = digits.replace('_', "").parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    let scaled = number.map(|number| number * factor as f64).filter(|n| *n < 9e15);
    scaled.map(|n| n as u64).ok_or_else(|| format!("{text:?} is not a number such as 500000, 10M or 1.5G"))
}

/// A number of things, at least one; 1K is a thousand.
pub(crate) fn number(text: &str) -> Result<u64, String> {
    match scaled(text, 1000)? {
        0 => Err("at least 1 is needed".to_owned()),
        number => Ok(number),
    }
}

/// Several numbers, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sizes(pub(crate) Vec<u64>);

/// Most sizes of one range.
const SIZES_MAX: u64 = 1000;

/// A number, or a range of them: `1K..1M` has the powers of ten and three times these, `1M..2M/8` eight numbers at
/// equal distances.
pub(crate) fn list(text: &str) -> Result<Sizes, String> {
    let Some((from, to)) = text.split_once("..") else { return Ok(Sizes(vec![number(text)?])) };
    let (to, parts) = to.split_once('/').map_or((to, None), |(to, parts)| (to, Some(parts)));
    let (from, to) = (number(from)?, number(to)?);
    if from >= to {
        return Err(format!("{text:?} does not grow: {from} is not below {to}"));
    }
    let Some(parts) = parts else {
        let steps = (0..16).flat_map(|power| [1, 3].map(|digit| digit * 10u64.pow(power)));
        let inside = steps.filter(|size| (from + 1..to).contains(size));
        return Ok(Sizes([from].into_iter().chain(inside).chain([to]).collect()));
    };
    match number(parts)? {
        parts @ 2..=SIZES_MAX => {
            let at = |part: u64| from + ((to - from) as u128 * part as u128 / (parts - 1) as u128) as u64;
            Ok(Sizes((0..parts).map(at).collect()))
        }
        _ => Err(format!("{text:?}: a range has from 2 to {SIZES_MAX} sizes")),
    }
}

/// A number of bytes; 1K is 1,024.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    scaled(text, 1024)
}

/// Bytes in the unit that suits them.
pub(crate) fn text(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 30 => format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64),
        _ if bytes >= 1 << 20 || bytes == 0 => format!("{} MiB", bytes >> 20),
        _ => format!("{} KiB", bytes.div_ceil(1 << 10)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, n) in
            [("1", 1), ("20_000", 20_000), ("10M", 10_000_000), ("1.5k", 1500), ("2g", 2_000_000_000)]
        {
            assert_eq!(number(text), Ok(n), "{text}");
        }
        assert_eq!(bytes("1G"), Ok(1 << 30));
        for text in ["", "M", "-1", "1T", "nan", "inf", "0", "9e99"] {
            assert!(number(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ranges_are_lists() {
        let of = |text| list(text).map(|sizes| sizes.0);
        assert_eq!(of("5K"), Ok(vec![5000]));
        assert_eq!(of("1K..100K"), Ok(vec![1000, 3000, 10_000, 30_000, 100_000]));
        assert_eq!(of("2K..25K"), Ok(vec![2000, 3000, 10_000, 25_000]));
        assert_eq!(of("1M..2M/5"), Ok(vec![1_000_000, 1_250_000, 1_500_000, 1_750_000, 2_000_000]));
        for text in ["2M..1M", "1M..1M", "..", "1M..", "1M..2M/1", "1M..2M/1001", "1M..2M/x", "1..2..3"] {
            assert!(list(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_told() {
        for (bytes, told) in
            [(0, "0 MiB"), (1, "1 KiB"), (1 << 18, "256 KiB"), (64 << 20, "64 MiB"), (3 << 29, "1.5 GiB")]
        {
            assert_eq!(text(bytes), told);
        }
    }
}
