//! tessera-llvm
