mod attributes;
mod basic;
mod edges;
mod fork;
mod huge_pages;
mod lost_ranges;
mod pristine;
mod vma_boundaries;
