//! The hash functions: one trait with static dispatch, from byte strings and numbers to 64 bits.
//!
//! Every function receives the whole key at once and nothing else: no length before it, no second key after it.
//! So all are measured on the same input, whichever table calls them ([`By`] is the adapter for tables of other
//! crates). Seeds are fixed, so that a run can be repeated; a benchmark has no attackers.
//!
//! A number is hashed as its eight bytes, little endian, unless the crate hashes numbers in another way by default
//! (ahash, foldhash).

use std::hash::{BuildHasher, DefaultHasher, Hasher};
use std::marker::PhantomData;

/// A hash function.
pub(crate) trait HashFunction: Copy + Default + Send + Sync + 'static {
    /// The hash of a byte string.
    fn of_bytes(bytes: &[u8]) -> u64;

    /// The hash of a number.
    #[inline]
    fn of_number(number: u64) -> u64 {
        Self::of_bytes(&number.to_le_bytes())
    }
}

/// Facts about a function.
pub(crate) struct About {
    /// Which.
    pub(crate) hash: Hash,
    /// The name.
    pub(crate) name: &'static str,
    /// Another name that is taken for it: the ancestor's.
    pub(crate) alias: Option<&'static str>,
    /// The package that it comes from, for its version.
    pub(crate) package: &'static str,
    /// What it is.
    pub(crate) about: &'static str,
    /// How it does in SMHasher3.
    pub(crate) verdict: &'static str,
}

/// Makes of each function its variant, its type, and its facts: name and alias, package, verdict, what it is, and how
/// it hashes bytes, and numbers if not as bytes.
macro_rules! functions {
    ($($type:ident: $name:literal $(or $alias:literal)?, $package:literal, $verdict:expr, $about:literal,
        |$bytes:ident| $hash:expr $(, |$number:ident| $of_number:expr)?;)*) => {
        /// Every function, in the order of the list.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Hash {
            $(#[doc = $about] $type,)*
        }

        /// Every function, in the order of the list. The verdicts are those of the results that SMHasher3 publishes
        /// and, for rapidhash and MuseAir, which came later, of their authors' runs of it.
        pub(crate) const HASHES: &[About] = &[$(About {
            hash: Hash::$type,
            name: $name,
            alias: [$(Some($alias),)? None][0],
            package: $package,
            about: $about,
            verdict: $verdict,
        }),*];

        $(
            #[doc = $about]
            #[derive(Debug, Clone, Copy, Default)]
            pub(crate) struct $type;

            impl HashFunction for $type {
                #[inline]
                fn of_bytes($bytes: &[u8]) -> u64 {
                    $hash
                }
                $(
                    #[inline]
                    fn of_number($number: u64) -> u64 {
                        $of_number
                    }
                )?
            }
        )*
    };
}

functions! {
    Rapid: "rapidhash", "rapidhash", PASSES, "rapidhash V3, as in C++", |bytes| rapidhash::v3::rapidhash_v3(bytes);
    Komi: "komihash", "komihash", PASSES, "komihash 5", |bytes| komihash::komihash(bytes, 0);
    MuseAir: "museair", "museair", PASSES, "MuseAir 2", |bytes| museair::hash(bytes, 0);
    Ahash: "ahash", "ahash", if cfg!(target_feature = "aes") { "fails 9 of 250" } else { PASSES },
        "aHash; without AES unless the build is for processors that have it",
        |bytes| by_hasher(AHASH.build_hasher(), bytes), |number| number_by_hasher(AHASH.build_hasher(), number);
    Sip: "siphash", "siphasher", PASSES, "SipHash-2-4", |bytes| siphasher::sip::SipHasher24::new().hash(bytes);
    Std: "std", "std", PASSES, "SipHash-1-3, the default of std's maps",
        |bytes| by_hasher(DefaultHasher::new(), bytes);
    Fold: "foldhash", "foldhash", "not among its results", "foldhash, the fast variant, the default of hashbrown",
        |bytes| by_hasher(FOLD.build_hasher(), bytes), |number| number_by_hasher(FOLD.build_hasher(), number);
    T1ha2: "t1ha2", "t1ha", "fails 3 of 250", "t1ha2, at once", |bytes| t1ha::t1ha2_atonce(bytes, 0);
    Wy: "wyhash", "wyhash", "fails 15 of 250 (version 4)", "wyhash, final version 3",
        |bytes| wyhash::final3::wyhash(bytes, 0, WY_SECRET);
    Xxh3: "xxh3" or "xxhash:XX3_64bits", "xxhash-rust", "fails 28 of 250", "XXH3, 64 bits",
        |bytes| xxhash_rust::xxh3::xxh3_64(bytes);
    City: "cityhash" or "city::cityhash64", "cityhasher", "fails 47 of 250", "CityHash64 1.1",
        |bytes| cityhasher::hash(bytes);
    T1ha: "t1ha" or "t1ha::t1ha", "t1ha", "fails 64 of 250", "t1ha0, which is t1ha1 in a build that is not for AES",
        |bytes| t1ha::t1ha0(bytes, 0);
}

