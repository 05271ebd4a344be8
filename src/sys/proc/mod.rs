pub mod cgroup;
pub mod huge_pages;
pub mod mappings;
pub mod paging;
pub mod procfs;
pub mod sharing;
pub mod swap;
