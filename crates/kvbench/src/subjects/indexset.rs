//! indexset's `BTreeMap`: a B-tree of two levels with nodes of 1,024 pairs, which also supports the rank of a key.

super::btreemap::adapter!(indexset::BTreeMap);
