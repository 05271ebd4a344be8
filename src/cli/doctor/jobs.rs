//! NVFlare's job processes without the library, while the process that launched them has it.
//!
//! A job inherits the environment of its parent only from the process launcher. In a container, a pod or a Slurm
//! allocation it gets another one.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;

use flarena_shared::role::{self, Proc};

use super::finding::Finding;
use super::nvflare::workspace;
use super::python::is_python;
use super::subject::{surroundings, Subject};
use crate::library::search::FILE_NAME;
use crate::proc::Process;

/// How a job was launched, as far as the job shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Launcher {
    Process,
    Docker,
    Kubernetes,
    Slurm,
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

    fn remedy(self) -> &'static str {
        match self {
            Self::Process => {
                "let the program between the two (sudo, env -i, a script) keep LD_PRELOAD, PYTHONPATH and the settings"
            }
            Self::Docker => {
                "name an image with flarena in local/study_runtime.yaml (container: image): NVFlare's Docker \
                 launcher gives a job the environment of that image"
            }
            Self::Kubernetes => {
                "name an image with flarena in local/study_runtime.yaml (container: image, or pod_template): \
                 NVFlare's Kubernetes launcher gives a job the environment of that image"
            }
            Self::Slurm => {
                "export LD_PRELOAD and the settings in slurm.yaml (job_launcher: setup), and name them in \
                 forward_env for a container: NVFlare's Slurm launcher starts a job with an empty environment"
            }
        }
    }
}

/// A process of NVFlare, by its command line and environment.
struct Identified {
    proc: Proc,
    site: Option<Vec<u8>>,
    launcher: Launcher,
}

fn identify(process: &Process) -> Option<Identified> {
    let program = std::fs::read_link(process.path("exe")).ok()?;
    if !is_python(&program.to_string_lossy()) {
        return None; // a shell or srun with the job's command line
    }
    let arguments = process.arguments().ok()?;
    let environment = process.environment().ok();
    let get = |name: &str| -> Option<OsString> { environment.as_ref()?.get(name) };
    let words = arguments.iter().map(|word| word.as_encoded_bytes());
    let identity = role::identify(words, surroundings(get));
    let marks = ["/.dockerenv", "/run/.containerenv"];
    let is_in_container = marks.iter().any(|mark| process.inside(mark).exists());
    Some(Identified {
        proc: identity.proc?,
        site: identity.site.map(<[u8]>::to_vec),
        launcher: Launcher::of(|name| get(name).is_some(), is_in_container),
    })
}

fn launches(parent: Proc, job: Proc) -> bool {
    matches!(
        (parent, job),
        (Proc::ServerParent, Proc::ServerJob)
            | (Proc::ClientParent | Proc::Simulator, Proc::ClientJob)
            | (Proc::ClientJob, Proc::Trainer)
    )
}

/// The `startup` folder of the site's kit, as device and inode. A host may have several federations with sites of the same
/// name. The launchers of Docker and Slurm show the folder to the job; that of Kubernetes copies it.
fn kit(process: &Process) -> Option<(u64, u64)> {
    let workspace = workspace(process, &process.arguments().ok()?)?;
    let startup = std::fs::metadata(workspace.join("startup")).ok()?;
    Some((startup.dev(), startup.ino()))
}

/// The process that launched a job, and how. Only a job in a container, a pod or an allocation may have one that is not
/// its ancestor. `None` if several may be it.
fn parent_of(process: &Process, job: &Identified) -> Option<(Process, Launcher)> {
    let launches_it = |process: &Process| {
        let parent = identify(process)?;
        let is_its_site = parent.proc == Proc::ServerParent || parent.site == job.site;
        launches(parent.proc, job.proc).then_some(is_its_site)
    };
    let above = |process: &Process| Process::find(process.stat().ok()?.parent).ok();
    let mut ancestors = std::iter::successors(above(process), above);
    if let Some(parent) = ancestors.find(|process| launches_it(process).is_some()) {
        // A scheduler on this machine may be a descendant; a container's variables are inherited.
        let launcher = match job.launcher {
            Launcher::Slurm => Launcher::Slurm,
            _ => Launcher::Process,
        };
        return Some((parent, launcher));
    }
    if job.launcher == Launcher::Process || job.proc == Proc::Trainer {
        return None;
    }
    let own = kit(process).filter(|_| job.launcher != Launcher::Kubernetes);
    let mut others = Vec::new();
    for parent in Process::all() {
        match (own, kit(&parent)) {
            _ if launches_it(&parent) != Some(true) => {}
            (Some(own), Some(its)) if own == its => return Some((parent, job.launcher)),
            (Some(_), Some(_)) => {}
            (None, _) | (_, None) => others.push(parent),
        }
    }
    let parent = others.pop().filter(|_| others.is_empty())?;
    Some((parent, job.launcher))
}

/// `None` if the mappings are not readable.
fn has_library(process: &Process) -> Option<bool> {
    let maps = process.maps().ok()?;
    Some(maps.iter().any(|map| map.file_name() == FILE_NAME))
}

/// For a process without the library: it is a job and its parent has the library, or its launcher passes no preload on.
pub fn without_library(subject: &Subject) -> Option<Finding> {
    let job = identify(&subject.process)?;
    let is_job = [Proc::ServerJob, Proc::ClientJob, Proc::Trainer].contains(&job.proc);
    match parent_of(&subject.process, &job) {
        Some((parent, launcher)) if has_library(&parent) == Some(true) => {
            let fact = format!(
                "libflarena.so is not loaded, but process {}, which launched this job, has it",
                parent.pid
            );
            Some(Finding::warning("library", fact).remedy(launcher.remedy()))
        }
        None if is_job && job.launcher != Launcher::Process => {
            let fact = "libflarena.so is not loaded";
            Some(Finding::note("library", fact).remedy(job.launcher.remedy()))
        }
        _ => None,
    }
}

/// For a process with the library: jobs that it has launched and that run without.
pub fn left_behind(subject: &Subject) -> Option<Finding> {
    subject.library()?;
    let own = identify(&subject.process)?.proc;
    let mut jobs = Process::all().into_iter().filter_map(|process| {
        let job = identify(&process).filter(|job| launches(own, job.proc))?;
        let (parent, launcher) = parent_of(&process, &job)?;
        let is_left = parent.pid == subject.process.pid && has_library(&process) == Some(false);
        is_left.then_some((process.pid, launcher))
    });
    let (pid, launcher) = jobs.next()?;
    let more = match jobs.count() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    let fact = format!("this process has launched job process {pid}{more} without libflarena.so");
    Some(Finding::warning("job-without-library", fact).remedy(launcher.remedy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launcher_is_recognised_by_the_environment_of_the_job() {
        let of = |name: &'static str, is_in_container| {
            Launcher::of(|asked| asked == name, is_in_container)
        };
        assert_eq!(of("NVFLARE_SLURM_CHILD_PROCESS", true), Launcher::Slurm);
        assert_eq!(of("KUBERNETES_SERVICE_HOST", true), Launcher::Kubernetes);
        assert_eq!(of("", true), Launcher::Docker);
        assert_eq!(of("", false), Launcher::Process);
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
