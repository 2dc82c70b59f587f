//! The arguments of the command line and of the shell, with their help.
//!
//! The subcommands on a store are one type, [`StoreCommand`]. The command line, the part of `load` after `--`, and
//! the shell share it, so a command works in all three.

use crate::codec::Format;
use crate::help;
use clap::{Args, Parser, Subcommand, ValueEnum};
use forrest::{Compression, Numa, Pages};
use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "forrest",
    version,
    about = "An ordered key-value store at the shell",
    after_help = help::TOP,
    max_term_width = 80,
    disable_help_subcommand = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The store, and the files to load before the command and to dump after it.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Store")]
pub(crate) struct StoreArgs {
    /// Path, llds:NAME, memory: (default; env FORREST_URL)
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) db: Option<String>,
    /// Keyspace, a separate ordered map [default: default]
    #[arg(long, short = 'k', global = true, value_name = "NAME")]
    pub(crate) keyspace: Option<String>,
    /// text (default), tsv, csv, hex, jsonl, ops, ldb, mdb
    #[arg(
        long,
        short = 'f',
        global = true,
        value_name = "FORMAT",
        value_enum,
        default_value = "text",
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub(crate) format: Format,
    /// Load FILE first ("-": standard input; repeatable)
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) load: Vec<PathBuf>,
    /// Dump to FILE at the end ("-": standard output)
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) dump: Option<PathBuf>,
    /// End only when the changes survive power loss
    #[arg(long, global = true)]
    pub(crate) sync: bool,
    /// Only read, also while another process writes
    #[arg(long, global = true)]
    pub(crate) read_only: bool,
    /// Directory of its own for the log, on another device
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) log_directory: Option<PathBuf>,
    /// Key of an encrypted store: 32 bytes, or hex digits
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// No notes and no progress bars; errors stay
    #[arg(long, short = 'q', global = true)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) options: StoreOptions,
}

