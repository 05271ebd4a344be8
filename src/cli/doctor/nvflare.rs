//! NVFlare's advice for memory, as far as a process shows whether it is followed: arenas, cleanups after rounds, and how
//! a kit was started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use flarena_shared::kernel_path::file_name;
use flarena_shared::role::{Proc, Role};
use serde_json::Value;

use super::finding::Finding;
use super::subject::Subject;
use crate::proc::Process;

/// Kits export 4 for clients, too. The library cannot distinguish that from the user's choice.
pub fn kit_arenas(subject: &Subject) -> Option<Finding> {
    let value = subject.get("MALLOC_ARENA_MAX")?;
    let is_default = subject.get("FLARENA_INHERITED").is_some_and(|entries| {
        entries
            .to_string_lossy()
            .split(';')
            .any(|entry| entry == "arena_max=4")
    });
    if subject.role() != Some(Role::Client) || value != "4" || is_default {
        return None;
    }
    let fact =
        "this client has 4 malloc arenas, the kit's value for all roles; NVFlare advises 2, because each arena keeps free memory";
    let remedy = "start the kit with flarena's sub_start.sh, or export MALLOC_ARENA_MAX=2 first";
    Some(Finding::warning("kit-arenas", fact).remedy(remedy))
}

/// NVFlare advises 8 arenas for a highly parallel server. From this number of threads on a server counts as one.
const MANY_THREADS: u64 = 128;

pub fn server_arenas(subject: &Subject) -> Option<Finding> {
    if subject.role() != Some(Role::Server) {
        return None;
    }
    few_arenas(
        &subject.effective("MALLOC_ARENA_MAX")?,
        subject.status.threads,
    )
}

fn few_arenas(arenas: &str, threads: u64) -> Option<Finding> {
    if arenas != "4" || threads < MANY_THREADS {
        return None;
    }
    let fact = format!("{threads} threads of this server share 4 malloc arenas; NVFlare advises 8 for a highly parallel server");
    let finding = Finding::note("server-arenas", fact).remedy("before the server starts:");
    Some(finding.command("export MALLOC_ARENA_MAX=8"))
}

/// The cleanups that the job's configuration asks for on its side.
pub fn job_cleanup(subject: &Subject) -> Option<Finding> {
    let side = match subject.proc()? {
        Proc::ServerJob => Role::Server,
        Proc::ClientJob => Role::Client,
        Proc::ServerParent
        | Proc::ClientParent
        | Proc::Trainer
        | Proc::TrainerWorker
        | Proc::Simulator => return None,
    };
    let job = value_of(&subject.arguments, "-n")?;
    let folder = workspace(&subject.process, &subject.arguments)?.join(job);
    let file = format!("config/config_fed_{}.json", side.name());
    let mut apps = std::fs::read_dir(folder).ok()?.flatten();
    let config = apps.find_map(|app| {
        let is_app = app.file_name().to_string_lossy().starts_with("app_");
        std::fs::read(is_app.then(|| app.path().join(&file))?).ok()
    })?;
    let by_job = cleanup_rounds(&serde_json::from_slice(&config).ok()?);
    let by_variable = rounds_by_variable(subject).filter(|_| side == Role::Client);
    let by_variable = by_variable.map(|rounds| Cleanup {
        setting: CLEANUP_VARIABLE.to_owned(),
        rounds,
    });
    let sources = by_job.into_iter().chain(by_variable);
    Some(cleanup(&sources.min_by_key(Cleanup::never_last)?, side))
}

const CLEANUP_VARIABLE: &str = "NVFLARE_CLIENT_MEMORY_GC_ROUNDS";

/// flarena's hooks obey the variable; NVFlare 2.9 alone ignores it.
fn rounds_by_variable(subject: &Subject) -> Option<u64> {
    subject.library()?;
    let set = subject.get(CLEANUP_VARIABLE);
    let set = set.map(|value| value.to_string_lossy().into_owned());
    let rounds = subject.effective(CLEANUP_VARIABLE).or(set)?;
    rounds.trim().parse().ok().filter(|&rounds| rounds > 0)
}

/// A setting that asks for a cleanup after so many rounds; 0 is never.
struct Cleanup {
    setting: String,
    rounds: u64,
}

impl Cleanup {
    /// A key that sorts 0 rounds behind all others.
    fn never_last(&self) -> u64 {
        self.rounds.wrapping_sub(1)
    }
}

/// The value of the last option with this name. Python's own `-m` comes first.
fn value_of<'a>(arguments: &'a [OsString], name: &str) -> Option<&'a OsString> {
    let at = arguments.iter().rposition(|word| word == name)?;
    arguments.get(at + 1)
}

