// Package avalanche keeps the data of an Avalanche node in Forrest: avalanchego's database.Database.
//
// Batches are applied at one instant, and iterators read a snapshot. An absent key is database.ErrNotFound, and what
// was closed database.ErrClosed.
package avalanche

import (
	"context"
	"errors"

	"forrest.invalid/forrest"
	"github.com/ava-labs/avalanchego/database"
)

// Database is a database.Database. Many goroutines may use it at once.
type Database struct{ db *forrest.DB }

var _ database.Database = (*Database)(nil)

// New returns a database in the keyspace "default" of a store, which belongs to it then: Close closes it.
func New(db *forrest.DB) *Database { return &Database{db} }

// theirs is an error as avalanchego knows it.
func theirs(err error) error {
	switch {
	case errors.Is(err, forrest.ErrNotFound):
		return database.ErrNotFound
	case errors.Is(err, forrest.ErrClosed):
		return database.ErrClosed
	default:
		return err
	}
}

// Close closes the store. To close it again fails with database.ErrClosed.
func (d *Database) Close() error {
	if _, err := d.db.Capabilities(); err != nil {
		return theirs(err)
	}
	return theirs(d.db.Close())
}

// HealthCheck returns the store's statistics, or an error if it is closed.
func (d *Database) HealthCheck(context.Context) (interface{}, error) {
	stats, err := d.db.Stats()
	if err != nil {
		return nil, theirs(err)
	}
	return stats, nil
}

// Has tells whether a key exists.
func (d *Database) Has(key []byte) (bool, error) {
	found, err := d.db.Has(key)
	return found, theirs(err)
}

// Get returns the value of a key, or database.ErrNotFound.
func (d *Database) Get(key []byte) ([]byte, error) {
	value, err := d.db.Get(key)
	return value, theirs(err)
}

// Put sets the value of a key.
func (d *Database) Put(key []byte, value []byte) error { return theirs(d.db.Set(key, value)) }

// Delete removes a key, if it exists.
func (d *Database) Delete(key []byte) error {
	if err := theirs(d.db.Delete(key)); err != database.ErrNotFound {
		return err
	}
	return nil
}

// Compact merges the tables that may have keys of a range. Nil is no limit. In memory there is nothing to do.
func (d *Database) Compact(start []byte, limit []byte) error {
	if err := d.db.CompactRange(start, limit); !errors.Is(err, forrest.ErrUnsupported) {
		return theirs(err)
	}
	return nil
}

// NewBatch returns an empty batch.
func (d *Database) NewBatch() database.Batch { return &batch{db: d.db} }

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

func (b *batch) Size() int             { return b.batch.Bytes() }
func (b *batch) Write() error          { return theirs(b.db.Write(&b.batch)) }
func (b *batch) Reset()                { b.batch.Reset() }
func (b *batch) Inner() database.Batch { return b }

func (b *batch) Replay(w database.KeyValueWriterDeleter) error {
	for op := range b.batch.Ops() {
		var err error
		if op.Kind == forrest.OpSet {
			err = w.Put(op.Key, op.Value)
		} else {
			err = w.Delete(op.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// NewIterator iterates over all keys.
func (d *Database) NewIterator() database.Iterator { return d.iterator(forrest.Bounds{}) }

// NewIteratorWithStart iterates over the keys from a key on.
func (d *Database) NewIteratorWithStart(start []byte) database.Iterator {
	return d.iterator(forrest.Bounds{Start: start})
}

// NewIteratorWithPrefix iterates over the keys that begin with a prefix.
func (d *Database) NewIteratorWithPrefix(prefix []byte) database.Iterator {
	return d.iterator(forrest.Bounds{Prefix: prefix})
}

// NewIteratorWithStartAndPrefix iterates over the keys from a key on that begin with a prefix.
func (d *Database) NewIteratorWithStartAndPrefix(start, prefix []byte) database.Iterator {
	return d.iterator(forrest.Bounds{Start: start, Prefix: prefix})
}

func (d *Database) iterator(in forrest.Bounds) database.Iterator {
	snapshot, err := d.db.Snapshot()
	if err != nil {
		return &database.IteratorError{Err: theirs(err)}
	}
	return &iterator{db: d.db, snapshot: snapshot, cursor: snapshot.Cursor(in)}
}

// iterator iterates over a snapshot. Its pair stays when the database is closed.
type iterator struct {
	db        *forrest.DB
	snapshot  *forrest.Snapshot
	cursor    *forrest.Cursor
	pair      forrest.Pair
	isStarted bool
	isEnded   bool
	err       error
}

func (i *iterator) Next() bool {
	if i.isEnded {
		i.pair = forrest.Pair{}
		return false
	}
	var moved bool
	if i.isStarted {
		moved = i.cursor.Next()
	} else {
		i.isStarted = true
		moved = i.cursor.First()
	}
	i.err = theirs(i.cursor.Err())
	i.isEnded = !moved
	i.pair = forrest.Pair{Key: i.cursor.Key(), Value: i.cursor.Value()}
	return moved
}

func (i *iterator) Error() error  { return i.err }
func (i *iterator) Key() []byte   { return i.pair.Key }
func (i *iterator) Value() []byte { return i.pair.Value }

func (i *iterator) Release() {
	// An iterator whose database was closed says so, also after this.
	if _, err := i.db.Capabilities(); err != nil && i.err == nil {
		i.err = theirs(err)
	}
	i.isEnded = true
	_ = i.cursor.Close()
	_ = i.snapshot.Close()
}
