//! `/proc/PID/stat`: parent, state and CPU time.

/// The fields of `stat` that flarena uses. Times are in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    pub parent: i32,
    pub is_zombie: bool,
    /// Of the process and of the children that it has waited for.
    pub cpu_ticks: u64,
    pub start_ticks: u64,
}

impl Stat {
    /// `None` for text of another form. The name in field 2 may itself hold spaces and parentheses.
    pub fn parse(text: &str) -> Option<Self> {
        let (_, fields) = text.rsplit_once(')')?;
        // Field 3 is the first one here.
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let cpu: Option<u64> = [14, 15, 16, 17].into_iter().map(number).sum();
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            is_zombie: *fields.first()? == "Z",
            cpu_ticks: cpu?,
            start_ticks: number(22)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let text = "7 (a ) b) Z 5 7 7 0 -1 4194560 1 0 0 0 10 20 3 4 20 0 1 0 9876 1 2";
        let stat = Stat {
            parent: 5,
            is_zombie: true,
            cpu_ticks: 37,
            start_ticks: 9876,
        };
        assert_eq!(Stat::parse(text), Some(stat));
        assert_eq!(Stat::parse("7 (a) S 5"), None);
        assert_eq!(Stat::parse(""), None);
    }
}
