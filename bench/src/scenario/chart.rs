//! Line charts as SVG: a title, axes, a line and a colour for each series.

use super::record::figure;
use std::fmt::Write;

/// A chart.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chart {
    /// The chart's title.
    pub title: String,
    /// The unit of the horizontal axis.
    pub x_unit: String,
    /// The unit of the vertical axis.
    pub y_unit: String,
    /// The name and the points (x, y) of each line.
    pub series: Vec<(String, Vec<(f64, f64)>)>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 170.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 46.0;
/// Colours that people with colour blindness can distinguish.
const COLOURS: [&str; 8] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8a8a00",
];
/// An axis is logarithmic if its largest value is this many times its smallest.
const LOGARITHMIC_FROM: f64 = 30.0;
const TICKS: usize = 5;

/// The mapping from values to positions.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Axis {
    low: f64,
    high: f64,
    is_logarithmic: bool,
    from: f64,
    to: f64,
}

impl Axis {
    fn new(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Axis {
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let most = values.fold(f64::NEG_INFINITY, f64::max);
        let is_logarithmic = least > 0.0 && most / least >= LOGARITHMIC_FROM;
        let (low, high) = match is_logarithmic {
            true => (
                10f64.powf(least.log10().floor()),
                10f64.powf(most.log10().ceil()),
            ),
            false => (
                least.min(0.0),
                if most > least.min(0.0) {
                    most * 1.05
                } else {
                    1.0
                },
            ),
        };
        Axis {
            low,
            high,
            is_logarithmic,
            from,
            to,
        }
    }

    fn place(&self, value: f64) -> f64 {
        let share = match self.is_logarithmic {
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        self.from + share * (self.to - self.from)
    }

    fn ticks(&self) -> Vec<f64> {
        if self.is_logarithmic {
            let decades = (self.high / self.low).log10().round() as i32;
            return (0..=decades)
                .map(|decade| self.low * 10f64.powi(decade))
                .collect();
        }
        let step = (self.high - self.low) / TICKS as f64;
        let size = 10f64.powf(step.log10().floor());
        let rounded = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * size);
        let step = rounded
            .into_iter()
            .find(|rounded| *rounded >= step)
            .unwrap_or(step);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last).map(|count| count as f64 * step).collect()
    }
}

/// Returns the chart as an SVG element, or an empty text if there is nothing to show.
pub fn svg(chart: &Chart) -> String {
    let points = || {
        let all = chart.series.iter().flat_map(|(_, points)| points);
        all.copied().filter(|(x, y)| x.is_finite() && y.is_finite())
    };
    if points().next().is_none() {
        return String::new();
    }
    let points: Vec<(f64, f64)> = points().collect();
    let x_axis = Axis::new(points.iter().map(|(x, _)| *x), LEFT, WIDTH - RIGHT);
    let y_axis = Axis::new(points.iter().map(|(_, y)| *y), HEIGHT - BOTTOM, TOP);
    let mut text = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\"><title>{0}</title>\
         <text x=\"{LEFT}\" y=\"18\" class=\"title\">{0}</text>",
        escape(&chart.title)
    );
    grid(&mut text, chart, &x_axis, &y_axis);
    for (number, (name, points)) in chart.series.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let mut sorted: Vec<(f64, f64)> = points
            .iter()
            .copied()
            .filter(|(x, y)| x.is_finite() && y.is_finite())
            .collect();
        sorted.sort_by(|left, right| left.0.total_cmp(&right.0));
        let places: Vec<(f64, f64)> = sorted
            .iter()
            .map(|(x, y)| (x_axis.place(*x), y_axis.place(*y)))
            .collect();
        let line: Vec<String> = places
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let _ = write!(
            text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            line.join(" ")
        );
        for ((x, y), (place_x, place_y)) in sorted.iter().zip(&places) {
            let _ = write!(
                text,
                "<circle cx=\"{place_x:.1}\" cy=\"{place_y:.1}\" r=\"3\" fill=\"{colour}\"><title>{}: {} {} at {} {}</title></circle>",
                escape(name),
                figure(*y),
                escape(&chart.y_unit),
                figure(*x),
                escape(&chart.x_unit)
            );
        }
        let y = TOP + 8.0 + 17.0 * number as f64;
        let x = WIDTH - RIGHT + 14.0;
        let _ = write!(
            text,
            "<rect x=\"{x}\" y=\"{:.1}\" width=\"10\" height=\"10\" fill=\"{colour}\"/><text x=\"{}\" y=\"{y:.1}\">{}</text>",
            y - 9.0,
            x + 15.0,
            escape(name)
        );
    }
    text.push_str("</svg>\n");
    text
}

