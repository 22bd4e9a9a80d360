//! What editors ask of a program that may be wrong: what stands at a place, where it is bound and used, what fits there, and
//! what is to be shown beside the text. Positions are bytes of files; no protocol, no files and no kernels are known here.

pub mod library;
pub mod lines;
pub mod analysis;
pub mod path;
pub mod symbol;
pub mod written;
pub mod hover;
pub mod occurrences;
pub mod imports;
pub mod rename;
pub mod call;
pub mod complete;
pub mod indent;
pub mod outline;
pub mod coloring;
pub mod inlays;
pub mod folding;
pub mod calls;
pub mod proofs;
