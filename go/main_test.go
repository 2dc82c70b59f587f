package forrest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
)

// onHomes runs a test on a store in memory and on one on disk.
func onHomes(t *testing.T, options *Options, run func(t *testing.T, db *DB)) {
	for _, home := range []string{"memory", "disk"} {
		t.Run(home, func(t *testing.T) {
			url := "memory:"
			if home == "disk" {
				url = filepath.Join(t.TempDir(), "store")
			}
			db := open(t, url, options)
			run(t, db)
			if err := db.Close(); err != nil {
				t.Fatalf("closing: %v", err)
			}
		})
	}
}

func open(t *testing.T, url string, options *Options) *DB {
	t.Helper()
	db, err := Open(url, options)
	if err != nil {
		t.Fatalf("opening %s: %v", url, err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// is demands an error of a kind, whose text has a part.
func is(t *testing.T, err error, kind error, part string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), part) {
		t.Fatalf("expected the error %q with %q, got %v", kind, part, err)
	}
}

func b(text string) []byte { return []byte(text) }

// pairs writes the pairs of a range as text.
func pairs(t *testing.T, r Reader, in Bounds) string {
	t.Helper()
	var all []string
	for pair, err := range r.Range(context.Background(), in) {
		must(t, err)
		all = append(all, string(pair.Key)+"="+string(pair.Value))
	}
	return strings.Join(all, " ")
}

func equal[T comparable](t *testing.T, got, expected T) {
	t.Helper()
	if got != expected {
		t.Fatalf("expected %v, got %v", expected, got)
	}
}

func TestValues(t *testing.T) {
	onHomes(t, nil, func(t *testing.T, db *DB) {
		is(t, second(db.Get(b("oak"))), ErrNotFound, "not found")
		must(t, db.Set(b("oak"), b("Quercus robur")))
		must(t, db.Set(nil, nil))
		value, err := db.Get(b("oak"))
		must(t, err)
		equal(t, string(value), "Quercus robur")
		empty, err := db.Get([]byte{})
		must(t, err)
		if empty == nil || len(empty) != 0 {
			t.Fatalf("the empty value is %v", empty)
		}
		for _, length := range []int{1, 1023, 1024, 1025, 100_000, 3 << 20} {
			long := bytes.Repeat([]byte{byte(length)}, length)
			must(t, db.Set(b("long"), long))
			value, err := db.Get(b("long"))
			must(t, err)
			if !bytes.Equal(value, long) {
				t.Fatalf("a value of %d bytes came back as %d others", length, len(value))
			}
			value, err = db.AppendValue(b("before"), b("long"))
			must(t, err)
			if !bytes.Equal(value, append(b("before"), long...)) {
				t.Fatalf("a value of %d bytes was not appended", length)
			}
		}
		found, err := db.Has(b("oak"))
		must(t, err)
		equal(t, found, true)
		must(t, db.Delete(b("oak")))
		is(t, db.Delete(b("oak")), ErrNotFound, "not found")
		found, err = db.Has(b("oak"))
		must(t, err)
		equal(t, found, false)
		must(t, db.Set(b("a"), b("1")))
		many, err := db.GetMany(b("a"), b("nothing"), nil, b("long"))
		must(t, err)
		if string(many[0]) != "1" || many[1] != nil || many[2] == nil || len(many[2]) != 0 || len(many[3]) != 3<<20 {
			t.Fatalf("GetMany returned %d values, %q, %v, %v", len(many), many[0], many[1], many[2])
		}
		none, err := db.GetMany()
		must(t, err)
		equal(t, len(none), 0)
	})
}

func second[T any](_ T, err error) error { return err }

func TestRanges(t *testing.T) {
	onHomes(t, nil, func(t *testing.T, db *DB) {
		for _, key := range []string{"", "a", "a\x00", "a/1", "a/2", "b", "\xff", "\xff\xff"} {
			must(t, db.Set(b(key), b(fmt.Sprint(len(key)))))
		}
		for _, one := range []struct {
			in       Bounds
			expected string
		}{
			{Bounds{}, "=0 a=1 a\x00=2 a/1=3 a/2=3 b=1 \xff=1 \xff\xff=2"},
			{Bounds{Reverse: true}, "\xff\xff=2 \xff=1 b=1 a/2=3 a/1=3 a\x00=2 a=1 =0"},
			{Bounds{Start: b("a/2"), End: b("b")}, "a/2=3"},
			{Bounds{Start: b("b"), End: b("a")}, ""},
			{Bounds{End: []byte{}}, ""},
			{Bounds{Start: b("b"), Limit: 2}, "b=1 \xff=1"},
			{Bounds{Reverse: true, Limit: 1}, "\xff\xff=2"},
			{Bounds{Prefix: b("a/")}, "a/1=3 a/2=3"},
			{Bounds{Prefix: b("a/"), Start: b("a/1\x00"), End: b("z")}, "a/2=3"},
			{Bounds{Prefix: b("a/"), End: b("a/2"), Reverse: true}, "a/1=3"},
			{Bounds{Prefix: b("\xff")}, "\xff=1 \xff\xff=2"},
			{Bounds{Prefix: b("\xff"), Reverse: true}, "\xff\xff=2 \xff=1"},
			{Bounds{Prefix: b("c")}, ""},
		} {
			equal(t, pairs(t, db, one.in), one.expected)
			borrowed := one.in
			borrowed.Borrow = true
			equal(t, pairs(t, db, borrowed), one.expected)
			var keys []string
			for key, err := range db.Keys(context.Background(), one.in) {
				must(t, err)
				keys = append(keys, string(key)+"="+fmt.Sprint(len(key)))
			}
			equal(t, strings.Join(keys, " "), one.expected)
			if one.in.Limit == 0 {
				count, err := db.Count(one.in)
				must(t, err)
				equal(t, int(count), len(keys))
			}
		}
		_, _, err := db.Approximate(Bounds{Prefix: b("a")})
		must(t, err)
	})
}

// TestPages has pairs that fill pages exactly, that are larger than a page, and a range that changes meanwhile.
func TestPages(t *testing.T) {
	onHomes(t, nil, func(t *testing.T, db *DB) {
		var expected []string
		for i, length := range []int{0, 4096 - 12, 4096 - 11, 1, 200_000, 65536 - 12, 65536 - 11, 30_000, 30_000, 30_000} {
			key := fmt.Sprintf("%04d", i)
			must(t, db.Set(b(key), bytes.Repeat(b("v"), length)))
			expected = append(expected, fmt.Sprint(key, " ", length))
		}
		for i := 100; i < 2000; i++ {
			must(t, db.Set(b(fmt.Sprintf("%04d", i)), b("small")))
			expected = append(expected, fmt.Sprintf("%04d 5", i))
		}
		var forward, back []string
		for pair, err := range db.Range(context.Background(), Bounds{Borrow: true}) {
			must(t, err)
			forward = append(forward, fmt.Sprint(string(pair.Key), " ", len(pair.Value)))
		}
		cursor, at := db.Cursor(Bounds{Borrow: true}), len(expected)
		same := func() {
			t.Helper()
			equal(t, fmt.Sprint(string(cursor.Key()), " ", len(cursor.Value())), expected[at])
		}
		for ok := cursor.Last(); ok; ok = cursor.Prev() {
			at--
			same()
		}
		equal(t, at, 0)
		for ok := cursor.First(); ok; ok = cursor.Next() {
			same()
			at++
		}
		equal(t, at, len(expected))
		must(t, cursor.Close())
		equal(t, strings.Join(forward, "\n"), strings.Join(expected, "\n"))
		forward = nil
		for pair, err := range db.Range(context.Background(), Bounds{}) {
			must(t, err)
			forward = append(forward, fmt.Sprint(string(pair.Key), " ", len(pair.Value)))
			// What was passed may go.
			must(t, db.Delete(pair.Key))
		}
		for i, line := range expected {
			if i < len(forward) && forward[i] != line {
				t.Fatalf("expected %s, got %s", line, forward[i])
			}
		}
		equal(t, len(forward), len(expected))
		equal(t, pairs(t, db, Bounds{}), "")
		for i := 0; i < 2000; i++ {
			must(t, db.Set(b(fmt.Sprintf("%04d", i)), b("v")))
		}
		for key, err := range db.Keys(context.Background(), Bounds{Reverse: true}) {
			must(t, err)
			back = append(back, string(key))
		}
		equal(t, len(back), 2000)
		equal(t, back[0]+back[1000]+back[1999], "199909990000")
	})
}

// TestBorrowedPairs has a loop for whose pairs nothing is allocated.
func TestBorrowedPairs(t *testing.T) {
	onHomes(t, nil, func(t *testing.T, db *DB) {
		for i := range 3000 {
			must(t, db.Set(b(fmt.Sprintf("%04d", i)), make([]byte, 100)))
		}
		allocated := func(in Bounds) uint64 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			seen := 0
			for pair, err := range db.Range(context.Background(), in) {
				must(t, err)
				seen += len(pair.Value)
			}
			runtime.ReadMemStats(&after)
			equal(t, seen, 300_000)
			return after.TotalAlloc - before.TotalAlloc
		}
		allocated(Bounds{Borrow: true})
		if bytes := allocated(Bounds{Borrow: true}); bytes > 100_000 {
			t.Fatalf("%d bytes were allocated for pairs that are borrowed", bytes)
		}
		if bytes := allocated(Bounds{}); bytes < 300_000 {
			t.Fatalf("%d bytes were allocated for pairs that belong to the caller", bytes)
		}
	})
}

