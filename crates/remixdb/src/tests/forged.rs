//! Forgeries: bytes that were never written, under valid checksums. With such files a store can be made to
//! return what it never held, but every call returns or fails; there is no panic and no endless walk.

use super::world::{World, expiring, options, options_of, seeds, steps};
use crate::decoders::exercise;
use crate::disk::simulated::Simulated;
use crate::disk::{Kind, Name};
use crate::{page, record};
use forrest_base::random::Random;
use forrest_engine::Durability;

/// Forgeries of each store.
const FORGERIES: u64 = 400;

/// The files of a store with logs, tables and a REMIX.
fn files(seed: u64) -> Vec<(Name, Vec<u8>)> {
    let disk = Simulated::new();
    let world = World::open(&disk, &options(Durability::Sync)).expect("it opens");
    let work = steps(seed, 60);
    for step in if seed.is_multiple_of(2) { work } else { expiring(seed, work) } {
        world.run(&step).expect("it works");
    }
    drop(world);
    disk.files()
}

/// Changes some bytes: likely ones, and those that much depends on.
fn forge(bytes: &mut [u8], random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let len = bytes.len() as u64;
        let at = match random.below(4) {
            0 => random.below(len.min(128)),
            1 => len - 1 - random.below(len.min(256)),
            _ => random.below(len),
        } as usize;
        match random.below(6) {
            0 => bytes[at] = 0,
            1 => bytes[at] = 0xFF,
            2 => bytes[at] = bytes[at].wrapping_add(1),
            3 => bytes[at] = bytes[at].wrapping_sub(1),
            4 => bytes[at] ^= 1 << random.below(8),
            _ => {
                let count = (1 + random.below(8) as usize).min(bytes.len() - at);
                let from = random.below(len - count as u64 + 1) as usize;
                bytes.copy_within(from..from + count, at);
            }
        }
    }
}

/// Makes the checksums right: of pages, or of the records that stood in the genuine file.
fn seal(name: Name, genuine: &[u8], forged: &mut [u8]) {
    match name.kind {
        Kind::Log | Kind::Manifest => record::seal_again(forged, genuine, name),
        Kind::Table | Kind::Remix => {
            let last = forged.len() / page::BYTES - 1;
            for (number, bytes) in forged.chunks_exact_mut(page::BYTES).enumerate() {
                let is_last = name.kind == Kind::Table && number == last;
                page::seal(bytes, name, number as u64 | if is_last { page::LAST } else { 0 });
            }
        }
        Kind::Copy | Kind::Backup | Kind::Key => unreachable!("no file of a plain store"),
    }
}

#[test]
fn a_forged_file_is_answered_or_refused() {
    let (mut answered, mut all) = (0, 0);
    for seed in seeds(2, 4) {
        let genuine = files(seed);
        for forgery in 0..FORGERIES {
            let options = options_of(forgery, Durability::Sync);
            let mut random = Random(seed << 32 | forgery);
            let mut forged = genuine.clone();
            let at = random.below(forged.len() as u64) as usize;
            let (name, bytes) = &mut forged[at];
            forge(bytes, &mut random);
            seal(*name, &genuine[at].1, bytes);
            println!("seed {seed}, forgery {forgery} of {name}");
            answered += u64::from(exercise(&Simulated::from_files(forged), &options).is_ok());
            all += 1;
        }
    }
    assert!(answered * 20 > all && answered < all, "{answered} of {all} succeeded");
}
