//! The step `msrv`: the libraries build with the oldest Rust that their manifests promise (`rust-version` in the
//! root's). Clippy's `incompatible_msrv` knows the age of functions; this knows that of the language as well.

use crate::steps::{Outcome, Verdict};
use crate::workspace::{self, Workspace};

/// The libraries, each with all that it depends on.
const LIBRARIES: &[&str] = &[
    "forrest-db",
    "forrest-raft",
    "forrest-redis",
    "forrest-c",
    "forrest-leveldb",
    "remixdb-c",
    "forrest-py",
    "forrest-jni",
    "forrest-node",
];

/// The step.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    let path = workspace.root.join("Cargo.toml");
    let manifest = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let version = rust_version(&manifest).ok_or("Cargo.toml has no rust-version")?;
    let toolchain = format!("{version}.0");
    if !workspace::succeeds(workspace.command("rustup").args(["run", &toolchain, "cargo", "--version"])) {
        return Ok(Outcome::Skipped(format!(
            "Rust {toolchain} is missing: rustup toolchain install {toolchain} --profile minimal"
        )));
    }
    let mut check = workspace.command("rustup");
    check.args(["run", &toolchain, "cargo", "check", "--locked", "--lib"]);
    check.args(LIBRARIES.iter().flat_map(|name| ["--package", name]));
    workspace::run(check.env("CARGO_TARGET_DIR", workspace.target.join("msrv")))?;
    Ok(Outcome::Passed)
}

/// The version in the workspace's manifest.
fn rust_version(manifest: &str) -> Option<&str> {
    manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_in_the_manifest() {
        let workspace = Workspace::find().expect("this test runs in it");
        let manifest = std::fs::read_to_string(workspace.root.join("Cargo.toml")).expect("the manifest");
        let version = rust_version(&manifest).expect("a version");
        let (major, minor) = version.split_once('.').expect("a version of two numbers");
        assert!(major == "1" && minor.parse::<u32>().is_ok(), "{version}");
        assert_eq!(rust_version("[package]\n"), None);
    }
}
