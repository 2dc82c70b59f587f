//! Data sets as files, as a user makes and looks into them.

use super::{done, kvbench, text};
use forrest_testing::sized;
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

/// Runs the command, which must fail, and returns its message.
fn refused(arguments: &[&str]) -> String {
    let output = kvbench(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", text(&output.stdout));
    text(&output.stderr)
}

fn inspected(path: &str) -> Value {
    serde_json::from_str(&done(&["inspect", path, "--json"])).expect("one JSON object")
}

/// A directory, and the names of files in it.
fn names<const N: usize>(names: [&str; N]) -> (TempDir, [String; N]) {
    let directory = tempfile::tempdir().unwrap();
    let names = names.map(|name| directory.path().join(name).to_str().unwrap().to_owned());
    (directory, names)
}

/// The ancestor's worked example, with another text of as many words: it prints what the ancestor printed, and the
/// count is that of the words (the ancestor's own count was one more).
#[test]
fn the_ancestors_worked_example_works() {
    let (_directory, [data, bin, bin1, kvb]) = names(["data", "data.bin", "data1.bin", "data.kvb"]);
    let words: Vec<_> =
        (0..143_244u64).map(|n| format!("MKV{:x}", n.wrapping_mul(0x9e37_79b9) % 100_000)).collect();
    std::fs::write(&data, words.join("\n") + "\n").unwrap();
    let out = done(&["convert", "-m", "convert-text", "-i", &data, "-o", &bin]);
    let expected =
        format!("reading '{data}' ...\n000000000 bytes left\nwriting '{bin}' ...\nwrote 000143244 words\n");
    assert_eq!(out, expected);
    let bytes = std::fs::read(&bin).unwrap();
    assert_eq!(bytes[..4], 143_244u32.to_le_bytes());
    let key_bytes = words.iter().map(String::len).sum::<usize>();
    assert_eq!(bytes.len(), 4 + 4 * words.len() + key_bytes);

    let told = inspected(&bin);
    assert_eq!((&told["format"], &told["pairs"]), (&Value::from("bin-text"), &Value::from(143_244)));
    assert_eq!((&told["keys"]["bytes"], &told["values"]), (&Value::from(key_bytes), &Value::Null));
    assert!(told["duplicates"].as_u64().unwrap() > 40_000);
    let shown = done(&["inspect", &bin]);
    assert!(
        shown.contains("143244 pairs") && shown.contains("not sorted") && shown.contains("\n  MKV0\n"),
        "{shown}"
    );

    done(&["convert", "-m", "convert-text1", "-i", &data, "-o", &bin1]);
    let bytes = std::fs::read(&bin1).unwrap();
    assert_eq!(bytes[..16], [143_244u64.to_le_bytes(), (key_bytes as u64).to_le_bytes()].concat());
    let out = done(&["convert", &bin1, &kvb]);
    assert!(out.contains("143244 pairs read") && out.contains("143244 written"), "{out}");
    assert!(done(&["inspect", "--verify", &kvb]).contains("checksums of the header and of"));
    let back = format!("{data}.txt");
    done(&["convert", &kvb, &back]);
    assert_eq!(std::fs::read(&back).unwrap(), std::fs::read(&data).unwrap());
}

#[test]
fn the_ancestors_flags_work() {
    let (_directory, [data, bin]) = names(["data", "data.bin"]);
    std::fs::write(&data, "to be or\nnot  to be").unwrap();
    let out = done(&["convert", "-m", "convert-text", "-i", &data, "-o", &bin, "-t", "-v"]);
    assert!(out.contains("...\nto\nbe\nor\nnot\nto\nbe\n000000000 bytes left\n"), "{out}");
    assert_eq!(std::fs::read(&bin).unwrap()[..11], *b"\x06\0\0\0\x03\0\0\0to\0");
    let (text, kvb) = (format!("{bin}.txt"), format!("{bin}.kvb"));
    let out = done(&["convert", &bin, &text, "--strip-nul", "--unique"]);
    assert!(out.contains("6 pairs read, 2 of a key that was there already: left out; 4 written"), "{out}");
    assert_eq!(std::fs::read_to_string(&text).unwrap(), "to\nbe\nor\nnot\n");
    let out = done(&["convert", &bin, &kvb]);
    assert!(out.contains("2 of a key that was there already: kept"), "{out}");
    assert_eq!(inspected(&kvb)["keys_with_nul"], 6);
}

#[test]
fn what_cannot_be_done_is_said_and_leaves_no_file() {
    let (directory, [data, bin, kvb]) = names(["data", "x.bin", "x.kvb"]);
    std::fs::write(&data, "to be").unwrap();
    assert!(refused(&["convert", &data, &bin]).contains("--to"));
    assert!(refused(&["convert", &data, &kvb, "-t"]).contains("-t is for"));
    assert!(refused(&["convert", &data, &kvb, "--strip-nul"]).contains("--strip-nul is for"));
    assert!(refused(&["convert", "/nowhere", &kvb]).starts_with("kvbench: /nowhere"));
    assert!(refused(&["convert", &data, "/nowhere/x.kvb"]).contains("/nowhere/x.kvb"));
    assert!(refused(&["convert", &data, &kvb, "--from", "bin-text"]).contains("data: byte 0: "));
    assert!(refused(&["inspect", "/dev/null"]).contains("no regular file"));
    for arguments in [&["convert", &data][..], &["convert", &data, &kvb, "--to", "bin-blob"], &["inspect"]] {
        assert_eq!(kvbench(arguments).status.code(), Some(2), "{arguments:?}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    assert!(!Path::new(&kvb).exists());

    done(&["convert", &data, &kvb]);
    let mut bytes = std::fs::read(&kvb).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&kvb, &bytes).unwrap();
    for arguments in
        [&["inspect", &kvb][..], &["inspect", "--verify", &kvb], &["convert", &kvb, &bin, "--to", "bin-text"]]
    {
        let error = refused(arguments);
        assert!(error.contains("x.kvb: byte 64: ") && error.contains("checksum"), "{error}");
    }
    assert!(!Path::new(&bin).exists());
}

#[test]
fn made_sets_are_what_was_asked_for() {
    let (_directory, [kvb, again, text]) = names(["x.kvb", "y.kvb", "z.txt"]);
    let asked = ["--keys", "urls", "--values", "uniform:100-300", "--ratio", "2", "-n", "20K", "--seed", "7"];
    let out = done(&[&["gen", &kvb][..], &asked].concat());
    assert!(out.contains("20000 pairs, seed 7"), "{out}");
    done(&[&["gen", &again][..], &asked].concat());
    assert!(std::fs::read(&kvb).unwrap() == std::fs::read(&again).unwrap(), "the seed decides");
    let told = inspected(&kvb);
    assert_eq!((&told["pairs"], &told["duplicates"]), (&Value::from(20_000), &Value::from(0)));
    let ratio = told["values"]["lz4_ratio"].as_f64().unwrap();
    assert!((1.8..2.2).contains(&ratio), "{ratio}");
    assert_eq!(
        (&told["values"]["lengths"]["min"], &told["values"]["lengths"]["max"]),
        (&100.into(), &300.into())
    );
    done(&["gen", &text, "--keys", "words", "--size", "1M"]);
    let len = std::fs::metadata(&text).unwrap().len() - inspected(&text)["pairs"].as_u64().unwrap();
    assert!((1 << 20) * 9 / 10 < len && len < (1 << 20) * 11 / 10, "{len}");
    assert!(refused(&["gen", &text, "--values", "fixed:3"]).contains("no place for values"));
    assert!(refused(&["gen", &text, "--keys", "dense", "-F", "bin-text", "-n", "5G"]).contains("4294967295"));
    for wrong in [["--values", "fixed"], ["--ratio", "0.5"], ["--keys", "guid"], ["--key-lengths", "3-9"]] {
        assert_eq!(kvbench(&["gen", &kvb, wrong[0], wrong[1]]).status.code(), Some(2), "{wrong:?}");
    }
}

/// Runs all subjects on a file.
fn measured(path: &str, more: &[&str]) -> String {
    let fixed =
        ["memory", "--data", path, "--threads", "2", "--only", "get,dependent,miss,scan,iterate,remove"];
    let out = done(&[&fixed[..], more].concat());
    assert!(!out.contains("FAILED"), "{out}");
    out
}

/// The ancestor's structures lost the last byte of keys (10 of them became 1), and all bytes past 255. Iteration shows
/// as many pairs as there are keys, or the arm is wrong.
#[test]
fn subjects_tell_keys_apart_by_their_last_bytes() {
    let (_directory, [text, bin]) = names(["x.txt", "x.bin"]);
    let keys = |len: usize| (0..10).map(move |last| format!("{}{last}\n", "k".repeat(len)));
    std::fs::write(&text, [3, 254, 255, 256, 600].into_iter().flat_map(keys).collect::<String>()).unwrap();
    let out = measured(&text, &[]);
    assert!(
        out.contains("50 different keys") && out.contains("made values") && out.contains("\nloaded to "),
        "{out}"
    );
    assert!(out.contains("50 pairs of kind strings") && out.contains("blart"), "{out}");
    // Whatever else runs here.
    let how = [
        "compare",
        "btreemap",
        "btreemap",
        "--data",
        &text,
        "--blocks",
        "4",
        "--turns",
        "1",
        "--disturbed",
        "100",
    ];
    let output = kvbench(&how);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 3 | 4 | 5)), "{told}{output:?}");
    assert!(told.contains(&format!("50 pairs of {text}")) && told.contains("get_ns"), "{told}");
    // The same with a NUL after each key: subjects that end keys with a NUL are left out, with a message.
    done(&["convert", "-m", "convert-text", "-i", &text, "-o", &bin, "-t"]);
    let out = measured(&bin, &["--subjects", "forrest,blart", "--data-pages", "plain"]);
    assert!(out.contains("blart, strings: left out: it ends keys with a zero byte, and 50 of"), "{out}");
    assert!(out.contains("on plain pages"), "{out}");
}

