package raft

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"forrest.invalid/forrest"
	"github.com/hashicorp/raft"
	raftbench "github.com/hashicorp/raft/bench"
)

func open(t testing.TB, url string) (*forrest.DB, *Store) {
	db, err := forrest.Open(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	store, err := New(db)
	if err != nil {
		t.Fatal(err)
	}
	return db, store
}

func onHomes(t *testing.T, run func(t *testing.T, db *forrest.DB, s *Store)) {
	for home, url := range map[string]string{"memory": "memory:", "disk": filepath.Join(t.TempDir(), "store")} {
		t.Run(home, func(t *testing.T) {
			db, store := open(t, url)
			run(t, db, store)
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// benches are hashicorp/raft's.
var benches = map[string]func(b *testing.B, s *Store){
	"FirstIndex":  func(b *testing.B, s *Store) { raftbench.FirstIndex(b, s) },
	"LastIndex":   func(b *testing.B, s *Store) { raftbench.LastIndex(b, s) },
	"GetLog":      func(b *testing.B, s *Store) { raftbench.GetLog(b, s) },
	"StoreLog":    func(b *testing.B, s *Store) { raftbench.StoreLog(b, s) },
	"StoreLogs":   func(b *testing.B, s *Store) { raftbench.StoreLogs(b, s) },
	"DeleteRange": func(b *testing.B, s *Store) { raftbench.DeleteRange(b, s) },
	"Set":         func(b *testing.B, s *Store) { raftbench.Set(b, s) },
	"Get":         func(b *testing.B, s *Store) { raftbench.Get(b, s) },
	"SetUint64":   func(b *testing.B, s *Store) { raftbench.SetUint64(b, s) },
	"GetUint64":   func(b *testing.B, s *Store) { raftbench.GetUint64(b, s) },
}

func BenchmarkSuite(b *testing.B) {
	for name, bench := range benches {
		b.Run(name, func(b *testing.B) {
			_, store := open(b, filepath.Join(b.TempDir(), "store"))
			bench(b, store)
		})
	}
}

// TestSuite runs all of raft/bench a few times each. They fail if a call does.
func TestSuite(t *testing.T) {
	before := flag.Lookup("test.benchtime").Value.String()
	must(t, flag.Set("test.benchtime", "20x"))
	defer func() { must(t, flag.Set("test.benchtime", before)) }()
	for name, bench := range benches {
		t.Run(name, func(t *testing.T) {
			onHomes(t, func(t *testing.T, _ *forrest.DB, s *Store) {
				result := testing.Benchmark(func(b *testing.B) { bench(b, s) })
				if result.N != 20 {
					t.Fatalf("it ran %d times", result.N)
				}
			})
		})
	}
}

func TestLogs(t *testing.T) {
	onHomes(t, func(t *testing.T, db *forrest.DB, s *Store) {
		ends := func(first, last uint64) {
			t.Helper()
			f, err := s.FirstIndex()
			l, err2 := s.LastIndex()
			if f != first || l != last || err != nil || err2 != nil {
				t.Fatalf("the log is from %d to %d (%v, %v), expected from %d to %d", f, l, err, err2, first, last)
			}
		}
		ends(0, 0)
		logs := []*raft.Log{
			{Index: 3, Term: 1, Type: raft.LogCommand, Data: []byte("data")},
			{Index: 4, Term: math.MaxUint64, Type: raft.LogConfiguration, Extensions: []byte("more"), AppendedAt: time.Unix(-5, 7)},
			{Index: 300, Term: 2, Type: raft.LogBarrier, Data: bytes.Repeat([]byte("d"), 5000), Extensions: []byte{0}, AppendedAt: time.Unix(1<<40, 0)},
			{Index: math.MaxUint64},
		}
		must(t, s.StoreLogs(nil))
		must(t, s.StoreLogs(logs))
		ends(3, math.MaxUint64)
		for _, log := range logs {
			got := raft.Log{Data: []byte("old"), Extensions: []byte("old")}
			must(t, s.GetLog(log.Index, &got))
			if !got.AppendedAt.Equal(log.AppendedAt) {
				t.Fatal(got.AppendedAt, log.AppendedAt)
			}
			got.AppendedAt = log.AppendedAt
			if !reflect.DeepEqual(&got, log) {
				t.Fatalf("expected %+v, got %+v", log, got)
			}
		}
		if err := s.GetLog(5, &raft.Log{}); !errors.Is(err, raft.ErrLogNotFound) {
			t.Fatal(err)
		}
		must(t, s.StoreLog(&raft.Log{Index: 4, Term: 9}))
		must(t, s.DeleteRange(5, 4))
		must(t, s.DeleteRange(300, math.MaxUint64))
		ends(3, 4)
		must(t, s.DeleteRange(0, 3))
		ends(4, 4)

		value, err := s.Get([]byte("k"))
		number, err2 := s.GetUint64([]byte("k"))
		if len(value) != 0 || number != 0 || err != nil || err2 != nil {
			t.Fatal(value, number, err, err2)
		}
		must(t, s.Set([]byte("k"), []byte("v")))
		must(t, s.SetUint64([]byte("n"), 7))
		value, err = s.Get([]byte("k"))
		number, err2 = s.GetUint64([]byte("n"))
		if string(value) != "v" || number != 7 || err != nil || err2 != nil {
			t.Fatal(value, number, err, err2)
		}
		if _, err := s.GetUint64([]byte("k")); !errors.Is(err, forrest.ErrInvalidArgument) {
			t.Fatal(err)
		}
		// What another program has put there is an error.
		keyspace, err := db.Keyspace(logs0)
		must(t, err)
		for _, value := range [][]byte{nil, {2}, make([]byte, 26), append([]byte{1}, make([]byte, 24)...),
			append(append([]byte{1}, make([]byte, 21)...), 0, 0, 0, 9)} {
			must(t, keyspace.Set(indexKey(1), value))
			if err := s.GetLog(1, &raft.Log{}); !errors.Is(err, forrest.ErrCorrupt) {
				t.Fatal(value, err)
			}
		}
		must(t, keyspace.Set([]byte("\xff\xff"), nil))
		if _, err := s.LastIndex(); !errors.Is(err, forrest.ErrCorrupt) {
			t.Fatal(err)
		}
		must(t, s.Close())
		_, err = s.FirstIndex()
		for _, err := range []error{err, s.Set(nil, nil), s.StoreLogs(logs), s.GetLog(4, &raft.Log{})} {
			if !errors.Is(err, forrest.ErrClosed) {
				t.Fatal(err)
			}
		}
	})
}

const logs0 = "raft/logs"

// TestLogsAreKept opens a store again.
func TestLogsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	db, store := open(t, path)
	for i := range uint64(100) {
		must(t, store.StoreLog(&raft.Log{Index: 1 + i, Data: fmt.Append(nil, i)}))
	}
	must(t, store.DeleteRange(51, 100))
	must(t, store.SetUint64([]byte("term"), 5))
	must(t, db.Close())
	_, store = open(t, path)
	last, err := store.LastIndex()
	term, err2 := store.GetUint64([]byte("term"))
	if last != 50 || term != 5 || err != nil || err2 != nil {
		t.Fatal(last, term, err, err2)
	}
}
