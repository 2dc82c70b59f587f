package forrest

import (
	"bytes"
	"context"
	"iter"
	"runtime"
	"sync"
)

// Reader is what a store, a keyspace and a snapshot have in common.
type Reader interface {
	Get(key []byte) ([]byte, error)
	AppendValue(to []byte, key []byte) ([]byte, error)
	GetMany(keys ...[]byte) ([][]byte, error)
	Has(key []byte) (bool, error)
	Range(ctx context.Context, in Bounds) iter.Seq2[Pair, error]
	Keys(ctx context.Context, in Bounds) iter.Seq2[[]byte, error]
	Cursor(in Bounds) *Cursor
	Count(in Bounds) (uint64, error)
	Approximate(in Bounds) (keys, bytes uint64, err error)
}

var _, _, _ Reader = (*DB)(nil), (*Keyspace)(nil), (*Snapshot)(nil)

// Pair is a key with its value.
type Pair struct {
	Key   []byte
	Value []byte
}

// Bounds select keys, and the order in which a range returns them. The zero value is all keys, from the first to the
// last.
type Bounds struct {
	// Start is the least key; nil is the first one.
	Start []byte
	// End is after the greatest key; nil is no end.
	End []byte
	// Prefix is how all keys begin.
	Prefix []byte
	// Reverse returns the last pair first.
	Reverse bool
	// Limit is the maximum number of pairs; 0 is no limit. Count ignores it.
	Limit int
	// Borrow lends keys and values instead of giving them away: those of a loop are valid until its next turn, those of
	// a cursor until it moves. Nothing is allocated for them, so that short ranges take two thirds of the time. Transactions
	// ignore it.
	Borrow bool
}

// interval is the start and the end of the keys. It shares no memory with the bounds.
func (b Bounds) interval() (start, end []byte) {
	start, end = bytes.Clone(b.Start), bytes.Clone(b.End)
	if len(b.Prefix) == 0 {
		return start, end
	}
	if bytes.Compare(start, b.Prefix) < 0 {
		start = bytes.Clone(b.Prefix)
	}
	if after := successor(b.Prefix); after != nil && (end == nil || bytes.Compare(after, end) < 0) {
		end = after
	}
	return start, end
}

// successor is the first key after all that begin with a prefix; nil if there is none.
func successor(prefix []byte) []byte {
	for i := len(prefix); i > 0; i-- {
		if prefix[i-1] != 0xff {
			after := bytes.Clone(prefix[:i])
			after[i-1]++
			return after
		}
	}
	return nil
}

// reader reads a keyspace, now or in a snapshot.
type reader struct{ h *handle }

// Get returns the value of a key, or [ErrNotFound].
func (r *reader) Get(key []byte) ([]byte, error) {
	value, err := r.h.get(nil, key)
	runtime.KeepAlive(r)
	if err != nil {
		return nil, err
	}
	if value == nil {
		value = []byte{}
	}
	return value, nil
}

// AppendValue appends the value of a key to a slice, or returns [ErrNotFound] and the slice. If there is room in it,
// nothing is allocated.
func (r *reader) AppendValue(to []byte, key []byte) ([]byte, error) {
	value, err := r.h.get(to, key)
	runtime.KeepAlive(r)
	return value, err
}

// GetMany returns the value of each key, or nil for each that does not exist. It is faster than single reads, because
// the waits for memory and the device overlap. To read all at one moment, use a snapshot.
func (r *reader) GetMany(keys ...[]byte) ([][]byte, error) {
	defer runtime.KeepAlive(r)
	return r.h.getMany(keys)
}

// Has tells whether a key exists.
func (r *reader) Has(key []byte) (bool, error) {
	found, err := r.h.has(key)
	runtime.KeepAlive(r)
	return found, err
}

// Count counts the keys, in time proportional to their number.
func (r *reader) Count(in Bounds) (uint64, error) {
	defer runtime.KeepAlive(r)
	start, end := in.interval()
	return r.h.count(start, end)
}

// Approximate estimates the number of keys, and the bytes that they and their values take, without reading them.
func (r *reader) Approximate(in Bounds) (keys, bytes uint64, err error) {
	defer runtime.KeepAlive(r)
	start, end := in.interval()
	return r.h.approximate(start, end)
}

