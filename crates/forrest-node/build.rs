//! How the addon is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        // Node unloads an addon when the last worker that uses it ends. Threads of a store may still run its code then.
        Ok("linux") => println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete"),
        // Node's functions are found when the addon is loaded.
        Ok("macos") => {
            println!("cargo:rustc-cdylib-link-arg=-undefined");
            println!("cargo:rustc-cdylib-link-arg=dynamic_lookup");
        }
        _ => {}
    }
}
