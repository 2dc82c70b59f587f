// Package raft keeps the log of hashicorp/raft in Forrest: a raft.LogStore and a raft.StableStore.
//
// Every change is durable when its call returns, if the store is on disk. Deleting a range of the log is one change,
// which takes the same time for any number of entries. The log may have gaps. Logs and stable values are in keyspaces of
// their own, so that the store may hold the state machine as well.
package raft

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"forrest.invalid/forrest"
	"github.com/hashicorp/raft"
)

// The keyspaces.
const (
	logs   = "raft/logs"
	stable = "raft/stable"
)

// Store is a raft.LogStore and a raft.StableStore. Many goroutines may use it at once.
type Store struct {
	logs, stable *forrest.Keyspace
	durability   forrest.Durability
}

var (
	_ raft.LogStore    = (*Store)(nil)
	_ raft.StableStore = (*Store)(nil)
)

// New returns a store in a database, which stays the caller's. A store that is not on disk is as durable as its process.
func New(db *forrest.DB) (*Store, error) {
	capabilities, err := db.Capabilities()
	if err != nil {
		return nil, err
	}
	s := &Store{durability: forrest.Default}
	if capabilities.Has(forrest.CanSync) {
		s.durability = forrest.Sync
	}
	if s.logs, err = db.Keyspace(logs); err != nil {
		return nil, err
	}
	s.stable, err = db.Keyspace(stable)
	return s, err
}

// Close ends the use of the database, which stays open.
func (s *Store) Close() error { return errors.Join(s.logs.Close(), s.stable.Close()) }

// FirstIndex returns the first index of the log, 0 if it is empty.
func (s *Store) FirstIndex() (uint64, error) { return s.end(false) }

// LastIndex returns the last index of the log, 0 if it is empty.
func (s *Store) LastIndex() (uint64, error) { return s.end(true) }

func (s *Store) end(last bool) (uint64, error) {
	for key, err := range s.logs.Keys(context.Background(), forrest.Bounds{Limit: 1, Reverse: last}) {
		if err != nil {
			return 0, err
		}
		if len(key) != 8 {
			return 0, fmt.Errorf("%w: a key of the log has %d bytes", forrest.ErrCorrupt, len(key))
		}
		return binary.BigEndian.Uint64(key), nil
	}
	return 0, nil
}

func indexKey(index uint64) []byte { return binary.BigEndian.AppendUint64(nil, index) }

// GetLog reads an entry, or fails with raft.ErrLogNotFound.
func (s *Store) GetLog(index uint64, log *raft.Log) error {
	value, err := s.logs.Get(indexKey(index))
	if errors.Is(err, forrest.ErrNotFound) {
		return raft.ErrLogNotFound
	}
	if err != nil {
		return err
	}
	return decode(index, value, log)
}

// StoreLog stores an entry.
func (s *Store) StoreLog(log *raft.Log) error { return s.StoreLogs([]*raft.Log{log}) }

// StoreLogs stores entries at one instant.
func (s *Store) StoreLogs(logs []*raft.Log) error {
	var batch forrest.Batch
	var value []byte
	for _, log := range logs {
		value = encode(value[:0], log)
		batch.Set(indexKey(log.Index), value)
	}
	return s.logs.WriteWith(&batch, s.durability)
}

// DeleteRange deletes the entries from min to max, both included, at one instant.
func (s *Store) DeleteRange(min, max uint64) error {
	if min > max {
		return nil
	}
	var batch forrest.Batch
	if max == math.MaxUint64 {
		batch.DeleteRange(indexKey(min), nil)
	} else {
		batch.DeleteRange(indexKey(min), indexKey(max+1))
	}
	return s.logs.WriteWith(&batch, s.durability)
}

// Set stores a value.
func (s *Store) Set(key []byte, value []byte) error {
	var batch forrest.Batch
	batch.Set(key, value)
	return s.stable.WriteWith(&batch, s.durability)
}

// Get returns a value, empty if there is none.
func (s *Store) Get(key []byte) ([]byte, error) {
	value, err := s.stable.Get(key)
	if errors.Is(err, forrest.ErrNotFound) {
		return []byte{}, nil
	}
	return value, err
}

// SetUint64 stores a number.
func (s *Store) SetUint64(key []byte, value uint64) error { return s.Set(key, indexKey(value)) }

// GetUint64 returns a number, 0 if there is none.
func (s *Store) GetUint64(key []byte) (uint64, error) {
	value, err := s.Get(key)
	switch {
	case err != nil || len(value) == 0:
		return 0, err
	case len(value) != 8:
		return 0, fmt.Errorf("%w: the value of %q has %d bytes, and is no number", forrest.ErrInvalidArgument, key, len(value))
	default:
		return binary.BigEndian.Uint64(value), nil
	}
}

// An entry is stored as: the version of this form, the type (a byte each), the term (8), seconds since 1970 (8) and
// nanoseconds (4) of AppendedAt, both all ones if it is zero, the length of the data (4), all big-endian, the data, and
// the extensions.
const (
	version   = 1
	headBytes = 26
)

func encode(to []byte, log *raft.Log) []byte {
	seconds, nanoseconds := int64(-1), uint32(math.MaxUint32)
	if !log.AppendedAt.IsZero() {
		seconds, nanoseconds = log.AppendedAt.Unix(), uint32(log.AppendedAt.Nanosecond())
	}
	to = append(to, version, byte(log.Type))
	to = binary.BigEndian.AppendUint64(to, log.Term)
	to = binary.BigEndian.AppendUint64(to, uint64(seconds))
	to = binary.BigEndian.AppendUint32(to, nanoseconds)
	to = binary.BigEndian.AppendUint32(to, uint32(len(log.Data)))
	to = append(to, log.Data...)
	return append(to, log.Extensions...)
}

func decode(index uint64, value []byte, log *raft.Log) error {
	if len(value) < headBytes || value[0] != version {
		return fmt.Errorf("%w: entry %d of the log is not of version %d", forrest.ErrCorrupt, index, version)
	}
	head, rest := value[:headBytes], value[headBytes:]
	length := binary.BigEndian.Uint32(head[22:])
	if uint64(length) > uint64(len(rest)) {
		return fmt.Errorf("%w: entry %d of the log ends early", forrest.ErrCorrupt, index)
	}
	*log = raft.Log{Index: index, Type: raft.LogType(head[1]), Term: binary.BigEndian.Uint64(head[2:])}
	if nanoseconds := binary.BigEndian.Uint32(head[18:]); nanoseconds != math.MaxUint32 {
		log.AppendedAt = time.Unix(int64(binary.BigEndian.Uint64(head[10:])), int64(nanoseconds))
	}
	if length != 0 {
		log.Data = rest[:length:length]
	}
	if rest = rest[length:]; len(rest) != 0 {
		log.Extensions = rest
	}
	return nil
}
