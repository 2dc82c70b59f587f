//! What the page asks for, as JSON. Keys and values are hexadecimal.

use axum::http::HeaderMap;
use forrest::{Capability, Db, Error, ErrorKind, Key, MAX_KEY_BYTES, Metrics, View, prefix_end};
use forrest_base::lock;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use std::io::Read;
use std::ops::{Bound, ControlFlow};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Maximum number of pairs of a response.
const PAIRS_MAX: usize = 500;
/// A range ends when its response has this many bytes of keys and values.
const ANSWER_BYTES: usize = 1 << 20;
/// Bytes of a value in a range.
const SHOWN_BYTES: usize = 256;
/// Bytes of a single value.
const VALUE_BYTES: usize = 64 << 10;
/// A file with metrics that is longer is none.
const METRICS_BYTES: u64 = 1 << 20;
/// A range ends when its reads have taken this long, since no client waits much longer.
const RANGE_TIME: Duration = Duration::from_secs(2);
/// How long a state of the store is shown before a newer one is looked for.
const REFRESH: Duration = Duration::from_millis(500);

/// A store that is looked at.
pub(crate) struct Site {
    pub(crate) db: Db,
    pub(crate) name: String,
    /// Where another process that has the store open writes what it does.
    pub(crate) metrics_file: Option<PathBuf>,
    pub(crate) refreshed: Mutex<Option<Instant>>,
}

/// Why a request fails: a code of HTTP, and a text for the user.
pub(crate) type Refused = (u16, String);

/// Hexadecimal digits of the largest key.
pub(crate) const KEY_DIGITS_MAX: usize = 2 * MAX_KEY_BYTES;
/// The keys of a query may be in headers with these names, because a URL has 64 KiB at most.
const PREFIX: &str = "forrest-prefix";
const AFTER: &str = "forrest-after";
const FROM: &str = "forrest-from";
const KEY: &str = "forrest-key";

/// A range of a keyspace.
#[derive(Debug, Deserialize)]
pub(crate) struct RangeQuery {
    keyspace: String,
    /// Only keys that begin with this.
    #[serde(default)]
    prefix: String,
    /// Keys after this one, in the direction of the range.
    after: Option<String>,
    /// Keys from this one on, in the direction of the range.
    from: Option<String>,
    limit: Option<usize>,
    /// From large keys to small ones.
    #[serde(default)]
    reverse: bool,
}

/// A value.
#[derive(Debug, Deserialize)]
pub(crate) struct ValueQuery {
    keyspace: String,
    key: Option<String>,
}

impl RangeQuery {
    /// The same with the keys in headers.
    pub(crate) fn with(mut self, headers: &HeaderMap) -> Result<RangeQuery, Refused> {
        self.prefix = header(headers, PREFIX)?.unwrap_or(self.prefix);
        self.after = header(headers, AFTER)?.or(self.after);
        self.from = header(headers, FROM)?.or(self.from);
        Ok(self)
    }
}

impl ValueQuery {
    /// The same with the key in a header.
    pub(crate) fn with(mut self, headers: &HeaderMap) -> Result<ValueQuery, Refused> {
        self.key = header(headers, KEY)?.or(self.key);
        Ok(self)
    }
}

fn header(headers: &HeaderMap, name: &str) -> Result<Option<String>, Refused> {
    let text = headers.get(name).map(|value| value.to_str().map(str::to_owned));
    text.transpose().map_err(|_| (400, format!("{name} is not hexadecimal")))
}

impl Site {
    fn refresh(&self) -> Result<(), Refused> {
        let mut refreshed = lock(&self.refreshed);
        if refreshed.is_none_or(|at| at.elapsed() >= REFRESH) {
            self.db.refresh().map_err(failed)?;
            *refreshed = Some(Instant::now());
        }
        Ok(())
    }

    /// A keyspace that is there: a look creates none.
    fn keyspace(&self, name: &str) -> Result<View, Refused> {
        self.refresh()?;
        if !self.db.keyspaces().map_err(failed)?.iter().any(|own| own == name) {
            return Err((404, format!("there is no keyspace {name:?}")));
        }
        self.view(name).map_err(failed)
    }

    /// A view of a keyspace. If it is dropped meanwhile, it is empty, and is not made again.
    fn view(&self, name: &str) -> forrest::Result<View> {
        match self.db.capabilities().has(Capability::Snapshots) {
            true => self.db.snapshot()?.keyspace(name),
            // There the only keyspace is the default one, which is always there.
            false => Ok(View::clone(&*self.db.keyspace(name)?)),
        }
    }

