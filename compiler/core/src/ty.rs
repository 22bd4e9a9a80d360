//! Types of the language.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use tessera_base::{DType, FileId, Mesh, Sharding, Size, TensorType};
use tessera_ops::scalar::Kind;

/// A variable of a module: its number in the program, and in a checked body, that of the body's own table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct GlobalId(pub u32);

/// What a variable of a module is whoever numbers it: its module, its name, and its erased type, as a name that takes on
/// values of several types is a variable for each.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct GlobalKey {
    pub module: FileId,
    pub name: Arc<str>,
    pub ty: Ty,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Ty {
    /// With its symbolic value where one is known.
    Int(Option<Size>),
    Float,
    Bool,
    Str,
    None,
    /// A dtype as a value, with the value where it is known.
    DType(Option<DType>),
    Tensor(TensorType),
    /// `Tensor[..., D, f32]`: any leading dims. Only the declared type of a parameter, never of
    /// a value; an instance has a [`Ty::Tensor`] instead.
    TensorPattern(TensorPattern),
    /// A tensor of which neither rank nor dtype is known (`io.read_npy` without an annotation).
    AnyTensor,
    List(Box<Ty>),
    Dict(Box<Ty>, Box<Ty>),
    Tuple(Vec<Ty>),
    Struct(Arc<StructTy>),
    /// One particular function or lambda with the types of its captures: calls are direct.
    FnRef(Arc<FnRefTy>),
    /// Any function of this type.
    Fn(Vec<Ty>, Box<Ty>),
    /// A mesh, with its axes where they are known.
    Mesh(Option<Arc<Mesh>>),
    /// How a tensor is to lie, where it is known.
    ShardSpec(Option<Arc<ShardSpec>>),
    /// The empty list's or dict's element before it is known.
    Unknown,
    /// The type of an expression that does not return.
    Never,
    /// Reported already; agrees with everything.
    Error,
}

/// `dist.ShardSpec(partition=…, mesh_axes=…)`: which dims are split over which axes. It names dims
/// as the program does; which they are, a tensor decides.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ShardSpec {
    pub parts: Vec<(SpecDim, Vec<String>)>,
}

impl fmt::Display for ShardSpec {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let tuple = |items: Vec<String>| match &items[..] {
            [one] => format!("({one},)"),
            _ => format!("({})", items.join(", ")),
        };
        let dim = |dim: &SpecDim| match dim {
            SpecDim::At(i) => i.to_string(),
            SpecDim::Named(name) => format!("\"{name}\""),
        };
        let quoted = |axes: &[String]| axes.iter().map(|a| format!("\"{a}\"")).collect::<Vec<_>>();
        let axes = |axes: &Vec<String>| match &axes[..] {
            [_] => quoted(axes).concat(),
            _ => tuple(quoted(axes)),
        };
        let partition = tuple(self.parts.iter().map(|p| dim(&p.0)).collect());
        let over = tuple(self.parts.iter().map(|p| axes(&p.1)).collect());
        write!(f, "ShardSpec(partition={partition}, mesh_axes={over})")
    }
}

/// A dim in a `ShardSpec`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum SpecDim {
    /// Counted from the start, or from the end where negative.
    At(i64),
    /// `row` (the first), `col` (the last), or the name of a size.
    Named(Arc<str>),
}

impl fmt::Display for SpecDim {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            SpecDim::At(i) => write!(f, "dim {i}"),
            SpecDim::Named(name) => write!(f, "`{name}`"),
        }
    }
}

/// A tensor type with any number of leading dims.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorPattern {
    /// The last dims.
    pub tail: Vec<Size>,
    /// `None` where the annotation leaves the element type open.
    pub dtype: Option<DType>,
    /// Its dims are those of `tail`.
    pub sharding: Sharding,
}

impl fmt::Display for TensorPattern {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let known = TensorType { shape: self.tail.clone(), dtype: self.dtype, sharding: self.sharding.clone() };
        let text = known.to_string();
        let rest = text.strip_prefix("Tensor[").unwrap_or("]");
        write!(f, "Tensor[...{}{rest}", if rest == "]" { "" } else { ", " })
    }
}