/// The folder of the site's kit and jobs, by the command line.
pub fn workspace(process: &Process, arguments: &[OsString]) -> Option<PathBuf> {
    Some(at(process, Path::new(value_of(arguments, "-m")?)))
}

/// A path of the process, relative to its working directory, as a path of this one.
fn at(process: &Process, path: &Path) -> PathBuf {
    match path.to_str() {
        Some(path) if path.starts_with('/') => process.inside(path),
        _ => process.path("cwd").join(path),
    }
}

/// Classes of NVFlare 2.7.2 to 2.9.1 that clean up only if their argument `memory_gc_rounds` asks for it. Some have PT or
/// TF before the name. FedAvgLR takes the argument and ignores it; ScatterAndGatherScaffold does not take it.
const WITHOUT_CLEANUP: [&str; 6] = [
    "FedAvg",
    "Scaffold",
    "Cyclic",
    "ClientAPIExecutor",
    "ClientAPILauncherExecutor",
    "InProcessClientAPIExecutor",
];

/// The workflow or executor of a configuration that cleans up most often. `None` if that is unknown.
fn cleanup_rounds(config: &Value) -> Option<Cleanup> {
    let entries = |name: &str| config[name].as_array().into_iter().flatten();
    let executors = entries("executors").map(|entry| &entry["executor"]);
    let found = entries("workflows").chain(executors).filter_map(rounds_of);
    found.min_by_key(Cleanup::never_last)
}

fn rounds_of(component: &Value) -> Option<Cleanup> {
    let (module, class) = component["path"].as_str()?.rsplit_once('.')?;
    let set = component["args"]["memory_gc_rounds"].as_u64();
    let base = ["PT", "TF"]
        .iter()
        .find_map(|part| class.strip_prefix(part));
    let is_known =
        module.starts_with("nvflare.") && WITHOUT_CLEANUP.contains(&base.unwrap_or(class));
    Some(Cleanup {
        setting: format!("memory_gc_rounds of {class}"),
        rounds: set.or(is_known.then_some(0))?,
    })
}

/// The configuration names classes, not the recipe that wrote it. Not every recipe passes the argument on.
fn cleanup(Cleanup { setting, rounds }: &Cleanup, side: Role) -> Finding {
    match rounds {
        0 => {
            let fact = format!("the job never cleans up here ({setting} is 0), so the garbage of a round adds to the peak of the next");
            let side = side.name();
            let remedy = format!(
                "set it to 1 in the job's config_fed_{side}.json (some recipes have {side}_memory_gc_rounds for it); \
                 if the peak stays flat, try 2, then 5"
            );
            Finding::note("job-cleanup", fact).remedy(remedy)
        }
        1 => {
            let fact = format!("the job cleans up after each round ({setting} is 1)");
            let remedy = "if the peak stays flat, try 2, then 5: that costs less CPU time";
            Finding::ok("job-cleanup", fact).remedy(remedy)
        }
        _ => {
            let fact = format!("the job cleans up after {rounds} rounds ({setting})");
            Finding::ok("job-cleanup", fact).remedy("if the peak grows, set it to 1")
        }
    }
}

/// The program that starts a kit and restarts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeper {
    Container,
    Systemd,
}

/// A kit whose `sub_start.sh` restarts it, although a container or systemd does that.
pub fn kit_start(subject: &Subject) -> Option<Finding> {
    let is_kit = matches!(subject.proc()?, Proc::ServerParent | Proc::ClientParent);
    if !is_kit {
        return None;
    }
    let shell = Process::find(subject.process.stat().ok()?.parent).ok()?;
    let arguments = shell.arguments().ok()?;
    let words: Vec<_> = arguments
        .iter()
        .map(|word| word.to_string_lossy())
        .collect();
    let script = words
        .iter()
        .position(|word| file_name(word) == "sub_start.sh")?;
    if words[script..].iter().any(|word| word == "--foreground") {
        return None;
    }
    let is_marked = |mark: &str| shell.inside(mark).exists();
    let keeper = if ["/.dockerenv", "/run/.containerenv"]
        .into_iter()
        .any(is_marked)
    {
        Keeper::Container
    } else if subject.get("SYSTEMD_EXEC_PID")?.to_string_lossy() == shell.pid.to_string() {
        Keeper::Systemd
    } else {
        return None;
    };
    let text = std::fs::read(at(&shell, Path::new(&*words[script]))).unwrap_or_default();
    let knows = String::from_utf8_lossy(&text).contains("--foreground)");
    Some(without_foreground(keeper, knows))
}

