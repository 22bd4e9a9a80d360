//! Which argument belongs to which parameter of an operator.

use super::tile::{self, Asked};
use tessera_base::{Code, DType, Diagnostic, Span};
use tessera_core::ir::{TExpr, TKind};
use tessera_core::ty::Ty;
use tessera_grammar::ast::Name;
use tessera_ops::surface::{Default, HINTS, Hints, OpDef, Param, ParamKind};

/// An argument as the call has it.
#[derive(Clone, Debug)]
pub struct Given {
    pub name: Option<Name>,
    pub value: TExpr,
}

impl Given {
    /// A positional argument.
    pub fn positional(value: TExpr) -> Given {
        Given { name: None, value }
    }
}

/// One slot per parameter, and the keyword arguments that every operator takes.
pub struct Matched {
    pub slots: Vec<Option<TExpr>>,
    pub hints: Hints,
}

/// The operator's name as programs write it.
pub fn shown(def: &OpDef) -> String {
    if def.name.contains('.') { def.name.to_owned() } else { format!("op.{}", def.name) }
}

/// Matches positional and keyword arguments. E0104 and E0105 where they do not fit.
pub fn match_args(def: &OpDef, given: Vec<Given>, name_span: Span) -> Result<Matched, Diagnostic> {
    let mut slots: Vec<Option<TExpr>> = def.params.iter().map(|_| None).collect();
    let mut hints = Hints::default();
    let mut positional = vec![];
    let mut keywords = vec![];
    for g in given {
        match g.name {
            None => positional.push(g.value),
            Some(name) => keywords.push((name, g.value)),
        }
    }
    let takes = def.params.iter().filter(|p| !p.keyword_only).count();
    let total = positional.len();
    let mut rest = positional.into_iter().peekable();
    for (i, slot) in slots.iter_mut().enumerate().take(takes) {
        let Some(first) = rest.next() else { break };
        let Some(member) = gathers(def.params, i, takes).filter(|member| member(&first)) else {
            *slot = Some(first);
            continue;
        };
        let alone = !rest.peek().is_some_and(member) && is_int(&first);
        let mut all = vec![first];
        while let Some(next) = rest.next_if(member) {
            all.push(next);
        }
        *slot = if alone { all.pop() } else { Some(tuple(all)) };
    }
    if let Some(extra) = rest.next() {
        return Err(too_many(def, takes, total, extra.span, name_span));
    }
    for (name, value) in keywords {
        if hint(def, &mut hints, &name, &value)? {
            continue;
        }
        let Some(i) = parameter(def, &name.text) else { return Err(unknown_keyword(def, &name)) };
        if slots[i].is_some() {
            let d = Diagnostic::new(
                Code::E0105,
                name.span,
                format!("`{}` of `{}` is given twice", def.params[i].name, shown(def)),
            );
            return Err(match &slots[i] {
                Some(first) => d.with_label(first.span, "given here too"),
                None => d,
            });
        }
        slots[i] = Some(value);
    }
    let missing: Vec<String> = def
        .params
        .iter()
        .zip(&slots)
        .filter(|(p, s)| s.is_none() && p.default == Default::Required)
        .map(|(p, _)| format!("`{}`", p.name))
        .collect();
    if !missing.is_empty() {
        let s = if missing.len() == 1 { "" } else { "s" };
        let text = format!("`{}` needs the argument{s} {}", shown(def), missing.join(" and "));
        let d = Diagnostic::new(Code::E0104, name_span, text).note(signature(def));
        let keyed = def.params.first().is_some_and(|p| p.kind == ParamKind::Key);
        return Err(match slots.first() {
            Some(Some(first)) if keyed && matches!(first.ty, Ty::Tuple(_) | Ty::Int(_) | Ty::List(_)) => {
                d.help(format!("the first argument is the key: `{}(random.key(0), …)`", shown(def)))
            }
            None | Some(None) if keyed => d.help("a key is made of a number: `random.key(0)`"),
            _ => d,
        });
    }
    Ok(Matched { slots, hints })
}

/// Which positional arguments parameter `i` takes together, if it takes several: ints of a
/// shape (`x.reshape(B, -1)`), where the next parameter is one that an int is not for, and
/// tensors at the end (`op.einsum("ij,jk->ik", a, b)`).
fn gathers(params: &[Param], i: usize, takes: usize) -> Option<fn(&TExpr) -> bool> {
    use ParamKind::*;
    let next = params[..takes].get(i + 1).map(|p| p.kind);
    match (params[i].kind, next) {
        (Tensors, None) => Some(|e| matches!(e.ty, Ty::Tensor(_))),
        (Shape | Axes | Ints, None | Some(DType | Str | Bool | Tensor | Tensors | Key)) => Some(is_int),
        _ => None,
    }
}

