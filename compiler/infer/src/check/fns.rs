//! Functions and lambdas by their places.

use crate::db::Db;
use std::sync::Arc;
use tessera_base::ItemId;
use tessera_resolve::functions::{FnLike, FnSig};

/// A function by its place.
pub fn find(db: &dyn Db, item: ItemId, start: u32) -> Option<Arc<FnLike>> {
    crate::db::item_of(db, item)?.functions(db).get(&start).cloned()
}

/// The signature of a function by its place; for the function that an item defines this does
/// not depend on the body.
pub fn find_sig(db: &dyn Db, item: ItemId, start: u32) -> Option<Arc<FnSig>> {
    let handle = crate::db::item_of(db, item)?;
    match handle.signature(db) {
        Some(sig) if sig.start == start => Some(sig.clone()),
        _ => find(db, item, start).map(|f| f.sig.clone()),
    }
}

/// The signature of the function that an item defines.
pub fn find_sig_of_item(db: &dyn Db, item: ItemId) -> Option<Arc<FnSig>> {
    crate::db::item_of(db, item)?.signature(db).clone()
}
