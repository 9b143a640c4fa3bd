# Three stages: one that compiles the kernel, one that installs into a virtual environment, and one that holds nothing but
# that environment and Python.
FROM rust:1.95-slim-trixie AS native
WORKDIR /src
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3-venv \
 && rm -rf /var/lib/apt/lists/* \
 && python3 -m venv /opt/build
COPY requirements/native.txt requirements/
RUN /opt/build/bin/pip install --require-hashes -r requirements/native.txt
COPY native native
RUN /opt/build/bin/maturin build --release --manifest-path native/Cargo.toml --compatibility linux --out dist

FROM python:3.13-slim AS build
WORKDIR /src
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
COPY requirements/run.txt requirements/build.txt requirements/
# Only versions that were tested, and only bytes with the hashes that are written there.
RUN python -m venv /opt/sfm-stream \
 && /opt/sfm-stream/bin/pip install --require-hashes -r requirements/run.txt \
 && pip install --require-hashes -r requirements/build.txt
COPY --from=native /src/dist native-dist
COPY pyproject.toml README.md LICENSE ./
COPY sfm_stream sfm_stream
RUN pip wheel --no-deps --no-build-isolation --wheel-dir dist . \
 && /opt/sfm-stream/bin/pip install --no-deps native-dist/*.whl dist/*.whl

FROM python:3.13-slim
ARG SOURCE=
LABEL org.opencontainers.image.title="sfm-stream" \
      org.opencontainers.image.description="Private distinct counts from event streams" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="${SOURCE}"
COPY --from=build /opt/sfm-stream /opt/sfm-stream
# A volume that is mounted there belongs to the user below: the copy of public topics that `serve` keeps.
RUN install -d -o 10001 -g 10001 -m 0700 /var/cache/sfm-stream
ENV PATH=/opt/sfm-stream/bin:$PATH PYTHONUNBUFFERED=1
# A numeric user, so that a cluster that demands "not root" can see that it is not.
USER 10001:10001
WORKDIR /pipeline
STOPSIGNAL SIGTERM
# Alive: every loop has turned lately. The listener is that of [metrics] operator; its port is 9464 unless set otherwise.
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
  CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ.get('SFM_OPERATOR_PORT', '9464') + '/live', timeout=4)"]
ENTRYPOINT ["sfm-stream"]
CMD ["--help"]
