//! The order of crates and modules, which `docs/layers.txt` states.
//!
//! The file has a section for the crates and one for each directory of sources; its head explains the format. Crates
//! may use only crates below them (according to the normal and build dependencies of their manifests), and modules
//! only modules below them (according to the paths in their code, see [`super::modules`]).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::modules::{Modules, Name};

/// Where the order is written.
pub(crate) const FILE: &str = "docs/layers.txt";
/// The section that orders crates.
const CRATES: &str = "crates";
/// A directory's own `mod.rs`, where it does not stand above all other modules of the directory.
const OWN: &str = "mod";

/// The lists of the file, by the names of their sections.
#[derive(Debug, Default)]
pub(crate) struct Order {
    sections: BTreeMap<String, Section>,
}

#[derive(Debug, Default)]
struct Section {
    line: usize,
    /// The line of each name, which is its level: 1 and on from the top.
    levels: BTreeMap<String, usize>,
    /// Those whose place is not checked yet.
    unchecked: BTreeSet<String>,
}

impl Order {
    /// Reads the file of a workspace.
    pub(crate) fn read(root: &Path) -> Result<Order, String> {
        let text = std::fs::read_to_string(root.join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
        Order::parse(&text)
    }

    /// Reads the text of the file.
    pub(crate) fn parse(text: &str) -> Result<Order, String> {
        let mut order = Order::default();
        let mut current: Option<&mut Section> = None;
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            let place = format!("{FILE}:{}", at + 1);
            if line.is_empty() {
                continue;
            }
            if let Some(name) = line.strip_prefix('[') {
                let name = name.strip_suffix(']').ok_or_else(|| format!("{place}: no ] after the name"))?;
                let section = order.sections.entry(name.to_owned()).or_default();
                if section.line > 0 {
                    return Err(format!("{place}: [{name}] is listed twice"));
                }
                section.line = at + 1;
                current = Some(section);
                continue;
            }
            let section =
                current.as_mut().ok_or_else(|| format!("{place}: no [section] before the first name"))?;
            for name in line.split_whitespace() {
                let known = name.strip_suffix('?').unwrap_or(name);
                if known != name {
                    section.unchecked.insert(known.to_owned());
                }
                if section.levels.insert(known.to_owned(), at + 1).is_some() {
                    return Err(format!("{place}: {name} is listed twice"));
                }
            }
        }
        Ok(order)
    }

    /// The breaches of a workspace.
    pub(crate) fn breaches(&self, root: &Path) -> Result<Vec<String>, String> {
        let parts = parts(root)?;
        let mut breaches = Vec::new();
        for part in &parts {
            match self.sections.get(&part.section) {
                Some(section) => breaches.extend(section.breaches(part)),
                None => {
                    let names: Vec<&str> = part.names.iter().map(String::as_str).collect();
                    breaches.push(format!("{FILE}: no section [{}], for {}", part.section, names.join(" ")));
                }
            }
        }
        for (name, section) in &self.sections {
            if !parts.iter().any(|part| part.section == *name) {
                breaches.push(format!("{FILE}:{}: [{name}] has no modules", section.line));
            }
        }
        Ok(breaches)
    }
}

impl Section {
    fn breaches(&self, part: &Part) -> Vec<String> {
        let section = &part.section;
        let missing = part.names.iter().filter(|name| !self.levels.contains_key(*name));
        let missing =
            missing.map(|name| format!("{FILE}:{}: {name} is not listed in [{section}]", self.line));
        let is_gone = |name: &str| !part.names.contains(name) && (name != OWN || part.section == CRATES);
        let gone = self.levels.iter().filter(|(name, _)| is_gone(name));
        let gone = gone.map(|(name, level)| format!("{FILE}:{level}: [{section}] has no {name}"));
        let upward = part.uses.iter().filter_map(|((from, to), place)| self.breach(place, from, to));
        missing.chain(gone).chain(upward).collect()
    }

    /// Whether one may use another. A directory's own module stands above all others unless it is listed.
    fn breach(&self, place: &str, from: &str, to: &str) -> Option<String> {
        let level = |name: &str| match self.levels.get(name) {
            Some(level) => Some(*level),
            None => (name == OWN).then_some(0),
        };
        if self.unchecked.contains(from) || self.unchecked.contains(to) {
            return None;
        }
        let (above, beneath) = (level(from)?, level(to)?);
        (above >= beneath).then(|| {
            let how = if above == beneath { "beside" } else { "above" };
            format!("{place}: {from} uses {to}, which stands {how} it in {FILE}")
        })
    }
}

/// Crates or modules that have an order among themselves, and which of them use which.
#[derive(Debug, Default)]
struct Part {
    section: String,
    names: BTreeSet<String>,
    /// With the place of the first use.
    uses: BTreeMap<(String, String), String>,
}

