//! Products of tensor cores against plain ones.

mod common;

use common::*;
use half::{bf16, f16};
use tessera_ptx::Options;

/// One product of a warp; fragments are loaded by the layouts of the manual, spelled out element by element here.
struct Product {
    name: &'static str,
    m: usize,
    n: usize,
    k: usize,
    /// Bytes of an element of a and b, and of the accumulator.
    bytes: usize,
    out: usize,
}

fn lane_places(p: &Product) -> [Vec<(usize, usize)>; 2] {
    // (row, column) of every element of a lane for lane 0; others follow by group and position.
    let e = (4 / p.bytes).max(1);
    let registers = |rows: usize, columns: usize| (rows * columns / 32).div_ceil(e);
    let a = (0..registers(p.m, p.k)).flat_map(|r| (0..e).map(move |s| (8 * (r % 2), s + 4 * e * (r / 2)))).collect();
    let b = (0..registers(p.k, p.n)).flat_map(|r| (0..e).map(move |s| (s + 4 * e * r, 0))).collect();
    [a, b]
}

/// The text of a kernel that loads fragments packed by the test, multiplies and stores them.
fn text(p: &Product) -> String {
    let per = |rows: usize, columns: usize, bytes: usize| (rows * columns * bytes / 32 / 4).max(1);
    let wide = p.bytes == 8;
    let (a, b) = (per(p.m, p.k, p.bytes.min(4)), per(p.k, p.n, p.bytes.min(4)));
    let c = if wide { 2 } else { per(p.m, p.n, p.out) };
    let (reg, ty, size) = if wide { ("%g", "f64", 8) } else { ("%r", "b32", 4) };
    let list =
        |start: usize, count: usize| (start..start + count).map(|n| format!("{reg}{n}")).collect::<Vec<_>>().join(", ");
    let mut body = addresses(&[(c * size) as u32, (a * size) as u32, (b * size) as u32]);
    let mut load = |start: usize, count: usize, from: usize| {
        for n in 0..count {
            body += &format!("ld.global.{ty} {reg}{}, [%d{from}+{}];\n", start + n, size * n);
        }
    };
    load(10, a, 1);
    load(20, b, 2);
    load(30, c, 0);
    body +=
        &format!("{} {{{}}}, {{{}}}, {{{}}}, {{{}}};\n", p.name, list(40, c), list(10, a), list(20, b), list(30, c));
    for n in 0..c {
        body += &format!("st.global.{ty} [%d0+{}], {reg}{};\n", size * n, 40 + n);
    }
    kernel(3, &body)
}

fn check(
    p: &Product,
    random: impl Fn(&mut Random) -> u64,
    number: impl Fn(u64) -> f64,
    start: impl Fn(f64) -> u64,
    end: impl Fn(u64) -> f64,
) {
    let mut state = Random(17);
    let mut matrix = |rows: usize, columns: usize| (0..rows * columns).map(|_| random(&mut state)).collect::<Vec<_>>();
    let (a, b) = (matrix(p.m, p.k), matrix(p.k, p.n));
    let e = (4 / p.bytes).max(1);
    let [a_places, b_places] = lane_places(p);
    let (mut a_bytes, mut b_bytes, mut c_bytes) = (Vec::new(), Vec::new(), Vec::new());
    let c_places: Vec<(usize, usize)> = (0..p.m * p.n / 32).map(|i| (8 * (i / 2), i % 2)).collect();
    for lane in 0..32 {
        let (group, t) = (lane / 4, lane % 4);
        for (row, column) in &a_places {
            a_bytes.extend(&a[(row + group) * p.k + column + t * e].to_le_bytes()[..p.bytes]);
        }
        for (row, column) in &b_places {
            b_bytes.extend(&b[(row + t * e) * p.n + column + group].to_le_bytes()[..p.bytes]);
        }
        for (row, column) in &c_places {
            let (row, column) = (row + group, column + 2 * t);
            c_bytes.extend(&start((row * 10 + column) as f64 / 8.0).to_le_bytes()[..p.out]);
        }
    }
    let (mut ba, mut bb, mut bc) = (Buffer::of_bytes(&a_bytes), Buffer::of_bytes(&b_bytes), Buffer::of_bytes(&c_bytes));
    Run::threads(32).go(&text(p), &mut [&mut bc, &mut ba, &mut bb]).unwrap_or_else(|e| panic!("{}: {e}", p.name));
    let bytes: Vec<u8> = bc.to_u64s().iter().flat_map(|w| w.to_le_bytes()).collect();
    for lane in 0..32 {
        for (at, (row, column)) in c_places.iter().enumerate() {
            let (row, column) = (row + lane / 4, column + 2 * (lane % 4));
            let mut word = [0; 8];
            word[..p.out].copy_from_slice(&bytes[(lane * c_places.len() + at) * p.out..][..p.out]);
            let first = end(start((row * 10 + column) as f64 / 8.0));
            let want: f64 =
                first + (0..p.k).map(|k| number(a[row * p.k + k]) * number(b[k * p.n + column])).sum::<f64>();
            let got = end(u64::from_le_bytes(word));
            assert!((got - want).abs() <= want.abs() * 1e-3 + 1e-3, "{} ({row},{column}): {got} not {want}", p.name);
        }
    }
}

