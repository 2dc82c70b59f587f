package forrest

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
)

// loaded is a store with pairs of 16 and 100 bytes, all in tables.
func loaded(b *testing.B, url string) (*DB, int) {
	const n = 500_000
	db, err := Open(url, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	var batch Batch
	value := make([]byte, 100)
	for i := range n {
		batch.Set(binary.BigEndian.AppendUint64([]byte("forrestk"), uint64(i)), value)
		if batch.Len() == 1000 {
			if err := db.Write(&batch); err != nil {
				b.Fatal(err)
			}
			batch.Reset()
		}
	}
	if err := db.Compact(); err != nil && url != "memory:" {
		b.Fatal(err)
	}
	return db, n
}

func BenchmarkReads(b *testing.B) {
	for _, url := range []string{"memory:", filepath.Join(b.TempDir(), "store")} {
		home := "memory"
		if url != "memory:" {
			home = "disk"
		}
		db, n := loaded(b, url)
		random := rand.New(rand.NewPCG(1, 1))
		key := func() []byte {
			return binary.BigEndian.AppendUint64([]byte("forrestk"), uint64(random.IntN(n-100)))
		}
		b.Run(home+"/get", func(b *testing.B) {
			var value []byte
			for range b.N {
				var err error
				if value, err = db.AppendValue(value[:0], key()); err != nil {
					b.Fatal(err)
				}
			}
		})
		for _, limit := range []int{1, 10, 50, 1000} {
			b.Run(fmt.Sprint(home, "/scan", limit), func(b *testing.B) {
				for range b.N {
					for _, err := range db.Range(context.Background(), Bounds{Start: key(), Limit: limit}) {
						if err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}
