package datastore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"forrest.invalid/forrest"
	ds "github.com/ipfs/go-datastore"
	"github.com/ipfs/go-datastore/query"
	dstest "github.com/ipfs/go-datastore/test"
)

var ctx = context.Background()

func onHomes(t *testing.T, run func(t *testing.T, d *Datastore)) {
	for home, url := range map[string]string{"memory": "memory:", "disk": filepath.Join(t.TempDir(), "store")} {
		t.Run(home, func(t *testing.T) {
			db, err := forrest.Open(url, nil)
			must(t, err)
			d := New(db)
			run(t, d)
			must(t, d.Close())
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestSuite runs go-datastore's tests.
func TestSuite(t *testing.T) {
	onHomes(t, func(t *testing.T, d *Datastore) { dstest.SubtestAll(t, d) })
}

// text is what a query returns.
func text(t *testing.T, r ds.Read, q query.Query) string {
	t.Helper()
	results, err := r.Query(ctx, q)
	must(t, err)
	entries, err := results.Rest()
	must(t, err)
	must(t, results.Close())
	must(t, results.Close())
	var all []string
	for _, entry := range entries {
		all = append(all, fmt.Sprintf("%s=%s,%d", entry.Key, entry.Value, entry.Size))
	}
	return strings.Join(all, " ")
}

func TestWhatTheSuiteLeavesOut(t *testing.T) {
	onHomes(t, func(t *testing.T, d *Datastore) {
		for i, key := range []string{"/a", "/a/1", "/a/2", "/ab", "/b"} {
			must(t, d.Put(ctx, ds.NewKey(key), []byte(fmt.Sprint(9-i))))
		}
		_, err := d.Get(ctx, ds.NewKey("/none"))
		size, missing := d.GetSize(ctx, ds.NewKey("/none"))
		if !errors.Is(err, ds.ErrNotFound) || !errors.Is(missing, ds.ErrNotFound) || size != -1 {
			t.Fatal(err, missing, size)
		}
		byValue := []query.Order{query.OrderByValue{}}
		value := []query.Filter{query.FilterValueCompare{Op: query.Equal, Value: []byte("7")}}
		for _, one := range []struct {
			q        query.Query
			expected string
		}{
			{query.Query{}, "/a=9,1 /a/1=8,1 /a/2=7,1 /ab=6,1 /b=5,1"},
			{query.Query{Prefix: "/"}, "/a=9,1 /a/1=8,1 /a/2=7,1 /ab=6,1 /b=5,1"},
			{query.Query{Prefix: "a"}, "/a/1=8,1 /a/2=7,1"},
			{query.Query{Prefix: "/a/", KeysOnly: true}, "/a/1=,-1 /a/2=,-1"},
			{query.Query{Prefix: "/a", KeysOnly: true, ReturnsSizes: true}, "/a/1=,1 /a/2=,1"},
			{query.Query{Orders: []query.Order{query.OrderByKeyDescending{}}, Offset: 1, Limit: 2}, "/ab=6,1 /a/2=7,1"},
			{query.Query{Orders: byValue, KeysOnly: true, Limit: 2}, "/b=,1 /ab=,1"},
			{query.Query{Filters: value, KeysOnly: true}, "/a/2=,1"},
			{query.Query{Filters: value, Offset: 1}, ""},
		} {
			if got := text(t, d, one.q); got != one.expected {
				t.Fatalf("%v: expected %s, got %s", one.q, one.expected, got)
			}
			tx, err := d.NewTransaction(ctx, true)
			must(t, err)
			got := text(t, tx, one.q)
			if got = strings.ReplaceAll(got, ",1", ""); got != strings.NewReplacer(",1", "", ",-1", "").Replace(one.expected) {
				t.Fatalf("%v in a transaction: expected %s, got %s", one.q, one.expected, got)
			}
			must(t, tx.Commit(ctx))
		}
		open, err := d.Query(ctx, query.Query{})
		must(t, err)
		must(t, d.Put(ctx, ds.NewKey("/later"), nil))
		if entries, err := open.Rest(); err != nil || len(entries) != 5 {
			t.Fatal(err, len(entries))
		}
		must(t, open.Close())
		must(t, d.Sync(ctx, ds.NewKey("/")))
		must(t, d.Check(ctx))
		must(t, d.CollectGarbage(ctx))
		_, err = d.DiskUsage(ctx)
		must(t, err)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err = d.Has(ended, ds.NewKey("/a"))
		for _, err := range []error{err, d.Put(ended, ds.NewKey("/x"), nil), d.Delete(ended, ds.NewKey("/a"))} {
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		results, err := d.Query(ended, query.Query{})
		must(t, err)
		if _, err := results.Rest(); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		must(t, results.Close())
	})
}

func TestTransactions(t *testing.T) {
	onHomes(t, func(t *testing.T, d *Datastore) {
		key, other := ds.NewKey("/k"), ds.NewKey("/other")
		must(t, d.Put(ctx, key, []byte("1")))
		tx, err := d.NewTransaction(ctx, false)
		must(t, err)
		must(t, tx.Put(ctx, other, []byte("22")))
		must(t, tx.Delete(ctx, key))
		size, err := tx.GetSize(ctx, other)
		found, err2 := tx.Has(ctx, key)
		if _, missing := tx.Get(ctx, key); !errors.Is(missing, ds.ErrNotFound) || size != 2 || found || err != nil || err2 != nil {
			t.Fatal(size, found, err, err2)
		}
		if got := text(t, d, query.Query{}); got != "/k=1,1" {
			t.Fatal(got)
		}
		must(t, tx.Commit(ctx))
		tx.Discard(ctx)
		if got := text(t, d, query.Query{}); got != "/other=22,2" {
			t.Fatal(got)
		}
		conflict, err := d.NewTransaction(ctx, false)
		must(t, err)
		text(t, conflict, query.Query{})
		must(t, d.Put(ctx, key, nil))
		must(t, conflict.Put(ctx, other, nil))
		if err := conflict.Commit(ctx); !errors.Is(err, forrest.ErrConflict) {
			t.Fatal(err)
		}
		reads, err := d.NewTransaction(ctx, true)
		must(t, err)
		if !errors.Is(reads.Put(ctx, key, nil), ErrReadOnly) || !errors.Is(reads.Delete(ctx, key), ErrReadOnly) {
			t.Fatal("a transaction that only reads has changed something")
		}
		reads.Discard(ctx)
		if _, err := reads.Get(ctx, key); !errors.Is(err, forrest.ErrClosed) {
			t.Fatal(err)
		}
		batch, err := d.Batch(ctx)
		must(t, err)
		must(t, batch.Put(ctx, key, nil))
		must(t, d.Close())
		if err := batch.Commit(ctx); !errors.Is(err, forrest.ErrClosed) {
			t.Fatal(err)
		}
		if _, err := d.Query(ctx, query.Query{}); !errors.Is(err, forrest.ErrClosed) {
			t.Fatal(err)
		}
	})
}
