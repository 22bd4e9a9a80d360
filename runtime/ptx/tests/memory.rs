//! Memory: spaces, vectors, atomics, copies, and everything that is wrong.

mod common;

use common::*;
use tessera_ptx::{Kind, Options, parse};

#[test]
fn spaces_and_vectors() {
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n.global .align 4 .u32 table[4] = {10, 20, 0x1E, 40};\n\
        .const .align 8 .u64 pointer = table;\n.shared .align 16 .b8 common[64];\n.extern .shared .align 16 .b8 dynamic[];\n\
        .visible .entry k(.param .u64 p0) .maxntid 64 {\n.reg .b32 %r<20>; .reg .b64 %d<20>; .reg .pred %p<4>; .reg .b16 %h<4>;\n\
        .local .align 16 .b8 depot[32]; .reg .b64 %SP, %SPL;\n\
        mov.u64 %SPL, depot; cvta.local.u64 %SP, %SPL; mov.u32 %r0, %tid.x; \n\
        ld.const.u64 %d1, [pointer]; ld.global.v2.u32 {%r1, %r2}, [%d1]; ld.u32 %r3, [%d1+8]; ld.global.nc.L1::no_allocate.u32 %r4, [table+12];\n\
        st.local.v4.u32 [%SPL+16], {%r1, %r2, %r3, %r4}; ld.v2.u32 {%r5, _}, [%SP+16]; ld.local.u32 %r6, [depot+28];\n\
        shl.b32 %r7, %r0, 2; cvt.u64.u32 %d2, %r7; mov.u64 %d3, dynamic; add.s64 %d3, %d3, %d2; add.u32 %r8, %r5, %r6; st.shared.u32 [%d3], %r8;\n\
        cvta.shared.u64 %d4, %d3; ld.u32 %r9, [%d4]; isspacep.shared %p1, %d4; isspacep.global %p2, %d4; cvta.to.shared.u64 %d5, %d4; setp.eq.u64 %p3, %d5, %d3;\n\
        selp.u32 %r10, 100, 0, %p1; add.u32 %r9, %r9, %r10; selp.u32 %r10, 1000, 0, %p2; add.u32 %r9, %r9, %r10; selp.u32 %r10, 5, 0, %p3; add.u32 %r9, %r9, %r10;\n\
        ld.param.u64 %d6, [p0]; cvta.to.global.u64 %d6, %d6; add.s64 %d6, %d6, %d2; st.global.cs.u32 [%d6+-0], %r9;\n\
        mov.b32 %r11, -3; st.local.b8 [%SPL], %r11; ld.local.s8 %r12, [%SPL]; ld.local.u8 %h1, [%SPL]; cvt.u32.u16 %r13, %h1; add.u32 %r12, %r12, %r13; \n\
        st.global.u32 [%d6+128], %r12; mov.u32 %r14, %dynamic_smem_size; st.global.u32 [%d6+256], %r14; ret; }\n";
    let mut out = Buffer::poisoned(384);
    let run = Run { shared: 128, ..Run::threads(32) };
    run.go(text, &mut [&mut out]).unwrap();
    let out = out.to_u32s();
    assert!(out[..32].iter().all(|v| *v == 50 + 105), "{out:?}");
    assert!(out[32..64].iter().all(|v| *v == 250));
    assert!(out[64..96].iter().all(|v| *v == 128));
}

#[test]
fn atomics_of_many_blocks() {
    let body = "ld.param.u64 %d1, [p0];\nmov.u32 %r1, %tid.x;\nred.global.add.u32 [%d1], 1;\natom.global.add.u64 %d2, [%d1+8], 3;\n\
        atom.global.max.s32 %r2, [%d1+16], %r1;\natom.global.inc.u32 %r3, [%d1+20], 9;\natom.add.f32 %f1, [%d1+24], 0f3F800000;\n\
        atom.global.or.b32 %r4, [%d1+28], 4;\nL:\nld.relaxed.global.u32 %r5, [%d1+32];\nadd.u32 %r6, %r5, 2;\n\
        atom.global.cas.b32 %r7, [%d1+32], %r5, %r6;\nsetp.ne.u32 %p1, %r7, %r5;\n@%p1 bra L;\n\
        atom.global.add.noftz.f16x2 %r8, [%d1+36], 0x3C003C00;";
    let mut out = Buffer::u32s(&[0; 10]);
    let run = Run { grid: [8, 1, 1], ..Run::threads(64) };
    run.go(&kernel(1, body), &mut [&mut out]).unwrap();
    let out = out.to_u32s();
    assert_eq!(out[..6], [512, 0, 1536, 0, 63, 512 % 10]);
    assert_eq!((f32::from_bits(out[6]), out[7], out[8], out[9]), (512.0, 4, 1024, 0x6000_6000));
}

