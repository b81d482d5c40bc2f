-- What tools of MCP servers were when they were first seen, or when the operator accepted them.
CREATE TABLE pins (
    server     TEXT    NOT NULL,  -- its name in the configuration
    tool       TEXT    NOT NULL,  -- the server's own name of it
    digest     BLOB    NOT NULL,  -- SHA-256 of `definition`
    definition TEXT    NOT NULL,  -- JSON: name, description and schema; empty: it is too long to be kept
    at         INTEGER NOT NULL,  -- since when it holds: microseconds since 1970-01-01 UTC
    PRIMARY KEY (server, tool)
) STRICT;
