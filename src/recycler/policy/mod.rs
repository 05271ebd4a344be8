pub mod age;
pub mod budget;
pub mod churn;
pub mod pauses;
#[cfg(test)]
pub mod pauses_tests;
