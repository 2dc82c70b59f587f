package forrest

// All calls of C are in this file.

/*
#include <stdlib.h>
#include "shim.h"

#cgo noescape fgo_open
#cgo nocallback fgo_open
#cgo nocallback fgo_close
#cgo noescape fgo_get
#cgo nocallback fgo_get
#cgo noescape fgo_get_many
#cgo nocallback fgo_get_many
#cgo noescape fgo_has
#cgo nocallback fgo_has
#cgo noescape fgo_count
#cgo nocallback fgo_count
#cgo noescape fgo_approximate
#cgo nocallback fgo_approximate
#cgo noescape fgo_page
#cgo nocallback fgo_page
#cgo noescape fgo_set
#cgo nocallback fgo_set
#cgo noescape fgo_delete
#cgo nocallback fgo_delete
#cgo noescape fgo_delete_range
#cgo nocallback fgo_delete_range
#cgo noescape fgo_add
#cgo nocallback fgo_add
#cgo noescape fgo_merge
#cgo nocallback fgo_merge
#cgo noescape fgo_cas
#cgo nocallback fgo_cas
#cgo noescape fgo_write
#cgo nocallback fgo_write
#cgo noescape fgo_tx_get
#cgo nocallback fgo_tx_get
#cgo noescape fgo_tx_has
#cgo nocallback fgo_tx_has
#cgo noescape fgo_tx_lock
#cgo nocallback fgo_tx_lock
#cgo noescape fgo_tx_range
#cgo nocallback fgo_tx_range
#cgo nocallback fgo_tx_move
#cgo noescape fgo_tx_set
#cgo nocallback fgo_tx_set
#cgo noescape fgo_tx_delete
#cgo nocallback fgo_tx_delete
#cgo noescape fgo_tx_delete_range
#cgo nocallback fgo_tx_delete_range
#cgo noescape fgo_tx_add
#cgo nocallback fgo_tx_add
#cgo noescape fgo_ingest_put
#cgo nocallback fgo_ingest_put
#cgo noescape fgo_blob_begin
#cgo nocallback fgo_blob_begin
#cgo noescape fgo_blob_write
#cgo nocallback fgo_blob_write
#cgo noescape fgo_blob_open
#cgo nocallback fgo_blob_open
#cgo noescape fgo_blob_read
#cgo nocallback fgo_blob_read
#cgo noescape fgo_blob_delete
#cgo nocallback fgo_blob_delete
#cgo noescape fgo_compact_range
#cgo nocallback fgo_compact_range
#cgo noescape fgo_stats
#cgo nocallback fgo_stats
#cgo nocallback fgo_do
*/
import "C"

