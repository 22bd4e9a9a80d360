//! One function of a file, asked for by its name: its instance at its annotations, whether or not anything calls it.
//!
//! What annotations leave open is chosen, and told: the element type of `Tensor[N]` is f32, and `Tensor[..., D]` has one
//! dim before `D`. A parameter without a type has that of its default. Without one nothing says what the function is.

use crate::check::annots::SigTypes;
use crate::check::bodies::behind;
use crate::check::cx::Cx;
use crate::check::fns::find_sig_of_item;
use crate::check::inst::Callee;
use crate::check::per_device::is_local;
use crate::check::types::has_unknown;
use crate::check::{InstData, numerics::Numerics};
use crate::db::{self, Database, Db, Entity, File, Target};
use crate::of_item;
use crate::session::{Checked, check_program, deep, run_asking};
use std::collections::BTreeSet;
use std::sync::Arc;
use tessera_base::{Code, DType, Diagnostic, ItemId, Mesh, Span, TensorType, nearest};
use tessera_core::ir::InstId;
use tessera_core::layouts::with_tensors;
use tessera_core::ty::Ty;
use tessera_grammar::ast::{Expr, ExprKind, FloatBits, Param, ParamKind, UnOp};
use tessera_resolve::functions::FnSig;
use tessera_resolve::source::FileId;

/// A checked file, and the function in it.
pub struct Asked {
    pub checked: Checked,
    /// Or why there is none to look at.
    pub function: Result<Function, Box<Diagnostic>>,
}

/// A function of a checked program.
#[derive(Clone, Debug)]
pub struct Function {
    pub name: Arc<str>,
    pub inst: InstId,
    /// As the instance has them.
    pub params: Vec<Parameter>,
    /// What was chosen where annotations leave something open, in words.
    pub chosen: Vec<String>,
    /// The line that begins it.
    pub head: Span,
}

/// A parameter as it is written.
#[derive(Clone, Debug)]
pub struct Parameter {
    pub name: Arc<str>,
    pub span: Span,
    /// The default, where it is written out.
    pub default: Option<Literal>,
}

/// A value that is written out.
#[derive(Clone, PartialEq, Debug)]
pub enum Literal {
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(Arc<str>),
    DType(DType),
    None,
}

impl Literal {
    fn of(e: &Expr) -> Option<Literal> {
        Some(match &e.kind {
            ExprKind::Int(digits) => Literal::Int(digits.parse().ok()?),
            ExprKind::Float(FloatBits(bits)) => Literal::Float(f64::from_bits(*bits)),
            ExprKind::Bool(b) => Literal::Bool(*b),
            ExprKind::Str(text) => Literal::Str(text.clone()),
            ExprKind::None => Literal::None,
            ExprKind::Name(name) => Literal::DType(DType::parse(name)?),
            ExprKind::Unary { op: UnOp::Neg, operand } => match Literal::of(operand)? {
                Literal::Int(n) => Literal::Int(n.checked_neg()?),
                Literal::Float(x) => Literal::Float(-x),
                _ => return None,
            },
            _ => return None,
        })
    }

    fn ty(&self) -> Ty {
        match self {
            Literal::Int(n) => Ty::int_of(*n),
            Literal::Float(_) => Ty::Float,
            Literal::Bool(_) => Ty::Bool,
            Literal::Str(_) => Ty::Str,
            Literal::DType(d) => Ty::DType(Some(*d)),
            Literal::None => Ty::None,
        }
    }
}

/// Checks a file with everything that it imports, and finds a function of it: `f`, or `nn.linear` and `std.nn.linear` of
/// a module that it imports.
pub fn ask(db: &Database, root: FileId, name: &str) -> Asked {
    let snapshot = db.clone();
    deep(move || {
        let db = &snapshot;
        let found = db::file_of(db, root).map(|file| find(db, file, name).and_then(|(file, id)| of_item(db, file, id)));
        match found {
            Some(Ok((function, data))) => {
                let (checked, inst) = run_asking(db, root, &data, function.head);
                Asked { checked, function: Ok(Function { inst, ..function }) }
            }
            Some(Err(why)) => Asked { checked: check_program(db, root), function: Err(why) },
            None => {
                let why = Diagnostic::new(Code::E0706, Span::NONE, "there is no such file");
                Asked { checked: check_program(db, root), function: Err(Box::new(why)) }
            }
        }
    })
}

