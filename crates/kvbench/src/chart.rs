//! Charts as SVG: bars with intervals, lines over a size, points of two figures. Nothing is fetched, nothing moves.

use crate::data::mix;
use crate::html::escape;
use crate::statistics::number;
use std::fmt::Write;

/// Width of every chart: several fit beside each other.
const WIDTH: f64 = 400.0;
/// Of that, what names take at the left.
const NAMES: f64 = 150.0;
/// Of that, what figures take at the right.
const FIGURES: f64 = 60.0;
const BAR: f64 = 16.0;
const STEP: f64 = 22.0;
/// Height of a chart with two axes, and what its labels take.
const HEIGHT: f64 = 260.0;
const MARGIN: f64 = 50.0;

/// The ends of the two axes of such a chart.
const ACROSS: (f64, f64) = (MARGIN + 10.0, WIDTH - 20.0);
const UP: (f64, f64) = (HEIGHT - MARGIN, 16.0);
/// Most marks on an even axis.
const TICKS_MOST: f64 = 8.0;

/// A bar: a name, and the middle, the least and the most of its rounds.
pub(crate) struct Bar<'a> {
    /// Whose it is.
    pub(crate) name: &'a str,
    /// Its length.
    pub(crate) value: f64,
    /// Where its interval begins and ends.
    pub(crate) interval: (f64, f64),
}

/// A point, or several that belong together.
pub(crate) struct Line<'a> {
    /// Whose it is.
    pub(crate) name: &'a str,
    /// Where.
    pub(crate) points: Vec<(f64, f64)>,
}

/// The colour of a name: the same in every chart. Forrest's subjects have a colour that no other subject has.
pub(crate) fn colour(name: &str) -> String {
    if name.starts_with("forrest") {
        return "hsl(145 70% 33%)".to_owned();
    }
    let hash = mix(name.bytes().fold(0, |hash, byte| hash << 8 ^ hash >> 56 ^ u64::from(byte)));
    // All but greens, of three kinds of brightness.
    format!("hsl({} 55% {}%)", (180 + hash % 280) % 360, 35 + hash / 1000 % 3 * 12)
}

/// Bars that differ by more than this factor have a scale of powers of ten: the short ones would be lines.
const EVEN_MOST: f64 = 20.0;
/// Room for the marks of that scale, under the bars.
const MARKS: f64 = 16.0;

/// The scale of bars: from 0, or of powers of ten, which bars cannot begin at 0 of.
fn scale(bars: &[Bar<'_>]) -> Axis {
    let ends = (NAMES, WIDTH - FIGURES);
    let values = bars.iter().flat_map(|bar| [bar.value, bar.interval.0, bar.interval.1]);
    let figures = || bars.iter().map(|bar| bar.value).filter(|value| *value > 0.0);
    let (least, most) = (figures().fold(f64::INFINITY, f64::min), figures().fold(0.0, f64::max));
    match most > EVEN_MOST * least {
        true => Axis::over(values.clone(), ends),
        false => {
            Axis { to: values.fold(f64::MIN_POSITIVE, f64::max), ..Axis::even(std::iter::empty(), ends) }
        }
    }
}

/// Bars, in the order given. Those that differ much are drawn on a scale of powers of ten, with its marks.
pub(crate) fn bars(title: &str, bars: &[Bar<'_>]) -> String {
    let axis = scale(bars);
    let bottom = 8.0 + STEP * bars.len() as f64;
    let mut svg = begin(title, if axis.is_even { bottom } else { bottom + MARKS });
    // Powers of ten alone, as there is little room.
    let is_power = |number: f64| (number.log10() - number.log10().round()).abs() < 1e-9;
    let is_marked = |tick: &f64| !axis.is_even && is_power(*tick);
    for tick in axis.ticks().into_iter().filter(is_marked) {
        let at = axis.at(tick);
        let _ = write!(
            svg,
            "<path class=\"grid\" d=\"M{at:.1} 0V{bottom:.1}\"/><text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            bottom + MARKS - 4.0,
            short(tick)
        );
    }
    for (at, bar) in bars.iter().enumerate() {
        let (top, length) = (4.0 + STEP * at as f64, axis.at(bar.value) - NAMES);
        let middle = top + BAR / 2.0;
        let (name, figure) = (escape(bar.name), number(bar.value));
        let (from, to) = (axis.at(bar.interval.0), axis.at(bar.interval.1));
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>\
             <rect x=\"{NAMES:.1}\" y=\"{top:.1}\" width=\"{length:.1}\" height=\"{BAR:.1}\" fill=\"{}\">\
             <title>{name}: {figure} ({} to {})</title></rect>",
            NAMES - 6.0,
            middle + 4.5,
            colour(bar.name),
            number(bar.interval.0),
            number(bar.interval.1),
        );
        if to - from > 0.5 {
            let _ = write!(
                svg,
                "<path class=\"interval\" d=\"M{from:.1} {middle:.1}H{to:.1}M{from:.1} {:.1}v8M{to:.1} {:.1}v8\"/>",
                middle - 4.0,
                middle - 4.0
            );
        }
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\">{figure}</text>",
            (NAMES + length).max(to) + 6.0,
            middle + 4.5
        );
    }
    svg + "</svg>\n"
}