/// Everything that `forrest` does.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(flatten)]
    Store(StoreCommand),
    /// Run commands on one store, from a prompt, a file or a pipe
    #[command(after_help = help::SHELL)]
    Shell(ShellArgs),
    /// Store a directory tree, run ordered queries, time them
    #[command(after_help = help::DEMO)]
    Demo(DemoArgs),
    /// Time the store as db_bench does
    #[command(after_help = help::BENCH)]
    Bench(BenchArgs),
    /// Read while others write, and look for stale reads
    #[command(after_help = help::STRESS)]
    Stress(StressArgs),
    /// Verify the last runs, write, and end without closing
    #[command(after_help = help::CRASH)]
    Crash(CrashArgs),
    /// Copy what is intact of a damaged store to a new one
    #[command(after_help = help::SALVAGE)]
    Salvage(SalvageArgs),
    /// Show live what a store does that another process has open
    #[command(after_help = help::LIVE)]
    Top(TopArgs),
    /// Serve a page in the browser to look at a store
    #[command(after_help = help::WEB)]
    Web(WebArgs),
    /// Serve the store to programs that speak Redis's protocol
    #[command(after_help = help::SERVE)]
    Serve(ServeArgs),
    /// Back up a store, list, verify, restore and prune backups
    #[command(subcommand, after_help = help::BACKUP)]
    Backup(BackupCommand),
    /// Replace the key of an encrypted store
    #[command(subcommand, after_help = help::KEY)]
    Key(KeyCommand),
    /// Give the log of a store a directory of its own
    #[command(after_help = help::MOVE_LOG)]
    MoveLog(MoveLogArgs),
    /// List the stores in the kernel, or destroy one
    #[command(subcommand, after_help = help::LLDS)]
    Llds(LldsCommand),
    /// Report what this machine offers, with advice
    #[command(after_help = help::DOCTOR)]
    Doctor,
    /// Write manual pages and completions of shells, to be installed
    #[command(hide = true)]
    Pages(PagesArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SalvageArgs {
    /// The directory of the damaged store; nothing in it is changed
    #[arg(value_name = "SRC")]
    pub(crate) from: PathBuf,
    /// The directory of the new store, which must not exist
    #[arg(value_name = "DST")]
    pub(crate) to: PathBuf,
}

/// Everything about directories of backups.
#[derive(Debug, Subcommand)]
pub(crate) enum BackupCommand {
    /// Add a backup of a store; only new tables are copied
    #[command(after_help = help::BACKUP_CREATE)]
    Create(BackupCreateArgs),
    /// List the backups of a directory, from the oldest on
    #[command(after_help = help::BACKUP_LIST)]
    List(BackupListArgs),
    /// Read every byte of a backup and check it
    #[command(after_help = help::BACKUP_VERIFY)]
    Verify(BackupVerifyArgs),
    /// Make a new store of a backup
    #[command(after_help = help::BACKUP_RESTORE)]
    Restore(BackupRestoreArgs),
    /// Remove old backups, and the files that only they need
    #[command(after_help = help::BACKUP_PRUNE)]
    Prune(BackupPruneArgs),
    /// Replace the key of an encrypted directory of backups
    #[command(after_help = help::BACKUP_ROTATE_KEY)]
    RotateKey(BackupRotateKeyArgs),
}

#[derive(Debug, Args)]
pub(crate) struct WebArgs {
    /// The store; the same as --db URL
    #[arg(value_name = "STORE")]
    pub(crate) store: Option<String>,
    /// Port on 127.0.0.1 [default: one that is free]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
}

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// The store, or the file that its process writes
    #[arg(value_name = "STORE")]
    pub(crate) store: PathBuf,
    /// Seconds between two looks
    #[arg(long, short = 'i', value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    pub(crate) interval: f64,
    /// Number of looks [default: until Ctrl-C]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Address; repeatable [default: 127.0.0.1:6379]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Vec<SocketAddr>,
    /// Path of a Unix socket to listen at
    #[arg(long, value_name = "PATH")]
    pub(crate) unix: Option<PathBuf>,
    /// File whose first line is the password for AUTH
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// File with the certificate for TLS
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// File with its private key
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Let other machines connect without TLS
    #[arg(long)]
    pub(crate) plain: bool,
    /// Syncs: always, everysec, no
    #[arg(long, value_name = "WHEN", default_value = "everysec", value_parser = fsync)]
    pub(crate) fsync: forrest_redis::Sync,
    /// Connections at a time [default: 10000]
    #[arg(long, value_name = "N", value_parser = size)]
    pub(crate) connections: Option<usize>,
    /// Bytes of a request or string [default: 64M]
    #[arg(long, value_name = "BYTES", value_parser = size)]
    pub(crate) request_bytes: Option<usize>,
    /// Bytes of a reply [default: 256M]
    #[arg(long, value_name = "BYTES", value_parser = size)]
    pub(crate) reply_bytes: Option<usize>,
    /// Bytes of all their buffers [default: 512M]
    #[arg(long, value_name = "BYTES", value_parser = size)]
    pub(crate) buffers_bytes: Option<usize>,
    /// Seconds to send a request in [default: 30]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) half_request: Option<u64>,
    /// Seconds without a read of replies [default: 60]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) slow_reader: Option<u64>,
    /// Seconds between requests [default: for ever]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) idle: Option<u64>,
    /// Allow DEBUG and CONFIG SET requirepass
    #[arg(long, hide = true)]
    pub(crate) debug_commands: bool,
}

/// Reads when changes are synced.
fn fsync(text: &str) -> Result<forrest_redis::Sync, String> {
    forrest_redis::Sync::of_name(text).ok_or_else(|| "it is always, everysec or no".to_owned())
}

/// Reads a time between two looks.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("it is a number of seconds from 0.1 to 3600".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct BackupCreateArgs {
    /// The store
    #[arg(value_name = "STORE")]
    pub(crate) store: String,
    /// The directory of backups, which is made if it is missing
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Even if the newest backup there is of another store
    #[arg(long)]
    pub(crate) other_store: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BackupListArgs {
    /// The directory of backups
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct BackupVerifyArgs {
    /// The directory of backups
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// The backup [default: each of them]
    #[arg(long, value_name = "N")]
    pub(crate) id: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct BackupRestoreArgs {
    /// The directory of backups
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// The directory of the new store, which must not exist
    #[arg(value_name = "DST")]
    pub(crate) to: PathBuf,
    /// The backup [default: the newest]
    #[arg(long, value_name = "N")]
    pub(crate) id: Option<u64>,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["keep", "days"]))]
pub(crate) struct BackupPruneArgs {
    /// The directory of backups
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Keep the newest N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) keep: Option<u64>,
    /// Keep those of the last N days, and the newest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub(crate) days: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct BackupRotateKeyArgs {
    /// The directory of backups, which --key-file opens
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// The file with the new key
    #[arg(value_name = "NEW")]
    pub(crate) new: PathBuf,
}

