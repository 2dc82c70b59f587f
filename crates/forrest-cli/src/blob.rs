//! `blob`: values of any length, from files and to files, in a keyspace of their own.

use crate::args::{BlobCommand, BlobGetArgs, BlobPutArgs};
use crate::codec::Shown;
use crate::failure::Failure;
use crate::interrupt::{self, Patient};
use crate::progress::Bar;
use crate::session::{Answer, Session, no_keyspace};
use forrest::{Blobs, Error};
use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// The keyspace, unless `--keyspace` names another one.
const KEYSPACE: &str = "blobs";

/// Bytes that are read of a file at once.
const CHUNK_BYTES: usize = 256 << 10;

/// Runs a command on blobs.
pub(crate) fn run(session: &mut Session, command: &BlobCommand) -> Result<Answer, Failure> {
    if session.batch.is_some() {
        return Err(Failure::usage("blobs are not part of a batch; end the batch first"));
    }
    let name = if session.space_is_chosen { session.space.name().to_owned() } else { KEYSPACE.to_owned() };
    let reads = matches!(command, BlobCommand::Get(_) | BlobCommand::List(_));
    if reads && !session.db.keyspaces()?.contains(&name) {
        return Err(no_keyspace(&name, &session.home));
    }
    let blobs = session.db.blobs(&name)?;
    match command {
        BlobCommand::Put(args) => put(session, &blobs, args),
        BlobCommand::Get(args) => get(session, &blobs, args),
        BlobCommand::List(bounds) => {
            for entry in blobs.range(session.range(bounds)?) {
                let (key, bytes) = entry?;
                let mut out = Vec::new();
                session.format.write_pair(None, &key, Shown::Integer(bytes.cast_signed()), &mut out);
                session.write(&out)?;
            }
            Ok(Answer::Done)
        }
        BlobCommand::Delete(args) => {
            let mut answer = Answer::Done;
            for word in &args.keys {
                let key = session.key(word)?;
                if blobs.delete(&key)? {
                    session.changed();
                } else {
                    session.not_found(&key);
                    answer = Answer::NotFound;
                }
            }
            Ok(answer)
        }
    }
}

fn put(session: &mut Session, blobs: &Blobs, args: &BlobPutArgs) -> Result<Answer, Failure> {
    let key = session.key(&args.key)?;
    let what = || format!("cannot read {}", args.file.display());
    let (mut source, whole): (Box<dyn Read>, u64) = if args.file == Path::new("-") {
        (Box::new(session.take_stdin()?), 0)
    } else {
        let file = interrupt::open(&args.file).map_err(|error| Failure::io(what(), error))?;
        let whole = file.metadata().map_or(0, |file| file.len());
        (Box::new(Patient(file)), whole)
    };
    let progress = Bar::new(&session.term, session.quiet, whole);
    let mut writer = blobs.writer(&key)?;
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        interrupt::check()?;
        let len = match source.read(&mut chunk) {
            Ok(0) => break,
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Failure::io(what(), error)),
        };
        writer.write_all(&chunk[..len]).map_err(Error::of_stream)?;
        progress.show(writer.written_bytes(), || format!("{} bytes", writer.written_bytes()));
    }
    writer.finish()?;
    session.changed();
    Ok(Answer::Done)
}

fn get(session: &mut Session, blobs: &Blobs, args: &BlobGetArgs) -> Result<Answer, Failure> {
    let key = session.key(&args.key)?;
    let Some(mut blob) = blobs.get(&key)? else {
        session.not_found(&key);
        return Ok(Answer::NotFound);
    };
    let offset = args.offset.min(blob.len());
    let mut left = args.length.unwrap_or(u64::MAX).min(blob.len() - offset);
    blob.seek(SeekFrom::Start(offset)).map_err(Error::of_stream)?;
    let what = || format!("cannot write {}", args.file.display());
    let mut file = match args.file == Path::new("-") {
        true => None,
        false => Some(File::create(&args.file).map_err(|error| Failure::io(what(), error))?),
    };
    let (progress, whole) = (Bar::new(&session.term, session.quiet || file.is_none(), left), left);
    while left > 0 {
        interrupt::check()?;
        let piece = blob.fill_buf().map_err(Error::of_stream)?;
        let len = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        match &mut file {
            Some(file) => file.write_all(&piece[..len]).map_err(|error| Failure::io(what(), error))?,
            None => session.write(&piece[..len])?,
        }
        blob.consume(len);
        left -= len as u64;
        progress.show(whole - left, || format!("{} bytes", whole - left));
    }
    Ok(Answer::Done)
}
