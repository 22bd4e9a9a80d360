//! Expressions of host code.

use super::body::Body;
use tessera_abi::rt::RtFn;
use tessera_base::{CmpOp, Span};
use tessera_core::ir::*;
use tessera_core::live::{Live, Targets};
use tessera_core::ty::Ty;
use tessera_core::type_assertions::settles;
use tessera_core::walk::Var;
use tessera_ir::host::{HExpr, HExprKind, HStmt, HostType, TypeId};
use tessera_ops::scalar::Kind;
use tessera_runtime::slice::ABSENT;

impl Body<'_, '_> {
    pub fn make(&mut self, kind: HExprKind, ty: TypeId, span: Span) -> HExpr {
        HExpr { kind, ty, span: self.cx.span(span) }
    }

    pub fn rt(&mut self, func: RtFn, args: Vec<HExpr>, ty: TypeId, span: Span) -> HExpr {
        self.make(HExprKind::Rt { func, args }, ty, span)
    }

    pub fn int_ty(&mut self) -> TypeId {
        self.cx.types.intern(HostType::Int)
    }

    pub fn bool_ty(&mut self) -> TypeId {
        self.cx.types.intern(HostType::Bool)
    }

    pub fn float_ty(&mut self) -> TypeId {
        self.cx.types.intern(HostType::Float)
    }

    pub fn str_ty(&mut self) -> TypeId {
        self.cx.types.intern(HostType::Str)
    }

    pub fn none_ty(&mut self) -> TypeId {
        self.cx.types.intern(HostType::None)
    }

    pub fn int(&mut self, n: i64, span: Span) -> HExpr {
        let ty = self.int_ty();
        self.make(HExprKind::Int(n), ty, span)
    }

    pub fn bool(&mut self, b: bool, span: Span) -> HExpr {
        let ty = self.bool_ty();
        self.make(HExprKind::Bool(b), ty, span)
    }

    pub fn str(&mut self, text: &str, span: Span) -> HExpr {
        let id = self.cx.string(text);
        let ty = self.str_ty();
        self.make(HExprKind::Str(id), ty, span)
    }

    /// The type of a value as an argument.
    pub fn type_of(&mut self, ty: TypeId, span: Span) -> HExpr {
        let int = self.int_ty();
        self.make(HExprKind::TypeOf(ty), int, span)
    }

    /// Evaluates `value` once and gives `f` an expression that reads it.
    pub fn once(&mut self, value: HExpr, span: Span, f: impl FnOnce(&mut Self, HExpr) -> HExpr) -> HExpr {
        if matches!(value.kind, HExprKind::Local(_) | HExprKind::Int(_) | HExprKind::Float(_)) {
            return f(self, value);
        }
        let tmp = self.temp("value", value.ty);
        let sid = self.cx.span(span);
        let read = self.local(tmp, sid);
        let result = f(self, read);
        let ty = result.ty;
        self.make(HExprKind::Block { stmts: vec![HStmt::SetLocal(tmp, value)], value: Box::new(result) }, ty, span)
    }

    pub fn exprs(&mut self, es: &[TExpr]) -> Vec<HExpr> {
        es.iter().map(|e| self.expr(e)).collect()
    }

    /// An expression where a value of the type is wanted: empty containers take that type.
    pub fn expr_as(&mut self, e: &TExpr, want: &Ty) -> HExpr {
        let value = match (&e.kind, want) {
            (TKind::List(es), Ty::List(element)) if !self.cx.facts.computes(e) => {
                let es = es.iter().map(|e| self.expr_as(e, element)).collect();
                let ty = self.cx.erase(want);
                self.make(HExprKind::List(es), ty, e.span)
            }
            (TKind::Dict(entries), Ty::Dict(key, value)) if !self.cx.facts.computes(e) => {
                self.dict(entries, key, value, want, e.span)
            }
            (TKind::Tuple(es), Ty::Tuple(wants)) if !self.cx.facts.computes(e) && es.len() == wants.len() => {
                let es = es.iter().zip(wants).map(|(e, want)| self.expr_as(e, want)).collect();
                let ty = self.cx.erase(want);
                self.make(HExprKind::Record(es), ty, e.span)
            }
            (TKind::Cond { test, then, otherwise }, _) => {
                let test = self.expr(test);
                let (then, otherwise) = (self.expr_as(then, want), self.expr_as(otherwise, want));
                let ty = then.ty;
                let kind =
                    HExprKind::Cond { test: Box::new(test), then: Box::new(then), otherwise: Box::new(otherwise) };
                self.make(kind, ty, e.span)
            }
            _ => return self.expr(e),
        };
        self.assert_type(value, &e.ty, e.span)
    }