/// Everything about the keys of encrypted stores.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Replace the key that opens a store
    #[command(after_help = help::KEY_ROTATE)]
    Rotate(KeyRotateArgs),
    /// Encrypt new files of a store with a new data key
    #[command(after_help = help::KEY_ROTATE_DATA)]
    RotateData(KeyRotateDataArgs),
}

impl KeyCommand {
    /// The store.
    pub(crate) fn store(&self) -> &str {
        match self {
            KeyCommand::Rotate(args) => &args.store,
            KeyCommand::RotateData(args) => &args.store,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct KeyRotateArgs {
    /// The store, which --key-file opens
    #[arg(value_name = "STORE")]
    pub(crate) store: String,
    /// The file with the new key
    #[arg(value_name = "NEW")]
    pub(crate) new: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct KeyRotateDataArgs {
    /// The store, which --key-file opens
    #[arg(value_name = "STORE")]
    pub(crate) store: String,
}

#[derive(Debug, Args)]
pub(crate) struct MoveLogArgs {
    /// The directory of the store, which must be closed
    #[arg(value_name = "STORE")]
    pub(crate) store: PathBuf,
    /// The new directory of the log; without it, that of the store
    #[arg(value_name = "DIR")]
    pub(crate) to: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PagesArgs {
    /// The directory to write to; it is created
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

/// Commands on the stores in the kernel.
#[derive(Debug, Subcommand)]
pub(crate) enum LldsCommand {
    /// List the stores that you may use: keys, memory, owner, mode
    #[command(after_help = help::LLDS_LIST)]
    List,
    /// Destroy stores by their names
    #[command(after_help = help::LLDS_DESTROY)]
    Destroy(DestroyArgs),
    /// Save a store in a file
    #[command(after_help = help::LLDS_SAVE)]
    Save(SaveArgs),
    /// Create a store again from such a file
    #[command(after_help = help::LLDS_RESTORE)]
    Restore(RestoreArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SaveArgs {
    /// The store, with or without "llds:" before it
    #[arg(value_name = "NAME")]
    pub(crate) name: OsString,
    /// The file, which is replaced if it exists
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The file that "llds save" wrote
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The name of a copy of your own; without it, the store as it was
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct DestroyArgs {
    /// The names, with or without "llds:" before them
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<OsString>,
}

/// Commands on a store.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Print the values of keys
    #[command(after_help = help::GET)]
    Get(GetArgs),
    /// Set the value of a key
    #[command(after_help = help::SET)]
    Set(SetArgs),
    /// Add to a counter and print its new value
    #[command(after_help = help::ADD)]
    Add(AddArgs),
    /// Change a key only if it has the value expected
    #[command(after_help = help::CAS)]
    Cas(CasArgs),
    /// Remove keys
    #[command(after_help = help::DELETE)]
    Delete(DeleteArgs),
    /// Remove all keys of a range
    #[command(after_help = help::DELETE_RANGE)]
    DeleteRange(DeleteRangeArgs),
    /// Print the pairs of a range in the order of their keys
    #[command(after_help = help::SCAN)]
    Scan(ScanArgs),
    /// Print how many keys a range holds
    #[command(after_help = help::COUNT)]
    Count(CountArgs),
    /// Print when the values of keys expire
    #[command(after_help = help::EXPIRES)]
    Expires(ExpiresArgs),
    /// Print or set the options of a keyspace
    #[command(subcommand, after_help = help::KEYSPACE)]
    Keyspace(KeyspaceCommand),
    /// List the keyspaces and how many keys each holds
    #[command(after_help = help::KEYSPACES)]
    Keyspaces,
    /// Load files of pairs, then run the command after "--", if any
    #[command(after_help = help::LOAD)]
    Load(LoadArgs),
    /// Print all pairs so that load can read them
    #[command(after_help = help::DUMP)]
    Dump(DumpArgs),
    /// Print the store's content, memory and capabilities
    #[command(after_help = help::STAT)]
    Stat(StatArgs),
    /// Write, read, list and delete values of any length, as files
    #[command(subcommand, after_help = help::BLOB)]
    Blob(BlobCommand),
    /// Print the changes of a store on disk, in their order
    #[command(after_help = help::TAIL)]
    Tail(TailArgs),
    /// Read everything stored on disk and check it
    #[command(after_help = help::VERIFY)]
    Verify(StorePath),
    /// Copy the store to a new directory, a separate store
    #[command(after_help = help::CHECKPOINT, allow_missing_positional = true)]
    Checkpoint(CheckpointArgs),
    /// Merge all tables, so that they take the least space
    #[command(after_help = help::COMPACT)]
    Compact(StorePath),
}

impl StoreCommand {
    /// The store that the command itself names.
    pub(crate) fn path(&self) -> Option<&str> {
        match self {
            StoreCommand::Verify(args) | StoreCommand::Compact(args) => args.path.as_deref(),
            StoreCommand::Checkpoint(args) => args.store.as_deref(),
            StoreCommand::Tail(args) => args.store.as_deref(),
            _ => None,
        }
    }

    /// True if it changes nothing.
    pub(crate) fn only_reads(&self) -> bool {
        matches!(
            self,
            StoreCommand::Get(_)
                | StoreCommand::Scan(_)
                | StoreCommand::Count(_)
                | StoreCommand::Expires(_)
                | StoreCommand::Keyspaces
                | StoreCommand::Dump(_)
                | StoreCommand::Stat(_)
                | StoreCommand::Tail(_)
                | StoreCommand::Verify(_)
                | StoreCommand::Checkpoint(_)
                | StoreCommand::Blob(BlobCommand::Get(_) | BlobCommand::List(_))
        ) || matches!(self, StoreCommand::Keyspace(command) if !command.chooses())
    }

    /// True if it puts in a single pair.
    pub(crate) fn puts(&self) -> bool {
        matches!(
            self,
            StoreCommand::Set(_)
                | StoreCommand::Add(_)
                | StoreCommand::Cas(_)
                | StoreCommand::Blob(BlobCommand::Put(_))
        )
    }

    /// True if it puts something in, so that it makes the store if there is none.
    pub(crate) fn makes(&self) -> bool {
        self.puts()
            || matches!(self, StoreCommand::Load(_))
            || matches!(self, StoreCommand::Keyspace(command) if command.chooses())
    }
}

/// A store named by its path alone.
#[derive(Debug, Args)]
pub(crate) struct StorePath {
    /// The store; the same as --db PATH
    #[arg(value_name = "PATH")]
    pub(crate) path: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct StatArgs {
    /// Print the text format of Prometheus, for a store on disk
    #[arg(long)]
    pub(crate) prometheus: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TailArgs {
    /// The store; the same as --db URL
    #[arg(value_name = "URL")]
    pub(crate) store: Option<String>,
    /// Only the changes after this sequence number
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) since: u64,
    /// Wait for more changes, until Ctrl-C
    #[arg(long)]
    pub(crate) follow: bool,
    /// Only those that are memory, buffered (default), sync
    #[arg(
        long,
        value_name = "LEVEL",
        value_enum,
        default_value = "buffered",
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub(crate) durability: Level,
}

/// How durable changes are.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Level {
    Memory,
    Buffered,
    Sync,
}

#[derive(Debug, Args)]
pub(crate) struct CheckpointArgs {
    /// The store; the same as --db URL
    #[arg(value_name = "URL")]
    pub(crate) store: Option<String>,
    /// Where to: a directory that is not there yet, or empty
    #[arg(value_name = "PATH", required = true)]
    pub(crate) path: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// The keys; with several, each value is printed with its key
    #[arg(required = true, value_name = "KEY")]
    pub(crate) keys: Vec<OsString>,
    /// Print the value's bytes and nothing else, not even a line feed
    #[arg(long, conflicts_with = "int")]
    pub(crate) raw: bool,
    /// Print 8-byte values as the integers that "add" keeps
    #[arg(long, short = 'i')]
    pub(crate) int: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// The key
    #[arg(value_name = "KEY")]
    pub(crate) key: OsString,
    /// The value
    #[arg(value_name = "VALUE", required_unless_present = "from_file", allow_negative_numbers = true)]
    pub(crate) value: Option<OsString>,
    /// Take the value from FILE ("-": standard input)
    #[arg(long, value_name = "FILE", conflicts_with = "value")]
    pub(crate) from_file: Option<PathBuf>,
    /// Let the value expire after TIME (90s, 5m, 2h, 1d)
    #[arg(long, value_name = "TIME", value_parser = ttl)]
    pub(crate) ttl: Option<Duration>,
}

/// A time to live.
fn ttl(text: &str) -> Result<Duration, String> {
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let ms: Option<u64> = match &text[digits..] {
        "ms" => Some(1),
        "s" => Some(1000),
        "m" => Some(60 * 1000),
        "h" => Some(60 * 60 * 1000),
        "d" => Some(24 * 60 * 60 * 1000),
        _ => None,
    };
    let number: Option<u64> = text[..digits].parse().ok();
    let ms = ms.and_then(|ms| number?.checked_mul(ms));
    ms.map(Duration::from_millis).ok_or_else(|| "a number and one of ms, s, m, h and d, like 90s".to_string())
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// The key
    #[arg(value_name = "KEY")]
    pub(crate) key: OsString,
    /// What to add, which may be negative
    #[arg(value_name = "DELTA", default_value_t = 1, allow_negative_numbers = true)]
    pub(crate) delta: i64,
}

#[derive(Debug, Args)]
pub(crate) struct CasArgs {
    /// The key
    #[arg(value_name = "KEY")]
    pub(crate) key: OsString,
    /// Change only if this is the value
    #[arg(long, value_name = "VALUE", required_unless_present = "absent", allow_hyphen_values = true)]
    pub(crate) expect: Option<OsString>,
    /// Change only if the key is not there
    #[arg(long, conflicts_with = "expect")]
    pub(crate) absent: bool,
    /// The new value
    #[arg(long, value_name = "VALUE", required_unless_present = "delete", allow_hyphen_values = true)]
    pub(crate) set: Option<OsString>,
    /// Remove the key
    #[arg(long, conflicts_with = "set")]
    pub(crate) delete: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// The keys
    #[arg(required = true, value_name = "KEY")]
    pub(crate) keys: Vec<OsString>,
}

/// A range of keys. Without any of these it is all keys.
#[derive(Debug, Args)]
pub(crate) struct Bounds {
    /// Keys that begin with this; in scan repeatable
    #[arg(long, short = 'p', value_name = "KEY", allow_hyphen_values = true)]
    pub(crate) prefix: Vec<OsString>,
    /// Keys from this one on, itself included
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub(crate) from: Option<OsString>,
    /// Keys before this one, itself not included
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub(crate) to: Option<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct CountArgs {
    #[command(flatten)]
    pub(crate) bounds: Bounds,
    /// Print about how many keys and bytes there are, unread
    #[arg(long)]
    pub(crate) approximate: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteRangeArgs {
    #[command(flatten)]
    pub(crate) bounds: Bounds,
    /// All keys of the keyspace
    #[arg(long, conflicts_with_all = ["prefix", "from", "to"])]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    pub(crate) bounds: Bounds,
    /// From large keys to small ones
    #[arg(long, short = 'r')]
    pub(crate) reverse: bool,
    /// Stop after N pairs
    #[arg(long, short = 'n', value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Print keys only
    #[arg(long, conflicts_with = "values")]
    pub(crate) keys: bool,
    /// Print values only
    #[arg(long)]
    pub(crate) values: bool,
    /// Print 8-byte values as the integers that "add" keeps
    #[arg(long, short = 'i')]
    pub(crate) int: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExpiresArgs {
    /// The keys; with several, each time is printed with its key
    #[arg(required = true, value_name = "KEY")]
    pub(crate) keys: Vec<OsString>,
}

/// Commands on the keyspace in use as a whole.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyspaceCommand {
    /// Time to live of values that are set without one
    #[command(after_help = help::KEYSPACE_TTL)]
    Ttl {
        /// The new one (90s, 5m, 2h, 1d), or none
        #[arg(value_name = "TIME", value_parser = keyspace_ttl)]
        ttl: Option<KeyspaceTtl>,
    },
    /// Operator that makes a value of an old one and an operand
    #[command(after_help = help::KEYSPACE_MERGE_OPERATOR)]
    MergeOperator {
        /// The new one; only for an empty keyspace, for good
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// Compression of the tables that it gets from now on
    #[command(after_help = help::KEYSPACE_COMPRESSION)]
    Compression {
        /// The new one: none, lz4, zstd
        #[arg(value_name = "METHOD")]
        method: Option<Compression>,
    },
}

impl KeyspaceCommand {
    /// True if it changes something.
    pub(crate) fn chooses(&self) -> bool {
        match self {
            KeyspaceCommand::Ttl { ttl } => ttl.is_some(),
            KeyspaceCommand::MergeOperator { name } => name.is_some(),
            KeyspaceCommand::Compression { method } => method.is_some(),
        }
    }
}

/// A time to live, or none. The parser of arguments takes an `Option` of an `Option` for something else.
pub(crate) type KeyspaceTtl = Option<Duration>;

fn keyspace_ttl(text: &str) -> Result<KeyspaceTtl, String> {
    if text == "none" { Ok(None) } else { ttl(text).map(Some) }
}

/// Commands on values of any length.
#[derive(Debug, Subcommand)]
pub(crate) enum BlobCommand {
    /// Store a file as the blob of a key
    #[command(after_help = help::BLOB_PUT)]
    Put(BlobPutArgs),
    /// Print a blob, or a part of it, or write it to a file
    #[command(after_help = help::BLOB_GET)]
    Get(BlobGetArgs),
    /// Print the keys of blobs, each with its length in bytes
    #[command(after_help = help::BLOB_LIST)]
    List(Bounds),
    /// Remove blobs
    #[command(after_help = help::BLOB_DELETE)]
    Delete(DeleteArgs),
}

#[derive(Debug, Args)]
pub(crate) struct BlobPutArgs {
    /// The key
    #[arg(value_name = "KEY")]
    pub(crate) key: OsString,
    /// The file ("-", the default, is standard input)
    #[arg(value_name = "FILE", default_value = "-", hide_default_value = true)]
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct BlobGetArgs {
    /// The key
    #[arg(value_name = "KEY")]
    pub(crate) key: OsString,
    /// Where to ("-", the default, is standard output)
    #[arg(value_name = "FILE", default_value = "-", hide_default_value = true)]
    pub(crate) file: PathBuf,
    /// Begin at this byte
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) offset: u64,
    /// Stop after this many bytes
    #[arg(long, value_name = "N")]
    pub(crate) length: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    /// The files ("-" is standard input)
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Write wrong lines to FILE, and go on
    #[arg(long, value_name = "FILE")]
    pub(crate) skip_errors: Option<PathBuf>,
    /// A command to run on what was loaded
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) then: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct DumpArgs {
    /// Where to ("-", the default, is standard output)
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ShellArgs {
    /// A file of commands ("-", the default, is standard input)
    #[arg(value_name = "SCRIPT")]
    pub(crate) script: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The directory to walk
    #[arg(value_name = "DIR", default_value = "/usr")]
    pub(crate) dir: PathBuf,
    /// Stop the walk after N entries
    #[arg(long, short = 'n', value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Seed of the timed keys' random order
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Open a shell on the filled store at the end
    #[arg(long)]
    pub(crate) shell: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// What to run, in this order, separated by commas
    #[arg(
        value_name = "LIST",
        value_enum,
        value_delimiter = ',',
        hide_possible_values = true,
        hide_default_value = true,
        default_value = "fillseq,readseq,readreverse,fillrandom,readrandom,readmissing,seekrandom,overwrite,\
                         readwhilewriting,deleterandom"
    )]
    pub(crate) benchmarks: Vec<Benchmark>,
    /// Keys; operations of a benchmark
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    pub(crate) num: u64,
    /// Operations of each benchmark that reads [default: --num]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    pub(crate) reads: Option<u64>,
    /// Size of a key, in bytes
    #[arg(long, alias = "key_size", value_name = "N", default_value_t = 16)]
    pub(crate) key_size: u16,
    /// Size of a value, in bytes
    #[arg(long, alias = "value_size", value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(..=1 << 30))]
    pub(crate) value_size: u32,
    /// Threads, which share the operations
    #[arg(long, short = 't', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub(crate) threads: u64,
    /// Keys of a batch or of a multi-get
    #[arg(long, alias = "batch_size", value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) batch_size: u64,
    /// Pairs read after each seek
    #[arg(long, alias = "seek_nexts", value_name = "N", default_value_t = 0)]
    pub(crate) seek_nexts: u64,
    /// End each benchmark after N seconds
    #[arg(long, value_name = "N")]
    pub(crate) duration: Option<u64>,
    /// Fill an existing keyspace without emptying it first
    #[arg(long, aliases = ["use_existing", "use-existing-db", "use_existing_db"])]
    pub(crate) use_existing: bool,
    /// Seed of the random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
pub(crate) struct StressArgs {
    /// Store; its keyspace "stress" is emptied [default: temporary]
    #[arg(value_name = "DIR")]
    pub(crate) dir: Option<String>,
    /// Seconds to run
    #[arg(long, short = 's', value_name = "N", default_value_t = 10)]
    pub(crate) seconds: u64,
    /// Threads, half of them writers [default: processors]
    #[arg(long, short = 't', value_name = "N", value_parser = clap::value_parser!(u64).range(2..=1024))]
    pub(crate) threads: Option<u64>,
    /// Keys that are written over and over
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1024..))]
    pub(crate) keys: u32,
    /// Maximum length of a value, in bytes
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(8..))]
    pub(crate) value_bytes: u32,
    /// Seed of what is done
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
pub(crate) struct CrashArgs {
    /// The store; its keyspace "crash" is used
    #[arg(value_name = "DIR")]
    pub(crate) dir: String,
    /// Pairs that each thread writes
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub(crate) pairs: u32,
    /// Threads that write
    #[arg(long, short = 't', value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=999))]
    pub(crate) threads: u32,
    /// Write until killed; print each acknowledged pair
    #[arg(long, conflicts_with = "pairs")]
    pub(crate) endless: bool,
    /// An acknowledged pair that must be there; repeatable
    #[arg(long, value_name = "PAIR")]
    pub(crate) expect: Vec<Mark>,
}

/// Options of the store, for all commands. Without one it has the library's default.
#[derive(Debug, Clone, PartialEq, Default, Args)]
#[command(next_help_heading = "Options of the store; sizes as 64M or 1G")]
pub(crate) struct StoreOptions {
    /// Disk: memory in total; the cache takes the rest
    #[arg(long, global = true, value_name = "SIZE", value_parser = size)]
    pub(crate) memory_bytes: Option<usize>,
    /// Disk: cache of what is read from tables
    #[arg(long, global = true, value_name = "SIZE", value_parser = size)]
    pub(crate) cache_bytes: Option<usize>,
    /// Disk: size of a memtable
    #[arg(long, global = true, value_name = "SIZE", value_parser = size)]
    pub(crate) memtable_bytes: Option<usize>,
    /// Disk: size of a table
    #[arg(long, global = true, value_name = "SIZE", value_parser = size)]
    pub(crate) table_bytes: Option<usize>,
    /// Disk: values of at least this size stay in the log
    #[arg(long, global = true, value_name = "SIZE", value_parser = size)]
    pub(crate) large_values: Option<usize>,
    /// Disk: hash tags for gets, true or false
    #[arg(long, global = true, value_name = "BOOL", hide_possible_values = true)]
    pub(crate) tags: Option<bool>,
    /// Disk: compression of tables: none, lz4, zstd
    #[arg(long, global = true, value_name = "METHOD")]
    pub(crate) compression: Option<Compression>,
    /// Disk: keep changes for "tail", true or false
    #[arg(long, global = true, value_name = "BOOL", hide_possible_values = true)]
    pub(crate) history: Option<bool>,
    /// Disk: write figures to this file each second
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) metrics_file: Option<PathBuf>,
    /// Disk: measure times of calls, true or false
    #[arg(long, global = true, value_name = "BOOL", hide_possible_values = true)]
    pub(crate) latencies: Option<bool>,
    /// Disk: threads for flushes and compactions
    #[arg(long, global = true, value_name = "N")]
    pub(crate) workers: Option<usize>,
    /// Disk: processors of these threads, as 0,1
    #[arg(long, global = true, value_name = "CPUS", value_delimiter = ',')]
    pub(crate) worker_cpus: Vec<usize>,
    /// Disk: limit for writing tables, in bytes a second
    #[arg(long, global = true, value_name = "SIZE", value_parser = size)]
    pub(crate) background_bytes_per_second: Option<usize>,
    /// Disk: maximum number of open table files
    #[arg(long, global = true, value_name = "N")]
    pub(crate) open_files: Option<usize>,
    /// Memory, kernel: maximum memory of the store
    #[arg(long, global = true, value_name = "SIZE", value_parser = size)]
    pub(crate) capacity_bytes: Option<usize>,
    /// Memory, cache: auto, 1g, 2m, transparent, plain
    #[arg(long, global = true, value_name = "PAGES")]
    pub(crate) pages: Option<Pages>,
    /// Memory, cache, kernel: local, interleave, a node
    #[arg(long, global = true, value_name = "NODES", value_parser = numa)]
    pub(crate) numa: Option<Numa>,
}

/// Reads which memory nodes are used.
fn numa(text: &str) -> Result<Numa, String> {
    match text {
        "local" => Ok(Numa::Local),
        "interleave" => Ok(Numa::Interleave),
        node => node
            .parse()
            .map(Numa::Node)
            .map_err(|_| "it is local, interleave, or the number of a node".to_owned()),
    }
}

/// Reads a number of bytes, as 65536, 64K, 64M or 1G.
fn size(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 10),
        Some((at, 'm' | 'M')) => (&text[..at], 20),
        Some((at, 'g' | 'G')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let bytes = digits.parse::<usize>().ok().and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| "a size is a number such as 65536, 64K, 64M or 1G".to_owned())
}

/// A command after the `--` of `load`.
#[derive(Debug, Parser)]
#[command(name = "forrest load FILE --", no_binary_name = true, disable_help_subcommand = true)]
pub(crate) struct Then {
    #[command(subcommand)]
    pub(crate) command: ThenCommand,
}

/// What may stand there.
#[derive(Debug, Subcommand)]
pub(crate) enum ThenCommand {
    #[command(flatten)]
    Store(StoreCommand),
    /// Run commands from a prompt, a file or a pipe
    Shell(ShellArgs),
}

/// A line of the shell.
#[derive(Debug, Parser)]
#[command(
    name = "",
    no_binary_name = true,
    disable_help_subcommand = true,
    help_template = "{subcommands}{after-help}",
    after_help = help::LINE,
    max_term_width = 80
)]
pub(crate) struct Line {
    #[command(subcommand)]
    pub(crate) command: LineCommand,
}

/// Everything that a line of the shell can ask for.
#[derive(Debug, Subcommand)]
pub(crate) enum LineCommand {
    #[command(flatten)]
    Store(StoreCommand),
    /// Go to another keyspace, which is created if it does not exist
    Use {
        /// Its name; without one, the default
        #[arg(value_name = "KEYSPACE")]
        name: Option<String>,
    },
    /// Write and read keys and values in another format
    Format {
        /// text, tsv, csv, hex, jsonl, ops, ldb, mdb or mdb-print
        #[arg(value_enum, value_name = "FORMAT", hide_possible_values = true)]
        format: Format,
    },
    /// Collect the changes that follow, to be made all at once
    Begin,
    /// Make the changes since begin, all at once or, if one fails, none
    Commit,
    /// Forget the changes since begin
    Abort,
    /// Remember the state of the store, for diff
    Snapshot,
    /// Print what has changed since snapshot, in all keyspaces
    Diff,
    /// See what another process has changed, with --read-only
    Refresh,
    /// Print this list, or the help of one command
    Help {
        /// The command
        #[arg(value_name = "COMMAND")]
        command: Option<String>,
    },
    /// Leave
    #[command(visible_alias = "exit")]
    Quit,
}

/// What can be run, called as RocksDB's and LevelDB's `db_bench` call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub(crate) enum Benchmark {
    FillSeq,
    FillRandom,
    FillBatch,
    FillSync,
    Overwrite,
    UpdateRandom,
    ReadRandom,
    ReadMissing,
    ReadHot,
    MultiReadRandom,
    ReadSeq,
    ReadReverse,
    SeekRandom,
    DeleteSeq,
    DeleteRandom,
    ReadRandomWriteRandom,
    ReadWhileWriting,
    SeekRandomWhileWriting,
    Compact,
}

/// One pair: its run, its thread, and its place among those.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark {
    pub(crate) run: u32,
    pub(crate) thread: u32,
    pub(crate) pair: u32,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06}/{:03}/{:010}", self.run, self.thread, self.pair)
    }
}

impl FromStr for Mark {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Option<Vec<u32>> = text.split('/').map(|part| part.parse().ok()).collect();
        match numbers.as_deref() {
            Some(&[run, thread, pair]) => Ok(Mark { run, thread, pair }),
            _ => Err("expected RUN/THREAD/PAIR, as crash --endless prints them".to_owned()),
        }
    }
}
