//! Host programs by hand, and running them.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;
use tessera_abi::rt::RtFn;
use tessera_base::CmpOp;
use tessera_host::{Compiled, Link, compile};
use tessera_ir::host::*;
use tessera_ops::numbers::NumberOp;
use tessera_ops::scalar::Kind;
use tessera_runtime::context::{Context, Stop};
use tessera_runtime::value::TypeInfo;

/// The scalar types are at fixed places in every program.
pub const INT: TypeId = TypeId(0);
pub const FLOAT: TypeId = TypeId(1);
pub const BOOL: TypeId = TypeId(2);
pub const STR: TypeId = TypeId(3);
pub const NONE: TypeId = TypeId(4);
pub const TENSOR: TypeId = TypeId(5);

#[derive(Clone)]
pub struct Build {
    pub program: HostProgram,
    pub locals: Vec<Local>,
}

pub fn span(n: u32) -> SpanId {
    SpanId(n)
}

impl Build {
    pub fn new() -> Build {
        use HostType::*;
        let program = HostProgram { types: vec![Int, Float, Bool, Str, None, Tensor], ..Default::default() };
        Build { program, locals: vec![] }
    }

    pub fn ty(&mut self, ty: HostType) -> TypeId {
        self.program.types.push(ty);
        TypeId(self.program.types.len() as u32 - 1)
    }

    pub fn list_of(&mut self, elem: TypeId) -> TypeId {
        self.ty(HostType::List(elem))
    }

    pub fn local(&mut self, name: &str, ty: TypeId) -> LocalId {
        self.locals.push(Local { name: name.into(), ty });
        LocalId(self.locals.len() as u32 - 1)
    }

    pub fn global(&mut self, name: &str, ty: TypeId) -> GlobalId {
        self.program.globals.push(Global { name: name.into(), ty });
        GlobalId(self.program.globals.len() as u32 - 1)
    }

    /// A function over the locals declared since the last one.
    pub fn function(
        &mut self,
        name: &str,
        params: &[LocalId],
        captures: &[LocalId],
        ret: TypeId,
        body: Vec<HStmt>,
    ) -> FnId {
        let locals = std::mem::take(&mut self.locals);
        let f = HostFn {
            name: name.into(),
            params: params.into(),
            captures: captures.into(),
            locals,
            ret,
            body,
            span: span(99),
        };
        self.program.fns.push(f);
        FnId(self.program.fns.len() as u32 - 1)
    }

    pub fn entry(&mut self, body: Vec<HStmt>) {
        let id = self.function("main", &[], &[], NONE, body);
        self.program.entry = Some(id);
    }

    pub fn str(&mut self, text: &str) -> HExpr {
        self.program.strings.push(text.into());
        expr(HExprKind::Str(StrId(self.program.strings.len() as u32 - 1)), STR)
    }

    pub fn get(&self, id: LocalId) -> HExpr {
        expr(HExprKind::Local(id), self.locals[id.0 as usize].ty)
    }

    pub fn take(&self, id: LocalId) -> HExpr {
        expr(HExprKind::Take(id), self.locals[id.0 as usize].ty)
    }

    pub fn get_global(&self, id: GlobalId) -> HExpr {
        expr(HExprKind::Global(id), self.program.globals[id.0 as usize].ty)
    }

    pub fn set(&self, id: LocalId, value: HExpr) -> HStmt {
        HStmt::SetLocal(id, value)
    }

    /// `print(value)`.
    pub fn print(&mut self, value: HExpr) -> Vec<HStmt> {
        let ty = expr(HExprKind::TypeOf(value.ty), INT);
        let newline = self.str("\n");
        vec![
            HStmt::Expr(rt(RtFn::print_value, vec![value, ty], NONE)),
            HStmt::Expr(rt(RtFn::print_text, vec![newline], NONE)),
        ]
    }

    pub fn lvalue(&self, id: LocalId, steps: Vec<Step>) -> HLvalue {
        HLvalue { root: Root::Local(id), root_ty: self.locals[id.0 as usize].ty, steps }
    }
}

pub fn expr(kind: HExprKind, ty: TypeId) -> HExpr {
    HExpr { kind, ty, span: span(1) }
}

pub fn at(mut e: HExpr, n: u32) -> HExpr {
    e.span = span(n);
    e
}

pub fn int(value: i64) -> HExpr {
    expr(HExprKind::Int(value), INT)
}

pub fn float(value: f64) -> HExpr {
    expr(HExprKind::Float(value), FLOAT)
}

pub fn rt(func: RtFn, args: Vec<HExpr>, ty: TypeId) -> HExpr {
    expr(HExprKind::Rt { func, args }, ty)
}

/// An operation on numbers.
pub fn op(op: NumberOp, a: HExpr, b: HExpr) -> HExpr {
    number(op, vec![a, b])
}