import (
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// registry has everything that is open of a store, to close it with the store.
type registry struct {
	// opening is held, shared, by a call that opens something, until that is in `open`. Closing the store waits for it.
	opening  sync.RWMutex
	isClosed bool
	mutex    sync.Mutex
	// open has each handle until the library has closed it.
	open map[*handle]struct{}
}

// handle is something that the library has opened.
type handle struct {
	id       C.uintptr_t
	kind     C.int
	isClosed atomic.Bool
	closing  sync.Once
	registry *registry
}

// opens begins a call that opens something, unless the handle or its store was closed. Then h.opened() ends it.
func (h *handle) opens() error {
	if h == nil {
		return ErrClosed
	}
	h.registry.opening.RLock()
	if h.registry.isClosed || h.isClosed.Load() {
		h.registry.opening.RUnlock()
		return ErrClosed
	}
	return nil
}

// opened ends a call that opens something.
func (h *handle) opened() { h.registry.opening.RUnlock() }

// add makes a handle of a result.
func (r *registry) add(kind C.int, result C.fgo_result) (*handle, error) {
	if result.code != C.FORREST_OK {
		return nil, failure(result)
	}
	h := &handle{id: C.uintptr_t(result.first), kind: kind, registry: r}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.open[h] = struct{}{}
	return h, nil
}

// close closes a handle. It does nothing if it was closed; if another goroutine is closing it, it waits for that.
func (h *handle) close() (err error) {
	if h == nil {
		return nil
	}
	h.closing.Do(func() {
		h.isClosed.Store(true)
		err = failure(C.fgo_close(h.kind, h.id))
		h.registry.mutex.Lock()
		defer h.registry.mutex.Unlock()
		delete(h.registry.open, h)
	})
	return err
}

// closeAll closes all handles of a store. When it returns, the library has closed the store.
func (r *registry) closeAll() error {
	r.opening.Lock()
	r.isClosed = true
	r.opening.Unlock()
	r.mutex.Lock()
	handles := make([]*handle, 0, len(r.open))
	for h := range r.open {
		handles = append(handles, h)
	}
	r.mutex.Unlock()
	var first error
	for _, h := range handles {
		if err := h.close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// closeWith closes a handle after the garbage collector has found that its owner is unreachable.
func closeWith[T any](owner *T, h *handle) {
	runtime.AddCleanup(owner, func(h *handle) { _ = h.close() }, h)
}

// failure is the error of a result, or nil. It frees the message.
func failure(result C.fgo_result) error {
	if result.code == C.FORREST_OK {
		return nil
	}
	if result.code > 0 {
		C.free(unsafe.Pointer(result.data))
		return Code(result.code)
	}
	return newError(result)
}

func newError(result C.fgo_result) error {
	e := &Error{Code: Code(result.code), Change: -1}
	if result.data != nil {
		e.Message = C.GoStringN(result.data, C.int(result.data_bytes))
		C.free(unsafe.Pointer(result.data))
	} else {
		e.Message = strings.TrimPrefix(e.Code.Error(), "forrest: ")
	}
	if result.mark != C.FGO_NONE {
		e.Change = int(result.mark)
	}
	return e
}

// checked is failure for a call with a handle, which may have been closed meanwhile.
func (h *handle) checked(result C.fgo_result) error {
	err := failure(result)
	if err != nil && result.code == C.FORREST_INVALID_ARGUMENT && h.isClosed.Load() {
		return ErrClosed
	}
	return err
}

// usable tells whether a handle can be used, or the error.
func (h *handle) usable() error {
	if h == nil || h.isClosed.Load() {
		return ErrClosed
	}
	return nil
}

// taken copies the bytes of a result, and frees them.
func taken(result C.fgo_result) []byte {
	if result.data == nil {
		return nil
	}
	bytes := make([]byte, int(result.data_bytes))
	copy(bytes, unsafe.Slice((*byte)(unsafe.Pointer(result.data)), len(bytes)))
	C.free(unsafe.Pointer(result.data))
	return bytes
}

// at is the address of bytes; null for nil.
func at(bytes []byte) *C.uint8_t { return (*C.uint8_t)(unsafe.SliceData(bytes)) }

func size(bytes []byte) C.size_t { return C.size_t(len(bytes)) }

// atOrAbsent is the address and length of bytes where nil is absence.
func atOrAbsent(bytes []byte) (*C.uint8_t, C.size_t) {
	if bytes == nil {
		return nil, C.size_t(math.MaxUint)
	}
	return at(bytes), size(bytes)
}

// cString is a string with a zero at its end, which the caller frees.
func cString(what, text string) (*C.char, error) {
	if strings.IndexByte(text, 0) >= 0 {
		return nil, invalid("%s %q has a zero byte", what, text)
	}
	return C.CString(text), nil
}

func libraryVersion() string { return C.GoString(C.forrest_version()) }

// libraryFits compares the library with the header that this package was compiled with.
func libraryFits() error {
	if found := C.forrest_abi(); found != C.FORREST_ABI {
		message := "unsupported: libforrest %s is not the one that this program was compiled with (ABI %d, expected %d)"
		return &Error{ErrUnsupported, sprintf(message, libraryVersion(), found, C.FORREST_ABI), -1}
	}
	return nil
}

func openStore(url, log string, secret []byte, options []uint64) (*handle, error) {
	if err := libraryFits(); err != nil {
		return nil, err
	}
	cURL, err := cString("the URL", url)
	if err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(cURL))
	var cLog *C.char
	if log != "" {
		if cLog, err = cString("the directory of the log", log); err != nil {
			return nil, err
		}
		defer C.free(unsafe.Pointer(cLog))
	}
	numbers := (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(options)))
	r := &registry{open: make(map[*handle]struct{})}
	return r.add(C.FGO_STORE, C.fgo_open(cURL, cLog, C.bool(secret != nil), at(secret), size(secret),
		numbers, C.size_t(len(options)/2)))
}

func (h *handle) keyspace(name string) (*handle, error) {
	if err := h.opens(); err != nil {
		return nil, err
	}
	defer h.opened()
	cName, err := cString("the keyspace", name)
	if err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(cName))
	return h.child(C.FGO_STORE, C.fgo_keyspace(h.id, cName))
}