const PASSES: &str = "passes";

/// Functions that are not here, and why.
pub(crate) const LEFT_OUT: &[(&str, &str)] =
    &[("gxhash", "it compiles only for processors with AES, and this program is built for all")];

impl Hash {
    /// The function of this name.
    pub(crate) fn find(name: &str) -> Option<Hash> {
        let is = |about: &&About| about.name == name || about.alias == Some(name);
        HASHES.iter().find(is).map(|about| about.hash)
    }

    /// The name.
    pub(crate) fn name(self) -> &'static str {
        HASHES.iter().find(|about| about.hash == self).map_or("?", |about| about.name)
    }
}

/// The seeds of aHash: digits of pi, as if they were random.
const AHASH: ahash::RandomState = ahash::RandomState::with_seeds(
    0x243f_6a88_85a3_08d3,
    0x1319_8a2e_0370_7344,
    0xa409_3822_299f_31d0,
    0x082e_fa98_ec4e_6c89,
);

/// The seed of foldhash.
const FOLD: foldhash::fast::FixedState = foldhash::fast::FixedState::with_seed(0x243f_6a88_85a3_08d3);

/// The secret that wyhash has by default.
const WY_SECRET: [u64; 4] =
    [0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db, 0x8ebc_6af0_9c88_c6e3, 0x5899_65cc_7537_4cc3];

#[inline]
fn by_hasher(mut hasher: impl Hasher, bytes: &[u8]) -> u64 {
    hasher.write(bytes);
    hasher.finish()
}

#[inline]
fn number_by_hasher(mut hasher: impl Hasher, number: u64) -> u64 {
    hasher.write_u64(number);
    hasher.finish()
}

/// A function as the maps of std and of other crates ask for it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct By<H>(PhantomData<H>);

impl<H: HashFunction> BuildHasher for By<H> {
    type Hasher = OfKey<H>;

    #[inline]
    fn build_hasher(&self) -> OfKey<H> {
        OfKey(0, PhantomData)
    }
}

/// Takes one key, a byte string or a number, and hashes it at once.
pub(crate) struct OfKey<H>(u64, PhantomData<H>);

