pub mod age;
pub mod budget;
pub mod churn;
