package forrest

import "iter"

// Batch is changes that are applied at one instant, by [DB.Write]. The zero value is empty. Later changes see earlier
// ones. Only one goroutine at a time may use it. It is Go's memory alone: there is nothing to close.
//
// A key or a value that is too long makes Write fail, with the number of the change in the [Error].
type Batch struct {
	// encoded is each change: a byte that tells what it is, and then its bytes, each after their length (shim.c).
	encoded   []byte
	changes   int
	bytes     int
	keyspaces []*writer
}

// On selects the keyspace for the changes that are added from now on. Before, and after nil,
// they are for the keyspace to which the batch is written.
func (b *Batch) On(keyspace Target) {
	b.encoded = append(b.encoded, changeOn)
	var id uint64
	if keyspace != nil {
		if w := keyspace.target(); w != nil && w.h != nil {
			id = uint64(w.h.id)
			b.keyspaces = append(b.keyspaces, w)
		} else {
			// The number of no handle, so that writing fails.
			id = 1
		}
	}
	b.encoded = order.AppendUint64(b.encoded, id)
}

// Target is a keyspace that changes: a [DB] or a [Keyspace].
type Target interface{ target() *writer }

func (db *DB) target() *writer {
	if db == nil {
		return nil
	}
	return &db.writer
}

func (k *Keyspace) target() *writer {
	if k == nil {
		return nil
	}
	return &k.writer
}

// Set sets the value of a key.
func (b *Batch) Set(key, value []byte) {
	b.begin(changeSet, key, value)
	b.put(key)
	b.put(value)
}

// Delete removes a key, if it exists.
func (b *Batch) Delete(key []byte) {
	b.begin(changeDelete, key, nil)
	b.put(key)
}

// DeleteRange removes all keys from start up to, but without, end. A nil end is no end.
func (b *Batch) DeleteRange(start, end []byte) {
	if end == nil {
		b.begin(changeDeleteFrom, start, nil)
		b.put(start)
		return
	}
	b.begin(changeDeleteRange, start, end)
	b.put(start)
	b.put(end)
}

// DeletePrefix removes all keys that begin with a prefix.
func (b *Batch) DeletePrefix(prefix []byte) { b.DeleteRange(Bounds{Prefix: prefix}.interval()) }

// Add adds to a counter, like [DB.Add]. If that fails, so does the whole batch.
func (b *Batch) Add(key []byte, delta int64) {
	b.begin(changeAdd, key, nil)
	b.put(key)
	b.encoded = order.AppendUint64(b.encoded, uint64(delta))
}

// CompareAndSwap replaces a value if it is the expected one, like [DB.CompareAndSwap]. Otherwise nothing of the batch is
// applied, and Write fails with [ErrConditionFailed]. If both are equal, it is a condition that changes nothing.
func (b *Batch) CompareAndSwap(key, expected, desired []byte) {
	b.begin(changeCAS, key, desired)
	b.put(key)
	b.putOrAbsent(expected)
	b.putOrAbsent(desired)
}

// OpKind is what a change of a batch does.
type OpKind byte

// The kinds of changes of a batch.
const (
	// OpSet sets Key to Value.
	OpSet OpKind = changeSet
	// OpDelete removes Key.
	OpDelete OpKind = changeDelete
	// OpDeleteRange removes the keys from Key up to, but without, Value; nil is no end.
	OpDeleteRange OpKind = changeDeleteRange
	// OpAdd adds Delta to the counter at Key.
	OpAdd OpKind = changeAdd
	// OpCompareAndSwap replaces Expected at Key by Value.
	OpCompareAndSwap OpKind = changeCAS
)

// Op is a change of a batch. Its bytes are the batch's: do not change them.
type Op struct {
	Kind     OpKind
	Key      []byte
	Value    []byte
	Expected []byte
	Delta    int64
}

// Ops returns the changes in their order, of all keyspaces.
func (b *Batch) Ops() iter.Seq[Op] {
	return func(yield func(Op) bool) {
		rest := b.encoded
		number := func() uint64 {
			n := order.Uint64(rest)
			rest = rest[8:]
			return n
		}
		bytes := func() []byte {
			length := number()
			if length == ^uint64(0) {
				return nil
			}
			bytes := rest[:length:length]
			rest = rest[length:]
			return bytes
		}
		for len(rest) > 0 {
			op := Op{Kind: OpKind(rest[0])}
			rest = rest[1:]
			if op.Kind == changeOn {
				number()
				continue
			}
			op.Key = bytes()
			switch op.Kind {
			case changeSet, changeDeleteRange:
				op.Value = bytes()
			case changeDeleteFrom:
				op.Kind = OpDeleteRange
			case changeAdd:
				op.Delta = int64(number())
			case changeCAS:
				op.Expected, op.Value = bytes(), bytes()
			}
			if !yield(op) {
				return
			}
		}
	}
}

// Len is the number of changes.
func (b *Batch) Len() int { return b.changes }

// Bytes is the length of their keys and values.
func (b *Batch) Bytes() int { return b.bytes }

// Reset removes all changes, but keeps the memory.
func (b *Batch) Reset() {
	clear(b.keyspaces)
	*b = Batch{encoded: b.encoded[:0], keyspaces: b.keyspaces[:0]}
}

func (b *Batch) begin(what byte, key, value []byte) {
	b.encoded = append(b.encoded, what)
	b.changes++
	b.bytes += len(key) + len(value)
}

func (b *Batch) put(bytes []byte) {
	b.encoded = order.AppendUint64(b.encoded, uint64(len(bytes)))
	b.encoded = append(b.encoded, bytes...)
}

func (b *Batch) putOrAbsent(bytes []byte) {
	if bytes == nil {
		b.encoded = order.AppendUint64(b.encoded, ^uint64(0))
		return
	}
	b.put(bytes)
}