impl<H: HashFunction> Hasher for OfKey<H> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0 = H::of_bytes(bytes);
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = H::of_number(number);
    }

    /// Ignores the length that a slice hashes before its bytes: a key that is a whole string needs none.
    #[inline]
    fn write_usize(&mut self, _: usize) {}

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// The verification code of SMHasher: keys 0; 0 1; 0 1 2; ... of up to 255 bytes with falling seeds, and the hash
    /// of their hashes.
    fn code(hash: impl Fn(&[u8], u64) -> u64) -> u32 {
        let key: Vec<u8> = (0..=255).collect();
        let hashes: Vec<u8> =
            (0..256).flat_map(|len| hash(&key[..len], 256 - len as u64).to_le_bytes()).collect();
        hash(&hashes, 0) as u32
    }

    #[test]
    fn functions_have_the_codes_that_smhasher_publishes() {
        use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};
        use siphasher::sip::{SipHasher13, SipHasher24};
        let rapid = |bytes: &[u8], seed| rapidhash_v3_seeded(bytes, &RapidSecrets::seed_cpp(seed));
        let codes = [
            ("rapidhash", code(rapid), 0x1fdc_65ee),
            ("komihash", code(komihash::komihash), 0x8157_ff6d),
            ("museair", code(museair::hash), 0x7140_cabc),
            ("xxh3", code(xxhash_rust::xxh3::xxh3_64_with_seed), 0x9a63_6405),
            ("cityhash", code(|bytes, seed| cityhasher::hash_with_seed(bytes, seed)), 0x5fab_c5c5),
            ("t1ha1", code(t1ha::t1ha1), 0xd683_6381),
            ("t1ha2", code(t1ha::t1ha2_atonce), 0x8f16_c948),
            ("wyhash", code(|bytes, seed| wyhash::final3::wyhash(bytes, seed, WY_SECRET)), 0x6703_1d43),
            ("siphash", code(|bytes, seed| SipHasher24::new_with_keys(seed, 0).hash(bytes)), 0x57b6_61ed),
            ("std", code(|bytes, seed| SipHasher13::new_with_keys(seed, 0).hash(bytes)), 0x8936_b193),
        ];
        for (name, code, published) in codes {
            assert_eq!(code, published, "{name}: {code:08x}");
        }
    }

    #[test]
    fn functions_are_those_that_were_verified() {
        let inputs: Vec<Vec<u8>> =
            (0..300u32).map(|len| (0..len).map(|at| (at * at + 7 * len) as u8).collect()).collect();
        for bytes in inputs.iter().map(Vec::as_slice) {
            let pairs = [
                (
                    Rapid::of_bytes(bytes),
                    rapidhash::v3::rapidhash_v3_seeded(bytes, &rapidhash::v3::RapidSecrets::seed_cpp(0)),
                ),
                (City::of_bytes(bytes), cityhasher::hash(bytes)),
                (Sip::of_bytes(bytes), siphasher::sip::SipHasher24::new_with_keys(0, 0).hash(bytes)),
                (Std::of_bytes(bytes), siphasher::sip::SipHasher13::new_with_keys(0, 0).hash(bytes)),
                (Xxh3::of_bytes(bytes), xxhash_rust::xxh3::xxh3_64_with_seed(bytes, 0)),
            ];
            for (at, (got, expected)) in pairs.into_iter().enumerate() {
                assert_eq!(got, expected, "function {at}, {} bytes", bytes.len());
            }
            if !cfg!(target_feature = "avx") {
                assert_eq!(T1ha::of_bytes(bytes), t1ha::t1ha1(bytes, 0));
            }
        }
    }

    #[test]
    fn published_vectors_hold() {
        assert_eq!(Xxh3::of_bytes(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(City::of_bytes(b""), 0x9ae1_6a3b_2f90_404f);
        assert_eq!(Wy::of_bytes(b""), 0x42bc_986d_c5ee_c4d3);
        let vector: Vec<u8> = (0..15).collect();
        let keyed = siphasher::sip::SipHasher24::new_with_keys(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
        assert_eq!(keyed.hash(&vector), 0xa129_ca61_49be_45e5);
    }

    /// The second and third bytes of the hashes of short numbers and strings are spread.
    fn spreads<H: HashFunction>(name: &str) {
        let numbers: HashSet<u64> = (0..10_000).map(H::of_number).collect();
        let strings: HashSet<u64> = (0..10_000u32).map(|n| H::of_bytes(n.to_string().as_bytes())).collect();
        assert_eq!((numbers.len(), strings.len()), (10_000, 10_000), "{name}");
        for hashes in [&numbers, &strings] {
            for shift in [0, 57] {
                let mut counts = [0u32; 128];
                hashes.iter().for_each(|hash| counts[(hash >> shift) as usize % 128] += 1);
                assert!(counts.iter().all(|count| (30..150).contains(count)), "{name} {shift}: {counts:?}");
            }
        }
        assert_eq!(By::<H>::default().hash_one(7u64), H::of_number(7), "{name}");
        assert_eq!(By::<H>::default().hash_one(&b"key"[..]), H::of_bytes(b"key"), "{name}");
        assert_eq!(By::<H>::default().hash_one(vec![1u8; 300]), H::of_bytes(&[1; 300]), "{name}");
    }

    #[test]
    fn every_function_spreads_and_is_asked_alike() {
        spreads::<Rapid>("rapidhash");
        spreads::<Komi>("komihash");
        spreads::<MuseAir>("museair");
        spreads::<Ahash>("ahash");
        spreads::<Fold>("foldhash");
        spreads::<Sip>("siphash");
        spreads::<Std>("std");
        spreads::<Xxh3>("xxh3");
        spreads::<T1ha>("t1ha");
        spreads::<T1ha2>("t1ha2");
        spreads::<City>("cityhash");
        spreads::<Wy>("wyhash");
    }

    #[test]
    fn names_are_found_and_the_ancestors_too() {
        for about in HASHES {
            assert_eq!(Hash::find(about.name), Some(about.hash));
            assert_eq!(about.hash.name(), about.name);
        }
        for (alias, hash) in
            [("xxhash:XX3_64bits", Hash::Xxh3), ("t1ha::t1ha", Hash::T1ha), ("city::cityhash64", Hash::City)]
        {
            assert_eq!(Hash::find(alias), Some(hash));
        }
        assert_eq!(Hash::find("md5"), None);
    }
}
