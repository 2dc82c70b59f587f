//! The model test: random commands run on a store and on the model, and the test compares their results.
//!
//! `FORREST_MODEL_SEED=N` replays one seed; `FORREST_MODEL_SEEDS=N` runs that many. A failure is shrunk
//! and printed as a script for tests/scripts.

use crate::command::{Bounds, Command, Move, Target};
use crate::model::{Model, OPERATORS, inverted};
use crate::random::{self, Random};
use crate::script;
use crate::world::World;
use forrest::line::Line;
use forrest::{DEFAULT_KEYSPACE, Db, Expires, MAX_KEY_BYTES, Op, Pages};
#[cfg(test)]
use forrest_testing::{number, sized};
use std::cell::Cell;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A difference from the model, and the number of the command.
struct Failure {
    at: usize,
    what: String,
}

/// Makes a fresh store.
type Fresh<'f> = &'f dyn Fn() -> World;

/// Runs commands against a fresh store and a fresh model. Collects the results of each command in `answers`.
fn run(fresh: Fresh<'_>, commands: &[Command], answers: &mut Vec<Vec<String>>) -> Result<(), Failure> {
    let mut world = fresh();
    let mut model = Model::new(world.key_bytes_max());
    for (at, command) in commands.iter().enumerate() {
        let shown = catch_unwind(AssertUnwindSafe(|| world.execute(command)))
            .map_err(|_| Failure { at, what: "it panicked".into() })?;
        let judged = match model.execute(command) {
            Some(expected) if expected == shown => Ok(expected),
            Some(expected) => {
                let what = format!("expected {expected:?}\ngot      {shown:?}");
                Err((expected, what))
            }
            None => {
                let judged = model.check(command, &shown);
                judged.map(|()| shown.clone()).map_err(|what| (shown.clone(), what))
            }
        };
        match judged {
            Ok(shown) => answers.push(shown),
            Err((expected, what)) => {
                answers.push(expected);
                return Err(Failure { at, what });
            }
        }
    }
    Ok(())
}

/// Removes commands as long as the remaining ones still fail.
fn shrink(fresh: Fresh<'_>, mut commands: Vec<Command>) -> Vec<Command> {
    let fails = |commands: &[Command]| run(fresh, commands, &mut Vec::new()).err();
    let mut piece = commands.len() / 2;
    while piece > 0 {
        let mut at = 0;
        while at < commands.len() {
            let mut fewer = commands.clone();
            fewer.drain(at..(at + piece).min(commands.len()));
            match fails(&fewer) {
                Some(failure) => {
                    fewer.truncate(failure.at + 1);
                    commands = fewer;
                }
                None => at += piece,
            }
        }
        piece = if piece == 1 { 0 } else { piece.div_ceil(2) };
    }
    commands
}

/// The features of the home for which commands are generated.
#[derive(Clone, Copy)]
pub(crate) struct Home {
    /// The number of option sets with which the store can be opened again; `None` if it cannot.
    pub(crate) sets: Option<usize>,
    pub(crate) has_snapshots: bool,
    pub(crate) has_keyspaces: bool,
    pub(crate) has_merges: bool,
    /// Whether batches have conditions on ranges.
    pub(crate) has_conditions: bool,
    pub(crate) has_ingests: bool,
    /// Whether values expire.
    pub(crate) has_expiry: bool,
    /// The longest key.
    pub(crate) key_bytes_max: usize,
}

/// The home in memory, where `keys` counts all pairs that are there.
const ABLE: Home = Home {
    sets: None,
    has_snapshots: true,
    has_keyspaces: true,
    has_merges: true,
    has_conditions: true,
    has_ingests: true,
    has_expiry: false,
    key_bytes_max: MAX_KEY_BYTES,
};
/// The homes in memory and on disk, where `keys` is an estimate.
const EXPIRING: Home = Home { has_expiry: true, ..ABLE };

/// Random commands.
struct Generator {
    random: Random,
    keys: Vec<Vec<u8>>,
    home: Home,
}

const SPACES: [Option<&str>; 5] = [None, None, Some("people"), Some("two words"), Some("\u{fc}")];
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const ENDS: [&str; 6] = ["f", "b", "fb", "bf", "ffb", "fbb"];

impl Generator {
    fn key(&mut self) -> Vec<u8> {
        match self.random.below(400) {
            0 => random::pattern(self.home.key_bytes_max + 1, 0),
            1..20 => {
                let mut key = self.random.pick(&self.keys).clone();
                key.push(0);
                key.truncate(self.home.key_bytes_max);
                key
            }
            20..40 => {
                let mut key = self.random.pick(&self.keys).clone();
                key.pop();
                key
            }
            _ => self.random.pick(&self.keys).clone(),
        }
    }

