//! What the tests share: the golden file format and running the `tessera` program.

pub mod program;
pub mod onnx;
pub mod onnx_cases;
pub mod golden;
pub mod bench;
pub mod peers;
pub mod random;
pub mod random_graph;
pub mod operators;
pub mod representative;
pub mod arguments;
pub mod exact;
pub mod coverage;
pub mod random_schedule;
pub mod bits;
pub mod tiles;
pub mod compare;
pub mod shrink;
pub mod sweep;
pub mod meshes;
pub mod summands;
pub mod mesh_mutants;
pub mod laws;
pub mod random_text;
pub mod fuzz;
pub mod random_sizes;
