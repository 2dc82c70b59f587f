//! Tests of the functions above the trait: short, interrupted and failing calls.

use super::real::Real;
use super::simulated::{Failure, Fate, Fault, Simulated, Times};
use super::*;
use forrest_engine::Options;

const LOG: Name = Name { kind: Kind::Log, number: 7 };
const ERRORS: [(Failure, ErrorKind); 3] = [
    (Failure::Eio, ErrorKind::Io),
    (Failure::Enospc, ErrorKind::OutOfSpace),
    (Failure::SyncFails(Fate::Dropped), ErrorKind::Io),
];

/// A disk with the empty file `LOG`.
fn disk() -> (Simulated, <Simulated as Disk>::File) {
    let disk = Simulated::new();
    let file = create(&disk, LOG).unwrap();
    sync_directory(&disk, Kind::Log).unwrap();
    (disk, file)
}

fn plant(disk: &Simulated, times: Times, kind: Failure) {
    disk.fail(Fault { at: disk.ios(), times, kind });
}

fn text() -> Vec<u8> {
    (0..1000).map(|byte: u32| byte as u8).collect()
}

/// The content of the file after a power cut, if there is only one possibility.
fn durable(disk: &Simulated) -> Vec<u8> {
    let mut states: Vec<_> = disk.crash_states(10, 0).collect();
    assert_eq!(states.len(), 1);
    states.remove(0).files().remove(0).1
}

#[test]
fn names_come_back_and_others_are_nobodys() {
    for kind in Kind::ALL {
        for number in [0, 7, 99_999_999, 100_000_000, NUMBER_MAX] {
            let name = Name { kind, number };
            assert_eq!(Name::parse(&name.to_string()), Some(name));
        }
        // There would be no greater number for the next file.
        for number in [NUMBER_MAX + 1, u64::MAX] {
            assert_eq!(Name::parse(&Name { kind, number }.to_string()), None);
        }
    }
    for entry in
        ["LOCK", "7.log", "00000007", "00000007.lo", "+0000007.log", "00000007.log.1", ".log", "é.log"]
    {
        assert_eq!(Name::parse(entry), None, "{entry}");
    }
}

#[test]
fn short_and_interrupted_writes_are_gone_on_with() {
    for kinds in [
        &[Failure::ShortWrite][..],
        &[Failure::Interrupted],
        &[Failure::ShortWrite, Failure::Interrupted],
        &[Failure::Interrupted, Failure::ShortWrite],
    ] {
        for times in [Times::Once, Times::ForEver] {
            let (disk, file) = disk();
            kinds.iter().for_each(|&kind| plant(&disk, times, kind));
            let mut write = Write { offset: 3, bytes: text(), done: 0, sync: true };
            write_all(&disk, &file, LOG, &mut write).unwrap();
            assert_eq!(write.done, 1000);
            assert!(disk.struck() >= kinds.len() as u64);
            assert_eq!(durable(&disk), [&[0, 0, 0], &text()[..]].concat());
        }
    }
}

#[test]
fn a_write_without_a_sync_is_pending() {
    let (disk, file) = disk();
    let mut write = Write { bytes: text(), done: 999, ..Write::default() };
    write_all(&disk, &file, LOG, &mut write).unwrap();
    assert_eq!(disk.pending(), 1, "and only what was not done");
    plant(&disk, Times::ForEver, Failure::Interrupted);
    sync(&disk, &file, LOG).unwrap();
    assert_eq!(disk.struck(), 1);
    assert_eq!(durable(&disk), [vec![0; 999], vec![text()[999]]].concat());
    let ios = disk.ios();
    write_all(&disk, &file, LOG, &mut Write { sync: true, ..Write::default() }).unwrap();
    assert!(disk.ios() > ios, "a sync without a write is one");
}

#[test]
fn errors_of_writes_are_told_with_the_name() {
    for (failure, kind) in ERRORS {
        let (disk, file) = disk();
        plant(&disk, Times::Once, failure);
        let mut write = Write { bytes: text(), sync: true, ..Write::default() };
        let error = write_all(&disk, &file, LOG, &mut write).unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().contains("writing 00000007.log: "), "{error}");
        assert_eq!(disk.struck(), 1, "it is not tried again");
    }
    let (disk, file) = disk();
    plant(&disk, Times::Once, Failure::ShortWrite);
    disk.fail(Fault { at: disk.ios() + 1, times: Times::Once, kind: Failure::Enospc });
    let mut write = Write { bytes: text(), sync: true, ..Write::default() };
    assert_eq!(write_all(&disk, &file, LOG, &mut write).unwrap_err().kind(), ErrorKind::OutOfSpace);
    assert_eq!(write.done, 500);
    assert_eq!(disk.pending(), 1);
}

