//! tessera-tile
