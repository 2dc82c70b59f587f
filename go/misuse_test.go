package forrest

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// misused calls everything of what was closed, or never opened. Each call fails with ErrClosed.
func misused(t *testing.T, db *DB, keyspace *Keyspace, snapshot *Snapshot) {
	t.Helper()
	ctx := context.Background()
	full := &Batch{}
	full.Set(b("k"), nil)
	calls := map[string]error{
		"Add":             second(db.Add(b("k"), 1)),
		"Begin":           second(db.Begin()),
		"Capabilities":    second(db.Capabilities()),
		"Checkpoint":      db.Checkpoint("x"),
		"Clear":           db.Clear(),
		"Compact":         db.Compact(),
		"CompactRange":    db.CompactRange(nil, nil),
		"CompareAndSwap":  second(db.CompareAndSwap(b("k"), nil, nil)),
		"Count":           second(db.Count(Bounds{})),
		"Delete":          db.Delete(b("k")),
		"DeletePrefix":    db.DeletePrefix(b("k")),
		"DeleteRange":     db.DeleteRange(nil, nil),
		"DropKeyspace":    db.DropKeyspace("k"),
		"Flush":           db.Flush(),
		"Get":             second(db.Get(b("k"))),
		"GetMany":         second(db.GetMany(b("k"))),
		"Has":             second(db.Has(b("k"))),
		"Ingest":          second(db.Ingest()),
		"NewBlob":         second(db.NewBlob(b("k"), 0)),
		"OpenBlob":        second(db.OpenBlob(b("k"))),
		"DeleteBlob":      db.DeleteBlob(b("k")),
		"Keyspace":        second(db.Keyspace("k")),
		"Keyspaces":       second(db.Keyspaces()),
		"Merge":           db.Merge(b("k"), nil),
		"Metrics":         second(db.Metrics()),
		"Resume":          db.Resume(),
		"Set":             db.Set(b("k"), nil),
		"SetCompression":  db.SetCompression(LZ4),
		"SetMemoryBytes":  db.SetMemoryBytes(1 << 30),
		"SetMergeOp":      db.SetMergeOperator("sum"),
		"Snapshot":        second(db.Snapshot()),
		"Stats":           second(db.Stats()),
		"Sync":            db.Sync(),
		"Update":          db.Update(ctx, func(*Tx) error { return nil }),
		"Write":           db.Write(full),
		"keyspace Get":    second(keyspace.Get(b("k"))),
		"keyspace Set":    keyspace.Set(b("k"), nil),
		"keyspace Snap":   second(keyspace.Snapshot()),
		"snapshot Get":    second(snapshot.Get(b("k"))),
		"snapshot Keysp":  second(snapshot.Keyspace("k")),
		"snapshot Seq":    second(snapshot.Sequence()),
		"snapshot Count":  second(snapshot.Count(Bounds{})),
		"snapshot Append": second(snapshot.AppendValue(nil, b("k"))),
	}
	_, _, calls["Approximate"] = db.Approximate(Bounds{})
	for _, err := range db.Range(ctx, Bounds{}) {
		calls["Range"] = err
	}
	for _, err := range db.Keys(ctx, Bounds{}) {
		calls["Keys"] = err
	}
	for _, err := range db.Changes(ctx, 0, Default) {
		calls["Changes"] = err
	}
	cursor := db.Cursor(Bounds{})
	equal(t, cursor.First() || cursor.Last() || cursor.Seek(nil), false)
	calls["Cursor"] = cursor.Err()
	for name, err := range calls {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: expected ErrClosed, got %v", name, err)
		}
	}
	equal(t, len(calls), 48)
	must(t, keyspace.Close())
	must(t, snapshot.Close())
	must(t, db.Close())
	must(t, db.Close())
}

