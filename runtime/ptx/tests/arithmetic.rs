//! Arithmetic of every class against Rust's.

mod common;

use common::*;

const THREADS: u32 = 256;

/// Runs `d = instruction a, b, c` for random operands and compares with a function.
fn check(
    instruction: &str,
    width: u32,
    out: u32,
    random: impl Fn(&mut Random) -> u64,
    want: impl Fn(u64, u64, u64) -> u64,
) {
    let mask = |bits: u32| if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    let mut random_state = Random(0x1234_5678 ^ (instruction.len() as u64 * 77));
    let mut operand = || (0..THREADS).map(|_| random(&mut random_state) & mask(width)).collect::<Vec<u64>>();
    let (a, b, c) = (operand(), operand(), operand());
    let reg = |bits: u32, n: u32| match bits {
        16 => format!("%h{n}"),
        32 => format!("%r{n}"),
        _ => format!("%d{}", n + 10),
    };
    let mut text = addresses(&[8, 8, 8, 8]);
    for (n, from) in [(1, 1), (2, 2), (3, 3)] {
        text += &format!("ld.global.u{width} {}, [%d{from}];\n", reg(width, n));
    }
    let call = instruction
        .replace("$d", &reg(out, 4))
        .replace("$a", &reg(width, 1))
        .replace("$b", &reg(width, 2))
        .replace("$c", &reg(width, 3));
    text += &call;
    text += &format!("\nmov.u64 %d20, 0;\nst.global.u64 [%d0], %d20;\nst.global.b{out} [%d0], {};\n", reg(out, 4));
    let mut result = Buffer::poisoned(8 * THREADS as usize);
    let (mut ba, mut bb, mut bc) = (Buffer::u64s(&a), Buffer::u64s(&b), Buffer::u64s(&c));
    let run = Run::threads(THREADS).go(&kernel(4, &text), &mut [&mut result, &mut ba, &mut bb, &mut bc]);
    run.unwrap_or_else(|e| panic!("{instruction}: {e}"));
    for at in 0..THREADS as usize {
        let want = want(a[at], b[at], c[at]) & mask(out);
        let got = result.to_u64s()[at];
        assert_eq!(got, want, "{instruction}: a {:#x} b {:#x} c {:#x}: {got:#x} not {want:#x}", a[at], b[at], c[at]);
    }
}

macro_rules! integers {
    ($t:ident, $name:literal, $bits:literal, $wide:ident) => {
        let int = |r: &mut Random| r.integer();
        let two = |instruction: &str, f: fn($t, $t) -> $t| {
            let text = format!("{instruction}.{} $d, $a, $b;", $name);
            check(&text, $bits, $bits, int, move |a, b, _| f(a as $t, b as $t) as u64);
        };
        two("add", $t::wrapping_add);
        two("sub", $t::wrapping_sub);
        two("mul.lo", $t::wrapping_mul);
        two("mul.hi", |a, b| ((a as i128 as $wide).wrapping_mul(b as $wide) >> $bits) as $t);
        two("min", $t::min);
        two("max", $t::max);
        two("div", |a, b| if b == 0 { !0 } else { a.wrapping_div(b) });
        two("rem", |a, b| if b == 0 { a } else { a.wrapping_rem(b) });
        let mad = format!("mad.lo.{} $d, $a, $b, $c;", $name);
        check(&mad, $bits, $bits, int, |a, b, c| (a as $t).wrapping_mul(b as $t).wrapping_add(c as $t) as u64);
        let compare = |name: &str, f: fn(&$t, &$t) -> bool| {
            let text = format!("setp.{name}.{} %p1, $a, $b; selp.u32 $d, 7, 9, %p1;", $name);
            check(&text, $bits, 32, int, move |a, b, _| if f(&(a as $t), &(b as $t)) { 7 } else { 9 });
        };
        compare("eq", $t::eq);
        compare("ne", $t::ne);
        compare("lt", $t::lt);
        compare("le", $t::le);
        compare("gt", $t::gt);
        compare("ge", $t::ge);
        let small = |r: &mut Random| if r.next().is_multiple_of(2) { r.next() % 70 } else { r.integer() };
        let shift = format!("cvt.u32.u{} %r9, $b; shr.{} $d, $a, %r9;", $bits, $name);
        check(&shift, $bits, $bits, small, |a, b, _| {
            // The distance is a number of 32 bits, and what is too far leaves the sign.
            (a as $t as i128 >> (b as u32).min(100)) as u64
        });
    };
}

