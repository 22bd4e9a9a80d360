//! Shuffles, votes and the like against a direct model, for whole warps and for groups of lanes.

mod common;

use common::*;
use tessera_ptx::Options;

fn seeds() -> impl Iterator<Item = Options> {
    (0..4).map(|seed| Options { seed, races: true, workers: 1, limit: 0 })
}

/// Runs a body that leaves its result in `%r4`, with the input in `%r1`, on so many threads.
fn run(body: &str, input: &[u32]) -> Vec<u32> {
    let mut results = Vec::new();
    for options in seeds() {
        let text = addresses(&[4, 4])
            + "ld.global.u32 %r1, [%d1];\nmov.u32 %r2, %laneid;\n"
            + body
            + "\nst.global.u32 [%d0], %r4;\n";
        let (mut out, mut source) = (Buffer::poisoned(4 * input.len()), Buffer::u32s(input));
        let run = Run { options, ..Run::threads(input.len() as u32) };
        run.go(&kernel(2, &text), &mut [&mut out, &mut source]).unwrap_or_else(|e| panic!("{e}"));
        results.push(out.to_u32s()[..input.len()].to_vec());
    }
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "the order of the lanes shows");
    results.swap_remove(0)
}

fn input(n: u32) -> Vec<u32> {
    let mut random = Random(3);
    (0..n).map(|_| random.next() as u32).collect()
}

/// The source of a shuffle by the manual: segments of `width` lanes.
fn source(mode: &str, lane: u32, by: u32, width: u32) -> Option<u32> {
    let first = lane / width * width;
    let to = match mode {
        "up" => lane.checked_sub(by).filter(|to| *to >= first),
        "down" => Some(lane + by).filter(|to| *to < first + width),
        "bfly" => Some(lane ^ by).filter(|to| *to < first + width),
        _ => Some(first + by % width),
    };
    to.filter(|to| *to < 32)
}

#[test]
fn shuffles_of_all_widths() {
    let values = input(64);
    for mode in ["up", "down", "bfly", "idx"] {
        for width in [1, 2, 4, 8, 16, 32] {
            for by in [0, 1, 2, 3, 5, 8, 16, 17, 31] {
                let clamp = if mode == "up" { 0 } else { 31 };
                let c = (32 - width) << 8 | clamp;
                let body = format!(
                    "shfl.sync.{mode}.b32 %r3|%p1, %r1, {by}, {c}, -1;\nselp.u32 %r5, 1, 0, %p1;\nshl.b32 %r5, %r5, 31;\n\
                     and.b32 %r4, %r3, 0x7FFFFFFF;\nor.b32 %r4, %r4, %r5;"
                );
                for (thread, got) in run(&body, &values).into_iter().enumerate() {
                    let (lane, warp) = (thread as u32 % 32, thread / 32 * 32);
                    let from = source(mode, lane, by, width);
                    let want =
                        values[warp + from.unwrap_or(lane) as usize] & 0x7FFF_FFFF | u32::from(from.is_some()) << 31;
                    assert_eq!(got, want, "{mode} by {by} width {width} lane {lane}");
                }
            }
        }
    }
}

/// Both halves of a warp run a loop of their own length, each with its own mask: a sum by butterflies inside.
#[test]
fn halves_with_different_trip_counts() {
    let body = "setp.lt.u32 %p1, %r2, 16;\nselp.u32 %r10, 0xFFFF, 0xFFFF0000, %p1;\nselp.u32 %r11, 3, 7, %p1;\nmov.u32 %r4, %r1;\n\
        mov.u32 %r12, 0;\nL:\nshfl.sync.bfly.b32 %r5, %r4, 8, 0x101F, %r10;\nadd.u32 %r4, %r4, %r5;\n\
        shfl.sync.bfly.b32 %r5, %r4, 1, 0x101F, %r10;\nadd.u32 %r4, %r4, %r5;\n\
        add.u32 %r12, %r12, 1;\nsetp.lt.u32 %p2, %r12, %r11;\n@%p2 bra L;\nbar.warp.sync %r10;";
    let values = input(64);
    let got = run(body, &values);
    for warp in 0..2 {
        let mut lanes = values[32 * warp..][..32].to_vec();
        for (half, trips) in [(0, 3), (16, 7)] {
            for _ in 0..trips {
                for by in [8, 1] {
                    let old = lanes.clone();
                    (half..half + 16).for_each(|lane| lanes[lane] = old[lane].wrapping_add(old[lane ^ by]));
                }
            }
        }
        assert_eq!(got[32 * warp..][..32], lanes);
    }
}

