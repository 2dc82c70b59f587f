//! Verifies the pairs of earlier runs.
//!
//! All changes of a store have one order, and a crash keeps a prefix of it. So the store must have a prefix of each
//! thread's pairs, without gaps except for deleted pairs, and the count must match it. A run that recorded its end must
//! be complete.

use super::plan::PERIOD;
use crate::args::Mark;
use crate::failure::Failure;
use crate::interrupt;
use forrest::Keyspace;
use std::collections::BTreeMap;

/// The runs in the store.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The oldest run in the store, or 0.
    pub(super) first_run: u32,
    /// The newest, or 0.
    pub(super) last_run: u32,
    /// Runs that did not record their end.
    pub(super) unfinished: u64,
    pub(super) pairs: u64,
}

/// The records that were read.
#[derive(Default)]
struct Records {
    first: u32,
    /// The number of threads of each run.
    runs: BTreeMap<u32, u32>,
    /// Threads, and pairs of each.
    done: BTreeMap<u32, (u32, u32)>,
    counts: BTreeMap<(u32, u32), u32>,
    threads: BTreeMap<(u32, u32), Thread>,
}

/// The pairs of a thread, as far as they were read.
#[derive(Default)]
struct Thread {
    pairs: u64,
    /// The pair after the last that was seen.
    next: u32,
    /// The first that may be deleted, and is there.
    kept: Option<u32>,
    /// The last that is not there.
    missing: Option<u32>,
}

/// Verifies all that is in the keyspace, and that each thread came as far as `expect` says.
pub(super) fn verify(space: &Keyspace, expect: &[Mark]) -> Result<Found, Failure> {
    let records = read(space)?;
    let mut found = Found {
        first_run: records.runs.keys().next().copied().unwrap_or(0),
        last_run: records.runs.keys().next_back().copied().unwrap_or(0),
        ..Found::default()
    };
    if !records.runs.is_empty() && found.first_run != records.first.max(1) {
        return wrong(format!("the oldest run is {}, not {}", found.first_run, records.first.max(1)));
    }
    for (run, at) in records.runs.keys().zip(found.first_run..) {
        if *run != at {
            return wrong(format!("run {at} is missing, and run {run} is there"));
        }
    }
    for (&(run, thread), state) in &records.threads {
        let threads = records.runs.get(&run).copied();
        if threads.is_none_or(|threads| thread >= threads) {
            return wrong(format!(
                "there are pairs of run {run}, thread {thread}, and the run has no record"
            ));
        }
        state.check(run, thread)?;
        found.pairs += state.pairs;
    }
    for (&run, &threads) in &records.runs {
        found.unfinished += u64::from(!records.done.contains_key(&run));
        for thread in 0..threads {
            records.check_thread(run, thread)?;
        }
    }
    for mark in expect.iter().filter(|mark| mark.run >= records.first) {
        let next = records.threads.get(&(mark.run, mark.thread)).map_or(0, |state| state.next);
        if next <= mark.pair {
            return wrong(format!("pair {mark} was acknowledged, and the thread's pairs end before {next}"));
        }
    }
    Ok(found)
}

impl Records {
    fn check_thread(&self, run: u32, thread: u32) -> Result<(), Failure> {
        let next = self.threads.get(&(run, thread)).map_or(0, |state| state.next);
        if let Some(&(_, pairs)) = self.done.get(&run)
            && pairs != next
        {
            return wrong(format!("run {run} was done with {pairs} pairs, and thread {thread} has {next}"));
        }
        let count = self.counts.get(&(run, thread)).copied().unwrap_or(0);
        if count != next / PERIOD * PERIOD {
            return wrong(format!("run {run}, thread {thread} has {next} pairs, and its count is {count}"));
        }
        Ok(())
    }

    fn take(&mut self, key: &str, value: &[u8]) -> Option<()> {
        let text = || std::str::from_utf8(value).ok();
        let (kind, rest) = key.split_once(' ').unwrap_or((key, ""));
        match kind {
            "first" => self.first = text()?.parse().ok()?,
            "run" => drop(self.runs.insert(rest.parse().ok()?, text()?.parse().ok()?)),
            "done" => {
                let (threads, pairs) = text()?.split_once(' ')?;
                self.done.insert(rest.parse().ok()?, (threads.parse().ok()?, pairs.parse().ok()?));
            }
            "count" => {
                let (run, thread) = rest.split_once('/')?;
                let count = u32::try_from(i64::from_be_bytes(value.try_into().ok()?)).ok()?;
                self.counts.insert((run.parse().ok()?, thread.parse().ok()?), count);
            }
            "pair" => {
                let mark: Mark = rest.parse().ok()?;
                let mut wanted = Vec::new();
                mark.value(&mut wanted);
                let is_right = wanted == value;
                is_right.then(|| self.threads.entry((mark.run, mark.thread)).or_default().see(mark))??;
            }
            _ => return None,
        }
        Some(())
    }
}

