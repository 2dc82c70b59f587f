//! Tests of the simulation itself: it loses what a disk may lose, and nothing else.

use super::*;
use std::collections::BTreeSet;

type Files = Vec<(Name, Vec<u8>)>;

const LOG: Name = Name { kind: Kind::Log, number: 1 };

fn log(number: u64) -> Name {
    Name::log(number)
}

fn put_at(disk: &Simulated, file: &File, offset: u64, bytes: &[u8], sync: bool) -> io::Result<usize> {
    disk.submit(file, &mut Write { offset, bytes: bytes.to_vec(), done: 0, sync })
}

/// A disk with one empty file, both it and its name durable.
fn with_log() -> (Simulated, File) {
    let disk = Simulated::new();
    let file = disk.create(LOG).unwrap();
    disk.sync_directory(Kind::Log).unwrap();
    (disk, file)
}

/// The crash states without random ones. They are distinct, and nothing is pending in them.
fn states(disk: &Simulated) -> BTreeSet<Files> {
    let mut states = BTreeSet::new();
    for state in disk.crash_states(0, 0) {
        assert_eq!((state.pending(), state.ios(), state.is_cut()), (0, 0, false));
        assert!(states.insert(state.files()), "given out twice: {state:?}");
    }
    states
}

/// The possible contents of the log after a power cut.
fn contents(disk: &Simulated) -> BTreeSet<Vec<u8>> {
    states(disk)
        .into_iter()
        .map(|files| files.into_iter().find(|(name, _)| *name == LOG).unwrap().1)
        .collect()
}

fn read(disk: &Simulated, file: &File) -> Vec<u8> {
    let mut buffer = vec![0; 4096];
    let count = disk.read_at(file, &mut buffer, 0).unwrap();
    buffer.truncate(count);
    buffer
}

fn fail(disk: &Simulated, at: u64, kind: Failure) {
    disk.fail(Fault { at, times: Times::Once, kind });
}

fn errno<T: fmt::Debug>(result: io::Result<T>) -> Option<i32> {
    result.unwrap_err().raw_os_error()
}

fn code(errno: Errno) -> Option<i32> {
    Some(errno.raw_os_error())
}

#[test]
fn a_synced_file_may_lose_its_name_and_a_durable_name_its_data() {
    let disk = Simulated::new();
    let file = disk.create(LOG).unwrap();
    put_at(&disk, &file, 0, b"oak", true).unwrap();
    assert_eq!(states(&disk), BTreeSet::from([vec![], vec![(LOG, b"oak".to_vec())]]));

    let disk = Simulated::new();
    let file = disk.create(LOG).unwrap();
    disk.sync_directory(Kind::Log).unwrap();
    put_at(&disk, &file, 0, b"oak", false).unwrap();
    let contents = contents(&disk);
    for expected in [&b""[..], b"oak", b"\0\0\0"] {
        assert!(contents.contains(expected), "{expected:?} in {contents:?}");
    }
    assert_eq!(disk.pending(), 1);
    assert_eq!(disk.files(), [(LOG, b"oak".to_vec())]);
}

#[test]
fn what_was_synced_is_in_every_state() {
    let (disk, file) = with_log();
    put_at(&disk, &file, 0, b"durable", false).unwrap();
    put_at(&disk, &file, 7, b"", true).unwrap();
    let durable = states(&disk);
    assert_eq!(durable, BTreeSet::from([vec![(LOG, b"durable".to_vec())]]));
    put_at(&disk, &file, 7, &[7; 2000], false).unwrap();
    disk.create(log(2)).unwrap();
    for state in disk.crash_states(500, 1) {
        assert!(state.files()[0].1.starts_with(b"durable"));
    }
}

#[test]
fn a_name_is_gone_for_good_when_the_directory_is_synced() {
    let disk = Simulated::from_files([(LOG, b"old".to_vec())]);
    let file = disk.open(LOG).unwrap();
    disk.unlink(LOG).unwrap();
    assert_eq!(errno(disk.open(LOG)), code(Errno::NOENT));
    assert_eq!(read(&disk, &file), b"old", "who has it open still reads it");
    assert_eq!(states(&disk), BTreeSet::from([vec![], vec![(LOG, b"old".to_vec())]]));
    disk.sync_directory(Kind::Log).unwrap();
    assert_eq!(states(&disk), BTreeSet::from([vec![]]));
}

