//! [`Settings`]: what `CONFIG GET` shows and `CONFIG SET` changes.
//!
//! Some of Redis's parameters have no meaning here and are set by clients and tests all the same. They keep what they
//! are set to, and nothing else. `docs/guides/redis.md` lists both kinds.

use crate::glob::Pattern;
use crate::number;
use crate::options::{Options, Sync};
use std::collections::BTreeMap;
use std::time::Duration;

/// Parameters without effect, with what they say at first.
const WITHOUT_EFFECT: [(&str, &str); 17] = [
    ("hash-max-listpack-entries", "512"),
    ("hash-max-listpack-value", "64"),
    ("hash-max-ziplist-entries", "512"),
    ("hash-max-ziplist-value", "64"),
    ("latency-tracking", "no"),
    ("list-compress-depth", "0"),
    ("list-max-listpack-size", "-2"),
    ("list-max-ziplist-size", "-2"),
    ("lua-time-limit", "5000"),
    ("notify-keyspace-events", ""),
    ("set-max-intset-entries", "512"),
    ("set-max-listpack-entries", "128"),
    ("set-max-listpack-value", "64"),
    ("zset-max-listpack-entries", "128"),
    ("zset-max-listpack-value", "64"),
    ("zset-max-ziplist-entries", "128"),
    ("zset-max-ziplist-value", "64"),
];
/// Longest value of a parameter.
const VALUE_BYTES_MAX: usize = 4096;

/// See the module.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) databases: usize,
    pub(crate) password: Option<Vec<u8>>,
    pub(crate) sync: Sync,
    pub(crate) memory_bytes_max: u64,
    pub(crate) connections: usize,
    /// What the options allow, which `connections` cannot exceed.
    connections_max: usize,
    pub(crate) idle: Option<Duration>,
    pub(crate) zone: String,
    /// Commands that take as long are logged; `None` for none.
    pub(crate) slow_micros: Option<u64>,
    /// How many of them are kept.
    pub(crate) slow_entries_max: u64,
    request_bytes: usize,
    debug: bool,
    others: BTreeMap<&'static str, String>,
}

impl Settings {
    pub(crate) fn new(options: &Options) -> Settings {
        Settings {
            databases: 16,
            password: options.password.clone(),
            sync: options.sync,
            memory_bytes_max: 0,
            connections: options.limits.connections,
            connections_max: options.limits.connections,
            idle: options.limits.idle,
            zone: String::new(),
            slow_micros: Some(10_000),
            slow_entries_max: 128,
            request_bytes: options.limits.request_bytes,
            debug: options.debug,
            others: WITHOUT_EFFECT.map(|(name, value)| (name, value.to_owned())).into(),
        }
    }

    /// All parameters. The password is not among them.
    fn all(&self) -> Vec<(&str, String)> {
        let mut all = vec![
            ("appendfsync", self.sync.name().to_owned()),
            ("appendonly", "yes".to_owned()),
            ("availability-zone", self.zone.clone()),
            ("databases", self.databases.to_string()),
            ("latency-monitor-threshold", "0".to_owned()),
            ("maxclients", self.connections.to_string()),
            ("maxmemory", self.memory_bytes_max.to_string()),
            ("maxmemory-policy", "noeviction".to_owned()),
            ("proto-max-bulk-len", self.request_bytes.to_string()),
            ("requirepass", String::new()),
            ("save", String::new()),
            (
                "slowlog-log-slower-than",
                self.slow_micros.map_or("-1".to_owned(), |micros| micros.to_string()),
            ),
            ("slowlog-max-len", self.slow_entries_max.to_string()),
            ("timeout", self.idle.map_or(0, |idle| idle.as_secs()).to_string()),
        ];
        all.extend(self.others.iter().map(|(name, value)| (*name, value.clone())));
        all
    }

    /// The parameters that match a pattern.
    pub(crate) fn matching(&self, pattern: &[u8]) -> Vec<(&str, String)> {
        let pattern = pattern.to_ascii_lowercase();
        let mut all = self.all();
        let mut pattern = Pattern::new(&pattern);
        all.retain(|(name, _)| pattern.matches(name.as_bytes()).unwrap_or(false));
        all
    }

