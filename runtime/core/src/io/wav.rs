//! Sound in WAV files: samples as `f32` between -1 and 1, `[channels, samples]`.

use super::files;
use crate::fault::{Fault, shown};
use crate::tensor::Tensor;
use crate::tensor_print::{Element, element};
use hound::{SampleFormat, WavReader, WavSpec, WavWriter};
use std::io::Cursor;
use std::path::Path;
use tessera_base::DType;

/// Whole numbers of so many bits lie from minus this to below it.
fn half_range(bits: i64) -> f64 {
    (1i64 << (bits.clamp(1, 32) - 1)) as f64
}

/// Reads samples `[channels, samples]` and how many there are in a second. Whole numbers of `b` bits are divided by
/// 2^(b-1), which is exact up to 24 bits; floats of 32 bits are taken as they are.
///
/// # Errors
/// E0706 where the file cannot be read, E0707 where it is no such file, is damaged or ends early.
pub fn read(path: &Path, bytes: &[u8]) -> Result<(Tensor, i64), Fault> {
    let bad = |why: String| Fault::new(707, format!("`{}` is not a readable WAV file: {why}", shown(path)));
    let why = |e: hound::Error| match e {
        hound::Error::IoError(_) => bad("it ends early".into()),
        hound::Error::Unsupported => bad("its samples are packed in a way that is not known here".into())
            .note("whole numbers of 8, 16, 24 and 32 bits and floats of 32 bits are"),
        e => bad(e.to_string()),
    };
    let mut reader = WavReader::new(Cursor::new(bytes)).map_err(why)?;
    let WavSpec { channels, sample_rate, bits_per_sample, sample_format } = reader.spec();
    let count = reader.len() as usize;
    let width = usize::from(bits_per_sample).div_ceil(8);
    if channels == 0 || width == 0 {
        return Err(bad(format!("it claims {channels} channels of {bits_per_sample} bits")));
    }
    // Nothing is made ready for samples that the file does not have.
    if count.saturating_mul(width) > bytes.len() {
        return Err(bad(format!("it claims {count} samples of {bits_per_sample} bits, and has {} bytes", bytes.len())));
    }
    let channels = usize::from(channels);
    let frames = count / channels;
    let mut data = vec![0u8; frames * channels * 4];
    let mut put = |i: usize, x: f32| {
        let at = ((i % channels) * frames + i / channels) * 4;
        if let Some(place) = data.get_mut(at..at + 4) {
            place.copy_from_slice(&x.to_le_bytes());
        }
    };
    match sample_format {
        SampleFormat::Float => {
            for (i, x) in reader.samples::<f32>().take(frames * channels).enumerate() {
                put(i, x.map_err(why)?);
            }
        }
        SampleFormat::Int => {
            let unit = half_range(i64::from(bits_per_sample));
            for (i, n) in reader.samples::<i32>().take(frames * channels).enumerate() {
                put(i, (f64::from(n.map_err(why)?) / unit) as f32);
            }
        }
    }
    let t = Tensor::from_bytes(DType::F32, &[channels as u64, frames as u64], &data)?;
    Ok((t, i64::from(sample_rate)))
}

