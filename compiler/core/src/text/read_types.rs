//! Reads types and sizes as [`super::types`] writes them.

use crate::ty::{ShardSpec, SpecDim, Ty};
use std::collections::BTreeMap;
use std::sync::Arc;
use tessera_base::{DType, Mesh, Monoid, Own, Sharding, Size, SizeVar, TensorType};

/// What the definitions before a program say, by name.
#[derive(Default)]
pub struct Defined {
    pub sizes: BTreeMap<String, SizeVar>,
    pub meshes: BTreeMap<String, Arc<Mesh>>,
    /// Structures and functions, and how many of them are within each other.
    types: BTreeMap<String, (Ty, usize)>,
}

/// Deepest nesting of types and sizes that is read.
const DEPTH_MAX: usize = 64;

/// A type or a size that is being read.
struct Cursor<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    defined: &'t Defined,
}

type Read<T> = Result<T, String>;

impl Defined {
    /// Defines a structure or a function whose parts have these types.
    pub fn define(&mut self, name: &str, parts: &[String], ty: Ty) -> Read<()> {
        let named = parts.iter().flat_map(|t| t.split('%').skip(1));
        let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
        let words = named.map(|t| &t[..t.find(|c| !word(c)).unwrap_or(t.len())]);
        let depth = 1 + words.filter_map(|w| self.types.get(w)).map(|d| d.1).max().unwrap_or(0);
        if depth > DEPTH_MAX {
            return Err("types are made of types too deeply".into());
        }
        self.types.insert(name.to_owned(), (ty, depth));
        Ok(())
    }

    /// Errors: what is wrong, for the operation that the text stands in.
    pub fn ty(&self, text: &str) -> Read<Ty> {
        self.whole(text, |c| c.ty())
    }

    /// See [`Defined::ty`].
    pub fn size(&self, text: &str) -> Read<Size> {
        self.whole(text, |c| c.size())
    }

    /// See [`Defined::ty`]; `%mesh.0`.
    pub fn mesh(&self, text: &str) -> Read<Arc<Mesh>> {
        self.whole(text, |c| c.mesh())
    }

    fn whole<T>(&self, text: &str, read: impl FnOnce(&mut Cursor) -> Read<T>) -> Read<T> {
        let mut cursor = Cursor { text, at: 0, depth: 0, defined: self };
        let found = read(&mut cursor)?;
        if cursor.rest().trim().is_empty() {
            Ok(found)
        } else {
            Err(format!("`{}` is left of `{text}`", cursor.rest()))
        }
    }
}