/// A struct at its field types.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct StructTy {
    pub name: Arc<str>,
    /// The item that defines it (identity of the struct).
    pub item: u32,
    pub fields: Vec<(Arc<str>, Ty)>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FnRefTy {
    pub name: Arc<str>,
    /// Which function or lambda: the item that holds it and its start inside the item.
    pub item: u32,
    pub start: u32,
    pub captures: Vec<(Arc<str>, Ty)>,
    /// What is made of the function that is the first capture (`autodiff.grad(f)`).
    pub derived: Option<Derived>,
}

impl FnRefTy {
    /// As programs print the function; a message has quotes of its own around a type.
    pub fn printed(&self) -> String {
        format!("function `{}`", self.name)
    }
}

/// A function made of another.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Derived {
    /// `grad` and `value_and_grad`.
    Grad(Grad),
    /// The second result of `vjp`, which has the arguments of the function as further captures, and behind them the
    /// values that these module variables had.
    Pullback(Vec<GlobalKey>),
    /// `checkpoint`.
    Checkpoint,
    /// `vmap`; which dim of each argument it goes over, the first of all where none is named.
    Vmap(Option<Vec<Option<i64>>>, OutAxes),
    /// `dist.pipeline`: the captures are the stages.
    Pipeline(Line),
}

/// What is known of a pipeline besides its stages.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Line {
    pub microbatches: u64,
    /// The stages lie along it.
    pub axis: String,
    /// Where it is named; else that of the argument.
    pub mesh: Option<Arc<Mesh>>,
    /// The file that pipelines are made of, which the module of a call need not import.
    pub home: FileId,
}

/// Where the dim that `vmap` goes over lies in the results.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum OutAxes {
    All(i64),
    /// For each element of the tuple that the function gives.
    Each(Vec<i64>),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Grad {
    /// The arguments that the function is differentiated with respect to.
    pub wrt: Vec<u32>,
    /// `wrt` is one argument and not a tuple.
    pub single: bool,
    /// Gives the value too.
    pub value: bool,
    /// The function gives something besides its value.
    pub aux: bool,
}

impl FnRefTy {
    /// Whether it is the same function, perhaps with captures of other types.
    pub fn same_function(&self, other: &FnRefTy) -> bool {
        (self.item, self.start, &self.name, &self.derived) == (other.item, other.start, &other.name, &other.derived)
    }
}

impl Ty {
    /// As what operations on numbers take it, if it is a number.
    pub fn number(&self) -> Option<Kind> {
        match self {
            Ty::Int(_) => Some(Kind::I64),
            Ty::Float => Some(Kind::F64),
            Ty::Bool => Some(Kind::Bool),
            _ => None,
        }
    }

    /// Whether tensors of it lie on a mesh.
    pub fn on_a_mesh(&self) -> bool {
        match self {
            Ty::Tensor(t) => t.sharding.mesh.is_some(),
            Ty::Tuple(tys) => tys.iter().any(Ty::on_a_mesh),
            Ty::Struct(s) => s.fields.iter().any(|f| f.1.on_a_mesh()),
            Ty::List(t) | Ty::Dict(_, t) => t.on_a_mesh(),
            _ => false,
        }
    }

    /// The mesh axes that annotations name.
    pub fn stated_axes(&self, out: &mut BTreeSet<String>) {
        match self {
            Ty::Tensor(t) if t.sharding.mesh.is_none() => {
                out.extend(t.sharding.dims.iter().flatten().cloned());
                out.extend(t.sharding.partial.iter().map(|p| p.1.clone()));
            }
            Ty::Tuple(tys) => tys.iter().for_each(|t| t.stated_axes(out)),
            Ty::List(t) | Ty::Dict(_, t) => t.stated_axes(out),
            _ => {}
        }
    }

    /// The type with its tensors of stated layouts on a mesh.
    pub fn stated_on(&self, mesh: &Arc<Mesh>) -> Ty {
        match self {
            Ty::Tensor(t) if t.sharding.mesh.is_none() && !t.sharding.is_replicated() => {
                let sharding = Sharding { mesh: Some(mesh.clone()), ..t.sharding.clone() };
                Ty::Tensor(TensorType { sharding, ..t.clone() })
            }
            Ty::Tuple(tys) => Ty::Tuple(tys.iter().map(|t| t.stated_on(mesh)).collect()),
            Ty::List(t) => Ty::List(Box::new(t.stated_on(mesh))),
            Ty::Dict(k, t) => Ty::Dict(k.clone(), Box::new(t.stated_on(mesh))),
            _ => self.clone(),
        }
    }