    fn keyspace(&mut self) -> Option<String> {
        let space = self.random.pick(&SPACES).filter(|_| self.home.has_keyspaces);
        space.map(str::to_string)
    }

    fn name(&mut self) -> String {
        self.random.pick(&NAMES).to_string()
    }

    fn ends(&mut self) -> String {
        self.random.pick(&ENDS).to_string()
    }

    fn target(&mut self) -> Target {
        let snapshot = self.random.one_in(3).then(|| self.name()).filter(|_| self.home.has_snapshots);
        Target { snapshot, keyspace: self.keyspace() }
    }

    fn bound(&mut self) -> Bound<Vec<u8>> {
        match self.random.below(4) {
            0 | 1 => Bound::Included(self.key()),
            2 => Bound::Excluded(self.key()),
            _ => Bound::Unbounded,
        }
    }

    fn bounds(&mut self) -> Bounds {
        let bounds = (self.bound(), self.bound());
        // Inverted bounds are legal, but they should not be half of all bounds.
        if inverted(&bounds) && !self.random.one_in(10) { (bounds.1, bounds.0) } else { bounds }
    }

    fn op(&mut self) -> Op {
        let key = self.key();
        match self.random.below(100) {
            0..4 if self.home.has_expiry => {
                let expires = [Expires::At(1), Expires::In(0), Expires::At(u64::MAX), Expires::In(1 << 40)];
                let expires = *self.random.pick(&expires);
                Op::SetUntil { key, value: random::value(&mut self.random), expires }
            }
            0..50 => Op::Set { key, value: random::value(&mut self.random) },
            50..68 => Op::Delete { key },
            68..76 => Op::Add { key, delta: random::counter(&mut self.random) },
            76..84 if self.home.has_merges => Op::Merge { key, operand: self.operand() },
            84..86 if self.home.has_conditions => self.condition(),
            76..97 => {
                let mut value = || (!self.random.one_in(3)).then(|| random::value(&mut self.random));
                let (expected, new) = (value(), value());
                Op::CompareAndSwap { key, expected, new }
            }
            _ => {
                let (start, end) = (key, self.key());
                let end = (!self.random.one_in(8)).then_some(end);
                match end {
                    // Mostly a short range, so that the store does not stay empty.
                    Some(end) if self.random.one_in(3) => Op::DeleteRange { start, end: Some(end) },
                    Some(_) => Op::DeleteRange { end: Some([&start[..], b"\xFF"].concat()), start },
                    None => Op::DeleteRange { start, end },
                }
            }
        }
    }

    /// What a merge brings: mostly little, because values grow by it.
    fn operand(&mut self) -> Vec<u8> {
        let value = random::value(&mut self.random);
        if value.len() > 4096 { b"+".to_vec() } else { value }
    }

    /// A condition on a range: mostly of one key, so that it often holds.
    fn condition(&mut self) -> Op {
        let key = self.key();
        match self.random.below(8) {
            0 => Op::compare_range(&key[..].., [("", ""); 0]),
            1 => Op::compare_range(&key[..]..&[&key[..], b"\xFF"].concat()[..], [("", ""); 0]),
            // No range has a key that is too long.
            _ if key.len() > MAX_KEY_BYTES => Op::compare_range(&key[..]..=&key[..], [("", ""); 0]),
            2..5 => Op::compare_range(&key[..]..=&key[..], [("", ""); 0]),
            _ => {
                let value = random::value(&mut self.random);
                Op::compare_range(&key[..]..=&key[..], [(&key, value)])
            }
        }
    }

    /// The pairs of an ingest, sometimes out of order.
    fn pairs(&mut self) -> Vec<Line> {
        let count = 1 + self.random.below(30);
        let mut lines: Vec<_> = (0..count)
            .map(|_| (self.key(), random::value(&mut self.random)))
            .map(|(key, value)| Line { keyspace: None, op: Op::Set { key, value } })
            .collect();
        if !self.random.one_in(8) {
            lines.sort_by(|a, b| a.op.borrowed().key().cmp(b.op.borrowed().key()));
        }
        lines
    }

    fn line(&mut self) -> Line {
        Line { keyspace: self.keyspace(), op: self.op() }
    }

