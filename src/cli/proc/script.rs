//! Which program a Python process runs. The kernel calls them all `python3`, or `pt_main_thread` once they have PyTorch.
//!
//! Of the command line, which holds tokens, nothing but the program's own name leaves this file: that of a script that
//! is there, or of a module. Never an argument, code (`-c`), or what stands where no script is found.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use flarena_shared::{kernel_path, python_line};

use super::Process;

impl Process {
    /// The name of the program: its script's or module's where the kernel's name tells Python only.
    pub fn name(&self) -> String {
        let comm = self.comm();
        self.script(&comm).unwrap_or(comm)
    }

    /// The file name of the script that Python runs, or its module; none if the process chose a name for itself.
    pub fn script(&self, comm: &str) -> Option<String> {
        let says_nothing = python_line::is_interpreter(comm) || comm == "pt_main_thread";
        if !says_nothing || !self.is_python() {
            return None;
        }
        let arguments = self.arguments().ok()?;
        let words = arguments.iter().map(|word| word.as_bytes());
        python_line::read(words).program(|path| self.has_file(path))
    }

    /// What argv says may be another program's: the file that is mapped tells.
    fn is_python(&self) -> bool {
        let exe = fs::read_link(self.path("exe")).unwrap_or_default();
        python_line::is_interpreter(kernel_path::file_name(&exe.to_string_lossy()))
    }

    /// As the process sees it: in its container, from where it stands.
    fn has_file(&self, path: &[u8]) -> bool {
        let path = Path::new(OsStr::from_bytes(path));
        let seen = match path.strip_prefix("/") {
            Ok(rest) => self.path("root").join(rest),
            Err(_) => self.path("cwd").join(path),
        };
        fs::metadata(seen).is_ok_and(|found| found.is_file())
    }
}