func (h *handle) child(kind C.int, result C.fgo_result) (*handle, error) {
	child, err := h.registry.add(kind, result)
	if err != nil && result.code == C.FORREST_INVALID_ARGUMENT && h.isClosed.Load() {
		err = ErrClosed
	}
	return child, err
}

func (h *handle) keyspaces() ([]string, error) {
	if err := h.usable(); err != nil {
		return nil, err
	}
	result := C.fgo_keyspaces(h.id)
	if result.code != C.FORREST_OK {
		return nil, h.checked(result)
	}
	return strings.Split(strings.TrimSuffix(string(taken(result)), "\x00"), "\x00"), nil
}

func (h *handle) named(what string, name string) error {
	if err := h.usable(); err != nil {
		return err
	}
	cName, err := cString(what, name)
	if err != nil {
		return err
	}
	defer C.free(unsafe.Pointer(cName))
	switch what {
	case checkpointPath:
		return h.checked(C.fgo_checkpoint(h.id, cName))
	case operatorName:
		return h.checked(C.fgo_merge_operator(h.id, cName))
	default:
		return h.checked(C.fgo_drop_keyspace(h.id, cName))
	}
}

func (h *handle) rotateKey(secret []byte) error {
	if err := h.usable(); err != nil {
		return err
	}
	return h.checked(C.fgo_rotate_key(h.id, at(secret), size(secret)))
}

// What the call named is about.
const (
	checkpointPath = "the path"
	operatorName   = "the operator"
	keyspaceName   = "the keyspace"
)

func (h *handle) snapshot() (*handle, error) {
	if err := h.opens(); err != nil {
		return nil, err
	}
	defer h.opened()
	return h.child(C.FGO_STORE, C.fgo_snapshot(h.id))
}

func (h *handle) sequence() (uint64, error) {
	if err := h.usable(); err != nil {
		return 0, err
	}
	result := C.fgo_sequence(h.id)
	return uint64(result.first), h.checked(result)
}

// get appends a value to `to`.
func (h *handle) get(to []byte, key []byte) ([]byte, error) {
	if err := h.usable(); err != nil {
		return to, err
	}
	var small [1024]byte
	result := C.fgo_get(h.id, at(key), size(key), at(small[:]), C.size_t(len(small)))
	if result.code == C.FORREST_OK {
		return append(to, small[:result.first]...), nil
	}
	for result.code == C.FORREST_TOO_SMALL {
		// The value may grow meanwhile, and then there is another round.
		length := int(result.first)
		to = grown(to, length)
		place := to[len(to) : len(to)+length]
		result = C.fgo_get(h.id, at(key), size(key), at(place), size(place))
		if result.code == C.FORREST_OK {
			return to[:len(to)+int(result.first)], nil
		}
	}
	return to, h.checked(result)
}

// grown is a slice with room for more bytes.
func grown(to []byte, more int) []byte {
	if cap(to)-len(to) >= more {
		return to
	}
	larger := make([]byte, len(to), len(to)+more)
	copy(larger, to)
	return larger
}

func (h *handle) getMany(keys [][]byte) ([][]byte, error) {
	if err := h.usable(); err != nil {
		return nil, err
	}
	whole := 0
	for _, key := range keys {
		whole += 4 + len(key)
	}
	encoded := make([]byte, 0, whole)
	for _, key := range keys {
		if uint64(len(key)) > math.MaxUint32 {
			return nil, &Error{ErrLimit, sprintf("limit exceeded: the key has %d bytes", len(key)), -1}
		}
		encoded = order.AppendUint32(encoded, uint32(len(key)))
		encoded = append(encoded, key...)
	}
	result := C.fgo_get_many(h.id, at(encoded), size(encoded), C.size_t(len(keys)))
	if result.code != C.FORREST_OK {
		return nil, h.checked(result)
	}
	block := taken(result)
	lengths, rest := block[:8*len(keys)], block[8*len(keys):]
	values := make([][]byte, len(keys))
	for i := range keys {
		if length := order.Uint64(lengths[8*i:]); length != math.MaxUint64 {
			values[i], rest = rest[:length:length], rest[length:]
		}
	}
	return values, nil
}

