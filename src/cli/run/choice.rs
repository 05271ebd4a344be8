//! Settings on the command line: `--set NAME=VALUE` and the options for single settings. They are
//! checked against the settings table, so that a mistake is an error before the job starts.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use flarena_shared::malloc_conf::{self, Fault, OPTIONS};
use flarena_shared::settings::{self, Key, Problem, Setting, REMOVED_NAME, TABLE};

use crate::output;

/// One setting of the table and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub name: &'static str,
    pub value: OsString,
}

impl Choice {
    pub fn of(key: Key, value: impl Into<OsString>) -> Self {
        Self {
            name: settings::setting(key).name,
            value: value.into(),
        }
    }

    /// Parses `NAME=VALUE`.
    pub fn parse(text: OsString) -> Result<Self, String> {
        let bytes = text.as_bytes();
        let Some(equals) = bytes.iter().position(|byte| *byte == b'=') else {
            return Err("write NAME=VALUE".to_owned());
        };
        let row = row(&String::from_utf8_lossy(&bytes[..equals]))?;
        let value = OsStr::from_bytes(&bytes[equals + 1..]);
        check(row, value)?;
        Ok(Self {
            name: row.name,
            value: value.to_owned(),
        })
    }
}

/// A parser for an option that sets one setting.
pub fn value_of(key: Key) -> impl Fn(&str) -> Result<String, String> + Clone {
    move |text| match check(settings::setting(key), OsStr::new(text)) {
        Ok(()) if !text.is_empty() => Ok(text.to_owned()),
        Ok(()) => Err(format!("write {}", settings::setting(key).accepts)),
        Err(fault) => Err(fault),
    }
}

fn row(name: &str) -> Result<&'static Setting, String> {
    if let Some(row) = TABLE.iter().find(|row| row.name == name) {
        return Ok(row);
    }
    let hint = nearest(TABLE.iter().map(|row| row.name), name)
        .map_or("see flarena run --help-all".to_owned(), did_you_mean);
    Err(format!("there is no setting {name}; {hint}"))
}

/// Variables outside the table: read by the launchers, set by flarena itself, or reported by the library.
const OTHER_NAMES: [&str; 5] = [
    "FLARENA_LIB",
    "FLARENA_INHERITED",
    "FLARENA_LAUNCHED",
    "FLARENA_PROBE",
    REMOVED_NAME,
];
const PREFIX: &str = "FLARENA_";

/// A sentence for each variable that looks like a setting but is not one.
pub fn messages_about_unknown_names(
    names: impl Iterator<Item = OsString>,
) -> impl Iterator<Item = String> {
    names.filter_map(|name| {
        let name = name.to_string_lossy();
        let known = || TABLE.iter().map(|row| row.name).chain(OTHER_NAMES);
        if known().any(|known| known == name) {
            return None;
        }
        let nearest = match name.strip_prefix(PREFIX) {
            Some(rest) => {
                let ends = known().filter_map(|known| known.strip_prefix(PREFIX));
                nearest(ends, rest).map(|end| format!("{PREFIX}{end}"))
            }
            None => Some(misspelt(&name)?.to_owned()),
        };
        let hint = nearest.map_or("flarena run --help-all lists them".to_owned(), |name| {
            did_you_mean(&name)
        });
        Some(output::plain(&format!(
            "there is no setting {name}; {hint}"
        )))
    })
}

/// The NVFlare switch in the table that a misspelt variable means. NVFlare has many other
/// variables, so only a very similar name counts.
fn misspelt(name: &str) -> Option<&'static str> {
    let switches = TABLE.iter().map(|row| row.name);
    let mut switches = switches.filter(|known| known.starts_with("NVFLARE_"));
    let length = name.chars().count();
    switches.find(|known| {
        let limit = known.len() / 4;
        // Most variables differ in length alone by more, and the exact distance takes 100,000 instructions.
        known.len().abs_diff(length) <= limit && strsim::damerau_levenshtein(known, name) <= limit
    })
}

/// The name most similar to a misspelt one, if it is similar enough.
fn nearest<'a>(names: impl Iterator<Item = &'a str>, typed: &str) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    names
        .map(|name| (strsim::jaro_winkler(&name.to_lowercase(), &typed), name))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

fn did_you_mean(name: &str) -> String {
    format!("did you mean {name}?")
}

fn check(row: &Setting, value: &OsStr) -> Result<(), String> {
    let value = value.as_bytes();
    if value.contains(&0) {
        return Err("a value cannot hold a NUL".to_owned());
    }
    let mut fault = None;
    if row.key == Key::MallocConf {
        let report = |pair: &[u8], why| {
            fault.get_or_insert_with(|| describe(pair, why));
        };
        malloc_conf::pairs(value, report).for_each(drop);
    } else {
        let report = |problem: Problem| {
            if problem.fault == settings::Fault::NotAccepted {
                fault = Some(format!("write {}", row.accepts));
            }
        };
        settings::read(|key| (key == row.key).then_some(value), report);
    }
    fault.map_or(Ok(()), Err)
}