#[test]
fn atomics_in_shared_memory() {
    let body = ".shared .align 8 .b8 s[16];\nmov.u32 %r0, %tid.x;\nsetp.eq.u32 %p1, %r0, 0;\n@%p1 st.shared.v2.u32 [s], {0, 0};\nbar.sync 0;\n\
        atom.shared.add.u32 %r1, [s], %r0;\natom.shared::cta.exch.b32 %r2, [s+4], 7;\nbar.sync 0;\nld.shared.u32 %r3, [s];\n\
        ld.param.u64 %d1, [p0];\n@%p1 st.global.u32 [%d1], %r3;";
    let mut out = Buffer::poisoned(8);
    Run::threads(64).go(&kernel(1, body), &mut [&mut out]).unwrap();
    assert_eq!(out.to_u32s()[0], 63 * 32);
}

/// A copy is there after its wait, and not before.
#[test]
fn copies_arrive_late() {
    let body = |wait: &str| {
        addresses(&[4, 16])
            + ".shared .align 16 .b8 s[1024];\nmov.u32 %r20, s;\nshl.b32 %r21, %r0, 4;\nadd.u32 %r20, %r20, %r21;\n\
        cp.async.cg.shared.global [%r20], [%d1], 16;\ncp.async.commit_group;\ncp.async.ca.shared.global [%r20+512], [%d1], 8, 4;\n\
        cp.async.commit_group;\n"
            + wait
            + "\nbar.sync 0;\nld.shared.u32 %r5, [%r20+8];\nld.shared.v2.u32 {%r6, %r7}, [%r20+512];\n\
        add.u32 %r5, %r5, %r6;\nadd.u32 %r5, %r5, %r7;\nst.global.u32 [%d0], %r5;"
    };
    let values: Vec<u32> = (0..128).map(|n| n * 3 + 1).collect();
    let run = |wait: &str| {
        let (mut out, mut from) = (Buffer::poisoned(128), Buffer::u32s(&values));
        Run::threads(32).go(&kernel(2, &body(wait)), &mut [&mut out, &mut from]).unwrap();
        out.to_u32s()
    };
    for (thread, got) in run("cp.async.wait_group 0;")[..32].iter().enumerate() {
        assert_eq!(*got, values[4 * thread + 2] + values[4 * thread]);
    }
    for (thread, got) in run("cp.async.wait_group 1;")[..32].iter().enumerate() {
        assert_eq!(*got, values[4 * thread + 2].wrapping_sub(2));
    }
    assert_eq!(run("cp.async.wait_all;"), run("cp.async.wait_group 0;"));
}

#[test]
fn mbarriers() {
    let body = ".shared .align 8 .b8 bar[8];\n.shared .align 4 .b8 s[256];\nmov.u32 %r0, %tid.x;\nsetp.eq.u32 %p1, %r0, 0;\n\
        @%p1 mbarrier.init.shared.b64 [bar], 64;\nbar.sync 0;\nmov.u32 %r1, s;\nshl.b32 %r2, %r0, 2;\nadd.u32 %r3, %r1, %r2;\n\
        st.shared.u32 [%r3], %r0;\nmbarrier.arrive.shared.b64 %d5, [bar];\nW:\nmbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n@!%p2 bra W;\n\
        xor.b32 %r2, %r2, 252;\nadd.u32 %r3, %r1, %r2;\nld.shared.u32 %r4, [%r3];\nld.param.u64 %d1, [p0];\nmul.wide.u32 %d2, %r0, 4;\n\
        add.s64 %d1, %d1, %d2;\nst.global.u32 [%d1], %r4;";
    let mut out = Buffer::poisoned(256);
    Run::threads(64).go(&kernel(1, body), &mut [&mut out]).unwrap();
    assert!(out.to_u32s().iter().enumerate().all(|(at, v)| *v == 63 - at as u32));
}

