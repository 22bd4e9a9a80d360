//! Colours of lines and of heat maps.

/// Red, green, blue.
pub type Color = [u8; 3];

pub const WHITE: Color = [255, 255, 255];
pub const INK: Color = [40, 40, 40];
pub const GRID: Color = [225, 225, 225];

/// Colours that people with any kind of colour vision tell apart (Okabe and Ito, 2008).
const LINES: [Color; 7] =
    [[0, 114, 178], [213, 94, 0], [0, 158, 115], [204, 121, 167], [86, 180, 233], [230, 159, 0], [90, 90, 90]];

/// How much of its colour a band has: what lies behind it is seen.
pub const BAND: f64 = 0.22;

/// The colour of line `i`.
pub fn line(i: usize) -> Color {
    LINES[i % LINES.len()]
}

/// Five places of a scale from dark to light whose lightness is even (viridis).
const SCALE: [Color; 5] = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

/// The colour of a share from 0 to 1; of NaN white.
pub fn heat(share: f64) -> Color {
    if share.is_nan() {
        return WHITE;
    }
    let place = share.clamp(0.0, 1.0) * (SCALE.len() - 1) as f64;
    let i = (place as usize).min(SCALE.len() - 2);
    let t = place - i as f64;
    let mix = |c: usize| (f64::from(SCALE[i][c]) * (1.0 - t) + f64::from(SCALE[i + 1][c]) * t).round() as u8;
    [mix(0), mix(1), mix(2)]
}
