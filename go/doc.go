// Package forrest is an ordered key-value store, in memory, on disk or in kernel memory: libforrest for Go.
//
// Keys and values are bytes, and keys are ordered by their unsigned bytes. [Open] opens a store, which reads and changes
// its keyspace "default"; [DB.Keyspace] opens others, and [DB.Snapshot] keeps a state of all. [DB.Range] iterates, a
// [Batch] applies changes at one instant, and [DB.Update] runs a transaction.
//
// # Goroutines
//
// Everything here but a [Batch] and a [Cursor] may be used by many goroutines at once. A transaction and an ingest let
// them take turns. A call is one call of C, which occupies a thread of the system until it returns. A context appears
// where a call can wait for long, or many calls are made: [DB.Update], [DB.Range] and [DB.Changes].
//
// # Memory
//
// Arguments are copied before a call returns. Results belong to the caller. The pairs of a range share the memory of a
// page of at most 64 KiB, which is freed after the last of them: clone what is kept for long (bytes.Clone).
//
// # Errors
//
// Compare errors with errors.Is and [ErrNotFound], [ErrClosed] and so on. An [Error] has the library's message and, for
// a batch, the number of the change. Misuse is an error as well: whatever was closed returns [ErrClosed].
//
// # Durability
//
// A change has the durability of [Options] when its call returns; [DB.WriteWith] and [Tx.CommitWith] choose another
// one, and [DB.Sync] makes all changes before it survive a loss of power.
//
// # Closing
//
// Close ends a store with everything that was opened through it. What the program forgets, the garbage collector
// closes some time after it is unreachable; a store on disk stays locked until then.
package forrest
