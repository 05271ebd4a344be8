pub mod age;
pub mod budget;
pub mod churn;
pub mod room;
