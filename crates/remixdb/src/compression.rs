//! Compression of bytes: the methods, their numbers in files, and which of them this build has.
//!
//! LZ4 is always there. Zstandard needs the feature `zstd`, because it is compiled from C. Both are read only into
//! buffers whose length the caller knows: what a stream claims about its length is never allocated.
//!
//! Not here: which bytes are compressed together, and where they are (see [`table`](crate::table)).

use forrest_engine::{Compression, Error, Result};

/// The level of Zstandard. The next two make chunks of 16 KiB 0 to 4 % smaller, and take a fifth more time.
#[cfg(feature = "zstd")]
const ZSTD_LEVEL: i32 = 1;

/// The number of a method in files.
pub(crate) const fn number(method: Compression) -> u8 {
    match method {
        Compression::Lz4 => 1,
        Compression::Zstd => 2,
        _ => 0,
    }
}

/// The method with a number; `None` if this version knows no such method.
pub(crate) fn of_number(stored: u64) -> Option<Compression> {
    Compression::ALL.into_iter().find(|&method| u64::from(number(method)) == stored)
}

/// An error if this build does not have a method.
///
/// # Errors
/// `Unsupported`.
pub(crate) fn check(method: Compression) -> Result<()> {
    if method == Compression::Zstd && !cfg!(feature = "zstd") {
        let what = "compression zstd: this build has none and lz4; build with the feature `zstd` for it";
        return Err(Error::unsupported(what));
    }
    Ok(())
}

/// Compresses pieces of a file, one after the other.
pub(crate) struct Compressor {
    method: Compression,
    #[cfg(feature = "zstd")]
    zstd: Option<zstd::bulk::Compressor<'static>>,
    /// The last compressed piece.
    out: Vec<u8>,
}

impl Compressor {
    /// REQUIRES: this build has the method.
    pub(crate) fn new(method: Compression) -> Compressor {
        debug_assert!(check(method).is_ok());
        Compressor {
            method,
            #[cfg(feature = "zstd")]
            zstd: None,
            out: Vec::new(),
        }
    }

    pub(crate) fn method(&self) -> Compression {
        self.method
    }

    /// The compressed form of these bytes; `None` if that would be longer than `most`.
    pub(crate) fn compress(&mut self, bytes: &[u8], most: usize) -> Option<&[u8]> {
        let len = match self.method {
            Compression::Lz4 => {
                self.out.resize(lz4_flex::block::get_maximum_output_size(bytes.len()), 0);
                lz4_flex::block::compress_into(bytes, &mut self.out).ok()?
            }
            #[cfg(feature = "zstd")]
            Compression::Zstd => {
                self.out.resize(most, 0);
                if self.zstd.is_none() {
                    self.zstd = zstd::bulk::Compressor::new(ZSTD_LEVEL).ok();
                }
                self.zstd.as_mut()?.compress_to_buffer(bytes, &mut self.out).ok()?
            }
            _ => return None,
        };
        (len <= most).then(|| &self.out[..len])
    }
}

#[cfg(feature = "zstd")]
fn unzstd(stored: &[u8], out: &mut [u8]) -> Option<usize> {
    use std::cell::RefCell;
    thread_local! {
        /// Its tables take 100 KB, which each thread that reads makes once.
        static UNZSTD: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
    }
    UNZSTD.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = zstd::bulk::Decompressor::new().ok();
        }
        kept.as_mut()?.decompress_to_buffer(stored, out).ok()
    })
}

/// Fills `out` with what was compressed. False if it was not that many bytes.
#[must_use]
pub(crate) fn decompress(method: Compression, stored: &[u8], out: &mut [u8]) -> bool {
    let len = match method {
        Compression::Lz4 => lz4_flex::block::decompress_into(stored, out).ok(),
        #[cfg(feature = "zstd")]
        Compression::Zstd => unzstd(stored, out),
        _ => None,
    };
    len == Some(out.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use forrest_base::random::Random;

    fn methods() -> impl Iterator<Item = Compression> {
        let is_here = |method: &Compression| *method != Compression::None && check(*method).is_ok();
        Compression::ALL.into_iter().filter(is_here)
    }

    #[test]
    fn numbers_are_part_of_the_format() {
        assert_eq!(Compression::ALL.map(number), [0, 1, 2]);
        assert_eq!(
            Compression::ALL.map(|method| of_number(number(method).into())),
            Compression::ALL.map(Some)
        );
        assert_eq!((of_number(3), of_number(256), of_number(257)), (None, None, None));
    }

    #[test]
    fn what_is_compressed_comes_back_in_its_length_only() {
        for method in methods() {
            let mut compressor = Compressor::new(method);
            let mut random = Random(1);
            for len in [1, 8, 100, 5_000, 16_352] {
                let bytes: Vec<u8> = (0..len).map(|at| (at / 9) as u8 ^ (random.next() & 1) as u8).collect();
                let Some(stored) = compressor.compress(&bytes, len + 100).map(<[u8]>::to_vec) else {
                    panic!("{method}: {len} bytes");
                };
                assert!(compressor.compress(&bytes, stored.len() - 1).is_none(), "{method}: a byte more");
                let mut out = vec![0; len];
                assert!(decompress(method, &stored, &mut out) && out == bytes, "{method}");
                assert!(!decompress(method, &stored, &mut out[1..]), "{method}: a byte less");
                out.push(0);
                assert!(!decompress(method, &stored, &mut out), "{method}: a byte more");
            }
            let noise: Vec<u8> = (0..16_352).map(|_| random.next() as u8).collect();
            assert!(compressor.compress(&noise, 16_352 - 2_048).is_none(), "{method}");
        }
    }

    #[test]
    fn nonsense_is_refused_or_has_the_length() {
        let mut random = Random(2);
        for method in methods() {
            for _ in 0..5_000 {
                let len = random.index(200);
                let stored: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
                let _ = decompress(method, &stored, &mut vec![0; random.index(5_000)]);
            }
        }
    }

    #[test]
    fn what_is_not_built_in_is_refused_in_words() {
        let zstd = check(Compression::Zstd);
        assert_eq!(zstd.is_ok(), cfg!(feature = "zstd"));
        if let Err(error) = zstd {
            assert!(error.to_string().contains("build with the feature `zstd`"), "{error}");
        }
    }
}
