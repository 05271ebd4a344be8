pub mod file;
pub mod quiet_write;
