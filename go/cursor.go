package forrest

import (
	"bytes"
	"runtime"
)

// Cursor is a position in the order of keys: at a pair, or at none. It moves both ways, within bounds. Only one
// goroutine at a time may use it. It holds nothing of the store, so that one that is forgotten costs nothing.
//
//	for ok := cursor.First(); ok; ok = cursor.Next() {
//		... cursor.Key(), cursor.Value() ...
//	}
//	if err := cursor.Err(); err != nil { ... }
type Cursor struct {
	reader     *reader
	start, end []byte
	borrows    bool
	pager      pager
	pair       Pair
	isAtPair   bool
	isClosed   bool
	err        error
}

// Cursor returns a cursor within bounds, which is at no pair yet. It ignores Reverse and Limit.
func (r *reader) Cursor(in Bounds) *Cursor {
	start, end := in.interval()
	return &Cursor{reader: r, start: start, end: end, borrows: in.Borrow}
}

// First moves to the first pair, and tells whether there is one.
func (c *Cursor) First() bool { return c.moveTo(Bounds{Start: c.bound(), End: c.end}) }

// Last moves to the last pair.
func (c *Cursor) Last() bool { return c.moveTo(Bounds{Start: c.bound(), End: c.end, Reverse: true}) }

// Seek moves to the first key at or after a key.
func (c *Cursor) Seek(key []byte) bool {
	start := c.bound()
	if bytes.Compare(start, key) < 0 {
		start = key
	}
	return c.moveTo(Bounds{Start: start, End: c.end})
}

// SeekForPrev moves to the last key at or before a key.
func (c *Cursor) SeekForPrev(key []byte) bool {
	end := append(bytes.Clone(key), 0)
	if c.end != nil && bytes.Compare(c.end, end) < 0 {
		end = c.end
	}
	return c.moveTo(Bounds{Start: c.bound(), End: end, Reverse: true})
}

// bound is the start of the bounds; also of a cursor that nothing made.
func (c *Cursor) bound() []byte { return c.start }

// Next moves to the next pair. A cursor at no pair stays so.
func (c *Cursor) Next() bool {
	if !c.isAtPair {
		return false
	}
	if c.pager.flags&pageReverse != 0 {
		return c.moveTo(Bounds{Start: append(bytes.Clone(c.pair.Key), 0), End: c.end})
	}
	return c.advance()
}

// Prev moves to the previous pair. A cursor at no pair stays so.
func (c *Cursor) Prev() bool {
	if !c.isAtPair {
		return false
	}
	if c.pager.flags&pageReverse == 0 {
		end := bytes.Clone(c.pair.Key)
		if len(end) == 0 {
			c.isAtPair = false
			return false
		}
		return c.moveTo(Bounds{Start: c.bound(), End: end, Reverse: true})
	}
	return c.advance()
}

func (c *Cursor) moveTo(in Bounds) bool {
	own := c.pager.own
	if own == nil && c.borrows {
		own = make([]byte, pageBytesBorrowed)
	}
	c.pager = newPager(in, 0)
	c.pager.own = own
	return c.advance()
}

func (c *Cursor) advance() bool {
	c.isAtPair, c.err = false, nil
	if c.isClosed || c.reader == nil {
		c.err = ErrClosed
		return false
	}
	if err := c.reader.h.usable(); err != nil {
		c.err = err
		return false
	}
	for {
		if pair, ok := c.pager.next(); ok {
			c.pair, c.isAtPair = pair, true
			return true
		}
		if c.pager.isDone {
			return false
		}
		c.err = c.pager.fill(c.reader.h)
		runtime.KeepAlive(c.reader)
		if c.err != nil {
			return false
		}
	}
}

// Valid tells whether the cursor is at a pair.
func (c *Cursor) Valid() bool { return c.isAtPair }

// Key returns the key at the cursor, which belongs to the caller, unless the bounds say Borrow; nil at no pair.
func (c *Cursor) Key() []byte {
	if !c.isAtPair {
		return nil
	}
	return c.pair.Key
}

// Value returns the value at the cursor, which belongs to the caller, unless the bounds say Borrow; nil at no pair.
func (c *Cursor) Value() []byte {
	if !c.isAtPair {
		return nil
	}
	return c.pair.Value
}

// Err returns the error of the last move; nil if it came to the end.
func (c *Cursor) Err() error { return c.err }

// Close ends the cursor: its moves fail with [ErrClosed]. It need not be called.
func (c *Cursor) Close() error {
	c.isClosed, c.isAtPair, c.pair, c.pager = true, false, Pair{}, pager{}
	return nil
}
