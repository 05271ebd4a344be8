pub mod callers;
pub mod dl;
pub mod elf;
pub mod glibc;
pub mod next;
pub mod objects;
pub mod reference;
pub mod symbols;