impl Thread {
    /// The next pair that is there, in order; `None` if it or one before cannot be so.
    fn see(&mut self, mark: Mark) -> Option<()> {
        let gap = (self.next..mark.pair).map(|pair| Mark { pair, ..mark });
        for missing in gap {
            // Whether it may be missing depends on the last pair, which is this one at least.
            if missing.is_there(mark.pair) == Some(true) && missing.is_there(u32::MAX) == Some(true) {
                return None;
            }
            self.missing = Some(missing.pair);
        }
        if mark.is_there(u32::MAX) == Some(false) {
            self.kept.get_or_insert(mark.pair);
        }
        self.pairs += 1;
        self.next = mark.pair + 1;
        Some(())
    }

    /// Checks which pairs are present and absent, once the last pair is known.
    fn check(&self, run: u32, thread: u32) -> Result<(), Failure> {
        let last = self.next.saturating_sub(1);
        let is_there = |pair| Mark { run, thread, pair }.is_there(last);
        if let Some(pair) = self.missing.filter(|&pair| is_there(pair) == Some(true)) {
            return wrong(format!("pair {} is missing", Mark { run, thread, pair }));
        }
        match self.kept.filter(|&pair| is_there(pair) == Some(false)) {
            Some(pair) => wrong(format!("pair {} was deleted, and is there", Mark { run, thread, pair })),
            None => Ok(()),
        }
    }
}

fn read(space: &Keyspace) -> Result<Records, Failure> {
    let mut records = Records::default();
    for entry in space.range(..) {
        interrupt::check()?;
        let entry = entry?;
        let key = String::from_utf8_lossy(entry.key());
        if records.take(&key, &entry.value()?).is_none() {
            return wrong(format!(
                "at {}: its value is wrong, or one before it is missing",
                entry.key().escape_ascii()
            ));
        }
    }
    Ok(records)
}

fn wrong<T>(what: String) -> Result<T, Failure> {
    Err(Failure::Wrong(format!("the store is not as it was left: {what}")))
}

#[cfg(test)]
mod tests {
    use super::super::plan;
    use super::*;
    use forrest::Db;

    /// A store with a run of one thread that wrote 20 pairs and was cut short.
    fn left() -> Db {
        let db = Db::open("memory:").unwrap();
        db.set(plan::run_name(1), "1").unwrap();
        super::super::write(&db, &db, Mark { run: 1, thread: 0, pair: 0 }, 20, false).unwrap();
        db
    }

    fn says(db: &Db, expect: &[&str]) -> String {
        let expect: Vec<Mark> = expect.iter().map(|text| text.parse().unwrap()).collect();
        verify(db, &expect).map_or_else(|failure| failure.to_string(), |found| found.pairs.to_string())
    }

    fn name(pair: u32) -> String {
        Mark { run: 1, thread: 0, pair }.name()
    }

    #[test]
    fn what_a_run_leaves_is_right() {
        // 1, 9 and 17 were deleted.
        assert_eq!(says(&left(), &["1/0/19"]), "17");
        let db = left();
        db.set(plan::done_name(1), "1 20").unwrap();
        assert_eq!(says(&db, &[]), "17");
        assert_eq!(says(&Db::open("memory:").unwrap(), &[]), "0");
    }

    #[test]
    fn each_thing_that_can_be_wrong_is_found() {
        assert!(says(&left(), &["1/0/20"]).contains("was acknowledged"));
        assert!(says(&left(), &["2/0/0"]).contains("was acknowledged"));
        type Change = fn(&Db) -> forrest::Result<()>;
        let changes: [(&str, Change); 9] = [
            ("one before it is missing", |db| db.delete(name(5)).map(drop)),
            ("one before it is missing", |db| db.delete(name(0)).map(drop)),
            ("value is wrong", |db| db.set(name(5), "other")),
            ("was deleted, and is there", |db| {
                let mut value = Vec::new();
                Mark { run: 1, thread: 0, pair: 9 }.value(&mut value);
                db.set(name(9), value)
            }),
            ("its count is 24", |db| db.add("count 000001/000", 8).map(drop)),
            ("no record", |db| db.delete(plan::run_name(1)).map(drop)),
            ("was done with 21", |db| db.set(plan::done_name(1), "1 21")),
            ("run 2 is missing", |db| db.set(plan::run_name(3), "1")),
            ("the oldest run is 1, not 2", |db| db.set(plan::FIRST, "2")),
        ];
        for (what, change) in changes {
            let db = left();
            change(&db).unwrap();
            assert!(says(&db, &[]).contains(what), "{what}: {}", says(&db, &[]));
        }
    }
}
