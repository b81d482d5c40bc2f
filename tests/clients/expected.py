"""What every client asks and what it must see: one run of two rounds, of which the client sees the answer alone."""

import json
import os

BASE_URL = os.environ["BASE_URL"]
API_KEY = os.environ["API_KEY"]
MODEL = "support"
QUESTION = "What is the weather in Oslo?"
# The same, for an answer that is parsed, and for one that needs a tool of the client's own beside the gateway's.
OBJECT_QUESTION = "What is the weather in Oslo, as an object?"
PAGE_QUESTION = "Open a page with the weather in Oslo."
PAGE_TOOL = {
    "type": "function",
    "function": {
        "name": "open_page",
        "description": "Opens a page.",
        "parameters": {"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}}},
    },
}
PAGE_ARGUMENTS = {"title": "Oslo: -3 degrees"}
PAGE_RESULT = "The page is open."
PAGE_ANSWER = "The page shows -3 degrees."
ANSWER = "It is -3 degrees in Oslo, and the sky is clear."
# Both rounds together.
INPUT_TOKENS, OUTPUT_TOKENS = 80, 18
# An upstream that counts nothing leaves the counting to the gateway.
COUNTED = os.environ.get("UPSTREAM_COUNTS") != "no"


def equal(what, seen, expected):
    if seen != expected:
        raise SystemExit(f"{what}\n  expected {json.dumps(expected, default=str)}\n  seen     {json.dumps(seen, default=str)}")


def equal_usage(seen):
    if COUNTED:
        equal("usage", tuple(seen), (INPUT_TOKENS, OUTPUT_TOKENS))
    elif min(seen) < 1:
        raise SystemExit(f"usage: expected something, seen {seen}")
