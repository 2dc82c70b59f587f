//! Compares every number and every struct of `kernel/llds/uapi/llds.h` with [`abi`](super).

use super::*;
use rustix::ioctl::{Direction, Opcode, opcode};
use std::collections::BTreeMap;

const LAYOUTS: [Layout; 11] = [
    Version::LAYOUT,
    Op::LAYOUT,
    Answer::LAYOUT,
    Pair::LAYOUT,
    Run::LAYOUT,
    Attach::LAYOUT,
    Destroy::LAYOUT,
    List::LAYOUT,
    Listed::LAYOUT,
    Stats::LAYOUT,
    Header::LAYOUT,
];

/// The numbers of `abi`, by their names in the header.
fn numbers() -> BTreeMap<String, i128> {
    let all: [(&str, i128); 37] = [
        ("ABI", ABI.into()),
        ("KEY_BYTES_MAX", KEY_BYTES_MAX as i128),
        ("NAME_BYTES_MAX", NAME_BYTES_MAX as i128),
        ("ATOMIC_BYTES_MAX", ATOMIC_BYTES_MAX as i128),
        ("IOC_MAGIC", MAGIC.into()),
        ("GET", GET.into()),
        ("SET", SET.into()),
        ("DELETE", DELETE.into()),
        ("ADD", ADD.into()),
        ("SWAP", SWAP.into()),
        ("DELETE_RANGE", DELETE_RANGE.into()),
        ("COMPARE", COMPARE.into()),
        ("SCAN", SCAN.into()),
        ("NO_VALUE", NO_VALUE.into()),
        ("NO_OTHER", NO_OTHER.into()),
        ("IF_ABSENT", IF_ABSENT.into()),
        ("IF_PRESENT", IF_PRESENT.into()),
        ("BEHIND_KEY", BEHIND_KEY.into()),
        ("WITH_OTHER", WITH_OTHER.into()),
        ("DOWN", DOWN.into()),
        ("DONE", DONE.into()),
        ("ABSENT", ABSENT.into()),
        ("DIFFERS", DIFFERS.into()),
        ("MORE", MORE.into()),
        ("MAP_HEADER", MAP_HEADER.into()),
        ("MAP_BLOCKS", MAP_BLOCKS.into()),
        ("MAP_BUCKETS", MAP_BUCKETS.into()),
        ("MAP_BYTES", MAP_BYTES.into()),
        ("MAPPABLE", MAPPABLE.into()),
        ("RUN_ATOMIC", RUN_ATOMIC.into()),
        ("CREATE", CREATE.into()),
        ("EXCLUSIVE", EXCLUSIVE.into()),
        ("OF_USER", OF_USER.into()),
        ("ATTACHED", ATTACHED.into()),
        ("NUMA_LOCAL", NUMA_LOCAL.into()),
        ("NUMA_INTERLEAVE", NUMA_INTERLEAVE.into()),
        ("NUMA_NODE", NUMA_NODE.into()),
    ];
    all.map(|(name, number)| (format!("LLDS_{name}"), number)).into()
}

fn header() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel/llds/uapi/llds.h");
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    // Comments may contain anything, so remove them.
    let mut code = String::new();
    let mut rest = &text[..];
    while let Some((before, comment)) = rest.split_once("/*") {
        code += before;
        rest = comment.split_once("*/").expect("comments end").1;
    }
    code + rest
}

fn number(text: &str) -> Option<i128> {
    let text = text.trim_end_matches(['U', 'L']);
    match text.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Names and definitions of all macros with a definition.
fn macros(header: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = header.lines().filter_map(|line| line.strip_prefix("#define "));
    let parts = lines.map(|line| line.split_once([' ', '\t']).unwrap_or((line, "")));
    parts.map(|(name, definition)| (name, definition.trim())).filter(|(_, definition)| !definition.is_empty())
}

#[test]
fn numbers_are_those_of_the_header() {
    let header = header();
    let found: BTreeMap<String, i128> = macros(&header)
        .filter(|(_, definition)| !definition.starts_with("_IO"))
        .map(|(name, definition)| (name.to_owned(), number(definition).expect(name)))
        .collect();
    assert_eq!(found, numbers());
}

#[test]
fn commands_are_those_of_the_header() {
    let commands: [(&str, Opcode); 6] = [
        ("LLDS_IOC_VERSION", command::VERSION),
        ("LLDS_IOC_RUN", command::RUN),
        ("LLDS_IOC_ATTACH", command::ATTACH),
        ("LLDS_IOC_DESTROY", command::DESTROY),
        ("LLDS_IOC_LIST", command::LIST),
        ("LLDS_IOC_STATS", command::STATS),
    ];
    let header = header();
    let mut found = 0;
    for (name, definition) in macros(&header).filter(|(_, definition)| definition.starts_with("_IO")) {
        let (_, opcode) = commands.iter().find(|(known, _)| *known == name).expect(name);
        let (direction, arguments) =
            definition.strip_suffix(')').and_then(|text| text.split_once('(')).expect(name);
        let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
        let [magic, at, argument] = arguments[..] else { panic!("{name} is {definition}") };
        assert_eq!(magic, "LLDS_IOC_MAGIC");
        let argument = argument.strip_prefix("struct ").expect(name);
        let bytes = LAYOUTS.iter().find(|layout| layout.name == argument).expect(name).bytes;
        let direction = match direction {
            "_IOR" => Direction::Read,
            "_IOW" => Direction::Write,
            "_IOWR" => Direction::ReadWrite,
            other => panic!("{name} is {other}"),
        };
        let at = number(at).and_then(|at| u8::try_from(at).ok()).expect(name);
        assert_eq!(*opcode, opcode::from_components(direction, MAGIC, at, bytes), "{name}");
        found += 1;
    }
    assert_eq!(found, commands.len());
}

#[test]
fn structs_are_those_of_the_header() {
    let header = header();
    let mut found = 0;
    for text in header.split("\nstruct ").skip(1) {
        let (name, text) = text.split_once(" {").expect("a struct has a name and fields");
        let (fields, _) = text.split_once("};").expect("a struct ends");
        let layout = LAYOUTS.iter().find(|layout| layout.name == name).expect(name);
        let mut at = 0;
        let mut expected = Vec::new();
        for field in fields.split(';').map(str::trim).filter(|field| !field.is_empty()) {
            let (kind, field) = field.split_once(' ').expect(field);
            let each = match kind {
                "__u8" => 1,
                "__u16" => 2,
                "__u32" | "__s32" => 4,
                "__u64" => 8,
                other => panic!("{name} has a {other}"),
            };
            let (field, count) = match field.strip_suffix(']').and_then(|field| field.split_once('[')) {
                Some((field, count)) => (field, count.parse::<usize>().expect(count)),
                None => (field, 1),
            };
            expected.push((field, at, each * count));
            at += each * count;
        }
        assert_eq!((layout.fields, layout.bytes), (&expected[..], at), "struct {name}");
        found += 1;
    }
    assert_eq!(found, LAYOUTS.len());
}
