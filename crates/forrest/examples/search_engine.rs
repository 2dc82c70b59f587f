//! A small search engine over directories of text: an inverted index, kept in any home, ranked by BM25.
//!
//! ```text
//! cargo run --release -p forrest-db --example search_engine -- URL index DIRECTORY
//! cargo run --release -p forrest-db --example search_engine -- URL search WORD... [PREFIX*]
//! cargo run --release -p forrest-db --example search_engine -- URL words [PREFIX]
//! ```
//!
//! `index` reads every text file of at most 1 MiB below the directory. Run it again, and it updates what has changed.
//! `search` prints the ten documents that fit best; `PREFIX*` means every word that begins so. `words` prints the words
//! in order, each with the number of documents that have it.
//!
//! The first byte of a key is its kind, so that one keyspace is enough and every home will do. Numbers are big endian.
//!
//! ```text
//! key                       value                     read by
//! p WORD 0 DOCUMENT(4)      COUNT(4) LENGTH(4)        a search: the postings of a word are one range
//! w WORD                    counter of documents      a search, and for a prefix the list of its words: a range too
//! d DOCUMENT(4)             path                      a search, for what it shows
//! l DOCUMENT(4)             its words, with line feeds   removing a document
//! f PATH                    DOCUMENT(4) BYTES(8) CHANGED(8)   indexing: is it the same file as before?
//! t documents, t words, t last   counters             a search; the numbers of documents
//! ```
//!
//! A document is added, replaced or removed by one batch. So a search that runs beside `index` sees each document
//! whole, and a crash leaves nothing half done.

use forrest::{Capability, Db, Result, View, WriteBatch};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Longer files are left out, which bounds a batch.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Longer words are left out.
const MAX_WORD_BYTES: usize = 64;
/// Maximum number of words that a prefix stands for.
const MAX_WORDS_OF_PREFIX: usize = 1_000;
/// What `search` prints.
const SHOWN: usize = 10;

/// The changes that [`index`] has made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Indexed {
    /// Files that are new or have changed.
    pub updated: u64,
    /// Files that are as before.
    pub unchanged: u64,
    /// Documents whose files have gone.
    pub removed: u64,
    /// Files that are too long, are not text, or cannot be read.
    pub skipped: u64,
}

/// A document that fits a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Greater is better.
    pub score: f64,
    /// Its file.
    pub path: String,
}

/// Runs the example with the arguments of the command line.
pub fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [url, "index", directory] => println!("{:?}", index(&Db::open(url)?, Path::new(directory))?),
        [url, "search", ref query @ ..] if !query.is_empty() => {
            for Hit { score, path } in search(&state(&Db::open(url)?)?, query, SHOWN)? {
                println!("{score:7.3}  {path}");
            }
        }
        [url, "words", ref prefix @ ..] if prefix.len() < 2 => {
            let prefix = prefix.first().copied().unwrap_or_default();
            let db = Db::open(url)?;
            for (word, documents) in words_with(&db, prefix, usize::MAX)? {
                println!("{documents:7}  {word}");
            }
        }
        _ => {
            eprintln!("usage: search_engine URL index DIRECTORY | search WORD... | words [PREFIX]");
            std::process::exit(2);
        }
    }
    Ok(())
}

/// Brings the index up to date with the text files below a directory. Hidden files and symbolic links are left out.
pub fn index(db: &Db, directory: &Path) -> Result<Indexed> {
    let mut indexed = Indexed::default();
    let mut seen = BTreeSet::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        // A directory that cannot be read is counted as one file; its documents go.
        let Ok(entries) = fs::read_dir(&directory) else {
            indexed.skipped += 1;
            continue;
        };
        for entry in entries.flatten() {
            let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            } else if kind.is_dir() {
                directories.push(path);
            } else if kind.is_file() {
                index_file(db, path, &mut seen, &mut indexed)?;
            }
        }
    }
    let inside = directory.join(""); // with one separator at the end
    let below = [b"f", inside.as_os_str().as_encoded_bytes()].concat();
    for entry in db.prefix(below) {
        let entry = entry?;
        if !seen.contains(&entry.key()[1..]) {
            let mut batch = WriteBatch::new();
            remove(db, number(&entry.value()?[..4]), &mut batch)?;
            batch.delete(entry.key());
            db.write(&batch)?;
            indexed.removed += 1;
        }
    }
    Ok(indexed)
}

/// Indexes a file, unless that was done before and the file has not changed.
fn index_file(db: &Db, path: PathBuf, seen: &mut BTreeSet<Vec<u8>>, indexed: &mut Indexed) -> Result<()> {
    let name = path.as_os_str().as_encoded_bytes();
    let key = [b"f", name].concat();
    let Ok(stamp) = stamp(&path) else {
        indexed.skipped += 1;
        return Ok(());
    };
    let before = db.get(&key)?;
    if before.as_ref().is_some_and(|before| before[4..] == stamp) {
        seen.insert(name.to_vec());
        indexed.unchanged += 1;
        return Ok(());
    }
    let text = match text_of(&path, &stamp) {
        Ok(Some(text)) => text,
        _ => {
            indexed.skipped += 1;
            return Ok(());
        }
    };
    let mut batch = WriteBatch::new();
    if let Some(before) = before {
        remove(db, number(&before[..4]), &mut batch)?;
    }
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for word in words_of(&text) {
        *counts.entry(word).or_default() += 1;
    }
    let length: u32 = counts.values().sum();
    // A new version gets a new number: who has read postings of the old one finds no other document under it.
    let document = (db.add("t last", 1)? as u32).to_be_bytes();
    for (word, count) in &counts {
        batch.set(posting(word, document), [count.to_be_bytes(), length.to_be_bytes()].concat());
        batch.add(format!("w{word}"), 1);
    }
    let list: Vec<&str> = counts.keys().map(String::as_str).collect();
    batch.set([b"d", &document[..]].concat(), name);
    batch.set([b"l", &document[..]].concat(), list.join("\n"));
    batch.set(&key, [&document[..], &stamp].concat());
    batch.add("t documents", 1).add("t words", i64::from(length));
    db.write(&batch)?;
    seen.insert(name.to_vec());
    indexed.updated += 1;
    Ok(())
}

