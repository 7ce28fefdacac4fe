# A static binary, alone in an empty image. Build it with BuildKit: docker build -t restamp:0.1.0 .
FROM rust:1.95-alpine AS build
# ring compiles a little C and assembler.
RUN apk add --no-cache gcc musl-dev
WORKDIR /source
COPY Cargo.toml Cargo.lock ./
COPY src src
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/source/target \
    cargo build --locked --release && cp target/release/restamp /restamp

FROM scratch
COPY --from=build /restamp /restamp
# A number, so that runAsNonRoot can be checked.
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/restamp"]
CMD ["run"]