    fn dict(&mut self, entries: &[(TExpr, TExpr)], key: &Ty, value: &Ty, ty: &Ty, span: Span) -> HExpr {
        let ty = self.cx.erase(ty);
        let id = self.type_of(ty, span);
        let mut dict = self.rt(RtFn::dict_new, vec![id], ty, span);
        for (k, v) in entries {
            let (k, v) = (self.expr_as(k, key), self.expr_as(v, value));
            dict = self.rt(RtFn::dict_set, vec![dict, k, v], ty, span);
        }
        dict
    }

    pub fn expr(&mut self, e: &TExpr) -> HExpr {
        let value = self.bare(e);
        let plain = matches!(e.kind, TKind::Int(_)) || !settles(e);
        if plain { value } else { self.assert_type(value, &e.ty, e.span) }
    }

    /// A value of which only a part is taken: the part is held against its type.
    pub fn base(&mut self, e: &TExpr) -> HExpr {
        match e.kind {
            TKind::Local(_) | TKind::Global(_) | TKind::Field(..) | TKind::Index(..) => self.bare(e),
            _ => self.expr(e),
        }
    }

    /// An expression, not held against its type.
    pub fn bare(&mut self, e: &TExpr) -> HExpr {
        if self.cx.facts.computes(e) {
            return self.region_of(e);
        }
        let (ty, span) = (self.cx.erase(&e.ty), e.span);
        let kind = match &e.kind {
            TKind::Int(n) => HExprKind::Int(*n),
            TKind::Float(x) => HExprKind::Float(*x),
            TKind::Bool(b) => HExprKind::Bool(*b),
            TKind::Str(s) => HExprKind::Str(self.cx.string(s)),
            TKind::None => HExprKind::None,
            TKind::DType(d) => HExprKind::DType(*d as u8),
            TKind::Local(l) => self.read(Var::Local(*l)),
            TKind::Global(g) => self.read(Var::Global(*g)),
            TKind::Tuple(es) => HExprKind::Record(self.exprs(es)),
            TKind::Closure { captures } => HExprKind::Record(self.exprs(captures)),
            TKind::Struct(es) => HExprKind::Record(self.fields(es, &e.ty)),
            TKind::List(es) => HExprKind::List(self.exprs(es)),
            TKind::Dict(entries) => match &e.ty {
                Ty::Dict(k, v) => return self.dict(entries, k, v, &e.ty, span),
                _ => HExprKind::None,
            },
            TKind::Field(base, n) => HExprKind::Field(Box::new(self.base(base)), *n),
            TKind::Index(base, at) => {
                let func = match &base.ty {
                    Ty::Str => RtFn::str_index,
                    Ty::Dict(..) => RtFn::dict_get,
                    _ => RtFn::list_get,
                };
                HExprKind::Rt { func, args: vec![self.base(base), self.expr(at)] }
            }
            TKind::Slice { base, low, high, step } => {
                let func = if matches!(base.ty, Ty::Str) { RtFn::str_slice } else { RtFn::list_slice };
                let base = self.expr(base);
                let mut args = vec![base];
                for bound in [low, high, step] {
                    args.push(self.bound(bound.as_deref(), span));
                }
                HExprKind::Rt { func, args }
            }
            TKind::Call { inst, callee, args } => return self.call(*inst, callee.as_deref(), args, ty, span),
            TKind::CallValue { callee, args } => {
                let wants = match &callee.ty {
                    Ty::Fn(params, _) => params.clone(),
                    _ => vec![],
                };
                let func = Box::new(self.expr(callee));
                HExprKind::CallClosure { func, args: self.args(args, &wants) }
            }
            TKind::Erase { value, inst } => return self.closure(value, *inst, ty, span),
            TKind::TensorIndex { base, index, .. } => {
                let (base, index) = (self.expr(base), self.index_list(index, span));
                HExprKind::Rt { func: RtFn::tensor_index, args: vec![base, index] }
            }
            TKind::TensorDim(base, n) => {
                let (base, n) = (self.base(base), self.int(*n as i64, span));
                HExprKind::Rt { func: RtFn::tensor_dim, args: vec![base, n] }
            }
            TKind::TensorShape(base) => {
                let (base, id) = (self.base(base), self.type_of(ty, span));
                HExprKind::Rt { func: RtFn::tensor_shape, args: vec![base, id] }
            }
            TKind::TensorDType(base) => HExprKind::Rt { func: RtFn::tensor_dtype, args: vec![self.base(base)] },
            TKind::Check { value, name, annotation, dims } => {
                return self.check(value, name, *annotation, dims, &e.ty);
            }
            TKind::Op { args, .. } => return self.host_array(args, ty, span),
            TKind::Builtin { name, args } => return self.builtin(*name, args, &e.ty, span),
            TKind::Format(parts) => return self.format(parts, span),
            TKind::Block { stmts, value } => {
                let everything = self.everything();
                let stmts = self.block(stmts, &everything, &Targets::default());
                HExprKind::Block { stmts, value: Box::new(self.expr(value)) }
            }
            TKind::WithPolicy(policy, value) => {
                let outer = std::mem::replace(&mut self.policy, *policy);
                let value = self.expr(value);
                self.policy = outer;
                return value;
            }
            _ => return self.scalar(e, ty),
        };
        self.make(kind, ty, span)
    }

