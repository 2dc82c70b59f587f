//! Pieces of ranges compared with a map: the same pairs, alone and while another thread changes the store.

use super::super::mapped::tests::{change, open};
use super::super::{User, abi};
use super::{Bounds, Piece};
use std::collections::BTreeMap;
use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// A piece of a range; `None` if the caller has to ask the engine.
fn piece(user: &User, bounds: Bounds<'_>, down: bool, most: usize) -> Option<(Piece, Pairs)> {
    let mut bytes = vec![1; 10];
    let piece = user.mapped().expect("it can be seen").piece(bounds, down, most, &mut bytes)?;
    let mut pairs = Pairs::new();
    let mut rest = &bytes[..];
    while let Some((head, body)) = rest.split_first_chunk::<8>() {
        let [key, value] = [&head[..4], &head[4..]]
            .map(|bytes| u32::from_ne_bytes(bytes.try_into().expect("4 bytes")) as usize);
        pairs.push((body[..key].to_vec(), body[key..key + value].to_vec()));
        let (pair, after) = body.split_at((key + value).next_multiple_of(8));
        assert!(pair[key + value..].iter().all(|byte| *byte == 0), "the padding after a pair is zeros");
        rest = after;
    }
    assert!(pairs.len() <= most.max(1) && (piece == Piece::End || !pairs.is_empty()));
    Some((piece, pairs))
}

/// A range, read piece by piece, and the number of pieces.
fn range(user: &User, (mut lower, mut upper): Bounds<'_>, down: bool, most: usize) -> Option<(Pairs, usize)> {
    let mut all = Pairs::new();
    for pieces in 1.. {
        let (piece, pairs) = piece(user, (lower, upper), down, most)?;
        all.extend(pairs);
        if piece == Piece::End {
            return Some((all, pieces));
        }
        let last = all.last().expect("it is not empty").0.clone().leak();
        if down { upper = Excluded(last) } else { lower = Excluded(last) }
    }
    None
}

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % end
    }
}

/// Keys of several kinds: with long and short common prefixes, and prefixes of each other.
fn key(numbers: &mut Numbers, kind: usize) -> Vec<u8> {
    let number = numbers.below(3000);
    match kind {
        0 => (number as u64).to_be_bytes().to_vec(),
        1 => [&[b'p'; 70][..], number.to_string().as_bytes()].concat(),
        2 => vec![b"ab"[number % 2]; number / 10],
        _ => (0..number % 7).map(|at| b"abc"[(number >> at) % 3]).collect(),
    }
}

fn bound<'k>(numbers: &mut Numbers, key: &'k [u8]) -> Bound<&'k [u8]> {
    match numbers.below(5) {
        0 => Unbounded,
        1 | 2 => Included(key),
        _ => Excluded(key),
    }
}

#[test]
fn pieces_of_ranges_are_those_of_a_map() {
    let mut many = 0;
    for kind in 0..4 {
        let user = open(&format!("pieces {kind}"));
        let mut model = BTreeMap::new();
        let mut numbers = Numbers(kind as u64);
        for step in 0..4000 {
            let at = key(&mut numbers, kind);
            if numbers.below(3) == 0 {
                change(&user, abi::DELETE, &at, &[]);
                model.remove(&at);
            } else {
                let value = vec![step as u8; numbers.below(60)];
                change(&user, abi::SET, &at, &value);
                model.insert(at, value);
            }
            if step % 16 > 0 && step > 40 {
                continue;
            }
            let (from, to) = (key(&mut numbers, kind), key(&mut numbers, kind));
            let (from, to) = if from < to { (from, to) } else { (to, from) };
            let bounds = (bound(&mut numbers, &from), bound(&mut numbers, &to));
            if from == to && !matches!(bounds, (Unbounded, _) | (_, Unbounded) | (Included(_), Included(_))) {
                continue;
            }
            let most = 1 + numbers.below(40);
            let mut expected: Pairs =
                model.range::<[u8], _>(bounds).map(|(key, value)| (key.clone(), value.clone())).collect();
            let (up, pieces) = range(&user, bounds, false, most).expect("nothing else goes on");
            assert_eq!(up, expected, "{bounds:?}");
            many += usize::from(pieces > 3);
            expected.reverse();
            assert_eq!(
                range(&user, bounds, true, most).expect("nothing else goes on").0,
                expected,
                "{bounds:?}"
            );
        }
    }
    assert!(many > 100, "{many} ranges of several pieces");
}

