package main

import (
	"bytes"
	"context"
	"errors"

	"forrest.invalid/forrest"
	"github.com/cockroachdb/pebble/v2"
	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"go.etcd.io/bbolt"
)

// All stores get the same memory, compress nothing, and otherwise have their own defaults.
const (
	cacheBytes    = 256 << 20
	memtableBytes = 64 << 20
)

type pair struct{ key, value []byte }

// store is what is measured. A sync is a change that survives a loss of power when it returns.
type store interface {
	set(key, value []byte, sync bool) error
	batch(pairs []pair) error
	// get appends the value.
	get(to []byte, key []byte) ([]byte, error)
	// scan reads pairs from a key on, at most this many, and returns how many there are and the sum of their lengths.
	scan(from []byte, limit int) (pairs, bytes int, err error)
	close() error
}

// stores are opened in a directory.
var stores = []struct {
	name string
	open func(path string) (store, error)
}{
	{"forrest", func(path string) (store, error) { return openForrest(path, forrest.Buffered) }},
	{"forrest, level Memory", func(path string) (store, error) { return openForrest(path, forrest.Memory) }},
	{"pebble", openPebble},
	{"bbolt", openBbolt},
	{"badger", openBadger},
}

type forrestStore struct{ db *forrest.DB }

func openForrest(path string, durability forrest.Durability) (store, error) {
	db, err := forrest.Open(path, &forrest.Options{
		Durability: durability, CacheBytes: cacheBytes, MemtableBytes: memtableBytes,
	})
	return forrestStore{db}, err
}

func (s forrestStore) set(key, value []byte, sync bool) error {
	if !sync {
		return s.db.Set(key, value)
	}
	var batch forrest.Batch
	batch.Set(key, value)
	return s.db.WriteWith(&batch, forrest.Sync)
}

func (s forrestStore) batch(pairs []pair) error {
	var batch forrest.Batch
	for _, p := range pairs {
		batch.Set(p.key, p.value)
	}
	return s.db.Write(&batch)
}

func (s forrestStore) get(to []byte, key []byte) ([]byte, error) { return s.db.AppendValue(to, key) }

func (s forrestStore) scan(from []byte, limit int) (pairs, bytes int, err error) {
	for pair, err := range s.db.Range(context.Background(), forrest.Bounds{Start: from, Limit: limit, Borrow: true}) {
		if err != nil {
			return pairs, bytes, err
		}
		pairs++
		bytes += len(pair.Key) + len(pair.Value)
	}
	return pairs, bytes, nil
}

func (s forrestStore) close() error { return s.db.Close() }

type pebbleStore struct{ db *pebble.DB }

// quiet drops messages that are no errors.
type quiet struct{ pebble.Logger }

func (quiet) Infof(string, ...any) {}

func openPebble(path string) (store, error) {
	cache := pebble.NewCache(cacheBytes)
	defer cache.Unref()
	opts := &pebble.Options{Cache: cache, MemTableSize: memtableBytes, Logger: quiet{pebble.DefaultLogger}}
	opts.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	db, err := pebble.Open(path, opts)
	return pebbleStore{db}, err
}

func (s pebbleStore) set(key, value []byte, sync bool) error {
	if sync {
		return s.db.Set(key, value, pebble.Sync)
	}
	return s.db.Set(key, value, pebble.NoSync)
}

func (s pebbleStore) batch(pairs []pair) error {
	batch := s.db.NewBatch()
	for _, p := range pairs {
		if err := batch.Set(p.key, p.value, nil); err != nil {
			return err
		}
	}
	return batch.Commit(pebble.NoSync)
}

func (s pebbleStore) get(to []byte, key []byte) ([]byte, error) {
	value, closer, err := s.db.Get(key)
	if err != nil {
		return to, err
	}
	to = append(to, value...)
	return to, closer.Close()
}

func (s pebbleStore) scan(from []byte, limit int) (pairs, bytes int, err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from})
	if err != nil {
		return 0, 0, err
	}
	for ok := it.First(); ok && (limit == 0 || pairs < limit); ok = it.Next() {
		pairs++
		bytes += len(it.Key()) + len(it.Value())
	}
	return pairs, bytes, errors.Join(it.Error(), it.Close())
}

func (s pebbleStore) close() error { return s.db.Close() }

type bboltStore struct{ db *bbolt.DB }

var bucket = []byte("b")

func openBbolt(path string) (store, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		return nil, err
	}
	return bboltStore{db}, db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bucket)
		return err
	})
}

func (s bboltStore) set(key, value []byte, sync bool) error {
	s.db.NoSync = !sync
	return s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put(key, value) })
}

func (s bboltStore) batch(pairs []pair) error {
	return s.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucket)
		for _, p := range pairs {
			if err := b.Put(p.key, p.value); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s bboltStore) get(to []byte, key []byte) ([]byte, error) {
	err := s.db.View(func(tx *bbolt.Tx) error {
		value := tx.Bucket(bucket).Get(key)
		if value == nil {
			return errors.New("not found")
		}
		to = append(to, value...)
		return nil
	})
	return to, err
}

func (s bboltStore) scan(from []byte, limit int) (pairs, bytes int, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		cursor := tx.Bucket(bucket).Cursor()
		for k, v := cursor.Seek(from); k != nil && (limit == 0 || pairs < limit); k, v = cursor.Next() {
			pairs++
			bytes += len(k) + len(v)
		}
		return nil
	})
	return pairs, bytes, err
}

func (s bboltStore) close() error { return s.db.Close() }

type badgerStore struct{ db *badger.DB }

func openBadger(path string) (store, error) {
	opts := badger.DefaultOptions(path).WithLoggingLevel(badger.ERROR).WithCompression(options.None)
	db, err := badger.Open(opts.WithBlockCacheSize(cacheBytes).WithMemTableSize(memtableBytes))
	return badgerStore{db}, err
}

func (s badgerStore) set(key, value []byte, sync bool) error {
	// Badger keeps what a transaction is given until it is committed.
	err := s.db.Update(func(tx *badger.Txn) error { return tx.Set(bytes.Clone(key), bytes.Clone(value)) })
	if err == nil && sync {
		err = s.db.Sync()
	}
	return err
}

func (s badgerStore) batch(pairs []pair) error {
	batch := s.db.NewWriteBatch()
	defer batch.Cancel()
	for _, p := range pairs {
		if err := batch.Set(p.key, p.value); err != nil {
			return err
		}
	}
	return batch.Flush()
}

func (s badgerStore) get(to []byte, key []byte) ([]byte, error) {
	err := s.db.View(func(tx *badger.Txn) error {
		item, err := tx.Get(key)
		if err != nil {
			return err
		}
		return item.Value(func(value []byte) error {
			to = append(to, value...)
			return nil
		})
	})
	return to, err
}

func (s badgerStore) scan(from []byte, limit int) (pairs, bytes int, err error) {
	err = s.db.View(func(tx *badger.Txn) error {
		opts := badger.DefaultIteratorOptions
		if limit > 0 {
			opts.PrefetchSize = min(limit, opts.PrefetchSize)
		}
		it := tx.NewIterator(opts)
		defer it.Close()
		for it.Seek(from); it.Valid() && (limit == 0 || pairs < limit); it.Next() {
			item := it.Item()
			if err := item.Value(func(value []byte) error {
				bytes += len(item.Key()) + len(value)
				return nil
			}); err != nil {
				return err
			}
			pairs++
		}
		return nil
	})
	return pairs, bytes, err
}

func (s badgerStore) close() error { return s.db.Close() }
