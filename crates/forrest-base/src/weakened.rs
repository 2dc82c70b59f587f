//! [`weakened!`](crate::weakened): places at which a run of the models can weaken a protocol, to show that a model then
//! fails.

/// Whether the variable FORREST_WEAKENED names a place: `weakened!("name")`. `weakened!("name", Release)` is that
/// ordering, or `Relaxed` if it does; `Ordering` must be in scope. Outside of the models the first is the constant
/// `false`, and the second the ordering itself.
#[cfg(feature = "weakened")]
#[macro_export]
macro_rules! weakened {
    ($name:literal) => {{
        static IS_WEAKENED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
        *IS_WEAKENED.get_or_init(|| std::env::var_os("FORREST_WEAKENED").is_some_and(|name| name == $name))
    }};
    ($name:literal, $strong:ident) => {
        if $crate::weakened!($name) { Ordering::Relaxed } else { Ordering::$strong }
    };
}

/// Whether a run of the models weakens a place; here there is none, so `false`, and the ordering that is named.
#[cfg(not(feature = "weakened"))]
#[macro_export]
macro_rules! weakened {
    ($name:literal) => {
        false
    };
    ($name:literal, $strong:ident) => {
        Ordering::$strong
    };
}
