package forrest

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync"
	"time"
)

// Tx is a transaction: reads and changes that happen at one instant, the commit, or not at all. Before the commit its
// changes are invisible to others. Committing fails with [ErrConflict] if something that it read has changed. Goroutines
// that share a transaction take turns.
type Tx struct {
	mutex sync.Mutex
	h     *handle
	// isBusy says that a lock was not to be had.
	isBusy bool
	// runs counts the transactions of the handle: one for each run of a function by Update.
	runs int
	// home is the keyspace in which each run begins, and on the one that is selected.
	home, on *writer
	// reading is the range whose place the library has. It has one at a time.
	reading *txRange
}

// Update runs a function in a transaction, and commits. After a conflict, or when a lock was not to be had, it runs the
// function again, until the context ends; after a lock that was not to be had it pauses, for at most 50 ms. Each run
// begins in this keyspace. If the function fails, nothing is changed and its error is returned, if what it read was
// true at one instant; otherwise it runs again. It must not keep the transaction, or commit it.
func (w *writer) Update(ctx context.Context, run func(tx *Tx) error) error {
	if ctx == nil {
		ctx = context.Background()
	}
	tx, err := w.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for pause := time.Millisecond; ; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		again, err := tx.attempt(run)
		if !again {
			return err
		}
		if tx.isBusy {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			pause = min(2*pause, busyPauseMax)
		}
	}
}

// busyPauseMax bounds the growing pause of Update after a lock that was not to be had.
const busyPauseMax = 50 * time.Millisecond

// attempt runs a function and commits, and tells whether to do it again.
func (tx *Tx) attempt(run func(tx *Tx) error) (again bool, err error) {
	tx.isBusy, tx.runs = false, tx.runs+1
	if tx.on != tx.home {
		// The library begins each transaction in the keyspace that the one before has selected.
		if err := tx.to(tx.home); err != nil {
			return false, err
		}
	}
	err = run(tx)
	tx.mutex.Lock()
	defer tx.mutex.Unlock()
	if closed := tx.h.usable(); closed != nil {
		return false, errors.Join(err, closed)
	}
	if err == nil {
		err = tx.h.txCommit(Default)
		return errors.Is(err, ErrConflict), err
	}
	if tx.isBusy && errors.Is(err, ErrBusy) {
		return true, tx.h.do(callTxRollback)
	}
	return errors.Is(tx.h.do(callTxCheck), ErrConflict), err
}

// Begin begins a transaction. Commit it or roll it back. [DB.Update] does all of that.
func (w *writer) Begin() (*Tx, error) {
	defer runtime.KeepAlive(w)
	h, err := w.h.begin()
	if err != nil {
		return nil, err
	}
	tx := &Tx{h: h, home: w, on: w}
	closeWith(tx, h)
	return tx, nil
}

// locked runs a call alone.
func (tx *Tx) locked(run func() error) error {
	tx.mutex.Lock()
	defer tx.mutex.Unlock()
	defer runtime.KeepAlive(tx)
	if err := tx.h.usable(); err != nil {
		return err
	}
	return run()
}

// On selects the keyspace for all further reads and changes, of the same store.
func (tx *Tx) On(keyspace Target) error {
	if keyspace == nil || keyspace.target() == nil {
		return invalid("the keyspace is nil")
	}
	return tx.to(keyspace.target())
}

// to selects a keyspace that may be closed.
func (tx *Tx) to(w *writer) error {
	defer runtime.KeepAlive(w)
	if err := w.h.usable(); err != nil {
		return err
	}
	return tx.locked(func() error { return tx.selectOn(w) })
}

// selectOn selects a keyspace.
func (tx *Tx) selectOn(w *writer) error {
	err := tx.h.txOn(w.h)
	if err == nil {
		tx.on = w
	}
	return err
}

// Get returns the value of a key, with the transaction's own changes, or [ErrNotFound]. It must be unchanged at the
// commit.
func (tx *Tx) Get(key []byte) (value []byte, err error) {
	err = tx.locked(func() error {
		value, err = tx.h.txGet(key, false)
		return err
	})
	return value, err
}

// GetForUpdate locks a key, and then reads it like Get. Transactions that lock what they change take turns instead of
// being in conflict. [ErrBusy] if the lock is not to be had within the time of SetLockWait.
func (tx *Tx) GetForUpdate(key []byte) (value []byte, err error) {
	err = tx.locked(func() error {
		value, err = tx.h.txGet(key, true)
		tx.isBusy = tx.isBusy || errors.Is(err, ErrBusy)
		return err
	})
	return value, err
}

// Lock locks a key like GetForUpdate, without reading it. The key need not exist.
func (tx *Tx) Lock(key []byte) error {
	return tx.locked(func() error {
		err := tx.h.txLock(key)
		tx.isBusy = tx.isBusy || errors.Is(err, ErrBusy)
		return err
	})
}

// SetLockWait sets how long the transaction waits for each lock; 1 second if it is not called.
func (tx *Tx) SetLockWait(wait time.Duration) error {
	return tx.locked(func() error { return tx.h.txLockWait(milliseconds(wait)) })
}

