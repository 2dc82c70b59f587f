package forrest

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Durability says what a change survives when its call has returned.
type Durability uint64

// The levels of durability.
const (
	// Default is the level with which the store was opened; in [Options], the strongest one that waits for no device.
	Default Durability = 0
	// Memory: the change is applied. The end of the process may lose it.
	Memory Durability = 1
	// Buffered: the operating system has it. It survives the end of the process.
	Buffered Durability = 2
	// Sync: the device has reported it stored, with everything before it. It survives a loss of power.
	Sync Durability = 3
)

// Compression is how tables on disk are compressed.
type Compression uint64

// The kinds of compression.
const (
	// NoCompression stores pages as they are.
	NoCompression Compression = 0
	// LZ4 costs a read least.
	LZ4 Compression = 1
	// Zstd is smaller; only builds with the feature zstd have it.
	Zstd Compression = 2
)

// Options for opening a store. A field that is zero has its default, which forrest.h documents.
type Options struct {
	// Durability of each change when its call returns.
	Durability Durability
	// ReadOnly opens a store that exists, while other processes may write to it. [DB.Refresh] takes over what they
	// have changed.
	ReadOnly bool
	// MustExist makes opening fail if there is no store.
	MustExist bool
	// MemoryBytes is what memtables, cache and indexes of a store on disk share. Default: a quarter of the machine's
	// memory, at most 512 MiB.
	MemoryBytes uint64
	// MemtableBytes is the size at which a store on disk writes a memtable to tables. Default: 64 MiB.
	MemtableBytes uint64
	// CacheBytes is the size of the cache of a store on disk. Default: 256 MiB.
	CacheBytes uint64
	// TableBytes is the size of the tables that a compaction makes. Default: 80 MiB.
	TableBytes uint64
	// CapacityBytes limits the memory of a store in memory. Default: that of the machine.
	CapacityBytes uint64
	// BatchOpsMax is the maximum number of changes in a batch. Default: 1,048,576.
	BatchOpsMax uint64
	// BatchBytesMax is the maximum length of all keys and values in a batch. Default: 1 GiB.
	BatchBytesMax uint64
	// Workers is the maximum number of threads that write and merge tables at once. Default: the processors, at most 4.
	Workers uint64
	// OpenFiles is the maximum number of table files that are kept open. Default: 4,096.
	OpenFiles uint64
	// Wait is how long a change of a store on disk waits for memory before it fails with [ErrBusy]. Default: 10 s.
	Wait time.Duration
	// BackgroundBytesPerSecond limits the rate at which tables are written and merged. Default: no limit.
	BackgroundBytesPerSecond uint64
	// Compression of tables, which the store remembers; nil leaves it as it is.
	Compression *Compression
	// HistoryBytes and HistoryAge, if one of them is not zero, keep the changes for [DB.Changes]: logs of this size and
	// age at most. Defaults: 1 GiB and 7 days.
	HistoryBytes uint64
	HistoryAge   time.Duration
	// LargeValues is the size in bytes from which on values of a store on disk stay in the log, so that they are written
	// once: at least 64; math.MaxUint64 for none. The store does not remember it. Default: 4,096.
	LargeValues uint64
	// EncryptionKey is the key of an encrypted store on disk: 32 random bytes. A new store with a key is encrypted, with
	// its checkpoints and backups; without the key nothing can be read. Later it opens only with its key: with another
	// one, or none, Open fails with [ErrInvalidArgument] and changes nothing. Default: the store is not encrypted.
	EncryptionKey []byte
	// LogDirectory is the directory of the log, usually on another device. Default: that of the store.
	LogDirectory string
}

// encoded lists numbers and values of the options that were set.
func (o *Options) encoded() []uint64 {
	var list []uint64
	set := func(number option, value uint64) {
		if value != 0 {
			list = append(list, uint64(number), value)
		}
	}
	set(optionDurability, uint64(o.Durability))
	set(optionMemoryBytes, o.MemoryBytes)
	set(optionMemtableBytes, o.MemtableBytes)
	set(optionCacheBytes, o.CacheBytes)
	set(optionTableBytes, o.TableBytes)
	set(optionCapacityBytes, o.CapacityBytes)
	set(optionBatchOpsMax, o.BatchOpsMax)
	set(optionBatchBytesMax, o.BatchBytesMax)
	set(optionLargeValues, o.LargeValues)
	set(optionWorkers, o.Workers)
	set(optionOpenFiles, o.OpenFiles)
	set(optionWaitMs, milliseconds(o.Wait))
	set(optionBackground, o.BackgroundBytesPerSecond)
	set(optionHistoryBytes, o.HistoryBytes)
	set(optionHistoryAgeMs, milliseconds(o.HistoryAge))
	if o.HistoryBytes != 0 || o.HistoryAge != 0 {
		set(optionHistory, 1)
	}
	if o.ReadOnly {
		set(optionReadOnly, 1)
	}
	if o.MustExist {
		list = append(list, uint64(optionCreate), 0)
	}
	if o.Compression != nil {
		list = append(list, uint64(optionCompression), uint64(*o.Compression))
	}
	return list
}

// milliseconds rounds up, so that a short time is not none. A negative one is none.
func milliseconds(d time.Duration) uint64 {
	if d <= 0 {
		return 0
	}
	return uint64((d + time.Millisecond - 1) / time.Millisecond)
}

var order = binary.NativeEndian

func sprintf(format string, arguments ...any) string { return fmt.Sprintf(format, arguments...) }
