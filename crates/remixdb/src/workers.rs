//! [`Workers`]: the threads that share the background work.
//!
//! The thread that has the work always takes part. Others are started when there are several things to do,
//! and end with them; the cost of that is negligible compared with the work. So an idle store has one thread.
//! By default there are as many threads as processors that the process may use, but at most 4, and they run
//! on all of these. The options set another number or other processors.

use forrest_base::lock;
use forrest_engine::Options;
use forrest_engine::{Error, Result};
use forrest_machine::cpu;
use std::sync::Mutex;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};
use std::thread;

/// Default maximum. More do not help, because they would all write to one device.
const DEFAULT_MOST: usize = 4;

/// How many threads work at once, and where.
pub(crate) struct Workers {
    count: AtomicUsize,
    /// How many more may be started now. Work that runs here may itself be shared. Less than 0 after the maximum was
    /// lowered, until enough of those that run have ended.
    idle: AtomicIsize,
    /// Whether none is ever started.
    is_alone: bool,
    cpus: Vec<usize>,
}

/// An error if the threads cannot run on the processors that the options name.
pub(crate) fn check(options: &Options) -> Result<()> {
    let cpus = &options.worker_cpus;
    if cpus.is_empty() {
        return Ok(());
    }
    let allowed = cpu::allowed()
        .ok_or_else(|| Error::unsupported("worker_cpus: threads cannot be pinned on this system"))?;
    match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        None => Ok(()),
        Some(cpu) => Err(Error::invalid(format!(
            "worker_cpus has {cpu}, and this process may use the processors {allowed:?}"
        ))),
    }
}

impl Workers {
    /// As the options specify.
    pub(crate) fn new(builder: &Options) -> Result<Workers> {
        check(builder)?;
        let cpus = builder.worker_cpus.clone();
        let count = builder.workers.unwrap_or_else(|| {
            let most = if cpus.is_empty() { cpu::parallelism() } else { cpus.len() };
            most.min(DEFAULT_MOST)
        });
        Ok(Workers::of(count, cpus))
    }

    /// Only the thread that has the work, so that the order of execution is known. The work is cut into as
    /// many pieces as the options specify.
    #[cfg(any(test, feature = "simulated"))]
    pub(crate) fn alone(builder: &Options) -> Workers {
        let alone = Workers::of(builder.workers.unwrap_or(1), Vec::new());
        Workers { idle: AtomicIsize::new(0), is_alone: true, ..alone }
    }

    fn of(count: usize, cpus: Vec<usize>) -> Workers {
        let idle = AtomicIsize::new(count as isize - 1);
        Workers { count: AtomicUsize::new(count), idle, is_alone: false, cpus }
    }

    /// Sets the maximum number of concurrent threads. Those that run beyond it finish what they do.
    pub(crate) fn set_count(&self, count: usize) {
        // ORDERING: counters. Each call adds the difference that it made.
        let old = self.count.swap(count, Ordering::Relaxed);
        if !self.is_alone {
            self.idle.fetch_add(count as isize - old as isize, Ordering::Relaxed);
        }
    }

    /// Maximum number of concurrent threads, and so the useful number of pieces.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Moves the current thread to the processors of the workers. `new` has checked that this is possible. If
    /// it no longer is, the thread works where it is.
    pub(crate) fn settle(&self) {
        if !self.cpus.is_empty() {
            let _ = cpu::confine(&self.cpus);
        }
    }

