//! Images of snapshots and commands that come damaged, cut or forged: an error, the state before, and nothing left.

use super::machine::{apply, entry, id, pairs, set, swap};
use super::node::{block, builder, made};
use crate::{Command, Image, Log, Meta, Response, State, Store, Types};
use forrest::simulated::{self, Simulated};
use forrest::{Db, ErrorKind, Result};
use forrest_base::random::Random;
use forrest_testing::sized;
use openraft::storage::RaftStateMachine;
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of the checksum, at the end.
const CHECKSUM: usize = 8;

/// The bytes of an image of a group with a membership, sessions and pairs.
fn image() -> Vec<u8> {
    let store = memory();
    let (_log, mut state) = store.group(1).expect("a group");
    let mismatch = swap("a", Some("2"), None).of_session(6, 1);
    let entries = [
        made(1, 1),
        entry(2, &set("a", "1").of_session(5, 3)),
        entry(3, &mismatch),
        entry(4, &set("bc", "")),
        entry(5, &set("", "the empty key")),
    ];
    block(apply(&mut state, entries));
    let current = block(RaftStateMachine::<Types>::get_current_snapshot(&mut state)).expect("it can be read");
    bytes_of(&current.expect("something was applied").snapshot)
}

fn bytes_of(image: &Image) -> Vec<u8> {
    image.chunks().expect("it can be read").flat_map(|chunk| chunk.expect("it can be read")).collect()
}

fn memory() -> Store {
    Store::open_inline(Db::open("memory:").expect("a new store")).expect("a new store")
}

/// A group that has a state of its own.
fn target(store: &Store) -> (Log, State) {
    let (log, mut state) = store.group(2).expect("a group");
    block(apply(&mut state, [entry(1, &set("old", "1").of_session(5, 1)), made(2, 1)]));
    (log, state)
}

/// Receives an image in two pieces, and installs it.
fn take(state: &mut State, bytes: &[u8], cut: usize) -> Result<()> {
    let mut receiver = state.reader().receive()?;
    let (one, two) = bytes.split_at(cut);
    receiver.push(one)?;
    receiver.push(two)?;
    let image = receiver.finish()?;
    let meta = image.meta().clone();
    block(RaftStateMachine::<Types>::install_snapshot(state, &meta, image))
        .map_err(|error| forrest::Error::new(ErrorKind::Io, error.to_string()))
}

/// What a group shows, with the names of all keyspaces and the number of all sessions.
fn shown(store: &Store, state: &mut State) -> impl PartialEq + std::fmt::Debug + use<> {
    let applied = block(RaftStateMachine::<Types>::applied_state(state)).expect("it can be read");
    let names = store.db().keyspaces().expect("names");
    let sessions = store.db().keyspace(crate::format::SESSIONS).expect("it is there");
    (applied, pairs(&state.reader()), names, sessions.count(..).expect("it can be read"))
}

/// An image that is cut or too long, or of which a bit is flipped, at each byte, is refused.
pub(super) fn damage() {
    let bytes = image();
    let disk = simulated::open_unattended(Simulated::new(), &builder()).expect("it opens").0;
    for store in [memory(), Store::open_inline(disk).expect("a new store")] {
        let (_log, mut state) = target(&store);
        let before = shown(&store, &mut state);
        let mut refuse = |damaged: &[u8], cut: usize, what: &str| {
            let error = take(&mut state, damaged, cut).expect_err(what);
            let kinds = [ErrorKind::Corrupt, ErrorKind::InvalidArgument, ErrorKind::Unsupported];
            assert!(kinds.contains(&error.kind()), "{what}: {error}");
            assert_eq!(shown(&store, &mut state), before, "{what}");
        };
        for at in 0..bytes.len() {
            refuse(&bytes[..at], at / 2, &format!("cut at {at}"));
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            refuse(&flipped, at, &format!("a bit of byte {at} was flipped"));
        }
        for more in [&bytes[..1], &bytes] {
            refuse(&[&bytes[..], more].concat(), bytes.len(), &format!("{} bytes too many", more.len()));
        }
        let mut receiver = state.reader().receive().expect("it can be received");
        receiver.push(&bytes).expect("it is whole");
        let received = receiver.finish().expect("it is complete");
        let meta = Meta { last_log_id: Some(id(9)), ..received.meta().clone() };
        let error = block(RaftStateMachine::<Types>::install_snapshot(&mut state, &meta, received));
        assert!(error.is_err(), "an image of another entry");
        assert_eq!(shown(&store, &mut state), before, "an image of another entry");
        take(&mut state, &bytes, 50).expect("an image without damage is taken");
        let current = block(RaftStateMachine::<Types>::get_current_snapshot(&mut state));
        let sent = bytes_of(&current.expect("it can be read").expect("it is there").snapshot);
        // They differ by the generation in the head, and so by the checksum.
        assert_eq!(sent[24..sent.len() - CHECKSUM], bytes[24..bytes.len() - CHECKSUM]);
    }
}

#[test]
fn damaged_images_are_refused() {
    damage();
}