func TestRangesEndWithTheContext(t *testing.T) {
	db := open(t, "memory:", nil)
	for i := range 10_000 {
		must(t, db.Set(b(fmt.Sprint(i)), nil))
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	seen, last := 0, error(nil)
	for _, err := range db.Range(ctx, Bounds{}) {
		if err != nil {
			last = err
			continue
		}
		seen++
		cancel()
	}
	is(t, last, context.Canceled, "canceled")
	if seen == 0 || seen == 10_000 {
		t.Fatalf("%d pairs were seen", seen)
	}
}

func TestCursors(t *testing.T) {
	onHomes(t, nil, func(t *testing.T, db *DB) {
		for i := range 1000 {
			must(t, db.Set(b(fmt.Sprintf("%03d", i)), b(fmt.Sprint(i))))
		}
		cursor := db.Cursor(Bounds{Start: b("100"), End: b("900")})
		at := func(moved bool, key string) {
			t.Helper()
			must(t, cursor.Err())
			equal(t, string(cursor.Key()), key)
			equal(t, moved, key != "")
			equal(t, cursor.Valid(), moved)
		}
		at(cursor.Next(), "")
		at(cursor.First(), "100")
		at(cursor.Prev(), "")
		at(cursor.Prev(), "")
		at(cursor.Last(), "899")
		at(cursor.Prev(), "898")
		at(cursor.Next(), "899")
		at(cursor.Next(), "")
		at(cursor.Seek(b("5")), "500")
		at(cursor.Prev(), "499")
		at(cursor.Prev(), "498")
		at(cursor.Next(), "499")
		at(cursor.Next(), "500")
		at(cursor.Next(), "501")
		equal(t, string(cursor.Value()), "501")
		at(cursor.SeekForPrev(b("5")), "499")
		at(cursor.SeekForPrev(b("500")), "500")
		at(cursor.SeekForPrev(b("999")), "899")
		at(cursor.SeekForPrev(b("0")), "")
		at(cursor.Seek(b("0")), "100")
		at(cursor.Seek(b("900")), "")
		count := 0
		for ok := cursor.First(); ok; ok = cursor.Next() {
			count++
		}
		must(t, cursor.Err())
		equal(t, count, 800)
		for ok := cursor.Last(); ok; ok = cursor.Prev() {
			count--
		}
		equal(t, count, 0)
		must(t, cursor.Close())
		equal(t, cursor.First(), false)
		is(t, cursor.Err(), ErrClosed, "closed")
	})
}

func TestChangesOfKeys(t *testing.T) {
	onHomes(t, nil, func(t *testing.T, db *DB) {
		sum, err := db.Add(b("n"), 5)
		must(t, err)
		equal(t, sum, int64(5))
		sum, err = db.Add(b("n"), -7)
		must(t, err)
		equal(t, sum, int64(-2))
		must(t, db.Set(b("text"), b("no number")))
		is(t, second(db.Add(b("text"), 1)), ErrInvalidArgument, "counter")

		found, err := db.CompareAndSwap(b("k"), nil, b("first"))
		must(t, err)
		equal(t, found == nil, true)
		found, err = db.CompareAndSwap(b("k"), nil, b("second"))
		is(t, err, ErrMismatch, "mismatch")
		equal(t, string(found), "first")
		_, err = db.CompareAndSwap(b("k"), b("first"), []byte{})
		must(t, err)
		found, err = db.CompareAndSwap(b("k"), b("first"), b("x"))
		is(t, err, ErrMismatch, "mismatch")
		equal(t, found != nil && len(found) == 0, true)
		_, err = db.CompareAndSwap(b("k"), []byte{}, nil)
		must(t, err)
		found, err = db.CompareAndSwap(b("k"), b("y"), b("x"))
		is(t, err, ErrMismatch, "mismatch")
		equal(t, found == nil, true)

		must(t, db.Clear())
		for _, key := range []string{"a", "b/1", "b/2", "c", "d"} {
			must(t, db.Set(b(key), nil))
		}
		must(t, db.DeletePrefix(b("b/")))
		equal(t, pairs(t, db, Bounds{}), "a= c= d=")
		must(t, db.DeleteRange(b("c"), b("d")))
		equal(t, pairs(t, db, Bounds{}), "a= d=")
		must(t, db.DeleteRange(b("b"), nil))
		equal(t, pairs(t, db, Bounds{}), "a=")
		must(t, db.DeleteRange(nil, []byte{}))
		equal(t, pairs(t, db, Bounds{}), "a=")

		lists, err := db.Keyspace("lists")
		must(t, err)
		must(t, lists.SetMergeOperator("append"))
		must(t, lists.Merge(b("l"), b("one ")))
		must(t, lists.Merge(b("l"), b("two")))
		equal(t, pairs(t, lists, Bounds{}), "l=one two")
		is(t, db.Merge(b("l"), b("x")), ErrInvalidArgument, "operator")
	})
}

func TestBatches(t *testing.T) {
	onHomes(t, nil, func(t *testing.T, db *DB) {
		other, err := db.Keyspace("other")
		must(t, err)
		must(t, db.Set(b("gone"), nil))
		var batch Batch
		must(t, db.Write(&batch))
		batch.Set(b("a"), b("1"))
		batch.Set(b("b"), nil)
		batch.Delete(b("gone"))
		batch.Add(b("n"), 3)
		batch.DeleteRange(b("b"), b("c"))
		batch.CompareAndSwap(b("a"), b("1"), b("2"))
		batch.On(other)
		batch.Set(b("there"), b("x"))
		batch.DeletePrefix(b("none"))
		batch.DeleteRange(b("z"), nil)
		batch.On(nil)
		batch.Set(b("here"), b("y"))
		equal(t, batch.Len(), 10)
		equal(t, batch.Bytes(), 32)
		ops := ""
		for op := range batch.Ops() {
			ops += fmt.Sprintf("%d%q%q%q%d ", op.Kind, op.Key, op.Value, op.Expected, op.Delta)
		}
		equal(t, ops, `0"a""1"""0 0"b"""""0 1"gone"""""0 4"n"""""3 2"b""c"""0 5"a""2""1"0 0"there""x"""0 `+
			`2"none""nonf"""0 2"z"""""0 0"here""y"""0 `)
		for op := range batch.Ops() {
			equal(t, op.Kind, OpSet)
			break
		}
		must(t, db.Write(&batch))
		equal(t, pairs(t, db, Bounds{}), "a=2 here=y n=\x00\x00\x00\x00\x00\x00\x00\x03")
		equal(t, pairs(t, other, Bounds{}), "there=x")

		batch.Reset()
		equal(t, batch.Len()+batch.Bytes(), 0)
		batch.Set(b("never"), b("1"))
		batch.CompareAndSwap(b("a"), b("1"), b("3"))
		err = db.Write(&batch)
		is(t, err, ErrConditionFailed, "")
		var detail *Error
		equal(t, errors.As(err, &detail) && detail.Change == 1, true)
		batch.Reset()
		batch.Set(b("never"), nil)
		batch.On(other)
		batch.Set(b("never"), nil)
		batch.Set(make([]byte, 70_000), nil)
		err = db.Write(&batch)
		is(t, err, ErrLimit, "")
		equal(t, errors.As(err, &detail) && detail.Change == 2, true)
		found, err := db.Has(b("never"))
		must(t, err)
		equal(t, found, false)

		batch.Reset()
		batch.On(other)
		batch.Set(b("x"), nil)
		must(t, other.Close())
		is(t, db.Write(&batch), ErrClosed, "closed")
		batch.Reset()
		batch.On((*Keyspace)(nil))
		is(t, db.Write(&batch), ErrInvalidArgument, "")
	})
}

func TestSnapshotsAndKeyspaces(t *testing.T) {
	onHomes(t, nil, func(t *testing.T, db *DB) {
		trees, err := db.Keyspace("trees")
		must(t, err)
		must(t, trees.Set(b("oak"), b("1")))
		must(t, db.Set(b("k"), b("1")))
		snapshot, err := db.Snapshot()
		must(t, err)
		must(t, trees.Set(b("oak"), b("2")))
		must(t, db.Delete(b("k")))
		equal(t, pairs(t, snapshot, Bounds{}), "k=1")
		then, err := snapshot.Keyspace("trees")
		must(t, err)
		equal(t, pairs(t, then, Bounds{}), "oak=1")
		equal(t, pairs(t, trees, Bounds{}), "oak=2")
		names, err := db.Keyspaces()
		must(t, err)
		equal(t, strings.Join(names, ","), "default,trees")
		equal(t, trees.Name(), "trees")
		must(t, db.DropKeyspace("trees"))
		is(t, trees.Set(b("x"), nil), ErrInvalidArgument, "")
		is(t, db.DropKeyspace("trees"), ErrNotFound, "")
		is(t, db.DropKeyspace("default"), ErrInvalidArgument, "")
		equal(t, pairs(t, then, Bounds{}), "oak=1")
		stats, err := db.Stats()
		must(t, err)
		equal(t, stats.Snapshots > 0, true)
		must(t, snapshot.Close())
		is(t, second(snapshot.Get(b("k"))), ErrClosed, "closed")
		equal(t, pairs(t, then, Bounds{}), "oak=1")
	})
}

func TestLargeValuesStayInTheLog(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "store"), &Options{LargeValues: 4096})
	value := bytes.Repeat(b("value"), 2000)
	for i := range 100 {
		must(t, db.Set(b(fmt.Sprint(i)), value))
	}
	must(t, db.Flush())
	stats, err := db.Stats()
	must(t, err)
	equal(t, stats.ValueLogLiveBytes, uint64(100*len(value)))
	equal(t, stats.ValueLogBytes > stats.ValueLogLiveBytes && stats.TableBytes < 100_000, true)
	equal(t, stats.TableLiveBytes, stats.TableBytes)
	found, err := db.Get(b("7"))
	must(t, err)
	equal(t, string(found), string(value))
}

func TestEncryptedStoresNeedTheirKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	key, other := bytes.Repeat([]byte{7}, 32), bytes.Repeat([]byte{8}, 32)
	encrypted := func(key []byte) (*DB, error) { return Open(path, &Options{EncryptionKey: key}) }
	is(t, second(encrypted([]byte{})), ErrInvalidArgument, "32")
	is(t, second(encrypted(key[:31])), ErrInvalidArgument, "32")
	is(t, second(Open("memory:", &Options{EncryptionKey: key})), ErrUnsupported, "")
	db, err := encrypted(key)
	must(t, err)
	must(t, db.Set(b("the treasure"), b("lies under the oak")))
	must(t, db.RotateDataKey())
	must(t, db.Flush())
	is(t, db.RotateKey(nil), ErrInvalidArgument, "32")
	must(t, db.RotateKey(other))
	must(t, db.Close())
	is(t, db.RotateKey(key), ErrClosed, "")
	is(t, second(encrypted(key)), ErrInvalidArgument, "key")
	is(t, second(Open(path, nil)), ErrInvalidArgument, "encrypted")
	db, err = encrypted(other)
	must(t, err)
	value, err := db.Get(b("the treasure"))
	must(t, err)
	equal(t, string(value), "lies under the oak")
	must(t, db.Close())
	files, err := os.ReadDir(path)
	must(t, err)
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(path, file.Name()))
		must(t, err)
		equal(t, bytes.Contains(content, b("treasure")) || bytes.Contains(content, b("oak")), false)
	}
	plain := open(t, filepath.Join(t.TempDir(), "plain"), nil)
	is(t, plain.RotateKey(other), ErrInvalidArgument, "")
	is(t, plain.RotateDataKey(), ErrInvalidArgument, "")
}

func TestStoresAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	is(t, second(Open(path, &Options{MustExist: true})), ErrIO, "")
	lz4 := LZ4
	db := open(t, path, &Options{Durability: Sync, MemoryBytes: 64 << 20, Compression: &lz4})
	for i := range 1000 {
		must(t, db.Set(b(fmt.Sprint(i)), bytes.Repeat(b("v"), 100)))
	}
	is(t, second(Open(path, nil)), ErrBusy, "")
	must(t, db.Sync())
	must(t, db.Flush())
	must(t, db.Settle())
	must(t, db.Compact())
	must(t, db.CompactRange(b("1"), nil))
	must(t, db.Trim())
	must(t, db.Verify())
	must(t, db.Resume())
	must(t, db.SetMemoryBytes(96<<20))
	must(t, db.SetBackgroundBytesPerSecond(0))
	must(t, db.SetCompression(NoCompression))
	capabilities, err := db.Capabilities()
	must(t, err)
	equal(t, capabilities.Has(CanPersist|CanSync|CanCheckpoint|CanMerge), true)
	metrics, err := db.Metrics()
	must(t, err)
	equal(t, strings.Contains(metrics, "forrest_"), true)
	copied := filepath.Join(t.TempDir(), "copy")
	must(t, db.Checkpoint(copied))
	is(t, db.Checkpoint(copied), ErrInvalidArgument, "")
	reader := open(t, path, &Options{ReadOnly: true})
	must(t, db.Set(b("new"), nil))
	must(t, reader.Refresh())
	found, err := reader.Has(b("new"))
	must(t, err)
	equal(t, found, true)
	is(t, reader.Set(b("x"), nil), ErrUnsupported, "")
	must(t, reader.Close())
	must(t, db.Close())

	for path, expected := range map[string]int{path: 1001, copied: 1000} {
		db := open(t, path, &Options{MustExist: true})
		count, err := db.Count(Bounds{})
		must(t, err)
		equal(t, int(count), expected)
	}
	memory := open(t, "memory:", nil)
	is(t, memory.Verify(), ErrUnsupported, "")
	must(t, memory.Checkpoint(filepath.Join(t.TempDir(), "m")))
	equal(t, LibraryVersion() != "", true)
}

