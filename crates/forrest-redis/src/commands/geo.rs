//! Places: members of sorted sets whose scores are the numbers of `geohash.rs`.

use super::members::Args;
use super::scored::{self, Scored};
use super::zsets::{self, Conditions};
use super::{Context, float, integer, is};
use crate::data::Found;
use crate::fault::{Done, Fault, SYNTAX};
use crate::geohash::{Area, Place, Shape};
use crate::keys::Kind;
use std::ops::ControlFlow;

/// The metres of a unit.
fn unit(word: &[u8]) -> Result<f64, Fault> {
    let units = [("M", 1.0), ("KM", 1000.0), ("FT", 0.3048), ("MI", 1609.34)];
    let unit = units.into_iter().find(|(name, _)| is(word, name)).map(|(_, metres)| metres);
    unit.ok_or(Fault::new("ERR unsupported unit provided. please use M, KM, FT, MI"))
}

fn place(longitude: &[u8], latitude: &[u8]) -> Result<Place, Fault> {
    let (longitude, latitude) = (float(longitude)?, float(latitude)?);
    Place::new(longitude, latitude).ok_or_else(|| {
        Fault::new(format!("ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}"))
    })
}

/// A coordinate as text: with up to 17 digits after the point.
fn coordinate_text(coordinate: f64) -> String {
    let text = format!("{coordinate:.17}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn reply_place(context: &mut Context, place: Place) {
    context.reply.array(2);
    for coordinate in [place.longitude, place.latitude] {
        let text = coordinate_text(coordinate);
        if context.reply.is_3 {
            context.reply.raw(format!(",{text}\r\n").as_bytes());
        } else {
            context.reply.bulk(text.as_bytes());
        }
    }
}

fn reply_distance(context: &mut Context, distance: f64) {
    context.reply.bulk(format!("{distance:.4}").as_bytes());
}

pub(crate) fn geoadd(context: &mut Context, args: &[&[u8]]) -> Done {
    let mut conditions = Conditions::default();
    let mut rest = &args[2..];
    while let Some((word, others)) = rest.split_first() {
        match word {
            word if is(word, "NX") => conditions.only_new = true,
            word if is(word, "XX") => conditions.only_old = true,
            word if is(word, "CH") => conditions.counts_changed = true,
            _ => break,
        }
        rest = others;
    }
    if rest.is_empty() || !rest.len().is_multiple_of(3) || conditions.only_new && conditions.only_old {
        return Err(SYNTAX);
    }
    let scores = rest.chunks_exact(3).map(|item| Ok(place(item[0], item[1])?.number() as f64));
    let scores = scores.collect::<Result<Vec<_>, Fault>>()?;
    let pairs: Vec<&[u8]> = rest.chunks_exact(3).flat_map(|item| [item[0], item[2]]).collect();
    zsets::add(context, args[1], &conditions, &pairs, &scores)
}

/// The place of a member, if there is one.
fn place_of(context: &mut Context, found: Option<&Found>, member: &[u8]) -> Result<Option<Place>, Fault> {
    let score = zsets::score_of(context, found, member)?;
    // A score that is no place becomes one all the same.
    Ok(score.map(|score| Place::of(score as u64)))
}

pub(crate) fn geopos(context: &mut Context, args: &[&[u8]]) -> Done {
    let found = context.look(args[1], Kind::SortedSet)?;
    context.reply.array(args.len() - 2);
    for member in &args[2..] {
        match place_of(context, found.as_ref(), member)? {
            Some(place) => reply_place(context, place),
            None => context.reply.null_array(),
        }
    }
    Ok(())
}

pub(crate) fn geohash(context: &mut Context, args: &[&[u8]]) -> Done {
    let found = context.look(args[1], Kind::SortedSet)?;
    context.reply.array(args.len() - 2);
    for member in &args[2..] {
        let letters = place_of(context, found.as_ref(), member)?.map(Place::letters);
        context.reply.bulk_or_null(letters.as_ref().map(|letters| &letters[..]));
    }
    Ok(())
}

pub(crate) fn geodist(context: &mut Context, args: &[&[u8]]) -> Done {
    let unit = match &args[4..] {
        [] => 1.0,
        [word] => unit(word)?,
        _ => return Err(SYNTAX),
    };
    let found = context.look(args[1], Kind::SortedSet)?;
    let from = place_of(context, found.as_ref(), args[2])?;
    let to = place_of(context, found.as_ref(), args[3])?;
    match (from, to) {
        (Some(from), Some(to)) => reply_distance(context, from.distance(to) / unit),
        _ => context.reply.null(),
    }
    Ok(())
}

/// How places are searched.
#[derive(Default)]
struct Search<'a> {
    /// `None` if its member is not there, because its key is not.
    middle: Option<Option<Place>>,
    shape: Option<Shape>,
    /// Metres of the unit of distances.
    unit: f64,
    with_place: bool,
    with_distance: bool,
    with_number: bool,
    count: Option<usize>,
    /// Any places will do, not the nearest.
    takes_any: bool,
    /// From the nearest on, or from the farthest.
    sorts: Option<bool>,
    target: Option<&'a [u8]>,
    /// Distances are stored, not numbers.
    stores_distances: bool,
}

