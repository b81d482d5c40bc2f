"""langchain-openai's ChatOpenAI: plain, stream, structured, and a tool of its own."""

import sys

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from expected import *  # noqa: F403

chat = ChatOpenAI(base_url=BASE_URL, api_key=API_KEY, model=MODEL, max_retries=0, timeout=30, stream_usage=True)


class Weather(BaseModel):
    city: str
    celsius: int


def check(message):
    equal("content", message.content, ANSWER)
    equal("tool calls", message.tool_calls, [])
    equal("finish reason", message.response_metadata["finish_reason"], "stop")
    usage = message.usage_metadata
    equal_usage((usage["input_tokens"], usage["output_tokens"]))


def plain():
    check(chat.invoke(QUESTION))


def stream():
    whole = None
    for chunk in chat.stream(QUESTION):
        whole = chunk if whole is None else whole + chunk
    check(whole)


def structured():
    weather = chat.with_structured_output(Weather, method="json_schema").invoke(OBJECT_QUESTION)
    equal("parsed", weather, Weather(city="Oslo", celsius=-3))


def own_tool():
    with_tool = chat.bind_tools([PAGE_TOOL])
    for stream in (False, True):
        messages = [HumanMessage(PAGE_QUESTION)]
        said = None
        for piece in with_tool.stream(messages) if stream else [with_tool.invoke(messages)]:
            said = piece if said is None else said + piece
        equal("calls", [(call["name"], call["args"]) for call in said.tool_calls], [("open_page", PAGE_ARGUMENTS)])
        messages += [said, ToolMessage(PAGE_RESULT, tool_call_id=said.tool_calls[0]["id"])]
        equal("content", with_tool.invoke(messages).content, PAGE_ANSWER)


{"plain": plain, "stream": stream, "structured": structured, "own_tool": own_tool}[sys.argv[1]]()