/// `knows`: the kit's script has the option, which NVFlare 2.9.1 added.
fn without_foreground(keeper: Keeper, knows: bool) -> Finding {
    let fact = match keeper {
        Keeper::Container => {
            "the kit was started without --foreground: when the container restarts, the kit's script may find its old \
             process number in daemon_pid.fl, and end as if the site were running"
        }
        Keeper::Systemd => {
            "the kit was started without --foreground: it restarts the site itself, and systemd sees no failure"
        }
    };
    let option = if knows { "--foreground" } else { "--once" };
    let remedy = format!("start it with flarena's sub_start.sh KIT/startup {option}");
    Finding::note("kit-foreground", fact).remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn a_server_of_many_threads_with_four_arenas_is_advised_to_have_eight() {
        let fact = few_arenas("4", 200).unwrap().fact;
        assert!(fact.starts_with("200 threads"), "{fact}");
        assert_eq!(few_arenas("8", 200), None);
        assert_eq!(few_arenas("4", 60), None);
    }

    fn rounds(config: &str) -> Option<u64> {
        Some(cleanup_rounds(&serde_json::from_str(config).unwrap())?.rounds)
    }

    #[test]
    fn the_rounds_of_a_job_are_those_of_its_workflow_or_executor() {
        let server = |args: &str| {
            rounds(&format!(
                r#"{{"workflows":[{{"path":"nvflare.app_common.workflows.fedavg.FedAvg","args":{args}}}]}}"#
            ))
        };
        assert_eq!(server(r#"{"num_rounds":3}"#), Some(0));
        assert_eq!(server(r#"{"memory_gc_rounds":5}"#), Some(5));
        let client = r#"{"executors":[{"tasks":["*"],"executor":
            {"path":"nvflare.app_common.executors.client_api_executor.ClientAPIExecutor","args":{"memory_gc_rounds":1}}}]}"#;
        assert_eq!(rounds(client), Some(1));
    }

    #[test]
    fn only_workflows_and_executors_of_nvflare_have_a_known_default() {
        let with = |workflow: &str, component: &str| {
            rounds(&format!(
                r#"{{"workflows":[{{"path":"{workflow}","args":{{}}}}],"components":[{{"path":"{component}","args":{{}}}}]}}"#
            ))
        };
        let scatter = "nvflare.app_common.workflows.scatter_and_gather.ScatterAndGather";
        assert_eq!(with(scatter, "custom.MyFedAvgAggregator"), None);
        assert_eq!(with("custom.MyFedAvg", "other.Part"), None);
    }

    #[test]
    fn the_advice_names_an_argument_that_the_class_has() {
        let with = |class: &str| {
            rounds(&format!(
                r#"{{"workflows":[{{"path":"nvflare.x.{class}","args":{{}}}}]}}"#
            ))
        };
        for class in ["FedAvg", "PTFedAvg", "Scaffold", "Cyclic"] {
            assert_eq!(with(class), Some(0), "{class}");
        }
        for class in ["FedAvgLR", "ScatterAndGatherScaffold", "MyFedAvg"] {
            assert_eq!(with(class), None, "{class}");
        }
    }

    #[test]
    fn of_two_workflows_the_one_that_cleans_up_more_often_counts() {
        let both = |first: u64, second: u64| {
            rounds(&format!(
                r#"{{"workflows":[{{"path":"a.A","args":{{"memory_gc_rounds":{first}}}}},{{"path":"b.B","args":{{"memory_gc_rounds":{second}}}}}]}}"#
            ))
        };
        assert_eq!(both(1, 5), Some(1));
        assert_eq!(both(0, 5), Some(5));
        assert_eq!(both(0, 0), Some(0));
    }

    #[test]
    fn a_workflow_with_an_unknown_default_has_unknown_rounds() {
        let scatter = r#"{"workflows":[{"path":"nvflare.app_common.workflows.scatter_and_gather.ScatterAndGather","args":{}}]}"#;
        assert_eq!(rounds(scatter), None);
        assert_eq!(rounds("7"), None);
    }

    #[test]
    fn a_job_is_advised_one_round_then_two_then_five() {
        let advice = |rounds| {
            let setting = "memory_gc_rounds of FedAvg".to_owned();
            let found = cleanup(&Cleanup { setting, rounds }, Role::Server);
            (found.level, found.remedy.unwrap())
        };
        let (level, remedy) = advice(0);
        assert_eq!(level, Level::Note);
        assert_eq!(
            remedy,
            "set it to 1 in the job's config_fed_server.json (some recipes have server_memory_gc_rounds for it); \
             if the peak stays flat, try 2, then 5"
        );
        assert!(advice(1).0 == Level::Ok && advice(1).1.contains("try 2, then 5"));
        assert!(advice(5).1.contains("set it to 1"));
    }

    #[test]
    fn a_kit_in_a_container_is_advised_the_option_that_its_version_has() {
        let remedy = |knows| without_foreground(Keeper::Container, knows).remedy.unwrap();
        assert!(remedy(true).ends_with("--foreground") && remedy(false).ends_with("--once"));
    }
}
