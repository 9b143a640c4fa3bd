//! The four compressions of Kafka, each with a bound on what comes out. `None`: Python decides what is wrong.
//!
//! Only what every decoder agrees on is taken: one frame or member that fills the batch, complete and with right checksums.

use std::io::Read;

use flate2::bufread::GzDecoder;
use lz4_flex::frame::FrameDecoder;
use zstd::stream::raw::{Decoder as ZstdDecoder, InBuffer, Operation, OutBuffer};

const XERIAL: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
const XERIAL_HEADER: usize = 16;
const LZ4_FRAME: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];

/// Decompresses batches one after the other, each into the same memory.
#[derive(Default)]
pub struct Codecs {
    out: Vec<u8>,
    zstd: Option<ZstdDecoder<'static>>,
}

impl Codecs {
    /// The decompressed bytes, which must not be more than `most`. codec: 1 to 4, as in the attributes of a batch.
    pub fn decompress(&mut self, codec: u8, data: &[u8], most: usize) -> Option<&[u8]> {
        self.out.clear();
        match codec {
            1 => {
                let mut decoder = GzDecoder::new(data);
                read_to_end(&mut decoder, most, &mut self.out)?;
                decoder.into_inner().is_empty().then_some(())?;
            }
            2 => snappy(data, most, &mut self.out)?,
            3 => {
                whole_lz4_frame(data)?;
                let mut decoder = FrameDecoder::new(data);
                read_to_end(&mut decoder, most, &mut self.out)?;
                decoder.into_inner().is_empty().then_some(())?;
            }
            4 => self.unzstd(data, most)?,
            _ => return None,
        }
        Some(&self.out)
    }

    fn unzstd(&mut self, data: &[u8], most: usize) -> Option<()> {
        let decoder = match &mut self.zstd {
            Some(decoder) => decoder,
            none => none.insert(ZstdDecoder::new().ok()?),
        };
        decoder.reinit().ok()?;
        let mut input = InBuffer::around(data);
        loop {
            let filled = self.out.len();
            if filled > most {
                return None;
            }
            self.out.resize((filled * 2).max(1 << 14).min(most + 1), 0);
            let mut output = OutBuffer::around_pos(&mut self.out[..], filled);
            let hint = decoder.run(&mut input, &mut output).ok()?;
            let now = output.pos();
            let full = now == self.out.len();
            self.out.truncate(now);
            if hint == 0 {
                return (input.pos() == data.len() && now <= most).then_some(());
            }
            if !full && input.pos() == data.len() {
                return None; // it ends within a frame
            }
        }
    }
}

/// All that a decoder gives. At its end it has compared its checksums.
fn read_to_end(decoder: &mut impl Read, most: usize, out: &mut Vec<u8>) -> Option<()> {
    decoder.take(most as u64 + 1).read_to_end(out).ok()?;
    (out.len() <= most).then_some(())
}

/// That one frame fills the data, its end mark included, which the decoder does without.
fn whole_lz4_frame(data: &[u8]) -> Option<()> {
    let flags = *data.strip_prefix(&LZ4_FRAME)?.first()?;
    let word = |bit: u8, size: usize| if flags & bit != 0 { size } else { 0 };
    let (block_checksum, content_checksum) = (word(0x10, 4), word(0x04, 4));
    let mut rest = data.get(7 + word(0x08, 8) + word(0x01, 4)..)?;
    while let [a, b, c, d, behind @ ..] = rest {
        let size = (u32::from_le_bytes([*a, *b, *c, *d]) & 0x7fff_ffff) as usize;
        if [*a, *b, *c, *d] == [0; 4] {
            return (behind.len() == content_checksum).then_some(());
        }
        rest = behind.get(size + block_checksum..)?;
    }
    None
}

/// Either one block, or many, each behind its length, behind the header that the xerial library writes.
fn snappy(data: &[u8], most: usize, out: &mut Vec<u8>) -> Option<()> {
    if data.len() <= XERIAL_HEADER || !data.starts_with(&XERIAL) {
        return block(data, most, out);
    }
    let mut rest = &data[XERIAL_HEADER..];
    while let [a, b, c, d, behind @ ..] = rest {
        let length = usize::try_from(i32::from_be_bytes([*a, *b, *c, *d])).ok()?;
        block(behind.get(..length)?, most, out)?;
        rest = &behind[length..];
    }
    rest.is_empty().then_some(())
}

fn block(data: &[u8], most: usize, out: &mut Vec<u8>) -> Option<()> {
    let (start, length) = (out.len(), snap::raw::decompress_len(data).ok()?);
    if length > most - start {
        return None;
    }
    out.resize(start + length, 0);
    let written = snap::raw::Decoder::new().decompress(data, &mut out[start..]).ok()?;
    (written == length).then_some(())
}
