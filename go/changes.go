package forrest

import (
	"context"
	"errors"
	"iter"
	"runtime"
)

// ChangeKind is what happened. Later versions may know more.
type ChangeKind int32

// The kinds of changes.
const (
	// ChangeSet: the key has this value.
	ChangeSet ChangeKind = 1
	// ChangeDelete: the key is not there.
	ChangeDelete ChangeKind = 2
	// ChangeDeleteRange: no key from Key up to, but without, Value is there; if Value is nil, no key from Key on.
	ChangeDeleteRange ChangeKind = 3
	// ChangeCreateKeyspace: the keyspace was created, and is empty.
	ChangeCreateKeyspace ChangeKind = 4
	// ChangeDropKeyspace: the keyspace was dropped, with all its keys.
	ChangeDropKeyspace ChangeKind = 5
	// ChangeIngest: an ingest may have added pairs with keys from Key to Value, both included. Read the range.
	ChangeIngest ChangeKind = 6
)

// Change is a change of a store.
type Change struct {
	// Sequence is its number. Numbers ascend from 1, and some are left out.
	Sequence uint64
	// Keyspace is the name of the keyspace.
	Keyspace string
	// Kind is what happened.
	Kind ChangeKind
	// EndsBatch is true for the last change of a batch, and for one that was made alone.
	EndsBatch bool
	// Key is the key, or the first one of a range; nil if the whole keyspace is concerned.
	Key []byte
	// Value is the value, or the end of a range; nil if there is none.
	Value []byte
}

// changesWaitMs is how long one call waits for a change: how late the end of a context may be noticed.
const changesWaitMs = 50

// Changes returns the changes of the store after a sequence number, each as soon as it has this durability. It waits for
// more until the context ends, whose error is the last one. The store was opened with [Options.HistoryBytes] or
// [Options.HistoryAge]. [ErrGone] if some changes are no longer kept.
func (db *DB) Changes(ctx context.Context, since uint64, durability Durability) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		defer runtime.KeepAlive(db)
		h, err := db.h.changes(since, durability)
		if err != nil {
			yield(Change{}, err)
			return
		}
		defer func() { _ = h.close() }()
		for {
			if ctx != nil && ctx.Err() != nil {
				yield(Change{}, context.Cause(ctx))
				return
			}
			sequence, encoded, err := h.changesNext(changesWaitMs)
			if errors.Is(err, ErrNotFound) {
				continue
			}
			if err != nil {
				yield(Change{}, err)
				return
			}
			if !yield(decoded(sequence, encoded), nil) {
				return
			}
		}
	}
}

// decoded is a change of what fgo_changes_next has written.
func decoded(sequence uint64, encoded []byte) Change {
	change := Change{
		Sequence:  sequence,
		Kind:      ChangeKind(order.Uint32(encoded)),
		EndsBatch: order.Uint32(encoded[4:]) == 1,
	}
	rest := encoded[8:]
	part := func() []byte {
		length := order.Uint64(rest)
		rest = rest[8:]
		if length == ^uint64(0) {
			return nil
		}
		bytes := rest[:length:length]
		rest = rest[length:]
		return bytes
	}
	change.Keyspace = string(part())
	change.Key = part()
	change.Value = part()
	return change
}
