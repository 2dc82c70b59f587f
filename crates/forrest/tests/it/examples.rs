//! The examples run, and what they assert holds.

#![expect(unreachable_pub, reason = "as a program, each needs its `main` for itself alone")]

use forrest::{Db, View};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

#[expect(dead_code, reason = "its command line is not used here")]
#[path = "../../examples/asynchronous.rs"]
mod asynchronous;
#[path = "../../examples/counters.rs"]
mod counters;
#[path = "../../examples/quick_start.rs"]
mod quick_start;
#[expect(dead_code, reason = "its command line is not used here")]
#[path = "../../examples/search_engine.rs"]
mod search_engine;
#[path = "../../examples/snapshot_range.rs"]
mod snapshot_range;
#[path = "../../examples/transactions.rs"]
mod transactions;

#[test]
fn examples_run() {
    quick_start::main().expect("the quick start runs");
    counters::main().expect("the counters run");
    snapshot_range::main().expect("the snapshot and the range run");
    transactions::main().expect("the transactions run");
}

/// However tasks wait, all of their changes are made, and nothing hangs.
#[test]
fn asynchronous_tasks_write() {
    let directory = tempfile::tempdir().expect("a directory");
    let db = Db::open(directory.path().join("store").display().to_string()).expect("a store");
    let times = asynchronous::times(&db, 10, 3).expect("the tasks write");
    assert_eq!(times.map(|(name, _)| name), ["a call that blocks", "spawn_blocking", "Syncer"]);
    assert_eq!(db.count(..).expect("the store is read"), 30);
}

/// A store of each home that is compiled in, for the search engine.
fn homes(directory: &Path) -> Vec<Db> {
    let mut urls = vec!["memory:".to_owned(), directory.join("store").display().to_string()];
    if cfg!(feature = "llds-user") {
        // The stores of a process are shared: each test has one of its own.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        urls.push(format!("llds-user:search-{}-{number}", std::process::id()));
    }
    urls.iter().map(|url| Db::open(url).expect("the home is there")).collect()
}

/// The search engine finds things in this project's own pages, on every home.
#[test]
fn the_search_engine_finds_pages() {
    let directory = tempfile::tempdir().expect("a directory");
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for db in homes(directory.path()) {
        let indexed = search_engine::index(&db, &pages).expect("the pages are indexed");
        assert!(indexed.updated > 20 && indexed.removed == 0, "{indexed:?}");
        // Which page is the best one changes as the pages do.
        let best = |query: &[&str]| {
            let hits = search_engine::search(&db, query, 10).expect("the store is read");
            hits.into_iter().map(|hit| hit.path).collect::<Vec<String>>()
        };
        let finds = |query: &[&str], page: &str| best(query).iter().any(|path| path.contains(page));
        assert!(finds(&["power", "cut", "durability"], "docs/durability.md"));
        assert!(finds(&["numactl", "interleave"], "docs/guides/tuning.md"));
        // A capital, a prefix, and a word that no page has.
        assert!(finds(&["SERIALIZ*", "transactions", "xyzzyxyzzy"], "0007-transactions"));
        assert!(best(&["xyzzyxyzzy"]).is_empty() && best(&["*"]).is_empty());

        let again = search_engine::index(&db, &pages).expect("the pages are indexed");
        assert_eq!((again.updated, again.unchanged), (0, indexed.updated));
    }
}

/// After files change, come and go, the index is what a new one would be.
#[test]
fn the_search_engine_follows_its_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let texts = directory.path().join("texts");
    std::fs::create_dir_all(texts.join("trees")).expect("a directory");
    let write = |name: &str, text: &[u8]| std::fs::write(texts.join(name), text).expect("it is written");
    write("trees/oak.txt", b"Oak: the oak bears acorns.");
    write("trees/elm.txt", b"The elm has leaves, as an oak has.");
    write("numbers", b"\xff\x00");
    write(".hidden", b"oak");
    for db in homes(directory.path()) {
        write("trees/ash.txt", b"An ash.");
        let counts = |[updated, unchanged, removed, skipped]: [u64; 4]| search_engine::Indexed {
            updated,
            unchanged,
            removed,
            skipped,
        };
        let index = |db: &Db| search_engine::index(db, &texts).expect("the texts are indexed");
        assert_eq!(index(&db), counts([3, 0, 0, 1]));
        let before = search_engine::state(&db).expect("a view");

        write("trees/ash.txt", b"Ashes to ashes, oak to oak, oak to oak.");
        std::fs::remove_file(texts.join("trees/elm.txt")).expect("it is there");
        assert_eq!(index(&db), counts([1, 1, 1, 1]));

        let fresh = Db::open("memory:").expect("a store");
        index(&fresh);
        for query in [&["oak"][..], &["the"], &["a*"], &["oak", "acorns"], &["elm"]] {
            let search = |view: &View| search_engine::search(view, query, 10).expect("the store is read");
            let (found, expected) = (search(&db), search(&fresh));
            assert_eq!(sorted(&found), sorted(&expected), "{query:?}");
        }
        let words = |db: &Db| search_engine::words_with(db, "", 100).expect("the store is read");
        assert_eq!(words(&db), words(&fresh));
        // A search on a snapshot still sees the old state.
        if db.capabilities().has(forrest::Capability::Snapshots) {
            assert_eq!(search_engine::search(&before, &["elm"], 10).expect("the store is read").len(), 1);
        }
        write("trees/elm.txt", b"The elm has leaves, as an oak has.");
    }
}

/// Hits in the order of their paths: documents of one score are in the order in which they were indexed.
fn sorted(hits: &[search_engine::Hit]) -> Vec<(&str, String)> {
    let mut hits: Vec<_> = hits.iter().map(|hit| (&hit.path[..], format!("{:.9}", hit.score))).collect();
    hits.sort();
    hits
}
