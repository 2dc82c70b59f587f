// Package datastore keeps the blocks and records of IPFS in Forrest: a Datastore of go-datastore.
//
// It is a Batching, a TxnDatastore, a PersistentDatastore, a CheckedDatastore and a GCDatastore as well. A batch is
// applied at one instant. A query reads a snapshot, and reads only the keys if nothing else is asked for; the order of
// keys costs nothing, both ways. Close the results of each query. An absent key is datastore.ErrNotFound, and what was
// closed [forrest.ErrClosed].
package datastore

import (
	"context"
	"errors"
	"iter"

	"forrest.invalid/forrest"
	ds "github.com/ipfs/go-datastore"
	"github.com/ipfs/go-datastore/query"
)

// Datastore is a datastore in the keyspace "default" of a database. Many goroutines may use it at once.
type Datastore struct{ db *forrest.DB }

var (
	_ ds.Batching            = (*Datastore)(nil)
	_ ds.TxnDatastore        = (*Datastore)(nil)
	_ ds.PersistentDatastore = (*Datastore)(nil)
	_ ds.CheckedDatastore    = (*Datastore)(nil)
	_ ds.GCDatastore         = (*Datastore)(nil)
)

// ErrReadOnly is the error of a change in a transaction that only reads.
var ErrReadOnly = errors.New("the transaction is read-only")

// New returns a datastore in a database, which belongs to the datastore then: Close closes it.
func New(db *forrest.DB) *Datastore { return &Datastore{db} }

// Close closes the database.
func (d *Datastore) Close() error { return d.db.Close() }

// Get returns the value of a key, or datastore.ErrNotFound.
func (d *Datastore) Get(ctx context.Context, key ds.Key) ([]byte, error) {
	return got(ctx, key, d.db.Get)
}

func got(ctx context.Context, key ds.Key, get func([]byte) ([]byte, error)) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	value, err := get(key.Bytes())
	if errors.Is(err, forrest.ErrNotFound) {
		err = ds.ErrNotFound
	}
	return value, err
}

// Has tells whether a key exists.
func (d *Datastore) Has(ctx context.Context, key ds.Key) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	return d.db.Has(key.Bytes())
}

// GetSize returns the length of a value, which is read for that. It is -1 if there is none.
func (d *Datastore) GetSize(ctx context.Context, key ds.Key) (int, error) {
	return sizeOf(d.Get(ctx, key))
}

func sizeOf(value []byte, err error) (int, error) {
	if err != nil {
		return -1, err
	}
	return len(value), nil
}

// Put sets the value of a key.
func (d *Datastore) Put(ctx context.Context, key ds.Key, value []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.db.Set(key.Bytes(), value)
}

// Delete removes a key, if it exists.
func (d *Datastore) Delete(ctx context.Context, key ds.Key) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := d.db.Delete(key.Bytes()); !errors.Is(err, forrest.ErrNotFound) {
		return err
	}
	return nil
}

// Sync makes all changes before it survive a loss of power, if the store is on disk.
func (d *Datastore) Sync(ctx context.Context, _ ds.Key) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.db.Sync()
}

// DiskUsage returns the bytes of all tables.
func (d *Datastore) DiskUsage(context.Context) (uint64, error) {
	stats, err := d.db.Stats()
	return stats.TableBytes, err
}

// Check verifies the checksums of all files.
func (d *Datastore) Check(context.Context) error { return ifSupported(d.db.Verify()) }

// CollectGarbage merges all tables, so that deleted and replaced values take no space.
func (d *Datastore) CollectGarbage(context.Context) error { return ifSupported(d.db.Compact()) }

// ifSupported is nil where a store in memory has nothing to do.
func ifSupported(err error) error {
	if errors.Is(err, forrest.ErrUnsupported) {
		return nil
	}
	return err
}

// Query returns the pairs of a snapshot. Close the results.
func (d *Datastore) Query(ctx context.Context, q query.Query) (query.Results, error) {
	snapshot, err := d.db.Snapshot()
	if err != nil {
		return nil, err
	}
	p := planned(q)
	var pairs iter.Seq2[forrest.Pair, error]
	if p.keysSuffice {
		pairs = withoutValues(snapshot.Keys(ctx, p.bounds))
	} else {
		pairs = snapshot.Range(ctx, p.bounds)
	}
	next, stop := iter.Pull2(pairs)
	results := p.results(next, func() error {
		stop()
		return snapshot.Close()
	})
	return results, nil
}

func withoutValues(keys iter.Seq2[[]byte, error]) iter.Seq2[forrest.Pair, error] {
	return func(yield func(forrest.Pair, error) bool) {
		for key, err := range keys {
			if !yield(forrest.Pair{Key: key}, err) {
				return
			}
		}
	}
}

// plan is what of a query the range does; `rest` is left to go-datastore.
type plan struct {
	query, rest query.Query
	bounds      forrest.Bounds
	keysSuffice bool
}

