//! [`Ring`]: many runs of operations by one call of the kernel, with io_uring.
//!
//! What is lent for a run is the kernel's until its completion has come, so [`Ring::run`] returns when all completions are
//! there, and not before; what can fail or panic comes before the first command is handed over. Where even waiting
//! fails, which no kernel should, the process ends: nobody could say whose its memory is.

use super::abi::{self, command};
use super::device::Device;
use super::error::{Error, Result};
use super::ran::{self, Ran};
use io_uring::{EnterFlags, IoUring, opcode::UringCmd16, types::Fd};
use std::io;
use std::os::fd::{AsRawFd, RawFd};

const MAKE: &str = "make a ring of io_uring";
const RUN: &str = "do runs of operations by io_uring";

/// A run to be done.
#[derive(Debug)]
pub struct Asked<'a> {
    /// The operations.
    pub ops: &'a [u8],
    /// Room for the answers. A run with more than 4 KiB of operations and room together is handed to a thread of the
    /// kernel, so there should be no more than is needed.
    pub answers: &'a mut [u8],
    /// Whether it takes place as one.
    pub is_atomic: bool,
}

/// A ring of io_uring for runs of operations. It takes so many of them to the kernel by one call.
#[derive(Debug)]
pub struct Ring {
    ring: Rings,
    /// Runs as they are handed over, as the kernel changed them, and what their commands came to.
    before: Vec<abi::Run>,
    after: Vec<abi::Run>,
    numbers: Vec<i32>,
    entries: Vec<io_uring::squeue::Entry>,
    /// A command could not be handed over and is still in the ring.
    is_broken: bool,
}

/// The ring itself, which has nothing to show.
struct Rings(IoUring);

impl std::fmt::Debug for Rings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("IoUring").field(&self.0.as_raw_fd()).finish()
    }
}

impl Ring {
    /// Makes a ring that takes up to so many runs at once (1 to 4,096; more is that).
    ///
    /// # Errors
    /// What the system says: `ENOSYS` or `EPERM` where there is no io_uring or a sandbox forbids it, `ENOMEM`.
    pub fn new(runs_at_once: u32) -> Result<Ring> {
        let count = runs_at_once.clamp(1, 4096);
        let ring = IoUring::new(count).map_err(|error| Error::system(MAKE, number(&error)))?;
        let capacity = ring.params().sq_entries() as usize;
        Ok(Ring {
            ring: Rings(ring),
            before: Vec::with_capacity(capacity),
            after: Vec::with_capacity(capacity),
            numbers: Vec::with_capacity(capacity),
            entries: Vec::with_capacity(capacity),
            is_broken: false,
        })
    }