#[test]
fn every_part_of_what_is_pending_may_survive() {
    let (disk, file) = with_log();
    for (place, byte) in (0..).zip(b"abc") {
        put_at(&disk, &file, place, &[*byte], false).unwrap();
    }
    let contents = contents(&disk);
    // Prefixes, all but one, only one; a gap is zeros.
    for expected in ["", "a", "ab", "abc", "\0bc", "a\0c", "\0b", "\0\0c"] {
        assert!(contents.contains(expected.as_bytes()), "{expected:?} in {contents:?}");
    }
    // And the last one torn at its beginning: zeros, garbage.
    assert!(contents.contains(&b"ab\0"[..]));
    assert_eq!(contents.len(), 8 + 2);

    put_at(&disk, &file, 3, b"", true).unwrap();
    disk.create(log(2)).unwrap();
    disk.create(log(3)).unwrap();
    put_at(&disk, &file, 3, b"d", false).unwrap();
    let found: BTreeSet<(usize, bool)> =
        states(&disk).iter().map(|files| (files.len(), files[0].1 == b"abcd")).collect();
    assert!(found.contains(&(3, false)), "names only");
    assert!(found.contains(&(1, true)), "writes only");
}

#[test]
fn the_last_write_is_torn_at_every_sector() {
    let old = vec![0x11; 700];
    let disk = Simulated::new();
    let other = disk.create(log(2)).unwrap();
    put_at(&disk, &other, 0, &[0x22; 1100], true).unwrap();
    let file = disk.create(LOG).unwrap();
    disk.sync_directory(Kind::Log).unwrap();
    put_at(&disk, &file, 0, &old, true).unwrap();
    put_at(&disk, &file, 600, &[0x33; 1000], false).unwrap();

    let contents = contents(&disk);
    let with = |parts: &[(&[u8], usize)]| {
        let image: Vec<u8> = parts.iter().flat_map(|(byte, count)| byte.repeat(*count)).collect();
        assert!(contents.contains(&image), "{parts:?}");
    };
    with(&[(&[0x11], 700)]);
    with(&[(&[0x11], 600), (&[0x33], 1000)]);
    // Sectors meet at 1024 and 1536; bytes before 600 are intact.
    with(&[(&[0x11], 600), (&[0x33], 424)]);
    with(&[(&[0x11], 600), (&[0x33], 424), (&[0], 576)]);
    with(&[(&[0x11], 600), (&[0x33], 936)]);
    with(&[(&[0x11], 600), (&[0], 1000)]);
    with(&[(&[0x11], 700), (&[0], 900)]);
    with(&[(&[0x11], 600), (&[0x22], 500), (&[0], 500)]);
    with(&[(&[0x11], 600), (&[0x33], 424), (&[0x22], 76), (&[0], 500)]);
    with(&[(&[0x11], 700), (&[0], 324), (&[0x33], 576)]);
    for image in &contents {
        assert_eq!(image[..600], old[..600]);
        assert!([700, 1024, 1536, 1600].contains(&image.len()), "{}", image.len());
    }
    // Three places: the beginning and two sectors. One rest of garbage each.
    let garbage = contents.iter().filter(|image| {
        image.len() == 1600 && image[1590..1600].iter().any(|&byte| byte != 0 && byte != 0x33 && byte != 0x22)
    });
    assert_eq!(garbage.count(), 3);
}

#[test]
fn random_states_are_the_same_for_a_seed_and_differ_between_seeds() {
    let (disk, file) = with_log();
    for place in 0..20 {
        put_at(&disk, &file, place * 100, &[place as u8 + 1; 100], false).unwrap();
    }
    let drawn = |seed| disk.crash_states(100, seed).map(|state| state.files()).collect::<Vec<_>>();
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
    let enumerated = disk.crash_states(0, 1).count();
    assert!(drawn(1).len() > enumerated + 90, "{} and {enumerated}", drawn(1).len());
}

