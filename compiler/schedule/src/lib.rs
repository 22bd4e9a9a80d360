//! tessera-schedule
