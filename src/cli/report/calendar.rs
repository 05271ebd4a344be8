//! Dates of the Gregorian calendar, without time zones.

const DAY: f64 = 86400.0;
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Days from 1970 to a date. The year starts in March, so that a leap day is its last day.
pub fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of a moment, in seconds since 1970.
fn date_of(seconds: f64) -> (i64, i64, i64) {
    let days = (seconds / DAY).floor() as i64 + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let first_of_year = 365 * year_of_era + year_of_era / 4 - year_of_era / 100;
    let day_of_year = day_of_era - first_of_year;
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + 400 * era + i64::from(month <= 2);
    (year, month, day)
}

/// `2026-11-20`
pub fn date(seconds: f64) -> String {
    let (year, month, day) = date_of(seconds);
    format!("{year:04}-{month:02}-{day:02}")
}

/// `Nov 20`
pub fn short_date(seconds: f64) -> String {
    let (_, month, day) = date_of(seconds);
    format!("{} {day}", MONTHS[(month - 1).clamp(0, 11) as usize])
}

/// `06:32`
pub fn hour_and_minute(seconds: f64) -> String {
    let minutes = (seconds.rem_euclid(DAY) / 60.0) as u32;
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

/// `06:32:46`
pub fn time_of_day(seconds: f64) -> String {
    let second = seconds.rem_euclid(DAY) as u32 % 60;
    format!("{}:{second:02}", hour_and_minute(seconds))
}

/// `2026-11-20 06:32 to 07:41`, or with two dates if they differ.
pub fn range(start: f64, end: f64) -> String {
    let [from, to] = [start, end].map(date);
    let [begin, finish] = match end - start < 120.0 {
        true => [start, end].map(time_of_day),
        false => [start, end].map(hour_and_minute),
    };
    match from == to {
        true => format!("{from} {begin} to {finish}"),
        false => format!("{from} {begin} to {to} {finish}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_and_its_day_number_belong_together() {
        for days in (-800_000..800_000).step_by(97) {
            let (year, month, day) = date_of(days as f64 * DAY);
            assert_eq!(days_since_1970(year, month, day), days);
        }
        assert_eq!(date(951_782_400.0), "2000-02-29");
    }

    #[test]
    fn a_range_names_the_second_date_only_if_it_differs() {
        let start = 1_795_156_366.0;
        assert_eq!(range(start, start + 3600.0), "2026-11-20 06:32 to 07:32");
        assert_eq!(
            range(start, start + 86400.0),
            "2026-11-20 06:32 to 2026-11-21 06:32"
        );
        assert_eq!(range(start, start + 5.0), "2026-11-20 06:32:46 to 06:32:51");
        assert_eq!(short_date(start), "Nov 20");
    }
}
