//! How the dim lies that `vmap` goes over.

use super::args::Value;
use super::cx::Cx;
use tessera_base::{Code, Diagnostic, Own, Sharding, Span, TensorType};
use tessera_core::layouts;
use tessera_core::ty::Ty;

/// E0404 where what a function gives for one row is split over the devices that have different rows.
pub fn crossed(ret: &Ty, front: &Sharding, span: Span) -> Option<Diagnostic> {
    let alone = |t: &TensorType, axis: &String| t.sharding.own(axis).is_some_and(Own::is_alone);
    let uses = |t: &TensorType, axis: &String| {
        t.sharding.dim_of(axis).is_some() || t.sharding.partial_over(axis).is_some() && !alone(t, axis)
    };
    let found = |t: TensorType| front.axes(0).iter().find(|axis| uses(&t, axis)).map(|axis| (axis.clone(), t.clone()));
    let (axis, t) = layouts::tensors(ret).into_iter().find_map(found)?;
    let d = Diagnostic::new(
        Code::E0404,
        span,
        format!("`{axis}` splits what `autodiff.vmap` goes over, and each result too"),
    )
    .note(format!("for one row the function gives {t}"))
    .note("along one axis of the mesh only one dim of the result can be split");
    Some(d.help(format!("have what the function uses in full: `dist.collective.all_gather(x, axis=\"{axis}\")`")))
}

impl Cx<'_> {
    /// How the dim lies that `vmap` goes over, as dim 0 of a tensor. E0404 where arguments do not
    /// agree.
    pub fn fronts(&mut self, args: &[Value], on: &dyn Fn(usize) -> Option<i64>) -> Option<Sharding> {
        let mut front = Sharding::default();
        for (i, arg) in args.iter().enumerate() {
            let Some(axis) = on(i) else { continue };
            for t in layouts::tensors(&arg.value.ty) {
                let at = usize::try_from(if axis < 0 { axis + t.rank() as i64 } else { axis }).unwrap_or(usize::MAX);
                let mesh = t.sharding.mesh.clone();
                let mut axes = t.sharding.axes(at).to_vec();
                axes.extend(t.sharding.owns().filter(|(own, _)| *own == Own::Block(at)).map(|(_, axis)| axis.clone()));
                let own = Sharding { dims: vec![axes], partial: vec![], mesh }.normal(1);
                front = match front.settled(&own) {
                    Some(both) => both,
                    None => {
                        let text =
                            format!("the dim that `autodiff.vmap` goes over is split in another way than before: {t}");
                        let d = Diagnostic::new(Code::E0404, arg.value.span, text)
                            .note(format!("before, it was {}", front.describe(1)))
                            .help("lay one of them out like the other: `dist.shard(x, spec)`");
                        self.report(d);
                        return None;
                    }
                };
            }
        }
        Some(front)
    }

    /// Per-device code: a type that `vmap` takes apart, as each row has it. Rows of a block are nobody's own part.
    pub fn without_rows(&self, ty: &Ty, front: &Sharding) -> Ty {
        let Some(local) = &self.local else { return ty.clone() };
        let without = |s: Sharding, axis: &String| match s.own(axis) {
            Some(Own::Block(_)) => s.with_own(axis, None, &local.mesh),
            _ => s,
        };
        layouts::with_tensors(ty, &mut |t| TensorType {
            sharding: front.axes(0).iter().fold(t.sharding.clone(), without),
            ..t.clone()
        })
    }

    /// Per-device code: what `vmap` gives, of which the dim that it went over is a block.
    pub fn with_rows(&self, ty: Ty) -> Ty {
        let Some(local) = &self.local else { return ty };
        layouts::with_tensors(&ty, &mut |t| {
            let dims = t.sharding.dims.iter().enumerate().flat_map(|(d, axes)| axes.iter().map(move |axis| (d, axis)));
            let block = |s: Sharding, (d, axis): (usize, &String)| match s.own(axis) {
                None | Some(Own::Zero) => s.with_own(axis, Some(Own::Block(d)), &local.mesh),
                Some(_) => s,
            };
            let parts = Sharding { dims: vec![], ..t.sharding.clone() };
            TensorType { sharding: dims.fold(parts, block), ..t.clone() }
        })
    }
}
