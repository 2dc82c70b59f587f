//! Events of stores on disk for programs that use `tracing`.

use forrest_engine::{Event, Listener, Options};
use tracing::{debug, error, info, warn};

/// The options with a listener that reports each event to `tracing`, and then to the program's own one.
pub(crate) fn traced(options: &Options) -> Options {
    let own = options.listener.clone();
    let listener = Listener::new(move |event| {
        record(event);
        if let Some(own) = &own {
            own.tell(event);
        }
    });
    Options { listener: Some(listener), ..options.clone() }
}

fn record(event: &Event) {
    match event {
        Event::Began(job) => debug!(target: "forrest", job = job.as_str(), "{event}"),
        Event::Ended { job, took, bytes, error: None } => {
            let seconds = took.as_secs_f64();
            info!(target: "forrest", job = job.as_str(), seconds, bytes, "{event}");
        }
        Event::Ended { job, took, bytes, error: Some(error) } => {
            let seconds = took.as_secs_f64();
            error!(target: "forrest", job = job.as_str(), seconds, bytes, error = error.as_str(), "{event}");
        }
        Event::Stalled { took } => warn!(target: "forrest", seconds = took.as_secs_f64(), "{event}"),
        Event::Stopped { error } => error!(target: "forrest", error = error.as_str(), "{event}"),
        Event::Full => error!(target: "forrest", "{event}"),
        _ => info!(target: "forrest", "{event}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Db, Event};
    use std::fmt::Debug;
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};
    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Metadata, Subscriber};

    /// The fields of the events of this crate, with their levels.
    #[derive(Clone, Default)]
    struct Seen(Arc<Mutex<Vec<String>>>);

    impl Visit for Seen {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            self.0.lock().unwrap().push(format!("{field}={value:?}"));
        }
    }

    impl Subscriber for Seen {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.target() == "forrest"
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &tracing::Event<'_>) {
            self.0.lock().unwrap().push(event.metadata().level().to_string());
            event.record(&mut self.clone());
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn events_go_to_tracing_and_to_the_listener() {
        let directory = tempfile::tempdir().unwrap();
        let (seen, own) = (Seen::default(), Arc::new(Mutex::new(0)));
        // The background thread reports events too.
        tracing::subscriber::set_global_default(seen.clone()).unwrap();
        let count = own.clone();
        let listener = move |_: &Event| *count.lock().unwrap() += 1;
        let db = Db::builder().listener(listener).open(directory.path().to_str().unwrap()).unwrap();
        db.set("oak", "Quercus").unwrap();
        db.flush().unwrap();
        let begin = Instant::now();
        while *own.lock().unwrap() < 2 {
            assert!(begin.elapsed() < Duration::from_secs(20), "no events");
            std::thread::yield_now();
        }
        let seen = seen.0.lock().unwrap().join(" ");
        assert!(seen.contains("DEBUG message=flush began job=\"flush\""), "{seen}");
        assert!(seen.contains("INFO message=flush ended") && seen.contains(" bytes="), "{seen}");
    }
}
