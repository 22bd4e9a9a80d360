//! Files: reading with checks, writing atomically.

pub mod ahead;
pub mod sandbox;
pub mod replace;
pub mod files;
pub mod csv;
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
pub mod table;
pub mod tokens;
pub mod wav;
