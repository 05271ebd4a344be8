//! The report for programs: sizes in bytes, what is not known is null.

use std::io::{self, Write};

use serde_json::{json, Value};

use crate::report::analyse::finding::Quantity;
use crate::report::analyse::stats::Slope;
use crate::report::analyse::{ProcessReport, StageReport};
use crate::report::model::{Size, Sizes};
use crate::report::read::FileReport;
use crate::report::sites;

/// Changes when a field changes its meaning or goes, not when one is added.
const REPORT_VERSION: u32 = 2;

/// Written process by process: as one value, many processes would take a multiple of the memory.
pub fn write(
    out: &mut impl Write,
    reports: &[ProcessReport],
    files: &[FileReport],
) -> io::Result<()> {
    let files: Vec<Value> = files.iter().map(file).collect();
    let files = Value::from(files);
    write!(
        out,
        "{{\"version\":{REPORT_VERSION},\"files\":{files},\"processes\":["
    )?;
    for (i, report) in reports.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        write!(out, "{comma}\n{}", process(report))?;
    }
    out.write_all(b"]}\n")
}

fn file(file: &FileReport) -> Value {
    json!({
        "path": file.path,
        "lines": file.lines,
        "markers": file.markers,
        "other_lines": file.foreign,
        "fully_read": !file.lost,
        "messages": file.printed().collect::<Vec<_>>(),
    })
}

fn process(report: &ProcessReport) -> Value {
    let (process, finding) = (&report.process, &report.finding);
    json!({
        "site": process.sites.first(),
        "sites": process.sites,
        "proc": process.proc,
        "program": process.program,
        "role": process.role,
        "pid": process.pid,
        "start": process.start,
        "log": process.log,
        "allocator": process.alloc,
        "markers": process.samples,
        "verdict": finding.verdict.name(),
        "evidence": report.evidence,
        "remedy": report.remedy,
        "stage": finding.stage,
        "rounds": finding.rounds,
        "warm_up_rounds": finding.trend.warm_up,
        "unit": finding.unit,
        "seconds_per_round": finding.seconds_per_unit,
        "growth": slope(&finding.trend.slope),
        "growth_of": match finding.quantity {
            Quantity::Footprint => "rss_and_swap",
            Quantity::Live => "live",
            Quantity::Swap => "swap",
            Quantity::Floor => "left_by_collections",
        },
        "growth_that_matters_bytes_per_round": finding.trend.threshold,
        "limit_reached": report.reach.as_ref().map(|reach| json!({
            "limit_bytes": reach.limit,
            "left_bytes": reach.left,
            "seconds": reach.seconds,
            "low_95": reach.earliest,
            "high_95": reach.latest,
        })),
        "growth_parts_bytes_per_round": {
            "live": finding.parts.live,
            "retained_and_recycled": finding.parts.held_back,
            "recycled": finding.parts.recycled,
            "file": finding.parts.file,
            "shmem": finding.parts.shmem,
            "swap": finding.parts.swap,
            "outside_malloc": finding.parts.other,
            "pymalloc": finding.parts.pymalloc,
            "arrow": finding.parts.arrow,
            "pinned": finding.parts.pinned,
        },
        "typical": sizes(&finding.typical),
        "last_rss_bytes": report.last_rss,
        "peak_rss_bytes": report.process.hwm,
        "cgroup_limit_bytes": process.limit,
        "allocated_at": sites::guilty(&report.process.held, report.finding.verdict),
        "allocation_sites": sites::json(&process.held),
        "stages": report.stages.iter().map(stage).collect::<Vec<_>>(),
    })
}

fn stage(stage: &StageReport) -> Value {
    json!({
        "stage": stage.stage,
        "rounds": stage.rounds,
        "first_rss_bytes": stage.first,
        "last_rss_bytes": stage.last,
        "peak_rss_bytes": stage.peak,
        "growth": stage.growth.as_ref().map(slope),
    })
}

fn slope(slope: &Slope) -> Value {
    json!({
        "bytes_per_round": slope.per_x,
        "low_95": slope.low,
        "high_95": slope.high,
    })
}

fn sizes(sizes: &Sizes) -> Value {
    let is_shown = |(size, _): &&(Size, &str)| *size != Size::CgroupReclaimable;
    let shown = Size::FIELDS.iter().filter(is_shown);
    shown.map(|(size, field)| (*field, sizes[*size])).collect()
}
