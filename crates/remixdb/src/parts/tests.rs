//! A partition and a merging iterator show the same: what an ordered map has that was written as the runs were.

use super::*;
use forrest_base::random::Random;
use forrest_engine::ErrorKind;
use std::collections::BTreeMap;

type Pairs = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// A run of some of a thousand keys, of different lengths and with the same beginnings; each sixth is deleted.
fn run(random: &mut Random, number: usize) -> Pairs {
    let pair = |_| {
        let key = format!("{:0width$}", random.below(1000), width = 4 + 6 * (number % 2)).into_bytes();
        let value = random.below(6) != 0;
        (key, value.then(|| format!("{number} {}", random.below(99)).into_bytes()))
    };
    (0..300).map(pair).collect()
}

fn check(walk: &mut impl Walk, live: &BTreeMap<Vec<u8>, Vec<u8>>, sought: &[Vec<u8>]) {
    let mut expected = live.iter();
    let mut valid = walk.first().unwrap();
    while valid {
        let (key, value) = expected.next().expect("no more keys than there are");
        assert_eq!(walk.key(), key);
        walk.show(|k, v| assert_eq!((k, v), (&key[..], &value[..]))).unwrap();
        valid = walk.next().unwrap();
    }
    assert_eq!(expected.next(), None);
    for key in sought {
        let mut valid = walk.seek(key).unwrap();
        for (key, value) in live.range(key.clone()..).take(3) {
            assert!(valid, "{key:?} is missing");
            walk.show(|k, v| assert_eq!((k, v), (&key[..], &value[..]))).unwrap();
            valid = walk.next().unwrap();
        }
        assert_eq!(valid, live.range(key.clone()..).nth(3).is_some());
    }
}

#[test]
fn all_that_read_runs_show_the_same() {
    for count in [0, 1, 2, 3, 5, 8, 16] {
        let random = &mut Random(42 + count as u64);
        let directory = tempfile::tempdir().unwrap();
        let mut runs = Runs::open(&directory.path().join("runs"), 1 << 22).unwrap();
        let mut all = Pairs::new();
        for number in 0..count {
            let pairs = run(random, number);
            runs.add(pairs.iter().map(|(key, value)| (key, value.as_ref()))).unwrap();
            all.extend(pairs);
        }
        let live: BTreeMap<_, _> =
            all.iter().filter_map(|(key, value)| Some((key.clone(), value.clone()?))).collect();
        let mut sought: Vec<Vec<u8>> = all.keys().cloned().collect();
        sought.extend([vec![], b"zz".to_vec(), b"0500\0".to_vec(), b"00005".to_vec()]);
        check(&mut runs.merging(), &live, &sought);
        for tags in [false, true] {
            let order = (count > 1).then(|| runs.order(tags).unwrap());
            let partition = runs.partition(order.as_ref()).unwrap();
            check(&mut partition.cursor().unwrap(), &live, &sought);
            for key in &sought {
                let found = partition.get(key, |value| value.to_vec()).unwrap();
                assert_eq!(found.as_ref(), live.get(key), "{key:?} of {count} runs");
            }
            if count > 2 {
                let old = runs.oldest(count - 1).order(tags).unwrap();
                let rebuilt = runs.order_from(&old, tags).unwrap();
                let partition = runs.partition(Some(&rebuilt)).unwrap();
                check(&mut partition.cursor().unwrap(), &live, &sought);
            }
        }
    }
}

#[test]
fn runs_are_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Runs::open(directory.path(), 1 << 20);
    let mut runs = open().unwrap();
    assert!(runs.is_empty());
    assert_eq!(open().map(|_| ()).unwrap_err().kind(), ErrorKind::Busy);
    runs.add([("a", Some("1")), ("b", Some("1"))]).unwrap();
    runs.add([("b", Some("2"))]).unwrap();
    drop(runs);
    let mut runs = open().unwrap();
    runs.add([("a", None::<&str>)]).unwrap();
    let partition = runs.partition(Some(&runs.order(false).unwrap())).unwrap();
    assert_eq!(runs.len(), 3);
    assert_eq!(partition.get(b"b", |value| value.to_vec()).unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!(partition.get(b"a", |_| ()).unwrap(), None);
}

#[test]
fn what_does_not_fit_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut runs = Runs::open(&directory.path().join("runs"), 1 << 20).unwrap();
    let refused = |result: Result<()>| assert_eq!(result.unwrap_err().kind(), ErrorKind::InvalidArgument);
    refused(runs.add([("b", Some("1")), ("a", Some("1"))]));
    refused(runs.add([("a", Some("1")), ("a", Some("1"))]));
    runs.add([("a", Some("1"))]).unwrap();
    let single = runs.order(false).unwrap();
    refused(runs.partition(Some(&single)).map(|_| ()));
    runs.add([("a", Some("2"))]).unwrap();
    refused(runs.partition(None).map(|_| ()));
    refused(runs.partition(Some(&single)).map(|_| ()));
    let mut others = Runs::open(&directory.path().join("others"), 1 << 20).unwrap();
    others.add([("a", Some("1"))]).unwrap();
    refused(runs.order_from(&others.order(false).unwrap(), false).map(|_| ()));
    let both = runs.order_from(&single, false).unwrap();
    refused(others.order_from(&both, false).map(|_| ()));
    runs.partition(Some(&both)).unwrap();

    let store = directory.path().join("store");
    drop(crate::Store::at(&store, &Options::default()).unwrap());
    refused(Runs::open(&store, 1 << 20).map(|_| ()));
}
