//! Who calls a function, and whom it calls.

use crate::analysis::{Analysis, Place};
use crate::path::{dotted, every_expr};
use crate::symbol::Symbol;
use std::collections::BTreeMap;
use tessera_base::FileId;
use tessera_grammar::ast::ExprKind;
use tessera_infer::db::Item;

/// The calls of an item: what is called, and where.
fn calls(cx: &Analysis, item: Item) -> Vec<(Symbol, Place)> {
    let calls = every_expr(&item.syntax(cx.db).stmts).into_iter().filter_map(|e| match &e.kind {
        ExprKind::Call { func, .. } => {
            let path = dotted(func)?;
            let symbol = cx.path_seen(item, func.span.start, &path)?;
            let mut place = cx.place(func.span)?;
            place.start = place.end - path.last()?.len();
            Some((symbol, place))
        }
        _ => None,
    });
    calls.collect()
}

/// The functions that call a function, with the places of the calls; calls at the top of a file belong to the file.
pub fn incoming(cx: &Analysis, symbol: &Symbol, files: &[FileId]) -> Vec<(Symbol, Vec<Place>)> {
    let name = cx.name(symbol);
    let mut out: BTreeMap<Symbol, Vec<Place>> = BTreeMap::new();
    for file in files.iter().filter(|f| cx.text(**f).contains(&*name)) {
        for head in cx.heads(*file).iter() {
            let Some(item) = cx.item(head.id) else { continue };
            let caller = if item.signature(cx.db).is_some() { Symbol::Def(head.id) } else { Symbol::File(*file) };
            let places = calls(cx, item).into_iter().filter(|(s, _)| s == symbol).map(|(_, p)| p);
            for place in places {
                out.entry(caller.clone()).or_default().push(place);
            }
        }
    }
    out.into_iter().collect()
}

/// The functions that a function calls, with the places of the calls.
pub fn outgoing(cx: &Analysis, symbol: &Symbol) -> Vec<(Symbol, Vec<Place>)> {
    let Symbol::Def(id) = symbol else { return vec![] };
    let Some(item) = cx.item(*id) else { return vec![] };
    let mut out: BTreeMap<Symbol, Vec<Place>> = BTreeMap::new();
    for (symbol, place) in calls(cx, item).into_iter().filter(|(s, _)| matches!(s, Symbol::Def(_) | Symbol::Struct(_)))
    {
        out.entry(symbol).or_default().push(place);
    }
    out.into_iter().collect()
}