/// The text of a file with this stamp, unless it is too long. What is not UTF-8, or has zeros, is not text.
fn text_of(path: &Path, stamp: &[u8; 16]) -> io::Result<Option<String>> {
    let (bytes, mut text) = (&stamp[..8], String::new());
    if *bytes > MAX_FILE_BYTES.to_be_bytes()[..] {
        return Ok(None);
    }
    // It may have grown since.
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    Ok((text.len() as u64 <= MAX_FILE_BYTES && !text.contains('\0')).then_some(text))
}

/// Adds to a batch what removes a document.
fn remove(db: &Db, document: u32, batch: &mut WriteBatch) -> Result<()> {
    let document = document.to_be_bytes();
    let key = [b"l", &document[..]].concat();
    let list = db.get(&key)?.map_or_else(Vec::new, |list| list.to_vec());
    let mut length = 0;
    for word in String::from_utf8_lossy(&list).lines() {
        let posting = posting(word, document);
        length = db.get(&posting)?.map_or(0, |value| number(&value[4..]));
        batch.delete(posting).add(format!("w{word}"), -1);
    }
    batch.delete(key).delete([b"d", &document[..]].concat());
    batch.add("t documents", -1).add("t words", -i64::from(length));
    Ok(())
}

/// The state that a query reads: one moment of the store, if its home has snapshots.
pub fn state(db: &Db) -> Result<View> {
    if !db.capabilities().has(Capability::Snapshots) {
        return Ok(View::clone(db));
    }
    let snapshot = db.snapshot()?;
    Ok(View::clone(&snapshot))
}

/// The documents that fit a query best, at most `limit`, the best one first.
///
/// The score is BM25: a word counts more the fewer documents have it, the more often a document has it, and the shorter
/// that document is.
pub fn search(view: &View, query: &[&str], limit: usize) -> Result<Vec<Hit>> {
    let documents = counter(view, "t documents")?.max(1) as f64;
    let mean_length = counter(view, "t words")? as f64 / documents;
    let mut wanted = BTreeSet::new();
    for part in query {
        let prefix = part.strip_suffix('*');
        for word in words_of(part) {
            match prefix {
                Some(_) => wanted.extend(words_with(view, &word, MAX_WORDS_OF_PREFIX)?),
                None => wanted.extend([(word.clone(), counter(view, format!("w{word}"))?)]),
            }
        }
    }
    let mut scores: HashMap<u32, f64> = HashMap::new();
    for (word, having) in wanted {
        let rarity = (1.0 + (documents - having as f64 + 0.5) / (having as f64 + 0.5)).ln();
        for entry in view.prefix([b"p", word.as_bytes(), b"\0"].concat()) {
            let (key, value) = {
                let entry = entry?;
                (entry.key().to_vec(), entry.value()?)
            };
            let count = f64::from(number(&value[..4]));
            let length = f64::from(number(&value[4..]));
            let saturated = count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / mean_length));
            *scores.entry(number(&key[key.len() - 4..])).or_default() += rarity * saturated;
        }
    }
    let mut ranked: Vec<(u32, f64)> = scores.into_iter().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ranked.truncate(limit);
    let keys: Vec<Vec<u8>> =
        ranked.iter().map(|(document, _)| [b"d", &document.to_be_bytes()[..]].concat()).collect();
    let paths = view.multi_get(&keys)?;
    // Without snapshots a document may have gone since its postings were read.
    let found = ranked.iter().zip(paths).filter_map(|((_, score), path)| Some((*score, path?)));
    Ok(found.map(|(score, path)| Hit { score, path: String::from_utf8_lossy(&path).into_owned() }).collect())
}

/// The words that begin with a prefix, in order, each with the number of documents that have it; at most `limit`.
pub fn words_with(view: &View, prefix: &str, limit: usize) -> Result<Vec<(String, i64)>> {
    let mut words = Vec::new();
    for entry in view.prefix(format!("w{prefix}")) {
        let entry = entry?;
        let documents = decode(&entry.value()?);
        if documents > 0 {
            words.push((String::from_utf8_lossy(&entry.key()[1..]).into_owned(), documents));
        }
        if words.len() == limit {
            break;
        }
    }
    Ok(words)
}

/// The words of a text in lower case, without those that are too long.
fn words_of(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    words.map(str::to_lowercase).filter(|word| !word.is_empty() && word.len() <= MAX_WORD_BYTES)
}

fn posting(word: &str, document: [u8; 4]) -> Vec<u8> {
    [b"p", word.as_bytes(), b"\0", &document].concat()
}

/// What tells that a file has changed: its size and the time of its last change.
fn stamp(path: &Path) -> io::Result<[u8; 16]> {
    let metadata = fs::metadata(path)?;
    let changed = metadata.modified()?.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    let mut stamp = [0; 16];
    stamp[..8].copy_from_slice(&metadata.len().to_be_bytes());
    stamp[8..].copy_from_slice(&changed.to_be_bytes());
    Ok(stamp)
}

fn counter(view: &View, key: impl AsRef<[u8]>) -> Result<i64> {
    Ok(view.get(key)?.map_or(0, |value| decode(&value)))
}

fn decode(value: &[u8]) -> i64 {
    i64::from_be_bytes(value.try_into().expect("the store keeps counters in 8 bytes"))
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("it was written with 4 bytes"))
}
