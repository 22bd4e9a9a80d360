//! Arguments that stand for those of a call: what the type of a parameter says, with sizes that are numbers.

use super::sizes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{Code, DType, Diagnostic, Mesh, Sharding, Span};
use tessera_core::ty::Ty;
use tessera_infer::asked::Literal;
use tessera_trace::RegionArg;

type Made<T> = Result<T, Box<Diagnostic>>;

/// How long a list is where nobody says it.
const LIST: usize = 2;
/// Elements of lists that a call may have.
const LIST_MAX: usize = 10_000;

/// A value that was chosen for a number, a bool or how long a list is.
#[derive(Clone, PartialEq, Debug)]
pub struct Chosen {
    /// `rate`, `config.heads`.
    pub path: String,
    pub text: String,
    /// The leaf of the arguments, if it is one.
    pub leaf: Option<u32>,
    pub given: bool,
    /// Its type says it, at these sizes.
    pub known: bool,
}

/// What values are made from.
pub struct Maker<'a> {
    /// The size variables.
    pub sizes: &'a sizes::Values,
    /// What `--with` says, and which of it was asked for.
    pub with: &'a [(String, String)],
    pub used: BTreeSet<String>,
    /// The mesh in place of one of which only axes are known.
    pub mesh: Option<Arc<Mesh>>,
    /// Where the parameter stands.
    pub span: Span,
    pub chosen: Vec<Chosen>,
    leaves: u32,
}

