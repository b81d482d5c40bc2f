"""The openai package for Python: plain, stream, structured."""

import sys

import openai
from pydantic import BaseModel

from expected import ANSWER, API_KEY, BASE_URL, INPUT_TOKENS, MODEL, OUTPUT_TOKENS, QUESTION, equal

client = openai.OpenAI(base_url=BASE_URL, api_key=API_KEY, max_retries=0, timeout=30)
messages = [{"role": "user", "content": QUESTION}]


class Weather(BaseModel):
    city: str
    celsius: int


def plain():
    response = client.chat.completions.with_raw_response.create(model=MODEL, messages=messages)
    completion = response.parse()
    choice = completion.choices[0]
    equal("content", choice.message.content, ANSWER)
    equal("tool calls", choice.message.tool_calls, None)
    equal("finish reason", choice.finish_reason, "stop")
    equal("model", completion.model, MODEL)
    equal("usage", (completion.usage.prompt_tokens, completion.usage.completion_tokens), (INPUT_TOKENS, OUTPUT_TOKENS))
    headers = [response.headers.get(f"x-toolgate-{name}") for name in ("status", "rounds", "tool-calls")]
    equal("headers", headers, ["completed", "2", "1"])
    equal("trace id", len(response.headers.get("x-toolgate-trace")), 32)


def stream():
    text, finish_reasons, roles, ids, usages = "", [], [], set(), []
    options = {"include_usage": True}
    for chunk in client.chat.completions.create(model=MODEL, messages=messages, stream=True, stream_options=options):
        ids.add(chunk.id)
        if chunk.usage:
            usages.append((chunk.usage.prompt_tokens, chunk.usage.completion_tokens))
        for choice in chunk.choices:
            equal("tool calls", choice.delta.tool_calls, None)
            text += choice.delta.content or ""
            roles += [choice.delta.role] if choice.delta.role else []
            finish_reasons += [choice.finish_reason] if choice.finish_reason else []
    equal("content", text, ANSWER)
    equal("roles", roles, ["assistant"])
    equal("finish reasons", finish_reasons, ["stop"])
    equal("number of ids", len(ids), 1)
    equal("usages", usages, [(INPUT_TOKENS, OUTPUT_TOKENS)])


def structured():
    completion = client.chat.completions.parse(model=MODEL, messages=messages, response_format=Weather)
    equal("parsed", completion.choices[0].message.parsed, Weather(city="Oslo", celsius=-3))
    with client.chat.completions.stream(model=MODEL, messages=messages, response_format=Weather) as events:
        completion = events.get_final_completion()
    equal("parsed from a stream", completion.choices[0].message.parsed, Weather(city="Oslo", celsius=-3))


{"plain": plain, "stream": stream, "structured": structured}[sys.argv[1]]()
