package forrest

import "runtime"

// Stats is what a store holds, at about the moment of the call. Sizes are in bytes.
type Stats struct {
	// Keys of all keyspaces; on disk an estimate.
	Keys uint64
	// Keyspaces, with "default".
	Keyspaces uint64
	// Snapshots that are open.
	Snapshots uint64
	// NodeBytes are in use for keys, values up to 239 bytes, and their overhead, in memory.
	NodeBytes uint64
	// ValueBytesOutside are in use for longer values, and in memory for values that expire and for the times of these.
	ValueBytesOutside uint64
	// ReservedBytes were taken from the system for nodes; of these, some on huge pages.
	ReservedBytes        uint64
	ExplicitHugeBytes    uint64
	TransparentHugeBytes uint64
	// Tables on disk, their size, and the size that they would have without compression.
	Tables          uint64
	TableBytes      uint64
	TablePlainBytes uint64
	// CacheBytes is the size of the cache of pages, IndexBytes the memory of the indexes of tables.
	CacheBytes uint64
	IndexBytes uint64
	// OpenFiles of the store.
	OpenFiles uint64
	// HeldBytes of files that only other processes read, KeptBytes of memory that only snapshots have.
	HeldBytes uint64
	KeptBytes uint64
	// CacheExplicitHugeBytes and CacheTransparentHugeBytes of the cache's memory.
	CacheExplicitHugeBytes    uint64
	CacheTransparentHugeBytes uint64
	// ValueLogBytes of the logs that are kept for large values in them, and what live values have of that, about.
	ValueLogBytes     uint64
	ValueLogLiveBytes uint64
	// Values that expire, about: in memory all; on disk those in tables, and one for each memtable that has some. 0 if
	// there are none.
	Expiring uint64
	// TableLiveBytes are those of TableBytes whose entries were not replaced or deleted by what is in tables, about. The
	// space amplification is TableBytes + ValueLogBytes for each byte of TableLiveBytes + ValueLogLiveBytes.
	TableLiveBytes uint64
}

// Capabilities is what a store's home can do. A call that needs another capability fails with [ErrUnsupported].
type Capabilities uint64

// The capabilities.
const (
	CanIterate Capabilities = 1 << iota
	CanBatch
	CanSnapshot
	CanKeyspaces
	CanPersist
	CanShare
	CanSync
	CanReadOnly
	CanCheckpoint
	CanVerify
	CanCompact
	CanIngest
	CanCompress
	CanMetrics
	CanApproximate
	CanChanges
	CanMerge
	CanBackup
)

// Has tells whether all of these are among them.
func (c Capabilities) Has(all Capabilities) bool { return c&all == all }

// Stats returns the statistics of the store.
func (r *reader) Stats() (Stats, error) {
	defer runtime.KeepAlive(r)
	return r.h.stats()
}

// Capabilities returns what the store's home can do.
func (r *reader) Capabilities() (Capabilities, error) {
	defer runtime.KeepAlive(r)
	return r.h.capabilities()
}

// Metrics returns what a store on disk holds and has done since it was opened, in the text format of Prometheus.
func (db *DB) Metrics() (string, error) {
	defer runtime.KeepAlive(db)
	return db.h.metrics()
}