    /// The keyspaces, each with about how many keys and bytes it has.
    pub(crate) fn keyspaces(&self) -> Result<Json, Refused> {
        self.refresh()?;
        let mut all = Vec::new();
        for name in self.db.keyspaces().map_err(failed)? {
            // One may be dropped meanwhile, and a home may not know.
            let about = self.view(&name).and_then(|view| view.approximate(..)).ok();
            all.push(json!({
                "name": name,
                "keys": about.map(|about| about.keys),
                "bytes": about.map(|about| about.bytes),
            }));
        }
        Ok(json!({"store": self.name, "home": self.db.capabilities().home(), "keyspaces": all}))
    }

    /// The pairs of a range, with the beginnings of their values.
    pub(crate) fn range(&self, query: &RangeQuery) -> Result<Json, Refused> {
        let limit = query.limit.unwrap_or(100);
        if !(1..=PAIRS_MAX).contains(&limit) {
            return Err((400, format!("limit is {limit}; choose 1 to {PAIRS_MAX}")));
        }
        let prefix = bytes("prefix", &query.prefix)?;
        let after = query.after.as_deref().map(|hex| bytes("after", hex)).transpose()?;
        let from = query.from.as_deref().map(|hex| bytes("from", hex)).transpose()?;
        let end = prefix_end(&prefix);
        let (mut lower, mut upper) =
            (Bound::Included(&prefix[..]), end.as_deref().map_or(Bound::Unbounded, Bound::Excluded));
        let near = match (&after, &from) {
            (Some(_), Some(_)) => return Err((400, "give \"after\" or \"from\", not both".to_owned())),
            (Some(after), None) => Some(Bound::Excluded(&after[..])),
            (None, Some(from)) => Some(Bound::Included(&from[..])),
            (None, None) => None,
        };
        if let Some(near) = near {
            let (Bound::Included(key) | Bound::Excluded(key)) = near else { unreachable!("both have a key") };
            // The narrower of the two bounds.
            if !query.reverse && key >= &prefix[..] {
                lower = near;
            }
            if query.reverse && end.as_deref().is_none_or(|end| key < end) {
                upper = near;
            }
        }
        let space = self.keyspace(&query.keyspace)?;
        let mut page = Page { limit, begun: Instant::now(), pairs: Vec::new(), bytes: 0, more: false };
        let done = match query.reverse {
            // Large values are on the device, and are not read as a whole for their beginnings.
            false if self.reads_files() => page.read(&space, space.range((lower, upper)).keys()),
            true if self.reads_files() => page.read(&space, space.range((lower, upper)).keys().rev()),
            // Others are in memory, and are not copied.
            false => space.scan((lower, upper), |key, value| page.add(key, value, value.len() as u64)),
            true => space.scan_back((lower, upper), |key, value| page.add(key, value, value.len() as u64)),
        };
        done.map_err(failed)?;
        Ok(json!({"pairs": page.pairs, "more": page.more}))
    }

    /// Whether the store is on disk: what has files can be verified.
    fn reads_files(&self) -> bool {
        self.db.capabilities().has(Capability::Verify)
    }

    /// The beginning of a value, and its length.
    pub(crate) fn value(&self, query: &ValueQuery) -> Result<Json, Refused> {
        let Some(key) = &query.key else { return Err((400, "key is missing".to_owned())) };
        let key = bytes("key", key)?;
        let space = self.keyspace(&query.keyspace)?;
        let Some(reader) = space.reader(&key).map_err(failed)? else {
            return Err((404, "there is no such key".to_owned()));
        };
        let (whole, mut value) = (reader.value_bytes(), Vec::new());
        reader
            .take(VALUE_BYTES as u64)
            .read_to_end(&mut value)
            .map_err(|error| failed(Error::of_stream(error)))?;
        let expires = space.expires(&key).map_err(failed)?;
        let expires_ms =
            expires.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).map(|at| at.as_millis() as u64);
        Ok(json!({"value": hex(&value), "bytes": whole, "expires_ms": expires_ms}))
    }

    /// What the store has and does: the figures of the process that writes it, if it writes them to a file, or else of
    /// this one.
    pub(crate) fn figures(&self) -> Result<Json, Refused> {
        self.refresh()?;
        if let Some(file) = &self.metrics_file
            && let Ok(about) = std::fs::metadata(file)
            && about.is_file()
            && about.len() <= METRICS_BYTES
            && let Ok(text) = std::fs::read_to_string(file)
        {
            let written = about.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            let written_ms = written.map(|at| at.as_millis() as u64);
            return Ok(json!({"of": "writer", "written_ms": written_ms, "figures": samples(&text)}));
        }
        let stats = self.db.stats().map_err(failed)?;
        let figures = match self.db.metrics() {
            Ok(metrics) => samples(&metrics.prometheus(&stats)),
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                let mut figures = Map::new();
                figures.insert("forrest_keys".into(), json!(stats.keys));
                figures.insert("forrest_reserved_bytes".into(), json!(stats.reserved_bytes));
                figures
            }
            Err(error) => return Err(failed(error)),
        };
        Ok(json!({"of": "reader", "written_ms": null, "figures": figures}))
    }
}