    /// Takes up to `wanted` of the threads that may be started.
    fn take(&self, wanted: usize) -> usize {
        // ORDERING: a counter.
        let taken = |idle: isize| wanted.min(usize::try_from(idle).unwrap_or(0));
        let left = |idle| Some(idle - taken(idle) as isize);
        self.idle.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).map_or(0, taken)
    }

    /// Does all of these, several at once; returns the results in their order.
    ///
    /// # Errors
    /// The first error of any of them. Items that were begun are finished then, and no others are.
    pub(crate) fn each<T: Sync, R: Send>(
        &self,
        items: &[T],
        work: impl Fn(&T) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::with_capacity(items.len()));
        let run = || {
            // ORDERING: a counter; the threads exchange data through the mutex and by joining.
            while let Some((at, item)) =
                Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, items.get(at)?)))
            {
                let result = work(item);
                if result.is_err() {
                    next.store(items.len(), Ordering::Relaxed);
                }
                lock(&done).push((at, result));
            }
        };
        let helpers = self.take(items.len().saturating_sub(1));
        thread::scope(|scope| {
            for _ in 0..helpers {
                let help = || {
                    self.settle();
                    run();
                };
                // If no thread can be started, the existing ones do the work.
                let _ = thread::Builder::new().name("remixdb worker".into()).spawn_scoped(scope, help);
            }
            run();
        });
        self.idle.fetch_add(helpers as isize, Ordering::Relaxed);
        let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        done.sort_unstable_by_key(|(at, _)| *at);
        done.into_iter().map(|(_, result)| result).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forrest_engine::ErrorKind;
    use std::sync::Barrier;

    fn workers(count: usize) -> Workers {
        Workers::of(count, Vec::new())
    }

    #[test]
    fn all_is_done_once_and_told_in_order() {
        let items: Vec<u64> = (0..1000).collect();
        for count in [1, 2, 7] {
            let squares = workers(count).each(&items, |item| Ok(item * item)).unwrap();
            assert!(squares.iter().zip(&items).all(|(square, item)| *square == item * item));
            assert_eq!(squares.len(), items.len());
            assert!(workers(count).each(&items[..0], |item| Ok(*item)).unwrap().is_empty());
        }
    }

    /// Counts the threads that work at once.
    #[derive(Default)]
    struct Working {
        now: AtomicUsize,
        most: AtomicUsize,
    }

    impl Working {
        fn note(&self) -> Result<()> {
            self.most.fetch_max(self.now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            thread::yield_now();
            self.now.fetch_sub(1, Ordering::Relaxed);
            Ok(())
        }

        fn most(&self) -> usize {
            self.most.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn several_work_at_once() {
        let met = Barrier::new(3);
        workers(3).each(&[(); 3], |()| Ok(met.wait().is_leader())).unwrap();
    }

    #[test]
    fn work_within_work_starts_no_more_threads() {
        let workers = workers(3);
        let working = Working::default();
        let numbers: Vec<usize> = (0..50).collect();
        workers.each(&numbers, |_| workers.each(&numbers, |_| working.note())).unwrap();
        assert!(working.most() <= 3);
        assert_eq!(workers.idle.into_inner(), 2, "they were given back");
    }

    #[test]
    fn the_number_changes_while_they_work() {
        let workers = workers(4);
        let working = Working::default();
        let all_run = Barrier::new(4);
        let numbers: Vec<usize> = (0..50).collect();
        workers
            .each(&[(); 4], |()| {
                if all_run.wait().is_leader() {
                    workers.set_count(2);
                }
                all_run.wait();
                // Four run, two more than may: none is started.
                workers.each(&numbers, |_| Ok(()))
            })
            .unwrap();
        assert_eq!((workers.count(), workers.idle.load(Ordering::Relaxed)), (2, 1), "they were given back");
        workers.each(&numbers, |_| working.note()).unwrap();
        assert!(working.most() <= 2);
        workers.set_count(3);
        let met = Barrier::new(3);
        workers.each(&[(); 3], |()| Ok(met.wait().is_leader())).unwrap();
        workers.set_count(1);
        assert_eq!(workers.idle.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_first_failure_ends_it() {
        let items: Vec<u64> = (0..1000).collect();
        for count in [1, 2] {
            let began = AtomicUsize::new(0);
            let failed = workers(count).each(&items, |&item| {
                began.fetch_add(1, Ordering::Relaxed);
                if item == 10 { Err(Error::invalid("ten")) } else { Ok(item) }
            });
            assert_eq!(failed.unwrap_err().kind(), ErrorKind::InvalidArgument);
            // How far another thread gets before it sees the error depends on when it runs.
            assert!(count > 1 || began.into_inner() == 11);
        }
    }

    #[test]
    fn workers_go_where_they_may_only() {
        let Some(allowed) = cpu::allowed() else {
            println!("skipped: this system does not tell which processors a thread may use");
            return;
        };
        let open =
            |cpus: &[usize]| Workers::new(&Options { worker_cpus: cpus.to_vec(), ..Options::default() });
        let workers = open(&allowed[..1]).unwrap();
        let there = thread::spawn(move || {
            workers.settle();
            cpu::allowed()
        });
        assert_eq!(there.join().unwrap().unwrap(), allowed[..1]);
        let missing = (0..).find(|cpu| !allowed.contains(cpu)).unwrap();
        let Err(error) = open(&[allowed[0], missing]) else { panic!("processor {missing} was accepted") };
        assert!(error.to_string().contains(&format!("worker_cpus has {missing}")), "{error}");
    }
}