#[test]
fn a_failed_sync_is_told_and_not_tried_again() {
    for failure in [Failure::Eio, Failure::SyncFails(Fate::Kept)] {
        let (disk, file) = disk();
        write_all(&disk, &file, LOG, &mut Write { bytes: text(), ..Write::default() }).unwrap();
        plant(&disk, Times::Once, failure);
        let error = sync(&disk, &file, LOG).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().contains("syncing 00000007.log: "), "{error}");
        assert_eq!(disk.pending(), 1);
        plant(&disk, Times::Once, failure);
        let error = sync_directory(&disk, Kind::Log).unwrap_err();
        assert!(error.to_string().contains("syncing the directory of the logs: "), "{error}");
    }
}

#[test]
fn a_disk_that_writes_nothing_is_an_error() {
    let full = Full(Simulated::new());
    let file = create(&full, LOG).unwrap();
    let error = write_all(&full, &file, LOG, &mut Write { bytes: text(), ..Write::default() }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    write_all(&full, &file, LOG, &mut Write::default()).expect("nothing was to be written");
}

#[test]
fn short_and_interrupted_reads_are_gone_on_with() {
    let disk = Simulated::from_files([(LOG, text())]);
    let file = open(&disk, LOG).unwrap();
    plant(&disk, Times::ForEver, Failure::ShortRead);
    plant(&disk, Times::ForEver, Failure::Interrupted);
    let mut buffer = [0; 600];
    assert_eq!(read_up_to(&disk, &file, LOG, &mut buffer, 100).unwrap(), 600);
    assert_eq!(buffer, text()[100..700]);
    read_exact(&disk, &file, LOG, &mut buffer, 400).unwrap();
    assert_eq!(buffer, text()[400..]);
    assert!(disk.struck() > 20);

    assert_eq!(read_up_to(&disk, &file, LOG, &mut buffer, 900).unwrap(), 100);
    assert_eq!(buffer[..100], text()[900..]);
    assert_eq!(read_up_to(&disk, &file, LOG, &mut buffer, 1000).unwrap(), 0);
    assert_eq!(read_up_to(&disk, &file, LOG, &mut [], 0).unwrap(), 0);
    let error = read_exact(&disk, &file, LOG, &mut buffer, 401).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(
        error.to_string().contains("00000007.log at offset 1000: the file ends, 1 bytes too early"),
        "{error}"
    );
}

#[test]
fn every_call_passes_interruptions_and_tells_errors() {
    type Call = fn(&Simulated, &<Simulated as Disk>::File) -> Result<()>;
    let calls: [(&str, Call); 8] = [
        ("creating 00000009.table", |disk, _| create(disk, Name::table(9)).map(drop)),
        ("opening 00000007.log", |disk, _| open(disk, LOG).map(drop)),
        ("removing 00000007.log", |disk, _| unlink(disk, LOG)),
        ("syncing 00000007.log", |disk, file| sync(disk, file, LOG)),
        ("syncing the store's directory", |disk, _| sync_directory(disk, Kind::Table)),
        ("listing the store's directory", |disk, _| list(disk).map(drop)),
        ("measuring 00000007.log", |disk, file| len(disk, file, LOG).map(drop)),
        ("reading 00000007.log", |disk, file| read_exact(disk, file, LOG, &mut [0], 999)),
    ];
    for (doing, call) in calls {
        for failure in [Failure::Interrupted, Failure::Eio] {
            let disk = Simulated::from_files([(LOG, text())]);
            let file = open(&disk, LOG).unwrap();
            plant(&disk, Times::Once, failure);
            let result = call(&disk, &file);
            assert_eq!(disk.struck(), 1, "{doing}");
            if failure == Failure::Interrupted {
                result.unwrap();
                continue;
            }
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io);
            assert!(error.to_string().contains(&format!("{doing}: ")), "{error}");
        }
    }
}

