//! Keys at which structures were found wrong. Each comes with one that is never inserted and differs from it where a
//! careless structure does not look.

/// A key and its neighbour, which is never inserted.
pub(crate) type Edge = (Vec<u8>, Vec<u8>);

/// Numbers, eight bytes, big endian: none that differ from a neighbour but in one byte are equal.
pub(crate) fn of_numbers() -> Vec<Edge> {
    // Not the greatest one, from which congee cannot scan.
    let base: [u64; 4] = [0x0102_0304_0506_0700, 0, 0xfeff_ffff_ffff_ff00, 0x8000_0000_0000_0000];
    let bytes = |number: u64| number.to_be_bytes().to_vec();
    let mut edges = Vec::new();
    for base in base {
        // Keys that differ only in the last byte, and in each other byte.
        edges.extend((0..4).map(|last| (bytes(base + 2 * last), bytes(base + 2 * last + 1))));
        edges.extend((1..8).map(|byte| (bytes(base ^ 0x10 << (8 * byte)), bytes(base ^ 0x30 << (8 * byte)))));
    }
    edges
}

/// Strings without NUL: prefixes of each other, strings above 255 bytes, and strings that differ only in the last byte.
pub(crate) fn of_strings() -> Vec<Edge> {
    let mut edges: Vec<Edge> = Vec::new();
    // Each is a prefix of the next. The prefixes between them are always absent.
    let long = b"/prefix/".repeat(40);
    edges.extend((1..20).map(|half| (long[..2 * half].to_vec(), long[..2 * half + 1].to_vec())));
    for len in [1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64, 128, 239] {
        edges.extend(of_length(len));
    }
    // Around where a length of one byte ends, and where one of two bytes would be short of a page.
    for len in [254, 255, 256, 257, 300, 511, 513, 1024, 4095] {
        edges.extend(of_length(len));
        // The first 255 bytes are the same as in all others, the rest differ.
        let mut key = vec![b'~'; 255];
        key.extend((0..len).map(|at| b'a' + (at % 23) as u8));
        let mut absent = key.clone();
        absent[254 + len] = b'!';
        edges.push((key, absent));
    }
    edges
}

/// Strings of one length that differ only in the last byte.
fn of_length(len: usize) -> impl Iterator<Item = Edge> {
    let of = move |last: u8| {
        let mut key = vec![b'k'; len];
        key[len - 1] = last;
        key
    };
    [1, b'A', 0x7f, 0xfe].into_iter().map(move |last| (of(last), of(last + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_edges_are_equal() {
        for edges in [of_numbers(), of_strings()] {
            let all: HashSet<&Vec<u8>> = edges.iter().flat_map(|(key, absent)| [key, absent]).collect();
            assert_eq!(all.len(), 2 * edges.len());
        }
        assert!(of_strings().iter().all(|(key, absent)| !key.contains(&0) && !absent.contains(&0)));
        let prefixes = of_strings();
        assert!(prefixes.windows(2).any(|two| two[1].0.starts_with(&two[0].0)));
        assert!(prefixes.iter().any(|(key, _)| key.len() > 1000));
    }
}
