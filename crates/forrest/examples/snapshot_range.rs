//! A snapshot of a store that changes, and numbers as keys.
//!
//! `cargo run -p forrest-db --example snapshot_range`

use forrest::{Db, Result, View};

/// Runs the example.
pub fn main() -> Result<()> {
    let db = Db::open("memory:")?;
    // Big-endian integers sort as numbers.
    for year in 1990_u32..2030 {
        db.set(year.to_be_bytes(), format!("rings of {year}"))?;
    }

    let before = db.snapshot()?;
    db.delete_range(..2000_u32.to_be_bytes())?;
    db.set(2000_u32.to_be_bytes(), "a wide ring")?;

    // The same function reads the newest state and a snapshot.
    assert_eq!(years(&db)?, (2000, 2029));
    assert_eq!(years(&before)?, (1990, 2029));

    // A range owns what it needs: it may outlive the snapshot and move to another thread.
    let nineties = before.range(..2000_u32.to_be_bytes());
    drop(before);
    assert_eq!(nineties.count(), 10);

    // A cursor finds the neighbours of a key.
    let mut cursor = db.cursor();
    assert!(cursor.seek_for_prev(2010_u32.to_be_bytes())?);
    assert!(cursor.prev()?);
    let value = cursor.value()?.expect("a cursor that moved to a pair has its value");
    println!("before 2010: {}", String::from_utf8_lossy(&value));
    assert_eq!(value, "rings of 2009");
    Ok(())
}

/// The first and the last year.
fn years(view: &View) -> Result<(u32, u32)> {
    let mut range = view.range(..);
    let first = range.next().expect("there are years")?;
    let last = range.next_back().expect("there are more")?;
    let year = |key: &[u8]| u32::from_be_bytes(key.try_into().expect("keys of 4 bytes"));
    Ok((year(first.key()), year(last.key())))
}
