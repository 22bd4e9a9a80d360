//! How a row of the table is written, and what every operator does besides its own rule:
//! defaults, `out_dtype`, `accum_dtype`, and typing again at concrete shapes before expanding.

use super::expand;
use super::rule::{self, Inferred, Operand};
use super::*;

pub type InferFn = fn(&mut InferCx, &[SymArg], &Hints) -> Inferred;
pub type Lowered = Result<Vec<Id>, OpError>;
pub type LowerFn = fn(&mut Call) -> Lowered;

/// A row before it becomes an [`OpDef`].
#[derive(Clone, Copy)]
pub struct Row {
    pub name: &'static str,
    known_as: &'static [&'static str],
    method: bool,
    doc: &'static str,
    signature: &'static str,
    pub params: &'static [Param],
    pub mixed: Mixed,
    halves: bool,
    elementwise: bool,
    open_shape: Option<usize>,
    infer: InferFn,
    lower: LowerFn,
    settles: Option<SettleFn>,
    unsupported: Option<&'static str>,
}

impl Row {
    pub const fn new(name: &'static str, params: &'static [Param], infer: InferFn, lower: LowerFn) -> Row {
        Row {
            name,
            known_as: &[],
            method: false,
            doc: "",
            signature: "",
            params,
            mixed: Mixed::Nothing,
            halves: false,
            elementwise: false,
            open_shape: None,
            infer,
            lower,
            settles: None,
            unsupported: None,
        }
    }

    /// An operator that parses and is refused with a reason.
    pub const fn refused(name: &'static str, params: &'static [Param], doc: &'static str, reason: &'static str) -> Row {
        let mut row = Row::new(name, params, |_, _, _| Ok(OpTypes::Many(vec![])), |_| Ok(vec![]));
        row.unsupported = Some(reason);
        row.doc = doc;
        row
    }

    /// Is also a method of tensors.
    pub const fn method(mut self) -> Row {
        self.method = true;
        self
    }

    pub const fn known_as(mut self, names: &'static [&'static str]) -> Row {
        self.known_as = names;
        self
    }

    pub const fn doc(mut self, text: &'static str) -> Row {
        self.doc = text;
        self
    }

    pub const fn signature(mut self, text: &'static str) -> Row {
        self.signature = text;
        self
    }

    /// This parameter is a shape of which one size may be -1.
    pub const fn open_shape(mut self, param: usize) -> Row {
        self.open_shape = Some(param);
        self
    }

    /// A product of these parameters.
    pub const fn product_of(mut self, factors: &'static [usize]) -> Row {
        self.mixed = Mixed::Product(factors);
        self
    }

    /// A product of these matrices.
    pub const fn matrices(mut self, factors: &'static [usize]) -> Row {
        self.mixed = Mixed::Matrices(factors);
        self
    }

    /// Its sums can be formed in f16.
    pub const fn halves(mut self) -> Row {
        self.halves = true;
        self
    }

    /// An element of the result depends on those of the operands at its place alone, if on any.
    pub const fn elementwise(mut self) -> Row {
        self.elementwise = true;
        self
    }

    /// Sums up these parameters.
    pub const fn sum_of(mut self, terms: &'static [usize]) -> Row {
        self.mixed = Mixed::Sum(terms);
        self
    }

    /// A default means something that only types decide.
    pub const fn settles(mut self, settles: SettleFn) -> Row {
        self.settles = Some(settles);
        self
    }

    /// The row with the functions that [`infer`] and [`expand`] are for it.
    pub const fn def(
        self,
        infer: fn(&mut InferCx, &[SymArg], &Hints) -> Inferred,
        expand: fn(&mut dyn Build, &[Arg], &Hints) -> Lowered,
    ) -> OpDef {
        OpDef {
            name: self.name,
            known_as: self.known_as,
            method: self.method,
            doc: self.doc,
            signature: self.signature,
            params: self.params,
            mixed: self.mixed,
            elementwise: self.elementwise,
            infer,
            expand,
            settles: self.settles,
            open_shape: self.open_shape,
            unsupported: self.unsupported,
        }
    }

    fn refusal(&self) -> Result<(), OpError> {
        match self.unsupported {
            Some(why) => Err(OpError::new(Code::E0690, format!("`{}` is not supported yet", self.name)).note(why)),
            None => Ok(()),
        }
    }
}

