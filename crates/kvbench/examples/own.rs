//! `kvbench` with a structure of one's own: a sorted array of pairs, for numbers and for strings.
//!
//! ```text
//! cargo run --release --package forrest-kvbench --example own -- memory --subjects array,btreemap
//! ```
//!
//! A program elsewhere has this in its manifest:
//!
//! ```toml
//! [dependencies]
//! kvbench = { package = "forrest-kvbench", path = "forrest/crates/kvbench" }
//! ```

use forrest_kvbench::{NumberMap, StringMap, Structure};
use std::process::ExitCode;

struct Array<A, B>(Vec<(A, B)>);

impl<A, B> Default for Array<A, B> {
    fn default() -> Self {
        Array(Vec::new())
    }
}

impl<A: Ord, B> Array<A, B> {
    fn put(&mut self, key: A, value: B) {
        match self.0.binary_search_by(|(own, _)| own.cmp(&key)) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (key, value)),
        }
    }

    /// Takes the pair out that `compare` finds.
    fn take(&mut self, compare: impl Fn(&A) -> std::cmp::Ordering) -> bool {
        let found = self.0.binary_search_by(|(own, _)| compare(own));
        found.map(|at| self.0.remove(at)).is_ok()
    }
}

impl NumberMap for Array<u64, u64> {
    const ORDERED: bool = true;

    fn insert(&mut self, key: u64, value: u64) {
        self.put(key, value);
    }

    fn get(&self, key: u64) -> Option<u64> {
        let found = self.0.binary_search_by(|(own, _)| own.cmp(&key));
        found.ok().map(|at| self.0[at].1)
    }

    fn remove(&mut self, key: u64) -> bool {
        self.take(|own| own.cmp(&key))
    }

    fn each(&self, mut see: impl FnMut(u64, u64)) {
        self.0.iter().for_each(|&(key, value)| see(key, value));
    }

    fn scan(&self, from: u64, count: usize, mut see: impl FnMut(u64, u64)) {
        let first = self.0.partition_point(|&(own, _)| own < from);
        self.0[first..].iter().take(count).for_each(|&(key, value)| see(key, value));
    }

    fn reserve(&mut self, keys: usize) -> bool {
        self.0.reserve_exact(keys);
        true
    }
}

impl StringMap for Array<Vec<u8>, Vec<u8>> {
    const ORDERED: bool = true;

    fn insert(&mut self, key: &[u8], value: &[u8]) {
        self.put(key.to_vec(), value.to_vec());
    }

    fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let found = self.0.binary_search_by(|(own, _)| own[..].cmp(key));
        found.ok().map(|at| &self.0[at].1[..])
    }

    fn remove(&mut self, key: &[u8]) -> bool {
        self.take(|own| own[..].cmp(key))
    }

    fn each(&self, mut see: impl FnMut(&[u8], &[u8])) {
        self.0.iter().for_each(|(key, value)| see(key, value));
    }

    fn scan(&self, from: &[u8], count: usize, mut see: impl FnMut(&[u8], &[u8])) {
        let first = self.0.partition_point(|(own, _)| &own[..] < from);
        self.0[first..].iter().take(count).for_each(|(key, value)| see(key, value));
    }
}

fn main() -> ExitCode {
    let array = Structure::new("array", "a sorted array of pairs")
        .numbers::<Array<u64, u64>>()
        .strings::<Array<Vec<u8>, Vec<u8>>>();
    forrest_kvbench::main([array])
}