    /// Changes a parameter. The error says why not.
    pub(crate) fn set(&mut self, name: &str, value: &[u8]) -> Result<(), String> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(format!("the value has more than {VALUE_BYTES_MAX} bytes"));
        }
        let text = std::str::from_utf8(value);
        if name == "requirepass" {
            if !self.debug {
                return Err("the password is that of --password-file".to_owned());
            }
            self.password = (!value.is_empty()).then(|| value.to_vec());
            return Ok(());
        }
        let text = text.map_err(|_| "the value is not UTF-8")?;
        let natural = || {
            let number = number::integer(value).and_then(|number| u64::try_from(number).ok());
            number.ok_or("argument couldn't be parsed into an integer")
        };
        match name {
            "appendfsync" => {
                let sync = Sync::of_name(text);
                self.sync = sync.ok_or("argument must be one of: always, everysec, no")?;
            }
            "availability-zone" => self.zone = text.to_owned(),
            "maxclients" => self.connections = (natural()? as usize).clamp(1, self.connections_max.max(1)),
            "maxmemory" => self.memory_bytes_max = bytes(text).ok_or("argument must be a memory value")?,
            "timeout" => {
                let seconds = between(value, 0, i32::MAX.into())?.unsigned_abs();
                self.idle = Some(seconds).filter(|seconds| *seconds > 0).map(Duration::from_secs);
            }
            "slowlog-log-slower-than" => self.slow_micros = u64::try_from(between(value, -1, i64::MAX)?).ok(),
            "slowlog-max-len" => self.slow_entries_max = between(value, 0, i64::MAX)?.unsigned_abs(),
            "appendonly"
            | "save"
            | "databases"
            | "latency-monitor-threshold"
            | "maxmemory-policy"
            | "proto-max-bulk-len" => {
                let now = self.all().into_iter().find(|(known, _)| *known == name).map(|(_, value)| value);
                if now.as_deref() != Some(text) {
                    return Err("can't set immutable config".to_owned());
                }
            }
            _ => match self.others.get_mut(name) {
                Some(other) => *other = text.to_owned(),
                None => return Err("unknown parameter".to_owned()),
            },
        }
        Ok(())
    }

    /// True if there is such a parameter.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.all().iter().any(|(known, _)| *known == name)
    }
}

/// An integer that is not too small and not too large.
fn between(value: &[u8], least: i64, most: i64) -> Result<i64, String> {
    let number = number::integer(value).ok_or("argument couldn't be parsed into an integer")?;
    if number < least || number > most {
        return Err(format!("argument must be between {least} and {most} inclusive"));
    }
    Ok(number)
}

/// A number of bytes, with a unit or without.
fn bytes(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_shown_and_set() {
        let mut settings = Settings::new(&Options::default());
        assert_eq!(settings.matching(b"append*").len(), 2);
        assert_eq!(settings.matching(b"MAXMEMORY"), [("maxmemory", "0".to_owned())]);
        settings.set("maxmemory", b"2mb").unwrap();
        assert_eq!(settings.memory_bytes_max, 2 << 20);
        assert!(settings.set("maxmemory", b"bla").unwrap_err().contains("memory value"));
        settings.set("appendfsync", b"always").unwrap();
        assert_eq!(settings.sync, Sync::Always);
        settings.set("timeout", b"7").unwrap();
        assert_eq!(settings.idle, Some(Duration::from_secs(7)));
        settings.set("timeout", b"0").unwrap();
        assert_eq!(settings.idle, None);
        settings.set("slowlog-log-slower-than", b"-1").unwrap();
        assert_eq!(settings.slow_micros, None);
        assert_eq!(settings.matching(b"slowlog-log-slower-than")[0].1, "-1");
        settings.set("slowlog-log-slower-than", b"0").unwrap();
        assert_eq!(settings.slow_micros, Some(0));
        let why = "argument must be between -1 and 9223372036854775807 inclusive";
        assert_eq!(settings.set("slowlog-log-slower-than", b"-2"), Err(why.to_owned()));
        assert!(settings.set("slowlog-max-len", b"x").unwrap_err().contains("parsed"));
        settings.set("save", b"").unwrap();
        assert!(settings.set("save", b"900 1").unwrap_err().contains("immutable"));
        assert!(settings.set("no-such", b"1").unwrap_err().contains("unknown"));
        assert!(settings.set("requirepass", b"secret").unwrap_err().contains("--password-file"));
        let long = vec![b'x'; VALUE_BYTES_MAX + 1];
        assert!(settings.set("availability-zone", &long).unwrap_err().contains("4096"));
        settings.set("availability-zone", &long[1..]).unwrap();
    }
}
