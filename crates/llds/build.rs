//! With the feature `user`: builds the engine of the kernel home, which is C, for user space. Without it, nothing
//! is built and no C compiler is needed.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "user")]
    engine::build();
}

#[cfg(feature = "user")]
mod engine {
    use std::path::{Path, PathBuf};

    /// The engine, in `kernel/llds`: the same files as in the module.
    const ENGINE: &[&str] =
        &["memory.c", "buckets.c", "order.c", "tree.c", "store.c", "ops.c", "groups.c", "request.c"];
    /// The user-space environment of the engine.
    const USER: &[&str] = &["user/os_user.c", "user/rbtree.c"];
    /// The folders of their headers.
    const HEADERS: &[&str] = &["", "uapi", "user"];
    /// Kernel names that a program may also define elsewhere.
    const RENAMED: &[&str] = &["rb_insert_color", "rb_erase", "rb_next", "rb_prev"];
    /// Set by the tests: warnings are errors. Not for users, whose compilers may have other warnings.
    const STRICT: &str = "FORREST_C_STRICT";

    pub(crate) fn build() {
        let own = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
        let own = Path::new(&own);
        let sources = own.join("../../kernel/llds");
        if !sources.is_dir() {
            panic!(
                "the feature `user` (`llds-user` of forrest) compiles the engine from kernel/llds of Forrest's \
                 repository, which the package of the registry does not have: use the repository as a git or path \
                 dependency"
            );
        }
        println!("cargo::rerun-if-changed=src/raw/user.c");
        println!("cargo::rerun-if-env-changed={STRICT}");
        // Files that only the module uses are not built.
        let files = ENGINE.iter().chain(USER).map(|file| sources.join(file));
        for file in files.chain(HEADERS.iter().flat_map(|folder| headers(&sources.join(folder)))) {
            println!("cargo::rerun-if-changed={}", file.display());
        }
        let is_strict = std::env::var_os(STRICT).is_some();
        let mut build = cc::Build::new();
        build
            .files(ENGINE.iter().chain(USER).map(|file| sources.join(file)))
            .file(own.join("src/raw/user.c"))
            .include(&sources)
            .std("gnu11")
            .opt_level(2)
            .flag("-fvisibility=hidden")
            .flag("-Wno-sign-compare")
            .warnings(is_strict)
            .extra_warnings(is_strict)
            .warnings_into_errors(is_strict);
        for name in RENAMED {
            build.define(name, format!("forrest_llds_{name}").as_str());
        }
        build.compile("forrest_llds");
    }

    fn headers(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        entries.filter(|path| path.extension().is_some_and(|kind| kind == "h")).collect()
    }
}
