//! Reads how NVFlare started a process and its jobs: the launcher, the parent, the kit, the job's configuration.
//!
//! A job inherits the environment of its parent only from the process launcher. In a container, a pod or a Slurm
//! allocation it gets another one.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use flarena_shared::kernel_path::file_name;
use flarena_shared::role::{self, Proc};
use serde_json::Value;

use super::subject::{is_python, surroundings, Subject};
use crate::control::has_library;
use crate::proc::Process;

/// NVFlare's processes and files around a process.
#[derive(Debug, Default)]
pub struct Deployment {
    /// For a job without the library, if the reason is known.
    pub launch: Option<Launch>,
    /// For a process with the library: the jobs that it has launched and that run without.
    pub jobs_without: Vec<(i32, Launcher)>,
    /// The configuration of a job, for its side.
    pub job_config: Option<Value>,
    pub kit_start: Option<KitStart>,
}

#[derive(Debug)]
pub struct Launch {
    pub launcher: Launcher,
    pub parent_with_library: Option<i32>,
}

/// How a job was launched, as far as the job shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launcher {
    Process,
    Docker,
    Kubernetes,
    Slurm,
}

/// A kit whose `sub_start.sh` restarts it, although a container or systemd does that.
#[derive(Debug)]
pub struct KitStart {
    pub is_in_container: bool,
    /// The kit's script has the option `--foreground`, which NVFlare 2.9.1 added.
    pub knows_foreground: bool,
}

impl Deployment {
    pub fn of(s: &Subject) -> Self {
        let mut found = Self {
            job_config: job_config(s),
            kit_start: kit_start(s),
            ..Self::default()
        };
        let Some(member) = Member::identify(s.process.clone()) else {
            return found;
        };
        if s.mapped_library().is_none() {
            found.launch = member.launch();
            return found;
        }
        let jobs = Process::all().into_iter().filter_map(Member::identify);
        found.jobs_without = jobs
            .filter(|job| launches(member.proc, job.proc))
            .filter_map(|job| {
                let (parent, launcher) = job.parent()?;
                let is_left =
                    parent.pid == s.process.pid && matches!(has_library(&job.process), Ok(false));
                is_left.then_some((job.process.pid, launcher))
            })
            .collect();
        found
    }
}

/// A process of NVFlare, by its command line and environment.
struct Member {
    process: Process,
    arguments: Vec<OsString>,
    proc: Proc,
    site: Option<Vec<u8>>,
    launcher: Launcher,
}

impl Member {
    fn identify(process: Process) -> Option<Self> {
        let program = fs::read_link(process.path("exe")).ok()?;
        if !is_python(&program.to_string_lossy()) {
            return None; // a shell or srun with the job's command line
        }
        let arguments = process.arguments().ok()?;
        let environment = process.environment().unwrap_or_default();
        let words = arguments.iter().map(|word| word.as_encoded_bytes());
        let identity = role::identify(words, surroundings(|name| environment.get(name)));
        let launcher = launcher(
            |name| environment.get(name).is_some(),
            is_in_container(&process),
        );
        Some(Self {
            proc: identity.proc?,
            site: identity.site.map(<[u8]>::to_vec),
            launcher,
            process,
            arguments,
        })
    }

    /// For a job without the library. Its parent has it, or its launcher passes no preload on.
    fn launch(&self) -> Option<Launch> {
        let is_job = matches!(self.proc, Proc::ServerJob | Proc::ClientJob | Proc::Trainer);
        match self.parent() {
            Some((parent, launcher)) => has_library(&parent).ok()?.then_some(Launch {
                launcher,
                parent_with_library: Some(parent.pid),
            }),
            None => (is_job && self.launcher != Launcher::Process).then_some(Launch {
                launcher: self.launcher,
                parent_with_library: None,
            }),
        }
    }

    /// The process that launched this job, and how. Only a job in a container, a pod or an allocation may have one that is
    /// not its ancestor. `None` if several may be it.
    fn parent(&self) -> Option<(Process, Launcher)> {
        let above = |process: &Process| Process::find(process.stat().ok()?.parent).ok();
        let mut ancestors = std::iter::successors(above(&self.process), above);
        let is_launcher = |process: &Process| {
            Self::identify(process.clone()).is_some_and(|parent| launches(parent.proc, self.proc))
        };
        if let Some(parent) = ancestors.find(is_launcher) {
            // A scheduler on this machine may be a descendant; a container's variables are inherited.
            let launcher = match self.launcher {
                Launcher::Slurm => Launcher::Slurm,
                _ => Launcher::Process,
            };
            return Some((parent, launcher));
        }
        if self.launcher == Launcher::Process || self.proc == Proc::Trainer {
            return None;
        }
        let others = Process::all().into_iter().filter_map(Self::identify);
        let mut others: Vec<_> = others
            .filter(|parent| launches(parent.proc, self.proc))
            .filter(|parent| parent.proc == Proc::ServerParent || parent.site == self.site)
            .collect();
        if let Some(kit) = self.kit().filter(|_| self.launcher != Launcher::Kubernetes) {
            others.retain(|parent| parent.kit() == Some(kit));
        }
        let parent = others.pop().filter(|_| others.is_empty())?;
        Some((parent.process, self.launcher))
    }

