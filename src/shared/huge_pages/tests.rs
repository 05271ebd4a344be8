use super::*;

fn offer(top: &str, two_mib: Option<&str>, small: &str) -> Offer {
    let read = |file: &CStr, top_says| {
        let name = file.to_str().unwrap();
        let word = match name {
            _ if name.ends_with("hugepage/enabled") => top,
            _ if name.contains("-2048kB") => two_mib?,
            _ if name.contains("-64kB") => small,
            _ if two_mib.is_some() && name.contains("-128kB") => "never",
            _ => return None,
        };
        Policy::parse(format!("other [{word}]\n").as_bytes(), top_says)
    };
    Offer::read(read)
}

fn fresh(top: &str, two_mib: Option<&str>, small: &str, choice: Choice) -> Advice {
    offer(top, two_mib, small).decide(choice).fresh
}

#[test]
fn a_smaller_size_on_advice_is_asked_for_only_if_advice_does_not_bring_2_mib_pages() {
    let auto = Choice::Auto;
    assert_eq!(
        fresh("never", Some("inherit"), "madvise", auto),
        Advice::Ask
    );
    assert_eq!(
        fresh("madvise", Some("never"), "madvise", auto),
        Advice::Ask
    );
    assert_eq!(
        fresh("madvise", Some("never"), "inherit", auto),
        Advice::Ask
    );
    assert_eq!(
        fresh("madvise", Some("inherit"), "madvise", auto),
        Advice::Nothing
    );
    assert_eq!(
        fresh("never", Some("madvise"), "madvise", auto),
        Advice::Nothing
    );
    assert_eq!(
        fresh("never", Some("never"), "inherit", auto),
        Advice::Nothing
    );
}

#[test]
fn a_smaller_size_that_is_always_on_needs_no_advice() {
    let auto = Choice::Auto;
    assert_eq!(
        fresh("madvise", Some("never"), "always", auto),
        Advice::Nothing
    );
    assert_eq!(
        fresh("always", Some("never"), "inherit", auto),
        Advice::Nothing
    );
}

#[test]
fn a_fault_maps_the_largest_page_on_offer() {
    let fault_kb = |two_mib, small, choice| {
        offer("madvise", Some(two_mib), small)
            .decide(choice)
            .fault_kb
    };
    assert_eq!(fault_kb("never", "madvise", Choice::Auto), Some(64));
    assert_eq!(fault_kb("never", "madvise", Choice::Off), None);
    assert_eq!(fault_kb("inherit", "madvise", Choice::Auto), None);
    assert_eq!(fault_kb("inherit", "always", Choice::Auto), Some(64));
    assert_eq!(fault_kb("always", "always", Choice::Auto), None);
}

#[test]
fn two_mib_pages_that_are_always_on_are_declined() {
    for choice in [Choice::Auto, Choice::Off, Choice::TwoMib] {
        let unasked = offer("always", Some("inherit"), "madvise").decide(choice);
        assert_eq!(unasked.fresh, Advice::Decline);
        assert_eq!(unasked.full_blocks_ask, choice != Choice::Off);
        assert_eq!(
            fresh("madvise", Some("always"), "never", choice),
            Advice::Decline
        );
    }
}

#[test]
fn on_a_kernel_without_sizes_the_top_switch_decides() {
    let old = |top, choice| offer(top, None, "never").decide(choice);
    assert_eq!(old("always", Choice::Auto).fresh, Advice::Decline);
    assert_eq!(old("madvise", Choice::Auto), Decision::default());
    assert!(old("madvise", Choice::TwoMib).full_blocks_ask);
    assert_eq!(old("never", Choice::TwoMib), Decision::default());
}

#[test]
fn off_asks_for_no_huge_page_and_2m_asks_for_them_in_full_blocks() {
    let both = offer("madvise", Some("inherit"), "madvise");
    assert!(both.decide(Choice::TwoMib).full_blocks_ask);
    assert_eq!(both.decide(Choice::Off), Decision::default());
    let small = offer("madvise", Some("never"), "madvise");
    assert_eq!(small.decide(Choice::Off), Decision::default());
    assert_eq!(small.decide(Choice::TwoMib).fresh, Advice::Ask);
}

#[test]
fn a_switch_with_an_unknown_word_counts_as_missing() {
    assert_eq!(
        Policy::parse(b"always [sometimes] never", Policy::Never),
        None
    );
    assert_eq!(Policy::parse(b"", Policy::Always), None);
    assert_eq!(Policy::parse(b"[always", Policy::Never), None);
}

#[test]
fn the_policy_of_large_sizes_is_found_without_reading_the_smaller_ones() {
    let read_large = |top: &str, sizes: &[&str]| {
        Offer::read_large(|file, top_says| {
            let name = file.to_str().unwrap();
            let index = LARGE.iter().position(|size| size.file == file);
            let word = match index {
                None if name.ends_with("hugepage/enabled") => top,
                None => panic!("{name} was read"),
                Some(index) => sizes.get(index)?,
            };
            Policy::parse(format!("other [{word}]\n").as_bytes(), top_says)
        })
    };
    assert_eq!(read_large("always", &[]), Policy::Always);
    assert_eq!(read_large("always", &["inherit"]), Policy::Always);
    assert_eq!(read_large("always", &["madvise"]), Policy::OnAdvice);
    assert_eq!(read_large("never", &["never", "always"]), Policy::Always);
    assert_eq!(read_large("madvise", &["never", "never"]), Policy::Never);
}
