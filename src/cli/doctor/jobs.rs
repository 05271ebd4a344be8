//! Reads how NVFlare started a process and its jobs: the launcher, the parent, the kit, the job's configuration.
//!
//! A job inherits the environment of its parent only from the process launcher. In a container, a pod or a Slurm
//! allocation it gets another one.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use flarena_shared::kernel_path::file_name;
use flarena_shared::role::{self, Proc};
use serde_json::Value;

use super::subject::{is_python, surroundings, Subject};
use crate::control::has_library;
use crate::proc::Process;

/// NVFlare's processes and files around a process.
#[derive(Debug, Default)]
pub struct Deployment {
    /// For a job without the library: the parent that has it, and how that one or another launched the job.
    pub launch: Option<(Option<i32>, Launcher)>,
    /// For a process with the library: the jobs that it has launched and that run without.
    pub jobs_without: Vec<(i32, Launcher)>,
    /// The configuration of a job, for its side.
    pub job_config: Option<Value>,
    /// The option that a kit lacks whose `sub_start.sh` restarts it, although a container or systemd does that.
    pub kit_option: Option<&'static str>,
}

/// How a job was launched, as far as the job shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launcher {
    Process,
    Docker,
    Kubernetes,
    Slurm,
}

impl Deployment {
    pub fn of(process: &Process, s: &Subject) -> Self {
        let mut found = Self {
            job_config: job_config(process, s),
            kit_option: kit_option(process, s),
            ..Self::default()
        };
        let Some(own) = Member::identify(*process) else {
            return found;
        };
        let members = Process::all().into_iter().filter_map(Member::identify);
        let members: Vec<Member> = members.collect();
        if s.mapped_library().is_none() {
            found.launch = own.launch(&members);
            return found;
        }
        for job in members.iter().filter(|job| own.launches(job)) {
            if let Some((parent, launcher)) = job.parent(&members)
                && parent.process.pid == process.pid
                && matches!(has_library(&job.process), Ok(false))
            {
                found.jobs_without.push((job.process.pid, launcher));
            }
        }
        found
    }
}

/// A process of NVFlare, by its command line and environment.
struct Member {
    process: Process,
    proc: Proc,
    site: Option<Vec<u8>>,
    launcher: Launcher,
    /// The `startup` folder of the site's kit, as device and inode. A host may have several federations with sites of the
    /// same name. The launchers of Docker and Slurm show the folder to the job; that of Kubernetes copies it.
    kit: Option<(u64, u64)>,
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
        let has = |name: &str| environment.get(name).is_some();
        let startup = workspace(&process, &arguments).map(|folder| folder.join("startup"));
        let startup = startup.and_then(|startup| fs::metadata(startup).ok());
        Some(Self {
            proc: identity.proc?,
            site: identity.site.map(<[u8]>::to_vec),
            launcher: Launcher::of(has, is_in_container(&process)),
            kit: startup.map(|startup| (startup.dev(), startup.ino())),
            process,
        })
    }

    fn launches(&self, job: &Member) -> bool {
        matches!(
            (self.proc, job.proc),
            (Proc::ServerParent, Proc::ServerJob)
                | (Proc::ClientParent | Proc::Simulator, Proc::ClientJob)
                | (Proc::ClientJob, Proc::Trainer)
        )
    }

    /// For a job without the library. Its parent has it, or its launcher passes no preload on.
    fn launch(&self, members: &[Member]) -> Option<(Option<i32>, Launcher)> {
        let is_job = matches!(self.proc, Proc::ServerJob | Proc::ClientJob | Proc::Trainer);
        if let Some((parent, launcher)) = self.parent(members) {
            let has_library = has_library(&parent.process).ok()?;
            return has_library.then_some((Some(parent.process.pid), launcher));
        }
        (is_job && self.launcher != Launcher::Process).then_some((None, self.launcher))
    }

    /// The process that launched this job, and how. Only a job in a container, a pod or an allocation may have one that is
    /// not its ancestor. `None` if several may be it.
    fn parent<'a>(&self, members: &'a [Member]) -> Option<(&'a Member, Launcher)> {
        let launchers = members.iter().filter(|parent| parent.launches(self));
        let above = |process: &Process| Process::find(process.stat().ok()?.parent).ok();
        let mut ancestors = std::iter::successors(above(&self.process), above);
        let of = |process| { launchers.clone() }.find(|parent| parent.process == process);
        if let Some(parent) = ancestors.find_map(of) {
            // A scheduler on this machine may be a descendant; a container's variables are inherited.
            let launcher = match self.launcher {
                Launcher::Slurm => Launcher::Slurm,
                Launcher::Process | Launcher::Docker | Launcher::Kubernetes => Launcher::Process,
            };
            return Some((parent, launcher));
        }
        if self.launcher == Launcher::Process || self.proc == Proc::Trainer {
            return None;
        }
        let kit = self.kit.filter(|_| self.launcher != Launcher::Kubernetes);
        let mut others = launchers
            .filter(|parent| parent.proc == Proc::ServerParent || parent.site == self.site)
            .filter(|parent| kit.is_none() || kit == parent.kit);
        let parent = others.next().filter(|_| others.next().is_none())?;
        Some((parent, self.launcher))
    }
}