impl<'t> Cursor<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// Whether a sign comes next; it is taken.
    fn takes(&mut self, sign: &str) -> bool {
        let rest = self.rest();
        let trimmed = rest.trim_start_matches(' ');
        let found = trimmed.starts_with(sign);
        if found {
            self.at += rest.len() - trimmed.len() + sign.len();
        }
        found
    }

    fn wants(&mut self, sign: &str) -> Read<()> {
        if self.takes(sign) {
            Ok(())
        } else {
            Err(format!("`{sign}` is missing before `{}` in `{}`", self.rest(), self.text))
        }
    }

    fn word(&mut self) -> &'t str {
        let rest = self.rest().trim_start_matches(' ');
        self.at = self.text.len() - rest.len();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.'))).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Items up to a closing sign.
    fn items<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let mut out = vec![];
        if self.takes(close) {
            return Ok(out);
        }
        loop {
            out.push(item(self)?);
            if self.takes(close) {
                return Ok(out);
            }
            self.wants(",")?;
        }
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth == DEPTH_MAX {
            return Err(format!("`{}` is nested too deeply", self.text));
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    fn ty(&mut self) -> Read<Ty> {
        self.nested(Self::ty_here)
    }

    fn ty_here(&mut self) -> Read<Ty> {
        if self.takes("%") {
            let name = self.word();
            return self
                .defined
                .types
                .get(name)
                .map(|d| d.0.clone())
                .ok_or_else(|| format!("`%{name}` is not defined"));
        }
        let word = self.word();
        Ok(match word {
            "int" if self.takes("(") => {
                let size = self.size()?;
                self.wants(")")?;
                Ty::Int(Some(size))
            }
            "dtype" if self.takes("(") => {
                let name = self.word();
                self.wants(")")?;
                Ty::DType(Some(DType::parse(name).ok_or_else(|| format!("`{name}` is no element type"))?))
            }
            "Mesh" if self.takes("(") => {
                let mesh = self.mesh()?;
                self.wants(")")?;
                Ty::Mesh(Some(mesh))
            }
            "ShardSpec" if self.takes("(") => Ty::ShardSpec(Some(Arc::new(self.spec()?))),
            "Tensor" if self.takes("[") => self.tensor()?,
            "list" => Ty::List(Box::new(self.one_of("[", "]")?)),
            "dict" => {
                self.wants("[")?;
                let key = self.ty()?;
                self.wants(",")?;
                let value = self.ty()?;
                self.wants("]")?;
                Ty::Dict(Box::new(key), Box::new(value))
            }
            "tuple" => {
                self.wants("[")?;
                Ty::Tuple(self.items("]", Self::ty)?)
            }
            "fn" => {
                self.wants("(")?;
                let mut params = vec![];
                while !self.takes(";") {
                    params.push(self.ty()?);
                    self.takes(",");
                }
                let ret = self.ty()?;
                self.wants(")")?;
                Ty::Fn(params, Box::new(ret))
            }
            "int" => Ty::Int(None),
            "dtype" => Ty::DType(None),
            "Mesh" => Ty::Mesh(None),
            "ShardSpec" => Ty::ShardSpec(None),
            "Tensor" => Ty::AnyTensor,
            "float" => Ty::Float,
            "bool" => Ty::Bool,
            "str" => Ty::Str,
            "None" => Ty::None,
            "never" => Ty::Never,
            "unknown" => Ty::Unknown,
            "error" => Ty::Error,
            other => return Err(format!("`{other}` is no type")),
        })
    }

    fn one_of(&mut self, open: &str, close: &str) -> Read<Ty> {
        self.wants(open)?;
        let ty = self.ty()?;
        self.wants(close)?;
        Ok(ty)
    }

    fn mesh(&mut self) -> Read<Arc<Mesh>> {
        self.wants("%")?;
        let name = self.word();
        self.defined.meshes.get(name).cloned().ok_or_else(|| format!("`%{name}` is no mesh"))
    }

    /// `0: [dp], "N": [tp])`
    fn spec(&mut self) -> Read<ShardSpec> {
        let parts = self.items(")", |c| {
            let dim = if c.takes("\"") {
                let name = c.word();
                c.wants("\"")?;
                SpecDim::Named(name.into())
            } else {
                let negative = c.takes("-");
                let n: i64 = c.word().parse().map_err(|_| format!("a dim of `{}` is no number", c.text))?;
                SpecDim::At(if negative { -n } else { n })
            };
            c.wants(":")?;
            c.wants("[")?;
            Ok((dim, c.items("]", |c| Ok(c.word().to_owned()))?))
        })?;
        Ok(ShardSpec { parts })
    }

    /// Behind `Tensor[`.
    fn tensor(&mut self) -> Read<Ty> {
        let open = self.takes("...");
        if open && !self.takes(",") {
            self.wants("]")?;
            return self.tensor_of(open, TensorType { shape: vec![], dtype: None, sharding: Sharding::default() });
        }
        let mut t = TensorType { shape: vec![], dtype: None, sharding: Sharding::default() };
        self.items("]", |c| c.part(&mut t))?;
        if t.sharding.dims.iter().all(Vec::is_empty) {
            t.sharding.dims = vec![];
        }
        self.tensor_of(open, t)
    }

    fn tensor_of(&mut self, open: bool, mut t: TensorType) -> Read<Ty> {
        if self.takes("on ") {
            t.sharding.mesh = Some(self.mesh()?);
        }
        Ok(match open {
            false => Ty::Tensor(t),
            true => Ty::TensorPattern(crate::ty::TensorPattern { tail: t.shape, dtype: t.dtype, sharding: t.sharding }),
        })
    }

    /// A dim with its axes, the element type, or what is still partial.
    fn part(&mut self, t: &mut TensorType) -> Read<()> {
        let rest = self.rest().trim_start();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let is_call = matches!(word, "min" | "max") && behind.starts_with('(');
        if word.starts_with(|c: char| c.is_alphabetic()) && !is_call {
            self.word();
            if let Some(dtype) = DType::parse(word) {
                t.dtype = Some(dtype);
                return Ok(());
            }
            let monoid = match word {
                "at" => {
                    self.wants("(")?;
                    let n = self.word().parse().map_err(|_| "a position is no number".to_owned())?;
                    self.wants(")")?;
                    Monoid::At(n)
                }
                "block" => {
                    self.wants("(")?;
                    let n = self.word().parse().map_err(|_| "a dim is no number".to_owned())?;
                    self.wants(")")?;
                    Monoid::Each(Own::Block(n))
                }
                other => Monoid::parse(other)
                    .or(Own::parse(other).map(Monoid::Each))
                    .ok_or_else(|| format!("`{other}` is no element type"))?,
            };
            self.wants("@")?;
            t.sharding.partial.push((monoid, self.word().to_owned()));
            return Ok(());
        }
        t.shape.push(self.size()?);
        t.sharding.dims.push(match self.takes("@") {
            false => vec![],
            true if self.takes("(") => self.items(")", |c| Ok(c.word().to_owned()))?,
            true => vec![self.word().to_owned()],
        });
        Ok(())
    }

    fn size(&mut self) -> Read<Size> {
        self.nested(|c| {
            let mut sum = c.product()?;
            loop {
                if c.takes("+") {
                    sum = sum.add(&c.product()?);
                } else if c.takes("-") {
                    sum = sum.sub(&c.product()?);
                } else {
                    return Ok(sum);
                }
            }
        })
    }

    fn product(&mut self) -> Read<Size> {
        let mut out = self.factor()?;
        let none = || "a size is divided by zero".to_owned();
        loop {
            if self.takes("*") {
                out = out.mul(&self.factor()?);
            } else if self.takes("//") {
                out = out.floor_div(&self.factor()?).ok_or_else(none)?;
            } else if self.takes("%") {
                out = out.floor_mod(&self.factor()?).ok_or_else(none)?;
            } else {
                return Ok(out);
            }
        }
    }

    fn factor(&mut self) -> Read<Size> {
        if self.takes("-") {
            // The least number has no positive counterpart.
            if self.rest().starts_with(|c: char| c.is_ascii_digit()) {
                return self.number("-");
            }
            return Ok(self.nested(Self::factor)?.neg());
        }
        if self.takes("(") {
            let size = self.size()?;
            self.wants(")")?;
            return Ok(size);
        }
        if self.takes("%") {
            let name = self.word();
            let var = self.defined.sizes.get(name).ok_or_else(|| format!("`%{name}` is no size"))?;
            return Ok(Size::var(var.clone()));
        }
        if self.rest().trim_start().starts_with(|c: char| c.is_ascii_digit()) {
            return self.number("");
        }
        let word = self.word();
        if matches!(word, "min" | "max") {
            self.wants("(")?;
            let a = self.size()?;
            self.wants(",")?;
            let b = self.size()?;
            self.wants(")")?;
            return Ok(if word == "min" { a.least(&b) } else { a.greatest(&b) });
        }
        Err(format!("`{word}` is no size in `{}`", self.text))
    }

    fn number(&mut self, sign: &str) -> Read<Size> {
        let digits = self.word();
        let number = format!("{sign}{digits}").parse::<i128>();
        number.map(Size::wide).map_err(|_| format!("`{sign}{digits}` is no size in `{}`", self.text))
    }
}
