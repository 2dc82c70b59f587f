//! `cargo xtask vm --style`: what kernel people run over the source of the module, without a word of complaint:
//! `checkpatch.pl --strict` and the semantic patches of a kernel's source (coccinelle), and clang's analyzer over the
//! engine, which it sees as user space builds it.

use std::fs;
use std::path::{Path, PathBuf};

use super::bench::files;
use super::boots::NAME;
use super::{kernel, source};
use crate::setup;
use crate::steps::{Outcome, Verdict};
use crate::workspace::{self, Workspace};

/// Programs that this needs, and their packages.
const PROGRAMS: &[(&str, &str)] =
    &[("perl", "perl"), ("spatch", "coccinelle"), ("clang", "clang"), ("xz", "xz-utils")];
/// The module's sources.
const MODULE: &str = "kernel/llds";
/// Files with remarks that cannot be helped: a module outside of the kernel's tree has to check versions, and the name
/// of a header that is included is taken for that of the file.
const REMARKS: &[(&str, &str)] = &[
    ("compat.h", "LINUX_VERSION_CODE should be avoided"),
    ("compat.h", "Comparisons should place the constant on the right side"),
    ("tree.h", "It's generally not useful to have the filename in the file"),
];
/// Warnings of the analyzer, each about a call that cannot be: it does not know what the callers ensure.
const IMPOSSIBLE: &[(&str, &str)] = &[
    // There are two buckets or more, so half of them is one or more.
    ("buckets.c", "The result of the left shift is undefined because the right operand is negative"),
    // A block has a byte or more, so its class is none below the first.
    ("memory.c", "The result of the left shift is undefined due to shifting by '1073741822'"),
    // A supply has as many nodes as are taken from it.
    ("order.c", "Assigned value is garbage or undefined"),
    // An entry was found in a bucket or in a node of the tree.
    ("store.c", "Access to field 'handle' results in a dereference of a null pointer"),
];
/// Files that only the kernel can compile, so that the analyzer is not run on them.
const OF_THE_KERNEL: &[&str] = &["device.c", "map.c", "stores.c"];

pub(super) fn run(workspace: &Workspace) -> Verdict {
    setup::programs(workspace, PROGRAMS)?;
    let stock = match kernel::get(workspace, &workspace.target.join(NAME).join("kernel")) {
        Ok(stock) => stock,
        Err(why) => return Ok(Outcome::Skipped(why)),
    };
    let cache = workspace.target.join(format!("{NAME}-debug")).join("kernel");
    let root = match source::tree(workspace, &cache, &stock.release)? {
        Ok((root, _)) => root,
        Err(why) => return Ok(Outcome::Skipped(why)),
    };
    let scripts = root.join("source/scripts");
    let mut faults = checkpatch(workspace, &scripts)?;
    faults.extend(coccinelle(workspace, &scripts)?);
    faults.extend(analyze(workspace)?);
    if faults.is_empty() { Ok(Outcome::Passed) } else { Err(faults.join("\n")) }
}

/// The module's sources that end so.
fn sources(workspace: &Workspace, end: &str) -> Result<Vec<PathBuf>, String> {
    files(&workspace.root.join(MODULE), end)
}

/// The lines of checkpatch that are no known remarks.
fn checkpatch(workspace: &Workspace, scripts: &Path) -> Result<Vec<String>, String> {
    let mut perl = workspace.command("perl");
    perl.arg(scripts.join("checkpatch.pl")).args(["--no-tree", "--strict", "--terse", "--no-summary", "-f"]);
    perl.args(sources(workspace, "c")?).args(sources(workspace, "h")?);
    perl.args(files(&workspace.root.join(MODULE).join("uapi"), "h")?);
    perl.args(["Kconfig", "Kbuild", "Makefile"].map(|file| workspace.root.join(MODULE).join(file)));
    println!("$ {}", workspace::line(&perl));
    let (text, _) = workspace::capture(&mut perl)?;
    let is_known = |line: &str| REMARKS.iter().any(|(file, what)| line.contains(file) && line.contains(what));
    Ok(text.lines().filter(|line| !line.trim().is_empty() && !is_known(line)).map(str::to_owned).collect())
}

/// What the kernel's semantic patches report.
fn coccinelle(workspace: &Workspace, scripts: &Path) -> Result<Vec<String>, String> {
    let mut faults = Vec::new();
    let mut patches = Vec::new();
    let folders = fs::read_dir(scripts.join("coccinelle"));
    for folder in folders.map_err(|error| format!("{}: {error}", scripts.display()))?.flatten() {
        patches.extend(files(&folder.path(), "cocci")?);
    }
    patches.sort();
    println!("{} semantic patches of the kernel", patches.len());
    if patches.is_empty() {
        return Err(format!("{} has no semantic patches", scripts.display()));
    }
    for patch in patches {
        let text = fs::read_to_string(&patch).map_err(|error| format!("{}: {error}", patch.display()))?;
        if !text.lines().any(|line| line.trim() == "virtual report") {
            continue;
        }
        if text.contains("script:ocaml") {
            println!("skipped: {} needs a compiler of OCaml", patch.display());
            continue;
        }
        let options = text.lines().find_map(|line| line.strip_prefix("// Options:")).unwrap_or_default();
        let mut spatch = workspace.command("spatch");
        spatch.args(["-D", "report", "--very-quiet", "--no-show-diff"]).args(options.split_whitespace());
        spatch.arg("--cocci-file").arg(&patch).arg("-I").arg(workspace.root.join(MODULE));
        let (text, status) = workspace::capture(spatch.args(sources(workspace, "c")?))?;
        let mut found: Vec<String> =
            text.lines().filter(|line| line.contains(MODULE)).map(str::to_owned).collect();
        if !status.success() {
            found.push(format!("{status} of: {}\n{text}", workspace::line(&spatch)));
        }
        faults.extend(found);
    }
    Ok(faults)
}

/// What clang's analyzer finds in the engine.
fn analyze(workspace: &Workspace) -> Result<Vec<String>, String> {
    let mut faults = Vec::new();
    for file in sources(workspace, "c")? {
        if OF_THE_KERNEL.iter().any(|name| file.ends_with(name)) {
            continue;
        }
        let mut clang = workspace.command("clang");
        clang.args(["--analyze", "-Xclang", "-analyzer-output=text", "-Wall"]);
        clang.arg("-I").arg(workspace.root.join(MODULE)).arg(&file);
        let (text, status) = workspace::capture(&mut clang)?;
        let is_known =
            |line: &&str| IMPOSSIBLE.iter().any(|(name, what)| file.ends_with(name) && line.contains(what));
        let warnings: Vec<&str> =
            text.lines().filter(|line| line.contains("warning:") || line.contains("error:")).collect();
        if !status.success() || !warnings.iter().all(is_known) {
            faults.push(text);
        }
    }
    Ok(faults)
}
