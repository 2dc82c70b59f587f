//! Money that several threads move between accounts, and none of which is made or lost.
//!
//! `cargo run -p forrest --example transactions`

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
    // Reading belongs to it as well: this is the sum at one instant.
    let sum: Result<i64> =
        db.transact(|transaction| ACCOUNTS.iter().map(|name| balance(transaction, name)).sum());
    assert_eq!(sum?, 300);

    // By hand: a conflict is an answer, and nothing was changed.
    let mut transaction = db.transaction();
    let found = balance(&mut transaction, "ada")?;
    transaction.set("note", format!("ada has {found}"))?;
    db.add("ada", 1)?; // somebody else
    match transaction.commit()? {
        Committed::Done => unreachable!(),
        Committed::Conflict { key, .. } => println!("{} has changed", key.escape_ascii()),
    }
    assert_eq!(db.get("note")?, None);
    Ok(())
}

/// Each pays the next one, again and again.
fn pay_round(db: &Db, from: usize) -> Result<()> {
    let (from, to) = (ACCOUNTS[from], ACCOUNTS[(from + 1) % ACCOUNTS.len()]);
    for amount in 1..100 {
        // Runs again if somebody changes meanwhile what it has read.
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
