//! Bodies that real packers packed, cut everywhere; and those that nobody would pack in good faith.

use std::io::Write;

use http::HeaderValue;
use miniz_oxide::deflate::compress_to_vec;
use zstd_safe::{CCtx, InBuffer, OutBuffer};

use super::*;

type Pack = fn(&[u8]) -> Vec<u8>;

const CODINGS: [(&str, Pack); 5] = [("gzip", gzip), ("deflate", zlib), ("deflate", bare_deflate), ("br", brotli), ("zstd", zstd)];

fn gzip(plain: &[u8]) -> Vec<u8> {
    member(0, &[], plain)
}

/// A gzip member with these flags and optional fields.
fn member(flags: u8, fields: &[u8], plain: &[u8]) -> Vec<u8> {
    let mut packed = vec![0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 255];
    packed.extend_from_slice(fields);
    packed.extend(bare_deflate(plain));
    packed.extend(crc32fast::hash(plain).to_le_bytes());
    packed.extend(u32::try_from(plain.len()).unwrap().to_le_bytes());
    packed
}

fn zlib(plain: &[u8]) -> Vec<u8> {
    miniz_oxide::deflate::compress_to_vec_zlib(plain, 6)
}

fn bare_deflate(plain: &[u8]) -> Vec<u8> {
    compress_to_vec(plain, 6)
}

fn brotli(plain: &[u8]) -> Vec<u8> {
    let mut writer = ::brotli::CompressorWriter::new(Vec::new(), 4096, 4, 20);
    writer.write_all(plain).unwrap();
    writer.into_inner()
}

fn zstd(plain: &[u8]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(zstd_safe::compress_bound(plain.len()));
    zstd_safe::compress(&mut packed, plain, 3).unwrap();
    packed
}

fn unpacker(codings: &str) -> Unpacker {
    let headers = HeaderMap::from_iter([(CONTENT_ENCODING, HeaderValue::from_str(codings).unwrap())]);
    Unpacker::of(&headers).unwrap().unwrap()
}

/// What comes out when the packed bytes come in pieces of this size; its error is that of the end or of the way there.
fn unpacked(codings: &str, packed: &[u8], size: usize) -> Result<Vec<u8>, NetError> {
    let mut unpacker = unpacker(codings);
    let mut plain = Vec::new();
    for piece in packed.chunks(size) {
        unpacker.feed(Bytes::copy_from_slice(piece))?;
        while let Some(piece) = unpacker.next()? {
            assert!(!piece.is_empty() && piece.len() <= PIECE);
            plain.extend_from_slice(&piece);
        }
    }
    if unpacker.is_whole() { Ok(plain) } else { Err(NetError::Cut) }
}

fn text() -> Vec<u8> {
    (0..4000).flat_map(|number| format!("data: {{\"n\":{number},\"é\":\"日🎻\"}}\n\n").into_bytes()).collect()
}

#[test]
fn every_coding_is_undone_wherever_it_was_cut() {
    let plain = text();
    for (coding, pack) in CODINGS {
        let packed = pack(&plain);
        for size in [1, 2, 7, 1000, packed.len()] {
            assert_eq!(unpacked(coding, &packed, size).as_ref(), Ok(&plain), "{coding} in pieces of {size}");
        }
        assert_eq!(unpacked(coding, &pack(b""), 1), Ok(Vec::new()), "{coding} of nothing");
        assert_eq!(unpacked(coding, b"", 1), Ok(Vec::new()), "no body that is said to be {coding}");
    }
}

#[test]
fn a_body_that_ends_early_is_cut() {
    let plain = text();
    for (coding, pack) in CODINGS {
        let packed = pack(&plain);
        for missing in [1, 4, packed.len() / 2, packed.len() - 1] {
            let seen = unpacked(coding, &packed[..packed.len() - missing], 100);
            assert_eq!(seen, Err(NetError::Cut), "{coding}, {missing} bytes missing");
        }
    }
}

