//! The parser over whole, split and damaged input.

use super::*;
use proptest::prelude::*;

const LIMITS: Limits = Limits { request_bytes: 1 << 20, is_known: true };

/// Feeds pieces as a connection does, and returns all requests.
fn feed<'p>(
    pieces: impl IntoIterator<Item = &'p [u8]>,
    limits: Limits,
) -> Result<Vec<Vec<Vec<u8>>>, Malformed> {
    let (mut parser, mut input, mut requests) = (Parser::default(), Vec::new(), Vec::new());
    for piece in pieces {
        input.extend_from_slice(piece);
        while parser.next(&input, limits)? {
            requests.push((0..parser.len()).map(|number| parser.arg(&input, number).to_vec()).collect());
        }
        input.drain(..parser.consume());
    }
    Ok(requests)
}

fn encode(request: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", request.len()).into_bytes();
    for arg in request {
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn words(line: &str) -> Result<Vec<Vec<Vec<u8>>>, Malformed> {
    feed([line.as_bytes()], LIMITS)
}

#[test]
fn requests_are_the_same_however_they_are_split() {
    let all = b"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\nPING\r\n*0\r\n\r\n*-10\r\nSET \"a \\x41\\n\" 'b\\''\n*1\r\n$0\r\n\r\n";
    let expected = feed([&all[..]], LIMITS).unwrap();
    let shown: Vec<usize> = expected.iter().map(Vec::len).collect();
    assert_eq!(shown, [2, 1, 0, 0, 0, 3, 1]);
    assert_eq!(expected[0], [&b"GET"[..], b"a\r\nb"]);
    assert_eq!(expected[5], [&b"SET"[..], b"a A\n", b"b'"]);
    for at in 0..all.len() {
        assert_eq!(feed([&all[..at], &all[at..]], LIMITS).unwrap(), expected, "split at {at}");
    }
    assert_eq!(feed(all.chunks(1), LIMITS).unwrap(), expected);
}

#[test]
fn what_is_no_request_is_refused_with_the_reason() {
    for (bytes, why) in [
        ("*3000000000\r\n", "invalid multibulk length"),
        ("*x\r\n", "invalid multibulk length"),
        ("*\r\n", "invalid multibulk length"),
        ("*1048577\r\n", "invalid multibulk length"),
        ("*1\r\n:1\r\n", "expected '$', got ':'"),
        ("*1\r\n\0", "expected '$', got '\\u{0}'"),
        ("*1\r\n$-1\r\n", "invalid bulk length"),
        ("*1\r\n$x\r\n", "invalid bulk length"),
        ("*1\r\n$1048577\r\n", "invalid bulk length"),
        ("*1\r\n$18446744073709551616\r\n", "invalid bulk length"),
        ("set \"a", "unbalanced"),
        ("set \"a\"b c\n", "unbalanced quotes in request"),
        ("set 'a\n", "unbalanced quotes in request"),
        ("set \"\\x4\"\n", "unbalanced quotes in request"),
    ] {
        match words(bytes) {
            Err(Malformed(found)) => assert_eq!(found, why, "{bytes:?}"),
            Ok(requests) => assert!(!bytes.ends_with('\n') && requests.is_empty(), "{bytes:?} {requests:?}"),
        }
    }
}

#[test]
fn every_limit_holds_at_its_edge() {
    let limits = Limits { request_bytes: 100, is_known: true };
    // "*1\r\n$89\r\n" has 9 bytes, and the end of the string 2.
    let bytes = encode(&[vec![b'x'; 89]]);
    assert_eq!(feed([&bytes[..]], limits).unwrap().len(), 1);
    assert!(feed([&encode(&[vec![b'x'; 90]])[..]], limits).is_err());
    assert!(feed([&b"*1\r\n$101\r\n"[..]], limits).is_err());

    let unknown = Limits { request_bytes: 1 << 20, is_known: false };
    assert_eq!(feed([&b"*10\r\n"[..]], unknown), Ok(vec![]));
    assert!(feed([&b"*11\r\n"[..]], unknown).is_err());
    assert_eq!(feed([&b"*1\r\n$16384\r\n"[..]], unknown), Ok(vec![]));
    assert!(feed([&b"*1\r\n$16385\r\n"[..]], unknown).is_err());

    for mark in ["", "*", "*1\r\n$"] {
        let longest = vec![b'1'; LINE_BYTES_MAX - mark.len().min(1)];
        let mut bytes = [mark.as_bytes(), &longest].concat();
        assert_eq!(feed([&bytes[..]], LIMITS), Ok(vec![]), "{mark:?}");
        bytes.push(b'1');
        assert!(feed([&bytes[..]], LIMITS).is_err(), "{mark:?}");
    }
}

#[test]
fn a_claim_allocates_nothing() {
    let mut parser = Parser::default();
    let limits = Limits { request_bytes: 1 << 30, is_known: true };
    assert_eq!(parser.next(b"*1048576\r\n$536870912\r\nx", limits), Ok(false));
    assert!(parser.memory_bytes() < 1024);
}

#[test]
fn memory_of_large_requests_is_given_back() {
    let mut parser = Parser::default();
    let bytes = encode(&vec![Vec::new(); 10_000]);
    assert_eq!(parser.next(&bytes, LIMITS), Ok(true));
    assert_eq!(parser.consume(), bytes.len());
    assert!(parser.memory_bytes() > 4096);
    parser.shrink();
    assert_eq!(parser.memory_bytes(), 0);
}

proptest! {
    #[test]
    fn any_requests_arrive_in_any_pieces(
        requests in prop::collection::vec(prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..6), 1..6),
        size in 1_usize..64,
    ) {
        let bytes: Vec<u8> = requests.iter().flat_map(|request| encode(request)).collect();
        prop_assert_eq!(feed(bytes.chunks(size), LIMITS), Ok(requests));
    }

    #[test]
    fn damage_never_panics_and_pieces_do_not_matter(
        mut request in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..10), 1..4).prop_map(|r| encode(&r)),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let at = at.index(request.len());
        request[at] = byte;
        let whole = feed([&request[..]], LIMITS);
        let pieces = feed(request.chunks(1), LIMITS);
        prop_assert_eq!(whole, pieces);
    }
}
