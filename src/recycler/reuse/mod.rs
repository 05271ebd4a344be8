pub mod pristine;
pub mod vma_attributes;