#[test]
fn what_is_not_what_it_says_is_no_answer() {
    for (coding, pack) in CODINGS {
        for not in [&b"<html>no</html>"[..], &[0xff; 40]] {
            assert!(unpacked(coding, not, 100).is_err(), "{coding}");
        }
        let mut followed = pack(b"all of it");
        followed.extend_from_slice(b"and more");
        assert_eq!(unpacked(coding, &followed, 1000), Err(NetError::Packing), "{coding} and something after it");
    }
    let mut wrong_sum = gzip(&text());
    let at = wrong_sum.len() - 5;
    wrong_sum[at] ^= 1;
    assert_eq!(unpacked("gzip", &wrong_sum, 1000), Err(NetError::Packing));
    // A frame of zstd's third form of old.
    assert_eq!(unpacked("zstd", &[0x23, 0xb5, 0x2f, 0xfd, 0, 0, 0, 0], 8), Err(NetError::Packing));
}

#[test]
fn a_gzip_head_may_say_more_and_members_may_follow_one_another() {
    let fields = [&[3, 0, 1, 2, 3][..], b"name\0", b"\0", &[9, 9]].concat();
    let table = [
        ("plain", member(0, &[], b"one")),
        ("all fields", member(0x1f, &fields, b"one")),
        ("an empty extra field", member(0x04, &[0, 0], b"one")),
        ("two members", [member(0, &[], b"o"), member(0x08, b"x\0", b"ne")].concat()),
    ];
    for (name, packed) in table {
        for size in [1, packed.len()] {
            assert_eq!(unpacked("gzip", &packed, size).as_deref(), Ok(b"one".as_slice()), "{name}");
        }
    }
    assert_eq!(unpacked("gzip", &member(0x20, &[], b"one"), 1000), Err(NetError::Packing), "an unknown flag");
}

#[test]
fn frames_of_zstd_may_follow_one_another_and_say_nothing() {
    let packed = [zstd(b"o"), vec![0x5a, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 7, 7], zstd(b"ne")].concat();
    for size in [1, packed.len()] {
        assert_eq!(unpacked("zstd", &packed, size).as_deref(), Ok(b"one".as_slice()));
    }
}

#[test]
fn codings_are_undone_in_the_order_in_which_they_lie() {
    let plain = text();
    let packed = zstd(&brotli(&gzip(&plain)));
    for size in [1, 100, packed.len()] {
        assert_eq!(unpacked("X-GZIP, identity,br , zstd", &packed, size).as_ref(), Ok(&plain));
    }
    assert_eq!(unpacked("gzip, br, zstd", &packed[..packed.len() / 2], 100), Err(NetError::Cut));
}

#[test]
fn only_codings_that_are_known_and_few_are_taken_off() {
    type Values = &'static [&'static str];
    type Layers = Result<Option<usize>, Unknown>;
    let of = |values: Values| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(CONTENT_ENCODING, HeaderValue::from_static(value));
        }
        Unpacker::of(&headers).map(|unpacker| unpacker.map(|unpacker| unpacker.layers.len()))
    };
    let table: [(Values, Layers); 8] = [
        (&[], Ok(None)),
        (&[""], Ok(None)),
        (&["identity"], Ok(None)),
        (&["GZip"], Ok(Some(1))),
        (&["gzip", "br"], Ok(Some(2))),
        (&["compress"], Err(Unknown)),
        (&["gzip, aes128gcm"], Err(Unknown)),
        (&["gzip, gzip, gzip, gzip"], Err(Unknown)),
    ];
    for (values, expected) in table {
        assert_eq!(of(values), expected, "{values:?}");
    }
}

/// What a sender has flushed comes out at once, not when more has come.
#[test]
fn what_was_flushed_comes_through_at_once() {
    let events: Vec<Vec<u8>> = (0..50).map(|number| format!("data: {{\"n\":{number}}}\n\n").into_bytes()).collect();
    for (coding, flushes) in [("gzip", gzip_flushes(&events)), ("br", brotli_flushes(&events)), ("zstd", zstd_flushes(&events))] {
        let mut unpacker = unpacker(coding);
        for (event, packed) in events.iter().zip(flushes) {
            unpacker.feed(packed.into()).unwrap();
            let mut plain = Vec::new();
            while let Some(piece) = unpacker.next().unwrap() {
                plain.extend_from_slice(&piece);
            }
            assert_eq!(String::from_utf8_lossy(&plain), String::from_utf8_lossy(event), "{coding}");
        }
    }
}

