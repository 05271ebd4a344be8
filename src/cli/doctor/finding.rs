//! A finding of the doctor, and the text of all findings.

use serde::Serialize;

use crate::output;
use crate::units::plural;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Ok,
    Note,
    Warning,
    Error,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    pub level: Level,
    /// A stable name for scripts: that of the rule, from the table.
    pub id: &'static str,
    pub fact: String,
    /// Lines of text, and lines to paste, which are indented by four spaces.
    pub remedy: Option<String>,
    /// The amount of memory concerned, if known.
    pub bytes: Option<u64>,
}

impl Finding {
    pub fn new(level: Level, fact: impl Into<String>) -> Self {
        Self {
            level,
            id: "",
            fact: fact.into(),
            remedy: None,
            bytes: None,
        }
    }

    pub fn ok(fact: impl Into<String>) -> Self {
        Self::new(Level::Ok, fact)
    }

    pub fn note(fact: impl Into<String>) -> Self {
        Self::new(Level::Note, fact)
    }

    pub fn warning(fact: impl Into<String>) -> Self {
        Self::new(Level::Warning, fact)
    }

    pub fn error(fact: impl Into<String>) -> Self {
        Self::new(Level::Error, fact)
    }

    pub fn remedy(self, remedy: impl Into<String>) -> Self {
        Self {
            remedy: Some(remedy.into()),
            ..self
        }
    }

    pub fn bytes(self, bytes: impl Into<Option<u64>>) -> Self {
        Self {
            bytes: bytes.into(),
            ..self
        }
    }
}

/// Findings that are shown in any case: they answer what the user asked.
const ANSWERS: [&str; 6] = [
    "loadable",
    "program",
    "library",
    "channel",
    "allocator",
    "memory",
];

/// The indentation of a line to paste, as in Markdown.
const PASTE: &str = "    ";
const BULLET: &str = "-> ";

/// The findings as text, the worst last, next to the prompt. Without `all`, problems and answers only.
pub fn render(findings: &[Finding], width: Option<usize>, all: bool) -> String {
    let is_shown = |finding: &&Finding| {
        all || finding.level >= Level::Warning || ANSWERS.contains(&finding.id)
    };
    let mut shown: Vec<&Finding> = findings.iter().filter(is_shown).collect();
    shown.sort_by_key(|finding| finding.level);
    let levels = shown.iter().map(|finding| finding.level.name());
    let margin = levels.map(str::len).fold("LEVEL".len(), usize::max) + 3;
    let mut page = format!(" {:<1$}FINDING\n", "LEVEL", margin - 1);
    for finding in &shown {
        let mut level = finding.level.name();
        for line in lines(finding, width.map(|width| width.saturating_sub(margin))) {
            // A line to paste stands below the text, or further to the left if it would not fit otherwise.
            page += &match line.strip_prefix(PASTE) {
                Some(line) => {
                    let room = width.map_or(usize::MAX, |width| width.saturating_sub(line.len()));
                    let indent = room.clamp(PASTE.len(), margin + BULLET.len());
                    format!("{:indent$}{line}\n", "")
                }
                None => format!(" {level:<0$}{line}\n", margin - 1),
            };
            level = "";
        }
    }
    let count = |level| findings.iter().filter(|found| found.level == level).count() as u64;
    page += &match (count(Level::Error), count(Level::Warning)) {
        (0, 0) => "no problem found".to_owned(),
        (errors, warnings) => {
            let errors = plural(errors, "error");
            format!("{errors}, {}", plural(warnings, "warning"))
        }
    };
    match findings.len() - shown.len() {
        0 => page + "\n",
        hidden => page + &format!("\n{} with --all\n", plural(hidden as u64, "more finding")),
    }
}

/// The fact and its remedy, wrapped, except for lines to paste.
fn lines(finding: &Finding, room: Option<usize>) -> Vec<String> {
    let mut lines = output::wrap(&output::plain(&finding.fact), room);
    let room = room.map(|room| room.saturating_sub(BULLET.len()));
    let mut bullet = BULLET;
    for line in finding.remedy.iter().flat_map(|remedy| remedy.lines()) {
        if line.starts_with(PASTE) {
            lines.push(line.to_owned());
            continue;
        }
        for part in output::wrap(line, room) {
            lines.push(bullet.to_owned() + &part);
            bullet = "   ";
        }
    }
    lines
}
