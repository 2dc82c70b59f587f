// Package ethdb keeps the key-value data of go-ethereum in Forrest: an ethdb.KeyValueStore.
//
// Batches are applied at one instant. Iterators read a snapshot. Deleting a range is one change, which takes the same
// time for any number of keys, and never fails with ethdb.ErrTooManyKeys. An absent key is [forrest.ErrNotFound], and
// what was closed [forrest.ErrClosed].
package ethdb

import (
	"bytes"
	"errors"
	"fmt"

	"forrest.invalid/forrest"
	"github.com/ethereum/go-ethereum/ethdb"
)

// Store is an ethdb.KeyValueStore. Many goroutines may use it at once.
type Store struct{ db *forrest.DB }

var _ ethdb.KeyValueStore = (*Store)(nil)

// New returns a store in the keyspace "default" of a database, which belongs to the store then: Close closes it.
func New(db *forrest.DB) *Store { return &Store{db} }

// Close closes the database.
func (s *Store) Close() error { return s.db.Close() }

// Has tells whether a key exists.
func (s *Store) Has(key []byte) (bool, error) { return s.db.Has(key) }

// Get returns the value of a key, or forrest.ErrNotFound.
func (s *Store) Get(key []byte) ([]byte, error) { return s.db.Get(key) }

// Put sets the value of a key.
func (s *Store) Put(key []byte, value []byte) error { return s.db.Set(key, value) }

// Delete removes a key, if it exists.
func (s *Store) Delete(key []byte) error {
	if err := s.db.Delete(key); !errors.Is(err, forrest.ErrNotFound) {
		return err
	}
	return nil
}

// DeleteRange removes all keys from start up to, but without, end. Nil is no limit.
func (s *Store) DeleteRange(start, end []byte) error { return s.db.DeleteRange(start, end) }

// Stat returns statistics as text.
func (s *Store) Stat() (string, error) {
	stats, err := s.db.Stats()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Forrest %s: about %d keys, %d tables of %d bytes, %d bytes of memory for nodes, %d for the cache",
		forrest.LibraryVersion(), stats.Keys, stats.Tables, stats.TableBytes, stats.ReservedBytes, stats.CacheBytes), nil
}

// SyncKeyValue makes all changes before it survive a loss of power, if the store is on disk.
func (s *Store) SyncKeyValue() error { return s.db.Sync() }

// Compact merges the tables that may have keys of a range. Nil is no limit. In memory there is nothing to do.
func (s *Store) Compact(start []byte, limit []byte) error {
	if err := s.db.CompactRange(start, limit); !errors.Is(err, forrest.ErrUnsupported) {
		return err
	}
	return nil
}

// NewBatch returns an empty batch.
func (s *Store) NewBatch() ethdb.Batch { return &batch{db: s.db} }

// NewBatchWithSize returns an empty batch; it grows as needed.
func (s *Store) NewBatchWithSize(int) ethdb.Batch { return s.NewBatch() }

// NewIterator iterates over a snapshot of the keys that begin with a prefix, from prefix and start on.
func (s *Store) NewIterator(prefix []byte, start []byte) ethdb.Iterator {
	snapshot, err := s.db.Snapshot()
	if err != nil {
		return &iterator{err: err}
	}
	from := append(bytes.Clone(prefix), start...)
	return &iterator{snapshot: snapshot, cursor: snapshot.Cursor(forrest.Bounds{Start: from, Prefix: prefix, Borrow: true})}
}

// batch is changes that Write applies at one instant.
type batch struct {
	db    *forrest.DB
	batch forrest.Batch
}

func (b *batch) Put(key, value []byte) error {
	b.batch.Set(key, value)
	return nil
}

func (b *batch) Delete(key []byte) error {
	b.batch.Delete(key)
	return nil
}

func (b *batch) DeleteRange(start, end []byte) error {
	b.batch.DeleteRange(start, end)
	return nil
}

func (b *batch) ValueSize() int { return b.batch.Bytes() }
func (b *batch) Write() error   { return b.db.Write(&b.batch) }
func (b *batch) Reset()         { b.batch.Reset() }
func (b *batch) Close()         { b.batch = forrest.Batch{} }

func (b *batch) Replay(w ethdb.KeyValueWriter) error {
	for op := range b.batch.Ops() {
		var err error
		switch op.Kind {
		case forrest.OpSet:
			err = w.Put(op.Key, op.Value)
		case forrest.OpDelete:
			err = w.Delete(op.Key)
		default:
			ranges, ok := w.(ethdb.KeyValueRangeDeleter)
			if !ok {
				return fmt.Errorf("replaying a batch that deletes a range: %T has no DeleteRange", w)
			}
			err = ranges.DeleteRange(op.Key, op.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// iterator iterates over a snapshot.
type iterator struct {
	snapshot  *forrest.Snapshot
	cursor    *forrest.Cursor
	isStarted bool
	err       error
}

func (i *iterator) Next() bool {
	if i.cursor == nil || i.err != nil {
		return false
	}
	moved := false
	if i.isStarted {
		moved = i.cursor.Next()
	} else {
		i.isStarted = true
		moved = i.cursor.First()
	}
	i.err = i.cursor.Err()
	return moved
}

func (i *iterator) Error() error { return i.err }

func (i *iterator) Key() []byte {
	if i.cursor == nil {
		return nil
	}
	return i.cursor.Key()
}

func (i *iterator) Value() []byte {
	if i.cursor == nil {
		return nil
	}
	return i.cursor.Value()
}

func (i *iterator) Release() {
	if i.cursor != nil {
		_ = i.cursor.Close()
		_ = i.snapshot.Close()
		i.cursor = nil
	}
}
