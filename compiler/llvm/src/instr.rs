//! LLVM's instruction builder with the few things kernels need, for scalars and vectors alike.
//!
//! Values and types are plain handles of one context that lives as long as the [`Builder`].
//! No fast-math flag is ever set.

use crate::dialect::Dialect;
use crate::group::Group;
use inkwell::context::Context;
use inkwell::module::Module;
use llvm_sys::LLVMInlineAsmDialect;
use llvm_sys::LLVMIntPredicate;
use llvm_sys::LLVMRealPredicate;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use std::ffi::CString;
use std::mem::ManuallyDrop;
use tessera_ops::scalar::Kind;

pub use llvm_sys::LLVMIntPredicate as IntPred;
pub use llvm_sys::LLVMRealPredicate as RealPred;

/// A value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct V(pub LLVMValueRef);
/// A type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct T(pub LLVMTypeRef);
/// A basic block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Block(pub LLVMBasicBlockRef);

const NAMELESS: *const std::ffi::c_char = c"".as_ptr();

/// Memory that pointers of a GPU lead to, as LLVM numbers it for NVPTX and AMDGPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressSpace {
    Global = 1,
    Shared = 3,
}

/// One module with one function under construction.
pub struct Builder {
    context: LLVMContextRef,
    module: LLVMModuleRef,
    raw: LLVMBuilderRef,
    pub function: LLVMValueRef,
    /// The threads that are the lanes of a value: then a thread has every so manieth of them, mostly one.
    pub group: Option<Group>,
    /// Owns `context`; the last field, so that it goes last.
    _context: Context,
}

impl Drop for Builder {
    fn drop(&mut self) {
        // SAFETY: made by `new`; the context is still there.
        unsafe {
            LLVMDisposeBuilder(self.raw);
            LLVMDisposeModule(self.module);
        }
    }
}

macro_rules! binary {
    ($($name:ident $f:ident;)*) => { $(
        pub fn $name(&self, a: V, b: V) -> V {
            // SAFETY: both are values of this module and of one type.
            V(unsafe { $f(self.raw, a.0, b.0, NAMELESS) })
        }
    )* };
}

macro_rules! convert {
    ($($name:ident $f:ident;)*) => { $(
        pub fn $name(&self, a: V, to: T) -> V {
            // SAFETY: a value of this module; the caller gives a type that the cast allows.
            V(unsafe { $f(self.raw, a.0, to.0, NAMELESS) })
        }
    )* };
}

// SAFETY (whole block): every handle comes from this builder's context, which outlives it;
// LLVM is loaded, for `new` is only called after `lazy::load`.
impl Builder {
    binary! {
        fadd LLVMBuildFAdd; fsub LLVMBuildFSub; fmul LLVMBuildFMul; fdiv LLVMBuildFDiv;
        add LLVMBuildAdd; sub LLVMBuildSub; mul LLVMBuildMul;
        sdiv LLVMBuildSDiv; udiv LLVMBuildUDiv; urem LLVMBuildURem;
        and LLVMBuildAnd; or LLVMBuildOr; xor LLVMBuildXor;
        shl LLVMBuildShl; lshr LLVMBuildLShr; ashr LLVMBuildAShr;
    }
    convert! {
        trunc LLVMBuildTrunc; zext LLVMBuildZExt; sext LLVMBuildSExt;
        fptrunc LLVMBuildFPTrunc; fpext LLVMBuildFPExt;
        fptosi LLVMBuildFPToSI; sitofp LLVMBuildSIToFP; uitofp LLVMBuildUIToFP; bitcast LLVMBuildBitCast;
    }

