//! Detects from the command line which NVFlare process this is, and derives its role. Nothing here
//! allocates.
//!
//! Command lines can contain tokens. Only the name of the module, of the site and the job's id leave this module.

use crate::defaults;
use crate::parse::words;

words! {
    /// The side of a federation that a process belongs to. It selects the arena default.
    pub enum Role {
        Client "client"
        Server "server"
    }
}

/// glibc arenas for a process of this role. A process without a known role counts as a client,
/// because it is most likely a training script.
pub fn arenas(role: Option<Role>) -> u32 {
    match role {
        Some(Role::Server) => defaults::ARENAS_SERVER,
        Some(Role::Client) | None => defaults::ARENAS_CLIENT,
    }
}

words! {
    /// A process of an NVFlare deployment. Its name in markers is NVFlare's own abbreviation.
    pub enum Proc {
        ServerParent "SP"
        ServerJob "SJ"
        ClientParent "CP"
        ClientJob "CJ"
        Trainer "TR"
        /// A process of a trainer that computes for it, such as one of PyTorch's DataLoader.
        TrainerWorker "TR worker"
        Simulator "SIM"
    }
}

impl Proc {
    /// The simulator runs the server and, in threads, the clients.
    pub fn role(self) -> Role {
        match self {
            Proc::ServerParent | Proc::ServerJob | Proc::Simulator => Role::Server,
            Proc::ClientParent | Proc::ClientJob | Proc::Trainer | Proc::TrainerWorker => {
                Role::Client
            }
        }
    }

    /// True if a model is trained here, or in a process that this one forks.
    fn trains(self) -> bool {
        matches!(self, Proc::ClientJob | Proc::Trainer | Proc::TrainerWorker)
    }
}

/// NVFlare's entry modules, by the end of their names, because the package root differs between
/// versions.
const MODULES: [(&[u8], Proc); 6] = [
    (b".app.server.server_train", Proc::ServerParent),
    (b".app.server.runner_process", Proc::ServerJob),
    (b".app.client.client_train", Proc::ClientParent),
    (b".app.client.worker_process", Proc::ClientJob),
    (b".app.simulator.simulator_worker", Proc::ClientJob),
    (b".app.simulator.simulator", Proc::Simulator),
];

/// What the environment says about a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Surroundings {
    /// It announces NVFlare's client API: NVFlare has started an external trainer.
    pub has_client_api: bool,
    /// The nearest NVFlare process above this one.
    pub parent: Option<Proc>,
}

/// Which process has received a model by NVFlare's client API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receiver {
    None,
    This,
    /// The process that this one was forked from.
    Parent,
}

/// The process after its start. A fork of a trainer is a worker. A process that receives models is
/// a trainer, however it was started; an in-process trainer keeps the name of its job.
pub fn current(started_as: Option<Proc>, is_fork: bool, receiver: Receiver) -> Option<Proc> {
    let trains = started_as.is_some_and(Proc::trains);
    match (started_as, is_fork, receiver) {
        (None, _, Receiver::This) => Some(Proc::Trainer),
        (_, true, Receiver::This) if trains => Some(Proc::Trainer),
        (None, true, Receiver::Parent) => Some(Proc::TrainerWorker),
        (_, true, _) if trains => Some(Proc::TrainerWorker),
        _ => started_as,
    }
}

/// The result of reading a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Identity<'a> {
    pub proc: Option<Proc>,
    pub site: Option<&'a [u8]>,
    pub job_id: Option<&'a [u8]>,
}

impl Identity<'_> {
    pub fn role(&self) -> Option<Role> {
        self.proc.map(Proc::role)
    }
}

/// Reads a command line. With the client API in its environment, a process without an NVFlare
/// module is an external trainer.
pub fn identify<'a>(
    args: impl Iterator<Item = &'a [u8]>,
    surroundings: Surroundings,
) -> Identity<'a> {
    let mut identity = Identity::default();
    let mut site = None;
    let mut previous: &[u8] = b"";
    let mut program: &[u8] = b"";
    let mut is_worker = false;
    for arg in args {
        is_worker |= starts_worker(previous, arg);
        if previous == b"-m" && identity.proc.is_none() {
            identity.proc = module(arg);
        } else if arg == b"simulator" && is_nvflare_command(program, previous) {
            identity.proc = Some(Proc::Simulator);
        } else if identity.proc.is_some() {
            site = site.or_else(|| site_of(previous, arg));
            identity.job_id = identity.job_id.or_else(|| job_id_of(previous, arg));
        }
        if program.is_empty() {
            program = arg;
        }
        previous = arg;
    }
    let is_below_trainer = || surroundings.parent.is_some_and(Proc::trains);
    if identity.proc.is_some() {
        identity.site = site;
    } else if is_worker && (surroundings.has_client_api || is_below_trainer()) {
        identity.proc = Some(Proc::TrainerWorker);
    } else if surroundings.has_client_api {
        identity.proc = Some(Proc::Trainer);
    }
    identity
}

