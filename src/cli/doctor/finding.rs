//! What the doctor says: a level, a fact, a remedy.

use serde::Serialize;

use crate::output;

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
    /// A stable name, for scripts.
    pub id: &'static str,
    pub fact: String,
    pub remedy: Option<String>,
    /// How much memory it is about, where that can be read.
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

    pub fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }
}

/// The findings as a table, the worst last, where the eye rests after the command ends.
pub fn render(findings: &[Finding]) -> String {
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by_key(|finding| finding.level);
    let mut table = output::table(["LEVEL", "FINDING"]);
    for finding in sorted {
        let remedy = finding
            .remedy
            .as_ref()
            .map(|remedy| format!("\n-> {remedy}"));
        let text = output::plain(&finding.fact) + &remedy.unwrap_or_default();
        table.add_row([finding.level.name(), &text]);
    }
    output::render(&table) + &summary(findings) + "\n"
}

fn summary(findings: &[Finding]) -> String {
    let count = |level| {
        findings
            .iter()
            .filter(|finding| finding.level == level)
            .count()
    };
    let plural = |count: usize, noun: &str| match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    };
    match (count(Level::Error), count(Level::Warning)) {
        (0, 0) => "no problem found".to_owned(),
        (errors, warnings) => {
            format!(
                "{}, {}",
                plural(errors, "error"),
                plural(warnings, "warning")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_stands_last_with_its_remedy_below_it() {
        let findings = [
            Finding::error("b", "broken").remedy("fix it"),
            Finding::ok("a", "fine"),
            Finding::warning("c", "odd"),
        ];
        let text = render(&findings);
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
    fn the_json_form_has_level_id_fact_and_remedy() {
        let finding = Finding::warning("swap", "7 B swapped")
            .remedy("less")
            .bytes(7);
        let json = serde_json::to_string(&finding).unwrap();
        let expected =
            r#"{"level":"warning","id":"swap","fact":"7 B swapped","remedy":"less","bytes":7}"#;
        assert_eq!(json, expected);
    }
}
