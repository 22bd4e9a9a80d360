//! Values at one position of a mesh axis, and stages of any shapes, one behind the other along it.

use super::args::{Slot, Value};
use super::cx::{Cx, error_at};
use super::meshes::{layout, unfinished};
use super::names::Meaning;
use crate::db::Target;
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, Mesh, Monoid, Sharding, Size, Span, TensorType};
use tessera_core::ir::*;
use tessera_core::ty::{Derived, Line, Ty};
use tessera_grammar::ast::{Arg, Expr, ExprKind};
use tessera_resolve::facts::STAGES;
use tessera_resolve::source::FileId;

/// Microbatches of one call at most: each is written out.
const MICROBATCHES_MAX: i64 = 256;

/// How a tensor lies at one position of an axis; along other axes as it did.
fn placed(t: &TensorType, axis: &str, index: u64, mesh: Arc<Mesh>) -> Sharding {
    let mut to = Sharding { mesh: Some(mesh), ..t.sharding.clone() };
    to.dims.iter_mut().for_each(|axes| axes.retain(|a| a != axis));
    to.partial.retain(|(_, a)| a != axis);
    to.partial.push((Monoid::At(index), axis.to_owned()));
    to.normal(t.rank())
}

/// E0402: rows that cannot be divided into equal microbatches on the devices that have them.
fn uneven(t: &TensorType, microbatches: u64, at: Span) -> Option<Diagnostic> {
    let rows = t.shape.first()?.as_const().and_then(|n| u64::try_from(n).ok())?;
    let parts = t.sharding.parts(0);
    let of_all = microbatches * parts;
    if rows.is_multiple_of(of_all) {
        return None;
    }
    let text = format!("{rows} rows cannot be divided into {microbatches} equal microbatches");
    let d = Diagnostic::new(Code::E0402, at, text).here(format!("{t}"));
    let d = match parts {
        1 => d,
        _ => d.note(format!(
            "each of the {parts} devices of `{}` has its rows of each microbatch",
            t.sharding.axes(0).join(", ")
        )),
    };
    Some(d.help(format!("the number of rows has to be a multiple of {of_all}")))
}

