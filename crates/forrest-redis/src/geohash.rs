//! Places on the earth as numbers of 52 bits, and which of them an area may have.
//!
//! The format is that of Redis: longitude and latitude are each cut into 2^26 equal steps, and the bits of the two step
//! numbers alternate, that of the longitude first. So places in one cell of a grid whose lines are a power of two have
//! numbers in one range. A place is read back as the middle of its smallest cell, which is at most 0.6 m wide. One
//! at the greatest longitude or latitude belongs to the last cell; Redis gives it a number of more bits, which its
//! searches do not find.

use std::ops::Range;

/// Steps of a coordinate, as bits.
const STEP_BITS: u32 = 26;
/// The parts of the earth that have numbers: all longitudes, and the latitudes that a map in Mercator's projection has.
pub(crate) const LONGITUDE_MAX: f64 = 180.0;
pub(crate) const LATITUDE_MAX: f64 = 85.051_128_78;
/// The latitudes of the usual geohash.
const USUAL_LATITUDE_MAX: f64 = 90.0;
/// Its letters.
const LETTERS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
/// Metres.
const EARTH_RADIUS: f64 = 6_372_797.560_856;
/// What a bound is moved outwards by, in degrees, against rounding.
const MARGIN: f64 = 1e-9;

/// A place, in degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Place {
    pub(crate) longitude: f64,
    pub(crate) latitude: f64,
}

/// The number of the cell that has a coordinate, of 2^bits cells between `-most` and `most`.
fn cell(coordinate: f64, most: f64, bits: u32) -> u64 {
    let cells = 1_u64 << bits;
    let at = (coordinate + most) / (2.0 * most) * cells as f64;
    // A float that is too large or negative becomes the nearest integer.
    (at as u64).min(cells - 1)
}

/// Puts a zero before each bit.
fn spread(number: u64) -> u64 {
    (0..STEP_BITS).fold(0, |spread, bit| spread | (number >> bit & 1) << (2 * bit))
}

fn gather(number: u64) -> u64 {
    (0..STEP_BITS).fold(0, |gathered, bit| gathered | (number >> (2 * bit) & 1) << bit)
}

/// The bits of two cells in turn.
fn interleave(longitude: u64, latitude: u64) -> u64 {
    spread(longitude) << 1 | spread(latitude)
}

impl Place {
    /// A place that has a number.
    pub(crate) fn new(longitude: f64, latitude: f64) -> Option<Place> {
        let is_valid = longitude.abs() <= LONGITUDE_MAX && latitude.abs() <= LATITUDE_MAX;
        is_valid.then_some(Place { longitude, latitude })
    }

    pub(crate) fn number(self) -> u64 {
        self.number_within(LATITUDE_MAX)
    }

    fn number_within(self, latitude_max: f64) -> u64 {
        let longitude = cell(self.longitude, LONGITUDE_MAX, STEP_BITS);
        interleave(longitude, cell(self.latitude, latitude_max, STEP_BITS))
    }

    /// The place of a number. Bits above the 52 are left out.
    pub(crate) fn of(number: u64) -> Place {
        let middle = |step: u64, most: f64| {
            let steps = (1_u64 << STEP_BITS) as f64;
            let edge = |step: u64| -most + step as f64 / steps * (2.0 * most);
            let middle: f64 = (edge(step) + edge(step + 1)) / 2.0;
            middle.clamp(-most, most)
        };
        Place {
            longitude: middle(gather(number >> 1), LONGITUDE_MAX),
            latitude: middle(gather(number), LATITUDE_MAX),
        }
    }

    /// The usual geohash, of 11 letters. The last one would need more bits, and is always the first of the alphabet.
    pub(crate) fn letters(self) -> [u8; 11] {
        let number = self.number_within(USUAL_LATITUDE_MAX);
        std::array::from_fn(|at| match at {
            10 => LETTERS[0],
            at => LETTERS[(number >> (2 * STEP_BITS as usize - 5 * (at + 1)) & 31) as usize],
        })
    }

