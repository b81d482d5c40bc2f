"""langchain-openai's ChatOpenAI: plain, stream, structured."""

import sys

from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from expected import ANSWER, API_KEY, BASE_URL, INPUT_TOKENS, MODEL, OUTPUT_TOKENS, QUESTION, equal

chat = ChatOpenAI(base_url=BASE_URL, api_key=API_KEY, model=MODEL, max_retries=0, timeout=30, stream_usage=True)


class Weather(BaseModel):
    city: str
    celsius: int


def check(message):
    equal("content", message.content, ANSWER)
    equal("tool calls", message.tool_calls, [])
    equal("finish reason", message.response_metadata["finish_reason"], "stop")
    usage = message.usage_metadata
    equal("usage", (usage["input_tokens"], usage["output_tokens"]), (INPUT_TOKENS, OUTPUT_TOKENS))


def plain():
    check(chat.invoke(QUESTION))


def stream():
    whole = None
    for chunk in chat.stream(QUESTION):
        whole = chunk if whole is None else whole + chunk
    check(whole)


def structured():
    weather = chat.with_structured_output(Weather, method="json_schema").invoke(QUESTION)
    equal("parsed", weather, Weather(city="Oslo", celsius=-3))


{"plain": plain, "stream": stream, "structured": structured}[sys.argv[1]]()