/// A required parameter.
pub const fn req(name: &'static str, kind: ParamKind) -> Param {
    Param { name, kind, default: Default::Required, keyword_only: false }
}

/// A parameter with a default.
pub const fn opt(name: &'static str, kind: ParamKind, default: Default) -> Param {
    Param { name, kind, default, keyword_only: false }
}

/// The typing rule of a row with what is common to all rows.
pub fn infer(row: &Row, cx: &mut InferCx, args: &[SymArg], hints: &Hints) -> Inferred {
    row.refusal()?;
    let mut all = args.to_vec();
    for param in row.params.iter().skip(args.len()) {
        match param.default.sym() {
            Some(arg) => all.push(arg),
            None => {
                return Err(OpError::new(Code::E0104, format!("`{}` needs the argument `{}`", row.name, param.name)));
            }
        }
    }
    precision::typed(row, hints.precision, &mut all);
    check_accumulator(row, &all, hints)?;
    let types = (row.infer)(cx, &all, hints)?;
    check_room(&types, hints)?;
    rule::room(row.name, &types, || ints(row, &all))?;
    let Some(out) = hints.out_dtype else { return Ok(types) };
    let complex = |t: &TensorType| t.dtype == Some(DType::C64);
    let some = match &types {
        OpTypes::One(t) => complex(t),
        OpTypes::Many(ts) => ts.iter().any(complex),
    };
    if some && out != DType::C64 {
        return Err(OpError::new(Code::E0214, format!("`out_dtype` cannot be {out} here: the result is complex"))
            .help("`op.real(…)`, `op.imag(…)` and `op.abs(…)` give real numbers"));
    }
    Ok(match types {
        OpTypes::One(t) => OpTypes::One(TensorType { dtype: Some(out), ..t }),
        // Of several results those that hold values, not positions.
        OpTypes::Many(ts) => OpTypes::Many(
            ts.into_iter()
                .map(|t| if t.dtype.is_none_or(DType::is_float) { TensorType { dtype: Some(out), ..t } } else { t })
                .collect(),
        ),
    })
}

/// The parameters that were given other ints than their defaults, with the ints.
fn ints<'a>(row: &'a Row, args: &[SymArg]) -> Vec<(usize, &'a str, String)> {
    let given = row.params.iter().zip(args).enumerate();
    let text = |arg: &SymArg| match arg {
        SymArg::Int(n) => Some(n.to_string()),
        SymArg::Ints(ns) => Some(rule::tuple(ns)),
        _ => None,
    };
    let own = given.filter(|(_, (p, arg))| p.default.sym().as_ref() != Some(*arg));
    own.filter_map(|(i, (p, arg))| Some((i, p.name, text(arg)?))).collect()
}

/// Ints that are summed in a wider type than the result has would be cut off.
fn check_room(types: &OpTypes, hints: &Hints) -> Result<(), OpError> {
    let Some(accum) = hints.accum_dtype.filter(|d| d.is_int()) else { return Ok(()) };
    let own = match types {
        OpTypes::One(t) => t.dtype,
        OpTypes::Many(ts) => ts.first().and_then(|t| t.dtype),
    };
    match hints.out_dtype.or(own) {
        Some(result) if result.is_int() && accum.bytes() > result.bytes() => Err(OpError::new(
            Code::E0214,
            format!("`accum_dtype` cannot be {accum} here: the result is {result} and would lose what {accum} holds"),
        )
        .help(format!(
            "`out_dtype={accum}` for all of the sum, or no `accum_dtype`: {result} keeps the same low bits"
        ))),
        _ => Ok(()),
    }
}

