-- What tools of MCP servers were when they were first seen, or when the operator accepted them.
CREATE TABLE pins (
    server     text        NOT NULL,  -- its name in the configuration
    tool       text        NOT NULL,  -- the server's own name of it
    digest     bytea       NOT NULL,  -- SHA-256 of `definition`
    definition text        NOT NULL,  -- JSON: name, description and schema; empty: it is too long to be kept
    at         timestamptz NOT NULL,  -- since when it holds
    PRIMARY KEY (server, tool)
);
