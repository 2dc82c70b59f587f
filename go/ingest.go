package forrest

import (
	"runtime"
	"sync"
)

// Ingest is sorted pairs that a keyspace gets at one instant, by Finish. On disk it is the fastest way to load a million
// pairs or more: each is written once, to a table. Goroutines that share one take turns.
type Ingest struct {
	mutex sync.Mutex
	h     *handle
}

// Ingest begins an ingest into the keyspace. Close it.
func (w *writer) Ingest() (*Ingest, error) {
	defer runtime.KeepAlive(w)
	h, err := w.h.ingest()
	if err != nil {
		return nil, err
	}
	ingest := &Ingest{h: h}
	closeWith(ingest, h)
	return ingest, nil
}

// Put adds a pair. Keys come in ascending order, each once; otherwise it fails with [ErrInvalidArgument], and the pair
// is left out.
func (i *Ingest) Put(key, value []byte) error {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	defer runtime.KeepAlive(i)
	if err := i.h.usable(); err != nil {
		return err
	}
	return i.h.ingestPut(key, value)
}

// Finish makes all pairs visible at one instant, and returns their number. On disk they survive a loss of power then.
// The ingest is closed in each case.
func (i *Ingest) Finish() (pairs uint64, err error) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	defer runtime.KeepAlive(i)
	if err := i.h.usable(); err != nil {
		return 0, err
	}
	pairs, err = i.h.ingestFinish()
	if closing := i.h.close(); err == nil {
		err = closing
	}
	return pairs, err
}

// Close discards pairs that were not made visible. After Finish it does nothing.
func (i *Ingest) Close() error {
	if i == nil {
		return nil
	}
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return i.h.close()
}