    /// The `startup` folder of the site's kit, as device and inode. A host may have several federations with sites of the
    /// same name. The launchers of Docker and Slurm show the folder to the job; that of Kubernetes copies it.
    fn kit(&self) -> Option<(u64, u64)> {
        let workspace = workspace(&self.process, &self.arguments)?;
        let startup = fs::metadata(workspace.join("startup")).ok()?;
        Some((startup.dev(), startup.ino()))
    }
}

/// `has` looks up a variable of the job.
fn launcher(has: impl Fn(&str) -> bool, is_in_container: bool) -> Launcher {
    if has("NVFLARE_SLURM_CHILD_PROCESS") {
        Launcher::Slurm
    } else if has("KUBERNETES_SERVICE_HOST") {
        Launcher::Kubernetes
    } else if is_in_container {
        Launcher::Docker
    } else {
        Launcher::Process
    }
}

fn is_in_container(process: &Process) -> bool {
    let marks = ["/.dockerenv", "/run/.containerenv"];
    marks.iter().any(|mark| process.inside(mark).exists())
}

fn launches(parent: Proc, job: Proc) -> bool {
    matches!(
        (parent, job),
        (Proc::ServerParent, Proc::ServerJob)
            | (Proc::ClientParent | Proc::Simulator, Proc::ClientJob)
            | (Proc::ClientJob, Proc::Trainer)
    )
}

fn job_config(s: &Subject) -> Option<Value> {
    let side = match s.proc? {
        proc @ (Proc::ServerJob | Proc::ClientJob) => proc.role(),
        Proc::ServerParent
        | Proc::ClientParent
        | Proc::Trainer
        | Proc::TrainerWorker
        | Proc::Simulator => return None,
    };
    let job = value_of(&s.arguments, "-n")?;
    let folder = workspace(&s.process, &s.arguments)?.join(job);
    let file = format!("config/config_fed_{}.json", side.name());
    let mut apps = fs::read_dir(folder).ok()?.flatten();
    let config = apps.find_map(|app| {
        let is_app = app.file_name().to_string_lossy().starts_with("app_");
        fs::read(is_app.then(|| app.path().join(&file))?).ok()
    })?;
    serde_json::from_slice(&config).ok()
}

/// `None` if it was started with `--foreground`, or if neither a container nor systemd restarts it.
fn kit_start(s: &Subject) -> Option<KitStart> {
    if !matches!(s.proc?, Proc::ServerParent | Proc::ClientParent) {
        return None;
    }
    let shell = Process::find(s.process.stat().ok()?.parent).ok()?;
    let arguments = shell.arguments().ok()?;
    let is_script = |word: &OsString| file_name(&word.to_string_lossy()) == "sub_start.sh";
    let script = arguments.iter().position(is_script)?;
    let is_in_container = is_in_container(&shell);
    let is_of_systemd = s.text("SYSTEMD_EXEC_PID") == shell.pid.to_string();
    let is_in_foreground = arguments[script..]
        .iter()
        .any(|word| word == "--foreground");
    if is_in_foreground || !is_in_container && !is_of_systemd {
        return None;
    }
    let text = fs::read(at(&shell, Path::new(&arguments[script]))).unwrap_or_default();
    Some(KitStart {
        is_in_container,
        knows_foreground: String::from_utf8_lossy(&text).contains("--foreground)"),
    })
}

/// The value of the last option with this name. Python's own `-m` comes first.
fn value_of<'a>(arguments: &'a [OsString], name: &str) -> Option<&'a OsString> {
    let at = arguments.iter().rposition(|word| word == name)?;
    arguments.get(at + 1)
}

/// The folder of the site's kit and jobs, by the command line.
fn workspace(process: &Process, arguments: &[OsString]) -> Option<PathBuf> {
    Some(at(process, Path::new(value_of(arguments, "-m")?)))
}

/// A path of the process, relative to its working directory, as a path of this one.
fn at(process: &Process, path: &Path) -> PathBuf {
    match path.to_str() {
        Some(path) if path.starts_with('/') => process.inside(path),
        _ => process.path("cwd").join(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launcher_is_recognised_by_the_environment_of_the_job() {
        for (name, is_in_container, expected) in [
            ("NVFLARE_SLURM_CHILD_PROCESS", true, Launcher::Slurm),
            ("KUBERNETES_SERVICE_HOST", true, Launcher::Kubernetes),
            ("", true, Launcher::Docker),
            ("", false, Launcher::Process),
        ] {
            assert_eq!(launcher(|asked| asked == name, is_in_container), expected);
        }
    }

    #[test]
    fn a_parent_launches_the_jobs_of_its_side_and_a_job_its_trainers() {
        assert!(launches(Proc::ServerParent, Proc::ServerJob));
        assert!(launches(Proc::ClientParent, Proc::ClientJob));
        assert!(launches(Proc::ClientJob, Proc::Trainer));
        assert!(!launches(Proc::ServerParent, Proc::ClientJob));
        assert!(!launches(Proc::ClientParent, Proc::Trainer));
    }
}