#[test]
fn votes_and_matches() {
    let values: Vec<u32> = input(64).iter().map(|v| v % 3).collect();
    let lanes = |thread: usize| thread / 32 * 32..thread / 32 * 32 + 32;
    let half = |thread: usize| if thread % 32 < 16 { 0xFFFFu32 } else { 0xFFFF_0000 };
    let prefix = "setp.lt.u32 %p1, %r2, 16;\nselp.u32 %r10, 0xFFFF, 0xFFFF0000, %p1;\nsetp.eq.u32 %p2, %r1, 0;\n";
    let ballot = |thread: usize, f: &dyn Fn(u32) -> bool| {
        lanes(thread).fold(0u32, |all, t| all | u32::from(f(values[t])) << (t % 32)) & half(thread)
    };
    let check = |body: &str, want: &dyn Fn(usize) -> u32| {
        for (thread, got) in run(&format!("{prefix}{body}"), &values).into_iter().enumerate() {
            assert_eq!(got, want(thread), "{body} thread {thread}");
        }
    };
    check("vote.sync.ballot.b32 %r4, %p2, %r10;", &|t| ballot(t, &|v| v == 0));
    check("vote.sync.ballot.b32 %r4, !%p2, %r10;", &|t| ballot(t, &|v| v != 0));
    check("vote.sync.any.pred %p3, %p2, %r10; selp.u32 %r4, 1, 0, %p3;", &|t| u32::from(ballot(t, &|v| v == 0) != 0));
    check("vote.sync.all.pred %p3, %p2, %r10; selp.u32 %r4, 1, 0, %p3;", &|t| {
        u32::from(ballot(t, &|v| v == 0) == half(t))
    });
    check("match.any.sync.b32 %r4, %r1, %r10;", &|t| ballot(t, &|v| v == values[t]));
    check("match.all.sync.b32 %r4|%p3, %r10, %r10;", &half);
    check("match.all.sync.b32 %r4|%p3, %r2, %r10; @%p3 mov.u32 %r4, 9;", &|_| 0);
    check("redux.sync.add.u32 %r4, %r1, %r10;", &|t| {
        lanes(t).filter(|o| half(t) >> (o % 32) & 1 == 1).map(|o| values[o]).sum()
    });
    check("redux.sync.max.s32 %r4, %r1, %r10;", &|t| {
        lanes(t).filter(|o| half(t) >> (o % 32) & 1 == 1).map(|o| values[o]).max().unwrap_or(0)
    });
    check("mov.u32 %r4, 0; elect.sync %r5|%p3, %r10; @%p3 mov.u32 %r4, 1;", &|t| u32::from(t % 16 == 0));
    check("mov.u32 %r4, %lanemask_lt;", &|t| (1u32 << (t % 32)) - 1);
    check("mov.u32 %r4, 0; @%p1 bra A; bra B;\nA: activemask.b32 %r4;\nB:", &|t| if t % 32 < 16 { 0xFFFF } else { 0 });
}

#[test]
fn barriers_of_a_block() {
    let values: Vec<u32> = input(128).iter().map(|v| v % 2).collect();
    let ones: u32 = values.iter().sum();
    let body = "setp.eq.u32 %p2, %r1, 1;\nbar.red.popc.u32 %r4, 0, %p2;";
    assert!(run(body, &values).iter().all(|got| *got == ones));
    // Producers arrive, consumers wait: the second half reads what the first half wrote.
    let body = ".shared .align 4 .b8 s[256];\nmov.u32 %r20, s;\nand.b32 %r21, %r0, 63;\nshl.b32 %r21, %r21, 2;\nadd.u32 %r20, %r20, %r21;\n\
        mov.u32 %r4, 0;\nsetp.lt.u32 %p1, %r0, 64;\n@!%p1 bra W;\nst.shared.u32 [%r20], %r1;\nbar.arrive 1, 128;\nbra D;\nW:\nbar.sync 1, 128;\n\
        ld.shared.u32 %r4, [%r20];\nD:";
    let got = run(body, &values);
    assert_eq!(got[64..], values[..64]);
}

#[test]
fn wrong_masks() {
    let fail = |body: &str| {
        let text = addresses(&[4]) + "mov.u32 %r2, %laneid;\n" + body;
        failure(&Run::threads(32), &kernel(1, &text), &mut [&mut Buffer::poisoned(128)])
    };
    let message = fail("setp.eq.u32 %p1, %r2, 7;\n@%p1 exit;\nbar.warp.sync -1;");
    assert!(message.contains("names lane 7, which has exited"), "{message}");
    let message = fail("setp.lt.u32 %p1, %r2, 16;\n@%p1 bra A;\nbar.warp.sync -1;\nbra B;\nA: bar.warp.sync -1;\nB:");
    assert!(message.contains("at another instruction") && message.matches("bar.warp.sync").count() == 2, "{message}");
    let message = fail("setp.lt.u32 %p1, %r2, 16;\nselp.u32 %r3, -1, 0xFFFF0001, %p1;\nbar.warp.sync %r3;");
    assert!(message.contains("mask"), "{message}");
    let message = fail("shfl.sync.idx.b32 %r3, %r2, 3, 31, 0xF0;");
    assert!(message.contains("does not name the lane itself"), "{message}");
    let message = fail("setp.lt.u32 %p1, %r2, 16;\n@%p1 bra A;\nbar.sync 0;\nbra B;\nA: bar.warp.sync -1;\nB:");
    assert!(message.contains("deadlock"), "{message}");
    let message = fail("setp.lt.u32 %p1, %r2, 16;\n@%p1 bra A;\nbar.sync 0, 64;\nA:");
    assert!(message.contains("barrier of 64 threads"), "{message}");
    let message = fail("setp.lt.u32 %p1, %r2, 16;\n@%p1 bra A;\nbar.sync 0;\nbra B;\nA: bar.sync 0;\nB:");
    assert!(message.contains("different"), "{message}");
}