#[test]
fn pairs_of_a_file_are_measured_with_their_values() {
    let (directory, [kvb, bin, record]) = names(["x.kvb", "x.bin", "x.jsonl"]);
    done(&["gen", &kvb, "--keys", "zipf", "--values", "uniform:0-50", "-n", "2K"]);
    let out = measured(&kvb, &["--subjects", "forrest,btreemap", "--json", &record]);
    assert!(out.contains("2K pairs of kind strings") && out.contains("0 pairs dropped"), "{out}");
    let lines = std::fs::read_to_string(&record).unwrap();
    let run: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&run["options"]["data"]["pairs"], &run["options"]["data"]["format"]),
        (&2000.into(), &"kvb".into())
    );
    // A pair twice, with two values: the last one is what a structure holds, and sums agree with that.
    let pairs: Vec<u8> = ["a1b2", "c3d4", "a1e5"]
        .iter()
        .flat_map(|pair| {
            [&[2, 0, 0, 0], &pair.as_bytes()[..2], &[2, 0, 0, 0], &pair.as_bytes()[2..]].concat()
        })
        .collect();
    std::fs::write(&bin, [&3u32.to_le_bytes()[..], &pairs].concat()).unwrap();
    let out = measured(&bin, &["--subjects", "forrest,btreemap"]);
    assert!(out.contains("2 different keys") && out.contains("1 pairs dropped"), "{out}");
    assert!(refused(&["memory", "--data", &bin, "-n", "3"]).contains("has 2 different keys"));
    std::fs::write(&bin, [0; 4]).unwrap();
    assert!(refused(&["memory", "--data", &bin]).contains("no pairs"));
    assert!(refused(&["memory", "--data", directory.path().to_str().unwrap()]).contains("no regular file"));
}

