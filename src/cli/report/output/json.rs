//! Writes the report as JSON: sizes in bytes, and null for unknown values.

use std::io::{self, Write};

use serde_json::{json, Value};

use crate::report::analyse::stats::Estimate;
use crate::report::analyse::{growth_inside, Allocated, Finding, PeakGrowth, Request, StageGrowth};
use crate::report::explain;
use crate::report::model::{Point, SiteHistory, Size, Sizes};
use crate::report::read::FileReport;
use crate::report::sites::{self, SiteTrend, FRAMES};

/// Rises when a field changes its meaning or is removed, not when one is added.
const REPORT_VERSION: u32 = 2;

/// Writes one process at a time. One value for many processes would need several times the memory.
pub fn write(
    out: &mut impl Write,
    findings: &[Finding],
    files: &[FileReport],
    requests: &[Request],
) -> io::Result<()> {
    let files = json!(files);
    write!(
        out,
        "{{\"version\":{REPORT_VERSION},\"files\":{files},\"processes\":["
    )?;
    for (i, finding) in findings.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        write!(out, "{comma}\n{}", process(finding))?;
    }
    writeln!(out, "],\n\"memory_to_request\":{}}}", json!(requests))
}

fn process(finding: &Finding) -> Value {
    let process = finding.process;
    let pace = finding.pace.as_ref();
    let kill = |is_certain: bool| {
        let kill = finding.kill.as_ref();
        kill.filter(|kill| kill.is_certain() == is_certain)
    };
    let mut value = json!({
        "site": process.sites.first(),
        "sites": process.sites,
        "proc": process.proc,
        "program": process.program,
        "began_as": process.began_as,
        "became": process.became,
        "name": process.name,
        "job": process.job,
        "role": process.role,
        "pid": process.pid,
        "processes": process.processes,
        "ended_without_exit": process.ended_without_exit,
        "start": process.start,
        "log": process.log,
        "allocator": process.alloc,
        "markers": process.markers,
        "verdict": finding.verdict.name(),
        "evidence": explain::evidence(finding),
        "growth_inside_stage": growth_inside(finding),
        "remedy": explain::remedy(finding),
        "stage": finding.series.stage,
        "rounds": finding.series.rounds,
        "warm_up_rounds": finding.trend.warm_up,
        "unit": finding.unit.name(),
        "seconds_per_round": pace.map(|pace| pace.seconds.value),
        "pause_not_counted_seconds": pace.and_then(|pace| pace.pause),
        "growth_per_hour": finding.hourly.map(|hourly| hourly.json("bytes_per_hour")),
        "steps": finding.steps,
        "growth": per_round(&finding.trend.slope),
        "growth_of": finding.quantity,
        "growth_that_matters_bytes_per_round": finding.trend.threshold,
        "limit_reached": finding.time_to_limit(),
        "growth_parts_bytes_per_round": finding.parts,
        "typical": sizes(&finding.typical),
        "last_rss_bytes": process.last_rss(),
        "last_pss_bytes": process.last_pss(),
        "peak_rss_bytes": process.peak_rss,
        "cgroup_limit_bytes": process.cgroup_limit,
        "allocated_at": sites::explanation(&process.allocation_sites, finding.verdict),
        "allocation_sites": allocation_sites(&process.allocation_sites),
        "stages": finding.stages.iter().map(stage).collect::<Vec<_>>(),
    });
    // One `json!` cannot have so many fields.
    value["growth_of_peak_in_round"] = json!(finding.peak_growth.as_ref().map(peak_growth));
    value["gpu_growth"] = json!(gpu_growth(finding));
    value["at_limit"] = json!(process.refused);
    value["killed"] = json!(kill(true));
    value["kill_candidate"] = json!(kill(false));
    // Markers cannot tell a process that a signal ended from one that runs.
    value["stopped"] = Value::Null;
    value["exited"] = json!(process.has_exited);
    value["last_marker"] = json!(process.last_visit().map(last_marker));
    value
}

fn peak_growth(peak: &PeakGrowth) -> Value {
    let mut value = per_round(&peak.slope);
    value["before_stage"] = json!(peak.before_stage);
    value
}

fn gpu_growth(finding: &Finding) -> Option<Value> {
    let growth = finding.gpu_growth.as_ref()?;
    Some(json!({
        "stage": finding.series.stage,
        "reserved": growth.reserved_grows.then(|| per_round(&growth.slope)),
        "allocated": (!growth.reserved_grows).then(|| per_round(&growth.slope)),
        "of": match growth.allocated {
            Allocated::Grows | Allocated::GrowsInside => Some("tensors"),
            Allocated::DoesNotGrow => Some("cache"),
            Allocated::Unclear => None,
        },
    }))
}

fn last_marker((stage, point): (&str, &Point)) -> Value {
    json!({
        "t": point.t,
        "stage": stage,
        "round": point.round,
        "rss_bytes": point.sizes.rss(),
    })
}

fn stage(one: &StageGrowth) -> Value {
    json!({
        "stage": one.series.stage,
        "rounds": one.series.rounds,
        "first_rss_bytes": one.series.first_rss(),
        "last_rss_bytes": one.series.last_rss(),
        "peak_rss_bytes": one.series.peak_rss(),
        "growth": one.slope.as_ref().map(per_round),
    })
}

fn per_round(growth: &Estimate) -> Value {
    growth.json("bytes_per_round")
}

fn sizes(sizes: &Sizes) -> Value {
    let known = |(size, field): &(Size, &str)| ((*field).to_owned(), json!(sizes.get(*size)));
    Size::FIELDS.iter().map(known).collect()
}

/// All allocation sites with their whole stacks.
fn allocation_sites(history: &SiteHistory) -> Value {
    let site = |one: &SiteTrend| {
        let stack = history.stacks.get(&one.site);
        json!({
            "site": one.site,
            "first_bytes": one.first_bytes,
            "last_bytes": one.last_bytes,
            "last_bytes_error": one.error,
            "bytes_per_round": one.bytes_per_round(),
            "bytes_per_round_low": one.slope.map(|slope| slope.low),
            "bytes_per_round_high": one.slope.map(|slope| slope.high),
            "blocks": one.blocks,
            "oldest_rounds": one.oldest,
            "median_rounds": one.median,
            "allocated_at": history.headline(one.site, FRAMES),
            "frames": stack.map(|stack| &stack.frames),
            "thread": stack.and_then(|stack| stack.thread.as_deref()),
            "library": stack.and_then(|stack| stack.library.as_deref()),
        })
    };
    sites::trends(history).iter().map(site).collect()
}
