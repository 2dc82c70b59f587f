//! Forrest: an ordered key-value library.
#![forbid(unsafe_code)]
