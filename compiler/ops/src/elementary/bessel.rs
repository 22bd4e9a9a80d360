//! Modified Bessel functions of the first kind, in F64; F32 is rounded once from there.
//!
//! Up to 8 their power series, all of whose terms are positive; above, `√x e^−x I(x)` as a polynomial in 16/x − 1 that
//! interpolates at Chebyshev's points (the figure is its relative error as a power of two).

use super::exp::exp;
use crate::scalar::{Cmp, Val, Writer};

/// `1 / k!²` and `1 / (k! (k + 1)!)`.
const I0_SMALL: [f64; 24] = [
    1.0,
    1.0,
    0.25,
    0.027777777777777776,
    0.001736111111111111,
    6.944444444444444e-05,
    1.9290123456790124e-06,
    3.936759889140842e-08,
    6.151187326782565e-10,
    7.594058428126624e-12,
    7.594058428126623e-14,
    6.276081345559193e-16,
    4.358389823304995e-18,
    2.5789288895295828e-20,
    1.3157800456783586e-22,
    5.8479113141260385e-25,
    2.2843403570804838e-27,
    7.904291893012054e-30,
    2.4395962632753253e-32,
    6.757884385804225e-35,
    1.6894710964510564e-37,
    3.8310002187098785e-40,
    7.915289708078262e-43,
    1.4962740468957016e-45,
];
const I1_SMALL: [f64; 24] = [
    1.0,
    0.5,
    0.08333333333333333,
    0.006944444444444444,
    0.00034722222222222224,
    1.1574074074074073e-05,
    2.755731922398589e-07,
    4.920949861426052e-09,
    6.834652585313961e-11,
    7.594058428126623e-13,
    6.903689480115112e-15,
    5.230067787965994e-17,
    3.352607556388458e-19,
    1.842092063949702e-21,
    8.771866971189057e-24,
    3.654944571328774e-26,
    1.3437296218120491e-28,
    4.391273273895586e-31,
    1.2839980333028028e-33,
    3.3789421929021126e-36,
    8.045100459290744e-39,
    1.7413637357772174e-41,
    3.4414303078601135e-44,
    6.234475195398757e-47,
];
/// `√x e^−x I₀(x)` and `√x e^−x I₁(x)` in 16/x − 1 from 8 on (2⁻⁵⁵).
const I0E_LARGE: [f64; 24] = [
    0.4021765094450081,
    0.0033605519836678614,
    0.00013621607438984735,
    1.1143033790932038e-05,
    1.4838476651250266e-06,
    2.9735985885673923e-07,
    8.872034383314144e-08,
    3.932584334552952e-08,
    2.1566251453104354e-08,
    7.554691881248808e-09,
    -6.8493381882867694e-09,
    -1.340891754008974e-08,
    -5.0381064879032845e-09,
    7.552583062123384e-09,
    6.560138746917057e-09,
    -3.505966530879332e-09,
    -4.575553424534973e-09,
    1.5200816953924232e-09,
    2.1968921378829006e-09,
    -5.715843864202709e-10,
    -6.633287112547084e-10,
    1.5279202694981569e-10,
    9.36508689281819e-11,
    -2.0260604287413626e-11,
];
const I1E_LARGE: [f64; 24] = [
    0.38939845902587233,
    -0.009749577193235737,
    -0.0002192357638317243,
    -1.5038547200567216e-05,
    -1.8349102358955385e-06,
    -3.483855761044295e-07,
    -1.000109565963654e-07,
    -4.312917729178349e-08,
    -2.339250374801858e-08,
    -8.427766093735185e-09,
    6.8401389977069586e-09,
    1.4034238782067183e-08,
    5.59337010179061e-09,
    -7.64239413436356e-09,
    -6.983839624895866e-09,
    3.4262341490077958e-09,
    4.810597405089944e-09,
    -1.4387250533041013e-09,
    -2.297004161885201e-09,
    5.295625441161261e-10,
    6.917089294193807e-10,
    -1.4011625179770627e-10,
    -9.752397204138195e-11,
    1.8515118828852956e-11,
];

/// How `I(x)` is scaled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    Plain,
    /// By `e^−|x|`.
    Exponential,
}

/// `I₀(x)`.
pub fn i0(w: &mut Writer, x: Val, scale: Scale) -> Val {
    let a = w.abs(x);
    let z = quarter_square(w, a);
    let series = w.horner(z, &I0_SMALL);
    join(w, a, series, &I0E_LARGE, scale)
}

/// `I₁(x)`, odd.
pub fn i1(w: &mut Writer, x: Val, scale: Scale) -> Val {
    let a = w.abs(x);
    let z = quarter_square(w, a);
    let series = w.horner(z, &I1_SMALL);
    let half = w.mul_c(a, 0.5);
    let series = w.mul(series, half);
    let y = join(w, a, series, &I1E_LARGE, scale);
    w.with_sign(y, x)
}

/// `x²/4`, of what the series is for.
fn quarter_square(w: &mut Writer, a: Val) -> Val {
    let half = w.mul_c(a, 0.5);
    let half = w.at_most(half, 4.0);
    w.mul(half, half)
}

fn join(w: &mut Writer, a: Val, series: Val, large: &[f64], scale: Scale) -> Val {
    let sixteen = w.f(16.0, a);
    let t = w.div(sixteen, a);
    let t = w.add_c(t, -1.0);
    let p = w.horner(t, large);
    let root = w.sqrt(a);
    let far = w.div(p, root);
    let is_small = w.cmp_c(Cmp::Le, a, 8.0);
    match scale {
        Scale::Exponential => {
            let minus = w.neg(a);
            let decay = exp(w, minus);
            let near = w.mul(series, decay);
            w.select(is_small, near, far)
        }
        Scale::Plain => {
            // The power in two factors, since it may be infinite where the function is not.
            let half = w.mul_c(a, 0.5);
            let growth = exp(w, half);
            let far = w.mul(far, growth);
            let far = w.mul(far, growth);
            let endless = w.cmp_c(Cmp::Eq, a, f64::INFINITY);
            let far = w.select(endless, a, far);
            w.select(is_small, series, far)
        }
    }
}
