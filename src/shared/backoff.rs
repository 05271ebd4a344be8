//! Exponential back-off: a value that doubles after each failure, within bounds. Pure.
//!
//! The value is a time to wait, or a factor. The caller decides what counts as a failure and keeps
//! the time of its last attempt.

use std::ops::{Add, Div};

/// The value starts at `initial`. After `lengthen` it is at least `shortest`. It is never above
/// `longest`.
#[derive(Clone, Copy, Debug)]
pub struct Backoff<T> {
    initial: T,
    shortest: T,
    longest: T,
    value: T,
}

impl<T: Copy> Backoff<T> {
    /// The value starts at `shortest`.
    pub const fn between(shortest: T, longest: T) -> Backoff<T> {
        Backoff {
            initial: shortest,
            shortest,
            longest,
            value: shortest,
        }
    }

    /// Sets the first value, which may lie below `shortest`.
    pub const fn starting_at(self, initial: T) -> Backoff<T> {
        Backoff {
            initial,
            value: initial,
            ..self
        }
    }

    pub const fn value(&self) -> T {
        self.value
    }

    /// Sets the value back to the first one.
    pub fn reset(&mut self) {
        self.value = self.initial;
    }

    pub fn set_shortest(&mut self) {
        self.value = self.shortest;
    }
}

impl<T: Copy + Ord + Add<Output = T>> Backoff<T> {
    /// Doubles the value.
    pub fn lengthen(&mut self) {
        self.value = (self.value + self.value).clamp(self.shortest, self.longest);
    }
}

impl<T: Copy + Div<u32, Output = T>> Backoff<T> {
    /// Halves the value, also to less than `shortest`.
    pub fn shorten(&mut self) {
        self.value = self.value / 2;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn values_of_lengthening<const N: usize>(backoff: &mut Backoff<Duration>) -> [Duration; N] {
        std::array::from_fn(|_| {
            backoff.lengthen();
            backoff.value()
        })
    }

    #[test]
    fn lengthening_doubles_up_to_the_longest_value() {
        let mut backoff = Backoff::between(SECOND, 5 * SECOND);
        assert_eq!(backoff.value(), SECOND);
        let expected = [2, 4, 5, 5].map(|seconds| seconds * SECOND);
        assert_eq!(values_of_lengthening(&mut backoff), expected);
    }

    #[test]
    fn a_start_below_the_shortest_value_is_lengthened_to_the_shortest() {
        for initial in [Duration::ZERO, SECOND / 4] {
            let mut backoff = Backoff::between(SECOND, 5 * SECOND).starting_at(initial);
            assert_eq!(backoff.value(), initial);
            let expected = [1, 2, 4].map(|seconds| seconds * SECOND);
            assert_eq!(values_of_lengthening(&mut backoff), expected);
        }
    }

    #[test]
    fn a_reset_restores_the_start_and_set_shortest_the_shortest_value() {
        let mut backoff = Backoff::between(SECOND, 5 * SECOND).starting_at(Duration::ZERO);
        backoff.lengthen();
        backoff.lengthen();
        backoff.set_shortest();
        assert_eq!(backoff.value(), SECOND);
        backoff.reset();
        assert_eq!(backoff.value(), Duration::ZERO);
    }

    #[test]
    fn a_shortened_value_may_fall_below_the_shortest() {
        let mut backoff = Backoff::between(SECOND, 5 * SECOND);
        backoff.shorten();
        assert_eq!(backoff.value(), SECOND / 2);
        backoff.lengthen();
        assert_eq!(backoff.value(), SECOND);
    }

    #[test]
    fn factors_back_off_as_times_do() {
        let mut factor = Backoff::<u64>::between(1, 1 << 10);
        for _ in 0..20 {
            factor.lengthen();
        }
        assert_eq!(factor.value(), 1 << 10);
    }
}
