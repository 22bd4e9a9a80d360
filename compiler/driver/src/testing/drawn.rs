//! Arguments that are drawn for a test function from its annotations: sizes that are easy to get wrong, and normal values.

use std::collections::BTreeMap;
use tessera_base::{BinOp, DType};
use tessera_grammar::ast::{Expr, ExprKind, FnDef, Param, ParamKind};

/// A call with drawn arguments.
pub struct Call {
    pub text: String,
    /// The sizes and numbers that it stands for: `N = 2, D = 3`.
    pub sizes: String,
}

/// Sizes that are drawn: one, two, and those that no block of a kernel divides.
const SIZES: [i64; 8] = [1, 2, 3, 5, 7, 11, 13, 17];

/// Calls with mixed sizes, beside one for each of the first three sizes alone.
const MIXED: usize = 7;

/// The calls that a test function is tested with, small ones first; `Err` says what cannot be drawn. `item` is the text that
/// the function's places refer to, and `constants` are names of its file, which are no sizes.
pub fn calls(f: &FnDef, item: &str, constants: &[String]) -> Result<Vec<Call>, String> {
    let required: Vec<&Param> = f.params.iter().filter(|p| p.default.is_none()).collect();
    let mut names = vec![];
    let kinds = required.iter().map(|p| Ok((*p, kind(p, item, constants, &mut names)?)));
    let kinds = kinds.collect::<Result<Vec<_>, String>>()?;
    // Always the same: a test that fails fails again.
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        SIZES[(state >> 33) as usize % SIZES.len()]
    };
    let mut all: Vec<Vec<i64>> = SIZES[..3].iter().map(|n| vec![*n; names.len()]).collect();
    all.extend((0..MIXED).map(|_| names.iter().map(|_| draw()).collect()));
    all.sort_by_key(|sizes| (sizes.iter().product::<i64>(), sizes.clone()));
    all.dedup();
    let call = |(i, sizes): (usize, &Vec<i64>)| {
        let known: BTreeMap<&str, i64> = names.iter().map(String::as_str).zip(sizes.iter().copied()).collect();
        let args = kinds.iter().enumerate().map(|(at, (p, kind))| {
            let value = kind.value(i * required.len() + at, &known);
            if p.kind == ParamKind::KeywordOnly { format!("{}={value}", p.name.text) } else { value }
        });
        let text = format!("{}({})", f.name.text, args.collect::<Vec<_>>().join(", "));
        let told: Vec<String> = names.iter().zip(sizes).map(|(n, size)| format!("{n} = {size}")).collect();
        Call { text, sizes: told.join(", ") }
    };
    Ok(all.iter().enumerate().map(call).collect())
}

/// What is drawn for a parameter.
enum Kind {
    Tensor(Vec<Dim>, DType),
    /// An int, drawn as a size of this name.
    Int(String),
    Float,
    Bool,
}

