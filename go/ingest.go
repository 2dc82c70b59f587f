package forrest

import (
	"runtime"
	"sync"
)

// exclusive is a handle that the library admits one call at a time with. Goroutines that share one take turns.
type exclusive struct {
	mutex sync.Mutex
	h     *handle
}

// use makes a call, unless the handle is closed.
func (e *exclusive) use(call func(h *handle) error) error {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	defer runtime.KeepAlive(e)
	if err := e.h.usable(); err != nil {
		return err
	}
	return call(e.h)
}

// end makes the last call, and closes the handle in each case.
func (e *exclusive) end(call func(h *handle) error) error {
	return e.use(func(h *handle) error {
		err := call(h)
		if closing := h.close(); err == nil {
			err = closing
		}
		return err
	})
}

func (e *exclusive) close() error {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.h.close()
}

// Ingest is sorted pairs that a keyspace gets at one instant, by Finish. On disk it is the fastest way to load a million
// pairs or more: each is written once, to a table. Goroutines that share one take turns.
type Ingest struct{ exclusive }

// Ingest begins an ingest into the keyspace. Close it.
func (w *writer) Ingest() (*Ingest, error) {
	defer runtime.KeepAlive(w)
	h, err := w.h.ingest()
	if err != nil {
		return nil, err
	}
	ingest := &Ingest{exclusive{h: h}}
	closeWith(ingest, h)
	return ingest, nil
}

// Put adds a pair. Keys come in ascending order, each once; otherwise it fails with [ErrInvalidArgument], and the pair
// is left out.
func (i *Ingest) Put(key, value []byte) error {
	return i.use(func(h *handle) error { return h.ingestPut(key, value) })
}

// Finish makes all pairs visible at one instant, and returns their number. On disk they survive a loss of power then.
// The ingest is closed in each case.
func (i *Ingest) Finish() (pairs uint64, err error) {
	err = i.end(func(h *handle) (err error) {
		pairs, err = h.ingestFinish()
		return err
	})
	return pairs, err
}

// Close discards pairs that were not made visible. After Finish it does nothing.
func (i *Ingest) Close() error {
	if i == nil {
		return nil
	}
	return i.close()
}