#[test]
fn products() {
    let f32_start = |v: f64| u64::from((v as f32).to_bits());
    let f32_end = |v: u64| f64::from(f32::from_bits(v as u32));
    let brain = |r: &mut Random| u64::from(bf16::from_f32(r.unit()).to_bits());
    let half = |r: &mut Random| u64::from(f16::from_f32(r.unit()).to_bits());
    let brain_number = |v: u64| bf16::from_bits(v as u16).to_f64();
    let half_number = |v: u64| f16::from_bits(v as u16).to_f64();
    for (name, k) in [
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 16),
        ("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", 8),
    ] {
        check(&Product { name, m: 16, n: 8, k, bytes: 2, out: 4 }, brain, brain_number, f32_start, f32_end);
    }
    for (name, k) in [
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 16),
        ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", 8),
    ] {
        check(&Product { name, m: 16, n: 8, k, bytes: 2, out: 4 }, half, half_number, f32_start, f32_end);
    }
    let name = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16";
    let start = |v: f64| u64::from(f16::from_f64(v).to_bits());
    check(&Product { name, m: 16, n: 8, k: 16, bytes: 2, out: 2 }, half, half_number, start, half_number);
    let single = |r: &mut Random| u64::from(bf16::from_f32(r.unit()).to_f32().to_bits());
    for (name, k) in [
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 8),
        ("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", 4),
    ] {
        check(&Product { name, m: 16, n: 8, k, bytes: 4, out: 4 }, single, f32_end, f32_start, f32_end);
    }
    let name = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64";
    check(
        &Product { name, m: 8, n: 8, k: 4, bytes: 8, out: 8 },
        |r| f64::from(r.unit()).to_bits(),
        f64::from_bits,
        f64::to_bits,
        f64::from_bits,
    );
    let (start, end) = (|v: f64| v as i64 as u64, |v: u64| f64::from(v as u32 as i32));
    let byte = |r: &mut Random| r.next() & 0xFF;
    let name = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32";
    check(&Product { name, m: 16, n: 8, k: 32, bytes: 1, out: 4 }, byte, |v| f64::from(v as i8), start, end);
    let name = "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32";
    check(&Product { name, m: 16, n: 8, k: 32, bytes: 1, out: 4 }, byte, |v| v as f64, start, end);
    let name = "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32";
    // E5M2 is the upper half of f16.
    let eight = |v: u64| f16::from_bits((v as u16 & 0xFF) << 8).to_f64();
    check(&Product { name, m: 16, n: 8, k: 32, bytes: 1, out: 4 }, |r| r.next() & 0xBF, eight, f32_start, f32_end);
}

