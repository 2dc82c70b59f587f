//! How much to reserve where addresses are few (`ulimit -v`, emulation).

/// Calls `make` with `want`, and, while that fails, with half as much each time, but with no less than `least`.
///
/// After a failure, the first size that succeeds is not kept: it is given back, and half of it is taken. So the next
/// caller finds at least as much as this one took.
///
/// # Errors
/// The one of `make` for `least`.
pub fn fitting<T, E>(want: usize, least: usize, mut make: impl FnMut(usize) -> Result<T, E>) -> Result<T, E> {
    let half = |size: usize| (size / 2).max(least);
    let mut size = want.max(least);
    let mut is_short = false;
    loop {
        match make(size) {
            Err(_) if size > least => is_short = true,
            Ok(made) if is_short => {
                drop(made);
                return make(half(size));
            }
            made => return made,
        }
        size = half(size);
    }
}

#[cfg(test)]
mod tests {
    use super::fitting;

    #[test]
    fn half_of_what_fits_is_taken_where_not_all_fits() {
        let of =
            |want, least, room| fitting(want, least, |size| if size <= room { Ok(size) } else { Err(size) });
        assert_eq!(of(1000, 10, 1000), Ok(1000), "all of it fits");
        assert_eq!(of(1000, 10, 999), Ok(250));
        assert_eq!(of(1000, 10, 100), Ok(31));
        assert_eq!(of(1000, 10, 15), Ok(10), "never less than the least");
        assert_eq!(of(1000, 10, 9), Err(10));
        assert_eq!(of(1000, 1000, 999), Err(1000), "exactly that much was asked for");
        assert_eq!(of(1, 10, 10), Ok(10));
        // Each leaves as much as it took.
        let mut room = 1 << 20;
        for _ in 0..10 {
            let taken = of(1 << 20, 1, room - 1).unwrap();
            assert!(2 * taken < room, "{taken} of {room}");
            room -= taken;
        }
    }
}
