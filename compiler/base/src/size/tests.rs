//! Sizes: units here, laws in files of their own.

mod laws;
mod units;