fn gzip_flushes(events: &[Vec<u8>]) -> Vec<Vec<u8>> {
    use miniz_oxide::deflate::core::{CompressorOxide, create_comp_flags_from_zip_params};
    use miniz_oxide::deflate::stream::deflate;
    let mut packer = CompressorOxide::new(create_comp_flags_from_zip_params(6, -15, 0));
    let mut head = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let packed = events.iter().map(|event| {
        let mut out = [0; 4096];
        let result = deflate(&mut packer, event, &mut out, miniz_oxide::MZFlush::Sync);
        assert_eq!(result.bytes_consumed, event.len());
        [std::mem::take(&mut head), out[..result.bytes_written].to_vec()].concat()
    });
    packed.collect()
}

fn brotli_flushes(events: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut writer = ::brotli::CompressorWriter::new(Vec::new(), 4096, 4, 20);
    let packed = events.iter().map(|event| {
        writer.write_all(event).unwrap();
        writer.flush().unwrap();
        std::mem::take(writer.get_mut())
    });
    packed.collect()
}

fn zstd_flushes(events: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut context = CCtx::create();
    let packed = events.iter().map(|event| {
        let mut out = Vec::with_capacity(4096);
        let mut buffer = OutBuffer::around(&mut out);
        context.compress_stream(&mut buffer, &mut InBuffer::around(event)).unwrap();
        assert_eq!(context.flush_stream(&mut buffer).unwrap(), 0);
        out
    });
    packed.collect()
}

#[test]
fn a_bomb_is_found_out_long_before_it_is_huge() {
    let zeros = vec![0; 64 * 1024 * 1024];
    for (coding, pack) in CODINGS {
        let packed = pack(&zeros);
        let mut unpacker = unpacker(coding);
        unpacker.feed(packed.into()).unwrap();
        let mut came = 0;
        let outcome = loop {
            match unpacker.next() {
                Ok(Some(piece)) => came += piece.len(),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        assert_eq!(outcome, Err(NetError::TooLarge), "{coding}");
        assert!(came < 20 * 1024 * 1024, "{coding}: {came} bytes came out");
    }
    let nested = gzip(&gzip(&zeros));
    assert_eq!(unpacked("gzip, gzip", &nested, 4096), Err(NetError::TooLarge));
}

#[test]
fn bytes_that_never_say_anything_are_a_flood() {
    // Empty stored blocks; frames that are to be skipped; a name without an end.
    let endless = |beginning: &[u8], again: &[u8]| [beginning, &again.repeat(2 * 1024 * 1024 / again.len())].concat();
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let named = [0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 255];
    let table = [
        ("gzip", endless(&head, &[0, 0, 0, 0xff, 0xff])),
        ("gzip", endless(&named, b"x")),
        ("zstd", endless(&[], &[0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0])),
    ];
    for (coding, packed) in table {
        assert_eq!(unpacked(coding, &packed, 4096), Err(NetError::TooLarge), "{coding}");
    }
}

/// Whatever is done to a packed body, unpacking it comes to an end.
#[test]
fn no_damage_does_harm() {
    let plain = text();
    let mut chance = 0x9e37_79b9_u32;
    let mut next = |below: usize| {
        chance = chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        chance as usize % below
    };
    for (coding, pack) in CODINGS {
        let packed = pack(&plain[..4000]);
        for _ in 0..60 {
            let mut damaged = packed.clone();
            for _ in 0..=next(3) {
                let at = next(damaged.len());
                damaged[at] = damaged[at].wrapping_add(1 + u8::try_from(next(255)).unwrap());
            }
            if let Ok(seen) = unpacked(coding, &damaged, 1 + next(500)) {
                assert!(seen.len() < 2 * 1024 * 1024, "{coding}");
            }
        }
    }
}
