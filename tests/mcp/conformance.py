"""The client that the public conformance suite of MCP tries: toolgate itself, with the suite's server among its `mcp_servers`.

usage: TOOLGATE_BIN=PROGRAM conformance.py URL

A model of our own asks for every tool that toolgate offers it, once, with arguments that fit. All of it, the gateway too, ends with this
program; it succeeds where the gateway has answered and has ended as it should.
"""

import http.server
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

SAMPLES = {"number": 2, "integer": 2, "boolean": True, "array": [], "object": {}, "string": "x"}


class Model(http.server.BaseHTTPRequestHandler):
    """Asks for every tool that it is offered; then it is content."""

    offered = 0
    results = []

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        tools = [tool["function"] for tool in asked.get("tools", [])]
        Model.offered = max(Model.offered, len(tools))
        results = [message["content"] for message in asked["messages"] if message["role"] == "tool"]
        message, reason = {"role": "assistant", "content": "Done."}, "stop"
        if tools and not results:
            message = {"role": "assistant", "content": None, "tool_calls": [call(tool) for tool in tools]}
            reason = "tool_calls"
        Model.results = results
        body = json.dumps({
            "id": "c1", "object": "chat.completion", "created": 1, "model": "scripted",
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def call(tool):
    properties = tool["parameters"].get("properties", {})
    arguments = {name: SAMPLES[schema.get("type", "string")] for name, schema in properties.items()}
    return {"id": "call_" + tool["name"], "type": "function", "function": {"name": tool["name"], "arguments": json.dumps(arguments)}}


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return "127.0.0.1:%d" % probe.getsockname()[1]


def configuration(url, model, listen, admin):
    # JSON is YAML too.
    return json.dumps({
        "server": {"listen": listen, "admin_listen": admin, "shutdown_grace": "3s"},
        "store": {"url": "sqlite:toolgate.db"},
        "providers": {"scripted": {"kind": "openai_compatible", "base_url": "http://%s/v1" % model, "trust_zone": "local"}},
        "models": {"m": {"provider": "scripted", "price": "free", "tools": {"groups": ["suite"]}}},
        "groups": {"suite": {
            "data_class": "public", "trust_zone": "local",
            "egress": [{"host": urllib.parse.urlsplit(url).netloc, "private": True}],
        }},
        "mcp_servers": {"suite": {"url": url, "group": "suite", "requires_approval": False, "timeout": "20s"}},
    })


def get(url, body=None):
    request = urllib.request.Request(url, data=body, headers={"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=25) as response:
        return response.read()


def is_ready(admin):
    try:
        return bool(get("http://%s/readyz" % admin))
    except (urllib.error.URLError, ConnectionError):
        return False


def wait(seconds, condition):
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.1)


def ask(listen):
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Use every tool."}]}).encode()
    answer = json.loads(get("http://%s/v1/chat/completions" % listen, body))
    return answer["choices"][0]["message"]["content"] == "Done."


def main(url):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    listen, admin = free_address(), free_address()
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "toolgate.yaml")
        file.write_text(configuration(url, "127.0.0.1:%d" % server.server_port, listen, admin))
        gateway = subprocess.Popen([os.environ["TOOLGATE_BIN"], "serve", "--config", str(file)])
        try:
            wait(10, lambda: is_ready(admin))
            answered = ask(listen)
            print("offered %d tools; they returned %s" % (Model.offered, Model.results))
        finally:
            gateway.send_signal(signal.SIGTERM)
            ended = gateway.wait(timeout=15)
    return 0 if answered and ended == 0 else 1


sys.exit(main(sys.argv[-1]))
