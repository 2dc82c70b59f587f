package avalanche

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"forrest.invalid/forrest"
	"github.com/ava-labs/avalanchego/database"
	"github.com/ava-labs/avalanchego/database/dbtest"
)

func open(t testing.TB, url string) *Database {
	db, err := forrest.Open(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return New(db)
}

// TestSuite runs avalanchego's tests of databases.
func TestSuite(t *testing.T) {
	for _, home := range []string{"memory", "disk"} {
		url := func(t testing.TB) string {
			if home == "disk" {
				return filepath.Join(t.TempDir(), "store")
			}
			return "memory:"
		}
		for name, test := range dbtest.TestsBasic {
			t.Run(home+"/"+name, func(t *testing.T) { test(t, open(t, url(t))) })
		}
		for name, test := range dbtest.Tests {
			t.Run(home+"/"+name, func(t *testing.T) { test(t, open(t, url(t))) })
		}
	}
}

func BenchmarkSuite(b *testing.B) {
	for _, size := range dbtest.BenchmarkSizes {
		keys, values := dbtest.SetupBenchmark(b, size[0], size[1], size[2])
		for name, bench := range dbtest.Benchmarks {
			b.Run(name, func(b *testing.B) {
				bench(b, open(b, filepath.Join(b.TempDir(), "store")), keys, values)
			})
		}
	}
}

func TestHealth(t *testing.T) {
	db := open(t, "memory:")
	if details, err := db.HealthCheck(context.Background()); err != nil || details == nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := db.HealthCheck(context.Background())
	if !errors.Is(err, database.ErrClosed) || !errors.Is(db.Close(), database.ErrClosed) {
		t.Fatal(err)
	}
}
