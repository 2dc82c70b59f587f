//! Answers that no engine should give: each becomes an outcome or an error.

use super::*;
use forrest_engine::ErrorKind;

fn store() -> Store {
    Store::open(Kind::User, "answers", &Options::default(), false).expect("a store of this process")
}

const STATUSES: [i32; 12] = [i32::MIN, -4096, -34, -28, -22, -12, -1, 0, 1, 2, 3, i32::MAX];

#[test]
fn changes_come_to_what_they_can_or_to_an_error() {
    let store = store();
    let (key, value) = (&b"key"[..], &b"value"[..]);
    let ops = [
        Op::Set { key, value },
        Op::Delete { key },
        Op::Add { key, delta: 1 },
        Op::CompareAndSwap { key, expected: None, new: Some(value) },
        Op::DeleteRange { start: key, end: None },
        Op::CompareRange { start: key, end: None, pairs: b"" },
    ];
    for (op, status) in ops.iter().flat_map(|op| STATUSES.map(|status| (op, status))) {
        for bytes in [&b""[..], b"seven b", b"eight by", b"nine byte", &[0xFF; 8]] {
            let outcome = store.outcome(op, &Answer { status, bytes });
            let is_possible = match (op, status) {
                (Op::Set { .. }, abi::DONE) => true,
                (Op::Delete { .. }, abi::DONE | abi::ABSENT) => true,
                (Op::Add { .. } | Op::DeleteRange { .. }, abi::DONE) => bytes.len() == 8,
                (Op::CompareAndSwap { .. }, abi::DONE | abi::ABSENT | abi::DIFFERS) => true,
                (Op::CompareRange { .. }, abi::DONE | abi::DIFFERS) => true,
                _ => false,
            };
            assert_eq!(outcome.is_ok(), is_possible, "{op:?} with status {status} and {bytes:?}");
            if let Err(error) = outcome
                && status < 0
            {
                assert!(error.to_string().len() < 200, "{error}");
            }
        }
    }
}

#[test]
fn gets_come_to_what_they_can_or_to_an_error() {
    for status in STATUSES {
        let found = found(&Answer { status, bytes: b"value" });
        match status {
            abi::DONE => assert_eq!(found.unwrap(), Some(&b"value"[..])),
            abi::ABSENT => assert_eq!(found.unwrap(), None),
            _ => assert_eq!(found.unwrap_err().kind(), ErrorKind::Io),
        }
    }
}

/// A piece that is not the last one must have a last key, from which the scan goes on.
#[test]
fn a_piece_that_leads_nowhere_is_an_error() {
    let pairs = |bytes| last_key(Answer { status: abi::MORE, bytes }.pairs());
    assert!(pairs(&[]).is_err());
    assert!(pairs(&[0; 4]).is_err());
    assert_eq!(pairs(&[0; 8]).unwrap(), b"");
    assert!(pairs(&[0xFF; 64]).is_err());
}

#[test]
fn it_conforms() {
    for seed in 0..30 {
        let options = Options::default();
        let store = Store::open(Kind::User, &format!("conformance {seed}"), &options, false)
            .expect("a store of this process");
        forrest_engine::conformance::check(&store, seed, 400, |_| {});
    }
}

/// Each piece has a part of the range and its pairs, and together they have all of it.
#[test]
fn a_long_comparison_is_done_in_pieces() {
    let mut pairs = Vec::new();
    for key in 0..10_u8 {
        forrest_engine::pairs::push(&mut pairs, &[b'k', key], &[key; 6]);
    }
    // A pair takes 16 bytes in the engine.
    for (most, expected) in [(16, 10), (31, 10), (32, 5), (48, 4), (159, 2), (160, 1), (1000, 1)] {
        let mut pieces = Vec::new();
        compare_in_pieces((b"a", Some(b"z")), &pairs, most, |piece| pieces.push(piece));
        assert_eq!(pieces.len(), expected, "{most}");
        let mut all = Vec::new();
        let mut from = &b"a"[..];
        for piece in pieces {
            let Op::CompareRange { start, end, pairs } = piece else { unreachable!("it compares") };
            assert_eq!(start, from);
            assert!(forrest_engine::pairs::check(pairs, start, end).is_ok());
            (from, all) = (end.expect("an end"), [&all[..], pairs].concat());
        }
        assert_eq!((from, all), (&b"z"[..], pairs.clone()));
    }
    let mut pieces = 0;
    compare_in_pieces((b"a", None), &[], 1, |_| pieces += 1);
    assert_eq!(pieces, 1);
}
