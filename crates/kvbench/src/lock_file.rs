//! The versions that this program is compiled with.

/// The version of a package, as the lock file has it. Where that has several, the one that this program names.
pub(crate) fn version(package: &str) -> Option<&'static str> {
    let lock = include_str!("../../../Cargo.lock");
    let section = |name: &str| {
        let name = format!("name = \"{name}\"");
        lock.lines().skip_while(move |line| *line != name).take_while(|line| !line.is_empty())
    };
    let dependency = format!("\"{package} ");
    let named = section(env!("CARGO_PKG_NAME"))
        .find_map(|line| line.trim_start().strip_prefix(&dependency)?.strip_suffix("\","));
    named.or_else(|| section(package).nth(1)?.strip_prefix("version = \"")?.strip_suffix('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_this_programs_where_there_are_several() {
        assert!(version("hashbrown").is_some_and(|version| version.starts_with("0.17.")));
        assert!(version("blart").is_some_and(|version| version.starts_with("0.")));
        assert_eq!(version("no such package"), None);
    }
}
