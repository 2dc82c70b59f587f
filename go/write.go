package forrest

import "runtime"

// writer reads and changes a keyspace.
type writer struct{ reader }

// Set sets the value of a key. A key has at most 65,535 bytes, a value 4,294,967,295.
func (w *writer) Set(key, value []byte) error {
	err := w.h.set(key, value)
	runtime.KeepAlive(w)
	return err
}

// Delete removes a key. [ErrNotFound] if it did not exist.
func (w *writer) Delete(key []byte) error {
	err := w.h.delete(key)
	runtime.KeepAlive(w)
	return err
}

// DeleteRange removes all keys from start up to, but without, end, at one instant. A nil end is no end. On disk it takes
// the same time for any number of keys.
func (w *writer) DeleteRange(start, end []byte) error {
	defer runtime.KeepAlive(w)
	return w.h.deleteRange(start, end)
}

// DeletePrefix removes all keys that begin with a prefix, like DeleteRange.
func (w *writer) DeletePrefix(prefix []byte) error {
	defer runtime.KeepAlive(w)
	return w.h.deleteRange(Bounds{Prefix: prefix}.interval())
}

// Clear removes all keys of the keyspace, like DeleteRange. The keyspace stays.
func (w *writer) Clear() error { return w.do(callClear) }

// Add adds to a counter, at one instant, and returns its new value. A counter is a big-endian integer of 8 bytes; a
// missing one is 0. [ErrInvalidArgument] if the value is not a counter, or if the sum overflows.
func (w *writer) Add(key []byte, delta int64) (int64, error) {
	defer runtime.KeepAlive(w)
	return w.h.add(key, delta)
}

// Merge gives an operand to the merge operator of the keyspace, which makes a new value of it and the old one, at one
// instant.
func (w *writer) Merge(key, operand []byte) error {
	defer runtime.KeepAlive(w)
	return w.h.merge(key, operand)
}

// SetMergeOperator chooses the merge operator of an empty keyspace, for ever: "sum", "max", "min", "append" or "union".
// See forrest_set_merge_operator in forrest.h.
func (w *writer) SetMergeOperator(name string) error {
	defer runtime.KeepAlive(w)
	return w.h.named(operatorName, name)
}

// CompareAndSwap replaces the value of a key by desired, at one instant, if it is the expected one. Nil is absence: as
// expected it demands that there is no such key, as desired it removes the key. (An empty slice is an empty value.) If
// the key has another value, it returns that, or nil if there is none, and [ErrMismatch].
func (w *writer) CompareAndSwap(key, expected, desired []byte) (found []byte, err error) {
	defer runtime.KeepAlive(w)
	return w.h.compareAndSwap(key, expected, desired)
}

// Write applies all changes of a batch at one instant, or none if one fails. The batch keeps its changes.
func (w *writer) Write(batch *Batch) error { return w.WriteWith(batch, Default) }

// WriteWith is Write with a durability. [ErrUnsupported] if the home does not have it.
func (w *writer) WriteWith(batch *Batch, durability Durability) error {
	if batch == nil {
		return invalid("the batch is nil")
	}
	err := w.h.write(batch.encoded, durability)
	runtime.KeepAlive(w)
	for _, keyspace := range batch.keyspaces {
		if err != nil && keyspace.h.isClosed.Load() {
			err = ErrClosed
		}
		runtime.KeepAlive(keyspace)
	}
	return err
}

// CompactRange merges the tables that may have keys from start up to, but without, end. A nil end is no end.
func (w *writer) CompactRange(start, end []byte) error {
	defer runtime.KeepAlive(w)
	return w.h.compactRange(start, end)
}
