//! `kvbench peer`: builds a library of structures whose source the user has, and which no package has.
//!
//! The library is one like those that users write with `kvbench_subject.h`, so nothing else in this program knows it.

use crate::subjects::foreign;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The most lines of a compiler's errors that are shown.
const ERROR_LINES: usize = 20;

/// A source that can be named.
pub(crate) struct Source {
    /// The name on the command line.
    pub(crate) name: &'static str,
    /// Our part, for the interface of `kvbench_subject.h`.
    text: &'static str,
    /// The folders with headers, within the source.
    include: &'static [&'static str],
    /// A header that must be in one of them.
    header: &'static str,
    /// What else is compiled, within the source.
    compiled: &'static [&'static str],
    /// Further options of the compiler.
    options: &'static [&'static str],
    /// A header that a build of the source makes, and that may be empty.
    made: Option<&'static str>,
    /// What it needs of the system.
    needs: &'static str,
}

/// All sources.
pub(crate) const SOURCES: &[Source] = &[
    Source {
        name: "folly",
        text: include_str!("../peers/source/folly.cc"),
        include: &["."],
        header: "folly/container/F14Map.h",
        compiled: &[
            "folly/container/detail/F14Table.cpp",
            "folly/lang/SafeAssert.cpp",
            "folly/lang/ToAscii.cpp",
        ],
        options: &["-std=c++20", "-DFMT_HEADER_ONLY"],
        made: Some("folly/folly-config.h"),
        needs: "fmt and Boost (Debian: libfmt-dev libboost-dev)",
    },
    Source {
        name: "hot",
        text: include_str!("../peers/source/hot.cc"),
        include: &[
            "libs/hot/commons/include",
            "libs/hot/single-threaded/include",
            "libs/idx/content-helpers/include",
        ],
        header: "hot/singlethreaded/HOTSingleThreaded.hpp",
        compiled: &[],
        options: &["-std=c++17"],
        made: None,
        needs: "a processor with AVX2 and BMI2",
    },
];

/// Reads `NAME=DIR`.
pub(crate) fn source(text: &str) -> Result<(&'static Source, PathBuf), String> {
    let (name, tree) = text.split_once('=').ok_or("NAME=DIR is needed, such as hot=../hot")?;
    let source = SOURCES.iter().find(|source| source.name == name).ok_or_else(|| {
        let names: Vec<&str> = SOURCES.iter().map(|source| source.name).collect();
        format!("there is no peer {name:?}, but {}", names.join(", "))
    })?;
    Ok((source, PathBuf::from(tree)))
}

/// The headers that our part includes.
const HEADERS: [(&str, &str); 2] = [
    ("kvbench_subject.h", include_str!("../include/kvbench_subject.h")),
    ("peer.hh", include_str!("../peers/peer.hh")),
];

/// Builds the library of a source at `tree`, and prints how to use it. Without `output` it is a file here, with the
/// source's name.
pub(crate) fn run(source: &Source, tree: &Path, output: Option<&Path>) -> io::Result<()> {
    let output = output.map_or_else(|| PathBuf::from(format!("lib{}.so", source.name)), Path::to_owned);
    let work = tempfile::tempdir()?;
    build(source, tree, work.path(), &output).map_err(io::Error::other)?;
    println!("built {}", output.display());
    println!("  kvbench memory --subjects {},forrest,btreemap", offers(&output)?.join(","));
    Ok(())
}

/// Compiles into `output`, which appears only when it is complete.
fn build(source: &Source, tree: &Path, work: &Path, output: &Path) -> Result<(), String> {
    let include: Vec<PathBuf> = source.include.iter().map(|folder| tree.join(folder)).collect();
    if !include.iter().any(|folder| folder.join(source.header).is_file()) {
        return Err(format!(
            "{}: this is not the source of {}: {} is missing",
            tree.display(),
            source.name,
            source.header
        ));
    }
    let write = |name: &str, text: &str| {
        let path = work.join(name);
        path.parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|error| format!("{}: {error}", path.display()))
    };
    for (name, text) in HEADERS {
        write(name, text)?;
    }
    write("subject.cc", source.text)?;
    if let Some(made) = source.made {
        write(&format!("made/{made}"), "")?;
    }
    let library = work.join("library.so");
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let mut command = Command::new(&compiler);
    // The messages of others' headers are not for this program's user.
    command.args(["-O3", "-DNDEBUG", "-march=native", "-fPIC", "-shared", "-w"]).args(source.options);
    command.arg("-I").arg(work);
    include.iter().for_each(|folder| _ = command.arg("-I").arg(folder));
    command.arg("-idirafter").arg(work.join("made"));
    command.arg(work.join("subject.cc")).args(source.compiled.iter().map(|file| tree.join(file)));
    let done = command.arg("-o").arg(&library).output();
    let done = done
        .map_err(|error| format!("{compiler}: {error}: a C++ compiler is needed; CXX names another one"))?;
    if !done.status.success() {
        let errors = String::from_utf8_lossy(&done.stderr);
        let errors: Vec<&str> = errors.lines().take(ERROR_LINES).collect();
        return Err(format!(
            "{compiler} could not compile it. {} needs {}.\n{}",
            source.name,
            source.needs,
            errors.join("\n")
        ));
    }
    let part = output.with_extension("so.part");
    std::fs::copy(&library, &part)
        .and_then(|_| std::fs::rename(&part, output))
        .map_err(|error| format!("{}: {error}", output.display()))
}

/// The names of the library's structures, as `--subjects` takes them.
fn offers(library: &Path) -> io::Result<Vec<String>> {
    let path = if library.is_absolute() { library.to_owned() } else { Path::new(".").join(library) };
    let path = path.to_str().ok_or_else(|| io::Error::other("the name of the library is not UTF-8"))?;
    let offers = foreign::load(path).map_err(io::Error::other)?;
    Ok(offers.iter().map(|offer| offer.name.clone()).collect())
}
