//! Integer arithmetic. Operands are cut to the type; results are filled with zeros.

macro_rules! integers {
    ($($name:ident, $t:ty, $unsigned:ty, $wide:ty, $wide_unsigned:ty;)*) => { $(
        pub mod $name {
            const BITS: u32 = <$t>::BITS;
            fn get(value: u64) -> $t { value as $t }
            fn put(value: $t) -> u64 { value as $unsigned as u64 }
            pub fn add(a: u64, b: u64) -> u64 { put(get(a).wrapping_add(get(b))) }
            pub fn sub(a: u64, b: u64) -> u64 { put(get(a).wrapping_sub(get(b))) }
            pub fn add_sat(a: u64, b: u64) -> u64 { put(get(a).saturating_add(get(b))) }
            pub fn sub_sat(a: u64, b: u64) -> u64 { put(get(a).saturating_sub(get(b))) }
            pub fn mul_lo(a: u64, b: u64) -> u64 { put(get(a).wrapping_mul(get(b))) }
            pub fn mul_hi(a: u64, b: u64) -> u64 { put(((get(a) as $wide * get(b) as $wide) >> BITS) as $t) }
            pub fn mul_wide(a: u64, b: u64) -> u64 { (get(a) as $wide * get(b) as $wide) as $wide_unsigned as u64 }
            pub fn mad_lo(a: u64, b: u64, c: u64) -> u64 { put(get(a).wrapping_mul(get(b)).wrapping_add(get(c))) }
            pub fn mad_hi(a: u64, b: u64, c: u64) -> u64 { add(mul_hi(a, b), c) }
            pub fn mad_wide(a: u64, b: u64, c: u64) -> u64 {
                ((get(a) as $wide * get(b) as $wide).wrapping_add(c as $wide)) as $wide_unsigned as u64
            }
            /// Division by zero gives ones, as the hardware does.
            pub fn div(a: u64, b: u64) -> u64 {
                if get(b) == 0 { return put(!0) }
                put(get(a).wrapping_div(get(b)))
            }
            pub fn rem(a: u64, b: u64) -> u64 {
                if get(b) == 0 { return put(get(a)) }
                put(get(a).wrapping_rem(get(b)))
            }
            pub fn neg(a: u64) -> u64 { put((0 as $t).wrapping_sub(get(a))) }
            pub fn abs(a: u64) -> u64 {
                #[allow(unused_comparisons)]
                if get(a) < 0 { neg(a) } else { put(get(a)) }
            }
            pub fn min(a: u64, b: u64) -> u64 { put(get(a).min(get(b))) }
            pub fn max(a: u64, b: u64) -> u64 { put(get(a).max(get(b))) }
            pub fn not(a: u64) -> u64 { put(!get(a)) }
            pub fn shl(a: u64, b: u64) -> u64 {
                let n = b as u32;
                if n >= BITS { 0 } else { put(get(a) << n) }
            }
            pub fn shr(a: u64, b: u64) -> u64 {
                let n = b as u32;
                #[allow(unused_comparisons)]
                if n >= BITS { return if get(a) < 0 { put(!0) } else { 0 } }
                put(get(a) >> n)
            }
            pub fn eq(a: u64, b: u64) -> u64 { (get(a) == get(b)) as u64 }
            pub fn ne(a: u64, b: u64) -> u64 { (get(a) != get(b)) as u64 }
            pub fn lt(a: u64, b: u64) -> u64 { (get(a) < get(b)) as u64 }
            pub fn le(a: u64, b: u64) -> u64 { (get(a) <= get(b)) as u64 }
            pub fn gt(a: u64, b: u64) -> u64 { (get(a) > get(b)) as u64 }
            pub fn ge(a: u64, b: u64) -> u64 { (get(a) >= get(b)) as u64 }
            pub fn sad(a: u64, b: u64, c: u64) -> u64 {
                put((get(a).abs_diff(get(b)) as $t).wrapping_add(get(c)))
            }
            pub fn popc(a: u64) -> u64 { get(a).count_ones() as u64 }
            pub fn clz(a: u64) -> u64 { get(a).leading_zeros() as u64 }
            pub fn brev(a: u64) -> u64 { put(get(a).reverse_bits()) }
            /// Place of the highest bit that differs from the sign; all ones where there is none.
            pub fn bfind(a: u64) -> u64 {
                #[allow(unused_comparisons)]
                let a = if get(a) < 0 { !get(a) } else { get(a) };
                if a == 0 { 0xFFFF_FFFF } else { (BITS - 1 - a.leading_zeros()) as u64 }
            }
            pub fn bfind_shift(a: u64) -> u64 {
                match bfind(a) { 0xFFFF_FFFF => 0xFFFF_FFFF, at => (BITS - 1) as u64 - at }
            }
            /// Bits `b..b+c`; signed types repeat the field's sign.
            pub fn bfe(a: u64, b: u64, c: u64) -> u64 {
                let (at, len) = ((b & 0xFF) as u32, (c & 0xFF) as u32);
                if len == 0 { return 0 }
                #[allow(unused_comparisons)]
                let sign = <$t>::MIN < 0;
                let bits = u64::from(BITS);
                let a = put(get(a));
                let top = (u64::from(at) + u64::from(len) - 1).min(bits - 1);
                let fill = if sign && a >> top & 1 == 1 { $crate::types::mask(BITS) } else { 0 };
                let low = if at >= BITS { fill } else { a >> at | fill << (BITS - 1 - at) << 1 };
                let len = len.min(BITS);
                let keep = $crate::types::mask(len);
                (low & keep | fill & !keep) & $crate::types::mask(BITS)
            }
            /// `a` placed into `b` at bit `c`, `d` bits of it.
            pub fn bfi(a: u64, b: u64, c: u64, d: u64) -> u64 {
                let (at, len) = ((c & 0xFF) as u32, (d & 0xFF) as u32);
                if at >= BITS { return put(get(b)) }
                let field = $crate::types::mask(len) << at;
                put(get((a << at) & field | b & !field))
            }
            pub fn inc(old: u64, limit: u64) -> u64 { if get(old) >= get(limit) { 0 } else { put(get(old) + 1) } }
            pub fn dec(old: u64, limit: u64) -> u64 {
                if get(old) == 0 || get(old) > get(limit) { put(get(limit)) } else { put(get(old) - 1) }
            }
        }
    )* };
}