fn is_int(e: &TExpr) -> bool {
    matches!(e.ty, Ty::Int(_))
}

fn tuple(items: Vec<TExpr>) -> TExpr {
    let span = items.iter().skip(1).fold(items[0].span, |s, e| s.to(e.span));
    let ty = Ty::Tuple(items.iter().map(|e| e.ty.clone()).collect());
    TExpr { kind: TKind::Tuple(items), ty, span }
}

/// The parameter of this name. `dim` is another word for `axis`.
fn parameter(def: &OpDef, name: &str) -> Option<usize> {
    let find = |name: &str| def.params.iter().position(|p| p.name == name);
    find(name).or_else(|| match name {
        "dim" => find("axis").or_else(|| find("axes")),
        "dims" => find("axes").or_else(|| find("axis")),
        "keepdim" => find("keepdims"),
        _ => None,
    })
}

/// What keywords of NumPy and PyTorch are for.
fn elsewhere(keyword: &str) -> Option<&'static str> {
    Some(match keyword {
        "device" => "leave it out: the compiler places values (`tessera run --target …`)",
        "requires_grad" => "leave it out: gradients are computed where `autodiff.grad(f)` asks for them",
        "unbiased" | "correction" => "`ddof=1` divides by one less, as PyTorch does by default",
        "out" | "inplace" => "operators give new values: bind the result",
        "generator" => "the first argument is the key: `random.key(0)`",
        "training" => "leave the operator out where nothing is trained",
        _ => return None,
    })
}

fn unknown_keyword(def: &OpDef, name: &Name) -> Diagnostic {
    let text = format!("`{}` has no parameter `{}`", shown(def), name.text);
    let d = Diagnostic::new(Code::E0105, name.span, text).note(signature(def));
    if let Some(help) = elsewhere(&name.text) {
        return d.help(help);
    }
    let names = def.params.iter().map(|p| p.name).chain(HINTS.iter().copied());
    d.did_you_mean(name.span, &name.text, names, |d| d)
}

fn too_many(def: &OpDef, takes: usize, total: usize, extra: Span, name_span: Span) -> Diagnostic {
    let s = if takes == 1 { "" } else { "s" };
    let text = format!("`{}` takes {takes} positional argument{s}, and {total} are given", shown(def));
    let d = Diagnostic::new(Code::E0104, name_span, text).with_label(extra, "one too many").note(signature(def));
    match def.params.iter().find(|p| p.keyword_only) {
        _ if def.name == "einsum" => d.help("the equation comes first: `op.einsum(\"ij,jk->ik\", a, b)`"),
        Some(p) => d.help(format!("name it: `{}=…`", p.name)),
        None => d,
    }
}

/// The parameters in a line, as a `def` would have them.
fn signature(def: &OpDef) -> String {
    let mut parts: Vec<String> = vec![];
    let mut star = false;
    for p in def.params {
        if p.keyword_only && !star {
            parts.push("*".into());
            star = true;
        }
        parts.push(match p.default {
            Default::Required => p.name.to_owned(),
            Default::None => format!("{}=None", p.name),
            Default::Int(n) => format!("{}={n}", p.name),
            Default::Float(v) => format!("{}={v:?}", p.name),
            Default::Bool(b) => format!("{}={}", p.name, if b { "True" } else { "False" }),
            Default::Str(s) => format!("{}=\"{s}\"", p.name),
        });
    }
    format!("{}({})", shown(def), parts.join(", "))
}

/// Takes `tile_shape`, `accum_dtype` and `out_dtype`; says whether the name is one of them.
fn hint(def: &OpDef, hints: &mut Hints, name: &Name, value: &TExpr) -> Result<bool, Diagnostic> {
    match &*name.text {
        "accum_dtype" => hints.accum_dtype = hint_dtype(name, value)?,
        "out_dtype" => hints.out_dtype = hint_dtype(name, value)?,
        "tile_shape" => {
            let sizes = tile::sizes(value, Asked::of(def))?;
            hints.tile_shape = Some(sizes.into_iter().map(|n| n as i64).collect());
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn hint_dtype(name: &Name, value: &TExpr) -> Result<Option<DType>, Diagnostic> {
    match &value.ty {
        Ty::None => Ok(None),
        _ => super::args::dtype_of(&name.text, value).map(Some),
    }
}
