//! The first steps: open, set, get, iterate, and apply changes together.
//!
//! `cargo run -p forrest-db --example quick_start`

use forrest::{Db, Result, WriteBatch};

/// Runs the example.
pub fn main() -> Result<()> {
    // A store in memory lives as long as its handles.
    let db = Db::open("memory:")?;

    // Keys and values are bytes, passed as any type that implements `AsRef<[u8]>`.
    db.set("oak", "Quercus robur")?;
    db.set("ash", "Fraxinus excelsior")?;
    db.set("elm", "Ulmus glabra")?;
    if let Some(name) = db.get("oak")? {
        println!("the oak is {}", String::from_utf8_lossy(&name));
    }

    // Keys are ordered. A range iterates from both ends.
    for entry in db.range("a".."f").rev() {
        let entry = entry?;
        println!("{} is {}", String::from_utf8_lossy(entry.key()), String::from_utf8_lossy(&entry.value()?));
    }
    assert_eq!(db.count("a".."f")?, 2);

    // A batch is applied as a whole or not at all, and may span keyspaces.
    let shrubs = db.keyspace("shrubs")?;
    let mut batch = WriteBatch::new();
    batch.delete("elm");
    batch.on(&shrubs).set("hazel", "Corylus avellana");
    db.write(batch)?;
    assert!(!db.contains("elm")? && shrubs.contains("hazel")?);
    Ok(())
}
