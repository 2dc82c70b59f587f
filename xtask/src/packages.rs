//! The step `packages`: packs the crates that are published, as the registry would get them. Each must have a README,
//! both licences, and no dependency without a version. In full size each is compiled from its package, which shows that
//! it needs nothing else of the repository.

use crate::steps::{Outcome, Verdict};
use crate::workspace::{self, UNOPTIMIZED, Workspace};
use std::path::{Path, PathBuf};

/// Line of a manifest whose crate stays here.
const KEPT: &str = "publish = false";
/// Below the target directory, for what is compiled: what the other steps have compiled stays.
const DIRECTORY: &str = "packages";
/// Files of each package.
const FILES: &[&str] = &["README.md", "LICENSE-MIT", "LICENSE-APACHE", "Cargo.toml"];

/// The step.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    let (published, kept) = crates(&workspace.root)?;
    let arguments = [&["package", "--workspace", "--allow-dirty", "--locked"], UNOPTIMIZED].concat();
    let mut pack = workspace.cargo_apart(DIRECTORY, &arguments);
    pack.env("CARGO_PROFILE_DEV_DEBUG", "0");
    if !workspace.is_full {
        pack.arg("--no-verify");
    }
    kept.iter().for_each(|name| {
        pack.args(["--exclude", name]);
    });
    forget(workspace, &published)?;
    workspace::run(&mut pack)?;
    for name in &published {
        let mut list =
            workspace.cargo(&["package", "--list", "--allow-dirty", "--locked", "--package", name]);
        let (files, status) = workspace::capture(&mut list)?;
        if !status.success() {
            return Err(format!("{}: {status}", workspace::line(&list)));
        }
        if let Some(missing) = FILES.iter().find(|file| files.lines().all(|line| line != **file)) {
            return Err(format!("the package {name} has no {missing}"));
        }
    }
    println!("{} packages: {}", published.len(), published.join(", "));
    Ok(Outcome::Passed)
}

/// Removes what cargo has unpacked of these crates before, and what it has compiled from that. It takes a package of
/// the same version for the same package. The names of registries that are directories, as the one for this, begin
/// with a dash.
fn forget(workspace: &Workspace, published: &[String]) -> Result<(), String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let Some(home) = home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))) else { return Ok(()) };
    let entries =
        |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // `NAME-VERSION`, and `NAME-HASH`.
    let is_ours = |path: &PathBuf| {
        let name = name(path);
        published.iter().any(|ours| name.rsplit_once('-').is_some_and(|(name, _)| name == ours))
    };
    let registries = entries(&home.join("registry/src")).filter(|path| name(path).starts_with('-'));
    let mut old: Vec<PathBuf> =
        registries.flat_map(|path| entries(&path).filter(is_ours).collect::<Vec<_>>()).collect();
    if !old.is_empty() {
        old.extend(entries(&workspace.target.join(DIRECTORY).join("debug/.fingerprint")).filter(is_ours));
    }
    old.iter().try_for_each(|path| {
        std::fs::remove_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))
    })
}

/// The crates of the workspace by name: those that are published, and the others.
fn crates(root: &Path) -> Result<(Vec<String>, Vec<String>), String> {
    let (mut published, mut kept) = (Vec::new(), Vec::new());
    let folders = std::fs::read_dir(root.join("crates")).map_err(|error| error.to_string())?;
    let folders = folders.flatten().map(|folder| folder.path()).chain([root.join("xtask")]);
    for manifest in folders.map(|folder| folder.join("Cargo.toml")).filter(|path| path.is_file()) {
        let told = |error: std::io::Error| format!("{}: {error}", manifest.display());
        let text = std::fs::read_to_string(&manifest).map_err(told)?;
        let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        let name = name.ok_or_else(|| format!("{} names no package", manifest.display()))?;
        let list = if text.lines().any(|line| line == KEPT) { &mut kept } else { &mut published };
        list.push(name.to_owned());
    }
    published.sort();
    kept.sort();
    Ok((published, kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_published_and_this_program_is_not() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let (published, kept) = crates(root).expect("manifests");
        assert!(published.iter().any(|name| name == "forrest-db"), "{published:?}");
        assert!(kept.iter().any(|name| name == "xtask") && kept.iter().all(|name| !published.contains(name)));
    }
}