/// Structures that point into the file's memory take less of their own, and answer as the others do.
#[test]
fn pairs_may_stay_where_they_were_loaded() {
    let (_directory, [kvb, record]) = names(["x.kvb", "x.jsonl"]);
    done(&["gen", &kvb, "--keys", "words", "--values", "none", "-n", "5K"]);
    let subjects = "btreemap,cuckoo,f14,hashbrown+xxh3,forrest";
    let of = |more: &[&str]| {
        let only = "get,miss,scan,iterate,remove,erase,reserve,hits";
        measured(&kvb, &[&["--subjects", subjects, "--only", only, "--json", &record][..], more].concat())
    };
    of(&[]);
    let out = of(&["--in-place", "--no-values"]);
    assert!(out.contains("copies the pairs that were loaded") && out.contains("no values"), "{out}");
    let rows = super::records(&record.into());
    for name in ["btreemap", "cuckoo+rapidhash", "f14+rapidhash", "hashbrown+xxh3"] {
        let of_name = rows.iter().filter(|row| row["subject"] == name && row["pages"] == "auto");
        let live = |row: &Value| row["figures"]["live_bytes_per_key"]["median"].as_f64().unwrap();
        let [copied, in_place] = of_name.map(live).collect::<Vec<_>>()[..] else { panic!("{name}") };
        assert!(in_place < copied - 20.0, "{name}: {in_place} of {copied} bytes a key");
    }
    let why = refused(&["memory", "--data", &kvb, "--in-place", "--only", "update", "--subjects", "f14"]);
    assert!(why.contains("leave out --in-place"), "{why}");
}

