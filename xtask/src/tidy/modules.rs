//! The modules of a crate and which of them use which, read from the sources.
//!
//! A path in the code is followed from where it stands: `crate`, `self`, `super`, the module's own modules, and names
//! that a `use` brought in, through re-exports, to the module that has the item. So `crate::Error` is a use of `error`
//! if the root has `pub use error::Error`. What another crate has leads nowhere, also where it is named through this
//! one.
//!
//! Code under `#[cfg(test)]` is ignored. Two kinds of uses are not detected: methods of a type (an `impl` may be in a
//! module above its type), and macros of the same crate that are named without a path.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::tokens::{Kind, Token, tokens};

/// Names from the root on; the root itself is the empty one.
pub(crate) type Name = Vec<String>;

/// All modules of a crate.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    all: BTreeMap<Name, Module>,
}

#[derive(Debug, Default)]
struct Module {
    /// None: it stands in the file of the module around it.
    file: Option<PathBuf>,
    children: BTreeSet<String>,
    items: BTreeSet<String>,
    /// What `use` names here.
    names: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    paths: Vec<Found>,
}

/// A path as it stands in the code.
#[derive(Debug)]
struct Found {
    segments: Vec<String>,
    file: PathBuf,
    line: usize,
    /// By `pub use`.
    exported: bool,
}

/// One module using another. Both have files of their own.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Use {
    pub(crate) from: Name,
    pub(crate) to: Name,
    pub(crate) file: PathBuf,
    pub(crate) line: usize,
}

/// How deep re-exports may lead to each other.
const DEEPEST: usize = 16;

impl Modules {
    /// Reads a crate from its root's file. `text` gives the text of a file, if it is there.
    pub(crate) fn read(root: &Path, text: &dyn Fn(&Path) -> Option<String>) -> Result<Modules, String> {
        let mut modules = Modules::default();
        modules.file(Vec::new(), root, root.parent().unwrap_or(Path::new("")), text)?;
        Ok(modules)
    }

    /// The modules with a file of their own, below this one.
    pub(crate) fn children(&self, name: &[String]) -> Vec<String> {
        let Some(module) = self.all.get(name) else { return Vec::new() };
        let own =
            |child: &&String| self.all.get(&below(name, child)).is_some_and(|child| child.file.is_some());
        module.children.iter().filter(own).cloned().collect()
    }

    /// The modules that have others in files of their own below them.
    pub(crate) fn parents(&self) -> Vec<Name> {
        self.all.keys().filter(|name| !self.children(name).is_empty()).cloned().collect()
    }

    /// Which module uses which. A module that only re-exports a lower module does not use it.
    pub(crate) fn uses(&self) -> Vec<Use> {
        let mut uses = Vec::new();
        for (name, module) in &self.all {
            let from = self.with_file(name);
            for found in &module.paths {
                let Some(to) = self.follow(name, &found.segments, 0) else { continue };
                let to = self.with_file(&to);
                if to == from || (found.exported && to.starts_with(&from)) {
                    continue;
                }
                uses.push(Use { from: from.clone(), to, file: found.file.clone(), line: found.line });
            }
        }
        uses.sort();
        uses.dedup_by(|one, other| (&one.from, &one.to) == (&other.from, &other.to));
        uses
    }

    /// The module around this one, or itself, that has a file.
    fn with_file(&self, name: &[String]) -> Name {
        let mut name = name.to_vec();
        while self.all.get(&name).is_none_or(|module| module.file.is_none()) && !name.is_empty() {
            name.pop();
        }
        name
    }

    /// The module that has what a path names, seen from a module; none if another crate has it.
    fn follow(&self, from: &[String], path: &[String], depth: usize) -> Option<Name> {
        if depth > DEEPEST {
            return None;
        }
        let module = self.all.get(from)?;
        match path.first()?.as_str() {
            "crate" => self.inside(Vec::new(), &path[1..], depth),
            "self" => self.inside(from.to_vec(), &path[1..], depth),
            "super" => {
                let mut path = &path[1..];
                let mut above = from.to_vec();
                above.pop()?;
                while path.first().is_some_and(|one| one == "super") {
                    above.pop()?;
                    path = &path[1..];
                }
                self.inside(above, path, depth)
            }
            first if module.children.contains(first) => self.inside(from.to_vec(), path, depth),
            first => {
                let named = module.names.get(first)?;
                if named.first().is_some_and(|one| one == first) {
                    return None; // `use x::{self}` of another crate, or a macro exported by its own name
                }
                self.follow(from, &[named, &path[1..]].concat(), depth + 1)
            }
        }
    }

