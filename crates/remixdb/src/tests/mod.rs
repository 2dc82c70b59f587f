//! The gates of the store, over the simulated disk: what is promised is looked for in every state that a crash, a
//! failing disk or damage can leave.

mod checkpoint;
mod conformance;
mod crash;
mod damage;
mod faults;
mod forged;
mod sync;
mod world;
