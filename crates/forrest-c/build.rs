//! Sets the soname of the shared library, with its ABI number, so that programs find the library that they
//! were linked with.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let system = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    // Linkers of other systems have no soname, or another option for it.
    if ["linux", "freebsd"].contains(&system.as_str()) {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libforrest.so.0");
    }
}