    fn command(&mut self) -> Command {
        if let Some(sets) = self.home.sets {
            match self.random.below(400) {
                0..4 => return Command::Sync,
                4..6 => return Command::Compact,
                6..8 => return Command::Verify,
                8..13 => return Command::Reopen(self.random.below(sets)),
                _ => {}
            }
        }
        match self.random.below(1000) {
            0..400 => Command::Write(self.line()),
            400..420 => Command::Append { keyspace: self.keyspace(), key: self.key(), suffix: b"+".to_vec() },
            420..424 if self.home.has_ingests => {
                Command::Ingest { keyspace: self.keyspace(), lines: self.pairs() }
            }
            424..428 if self.home.has_merges => {
                let name = self.random.pick(&["append", "max", "max", "none"]).to_string();
                Command::Operator { keyspace: self.keyspace(), name }
            }
            420..435 if self.home.has_conditions => {
                Command::Guard { keyspace: self.keyspace(), bounds: self.bounds(), lines: self.lines() }
            }
            420..480 => Command::Batch(self.lines()),
            480..560 => Command::Get(self.target(), self.key()),
            560..580 => Command::GetInto(self.target(), self.key()),
            580..600 => Command::Contains(self.target(), self.key()),
            600..630 => {
                let keys = self.random.below(30);
                Command::MultiGet(self.target(), (0..keys).map(|_| self.key()).collect())
            }
            630..650 => Command::Count(self.target(), self.bounds()),
            650..690 => Command::Scan(self.target(), self.ends(), self.bounds()),
            690..710 => {
                let mut prefix = self.key();
                prefix.truncate(self.random.below(prefix.len() + 1));
                Command::Prefix(self.target(), self.ends(), prefix)
            }
            710..715 => Command::First(self.target()),
            715..720 => Command::Last(self.target()),
            720..770 if !self.home.has_snapshots => Command::Keys,
            720..750 => Command::Snapshot(self.name()),
            750..770 => Command::Release(self.name()),
            770..775 => Command::Keyspace(self.keyspace().unwrap_or(DEFAULT_KEYSPACE.into())),
            775..780 if !self.home.has_keyspaces => Command::Keys,
            775..780 => Command::DropKeyspace(self.keyspace().unwrap_or(DEFAULT_KEYSPACE.into())),
            780..785 => Command::Keyspaces(self.target()),
            785..815 => Command::Iterate(self.name(), self.target(), self.bounds()),
            815..895 => {
                let ends =
                    (0..1 + self.random.below(25)).map(|_| *self.random.pick(&['f', 'f', 'b'])).collect();
                Command::Step(self.name(), ends)
            }
            895..910 => Command::Cursor(self.name(), self.target()),
            910..980 => {
                let to = match self.random.below(12) {
                    0 => Move::First,
                    1 => Move::Last,
                    2..5 => Move::Skip(1),
                    5 => Move::Skip(1 + self.random.below(4)),
                    6..10 => Move::Prev,
                    10 => Move::Seek(self.key()),
                    _ => Move::SeekForPrev(self.key()),
                };
                Command::Move(self.name(), to)
            }
            980..985 => Command::Park(self.name()),
            985..990 => Command::Close(self.name()),
            990..996 => Command::Take {
                keyspace: self.keyspace(),
                ends: self.ends(),
                count: 1 + self.random.below(8),
                bounds: self.bounds(),
            },
            _ => Command::Keys,
        }
    }

    /// Those of a batch: sometimes conditions first.
    fn lines(&mut self) -> Vec<Line> {
        let has_some = self.home.has_conditions && self.random.one_in(4);
        let conditions = if has_some { 1 + self.random.below(2) } else { 0 };
        let mut lines: Vec<_> =
            (0..conditions).map(|_| Line { keyspace: self.keyspace(), op: self.condition() }).collect();
        lines.extend((0..1 + self.random.below(12)).map(|_| self.batch_line()));
        lines
    }

    /// Like `line`, but a batch with many operations should often succeed.
    fn batch_line(&mut self) -> Line {
        loop {
            let line = self.line();
            let risky =
                matches!(line.op, Op::Add { .. } | Op::CompareAndSwap { .. } | Op::CompareRange { .. });
            if !risky || self.random.one_in(4) {
                return line;
            }
        }
    }
}

/// Maximum number of commands from a fuzzer's input.
const COMMANDS_MAX: usize = 1000;

/// The commands of a seed, or of a fuzzer's input.
fn commands(random: Random) -> Vec<Command> {
    commands_between(random, ABLE, 1000)
}

/// Such commands with values that expire, and without `keys`: the number of keys is an estimate on disk, and in memory
/// it has values that have expired until they are removed.
pub(crate) fn commands_that_expire(random: Random) -> Vec<Command> {
    let mut commands = commands_between(random, EXPIRING, 1000);
    commands.retain(|command| !matches!(command, Command::Keys));
    commands
}

/// At most `most` commands for a store that can be opened again with any of `sets` option sets.
pub(crate) fn commands_and_reopenings(random: Random, sets: usize, most: usize) -> Vec<Command> {
    commands_between(random, Home { sets: Some(sets), ..EXPIRING }, most)
}