#[test]
fn integers_of_all_sizes() {
    integers!(i16, "s16", 16, i128);
    integers!(u16, "u16", 16, u128);
    integers!(i32, "s32", 32, i128);
    integers!(u32, "u32", 32, u128);
    integers!(i64, "s64", 64, i128);
    integers!(u64, "u64", 64, u128);
}

#[test]
fn pairs_of_integers() {
    let each = |f: fn(u16, u16) -> u16| {
        move |a: u64, b: u64, _: u64| {
            let of = |n: u32| u64::from(f((a >> n) as u16, (b >> n) as u16)) << n;
            of(0) | of(16)
        }
    };
    let int = |r: &mut Random| r.integer();
    check("add.s16x2 $d, $a, $b;", 32, 32, int, each(u16::wrapping_add));
    check("min.u16x2 $d, $a, $b;", 32, 32, int, each(u16::min));
    check("max.u16x2 $d, $a, $b;", 32, 32, int, each(u16::max));
    check("min.s16x2 $d, $a, $b;", 32, 32, int, each(|x, y| (x as i16).min(y as i16) as u16));
    check("max.s16x2 $d, $a, $b;", 32, 32, int, each(|x, y| (x as i16).max(y as i16) as u16));
}

#[test]
fn wide_products_and_signs() {
    let int = |r: &mut Random| r.integer();
    check("mul.wide.s32 $d, $a, $b;", 32, 64, int, |a, b, _| (a as i32 as i64 * b as i32 as i64) as u64);
    check("mul.wide.u32 $d, $a, $b;", 32, 64, int, |a, b, _| a * b);
    check("mul.wide.s16 $d, $a, $b;", 16, 32, int, |a, b, _| (a as i16 as i32 * b as i16 as i32) as u64);
    check("cvt.s64.s32 %d30, $c; mad.wide.s32 $d, $a, $b, %d30;", 32, 64, int, |a, b, c| {
        (a as i32 as i64 * b as i32 as i64).wrapping_add(c as i32 as i64) as u64
    });
    check("neg.s32 $d, $a;", 32, 32, int, |a, _, _| (a as i32).wrapping_neg() as u64);
    check("abs.s64 $d, $a;", 64, 64, int, |a, _, _| (a as i64).wrapping_abs() as u64);
    check("not.b16 $d, $a;", 16, 16, int, |a, _, _| !a);
    check("add.sat.s32 $d, $a, $b;", 32, 32, int, |a, b, _| (a as i32).saturating_add(b as i32) as u64);
    check("sad.u32 $d, $a, $b, $c;", 32, 32, int, |a, b, c| {
        (a as u32).abs_diff(b as u32).wrapping_add(c as u32).into()
    });
}

#[test]
fn carries() {
    let int = |r: &mut Random| r.integer();
    let split = "mov.b64 {%r1, %r2}, $a; mov.b64 {%r3, %r4}, $b;";
    let add = format!("{split} add.cc.u32 %r5, %r1, %r3; addc.u32 %r6, %r2, %r4; mov.b64 $d, {{%r5, %r6}};");
    check(&add, 64, 64, int, |a, b, _| a.wrapping_add(b));
    let sub = format!("{split} sub.cc.u32 %r5, %r1, %r3; subc.u32 %r6, %r2, %r4; mov.b64 $d, {{%r5, %r6}};");
    check(&sub, 64, 64, int, |a, b, _| a.wrapping_sub(b));
}

