//! Speed of compiled kernels: `cargo run --release -p tessera-llvm --example kernel_bench [NAME]`.

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Instant;
use support::{Build, Bytes, Compiled, compile};
use tessera_base::DType;
use tessera_ir::graph::NodeId;
use tessera_ops::prim::Reduction;

/// Seconds of processor time that this thread has used.
fn thread_seconds() -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the structure.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

/// Least seconds of several runs; of this thread's own time where `alone` (other programs may
/// be running), else of the clock on the wall.
fn best_of(alone: bool, mut f: impl FnMut()) -> f64 {
    let now = || if alone { thread_seconds() } else { 0.0 };
    f();
    let start = Instant::now();
    let mut least = f64::MAX;
    while start.elapsed().as_secs_f64() < 0.6 {
        let (t, cpu) = (Instant::now(), now());
        f();
        least = least.min(if alone { now() - cpu } else { t.elapsed().as_secs_f64() });
    }
    least
}

fn best(f: impl FnMut()) -> f64 {
    best_of(true, f)
}

fn filled(n: usize, seed: u32) -> Bytes {
    let b = Bytes::new(n * 4);
    let mut x = seed.wrapping_mul(747_796_405) | 1;
    for e in b.slice_mut().chunks_exact_mut(4) {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        e.copy_from_slice(&(x as f32 / u32::MAX as f32 - 0.5).to_le_bytes());
    }
    b
}

fn time(c: &Compiled, tensors: &[&Bytes], threads: u64) -> f64 {
    let temps: Vec<Bytes> = c.lowered.temps.iter().map(|n| Bytes::new(*n as usize)).collect();
    best_of(threads == 1, || c.run_with(tensors, &temps, threads))
}

fn elementwise() {
    let n = 64 << 20;
    let mut b = Build::default();
    let (x, y) = (b.input(&[n], DType::F32), b.input(&[n], DType::F32));
    let c = b.full(0.5, x);
    let mut v = b.map("add", &[x, y]);
    for other in [c, x, y, c] {
        v = b.map("add", &[v, other]);
    }
    let k = compile(&b, v);
    let (p, q, out) = (filled(n as usize, 1), filled(n as usize, 2), Bytes::new(n as usize * 4));
    for threads in [1, 2] {
        let t = time(&k, &[&p, &q, &out], threads);
        println!("5 adds, 64 Mi f32, {threads} threads: {:.2} ms, {:.1} GB/s", t * 1e3, 12.0 * n as f64 / t / 1e9);
    }
    let t = best(|| out.slice_mut().copy_from_slice(p.slice()));
    println!("memcpy of 64 Mi f32, 1 thread: {:.2} ms, {:.1} GB/s", t * 1e3, 8.0 * n as f64 / t / 1e9);
    let mut b = Build::default();
    let x = b.input(&[n], DType::F32);
    let c = b.full(0.5, x);
    let mut v = x;
    for _ in 0..5 {
        v = b.map("add", &[v, c]);
    }
    let k = compile(&b, v);
    for threads in [1, 2] {
        let t = time(&k, &[&p, &out], threads);
        println!("5 adds of one operand, {threads} threads: {:.2} ms, {:.1} GB/s", t * 1e3, 8.0 * n as f64 / t / 1e9);
    }
}

fn reduce(name: &str, shape: &[u64], axes: &[usize]) {
    let mut b = Build::default();
    let x = b.input(shape, DType::F32);
    let r = b.reduce(Reduction::Sum, x, axes);
    let k = compile(&b, r);
    let n: u64 = shape.iter().product();
    let out = Bytes::new((b.graph.ty(r).elems().unwrap_or(1) * 4) as usize);
    let p = filled(n as usize, 1);
    for threads in [1, 2] {
        let t = time(&k, &[&p, &out], threads);
        println!(
            "sum {name} {shape:?} over {axes:?}, {threads} threads: {:.3} ms, {:.1} GB/s",
            t * 1e3,
            4.0 * n as f64 / t / 1e9
        );
    }
}

fn softmax(rows: u64, columns: u64) {
    let mut b = Build::default();
    let x = b.input(&[rows, columns], DType::F32);
    let m = b.reduce(Reduction::Max, x, &[1]);
    let m = b.broadcast(m, &[0], &[rows, columns]);
    let d = b.map("sub", &[x, m]);
    let e = b.map("exp", &[d]);
    let s = b.reduce(Reduction::Sum, e, &[1]);
    let s = b.broadcast(s, &[0], &[rows, columns]);
    let r = b.map("div", &[e, s]);
    let k = compile(&b, r);
    let n = (rows * columns) as usize;
    let (p, out) = (filled(n, 1), Bytes::new(n * 4));
    for threads in [1, 2] {
        let t = time(&k, &[&p, &out], threads);
        println!(
            "softmax {rows}x{columns}, {threads} threads: {:.3} ms, {:.1} GB/s",
            t * 1e3,
            8.0 * n as f64 / t / 1e9
        );
    }
}