func planned(q query.Query) plan {
	p := plan{query: q, rest: q}
	// A prefix selects what lies below a key, and not the key.
	if prefix := ds.NewKey(q.Prefix).String(); q.Prefix != "" && prefix != "/" {
		p.bounds.Prefix = []byte(prefix + "/")
	}
	p.rest.Prefix = ""
	if len(q.Orders) > 0 {
		switch q.Orders[0].(type) {
		case query.OrderByKey, *query.OrderByKey:
			p.rest.Orders = nil
		case query.OrderByKeyDescending, *query.OrderByKeyDescending:
			p.rest.Orders = nil
			p.bounds.Reverse = true
		}
	}
	p.keysSuffice = q.KeysOnly && !q.ReturnsSizes && len(q.Filters) == 0 && len(p.rest.Orders) == 0
	if len(q.Filters) == 0 && len(p.rest.Orders) == 0 && q.Limit > 0 {
		p.bounds.Limit = q.Offset + q.Limit
	}
	return p
}

func (p plan) results(next func() (forrest.Pair, error, bool), end func() error) query.Results {
	results := query.ResultsFromIterator(p.query, query.Iterator{
		Next: func() (query.Result, bool) {
			pair, err, ok := next()
			if !ok {
				return query.Result{}, false
			}
			if err != nil {
				return query.Result{Error: err}, true
			}
			entry := query.Entry{Key: string(pair.Key), Size: len(pair.Value)}
			if p.keysSuffice {
				entry.Size = -1
			} else if !p.query.KeysOnly || len(p.query.Filters) > 0 || len(p.rest.Orders) > 0 {
				entry.Value = pair.Value
			}
			return query.Result{Entry: entry}, true
		},
		Close: end,
	})
	results = query.NaiveQueryApply(p.rest, results)
	if p.query.KeysOnly && (len(p.query.Filters) > 0 || len(p.rest.Orders) > 0) {
		// The values were for filters and orders.
		full := results
		results = query.ResultsFromIterator(p.query, query.Iterator{
			Next: func() (query.Result, bool) {
				result, ok := full.NextSync()
				result.Value = nil
				return result, ok
			},
			Close: full.Close,
		})
	}
	return query.ResultsReplaceQuery(results, p.query)
}

// Batch returns a batch, which Commit applies at one instant.
func (d *Datastore) Batch(context.Context) (ds.Batch, error) { return &batch{db: d.db}, nil }

type batch struct {
	db    *forrest.DB
	batch forrest.Batch
}

func (b *batch) Put(_ context.Context, key ds.Key, value []byte) error {
	b.batch.Set(key.Bytes(), value)
	return nil
}

func (b *batch) Delete(_ context.Context, key ds.Key) error {
	b.batch.Delete(key.Bytes())
	return nil
}

func (b *batch) Commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return b.db.Write(&b.batch)
}

// NewTransaction begins a transaction. Committing it fails with forrest.ErrConflict, and changes nothing, if something
// that it read has changed. What a query returned, or would have returned, counts as read.
func (d *Datastore) NewTransaction(_ context.Context, readOnly bool) (ds.Txn, error) {
	tx, err := d.db.Begin()
	if err != nil {
		return nil, err
	}
	return &transaction{tx, readOnly}, nil
}

type transaction struct {
	tx       *forrest.Tx
	readOnly bool
}

func (t *transaction) Get(ctx context.Context, key ds.Key) ([]byte, error) {
	return got(ctx, key, t.tx.Get)
}

func (t *transaction) Has(_ context.Context, key ds.Key) (bool, error) { return t.tx.Has(key.Bytes()) }

func (t *transaction) GetSize(ctx context.Context, key ds.Key) (int, error) {
	return sizeOf(t.Get(ctx, key))
}

func (t *transaction) Put(_ context.Context, key ds.Key, value []byte) error {
	if t.readOnly {
		return ErrReadOnly
	}
	return t.tx.Set(key.Bytes(), value)
}

func (t *transaction) Delete(_ context.Context, key ds.Key) error {
	if t.readOnly {
		return ErrReadOnly
	}
	return t.tx.Delete(key.Bytes())
}

// Query reads all at once, because changing between several ranges of a transaction costs a search each time.
func (t *transaction) Query(ctx context.Context, q query.Query) (query.Results, error) {
	p := planned(q)
	p.keysSuffice = false
	var pairs []forrest.Pair
	for pair, err := range t.tx.Range(p.bounds) {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		pairs = append(pairs, pair)
	}
	next := func() (pair forrest.Pair, err error, ok bool) {
		if len(pairs) == 0 {
			return pair, nil, false
		}
		pair, pairs = pairs[0], pairs[1:]
		return pair, nil, true
	}
	return p.results(next, func() error { return nil }), nil
}

func (t *transaction) Commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return t.tx.Commit()
}

func (t *transaction) Discard(context.Context) { _ = t.tx.Rollback() }