    /// Metres to another place, on a sphere.
    pub(crate) fn distance(self, other: Place) -> f64 {
        let (a, b) = (self.latitude.to_radians(), other.latitude.to_radians());
        let u = ((b - a) / 2.0).sin();
        let v = ((other.longitude.to_radians() - self.longitude.to_radians()) / 2.0).sin();
        if v == 0.0 {
            return EARTH_RADIUS * (b - a).abs();
        }
        2.0 * EARTH_RADIUS * (u * u + a.cos() * b.cos() * v * v).sqrt().min(1.0).asin()
    }
}

/// What lies around a place, in metres.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Shape {
    Circle { radius: f64 },
    Box { width: f64, height: f64 },
}

/// An area.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Area {
    pub(crate) middle: Place,
    pub(crate) shape: Shape,
}

impl Area {
    /// The distance of a place from the middle, if the area has it.
    pub(crate) fn distance(&self, place: Place) -> Option<f64> {
        let distance = self.middle.distance(place);
        let is_within = match self.shape {
            Shape::Circle { radius } => distance <= radius,
            Shape::Box { width, height } => {
                let on_its_latitude = Place { longitude: self.middle.longitude, ..place };
                let on_its_longitude = Place { latitude: self.middle.latitude, ..self.middle };
                on_its_longitude.distance(on_its_latitude) <= height / 2.0
                    && on_its_latitude.distance(place) <= width / 2.0
            }
        };
        is_within.then_some(distance)
    }

    /// How far the area goes from its middle, in degrees of longitude and latitude.
    fn extent(&self) -> (f64, f64) {
        let middle = self.middle.latitude.to_radians();
        let (half_height, sine) = match self.shape {
            Shape::Circle { radius } => {
                (radius, (radius / EARTH_RADIUS).min(std::f64::consts::FRAC_PI_2).sin())
            }
            Shape::Box { width, height } => {
                (height / 2.0, (width / 4.0 / EARTH_RADIUS).min(std::f64::consts::FRAC_PI_2).sin())
            }
        };
        let up = half_height / EARTH_RADIUS;
        // Degrees of longitude are shortest at the latitude that is nearest to a pole.
        let nearest = (middle.abs() + up).min(std::f64::consts::FRAC_PI_2);
        let across = match self.shape {
            Shape::Circle { .. } if nearest >= std::f64::consts::FRAC_PI_2 => 1.0,
            Shape::Circle { .. } => sine / middle.cos(),
            Shape::Box { .. } => sine / nearest.cos(),
        };
        let across = match self.shape {
            _ if across.is_nan() || across >= 1.0 => 180.0,
            Shape::Circle { .. } => across.asin().to_degrees(),
            Shape::Box { .. } => 2.0 * across.asin().to_degrees(),
        };
        ((across + MARGIN).min(180.0), up.to_degrees() + MARGIN)
    }

