//! `dist`: meshes, layouts, and collectives on whole tensors, which change how a tensor lies and
//! never its value.

use super::args::{Slot, Value};
use super::cx::{Cx, error_at};
use std::sync::Arc;
use tessera_base::near::nearest;
use tessera_base::{Code, Diagnostic, Mesh, Monoid, Sharding, Span, TensorType};
use tessera_core::ir::*;
use tessera_core::ty::{ShardSpec, SpecDim, Ty};
use tessera_grammar::ast::{Arg, Expr, ExprKind};

/// Devices of one mesh at most.
const DEVICES_MAX: u64 = 1 << 20;

impl Cx<'_> {
    pub fn dist(&mut self, name: &Arc<str>, args: &[Arg], span: Span, name_span: Span) -> TExpr {
        if &**name == "dist.each" {
            let values = self.args(args);
            return self.each_own(values, span, name_span);
        }
        if matches!(&**name, "dist.rank" | "dist.size") {
            let values = self.args(args);
            return self.device_number(name, values, span, name_span);
        }
        if self.local.is_some() && &**name == "dist.complete" {
            let values = self.args(args);
            return self.complete_own(values, span, name_span);
        }
        if self.local.is_some() && !name.starts_with("dist.collective.") {
            let d = Diagnostic::new(
                Code::E0407,
                name_span,
                format!("`{name}` is about whole tensors, and this is the code of one device"),
            )
            .note("per-device code has blocks, which lie on its device")
            .help("lay tensors out before the call, and annotate parameters and result as they lie");
            return self.fail(d);
        }
        match &**name {
            "dist.Mesh" => self.mesh(args, span),
            "dist.ShardSpec" => self.shard_spec(args, span),
            "dist.tensor" => {
                let values = self.args(args);
                self.sharded_tensor(values, span)
            }
            "dist.shard" => {
                let values = self.args(args);
                self.shard(values, span)
            }
            "dist.gather" | "dist.complete" => {
                let values = self.args(args);
                let given = self.dist_args(name, values, span);
                let Some(x) = given.and_then(|g| g.into_iter().flatten().next()) else { return error_at(span) };
                let Some(t) = self.tensor_of(&x, name) else { return error_at(span) };
                let to = match &**name {
                    "dist.gather" => Sharding::default(),
                    _ => Sharding { partial: t.sharding.positions(), ..t.sharding.clone() },
                };
                if to == t.sharding { x } else { layout(x, to, t, span) }
            }
            "dist.like" => {
                let values = self.args(args);
                self.laid_out_like(values, span)
            }
            "dist.pipeline" => self.pipeline(args, span),
            "dist.at" => {
                let values = self.args(args);
                self.at(values, span)
            }
            _ => {
                let values = self.args(args);
                self.collective(name.strip_prefix("dist.collective.").unwrap_or(name), values, span, name_span)
            }
        }
    }

    /// Arguments of a function of `dist`.
    pub fn dist_args(&mut self, name: &str, values: Vec<Value>, span: Span) -> Option<Vec<Option<TExpr>>> {
        self.args_without_errors(name, &Slot::built_in(name), values, span)
    }

    /// As [`Cx::dist_args`], of parameters that are not those of the row.
    pub fn args_without_errors(
        &mut self,
        name: &str,
        slots: &[Slot],
        values: Vec<Value>,
        span: Span,
    ) -> Option<Vec<Option<TExpr>>> {
        let given = self.match_params(name, slots, values, span, None)?;
        (!given.iter().flatten().any(|e| e.ty.is_error())).then_some(given)
    }

    /// Arguments by name as they are written: what they are is part of types. E0104 and E0105 where they do not fit.
    pub fn written<'e, const N: usize>(
        &mut self,
        function: &str,
        names: [&str; N],
        args: &'e [Arg],
    ) -> Option<[Option<&'e Expr>; N]> {
        let mut given = [None; N];
        for (next, arg) in args.iter().enumerate() {
            let at = match &arg.name {
                None => next,
                Some(n) => match names.iter().position(|p| **p == *n.text) {
                    Some(at) => at,
                    None => {
                        let text = format!("`{function}` has no parameter `{}`", n.text);
                        let d = Diagnostic::new(Code::E0105, n.span, text);
                        self.report(d.did_you_mean(n.span, &n.text, names, |d| d));
                        return None;
                    }
                },
            };
            match given.get_mut(at) {
                Some(slot @ None) => *slot = Some(&arg.value),
                _ => {
                    let text = format!("`{function}` takes {}, each once", names.join(", "));
                    self.error(Code::E0104, arg.value.span, text);
                    return None;
                }
            }
        }
        Some(given)
    }

    // ---- Meshes and specs ---------------------------------------------------------------------

    /// `dist.Mesh(axes=[…], devices=range(n), shape=[…])`: all of it is known here.
    fn mesh(&mut self, args: &[Arg], span: Span) -> TExpr {
        let Some(given) = self.written("dist.Mesh", ["axes", "devices", "shape"], args) else { return error_at(span) };
        let [Some(axes), Some(devices), shape] = given else {
            let d = Diagnostic::new(Code::E0104, span, "a mesh has axes and devices")
                .help("write `dist.Mesh(axes=[\"dp\", \"tp\"], devices=range(8), shape=[4, 2])`");
            return self.fail(d);
        };
        let (Some(names), Some(count)) = (self.texts(axes, "axes"), self.device_count(devices)) else {
            return error_at(span);
        };
        if let Some(mesh) = self.db.mesh().filter(|m| m.names() == names).cloned() {
            return TExpr { kind: TKind::None, ty: Ty::Mesh(Some(Arc::new(mesh))), span };
        }
        let sizes = match shape {
            None => Mesh::factors(count, names.len()),
            Some(e) => match self.sizes_of(e, "shape") {
                Some(sizes) => sizes,
                None => return error_at(span),
            },
        };
        if let Some(d) = mesh_error(&names, &sizes, count, shape.unwrap_or(axes).span, axes.span) {
            return self.fail(d);
        }
        let mesh = Mesh { axes: names.into_iter().zip(sizes).collect() };
        if shape.is_none() {
            self.sizes.notes.push((span, format!("{mesh}: the factors with the smallest sum, larger ones first")));
        }
        TExpr { kind: TKind::None, ty: Ty::Mesh(Some(Arc::new(mesh))), span }
    }

    /// `range(n)`, an int, or the list of the numbers from 0 on.
    fn device_count(&mut self, e: &Expr) -> Option<u64> {
        let (from_zero, count) = match &e.kind {
            ExprKind::Call { func, args } if matches!(&func.kind, ExprKind::Name(n) if &**n == "range") => {
                let bounds: Vec<Option<i64>> = args.iter().map(|a| self.known_int(&a.value)).collect();
                match bounds[..] {
                    [Some(n)] => (true, Some(n)),
                    [Some(low), Some(high)] => (low == 0, high.checked_sub(low)),
                    _ => (true, None),
                }
            }
            ExprKind::List(items) => {
                let numbers: Option<Vec<i64>> = items.iter().map(|item| self.known_int(item)).collect();
                let in_order = numbers.iter().flatten().zip(0..).all(|(n, i)| *n == i);
                (in_order, numbers.map(|all| all.len() as i64))
            }
            _ => (true, self.known_int(e)),
        };
        let fits = count.and_then(|n| u64::try_from(n).ok()).filter(|n| (1..=DEVICES_MAX).contains(n));
        let Some(count) = fits else {
            let text = format!("the number of devices must be known here, from 1 to {DEVICES_MAX}");
            let d = Diagnostic::new(Code::E0402, e.span, text)
                .note("layouts are part of types, which are checked before the program runs")
                .help("write `devices=range(8)`");
            self.report(d);
            return None;
        };
        if !from_zero {
            let text = format!("the devices of a mesh are the numbers from 0 to {} in order", count - 1);
            let d = Diagnostic::new(Code::E0402, e.span, text)
                .note("which core or process runs a device does not depend on its number, and nor do results")
                .help(format!("write `devices=range({count})`"));
            self.report(d);
            return None;
        }
        Some(count)
    }

    /// The value of an expression that is an int known before the run.
    pub fn known_int(&mut self, e: &Expr) -> Option<i64> {
        let value = self.expr(e);
        match &value.ty {
            Ty::Int(Some(n)) => n.as_const(),
            _ => None,
        }
    }

    /// An int that is known here, or those of a tuple.
    fn known_ints(&mut self, e: &Expr) -> Option<Vec<i64>> {
        let known = |ty: &Ty| match ty {
            Ty::Int(Some(n)) => n.as_const(),
            _ => None,
        };
        match &self.expr(e).ty {
            Ty::Tuple(items) => items.iter().map(known).collect(),
            ty => known(ty).map(|n| vec![n]),
        }
    }

    /// The items of a list or tuple that is written out.
    fn items<'e>(&mut self, e: &'e Expr) -> Vec<&'e Expr> {
        match &e.kind {
            ExprKind::List(items) | ExprKind::Tuple(items) => items.iter().collect(),
            _ => vec![e],
        }
    }

    fn texts(&mut self, e: &Expr, what: &str) -> Option<Vec<String>> {
        let mut out = vec![];
        for item in self.items(e) {
            let ExprKind::Str(text) = &item.kind else {
                let d = Diagnostic::new(
                    Code::E0402,
                    item.span,
                    format!("`{what}` must be names that are written out here"),
                )
                .help("as in `(\"dp\", \"tp\")`");
                self.report(d);
                return None;
            };
            out.push(text.to_string());
        }
        Some(out)
    }

    fn sizes_of(&mut self, e: &Expr, what: &str) -> Option<Vec<u64>> {
        let mut out = vec![];
        for item in self.items(e) {
            match self.known_int(item).and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0) {
                Some(n) => out.push(n),
                None => {
                    let text = format!("the numbers of `{what}` must be known here, and at least 1");
                    self.report(Diagnostic::new(Code::E0402, item.span, text));
                    return None;
                }
            }
        }
        Some(out)
    }

    /// `dist.ShardSpec(partition=("row", "col"), mesh_axes=("tp", "pp"))`.
    fn shard_spec(&mut self, args: &[Arg], span: Span) -> TExpr {
        let Some(given) = self.written("dist.ShardSpec", ["partition", "mesh_axes"], args) else {
            return error_at(span);
        };
        let [Some(partition), Some(axes)] = given else {
            let d = Diagnostic::new(Code::E0104, span, "a layout names dims and the axes that split them")
                .help("write `dist.ShardSpec(partition=(\"row\",), mesh_axes=(\"tp\",))`");
            return self.fail(d);
        };
        let mut dims = vec![];
        for item in self.items(partition) {
            match &item.kind {
                ExprKind::Str(name) => dims.push(SpecDim::Named(name.to_string().into())),
                _ => match self.known_ints(item) {
                    Some(ns) => dims.extend(ns.into_iter().map(SpecDim::At)),
                    None => {
                        let d = Diagnostic::new(
                            Code::E0401,
                            item.span,
                            "a dim of a layout is `\"row\"`, `\"col\"`, its position or its name, known here",
                        )
                        .here(match self.expr(item).ty {
                            Ty::Error => String::new(),
                            ty => format!("this is `{ty}`"),
                        })
                        .note("layouts are part of types, which are checked before the program runs");
                        return self.fail(d);
                    }
                },
            }
        }
        let mut split: Vec<Vec<String>> = vec![];
        for item in self.items(axes) {
            match self.texts(item, "mesh_axes") {
                Some(names) => split.push(names),
                None => return error_at(span),
            }
        }
        if dims.len() != split.len() {
            let text = "`partition` and `mesh_axes` are not equally long: each dim of a layout has its axis";
            let d = Diagnostic::new(Code::E0401, partition.span, text)
                .here(format!("{} here", dims.len()))
                .with_label(axes.span, format!("{} here", split.len()))
                .help("a dim over several axes takes a tuple: `mesh_axes=((\"dp\", \"tp\"),)`");
            return self.fail(d);
        }
        let all: Vec<&String> = split.iter().flatten().collect();
        if let Some(twice) = all.iter().enumerate().find(|(i, a)| all[..*i].contains(a)) {
            let d = Diagnostic::new(
                Code::E0401,
                axes.span,
                format!("the mesh axis `{}` is used twice in one layout", twice.1),
            )
            .note("an axis splits one dim: its devices hold different parts of it");
            return self.fail(d);
        }
        let spec = ShardSpec { parts: dims.into_iter().zip(split).collect() };
        TExpr { kind: TKind::None, ty: Ty::ShardSpec(Some(Arc::new(spec))), span }
    }

    // ---- Tensors ------------------------------------------------------------------------------

    pub fn tensor_of(&mut self, x: &TExpr, name: &str) -> Option<TensorType> {
        match &x.ty {
            Ty::Tensor(t) => Some(t.clone()),
            Ty::Error | Ty::Never => None,
            other => {
                let d = Diagnostic::new(Code::E0204, x.span, format!("`{name}` takes a tensor, and this is `{other}`"));
                self.report(d);
                None
            }
        }
    }

    /// The layout that a spec gives a tensor on a mesh.
    fn layout_of(&mut self, t: &TensorType, spec: &TExpr, mesh: &Arc<Mesh>) -> Option<Sharding> {
        let Ty::ShardSpec(known) = &spec.ty else {
            let d = Diagnostic::new(
                Code::E0204,
                spec.span,
                format!("a layout is a `dist.ShardSpec`, and this is `{}`", spec.ty),
            );
            self.report(d);
            return None;
        };
        let Some(known) = known.clone() else {
            let d =
                Diagnostic::new(Code::E0401, spec.span, "which layout this is must be known before the program runs");
            self.report(d);
            return None;
        };
        let rank = t.rank();
        if known.parts.len() > rank {
            let d = Diagnostic::new(
                Code::E0401,
                spec.span,
                format!("a layout of {} dims for a tensor of rank {rank}", known.parts.len()),
            )
            .note(format!("the tensor is {t}"));
            self.report(d);
            return None;
        }
        let mut dims: Vec<Vec<String>> = vec![vec![]; rank];
        for (dim, axes) in &known.parts {
            let at = match dim {
                SpecDim::At(n) => usize::try_from(if *n < 0 { n + rank as i64 } else { *n }).ok(),
                SpecDim::Named(name) => match &**name {
                    "row" => Some(0),
                    "col" => rank.checked_sub(1),
                    name => t.shape.iter().position(|s| s.to_string() == name),
                },
            };
            let Some(at) = at.filter(|&i| i < rank) else {
                let d = Diagnostic::new(Code::E0401, spec.span, format!("the tensor has no {dim}"))
                    .note(format!("it is {t}"))
                    .help("dims are `\"row\"` (the first), `\"col\"` (the last), a position, or the name of a size");
                self.report(d);
                return None;
            };
            if !dims[at].is_empty() {
                let d =
                    Diagnostic::new(Code::E0401, spec.span, format!("dim {at} of {t} is named twice in one layout"))
                        .help("a dim over several axes takes a tuple: `mesh_axes=((\"dp\", \"tp\"),)`");
                self.report(d);
                return None;
            }
            for axis in axes {
                self.known_axis(mesh, axis, spec.span)?;
            }
            dims[at].clone_from(axes);
        }
        let mesh = match mesh.is_unknown() {
            true => {
                let more = dims.iter().flatten().filter(|a| mesh.size(a).is_none());
                Arc::new(Mesh::unknown(mesh.axes.iter().map(|a| &a.0).chain(more).cloned()))
            }
            false => mesh.clone(),
        };
        Some(Sharding { dims, partial: vec![], mesh: Some(mesh) }.normal(rank))
    }

    /// The devices along an axis. E0403 where the mesh has no such axis.
    pub fn known_axis(&mut self, mesh: &Mesh, axis: &str, span: Span) -> Option<u64> {
        if mesh.is_unknown() {
            return Some(1);
        }
        if let Some(size) = mesh.size(axis) {
            return Some(size);
        }
        let d =
            Diagnostic::new(Code::E0403, span, format!("the mesh has no axis `{axis}`")).note(format!("it is {mesh}"));
        self.report(match nearest(axis, mesh.names().iter().copied()) {
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None => d,
        });
        None
    }

    /// The mesh that an argument names.
    pub fn mesh_arg(&mut self, e: &TExpr) -> Option<Arc<Mesh>> {
        match &e.ty {
            Ty::Mesh(Some(mesh)) => Some(mesh.clone()),
            Ty::Mesh(None) => {
                self.error(Code::E0402, e.span, "which mesh this is must be known before the program runs");
                None
            }
            other => {
                self.error(Code::E0204, e.span, format!("`mesh=` takes a `dist.Mesh`, and this is `{other}`"));
                None
            }
        }
    }

    /// `dist.tensor(shape, dtype=, layout=, mesh=, init=)`.
    fn sharded_tensor(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        let Some(given) = self.dist_args("dist.tensor", values, span) else { return error_at(span) };
        let mut given = given.into_iter();
        let mut next = || given.next().flatten();
        let (shape, dtype, spec, mesh, init) = (next(), next(), next(), next(), next());
        let Some(shape) = shape else { return error_at(span) };
        let (mut name, mut args) = ("op.zeros", vec![Value { name: None, value: shape }]);
        match init {
            Some(init) if matches!(init.ty, Ty::Float | Ty::Int(_)) => {
                name = "op.full";
                args.push(Value { name: None, value: init });
            }
            Some(init) if init.ty.is_tensor() => {
                let d = Diagnostic::new(Code::E0204, init.span, "`init` is a number here")
                    .help("lay out a tensor that exists with `dist.shard(x, spec, mesh=mesh)`");
                return self.fail(d);
            }
            Some(init) => {
                let d =
                    Diagnostic::new(Code::E0690, init.span, "`init` takes a number; functions are not supported yet")
                        .help("make the tensor and lay it out with `dist.shard(x, spec, mesh=mesh)`");
                return self.fail(d);
            }
            None => {}
        }
        let dtype = dtype.unwrap_or(TExpr {
            kind: TKind::DType(tessera_base::DType::F32),
            ty: Ty::DType(Some(tessera_base::DType::F32)),
            span,
        });
        let keyword = tessera_grammar::ast::Name { text: "dtype".into(), span };
        args.push(Value { name: Some(keyword), value: dtype });
        let x = self.call_builtin_values(&name.into(), args, span, span);
        match (spec, mesh) {
            (None, None) => x,
            (spec, Some(mesh)) => self.laid_out(x, spec, &mesh, span),
            (Some(spec), None) => {
                let d = Diagnostic::new(Code::E0402, spec.span, "a layout needs a mesh").help("add `mesh=mesh`");
                self.fail(d)
            }
        }
    }

    fn laid_out(&mut self, x: TExpr, spec: Option<TExpr>, mesh: &TExpr, span: Span) -> TExpr {
        let (Ty::Tensor(t), Some(mesh)) = (x.ty.clone(), self.mesh_arg(mesh)) else { return error_at(span) };
        let sharding = match spec {
            None => Some(Sharding::replicated(&mesh)),
            Some(spec) => self.layout_of(&t, &spec, &mesh),
        };
        match sharding {
            Some(sharding) => layout(x, sharding, t, span),
            None => error_at(span),
        }
    }

    /// `dist.shard(x, spec, mesh=)`.
    fn shard(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        let Some(given) = self.dist_args("dist.shard", values, span) else {
            return error_at(span);
        };
        let mut given = given.into_iter();
        let (Some(Some(x)), Some(Some(spec)), mesh) = (given.next(), given.next(), given.next().flatten()) else {
            return error_at(span);
        };
        let Some(t) = self.tensor_of(&x, "dist.shard") else { return error_at(span) };
        let Some(mesh) = self.mesh_for(&x, &t, mesh) else { return error_at(span) };
        if let Some(p) = t.sharding.unfinished() {
            let d = unfinished(&x, &t, p);
            return self.fail(d);
        }
        match self.layout_of(&t, &spec, &mesh) {
            Some(sharding) => layout(x, sharding, t, span),
            None => error_at(span),
        }
    }

    /// The mesh on which a tensor is to lie: the one that an argument names, or its own.
    pub fn mesh_for(&mut self, x: &TExpr, t: &TensorType, named: Option<TExpr>) -> Option<Arc<Mesh>> {
        let named = match named {
            Some(e) => Some(self.mesh_arg(&e)?),
            None => None,
        };
        self.mesh_of(x, t, named)
    }

    /// The same of a mesh that is known.
    pub fn mesh_of(&mut self, x: &TExpr, t: &TensorType, named: Option<Arc<Mesh>>) -> Option<Arc<Mesh>> {
        let Some(mesh) = named.or(t.sharding.mesh.clone()) else {
            let d = Diagnostic::new(Code::E0402, x.span, format!("{t} lies on one device: a layout needs a mesh"));
            self.report(d.help("add `mesh=mesh`"));
            return None;
        };
        if t.sharding.mesh.as_ref().is_some_and(|own| *own != mesh && !own.is_unknown()) {
            let d = Diagnostic::new(Code::E0404, x.span, "the tensor lies on another mesh")
                .help_about("take it off that mesh first: `dist.gather({x})`", &[("x", x.span)]);
            self.report(d);
            return None;
        }
        Some(mesh)
    }

    /// `dist.like(x, y)`: `x` as `y` lies.
    fn laid_out_like(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        let given = self.dist_args("dist.like", values, span);
        let mut given = given.into_iter().flatten().flatten();
        let (Some(x), Some(y)) = (given.next(), given.next()) else { return error_at(span) };
        let (Some(t), Some(like)) = (self.tensor_of(&x, "dist.like"), self.tensor_of(&y, "dist.like")) else {
            return error_at(span);
        };
        if t.rank() != like.rank() {
            let text = format!("a tensor of rank {} cannot lie like one of rank {}", t.rank(), like.rank());
            let d = Diagnostic::new(Code::E0401, x.span, text).with_label(y.span, like.to_string());
            return self.fail(d);
        }
        let to = Sharding { partial: like.sharding.positions(), ..like.sharding };
        if to == t.sharding { x } else { layout(x, to, t, span) }
    }

    /// A value for the world outside: a tensor on a mesh is put together. E0490 where the value
    /// has such tensors inside.
    pub fn on_one_device(&mut self, name: &str, value: TExpr) -> Result<TExpr, Diagnostic> {
        match value.ty.clone() {
            Ty::Tensor(t) if t.sharding.mesh.is_some() => {
                let span = value.span;
                Ok(layout(value, Sharding::default(), t, span))
            }
            ty if ty.on_a_mesh() => Err(Diagnostic::new(
                Code::E0490,
                value.span,
                format!("`{name}` of values with tensors on a mesh is not supported yet"),
            )
            .help(
                "put them together first: `tree.map(lambda x: dist.gather(x) if isinstance(x, Tensor) else x, value)`",
            )),
            _ => Ok(value),
        }
    }
}