enum Dim {
    Name(String),
    /// As it is written.
    Known(String),
    Binary(Box<Dim>, &'static str, Box<Dim>),
}

fn kind(p: &Param, item: &str, constants: &[String], names: &mut Vec<String>) -> Result<Kind, String> {
    let name = &p.name.text;
    let Some(ty) = &p.ty else { return Err(format!("`{name}` has no type, from which a value could be drawn")) };
    let written = item.get(ty.span.start as usize..ty.span.end as usize).unwrap_or("its type");
    let none = || format!("no value of `{name}: {written}` can be drawn: there are tensors, int, float and bool");
    match &ty.kind {
        _ if p.kind == ParamKind::Rest => Err(none()),
        ExprKind::Name(n) if **n == *"int" => {
            noted(name, names);
            Ok(Kind::Int(name.to_string()))
        }
        ExprKind::Name(n) if **n == *"float" => Ok(Kind::Float),
        ExprKind::Name(n) if **n == *"bool" => Ok(Kind::Bool),
        ExprKind::Index { base, index } if matches!(&base.kind, ExprKind::Name(n) if **n == *"Tensor") => {
            let mut parts: Vec<&Expr> = vec![];
            for arg in index {
                match &arg.value.kind {
                    _ if arg.name.is_some() || arg.star => return Err(none()),
                    ExprKind::Tuple(all) if index.len() == 1 => parts.extend(all),
                    _ => parts.push(&arg.value),
                }
            }
            let dtype = match parts.pop().map(|e| &e.kind) {
                Some(ExprKind::Name(n)) => DType::parse(n).ok_or_else(none)?,
                _ => return Err(none()),
            };
            if dtype.is_complex() {
                return Err(none());
            }
            let dims: Option<Vec<Dim>> = parts.iter().map(|e| dim(e, constants, names)).collect();
            Ok(Kind::Tensor(dims.ok_or_else(none)?, dtype))
        }
        _ => Err(none()),
    }
}

fn noted(name: &str, names: &mut Vec<String>) {
    if !names.iter().any(|n| n == name) {
        names.push(name.to_owned());
    }
}

fn dim(e: &Expr, constants: &[String], names: &mut Vec<String>) -> Option<Dim> {
    Some(match &e.kind {
        ExprKind::Int(n) => Dim::Known(n.to_string()),
        ExprKind::Name(n) if constants.iter().any(|c| **c == **n) => Dim::Known(n.to_string()),
        ExprKind::Name(n) => {
            noted(n, names);
            Dim::Name(n.to_string())
        }
        ExprKind::Binary { op, left, right, .. } => {
            let sign = match op {
                BinOp::Add => "+",
                BinOp::Sub => "-",
                BinOp::Mul => "*",
                BinOp::FloorDiv => "//",
                _ => return None,
            };
            Dim::Binary(Box::new(dim(left, constants, names)?), sign, Box::new(dim(right, constants, names)?))
        }
        _ => return None,
    })
}

impl Dim {
    fn text(&self, known: &BTreeMap<&str, i64>) -> String {
        match self {
            Dim::Name(n) => known.get(n.as_str()).copied().unwrap_or(1).to_string(),
            Dim::Known(text) => text.clone(),
            Dim::Binary(a, sign, b) => format!("({} {sign} {})", a.text(known), b.text(known)),
        }
    }
}

impl Kind {
    /// A value as programs write it; `key` tells it from others.
    fn value(&self, key: usize, known: &BTreeMap<&str, i64>) -> String {
        match self {
            Kind::Int(name) => known.get(name.as_str()).copied().unwrap_or(1).to_string(),
            Kind::Float => format!("{:?}", [0.5, -1.25, 2.0, 3.75, -0.125][key % 5]),
            Kind::Bool => if key.is_multiple_of(2) { "True" } else { "False" }.to_owned(),
            Kind::Tensor(dims, dtype) => {
                let dims: String = dims.iter().map(|d| d.text(known) + ",").collect();
                let (normal, dtype) = (format!("random.normal(random.key({key}), ({dims}))"), dtype.name());
                match DType::parse(dtype) {
                    Some(DType::F32) => normal,
                    Some(d) if d.is_float() => format!("{normal}.to({dtype})"),
                    Some(d) if d.is_int() => format!("random.randint(random.key({key}), ({dims}), 0, 10).to({dtype})"),
                    _ => format!("({normal} > 0.0)"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_grammar::ast::StmtKind;

    fn drawn(text: &str) -> Result<Vec<String>, String> {
        let parsed = tessera_grammar::parse_item(text, tessera_base::ItemId(0));
        let Some(StmtKind::Def(f)) = parsed.stmts.first().map(|s| &s.kind) else { return Err("no function".into()) };
        Ok(calls(f, text, &["C".to_owned()])?.into_iter().map(|c| format!("{} with {}", c.text, c.sizes)).collect())
    }

    #[test]
    fn sizes_are_drawn_small_ones_first() {
        let calls = drawn("def test_f(x: Tensor[N, N + C, f32], n: int, b: bool):\n    pass\n").unwrap_or_default();
        assert_eq!(calls[0], "test_f(random.normal(random.key(0), (1,(1 + C),)), 1, True) with N = 1, n = 1");
        assert!(calls.len() > 6 && calls[1].contains("random.key(3)"), "{calls:?}");
        assert!(drawn("def test_f(x: list[int]):\n    pass\n").is_err_and(|e| e.contains("`x: list[int]`")));
        assert!(drawn("def test_f(x):\n    pass\n").is_err());
    }
}