/// One to three changes of some bytes: flipped bits, edges of numbers, parts that are removed or doubled.
fn forge(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + random.below(3) {
        let at = random.index(bytes.len());
        let end = (at + 1 + random.index(12)).min(bytes.len());
        match random.below(5) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = [0, 1, 2, 3, 0x7f, 0x80, 0xff][random.index(7)],
            2 => bytes[at..end].fill([0, 0xff][random.index(2)]),
            3 if bytes.len() > 20 => drop(bytes.drain(at..end)),
            _ => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
        }
    }
}

/// Images whose bytes are changed and whose checksum is right are refused, or installed as they are: then they can be
/// read, and the group goes on.
pub(super) fn forgeries(seeds: u64) {
    let (genuine, store) = (image(), memory());
    let (_log, mut state) = target(&store);
    let mut counts = BTreeMap::<_, u64>::new();
    for seed in 0..seeds {
        let random = &mut Random(seed);
        let mut bytes = genuine[..genuine.len() - CHECKSUM].to_vec();
        forge(&mut bytes, random);
        bytes.extend_from_slice(&xxh3_64(&bytes).to_be_bytes());
        let cut = random.index(bytes.len());
        let before = shown(&store, &mut state);
        match take(&mut state, &bytes, cut) {
            Err(error) => {
                *counts.entry(format!("{:?}", error.kind())).or_default() += 1;
                assert_eq!(shown(&store, &mut state), before, "seed {seed}: {error}");
            }
            Ok(()) => {
                *counts.entry("installed".to_owned()).or_default() += 1;
                let moment = state.reader().moment().expect("it can be read");
                let last = moment.applied();
                drop(pairs(&state.reader()));
                let next = last.map_or(Some(0), |last| last.index.checked_add(1));
                for client in [5, 6] {
                    let Some(next) = next.and_then(|next| next.checked_add(client)) else { continue };
                    block(apply(
                        &mut state,
                        [entry(next, &set("next", "1").of_session(client, u64::MAX - 1))],
                    ));
                }
            }
        }
    }
    println!("{seeds} forged images: {counts:?}");
    assert!(counts.get("installed").is_some_and(|installed| *installed > seeds / 20), "{counts:?}");
    assert!(counts.get("Corrupt").is_some_and(|refused| *refused > seeds / 4), "{counts:?}");
}

#[test]
fn forged_images_do_no_harm() {
    forgeries(sized(1000, 5000));
}

/// Forged commands are refused where they come in, or are applied, or refused by every node in the same way: two nodes
/// that apply them have the same data afterwards.
pub(super) fn forged_commands(seeds: u64) {
    let mut batch = forrest::WriteBatch::new();
    batch.set("a", "1").delete("b").delete_range("c".."d").compare_and_swap("e", None, Some(b"2"));
    let genuine = Command::try_from(&batch).expect("it fits").of_session(3, 4);
    let stores = [memory(), memory()];
    let mut states = stores.each_ref().map(|store| store.group(1).expect("a group"));
    let (mut taken, mut index) = (0, 0);
    for seed in 0..seeds {
        let mut bytes = genuine.as_bytes().to_vec();
        forge(&mut bytes, &mut Random(seed));
        let mut ops = 0;
        if let Ok(command) = Command::from_bytes(&bytes) {
            assert_eq!(command.as_bytes(), bytes, "seed {seed}");
            let checked: Result<Vec<_>> = command.ops().collect();
            ops = checked.expect("it was checked").len();
            taken += 1;
        }
        assert!(ops <= bytes.len(), "seed {seed}");
        // What a log has is not checked before it is applied.
        index += 1;
        let unchecked = Command::in_value(forrest::Value::from(&bytes[..]), 0);
        for (_, state) in &mut states {
            block(apply(state, [entry(index, &unchecked)]));
        }
        let [(_, one), (_, two)] = &states;
        assert_eq!(pairs(&one.reader()), pairs(&two.reader()), "seed {seed}");
        assert_eq!(one.reader().moment().expect("it can be read").applied(), Some(id(index)));
    }
    println!("{taken} of {index} forged commands are commands");
    assert!(taken > index / 20 && taken < index, "{taken} of {index}");
}

#[test]
fn forged_commands_do_no_harm() {
    forged_commands(sized(1000, 5000));
}

/// A response that a session keeps, and what is none.
#[test]
fn responses_are_read_or_refused() {
    for response in [
        Response::Applied,
        Response::Mismatch { op: 7, found: None },
        Response::Mismatch { op: 7, found: Some(vec![1, 2]) },
        Response::Refused("why".to_owned()),
    ] {
        let mut bytes = Vec::new();
        response.put(&mut bytes);
        assert_eq!(Response::of(&bytes).expect("it was written"), response);
    }
    for bytes in [&[][..], &[3], &[0, 0], &[1, 0, 0, 0], &[1, 0, 0, 0, 1], &[1, 0, 0, 0, 1, 2]] {
        assert_eq!(Response::of(bytes).expect_err("it is none").kind(), ErrorKind::Corrupt, "{bytes:?}");
    }
}
