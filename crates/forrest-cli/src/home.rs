//! [`Home`]: which store a command works on, and whether it may make it.
//!
//! Only commands that write create a store on disk, and the shell, which says so. A read of a store that does not exist
//! is an error, so that a mistyped path does not create an empty store. A directory that holds something else is an
//! error too.

use crate::args::StoreOptions;
use crate::failure::Failure;
use forrest::{Builder, Db, Durability, EncryptionKey};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The environment variable that names the store without `--db`.
const URL: &str = "FORREST_URL";
/// The default store.
pub(crate) const MEMORY: &str = "memory:";
/// Start of the URL of a store in the kernel.
pub(crate) const KERNEL: &str = "llds:";
/// The file in the directory of a store to which its process writes its figures, by the convention of this command.
pub(crate) const METRICS_FILE: &str = "metrics.prom";
/// Sets an option of a store.
type Setter = fn(Builder, usize) -> Builder;

/// Sizes of a store that is to have many tables soon.
const SMALL_MEMTABLE_BYTES: usize = 1 << 20;
const SMALL_TABLE_BYTES: u64 = 4 << 20;
/// Fewest digits of the number in the name of a store's file.
const DIGITS_MIN: usize = 8;

/// A store that can be opened, and opened again.
pub(crate) struct Home {
    pub(crate) url: String,
    /// Make it if it is not there.
    makes: bool,
    pub(crate) builder: Builder,
    /// The directory of its log, if that has one of its own.
    log_directory: Option<PathBuf>,
    /// The key, if it is encrypted.
    pub(crate) key: Option<EncryptionKey>,
    /// Whether the store is only read, whatever others do with it meanwhile.
    reads: Reads,
    /// Nobody has named it.
    is_unnamed: bool,
    /// Its directory goes with it.
    temporary: Option<TempDir>,
}

/// Whether a store is only read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// It may be changed.
    No,
    /// Only if another process has it open.
    IfBusy,
    /// Always.
    Always,
}

impl Home {
    /// The store at a URL.
    pub(crate) fn at(url: impl Into<String>, makes: bool) -> Self {
        Home {
            url: url.into(),
            makes,
            builder: Db::builder(),
            log_directory: None,
            key: None,
            reads: Reads::No,
            is_unnamed: false,
            temporary: None,
        }
    }

    /// The store that `--db` names, or else the environment, or else one in memory.
    pub(crate) fn named(db: Option<&str>, makes: bool) -> Result<Self, Failure> {
        match (db, std::env::var_os(URL)) {
            (Some(db), _) => Ok(Home::at(db, makes)),
            (None, None) => Ok(Home { is_unnamed: true, ..Home::at(MEMORY, makes) }),
            (None, Some(url)) => match url.into_string() {
                Ok(url) => Ok(Home::at(url, makes)),
                Err(_) => Err(Failure::usage(format!("{URL} is not UTF-8"))),
            },
        }
    }

    /// A store on disk that is removed when this is dropped.
    pub(crate) fn temporary() -> Result<Self, Failure> {
        let cannot = |e| Failure::io("cannot make a temporary directory", e);
        let directory = tempfile::Builder::new().prefix("forrest-").tempdir().map_err(cannot)?;
        let Some(url) = directory.path().to_str().map(str::to_owned) else {
            return Err(Failure::usage("the path of temporary directories is not UTF-8; set TMPDIR"));
        };
        Ok(Home { temporary: Some(directory), ..Home::at(url, true) })
    }

    /// The same store with small memtables and tables, so that it writes and merges tables all the time.
    pub(crate) fn small(mut self) -> Self {
        self.builder = self.builder.memtable_bytes(SMALL_MEMTABLE_BYTES).table_bytes(SMALL_TABLE_BYTES);
        self
    }

    /// The same store with these options.
    pub(crate) fn with_options(mut self, options: &StoreOptions) -> Self {
        let mut builder = self.builder;
        let sizes: [(Option<usize>, Setter); 9] = [
            (options.memory_bytes, Builder::memory_bytes),
            (options.cache_bytes, Builder::cache_bytes),
            (options.memtable_bytes, Builder::memtable_bytes),
            (options.table_bytes, |builder, bytes| builder.table_bytes(bytes as u64)),
            (options.large_values, Builder::large_values),
            (options.workers, Builder::workers),
            (options.open_files, Builder::open_files),
            (options.capacity_bytes, Builder::capacity_bytes),
            (options.background_bytes_per_second, |builder, rate| {
                builder.background_bytes_per_second(rate as u64)
            }),
        ];
        for (value, set) in sizes {
            if let Some(value) = value {
                builder = set(builder, value);
            }
        }
        if let Some(tags) = options.tags {
            builder = builder.tags(tags);
        }
        if let Some(compression) = options.compression {
            builder = builder.compression(compression);
        }
        if let Some(history) = options.history {
            builder = builder.history(history);
        }
        if let Some(path) = &options.metrics_file {
            builder = builder.metrics_file(path);
        }
        if let Some(latencies) = options.latencies {
            builder = builder.latencies(latencies);
        }
        if !options.worker_cpus.is_empty() {
            builder = builder.worker_cpus(&options.worker_cpus);
        }
        if let Some(pages) = options.pages {
            builder = builder.pages(pages);
        }
        if let Some(numa) = options.numa {
            builder = builder.numa(numa);
        }
        self.builder = builder;
        self
    }

