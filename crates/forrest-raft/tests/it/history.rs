//! What clients did and saw, and whether there is an order that explains it.

use std::collections::{BTreeMap, HashSet};
use std::{env, fs};

/// A call, with what it returned.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Get(String, Option<String>),
    Set(String, String),
    Delete(String),
    DeleteRange(String, String),
    Range(String, String, Vec<(String, String)>),
}

/// Calls that happened at one instant between two moments. Without an end they may have happened later or never.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) client: u64,
    pub(crate) begin: u64,
    pub(crate) end: Option<u64>,
    pub(crate) calls: Vec<Call>,
}

type Content = BTreeMap<String, String>;

impl Record {
    /// The state after it; `None` if it would have returned something else.
    fn step(&self, before: &Content) -> Option<Content> {
        let mut content = before.clone();
        for call in &self.calls {
            match call {
                Call::Get(key, value) if content.get(key) == value.as_ref() => {}
                Call::Range(start, end, pairs) => {
                    let found = content.range(start.clone()..end.clone());
                    if !found.eq(pairs.iter().map(|(key, value)| (key, value))) {
                        return None;
                    }
                }
                Call::Get(..) => return None,
                Call::Set(key, value) => drop(content.insert(key.clone(), value.clone())),
                Call::Delete(key) => drop(content.remove(key)),
                Call::DeleteRange(start, end) => content.retain(|key, _| key < start || key >= end),
            }
        }
        Some(content)
    }

    /// A line for the checker in `crates/forrest/tests/histories`.
    fn line(&self) -> String {
        let calls: Vec<String> = self.calls.iter().map(Call::json).collect();
        let end = self.end.unwrap_or(i64::MAX as u64);
        format!(
            "{{\"client\":{},\"begin\":{},\"end\":{end},\"calls\":[{}]}}\n",
            self.client,
            self.begin,
            calls.join(",")
        )
    }
}

fn hex(text: &str) -> String {
    let digits: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("\"{digits}\"")
}

impl Call {
    fn json(&self) -> String {
        match self {
            Call::Get(key, value) => {
                let value = value.as_deref().map_or("null".to_owned(), hex);
                format!("[\"get\",{},{value}]", hex(key))
            }
            Call::Set(key, value) => format!("[\"set\",{},{}]", hex(key), hex(value)),
            Call::Delete(key) => format!("[\"delete\",{}]", hex(key)),
            Call::DeleteRange(start, end) => format!("[\"delete-range\",{},{}]", hex(start), hex(end)),
            Call::Range(start, end, pairs) => {
                let pairs: Vec<_> =
                    pairs.iter().map(|(key, value)| format!("[{},{}]", hex(key), hex(value))).collect();
                format!("[\"range\",{},{},false,true,[{}]]", hex(start), hex(end), pairs.join(","))
            }
        }
    }
}

/// Writes a history for the other checker, if it is wanted.
pub(crate) fn export(name: &str, records: &[Record]) {
    let Some(directory) = env::var_os("FORREST_HISTORIES") else { return };
    let text: String = records.iter().map(Record::line).collect();
    let path = std::path::Path::new(&directory).join(format!("{name}.jsonl"));
    fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Whether there is an order of the records, each at an instant between its begin and its end, in which every call
/// returns what it returned. The search of Wing and Gong, with Lowe's memory of what failed.
pub(crate) fn is_linearizable(records: &[Record]) -> bool {
    let mut records: Vec<&Record> = records.iter().collect();
    records.sort_by_key(|record| record.begin);
    let mut seen = HashSet::new();
    // Which records are done, and what the content is then.
    let mut stack = vec![(vec![0_u64; records.len().div_ceil(64)], Content::new())];
    while let Some((done, content)) = stack.pop() {
        let is_done = |at: usize| done[at / 64] >> (at % 64) & 1 == 1;
        let open = |(at, _): &(usize, &&Record)| !is_done(*at);
        let first_end = records.iter().enumerate().filter(open).filter_map(|(_, record)| record.end).min();
        let Some(first_end) = first_end else { return true };
        for (at, record) in records.iter().enumerate().filter(open) {
            if record.begin > first_end {
                break;
            }
            if let Some(after) = record.step(&content) {
                let mut done = done.clone();
                done[at / 64] |= 1 << (at % 64);
                if seen.insert((done.clone(), after.clone())) {
                    stack.push((done, after));
                }
            }
        }
    }
    false
}

#[test]
fn the_check_can_fail() {
    let record = |client, begin, end, call| Record { client, begin, end: Some(end), calls: vec![call] };
    let set = |value: &str| Call::Set("a".to_owned(), value.to_owned());
    let get = |value: &str| Call::Get("a".to_owned(), Some(value.to_owned()));
    let mut records = vec![record(1, 1, 4, set("1")), record(2, 2, 3, get("1")), record(2, 5, 6, get("1"))];
    assert!(is_linearizable(&records));
    records.push(record(1, 7, 8, set("2")));
    records.push(record(2, 9, 10, get("1")));
    assert!(!is_linearizable(&records), "a stale read");
    records[3].end = None;
    assert!(is_linearizable(&records), "the set may come later");
    export("wrong-raft-stale-1", &{
        let mut wrong = records.clone();
        wrong[3].end = Some(8);
        wrong
    });
}
