//! `LCS`: the longest common subsequence of two strings.

use super::{Context, is, natural};
use crate::fault::{Done, Fault, SYNTAX};
use crate::keys::Kind;

/// The most pairs of positions that a command looks at: about 0.2 s, and 4 bytes each.
const CELLS_MAX: u64 = 64 << 20;

/// A run that both strings have, as their first and last positions.
type Run = ((usize, usize), (usize, usize));

pub(crate) fn lcs(context: &mut Context, args: &[&[u8]]) -> Done {
    let (mut only_len, mut indexes, mut with_len, mut least) = (false, false, false, 0);
    let mut rest = args[3..].iter();
    while let Some(word) = rest.next() {
        if is(word, "LEN") {
            only_len = true;
        } else if is(word, "IDX") {
            indexes = true;
        } else if is(word, "WITHMATCHLEN") {
            with_len = true;
        } else if is(word, "MINMATCHLEN") {
            let word = rest.next().ok_or(SYNTAX)?;
            least = natural(word, "ERR value is not an integer or out of range")? as usize;
        } else {
            return Err(SYNTAX);
        }
    }
    if only_len && indexes {
        return Err(Fault::new("ERR If you want both the length and indexes, please just use IDX."));
    }
    let (a, b) = (context.find_kind(args[1], Kind::String)?, context.find_kind(args[2], Kind::String)?);
    let a = a.as_ref().map_or(&[][..], |found| found.string());
    let b = b.as_ref().map_or(&[][..], |found| found.string());
    if (a.len() as u64 + 1) * (b.len() as u64 + 1) > CELLS_MAX {
        return Err(Fault::new(format!("ERR the product of the lengths is above {CELLS_MAX}")));
    }
    let (text, runs) = common(a, b);
    if indexes {
        let runs: Vec<&Run> = runs.iter().filter(|((from, to), _)| to - from + 1 >= least).collect();
        context.reply.map(2);
        context.reply.bulk(b"matches");
        context.reply.array(runs.len());
        for (one, other) in runs {
            context.reply.array(if with_len { 3 } else { 2 });
            for (from, to) in [one, other] {
                context.reply.array(2);
                context.reply.count(*from as u64);
                context.reply.count(*to as u64);
            }
            if with_len {
                context.reply.count((one.1 - one.0 + 1) as u64);
            }
        }
        context.reply.bulk(b"len");
        context.reply.count(text.len() as u64);
    } else if only_len {
        context.reply.count(text.len() as u64);
    } else {
        context.reply.bulk(&text);
    }
    Ok(())
}

/// The subsequence, and its runs from the last to the first.
fn common(a: &[u8], b: &[u8]) -> (Vec<u8>, Vec<Run>) {
    let width = b.len() + 1;
    let mut lens = vec![0_u32; (a.len() + 1) * width];
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            lens[i * width + j] = if a[i - 1] == b[j - 1] {
                lens[(i - 1) * width + j - 1] + 1
            } else {
                lens[(i - 1) * width + j].max(lens[i * width + j - 1])
            };
        }
    }
    let (mut i, mut j) = (a.len(), b.len());
    let (mut text, mut runs): (Vec<u8>, Vec<Run>) = (Vec::new(), Vec::new());
    while i > 0 && j > 0 {
        if a[i - 1] == b[j - 1] {
            (i, j) = (i - 1, j - 1);
            text.push(a[i]);
            match runs.last_mut() {
                Some((one, other)) if one.0 == i + 1 && other.0 == j + 1 => (one.0, other.0) = (i, j),
                _ => runs.push(((i, i), (j, j))),
            }
        } else if lens[(i - 1) * width + j] > lens[i * width + j - 1] {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    text.reverse();
    (text, runs)
}

#[cfg(test)]
mod tests {
    use super::common;

    #[test]
    fn the_longest_is_found() {
        let (text, runs) = common(b"ohmytext", b"mynewtext");
        assert_eq!(text, b"mytext");
        assert_eq!(runs, [((4, 7), (5, 8)), ((2, 3), (0, 1))]);
        assert_eq!(common(b"", b"abc").0, b"");
    }
}
