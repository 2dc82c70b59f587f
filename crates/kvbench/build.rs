//! With the feature `cpp`: builds the peers in C++ (`peers/`), which need a C++ compiler and the packages that
//! `kvbench doctor` names. Without it, nothing is built.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "cpp")]
    cpp::build();
}

#[cfg(feature = "cpp")]
mod cpp {
    /// Libraries as pkg-config knows them.
    const LIBRARIES: &[&str] = &["absl_flat_hash_map", "absl_btree", "tbb"];

    pub(crate) fn build() {
        for folder in ["peers", "include"] {
            println!("cargo::rerun-if-changed={folder}");
        }
        let mut files: Vec<_> = std::fs::read_dir("peers")
            .expect("the peers are beside this file")
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|kind| kind == "cc"))
            .collect();
        files.sort();
        let mut build = cc::Build::new();
        build.cpp(true).std("c++20").opt_level(3).files(files).include("include").warnings(true);
        // Templates of the libraries, which are not ours to mend.
        build.flag_if_supported("-Wno-unused-parameter");
        for library in LIBRARIES {
            let probed = pkg_config::Config::new().cargo_metadata(false).probe(library);
            let probed =
                probed.unwrap_or_else(|error| panic!("`kvbench doctor` names the packages: {error}"));
            build.includes(probed.include_paths);
        }
        build.compile("kvbench_peers");
        // A linker resolves symbols in order, so the libraries come after the peers that use them.
        for library in LIBRARIES {
            if let Err(error) = pkg_config::probe_library(library) {
                panic!("{library}: {error}");
            }
        }
        println!("cargo::rustc-link-lib=Judy");
    }
}