#[test]
fn a_state_is_given_out_once() {
    let (disk, file) = with_log();
    // Four operations, but the same bytes three times over: with and without the second file.
    for _ in 0..3 {
        put_at(&disk, &file, 0, b"same", false).unwrap();
    }
    disk.create(log(2)).unwrap();
    let states = states(&disk);
    let whole = vec![(LOG, b"same".to_vec())];
    let both = vec![(LOG, b"same".to_vec()), (log(2), vec![])];
    assert!(states.contains(&whole) && states.contains(&both));
    // Without or with the second file: nothing and the bytes. If the last write is torn, they are there already.
    assert_eq!(states.len(), 4, "{states:?}");
    assert_eq!(disk.crash_states(10_000, 3).count(), 8, "and zeros and garbage");
}

#[test]
fn states_are_disks_of_their_own() {
    let (disk, file) = with_log();
    put_at(&disk, &file, 0, b"a", false).unwrap();
    for state in disk.crash_states(0, 0) {
        let file = state.create(log(9)).unwrap();
        put_at(&state, &file, 0, b"new", false).unwrap();
        assert_eq!(state.pending(), 2);
        assert!(state.crash_states(0, 0).count() >= 3, "a power cut during the recovery");
    }
    assert_eq!(disk.files(), [(LOG, b"a".to_vec())]);
}

#[test]
fn the_death_of_a_process_loses_nothing_and_makes_nothing_durable() {
    let (disk, file) = with_log();
    put_at(&disk, &file, 0, b"a", false).unwrap();
    disk.fail(Fault { at: 0, times: Times::ForEver, kind: Failure::Eio });
    let next = disk.kill();
    assert_eq!(next.files(), [(LOG, b"a".to_vec())]);
    assert_eq!((next.ios(), next.pending()), (0, 1));
    assert!(states(&next).contains(&vec![(LOG, vec![])]));
    let file = next.open(LOG).expect("the fault is gone");
    put_at(&next, &file, 0, b"", true).expect("a file that is open for reading can be synced");
    assert_eq!(states(&next), BTreeSet::from([vec![(LOG, b"a".to_vec())]]));
    assert_eq!(disk.pending(), 1);
}

#[test]
fn a_cut_stops_everything() {
    let run = |disk: &Simulated| -> io::Result<()> {
        let file = disk.create(LOG)?;
        disk.sync_directory(Kind::Log)?;
        put_at(disk, &file, 0, b"ab", true)?;
        disk.unlink(LOG)?;
        disk.sync_directory(Kind::Log)
    };
    let disk = Simulated::new();
    run(&disk).unwrap();
    assert_eq!((disk.ios(), disk.pending()), (5, 0));
    for at in 0..5 {
        let disk = Simulated::new();
        disk.cut_power_at(at);
        assert_eq!(errno(run(&disk)), code(Errno::IO));
        assert!(disk.is_cut());
        assert_eq!(disk.ios(), at + 1);
        let before = (disk.files(), disk.pending());
        disk.create(log(2)).unwrap_err();
        disk.open(LOG).unwrap_err();
        disk.list().unwrap_err();
        disk.unlink(LOG).unwrap_err();
        disk.sync_directory(Kind::Log).unwrap_err();
        assert_eq!((disk.files(), disk.pending()), before);
        assert_eq!(disk.ios(), at + 1);
        let states = states(&disk);
        let has = |bytes: &[u8]| states.contains(&vec![(LOG, bytes.to_vec())]);
        // Operations in flight may be done, or not; those synced before are.
        let expected = match at {
            0 | 1 => [true, true, false],
            2 => [false, true, true],
            3 | 4 => [true, false, true],
            _ => unreachable!(),
        };
        assert_eq!([states.contains(&vec![]), has(b""), has(b"ab")], expected, "at {at}: {states:?}");
    }
    let disk = Simulated::new();
    disk.cut_power_at(5);
    run(&disk).unwrap();
    assert!(!disk.is_cut());
}

