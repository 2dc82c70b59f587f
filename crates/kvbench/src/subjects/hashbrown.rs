//! hashbrown's `HashMap`: no order, and the fastest point reads to be had.

super::hashmap::adapter!(hashbrown::HashMap);
