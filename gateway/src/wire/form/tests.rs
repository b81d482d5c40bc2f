//! Forms as clients send them, as nobody should, and cut everywhere.

use proptest::prelude::*;

use super::*;

const BOUNDARY: &str = "----b0und:ary";

fn part(head: &str, value: &str) -> String {
    format!("--{BOUNDARY}\r\n{head}\r\n\r\n{value}\r\n")
}

fn field(name: &str, value: &str) -> String {
    part(&format!("Content-Disposition: form-data; name=\"{name}\""), value)
}

fn file(value: &str) -> String {
    part("Content-Disposition: form-data; name=\"file\"; filename=\"a \\\"b\\\".wav\"\r\nContent-Type: audio/wav", value)
}

fn form(parts: &[String]) -> String {
    format!("{}--{BOUNDARY}--\r\n", parts.concat())
}

/// The form with `UP` in place of the model, and the model; or what is wrong with it.
fn read(pieces: &[&[u8]]) -> Result<(Vec<u8>, Option<String>), &'static str> {
    let mut scanner = Form::new(BOUNDARY);
    let (mut sent, mut model) = (Vec::new(), None);
    for piece in pieces {
        let fed = scanner.feed(Bytes::copy_from_slice(piece), &mut |piece| match piece {
            Piece::Bytes(bytes) => sent.extend_from_slice(&bytes),
            Piece::Model(name) => {
                sent.extend_from_slice(b"UP");
                assert_eq!(model.replace(name), None);
            }
        });
        fed.map_err(|Malformed(field, _)| field)?;
    }
    scanner.end().map_err(|Malformed(field, _)| field)?;
    Ok((sent, model))
}

fn reads(form: &str) -> Result<Option<String>, &'static str> {
    let whole = read(&[form.as_bytes()]);
    let bytes: Vec<&[u8]> = form.as_bytes().chunks(1).collect();
    assert_eq!(read(&bytes), whole, "byte by byte: {form}");
    whole.map(|(_, model)| model)
}

#[test]
fn only_the_value_of_the_model_is_changed() {
    let parts = |model: &str| [field("prompt", "a\r\n--not it\r\nb\n\r\r\n"), field("model", model), file("\r\n\0RIFF\r\r\n-")];
    let (sent, model) = read(&[form(&parts("whisper-1")).as_bytes()]).unwrap();
    assert_eq!((String::from_utf8(sent).unwrap(), model.as_deref()), (form(&parts("UP")), Some("whisper-1")));
}

#[test]
fn forms_are_read_as_clients_send_them() {
    let model = || field("model", "m");
    let table = [
        form(&[model()]),
        form(&[file("data"), model()]),
        form(&[model(), file("")]),
        format!("\r\n{}", form(&[model()])),
        form(&[model()]).trim_end().to_owned(),
        format!("{}\r\n \r\n", form(&[model()])),
        form(&[part("content-disposition:form-data;name=model", "m")]),
        form(&[part("Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=\"model\"", "m")]),
        form(&[part("Content-Disposition: form-data; name=\"file\"; filename*=utf-8''a%20b", "x"), model()]),
        form(&[model()]).replace("b0und:ary\r\n", "b0und:ary \t\r\n"),
    ];
    for text in table {
        assert_eq!(reads(&text), Ok(Some("m".to_owned())), "{text}");
    }
}