/// Whether Python's multiprocessing has started this process, by the method spawn or forkserver.
fn starts_worker(previous: &[u8], arg: &[u8]) -> bool {
    arg == b"--multiprocessing-fork"
        || previous == b"-c" && arg.starts_with(b"from multiprocessing.forkserver import main")
}

fn module(name: &[u8]) -> Option<Proc> {
    let is_entry = |(end, _): &&(&[u8], Proc)| name.starts_with(b"nvflare.") && name.ends_with(end);
    MODULES.iter().find(is_entry).map(|(_, proc)| *proc)
}

/// Whether `nvflare` is the command before `simulator`: typed, through its `#!` line, or as
/// `-m nvflare.cli`.
fn is_nvflare_command(program: &[u8], before: &[u8]) -> bool {
    let name = program.rsplit(|byte| *byte == b'/').next();
    let is_python = name.is_some_and(|name| name.starts_with(b"python"));
    let is_script = before.ends_with(b"/nvflare") || before == b"nvflare.cli";
    // `simulator` is the second word if the word before it is the program.
    let is_typed = name == Some(b"nvflare") && std::ptr::eq(program, before);
    is_typed || (is_python && is_script)
}

/// The site in `uid=site-1`, `-c site-1` or `--client site-1`.
fn site_of<'a>(previous: &[u8], arg: &'a [u8]) -> Option<&'a [u8]> {
    let value = if previous == b"-c" || previous == b"--client" {
        arg
    } else {
        arg.strip_prefix(b"uid=")?
    };
    let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    (!value.is_empty() && value.len() <= 64 && value.iter().all(plain)).then_some(value)
}

/// The id in `-n ID` or `--job_id ID`.
fn job_id_of<'a>(previous: &[u8], id: &'a [u8]) -> Option<&'a [u8]> {
    let is_id = (previous == b"-n" || previous == b"--job_id") && short_job(id).is_some();
    is_id.then_some(id)
}