#[test]
fn bits() {
    let int = |r: &mut Random| r.integer();
    check("popc.b64 $d, $a;", 64, 32, int, |a, _, _| a.count_ones().into());
    check("clz.b32 $d, $a;", 32, 32, int, |a, _, _| (a as u32).leading_zeros().into());
    check("brev.b64 $d, $a;", 64, 64, int, |a, _, _| a.reverse_bits());
    check("bfind.u32 $d, $a;", 32, 32, int, |a, _, _| if a == 0 { u64::MAX } else { 63 - a.leading_zeros() as u64 });
    check("bfind.s32 $d, $a;", 32, 32, int, |a, _, _| {
        let a = a as i32;
        let a = if a < 0 { !a } else { a } as u32;
        if a == 0 { u64::MAX } else { 31 - u64::from(a.leading_zeros()) }
    });
    check("lop3.b32 $d, $a, $b, $c, 0xE8;", 32, 32, int, |a, b, c| a & b | a & c | b & c);
    check("lop3.b32 $d, $a, $b, $c, 0x96;", 32, 32, int, |a, b, c| a ^ b ^ c);
    check("prmt.b32 $d, $a, $b, 0x5140;", 32, 32, int, |a, b, _| {
        a & 0xFF | (b & 0xFF) << 8 | (a & 0xFF00) << 8 | (b >> 8 & 0xFF) << 24
    });
    check("prmt.b32 $d, $a, $b, 0x8888;", 32, 32, int, |a, _, _| if a & 0x80 != 0 { u64::MAX } else { 0 });
    check("shf.l.wrap.b32 $d, $a, $b, $c;", 32, 32, int, |a, b, c| (b << 32 | a) << (c & 31) >> 32);
    check("shf.r.wrap.b32 $d, $a, $b, $c;", 32, 32, int, |a, b, c| (b << 32 | a) >> (c & 31));
    let small = |r: &mut Random| if r.next().is_multiple_of(2) { r.next() % 40 } else { r.integer() };
    check("shf.r.clamp.b32 $d, $a, $b, $c;", 32, 32, small, |a, b, c| (b << 32 | a) >> c.min(32));
    check("shl.b32 $d, $a, $b;", 32, 32, small, |a, b, _| if b > 31 { 0 } else { a << b });
    let field = |a: u64, at: u64, len: u64, signed: bool| -> u64 {
        // As the manual's pseudocode says, for 32 bits.
        let (at, len) = (at & 0xFF, len & 0xFF);
        let sign = if !signed || len == 0 { 0 } else { a >> (at + len - 1).min(31) & 1 };
        (0..32).fold(0, |d, i| d | (if i < len && at + i < 32 { a >> (at + i) & 1 } else { sign }) << i)
    };
    check("bfe.u32 $d, $a, $b, $c;", 32, 32, small, move |a, b, c| field(a, b, c, false));
    check("bfe.s32 $d, $a, $b, $c;", 32, 32, small, move |a, b, c| field(a, b, c, true));
    check("bfi.b32 $d, $a, $b, $c, 7;", 32, 32, small, |a, b, c| {
        let at = c & 0xFF;
        (0..7u64).filter(|i| at + i < 32).fold(b, |d, i| d & !(1 << (at + i)) | (a >> i & 1) << (at + i))
    });
    check("bfi.b64 $d, $a, $b, 5, 9;", 64, 64, int, |a, b, _| b & !(0x1FF << 5) | (a & 0x1FF) << 5);
    check("slct.b32.s32 $d, $a, $b, $c;", 32, 32, int, |a, b, c| if (c as i32) >= 0 { a } else { b });
    check("mov.b32 {%h1, %h2}, $a; mov.b32 $d, {%h2, %h1};", 32, 32, int, |a, _, _| a << 16 | a >> 16);
    check("mov.b64 {%h1, %h2, %h3, %h4}, $a; mov.b64 $d, {%h4, %h3, %h2, %h1};", 64, 64, int, |a, _, _| {
        a << 48 | (a >> 16 & 0xFFFF) << 32 | (a >> 32 & 0xFFFF) << 16 | a >> 48
    });
}

#[test]
fn predicates() {
    let int = |r: &mut Random| r.next() % 3;
    let text = "setp.eq.u32 %p3, $c, 0; setp.lt.and.u32 %p1|%p2, $a, $b, !%p3; selp.u32 %r8, 1, 0, %p1; \
                selp.u32 %r9, 2, 0, %p2; or.b32 $d, %r8, %r9;";
    check(text, 32, 32, int, |a, b, c| u64::from(a < b && c != 0) | u64::from(a >= b && c != 0) << 1);
    let text = "setp.lt.u32 %p1, $a, $b; mov.u32 $d, 5; @%p1 mov.u32 $d, 6; @!%p1 add.u32 $d, $d, 10; \
                @%p1 setp.eq.and.u32 %p1, $a, 0, %p1; @%p1 add.u32 $d, $d, 1;";
    check(text, 32, 32, int, |a, b, _| if a < b { 6 + u64::from(a == 0) } else { 15 });
    check("set.lt.u32.u32 $d, $a, $b;", 32, 32, int, |a, b, _| if a < b { u64::MAX } else { 0 });
}

