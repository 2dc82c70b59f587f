//! A file that comes to be all at once: it is written beside its place under a temporary name, and takes its
//! own name when it is complete. Whatever breaks off before leaves nothing, and what had the name stays.
//!
//! Nothing is synced: a data set can be made again.

use crate::errors::told;
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// Bytes handed over at once.
const BUFFER_BYTES: usize = 256 << 10;

/// A file being written.
pub(crate) struct Output {
    path: PathBuf,
    temporary: TempPath,
    file: BufWriter<File>,
    at: u64,
}

impl Output {
    /// Begins a file. Fails if its name belongs to something other than a regular file.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let create = || {
            if std::fs::metadata(path).is_ok_and(|of| !of.is_file()) {
                let what = "is there already and is no regular file";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
            let within = path.parent().filter(|within| !within.as_os_str().is_empty());
            let within = within.unwrap_or(Path::new("."));
            // As any new file: what the user's mask leaves of it.
            let permissions = Permissions::from_mode(0o666);
            tempfile::Builder::new().prefix(".kvbench-").permissions(permissions).tempfile_in(within)
        };
        let (file, temporary) = create().map_err(|error| told(path.display(), &error))?.into_parts();
        Ok(Output {
            path: path.to_owned(),
            temporary,
            file: BufWriter::with_capacity(BUFFER_BYTES, file),
            at: 0,
        })
    }

    /// The name that it will have.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes written.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Writes what could not be known before over what the file begins with, and gives the file its name.
    pub(crate) fn finish(mut self, beginning: &[u8]) -> io::Result<()> {
        let mut complete = || {
            self.file.flush()?;
            let file = self.file.get_mut();
            file.seek(SeekFrom::Start(0))?;
            file.write_all(beginning)
        };
        complete().map_err(|error| told(self.path.display(), &error))?;
        self.temporary.persist(&self.path).map_err(|error| told(self.path.display(), &error.error))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes).map_err(|error| told(self.path.display(), &error))?;
        self.at += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| told(self.path.display(), &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_when_it_is_complete_and_not_before() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        let files = || std::fs::read_dir(directory.path()).unwrap().count();
        std::fs::write(&path, "old").unwrap();
        let mut output = Output::create(&path).unwrap();
        output.write_all(b"..., world").unwrap();
        drop(output);
        assert_eq!((std::fs::read(&path).unwrap(), files()), (b"old".to_vec(), 1));
        let mut output = Output::create(&path).unwrap();
        output.write_all(b"..., world").unwrap();
        assert_eq!(output.at(), 10);
        output.finish(b"new").unwrap();
        assert_eq!((std::fs::read(&path).unwrap(), files()), (b"new, world".to_vec(), 1));
        assert!(Output::create(Path::new("/dev/null")).is_err() && Output::create(directory.path()).is_err());
        assert!(Output::create(Path::new("/nowhere/x")).err().unwrap().to_string().starts_with("/nowhere/x"));
    }
}