/// A scale from one end of the chart to the other: of powers of ten between the least and the most, or even from 0 on.
struct Axis {
    from: f64,
    to: f64,
    ends: (f64, f64),
    is_even: bool,
}

impl Axis {
    fn even(values: impl Iterator<Item = f64>, ends: (f64, f64)) -> Axis {
        let most = values.fold(f64::MIN_POSITIVE, f64::max);
        Axis { from: 0.0, to: most * 1.05, ends, is_even: true }
    }

    fn over(values: impl Iterator<Item = f64> + Clone, ends: (f64, f64)) -> Axis {
        let least = values.clone().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        // Of nothing, or of nothing but zeros, any.
        let least = if least.is_finite() { least } else { 1.0 };
        let most = values.fold(least, f64::max);
        // Some air, and never nothing.
        Axis { from: (least / 1.3).log10(), to: (most * 1.3).log10(), ends, is_even: false }
    }

    fn at(&self, value: f64) -> f64 {
        let value = if self.is_even { value } else { value.max(f64::MIN_POSITIVE).log10() };
        let share = (value - self.from) / (self.to - self.from);
        self.ends.0 + share.clamp(0.0, 1.0) * (self.ends.1 - self.ends.0)
    }

    /// 1, 2 and 5 times the powers of ten that there are; on an even scale, multiples of the one of these that makes
    /// some.
    fn ticks(&self) -> Vec<f64> {
        let (from, to) = (self.from, self.to);
        let of_tens = |powers: std::ops::RangeInclusive<i32>| {
            powers.flat_map(|power| [1.0, 2.0, 5.0].map(|one| one * 10f64.powi(power)))
        };
        if self.is_even {
            let power = to.log10().floor() as i32;
            let step = of_tens(power - 2..=power + 1).find(|step| to / step <= TICKS_MOST).unwrap_or(to);
            return (0..=(to / step) as i32).map(|at| f64::from(at) * step).collect();
        }
        of_tens(from.floor() as i32..=to.ceil() as i32)
            .filter(|tick| (from..=to).contains(&tick.log10()))
            .collect()
    }
}

