//! What the chat templates of models take for their own: the marks of turns, of roles, of tools and of thoughts. A model's server turns such
//! a text into the one token that means it, whoever wrote it; broken, it is text.

/// Marks that are exactly this, whatever the case of their letters: they begin with `<`.
const ANGLED: &[&str] = &[
    // Llama 2, Mistral, and the vocabularies of SentencePiece.
    "<s>",
    "</s>",
    "<unk>",
    "<pad>",
    "<bos>",
    "<eos>",
    "<mask>",
    "<sep>",
    "<cls>",
    "<<SYS>>",
    "<</SYS>>",
    // Gemma.
    "<start_of_turn>",
    "<end_of_turn>",
    "<start_of_image>",
    "<end_of_image>",
    // Qwen, Hermes and those that learnt from them.
    "<tool_call>",
    "</tool_call>",
    "<tool_calls>",
    "</tool_calls>",
    "<tool_response>",
    "</tool_response>",
    "<tool_result>",
    "</tool_result>",
    "<tool_output>",
    "</tool_output>",
    "<tools>",
    "</tools>",
    "<think>",
    "</think>",
    "<thinking>",
    "</thinking>",
    "<scratch_pad>",
    // Anthropic.
    "<function_calls>",
    "</function_calls>",
    "<function_results>",
    "</function_results>",
    "<function_result>",
    "</function_result>",
    "<invoke>",
    "</invoke>",
    "<system-reminder>",
    "</system-reminder>",
    "<system_instructions>",
    "</system_instructions>",
    // Models that fill in code.
    "<fim_prefix>",
    "<fim_middle>",
    "<fim_suffix>",
    "<fim_pad>",
    "<file_sep>",
    "<repo_name>",
    // GLM, InternLM, MiniMax, Seed.
    "<sop>",
    "<eop>",
    "<eoh>",
    "<eoa>",
    "<seed:bos>",
    "<seed:eos>",
    "<seed:think>",
    "</seed:think>",
    "<minimax:tool_call>",
];

/// The beginnings of marks that go on with a name.
const OPEN: &[&str] = &["<invoke name=", "<parameter name=", "<function=", "<antml:", "</antml:", "<\u{FF5C}", "</\u{FF5C}"];

/// Marks that begin with a bracket, and the two lines that a result stands between.
const BRACKETED: &[&str] = &[
    "[INST]",
    "[/INST]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_CALLS]",
    "[/TOOL_CALLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CONTENT]",
    "[CALL_ID]",
    "[ARGS]",
    "[THINK]",
    "[/THINK]",
    "[IMG]",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[gMASK]",
    "[sMASK]",
    "[MASK]",
    super::OPENING,
    super::CLOSING,
];

/// Who speaks next, on a line of its own behind an empty one.
const SPEAKERS: [&str; 2] = ["Human:", "Assistant:"];

/// How an empty line ends, as it is and inside of JSON.
const EMPTY_LINES: [&str; 4] = ["\n\n", "\n\r\n", "\\n\\n", "\\n\\r\\n"];

/// The longest name in a mark with bars, in bytes.
const LONGEST_NAME: usize = 64;

/// Behind how many bytes the token is to be broken that begins here; `None`: there is none.
pub(super) fn head(before: &str, rest: &str) -> Option<usize> {
    match rest.as_bytes().first()? {
        b'<' => (is_listed(ANGLED, rest) || is_listed(OPEN, rest) || is_barred(rest, "<", ">")).then_some(1),
        b'[' => {
            let is_one = BRACKETED.iter().any(|mark| rest.starts_with(mark)) || is_barred(rest, "[", "]");
            is_one.then_some(1)
        }
        b'H' | b'A' => {
            let speaker = SPEAKERS.iter().find(|speaker| rest.starts_with(**speaker))?;
            EMPTY_LINES.iter().any(|line| before.ends_with(line)).then_some(speaker.len() - 1)
        }
        _ => None,
    }
}

fn is_listed(marks: &[&str], rest: &str) -> bool {
    marks.iter().any(|mark| rest.as_bytes().get(..mark.len()).is_some_and(|head| head.eq_ignore_ascii_case(mark.as_bytes())))
}

/// Whether it is a name with bars: `<|im_start|>`, `<|turn>`, `<turn|>`, `[|user|]`.
fn is_barred(rest: &str, open: &str, close: &str) -> bool {
    let Some(inner) = rest.strip_prefix(open) else { return false };
    let inner = inner.strip_prefix('/').unwrap_or(inner);
    let named = inner.strip_prefix('|');
    let name = named.unwrap_or(inner);
    let length =
        name.bytes().take(LONGEST_NAME + 1).take_while(|byte| byte.is_ascii_alphanumeric() || b"_-:./".contains(byte)).count();
    let behind = name.get(length..).unwrap_or_default();
    let closed = behind.strip_prefix('|').map(|behind| behind.starts_with(close));
    let is_named = (1..=LONGEST_NAME).contains(&length);
    is_named && (closed == Some(true) || (named.is_some() && open == "<" && behind.starts_with(close)))
}
