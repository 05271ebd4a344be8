//! Rules about NVFlare: its advice for memory (arenas, cleanups after rounds, the start of a kit), and jobs that lost
//! the library.

use flarena_shared::role::Role;
use serde_json::Value;

use super::finding::Finding;
use super::subject::Subject;

/// Kits export 4 for clients, too. The library cannot distinguish that from the user's choice.
pub fn kit_arenas(s: &Subject) -> Option<Finding> {
    let inherited = s.text("FLARENA_INHERITED");
    let is_default = inherited.split(';').any(|entry| entry == "arena_max=4");
    if s.role() != Some(Role::Client) || s.text("MALLOC_ARENA_MAX") != "4" || is_default {
        return None;
    }
    let fact =
        "this client has 4 malloc arenas, the kit's value for all roles; NVFlare advises 2, because each arena keeps free memory";
    let remedy = "start the kit with flarena's sub_start.sh, or export MALLOC_ARENA_MAX=2 first";
    Some(Finding::warning(fact).remedy(remedy))
}

/// NVFlare advises 8 arenas for a highly parallel server. From this number of threads on a server counts as one.
const MANY_THREADS: u64 = 128;

pub fn server_arenas(s: &Subject) -> Option<Finding> {
    let threads = s.status.threads;
    let arenas = s.reported("settings", "MALLOC_ARENA_MAX")?;
    if s.role() != Some(Role::Server) || arenas != "4" || threads < MANY_THREADS {
        return None;
    }
    let fact = format!("{threads} threads of this server share 4 malloc arenas; NVFlare advises 8 for a highly parallel server");
    let remedy = "before the server starts:\n    export MALLOC_ARENA_MAX=8";
    Some(Finding::note(fact).remedy(remedy))
}

/// The cleanups that the job's configuration, or on a client a variable, asks for.
pub fn job_cleanup(s: &Subject) -> Option<Finding> {
    let config = s.deployment.job_config.as_ref()?;
    let side = s.proc?.role();
    let by_variable = rounds_by_variable(s).filter(|_| side == Role::Client);
    let by_variable = by_variable.map(|rounds| (CLEANUP_VARIABLE.to_owned(), rounds));
    // The one that cleans up most often counts; 0 is never.
    let settings = cleanups(config).chain(by_variable);
    let (setting, rounds) = settings.min_by_key(|(_, rounds)| rounds.wrapping_sub(1))?;
    let side = side.name();
    Some(match rounds {
        0 => {
            let fact = format!("the job never cleans up here ({setting} is 0), so the garbage of a round adds to the peak of the next");
            Finding::note(fact).remedy(format!(
                "set it to 1 in the job's config_fed_{side}.json (some recipes have {side}_memory_gc_rounds for it); \
                 if the peak stays flat, try 2, then 5"
            ))
        }
        1 => {
            let fact = format!("the job cleans up after each round ({setting} is 1)");
            Finding::ok(fact)
                .remedy("if the peak stays flat, try 2, then 5: that costs less CPU time")
        }
        _ => {
            let fact = format!("the job cleans up after {rounds} rounds ({setting})");
            Finding::ok(fact).remedy("if the peak grows, set it to 1")
        }
    })
}

const CLEANUP_VARIABLE: &str = "NVFLARE_CLIENT_MEMORY_GC_ROUNDS";

/// flarena's hooks obey the variable; NVFlare 2.9 alone ignores it.
fn rounds_by_variable(s: &Subject) -> Option<u64> {
    s.mapped_library()?;
    let reported = s.reported("settings", CLEANUP_VARIABLE);
    let rounds = reported.unwrap_or_else(|| s.text(CLEANUP_VARIABLE));
    rounds.trim().parse().ok().filter(|&rounds| rounds > 0)
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

/// The settings of the workflows and executors in a job's configuration, less those that are unknown. It names classes,
/// not the recipe that wrote it. Not every recipe passes the argument on.
fn cleanups(config: &Value) -> impl Iterator<Item = (String, u64)> {
    let entries = |name: &str| config[name].as_array().into_iter().flatten();
    let executors = entries("executors").map(|entry| &entry["executor"]);
    let components = entries("workflows").chain(executors);
    components.filter_map(|component| {
        let (module, class) = component["path"].as_str()?.rsplit_once('.')?;
        let set = component["args"]["memory_gc_rounds"].as_u64();
        let base = class.strip_prefix("PT").or(class.strip_prefix("TF"));
        let is_known =
            module.starts_with("nvflare.") && WITHOUT_CLEANUP.contains(&base.unwrap_or(class));
        let rounds = set.or(is_known.then_some(0))?;
        Some((format!("memory_gc_rounds of {class}"), rounds))
    })
}

/// A kit whose script restarts it, although a container or systemd does that.
pub fn kit_start(s: &Subject) -> Option<Finding> {
    let option = s.deployment.kit_option?;
    let fact = "the kit was started without --foreground: it restarts the site itself, so systemd sees no failure, and when \
                a container restarts, it may find its old process number in daemon_pid.fl, and end as if the site were running";
    let remedy = format!("start it with flarena's sub_start.sh KIT/startup {option}");
    Some(Finding::note(fact).remedy(remedy))
}

/// Jobs that this process has launched and that run without the library.
pub fn left_jobs(s: &Subject) -> Option<Finding> {
    let (&(pid, launcher), others) = s.deployment.jobs_without.split_first()?;
    let more = match others.len() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    let fact = format!("this process has launched job process {pid}{more} without libflarena.so");
    Some(Finding::warning(fact).remedy(launcher.remedy()))
}
