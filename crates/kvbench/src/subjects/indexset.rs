//! indexset's `BTreeMap`: a B-tree of two levels with nodes of 1,024 pairs, which also supports the rank of a key.

// Its `retain` shows only keys that have a size, and not as a map's user asks for strings.
super::btreemap::adapter!(indexset::BTreeMap, K, {});