impl Part {
    /// Possible levels from the top, as lines of the file, and the modules in cycles.
    fn proposal(&self) -> (Vec<String>, Vec<String>) {
        let mut left: BTreeSet<&str> = self.names.iter().map(String::as_str).collect();
        left.extend(self.uses.keys().flat_map(|(from, to)| [from.as_str(), to.as_str()]));
        let mut levels = Vec::new();
        loop {
            let uses = |name: &str, other: &str| self.uses.contains_key(&(name.to_owned(), other.to_owned()));
            let lowest: Vec<&str> =
                left.iter().copied().filter(|name| !left.iter().any(|other| uses(name, other))).collect();
            if lowest.is_empty() {
                break;
            }
            left.retain(|name| !lowest.contains(name));
            levels.push(lowest.join(" "));
        }
        levels.reverse();
        if levels.first().is_some_and(|top| top == OWN) {
            levels.remove(0);
        }
        (levels, left.into_iter().map(str::to_owned).collect())
    }
}

/// What there is to be ordered in a workspace.
fn parts(root: &Path) -> Result<Vec<Part>, String> {
    let packages = packages(root)?;
    let mut crates = Part { section: CRATES.to_owned(), ..Part::default() };
    let mut parts = Vec::new();
    for package in &packages {
        crates.names.insert(package.name());
        for (dependency, line) in &package.dependencies {
            let place = format!("{}:{line}", package.directory.join("Cargo.toml").display());
            crates.uses.insert((package.name(), dependency.clone()), place);
        }
        let source = package.directory.join("src");
        let files = ["lib.rs", "main.rs"].map(|file| root.join(&source).join(file));
        if let Some(file) = files.iter().find(|file| file.exists()) {
            parts.extend(parts_of(
                root,
                &source,
                &Modules::read(file, &|path| std::fs::read_to_string(path).ok())?,
            ));
        }
    }
    parts.insert(0, crates);
    Ok(parts)
}

/// The directories of a crate.
fn parts_of(root: &Path, source: &Path, modules: &Modules) -> Vec<Part> {
    let mut parts: BTreeMap<Name, Part> = BTreeMap::new();
    for parent in modules.parents() {
        let names = modules.children(&parent).into_iter().collect();
        let part = Part { section: section_of(source, &parent), names, uses: BTreeMap::new() };
        parts.insert(parent, part);
    }
    for one in modules.uses() {
        let common = one.from.iter().zip(&one.to).take_while(|(from, to)| from == to).count();
        let name = |of: &Name| of.get(common).map_or(OWN, String::as_str).to_owned();
        let Some(part) = parts.get_mut(&one.from[..common]) else { continue };
        let file = one.file.strip_prefix(root).unwrap_or(&one.file).display();
        part.uses.entry((name(&one.from), name(&one.to))).or_insert_with(|| format!("{file}:{}", one.line));
    }
    parts.into_values().collect()
}

/// The section of a module's children: the directory where they lie.
fn section_of(source: &Path, parent: &[String]) -> String {
    let directory: PathBuf =
        std::iter::once(source.to_owned()).chain(parent.iter().map(PathBuf::from)).collect();
    directory.display().to_string()
}

/// The sections as they would be made of the code as it is, and circles where there are any.
pub(crate) fn proposals(root: &Path) -> Result<String, String> {
    let mut text = String::new();
    for part in parts(root)? {
        let (levels, circles) = part.proposal();
        text += &format!("[{}]\n", part.section);
        text.extend(levels.iter().map(|level| format!("{level}\n")));
        if !circles.is_empty() {
            text += &format!("# in circles: {}\n", circles.join(" "));
            let inside =
                part.uses.iter().filter(|((from, to), _)| circles.contains(from) && circles.contains(to));
            text.extend(inside.map(|((from, to), place)| format!("#   {from} uses {to}: {place}\n")));
        }
        text += "\n";
    }
    Ok(text)
}

/// A crate of the workspace, as its manifest has it.
#[derive(Debug)]
struct Package {
    directory: PathBuf,
    /// The crates of this workspace that it depends on other than in tests, with the lines of the manifest.
    dependencies: Vec<(String, usize)>,
}

