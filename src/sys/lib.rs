//! The process that we are in: what it was told, who owns its malloc, what the system says of it.
//! The lowest room: it knows nothing of allocators. Nothing here allocates but `identity`, which
//! cold paths alone may ask.

// Constructors here initialise statics; nothing asks for a default value.
#![allow(clippy::new_without_default)]

pub mod abort;
pub mod clock;
pub mod config;
pub mod env;
pub mod errno;
pub mod identity;
pub mod io;
pub mod loader;
pub mod owner;
pub mod proc;
pub mod seccomp;
pub mod sync;
pub mod thread;
