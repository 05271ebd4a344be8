//! Parts of the page that several sections use: badges, the heads of tables, and cells.

use crate::report::analyse::{Verdict, KILLED};

/// The verdict with a sign and a colour. The word alone is sufficient for a reader who sees neither.
pub fn badge(verdict: Verdict) -> String {
    let (class, sign) = match verdict {
        Verdict::Flat => ("good", "\u{25cf}"),
        Verdict::NotEnoughRounds => ("open", "\u{25cb}"),
        Verdict::Falling => ("good", "\u{25bc}"),
        Verdict::CyclicGarbage => ("good", "\u{21bb}"),
        Verdict::Unclear => ("open", "?"),
        Verdict::WarmingUp => ("open", "\u{25d4}"),
        Verdict::Swap => ("bad", "\u{21c4}"),
        Verdict::LiveGrowth | Verdict::Retention | Verdict::Growth | Verdict::FileBacked => {
            ("bad", "\u{25b2}")
        }
    };
    mark(class, sign, verdict.name())
}

/// A sign for a process that the kernel most likely killed.
pub fn kill_mark() -> String {
    mark("bad", "\u{2716}", KILLED)
}

fn mark(class: &str, sign: &str, name: &str) -> String {
    format!("<span class=\"badge {class}\"><span aria-hidden=\"true\">{sign}</span> {name}</span>")
}

/// The start of a table that a click on a heading sorts. A narrow screen scrolls it.
pub fn table_start(labelled_by: &str, id: &str, caption: &str) -> String {
    format!(
        "<div class=\"wide\" role=\"region\" aria-labelledby=\"{labelled_by}\" tabindex=\"0\">\n\
         <table class=\"sortable\" id=\"{id}\">\n<caption>{caption}</caption>\n"
    )
}

/// The headings of a table: columns of words, then columns of numbers.
pub fn heads(words: &[&str], numbers: &[&str]) -> String {
    let word = |head: &&str| format!("<th scope=\"col\">{head}</th>");
    let number = |head: &&str| format!("<th scope=\"col\" class=\"n\">{head}</th>");
    let heads: String = words
        .iter()
        .map(word)
        .chain(numbers.iter().map(number))
        .collect();
    format!("<thead><tr>{heads}</tr></thead>\n<tbody>\n")
}

/// A cell that is sorted by its value instead of its text.
pub fn number(value: f64, format: fn(f64) -> String) -> String {
    let (key, text) = (sort_key(value), format(value));
    format!("<td class=\"n\" data-v=\"{key}\">{text}</td>")
}

pub fn sort_key(value: f64) -> String {
    match value.is_finite() {
        true => format!("{value:.0}"),
        false => String::new(),
    }
}
