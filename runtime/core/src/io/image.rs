//! Pictures: PNG, JPEG and WebP as `u8` tensors `[height, width, channels]`.

use super::files;
use crate::fault::{Fault, allowed_memory, human_bytes, shown};
use crate::memory::memory_limit;
use crate::tensor::Tensor;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::codecs::webp::WebPEncoder;
use image::{
    DynamicImage, ExtendedColorType, ImageDecoder, ImageEncoder, ImageError, ImageFormat, ImageReader, ImageResult,
    Limits,
};
use std::io::Cursor;
use std::path::Path;
use tessera_base::DType;

/// So many pixels at most stand for one byte of a PNG or JPEG file: deflate packs 1032 bytes into one, and a byte is 8
/// pixels of black and white. A file that claims more is damaged, and nothing is made ready for it.
const PIXELS_PER_BYTE: u64 = 8 * 1032;

/// Reads a picture as `[height, width, channels]`, by what the file begins with and not by its name.
///
/// 1 channel is the brightness, 3 are red, green and blue, 4 have the opacity behind them. A grey picture asked for with
/// 3 channels has three equal ones, one without opacity has 255 there; an opacity that is not asked for is left out.
/// 16 bits become 8, and of several frames the first is read.
///
/// # Errors
/// E0706 where the file cannot be read, E0707 where it is no such picture or is damaged, E0710 where it is larger than the
/// memory, E0711 for other numbers of channels.
pub fn read(path: &Path, bytes: &[u8], channels: i64) -> Result<Tensor, Fault> {
    if ![1, 3, 4].contains(&channels) {
        let text =
            format!("a picture is read with 1 channel (grey), 3 (red, green, blue) or 4 (and opacity), not {channels}");
        return Err(Fault::new(711, text));
    }
    let bad = |why: String| Fault::new(707, format!("`{}` is not a readable picture: {why}", shown(path)));
    let (format, name) = match bytes {
        [0x89, b'P', b'N', b'G', ..] => (ImageFormat::Png, "PNG"),
        [0xff, 0xd8, 0xff, ..] => (ImageFormat::Jpeg, "JPEG"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => (ImageFormat::WebP, "WebP"),
        [] => return Err(bad("it is empty".into())),
        _ => return Err(bad("it begins as none of PNG, JPEG and WebP".into())),
    };
    let damaged = |e: &dyn std::fmt::Display| bad(format!("as {name} it is damaged ({e})"));
    if format == ImageFormat::Jpeg && !jpeg_ends(bytes) {
        return Err(bad("as JPEG it is damaged (it ends early)".into()));
    }
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(memory_limit());
    reader.limits(limits);
    let decoder = reader.into_decoder().map_err(|e| damaged(&e))?;
    let (width, height) = decoder.dimensions();
    let pixels = u64::from(width) * u64::from(height);
    if format != ImageFormat::WebP && pixels / PIXELS_PER_BYTE > bytes.len() as u64 {
        let what = format!("it claims {width} by {height} pixels, which {} bytes cannot hold", bytes.len());
        return Err(damaged(&what));
    }
    // As the file has it, and as it is asked for.
    let need = decoder.total_bytes().saturating_add(pixels.saturating_mul(channels as u64));
    if need > memory_limit() {
        let text = format!(
            "`{}` has {width} by {height} pixels, for which {} are needed: more memory than can be had",
            shown(path),
            human_bytes(need)
        );
        return Err(Fault::new(710, text).note(allowed_memory()));
    }
    let picture = DynamicImage::from_decoder(decoder).map_err(|e| damaged(&e))?;
    let data = match channels {
        1 => picture.into_luma8().into_raw(),
        3 => picture.into_rgb8().into_raw(),
        _ => picture.into_rgba8().into_raw(),
    };
    Ok(Tensor::from_bytes(DType::U8, &[u64::from(height), u64::from(width), channels as u64], &data)?)
}

/// Whether the mark of the end follows the picture in a JPEG file: decoders fill up with grey what is cut off. What lies
/// behind the mark is left aside, as cameras write there.
fn jpeg_ends(bytes: &[u8]) -> bool {
    let mut at = 2;
    // Before the first scan are segments with their lengths; pictures in them have marks of their own.
    loop {
        let Some(&[0xff, mark, high, low]) = bytes.get(at..at + 4) else { return false };
        if mark == 0xff {
            at += 1;
            continue;
        }
        at += 2 + usize::from(u16::from_be_bytes([high, low]));
        if mark == 0xda {
            break;
        }
    }
    bytes.get(at..).is_some_and(|rest| rest.windows(2).any(|pair| pair == [0xff, 0xd9]))
}

/// Writes `u8` pixels `[height, width]` or `[height, width, channels]`, by the ending of the name: `.png` and `.webp`
/// keep every bit, `.jpg` and `.jpeg` come near with a `quality` from 1 to 100.
///
/// # Errors
/// E0706 where the file cannot be written, E0707 where the tensor is no picture of the format, E0711 for another quality.
pub fn write(path: &Path, t: &Tensor, quality: i64) -> Result<(), Fault> {
    let quality = u8::try_from(quality).ok().filter(|q| (1..=100).contains(q));
    let quality = quality.ok_or_else(|| Fault::new(711, "the quality of a picture is between 1 and 100".to_owned()))?;
    let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
    let format = match &*ending {
        "png" => ImageFormat::Png,
        "jpg" | "jpeg" => ImageFormat::Jpeg,
        "webp" => ImageFormat::WebP,
        _ => {
            let text = format!("pictures are written as `.png`, `.jpg` or `.webp`, and `{}` is none", shown(path));
            return Err(Fault::new(707, text));
        }
    };
    let no_picture = || {
        let sizes: Vec<String> = t.shape.iter().map(u64::to_string).chain([t.dtype.to_string()]).collect();
        let text = format!("Tensor[{}] is no picture that `{}` can hold", sizes.join(", "), shown(path));
        let channels = if format == ImageFormat::Jpeg { "1 or 3" } else { "1, 3 or 4" };
        Fault::new(707, text)
            .note(format!("`u8` pixels [height, width] or [height, width, channels], with {channels} channels"))
    };
    let (height, width, channels) = match t.shape[..] {
        [height, width] => (height, width, 1),
        [height, width, channels] => (height, width, channels),
        _ => return Err(no_picture()),
    };
    let color = match channels {
        1 => ExtendedColorType::L8,
        3 => ExtendedColorType::Rgb8,
        4 if format != ImageFormat::Jpeg => ExtendedColorType::Rgba8,
        _ => return Err(no_picture()),
    };
    let (Ok(width), Ok(height), false, DType::U8) =
        (u32::try_from(width), u32::try_from(height), t.elems() == 0, t.dtype)
    else {
        return Err(no_picture());
    };
    let pixels = t.host()?;
    files::write_atomically(path, |out| {
        let done: ImageResult<()> = match format {
            ImageFormat::Png => PngEncoder::new(out).write_image(pixels, width, height, color),
            ImageFormat::Jpeg => JpegEncoder::new_with_quality(out, quality).write_image(pixels, width, height, color),
            _ => WebPEncoder::new_lossless(out).write_image(pixels, width, height, color),
        };
        done.map_err(|e| match e {
            ImageError::IoError(e) => files::write_fault(path, &e),
            e => Fault::new(707, format!("`{}` cannot hold this picture: {e}", shown(path))),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(width: usize, height: usize, channels: usize) -> Result<Tensor, Fault> {
        let data: Vec<u8> = (0..width * height * channels).map(|i| (i * 37 % 251) as u8).collect();
        Ok(Tensor::from_bytes(DType::U8, &[height as u64, width as u64, channels as u64], &data)?)
    }

    #[test]
    fn what_is_cut_off_anywhere_is_told() -> Result<(), Fault> {
        let dir = tempfile::tempdir().map_err(|e| Fault::new(706, e.to_string()))?;
        for name in ["a.png", "a.jpg", "a.webp"] {
            let path = dir.path().join(name);
            write(&path, &picture(13, 9, 3)?, 90)?;
            let bytes = files::read_raw(&path)?;
            let whole = read(&path, &bytes, 3)?;
            assert_eq!(whole.shape[..], [9, 13, 3]);
            for cut in 0..bytes.len() {
                match read(&path, &bytes[..cut], 3) {
                    Err(fault) => assert_eq!(fault.code, 707, "{name} cut at {cut}: {}", fault.message),
                    // The last bytes of a PNG say only that it ends.
                    Ok(t) => assert!(t.bytes() == whole.bytes(), "{name} cut at {cut}"),
                }
            }
        }
        Ok(())
    }

    #[test]
    fn damaged_bytes_end_nothing() -> Result<(), Fault> {
        let dir = tempfile::tempdir().map_err(|e| Fault::new(706, e.to_string()))?;
        for name in ["a.png", "a.jpg", "a.webp"] {
            let path = dir.path().join(name);
            write(&path, &picture(6, 5, 3)?, 90)?;
            let bytes = files::read_raw(&path)?;
            for at in 0..bytes.len() {
                for value in [0, 1, 0x7f, 0xff] {
                    let mut changed = bytes.clone();
                    changed[at] = value;
                    if let Err(fault) = read(&path, &changed, 3) {
                        assert!(matches!(fault.code, 707 | 710), "{name} at {at}: {}", fault.message);
                    }
                }
            }
        }
        Ok(())
    }
}
