//! What a client of the control channel asks for. Bytes in, value out: the line comes from outside.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Stats,
    Trim,
    Who,
    /// Of the objects of this site; none where no number was given.
    Holders(Option<u32>),
    Ping,
    Unknown,
}

const HOLDERS: &[u8] = b"holders ";

/// A line without its newline.
pub fn parse(line: &[u8]) -> Request {
    match line {
        b"stats" => Request::Stats,
        b"trim" => Request::Trim,
        b"who" => Request::Who,
        b"ping" => Request::Ping,
        _ => match line.strip_prefix(HOLDERS) {
            Some(site) => Request::Holders(number(site)),
            None => Request::Unknown,
        },
    }
}

fn number(text: &[u8]) -> Option<u32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Panics where the line means something else.
#[cfg(test)]
pub fn check(line: &[u8], request: Request) {
    let known: &[&[u8]] = &[b"stats", b"trim", b"who", b"ping"];
    match request {
        Request::Unknown => assert!(!known.contains(&line) && !line.starts_with(HOLDERS)),
        Request::Holders(site) => {
            assert!(line.starts_with(HOLDERS));
            if let Some(site) = site {
                assert!(line.ends_with(site.to_string().as_bytes()));
            }
        }
        _ => assert!(known.contains(&line)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_request_has_its_word() {
        assert_eq!(parse(b"stats"), Request::Stats);
        assert_eq!(parse(b"holders 7"), Request::Holders(Some(7)));
        assert_eq!(parse(b"holders 99999999999"), Request::Holders(None));
        assert_eq!(parse(b"holders"), Request::Unknown);
        assert_eq!(parse(b"trim "), Request::Unknown);
    }

    fn word() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            Just(b"stats".to_vec()),
            Just(b"trim".to_vec()),
            Just(b"who".to_vec()),
            Just(b"ping".to_vec()),
            Just(b"holders ".to_vec()),
            any::<u64>().prop_map(|number| number.to_string().into_bytes()),
            prop::collection::vec(any::<u8>(), 0..8),
        ]
    }

    proptest! {
        #[test]
        fn any_line_is_a_request_and_only_a_word_by_itself_does_something(
            words in prop::collection::vec(word(), 0..4)
        ) {
            let line = words.concat();
            check(&line, parse(&line));
        }
    }
}