func (h *handle) has(key []byte) (bool, error) {
	if err := h.usable(); err != nil {
		return false, err
	}
	result := C.fgo_has(h.id, at(key), size(key))
	if result.code == C.FORREST_NOT_FOUND {
		return false, nil
	}
	err := h.checked(result)
	return err == nil, err
}

func (h *handle) count(start, end []byte) (uint64, error) {
	if err := h.usable(); err != nil {
		return 0, err
	}
	result := C.fgo_count(h.id, at(start), size(start), at(end), size(end))
	return uint64(result.first), h.checked(result)
}

func (h *handle) approximate(start, end []byte) (keys, bytes uint64, err error) {
	if err := h.usable(); err != nil {
		return 0, 0, err
	}
	result := C.fgo_approximate(h.id, at(start), size(start), at(end), size(end))
	return uint64(result.first), uint64(result.second), h.checked(result)
}

// page fills a page with the first pairs of a range, or the last ones. It returns the bytes that it used, whether there
// may be more pairs, and if the first pair does not fit, how many bytes it needs.
func (h *handle) page(start, end []byte, flags int, pairs uint64, page []byte) (used int, more bool, need int, err error) {
	if err := h.usable(); err != nil {
		return 0, false, 0, err
	}
	if end != nil {
		flags |= C.FGO_HAS_END
	}
	result := C.fgo_page(h.id, C.int(flags), at(start), size(start), at(end), size(end), C.uint64_t(pairs), at(page), size(page))
	if result.code != C.FORREST_OK {
		return 0, false, 0, h.checked(result)
	}
	return int(result.first), result.mark == 1, int(result.second), nil
}

const (
	pageReverse = C.FGO_REVERSE
	pageKeys    = C.FGO_KEYS
	pageBlobs   = C.FGO_BLOBS
)

func (h *handle) set(key, value []byte) error {
	if err := h.usable(); err != nil {
		return err
	}
	result := C.fgo_set(h.id, at(key), size(key), at(value), size(value))
	if result.code == C.FORREST_OK {
		return nil
	}
	return h.checked(result)
}

func (h *handle) delete(key []byte) error {
	if err := h.usable(); err != nil {
		return err
	}
	result := C.fgo_delete(h.id, at(key), size(key))
	if result.code == C.FORREST_NOT_FOUND {
		return ErrNotFound
	}
	return h.checked(result)
}

func (h *handle) deleteRange(start, end []byte) error {
	if err := h.usable(); err != nil {
		return err
	}
	return h.checked(C.fgo_delete_range(h.id, at(start), size(start), at(end), size(end)))
}

func (h *handle) add(key []byte, delta int64) (int64, error) {
	if err := h.usable(); err != nil {
		return 0, err
	}
	result := C.fgo_add(h.id, at(key), size(key), C.int64_t(delta))
	return int64(result.first), h.checked(result)
}

func (h *handle) merge(key, operand []byte) error {
	if err := h.usable(); err != nil {
		return err
	}
	return h.checked(C.fgo_merge(h.id, at(key), size(key), at(operand), size(operand)))
}

func (h *handle) compareAndSwap(key, expected, desired []byte) (found []byte, err error) {
	if err := h.usable(); err != nil {
		return nil, err
	}
	old, oldBytes := atOrAbsent(expected)
	next, nextBytes := atOrAbsent(desired)
	result := C.fgo_cas(h.id, at(key), size(key), old, oldBytes, next, nextBytes)
	if result.code == C.FORREST_MISMATCH {
		return taken(result), ErrMismatch
	}
	return nil, h.checked(result)
}

func (h *handle) write(changes []byte, durability Durability) error {
	if err := h.usable(); err != nil {
		return err
	}
	return h.checked(C.fgo_write(h.id, at(changes), size(changes), C.uint64_t(durability)))
}

// The changes of a batch.
const (
	changeSet         = C.FGO_SET
	changeDelete      = C.FGO_DELETE
	changeDeleteRange = C.FGO_DELETE_RANGE
	changeDeleteFrom  = C.FGO_DELETE_FROM
	changeAdd         = C.FGO_ADD
	changeCAS         = C.FGO_CAS
	changeOn          = C.FGO_ON
)

