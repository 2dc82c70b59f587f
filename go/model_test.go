package forrest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

// model is what a keyspace should be.
type model map[string]string

// selected is what a range should return.
func (m model) selected(in Bounds) []string {
	var keys []string
	for key := range m {
		k := []byte(key)
		if bytes.Compare(k, in.Start) >= 0 && (in.End == nil || bytes.Compare(k, in.End) < 0) && bytes.HasPrefix(k, in.Prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	if in.Reverse {
		slices.Reverse(keys)
	}
	if in.Limit > 0 && len(keys) > in.Limit {
		keys = keys[:in.Limit]
	}
	return keys
}

// TestModel makes random changes and compares all reads with a map. FORREST_SEED replays a run.
func TestModel(t *testing.T) {
	seed := rand.Uint64()
	if text := os.Getenv("FORREST_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	onHomes(t, &Options{MemtableBytes: 64 << 10, CacheBytes: 8 << 20}, func(t *testing.T, db *DB) {
		defer func() {
			if t.Failed() {
				t.Logf("FORREST_SEED=%d", seed)
			}
		}()
		random := rand.New(rand.NewPCG(seed, 2))
		key := func() []byte {
			if random.IntN(50) == 0 {
				return nil
			}
			return b(fmt.Sprintf("%0*d", 1+random.IntN(3), random.IntN(400)))
		}
		maybe := func() []byte {
			if random.IntN(3) == 0 {
				return nil
			}
			return key()
		}
		value := func() []byte { return bytes.Repeat([]byte{byte(random.IntN(256))}, random.IntN(1<<random.IntN(14))) }
		bounds := func() Bounds {
			in := Bounds{Start: maybe(), End: maybe(), Reverse: random.IntN(2) == 0}
			if random.IntN(3) == 0 {
				in.Prefix = key()
			}
			if random.IntN(3) == 0 {
				in.Limit = 1 + random.IntN(20)
			}
			return in
		}
		now := model{}
		remove := func(start, end []byte) {
			for _, gone := range now.selected(Bounds{Start: start, End: end}) {
				delete(now, gone)
			}
		}
		for step := range 4000 {
			switch random.IntN(12) {
			case 0, 1, 2, 3:
				k, v := key(), value()
				must(t, db.Set(k, v))
				now[string(k)] = string(v)
			case 4:
				k := key()
				err := db.Delete(k)
				if _, ok := now[string(k)]; !ok {
					is(t, err, ErrNotFound, "")
				} else {
					must(t, err)
				}
				delete(now, string(k))
			case 5:
				var batch Batch
				for range random.IntN(10) {
					k, v := key(), value()
					batch.Set(k, v)
					now[string(k)] = string(v)
				}
				if random.IntN(10) == 0 {
					start, end := maybe(), key()
					batch.DeleteRange(start, end)
					remove(start, end)
				}
				must(t, db.Write(&batch))
			case 6:
				if random.IntN(20) == 0 {
					start, end := key(), maybe()
					must(t, db.DeleteRange(start, end))
					remove(start, end)
				}
			case 7:
				k := key()
				got, err := db.Get(k)
				expected, ok := now[string(k)]
				if errors.Is(err, ErrNotFound) != !ok || (ok && string(got) != expected) {
					t.Fatalf("step %d: key %q: %d bytes, %v", step, k, len(got), err)
				}
			case 8, 9:
				in := bounds()
				expected := now.selected(in)
				i := 0
				for pair, err := range db.Range(context.Background(), in) {
					must(t, err)
					if i == len(expected) || string(pair.Key) != expected[i] || string(pair.Value) != now[expected[i]] {
						t.Fatalf("step %d: pair %d of %+v is %q, expected of %q", step, i, in, pair.Key, expected)
					}
					i++
				}
				equal(t, i, len(expected))
				i = 0
				for k, err := range db.Keys(context.Background(), in) {
					must(t, err)
					if i == len(expected) || string(k) != expected[i] {
						t.Fatalf("step %d: key %d of %+v is %q, expected of %q", step, i, in, k, expected)
					}
					i++
				}
				equal(t, i, len(expected))
			case 10:
				walk(t, db, now, random, bounds(), key)
			case 11:
				if random.IntN(100) == 0 {
					must(t, db.Flush())
				}
			}
		}
	})
}

// walk moves a cursor at random, and compares each place with the model's.
func walk(t *testing.T, db *DB, now model, random *rand.Rand, in Bounds, key func() []byte) {
	in.Reverse, in.Limit = false, 0
	keys := now.selected(in)
	cursor := db.Cursor(in)
	place := -1
	for range 30 {
		var moved bool
		switch random.IntN(8) {
		case 0:
			moved, place = cursor.First(), 0
		case 1:
			moved, place = cursor.Last(), len(keys)-1
		case 2:
			k := key()
			moved = cursor.Seek(k)
			place, _ = slices.BinarySearch(keys, string(k))
		case 3:
			k := key()
			moved = cursor.SeekForPrev(k)
			found := false
			if place, found = slices.BinarySearch(keys, string(k)); !found {
				place--
			}
		case 4, 5:
			moved = cursor.Next()
			if place >= 0 {
				place++
			}
		default:
			moved = cursor.Prev()
			if place >= 0 {
				place--
			}
		}
		if place >= len(keys) {
			place = -1
		}
		must(t, cursor.Err())
		equal(t, moved, place >= 0)
		if moved {
			equal(t, string(cursor.Key()), keys[place])
			equal(t, string(cursor.Value()), now[keys[place]])
		}
	}
}
