use super::*;
use crate::defaults;

/// The merged string and the faults, with a buffer of `room` bytes.
fn merged(user: &str, room: usize) -> (String, Vec<(String, Fault)>) {
    let mut out = vec![0xAA; room];
    let mut faults = Vec::new();
    let standard = pairs(defaults::MALLOC_CONF.as_bytes(), |_, _| ()).map(|p| (p.key, p.value));
    let len = merge(user.as_bytes(), standard, &mut out, |text, fault| {
        faults.push((String::from_utf8_lossy(text).into_owned(), fault));
    });
    assert_eq!(out[len], 0, "ends with NUL");
    (String::from_utf8(out[..len].to_vec()).unwrap(), faults)
}

#[test]
fn the_options_are_sorted_for_the_binary_search() {
    assert!(OPTIONS.windows(2).all(|w| w[0].0 < w[1].0));
}

#[test]
fn without_a_users_string_the_defaults_are_used() {
    assert_eq!(merged("", 256), (defaults::MALLOC_CONF.to_owned(), vec![]));
}

#[test]
fn each_key_of_the_user_replaces_its_default() {
    let (conf, faults) = merged("dirty_decay_ms:0,narenas:3", 256);
    assert_eq!(conf, "muzzy_decay_ms:5000,dirty_decay_ms:0,narenas:3");
    assert!(faults.is_empty());
}

#[test]
fn a_bad_value_leaves_the_default() {
    let (conf, faults) = merged("dirty_decay_ms:abc", 256);
    assert_eq!(conf, defaults::MALLOC_CONF);
    assert_eq!(faults, [("dirty_decay_ms:abc".to_owned(), Fault::BadValue)]);
}

#[test]
fn an_unknown_key_is_left_out_and_reported() {
    let (conf, faults) = merged("dirty_decay:5000,narenas:2,zzzzzzzzzzzz:1", 256);
    assert!(conf.ends_with(",narenas:2"), "{conf}");
    let reported: Vec<_> = faults
        .iter()
        .map(|(text, fault)| format!("{text} {fault}"))
        .collect();
    assert_eq!(
        reported,
        [
            "dirty_decay:5000 is not an option of jemalloc 5.3",
            "zzzzzzzzzzzz:1 is not an option of jemalloc 5.3"
        ]
    );
}

#[test]
fn malformed_pairs_and_profiling_options_are_refused() {
    let (conf, faults) = merged("narenas,thp:,:x,prof:true,,narenas:0,thp:sometimes", 256);
    assert_eq!(conf, defaults::MALLOC_CONF);
    let kinds: Vec<_> = faults.iter().map(|(_, fault)| *fault).collect();
    use Fault::*;
    assert_eq!(
        kinds,
        [
            Malformed,
            Malformed,
            Malformed,
            NeedsProfiling,
            BadValue,
            BadValue
        ]
    );
}

#[test]
fn numbers_parse_as_in_jemalloc() {
    for good in ["0", "0x10", "010", "-1", "5000"] {
        assert!(
            merged(&format!("dirty_decay_ms:{good}"), 256).1.is_empty(),
            "{good}"
        );
    }
    for bad in ["-2", "0x", "08", "5s", "5 000", "99999999999999999999"] {
        assert_eq!(
            merged(&format!("dirty_decay_ms:{bad}"), 256).1.len(),
            1,
            "{bad}"
        );
    }
}

#[test]
fn narenas_must_be_a_number_and_other_texts_are_free() {
    for good in [
        "narenas:default",
        "narenas:7",
        "slab_sizes:1280-1280:1|2560-2560:2",
    ] {
        assert!(merged(good, 256).1.is_empty(), "{good}");
    }
    for bad in ["narenas:many", "narenas:0", "slab_sizes:a b"] {
        assert_eq!(merged(bad, 256).1.len(), 1, "{bad}");
    }
}

#[test]
fn a_boolean_is_exactly_true_or_false() {
    for good in ["retain:true", "retain:false"] {
        assert!(merged(good, 256).1.is_empty(), "{good}");
    }
    for bad in ["retain:1", "retain:True", "retain:off"] {
        assert_eq!(merged(bad, 256).1.len(), 1, "{bad}");
    }
}

#[test]
fn a_string_that_does_not_fit_is_cut_between_pairs() {
    let long = "narenas:4,".repeat(1000);
    let (conf, faults) = merged(&long, 512);
    assert!(conf.len() < 512 && conf.ends_with("narenas:4"));
    assert_eq!((faults.len(), faults[0].1), (1, Fault::TooLong));
    let rest = &faults[0].0;
    assert!(
        rest.starts_with("narenas:4,") && long.ends_with(rest),
        "{rest}"
    );
}
