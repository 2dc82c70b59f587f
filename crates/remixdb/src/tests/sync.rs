//! Which thread waits for which when the device is slow: a disk whose syncs take until they are released.

use super::world::options;
use crate::core::Handle;
use crate::disk::simulated::{Simulated, Watch};
use crate::disk::{Kind, Sealed};
use forrest_engine::Durability;
use forrest_engine::Options;
use forrest_engine::View as _;
use forrest_engine::{Op, Result};
use std::sync::{Arc, Condvar, Mutex};

/// The sync of a log takes as long as it is shut.
#[derive(Default)]
struct Gate {
    /// Whether it is shut, and how many threads wait at it.
    state: Mutex<(bool, usize)>,
    changed: Condvar,
}

impl Gate {
    fn set(&self, shut: bool) {
        self.state.lock().expect("nobody panics").0 = shut;
        self.changed.notify_all();
    }

    /// Waits until a thread waits at the gate.
    fn expect_somebody(&self) {
        let state = self.state.lock().expect("nobody panics");
        drop(self.changed.wait_while(state, |(_, waiting)| *waiting == 0).expect("nobody panics"));
    }

    fn pass(&self) {
        let mut state = self.state.lock().expect("nobody panics");
        state.1 += 1;
        self.changed.notify_all();
        let mut state = self.changed.wait_while(state, |(shut, _)| *shut).expect("nobody panics");
        state.1 -= 1;
    }
}

impl Watch for Gate {
    fn syncs(&self, kind: Kind) {
        if kind == Kind::Log {
            self.pass();
        }
    }
}

/// While one thread waits for the device, others write and read; threads that also want a sync share the next
/// one.
#[test]
fn a_sync_holds_up_nobody_who_does_not_want_one() -> Result<()> {
    let (disk, gate) = (Simulated::new(), Arc::new(Gate::default()));
    let store = Handle::open_unattended(
        Sealed::plain(disk.watched(gate.clone())),
        &Options { memtable_bytes: 1 << 20, ..options(Durability::Buffered) },
    )?;
    let space = store.keyspace("default")?;
    let set = |key: u8| store.apply(&space, Op::Set { key: &[key], value: &[key] }).map(drop);
    set(0)?;
    gate.set(true);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| store.sync());
        gate.expect_somebody();
        for key in 1..100 {
            set(key)?;
            assert_eq!(store.view(&space).get(&[key])?.as_deref(), Some(&[key][..]));
        }
        let others: Vec<_> = (0..8).map(|_| scope.spawn(|| store.sync())).collect();
        let ios = disk.ios();
        gate.set(false);
        first.join().expect("it does not panic")?;
        others.into_iter().try_for_each(|other| other.join().expect("it does not panic"))?;
        // The first one's, and one for all that came while it ran.
        assert!(disk.ios() - ios <= 2, "{} syncs", disk.ios() - ios);
        Ok(())
    })
}
