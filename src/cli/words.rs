//! Words for a person who made a slip.

/// The name that a misspelt one most likely meant.
pub fn nearest<'a>(names: impl Iterator<Item = &'a str>, typed: &str) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    names
        .map(|name| (strsim::jaro_winkler(&name.to_lowercase(), &typed), name))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// A short name that lacks a letter, or has two in the wrong order: too little for `nearest`.
pub fn one_slip_away<'a>(mut names: impl Iterator<Item = &'a str>, typed: &str) -> Option<&'a str> {
    names.find(|name| strsim::damerau_levenshtein(name, typed) == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_letter_is_one_slip_and_two_are_not() {
        let names = || ["run", "report", "top", "trim"].into_iter();
        assert_eq!(one_slip_away(names(), "rn"), Some("run"));
        assert_eq!(one_slip_away(names(), "tpo"), Some("top"));
        assert_eq!(one_slip_away(names(), "unknown"), None);
        assert_eq!(nearest(names(), "reprot"), Some("report"));
    }
}
