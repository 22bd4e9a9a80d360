//! What a program needs on machines that are not there: time, memory and communication, predicted.
//!
//! Everything here is arithmetic on numbers: descriptions of machines ([`topology`]), the time of collectives
//! ([`collective`]) and of operators ([`roofline`]), schedules of pipelines in closed form and event by event
//! ([`pipeline`]), and the training step of a transformer ([`training`]) with its memory ([`memory`]) and the best ways
//! to divide it ([`search`]). Which constants are fitted, and to which runs,
//! stands in `docs/planner.md`.

pub mod products;
pub mod attention;
pub mod topology;
pub mod stack;
pub mod roofline;
pub mod collective;
pub mod nccl;
pub mod pipeline;
pub mod model;
pub mod memory;
pub mod layer;
pub mod training;
pub mod search;
pub mod request;
