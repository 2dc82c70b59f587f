//! A store for tests: an ordered map in memory, honest or wrong in one way.

use super::store::{Answer, Reader, Settings, Store, Way};
use crate::job::Durability;
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

pub(super) const HONEST: u8 = 0;
pub(super) const LOSES: u8 = 1;
pub(super) const STALE: u8 = 2;
pub(super) const SEEKS_TOO_FAR: u8 = 3;
pub(super) const FINDS_WHAT_IS_NOT_THERE: u8 = 4;
pub(super) const SCANS_FROM_ELSEWHERE: u8 = 5;
pub(super) const MIXES_MANY_UP: u8 = 6;

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

/// The map, and what it does before each get.
pub(super) struct Map<const HOW: u8> {
    pairs: RwLock<Pairs>,
    before_get: Box<dyn Fn() + Send + Sync>,
}

impl<const HOW: u8> Map<HOW> {
    pub(super) fn new(before_get: impl Fn() + Send + Sync + 'static) -> Self {
        Map { pairs: RwLock::default(), before_get: Box::new(before_get) }
    }

    fn pairs(&self) -> RwLockReadGuard<'_, Pairs> {
        self.pairs.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<const HOW: u8> Store for Map<HOW> {
    const OFFERS: &'static [Durability] = &[Durability::Memory];
    type Reader<'s> = &'s Self;

    fn open(_: &Settings<'_>) -> Answer<Self> {
        Ok(Map::new(|| ()))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Answer<()> {
        let mut pairs = self.pairs.write().unwrap_or_else(PoisonError::into_inner);
        if !(HOW == LOSES && pairs.len() == 500 || HOW == STALE && pairs.contains_key(key)) {
            pairs.insert(key.to_vec(), value.to_vec());
        }
        Ok(())
    }

    fn put_batch<'p>(&self, mut pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>) -> Answer<()> {
        pairs.try_for_each(|(key, value)| self.put(key, value))
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Answer<()> {
        self.put(key, value)
    }

    fn reader(&self) -> Answer<&Self> {
        Ok(self)
    }

    fn scan_all(&self, way: Way, mut see: impl FnMut(&[u8], &[u8])) -> Answer<()> {
        match way {
            Way::Forward => self.pairs().iter().for_each(|(key, value)| see(key, value)),
            Way::Backward => self.pairs().iter().rev().for_each(|(key, value)| see(key, value)),
        }
        Ok(())
    }

    fn compact(&mut self) -> Answer<bool> {
        Ok(false)
    }
}

impl<const HOW: u8> Reader for &Map<HOW> {
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Answer<bool> {
        (self.before_get)();
        Ok(self.pairs().get(key).map(|value| see(value)).is_some() || HOW == FINDS_WHAT_IS_NOT_THERE)
    }

    fn many(&mut self, keys: &[impl AsRef<[u8]>], mut see: impl FnMut(&[u8])) -> Answer<()> {
        let mut keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        keys.rotate_left(usize::from(HOW == MIXES_MANY_UP));
        keys.iter().try_for_each(|key| self.get(key, &mut see).map(drop))
    }

    fn seek(&mut self, key: &[u8], see: impl FnOnce(&[u8], &[u8])) -> Answer<()> {
        if let Some((key, value)) = self.pairs().range(key.to_vec()..).nth(usize::from(HOW == SEEKS_TOO_FAR))
        {
            see(key, value);
        }
        Ok(())
    }

    fn scan(&mut self, key: &[u8], pairs: usize, mut see: impl FnMut(&[u8], &[u8])) -> Answer<()> {
        let skipped = usize::from(HOW == SCANS_FROM_ELSEWHERE);
        let pairs_there = self.pairs();
        let range = pairs_there.range(key.to_vec()..).skip(skipped).take(pairs);
        range.for_each(|(key, value)| see(key, value));
        Ok(())
    }
}
