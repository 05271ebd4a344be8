//! The script or module that a Python process runs. The kernel's name for it is `python3`, or
//! `pt_main_thread` with PyTorch.
//!
//! The command line can contain tokens. Only the file name of an existing script or the name of a
//! module leaves this module, never an argument or code (`-c`).

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use flarena_shared::{kernel_path, python_line};

use super::Process;

impl Process {
    /// The script or module of a Python process, else the kernel's name.
    pub fn name(&self) -> String {
        let comm = self.comm();
        self.script(&comm).unwrap_or(comm)
    }

    /// The file name of the script that Python runs, or its module. `None` if the process set its
    /// own name.
    pub fn script(&self, comm: &str) -> Option<String> {
        let is_generic = python_line::is_interpreter(comm) || comm == "pt_main_thread";
        if !is_generic || !self.is_python() {
            return None;
        }
        let arguments = self.arguments().ok()?;
        let words = arguments.iter().map(|word| word.as_bytes());
        python_line::read(words).program(|path| self.has_file(path))
    }

    /// Whether the executable file is Python. The first argument may be any text.
    fn is_python(&self) -> bool {
        let exe = fs::read_link(self.path("exe")).unwrap_or_default();
        python_line::is_interpreter(kernel_path::file_name(&exe.to_string_lossy()))
    }

    /// Whether the file exists for the process: in its container and relative to its directory.
    fn has_file(&self, path: &[u8]) -> bool {
        let path = Path::new(OsStr::from_bytes(path));
        let seen = match path.strip_prefix("/") {
            Ok(rest) => self.path("root").join(rest),
            Err(_) => self.path("cwd").join(path),
        };
        fs::metadata(seen).is_ok_and(|found| found.is_file())
    }
}
