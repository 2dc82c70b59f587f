//! The bodies of the fuzz targets in the folder `fuzz`, and the replay of the inputs kept there.

use crate::drive;
use forrest::Op;
use forrest::line::{Line, Words};

/// Any text is refused or parsed. A parsed operation, printed and parsed again, is the same.
pub(crate) fn line(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(line) = text.parse::<Line>() {
        assert_eq!(line.to_string().parse::<Line>().as_ref(), Ok(&line));
        if line.keyspace.is_none() {
            assert_eq!(text.parse::<Op>().as_ref(), Ok(&line.op));
        }
    }
    let mut words = Words::new(text);
    while let Ok(Some(word)) = words.word() {
        assert!(word.column >= 1 && word.bytes.len() <= text.len());
    }
}

/// Any commands have the results of the model.
pub(crate) fn commands(input: &[u8]) {
    drive::compare_fuzzed(input);
}

#[test]
fn kept_inputs_pass() {
    for (target, run) in [("line", line as fn(&[u8])), ("commands", commands)] {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
        let Ok(entries) = std::fs::read_dir(&folder) else {
            println!("skipped: there is no folder {}", folder.display());
            continue;
        };
        for entry in entries {
            let path = entry.expect("an entry of the folder").path();
            println!("{}", path.display());
            run(&std::fs::read(path).expect("an input that can be read"));
        }
    }
}