#[test]
fn branches() {
    let body = addresses(&[4])
        + "and.b32 %r1, %r0, 3;\nT: .branchtargets A, B, C, D;\nbrx.idx %r1, T;\n\
        A: mov.u32 %r2, 5; bra E;\nB: mov.u32 %r2, 6; bra.uni E;\nC: mov.u32 %r2, 7; bra E;\nD: mov.u32 %r2, 8;\nE: st.global.u32 [%d0], %r2;";
    let mut out = Buffer::poisoned(128);
    Run::threads(32).go(&kernel(1, &body), &mut [&mut out]).unwrap();
    assert!(out.to_u32s().iter().enumerate().all(|(at, v)| *v == 5 + at as u32 % 4));
}

fn error(threads: u32, body: &str) -> tessera_ptx::Error {
    let mut out = Buffer::poisoned(256);
    Run { grid: [3, 1, 1], ..Run::threads(threads) }.go(&kernel(1, body), &mut [&mut out]).unwrap_err()
}

#[test]
fn wrong_accesses() {
    let at = |plus: u32| format!("ld.param.u64 %d1, [p0];\nst.global.u32 [%d1+{plus}], 1;");
    let found = error(1, &at(256));
    assert_eq!(found.kind, Kind::Address);
    let place = "kernel k, block (0,0,0), thread (0,0,0), line 13 `st.global.u32 [%d1+256], 1;`";
    assert!(found.message.starts_with(place), "{found}");
    assert_eq!(error(1, &at(2)).kind, Kind::Misaligned);
    assert_eq!(error(1, "ld.global.u32 %r1, [0];").kind, Kind::Address);
    assert_eq!(error(1, ".shared .align 4 .b8 s[8];\nld.shared.u32 %r1, [s+16];").kind, Kind::Address);
    assert_eq!(error(1, ".shared .align 8 .b8 s[16];\nld.shared.v2.u32 {%r1, %r2}, [s+4];").kind, Kind::Misaligned);
    assert_eq!(error(1, "trap;").kind, Kind::Fault);
    // Of several blocks that fail the lowest is reported.
    let found = error(64, "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0; @%p1 bra E;\ntrap;\nE:");
    assert!(found.message.contains("block (1,0,0), thread (0,0,0)"), "{found}");
}

#[test]
fn endless_waits() {
    let spin = "ld.param.u64 %d1, [p0];\nL: ld.volatile.global.u32 %r1, [%d1];\nsetp.ne.u32 %p1, %r1, 7;\n@%p1 bra L;";
    assert!(error(2, spin).message.contains("deadlock"));
    let wait = ".shared .align 8 .b8 bar[8];\nmbarrier.init.shared.b64 [bar], 2;\nL: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;\n@!%p1 bra L;";
    assert!(error(1, wait).message.contains("deadlock"));
    // A loop that never comes back to one state is found by a limit only.
    let endless = kernel(0, "mov.u32 %r1, 0;\nL: add.u32 %r1, %r1, 1;\nbra L;");
    let options = Options { limit: 1_000_000, ..Options::default() };
    let found = Run { options, ..Run::threads(3) }.go(&endless, &mut []).unwrap_err();
    assert!(found.message.contains("does not end"), "{found}");
    // Spinning on what another thread or block does is fine.
    let body = "ld.param.u64 %d1, [p0];\nmov.u32 %r0, %tid.x;\nsetp.eq.u32 %p1, %r0, 31;\n@%p1 st.relaxed.gpu.global.u32 [%d1], 7;\n\
        L: ld.acquire.gpu.global.u32 %r1, [%d1];\nsetp.ne.u32 %p1, %r1, 7;\n@%p1 bra L;";
    Run::threads(32).go(&kernel(1, body), &mut [&mut Buffer::poisoned(8)]).unwrap();
}

