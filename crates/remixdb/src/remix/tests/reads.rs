//! Cursors and point queries.

use super::*;
use std::ops::ControlFlow;

/// All queries of a REMIX return what the world has.
pub(super) fn check(world: &World, remix: &Remix, what: &str) {
    remix.verify(&mut world.older(world.runs.len())).unwrap();
    assert_eq!(remix.live(), world.visible(Show::Live).len() as u64, "{what}");
    for show in [Show::Live, Show::Tombstones] {
        let visible = world.visible(show);
        walk_forward(world, remix, show, &visible, what);
        walk_backward(world, remix, show, &visible, what);
        seek_all(world, remix, show, &visible, what);
        wander(world, remix, show, &visible, what);
    }
    get_all(world, remix, what);
    count_all(world, remix, what);
}

fn count_all(world: &World, remix: &Remix, what: &str) {
    let (runs, visible) = (&mut world.older(world.runs.len()), world.visible(Show::Live));
    let probes: Vec<_> = [None].into_iter().chain(world.probes().into_iter().map(Some)).collect();
    let mut random = Random(probes.len() as u64);
    for from in &probes {
        let to = &probes[random.index(probes.len())];
        let is_inside = |key: &[u8]| {
            from.as_ref().is_none_or(|from| key >= &from[..]) && to.as_ref().is_none_or(|to| key < &to[..])
        };
        let expected = visible.iter().filter(|(key, _)| is_inside(key)).count() as u64;
        let counted = remix.count(runs, from.as_deref(), to.as_deref()).unwrap();
        assert_eq!(counted, expected, "{what}: from {from:?} to {to:?}");
    }
}

fn walk_forward(world: &World, remix: &Remix, show: Show, visible: &[(&[u8], RunEntry)], what: &str) {
    let mut cursor = world.cursor(remix, show);
    let mut key = vec![1, 2, 3];
    let (compared, ()) = world.compared(|| {
        assert!(
            cursor.entry().is_none() && !cursor.next().unwrap() && !cursor.prev().unwrap(),
            "{what}: it is nowhere"
        );
        let mut is = cursor.first().unwrap();
        for (expected, entry) in visible {
            assert!(is, "{what}: it ends before {expected:?}");
            assert_eq!(cursor.entry(), Some(*entry), "{what}");
            assert!(cursor.key_into(&mut key).unwrap());
            assert_eq!(key, *expected, "{what}");
            is = cursor.next().unwrap();
        }
        assert!(
            !is && !cursor.next().unwrap() && !cursor.prev().unwrap() && cursor.run().is_none(),
            "{what}: the end is the end"
        );
    });
    assert_eq!(compared, 0, "{what}: a step compares nothing");
}

fn walk_backward(world: &World, remix: &Remix, show: Show, visible: &[(&[u8], RunEntry)], what: &str) {
    let mut cursor = world.cursor(remix, show);
    let (compared, ()) = world.compared(|| {
        let mut is = cursor.last().unwrap();
        for (expected, entry) in visible.iter().rev() {
            assert!(is, "{what}: it ends before {expected:?}");
            assert_eq!(cursor.entry(), Some(*entry), "{what}");
            is = cursor.prev().unwrap();
        }
        assert!(!is && !cursor.prev().unwrap() && !cursor.next().unwrap(), "{what}: the end is the end");
    });
    assert_eq!(compared, 0, "{what}: a step compares nothing");
}

fn seek_all(world: &World, remix: &Remix, show: Show, visible: &[(&[u8], RunEntry)], what: &str) {
    let mut cursor = world.cursor(remix, show);
    for probe in world.probes() {
        let at = visible.partition_point(|(key, _)| *key < &probe[..]);
        let (compared, is) = world.compared(|| cursor.seek(&probe).unwrap());
        assert!(compared <= 6, "{what}: {compared} comparisons");
        assert_eq!(is, at < visible.len(), "{what}: seek {probe:?}");
        assert_eq!(cursor.entry(), visible.get(at).map(|found| found.1), "{what}: seek {probe:?}");
        let order = cursor.compare(&probe).unwrap();
        assert_eq!(order, visible.get(at).map(|found| found.0.cmp(&probe)), "{what}: compare {probe:?}");

        let behind = visible.partition_point(|(key, _)| *key <= &probe[..]);
        let expected = behind.checked_sub(1).map(|at| visible[at].1);
        let (compared, is) = world.compared(|| cursor.seek_for_prev(&probe).unwrap());
        assert!(compared <= 6, "{what}: {compared} comparisons");
        assert_eq!(is, expected.is_some(), "{what}: seek_for_prev {probe:?}");
        assert_eq!(cursor.entry(), expected, "{what}: seek_for_prev {probe:?}");
    }
}