    /// The module, still owned by the builder.
    pub fn module(&self) -> ManuallyDrop<Module<'_>> {
        // SAFETY: a valid module, which is not disposed of here.
        ManuallyDrop::new(unsafe { Module::new(self.module) })
    }

    /// A module with an empty function `name` of `KernelFn`'s type.
    pub fn new(name: &str) -> Builder {
        Builder::with(name, |context| {
            // SAFETY: see above.
            let (ptr, i64) = unsafe { (LLVMPointerTypeInContext(context, 0), LLVMInt64TypeInContext(context)) };
            (vec![ptr, ptr, i64, i64, ptr], i64)
        })
    }

    /// A module with an empty kernel `name` for a GPU, of so many addresses in global memory and, behind them, words.
    pub fn kernel(name: &str, dialect: Dialect, addresses: usize, words: usize) -> Builder {
        let b = Builder::with(name, |context| {
            // SAFETY: see above.
            unsafe {
                let ptr = LLVMPointerTypeInContext(context, AddressSpace::Global as u32);
                let params = [vec![ptr; addresses], vec![LLVMInt64TypeInContext(context); words]].concat();
                (params, LLVMVoidTypeInContext(context))
            }
        });
        // SAFETY: a function of this module.
        unsafe { LLVMSetFunctionCallConv(b.function, dialect.convention()) };
        b
    }

    fn with(name: &str, ty: impl FnOnce(LLVMContextRef) -> (Vec<LLVMTypeRef>, LLVMTypeRef)) -> Builder {
        let c_name = c_string(name);
        // SAFETY: see above.
        unsafe {
            let owner = Context::create();
            let context = owner.raw();
            let module = LLVMModuleCreateWithNameInContext(c_name.as_ptr(), context);
            let (mut params, result) = ty(context);
            let ty = LLVMFunctionType(result, params.as_mut_ptr(), params.len() as u32, 0);
            let function = LLVMAddFunction(module, c_name.as_ptr(), ty);
            let raw = LLVMCreateBuilderInContext(context);
            Builder { context, module, raw, function, group: None, _context: owner }
        }
    }

    pub fn param(&self, n: u32) -> V {
        // SAFETY: callers ask for parameters that the function was made with.
        V(unsafe { LLVMGetParam(self.function, n) })
    }

    pub fn attribute(&self, key: &str, value: &str) {
        // SAFETY: LLVM copies both strings.
        unsafe {
            let a = LLVMCreateStringAttribute(
                self.context,
                key.as_ptr().cast(),
                key.len() as u32,
                value.as_ptr().cast(),
                value.len() as u32,
            );
            LLVMAddAttributeAtIndex(self.function, llvm_sys::LLVMAttributeFunctionIndex, a);
        }
    }

    /// States the threads of a block to the back end for SPIR-V.
    pub fn group_of(&self, threads: u32) {
        let name = "reqd_work_group_size";
        // SAFETY: see the block; LLVM copies the name.
        unsafe {
            let kind = LLVMGetMDKindIDInContext(self.context, name.as_ptr().cast(), name.len() as u32);
            let mut sizes = [threads, 1, 1].map(|n| {
                let n = self.const_int(self.int(32), n.into(), 1);
                LLVMValueAsMetadata(n.0)
            });
            let node = LLVMMDNodeInContext2(self.context, sizes.as_mut_ptr(), sizes.len());
            LLVMGlobalSetMetadata(self.function, kind, node);
        }
    }

    fn enum_attribute(&self, name: &str, value: u64) -> LLVMAttributeRef {
        // SAFETY: LLVM knows the name.
        unsafe {
            LLVMCreateEnumAttribute(
                self.context,
                LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len()),
                value,
            )
        }
    }

    pub fn flag(&self, name: &str) {
        // SAFETY: as `attribute`.
        unsafe {
            LLVMAddAttributeAtIndex(self.function, llvm_sys::LLVMAttributeFunctionIndex, self.enum_attribute(name, 0))
        }
    }

    // --- types

    pub fn int(&self, bits: u32) -> T {
        // SAFETY: see the block.
        T(unsafe { LLVMIntTypeInContext(self.context, bits) })
    }

    pub fn half(&self) -> T {
        // SAFETY: see the block.
        T(unsafe { LLVMHalfTypeInContext(self.context) })
    }

    /// Two halves in one register of a GPU.
    pub fn pair_of_halves(&self) -> T {
        // SAFETY: see the block.
        T(unsafe { LLVMVectorType(self.half().0, 2) })
    }

    pub fn ptr(&self) -> T {
        // SAFETY: see the block.
        T(unsafe { LLVMPointerTypeInContext(self.context, 0) })
    }

    /// `lanes` of `element`; 1 is the scalar.
    pub fn vec(&self, element: T, lanes: u32) -> T {
        match self.own(lanes) {
            1 => element,
            // SAFETY: see the block.
            own => T(unsafe { LLVMVectorType(element.0, own) }),
        }
    }

    /// Lanes of a value that are here: all, or those of one thread of the group.
    pub fn own(&self, lanes: u32) -> u32 {
        self.group.map_or(lanes, |g| (lanes / g.size).max(1))
    }

    /// The register type of a kind.
    pub fn kind(&self, kind: Kind, lanes: u32) -> T {
        // SAFETY: see the block.
        let element = unsafe {
            match kind {
                Kind::F32 => T(LLVMFloatTypeInContext(self.context)),
                Kind::F64 => T(LLVMDoubleTypeInContext(self.context)),
                Kind::I64 => self.int(64),
                Kind::I32 => self.int(32),
                Kind::I16 => self.int(16),
                Kind::I8 | Kind::U8 => self.int(8),
                Kind::Bool => self.int(1),
            }
        };
        self.vec(element, lanes)
    }

    pub fn type_of(&self, v: V) -> T {
        // SAFETY: see the block.
        T(unsafe { LLVMTypeOf(v.0) })
    }

    // --- constants

    pub fn zero(&self, ty: T) -> V {
        // SAFETY: see the block.
        V(unsafe { LLVMConstNull(ty.0) })
    }

    /// An integer of element type `ty`, repeated in `lanes`.
    pub fn const_int(&self, ty: T, value: i64, lanes: u32) -> V {
        // SAFETY: see the block.
        self.repeat(V(unsafe { LLVMConstInt(ty.0, value as u64, 1) }), lanes)
    }

    pub fn i64(&self, value: i64) -> V {
        self.const_int(self.int(64), value, 1)
    }

    pub fn bfloat(&self) -> T {
        // SAFETY: see the block.
        T(unsafe { LLVMBFloatTypeInContext(self.context) })
    }

    /// A float given by its bits, of kind F32 or F64, repeated.
    pub fn const_float(&self, kind: Kind, value: f64, lanes: u32) -> V {
        let bits = match kind {
            Kind::F32 => self.const_int(self.int(32), (value as f32).to_bits() as i64, 1),
            _ => self.const_int(self.int(64), value.to_bits() as i64, 1),
        };
        // SAFETY: a constant of the same width.
        self.repeat(V(unsafe { LLVMConstBitCast(bits.0, self.kind(kind, 1).0) }), lanes)
    }

    fn repeat(&self, v: V, lanes: u32) -> V {
        match self.own(lanes) {
            1 => v,
            own => self.const_vector(&vec![v; own as usize]),
        }
    }

    pub fn const_vector(&self, elements: &[V]) -> V {
        let mut raw: Vec<LLVMValueRef> = elements.iter().map(|v| v.0).collect();
        // SAFETY: constants of one type.
        V(unsafe { LLVMConstVector(raw.as_mut_ptr(), raw.len() as u32) })
    }

    /// 0, 1, 2, … of i64.
    pub fn iota(&self, lanes: u32) -> V {
        match (lanes, self.group) {
            (1, _) => return self.i64(0),
            (_, Some(group)) => return self.lanes_of_thread(group, lanes),
            _ => {}
        }
        self.const_vector(&(0..lanes as i64).map(|i| self.i64(i)).collect::<Vec<_>>())
    }

    /// The numbers of a thread's lanes: its own, and those that are whole groups further on.
    fn lanes_of_thread(&self, group: Group, lanes: u32) -> V {
        let own = self.own(lanes);
        if own == 1 {
            return group.lane;
        }
        let steps: Vec<V> = (0..own).map(|e| self.i64(i64::from(e * group.size))).collect();
        self.add(self.splat(group.lane, lanes), self.const_vector(&steps))
    }

    /// One vector of scalars, or the only one of them.
    pub fn gathered(&self, parts: &[V]) -> V {
        let [first, _, ..] = parts else { return parts[0] };
        // SAFETY: scalars of one type, in a vector of as many.
        unsafe {
            let ty = LLVMVectorType(LLVMTypeOf(first.0), parts.len() as u32);
            let put = |v, (at, part): (usize, &V)| {
                LLVMBuildInsertElement(self.raw, v, part.0, self.i64(at as i64).0, NAMELESS)
            };
            V(parts.iter().enumerate().fold(LLVMGetPoison(ty), put))
        }
    }

    /// Lane `e` of those that are here, of a value that has so many.
    pub fn own_of(&self, v: V, e: u32, own: u32) -> V {
        if own == 1 { v } else { self.extract(v, e) }
    }

    /// A mask whose first `valid` lanes are set.
    pub fn first_lanes(&self, valid: u32, lanes: u32) -> V {
        if self.group.is_some() {
            let valid = self.const_int(self.int(64), i64::from(valid), lanes.max(2));
            return self.icmp(LLVMIntPredicate::LLVMIntULT, self.iota(lanes.max(2)), valid);
        }
        self.const_vector(&(0..lanes).map(|i| self.const_int(self.int(1), (i < valid) as i64, 1)).collect::<Vec<_>>())
    }

    /// Bytes of the module that nothing changes.
    pub fn constant_bytes(&self, bytes: &[u8], align: u32) -> V {
        // SAFETY: LLVM copies the bytes; the global is of their type.
        unsafe {
            let value = LLVMConstStringInContext2(self.context, bytes.as_ptr().cast(), bytes.len(), 1);
            let global = LLVMAddGlobal(self.module, LLVMTypeOf(value), NAMELESS);
            LLVMSetInitializer(global, value);
            LLVMSetGlobalConstant(global, 1);
            LLVMSetLinkage(global, llvm_sys::LLVMLinkage::LLVMPrivateLinkage);
            LLVMSetAlignment(global, align);
            V(global)
        }
    }

    // --- instructions

    pub fn fneg(&self, a: V) -> V {
        // SAFETY: see the block.
        V(unsafe { LLVMBuildFNeg(self.raw, a.0, NAMELESS) })
    }

    pub fn not(&self, a: V) -> V {
        // SAFETY: see the block.
        V(unsafe { LLVMBuildNot(self.raw, a.0, NAMELESS) })
    }

    pub fn icmp(&self, p: LLVMIntPredicate, a: V, b: V) -> V {
        // SAFETY: see the block.
        V(unsafe { LLVMBuildICmp(self.raw, p, a.0, b.0, NAMELESS) })
    }

    pub fn fcmp(&self, p: LLVMRealPredicate, a: V, b: V) -> V {
        // SAFETY: see the block.
        V(unsafe { LLVMBuildFCmp(self.raw, p, a.0, b.0, NAMELESS) })
    }

    pub fn select(&self, c: V, a: V, b: V) -> V {
        // SAFETY: see the block.
        V(unsafe { LLVMBuildSelect(self.raw, c.0, a.0, b.0, NAMELESS) })
    }

    pub fn shuffle(&self, a: V, lanes: &[u32]) -> V {
        let i32 = self.int(32);
        let mask = self.const_vector(&lanes.iter().map(|l| self.const_int(i32, *l as i64, 1)).collect::<Vec<_>>());
        // SAFETY: the mask selects lanes of `a` only.
        V(unsafe { LLVMBuildShuffleVector(self.raw, a.0, LLVMGetPoison(LLVMTypeOf(a.0)), mask.0, NAMELESS) })
    }

    /// Lanes of `a` followed by `b`.
    pub fn shuffle_two(&self, a: V, b: V, lanes: &[u32]) -> V {
        let i32 = self.int(32);
        let mask = self.const_vector(&lanes.iter().map(|l| self.const_int(i32, *l as i64, 1)).collect::<Vec<_>>());
        // SAFETY: vectors of one type; the mask selects lanes of either.
        V(unsafe { LLVMBuildShuffleVector(self.raw, a.0, b.0, mask.0, NAMELESS) })
    }

    pub fn extract(&self, a: V, lane: u32) -> V {
        // SAFETY: `lane` is below the number of lanes.
        V(unsafe { LLVMBuildExtractElement(self.raw, a.0, self.i64(lane as i64).0, NAMELESS) })
    }

    /// A scalar in all lanes.
    pub fn splat(&self, a: V, lanes: u32) -> V {
        let own = self.own(lanes);
        if own == 1 {
            return a;
        }
        let ty = self.vec(self.type_of(a), lanes);
        // SAFETY: see the block.
        let one = V(unsafe { LLVMBuildInsertElement(self.raw, LLVMGetPoison(ty.0), a.0, self.i64(0).0, NAMELESS) });
        self.shuffle(one, &vec![0; own as usize])
    }

    pub fn offset(&self, base: V, bytes: V) -> V {
        let mut index = [bytes.0];
        // SAFETY: inside the buffer, as the verifier of Tile IR has shown.
        V(unsafe { LLVMBuildGEP2(self.raw, self.int(8).0, base.0, index.as_mut_ptr(), 1, NAMELESS) })
    }

    pub fn load(&self, ty: T, at: V, align: u32) -> V {
        // SAFETY: see `offset`.
        unsafe {
            let v = LLVMBuildLoad2(self.raw, ty.0, at.0, NAMELESS);
            LLVMSetAlignment(v, align);
            V(v)
        }
    }

    pub fn store(&self, value: V, at: V, align: u32, stream: bool) {
        // SAFETY: see `offset`.
        unsafe {
            let s = LLVMBuildStore(self.raw, value.0, at.0);
            LLVMSetAlignment(s, align);
            if stream {
                let name = "nontemporal";
                let kind = LLVMGetMDKindIDInContext(self.context, name.as_ptr().cast(), name.len() as u32);
                let mut one = [LLVMValueAsMetadata(self.const_int(self.int(32), 1, 1).0)];
                let node = LLVMMDNodeInContext2(self.context, one.as_mut_ptr(), 1);
                LLVMSetMetadata(s, kind, LLVMMetadataAsValue(self.context, node));
            }
        }
    }

    /// Calls intrinsic `name` overloaded on `types`.
    pub fn intrinsic(&self, name: &str, types: &[T], args: &[V]) -> V {
        let mut types: Vec<LLVMTypeRef> = types.iter().map(|t| t.0).collect();
        let mut args: Vec<LLVMValueRef> = args.iter().map(|a| a.0).collect();
        // SAFETY: the emitter names intrinsics that LLVM 22 has, with their overloads.
        unsafe {
            let id = LLVMLookupIntrinsicID(name.as_ptr().cast(), name.len());
            let ty = LLVMIntrinsicGetType(self.context, id, types.as_mut_ptr(), types.len());
            let f = LLVMGetIntrinsicDeclaration(self.module, id, types.as_mut_ptr(), types.len());
            V(LLVMBuildCall2(self.raw, ty, f, args.as_mut_ptr(), args.len() as u32, NAMELESS))
        }
    }

    /// A call of a function that the target's back end knows by its name, at which all threads arrive together.
    pub fn external(&self, name: &str, result: Option<T>, args: &[V]) -> V {
        let c_name = c_string(name);
        let mut types: Vec<LLVMTypeRef> = args.iter().map(|a| self.type_of(*a).0).collect();
        let mut args: Vec<LLVMValueRef> = args.iter().map(|a| a.0).collect();
        // SAFETY: see the block; a name has one type.
        unsafe {
            let result = result.map_or_else(|| LLVMVoidTypeInContext(self.context), |t| t.0);
            let ty = LLVMFunctionType(result, types.as_mut_ptr(), types.len() as u32, 0);
            let mut f = LLVMGetNamedFunction(self.module, c_name.as_ptr());
            if f.is_null() {
                f = LLVMAddFunction(self.module, c_name.as_ptr(), ty);
                for flag in ["convergent", "nounwind"] {
                    LLVMAddAttributeAtIndex(f, llvm_sys::LLVMAttributeFunctionIndex, self.enum_attribute(flag, 0));
                }
                LLVMSetFunctionCallConv(f, Dialect::FUNCTION);
            }
            let call = LLVMBuildCall2(self.raw, ty, f, args.as_mut_ptr(), args.len() as u32, NAMELESS);
            LLVMSetInstructionCallConv(call, Dialect::FUNCTION);
            V(call)
        }
    }

    fn block_scope(&self) -> u32 {
        let name = "workgroup";
        // SAFETY: LLVM copies the name.
        unsafe { LLVMGetSyncScopeID(self.context, name.as_ptr().cast(), name.len()) }
    }

    /// What this thread has left in memory is there for the block, or (`acquires`) what others of the block have left for this
    /// one.
    pub fn fence_of_block(&self, acquires: bool) {
        use llvm_sys::LLVMAtomicOrdering::{LLVMAtomicOrderingAcquire, LLVMAtomicOrderingRelease};
        let order = if acquires { LLVMAtomicOrderingAcquire } else { LLVMAtomicOrderingRelease };
        // SAFETY: see the block.
        unsafe { LLVMBuildFenceSyncScope(self.raw, order, self.block_scope(), NAMELESS) };
    }

    /// The number at `p`, which threads of a block share, becomes no greater than `n`, an i32.
    pub fn lower_in_block(&self, p: V, n: V) {
        use llvm_sys::{LLVMAtomicOrdering::LLVMAtomicOrderingMonotonic, LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpUMin};
        let order = LLVMAtomicOrderingMonotonic;
        // SAFETY: see the block.
        unsafe {
            LLVMBuildAtomicRMWSyncScope(self.raw, LLVMAtomicRMWBinOpUMin, p.0, n.0, order, self.block_scope());
        }
    }

    /// The same pointer, of which the optimizer does not know where it comes from: empty text for the
    /// assembler, which is the one barrier against finding equal addresses.
    pub fn opaque(&self, p: V) -> V {
        let (constraints, mut args) = ("=r,0", [p.0]);
        let mut types = [self.ptr().0];
        // SAFETY: one pointer in, one out, in the same register; there are no instructions.
        unsafe {
            let ty = LLVMFunctionType(self.ptr().0, types.as_mut_ptr(), 1, 0);
            let dialect = LLVMInlineAsmDialect::LLVMInlineAsmDialectATT;
            let text = constraints.as_ptr().cast();
            let f = LLVMGetInlineAsm(ty, NAMELESS, 0, text, constraints.len(), 0, 0, dialect, 0);
            V(LLVMBuildCall2(self.raw, ty, f, args.as_mut_ptr(), 1, NAMELESS))
        }
    }

    /// States the alignment of pointer argument `arg` (from 1) of a masked access.
    pub fn align_argument(&self, call: V, arg: u32, align: u32) {
        // SAFETY: `call` is a call.
        unsafe { LLVMAddCallSiteAttribute(call.0, arg, self.enum_attribute("align", align as u64)) }
    }

    // --- control

    pub fn block(&self) -> Block {
        // SAFETY: see the block.
        Block(unsafe { LLVMAppendBasicBlockInContext(self.context, self.function, NAMELESS) })
    }

    pub fn position(&self, b: Block) {
        // SAFETY: see the block.
        unsafe { LLVMPositionBuilderAtEnd(self.raw, b.0) }
    }

    pub fn current(&self) -> Block {
        // SAFETY: see the block.
        Block(unsafe { LLVMGetInsertBlock(self.raw) })
    }

    pub fn jump(&self, to: Block) {
        // SAFETY: see the block.
        unsafe { LLVMBuildBr(self.raw, to.0) };
    }

    pub fn branch(&self, c: V, yes: Block, no: Block) {
        // SAFETY: see the block.
        unsafe { LLVMBuildCondBr(self.raw, c.0, yes.0, no.0) };
    }

    pub fn phi(&self, ty: T) -> V {
        // SAFETY: see the block.
        V(unsafe { LLVMBuildPhi(self.raw, ty.0, NAMELESS) })
    }

    pub fn incoming(&self, phi: V, value: V, from: Block) {
        let (mut v, mut b) = ([value.0], [from.0]);
        // SAFETY: see the block.
        unsafe { LLVMAddIncoming(phi.0, v.as_mut_ptr(), b.as_mut_ptr(), 1) }
    }

    pub fn ret(&self, v: V) {
        // SAFETY: see the block.
        unsafe { LLVMBuildRet(self.raw, v.0) };
    }

    /// A pointer into memory of a GPU.
    pub fn ptr_in(&self, space: AddressSpace) -> T {
        // SAFETY: see the block.
        T(unsafe { LLVMPointerTypeInContext(self.context, space as u32) })
    }

    /// Field `n` of a result of several.
    pub fn extract_value(&self, a: V, n: u32) -> V {
        // SAFETY: `a` has so many fields.
        V(unsafe { LLVMBuildExtractValue(self.raw, a.0, n, NAMELESS) })
    }

    pub fn ret_void(&self) {
        // SAFETY: see the block.
        unsafe { LLVMBuildRetVoid(self.raw) };
    }

    /// Bytes that the threads of a block share, at a multiple of 64: so many, or (0) as many as the launch says.
    pub fn shared_bytes(&self, bytes: u64) -> V {
        // SAFETY: see the block; memory of this kind has no initial value.
        unsafe {
            let ty = LLVMArrayType2(self.int(8).0, bytes);
            let global = LLVMAddGlobalInAddressSpace(self.module, ty, c"shared".as_ptr(), AddressSpace::Shared as u32);
            if bytes > 0 {
                LLVMSetInitializer(global, LLVMGetPoison(ty));
                LLVMSetLinkage(global, llvm_sys::LLVMLinkage::LLVMInternalLinkage);
            }
            LLVMSetAlignment(global, 64);
            V(global)
        }
    }

    pub fn ptr_to_int(&self, v: V) -> V {
        // SAFETY: see the block.
        V(unsafe { LLVMBuildPtrToInt(self.raw, v.0, self.int(64).0, NAMELESS) })
    }
}

pub fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}
