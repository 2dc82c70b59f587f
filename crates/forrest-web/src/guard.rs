//! Which requests are served: those of this page. See "Who can read the store" in lib.rs.

use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use std::net::SocketAddr;

/// What a request must have.
pub(crate) struct Guard {
    token: String,
    /// The values of `Host` that are the server's own.
    hosts: Vec<String>,
}

/// Paths of files that have nothing of the store.
pub(crate) const PUBLIC: &[&str] = &["/app.js", "/style.css"];

impl Guard {
    /// A guard with a new token.
    pub(crate) fn new(address: SocketAddr) -> std::io::Result<Guard> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(std::io::Error::other)?;
        let token = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut hosts = vec![address.to_string(), format!("localhost:{}", address.port())];
        if address.port() == 80 {
            // Browsers leave it out.
            hosts.extend([address.ip().to_string(), "localhost".to_owned()]);
        }
        Ok(Guard { token, hosts })
    }

    /// The token.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Why a request is refused; `None` if it is not.
    pub(crate) fn refuse(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Option<(StatusCode, &'static str)> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok());
        if !host.is_some_and(|host| self.hosts.iter().any(|own| own == host)) || hosts.next().is_some() {
            return Some((StatusCode::FORBIDDEN, "the Host of the request is not this server"));
        }
        if method != Method::GET {
            return Some((StatusCode::METHOD_NOT_ALLOWED, "this server has GET only"));
        }
        if PUBLIC.contains(&uri.path()) {
            return None;
        }
        let given = match uri.path() {
            // What a user opens. All else is asked for by the page.
            "/" => {
                uri.query().and_then(|query| query.split('&').find_map(|part| part.strip_prefix("token=")))
            }
            _ => {
                let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
                given.and_then(|value| value.strip_prefix("Bearer "))
            }
        };
        if given.is_some_and(|given| self.is_token(given.as_bytes())) {
            return None;
        }
        Some((
            StatusCode::UNAUTHORIZED,
            "the token is missing or wrong: open the URL that the server printed",
        ))
    }

    /// Compares in a time that does not depend on where they differ.
    fn is_token(&self, given: &[u8]) -> bool {
        let own = self.token.as_bytes();
        given.len() == own.len() && given.iter().zip(own).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
    }
}
