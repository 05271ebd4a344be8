//! Words the memory to request: a line of the report, and the forms of NVFlare, Kubernetes and Slurm.

use clap::ValueEnum;
use serde_json::{json, Map, Value};

use crate::report::analyse::{Request, Role};
use crate::report::units::{printable, size, MB};

/// Sites with different needs that the line names. Of more it names the largest.
const NAMED_SITES: usize = 3;
/// Clients whose needs differ by less are one entry of the line.
const EQUAL: f64 = 1.1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    Nvflare,
    Kubernetes,
    Slurm,
}

/// `memory to request: server 1.2 GB, each client 900 MB`; `None` without times.
pub fn sentence(requests: &[Request]) -> Option<String> {
    // The servers come first.
    let roles = requests.chunk_by(|a, b| a.role == b.role);
    let parts: Vec<String> = roles.flat_map(entries).collect();
    if parts.is_empty() {
        return None;
    }
    let line = format!("memory to request: {}", parts.join(", "));
    Some([vec![line], notes(requests)].concat().join("; "))
}

/// What the requests do not contain.
pub fn notes(requests: &[Request]) -> Vec<String> {
    let has = |is: fn(&Request) -> bool| requests.iter().any(is);
    let rounds =
        "a process grows: give --rounds N, the rounds of the job, to add the growth until its end";
    let unknown = "a process without rounds grows, and its growth until its end is not added";
    let with_rounds = has(|one| one.grows_beyond && !one.grows_without_rounds).then_some(rounds);
    let without = has(|one| one.grows_without_rounds).then_some(unknown);
    let killed = requests.iter().filter_map(|one| {
        let (limit, site) = (size(one.more_than_bytes?), printable(&one.site));
        Some(format!(
            "{site} needs more than {limit}, the limit at which a process was most likely killed"
        ))
    });
    // Sites that share a control group held as much.
    let groups = requests.chunk_by(|a, b| a.group_held_bytes == b.group_held_bytes);
    let groups = groups.filter_map(|sites| {
        let (held, site) = (size(sites[0].group_held_bytes?), printable(&sites[0].site));
        Some(format!(
            "the control group of {site} held {held}, more than these processes"
        ))
    });
    let growth = with_rounds.into_iter().chain(without).map(str::to_owned);
    let limits = killed.take(NAMED_SITES).chain(groups.take(NAMED_SITES));
    limits.chain(growth).collect()
}

/// The entries for the sites of one role.
fn entries(requests: &[Request]) -> Vec<String> {
    let role = match requests[0].role {
        Role::Server => "server",
        Role::Client => "client",
    };
    let named = |one: &Request| format!("{} {}", printable(&one.site), size(one.bytes));
    let mut sorted = requests.to_vec();
    sorted.sort_by(|a, b| b.bytes.total_cmp(&a.bytes));
    let are_equal = sorted[0].bytes <= EQUAL * sorted[sorted.len() - 1].bytes;
    match requests {
        [one] if one.role == Role::Server => vec![format!("{role} {}", size(one.bytes))],
        [_, _, ..] if are_equal => vec![format!("each {role} {}", size(sorted[0].bytes))],
        few if few.len() <= NAMED_SITES + 1 => few.iter().map(named).collect(),
        [..] => {
            let others = format!("each other {role} {}", size(sorted[NAMED_SITES].bytes));
            let largest = sorted[..NAMED_SITES].iter().map(named);
            largest.chain([others]).collect()
        }
    }
}

/// The text to paste into a job, a pod or a batch script.
pub fn specification(requests: &[Request], form: Form) -> String {
    let mebibytes = |bytes: f64| (bytes / MB).ceil() as u64;
    let memory = |bytes| json!({"memory": format!("{}Mi", mebibytes(bytes))});
    let nvflare = |request: &Request| {
        let site = match request.role {
            Role::Server => "server",
            Role::Client => &request.site,
        };
        Some((site.to_owned(), memory(request.job_bytes?)))
    };
    let kubernetes = |request: &Request| {
        let memory = memory(request.bytes);
        let resources = json!({"resources": {"requests": memory, "limits": memory}});
        (request.site.clone(), resources)
    };
    let slurm = |request: &Request| {
        let (bytes, site) = (mebibytes(request.bytes), printable(&request.site));
        format!("--mem={bytes}M  # {site}\n")
    };
    let requests = requests.iter();
    let sites: Map<String, Value> = match form {
        Form::Nvflare => requests.filter_map(nvflare).collect(),
        Form::Kubernetes => requests.map(kubernetes).collect(),
        Form::Slurm => return requests.map(slurm).collect(),
    };
    format!("{}\n", Value::from(sites))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(site: &str, megabytes: f64) -> Request {
        Request {
            role: if site == "server" {
                Role::Server
            } else {
                Role::Client
            },
            site: site.to_owned(),
            bytes: megabytes * MB,
            job_bytes: Some(megabytes * MB - 100.0 * MB),
            grows_beyond: false,
            grows_without_rounds: false,
            more_than_bytes: None,
            group_held_bytes: None,
        }
    }

    #[test]
    fn growth_that_is_not_added_is_named_with_rounds_only_where_these_help() {
        let line = |grows_without_rounds| {
            let one = request("site-1", 100.0);
            let grows_beyond = true;
            let one = Request {
                grows_beyond,
                grows_without_rounds,
                ..one
            };
            sentence(&[one]).unwrap()
        };
        assert!(line(false).contains("; a process grows: give --rounds N"));
        assert!(line(true).ends_with(
            "; a process without rounds grows, and its growth until its end is not added"
        ));
    }

    #[test]
    fn equal_clients_are_one_entry_and_different_ones_are_named() {
        let line = |clients: &[f64]| {
            let mut all = vec![request("server", 1200.0)];
            let clients = clients.iter().enumerate();
            all.extend(clients.map(|(i, bytes)| request(&format!("site-{}", i + 1), *bytes)));
            sentence(&all).unwrap()
        };
        let server = "memory to request: server 1200.0 MB";
        assert_eq!(line(&[]), server);
        assert_eq!(
            line(&[890.0, 900.0]),
            format!("{server}, each client 900.0 MB")
        );
        let different = format!("{server}, site-1 400.0 MB, site-2 900.0 MB");
        assert_eq!(line(&[400.0, 900.0]), different);
        let many = line(&[100.0, 200.0, 300.0, 400.0, 500.0]);
        assert!(
            many.ends_with(
                "site-5 500.0 MB, site-4 400.0 MB, site-3 300.0 MB, each other client 200.0 MB"
            ),
            "{many}"
        );
        assert_eq!(sentence(&[]), None);
    }

    #[test]
    fn each_form_has_its_unit() {
        let all = [request("server", 1200.0), request("site-1", 900.0)];
        assert_eq!(
            specification(&all, Form::Nvflare),
            "{\"server\":{\"memory\":\"1100Mi\"},\"site-1\":{\"memory\":\"800Mi\"}}\n"
        );
        let kubernetes = specification(&all, Form::Kubernetes);
        assert!(
            kubernetes.contains("\"site-1\":{\"resources\":{\"limits\":{\"memory\":\"900Mi\"}"),
            "{kubernetes}"
        );
        assert_eq!(
            specification(&all, Form::Slurm),
            "--mem=1200M  # server\n--mem=900M  # site-1\n"
        );
    }
}
