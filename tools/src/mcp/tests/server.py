"""A server of tools over standard input and output, for tests: it does what its modes say, and writes down what it hears.

usage: server.py JOURNAL [MODE ...]
"""
import json, os, signal, subprocess, sys, threading, time

journal, modes = sys.argv[1], set(sys.argv[2:])
writing = threading.Lock()


def note(text):
    with open(journal, "a") as out:
        out.write(text + "\n")


def send(message):
    with writing:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def answer(id, result):
    send({"jsonrpc": "2.0", "id": id, "result": result})


def tool(name, **more):
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def page(cursor):
    if "pages" in modes:
        first = [tool("first%02d" % n) for n in range(40)]
        return {"tools": [tool("last%d" % n) for n in range(3)]} if cursor == "p2" else {"tools": first, "nextCursor": "p2"}
    if "same-cursor" in modes:
        return {"tools": [tool("t%d" % n) for n in range(5)], "nextCursor": "x"}
    if "endless" in modes:
        n = int(cursor or 0)
        return {"tools": [tool("t%d" % n)], "nextCursor": str(n + 1)}
    if "many" in modes:
        return {"tools": [tool("t%d" % n) for n in range(700)]}
    if "odd-tools" in modes:
        return {"tools": [tool("good", description="a\x07b\nc"), 7, {"name": 8}, {"inputSchema": {}}, tool("good"), tool("x" * 300), {"name": "bare"}]}
    names = [t for t in open(os.environ["LIST"]).read().split()] if "LIST" in os.environ else ["echo", "slow", "die"]
    return {"tools": [tool(name) for name in names]}


lists = 0


def heard(line):
    global lists
    message = json.loads(line)
    method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
    note("%s %s" % (method or "answer", json.dumps(params if method else message, sort_keys=True)))
    if method == "initialize":
        if "newer" in modes:
            return send({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}})
        answer(id, {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": "fixture", "version": "1"}})
        if "asks" in modes:
            for n, method in enumerate(["ping", "roots/list", "sampling/createMessage", "elicitation/create", "own/method"]):
                send({"jsonrpc": "2.0", "id": "q%d" % n, "method": method, "params": {"message": "m", "messages": [], "maxTokens": 1, "requestedSchema": {"type": "object", "properties": {}}}})
    elif method == "server/discover":
        answer(id, {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"})
    elif method == "tools/list":
        lists += 1
        if "second-list-fails" in modes and lists == 2:
            return send({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "SECRET"}})
        if "page-fails" in modes and params.get("cursor"):
            return send({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": "boom"}})
        answer(id, page(params.get("cursor")))
    elif method == "tools/call":
        threading.Thread(target=call, args=(id, params), daemon=True).start()


def call(id, params):
    name, arguments = params["name"], params.get("arguments", {})
    if name == "echo":
        answer(id, {"content": [{"type": "text", "text": json.dumps(arguments)}]})
    elif name == "result":
        with writing:
            sys.stdout.write('{"jsonrpc":"2.0","id":%s,"result":%s}\n' % (json.dumps(id), arguments["json"]))
            sys.stdout.flush()
    elif name == "refuse":
        send({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "no such city"}})
    elif name == "slow":
        time.sleep(arguments["seconds"])
        answer(id, {"content": [{"type": "text", "text": "slow " + str(arguments["seconds"])}]})
    elif name == "die":
        os._exit(3)
    elif name == "die-once":
        # The next process answers.
        if not os.path.exists(journal + ".died"):
            open(journal + ".died", "w").close()
            os._exit(3)
        answer(id, {"content": [{"type": "text", "text": "alive"}]})
    elif name == "mute":
        # Closes its output and lives on.
        os.close(1)
        time.sleep(60)
    elif name == "chatter":
        with writing:
            sys.stdout.write("Listening...\n\n{\"not\": \"a message\"}\n[1, 2\n\xff\n")
            sys.stdout.flush()
        print("warming up with " + os.environ.get("TOKEN", ""), file=sys.stderr, flush=True)
        answer(id, {"content": [{"type": "text", "text": "done"}]})
    elif name == "flood":
        for _ in range(64):
            os.write(2, b"e" * (1024 * 1024))
        os.write(2, b"\n" * 100000)
        for _ in range(10000):
            send({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 100}})
        answer(id, {"content": [{"type": "text", "text": "done"}]})
    elif name == "huge":
        with writing:
            sys.stdout.write("x" * (17 * 1024 * 1024) + "\n")
            sys.stdout.flush()
    elif name == "stop-reading":
        answer(id, {"content": [{"type": "text", "text": "deaf now"}]})
    elif name == "burst":
        for _ in range(100):
            send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        answer(id, {"content": [{"type": "text", "text": "sent"}]})
    elif name == "environment":
        answer(id, {"content": [{"type": "text", "text": json.dumps(sorted(os.environ))}]})


note("start %d" % os.getpid())
if "child" in modes:
    # A child that holds on to everything, and does not listen to signals either.
    child = subprocess.Popen([sys.executable, "-c", "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"], stdout=subprocess.PIPE)
    child.stdout.readline()
    note("child %d" % child.pid)
if "deaf-to-term" in modes:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "exit-at-once" in modes:
    sys.exit(1)
if "silent" in modes:
    time.sleep(600)
for line in sys.stdin:
    if "Listening" not in line:
        heard(line)
    if '"stop-reading"' in line:
        time.sleep(600)
note("end of input")
if "stays" in modes or "deaf-to-term" in modes:
    time.sleep(600)
