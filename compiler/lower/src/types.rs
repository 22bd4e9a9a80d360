//! Types of the host program: sizes and element types erased, each type once.

use indexmap::IndexSet;
use tessera_core::ty::{FnRefTy, StructTy, Ty};
use tessera_ir::host::{HostType, TypeId};

/// The table of host types.
#[derive(Default)]
pub struct Types {
    table: IndexSet<HostType>,
}

impl Types {
    pub fn intern(&mut self, ty: HostType) -> TypeId {
        TypeId(self.table.insert_full(ty).0 as u32)
    }

    pub fn get(&self, id: TypeId) -> &HostType {
        // An id only comes from `intern`.
        &self.table[id.0 as usize]
    }

    pub fn into_table(self) -> Vec<HostType> {
        self.table.into_iter().collect()
    }

    /// The host type of a type. A function value of singleton type is the tuple of its captures.
    pub fn erase(&mut self, ty: &Ty) -> TypeId {
        let host = match ty {
            Ty::Int(_) => HostType::Int,
            Ty::Float => HostType::Float,
            Ty::Bool => HostType::Bool,
            Ty::Str => HostType::Str,
            Ty::None | Ty::Unknown | Ty::Never | Ty::Error => HostType::None,
            Ty::Mesh(_) | Ty::ShardSpec(_) => HostType::Known(ty.to_string().into()),
            Ty::DType(_) => HostType::DType,
            Ty::Tensor(_) | Ty::TensorPattern(_) | Ty::AnyTensor => HostType::Tensor,
            Ty::List(t) => HostType::List(self.erase(t)),
            Ty::Dict(k, v) => HostType::Dict(self.erase(k), self.erase(v)),
            Ty::Tuple(ts) => HostType::Tuple(ts.iter().map(|t| self.erase(t)).collect()),
            Ty::Struct(s) => HostType::Struct {
                name: s.name.clone(),
                fields: s.fields.iter().map(|(n, t)| (n.clone(), self.erase(t))).collect(),
            },
            Ty::FnRef(r) => HostType::Function {
                shown: r.printed().into(),
                captures: r.captures.iter().map(|(_, t)| self.erase(t)).collect(),
            },
            Ty::Fn(ps, r) => HostType::Fn { params: ps.iter().map(|t| self.erase(t)).collect(), ret: self.erase(r) },
        };
        self.intern(host)
    }
}

/// Whether values of the type hold tensors.
pub fn has_tensor(ty: &Ty) -> bool {
    match ty {
        Ty::Tensor(_) | Ty::TensorPattern(_) | Ty::AnyTensor => true,
        Ty::List(t) => has_tensor(t),
        Ty::Dict(k, v) => has_tensor(k) || has_tensor(v),
        Ty::Tuple(ts) => ts.iter().any(has_tensor),
        Ty::Struct(s) => struct_has_tensor(s),
        Ty::FnRef(r) => r.captures.iter().any(|(_, t)| has_tensor(t)),
        _ => false,
    }
}

fn struct_has_tensor(s: &StructTy) -> bool {
    s.fields.iter().any(|(_, t)| has_tensor(t))
}

/// Whether values of the type may pass into a region and out of it.
pub fn is_regional(ty: &Ty) -> bool {
    match ty {
        Ty::Int(_) | Ty::Float | Ty::Bool | Ty::Str | Ty::None | Ty::DType(_) => true,
        Ty::Tensor(_) | Ty::TensorPattern(_) | Ty::AnyTensor | Ty::Fn(..) => true,
        Ty::List(t) => matches!(**t, Ty::Unknown) || is_regional(t),
        Ty::Dict(k, v) => is_regional(k) && is_regional(v),
        Ty::Tuple(ts) => ts.iter().all(is_regional),
        Ty::Struct(s) => s.fields.iter().all(|(_, t)| is_regional(t)),
        Ty::FnRef(r) => fn_is_regional(r),
        Ty::Mesh(_) | Ty::ShardSpec(_) | Ty::Unknown | Ty::Never | Ty::Error => false,
    }
}

/// Whether values of the type hold closure objects, which only host code makes.
pub fn has_closure(ty: &Ty) -> bool {
    match ty {
        Ty::Fn(..) => true,
        Ty::List(t) | Ty::Dict(_, t) => has_closure(t),
        Ty::Tuple(ts) => ts.iter().any(has_closure),
        Ty::Struct(s) => s.fields.iter().any(|(_, t)| has_closure(t)),
        Ty::FnRef(r) => r.captures.iter().any(|(_, t)| has_closure(t)),
        _ => false,
    }
}

fn fn_is_regional(r: &FnRefTy) -> bool {
    r.captures.iter().all(|(_, t)| is_regional(t))
}

/// Types whose values are words without a heap object.
pub fn is_plain(ty: &Ty) -> bool {
    matches!(ty, Ty::Int(_) | Ty::Float | Ty::Bool | Ty::None | Ty::DType(_) | Ty::Never)
}