impl Cx<'_> {
    /// `dist.at(x, axis=, index=, mesh=)`: on the devices at one position of an axis alone; along other axes as it lies.
    pub fn at(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        let Some(given) = self.dist_args("dist.at", values, span) else { return error_at(span) };
        let mut given = given.into_iter();
        let mut next = || given.next().flatten();
        let (Some(x), Some(axis), Some(index), mesh) = (next(), next(), next(), next()) else { return error_at(span) };
        let Some(t) = self.tensor_of(&x, "dist.at") else { return error_at(span) };
        let Some(text) = self.axis_text(&axis) else { return error_at(span) };
        let Some(mesh) = self.mesh_for(&x, &t, mesh) else { return error_at(span) };
        let Some(size) = self.known_axis(&mesh, &text, axis.span) else { return error_at(span) };
        if let Some(p) = t.sharding.unfinished().filter(|p| p.1 == text) {
            let d = unfinished(&x, &t, p);
            return self.fail(d);
        }
        let known = self.symbolic(&index).and_then(|n| n.as_const()).and_then(|n| u64::try_from(n).ok());
        let Some(at) = known.filter(|n| *n < size || mesh.is_unknown()) else {
            let which =
                format!("`index` is the number of a position along `{text}`, from 0 to {}", size.saturating_sub(1));
            let d = Diagnostic::new(Code::E0401, index.span, which)
                .note("where a value lies is part of its type, which is checked before the program runs");
            return self.fail(d);
        };
        let to = placed(&t, &text, at, mesh);
        if to == t.sharding { x } else { layout(x, to, t, span) }
    }

    /// `dist.pipeline(stages, microbatches=, axis=, mesh=)`: a function that sends what it gets through all stages.
    pub fn pipeline(&mut self, args: &[Arg], span: Span) -> TExpr {
        let names = ["stages", "microbatches", "axis", "mesh"];
        let Some(given) = self.written("dist.pipeline", names, args) else { return error_at(span) };
        let [Some(stages), Some(microbatches), axis, mesh] = given else {
            let d = Diagnostic::new(Code::E0104, span, "a pipeline has stages and a number of microbatches")
                .help("write `dist.pipeline([first, second], microbatches=4, mesh=mesh)`");
            return self.fail(d);
        };
        let axis = match axis.map(|e| (&e.kind, e.span)) {
            None => "pp".into(),
            Some((ExprKind::Str(text), _)) => text.to_string(),
            Some((_, at)) => {
                return self.fail(Diagnostic::new(Code::E0403, at, "the axis must be a name that is written out here"));
            }
        };
        let Some(microbatches) = self.microbatches(microbatches) else { return error_at(span) };
        let mesh = match mesh.map(|e| self.expr(e)) {
            None => None,
            Some(value) => match self.mesh_arg(&value) {
                None => return error_at(span),
                known => known,
            },
        };
        let Some(all) = self.stage_functions(stages) else { return error_at(span) };
        let mut all = all.into_iter();
        let Some(first) = all.next() else {
            return self.fail(Diagnostic::new(Code::E0104, stages.span, "a pipeline has at least one stage"));
        };
        let Some(Target::File(home)) = self.names_of().imports(self.db).get(STAGES).cloned() else {
            return error_at(span);
        };
        let line = Line { microbatches, axis, mesh, home };
        self.derived(first, all.collect(), Derived::Pipeline(line), "dist.pipeline", span)
    }

    fn microbatches(&mut self, e: &Expr) -> Option<u64> {
        let known = self.known_int(e).filter(|n| (1..=MICROBATCHES_MAX).contains(n));
        if known.is_none() {
            let text = format!("the number of microbatches must be known here, from 1 to {MICROBATCHES_MAX}");
            let d = Diagnostic::new(Code::E0402, e.span, text)
                .note("each is written out before the program runs: what a device does, and when");
            self.report(d);
        }
        known.map(|n| n as u64)
    }

    /// The functions in a list or tuple that is written out, or in a tuple.
    fn stage_functions(&mut self, e: &Expr) -> Option<Vec<TExpr>> {
        let all = match &e.kind {
            ExprKind::List(items) | ExprKind::Tuple(items) => items.iter().map(|item| self.expr(item)).collect(),
            _ => {
                let value = self.expr(e);
                if matches!(value.ty, Ty::List(_)) {
                    let d = Diagnostic::new(Code::E0204, e.span, "a list of stages must be written out here")
                        .note(format!("this is `{}`, and how long it is only the run knows", value.ty))
                        .help("a tuple may be passed by name: `stages = (first, second)`");
                    self.report(d);
                    return None;
                }
                self.parts(value, "stages")?
            }
        };
        for f in &all {
            if matches!(f.ty, Ty::FnRef(_)) {
                continue;
            }
            if !f.ty.is_error() {
                let text = format!("a stage is a function, and this is `{}`", f.ty);
                let d = Diagnostic::new(Code::E0210, f.span, text);
                self.report(d.help("a function of one tensor: `lambda x: nn.mlp(layer, x)`"));
            }
            return None;
        }
        Some(all)
    }

    /// A call of what `dist.pipeline` gives: part after part of the rows goes through all stages, each at its position.
    pub fn pipelined(&mut self, line: &Line, stages: &[TExpr], args: Vec<Value>, span: Span) -> Option<TExpr> {
        let x = self
            .args_without_errors("the pipeline", &[Slot::plain("x", false)], args, span)?
            .into_iter()
            .flatten()
            .next()?;
        let t = self.tensor_of(&x, "dist.pipeline")?;
        let mesh = self.mesh_of(&x, &t, line.mesh.clone())?;
        let places = self.known_axis(&mesh, &line.axis, span)?;
        let count = stages.len() as u64;
        if count < places {
            let text = format!("{count} stages for {places} positions of `{}`", line.axis);
            let d = Diagnostic::new(Code::E0402, span, text).note(format!("the mesh is {mesh}"));
            self.report(d.help("each position has at least one stage: have fewer devices, or divide a stage"));
            return None;
        }
        self.has_rows(&x, &t)?;
        if let Some(d) = uneven(&t, line.microbatches, x.span) {
            self.report(d);
            return None;
        }
        let number = |n: u64| {
            let ty = Ty::Int(Some(Size::constant(n as i64)));
            TExpr { kind: TKind::Int(n as i64), ty, span }
        };
        let parts = vec![x, number(places), number(line.microbatches)];
        let parts = self.of_std(line.home, "_microbatched", parts, span)?;
        let parts = self.save("parts", parts);
        let mut done = vec![];
        for k in 0..line.microbatches {
            let mut h = self.of_std(line.home, "_microbatch", vec![parts.clone(), number(k)], span)?;
            for (i, stage) in stages.iter().enumerate() {
                if k == 0
                    && let Ty::Tensor(t) = &h.ty
                    && let Some(d) = self.rows_mixed(stage, &t.clone(), line.microbatches)
                {
                    self.report(d);
                    return None;
                }
                h = self.staged(stage, h, &line.axis, i as u64 * places / count, &mesh, span)?;
            }
            done.push(h);
        }
        let ty = Ty::List(Box::new(done.first()?.ty.clone()));
        let list = TExpr { kind: TKind::List(done), ty, span };
        let axis = tessera_grammar::ast::Name { text: "axis".into(), span };
        let args = vec![Value { name: None, value: list }, Value { name: Some(axis), value: number(1) }];
        let stacked = self.call_builtin_values(&"op.stack".into(), args, span, span);
        self.of_std(line.home, "_joined", vec![stacked], span)
    }

    /// What a stage gives for `x`, at a position of the axis.
    fn staged(
        &mut self,
        stage: &TExpr,
        x: TExpr,
        axis: &str,
        index: u64,
        mesh: &Arc<Mesh>,
        span: Span,
    ) -> Option<TExpr> {
        let t = self.tensor_of(&x, "a stage of the pipeline")?;
        let mesh = self.mesh_of(&x, &t, Some(mesh.clone()))?;
        let to = placed(&t, axis, index, mesh);
        let there = if to == t.sharding { x } else { layout(x, to, t, span) };
        let there = self.save("x", there);
        let Ty::FnRef(r) = stage.ty.clone() else { return None };
        let y = self.call_function(&r, Some(stage.clone()), vec![Value { name: None, value: there }], span);
        let y = self.save("y", y);
        let t = self.tensor_of(&y, "a stage of the pipeline")?;
        self.has_rows(&y, &t)?;
        Some(y)
    }

    /// E0207 for a number: a pipeline divides rows and joins them.
    fn has_rows(&mut self, at: &TExpr, t: &TensorType) -> Option<()> {
        if t.rank() > 0 {
            return Some(());
        }
        let d = Diagnostic::new(Code::E0207, at.span, "a pipeline goes over rows, and this is one number");
        self.report(d.here(t.to_string()).help("what is one number of all rows comes behind the pipeline"));
        None
    }

    /// A call of a function of the file that pipelines are made of.
    fn of_std(&mut self, home: FileId, name: &str, args: Vec<TExpr>, span: Span) -> Option<TExpr> {
        let Meaning::Def(item) = self.file_member(home, &Arc::from(name), span) else { return None };
        let f = self.def_value(item, span);
        let Ty::FnRef(r) = f.ty.clone() else { return None };
        let args = args.into_iter().map(|value| Value { name: None, value }).collect();
        let made = self.call_function(&r, Some(f), args, span);
        (!made.ty.is_error()).then_some(made)
    }
}
