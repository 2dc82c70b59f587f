//! What the machine gives, made safe.
