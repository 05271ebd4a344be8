//! Writes SVG elements into a string. All text is escaped here.

use std::fmt::Write;

#[derive(Default)]
pub struct Svg {
    pub out: String,
}

impl Svg {
    pub fn path(&mut self, class: &str, d: &str) {
        if !d.is_empty() {
            let _ = writeln!(self.out, "<path class=\"{class}\" d=\"{d}\"/>");
        }
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let d = format!("M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}");
        self.path(class, &d);
    }

    pub fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64), title: &str) {
        let ((x, y), (width, height), tip) = (at, size, tooltip(title));
        let _ = writeln!(
            self.out,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\">{tip}</rect>"
        );
    }

    pub fn dot(&mut self, class: &str, at: (f64, f64), title: &str) {
        let ((x, y), tip) = (at, tooltip(title));
        let _ = writeln!(
            self.out,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\">{tip}</circle>"
        );
    }

    /// `anchor` is `start`, `middle` or `end`.
    pub fn text(&mut self, class: &str, at: (f64, f64), anchor: &str, text: &str) {
        let ((x, y), text) = (at, escaped(text));
        let _ = writeln!(
            self.out,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }

    /// A title, followed by a note.
    pub fn heading(&mut self, at: (f64, f64), title: &str, note: &str) {
        let ((x, y), title, note) = (at, escaped(title), escaped(note));
        let _ = writeln!(
            self.out,
            "<text x=\"{x:.1}\" y=\"{y:.1}\"><tspan class=\"title\">{title}</tspan>\
             <tspan dx=\"9\">{note}</tspan></text>"
        );
    }
}

fn tooltip(title: &str) -> String {
    if title.is_empty() {
        return String::new();
    }
    format!("<title>{}</title>", escaped(title))
}

/// Text for XML and HTML, in elements and in quoted attributes.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // XML cannot contain these.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A name cut to the length that fits beside the data. Its end stays, because names often differ only
/// there: `a-program-…name 10`.
pub fn shortened(name: &str) -> String {
    const LETTERS: usize = 18;
    const LAST: usize = 7;
    let count = name.chars().count();
    if count <= LETTERS {
        return name.to_owned();
    }
    let begin = name.chars().take(LETTERS - LAST - 1);
    let end = name.chars().skip(count - LAST);
    begin.chain(['\u{2026}']).chain(end).collect()
}

/// The text, or its beginning and an ellipsis.
pub fn cut_to(text: &str, max_letters: usize) -> String {
    if text.chars().count() <= max_letters {
        return text.to_owned();
    }
    let kept = text.chars().take(max_letters.saturating_sub(1));
    kept.chain(['\u{2026}']).collect()
}

/// Steps through the points: each value holds until the next point.
pub fn steps(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut corners: Vec<(f64, f64)> = points.iter().take(1).copied().collect();
    for pair in points.windows(2) {
        corners.extend([(pair[1].0, pair[0].1), pair[1]]);
    }
    corners
}

/// A line through the points.
pub fn polyline(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut d = String::new();
    for (x, y) in points {
        let _ = write!(d, "{}{x:.1} {y:.1}", if d.is_empty() { 'M' } else { 'L' });
    }
    d
}

/// The area between an upper and a lower line.
pub fn area(upper: &[(f64, f64)], lower: &[(f64, f64)]) -> String {
    if upper.is_empty() || lower.is_empty() {
        return String::new();
    }
    polyline(upper.iter().chain(lower.iter().rev()).copied()) + "Z"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_control_characters_are_escaped() {
        assert_eq!(
            escaped("<a b=\"c\">&'\u{1b}"),
            "&lt;a b=&quot;c&quot;&gt;&amp;&#39;\u{fffd}"
        );
    }

    #[test]
    fn a_shortened_name_keeps_its_end() {
        assert_eq!(shortened("trainer 10"), "trainer 10");
        let [a, b] = [9, 10].map(|pid| shortened(&format!("a-program-with-a-long-name {pid}")));
        assert_eq!(
            [&*a, &*b],
            ["a-program-\u{2026}-name 9", "a-program-\u{2026}name 10"]
        );
    }

    #[test]
    fn a_line_is_open_and_an_area_is_closed() {
        assert_eq!(polyline([(0.0, 1.0), (2.0, 3.25)]), "M0.0 1.0L2.0 3.2");
        assert_eq!(area(&[(0.0, 0.0)], &[(0.0, 5.0)]), "M0.0 0.0L0.0 5.0Z");
        assert_eq!(area(&[], &[]), "");
    }

    #[test]
    fn a_step_keeps_the_earlier_value() {
        let corners = [(0.0, 1.0), (2.0, 1.0), (2.0, 5.0)];
        assert_eq!(steps(&[(0.0, 1.0), (2.0, 5.0)]), corners);
        assert_eq!(steps(&[(0.0, 1.0)]), [(0.0, 1.0)]);
        assert!(steps(&[]).is_empty());
    }
}
