//! Whether what stands behind a name is a secret, or only speaks of one: `forgotten?`, `${PASSWORD}`, `str`, `get_token()`.

/// Whether a value is written for people or machines to put something else in its place, or is nothing.
pub(in crate::redact) fn is_placeholder(value: &[u8]) -> bool {
    let first = value.first().copied().unwrap_or(b'*');
    let filler =
        |byte: &u8| matches!(byte, b'*' | b'.' | b'-' | b'_' | b'x' | b'X' | b'?' | b'#' | b'!' | b'\\' | b'=' | b'/' | b'|');
    value.iter().all(filler)
        || !value.is_ascii() && value.iter().all(|byte| !byte.is_ascii())
        || (first == b'$'
            && value.get(1).is_some_and(|&byte| matches!(byte, b'{' | b'(' | b'$') || byte.is_ascii_alphabetic() || byte == b'_')
            && !has_symbols(value.get(1..).unwrap_or_default()))
        || value.starts_with(b"${")
        || value.starts_with(b"{{")
        || value.starts_with(b"{%")
        || value.starts_with(b"<%")
        || value.starts_with(b"%(")
        || value.starts_with(b"%{")
        || (first == b'{' && value.ends_with(b"}"))
        || (first == b'<' && value.contains(&b'>'))
        || (first == b'%' && value.len() <= 2)
        || (first == b'%' && value.ends_with(b"%"))
        || (first == b'[' && value.ends_with(b"]"))
        || (first == b'(' && value.ends_with(b")"))
        || is_any(trimmed(value), EMPTY)
        || starts_with_any(
            value,
            &[
                "your",
                "my_",
                "my-",
                "process.env",
                "os.environ",
                "os.getenv",
                "system.getenv",
                "getenv(",
                "env.",
                "env(",
                "env:",
                "secrets.",
                "vault:",
                "var.",
                "ref+",
                "arn:aws",
                "file:",
                "/run/secrets",
                "secret://",
                "sm://",
                "op://",
                "enc[",
                "!vault",
                "insert",
                "enter_",
                "enter-",
                "replace",
                "changeme_",
                "put_",
                "put-",
                "some_",
                "redacted",
                "example_",
                "dummy",
            ],
        )
}

/// Whether a value only refers to a secret, or is none: `${PASSWORD}`, `{{ password }}`, `****`, nothing.
pub(in crate::redact) fn is_reference(value: &[u8]) -> bool {
    let filler = |byte: &u8| matches!(byte, b'*' | b'.' | b'-' | b'_' | b' ');
    value.iter().all(filler)
        || (value.starts_with(b"${") && value.ends_with(b"}"))
        || (value.starts_with(b"{{") && value.ends_with(b"}}"))
}

fn has_symbols(value: &[u8]) -> bool {
    value.iter().any(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'.' | b':' | b'}' | b'{' | b'-'))
}

/// Words that stand where there is no secret.
#[rustfmt::skip]
const EMPTY: &[&str] = &[
    "null", "nil", "none", "undefined", "true", "false", "yes", "no", "on", "off", "n/a", "na", "tbd", "todo", "string", "str",
    "text", "int", "integer", "bool", "boolean", "number", "object", "array", "any", "unknown", "void", "bytes", "option",
    "optional", "required", "hidden", "masked", "redacted", "removed", "omitted", "secret", "password", "passwd", "token",
    "key", "forgotten", "forgot", "reset", "change", "changed", "invalid", "incorrect", "wrong", "missing", "expired", "empty",
    "set", "unset", "not", "is", "are", "was", "must", "should", "will", "can", "cannot", "may", "the", "a", "an", "your",
    "and", "or", "of", "for", "to", "in", "with", "from", "by", "confirm", "enter", "show", "hide", "ok", "valid", "blank",
    "prompt", "input", "this", "self", "value", "default", "type", "name", "file", "env", "see", "use", "used", "please",
    "disabled", "enabled", "available", "protected", "encrypted", "sensitive", "credentials", "user", "admin_password",
    "basic", "bearer", "keys", "passthrough", "oauth", "oauth2", "jwt", "public", "private", "&str", "char", "varchar", "uuid",
    "new", "old", "select", "field", "placeholder", "needed", "accepted", "rejected", "failed", "success", "successful",
];

