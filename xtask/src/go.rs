//! The step `go`: the Go modules in `go`, with the C library that they call, and their guide.
//!
//! The library is installed below the target directory, as users install it. The package itself needs no other module.
//! The adapters are modules of their own, and their tests run the tests of the projects that they are for. `go.mod`
//! and `go.sum` pin the versions and checksums of those; where they cannot be fetched, the adapters are skipped.

use std::path::Path;
use std::process::Command;

use crate::install::{self, Extent};
use crate::steps::{Outcome, Verdict};
use crate::workspace::{self, Workspace};
use crate::{guide, required, setup};

/// The package.
const PACKAGE: &str = "go";

/// The step.
pub(crate) fn step(workspace: &Workspace) -> Verdict {
    for path in required::GO.iter().chain([&guide::GO]) {
        required::demand(workspace, path)?;
    }
    if !cfg!(target_os = "linux") {
        return Ok(Outcome::Skipped("what is installed is laid out for Linux".to_owned()));
    }
    if !setup::on_path("go") {
        return Ok(Outcome::Skipped(
            "there is no Go (https://go.dev/dl, or the package golang-go)".to_owned(),
        ));
    }
    let compiler = if setup::on_path("cc") { Ok(()) } else { setup::compiler(workspace) };
    let programs = compiler.and_then(|()| setup::programs(workspace, &[("pkg-config", "pkg-config")]));
    if let Err(why) = programs {
        return Ok(Outcome::Skipped(why));
    }
    let directory = workspace.target.join("go");
    let prefix = directory.join("prefix");
    install::put(workspace, &prefix, "dev", Extent::Libraries)?;

    let (unformatted, status) = workspace::capture(workspace.command("gofmt").args(["-l", PACKAGE]))?;
    if !status.success() || !unformatted.is_empty() {
        return Err(format!("to be formatted by gofmt -w: {unformatted}"));
    }
    let package = workspace.root.join(PACKAGE);
    if let Err(why) = usable(workspace, &package) {
        return Ok(Outcome::Skipped(why));
    }
    let race = ["test", "-race", "-count=1", "./..."];
    workspace::run(&mut call(workspace, &prefix, &package, &["vet", "./..."]))?;
    workspace::run(call(workspace, &prefix, &package, &race).env("GODEBUG", "cgocheck=1"))?;
    // The other way to link: the static library, without pkg-config.
    let mut linked =
        call(workspace, &prefix, &package, &["test", "-tags=forrest_flags", "-count=1", "./..."]);
    let archive = prefix.join("lib/libforrest.a");
    linked.env("CGO_CFLAGS", format!("-I{}", prefix.join("include").display()));
    linked.env("CGO_LDFLAGS", format!("{} -lm -ldl -lpthread", archive.display()));
    workspace::run(linked.env_remove("LD_LIBRARY_PATH").env_remove("PKG_CONFIG_PATH"))?;
    guide::follow(workspace, guide::GO, &directory.join("home"), &prefix)?;

    let mut skipped = Vec::new();
    for manifest in &required::GO[1..] {
        let module = manifest.trim_end_matches("/go.mod");
        let at = workspace.root.join(module);
        if let Err(why) = usable(workspace, &at) {
            println!("skipped {module}: {why}");
            skipped.push(format!("{module}: {why}"));
            continue;
        }
        workspace::run(&mut call(workspace, &prefix, &at, &["vet", "./..."]))?;
        workspace::run(&mut call(workspace, &prefix, &at, &["test", "-count=1", "./..."]))?;
    }
    if skipped.is_empty() {
        return Ok(Outcome::Passed);
    }
    Ok(Outcome::Skipped(format!("all passed but {}", skipped.join("; "))))
}

/// Whether a module's dependencies are there, or can be fetched, and its version of Go is.
fn usable(workspace: &Workspace, module: &Path) -> Result<(), String> {
    let mut list = workspace.command("go");
    list.current_dir(module).args(["list", "-mod=readonly", "-deps", "-test", "./..."]);
    let (printed, status) = workspace::capture(&mut list)?;
    if status.success() {
        return Ok(());
    }
    let mut fetch = workspace.command("go");
    if workspace::succeeds(fetch.current_dir(module).args(["mod", "download"])) {
        // It is not the network. The build fails with the reason.
        return Ok(());
    }
    let reason = printed.lines().find(|line| line.contains("go:")).unwrap_or("go list fails");
    Err(format!("what it needs cannot be fetched from proxy.golang.org: {reason}"))
}

/// A call of Go in a module, with the installed library.
fn call(workspace: &Workspace, prefix: &Path, module: &Path, arguments: &[&str]) -> Command {
    let libraries = prefix.join("lib");
    let mut command = workspace.command("go");
    command
        .current_dir(module)
        .args(arguments)
        .env("GOFLAGS", "-mod=readonly")
        .env("PKG_CONFIG_PATH", libraries.join("pkgconfig"))
        .env("LD_LIBRARY_PATH", &libraries);
    command
}
