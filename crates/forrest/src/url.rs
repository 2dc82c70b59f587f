//! URLs of homes.

#[cfg(feature = "llds")]
use ::llds::Kind;
use forrest_engine::{Durability, Error, Result};
use std::path::{Path, PathBuf};

/// The home that a URL selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Home {
    /// `memory:`
    Memory,
    /// `llds:NAME`, or `llds-user:NAME`
    #[cfg(feature = "llds")]
    Kernel(Kind, String),
    /// `llds:NAME` or `llds-user:NAME` in a build without that home.
    #[cfg(not(feature = "llds"))]
    Kernel,
    /// Anything that does not begin with a scheme.
    Path(PathBuf),
}

/// The start of the one parameter that a URL may have, at its end.
const DURABILITY: &str = "?durability=";

/// Splits a URL into the part before the parameter and the parameter's value.
fn split(url: &str) -> (&str, Option<&str>) {
    match url.rfind(DURABILITY) {
        Some(at) => (&url[..at], Some(&url[at + DURABILITY.len()..])),
        None => (url, None),
    }
}

/// The home that a URL selects, and its durability parameter, which the home may lower.
pub(crate) fn parse(url: &str) -> Result<(Home, Option<Durability>)> {
    let (home, level) = split(url);
    let level = match level {
        None => None,
        Some("memory") => Some(Durability::Memory),
        Some("buffered") => Some(Durability::Buffered),
        Some("sync") => Some(Durability::Sync),
        Some(other) => {
            return Err(Error::invalid(format!(
                "unknown durability \"{}\"; write {DURABILITY}memory, buffered or sync",
                other.escape_debug()
            )));
        }
    };
    Ok((Home::parse(home)?, level))
}

impl Home {
    /// The strongest durability of this home.
    pub(crate) fn durability_max(&self) -> Durability {
        match self {
            Home::Memory => Durability::Memory,
            #[cfg(feature = "llds")]
            Home::Kernel(kind, _) => kind.durability_max(),
            #[cfg(not(feature = "llds"))]
            Home::Kernel => Durability::Buffered,
            Home::Path(_) => Durability::Sync,
        }
    }

    pub(crate) fn parse(url: &str) -> Result<Home> {
        if url.is_empty() {
            return Err(Error::invalid("the URL is empty; write \"memory:\", \"llds:NAME\" or a path"));
        }
        match scheme(url) {
            None => Ok(Home::Path(PathBuf::from(url))),
            Some(("memory", "")) => Ok(Home::Memory),
            Some(("memory", rest)) => Err(Error::invalid(format!(
                "\"memory:\" takes nothing after the colon, found \"{}\"",
                rest.escape_debug()
            ))),
            Some((scheme @ ("llds" | "llds-user"), "")) => {
                Err(Error::invalid(format!("\"{scheme}:\" needs a store name after the colon")))
            }
            #[cfg(feature = "llds")]
            Some(("llds", name)) => Ok(Home::Kernel(Kind::Kernel, name.to_string())),
            #[cfg(feature = "llds")]
            Some(("llds-user", name)) => Ok(Home::Kernel(Kind::User, name.to_string())),
            #[cfg(not(feature = "llds"))]
            Some(("llds" | "llds-user", _)) => Ok(Home::Kernel),
            Some((other, _)) => Err(Error::invalid(format!(
                "unknown home \"{other}:\"; write \"memory:\", \"llds:NAME\" or a path (if this is a path, write \
                 \"./{}\")",
                url.escape_debug()
            ))),
        }
    }
}

/// The directory of the store that [`Db::open`](crate::Db::open) opens for this URL; `None` if the URL
/// selects another home, or none.
///
/// A URL is a path if it does not begin with a scheme. A scheme is a letter followed by one or more letters,
/// digits, `+`, `-` or `.`, and a colon.
///
/// ```
/// use std::path::Path;
/// assert_eq!(forrest::directory("trees"), Some(Path::new("trees")));
/// assert_eq!(forrest::directory("./memory:"), Some(Path::new("./memory:")));
/// assert_eq!(forrest::directory("trees?durability=sync"), Some(Path::new("trees")));
/// assert_eq!(forrest::directory("memory:"), None);
/// ```
pub fn directory(url: &str) -> Option<&Path> {
    let (path, _) = split(url);
    (!path.is_empty() && scheme(path).is_none()).then(|| Path::new(path))
}

/// A URL's scheme and the rest, if it has a scheme.
fn scheme(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once(':')?;
    let word = scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    (word && scheme.len() >= 2 && scheme.as_bytes()[0].is_ascii_alphabetic()).then_some((scheme, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "llds")]
    #[test]
    fn homes_are_told_apart() {
        let path = |text: &str| Home::Path(PathBuf::from(text));
        let cases = [
            ("memory:", Home::Memory),
            ("llds:shop", Home::Kernel(Kind::Kernel, "shop".into())),
            ("llds:a:b", Home::Kernel(Kind::Kernel, "a:b".into())),
            ("llds-user:shop", Home::Kernel(Kind::User, "shop".into())),
            ("memory", path("memory")),
            ("/a:b/c", path("/a:b/c")),
            ("a/b:c", path("a/b:c")),
            ("C:\\stores", path("C:\\stores")),
            ("2nd:", path("2nd:")),
            (":", path(":")),
            (" memory:", path(" memory:")),
        ];
        for (url, home) in cases {
            assert_eq!(Home::parse(url).unwrap(), home, "{url}");
            let place = directory(url).map(|path| Home::Path(path.to_owned()));
            assert_eq!(place, Some(home).filter(|home| matches!(home, Home::Path(_))), "{url}");
        }
        for url in ["", "memory:x", "llds:", "llds-user:", "LLDS:x", "MEMORY:", "file:///a", "a+b-c.d:"] {
            assert!(Home::parse(url).is_err(), "{url}");
            assert_eq!(directory(url), None, "{url}");
        }
    }

    #[test]
    fn a_url_may_ask_for_a_durability() {
        use Durability::{Buffered, Memory, Sync};
        let path = |text: &str| Home::Path(PathBuf::from(text));
        let cases = [
            ("memory:?durability=sync", Home::Memory, Some(Sync)),
            ("a/b?durability=memory", path("a/b"), Some(Memory)),
            ("a?durability=sync?durability=buffered", path("a?durability=sync"), Some(Buffered)),
            ("a?b", path("a?b"), None),
            ("a?durability", path("a?durability"), None),
        ];
        for (url, home, level) in cases {
            assert_eq!(parse(url).unwrap(), (home, level), "{url}");
        }
        for url in ["a?durability=", "a?durability=SYNC", "memory:?durability=no", "?durability=sync"] {
            assert!(parse(url).is_err(), "{url}");
        }
    }
}
