"""What every client asks and what it must see: one run of two rounds, of which the client sees the answer alone."""

import json
import os

BASE_URL = os.environ["BASE_URL"]
API_KEY = os.environ["API_KEY"]
MODEL = "support"
QUESTION = "What is the weather in Oslo?"
ANSWER = "It is -3 degrees in Oslo, and the sky is clear."
# Both rounds together.
INPUT_TOKENS, OUTPUT_TOKENS = 80, 18


def equal(what, seen, expected):
    if seen != expected:
        raise SystemExit(f"{what}\n  expected {json.dumps(expected, default=str)}\n  seen     {json.dumps(seen, default=str)}")
