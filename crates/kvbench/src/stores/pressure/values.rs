//! Long values: loaded, read, overwritten, read again.

use super::super::lap::{self, Running};
use super::super::store::{Answer, Pressed, Reader, Store};
use super::{Arm, peak_of};
use crate::data::{Choice, Distribution, mix};
use crate::job::Durability;
use crate::usage;
use std::time::{Duration, Instant};

/// Lengths of long values, in bytes, the longest last.
const LONG_VALUES: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];
/// Places in the random text where a long value may begin.
const LONG_CHOICES: usize = 1 << 16;
/// Times that as many long values are overwritten as there are.
const LONG_OVERWRITES: u64 = 3;

/// Long values: [`LONG_CHOICES`] pieces of one random text, each with its number and round in front.
struct Long {
    text: Vec<u8>,
    value: Vec<u8>,
}

impl Long {
    fn new(seed: u64) -> Self {
        let mut state = seed;
        let mut text = vec![0; LONG_VALUES[LONG_VALUES.len() - 1] + LONG_CHOICES];
        for part in text.chunks_mut(size_of::<u64>()) {
            state = mix(state);
            part.copy_from_slice(&state.to_le_bytes()[..part.len()]);
        }
        Long { text, value: Vec::new() }
    }

    /// The value that a pair has in a round.
    fn value(&mut self, number: u64, round: u64, bytes: usize) -> &[u8] {
        let head = [number, round].map(u64::to_le_bytes).concat();
        let start = mix(number ^ round.rotate_left(32)) as usize % LONG_CHOICES;
        self.value.clear();
        self.value.extend_from_slice(&head);
        self.value.extend_from_slice(&self.text[start..start + bytes - head.len()]);
        &self.value
    }
}

impl Arm<'_> {
    /// The same bytes as values of each length, in a store of its own: loaded, read, overwritten.
    pub(super) fn values<S: Pressed>(&mut self) -> Answer<()> {
        let (directory, mut long) = (self.orders.directory.clone(), Long::new(self.job.seed));
        for bytes in LONG_VALUES {
            (self.report)(format!("values of {bytes} bytes"));
            let keys = (self.keys() * LONG_VALUES[0] as u64 / bytes as u64).max(4);
            let within = directory.join(bytes.to_string());
            std::fs::create_dir(&within)?;
            let store: S = self.open_in(&within, Durability::Process)?;
            let stored = keys * bytes as u64;
            let figure = |name: &str| format!("{name}@{bytes}");
            let running = Running::start(&within)?;
            let mut spent = Duration::ZERO;
            let put = |number: u64, round: u64, long: &mut Long, spent: &mut Duration| {
                let (key, value) = (self.pairs.key(number), long.value(number, round, bytes));
                let start = Instant::now();
                store.put(&key, value)?;
                *spent += start.elapsed();
                Answer::Ok(())
            };
            for number in 0..keys {
                put(number, 0, &mut long, &mut spent)?;
            }
            spent += lap::settle(&store)?;
            let rate =
                |spent: Duration, count: u64| (count * bytes as u64) as f64 / spent.as_secs_f64() / 1e9;
            self.figures.set(&figure("value_load_gb_per_s"), rate(spent, keys));
            if let Some(written) = running.stop().written_per_byte(stored) {
                self.figures.set(&figure("value_load_written_per_byte"), written);
            }
            let mut rounds = vec![0; keys as usize];
            let get = self.gets(&store, bytes, &rounds, &mut long)?;
            self.figures.set(&figure("value_get_ns"), get);
            usage::clean(&within);
            let (running, mut spent) = (Running::start(&within)?, Duration::ZERO);
            let overwrites = LONG_OVERWRITES * keys;
            let peak = peak_of(&within, &store, || {
                for at in 0..overwrites {
                    let number = mix(at ^ self.job.seed) % keys;
                    rounds[number as usize] += 1;
                    put(number, rounds[number as usize], &mut long, &mut spent)?;
                }
                Ok(())
            })?;
            self.figures.set(&figure("value_overwrite_gb_per_s"), rate(spent, overwrites));
            if let Some(written) = running.stop().written_per_byte(LONG_OVERWRITES * stored) {
                self.figures.set(&figure("value_overwrite_written_per_byte"), written);
            }
            let rest = usage::disk_bytes(&within);
            self.figures.set(&figure("value_overwrite_disk_per_byte"), rest as f64 / stored as f64);
            self.figures.set(&figure("value_peak_disk_per_byte"), peak as f64 / stored as f64);
            // What was read before was written in one order.
            let get = self.gets(&store, bytes, &rounds, &mut long)?;
            self.figures.set(&figure("value_get_again_ns"), get);
            self.check_count(&store, keys)?;
            drop(store);
            std::fs::remove_dir_all(&within)?;
        }
        Ok(())
    }

    /// Gets each long value once, in a random order. Returns the mean time, in nanoseconds.
    fn gets<S: Store>(&self, store: &S, bytes: usize, rounds: &[u64], long: &mut Long) -> Answer<f64> {
        let (keys, mut spent, mut reader) = (rounds.len() as u64, Duration::ZERO, store.reader()?);
        let choice = Choice::new(Distribution::Uniform, keys, self.job.seed);
        for at in 0..keys {
            let number = choice.pick(at);
            let (key, expected) =
                (self.pairs.key(number), long.value(number, rounds[number as usize], bytes));
            let (mut right, start) = (false, Instant::now());
            let is_there = reader.get(&key, |value| right = value == expected)?;
            spent += start.elapsed();
            if !is_there || !right {
                return Err("a value that was written is not there, or is another one".into());
            }
        }
        Ok(spent.as_nanos() as f64 / keys as f64)
    }
}
