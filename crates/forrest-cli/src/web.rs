//! `web`: a page in the browser to look at a store.

use crate::args::WebArgs;
use crate::failure::Failure;
use crate::home::METRICS_FILE;
use crate::interrupt;
use crate::session::{Answer, Session};
use forrest_web::{Options, Web};
use std::net::Ipv4Addr;
use std::time::Duration;

/// How often Ctrl-C is looked for.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) fn run(session: &mut Session, args: &WebArgs) -> Result<Answer, Failure> {
    let mut options = Options::new().address((Ipv4Addr::LOCALHOST, args.port).into()).name(&session.home.url);
    if let Some(directory) = session.home.directory() {
        options = options.metrics_file(directory.join(METRICS_FILE));
    }
    let cannot = |error| Failure::io(format!("cannot listen on 127.0.0.1:{}", args.port), error);
    let web = Web::bind(session.db.clone(), &options).map_err(cannot)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    session.line(format_args!("{}", web.url()))?;
    session.flush()?;
    session.note(format_args!("those who have the URL can read the store; Ctrl-C ends this"));
    let until = async {
        while interrupt::check().is_ok() {
            tokio::time::sleep(LOOK).await;
        }
    };
    runtime.block_on(web.run(until)).map_err(cannot)?;
    runtime.shutdown_background();
    // It is how this is meant to end.
    interrupt::forget();
    Ok(Answer::Done)
}
