//! Encoded operations, and answers that are valid, truncated or changed.

use super::*;

/// An answer as the engine encodes it.
fn answer(status: i32, bytes: &[u8]) -> Vec<u8> {
    let mut all = [&status.to_ne_bytes()[..], &(bytes.len() as u32).to_ne_bytes(), bytes].concat();
    all.resize(all.len().next_multiple_of(8), 0);
    all
}

fn pair(key: &[u8], value: &[u8]) -> Vec<u8> {
    let head = [(key.len() as u32).to_ne_bytes(), (value.len() as u32).to_ne_bytes()].concat();
    let mut all = [&head, key, value].concat();
    all.resize(all.len().next_multiple_of(8), 0);
    all
}

/// All answers, or an error if one is invalid.
fn read(bytes: &[u8], count: usize) -> Result<Vec<Answer<'_>>> {
    let mut answers = Answers::new(bytes);
    let all = (0..count).map(|_| answers.next()).collect::<Result<Vec<_>>>()?;
    answers.end().map(|()| all)
}

#[test]
fn operations_lie_as_the_header_says() {
    let mut ops = Ops::default();
    ops.push(Head::new(abi::SET, abi::IF_ABSENT), b"key", b"value", b"");
    let scan = Head { limit: 7, ..Head::new(abi::SCAN, abi::DOWN) };
    ops.push_range(scan, Bound::Excluded(b"a"), Bound::Included(b"bc"));
    ops.push_range(Head::new(abi::DELETE_RANGE, 0), Bound::Unbounded, Bound::Unbounded);
    let expected = [
        &b"\x02\x04\x03\0\x05\0\0\0\0\0\0\0\0\0\0\0keyvalue"[..],
        b"\x07\x70\x01\0\0\0\0\0\x02\0\0\0\x07\0\0\0abc\0\0\0\0\0",
        b"\x06\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    ]
    .concat();
    if cfg!(target_endian = "little") {
        assert_eq!(ops.bytes(), expected);
    }
    ops.clear();
    ops.push(Head::new(abi::GET, 0), &[7; abi::KEY_BYTES_MAX], b"", b"");
    assert_eq!(ops.bytes().len(), 16 + abi::KEY_BYTES_MAX);
}

#[test]
fn answers_are_taken_apart() {
    let bytes = [answer(0, b""), answer(1, b"1234567"), answer(-28, b"12345678")].concat();
    let answers = read(&bytes, 3).expect("three answers");
    assert_eq!(
        answers,
        [
            Answer { status: 0, bytes: b"" },
            Answer { status: 1, bytes: b"1234567" },
            Answer { status: -28, bytes: b"12345678" }
        ]
    );
    assert_eq!(answers[2].eight_bytes().expect("eight"), *b"12345678");
    assert!(answers[1].eight_bytes().is_err());
    assert!(read(&bytes, 2).is_err(), "one is left over");
    assert!(read(&bytes, 4).is_err(), "one is missing");
    assert!(read(&[], 0).is_ok());
}

#[test]
fn pairs_are_taken_apart() {
    let bytes = [pair(b"", b""), pair(b"key", b"value"), pair(&[9; 4096], b"")].concat();
    let whole = Answer { status: 0, bytes: &bytes };
    let pairs: Vec<_> = whole.pairs().collect::<Result<_>>().expect("three pairs");
    assert_eq!(pairs, [(&b""[..], &b""[..]), (b"key", b"value"), (&[9; 4096], b"")]);
    // A key that is longer than the limit.
    let bytes = pair(&[9; 4097], b"");
    assert!(Answer { status: 0, bytes: &bytes }.pairs().next().expect("one").is_err());
}

/// Answers cut to every length are errors; pairs cut to every length are errors, except at the end of a pair.
#[test]
fn what_is_cut_off_is_an_error() {
    let bytes = [answer(0, b"abc"), answer(3, &[pair(b"k", b"v"), pair(b"l", b"")].concat())].concat();
    for end in 0..bytes.len() {
        assert!(read(&bytes[..end], 2).is_err(), "{end} bytes");
    }
    let pairs = [pair(b"k", b"v"), pair(b"longer than that", b"and more")].concat();
    for end in 1..pairs.len() {
        let mut pairs = Answer { status: 0, bytes: &pairs[..end] }.pairs();
        let seen = pairs.by_ref().map(|pair| pair.is_ok()).collect::<Vec<_>>();
        assert_eq!(seen.contains(&false), end != 16, "{end} bytes");
        assert!(pairs.next().is_none(), "it goes on after an error");
    }
}

/// Any number in place of a length gives an answer within the buffer, or an error.
#[test]
fn any_length_is_survived() {
    let pairs = [pair(b"key", b"a value"), pair(b"other", b"")].concat();
    let whole = [answer(0, b"12345678"), answer(0, &pairs), answer(0, b"")].concat();
    let lengths = (0..200).chain([0x1000, 0x1001, 0xFFFF, 1 << 31]).chain(u32::MAX - 9..=u32::MAX);
    for length in lengths {
        for at in (0..whole.len()).step_by(4) {
            let mut bytes = whole.clone();
            bytes[at..at + 4].copy_from_slice(&length.to_ne_bytes());
            let mut answers = Answers::new(&bytes);
            let mut inside = 0;
            while let Ok(answer) = answers.next() {
                inside += answer.bytes.len();
                let in_pairs: usize =
                    answer.pairs().map_while(Result::ok).map(|(key, value)| key.len() + value.len()).sum();
                assert!(in_pairs <= answer.bytes.len());
            }
            assert!(inside <= bytes.len());
        }
    }
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
        let mut answers = Answers::new(&bytes);
        while let Ok(answer) = answers.next() {
            let _ = answer.eight_bytes();
            answer.pairs().for_each(drop);
        }
        let _ = answers.end();
    }
}
