//! hashbrown's `HashMap`: no order, and the fastest point reads of all subjects.

super::hashmap::adapter!(hashbrown::HashMap);