    /// Does runs, in any order, and tells of each what it came to, in the order in which they were asked for. They have ended
    /// when this returns, also if it fails.
    ///
    /// # Errors
    /// What the system says if they cannot be handed over; some may have been done. Each by itself: as [`Device::run`],
    /// and `EOPNOTSUPP` from a module or a kernel (before 5.19) that takes no commands.
    pub fn run(&mut self, device: &Device, asked: &mut [Asked<'_>]) -> Result<Vec<Result<Ran>>> {
        self.run_by(device.file().as_raw_fd(), asked)
    }

    fn run_by(&mut self, fd: RawFd, asked: &mut [Asked<'_>]) -> Result<Vec<Result<Ran>>> {
        let at_once = self.ring.0.params().sq_entries() as usize;
        let mut all = Vec::with_capacity(asked.len());
        for asked in asked.chunks_mut(at_once) {
            if self.is_broken {
                return Err(Error::system(RUN, libc::EIO));
            }
            self.before.clear();
            for run in asked {
                self.before.push(ran::argument(run.ops, run.answers, run.is_atomic)?);
            }
            self.after.clone_from(&self.before);
            self.numbers.clear();
            self.numbers.resize(self.before.len(), 0);
            self.hand_over(fd)?;
            let ended = self.before.iter().zip(&self.after).zip(&self.numbers);
            all.extend(ended.map(|((before, after), number)| ran::judge(before, after, -number)));
        }
        Ok(all)
    }

    /// Hands over what is in `after`, and returns when all of it has ended.
    fn hand_over(&mut self, fd: RawFd) -> Result<()> {
        let runs = self.after.as_mut_ptr().expose_provenance() as u64;
        self.entries.clear();
        for at in 0..self.after.len() as u64 {
            let mut bytes = [0; size_of::<abi::Uring>()];
            bytes[..8].copy_from_slice(&(runs + at * size_of::<abi::Run>() as u64).to_ne_bytes());
            let entry = UringCmd16::new(Fd(fd), command::URING_RUN).cmd(bytes).build();
            self.entries.push(entry.user_data(at));
        }
        // SAFETY: the entries name runs in `after`, and these what was lent to `run_by`. All of it lives until this returns, and
        // nobody touches it; below, nothing returns or panics while one of them is in the kernel. What is in the queue
        // and not in the kernel gets there by `submit_and_wait` only, which is not called once the ring is broken.
        if unsafe { self.ring.0.submission().push_multiple(&self.entries) }.is_err() {
            // None of them is in the queue.
            return Err(Error::system(RUN, libc::EBUSY));
        }
        let mut left = self.entries.len();
        while left > 0 {
            let waited = self.ring.0.submit_and_wait(left);
            left -= self.take();
            match waited {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.is_broken = true;
                    let unsent = self.ring.0.submission().len();
                    self.wait_for(left.saturating_sub(unsent));
                    return Err(Error::system(RUN, number(&error)));
                }
            }
        }
        Ok(())
    }

    /// Takes completions off the ring; how many.
    fn take(&mut self) -> usize {
        let mut taken = 0;
        for completion in self.ring.0.completion() {
            if let Some(number) = self.numbers.get_mut(completion.user_data() as usize) {
                *number = completion.result();
            }
            taken += 1;
        }
        taken
    }

    /// Waits for completions of what is in the kernel, and hands over no more.
    fn wait_for(&mut self, mut left: usize) {
        while left > 0 {
            let flags = EnterFlags::GETEVENTS.bits();
            // SAFETY: it hands over nothing, and lends nothing.
            let waited = unsafe { self.ring.0.submitter().enter::<()>(0, left as u32, flags, None) };
            left = left.saturating_sub(self.take());
            if waited.is_err_and(|error| error.kind() != io::ErrorKind::Interrupted) && left > 0 {
                std::process::abort();
            }
        }
    }
}

fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    /// A ring, or why there is none here.
    fn ring(runs_at_once: u32) -> Option<Ring> {
        match Ring::new(runs_at_once) {
            Ok(ring) => Some(ring),
            Err(error) => {
                assert_eq!(error.what(), MAKE);
                println!("skipped: {error}");
                None
            }
        }
    }

    /// What so many runs come to with another file than the device.
    fn runs(ring: &mut Ring, file: &File, count: usize) -> Vec<Result<Ran>> {
        let mut answers = vec![[0_u8; 16]; count];
        let ops = [0_u8; 24];
        let mut asked: Vec<Asked<'_>> =
            answers.iter_mut().map(|answers| Asked { ops: &ops, answers, is_atomic: false }).collect();
        ring.run_by(file.as_raw_fd(), &mut asked).expect("they are handed over")
    }

    #[test]
    fn every_run_comes_back() {
        let Some(mut ring) = ring(4) else { return };
        // A file that takes no commands, so that each run fails by itself.
        let file = tempfile::tempfile().expect("a file");
        for count in [0, 1, 3, 4, 5, 8, 33] {
            let all = runs(&mut ring, &file, count);
            assert_eq!(all.len(), count);
            for run in all {
                // EINVAL is what a kernel before 5.19 says.
                let number = run.expect_err("a file does no run").number();
                assert!([Some(libc::EOPNOTSUPP), Some(libc::EINVAL)].contains(&number), "{number:?}");
            }
        }
        // Newer kernels take any command for the null device, and do nothing.
        let null = File::open("/dev/null").expect("it is everywhere");
        for run in runs(&mut ring, &null, 5) {
            match run {
                Ok(ran) => assert_eq!(ran, Ran::Done { ops: 0, ops_bytes: 0, answers_bytes: 16 }),
                Err(error) => assert!([Some(libc::EOPNOTSUPP), Some(libc::EINVAL)].contains(&error.number())),
            }
        }
    }

    #[test]
    fn a_file_that_is_none_fails_each_run() {
        let Some(mut ring) = ring(2) else { return };
        let mut answers = [[0_u8; 8]; 3];
        let mut asked: Vec<Asked<'_>> =
            answers.iter_mut().map(|answers| Asked { ops: &[], answers, is_atomic: true }).collect();
        let all = ring.run_by(-1, &mut asked).expect("they are handed over");
        assert_eq!(
            all.iter().filter_map(|run| run.as_ref().err()?.number()).collect::<Vec<_>>(),
            [libc::EBADF; 3]
        );
    }
}