/// Points, joined if there are several of one name, on two scales of powers of ten.
pub(crate) fn points(title: &str, labels: (&str, &str), lines: &[Line<'_>]) -> String {
    let all = || lines.iter().flat_map(|line| line.points.iter().copied());
    let x = Axis::over(all().map(|point| point.0), ACROSS);
    let y = Axis::over(all().map(|point| point.1), UP);
    drawn(title, labels, (&x, &y), lines, true)
}

/// Lines over time, on two even scales that begin at 0.
pub(crate) fn over_time(title: &str, labels: (&str, &str), lines: &[Line<'_>]) -> String {
    let all = || lines.iter().flat_map(|line| line.points.iter().copied());
    let x = Axis::even(all().map(|point| point.0), ACROSS);
    let y = Axis::even(all().map(|point| point.1), UP);
    drawn(title, labels, (&x, &y), lines, false)
}

fn drawn(
    title: &str,
    (across, up): (&str, &str),
    (x, y): (&Axis, &Axis),
    lines: &[Line<'_>],
    with_points: bool,
) -> String {
    let (left, bottom) = (ACROSS.0, UP.0);
    let mut svg = begin(title, HEIGHT);
    for tick in x.ticks() {
        let at = x.at(tick);
        let _ = write!(
            svg,
            "<path class=\"grid\" d=\"M{at:.1} 16V{bottom:.1}\"/><text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            bottom + 16.0,
            short(tick)
        );
    }
    for tick in y.ticks() {
        let at = y.at(tick);
        let _ = write!(
            svg,
            "<path class=\"grid\" d=\"M{left:.1} {at:.1}H{:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - 20.0,
            left - 6.0,
            at + 4.5,
            short(tick)
        );
    }
    let _ = write!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text><text x=\"4\" y=\"12\">{}</text>",
        WIDTH - 20.0,
        HEIGHT - 12.0,
        escape(across),
        escape(up)
    );
    for line in lines {
        let (name, colour) = (escape(line.name), colour(line.name));
        let places: Vec<(f64, f64)> = line.points.iter().map(|(a, b)| (x.at(*a), y.at(*b))).collect();
        let path: Vec<String> = places.iter().map(|(a, b)| format!("{a:.1} {b:.1}")).collect();
        let _ = write!(
            svg,
            "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join("L")
        );
        for ((a, b), (across, up)) in places.iter().zip(&line.points).filter(|_| with_points) {
            let _ = write!(
                svg,
                "<circle cx=\"{a:.1}\" cy=\"{b:.1}\" r=\"4\" fill=\"{colour}\"><title>{name}: {}, {}</title></circle>",
                number(*across),
                number(*up)
            );
        }
        if let Some((a, b)) = places.last() {
            let (anchor, at) = if *a > WIDTH * 0.75 { ("end", a - 8.0) } else { ("start", a + 8.0) };
            let _ = write!(
                svg,
                "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{name}</text>",
                b - 6.0
            );
        }
    }
    svg + "</svg>\n"
}

fn begin(title: &str, height: f64) -> String {
    let title = escape(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" width=\"{WIDTH:.0}\" \
         height=\"{height:.0}\" role=\"img\"><title>{title}</title>"
    )
}

/// A number on an axis.
fn short(value: f64) -> String {
    match value {
        _ if value >= 1e9 => format!("{}G", value / 1e9),
        _ if value >= 1e6 => format!("{}M", value / 1e6),
        _ if value >= 1e3 => format!("{}K", value / 1e3),
        _ => number(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those of the bars.
    fn widths(svg: &str) -> Vec<f64> {
        let width = |rect: &str| rect.split("width=\"").nth(1)?.split('"').next()?.parse().ok();
        svg.split("<rect ").skip(1).map(|rect| width(rect).unwrap()).collect()
    }

    #[test]
    fn bars_are_as_long_as_their_figures() {
        let bar = |name, value| Bar { name, value, interval: (value * 0.9, value * 1.1) };
        let svg = bars("a < b", &[bar("forrest", 10.0), bar("x&y", 20.0)]);
        let widths = widths(&svg);
        assert!(
            (widths[1] / widths[0] - 2.0).abs() < 0.01 && widths[1] * 1.1 <= WIDTH - NAMES - FIGURES + 0.1
        );
        assert!(svg.contains("a &lt; b") && svg.contains("x&amp;y") && !svg.contains("x&y"));
    }

    /// Beside a subject that is a thousand times as slow all others were lines of one width.
    #[test]
    fn bars_that_differ_much_have_a_scale_of_powers_of_ten() {
        let bar = |name, value| Bar { name, value, interval: (value, value) };
        let svg = bars("t", &[bar("a", 10.0), bar("b", 100.0), bar("c", 10_000.0), bar("none", 0.0)]);
        let widths = widths(&svg);
        assert!(
            (widths[2] - widths[1]) / (widths[1] - widths[0]) - 2.0 < 0.01 && widths[0] > 1.0,
            "{widths:?}"
        );
        assert!(widths[3] == 0.0 && widths[2] <= WIDTH - NAMES - FIGURES, "{widths:?}");
        assert!(
            svg.contains(">100</text>") && svg.contains(">10K</text>") && !svg.contains(">20</text>"),
            "{svg}"
        );
    }

    #[test]
    fn bars_of_nothing_have_no_length() {
        let svg = bars("huge", &[Bar { name: "forrest", value: 0.0, interval: (0.0, 0.0) }]);
        assert!(svg.contains("width=\"0.0\"") && !svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn even_axes_have_some_marks() {
        for most in [0.3, 1.0, 7.0, 99.0, 100.0, 123_456.0] {
            let axis = Axis::even([most / 2.0, most].into_iter(), (10.0, 110.0));
            let ticks = axis.ticks();
            assert!((3..=9).contains(&ticks.len()) && ticks[0] == 0.0, "{most}: {ticks:?}");
            assert!(ticks.iter().all(|tick| (10.0..=110.0).contains(&axis.at(*tick))), "{most}: {ticks:?}");
            assert!((axis.at(most / 2.0) - 10.0) * 2.0 - (axis.at(most) - 10.0) < 1e-9);
        }
        let flat = over_time("t", ("s", "op/s"), &[Line { name: "x", points: vec![(0.0, 0.0), (1.0, 0.0)] }]);
        assert!(!flat.contains("NaN") && !flat.contains("<circle"), "{flat}");
    }

    #[test]
    fn points_stay_within_the_chart() {
        for points_of in [vec![], vec![(1.0, 5.0)], vec![(1e3, 0.0), (1e6, 4e9)], vec![(0.0, 0.0)]] {
            let svg = points("t", ("keys", "ns"), &[Line { name: "forrest", points: points_of }]);
            for circle in svg.split("<circle ").skip(1) {
                let number = |name: &str| -> f64 {
                    let rest = circle.split(&format!("{name}=\"")).nth(1).unwrap();
                    rest.split('"').next().unwrap().parse().unwrap()
                };
                assert!((0.0..=WIDTH).contains(&number("cx")), "{circle}");
                assert!((0.0..=HEIGHT).contains(&number("cy")), "{circle}");
            }
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