/// Every step of `kvbench memory`, of one thread and of two.
const EVERY_STEP: &str = "get,dependent,miss,batch,scan,iterate,threads,remove,reserve,hits,update,mixed,ycsb-a,ycsb-b,\
                          ycsb-c,ycsb-d,ycsb-e,ycsb-f,latency,erase";

/// Runs every step on a file. The structure is right, so no step may say that it is wrong.
fn all_steps_are_right(path: &str) {
    let fixed = ["memory", "--subjects", "btreemap,forrest", "--threads", "2", "--only", EVERY_STEP];
    let out = done(&[&fixed[..], &["--rate", "1M", "--data", path]].concat());
    assert!(!out.contains("FAILED") && out.contains("ycsb_e"), "{path}: {out}");
}

/// Keys that a mix inserted as new ones could be equal, if their shape is dense: "ba" and "da", each with a byte
/// changed, were both "ca". Then a structure that was right was called wrong. Now each absent key is there once.
#[test]
fn a_right_structure_is_right_on_every_shape_of_made_keys() {
    let (_directory, [kvb]) = names(["x.kvb"]);
    let shapes = ["words", "dense", "zipf", "uuid", "urls", "paths", "sparse", "clustered"];
    for shape in &shapes[..sized(3, 8)] {
        done(&["gen", &kvb, "--keys", shape, "-n", sized("500", "1K"), "--values", "none"]);
        all_steps_are_right(&kvb);
    }
    // As few pairs as there can be: new keys are more than those that are there.
    done(&["gen", &kvb, "--keys", "words", "-n", "1"]);
    all_steps_are_right(&kvb);
}

/// The paths under a directory of the sources, and what the Markdown files there contain.
fn paths_and_words(directory: &Path, paths: &mut String, words: &mut String) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        paths.push_str(&format!("{}\n", path.display()));
        if path.is_dir() {
            paths_and_words(&path, paths, words);
        } else if path.extension().is_some_and(|end| end == "md") {
            words.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// The same on real keys: words of the documentation, paths of the sources, the lines of a lock file as a column.
#[test]
fn a_right_structure_is_right_on_real_files() {
    let (_directory, [words, paths, lines]) = names(["words.txt", "paths.txt", "lines.csv"]);
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let (mut all_paths, mut all_words) = (String::new(), String::new());
    for directory in ["docs", "crates", "xtask"] {
        paths_and_words(&root.join(directory), &mut all_paths, &mut all_words);
    }
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).unwrap();
    let quoted = |line: &str| format!("\"{}\"\n", line.replace('"', "\"\""));
    for (file, content) in
        [(words, all_words), (paths, all_paths), (lines, lock.lines().map(quoted).collect())]
    {
        let some = content.lines().take(sized(300, 1_000)).flat_map(|line| [line, "\n"]).collect::<String>();
        std::fs::write(&file, some).unwrap();
        all_steps_are_right(&file);
    }
}

