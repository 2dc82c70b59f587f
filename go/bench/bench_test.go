package main

import "testing"

// TestStores runs the benchmark with few pairs on each store. It fails if one returns something wrong.
func TestStores(t *testing.T) {
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			rates, err := run(s.name, t.TempDir(), 2000)
			if err != nil || len(rates) != len(phases) {
				t.Fatal(rates, err)
			}
		})
	}
}
