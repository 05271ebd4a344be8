//! The stages that occur in at least half the rounds, one bar each: the parts of memory at that stage, as medians over the
//! settled rounds.

use maud::{html, Markup};

use super::{figure, key, visible, Key};
use crate::report::analyse::{median_sizes, Finding};
use crate::report::model::{Series, Size, Sizes};
use crate::report::units::{size, MB};

/// More bars are hard to compare. The table has all stages.
const MAX_BARS: usize = 14;
/// The places of two kinds of memory.
pub const WHOLE: usize = 5;
pub const SWAP: usize = 6;

pub fn chart(finding: &Finding) -> Markup {
    let typical = |series: &Series| {
        let settled = series.settled(finding.trend.warm_up);
        median_sizes(settled.iter().map(|point| &point.sizes))
    };
    let all = finding.process.stages.iter();
    let rounds = all.clone().map(Series::len).max();
    // Others, such as the exit, are no part of a round.
    let is_regular = |series: &&Series| Some(2 * series.len()) >= rounds;
    let bars = all
        .filter(is_regular)
        .map(|series| (&*series.stage, parts(&typical(series))))
        .take(MAX_BARS);
    let bars: Vec<(&str, Vec<f64>)> = bars.collect();
    let sum = |parts: &[f64]| parts.iter().sum::<f64>();
    let highest = bars.iter().map(|(_, parts)| sum(parts)).fold(MB, f64::max);
    let keys = visible(&keys(), &bars);
    let chart = html! {
        div.bars {
            @for (name, parts) in &bars {
                span { (name) }
                div {
                    @for (part, (class, kind)) in keys.iter().filter(|(part, _)| parts[*part] > 0.0) {
                        @let width = format!("width:{:.1}%", 100.0 * parts[*part] / highest);
                        i class=(class) style=(width) title={ (name) ", " (kind) ": " (size(parts[*part])) } {}
                    }
                }
                span.n { (size(sum(&parts[..SWAP]))) }
            }
        }
    };
    let keys: Vec<Key> = keys.into_iter().map(|(_, key)| key).collect();
    figure("At each stage", "median", &chart, &keys)
}

/// The kinds of memory, as parts of a bar or as areas. Without a known part RSS is one.
pub fn keys() -> Vec<Key> {
    let keys = [
        ("fill-live", "live"),
        ("fill-cached", "cached"),
        ("fill-held", "retained"),
        ("fill-file", "file"),
        ("fill-other", "other"),
        ("fill-whole", "RSS"),
        ("fill-swap", "swap"),
    ];
    keys.map(|(class, name)| key(class, name)).to_vec()
}

/// The bytes of each kind. Without swap their sum is RSS. Live and free memory include pages that were never touched, and
/// free memory comes first, as in the shares of a growth.
pub fn parts(sizes: &Sizes) -> Vec<f64> {
    let mut left = sizes.rss();
    let mut take = |bytes: Option<f64>| {
        let part = bytes.map_or(0.0, |bytes| bytes.min(left));
        left -= part;
        part
    };
    let file = take(sizes.file_backed());
    let [cached, retained, live] =
        [Size::Recycled, Size::Retained, Size::Live].map(|size| take(sizes.get(size)));
    let is_known = live + cached + retained + file > 0.0;
    let (other, whole) = if is_known { (left, 0.0) } else { (0.0, left) };
    let swap = sizes.get(Size::Swap).unwrap_or(0.0);
    vec![live, cached, retained, file, other, whole, swap]
}
