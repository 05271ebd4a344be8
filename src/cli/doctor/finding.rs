//! A finding of the doctor: a level, a fact and a remedy.

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

/// The indentation of a line to paste in a remedy, as in Markdown.
const COMMAND: &str = "    ";
/// Before the first line of a remedy.
const BULLET: &str = "-> ";

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    pub level: Level,
    /// A stable name for scripts.
    pub id: &'static str,
    pub fact: String,
    /// Lines of text, and indented lines to paste.
    pub remedy: Option<String>,
    /// The amount of memory concerned, if known.
    pub bytes: Option<u64>,
}

impl Finding {
    fn new(level: Level, id: &'static str, fact: impl Into<String>) -> Self {
        Self {
            level,
            id,
            fact: fact.into(),
            remedy: None,
            bytes: None,
        }
    }

    pub fn ok(id: &'static str, fact: impl Into<String>) -> Self {
        Self::new(Level::Ok, id, fact)
    }

    pub fn note(id: &'static str, fact: impl Into<String>) -> Self {
        Self::new(Level::Note, id, fact)
    }

    pub fn warning(id: &'static str, fact: impl Into<String>) -> Self {
        Self::new(Level::Warning, id, fact)
    }

    pub fn error(id: &'static str, fact: impl Into<String>) -> Self {
        Self::new(Level::Error, id, fact)
    }

    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Adds a line to paste below the remedy. It is never wrapped.
    pub fn command(mut self, line: impl std::fmt::Display) -> Self {
        let remedy = self.remedy.get_or_insert_default();
        *remedy += &format!("\n{COMMAND}{line}");
        self
    }

    /// Adds another line of text below the remedy.
    pub fn then(mut self, line: &str) -> Self {
        let remedy = self.remedy.get_or_insert_default();
        *remedy += &format!("\n{line}");
        self
    }

    pub fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }

    fn lines(&self, room: Option<usize>) -> Vec<String> {
        let mut lines = output::wrap(&output::plain(&self.fact), room);
        let mut bullet = BULLET;
        for line in self.remedy.iter().flat_map(|remedy| remedy.lines()) {
            if line.starts_with(COMMAND) {
                lines.push(line.to_owned());
                continue;
            }
            for part in output::wrap(line, room.map(|room| room.saturating_sub(BULLET.len()))) {
                lines.push(bullet.to_owned() + &part);
                bullet = "   ";
            }
        }
        lines
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

/// The findings as text, the worst last, next to the prompt. Without `all`, problems and answers only.
pub fn render(findings: &[Finding], width: Option<usize>, all: bool) -> String {
    let is_shown = |finding: &&Finding| {
        all || finding.level >= Level::Warning || ANSWERS.contains(&finding.id)
    };
    let mut sorted: Vec<&Finding> = findings.iter().filter(is_shown).collect();
    let hidden = findings.len() - sorted.len();
    sorted.sort_by_key(|finding| finding.level);
    let names = sorted.iter().map(|finding| finding.level.name());
    let margin = names.map(str::len).fold("LEVEL".len(), usize::max) + 3;
    let room = width.map(|width| width.saturating_sub(margin));
    let mut page = format!(" {:<1$}FINDING\n", "LEVEL", margin - 1);
    for finding in sorted {
        let mut level = finding.level.name();
        for line in finding.lines(room) {
            // A line to paste stands below the text, or further to the left if it would not fit otherwise.
            if let Some(command) = line.strip_prefix(COMMAND) {
                let indent = width.map_or(usize::MAX, |width| width.saturating_sub(command.len()));
                let indent = indent.clamp(COMMAND.len(), margin + BULLET.len());
                page += &format!("{:indent$}{command}", "");
            } else {
                page += &format!(" {level:<0$}{line}", margin - 1);
            }
            page.push('\n');
            level = "";
        }
    }
    page += &summary(findings);
    if hidden > 0 {
        page += &format!("\n{} with --all", plural(hidden as u64, "more finding"));
    }
    page + "\n"
}

fn summary(findings: &[Finding]) -> String {
    let count = |level| {
        findings
            .iter()
            .filter(|finding| finding.level == level)
            .count()
    };
    match (count(Level::Error), count(Level::Warning)) {
        (0, 0) => "no problem found".to_owned(),
        (errors, warnings) => {
            format!(
                "{}, {}",
                plural(errors as u64, "error"),
                plural(warnings as u64, "warning")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_finding_is_last_with_its_remedy_below() {
        let findings = [
            Finding::error("b", "broken").remedy("fix it"),
            Finding::ok("a", "fine"),
            Finding::warning("c", "odd"),
        ];
        let text = render(&findings, None, true);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[1].contains("fine") && lines[2].contains("odd"),
            "{text}"
        );
        assert!(
            lines[3].contains("broken") && lines[4].contains("-> fix it"),
            "{text}"
        );
        assert_eq!(lines[5], "1 error, 1 warning");
    }

    #[test]
    fn without_all_only_problems_and_answers_are_shown() {
        let findings = [
            Finding::ok("cgroup", "no limit"),
            Finding::note("thp-always", "on"),
            Finding::ok("loadable", "it loads"),
            Finding::note("channel", "no answer"),
            Finding::warning("swap", "swapped"),
        ];
        assert_eq!(
            render(&findings, None, false),
            " LEVEL    FINDING\n ok       it loads\n note     no answer\n warning  swapped\n\
             0 errors, 1 warning\n2 more findings with --all\n"
        );
        assert!(render(&findings, None, true).ends_with("0 errors, 1 warning\n"));
    }

    #[test]
    fn a_narrow_terminal_wraps_text_but_no_line_to_paste() {
        let line = "echo madvise > /sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled";
        let finding = Finding::warning("pages", "one two three four five six seven eight nine")
            .remedy("as root on the host of this container:")
            .command(line)
            .then("and that is all");
        let indented = format!("\n             {line}\n");
        assert!(render(std::slice::from_ref(&finding), None, true).contains(&indented));
        let text = render(&[finding], Some(30), true);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1..],
            [
                " warning  one two three four",
                "          five six seven eight",
                "          nine",
                "          -> as root on the",
                "             host of this",
                "             container:",
                &format!("    {line}"),
                "             and that is all",
                "0 errors, 1 warning",
            ],
            "{text}"
        );
    }

    #[test]
    fn the_json_form_has_level_id_fact_remedy_and_bytes() {
        let finding = Finding::warning("swap", "7 B swapped")
            .remedy("less")
            .bytes(7);
        let json = serde_json::to_string(&finding).unwrap();
        let expected =
            r#"{"level":"warning","id":"swap","fact":"7 B swapped","remedy":"less","bytes":7}"#;
        assert_eq!(json, expected);
    }
}