    /// As [`Self::follow`], for a path that begins inside a module of this crate.
    fn inside(&self, mut at: Name, path: &[String], depth: usize) -> Option<Name> {
        if depth > DEEPEST {
            return Some(at);
        }
        for (number, segment) in path.iter().enumerate() {
            let module = self.all.get(&at)?;
            if module.children.contains(segment) {
                at.push(segment.clone());
                continue;
            }
            if module.items.contains(segment) {
                return Some(at);
            }
            let rest = &path[number + 1..];
            if let Some(named) = module.names.get(segment) {
                return self.follow(&at, &[named, rest].concat(), depth + 1);
            }
            for glob in &module.globs {
                let Some(of) = self.follow(&at, glob, depth + 1) else { continue };
                let has = self.all.get(&of).is_some_and(|module| module.has(segment));
                if has && of != at {
                    return self.inside(of, &path[number..], depth + 1);
                }
            }
            return Some(at);
        }
        Some(at)
    }

    /// Reads a module's file, and those of the modules that it declares, which lie in `directory`.
    fn file(
        &mut self,
        name: Name,
        file: &Path,
        directory: &Path,
        text: &dyn Fn(&Path) -> Option<String>,
    ) -> Result<(), String> {
        let source =
            text(file).ok_or_else(|| format!("{}: it is declared, and not there", file.display()))?;
        self.all.entry(name.clone()).or_default().file = Some(file.to_owned());
        let mut reader = Reader { modules: self, file, inner: vec![(name.clone(), 0)], declared: Vec::new() };
        reader.read(&tokens(&source));
        for (child, given) in reader.declared {
            // The files of an inline module's modules lie in a directory of its name.
            let place: PathBuf =
                directory.iter().map(Path::new).chain(child[name.len()..].iter().map(Path::new)).collect();
            let (file, directory) = match given {
                Some(path) => (file.parent().unwrap_or(Path::new("")).join(path), place),
                None if text(&place.join("mod.rs")).is_some() => (place.join("mod.rs"), place),
                None => (place.with_extension("rs"), place),
            };
            self.file(child, &file, &directory, text)?;
        }
        Ok(())
    }
}

impl Module {
    fn has(&self, name: &str) -> bool {
        self.items.contains(name) || self.names.contains_key(name) || self.children.contains(name)
    }
}

fn below(name: &[String], child: &str) -> Name {
    let mut name = name.to_vec();
    name.push(child.to_owned());
    name
}

/// Collects the uses in one file.
struct Reader<'m> {
    modules: &'m mut Modules,
    file: &'m Path,
    /// The module that is being read, those around it before, each with the number of braces around its items.
    inner: Vec<(Name, usize)>,
    /// Modules in other files, with the path that was given.
    declared: Vec<(Name, Option<String>)>,
}

const ITEMS: &[&str] =
    &["fn", "struct", "enum", "trait", "type", "const", "static", "union", "mod", "macro_rules"];

