//! Allocation sites as the library writes them to the marker file and the control channel, and as
//! the command reads them. They contain code locations and sizes, never arguments or values.

use serde::{Deserialize, Serialize};

use crate::marker::ShortHash;

/// The largest number of sites in a record. The other sites are summed in `rest`.
pub const MAX_SITES_PER_RECORD: usize = 20;

/// One frame: the file as the code object names it, the line, the function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame(pub String, pub i32, pub String);

/// The place that allocated blocks: Python frames, the innermost first. Without frames: the thread
/// and the library that called malloc.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stack {
    /// Numbered from 1 in each process.
    pub site: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<Frame>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
}

/// The live blocks of one site: the large ones, and an estimate of the small ones from its samples. Ages are in
/// rounds; `None` without rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Holding {
    /// 0 for the sum of the other sites.
    #[serde(default)]
    pub site: u32,
    pub bytes: u64,
    pub blocks: u64,
    /// Standard error of `bytes`; 0 without small blocks.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub error: u64,
    pub oldest: Option<i64>,
    pub median: Option<i64>,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// The estimated total of small blocks, from samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SmallBlocks {
    pub bytes: u64,
    /// Standard error of `bytes`.
    pub error: u64,
    /// The live blocks from which the others are estimated.
    pub samples: u64,
    /// One sample for this many allocated bytes.
    pub period: u64,
    /// Samples since the start of the process that found no room in the table.
    #[serde(default)]
    pub lost: u64,
}

/// Identifies one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    pub pid: u32,
    #[serde(default)]
    pub start: u64,
    pub boot: Option<ShortHash>,
}

/// A record about sites in the marker file; `kind` names its type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Record {
    /// The stack of a site, written once, before the first record that refers to it.
    Stack {
        v: u32,
        #[serde(flatten)]
        owner: Owner,
        #[serde(flatten)]
        stack: Stack,
    },
    /// The blocks of each site at a marker, the largest first.
    Sites {
        v: u32,
        t: f64,
        mono: Option<f64>,
        #[serde(flatten)]
        owner: Owner,
        /// The marker's `seq`.
        marker: u64,
        round: Option<i64>,
        sites: Vec<Holding>,
        rest: Holding,
        /// `None` if small blocks are not sampled.
        #[serde(skip_serializing_if = "Option::is_none")]
        small: Option<SmallBlocks>,
        /// As in [`Who`].
        #[serde(skip_serializing_if = "Option::is_none")]
        before_bytes: Option<u64>,
    },
}

/// The answer of a process to `who`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Who {
    pub pid: u32,
    /// Whether blocks are recorded.
    pub on: bool,
    /// Whether Python's frames are read.
    pub python: bool,
    /// The reason if blocks are not recorded or frames are not read.
    pub reason: Option<String>,
    pub round: Option<i64>,
    pub sites: Vec<Holding>,
    pub rest: Holding,
    /// `None` if small blocks are not sampled.
    pub small: Option<SmallBlocks>,
    /// Live memory that was allocated before sites were turned on in the running process; `None` if they
    /// were on from its start.
    pub before_bytes: Option<u64>,
    /// Live memory in small blocks if these are not sampled; `None` if unknown.
    pub small_bytes: Option<u64>,
    /// Arenas of Python's allocator for objects up to 512 bytes, which no site sees.
    pub pymalloc_bytes: Option<u64>,
    pub stacks: Vec<Stack>,
}

impl Frame {
    /// `fedavg.py:351 in aggregate`
    pub fn short(&self) -> String {
        let Frame(file, line, function) = self;
        let name = file.rsplit('/').next().unwrap_or(file);
        let function = function.rsplit("<locals>.").next().unwrap_or(function);
        let function = function.rsplit('.').next().unwrap_or(function);
        format!("{name}:{line} in {function}")
    }

    /// Whether the frame is library code, which allocates for its caller. The caller's line is more
    /// useful to a reader.
    fn is_library_code(&self) -> bool {
        let file = self.0.as_str();
        let within = |part: &str| file.contains(part);
        file.starts_with('<') && file != "<string>" && file != "<stdin>"
            || within("/numpy/")
            || within("/torch/")
            || within("/lib/python3") && !within("-packages/")
            || within("/flarena/_")
    }
}

impl Stack {
    /// Whether both stacks have the same text. Two instructions of one line are two sites.
    pub fn has_same_text(&self, other: &Stack) -> bool {
        (&self.frames, &self.thread, &self.library)
            == (&other.frames, &other.thread, &other.library)
    }

    /// The frames from the first one of the user's code to the outermost.
    pub fn user_frames(&self) -> &[Frame] {
        let first = self
            .frames
            .iter()
            .position(|frame| !frame.is_library_code());
        self.frames.get(first.unwrap_or(0)..).unwrap_or_default()
    }