#[rustfmt::skip]
integers! {
    s16, i16, u16, i32, u32;
    s32, i32, u32, i64, u64;
    s64, i64, u64, i128, u128;
    u16, u16, u16, u32, u32;
    u32, u32, u32, u64, u64;
    u64, u64, u64, u128, u128;
}

pub fn and(a: u64, b: u64) -> u64 {
    a & b
}
pub fn or(a: u64, b: u64) -> u64 {
    a | b
}
pub fn xor(a: u64, b: u64) -> u64 {
    a ^ b
}
/// The second of (old value, operand).
pub fn second(_: u64, b: u64) -> u64 {
    b
}
pub fn not_pred(a: u64) -> u64 {
    a ^ 1
}
pub fn cnot(a: u64) -> u64 {
    u64::from(a == 0)
}
pub fn low16(a: u64) -> u64 {
    a & 0xFFFF
}
pub fn low32(a: u64) -> u64 {
    a & 0xFFFF_FFFF
}
pub fn low8(a: u64) -> u64 {
    a & 0xFF
}
pub fn part16<const N: u32>(a: u64) -> u64 {
    a >> (16 * N) & 0xFFFF
}
pub fn part8<const N: u32>(a: u64) -> u64 {
    a >> (8 * N) & 0xFF
}
pub fn high32(a: u64) -> u64 {
    a >> 32
}
pub fn pack8(a: u64, b: u64) -> u64 {
    a & 0xFF | (b & 0xFF) << 8
}
pub fn pack16(a: u64, b: u64) -> u64 {
    a & 0xFFFF | (b & 0xFFFF) << 16
}
pub fn pack32(a: u64, b: u64) -> u64 {
    a & 0xFFFF_FFFF | b << 32
}

/// Sign extension of `N` bits to 64.
pub fn sext<const N: u32>(a: u64) -> u64 {
    crate::types::sign_extend(a, N)
}
pub fn sext32<const N: u32>(a: u64) -> u64 {
    crate::types::sign_extend(a, N) & 0xFFFF_FFFF
}

fn funnel(a: u64, b: u64) -> u64 {
    a & 0xFFFF_FFFF | b << 32
}
pub fn shf_l_wrap(a: u64, b: u64, c: u64) -> u64 {
    (funnel(a, b) << (c & 31)) >> 32
}
pub fn shf_l_clamp(a: u64, b: u64, c: u64) -> u64 {
    (funnel(a, b) << (c as u32).min(32)) >> 32
}
pub fn shf_r_wrap(a: u64, b: u64, c: u64) -> u64 {
    (funnel(a, b) >> (c & 31)) & 0xFFFF_FFFF
}
pub fn shf_r_clamp(a: u64, b: u64, c: u64) -> u64 {
    (funnel(a, b) >> (c as u32).min(32)) & 0xFFFF_FFFF
}

