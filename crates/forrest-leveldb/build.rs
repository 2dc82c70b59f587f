//! Names the shared library by the number of its interface, so that programs find the one that they were linked with.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let system = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    // Elsewhere the linker takes no such name, or another form of it.
    if ["linux", "freebsd"].contains(&system.as_str()) {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libforrest_leveldb.so.0");
    }
}
