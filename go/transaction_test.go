package forrest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

func TestTransactions(t *testing.T) {
	onHomes(t, nil, func(t *testing.T, db *DB) {
		other, err := db.Keyspace("other")
		must(t, err)
		must(t, db.Set(b("a"), b("1")))
		must(t, db.Set(b("long"), make([]byte, 5000)))
		tx, err := db.Begin()
		must(t, err)
		value, err := tx.Get(b("a"))
		must(t, err)
		equal(t, string(value), "1")
		value, err = tx.Get(b("long"))
		must(t, err)
		equal(t, len(value), 5000)
		is(t, second(tx.Get(b("none"))), ErrNotFound, "")
		must(t, tx.Set(b("b"), b("2")))
		must(t, tx.Delete(b("long")))
		must(t, tx.Add(b("n"), 1))
		found, err := tx.Has(b("long"))
		must(t, err)
		equal(t, found, false)
		savepoint, err := tx.Savepoint()
		must(t, err)
		must(t, tx.DeleteRange(nil, nil))
		must(t, tx.RollbackTo(savepoint))
		is(t, tx.RollbackTo(99), ErrInvalidArgument, "")
		must(t, tx.On(other))
		must(t, tx.Set(b("there"), nil))
		must(t, tx.On(db))
		text := ""
		for pair, err := range tx.Range(Bounds{}) {
			must(t, err)
			text += string(pair.Key) + "=" + string(pair.Value) + " "
		}
		equal(t, text, "a=1 b=2 n=\x00\x00\x00\x00\x00\x00\x00\x01 ")
		text = ""
		for pair, err := range tx.Range(Bounds{Reverse: true, Limit: 2}) {
			must(t, err)
			text += string(pair.Key)
		}
		equal(t, text, "nb")
		found, err = db.Has(b("b"))
		must(t, err)
		equal(t, found, false)
		must(t, tx.Commit())
		must(t, tx.Rollback())
		found, err = other.Has(b("there"))
		must(t, err)
		equal(t, found, true)

		tx, err = db.Begin()
		must(t, err)
		must(t, second(tx.Get(b("a"))))
		must(t, db.Set(b("a"), b("3")))
		must(t, tx.Set(b("a"), b("4")))
		is(t, tx.Commit(), ErrConflict, "conflict")
		is(t, tx.Set(b("a"), nil), ErrClosed, "")
		is(t, tx.On(nil), ErrInvalidArgument, "")
	})
}

// TestRangesInRanges reads several ranges of a transaction at once, of two keyspaces and in both directions.
func TestRangesInRanges(t *testing.T) {
	onHomes(t, nil, func(t *testing.T, db *DB) {
		other, err := db.Keyspace("other")
		must(t, err)
		for _, key := range []string{"", "a1", "a2", "a3", "b1", "b2", "b3"} {
			must(t, db.Set(b(key), b("v")))
			must(t, other.Set(b(key+"o"), b("v")))
		}
		tx, err := db.Begin()
		must(t, err)
		text := ""
		for outer, err := range tx.Range(Bounds{Prefix: b("a")}) {
			must(t, err)
			text += string(outer.Key) + "("
			outer.Key[0] = 'z'
			for inner, err := range tx.Range(Bounds{Prefix: b("b")}) {
				must(t, err)
				text += string(inner.Key)
				if outer.Key[1] != '2' {
					break
				}
			}
			text += ") "
			must(t, tx.Delete(b("a3")))
		}
		equal(t, text, "a1(b1) a2(b1b2b3) ")

		text = ""
		for outer, err := range tx.Range(Bounds{Reverse: true}) {
			must(t, err)
			text += string(outer.Key) + "("
			must(t, tx.On(other))
			for inner, err := range tx.Range(Bounds{Limit: 2}) {
				must(t, err)
				text += string(inner.Key) + "/"
			}
			if string(outer.Key) == "b2" {
				must(t, tx.On(db))
			}
			text += ") "
		}
		equal(t, text, "b3(a1o/a2o/) b2(a1o/a2o/) b1(a1o/a2o/) a2(a1o/a2o/) a1(a1o/a2o/) (a1o/a2o/) ")
		// The keyspace stays the one that was selected last.
		must(t, tx.Set(b("there"), nil))
		must(t, tx.Commit())
		must(t, second(other.Get(b("there"))))
		equal(t, pairs(t, db, Bounds{Start: b("b3")}), "b3=v")

		// Two in turns, as for a join.
		tx, err = db.Begin()
		must(t, err)
		next, stop := iter.Pull2(tx.Range(Bounds{Prefix: b("b")}))
		text = ""
		for pair, err := range tx.Range(Bounds{Prefix: b("a")}) {
			must(t, err)
			text += string(pair.Key)
			pair, err, _ = next()
			must(t, err)
			text += string(pair.Key) + " "
		}
		stop()
		equal(t, text, "a1b1 a2b2 ")
		must(t, tx.Rollback())
	})
}

