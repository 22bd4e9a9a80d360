//! Types as text: structures are defined once and then called by a name of their own.

use crate::ty::{Derived, FnRefTy, Grad, OutAxes, SpecDim, StructTy, Ty};
use std::collections::BTreeMap;
use std::sync::Arc;
use tessera_base::{Mesh, Sharding, Size, SizeVar, TensorType};
use tessera_ir::text::{Attr, Op};

/// What the types of a program are made of.
#[derive(Default)]
pub struct Names {
    structs: Vec<Arc<StructTy>>,
    functions: Vec<Arc<FnRefTy>>,
    meshes: Vec<Mesh>,
    /// By number, whether it is another size in each element of a list, and whether it may be below 0: a number may be that of a
    /// dim in one function and that of an int in another.
    sizes: BTreeMap<(u32, bool, bool), (SizeVar, String)>,
    /// What comes before the program: each behind what it is made of.
    definitions: Vec<Op>,
}

pub fn string(text: impl Into<String>) -> Attr {
    Attr::Str(text.into())
}

pub fn strings(items: impl IntoIterator<Item = String>) -> Attr {
    Attr::List(items.into_iter().map(Attr::Str).collect())
}

pub fn ints(items: impl IntoIterator<Item = i64>) -> Attr {
    Attr::List(items.into_iter().map(Attr::Int).collect())
}

/// What of a name is a word of the text.
pub fn word(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric() || *c == '_').collect()
}

impl Names {
    /// The definitions, those of sizes first.
    pub fn definitions(self) -> Vec<Op> {
        let sizes = self.sizes.into_values().map(|(v, name)| {
            let mut op = Op::new("core.size");
            op.results = vec![name];
            op.attrs.push(("name".into(), string(&*v.name)));
            for (key, holds) in [("rigid", v.rigid), ("natural", v.natural), ("each", v.each)] {
                op.attrs.extend(holds.then(|| (key.into(), Attr::Bool(true))));
            }
            op
        });
        sizes.chain(self.definitions).collect()
    }

    /// A size, with its variables by their numbers.
    pub fn size(&mut self, size: &Size) -> String {
        let renamed = size.substitute(&mut |v| {
            // One size may go by several names; the first one is its name here.
            let taken = self.sizes.contains_key(&(v.id, v.each, v.natural));
            let (_, name) = self.sizes.entry((v.id, v.each, !v.natural)).or_insert_with(|| {
                let kind = if !taken {
                    ""
                } else if v.natural {
                    DIM
                } else {
                    INT
                };
                (v.clone(), format!("{}{kind}", size_name(v)))
            });
            Some(Size::var(SizeVar { name: format!("%{name}").into(), ..v.clone() }))
        });
        renamed.to_string()
    }

    /// A type.
    pub fn ty(&mut self, ty: &Ty) -> String {
        match ty {
            Ty::Int(Some(size)) => format!("int({})", self.size(size)),
            Ty::DType(Some(dtype)) => format!("dtype({})", dtype.name()),
            Ty::Tensor(t) => self.tensor(t, false),
            Ty::TensorPattern(p) => {
                let known = TensorType { shape: p.tail.clone(), dtype: p.dtype, sharding: p.sharding.clone() };
                self.tensor(&known, true)
            }
            Ty::AnyTensor => "Tensor".into(),
            Ty::List(t) => format!("list[{}]", self.ty(t)),
            Ty::Dict(k, v) => format!("dict[{}, {}]", self.ty(k), self.ty(v)),
            Ty::Tuple(ts) => format!("tuple[{}]", self.types(ts)),
            Ty::Fn(ps, r) => format!("fn({}; {})", self.types(ps), self.ty(r)),
            Ty::Struct(s) => self.structure(s),
            Ty::FnRef(r) => self.function(r),
            Ty::Mesh(Some(mesh)) => format!("Mesh({})", self.mesh(mesh)),
            Ty::ShardSpec(Some(spec)) => {
                let dim = |d: &SpecDim| match d {
                    SpecDim::At(i) => i.to_string(),
                    SpecDim::Named(name) => format!("{name:?}"),
                };
                let parts: Vec<String> =
                    spec.parts.iter().map(|(d, axes)| format!("{}: [{}]", dim(d), axes.join(", "))).collect();
                format!("ShardSpec({})", parts.join(", "))
            }
            Ty::Unknown => "unknown".into(),
            Ty::Error => "error".into(),
            Ty::Int(None)
            | Ty::Float
            | Ty::Bool
            | Ty::Str
            | Ty::None
            | Ty::DType(None)
            | Ty::Mesh(None)
            | Ty::ShardSpec(None)
            | Ty::Never => ty.to_string(),
        }
    }

    fn types(&mut self, tys: &[Ty]) -> String {
        let texts: Vec<String> = tys.iter().map(|t| self.ty(t)).collect();
        texts.join(", ")
    }

    /// `Tensor[%B.1@dp, 4, f32] on %mesh.0`.
    fn tensor(&mut self, t: &TensorType, open: bool) -> String {
        let mut parts: Vec<String> = vec![];
        parts.extend(open.then(|| "...".to_owned()));
        for (i, size) in t.shape.iter().enumerate() {
            parts.push(format!("{}{}", self.size(size), t.sharding.dim_suffix(i)));
        }
        parts.extend(t.dtype.map(|d| d.name().to_owned()));
        parts.extend(t.sharding.partial.iter().map(|(m, a)| format!("{m}@{a}")));
        let on = self.on(&t.sharding);
        format!("Tensor[{}]{on}", parts.join(", "))
    }