/// A tile of a product as compilers write it: copies to shared memory, `ldmatrix`, `mma`.
const TILE: &str = "
.shared .align 16 .b8 sa[1024];
.shared .align 16 .b8 sb[512];
mov.u32 %r0, %tid.x;
ld.param.u64 %d1, [p0];
ld.param.u64 %d2, [p1];
ld.param.u64 %d3, [p2];
mul.wide.u32 %d4, %r0, 32;
add.s64 %d1, %d1, %d4;
mov.u32 %r1, sa;
shl.b32 %r2, %r0, 5;
add.u32 %r3, %r1, %r2;
setp.gt.u32 %p1, %r0, 15;
@%p1 bra B;
cp.async.cg.shared.global [%r3], [%d1], 16;
cp.async.cg.shared.global [%r3+16], [%d1+16], 16;
mul.wide.u32 %d5, %r0, 16;
add.s64 %d2, %d2, %d5;
mov.u32 %r4, sb;
shl.b32 %r5, %r0, 4;
add.u32 %r5, %r4, %r5;
cp.async.cg.shared.global [%r5], [%d2], 16;
B:
cp.async.commit_group;
cp.async.wait_group 0;
SYNC
and.b32 %r6, %r0, 15;
shl.b32 %r7, %r6, 5;
shr.u32 %r8, %r0, 4;
shl.b32 %r8, %r8, 4;
add.u32 %r9, %r1, %r7;
add.u32 %r9, %r9, %r8;
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r9];
shl.b32 %r14, %r6, 4;
mov.u32 %r4, sb;
add.u32 %r14, %r4, %r14;
ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r15, %r16}, [%r14];
mov.b32 %r20, 0f00000000;
mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r21, %r22, %r23, %r24}, {%r10, %r11, %r12, %r13}, {%r15, %r16}, {%r20, %r20, %r20, %r20};
shr.u32 %r30, %r0, 2;
and.b32 %r31, %r0, 3;
shl.b32 %r32, %r30, 5;
shl.b32 %r33, %r31, 3;
add.u32 %r32, %r32, %r33;
cvt.u64.u32 %d6, %r32;
add.s64 %d3, %d3, %d6;
st.global.v2.b32 [%d3], {%r21, %r22};
st.global.v2.b32 [%d3+256], {%r23, %r24};
";

#[test]
fn a_tile() {
    let mut random = Random(23);
    let mut matrix = |n: usize| (0..n).map(|_| bf16::from_f32(random.unit()).to_bits()).collect::<Vec<u16>>();
    let (a, b) = (matrix(256), matrix(128));
    let number = |v: u16| bf16::from_bits(v).to_f32();
    for seed in 0..5 {
        let (mut ba, mut bb, mut bc) = (Buffer::u16s(&a), Buffer::u16s(&b), Buffer::poisoned(512));
        let run = Run { options: Options { seed, races: true, workers: 1, limit: 0 }, ..Run::threads(32) };
        let text = kernel(3, &TILE.replace("SYNC", "bar.warp.sync -1;"));
        run.go(&text, &mut [&mut ba, &mut bb, &mut bc]).unwrap();
        for (at, got) in bc.to_f32s().iter().enumerate() {
            let want: f32 = (0..16).map(|k| number(a[at / 8 * 16 + k]) * number(b[k * 8 + at % 8])).sum();
            assert!((got - want).abs() < 1e-4, "{at}: {got} not {want}");
        }
        // Without the barrier the copies of one lane are read by another.
        let message = failure(&run, &kernel(3, &TILE.replace("SYNC", "")), &mut [&mut ba, &mut bb, &mut bc]);
        assert!(message.contains("race") && message.contains("ldmatrix") && message.contains("cp.async"), "{message}");
    }
}

#[test]
fn stored_matrices() {
    let body = addresses(&[4])
        + ".shared .align 16 .b8 s[128];\nmov.u32 %r1, s;\nand.b32 %r2, %r0, 7;\nshl.b32 %r2, %r2, 4;\nadd.u32 %r3, %r1, %r2;\n\
        stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r3], {%r0};\nbar.warp.sync -1;\nshl.b32 %r4, %r0, 2;\nadd.u32 %r4, %r1, %r4;\nld.shared.u32 %r5, [%r4];\n\
        st.global.u32 [%d0], %r5;";
    let mut out = Buffer::poisoned(128);
    Run::threads(32).go(&kernel(1, &body), &mut [&mut out]).unwrap();
    assert!(out.to_u32s().iter().enumerate().all(|(at, v)| *v == at as u32));
}

