"""The openai package for Python: plain, stream, structured, and a tool of its own."""

import json
import sys

import openai
from pydantic import BaseModel

from expected import *  # noqa: F403

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
    equal_usage((completion.usage.prompt_tokens, completion.usage.completion_tokens))
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
    equal("number of usages", len(usages), 1)
    equal_usage(usages[0])


def structured():
    messages = [{"role": "user", "content": OBJECT_QUESTION}]
    completion = client.chat.completions.parse(model=MODEL, messages=messages, response_format=Weather)
    equal("parsed", completion.choices[0].message.parsed, Weather(city="Oslo", celsius=-3))
    with client.chat.completions.stream(model=MODEL, messages=messages, response_format=Weather) as events:
        completion = events.get_final_completion()
    equal("parsed from a stream", completion.choices[0].message.parsed, Weather(city="Oslo", celsius=-3))


def streamed_call(messages):
    """The one call of a stream, put together from its pieces."""
    call, finish_reasons = {"id": None, "name": None, "arguments": ""}, []
    for chunk in client.chat.completions.create(model=MODEL, messages=messages, tools=[PAGE_TOOL], stream=True):
        for choice in chunk.choices:
            finish_reasons += [choice.finish_reason] if choice.finish_reason else []
            for piece in choice.delta.tool_calls or []:
                equal("index", piece.index, 0)
                call["id"] = call["id"] or piece.id
                call["name"] = call["name"] or piece.function.name
                call["arguments"] += piece.function.arguments or ""
    equal("finish reasons", finish_reasons, ["tool_calls"])
    return call


def own_tool():
    for stream in (False, True):
        messages = [{"role": "user", "content": PAGE_QUESTION}]
        if stream:
            call = streamed_call(messages)
        else:
            choice = client.chat.completions.create(model=MODEL, messages=messages, tools=[PAGE_TOOL]).choices[0]
            equal("finish reason", choice.finish_reason, "tool_calls")
            equal("number of calls", len(choice.message.tool_calls), 1)
            made = choice.message.tool_calls[0]
            call = {"id": made.id, "name": made.function.name, "arguments": made.function.arguments}
        equal("call", (call["name"], json.loads(call["arguments"])), ("open_page", PAGE_ARGUMENTS))
        function = {"name": call["name"], "arguments": call["arguments"]}
        messages.append({"role": "assistant", "content": None, "tool_calls": [{"id": call["id"], "type": "function", "function": function}]})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": PAGE_RESULT})
        completion = client.chat.completions.create(model=MODEL, messages=messages, tools=[PAGE_TOOL])
        equal("content", completion.choices[0].message.content, PAGE_ANSWER)
        equal("finish reason", completion.choices[0].finish_reason, "stop")


def other_paths():
    equal("models", MODEL in [model.id for model in client.models.list()], True)
    answer = client.embeddings.create(model=MODEL, input=["Oslo"], encoding_format="float")
    equal("vector", answer.data[0].embedding, [0.5, -0.25, 1])
    equal("model", answer.model, MODEL)
    picture = client.images.generate(model=MODEL, prompt="Oslo", response_format="b64_json")
    equal("picture", picture.data[0].b64_json, "T3Nsbw==")
    equal("speech", client.audio.speech.create(model=MODEL, voice="alloy", input="Oslo").content, b"Oslo")
    with client.audio.speech.with_streaming_response.create(model=MODEL, voice="alloy", input="Oslo") as streamed:
        equal("speech as it comes", b"".join(streamed.iter_bytes()), b"Oslo")
    # Longer than what is kept of a form.
    sound = b"\r\n--sound" * 300_000
    equal("heard", client.audio.transcriptions.create(model=MODEL, file=("oslo.wav", sound)).text, "Oslo")


{"plain": plain, "stream": stream, "structured": structured, "other_paths": other_paths, "own_tool": own_tool}[sys.argv[1]]()