func TestBlobs(t *testing.T) {
	onHomes(t, nil, func(t *testing.T, db *DB) {
		blobs, err := db.Keyspace("blobs")
		must(t, err)
		content := make([]byte, 300_000)
		for i := range content {
			content[i] = byte(i * 7 / 3)
		}
		write := func(key string, content []byte) {
			writer, err := blobs.NewBlob(b(key), 4096)
			must(t, err)
			n, err := io.Copy(writer, iotest.OneByteReader(bytes.NewReader(content[:min(100, len(content))])))
			must(t, err)
			must(t, second(writer.Write(content[n:])))
			if len(content) > 1000 {
				is(t, second(blobs.OpenBlob(b(key))), ErrNotFound, "not found")
			}
			must(t, writer.Finish())
			is(t, second(writer.Write(b("more"))), ErrClosed, "closed")
			is(t, writer.Finish(), ErrClosed, "closed")
			must(t, writer.Close())
		}
		write("long", content)
		write("empty", nil)
		blob, err := blobs.OpenBlob(b("long"))
		must(t, err)
		equal(t, blob.Size(), int64(len(content)))
		must(t, iotest.TestReader(blob, content))
		write("long", b("another"))
		var wait sync.WaitGroup
		for i := range 4 {
			wait.Add(1)
			go func() {
				defer wait.Done()
				part := make([]byte, 1000)
				if n, err := blob.ReadAt(part, int64(i)*70_000); err != nil || !bytes.Equal(part[:n], content[i*70_000:][:1000]) {
					t.Errorf("%d bytes are read beside others, and %v", n, err)
				}
			}()
		}
		wait.Wait()
		equal(t, second(blob.ReadAt(make([]byte, 10), int64(len(content)-5))), io.EOF)
		must(t, blob.Close())
		must(t, blob.Close())
		is(t, second(blob.ReadAt(make([]byte, 1), 0)), ErrClosed, "closed")

		discarded, err := blobs.NewBlob(b("discarded"), 0)
		must(t, err)
		must(t, second(discarded.Write(content)))
		must(t, discarded.Close())
		for i := range 300 {
			write(fmt.Sprintf("many %03d", i), make([]byte, i))
		}
		list := func(in Bounds) (found []string) {
			for blob, err := range blobs.Blobs(context.Background(), in) {
				must(t, err)
				found = append(found, fmt.Sprintf("%s %d", blob.Key, blob.Bytes))
			}
			return found
		}
		equal(t, strings.Join(list(Bounds{End: b("many 002")}), ", "), "empty 0, long 7, many 000 0, many 001 1")
		equal(t, len(list(Bounds{Prefix: b("many")})), 300)
		equal(t, len(list(Bounds{Limit: 5})), 5)
		for _, err := range blobs.Blobs(context.Background(), Bounds{Reverse: true}) {
			is(t, err, ErrInvalidArgument, "ascending")
		}
		must(t, blobs.DeleteBlob(b("long")))
		is(t, blobs.DeleteBlob(b("long")), ErrNotFound, "not found")

		is(t, second(blobs.NewBlob(b("k"), 7)), ErrInvalidArgument, "")
		must(t, db.Set(b("pair"), b("value")))
		is(t, second(db.NewBlob(b("k"), 0)), ErrInvalidArgument, "")
	})
}

