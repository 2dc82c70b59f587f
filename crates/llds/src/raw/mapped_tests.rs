//! Seqlock reads compared with the engine: the same results, alone and while another thread changes the
//! store.

use super::super::abi;
use super::super::{Attach, User};
use super::Mapped;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(in super::super) fn open(name: &str) -> User {
    User::open(&Attach { makes: true, ..Attach::existing(None, name.as_bytes()) }, true).expect("a store")
}

pub(in super::super) fn change(user: &User, code: u8, key: &[u8], value: &[u8]) {
    let mut op = vec![code, 0];
    op.extend_from_slice(&(key.len() as u16).to_ne_bytes());
    op.extend_from_slice(&(value.len() as u32).to_ne_bytes());
    op.extend_from_slice(&[0; 8]);
    op.extend_from_slice(key);
    op.extend_from_slice(value);
    op.resize(op.len().next_multiple_of(8), 0);
    let mut answers = [0; 64];
    user.run(&op, &mut answers, false).expect("a change");
}

/// The result of a seqlock read; `None` if the caller has to ask the engine.
fn seen(user: &User, key: &[u8]) -> Option<Option<Vec<u8>>> {
    user.mapped().expect("it can be seen").get(key, |value| value.map(<[u8]>::to_vec)).ok()
}

#[test]
fn a_word_has_one_hash() {
    for key in (0..1000_u64).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
        assert_eq!(super::hash(7, &key.to_ne_bytes()), super::hash_of_word(7, key));
    }
}

#[test]
fn blocks_begin_where_a_slab_does() {
    let user = open("blocks elsewhere");
    let mapped = user.mapped().expect("it can be seen");
    let blocks = NonNull::new(mapped.block(0).cast_mut()).expect("they are there");
    let elsewhere = NonNull::new(mapped.block(256).cast_mut()).expect("they are there");
    // SAFETY: these are those of the store, and nothing is read through them.
    let [right, wrong] = [blocks, elsewhere].map(|at| unsafe { Mapped::new(mapped.header(), at, blocks) });
    assert!(right.is_some() && wrong.is_none());
}

#[test]
fn keys_of_all_lengths_are_seen() {
    let user = open("keys of all lengths");
    let key = |len: usize| (0..len).map(|at| (at * 7 + len) as u8).collect::<Vec<u8>>();
    let value = |len: usize| vec![len as u8; len * 13 % 5000];
    for round in 0..2 {
        for len in (0..300).chain([4095, 4096]) {
            assert_eq!(seen(&user, &key(len)), Some((round == 1).then(|| value(len))), "{len}");
            change(&user, abi::SET, &key(len), &value(len));
            assert_eq!(seen(&user, &key(len)), Some(Some(value(len))), "{len}");
        }
    }
    for len in (0..300).step_by(2) {
        change(&user, abi::DELETE, &key(len), &[]);
    }
    for len in 0..300 {
        assert_eq!(seen(&user, &key(len)), Some((len % 2 == 1).then(|| value(len))), "{len}");
    }
}

#[test]
fn values_that_lie_by_themselves_are_for_the_engine() {
    let user = open("values by themselves");
    for key in [&b"key"[..], b"of eight", &[7; 4096]] {
        for len in [0, 1, 7, 8, 255, 256, 257, 16_384] {
            change(&user, abi::SET, key, &vec![1; len]);
            assert_eq!(seen(&user, key), Some(Some(vec![1; len])), "{len}");
        }
        change(&user, abi::SET, key, &[2; 16_385]);
        assert_eq!(seen(&user, key), None);
        change(&user, abi::SET, key, b"short again");
        assert_eq!(seen(&user, key), Some(Some(b"short again".to_vec())));
    }
}

/// Buckets and overflow blocks are made and freed; reads find all keys that exist, and no others.
#[test]
fn many_keys_come_and_go() {
    let user = open("many keys");
    let keys = 30_000_u64;
    for i in 0..keys {
        change(&user, abi::SET, &i.to_ne_bytes(), &i.to_be_bytes());
    }
    for i in 0..2 * keys {
        let expected = (i < keys).then(|| i.to_be_bytes().to_vec());
        assert_eq!(seen(&user, &i.to_ne_bytes()), Some(expected), "{i}");
    }
    for i in (0..keys).filter(|i| i % 16 != 0) {
        change(&user, abi::DELETE, &i.to_ne_bytes(), &[]);
    }
    for i in 0..keys {
        let expected = (i % 16 == 0).then(|| i.to_be_bytes().to_vec());
        assert_eq!(seen(&user, &i.to_ne_bytes()), Some(expected), "{i}");
    }
}

/// Says at its end that something is over.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One thread changes values, others read them: values are whole, and never older than one read or written
/// before.
#[test]
fn others_change_what_is_seen() {
    const KEYS: u64 = 200;
    let user = open("others change it");
    let (written, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    // A number, repeated; most values have the same length.
    let value = |stamp: u64| {
        stamp.to_ne_bytes().repeat(if stamp.is_multiple_of(5) { stamp as usize % 60 + 1 } else { 3 })
    };
    for key in 0..KEYS {
        change(&user, abi::SET, &key.to_ne_bytes(), &value(0));
    }
    std::thread::scope(|scope| {
        for thread in 0..3_u64 {
            let (user, written, is_over) = (&user, &written, &is_over);
            scope.spawn(move || {
                // Also if this thread panics, so that the writer ends.
                let _over = Over(is_over);
                let mut newest = [0; KEYS as usize];
                let mut looks = 0;
                while looks < 4_000 {
                    let key = (looks * 7 + thread) % KEYS;
                    looks += 1;
                    let before = written.load(Ordering::Acquire);
                    let Some(found) = seen(user, &key.to_ne_bytes()) else { continue };
                    let found = found.expect("no key goes");
                    let stamp = u64::from_ne_bytes(found[..8].try_into().expect("8 bytes"));
                    assert_eq!(found, value(stamp));
                    assert!(stamp >= newest[key as usize], "older than what was seen");
                    // The last round that was complete before the read wrote this value.
                    assert!(stamp >= before, "older than what was written");
                    newest[key as usize] = stamp;
                }
            });
        }
        for stamp in 1.. {
            for key in 0..KEYS {
                change(&user, abi::SET, &key.to_ne_bytes(), &value(stamp));
            }
            written.store(stamp, Ordering::Release);
            if is_over.load(Ordering::Relaxed) {
                break;
            }
        }
    });
}
