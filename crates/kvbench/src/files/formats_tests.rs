//! Detection, conversion, and the ancestor's faults that concern files.

use super::testing::{pair, read_all, scratch};
use super::*;
use clap::ValueEnum;

fn write(path: &Path, format: Format, pairs: &[Pair]) {
    let mut sink = create(path, format, false, Some(pairs.len() as u64)).unwrap();
    pairs.iter().for_each(|pair| sink.put(pair).unwrap());
    sink.finish().unwrap();
}

/// The formats that hold any words, and are written.
fn of_words() -> impl Iterator<Item = Format> {
    let others = [Format::SosdU64, Format::SosdU32, Format::Ycsb];
    Format::value_variants().iter().copied().filter(move |format| !others.contains(format))
}

fn read(path: &Path, format: Option<Format>) -> io::Result<Vec<Pair>> {
    let mut reader = Reader::open(path, format, false)?;
    let (mut pairs, mut pair) = (Vec::new(), Pair::default());
    while reader.next(&mut pair)? {
        pairs.push(pair.clone());
    }
    Ok(pairs)
}

#[test]
fn formats_are_found_out_without_a_telling_name() {
    let (_directory, path) = scratch("data");
    let words = [pair("to", None), pair("be", None), pair("or", None)];
    for format in of_words().filter(|format| *format != Format::Csv) {
        write(&path, format, &words);
        let expected = if format == Format::BinSliceKv { Format::BinTextKv } else { format };
        assert_eq!(Format::of_file(&path).unwrap(), expected);
        let pairs = read(&path, None).unwrap();
        assert!(pairs.iter().zip(&words).all(|(pair, word)| pair.key == word.key), "{format:?}");
    }
}

/// The ancestor took what it did not know, printed empty results and ended with success.
#[test]
fn what_is_of_no_format_is_an_error_that_tells_the_formats() {
    let (_directory, path) = scratch("data.bin");
    for bytes in [&b"\x05\0\0\0\x01\0\0\0x"[..], b"", b"\0", b"\xff\0\xff\0\xff\0\xff\0\xff"] {
        std::fs::write(&path, bytes).unwrap();
        let error = Format::of_file(&path).unwrap_err().to_string();
        assert!(error.contains("data.bin") && error.contains("bin-text-kv"), "{error}");
    }
    for format in [Format::BinText, Format::BinText1, Format::BinTextKv, Format::Kvb] {
        std::fs::write(&path, b"not of this format at all").unwrap();
        let error = read(&path, Some(format)).unwrap_err().to_string();
        assert!(error.contains("data.bin: byte "), "{format:?}: {error}");
    }
}

#[test]
fn what_cannot_be_counted_is_refused_before_anything_is_written() {
    let (_directory, path) = scratch("x");
    for format in [Format::BinText, Format::BinTextKv, Format::BinSliceKv] {
        assert!(create(&path, format, false, Some(1 << 32)).is_err(), "{format:?}");
        assert!(create(&path, format, false, Some((1 << 32) - 1)).is_ok(), "{format:?}");
    }
    assert!(create(&path, Format::Kvb, false, Some(1 << 40)).is_ok());
    assert!(create(&path, Format::BinText1, false, Some(1 << 40)).is_ok());
}

#[test]
fn duplicates_are_counted_and_left_out_when_asked() {
    let (_directory, path) = scratch("in");
    let out = path.with_file_name("out");
    let pairs = [pair("a", Some("1")), pair("b", Some("2")), pair("a", Some("3")), pair("a", Some("4"))];
    write(&path, Format::Kvb, &pairs);
    for (unique, left) in [(false, &pairs[..]), (true, &pairs[..2])] {
        let mut reader = Reader::open(&path, None, false).unwrap();
        let mut sink = create(&out, Format::BinTextKv, false, None).unwrap();
        let done = convert(&mut reader, sink.as_mut(), unique, &mut |_, _| Ok(())).unwrap();
        sink.finish().unwrap();
        assert_eq!((done.read, done.written, done.duplicates), (4, left.len() as u64, Some(2)));
        assert_eq!(read(&out, Some(Format::BinTextKv)).unwrap(), left);
    }
}