func TestIngests(t *testing.T) {
	onHomes(t, nil, func(t *testing.T, db *DB) {
		ingest, err := db.Ingest()
		must(t, err)
		must(t, ingest.Put(b("a"), b("1")))
		must(t, ingest.Put(b("c"), b("3")))
		is(t, ingest.Put(b("b"), b("2")), ErrInvalidArgument, "")
		equal(t, pairs(t, db, Bounds{}), "")
		count, err := ingest.Finish()
		must(t, err)
		equal(t, count, uint64(2))
		equal(t, pairs(t, db, Bounds{}), "a=1 c=3")
		is(t, ingest.Put(b("d"), nil), ErrClosed, "closed")
		is(t, second(ingest.Finish()), ErrClosed, "closed")
		must(t, ingest.Close())
	})
}

func TestChanges(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "store"), &Options{HistoryBytes: 1 << 20})
	must(t, db.Set(b("before"), nil))
	snapshot, err := db.Snapshot()
	must(t, err)
	since, err := snapshot.Sequence()
	must(t, err)
	var batch Batch
	batch.Set(b("a"), b("1"))
	batch.Delete(b("before"))
	batch.DeleteRange(b("x"), nil)
	must(t, db.Write(&batch))
	other, err := db.Keyspace("other")
	must(t, err)
	must(t, other.Set(nil, nil))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var seen []string
	var last error
	for change, err := range db.Changes(ctx, since, Buffered) {
		if err != nil {
			last = err
			break
		}
		seen = append(seen, fmt.Sprintf("%s/%d/%q/%q/%t", change.Keyspace, change.Kind, change.Key, change.Value, change.EndsBatch))
		equal(t, change.Sequence > since, true)
		if len(seen) == 5 {
			cancel()
		}
	}
	is(t, last, context.Canceled, "")
	equal(t, strings.Join(seen, " "), `default/1/"a"/"1"/false default/2/"before"/""/false default/3/"x"/""/true `+
		`other/4/""/""/true other/1/""/""/true`)
	for _, err := range db.Changes(context.Background(), since+1000, Durability(9)) {
		is(t, err, ErrInvalidArgument, "")
	}
}