/// Numbers of all sizes, zeros of both signs, infinities and NaN.
fn float32(r: &mut Random) -> u64 {
    let special = [0u32, 1 << 31, 0x7F80_0000, 0xFF80_0000, 0x7FC0_0000, 1, 0x8000_0001, 0x3F80_0000];
    match r.next() % 4 {
        0 => special[(r.next() % 8) as usize].into(),
        1 => u64::from((r.unit() * 8.0).to_bits()),
        _ => r.next() & 0xFFFF_FFFF,
    }
}

fn bits32(value: f32) -> u64 {
    if value.is_nan() { 0x7FFF_FFFF } else { value.to_bits().into() }
}

#[test]
fn floats() {
    let f = |v: u64| f32::from_bits(v as u32);
    check("add.rn.f32 $d, $a, $b;", 32, 32, float32, |a, b, _| bits32(f(a) + f(b)));
    check("sub.f32 $d, $a, $b;", 32, 32, float32, |a, b, _| bits32(f(a) - f(b)));
    check("mul.f32 $d, $a, $b;", 32, 32, float32, |a, b, _| bits32(f(a) * f(b)));
    check("div.rn.f32 $d, $a, $b;", 32, 32, float32, |a, b, _| bits32(f(a) / f(b)));
    check("fma.rn.f32 $d, $a, $b, $c;", 32, 32, float32, |a, b, c| bits32(f(a).mul_add(f(b), f(c))));
    check("sqrt.rn.f32 $d, $a;", 32, 32, float32, |a, _, _| bits32(f(a).sqrt()));
    check("rcp.rn.f32 $d, $a;", 32, 32, float32, |a, _, _| bits32(1.0 / f(a)));
    let flush = |v: f32| if v.is_subnormal() { 0f32.copysign(v) } else { v };
    check("mul.ftz.f32 $d, $a, $b;", 32, 32, float32, |a, b, _| bits32(flush(flush(f(a)) * flush(f(b)))));
    check("copysign.f32 $d, $a, $b;", 32, 32, float32, |a, b, _| f(b).copysign(f(a)).to_bits().into());
    let least = |a: f32, b: f32| match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ if a == b => {
            if a.is_sign_negative() {
                a
            } else {
                b
            }
        }
        _ => a.min(b),
    };
    check("min.f32 $d, $a, $b;", 32, 32, float32, |a, b, _| bits32(least(f(a), f(b))));
    check("max.f32 $d, $a, $b;", 32, 32, float32, |a, b, _| {
        let most = least(-f(a), -f(b));
        if most.is_nan() { 0x7FFF_FFFF } else { bits32(-most) }
    });
    check("min.NaN.f32 $d, $a, $b;", 32, 32, float32, |a, b, _| {
        if f(a).is_nan() || f(b).is_nan() { 0x7FFF_FFFF } else { bits32(least(f(a), f(b))) }
    });
    check("add.sat.f32 $d, $a, $b;", 32, 32, float32, |a, b, _| {
        let sum = f(a) + f(b);
        if sum > 0.0 { bits32(sum.min(1.0)) } else { 0 }
    });
    for (name, want) in [
        ("ltu", (|a, b| a < b || a.is_nan() || b.is_nan()) as fn(f32, f32) -> bool),
        ("equ", |a, b| a == b || a.is_nan() || b.is_nan()),
        ("neu", |a, b| a != b),
        ("ne", |a, b| a != b && !a.is_nan() && !b.is_nan()),
        ("num", |a, b| !a.is_nan() && !b.is_nan()),
        ("nan", |a, b| a.is_nan() || b.is_nan()),
        ("ge", |a, b| a >= b),
    ] {
        let text = format!("setp.{name}.f32 %p1, $a, $b; selp.u32 $d, 1, 0, %p1;");
        check(&text, 32, 32, float32, move |a, b, _| want(f(a), f(b)).into());
    }
    check("testp.subnormal.f32 %p1, $a; selp.u32 $d, 1, 0, %p1;", 32, 32, float32, |a, _, _| {
        f(a).is_subnormal().into()
    });
}

#[test]
fn pairs_and_threes() {
    let f = |v: u64| f32::from_bits(v as u32);
    let random = |r: &mut Random| u64::from(r.unit().to_bits()) | u64::from(r.unit().to_bits()) << 32;
    check("fma.rn.f32x2 $d, $a, $b, $c;", 64, 64, random, |a, b, c| {
        bits32(f(a).mul_add(f(b), f(c))) | bits32(f(a >> 32).mul_add(f(b >> 32), f(c >> 32))) << 32
    });
    check("max.f32 $d, $a, $b, $c;", 32, 32, random, |a, b, c| bits32(f(a).max(f(b)).max(f(c))));
}