/// The first 8 characters of a job's id; `None` for a text that is no UUID, as NVFlare's ids are.
pub fn short_job(id: &[u8]) -> Option<[u8; 8]> {
    let fits = |(place, byte): (usize, &u8)| match place {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    let is_uuid = id.len() == 36 && id.iter().enumerate().all(fits);
    id.first_chunk().copied().filter(|_| is_uuid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &'static str, has_client_api: bool) -> Identity<'static> {
        let surroundings = Surroundings {
            has_client_api,
            parent: None,
        };
        identify(line.split(' ').map(str::as_bytes), surroundings)
    }

    #[test]
    fn a_fork_of_a_trainer_is_its_worker_and_a_fork_of_the_simulator_is_the_server() {
        let fork = |of| current(Some(of), true, Receiver::None);
        for trainer in [Proc::Trainer, Proc::ClientJob, Proc::TrainerWorker] {
            assert_eq!(fork(trainer), Some(Proc::TrainerWorker));
        }
        for other in [Proc::Simulator, Proc::ServerJob, Proc::ClientParent] {
            assert_eq!(fork(other), Some(other));
        }
        assert_eq!(current(None, true, Receiver::None), None);
    }

    #[test]
    fn a_process_that_receives_models_is_a_trainer_and_its_fork_a_worker() {
        let trainer = Some(Proc::Trainer);
        assert_eq!(current(None, false, Receiver::This), trainer);
        assert_eq!(current(None, true, Receiver::This), trainer);
        assert_eq!(current(trainer, true, Receiver::This), trainer);
        let worker = Some(Proc::TrainerWorker);
        assert_eq!(current(None, true, Receiver::Parent), worker);
        let job = Some(Proc::ClientJob);
        assert_eq!(current(job, false, Receiver::This), job);
    }

    #[test]
    fn a_process_of_multiprocessing_below_a_trainer_is_its_worker() {
        let spawned = [
            "python3",
            "-c",
            "from multiprocessing.spawn import spawn_main",
            "--multiprocessing-fork",
        ];
        let server = [
            "python3",
            "-c",
            "from multiprocessing.forkserver import main; main()",
        ];
        let below = |args: &[&'static str], parent| {
            let surroundings = Surroundings {
                has_client_api: false,
                parent,
            };
            identify(args.iter().map(|arg| arg.as_bytes()), surroundings).proc
        };
        for args in [&spawned[..], &server] {
            for parent in [Proc::ClientJob, Proc::Trainer] {
                assert_eq!(below(args, Some(parent)), Some(Proc::TrainerWorker));
            }
            assert_eq!(below(args, Some(Proc::ServerJob)), None);
            assert_eq!(below(args, None), None);
        }
        assert_eq!(below(&["python3", "eval.py"], Some(Proc::ClientJob)), None);
    }

    #[test]
    fn each_nvflare_process_is_recognised() {
        let base = "python3 -u -m nvflare.private.fed";
        for (rest, proc, site) in [
            (
                ".app.server.server_train -m /w -s fed_server.json",
                Proc::ServerParent,
                None,
            ),
            (
                ".app.server.runner_process -m /w -n 42",
                Proc::ServerJob,
                None,
            ),
            (
                ".app.client.client_train -m /w --set uid=site-1",
                Proc::ClientParent,
                Some("site-1"),
            ),
            (
                ".app.client.worker_process -n 42 -c site-2",
                Proc::ClientJob,
                Some("site-2"),
            ),
            (".app.simulator.simulator -n 2", Proc::Simulator, None),
            (
                ".app.simulator.simulator_worker --client site-1",
                Proc::ClientJob,
                Some("site-1"),
            ),
        ] {
            let line = format!("{base}{rest}").leak();
            let identity = of(line, false);
            assert_eq!(identity.proc, Some(proc), "{rest}");
            assert_eq!(identity.site, site.map(str::as_bytes), "{rest}");
        }
    }

    #[test]
    fn each_command_that_starts_the_simulator_is_recognised() {
        for line in [
            "nvflare simulator -n 2 job",
            "/venv/bin/nvflare simulator job",
            "/venv/bin/python3.11 /venv/bin/nvflare simulator -c site-1 job",
            "python3 -u -m nvflare.cli simulator job",
        ] {
            assert_eq!(of(line, false).proc, Some(Proc::Simulator), "{line}");
        }
        for line in [
            "nvflare poc start simulator",
            "grep /bin/nvflare simulator",
            "python3 train.py nvflare simulator",
            "nvflare-tool simulator",
        ] {
            assert_eq!(of(line, false).proc, None, "{line}");
        }
    }

    #[test]
    fn docs_markers_md_lists_every_process() {
        let page = include_str!("../../docs/markers.md");
        for proc in Proc::ALL {
            assert!(
                page.contains(&format!("\n| `{}` | ", proc.name())),
                "{proc:?}"
            );
        }
    }

    #[test]
    fn a_process_without_a_known_role_gets_the_arenas_of_a_client() {
        assert_eq!(arenas(Some(Role::Server)), defaults::ARENAS_SERVER);
        assert_eq!(arenas(Some(Role::Client)), defaults::ARENAS_CLIENT);
        assert_eq!(arenas(None), defaults::ARENAS_CLIENT);
    }

    #[test]
    fn the_job_of_a_process_is_the_uuid_after_n_or_job_id() {
        const ID: &str = "1b4e28ba-2fa1-11d2-883f-0016D3CCA427";
        let job = |options: String| {
            let line =
                format!("python3 -m nvflare.private.fed.app.client.worker_process {options}");
            of(line.leak(), false).job_id
        };
        assert_eq!(job(format!("-c site-1 -n {ID}")), Some(ID.as_bytes()));
        assert_eq!(job(format!("--job_id {ID} -n 2")), Some(ID.as_bytes()));
        for other in ["-n simulate_job", "-n 2", "-n", &format!("-t {ID}")] {
            assert_eq!(job(other.to_owned()), None, "{other}");
        }
        assert_eq!(of(format!("head -n {ID}").leak(), false).job_id, None);
        assert_eq!(short_job(ID.as_bytes()), Some(*b"1b4e28ba"));
        for odd in [
            &ID[1..],
            &ID.replace("28ba-", "28baf"),
            &ID.replace('f', "g"),
            "",
        ] {
            assert_eq!(short_job(odd.as_bytes()), None, "{odd}");
        }
    }

    #[test]
    fn the_first_site_after_the_module_is_used() {
        let worker = "-m nvflare.private.fed.app.client.worker_process";
        let line = format!("python3 -c site-1 {worker} -c site-2 -c site-3").leak();
        assert_eq!(of(line, false).site, Some(&b"site-2"[..]));
    }

    #[test]
    fn a_script_is_a_trainer_only_with_the_client_api_in_its_environment() {
        assert_eq!(
            of("python3 -u custom/client.py", true).proc,
            Some(Proc::Trainer)
        );
        assert_eq!(
            of("python3 -u custom/client.py", false),
            Identity::default()
        );
    }

    #[test]
    fn a_similar_module_name_is_not_nvflares() {
        assert_eq!(
            of("python3 -m my.app.server.server_train", false).proc,
            None
        );
        assert_eq!(
            of("grep nvflare.private.fed.app.server.server_train", false).proc,
            None
        );
    }

    #[test]
    fn options_of_other_programs_are_not_read_as_a_site() {
        assert_eq!(of("bash -c secret-token", false).site, None);
        let odd = "python3 -m nvflare.private.fed.app.client.worker_process -c a/b=c";
        assert_eq!(of(odd, false).site, None);
    }
}
