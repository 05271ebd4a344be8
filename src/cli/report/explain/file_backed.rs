//! Mapped files or shared memory grow.

use crate::report::analyse::finding::Finding;
use crate::report::explain::phrases::{grows, shares};
use crate::report::model::Process;

pub fn sentence(process: &Process, finding: &Finding) -> String {
    let taken_back = if is_shared(finding) {
        "Nothing takes shared memory back while it is in use."
    } else {
        "The kernel takes pages of files back when it needs memory."
    };
    let (grows, shares) = (grows(finding), shares(process, finding));
    format!("{grows}: {shares}. {taken_back}")
}

pub fn remedy(finding: &Finding) -> &'static str {
    if is_shared(finding) {
        "look into /dev/shm: tensors shared between processes that nobody unlinks"
    } else {
        "nothing to set; if the cgroup's limit is near, map less of the data set or model"
    }
}

fn is_shared(finding: &Finding) -> bool {
    finding.parts.shmem > finding.parts.file
}