#[test]
fn writes_and_reads_may_be_short() {
    let (disk, file) = with_log();
    fail(&disk, 0, Failure::ShortWrite);
    assert_eq!(put_at(&disk, &file, 0, b"x", false).unwrap(), 1, "one byte cannot be shortened");
    let mut write = Write { offset: 0, bytes: b"abcdefg".to_vec(), done: 2, sync: true };
    assert_eq!(disk.submit(&file, &mut write).unwrap(), 2);
    assert_eq!(write.done, 2, "that is kept by the caller");
    assert_eq!(disk.pending(), 2, "nothing was synced");
    assert_eq!(read(&disk, &file), b"x\0cd");
    write.done = 4;
    assert_eq!(disk.submit(&file, &mut write).unwrap(), 3);
    assert_eq!((disk.pending(), disk.struck()), (0, 1));

    fail(&disk, 0, Failure::ShortRead);
    let mut buffer = [9; 4];
    assert_eq!(disk.read_at(&file, &mut buffer[..1], 0).unwrap(), 1);
    assert_eq!(disk.read_at(&file, &mut buffer, 7).unwrap(), 0);
    assert_eq!(disk.read_at(&file, &mut buffer, 2).unwrap(), 2);
    assert_eq!(buffer[..3], *b"cd\x09");
    assert_eq!(disk.read_at(&file, &mut buffer, 2).unwrap(), 4);
}

#[test]
fn errors_strike_what_they_suit() {
    let (disk, file) = with_log();
    let now = disk.ios();
    fail(&disk, now + 1, Failure::Enospc);
    fail(&disk, now, Failure::Emfile);
    fail(&disk, now + 4, Failure::Enospc);
    assert_eq!(put_at(&disk, &file, 0, b"a", false).unwrap(), 1);
    assert_eq!(errno(put_at(&disk, &file, 1, b"bc", true)), code(Errno::NOSPC));
    assert_eq!(read(&disk, &file), b"a");
    assert_eq!(errno(disk.open(LOG)), code(Errno::MFILE));
    disk.open(LOG).unwrap();
    assert_eq!(errno(disk.create(log(2))), code(Errno::NOSPC));
    disk.create(log(2)).unwrap();
    assert_eq!(disk.struck(), 3);

    let (disk, file) = with_log();
    disk.fail(Fault { at: 4, times: Times::ForEver, kind: Failure::Eio });
    put_at(&disk, &file, 0, b"ab", false).unwrap();
    assert_eq!(disk.len(&file).unwrap(), 2);
    let eio = code(Errno::IO);
    assert_eq!(errno(disk.len(&file)), eio);
    assert_eq!(errno(disk.read_at(&file, &mut [0], 0)), eio);
    assert_eq!(errno(disk.list()), eio);
    assert_eq!(errno(disk.create(log(2))), eio);
    assert_eq!(errno(disk.unlink(LOG)), eio);
    assert_eq!(errno(disk.sync_directory(Kind::Log)), eio);
    assert_eq!(errno(put_at(&disk, &file, 2, b"cdef", true)), eio);
    assert!(!disk.is_cut());
    disk.heal();
    assert_eq!(read(&disk, &file), b"abcd", "half of it was written");
    assert_eq!((disk.pending(), disk.struck()), (2, 7));
    assert_eq!(disk.list().unwrap(), ["00000001.log", "LOCK"]);
}

#[test]
fn interruptions_let_the_next_call_through() {
    let (disk, file) = with_log();
    disk.fail(Fault { at: 0, times: Times::ForEver, kind: Failure::Interrupted });
    for _ in 0..3 {
        assert_eq!(errno(put_at(&disk, &file, 0, b"ab", true)), code(Errno::INTR));
        assert_eq!(disk.pending(), 1, "written, but not synced");
        assert_eq!(put_at(&disk, &file, 0, b"ab", true).unwrap(), 2);
        assert_eq!(disk.pending(), 0);
        assert_eq!(errno(put_at(&disk, &file, 0, b"ab", false)), code(Errno::INTR));
        assert_eq!(disk.pending(), 0);
        disk.len(&file).unwrap();
    }
}

