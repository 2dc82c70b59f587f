//! Building, rebuilding and verifying.

use super::reads::check;
use super::*;
use forrest_engine::ErrorKind;
use forrest_machine::pages::Array;

#[test]
fn a_rebuild_shows_what_a_build_shows() {
    for seed in 1000..1120 {
        let world = World::random(seed);
        let random = &mut Random(seed);
        let first = random.index(world.runs.len() + 1);
        for (before, after) in [(false, false), (true, true), (true, false), (false, true)] {
            let what = format!("seed {seed}, {first} runs first, tags {before}, then {after}");
            let mut remix = build(&mut world.older(first), before).unwrap();
            if random.index(2) == 0 {
                remix = rebuild(&remix, &mut world.older(world.runs.len()), after).unwrap();
            } else {
                for count in first..=world.runs.len() {
                    remix = rebuild(&remix, &mut world.older(count), after).unwrap();
                }
            }
            assert_eq!(remix.has_tags(), after, "{what}");
            assert!(remix.segments() as u64 * 32 < remix.entries() * 2 + 64, "{what}: mostly unused");
            check(&world, &remix, &what);
        }
    }
}

#[test]
fn a_rebuild_with_nothing_new_is_the_same() {
    for seed in 2000..2040 {
        let world = World::random(seed);
        let remix = world.build(true);
        assert_eq!(rebuild(&remix, &mut world.older(world.runs.len()), true).unwrap(), remix, "seed {seed}");
    }
}

/// Runs of numbers: each a range and a step.
fn numbers(of: &[(Range<u32>, usize)]) -> World {
    let content = |(range, step): &(Range<u32>, usize)| {
        range.clone().step_by(*step).map(|number| (number.to_be_bytes().to_vec(), false)).collect()
    };
    World::new(of.iter().map(content).collect())
}

#[test]
fn segments_that_nothing_new_falls_into_are_kept_and_not_read() {
    // One new key near the beginning, one in the middle, one that replaces the last old one.
    let mut world = numbers(&[(0..80_000, 2)]);
    let new = [101, 40_001, 79_998u32].map(|number| (number.to_be_bytes().to_vec(), false));
    let old = world.runs[0].entries.iter().cloned().collect();
    world = World::new(vec![old, BTreeMap::from(new)]);
    let remix = build(&mut world.older(1), true).unwrap();
    let read = world.asked.read.get();
    let (compared, rebuilt) = world.compared(|| rebuild(&remix, &mut world.older(2), true).unwrap());
    let read = world.asked.read.get() - read;
    assert!(compared <= 3 * 7, "{compared} comparisons");
    // And two segments of heads, whose anchor beside a kept segment has changed.
    assert!(read <= 3 + 3 * 6 + 2 * 32, "{read} keys read");
    assert!(rebuilt.segments() <= remix.segments() + 3, "{} segments", rebuilt.segments());
    check(&world, &rebuilt, "kept");
}

#[test]
fn keys_between_which_much_is_old_cost_few_comparisons() {
    for (step, most) in [(1, 2.3), (2, 3.0), (8, 4.5), (32, 5.5), (128, 5.5)] {
        let random = &mut Random(step as u64);
        let old = (0..20_000).map(|_| (key(random, 2, 1 << 60), false)).collect();
        let new = (0..20_000 / step).map(|_| (key(random, 2, 1 << 60), false)).collect();
        let world = World::new(vec![old, new]);
        let remix = build(&mut world.older(1), false).unwrap();
        let (compared, rebuilt) = world.compared(|| rebuild(&remix, &mut world.older(2), false).unwrap());
        let each = compared as f64 / world.runs[1].len() as f64;
        println!("a new key for {step} old ones: {each:.2} comparisons");
        assert!(each < most, "{each} comparisons for each of one in {step}");
        check(&world, &rebuilt, "dense");
    }
}

#[test]
fn many_small_rebuilds_leave_few_places_unused() {
    let random = &mut Random(9);
    let mut contents =
        vec![(0..20_000).map(|_| (key(random, 2, 1 << 60), false)).collect::<BTreeMap<_, _>>()];
    for _ in 1..31 {
        contents.push((0..10).map(|_| (key(random, 2, 1 << 60), false)).collect());
    }
    let world = World::new(contents);
    let mut remix = build(&mut world.older(1), true).unwrap();
    for count in 2..=31 {
        remix = rebuild(&remix, &mut world.older(count), true).unwrap();
    }
    let places = remix.segments() as u64 * 32;
    assert!(places * 16 <= remix.entries() * 17 + 16 * 64, "{places} places for {}", remix.entries());
    check(&world, &remix, "many small");
}

