pub mod cgroup;
pub mod huge_pages;
pub mod procfs;
pub mod sharing;