impl Launcher {
    /// `has` looks up a variable of the job.
    fn of(has: impl Fn(&str) -> bool, is_in_container: bool) -> Self {
        if has("NVFLARE_SLURM_CHILD_PROCESS") {
            Self::Slurm
        } else if has("KUBERNETES_SERVICE_HOST") {
            Self::Kubernetes
        } else if is_in_container {
            Self::Docker
        } else {
            Self::Process
        }
    }

    /// The way in which the job gets the library.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Process => {
                "let the program between the two (sudo, env -i, a script) keep LD_PRELOAD, PYTHONPATH and the settings"
            }
            Self::Docker | Self::Kubernetes => {
                "name an image with flarena in local/study_runtime.yaml (container: image, or in Kubernetes pod_template): \
                 NVFlare's launcher gives a job the environment of that image"
            }
            Self::Slurm => {
                "export LD_PRELOAD and the settings in slurm.yaml (job_launcher: setup), and name them in \
                 forward_env for a container: NVFlare's Slurm launcher starts a job with an empty environment"
            }
        }
    }
}

fn is_in_container(process: &Process) -> bool {
    let marks = ["/.dockerenv", "/run/.containerenv"];
    marks.iter().any(|mark| process.inside(mark).exists())
}

fn job_config(process: &Process, s: &Subject) -> Option<Value> {
    let is_job = matches!(s.proc?, Proc::ServerJob | Proc::ClientJob);
    let job = value_of(&s.arguments, "-n").filter(|_| is_job)?;
    let folder = workspace(process, &s.arguments)?.join(job);
    let file = format!("config/config_fed_{}.json", s.proc?.role().name());
    let mut apps = fs::read_dir(folder).ok()?.flatten();
    let config = apps.find_map(|app| {
        let is_app = app.file_name().to_string_lossy().starts_with("app_");
        fs::read(is_app.then(|| app.path().join(&file))?).ok()
    })?;
    serde_json::from_slice(&config).ok()
}

/// `None` if it was started with `--foreground`, or if neither a container nor systemd restarts it.
fn kit_option(process: &Process, s: &Subject) -> Option<&'static str> {
    if !matches!(s.proc?, Proc::ServerParent | Proc::ClientParent) {
        return None;
    }
    let shell = Process::find(process.stat().ok()?.parent).ok()?;
    let arguments = shell.arguments().ok()?;
    let is_script = |word: &OsString| file_name(&word.to_string_lossy()) == "sub_start.sh";
    let script = arguments.iter().position(is_script)?;
    let is_of_systemd = s.text("SYSTEMD_EXEC_PID") == shell.pid.to_string();
    let mut options = arguments[script..].iter();
    if options.any(|word| word == "--foreground") || !is_of_systemd && !is_in_container(&shell) {
        return None;
    }
    let text = fs::read_to_string(shell.resolve(&arguments[script])).unwrap_or_default();
    // NVFlare 2.9.1 added the option.
    Some(match text.contains("--foreground)") {
        true => "--foreground",
        false => "--once",
    })
}

/// The value of the last option with this name. Python's own `-m` comes first.
fn value_of<'a>(arguments: &'a [OsString], name: &str) -> Option<&'a OsString> {
    let at = arguments.iter().rposition(|word| word == name)?;
    arguments.get(at + 1)
}

/// The folder of the site's kit and jobs, by the command line.
fn workspace(process: &Process, arguments: &[OsString]) -> Option<PathBuf> {
    Some(process.resolve(value_of(arguments, "-m")?))
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
            let found = Launcher::of(|asked| asked == name, is_in_container);
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_parent_launches_the_jobs_of_its_side_and_a_job_its_trainers() {
        let launches = |parent, job| {
            let [parent, job] = [parent, job].map(|proc| Member {
                process: Process::find(1).unwrap(),
                proc,
                site: None,
                launcher: Launcher::Process,
                kit: None,
            });
            parent.launches(&job)
        };
        assert!(launches(Proc::ServerParent, Proc::ServerJob));
        assert!(launches(Proc::ClientParent, Proc::ClientJob));
        assert!(launches(Proc::ClientJob, Proc::Trainer));
        assert!(!launches(Proc::ServerParent, Proc::ClientJob));
        assert!(!launches(Proc::ClientParent, Proc::Trainer));
    }
}