/// `accum_dtype` must hold what the operands' products need.
fn check_accumulator(row: &Row, args: &[SymArg], hints: &Hints) -> Result<(), OpError> {
    let Some(accum) = hints.accum_dtype else { return Ok(()) };
    let refuse = |why: String| Err(OpError::new(Code::E0214, format!("`accum_dtype` cannot be {accum} here: {why}")));
    if matches!(accum, DType::Bf16 | DType::F8E4M3 | DType::F8E5M2 | DType::Tf32) {
        return refuse("sums of narrow floats accumulate in f32".into()).map_err(|e| {
            e.help(format!("`accum_dtype=f32, out_dtype={accum}` accumulates in f32 and rounds the result once"))
        });
    }
    let tensors = args.iter().flat_map(|a| match a {
        SymArg::Tensor(t) => std::slice::from_ref(t),
        SymArg::Tensors(ts) => &ts[..],
        _ => &[],
    });
    let dtypes: Vec<DType> = tensors.filter_map(|t| t.dtype).collect();
    let real = |d: &&DType| d.is_float() || d.is_complex();
    // The widest float decides; positions are ints.
    let widest = dtypes.iter().filter(real).max_by_key(|d| d.bytes());
    let operand = widest.or(dtypes.first()).copied();
    if accum == DType::F16 && operand == Some(DType::F16) && !row.halves {
        let why = format!("`{}` has no sums in f16", row.name);
        return refuse(why).map_err(|e| e.help("`accum_dtype=f32`"));
    }
    match operand {
        Some(d) if accum == DType::F16 && d != DType::F16 => {
            refuse(format!("only f16 operands accumulate in f16, and these are {d}"))
                .map_err(|e| e.help("`accum_dtype=f32`"))
        }
        Some(DType::C64) if accum != DType::C64 => refuse("the operands are complex and accumulate in two f32".into()),
        Some(DType::F64) if accum != DType::F64 => refuse("it is narrower than the f64 operands".into()),
        Some(d) if d.is_float() && !accum.is_float() => {
            refuse(format!("the operands are {d}")).map_err(|e| e.help("`accum_dtype=f32`"))
        }
        Some(d) if d.is_int() && !matches!(accum, DType::I32 | DType::I64) => {
            refuse(format!("{d} operands accumulate in i64 or i32")).map_err(|e| e.help("`accum_dtype=i64`"))
        }
        Some(DType::I64) if accum != DType::I64 => refuse("it is narrower than the i64 operands".into()),
        _ => Ok(()),
    }
}

/// One expansion: the arguments, their types, and the result types that the rule gives for them.
pub struct Call<'a> {
    pub b: &'a mut dyn Build,
    pub args: Vec<Arg>,
    /// The same arguments as the typing rule sees them; all sizes are constants.
    pub sym: Vec<SymArg>,
    pub hints: &'a Hints,
    pub out: Vec<(Vec<u64>, DType)>,
}

/// The expansion of a row: the rule at concrete sizes, the row's own part, and the conversion
/// to the result types.
pub fn expand(row: &Row, b: &mut dyn Build, args: &[Arg], hints: &Hints) -> Lowered {
    row.refusal()?;
    let mut all = args.to_vec();
    all.extend(row.params.iter().skip(args.len()).filter_map(|p| p.default.arg()));
    let mut sym: Vec<SymArg> = row.params.iter().zip(&all).map(|(p, a)| symbolic(b, a, p.kind)).collect();
    let facts = Facts::default();
    let mut fresh = |_: &str| Size::constant(0);
    let mut cx = InferCx { facts: &facts, fresh: &mut fresh, checks: vec![], reaches: vec![], notes: vec![] };
    let types = match infer(row, &mut cx, &sym, hints)? {
        OpTypes::One(t) => vec![t],
        OpTypes::Many(ts) => ts,
    };
    let out = types.iter().map(concrete).collect::<Result<Vec<_>, _>>()?;
    precision::converted(row, hints.precision, b, &mut all, &mut sym);
    let mut call = Call { b, args: all, sym, hints, out };
    let ids = (row.lower)(&mut call)?;
    Ok(ids.into_iter().zip(&call.out).map(|(id, (_, dtype))| expand::cast(call.b, id, *dtype)).collect())
}

fn concrete(t: &TensorType) -> Result<(Vec<u64>, DType), OpError> {
    let sizes = t.shape.iter().map(|s| s.as_const().and_then(|n| u64::try_from(n).ok())).collect::<Option<Vec<_>>>();
    sizes
        .zip(t.dtype)
        .ok_or_else(|| OpError::new(Code::E0213, format!("the type {t} is not known when the graph is built")))
}

