//! The program with a change, checked again: a call with other layouts behind it, or a loop that keeps less for its derivative.

use super::Checker;
use super::calls::Function;
use crate::ask::{self, Asked, KnownCall};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use tessera_base::{Diagnostic, Size};
use tessera_core::sizes::{each_size, subst_ty};
use tessera_core::ty::Ty;
use tessera_infer::asked;
use tessera_ir::graph::Graph;
use tessera_resolve::source::Loaded;

/// A name that programs do not have.
const CALL: &str = "a_call_of_another_layout";

/// Whether dim `dim` of the parameter `name` may be split over `axis`, and everything else lie as it does.
pub fn may_be_split(
    checker: &Checker,
    f: &Function,
    asked: &Asked,
    known: &KnownCall,
    split: (&str, usize, &str),
) -> bool {
    let Some(file) = checker.sources.line_col(f.head).and_then(|(file, ..)| checker.sources.file(file)) else {
        return false;
    };
    let Some(call) = call(f, asked, known, split) else { return false };
    let loaded = Loaded { path: file.path.clone(), text: format!("{}{call}", file.text).into() };
    let (db, id) = ask::open(checker.setup, &loaded);
    // A function within another one has no name here, and may share that of one that has.
    if !asked::functions(&db, id).iter().any(|(name, _)| *name == f.name) {
        return false;
    }
    let asked::Asked { checked, function } = asked::ask(&db, id, CALL);
    function.is_ok() && !checked.diagnostics.iter().any(Diagnostic::is_error)
}

/// The loops of the function's file, each by the name of its body and where that name begins.
pub fn loops(checker: &Checker, f: &Function) -> Vec<(usize, String)> {
    const LOOP: &str = "op.scan(";
    let Some(text) = text(checker, f) else { return vec![] };
    let body = |(at, _): (usize, &str)| {
        let rest = &text[at + LOOP.len()..];
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        (!name.is_empty() && rest[name.len()..].starts_with(',')).then_some((at + LOOP.len(), name))
    };
    text.match_indices(LOOP).filter_map(body).collect()
}

/// The graph of a call where the body of one loop computes its values again for its derivative.
pub fn checkpointed(checker: &Checker, f: &Function, known: &KnownCall, (at, body): &(usize, String)) -> Option<Graph> {
    let (file, ..) = checker.sources.line_col(f.head)?;
    let file = checker.sources.file(file)?;
    let (before, rest) = file.text.split_at_checked(*at)?;
    let text = format!("{before}autodiff.checkpoint({body}){}", rest.get(body.len()..)?);
    let (db, id) = ask::open(checker.setup, &Loaded { path: file.path.clone(), text: text.into() });
    let asked::Asked { checked, function } = asked::ask(&db, id, &f.name);
    let (Ok(function), Some(program)) = (function, checked.program) else { return None };
    if checked.diagnostics.iter().any(Diagnostic::is_error) {
        return None;
    }
    let asked = Asked { program: Arc::new(program), sources: checked.sources, function };
    // Its sizes are those of the same names.
    let mut sizes = BTreeMap::new();
    for (_, ty) in asked.params() {
        each_size(ty, &mut |size| {
            for v in size.vars() {
                let same = known.sizes.iter().find(|(own, _)| own.name == v.name);
                sizes.extend(same.map(|(_, n)| (v, *n)));
            }
        });
    }
    let known = KnownCall { sizes, ..known.clone() };
    let (graph, open) = asked.call_known(checker.setup, &known).ok()?;
    open.is_empty().then_some(graph)
}

fn text<'a>(checker: &'a Checker, f: &Function) -> Option<&'a str> {
    let (file, ..) = checker.sources.line_col(f.head)?;
    checker.sources.file(file).map(|file| &*file.text)
}

/// The text of a function that makes the call; `None` where a parameter's type cannot be written so.
fn call(f: &Function, asked: &Asked, known: &KnownCall, (name, dim, axis): (&str, usize, &str)) -> Option<String> {
    let (mut params, mut args, mut found) = (vec![], vec![], false);
    for (p, ty) in asked.params() {
        let ty = subst_ty(ty, &mut |v| known.sizes.get(v).map(|n| Size::constant(*n)));
        let ty = match &ty {
            Ty::Tensor(t) if *p.name == *name => {
                found = true;
                let mut t = t.clone();
                let mut sharding = t.sharding.clone().normal(t.shape.len());
                sharding.dims.resize(t.shape.len(), vec![]);
                sharding.dims.get_mut(dim)?.push(axis.to_owned());
                t.sharding = sharding;
                Ty::Tensor(t)
            }
            Ty::Tensor(_) | Ty::Float | Ty::Bool => ty,
            _ => return None,
        };
        params.push(format!("{}: {ty}", p.name));
        args.push(p.name.to_string());
    }
    let mut text = String::new();
    let _ = write!(text, "\n\ndef {CALL}({}):\n    return {}({})\n", params.join(", "), f.name, args.join(", "));
    found.then_some(text)
}