// Range iterates over pairs, in the order of their keys. After an error, also that of the context, there is no further
// pair. The body may change the store and may end the loop at any time; there is nothing to close.
//
// It returns each key that exists throughout exactly once. Whether it returns one that is added or removed meanwhile
// is not certain; iterate over a snapshot to have one state. It holds nothing of the store between two pages.
func (r *reader) Range(ctx context.Context, in Bounds) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		r.pairs(ctx, in, 0, yield)
	}
}

// Keys is like [DB.Range] without values, which are not read.
func (r *reader) Keys(ctx context.Context, in Bounds) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		r.pairs(ctx, in, pageKeys, func(pair Pair, err error) bool { return yield(pair.Key, err) })
	}
}

func (r *reader) pairs(ctx context.Context, in Bounds, flags int, yield func(Pair, error) bool) {
	defer runtime.KeepAlive(r)
	p := newPager(in, flags)
	if in.Borrow {
		pooled := pages.Get().(*[pageBytesMax]byte)
		defer pages.Put(pooled)
		p.own = pooled[:]
	}
	for !p.isDone {
		if ctx != nil && ctx.Err() != nil {
			yield(Pair{}, context.Cause(ctx))
			return
		}
		if err := p.fill(r.h); err != nil {
			yield(Pair{}, err)
			return
		}
		for {
			pair, ok := p.next()
			if !ok {
				break
			}
			if !yield(pair, nil) {
				return
			}
		}
	}
}

// The sizes of pages. The first is small, because many loops end early, unless a limit says how many pairs there are.
const (
	pageBytesFirst = 4 << 10
	pageBytesMax   = 64 << 10
	pagePairsSmall = 1000
	// Of a cursor that lends its pairs.
	pageBytesBorrowed = 16 << 10
)

// pages are what C fills, before the pairs are copied to memory of their size.
var pages = sync.Pool{New: func() any { return new([pageBytesMax]byte) }}

// pager reads a range page by page.
type pager struct {
	start, end []byte
	flags      int
	left       uint64
	bytes      int
	isDone     bool
	// rest is what was not returned of the page.
	rest []byte
	// own is where pages are, if pairs are borrowed.
	own []byte
}

func newPager(in Bounds, flags int) pager {
	start, end := in.interval()
	p := pager{start: start, end: end, flags: flags, left: ^uint64(0), bytes: pageBytesFirst}
	if in.Reverse {
		p.flags |= pageReverse
	}
	if in.Limit > 0 {
		p.left = uint64(in.Limit)
		if in.Limit <= pagePairsSmall {
			p.bytes = pageBytesMax
		}
	}
	p.isDone = end != nil && bytes.Compare(start, end) >= 0
	return p
}

// fill reads the next page.
func (p *pager) fill(h *handle) error {
	isShared := p.own == nil
	page := p.own
	if isShared {
		pooled := pages.Get().(*[pageBytesMax]byte)
		defer pages.Put(pooled)
		page = pooled[:]
	}
	page = page[:min(p.bytes, len(page))]
	for {
		used, more, need, err := h.page(p.start, p.end, p.flags, p.left, page)
		if err != nil {
			p.isDone = true
			return err
		}
		if need != 0 {
			// The first pair does not fit: a page for it alone.
			page = make([]byte, need)
			continue
		}
		p.isDone = !more
		if p.rest = page[:used:used]; isShared && len(page) <= pageBytesMax {
			p.rest = append([]byte(nil), p.rest...)
		}
		p.bytes = min(4*p.bytes, pageBytesMax)
		return nil
	}
}

// next returns the next pair of the page. After the last one, the range begins where the page has ended.
func (p *pager) next() (Pair, bool) {
	if len(p.rest) == 0 {
		return Pair{}, false
	}
	key := 8 + int(order.Uint32(p.rest))
	value := key + int(order.Uint32(p.rest[4:]))
	pair := Pair{p.rest[8:key:key], p.rest[key:value:value]}
	p.rest = p.rest[value:]
	p.left--
	if p.left == 0 {
		p.isDone = true
	}
	if len(p.rest) == 0 && !p.isDone {
		if p.flags&pageReverse != 0 {
			p.end = bytes.Clone(pair.Key)
			// An empty key is the first one: nothing is before it.
			p.isDone = len(p.end) == 0
		} else {
			p.start = append(bytes.Clone(pair.Key), 0)
		}
	}
	return pair, true
}
