//! What goes out and what comes back, digit for digit.

use toolgate_config::class::DataClass;
use toolgate_config::tool::Effect;
use toolgate_policies::zone::Mark;

use super::house::*;

#[tokio::test]
async fn arguments_arrive_as_they_were_written_and_results_as_well() {
    let fixture = fixture(&[]);
    let hub = hub(&[&fixture]).await;
    let written = "{\"n\": 12345678901234567890123,\n \"s\": \"a\\u0000 \\n b\"}";
    // Python keeps whole numbers of any length.
    let echoed = r#"{"n": 12345678901234567890123, "s": "a\u0000 \n b"}"#;
    assert_eq!(text(call(&hub, &fixture.work("echo"), written, Effect::ReadOnly).await), echoed);
    let json = r#"{"json": "{\"structuredContent\": {\"n\": 12345678901234567890123.50}}"}"#;
    assert_eq!(text(call(&hub, &fixture.work("result"), json, Effect::ReadOnly).await), r#"{"n": 12345678901234567890123.50}"#);
    hub.close().await;
}

#[tokio::test]
async fn case_58_every_form_of_a_result_is_read_once() {
    let fixture = fixture(&[]);
    let hub = hub(&[&fixture]).await;
    let table = [
        (r#"{"isError":true,"content":[{"type":"text","text":"no such city"}]}"#, "no such city", true),
        (r#"{"content":[],"structuredContent":{"n":17}}"#, r#"{"n":17}"#, false),
        (r#"{"content":[{"type":"text","text":"17"}],"structuredContent":{"n":17}}"#, "17", false),
        (r#"{"content":[],"structuredContent":{}}"#, "{}", false),
        (r#"{"content":[]}"#, "(no content)", false),
        ("{}", "(no content)", false),
        (r#"{"_meta":{"x":1}}"#, "(no content)", false),
        (r#"{"structuredContent":[1,2]}"#, "[1,2]", false),
        (r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#, "a\nb", false),
        (r#"{"content":[{"type":"image","data":"QUJD","mimeType":"image/png"}]}"#, "(no text)", false),
        (r#"{"content":[{"type":"image","data":"!","mimeType":"image/png"}]}"#, "[image image/png, 0 bytes: not shown]", false),
        (
            r#"{"content":[{"type":"resource","resource":{"uri":"file:///a","text":"in it"}}]}"#,
            "[resource: file:///a]\nin it",
            false,
        ),
        (
            r#"{"content":[{"type":"resource_link","uri":"file:///a","name":"a","mimeType":"text/plain"}]}"#,
            "[link: a file:///a text/plain]",
            false,
        ),
        (r#"{"content":[{"type":"hologram"}]}"#, "[something of a kind that is not known here]", false),
        (r#"{"content":[7]}"#, "[something that cannot be read]", false),
        (r#"{"resultType":"input_required","content":[]}"#, "the tool asks for something that it cannot be given here", true),
    ];
    for (result, expected, is_error) in table {
        let arguments = serde_json::json!({ "json": result }).to_string();
        let answer = call(&hub, &fixture.work("result"), &arguments, Effect::ReadOnly).await;
        assert_eq!(answer.as_ref().map(|answer| answer.is_error), Ok(is_error), "{result}");
        assert_eq!(text(answer), expected, "{result}");
    }
    let refused = call(&hub, &fixture.work("refuse"), "{}", Effect::ReadOnly).await;
    assert!(refused.as_ref().is_ok_and(|answer| answer.is_error), "{refused:?}");
    assert_eq!(text(refused), "no such city");
    assert_eq!(fixture.count("tools/call"), table.len() + 1, "nothing is asked twice");
    hub.close().await;
}

#[tokio::test]
async fn a_result_may_declare_itself_more_sensitive() {
    let fixture = fixture(&[]);
    let hub = hub(&[&fixture]).await;
    let table = [
        ("{}", DataClass::Public, false),
        (r#"{"data_class":"diagnostics"}"#, DataClass::Diagnostics, false),
        (r#"{"data_class":"Internal","personal":true}"#, DataClass::Secret, true),
        (r#"{"data_class":7,"personal":"yes"}"#, DataClass::Secret, true),
        (r#"{"personal":false}"#, DataClass::Public, false),
    ];
    for (meta, class, personal) in table {
        let arguments = serde_json::json!({ "json": format!(r#"{{"content":[],"_meta":{meta}}}"#) }).to_string();
        let answer = call(&hub, &fixture.work("result"), &arguments, Effect::ReadOnly).await.unwrap();
        assert_eq!(answer.mark, Mark { class, personal }, "{meta}");
    }
    hub.close().await;
}

#[tokio::test]
async fn pictures_come_as_they_are_and_too_many_become_notes() {
    let fixture = fixture(&[]);
    let hub = hub(&[&fixture]).await;
    let picture = format!(r#"{{"type":"image","mimeType":"image/png","data":"{}"}}"#, "QUJD".repeat(1_500_000));
    let arguments = serde_json::json!({ "json": "{\"content\":[]}" }).to_string();
    assert!(call(&hub, &fixture.work("result"), &arguments, Effect::ReadOnly).await.is_ok());
    let answer = super::super::Answer::read(&format!(r#"{{"content":[{picture},{picture}]}}"#)).unwrap();
    assert_eq!(answer.media.len(), 1);
    assert_eq!(answer.pieces.len(), 1);
    assert_eq!(answer.pieces[0].as_str(), "[image image/png, 4 MiB: not shown]");
    hub.close().await;
}
