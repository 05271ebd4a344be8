//! Parses Python's command line: its options, and the script, module or code that it runs. Follows
//! CPython (`Python/getopt.c`, `config_parse_cmdline`): options end at the first other word, at
//! `-c`, `-m` or `--`.

#[derive(Debug, PartialEq, Eq)]
pub struct CommandLine<'a> {
    /// One-letter options without a value, in order.
    letters: Vec<u8>,
    starts: Starts<'a>,
}

#[derive(Debug, PartialEq, Eq)]
enum Starts<'a> {
    /// A script, or a folder or archive with a `__main__.py`.
    File(&'a [u8]),
    /// The module of `-m`.
    Module(&'a [u8]),
    /// The code of `-c`.
    Code,
    /// An interactive prompt, or a program on stdin.
    Input,
    /// Python prints its help or version, or refuses its options.
    Nothing,
}

/// Whether a file of this name is Python: `python`, `python3.11`, `python3.13t`, `python3-dbg`.
/// Other programs, such as `python-language-server` or a frozen `pythonapp`, parse their arguments
/// differently.
pub fn is_interpreter(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("python") else {
        return false;
    };
    let rest = rest.strip_suffix("-dbg").unwrap_or(rest);
    let version = rest.trim_end_matches(['t', 'd', 'm']);
    let is_version = version.chars().all(|c| c == '.' || c.is_ascii_digit());
    is_version && (version == rest || version.ends_with(|c: char| c.is_ascii_digit()))
}

/// The one-letter options of all versions.
const LETTERS: &[u8] = b"?bBdEhiIOPqRsStuvVx";
/// The one-letter options with a value.
const VALUED: &[u8] = b"cmWX";

impl CommandLine<'_> {
    pub fn has(&self, letter: u8) -> bool {
        self.letters.contains(&letter)
    }

    /// The file name of the script, if `is_file` confirms it, or the name of the module. Never an
    /// argument, code (`-c`) or an unconfirmed word, because a command line can contain tokens.
    pub fn program(&self, is_file: impl Fn(&[u8]) -> bool) -> Option<String> {
        match self.starts {
            Starts::Module(name) => module(name).map(str::to_owned),
            Starts::File(path) if is_file(path) => {
                let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
                Some(String::from_utf8_lossy(name).into_owned())
            }
            _ => None,
        }
    }
}

/// Parses a command line whose first word is Python.
pub fn read<'a>(arguments: impl IntoIterator<Item = &'a [u8]>) -> CommandLine<'a> {
    let mut letters = Vec::new();
    let mut words = arguments.into_iter().skip(1);
    let starts = starts(&mut words, &mut letters);
    // These options do not end the options, but Python runs no program.
    let only_prints = letters.iter().any(|letter| b"h?V".contains(letter));
    CommandLine {
        starts: if only_prints { Starts::Nothing } else { starts },
        letters,
    }
}

fn starts<'a>(words: &mut impl Iterator<Item = &'a [u8]>, letters: &mut Vec<u8>) -> Starts<'a> {
    while let Some(word) = words.next() {
        let mut bundle = match word {
            b"--" => return words.next().map_or(Starts::Input, file),
            b"--check-hash-based-pycs" if words.next().is_some() => continue,
            // --help, --version, or unknown.
            [b'-', b'-', ..] => return Starts::Nothing,
            [b'-', bundle @ ..] if !bundle.is_empty() => bundle,
            _ => return file(word),
        };
        while let [letter, rest @ ..] = bundle {
            bundle = rest;
            if LETTERS.contains(letter) {
                letters.push(*letter);
                continue;
            }
            if !VALUED.contains(letter) {
                return Starts::Nothing;
            }
            // The value is the rest of the word, or the next word.
            let value = match rest {
                [] => words.next(),
                rest => Some(rest),
            };
            match (letter, value) {
                (_, None) => return Starts::Nothing,
                (b'c', _) => return Starts::Code,
                (b'm', Some(name)) => return Starts::Module(name),
                _ => break,
            }
        }
    }
    Starts::Input
}

fn file(word: &[u8]) -> Starts<'_> {
    match word {
        b"-" => Starts::Input,
        _ => Starts::File(word),
    }
}