pub fn number(op: NumberOp, args: Vec<HExpr>) -> HExpr {
    let ty = match op.def().gives {
        Kind::F64 => FLOAT,
        Kind::Bool => BOOL,
        _ => INT,
    };
    expr(HExprKind::Number(op, args), ty)
}

pub fn rel(rel: CmpOp, a: HExpr, b: HExpr) -> HExpr {
    let of = match a.ty {
        FLOAT => Kind::F64,
        BOOL => Kind::Bool,
        _ => Kind::I64,
    };
    op(NumberOp::compare(rel, of), a, b)
}

pub fn mutate(place: HLvalue, change: Change) -> HStmt {
    HStmt::Mutate { place, change, span: span(7) }
}

pub fn for_range(var: LocalId, start: HExpr, stop: HExpr, step: HExpr, body: Vec<HStmt>) -> HStmt {
    HStmt::ForRange { var, start, stop, step, body, span: span(8) }
}

#[derive(Clone, Default)]
pub struct Sink(Rc<RefCell<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Sink {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.borrow()).into_owned()
    }
}

pub fn info(ty: &HostType) -> TypeInfo {
    let id = |t: &TypeId| t.0;
    match ty {
        HostType::Int => TypeInfo::Int,
        HostType::Float => TypeInfo::Float,
        HostType::Bool => TypeInfo::Bool,
        HostType::Str => TypeInfo::Str,
        HostType::None => TypeInfo::None,
        HostType::Known(text) => TypeInfo::Known(text.clone()),
        HostType::DType => TypeInfo::DType,
        HostType::Tensor => TypeInfo::Tensor,
        HostType::List(e) => TypeInfo::List(id(e)),
        HostType::Dict(k, v) => TypeInfo::Dict(id(k), id(v)),
        HostType::Tuple(items) => TypeInfo::Tuple(items.iter().map(id).collect()),
        HostType::Struct { name, fields } => {
            TypeInfo::Struct { name: name.clone(), fields: fields.iter().map(|(n, t)| (n.clone(), id(t))).collect() }
        }
        HostType::Function { shown, captures } => {
            TypeInfo::Function { shown: shown.clone(), captures: captures.iter().map(id).collect() }
        }
        HostType::Fn { params, ret } => TypeInfo::Fn { params: params.iter().map(id).collect(), ret: id(ret) },
    }
}

pub fn link(cx: &mut Context, program: &HostProgram) -> Compiled {
    let infos: Vec<TypeInfo> = program.types.iter().map(info).collect();
    let types = cx.add_types(&infos);
    let strings: Vec<u64> = program.strings.iter().map(|s: &Arc<str>| cx.intern(s)).collect();
    let globals: Vec<_> = program.globals.iter().map(|g| (g.name.clone(), types[g.ty.0 as usize])).collect();
    cx.set_globals(&globals);
    let mut symbols = tessera_runtime::rt::symbols();
    symbols.extend(tessera_runtime::rt_tensor::symbols());
    let link =
        Link { symbols: &symbols, strings: &strings, types: &types, span_base: 0, region_base: 0, keep_globals: true };
    compile(program, &link).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs a program; its output and why it stopped.
pub fn run_in(cx: &mut Context, sink: &Sink, program: &HostProgram) -> (String, Option<Stop>) {
    let compiled = link(cx, program);
    cx.use_stack(1 << 20);
    let before = sink.text().len();
    // SAFETY: the context lives here and has the program's globals.
    unsafe { compiled.run(&raw mut *cx as *mut u8) };
    cx.flush();
    (sink.text()[before..].to_string(), cx.take_stop())
}

/// Bytes that the current thread holds.
struct Counting;

thread_local! {
    static LIVE: Cell<i64> = const { Cell::new(0) };
}

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.with(|live| live.set(live.get() + layout.size() as i64));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        LIVE.with(|live| live.set(live.get() - layout.size() as i64));
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs a program twice: the second time, everything that was taken is given back.
pub fn run(program: &HostProgram) -> (String, Option<Stop>) {
    tessera_runtime::math::define(tessera_ops::numbers::apply);
    once(program);
    let before = LIVE.with(Cell::get);
    drop(once(program));
    let after = LIVE.with(Cell::get);
    assert_eq!(after - before, 0, "bytes that the program did not release");
    once(program)
}

fn once(program: &HostProgram) -> (String, Option<Stop>) {
    let sink = Sink::default();
    let mut cx = Context::new(Box::new(sink.clone()), false);
    run_in(&mut cx, &sink, program)
}

/// The output of a program that does not fail.
pub fn output(build: &Build) -> String {
    let (text, stop) = run(&build.program);
    assert_eq!(stop, None, "after {text}");
    text
}

/// Code, message and span of the failure of a program.
pub fn failure(build: &Build) -> (u16, String, u32) {
    match run(&build.program).1 {
        Some(Stop::Error(e)) => (e.code, e.message, e.span),
        other => panic!("no failure: {other:?}"),
    }
}
