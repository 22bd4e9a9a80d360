//! What is told of the place under the cursor.

use crate::analysis::{Analysis, Place};
use crate::symbol::Symbol;
use std::fmt::Write;
use tessera_base::{BinOp, FileId, Size, Span, TensorType};
use tessera_core::builtins;
use tessera_core::ir::Effect;
use tessera_core::ty::Ty;
use tessera_grammar::ast::*;
use tessera_infer::db::Item;
use tessera_resolve::names::Kind;

/// A text in Markdown, and the place that it is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hover {
    pub place: Place,
    pub markdown: String,
}

/// What is known of the name, or else of the smallest expression, around a byte of a file.
pub fn hover(cx: &Analysis, file: FileId, byte: usize) -> Option<Hover> {
    if let Some((place, symbol)) = cx.symbol_at(file, byte) {
        let markdown = of_symbol(cx, file, &place, &symbol);
        return Some(Hover { place, markdown });
    }
    let (item, at) = cx.item_at(file, byte)?;
    let of_item = cx.of_item(item.id(cx.db));
    let (span, types) = of_item.around(at)?;
    let span = Span { item: item.id(cx.db), ..span };
    let mut markdown = code(&cx.in_words(types));
    facts(cx, item, span, types, &mut markdown);
    Some(Hover { place: cx.place(span)?, markdown })
}

fn code(text: &str) -> String {
    format!("```tessera\n{text}\n```\n")
}

fn of_symbol(cx: &Analysis, file: FileId, place: &Place, symbol: &Symbol) -> String {
    let here = cx.item_at(file, place.start);
    let noted = here.map_or_else(Vec::new, |(item, at)| {
        let end = at + (place.end - place.start) as u32;
        let of_item = cx.of_item(item.id(cx.db));
        // A member is noted as the expression that ends with it.
        let exact = of_item.types.iter().filter(|((start, e), _)| *e == end && *start <= at);
        exact.max_by_key(|((start, _), _)| *start).map_or_else(Vec::new, |(_, types)| types.clone())
    });
    let types = if noted.is_empty() { cx.types_of(symbol) } else { noted };
    let typed = |kind: &str, name: &str| match &types[..] {
        [] => format!("({kind}) {name}"),
        types => format!("({kind}) {name}: {}", cx.in_words(types)),
    };
    let name = cx.name(symbol);
    let head = match symbol {
        Symbol::Local { item, binding } => {
            let kind = cx.item(*item).map(|i| i.names(cx.db).binding(*binding).kind);
            match (cx.call(symbol), kind) {
                (Some(call), Some(Kind::Function)) => format!("def {}", call.text().0),
                (_, Some(Kind::Size)) => format!("(size) {name}"),
                (_, Some(Kind::Generic)) => format!("(parameter of a struct) {name}"),
                (_, Some(Kind::Parameter)) => typed("parameter", &name),
                _ => typed("variable", &name),
            }
        }
        Symbol::Def(_) => cx.call(symbol).map_or_else(|| format!("def {name}"), |c| format!("def {}", c.text().0)),
        Symbol::Struct(id) => structure(cx, *id).unwrap_or_else(|| format!("struct {name}")),
        Symbol::Field(..) => typed("field", &name),
        Symbol::Variable(of, _) if *of != file => typed(&format!("variable of {}", cx.name(&Symbol::File(*of))), &name),
        Symbol::Variable(..) => typed("variable", &name),
        Symbol::File(id) => format!("(module) {}", cx.path(*id)),
        Symbol::Module(name) => format!("(module) {name}"),
        Symbol::Builtin(dotted) => match (cx.call(symbol), builtins::CONSTANTS.iter().find(|(n, _)| **n == **dotted)) {
            (Some(call), _) => call.text().0,
            (None, Some((_, value))) => format!("{dotted}: float = {value:?}"),
            (None, None) => dotted.to_string(),
        },
        Symbol::OfTensor(_) | Symbol::Method(_) => {
            cx.call(symbol).map_or_else(|| typed("attribute", &name), |c| c.text().0)
        }
    };
    let mut out = code(&head);
    if let Some((item, at)) = here {
        let span = Span { item: item.id(cx.db), start: at, end: at + (place.end - place.start) as u32 };
        facts(cx, item, span, &types, &mut out);
    }
    instances(cx, symbol, &mut out);
    if let Some(doc) = cx.doc(symbol) {
        let _ = write!(out, "\n{}\n", examples_as_code(&doc, "tessera"));
    }
    out
}

fn structure(cx: &Analysis, id: tessera_base::ItemId) -> Option<String> {
    let item = cx.item(id)?;
    let def = item.struct_def(cx.db).clone()?;
    let mut out = cx.one_line(item, def.head).trim_end_matches(':').to_owned();
    out.push(':');
    for f in &def.fields {
        let _ = write!(out, "\n    {}: {}", f.name.text, cx.one_line(item, f.ty.span));
        if let Some(default) = &f.default {
            let _ = write!(out, " = {}", cx.one_line(item, default.span));
        }
    }
    Some(out)
}

