//! [`CrashStates`]: the states that a power cut can leave on a disk.
//!
//! With `p` operations pending, these states in this order, each distinct one once:
//!
//! - every prefix of the pending operations, from none to all of them;
//! - all but one, for each; only one, for each;
//! - only the names, only the writes;
//! - the last pending write of each file torn at each sector boundary and at its beginning, everything else
//!   done, with each [`Rest`];
//! - random subsets, in which a part of the writes is torn at random.
//!
//! Sectors are written whole. So a write never damages other bytes in its sectors, nor bytes that it does not change.
//!
//! States are made one at a time, on request. States with the same part of a file's writes share the bytes of
//! that file.

use super::random::{NOTHING, combine, hash};
use super::{Pending, Simulated, SimulatedState, put, put_name};
use forrest_base::random::Random;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The unit that a device writes whole or not at all, in bytes.
const SECTOR_BYTES: usize = 512;
/// Maximum bytes of files that are kept for sharing. Beyond it they are dropped, and made anew.
const IMAGE_BYTES_MAX: usize = 32 << 20;

/// The content after the place at which a write is torn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// The old content; the file does not grow.
    Absent,
    /// Zeros.
    Zeros,
    /// Meaningless bytes.
    Garbage,
    /// The old content; but the file has grown, by zeros.
    Grown,
    /// The content of another file of its kind at that place, now or earlier: reused blocks.
    Stale,
    /// The new content; the part before the place is missing.
    Written,
}

impl Rest {
    const ALL: [Rest; 6] =
        [Rest::Absent, Rest::Zeros, Rest::Garbage, Rest::Grown, Rest::Stale, Rest::Written];
}

/// The fate of a pending operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    Lost,
    Whole,
    /// A write is torn before the byte of this number.
    Torn(usize, Rest),
}

/// The fate of all of them.
#[derive(Debug, Clone, Copy)]
enum Plan {
    Prefix(usize),
    AllBut(usize),
    Only(usize),
    Names,
    Writes,
    Torn(usize, Keep),
    Random(u64),
}

/// The states that a power cut can leave, one after another, each a disk of its own on which nothing is pending.
pub struct CrashStates {
    state: SimulatedState,
    /// For each inode, its pending writes by their place in `state.pending`.
    writes: Vec<Vec<usize>>,
    plans: Box<dyn Iterator<Item = Plan> + Send>,
    /// The fate of each pending operation under the present plan.
    keep: Vec<Keep>,
    images: HashMap<(usize, u64), Image>,
    image_bytes: usize,
    /// The hashes of the states that were returned.
    given: HashSet<u64>,
}

/// The content of a file in some states.
#[derive(Clone)]
struct Image {
    bytes: Arc<Vec<u8>>,
    hash: u64,
}

impl Simulated {
    /// The states that a power cut could leave now, each once; see [`CrashStates`]. `random` of them are
    /// drawn from `seed`, the others are enumerated.
    pub fn crash_states(&self, random: usize, seed: u64) -> CrashStates {
        CrashStates::new(self.lock().clone(), random, seed)
    }
}

impl CrashStates {
    pub(super) fn new(state: SimulatedState, random: usize, seed: u64) -> CrashStates {
        let mut writes = vec![Vec::new(); state.inodes.len()];
        for (place, pending) in state.pending.iter().enumerate() {
            if let Pending::Write { inode, .. } = *pending {
                writes[inode].push(place);
            }
        }
        let count = state.pending.len();
        let torn: Vec<Plan> =
            writes.iter().filter_map(|of| of.last()).flat_map(|&at| torn(&state, at)).collect();
        let mut seeds = Random(seed);
        let plans = (0..=count)
            .map(Plan::Prefix)
            .chain((0..count).map(Plan::AllBut))
            .chain((0..count).map(Plan::Only))
            .chain([Plan::Names, Plan::Writes])
            .chain(torn)
            .chain((0..random).map(move |_| Plan::Random(seeds.next())));
        CrashStates {
            plans: Box::new(plans),
            keep: Vec::with_capacity(count),
            images: HashMap::new(),
            image_bytes: 0,
            given: HashSet::new(),
            state,
            writes,
        }
    }

    fn choose(&mut self, plan: Plan) {
        let whole = |kept| if kept { Keep::Whole } else { Keep::Lost };
        let mut random = Random(if let Plan::Random(seed) = plan { seed } else { 0 });
        self.keep.clear();
        self.keep.extend(self.state.pending.iter().enumerate().map(|(place, pending)| match plan {
            Plan::Prefix(count) => whole(place < count),
            Plan::AllBut(one) => whole(place != one),
            Plan::Only(one) => whole(place == one),
            Plan::Names => whole(pending.is_name()),
            Plan::Writes => whole(!pending.is_name()),
            Plan::Torn(one, keep) => {
                if place == one {
                    keep
                } else {
                    Keep::Whole
                }
            }
            Plan::Random(_) => keep_at_random(pending, &mut random),
        }));
    }

