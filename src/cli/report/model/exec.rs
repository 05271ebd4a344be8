//! Joins the programs of one process: an exec begins another program with the same pid and start time.

use std::collections::HashMap;

use flarena_shared::stages::Stage;

use super::process::Process;

/// Names the program that follows in each process. A program that ended in an exec before it wrote any
/// marker but `load` is no row: it set up the next one, which names it.
pub fn join(processes: &mut Vec<Process>) {
    let mut programs: HashMap<(u32, u64), Vec<usize>> = HashMap::new();
    for (place, process) in processes.iter().enumerate() {
        if let (Some(pid), Some(start), Some(_)) = (process.pid, process.start, process.loaded) {
            programs.entry((pid, start)).or_default().push(place);
        }
    }
    let mut is_removed = vec![false; processes.len()];
    for mut places in programs.into_values() {
        places.sort_by_key(|place| processes[*place].program_key());
        for pair in places.windows(2) {
            let [before, after] = [pair[0], pair[1]];
            if !may_be_same(&processes[before], &processes[after]) {
                continue;
            }
            processes[before].became = Some(name(&processes[after]));
            if has_only_loaded(&processes[before]) {
                is_removed[before] = true;
                let mut began_as = std::mem::take(&mut processes[before].began_as);
                began_as.push(name(&processes[before]));
                processes[after].began_as = began_as;
            }
        }
    }
    let mut removed = is_removed.into_iter();
    processes.retain(|_| !removed.next().unwrap_or(false));
}

/// Processes of two machines may have the same pid and start time.
fn may_be_same(before: &Process, after: &Process) -> bool {
    let hosts = before.host.as_ref().zip(after.host.as_ref());
    !before.has_exited && hosts.is_none_or(|(one, other)| one == other)
}

fn has_only_loaded(process: &Process) -> bool {
    let mut stages = process.stages.iter();
    stages.all(|(stage, _)| **stage == *Stage::Load.name())
}

fn name(process: &Process) -> String {
    let name = process.program.as_ref().or(process.name.as_ref());
    name.unwrap_or(&process.proc).clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::analyse::fixtures::{processes, sample, sizes};
    use crate::report::model::{Sample, Size};

    /// `(program, host, seq, stage)` of one pid, a second apart.
    type Row = (&'static str, &'static str, usize, &'static str);

    fn programs(rows: &[Row]) -> Vec<(String, Vec<String>, Option<String>)> {
        let marker = |(t, &(program, host, seq, stage)): (usize, &Row)| Sample {
            program: Some(program.into()),
            host: Some(host.into()),
            site: None,
            stage: stage.into(),
            t: Some(t as f64),
            ..sample(seq, sizes(&[(Size::Rss, 100.0)]))
        };
        let found = processes(rows.iter().enumerate().map(marker)).into_iter();
        let facts = |one: Process| (one.program.unwrap_or_default(), one.began_as, one.became);
        found.map(facts).collect()
    }

    #[test]
    fn a_program_that_only_loaded_before_an_exec_is_named_by_the_next_one() {
        let rows = [
            ("sh", "a", 0, "load"),
            ("setup.py", "a", 0, "load"),
            ("work.py", "a", 0, "load"),
            ("work.py", "a", 1, "send"),
        ];
        let began_as = ["sh", "setup.py"].map(str::to_owned).to_vec();
        assert_eq!(programs(&rows), [("work.py".to_owned(), began_as, None)]);
    }

    #[test]
    fn a_program_that_worked_before_an_exec_is_a_row_and_names_the_next_one() {
        let rows = [
            ("train.py", "a", 0, "load"),
            ("train.py", "a", 1, "send"),
            ("eval.py", "a", 0, "load"),
        ];
        assert_eq!(
            programs(&rows),
            [
                ("train.py".to_owned(), vec![], Some("eval.py".to_owned())),
                ("eval.py".to_owned(), vec![], None),
            ]
        );
    }

    #[test]
    fn processes_of_two_machines_are_no_programs_of_one() {
        let rows = [("a.py", "a", 0, "load"), ("b.py", "b", 0, "load")];
        let found = programs(&rows).into_iter();
        assert!(found
            .map(|(_, began_as, became)| (began_as, became))
            .all(|one| one == (vec![], None)));
    }
}
