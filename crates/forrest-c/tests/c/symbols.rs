//! The shared library exports exactly the symbols in `symbols.txt`. They have one prefix, and one of the headers
//! declares each.

use crate::tools::{compare, declared, demand_soname, exported, own};

#[test]
fn symbols_are_those_of_the_list() {
    let Some(symbols) = exported() else { return };
    let strangers: Vec<&String> = symbols.iter().filter(|name| !name.starts_with("forrest_")).collect();
    assert!(strangers.is_empty(), "symbols without the prefix: {strangers:?}");
    compare("symbols.txt", &(symbols.join("\n") + "\n"));
}

#[test]
fn each_symbol_is_declared() {
    let read = |file| std::fs::read_to_string(own(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let (symbols, headers) =
        (read("symbols.txt"), read("include/forrest.h") + &read("include/llds/forrest.h"));
    assert_eq!(declared(&headers, "forrest_"), symbols.lines().collect::<Vec<&str>>());
}

#[test]
fn the_library_has_the_number_of_its_interface() {
    demand_soname();
}