#[test]
fn a_file_is_inspected() {
    let (_directory, path) = scratch("in.kvb");
    let mut pairs = vec![pair("b", Some("")), pair("a\0", Some("xyz"))];
    pairs.extend((0..98).map(|n| pair(&format!("c{n:03}"), Some(&"v".repeat(n)))));
    pairs.push(pair("c097", Some("again")));
    write(&path, Format::Kvb, &pairs);
    let inspected = inspect(&mut Reader::open(&path, None, false).unwrap(), &mut |_| ()).unwrap();
    assert_eq!((inspected.pairs, inspected.duplicates, inspected.keys_with_nul), (101, Some(1), 1));
    let keys = &inspected.keys.lengths;
    assert_eq!((keys.min, keys.p50, keys.max, inspected.keys.bytes), (1, 4, 4, 1 + 2 + 99 * 4));
    let values = inspected.values.unwrap();
    assert_eq!((values.lengths.min, values.lengths.max), (0, 97));
    assert!(values.lengths.mean > 40.0 && values.lz4_ratio > 20.0 && values.entropy_bits < 0.2);
    assert_eq!((inspected.order.ascending, inspected.order.equal, inspected.order.descending), (98, 1, 1));
    assert_eq!((inspected.order.name(), inspected.first.len()), ("not sorted", 5));
    assert_eq!(inspected.first[1].key, "a\\x00");
    write(&path, Format::Kvb, &[]);
    let inspected = inspect(&mut Reader::open(&path, None, false).unwrap(), &mut |_| ()).unwrap();
    assert_eq!((inspected.pairs, inspected.keys.lengths.min, inspected.keys.lengths.mean), (0, 0, 0.0));
}

#[test]
fn the_last_bytes_of_keys_survive_every_format() {
    let (_directory, path) = scratch("x");
    let keys: Vec<_> = (0..10)
        .flat_map(|n| {
            [format!("key{n}"), format!("{}{n}", "k".repeat(255)), format!("{}{n}", "k".repeat(9000))]
        })
        .map(|key| pair(&key, Some("v")))
        .collect();
    for format in of_words() {
        write(&path, format, &keys);
        let back = read(&path, Some(format)).unwrap();
        assert!(
            back.len() == 30 && back.iter().zip(&keys).all(|(back, pair)| back.key == pair.key),
            "{format:?}"
        );
        assert!(!format.holds_values() || back == keys, "{format:?}");
    }
    write(&path, Format::Text, &keys);
    let mut reader = container::Reader::open(&path);
    assert!(reader.as_mut().map(|reader| read_all(reader)).is_err(), "the last one is no container");
}

#[test]
fn fields_and_lines_hold_any_bytes() {
    let (_directory, path) = scratch("x");
    let mut pairs =
        vec![pair("", Some("")), pair("a,b", Some("\"quoted\"\r\n\0")), pair("key", Some("value"))];
    pairs.push(Pair { key: (0..=255).collect(), value: vec![0xff, 0], valued: true });
    let keys: Vec<_> = pairs.iter().map(|of| Pair { key: of.key.clone(), ..Pair::default() }).collect();
    for format in [Format::Csv, Format::Jsonl] {
        for pairs in [&pairs, &keys] {
            write(&path, format, pairs);
            assert_eq!(&read(&path, Some(format)).unwrap(), pairs, "{format:?}");
        }
    }
    std::fs::write(
        &path,
        "{\"key\":\"a\",\"value\":\"\\u00fc\"}\r\n\n{\"value_hex\":\"00Ff\",\"key_hex\":\"62\"}",
    )
    .unwrap();
    let second = Pair { key: b"b".to_vec(), value: vec![0, 255], valued: true };
    assert_eq!(read(&path, None).unwrap(), [pair("a", Some("\u{fc}")), second]);
    std::fs::write(&path, "key,value\nkey,value\n\"a\"\"b\",\n").unwrap();
    assert_eq!(read(&path, None).unwrap(), [pair("key", Some("value")), pair("a\"b", Some(""))]);
}