/// What a command takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `GEOSEARCH` and `GEOSEARCHSTORE`.
    New,
    /// `GEORADIUS` and its like, which may store.
    Old,
    /// The same, which may not.
    OldReading,
}

fn number(arg: &[u8], what: &'static str) -> Result<f64, Fault> {
    float(arg).map_err(|_| Fault::new(format!("ERR need numeric {what}")))
}

fn circle(radius: &[u8], word: &[u8]) -> Result<(Shape, f64), Fault> {
    let radius = number(radius, "radius")?;
    if radius < 0.0 {
        return Err(Fault::new("ERR radius cannot be negative"));
    }
    let unit = unit(word)?;
    Ok((Shape::Circle { radius: radius * unit }, unit))
}

fn rectangle(width: &[u8], height: &[u8], word: &[u8]) -> Result<(Shape, f64), Fault> {
    let (width, height) = (number(width, "width")?, number(height, "height")?);
    if width < 0.0 || height < 0.0 {
        return Err(Fault::new("ERR height or width cannot be negative"));
    }
    let unit = unit(word)?;
    Ok((Shape::Box { width: width * unit, height: height * unit }, unit))
}

impl<'a> Search<'a> {
    /// Puts the middle at a member.
    fn begin_at(&mut self, context: &mut Context, found: Option<&Found>, member: &[u8]) -> Done {
        let place = place_of(context, found, member)?;
        if place.is_none() && found.is_some() {
            return Err(Fault::new("ERR could not decode requested zset member"));
        }
        self.middle = Some(place);
        Ok(())
    }

    /// Reads the options.
    fn options(
        &mut self,
        context: &mut Context,
        found: Option<&Found>,
        args: Args<'a, '_>,
        form: Form,
    ) -> Done {
        let is_new = form == Form::New;
        let mut rest = args;
        while let Some((word, after)) = rest.split_first() {
            let used = match (*word, after) {
                (word, _) if is(word, "WITHDIST") => {
                    self.with_distance = true;
                    0
                }
                (word, _) if is(word, "WITHHASH") => {
                    self.with_number = true;
                    0
                }
                (word, _) if is(word, "WITHCOORD") => {
                    self.with_place = true;
                    0
                }
                (word, _) if is(word, "ANY") => {
                    self.takes_any = true;
                    0
                }
                (word, _) if is(word, "ASC") || is(word, "DESC") => {
                    self.sorts = Some(is(word, "ASC"));
                    0
                }
                (word, [count, ..]) if is(word, "COUNT") => {
                    let count = usize::try_from(integer(count)?).ok().filter(|count| *count > 0);
                    self.count = Some(count.ok_or(Fault::new("ERR COUNT must be > 0"))?);
                    1
                }
                (word, [key, ..]) if form == Form::Old && (is(word, "STORE") || is(word, "STOREDIST")) => {
                    (self.target, self.stores_distances) = (Some(*key), is(word, "STOREDIST"));
                    1
                }
                (word, _) if is_new && self.target.is_some() && is(word, "STOREDIST") => {
                    self.stores_distances = true;
                    0
                }
                (word, [member, ..]) if is_new && self.middle.is_none() && is(word, "FROMMEMBER") => {
                    self.begin_at(context, found, member)?;
                    1
                }
                (word, [longitude, latitude, ..])
                    if is_new && self.middle.is_none() && is(word, "FROMLONLAT") =>
                {
                    self.middle = Some(Some(place(longitude, latitude)?));
                    2
                }
                (word, [radius, unit, ..]) if is_new && self.shape.is_none() && is(word, "BYRADIUS") => {
                    let (shape, unit) = circle(radius, unit)?;
                    (self.shape, self.unit) = (Some(shape), unit);
                    2
                }
                (word, [width, height, unit, ..]) if is_new && self.shape.is_none() && is(word, "BYBOX") => {
                    let (shape, unit) = rectangle(width, height, unit)?;
                    (self.shape, self.unit) = (Some(shape), unit);
                    3
                }
                _ => return Err(SYNTAX),
            };
            rest = &after[used..];
        }
        Ok(())
    }

    /// What is searched. `None` if there is nothing.
    fn area(&self, context: &Context, form: Form) -> Result<Option<Area>, Fault> {
        let name = context.client.shared.last_command.get();
        if self.target.is_some() && (self.with_distance || self.with_number || self.with_place) {
            let what = if form == Form::New { "GEOSEARCHSTORE" } else { "STORE option in GEORADIUS" };
            let why = "is not compatible with WITHDIST, WITHHASH and WITHCOORD options";
            return Err(Fault::new(format!("ERR {what} {why}")));
        }
        let exactly =
            |what: &str| Fault::new(format!("ERR exactly one of {what} can be specified for {name}"));
        let middle = self.middle.ok_or_else(|| exactly("FROMMEMBER or FROMLONLAT"))?;
        let shape = self.shape.ok_or_else(|| exactly("BYRADIUS and BYBOX"))?;
        if self.takes_any && self.count.is_none() {
            return Err(Fault::new("ERR the ANY argument requires COUNT argument"));
        }
        Ok(middle.map(|middle| Area { middle, shape }))
    }

