//! Safe access to the machine: huge pages, asymmetric barriers, prefetching, and facts about the processor and
//! the kernel.
//!
//! This is the bottom layer of Forrest: it depends on the operating system and knows nothing about stores. Linux on
//! x86-64 and AArch64 has everything. Elsewhere each function falls back to what every Unix has and reports that in
//! its result, so callers need no `cfg`.
//!
//! | module | content |
//! |---|---|
//! | [`pages`] | one reserved address range, committed piece by piece on the largest available pages |
//! | [`barrier`] | a store-load barrier that costs the frequent side nothing |
//! | [`prefetch`] | fetching a cache line early |
//! | [`cpu`] | instruction sets, processors allowed, caches, pinning |
//! | [`memory`] | the size of the memory, with the limits of control groups |
//! | [`counters`] | access to the processor's performance counters; the system's counters of a thread |
//! | [`callgrind`] | counting by a simulated processor, if valgrind runs the program |
//! | [`files`] | the maximum number of open files |
//! | [`origin`] | the process that an object belongs to |
//! | [`frames`] | page frames that are read in place without a lock, on huge pages |
//! | [`doctor`] | findings about all of it, each with advice |
//!
//! `docs/layers.txt` says which may use which.

pub mod barrier;
pub mod callgrind;
pub mod counters;
pub mod cpu;
pub mod doctor;
pub mod files;
pub mod frames;
pub mod memory;
pub mod origin;
pub mod pages;
pub mod prefetch;
mod sync;
