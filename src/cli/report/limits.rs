//! How much is shown of many processes.

/// How much of a long list people can read, and a browser can show.
pub struct Limits {
    pub all: bool,
}

impl Limits {
    fn at_most(&self, most: usize, processes: usize) -> usize {
        if self.all {
            processes
        } else {
            processes.min(most)
        }
    }

    /// Rows of the overview on a terminal.
    pub fn rows(&self, processes: usize) -> usize {
        self.at_most(40, processes)
    }

    /// Processes shown with their stages on a terminal.
    pub fn details(&self, processes: usize) -> usize {
        self.at_most(10, processes)
    }

    /// Rows of the overview on a page.
    pub fn listed(&self, processes: usize) -> usize {
        self.at_most(1000, processes)
    }

    /// Processes drawn in charts.
    pub fn drawn(&self, processes: usize) -> usize {
        self.at_most(32, processes)
    }
}
