//! Collectives on whole tensors, which change how a tensor lies and never its value.

use super::args::{Slot, Value};
use super::cx::{Cx, error_at};
use super::meshes::layout;
use super::per_device_collectives::Over;
use tessera_base::{Code, Diagnostic, Sharding, Span, TensorType};
use tessera_core::ir::*;
use tessera_core::ty::Ty;

impl Cx<'_> {
    pub fn collective(&mut self, name: &str, values: Vec<Value>, span: Span, name_span: Span) -> TExpr {
        if self.local.is_some() {
            return self.collective_of_blocks(name, values, span, name_span);
        }
        if matches!(name, "permute" | "send" | "recv") {
            return self.only_per_device(name, name_span);
        }
        let full = format!("dist.collective.{name}");
        // The layout says along which dim blocks lie, and what is everywhere has no source.
        let said = |s: &Slot| matches!((name, &*s.name), ("all_gather", "dim") | ("broadcast", "source"));
        let slots: Vec<Slot> = Slot::built_in(&full).into_iter().filter(|s| !said(s)).collect();
        let Some(given) = self.args_without_errors(&full, &slots, values, span) else { return error_at(span) };
        let mut given = given.into_iter();
        let (Some(Some(x)), Some(Some(axis))) = (given.next(), given.next()) else { return error_at(span) };
        let rest: Vec<Option<TExpr>> = given.collect();
        let Some(axes) = self.axes_of(name, &axis) else { return error_at(span) };
        let mut value = x;
        for axis in axes {
            let over = Over { name, full: &full, rest: &rest, span, name_span };
            value = self.layout_collective(&over, value, axis);
            if value.ty.is_error() {
                break;
            }
        }
        value
    }

    /// A collective of a whole tensor along one axis.
    fn layout_collective(&mut self, over: &Over, x: TExpr, (text, axis_span): (String, Span)) -> TExpr {
        let Over { name, full, rest: dims, span, name_span } = *over;
        let Some(t) = self.tensor_of(&x, full) else { return error_at(span) };
        let Some(mesh) = t.sharding.mesh.clone() else {
            return self.redundant(name, x, "lies on one device", None, (name_span, span));
        };
        if self.known_axis(&mesh, &text, axis_span).is_none() {
            return error_at(span);
        }
        let mut to = t.sharding.clone();
        to.dims.resize(t.rank(), vec![]);
        let position = t.sharding.position(&text);
        let complete = t.sharding.partial_over(&text).is_none() || position.is_some();
        to.partial.retain(|(_, a)| *a != text);
        // What has nothing to do for a value at one position: it looks for a way to the other ones.
        let whole = match position {
            Some(at) => format!("lies at {at} of `{text}` alone, in full"),
            None => format!("is complete over `{text}`"),
        };
        let all = position.map(|_| format!("bring it to all: `dist.collective.broadcast(x, axis=\"{text}\")`"));
        let join = |to: &mut Sharding| to.dims.iter_mut().for_each(|axes| axes.retain(|a| *a != text));
        if let (false, "all_reduce", Some(op)) = (complete, name, dims.first().and_then(Option::as_ref)) {
            let Some(op) = self.reduces(Some(op)) else { return error_at(span) };
            if let Some(monoid) = t.sharding.partial_over(&text).filter(|m| m.name() != op.name()) {
                let said = format!("`op=\"{}\"` of parts of another kind: this is `{monoid}@{text}`", op.name());
                let d = Diagnostic::new(Code::E0411, name_span, said).with_label(x.span, t.to_string());
                let help = format!("leave `op=` out: parts of `{monoid}@{text}` are put together as they were made");
                return self.fail(d.note("a collective never changes the value of a whole tensor").help(help));
            }
        }
        match name {
            "all_reduce" | "reduce_scatter" if complete => {
                return self.redundant(name, x, &whole, all, (name_span, span));
            }
            "all_reduce" => {}
            "reduce_scatter" => {
                let Some(dim) = self.free_dim(&t, dims.first(), span) else { return error_at(span) };
                to.dims[dim].push(text);
            }
            "all_to_all" => {
                let (Some(from), Some(into)) = (self.dim(&t, dims.first()), self.dim(&t, dims.get(1))) else {
                    return error_at(span);
                };
                if t.sharding.dim_of(&text) != Some(from) {
                    let d = Diagnostic::new(Code::E0407, span, format!("dim {from} is not split over `{text}`"))
                        .with_label(x.span, t.to_string());
                    return self.fail(match t.sharding.dim_of(&text) {
                        Some(dim) => d.help(format!("dim {dim} is: `from_dim={dim}`")),
                        None => d.help_about(
                            "split a dim that every device has in full with `dist.shard({x}, spec)`",
                            &[("x", x.span)],
                        ),
                    });
                }
                join(&mut to);
                to.dims[into].push(text);
            }
            _ if !complete => {
                let d = Diagnostic::new(
                    Code::E0405,
                    x.span,
                    format!("`{name}` takes a whole value, and this is partial over `{text}`"),
                )
                .here(t.to_string())
                .help_about(
                    &format!("complete it: `dist.collective.all_reduce({{x}}, axis=\"{text}\")`"),
                    &[("x", x.span)],
                );
                return self.fail(d);
            }
            "broadcast" if position.is_some() => {}
            _ if position.is_some() => {
                let text = format!("`{name}` joins parts, and this lies in full at one position of `{text}`");
                let d = Diagnostic::new(Code::E0407, span, text).with_label(x.span, t.to_string());
                return self.fail(all.into_iter().fold(d, |d, help| d.help(help)));
            }
            _ if t.sharding.dim_of(&text).is_none() => {
                let why = format!("is the same all along `{text}`");
                return self.redundant(name, x, &why, None, (name_span, span));
            }
            _ => join(&mut to),
        }
        layout(x, to.normal(t.rank()), t, span)
    }

    /// W0401, with what may have been meant instead.
    fn redundant(&mut self, name: &str, x: TExpr, why: &str, meant: Option<String>, at: (Span, Span)) -> TExpr {
        let (name_span, span) = at;
        let known = match &x.ty {
            // The argument of another call may lie on a mesh.
            Ty::Tensor(t) => t.sharding.mesh.as_ref().map_or(self.func.is_none(), |m| !m.is_unknown()),
            _ => true,
        };
        if !known {
            return TExpr { span, ..x };
        }
        let d = Diagnostic::new(Code::W0401, name_span, format!("this `{name}` has nothing to do"))
            .with_label(x.span, format!("{} {why}", x.ty))
            .note("the value is unchanged; in per-device code it would add unrelated blocks")
            .help("remove the call");
        self.report(meant.into_iter().fold(d, |d, help| d.help(help)));
        TExpr { span, ..x }
    }

    pub fn dim(&mut self, t: &TensorType, e: Option<&Option<TExpr>>) -> Option<usize> {
        let e = e?.as_ref()?;
        let n = match &e.ty {
            Ty::Int(Some(n)) => n.as_const(),
            _ => None,
        };
        let rank = t.rank() as i64;
        let dim = n.map(|n| if n < 0 { n + rank } else { n }).filter(|n| (0..rank).contains(n));
        if dim.is_none() {
            self.error(Code::E0407, e.span, format!("a dim of {t} is a number from 0 to {} here", rank - 1));
        }
        dim.map(|n| n as usize)
    }

    /// The dim that a `reduce_scatter` splits: the one named, or the first that is not split yet.
    fn free_dim(&mut self, t: &TensorType, named: Option<&Option<TExpr>>, span: Span) -> Option<usize> {
        if let Some(Some(_)) = named {
            return self.dim(t, named);
        }
        let free = (0..t.rank()).find(|&i| t.sharding.axes(i).is_empty());
        if free.is_none() {
            let d = Diagnostic::new(Code::E0407, span, format!("{t} has no dim that can be split"))
                .help("`all_reduce` gives every device the whole value");
            self.report(d);
        }
        free
    }
}