/// Whether unquoted text is a piece of a program: a call, a member, a type.
pub(in crate::redact) fn is_expression(value: &[u8]) -> bool {
    let Some(&first) = value.first() else { return true };
    let head =
        value.split(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':'))).next().unwrap_or_default();
    let behind = value.get(head.len()).copied();
    let begins_as_name = first.is_ascii_alphabetic() || first == b'_';
    let letters = |part: &[u8]| part.iter().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'.' | b':'));
    let call = begins_as_name && matches!(behind, Some(b'(' | b'[' | b'<')) && head.len() >= 2;
    let member = begins_as_name
        && behind.is_none()
        && letters(head)
        && head.iter().any(|&byte| byte == b'.' || byte == b':')
        && !head.ends_with(b".");
    let snake = begins_as_name && behind.is_none() && letters(head) && head.contains(&b'_');
    let reference = matches!(first, b'&' | b'*' | b'@' | b':')
        && value.iter().skip(1).all(|&byte| byte.is_ascii_alphabetic() || byte == b'_');
    call || member || snake || reference
}

/// Whether it looks like what machines make: long, and not a word.
pub(in crate::redact) fn is_token_like(value: &[u8]) -> bool {
    let has = |what: fn(&u8) -> bool| value.iter().any(what);
    let (digit, lower, upper) = (has(u8::is_ascii_digit), has(u8::is_ascii_lowercase), has(u8::is_ascii_uppercase));
    let letter = lower || upper;
    let path = starts_with_any(value, &["http:", "https:", "/", "./", "../", "~/", "c:\\"]) || value.contains(&b'(');
    if value.len() < 8 || path || value.contains(&b' ') {
        return false;
    }
    (digit && letter)
        || (value.len() >= 16 && lower && upper && !value.contains(&b'.'))
        || (value.len() >= 16 && letter && !value.contains(&b'.') && !value.contains(&b'_') && !value.contains(&b'-'))
}

/// Whether a word of a sentence can be a password: it has something that words have not.
pub(in crate::redact) fn is_no_word(value: &[u8]) -> bool {
    let inner = trimmed(value);
    let digit = inner.iter().any(u8::is_ascii_digit);
    let letter = inner.iter().any(u8::is_ascii_alphabetic);
    let symbol = inner.iter().any(|byte| {
        byte.is_ascii_punctuation() && !matches!(byte, b'-' | b'\'' | b'/' | b'.' | b',' | b'_' | b'(' | b')' | b'=' | b':')
    });
    inner.len() >= 5 && [digit, letter, symbol].into_iter().filter(|has| *has).count() >= 2
}

/// Without the punctuation that ends sentences.
pub(in crate::redact) fn trimmed(value: &[u8]) -> &[u8] {
    let end = value.iter().rposition(|byte| !matches!(byte, b'.' | b',' | b'!' | b'?' | b':' | b';')).map_or(0, |last| last + 1);
    value.get(..end).unwrap_or_default()
}

/// None of the lists has a longer word, in bytes.
const LONGEST_WORD: usize = 16;

fn is_any(value: &[u8], words: &[&str]) -> bool {
    if value.len() > LONGEST_WORD {
        return false;
    }
    words.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()))
}

fn starts_with_any(value: &[u8], words: &[&str]) -> bool {
    words.iter().any(|word| value.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes())))
}

/// Whether a value in quotes says something to people: it has a word that only sentences have.
pub(in crate::redact) fn is_sentence(value: &[u8]) -> bool {
    value.contains(&b' ') && value.split(|byte| !byte.is_ascii_alphabetic()).any(|word| is_any(word, OF_SENTENCES))
}

#[rustfmt::skip]
const OF_SENTENCES: &[&str] = &[
    "your", "the", "is", "are", "be", "must", "please", "enter", "a", "an", "to", "of", "for", "or", "and", "not", "with", "password", "passwords",
    "token", "secret", "key", "this", "that", "will", "can", "should", "required", "invalid", "too", "at", "in", "bitte", "das", "ihr", "le",
];
