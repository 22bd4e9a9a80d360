use super::*;
use crate::sizes::SizeCx;
use std::collections::BTreeMap;
use tessera_base::ItemId;
use tessera_grammar::ast::Name;

#[derive(Default)]
struct Scope {
    cx: SizeCx,
    sizes: BTreeMap<String, Size>,
}

impl AnnotNames for Scope {
    fn name(&mut self, name: &str, _: Span) -> NameMeaning {
        match name {
            "Layer" => NameMeaning::Struct { params: 1 },
            _ => self.sizes.get(name).cloned().map_or(NameMeaning::Unbound, NameMeaning::Size),
        }
    }

    fn unbound_size(&mut self, name: &str, _: Span) -> Option<Size> {
        if !name.starts_with(char::is_uppercase) {
            return None;
        }
        let size = self.cx.rigid(name);
        self.sizes.insert(name.to_owned(), size.clone());
        Some(size)
    }

    fn apply_struct(&mut self, name: &str, args: Vec<(GenericArg, Span)>, _: Span) -> Result<Ty, Diagnostic> {
        let text = match args.as_slice() {
            [(GenericArg::Size(n), _)] => format!("{name}[{n}]"),
            _ => format!("{name}[{args:?}]"),
        };
        Ok(Ty::Struct(Arc::new(tessera_core::ty::StructTy { name: text.into(), item: 0, fields: vec![] })))
    }
}

fn e(kind: ExprKind) -> Expr {
    Expr { kind, span: Span::new(ItemId(0), 0, 1) }
}

fn n(name: &str) -> Expr {
    e(ExprKind::Name(name.into()))
}

fn int(digits: &str) -> Expr {
    e(ExprKind::Int(digits.into()))
}

fn bin(op: BinOp, left: Expr, right: Expr) -> Expr {
    e(ExprKind::Binary { op, op_span: Span::NONE, left: Box::new(left), right: Box::new(right) })
}

fn at(left: Expr, axis: &str) -> Expr {
    bin(BinOp::MatMul, left, n(axis))
}

fn app(base: &str, index: Vec<Expr>) -> Expr {
    let index = index.into_iter().map(|value| Arg { name: None, value, star: false }).collect();
    e(ExprKind::Index { base: Box::new(n(base)), index })
}

fn shown(expr: Expr) -> String {
    match resolve(&expr, &mut Scope::default()) {
        Ok(ty) => ty.to_string(),
        Err(d) => format!("{}: {}", d.code, d.message),
    }
}

#[test]
fn tensor_types_read_as_they_print() {
    let mul = |a, b| bin(BinOp::Mul, a, b);
    assert_eq!(shown(app("Tensor", vec![n("f32")])), "Tensor[f32]");
    assert_eq!(shown(app("Tensor", vec![n("B"), mul(int("4"), n("D")), n("fp16")])), "Tensor[B, 4*D, f16]");
    assert_eq!(shown(app("Tensor", vec![n("B"), n("D")])), "Tensor[B, D]");
    assert_eq!(shown(app("Tensor", vec![e(ExprKind::Ellipsis), n("D"), n("f32")])), "Tensor[..., D, f32]");
    assert_eq!(shown(app("Tensor", vec![e(ExprKind::Ellipsis)])), "Tensor[...]");
    let two = bin(BinOp::MatMul, n("D"), e(ExprKind::Tuple(vec![n("tp"), n("pp")])));
    assert_eq!(shown(app("Tensor", vec![at(n("B"), "dp"), two, n("f32")])), "Tensor[B@dp, D@(tp,pp), f32]");
    assert_eq!(shown(app("Tensor", vec![n("B"), n("f32"), at(n("sum"), "tp")])), "Tensor[B, f32, sum@tp]");
    assert_eq!(shown(n("Tensor")), "Tensor of unknown rank and dtype");
}

#[test]
fn other_types() {
    assert_eq!(shown(app("list", vec![app("Layer", vec![int("64")])])), "list[Layer[64]]");
    assert_eq!(shown(app("dict", vec![n("str"), n("float")])), "dict[str, float]");
    assert_eq!(shown(app("tuple", vec![n("int"), n("bool")])), "tuple[int, bool]");
    let f = e(ExprKind::FnType { params: vec![n("int")], ret: Box::new(n("float")) });
    assert_eq!(shown(f), "(int) -> float");
    let mesh = Arg { name: Some(Name { text: "dp".into(), span: Span::NONE }), value: int("4"), star: false };
    assert_eq!(shown(e(ExprKind::Index { base: Box::new(n("Mesh")), index: vec![mesh] })), "Mesh[dp=4]");
}

#[test]
fn what_is_not_a_type_says_so() {
    assert_eq!(shown(n("Tensr")), "E0215: `Tensr` is not a type");
    let d = resolve(&n("Tensr"), &mut Scope::default()).err();
    assert_eq!(d.map(|d| d.fixes[0].title.clone()), Some("did you mean `Tensor`?".into()));
    assert_eq!(shown(n("f32")), "E0215: `f32` is an element type, not a type");
    assert_eq!(shown(n("Layer")), "E0215: `Layer` needs its 1 argument");
    assert_eq!(
        shown(app("Tensor", vec![n("N"), n("float")])),
        "E0215: `float` is a host scalar type, not an element type of tensors"
    );
    assert_eq!(shown(app("Tensor", vec![n("f32"), n("N")])), "E0215: a dim after the element type");
    assert_eq!(shown(app("Tensor", vec![n("n"), n("f32")])), "E0215: `n` is not defined");
    assert_eq!(
        shown(app("Tensor", vec![bin(BinOp::Div, n("N"), int("2")), n("f32")])),
        "E0215: `/` gives a float, which is not a size"
    );
}

#[test]
fn shardings_are_well_formed() {
    assert_eq!(
        shown(app("Tensor", vec![at(n("A"), "tp"), at(n("B"), "tp"), n("f32")])),
        "E0401: the mesh axis `tp` is used twice in one type"
    );
    assert_eq!(
        shown(app("Tensor", vec![at(n("A"), "tp"), n("f32"), at(n("sum"), "tp")])),
        "E0401: the mesh axis `tp` is used twice in one type"
    );
    assert_eq!(
        shown(app("Tensor", vec![n("A"), n("f32"), at(n("prod"), "tp")])),
        "E0401: `prod` is not a way to combine partial values"
    );
    assert_eq!(shown(app("Tensor", vec![at(at(n("A"), "tp"), "dp"), n("f32")])), "E0401: a dim takes one `@`");
}