    /// The same store with its log in this directory.
    pub(crate) fn with_log(mut self, directory: Option<&Path>) -> Result<Self, Failure> {
        if let Some(directory) = directory {
            if self.directory().is_none() {
                return Err(Failure::usage("--log-directory is for commands on a store on disk"));
            }
            self.builder = self.builder.log_directory(directory);
            self.log_directory = Some(directory.to_owned());
        }
        Ok(self)
    }

    /// The same store with the key in this file. `is_for_others` says that the command reads other directories with it.
    pub(crate) fn with_key(mut self, file: Option<&Path>, is_for_others: bool) -> Result<Self, Failure> {
        if let Some(file) = file {
            if self.directory().is_none() && !is_for_others {
                return Err(Failure::usage("--key-file is for commands on a store on disk"));
            }
            let key = EncryptionKey::from_file(file).map_err(Failure::Store)?;
            if self.directory().is_some() {
                self.builder = self.builder.encryption_key(key.clone());
            }
            self.key = Some(key);
        }
        Ok(self)
    }

    /// The same store, each change of which survives power loss if `syncs`, and if it is on disk.
    pub(crate) fn durable(mut self, syncs: bool) -> Self {
        if syncs && self.directory().is_some() {
            self.builder = self.builder.durability(Durability::Sync);
        }
        self
    }

    /// The same store, whose changes are made durable later by the command itself.
    pub(crate) fn deferring(mut self) -> Self {
        self.builder = self.builder.durability(Durability::Memory);
        self
    }

    /// The same store, whose batches may have this number of operations.
    pub(crate) fn with_batches_of(mut self, ops: usize) -> Self {
        self.builder = self.builder.batch_ops_max(ops);
        self
    }

    /// The same store, only to be read: always, or if another process has it open and the command changes nothing.
    pub(crate) fn reading(mut self, always: bool, changes_nothing: bool) -> Self {
        self.reads = match (always, changes_nothing) {
            (true, _) => Reads::Always,
            (false, true) => Reads::IfBusy,
            (false, false) => Reads::No,
        };
        self
    }

    /// True if the store is removed when this is dropped.
    pub(crate) fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }

    /// True if neither the arguments nor the environment name a store, so that it is one in memory.
    pub(crate) fn is_unnamed(&self) -> bool {
        self.is_unnamed
    }

    /// True if only an existing store is opened. Then no keyspace must be created in it either.
    pub(crate) fn only_exists(&self) -> bool {
        !self.makes || self.reads == Reads::Always
    }

    /// True if the store would be made on disk: there is none.
    pub(crate) fn is_missing(&self) -> bool {
        !self.only_exists()
            && self.directory().is_some_and(|path| check(path, true).is_ok() && check(path, false).is_err())
    }

    /// The directory, if the store is on disk.
    pub(crate) fn directory(&self) -> Option<&Path> {
        forrest::directory(&self.url)
    }

    /// Opens the store. True if it is read only because another process has it open.
    pub(crate) fn open(&self) -> Result<(Db, bool), Failure> {
        let opened = if self.reads == Reads::Always { self.open_read_only() } else { self.open_to_change() };
        let is_disk = self.directory().is_some();
        match opened {
            Err(Failure::Opening(_, error) | Failure::Store(error))
                if is_disk && self.reads == Reads::IfBusy && error.kind() == forrest::ErrorKind::Busy =>
            {
                Ok((self.open_read_only()?, true))
            }
            opened => Ok((opened?, false)),
        }
    }

    fn open_read_only(&self) -> Result<Db, Failure> {
        if let Some(path) = self.directory() {
            check(path, false)?;
        }
        self.builder.open_read_only(&self.url).map_err(|e| self.failed(e))
    }

    fn open_to_change(&self) -> Result<Db, Failure> {
        let mut builder = self.builder.clone();
        if let Some(path) = self.directory() {
            check(path, self.makes)?;
            builder = builder.create(self.makes);
        } else if self.url.starts_with(KERNEL) {
            builder = builder.create(self.makes);
        }
        builder.open(&self.url).map_err(|e| self.failed(e))
    }

    /// An error of the whole store, which says which one if there may be several.
    pub(crate) fn failed(&self, error: forrest::Error) -> Failure {
        match self.directory() {
            Some(path) if !error.to_string().contains(&self.url) => Failure::Opening(path.to_owned(), error),
            _ => Failure::Store(error),
        }
    }

    /// Bytes and number of the files of the store, if it is on disk.
    pub(crate) fn files(&self) -> Result<Option<(u64, u64)>, Failure> {
        let Some(path) = self.directory() else { return Ok(None) };
        let cannot = |e| Failure::io(format!("cannot look at {}", path.display()), e);
        let (mut bytes, mut count) = (0, 0);
        let mut entries = Vec::new();
        for directory in [Some(path), self.log_directory.as_deref()].into_iter().flatten() {
            entries.extend(fs::read_dir(directory).map_err(cannot)?);
        }
        for entry in entries {
            let entry = entry.map_err(cannot)?;
            if !is_of_a_store(&entry.file_name().to_string_lossy()) {
                continue;
            }
            match entry.metadata() {
                Ok(metadata) => {
                    bytes += metadata.len();
                    count += 1;
                }
                // The store has removed it meanwhile, as it may.
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(cannot(e)),
            }
        }
        Ok(Some((bytes, count)))
    }
}

