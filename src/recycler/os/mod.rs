pub mod capabilities;
pub mod huge_pages;
pub mod linux;
pub mod syscalls;
pub mod throttle;
pub mod vm;
pub mod zeroing;