/// Steps back and forth, some of them long, walks, and returns to earlier positions.
fn wander(world: &World, remix: &Remix, show: Show, visible: &[(&[u8], RunEntry)], what: &str) {
    let random = &mut Random(visible.len() as u64);
    let mut cursor = world.cursor(remix, show);
    let mut at = None;
    let mut kept = (None, None);
    for step in 0..300 {
        match (at, random.index(8)) {
            (None, _) if visible.is_empty() => return,
            (None, _) | (_, 0) => {
                let goal = random.index(visible.len());
                assert!(cursor.seek(visible[goal].0).unwrap(), "{what}");
                at = Some(goal);
            }
            (Some(from), 1 | 2) => {
                at = (from + 1 < visible.len()).then_some(from + 1);
                assert_eq!(cursor.next().unwrap(), at.is_some(), "{what}");
            }
            (Some(from), 3 | 4) => {
                at = from.checked_sub(1);
                assert_eq!(cursor.prev().unwrap(), at.is_some(), "{what}");
            }
            (Some(from), 5) => {
                let count = [0, 1, random.index(100), random.index(visible.len() + 2)][random.index(4)];
                at = (from + count < visible.len()).then_some(from + count);
                assert_eq!(
                    cursor.skip(count as u64).unwrap(),
                    at.is_some(),
                    "{what}: skip {count} from {from}"
                );
            }
            (Some(from), 6) => {
                let most = 1 + random.index(40);
                cursor.take_passed();
                let (mut stepped, mut seen) = (world.cursor(remix, show), Vec::new());
                stepped.restore(cursor.position()).unwrap();
                let walked = cursor.walk(|_, run, ordinal, end| {
                    assert!(*ordinal < end, "{what}: a walk from {from}");
                    while *ordinal < end {
                        seen.push((run, *ordinal));
                        if seen.len() == most {
                            return Ok(ControlFlow::Break(()));
                        }
                        *ordinal += 1;
                    }
                    Ok(ControlFlow::Continue(()))
                });
                let expected = visible[from..].iter().map(|(_, entry)| (entry.run, entry.ordinal));
                assert_eq!(seen, expected.take(seen.len()).collect::<Vec<_>>(), "{what}: a walk from {from}");
                let steps = match walked.unwrap() {
                    ControlFlow::Break(()) => seen.len() - 1,
                    ControlFlow::Continue(_) => seen.len(),
                };
                at = (from + steps < visible.len()).then_some(from + steps);
                (0..steps).for_each(|_| drop(stepped.next()));
                assert_eq!(cursor.take_passed(), stepped.take_passed(), "{what}: passed from {from}");
                assert_eq!(cursor.segment(), stepped.segment(), "{what}: a walk from {from}");
            }
            (Some(_), _) => {
                if step % 2 == 0 {
                    kept = (at, cursor.position());
                } else {
                    at = kept.0;
                    cursor.restore(kept.1).unwrap();
                }
            }
        }
        assert_eq!(cursor.entry(), at.map(|at| visible[at].1), "{what}");
    }
}

fn get_all(world: &World, remix: &Remix, what: &str) {
    let runs = &mut world.older(world.runs.len());
    for probe in world.probes() {
        let expected = world.newest.get(&probe).copied();
        assert_eq!(get(remix, runs, &probe).unwrap(), expected, "{what}: get {probe:?}");
    }
}

#[test]
fn all_reads_answer_as_a_map_does() {
    for seed in 0..150 {
        let world = World::random(seed);
        for tags in [false, true] {
            let what = format!("seed {seed}, tags {tags}");
            check(&world, &world.build(tags), &what);
        }
    }
}

