//! Searches among separators against `BTreeMap`: long prefixes, and many with the same first bytes. By itself, because
//! what it pins would be missing in tests of memory.

use forrest_base::random::Random;
use forrest_index::{Index, Options};
use forrest_testing::sized;
use std::collections::BTreeMap;
use std::ops::Bound;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Inner nodes compare the first bytes of a prefix in their heads, and the separators of many keys in stages.
#[test]
fn separators_with_equal_heads_and_prefixes_of_all_lengths() {
    for prefix in [0, 3, 7, 8, 9, 41, 42, 43, 44, 100] {
        let index = Index::new(&Options::default()).unwrap();
        let tree = index.create_tree().unwrap();
        let mut model = Model::new();
        let before = vec![b'p'; prefix];
        for n in 0..sized(20_000_u64, 4000) {
            let key = [&before[..], format!("run-{:03}-of-keys-{n}", n % 50).as_bytes()].concat();
            tree.insert(&key, &n.to_be_bytes()).unwrap();
            model.insert(key, n.to_be_bytes().to_vec());
        }
        // Beside the keys: those of which a byte differs, or some are missing.
        let mut random = Random(prefix as u64 + 1);
        let mut probes: Vec<Vec<u8>> = model.keys().step_by(7).cloned().collect();
        for at in 0..probes.len() {
            let mut key = probes[at].clone();
            let byte = random.below(key.len() as u64) as usize;
            match random.below(3) {
                0 => key.truncate(byte),
                1 => key[byte] = key[byte].wrapping_add(1),
                _ => key[byte] = key[byte].wrapping_sub(1),
            }
            probes.push(key);
        }
        let mut answers = vec![None; probes.len()];
        tree.multi_get(&probes, |i, value| answers[i] = value.as_deref().map(<[u8]>::to_vec));
        let mut cursor = tree.cursor();
        for (key, answer) in probes.iter().zip(&answers) {
            assert_eq!(answer.as_ref(), model.get(key), "{prefix}: {key:?}");
            assert_eq!(tree.get(key).as_deref(), model.get(key).map(|value| &value[..]), "{prefix}: {key:?}");
            cursor.seek(key);
            let next = model.range::<[u8], _>((Bound::Included(&key[..]), Bound::Unbounded)).next();
            assert_eq!(cursor.key(), next.map(|(key, _)| &key[..]), "{prefix}: {key:?}");
        }
    }
}