func TestMisuse(t *testing.T) {
	onHomes(t, nil, func(t *testing.T, db *DB) {
		must(t, db.Set(b("k"), nil))
		keyspace, err := db.Keyspace("k")
		must(t, err)
		snapshot, err := db.Snapshot()
		must(t, err)
		tx, err := db.Begin()
		must(t, err)
		ingest, err := db.Ingest()
		must(t, err)
		blobs, err := db.Keyspace("blobs")
		must(t, err)
		writer, err := blobs.NewBlob(b("k"), 0)
		must(t, err)
		must(t, second(writer.Write(b("bytes"))))
		must(t, writer.Finish())
		blob, err := blobs.OpenBlob(b("k"))
		must(t, err)
		writer, err = blobs.NewBlob(b("k"), 0)
		must(t, err)
		cursor := db.Cursor(Bounds{})
		equal(t, cursor.First(), true)
		for _, err := range db.Range(context.Background(), Bounds{}) {
			must(t, err)
			// Closing in the middle of a range is an end without a pair, or an error; it is no crash.
			must(t, db.Close())
		}
		equal(t, cursor.Next(), false)
		is(t, cursor.Err(), ErrClosed, "closed")
		misusedTx(t, tx)
		is(t, ingest.Put(nil, nil), ErrClosed, "closed")
		is(t, second(writer.Write(nil)), ErrClosed, "closed")
		is(t, writer.Finish(), ErrClosed, "closed")
		is(t, second(blob.Read(make([]byte, 1))), ErrClosed, "closed")
		must(t, blob.Close())
		must(t, writer.Close())
		misused(t, db, keyspace, snapshot)
	})
	misused(t, &DB{}, &Keyspace{}, &Snapshot{})
	misusedTx(t, &Tx{})
	is(t, (&Ingest{}).Put(nil, nil), ErrClosed, "")
	is(t, second((&BlobWriter{}).Write(nil)), ErrClosed, "")
	is(t, second((&Blob{}).Read(make([]byte, 1))), io.EOF, "")
	must(t, (&Blob{}).Close())
	must(t, (*DB)(nil).Close())
	equal(t, (&Cursor{}).First(), false)
}

func misusedTx(t *testing.T, tx *Tx) {
	t.Helper()
	db := open(t, "memory:", nil)
	calls := []error{
		second(tx.Get(nil)), second(tx.GetForUpdate(nil)), second(tx.Has(nil)), tx.Lock(nil), tx.Set(nil, nil),
		tx.Delete(nil), tx.DeleteRange(nil, nil), tx.Add(nil, 1), second(tx.Savepoint()), tx.RollbackTo(0),
		tx.SetLockWait(time.Second), tx.Commit(), tx.CommitWith(Sync), tx.On(db),
	}
	for _, err := range tx.Range(Bounds{}) {
		calls = append(calls, err)
	}
	equal(t, len(calls), 15)
	for i, err := range calls {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("call %d: expected ErrClosed, got %v", i, err)
		}
	}
	must(t, tx.Rollback())
}

func TestForgottenStoresAreClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	func() {
		db, err := Open(path, nil)
		must(t, err)
		must(t, db.Set(b("k"), b("v")))
		_, err = db.Snapshot()
		must(t, err)
		_, err = db.Keyspace("other")
		must(t, err)
		_, err = db.Begin()
		must(t, err)
	}()
	deadline := time.Now().Add(20 * time.Second)
	for {
		runtime.GC()
		db, err := Open(path, nil)
		if err == nil {
			value, err := db.Get(b("k"))
			must(t, err)
			equal(t, string(value), "v")
			must(t, db.Close())
			return
		}
		is(t, err, ErrBusy, "")
		if time.Now().After(deadline) {
			t.Fatal("the store was not closed")
		}
		runtime.Gosched()
	}
}

// TestKeyspacesKeepTheStore uses a keyspace after its store is unreachable.
func TestKeyspacesKeepTheStore(t *testing.T) {
	keyspace := func() *Keyspace {
		db, err := Open("memory:", nil)
		must(t, err)
		keyspace, err := db.Keyspace("k")
		must(t, err)
		return keyspace
	}()
	for range 20 {
		runtime.GC()
		must(t, keyspace.Set(b("k"), b("v")))
	}
	equal(t, pairs(t, keyspace, Bounds{}), "k=v")
}

// TestBytesBesidePointers has keys and values that lie in an object with pointers, which cgo must not take for theirs.
func TestBytesBesidePointers(t *testing.T) {
	onHomes(t, nil, func(t *testing.T, db *DB) {
		type entry struct {
			next  *entry
			key   [8]byte
			value [8]byte
			to    [64]byte
			text  string
		}
		e := &entry{next: &entry{}, key: [8]byte{1}, value: [8]byte{2}, text: "x"}
		e.next.next = e
		key, value := e.key[:], e.value[:]
		must(t, db.Set(key, value))
		got, err := db.AppendValue(e.to[:0], key)
		must(t, err)
		equal(t, &got[0] == &e.to[0] && string(got) == string(value), true)
		must(t, second(db.Has(key)))
		must(t, second(db.GetMany(key, value)))
		must(t, second(db.CompareAndSwap(key, value, value)))
		must(t, second(db.Count(Bounds{Start: key})))
		must(t, db.Update(context.Background(), func(tx *Tx) error {
			return errors.Join(second(tx.Get(key)), tx.Set(value, key), tx.Delete(key), tx.DeleteRange(key, key))
		}))
		must(t, db.Delete(value))
		must(t, second(db.Add(key, 1)))
		must(t, db.DeleteRange(key, value))
		equal(t, pairs(t, db, Bounds{}), "")
	})
}