#[test]
fn lines_that_are_no_pairs_are_told_with_their_place() {
    let (_directory, path) = scratch("x");
    for (format, text, at) in [
        (Format::Csv, "a,b\nc,d,e\n", "byte 4: a line of 3 fields"),
        (Format::Csv, "a,b\nc\n", "byte 4: pair 1 has none"),
        (Format::Jsonl, "{\"key\":\"a\"}\n{\"key\":\"b\",\"value\":\"c\"}", "byte 12: pair 1 has a value"),
        (Format::Jsonl, "{\"key\":\"a\"}\n[]", "byte 12: "),
        (Format::Jsonl, "{\"key\":\"a\",\"other\":1}", "byte 0: unknown field"),
        (Format::Jsonl, "{\"value\":\"a\"}", "byte 0: no key"),
        (Format::Jsonl, "{\"key_hex\":\"6\"}", "byte 0: key_hex is not hexadecimal"),
        (Format::Jsonl, "{\"key_hex\":\"61\",\"key\":\"a\"}", "byte 0: both key and key_hex"),
        (Format::Ycsb, "x\nINSERT usertable user1", "byte 2: an INSERT without"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = read(&path, Some(format)).unwrap_err().to_string();
        assert!(error.contains(at), "{text:?}: {error}");
    }
}

#[test]
fn numbers_of_sosd_keep_their_order() {
    let (_directory, path) = scratch("books_3_uint64");
    let numbers = [1u64, 258, u64::MAX];
    let bytes: Vec<u8> = [3].iter().chain(&numbers).flat_map(|number: &u64| number.to_le_bytes()).collect();
    std::fs::write(&path, &bytes).unwrap();
    let pairs = read(&path, None).unwrap();
    assert!(
        pairs.iter().zip(numbers).all(|(pair, number)| pair.key == number.to_be_bytes()) && pairs.len() == 3
    );
    let other = path.with_file_name("other");
    write(&other, Format::SosdU64, &pairs);
    assert_eq!(
        (std::fs::read(&other).unwrap(), Format::of_file(&other).unwrap()),
        (bytes.clone(), Format::SosdU64)
    );
    let narrow: Vec<_> =
        [7u32, 5].map(|number| Pair { key: number.to_be_bytes().to_vec(), ..Pair::default() }).to_vec();
    write(&other, Format::SosdU32, &narrow);
    assert_eq!(std::fs::read(&other).unwrap(), *b"\x02\0\0\0\0\0\0\0\x07\0\0\0\x05\0\0\0");
    assert_eq!(read(&other, Some(Format::SosdU32)).unwrap(), narrow);
    let mut sink = create(&other, Format::SosdU64, false, None).unwrap();
    assert!(sink.put(&pair("seven77", None)).unwrap_err().to_string().contains("7 bytes"));
    for len in 0..bytes.len() {
        std::fs::write(&path, &bytes[..len]).unwrap();
        assert!(read(&path, None).unwrap_err().to_string().contains("byte 0: "), "cut to {len}");
    }
}

#[test]
fn what_ycsb_loads_is_read() {
    let (_directory, path) = scratch("trace");
    let text = "INSERT usertable user1 [ field0=a b field1=[] ]\nREAD usertable user1 [ <all fields>]\nINSERT t user2 []\n";
    std::fs::write(&path, text).unwrap();
    let mut reader = Reader::open(&path, None, false).unwrap();
    let mut pairs = vec![Pair::default(); 2];
    assert!(
        pairs.iter_mut().all(|pair| reader.next(pair).unwrap())
            && !reader.next(&mut Pair::default()).unwrap()
    );
    assert_eq!(pairs, [pair("user1", Some("field0=a b field1=[]")), pair("user2", Some(""))]);
    assert_eq!(reader.remark().unwrap(), "1 lines that load nothing were passed over");
    assert!(create(&path, Format::Ycsb, false, None).is_err());
}