/// E0405 for a value with parts that are still to be put together.
pub fn unfinished(x: &TExpr, t: &TensorType, (monoid, axis): &(Monoid, String)) -> Diagnostic {
    let text = format!("this is `{monoid}@{axis}`: its parts are to be put together first");
    let help = format!("`dist.collective.all_reduce(x, axis=\"{axis}\")`, or `reduce_scatter`");
    Diagnostic::new(Code::E0405, x.span, text).here(t.to_string()).help(help)
}

/// The tensor in a layout.
pub fn layout(x: TExpr, sharding: Sharding, t: TensorType, span: Span) -> TExpr {
    TExpr { kind: TKind::Layout(Box::new(x)), ty: Ty::Tensor(TensorType { sharding, ..t }), span }
}

fn mesh_error(names: &[String], sizes: &[u64], count: u64, at: Span, axes: Span) -> Option<Diagnostic> {
    if names.is_empty() {
        return Some(Diagnostic::new(Code::E0402, axes, "a mesh has at least one axis"));
    }
    if let Some((_, twice)) = names.iter().enumerate().find(|(i, n)| names[..*i].contains(n)) {
        return Some(Diagnostic::new(Code::E0402, axes, format!("the mesh axis `{twice}` is named twice")));
    }
    if names.len() != sizes.len() {
        let text = format!("{} axes and {} sizes", names.len(), sizes.len());
        return Some(Diagnostic::new(Code::E0402, at, text).with_label(axes, "the axes"));
    }
    let product = sizes.iter().try_fold(1u64, |n, s| n.checked_mul(*s));
    if product == Some(count) {
        return None;
    }
    let shown: Vec<String> = sizes.iter().map(u64::to_string).collect();
    let even: Vec<String> = Mesh::factors(count, names.len()).iter().map(u64::to_string).collect();
    let product = product.map_or("more devices than there can be".into(), |p| format!("{p} devices"));
    Some(
        Diagnostic::new(Code::E0402, at, format!("a mesh of {} has {product}, and {count} are given", shown.join("×")))
            .help(format!("`shape=[{}]` has {count}", even.join(", "))),
    )
}
