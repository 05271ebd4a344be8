//! A mimalloc inside something else: one variable says whether it gives back what is free.

use super::environment::Get;
use super::finding::Finding;

const VARIABLE: &str = "MIMALLOC_PURGE_DELAY";

/// `fact` says who serves what with it.
pub fn finding(id: &'static str, fact: &str, get: Get) -> Finding {
    // At any other delay it looks at its clock only when the program allocates.
    let keeps = match get(VARIABLE) {
        Some(value) if value == "0" => {
            let fact = format!("{fact}, which gives back what is free: {VARIABLE}=0");
            return Finding::ok(id, fact);
        }
        Some(value) => format!("{VARIABLE}={} lets it keep", value.display()),
        None => "it keeps".to_owned(),
    };
    let fact = format!("{fact}; {keeps} what is free while the program rests");
    let remedy = format!("{VARIABLE}=0 has it give that back at once");
    Finding::note(id, fact).remedy(remedy)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::super::finding::Level;
    use super::*;

    fn with(value: Option<&str>) -> Finding {
        finding("x-mimalloc", "X has a mimalloc", &|name| {
            value.filter(|_| name == VARIABLE).map(OsString::from)
        })
    }

    #[test]
    fn a_delay_of_0_is_what_it_should_be() {
        let found = with(Some("0"));
        assert_eq!((found.level, found.remedy), (Level::Ok, None));
        assert!(
            found.fact.contains("MIMALLOC_PURGE_DELAY=0"),
            "{}",
            found.fact
        );
    }

    #[test]
    fn any_other_delay_is_named_with_the_remedy() {
        for value in ["10", "-1", ""] {
            let found = with(Some(value));
            let named = format!("MIMALLOC_PURGE_DELAY={value} lets");
            assert!(found.fact.contains(&named), "{}", found.fact);
            assert_eq!(found.level, Level::Note, "{value}");
            assert!(found.remedy.unwrap().starts_with("MIMALLOC_PURGE_DELAY=0 "));
        }
    }

    #[test]
    fn without_a_delay_the_remedy_names_the_variable() {
        let found = with(None);
        assert_eq!(found.level, Level::Note);
        assert!(found.remedy.unwrap().starts_with("MIMALLOC_PURGE_DELAY=0 "));
    }
}
