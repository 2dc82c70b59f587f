//! How homes are named: a URL, or a path.

#[cfg(feature = "llds")]
use ::llds::Kind;
use forrest_engine::{Error, Result};
use std::path::{Path, PathBuf};

/// Where a store lives, as its URL says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Home {
    /// `memory:`
    Memory,
    /// `llds:NAME`, or `llds-user:NAME`
    Kernel(Kind, String),
    /// Anything that does not begin with a scheme.
    Path(PathBuf),
}

impl Home {
    pub(crate) fn parse(url: &str) -> Result<Home> {
        if url.is_empty() {
            return Err(Error::invalid("the URL is empty; a home is \"memory:\", \"llds:NAME\" or a path"));
        }
        match scheme(url) {
            None => Ok(Home::Path(PathBuf::from(url))),
            Some(("memory", "")) => Ok(Home::Memory),
            Some(("memory", rest)) => Err(Error::invalid(format!(
                "\"memory:\" takes nothing after the colon, and there is \"{}\"",
                rest.escape_debug()
            ))),
            Some((scheme @ ("llds" | "llds-user"), "")) => {
                Err(Error::invalid(format!("\"{scheme}:\" needs the name of a store after the colon")))
            }
            Some(("llds", name)) => Ok(Home::Kernel(Kind::Kernel, name.to_string())),
            Some(("llds-user", name)) => Ok(Home::Kernel(Kind::User, name.to_string())),
            Some((other, _)) => Err(Error::invalid(format!(
                "no home is called \"{other}:\"; a home is \"memory:\", \"llds:NAME\" or a path (a path that \
                 begins like this one is written \"./{}\")",
                url.escape_debug()
            ))),
        }
    }
}

/// The directory that a store is in which [`Db::open`](crate::Db::open) opens by this URL; `None` if the URL names another home, or
/// none.
///
/// A path is what does not begin with a scheme: two or more letters, digits, `+`, `-` or `.`, the first of them a letter,
/// before a colon.
///
/// ```
/// use std::path::Path;
/// assert_eq!(forrest::directory("trees"), Some(Path::new("trees")));
/// assert_eq!(forrest::directory("./memory:"), Some(Path::new("./memory:")));
/// assert_eq!(forrest::directory("memory:"), None);
/// ```
pub fn directory(url: &str) -> Option<&Path> {
    (!url.is_empty() && scheme(url).is_none()).then(|| Path::new(url))
}

/// A URL's scheme and what follows, if it has one: two or more letters, digits, `+`, `-` or `.` before a colon.
fn scheme(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once(':')?;
    let word = scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    (word && scheme.len() >= 2 && scheme.as_bytes()[0].is_ascii_alphabetic()).then_some((scheme, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