impl Package {
    /// Crates are called by their directories here.
    fn name(&self) -> String {
        self.directory.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// The members of the workspace.
fn packages(root: &Path) -> Result<Vec<Package>, String> {
    let read = |path: &Path| {
        std::fs::read_to_string(root.join(path)).map_err(|error| format!("{}: {error}", path.display()))
    };
    let manifest = read(Path::new("Cargo.toml"))?;
    let members = members(&manifest);
    let mut packages = Vec::new();
    for member in &members {
        let directory = PathBuf::from(member);
        let text = read(&directory.join("Cargo.toml"))?;
        packages.push(Package { dependencies: dependencies(&text, &members), directory });
    }
    Ok(packages)
}

/// The directories that the workspace's manifest lists.
fn members(manifest: &str) -> Vec<String> {
    let list =
        manifest.split_once("\nmembers = [").map_or("", |(_, rest)| rest.split(']').next().unwrap_or(""));
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// What a manifest names in sections of dependencies other than those of tests: the directories of members.
fn dependencies(manifest: &str, members: &[String]) -> Vec<(String, usize)> {
    let mut counts = false;
    let mut found = Vec::new();
    for (at, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            counts = section.ends_with("dependencies") && !section.ends_with("dev-dependencies");
            continue;
        }
        let Some((key, value)) = line.split_once('=').filter(|_| counts && !line.starts_with('#')) else {
            continue;
        };
        let renamed = value.split_once("package").and_then(|(_, rest)| rest.split('"').nth(1));
        let name = renamed.unwrap_or_else(|| key.trim().split('.').next().unwrap_or(""));
        let is_member = |member: &&String| Path::new(member).file_name().is_some_and(|member| member == name);
        if members.iter().any(|member| is_member(&member)) {
            found.push((name.to_owned(), at + 1));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(names: &[&str], uses: &[(&str, &str)]) -> Part {
        let uses =
            uses.iter().map(|(from, to)| (((*from).to_owned(), (*to).to_owned()), "x.rs:7".to_owned()));
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Part { section: "s".to_owned(), names, uses: uses.collect() }
    }

    /// The breaches of a part that this text is the order of.
    fn breaches(text: &str, part: &Part) -> Vec<String> {
        let order = Order::parse(&format!("# head\n[s]\n{text}")).expect("it can be read");
        order.sections["s"].breaches(part)
    }

    #[test]
    fn uses_go_down() {
        let names = ["a", "b", "c"];
        assert_eq!(breaches("a\nb c\n", &part(&names, &[("a", "b"), ("a", "c")])), Vec::<String>::new());
        let upward = breaches("a\nb c\n", &part(&names, &[("b", "a")]));
        assert_eq!(upward, ["x.rs:7: b uses a, which stands above it in docs/layers.txt"]);
        let beside = breaches("a\nb c\n", &part(&names, &[("c", "b")]));
        assert_eq!(beside, ["x.rs:7: c uses b, which stands beside it in docs/layers.txt"]);
    }

    #[test]
    fn a_directorys_own_module_is_on_top_unless_listed() {
        let names = ["a", "b"];
        assert_eq!(breaches("a\nb\n", &part(&names, &[("mod", "a")])), Vec::<String>::new());
        assert_eq!(breaches("a\nb\n", &part(&names, &[("a", "mod")])).len(), 1);
        assert_eq!(
            breaches("a\nmod\nb\n", &part(&names, &[("a", "mod"), ("mod", "b")])),
            Vec::<String>::new()
        );
        assert_eq!(breaches("a\nmod\nb\n", &part(&names, &[("mod", "a")])).len(), 1);
        assert_eq!(breaches("mod?\na\nb\n", &part(&names, &[("a", "mod"), ("b", "a")])).len(), 1);
    }

    #[test]
    fn lists_are_complete() {
        let listed = breaches("a gone # why\n", &part(&["a", "new"], &[]));
        assert_eq!(
            listed,
            ["docs/layers.txt:2: new is not listed in [s]", "docs/layers.txt:3: [s] has no gone"]
        );
        for wrong in ["a\n", "[s\na\n", "[s]\na\na\n", "[s]\n[s]\n"] {
            assert!(Order::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn proposals_have_levels_and_circles() {
        let line =
            part(&["a", "b", "c", "d"], &[("mod", "a"), ("a", "b"), ("a", "c"), ("c", "d"), ("b", "d")]);
        let levels = ["a", "b c", "d"].map(str::to_owned).to_vec();
        assert_eq!(line.proposal(), (levels, Vec::new()));
        let circle = part(&["a", "b", "c"], &[("a", "b"), ("b", "a"), ("b", "c")]);
        assert_eq!(circle.proposal(), (vec!["c".to_owned()], vec!["a".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn manifests_name_what_a_crate_uses() {
        let members = members("[workspace]\nmembers = [\n    \"crates/a\",\n    \"xtask\",\n]\n");
        assert_eq!(members, ["crates/a", "xtask"]);
        for (text, found) in [
            ("[dependencies]\na.workspace = true\n", true),
            ("[dependencies]\nother = { package = \"a\", path = \"../a\" }\n", true),
            ("[build-dependencies]\na = { workspace = true, optional = true }\n", true),
            ("[target.'cfg(unix)'.dependencies]\na.workspace = true\n", true),
            ("[dependencies]\n# a.workspace = true\nab.workspace = true\n", false),
            ("[dev-dependencies]\na.workspace = true\n", false),
            ("[target.'cfg(loom)'.dev-dependencies]\na.workspace = true\n", false),
            ("[package]\nname = \"a\"\n[features]\na = []\n", false),
        ] {
            assert_eq!(!dependencies(text, &members).is_empty(), found, "{text}");
        }
    }
}
