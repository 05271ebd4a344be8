//! Statistics of a series of memory sizes: pure functions of numbers.
//!
//! There is one estimator (`line`) and one classification (`trend`), so that the tables, sentences,
//! JSON and `--fail-on` show the same numbers.

mod change;
mod line;
mod regime;
mod robust;
mod segments;
mod series;
mod teeth;
mod trend;

pub use change::{Change, Verdict as ChangeVerdict};
pub use line::{half_width_of_mean, mean_interval, t_975, Estimate, Line};
pub use regime::{Step, MIN_ROUNDS, MIN_SETTLED_ROUNDS};
pub use robust::{median, quantile};
pub use trend::{material_growth, Trend, TrendClass, MATERIAL_BYTES};
