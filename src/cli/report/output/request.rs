//! Words the memory to request: a line of the report, and the forms of NVFlare, Kubernetes and Slurm.

use clap::ValueEnum;
use serde_json::{json, Map, Value};

use crate::report::analyse::{Request, Role};
use crate::report::units::{printable, size, MB};

/// Clients that the line names. Of more it has the largest need.
const NAMED_CLIENTS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    Nvflare,
    Kubernetes,
    Slurm,
}

/// `memory to request: server 1.2 GB, each client at most 900 MB (--request lists them)`; `None` without times.
pub fn sentence(requests: &[Request]) -> Option<String> {
    // The servers come first.
    let roles = requests.chunk_by(|a, b| a.role == b.role);
    let parts: Vec<String> = roles.flat_map(entries).collect();
    let grows = match requests.iter().any(|request| request.grows_beyond) {
        true => "; a process grows: give --rounds N, the rounds of the job, to add the growth until its end",
        false => "",
    };
    (!parts.is_empty()).then(|| format!("memory to request: {}{grows}", parts.join(", ")))
}

/// The entries for the sites of one role.
fn entries(requests: &[Request]) -> Vec<String> {
    let role = match requests[0].role {
        Role::Server => "server",
        Role::Client => "client",
    };
    let named = |one: &Request| format!("{} {}", printable(&one.site), size(one.bytes));
    let largest = size(requests.iter().map(|one| one.bytes).fold(0.0, f64::max));
    match requests.len() {
        1 if role == "server" => vec![format!("{role} {largest}")],
        n if n <= NAMED_CLIENTS => requests.iter().map(named).collect(),
        _ => vec![format!(
            "each {role} at most {largest} (--request lists them)"
        )],
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
        }
    }

    #[test]
    fn few_clients_are_named_and_of_many_the_line_has_the_largest() {
        let line = |clients: &[f64]| {
            let mut all = vec![request("server", 1200.0)];
            let clients = clients.iter().enumerate();
            all.extend(clients.map(|(i, bytes)| request(&format!("site-{}", i + 1), *bytes)));
            sentence(&all).unwrap()
        };
        let server = "memory to request: server 1200.0 MB";
        assert_eq!(line(&[]), server);
        let different = format!("{server}, site-1 400.0 MB, site-2 900.0 MB");
        assert_eq!(line(&[400.0, 900.0]), different);
        let many = line(&[100.0, 200.0, 300.0, 400.0, 500.0]);
        let entry = "each client at most 500.0 MB (--request lists them)";
        assert_eq!(many, format!("{server}, {entry}"));
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