func (h *handle) begin() (*handle, error) {
	if err := h.opens(); err != nil {
		return nil, err
	}
	defer h.opened()
	return h.child(C.FGO_TRANSACTION, C.fgo_tx_begin(h.id))
}

func (h *handle) txOn(keyspace *handle) error {
	return h.checked(C.fgo_tx_on(h.id, keyspace.id))
}

func (h *handle) txGet(key []byte, lock bool) ([]byte, error) {
	var small [1024]byte
	result := C.fgo_tx_get(h.id, C.bool(lock), at(key), size(key), at(small[:]), C.size_t(len(small)))
	if result.code != C.FORREST_OK {
		return nil, h.checked(result)
	}
	if result.data != nil {
		return taken(result), nil
	}
	return append([]byte{}, small[:result.first]...), nil
}

func (h *handle) txHas(key []byte) (bool, error) {
	result := C.fgo_tx_has(h.id, at(key), size(key))
	if result.code == C.FORREST_NOT_FOUND {
		return false, nil
	}
	err := h.checked(result)
	return err == nil, err
}

func (h *handle) txLock(key []byte) error { return h.checked(C.fgo_tx_lock(h.id, at(key), size(key))) }

func (h *handle) txLockWait(milliseconds uint64) error {
	return h.checked(C.fgo_tx_lock_wait(h.id, C.uint64_t(milliseconds)))
}

func (h *handle) txRange(start, end []byte) error {
	return h.checked(C.fgo_tx_range(h.id, at(start), size(start), at(end), size(end)))
}

func (h *handle) txMove(back bool) (Pair, error) {
	result := C.fgo_tx_move(h.id, C.bool(back))
	if result.code != C.FORREST_OK {
		return Pair{}, h.checked(result)
	}
	both, length := taken(result), int(result.first)
	return Pair{both[:length:length], both[length:]}, nil
}

func (h *handle) txSet(key, value []byte) error {
	return h.checked(C.fgo_tx_set(h.id, at(key), size(key), at(value), size(value)))
}

func (h *handle) txDelete(key []byte) error {
	return h.checked(C.fgo_tx_delete(h.id, at(key), size(key)))
}

func (h *handle) txDeleteRange(start, end []byte) error {
	return h.checked(C.fgo_tx_delete_range(h.id, at(start), size(start), at(end), size(end)))
}

func (h *handle) txAdd(key []byte, delta int64) error {
	return h.checked(C.fgo_tx_add(h.id, at(key), size(key), C.int64_t(delta)))
}

func (h *handle) txSavepoint() (uint64, error) {
	result := C.fgo_tx_savepoint(h.id)
	return uint64(result.first), h.checked(result)
}

func (h *handle) txRollbackTo(savepoint uint64) error {
	return h.checked(C.fgo_tx_rollback_to(h.id, C.uint64_t(savepoint)))
}

func (h *handle) txCommit(durability Durability) error {
	return h.checked(C.fgo_tx_commit_with(h.id, C.uint64_t(durability)))
}

func (h *handle) ingest() (*handle, error) {
	if err := h.opens(); err != nil {
		return nil, err
	}
	defer h.opened()
	return h.child(C.FGO_INGEST, C.fgo_ingest_begin(h.id))
}

func (h *handle) ingestPut(key, value []byte) error {
	return h.checked(C.fgo_ingest_put(h.id, at(key), size(key), at(value), size(value)))
}

func (h *handle) ingestFinish() (uint64, error) {
	result := C.fgo_ingest_finish(h.id)
	return uint64(result.first), h.checked(result)
}

func (h *handle) newBlob(key []byte, pieceBytes uint32) (*handle, error) {
	if err := h.opens(); err != nil {
		return nil, err
	}
	defer h.opened()
	return h.child(C.FGO_BLOB_WRITER, C.fgo_blob_begin(h.id, at(key), size(key), C.uint32_t(pieceBytes)))
}

func (h *handle) blobWrite(bytes []byte) error {
	return h.checked(C.fgo_blob_write(h.id, at(bytes), size(bytes)))
}

func (h *handle) blobFinish() error { return h.checked(C.fgo_blob_finish(h.id)) }