/// Any function of three bits, given as its table.
pub fn lop3(a: u64, b: u64, c: u64, table: u64) -> u64 {
    let mut result = 0;
    for row in 0..8u64 {
        if table >> row & 1 == 1 {
            let pick = |value: u64, bit: u64| if row >> bit & 1 == 1 { value } else { !value };
            result |= pick(a, 2) & pick(b, 1) & pick(c, 0);
        }
    }
    result & 0xFFFF_FFFF
}

fn permute(a: u64, b: u64, selectors: [u64; 4]) -> u64 {
    let bytes = funnel(a, b);
    (0..4).fold(0, |result, at| {
        let byte = bytes >> (8 * (selectors[at] & 7)) & 0xFF;
        let byte = if selectors[at] & 8 != 0 { (byte >> 7) * 0xFF } else { byte };
        result | byte << (8 * at)
    })
}
pub fn prmt(a: u64, b: u64, c: u64) -> u64 {
    permute(a, b, [c & 15, c >> 4 & 15, c >> 8 & 15, c >> 12 & 15])
}
pub fn prmt_f4e(a: u64, b: u64, c: u64) -> u64 {
    permute(a, b, [0, 1, 2, 3].map(|n| (c + n) & 7))
}
pub fn prmt_b4e(a: u64, b: u64, c: u64) -> u64 {
    permute(a, b, [0, 1, 2, 3].map(|n| c.wrapping_sub(n) & 7))
}
pub fn prmt_rc8(a: u64, b: u64, c: u64) -> u64 {
    permute(a, b, [c & 3; 4])
}
pub fn prmt_rc16(a: u64, b: u64, c: u64) -> u64 {
    let c = c & 1;
    permute(a, b, [2 * c, 2 * c + 1, 2 * c, 2 * c + 1])
}
pub fn prmt_ecl(a: u64, b: u64, c: u64) -> u64 {
    permute(a, b, [0, 1, 2, 3].map(|n: u64| n.max(c & 3)))
}
pub fn prmt_ecr(a: u64, b: u64, c: u64) -> u64 {
    permute(a, b, [0, 1, 2, 3].map(|n: u64| n.min(c & 3)))
}

/// Selection by the sign of an integer, or of a floating point number.
pub fn slct_s32(a: u64, b: u64, c: u64) -> u64 {
    if (c as u32 as i32) >= 0 { a } else { b }
}
pub fn slct_f32(a: u64, b: u64, c: u64) -> u64 {
    if f32::from_bits(c as u32) >= 0.0 { a } else { b }
}

/// Four products of bytes and a sum; signedness of the operands by the constants.
pub fn dp4a<const A: bool, const B: bool>(a: u64, b: u64, c: u64) -> u64 {
    let byte = |v: u64, at: u32, signed: bool| {
        let byte = (v >> (8 * at)) as u8;
        if signed { i64::from(byte as i8) } else { i64::from(byte) }
    };
    let sum: i64 = (0..4).map(|at| byte(a, at, A) * byte(b, at, B)).sum();
    (c as i64).wrapping_add(sum) as u64 & 0xFFFF_FFFF
}

/// Two numbers of 16 bits in one register, each for itself.
pub mod pairs {
    fn each(a: u64, b: u64, f: impl Fn(u16, u16) -> u16) -> u64 {
        let of = |n: u32| u64::from(f((a >> n) as u16, (b >> n) as u16)) << n;
        of(0) | of(16)
    }

    pub fn add(a: u64, b: u64) -> u64 {
        each(a, b, u16::wrapping_add)
    }

    pub fn min(a: u64, b: u64) -> u64 {
        each(a, b, u16::min)
    }

    pub fn max(a: u64, b: u64) -> u64 {
        each(a, b, u16::max)
    }

    pub fn min_signed(a: u64, b: u64) -> u64 {
        each(a, b, |x, y| (x as i16).min(y as i16) as u16)
    }

    pub fn max_signed(a: u64, b: u64) -> u64 {
        each(a, b, |x, y| (x as i16).max(y as i16) as u16)
    }
}