func TestBackups(t *testing.T) {
	ctx, where := context.Background(), filepath.Join(t.TempDir(), "backups")
	db := open(t, filepath.Join(t.TempDir(), "store"), nil)
	must(t, db.Set(b("k"), b("1")))
	first, err := db.Backup(ctx, where)
	must(t, err)
	must(t, db.Set(b("k"), b("2")))
	second2, err := db.Backup(ctx, where)
	must(t, err)
	equal(t, second2.ID > first.ID && first.ID > 0 && first.Files > 0 && first.Bytes > 0, true)
	equal(t, time.Since(second2.Time) < time.Hour, true)
	must(t, second(VerifyBackup(ctx, where, 0)))
	for id, expected := range map[uint64]string{first.ID: "k=1", 0: "k=2"} {
		to := filepath.Join(t.TempDir(), "restored")
		must(t, second(RestoreBackup(ctx, where, id, to)))
		equal(t, pairs(t, open(t, to, &Options{MustExist: true}), Bounds{}), expected)
		is(t, second(RestoreBackup(ctx, where, id, to)), ErrInvalidArgument, "")
	}
	is(t, second(VerifyBackup(ctx, where, 99)), ErrInvalidArgument, "")
	is(t, second(RestoreBackup(ctx, where, 0, "a\x00b")), ErrInvalidArgument, "zero byte")
	is(t, second(db.Backup(ctx, "a\x00b")), ErrInvalidArgument, "zero byte")
	ended, cancel := context.WithCancel(ctx)
	cancel()
	is(t, second(db.Backup(ended, where)), context.Canceled, "")
	stop := int32(1)
	must(t, db.Set(b("long"), make([]byte, 4<<20)))
	must(t, db.Flush())
	must(t, second(db.Backup(ctx, where)))
	is(t, second(db.h.backup(filepath.Join(t.TempDir(), "other"), &stop)), ErrBusy, "")
	is(t, second(verifyBackup(where, 0, &stop)), ErrBusy, "")
	must(t, db.Close())
	is(t, second(db.Backup(ctx, where)), ErrClosed, "")
	is(t, second(open(t, "memory:", nil).Backup(ctx, where)), ErrUnsupported, "")
}

