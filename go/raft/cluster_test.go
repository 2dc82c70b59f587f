package raft

import (
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"forrest.invalid/forrest"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/metrics"
	"github.com/hashicorp/raft-wal/verifier"
)

// machine counts what was applied.
type machine struct {
	mutex   sync.Mutex
	applied []string
}

func (m *machine) Apply(log *raft.Log) any {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.applied = append(m.applied, string(log.Data))
	return nil
}

func (m *machine) count() int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return len(m.applied)
}

func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	return nil, fmt.Errorf("there are no snapshots")
}
func (m *machine) Restore(io.ReadCloser) error { return fmt.Errorf("there are no snapshots") }

// node is a member of a cluster, with raft-wal's verifier between raft and its store.
type node struct {
	id        raft.ServerID
	db        *forrest.DB
	raft      *raft.Raft
	machine   *machine
	transport *raft.InmemTransport
	logs      *verifier.LogStore
}

const checkpoint = "checkpoint"

func isCheckpoint(log *raft.Log) (bool, error) { return string(log.Data) == checkpoint, nil }

func start(t *testing.T, path string, id int, reports chan<- verifier.VerificationReport) *node {
	db, err := forrest.Open(path, nil)
	must(t, err)
	store, err := New(db)
	must(t, err)
	n := &node{id: raft.ServerID(fmt.Sprint(id)), db: db, machine: &machine{}}
	n.logs = verifier.NewLogStore(store, isCheckpoint, func(report verifier.VerificationReport) { reports <- report }, &metrics.NoOpCollector{})
	_, n.transport = raft.NewInmemTransport(raft.ServerAddress(n.id))
	config := raft.DefaultConfig()
	config.LocalID = n.id
	config.HeartbeatTimeout, config.ElectionTimeout = 300*time.Millisecond, 300*time.Millisecond
	config.LeaderLeaseTimeout, config.CommitTimeout = 200*time.Millisecond, 5*time.Millisecond
	config.Logger = hclog.NewNullLogger()
	n.raft, err = raft.NewRaft(config, n.machine, n.logs, store, raft.NewInmemSnapshotStore(), n.transport)
	must(t, err)
	return n
}

func (n *node) stop(t *testing.T) {
	must(t, n.raft.Shutdown().Error())
	must(t, n.logs.Close())
	must(t, n.db.Close())
}

func connect(nodes []*node) {
	for _, from := range nodes {
		for _, to := range nodes {
			if from != to {
				from.transport.Connect(raft.ServerAddress(to.id), to.transport)
			}
		}
	}
}

// until waits for an event, which it looks for each time that a node has news or 10 ms have gone.
func until(t *testing.T, what string, happened func() bool) {
	t.Helper()
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	deadline := time.After(60 * time.Second)
	for !happened() {
		select {
		case <-ticks.C:
		case <-deadline:
			t.Fatal("waited in vain for " + what)
		}
	}
}

func leader(t *testing.T, nodes []*node) *node {
	var found *node
	until(t, "a leader", func() bool {
		for _, n := range nodes {
			if n.raft.State() == raft.Leader {
				found = n
				return true
			}
		}
		return false
	})
	return found
}

// TestCluster replicates entries to three nodes, restarts all, and goes on. raft-wal's verifier compares what each
// node has written and reads with what the leader has sent.
func TestCluster(t *testing.T) {
	const each = 50
	reports := make(chan verifier.VerificationReport, 1000)
	paths := []string{filepath.Join(t.TempDir(), "0"), filepath.Join(t.TempDir(), "1"), filepath.Join(t.TempDir(), "2")}
	for round := range 2 {
		var nodes []*node
		var servers []raft.Server
		for id, path := range paths {
			n := start(t, path, id, reports)
			nodes = append(nodes, n)
			servers = append(servers, raft.Server{ID: n.id, Address: raft.ServerAddress(n.id)})
		}
		connect(nodes)
		if round == 0 {
			must(t, nodes[0].raft.BootstrapCluster(raft.Configuration{Servers: servers}).Error())
		}
		apply := func(data string) {
			for {
				// Another node may be elected meanwhile.
				if err := leader(t, nodes).raft.Apply([]byte(data), time.Second).Error(); err == nil {
					return
				}
			}
		}
		for i := range each {
			apply(fmt.Sprint(round, " ", i))
			if i%10 == 9 {
				apply(checkpoint)
			}
		}
		wanted := (round + 1) * (each + each/10)
		for _, n := range nodes {
			until(t, "the entries", func() bool { return n.machine.count() >= wanted })
		}
		seen := 0
		until(t, "reports of the verifier", func() bool {
			for {
				select {
				case report := <-reports:
					if report.Err != nil && report.Err != verifier.ErrRangeMismatch {
						t.Fatalf("%v: %v", report.Range, report.Err)
					}
					if report.Err == nil {
						seen++
					}
				default:
					return seen >= 2*(round+1)
				}
			}
		})
		for _, n := range nodes {
			n.stop(t)
		}
	}
}

// TestTheVerifierSees changes an entry in the store: the verifier reports it, so that the test above can fail.
func TestTheVerifierSees(t *testing.T) {
	for _, isChanged := range []bool{false, true} {
		_, store := open(t, "memory:")
		reports := make(chan verifier.VerificationReport, 10)
		logs := verifier.NewLogStore(store, isCheckpoint, func(report verifier.VerificationReport) { reports <- report }, &metrics.NoOpCollector{})
		must(t, logs.StoreLog(&raft.Log{Index: 1, Data: []byte(checkpoint)}))
		<-reports
		for i := range uint64(10) {
			must(t, logs.StoreLog(&raft.Log{Index: 2 + i, Data: fmt.Append(nil, i)}))
		}
		if isChanged {
			must(t, store.StoreLog(&raft.Log{Index: 5, Data: []byte("other")}))
		}
		must(t, logs.StoreLog(&raft.Log{Index: 12, Data: []byte(checkpoint)}))
		report := <-reports
		if (report.Err != nil) != isChanged {
			t.Fatal(isChanged, report)
		}
		must(t, logs.Close())
	}
}
