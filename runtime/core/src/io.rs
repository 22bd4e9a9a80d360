//! Files: reading with checks, writing atomically.

pub mod sandbox;
pub mod replace;
pub mod unchanged;
pub mod files;
pub mod image;
pub mod json;
pub mod gguf;
pub mod gguf_tokens;
pub mod idx;
pub mod npy;
pub mod npz;
pub mod onnx;
pub mod safetensors;
pub mod checkpoint;
pub mod serialization;
pub mod tokens;
pub mod table;
pub mod csv;
pub mod ahead;
pub mod wav;
