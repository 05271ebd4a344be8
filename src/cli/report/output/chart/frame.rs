//! The frame of a chart: title, legend, axes, grid, and the line of the memory limit.

use super::scale::{size_range, size_ticks, Scale};
use super::svg::{escaped, steps, Svg};
use crate::report::units::size;

pub const WIDTH: f64 = 620.0;
pub const HEIGHT: f64 = 270.0;

const LEFT: f64 = 76.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 54.0;
const BOTTOM: f64 = 42.0;
const LETTER: f64 = 7.8;
/// The headroom for another row of the legend.
pub const LEGEND_ROW: f64 = 18.0;

pub struct Frame {
    pub svg: Svg,
    pub x: Scale,
    pub y: Scale,
    /// NaN without a limit.
    limit: f64,
    /// The place of the next name.
    legend: (f64, f64),
    /// Where a limit above the chart is named.
    limit_y: f64,
    width: f64,
    height: f64,
}

impl Frame {
    /// `x` and `y` are the ranges of values. The y axis includes the limit if that is close.
    pub fn new(x: (f64, f64), y: (f64, f64), limit: f64, headroom: f64) -> Self {
        let dimensions = (WIDTH, HEIGHT + headroom);
        Frame::with_headroom(dimensions, x, y, limit, headroom)
    }

    /// A chart of any size.
    pub fn sized(dimensions: (f64, f64), x: (f64, f64), y: (f64, f64), limit: f64) -> Self {
        Frame {
            // The line of the legend is free: such a chart has its names below.
            limit_y: 38.0,
            ..Frame::with_headroom(dimensions, x, y, limit, 0.0)
        }
    }

    fn with_headroom(
        (width, height): (f64, f64),
        x: (f64, f64),
        (low, mut high): (f64, f64),
        limit: f64,
        headroom: f64,
    ) -> Self {
        // A limit far above the data would flatten the curves. It is named instead of drawn.
        if limit <= 1.7 * high {
            high = high.max(limit);
        }
        let places = (height - BOTTOM, TOP + headroom);
        Frame {
            svg: Svg::default(),
            x: Scale::new(x, (LEFT, width - RIGHT)),
            y: Scale::new(size_range(low, high), places),
            limit,
            legend: (LEFT, 36.0),
            limit_y: 17.0,
            width,
            height,
        }
    }

    pub fn place(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x.place(x), self.y.place(y))
    }

    /// The path of these values as steps: each value holds until the next.
    pub fn steps(&self, values: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let places: Vec<_> = values.iter().map(|(x, y)| self.place(*x, *y)).collect();
        steps(&places)
    }

    pub fn axes(&mut self, x_ticks: &[(f64, String)], x_name: &str) {
        let (left, right, bottom) = (LEFT, self.width - RIGHT, self.height - BOTTOM);
        for (value, label) in size_ticks(self.y.from, self.y.to, 5.0) {
            let y = self.y.place(value);
            self.svg.line("grid", (left, y), (right, y));
            self.svg.text("tick", (left - 7.0, y + 5.0), "end", &label);
        }
        for (value, label) in x_ticks {
            let x = self.x.place(*value);
            self.svg.line("axis", (x, bottom), (x, bottom + 4.0));
            // The last label would be cut off at the edge.
            let half = LETTER * label.chars().count() as f64 / 2.0;
            let middle = x.min(self.width - half - 1.0);
            self.svg
                .text("tick", (middle, bottom + 18.0), "middle", label);
        }
        self.svg.line("axis", (left, bottom), (right, bottom));
        let below = ((left + right) / 2.0, self.height - 6.0);
        self.svg.text("name", below, "middle", x_name);
    }

    pub fn limit_line(&mut self) {
        if self.limit.is_nan() {
            return;
        }
        let name = format!("limit {}", size(self.limit));
        let (right, y) = self.place(self.x.to, self.limit);
        if self.limit <= self.y.to {
            let left = self.x.place(self.x.from);
            self.svg.line("limit", (left, y), (right, y));
            self.svg.text("limit-name", (right, y - 5.0), "end", &name);
        } else {
            let name = format!("{name} \u{2191}");
            self.svg
                .text("limit-name", (right, self.limit_y), "end", &name);
        }
    }

    pub fn title(&mut self, title: &str, note: &str) {
        self.svg.heading((LEFT, 17.0), title, note);
    }

    /// Adds a sample of the line or area, and its name.
    pub fn legend(&mut self, class: &str, name: &str) {
        let width = 19.0 + LETTER * name.chars().count() as f64;
        if self.legend.0 + width > self.width {
            self.legend = (LEFT, self.legend.1 + LEGEND_ROW);
        }
        let (x, y) = self.legend;
        if class.starts_with("fill") {
            self.svg.rect(class, (x, y - 8.0), (14.0, 9.0), "");
        } else {
            self.svg.line(class, (x, y - 3.5), (x + 14.0, y - 3.5));
        }
        self.svg.text("key", (x + 19.0, y), "start", name);
        self.legend.0 += width + 11.0;
    }

    /// The finished chart. `id` must be unique on the page. A screen reader reads the title and the
    /// description.
    pub fn finish(self, id: &str, title: &str, description: &str) -> String {
        self.finish_taller(id, title, description, 0.0)
    }

    /// As `finish`, with more room below the axis.
    pub fn finish_taller(self, id: &str, title: &str, description: &str, room: f64) -> String {
        let dimensions = (self.width, self.height + room);
        svg_element(id, dimensions, title, description, &self.svg.out)
    }
}

pub fn svg_element(
    id: &str,
    (width, height): (f64, f64),
    title: &str,
    description: &str,
    body: &str,
) -> String {
    let (title, description) = (escaped(title), escaped(description));
    format!(
        "<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" \
         width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         aria-labelledby=\"{id}-t {id}-d\">\n<title id=\"{id}-t\">{title}</title>\n\
         <desc id=\"{id}-d\">{description}</desc>\n{body}</svg>\n"
    )
}

/// At most about `max` points that keep all peaks, the first and the last point: the lowest and the
/// highest of each section.
pub fn thinned(points: &[(f64, f64)], max: usize) -> Vec<(f64, f64)> {
    if points.len() <= max {
        return points.to_vec();
    }
    let width = points.len().div_ceil(max / 2);
    let ends = |section: &[(f64, f64)]| {
        let by_y = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let low = *section.iter().min_by(by_y).unwrap_or(&section[0]);
        let high = *section.iter().max_by(by_y).unwrap_or(&section[0]);
        match low.0 <= high.0 {
            true => [low, high],
            false => [high, low],
        }
    };
    let first = points.first().copied();
    let last = points.last().copied();
    let sections = points.chunks(width).flat_map(ends);
    let mut kept: Vec<(f64, f64)> = first.into_iter().chain(sections).chain(last).collect();
    kept.dedup();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinned_points_keep_peaks_and_both_ends() {
        let height = |i: usize| if i == 3333 { 99.0 } else { (i % 7) as f64 };
        let points: Vec<(f64, f64)> = (0..10_000).map(|i| (i as f64, height(i))).collect();
        let kept = thinned(&points, 240);
        assert!(kept.len() <= 242, "{}", kept.len());
        assert_eq!((kept[0], kept[kept.len() - 1]), (points[0], points[9999]));
        assert!(kept.contains(&points[3333]));
    }
}
