//! The contract's own tests, on the simulated disk and on a directory.

use crate::disk::simulated::Simulated;
use crate::disk::{Real, Sealed};
use crate::{Store, tests::world};
use forrest_engine::{Durability, Options, Store as _, conformance, expiring};
use std::ops::Range;

#[test]
fn it_conforms_while_tables_are_made() {
    conforms(0..15);
}

/// With memtables and tables so small that there are many of each. Mutants must fail here.
pub(super) fn conforms(seeds: Range<u64>) {
    for seed in seeds {
        let options = world::options(Durability::Buffered);
        let store =
            Store::open_unattended(world::on(&Simulated::new()).expect("a disk"), &options).expect("a store");
        conformance::check(
            &store,
            seed,
            300,
            |store| {
                while store.step().expect("the work in the background") {}
            },
        );
        store.verify().expect("all is right");
    }
}

#[test]
fn merges_conform_while_tables_are_made() {
    for seed in 0..8 {
        let options = world::options(Durability::Buffered);
        let store =
            Store::open_unattended(world::on(&Simulated::new()).expect("a disk"), &options).expect("a store");
        conformance::check_merges(&store, seed, 200, |store| {
            while store.step().expect("the work in the background") {}
        });
        store.verify().expect("all is right");
    }
}

#[test]
fn values_that_expire_conform_while_tables_are_made() {
    for seed in 0..8 {
        let options = world::options(Durability::Buffered);
        let disk = Simulated::new();
        let store = Store::open_unattended(world::on(&disk).expect("a disk"), &options).expect("a store");
        let mut turn = 0;
        expiring::check(&store, seed, 150, &|ms| disk.set_now_ms(ms), |store| {
            while store.step().expect("the work in the background") {}
            turn += 1;
            if turn % 20 == 0 {
                store.compact().expect("what has expired goes");
            }
        });
        store.verify().expect("all is right");
    }
}

#[test]
fn it_conforms_in_a_directory() {
    for seed in 0..5 {
        let directory = tempfile::tempdir().expect("a directory");
        let options = Options { memtable_bytes: 4 << 10, table_bytes: 16 << 10, ..Options::default() };
        let disk =
            Sealed::plain(Real::open(&directory.path().join("store"), &options).expect("a new directory"));
        let store = Store::open(disk, &options).expect("a store");
        conformance::check(&store, seed, 300, |_| {});
    }
}
