# The HTTP service in a container: docs/serving.md. The model is not part of the image; mount it at /model.
#
#   docker build -t lacuner .
#   docker run --rm -p 127.0.0.1:8000:8000 --read-only --tmpfs /tmp -v "$PWD/run/model:/model:ro" lacuner
#
# pip installs torch with GPU libraries by default. For a smaller image, name an index of CPU builds:
#   docker build --build-arg PIP_EXTRA_INDEX_URL=URL -t lacuner .
FROM python:3.11-slim AS build
ARG PIP_EXTRA_INDEX_URL=""
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/lacuner \
    && PIP_CONSTRAINT=constraints.txt /opt/lacuner/bin/pip install '.[serve,transformers]'

FROM python:3.11-slim
COPY --from=build /opt/lacuner /opt/lacuner
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin lacuner
ENV PATH=/opt/lacuner/bin:$PATH PYTHONDONTWRITEBYTECODE=1 MPLCONFIGDIR=/tmp HF_HUB_OFFLINE=1
USER 10001
WORKDIR /tmp
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/health', timeout=4)"]
# inside a container every address is reachable only through the published port
ENTRYPOINT ["lacuner", "serve", "/model", "--host", "0.0.0.0", "--allow-remote"]
CMD ["--workers", "1"]
