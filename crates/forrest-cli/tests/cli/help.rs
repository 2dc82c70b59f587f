//! The help teaches by examples, and they work.

use crate::harness::Place;

const COMMANDS: [&str; 21] = [
    "get",
    "set",
    "add",
    "cas",
    "delete",
    "delete-range",
    "scan",
    "count",
    "keyspaces",
    "load",
    "dump",
    "stat",
    "verify",
    "compact",
    "shell",
    "demo",
    "bench",
    "stress",
    "crash",
    "llds",
    "doctor",
];
/// Commands of commands.
const NESTED: [&str; 2] = ["llds list", "llds destroy"];

fn helps() -> Vec<(String, String)> {
    let place = Place::new();
    let all = COMMANDS.iter().chain(&NESTED).map(|name| format!("{name} "));
    let all = std::iter::once(String::new()).chain(all);
    all.map(|name| {
        let words: Vec<&str> = name.split_whitespace().chain(["--help"]).collect();
        (name.clone(), place.run(&words).ok().to_owned())
    })
    .collect()
}

#[test]
fn every_help_has_examples_and_fits_a_terminal() {
    for (name, help) in helps() {
        assert!(help.contains("Examples:\n"), "forrest {name}--help");
        let long = help.lines().find(|line| line.chars().count() > 80);
        assert_eq!(long, None, "forrest {name}--help");
    }
}

#[test]
fn every_command_is_listed() {
    let (_, top) = &helps()[0];
    for name in COMMANDS {
        assert!(top.lines().any(|line| line.split_whitespace().next() == Some(name)), "{name}");
    }
}

#[test]
fn all_examples_work() {
    let place = Place::new();
    place.write("value.bin", [0, 255, 10]);
    for (name, help) in helps() {
        place.write("in.txt", "apple\t3\nbanana\t5\n");
        let examples = help.lines().skip_while(|line| *line != "Examples:").skip(1);
        for line in examples.take_while(|line| line.starts_with("  ")) {
            // What is explained stands well apart from the command.
            let (command, what) = line.trim().split_once("   ").unwrap_or((line.trim(), ""));
            let what = what.trim();
            // The tour has its own tests, and a prompt needs a terminal.
            let command = command.replace("forrest demo", "forrest demo --limit 100");
            let command = command.replace("forrest stress", "forrest stress --keys 1024");
            if command.contains("--limit 10000") {
                continue;
            }
            if command.contains("llds") && !std::path::Path::new("/dev/llds").exists() {
                println!("skipped, because the kernel module is not loaded: {command}");
                continue;
            }
            let ran = place.shell(&command);
            assert_eq!(ran.code, Some(0), "forrest {name}--help: {command}\n{}", ran.stderr);
            if what.parse::<i64>().is_ok() {
                assert_eq!(ran.text().trim_end(), what, "forrest {name}--help: {command}");
            }
        }
    }
}

#[test]
fn version_and_help_go_to_standard_output() {
    let place = Place::new();
    assert_eq!(place.run(&["--version"]).ok(), concat!("forrest ", env!("CARGO_PKG_VERSION"), "\n"));
    let nothing = place.run(&[""; 0]);
    assert_eq!((nothing.code, nothing.text()), (Some(2), ""));
    assert!(nothing.stderr.contains("Examples:"));
}