func (h *handle) openBlob(key []byte) (blob *handle, bytes uint64, err error) {
	if err := h.opens(); err != nil {
		return nil, 0, err
	}
	defer h.opened()
	result := C.fgo_blob_open(h.id, at(key), size(key))
	blob, err = h.child(C.FGO_BLOB, result)
	return blob, uint64(result.second), err
}

func (h *handle) blobRead(offset uint64, to []byte) (int, error) {
	result := C.fgo_blob_read(h.id, C.uint64_t(offset), at(to), size(to))
	return int(result.first), h.checked(result)
}

func (h *handle) deleteBlob(key []byte) error {
	if err := h.usable(); err != nil {
		return err
	}
	return h.checked(C.fgo_blob_delete(h.id, at(key), size(key)))
}

func (h *handle) changes(since uint64, durability Durability) (*handle, error) {
	if err := h.opens(); err != nil {
		return nil, err
	}
	defer h.opened()
	return h.child(C.FGO_CHANGES, C.fgo_changes_begin(h.id, C.uint64_t(since), C.uint64_t(durability)))
}

func (h *handle) changesNext(milliseconds uint64) (sequence uint64, encoded []byte, err error) {
	if err := h.usable(); err != nil {
		return 0, nil, err
	}
	result := C.fgo_changes_next(h.id, C.uint64_t(milliseconds))
	if result.code != C.FORREST_OK {
		return 0, nil, h.checked(result)
	}
	return uint64(result.first), taken(result), nil
}

// withDirectory makes a string of C for a call about backups.
func withDirectory(directory string, run func(directory *C.char, backup *C.forrest_backup) C.fgo_result) (Backup, error) {
	cDirectory, err := cString("the directory of backups", directory)
	if err != nil {
		return Backup{}, err
	}
	defer C.free(unsafe.Pointer(cDirectory))
	var c C.forrest_backup
	if err := failure(run(cDirectory, &c)); err != nil {
		return Backup{}, err
	}
	made := time.UnixMilli(int64(c.time_ms))
	return Backup{uint64(c.id), made, uint64(c.bytes), uint64(c.new_bytes), uint64(c.files)}, nil
}

func (h *handle) backup(directory string, stop *int32) (Backup, error) {
	if err := h.usable(); err != nil {
		return Backup{}, err
	}
	return withDirectory(directory, func(directory *C.char, backup *C.forrest_backup) C.fgo_result {
		return C.fgo_backup(h.id, directory, (*C.int32_t)(stop), backup)
	})
}

func verifyBackup(directory string, id uint64, stop *int32) (Backup, error) {
	return withDirectory(directory, func(directory *C.char, backup *C.forrest_backup) C.fgo_result {
		return C.fgo_backup_verify(directory, C.uint64_t(id), (*C.int32_t)(stop), backup)
	})
}

func restoreBackup(directory string, id uint64, to string, stop *int32) (Backup, error) {
	cTo, err := cString("the path", to)
	if err != nil {
		return Backup{}, err
	}
	defer C.free(unsafe.Pointer(cTo))
	return withDirectory(directory, func(directory *C.char, backup *C.forrest_backup) C.fgo_result {
		return C.fgo_backup_restore(directory, C.uint64_t(id), cTo, (*C.int32_t)(stop), backup)
	})
}

// call is a call without arguments.
type call C.int

const (
	callClear         = call(C.FGO_CLEAR)
	callSync          = call(C.FGO_SYNC)
	callVerify        = call(C.FGO_VERIFY)
	callCompact       = call(C.FGO_COMPACT)
	callFlush         = call(C.FGO_FLUSH)
	callTrim          = call(C.FGO_TRIM)
	callSettle        = call(C.FGO_SETTLE)
	callResume        = call(C.FGO_RESUME)
	callRefresh       = call(C.FGO_REFRESH)
	callRotateDataKey = call(C.FGO_ROTATE_DATA_KEY)
	callTxCheck       = call(C.FGO_TX_CHECK)
	callTxRollback    = call(C.FGO_TX_ROLLBACK)
)

func (h *handle) do(what call) error {
	if err := h.usable(); err != nil {
		return err
	}
	return h.checked(C.fgo_do(C.int(what), h.id))
}

func (h *handle) compactRange(start, end []byte) error {
	if err := h.usable(); err != nil {
		return err
	}
	return h.checked(C.fgo_compact_range(h.id, at(start), size(start), at(end), size(end)))
}