#[test]
fn the_list_is_sorted_and_leaves_out_what_is_nobodys() {
    let names = [Name::table(3), LOG, Name::manifest(2), Name::log(1)];
    let disk = Simulated::from_files(names.map(|name| (name, Vec::new())));
    assert!(disk.list().unwrap().contains(&"LOCK".to_owned()));
    assert_eq!(list(&disk).unwrap(), [Name::log(1), LOG, Name::manifest(2), Name::table(3)]);
}

/// A disk that writes nothing and returns no error.
struct Full(Simulated);

impl Disk for Full {
    type File = <Simulated as Disk>::File;

    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }

    fn create(&self, name: Name) -> io::Result<Self::File> {
        self.0.create(name)
    }

    fn open(&self, name: Name) -> io::Result<Self::File> {
        self.0.open(name)
    }

    fn unlink(&self, name: Name) -> io::Result<()> {
        self.0.unlink(name)
    }

    fn sync_directory(&self, of: Kind) -> io::Result<()> {
        self.0.sync_directory(of)
    }

    fn len(&self, file: &Self::File) -> io::Result<u64> {
        self.0.len(file)
    }

    fn read_at(&self, file: &Self::File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(file, buffer, offset)
    }

    fn submit(&self, _: &Self::File, _: &mut Write) -> io::Result<usize> {
        Ok(0)
    }
}

/// A disk, and the files held open on it. File numbers are never reused.
struct Side<D: Disk> {
    disk: D,
    next: u64,
    held: Vec<(Name, D::File)>,
}

impl<D: Disk> Side<D> {
    /// Does one of several operations, which four numbers choose; returns the result in words that are the
    /// same on every disk.
    fn step(&mut self, [what, which, at, length]: [usize; 4]) -> String {
        let Side { disk, next, held } = self;
        let name = Name::table(next.saturating_sub(which as u64 % 12));
        let (offset, length) = (at as u64 % 9_000, length % 5_000);
        let chosen = if held.is_empty() { None } else { Some(which % held.len()) };
        let said = |result: Result<String>| result.unwrap_or_else(|error| format!("{:?}", error.kind()));
        match (what % 16, chosen) {
            (0, _) => {
                *next += 1;
                let name = Name::table(*next);
                said(create(disk, name).map(|file| held.push((name, file))).map(|()| "made".into()))
            }
            (1 | 2, _) => said(open(disk, name).map(|file| held.push((name, file))).map(|()| "open".into())),
            (3, _) => said(unlink(disk, name).map(|()| "removed".into())),
            (4, _) => format!("{:?}", list(disk)),
            (5, Some(chosen)) => format!("{}", held.swap_remove(chosen).0),
            (6, Some(chosen)) => {
                let (name, file) = &held[chosen];
                said(
                    sync(disk, file, *name)
                        .and_then(|()| sync_directory(disk, Kind::Table))
                        .map(|()| "synced".into()),
                )
            }
            (7..=9, Some(chosen)) => {
                let (name, file) = &held[chosen];
                let bytes = vec![what as u8; length];
                let mut write = Write { offset, bytes, done: 0, sync: what % 32 < 9 };
                // An opened file must not be written; the error depends on the disk.
                let done = write_all(disk, file, *name, &mut write);
                done.map_or("not written".into(), |()| "written".into())
            }
            (_, Some(chosen)) => {
                let (name, file) = &held[chosen];
                let mut buffer = vec![0; length];
                let done = read_up_to(disk, file, *name, &mut buffer, offset);
                format!("{done:?} of {:?}: {buffer:?}", len(disk, file, *name))
            }
            (_, None) => "nothing".into(),
        }
    }
}

/// The functions above the trait behave the same on every disk, however few files may be open.
#[test]
fn the_real_disk_does_what_the_simulated_one_does() {
    for (seed, limit) in (1..=8_u64).zip([1, 1, 2, 4096].into_iter().cycle()) {
        let directory = tempfile::tempdir().unwrap();
        let builder = Options { open_files: Some(limit), ..Options::default() };
        let path = directory.path().join("store");
        let disk = Real::open(&path, &builder).unwrap();
        let mut real = Side { disk, next: 0, held: Vec::new() };
        let mut simulated = Side { disk: Simulated::new(), next: 0, held: Vec::new() };
        let mut random = seed;
        for step in 0..600 {
            let choice = [(); 4].map(|()| {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 40) as usize
            });
            let (is, expected) = (real.step(choice), simulated.step(choice));
            assert!(is == expected, "seed {seed}, step {step}: {is:.200} and not {expected:.200}");
        }
    }
}
