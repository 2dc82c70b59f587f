//! Several threads move money between accounts, and the sum stays the same.
//!
//! `cargo run -p forrest-db --example transactions`

use forrest::{Committed, Db, Draft, Result};
use std::thread;

const ACCOUNTS: [&str; 3] = ["ada", "emmy", "mary"];

/// Runs the example.
pub fn main() -> Result<()> {
    let db = Db::open("memory:")?;
    for name in ACCOUNTS {
        db.add(name, 100)?;
    }
    thread::scope(|scope| {
        let db = &db;
        let workers: Vec<_> = (0..ACCOUNTS.len()).map(|at| scope.spawn(move || pay_round(db, at))).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no worker panics"))
    })?;
    // Reads are part of the transaction as well: this is the sum at one instant.
    let sum: Result<i64> =
        db.transact(|transaction| ACCOUNTS.iter().map(|name| balance(transaction, name)).sum());
    assert_eq!(sum?, 300);

    // By hand: a conflict is a result, not an error, and nothing was changed.
    let mut transaction = db.transaction();
    let found = balance(&mut transaction, "ada")?;
    transaction.set("note", format!("ada has {found}"))?;
    db.add("ada", 1)?; // like a change by another thread
    match transaction.commit()? {
        Committed::Conflict { key, .. } => println!("{} has changed", key.escape_ascii()),
        other => unreachable!("{other:?}"),
    }
    assert_eq!(db.get("note")?, None);
    Ok(())
}

/// Each account pays the next one, repeatedly.
fn pay_round(db: &Db, from: usize) -> Result<()> {
    let (from, to) = (ACCOUNTS[from], ACCOUNTS[(from + 1) % ACCOUNTS.len()]);
    for amount in 1..100 {
        // Runs again if another thread has changed a value that it read.
        db.transact(|transaction| -> Result<()> {
            if balance(transaction, from)? >= amount {
                transaction.add(from, -amount)?;
                transaction.add(to, amount)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn balance(accounts: &mut Draft, name: &str) -> Result<i64> {
    let value = accounts.get(name)?.expect("everybody has an account");
    Ok(i64::from_be_bytes(value[..].try_into().expect("it is a counter")))
}
