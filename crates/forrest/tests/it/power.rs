//! The public API on a simulated disk, whose power is cut: batches, transactions, keyspaces and threads, through the
//! same [`Db`] that users have. The engine's own gates enumerate far more states; here it is shown that nothing above
//! the engine weakens what it keeps.

use crate::drive;
use crate::random::Random;
use crate::world::World;
use forrest::simulated::{self, Simulated};
use forrest::{Builder, Db, Durability, Pages, Transaction};
use forrest_testing::sized;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// What a store holds, by keyspace and key.
type Content = BTreeMap<(String, Vec<u8>), Vec<u8>>;

/// Accounts, whose balances always add up to 0.
const ACCOUNTS: usize = 6;

fn builder() -> Builder {
    let small =
        Db::builder().pages(Pages::Plain).memtable_bytes(600).table_bytes(1 << 10).cache_bytes(1 << 16);
    small.durability(Durability::Buffered).workers(1)
}

fn content(db: &Db) -> Content {
    let mut content = Content::new();
    for name in db.keyspaces().expect("the names") {
        let keyspace = db.keyspace(&name).expect("it is there");
        let see = |key: &[u8], value: &[u8]| {
            content.insert((name.clone(), key.to_vec()), value.to_vec());
            ControlFlow::Continue(())
        };
        keyspace.scan(.., see).expect("it can be read");
    }
    content
}

fn account(number: usize) -> String {
    format!("account {number}")
}

/// Moves an amount between two accounts, and counts the transfer in the other keyspace.
fn transfer(
    transaction: &mut Transaction,
    log: &forrest::Keyspace,
    from: usize,
    to: usize,
    amount: i64,
) -> forrest::Result<()> {
    let balance = |value: Option<forrest::Value>| {
        value.map_or(0, |value| i64::from_be_bytes((&value[..]).try_into().expect("8 bytes")))
    };
    let (old_from, old_to) =
        (balance(transaction.get(account(from))?), balance(transaction.get(account(to))?));
    transaction.set(account(from), (old_from - amount).to_be_bytes())?;
    let old_to = if from == to { old_from - amount } else { old_to };
    transaction.set(account(to), (old_to + amount).to_be_bytes())?;
    transaction.on(log).add(format!("from {from}"), 1)?;
    Ok(())
}

fn sum(content: &Content) -> i64 {
    let balances = content.iter().filter(|((_, key), _)| key.starts_with(b"account"));
    balances.map(|(_, value)| i64::from_be_bytes(value[..].try_into().expect("8 bytes"))).sum()
}

/// One thread, so that the history is known: after a power cut the store is as it was after some step of it, and after
/// none before the last that was durable.
#[test]
fn transactions_survive_power_cuts() {
    for seed in 0..sized(3, 6) {
        let disk = Simulated::new();
        let (db, background) = simulated::open_unattended(disk.clone(), &builder()).expect("a new store");
        let log = db.keyspace("log").expect("a keyspace");
        db.sync().expect("the disk works");
        let mut random = Random::new(seed);
        let mut states = vec![content(&db)];
        let (mut durable, mut looked) = (0, 0);
        for step in 0..sized(40, 100) {
            match random.below(10) {
                0 => {
                    db.sync().expect("the disk works");
                    durable = states.len() - 1;
                }
                1..4 => drop(background.step().expect("the disk works")),
                4 => {
                    db.delete_range(account(0)..account(1)).expect("it can be deleted");
                    let zero = -sum(&content(&db));
                    // The other accounts make up for it at another moment, which is a state of its own.
                    states.push(content(&db));
                    db.set(account(0), zero.to_be_bytes()).expect("it fits");
                }
                _ => {
                    let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
                    let amount = random.below(100) as i64;
                    db.transact(|transaction| transfer(transaction, &log, from, to, amount))
                        .expect("it fits");
                    assert_eq!(sum(&content(&db)), 0, "seed {seed}, step {step}");
                }
            }
            states.push(content(&db));
            if !random.one_in(4) {
                continue;
            }
            for after in disk.crash_states(2, seed ^ step) {
                let (reopened, _) = simulated::open_unattended(after, &builder())
                    .unwrap_or_else(|error| panic!("seed {seed}, step {step}: {error}"));
                let found = content(&reopened);
                let is_one = states[durable..].contains(&found);
                assert!(is_one, "seed {seed}, step {step}: {found:?} was no state since {durable}");
                looked += 1;
            }
        }
        assert!(looked > 20, "seed {seed}: {looked} states");
    }
}

/// Threads beside the background thread: what they committed durably is there after a power cut, and each transaction
/// whole.
#[test]
fn threads_that_sync_lose_nothing() {
    for seed in 0..sized(2, 6) {
        let disk = Simulated::new();
        let db = simulated::open(disk.clone(), &builder()).expect("a new store");
        let log = db.keyspace("log").expect("a keyspace");
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (db, log) = (db.clone(), log.clone());
                scope.spawn(move || {
                    let mut random = Random::new(seed * 10 + thread);
                    for _ in 0..60 {
                        let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
                        db.transact(|transaction| transfer(transaction, &log, from, to, 1)).expect("it fits");
                    }
                    db.sync().expect("the disk works");
                });
            }
        });
        let before = content(&db);
        assert_eq!(sum(&before), 0, "seed {seed}");
        for after in disk.crash_states(4, seed) {
            let (reopened, _) = simulated::open_unattended(after, &builder()).expect("it can be opened");
            assert_eq!(content(&reopened), before, "seed {seed}");
        }
        drop((log, db));
    }
}

/// The model of the public API, with a thread in the background, on the simulated disk.
#[test]
fn a_simulated_disk_answers_as_the_model() {
    for seed in drive::seeds(2, 6) {
        let fresh = || {
            let builder = builder().memtable_bytes(4 << 10).batch_bytes_max(16 << 20);
            let disk = Simulated::new();
            // At 0 no value has expired yet.
            disk.set_now_ms(1000);
            World::new(simulated::open(disk, &builder).expect("a new store"))
        };
        let commands = drive::commands_that_expire(Random::new(seed));
        drive::compare(&fresh, &commands, &format!("FORREST_MODEL_SEED={seed}"));
    }
}
