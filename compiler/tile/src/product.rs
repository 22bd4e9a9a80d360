//! Matrix products (to come).
use crate::{LowerError, Lowered};
use tessera_ir::schedule::Schedule;

pub fn lower(_s: &Schedule) -> Result<Lowered, LowerError> {
    Err(LowerError("products".into()))
}
