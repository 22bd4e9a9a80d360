//! tessera-host
