//! A stacked area chart over the rounds: the parts of a sum.

use super::frame::{svg_element, HEIGHT, WIDTH};
use super::scale::{count_ticks, size_range, size_ticks, Scale};
use super::svg::{area, Svg};
use crate::report::units::MB;

/// One layer, with a value for each round.
pub struct Layer {
    pub name: String,
    pub values: Vec<f64>,
}

const LEFT: f64 = 76.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 28.0;
const KEY_HEIGHT: f64 = 18.0;
/// Letters that fit into a line of the legend.
const LETTERS: usize = 60;

/// The lowest layer comes first. The rounds ascend, and there is at least one.
pub fn stacked(id: &str, title: &str, rounds: &[f64], layers: &[Layer]) -> String {
    let at = |place: usize| layers.iter().map(|layer| layer.values[place]).sum();
    let highest = (0..rounds.len()).map(at).fold(MB, f64::max);
    let (low, high) = size_range(0.0, highest);
    let (first, last) = (rounds[0], rounds[rounds.len() - 1]);
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let x = Scale::new((first, last), (LEFT, right));
    let y = Scale::new((low, high), (bottom, TOP));
    let (title_line, note) = ("Live blocks by line", "minimum of each round");
    let mut svg = Svg::default();
    svg.heading((16.0, 17.0), title_line, note);
    for (value, label) in size_ticks(low, high, 5.0) {
        let y = y.place(value);
        svg.line("grid", (LEFT, y), (right, y));
        svg.text("tick", (LEFT - 6.0, y + 4.0), "end", &label);
    }
    for (value, label) in count_ticks(first, last, 8.0) {
        svg.text("tick", (x.place(value), bottom + 18.0), "middle", &label);
    }
    let line = |heights: &[f64]| -> Vec<(f64, f64)> {
        let places = rounds.iter().zip(heights);
        places.map(|(r, h)| (x.place(*r), y.place(*h))).collect()
    };
    let mut below = vec![0.0; rounds.len()];
    let class = |place| format!("layer layer-{place}");
    for (place, layer) in layers.iter().enumerate() {
        let sums = below.iter().zip(&layer.values).map(|(a, b)| a + b);
        let above: Vec<f64> = sums.collect();
        svg.path(&class(place), &area(&line(&above), &line(&below)));
        below = above;
    }
    for (place, layer) in layers.iter().enumerate() {
        let top = HEIGHT + KEY_HEIGHT * place as f64;
        svg.rect(&class(place), (LEFT, top), (10.0, 10.0), "");
        let name: String = layer.name.chars().take(LETTERS).collect();
        svg.text("key", (LEFT + 16.0, top + 10.0), "start", &name);
    }
    let height = HEIGHT + KEY_HEIGHT * layers.len() as f64 + 6.0;
    let names: Vec<&str> = layers.iter().map(|layer| layer.name.as_str()).collect();
    svg_element(id, (WIDTH, height), title, &names.join(", "), &svg.out)
}