#[test]
fn runs_that_are_not_sorted_are_refused() {
    let run = |keys: &[&[u8]]| VecRun {
        entries: Rc::new(keys.iter().map(|key| (key.to_vec(), false)).collect()),
        ..VecRun::default()
    };
    let unsorted: [&[&[u8]]; 3] = [&[b"b", b"a"], &[b"a", b"a"], &[b"a", b"c", b"b", b"d"]];
    for keys in unsorted {
        let mut runs = [run(&[b"a", b"b"]), run(keys)];
        assert_eq!(build(&mut runs, true).unwrap_err().kind(), ErrorKind::Corrupt, "{keys:?}");
        let old = build(&mut runs[..1], true).unwrap();
        assert_eq!(rebuild(&old, &mut runs, true).unwrap_err().kind(), ErrorKind::Corrupt, "{keys:?}");
    }
}

/// Every kind of disagreement between a REMIX and its runs.
#[test]
fn verify_finds_what_does_not_belong() {
    let keys = |of: &[u8]| of.iter().map(|&key| (vec![b'k', key], key % 5 == 0)).collect::<BTreeMap<_, _>>();
    let all: Vec<u8> = (0..100).collect();
    let world = World::new(vec![keys(&all), keys(&all[40..60])]);
    let fresh = || world.build(true);
    let refused = |remix: Remix, what: &str| {
        let error = remix.verify(&mut world.older(2)).expect_err(what);
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("REMIX, segment"), "{what}: {error}");
    };
    fresh().verify(&mut world.older(2)).unwrap();
    for segment in 0..fresh().segments() {
        for slot in 0..SEGMENT {
            for bit in 0..8 {
                let mut remix = fresh();
                remix.arrays_mut().segments[segment].selectors[slot] ^= 1 << bit;
                refused(remix, &format!("selector {segment} {slot}, bit {bit}"));
            }
            let mut remix = fresh();
            remix.arrays_mut().segments[segment].heads[slot] ^= 1;
            refused(remix, &format!("head {segment} {slot}"));
            if slot < used(&fresh().arrays_mut().segments[segment].selectors) {
                let mut remix = fresh();
                remix.arrays_mut().segments[segment].tags[slot] ^= 1;
                refused(remix, &format!("tag {segment} {slot}"));
            }
        }
    }
    for at in 0..fresh().arrays_mut().rows.len() {
        let mut remix = fresh();
        remix.arrays_mut().rows[at] += 1;
        refused(remix, &format!("number {at} of the rows"));
    }
    for at in 0..fresh().anchors.len() {
        for change in [1, 0xFF] {
            let old = fresh().anchors;
            let (mut ends, mut tails) = (Array::new(), Array::new());
            ends.extend(old.ends()).unwrap();
            tails.extend(old.tails()).unwrap();
            tails[at] = tails[at].wrapping_add(change);
            let anchors = Anchors::new(old.prefix().to_vec(), ends, tails).unwrap();
            let remix = Remix { anchors, ..fresh() };
            refused(remix, &format!("anchor {at}"));
        }
    }
    refused(Remix { live: fresh().live + 1, ..fresh() }, "live");
    refused(Remix { entries: fresh().entries + 1, ..fresh() }, "entries");
    refused(Remix { runs: vec![100, 19], ..fresh() }, "runs");
}

/// A REMIX of a file that does not say which values in logs are hidden.
#[test]
fn what_is_hidden_in_logs_stays_unknown() {
    let keys = |range: Range<u8>| range.map(|key| (vec![key], false)).collect();
    let world = World::new(vec![keys(0..100), keys(30..60), keys(50..80)]);
    let known = build(&mut world.older(2), true).unwrap();
    let dead: u64 = (30..60).filter(|key| key % 3 == 2).map(|key| 100 + key).sum();
    assert_eq!((known.live_large(10_000), known.live_large(1)), (10_000 - dead, 0));
    let unknown = Remix { dead_large: None, ..known };
    assert_eq!(unknown.live_large(13_000), 10_000, "the share of the entries that count");
    let rebuilt = rebuild(&unknown, &mut world.older(3), true).unwrap();
    assert_eq!(rebuilt.dead_large, None);
    rebuilt.verify(&mut world.older(3)).unwrap();
    // Runs without such values hide none.
    let world = world.without_large();
    assert_eq!(build(&mut world.older(3), true).unwrap().dead_large, None);
}