func TestErrorsHaveTexts(t *testing.T) {
	for code := range texts {
		equal(t, strings.HasPrefix(code.Error(), "forrest: "), true)
	}
	equal(t, Code(77).Error(), "forrest: unknown code 77")
	_, err := Open("nowhere:x", nil)
	is(t, err, ErrInvalidArgument, "nowhere")
	_, err = Open("zero\x00byte", nil)
	is(t, err, ErrInvalidArgument, "zero byte")
	_, err = Open(filepath.Join(t.TempDir(), "no", "such", "place"), nil)
	is(t, err, ErrIO, "place")
	_, err = Open("memory:", &Options{Durability: Sync})
	is(t, err, ErrUnsupported, "")
	_, err = Open("memory:", &Options{ReadOnly: true})
	is(t, err, ErrUnsupported, "")
	_, err = Open(filepath.Join(t.TempDir(), "store"), &Options{LargeValues: 63})
	is(t, err, ErrInvalidArgument, "large_values is 63")
	_, err = Open("memory:", &Options{LogDirectory: "a\x00b"})
	is(t, err, ErrInvalidArgument, "zero byte")
	db := open(t, "memory:", nil)
	_, err = db.Keyspace("")
	is(t, err, ErrInvalidArgument, "")
	_, err = db.Keyspace(strings.Repeat("k", 256))
	is(t, err, ErrLimit, "")
	is(t, db.Set(make([]byte, 65_536), nil), ErrLimit, "")
	is(t, db.SetMergeOperator("nonsense"), ErrInvalidArgument, "nonsense")
	var detail *Error
	equal(t, errors.As(db.Write(nil), &detail), true)
	equal(t, detail.Change, -1)
}

// TestTheLongestKeys iterates over keys of the greatest length, pages and pairs at a time.
func TestTheLongestKeys(t *testing.T) {
	onHomes(t, nil, func(t *testing.T, db *DB) {
		const count = 4
		key := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 65535) }
		for i := range count {
			must(t, db.Set(key(i), b("v")))
		}
		must(t, db.Set([]byte{count}, b("v")))
		for _, in := range []Bounds{{}, {Reverse: true}, {Borrow: true}, {Start: append(key(0), 0)}, {Prefix: key(1)}} {
			found := 0
			for _, err := range db.Range(context.Background(), in) {
				must(t, err)
				found++
			}
			for _, err := range db.Keys(context.Background(), in) {
				must(t, err)
				found++
			}
			counted, err := db.Count(in)
			must(t, err)
			equal(t, found, 2*int(counted))
		}
		cursor := db.Cursor(Bounds{})
		moves := 0
		for ok := cursor.First(); ok; ok = cursor.Next() {
			equal(t, cursor.Prev(), moves > 0)
			if moves == 0 {
				cursor.First()
			} else {
				cursor.Next()
			}
			moves++
		}
		must(t, cursor.Err())
		equal(t, moves, count+1)
		equal(t, cursor.SeekForPrev(append(key(2), 0)) && cursor.Key()[0] == 2, true)
		equal(t, cursor.Seek(append(key(2), 0)) && cursor.Key()[0] == 3, true)
		must(t, db.Update(context.Background(), func(tx *Tx) error {
			found := 0
			for _, err := range tx.Range(Bounds{}) {
				must(t, err)
				for _, err := range tx.Range(Bounds{}) {
					must(t, err)
					break
				}
				found++
			}
			equal(t, found, count+1)
			return tx.DeleteRange(append(key(2), 0), nil)
		}))
		counted, err := db.Count(Bounds{})
		must(t, err)
		equal(t, counted, 3)
	})
}