#[test]
fn doubles() {
    let g = f64::from_bits;
    let random = |r: &mut Random| if r.next().is_multiple_of(3) { r.next() } else { f64::from(r.unit()).to_bits() };
    let bits = |v: f64| if v.is_nan() { 0x7FFF_FFFF_FFFF_FFFF } else { v.to_bits() };
    check("add.rn.f64 $d, $a, $b;", 64, 64, random, |a, b, _| bits(g(a) + g(b)));
    check("div.rn.f64 $d, $a, $b;", 64, 64, random, |a, b, _| bits(g(a) / g(b)));
    check("fma.rn.f64 $d, $a, $b, $c;", 64, 64, random, |a, b, c| bits(g(a).mul_add(g(b), g(c))));
    check("sqrt.rn.f64 $d, $a;", 64, 64, random, |a, _, _| bits(g(a).sqrt()));
    check("add.f64 $d, $a, 0d3FF0000000000000;", 64, 64, random, |a, _, _| bits(g(a) + 1.0));
    check("add.f64 $d, $a, 1.5;", 64, 64, random, |a, _, _| bits(g(a) + 1.5));
}

#[test]
fn halves() {
    use half::{bf16, f16};
    let random = |r: &mut Random| r.next();
    // A sum or product of two halves is exact in f64, and so is rounded once.
    let round16 = |v: f64| {
        if v.is_nan() { 0x7FFF } else { u64::from(nearest(v, f16::MAX.to_f64(), |b| f16::from_bits(b).to_f64())) }
    };
    let brain = |v: f64| {
        if v.is_nan() { 0x7FFF } else { u64::from(nearest(v, bf16::MAX.to_f64(), |b| bf16::from_bits(b).to_f64())) }
    };
    let h = |v: u64| f16::from_bits(v as u16).to_f64();
    let b = |v: u64| bf16::from_bits(v as u16).to_f64();
    check("add.rn.f16 $d, $a, $b;", 16, 16, random, |x, y, _| round16(h(x) + h(y)));
    check("mul.rn.f16 $d, $a, $b;", 16, 16, random, |x, y, _| round16(h(x) * h(y)));
    check("fma.rn.f16 $d, $a, $b, $c;", 16, 16, random, |x, y, z| round16(h(x).mul_add(h(y), h(z))));
    check("fma.rn.bf16 $d, $a, $b, $c;", 16, 16, random, |x, y, z| brain(b(x).mul_add(b(y), b(z))));
    check("sub.rn.bf16x2 $d, $a, $b;", 32, 32, random, |x, y, _| {
        brain(b(x) - b(y)) | brain(b(x >> 16) - b(y >> 16)) << 16
    });
    check("add.f16x2 $d, $a, $b;", 32, 32, random, |x, y, _| {
        round16(h(x) + h(y)) | round16(h(x >> 16) + h(y >> 16)) << 16
    });
    check("setp.lt.f16 %p1, $a, $b; selp.u16 $d, 1, 0, %p1;", 16, 16, random, |x, y, _| (h(x) < h(y)).into());
    check(
        "setp.lt.f16x2 %p1|%p2, $a, $b; selp.u32 %r8, 1, 0, %p1; selp.u32 %r9, 2, 0, %p2; or.b32 $d, %r8, %r9;",
        32,
        32,
        random,
        |x, y, _| u64::from(h(x) < h(y)) | u64::from(h(x >> 16) < h(y >> 16)) << 1,
    );
}

/// The nearest of all 16-bit encodings, found by bisection over the positive ones.
fn nearest(value: f64, largest: f64, decode: impl Fn(u16) -> f64) -> u16 {
    let (sign, size) = (u16::from(value.is_sign_negative()) << 15, value.abs());
    let (mut low, mut high) = (0u16, 0x7FFF);
    // The largest finite encoding that is not above the number.
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if decode(middle) <= size { low = middle } else { high = middle }
    }
    if decode(low).is_infinite() {
        return sign | low;
    }
    let up = low + 1;
    let up_value = if decode(up).is_infinite() { 2.0 * largest - decode(low - 1) } else { decode(up) };
    let (below, above) = (size - decode(low), up_value - size);
    sign | if below < above || below == above && low % 2 == 0 { low } else { up }
}
