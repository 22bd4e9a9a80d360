//! Runs a group of graph nodes as the driver would: schedule, lower, compile, load, call.
#![allow(dead_code, reason = "each test and example uses a part")]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use tessera_abi::plan::{Code, Kernel};
use tessera_base::DType;
use tessera_ir::graph::{Graph, Input, Node, NodeId, NodeType, Origin, Policy};
use tessera_ir::group::{Group, GroupKind};
use tessera_ir::schedule::{Machine, Schedule, ValueOp};
use tessera_llvm::HostTarget;
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Reduction, Scalar, Steps};
use tessera_tile::{Lowered, Operand};

/// A large page.
const HUGE: usize = 2 << 20;

/// Zeroed bytes at a multiple of 64.
pub struct Bytes {
    ptr: *mut u8,
    pub len: usize,
}

// SAFETY: plain memory with one owner.
unsafe impl Send for Bytes {}
// SAFETY: kernels write disjoint parts.
unsafe impl Sync for Bytes {}

impl Bytes {
    pub fn new(len: usize) -> Bytes {
        let layout = Self::layout(len);
        // SAFETY: the layout is not empty; advice changes no content.
        let ptr = unsafe {
            let ptr = alloc_zeroed(layout);
            if layout.align() == HUGE {
                libc::madvise(ptr.cast(), len, libc::MADV_HUGEPAGE);
            }
            ptr
        };
        Bytes { ptr, len }
    }
    fn layout(len: usize) -> Layout {
        let align = if len >= 2 * HUGE { HUGE } else { 64 };
        Layout::from_size_align(len.next_multiple_of(64).max(64), align).expect("a size")
    }
    pub fn from(bytes: &[u8]) -> Bytes {
        let b = Bytes::new(bytes.len());
        b.slice_mut().copy_from_slice(bytes);
        b
    }
    pub fn slice(&self) -> &[u8] {
        // SAFETY: owned and initialised.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }
    }
    #[allow(clippy::mut_from_ref, reason = "tests share buffers with kernels")]
    pub fn slice_mut(&self) -> &mut [u8] {
        // SAFETY: owned and initialised; tests do not overlap uses.
        unsafe { std::slice::from_raw_parts_mut(self.ptr, self.len) }
    }
    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr
    }
    pub fn f32s(&self) -> &[f32] {
        // SAFETY: aligned to 64.
        unsafe { std::slice::from_raw_parts(self.ptr.cast(), self.len / 4) }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.ptr, Self::layout(self.len)) }
    }
}

/// Builds graphs in tests.
#[derive(Default)]
pub struct Build {
    pub graph: Graph,
}