    fn on(&mut self, sharding: &Sharding) -> String {
        sharding.mesh.as_ref().map_or_else(String::new, |mesh| format!(" on {}", self.mesh(mesh)))
    }

    /// The name of a mesh.
    pub fn mesh(&mut self, mesh: &Mesh) -> String {
        let n = self.meshes.iter().position(|m| m == mesh).unwrap_or_else(|| {
            let mut op = Op::new("core.mesh");
            op.results = vec![format!("mesh.{}", self.meshes.len())];
            op.attrs = vec![
                ("axes".into(), strings(mesh.axes.iter().map(|a| a.0.clone()))),
                ("sizes".into(), ints(mesh.axes.iter().map(|a| a.1 as i64))),
            ];
            self.definitions.push(op);
            self.meshes.push(mesh.clone());
            self.meshes.len() - 1
        });
        format!("%mesh.{n}")
    }

    fn structure(&mut self, s: &Arc<StructTy>) -> String {
        let name = |n: usize| format!("{}.{n}", word(&s.name));
        if let Some(n) = self.structs.iter().position(|other| other == s) {
            return format!("%{}", name(n));
        }
        let types: Vec<String> = s.fields.iter().map(|(_, t)| self.ty(t)).collect();
        let mut op = Op::new("core.struct");
        op.results = vec![name(self.structs.len())];
        op.attrs = vec![
            ("name".into(), string(&*s.name)),
            ("item".into(), Attr::Int(i64::from(s.item))),
            ("fields".into(), strings(s.fields.iter().map(|(n, _)| n.to_string()))),
        ];
        op.types = types;
        self.definitions.push(op);
        self.structs.push(s.clone());
        format!("%{}", name(self.structs.len() - 1))
    }

    fn function(&mut self, r: &Arc<FnRefTy>) -> String {
        let name = |n: usize| format!("fn.{}.{n}", word(&r.name));
        if let Some(n) = self.functions.iter().position(|other| other == r) {
            return format!("%{}", name(n));
        }
        let kept = match &r.derived {
            Some(Derived::Pullback(globals)) => &globals[..],
            _ => &[],
        };
        let types = r.captures.iter().map(|(_, t)| t).chain(kept.iter().map(|g| &g.ty));
        let types: Vec<String> = types.map(|t| self.ty(t)).collect();
        let mut op = Op::new("core.closure_type");
        op.attrs = vec![
            ("name".into(), string(&*r.name)),
            ("item".into(), Attr::Int(i64::from(r.item))),
            ("start".into(), Attr::Int(i64::from(r.start))),
            ("captures".into(), strings(r.captures.iter().map(|(n, _)| n.to_string()))),
        ];
        if let Some(derived) = &r.derived {
            op.attrs.extend(self.derived(derived));
        }
        op.types = types;
        op.results = vec![name(self.functions.len())];
        self.definitions.push(op);
        self.functions.push(r.clone());
        format!("%{}", name(self.functions.len() - 1))
    }

    fn derived(&mut self, derived: &Derived) -> Vec<(String, Attr)> {
        let made = |name: &str| ("made".to_owned(), string(name));
        match derived {
            Derived::Grad(g) => [vec![made("grad")], grad(g)].concat(),
            Derived::Pullback(globals) => {
                let names = strings(globals.iter().map(|g| g.name.to_string()));
                let modules = ints(globals.iter().map(|g| i64::from(g.module.0)));
                vec![made("pullback"), ("globals".into(), names), ("modules".into(), modules)]
            }
            Derived::Checkpoint => vec![made("checkpoint")],
            Derived::Vmap(dims, out) => {
                let mut attrs = vec![made("vmap")];
                attrs.extend(dims.as_ref().map(|dims| ("in_axes".into(), axes(dims))));
                attrs.push(out_axes(out));
                attrs
            }
            Derived::Pipeline(line) => {
                let mut attrs = vec![
                    made("pipeline"),
                    ("microbatches".into(), Attr::Int(line.microbatches as i64)),
                    ("axis".into(), string(&*line.axis)),
                    ("home".into(), Attr::Int(i64::from(line.home.0))),
                ];
                attrs.extend(line.mesh.as_ref().map(|m| ("mesh".into(), string(self.mesh(m)))));
                attrs
            }
        }
    }
}

fn size_name(v: &SizeVar) -> String {
    format!("{}.{}{}", word(&v.name), v.id, if v.each { EACH } else { "" })
}

/// Behind the number of a size: another one in each element, and the second of one number.
pub const EACH: &str = ".each";
pub const DIM: &str = ".dim";
pub const INT: &str = ".int";

pub fn grad(g: &Grad) -> Vec<(String, Attr)> {
    let flag = |key: &str, holds: bool| (key.to_owned(), Attr::Bool(holds));
    vec![
        ("wrt".into(), ints(g.wrt.iter().map(|w| i64::from(*w)))),
        flag("single", g.single),
        flag("value", g.value),
        flag("aux", g.aux),
    ]
}

/// Dims of arguments; `none` where an argument has none.
pub fn axes(dims: &[Option<i64>]) -> Attr {
    Attr::List(dims.iter().map(|d| d.map_or_else(|| string("none"), Attr::Int)).collect())
}

pub fn out_axes(out: &OutAxes) -> (String, Attr) {
    let value = match out {
        OutAxes::All(dim) => Attr::Int(*dim),
        OutAxes::Each(dims) => ints(dims.iter().copied()),
    };
    ("out_axes".into(), value)
}