fn transpose(m: u64, n: u64) {
    let mut b = Build::default();
    let x = b.input(&[m, n], DType::F32);
    let t = b.push(tessera_ops::prim::Prim::Transpose { perm: vec![1, 0] }, &[x], &[n, m], DType::F32);
    let k = compile(&b, t);
    let (p, out) = (filled((m * n) as usize, 1), Bytes::new((m * n * 4) as usize));
    let t = time(&k, &[&p, &out], 1);
    println!("transpose {m}x{n}: {:.3} ms, {:.1} GB/s", t * 1e3, 8.0 * (m * n) as f64 / t / 1e9);
}

fn matmul(m: u64, n: u64, k: u64) {
    product(m, n, k, false);
}

fn product(m: u64, n: u64, k: u64, turned: bool) {
    let mut b = Build::default();
    let x = b.input(&[m, k], DType::F32);
    let y = if turned {
        let y = b.input(&[n, k], DType::F32);
        b.push(tessera_ops::prim::Prim::Transpose { perm: vec![1, 0] }, &[y], &[k, n], DType::F32)
    } else {
        b.input(&[k, n], DType::F32)
    };
    let d: NodeId = b.dot(x, y);
    let start = Instant::now();
    let c = compile(&b, d);
    let compile_ms = start.elapsed().as_secs_f64() * 1e3;
    let (p, q, out) = (filled((m * k) as usize, 1), filled((k * n) as usize, 2), Bytes::new((m * n * 4) as usize));
    let flops = 2.0 * (m * n * k) as f64;
    let (one, two) = (time(&c, &[&p, &q, &out], 1), time(&c, &[&p, &q, &out], 2));
    println!(
        "matmul {m}x{k} @ {k}x{n}{}: {:.1} us, {:.1} GFLOP/s; 2 threads {:.1} us, {:.1} GFLOP/s; compiled in {compile_ms:.1} ms",
        if turned { " turned" } else { "" },
        one * 1e6,
        flops / one / 1e9,
        two * 1e6,
        flops / two / 1e9
    );
}

/// Block sizes of a large product, tried one after another.
fn blocks(n: u64) {
    use tessera_ir::schedule::Directive;
    let mut b = Build::default();
    let (x, y) = (b.input(&[n, n], DType::F32), b.input(&[n, n], DType::F32));
    let d = b.dot(x, y);
    let base = compile(&b, d).schedule;
    let k = tessera_ir::index::Var(2);
    let (p, q, out) = (filled((n * n) as usize, 1), filled((n * n) as usize, 2), Bytes::new((n * n * 4) as usize));
    for kc in [256, 512, 768, 1024, 2048] {
        for mc in [70, 140, 280, 560] {
            for nc in [256, 512, 1024] {
                let mut s = base.clone();
                s.directives.retain(|d| !matches!(d, Directive::Block { .. }));
                s.directives.push(Directive::Block { axis: k, size: kc });
                for d in &mut s.directives {
                    match d {
                        Directive::Tile { axis, size } if axis.0 == 0 => *size = mc,
                        Directive::Tile { axis, size } if axis.0 == 1 => *size = nc,
                        _ => {}
                    }
                }
                let c = support::compile_schedule(s);
                let t = time(&c, &[&p, &q, &out], 1);
                println!("{n}: kc {kc} mc {mc} nc {nc}: {:.1} GFLOP/s", 2.0 * (n * n * n) as f64 / t / 1e9);
            }
        }
    }
}

fn main() {
    let which = std::env::args().nth(1).unwrap_or_default();
    let wants = |name: &str| which.is_empty() || which == name;
    if wants("elementwise") {
        elementwise();
    }
    if wants("reduce") {
        reduce("all", &[32 << 20], &[0]);
        reduce("inner", &[32 << 10, 1024], &[1]);
        reduce("outer", &[32 << 10, 1024], &[0]);
        reduce("mixed", &[64, 256, 2048], &[0, 2]);
    }
    if wants("softmax") {
        softmax(4096, 1024);
        softmax(100_000, 64);
    }
    if wants("transpose") {
        transpose(1024, 1024);
        transpose(4096, 4096);
    }
    if which == "blocks" {
        blocks(2048);
    }
    if wants("matmul") {
        for n in [16, 32, 64, 128, 256, 512, 1000, 1024, 2048] {
            matmul(n, n, n);
        }
        matmul(1, 4096, 4096);
        matmul(4096, 1, 4096);
        matmul(16, 1024, 1024);
        for m in [1, 16, 128, 1024] {
            product(m, 1024, 1024, true);
        }
        product(1, 4096, 4096, true);
    }
}