/// Pairs of a range, with the beginnings of their values.
struct Page {
    limit: usize,
    begun: Instant,
    pairs: Vec<Json>,
    /// Bytes of keys and values in it.
    bytes: usize,
    /// Whether the range goes on.
    more: bool,
}

impl Page {
    /// Breaks before a pair that no longer fits. Each page has a pair, or the next one would not come further.
    fn fits(&mut self) -> ControlFlow<()> {
        let is_late = !self.pairs.is_empty() && self.begun.elapsed() >= RANGE_TIME;
        self.more = self.pairs.len() == self.limit || self.bytes >= ANSWER_BYTES || is_late;
        if self.more { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Adds a pair whose value begins so.
    fn add(&mut self, key: &[u8], value: &[u8], value_bytes: u64) -> ControlFlow<()> {
        self.fits()?;
        let shown = &value[..value.len().min(SHOWN_BYTES)];
        self.bytes += key.len() + shown.len();
        self.pairs.push(json!({"key": hex(key), "value": hex(shown), "bytes": value_bytes}));
        ControlFlow::Continue(())
    }

    /// Adds pairs, of whose values only the beginnings are read if they have a place of their own on the device.
    fn read(
        &mut self,
        space: &View,
        keys: impl Iterator<Item = forrest::Result<Key>>,
    ) -> forrest::Result<()> {
        let mut value = Vec::new();
        for key in keys {
            let key = key?;
            if self.fits().is_break() {
                break;
            }
            // It may be deleted meanwhile, or have expired.
            let Some(reader) = space.reader(&*key)? else { continue };
            let value_bytes = reader.value_bytes();
            value.clear();
            reader.take(SHOWN_BYTES as u64).read_to_end(&mut value).map_err(Error::of_stream)?;
            if self.add(&key, &value, value_bytes).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// The samples of a text in the format of Prometheus.
fn samples(text: &str) -> Map<String, Json> {
    Metrics::read_prometheus(text).map(|(name, value)| (name.to_owned(), json!(value))).collect()
}

fn failed(error: Error) -> Refused {
    let code = match error.kind() {
        ErrorKind::InvalidArgument | ErrorKind::Limit => 400,
        _ => 500,
    };
    (code, error.to_string())
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// The bytes of hexadecimal digits.
fn bytes(what: &str, hex: &str) -> Result<Vec<u8>, Refused> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = hex.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some((digit(*high)? << 4 | digit(*low)?) as u8),
        _ => None,
    });
    pairs
        .collect::<Option<_>>()
        .ok_or_else(|| (400, format!("{what} is not hexadecimal, with two digits a byte")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_takes_long_ends_after_a_pair() {
        let begun = Instant::now().checked_sub(RANGE_TIME).expect("the machine is up for longer");
        let mut page = Page { limit: 9, begun, pairs: Vec::new(), bytes: 0, more: false };
        assert!(page.add(b"elm", b"Ulmus", 5).is_continue() && !page.more);
        assert!(page.add(b"oak", b"Quercus", 7).is_break() && page.more);
        assert_eq!(page.pairs.len(), 1);
    }

    #[test]
    fn digits_are_bytes_and_back() {
        for all in [&b""[..], b"\0", b"oak", &[0xFF, 0x0A]] {
            assert_eq!(bytes("key", &hex(all)), Ok(all.to_vec()));
        }
        for wrong in ["f", "0g", "é", "0x10", "00 "] {
            assert_eq!(bytes("key", wrong).unwrap_err().0, 400, "{wrong}");
        }
    }
}