/// An argument as the typing rule sees it.
pub fn symbolic(b: &dyn Build, arg: &Arg, kind: ParamKind) -> SymArg {
    let tensor =
        |id: Id| TensorType::new(b.shape(id).into_iter().map(|n| Size::constant(n as i64)).collect(), b.dtype(id));
    match arg {
        Arg::None => SymArg::None,
        Arg::Tensor(id) => SymArg::Tensor(tensor(*id)),
        Arg::Tensors(ids) => SymArg::Tensors(ids.iter().map(|&id| tensor(id)).collect()),
        Arg::Scalar(Scalar::I(_)) if kind == ParamKind::Operand => SymArg::Weak(Weak::Int),
        Arg::Scalar(Scalar::F(_)) if kind == ParamKind::Operand => SymArg::Weak(Weak::Float),
        Arg::Scalar(Scalar::I(n)) | Arg::Int(n) => SymArg::Int(Size::constant(*n)),
        Arg::Scalar(Scalar::F(v)) | Arg::Float(v) => SymArg::Float(Some(*v)),
        Arg::Dynamic(id) => SymArg::Weak(match b.dtype(*id) {
            DType::Bool => Weak::Bool,
            d if d.is_int() => Weak::Int,
            _ => Weak::Float,
        }),
        Arg::Ints(ns) => SymArg::Ints(ns.iter().map(|&n| Size::constant(n)).collect()),
        Arg::Bool(v) => SymArg::Bool(Some(*v)),
        Arg::DType(d) => SymArg::DType(*d),
        Arg::Str(s) => SymArg::Str(s.clone()),
        Arg::Nested { shape, dtype, .. } => {
            SymArg::Nested { shape: shape.iter().map(|&n| Size::constant(n as i64)).collect(), dtype: *dtype }
        }
    }
}

impl Call<'_> {
    /// The node of a tensor argument.
    pub fn id(&self, i: usize) -> Result<Id, OpError> {
        match self.args.get(i) {
            Some(Arg::Tensor(id) | Arg::Dynamic(id)) => Ok(*id),
            other => Err(OpError::new(Code::E0204, format!("a tensor is needed here, not {other:?}"))),
        }
    }

    pub fn optional_id(&self, i: usize) -> Option<Id> {
        match self.args.get(i) {
            Some(Arg::Tensor(id)) => Some(*id),
            _ => None,
        }
    }

    /// The nodes of a list argument.
    pub fn ids(&self, i: usize) -> Vec<Id> {
        match self.args.get(i) {
            Some(Arg::Tensors(ids)) => ids.clone(),
            Some(Arg::Tensor(id)) => vec![*id],
            _ => vec![],
        }
    }

    /// The type of a tensor argument.
    pub fn ty(&self, i: usize) -> Result<TensorType, OpError> {
        rule::tensor(&self.sym, i).cloned()
    }

    /// A number or tensor, converted and broadcast.
    pub fn operand(&mut self, i: usize, shape: &[u64], dtype: DType) -> Result<Id, OpError> {
        let arg = self.args.get(i).cloned().unwrap_or(Arg::None);
        expand::operand(self.b, &arg, shape, dtype).map_err(|e| e.arg(i, "here"))
    }

    /// Part of the typing rule once more, for what it found out besides types.
    pub fn again<T>(&self, part: fn(&mut InferCx, &[SymArg]) -> Result<T, OpError>) -> Result<T, OpError> {
        let facts = Facts::default();
        let mut fresh = |_: &str| Size::constant(0);
        part(
            &mut InferCx { facts: &facts, fresh: &mut fresh, checks: vec![], reaches: vec![], notes: vec![] },
            &self.sym,
        )
    }

    /// Shape and dtype of the first result.
    pub fn result(&self) -> (Vec<u64>, DType) {
        self.out.first().cloned().unwrap_or((vec![], DType::F32))
    }

    /// A tensor argument in the type in which its arithmetic is carried out: f32 for narrow
    /// floats, ints and bool; f64 for f64.
    pub fn wide(&mut self, i: usize) -> Result<Id, OpError> {
        let x = self.id(i)?;
        let to = wide_of(self.b.dtype(x));
        Ok(expand::cast(self.b, x, to))
    }
}

/// The type in which real arithmetic on `dtype` is carried out.
pub fn wide_of(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

/// The type in which sums of `dtype` accumulate under the hints.
pub fn accumulator(dtype: DType, hints: &Hints) -> DType {
    hints.accum_dtype.unwrap_or(dtype.accumulator())
}

/// The element type in which operands meet, and the operands with their positions.
pub fn meet<'a>(args: &'a [SymArg], at: &[usize]) -> Result<(Vec<(usize, Operand<'a>)>, Option<DType>), OpError> {
    let operands = at.iter().map(|&i| Ok((i, rule::operand(args, i)?))).collect::<Result<Vec<_>, OpError>>()?;
    let dtype = rule::join(&operands)?;
    Ok((operands, dtype))
}
