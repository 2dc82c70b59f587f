//! [`Name`]: whose a store's name is, as a URL says it.
//!
//! | in a URL | the store |
//! |---|---|
//! | `NAME` | of the user of this process |
//! | `UID/NAME` | of the user with that number |
//! | `shared/NAME` | of the first user who took the name |
//!
//! Only a user can create stores with its own names. So nobody finds another one's store under them.

use forrest_engine::{Error, Result};

/// What a shared name begins with.
const SHARED: &[u8] = b"shared";

/// A name and its user; `None` if it is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name<'n> {
    pub(crate) user: Option<u32>,
    pub(crate) bytes: &'n [u8],
}

impl<'n> Name<'n> {
    /// Reads a name, as the user `own`.
    ///
    /// # Errors
    /// `InvalidArgument` if it has a `/` and begins with neither a user nor `shared`.
    pub(crate) fn of(text: &'n [u8], own: u32) -> Result<Name<'n>> {
        let Some(at) = text.iter().position(|&byte| byte == b'/') else {
            return Ok(Name { user: Some(own), bytes: text });
        };
        let (whose, bytes) = (&text[..at], &text[at + 1..]);
        if whose == SHARED {
            return Ok(Name { user: None, bytes });
        }
        let digits =
            std::str::from_utf8(whose).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        match digits.and_then(|digits| digits.parse().ok()) {
            Some(user) => Ok(Name { user: Some(user), bytes }),
            None => Err(Error::invalid(format!(
                "\"llds:{}\": before the first \"/\" is the number of the user whose store it is, or \"shared\"",
                text.escape_ascii()
            ))),
        }
    }

    /// The name as the user `own` writes it.
    pub(crate) fn text(self, own: u32) -> Vec<u8> {
        match self.user {
            Some(user) if user == own && !self.bytes.contains(&b'/') => self.bytes.to_vec(),
            Some(user) => [user.to_string().as_bytes(), b"/", self.bytes].concat(),
            None => [SHARED, b"/", self.bytes].concat(),
        }
    }
}

/// The user of this process.
pub(crate) fn own() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The group of this process.
pub(crate) fn own_group() -> u32 {
    rustix::process::getegid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_whose_it_is() {
        let all: [(&[u8], _, &[u8], &[u8]); 6] = [
            (b"shop", Some(7), b"shop", b"shop"),
            (b"7/shop", Some(7), b"shop", b"shop"),
            (b"8/shop", Some(8), b"shop", b"8/shop"),
            (b"shared/shop", None, b"shop", b"shared/shop"),
            (b"7/a/b", Some(7), b"a/b", b"7/a/b"),
            (b"shared/", None, b"", b"shared/"),
        ];
        for (text, user, bytes, again) in all {
            let name = Name::of(text, 7).expect("it is a name");
            assert_eq!((name, name.text(7)), (Name { user, bytes }, again.to_vec()));
            assert_eq!(Name::of(again, 7).expect("it is a name"), name);
        }
    }

    #[test]
    fn a_name_of_nobody_is_refused() {
        for text in [&b"/shop"[..], b"a/b", b"-1/shop", b"+1/shop", b"4294967296/shop", b"\xff/shop"] {
            let error = Name::of(text, 7).expect_err("it is not").to_string();
            assert!(error.contains("\"shared\""), "{error}");
        }
    }
}