func (h *handle) setOption(option option, value uint64) error {
	if err := h.usable(); err != nil {
		return err
	}
	return h.checked(C.fgo_set_option(h.id, C.int32_t(option), C.uint64_t(value)))
}

func (h *handle) setCompression(compression Compression) error {
	if err := h.usable(); err != nil {
		return err
	}
	return h.checked(C.fgo_set_compression(h.id, C.uint64_t(compression)))
}

func (h *handle) stats() (Stats, error) {
	if err := h.usable(); err != nil {
		return Stats{}, err
	}
	var c C.forrest_stats
	if err := h.checked(C.fgo_stats(h.id, &c)); err != nil {
		return Stats{}, err
	}
	return Stats{
		Keys:                      uint64(c.keys),
		Keyspaces:                 uint64(c.keyspaces),
		Snapshots:                 uint64(c.snapshots),
		NodeBytes:                 uint64(c.node_bytes),
		ValueBytesOutside:         uint64(c.value_bytes_outside),
		ReservedBytes:             uint64(c.reserved_bytes),
		ExplicitHugeBytes:         uint64(c.explicit_huge_bytes),
		TransparentHugeBytes:      uint64(c.transparent_huge_bytes),
		Tables:                    uint64(c.tables),
		TableBytes:                uint64(c.table_bytes),
		CacheBytes:                uint64(c.cache_bytes),
		IndexBytes:                uint64(c.index_bytes),
		OpenFiles:                 uint64(c.open_files),
		HeldBytes:                 uint64(c.held_bytes),
		KeptBytes:                 uint64(c.kept_bytes),
		CacheExplicitHugeBytes:    uint64(c.cache_explicit_huge_bytes),
		CacheTransparentHugeBytes: uint64(c.cache_transparent_huge_bytes),
		TablePlainBytes:           uint64(c.table_plain_bytes),
		ValueLogBytes:             uint64(c.value_log_bytes),
		ValueLogLiveBytes:         uint64(c.value_log_live_bytes),
		Expiring:                  uint64(c.expiring),
		TableLiveBytes:            uint64(c.table_live_bytes),
	}, nil
}

func (h *handle) metrics() (string, error) {
	if err := h.usable(); err != nil {
		return "", err
	}
	result := C.fgo_metrics(h.id)
	if result.code != C.FORREST_OK {
		return "", h.checked(result)
	}
	return string(taken(result)), nil
}

func (h *handle) capabilities() (Capabilities, error) {
	if err := h.usable(); err != nil {
		return 0, err
	}
	result := C.fgo_capabilities(h.id)
	return Capabilities(result.first), h.checked(result)
}

// option is the number of an option.
type option int32

const (
	optionCapacityBytes option = C.FORREST_CAPACITY_BYTES
	optionDurability    option = C.FORREST_DURABILITY
	optionBatchOpsMax   option = C.FORREST_BATCH_OPS_MAX
	optionBatchBytesMax option = C.FORREST_BATCH_BYTES_MAX
	optionMemtableBytes option = C.FORREST_MEMTABLE_BYTES
	optionCacheBytes    option = C.FORREST_CACHE_BYTES
	optionTableBytes    option = C.FORREST_TABLE_BYTES
	optionLargeValues   option = C.FORREST_LARGE_VALUES
	optionWorkers       option = C.FORREST_WORKERS
	optionOpenFiles     option = C.FORREST_OPEN_FILES
	optionCreate        option = C.FORREST_CREATE
	optionReadOnly      option = C.FORREST_READ_ONLY
	optionWaitMs        option = C.FORREST_WAIT_MS
	optionBackground    option = C.FORREST_BACKGROUND_BYTES_PER_SECOND
	optionMemoryBytes   option = C.FORREST_MEMORY_BYTES
	optionCompression   option = C.FORREST_COMPRESSION
	optionHistory       option = C.FORREST_HISTORY
	optionHistoryBytes  option = C.FORREST_HISTORY_BYTES
	optionHistoryAgeMs  option = C.FORREST_HISTORY_AGE_MS
)

