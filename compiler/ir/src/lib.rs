//! The intermediate representations: data, text form, verifier, meaning.
//!
//! [`graph`]: a tensor program with concrete shapes. [`host`]: everything that is not tensor
//! code, typed and explicit. Schedule and Tile IR describe kernels.

pub mod text;
pub mod hints;
pub mod graph;
pub mod group;
pub mod index;
pub mod schedule;
pub mod part;
pub mod links;
pub mod minimum_cut;
pub mod writer;
pub mod lift;
pub mod body;
pub mod prim;
pub mod reference;
pub mod graph_text;
pub mod products;
pub mod verify;
pub mod interpret;
pub mod nonfinite;
pub mod host;
pub mod tile;
