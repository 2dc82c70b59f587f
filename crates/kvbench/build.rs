//! Gives the program the revision of its sources. With the feature `cpp`: builds the peers in C++ (`peers/`) whose
//! packages are installed, and prints a line for each package that is missing. Without it, nothing is built.

#[cfg(feature = "cpp")]
#[path = "peers/plan.rs"]
mod plan;
mod revision;

fn main() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sources = revision::sources();
    for path in revision::watched(&root, &sources) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    if let Some(revision) = revision::of(&root, &sources) {
        println!("cargo::rustc-env=KVBENCH_REVISION={revision}");
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(peers)");
    println!("cargo::rerun-if-env-changed=ROCKSDB_LIB_DIR");
    if let Some(library) =
        std::env::var_os("ROCKSDB_LIB_DIR").and_then(|directory| rocksdb(directory.as_ref()))
    {
        println!("cargo::rustc-env=KVBENCH_ROCKSDB={library}");
    }
    #[cfg(feature = "cpp")]
    cpp::build();
}

/// The name of RocksDB's library in a directory, with its version if links lead there. RocksDB's functions for C do not
/// give a version.
fn rocksdb(directory: &std::path::Path) -> Option<String> {
    let files = ["librocksdb.so", "librocksdb.dylib", "librocksdb.a"].map(|name| directory.join(name));
    let library = files.iter().find_map(|file| file.canonicalize().ok())?;
    Some(library.file_name()?.to_str()?.to_owned())
}

#[cfg(feature = "cpp")]
mod cpp {
    use crate::plan::{self, Peers};
    use std::io::Write;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    pub(crate) fn build() {
        for folder in ["peers", "include"] {
            println!("cargo::rerun-if-changed={folder}");
        }
        let (built, lines) = plan::plan(include_folders);
        for line in &lines {
            println!("cargo::warning={line}");
        }
        println!("cargo::rustc-env=KVBENCH_LEFT_OUT={}", lines.join("; "));
        // Without the standard library there is no compiler.
        if !built.iter().any(|(peers, _)| peers.file == "std") {
            return;
        }
        let mut build = compiler();
        build.opt_level(3).include("include").warnings(true).file("peers/peers.cc");
        // Templates of the libraries, which are not ours to mend.
        build.flag_if_supported("-Wno-unused-parameter");
        for peers in plan::ALL {
            match built.iter().find(|(one, _)| one.file == peers.file) {
                Some((_, folders)) => build.file(format!("peers/{}.cc", peers.file)).includes(folders),
                None => build.define(&format!("KVBENCH_WITHOUT_{}", peers.file.to_uppercase()), None),
            };
        }
        build.compile("kvbench_peers");
        // A linker resolves symbols in order, so the libraries come after the peers that use them.
        for (peers, _) in built {
            for library in peers.pkg_config {
                if let Err(error) = pkg_config::probe_library(library) {
                    println!("cargo::error={library}: {error}");
                }
            }
            peers.links.iter().for_each(|library| println!("cargo::rustc-link-lib={library}"));
        }
        println!("cargo::rustc-cfg=peers");
    }

    fn compiler() -> cc::Build {
        let mut build = cc::Build::new();
        build.cpp(true).std("c++20").cargo_warnings(false);
        build
    }

    /// The folders of the library's headers beside the system's; `None` if it is not installed, or there is no
    /// compiler.
    fn include_folders(peers: &Peers) -> Option<Vec<PathBuf>> {
        let probe = |library: &&str| pkg_config::Config::new().cargo_metadata(false).probe(library).ok();
        let folders: Option<Vec<_>> =
            peers.pkg_config.iter().map(|library| Some(probe(library)?.include_paths)).collect();
        let folders: Vec<PathBuf> = folders?.concat();
        let mut command: Command = compiler().includes(&folders).try_get_compiler().ok()?.to_command();
        command
            .args(["-x", "c++", "-E", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        // A compiler that ends before it has read this has failed, which its status shows.
        let _ = child.stdin.take()?.write_all(format!("#include <{}>\n", peers.header).as_bytes());
        child.wait().ok()?.success().then_some(folders)
    }
}