impl Build {
    pub fn push(&mut self, prim: Prim, operands: &[NodeId], shape: &[u64], dtype: DType) -> NodeId {
        self.graph.push(Node {
            prim,
            operands: operands.to_vec(),
            ty: NodeType::new(shape.to_vec(), dtype),
            results: vec![],
            origin: Origin::default(),
            policy: Policy::default(),
        })
    }
    pub fn input(&mut self, shape: &[u64], dtype: DType) -> NodeId {
        let n = self.graph.inputs.len() as u32;
        self.graph.inputs.push(Input {
            name: format!("x{n}").into(),
            ty: NodeType::new(shape.to_vec(), dtype),
            scalar: false,
        });
        self.push(Prim::Input(n), &[], shape, dtype)
    }
    pub fn map(&mut self, name: &str, operands: &[NodeId]) -> NodeId {
        let op = MapOp::parse(name).unwrap_or_else(|| panic!("no map `{name}`"));
        let last = self.graph.ty(*operands.last().expect("an operand")).clone();
        let dtype = if op.def().gives == tessera_ops::map::Gives::Bool { DType::Bool } else { last.dtype };
        self.push(Prim::Map(op), operands, &last.shape, dtype)
    }
    pub fn full(&mut self, value: f64, like: NodeId) -> NodeId {
        let ty = self.graph.ty(like).clone();
        self.push(Prim::Full { value: Scalar::F(value) }, &[], &ty.shape, ty.dtype)
    }
    pub fn broadcast(&mut self, x: NodeId, dims: &[usize], shape: &[u64]) -> NodeId {
        let dtype = self.graph.ty(x).dtype;
        self.push(Prim::Broadcast { dims: dims.to_vec() }, &[x], shape, dtype)
    }
    pub fn reduce(&mut self, kind: Reduction, x: NodeId, axes: &[usize]) -> NodeId {
        let ty = self.graph.ty(x).clone();
        let shape: Vec<u64> = (0..ty.shape.len()).filter(|i| !axes.contains(i)).map(|i| ty.shape[i]).collect();
        self.push(Prim::Reduce { kind, axes: axes.to_vec() }, &[x], &shape, ty.dtype)
    }
    pub fn dot(&mut self, a: NodeId, b: NodeId) -> NodeId {
        let (x, y) = (self.graph.ty(a).clone(), self.graph.ty(b).clone());
        let mut shape = x.shape.clone();
        *shape.last_mut().expect("rank 2") = *y.shape.last().expect("rank 2");
        self.push(Prim::dot(x.dtype.accumulator(), Steps::All), &[a, b], &shape, x.dtype)
    }
    /// One group of everything that is not an input, with `root` as its result.
    pub fn group(&self, root: NodeId) -> Group {
        let mut members = vec![];
        let mut todo = vec![root];
        while let Some(n) = todo.pop() {
            if matches!(self.graph.node(n).prim, Prim::Input(_)) || members.contains(&n) {
                continue;
            }
            members.push(n);
            todo.extend(&self.graph.node(n).operands);
        }
        members.sort();
        let mut inputs: Vec<NodeId> = members
            .iter()
            .flat_map(|m| self.graph.node(*m).operands.clone())
            .filter(|n| !members.contains(n))
            .collect();
        inputs.sort();
        inputs.dedup();
        let dot = members.iter().any(|m| matches!(self.graph.node(*m).prim, Prim::Dot { .. }));
        Group {
            kind: if dot { GroupKind::Dot } else { GroupKind::Loop },
            members,
            inputs,
            scalars: vec![],
            roots: vec![root],
        }
    }
}

/// A compiled group.
pub struct Compiled {
    pub schedule: Schedule,
    pub lowered: Lowered,
    pub kernels: Vec<Kernel>,
}

pub fn compile(b: &Build, root: NodeId) -> Compiled {
    compile_for(b, root, &tessera_schedule::host())
}

/// Compiles with the schedule that suits another machine; it runs on this one all the same.
pub fn compile_for(b: &Build, root: NodeId, machine: &Machine) -> Compiled {
    let s = tessera_schedule::schedule(&b.graph, &b.group(root), "kernel", machine).unwrap_or_else(|e| panic!("{e}"));
    compile_schedule(s)
}

/// This machine, one with narrow vectors, or one with next to no cache.
fn some_machine(random: &mut Random) -> Machine {
    let host = tessera_schedule::host();
    match random.below(4) {
        0 => Machine { vector_bytes: 32, vector_registers: 16, ..host },
        1 => Machine {
            class: tessera_ir::schedule::Class::Cpu,
            vector_bytes: 16,
            vector_registers: 16,
            lanes_max: 64,
            bf16: tessera_ops::prim::Order::Chain,
            block_products: false,
            l1_bytes: 1 << 10,
            l2_bytes: 4 << 10,
            l3_bytes: 8 << 10,
        },
        2 => Machine { l1_bytes: 1 << 10, l2_bytes: 8 << 10, l3_bytes: 16 << 10, ..host },
        _ => host,
    }
}

pub fn compile_schedule(schedule: Schedule) -> Compiled {
    compile_schedule_for(schedule, &HostTarget::host().unwrap_or_else(|e| panic!("{e}")))
}

fn compile_schedule_for(schedule: Schedule, target: &HostTarget) -> Compiled {
    use tessera_ir::{schedule, tile};
    schedule::verify::verify(&schedule).unwrap_or_else(|e| panic!("{e}\n{}", schedule::text::print(&schedule)));
    assert_eq!(schedule::text::parse(&schedule::text::print(&schedule)).as_ref(), Ok(&schedule));
    let lowered = tessera_tile::lower(&schedule).unwrap_or_else(|e| panic!("{e}"));
    for step in &lowered.steps {
        let text = tile::text::print(&step.kernel);
        tile::verify::verify(&step.kernel).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(tile::text::parse(&text).as_ref(), Ok(&step.kernel), "{text}");
    }
    let kernels = lowered
        .steps
        .iter()
        .map(|step| {
            let object = tessera_llvm::compile(&step.kernel, target).unwrap_or_else(|e| panic!("{e}"));
            tessera_llvm::load(&object, &step.kernel.name).unwrap_or_else(|e| panic!("{e}"))
        })
        .collect();
    Compiled { schedule, lowered, kernels }
}

