//! Elements that stand in a wider dtype than their own (`uint16` in i32, say): what operators may do with them, and what
//! becomes of their results.

use crate::node::No;
use crate::standard::Schema;
use crate::value::{Tensor, Value};
use tessera_runtime::io::onnx::Held;

/// Operators that choose and order elements and leave them as they are.
const MOVES: &[&str] = &[
    "CastLike",
    "Compress",
    "Concat",
    "ConcatFromSequence",
    "DepthToSpace",
    "Expand",
    "Flatten",
    "Gather",
    "GatherElements",
    "GatherND",
    "Identity",
    "Optional",
    "OptionalGetElement",
    "Reshape",
    "ScatterElements",
    "ScatterND",
    "SequenceAt",
    "SequenceConstruct",
    "SequenceEmpty",
    "SequenceErase",
    "SequenceInsert",
    "Slice",
    "SpaceToDepth",
    "Split",
    "SplitToSequence",
    "Squeeze",
    "Tile",
    "Transpose",
    "Trilu",
    "Unsqueeze",
    "Where",
];

/// Operators whose results have the low bits of those of wider elements.
const WRAPS: &[&str] = &["Add", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Mul", "Neg", "Sub", "Sum"];

/// Operators that ask how large elements are, which those of 64 bits do not tell here.
const ORDERS: &[&str] = &[
    "ArgMax",
    "ArgMin",
    "BitShift",
    "Clip",
    "Div",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Max",
    "Min",
    "Mod",
    "Pow",
    "ReduceMax",
    "ReduceMin",
    "TopK",
    "Unique",
];

/// Operators that give something else, or say themselves what.
const GIVES: &[&str] = &[
    "Cast",
    "DequantizeLinear",
    "Equal",
    "NonZero",
    "OptionalHasElement",
    "QuantizeLinear",
    "SequenceLength",
    "Shape",
    "Size",
    "com.microsoft.DequantizeLinear",
    "com.microsoft.QuantizeLinear",
];

/// Whether an operator may have arguments of such elements.
///
/// # Errors
/// Why it may not.
pub fn checked(op: &str, arguments: &[Held]) -> Result<(), No> {
    let Some(held) = arguments.iter().copied().find(|h| *h != Held::Own) else { return Ok(()) };
    let name = held.name();
    match op {
        _ if MOVES.contains(&op) || GIVES.contains(&op) => Ok(()),
        _ if matches!(held, Held::U4 | Held::I4 | Held::U2 | Held::I2) => {
            Err(format!("its elements are {name}, which are supported where they are moved, converted and scaled"))
        }
        _ if WRAPS.contains(&op) || (ORDERS.contains(&op) && held != Held::U64) => Ok(()),
        _ if held == Held::U64 => {
            Err(format!("its elements are {name}, which stand here as i64: how large they are is not told"))
        }
        _ => Err(format!("its elements are {name}, which it is not supported for")),
    }
}

/// What the elements of a result are by those of the arguments, where the standard gives both one type.
pub fn of_result(op: &str, schema: &Schema, i: usize, arguments: &[Held]) -> Held {
    if GIVES.contains(&op) {
        return Held::Own;
    }
    let first = || arguments.iter().copied().find(|h| *h != Held::Own).unwrap_or_default();
    if op.contains("Sequence") || op.contains("Optional") {
        return first();
    }
    let Some(ty) = Schema::at(&schema.outputs, i).map(|o| o.ty) else { return Held::Own };
    let same = |(at, held): (usize, &Held)| {
        let one = Schema::at(&schema.inputs, at).is_some_and(|p| p.ty == ty);
        one.then_some(*held).filter(|h| *h != Held::Own)
    };
    arguments.iter().enumerate().find_map(same).unwrap_or_default()
}

/// Whether the results of an operator may have more bits than the elements of their type.
pub fn wraps(op: &str) -> bool {
    WRAPS.contains(&op) || matches!(op, "BitShift" | "Pow")
}

/// The elements of an expression without what they have more than those of this type.
pub fn cut(text: &str, held: Held) -> String {
    match held {
        Held::Own | Held::U64 => text.to_owned(),
        Held::U16 => format!("op.bit_and({text}, 65535)"),
        Held::U32 => format!("op.bit_and({text}, 4294967295)"),
        Held::U4 => format!("op.bit_and({text}, 15)"),
        Held::I4 => format!("(op.bit_xor(op.bit_and({text}, 15), 8) - 8)"),
        Held::U2 => format!("op.bit_and({text}, 3)"),
        Held::I2 => format!("(op.bit_xor(op.bit_and({text}, 3), 2) - 2)"),
    }
}

/// The value with what its elements are.
pub fn marked<'m>(value: Value<'m>, held: Held) -> Value<'m> {
    match value {
        Value::Tensor(t) => Value::Tensor(Tensor { held, ..t }),
        Value::List(all) => Value::List(all.into_iter().map(|v| marked(v, held)).collect()),
        other => other,
    }
}
