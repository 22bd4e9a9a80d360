//! Why a value is not accepted, as data and as a diagnostic.

use tessera_base::size::Witness;
use tessera_base::{Code, DType, Diagnostic, Size, Span};
use tessera_core::ty::Ty;

/// In what two types differ.
#[derive(Clone, PartialEq, Debug)]
pub enum What {
    /// The kinds of type.
    Type,
    Rank {
        expected: usize,
        at_least: bool,
        found: usize,
    },
    DType {
        expected: DType,
        found: Option<DType>,
    },
    /// One dim; `proved` if the sizes can never be equal.
    Size {
        dim: usize,
        expected: Size,
        found: Size,
        proved: bool,
    },
    Sharding,
    /// Said in words.
    Other(String),
}

/// A value that is not accepted.
#[derive(Clone, PartialEq, Debug)]
pub struct Mismatch {
    /// The whole types, as declared and as found.
    pub expected: Ty,
    pub found: Ty,
    /// The way from the whole types to the parts that differ, e.g. ``["field `w`"]``.
    pub path: Vec<String>,
    /// The parts that differ (the whole types when `path` is empty).
    pub inner: (Ty, Ty),
    pub what: What,
    pub witness: Option<Witness>,
    /// What would prove the sizes equal; it was tried.
    pub advice: Option<String>,
}

/// What the value is there for.
#[derive(Clone, PartialEq, Debug)]
pub enum Role {
    Argument {
        function: String,
        param: String,
    },
    Returned {
        function: String,
    },
    /// Bound to an annotated name.
    Bound {
        name: String,
    },
    Field {
        of: String,
        field: String,
    },
    /// Said in words, e.g. `the second element`.
    Other(String),
}

impl Role {
    /// The value in words.
    pub fn text(&self) -> String {
        match self {
            Role::Argument { function, param } => format!("the argument `{param}` of `{function}`"),
            Role::Returned { function } => format!("the value returned from `{function}`"),
            Role::Bound { name } => format!("the value of `{name}`"),
            Role::Field { of, field } => format!("the field `{field}` of `{of}`"),
            Role::Other(text) => text.clone(),
        }
    }
}

impl Mismatch {
    pub fn new(expected: &Ty, found: &Ty, what: What) -> Mismatch {
        Mismatch {
            expected: expected.clone(),
            found: found.clone(),
            path: vec![],
            inner: (expected.clone(), found.clone()),
            what,
            witness: None,
            advice: None,
        }
    }

    /// The same, seen from the types that contain the parts that differ.
    pub(crate) fn inside(mut self, step: impl Into<String>, expected: &Ty, found: &Ty) -> Mismatch {
        self.path.insert(0, step.into());
        self.expected = expected.clone();
        self.found = found.clone();
        self
    }

    /// The innermost types that differ: the declared one, and that of the value.
    pub fn parts(&self) -> (&Ty, &Ty) {
        (&self.inner.0, &self.inner.1)
    }

    pub fn code(&self) -> Code {
        match &self.what {
            What::Type | What::Sharding => Code::E0204,
            What::Rank { .. } => Code::E0207,
            What::DType { .. } => Code::E0206,
            What::Size { proved: true, .. } | What::Other(_) => Code::E0202,
            What::Size { proved: false, .. } => Code::E0212,
        }
    }

    /// What is wrong, after the name of the value: "… has rank 2 where rank 1 is declared".
    fn sentence(&self, value: &str) -> String {
        let (expected, found) = &self.inner;
        let of = if self.path.is_empty() { value.to_owned() } else { format!("{} of {value}", self.path_text()) };
        match &self.what {
            What::Type => format!("{of} must be `{expected}`, and this is `{found}`"),
            What::Rank { expected, at_least, found } => {
                let least = if *at_least { "at least " } else { "" };
                format!("{of} has rank {found} where {least}rank {expected} is declared")
            }
            What::DType { expected, found: Some(found) } => {
                format!("{of} has element type {found} where {expected} is declared")
            }
            What::DType { expected, found: None } => {
                format!("the element type of {of} is not known where {expected} is declared")
            }
            What::Size { dim, expected, found, proved: true } => {
                format!("dim {dim} of {of} is {found} where {expected} is declared")
            }
            What::Size { dim, expected, found, proved: false } => {
                format!("dim {dim} of {of} is {found}, which is not {expected} for all sizes")
            }
            What::Sharding => format!("{of} is laid out in another way than declared"),
            What::Other(text) => format!("{text} in {of}"),
        }
    }