    /// `fedavg.py:351 in aggregate <- controller.py:90 in run`, with this many frames.
    pub fn headline(&self, frames: usize) -> String {
        if self.frames.is_empty() {
            let thread = self.thread.as_deref().unwrap_or("?");
            let library = self.library.as_deref().unwrap_or("an unknown library");
            return format!("thread {thread}, without Python, in {library}");
        }
        let frames: Vec<String> = self
            .user_frames()
            .iter()
            .take(frames)
            .map(Frame::short)
            .collect();
        frames.join(" <- ")
    }

    /// The whole stack in one line, the outermost frame first, for flame graphs.
    pub fn folded(&self) -> String {
        if self.frames.is_empty() {
            return self.headline(1).replace(';', ",");
        }
        let frames: Vec<String> = self
            .frames
            .iter()
            .rev()
            .map(|frame| frame.short().replace(';', ","))
            .collect();
        frames.join(";")
    }
}

impl Holding {
    /// The 95 % interval of the estimate reaches zero.
    pub fn may_be_zero(&self) -> bool {
        1.96 * self.error as f64 >= self.bytes as f64 && self.error > 0
    }

    /// Adds the blocks of `other`. The median is that of the site with more bytes.
    pub fn add(&mut self, other: &Holding) {
        if other.bytes > self.bytes {
            self.median = other.median;
        }
        // A record is untrusted input, so its sums must not overflow.
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.blocks = self.blocks.saturating_add(other.blocks);
        let square = |error: u64| error as f64 * error as f64;
        self.error = (square(self.error) + square(other.error)).sqrt() as u64;
        self.oldest = self.oldest.max(other.oldest);
    }
}

impl Record {
    /// The line in the marker file, with its newline.
    pub fn to_json_line(&self) -> String {
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(file: &str, line: i32, function: &str) -> Frame {
        Frame(file.into(), line, function.into())
    }

    fn stack() -> Stack {
        Stack {
            site: 3,
            frames: vec![
                frame(
                    "/v/lib/python3.11/site-packages/numpy/core/numeric.py",
                    191,
                    "ones",
                ),
                frame(
                    "/v/lib/python3.11/site-packages/nvflare/fedavg.py",
                    351,
                    "FedAvg.aggregate",
                ),
                frame("/job/run.py", 9, "main.<locals>.step"),
            ],
            ..Stack::default()
        }
    }

    #[test]
    fn the_headline_begins_with_the_users_code() {
        assert_eq!(
            stack().headline(2),
            "fedavg.py:351 in aggregate <- run.py:9 in step"
        );
        let mut inside = stack();
        inside.frames.truncate(1);
        assert_eq!(inside.headline(2), "numeric.py:191 in ones");
        let native = Stack {
            thread: Some("worker".into()),
            library: Some("libx.so".into()),
            ..Stack::default()
        };
        assert_eq!(
            native.headline(2),
            "thread worker, without Python, in libx.so"
        );
    }

    #[test]
    fn sums_of_huge_holdings_saturate() {
        let all = Holding {
            bytes: u64::MAX,
            blocks: u64::MAX,
            error: u64::MAX,
            ..Holding::default()
        };
        let mut sum = all;
        sum.add(&all);
        assert_eq!(sum, all);
    }

    #[test]
    fn a_folded_stack_begins_with_the_outermost_frame() {
        let expected = "run.py:9 in step;fedavg.py:351 in aggregate;numeric.py:191 in ones";
        assert_eq!(stack().folded(), expected);
    }

    #[test]
    fn the_median_age_of_a_line_is_that_of_its_large_blocks() {
        let holding = |bytes, blocks, median| Holding {
            bytes,
            blocks,
            median: Some(median),
            ..Holding::default()
        };
        let (large, small) = (holding(160 << 20, 20, 10), holding(1 << 19, 1561, 17));
        for (mut sum, other) in [(large, small), (small, large)] {
            sum.add(&other);
            assert_eq!((sum.median, sum.blocks), (Some(10), 1581));
        }
    }

    #[test]
    fn records_parse_to_what_was_written() {
        let owner = Owner {
            pid: 7,
            start: 99,
            boot: None,
        };
        let stack_record = Record::Stack {
            v: 1,
            owner,
            stack: stack(),
        };
        let sites_record = Record::Sites {
            v: 1,
            t: 1.5,
            mono: Some(0.5),
            owner,
            marker: 4,
            round: Some(2),
            sites: vec![Holding {
                site: 3,
                bytes: 8,
                blocks: 1,
                error: 5,
                oldest: Some(2),
                median: Some(0),
            }],
            rest: Holding::default(),
            small: Some(SmallBlocks {
                bytes: 8,
                samples: 1,
                ..SmallBlocks::default()
            }),
            before_bytes: Some(5),
        };
        for record in [stack_record, sites_record] {
            let line = record.to_json_line();
            assert_eq!(
                serde_json::from_str::<Record>(&line).unwrap(),
                record,
                "{line}"
            );
        }
    }
}