// Has tells whether a key exists. It counts as read.
func (tx *Tx) Has(key []byte) (found bool, err error) {
	err = tx.locked(func() error {
		found, err = tx.h.txHas(key)
		return err
	})
	return found, err
}

// Range iterates over pairs, with the transaction's own changes, which may be made meanwhile. What was returned counts
// as read, and so do the gaps between. Several ranges may be read at once, also of several keyspaces. Changing between
// them costs a search for each change.
func (tx *Tx) Range(in Bounds) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		r := &txRange{in: in}
		for count := 0; in.Limit <= 0 || count < in.Limit; count++ {
			var pair Pair
			err := tx.locked(func() (err error) {
				pair, err = r.next(tx)
				return err
			})
			if errors.Is(err, ErrNotFound) {
				return
			}
			if !yield(pair, err) || err != nil {
				return
			}
		}
	}
}

// txRange is a range of a transaction that is being read.
type txRange struct {
	in Bounds
	// start and end are the bounds of what was not returned.
	start, end []byte
	// on is the keyspace; nil before the first pair.
	on *writer
	// run is the transaction of the handle to which it belongs.
	run int
}

// next returns the next pair of the range, or ErrNotFound. If another range was read meanwhile, it begins again after the
// last pair that was returned.
func (r *txRange) next(tx *Tx) (Pair, error) {
	if r.on == nil {
		r.start, r.end = r.in.interval()
		r.on, r.run = tx.on, tx.runs
	}
	if r.run != tx.runs {
		return Pair{}, invalid("the transaction of this range has ended; begin a new range")
	}
	if tx.reading != r {
		if err := r.begin(tx); err != nil {
			return Pair{}, err
		}
	}
	pair, err := tx.h.txMove(r.in.Reverse)
	if err != nil {
		return Pair{}, err
	}
	// The pair belongs to the caller, who may change it.
	if !r.in.Reverse {
		r.start = append(append(r.start[:0], pair.Key...), 0)
	} else if r.end = append(r.end[:0], pair.Key...); r.end == nil {
		r.end = []byte{}
	}
	return pair, nil
}

// begin makes the range the one whose place the library has.
func (r *txRange) begin(tx *Tx) (err error) {
	tx.reading = nil
	if selected := tx.on; selected != r.on {
		defer runtime.KeepAlive(r.on)
		if err := errors.Join(r.on.h.usable(), selected.h.usable()); err != nil {
			return err
		}
		if err := tx.selectOn(r.on); err != nil {
			return err
		}
		defer func() {
			if back := tx.selectOn(selected); back != nil {
				// Otherwise the next change would go to the other keyspace.
				err = errors.Join(back, tx.h.close())
			}
		}()
	}
	if err := tx.h.txRange(r.start, r.end); err != nil {
		return err
	}
	tx.reading = r
	return nil
}

// Set sets the value of a key.
func (tx *Tx) Set(key, value []byte) error {
	return tx.locked(func() error { return tx.h.txSet(key, value) })
}

// Delete removes a key, if it exists.
func (tx *Tx) Delete(key []byte) error {
	return tx.locked(func() error { return tx.h.txDelete(key) })
}

// DeleteRange removes all keys from start up to, but without, end, those that exist at the commit. A nil end is no end.
// It is no read.
func (tx *Tx) DeleteRange(start, end []byte) error {
	return tx.locked(func() error { return tx.h.txDeleteRange(start, end) })
}

// Add adds to a counter, like [DB.Add]. It is no read: transactions that only add to a counter are not in conflict.
func (tx *Tx) Add(key []byte, delta int64) error {
	return tx.locked(func() error { return tx.h.txAdd(key, delta) })
}

// Savepoint marks a place to which RollbackTo takes the changes back.
func (tx *Tx) Savepoint() (savepoint uint64, err error) {
	err = tx.locked(func() error {
		savepoint, err = tx.h.txSavepoint()
		return err
	})
	return savepoint, err
}

// RollbackTo takes back all changes since a savepoint. What was read since then still counts as read.
func (tx *Tx) RollbackTo(savepoint uint64) error {
	return tx.locked(func() error { return tx.h.txRollbackTo(savepoint) })
}

// Commit applies all changes at one instant, if everything that the transaction read is still so; otherwise it fails with
// [ErrConflict] and changes nothing. In each case the transaction is closed.
func (tx *Tx) Commit() error { return tx.CommitWith(Default) }

// CommitWith is Commit with a durability.
func (tx *Tx) CommitWith(durability Durability) error {
	return tx.locked(func() error {
		err := tx.h.txCommit(durability)
		if closing := tx.h.close(); err == nil {
			err = closing
		}
		return err
	})
}

// Rollback discards all changes, and closes the transaction. After Commit it does nothing.
func (tx *Tx) Rollback() error {
	if tx == nil {
		return nil
	}
	tx.mutex.Lock()
	defer tx.mutex.Unlock()
	return tx.h.close()
}