impl Compiled {
    /// Runs all kernels over `tensors` (inputs, then roots) on `threads` threads.
    pub fn run(&self, tensors: &[&Bytes], threads: u64) {
        let temps: Vec<Bytes> = self.lowered.temps.iter().map(|n| Bytes::new(*n as usize)).collect();
        self.run_with(tensors, &temps, threads);
    }

    /// Runs all kernels through the checked interpreter.
    pub fn interpret(&self, tensors: &mut [Vec<u8>]) {
        let mut temps: Vec<Vec<u8>> = self.lowered.temps.iter().map(|n| vec![0; *n as usize]).collect();
        for step in &self.lowered.steps {
            let place = |o: &Operand, tensors: &[Vec<u8>], temps: &[Vec<u8>]| match o {
                Operand::Tensor(n) => tensors[*n as usize].clone(),
                Operand::Temp(n) => temps[*n as usize].clone(),
            };
            let mut bufs: Vec<Vec<u8>> = step.operands.iter().map(|o| place(o, tensors, &temps)).collect();
            tessera_tile::interpret(&step.kernel, &mut bufs, &[])
                .unwrap_or_else(|e| panic!("{e}\n{}", tessera_ir::tile::text::print(&step.kernel)));
            for (o, b) in step.operands.iter().zip(bufs) {
                match o {
                    Operand::Tensor(n) => tensors[*n as usize] = b,
                    Operand::Temp(n) => temps[*n as usize] = b,
                }
            }
        }
    }

    pub fn run_with(&self, tensors: &[&Bytes], temps: &[Bytes], threads: u64) {
        for (step, kernel) in self.lowered.steps.iter().zip(&self.kernels) {
            let bufs: Vec<usize> = step
                .operands
                .iter()
                .map(|o| match o {
                    Operand::Tensor(n) => tensors[*n as usize].as_ptr() as usize,
                    Operand::Temp(n) => temps[*n as usize].as_ptr() as usize,
                })
                .collect();
            let Code::Host { entry, .. } = kernel.code else { panic!("no function of this process") };
            let (grid, scratch) = (step.kernel.grid, step.kernel.scratch().1 as usize);
            let next = std::sync::atomic::AtomicU64::new(0);
            let work = || {
                let scratch = Bytes::new(scratch);
                let chunk = if threads == 1 { grid.max(1) } else { (grid / (threads * 8)).max(1) };
                loop {
                    let lo = next.fetch_add(chunk, std::sync::atomic::Ordering::Relaxed);
                    if lo >= grid {
                        break;
                    }
                    // SAFETY: buffers have the sizes that the kernel states.
                    let code = unsafe {
                        entry(bufs.as_ptr().cast(), std::ptr::null(), lo, (lo + chunk).min(grid), scratch.as_ptr())
                    };
                    assert_eq!(code, 0);
                }
            };
            std::thread::scope(|s| {
                for _ in 1..threads {
                    s.spawn(work);
                }
                work();
            });
        }
    }
}

pub mod naive;
pub mod ptx;

