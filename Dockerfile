# One image for every workload: `baton …` and `python -m baton.operator`. Nothing in it can be written, nobody in it is root.
#
#     docker build --tag baton:0.1.0 --build-arg REVISION=$(git rev-parse HEAD) .
#
# Everything of Python's comes from the hashed requirements. BASE is a Debian 12, or what stands in for it.
ARG BASE=docker.io/library/debian:12-slim

FROM ${BASE} AS build
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
ENV DEBIAN_FRONTEND=noninteractive PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates python3 python3-venv \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /source
# first what changes seldom; --no-deps, for the files are the whole closure, and an old pip would search on its own
COPY requirements/run.txt requirements/operator.txt requirements/build.txt requirements/
RUN python3 -m venv /opt/baton && python3 -m venv /opt/build \
 && /opt/baton/bin/pip install --no-deps --only-binary=:all: --require-hashes --requirement requirements/operator.txt \
 && /opt/build/bin/pip install --no-deps --only-binary=:all: --require-hashes --requirement requirements/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY db db
COPY operator operator
COPY pipeline pipeline
COPY reconcilers reconcilers
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheel . \
 && /opt/baton/bin/pip install --no-deps --no-index /wheel/*.whl \
 && /opt/baton/bin/pip uninstall --yes pip setuptools \
 && rm -rf /opt/baton/share /opt/baton/include \
 # where the root cannot be written, no process could keep what it compiled; olefile2 is for Python 2
 && python3 -m compileall -q -x olefile2 --invalidation-mode unchecked-hash /opt/baton/lib

FROM ${BASE}
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="baton" \
      org.opencontainers.image.description="From finished upload to registered in the Record, and repaired on the way." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV DEBIAN_FRONTEND=noninteractive
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates python3 tesseract-ocr tesseract-ocr-eng \
 && rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/* /usr/share/doc/* /usr/share/man/* /usr/share/locale/*
COPY --from=build /opt/baton /opt/baton
# tesseract's own threads slow it down several times
ENV PATH=/opt/baton/bin:/usr/local/bin:/usr/bin:/bin HOME=/tmp LANG=C.UTF-8 OMP_THREAD_LIMIT=1 \
    PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /tmp
CMD ["baton", "--help"]