/// A module name consists of identifiers separated by dots.
fn module(value: &[u8]) -> Option<&str> {
    let is_name = |part: &str| {
        let letters = part.chars().all(|c| c == '_' || c.is_alphanumeric());
        letters && part.chars().next().is_some_and(|c| !c.is_numeric())
    };
    let name = std::str::from_utf8(value).ok()?;
    name.split('.').all(is_name).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_line(line: &str) -> (String, String) {
        let read = read(line.split(' ').map(str::as_bytes));
        let starts = match read.starts {
            Starts::File(path) => String::from_utf8_lossy(path).into_owned(),
            Starts::Module(name) => format!("-m {}", String::from_utf8_lossy(name)),
            other => format!("{other:?}"),
        };
        (String::from_utf8(read.letters).unwrap(), starts)
    }

    #[test]
    fn only_names_of_cpython_are_interpreters() {
        for name in ["python", "python3", "python3.11", "python3.6m", "python2.7"] {
            assert!(is_interpreter(name), "{name}");
        }
        for name in ["python3.13t", "python3.14td", "python3-dbg", "python3.11d"] {
            assert!(is_interpreter(name), "{name}");
        }
        for name in [
            "pythonapp",
            "python-x",
            "python3-config",
            "pythond",
            "pypy3",
        ] {
            assert!(!is_interpreter(name), "{name}");
        }
        assert!(!is_interpreter("python-language-server") && !is_interpreter(""));
    }

    #[test]
    fn options_and_program_are_separated_as_python_does() {
        for (line, letters, starts) in [
            ("python3", "", "Input"),
            ("python3 -", "", "Input"),
            ("python3 - -I x.py", "", "Input"),
            ("python3 -i", "i", "Input"),
            ("python3 x.py -I", "", "x.py"),
            ("python3 -uE x.py -S", "uE", "x.py"),
            ("python3 -u -B -I a/b.py c.py", "uBI", "a/b.py"),
            ("python3 -W error -I x.py", "I", "x.py"),
            ("python3 -Werror -XI -E x.py", "E", "x.py"),
            ("python3 -uX dev x.py", "u", "x.py"),
            ("python3 -W", "", "Nothing"),
            ("python3 -m mod -E", "", "-m mod"),
            ("python3 -Im http.server 80", "I", "-m http.server"),
            ("python3 -mpytest -I", "", "-m pytest"),
            ("python3 -I -m", "I", "Nothing"),
            ("python3 -c -I x.py", "", "Code"),
            ("python3 -Ic pass x.py", "I", "Code"),
            ("python3 -cI x.py", "", "Code"),
            ("python3 -I -- x.py -S", "I", "x.py"),
            ("python3 -- -S x.py", "", "-S"),
            ("python3 -- -", "", "Input"),
            ("python3 -I --", "I", "Input"),
            ("python3 --check-hash-based-pycs never -I x.py", "I", "x.py"),
            ("python3 --check-hash-based-pycs -I x.py", "", "x.py"),
            ("python3 --check-hash-based-pycs", "", "Nothing"),
            ("python3 -S --help x.py", "S", "Nothing"),
            ("python3 --version -I", "", "Nothing"),
            ("python3 --help-all", "", "Nothing"),
            ("python3 -VV -I x.py", "VVI", "Nothing"),
            ("python3 -h -c pass", "h", "Nothing"),
            ("python3 -uz x.py", "u", "Nothing"),
        ] {
            let expected = (letters.to_owned(), starts.to_owned());
            assert_eq!(read_line(line), expected, "{line}");
        }
        assert_eq!(read([]).starts, Starts::Input);
    }

    #[test]
    fn only_identifiers_with_dots_are_a_module() {
        for name in ["pytest", "torch.distributed.run", "_x.y2"] {
            assert_eq!(module(name.as_bytes()), Some(name));
        }
        for value in ["token=hush", "1.2", ".hush", "hush.", "", "a b"] {
            assert_eq!(module(value.as_bytes()), None, "{value}");
        }
        assert_eq!(module(b"\xff"), None);
    }

    #[test]
    fn a_script_is_named_only_if_the_file_exists_and_code_never() {
        let named = |line: &str, is_file: bool| {
            read(line.split(' ').map(str::as_bytes)).program(|_| is_file)
        };
        assert_eq!(
            named("python3 a/train.py hush", true).as_deref(),
            Some("train.py")
        );
        assert_eq!(named("python3 a/train.py hush", false), None);
        assert_eq!(
            named("python3 -m job.train hush", false).as_deref(),
            Some("job.train")
        );
        assert_eq!(named("python3 -c hush train.py", true), None);
        assert_eq!(named("python3 - train.py", true), None);
    }
}
