package ethdb

import (
	"errors"
	"path/filepath"
	"testing"

	"forrest.invalid/forrest"
	"github.com/ethereum/go-ethereum/ethdb"
	"github.com/ethereum/go-ethereum/ethdb/dbtest"
)

func open(t testing.TB, url string) *Store {
	db, err := forrest.Open(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return New(db)
}

// TestSuite runs go-ethereum's tests of key-value stores.
func TestSuite(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		dbtest.TestDatabaseSuite(t, func() ethdb.KeyValueStore { return open(t, "memory:") })
	})
	t.Run("disk", func(t *testing.T) {
		dbtest.TestDatabaseSuite(t, func() ethdb.KeyValueStore { return open(t, filepath.Join(t.TempDir(), "store")) })
	})
}

func BenchmarkSuite(b *testing.B) {
	dbtest.BenchDatabaseSuite(b, func() ethdb.KeyValueStore { return open(b, filepath.Join(b.TempDir(), "store")) })
}

// writer has no DeleteRange.
type writer struct{ ethdb.KeyValueWriter }

func TestWhatTheSuiteLeavesOut(t *testing.T) {
	for _, url := range []string{"memory:", filepath.Join(t.TempDir(), "store")} {
		store := open(t, url)
		batch := store.NewBatchWithSize(100)
		err := errors.Join(batch.Put([]byte("a"), nil), batch.Delete([]byte("b")), batch.DeleteRange([]byte("c"), nil))
		if err != nil || batch.ValueSize() != 3 {
			t.Fatal(err, batch.ValueSize())
		}
		if err := batch.Replay(writer{store}); err == nil {
			t.Fatal("a range was deleted without DeleteRange")
		}
		if err := batch.Replay(store); err != nil {
			t.Fatal(err)
		}
		iterator := store.NewIterator(nil, nil)
		if !iterator.Next() || string(iterator.Key()) != "a" || len(iterator.Value()) != 0 || iterator.Next() {
			t.Fatal(iterator.Error())
		}
		iterator.Release()
		iterator.Release()
		if iterator.Next() || iterator.Key() != nil || iterator.Value() != nil {
			t.Fatal("a released iterator goes on")
		}
		stat, err := store.Stat()
		if err := errors.Join(err, store.SyncKeyValue(), store.Compact(nil, nil)); err != nil || stat == "" {
			t.Fatal(err)
		}
		open := store.NewIterator(nil, nil)
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		if open.Next() || !errors.Is(open.Error(), forrest.ErrClosed) {
			t.Fatal(open.Error())
		}
		open.Release()
		after := store.NewIterator(nil, nil)
		if after.Next() || !errors.Is(after.Error(), forrest.ErrClosed) || after.Key() != nil || after.Value() != nil {
			t.Fatal(after.Error())
		}
		after.Release()
		if err := store.Put(nil, nil); !errors.Is(err, forrest.ErrClosed) {
			t.Fatal(err)
		}
	}
}