impl Reader<'_> {
    fn module(&mut self) -> &mut Module {
        let (name, _) = self.inner.last().expect("the file's own is never taken off");
        self.modules.all.entry(name.clone()).or_default()
    }

    fn read(&mut self, tokens: &[Token<'_>]) {
        let mut depth = 0;
        let mut at = 0;
        let mut path = None;
        while let Some(token) = tokens.get(at) {
            let next = |step: usize| tokens.get(at + step).copied();
            let before = at.checked_sub(1).map(|before| tokens[before]);
            match token.kind {
                Kind::Mark('#') if next(1).is_some_and(|token| token.is('[') || token.is('!')) => {
                    let end =
                        closing(tokens, at + if next(1).is_some_and(|token| token.is('!')) { 2 } else { 1 });
                    let attribute = &tokens[at..end];
                    if is_test(attribute) {
                        at = after_item(tokens, end);
                        continue;
                    }
                    path = given_path(attribute).or(path);
                    // Attributes name functions, as clap's do; their words are read as code.
                    at += 1;
                    continue;
                }
                Kind::Mark('{') => depth += 1,
                Kind::Mark('}') => {
                    depth -= 1;
                    if self.inner.last().is_some_and(|(_, around)| *around > depth) && self.inner.len() > 1 {
                        self.inner.pop();
                    }
                }
                Kind::Word("mod") if next(1).is_some_and(|token| token.word().is_some()) => {
                    let child = next(1).and_then(Token::word).expect("just looked at").to_owned();
                    let name = below(&self.inner.last().expect("never empty").0, &child);
                    self.module().children.insert(child);
                    if next(2).is_some_and(|token| token.is('{')) {
                        depth += 1;
                        self.inner.push((name, depth));
                        self.module();
                    } else {
                        self.declared.push((name, path.take()));
                    }
                    at += 3;
                    continue;
                }
                Kind::Word("use") if next(1).is_some_and(|token| !token.is('<')) => {
                    let exported = before.is_some_and(|token| token.is_word("pub") || token.is(')'));
                    at += 1;
                    self.tree(tokens, &mut at, &[], exported);
                    continue;
                }
                Kind::Word(word) => {
                    let around = self.inner.last().expect("never empty").1;
                    if ITEMS.contains(&word) && depth == around {
                        let step = if next(1).is_some_and(|token| token.is('!')) { 2 } else { 1 };
                        if let Some(name) = next(step).and_then(Token::word) {
                            self.module().items.insert(name.to_owned());
                        }
                    }
                    let continued = before.is_some_and(|token| token.is('.') || token.kind == Kind::Path);
                    // `pub(in super::x)` is a visibility, not a use.
                    let is_visibility = before.is_some_and(|token| token.is_word("in"))
                        && at.checked_sub(2).is_some_and(|at| tokens[at].is('('));
                    if next(1).is_some_and(|token| token.kind == Kind::Path) && !continued && !is_visibility {
                        at = self.path(tokens, at);
                        continue;
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// A path in the code; where it ends.
    fn path(&mut self, tokens: &[Token<'_>], mut at: usize) -> usize {
        let line = tokens[at].line;
        let mut segments = Vec::new();
        while let Some(word) = tokens.get(at).copied().and_then(Token::word) {
            segments.push(word.to_owned());
            at += 1;
            if tokens.get(at).is_none_or(|token| token.kind != Kind::Path) {
                break;
            }
            at += 1;
        }
        let file = self.file.to_owned();
        self.module().paths.push(Found { segments, file, line, exported: false });
        at
    }

    /// Reads the tree of a `use`, from its first word, a brace or a star, up to the token that ends it.
    fn tree(&mut self, tokens: &[Token<'_>], at: &mut usize, before: &[String], exported: bool) {
        let mut path = before.to_vec();
        while let Some(token) = tokens.get(*at) {
            match token.kind {
                Kind::Path => *at += 1,
                Kind::Word("as") => {
                    let name = tokens.get(*at + 1).copied().and_then(Token::word).unwrap_or("_").to_owned();
                    *at += 2;
                    self.found(path, Some(name), token.line, exported);
                    return;
                }
                Kind::Word("self") if !path.is_empty() => *at += 1,
                Kind::Word(word) => {
                    path.push(word.to_owned());
                    *at += 1;
                    let more =
                        tokens.get(*at).is_some_and(|token| token.kind == Kind::Path || token.is_word("as"));
                    if !more {
                        self.found(path, None, token.line, exported);
                        return;
                    }
                    continue;
                }
                Kind::Mark('*') => {
                    *at += 1;
                    self.module().globs.push(path.clone());
                    let file = self.file.to_owned();
                    self.module().paths.push(Found { segments: path, file, line: token.line, exported });
                    return;
                }
                Kind::Mark('{') => {
                    *at += 1;
                    while tokens.get(*at).is_some_and(|token| !token.is('}')) {
                        self.tree(tokens, at, &path, exported);
                        if tokens.get(*at).is_some_and(|token| token.is(',')) {
                            *at += 1;
                        }
                    }
                    *at += 1;
                    return;
                }
                _ => {
                    // `self` at the end of a group, or the end of the use.
                    if path.len() > before.len() || !before.is_empty() {
                        self.found(path, None, token.line, exported);
                    }
                    return;
                }
            }
        }
    }

    fn found(&mut self, segments: Vec<String>, named: Option<String>, line: usize, exported: bool) {
        let Some(name) = named.or_else(|| segments.last().cloned()) else { return };
        let file = self.file.to_owned();
        let module = self.module();
        module.names.insert(name, segments.clone());
        module.paths.push(Found { segments, file, line, exported });
    }
}

/// Where the bracket at a place is closed, one further.
fn closing(tokens: &[Token<'_>], from: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match token.kind {
            Kind::Mark('(' | '[' | '{') => depth += 1,
            Kind::Mark(')' | ']' | '}') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// Whether an attribute leaves something out of all but tests.
fn is_test(attribute: &[Token<'_>]) -> bool {
    let words: Vec<&str> = attribute.iter().filter_map(|token| token.word()).collect();
    matches!(words[..], ["cfg", "test", ..] | ["cfg", "all", "test", ..] | ["test"])
}

/// The file that an attribute names for a module.
fn given_path(attribute: &[Token<'_>]) -> Option<String> {
    match attribute {
        [_, _, word, _, Token { kind: Kind::Text(path), .. }, ..] if word.is_word("path") => {
            Some((*path).to_owned())
        }
        _ => None,
    }
}

/// Where the item, field or statement at a place ends, with its attributes.
fn after_item(tokens: &[Token<'_>], mut at: usize) -> usize {
    let mut is_item = false;
    while let Some(token) = tokens.get(at) {
        match token.kind {
            Kind::Mark('{') => return closing(tokens, at),
            Kind::Mark('(' | '[') => {
                at = closing(tokens, at);
                continue;
            }
            Kind::Mark(';') => return at + 1,
            Kind::Mark(',') if !is_item => return at + 1,
            Kind::Mark(')' | ']' | '}') => return at,
            Kind::Word("use" | "impl" | "unsafe" | "extern") => is_item = true,
            Kind::Word(word) if ITEMS.contains(&word) => is_item = true,
            _ => {}
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The uses in a crate of these files, as `from > to`.
    fn uses(files: &[(&str, &str)]) -> Vec<String> {
        let text = |path: &Path| {
            let found = files.iter().find(|(name, _)| path == Path::new(name));
            found.map(|(_, text)| (*text).to_owned())
        };
        let modules = Modules::read(Path::new("lib.rs"), &text).expect("all are there");
        let uses = modules.uses();
        let show = |name: &Name| if name.is_empty() { "crate".to_owned() } else { name.join("::") };
        uses.iter().map(|one| format!("{} > {}", show(&one.from), show(&one.to))).collect()
    }

    /// What a module `a` uses that has this text, beside modules `b`, with an item `Item` and a module `c`, and `d`.
    fn uses_of_a(text: &str) -> Vec<String> {
        let root = "mod a; mod b; mod d; pub use b::Item as Renamed; pub use d::*; pub use std::fmt::Debug;";
        uses(&[
            ("lib.rs", root),
            ("a.rs", text),
            ("b/mod.rs", "pub mod c; pub struct Item; pub use c::Deep;"),
            ("b/c.rs", "pub struct Deep;"),
            ("d.rs", "pub fn free() {}"),
        ])
        .into_iter()
        .filter(|one| one.starts_with("a "))
        .collect()
    }

    #[test]
    fn each_form_of_a_path_is_a_use() {
        for text in [
            "use crate::b::Item;",
            "use super::b::Item;",
            "use crate::{Debug, b::Item};",
            "use crate::{\n    b::{\n        self,\n    },\n};",
            "use crate::b as other;",
            "use crate::b::{self as other};",
            "use crate::b::*;",
            "pub use crate::b::Item;",
            "fn f(x: crate::b::Item) {}",
            "fn f() { super::b::function::<u8>() }",
            "fn f() { println!(\"{}\", crate::b::CONSTANT) }",
            "#[arg(value_parser = crate::b::parse)] struct S;",
            "macro_rules! m { () => { $crate::b::Item } }",
            "mod inner { use super::super::b::Item; }",
            "mod inner { fn f() { crate::b::f() } }",
            "use crate::Renamed;",
            "impl crate::b::Trait for u8 {}",
            "fn f<'a>(x: &'a u8) -> char { let _ = b'\\''; crate::b::f(); '\"' }",
        ] {
            assert_eq!(uses_of_a(text), ["a > b"], "{text}");
        }
    }

    #[test]
    fn re_exports_lead_to_the_item() {
        assert_eq!(uses_of_a("use crate::b::c::Deep;"), ["a > b::c"]);
        assert_eq!(uses_of_a("use crate::b::Deep;"), ["a > b::c"]);
        assert_eq!(uses_of_a("fn f() { crate::free() }"), ["a > d"]);
        assert_eq!(uses_of_a("use crate::b; fn f() { b::c::f() }"), ["a > b", "a > b::c"]);
    }

    #[test]
    fn what_is_no_use_is_none() {
        for text in [
            "// crate::b::Item",
            "/* use crate::b; /* nested */ use crate::b; */",
            "//! [`crate::b`]",
            "const TEXT: &str = \"crate::b::Item\";",
            "const TEXT: &str = r#\"\" crate::b::Item\"#;",
            "#[cfg(test)] mod tests { use crate::b::Item; }",
            "#[cfg(test)]\nuse crate::b::{Item, c};",
            "#[cfg(all(test, unix))] fn f() { crate::b::f() }",
            "struct S { #[cfg(test)] x: crate::b::Item, y: u8 }",
            "#[test] fn f() { crate::b::f() }",
            "use std::b::Item;",
            "use ::b::Item;",
            "use crate::Debug;",
            "fn f() { value.b::<u8>(); Type::b::f() }",
            "use self::inner::x; mod inner {}",
            "mod inner { pub(in super::super) struct S; }",
        ] {
            assert_eq!(uses_of_a(text), Vec::<String>::new(), "{text}");
        }
        let behind = "#[cfg(test)] mod tests { fn f() { if x { } } } use crate::b::Item;";
        assert_eq!(uses_of_a(behind), ["a > b"]);
    }

    #[test]
    fn a_module_and_its_own_modules() {
        let root = ("lib.rs", "mod a;");
        let child = ("a/b.rs", "use super::Shared;");
        let uses = |text| uses(&[root, ("a/mod.rs", text), child]);
        assert_eq!(
            uses("mod b; struct Shared; pub(crate) use b::Item;"),
            ["a::b > a"],
            "to export is no use"
        );
        assert_eq!(uses("mod b; struct Shared; use b::Item;"), ["a > a::b", "a::b > a"]);
        assert_eq!(uses("mod b; struct Shared; fn f() { b::f() }"), ["a > a::b", "a::b > a"]);
        assert_eq!(uses("mod b; struct Shared; fn f() { self::b::f() }"), ["a > a::b", "a::b > a"]);
    }

    #[test]
    fn files_are_found_where_rust_looks() {
        let files = [
            ("lib.rs", "mod a; #[path = \"elsewhere/x.rs\"] mod p; mod i { pub mod j; }"),
            ("a.rs", "pub mod b;"),
            ("a/b.rs", "use crate::p::X; use crate::i::j::Y;"),
            ("elsewhere/x.rs", "pub struct X;"),
            ("i/j.rs", "pub struct Y;"),
        ];
        assert_eq!(uses(&files), ["a::b > i::j", "a::b > p"]);
        let missing = Modules::read(Path::new("lib.rs"), &|path| {
            (path == Path::new("lib.rs")).then(|| "mod gone;".to_owned())
        });
        assert_eq!(missing.unwrap_err(), "gone.rs: it is declared, and not there");
    }
}
