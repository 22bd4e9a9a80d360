//! Files: reading with checks, writing atomically.

pub mod csv;
pub mod files;
pub mod idx;
pub mod npy;
pub mod npz;
pub mod safetensors;
pub mod stored;
pub mod tokens;