/// Deterministic pseudo-random numbers.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let x = self.0;
        (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd) >> 20
    }
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
    /// Elements of a type: mostly ordinary numbers, with a few special ones where asked.
    pub fn elements(&mut self, dtype: DType, n: u64, special: bool) -> Vec<u8> {
        (0..n)
            .flat_map(|_| {
                let pick = if special { self.below(12) } else { 100 };
                let value = match pick {
                    0 if dtype.is_float() => Scalar::F(f64::NAN),
                    1 if dtype.is_float() => Scalar::F(f64::INFINITY),
                    2 if dtype.is_float() => Scalar::F(-0.0),
                    3 if dtype.is_float() => Scalar::F(1e-40),
                    4 if dtype.is_float() => Scalar::F(f64::NEG_INFINITY),
                    _ if dtype.is_float() => Scalar::F((self.below(4001) as f64 - 2000.0) / 300.0),
                    _ if dtype == DType::Bool => Scalar::I(self.below(2) as i64),
                    0 => Scalar::I(0),
                    1 => Scalar::I(i64::MIN >> (64 - 8 * dtype.bytes() as u32)),
                    2 => Scalar::I(-1),
                    _ => Scalar::I(self.below(200) as i64 - 100),
                };
                let from = if dtype.is_float() { DType::F64 } else { DType::I64 };
                tessera_ops::convert::cast(from, dtype, &tessera_ops::convert::store(from, value))
            })
            .collect()
    }
}

/// Runs `root` compiled and naively on random elements and compares bits (NaN equals NaN).
pub fn check(b: &Build, root: NodeId, random: &mut Random, special: bool) {
    let inputs: Vec<Vec<u8>> =
        b.graph.inputs.iter().map(|i| random.elements(i.ty.dtype, i.ty.elems().unwrap_or(0), special)).collect();
    let expected = naive::run(&b.graph, &inputs);
    let machine = some_machine(random);
    let s = tessera_schedule::schedule(&b.graph, &b.group(root), "kernel", &machine).unwrap_or_else(|e| panic!("{e}"));
    let host = HostTarget::host().unwrap_or_else(|e| panic!("{e}"));
    // Products in pairs and units have instructions that not every machine has.
    let paired = s.values.iter().any(|v| matches!(v.op, ValueOp::Dot { order, .. } if order.is_paired()));
    let narrower = !paired && random.below(2) == 0;
    let target = if narrower { host.narrower() } else { host };
    let c = compile_schedule_for(s, &target);
    let group = b.group(root);
    let mut tensors: Vec<Bytes> = group.inputs.iter().map(|n| Bytes::from(&expected[n.0 as usize])).collect();
    let wanted = &expected[root.0 as usize];
    tensors.push(Bytes::new(wanted.len()));
    let refs: Vec<&Bytes> = tensors.iter().collect();
    c.run(&refs, 2);
    let got = tensors[group.inputs.len()].slice();
    let dtype = b.graph.ty(root).dtype;
    if inputs.iter().map(Vec::len).sum::<usize>() < 40_000 && random.below(4) == 0 {
        let mut inputs: Vec<Vec<u8>> = group.inputs.iter().map(|n| expected[n.0 as usize].clone()).collect();
        inputs.push(vec![0; wanted.len()]);
        c.interpret(&mut inputs);
        compare(&inputs[group.inputs.len()], wanted, dtype, &c.schedule, "interpreted");
    }
    if inputs.iter().map(Vec::len).sum::<usize>() < 40_000 && random.below(4) == 0 {
        let s = tessera_schedule::schedule(&b.graph, &group, "kernel", &tessera_schedule::gpu(1 << 20));
        let s = s.unwrap_or_else(|e| panic!("{e}"));
        let out = Bytes::new(wanted.len());
        let tensors: Vec<&Bytes> = tensors.iter().take(group.inputs.len()).chain([&out]).collect();
        ptx::run(&s, &tensors, random);
        compare(out.slice(), wanted, dtype, &s, "as PTX");
    }
    compare(got, wanted, dtype, &c.schedule, "compiled");
}

/// Equal bits, where NaN equals NaN.
pub fn compare(got: &[u8], wanted: &[u8], dtype: DType, schedule: &Schedule, how: &str) {
    for (i, (x, y)) in got.chunks(dtype.bytes()).zip(wanted.chunks(dtype.bytes())).enumerate() {
        if x == y {
            continue;
        }
        let (p, q) = (tessera_ops::convert::load(dtype, x, 0), tessera_ops::convert::load(dtype, y, 0));
        if let (Some(Scalar::F(p)), Some(Scalar::F(q))) = (p, q)
            && p.is_nan()
            && q.is_nan()
        {
            continue;
        }
        let text = tessera_ir::schedule::text::print(schedule);
        panic!("element {i}: {how} {p:?}, expected {q:?}\n{text}");
    }
}