impl<'a> Maker<'a> {
    pub fn new(sizes: &'a sizes::Values, with: &'a [(String, String)], mesh: Option<Arc<Mesh>>) -> Maker<'a> {
        Maker { sizes, with, used: BTreeSet::new(), mesh, span: Span::NONE, chosen: vec![], leaves: 0 }
    }

    fn given(&mut self, path: &str) -> Option<&'a str> {
        let (name, value) = self.with.iter().find(|(name, _)| name == path)?;
        self.used.insert(name.clone());
        Some(value)
    }

    fn refused(&self, message: String, help: String) -> Box<Diagnostic> {
        Box::new(Diagnostic::new(Code::E0213, self.span, message).help(help))
    }

    /// The value of a parameter, or of a part of one.
    pub fn value(&mut self, path: &str, ty: &Ty, default: Option<&Literal>) -> Made<RegionArg> {
        let takes = matches!(ty, Ty::Int(_) | Ty::Float | Ty::Bool | Ty::Str | Ty::DType(None) | Ty::List(_));
        let written = if takes { self.given(path) } else { None };
        Ok(match ty {
            Ty::Int(size) => {
                let known = size.as_ref().and_then(|s| s.eval(&|v| self.sizes.get(v).copied()));
                let written = written.map(|t| parsed::<i64>(path, t, "an int such as 3")).transpose()?;
                if let (Some(a), Some(b), true) = (known, written, size.as_ref().is_some_and(|s| s.as_var().is_none()))
                    && a != b
                {
                    let text = format!("`{path}` is {a}: its type says so");
                    return Err(self.refused(text, format!("annotate it as `{path}: int` to give it another value")));
                }
                let default = if let Some(Literal::Int(n)) = default { Some(*n) } else { None };
                let n = known.or(written).or(default).unwrap_or(4);
                // What a type says is no choice.
                if size.as_ref().is_none_or(|s| s.as_const().is_none()) {
                    self.note(path, n.to_string(), written.is_some());
                    self.chosen.iter_mut().filter(|c| c.path == path).for_each(|c| c.known = known.is_some());
                }
                self.leaf(RegionArg::Int(n))
            }
            Ty::Float => {
                let written = written.map(|t| parsed::<f64>(path, t, "a float such as 0.5")).transpose()?;
                let default = if let Some(Literal::Float(x)) = default { Some(*x) } else { None };
                let x = written.or(default).unwrap_or(0.5);
                self.note(path, format!("{x:?}"), written.is_some());
                self.leaf(RegionArg::Float(x))
            }
            Ty::Bool => {
                let written = written.map(|t| boolean(path, t)).transpose()?;
                let default = if let Some(Literal::Bool(b)) = default { Some(*b) } else { None };
                let b = written.or(default).unwrap_or(false);
                self.note(path, if b { "True" } else { "False" }.into(), written.is_some());
                self.leaf(RegionArg::Bool(b))
            }
            Ty::Str => match (written, default) {
                (Some(text), _) => RegionArg::Str(unquoted(text).into()),
                (None, Some(Literal::Str(text))) => RegionArg::Str(text.clone()),
                _ => {
                    let text = format!("nothing says which text `{path}` is");
                    return Err(self.refused(text, format!("give it: `--with {path}=\"…\"`")));
                }
            },
            Ty::DType(Some(d)) => RegionArg::DType(*d),
            Ty::DType(None) => {
                let wrong = |t: &str| wrong(format!("`--with {path}={t}`: `{t}` is no element type"));
                let written = written.map(|t| DType::parse(unquoted(t)).ok_or_else(|| wrong(t))).transpose()?;
                let default = if let Some(Literal::DType(d)) = default { Some(*d) } else { None };
                RegionArg::DType(written.or(default).unwrap_or(DType::F32))
            }
            Ty::None | Ty::Mesh(_) | Ty::ShardSpec(_) | Ty::Unknown | Ty::Never | Ty::Error => RegionArg::None,
            Ty::Tensor(t) => {
                let shape = t.shape.iter().enumerate().map(|(i, size)| self.dim(path, i, size)).collect::<Made<_>>()?;
                let layout = self.layout(&t.sharding);
                self.leaf(RegionArg::Tensor { dtype: t.dtype.unwrap_or(DType::F32), shape, layout })
            }
            Ty::List(element) => {
                let length = written.map(|t| parsed::<usize>(path, t, "how many elements the list has")).transpose()?;
                if length.is_some_and(|n| n > LIST_MAX) {
                    return Err(wrong(format!("`--with {path}`: a list has at most {LIST_MAX} elements here")));
                }
                let n = if **element == Ty::Unknown { 0 } else { length.unwrap_or(LIST) };
                self.chosen.push(Chosen {
                    path: format!("len({path})"),
                    text: n.to_string(),
                    leaf: None,
                    given: length.is_some(),
                    known: false,
                });
                let inner = format!("{path}[]");
                RegionArg::List((0..n).map(|_| self.value(&inner, element, None)).collect::<Made<_>>()?)
            }
            Ty::Tuple(parts) => {
                let part = |(i, ty): (usize, &Ty)| self.value(&format!("{path}.{i}"), ty, None);
                RegionArg::Record(parts.iter().enumerate().map(part).collect::<Made<_>>()?)
            }
            Ty::Struct(s) => {
                let field = |(name, ty): &(Arc<str>, Ty)| self.value(&format!("{path}.{name}"), ty, None);
                RegionArg::Record(s.fields.iter().map(field).collect::<Made<_>>()?)
            }
            Ty::FnRef(r) => {
                let capture = |(name, ty): &(Arc<str>, Ty)| self.value(&format!("{path}.{name}"), ty, None);
                RegionArg::Record(r.captures.iter().map(capture).collect::<Made<_>>()?)
            }
            Ty::Dict(..) => {
                let text = format!("which keys `{path}` has, only running tells");
                return Err(self.refused(text, "a struct says which parts a value has".into()));
            }
            Ty::Fn(..) => {
                let text = format!("which function `{path}` is, only a call tells");
                return Err(self.refused(text, "ask for a function that calls it with one".into()));
            }
            Ty::TensorPattern(_) | Ty::AnyTensor => {
                let text = format!("nothing says how many dims `{path}` has");
                return Err(self.refused(text, format!("annotate it: `{path}: Tensor[N, D, f32]`")));
            }
        })
    }

    fn dim(&self, path: &str, i: usize, size: &tessera_base::Size) -> Made<u64> {
        let value = size.eval(&|v| self.sizes.get(v).copied());
        value.and_then(|n| u64::try_from(n).ok()).ok_or_else(|| {
            let at = super::listed(self.sizes.iter().filter(|(v, _)| size.vars().contains(v)));
            let is = value.map_or("has no value".into(), |n| format!("is {n}"));
            let message = format!("dim {i} of `{path}`, `{size}`, {is} at {at}");
            Box::new(Diagnostic::new(Code::E0602, self.span, message).help("give other sizes with `--sizes`"))
        })
    }

    fn layout(&self, sharding: &Sharding) -> Sharding {
        let mesh = match (&sharding.mesh, &self.mesh) {
            (Some(own), Some(mesh)) if own.is_unknown() => Some(mesh.clone()),
            (own, _) => own.clone(),
        };
        Sharding { mesh, ..sharding.clone() }
    }

    fn leaf(&mut self, arg: RegionArg) -> RegionArg {
        self.leaves += 1;
        arg
    }

    fn note(&mut self, path: &str, text: String, given: bool) {
        let leaf = Some(self.leaves);
        if !self.chosen.iter().any(|c| c.path == path) {
            self.chosen.push(Chosen { path: path.into(), text, leaf, given, known: false });
        }
    }
}

/// A wrong use of the command line.
pub fn wrong(message: String) -> Box<Diagnostic> {
    Box::new(Diagnostic::new(Code::E0602, Span::NONE, message))
}

fn parsed<T: std::str::FromStr>(path: &str, text: &str, what: &str) -> Made<T> {
    text.parse().map_err(|_| wrong(format!("`--with {path}={text}`: `{path}` takes {what}")))
}

fn boolean(path: &str, text: &str) -> Made<bool> {
    match text {
        "True" | "true" => Ok(true),
        "False" | "false" => Ok(false),
        _ => Err(wrong(format!("`--with {path}={text}`: `{path}` takes True or False"))),
    }
}

/// The text of a string, which may stand in quotes.
fn unquoted(text: &str) -> &str {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}

/// What the tensors of a type say of a mesh: axes of which only the names are known.
pub fn open_axes(ty: &Ty, out: &mut BTreeMap<String, u64>) {
    for t in tessera_core::layouts::tensors(ty) {
        let mesh = t.sharding.mesh.iter().filter(|m| m.is_unknown());
        out.extend(mesh.flat_map(|m| m.axes.iter().cloned()));
    }
}