    /// Ranges of numbers that have all places of the area, and others: at most nine cells of a grid that is as coarse
    /// as the area is large. That of the middle is the first, and none is there twice.
    pub(crate) fn ranges(&self) -> Vec<Range<u64>> {
        let (across, up) = self.extent();
        let is_coarse = |bits: &u32| {
            let cells = (1_u64 << bits) as f64;
            2.0 * LONGITUDE_MAX / cells >= across && 2.0 * LATITUDE_MAX / cells >= up
        };
        let bits = (1..=STEP_BITS).rev().find(is_coarse).unwrap_or(0);
        let row = |latitude: f64| cell(latitude, LATITUDE_MAX, bits);
        let column = |longitude: f64| {
            let longitude = match longitude {
                longitude if longitude < -LONGITUDE_MAX => longitude + 2.0 * LONGITUDE_MAX,
                longitude if longitude >= LONGITUDE_MAX => longitude - 2.0 * LONGITUDE_MAX,
                longitude => longitude,
            };
            cell(longitude, LONGITUDE_MAX, bits)
        };
        let Place { longitude, latitude } = self.middle;
        let shift = 2 * (STEP_BITS - bits);
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for latitude in [latitude, latitude - up, latitude + up] {
            for longitude in [longitude, longitude - across, longitude + across] {
                let number = interleave(column(longitude), row(latitude));
                let range = number << shift..(number + 1) << shift;
                if !ranges.contains(&range) {
                    ranges.push(range);
                }
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forrest_base::random::Random;

    #[test]
    fn numbers_and_letters_are_those_of_redis() {
        for (longitude, latitude, number, letters) in [
            (13.361389, 38.115556, 3_479_099_956_230_698, "sqc8b49rny0"),
            (15.087269, 37.502669, 3_479_447_370_796_909, "sqdtr74hyu0"),
            (-180.0, -LATITUDE_MAX, 0, "00bh0hbj200"),
            // Redis has more bits for this one.
            (180.0, LATITUDE_MAX, (1 << 52) - 1, "zzzzzzzzzz0"),
        ] {
            let place = Place::new(longitude, latitude).unwrap();
            assert_eq!(place.number(), number);
            let read = Place::of(number);
            assert!(place.distance(read) < 1.0, "{read:?}");
            assert_eq!(read.number(), number);
            if number >> 52 == 0 && latitude < 80.0 {
                assert_eq!(std::str::from_utf8(&read.letters()).unwrap(), letters);
            }
        }
        assert_eq!(Place::new(180.1, 0.0), None);
        assert_eq!(Place::new(0.0, 85.06), None);
        assert_eq!(Place::new(f64::NAN, 0.0), None);
    }

    /// No place within an area is outside of its ranges, also around the poles and where longitudes begin.
    #[test]
    fn ranges_have_all_places_of_an_area() {
        let seed = 5;
        let mut random = Random(seed);
        let mut within = 0;
        for round in 0..3000 {
            let mut unit = || random.below(1 << 40) as f64 / (1_u64 << 40) as f64;
            let mut place = || {
                let edge = |unit: f64| match unit {
                    0.0..0.05 => 0.0,
                    0.05..0.1 => 1.0,
                    0.1..0.2 => unit / 100.0,
                    _ => unit,
                };
                let (longitude, latitude) = (edge(unit()) * 360.0 - 180.0, edge(unit()) * 2.0 - 1.0);
                Place::new(longitude, latitude * LATITUDE_MAX).unwrap()
            };
            let middle = place();
            let others: Vec<Place> = (0..20).map(|_| place()).collect();
            let size = 10_f64.powf(unit() * 8.0);
            let shape = match round % 2 {
                0 => Shape::Circle { radius: size },
                _ => Shape::Box { width: size, height: size * unit() * 3.0 },
            };
            let area = Area { middle, shape };
            let ranges = area.ranges();
            // The two ends of the longitudes are one.
            let is_end = middle.longitude == LONGITUDE_MAX;
            assert!(is_end || ranges[0].contains(&middle.number()), "{area:?}");
            assert!(ranges.len() <= 9);
            // Some far away, and some near.
            let near = others.iter().map(|other| {
                let part = size / EARTH_RADIUS * 2.0;
                let latitude = middle.latitude + (other.latitude - middle.latitude) * part;
                let longitude = middle.longitude + (other.longitude - middle.longitude) * part;
                let longitude = (longitude + 540.0).rem_euclid(360.0) - 180.0;
                Place { longitude, latitude: latitude.clamp(-LATITUDE_MAX, LATITUDE_MAX) }
            });
            for other in others.iter().copied().chain(near) {
                let stored = Place::of(other.number());
                if area.distance(stored).is_some() {
                    within += 1;
                    let is_there = ranges.iter().any(|range| range.contains(&stored.number()));
                    assert!(is_there, "seed {seed}, round {round}, {area:?} has {stored:?}");
                }
            }
        }
        assert!(within > 10_000, "{within}");
    }
}
