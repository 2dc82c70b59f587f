//! Stores on file systems that cannot be written: a read-only mount, and one without a free byte.
//!
//! A script mounts them in a namespace of its own. Where the system does not allow that, the tests say so and end.

use crate::harness::Place;

/// Runs a script in a user and mount namespace of its own, with a file system of 4 MiB at `disk`; its output, or `None`
/// if the system allows no such namespace.
fn mounted(place: &Place, script: &str) -> Option<String> {
    let can = place.shell(
        "unshare --user --map-root-user --mount sh -c 'mount -t tmpfs none /mnt' 2>/dev/null && echo yes",
    );
    if can.text().trim() != "yes" {
        println!("skipped: this system allows no mounts in a namespace");
        return None;
    }
    std::fs::create_dir(place.path().join("disk")).expect("a directory");
    let script = format!("mount -t tmpfs -o size=4m none disk && {script}");
    place.write("script", script);
    Some(place.shell("unshare --user --map-root-user --mount sh script 2>&1").text().to_owned())
}

#[test]
fn a_store_on_a_read_only_mount_is_read() {
    let place = Place::new();
    let script = "forrest --db disk/store set oak Quercus && mount -o remount,ro disk
        forrest --db disk/store get oak
        forrest --db disk/store count
        forrest verify disk/store
        forrest checkpoint disk/store copy
        forrest --db copy get oak
        forrest --db disk/store set elm Ulmus
        echo code $?";
    let Some(said) = mounted(&place, script) else { return };
    assert_eq!(said.matches("Quercus").count(), 2, "{said}");
    assert!(
        said.contains("unsupported: the store can only be read: its file system is mounted read-only"),
        "{said}"
    );
    assert!(!said.contains("code 0"), "{said}");
}

#[test]
fn a_store_on_a_full_disk_is_read_and_goes_on_when_there_is_space() {
    let place = Place::new();
    let script = "forrest --db disk/store set oak Quercus
        cat /dev/zero > disk/fill 2>/dev/null
        ls disk/store > before
        forrest --db disk/store get oak
        forrest --db disk/store count
        forrest verify disk/store
        forrest checkpoint disk/store copy
        forrest --db copy get oak
        forrest --db disk/store set elm Ulmus
        echo code $?
        ls disk/store > after
        cmp before after && echo unchanged
        rm disk/fill
        forrest --db disk/store delete oak && forrest --db disk/store count";
    let Some(said) = mounted(&place, script) else { return };
    assert_eq!(said.matches("Quercus").count(), 2, "{said}");
    assert!(said.contains("out of space") && !said.contains("code 0"), "{said}");
    assert!(said.contains("unchanged") && said.trim_end().ends_with('0'), "{said}");
}
