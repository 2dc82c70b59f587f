//! Events of the processor by their codes: `r01c2` as perf writes them (umask and event in hexadecimal), or a name that
//! the kernel lists for this processor.

use super::event::{Event, RAW};
use forrest_base::lock;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Mutex;

/// Where Linux lists the processor's events by name.
const LIST: &str = "/sys/bus/event_source/devices/cpu/events";
/// Bits of a code at which the parts of a listed event begin, on x86.
const PARTS: [(&str, u32); 5] = [("event", 0), ("umask", 8), ("edge", 18), ("inv", 23), ("cmask", 24)];

/// A code, and how it was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Code {
    given: String,
    config: u64,
}

/// The codes of this process.
static CODES: Mutex<Vec<Code>> = Mutex::new(Vec::new());

/// Sets the codes of this process.
pub(crate) fn set_codes(codes: &[Code]) {
    *lock(&CODES) = codes.to_vec();
}

/// The events that a number of codes stand for.
pub(crate) fn events(codes: usize) -> &'static [Event] {
    &RAW[..codes.min(RAW.len())]
}

/// The code of an event, if it has one.
pub(super) fn config_of(event: Event) -> Option<u64> {
    let at = RAW.iter().position(|raw| *raw == event)?;
    lock(&CODES).get(at).map(|code| code.config)
}

/// A line that says what each code was given as; none without codes.
pub(super) fn line() -> Option<String> {
    let codes = lock(&CODES);
    let each = codes.iter().zip(RAW).map(|(code, event)| format!("{} is {}", event.name(), code.given));
    (!codes.is_empty()).then(|| each.collect::<Vec<_>>().join(", "))
}

/// Reads a code.
pub(crate) fn parse(text: &str) -> Result<Code, String> {
    let config = match text.strip_prefix('r').map(|digits| u64::from_str_radix(digits, 16)) {
        Some(Ok(config)) => config,
        _ => listed(Path::new(LIST), text)?,
    };
    Ok(Code { given: text.to_owned(), config })
}

/// The code of an event that is listed, as `event=0xc2,umask=0x01`.
fn listed(list: &Path, name: &str) -> Result<u64, String> {
    let names = || {
        let entries = std::fs::read_dir(list).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        // Others say in which unit or how often an event is counted.
        names.retain(|name| !name.contains('.'));
        names.sort();
        if names.is_empty() { "lists none".to_owned() } else { format!("lists {}", names.join(", ")) }
    };
    let unknown = || format!("{name:?} is no code such as r01c2, and the system {}", names());
    if name.is_empty() || name.contains('/') {
        return Err(unknown());
    }
    let text = std::fs::read_to_string(list.join(name)).map_err(|_| unknown())?;
    text.trim().split(',').try_fold(0, |config, part| {
        let (key, value) = part.split_once('=').unwrap_or((part, "1"));
        let digits = value.strip_prefix("0x");
        let value = digits.map_or_else(|| value.parse(), |digits| u64::from_str_radix(digits, 16));
        let place = PARTS.iter().find(|(known, _)| *known == key);
        match (place, value) {
            // The upper four bits of an event of AMD come after all others.
            (Some(("event", _)), Ok(value)) => Ok(config | value & 0xff | (value & 0xf00) << 24),
            (Some((_, at)), Ok(value)) => Ok(config | value << at),
            _ => Err(format!(
                "{name} is {:?}, of which {part:?} is not understood: give its code",
                text.trim()
            )),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read() {
        for (text, config) in [("r01c2", 0x01c2), ("rc0", 0xc0), ("r1003", 0x1003)] {
            assert_eq!(parse(text).map(|code| code.config), Ok(config));
        }
        for text in ["", "01c2", "r", "rxyz", "no-such-event", "../type"] {
            assert!(parse(text).is_err_and(|why| why.contains("r01c2")), "{text}");
        }
    }

    #[test]
    fn names_are_those_of_the_list() {
        let list = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(list.path().join(name), text).unwrap();
        write("branches", "event=0xc2\n");
        write("loads", "event=0xd0,umask=0x81,cmask=1\n");
        write("far", "event=0x1a3,edge\n");
        write("odd", "ldlat=3\n");
        write("loads.unit", "x");
        let of = |name: &str| listed(list.path(), name);
        assert_eq!(of("branches"), Ok(0xc2));
        assert_eq!(of("loads"), Ok(0x0100_81d0));
        assert_eq!(of("far"), Ok(0x1_0004_00a3));
        assert!(of("odd").is_err_and(|why| why.contains("ldlat=3")));
        assert!(of("none").is_err_and(|why| why.ends_with("lists branches, far, loads, odd")));
    }

    #[test]
    fn a_code_is_that_of_its_place() {
        set_codes(&[parse("r01c2").unwrap(), parse("rc0").unwrap()]);
        assert_eq!([Event::Raw1, Event::Raw2, Event::Raw3].map(config_of), [Some(0x01c2), Some(0xc0), None]);
        assert_eq!(config_of(Event::Cycles), None);
        assert_eq!(line().as_deref(), Some("raw_1 is r01c2, raw_2 is rc0"));
        assert_eq!(events(2), [Event::Raw1, Event::Raw2]);
        set_codes(&[]);
        assert_eq!(line(), None);
    }
}
