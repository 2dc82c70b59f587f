//! The part of the tour that a store on disk has more: where it is, and that it is the same when it is opened again.

use super::{Tour, keyspaces};
use crate::codec::text;
use crate::failure::Failure;
use crate::term::{self, Style};
use std::time::Instant;

/// Keys, and bytes of keys and values, by name of the keyspace.
type Payloads = [(String, [u64; 3])];

impl Tour<'_> {
    /// Says where the store is.
    pub(super) fn tell_where(&mut self) -> Result<(), Failure> {
        if self.session.home.directory().is_none() {
            return self.dim("the store is in memory, and goes with this process");
        }
        let url = text::escape(self.session.home.url.as_bytes());
        let fate = if self.session.home.is_temporary() { "and goes afterwards" } else { "and stays" };
        let room = self.term.columns.saturating_sub(40);
        let url = self.term.fit(&url, room).into_owned();
        self.dim(&format!("the store is on disk, in {url}, {fate}"))
    }

    /// Closes the store, opens it, and counts again.
    pub(super) fn reopen(&mut self, before: &Payloads) -> Result<(), Failure> {
        self.heading(format_args!("The store closed, and opened again"))?;
        let synced = Instant::now();
        self.db.sync()?;
        let synced = synced.elapsed();
        self.let_go()?;
        let [closed, opened] = self.session.reopen()?;
        self.db = self.session.db.clone();
        [self.files, self.by_time, self.extension_files, self.extension_bytes] = keyspaces(&self.db)?;
        let [synced, closed, opened] =
            [synced, closed, opened].map(|took| term::span(took.as_nanos() as u64));
        self.say(format_args!("   synced in {synced}, closed in {closed}, opened in {opened}"))?;
        let after = self.payloads()?;
        if let Some((was, is)) = before.iter().zip(&after).find(|(was, is)| was != is) {
            return Err(Failure::Wrong(format!(
                "opened again, keyspace {} has {} keys, and had {}",
                is.0, is.1[0], was.1[0]
            )));
        }
        let keys = term::plural(after.iter().map(|(_, [keys, ..])| keys).sum(), "key", "keys");
        let bytes = term::size(after.iter().map(|(_, [_, keys, values])| keys + values).sum());
        let same = self.term.paint(Style::Green, "the same");
        self.say(format_args!("   {same}: {keys} and {bytes} in {} keyspaces", after.len()))?;
        let (before, _) = self.session.home.files()?.unwrap_or_default();
        let start = Instant::now();
        self.db.compact()?;
        let took = term::span(start.elapsed().as_nanos() as u64);
        let (after, _) = self.session.home.files()?.unwrap_or_default();
        let (before, after) = (term::size(before), term::size(after));
        self.say(format_args!("   compacted in {took}: {before} of files became {after}"))?;
        self.dim("opening reads what is in no table yet: the log, with all that was timed")
    }

    /// Gives all handles to the store back but those of the session, which gives its own back when it reopens.
    fn let_go(&mut self) -> Result<(), Failure> {
        let nothing = forrest::Db::open(crate::home::MEMORY)?;
        [self.files, self.by_time, self.extension_files, self.extension_bytes] = keyspaces(&nothing)?;
        self.db = nothing;
        Ok(())
    }
}
