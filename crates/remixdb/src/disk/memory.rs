//! [`Memory`]: files in memory for tests of what reads and writes one file. Reads and writes are short now and then.

use super::{Disk, Kind, Name, Write};
use crate::page;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

/// See the head of the file.
#[derive(Default, Debug)]
pub struct Memory {
    files: Mutex<BTreeMap<Name, File>>,
    /// Offsets of pages that were announced for reading.
    pub(crate) announced: Mutex<Vec<u64>>,
    /// Offsets that were read.
    pub(crate) read: Mutex<Vec<u64>>,
}

/// The bytes of a file.
pub(crate) type File = Arc<Mutex<Vec<u8>>>;

impl Memory {
    /// A directory that has one file.
    pub(super) fn of(name: Name, bytes: Vec<u8>) -> Memory {
        let files = BTreeMap::from([(name, File::new(Mutex::new(bytes)))]);
        Memory { files: Mutex::new(files), ..Memory::default() }
    }

    /// The bytes of a file, which must be there.
    pub(crate) fn bytes(&self, name: Name) -> File {
        self.files.lock().unwrap()[&name].clone()
    }
}

impl Disk for Memory {
    type File = File;

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.files.lock().unwrap().keys().map(Name::to_string).collect())
    }

    fn create(&self, name: Name) -> io::Result<File> {
        let mut files = self.files.lock().unwrap();
        if files.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        Ok(files.entry(name).or_default().clone())
    }

    fn open(&self, name: Name) -> io::Result<File> {
        self.files.lock().unwrap().get(&name).cloned().ok_or(io::ErrorKind::NotFound.into())
    }

    fn unlink(&self, name: Name) -> io::Result<()> {
        self.files.lock().unwrap().remove(&name).map(drop).ok_or(io::ErrorKind::NotFound.into())
    }

    fn sync_directory(&self, _: Kind) -> io::Result<()> {
        Ok(())
    }

    fn len(&self, file: &File) -> io::Result<u64> {
        Ok(file.lock().unwrap().len() as u64)
    }

    fn read_at(&self, file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.read.lock().unwrap().push(offset);
        let file = file.lock().unwrap();
        let from = file.get(offset as usize..).unwrap_or_default();
        let count = from.len().min(buffer.len()).min(100_000);
        buffer[..count].copy_from_slice(&from[..count]);
        Ok(count)
    }

    fn will_read(&self, _: &File, offset: u64, bytes: u64) {
        let each = page::BYTES as u64;
        assert!(offset.is_multiple_of(each) && bytes.is_multiple_of(each) && bytes > 0);
        let mut announced = self.announced.lock().unwrap();
        (offset..offset + bytes).step_by(each as usize).for_each(|offset| {
            if !announced.contains(&offset) {
                announced.push(offset);
            }
        });
    }

    fn submit(&self, file: &File, write: &mut Write) -> io::Result<usize> {
        let mut file = file.lock().unwrap();
        let count = (write.bytes.len() - write.done).min(150_000);
        assert_eq!(file.len() as u64, write.offset + write.done as u64, "a file grows at its end");
        file.extend_from_slice(&write.bytes[write.done..write.done + count]);
        Ok(count)
    }
}