#[test]
fn nothing_is_found_in_nothing() {
    for runs in [0, 1, 31] {
        let world = World::new(vec![BTreeMap::new(); runs]);
        for tags in [false, true] {
            let remix = world.build(tags);
            assert_eq!((remix.entries(), remix.live(), remix.segments()), (0, 0, 0));
            check(&world, &remix, "nothing");
        }
    }
}

#[test]
fn more_than_31_runs_are_refused() {
    let mut runs = vec![VecRun::default(); 32];
    assert_eq!(build(&mut runs, true).unwrap_err().kind(), forrest_engine::ErrorKind::Limit);
}

#[test]
fn a_key_with_31_versions_has_a_segment_to_itself() {
    let run = BTreeMap::from([(b"a".to_vec(), false), (b"b".to_vec(), false)]);
    let world = World::new(vec![run; 31]);
    let remix = world.build(true);
    assert_eq!((remix.segments(), remix.entries(), remix.live()), (2, 62, 2));
    assert_eq!(
        remix.arrays().unwrap().segments.iter().map(|segment| used(&segment.selectors)).collect::<Vec<_>>(),
        [31, 31]
    );
    check(&world, &remix, "31 versions");
}

/// The claims of the paper, which are why there are tags.
#[test]
fn reads_compare_few_keys() {
    let mut random = Random(7);
    let contents = (0..8).map(|_| (0..4000).map(|_| (key(&mut random, 2, 100_000), false)).collect());
    let world = World::new(contents.collect());
    let (remix, plain) = (world.build(true), world.build(false));
    let runs = &mut world.older(8);
    let absent: Vec<Vec<u8>> = (0..20_000).map(|_| key(&mut random, 2, 1 << 60)).collect();
    let present: Vec<Vec<u8>> = world.newest.keys().cloned().collect();
    let mut average = |remix: &Remix, keys: &[Vec<u8>], found| {
        let all = || keys.iter().for_each(|key| assert_eq!(get(remix, runs, key).unwrap().is_some(), found));
        world.compared(all).0 as f64 / keys.len() as f64
    };
    let (hit, miss) = (average(&remix, &present, true), average(&remix, &absent, false));
    let (hit_plain, miss_plain) = (average(&plain, &present, true), average(&plain, &absent, false));
    println!("comparisons with tags: hit {hit:.3}, miss {miss:.3}; without: {hit_plain:.3}, {miss_plain:.3}");
    assert!(hit < 1.1 && miss < 0.15, "hit {hit}, miss {miss}");
    assert!(hit_plain < 5.0 && miss_plain < 5.3, "hit {hit_plain}, miss {miss_plain}");
}

#[test]
fn tags_that_match_are_found_wherever_they_are() {
    let mut random = Random(3);
    for _ in 0..2000 {
        let tags: Tags = std::array::from_fn(|_| [0, 1, 0x7F, 0x80, 0x81, 0xFF][random.index(6)]);
        for tag in [0, 1, 2, 0x7F, 0x80, 0xFF] {
            let expected: Vec<usize> = (0..SEGMENT).filter(|&slot| tags[slot] == tag).collect();
            assert_eq!(Matches::new(&tags, tag).collect::<Vec<_>>(), expected);
        }
    }
}

#[test]
fn counts_are_those_of_a_loop() {
    let mut random = Random(4);
    for _ in 0..2000 {
        let mut selectors: Selectors = std::array::from_fn(|_| random.next() as u8 & 0x7F);
        for slot in 0..SEGMENT {
            let run = selectors[slot] & RUN;
            let expected = selectors[..slot].iter().filter(|&&other| other & RUN == run).count();
            assert_eq!(before(&selectors, slot), expected as u32);
            let seen = selectors[slot..].iter().filter(|&&other| other & TOMBSTONE == 0).count();
            assert_eq!(visible(&selectors, slot, TOMBSTONE), seen);
        }
        assert_eq!(visible(&selectors, SEGMENT, 0), 0);
        let count = random.index(SEGMENT + 1);
        selectors.iter_mut().for_each(|selector| *selector &= !1);
        selectors[count..].fill(FILLER);
        assert_eq!(used(&selectors), count);
    }
}
