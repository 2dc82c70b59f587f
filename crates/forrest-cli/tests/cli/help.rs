//! The help teaches by examples, and they work.

use crate::harness::Place;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

const COMMANDS: [&str; 33] = [
    "get",
    "set",
    "add",
    "cas",
    "delete",
    "delete-range",
    "scan",
    "count",
    "expires",
    "keyspace",
    "keyspaces",
    "load",
    "dump",
    "stat",
    "tail",
    "blob",
    "web",
    "verify",
    "checkpoint",
    "compact",
    "shell",
    "demo",
    "bench",
    "stress",
    "crash",
    "salvage",
    "top",
    "serve",
    "backup",
    "key",
    "move-log",
    "llds",
    "doctor",
];
/// Commands of commands.
const NESTED: [&str; 19] = [
    "keyspace ttl",
    "keyspace merge-operator",
    "keyspace compression",
    "blob put",
    "blob get",
    "blob list",
    "blob delete",
    "llds list",
    "llds destroy",
    "llds save",
    "llds restore",
    "backup create",
    "backup list",
    "backup verify",
    "backup restore",
    "backup prune",
    "backup rotate-key",
    "key rotate",
    "key rotate-data",
];

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

/// The commands that a help lists.
fn listed(help: &str) -> BTreeSet<&str> {
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = commands.take_while(|line| !line.is_empty()).filter_map(|line| line.strip_prefix("  "));
    // A description may go on in the next line.
    names.filter(|line| !line.starts_with(' ')).filter_map(|line| line.split_whitespace().next()).collect()
}

/// The tests here are of all commands: those that the help lists.
#[test]
fn every_command_is_listed() {
    let helps = helps();
    assert_eq!(listed(&helps[0].1), BTreeSet::from(COMMANDS));
    let nested = helps[1..].iter().flat_map(|(name, help)| {
        listed(help).into_iter().filter(|own| *own != "help").map(move |own| format!("{name}{own}"))
    });
    assert_eq!(nested.collect::<BTreeSet<_>>(), NESTED.map(str::to_owned).into());
}

#[test]
fn all_examples_work() {
    let place = Place::new();
    place.write("value.bin", [0, 255, 10]);
    place.write("my.key", [7; 32]);
    place.write("new.key", [8; 32]);
    for (name, help) in helps() {
        place.write("in.txt", "apple\t3\nbanana\t5\n");
        let mut writer = None;
        let examples = help.lines().skip_while(|line| *line != "Examples:").skip(1);
        for line in examples.take_while(|line| line.starts_with("  ")) {
            // Three spaces separate the command from its explanation.
            let (command, what) = line.trim().split_once("   ").unwrap_or((line.trim(), ""));
            let what = what.trim();
            // The tour has its own tests, and a prompt needs a terminal.
            let command = command.replace("forrest demo", "forrest demo --limit 100");
            let command = command.replace("forrest stress", "forrest stress --keys 1024");
            // A server does not end; serve.rs has its tests.
            if command.contains("--limit 10000") || command.contains(" serve") {
                continue;
            }
            // They end by Ctrl-C, and have their own tests.
            if command.contains(" web ") {
                continue;
            }
            // A process that writes its figures until the others have read them.
            if command.contains("--metrics-file") {
                let words: Vec<&str> = command.split_whitespace().skip(1).collect();
                let mut child =
                    place.command(&words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
                // It answers once it is open.
                let mut input = child.stdin.take().unwrap();
                input.write_all(b"count\n").unwrap();
                BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
                writer = Some((child, input));
                continue;
            }
            // It has no end, or waits for two looks.
            let command = if name == "top " { format!("{command} -n 1 -i 0.1") } else { command };
            let command = command.replace("-n 1 -n 1", "-n 1");
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
        if let Some((mut child, input)) = writer {
            drop(input);
            assert!(child.wait().unwrap().success(), "forrest {name}--help");
        }
    }
}

/// The commands of the README's section "At the shell" work, one after another.
#[test]
fn the_commands_of_the_readme_work() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let (_, section) = readme.split_once("\n## At the shell\n\n```sh\n").unwrap();
    let (block, _) = section.split_once("\n```\n").unwrap();
    // The command is there already.
    let (install, block) = block.split_once('\n').unwrap();
    assert!(install.starts_with("cargo install "), "{install}");
    let ran = Place::new().shell(&format!("set -e\n{block}"));
    let text = ran.ok();
    for line in [
        "Quercus robur",
        r#"{"key": "elm", "value": "Ulmus"}"#,
        r#"{"key": "oak", "value": "Quercus robur"}"#,
    ] {
        assert!(text.lines().any(|one| one == line), "{line}:\n{text}");
    }
}

#[test]
fn pages_and_completions_tell_every_command() {
    let place = Place::new();
    place.run(&["pages", "out"]).ok();
    let read = |name: &str| std::fs::read_to_string(place.path().join("out").join(name)).unwrap();
    let pages = COMMANDS.iter().chain(&NESTED).map(|name| format!("forrest-{}.1", name.replace(' ', "-")));
    for page in pages.chain(["forrest.1".to_owned()]) {
        let text = read(&page);
        assert!(text.starts_with(".ie") || text.contains(".TH "), "{page}");
        let (_, notes) =
            text.split_once("\n.SH NOTES\n.nf\n").expect("it has notes, with lines as they stand");
        assert!(notes.contains("Examples:\n  forrest") && !text.contains(".SH EXTRA"), "{page}");
    }
    for completion in ["forrest.bash", "_forrest", "forrest.fish"] {
        let text = read(completion);
        for name in COMMANDS {
            assert!(text.contains(name), "{name} in {completion}");
        }
    }
    // What bash would offer.
    let ran = place.shell(
        "source out/forrest.bash && COMP_WORDS=(forrest ver) COMP_CWORD=1 && _forrest forrest ver forrest && \
         echo \"${COMPREPLY[@]}\"",
    );
    assert_eq!(ran.ok(), "verify\n");
    assert!(!place.run(&["--help"]).ok().contains("\n  pages "));
}

#[test]
fn version_and_help_go_to_standard_output() {
    let place = Place::new();
    assert_eq!(place.run(&["--version"]).ok(), concat!("forrest ", env!("CARGO_PKG_VERSION"), "\n"));
    let nothing = place.run(&[""; 0]);
    assert_eq!((nothing.code, nothing.text()), (Some(2), ""));
    assert!(nothing.stderr.contains("Examples:"));
}
