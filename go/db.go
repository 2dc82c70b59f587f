package forrest

import "runtime"

// DB is an open store. It reads and changes the keyspace "default".
type DB struct{ writer }

// Keyspace is one of the keyspaces of a store, with keys of its own.
type Keyspace struct {
	writer
	name string
}

// Snapshot is a state of a store, or of one of its keyspaces. While it is open, the store keeps what is replaced later.
type Snapshot struct{ reader }

// Open opens a store, and creates it if it is missing. The URL is a path, for a store on disk in that directory,
// "memory:" for a new store in memory, or "llds:NAME" for one in kernel memory. The options may be nil.
//
// It fails with [ErrBusy] if the store is open elsewhere, and with [ErrCorrupt] if it is damaged. It reads what the log
// has of changes that are in no table yet.
func Open(url string, options *Options) (*DB, error) {
	if options == nil {
		options = &Options{}
	}
	h, err := openStore(url, options.LogDirectory, options.EncryptionKey, options.encoded())
	if err != nil {
		return nil, err
	}
	db := &DB{writer{reader{h}}}
	closeWith(db, h)
	return db, nil
}

// Close closes the store, and with it all that was opened through it: keyspaces, snapshots, transactions, ingests and
// streams. It waits for calls in progress. A store on disk keeps its data. To close what is closed does nothing.
func (db *DB) Close() error {
	if db == nil || db.h == nil {
		return nil
	}
	defer runtime.KeepAlive(db)
	return db.h.registry.closeAll()
}

// Keyspace opens a keyspace, and creates it if it is missing. A name has 1 to 255 bytes of UTF-8. A store has at most
// 4,096 keyspaces; one in the kernel has only "default".
func (db *DB) Keyspace(name string) (*Keyspace, error) {
	defer runtime.KeepAlive(db)
	h, err := db.h.keyspace(name)
	if err != nil {
		return nil, err
	}
	keyspace := &Keyspace{writer{reader{h}}, name}
	closeWith(keyspace, h)
	return keyspace, nil
}

// Keyspaces lists the names of all keyspaces, sorted. "default" is always among them.
func (db *DB) Keyspaces() ([]string, error) {
	defer runtime.KeepAlive(db)
	return db.h.keyspaces()
}

// DropKeyspace removes a keyspace with all its pairs. What has it open fails with [ErrInvalidArgument] from then on;
// snapshots still have it. [ErrNotFound] if there is none; "default" cannot be removed.
func (db *DB) DropKeyspace(name string) error {
	defer runtime.KeepAlive(db)
	return db.h.named(keyspaceName, name)
}

// Snapshot takes a snapshot of the whole store, which reads the keyspace "default". Nothing is copied. Close it.
func (db *DB) Snapshot() (*Snapshot, error) { return db.snapshot() }

// Name returns the name of the keyspace.
func (k *Keyspace) Name() string { return k.name }

// Snapshot takes a snapshot of the whole store, which reads this keyspace. Nothing is copied. Close it.
func (k *Keyspace) Snapshot() (*Snapshot, error) { return k.snapshot() }

// Close closes the handle. The store stays open.
func (k *Keyspace) Close() error {
	if k == nil {
		return nil
	}
	defer runtime.KeepAlive(k)
	return k.h.close()
}

// SetCompression chooses how the tables that the keyspace gets from now on are compressed. The store remembers it.
func (w *writer) SetCompression(compression Compression) error {
	defer runtime.KeepAlive(w)
	return w.h.setCompression(compression)
}

func (r *reader) snapshot() (*Snapshot, error) {
	defer runtime.KeepAlive(r)
	h, err := r.h.snapshot()
	if err != nil {
		return nil, err
	}
	return newSnapshot(h), nil
}

func newSnapshot(h *handle) *Snapshot {
	snapshot := &Snapshot{reader{h}}
	closeWith(snapshot, h)
	return snapshot
}

// Keyspace returns the state of another keyspace in the same snapshot. It is empty if it did not exist then.
func (s *Snapshot) Keyspace(name string) (*Snapshot, error) {
	defer runtime.KeepAlive(s)
	h, err := s.h.keyspace(name)
	if err != nil {
		return nil, err
	}
	return newSnapshot(h), nil
}

// Sequence returns the sequence number of the last change that the snapshot has: [DB.Changes] after it are those that
// it lacks.
func (s *Snapshot) Sequence() (uint64, error) {
	defer runtime.KeepAlive(s)
	return s.h.sequence()
}

// Close closes the snapshot.
func (s *Snapshot) Close() error {
	if s == nil {
		return nil
	}
	defer runtime.KeepAlive(s)
	return s.h.close()
}

// Sync makes all changes before it as durable as this home can. On disk they then survive a loss of power.
func (db *DB) Sync() error { return db.do(callSync) }

// Flush moves all changes from memory and logs to tables. To make changes durable, Sync is faster.
func (db *DB) Flush() error { return db.do(callFlush) }

// Compact merges all tables, so that the store takes the least space. It takes time proportional to its size.
func (db *DB) Compact() error { return db.do(callCompact) }

// Settle finishes the background work that earlier changes have left, for example after a large load.
func (db *DB) Settle() error { return db.do(callSettle) }

// Trim gives memory that a store in memory does not use back to the system.
func (db *DB) Trim() error { return db.do(callTrim) }

// Verify reads all files and verifies their checksums: [ErrCorrupt], with file and offset, if one is damaged.
func (db *DB) Verify() error { return db.do(callVerify) }

// Resume accepts changes again after a failure of the disk that has stopped the store; see forrest_resume in forrest.h.
func (db *DB) Resume() error { return db.do(callResume) }

// Refresh takes over what another process has changed, if the store was opened to be read.
func (db *DB) Refresh() error { return db.do(callRefresh) }

func (w *writer) do(what call) error {
	defer runtime.KeepAlive(w)
	return w.h.do(what)
}

// RotateKey replaces the key that opens an encrypted store by another one of 32 bytes. No data is written again. When it
// returns, only the new key opens the store. Checkpoints and backups that were made before need the old one.
func (db *DB) RotateKey(key []byte) error {
	defer runtime.KeepAlive(db)
	return db.h.rotateKey(key)
}

// RotateDataKey adds a random data key to an encrypted store. Files that are made from now on are encrypted with it;
// older ones keep theirs until they are merged.
func (db *DB) RotateDataKey() error { return db.do(callRotateDataKey) }

// Checkpoint writes a copy of the store, as it is at one moment of this call, in a new directory, while readers and
// writers go on. It gets its name when it is complete and durable. On the same file system both share the tables.
func (db *DB) Checkpoint(path string) error {
	defer runtime.KeepAlive(db)
	return db.h.named(checkpointPath, path)
}

// SetMemoryBytes changes [Options.MemoryBytes] of the open store.
func (db *DB) SetMemoryBytes(bytes uint64) error {
	defer runtime.KeepAlive(db)
	return db.h.setOption(optionMemoryBytes, bytes)
}

// SetBackgroundBytesPerSecond changes [Options.BackgroundBytesPerSecond] of the open store; 0 is no limit.
func (db *DB) SetBackgroundBytesPerSecond(bytes uint64) error {
	defer runtime.KeepAlive(db)
	return db.h.setOption(optionBackground, bytes)
}

// LibraryVersion returns the version of libforrest.
func LibraryVersion() string { return libraryVersion() }
