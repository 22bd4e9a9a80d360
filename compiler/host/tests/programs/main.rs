//! Small programs in Host IR, compiled and run.

mod build;
mod long;
mod regions;
mod scalars;
mod values;
