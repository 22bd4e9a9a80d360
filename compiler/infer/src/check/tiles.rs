//! `tile.…`: explicit tile programs. A tile is a tensor of constant sizes; only where it comes
//! from and where it goes is particular to programs.

use super::args::{Slot, Value};
use super::cx::{Cx, builtin, error_at, int};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{Code, DType, Diagnostic, Size, SizeVar, Span, TensorType};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_core::walk::{Var, mentioned};
use tessera_grammar::ast::{Arg, BinOp, Name};

/// Dims of a grid.
const AXES_MAX: i64 = 3;

/// What the body of a kernel says of its programs so far.
#[derive(Clone, Debug, Default)]
pub struct Tiles {
    /// The number of each program by axis, and how many there are where that is known.
    axes: BTreeMap<u32, (SizeVar, Option<TExpr>)>,
    first: Span,
    stores: u32,
}

impl Cx<'_> {
    /// A call of a member of `tile` inside a kernel.
    pub fn tile_call(&mut self, name: &str, args: &[Arg], span: Span) -> TExpr {
        if let Some(kernel) = &mut self.kernel {
            let tiles = kernel.tiles.get_or_insert_with(Tiles::default);
            if tiles.first.is_none() {
                tiles.first = span;
            }
            tiles.stores += u32::from(name == "tile.store");
        }
        let values = self.args(args);
        if values.iter().any(|v| v.value.ty.is_error()) {
            return error_at(span);
        }
        match name.strip_prefix("tile.").unwrap_or("") {
            "program_id" => self.program_id(values, span),
            "load" => self.tile_load(values, span),
            "store" => self.tile_store(values, span),
            "dot" => self.tile_dot(values, span),
            "reduce" => self.tile_reduce(values, span),
            other => {
                let op: Arc<str> = format!("op.{other}").into();
                self.call_builtin_values(&op, values, span, span)
            }
        }
    }

    fn program_id(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        let slots = Slot::built_in("tile.program_id");
        let Some(matched) = self.match_params("tile.program_id", &slots, values, span, None) else {
            return error_at(span);
        };
        let mut matched = matched.into_iter();
        let (axis, count) = (matched.next().flatten(), matched.next().flatten());
        let Some(n) = axis.as_ref().and_then(|a| a.ty.const_int()).filter(|n| (0..AXES_MAX).contains(n)) else {
            let d =
                Diagnostic::new(Code::E0504, span, "the axis of a program is 0, 1 or 2, known before the program runs");
            return self.fail(d);
        };
        if let Some(d) = count.as_ref().and_then(|c| self.count_problem(c)) {
            return self.fail(d);
        }
        let fresh = self.sizes.fresh_var(&format!("program{n}"));
        let Some(tiles) = self.kernel.as_mut().and_then(|k| k.tiles.as_mut()) else { return error_at(span) };
        let entry = tiles.axes.entry(n as u32).or_insert((fresh, None));
        if count.is_some() {
            entry.1 = count;
        }
        let ty = Ty::Int(Some(Size::var(entry.0.clone())));
        builtin(Builtin::tile_program_id, vec![int(n, span)], ty, span)
    }

    /// A count is evaluated before the programs run, so it may speak of parameters only.
    fn count_problem(&self, count: &TExpr) -> Option<Diagnostic> {
        let params: BTreeSet<Arc<str>> =
            self.func.iter().flat_map(|f| f.f.sig.params.iter().map(|p| p.name.text.clone())).collect();
        let is_param = |v: &Var| match v {
            Var::Local(l) => self.locals.get(l.0 as usize).is_some_and(|v| params.contains(&v.name)),
            Var::Global(_) => true,
        };
        if !matches!(count.ty, Ty::Int(_)) {
            return Some(Diagnostic::new(
                Code::E0504,
                count.span,
                format!("a count is an `int`, and this is `{}`", count.ty),
            ));
        }
        if !mentioned(count).iter().all(is_param) {
            let d = Diagnostic::new(Code::E0504, count.span, "a count may speak of parameters only");
            return Some(d.note("it is evaluated before the first program runs"));
        }
        None
    }

    /// One int for each dim of a view.
    fn tile_positions(&mut self, e: TExpr, rank: usize) -> Option<Vec<TExpr>> {
        let span = e.span;
        let items = match (e.kind, e.ty.clone()) {
            (TKind::Tuple(items) | TKind::List(items), _) => items,
            (kind, ty @ Ty::Int(_)) => vec![TExpr { kind, ty, span }],
            (_, ty) => {
                self.error(Code::E0504, span, format!("a tile is named by a tuple of ints, and this is `{ty}`"));
                return None;
            }
        };
        if items.len() != rank || items.iter().any(|i| !matches!(i.ty, Ty::Int(_))) {
            let d = Diagnostic::new(
                Code::E0504,
                span,
                format!("{rank} ints are needed here, one for each dim of the tensor"),
            )
            .note("they count tiles, not elements");
            self.report(d);
            return None;
        }
        Some(items)
    }

    /// The constant sizes of a tile.
    fn tile_shape(&mut self, e: &TExpr, rank: usize) -> Option<Vec<i64>> {
        let items: Vec<&TExpr> = match &e.kind {
            TKind::Tuple(items) | TKind::List(items) => items.iter().collect(),
            _ => vec![e],
        };
        let sizes: Option<Vec<i64>> = items.iter().map(|e| e.ty.const_int().filter(|n| *n > 0)).collect();
        match sizes {
            Some(sizes) if sizes.len() == rank => Some(sizes),
            _ => {
                let d = Diagnostic::new(Code::E0504, e.span, format!("a tile of this tensor has {rank} sizes"))
                    .note("they are positive and known before the program runs");
                self.report(d);
                None
            }
        }
    }

    fn viewed(&mut self, x: &TExpr) -> Option<TensorType> {
        match &x.ty {
            Ty::Tensor(t) if t.rank() > 0 && t.dtype.is_some() => Some(t.clone()),
            ty => {
                let d = Diagnostic::new(Code::E0504, x.span, "a tensor of known rank and element type is needed here")
                    .here(format!("this is `{ty}`"));
                self.report(d);
                None
            }
        }
    }

    fn tile_load(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        let slots = Slot::built_in("tile.load");
        let Some(matched) = self.match_params("tile.load", &slots, values, span, None) else { return error_at(span) };
        let [Some(x), Some(index), Some(shape), pad] = <[_; 4]>::try_from(matched).unwrap_or_default() else {
            return error_at(span);
        };
        let Some(t) = self.viewed(&x) else { return error_at(span) };
        let (Some(positions), Some(sizes)) = (self.tile_positions(index, t.rank()), self.tile_shape(&shape, t.rank()))
        else {
            return error_at(span);
        };
        let pad = match pad {
            None => TExpr { kind: TKind::Float(0.0), ty: Ty::Float, span },
            Some(p) if p.ty.is_scalar() => p,
            Some(p) => {
                let d = Diagnostic::new(Code::E0504, p.span, format!("`pad` is a number, and this is `{}`", p.ty));
                return self.fail(d);
            }
        };
        let shape_of: Vec<Size> = sizes.iter().map(|&n| Size::constant(n)).collect();
        let ty = Ty::Tensor(TensorType::new(shape_of, t.dtype.unwrap_or(DType::F32)));
        let args = vec![x, tuple(positions, span), tuple(sizes.into_iter().map(|n| int(n, span)).collect(), span), pad];
        builtin(Builtin::tile_load, args, ty, span)
    }

    fn tile_store(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        let slots = Slot::built_in("tile.store");
        let Some(matched) = self.match_params("tile.store", &slots, values, span, None) else { return error_at(span) };
        let [Some(x), Some(index), Some(value)] = <[_; 3]>::try_from(matched).unwrap_or_default() else {
            return error_at(span);
        };
        let params: BTreeSet<Arc<str>> = self
            .func
            .iter()
            .flat_map(|f| f.f.sig.outputs.iter().map(|&i| f.f.sig.params[i as usize].name.text.clone()))
            .collect();
        let is_output = matches!(x.kind, TKind::Local(l) if self.locals.get(l.0 as usize).is_some_and(|v| params.contains(&v.name)));
        if !is_output {
            let d = Diagnostic::new(Code::E0505, x.span, "`tile.store` writes a parameter of the kernel")
                .note("the caller sees the parameter changed; nothing would see this");
            return self.fail(d);
        }
        let Some(t) = self.viewed(&x) else { return error_at(span) };
        let Some(positions) = self.tile_positions(index, t.rank()) else { return error_at(span) };
        let sizes: Option<Vec<i64>> = match &value.ty {
            Ty::Tensor(v) if v.rank() == t.rank() => v.shape.iter().map(|s| s.as_const().filter(|n| *n > 0)).collect(),
            _ => None,
        };
        let (Some(sizes), Ty::Tensor(v)) = (sizes, value.ty.clone()) else {
            let d = Diagnostic::new(
                Code::E0504,
                value.span,
                format!("a tile with {} positive constant sizes is needed here", t.rank()),
            )
            .here(format!("this is `{}`", value.ty));
            return self.fail(d);
        };
        if v.dtype != t.dtype {
            let to = t.dtype.unwrap_or(DType::F32);
            let d = Diagnostic::new(Code::E0206, value.span, format!("a {v} is stored into a tensor of {to}"))
                .help(format!("convert it: `.to({to})`"));
            return self.fail(d);
        }
        self.grid_of(&x, &t, &positions, &sizes, span);
        builtin(Builtin::tile_store, vec![x, tuple(positions, span), value], Ty::None, span)
    }

    /// A program number that names a tile of an output tells how many programs there are: as
    /// many as the output has tiles along that dim.
    fn grid_of(&mut self, x: &TExpr, t: &TensorType, positions: &[TExpr], sizes: &[i64], span: Span) {
        let Some(tiles) = self.kernel.as_mut().and_then(|k| k.tiles.as_mut()) else { return };
        for (d, (position, &size)) in positions.iter().zip(sizes).enumerate() {
            let Ty::Int(Some(named)) = &position.ty else { continue };
            let Some((_, (_, count))) = tiles.axes.iter_mut().find(|(_, (var, _))| named.as_var() == Some(var)) else {
                continue;
            };
            if count.is_none() {
                let dim = match t.shape[d].as_const() {
                    Some(n) => int(n, span),
                    None => TExpr { kind: TKind::TensorDim(Box::new(x.clone()), d), ty: Ty::int(), span },
                };
                let arith = |op, left, right| {
                    let kind = TKind::Arith { op, left: Box::new(left), right: Box::new(right), int_operands: true };
                    TExpr { kind, ty: Ty::int(), span }
                };
                let sum = arith(BinOp::Add, dim, int(size - 1, span));
                *count = Some(arith(BinOp::FloorDiv, sum, int(size, span)));
            }
        }
    }

    /// `tile.dot(a, b, acc)`: the product of two tiles, in the accumulator's type, added to `acc`.
    fn tile_dot(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        let slots = Slot::built_in("tile.dot");
        let Some(matched) = self.match_params("tile.dot", &slots, values, span, None) else { return error_at(span) };
        let [Some(a), Some(b), acc] = <[_; 3]>::try_from(matched).unwrap_or_default() else { return error_at(span) };
        let narrow = |e: &TExpr| match &e.ty {
            Ty::Tensor(t) => t.dtype.is_some_and(|d| d.is_float() && d.bytes() < 4),
            _ => false,
        };
        let mut given: Vec<Value> = vec![];
        let wide = narrow(&a) && narrow(&b);
        given.extend([a, b].map(|value| Value { name: None, value }));
        if wide {
            let value = TExpr { kind: TKind::DType(DType::F32), ty: Ty::DType(Some(DType::F32)), span };
            given.push(Value { name: Some(Name { text: "out_dtype".into(), span }), value });
        }
        let product = self.call_builtin_values(&"op.matmul".into(), given, span, span);
        match acc {
            Some(acc) if !product.ty.is_error() => self.binary(BinOp::Add, span, acc, product, span),
            _ => product,
        }
    }

    /// `tile.reduce(x, "max", axis=1)`.
    fn tile_reduce(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        let slots = Slot::built_in("tile.reduce");
        let Some(matched) = self.match_params("tile.reduce", &slots, values, span, None) else { return error_at(span) };
        let [Some(x), Some(kind), axis, keep] = <[_; 4]>::try_from(matched).unwrap_or_default() else {
            return error_at(span);
        };
        const KINDS: &[&str] = &["sum", "max", "min", "prod", "mean"];
        let word = match &kind.kind {
            TKind::Str(s) if KINDS.contains(&&**s) => s.clone(),
            _ => {
                let d = Diagnostic::new(Code::E0504, kind.span, "this is no kind of reduction").note(format!(
                    "kinds are {}",
                    KINDS.iter().map(|k| format!("\"{k}\"")).collect::<Vec<_>>().join(", ")
                ));
                return self.fail(d);
            }
        };
        let mut given = vec![Value { name: None, value: x }];
        for (name, value) in [("axis", axis), ("keepdims", keep)] {
            given.extend(value.map(|value| Value { name: Some(Name { text: name.into(), span }), value }));
        }
        self.call_builtin_values(&format!("op.{word}").into(), given, span, span)
    }

    /// The programs of a kernel once its body is known; `None` for a kernel on whole tensors.
    pub fn close_tiles(&mut self, params: &[LocalId], gives: &Ty, body: &[TStmt]) -> Option<TileProgram> {
        let tiles = self.kernel.as_ref()?.tiles.clone()?;
        let (name, outputs) = {
            let f = &self.func.as_ref()?.f.sig;
            (f.name.clone(), f.outputs.clone())
        };
        let mut problem = None;
        if tiles.stores == 0 {
            problem = Some(
                Diagnostic::new(Code::E0505, tiles.first, format!("the tile program `{name}` stores nothing"))
                    .help("write its results with `tile.store(out, index, tile)`"),
            );
        } else if !matches!(gives, Ty::None | Ty::Error | Ty::Never) {
            problem = Some(
                Diagnostic::new(Code::E0504, tiles.first, format!("the tile program `{name}` returns a value"))
                    .note("each program has values of its own; results go into outputs")
                    .help("write it with `tile.store(out, index, tile)`"),
            );
        }
        let whole = body.iter().find_map(|s| match s {
            TStmt::Mutate { place: TLvalue { root: TRoot::Local(l), .. }, span, .. } if params.contains(l) => {
                Some(*span)
            }
            _ => None,
        });
        if let (None, Some(at)) = (&problem, whole) {
            problem = Some(
                Diagnostic::new(Code::E0507, at, "every program of the grid writes this")
                    .note("an index of a whole tensor names the same elements in every program")
                    .help("write tiles of the program's own: `tile.store(out, index, tile)`"),
            );
        }
        let last = tiles.axes.keys().next_back().copied();
        let mut grid = vec![];
        for axis in 0..last.map_or(0, |l| l + 1) {
            grid.push(match tiles.axes.get(&axis) {
                None => int(1, tiles.first),
                Some((_, Some(count))) => count.clone(),
                Some((_, None)) => {
                    let d = Diagnostic::new(
                        Code::E0504,
                        tiles.first,
                        format!("how many programs `{name}` has along axis {axis} is not known"),
                    )
                    .note("no store names its tile by this number alone")
                    .help(format!("say it: `tile.program_id({axis}, count=…)`"));
                    problem.get_or_insert(d);
                    int(0, tiles.first)
                }
            });
        }
        // A call that is wrong in itself tells nothing of the grid.
        if let Some(d) = problem.filter(|_| !self.diagnostics.iter().any(Diagnostic::is_error)) {
            self.report(d);
        }
        let outputs = outputs.iter().filter_map(|&i| params.get(i as usize).copied()).collect();
        Some(TileProgram { grid, outputs })
    }
}

fn tuple(items: Vec<TExpr>, span: Span) -> TExpr {
    let ty = Ty::Tuple(items.iter().map(|i| i.ty.clone()).collect());
    TExpr { kind: TKind::Tuple(items), ty, span }
}