/// Numbers of a file were strings, so structures that hold only numbers never saw others than random ones.
#[test]
fn numbers_of_a_file_are_numbers() {
    let (_directory, [kvb, sosd, wide, words]) =
        names(["numbers.kvb", "numbers_uint32", "numbers_uint64", "words.txt"]);
    let subjects = "pgm,s-tree,congee,masstree,blart,btreemap,hashbrown,sorted";
    let measured = |path: &str, more: &[&str]| {
        let steps = ["--only", "get,dependent,miss,scan,iterate,remove,ycsb-d", "--subjects", subjects];
        done(&[&["memory", "--data", path, "--kinds", "u64"], &steps[..], more].concat())
    };
    for shape in ["dense", "clustered", "sparse"] {
        done(&["gen", &kvb, "--keys", shape, "-n", "3000", "--values", "fixed:8"]);
        let out = measured(&kvb, &[]);
        assert!(
            out.contains("u64: 8 subjects agree") && out.contains("\n3K pairs of kind u64"),
            "{shape}: {out}"
        );
        assert!(
            out.contains(&format!("u64: {kvb} (kvb), 3000 different keys of 8.0 bytes")),
            "{shape}: {out}"
        );
        assert!(!out.contains("Goals") && !out.contains("as it grows"), "{shape}: {out}");
    }
    // Sorted, as SOSD's are, and of 32 bits.
    let numbers: Vec<u32> = (0..3000u32).map(|number| number * number / 7 + number).collect();
    let narrow: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    std::fs::write(&sosd, [&3000u64.to_le_bytes()[..], &narrow].concat()).unwrap();
    let all: Vec<u8> = numbers.iter().flat_map(|number| u64::from(*number).to_le_bytes()).collect();
    std::fs::write(&wide, [&3000u64.to_le_bytes()[..], &all].concat()).unwrap();
    for (path, format) in [(&sosd, "sosd-u32"), (&wide, "sosd-u64")] {
        let sweep = ["--sweep", "1K,3K", "--sweep-subjects", "pgm", "-F", format];
        let out = measured(path, &sweep);
        assert!(out.contains("u64: 8 subjects agree") && out.contains("as it grows, u64"), "{format}: {out}");
    }
    let compared = kvbench(&[
        "compare",
        "sorted",
        "pgm",
        "--data",
        &wide,
        "-F",
        "sosd-u64",
        "--kind",
        "u64",
        "--blocks",
        "4",
        "--disturbed",
        "100",
        "--only",
        "scan",
    ]);
    assert!(matches!(compared.status.code(), Some(0 | 3 | 4 | 5)), "{}", text(&compared.stderr));

    std::fs::write(&words, "seven eleven").unwrap();
    let numbers = ["memory", "--kinds", "u64", "--data"];
    let why = refused(&[&numbers[..], &[&words]].concat());
    assert!(why.contains("words.txt: the key of pair 0 has 5 bytes; numbers have 8, or 4"), "{why}");
    assert!(refused(&[&numbers[..], &[&kvb, "--in-place"]].concat()).contains("--in-place"));
    assert!(refused(&[&numbers[..], &[&kvb, "--sweep", "4K"]].concat()).contains("has 3000 different keys"));
    let both = ["memory", "--kinds", "u64,strings", "--data", &kvb];
    assert!(refused(&both).contains("are of one kind"), "{}", refused(&both));
    assert!(refused(&["memory", "--data", &kvb, "--sweep", "1K"]).contains("only numbers grow"));
}
