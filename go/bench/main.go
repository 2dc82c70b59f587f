// The program bench measures Forrest beside the ordered stores that Go programs use: Pebble, bbolt and Badger.
//
// Each store runs in a process of its own, on the same disk, one after the other, several rounds. The table has the best
// of the rounds, in operations a second, because other programs only take from a machine. Every value that is read is
// checked.
//
// Without sync, a change of Forrest (level Buffered), bbolt and Badger survives the death of the process when its call
// returns; with Pebble, and Forrest's level Memory, the last changes may be lost. Synced changes survive a loss of power.
package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	batchPairs = 1000
	scanPairs  = 50
	valueBytes = 100
)

// The phases, in the order in which they run.
var phases = []string{
	"load, batches of 1,000 (pairs)",
	"set, sequential",
	"set, random",
	"set, synced",
	"get, random",
	"get, random, 2 goroutines",
	"scan of 50 pairs",
	"scan of all (pairs)",
}

var (
	count  = flag.Int("n", 1_000_000, "pairs")
	rounds = flag.Int("rounds", 3, "rounds")
	only   = flag.String("stores", "", "names of the stores, with commas; default: all")
	place  = flag.String("dir", "", "directory for the stores; default: the system's for temporary files")
	record = flag.String("record", "", "file to write the table to")
	one    = flag.String("one", "", "run this store in this process, for the program itself")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	if *one != "" {
		rates, err := run(*one, *place, *count)
		if err != nil {
			log.Fatalf("%s: %v", *one, err)
		}
		if err := json.NewEncoder(os.Stdout).Encode(rates); err != nil {
			log.Fatal(err)
		}
		return
	}
	table, err := compare()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(table)
	if *record != "" {
		if err := os.WriteFile(*record, []byte(table), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

func compare() (string, error) {
	names := strings.Split(*only, ",")
	if *only == "" {
		names = nil
		for _, s := range stores {
			names = append(names, s.name)
		}
	}
	all := map[string][][]float64{}
	for round := range *rounds {
		for _, name := range names {
			dir, err := os.MkdirTemp(*place, "forrest-bench-")
			if err != nil {
				return "", err
			}
			command := exec.Command(os.Args[0], "-one", name, "-dir", dir, "-n", fmt.Sprint(*count))
			command.Stderr = os.Stderr
			out, err := command.Output()
			if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
				return "", fmt.Errorf("%s: %w", name, err)
			}
			var rates []float64
			if err := json.Unmarshal(out, &rates); err != nil {
				return "", err
			}
			fmt.Fprintf(os.Stderr, "round %d, %s: %.0f\n", round+1, name, rates)
			all[name] = append(all[name], rates)
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%-32s", "operations per second")
	for _, name := range names {
		fmt.Fprintf(&text, " %21s", name)
	}
	for i, phase := range phases {
		fmt.Fprintf(&text, "\n%-32s", phase)
		for _, name := range names {
			var rates []float64
			for _, round := range all[name] {
				rates = append(rates, round[i])
			}
			fmt.Fprintf(&text, " %21.0f", slices.Max(rates))
		}
	}
	head := fmt.Sprintf("# go/bench: %d pairs, keys of 16 bytes, values of %d, best of %d rounds; %s, %s/%s, %d processors\n"+
		"# cd go/bench && go run . -n %d -rounds %d\n\n",
		*count, valueBytes, *rounds, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), *count, *rounds)
	return head + text.String() + "\n", nil
}

// makeKey is the key of a number: 16 bytes in the order of the numbers.
func makeKey(to []byte, number int) []byte {
	to = binary.BigEndian.AppendUint64(to[:0], uint64(number))
	return append(to, "forrestk"...)
}

// values are random bytes, into which the number of a pair is written.
type values struct {
	random []byte
	value  [valueBytes]byte
}

func newValues() *values {
	random := rand.NewChaCha8([32]byte{1})
	v := &values{random: make([]byte, 1<<20)}
	_, _ = random.Read(v.random)
	return v
}

func (v *values) of(number int) []byte {
	copy(v.value[:], v.random[(number*31)%(len(v.random)-valueBytes):])
	binary.BigEndian.PutUint64(v.value[:], uint64(number))
	return v.value[:]
}

// run measures one store. The rates are in the order of the phases.
func run(name, dir string, n int) ([]float64, error) {
	var open func(path string) (store, error)
	for _, s := range stores {
		if s.name == name {
			open = s.open
		}
	}
	if open == nil {
		return nil, errors.New("there is no such store")
	}
	random := rand.New(rand.NewPCG(7, 7))
	shuffled := random.Perm(n)
	var rates []float64
	timed := func(operations int, body func() error) error {
		start := time.Now()
		err := body()
		rates = append(rates, float64(operations)/time.Since(start).Seconds())
		return err
	}
	v := newValues()
	var key []byte
	loaded := filepath.Join(dir, "loaded")
	s, err := open(loaded)
	if err != nil {
		return nil, err
	}
	if err := timed(n, func() error {
		for at := 0; at < n; at += batchPairs {
			var pairs []pair
			for _, number := range shuffled[at:min(at+batchPairs, n)] {
				pairs = append(pairs, pair{makeKey(nil, number), slices.Clone(v.of(number))})
			}
			if err := s.batch(pairs); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}

	singles := n / 4
	ascending, err := open(filepath.Join(dir, "ascending"))
	if err != nil {
		return nil, err
	}
	if err := timed(singles, func() error {
		for number := range singles {
			key = makeKey(key, number)
			if err := ascending.set(key, v.of(number), false); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if err := ascending.close(); err != nil {
		return nil, err
	}
	setRandom := func(operations int, sync bool) error {
		return timed(operations, func() error {
			for range operations {
				number := random.IntN(n)
				key = makeKey(key, number)
				if err := s.set(key, v.of(number), sync); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := errors.Join(setRandom(singles, false), setRandom(min(500, n), true)); err != nil {
		return nil, err
	}

	// Reads are of a store that was opened again.
	if err := s.close(); err != nil {
		return nil, err
	}
	if s, err = open(loaded); err != nil {
		return nil, err
	}
	gets := n / 2
	for _, goroutines := range []int{1, 2} {
		if err := timed(gets*goroutines, func() error { return getAll(s, n, gets, goroutines) }); err != nil {
			return nil, err
		}
	}
	scans := n / 20
	if err := timed(scans, func() error {
		for range scans {
			key = makeKey(key, random.IntN(n-min(scanPairs, n)+1))
			if err := checkedScan(s, key, scanPairs, min(scanPairs, n)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if err := timed(n, func() error { return checkedScan(s, nil, 0, n) }); err != nil {
		return nil, err
	}
	return rates, s.close()
}

func checkedScan(s store, from []byte, limit, expected int) error {
	pairs, bytes, err := s.scan(from, limit)
	if err == nil && (pairs != expected || bytes != expected*(16+valueBytes)) {
		err = fmt.Errorf("a scan found %d pairs of %d bytes, expected %d", pairs, bytes, expected)
	}
	return err
}

// getAll reads random pairs in some goroutines.
func getAll(s store, n, gets, goroutines int) error {
	var group sync.WaitGroup
	failed := make([]error, goroutines)
	for id := range goroutines {
		group.Add(1)
		go func() {
			defer group.Done()
			random := rand.New(rand.NewPCG(uint64(id), 9))
			var key, value []byte
			for range gets {
				number := random.IntN(n)
				key = makeKey(key, number)
				var err error
				if value, err = s.get(value[:0], key); err != nil {
					failed[id] = err
					return
				}
				if len(value) != valueBytes || binary.BigEndian.Uint64(value) != uint64(number) {
					failed[id] = fmt.Errorf("the value of %d is of another pair", number)
					return
				}
			}
		}()
	}
	group.Wait()
	return errors.Join(failed...)
}
