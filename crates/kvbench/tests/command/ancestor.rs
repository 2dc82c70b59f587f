//! The ancestor's command line, as its README has it.

use super::{kvbench, text, words};
use serde_json::Value;

/// Words, converted as the ancestor's worked example does it; the binary file.
fn converted(directory: &std::path::Path, words: usize) -> String {
    let [data, bin] = ["data", "data.bin"].map(|name| directory.join(name).to_str().unwrap().to_owned());
    let text: String = (0..words).map(|n| format!("protein{:x}\n", n.wrapping_mul(0x9e37_79b9))).collect();
    std::fs::write(&data, text).unwrap();
    assert!(kvbench(&["convert", "-m", "convert-text", "-i", &data, "-o", &bin]).status.success());
    bin
}

/// The line of the ancestor's README, with the program's name.
#[test]
fn the_generator_is_meant_by_its_mode() {
    let directory = tempfile::tempdir().unwrap();
    let bin = converted(directory.path(), 100);
    let [data, again] = ["data", "again.bin"].map(|name| directory.path().join(name).display().to_string());
    let output = kvbench(&["-m", "convert-text", "-i", &data, "-o", &again]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("wrote 000000100 words"), "{}", text(&output.stdout));
    assert_eq!(std::fs::read(again).unwrap(), std::fs::read(bin).unwrap());
    let output = kvbench(&["-m", "convert-text2", "-i", &data, "-o", "x"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("convert-text1"), "{}", text(&output.stderr));
}

#[test]
fn the_worked_example_prints_one_json_object() {
    let directory = tempfile::tempdir().unwrap();
    let bin = converted(directory.path(), 3000);
    let output = kvbench(&words("-F bin-text -d cuckoo -h xxhash:XX3_64bits -r 3 -R 2", &["-f", &bin]));
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}{error}");
    assert_eq!(error, format!("loading '{bin}'\n000000000 bytes left\n"));
    let printed: Value = serde_json::from_str(&out).expect("one JSON object and nothing else");
    let config = &printed["config"];
    assert_eq!(
        (&config["dataStructure"], &config["hashAlgorithm"]),
        (&"cuckoo".into(), &"xxhash:XX3_64bits".into())
    );
    assert_eq!(config["fileSizeBytes"], std::fs::metadata(&bin).unwrap().len());
    assert_eq!((&config["needsHashAlgo"], &config["runs"]), (&true.into(), &3.into()));
    let result = printed["stats"]["result"].as_array().unwrap();
    let descriptions: Vec<_> = result.iter().map(|one| one["description"].as_str().unwrap()).collect();
    let wanted = [
        "benchmark-overhead run 1",
        "benchmark-overhead run 2",
        "insert run 1",
        "insert run 2",
        "find run 1",
        "find run 2",
        "update run 1",
        "update run 2",
        "delete run 1",
        "delete run 2",
    ];
    assert_eq!(descriptions, wanted);
    // In its order, for those who read it by lines.
    let places =
        ["filename", "fileSizeBytes", "hashAlgorithm", "recordRuns", "iterations", "perIteration", "IPC"]
            .map(|name| out.find(&format!("\"{name}\"")).unwrap_or_else(|| panic!("{name}: {out}")));
    assert!(places.is_sorted(), "{out}");
    assert_eq!(config["placement"], "keeps pairs where they were loaded");
    for one in result {
        // The ancestor counted one more.
        assert_eq!(one["total"]["iterations"], 3000);
        let (all, each) = (&one["total"]["elapsedTimeNs"], &one["perIteration"]["elapsedTimeNs"]);
        assert!((all.as_f64().unwrap() / 3000.0 - each.as_f64().unwrap()).abs() < 1.0, "{one}");
        // Counted or null, and there in either case.
        for name in [
            "pmuFixedCounter0RetiredInstructions",
            "pmuProgCounter1LLCMisses",
            "pmuProgCounter3RetiredBranchInstructionsTaken",
        ] {
            let count = one["total"].get(name).unwrap();
            assert!(count.is_null() || count.as_u64().is_some(), "{one}");
        }
    }
}

#[test]
fn a_simulated_processor_has_instructions_and_no_time() {
    if !super::counted::simulates() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let bin = converted(directory.path(), 300);
    let run = || {
        let output = kvbench(&["-f", &bin, "-F", "bin-text", "-d", "cuckoo", "-r", "1", "--simulate"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).expect("one JSON object and nothing else")
    };
    let printed = run();
    assert_eq!(printed["config"]["counters"], "callgrind (simulated)");
    for one in printed["stats"]["result"].as_array().unwrap() {
        assert!(one["total"]["elapsedTimeNs"].is_null() && one["perIteration"]["IPC"].is_null(), "{one}");
        assert!(one["total"]["pmuFixedCounter1CoreCycles"].is_null(), "{one}");
        let instructions = one["total"]["pmuFixedCounter0RetiredInstructions"].as_u64().unwrap();
        assert!(instructions >= 300 && one["total"]["pmuProgCounter0LLCHits"].is_u64(), "{one}");
    }
    assert_eq!(printed, run());
}

/// The ancestor printed empty results for these, and success.
#[test]
fn what_there_is_not_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let bin = converted(directory.path(), 10);
    for (arguments, code, why) in [
        (vec!["-f", &bin, "-F", "bin-blob", "-d", "cuckoo"], 2, "the formats are bin-text"),
        (vec!["-f", &bin, "-F", "bin-text", "-d", "hot"], 1, "hot is left out"),
        (vec!["-f", &bin, "-F", "bin-text", "-d", "cuckoo", "-h", "md5"], 1, "none of the hashes"),
        (vec!["-f", &bin, "-F", "bin-text", "-d", "cuckoo", "-a", "mine"], 1, "none of the allocators"),
        (vec!["-f", &bin, "-F", "bin-text", "-d", "art", "-h", "xxh3"], 1, "hashes nothing"),
        (vec!["-f", "/nowhere", "-F", "bin-text", "-d", "f14"], 1, "/nowhere: "),
        (vec!["-f", &bin, "-F", "bin-text-kv", "-d", "f14"], 1, "data.bin: "),
        (vec!["-f", &bin, "-d", "f14"], 2, "-F <FORMAT>"),
    ] {
        let output = kvbench(&arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}{said}", text(&output.stdout));
        assert!(said.contains(why) && output.stdout.is_empty(), "{arguments:?}: {said}");
    }
}
