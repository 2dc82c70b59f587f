//! The shared library exports exactly the symbols in `symbols.txt`. They have one prefix, and one of the headers
//! declares each.

use crate::tools::{compare, libraries, own, run, shared_name, soname, succeeds};
use std::process::Command;

#[test]
fn symbols_are_those_of_the_list() {
    if !cfg!(target_os = "linux") {
        println!("skipped: symbols are listed for Linux");
        return;
    }
    if !succeeds(Command::new("nm").arg("--version")) {
        println!("skipped: there is no nm");
        return;
    }
    let listed = run(Command::new("nm").args(["-D", "--defined-only"]).arg(libraries().join(shared_name())));
    let mut symbols: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    symbols.sort_unstable();
    let strangers: Vec<&&str> = symbols.iter().filter(|name| !name.starts_with("forrest_")).collect();
    assert!(strangers.is_empty(), "symbols without the prefix: {strangers:?}");
    compare("symbols.txt", &(symbols.join("\n") + "\n"));
}

#[test]
fn each_symbol_is_declared() {
    let read = |file| std::fs::read_to_string(own(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let (symbols, headers) =
        (read("symbols.txt"), read("include/forrest.h") + &read("include/llds/forrest.h"));
    let declared = headers.lines().filter(|line| !line.starts_with([' ', '#', '/']));
    let mut declared: Vec<&str> = declared
        .filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next())
        .filter(|name| name.starts_with("forrest_"))
        .collect();
    declared.sort_unstable();
    assert_eq!(declared, symbols.lines().collect::<Vec<&str>>());
}

#[test]
fn the_library_has_the_number_of_its_interface() {
    if !cfg!(target_os = "linux") {
        println!("skipped: the name is that of Linux");
        return;
    }
    if !succeeds(Command::new("readelf").arg("--version")) {
        println!("skipped: there is no readelf");
        return;
    }
    let shown = run(Command::new("readelf").arg("-d").arg(libraries().join(shared_name())));
    assert!(shown.contains(&format!("soname: [{}]", soname())), "{shown}");
}