    /// The members within an area, with their distances and numbers.
    fn run(&self, context: &mut Context, found: &Found, area: &Area) -> Result<Vec<Hit>, Fault> {
        let most = context.server.options.limits.reply_bytes;
        let enough = self.count.filter(|_| self.takes_any).unwrap_or(usize::MAX);
        let (mut hits, mut bytes) = (Vec::new(), 0);
        for range in area.ranges() {
            if hits.len() >= enough || bytes > most {
                break;
            }
            scored::each_between(
                context,
                &found.record,
                (range.start as f64, range.end as f64),
                |member, score| {
                    if let Some(distance) = area.distance(Place::of(score as u64)) {
                        bytes += size_of::<Hit>() + member.len();
                        hits.push(Hit { member: member.to_vec(), distance, score });
                    }
                    if hits.len() >= enough || bytes > most {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                },
            )?;
        }
        if bytes > most {
            return Err(Fault::new(format!(
                "ERR the area has more than {most} bytes of members (--reply-bytes)"
            )));
        }
        let nearest_first = self.sorts.or(self.count.filter(|_| !self.takes_any).map(|_| true));
        match nearest_first {
            Some(true) => hits.sort_by(|a, b| a.distance.total_cmp(&b.distance)),
            Some(false) => hits.sort_by(|a, b| b.distance.total_cmp(&a.distance)),
            None => {}
        }
        hits.truncate(self.count.unwrap_or(usize::MAX));
        Ok(hits)
    }

    fn reply(&self, context: &mut Context, hits: &[Hit]) {
        let extra = [self.with_distance, self.with_number, self.with_place];
        let extra = extra.into_iter().filter(|with| *with).count();
        context.reply.array(hits.len());
        for hit in hits {
            if extra > 0 {
                context.reply.array(1 + extra);
            }
            context.reply.bulk(&hit.member);
            if self.with_distance {
                reply_distance(context, hit.distance / self.unit);
            }
            if self.with_number {
                context.reply.integer(hit.score as i64);
            }
            if self.with_place {
                reply_place(context, Place::of(hit.score as u64));
            }
        }
    }

    /// Searches, and replies or stores.
    fn end(&self, context: &mut Context, found: Option<&Found>, form: Form) -> Done {
        let area = self.area(context, form)?;
        let hits = match (found, area) {
            (Some(found), Some(area)) => self.run(context, found, &area)?,
            _ => Vec::new(),
        };
        let Some(target) = self.target else {
            self.reply(context, &hits);
            return Ok(());
        };
        let score = |hit: &Hit| if self.stores_distances { hit.distance / self.unit } else { hit.score };
        let members: Vec<Scored> = hits.iter().map(|hit| (hit.member.clone(), score(hit))).collect();
        zsets::store(context, target, &members)
    }
}

/// A member that was found.
struct Hit {
    member: Vec<u8>,
    distance: f64,
    score: f64,
}

/// `GEORADIUS key longitude latitude radius unit ...`, or with a member in place of the coordinates.
fn old_search(context: &mut Context, args: &[&[u8]], form: Form, by_member: bool) -> Done {
    let found = context.look(args[1], Kind::SortedSet)?;
    let mut search = Search::default();
    let rest = if by_member {
        search.begin_at(context, found.as_ref(), args[2])?;
        &args[3..]
    } else {
        search.middle = Some(Some(place(args[2], args[3])?));
        &args[4..]
    };
    let (shape, unit) = circle(rest[0], rest[1])?;
    (search.shape, search.unit) = (Some(shape), unit);
    search.options(context, found.as_ref(), &rest[2..], form)?;
    search.end(context, found.as_ref(), form)
}

pub(crate) fn georadius(context: &mut Context, args: &[&[u8]]) -> Done {
    old_search(context, args, Form::Old, false)
}

pub(crate) fn georadius_ro(context: &mut Context, args: &[&[u8]]) -> Done {
    old_search(context, args, Form::OldReading, false)
}

pub(crate) fn georadiusbymember(context: &mut Context, args: &[&[u8]]) -> Done {
    old_search(context, args, Form::Old, true)
}

pub(crate) fn georadiusbymember_ro(context: &mut Context, args: &[&[u8]]) -> Done {
    old_search(context, args, Form::OldReading, true)
}

fn search(context: &mut Context, key: &[u8], args: &[&[u8]], target: Option<&[u8]>) -> Done {
    let found = context.look(key, Kind::SortedSet)?;
    let mut search = Search { target, ..Search::default() };
    search.options(context, found.as_ref(), args, Form::New)?;
    search.end(context, found.as_ref(), Form::New)
}

pub(crate) fn geosearch(context: &mut Context, args: &[&[u8]]) -> Done {
    search(context, args[1], &args[2..], None)
}

pub(crate) fn geosearchstore(context: &mut Context, args: &[&[u8]]) -> Done {
    search(context, args[2], &args[3..], Some(args[1]))
}