/// At most `most` commands for any home.
pub(crate) fn commands_between(mut random: Random, home: Home, most: usize) -> Vec<Command> {
    let keys = random::keys(&mut random, home.key_bytes_max);
    let count = most / 5 + random.below(most - most / 5);
    let is_fuzzed = random.is_finite();
    let mut generator = Generator { random, keys, home };
    let mut commands = Vec::new();
    if home.has_merges {
        // Of empty keyspaces.
        let spaces = if home.has_keyspaces { &SPACES[1..] } else { &SPACES[..1] };
        for space in spaces {
            let name = *generator.random.pick(&[OPERATORS[0], OPERATORS[1], "none"]);
            commands.push(Command::Operator { keyspace: space.map(str::to_string), name: name.to_string() });
        }
    }
    if generator.keys.len() > 1000 {
        // Enough keys for several nodes.
        let set = |key: &Vec<u8>| Op::Set { key: key.clone(), value: key.clone() };
        let ops = generator.keys.iter().map(set);
        commands.push(Command::Batch(ops.map(|op| Line { keyspace: None, op }).collect()));
    }
    if is_fuzzed {
        while !generator.random.is_spent() && commands.len() < COMMANDS_MAX {
            commands.push(generator.command());
        }
    } else {
        commands.extend((0..count).map(|_| generator.command()));
    }
    commands
}

/// The seeds, by the size of the tests and the environment.
#[cfg(test)]
pub(crate) fn seeds(quick: u64, full: u64) -> std::ops::Range<u64> {
    match number("FORREST_MODEL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("FORREST_MODEL_SEEDS").unwrap_or(sized(quick, full)),
    }
}

/// Compares the results of a store that `fresh` makes with the model's. If they differ, prints a script that
/// reproduces the difference and panics. `origin` is the source of the commands.
pub(crate) fn compare(fresh: Fresh<'_>, commands: &[Command], origin: &str) {
    let Err(failure) = run(fresh, commands, &mut Vec::new()) else { return };
    println!("{origin} fails at command {} of {}: {}; shrinking", failure.at, commands.len(), failure.what);
    let commands = shrink(fresh, commands[..=failure.at].to_vec());
    let mut answers = Vec::new();
    let Err(failure) = run(fresh, &commands, &mut answers) else {
        panic!("{origin}, not each time: {}", failure.what);
    };
    answers.resize(commands.len(), Vec::new());
    println!("# Found by {origin}. Replay: put this into tests/scripts/NAME.txt.");
    println!("{}", script::print(commands.iter().zip(&answers)));
    panic!("{origin}, at the last command above: {}", failure.what);
}

/// The body of the fuzz target `commands`.
pub(crate) fn compare_fuzzed(input: &[u8]) {
    let fresh = || World::new(Db::builder().pages(Pages::Plain).open("memory:").expect("memory"));
    compare(&fresh, &commands(Random::from_bytes(input)), "a fuzzed input");
}

#[test]
fn memory_answers_as_the_model() {
    const PAGES: [Pages; 3] = [Pages::Plain, Pages::Transparent, Pages::Auto];
    for seed in seeds(40, 60) {
        let pages = PAGES[(seed % 3) as usize];
        let fresh = || World::new(Db::builder().pages(pages).open("memory:").expect("memory"));
        let random = Random::new(seed);
        let commands = if seed % 2 == 0 { commands(random) } else { commands_that_expire(random) };
        compare(&fresh, &commands, &format!("FORREST_MODEL_SEED={seed}"));
    }
}

/// Stores on disk, each in a new directory, with sizes so small that memtables become immutable, tables are
/// merged and split, and pages leave the cache and are read again.
#[test]
fn disk_answers_as_the_model() {
    let directory = tempfile::tempdir().expect("a directory");
    let opened = Cell::new(0);
    for seed in seeds(6, 9) {
        let fresh = || {
            let path = directory.path().join(opened.replace(opened.get() + 1).to_string());
            let builder = Db::builder().pages(Pages::Plain).memtable_bytes(4 << 10).table_bytes(16 << 10);
            let builder = builder.batch_bytes_max(16 << 20);
            let builder = builder.cache_bytes([1, 1 << 20][(seed % 2) as usize]).tags(seed % 3 > 0);
            World::new(builder.open(path.to_str().expect("it is text")).expect("a store on disk"))
        };
        let commands = commands_that_expire(Random::new(seed));
        compare(&fresh, &commands, &format!("FORREST_MODEL_SEED={seed}"));
    }
}

#[test]
fn what_is_generated_survives_printing() {
    let random = [commands(Random::new(1)), commands_and_reopenings(Random::new(2), 24, 1000)];
    for command in random.into_iter().flatten() {
        let body = command.body();
        let body: Vec<_> = body.iter().map(String::as_str).collect();
        assert_eq!(Command::parse(&command.to_string(), &body).as_ref(), Ok(&command), "{command}");
    }
}
