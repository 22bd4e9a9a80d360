//! Wrong texts are errors, never panics.

mod common;

use common::*;
use tessera_ptx::{Kind, parse};

const TEXT: &str = r#"//
// A text with a bit of everything.
.version 8.0
.target sm_90a, texmode_independent
.address_size 64
/* a comment
   of two lines */
.file 1 "a.cu"
.extern .shared .align 16 .b8 dynamic[];
.global .align 8 .u64 pointers[2] = {generic(words)+4, words};
.global .align 4 .u32 words[3] = {1, -2, 0x3};
.const .align 4 .b8 bytes[4] = {0xFF(words), 0xFF00(words), 1, 2};
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.visible .entry k(
	.param .u64 .ptr .global .align 1 k_0,
	.param .align 8 .b8 k_1[16]
)
.maxntid 128, 1, 1
.minnctapersm 1
{
	.reg .pred 	%p<3>;
	.reg .b16 	%rs<3>;
	.reg .b32 	%r<20>, extra;
	.reg .b64 	%rd<9>;
	.shared .align 4 .b8 s[64];
	.loc 1 3 5
	ld.param.b64 	%rd1, [k_0];
	ld.param.v2.b32 	{%r1, %r2}, [k_1+8];
	mov.u32 	%r3, %tid.x;
	setp.gt.u32 	%p1, %r3, 31;
	@%p1 bra 	$L__BB0_2;
	.pragma "nounroll";
	{ .reg .pred p; setp.ne.b32 p, 1, 0; selp.b32 %r4, 1, 0, p; }
	shfl.sync.bfly.b32 	%r5|%p2, %r4, 16, 31, -1;
	mov.b32 	{%rs1, %rs2}, %r5;
	cvt.rn.f32.s32 	%r6, %r5;
	fma.rn.f32 	%r7, %r6, 0f3F800000, %r6;
	st.shared.b32 	[s+4], %r7;
	lop3.b32 	%r8, %r1, %r2, %r3, 0x96;
	bar.sync 	0;
$L__BB0_2:
	mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r10, %r11, %r12, %r13}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r7, %r7, %r7, %r7};
	cp.async.cg.shared.global [s], [%rd1], 16;
	atom.global.add.u32 	%r14, [%rd1], %r3;
	st.global.v4.b32 	[%rd1], {%r10, %r11, %r12, %r13};
	ret;
}
	.section	.debug_abbrev
	{
.b8 1
	}
"#;

#[test]
fn the_text_is_right() {
    let module = parse(TEXT).unwrap();
    let (address, bytes) = module.variable("words").unwrap();
    assert_eq!(bytes, 12);
    let (pointers, _) = module.variable("pointers").unwrap();
    // SAFETY: the module holds its variables.
    let found = unsafe { (pointers as *const [u64; 2]).read() };
    assert_eq!(found, [address + 4, address]);
    assert_eq!(module.parameter_bytes("k").unwrap(), [8, 16]);
}

/// What LLVM 22 prints for functions that use a bit of everything, for three architectures.
#[test]
fn texts_of_a_compiler() {
    let texts = [
        (include_str!("data/llvm_sm_80.ptx"), "sm_80"),
        (include_str!("data/llvm_sm_90a.ptx"), "sm_90a"),
        (include_str!("data/llvm_sm_100.ptx"), "sm_100"),
    ];
    for (text, target) in texts {
        let module = parse(text).unwrap_or_else(|e| panic!("{target}: {e}"));
        assert_eq!((module.target(), module.kernels().count()), (target, 1));
    }
}

#[test]
fn every_beginning() {
    let wrong = (0..TEXT.len()).filter(|n| TEXT.is_char_boundary(*n) && parse(&TEXT[..*n]).is_err()).count();
    assert!(wrong > TEXT.len() / 2);
}

/// Replaces bytes by random ones; what still is a text also runs, or fails.
#[test]
fn random_bytes() {
    let marks = b" \n\t,;:.{}[]()<>|@!%$-+=0123456789abcdefrsupxLB_\"/*";
    let mut random = Random(11);
    let mut right = 0;
    for _ in 0..6000 {
        let mut bytes = TEXT.as_bytes().to_vec();
        for _ in 0..1 + random.next() % 3 {
            let at = (random.next() % bytes.len() as u64) as usize;
            match random.next() % 4 {
                0 => drop(bytes.remove(at)),
                1 => bytes.insert(at, marks[(random.next() % marks.len() as u64) as usize]),
                2 => bytes[at] = (random.next() & 0x7F) as u8,
                _ => bytes[at] = marks[(random.next() % marks.len() as u64) as usize],
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        if let Ok(module) = parse(&text) {
            right += 1;
            let mut out = Buffer::poisoned(1024);
            if module.parameter_bytes("k").is_some_and(|p| p.len() == 2) {
                let _ = Run::threads(32).module(&module, &mut [&mut out, &mut Buffer::poisoned(8)]);
            }
        }
    }
    assert!(right > 100);
}

/// Exchanges whole words, which gets further than bytes do.
#[test]
fn random_words() {
    let words: Vec<&str> = TEXT.split_inclusive([' ', '\n', '\t', ',', '.', ';']).collect();
    let mut random = Random(12);
    for _ in 0..6000 {
        let mut words = words.clone();
        for _ in 0..1 + random.next() % 2 {
            let (a, b) = (random.next() as usize % words.len(), random.next() as usize % words.len());
            words[a] = words[b];
        }
        let text = words.concat();
        if let Ok(module) = parse(&text) {
            let (mut a, mut b) = (Buffer::poisoned(1024), Buffer::poisoned(8));
            let _ = Run::threads(32).module(&module, &mut [&mut a, &mut b]);
        }
    }
}

#[test]
fn messages_name_the_place() {
    let wrong = |body: &str| {
        let error = parse(&kernel(0, body)).unwrap_err();
        assert_eq!(error.kind, Kind::Text);
        error.message
    };
    assert_eq!(wrong("frob.u32 %r1, %r2;"), "line 12 `frob.u32 %r1, %r2;`: unknown instruction frob.u32");
    assert!(wrong("add.u32 %r1, %r2;").contains("operand"));
    assert!(wrong("add.u32 %r1, %r2, %r99;").contains("%r99 is not declared"));
    assert!(wrong("add.u64 %r1, %r2, %r3;").contains("a register of 32 bits"));
    assert!(wrong("bra NOWHERE;").contains("no label NOWHERE"));
    assert!(wrong("call f, (%r1);").contains("functions are not supported"));
    assert!(wrong("cvt.s32.f32 %r1, %f1;").contains("rounding"));
    assert!(
        wrong("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r1}, {%r1}, {%r1}, {%r1};")
            .contains("4 registers")
    );
    assert!(parse("").is_err());
    assert!(parse(".version 8.0\n.target sm_80\n").is_ok());
}