#[test]
fn what_two_readers_could_take_for_two_things_is_refused() {
    let (model, other) = (field("model", "m"), "Content-Disposition: form-data; name=\"x\"");
    let of_model = |head: &str| form(&[part(head, "m")]);
    let table = [
        (form(&[model.clone(), field("model", "n")]), "model"),
        (form(&[field("other", "m")]), "model"),
        (form(&[]), "model"),
        (form(&[field("model", "")]), "model"),
        (form(&[field("model", &"m".repeat(257))]), "model"),
        (of_model("Content-Disposition: form-data; name=\"model\"; filename=\"m\""), "model"),
        (of_model("Content-Disposition: form-data; name=\"model\"\r\nContent-Transfer-Encoding: base64"), "model"),
        (of_model("Content-Disposition: form-data; name=\"mod\\el\""), "body"),
        (of_model("Content-Disposition: form-data; name=\"x\"; name=\"model\""), "body"),
        (of_model("Content-Disposition: form-data; name=\"x\"; name*=utf-8''model"), "body"),
        (of_model("Content-Disposition: form-data;\r\n name=\"model\""), "body"),
        (of_model("Content-Disposition: form-data;\n name=\"model\""), "body"),
        (of_model(&format!("{other}\r\nContent-Disposition: form-data; name=\"model\"")), "body"),
        (of_model("Content-Disposition: form-data; name=\"x\"; filename=\"model\""), "body"),
        (of_model("Content-Disposition: form-data; name=\"x\"; filename=\"a; name=model\""), "body"),
        (of_model(&format!("{other}\r\nContent-Type: text/plain; name=\"model\"")), "body"),
        (of_model("Content-Disposition: attachment; name=\"model\""), "body"),
        (of_model("Content-Disposition: form-data; name=\"x\"; filename=\"a\" name=\"model\""), "body"),
        (of_model("Content-Disposition: form-data"), "body"),
        (of_model("Content-Type: text/plain"), "body"),
        (of_model("no header"), "body"),
        (of_model(&format!("X: {}", "x".repeat(9000))), "body"),
        (format!("--{BOUNDARY}\r\n\r\nm\r\n--{BOUNDARY}--"), "body"),
        // A boundary's line that is none by the book.
        (form(&[model.clone(), field("x", &format!("\n--{BOUNDARY}\n{other}"))]), "body"),
        (form(&[model.clone(), field("x", &format!("a\r\n--{BOUNDARY}x\r\n{other}"))]), "body"),
        (form(&[model.clone(), field("x", &format!("a\r\n--{BOUNDARY}\n{other}"))]), "body"),
        (form(&[model.clone(), field("x", &format!("a--{BOUNDARY}\r\n{other}"))]), "body"),
        (form(&[model.clone(), field(&format!("--{BOUNDARY}"), "x")]), "body"),
        (format!("a--{BOUNDARY}\r\n{}", form(std::slice::from_ref(&model))), "body"),
        (form(&[model.clone(), format!("--{BOUNDARY}\r\n{other}\r\n\r\n--{BOUNDARY}\r\n")]), "body"),
        (format!("a preamble\r\n{}", form(std::slice::from_ref(&model))), "body"),
        (format!("\n{}", form(std::slice::from_ref(&model))), "body"),
        (format!("{}--{BOUNDARY}\r\n", form(std::slice::from_ref(&model))), "body"),
        // Cut.
        (form(&[model.clone(), file("data")]).replace(&format!("--{BOUNDARY}--\r\n"), ""), "body"),
        (format!("{model}--{BOUNDARY}"), "body"),
        (format!("{model}--{BOUNDARY}-"), "body"),
        (String::new(), "body"),
    ];
    for (text, field) in table {
        assert_eq!(reads(&text), Err(field), "{text}");
    }
}

#[test]
fn a_boundary_is_found_in_its_media_type() {
    let table = [
        ("multipart/form-data; boundary=abc", Some("abc")),
        ("Multipart/Form-Data;charset=utf-8; Boundary=\"a b:c\"", Some("a b:c")),
        ("multipart/form-data; boundary=abc;", Some("abc")),
        ("multipart/form-data; boundary=abc; boundary=def", None),
        ("multipart/form-data; boundary=", None),
        ("multipart/form-data; boundary=\"abc", None),
        ("multipart/form-data; boundary=\"a \"", None),
        ("multipart/form-data; boundary=a\\b", None),
        ("multipart/form-data", None),
        ("multipart/mixed; boundary=abc", None),
        ("application/json", None),
    ];
    for (text, expected) in table {
        assert_eq!(boundary(text.as_bytes()), expected, "{text}");
    }
    assert_eq!(boundary(format!("multipart/form-data; boundary={}", "x".repeat(71)).as_bytes()), None);
}

#[test]
fn little_is_kept_of_a_long_file() {
    let mut scanner = Form::new(BOUNDARY);
    let head =
        format!("{}--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n", field("model", "m"));
    scanner.feed(Bytes::from(head), &mut |_| ()).unwrap();
    let chunk = Bytes::from("\r\n--\r\n------b0u".repeat(1000));
    for _ in 0..100 {
        let mut passed = 0;
        scanner
            .feed(chunk.clone(), &mut |piece| passed += if let Piece::Bytes(bytes) = piece { bytes.len() } else { 0 })
            .unwrap();
        assert!(passed + 64 >= chunk.len() && scanner.carry.len() < 64);
    }
}

/// Text that is dense in what boundaries are made of.
fn tricky() -> impl Strategy<Value = String> {
    let bits = ["\r", "\n", "\r\n", "-", "--", "----b0und", "a", ":", "\0"];
    proptest::collection::vec(proptest::sample::select(bits.to_vec()), 0..20).prop_map(|bits| bits.concat())
}

proptest! {
    #[test]
    fn cuts_change_nothing(before in tricky(), data in tricky(), cuts in proptest::collection::vec(0..1000usize, 0..8), last in any::<bool>()) {
        let (model, parts) = (field("model", "m"), [field("x", &before), file(&data)].concat());
        let text = form(&[if last { format!("{parts}{model}") } else { format!("{model}{parts}") }]);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]).collect();
        let expected = text.replace(&model, &field("model", "UP"));
        prop_assert_eq!(read(&pieces), Ok((expected.into_bytes(), Some("m".to_owned()))));
    }

    #[test]
    fn whatever_comes_is_read_or_refused_alike(text in tricky(), cut in 0..400usize) {
        let text = format!("--{BOUNDARY}{text}");
        let cut = cut.min(text.len());
        let (first, second) = text.as_bytes().split_at(cut);
        prop_assert_eq!(read(&[first, second]), read(&[text.as_bytes()]));
    }
}