/// Why jemalloc would not accept a pair of options, with a suggestion.
pub fn describe(pair: &[u8], fault: Fault) -> String {
    let shown: String = String::from_utf8_lossy(pair).chars().take(60).collect();
    let key = shown.split(':').next().unwrap_or_default();
    let options = OPTIONS.iter().map(|(name, _)| *name);
    match nearest(options, key).filter(|_| fault == Fault::UnknownKey) {
        Some(nearest) => format!("'{shown}' {fault}; {}", did_you_mean(nearest)),
        None => format!("'{shown}' {fault}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Choice::parse(text.into()).unwrap_err()
    }

    #[test]
    fn a_known_name_with_a_good_value_is_accepted() {
        let choice = Choice::parse("FLARENA_DECAY_MS=200".into()).unwrap();
        assert_eq!(
            (choice.name, choice.value),
            ("FLARENA_DECAY_MS", "200".into())
        );
        let conf = Choice::parse("MALLOC_CONF=dirty_decay_ms:1,narenas:2".into()).unwrap();
        assert_eq!(conf.value, "dirty_decay_ms:1,narenas:2");
    }

    #[test]
    fn the_error_for_a_misspelt_name_suggests_the_nearest() {
        assert!(refusal("FLARENA_DECAY=200").contains("did you mean FLARENA_DECAY_MS?"));
        assert!(refusal("flarena_role=client").contains("did you mean FLARENA_ROLE?"));
        assert!(refusal("HOME=/").contains("flarena run --help-all"));
    }

    #[test]
    fn a_misspelt_variable_is_reported_with_the_nearest_setting() {
        let message =
            |name: &str| messages_about_unknown_names([OsString::from(name)].into_iter()).next();
        for (name, nearest) in [
            ("FLARENA_ALOCATOR", "FLARENA_ALLOCATOR"),
            ("FLARENA_DECAY", "FLARENA_DECAY_MS"),
            ("FLARENA_MEMORYLIMIT", "FLARENA_MEMORY_LIMIT"),
            ("FLARENA_Role", "FLARENA_ROLE"),
            (
                "NVFLARE_ENABLE_JEMALOC_PRELOAD",
                "NVFLARE_ENABLE_JEMALLOC_PRELOAD",
            ),
            (
                "NVFLARE_JEMALLOC_PRELOAD",
                "NVFLARE_ENABLE_JEMALLOC_PRELOAD",
            ),
            (
                "NVFLARE_CLIENT_MEM_PROFILE",
                "NVFLARE_CLIENT_MEMORY_PROFILE",
            ),
        ] {
            let text = message(name).unwrap();
            assert!(
                text.ends_with(&format!("did you mean {nearest}?")),
                "{text}"
            );
        }
        assert!(message("FLARENA_XYZZY").unwrap().ends_with("lists them"));
        for row in TABLE {
            assert_eq!(message(row.name), None);
        }
        for fine in [
            "FLARENA_LIB",
            "FLARENA_INHERITED",
            "HOME",
            "FLARENA",
            "NVFLARE_POC_WORKSPACE",
            "NVFLARE_CLIENT_API_BOOTSTRAP",
            "NVFLARE_JOB_AUTH_TOKEN",
            "NVFLARE_SECURE_LOGGING",
        ] {
            assert_eq!(message(fine), None, "{fine}");
        }
    }

    #[test]
    fn sub_start_sh_lists_the_same_names() {
        let script = include_str!("../../../sub_start.sh");
        let (_, list) = script.split_once("settings=\"").expect("its list");
        let (list, _) = list.split_once('"').expect("the end of its list");
        let mut listed: Vec<&str> = list
            .split(['\\', '\n', ' '])
            .filter(|word| !word.is_empty())
            .collect();
        let names = TABLE.iter().map(|row| row.name).chain(OTHER_NAMES);
        let mut known: Vec<&str> = names.filter_map(|name| name.strip_prefix(PREFIX)).collect();
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(listed, known);
    }

    #[test]
    fn the_error_for_a_bad_value_names_the_accepted_values() {
        assert_eq!(
            refusal("FLARENA_ALLOCATOR=tcmalloc"),
            "write jemalloc or glibc"
        );
        assert_eq!(
            refusal("MALLOC_ARENA_MAX=-1"),
            "write a number of arenas, 1 or more"
        );
        assert_eq!(refusal("FLARENA_ROLE"), "write NAME=VALUE");
    }

    #[test]
    fn each_setting_accepts_its_good_values_and_refuses_its_bad_ones() {
        for row in TABLE {
            for good in row.good {
                let text = format!("{}={good}", row.name);
                assert_eq!(Choice::parse(text.into()).unwrap().value, *good);
            }
            for bad in row.bad {
                let error = refusal(&format!("{}={bad}", row.name));
                let is_named = error.contains(row.accepts) || row.key == Key::MallocConf;
                assert!(is_named, "{}={bad}: {error}", row.name);
            }
        }
    }

    #[test]
    fn the_error_for_a_misspelt_jemalloc_option_suggests_the_nearest() {
        let refusal = refusal("MALLOC_CONF=dirty_decay:5000");
        assert!(
            refusal.contains("did you mean dirty_decay_ms?"),
            "{refusal}"
        );
    }

    #[test]
    fn the_error_for_an_unlike_jemalloc_option_has_no_suggestion() {
        let refusal = refusal("MALLOC_CONF=hello:1");
        assert_eq!(refusal, "'hello:1' is not an option of jemalloc 5.3");
    }

    #[test]
    fn an_option_accepts_the_values_of_its_setting() {
        assert_eq!(value_of(Key::MemoryLimit)("8G").unwrap(), "8G");
        assert!(value_of(Key::MemoryLimit)("lots").is_err());
        assert!(value_of(Key::Role)("").is_err());
    }
}