/// Writes `f32` samples `[channels, samples]`, or `[samples]` of one channel. With 16 or 24 bits they become the nearest
/// whole numbers, those outside of -1 to 1 the outermost ones; with 32 bits they stay floats.
///
/// # Errors
/// E0706 where the file cannot be written, E0707 where the tensor is no sound or has NaN, E0711 for another rate or number
/// of bits.
pub fn write(path: &Path, t: &Tensor, rate: i64, bits: i64) -> Result<(), Fault> {
    let sample_format = match bits {
        16 | 24 => SampleFormat::Int,
        32 => SampleFormat::Float,
        _ => return Err(Fault::new(711, format!("samples are written with 16, 24 or 32 bits, not {bits}"))),
    };
    let sample_rate = u32::try_from(rate).ok().filter(|&r| r > 0 && r <= u32::MAX / 8).ok_or_else(|| {
        Fault::new(711, format!("a rate is a number of samples in a second, at least 1, and `rate` is {rate}"))
    })?;
    let (channels, frames) = match t.shape[..] {
        [frames] => (1, frames),
        [channels, frames] => (channels, frames),
        _ => (0, 0),
    };
    let count = u16::try_from(channels).ok().filter(|&c| (1..=1024).contains(&c) && t.dtype == DType::F32);
    let Some(count) = count else {
        let sizes: Vec<String> = t.shape.iter().map(u64::to_string).chain([t.dtype.to_string()]).collect();
        return Err(Fault::new(707, format!("Tensor[{}] is no sound", sizes.join(", ")))
            .note("`f32` samples [samples] or [channels, samples], with at most 1024 channels"));
    };
    // The lengths in the file have 32 bits.
    if (t.elems() as u64).saturating_mul(bits as u64 / 8) > u64::from(u32::MAX) - 1024 {
        return Err(Fault::new(707, format!("`{}` cannot hold so much: a WAV file has at most 4 GiB", shown(path))));
    }
    let spec = WavSpec { channels: count, sample_rate, bits_per_sample: bits as u16, sample_format };
    let fault = |e: hound::Error| match e {
        hound::Error::IoError(e) => files::write_fault(path, &e),
        e => Fault::new(707, format!("`{}` cannot be written: {e}", shown(path))),
    };
    let sample = |i: u64| match element(t, ((i % channels) * frames + i / channels) as usize) {
        Element::Float(x) => x,
        _ => f64::NAN,
    };
    let mut out = Cursor::new(vec![]);
    let mut writer = WavWriter::new(&mut out, spec).map_err(fault)?;
    let most = half_range(bits);
    for i in 0..channels * frames {
        let x = sample(i);
        let done = match sample_format {
            SampleFormat::Float => writer.write_sample(x as f32),
            SampleFormat::Int if x.is_nan() => {
                let text = format!(
                    "sample {} of channel {} is NaN, which no whole number stands for",
                    i / channels,
                    i % channels
                );
                return Err(Fault::new(707, text).note("with `bits=32` it is kept"));
            }
            SampleFormat::Int => writer.write_sample((x * most).round_ties_even().clamp(-most, most - 1.0) as i32),
        };
        done.map_err(fault)?;
    }
    writer.finalize().map_err(fault)?;
    let bytes = out.into_inner();
    files::write_atomically(path, |out| out.write_all(&bytes).map_err(|e| files::write_fault(path, &e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(dir: &Path, bits: i64) -> Result<Vec<u8>, Fault> {
        let path = dir.join("a.wav");
        let samples: Vec<u8> = [0.5f32, -0.25, 1.5, -1.0, 0.0, 0.125].iter().flat_map(|x| x.to_le_bytes()).collect();
        write(&path, &Tensor::from_bytes(DType::F32, &[2, 3], &samples)?, 8000, bits)?;
        files::read_raw(&path)
    }

    #[test]
    fn samples_come_back_and_what_is_cut_off_is_told() -> Result<(), Fault> {
        let dir = tempfile::tempdir().map_err(|e| Fault::new(706, e.to_string()))?;
        let path = Path::new("a.wav");
        for bits in [16, 24, 32] {
            let bytes = written(dir.path(), bits)?;
            let (t, rate) = read(path, &bytes)?;
            let back: Vec<f32> = t.bytes().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
            let top = if bits == 32 { 1.5 } else { 1.0 - (1.0 - bits as f32).exp2() };
            assert_eq!((rate, &t.shape[..], back), (8000, &[2, 3][..], vec![0.5, -0.25, top, -1.0, 0.0, 0.125]));
            for cut in 0..bytes.len() {
                let told = read(path, &bytes[..cut]).err().map(|f| f.code);
                assert_eq!(told, Some(707), "{bits} bits cut at {cut}");
            }
        }
        Ok(())
    }

    #[test]
    fn damaged_bytes_end_nothing() -> Result<(), Fault> {
        let dir = tempfile::tempdir().map_err(|e| Fault::new(706, e.to_string()))?;
        for bits in [16, 24, 32] {
            let bytes = written(dir.path(), bits)?;
            for at in 0..bytes.len() {
                for value in [0, 1, 2, 3, 0x7f, 0x80, 0xfe, 0xff] {
                    let mut changed = bytes.clone();
                    changed[at] = value;
                    if let Err(fault) = read(Path::new("a.wav"), &changed) {
                        assert!(matches!(fault.code, 707 | 710), "at {at}: {}", fault.message);
                    }
                }
            }
        }
        Ok(())
    }
}
