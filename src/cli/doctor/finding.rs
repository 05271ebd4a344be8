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

    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    pub fn bytes(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.bytes = bytes.into();
        self
    }
}

/// The width of the first column, with a space at both sides of the longest level.
const MARGIN: usize = 10;
/// The indentation of a line to paste, as in Markdown.
const PASTE: &str = "    ";

/// The findings as text, the worst last, next to the prompt. Without `all`, problems only, and answers to what the user
/// asked.
pub fn render(findings: &[Finding], width: Option<usize>, all: bool) -> String {
    let answers = "loadable program library channel allocator memory";
    let is_answer = |finding: &Finding| answers.split(' ').any(|id| id == finding.id);
    let count = |level| findings.iter().filter(|found| found.level == level).count();
    let mut shown: Vec<&Finding> = findings.iter().collect();
    shown.retain(|finding| all || finding.level >= Level::Warning || is_answer(finding));
    shown.sort_by_key(|finding| finding.level);
    let mut page = format!(" {:<1$}FINDING\n", "LEVEL", MARGIN - 1);
    page.extend(shown.iter().map(|finding| text(finding, width)));
    page += &match (count(Level::Error), count(Level::Warning)) {
        (0, 0) => "no problem found\n".to_owned(),
        (errors, warnings) => {
            let warnings = plural(warnings as u64, "warning");
            format!("{}, {warnings}\n", plural(errors as u64, "error"))
        }
    };
    match findings.len() - shown.len() {
        0 => page,
        hidden => page + &plural(hidden as u64, "more finding") + " with --all\n",
    }
}

/// The fact and its remedy, wrapped. A line to paste stands whole below the text, or further to the left if it would not
/// fit otherwise.
fn text(finding: &Finding, width: Option<usize>) -> String {
    let margin = |text: &str| format!(" {text:<0$}", MARGIN - 1);
    let level = margin(&format!("{:?}", finding.level).to_lowercase());
    let fact = output::plain(&finding.fact);
    let mut text = output::wrapped(&fact, &level, &margin(""), width);
    let mut bullet = "-> ";
    for line in finding.remedy.iter().flat_map(|remedy| remedy.lines()) {
        if let Some(line) = line.strip_prefix(PASTE) {
            let room = width.map_or(usize::MAX, |width| width.saturating_sub(line.len()));
            let indent = room.clamp(PASTE.len(), MARGIN + bullet.len());
            text += &format!("{:indent$}{line}\n", "");
            continue;
        }
        let later = margin("") + "   ";
        text += &output::wrapped(line, &(margin("") + bullet), &later, width);
        bullet = "   ";
    }
    text
}
