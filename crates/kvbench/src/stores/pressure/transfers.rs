//! Transactions that meet: amounts that threads move between accounts.

use super::super::pairs::Key;
use super::super::store::{Amount, Answer, Transact};
use super::Arm;
use crate::data::{Choice, Distribution, Random, mix};
use crate::job::Durability;
use crate::latency;
use hdrhistogram::Histogram;
use std::thread;
use std::time::Instant;

impl Arm<'_> {
    /// Threads move amounts between accounts chosen by Zipf's law; a transaction that met another is tried again.
    pub(super) fn transfers<T: Transact>(&mut self) -> Answer<()> {
        const FIRST: Amount = 1_000_000;
        let store = T::open(&self.settings(&self.orders.directory, Durability::Process))?;
        let accounts = self.keys().max(2);
        let keys: Vec<Key> = (0..accounts).map(|number| self.pairs.key(number)).collect();
        keys.iter().try_for_each(|key| store.put(key, &FIRST.to_le_bytes()))?;
        let choice = Choice::new(Distribution::ZIPFIAN, accounts, self.job.seed);
        let (start, time) = (Instant::now(), self.time());
        let move_amounts = |thread: u64| -> Answer<(Histogram<u64>, u64)> {
            let (mut each, mut met, mut random) = (latency::histogram(), 0, Random::new(mix(thread ^ 7)));
            while start.elapsed() < time {
                let from = choice.pick_of(random.next(), accounts);
                let to = (from + 1 + choice.pick_of(random.next(), accounts) % (accounts - 1)) % accounts;
                let amount = random.below(100);
                let keys = [from, to].map(|number| &keys[number as usize][..]);
                let begin = Instant::now();
                while !store.transfer(keys, |[from, to]| {
                    let amount = amount.min(from);
                    [from - amount, to + amount]
                })? {
                    met += 1;
                }
                each.saturating_record(begin.elapsed().as_nanos() as u64);
            }
            Ok((each, met))
        };
        let (mut each, mut met) = (latency::histogram(), 0);
        thread::scope(|scope| {
            let threads =
                (0..u64::from(self.orders.threads)).map(|thread| scope.spawn(move || move_amounts(thread)));
            for thread in threads.collect::<Vec<_>>() {
                let (own, own_met) = thread.join().map_err(|_| "a thread panicked")??;
                each.add(own)?;
                met += own_met;
            }
            Answer::Ok(())
        })?;
        self.figures.set("transfer_ops_per_s", each.len() as f64 / start.elapsed().as_secs_f64());
        self.figures.set("transfer_met_percent", 100.0 * met as f64 / (met + each.len()).max(1) as f64);
        self.note("transfer", &each);
        let sum: Amount = store.amounts(&keys)?.iter().sum();
        if sum == FIRST * accounts { Ok(()) } else { Err("amounts were lost or made".into()) }
    }
}
