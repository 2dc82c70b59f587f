//! How many groups share a sync: groups of one store append entries, each after the device has its last one.
//!
//! ```sh
//! cargo run --release --example groups -- DIRECTORY [SECONDS]
//! ```

use forrest::{Db, Op};
use forrest_raft::{Command, Entry, LeaderId, LogId, Payload, Store, Types};
use openraft::storage::RaftLogStorageExt;
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

/// Entries of 100 bytes, one after the other.
async fn append(mut log: forrest_raft::Log, until: Instant) -> u64 {
    let command = Command::one(Op::Set { key: &[b'k'; 16][..], value: &[b'v'; 100][..] });
    let command = command.expect("it fits");
    let mut index = 0;
    while Instant::now() < until {
        index += 1;
        let log_id = LogId { leader_id: LeaderId { term: 1, node_id: 1 }, index };
        let entry = Entry { log_id, payload: Payload::Normal(command.clone()) };
        RaftLogStorageExt::<Types>::blocking_append(&mut log, [entry]).await.expect("the disk works");
    }
    index
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("usage: groups DIRECTORY [SECONDS]")?;
    std::fs::create_dir_all(&directory)?;
    let seconds = arguments.next().map_or(Ok(2), |seconds| seconds.parse())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    for groups in [1, 2, 8, 64, 256] {
        let path = Path::new(&directory).join(groups.to_string());
        let store = Store::open(Db::open(path.to_str().ok_or("the directory is not UTF-8")?)?)?;
        let until = Instant::now() + Duration::from_secs(seconds);
        let mut tasks = Vec::new();
        for group in 0..groups {
            let (log, _state) = store.group(group)?;
            tasks.push(runtime.spawn(append(log, until)));
        }
        let mut entries = 0;
        for task in tasks {
            entries += runtime.block_on(task)?;
        }
        let time = 1e6 * seconds as f64 / entries as f64;
        println!("{groups} groups: {} entries per second, {time:.0} us each", entries / seconds);
    }
    Ok(())
}
