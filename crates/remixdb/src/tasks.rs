//! [`Tasks`]: what the holder of the manifest does now, what it has done, and the events for the listener.
//!
//! Writers may have to wait for a task, and an error says for which. Events are queued where they happen, where locks
//! may be held. A thread that holds none reports them later ([`Tasks::tell`]). The queue is limited; what finds no
//! place is counted.

use forrest_base::lock;
use forrest_engine::{Error, Event, Job, Listener, Result, Waits, Work};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Maximum number of events that wait to be reported.
const EVENTS_MOST: usize = 1024;

/// See the head of the file.
#[derive(Default)]
pub(crate) struct Tasks {
    now: Mutex<Option<(Job, Instant)>>,
    /// Bytes that were written to tables, and not yet counted as those of a job.
    bytes: AtomicU64,
    done: Mutex<Done>,
    listener: Option<Listener>,
    events: Mutex<VecDeque<Event>>,
    /// Held by the thread that tells.
    telling: Mutex<()>,
    lost: AtomicU64,
    pub(crate) paced: Waited,
    pub(crate) stalls: Waited,
}

/// What was done: the jobs by their number, and bytes of no job.
#[derive(Default)]
struct Done {
    jobs: [Work; Job::ALL.len()],
    other_bytes: u64,
}

/// Waits of writers.
#[derive(Default)]
pub(crate) struct Waited {
    count: AtomicU64,
    nanos: AtomicU64,
}

impl Waited {
    /// Counts a wait.
    pub(crate) fn add(&self, took: Duration) {
        // ORDERING: sums that no other data depends on.
        self.count.fetch_add(1, Relaxed);
        self.nanos.fetch_add(took.as_nanos() as u64, Relaxed);
    }

    pub(crate) fn sum(&self) -> Waits {
        let mut waits = Waits::default();
        (waits.count, waits.took) =
            (self.count.load(Relaxed), Duration::from_nanos(self.nanos.load(Relaxed)));
        waits
    }
}

/// A task under way. If this is dropped, it was given up, and is not counted.
pub(crate) struct Task<'t> {
    tasks: &'t Tasks,
    job: Job,
    begin: Instant,
}

impl Tasks {
    pub(crate) fn new(listener: Option<Listener>) -> Tasks {
        Tasks { listener, ..Tasks::default() }
    }

    /// Begins a task. There is one at a time, that of the holder of the manifest.
    pub(crate) fn begin(&self, job: Job) -> Task<'_> {
        let begin = Instant::now();
        *lock(&self.now) = Some((job, begin));
        self.take_other_bytes(&mut lock(&self.done));
        self.note(|| Event::Began(job));
        Task { tasks: self, job, begin }
    }

    /// Counts bytes that are written to a table.
    pub(crate) fn count(&self, bytes: usize) {
        // ORDERING: a sum that no other data depends on.
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// The task under way, and for how long it is.
    pub(crate) fn now(&self) -> Option<(Job, Duration)> {
        lock(&self.now).map(|(job, since)| (job, since.elapsed()))
    }

    fn take_other_bytes(&self, done: &mut Done) {
        done.other_bytes += self.bytes.swap(0, Relaxed);
    }

    /// The work of each job so far, and bytes of tables that no job has written.
    pub(crate) fn done(&self) -> ([Work; Job::ALL.len()], u64) {
        let mut done = lock(&self.done);
        if self.now().is_none() {
            self.take_other_bytes(&mut done);
        }
        (done.jobs, done.other_bytes)
    }

    /// Number of events that were lost.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Queues an event. The caller may hold locks.
    pub(crate) fn note(&self, event: impl FnOnce() -> Event) {
        if self.listener.is_none() {
            return;
        }
        let mut events = lock(&self.events);
        if events.len() < EVENTS_MOST {
            events.push_back(event());
        } else {
            self.lost.fetch_add(1, Relaxed);
        }
    }

    /// Tells the listener what waits, in order, unless another thread does so. The caller holds no locks of the store.
    pub(crate) fn tell(&self) {
        let Some(listener) = &self.listener else { return };
        let Ok(_telling) = self.telling.try_lock() else { return };
        // The guard of the queue is dropped before the call.
        let next = || lock(&self.events).pop_front();
        while let Some(event) = next() {
            // A panic was reported when it happened, and must not end the background thread.
            let _ = catch_unwind(AssertUnwindSafe(|| listener.tell(&event)));
        }
    }
}

