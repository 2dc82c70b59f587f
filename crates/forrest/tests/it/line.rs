//! The text form of operations: it can hold any bytes, and errors name their position.

use forrest::line::{Line, Words, is_blank, quote};
use forrest::{Op, line::ParseError};
use proptest::prelude::*;

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..20),
        any::<String>().prop_map(String::into_bytes),
        proptest::collection::vec(proptest::sample::select(&b" \t\n\r\"\\-@#x0\x7F\x00\xFF\xC3"[..]), 0..8),
        Just(b"-".to_vec()),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let optional = || proptest::option::of(bytes());
    prop_oneof![
        (bytes(), bytes()).prop_map(|(key, value)| Op::Set { key, value }),
        bytes().prop_map(|key| Op::Delete { key }),
        (bytes(), any::<i64>()).prop_map(|(key, delta)| Op::Add { key, delta }),
        (bytes(), optional(), optional()).prop_map(|(key, expected, new)| Op::CompareAndSwap {
            key,
            expected,
            new
        }),
        (bytes(), optional()).prop_map(|(start, end)| Op::DeleteRange { start, end }),
        (bytes(), optional(), proptest::collection::vec((bytes(), bytes()), 0..4)).prop_map(
            |(start, end, expected)| {
                let Op::CompareRange { pairs, .. } = Op::compare_range(.., expected) else { unreachable!() };
                Op::CompareRange { start, end, pairs }
            }
        ),
    ]
}

proptest! {
    #[test]
    fn operations_survive_being_printed(op in op()) {
        let text = op.to_string();
        prop_assert!(!text.chars().any(char::is_control), "{text:?}");
        prop_assert_eq!(text.parse::<Op>().unwrap(), op.clone());
        // Also with the line end of a line from a file.
        prop_assert_eq!(format!("{text}\r\n").parse::<Op>().unwrap(), op);
    }

    #[test]
    fn lines_survive_being_printed(op in op(), name in proptest::option::of("\\PC{1,9}|[ \t\n\"@]{1,4}")) {
        let line = Line { keyspace: name, op };
        let text = line.to_string();
        prop_assert!(!is_blank(&text));
        prop_assert_eq!(text.parse::<Line>().unwrap(), line);
    }

    #[test]
    fn words_survive_being_quoted(words in proptest::collection::vec(bytes(), 0..6)) {
        let text: Vec<String> = words.iter().map(|word| quote(word).to_string()).collect();
        let text = text.join(" ");
        let mut found = Words::new(&text);
        for word in &words {
            prop_assert_eq!(&found.next("a word").unwrap().bytes, word);
        }
        prop_assert_eq!(found.end(), Ok(()));
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in any::<String>()) {
        for result in [text.parse::<Line>().map(|line| line.to_string()), text.parse::<Op>().map(|op| op.to_string())] {
            match result {
                Ok(printed) => prop_assert!(printed.parse::<Line>().is_ok()),
                Err(error) => prop_assert!(error.column >= 1 && error.column <= text.chars().count() + 1),
            }
        }
    }

    #[test]
    fn any_words_are_parsed_or_refused(text in "(set|add|delete|compare-and-swap|delete-range)( [a-z\"\\\\x0-9-]{0,6}){0,4}") {
        if let Ok(op) = text.parse::<Op>() {
            prop_assert_eq!(op.to_string().parse::<Op>().unwrap(), op);
        }
    }
}