    pub fn int() -> Ty {
        Ty::Int(None)
    }

    pub fn int_of(n: i64) -> Ty {
        Ty::Int(Some(Size::constant(n)))
    }

    pub fn is_error(&self) -> bool {
        matches!(self, Ty::Error | Ty::Never)
    }

    /// Whether a part of it is what an error left.
    pub fn holds_error(&self) -> bool {
        match self {
            Ty::List(t) => t.holds_error(),
            Ty::Dict(k, v) => k.holds_error() || v.holds_error(),
            Ty::Tuple(ts) => ts.iter().any(Ty::holds_error),
            Ty::Struct(s) => s.fields.iter().any(|(_, t)| t.holds_error()),
            t => t.is_error(),
        }
    }

    pub fn is_tensor(&self) -> bool {
        matches!(self, Ty::Tensor(_) | Ty::AnyTensor)
    }

    /// int, float or bool.
    pub fn is_scalar(&self) -> bool {
        matches!(self, Ty::Int(_) | Ty::Float | Ty::Bool)
    }

    /// The constant value of an int, where it is known.
    pub fn const_int(&self) -> Option<i64> {
        match self {
            Ty::Int(Some(n)) => n.as_const(),
            _ => None,
        }
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let list = |tys: &[Ty]| tys.iter().map(Ty::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Ty::Int(_) => f.write_str("int"),
            Ty::Float => f.write_str("float"),
            Ty::Bool => f.write_str("bool"),
            Ty::Str => f.write_str("str"),
            Ty::None => f.write_str("None"),
            Ty::DType(_) => f.write_str("dtype"),
            Ty::Tensor(t) => t.fmt(f),
            Ty::TensorPattern(p) => p.fmt(f),
            Ty::AnyTensor => f.write_str("Tensor of unknown rank and dtype"),
            Ty::List(t) => write!(f, "list[{t}]"),
            Ty::Dict(k, v) => write!(f, "dict[{k}, {v}]"),
            Ty::Tuple(ts) => write!(f, "tuple[{}]", list(ts)),
            Ty::Struct(s) => f.write_str(&s.name),
            Ty::FnRef(r) => write!(f, "function {}", r.name),
            Ty::Fn(ps, r) => write!(f, "({}) -> {r}", list(ps)),
            Ty::Mesh(None) => f.write_str("Mesh"),
            Ty::Mesh(Some(mesh)) => mesh.fmt(f),
            Ty::ShardSpec(None) => f.write_str("ShardSpec"),
            Ty::ShardSpec(Some(spec)) => spec.fmt(f),
            Ty::Unknown => f.write_str("?"),
            Ty::Never => f.write_str("never"),
            Ty::Error => f.write_str("<error>"),
        }
    }
}

/// Whether values of two types have one form. What is not known, or never there, has any.
pub fn same_form(a: &Ty, b: &Ty) -> bool {
    match (a, b) {
        (Ty::Error | Ty::Never | Ty::Unknown, _) | (_, Ty::Error | Ty::Never | Ty::Unknown) => true,
        (Ty::List(a), Ty::List(b)) => same_form(a, b),
        (Ty::Dict(ka, a), Ty::Dict(kb, b)) => same_form(ka, kb) && same_form(a, b),
        (Ty::Tuple(a), Ty::Tuple(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_form(a, b)),
        (Ty::Struct(a), Ty::Struct(b)) => {
            Arc::ptr_eq(a, b)
                || a.item == b.item && a.fields.iter().zip(&b.fields).all(|((_, a), (_, b))| same_form(a, b))
        }
        (Ty::FnRef(a), Ty::FnRef(b)) => {
            Arc::ptr_eq(a, b)
                || a.same_function(b) && a.captures.iter().zip(&b.captures).all(|((_, a), (_, b))| same_form(a, b))
        }
        (Ty::Fn(pa, ra), Ty::Fn(pb, rb)) => {
            pa.len() == pb.len() && pa.iter().zip(pb).all(|(a, b)| same_form(a, b)) && same_form(ra, rb)
        }
        (a, b) if a.is_tensor() => b.is_tensor(),
        _ => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}