fn grid(text: &mut String, chart: &Chart, x_axis: &Axis, y_axis: &Axis) {
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    for tick in x_axis.ticks() {
        let x = x_axis.place(tick);
        let _ = write!(
            text,
            "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\" class=\"grid\"/><text x=\"{x:.1}\" y=\"{:.1}\" class=\"middle\">{}</text>",
            bottom + 16.0,
            figure(tick)
        );
    }
    for tick in y_axis.ticks() {
        let y = y_axis.place(tick);
        let _ = write!(
            text,
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" class=\"grid\"/><text x=\"{:.1}\" y=\"{:.1}\" class=\"end\">{}</text>",
            LEFT - 6.0,
            y + 4.0,
            figure(tick)
        );
    }
    let _ = write!(
        text,
        "<text x=\"{:.1}\" y=\"{:.1}\" class=\"middle\">{}</text><text x=\"6\" y=\"{:.1}\">{}</text>",
        (LEFT + right) / 2.0,
        HEIGHT - 8.0,
        escape(&chart.x_unit),
        TOP - 2.0,
        escape(&chart.y_unit)
    );
}

/// Escapes text for HTML and SVG.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: &[(f64, f64)]) -> Chart {
        Chart {
            title: "a < b".to_owned(),
            x_unit: "requests/s".to_owned(),
            y_unit: "ms".to_owned(),
            series: vec![("p99".to_owned(), points.to_vec())],
        }
    }

    #[test]
    fn every_point_lies_within_the_frame() {
        for points in [
            &[(1.0, 5.0)][..],
            &[(1.0, 0.0), (2.0, 0.0)],
            &[(10.0, 1.0), (10_000.0, 900.0), (100.0, 30.0)],
            &[(0.0, -5.0), (1.0, 5.0)],
        ] {
            let text = svg(&chart(points));
            assert_eq!(text.matches("<circle").count(), points.len());
            for part in text.split("<circle cx=\"").skip(1) {
                let x: f64 = part.split('"').next().unwrap().parse().unwrap();
                let y: f64 = part
                    .split("cy=\"")
                    .nth(1)
                    .unwrap()
                    .split('"')
                    .next()
                    .unwrap()
                    .parse()
                    .unwrap();
                assert!(
                    (LEFT..=WIDTH - RIGHT).contains(&x) && (TOP..=HEIGHT - BOTTOM).contains(&y),
                    "{text}"
                );
            }
            assert!(!text.contains("NaN") && text.contains("a &lt; b"), "{text}");
        }
    }

    #[test]
    fn a_chart_without_points_is_empty() {
        assert_eq!(svg(&chart(&[])), "");
        assert_eq!(svg(&chart(&[(f64::NAN, 1.0)])), "");
    }

    #[test]
    fn ticks_are_round() {
        let axis = Axis::new([0.0, 87.0].into_iter(), 0.0, 1.0);
        assert_eq!(axis.ticks(), [0.0, 20.0, 40.0, 60.0, 80.0]);
        let wide = Axis::new([3.0, 4000.0].into_iter(), 0.0, 1.0);
        assert_eq!(wide.ticks(), [1.0, 10.0, 100.0, 1000.0, 10_000.0]);
    }
}