    /// The state that the present plan leaves; `None` if it was returned before.
    fn state(&mut self) -> Option<Simulated> {
        let mut names = self.state.durable.clone();
        for (pending, keep) in self.state.pending.iter().zip(&self.keep) {
            if *keep != Keep::Lost {
                put_name(&mut names, pending);
            }
        }
        let mut hash = NOTHING;
        let mut files = Vec::with_capacity(names.len());
        for (name, inode) in names {
            let image = self.image(inode);
            for part in [name.kind as u64, name.number, image.hash] {
                hash = combine(hash, part);
            }
            files.push((name, image.bytes));
        }
        self.given.insert(hash).then(|| Simulated::from_images(files))
    }

    /// The content of a file under the present plan.
    fn image(&mut self, inode: usize) -> Image {
        let mut part = NOTHING;
        for &place in &self.writes[inode] {
            let keep = match self.keep[place] {
                Keep::Lost => continue,
                Keep::Whole => 0,
                Keep::Torn(at, rest) => 1 + (at * Rest::ALL.len() + rest as usize) as u64,
            };
            part = combine(combine(part, place as u64), keep);
        }
        if let Some(image) = self.images.get(&(inode, part)) {
            return image.clone();
        }
        let mut bytes = Arc::clone(&self.state.inodes[inode].durable);
        if part != NOTHING {
            let file = Arc::make_mut(&mut bytes);
            for &place in &self.writes[inode] {
                self.write(file, place);
            }
        }
        let image = Image { hash: hash(&bytes), bytes };
        self.image_bytes += image.bytes.len();
        if self.image_bytes > IMAGE_BYTES_MAX {
            self.images.clear();
            self.image_bytes = image.bytes.len();
        }
        self.images.insert((inode, part), image.clone());
        image
    }

    /// Writes the kept part of a pending write into a file.
    fn write(&self, file: &mut Vec<u8>, place: usize) {
        let Pending::Write { inode, offset, ref bytes } = self.state.pending[place] else {
            unreachable!("a pending write is listed as one");
        };
        let (at, rest) = match self.keep[place] {
            Keep::Lost => return,
            Keep::Whole => return put(file, offset, bytes),
            Keep::Torn(at, rest) => (at, rest),
        };
        let (before, behind) = bytes.split_at(at);
        if rest != Rest::Written {
            put(file, offset, before);
        }
        let offset = offset + at;
        let mut put_rest = |mut bytes: Vec<u8>| {
            for (at, byte) in bytes.iter_mut().enumerate() {
                if file.get(offset + at) == Some(&behind[at]) {
                    *byte = behind[at];
                }
            }
            put(file, offset, &bytes);
        };
        match rest {
            Rest::Absent => {}
            Rest::Zeros => put_rest(vec![0; behind.len()]),
            Rest::Garbage => put_rest(garbage(offset, behind.len())),
            Rest::Grown => file.resize(file.len().max(offset + behind.len()), 0),
            Rest::Stale => put_rest(self.stale(inode, offset, behind.len())),
            Rest::Written => put(file, offset, behind),
        }
    }

    /// The content at that place of the newest other file of the same kind that is long enough, filled up
    /// with zeros.
    fn stale(&self, not: usize, offset: usize, length: usize) -> Vec<u8> {
        let kind = self.state.inodes[not].name.kind;
        let others = self.state.inodes.iter().enumerate().rev();
        let mut bytes = others
            .filter(|(inode, other)| *inode != not && other.name.kind == kind)
            .find_map(|(_, other)| other.seen.get(offset..).filter(|bytes| !bytes.is_empty()))
            .unwrap_or_default()
            .to_vec();
        bytes.resize(length, 0);
        bytes
    }
}

impl Iterator for CrashStates {
    type Item = Simulated;

    fn next(&mut self) -> Option<Simulated> {
        loop {
            let plan = self.plans.next()?;
            self.choose(plan);
            if let Some(state) = self.state() {
                return Some(state);
            }
        }
    }
}

/// All places at which a write can be torn, as the number of bytes before: its beginning and the sector
/// boundaries.
fn boundaries(offset: usize, length: usize) -> impl Iterator<Item = usize> {
    let first = SECTOR_BYTES - offset % SECTOR_BYTES;
    [0].into_iter().chain((first..length).step_by(SECTOR_BYTES))
}

/// Every way to tear the write at a place of the list.
fn torn(state: &SimulatedState, place: usize) -> Vec<Plan> {
    let Pending::Write { offset, ref bytes, .. } = state.pending[place] else { return Vec::new() };
    let plan = |at| Rest::ALL.map(|rest| Plan::Torn(place, Keep::Torn(at, rest)));
    boundaries(offset, bytes.len()).flat_map(plan).collect()
}

/// Half of everything is kept, and every fourth write of those torn.
fn keep_at_random(pending: &Pending, random: &mut Random) -> Keep {
    match pending {
        _ if random.index(2) == 0 => Keep::Lost,
        Pending::Write { offset, bytes, .. } if random.index(4) == 0 => {
            let count = boundaries(*offset, bytes.len()).count();
            let at = boundaries(*offset, bytes.len()).nth(random.index(count)).unwrap_or(0);
            Keep::Torn(at, Rest::ALL[random.index(Rest::ALL.len())])
        }
        _ => Keep::Whole,
    }
}

/// Meaningless bytes, the same for the same place.
fn garbage(offset: usize, length: usize) -> Vec<u8> {
    let mut random = Random(offset as u64);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
