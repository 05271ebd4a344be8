//! Trying a library in a child before anything is trusted to it: ld.so only warns when it cannot
//! load a preload, and a loader that is too old ends the program.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use flarena_shared::system_error;

/// Loading takes milliseconds; from a network file system it may take seconds.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The version of libflarena.so, or why it cannot be preloaded.
pub fn flarena(library: &Path) -> Result<String, String> {
    let (out, err) = preload(library, Some(("FLARENA_PROBE", "1")))?;
    let line = out.strip_suffix('\n').filter(|line| !line.contains('\n'));
    match line.and_then(|line| line.strip_prefix("flarena ")) {
        Some(version) => Ok(version.to_owned()),
        None => Err(reason(&err, "it does not answer as libflarena.so does")),
    }
}

/// Whether a library can be preloaded at all: the loader says nothing about it.
pub fn silent(library: &Path) -> Result<(), String> {
    match preload(library, None)? {
        (_, err) if err.is_empty() => Ok(()),
        (_, err) => Err(reason(&err, "")),
    }
}

/// What a child said with the library in it, on stdout and on stderr.
fn preload(library: &Path, extra: Option<(&str, &str)>) -> Result<(String, String), String> {
    let mut command = tiny_program();
    command.env("LD_PRELOAD", library).envs(extra);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // A group of its own: what a terminal sends to the job must not change the answer.
    command.process_group(0);
    let mut child = command
        .spawn()
        .map_err(|error| format!("no child to try it in: {}", system_error::reason(&error)))?;
    let answers = answers(&mut child);
    if answers.is_none() {
        let _ = child.kill();
    }
    let _ = child.wait();
    answers.ok_or_else(|| "it does not answer in time".to_owned())
}

/// Any dynamically linked program will do; this one where an image has no other.
fn tiny_program() -> Command {
    let known = ["/bin/true", "/usr/bin/true"]
        .into_iter()
        .find(|path| Path::new(path).exists());
    let mut command = Command::new(known.map_or(OsStr::new("/proc/self/exe"), OsStr::new));
    command.arg("--version");
    command
}

fn answers(child: &mut Child) -> Option<(String, String)> {
    let (out, err) = (child.stdout.take()?, child.stderr.take()?);
    let (sender, receiver) = mpsc::channel();
    let err_sender = sender.clone();
    thread::spawn(move || sender.send((true, read(out))));
    thread::spawn(move || err_sender.send((false, read(err))));
    let mut answers = (String::new(), String::new());
    for _ in 0..2 {
        match receiver.recv_timeout(TIMEOUT).ok()? {
            (true, text) => answers.0 = text,
            (false, text) => answers.1 = text,
        }
    }
    Some(answers)
}

fn read(stream: impl Read) -> String {
    let mut bytes = Vec::new();
    let _ = stream.take(64 << 10).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The first line of the loader, in the words of a person.
fn reason(err: &str, silence: &str) -> String {
    let line = err.lines().next().unwrap_or(silence);
    if let Some((_, rest)) = line.split_once("version `GLIBC_") {
        let needed = rest.split('\'').next().unwrap_or_default();
        return format!("it needs glibc {needed}, newer than the one here");
    }
    let quoted = line.split_once("cannot be preloaded (");
    let inside = quoted.and_then(|(_, rest)| rest.split_once("):"));
    inside.map_or(line, |(reason, _)| reason).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn the_loaders_words_become_a_reason() {
        let line = "ERROR: ld.so: object '/x.so' from LD_PRELOAD cannot be preloaded \
            (invalid ELF header): ignored.\n";
        assert_eq!(reason(line, ""), "invalid ELF header");
        let old = "/bin/true: /lib/libc.so.6: version `GLIBC_2.38' not found (required by /x)\n";
        assert_eq!(
            reason(old, ""),
            "it needs glibc 2.38, newer than the one here"
        );
    }

    #[test]
    fn a_file_that_is_no_library_is_refused_with_the_loaders_reason() {
        let scratch = Scratch::new();
        let text = "not a library at all, but long enough to look like one for a moment\n";
        let junk = scratch.write("libflarena.so", &text.repeat(9));
        assert_eq!(flarena(&junk).unwrap_err(), "invalid ELF header");
        assert!(silent(&junk).is_err());
    }
}
