//! Verification: every stored byte is read and checked.

use crate::core::Core;
use crate::disk::{self, Kind};
use crate::manifest::{self, Manifest};
use crate::wal;
use forrest_base::lock;
use forrest_engine::{Job, Result};

impl Core {
    /// Reads every byte of every file that belongs to the store, from the disk and not from the cache, and
    /// checks it.
    ///
    /// # Errors
    /// `Corrupt` with file and offset of the first damage; `Io`.
    pub(crate) fn verify(&self) -> Result<()> {
        self.check_here()?;
        // Keeps files from being removed meanwhile.
        let manifest = lock(&self.manifest);
        let task = self.tasks.begin(Job::Verification);
        task.ends(self.read_all(&manifest))
    }

    fn read_all(&self, manifest: &Manifest) -> Result<()> {
        let (disk, logs) = (self.disk(), &manifest.state().logs);
        for log in self.version().logs.values() {
            log.verify(disk)?;
        }
        // Those that an ingest writes are not the store's yet.
        let ingested = lock(&self.ingested).clone();
        for name in disk::list(disk)?.into_iter().filter(|name| !ingested.contains(&name.number)) {
            match name.kind {
                Kind::Manifest => drop(manifest::read(disk, name)?),
                Kind::Log if name.number >= manifest.state().floor && !logs.contains_key(&name.number) => {
                    // While the manifest is locked, no log that counts goes. One that was prepared may.
                    let Some(file) = disk::open_if_there(disk, name)? else { continue };
                    if wal::head(disk, &file, name.number)?.is_some() {
                        wal::replay(disk, &file, name.number, None, |_, _| Ok(()))?;
                    }
                }
                _ => {}
            }
        }
        let version = self.version();
        for partition in version.partitions.values().flatten() {
            partition.tables().iter().try_for_each(|table| table.verify())?;
            partition.verify_remix(disk)?;
            partition.verify_values()?;
        }
        Ok(())
    }
}
