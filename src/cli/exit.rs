//! Exit statuses, one list for every subcommand, so that scripts can rely on them.

/// The answer is bad: the doctor found a problem, a report crossed its `--fail-on` threshold.
pub const BAD_ANSWER: u8 = 1;
/// Something could not be read, reached or written. What could be done was done.
pub const UNREADABLE: u8 = 3;
/// A fault of flarena itself.
pub const INTERNAL: u8 = 70;
/// `flarena run` failed before the command could start (as `env`, `nohup` and `timeout` have it).
pub const RUN_FAILED: u8 = 125;
/// The command was found and could not be executed.
pub const NOT_EXECUTABLE: u8 = 126;
/// The command was not found.
pub const NOT_FOUND: u8 = 127;

/// The foot of every help text. 2 is clap's.
pub const HELP: &str = "\
Exit status:
  0    done, no problem found
  1    the answer is bad: doctor found a problem, report crossed --fail-on
  2    the command line is wrong
  3    something could not be read, reached or written; the rest was done
  125  run: failed before the command started
  126  run: the command cannot be executed
  127  run: the command was not found
  else run: the command's own exit status";
