//! Change points: the levels that explain a series best, each jump having its price.

/// Shorter stays are excursions, not levels.
const LEAST: usize = 3;

/// The first index of each level after the first one.
///
/// Optimal partitioning under squared error. A jump must explain more than noise could, also noise
/// whose samples resemble their neighbours: the price is four times what white noise would need.
pub fn change_points(y: &[f64], noise: f64) -> Vec<usize> {
    let n = y.len();
    let price = price(n, noise);
    let sums = Sums::new(y);
    let mut best = vec![0.0; n + 1];
    let mut last_jump = vec![0; n + 1];
    for end in 1..=n {
        let cost = |&start: &usize| best[start] + sums.error(start, end) + price;
        let last = (end + 1).saturating_sub(LEAST).max(1);
        let start = (0..last)
            .min_by(|a, b| cost(a).total_cmp(&cost(b)))
            .unwrap_or(0);
        // No level ends before it is long enough.
        best[end] = if end < LEAST {
            f64::INFINITY
        } else {
            cost(&start)
        };
        last_jump[end] = start;
    }
    let mut jumps = Vec::new();
    let mut end = n;
    while end > 0 && last_jump[end] > 0 {
        end = last_jump[end];
        jumps.push(end);
    }
    jumps.reverse();
    jumps
}

/// The mean of each level.
pub fn levels(y: &[f64], jumps: &[usize]) -> Vec<f64> {
    bounds(y.len(), jumps)
        .map(|(from, to)| mean(&y[from..to]))
        .collect()
}

/// The squared error of the levels, with the price of their jumps.
pub fn error(y: &[f64], jumps: &[usize], noise: f64) -> f64 {
    let sums = Sums::new(y);
    let error: f64 = bounds(y.len(), jumps)
        .map(|(from, to)| sums.error(from, to))
        .sum();
    error + price(y.len(), noise) * jumps.len() as f64
}

fn price(n: usize, noise: f64) -> f64 {
    12.0 * noise * noise * (n.max(2) as f64).ln()
}

fn bounds(n: usize, jumps: &[usize]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let starts = std::iter::once(0).chain(jumps.iter().copied());
    starts.zip(jumps.iter().copied().chain(std::iter::once(n)))
}

fn mean(y: &[f64]) -> f64 {
    y.iter().sum::<f64>() / y.len().max(1) as f64
}

/// Running sums: the squared error of any stretch in constant time.
struct Sums {
    plain: Vec<f64>,
    squared: Vec<f64>,
}

impl Sums {
    fn new(y: &[f64]) -> Self {
        // Centred: squares of sizes in bytes would eat the digits that the differences need.
        let middle = mean(y);
        let running = |power: i32| {
            let mut sum = 0.0;
            std::iter::once(0.0)
                .chain(y.iter().map(move |v| {
                    sum += (v - middle).powi(power);
                    sum
                }))
                .collect()
        };
        Sums {
            plain: running(1),
            squared: running(2),
        }
    }

    fn error(&self, from: usize, to: usize) -> f64 {
        let sum = self.plain[to] - self.plain[from];
        let squares = self.squared[to] - self.squared[from];
        (squares - sum * sum / (to - from) as f64).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::*;

    #[test]
    fn jumps_are_found_where_they_are() {
        let mut y = vec![100.0; 50];
        y[20..].iter_mut().for_each(|v| *v = 150.0);
        y[35..].iter_mut().for_each(|v| *v = 120.0);
        assert_eq!(change_points(&y, 1.0), [20, 35]);
        assert_eq!(levels(&y, &[20, 35]), [100.0, 150.0, 120.0]);
        assert_eq!(error(&y, &[20, 35], 0.0), 0.0);
    }

    #[test]
    fn noise_has_no_jumps() {
        let mut random = Random::new(7);
        let y: Vec<f64> = (0..200).map(|_| random.normal()).collect();
        assert!(change_points(&y, 1.0).is_empty());
        assert!(change_points(&[], 1.0).is_empty());
        assert!(change_points(&[3.0], 1.0).is_empty());
        assert!(change_points(&[3.0, 9.0, 3.0, 9.0], 1.0).is_empty());
    }
}
