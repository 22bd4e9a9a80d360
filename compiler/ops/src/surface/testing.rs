//! Tests of the table's rules; `compiler/ir/tests/surface` runs the expansions.

use super::*;

pub fn n(value: i64) -> Size {
    Size::constant(value)
}

/// Reads `B 4*H 3 f32`: sizes are constants, variables (`?n` is one that only data knows) or
/// a product of both.
pub fn tensor(text: &str) -> TensorType {
    let mut words: Vec<&str> = text.split(' ').collect();
    let dtype = words.pop().and_then(DType::parse);
    TensorType { shape: words.into_iter().map(size).collect(), dtype, sharding: std::default::Default::default() }
}

fn size(text: &str) -> Size {
    text.split('*').fold(n(1), |product, factor| {
        product.mul(&match factor.parse() {
            Ok(value) => n(value),
            Err(_) => {
                let name = factor.trim_start_matches('?');
                let id = name.bytes().fold(0, |id, b| id * 131 + u32::from(b));
                Size::var(tessera_base::SizeVar {
                    id,
                    name: name.into(),
                    rigid: !factor.starts_with('?'),
                    natural: true,
                    each: false,
                })
            }
        })
    })
}

pub fn tensor_arg(text: &str) -> SymArg {
    SymArg::Tensor(tensor(text))
}

fn infer(name: &str, args: &[SymArg]) -> (Result<OpTypes, OpError>, usize) {
    let facts = Facts::default();
    let mut fresh = |_: &str| n(0);
    let mut cx = InferCx { facts: &facts, fresh: &mut fresh, checks: vec![], reaches: vec![], notes: vec![] };
    let out = (find(name).unwrap_or_else(|| panic!("no row {name}")).infer)(&mut cx, args, &Hints::default());
    (out, cx.checks.len())
}

/// The error of a call on one line, or nothing.
pub fn error_text(name: &str, args: &[SymArg]) -> String {
    let Err(e) = infer(name, args).0 else { return String::new() };
    let mut out = format!("{} {}", e.code, e.message);
    for (i, text) in &e.args {
        out += &format!(" | {i}: {text}");
    }
    if let Some(text) = &e.witness {
        out += &format!(" | for example {text}");
    }
    for text in &e.notes {
        out += &format!(" | note: {text}");
    }
    for text in &e.help {
        out += &format!(" | help: {text}");
    }
    out
}

/// The result type of a call as text.
pub fn type_text(name: &str, args: &[SymArg]) -> String {
    match infer(name, args).0 {
        Ok(OpTypes::One(t)) => t.to_string(),
        Ok(OpTypes::Many(ts)) => format!("{:?}", ts.iter().map(TensorType::to_string).collect::<Vec<_>>()),
        Err(_) => error_text(name, args),
    }
}

#[test]
fn broadcasting_counts_only_the_constant_1_as_1() {
    let add = |a: &str, b: &str| type_text("add", &[tensor_arg(a), tensor_arg(b)]);
    assert_eq!(add("2 1 3 f32", "4 1 f32"), "Tensor[2, 4, 3, f32]");
    assert_eq!(add("N 1 f32", "M f32"), "Tensor[N, M, f32]");
    assert_eq!(
        add("N f32", "M f32"),
        "E0203 sizes N and M do not broadcast (axis -1) | 0: Tensor[N, f32] | 1: Tensor[M, f32] \
         | for example M=2, N=1 gives 1 and 2 \
         | note: the sizes of a signature stand for all values, and nothing says that N equals M \
         | help: use one name for both sizes where `N` and `M` are meant to be equal"
    );
    assert_eq!(
        add("B f32", "B D f32"),
        "E0203 sizes B and D do not broadcast (axis -1) | 0: Tensor[B, f32] | 1: Tensor[B, D, f32] \
         | for example B=2, D=1 gives 2 and 1 \
         | note: the sizes of a signature stand for all values, and nothing says that B equals D \
         | help: use one name for both sizes where `B` and `D` are meant to be equal \
         | help: to line up the leading axes, add axes at the end: `[:, None]`"
    );
    let (out, checks) = infer("add", &[tensor_arg("?n f32"), tensor_arg("3 f32")]);
    assert_eq!(out, Ok(OpTypes::One(tensor("3 f32"))));
    assert_eq!(checks, 1);
}

#[test]
fn scalars_are_weak() {
    let add = |a: &str, w: Weak| type_text("add", &[tensor_arg(a), SymArg::Weak(w)]);
    assert_eq!(add("3 bf16", Weak::Float), "Tensor[3, bf16]");
    assert_eq!(add("3 i32", Weak::Int), "Tensor[3, i32]");
    assert_eq!(add("3 i32", Weak::Float), "Tensor[3, f32]");
    assert_eq!(add("3 bool", Weak::Int), "Tensor[3, i64]");
    assert_eq!(type_text("exp", &[tensor_arg("3 i64")]), "Tensor[3, f32]");
}

#[test]
fn names_from_elsewhere_lead_here() {
    for (name, meant) in [
        ("reduce_sum", "sum"),
        ("flash_attn", "attention"),
        ("layernorm", "layer_norm"),
        ("gemm", "matmul"),
        ("concatenate", "concat"),
        ("sofmax", "softmax"),
        ("random.randn", "random.normal"),
    ] {
        assert_eq!(suggest(name), Some(meant));
    }
    assert_eq!(suggest("zzzzzzzz"), None);
    assert_eq!(method("to").map(|d| d.name), Some("cast"));
    assert!(method("zeros").is_none());
}

#[test]
fn every_row_is_documented() {
    for def in all() {
        let first = def.doc.split("\n\n").next().unwrap_or("");
        assert!(first.ends_with(['.', ':']) || first.contains(". "), "{def:?}: {first}");
        assert!(docs_markdown().contains(&format!("\n## {}\n", def.name)));
    }
}

#[test]
fn narrow_accumulators_are_refused_with_the_fix() {
    let facts = Facts::default();
    let mut fresh = |_: &str| n(0);
    let mut cx = InferCx { facts: &facts, fresh: &mut fresh, checks: vec![], reaches: vec![], notes: vec![] };
    let hints = Hints { accum_dtype: Some(DType::Bf16), ..Hints::default() };
    let args = [tensor_arg("2 3 bf16"), tensor_arg("3 4 bf16")];
    let error = find("matmul").map(|d| (d.infer)(&mut cx, &args, &hints)).unwrap().unwrap_err();
    assert_eq!(error.message, "`accum_dtype` cannot be bf16 here: sums of narrow floats accumulate in f32");
    assert_eq!(error.help, ["`accum_dtype=f32, out_dtype=bf16` accumulates in f32 and rounds the result once"]);
}
