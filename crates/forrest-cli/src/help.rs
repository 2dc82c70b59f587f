//! The examples and explanations that `--help` prints. All examples work in the order given in an empty directory;
//! the tests run them.

/// Of `forrest --help`.
pub(crate) const TOP: &str = "\
The store is one of:
  PATH       a directory on disk; the first command that writes creates it
  memory:    memory of this process, which ends with it: fill it by --load FILE
             and keep it by --dump FILE, or use the shell
  llds:NAME  memory of the kernel, which processes share and which outlives
             them; it needs the kernel module (see \"forrest doctor\")

Examples:
  forrest --db trees set oak 'Quercus robur'
  forrest --db trees get oak                 Quercus robur
  export FORREST_URL=trees; forrest scan     the store for all commands
  forrest demo                               the tour, on the files in /usr
  forrest --db trees shell                   a prompt; \"help\" has the list
  printf 'apple\\t3\\nbanana\\t5\\n' > in.txt    a file of pairs: key TAB value
  forrest --load in.txt scan --prefix a      load it in memory, then ask
  forrest load in.txt -- scan --prefix a     the same
  forrest --db trees load in.txt --sync      keep it

A change on disk survives the end of the process; with --sync the command ends
only when it survives power loss as well.

Keys and values in arguments are escaped text: \\\\ \\t \\n \\r, and \\xNN for any
other byte; with --format hex they are hexadecimal. Put -- before one that
begins with a hyphen.

Exit codes:
  0  done                     3  damaged data, wrong answers
  1  not found, no match      4  any other error: files, limits, store in use
  2  bad usage                5  changes that are no longer kept
                            130  interrupted by Ctrl-C
                            141  the reader of standard output has gone";

pub(crate) const GET: &str = "\
Examples:
  forrest --load in.txt get apple            3
  forrest --load in.txt get apple banana     each with its key
  forrest --load in.txt get apple --raw > value.bin
  forrest --db trees get oak                 Quercus robur

Exit code 1 if a key is not there.";

pub(crate) const SET: &str = "\
On disk the store is created if it does not exist.

Examples:
  forrest --db trees set oak 'Quercus robur'
  forrest --db trees set oak 'Quercus petraea' --sync
  forrest --db trees set visitor ada --ttl 90s
  forrest --load in.txt set cherry 7 --dump out.txt
  forrest --load in.txt set 'two words' 'line one\\nline two' --dump out.txt
  forrest set picture --from-file value.bin --dump out.txt
  forrest --dump out.txt set -- -key -value";

pub(crate) const ADD: &str = "\
A counter is a value of 8 bytes, a big-endian two's complement integer; a key
that is not there counts as 0. Any other value, and overflow, is an error.

Examples:
  forrest --db trees add visits              1
  forrest --db trees add visits -5           -4
  printf 'add n 40\\nadd n 2\\n' | forrest shell";

pub(crate) const CAS: &str = "\
Compare and swap: the comparison and the change are one step, whatever other
threads do. Exit code 1, and the value found, if it did not match.

Examples:
  forrest --load in.txt cas apple --expect 3 --set 4 --dump out.txt
  forrest --load in.txt cas cherry --absent --set 7 --dump out.txt
  forrest --load in.txt cas apple --expect 3 --delete --dump out.txt";

pub(crate) const DELETE: &str = "\
Examples:
  forrest --load in.txt delete apple --dump out.txt

Exit code 1 if a key was not there.";

pub(crate) const DELETE_RANGE: &str = "\
Examples:
  forrest --load in.txt delete-range --prefix a --dump out.txt
  forrest --load in.txt delete-range --from a --to b --dump out.txt
  forrest --load in.txt delete-range --all --dump out.txt";

pub(crate) const SCAN: &str = "\
Keys sort by their bytes. With a prefix and bounds, the keys that match both are
printed. Several prefixes are read together, which waits less for the device,
and printed in the order given; --limit is for each of them then.

Examples:
  forrest --load in.txt scan
  forrest --load in.txt scan --prefix a
  forrest --load in.txt scan --prefix b --prefix a --limit 1
  forrest --load in.txt scan --from b --reverse --limit 10
  forrest --load in.txt --format jsonl scan";

pub(crate) const COUNT: &str = "\
Examples:
  forrest --load in.txt count
  forrest --load in.txt count --from a --to c
  forrest --load in.txt count --approximate";

pub(crate) const EXPIRES: &str = "\
Prints the time in UTC at which the value of a key expires, or \"never\". With
-f jsonl it is in milliseconds since 1970, or null.

Examples:
  forrest --db trees set visitor ada --ttl 90s
  forrest --db trees expires visitor
  forrest --db trees expires visitor oak

Exit code 1 if a key is not there.";

pub(crate) const KEYSPACE: &str = "\
Without a value, a command prints what the keyspace has: the default one, or the
one that --keyspace (-k) names. The store remembers what is chosen.

Examples:
  forrest --db trees -k guests keyspace ttl 2h
  forrest --db trees -k guests keyspace ttl
  forrest --db trees -k log keyspace merge-operator append
  forrest --db trees -k log keyspace compression lz4";

pub(crate) const KEYSPACE_TTL: &str = "\
Values that are set from now on get it. Values that are there keep the one that
they have.

Examples:
  forrest --db trees -k guests keyspace ttl 2h
  forrest --db trees -k guests keyspace ttl
  forrest --db trees -k guests keyspace ttl none";

pub(crate) const KEYSPACE_MERGE_OPERATOR: &str = "\
Operators: sum (of counters), max, min (in the order of bytes), append, union. A
line \"merge KEY OPERAND\" of the shell or of a .ops file gives it an operand.

Examples:
  forrest --db trees -k log keyspace merge-operator append
  printf '@log merge day rain\\n' | forrest --db trees shell
  forrest --db trees -k log keyspace merge-operator";

pub(crate) const KEYSPACE_COMPRESSION: &str = "\
Tables that are there stay as they are until they are merged; \"compact\" merges
all. A keyspace without a choice has that of the default keyspace.

Examples:
  forrest --db trees -k log keyspace compression lz4
  forrest --db trees -k log keyspace compression";

pub(crate) const KEYSPACES: &str = "\
Examples:
  forrest --db trees keyspaces
  forrest --load in.txt keyspaces";

pub(crate) const BLOB: &str = "\
A blob is a value of any length, which is written and read in pieces, so it may
be larger than memory. Blobs have a keyspace of their own: \"blobs\", unless
--keyspace names another one.

Examples:
  forrest --db trees blob put photo in.txt
  forrest --db trees blob list               photo, and its length
  forrest --db trees blob get photo copy.txt
  forrest --db trees blob delete photo";

pub(crate) const BLOB_PUT: &str = "\
The blob appears whole when all of the file has been read, in place of the one
that the key had. If that fails, nothing is left of it.

Examples:
  forrest --db trees blob put photo in.txt
  cat in.txt | forrest --db trees blob put photo";

pub(crate) const BLOB_GET: &str = "\
Examples:
  forrest --db trees blob get photo > copy.txt
  forrest --db trees blob get photo copy.txt
  forrest --db trees blob get photo --offset 6 --length 6

Exit code 1 if there is no such blob.";

pub(crate) const BLOB_LIST: &str = "\
Examples:
  forrest --db trees blob list
  forrest --db trees blob list --prefix ph";

pub(crate) const BLOB_DELETE: &str = "\
Examples:
  forrest --db trees blob delete photo

Exit code 1 if a blob was not there.";

pub(crate) const LOAD: &str = "\
Formats (--format, unless the file's name ends in .txt, .tsv, .csv, .hex, .jsonl
or .ops; --format tsv and csv hold for files of any name):
  text   key TAB value, with escapes \\\\ \\t \\n \\r \\xNN
  tsv    key TAB value as they are: no escapes, no comments, every byte counts
  csv    KEY,VALUE as in RFC 4180, with quotes around , \" and line ends
  hex    key TAB value, in hexadecimal
  jsonl  {\"key\": \"...\", \"value\": \"...\"}, or \"key_hex\" and \"value_hex\";
         \"expires_ms\" if the value expires
  ops    an operation a line: set KEY VALUE, delete KEY, add KEY DELTA, ...
  ldb    0xKEY ==> 0xVALUE, as RocksDB's \"ldb dump --hex\" prints
  mdb    as LMDB's mdb_dump prints; databases are keyspaces. With -p, LMDB up to
         0.9.24 does not escape backslashes: better without
Except in tsv, csv and mdb, # begins a comment; in text and hex \"#keyspace NAME\"
selects the keyspace of the lines after it. In text, a comment with a tab and a
carriage return at the end of a line are errors: they may be bytes of a pair,
which tsv takes as they are. An error is reported as
FILE:LINE:COLUMN, where the column counts characters from 1; the lines before it
have been loaded. With --skip-errors FILE wrong lines are written to FILE, which
must not be one of the files to load, and can be loaded when they are mended: in
csv and mdb all lines of a pair, in mdb with a header. A line that is longer
than any pair is wrong, and only its beginning is read; in mdb it ends the load.

From RocksDB and LMDB:
  ldb dump --hex --db=DIR | forrest --db trees -f ldb load -
  mdb_dump DIR | forrest --db trees -f mdb load -
  mdb_dump -a DIR | forrest --db trees -f mdb load -    named databases

Examples:
  forrest --db trees load in.txt
  forrest load in.txt -- count
  forrest load in.txt -- scan --prefix b
  forrest load in.txt --dump copy.jsonl
  cat in.txt | forrest load - -- get apple";

pub(crate) const DUMP: &str = "\
Without --keyspace, all keyspaces are written. load reads the output of dump
byte for byte. A file is replaced as a whole when it is complete and survives
power loss. A dump that is killed leaves forrest-dump-*.partial beside the file,
which may be removed.

The formats are those of load, also for the names of files, and mdb-print: mdb
with text where possible. ldb holds one keyspace; in mdb several become named
databases.

To RocksDB and LMDB:
  forrest --db trees -k default -f ldb dump |
      ldb load --hex --db=DIR --create_if_missing
  forrest --db trees -f mdb dump | mdb_load DIR

Examples:
  forrest --db trees dump trees.txt
  forrest --load in.txt dump
  forrest --load in.txt --format hex dump
  forrest --load in.txt dump copy.jsonl
  forrest --load in.txt -f ldb dump > copy.ldb; forrest -f ldb load copy.ldb
  forrest --load in.txt -f mdb dump > copy.mdb; forrest -f mdb load copy.mdb";

pub(crate) const STAT: &str = "\
On disk the number of keys is an estimate: a key in memory and in a table counts
twice. count is exact.

Examples:
  forrest --db trees stat
  forrest --load in.txt stat
  forrest --load in.txt --format jsonl stat";

pub(crate) const WEB: &str = "\
The page shows keyspaces, ranges of pairs, values, and figures as they change.
It changes nothing, and the store may be open in another process. The server
listens on 127.0.0.1, and prints a URL with a token: those who have it can read
the store. Ctrl-C ends it.

Examples:
  forrest web trees
  forrest --db trees web --port 8080
  ssh -L 8080:127.0.0.1:8080 HOST forrest --db trees web --port 8080";

pub(crate) const LIVE: &str = "\
Shows rates, sizes and times of a store that another process has open, each 2
seconds until Ctrl-C. The process must write them to a file, by the option
--metrics-file of this command, Builder::metrics_file in Rust, or the same in
other languages. Times of calls are there with --latencies true. STORE is the
file, or a store that has it as metrics.prom in its directory.

With -f jsonl, prints all figures as an object, as Prometheus names them.

Examples:
  forrest --db trees --metrics-file trees/metrics.prom --latencies true shell
  forrest top trees
  forrest -f jsonl top trees -n 1";

pub(crate) const SERVE: &str = "\
Speaks Redis's protocol, so that programs use the store by the clients that they
have: redis-cli, redis-py and others. docs/guides/redis.md lists the commands.
Ctrl-C or SIGTERM ends the server; on disk everything is synced then.

Only this machine can connect, unless --listen names another address. That needs
a password, and TLS or --plain.

Examples:
  forrest serve
  forrest --db trees serve --listen 127.0.0.1:7000 --fsync always
  forrest --db trees serve --unix trees.sock";

pub(crate) const TAIL: &str = "\
Prints a line for each change: its sequence number, and what happened. A store
keeps its changes if it is written to with --history true: up to 1 GiB, for up
to 7 days. Another process may write to it meanwhile. Changes that are no longer
kept are an error, with exit code 5.

With --durability sync, only changes that survive a power cut are printed. If
another process writes to the store, these are the changes that have become
tables. The pairs of an ingest (below) may be newer.

With --format ops, the lines are operations that \"load\" makes again. What
happened to a whole keyspace is only a comment, so loading drops no keyspace.
The changes do not contain the pairs of an ingest: after \"# ingest FIRST LAST\"
the pairs from FIRST to LAST are printed as they are at that time. Changes of
these pairs after the ingest are printed again later, so that loading all lines
ends in the same pairs.

With --format jsonl, the lines are objects, without the pairs of an ingest.

Examples:
  forrest --db forest --history true set oak Quercus
  forrest tail forest
  forrest tail forest --since 1
  forrest tail forest -f ops | forrest --db twin -f ops load -";

pub(crate) const VERIFY: &str = "\
Reads every file of the store past all caches, checks every checksum, and walks
all keys. Damage is reported with file and offset, and exit code 3. The store
must not be open elsewhere; opening it reads its logs, as always.

Examples:
  forrest verify trees
  forrest --db trees verify
  forrest --format jsonl verify trees";

pub(crate) const CHECKPOINT: &str = "\
Creates PATH, a store on disk with the content of this store at one moment. PATH
appears only when it is complete and survives power loss. If another process has
the store open, it is busy here; that process can make a checkpoint, by a line
in its shell or by the library, while it goes on writing.

On the same file system, the copy and the store share their tables (hard links),
which no store changes: it takes little time and space. To another file system,
everything is copied, which also helps when the disk fails. From memory, all
pairs are written.

Examples:
  forrest checkpoint trees monday
  forrest --db trees checkpoint tuesday
  forrest --load in.txt checkpoint fruit     the pairs of a file, as a store";

pub(crate) const MOVE_LOG: &str = "\
Moves the log of a store on disk to the directory DIR, usually on another
device; without DIR, back into the directory of the store. The store must be
closed. From then on every command on this store needs --log-directory DIR, or
none. After a crash, run it again.

Examples:
  forrest move-log trees fast-log            a directory on the fast device
  forrest --db trees --log-directory fast-log count
  forrest move-log trees                     back to the other files";

pub(crate) const KEY: &str = "\
A store that is created with --key-file is encrypted, and opens only with that
key. Its checkpoints are too, and the directories of its backups. Keep the key
where the store is not: without it, the data is lost for everybody.
\"head -c 32 /dev/urandom >my.key\" makes one.

Examples:
  forrest --key-file my.key --db vault set oak Quercus
  forrest --key-file my.key key rotate vault new.key
  forrest --key-file new.key key rotate-data vault";

pub(crate) const KEY_ROTATE: &str = "\
The key in NEW opens the store from then on, and the old one does not, also
after power loss. No data is encrypted again, so it takes a moment. Checkpoints
and backups that were made before need the old key; \"backup rotate-key\" replaces
that of a directory of backups.

Examples:
  forrest --key-file new.key key rotate vault my.key";

pub(crate) const KEY_ROTATE_DATA: &str = "\
New files are encrypted with a new random key. Older files keep theirs until
they are merged. Use it if a key may have leaked together with a copy of the
store, after \"key rotate\".

Examples:
  forrest --key-file my.key key rotate-data vault";

pub(crate) const SALVAGE: &str = "\
Reads the files in SRC, also if the store cannot be opened, and makes a new
store at DST of everything whose checksum is right. DST appears only when it is
complete and survives power loss. SRC is not written to; close it before. Try it
when \"verify\" reports damage, or a command says \"corrupt\", and there is no
backup.

Prints a line for each range of keys of which something is lost, with tabs:
  KEYSPACE   FROM   TO   FILE   REASON
[ and ] mean that the key is in the range, ( and ) that it is not, or that there
is no bound. Outside of these ranges every key has exactly its value. In them, a
key has a value that it once had, or none: newer values and deletes may be lost.

Without a readable manifest nothing can be copied, because only the manifest
states to which keyspace a file belongs.

Examples:
  forrest salvage trees rescued
  forrest salvage trees other -f jsonl       each as JSON, then the totals

Exit code 3 if anything is lost, 0 if DST is a complete copy.";

pub(crate) const BACKUP: &str = "\
A directory has many backups, but each table of the store only once.

Examples:
  forrest backup create trees backups
  forrest backup list backups
  forrest backup verify backups
  forrest backup restore backups restored
  forrest backup prune backups --keep 7";

pub(crate) const BACKUP_CREATE: &str = "\
Adds a backup of STORE, as it is at one moment, to DIR. It verifies and copies
only the tables that no earlier backup there has. The backup appears when it is
complete and survives power loss; earlier backups stay whole in any case. Put
DIR on another device. The store may be open in another process.

Prints its number, as do the other commands with -f jsonl.

Examples:
  forrest backup create trees backups
  forrest -f jsonl backup create trees backups";

pub(crate) const BACKUP_LIST: &str = "\
Prints a line for each backup, with tabs: its number, when it was made, its
bytes, and those that were new. A damaged one has the damage instead.

Examples:
  forrest backup list backups
  forrest -f jsonl backup list backups";

pub(crate) const BACKUP_VERIFY: &str = "\
Reads every byte of the backups, which the system's cache may serve, and checks
it by checksums. Prints a line for each: \"whole\" and its size, or the damage
with file and offset. Exit code 3 if one of them is damaged.

Examples:
  forrest backup verify backups
  forrest -f jsonl backup verify backups";

pub(crate) const BACKUP_RESTORE: &str = "\
Makes a new store at DST of a backup. Every byte is checked on the way. DST
appears only when it is complete and survives power loss. \"backup list\" has
the numbers for --id.

Examples:
  forrest backup restore backups newest";

pub(crate) const BACKUP_PRUNE: &str = "\
Removes backups, and then the files that no other backup needs. The newest one
always stays. If one that is to stay is damaged, nothing is removed.

Examples:
  forrest backup prune backups --keep 7
  forrest backup prune backups --days 30";

pub(crate) const BACKUP_ROTATE_KEY: &str = "\
A directory of backups has a key of its own, which at first is that of the
store. After \"key rotate\" give it the new one too, or the next backup there is
refused. No data is encrypted again.

Examples:
  forrest --key-file new.key backup create vault sealed
  forrest --key-file new.key backup rotate-key sealed my.key";

pub(crate) const COMPACT: &str = "\
Writes the memtable to tables and merges all tables. A store compacts by itself
as far as it pays; this command gives the least space and the fastest opening.

Examples:
  forrest compact trees";

pub(crate) const SHELL: &str = "\
A line is a command as on the command line, without \"forrest\"; \"help\" lists
them. Words are split at spaces; \"double quotes\" keep them together, and \\xNN
\\n \\r \\t \\\" \\\\ are escapes. A line that begins with # is a comment.

At a prompt, Tab completes commands, options, keyspaces, files and keys, and the
arrow keys bring back lines, those of earlier sessions as well. They are kept in
the file that FORREST_HISTORY names (if it is empty, nowhere), else in
~/.local/state/forrest/history; a line that begins with a space is not.

With a prompt, errors are shown and the shell goes on; in a script the first
error ends it, and it is reported with its line. The exit code is that of the
last command.

With --sync, each line is done only when its changes survive power loss.

On disk the store is created if it does not exist, and a note says so.

Examples:
  forrest shell
  forrest --load in.txt shell --dump out.txt
  printf 'set a 1\\nset b 2\\nscan\\n' > script.txt
  forrest --db trees shell script.txt
  forrest shell script.txt
  forrest shell < script.txt";

/// Of the shell's own `help`.
pub(crate) const LINE: &str = "\
@NAME before a command means the keyspace NAME for this line; a command that
changes it creates it. Operations as in .ops files work too: compare-and-swap
KEY EXPECTED NEW, delete-range START END, where - is no value and no end.";

pub(crate) const DEMO: &str = "\
Stores every file's path with its kind, mode, size and time of change. Then it
prints a directory listing, the largest subtrees, the files changed last, counts
by extension, and the differences between a snapshot and later states. At the
end it times each operation, and closes and reopens the store. The store is on
disk in a temporary directory, which is removed, unless --db names one, which
stays (FORREST_URL is ignored). Nothing else on the disk is changed; the walk
stays on one file system and follows no symbolic links.

Examples:
  forrest demo
  forrest demo . --limit 10000
  forrest demo --db memory:                  in memory
  forrest demo --db files; forrest --db files -k files count
  forrest demo /etc --shell                  then explore: scan --prefix /etc/";

pub(crate) const BENCH: &str = "\
Names and figures are those of db_bench, which comes with RocksDB and LevelDB:
  fillseq, fillrandom, fillbatch   into an empty store, in the order of the
                                   keys, in random order, in batches in order
  fillsync                         each change survives power loss; num / 1000
  overwrite, updaterandom          random keys; with a get before each set
  readrandom, readmissing          gets of random keys; of absent keys
  readhot, multireadrandom         of 1 % of the keys; many keys in a call
  readseq, readreverse             all pairs, forwards and backwards
  seekrandom                       a new cursor to a key, and --seek-nexts on
  deleteseq, deleterandom          deletes, in order and of random keys
  readrandomwriterandom            9 gets to 1 set
  readwhilewriting, seekrandomwhilewriting    beside one thread that overwrites
  compact                          all tables become one run
As there, random keys repeat, so fillrandom leaves about 63 % of the keys.

ops/s is of all threads; us/op is the time of an operation in its thread; MB/s
are millions of bytes of keys and values. With --sync, each change survives
power loss. The store is on disk in a temporary directory, which is removed;
--db names another store, in which each fill empties the keyspace \"bench\"
(FORREST_URL is ignored).

It is a quick look, one run in one process. For decisions use kvbench, the
benchmark beside this command: it repeats, takes turns, gives intervals.

Examples:
  forrest bench --num 10000
  forrest bench fillseq,readrandom,readseq --num 10000 --value-size 1000
  forrest bench --db memory: fillrandom,readrandom --num 10000 --threads 2
  forrest bench --db dir3 fillrandom -n 10000
  forrest bench --db dir3 readseq,readrandom -n 10000
  forrest bench fillsync,readwhilewriting -n 10000 --duration 1 -f jsonl";

pub(crate) const STRESS: &str = "\
Each key has one writing thread, which publishes the version that it wrote when
the call has returned. If a reader then finds an older version, the read was
stale. Scans must be in order and show every key that is never deleted; batches
must be seen whole in snapshots; counters must add up. At the end a store on
disk is verified, closed, opened and compared once more.

The last line is \"stale = 0, ...\" if all is well. Exit code 3 if not.

Examples:
  forrest stress --seconds 1
  forrest stress dir --seconds 1 --threads 4 --memtable-bytes 65536
  forrest stress --db memory: --seconds 1";

pub(crate) const CRASH: &str = "\
Run it in a loop. It verifies everything that earlier runs wrote: the pairs of
each thread are there from the first on without gaps, with the right values,
counts and deletions, and all of them if the run was done. Then a new run
writes, syncs and ends the process, with exit code 0, while the store is open.

With --endless it writes until it is killed, and prints a line RUN/THREAD/PAIR
after each pair is acknowledged. After kill -9 all of them must be there; pass
the last of each thread to the next run by --expect. With --sync the same holds
for loss of power. Exit code 3 if anything is missing or wrong.

Examples:
  forrest crash dir2
  for i in 1 2 3; do forrest crash dir2 || break; done
  forrest crash dir2 --expect 1/0/999 --expect 1/1/999
  forrest crash dir2 --endless | head -1000 > acknowledged.txt";

pub(crate) const LLDS: &str = "\
A store \"llds:NAME\" lies in the memory of the kernel: all processes of its user
share it, at the speed of memory, and it outlives them. It ends when it is
destroyed, the module is unloaded, or the machine stops; \"save\" writes it to a
file before. The kernel module must
be loaded: \"forrest doctor\" shows whether it is, and how to load it.

Each user has names of its own. \"llds:UID/NAME\" is a store of the user with that
number. \"llds:shared/NAME\" is one of the first user who took the name.

Examples:
  forrest --db llds:shop set apple 3
  forrest --db llds:shop get apple           3
  forrest --db llds:1000/shop get apple
  forrest llds list
  forrest llds save shop shop.llds
  forrest llds destroy shop
  forrest llds restore shop.llds";

pub(crate) const LLDS_LIST: &str = "\
Lists the stores that you may read or write, or own, sorted by name: keys, used
and maximum memory, and how often each is open.

Examples:
  forrest llds list
  forrest --format jsonl llds list";

pub(crate) const LLDS_SAVE: &str = "\
Writes all pairs with the store's owner, group, mode and maximum size, and with
checksums. Only you may read the file. It is synced when this ends; until then a
file of that name stays as it was. A change that another process makes meanwhile
may be in it or not: stop the writers first.

Examples:
  forrest llds save shop shop.llds
  sudo forrest llds save 1000/shop shop.llds";

pub(crate) const LLDS_RESTORE: &str = "\
Reads the whole file first, so nothing is made from a damaged one (exit code 3).
The store must not exist. It gets the owner, group, mode and maximum size that
it had; for a store of another user, be root, and trust the file: it must belong
to root or to that user. With NAME it is a copy that is yours. Let nobody use it
before this ends.

Examples:
  forrest llds restore shop.llds
  forrest llds restore shop.llds copy-of-shop
  for file in /var/lib/llds/*.llds; do sudo forrest llds restore \"$file\"; done";

pub(crate) const LLDS_DESTROY: &str = "\
Frees the name at once, so the next open makes a new store. A process that has
the old store open can go on with it; its memory is freed at the last close. Its
owner may do this. Exit code 1 if there is no store of a name.

Examples:
  forrest --db llds:shop set apple 3; forrest llds destroy shop
  forrest --db llds:fair set pear 2; forrest llds destroy llds:fair";

pub(crate) const DOCTOR: &str = "\
Examples:
  forrest doctor
  forrest --format jsonl doctor";
