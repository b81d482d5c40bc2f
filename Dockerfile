# docker build -t toolgate .
# docker run -p 8080:8080 -v "$PWD/toolgate.yaml:/etc/toolgate/toolgate.yaml:ro" toolgate
# In the file, `server: { listen: "0.0.0.0:8080" }` lets callers in from outside the container, and `keys:` says who they are. The ledger has to be
# where the user of the container may write: `store: { url: "sqlite:/var/lib/toolgate/toolgate.db" }` with `-v toolgate:/var/lib/toolgate`, a
# `postgres://` server, or `none`.

FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates cmake g++ make
WORKDIR /src
COPY . .
RUN cargo build --locked --profile dist --package toolgate-gateway --bin toolgate

FROM debian:bookworm-slim
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/target/dist/toolgate /usr/local/bin/toolgate
RUN useradd --system --uid 65532 --home-dir /var/lib/toolgate --create-home toolgate
USER 65532
WORKDIR /var/lib/toolgate
ENV TOOLGATE_CONFIG=/etc/toolgate/toolgate.yaml
EXPOSE 8080
# There is no curl in here: toolgate asks its own admin listener, inside the container.
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD ["toolgate", "health"]
ENTRYPOINT ["toolgate"]
CMD ["serve"]