/// The functions that a file defines, in the order of its text.
pub fn functions(db: &Database, root: FileId) -> Vec<(Arc<str>, Span)> {
    let Some(file) = db::file_of(db, root) else { return vec![] };
    let sigs = file.heads(db).iter().filter_map(|head| find_sig_of_item(db, head.id));
    sigs.map(|sig| (sig.name.clone(), sig.head)).collect()
}

type Found<T> = Result<T, Box<Diagnostic>>;

fn unknown(message: String) -> Diagnostic {
    Diagnostic::new(Code::E0101, Span::NONE, message)
}

/// The smallest expression or bound name around a position of an item, with its types: one for each way in which the program
/// calls what it stands in. The program may have errors.
pub fn types_at(db: &Database, root: FileId, item: ItemId, at: u32) -> Option<(Span, Vec<Ty>)> {
    let found = of_item::of_item(db, root, item);
    let (place, types) = found.around(at)?;
    Some((Span { item, ..place }, types.to_vec()))
}

/// The definition behind a name, and its file.
fn find(db: &Database, file: File, name: &str) -> Found<(File, ItemId)> {
    let scope = db::scope(db, file);
    match scope.names.get(name) {
        Some(Entity::Def(id)) => return Ok((db::home(db, *id).unwrap_or(file), *id)),
        Some(Entity::Member(of, member)) => {
            if let Some(other) = db::file_of(db, *of) {
                return find(db, other, member);
            }
        }
        Some(Entity::Struct(_)) => return Err(Box::new(unknown(format!("`{name}` is a struct and no function")))),
        Some(Entity::Module(_) | Entity::File(_)) => {
            let d = unknown(format!("`{name}` is a module and no function"));
            return Err(Box::new(d.help(format!("name a function of it: `{name}.f`"))));
        }
        Some(Entity::Builtin(_)) => {
            let d = unknown(format!("`{name}` is built in: no text of a program says what it becomes"));
            return Err(Box::new(d.help(format!("`tessera explain {name}` says what it does"))));
        }
        Some(Entity::Broken) | None => {}
    }
    if scope.variables.contains(name) {
        let d = unknown(format!("`{name}` is a variable: which function it holds, only running tells"));
        return Err(Box::new(d.help("name a function that the file defines with `def`")));
    }
    if let Some((module, member)) = name.rsplit_once('.') {
        let bound = scope.names.get(module).and_then(|e| if let Entity::File(id) = e { Some(*id) } else { None });
        let imported = file.imports(db).get(module);
        let imported = imported.and_then(|t| if let Target::File(id) = t { Some(*id) } else { None });
        if let Some(other) = bound.or(imported).and_then(|id| db::file_of(db, id)) {
            return find(db, other, member);
        }
        if db::is_builtin_module(module) {
            let d = unknown(format!("`{name}` is built in: no text of a program says what it becomes"));
            return Err(Box::new(d.help(format!("`tessera explain {name}` says what it does"))));
        }
        let d = unknown(format!("the file imports no module `{module}`"));
        return Err(Box::new(d.help(format!("`import {module}` in it, or ask the file of the module itself"))));
    }
    let defined: Vec<&Arc<str>> =
        scope.names.iter().filter(|(_, e)| matches!(e, Entity::Def(_) | Entity::Member(..))).map(|(n, _)| n).collect();
    let help = match nearest(name, defined.iter().map(|n| &***n)) {
        Some(near) => format!("did you mean `{near}`?"),
        None if defined.is_empty() => "the file defines no function".into(),
        None => {
            let some: Vec<String> = defined.iter().take(8).map(|n| format!("`{n}`")).collect();
            format!("it defines {}{}", some.join(", "), if defined.len() > 8 { ", …" } else { "" })
        }
    };
    Err(Box::new(unknown(format!("the file defines no function `{name}`")).help(help)))
}

