//! The exit statuses of all subcommands, for scripts.

/// The doctor found a problem, a process met a `--fail-on` condition, or the command of `compare` failed.
pub const PROBLEM: u8 = 1;
/// Something could not be read, reached or written. The rest was done.
pub const UNREADABLE: u8 = 3;
/// A bug of flarena.
pub const INTERNAL: u8 = 70;
/// `flarena run` failed before the command could start; `env`, `nohup` and `timeout` use the same
/// three statuses.
pub const RUN_FAILED: u8 = 125;
/// The command was found but could not be executed.
pub const NOT_EXECUTABLE: u8 = 126;
/// The command was not found.
pub const NOT_FOUND: u8 = 127;

/// The end of the help text. clap exits with 2.
pub const HELP: &str = "\
Exit status:
  0    success, no problem found
  1    doctor found a problem, report exceeded a --fail-on threshold,
       or the command of compare failed
  2    the command line is wrong
  3    something could not be read, reached or written; the rest was done
  70   an internal error of flarena
  125  run: flarena failed before the command started
  126  run: the command cannot be executed
  127  run: the command was not found
  128+ compare: 128 plus the number of the signal that interrupted it
  else run: the exit status of the command";
