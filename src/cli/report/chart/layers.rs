//! Layers upon each other over the rounds: who holds how much of a sum.

use super::frame::{chart as finish, HEIGHT, WIDTH};
use super::scale::{counts, size_range, sizes, Scale};
use super::svg::{area, Svg};

/// One layer: a value for each place of the axis.
pub struct Layer {
    pub name: String,
    pub values: Vec<f64>,
}

const LEFT: f64 = 76.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 28.0;
const KEY_HEIGHT: f64 = 18.0;
/// Letters of a name that fit into a line of the legend.
const LETTERS: usize = 60;

/// The lowest layer first. `rounds` rise.
pub fn stacked(id: &str, title: &str, rounds: &[f64], layers: &[Layer]) -> String {
    let at = |place: usize| {
        layers
            .iter()
            .map(|layer| layer.values.get(place).unwrap_or(&0.0))
            .sum()
    };
    let highest = (0..rounds.len()).map(at).fold(1024.0 * 1024.0, f64::max);
    let range = size_range(0.0, highest);
    let (first, last) = (
        rounds.first().unwrap_or(&0.0),
        rounds.last().unwrap_or(&1.0),
    );
    let x = Scale::new((*first, *last), (LEFT, WIDTH - RIGHT));
    let y = Scale::new(range, (HEIGHT - BOTTOM, TOP));
    let mut svg = Svg::default();
    svg.heading(
        (16.0, 17.0),
        "Live large blocks by line",
        "the least of each round",
    );
    for (value, label) in sizes(range.0, range.1, 5.0) {
        svg.line(
            "grid",
            (LEFT, y.place(value)),
            (WIDTH - RIGHT, y.place(value)),
        );
        svg.text("tick", (LEFT - 6.0, y.place(value) + 4.0), "end", &label);
    }
    for (value, label) in counts(*first, *last, 8.0) {
        svg.text(
            "tick",
            (x.place(value), HEIGHT - BOTTOM + 18.0),
            "middle",
            &label,
        );
    }
    let mut below = vec![0.0; rounds.len()];
    for (place, layer) in layers.iter().enumerate() {
        let above: Vec<f64> = below
            .iter()
            .zip(&layer.values)
            .map(|(a, b)| a + b)
            .collect();
        let line = |heights: &[f64]| -> Vec<(f64, f64)> {
            rounds
                .iter()
                .zip(heights)
                .map(|(r, h)| (x.place(*r), y.place(*h)))
                .collect()
        };
        svg.path(
            &format!("layer layer-{place}"),
            &area(&line(&above), &line(&below)),
        );
        below = above;
    }
    for (place, layer) in layers.iter().enumerate() {
        let top = HEIGHT + KEY_HEIGHT * place as f64;
        let class = format!("layer layer-{place}");
        svg.rect(&class, (LEFT, top), (10.0, 10.0), "");
        let name: String = layer.name.chars().take(LETTERS).collect();
        svg.text("key", (LEFT + 16.0, top + 10.0), "start", &name);
    }
    let height = HEIGHT + KEY_HEIGHT * layers.len() as f64 + 6.0;
    let names: Vec<&str> = layers.iter().map(|layer| layer.name.as_str()).collect();
    finish(id, (WIDTH, height), title, &names.join(", "), &svg.out)
}
