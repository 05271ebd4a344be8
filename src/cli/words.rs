//! Suggestions for misspelt names.

/// The name most similar to a misspelt one, if it is similar enough.
pub fn nearest<'a>(names: impl Iterator<Item = &'a str>, typed: &str) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    names
        .map(|name| (strsim::jaro_winkler(&name.to_lowercase(), &typed), name))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// A name that differs by one edit, such as a missing letter. Short names with one edit are not
/// similar enough for [`nearest`].
pub fn one_edit_away<'a>(mut names: impl Iterator<Item = &'a str>, typed: &str) -> Option<&'a str> {
    names.find(|name| strsim::damerau_levenshtein(name, typed) == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_or_swapped_letter_is_one_edit_and_another_word_is_not() {
        let names = || ["run", "report", "top", "trim"].into_iter();
        assert_eq!(one_edit_away(names(), "rn"), Some("run"));
        assert_eq!(one_edit_away(names(), "tpo"), Some("top"));
        assert_eq!(one_edit_away(names(), "unknown"), None);
        assert_eq!(nearest(names(), "reprot"), Some("report"));
    }
}