    fn read(&mut self, v: Var) -> HExprKind {
        match self.root(v) {
            tessera_ir::host::Root::Local(l) => HExprKind::Local(l),
            tessera_ir::host::Root::Global(g) => HExprKind::Global(g),
        }
    }

    /// Every variable of the function: what may be live where nothing better is known.
    fn everything(&self) -> Live {
        let locals = (0..self.locals.len() as u32).map(|i| Var::Local(LocalId(i)));
        let globals = (0..self.cx.program.globals.len() as u32).map(|i| Var::Global(GlobalId(i)));
        locals.chain(globals).collect()
    }

    fn fields(&mut self, es: &[TExpr], ty: &Ty) -> Vec<HExpr> {
        match ty {
            Ty::Struct(s) => es.iter().zip(&s.fields).map(|(e, (_, want))| self.expr_as(e, want)).collect(),
            _ => self.exprs(es),
        }
    }

    /// A slice bound, or the word for an absent one. An int of the same value means what the next one does.
    pub fn bound(&mut self, e: Option<&TExpr>, span: Span) -> HExpr {
        let Some(e) = e.filter(|e| !matches!(e.kind, TKind::None)) else { return self.int(ABSENT, span) };
        let value = self.expr(e);
        if let HExprKind::Int(n) = value.kind {
            return self.int(n.max(ABSENT + 1), span);
        }
        self.once(value, e.span, |b, value| {
            let (absent, next) = (b.int(ABSENT, span), b.int(ABSENT + 1, span));
            let int = b.int_ty();
            let test = b.compared(CmpOp::Eq, Kind::I64, value.clone(), absent, span);
            let kind = HExprKind::Cond { test: Box::new(test), then: Box::new(next), otherwise: Box::new(value) };
            b.make(kind, int, span)
        })
    }

    fn args(&mut self, args: &[TExpr], wants: &[Ty]) -> Vec<HExpr> {
        args.iter()
            .enumerate()
            .map(|(i, e)| match wants.get(i) {
                Some(want) => self.expr_as(e, want),
                None => self.expr(e),
            })
            .collect()
    }

    /// A direct call: captured values first.
    fn call(&mut self, inst: InstId, callee: Option<&TExpr>, args: &[TExpr], ty: TypeId, span: Span) -> HExpr {
        let target = self.cx.inst(inst);
        let wants: Vec<Ty> = target.params.iter().map(|l| target.locals[l.0 as usize].ty.clone()).collect();
        let func = self.cx.function(inst);
        let callee = callee.filter(|_| !target.captures.is_empty());
        let Some(callee) = callee else {
            let args = self.args(args, &wants);
            return self.make(HExprKind::Call { func, args }, ty, span);
        };
        if let TKind::Closure { captures } = &callee.kind {
            let mut all = self.exprs(captures);
            all.extend(self.args(args, &wants));
            return self.make(HExprKind::Call { func, args: all }, ty, span);
        }
        let callee = self.expr(callee);
        self.once(callee, span, |b, callee| {
            let mut all = b.captured(callee, span);
            all.extend(b.args(args, &wants));
            b.make(HExprKind::Call { func, args: all }, ty, span)
        })
    }

    /// The captured values in a function value of singleton type.
    fn captured(&mut self, value: HExpr, span: Span) -> Vec<HExpr> {
        let HostType::Function { captures: types, .. } = self.cx.types.get(value.ty).clone() else { return vec![] };
        types
            .iter()
            .enumerate()
            .map(|(i, &ty)| self.make(HExprKind::Field(Box::new(value.clone()), i as u32), ty, span))
            .collect()
    }

    /// A function value of singleton type as a closure object.
    fn closure(&mut self, value: &TExpr, inst: InstId, ty: TypeId, span: Span) -> HExpr {
        let func = self.cx.thunk(inst);
        if let TKind::Closure { captures } = &value.kind {
            let captures = self.exprs(captures);
            return self.make(HExprKind::Closure { func, captures }, ty, span);
        }
        let value = self.expr(value);
        self.once(value, span, |b, value| {
            let captures = b.captured(value, span);
            b.make(HExprKind::Closure { func, captures }, ty, span)
        })
    }
}