#[test]
fn a_failed_sync_keeps_drops_or_reverts_what_was_written() {
    for fate in [Fate::Kept, Fate::Dropped, Fate::Reverted] {
        let (disk, file) = with_log();
        put_at(&disk, &file, 0, b"old", true).unwrap();
        disk.fail(Fault { at: 0, times: Times::Once, kind: Failure::SyncFails(fate) });
        put_at(&disk, &file, 3, b" new", false).unwrap();
        assert_eq!(errno(put_at(&disk, &file, 7, b" more", true)), code(Errno::IO));
        let seen: &[u8] = if fate == Fate::Reverted { b"old" } else { b"old new more" };
        assert_eq!(read(&disk, &file), seen);
        assert_eq!(disk.pending(), if fate == Fate::Kept { 2 } else { 0 });

        put_at(&disk, &file, 0, b"", true).expect("the next sync works");
        let durable: &[u8] = if fate == Fate::Kept { b"old new more" } else { b"old" };
        assert_eq!(contents(&disk), BTreeSet::from([durable.to_vec()]));
        assert_eq!(read(&disk, &file), seen);
    }
}

#[test]
fn a_failed_sync_of_the_directory_does_so_with_names() {
    for fate in [Fate::Kept, Fate::Dropped, Fate::Reverted] {
        let disk = Simulated::from_files([(LOG, vec![])]);
        disk.fail(Fault { at: 0, times: Times::Once, kind: Failure::SyncFails(fate) });
        disk.create(log(2)).unwrap();
        disk.unlink(LOG).unwrap();
        assert_eq!(errno(disk.sync_directory(Kind::Log)), code(Errno::IO));
        let seen = if fate == Fate::Reverted { LOG } else { log(2) };
        assert_eq!(disk.files(), [(seen, vec![])]);
        disk.sync_directory(Kind::Log).expect("the next sync works");
        let durable = if fate == Fate::Kept { log(2) } else { LOG };
        assert_eq!(states(&disk), BTreeSet::from([vec![(durable, vec![])]]));
    }
}

#[test]
fn names_are_made_and_removed_once_and_lengths_are_bounded() {
    let (disk, file) = with_log();
    assert_eq!(errno(disk.create(LOG)), code(Errno::EXIST));
    assert_eq!(errno(disk.unlink(log(2))), code(Errno::NOENT));
    assert_eq!(errno(put_at(&disk, &disk.open(LOG).unwrap(), 0, b"a", false)), code(Errno::BADF));
    for offset in [FILE_BYTES_MAX, u64::MAX] {
        assert_eq!(errno(put_at(&disk, &file, offset, b"a", false)), code(Errno::FBIG));
        assert_eq!(disk.read_at(&file, &mut [0], offset).unwrap(), 0);
    }
    assert_eq!(disk.pending(), 0);
}

#[test]
fn damage_is_durable_and_seen_at_once() {
    let (disk, file) = with_log();
    put_at(&disk, &file, 0, b"ab", false).unwrap();
    disk.flip(LOG, 1, 0);
    assert_eq!(read(&disk, &file), b"ac");
    disk.replace(log(2), b"new".to_vec());
    assert_eq!(states(&disk), BTreeSet::from([vec![(LOG, b"ac".to_vec()), (log(2), b"new".to_vec())]]));
    disk.replace(LOG, b"z".to_vec());
    assert_eq!(read(&disk, &file), b"z");
    disk.unlink(log(2)).unwrap();
    assert!(disk.remove(LOG) && !disk.remove(LOG));
    disk.sync_directory(Kind::Log).unwrap();
    assert_eq!(states(&disk), BTreeSet::from([vec![]]));
    assert_eq!(Simulated::from_files([(LOG, vec![1])]).files(), [(LOG, vec![1])]);
}

#[test]
#[should_panic(expected = "a file of another disk")]
fn a_file_from_before_the_crash_cannot_be_used_after_it() {
    let (disk, file) = with_log();
    let _ = disk.kill().len(&file);
}

#[test]
fn threads_share_a_disk() {
    let disk = Simulated::new();
    std::thread::scope(|threads| {
        for number in 0..4 {
            let disk = disk.clone();
            threads.spawn(move || {
                let file = disk.create(log(number)).unwrap();
                for place in 0..100 {
                    put_at(&disk, &file, place, &[number as u8], place % 10 == 9).unwrap();
                }
                disk.sync_directory(Kind::Log).unwrap();
            });
        }
    });
    assert_eq!((disk.ios(), disk.pending()), (4 * 102, 0));
    let expected: Files = (0..4).map(|number| (log(number), vec![number as u8; 100])).collect();
    assert_eq!(states(&disk), BTreeSet::from([expected]));
}