/// Fails unless there is a store, or one may be made.
fn check(path: &Path, makes: bool) -> Result<(), Failure> {
    let shown = path.display();
    let no_store = || Failure::Home(format!("there is no store at {shown}"));
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound && makes => return has_parent(path),
        Err(e) if e.kind() == ErrorKind::NotFound => return Err(no_store()),
        Err(e) if e.kind() == ErrorKind::NotADirectory => {
            return Err(Failure::Home(format!("{shown} is no directory, and a store on disk is one")));
        }
        Err(e) => return Err(Failure::io(format!("cannot open the store {shown}"), e)),
    };
    let mut foreign = None;
    for entry in entries {
        let name = entry.map_err(|e| Failure::io(format!("cannot open the store {shown}"), e))?.file_name();
        let name = name.to_string_lossy();
        if is_of_a_store(&name) {
            return Ok(());
        }
        // If a process dies while it creates a store, only these exist. File systems may begin with `lost+found`.
        if !["LOCK", "LOG-DIRECTORY", "LOG-DIRECTORY.new", "lost+found"].contains(&&*name) {
            foreign = Some(name.into_owned());
        }
    }
    match foreign {
        Some(name) => Err(Failure::Home(format!(
            "{shown} is not a store: it holds other things, like {}",
            name.escape_debug()
        ))),
        None if makes => Ok(()),
        None => Err(no_store()),
    }
}

/// Fails if the directory is not there in which a store would be made; names the first that is missing.
fn has_parent(path: &Path) -> Result<(), Failure> {
    let above = path.ancestors().skip(1).take_while(|above| !above.as_os_str().is_empty());
    match above.take_while(|above| matches!(above.try_exists(), Ok(false))).last() {
        None => Ok(()),
        Some(missing) => Err(Failure::Home(format!(
            "there is no directory {}, so no store can be made at {}; mkdir -p makes it",
            missing.display(),
            path.display()
        ))),
    }
}

/// True if a file of a store may have this name: a number and a kind.
fn is_of_a_store(name: &str) -> bool {
    name.split_once('.').is_some_and(|(digits, kind)| {
        digits.len() >= DIGITS_MIN
            && digits.bytes().all(|b| b.is_ascii_digit())
            && ["log", "manifest", "remix", "table", "key"].contains(&kind)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_known_by_its_files() {
        assert!(is_of_a_store("00000001.log") && is_of_a_store("123456789.table"));
        for other in ["LOCK", "000003.log", "00000001.sst", "00000001", "0000000a.log", "00000001.log.gz"] {
            assert!(!is_of_a_store(other), "{other}");
        }
    }

    #[test]
    fn only_stores_and_empty_places_are_opened() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let says = |path: &Path, makes| check(path, makes).err().map_or(String::new(), |e| e.to_string());
        assert!(says(&at("none"), false).contains("no store"));
        assert_eq!(says(&at("none"), true), "");
        assert!(says(&at("no/such/place"), true).contains(&format!("no directory {},", at("no").display())));
        fs::create_dir(at("dir")).unwrap();
        fs::write(at("dir/LOCK"), "").unwrap();
        assert!(says(&at("dir"), false).contains("no store"));
        assert_eq!(says(&at("dir"), true), "");
        fs::write(at("dir/letter"), "").unwrap();
        for makes in [false, true] {
            assert!(says(&at("dir"), makes).contains("like letter"));
            assert!(says(&at("dir/letter"), makes).contains("no directory"));
        }
        fs::write(at("dir/00000001.log"), "").unwrap();
        assert_eq!(says(&at("dir"), false), "");
    }
}