#[test]
fn values_that_lie_by_themselves_end_a_piece() {
    let user = open("pieces with values by themselves");
    for number in 0..20_u8 {
        change(&user, abi::SET, &[number], &vec![number; if number == 10 { 20_000 } else { 3 }]);
    }
    let keys =
        |(piece, pairs): (Piece, Pairs)| (piece, pairs.iter().map(|pair| pair.0[0]).collect::<Vec<_>>());
    let seen = |bounds, down| piece(&user, bounds, down, 30).map(keys);
    assert_eq!(seen((Unbounded, Unbounded), false), Some((Piece::More, (0..10).collect())));
    assert_eq!(seen((Excluded(&[9]), Unbounded), false), None);
    assert_eq!(seen((Excluded(&[10]), Unbounded), false), Some((Piece::End, (11..20).collect())));
    assert_eq!(seen((Unbounded, Included(&[12])), true), Some((Piece::More, vec![12, 11])));
    assert_eq!(seen((Unbounded, Included(&[10])), true), None);
    assert_eq!(seen((Included(&[3]), Excluded(&[10])), true), Some((Piece::End, (3..10).rev().collect())));
}

#[test]
fn a_range_of_nothing_has_no_pairs() {
    let user = open("pieces of nothing");
    for down in [false, true] {
        assert_eq!(piece(&user, (Unbounded, Unbounded), down, 30), Some((Piece::End, vec![])));
    }
    change(&user, abi::SET, b"", b"");
    let all = || vec![(vec![], vec![])];
    for down in [false, true] {
        assert_eq!(piece(&user, (Unbounded, Unbounded), down, 30), Some((Piece::End, all())));
        assert_eq!(piece(&user, (Included(b""), Included(b"")), down, 30), Some((Piece::End, all())));
        assert_eq!(piece(&user, (Excluded(b""), Unbounded), down, 30), Some((Piece::End, vec![])));
    }
}

/// Sets the flag when the first thread ends, also if it panics.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Some keys stay, and a writer changes their values one after the other, round by round. Other keys between
/// them come and go, so that nodes are made and freed. A scan returns all keys that stay, in order. A piece
/// is the state at one moment, so its values are of at most two successive rounds, and none is newer than
/// that of a key before it.
#[test]
fn pieces_are_of_one_moment_while_others_change_the_store() {
    const STAYS: u64 = 300;
    let user = open("pieces while others change");
    let (written, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let key = |number: u64, guest: u64| [number.to_be_bytes(), guest.to_be_bytes()].concat();
    let value = |round: u64| round.to_ne_bytes().repeat(if round.is_multiple_of(7) { 9 } else { 3 });
    for number in 0..STAYS {
        change(&user, abi::SET, &key(number, 0), &value(0));
    }
    std::thread::scope(|scope| {
        for thread in 0..3_u64 {
            let (user, written, is_over) = (&user, &written, &is_over);
            scope.spawn(move || {
                let _over = Over(is_over);
                let down = thread % 2 == 1;
                let (mut scans, mut whole) = (0, 0);
                while whole < 40 && scans < 20_000 {
                    scans += 1;
                    let before = written.load(Ordering::Acquire);
                    let (mut bounds, mut next) = ((Unbounded, Unbounded), 0);
                    let mut last;
                    while let Some((piece, pairs)) = piece(user, bounds, down, 30) {
                        let mut newest: Option<u64> = None;
                        for (found, bytes) in &pairs {
                            if !found.ends_with(&[0; 8]) {
                                assert_eq!(*bytes, [0; 24]);
                                continue;
                            }
                            let round = u64::from_ne_bytes(bytes[..8].try_into().expect("8 bytes"));
                            assert_eq!(*bytes, value(round), "a value is whole");
                            let number = if down { STAYS - 1 - next } else { next };
                            assert_eq!(*found, key(number, 0), "keys that stay are found in order");
                            next += 1;
                            assert!(
                                round >= before,
                                "round {round} is older than {before}, which was written before"
                            );
                            if let Some(other) = newest {
                                let (first, second) = if down { (round, other) } else { (other, round) };
                                assert!(
                                    first == second || first == second + 1,
                                    "{first} and {second} at one moment"
                                );
                            }
                            newest = Some(round);
                        }
                        if piece == Piece::End {
                            assert_eq!(next, STAYS, "all keys that stay are found");
                            whole += 1;
                            break;
                        }
                        last = pairs.last().expect("it is not empty").0.clone();
                        bounds = if down {
                            (Unbounded, Excluded(&last[..]))
                        } else {
                            (Excluded(&last[..]), Unbounded)
                        };
                    }
                }
                assert!(whole > 0, "no scan reached the end");
            });
        }
        let mut numbers = Numbers(1);
        for round in 1.. {
            for number in 0..STAYS {
                change(&user, abi::SET, &key(number, 0), &value(round));
                let guest = key(numbers.below(STAYS as usize) as u64, 1 + numbers.below(40) as u64);
                let code = if round / 3 % 2 == 0 { abi::SET } else { abi::DELETE };
                change(&user, code, &guest, if code == abi::SET { &[0; 24] } else { &[] });
            }
            written.store(round, Ordering::Release);
            if is_over.load(Ordering::Relaxed) {
                break;
            }
        }
    });
}