#[test]
fn races() {
    let body = |sync: &str| {
        format!(
            "{}.shared .align 4 .b8 s[128];\nmov.u32 %r20, s;\nshl.b32 %r21, %r0, 2;\nadd.u32 %r22, %r20, %r21;\nst.shared.u32 [%r22], %r0;\n\
             {sync}\nxor.b32 %r21, %r21, 4;\nadd.u32 %r22, %r20, %r21;\nld.shared.u32 %r5, [%r22];\nst.global.u32 [%d0], %r5;",
            addresses(&[4])
        )
    };
    for seed in 0..5 {
        let run = Run { options: Options { seed, races: true, workers: 1, limit: 0 }, ..Run::threads(32) };
        let message = failure(&run, &kernel(1, &body("")), &mut [&mut Buffer::poisoned(128)]);
        assert!(message.contains("race") && message.contains("line "), "{message}");
        // A shuffle orders nothing.
        let message = failure(
            &run,
            &kernel(1, &body("shfl.sync.idx.b32 %r9, %r0, 0, 31, -1;")),
            &mut [&mut Buffer::poisoned(128)],
        );
        assert!(
            message.contains("`st.shared.u32 [%r22], %r0;`") && message.contains("`ld.shared.u32 %r5, [%r22];`"),
            "{message}"
        );
        for sync in ["bar.warp.sync -1;", "bar.sync 0;"] {
            let mut out = Buffer::poisoned(128);
            run.go(&kernel(1, &body(sync)), &mut [&mut out]).unwrap();
            assert!(out.to_u32s().iter().enumerate().all(|(at, v)| *v == at as u32 ^ 1));
        }
    }
    // Neighbours in global memory, bytes of one word, and equal values.
    let run = Run::threads(64);
    let neighbours = addresses(&[1]) + "st.global.u8 [%d0], %r0;\nld.global.u8 %r5, [%d0];";
    run.go(&kernel(1, &neighbours), &mut [&mut Buffer::poisoned(64)]).unwrap();
    let equal = "ld.param.u64 %d1, [p0];\nst.global.u32 [%d1], 5;";
    run.go(&kernel(1, equal), &mut [&mut Buffer::poisoned(64)]).unwrap();
    let different = "ld.param.u64 %d1, [p0];\nmov.u32 %r0, %tid.x;\nst.global.u32 [%d1], %r0;";
    assert!(failure(&run, &kernel(1, different), &mut [&mut Buffer::poisoned(64)]).contains("race"));
    // A barrier of one warp does not order two warps.
    let other = addresses(&[4])
        + "st.global.u32 [%d0], %r0;\nbar.warp.sync -1;\nld.param.u64 %d1, [p0];\nxor.b32 %r1, %r0, 32;\n\
        mul.wide.u32 %d2, %r1, 4;\nadd.s64 %d1, %d1, %d2;\nld.global.u32 %r2, [%d1];";
    assert!(failure(&run, &kernel(1, &other), &mut [&mut Buffer::poisoned(256)]).contains("race"));
}

#[test]
fn launches_are_checked() {
    let text = kernel(1, "").replace(")\n{", ")\n.reqntid 32, 1, 1\n{");
    let module = parse(&text).unwrap();
    assert_eq!(module.kernels().collect::<Vec<_>>(), ["k"]);
    assert_eq!((module.target(), module.version()), ("sm_90a", "8.0"));
    let run = |threads: u32, count: usize| {
        let (mut a, mut b) = (Buffer::poisoned(8), Buffer::poisoned(8));
        let mut buffers = [&mut a, &mut b];
        Run::threads(threads).module(&module, &mut buffers[..count])
    };
    assert!(run(32, 1).is_ok());
    assert_eq!(run(64, 1).unwrap_err().kind, Kind::Launch);
    assert_eq!(run(32, 2).unwrap_err().kind, Kind::Launch);
    assert_eq!(run(2048, 1).unwrap_err().kind, Kind::Launch);
}

#[test]
fn counts() {
    let body = addresses(&[8]) + "ld.global.u64 %d2, [%d0];\nst.global.u32 [%d0], 1;";
    let counts = Run::threads(32).go(&kernel(1, &body), &mut [&mut Buffer::poisoned(256)]).unwrap();
    assert_eq!((counts.global_bytes_read, counts.global_bytes_written, counts.shared_bytes), (256, 128, 0));
    assert_eq!(counts.instructions, 32 * 10);
}
