# The image of the controller, with the binary of `make build`:
#
#   docker build --build-arg VERSION=v1.2.3 --build-arg COMMIT=$(git rev-parse HEAD) .
#
# .github/workflows/release.yml sets GO_IMAGE and BASE_IMAGE to the digests of these tags,
# and CONNECTOR_DIGEST and ENVOY_DIGEST to the digests of the default images of the
# connectors and of Envoy.
ARG GO_IMAGE=docker.io/library/golang:1.26.8-bookworm
ARG BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot

FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
WORKDIR /src
# Modules change less often than the sources, so they get a layer of their own.
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY Makefile ./
COPY api ./api
COPY cmd ./cmd
COPY config ./config
COPY internal ./internal
COPY provider ./provider
ARG VERSION=unknown
ARG COMMIT=unknown
ARG CONNECTOR_DIGEST=
ARG ENVOY_DIGEST=
ARG TARGETOS
ARG TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    GOOS=${TARGETOS} GOARCH=${TARGETARCH} make build \
      VERSION=${VERSION} COMMIT=${COMMIT} CONNECTOR_DIGEST=${CONNECTOR_DIGEST} \
      ENVOY_DIGEST=${ENVOY_DIGEST}

FROM ${BASE_IMAGE}
COPY --from=build /src/bin/tunnel-gateway /usr/local/bin/tunnel-gateway
# The kubelet can verify runAsNonRoot only for a numeric user.
USER 65532:65532
EXPOSE 8080 8081 18000
ENTRYPOINT ["/usr/local/bin/tunnel-gateway"]
CMD ["controller"]
