//! What functions are handed where something is made of them: a derivative, many calls at once, the turns of a loop.

use std::sync::Arc;
use tessera_base::{Sharding, TensorType};
use tessera_core::ir::{Step, TFunction};
use tessera_core::ty::{StructTy, Ty};

/// What one turn of a loop is handed of what the loop goes over.
pub fn row(ty: &Ty) -> Ty {
    without(ty, 0)
}

/// The types of the arguments of a function where those of what is made of it are these; `None` for what each device does with
/// its blocks.
pub fn behind(f: &TFunction, args: Vec<Ty>) -> Option<Vec<Ty>> {
    let TFunction::Derived { step, of, bound } = f else { return Some(args) };
    let inner = match step {
        Step::Grad(_) | Step::Checkpoint => args,
        // As many tangents follow.
        Step::Jvp => args[..args.len() / 2].to_vec(),
        Step::Pullback(_) => bound.iter().map(|e| e.ty.clone()).collect(),
        Step::Vmap(axes, _) => {
            let of_one = |(ty, axis): (&Ty, &Option<i64>)| axis.map_or_else(|| ty.clone(), |axis| without(ty, axis));
            args.iter().zip(axes).map(of_one).collect()
        }
        Step::Local(_) => return None,
    };
    behind(of, inner)
}

/// How programs call what is made of a function.
pub fn name_of(step: &Step) -> &'static str {
    match step {
        Step::Grad(g) if g.value => "autodiff.value_and_grad",
        Step::Grad(_) => "autodiff.grad",
        Step::Jvp => "autodiff.jvp",
        Step::Pullback(_) => "autodiff.vjp",
        Step::Checkpoint => "autodiff.checkpoint",
        Step::Vmap(..) => "autodiff.vmap",
        Step::Local(_) => "dist.local",
    }
}

/// The tensors of a type without one dim.
fn without(ty: &Ty, axis: i64) -> Ty {
    let fields = |fields: &[(Arc<str>, Ty)]| fields.iter().map(|(n, t)| (n.clone(), without(t, axis))).collect();
    match ty {
        Ty::Tensor(t) => Ty::Tensor(without_dim(t, axis)),
        Ty::Tuple(parts) => Ty::Tuple(parts.iter().map(|t| without(t, axis)).collect()),
        Ty::Struct(s) => Ty::Struct(Arc::new(StructTy { fields: fields(&s.fields), ..StructTy::clone(s) })),
        other => other.clone(),
    }
}

fn without_dim(t: &TensorType, axis: i64) -> TensorType {
    let at = if axis < 0 { axis + t.rank() as i64 } else { axis };
    let Some(at) = usize::try_from(at).ok().filter(|at| *at < t.rank()) else { return t.clone() };
    let (mut shape, mut dims) = (t.shape.clone(), t.sharding.dims.clone());
    shape.remove(at);
    if at < dims.len() {
        dims.remove(at);
    }
    TensorType { shape, dtype: t.dtype, sharding: Sharding { dims, ..t.sharding.clone() } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_base::{DType, Size};

    #[test]
    fn one_of_many_lacks_a_dim() {
        let of =
            |sizes: &[i64]| Ty::Tensor(TensorType::new(sizes.iter().map(|n| Size::constant(*n)).collect(), DType::F32));
        let pair = Ty::Tuple(vec![of(&[2, 3, 4]), Ty::Float]);
        assert_eq!(row(&pair), Ty::Tuple(vec![of(&[3, 4]), Ty::Float]));
        assert_eq!(without(&of(&[2, 3, 4]), -1), of(&[2, 3]));
        assert_eq!(without(&of(&[]), 0), of(&[]));
    }
}
