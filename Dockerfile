# restamp alone in an empty image: a static binary, no shell, no root. It talks to the API server only, whose certificates its pod
# is given, so it needs no others. See deploy/image, which builds this without a registry.
#
# For several platforms: docker buildx build --platform linux/amd64,linux/arm64 --tag registry.example.org/restamp:0.1.0 .

# Where the binary comes from: `compiled` here, or `prebuilt` as restamp-ARCHITECTURE in the build's context.
ARG BINARY=compiled

FROM rust:1.95-alpine AS compiled
# ring compiles a little C and assembler.
RUN apk add --no-cache gcc musl-dev
WORKDIR /source
COPY Cargo.toml Cargo.lock ./
COPY src src
# A name for each platform, as several may be built at once.
ARG TARGETARCH
RUN --mount=type=cache,id=registry,target=/usr/local/cargo/registry \
    --mount=type=cache,id=target-${TARGETARCH},target=/source/target \
    cargo build --locked --release && cp target/release/restamp /restamp

FROM scratch AS prebuilt
ARG TARGETARCH
COPY restamp-${TARGETARCH} /restamp

FROM ${BINARY} AS binary

FROM scratch
COPY --from=binary --chmod=0755 /restamp /restamp
# A number, so that runAsNonRoot can be checked.
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/restamp"]
CMD ["run"]
