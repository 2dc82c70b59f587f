//! What the fuzz target `image` does with its input, and the inputs that are kept.

use forrest::{Db, ErrorKind, Result};
use forrest_raft::{Image, State, Store, Types};
use futures_util::FutureExt as _;
use openraft::storage::RaftStateMachine;
use xxhash_rust::xxh3::xxh3_64;

/// The head of an image up to the number of the group's generation, which each node counts by itself.
const OWN: usize = 24;
const CHECKSUM: usize = 8;

/// The input as an image of a group, which a node receives with a checksum that is right. It is refused and changes
/// nothing, or it is installed; then what this node sends is the same again.
pub(crate) fn image(input: &[u8]) {
    let mut bytes = input.to_vec();
    bytes.extend_from_slice(&xxh3_64(input).to_be_bytes());
    let Some(sent) = taken(&bytes) else { return };
    let again = taken(&sent).expect("what a node sends is an image");
    assert_eq!(again[OWN..again.len() - CHECKSUM], sent[OWN..sent.len() - CHECKSUM]);
}

/// A node receives an image in two pieces, and installs it. What it sends afterwards.
fn taken(bytes: &[u8]) -> Option<Vec<u8>> {
    let store = Store::open_inline(Db::open("memory:").expect("a new store")).expect("a new store");
    let (_log, mut state) = store.group(1).expect("a group");
    let image = match received(&state, bytes) {
        Ok(image) => image,
        Err(error) => {
            let kinds = [ErrorKind::Corrupt, ErrorKind::InvalidArgument, ErrorKind::Unsupported];
            assert!(kinds.contains(&error.kind()), "{error}");
            assert_eq!(state.reader().moment().expect("it can be read").applied(), None);
            return None;
        }
    };
    let meta = image.meta().clone();
    now(RaftStateMachine::<Types>::install_snapshot(&mut state, &meta, image)).ok()?;
    let current = now(RaftStateMachine::<Types>::get_current_snapshot(&mut state)).expect("it can be read");
    // An image of a group that has applied nothing is none.
    let image = current?.snapshot;
    assert_eq!(*image.meta(), meta);
    Some(image.chunks().expect("it can be read").flat_map(|chunk| chunk.expect("it can be read")).collect())
}

fn received(state: &State, bytes: &[u8]) -> Result<Image> {
    let mut receiver = state.reader().receive()?;
    let (one, two) = bytes.split_at(bytes.len() / 2);
    receiver.push(one)?;
    receiver.push(two)?;
    receiver.finish()
}

/// The result of work on a store that does all in the calling thread.
fn now<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never().expect("it waits for nobody")
}

#[test]
fn kept_inputs_pass() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/image");
    let inputs = std::fs::read_dir(&folder).expect("they are part of the repository");
    let mut installed = 0;
    for path in inputs.map(|entry| entry.expect("an entry of the folder").path()) {
        let input = std::fs::read(&path).expect("an input that can be read");
        println!("{}", path.display());
        image(&input);
        let sum = xxh3_64(&input).to_be_bytes();
        installed += u32::from(taken(&[&input[..], &sum].concat()).is_some());
    }
    assert!(installed > 0, "none of them is an image");
}
