//! tessera-graph