/// The instances of a function: what its calls make of it, what it does besides computing tensors, what it compares.
fn instances(cx: &Analysis, symbol: &Symbol, out: &mut String) {
    const SHOWN: usize = 4;
    let (id, start) = match symbol {
        Symbol::Def(id) => (*id, cx.item(*id).and_then(|i| i.signature(cx.db).as_ref().map(|s| s.start))),
        Symbol::Local { item, binding } => {
            let place = cx.item(*item).and_then(|i| {
                let names = i.names(cx.db);
                let b = names.binding(*binding);
                (b.kind == Kind::Function).then(|| b.places.first().map(|p| p.start)).flatten()
            });
            (*item, place)
        }
        _ => return,
    };
    let Some(start) = start else { return };
    let of_item = cx.of_item(id);
    let all: Vec<_> = of_item.of_function(start).collect();
    let annotated = cx
        .item(id)
        .and_then(|i| i.functions(cx.db).get(&start).cloned())
        .is_some_and(|f| f.sig.ret.is_some() && f.sig.params.iter().all(|p| p.ty.is_some()));
    if !annotated && !all.is_empty() {
        let mut lines = vec![];
        for i in all.iter().take(SHOWN) {
            let params: Vec<String> =
                i.params.iter().map(|(n, t)| format!("{n}: {}", tessera_infer::describe(t))).collect();
            let line = format!("{}({}) -> {}", i.name, params.join(", "), tessera_infer::describe(&i.ret));
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let _ = write!(out, "\nCalled as\n{}", code(&lines.join("\n")));
        if all.len() > SHOWN {
            let _ = writeln!(out, "and in {} more ways.", all.len() - SHOWN);
        }
    }
    match all.first().map(|i| &i.effect) {
        Some(Effect::Graph) => out.push_str("\nGraph function: it computes tensors and nothing else.\n"),
        Some(Effect::Host { why, span, .. }) => {
            let line = cx.sources.line_col(*span).map_or_else(String::new, |(_, line, _)| format!(" (line {line})"));
            let _ = writeln!(out, "\nHost function: it {why}{line}.");
        }
        None => out.push_str("\nNothing calls it: what it computes is checked at its calls.\n"),
    }
    let mut kept: Vec<&str> = all.iter().flat_map(|i| &i.kept).map(|(_, what)| &**what).collect();
    kept.dedup();
    for what in kept.iter().take(SHOWN) {
        let _ = writeln!(out, "\nCompared when it runs: {what}.");
    }
}

/// Bytes of a tensor, and what a product costs.
fn facts(cx: &Analysis, item: Item, span: Span, types: &[Ty], out: &mut String) {
    if let [Ty::Tensor(t)] = types
        && let Some(text) = bytes(t)
    {
        let _ = writeln!(out, "\n{text}");
    }
    let of_item = cx.of_item(item.id(cx.db));
    let product = crate::path::every_expr(&item.syntax(cx.db).stmts).into_iter().find_map(|e| match &e.kind {
        ExprKind::Binary { op: BinOp::MatMul, left, .. } if (e.span.start, e.span.end) == (span.start, span.end) => {
            match (of_item.at(left.span), of_item.at(e.span)) {
                ([Ty::Tensor(left)], [Ty::Tensor(all)]) => {
                    Some(all.elems().mul(left.shape.last()?).mul(&Size::constant(2)))
                }
                _ => None,
            }
        }
        _ => None,
    });
    if let Some(flops) = product {
        let text = flops.as_const().map_or_else(|| flops.to_string(), |n| grouped(n.max(0) as u64));
        let _ = writeln!(out, "\n{text} floating-point operations");
    }
}

/// `4,000,000 bytes (3.8 MiB)`, on how many devices, where sizes are known.
fn bytes(t: &TensorType) -> Option<String> {
    let elems = u64::try_from(t.elems().as_const()?).ok()?;
    let bytes = elems.checked_mul(t.dtype?.bytes() as u64)?;
    let mut text = format!("{} bytes", grouped(bytes));
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut size = bytes as f64;
    let mut unit = None;
    for u in units {
        if size < 1024.0 {
            break;
        }
        size /= 1024.0;
        unit = Some(u);
    }
    if let Some(unit) = unit {
        let _ = write!(text, " ({size:.1} {unit})");
    }
    Some(text)
}

/// `1,048,576`.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Lines of `>>>` examples with their results as blocks of code of a language; an empty line ends one.
pub fn examples_as_code(doc: &str, language: &str) -> String {
    let (mut out, mut inside) = (String::new(), false);
    for line in doc.lines() {
        let starts = line.trim_start().starts_with(">>>");
        if starts && !inside {
            out.push_str(&format!("```{language}\n"));
            inside = true;
        } else if inside && line.trim().is_empty() {
            out.push_str("```\n");
            inside = false;
        }
        out.push_str(line);
        out.push('\n');
    }
    if inside {
        out.push_str("```\n");
    }
    out
}
