pub mod audit;
pub mod fuzz;
pub mod model;
pub mod model_vm;
pub mod scheduler;
pub mod steps;
#[cfg(test)]
mod tests;
pub mod vma_changes;
pub mod walks;
pub mod world;