// The numbers that Go programs see are those of forrest.h; this does not compile otherwise.
var (
	_ = [1]struct{}{}[ErrNotFound-C.FORREST_NOT_FOUND]
	_ = [1]struct{}{}[ErrMismatch-C.FORREST_MISMATCH]
	_ = [1]struct{}{}[ErrConflict-C.FORREST_CONFLICT]
	_ = [1]struct{}{}[ErrIO-C.FORREST_IO]
	_ = [1]struct{}{}[ErrCorrupt-C.FORREST_CORRUPT]
	_ = [1]struct{}{}[ErrInvalidArgument-C.FORREST_INVALID_ARGUMENT]
	_ = [1]struct{}{}[ErrLimit-C.FORREST_LIMIT]
	_ = [1]struct{}{}[ErrOutOfSpace-C.FORREST_OUT_OF_SPACE]
	_ = [1]struct{}{}[ErrBusy-C.FORREST_BUSY]
	_ = [1]struct{}{}[ErrUnsupported-C.FORREST_UNSUPPORTED]
	_ = [1]struct{}{}[ErrStopped-C.FORREST_STOPPED]
	_ = [1]struct{}{}[ErrConditionFailed-C.FORREST_CONDITION_FAILED]
	_ = [1]struct{}{}[ErrGone-C.FORREST_GONE]
	_ = [1]struct{}{}[ErrInternal-C.FORREST_INTERNAL]
	_ = [1]struct{}{}[Default-C.FORREST_DURABILITY_DEFAULT]
	_ = [1]struct{}{}[Memory-C.FORREST_DURABILITY_MEMORY]
	_ = [1]struct{}{}[Buffered-C.FORREST_DURABILITY_BUFFERED]
	_ = [1]struct{}{}[Sync-C.FORREST_DURABILITY_SYNC]
	_ = [1]struct{}{}[NoCompression-C.FORREST_COMPRESSION_NONE]
	_ = [1]struct{}{}[LZ4-C.FORREST_COMPRESSION_LZ4]
	_ = [1]struct{}{}[Zstd-C.FORREST_COMPRESSION_ZSTD]
	_ = [1]struct{}{}[ChangeSet-C.FORREST_CHANGE_SET]
	_ = [1]struct{}{}[ChangeDelete-C.FORREST_CHANGE_DELETE]
	_ = [1]struct{}{}[ChangeDeleteRange-C.FORREST_CHANGE_DELETE_RANGE]
	_ = [1]struct{}{}[ChangeCreateKeyspace-C.FORREST_CHANGE_CREATE_KEYSPACE]
	_ = [1]struct{}{}[ChangeDropKeyspace-C.FORREST_CHANGE_DROP_KEYSPACE]
	_ = [1]struct{}{}[ChangeIngest-C.FORREST_CHANGE_INGEST]
	_ = [1]struct{}{}[CanIterate-C.FORREST_CAN_ITERATE]
	_ = [1]struct{}{}[CanBatch-C.FORREST_CAN_BATCH]
	_ = [1]struct{}{}[CanSnapshot-C.FORREST_CAN_SNAPSHOT]
	_ = [1]struct{}{}[CanKeyspaces-C.FORREST_CAN_KEYSPACES]
	_ = [1]struct{}{}[CanPersist-C.FORREST_CAN_PERSIST]
	_ = [1]struct{}{}[CanShare-C.FORREST_CAN_SHARE]
	_ = [1]struct{}{}[CanSync-C.FORREST_CAN_SYNC]
	_ = [1]struct{}{}[CanReadOnly-C.FORREST_CAN_READ_ONLY]
	_ = [1]struct{}{}[CanCheckpoint-C.FORREST_CAN_CHECKPOINT]
	_ = [1]struct{}{}[CanVerify-C.FORREST_CAN_VERIFY]
	_ = [1]struct{}{}[CanCompact-C.FORREST_CAN_COMPACT]
	_ = [1]struct{}{}[CanIngest-C.FORREST_CAN_INGEST]
	_ = [1]struct{}{}[CanCompress-C.FORREST_CAN_COMPRESS]
	_ = [1]struct{}{}[CanMetrics-C.FORREST_CAN_METRICS]
	_ = [1]struct{}{}[CanApproximate-C.FORREST_CAN_APPROXIMATE]
	_ = [1]struct{}{}[CanChanges-C.FORREST_CAN_CHANGES]
	_ = [1]struct{}{}[CanMerge-C.FORREST_CAN_MERGE]
	_ = [1]struct{}{}[CanBackup-C.FORREST_CAN_BACKUP]
)
