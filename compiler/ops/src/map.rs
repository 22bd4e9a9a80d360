//! The table of elementwise functions. One word here, one file in `map/`.

use crate::scalar::{Kind, Val, Writer};
use tessera_base::DType;

/// Which element types a function takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// Every float type.
    Float,
    /// Floats and integers.
    Number,
    /// Integers.
    Int,
    /// Integers and bool.
    IntOrBool,
    Bool,
    /// All but complex.
    Any,
}

/// The element type of the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gives {
    /// That of the operands (of the last operand for `where`).
    Same,
    Bool,
}

/// Everything the compiler knows about one elementwise function.
pub struct MapDef {
    pub name: &'static str,
    /// First sentence ends with a full stop.
    pub doc: &'static str,
    pub arity: usize,
    pub takes: Takes,
    pub gives: Gives,
    /// Writes the meaning for operands of the kinds given (all of one kind; for `where` the
    /// first is Bool). Narrow floats compute in F32 and round once afterwards.
    pub body: fn(&mut Writer, &[Val]) -> Val,
    /// Largest error in units in the last place against the exact value, f32.
    pub ulps: f64,
    /// Relative cost per element; an addition is 1.
    pub cost: u32,
}

/// The kind in which an element type computes.
pub fn kind_of(dtype: DType) -> Option<Kind> {
    Some(match dtype {
        DType::F64 => Kind::F64,
        DType::F32 | DType::Tf32 | DType::Bf16 | DType::F16 | DType::F8E4M3 | DType::F8E5M2 => Kind::F32,
        DType::I64 => Kind::I64,
        DType::I32 => Kind::I32,
        DType::I16 => Kind::I16,
        DType::I8 => Kind::I8,
        DType::U8 => Kind::U8,
        DType::Bool => Kind::Bool,
        DType::C64 => return None,
    })
}

macro_rules! table {
    ($($name:ident $file:ident;)*) => {
        $(mod $file;)*
        /// An elementwise function.
        #[allow(non_camel_case_types, reason = "the variant is the operator's word in every place")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum MapOp { $($name),* }

        impl MapOp {
            pub const ALL: &[MapOp] = &[$(MapOp::$name),*];

            pub fn def(self) -> &'static MapDef {
                match self { $(MapOp::$name => &$file::DEF),* }
            }

            pub fn name(self) -> &'static str {
                self.def().name
            }

            pub fn parse(name: &str) -> Option<MapOp> {
                MapOp::ALL.iter().copied().find(|op| op.name() == name)
            }
        }
    };
}

table! {
    add add;
    exp exp;
}