/// The function that an item of a file defines.
fn of_item(db: &Database, file: File, id: ItemId) -> Found<(Function, Arc<InstData>)> {
    let Some(sig) = find_sig_of_item(db, id) else {
        return Err(Box::new(unknown("the definition cannot be read".into())));
    };
    let main = db::checked_main(db, file);
    let params = sig.params.iter().map(|p| Parameter {
        name: p.name.text.clone(),
        span: p.name.span,
        default: p.default.as_ref().and_then(Literal::of),
    });
    // Its number is that of the program, which is put together behind this.
    let function = |chosen| Function {
        name: sig.name.clone(),
        inst: InstId(0),
        params: params.clone().collect(),
        chosen,
        head: sig.head,
    };
    // What is annotated throughout is checked behind its module, as if it was called there.
    let called = main.requests.iter().filter(|r| r.span == sig.head);
    let mut data = called.map(|r| db::inst_data(db, main.tables.callees[r.inst.0 as usize].inst));
    if let Some(data) = data.find(|data| data.item == id && data.args.is_none()) {
        return Ok((function(vec![]), data.clone()));
    }
    let mut cx = behind(db, file, Some(main));
    cx.set_numerics(Numerics { policy: db.policy(), ..Numerics::default() });
    let types = cx.signature(&sig, id, &[]);
    let mut chosen = vec![];
    let args = arguments(&mut cx, &sig, &types, &mut chosen)?;
    let (data, _) = cx.instance_on(&Callee { item: id, start: sig.start, captures: &[] }, Some(&args), None);
    Ok((function(chosen), data))
}

/// Types of arguments for a signature that leaves some of them open.
fn arguments(cx: &mut Cx, sig: &FnSig, types: &SigTypes, chosen: &mut Vec<String>) -> Found<Vec<Ty>> {
    let refused = |p: &Param, text: String, help: String| {
        let label = format!("nothing says what `{}` is", p.name.text);
        let d = Diagnostic::new(Code::E0213, p.name.span, text).here(label);
        Box::new(d.note("without a call, annotations alone say what a function computes").help(help))
    };
    if is_local(sig) {
        let text = format!("`{}` runs on one device of many, and only its call says of how many", sig.name);
        let d = Diagnostic::new(Code::E0213, sig.head, text);
        return Err(Box::new(
            d.help("ask for the function that calls it, or name the axes: `x: Tensor[N@dp, D, f32]`"),
        ));
    }
    let mut axes = BTreeSet::new();
    let mut out = vec![];
    for (p, ty) in sig.params.iter().zip(&types.params) {
        let name = &p.name.text;
        if p.kind == ParamKind::Rest {
            let text = format!("`{}` takes any number of arguments as `*{name}`", sig.name);
            return Err(refused(p, text, "ask for a function with one parameter for each of them".into()));
        }
        let default = p.default.as_ref().and_then(Literal::of);
        let ty = match (ty, &default) {
            (Some(ty), _) => closed(cx, name, ty, chosen),
            (None, Some(literal)) => literal.ty(),
            (None, None) => {
                let text = format!("`{}` is a template: its parameter `{name}` has no type", sig.name);
                return Err(refused(p, text, format!("annotate it: `{name}: Tensor[N, D, f32]`, `{name}: int`")));
            }
        };
        if has_unknown(&ty) || ty.holds_error() {
            let text = format!("the annotation of `{name}` of `{}` leaves its type open", sig.name);
            return Err(refused(p, text, "name its types: `Adam[Model]` instead of `Adam[P]`".into()));
        }
        ty.stated_axes(&mut axes);
        out.push(ty);
    }
    let mesh = Arc::new(Mesh::unknown(axes));
    Ok(out.iter().map(|t| t.stated_on(&mesh)).collect())
}

/// A declared type with a choice for each thing that it leaves open.
fn closed(cx: &mut Cx, name: &str, ty: &Ty, chosen: &mut Vec<String>) -> Ty {
    let ty = match ty {
        Ty::TensorPattern(p) => {
            let first = cx.sizes.rigid("B");
            chosen.push(format!("`...` of {name} is one dim, {first}"));
            let mut sharding = p.sharding.clone();
            if !sharding.dims.is_empty() {
                sharding.dims.insert(0, vec![]);
            }
            Ty::Tensor(TensorType {
                shape: std::iter::once(first).chain(p.tail.iter().cloned()).collect(),
                dtype: p.dtype,
                sharding,
            })
        }
        ty => ty.clone(),
    };
    let mut open = false;
    let ty = with_tensors(&ty, &mut |t| {
        open |= t.dtype.is_none();
        TensorType { dtype: t.dtype.or(Some(DType::F32)), ..t.clone() }
    });
    if open {
        chosen.push(format!("the element type of {name} is f32"));
    }
    ty
}