    fn path_text(&self) -> String {
        self.path.iter().rev().cloned().collect::<Vec<_>>().join(" of ")
    }

    fn help(&self) -> Option<String> {
        let (expected, found) = &self.inner;
        match &self.what {
            What::Type => type_help(expected, found),
            What::DType { expected, .. } => Some(format!("convert it with `.to({expected})`")),
            What::Rank { expected, found, at_least: false } if *found > *expected => Some(
                "index or reduce the extra dims, or declare the parameter `Tensor[..., N, f32]`, which takes any leading dims"
                    .into(),
            ),
            What::Rank { .. } => Some("add a dim of size 1 with `x[None]`".into()),
            What::Size { proved: false, .. } => self.advice.clone(),
            What::Sharding => match expected {
                Ty::Tensor(t) if !t.sharding.positions().is_empty() => {
                    Some("change where it lies with `dist.at(x, axis=…, index=…)`".into())
                }
                _ => Some("change the layout with `dist.shard(x, spec)`".into()),
            },
            _ => None,
        }
    }
}

fn type_help(expected: &Ty, found: &Ty) -> Option<String> {
    let text = match (expected, found) {
        (Ty::Float, Ty::Tensor(_)) => "`float(x)` reads a tensor of one element",
        (Ty::Int(_), Ty::Tensor(_)) => "`int(x)` reads a tensor of one element",
        (Ty::Bool, Ty::Tensor(_)) => "`bool(x)` reads a tensor of one element; `op.any(x)` and `op.all(x)` reduce",
        (Ty::Int(_), Ty::Float) => "`int(x)` drops the fraction, `round(x)` rounds; `//` divides whole numbers",
        (Ty::Int(_), Ty::Str) => "`int(x)` reads a number from text",
        (Ty::Float, Ty::Str) => "`float(x)` reads a number from text",
        (Ty::Str, Ty::None) => "a value has one type: an empty text is `\"\"`",
        (Ty::Str, _) => "`str(x)` gives its text",
        (Ty::Tensor(_) | Ty::TensorPattern(_) | Ty::AnyTensor, Ty::List(_)) => {
            "`op.array(x)` makes a tensor of nested lists"
        }
        (Ty::Tensor(_) | Ty::TensorPattern(_), Ty::Int(_) | Ty::Float | Ty::Bool) => {
            "`op.full(shape, x)` fills a tensor with the number"
        }
        (Ty::List(e), Ty::List(f)) if **e == Ty::Float && matches!(**f, Ty::Int(_)) => {
            "convert the elements: `[float(v) for v in x]`"
        }
        (Ty::List(_), Ty::Tuple(_)) => "write the elements in square brackets: `[a, b]`",
        (Ty::Tuple(_), Ty::List(_)) => "write the elements in parentheses: `(a, b)`",
        (_, Ty::None) => "a function that ends without `return` gives None",
        _ => return None,
    };
    Some(text.into())
}

/// The diagnostic: what, both full types, where the declaration is, a witness and a fix.
pub fn mismatch_diagnostic(m: &Mismatch, role: &Role, value: Span, declared: Option<Span>) -> Diagnostic {
    let mut d = Diagnostic::new(m.code(), value, m.sentence(&role.text())).here(format!("this is {}", m.found));
    match declared {
        Some(span) => d = d.with_label(span, format!("declared {}", m.expected)),
        None => d = d.note(format!("needed: {}", m.expected)),
    }
    if !m.path.is_empty() {
        d = d.note(format!("{}: {} is declared and {} is found", m.path_text(), m.inner.0, m.inner.1));
    }
    if let Some(w) = &m.witness
        && !w.values.is_empty()
    {
        d = d.witness(w.to_string());
    }
    match m.help() {
        Some(help) => d.help(help),
        None => d,
    }
}
