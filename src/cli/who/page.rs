//! The output of `flarena who`: the table, and folded stacks for flame graphs.

use flarena_shared::sites::{Holding, Stack, Who};

use super::phrases;
use crate::output::{indented, plain, table_of_stacks};
use crate::units::{bytes, or_dash};

/// Smaller amounts are not reported: an interpreter has so much.
const MIN_SMALL_BYTES: u64 = 16 << 20;
/// Frames per row; `--json` and `--folded` have the whole stack.
const FRAMES: usize = 3;

/// The page for a terminal of this width. Without a width each row is one line.
pub fn render(name: &str, pid: i32, who: &Who, width: Option<usize>) -> String {
    let all = || who.sites.iter().chain([&who.rest]);
    let held: u64 = all().map(|one| one.bytes).sum();
    let blocks: u64 = all().map(|one| one.blocks).sum();
    let round = who
        .round
        .map_or(String::new(), |round| format!(", round {round}"));
    let kinds = match &who.small {
        None => format!(" live in {blocks} large blocks"),
        Some(small) => format!(
            " live, of which {} ± {} in small blocks (estimate from {} samples)",
            bytes(small.bytes),
            bytes(small.error),
            small.samples
        ),
    };
    let mut page = format!("{pid} {}: {}{kinds}{round}\n", plain(name), bytes(held));
    page += &not_recorded(who, held);
    if !who.python {
        page +=
            "no Python lines: this process does not run Python, or the hooks are not on its path\n";
    }
    page = page.lines().map(|line| indented(line, width)).collect();
    if blocks == 0 {
        return page;
    }
    let site = |one: &Holding| {
        let place = headline(who, one.site, FRAMES);
        row(one, &one.site.to_string(), &place)
    };
    let (lines, uncertain): (Vec<Holding>, Vec<Holding>) = by_line(who)
        .into_iter()
        .partition(|line| !line.may_be_zero());
    let mut rows: Vec<_> = lines.iter().map(site).collect();
    let mut rest = who.rest;
    uncertain.iter().for_each(|line| rest.add(line));
    if rest.blocks > 0 {
        rest.median = None;
        rows.push(row(&rest, "-", "other sites"));
    }
    let headers = [
        "SITE",
        "BYTES",
        "ERROR",
        "BLOCKS",
        "OLDEST AGE",
        "MEDIAN AGE",
        "ALLOCATED AT",
    ];
    page + &table_of_stacks(headers, &rows, width)
}

/// The memory that has no site.
fn not_recorded(who: &Who, held: u64) -> String {
    let mut lines = String::new();
    let unrecorded = who.small_bytes.unwrap_or(0);
    if unrecorded > held.max(MIN_SMALL_BYTES) {
        lines += &(phrases::unrecorded_small_blocks(unrecorded) + "\n");
    }
    if let Some(before) = who.before_bytes {
        let small = match who.small {
            Some(_) => "",
            None => ", or in blocks below `FLARENA_RECYCLE_MIN` (512 KB by default)",
        };
        lines += &format!(
            "{} more have no site: from before the recording began, or beyond 4096 sites{small}\n",
            bytes(before)
        );
    }
    if let Some(lost) = who.small.map(|small| small.lost).filter(|lost| *lost > 0) {
        lines += &(phrases::lost_samples(lost) + "\n");
    }
    let objects = who.pymalloc_bytes.unwrap_or(0);
    if objects > MIN_SMALL_BYTES && objects > held / 4 {
        lines += &format!(
            "{} are Python objects of up to 512 bytes, which have no site: with `PYTHONMALLOC=malloc` \
             they have\n",
            bytes(objects)
        );
    }
    lines
}

fn row(one: &Holding, site: &str, place: &str) -> [String; 7] {
    [
        site.to_owned(),
        bytes(one.bytes),
        phrases::standard_error(one.error),
        one.blocks.to_string(),
        or_dash(one.oldest),
        or_dash(one.median),
        place.to_owned(),
    ]
}

/// The sites, largest first. Sites with equal stacks are one row, under the number of the largest.
fn by_line(who: &Who) -> Vec<Holding> {
    let mut lines: Vec<Holding> = Vec::new();
    for one in &who.sites {
        let alike = sites_of_same_stack(who, one.site);
        match lines.iter_mut().find(|line| alike.contains(&line.site)) {
            Some(line) => line.add(one),
            None => lines.push(*one),
        }
    }
    lines.sort_by_key(|line| std::cmp::Reverse(line.bytes));
    lines
}

/// The site whose line holds most bytes: the first row of the page.
pub fn largest_site(who: &Who) -> Option<u32> {
    let lines = by_line(who);
    let certain = lines.iter().find(|line| !line.may_be_zero());
    certain.or(lines.first()).map(|line| line.site)
}

/// The numbers of the sites with the same stack text as this one. This one comes first.
pub fn sites_of_same_stack(who: &Who, site: u32) -> Vec<u32> {
    let own = stack(who, site);
    let like =
        |other: &&Stack| own.is_some_and(|own| own.site != other.site && own.has_same_text(other));
    let others = who.stacks.iter().filter(like).map(|other| other.site);
    [site].into_iter().chain(others).collect()
}

fn stack(who: &Who, site: u32) -> Option<&Stack> {
    who.stacks.iter().find(|stack| stack.site == site)
}

pub fn headline(who: &Who, site: u32, frames: usize) -> String {
    stack(who, site).map_or("?".to_owned(), |stack| plain(&stack.headline(frames)))
}

