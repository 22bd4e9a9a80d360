//! tessera-hir