impl Task<'_> {
    /// Counts the task as done or failed, and passes the result on.
    pub(crate) fn ends<R>(self, result: Result<R>) -> Result<R> {
        self.count(result.as_ref().err());
        result
    }

    /// Counts the task as failed, and passes the error on.
    pub(crate) fn fails(self, error: Error) -> Error {
        self.count(Some(&error));
        error
    }

    fn count(&self, error: Option<&Error>) {
        let Task { tasks, job, begin } = self;
        let (took, bytes) = (begin.elapsed(), tasks.bytes.swap(0, Relaxed));
        let at = Job::ALL.iter().position(|one| one == job).expect("it is one of all");
        {
            let work = &mut lock(&tasks.done).jobs[at];
            *if error.is_none() { &mut work.count } else { &mut work.failed } += 1;
            work.bytes += bytes;
            work.took += took;
        }
        tasks.note(|| Event::Ended { job: *job, took, bytes, error: error.map(Error::to_string) });
    }
}

impl Drop for Task<'_> {
    fn drop(&mut self) {
        *lock(&self.tasks.now) = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Tasks, and what was reported to their listener.
    fn listened() -> (Tasks, Arc<Mutex<Vec<Event>>>) {
        let reported: Arc<Mutex<Vec<Event>>> = Arc::default();
        let list = reported.clone();
        (Tasks::new(Some(Listener::new(move |event| lock(&list).push(event.clone())))), reported)
    }

    #[test]
    fn jobs_are_counted_and_reported_in_order() {
        let (tasks, reported) = listened();
        tasks.count(5);
        let flush = tasks.begin(Job::Flush);
        assert_eq!(tasks.now().map(|(job, _)| job), Some(Job::Flush));
        tasks.count(100);
        flush.ends(Ok(())).expect("it is passed on");
        let merge = tasks.begin(Job::Merge);
        tasks.count(7);
        merge.ends(Err::<(), _>(Error::invalid("no"))).expect_err("it is passed on");
        drop(tasks.begin(Job::Ingest));
        assert!(lock(&reported).is_empty(), "nothing is reported where locks may be held");
        tasks.tell();
        let (jobs, other) = tasks.done();
        let of = |job: usize| (jobs[job].count, jobs[job].failed, jobs[job].bytes);
        assert_eq!((of(0), of(1), of(2), other), ((1, 0, 100), (0, 1, 7), (0, 0, 0), 5));
        let reported = lock(&reported);
        let (began, ended): (Vec<_>, Vec<_>) =
            reported.iter().partition(|event| matches!(event, Event::Began(_)));
        assert_eq!((began.len(), ended.len()), (3, 2));
        assert!(matches!(ended[0], Event::Ended { job: Job::Flush, bytes: 100, error: None, .. }));
        assert!(matches!(ended[1], Event::Ended { job: Job::Merge, error: Some(_), .. }));
    }

    #[test]
    fn events_have_a_limit_and_a_panic_ends_nothing() {
        let (tasks, reported) = listened();
        (0..EVENTS_MOST + 3).for_each(|_| tasks.note(|| Event::Full));
        tasks.tell();
        assert_eq!((lock(&reported).len(), tasks.lost()), (EVENTS_MOST, 3));
        let tasks = Tasks::new(Some(Listener::new(|_| panic!("as a listener must not"))));
        tasks.note(|| Event::Full);
        tasks.tell();
    }

    #[test]
    fn nobody_listens() {
        let tasks = Tasks::default();
        tasks.note(|| panic!("no event is made"));
        tasks.tell();
    }
}