#[test]
fn words_have_two_forms() {
    let cases: [(&str, &[u8]); 9] = [
        ("oak", b"oak"),
        ("\"oak\"", b"oak"),
        ("a\\x20b", b"a b"),
        ("\"a b\"", b"a b"),
        (r#""\n\r\t\"\\\x00\xfF""#, b"\n\r\t\"\\\x00\xFF"),
        ("\u{fc}", "\u{fc}".as_bytes()),
        ("a@#'=b", b"a@#'=b"),
        ("--", b"--"),
        ("\"\"", b""),
    ];
    for (text, bytes) in cases {
        assert_eq!(format!("delete {text}").parse::<Op>(), Ok(Op::Delete { key: bytes.to_vec() }));
    }
    let printed: [(&[u8], &str); 7] = [
        (b"it's", "it's"),
        (b"-", "\"-\""),
        (b"two words\n", r#""two words\n""#),
        ("Z\u{fc}rich".as_bytes(), "Z\u{fc}rich"),
        ("\u{202e}\u{a0}".as_bytes(), r#""\xe2\x80\xae\xc2\xa0""#),
        (b"half \xC3", r#""half \xc3""#),
        (b"\\", r#""\\""#),
    ];
    for (bytes, text) in printed {
        assert_eq!(quote(bytes).to_string(), text);
    }
}

#[test]
fn a_dash_is_absence_where_there_can_be_one() {
    let swap = |text: &str| match text.parse().unwrap() {
        Op::CompareAndSwap { key, expected, new } => (key, expected, new),
        other => panic!("{other}"),
    };
    assert_eq!(swap("compare-and-swap - - \"-\""), (b"-".to_vec(), None, Some(b"-".to_vec())));
    assert_eq!(swap("compare-and-swap k \\x2d -"), (b"k".to_vec(), Some(b"-".to_vec()), None));
    assert_eq!("delete-range - -".parse(), Ok(Op::DeleteRange { start: b"-".to_vec(), end: None }));
}

#[test]
fn errors_say_where_and_what() {
    let cases = [
        ("", "column 1: expected an operation, found the end of the line"),
        ("  ", "column 3: expected an operation, found the end of the line"),
        (
            "compare-range a",
            "column 16: expected the key before which the range ends, or -, found the end of the line",
        ),
        ("compare-range a - k", "column 20: expected the value of this key, found the end of the line"),
        (
            "put a b",
            "column 1: expected set, set-for, set-until, delete, add, merge, compare-and-swap, delete-range or compare-range, found put",
        ),
        ("set a", "column 6: expected a value, found the end of the line"),
        ("set a b c", "column 9: expected the end of the line, found `c`"),
        ("\tset \"a", "column 8: expected a closing quote, found the end of the line"),
        ("set \"a\"b c", "column 8: expected a space after the closing quote, found `b`"),
        ("set a\"b c", "column 6: expected no quote inside a bare word (write \\\"), found `\"`"),
        ("set \\q b", "column 6: expected one of n r t x \" \\ after a backslash, found `q`"),
        ("set \\", "column 6: expected one of n r t x \" \\ after a backslash, found the end of the line"),
        ("set \\x4g b", "column 8: expected a hexadecimal digit, found `g`"),
        (
            "set \u{fc}\u{1} b",
            "column 6: expected a printable character (write \\xNN for any byte), found `\\u{1}`",
        ),
        ("add a 1.5", "column 7: expected a decimal integer of 64 bits, found 1.5"),
        (
            "add a 9223372036854775808",
            "column 7: expected a decimal integer of 64 bits, found 9223372036854775808",
        ),
        ("add a", "column 6: expected an integer, found the end of the line"),
        ("compare-and-swap k", "column 19: expected the expected value or -, found the end of the line"),
        (
            "delete-range a",
            "column 15: expected the key before which the range ends, or -, found the end of the line",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(text.parse::<Op>().unwrap_err().to_string(), expected, "{text:?}");
    }
    let name = |text: &str| text.parse::<Line>().unwrap_err().to_string();
    assert_eq!(name("@ set a b"), "column 1: expected the name of a keyspace, in UTF-8, after @, found @");
    assert_eq!(name("@x"), "column 3: expected an operation, found the end of the line");
    let long = format!("{} a", "x".repeat(100));
    let found = format!("{}...", "x".repeat(40));
    assert_eq!(long.parse::<Op>().unwrap_err().found, found);
    let error = forrest::Error::from(ParseError { column: 1, expected: "x".into(), found: "y".into() });
    assert_eq!(error.to_string(), "invalid argument: column 1: expected x, found y");
}

#[test]
fn blank_lines_and_comments_mean_nothing() {
    for line in ["", " \t", "# set a b", "  # indented", "\r\n", "\n"] {
        assert!(is_blank(line), "{line:?}");
    }
    for line in ["set # b", "\"#\"", "x"] {
        assert!(!is_blank(line), "{line:?}");
    }
}