// TestRangesOfEarlierRuns: a range does not go on in the next run of Update.
func TestRangesOfEarlierRuns(t *testing.T) {
	db := open(t, "memory:", nil)
	must(t, db.Set(b("a"), nil))
	must(t, db.Set(b("b"), nil))
	var next func() (Pair, error, bool)
	runs := 0
	must(t, db.Update(context.Background(), func(tx *Tx) error {
		if runs++; runs == 1 {
			var stop func()
			next, stop = iter.Pull2(tx.Range(Bounds{}))
			t.Cleanup(stop)
			_, err, _ := next()
			must(t, err)
			return db.Set(b("a"), b("conflict"))
		}
		_, err, _ := next()
		is(t, err, ErrInvalidArgument, "begin a new range")
		return nil
	}))
	equal(t, runs, 2)
}

// TestRunsBeginInTheirKeyspace: a run does not begin in the keyspace that the run before has selected, whether it ended
// by a conflict at the commit, by a failure after a conflict, or by a lock that was not to be had.
func TestRunsBeginInTheirKeyspace(t *testing.T) {
	onHomes(t, nil, func(t *testing.T, db *DB) {
		home, err := db.Keyspace("home")
		must(t, err)
		other, err := db.Keyspace("other")
		must(t, err)
		locker, err := other.Begin()
		must(t, err)
		must(t, locker.Lock(b("busy")))
		runs := 0
		must(t, home.Update(context.Background(), func(tx *Tx) error {
			runs++
			must(t, second(tx.Has(b("n"))))
			must(t, tx.Add(b("n"), 1))
			must(t, tx.On(other))
			must(t, tx.Set(b("there"), nil))
			switch runs {
			case 1:
				return home.Set(b("n"), make([]byte, 8))
			case 2:
				must(t, home.Set(b("n"), []byte{7: 7}))
				return errors.New("only after a conflict")
			case 3:
				must(t, tx.SetLockWait(0))
				return tx.Lock(b("busy"))
			}
			return nil
		}))
		must(t, locker.Rollback())
		equal(t, runs, 4)
		equal(t, pairs(t, home, Bounds{}), "n=\x00\x00\x00\x00\x00\x00\x00\x08")
		equal(t, pairs(t, other, Bounds{}), "there=")
	})
}

func TestLocks(t *testing.T) {
	db := open(t, "memory:", nil)
	first, err := db.Begin()
	must(t, err)
	is(t, second(first.GetForUpdate(b("k"))), ErrNotFound, "")
	must(t, first.Lock(b("l")))
	waiting, err := db.Begin()
	must(t, err)
	must(t, waiting.SetLockWait(0))
	is(t, waiting.Lock(b("k")), ErrBusy, "")
	is(t, second(waiting.GetForUpdate(b("l"))), ErrBusy, "")
	must(t, first.Rollback())
	must(t, waiting.Lock(b("k")))
	must(t, waiting.Rollback())
}

