//! What the machine gives, made safe to use: huge pages, asymmetric barriers, prefetching, and facts
//! about the processor and the kernel.
//!
//! This is the bottom layer of Forrest: it knows the operating system and nothing of stores. Linux on
//! x86-64 and AArch64 has everything; elsewhere each function falls back to what every Unix has and
//! says so in its answer, so that callers need no `cfg` of their own.
//!
//! | module | what it gives |
//! |---|---|
//! | [`pages`] | one reserved address range, committed piece by piece on the largest pages to be had |
//! | [`barrier`] | a store-load barrier that costs the frequent side nothing |
//! | [`prefetch`] | asking for a cache line early |
//! | [`cpu`] | instruction sets, processors allowed, caches, pinning |
//! | [`memory`] | how much there is, limits of control groups considered |
//! | [`counters`] | whether the processor's performance counters can be read; what the system counts of a thread |
//! | [`callgrind`] | counting by a simulated processor, where valgrind runs the program |
//! | [`files`] | how many files may be open |
//! | [`origin`] | whether this is the process that something belongs to |
//! | [`frames`] | pages of memory that are read in place without a lock, on huge pages |
//! | [`doctor`] | all of it as findings, each with what to do about it |
//!
//! `docs/layers.txt` says which may use which.

// The models take the modules that they are about into their own test, see tests/loom.rs.
#![cfg(not(loom))]

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
