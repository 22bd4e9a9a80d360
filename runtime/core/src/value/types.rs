//! The types of values.

use indexmap::IndexSet;
use std::sync::Arc;

/// A type as values need it: by position in a [`TypeTable`].
pub type TypeId = u32;

/// The runtime's view of a type; the mirror of the compiler's host types.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum TypeInfo {
    Int,
    Float,
    Bool,
    Str,
    None,
    DType,
    Tensor,
    List(TypeId),
    /// Has one value: how it prints.
    Known(Arc<str>),
    /// Keys are strings, ints or bools.
    Dict(TypeId, TypeId),
    Tuple(Vec<TypeId>),
    Struct {
        name: Arc<str>,
        fields: Vec<(Arc<str>, TypeId)>,
    },
    /// One particular function: how it prints, and the values that it captures, which lie as those of a tuple do.
    Function {
        shown: Arc<str>,
        captures: Vec<TypeId>,
    },
    Fn {
        params: Vec<TypeId>,
        ret: TypeId,
    },
}

impl TypeInfo {
    /// Whether words of this type are addresses of counted objects.
    pub fn counted(&self) -> bool {
        use TypeInfo::*;
        !matches!(self, Int | Float | Bool | None | Known(_) | DType)
    }
}

/// Every type of the process, each once. The scalar types have fixed positions.
pub struct TypeTable {
    infos: IndexSet<TypeInfo>,
}

impl Default for TypeTable {
    fn default() -> Self {
        use TypeInfo::*;
        TypeTable { infos: IndexSet::from([Int, Float, Bool, Str, None, DType, Tensor]) }
    }
}

impl TypeTable {
    pub const INT: TypeId = 0;
    pub const FLOAT: TypeId = 1;
    pub const BOOL: TypeId = 2;
    pub const STR: TypeId = 3;
    pub const NONE: TypeId = 4;
    pub const DTYPE: TypeId = 5;
    pub const TENSOR: TypeId = 6;

    pub fn add(&mut self, info: TypeInfo) -> TypeId {
        self.infos.insert_full(info).0 as TypeId
    }

    /// The type at a position; `None` for one that was never added.
    pub fn get(&self, id: TypeId) -> &TypeInfo {
        self.infos.get_index(id as usize).unwrap_or(&TypeInfo::None)
    }

    pub fn counted(&self, id: TypeId) -> bool {
        self.get(id).counted()
    }

    /// The types of a record's fields, in order.
    pub fn field(&self, record: TypeId, index: usize) -> TypeId {
        match self.get(record) {
            TypeInfo::Tuple(items) | TypeInfo::Function { captures: items, .. } => {
                items.get(index).copied().unwrap_or(Self::NONE)
            }
            TypeInfo::Struct { fields, .. } => fields.get(index).map_or(Self::NONE, |f| f.1),
            _ => Self::NONE,
        }
    }
}