// TestUpdates moves money between accounts in many goroutines. The sum stays.
func TestUpdates(t *testing.T) {
	onHomes(t, nil, func(t *testing.T, db *DB) {
		const accounts, goroutines, moves = 8, 4, 200
		number := func(value []byte) int64 { return int64(binary.BigEndian.Uint64(value)) }
		for i := range accounts {
			must(t, second(db.Add([]byte{byte(i)}, 100)))
		}
		var group sync.WaitGroup
		for seed := range goroutines {
			group.Add(1)
			go func() {
				defer group.Done()
				random := rand.New(rand.NewPCG(uint64(seed), 1))
				for range moves {
					from, to := []byte{byte(random.IntN(accounts))}, []byte{byte(random.IntN(accounts))}
					err := db.Update(context.Background(), func(tx *Tx) error {
						value, err := tx.Get(from)
						if err != nil || number(value) < 10 {
							return err
						}
						return errors.Join(tx.Add(from, -10), tx.Add(to, 10))
					})
					if err != nil {
						t.Error(err)
					}
				}
			}()
		}
		for range 50 {
			snapshot, err := db.Snapshot()
			must(t, err)
			sum := int64(0)
			for pair, err := range snapshot.Range(context.Background(), Bounds{}) {
				must(t, err)
				sum += number(pair.Value)
			}
			equal(t, sum, int64(accounts*100))
			must(t, snapshot.Close())
		}
		group.Wait()
	})
}

func TestUpdatesEnd(t *testing.T) {
	db := open(t, "memory:", nil)
	mine := errors.New("mine")
	runs := 0
	is(t, db.Update(context.Background(), func(tx *Tx) error {
		runs++
		must(t, tx.Set(b("k"), nil))
		return mine
	}), mine, "mine")
	equal(t, runs, 1)
	equal(t, pairs(t, db, Bounds{}), "")

	// What the function read is no longer so: it runs again, and its error counts only then.
	runs = 0
	must(t, db.Update(context.Background(), func(tx *Tx) error {
		runs++
		_, err := tx.Get(b("k"))
		if runs == 1 {
			must(t, db.Set(b("k"), nil))
		}
		return err
	}))
	equal(t, runs, 2)

	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	is(t, db.Update(ctx, func(tx *Tx) error {
		must(t, second(tx.Get(b("k"))))
		runs++
		return db.Set(b("k"), fmt.Append(nil, runs))
	}), context.DeadlineExceeded, "")

	// A lock of another transaction is waited for, until it is free.
	other, err := db.Begin()
	must(t, err)
	must(t, other.Lock(b("k")))
	runs = 0
	must(t, db.Update(context.Background(), func(tx *Tx) error {
		if runs++; runs == 2 {
			must(t, other.Rollback())
		}
		must(t, tx.SetLockWait(0))
		if err := tx.Lock(b("k")); err != nil {
			return err
		}
		return tx.Set(b("k"), b("locked"))
	}))
	equal(t, runs, 2)
	equal(t, pairs(t, db, Bounds{}), "k=locked")

	// Runs for a lock that stays held do not follow at full speed, and the context ends the pause between them.
	other, err = db.Begin()
	must(t, err)
	must(t, other.Lock(b("k")))
	ctx, cancel = context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	runs = 0
	is(t, db.Update(ctx, func(tx *Tx) error {
		runs++
		return errors.Join(tx.SetLockWait(0), tx.Lock(b("k")))
	}), context.DeadlineExceeded, "")
	equal(t, runs < 20, true)
	must(t, other.Rollback())

	// A panic leaves nothing open.
	func() {
		defer func() { equal(t, recover() == "mine", true) }()
		_ = db.Update(context.Background(), func(tx *Tx) error {
			must(t, tx.Set(b("never"), nil))
			panic("mine")
		})
	}()
	equal(t, pairs(t, db, Bounds{}), "k=locked")
	is(t, db.Update(context.Background(), func(tx *Tx) error { return tx.Rollback() }), ErrClosed, "")
}
