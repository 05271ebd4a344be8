//! Loads a library in a child process to see if it works here. In a real job the loader only warns
//! about a preload that it cannot load, or ends the program if glibc is too old.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use flarena_shared::system_error;
use rustix::process::{kill_process, Pid, Signal};

/// Loading takes milliseconds, and seconds from a network file system.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The version of libflarena.so, or the reason why it cannot be preloaded.
pub fn version_of(library: &Path) -> Result<String, String> {
    let probe = ("FLARENA_PROBE", OsString::from("1"));
    let (out, err) = preload(library.as_os_str(), Some(probe))?;
    let line = out.strip_suffix('\n').filter(|line| !line.contains('\n'));
    match line.and_then(|line| line.strip_prefix("flarena ")) {
        Some(version) => Ok(version.to_owned()),
        None => Err(reason(&err, "it does not answer as libflarena.so does")),
    }
}

/// Checks that libflarena.so answers in a process with this LD_PRELOAD and these variables: other libraries may
/// replace functions of libc that the library calls at its start.
pub fn answers(preload_list: &OsStr, variables: &[(&'static str, OsString)]) -> Result<(), String> {
    let probe = ("FLARENA_PROBE", OsString::from("1"));
    let (out, err) = preload(preload_list, variables.iter().cloned().chain([probe]))?;
    // Another library may print lines, too.
    let has_answered = out.lines().any(|line| line.starts_with("flarena "));
    has_answered
        .then_some(())
        .ok_or_else(|| reason(&err, "the process ended without an answer"))
}

/// Checks that a library can be preloaded: the loader prints nothing.
pub fn loads_silently(library: &Path) -> Result<(), String> {
    match preload(library.as_os_str(), None)? {
        (_, err) if err.is_empty() => Ok(()),
        (_, err) => Err(reason(&err, "")),
    }
}

/// Stdout and stderr of a child process with this LD_PRELOAD.
fn preload(
    list: &OsStr,
    variables: impl IntoIterator<Item = (&'static str, OsString)>,
) -> Result<(String, String), String> {
    let mut command = tiny_program();
    command.envs(variables).env("LD_PRELOAD", list);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // Its own process group, so that a signal from the terminal does not end the child.
    command.process_group(0);
    let child = command.spawn().map_err(|error| {
        let reason = system_error::reason(&error);
        format!("cannot start a process to try it in: {reason}")
    })?;
    let pid = Pid::from_child(&child);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    let Ok(Ok(output)) = receiver.recv_timeout(TIMEOUT) else {
        let _ = kill_process(pid, Signal::KILL);
        // The command must not inherit a zombie, and a program that the child started may keep the streams open.
        let _ = receiver.recv_timeout(Duration::from_secs(1));
        return Err(format!("it did not load within {} s", TIMEOUT.as_secs()));
    };
    match output.status.signal() {
        Some(signal) => Err(format!(
            "`LD_PRELOAD='{}' {}` ends with signal {signal}",
            list.to_string_lossy(),
            command.get_program().to_string_lossy()
        )),
        None => {
            let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
            Ok((text(output.stdout), text(output.stderr)))
        }
    }
}

/// A dynamically linked program: `true`, or this command in an image without it.
fn tiny_program() -> Command {
    let path = ["/bin/true", "/usr/bin/true"]
        .into_iter()
        .find(|path| Path::new(path).exists());
    let mut command = Command::new(path.map_or(OsStr::new("/proc/self/exe"), OsStr::new));
    command.arg("--version");
    command
}

/// The reason in the loader's first line.
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
    fn the_loaders_message_becomes_a_reason() {
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
    fn a_library_that_ends_a_program_is_reported_with_the_command_to_try() {
        let scratch = Scratch::new();
        let whole = std::fs::read("/proc/self/maps")
            .map(String::from_utf8)
            .unwrap()
            .unwrap();
        let libc = whole
            .lines()
            .find(|line| line.contains("/libc.so"))
            .unwrap();
        let libc = &libc[libc.find('/').unwrap()..];
        let part = scratch.path().join("libflarena.so");
        std::fs::write(&part, &std::fs::read(libc).unwrap()[..3000]).unwrap();
        let reason = version_of(&part).unwrap_err();
        let command = format!("`LD_PRELOAD='{}' /", part.display());
        assert!(reason.starts_with(&command), "{reason}");
        assert!(reason.contains("` ends with signal "), "{reason}");
    }

    #[test]
    fn a_text_file_is_refused_with_the_loaders_reason() {
        let scratch = Scratch::new();
        let text = "not a library at all, but long enough to look like one for a moment\n";
        let junk = scratch.write("libflarena.so", &text.repeat(9));
        assert_eq!(version_of(&junk).unwrap_err(), "invalid ELF header");
        assert!(loads_silently(&junk).is_err());
    }
}