/// A tile of a matrix of bytes that reaches over its edge, and an arrival that waits for copies.
#[test]
fn tensor_tiles() {
    unsafe extern "C" {
        fn cuTensorMapEncodeTiled(
            to: *mut [u64; 16],
            kind: u32,
            rank: u32,
            address: u64,
            dims: *const u64,
            strides: *const u64,
            tile: *const u32,
            steps: *const u32,
            interleave: u32,
            swizzle: u32,
            l2: u32,
            fill: u32,
        ) -> u32;
    }
    let values: Vec<u32> = (0..60).collect();
    let mut from = Buffer::u32s(&values);
    let mut map = [0u64; 16];
    // SAFETY: the arrays have two elements, or one for the strides.
    let code = unsafe {
        cuTensorMapEncodeTiled(
            &mut map,
            2,
            2,
            from.address(),
            [10u64, 6].as_ptr(),
            [40u64].as_ptr(),
            [4u32, 8].as_ptr(),
            [1u32, 1].as_ptr(),
            0,
            0,
            0,
            0,
        )
    };
    assert_eq!(code, 0);
    let body = addresses(&[4])
        + ".shared .align 128 .b8 s[256];\n.shared .align 8 .b8 bar[16];\nld.param.u64 %d1, [p1];\nmov.u64 %d2, s;\nmov.u64 %d3, bar;\n\
        setp.ne.u32 %p1, %r0, 0;\n@%p1 bra W;\nmbarrier.init.shared::cta.b64 [%d3], 1;\nmbarrier.init.shared.b64 [bar+8], 33;\nfence.mbarrier_init.release.cluster;\n\
        mbarrier.arrive.expect_tx.shared.b64 _, [%d3], 128;\nmov.u32 %r1, 8;\nmov.u32 %r2, -1;\n\
        cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%d2], [%d1, {%r1, %r2}], [%d3];\n\
        W:\nbar.sync 0;\nL: mbarrier.try_wait.parity.shared.b64 %p2, [%d3], 0;\n@!%p2 bra L;\nmov.u32 %r20, s;\nshl.b32 %r21, %r0, 2;\nadd.u32 %r20, %r20, %r21;\n\
        ld.shared.u32 %r5, [%r20];\nld.param.u64 %d5, [p2];\ncp.async.ca.shared.global [%r20+128], [%d5], 4;\ncp.async.mbarrier.arrive.noinc.shared.b64 [bar+8];\n\
        @!%p1 mbarrier.arrive.shared.b64 %d6, [bar+8];\nM: mbarrier.test_wait.parity.shared.b64 %p2, [bar+8], 0;\n@!%p2 bra M;\n\
        xor.b32 %r21, %r21, 4;\nmov.u32 %r20, s;\nadd.u32 %r20, %r20, %r21;\nld.shared.u32 %r6, [%r20+128];\nadd.u32 %r5, %r5, %r6;\nst.global.u32 [%d0], %r5;";
    let (mut out, mut map) = (Buffer::poisoned(128), Buffer::u64s(&map));
    let mut thousand = Buffer::u32s(&[1000]);
    let mut from_again = Buffer::poisoned(8);
    let text = kernel(4, &body);
    // The matrix is known to the launch as well.
    let run = Run::threads(32);
    assert!(failure(&run, &text, &mut [&mut out, &mut map, &mut thousand, &mut from_again]).contains("outside"));
    run.go(&text, &mut [&mut out, &mut map, &mut thousand, &mut from]).unwrap();
    for (at, got) in out.to_u32s().iter().enumerate() {
        let (x, y) = (8 + at % 4, (at / 4).wrapping_sub(1));
        let want = if x < 10 && y < 6 { (10 * y + x) as u32 } else { 0 };
        assert_eq!(*got, want + 1000, "{at}");
    }
}
