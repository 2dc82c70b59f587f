// SPDX-License-Identifier: MIT OR Apache-2.0

// Command histories checks recorded histories of transactions for strict
// serializability: whether there is an order of the transactions, each at an
// instant between its begin and its end, in which every call returns what it
// returned. `cargo xtask histories` runs it. The search is porcupine's; this
// file reads the histories, and interprets the calls on a map.
//
// A history is a file of JSON lines, one for each committed transaction, as
// src/tests/histories.rs writes them. Keys and values are in hexadecimal
// digits. A file whose name begins with "wrong-" must not have such an order.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Time for one history. One that is not decided by then counts as a failure.
const timeout = 60 * time.Second

// A transaction.
type record struct {
	Client int                 `json:"client"`
	Begin  int64               `json:"begin"`
	End    int64               `json:"end"`
	Calls  [][]json.RawMessage `json:"calls"`
}

// A call that was read from a record.
type call struct {
	name        string
	key, end    string
	value       *string
	back, whole bool
	pairs       [][2]string
}

// The content of the store: pairs, sorted by key. It is never changed in
// place.
type content []([2]string)

func (c content) find(key string) int {
	return sort.Search(len(c), func(i int) bool { return c[i][0] >= key })
}

func (c content) get(key string) *string {
	if i := c.find(key); i < len(c) && c[i][0] == key {
		return &c[i][1]
	}
	return nil
}

func (c content) without(from, to int) content {
	return append(append(content{}, c[:from]...), c[to:]...)
}

func (c content) set(key, value string) content {
	i := c.find(key)
	rest := i
	if i < len(c) && c[i][0] == key {
		rest++
	}
	next := append(append(content{}, c[:i]...), [2]string{key, value})
	return append(next, c[rest:]...)
}

func (c content) remove(key string) content {
	if c.get(key) == nil {
		return c
	}
	i := c.find(key)
	return c.without(i, i+1)
}

// Whether a range has the pairs that were returned, from the end where it
// began; all of them if the iteration came to its end.
func (c content) shows(call call) bool {
	from, to := c.find(call.key), c.find(call.end)
	if from > to {
		to = from
	}
	found := c[from:to]
	if len(found) < len(call.pairs) || call.whole && len(found) > len(call.pairs) {
		return false
	}
	for i, pair := range call.pairs {
		at := i
		if call.back {
			at = len(found) - 1 - i
		}
		if found[at] != pair {
			return false
		}
	}
	return true
}

func same(a, b *string) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// Runs a transaction. False if a call would have returned something else.
func step(state, input, _ interface{}) (bool, interface{}) {
	c := state.(content)
	for _, call := range input.([]call) {
		switch call.name {
		case "get":
			if !same(c.get(call.key), call.value) {
				return false, state
			}
		case "range":
			if !c.shows(call) {
				return false, state
			}
		case "set":
			c = c.set(call.key, *call.value)
		case "delete":
			c = c.remove(call.key)
		case "delete-range":
			if from, to := c.find(call.key), c.find(call.end); from < to {
				c = c.without(from, to)
			}
		}
	}
	return true, c
}

func equal(a, b interface{}) bool {
	x, y := a.(content), b.(content)
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i] != y[i] {
			return false
		}
	}
	return true
}

func parse(parts []json.RawMessage) (c call, err error) {
	places := map[string][]interface{}{
		"get":          {&c.key, &c.value},
		"set":          {&c.key, &c.value},
		"delete":       {&c.key},
		"range":        {&c.key, &c.end, &c.back, &c.whole, &c.pairs},
		"delete-range": {&c.key, &c.end},
	}
	if len(parts) == 0 {
		return c, fmt.Errorf("a call without a name")
	}
	if err = json.Unmarshal(parts[0], &c.name); err != nil {
		return c, err
	}
	into, known := places[c.name]
	if !known || len(into) != len(parts)-1 {
		return c, fmt.Errorf("no call %q has %d arguments", c.name, len(parts)-1)
	}
	for i, place := range into {
		if err = json.Unmarshal(parts[i+1], place); err != nil {
			return c, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	if c.name == "set" && c.value == nil {
		return c, fmt.Errorf("set without a value")
	}
	return c, nil
}

func read(path string) ([]porcupine.Operation, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var history []porcupine.Operation
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for number := 1; lines.Scan(); number++ {
		var r record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, number, err)
		}
		calls := []call{}
		for _, parts := range r.Calls {
			c, err := parse(parts)
			if err != nil {
				return nil, fmt.Errorf("%s, line %d: %w", path, number, err)
			}
			calls = append(calls, c)
		}
		history = append(history, porcupine.Operation{
			ClientId: r.Client, Input: calls, Call: r.Begin, Return: r.End,
		})
	}
	return history, lines.Err()
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: histories DIRECTORY")
		os.Exit(2)
	}
	paths, err := filepath.Glob(filepath.Join(os.Args[1], "*.jsonl"))
	if err != nil || len(paths) == 0 {
		fmt.Fprintf(os.Stderr, "no histories in %s\n", os.Args[1])
		os.Exit(1)
	}
	model := porcupine.Model{
		Init:  func() interface{} { return content(nil) },
		Step:  step,
		Equal: equal,
	}
	kinds := map[string][2]int{}
	failed := false
	for _, path := range paths {
		history, err := read(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		wanted := porcupine.Ok
		if strings.HasPrefix(name, "wrong-") {
			wanted = porcupine.Illegal
		}
		found := porcupine.CheckOperationsTimeout(model, history, timeout)
		if found != wanted {
			fmt.Printf("%s: %s, expected %s, with %d transactions\n", name, found, wanted, len(history))
			failed = true
		}
		kind := name[:strings.LastIndex(name, "-")]
		count := kinds[kind]
		kinds[kind] = [2]int{count[0] + 1, count[1] + len(history)}
	}
	var names []string
	for kind := range kinds {
		names = append(names, kind)
	}
	sort.Strings(names)
	for _, kind := range names {
		fmt.Printf("%s: %d histories, %d transactions\n", kind, kinds[kind][0], kinds[kind][1])
	}
	if failed {
		os.Exit(1)
	}
}
