//! Element types in typing rules: joins, weak scalars, what an operator takes.

use super::Operand;
use crate::map::Takes;
use crate::surface::{OpError, Weak};
use tessera_base::{Code, DType, TensorType};

/// The natural element type of a Python scalar.
pub fn weak_dtype(weak: Weak) -> DType {
    match weak {
        Weak::Bool => DType::Bool,
        Weak::Int => DType::I64,
        Weak::Float => DType::F32,
    }
}

/// What a tensor of `dtype` becomes beside a Python scalar.
fn meet(dtype: DType, weak: Weak) -> DType {
    match weak {
        Weak::Bool => dtype,
        Weak::Int if dtype == DType::Bool => DType::I64,
        Weak::Float if dtype == DType::Bool || dtype.is_int() => DType::F32,
        _ => dtype,
    }
}

/// The element type in which operands meet; `None` where an operand's is open.
///
/// Tensors widen where that is exact; Python scalars are weak.
///
/// # Errors
/// E0206 where two tensors have types that do not widen into each other.
pub fn join(operands: &[(usize, Operand)]) -> Result<Option<DType>, OpError> {
    let tensors: Vec<(usize, &TensorType)> = operands
        .iter()
        .filter_map(|(i, o)| match o {
            Operand::Tensor(t) => Some((*i, *t)),
            Operand::Weak(_) => None,
        })
        .collect();
    let weak = operands.iter().filter_map(|(_, o)| match o {
        Operand::Weak(w) => Some(*w),
        Operand::Tensor(_) => None,
    });
    if tensors.is_empty() {
        // Scalars alone: the widest of their own types.
        let rank = |w: &Weak| *w as u8;
        return Ok(weak.max_by_key(rank).map(weak_dtype));
    }
    Ok(join_tensors(&tensors)?.map(|d| weak.fold(d, meet)))
}

/// The type that all tensors widen to; `None` where one is open.
pub fn join_tensors(tensors: &[(usize, &TensorType)]) -> Result<Option<DType>, OpError> {
    let mut known: Option<(usize, &TensorType, DType)> = None;
    for &(i, t) in tensors {
        let Some(d) = t.dtype else { continue };
        known = Some(match known {
            None => (i, t, d),
            Some((j, u, have)) => match DType::join(have, d) {
                Some(both) if both == have => (j, u, both),
                Some(both) => (i, t, both),
                None => return Err(no_join((j, u, have), (i, t, d))),
            },
        });
    }
    let open = tensors.iter().any(|(_, t)| t.dtype.is_none());
    Ok(known.map(|(.., d)| d).filter(|_| !open))
}

fn no_join(a: (usize, &TensorType, DType), b: (usize, &TensorType, DType)) -> OpError {
    let ((i, t, x), (j, u, y)) = (a, b);
    let error = OpError::new(Code::E0206, format!("neither {x} nor {y} holds every value of the other"))
        .arg(i, t.to_string())
        .arg(j, u.to_string())
        .note("tensors of different dtypes meet only where the conversion is exact");
    let to = [DType::F32, DType::I16, DType::I32, DType::I64, DType::F64, DType::C64]
        .into_iter()
        .find(|&d| x.widens_to(d) && y.widens_to(d));
    match (x.is_int(), y.is_int(), to) {
        (true, false, _) if y.is_float() => error.help(format!("convert the {x} tensor: `.to({y})`")),
        (false, true, _) if x.is_float() => error.help(format!("convert the {y} tensor: `.to({x})`")),
        (_, _, Some(d)) => error.help(format!("convert one of them: `.to({d})`")),
        _ => error.help(format!("convert one of them: `.to({x})` or `.to({y})`")),
    }
}

/// The operand type of an elementwise function for operands that meet in `dtype`. Integers
/// become f32 where the function is one of real numbers.
///
/// # Errors
/// E0205 for a kind of type that the function does not take, E0690 for complex numbers.
pub fn operand_dtype(name: &str, takes: Takes, dtype: DType, operands: &[(usize, Operand)]) -> Result<DType, OpError> {
    let refuse = |code: Code, text: String, help: &str| {
        let mut error = OpError::new(code, text);
        for (i, o) in operands {
            error = error.arg(*i, o.label());
        }
        Err(if help.is_empty() { error } else { error.help(help) })
    };
    if dtype.is_complex() {
        return refuse(Code::E0690, format!("`{name}` of complex numbers is not supported yet"), "");
    }
    let (float, bool) = (dtype.is_float(), dtype == DType::Bool);
    match takes {
        Takes::Any => Ok(dtype),
        Takes::Float => Ok(if float { dtype } else { DType::F32 }),
        Takes::Bool => Ok(DType::Bool),
        Takes::Number if bool => refuse(
            Code::E0205,
            format!("`{name}` is arithmetic and takes no bool"),
            "count with ints: `.to(i64)`, or use `&`, `|`, `^`",
        ),
        Takes::Number => Ok(dtype),
        Takes::Int | Takes::IntOrBool if float => refuse(
            Code::E0205,
            format!("`{name}` works on bits and takes ints, not {dtype}"),
            "convert the operands: `.to(i64)`",
        ),
        Takes::Int if bool => {
            refuse(Code::E0205, format!("`{name}` takes ints, not bool"), "convert the operands: `.to(i64)`")
        }
        Takes::Int | Takes::IntOrBool => Ok(dtype),
    }
}

/// The type in which an operator of real numbers works on this tensor: its own float type, f32 for ints and bool.
pub fn as_float(name: &str, t: &TensorType, i: usize) -> Result<Option<DType>, OpError> {
    t.dtype.map(|d| operand_dtype(name, Takes::Float, d, &[(i, Operand::Tensor(t))])).transpose()
}