/// One line per stack: the frames, the outermost first, then the bytes.
pub fn folded(who: &Who) -> String {
    let line = |one: &Holding| {
        let stack = stack(who, one.site)?;
        Some(format!("{} {}\n", plain(&stack.folded()), one.bytes))
    };
    by_line(who).iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flarena_shared::sites::{Frame, SmallBlocks};

    fn who() -> Who {
        let frame = |line, function: &str| Frame("/job/run.py".into(), line, function.into());
        Who {
            on: true,
            python: true,
            round: Some(7),
            sites: vec![Holding {
                site: 3,
                bytes: 128 << 20,
                blocks: 2,
                oldest: Some(4),
                median: Some(2),
                ..Holding::default()
            }],
            stacks: vec![Stack {
                site: 3,
                frames: vec![frame(9, "aggregate"), frame(2, "<module>")],
                ..Stack::default()
            }],
            ..Who::default()
        }
    }

    fn who_with_samples() -> Who {
        let mut who = who();
        who.sites[0].error = 5 << 20;
        who.small = Some(SmallBlocks {
            bytes: 77 << 20,
            error: 6 << 20,
            samples: 154,
            period: 512 << 10,
            lost: 0,
        });
        who
    }

    #[test]
    fn the_page_names_the_line_that_allocated_the_memory() {
        assert_eq!(
            render("python3", 42, &who(), None),
            "42 python3: 128.0 MB live in 2 large blocks, round 7\n \
             SITE     BYTES  ERROR  BLOCKS  OLDEST AGE  MEDIAN AGE  ALLOCATED AT\n    \
             3  128.0 MB      -       2           4           2  run.py:9 in aggregate <- run.py:2 in <module>\n"
        );
    }

    #[test]
    fn at_80_columns_the_line_of_code_is_readable() {
        let page = render("python3", 42, &who_with_samples(), Some(80));
        assert!(
            page.lines().all(|line| line.chars().count() <= 80),
            "{page}"
        );
        assert!(page.contains(" run.py:9 in aggregate\n"), "{page}");
        assert!(page.contains(" <- run.py:2 in <module>\n"), "{page}");
    }

    #[test]
    fn estimates_have_their_error_and_a_full_table_is_named() {
        let mut who = who_with_samples();
        let page = render("python3", 42, &who, None);
        let start = "42 python3: 128.0 MB live, of which 77.0 MB ± 6.00 MB in small blocks (estimate from 154 samples), round 7\n SITE";
        assert!(page.starts_with(start), "{page}");
        assert!(page.contains("  128.0 MB  ± 5.00 MB  "), "{page}");
        who.small.as_mut().unwrap().lost = 3;
        who.pymalloc_bytes = Some(100 << 20);
        let page = render("python3", 42, &who, None);
        assert!(page.contains("\n3 samples found no room"), "{page}");
        assert!(
            page.contains("\n100.0 MB are Python objects of up to 512 bytes"),
            "{page}"
        );
    }

    #[test]
    fn a_site_whose_estimate_may_be_zero_counts_with_the_rest() {
        let mut who = who_with_samples();
        let of_samples = |site, samples: u64, error| Holding {
            site,
            bytes: samples << 19,
            blocks: 9,
            error,
            ..Holding::default()
        };
        who.sites.push(of_samples(4, 5, 1_172_000));
        who.sites.push(of_samples(5, 3, 908_000));
        let page = render("python3", 42, &who, None);
        assert_eq!(page.lines().count(), 5, "{page}");
        assert!(page.contains("\n    4   2.50 MB  ± 1.12 MB "), "{page}");
        assert!(page.contains("\n    -   1.50 MB  ± 0.87 MB "), "{page}");
        who.sites.remove(0);
        assert_eq!(largest_site(&who), Some(4));
        who.sites.remove(0);
        assert_eq!(largest_site(&who), Some(5));
    }

    #[test]
    fn memory_in_small_blocks_is_named_if_it_is_more_than_that_of_the_sites() {
        let mut who = who();
        who.small_bytes = Some(100 << 20);
        assert_eq!(render("python3", 42, &who, None).lines().count(), 3);
        (who.sites, who.small_bytes) = (Vec::new(), Some(77 << 20));
        let page = render("python3", 42, &who, None);
        let start =
            "42 python3: 0 KB live in 0 large blocks, round 7\n77.0 MB are in blocks below `FLARENA_RECYCLE_MIN`";
        assert!(page.starts_with(start), "{page}");
        assert_eq!(page.lines().count(), 2, "{page}");
    }

    #[test]
    fn two_sites_of_one_line_are_one_row_and_share_their_numbers() {
        let mut who = who();
        who.stacks.push(Stack {
            site: 9,
            ..who.stacks[0].clone()
        });
        who.stacks.push(Stack {
            site: 5,
            ..Stack::default()
        });
        let small = Holding {
            site: 9,
            bytes: 64 << 20,
            blocks: 3,
            oldest: Some(6),
            median: Some(1),
            ..Holding::default()
        };
        who.sites.push(small);
        let page = render("python3", 42, &who, None);
        assert_eq!(page.lines().count(), 3, "{page}");
        assert!(page.ends_with("3  192.0 MB      -       5           6           2  run.py:9 in aggregate <- run.py:2 in <module>\n"), "{page}");
        assert_eq!(folded(&who).lines().count(), 1);
        assert_eq!(
            (
                sites_of_same_stack(&who, 3),
                sites_of_same_stack(&who, 9),
                sites_of_same_stack(&who, 5),
                sites_of_same_stack(&who, 4)
            ),
            (vec![3, 9], vec![9, 3], vec![5], vec![4])
        );
    }

    #[test]
    fn a_folded_stack_ends_with_its_bytes() {
        let expected = "run.py:2 in <module>;run.py:9 in aggregate 134217728\n";
        assert_eq!(folded(&who()), expected);
    }
}
