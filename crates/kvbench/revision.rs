//! The revision of the sources that the program is built from, for the build script.
//!
//! It belongs to the program: a record names the sources of what was measured, whatever is checked out when it is
//! measured. The build script runs again if one of the sources changes, which builds the program again anyway, or if
//! HEAD moves. Without git, or outside of a checkout, the revision is unknown.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates that the program is built from, and the parts of each.
const CRATES: &[&str] = &[
    "forrest",
    "forrest-base",
    "forrest-engine",
    "forrest-index",
    "forrest-machine",
    "forrest-models",
    "kvbench",
    "llds",
    "remixdb",
];
const PARTS: &[&str] = &["Cargo.toml", "build.rs", "src"];
/// What else it is built from.
const FILES: &[&str] = &[
    "Cargo.lock",
    "Cargo.toml",
    "crates/forrest-cli/src/pages.rs",
    "crates/kvbench/include",
    "crates/kvbench/peers",
    "crates/kvbench/revision.rs",
    "crates/kvbench/suites",
    "kernel/llds",
];

/// What the program is built from, by its place in the workspace.
pub(crate) fn sources() -> Vec<String> {
    let of_crate = |name| PARTS.iter().map(move |part| format!("crates/{name}/{part}"));
    FILES.iter().map(|file| (*file).to_owned()).chain(CRATES.iter().flat_map(of_crate)).collect()
}

fn git(directory: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    // A look changes nothing.
    command.args(arguments).current_dir(directory).env("GIT_OPTIONAL_LOCKS", "0");
    let output = command.output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The revision of these sources below `root`, with `-dirty` if they differ from it; `None` if they are in no checkout.
pub(crate) fn of(root: &Path, sources: &[String]) -> Option<String> {
    // A copy of the sources within another checkout is not of its revision.
    git(root, &["ls-files", "--error-unmatch", sources.first()?])?;
    let revision = git(root, &["rev-parse", "--short=12", "HEAD"])?;
    let sources = sources.iter().map(String::as_str);
    let changed = git(root, &["status", "--porcelain", "--"].into_iter().chain(sources).collect::<Vec<_>>())?;
    Some(format!("{revision}{}", if changed.is_empty() { "" } else { "-dirty" }))
}

/// The files and directories that tell of another revision when they change; all of them are there, as the build script
/// would run each time for one that is not.
pub(crate) fn watched(root: &Path, sources: &[String]) -> Vec<PathBuf> {
    let branch = git(root, &["symbolic-ref", "-q", "HEAD"]);
    let names = ["HEAD", "logs/HEAD", "packed-refs"].into_iter().chain(branch.as_deref());
    let of_git = names.filter_map(|name| git(root, &["rev-parse", "--git-path", name]));
    let paths = of_git.chain(sources.iter().cloned());
    paths.map(|path| root.join(path)).filter(|path| path.exists()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;

    #[test]
    fn a_revision_is_that_of_the_sources() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let commit = || {
            let who = ["-c", "user.name=n", "-c", "user.email=e@invalid"];
            let commit = ["-c", "commit.gpgsign=false", "commit", "-q", "-m", "m", "--allow-empty"];
            git(root, &["add", "src"]).and_then(|_| git(root, &[&who[..], &commit].concat()))
        };
        if git(root, &["init", "-q"]).is_none() {
            return println!("skipped: there is no git");
        }
        let sources = ["src".to_owned()];
        fs::create_dir(root.join("src")).unwrap();
        fs::write(root.join("src/a"), "a").unwrap();
        assert_eq!(of(root, &sources), None, "nothing is committed");
        commit().unwrap();
        let head = git(root, &["rev-parse", "--short=12", "HEAD"]).unwrap();
        assert_eq!(of(root, &sources), Some(head.clone()));
        fs::write(root.join("other"), "b").unwrap();
        assert_eq!(of(root, &sources), Some(head.clone()), "it is no source");
        fs::write(root.join("src/a"), "b").unwrap();
        assert_eq!(of(root, &sources), Some(format!("{head}-dirty")));
        // What is watched changes with HEAD, and is there.
        let contents = || {
            let files = watched(root, &sources).into_iter().filter(|path| path.is_file());
            files.map(|path| fs::read(path).unwrap()).collect::<Vec<_>>()
        };
        let before = contents();
        assert!(!before.is_empty() && watched(root, &sources).contains(&root.join("src")));
        commit().unwrap();
        assert_ne!(contents(), before);
        let unknown = root.join("copied");
        fs::create_dir(&unknown).unwrap();
        assert_eq!(of(&unknown, &sources), None, "a copy in another checkout");
        assert_eq!(of(&root.join("nowhere"), &sources), None);
    }

    /// The dependencies of this package in the workspace, and theirs.
    #[test]
    fn all_sources_are_known() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let manifest = |path: &Path| -> toml::Table {
            fs::read_to_string(path.join("Cargo.toml")).unwrap().parse().unwrap()
        };
        let workspace = manifest(&root);
        let member = |name: &str| -> Option<String> {
            let of = workspace["workspace"]["dependencies"].get(name)?.get("path")?;
            Some(of.as_str()?.to_owned())
        };
        let (mut found, mut open) = (BTreeSet::new(), vec!["crates/kvbench".to_owned()]);
        while let Some(path) = open.pop() {
            for tables in ["dependencies", "build-dependencies"] {
                if let Some(toml::Value::Table(of)) = manifest(&root.join(&path)).get(tables) {
                    open.extend(
                        of.keys().filter_map(|name| member(name)).filter(|path| !found.contains(path)),
                    );
                }
            }
            found.insert(path);
        }
        let known: Vec<_> = CRATES.iter().map(|name| format!("crates/{name}")).collect();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), known);
        let named = sources();
        let mut named = named.iter().filter(|source| !source.ends_with("build.rs"));
        assert!(named.all(|source| root.join(source).exists()));
    }
}
