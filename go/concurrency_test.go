package forrest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// TestGoroutines uses one store in many goroutines, and closes it meanwhile. Each call works, or fails with ErrClosed.
func TestGoroutines(t *testing.T) {
	onHomes(t, &Options{MemtableBytes: 1 << 20}, func(t *testing.T, db *DB) {
		var group sync.WaitGroup
		ended := func(err error) bool {
			if err != nil && !errors.Is(err, ErrClosed) && !errors.Is(err, ErrNotFound) {
				t.Error(err)
			}
			return errors.Is(err, ErrClosed)
		}
		started := make(chan struct{}, 6)
		run := func(body func(i int) error) {
			group.Add(1)
			go func() {
				defer group.Done()
				for i := 0; ; i++ {
					if i == 100 {
						started <- struct{}{}
					}
					if ended(body(i)) {
						return
					}
				}
			}()
		}
		key := func(i int) []byte { return b(fmt.Sprint(i % 500)) }
		run(func(i int) error { return db.Set(key(i), key(i)) })
		run(func(i int) error { return second(db.Get(key(i))) })
		run(func(i int) error {
			var batch Batch
			batch.Set(key(i), key(i))
			batch.Delete(key(i + 1))
			return db.Write(&batch)
		})
		run(func(int) error {
			for pair, err := range db.Range(context.Background(), Bounds{Limit: 50}) {
				if err != nil {
					return err
				}
				if string(pair.Key) != string(pair.Value) {
					t.Errorf("%q has %q", pair.Key, pair.Value)
				}
			}
			return nil
		})
		run(func(int) error {
			snapshot, err := db.Snapshot()
			if err != nil {
				return err
			}
			_, err = snapshot.Count(Bounds{})
			return errors.Join(err, snapshot.Close())
		})
		run(func(i int) error {
			return db.Update(context.Background(), func(tx *Tx) error { return tx.Set(key(i), key(i)) })
		})
		for range 6 {
			<-started
		}
		must(t, db.Close())
		group.Wait()
	})
}

// TestClosedMeansClosed: when Close returns, the store can be opened again, also if another goroutine has begun to
// close it.
func TestClosedMeansClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	for range 20 {
		db := open(t, path, nil)
		must(t, db.Set(b("k"), make([]byte, 1<<16)))
		first := make(chan error)
		go func() { first <- db.Close() }()
		for db.h.usable() == nil {
			runtime.Gosched()
		}
		must(t, db.Close())
		again, err := Open(path, nil)
		must(t, errors.Join(err, <-first))
		must(t, again.Close())
	}
}

// TestKilledProcesses kills a process that writes. What it was acknowledged is there.
func TestKilledProcesses(t *testing.T) {
	if path := os.Getenv("FORREST_KILLED"); path != "" {
		db, err := Open(path, nil)
		for i := 0; err == nil; i++ {
			err = db.Set(b(fmt.Sprintf("%08d", i)), b("value"))
			fmt.Println("set", i)
		}
		t.Fatal(err)
	}
	for round := range 5 {
		path := filepath.Join(t.TempDir(), "store")
		command := exec.Command(os.Args[0], "-test.run=^TestKilledProcesses$")
		command.Env = append(os.Environ(), "FORREST_KILLED="+path)
		out, err := command.StdoutPipe()
		must(t, err)
		must(t, command.Start())
		lines := bufio.NewScanner(out)
		last, wanted := -1, 100+500*round
		for lines.Scan() {
			var i int
			if n, _ := fmt.Sscanf(lines.Text(), "set %d", &i); n == 1 {
				last = i
			}
			if last == wanted {
				must(t, command.Process.Kill())
			}
		}
		err = command.Wait()
		equal(t, err != nil && strings.Contains(err.Error(), "killed"), true)
		db := open(t, path, nil)
		keys := 0
		for key, err := range db.Keys(context.Background(), Bounds{}) {
			must(t, err)
			equal(t, string(key), fmt.Sprintf("%08d", keys))
			keys++
		}
		equal(t, last >= wanted && keys > last, true)
		must(t, db.Close())
	}
}
