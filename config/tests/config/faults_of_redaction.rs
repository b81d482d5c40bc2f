//! Faults of `redaction:`, and of tools that are not redacted.

use super::refused;

#[test]
fn a_pattern_runs_in_linear_time_and_matches_something() {
    refused([
        (
            "redaction: { patterns: [ { name: a, regex: 'x(?=y)' }, { name: b, regex: '(x)\\1' }, { name: c, regex: 'x*' }, { name: d, regex: '(' } ] }\n",
            "1:44: redaction.patterns[0].regex: this pattern cannot be used: it cannot run in linear time: look-around does not exist here\n\
             1:74: redaction.patterns[1].regex: this pattern cannot be used: it cannot run in linear time: back-references do not exist here\n\
             1:103: redaction.patterns[2].regex: this pattern cannot be used: it matches nothing at all, which is everywhere\n\
             1:129: redaction.patterns[3].regex: this pattern cannot be used: it is no regular expression: unclosed group",
        ),
        (
            "redaction: { patterns: [ { name: a, regex: '[0-9]{129}' }, { name: b, regex: '[a&&b]' } ] }\n",
            "1:44: redaction.patterns[0].regex: this pattern cannot be used: it matches no text, or none of at most 128 bytes\n\
             1:78: redaction.patterns[1].regex: this pattern cannot be used: it matches no text, or none of at most 128 bytes",
        ),
    ]);
}

#[test]
fn a_pattern_that_is_too_large_is_refused() {
    refused([(
        "redaction: { patterns: [ { name: a, regex: '[\\p{L}x]{1,100}(\\w{60}){0,90}!' } ] }\n",
        "1:44: redaction.patterns[0].regex: this pattern cannot be used: it is too large; fewer or smaller repetitions, or `(?-u:…)` around what need not know all scripts",
    )]);
}

#[test]
fn the_name_of_a_pattern_is_a_word_of_its_own() {
    refused([(
        "redaction: { patterns: [ { name: a (t), regex: x }, { name: email, regex: x }, { name: jwt, regex: x }, { name: t, regex: x }, { name: t, regex: y }, {} ] }\n",
        "1:34: redaction.patterns[0].name: `a (t)` is no name of a pattern; allowed: 1 to 64 letters, digits, `_`, `-`\n\
         1:61: redaction.patterns[1].name: `email` is a kind that is built in; allowed: any other name\n\
         1:88: redaction.patterns[2].name: `jwt` is a kind that is built in; allowed: any other name\n\
         1:136: redaction.patterns[4].name: two patterns of one name, `t`; the first is `redaction.patterns[3].name` at line 1, column 113\n\
         1:151: redaction.patterns[5]: `name` is missing\n\
         1:151: redaction.patterns[5]: `regex` is missing",
    )]);
}

#[test]
fn kinds_of_personal_data_are_words() {
    refused([(
        "redaction: { answers: { personal: [ phones ] }, tool_results: { secrets: maybe }, arguments: {} }\n",
        "1:37: redaction.answers.personal[0]: unknown word `phones`; allowed: email, phone, iban, card, ip; nearest: phone\n\
         1:74: redaction.tool_results.secrets: wrong type: text; allowed: true, false\n\
         1:83: redaction.arguments: unknown key; allowed: tool_results, answers, patterns",
    )]);
}

#[test]
fn what_is_not_redacted_is_enabled_or_disabled_in_so_many_words() {
    const TOOLS: &str = "groups: { g: { data_class: public, egress: ['a:443'] } }\n";
    refused([(
        &*format!(
            "{TOOLS}tools:\n  - {{ name: t, group: g, redact: off, http: {{ url: 'https://a/' }} }}\n\
             \x20 - {{ name: u, group: g, redact: off, enabled: false, http: {{ url: 'https://a/' }} }}\n\
             mcp_servers: {{ s: {{ command: x, group: g, redact: off }}, r: {{ command: x, group: g, tools: [ {{ v: {{ redact: off }} }} ] }} }}\n"
        ),
        "3:34: tools[0].redact: what is not redacted is enabled or disabled in so many words; allowed: with `enabled: true`, `enabled: false`\n\
         5:51: mcp_servers.s.redact: what is not redacted is enabled or disabled in so many words; allowed: with `enabled: true`, `enabled: false`\n\
         5:109: mcp_servers.r.tools[0].v.redact: what is not redacted is enabled or disabled in so many words; allowed: with `enabled: true`, `enabled: false`",
    )]);
}
